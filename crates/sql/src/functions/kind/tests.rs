use super::super::tables::{self, Row};
use super::FUNCTIONS;

/// Which of the functions say true of a value.
const TRUE_OF: &[(&str, &[&str])] = &[
    ("undefined", &[]),
    ("null", &["IS_DEFINED", "IS_NULL", "IS_PRIMITIVE"]),
    ("true", &["IS_BOOL", "IS_BOOLEAN", "IS_DEFINED", "IS_PRIMITIVE"]),
    ("false", &["IS_BOOL", "IS_BOOLEAN", "IS_DEFINED", "IS_PRIMITIVE"]),
    ("15", INTEGER),
    ("-0.0", INTEGER),
    ("2.0", INTEGER),
    ("-9223372036854775808", INTEGER),
    ("9223372036854775807", INTEGER),
    ("9223372036854775808", NUMBER),
    ("18446744073709551615", NUMBER),
    ("3454.123", NUMBER),
    ("NaN", &["IS_DEFINED", "IS_NUMBER", "IS_PRIMITIVE"]),
    ("Infinity", &["IS_DEFINED", "IS_NUMBER", "IS_PRIMITIVE"]),
    (r#""value""#, &["IS_DEFINED", "IS_PRIMITIVE", "IS_STRING"]),
    (r#""""#, &["IS_DEFINED", "IS_PRIMITIVE", "IS_STRING"]),
    ("[]", &["IS_ARRAY", "IS_DEFINED"]),
    ("[1]", &["IS_ARRAY", "IS_DEFINED"]),
    ("{}", &["IS_DEFINED", "IS_OBJECT"]),
    (r#"{"a": null}"#, &["IS_DEFINED", "IS_OBJECT"]),
];
const NUMBER: &[&str] = &["IS_DEFINED", "IS_FINITE_NUMBER", "IS_NUMBER", "IS_PRIMITIVE"];
const INTEGER: &[&str] =
    &["IS_DEFINED", "IS_FINITE_NUMBER", "IS_INTEGER", "IS_NUMBER", "IS_PRIMITIVE"];

#[test]
fn every_function_of_every_kind_of_value() {
    for (value, true_of) in TRUE_OF {
        let answer = |name| if true_of.contains(name) { "true" } else { "false" };
        let rows: Vec<Row> =
            FUNCTIONS.iter().map(|(name, _)| (*name, *value, answer(name))).collect();
        tables::check(FUNCTIONS, &rows);
    }
}
