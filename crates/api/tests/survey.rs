//! Items as the portal shows them, after random histories: by key they are what a list has,
//! to the byte; by expiry they are all items sorted by what `ttl/explain` says of each, on
//! pages of any length, with changes of the default done and to come, partitions deleted, and
//! dead items purged or not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test")]

use std::collections::BTreeMap;

use dayfly_engine::QueryLimits;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use server::{Engine, Mode, Server};

#[path = "scenarios/frames.rs"]
#[allow(dead_code, reason = "the scripts use more of it")]
mod frames;
#[path = "scenarios/server.rs"]
#[allow(dead_code, reason = "the scripts use more of it")]
mod server;

const ITEMS: &str = "/dbs/d/colls/c/docs";

/// A page of items, of which each is as it is written.
#[derive(Deserialize)]
struct Page {
    items: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    item: Box<RawValue>,
}

/// What happens next.
#[derive(Clone, Debug)]
enum Next {
    /// An item is written, which one, with which `ttl`; 0: one that cannot be read.
    Write(u8, u8, Option<i32>),
    Delete(u8, u8),
    DeletePartition(u8),
    Pass(u64),
    Purge,
    /// Another default, at once or later.
    Default(Option<i32>),
    /// Many items that inherit, or live for ever, in one second.
    Many(bool),
}

fn next() -> impl Strategy<Value = Next> {
    let ttl = || proptest::option::of(prop_oneof![Just(-1), Just(0), 1..40_i32]);
    let default = proptest::option::of(prop_oneof![Just(-1), 1..30_i32]);
    prop_oneof![
        12 => (0..20_u8, 0..4_u8, ttl()).prop_map(|(id, key, ttl)| Next::Write(id, key, ttl)),
        2 => (0..20_u8, 0..4_u8).prop_map(|(id, key)| Next::Delete(id, key)),
        1 => (0..4_u8).prop_map(Next::DeletePartition),
        5 => (1..8_u64).prop_map(Next::Pass),
        1 => Just(Next::Purge),
        2 => default.prop_map(Next::Default),
        1 => any::<bool>().prop_map(Next::Many),
    ]
}

/// A server with one container, and its time.
struct Played {
    server: Server,
    now: u64,
}

impl Played {
    fn new(slices: usize, delay: u64, limits: QueryLimits) -> Played {
        let mut mode = Mode::default();
        mode.engine.change_delay_seconds = delay;
        mode.engine.query_limits = limits;
        let played = Played { server: Server::new(Engine::Memory { slices }, mode), now: 1000 };
        played.server.clock(played.now);
        played.ask("POST", "/dbs", "", &json!({"id": "d"}));
        let (status, ..) = played.ask("POST", "/dbs/d/colls", "", &container(Some(20)));
        assert_eq!(status, 201);
        played
    }

