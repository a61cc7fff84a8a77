//! What a function takes out of its arguments, and how large a value it may make.
//!
//! `None` is an argument that is not there or has another type; a function
//! passes it on, and it becomes undefined.

use dayfly_model::value::{Number, Value};

use super::Arguments;

/// The most bytes that a function may put together: the size of the largest
/// item. What would be larger is undefined.
pub(super) const SIZE_MAX: usize = 2 * 1024 * 1024;

/// An argument.
pub(super) fn value<'a>(arguments: &'a Arguments<'_>, place: usize) -> Option<&'a Value> {
    arguments.get(place).map(AsRef::as_ref)
}

/// The text of a string.
pub(super) fn text<'a>(arguments: &'a Arguments<'_>, place: usize) -> Option<&'a str> {
    value(arguments, place)?.as_str()
}

/// The elements of an array.
pub(super) fn list<'a>(arguments: &'a Arguments<'_>, place: usize) -> Option<&'a [Value]> {
    match value(arguments, place)? {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

/// A number.
pub(super) fn number(arguments: &Arguments<'_>, place: usize) -> Option<Number> {
    match value(arguments, place)? {
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// A number as a double.
pub(super) fn double(arguments: &Arguments<'_>, place: usize) -> Option<f64> {
    value(arguments, place)?.as_double()
}

/// A number that is an integer of 64 bits.
pub(super) fn integer(arguments: &Arguments<'_>, place: usize) -> Option<i64> {
    value(arguments, place)?.as_integer()
}

/// An argument that may be left out: `otherwise` if it is, `None` if it is there
/// and `take` finds nothing of use in it.
pub(super) fn optional<'a, T>(
    arguments: &'a Arguments<'_>,
    place: usize,
    otherwise: T,
    take: impl FnOnce(&'a Value) -> Option<T>,
) -> Option<T> {
    value(arguments, place).map_or(Some(otherwise), take)
}

/// A boolean that is false if it is left out.
pub(super) fn flag(arguments: &Arguments<'_>, place: usize) -> Option<bool> {
    optional(arguments, place, false, as_bool)
}

/// The boolean that a value is.
pub(super) fn as_bool(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        _ => None,
    }
}

/// About how many bytes a value takes, at least one.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => text.len() + 1,
        Value::Array(values) => values.iter().map(size).sum::<usize>() + 1,
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + size(value)).sum::<usize>() + 1
        }
    }
}
