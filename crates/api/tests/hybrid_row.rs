//! Plays a file of bodies that .NET sent and took: `hybridrow-fixtures.jsonl`, beside the
//! file that `DAYFLY_QUERY_CASES` names. Each line is a JSON object with `direction`,
//! `headers`, the bytes in `hex`, and what each row `means`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may panic"
)]

#[allow(dead_code, reason = "only scripts are played in frames")]
#[path = "scenarios/frames.rs"]
mod frames;
#[path = "scenarios/rows.rs"]
mod rows;
#[path = "scenarios/server.rs"]
#[allow(dead_code, reason = "the scripts use more of it")]
mod server;

use std::collections::HashSet;
use std::path::Path;

use dayfly_api::hybrid_row::{OPERATION, RESULT};
use serde_json::{Value, json};
use server::{Engine, Mode, Server};

/// Operations, as rows have them.
const CREATE: i64 = 0;
const READ: i64 = 2;
const DELETE: i64 = 4;
const UPSERT: i64 = 20;

/// Whether the rows are as .NET would write them: nothing that the schema does not have.
fn is_plain(case: &Value, names: &[&str], bytes: &[u8]) -> bool {
    let known = |row: &Value| row.as_object().unwrap().keys().all(|name| names.contains(&&**name));
    bytes[6..10] == [10, 0, 0, 0] && case["means"].as_array().unwrap().iter().all(known)
}

/// What the rows mean, and that they are written so.
fn check_bytes(case: &Value) {
    let name = &case["name"];
    let layout = if case["direction"] == "request" { &OPERATION } else { &RESULT };
    let names: Vec<&str> = layout.names().collect();
    let bytes = rows::from_hex(case["hex"].as_str().unwrap()).unwrap();
    let mut means = case["means"].clone();
    for row in means.as_array_mut().unwrap() {
        row.as_object_mut().unwrap().retain(|name, _| names.contains(&name.as_str()));
    }
    let read = rows::read(layout, &bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
    assert_eq!(Value::Array(read), means, "{name}");
    if is_plain(case, &names, &bytes) {
        assert_eq!(rows::write(layout, &means).unwrap(), bytes, "{name}");
    }
}

/// That the server takes a request: with rows, one for each operation, or with a refusal
/// where the file knows of it.
fn check_request(case: &Value) {
    let name = case["name"].as_str().unwrap();
    let server = Server::new(Engine::Memory { slices: 1 }, Mode::default());
    let paths = if name.contains("hierarchical") {
        json!({ "paths": ["/t", "/u", "/s"], "kind": "MultiHash", "version": 2 })
    } else {
        json!({ "paths": ["/pk"], "kind": "Hash", "version": 2 })
    };
    let container = json!({ "id": "c", "partitionKey": paths });
    for (link, body) in [("/dbs", json!({ "id": "d" })), ("/dbs/d/colls", container)] {
        server.send("POST", link, &[], body.to_string().into_bytes(), "name");
    }
    let headers = case["headers"].as_object().unwrap().iter();
    let headers: Vec<_> =
        headers.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect();
    let bytes = rows::from_hex(case["hex"].as_str().unwrap()).unwrap();
    let answer = server.send("POST", "/dbs/d/colls/c/docs", &headers, bytes, "name");
    let operations = case["means"].as_array().unwrap();
    let no_key = name.contains("no key header");
    match answer.status().as_u16() {
        400 if no_key => {}
        200 | 207 if !no_key => {
            assert_eq!(answer.headers()["content-type"], "application/octet-stream", "{name}");
            let results = rows::read(&RESULT, answer.body()).unwrap();
            assert_eq!(results.len(), operations.len(), "{name}");
            let statuses: Vec<i64> = results.iter().map(status_of).collect();
            assert_eq!(statuses, expected(case), "{name}");
            let is_good = statuses.iter().all(|status| (200..300).contains(status));
            assert_eq!(answer.status() == 200, is_good, "{name}");
            for (operation, result) in operations.iter().zip(&results) {
                check_result(name, operation, result);
            }
        }
        status => panic!("{name}: {status} {}", String::from_utf8_lossy(answer.body())),
    }
}

fn status_of(result: &Value) -> i64 {
    result["statusCode"].as_i64().unwrap()
}

/// What each operation of a request answers where nothing is stored, as far as it can be told
/// by which items are there: the conditions of patches are true of those that were recorded.
fn expected(case: &Value) -> Vec<i64> {
    let is_atomic = case["headers"]["x-ms-cosmos-batch-atomic"] == "True";
    let mut there = HashSet::new();
    let mut statuses = Vec::new();
    for (number, operation) in case["means"].as_array().unwrap().iter().enumerate() {
        let body = operation["resourceBody"]
            .as_str()
            .and_then(|text| json_of(text)["id"].as_str().map(ToOwned::to_owned));
        let id = operation["id"].as_str().map(ToOwned::to_owned).or(body);
        // Binary JSON is another item each time.
        let place =
            (operation["partitionKey"].to_string(), id.unwrap_or_else(|| number.to_string()));
        let is_there = there.contains(&place);
        let is_meant = operation["ifMatch"].as_str().is_none_or(|etag| etag == "*");
        let (status, stays) = match (operation["operationType"].as_i64().unwrap(), is_there) {
            (CREATE, true) => (409, true),
            (CREATE | UPSERT, false) => (201, true),
            (READ, true) if operation["ifNoneMatch"] == "*" => (304, true),
            (READ, true) => (200, true),
            (_, false) => (404, false),
            (_, true) if !is_meant => (412, true),
            (DELETE, true) => (204, false),
            (_, true) => (200, true),
        };
        if stays {
            there.insert(place)
        } else {
            there.remove(&place)
        };
        statuses.push(status);
    }
    let failed = statuses.iter().position(|status| *status >= 400).filter(|_| is_atomic);
    if let Some(failed) = failed {
        let dependent = |(place, status)| if place == failed { status } else { 424 };
        return statuses.into_iter().enumerate().map(dependent).collect();
    }
    statuses
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// What a row of an answer has and has not.
fn check_result(name: &str, operation: &Value, result: &Value) {
    let has = |field: &str| result.get(field).is_some();
    let status = status_of(result);
    let is_minimal = operation["minimalReturnPreference"] == true;
    let is_item = matches!(status, 200 | 201);
    assert_eq!(has("eTag"), is_item || status == 304, "{name}: {result}");
    let has_body = if is_item { !is_minimal } else { status >= 400 && status != 424 };
    assert_eq!(has("resourceBody"), has_body, "{name}: {result}");
    assert_eq!(result["requestCharge"] == 0.0, status == 424, "{name}: {result}");
    assert_eq!(result["subStatusCode"], 0, "{name}: {result}");
    if is_item && has_body {
        let shown = json_of(result["resourceBody"].as_str().unwrap());
        assert_eq!(shown["_etag"], result["eTag"], "{name}: {result}");
    }
}

#[test]
fn known_rows() {
    let Some(cases) = std::env::var_os("DAYFLY_QUERY_CASES") else {
        println!("DAYFLY_QUERY_CASES names no file: no known rows were run.");
        return;
    };
    let path = Path::new(&cases).with_file_name("hybridrow-fixtures.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("There is no hybridrow-fixtures.jsonl beside the known queries: none were run.");
        return;
    };
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        check_bytes(&case);
        if case["direction"] == "request" {
            check_request(&case);
        }
    }
    println!("{} known bodies of rows", text.lines().count());
}
