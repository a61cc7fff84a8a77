//! What a value is: `IS_ARRAY`, `IS_STRING` and the like.
//!
//! They see undefined too, and say false of it: their answer is always true or
//! false. `IS_BOOLEAN` is not documented: the Java SDK asks so when it goes on in a
//! sorted answer.

use dayfly_model::value::{Type, Value};

use super::{Arguments, Body, Family};

pub(super) const FUNCTIONS: &Family = &[
    ("IS_ARRAY", Body::Seeing(|a| is(a, |value| value.kind() == Type::Array))),
    ("IS_BOOL", Body::Seeing(|a| is(a, |value| value.kind() == Type::Bool))),
    ("IS_BOOLEAN", Body::Seeing(|a| is(a, |value| value.kind() == Type::Bool))),
    ("IS_DEFINED", Body::Seeing(|a| is(a, Value::is_defined))),
    ("IS_FINITE_NUMBER", Body::Seeing(|a| is(a, is_finite))),
    ("IS_INTEGER", Body::Seeing(|a| is(a, |value| value.as_integer().is_some()))),
    ("IS_NULL", Body::Seeing(|a| is(a, |value| value.kind() == Type::Null))),
    ("IS_NUMBER", Body::Seeing(|a| is(a, |value| value.kind() == Type::Number))),
    ("IS_OBJECT", Body::Seeing(|a| is(a, |value| value.kind() == Type::Object))),
    ("IS_PRIMITIVE", Body::Seeing(|a| is(a, is_primitive))),
    ("IS_STRING", Body::Seeing(|a| is(a, |value| value.kind() == Type::String))),
];

fn is(arguments: &Arguments<'_>, test: fn(&Value) -> bool) -> Value {
    arguments.first().is_some_and(|value| test(value)).into()
}

fn is_finite(value: &Value) -> bool {
    matches!(value, Value::Number(number) if number.is_finite())
}

/// Whether a value has no values in it.
pub(super) fn is_primitive(value: &Value) -> bool {
    matches!(value.kind(), Type::Null | Type::Bool | Type::Number | Type::String)
}

#[cfg(test)]
mod tests;
