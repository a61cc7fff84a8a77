//! What is taken and what is not, by table, and against `serde_json`'s own
//! reading of random values.

use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use super::*;

fn compact(text: &str) -> Result<String> {
    parse(text.as_bytes(), &[]).map(ObjectText::into_string)
}

#[test]
fn texts_that_are_taken() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127));
    for (text, expected) in [
        ("{}", "{}"),
        (" { \"b\" : 1 , \"a\" : [ 1 , 2 ] } ", r#"{"b":1,"a":[1,2]}"#),
        (r#"{"a":[]}"#, r#"{"a":[]}"#),
        (r#"{"a":{"b":[[],{},null,true,false,""]}}"#, r#"{"a":{"b":[[],{},null,true,false,""]}}"#),
        (r#"{"a":"\u00e9\n\/\ud83d\ude00"}"#, "{\"a\":\"é\\n/😀\"}"),
        (r#"{"a":9223372036854775807}"#, r#"{"a":9223372036854775807}"#),
        (r#"{"a":-9223372036854775808}"#, r#"{"a":-9223372036854775808}"#),
        (r#"{"a":18446744073709551615}"#, r#"{"a":18446744073709551615}"#),
        (r#"{"a":18446744073709551616}"#, r#"{"a":1.8446744073709552e+19}"#),
        (r#"{"a":1.0,"b":1e3,"c":-2.50,"d":1e300}"#, r#"{"a":1,"b":1000,"c":-2.5,"d":1e+300}"#),
        (r#"{"a":1e-400,"b":[-0,-0.0,-0e5,-1e-400]}"#, r#"{"a":0,"b":[0,0,0,0]}"#),
        (r#"{"a":"-0","-0.0":-0,"a":-0.5}"#, r#"{"a":-0.5,"-0.0":0}"#),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"a":1,"b":2,"\u0061":3}"#, r#"{"a":3,"b":2}"#),
        (
            r#"{"x":{"a":1,"a":{"b":1,"b":2}},"y":[{"c":1,"c":2}]}"#,
            r#"{"x":{"a":{"b":2}},"y":[{"c":2}]}"#,
        ),
        (&deep, &deep),
    ] {
        assert_eq!(compact(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn texts_that_are_refused() {
    let too_deep = format!("{{\"a\":{}{}}}", "[".repeat(128), "]".repeat(128));
    let twice_and_too_deep =
        format!("{{\"b\":1,\"b\":2,\"a\":{}{}}}", "[".repeat(128), "]".repeat(128));
    for (text, reason) in [
        ("", "EOF while parsing a value"),
        ("{", "EOF while parsing an object"),
        ("{}x", "trailing characters"),
        ("{}{}", "trailing characters"),
        ("[]", "invalid type: sequence, expected a JSON object"),
        ("null", "invalid type: null, expected a JSON object"),
        ("\"a\"", "invalid type: string \"a\", expected a JSON object"),
        ("{a:1}", "key must be a string"),
        (r#"{"a":1,}"#, "trailing comma"),
        (r#"{"a":01}"#, "invalid number"),
        (r#"{"a":NaN}"#, "expected value"),
        (r#"{"a":1e400}"#, "number out of range"),
        (r#"{"a":"\ud800"}"#, "unexpected end of hex escape"),
        (r#"{"a":"\udc00"}"#, "lone leading surrogate in hex escape"),
        (r#"{"\ud800":1}"#, "unexpected end of hex escape"),
        ("{\"a\":\"\n\"}", "control character"),
        (&too_deep, "nested deeper than 128 levels"),
        (&twice_and_too_deep, "nested deeper than 128 levels"),
    ] {
        let error = compact(text).unwrap_err();
        let head = "The input content is invalid because it is not valid JSON: ";
        assert!(error.message.starts_with(head), "{text}: {error}");
        assert!(error.message.contains(reason), "{text}: {error}");
    }
    assert!(parse(b"{\"a\":\"\xff\"}", &[]).is_err());
}

#[test]
fn an_item_may_have_control_characters_in_its_strings() {
    for (text, expected) in [
        ("{\"a\":\"x\ty\rz\n\"}", r#"{"a":"x\ty\rz\n"}"#),
        ("{ \"a\u{1}\" :\n\"\u{0}\" }", r#"{"a\u0001":"\u0000"}"#),
        ("{\"a\tb\":1,\"a\\tb\":2}", r#"{"a\tb":2}"#),
        ("{\"_ts\":\"\t\",\"a\":1}", r#"{"a":1}"#),
    ] {
        let taken = take(&Bytes::copy_from_slice(text.as_bytes()), &["_ts"]).unwrap();
        assert_eq!(taken.as_str(), expected);
        assert!(parse(text.as_bytes(), &["_ts"]).is_err(), "elsewhere they are refused: {text:?}");
    }
    for text in ["{\"a\":\"\t\"", "{\"a\":\"\t\",}", "{\"a\":\"\\\t\"}", "{\"a\":\u{b}1}"] {
        assert!(take(&Bytes::copy_from_slice(text.as_bytes()), &[]).is_err(), "{text:?}");
    }
}

#[test]
fn a_hundred_thousand_brackets_are_an_error_like_any_other() {
    for bracket in ["[", "{\"a\":", "[{\"a\":"] {
        let text = format!("{{\"a\":1,\"a\":{}", bracket.repeat(100_000));
        assert!(compact(&text).unwrap_err().message.contains("nested deeper"));
    }
    // A property that is left out is read past, however deep.
    let text = format!("{{\"_etag\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(parse(text.as_bytes(), &["_etag"]).unwrap().as_str(), "{}");
}

#[test]
fn dropped_properties_are_dropped_at_the_top_only() {
    let text = r#"{"_ts":1,"a":{"_ts":2},"\u005frid":"x","b":1,"_ts":{"a":[]}}"#;
    let object = parse(text.as_bytes(), &["_ts", "_rid"]).unwrap();
    assert_eq!(object.as_str(), r#"{"a":{"_ts":2},"b":1}"#);

    let twice = r#"{"a":1,"_ts":1,"a":2,"_ts":2}"#;
    assert_eq!(parse(twice.as_bytes(), &["_ts"]).unwrap().as_str(), r#"{"a":2}"#);
}

#[test]
fn duplicates_are_found_in_wide_objects_too() {
    let wide: Vec<String> = (0..1000).map(|n| format!("\"k{n}\":{n}")).collect();
    let text = format!("{{{}}}", wide.join(","));
    assert_eq!(compact(&text).unwrap(), text);
    for again in [0, 31, 32, 33, 999] {
        let twice = format!("{{{},\"k{again}\":-1}}", wide.join(","));
        let expected = text.replace(&format!("\"k{again}\":{again}"), &format!("\"k{again}\":-1"));
        assert_eq!(compact(&twice).unwrap(), expected, "{again}");
    }
}

#[test]
fn values_are_found_by_name_and_by_path() {
    let text = r#"{"a":{"b":[1,{"c":2}],"d e":"x"},"n":null,"q\"q":5,"s":"{\"b\":1}"}"#;
    let object = parse(text.as_bytes(), &[]).unwrap();
    let get = |name: &str| object.get(name).map(RawValue::get);
    assert_eq!(get("n"), Some("null"));
    assert_eq!(get("q\"q"), Some("5"));
    assert_eq!(get("b"), None);

    for (path, expected) in [
        ("/a/b", Some(r#"[1,{"c":2}]"#)),
        ("/a/\"d e\"", Some("\"x\"")),
        ("/n", Some("null")),
        ("/n/a", None),
        ("/a/b/c", None),
        ("/a/b/0", None),
        ("/s/b", None),
        ("/x", None),
    ] {
        let path = Path::parse(path).unwrap();
        assert_eq!(object.at(&path).map(RawValue::get), expected, "{path}");
        assert_eq!(at(text, &path).map(RawValue::get), expected, "{path}");
    }
}

#[test]
fn numbers_are_written_in_their_short_form() {
    for (number, text) in [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (9_007_199_254_740_991.0, "9007199254740991"),
        (1e300, "1e+300"),
    ] {
        assert_eq!(number_text(number), text);
    }
}

/// Any JSON value, up to four levels.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |n| Number::from_f64(n).map(Value::Number)),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::vec(("[a-c]|.{0,4}", inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Whether two values are the same when `1.0` and `1` are.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((ka, a), (kb, b))| ka == kb && same(a, b))
        }
        _ => a == b,
    }
}

proptest! {
    #[test]
    fn the_compact_text_says_what_serde_json_reads(members in prop::collection::vec(("[a-c]|.{0,4}", value()), 0..6)) {
        let map: Map<String, Value> = members.into_iter().collect();
        let expected = Value::Object(map);
        let text = compact(&serde_json::to_string_pretty(&expected).unwrap()).unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        prop_assert!(same(&read, &expected), "{text}");
        prop_assert_eq!(compact(&text).unwrap(), text);
    }

    /// However a zero is spelled, it is stored without a minus.
    #[test]
    fn no_zero_has_a_minus(zero in "-0(\\.0{1,9})?([eE][+-]?[0-9]{1,3})?", white in "[ \n]?", list in any::<bool>()) {
        let (open, close) = if list { ("[1,", ",-1]") } else { ("", "") };
        let text = format!("{{\"a\":{white}{open}{zero}{close}}}");
        prop_assert_eq!(compact(&text).unwrap(), format!("{{\"a\":{open}0{close}}}"));
    }

    #[test]
    fn duplicate_keys_end_as_serde_json_ends_them(members in prop::collection::vec(("[a-c]", value()), 0..10)) {
        let members: Vec<String> = members
            .iter()
            .map(|(key, value)| format!("\"{key}\": {value}"))
            .collect();
        let text = format!("{{{}}}", members.join(", "));
        let expected: Value = serde_json::from_str(&text).unwrap();
        let read: Value = serde_json::from_str(&compact(&text).unwrap()).unwrap();
        prop_assert!(same(&read, &expected), "{text}");
    }

    #[test]
    fn a_property_is_found_where_serde_json_finds_it(members in prop::collection::vec(("[a-c]|.{0,4}", value()), 1..6), pick in any::<prop::sample::Index>()) {
        let name = pick.get(&members).0.clone();
        let map: Map<String, Value> = members.into_iter().collect();
        let object = parse(Value::Object(map.clone()).to_string().as_bytes(), &[]).unwrap();
        let found: Value = serde_json::from_str(object.get(&name).unwrap().get()).unwrap();
        prop_assert!(same(&found, &map[&name]));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), text in "[\\[\\]{}\",:0-9a-z\\\\eE+. -]{0,64}") {
        let _ = parse(&bytes, &["a"]);
        let _ = parse(format!("{{\"a\":{text}").as_bytes(), &[]);
    }
}
