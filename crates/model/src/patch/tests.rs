//! Every cell of the table, every sentence, and random patches against an evaluator that
//! reads the whole item into values.

mod naive;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Applies operations to an item, as text to text.
fn patched(item: &str, operations: &Value) -> Result<String> {
    let patch = Patch::read(operations.to_string().as_bytes())?;
    patch.apply(item.as_bytes()).map(ObjectText::into_string)
}

fn one(item: &str, operation: Value) -> Result<String> {
    patched(item, &json!([operation]))
}

/// The sentence of a refusal, without the form that it has on the wire.
fn sentence(outcome: Result<String>) -> String {
    let error = outcome.expect_err("it is refused");
    assert_eq!(error.kind, ErrorKind::BadRequest, "{error}");
    let body = error.message.strip_prefix("Message: ").expect("in the form of the service");
    let body: Value = serde_json::from_str(body).unwrap();
    body["Errors"][0].as_str().unwrap().to_owned()
}

const SYNTAX: &str = "Invalid patch request: check syntax of patch specification";

fn out_of_bounds(index: &str) -> String {
    format!("For Operation(1): Index({index}) to operate on is out of array bounds")
}

fn no_path(verb: &str, name: &str) -> String {
    format!(
        "For Operation(1): {verb} Operation can only create a child object of an existing \
         node(array or object) and cannot create path recursively, no path found beyond: \
         '{name}'. Learn more: https://aka.ms/cosmosdbpatchdocs"
    )
}

fn absent(what: &str) -> String {
    format!("For Operation(1): Node(b) to be {what}")
}

