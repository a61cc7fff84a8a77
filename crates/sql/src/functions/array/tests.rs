use proptest::prelude::*;

use dayfly_model::value::Value;

use super::super::arguments::SIZE_MAX;
use super::super::tables::{self, Row};
use super::FUNCTIONS;

const ROWS: &[Row] = &[
    ("ARRAY_CONCAT", r#"["a", "b"], ["c"]"#, r#"["a", "b", "c"]"#),
    ("ARRAY_CONCAT", r#"["a"], ["b"], ["c"]"#, r#"["a", "b", "c"]"#),
    ("ARRAY_CONCAT", "[], []", "[]"),
    ("ARRAY_CONCAT", "[1], [[2]]", "[1, [2]]"),
    ("ARRAY_CONCAT", r#""a", ["b"], ["c"]"#, "undefined"),
    ("ARRAY_CONCAT", r#"["a"], ["b"], null"#, "undefined"),
    ("ARRAY_CONCAT", r#"undefined, ["b"]"#, "undefined"),
    ("ARRAY_CONTAINS", r#"["coats", "jackets"], "coats""#, "true"),
    ("ARRAY_CONTAINS", r#"["coats", "jackets"], "hoodies""#, "false"),
    ("_TRY_ARRAY_CONTAINS", r#"["coats", "jackets"], "coats""#, "true"),
    ("_TRY_ARRAY_CONTAINS", r#"["coats", "jackets"], "hoodies""#, "false"),
    ("_TRY_ARRAY_CONTAINS", r#"[{"c": "s", "d": 1}], {"c": "s"}, true"#, "true"),
    ("_TRY_ARRAY_CONTAINS", r#""coats", "coats""#, "undefined"),
    ("ARRAY_CONTAINS", r#"[{"c": "s", "d": 1}], {"d": 1.0, "c": "s"}"#, "true"),
    ("ARRAY_CONTAINS", r#"[{"c": "s", "d": 1}], {"c": "s"}"#, "false"),
    ("ARRAY_CONTAINS", r#"[{"c": "s", "d": 1}], {"c": "s"}, false"#, "false"),
    ("ARRAY_CONTAINS", r#"[{"c": "s", "d": 1}], {"c": "s"}, true"#, "true"),
    ("ARRAY_CONTAINS", r#"[{"c": "s", "d": 1}], {"c": "s"}, undefined"#, "false"),
    ("ARRAY_CONTAINS", r#"[{"c": "s", "d": 1}], {"c": "x", "d": 1}, true"#, "false"),
    ("ARRAY_CONTAINS", r#"[{"c": {"e": 1, "f": 2}}], {"c": {"e": 1}}, true"#, "false"),
    ("ARRAY_CONTAINS", r#"[1, "c"], {"c": 1}, true"#, "false"),
    ("ARRAY_CONTAINS", "[1, 2], 2, true", "true"),
    ("ARRAY_CONTAINS", r#"[{"c": 1}], {}, true"#, "true"),
    ("ARRAY_CONTAINS", r#"[{"c": 1}], {}"#, "false"),
    ("ARRAY_CONTAINS", "[[1, 2]], [1], true", "false"),
    ("ARRAY_CONTAINS", "[[1, 2]], [1, 2]", "true"),
    ("ARRAY_CONTAINS", "[[1, 2]], [2, 1]", "false"),
    ("ARRAY_CONTAINS", "[null], null", "true"),
    ("ARRAY_CONTAINS", "[4, 4], 2", "false"),
    ("ARRAY_CONTAINS", r#"[1], "1""#, "false"),
    ("ARRAY_CONTAINS", "[], 1", "false"),
    ("ARRAY_CONTAINS", "[1], undefined", "undefined"),
    ("ARRAY_CONTAINS", r#""abc", "a""#, "undefined"),
    ("ARRAY_CONTAINS", "undefined, 1", "undefined"),
    ("ARRAY_CONTAINS", "[1], 1, 1", "undefined"),
    ("ARRAY_CONTAINS_ALL", r#"[1, true, "3", [1, 2, 3]], 1, true, "3", [1, 2, 3]"#, "true"),
    ("ARRAY_CONTAINS_ALL", "[1, 2, 3, 4], 2, 3, 4, 5", "false"),
    ("ARRAY_CONTAINS_ALL", "[1, 2, 3, 4], 1, undefined", "undefined"),
    ("ARRAY_CONTAINS_ALL", "[1, 2, 3, 4], 5, undefined", "false"),
    ("ARRAY_CONTAINS_ALL", "[], 1, 2", "false"),
    ("ARRAY_CONTAINS_ALL", "1, 1", "undefined"),
    ("ARRAY_CONTAINS_ALL", "undefined, 1", "undefined"),
    ("ARRAY_CONTAINS_ANY", r#"[1, true, "3", [1, 2, 3]], 1, true, "3", [1, 2, 3]"#, "true"),
    ("ARRAY_CONTAINS_ANY", "[1, 2, 3, 4], 2, 3, 4, 5", "true"),
    ("ARRAY_CONTAINS_ANY", "[1, 2, 3, 4], 1, undefined", "true"),
    ("ARRAY_CONTAINS_ANY", "[1, 2, 3, 4], 5, 6, 7", "false"),
    ("ARRAY_CONTAINS_ANY", "[1, 2, 3, 4], 5, undefined", "undefined"),
    ("ARRAY_CONTAINS_ANY", "[], 1, 2, 3", "false"),
    ("ARRAY_CONTAINS_ANY", "null, 1", "undefined"),
    ("ARRAY_LENGTH", "[70, 86, 92]", "3"),
    ("ARRAY_LENGTH", "[]", "0"),
    ("ARRAY_LENGTH", "null", "undefined"),
    ("ARRAY_LENGTH", r#""abc""#, "undefined"),
    ("ARRAY_SLICE", "[70, 86, 92], 0", "[70, 86, 92]"),
    ("ARRAY_SLICE", "[70, 86, 92], 1", "[86, 92]"),
    ("ARRAY_SLICE", "[70, 86, 92], -1", "[92]"),
    ("ARRAY_SLICE", "[70, 86, 92], -2", "[86, 92]"),
    ("ARRAY_SLICE", "[70, 86, 92], -2, 1", "[86]"),
    ("ARRAY_SLICE", "[70, 86, 92], -20, 1", "[70]"),
    ("ARRAY_SLICE", "[70, 86, 92], 0, 2", "[70, 86]"),
    ("ARRAY_SLICE", "[70, 86, 92], 0, 12", "[70, 86, 92]"),
    ("ARRAY_SLICE", "[70, 86, 92], 2, 5", "[92]"),
    ("ARRAY_SLICE", "[70, 86, 92], 3", "[]"),
    ("ARRAY_SLICE", "[70, 86, 92], 1, 0", "[]"),
    ("ARRAY_SLICE", "[70, 86, 92], 1, -100", "[]"),
    ("ARRAY_SLICE", "[70, 86, 92], -9223372036854775808", "[70, 86, 92]"),
    ("ARRAY_SLICE", "[70, 86, 92], 1.0, 1.0", "[86]"),
    ("ARRAY_SLICE", "[70, 86, 92], 1.5", "undefined"),
    ("ARRAY_SLICE", "[70, 86, 92], 1, 1.5", "undefined"),
    ("ARRAY_SLICE", "[70, 86, 92], null", "undefined"),
    ("ARRAY_SLICE", "{}, 1", "undefined"),
    ("OBJECTTOARRAY", r#"{"a": "1", "b": "6"}"#, r#"[{"k": "a", "v": "1"}, {"k": "b", "v": "6"}]"#),
    ("OBJECTTOARRAY", r#"{"a": "1"}, "name""#, r#"[{"name": "a", "v": "1"}]"#),
    ("OBJECTTOARRAY", r#"{"a": "1"}, "key", "value""#, r#"[{"key": "a", "value": "1"}]"#),
    ("OBJECTTOARRAY", r#"{"a": "1"}, "x", "x""#, r#"[{"x": "1"}]"#),
    ("OBJECTTOARRAY", "{}", "[]"),
    ("OBJECTTOARRAY", r#"{"a": "1"}, 1"#, "undefined"),
    ("OBJECTTOARRAY", r#"{"a": "1"}, "k", null"#, "undefined"),
    ("OBJECTTOARRAY", "1", "undefined"),
    ("OBJECTTOARRAY", "[1]", "undefined"),
];

#[test]
fn every_function() {
    tables::check(FUNCTIONS, ROWS);
}

#[test]
fn what_would_be_larger_than_an_item_is_undefined() {
    let half = Value::Array(vec!["x".repeat(SIZE_MAX / 2 - 8).into()]);
    let call = |name, arguments: &[Value]| tables::call(FUNCTIONS, name, arguments).is_defined();
    assert!(call("ARRAY_CONCAT", &[half.clone(), half.clone()]));
    assert!(!call("ARRAY_CONCAT", &[half.clone(), half.clone(), half]));
    let members = (0..100).map(|number| (number.to_string(), Value::Null)).collect();
    let object = Value::Object(members);
    assert!(call("OBJECTTOARRAY", &[object.clone(), "k".repeat(SIZE_MAX / 200).into()]));
    assert!(!call("OBJECTTOARRAY", &[object, "k".repeat(SIZE_MAX / 50).into()]));
}

proptest! {
    #[test]
    fn a_slice_is_that_of_a_list(
        values in prop::collection::vec(0_i64..9, 0..6),
        start in -8_i64..8,
        count in -2_i64..8,
    ) {
        let length = i64::try_from(values.len()).unwrap();
        let from = if start < 0 { (start + length).max(0) } else { start };
        let expected: Vec<Value> = (from..from + count.max(0))
            .filter_map(|place| values.get(usize::try_from(place).unwrap()))
            .map(|value| Value::from(*value))
            .collect();
        let array = Value::Array(values.into_iter().map(Value::from).collect());
        let slice = tables::call(FUNCTIONS, "ARRAY_SLICE", &[array, start.into(), count.into()]);
        prop_assert_eq!(slice, Value::Array(expected));
    }
}
