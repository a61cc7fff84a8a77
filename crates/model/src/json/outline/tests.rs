//! A text with an outline is the text that the pass of `compact` makes of it,
//! byte for byte; every text that the pass makes has one.

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::*;
use crate::json::{Lookup as _, Path, parse, property};

/// Names of ours in what is sent, so that some texts have them.
const DROP: &[&str] = &["_ts", "b"];

fn is_compact(text: &str) -> bool {
    Outline::of(text.as_bytes(), &[]).is_some()
}

#[test]
fn compact_texts_are_known() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127));
    let wide: Vec<String> = (0..100).map(|n| format!("\"k{n}\":{n}")).collect();
    let wide = format!("{{{}}}", wide.join(","));
    let long = format!("{{\"a\":\"{}ü\"}}", "x".repeat(1000));
    for text in [
        "{}",
        r#"{"":""}"#,
        r#"{"b":1,"a":[1,2,{}],"c":{"b":[[],null,true,false,""]}}"#,
        r#"{"a":0,"b":-1,"c":999999999999999999,"d":-999999999999999999}"#,
        r#"{"a":9223372036854775807,"b":-9223372036854775808,"c":18446744073709551615}"#,
        r#"{"a":1.5,"b":-0.5,"c":1e+300,"d":1.8446744073709552e+19}"#,
        r#"{"a":"\"\\\b\f\n\r\t","b":"\u0000\u0007\u000b\u000e\u001f"}"#,
        "{\"a\":\"é😀\u{7f}\"}",
        r#"{"a":{"a":{"a":1},"b":1},"b":[{"a":1},{"a":1}]}"#,
        &deep,
        &wide,
        &long,
    ] {
        assert!(is_compact(text), "{text}");
        assert_eq!(compact::object(text, &[]).as_deref().ok(), Some(text));
    }
}

#[test]
fn other_texts_are_left_to_the_pass() {
    let too_deep = format!("{{\"a\":{}{}}}", "[".repeat(128), "]".repeat(128));
    let wide: Vec<String> = (0..100).map(|n| format!("\"k{n}\":{n}")).collect();
    let twice = |n: usize| format!("{{{},\"k{n}\":0}}", wide.join(","));
    for text in [
        "",
        "{",
        "[]",
        "null",
        " {}",
        "{} ",
        "{}{}",
        r#"{"a": 1}"#,
        r#"{"a":1,}"#,
        "{,}",
        r#"{"a"}"#,
        r#"{"a":[1,]}"#,
        r#"{"a":nul}"#,
        r#"{"a":-}"#,
        r#"{"a":-0}"#,
        r#"{"a":-0.0}"#,
        r#"{"a":01}"#,
        r#"{"a":1.0}"#,
        r#"{"a":1e300}"#,
        r#"{"a":1E+300}"#,
        r#"{"a":1e400}"#,
        r#"{"a":18446744073709551616}"#,
        r#"{"a":"\/"}"#,
        r#"{"a":"\u0041"}"#,
        r#"{"a":"\u000a"}"#,
        r#"{"a":"\u001F"}"#,
        r#"{"a":"\ud800"}"#,
        r#"{"a":"\"#,
        r#"{"a":"#,
        "{\"a\":\"\n\"}",
        r#"{"a":1,"a":2}"#,
        r#"{"x":[{"a":1,"a":2}]}"#,
        &too_deep,
        &twice(0),
        &twice(31),
        &twice(32),
        &twice(99),
    ] {
        assert!(!is_compact(text), "{text}");
    }
    assert_eq!(Outline::of(b"{\"a\":\"\xff\"}", &[]), None);
}

