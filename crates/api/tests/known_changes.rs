//! Plays a file of exchanges of .NET's change feed and its processor, which that took:
//! `feed-fixtures.jsonl`, beside the file that `DAYFLY_QUERY_CASES` names. Each line is a JSON
//! object with a `request`, and the `answer` to it.
//!
//! What was written before is written here, so that the same commits have the same numbers.
//! What names a container or a version there, names ours: RIDs, their number in a session
//! token, and etags of items.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may panic"
)]

#[allow(dead_code, reason = "only scripts are played in frames")]
#[path = "scenarios/frames.rs"]
mod frames;
#[path = "scenarios/server.rs"]
#[allow(dead_code, reason = "the scripts use more of it")]
mod server;

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use server::{Engine, Mode, Server};

/// When the first of them was written.
const BEGAN: u64 = 1_794_848_621;

/// Answers say so of themselves, in the same words.
const TOLD: [&str; 4] =
    ["x-ms-item-count", "x-ms-substatus", "x-ms-documentdb-partitionkeyrangeid", "lsn"];

struct Play {
    server: Server,
    cases: BTreeMap<String, Value>,
    played: usize,
}

impl Play {
    fn new(cases: &str) -> Play {
        let cases = cases.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let cases = cases.map(|case| (case["name"].as_str().unwrap().to_owned(), case)).collect();
        let server = Server::new(Engine::Memory { slices: 1 }, Mode::default());
        server.clock(BEGAN);
        let play = Play { server, cases, played: 0 };
        play.must("POST", "/dbs", &[], &json!({ "id": "d" }));
        play
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &Value,
    ) -> Response<Bytes> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        // Links by RID are signed by it alone.
        let sign = if path == "/dbs" || path.starts_with("/dbs/d") { "name" } else { "rid" };
        self.server.send(method, path, headers, body.into_bytes(), sign)
    }

    fn must(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Value {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let answer = self.send(method, path, &headers, body);
        assert!(answer.status().is_success(), "{method} {path}: {answer:?}");
        serde_json::from_slice(answer.body()).unwrap_or_default()
    }

    fn container(&self, id: &str, key: Value) {
        self.must("POST", "/dbs/d/colls", &[], &json!({ "id": id, "partitionKey": key }));
    }

    fn upsert(&self, container: &str, item: Value) {
        let path = format!("/dbs/d/colls/{container}/docs");
        self.must("POST", &path, &[("x-ms-documentdb-is-upsert", "true")], &item);
    }

    fn delete(&self, container: &str, id: &str, key: &str) {
        let path = format!("/dbs/d/colls/{container}/docs/{id}");
        let key = json!([key]).to_string();
        self.must("DELETE", &path, &[("x-ms-documentdb-partitionkey", &key)], &Value::Null);
    }

    /// Here some of an answer is another one.
    fn differs(&mut self, name: &str, parts: &[(&str, Value)]) {
        let case = self.cases.get_mut(name).unwrap();
        for (pointer, value) in parts {
            *case.pointer_mut(pointer).unwrap() = value.clone();
        }
    }

    /// Asks as .NET did, and compares the answers.
    fn exchange(&mut self, name: &str) -> Response<Bytes> {
        self.exchange_with(name, &[])
    }

    /// The same with other texts instead of some, which have no meaning here.
    fn exchange_with(&mut self, name: &str, instead: &[(&str, &str)]) -> Response<Bytes> {
        let case = self.cases.remove(name).unwrap_or_else(|| panic!("There is no case '{name}'"));
        let (request, expected) = (&case["request"], &case["answer"]);
        let path = with(request["path"].as_str().unwrap(), instead);
        let headers = request["headers"].as_object().unwrap().iter();
        let headers = headers.map(|(header, value)| {
            let value = with(value.as_str().unwrap(), instead);
            match header.as_str() {
                "x-ms-session-token" => (header.clone(), self.in_session(&path, &value)),
                _ => (header.clone(), value),
            }
        });
        let headers: Vec<(String, String)> = headers.collect();
        let answer =
            self.send(request["method"].as_str().unwrap(), &path, &headers, &request["body"]);
        println!("{name}: {}", answer.status());
        assert_eq!(answer.status().as_u16(), expected["status"], "{name}: {answer:?}");
        for header in TOLD {
            if let Some(value) = expected["headers"][header].as_str() {
                assert_eq!(answer.headers()[header], value, "{header} of {name}");
            }
        }
        if let Some(token) = expected["headers"]["x-ms-session-token"].as_str() {
            let token = self.in_session(&path, token);
            assert_eq!(answer.headers()["x-ms-session-token"], token.as_str(), "{name}");
        }
        if request["method"] == "GET" && path.ends_with("/docs") && answer.status() != 410 {
            let etag = expected["headers"]["etag"].as_str().unwrap();
            assert_eq!(answer.headers()["etag"], etag, "{name}");
        }
        let mut body = serde_json::from_slice(answer.body()).unwrap_or(Value::Null);
        let mut told = expected["body"].clone();
        [&mut body, &mut told].into_iter().for_each(forget_names);
        assert_eq!(body, told, "{name}");
        self.played += 1;
        answer
    }

    /// A session token of ours, for the same commit.
    fn in_session(&self, path: &str, token: &str) -> String {
        let container = path.rsplit_once('/').unwrap().0.split("/docs").next().unwrap();
        let headers = [("x-ms-documentdb-partitionkey".to_owned(), "[\"none\"]".to_owned())];
        let answer = self.send("GET", &format!("{container}/docs/none"), &headers, &Value::Null);
        let ours = answer.headers()["x-ms-session-token"].to_str().unwrap();
        let (number, _) = ours.split_once(':').unwrap().1.split_once('#').unwrap();
        let (range, rest) = token.split_once(':').unwrap();
        format!("{range}:{number}#{}", rest.split_once('#').unwrap().1)
    }
}

