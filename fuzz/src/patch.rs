//! Bodies of patches: what is read has its limits, and makes items of items.

use std::sync::LazyLock;

use bytes::Bytes;
use dayfly_model::json::{self, ObjectText};
use dayfly_model::patch::{OPERATIONS_MAX, Patch};

use crate::is_told;
use crate::json::is_an_item;

static ITEMS: LazyLock<[ObjectText; 3]> = LazyLock::new(|| {
    [
        r#"{"id":"1","pk":"a"}"#,
        r#"{"id":"1","a":{"b":{"c":1}},"l":[1,[2,3],{"n":4}],"n":9007199254740993,"s":"text"}"#,
        r#"{"":0,"/":1,"~":2,"a/b":3,"m~n":4,"-":5,"0":[0],"f":0.1,"x":null,"y":[],"z":{}}"#,
    ]
    .map(|text| json::take(&Bytes::from_static(text.as_bytes()), &[]).expect("an item"))
});

pub(crate) fn run(bytes: &[u8]) {
    let patch = match Patch::read(bytes) {
        Ok(patch) => patch,
        Err(error) => return is_told(&error),
    };
    assert!((1..=OPERATIONS_MAX).contains(&patch.operations()));
    if let Some(condition) = patch.condition() {
        assert!(patch.weight() >= condition.len());
    }
    for item in ITEMS.iter() {
        let before = item.as_str().as_bytes();
        match patch.apply(before) {
            Ok(after) => {
                is_an_item(&after);
                let again = patch.apply(before).expect("what was done once");
                assert_eq!(again, after);
                // What was changed can be changed.
                if let Err(error) = patch.apply(after.as_str().as_bytes()) {
                    is_told(&error);
                }
            }
            Err(error) => is_told(&error),
        }
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let deep = format!(
        r#"[{{"op":"set","path":"/a/b/c","value":{}0{}}}]"#,
        "[".repeat(125),
        "]".repeat(125)
    );
    let many: Vec<String> =
        (0..11).map(|n| format!(r#"{{"op":"incr","path":"/n","value":{n}}}"#)).collect();
    let many = format!("[{}]", many.join(","));
    [
        r#"{"operations":[{"op":"add","path":"/x","value":1}]}"#,
        r#"{"condition":"from c where c.n = 1","operations":[{"op":"set","path":"/s","value":"t"}]}"#,
        r#"[{"op":"add","path":"/l/0","value":{"k":[]}},{"op":"add","path":"/l/-","value":null}]"#,
        r#"[{"op":"replace","path":"/a/b/c","value":2.5},{"op":"remove","path":"/l/1/0"}]"#,
        r#"[{"op":"incr","path":"/n","value":-1},{"op":"incr","path":"/f","value":0.2}]"#,
        r#"[{"op":"incr","path":"/new","value":1e308},{"op":"incr","path":"/new","value":1e308}]"#,
        r#"[{"op":"move","from":"/a/b","path":"/moved"},{"op":"move","from":"/l/2","path":"/l/0"}]"#,
        r#"[{"op":"set","path":"/~0","value":1},{"op":"set","path":"/a~1b","value":{"d":[1]}}]"#,
        r#"[{"op":"remove","path":"/"},{"op":"set","path":"/-","value":1}]"#,
        r#"[{"op":"set","path":"/0/-","value":true},{"op":"remove","path":"/0/0"}]"#,
        r#"[{"op":"set","path":"/_ts","value":1}]"#,
        r#"{"operations":[],"condition":null}"#,
        &deep,
        &many,
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