    fn ask(&self, verb: &str, path: &str, key: &str, body: &Value) -> (u16, Value, String) {
        let mut headers = vec![
            ("x-ms-documentdb-is-upsert".to_owned(), "True".to_owned()),
            ("x-ms-max-item-count".to_owned(), "1000".to_owned()),
        ];
        if !key.is_empty() {
            headers.push(("x-ms-documentdb-partitionkey".to_owned(), key.to_owned()));
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = self.server.send(verb, path, &headers, body, "name");
        let text = String::from_utf8(answer.body().to_vec()).unwrap();
        let value = serde_json::from_str(&text).unwrap_or_default();
        (answer.status().as_u16(), value, text)
    }

    fn step(&mut self, next: Next) {
        match next {
            Next::Write(id, key, ttl) => {
                let mut item = json!({"id": format!("i{id}"), "pk": key, "n": 1.0});
                match ttl {
                    Some(0) => item["ttl"] = json!("none"),
                    Some(ttl) => item["ttl"] = json!(ttl),
                    None => {}
                }
                let (status, ..) = self.ask("POST", ITEMS, &format!("[{key}]"), &item);
                assert!([200, 201, 400].contains(&status));
            }
            Next::Delete(id, key) => {
                self.ask("DELETE", &format!("{ITEMS}/i{id}"), &format!("[{key}]"), &Value::Null);
            }
            Next::DeletePartition(key) => {
                let path = "/dbs/d/colls/c/operations/partitionkeydelete";
                self.ask("POST", path, &format!("[{key}]"), &Value::Null);
            }
            Next::Pass(seconds) => {
                self.now += seconds;
                self.server.clock(self.now);
            }
            Next::Purge => self.server.purge(),
            Next::Default(ttl) => {
                let changed = self.ask("PUT", "/dbs/d/colls/c", "", &container(ttl));
                assert_eq!(changed.0, 200);
            }
            Next::Many(forever) => {
                for id in 0..40 {
                    let mut item = json!({"id": format!("m{id}"), "pk": id % 4});
                    if forever {
                        item["ttl"] = json!(-1);
                    }
                    self.ask("POST", ITEMS, &format!("[{}]", id % 4), &item);
                }
            }
        }
    }

    /// All pages of the items, put together. Each has its item as it is written there.
    fn items(&self, asked: &str) -> Vec<Value> {
        let (mut items, mut continuation) = (Vec::new(), String::new());
        for _ in 0..2000 {
            let path = format!("/_admin/v1/containers/d/c/items?{asked}{continuation}");
            let (status, mut page, text) = self.ask("GET", &path, "", &Value::Null);
            assert_eq!(status, 200, "{text}");
            assert_eq!(page["now"], self.now);
            let Value::Array(mut more) = page["items"].take() else { panic!("{text}") };
            let Page { items: written } = serde_json::from_str(&text).unwrap();
            for (row, Row { item }) in more.iter_mut().zip(written) {
                row["item"] = json!(item.get());
            }
            items.extend(more);
            match page["continuation"].as_str() {
                Some(next) => continuation = format!("&continuation={next}"),
                None => return items,
            }
        }
        panic!("it never ends");
    }

    /// The texts of all items, as the REST API lists them.
    fn listed(&self) -> String {
        let (mut listed, mut headers) = (Vec::new(), Vec::new());
        loop {
            let answer = self.server.send("GET", ITEMS, &headers, Vec::new(), "name");
            let text = String::from_utf8(answer.body().to_vec()).unwrap();
            let (_, rest) = text.split_once("\"Documents\":[").unwrap();
            let (texts, _) = rest.rsplit_once("],\"_count\":").unwrap();
            listed.extend((!texts.is_empty()).then(|| texts.to_owned()));
            let Some(next) = answer.headers().get("x-ms-continuation") else { break };
            let name = "x-ms-continuation".to_owned();
            headers = vec![(name, next.to_str().unwrap().to_owned())];
        }
        listed.join(",")
    }

    fn check(&self, limit: u32, within: u64) {
        // By key: what a list has, in its order, to the byte.
        let by_key = self.items(&format!("order=key&limit={limit}"));
        let texts: Vec<&str> = by_key.iter().map(|item| item["item"].as_str().unwrap()).collect();
        assert_eq!(texts.join(","), self.listed());

        // Each row says what is explained of its item.
        let mut expected: BTreeMap<(String, String), Option<u64>> = BTreeMap::new();
        for item in &by_key {
            let (id, key) = (item["id"].as_str().unwrap(), item["partitionKey"].as_str().unwrap());
            let path = format!("/_admin/v1/containers/d/c/ttl/explain?id={id}&partitionKey={key}");
            let (_, told, _) = self.ask("GET", &path, "", &Value::Null);
            assert_eq!(told["state"], "live", "{item}");
            for name in ["expiresAt", "class", "ttl", "ts"] {
                assert_eq!(told[name], item[name], "{name}: {told} {item}");
            }
            let is_off = told["defaultTtl"].is_null();
            let has_ttl = item["item"].as_str().unwrap().contains("\"ttl\":");
            let is_unread = item["class"] == "uninterpretable";
            assert_eq!(item["ignored"], (is_off && has_ttl) || is_unread, "{told} {item}");
            expected.insert((id.to_owned(), key.to_owned()), told["expiresAt"].as_u64());
        }

        // By expiry: the same rows, sorted.
        let by_expiry = self.items(&format!("order=expiry&limit={limit}"));
        let ends: Vec<u64> =
            by_expiry.iter().map(|item| item["expiresAt"].as_u64().unwrap_or(u64::MAX)).collect();
        assert!(ends.is_sorted(), "{ends:?}");
        let name = |item: &Value| item["item"].as_str().unwrap().to_owned();
        let sorted = |items: &[Value]| {
            let mut items: Vec<(String, String)> =
                items.iter().map(|item| (name(item), item.to_string())).collect();
            items.sort();
            items
        };
        assert_eq!(sorted(&by_expiry), sorted(&by_key));

        // Within a time: the beginning of that.
        let asked = format!("order=expiry&limit={limit}&within={within}");
        let soon = self.items(&asked);
        let count = ends.iter().filter(|end| **end <= self.now + within).count();
        assert_eq!(soon, by_expiry[..count]);
    }
}

fn container(ttl: Option<i32>) -> Value {
    let mut body = json!({"id": "c", "partitionKey": {"paths": ["/pk"]}});
    if let Some(ttl) = ttl {
        body["defaultTtl"] = json!(ttl);
    }
    body
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn the_order_by_expiry_is_a_sort_of_all_items_by_what_is_explained(
        steps in proptest::collection::vec((next(), any::<bool>()), 1..60),
        slices in prop_oneof![Just(1_usize), Just(3)],
        delay in prop_oneof![Just(0_u64), Just(7)],
        limit in prop_oneof![Just(1_u32), Just(3), Just(7), Just(1000)],
        limits in prop_oneof![Just(QueryLimits::USUAL), Just(QueryLimits::SMALL)],
        within in 0..40_u64,
    ) {
        let mut played = Played::new(slices, delay, limits);
        for (place, (step, looks)) in steps.into_iter().enumerate() {
            played.step(step);
            if looks && place % 7 == 0 {
                played.check(limit, within);
            }
        }
        played.check(limit, within);
    }
}

/// What is dead and not purged, and what is of another kind, is stepped over by the histogram
/// and not row by row: a page gets there, however much lies before it.
#[test]
fn a_page_by_expiry_gets_past_what_is_dead_or_immortal() {
    let mut played = Played::new(1, 0, QueryLimits::USUAL);
    for round in 0..30 {
        for id in 0..20 {
            let ttl = if id % 2 == 0 { json!(-1) } else { json!(3) };
            let item = json!({"id": format!("r{round}-{id}"), "pk": 1, "ttl": ttl});
            played.ask("POST", ITEMS, "[1]", &item);
        }
        let item = json!({"id": format!("d{round}"), "pk": 1});
        played.ask("POST", ITEMS, "[1]", &item);
        played.step(Next::Pass(5));
    }
    for limit in [1, 2, 1000] {
        played.check(limit, 10);
    }
    let path = "/_admin/v1/containers/d/c/items?order=expiry&limit=4";
    let (_, page, _) = played.ask("GET", path, "", &Value::Null);
    let ids: Vec<&Value> = page["items"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, ["d27", "d28", "d29", "r0-0"]);
}
