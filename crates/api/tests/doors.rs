//! One history by two doors: random requests, each sent to one server over HTTP and to
//! another as a frame of direct mode, while time passes, items expire and are purged and the
//! default changes. The answers are the same, to the byte and to the figure, and both are
//! those of a model that knows only "once dead, dead for ever".
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test")]

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Response;
use proptest::prelude::*;
use serde_json::{Value, json};
use server::{Engine, Mode, Server};

#[path = "scenarios/frames.rs"]
#[allow(dead_code, reason = "the scripts use more of it")]
mod frames;
#[path = "scenarios/server.rs"]
#[allow(dead_code, reason = "the scripts use more of it")]
mod server;

const ITEMS: &str = "/dbs/d/colls/c/docs";

/// What happens next.
#[derive(Clone, Debug)]
enum Next {
    /// An item is sent: how, which one, with which life.
    Write(&'static str, u8, u8, Option<i32>),
    Read(u8, u8),
    Delete(u8, u8),
    Patch(u8, u8, i32),
    /// Of one partition, or of all.
    Query(Option<u8>, usize),
    List(Option<u8>, usize),
    /// Two items, all or nothing.
    Batch(u8, u8, u8),
    Pass(u64),
    Purge,
    Default(Option<i32>),
}

fn next() -> impl Strategy<Value = Next> {
    let id = || 0_u8..5;
    let key = || 0_u8..3;
    let ttl = proptest::option::of(prop_oneof![Just(-1), 1..12_i32]);
    prop_oneof![
        6 => (prop_oneof![Just("create"), Just("upsert"), Just("replace")], id(), key(), ttl)
            .prop_map(|(how, id, key, ttl)| Next::Write(how, id, key, ttl)),
        4 => (id(), key()).prop_map(|(id, key)| Next::Read(id, key)),
        2 => (id(), key()).prop_map(|(id, key)| Next::Delete(id, key)),
        2 => (id(), key(), 1..9_i32).prop_map(|(id, key, to)| Next::Patch(id, key, to)),
        3 => (proptest::option::of(key()), 1..4_usize).prop_map(|(key, page)| Next::Query(key, page)),
        3 => (proptest::option::of(key()), 1..4_usize).prop_map(|(key, page)| Next::List(key, page)),
        1 => (id(), id(), key()).prop_map(|(a, b, key)| Next::Batch(a, b, key)),
        4 => (1_u64..5).prop_map(Next::Pass),
        1 => Just(Next::Purge),
        1 => proptest::option::of(prop_oneof![Just(-1), 1..10_i32]).prop_map(Next::Default),
    ]
}

/// What the model knows of an item that was written: when, and its `ttl`.
#[derive(Clone, Copy, Debug)]
struct Written {
    at: u64,
    ttl: Option<i32>,
}

/// The items that are alive, by id and key; and the default.
#[derive(Default)]
struct Model {
    alive: BTreeMap<(u8, u8), Written>,
    default: Option<i32>,
}

impl Model {
    /// What has died by now is gone, whatever the default becomes.
    fn bury(&mut self, now: u64) {
        let Some(default) = self.default else { return };
        self.alive.retain(|_, written| match written.ttl.unwrap_or(default) {
            -1 => true,
            life => now < written.at + u64::try_from(life).unwrap(),
        });
    }

    fn write(&mut self, id: u8, key: u8, at: u64, ttl: Option<i32>) {
        self.alive.insert((id, key), Written { at, ttl });
    }

    /// How many there are, of one partition or of all.
    fn count(&self, key: Option<u8>) -> usize {
        self.alive.keys().filter(|(_, of)| key.is_none_or(|key| key == *of)).count()
    }
}

/// Both servers, when it is, and what should be in them.
struct Twins {
    http: Server,
    direct: Server,
    second: u64,
    model: Model,
}

impl Twins {
    fn new() -> Twins {
        let server = |engine| Server::new(engine, Mode::default());
        let mut twins = Twins {
            http: server(Engine::Memory { slices: 1 }),
            direct: server(Engine::Frames),
            second: 1000,
            model: Model::default(),
        };
        twins.pass(0);
        twins.ask("POST", "/dbs", &[], &json!({"id": "d"}));
        twins.define("POST", "/dbs/d/colls", Some(8));
        twins
    }

