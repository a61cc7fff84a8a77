//! From strings to values and back: `STRINGTONUMBER`, `TOSTRING` and the like.
//!
//! A string is read as JSON, with white space around it and nothing else. What is
//! no JSON, or JSON of another type, is undefined. As in an item, the last one
//! counts of properties with the same name.

use std::collections::HashSet;

use dayfly_model::value::{self, Type, Value};

use super::arguments::{SIZE_MAX, text};
use super::{Arguments, Body, Family};

pub(super) const FUNCTIONS: &Family = &[
    ("STRINGTOARRAY", Body::Strict(|a| read(a, Type::Array).into())),
    ("STRINGTOBOOLEAN", Body::Strict(|a| read(a, Type::Bool).into())),
    ("STRINGTONULL", Body::Strict(|a| read(a, Type::Null).into())),
    ("STRINGTONUMBER", Body::Strict(|a| read(a, Type::Number).into())),
    ("STRINGTOOBJECT", Body::Strict(|a| read(a, Type::Object).into())),
    ("TOSTRING", Body::Strict(|a| super::arguments::value(a, 0).and_then(written).into())),
];

fn read(arguments: &Arguments<'_>, kind: Type) -> Option<Value> {
    let value = value::read(text(arguments, 0)?).ok()?;
    (value.kind() == kind).then(|| with_names_once(value))
}

/// The value with each name once in each object.
fn with_names_once(value: Value) -> Value {
    match value {
        Value::Array(values) => Value::Array(values.into_iter().map(with_names_once).collect()),
        Value::Object(members) => Value::Object(last_of_each(members)),
        scalar => scalar,
    }
}

fn last_of_each(members: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let mut seen = HashSet::new();
    let mut kept: Vec<(String, Value)> = members
        .into_iter()
        .rev()
        .filter(|(name, _)| seen.insert(name.clone()))
        .map(|(name, value)| (name, with_names_once(value)))
        .collect();
    kept.reverse();
    kept
}

/// A string as it is, any other value as JSON.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        value => {
            let mut out = Vec::new();
            value.write(&mut out).ok()?;
            String::from_utf8(out).ok().filter(|text| text.len() <= SIZE_MAX)
        }
    }
}

#[cfg(test)]
mod tests;
