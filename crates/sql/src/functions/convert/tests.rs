use proptest::prelude::*;

use dayfly_model::value::Value;

use super::super::tables::{self, Row};
use super::FUNCTIONS;

const ROWS: &[Row] = &[
    ("STRINGTOARRAY", r#""[]""#, "[]"),
    ("STRINGTOARRAY", r#""[ \"coats\", \"hats\" ]""#, r#"["coats", "hats"]"#),
    (
        "STRINGTOARRAY",
        r#""[[\"a\"], {\"t\": [1]}, 76, false, null]""#,
        r#"[["a"], {"t": [1]}, 76, false, null]"#,
    ),
    ("STRINGTOARRAY", r#""['coats']""#, "undefined"),
    ("STRINGTOARRAY", r#""[1] 2""#, "undefined"),
    ("STRINGTOARRAY", r#""[1,]""#, "undefined"),
    ("STRINGTOARRAY", r#""{}""#, "undefined"),
    ("STRINGTOARRAY", "null", "undefined"),
    ("STRINGTOARRAY", "undefined", "undefined"),
    ("STRINGTOARRAY", "[]", "undefined"),
    ("STRINGTOBOOLEAN", r#""true""#, "true"),
    ("STRINGTOBOOLEAN", r#""true  ""#, "true"),
    ("STRINGTOBOOLEAN", r#""  false""#, "false"),
    ("STRINGTOBOOLEAN", r#""\t\n\r false ""#, "false"),
    ("STRINGTOBOOLEAN", r#""True""#, "undefined"),
    ("STRINGTOBOOLEAN", r#""1""#, "undefined"),
    ("STRINGTOBOOLEAN", r#""\u00a0true""#, "undefined"),
    ("STRINGTOBOOLEAN", r#""""#, "undefined"),
    ("STRINGTOBOOLEAN", "true", "undefined"),
    ("STRINGTOBOOLEAN", "null", "undefined"),
    ("STRINGTONULL", r#""null""#, "null"),
    ("STRINGTONULL", r#""  null  ""#, "null"),
    ("STRINGTONULL", r#""NULL""#, "undefined"),
    ("STRINGTONULL", r#""Null""#, "undefined"),
    ("STRINGTONULL", "null", "undefined"),
    ("STRINGTONULL", "undefined", "undefined"),
    ("STRINGTONUMBER", r#""100""#, "100"),
    ("STRINGTONUMBER", r#""3.14""#, "3.14"),
    ("STRINGTONUMBER", r#""   60   ""#, "60"),
    ("STRINGTONUMBER", r#""-1.79769e+308""#, "-1.79769e308"),
    ("STRINGTONUMBER", r#""9007199254740993""#, "9007199254740993"),
    ("STRINGTONUMBER", r#""1e999""#, "undefined"),
    ("STRINGTONUMBER", r#""Hello""#, "undefined"),
    ("STRINGTONUMBER", r#""+1""#, "undefined"),
    ("STRINGTONUMBER", r#""01""#, "undefined"),
    ("STRINGTONUMBER", r#"".5""#, "undefined"),
    ("STRINGTONUMBER", r#""0x10""#, "undefined"),
    ("STRINGTONUMBER", r#""NaN""#, "undefined"),
    ("STRINGTONUMBER", "1", "undefined"),
    ("STRINGTONUMBER", "NaN", "undefined"),
    ("STRINGTONUMBER", "null", "undefined"),
    ("STRINGTOOBJECT", r#""{}""#, "{}"),
    ("STRINGTOOBJECT", r#""{\"isAvailable\": true}""#, r#"{"isAvailable": true}"#),
    ("STRINGTOOBJECT", r#""{\"a\": {\"b\": \"c\"}}""#, r#"{"a": {"b": "c"}}"#),
    ("STRINGTOOBJECT", r#""{'price': 27.55}""#, "undefined"),
    ("STRINGTOOBJECT", r#""{price: 27.55}""#, "undefined"),
    ("STRINGTOOBJECT", r#""[]""#, "undefined"),
    (
        "STRINGTOOBJECT",
        r#""{\"a\":1,\"b\":{\"c\":1,\"c\":2},\"a\":3}""#,
        r#"{"b": {"c": 2}, "a": 3}"#,
    ),
    ("STRINGTOOBJECT", "{}", "undefined"),
    ("TOSTRING", "125", r#""125""#),
    ("TOSTRING", "0.1234", r#""0.1234""#),
    ("TOSTRING", "9007199254740993", r#""9007199254740993""#),
    ("TOSTRING", "2.0", r#""2""#),
    ("TOSTRING", "false", r#""false""#),
    ("TOSTRING", "null", r#""null""#),
    ("TOSTRING", "[1, 2, 3]", r#""[1,2,3]""#),
    ("TOSTRING", r#"{"department": "Bicycles"}"#, r#""{\"department\":\"Bicycles\"}""#),
    ("TOSTRING", r#""Hello World""#, r#""Hello World""#),
    ("TOSTRING", r#"["a\"b"]"#, r#""[\"a\\\"b\"]""#),
    ("TOSTRING", "undefined", "undefined"),
    ("TOSTRING", "NaN", r#""NaN""#),
    ("TOSTRING", "Infinity", r#""Infinity""#),
    ("TOSTRING", "-Infinity", r#""-Infinity""#),
    ("TOSTRING", "[NaN]", "undefined"),
];

#[test]
fn every_function() {
    tables::check(FUNCTIONS, ROWS);
}

#[test]
fn text_that_is_nested_too_deep_is_undefined() {
    let nested = |depth: usize| Value::from("[".repeat(depth) + &"]".repeat(depth));
    assert!(tables::call(FUNCTIONS, "STRINGTOARRAY", &[nested(100)]).is_defined());
    assert!(!tables::call(FUNCTIONS, "STRINGTOARRAY", &[nested(100_000)]).is_defined());
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(numbers: Vec<i64>, text: String) {
        let mut values: Vec<Value> = numbers.into_iter().map(Value::from).collect();
        values.push(text.into());
        let value = Value::Array(values);
        let written = tables::call(FUNCTIONS, "TOSTRING", std::slice::from_ref(&value));
        prop_assert_eq!(tables::call(FUNCTIONS, "STRINGTOARRAY", &[written]), value);
    }
}
