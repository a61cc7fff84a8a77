//! Plays a file of known queries, if `DAYFLY_QUERY_CASES` names one: each line is
//! a JSON object with `id`, `kind`, `query` and `expected`.
//!
//! - `parse`: what another parser of the language accepts, and how it writes it.
//! - `accept`, `result`: queries that the service takes, or refuses with a code.
//! - `error`: queries that it refuses.
//! - `plan`, `plan-error`: what its planner makes of a query.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may panic"
)]

#[path = "cases/plan.rs"]
mod plan;

use std::collections::BTreeMap;

use dayfly_sql::{SyntaxError, check, parse};
use serde_json::Value;

/// Cases in which we differ on purpose.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "parse-ScalarExpressionSqlParserBaselineTests.StringLiteral/2",
        "that parser writes the escapes of a string as text; we write what they mean",
    ),
    ("parse-ScalarExpressionSqlParserBaselineTests.StringLiteral/4", "the same"),
    ("plan-RangePartitionKey/5", "there are no containers that are partitioned by range"),
    ("plan-RangePartitionKey/6", "there are no containers that are partitioned by range"),
    ("plan-RangePartitionKey/8", "there are no containers that are partitioned by range"),
    ("plan-Spatial/2", "no function is called to plan: all ranges are asked, for the same rows"),
    ("plan-Spatial/5", "no function is called to plan: all ranges are asked, for the same rows"),
];

fn read(query: &str) -> Result<String, SyntaxError> {
    let tree = parse(query)?;
    check(&tree, query)?;
    Ok(tree.to_string())
}

/// Whether a case agrees, or why it cannot be told yet; else what is wrong.
fn play(case: &Value) -> Result<&'static str, String> {
    let query = case["query"].as_str().unwrap();
    let expected = &case["expected"];
    match case["kind"].as_str().unwrap() {
        "parse" => parses(query, expected),
        "accept" if expected["accepts"] == false => refuses(query, expected),
        "plan" => plan::agrees(case),
        "accept" | "result" => match read(query) {
            Ok(_) => Ok("agree"),
            Err(error) => Err(format!("{error:?}")),
        },
        "error" => refuses(query, expected),
        "plan-error" => plan::refused(case),
        kind => panic!("a case of an unknown kind {kind}"),
    }
}

fn parses(query: &str, expected: &Value) -> Result<&'static str, String> {
    match (parse(query), expected["accepts"].as_bool().unwrap()) {
        (Err(_), false) => Ok("agree"),
        (Ok(tree), true) if expected["normalized"] == tree.to_string() => Ok("agree"),
        (Ok(tree), _) => Err(format!("is read as {tree}, not as {expected}")),
        (Err(error), true) => Err(format!("{error:?}")),
    }
}

/// Of code, message and place, whatever the case has must be ours.
fn refuses(query: &str, expected: &Value) -> Result<&'static str, String> {
    let read = read(query);
    let code = expected["code"].as_str();
    let error = read.err().ok_or_else(|| format!("is read, and should be {expected}"))?;
    let message = expected["message"].as_str();
    let part = expected["message_contains"].as_str();
    let place = expected.get("location");
    let fits = error.code == code
        && message.is_none_or(|message| message == error.message)
        && part.is_none_or(|part| error.message.contains(part))
        && place.is_none_or(|place| place["start"] == error.start && place["end"] == error.end);
    if fits { Ok("agree") } else { Err(format!("{error:?}, and should be {expected}")) }
}

#[test]
fn known_queries() {
    let Some(path) = std::env::var_os("DAYFLY_QUERY_CASES") else {
        println!("DAYFLY_QUERY_CASES names no file: no known queries were run.");
        return;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let mut counts = BTreeMap::<(String, &str), usize>::new();
    let mut failures = Vec::new();
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (id, kind) = (case["id"].as_str().unwrap(), case["kind"].as_str().unwrap());
        if kind == "dataset" {
            continue;
        }
        let different = DIFFERENT.iter().find(|(known, _)| *known == id);
        let outcome = match (play(&case), different) {
            (Ok(outcome), None) => outcome,
            (Err(_), Some((_, why))) => why,
            (Ok(_), Some(_)) => {
                failures.push(format!("{id} is no longer different"));
                "WRONG"
            }
            (Err(why), None) => {
                failures.push(format!("{id}: {}\n    {why}", case["query"]));
                "WRONG"
            }
        };
        *counts.entry((kind.to_owned(), outcome)).or_default() += 1;
    }
    let total: usize = counts.values().sum();
    println!("{total} known queries were run: {counts:?}");
    assert!(failures.is_empty(), "{} are wrong:\n{}", failures.len(), failures.join("\n"));
}
