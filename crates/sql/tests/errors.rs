//! Plays a file of queries that the service refuses, with everything that it finds
//! wrong in them: `query-errors.jsonl`, beside the file that `DAYFLY_QUERY_CASES`
//! names. Each line is a JSON object with `query` and `errors`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may panic"
)]

use std::path::Path;

use dayfly_sql::{check, parse};
use serde_json::{Value, json};

/// What is wrong in a query, as an answer tells it.
fn errors_of(query: &str) -> Value {
    let outcome = parse(query).and_then(|tree| check(&tree, query));
    match outcome {
        Ok(()) => json!("the query is taken"),
        Err(error) => serde_json::from_str(&error.body()).unwrap(),
    }
}

#[test]
fn known_errors() {
    let Some(cases) = std::env::var_os("DAYFLY_QUERY_CASES") else {
        println!("DAYFLY_QUERY_CASES names no file: no known errors were run.");
        return;
    };
    let path = Path::new(&cases).with_file_name("query-errors.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("There is no query-errors.jsonl beside the known queries: none were run.");
        return;
    };
    let mut failures = Vec::new();
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let query = case["query"].as_str().unwrap();
        let (ours, theirs) = (errors_of(query), json!({ "errors": case["errors"] }));
        if ours != theirs {
            failures.push(format!("{query}\n    {ours}\n    not {theirs}"));
        }
    }
    println!("{} known errors were run.", text.lines().count());
    assert!(failures.is_empty(), "{} are wrong:\n{}", failures.len(), failures.join("\n"));
}
