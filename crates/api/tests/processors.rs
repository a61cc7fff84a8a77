//! Several processors of a change feed share its ranges, as those of .NET and Java do: by
//! leases that are items of another container, guarded by their etags, and with a lock for
//! who starts first, which dies by its ttl with whoever holds it.
//!
//! They are killed and begun anew at any moment, and so is the server. Each change comes to
//! one of them at least once, none is lost, and those of a key come in their order.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};

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
const LEASES: &str = "/dbs/d/colls/leases/docs";

/// How long a lock lives whose holder died, and a lease that nobody renews.
const LOCK_SECONDS: u64 = 30;
const LEASE_SECONDS: u64 = 60;

/// What happens next.
#[derive(Clone, Debug)]
enum Next {
    /// So many items are written.
    Write(u8),
    /// A host does a part of its work.
    Work(usize),
    /// A host is gone with all it knew, and another one starts in its place.
    Kill(usize),
    Pass(u64),
    Crash,
    Background,
}

fn next() -> impl Strategy<Value = Next> {
    prop_oneof![
        4 => (1..6_u8).prop_map(Next::Write),
        16 => (0..3_usize).prop_map(Next::Work),
        1 => (0..3_usize).prop_map(Next::Kill),
        3 => (1..20_u64).prop_map(Next::Pass),
        1 => Just(Next::Crash),
        1 => Just(Next::Background),
    ]
}

/// What a host does next.
#[derive(Clone, Debug, Default, PartialEq)]
enum Stage {
    /// To lock.
    #[default]
    Starts,
    /// To make the leases; the etag of the lock.
    Locked(String),
    /// To take leases, and to read.
    Runs,
}

/// A process with a processor in it.
#[derive(Default)]
struct Host {
    name: String,
    stage: Stage,
    /// Its leases, as it wrote them, by their range.
    leases: BTreeMap<String, Value>,
    turns: usize,
}

/// A changed item: its key, and its number among those of the key.
type Change = (u64, u64);

struct Play {
    server: Server,
    now: u64,
    hosts: Vec<Host>,
    started: usize,
    written: BTreeMap<u64, u64>,
    told: BTreeSet<Change>,
    /// How many changes a page has.
    page: usize,
    /// The last change of each key that came for the first time.
    newest: BTreeMap<u64, u64>,
    locks: usize,
}

impl Play {
    fn new() -> Play {
        let server = Server::new(Engine::Memory { slices: 4 }, Mode::default());
        server.clock(1000);
        let mut play = Play {
            server,
            now: 1000,
            hosts: Vec::new(),
            started: 0,
            written: BTreeMap::new(),
            told: BTreeSet::new(),
            page: 3,
            newest: BTreeMap::new(),
            locks: 0,
        };
        play.made("/dbs", &json!({"id": "d"}));
        play.made("/dbs/d/colls", &json!({"id": "c", "partitionKey": {"paths": ["/pk"]}}));
        let leases = json!({"id": "leases", "partitionKey": {"paths": ["/id"]}, "defaultTtl": -1});
        play.made("/dbs/d/colls", &leases);
        for _ in 0..3 {
            let host = play.host();
            play.hosts.push(host);
        }
        play
    }

