//! Arrays: what is in them, and arrays made of them.
//!
//! An array that would be larger than the largest item is undefined.

use dayfly_model::value::Value;

use super::arguments::{SIZE_MAX, as_bool, integer, list, optional, size, value};
use super::search::{all, any};
use super::{Arguments, Body, Family};

pub(super) const FUNCTIONS: &Family = &[
    ("ARRAY_CONCAT", Body::Strict(|a| concat(a).into())),
    ("ARRAY_CONTAINS", Body::Seeing(|a| contains(a).into())),
    ("ARRAY_CONTAINS_ALL", Body::Seeing(|a| contains_all(a).into())),
    ("ARRAY_CONTAINS_ANY", Body::Seeing(|a| contains_any(a).into())),
    // What planners write; no page tells it apart.
    ("_TRY_ARRAY_CONTAINS", Body::Seeing(|a| contains(a).into())),
    ("ARRAY_LENGTH", Body::Strict(|a| list(a, 0).map(<[Value]>::len).into())),
    ("ARRAY_SLICE", Body::Strict(|a| slice(a).into())),
    ("OBJECTTOARRAY", Body::Strict(|a| members(a).into())),
];

fn concat(arguments: &Arguments<'_>) -> Option<Value> {
    let total = arguments.iter().fold(0_usize, |total, part| total.saturating_add(size(part)));
    if total > SIZE_MAX {
        return None;
    }
    let parts: Option<Vec<&[Value]>> = (0..arguments.len()).map(|at| list(arguments, at)).collect();
    Some(Value::Array(parts?.concat()))
}

/// Whether a value is in an array. In part means, for an object, that an element
/// has all its properties.
fn contains(arguments: &Arguments<'_>) -> Option<bool> {
    let values = list(arguments, 0)?;
    let sought = value(arguments, 1).filter(|sought| sought.is_defined())?;
    let in_part = optional(arguments, 2, false, |value| match value {
        Value::Undefined => Some(false),
        value => as_bool(value),
    })?;
    Some(values.iter().any(|value| value == sought || in_part && has_all_of(value, sought)))
}

fn has_all_of(value: &Value, sought: &Value) -> bool {
    match sought {
        Value::Object(sought) => sought.iter().all(|(name, sought)| value.property(name) == sought),
        _ => false,
    }
}

fn contains_all(arguments: &Arguments<'_>) -> Option<bool> {
    let values = list(arguments, 0)?;
    all(found(values, arguments))
}

fn contains_any(arguments: &Arguments<'_>) -> Option<bool> {
    let values = list(arguments, 0)?;
    any(found(values, arguments))
}

/// For each value that is sought whether it is there; `None` for undefined.
fn found(values: &[Value], arguments: &Arguments<'_>) -> impl Iterator<Item = Option<bool>> {
    let sought = arguments.iter().skip(1);
    sought.map(|sought| sought.is_defined().then(|| values.contains(sought)))
}

/// Some elements from a place on; a place below zero counts from the end.
fn slice(arguments: &Arguments<'_>) -> Option<Value> {
    let values = list(arguments, 0)?;
    let start = integer(arguments, 1)?;
    let count = optional(arguments, 2, i64::MAX, Value::as_integer)?;
    let skipped = if start < 0 {
        values.len().saturating_sub(usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX))
    } else {
        usize::try_from(start).unwrap_or(usize::MAX)
    };
    let taken = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    Some(Value::Array(values.iter().skip(skipped).take(taken).cloned().collect()))
}

/// The properties of an object, each as an object with its name and its value.
fn members(arguments: &Arguments<'_>) -> Option<Value> {
    let Value::Object(members) = value(arguments, 0)? else { return None };
    let key = optional(arguments, 1, "k", Value::as_str)?;
    let held = optional(arguments, 2, "v", Value::as_str)?;
    let names = members.len().saturating_mul(key.len().saturating_add(held.len()));
    if names > SIZE_MAX {
        return None;
    }
    let pair = |(name, value): &(String, Value)| {
        let held = (held.to_owned(), value.clone());
        if key == held.0 {
            return Value::Object(vec![held]);
        }
        Value::Object(vec![(key.to_owned(), name.as_str().into()), held])
    };
    Some(Value::Array(members.iter().map(pair).collect()))
}

#[cfg(test)]
mod tests;
