//! JSON values as queries see them: with undefined, and with numbers that are
//! 64-bit integers or doubles.
//!
//! Undefined is what a path leads to that is not there. It is a value like
//! others while a query runs, and never leaves the server: it cannot be part of
//! an array or an object that is read or written.
//!
//! Two values are equal when they mean the same: `1` and `1.0` are, and so are
//! objects with the same properties in another order. [`order`] puts all values
//! in one order, as bytes.

pub mod order;
mod read;

use std::cmp::Ordering;
use std::fmt;

pub use self::read::{read, read_raw};
use crate::json;

/// A value.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Nothing is there.
    #[default]
    Undefined,
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number; inside an expression it may be infinite or not a number.
    Number(Number),
    /// A string.
    String(String),
    /// A list of values.
    Array(Vec<Value>),
    /// Properties, in the order in which they were written; each name once.
    Object(Vec<(String, Value)>),
}

/// A number.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// An integer of 64 bits, exact.
    Integer(i64),
    /// Any other.
    Double(f64),
}

/// The kinds of values, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// Nothing is there.
    Undefined,
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// A list.
    Array,
    /// Properties.
    Object,
}

/// A number in a result is infinite or not a number, which JSON cannot say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFinite;

impl Value {
    /// Which kind it is.
    pub fn kind(&self) -> Type {
        match self {
            Value::Undefined => Type::Undefined,
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Number(_) => Type::Number,
            Value::String(_) => Type::String,
            Value::Array(_) => Type::Array,
            Value::Object(_) => Type::Object,
        }
    }

    /// Whether something is there.
    pub fn is_defined(&self) -> bool {
        !matches!(self, Value::Undefined)
    }

    /// Whether it is exactly `true`.
    pub fn is_true(&self) -> bool {
        matches!(self, Value::Bool(true))
    }

    /// The double nearest to a number.
    pub fn as_double(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(number.double()),
            _ => None,
        }
    }

    /// The integer that a number is, however it is kept: `2.0` is 2.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Value::Number(number) => number.integer(),
            _ => None,
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a property; undefined when it is not there, or this is not
    /// an object.
    pub fn property(&self, name: &str) -> &Value {
        let found = match self {
            Value::Object(members) => members.iter().find(|(known, _)| known == name),
            _ => None,
        };
        found.map_or(&Value::Undefined, |(_, value)| value)
    }

    /// An element of an array, or undefined.
    pub fn element(&self, index: usize) -> &Value {
        match self {
            Value::Array(values) => values.get(index).unwrap_or(&Value::Undefined),
            _ => &Value::Undefined,
        }
    }

    /// How two values of the same scalar type compare; `None` for other pairs,
    /// and for a number that is none.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Null, Value::Null) => Some(Ordering::Equal),
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            (Value::Number(left), Value::Number(right)) => left.compare(*right),
            (Value::String(left), Value::String(right)) => {
                Some(left.as_bytes().cmp(right.as_bytes()))
            }
            _ => None,
        }
    }

    /// Writes it as JSON. Undefined properties and elements are left out;
    /// undefined itself writes nothing.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), NotFinite> {
        match self {
            Value::Undefined => {}
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Number(number) if !number.is_finite() => return Err(NotFinite),
            Value::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Value::String(text) => write_string(text, out),
            Value::Array(values) => {
                out.push(b'[');
                let defined = values.iter().filter(|value| value.is_defined());
                for (place, value) in defined.enumerate() {
                    if place > 0 {
                        out.push(b',');
                    }
                    value.write(out)?;
                }
                out.push(b']');
            }
            Value::Object(members) => {
                out.push(b'{');
                let defined = members.iter().filter(|(_, value)| value.is_defined());
                for (place, (name, value)) in defined.enumerate() {
                    if place > 0 {
                        out.push(b',');
                    }
                    write_string(name, out);
                    out.push(b':');
                    value.write(out)?;
                }
                out.push(b'}');
            }
        }
        Ok(())
    }
}

/// Writes a string as JSON.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, text);
}