fn with(text: &str, instead: &[(&str, &str)]) -> String {
    instead.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// What only names a resource or a version is another one here; an error has its own words.
fn forget_names(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for name in ["_rid", "_self", "_etag", "message", "ridPrefix"] {
                members.remove(name);
            }
            members.values_mut().for_each(forget_names);
        }
        Value::Array(elements) => elements.iter_mut().for_each(forget_names),
        _ => {}
    }
}

fn key(path: &str) -> Value {
    json!({ "paths": [path], "kind": "Hash", "version": 2 })
}

fn latest_versions(play: &mut Play) {
    play.container("c", key("/pk"));
    let item = |number: u64| json!({ "id": format!("i{number}"), "pk": format!("p{}", number % 2), "n": number });
    (0..5).for_each(|number| play.upsert("c", item(number)));
    play.upsert("c", json!({ "id": "i0", "pk": "p0", "n": 10 }));
    play.delete("c", "i1", "p1");
    play.exchange("lv from beginning, page hint 2, first page");
    play.exchange("lv, nothing new");
    play.exchange("lv from now");
    play.upsert("c", json!({ "id": "after", "pk": "p0", "n": 0 }));
    play.server.clock(BEGAN + 10);
    play.upsert("c", json!({ "id": "late", "pk": "p1", "n": 0 }));
    play.exchange("lv from a time, first request");
    play.exchange("lv of a partition key, following a token");
    play.exchange("lv of a part of a range: x-ms-start-epk is sent empty");
    play.server.clock(BEGAN + 11);
    play.container("h", json!({ "paths": ["/t", "/u"], "kind": "MultiHash", "version": 2 }));
    for (t, u) in [("a", "1"), ("a", "2"), ("b", "1")] {
        play.upsert("h", json!({ "id": format!("{t}{u}"), "t": t, "u": u }));
    }
    play.exchange("lv of a prefix of a hierarchical key");
}

fn all_versions(play: &mut Play) {
    play.server.clock(BEGAN + 66);
    let policy = json!({ "id": "av", "partitionKey": key("/pk"), "defaultTtl": -1,
        "changeFeedPolicy": { "retentionDuration": 10 } });
    play.must("POST", "/dbs/d/colls", &[], &policy);
    play.exchange("avad from now");
    (1..4).for_each(|n| play.upsert("av", json!({ "id": "1", "pk": "a", "n": n })));
    play.delete("av", "1", "a");
    play.exchange("avad create, replace, upsert, delete");
    (6..18).for_each(|n| play.upsert("av", json!({ "id": "more", "pk": "a", "n": n })));
    play.upsert("av", json!({ "id": "t", "pk": "a", "n": 1, "ttl": 5 }));
    play.server.clock(BEGAN + 71);
    play.server.background();
    // A burial was imitated there, and no commit.
    play.differs(
        "avad create and expiry",
        &[
            ("/answer/headers/lsn", json!("19")),
            ("/answer/headers/x-ms-session-token", json!("0:13#19")),
        ],
    );
    play.exchange("avad create and expiry");
}

