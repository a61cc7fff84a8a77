use std::cmp::Ordering;

use proptest::prelude::*;

use dayfly_model::value::Value;

use super::super::tables::{self, Row};
use super::FUNCTIONS;

const ROWS: &[Row] = &[
    ("ARRAY_AVG", "[1, 2, 3, 4]", "2.5"),
    ("ARRAY_AVG", "[1.0, 2.0, 3.3, 4.7]", "2.75"),
    ("ARRAY_AVG", "[1, -2.7, 3, -4, undefined]", "-0.675"),
    ("ARRAY_AVG", r#"["abc", "ABC"]"#, "undefined"),
    ("ARRAY_AVG", r#"[12, "abc", true, null, undefined]"#, "undefined"),
    ("ARRAY_AVG", "[]", "undefined"),
    ("ARRAY_AVG", "[undefined]", "undefined"),
    ("ARRAY_AVG", "1", "undefined"),
    ("ARRAY_SUM", "[1, 2, 3, 4]", "10"),
    ("ARRAY_SUM", "[1, 2, 3, 4, undefined]", "10"),
    ("ARRAY_SUM", r#"["abc", "ABC"]"#, "undefined"),
    ("ARRAY_SUM", r#"[12, "abc", true, null, undefined]"#, "undefined"),
    ("ARRAY_SUM", "[]", "0"),
    ("ARRAY_SUM", "[Infinity, 1]", "Infinity"),
    ("ARRAY_SUM", "null", "undefined"),
    ("ARRAY_MEDIAN", "[1, 2, 3, 4]", "2.5"),
    ("ARRAY_MEDIAN", "[1.0, 2.0, 3.3, 4.7, 7.8]", "3.3"),
    ("ARRAY_MEDIAN", "[9, 1, 5]", "5"),
    ("ARRAY_MEDIAN", "[1, -2.7, 3, -4, undefined]", "-0.8500000000000001"),
    ("ARRAY_MEDIAN", r#"["abc", "ABC"]"#, "undefined"),
    ("ARRAY_MEDIAN", r#"[12, "abc", true, null, undefined]"#, "undefined"),
    ("ARRAY_MEDIAN", "[7]", "7"),
    ("ARRAY_MEDIAN", "[]", "undefined"),
    ("ARRAY_MEDIAN", "{}", "undefined"),
    ("ARRAY_MAX", "[1, 2, 3, 4]", "4"),
    ("ARRAY_MAX", r#"["abc", "ABC", "aBc", "AbC"]"#, r#""abc""#),
    ("ARRAY_MAX", "[true, false]", "true"),
    ("ARRAY_MAX", "[null, null]", "null"),
    ("ARRAY_MAX", r#"[12, "abc", true, false, null, undefined]"#, r#""abc""#),
    ("ARRAY_MAX", "[9007199254740992, 9007199254740993]", "9007199254740993"),
    ("ARRAY_MAX", "[1, [2]]", "undefined"),
    ("ARRAY_MAX", "[{}]", "undefined"),
    ("ARRAY_MAX", "[]", "undefined"),
    ("ARRAY_MAX", "undefined", "undefined"),
    ("ARRAY_MIN", "[4, 2, 1, 3]", "1"),
    ("ARRAY_MIN", r#"["abc", "ABC", "aBc", "AbC"]"#, r#""ABC""#),
    ("ARRAY_MIN", "[true, false]", "false"),
    ("ARRAY_MIN", "[null, null]", "null"),
    ("ARRAY_MIN", r#"[12, "abc", true, false, null, undefined]"#, "null"),
    ("ARRAY_MIN", r#"[12, "abc", true]"#, "true"),
    ("ARRAY_MIN", "[1, {}]", "undefined"),
    ("ARRAY_MIN", "[]", "undefined"),
];

#[test]
fn every_function() {
    tables::check(FUNCTIONS, ROWS);
}

proptest! {
    #[test]
    fn as_many_lie_below_the_median_as_above(numbers in prop::collection::vec(-9_i64..9, 1..9)) {
        let array = Value::Array(numbers.iter().copied().map(Value::from).collect());
        let run = |name| tables::call(FUNCTIONS, name, std::slice::from_ref(&array));
        let median = run("ARRAY_MEDIAN");
        let lie = |side| {
            let compared = numbers.iter().map(|number| Value::from(*number).compare(&median));
            compared.filter(|compared| *compared == Some(side)).count()
        };
        prop_assert!(lie(Ordering::Less) <= numbers.len() / 2);
        prop_assert!(lie(Ordering::Greater) <= numbers.len() / 2);
        prop_assert_eq!(run("ARRAY_MAX"), numbers.iter().max().copied().into());
        prop_assert_eq!(run("ARRAY_MIN"), numbers.iter().min().copied().into());
        prop_assert_eq!(run("ARRAY_SUM"), numbers.iter().sum::<i64>().into());
    }
}
