//! Keys on the wire, in items and as bytes.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn definition(value: Value) -> PartitionKeyDefinition {
    PartitionKeyDefinition::parse(&value).unwrap()
}

#[test]
fn headers_are_read_and_written() {
    use Component::{Bool, Null, Number, String, Undefined};
    for (header, expected) in [
        ("[]", vec![]),
        ("[{}]", vec![Undefined]),
        ("[null]", vec![Null]),
        ("[true]", vec![Bool(true)]),
        ("[false]", vec![Bool(false)]),
        ("[1.5]", vec![Number(1.5)]),
        ("[-3]", vec![Number(-3.0)]),
        ("[0]", vec![Number(0.0)]),
        (r#"[""]"#, vec![String(std::string::String::new())]),
        (r#"["a\"b"]"#, vec![String("a\"b".into())]),
        (r#"["a",{},1]"#, vec![String("a".into()), Undefined, Number(1.0)]),
    ] {
        let key = PartitionKey::parse_header(header).unwrap();
        assert_eq!(key.0, expected, "{header}");
        assert_eq!(key.to_json(), header);
    }
    for (header, written) in [
        (" [ \"\\u00fc\" ] ", "[\"ü\"]"),
        ("[-0]", "[0]"),
        ("[-0.0]", "[0]"),
        ("[1e3]", "[1000]"),
        ("[9223372036854775807]", "[9.223372036854776e+18]"),
    ] {
        assert_eq!(PartitionKey::parse_header(header).unwrap().to_json(), written);
    }
}

#[test]
fn headers_that_are_refused() {
    let deep = "[".repeat(100_000);
    for header in
        ["", "a", "\"a\"", "{}", "[", "[[]]", r#"[{"a":1}]"#, "[1e400]", r#"["\ud800"]"#, &deep]
    {
        let error = PartitionKey::parse_header(header).unwrap_err();
        assert_eq!(error, Error::bad_request(format!("Partition key {header} is invalid.")));
    }
    let long = format!("[\"{}\"]", "a".repeat(2049));
    let error = PartitionKey::parse_header(&long).unwrap_err();
    assert_eq!(error.message, "A partition key value has 2049 bytes; at most 2048 are allowed.");
    assert!(PartitionKey::parse_header(&format!("[\"{}\"]", "a".repeat(2048))).is_ok());
    let four = PartitionKey::parse_header("[1,2,3,4]").unwrap_err();
    assert_eq!(four.kind, ErrorKind::PartitionKeyMismatch);
}

#[test]
fn a_key_as_an_object_has_the_last_names_of_its_paths() {
    let multi =
        |paths: Value| definition(json!({"paths": paths, "kind": "MultiHash", "version": 2}));
    let shown = |header: &str, definition: &PartitionKeyDefinition| {
        PartitionKey::parse_header(header).unwrap().to_object(definition)
    };
    let one = definition(json!({"paths": ["/a/b"], "kind": "Hash", "version": 2}));
    assert_eq!(shown(r#"["x\""]"#, &one), r#"{"b":"x\""}"#);
    assert_eq!(shown("[null]", &one), r#"{"b":null}"#);
    assert_eq!(shown("[{}]", &one), "{}");
    let two = multi(json!(["/t", "/u/name"]));
    assert_eq!(shown(r#"["a",1.5]"#, &two), r#"{"t":"a","name":1.5}"#);
    let alike = multi(json!(["/t/name", "/u/name"]));
    assert_eq!(shown(r#"["a","b"]"#, &alike), r#"{"t/name":"a","u/name":"b"}"#);
    assert_eq!(shown("[]", &PartitionKeyDefinition::system()), "{}");
}

#[test]
fn keys_are_taken_out_of_items() {
    let one = definition(json!({"paths": ["/a/b"], "version": 2}));
    for (item, expected) in [
        (r#"{"a":{"b":"x"}}"#, r#"["x"]"#),
        (r#"{"a":{"b":"\u00fc\n"}}"#, "[\"ü\\n\"]"),
        (r#"{"a":{"b":-1.5e2}}"#, "[-150]"),
        (r#"{"a":{"b":-0.0}}"#, "[0]"),
        (r#"{"a":{"b":true}}"#, "[true]"),
        (r#"{"a":{"b":false}}"#, "[false]"),
        (r#"{"a":{"b":null}}"#, "[null]"),
        (r#"{"a":{}}"#, "[{}]"),
        (r#"{"a":1}"#, "[{}]"),
        ("{}", "[{}]"),
        (r#"{"a":{"b":{"c":1}}}"#, "[{}]"),
        (r#"{"a":{"b":["x"]}}"#, "[{}]"),
    ] {
        assert_eq!(PartitionKey::extract(&one, item).unwrap().to_json(), expected, "{item}");
    }
    let three = definition(json!({"paths": ["/a", "/b", "/c"], "kind": "MultiHash"}));
    let key = PartitionKey::extract(&three, r#"{"c":3,"a":"x"}"#).unwrap();
    assert_eq!(key.to_json(), r#"["x",{},3]"#);
}

#[test]
fn a_key_fits_its_definition_or_not() {
    let one = definition(json!({"paths": ["/a"]}));
    let two = definition(json!({"paths": ["/a", "/b"], "kind": "MultiHash"}));
    let system = PartitionKeyDefinition::system();
    let fitted = |header: &str, definition| {
        let key = PartitionKey::parse_header(header).unwrap();
        key.fitted(definition).map(|key| key.to_json()).map_err(|error| error.kind)
    };
    let no = Err(ErrorKind::PartitionKeyMismatch);
    assert_eq!(fitted("[1]", &one), Ok("[1]".into()));
    assert_eq!(fitted("[{}]", &one), Ok("[{}]".into()));
    assert_eq!(fitted("[]", &one), no);
    assert_eq!(fitted("[1,2]", &one), no);
    assert_eq!(fitted("[1]", &two), no);
    assert_eq!(fitted("[1,2]", &two), Ok("[1,2]".into()));
    assert_eq!(fitted("[]", &system), Ok("[]".into()));
    assert_eq!(fitted("[{}]", &system), Ok("[]".into()));
    assert_eq!(fitted("[1]", &system), Ok("[1]".into()));
    assert_eq!(PartitionKey::extract(&system, "{}").unwrap(), PartitionKey(vec![]));
}

#[test]
fn a_prefix_is_a_prefix_of_components() {
    let key = |header| PartitionKey::parse_header(header).unwrap();
    assert!(key("[1,2]").starts_with(&key("[]")));
    assert!(key("[1,2]").starts_with(&key("[1]")));
    assert!(key("[1,2]").starts_with(&key("[1,2]")));
    assert!(!key("[1,2]").starts_with(&key("[2]")));
    assert!(!key("[1]").starts_with(&key("[1,2]")));
}

#[test]
fn minus_zero_is_zero() {
    let key = |number| PartitionKey(vec![Component::Number(number)]);
    assert_eq!(key(-0.0), key(0.0));
    assert_eq!(key(-0.0).canonical(), key(0.0).canonical());
    assert_ne!(key(0.0), PartitionKey(vec![Component::Null]));
}

#[test]
fn bytes_that_are_no_key() {
    for bytes in [
        &b""[..],
        b"\x01",
        b"\x01\x04",
        b"\x01\x05abc",
        b"\x01\x08\0\0\0\x02a",
        b"\x01\x08\0\0\0\x01\xff",
        b"\0\0",
    ] {
        assert_eq!(PartitionKey::from_canonical(bytes), None, "{bytes:?}");
    }
}

fn component() -> impl Strategy<Value = Component> {
    prop_oneof![
        Just(Component::Undefined),
        Just(Component::Null),
        any::<bool>().prop_map(Component::Bool),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Component::Number),
        any::<i32>().prop_map(|n| Component::Number(f64::from(n))),
        ".{0,5}".prop_map(Component::String),
    ]
}

fn key() -> impl Strategy<Value = PartitionKey> {
    prop::collection::vec(component(), 0..=3).prop_map(PartitionKey)
}

proptest! {
    #[test]
    fn keys_are_read_back(key in key(), tail in prop::collection::vec(any::<u8>(), 0..4)) {
        let mut bytes = key.canonical();
        prop_assert_eq!(PartitionKey::from_canonical(&bytes), Some(key.clone()));
        bytes.extend(&tail);
        prop_assert_eq!(PartitionKey::read_canonical(&bytes), Some((key.clone(), &tail[..])));
        prop_assert_eq!(PartitionKey::parse_header(&key.to_json()).unwrap(), key);
    }

    #[test]
    fn equal_keys_have_equal_bytes_and_others_not(a in key(), b in key()) {
        prop_assert_eq!(a == b, a.canonical() == b.canonical());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..32)) {
        let _ = PartitionKey::from_canonical(&bytes);
    }
}
