//! Plays a file of queries with the indexes that the service tells for them:
//! `index-metrics.jsonl`, beside the file that `DAYFLY_QUERY_CASES` names. Each line is
//! a JSON object with `query` and `metrics`, for a container with the policy that all
//! have who ask for none, and the key `/Pk`. Long names have a test of their own.
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
#[path = "scenarios/server.rs"]
#[allow(dead_code, reason = "the scripts use more of it")]
mod server;

use std::path::Path;

use serde_json::{Value, json};
use server::{Engine, Mode, Server};

/// What the header of a query says.
fn metrics_of(server: &Server, query: &str) -> Value {
    let headers = [
        ("content-type", "application/query+json"),
        ("x-ms-documentdb-query-enablecrosspartition", "True"),
        ("x-ms-cosmos-populateindexmetrics-V2", "True"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let body = json!({ "query": query }).to_string().into_bytes();
    let answer = server.send("POST", "/dbs/d/colls/c/docs", &headers, body, "name");
    assert_eq!(answer.status(), 200, "{query}: {:?}", answer.body());
    let header = answer.headers()["x-ms-cosmos-index-utilization"].to_str().unwrap();
    let text = percent_encoding::percent_decode_str(header).decode_utf8().unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A server with such a container.
fn server() -> Server {
    let server = Server::new(Engine::Memory { slices: 4 }, Mode::default());
    let container = json!({ "id": "c", "partitionKey": { "paths": ["/Pk"], "kind": "Hash" } });
    for (link, body) in [("/dbs", json!({ "id": "d" })), ("/dbs/d/colls", container)] {
        let answer = server.send("POST", link, &[], body.to_string().into_bytes(), "name");
        assert_eq!(answer.status(), 201, "{:?}", answer.body());
    }
    server
}

#[test]
fn known_index_metrics() {
    let Some(cases) = std::env::var_os("DAYFLY_QUERY_CASES") else {
        println!("DAYFLY_QUERY_CASES names no file: no known index metrics were run.");
        return;
    };
    let path = Path::new(&cases).with_file_name("index-metrics.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("There is no index-metrics.jsonl beside the known queries: none were run.");
        return;
    };
    let server = server();
    let mut failures = Vec::new();
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let query = case["query"].as_str().unwrap();
        let (ours, theirs) = (metrics_of(&server, query), &case["metrics"]);
        if ours != *theirs {
            failures.push(format!("{query}\n    {ours}\n    not {theirs}"));
        }
    }
    println!("{} known index metrics were run.", text.lines().count());
    assert!(failures.is_empty(), "{} are wrong:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn long_names_are_told_in_full() {
    let (long, longer) = ("n".repeat(9_000), "m".repeat(9_500));
    let query = format!("SELECT * FROM c WHERE c.{long} = 0 AND c.{longer} > 0");
    let single = [&long, &longer].map(|name| json!({ "IndexSpec": format!("/{name}/?") }));
    let specs = [&long, &longer].map(|name| format!("/{name} ASC"));
    let composite = json!([{ "IndexSpecs": specs, "IndexImpactScore": "High" }]);
    assert_eq!(
        metrics_of(&server(), &query),
        json!({
            "UtilizedIndexes": { "SingleIndexes": single, "CompositeIndexes": [] },
            "PotentialIndexes": { "SingleIndexes": [], "CompositeIndexes": composite },
        })
    );
}
