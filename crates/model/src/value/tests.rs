use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;

fn text_of(value: &Value) -> String {
    let mut out = Vec::new();
    value.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn text_is_read_and_written_again() {
    for text in [
        "null",
        "true",
        "-9223372036854775808",
        "9223372036854775807",
        "1.5",
        "1e+300",
        r#""a\"\u0000ü""#,
        r#"[1,[],{"b":{},"a":[null]}]"#,
    ] {
        assert_eq!(text_of(&read(text).unwrap()), text);
    }
    assert_eq!(text_of(&read(" 1.0 ").unwrap()), "1");
    assert_eq!(text_of(&read(r#"{"a":1,"b":2,"a":3}"#).unwrap()), r#"{"a":3,"b":2}"#);
    assert_eq!(text_of(&read("18446744073709551616").unwrap()), "1.8446744073709552e+19");
}

#[test]
fn text_is_nested_as_deep_as_items_are() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(text_of(&read(&nested(128)).unwrap()), nested(128));
    assert!(read(&nested(129)).is_err());
    assert!(read(&"[".repeat(1_000_000)).is_err());
    let quoted = format!("\"{}\\\"{}\"", "[".repeat(200), "{".repeat(200));
    assert_eq!(text_of(&read(&quoted).unwrap()), quoted);
}

#[test]
fn what_is_undefined_is_not_written() {
    let value = Value::Object(vec![
        ("a".to_owned(), Value::Undefined),
        ("b".to_owned(), Value::Array(vec![Value::Undefined, Value::Null])),
    ]);
    assert_eq!(text_of(&value), r#"{"b":[null]}"#);
    assert_eq!(text_of(&Value::Undefined), "");
}

#[test]
fn what_json_cannot_say_is_not_written() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(Value::Array(vec![number.into()]).write(&mut Vec::new()), Err(NotFinite));
    }
}

#[test]
fn equal_values_mean_the_same() {
    for (left, right, equal) in [
        ("1", "1.0", true),
        ("9007199254740993", "9007199254740992.0", false),
        ("0", "-0.0", true),
        (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1.0}"#, true),
        (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false),
        ("[1,2]", "[2,1]", false),
        ("1", r#""1""#, false),
        ("null", "false", false),
    ] {
        let (left, right) = (read(left).unwrap(), read(right).unwrap());
        assert_eq!(left == right, equal, "{left:?} {right:?}");
        assert_eq!(order::key(&left) == order::key(&right), equal, "{left:?} {right:?}");
    }
}

#[test]
fn values_in_their_order() {
    let mut rising = vec![Value::Undefined];
    rising.extend(
        [
            "null",
            "false",
            "true",
            "-1e300",
            "-9223372036854775808",
            "-9007199254740993",
            "-9007199254740992",
            "-1.5",
            "-1",
            "0",
            "5e-324",
            "1",
            "1.5",
            "9007199254740992",
            "9007199254740993",
            "9223372036854775806",
            "9223372036854775807",
            "9223372036854775808",
            "1e300",
            r#""""#,
            r#""\u0000""#,
            r#""\u0000a""#,
            r#""a""#,
            r#""a\u0000""#,
            r#""aa""#,
            r#""b""#,
            "[]",
            "[null]",
            "[null,1]",
            "[1]",
            "{}",
            r#"{"a":1}"#,
            r#"{"a":1,"b":1}"#,
            r#"{"a":2}"#,
            r#"{"b":0}"#,
        ]
        .map(|text| read(text).unwrap()),
    );
    for pair in rising.windows(2) {
        let [left, right] = pair else { unreachable!() };
        assert!(order::key(left) < order::key(right), "{left:?} {right:?}");
        if left.kind() == right.kind() && left.kind() < Type::Array {
            assert_eq!(left.compare(right), Some(Ordering::Less), "{left:?} {right:?}");
        }
        let (low, high) = order::bounds(left.kind());
        assert!(order::key(left) >= vec![low] && order::key(left) < vec![high], "{left:?}");
    }
}

#[test]
fn strings_by_their_start() {
    let mut start = Vec::new();
    order::write_text_start("a\0b", &mut start);
    assert!(order::key(&"a\0b".into()).starts_with(&start));
    assert!(order::key(&"a\0bc".into()).starts_with(&start));
    assert!(!order::key(&"a\0c".into()).starts_with(&start));
}

#[test]
fn doubles_that_are_integers() {
    for (double, integer) in [
        (2.0, Some(2)),
        (2.5, None),
        (-9_223_372_036_854_775_808.0, Some(i64::MIN)),
        (9_223_372_036_854_775_808.0, None),
        (f64::NAN, None),
        (f64::INFINITY, None),
    ] {
        assert_eq!(Value::from(double).as_integer(), integer);
    }
}

fn numbers() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::Integer),
        (-3i64..3).prop_map(|near| Number::Integer((1 << 53) + near)),
        any::<f64>().prop_filter("numbers", |n| !n.is_nan()).prop_map(Number::Double),
        any::<i64>().prop_map(|n| Number::Double(Number::Integer(n).double())),
    ]
}

proptest! {
    #[test]
    fn numbers_and_their_bytes_have_the_same_order(left in numbers(), right in numbers()) {
        let bytes = |number| order::key(&Value::Number(number));
        prop_assert_eq!(left.compare(right), Some(bytes(left).cmp(&bytes(right))));
    }

    #[test]
    fn strings_and_their_bytes_have_the_same_order(left in "[\\x00-\\x02a]*", right in "[\\x00-\\x02a]*") {
        let (left, right) = (Value::from(left), Value::from(right));
        prop_assert_eq!(left.compare(&right), Some(order::key(&left).cmp(&order::key(&right))));
    }
}
