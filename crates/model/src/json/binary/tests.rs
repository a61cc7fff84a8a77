//! Bodies by table, and random values that have to be the same item in binary
//! as in text.

mod encoder;

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

use super::*;
use crate::json::parse;

/// The bytes written in `hex`, after the first byte of a binary body.
fn body(hex: &str) -> Vec<u8> {
    let bytes = hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap());
    [0x80].into_iter().chain(bytes).collect()
}

fn text(bytes: &[u8]) -> Result<String> {
    to_text(bytes).map(|text| String::from_utf8(text).unwrap())
}

const GUID: &str = "10 32 54 76 98 BA DC FE EF CD AB 89 67 45 23 01";

#[test]
fn scalars() {
    for (hex, expected) in [
        ("D0", "null"),
        ("D1", "false"),
        ("D2", "true"),
        ("00", "0"),
        ("1F", "31"),
        ("C7 FF FF FF FF FF FF FF FF", "18446744073709551615"),
        ("C8 FF", "255"),
        ("C9 00 80", "-32768"),
        ("CA FF FF FF 7F", "2147483647"),
        ("CB 00 00 00 00 00 00 00 80", "-9223372036854775808"),
        ("CC 00 00 00 00 00 00 04 C0", "-2.5"),
        ("CC 00 00 00 00 00 00 08 40", "3"),
        ("CC 00 00 00 00 00 00 00 80", "0"),
        ("CC 9C 75 00 88 3C E4 37 7E", "1e+300"),
        ("CD 00 00 00 3F", "0.5"),
        ("CD CD CC CC 3D", "0.10000000149011612"),
        ("CE 9A 99 99 99 99 99 B9 3F", "0.1"),
        ("D7 80", "128"),
        ("D8 80", "-128"),
        ("D9 FE FF", "-2"),
        ("DA FE FF FF FF", "-2"),
        ("DB FE FF FF FF FF FF FF FF", "-2"),
        ("DC FE FF FF FF", "4294967294"),
    ] {
        assert_eq!(text(&body(hex)).as_deref(), Ok(expected), "{hex}");
    }
}

