//! Tables of calls and their results, for the tests of each family.
//!
//! Arguments and results are JSON, with `undefined`, `NaN` and `Infinity`.

use std::collections::HashSet;

use dayfly_model::value::{self, Value};

use super::Family;
use super::testing::{SETTING, call_with};

/// The name of a function, its arguments, its result.
pub(super) type Row = (&'static str, &'static str, &'static str);

/// Checks each row, and that each function of the family has one.
pub(super) fn check(family: &Family, rows: &[Row]) {
    for (name, arguments, expected) in rows {
        let arguments = values(arguments);
        let result = call(family, name, &arguments);
        let expected = values(expected).remove(0);
        if result != expected {
            // What is not a number is not equal to itself.
            assert_eq!(
                show(&result),
                show(&expected),
                "{name}({})",
                show(&Value::Array(arguments))
            );
        }
    }
    let tested: HashSet<&str> = rows.iter().map(|(name, _, _)| *name).collect();
    for (name, _) in family {
        assert!(tested.contains(name), "{name} has no row");
    }
}

/// Calls a function as a query does.
pub(super) fn call(family: &Family, name: &str, arguments: &[Value]) -> Value {
    call_with(SETTING, family, name, arguments)
}

/// Reads values that are separated by commas.
pub(super) fn values(text: &str) -> Vec<Value> {
    let mut json = String::from("[");
    for (place, part) in text.split('"').enumerate() {
        if place > 0 {
            json.push('"');
        }
        let outside = place % 2 == 0;
        json.push_str(&if outside { marked(part) } else { part.to_owned() });
    }
    json.push(']');
    match value::read(&json).unwrap_or_else(|error| panic!("{text}: {error}")) {
        Value::Array(values) => values.into_iter().map(unmarked).collect(),
        other => panic!("{other:?}"),
    }
}

/// The words that JSON does not know, as strings that nobody writes.
fn marked(part: &str) -> String {
    part.replace("undefined", r#""\u0001undefined""#)
        .replace("NaN", r#""\u0001nan""#)
        .replace("-Infinity", r#""\u0001least""#)
        .replace("Infinity", r#""\u0001greatest""#)
}

fn unmarked(value: Value) -> Value {
    match value {
        Value::Array(values) => Value::Array(values.into_iter().map(unmarked).collect()),
        Value::Object(members) => Value::Object(
            members.into_iter().map(|(name, value)| (name, unmarked(value))).collect(),
        ),
        Value::String(text) => match text.as_str() {
            "\u{1}undefined" => Value::Undefined,
            "\u{1}nan" => f64::NAN.into(),
            "\u{1}least" => f64::NEG_INFINITY.into(),
            "\u{1}greatest" => f64::INFINITY.into(),
            _ => Value::String(text),
        },
        other => other,
    }
}

/// A value as it is told when a test fails.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Undefined => "undefined".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(show).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let shown = members.iter().map(|(name, value)| format!("{name:?}: {}", show(value)));
            format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
        }
        other => format!("{other:?}"),
    }
}