/// The whole table of the module comment, one line a cell.
#[test]
fn every_cell_of_the_table() {
    let item = r#"{"a":1,"t":[1,2]}"#;
    let [member, missing, inside, next, dash, beyond] =
        ["/a", "/b", "/t/1", "/t/2", "/t/-", "/t/3"];
    let good = |op: &str, path: &str| one(item, json!({"op": op, "path": path, "value": 9}));
    let bad = |op: &str, path: &str| sentence(good(op, path));

    assert_eq!(good("add", member).unwrap(), r#"{"a":9,"t":[1,2]}"#);
    assert_eq!(good("add", missing).unwrap(), r#"{"a":1,"t":[1,2],"b":9}"#);
    assert_eq!(good("add", inside).unwrap(), r#"{"a":1,"t":[1,9,2]}"#);
    assert_eq!(good("add", next).unwrap(), r#"{"a":1,"t":[1,2,9]}"#);
    assert_eq!(good("add", dash).unwrap(), r#"{"a":1,"t":[1,2,9]}"#);
    assert_eq!(bad("add", beyond), out_of_bounds("3"));

    assert_eq!(good("set", member).unwrap(), r#"{"a":9,"t":[1,2]}"#);
    assert_eq!(good("set", missing).unwrap(), r#"{"a":1,"t":[1,2],"b":9}"#);
    assert_eq!(good("set", inside).unwrap(), r#"{"a":1,"t":[1,9]}"#);
    assert_eq!(bad("set", next), out_of_bounds("2"));
    assert_eq!(good("set", dash).unwrap(), r#"{"a":1,"t":[1,2,9]}"#);
    assert_eq!(bad("set", beyond), out_of_bounds("3"));

    assert_eq!(good("replace", member).unwrap(), r#"{"a":9,"t":[1,2]}"#);
    assert_eq!(bad("replace", missing), absent("replaced is absent."));
    assert_eq!(good("replace", inside).unwrap(), r#"{"a":1,"t":[1,9]}"#);
    assert_eq!(bad("replace", next), out_of_bounds("2"));
    assert_eq!(bad("replace", dash), out_of_bounds("-"));
    assert_eq!(bad("replace", beyond), out_of_bounds("3"));

    assert_eq!(good("remove", member).unwrap(), r#"{"t":[1,2]}"#);
    let gone = "removed is absent. Note: it may also have been removed earlier in the transaction.";
    assert_eq!(bad("remove", missing), absent(gone));
    assert_eq!(good("remove", inside).unwrap(), r#"{"a":1,"t":[1]}"#);
    assert_eq!(bad("remove", next), out_of_bounds("2"));
    assert_eq!(bad("remove", dash), out_of_bounds("-"));
    assert_eq!(bad("remove", beyond), out_of_bounds("3"));

    assert_eq!(good("incr", member).unwrap(), r#"{"a":10,"t":[1,2]}"#);
    assert_eq!(good("incr", missing).unwrap(), r#"{"a":1,"t":[1,2],"b":9}"#);
    assert_eq!(good("incr", inside).unwrap(), r#"{"a":1,"t":[1,11]}"#);
    assert_eq!(bad("incr", next), out_of_bounds("2"));
    assert_eq!(bad("incr", dash), out_of_bounds("-"));
    assert_eq!(bad("incr", beyond), out_of_bounds("3"));
}

#[test]
fn a_move_removes_and_then_adds() {
    let moved = |item: &str, from: &str, path: &str| {
        one(item, json!({"op": "move", "from": from, "path": path}))
    };
    for (item, from, path, expected) in [
        (r#"{"a":1}"#, "/a", "/b", r#"{"b":1}"#),
        (r#"{"a":1,"b":2}"#, "/a", "/b", r#"{"b":1}"#),
        (r#"{"a":{"b":1}}"#, "/a/b", "/a", r#"{"a":1}"#),
        (r#"{"t":[1,2,3]}"#, "/t/0", "/t/2", r#"{"t":[2,3,1]}"#),
        (r#"{"t":[1,2,3]}"#, "/t/2", "/t/0", r#"{"t":[3,1,2]}"#),
        (r#"{"t":[1,2,3]}"#, "/t/0", "/t/-", r#"{"t":[2,3,1]}"#),
        (r#"{"t":[1]}"#, "/t/0", "/x", r#"{"t":[],"x":1}"#),
        (r#"{"a":1,"ab":2}"#, "/a", "/ab", r#"{"ab":1}"#),
    ] {
        assert_eq!(moved(item, from, path).as_deref(), Ok(expected), "{from} to {path}");
    }
    let item = r#"{"a":{"b":1},"t":[1,2,3]}"#;
    for (from, path, expected) in [
        ("/a", "/a/b", SYNTAX.to_owned()),
        ("/a", "/a", SYNTAX.to_owned()),
        (
            "/b",
            "/y",
            absent(
                "removed is absent. Note: it may also have been removed earlier in the transaction.",
            ),
        ),
        ("/x/y", "/z", no_path("Given", "x")),
        ("/a", "/x/y", no_path("Given", "x")),
        ("/t/3", "/y", out_of_bounds("3")),
        // The index is that of the array without what was moved.
        ("/t/0", "/t/3", out_of_bounds("3")),
        ("/t/-", "/y", out_of_bounds("-")),
    ] {
        assert_eq!(sentence(moved(item, from, path)), expected, "{from} to {path}");
    }
}

#[test]
fn paths_lead_through_objects_and_arrays() {
    for (item, path, expected) in [
        (r#"{"a/b":{"c~d":1}}"#, "/a~1b/c~0d", r#"{"a/b":{"c~d":9}}"#),
        (r#"{"~1":1}"#, "/~01", r#"{"~1":9}"#),
        (r#"{"x":[[1,2],[3,4]]}"#, "/x/1/0", r#"{"x":[[1,2],[9,4]]}"#),
        (r#"{"o":{}}"#, "/o/0", r#"{"o":{"0":9}}"#),
        (r#"{"o":{}}"#, "/o/-", r#"{"o":{"-":9}}"#),
        (r#"{"o":{}}"#, "/o/01", r#"{"o":{"01":9}}"#),
        (r#"{"":1}"#, "/", r#"{"":9}"#),
        (r#"{"a":{"":{"":1}}}"#, "/a//", r#"{"a":{"":{"":9}}}"#),
        (r#"{"é\n\"\\":1}"#, "/é\n\"\\", r#"{"é\n\"\\":9}"#),
        (r#"{"a":"}],\"","b":[{"c":"\\"}]}"#, "/b/0/c", r#"{"a":"}],\"","b":[{"c":9}]}"#),
        (r#"{"_mine":1,"a":{"_ts":1}}"#, "/a/_ts", r#"{"_mine":1,"a":{"_ts":9}}"#),
        (r#"{"a":1}"#, "/_mine", r#"{"a":1,"_mine":9}"#),
        ("{}", "/a", r#"{"a":9}"#),
        // One name, whatever its spelling in the patch.
        (r#"{"ab":1,"b":2}"#, "/\u{62}", r#"{"ab":1,"b":9}"#),
    ] {
        let set = json!({"op": "set", "path": path, "value": 9});
        assert_eq!(one(item, set).as_deref(), Ok(expected), "{path} in {item}");
    }
}

#[test]
fn paths_that_lead_nowhere() {
    let item = r#"{"a":1,"o":{},"t":[[1],2]}"#;
    for (path, expected) in [
        ("/no/child", no_path("Given", "no")),
        ("/o/no/child", no_path("Given", "no")),
        ("/no/child/deeper", no_path("Given", "no")),
        // What holds nothing is as good as missing.
        ("/a/b", no_path("Given", "b")),
        ("/a/b/c", no_path("Given", "b")),
        ("/t/1/b", no_path("Given", "b")),
        ("/t/2/b", out_of_bounds("2")),
        ("/t/-/b", out_of_bounds("-")),
        ("/t/99999999999999999999999", out_of_bounds("99999999999999999999999")),
        ("/t/01", SYNTAX.to_owned()),
        ("/t/x", SYNTAX.to_owned()),
        ("/t/", SYNTAX.to_owned()),
        ("/t/-1", SYNTAX.to_owned()),
        ("/t/+1", SYNTAX.to_owned()),
        ("/t/x/b", SYNTAX.to_owned()),
        ("", SYNTAX.to_owned()),
        ("x", SYNTAX.to_owned()),
        ("/a~2b", SYNTAX.to_owned()),
        ("/a~", SYNTAX.to_owned()),
        ("/~é", SYNTAX.to_owned()),
    ] {
        for op in ["set", "replace", "remove", "incr"] {
            let outcome = one(item, json!({"op": op, "path": path, "value": 1}));
            assert_eq!(sentence(outcome), expected, "{op} {path}");
        }
        let outcome = one(item, json!({"op": "add", "path": path, "value": 1}));
        assert_eq!(sentence(outcome), expected.replace("Given", "Add"), "add {path}");
    }
    // As long a name as somebody sends is not told at full length.
    let path = format!("/{}/b", "é".repeat(1000));
    let told = sentence(one(item, json!({"op": "remove", "path": path})));
    assert!(told.contains(&format!("'{}'", "é".repeat(255))), "{told}");
}

#[test]
fn system_properties_are_not_patched() {
    for (operation, name) in [
        (json!({"op": "set", "path": "/_ts", "value": 1}), "_ts"),
        (json!({"op": "add", "path": "/_etag", "value": 1}), "_etag"),
        (json!({"op": "incr", "path": "/_rid/x", "value": 1}), "_rid"),
        (json!({"op": "remove", "path": "/_attachments"}), "_attachments"),
        (json!({"op": "replace", "path": "/_id", "value": 1}), "_id"),
        (json!({"op": "move", "from": "/_self", "path": "/x"}), "_self"),
        (json!({"op": "move", "from": "/x", "path": "/_self"}), "_self"),
    ] {
        let expected = format!("Invalid patch request: Cannot patch system property {name}.");
        assert_eq!(sentence(one("{}", operation.clone())), expected, "{operation}");
    }
}

#[test]
fn numbers_are_added_exactly_while_they_are_whole() {
    for (old, by, expected) in [
        ("3", "7", "10"),
        ("10", "-12", "-2"),
        ("3", "0.5", "3.5"),
        ("0.5", "0.5", "1"),
        ("9007199254740993", "1", "9007199254740994"),
        ("9223372036854775807", "1", "9223372036854775808"),
        ("-9223372036854775808", "9223372036854775807", "-1"),
        ("18446744073709551615", "-1", "18446744073709551614"),
        ("18446744073709551615", "1", "1.8446744073709552e+19"),
        ("-9223372036854775808", "-1", "-9.223372036854776e+18"),
        ("5", "1.0", "6"),
        ("-1", "1", "0"),
        ("-0.5", "0.5", "0"),
        ("1e+300", "1", "1e+300"),
    ] {
        let item = format!("{{\"n\":{old}}}");
        let body = format!("[{{\"op\":\"incr\",\"path\":\"/n\",\"value\":{by}}}]");
        let outcome = Patch::read(body.as_bytes()).unwrap().apply(item.as_bytes()).unwrap();
        assert_eq!(outcome.as_str(), format!("{{\"n\":{expected}}}"), "{old} and {by}");
    }
    let not_a_number = "For Operation(1): Node(n) is not a number.";
    let incr = json!({"op": "incr", "path": "/n", "value": 1});
    for item in [r#"{"n":"3"}"#, r#"{"n":null}"#, r#"{"n":[1]}"#, r#"{"n":{}}"#, r#"{"n":true}"#] {
        assert_eq!(sentence(one(item, incr.clone())), not_a_number, "{item}");
    }
    let much = json!({"op": "incr", "path": "/n", "value": 1e308});
    assert_eq!(sentence(one(r#"{"n":1e+308}"#, much)), not_a_number);
}

#[test]
fn each_operation_sees_those_before_it() {
    let add = |path: &str, value: i32| json!({"op": "add", "path": path, "value": value});
    let remove = |path: &str| json!({"op": "remove", "path": path});
    let replace = |path: &str| json!({"op": "replace", "path": path, "value": 9});
    for (item, operations, expected) in [
        (r#"{"a":{}}"#, json!([add("/a/b", 1), add("/a/b", 2)]), r#"{"a":{"b":2}}"#),
        (r#"{"t":[]}"#, json!([add("/t/0", 1), add("/t/0", 2)]), r#"{"t":[2,1]}"#),
        (r#"{"a":1,"b":2}"#, json!([remove("/a"), remove("/b")]), "{}"),
        (r#"{"a":1}"#, json!([remove("/a"), add("/a", 2), replace("/a")]), r#"{"a":9}"#),
    ] {
        assert_eq!(patched(item, &operations).as_deref(), Ok(expected), "{operations}");
    }
    let gone = "For Operation(2): Node(a) to be replaced has been removed earlier in the \
                transaction.";
    assert_eq!(sentence(patched(r#"{"a":1}"#, &json!([remove("/a"), replace("/a")]))), gone);
    let moved = json!({"op": "move", "from": "/a", "path": "/b"});
    assert_eq!(sentence(patched(r#"{"a":1}"#, &json!([moved, replace("/a")]))), gone);
    assert_eq!(
        sentence(patched(r#"{"a":1}"#, &json!([remove("/a"), remove("/a")]))),
        "For Operation(2): Node(a) to be removed is absent. Note: it may also have been removed \
         earlier in the transaction."
    );
}

#[test]
fn bodies_that_are_taken() {
    let item = r#"{"a":1}"#;
    let set = r#"{"op":"set","path":"/a","value":2}"#;
    for (body, condition) in [
        (format!("[{set}]"), None),
        (format!(r#"{{"operations":[{set}]}}"#), None),
        (format!(r#"{{"condition":null,"operations":[{set}],"more":1}}"#), None),
        (format!(r#" {{"condition":"from c","operations":[ {set} ]}} "#), Some("from c")),
        (r#"[{"value":2,"path":"/a","op":"set","more":[]}]"#.to_owned(), None),
        (r#"[{"op":"set","path":"/a","value":1,"value":2}]"#.to_owned(), None),
    ] {
        let patch = Patch::read(body.as_bytes()).unwrap_or_else(|why| panic!("{body}: {why}"));
        assert_eq!((patch.condition(), patch.operations()), (condition, 1), "{body}");
        assert_eq!(patch.apply(item.as_bytes()).unwrap().as_str(), r#"{"a":2}"#, "{body}");
    }
    // Java sends a value with every remove.
    let remove = json!({"op": "remove", "path": "/a", "value": null});
    assert_eq!(one(r#"{"a":null}"#, remove).as_deref(), Ok("{}"));
    let null = json!({"op": "replace", "path": "/a", "value": null});
    assert_eq!(one(r#"{"a":null}"#, null).as_deref(), Ok(r#"{"a":null}"#));
    // As in items, a control character need not be escaped, and the last of two counts.
    let body = "[{\"op\":\"set\",\"path\":\"/a\",\"value\":{\"x\":1,\"x\":\"\t\"}}]";
    let patch = Patch::read(body.as_bytes()).unwrap();
    assert_eq!(patch.apply(item.as_bytes()).unwrap().as_str(), r#"{"a":{"x":"\t"}}"#);
}

#[test]
fn bodies_that_are_refused() {
    let refused = |body: &str| sentence(Patch::read(body.as_bytes()).map(|_| String::new()));
    for body in [
        "",
        "null",
        "1",
        "{}",
        "[]",
        "[",
        r#"{"operations":[]}"#,
        r#"{"operations":null}"#,
        r#"{"operations":{}}"#,
        r#"{"operations":[1]}"#,
        r#"{"operations":[[]]}"#,
        r#"[["set","/a",1]]"#,
        "[{}]",
        r#"[{"path":"/a","value":1}]"#,
        r#"[{"op":null,"path":"/a","value":1}]"#,
        r#"[{"op":"SET","path":"/a","value":1}]"#,
        r#"[{"op":"copy","from":"/a","path":"/b"}]"#,
        r#"[{"op":"test","path":"/a","value":1}]"#,
        r#"[{"op":"increment","path":"/a","value":1}]"#,
        r#"[{"op":"set","value":1}]"#,
        r#"[{"op":"set","path":1,"value":1}]"#,
        r#"[{"op":"set","path":"/a"}]"#,
        r#"[{"op":"add","path":"/a"}]"#,
        r#"[{"op":"replace","path":"/a"}]"#,
        r#"[{"op":"incr","path":"/a"}]"#,
        r#"[{"op":"incr","path":"/a","value":"1"}]"#,
        r#"[{"op":"incr","path":"/a","value":null}]"#,
        r#"[{"op":"move","path":"/a"}]"#,
        r#"[{"op":"move","from":"/a"}]"#,
        r#"[{"op":"set","path":"/a","value":1e400}]"#,
        r#"[{"op":"set","path":"/a","value":"\ud800"}]"#,
        r#"[{"op":"set","path":"/a","value":1}]x"#,
        r#"{"condition":1,"operations":[{"op":"set","path":"/a","value":1}]}"#,
        r#"{"condition":"from c where c.a = "x"","operations":[{"op":"remove","path":"/a"}]}"#,
    ] {
        assert_eq!(refused(body), SYNTAX, "{body}");
    }
    let deep = format!("/{}", vec!["a"; 129].join("/"));
    assert_eq!(refused(&json!([{"op": "remove", "path": deep}]).to_string()), SYNTAX);
}

#[test]
fn a_patch_has_1_to_10_operations() {
    let many = |count| json!(vec![json!({"op": "incr", "path": "/n", "value": 1}); count]);
    assert_eq!(patched("{}", &many(10)).as_deref(), Ok(r#"{"n":10}"#));
    let refused = sentence(patched("{}", &many(11)));
    assert_eq!(refused, "The number of patch operations cannot exceed 10");
    assert_eq!(sentence(patched("{}", &many(0))), SYNTAX);
}

#[test]
fn a_patch_and_its_item_have_limits() {
    let large = format!(r#"[{{"op":"set","path":"/a","value":"{}"}}]"#, "x".repeat(2 << 20));
    assert_eq!(Patch::read(large.as_bytes()).unwrap_err().kind, ErrorKind::TooLarge);

    let nested = |levels: usize| {
        let value = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let body = format!(r#"[{{"op":"set","path":"/a/b","value":{value}}}]"#);
        Patch::read(body.as_bytes()).and_then(|patch| patch.apply(br#"{"a":{}}"#))
    };
    assert!(nested(126).is_ok());
    assert_eq!(nested(127).unwrap_err().kind, ErrorKind::BadRequest);
    assert_eq!(nested(1000).unwrap_err().kind, ErrorKind::BadRequest);
}

/// What no operation names stays as it was, in its place and to the byte.
#[test]
fn the_rest_stays_as_it_was() {
    let item = r#"{"z":1.5,"big":18446744073709551615,"d":1e+300,"a":[{"é":"\u0001"},{}],"m":0}"#;
    let operations = json!([
        {"op": "set", "path": "/new", "value": {"x": [1.50, 1e2]}},
        {"op": "replace", "path": "/m", "value": "long"},
        {"op": "remove", "path": "/a/1"},
    ]);
    let expected = r#"{"z":1.5,"big":18446744073709551615,"d":1e+300,"a":[{"é":"\u0001"}],"m":"long","new":{"x":[1.5,100]}}"#;
    assert_eq!(patched(item, &operations).as_deref(), Ok(expected));
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "", "0", "1", "2", "-", "é\"", "a/b", "~"])
        .prop_map(ToOwned::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5..5i64).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-4..4i32).prop_map(|half| Value::from(f64::from(half) + 0.5)),
        prop::sample::select(vec!["", "}", "\\\"", "é", ",]"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object(inner),
        ]
    })
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec((name(), value), 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..4).prop_map(|names| {
        let escaped = |name: &String| name.replace('~', "~0").replace('/', "~1");
        let names: Vec<String> = names.iter().map(escaped).collect();
        format!("/{}", names.join("/"))
    })
}

fn operation() -> impl Strategy<Value = Value> {
    let op = prop::sample::select(vec!["add", "set", "replace", "remove", "incr", "move"]);
    (op, path(), path(), value(), any::<bool>()).prop_map(|(op, path, from, value, plain)| {
        let value = if op == "incr" && plain { json!(1) } else { value };
        json!({"op": op, "path": path, "from": from, "value": value})
    })
}

/// Anything that has the words of a patch in it.
fn anything() -> impl Strategy<Value = Value> {
    let words = vec!["set", "move", "incr", "/a", "/a/0", "/t/-", "", "/~", "from c", "_ts", "/"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(words).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        let names = vec!["operations", "condition", "op", "path", "from", "value", "x"];
        let member = (prop::sample::select(names).prop_map(ToOwned::to_owned), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            prop::collection::vec(member, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Reads a body, and applies what can be read.
fn carry_out(body: &[u8]) -> Result<()> {
    let patch = Patch::read(body)?;
    assert!(patch.operations() <= OPERATIONS_MAX && patch.weight() > 0);
    let text = patch.apply(r#"{"a":[1,{"b":"}"}],"t":[],"é":{"":0}}"#.as_bytes())?;
    let whole: Value = serde_json::from_str(text.as_str()).expect("it is JSON");
    assert!(whole.is_object());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whether its text is changed in place or all of it is read: the same item, or none.
    #[test]
    fn an_edited_text_is_what_edited_values_are(
        item in object(value()),
        operations in prop::collection::vec(operation(), 1..6),
    ) {
        let text = json::value_text(&item.to_string()).unwrap();
        let patch = Patch::read(json!(operations).to_string().as_bytes());
        let expected = naive::patched(item, &operations);
        let seen = patch.and_then(|patch| patch.apply(text.as_bytes())).ok();
        let seen = seen.map(|text| serde_json::from_str::<Value>(text.as_str()).unwrap());
        prop_assert_eq!(seen.map(|item| item.to_string()), expected.map(|item| item.to_string()));
    }

    #[test]
    fn bodies_are_refused_or_carried_out(value in anything()) {
        let _ = carry_out(value.to_string().as_bytes());
        let _ = carry_out(json!([value]).to_string().as_bytes());
        let _ = carry_out(json!({"operations": value}).to_string().as_bytes());
        let set = json!([{"op": "set", "path": "/a", "value": value}]);
        carry_out(set.to_string().as_bytes()).unwrap();
    }

    #[test]
    fn bent_bodies_are_refused_or_carried_out(
        operation in operation(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        is_cut in any::<bool>(),
    ) {
        let mut body = json!({"condition": "from c", "operations": [operation]}).to_string();
        let _ = carry_out(body.as_bytes());
        let mut bytes = std::mem::take(&mut body).into_bytes();
        let at = at.index(bytes.len());
        if is_cut { bytes.truncate(at) } else { bytes[at] = byte }
        let _ = carry_out(&bytes);
    }
}

/// As deep and as long as somebody makes them, patches end soon.
#[test]
fn large_patches_end_soon() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for depth in [100, 128, 129, 100_000] {
        let _ = carry_out(nested(depth).as_bytes());
        let value = nested(depth);
        let body = format!(r#"[{{"op":"set","path":"/a","value":{value}}}]"#);
        let _ = carry_out(body.as_bytes());
    }
    // Each operation goes deep into what the one before has put there.
    let value = (0..127).fold(json!(1), |inside, _| json!({"a": inside}));
    let operations: Vec<Value> = (1..=10)
        .map(|times| json!({"op": "set", "path": "/a".repeat(times * 12), "value": value}))
        .collect();
    assert!(carry_out(json!(operations).to_string().as_bytes()).is_err());

    let many = vec!["1"; 900_000].join(",");
    let item = format!("{{\"t\":[{many}]}}");
    let operations: Vec<Value> =
        (0..10).map(|_| json!({"op": "move", "from": "/t/0", "path": "/t/-"})).collect();
    let patch = Patch::read(json!(operations).to_string().as_bytes()).unwrap();
    assert_eq!(patch.apply(item.as_bytes()).unwrap().bytes(), item.len());
    let _ = carry_out(format!("[{many}]").as_bytes());
    let _ = carry_out(format!("{{\"operations\":[{many}]}}").as_bytes());
    let slashes = "/".repeat(1_000_000);
    let _ = carry_out(json!([{"op": "remove", "path": slashes}]).to_string().as_bytes());
}
