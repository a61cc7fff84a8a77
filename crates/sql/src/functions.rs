//! The functions of the language: what each is called, how many arguments it
//! takes, and what it makes of them.
//!
//! Each family of functions is a file with a table of its own. A function gets
//! values and gives a value; an argument of the wrong type makes the result
//! undefined, and so does one that is undefined, unless the table says that the
//! function wants to see it.

mod arguments;
mod array;
mod case;
mod convert;
mod date;
mod fold;
mod integer;
mod kind;
mod like;
mod math;
mod regex;
mod search;
mod set;
pub(crate) mod signature;
mod spatial;
mod string;
#[cfg(test)]
mod tables;
#[cfg(test)]
mod testing;
mod units;

use std::borrow::Cow;

use dayfly_model::Timestamp;
use dayfly_model::value::Value;

pub(crate) use self::arguments::size;
pub(crate) use self::like::Like;

/// What a point adds to the size of a shape: two numbers, and the array around them.
const POINT_SIZE: usize = 3;

/// The arguments of a call.
pub(crate) type Arguments<'a> = [Cow<'a, Value>];

/// What a function may ask about the query that calls it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The time of the request.
    pub(crate) now: Timestamp,
    /// Whether shapes lie on a plane, not on the earth.
    pub(crate) plane: bool,
}

/// The functions of one family: their names in upper case, and what they do.
pub(crate) type Family = [(&'static str, Body)];

/// What a function does.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// A value of values; undefined if an argument is.
    Strict(fn(&Arguments<'_>) -> Value),
    /// The same, and sees undefined arguments.
    Seeing(fn(&Arguments<'_>) -> Value),
    /// The same as strict, and may be beyond what is supported: then a sentence
    /// says so.
    Failing(fn(&Arguments<'_>) -> Result<Value, String>),
    /// The same as strict, and depends on the setting.
    Set(fn(&Setting, &Arguments<'_>) -> Value),
}

impl Body {
    /// About how many steps it is to compare shapes, each edge with each other one.
    /// Functions that ask for the setting are about shapes, or have small arguments.
    pub(crate) fn effort(self, arguments: &Arguments<'_>) -> u64 {
        match self {
            Body::Set(_) => {
                let points = arguments.iter().map(|shape| (size(shape) / POINT_SIZE) as u64);
                points.sum::<u64>().saturating_pow(2) / 4
            }
            _ => 0,
        }
    }

    /// What the function makes of its arguments, or why it cannot.
    pub(crate) fn call(
        self,
        setting: &Setting,
        arguments: &Arguments<'_>,
    ) -> Result<Value, String> {
        let defined = arguments.iter().all(|argument| argument.is_defined());
        match self {
            Body::Seeing(function) => Ok(function(arguments)),
            _ if !defined => Ok(Value::Undefined),
            Body::Strict(function) => Ok(function(arguments)),
            Body::Failing(function) => function(arguments),
            Body::Set(function) => Ok(function(setting, arguments)),
        }
    }
}

/// All families.
const FAMILIES: &[&Family] = &[
    array::FUNCTIONS,
    convert::FUNCTIONS,
    date::FUNCTIONS,
    fold::FUNCTIONS,
    integer::FUNCTIONS,
    kind::FUNCTIONS,
    math::FUNCTIONS,
    regex::FUNCTIONS,
    search::FUNCTIONS,
    set::FUNCTIONS,
    spatial::FUNCTIONS,
    string::FUNCTIONS,
    units::FUNCTIONS,
];

/// The function of this name, which is in upper case.
pub(crate) fn find(name: &str) -> Option<(&'static str, Body)> {
    let all = FAMILIES.iter().flat_map(|family| family.iter());
    all.copied().find(|(known, _)| *known == name)
}