impl Number {
    /// The double nearest to it.
    #[expect(clippy::cast_precision_loss, reason = "the nearest is what is meant")]
    pub fn double(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Double(value) => value,
        }
    }

    /// The integer that it is.
    pub fn integer(self) -> Option<i64> {
        match self {
            Number::Integer(value) => Some(value),
            Number::Double(value) => whole(value),
        }
    }

    /// Neither infinite nor not a number.
    pub fn is_finite(self) -> bool {
        match self {
            Number::Integer(_) => true,
            Number::Double(value) => value.is_finite(),
        }
    }

    /// Whether it has a minus.
    pub fn is_negative(self) -> bool {
        match self {
            Number::Integer(value) => value < 0,
            Number::Double(value) => value.is_sign_negative(),
        }
    }

    /// The number with a minus before it; of zero, zero.
    pub fn negated(self) -> Number {
        match self {
            Number::Integer(value) => {
                value.checked_neg().map_or(Number::Double(-LEAST), Number::Integer)
            }
            Number::Double(value) if -value == LEAST => Number::Integer(i64::MIN),
            Number::Double(value) => Number::Double(0.0 - value),
        }
    }

    /// How two numbers compare, exactly; `None` if one is not a number.
    pub fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Integer(left), Number::Integer(right)) => Some(left.cmp(&right)),
            (Number::Double(left), Number::Double(right)) => left.partial_cmp(&right),
            (Number::Integer(left), Number::Double(right)) => against_double(left, right),
            (Number::Double(left), Number::Integer(right)) => {
                against_double(right, left).map(Ordering::reverse)
            }
        }
    }
}

/// The least integer of 64 bits; its negative is the first double past the
/// greatest.
const LEAST: f64 = -9_223_372_036_854_775_808.0;

/// The integer of 64 bits that a double stands for.
fn whole(value: f64) -> Option<i64> {
    let fits = value.fract() == 0.0 && (LEAST..-LEAST).contains(&value);
    #[expect(clippy::cast_possible_truncation, reason = "whole and within the bounds")]
    fits.then_some(value as i64)
}

#[expect(clippy::cast_possible_truncation, reason = "cut off within the bounds")]
fn against_double(left: i64, right: f64) -> Option<Ordering> {
    if right.is_nan() {
        None
    } else if right < LEAST {
        Some(Ordering::Greater)
    } else if right >= -LEAST {
        Some(Ordering::Less)
    } else {
        let below = right.floor();
        let rest = if right > below { Ordering::Less } else { Ordering::Equal };
        Some(left.cmp(&(below as i64)).then(rest))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.compare(*other) == Some(Ordering::Equal)
    }
}

impl fmt::Display for Number {
    /// As JSON writes it; what JSON cannot say is `NaN`, `Infinity` and
    /// `-Infinity`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(value) => write!(f, "{value}"),
            Number::Double(value) if value.is_nan() => f.write_str("NaN"),
            Number::Double(value) if value.is_infinite() => {
                f.write_str(if *value > 0.0 { "Infinity" } else { "-Infinity" })
            }
            Number::Double(value) => f.write_str(&json::number_text(*value)),
        }
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Number::Integer(value)
    }
}

impl From<u64> for Number {
    /// Past the integers of 64 bits it is a double.
    #[expect(clippy::cast_precision_loss, reason = "the nearest is what is meant")]
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or(Number::Double(value as f64), Number::Integer)
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Number::Double(value)
    }
}

impl PartialEq for Value {
    /// Whether both mean the same.
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Undefined, Value::Undefined) | (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Number(left), Value::Number(right)) => left == right,
            (Value::String(left), Value::String(right)) => left == right,
            (Value::Array(left), Value::Array(right)) => left == right,
            (Value::Object(left), Value::Object(right)) => {
                left.len() == right.len()
                    && left.iter().all(|(name, value)| {
                        let other = other.property(name);
                        other.is_defined() && other == value
                    })
            }
            _ => false,
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Number(Number::Integer(value))
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Value::Number(Number::Integer(i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Number(Number::Double(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::String(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::String(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Undefined, Into::into)
    }
}

#[cfg(test)]
mod tests;
