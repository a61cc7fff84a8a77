//! The samples of the original pages on time to live, made as the SDK of their time makes
//! them: by an old version of the API, in a container of several ranges, with links that
//! the client puts together from the answers, and with every session token that it kept.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

#[allow(dead_code, reason = "only scripts are played in frames")]
#[path = "scenarios/frames.rs"]
mod frames;
#[path = "scenarios/server.rs"]
#[allow(dead_code, reason = "the scripts use more of it")]
mod server;

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use server::{Engine, Mode, Server};

const DAY: u64 = 24 * 60 * 60;
const START: u64 = 1_000_000;

/// What the client knows of the last commit of each range.
type Tokens = BTreeMap<String, (u64, u64)>;

/// A client that keeps tokens, and dies of one that it cannot read.
struct DirectClient {
    server: Server,
    tokens: RefCell<Tokens>,
}

struct Answer {
    status: u16,
    body: Value,
    /// The link of the owner, as the answer gives it.
    owner: String,
}

impl DirectClient {
    fn new(engine: Engine) -> DirectClient {
        let server = Server::new(engine, Mode::default());
        server.clock(START);
        DirectClient { server, tokens: RefCell::default() }
    }

    /// A request, with all tokens that were kept, as the SDK sends them: those of all
    /// ranges in one.
    fn send(&self, method: &str, link: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let mut headers: Vec<_> = headers.iter().map(owned).collect();
        headers.push(("x-ms-version".to_owned(), "2018-09-17".to_owned()));
        let tokens: Vec<String> = self.tokens.borrow().iter().map(written).collect();
        if !tokens.is_empty() {
            headers.push(("x-ms-session-token".to_owned(), tokens.join(",")));
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = self.server.send(method, &format!("/{link}"), &headers, body, "name");
        let header = |name: &str| {
            answer.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned()
        };
        self.keep(&header("x-ms-session-token"));
        Answer {
            status: answer.status().as_u16(),
            body: serde_json::from_slice(answer.body()).unwrap_or_default(),
            owner: header("x-ms-alt-content-path"),
        }
    }

    /// Reads a token as the SDK does: the range up to the first colon, a version, a commit.
    fn keep(&self, token: &str) {
        if token.is_empty() {
            return;
        }
        let (range, rest) = token.split_once(':').unwrap();
        let (version, lsn) = rest.split_once('#').unwrap();
        let seen = (version.parse().unwrap(), lsn.parse().expect("a token of one range"));
        let mut tokens = self.tokens.borrow_mut();
        let kept = tokens.entry(range.to_owned()).or_insert(seen);
        *kept = (*kept).max(seen);
    }

    fn at(&self, seconds: u64) {
        self.server.clock(START + seconds);
    }
}

fn written((range, (version, lsn)): (&String, &(u64, u64))) -> String {
    format!("{range}:{version}#{lsn}")
}

/// The container of the samples.
struct Collection {
    client: DirectClient,
    link: String,
    definition: Value,
}

impl Collection {
    fn new(engine: Engine) -> Collection {
        let client = DirectClient::new(engine);
        let database = client.send("POST", "dbs", &[], &json!({"id": "store"}));
        assert_eq!(database.status, 201);
        let units = ("x-ms-offer-throughput", "20000");
        let definition = json!({
            "id": "baskets",
            "partitionKey": {"paths": ["/shopper"], "kind": "Hash"},
            "defaultTtl": 90 * DAY,
        });
        let made = client.send("POST", "dbs/store/colls", &[units], &definition);
        assert_eq!(made.status, 201);
        // The SDK makes the link of what it got from that of its owner.
        let link = format!("{}/colls/{}", made.owner, made.body["id"].as_str().unwrap());
        Collection { client, link, definition: made.body }
    }

    /// Reads the container, changes its default, and replaces it by what was read.
    fn set_default(&mut self, default: Option<i64>) {
        let read = self.client.send("GET", &self.link, &[], &Value::Null);
        assert_eq!((read.status, &*read.owner), (200, "dbs/store"));
        let mut definition = read.body;
        match default {
            Some(default) => definition["defaultTtl"] = default.into(),
            None => {
                definition.as_object_mut().unwrap().remove("defaultTtl");
            }
        }
        let by_rid = definition["_self"].as_str().unwrap().trim_end_matches('/').to_owned();
        let replaced = self.client.send("PUT", &by_rid, &[], &definition);
        assert_eq!(replaced.status, 200, "{}", replaced.body);
        assert_eq!(replaced.body.get("defaultTtl").and_then(Value::as_i64), default);
        self.definition = replaced.body;
    }

    fn create(&self, id: &str, shopper: &str, ttl: Option<i64>) {
        let mut item = json!({"id": id, "shopper": shopper, "sum": 12.5});
        if let Some(ttl) = ttl {
            item["ttl"] = ttl.into();
        }
        let docs = format!("{}/docs", self.link);
        let made = self.client.send("POST", &docs, &[key(&quoted(shopper))], &item);
        assert_eq!((made.status, made.owner), (201, self.link.clone()), "{}", made.body);
    }

    fn read(&self, id: &str, shopper: &str) -> Answer {
        let link = format!("{}/docs/{id}", self.link);
        self.client.send("GET", &link, &[key(&quoted(shopper))], &Value::Null)
    }