    fn pass(&mut self, seconds: u64) {
        self.second += seconds;
        for server in [&self.http, &self.direct] {
            server.clock(self.second);
        }
        self.model.bury(self.second);
    }

    fn define(&mut self, verb: &str, path: &str, ttl: Option<i32>) {
        let mut definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"]}});
        if let Some(ttl) = ttl {
            definition["defaultTtl"] = ttl.into();
        }
        self.ask(verb, path, &[], &definition);
        self.model.default = ttl;
        self.model.bury(self.second);
    }

    /// Asks both, and compares. Returns the answer.
    fn ask(
        &self,
        verb: &str,
        path: &str,
        more: &[(&str, String)],
        body: &Value,
    ) -> Response<Bytes> {
        let headers: Vec<(String, String)> =
            more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let over_http = self.http.send(verb, path, &headers, body.clone(), "name");
        let framed = self.direct.send_framed(verb, path, &headers, &body, "name");
        let framed = framed.expect("a frame can say it").unwrap();
        assert_eq!(told(&over_http), told(&framed), "{verb} {path} {headers:?}");
        framed
    }

    /// Asks for all pages. Returns how many items they have.
    fn pages(&self, verb: &str, headers: &[(&str, String)], body: &Value) -> usize {
        let (mut headers, mut count) = (headers.to_vec(), 0);
        loop {
            let page = self.ask(verb, ITEMS, &headers, body);
            let found: Value = serde_json::from_slice(page.body()).unwrap();
            count += found["Documents"].as_array().unwrap().len();
            let Some(token) = page.headers().get("x-ms-continuation") else { return count };
            headers.retain(|(name, _)| *name != "x-ms-continuation");
            headers.push(("x-ms-continuation", token.to_str().unwrap().to_owned()));
        }
    }

    fn step(&mut self, next: &Next) {
        let path = |id: &u8| format!("{ITEMS}/{id}");
        let of = |key: &u8| ("x-ms-documentdb-partitionkey", json!([key]).to_string());
        match next {
            Next::Write(how, id, key, ttl) => self.write(how, *id, *key, *ttl),
            Next::Read(id, key) => {
                let read = self.ask("GET", &path(id), &[of(key)], &Value::Null);
                self.is_as_alive(&read, *id, *key, 200);
            }
            Next::Delete(id, key) => {
                let gone = self.ask("DELETE", &path(id), &[of(key)], &Value::Null);
                self.is_as_alive(&gone, *id, *key, 204);
                self.model.alive.remove(&(*id, *key));
            }
            Next::Patch(id, key, to) => {
                let change = json!({"operations": [{"op": "set", "path": "/ttl", "value": to}]});
                let patched = self.ask("PATCH", &path(id), &[of(key)], &change);
                self.is_as_alive(&patched, *id, *key, 200);
                if patched.status() == 200 {
                    self.model.write(*id, *key, self.second, Some(*to));
                }
            }
            Next::Query(key, page) => {
                let query = json!({"query": "SELECT * FROM c WHERE c.n > 0 ORDER BY c.n"});
                let page = ("x-ms-max-item-count", page.to_string());
                let kind = ("content-type", "application/query+json".to_owned());
                let part = key.as_ref().map_or_else(every_range, of);
                let found = self.pages("POST", &[kind, page, part], &query);
                assert_eq!(found, self.model.count(*key));
            }
            Next::List(key, page) => {
                let page = ("x-ms-max-item-count", page.to_string());
                let part = key.as_ref().map_or_else(every_range, of);
                let found = self.pages("GET", &[page, part], &Value::Null);
                assert_eq!(found, self.model.count(*key));
            }
            Next::Batch(first, second, key) => self.batch(*first, *second, *key),
            Next::Pass(seconds) => self.pass(*seconds),
            Next::Purge => {
                self.http.purge();
                self.direct.purge();
            }
            Next::Default(ttl) => self.define("PUT", "/dbs/d/colls/c", *ttl),
        }
    }

