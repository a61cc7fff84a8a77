//! Several processors of a change feed share its ranges, as those of .NET and Java do: by
//! leases that are items of another container, guarded by their etags, and with a lock for
//! who starts first, which dies by its ttl with whoever holds it.
//!
//! They are killed and begun anew at any moment, and so is the server, and ranges are divided
//! under them. Each change comes to one of them at least once, none is lost, and those of a
//! key come in their order: of the latest versions as of all of them.
//!
//! `DAYFLY_FEED_CHANGES=100000 cargo test --release -p dayfly-api --test processors many` is
//! for a night: so many changes instead of a few thousand. With `DAYFLY_FEED_MODE=all-versions`
//! they are read from the log.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test"
)]

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

/// Which changes are told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Told {
    #[default]
    Latest,
    AllVersions,
}

/// No more ranges than these, so that each is read.
const RANGES_MAX: usize = 12;

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
    /// The widest range is divided.
    Divide,
}

fn next() -> impl Strategy<Value = Next> {
    prop_oneof![
        4 => (1..6_u8).prop_map(Next::Write),
        16 => (0..3_usize).prop_map(Next::Work),
        1 => (0..3_usize).prop_map(Next::Kill),
        3 => (1..20_u64).prop_map(Next::Pass),
        1 => Just(Next::Crash),
        1 => Just(Next::Background),
        1 => Just(Next::Divide),
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
    reads: usize,
}

/// A changed item: its key, and its number among those of the key.
type Change = (u64, u64);

struct Play {
    server: Server,
    mode: Told,
    /// Where the feed of all versions was when there was nothing, by the range.
    starts: BTreeMap<String, Value>,
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
    /// How many leases of ranges that were divided are gone.
    divided: usize,
}

impl Play {
    fn new(mode: Told) -> Play {
        let server = Server::new(Engine::Memory { slices: 4 }, Mode::default());
        server.clock(1000);
        let mut play = Play {
            server,
            mode,
            starts: BTreeMap::new(),
            now: 1000,
            hosts: Vec::new(),
            started: 0,
            written: BTreeMap::new(),
            told: BTreeSet::new(),
            page: 3,
            newest: BTreeMap::new(),
            locks: 0,
            divided: 0,
        };
        play.made("/dbs", &json!({"id": "d"}));
        play.made("/dbs/d/colls", &json!({"id": "c", "partitionKey": {"paths": ["/pk"]}}));
        let leases = json!({"id": "leases", "partitionKey": {"paths": ["/id"]}, "defaultTtl": -1});
        play.made("/dbs/d/colls", &leases);
        if mode == Told::AllVersions {
            for range in play.ranges() {
                let id = range["id"].as_str().unwrap().to_owned();
                let answer = play.changes(&id, "*");
                assert_eq!(answer.status(), 304);
                play.starts.insert(id, answer.headers()["etag"].to_str().unwrap().into());
            }
        }
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
            Next::Divide => self.divide(),
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now += seconds;
        self.server.clock(self.now);
    }

    fn divide(&self) {
        if self.ranges().len() < RANGES_MAX {
            let answer = self.send("POST", "/_admin/v1/containers/d/c/split", &[], "");
            assert_eq!(answer.status(), 200);
        }
    }

    /// A page of the changes of a range, behind a place if there is one.
    fn changes(&self, range: &str, place: &str) -> Response<Bytes> {
        let mode = match self.mode {
            Told::Latest => "Incremental Feed",
            Told::AllVersions => "Full-Fidelity Feed",
        };
        let mut headers = vec![
            ("a-im", mode.to_owned()),
            ("x-ms-max-item-count", self.page.to_string()),
            ("x-ms-documentdb-partitionkeyrangeid", range.to_owned()),
        ];
        if !place.is_empty() {
            headers.push(("if-none-match", place.to_owned()));
        }
        self.send("GET", ITEMS, &headers, "")
    }

    /// Where the feed of a range begins: for the parts of one, where it did.
    fn start_of(&self, range: &Value) -> Value {
        let ids = range["parents"].as_array().into_iter().flatten().chain([&range["id"]]);
        let mut starts = ids.filter_map(|id| self.starts.get(id.as_str()?));
        starts.next().cloned().unwrap_or_default()
    }

    fn ranges(&self) -> Vec<Value> {
        let ranges = json_of(&self.send("GET", "/dbs/d/colls/c/pkranges", &[], ""));
        ranges["PartitionKeyRanges"].as_array().unwrap().clone()
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
        for range in self.ranges() {
            self.make_lease(&range, &self.start_of(&range));
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

    /// `false`: somebody made it before.
    fn make_lease(&self, range: &Value, token: &Value) -> bool {
        let id = format!("p..{}", range["id"].as_str().unwrap());
        let lease = json!({"id": id, "_etag": null, "_ts": 0, "Owner": null,
            "LeaseToken": range["id"], "ContinuationToken": token, "timestamp": 0});
        let status = self.send("POST", LEASES, &key(&id), &lease.to_string()).status();
        assert!(status == 201 || status == 409);
        status == 201
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
        host.reads += 1;
        let Some(id) = host.leases.keys().nth(host.reads % host.leases.len().max(1)).cloned()
        else {
            return;
        };
        let mut lease = host.leases.remove(&id).unwrap();
        let place = lease["ContinuationToken"].as_str().unwrap_or_default();
        let answer = self.changes(lease["LeaseToken"].as_str().unwrap(), place);
        if answer.status() == 200 {
            for change in json_of(&answer)["Documents"].as_array().unwrap() {
                let is_whole = self.mode == Told::Latest;
                let change = if is_whole { change } else { &change["current"] };
                self.take(change["key"].as_u64().unwrap(), change["n"].as_u64().unwrap());
            }
            lease["ContinuationToken"] = answer.headers()["etag"].to_str().unwrap().into();
        } else if answer.status() == 410 {
            assert_eq!(answer.headers()["x-ms-substatus"], "1002");
            if self.follow_division(&lease) {
                self.divided += 1;
                return;
            }
        } else {
            assert_eq!(answer.status(), 304);
        }
        if let Some(lease) = self.renew(lease) {
            host.leases.insert(id, lease);
        }
    }

    /// Makes a lease of a range that came of one that is gone, from where that was read to;
    /// when all of them are there, that one's lease goes. `true`: it did.
    fn follow_division(&self, lease: &Value) -> bool {
        let is_parent = |range: &Value| {
            range["parents"]
                .as_array()
                .is_some_and(|parents| parents.contains(&lease["LeaseToken"]))
        };
        let children: Vec<Value> = self.ranges().into_iter().filter(is_parent).collect();
        assert!(children.len() >= 2);
        if children.iter().any(|child| self.make_lease(child, &lease["ContinuationToken"])) {
            return false;
        }
        let id = lease["id"].as_str().unwrap();
        let status = self.send("DELETE", &format!("{LEASES}/{id}"), &key(id), "").status();
        assert!(status == 204 || status == 404);
        true
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
    fn each_change_comes_whoever_dies(
        mode in prop::sample::select(vec![Told::Latest, Told::AllVersions]),
        steps in prop::collection::vec(next(), 50..250),
    ) {
        let mut play = Play::new(mode);
        for step in &steps {
            play.step(step);
        }
        play.end();
    }
}

/// The one that holds the lock dies: its ttl frees the lock, to the second, and all goes on.
#[test]
fn the_lock_of_one_who_died_is_free_when_its_ttl_is_over() {
    let mut play = Play::new(Told::Latest);
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

/// The one that has seen a range divided dies when one half has a lease and the other has none:
/// whoever gets its lease goes on with that, and nothing is read from the beginning.
#[test]
fn a_division_goes_on_where_a_host_died_in_it() {
    [Told::Latest, Told::AllVersions].into_iter().for_each(division_goes_on);
}

fn division_goes_on(mode: Told) {
    let mut play = Play::new(mode);
    play.page = 1000;
    let read_all = |play: &mut Play| (0..60).for_each(|_| play.work(0));
    (0..200).for_each(|_| play.write());
    read_all(&mut play);
    assert!(play.is_all_told());
    let leases = |play: &Play| {
        let ids =
            play.ranges().into_iter().map(|range| format!("..{}", range["id"].as_str().unwrap()));
        ids.filter(|id| play.get_lease(id).is_some()).count()
    };
    play.step(&Next::Divide);
    let whole = leases(&play);
    while leases(&play) == whole {
        play.work(0);
    }
    play.step(&Next::Kill(0));
    (0..200).for_each(|_| play.write());
    play.pass(LEASE_SECONDS);
    play.told.clear();
    read_all(&mut play);
    assert_eq!((play.told.len(), play.divided), (200, 1));
}

/// Thousands of changes, and one host after the other is killed in the middle; the server is
/// killed, too, and half way all ranges are divided.
#[test]
fn many_changes_reach_hosts_that_are_killed_again_and_again() {
    let changes = std::env::var("DAYFLY_FEED_CHANGES").map_or(3000, |text| text.parse().unwrap());
    let mode = match std::env::var("DAYFLY_FEED_MODE").as_deref() {
        Err(_) | Ok("latest") => Told::Latest,
        Ok("all-versions") => Told::AllVersions,
        Ok(other) => panic!("DAYFLY_FEED_MODE is latest or all-versions, not {other}"),
    };
    let mut play = Play::new(mode);
    play.page = 20;
    let rounds = changes / 100;
    for round in 0..rounds {
        (0..100).for_each(|_| play.write());
        (0..60).for_each(|turn| play.work(turn % 3));
        play.step(&Next::Kill(round % 3));
        if round == rounds / 2 {
            (0..4).for_each(|_| play.step(&Next::Divide));
        }
        if round % (rounds / 6).max(1) == 0 {
            play.step(&Next::Crash);
        }
        play.pass(20);
    }
    while !play.is_all_told() {
        (0..300).for_each(|turn| play.work(turn % 3));
        play.pass(LEASE_SECONDS);
    }
    assert!(play.divided >= 4);
    println!("{} changes were told", play.told.len());
}