#[test]
fn a_property_to_leave_out_is_cut_with_one_comma() {
    for (text, kept) in [
        (r#"{"_ts":1}"#, "{}"),
        (r#"{"_ts":1,"b":2}"#, "{}"),
        (r#"{"a":1,"_ts":2}"#, r#"{"a":1}"#),
        (r#"{"_ts":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"a":1,"_ts":{"_ts":[]},"c":3}"#, r#"{"a":1,"c":3}"#),
        (r#"{"a":1,"b":2,"_ts":3}"#, r#"{"a":1}"#),
        (r#"{"b":1,"a":{"_ts":1},"_ts":3,"c":4}"#, r#"{"a":{"_ts":1},"c":4}"#),
    ] {
        let outline = Outline::of(text.as_bytes(), DROP).unwrap();
        assert_eq!(outline.cut(text.as_bytes()).as_deref(), Some(kept.as_bytes()), "{text}");
    }
    let whole = br#"{"a":{"_ts":1}}"#;
    assert_eq!(Outline::of(whole, DROP).unwrap().cut(whole), None);
    assert_eq!(Outline::of(br#"{"_ts":1,"_ts":2}"#, DROP), None);
}

#[test]
fn a_special_byte_is_seen_wherever_it_stands_in_a_block() {
    for length in [0, 1, 63, 64, 65, 127, 128, 129] {
        for place in 0..=length {
            for special in ["\u{1f}", "\\q"] {
                let (before, after) = ("x".repeat(place), "x".repeat(length - place));
                assert!(!is_compact(&format!("{{\"a\":\"{before}{special}{after}\"}}")));
            }
        }
        assert!(is_compact(&format!("{{\"a\":\"{}\",\"b\":1}}", "x".repeat(length))));
    }
}

#[test]
fn properties_are_found_without_the_text_as_long_as_they_are_noted() {
    let of = |count: usize| {
        let members: Vec<String> = (0..count).map(|n| format!("\"k{n}\":{n}")).collect();
        format!("{{{}}}", members.join(","))
    };
    let find = |text: &str, name: &str| {
        Outline::of(text.as_bytes(), &[]).unwrap().find(text.as_bytes(), name)
    };
    assert_eq!(find(&of(NOTED_MAX), "k0"), Noted::At(6..7));
    assert_eq!(find(&of(NOTED_MAX), "x"), Noted::Absent);
    assert_eq!(find(&of(NOTED_MAX + 1), "k0"), Noted::At(6..7));
    assert_eq!(find(&of(NOTED_MAX + 1), "x"), Noted::Unknown);
    assert_eq!(find(&of(NOTED_MAX + 1), &format!("k{NOTED_MAX}")), Noted::Unknown);
    assert_eq!(find(r#"{"a\"":1}"#, "a\""), Noted::Unknown);
    assert_eq!(find("{}", "a"), Noted::Absent);
}

/// Any JSON value, up to four levels, of few keys and of many bytes that need
/// care.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-20_i64..20).prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |n| Number::from_f64(n).map(Value::Number)),
        "([a-z\"\\\\\u{0}-\u{1f}\u{7f}é😀/]|x{60,70}){0,6}".prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            object(inner),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let key = "[a-c]|_ts|[a-c\"\\\\\u{0}-\u{1f}é]{0,3}";
    prop::collection::vec((key, inner), 0..8)
        .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()))
}

/// A text that is JSON, compact or not, but for a few changes.
fn spoiled() -> impl Strategy<Value = String> {
    let text = (object(value()), any::<bool>()).prop_map(|(value, pretty)| {
        if pretty {
            return serde_json::to_string_pretty(&value).unwrap();
        }
        parse(value.to_string().as_bytes(), &[]).unwrap().into_string()
    });
    let piece = r#"[{}\[\],:"\\0-9a-cnu+.eE \n-]|\\u00[01][0-9a-fA-F]|"a":1,|1\.0|null"#;
    let change = (any::<prop::sample::Index>(), 0..3_usize, piece);
    (text, prop::collection::vec(change, 0..3)).prop_map(|(text, changes)| {
        let mut chars: Vec<String> = text.chars().map(String::from).collect();
        for (at, gone, piece) in changes {
            let at = at.index(chars.len() + 1);
            let end = (at + gone).min(chars.len());
            chars.splice(at..end, [piece]);
        }
        chars.concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_read_is_what_the_pass_makes(text in spoiled()) {
        for drop in [&[], DROP] {
            let made = compact::object(&text, drop).map_err(|error| error.to_string());
            if let Some(outline) = Outline::of(text.as_bytes(), drop) {
                let kept = outline.cut(text.as_bytes()).unwrap_or_else(|| text.clone().into());
                prop_assert_eq!(made.as_deref().map(str::as_bytes), Ok(kept.as_slice()));
            }
            match (parse(text.as_bytes(), drop), made) {
                (Ok(read), Ok(made)) => prop_assert_eq!(read.as_str(), made),
                (Err(error), Err(reason)) => prop_assert!(error.message.ends_with(&reason)),
                (read, made) => prop_assert!(false, "{:?}, but {:?}", read, made),
            }
        }
    }

    #[test]
    fn what_the_pass_makes_has_an_outline_that_finds_what_is_there(value in object(value()), name in "[a-d]|_ts|[a-c\"\\\\]{0,2}") {
        let text = compact::object(&value.to_string(), &[]).unwrap();
        prop_assert!(is_compact(&text), "{}", text);
        let object = parse(text.as_bytes(), &[]).unwrap();
        prop_assert_eq!(
            object.get(&name).map(RawValue::get),
            property(&text, &name).map(RawValue::get)
        );
        let path = Path::parse("/a/b").unwrap();
        prop_assert_eq!(object.at(&path).map(RawValue::get), text.at(&path).map(RawValue::get));
    }
}