fn a_processor(play: &mut Play) {
    play.server.clock(BEGAN + 126);
    play.container("elease", key("/id"));
    play.exchange("processor: query of the leases");
    play.exchange("processor: lock");
    let lease = play.exchange("processor: lease is made");
    let etag = lease.headers()["etag"].to_str().unwrap().to_owned();
    play.upsert("elease", json!({ "id": "ep127.0.0.1_AAAABg==_AAAABoAAABU=.info" }));
    let lock = "ep127.0.0.1_AAAABg==_AAAABoAAABU=.lock";
    play.delete("elease", lock, lock);
    let theirs = "\"00000016-0000-0001-0000-000000003001\"";
    play.exchange_with("processor: lease is taken", &[(theirs, &etag)]);
}

fn an_estimator(play: &mut Play) {
    play.server.clock(BEGAN + 127);
    play.container("em", key("/pk"));
    for id in ["a0", "a1", "a2", "b0", "b1", "b2", "b3", "b4"] {
        play.upsert("em", json!({ "id": id, "pk": "p", "n": 0 }));
    }
    play.exchange("estimator with 5 unread: page of 1, lag = 9-5+1");
}

fn a_division(play: &mut Play) {
    play.server.clock(BEGAN + 128);
    play.container("slease", key("/id"));
    play.container("sn", key("/pk"));
    for batch in ["a", "b"] {
        for n in 0..10 {
            let (id, pk) = (format!("{batch}{n}"), format!("p{n}"));
            play.upsert("sn", json!({ "id": id, "pk": pk, "n": 0 }));
        }
    }
    let (database, container) = ("/dbs/d", "/dbs/d/colls/sn");
    let rid = |path| play.must("GET", path, &[], &Value::Null)["_rid"].as_str().unwrap().to_owned();
    let (database, rid) = (rid(database), rid(container));
    let before = play.send("GET", &format!("{container}/pkranges"), &[], &Value::Null);
    let etag = before.headers()["etag"].to_str().unwrap().to_owned();
    play.must("POST", "/_admin/v1/containers/d/sn/split", &[], &Value::Null);
    // A division was imitated there, too, and halves nothing.
    let ranges = "split: ranges with the old etag";
    for range in ["0", "1"] {
        let range = format!("/answer/body/PartitionKeyRanges/{range}");
        play.differs(
            ranges,
            &[
                (&format!("{range}/_lsn"), json!(22)),
                (&format!("{range}/throughputFraction"), json!(0.5)),
            ],
        );
    }
    play.differs(
        "split: child follows with the token of the parent",
        &[
            ("/answer/headers/lsn", json!("22")),
            ("/answer/headers/etag", json!("\"22\"")),
            ("/answer/headers/x-ms-session-token", json!("1:25#22")),
        ],
    );
    play.exchange("split: processor asks the parent");
    let theirs = "\"00000000-0000-0019-0000-000000000001\"";
    let instead = [("AAAABg==", &*database), ("AAAABoAAABk=", &*rid), (theirs, &*etag)];
    play.exchange_with(ranges, &instead);
    (0..6).for_each(|n| play.upsert("slease", json!({ "id": format!("{n}") })));
    play.exchange("split: lease of a child is made with the token of the parent");
    play.exchange("split: child follows with the token of the parent");
}

#[test]
fn known_changes() {
    let Some(cases) = std::env::var_os("DAYFLY_QUERY_CASES") else {
        println!("DAYFLY_QUERY_CASES names no file: no known changes were run.");
        return;
    };
    let path = Path::new(&cases).with_file_name("feed-fixtures.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("There is no feed-fixtures.jsonl beside the known queries: none were run.");
        return;
    };
    let mut play = Play::new(&text);
    for part in [latest_versions, all_versions, a_processor, an_estimator, a_division] {
        part(&mut play);
    }
    assert!(play.cases.is_empty(), "not played: {:?}", play.cases.keys());
    println!("{} known exchanges", play.played);
}
