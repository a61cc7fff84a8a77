use proptest::prelude::*;

use dayfly_model::value::Value;

use super::super::tables::{self, Row};
use super::FUNCTIONS;

const ROWS: &[Row] = &[
    ("SETINTERSECT", "[1, 2, 3, 4], [3, 4, 5, 6]", "[3, 4]"),
    ("SETINTERSECT", "[1, 2, 3, 4], []", "[]"),
    ("SETINTERSECT", "[1, 2, 3, 4], [1, 1, 1, 1]", "[1]"),
    ("SETINTERSECT", r#"[1, 2, 3, 4], ["A", "B"]"#, "[]"),
    ("SETINTERSECT", r#"[1, 2, "A", "B"], ["A", 1]"#, r#"["A", 1]"#),
    ("SETINTERSECT", r#"["Finch", "Shaft", "Rhino"], ["Rhino", "Finch"]"#, r#"["Rhino", "Finch"]"#),
    ("SETINTERSECT", r#"[{"a": 1, "b": 2}], [{"b": 2.0, "a": 1}]"#, r#"[{"b": 2, "a": 1}]"#),
    ("SETINTERSECT", r#"[1], ["1"]"#, "[]"),
    ("SETINTERSECT", "[1], null", "undefined"),
    ("SETINTERSECT", "1, [1]", "undefined"),
    ("SETUNION", "[1, 2, 3, 4], [3, 4, 5, 6]", "[1, 2, 3, 4, 5, 6]"),
    ("SETUNION", "[1, 2, 3, 4], []", "[1, 2, 3, 4]"),
    ("SETUNION", "[1, 2, 3, 4], [1, 1, 1, 1]", "[1, 2, 3, 4]"),
    ("SETUNION", r#"[1, 2, "A", "B"], ["A", 1]"#, r#"[1, 2, "A", "B"]"#),
    ("SETUNION", "[[1, 2], [2, 1]], [[1, 2]]", "[[1, 2], [2, 1]]"),
    ("SETUNION", "[1, 1], [1.0]", "[1]"),
    ("SETUNION", "[1], {}", "undefined"),
    ("SETUNION", "[1], undefined", "undefined"),
    ("SETDIFFERENCE", "[1, 2, 3], [1, 2, 6, 7]", "[3]"),
    ("SETDIFFERENCE", "[1, 2, 6, 7], [1, 2, 3]", "[6, 7]"),
    ("SETDIFFERENCE", "[1, 2, 3, 4], [1, 2, 3, 4, 5, 6]", "[]"),
    ("SETDIFFERENCE", "[], [1, 2, 3]", "[]"),
    ("SETDIFFERENCE", "[1, 2, 3], []", "[1, 2, 3]"),
    ("SETDIFFERENCE", "[1, 1, 1, 1], [2, 3, 4]", "[1]"),
    ("SETDIFFERENCE", "[null, true], [null]", "[true]"),
    ("SETDIFFERENCE", "[1], 1", "undefined"),
    ("SETEQUAL", "[1, 2, 3], [1, 2, 3]", "true"),
    ("SETEQUAL", "[1, 2, 3], [3, 2, 1]", "true"),
    ("SETEQUAL", "[1, 2, 3, 3], [1, 2, 2, 3, 1, 2]", "true"),
    ("SETEQUAL", "[], [1, 2, 3]", "false"),
    ("SETEQUAL", r#"[1, true, "abc"], [true, 1, "abc"]"#, "true"),
    ("SETEQUAL", "[1, 1, 1, 1], [2, 3, 4]", "false"),
    ("SETEQUAL", "[], []", "true"),
    ("SETEQUAL", "null, null", "undefined"),
];

#[test]
fn every_function() {
    tables::check(FUNCTIONS, ROWS);
}

fn values() -> impl Strategy<Value = Vec<Value>> {
    let value = prop_oneof![
        (0_i64..4).prop_map(Value::from),
        (0_i64..4).prop_map(|number| Value::from(number.to_string())),
        Just(Value::Null),
        (0_i64..3).prop_map(|number| Value::Array(vec![number.into()])),
    ];
    prop::collection::vec(value, 0..8)
}

/// The elements that are wanted, each once, found by looking at all pairs.
fn model(values: &[Value], wanted: impl Fn(&Value) -> bool) -> Value {
    let mut kept: Vec<Value> = Vec::new();
    for value in values {
        if wanted(value) && !kept.contains(value) {
            kept.push(value.clone());
        }
    }
    Value::Array(kept)
}

proptest! {
    #[test]
    fn sets_are_those_of_all_pairs(left in values(), right in values()) {
        let arguments = [Value::Array(left.clone()), Value::Array(right.clone())];
        let run = |name| tables::call(FUNCTIONS, name, &arguments);
        let both = [left.clone(), right.clone()].concat();
        prop_assert_eq!(run("SETUNION"), model(&both, |_| true));
        prop_assert_eq!(run("SETINTERSECT"), model(&right, |value| left.contains(value)));
        prop_assert_eq!(run("SETDIFFERENCE"), model(&left, |value| !right.contains(value)));
        let equal = left.iter().all(|value| right.contains(value))
            && right.iter().all(|value| left.contains(value));
        prop_assert_eq!(run("SETEQUAL"), Value::from(equal));
    }
}