    /// What is done to an item succeeds if it is alive, and there is none else.
    fn is_as_alive(&self, answer: &Response<Bytes>, id: u8, key: u8, good: u16) {
        let expected = if self.model.alive.contains_key(&(id, key)) { good } else { 404 };
        assert_eq!(answer.status(), expected, "{id} {key} at {}", self.second);
    }

    fn write(&mut self, how: &str, id: u8, key: u8, ttl: Option<i32>) {
        let mut item = self.item(id, key);
        if let Some(ttl) = ttl {
            item["ttl"] = ttl.into();
        }
        let of = ("x-ms-documentdb-partitionkey", json!([key]).to_string());
        let upsert = ("x-ms-documentdb-is-upsert", "true".to_owned());
        let is_alive = self.model.alive.contains_key(&(id, key));
        let (answer, expected) = match (how, is_alive) {
            ("create", true) => (self.ask("POST", ITEMS, &[of], &item), 409),
            ("create", false) => (self.ask("POST", ITEMS, &[of], &item), 201),
            ("upsert", true) => (self.ask("POST", ITEMS, &[of, upsert], &item), 200),
            ("upsert", false) => (self.ask("POST", ITEMS, &[of, upsert], &item), 201),
            (_, true) => (self.ask("PUT", &format!("{ITEMS}/{id}"), &[of], &item), 200),
            (_, false) => (self.ask("PUT", &format!("{ITEMS}/{id}"), &[of], &item), 404),
        };
        assert_eq!(answer.status(), expected, "{how} {id} {key} at {}", self.second);
        if expected < 300 {
            self.model.write(id, key, self.second, ttl);
        }
    }

    /// Two creates: both of them, or none.
    fn batch(&mut self, first: u8, second: u8, key: u8) {
        let create = |id| json!({"operationType": "Create", "resourceBody": self.item(id, key)});
        let body = json!([create(first), create(second)]);
        let headers = [
            ("x-ms-documentdb-partitionkey", json!([key]).to_string()),
            ("x-ms-cosmos-is-batch-request", "true".to_owned()),
            ("x-ms-cosmos-batch-atomic", "true".to_owned()),
        ];
        let answer = self.ask("POST", ITEMS, &headers, &body);
        let is_free = |id| !self.model.alive.contains_key(&(id, key));
        let is_good = first != second && is_free(first) && is_free(second);
        assert_eq!(answer.status(), if is_good { 200 } else { 207 });
        if is_good {
            self.model.write(first, key, self.second, None);
            self.model.write(second, key, self.second, None);
        }
    }

    fn item(&self, id: u8, key: u8) -> Value {
        json!({"id": id.to_string(), "pk": key, "n": self.second})
    }
}

/// The container has one range.
fn every_range() -> (&'static str, String) {
    ("x-ms-documentdb-partitionkeyrangeid", "0".to_owned())
}

/// What both doors tell: the status, the body, and the figures that frames have. What is
/// living may be told a little later by the one than by the other.
fn told(answer: &Response<Bytes>) -> (u16, String, Vec<(String, Option<String>)>) {
    let figures = [
        "etag",
        "x-ms-request-charge",
        "x-ms-continuation",
        "x-ms-item-count",
        "x-ms-item-lsn",
        "x-ms-substatus",
        "x-ms-session-token",
        "x-ms-content-path",
        "x-ms-alt-content-path",
        "x-ms-documentdb-partitionkeyrangeid",
    ];
    let header = |name: &str| Some(answer.headers().get(name)?.to_str().ok()?.to_owned());
    let body = String::from_utf8_lossy(answer.body()).into_owned();
    // The name of the request is another one.
    let body = body.split("ActivityId").next().unwrap_or_default().to_owned();
    let told = figures.map(|name| (name.to_owned(), header(name)));
    (answer.status().as_u16(), body, told.into())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn one_history_has_the_same_answers_by_both_doors(
        history in proptest::collection::vec(next(), 1..60),
    ) {
        let mut twins = Twins::new();
        for next in &history {
            twins.step(next);
        }
    }
}