    fn host(&mut self) -> Host {
        self.started += 1;
        Host { name: format!("host {}", self.started), ..Host::default() }
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Response<Bytes> {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.server.send(method, path, &headers, body.as_bytes().to_vec(), "name")
    }

    fn made(&self, path: &str, body: &Value) {
        assert_eq!(self.send("POST", path, &[], &body.to_string()).status(), 201, "{body}");
    }

    fn step(&mut self, next: &Next) {
        match *next {
            Next::Write(count) => (0..count).for_each(|_| self.write()),
            Next::Work(host) => self.work(host),
            Next::Kill(host) => self.hosts[host] = self.host(),
            Next::Pass(seconds) => self.pass(seconds),
            Next::Crash => self.server.crash(),
            Next::Background => self.server.background(),
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now += seconds;
        self.server.clock(self.now);
    }

    fn write(&mut self) {
        let all: u64 = self.written.values().sum();
        let key = all * 7 % 11;
        let number = self.written.entry(key).or_default();
        let item = json!({"id": format!("{key} {number}"), "pk": format!("k{key}"), "key": key,
            "n": *number});
        *number += 1;
        self.made(ITEMS, &item);
    }

    fn work(&mut self, at: usize) {
        let mut host = std::mem::take(&mut self.hosts[at]);
        match host.stage.clone() {
            Stage::Starts => self.start(&mut host),
            Stage::Locked(etag) => self.make_leases(&mut host, &etag),
            Stage::Runs => {
                host.turns += 1;
                if host.turns % 3 == 1 { self.acquire(&mut host) } else { self.read(&mut host) }
            }
        }
        self.hosts[at] = host;
    }

    /// Whoever gets the lock makes the leases; others wait, and start when they are there.
    fn start(&mut self, host: &mut Host) {
        if self.get_lease(".info").is_some() {
            host.stage = Stage::Runs;
            return;
        }
        let lock = json!({"id": "p.lock", "ttl": LOCK_SECONDS});
        let answer = self.send("POST", LEASES, &key("p.lock"), &lock.to_string());
        if answer.status() == 409 {
            return;
        }
        assert_eq!(answer.status(), 201);
        self.locks += 1;
        host.stage = Stage::Locked(answer.headers()["etag"].to_str().unwrap().to_owned());
    }

    fn make_leases(&self, host: &mut Host, etag: &str) {
        let ranges = json_of(&self.send("GET", "/dbs/d/colls/c/pkranges", &[], ""));
        for range in ranges["PartitionKeyRanges"].as_array().unwrap() {
            let id = format!("p..{}", range["id"].as_str().unwrap());
            let lease = json!({"id": id, "_etag": null, "_ts": 0, "Owner": null,
                "LeaseToken": range["id"], "ContinuationToken": null, "timestamp": 0});
            let status = self.send("POST", LEASES, &key(&id), &lease.to_string()).status();
            assert!(status == 201 || status == 409);
        }
        let info = json!({"id": "p.info"}).to_string();
        let status = self.send("POST", LEASES, &key("p.info"), &info).status();
        assert!(status == 201 || status == 409);
        // Too late, and it is somebody else's: then that one frees it.
        let guarded = [key("p.lock"), vec![("if-match", etag.to_owned())]].concat();
        let status = self.send("DELETE", &format!("{LEASES}/p.lock"), &guarded, "").status();
        assert!(status == 204 || status == 404 || status == 412, "{status}");
        host.stage = Stage::Runs;
    }

    fn get_lease(&self, name: &str) -> Option<Value> {
        let id = format!("p{name}");
        let answer = self.send("GET", &format!("{LEASES}/{id}"), &key(&id), "");
        (answer.status() == 200).then(|| json_of(&answer))
    }

    /// Takes one lease that nobody has, or whose owner is silent.
    fn acquire(&self, host: &mut Host) {
        let query = json!({"query": "SELECT * FROM c WHERE STARTSWITH(c.id, 'p..')"}).to_string();
        let headers = [
            ("content-type", "application/query+json".to_owned()),
            ("x-ms-documentdb-query-enablecrosspartition", "true".to_owned()),
        ];
        let leases = json_of(&self.send("POST", LEASES, &headers, &query));
        for mut lease in leases["Documents"].as_array().unwrap().iter().cloned() {
            let is_free = lease["Owner"].is_null()
                || lease["timestamp"].as_u64().unwrap() + LEASE_SECONDS <= self.now;
            if is_free {
                lease["Owner"] = host.name.clone().into();
                if let Some(lease) = self.renew(lease) {
                    host.leases.insert(lease["id"].as_str().unwrap().to_owned(), lease);
                    return;
                }
            }
        }
    }

    /// Writes a lease over the one it was read as. `None`: it is somebody else's now.
    fn renew(&self, mut lease: Value) -> Option<Value> {
        lease["timestamp"] = self.now.into();
        let id = lease["id"].as_str().unwrap().to_owned();
        let etag = lease["_etag"].as_str().unwrap().to_owned();
        let guarded = [key(&id), vec![("if-match", etag)]].concat();
        let path = format!("{LEASES}/{id}");
        let answer = self.send("PUT", &path, &guarded, &lease.to_string());
        assert!(answer.status() == 200 || answer.status() == 412, "{}", answer.status());
        (answer.status() == 200).then(|| json_of(&answer))
    }

    /// Reads a page of one of its ranges, and then says in the lease how far it came.
    fn read(&mut self, host: &mut Host) {
        let Some(id) = host.leases.keys().nth(host.turns % host.leases.len().max(1)).cloned()
        else {
            return;
        };
        let mut lease = host.leases.remove(&id).unwrap();
        let mut headers = vec![
            ("a-im", "Incremental Feed".to_owned()),
            ("x-ms-max-item-count", self.page.to_string()),
            (
                "x-ms-documentdb-partitionkeyrangeid",
                lease["LeaseToken"].as_str().unwrap().to_owned(),
            ),
        ];
        if let Some(token) = lease["ContinuationToken"].as_str() {
            headers.push(("if-none-match", token.to_owned()));
        }
        let answer = self.send("GET", ITEMS, &headers, "");
        if answer.status() == 200 {
            for change in json_of(&answer)["Documents"].as_array().unwrap() {
                self.take(change["key"].as_u64().unwrap(), change["n"].as_u64().unwrap());
            }
            lease["ContinuationToken"] = answer.headers()["etag"].to_str().unwrap().into();
        } else {
            assert_eq!(answer.status(), 304);
        }
        if let Some(lease) = self.renew(lease) {
            host.leases.insert(id, lease);
        }
    }

    /// What comes for the first time comes behind all of its key.
    fn take(&mut self, key: u64, number: u64) {
        if self.told.insert((key, number)) {
            let expected = self.newest.get(&key).map_or(0, |last| last + 1);
            assert_eq!(number, expected, "of key {key}");
            self.newest.insert(key, number);
        }
    }

    fn is_all_told(&self) -> bool {
        self.told.len() as u64 == self.written.values().sum::<u64>()
    }

    /// Nothing more is written, and nobody is killed.
    fn end(&mut self) {
        for round in 0.. {
            if self.is_all_told() {
                return;
            }
            assert!(round < 2000, "{} of {:?} were told", self.told.len(), self.written);
            self.work(round % 3);
            if round % 50 == 49 {
                self.pass(LEASE_SECONDS / 2);
            }
        }
    }
}

fn key(id: &str) -> Vec<(&'static str, String)> {
    vec![("x-ms-documentdb-partitionkey", json!([id]).to_string())]
}

fn json_of(answer: &Response<Bytes>) -> Value {
    serde_json::from_slice(answer.body()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn each_change_comes_whoever_dies(steps in prop::collection::vec(next(), 50..250)) {
        let mut play = Play::new();
        for step in &steps {
            play.step(step);
        }
        play.end();
    }
}

/// The one that holds the lock dies: its ttl frees the lock, to the second, and all goes on.
#[test]
fn the_lock_of_one_who_died_is_free_when_its_ttl_is_over() {
    let mut play = Play::new();
    (0..100).for_each(|_| play.write());
    play.work(0);
    assert!(matches!(play.hosts[0].stage, Stage::Locked(_)));
    play.step(&Next::Kill(0));
    play.step(&Next::Crash);
    play.pass(LOCK_SECONDS - 1);
    (0..3).for_each(|host| play.work(host));
    assert_eq!(play.locks, 1);
    play.pass(1);
    play.work(1);
    assert_eq!(play.locks, 2);
    play.end();
}

/// Thousands of changes, and one host after the other is killed in the middle.
#[test]
fn many_changes_reach_hosts_that_are_killed_again_and_again() {
    let mut play = Play::new();
    play.page = 20;
    for round in 0..30_usize {
        (0..100).for_each(|_| play.write());
        (0..60).for_each(|turn| play.work(turn % 3));
        play.step(&Next::Kill(round % 3));
        play.pass(20);
    }
    while !play.is_all_told() {
        (0..300).for_each(|turn| play.work(turn % 3));
        play.pass(LEASE_SECONDS);
    }
}