#[test]
fn strings_of_every_form() {
    for (hex, expected) in [
        ("20", r#""$s""#),
        ("2C", r#""id""#),
        ("3F", r#""_id""#),
        ("80", r#""""#),
        ("82 C3 A9", r#""é""#),
        ("83 22 5C 0A", r#""\"\\\n""#),
        ("C0 01 61", r#""a""#),
        ("C1 01 00 61", r#""a""#),
        ("C2 01 00 00 00 61", r#""a""#),
        ("71 00 00", r#""""#),
        ("71 01 00 FB EF FF", r#""++//""#),
        ("73 01 00 FB EF FF", r#""--__""#),
        ("71 01 01 FB E0", r#""++A=""#),
        ("71 01 02 FB", r#""+w==""#),
        ("71 01 FE FB E0", r#""++A""#),
        ("71 01 FD FB", r#""+w""#),
        ("71 01 FF FB EF FF", r#""++//""#),
        ("72 01 00 02 FB", r#""+w==""#),
        ("74 01 00 FD FB", r#""-w""#),
        (&format!("75 {GUID}"), r#""01234567-89ab-cdef-fedc-ba9876543210""#),
        (&format!("76 {GUID}"), r#""01234567-89AB-CDEF-FEDC-BA9876543210""#),
        (&format!("77 {GUID}"), r#""\"01234567-89ab-cdef-fedc-ba9876543210\"""#),
        (&format!("D3 {GUID}"), r#""76543210-ba98-fedc-efcd-ab8967452301""#),
        ("78 03 AB 0C", r#""bac""#),
        ("79 02 AB", r#""BA""#),
        ("78 00", r#""""#),
        ("7A 04 13 53", r#""2024""#),
        ("7A 06 B0 DC FE", r#"" :-.TZ""#),
        ("7B 03 61 10 02", r#""abc""#),
        ("7C 03 61 20 08", r#""abc""#),
        ("7D 02 40 7F 00", "\"\u{7f}A\""),
        ("7E 02 C8 34", r#""Hi""#),
        ("7F 02 00 C8 34", r#""Hi""#),
        // What is left over in the last byte does not matter.
        ("7E 01 E1", r#""a""#),
        ("7C 03 61 20 88", r#""abc""#),
        ("E2 04 81 61 C3 03", r#"["a","a"]"#),
        ("E2 05 81 61 C4 03 00", r#"["a","a"]"#),
        ("E2 06 81 61 C5 03 00 00", r#"["a","a"]"#),
        ("E2 07 81 61 C6 03 00 00 00", r#"["a","a"]"#),
        ("EA 07 81 61 2C C3 05 C3 03", r#"{"a":"id","id":"a"}"#),
    ] {
        assert_eq!(text(&body(hex)).as_deref(), Ok(expected), "{hex}");
    }
}

#[test]
fn arrays_and_objects() {
    for (hex, expected) in [
        ("E0", "[]"),
        ("E1 E1 00", "[[0]]"),
        ("E2 00", "[]"),
        ("E2 02 00 01", "[0,1]"),
        ("E3 02 00 00 01", "[0,1]"),
        ("E4 02 00 00 00 00 01", "[0,1]"),
        ("E5 02 02 00 01", "[0,1]"),
        ("E6 02 00 02 00 00 01", "[0,1]"),
        ("E7 02 00 00 00 02 00 00 00 00 01", "[0,1]"),
        ("E8", "{}"),
        ("E9 2C 05", r#"{"id":5}"#),
        ("EA 00", "{}"),
        ("EA 05 2C 05 81 61 E0", r#"{"id":5,"a":[]}"#),
        ("EB 02 00 2C 05", r#"{"id":5}"#),
        ("EC 02 00 00 00 2C 05", r#"{"id":5}"#),
        ("ED 04 02 2C 05 2C 06", r#"{"id":5,"id":6}"#),
        ("EE 02 00 01 00 2C 05", r#"{"id":5}"#),
        ("EF 02 00 00 00 01 00 00 00 2C 05", r#"{"id":5}"#),
        ("F0 D7 00", "[]"),
        ("F0 D7 02 20 FF", "[32,255]"),
        ("F0 D8 01 FF", "[-1]"),
        ("F1 D9 02 00 FF FF 01 00", "[-1,1]"),
        ("F0 DA 01 FF FF FF FF", "[-1]"),
        ("F0 DB 01 FF FF FF FF FF FF FF FF", "[-1]"),
        ("F0 DC 01 FF FF FF FF", "[4294967295]"),
        ("F0 CD 01 00 00 00 3F", "[0.5]"),
        ("F0 CE 01 00 00 00 00 00 00 E0 3F", "[0.5]"),
        ("F2 F0 D7 02 03 01 02 03 04 05 06", "[[1,2],[3,4],[5,6]]"),
        ("F3 F1 D7 03 00 02 00 01 02 03 04 05 06", "[[1,2,3],[4,5,6]]"),
        ("F2 F0 D7 00 02", "[[],[]]"),
        ("F2 F0 D7 02 00", "[]"),
    ] {
        assert_eq!(text(&body(hex)).as_deref(), Ok(expected), "{hex}");
    }
}

#[test]
fn bodies_that_are_refused() {
    let short = "a value is longer than the bytes that are left for it";
    let reference = "a reference does not lead to an earlier string";
    let infinite = "JSON has no number that is infinite or not a number";
    for (hex, reason) in [
        ("", short),
        ("00 00", "there are bytes after the value, before byte 2"),
        ("CC 00 00 00 00 00 00 F0 7F", infinite),
        ("CC 00 00 00 00 00 00 F8 7F", infinite),
        ("CD 00 00 80 FF", infinite),
        ("F0 CD 01 00 00 C0 7F", infinite),
        ("CF 00 3C", "0xCF does not begin a value"),
        ("F0 CF 01 00 3C", "0xCF does not begin a value"),
        ("F0 C8 01 01", "0xC8 does not begin a value"),
        ("F0 81 01 61", "0x81 does not begin a value"),
        ("F2 F1 D7 01 01 01", "0xF1 does not begin a value"),
        ("F3 F0 D7 01 01 01", "0xF0 does not begin a value"),
        ("D4", "0xD4 does not begin a value"),
        ("68", "0x68 does not begin a value"),
        ("70", "0x70 does not begin a value"),
        ("F4", "0xF4 does not begin a value"),
        ("FF", "0xFF does not begin a value"),
        ("DD 01 61", "JSON has no value that is raw bytes"),
        ("DE 01 00 61", "JSON has no value that is raw bytes"),
        ("DF 01 00 00 00 61", "JSON has no value that is raw bytes"),
        ("40", "in a dictionary of the client"),
        ("67 00", "in a dictionary of the client"),
        ("E9 40 00", "in a dictionary of the client"),
        ("E9 00 00", "the name of a property is not a string"),
        ("E9 E0 00", "the name of a property is not a string"),
        ("EA 01 2C 00", short),
        ("E2 01 81 61", short),
        ("E2 02 E2 02 00 00", short),
        ("E4 FF FF FF FF 00", short),
        ("C2 FF FF FF FF 61", short),
        ("E5 02 01 00 00", "2 members were found instead of 1"),
        ("ED 02 02 2C 00", "1 members were found instead of 2"),
        ("81 FF", "a string is not UTF-8"),
        ("83 ED A0 80", "a string is not UTF-8"),
        ("71 01 03 61", "base64 ends with more than two '='"),
        ("71 00 01", "base64 ends before it begins"),
        ("78 01 10", "has half a byte too many"),
        ("7B 01 7F 01", "has a character that is not ASCII"),
        ("7B 01 FF 0F", "has a character that is not ASCII"),
        // A reference to the first byte, to itself, to a later string, to
        // another reference, to a number, past the end, to a string that goes
        // on past the reference.
        ("C3 00", reference),
        ("C3 01", reference),
        ("E2 04 C3 05 81 61", reference),
        ("E2 06 81 61 C3 03 C3 05", reference),
        ("E2 03 00 C3 03", reference),
        ("C6 FF FF FF FF", reference),
        ("E2 04 C8 83 C3 04", short),
    ] {
        let error = text(&body(hex)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadRequest, "{hex}");
        assert!(error.message.starts_with("The input content is invalid because "), "{error}");
        assert!(error.message.contains(reason), "{hex}: {error}");
    }
    assert!(text(b"").unwrap_err().message.contains(short));
    assert!(text(b"{}").unwrap_err().message.contains("the first byte is not 0x80"));
}

#[test]
fn the_depth_is_that_of_text() {
    let deep = |levels: usize, inner: &str| body(&format!("{} {inner}", "E1 ".repeat(levels)));
    assert_eq!(text(&deep(127, "E0")).unwrap().len(), 256);
    assert!(text(&deep(127, "F0 D7 00")).is_ok());
    assert!(text(&deep(126, "F2 F0 D7 00 00")).is_ok());
    for body in [
        deep(128, "E0"),
        deep(128, "F0 D7 00"),
        deep(127, "F2 F0 D7 00 00"),
        deep(100_000, ""),
        body(&"E9 2C ".repeat(100_000)),
    ] {
        assert!(text(&body).unwrap_err().message.contains("nested deeper than 128 levels"));
    }
}

#[test]
fn few_bytes_cannot_stand_for_endless_text() {
    let long = [vec![0xC1, 0xFF, 0xFF], vec![b'a'; 0xFFFF]].concat();
    let array = |items: Vec<u8>| {
        let length = u32::try_from(items.len()).unwrap().to_le_bytes();
        [vec![0x80, 0xE4], length.to_vec(), items].concat()
    };
    let references = |count| array([long.clone(), [0xC3, 0x06].repeat(count)].concat());
    assert!(to_text(&references(10)).is_ok());
    let empty = |count| array([0xF3, 0xF1, 0xD7, 0, 0, 0xFF, 0xFF].repeat(count));
    assert!(to_text(&empty(4)).is_ok());
    let control = array([vec![0xC2, 0, 0, 0x20, 0], vec![1; 0x20_0000]].concat());
    for body in [references(1000), empty(1000), control] {
        assert_eq!(to_text(&body).unwrap_err().kind, ErrorKind::TooLarge);
    }
}

#[test]
fn an_item_is_read_like_its_text() {
    let drop = ["_ts"];
    let twice = body("ED 0D 05 2C 81 61 27 05 81 61 E0 81 61 01 27 06");
    assert_eq!(parse(&twice, &drop).unwrap().as_str(), r#"{"id":"a","a":1}"#);
    let error = parse(&body("E0"), &drop).unwrap_err();
    assert!(error.message.contains("expected a JSON object"), "{error}");
}

#[test]
fn the_rust_sdk_writes_lengths_of_every_width() {
    for length in [0, 63, 64, 255, 256, 65535, 65536] {
        let value = json!({"s": "x".repeat(length), "a": vec![1; length], "n": [31, 32, -1, 0.5]});
        let bytes = encoder::as_the_rust_sdk(&value);
        assert_eq!(parse(&bytes, &[]).unwrap().as_str(), value.to_string());
    }
}

fn string() -> impl Strategy<Value = String> {
    let guid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    prop_oneof![
        any::<String>(),
        "[ -~]{0,300}",
        "[0-9a-f]{0,40}",
        "[0-9A-F]{0,40}",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{0,12}Z",
        "[a-p]{0,40}|[A-Z]{0,40}|[!-_]{0,40}",
        guid,
        guid.prop_map(|guid| guid.to_uppercase()),
        guid.prop_map(|guid| format!("\"{guid}\"")),
        "([A-Za-z0-9+/]{4}){0,20}|([A-Za-z0-9_-]{4}){0,20}|[A-Za-z0-9]{4}[A-Z][AQgw]==",
        prop::sample::select(&strings::SYSTEM_STRINGS[..]).prop_map(str::to_owned),
    ]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..40).prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        any::<u32>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f32>().prop_filter_map("finite", |n| Number::from_f64(n.into()).map(Value::Number)),
        any::<f64>().prop_filter_map("finite", |n| Number::from_f64(n).map(Value::Number)),
    ]
}

fn item() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number(),
        string().prop_map(Value::String),
        prop::collection::vec((0..200).prop_map(Value::from), 0..8).prop_map(Value::Array),
        prop::collection::vec(prop::collection::vec(any::<i32>(), 2), 0..4)
            .prop_map(|arrays| json!(arrays)),
    ];
    let object = |members: Vec<(String, Value)>| Value::Object(members.into_iter().collect());
    let any_value = leaf.prop_recursive(4, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::vec((string(), inner), 0..8).prop_map(object),
        ]
    });
    prop::collection::vec((string(), any_value), 0..6)
        .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()))
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..64)
}

proptest! {
    #[test]
    fn an_item_is_the_same_in_binary_and_in_text(item in item(), choices in choices()) {
        let expected = parse(item.to_string().as_bytes(), &[]).unwrap();
        prop_assert_eq!(&parse(&encoder::as_the_rust_sdk(&item), &[]).unwrap(), &expected);
        prop_assert_eq!(&parse(&encoder::in_any_form(&item, &choices), &[]).unwrap(), &expected);
    }

    #[test]
    fn a_body_that_breaks_off_is_refused(item in item(), choices in choices()) {
        for body in [encoder::as_the_rust_sdk(&item), encoder::in_any_form(&item, &choices)] {
            for end in 0..body.len() {
                let error = to_text(&body[..end]).unwrap_err();
                prop_assert_eq!(error.kind, ErrorKind::BadRequest);
            }
        }
    }

    #[test]
    fn a_changed_byte_gives_json_or_an_error(item in item(), choices in choices(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut body = encoder::in_any_form(&item, &choices);
        let at = at.index(body.len());
        body[at] = byte;
        if let Ok(text) = to_text(&body) {
            prop_assert!(serde_json::from_slice::<Value>(&text).is_ok());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let body = [vec![0x80], bytes].concat();
        if let Ok(text) = to_text(&body) {
            prop_assert!(serde_json::from_slice::<Value>(&text).is_ok());
        }
        let _ = parse(&body, &["a"]);
    }
}
