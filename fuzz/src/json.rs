//! Bodies, in text and in binary JSON: what is taken is compact text, and the same again
//! when it is taken once more.

use bytes::Bytes;
use dayfly_model::json::{self, ObjectText, binary};
use serde::Deserialize;
use serde_json::Value;

use crate::{hex, is_told};

/// Binary bodies are at most so long as text.
const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;

pub(crate) fn run(bytes: &[u8]) {
    let body = Bytes::copy_from_slice(bytes);
    match json::take(&body, &[]) {
        Ok(object) => is_an_item(&object),
        Err(error) => is_told(&error),
    }
    match json::parse(bytes, &["_ts", "id"]) {
        Ok(object) => {
            is_an_item(&object);
            assert!(object.get("_ts").is_none() && object.get("id").is_none(), "{object}");
        }
        Err(error) => is_told(&error),
    }
    match json::text_of(bytes) {
        Ok(text) => is_a_value(&text),
        Err(error) => is_told(&error),
    }
    if binary::is_binary(bytes) {
        match binary::to_text(bytes) {
            Ok(text) => {
                assert!(text.len() <= TEXT_BYTES_MAX);
                let text = String::from_utf8(text).expect("text is UTF-8");
                json::value_text(&text).expect("binary JSON stands for JSON");
            }
            Err(error) => is_told(&error),
        }
    }
}

/// That it is an item's text: compact, the same when it is taken again, and each of its
/// properties is found.
pub(crate) fn is_an_item(object: &ObjectText) {
    let text = object.as_str();
    assert_eq!(text.len(), object.bytes());
    let again = json::take(&Bytes::copy_from_slice(text.as_bytes()), &[]).expect("an item");
    assert_eq!(again.as_str(), text);
    assert_eq!(json::parse(text.as_bytes(), &[]).expect("an item").as_str(), text);
    let Value::Object(members) = value(text) else { panic!("{text} is no object") };
    for (name, member) in &members {
        let found = object.get(name).unwrap_or_else(|| panic!("{name:?} of {text}"));
        assert_eq!(value(found.get()), *member, "{name:?} of {text}");
    }
    // Also what none of its properties is called.
    assert!(members.contains_key("no such name") || object.get("no such name").is_none());
}

fn is_a_value(text: &str) {
    if let Ok(compact) = json::value_text(text) {
        assert_eq!(json::value_text(&compact).expect("a value"), compact);
    }
}

/// What a text means, by another reader.
fn value(text: &str) -> Value {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).unwrap_or_else(|why| panic!("{why}: {text}"));
    reader.end().unwrap_or_else(|why| panic!("{why}: {text}"));
    value
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(126), "]".repeat(126));
    let texts = [
        r#"{"id":"1","pk":"a","n":1}"#,
        r#"{"id":"1","ttl":60,"_ts":1700000000,"_etag":"\"0\""}"#,
        r#" { "a" : [ 1 , -0.0 , 1e400 , 1E-7 , 18446744073709551616 ] , "a" : null } "#,
        r#"{"\u0061":"\ud83d\ude00","b":"\u0000\n\t\"\\\/","c":"ä€😀"}"#,
        "{\"a\":\"tab\there\",\"b\":\"line\nthere\"}",
        r#"{"a":{"b":{"c":[{"d":true},{"d":false},[[]],{}]}},"":"","a b":1}"#,
        r#"{"half":"\ud83d"}"#,
        "[1,2,3]",
        "\"text\"",
        &deep,
    ];
    let binary = [
        // {"id":"1","n":[1,-2,0.5],"t":true}
        "80 EC 1B 82 69 64 81 31 81 6E E2 0D 01 D8 FE CC 00 00 00 00 00 00 E0 3F 81 74 D2",
        // [1, 2, 3] as numbers alone, and arrays of them
        "80 F0 D7 03 01 02 03",
        "80 F2 F0 D7 02 02 01 02 03 04",
        // {"guid":"..."} and nothing at all
        "80 E9 84 67 75 69 64 D3 00 11 22 33 44 55 66 77 88 99 AA BB CC DD EE FF",
        "80 E8",
        "80 EA 08 81 61 C0 05 01 02 03 04 05",
        "80 D0",
    ];
    let texts = texts.iter().map(|text| text.as_bytes().to_vec());
    texts.chain(binary.iter().map(|digits| hex(digits))).collect()
}