    /// Reads an item, gives it another `ttl`, and replaces it by its own link.
    fn change(&self, id: &str, shopper: &str, ttl: Option<i64>) {
        let mut item = self.read(id, shopper).body;
        match ttl {
            Some(ttl) => item["ttl"] = ttl.into(),
            None => {
                item.as_object_mut().unwrap().remove("ttl");
            }
        }
        let link = item["_self"].as_str().unwrap().trim_end_matches('/').to_owned();
        let replaced = self.client.send("PUT", &link, &[key(&quoted(shopper))], &item);
        assert_eq!(replaced.status, 200, "{}", replaced.body);
    }

    /// Which of these are there: by their ids, and by a query of each shopper.
    fn alive(&self, items: &[(&'static str, &str)]) -> Vec<&'static str> {
        let mut alive = Vec::new();
        for &(id, shopper) in items {
            let found = self.read(id, shopper).status == 200;
            let kind = ("content-type", "application/query+json");
            let query = json!({
                "query": "SELECT VALUE c.id FROM c WHERE c.id = @id",
                "parameters": [{"name": "@id", "value": id}],
            });
            let docs = format!("{}/docs", self.link);
            let rows = self.client.send("POST", &docs, &[kind, key(&quoted(shopper))], &query);
            assert_eq!(rows.status, 200, "{}", rows.body);
            assert_eq!(rows.body["_count"], json!(u8::from(found)), "{id}");
            if found {
                alive.push(id);
            }
        }
        alive
    }
}

fn quoted(shopper: &str) -> String {
    format!("[\"{shopper}\"]")
}

fn key(value: &str) -> (&str, &str) {
    ("x-ms-documentdb-partitionkey", value)
}

fn engines() -> [Engine; 3] {
    [Engine::Memory { slices: 1 }, Engine::Memory { slices: 4 }, Engine::Disk]
}

#[test]
fn a_default_and_items_that_say_otherwise() {
    for engine in engines() {
        let shop = Collection::new(engine);
        let items = [("plain", "ann"), ("short", "bob"), ("long", "cleo"), ("ever", "dan")];
        let day = i64::try_from(DAY).unwrap();
        shop.create("plain", "ann", None);
        shop.create("short", "bob", Some(5 * day));
        shop.create("long", "cleo", Some(200 * day));
        shop.create("ever", "dan", Some(-1));
        for (seconds, expected) in [
            (5 * DAY - 1, &["plain", "short", "long", "ever"][..]),
            (5 * DAY, &["plain", "long", "ever"]),
            (90 * DAY - 1, &["plain", "long", "ever"]),
            (90 * DAY, &["long", "ever"]),
            (200 * DAY - 1, &["long", "ever"]),
            (200 * DAY, &["ever"]),
            (4000 * DAY, &["ever"]),
        ] {
            shop.client.at(seconds);
            assert_eq!(shop.alive(&items), expected, "{engine:?}, second {seconds}");
        }
    }
}

#[test]
fn a_life_is_extended_and_taken_back() {
    for engine in engines() {
        let mut shop = Collection::new(engine);
        shop.set_default(Some(-1));
        let items = [("one", "ann"), ("two", "bob"), ("three", "cleo"), ("four", "dan")];
        for (id, shopper) in items {
            shop.create(id, shopper, Some(100));
        }
        shop.client.at(60);
        // Extended by its own length, given another, left to the container, kept for ever.
        shop.change("one", "ann", Some(100));
        shop.change("two", "bob", Some(10));
        shop.change("three", "cleo", None);
        shop.change("four", "dan", Some(-1));
        for (seconds, expected) in [
            (69, &["one", "two", "three", "four"][..]),
            (70, &["one", "three", "four"]),
            (159, &["one", "three", "four"]),
            (160, &["three", "four"]),
            (100_000, &["three", "four"]),
        ] {
            shop.client.at(seconds);
            assert_eq!(shop.alive(&items), expected, "{engine:?}, second {seconds}");
        }
        // A default counts for what says nothing itself, from its last change.
        shop.set_default(Some(100_000));
        assert_eq!(shop.alive(&items), ["three", "four"]);
        shop.client.at(100_060);
        assert_eq!(shop.alive(&items), ["four"]);
    }
}

#[test]
fn what_is_switched_off_expires_nothing_and_brings_nothing_back() {
    for engine in engines() {
        let mut shop = Collection::new(engine);
        shop.set_default(Some(-1));
        let items = [("gone", "ann"), ("due", "bob"), ("later", "cleo"), ("plain", "dan")];
        shop.create("gone", "ann", Some(10));
        shop.create("due", "bob", Some(50));
        shop.create("later", "cleo", Some(500));
        shop.create("plain", "dan", None);
        shop.client.at(20);
        assert_eq!(shop.alive(&items), ["due", "later", "plain"]);
        shop.set_default(None);
        shop.client.at(100);
        assert_eq!(shop.alive(&items), ["due", "later", "plain"]);
        // Who is past its end when time to live is on again is gone at once.
        shop.set_default(Some(-1));
        assert_eq!(shop.alive(&items), ["later", "plain"]);
        shop.client.at(499);
        assert_eq!(shop.alive(&items), ["later", "plain"]);
        shop.client.at(500);
        assert_eq!(shop.alive(&items), ["plain"]);
        shop.client.server.purge();
        assert_eq!(shop.alive(&items), ["plain"]);
    }
}
