//! Random histories of writes, deaths and policies, one step at a time and all at
//! once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::{directed, only};
use crate::operation::{Act, Indexing};
use crate::tests::computed;
use crate::tests::server::{Crash, Kind, Server, write};

/// A generator of numbers; the same seed gives the same ones.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn item(&mut self) -> Value {
        let key = self.below(4);
        let mut item = json!({"id": self.below(5).to_string(), "pk": key});
        for name in ["a", "b", "c"] {
            item[name] = match self.below(6) {
                0 => continue,
                1 => json!(self.below(3)),
                2 => json!("z".repeat(500 + usize::try_from(self.below(20)).unwrap())),
                3 => json!([self.below(2), {"b": self.below(2)}, [null]]),
                4 => json!({"a": self.below(2), "c": {}}),
                _ => json!(false),
            };
        }
        match self.below(4) {
            0 => item["ttl"] = json!(1 + self.below(20)),
            1 => item["ttl"] = json!(-1),
            _ => {}
        }
        item
    }

    fn policy(&mut self) -> Value {
        let mut policy = match self.below(4) {
            0 => json!({}),
            1 => only(&["a", "b/[]"]),
            2 => {
                json!({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/a/?"}, {"path": "/c/*"}]})
            }
            _ => only(&[]),
        };
        if self.below(2) == 0 {
            let first = self.one_of(["/a", "/low", "/a", "/low/x"]);
            let last = self.one_of(["/c/a", "/_ts", "/b", "/_ts"]);
            policy["compositeIndexes"] =
                json!([[{"path": first}, {"path": last, "order": "descending"}]]);
        }
        policy
    }

    /// A policy that may name a computed property, and such properties.
    fn definition(&mut self) -> (Value, Value) {
        let mut policy = self.policy();
        let path = self.one_of(["/low/?", "/low/*", "/low/x/?", "/low/y/[]/?"]);
        match policy.get_mut("includedPaths").and_then(Value::as_array_mut) {
            Some(paths) if self.below(4) > 0 => paths.push(json!({"path": path})),
            Some(_) => {}
            None => policy["includedPaths"] = json!([{"path": "/*"}, {"path": path}]),
        }
        let name = self.one_of(["a", "low", "low", "low"]);
        let query = self.one_of(computed::QUERIES);
        let computed = match self.below(3) {
            0 => json!([]),
            _ => json!([{"name": name, "query": query}]),
        };
        (policy, computed)
    }

    fn one_of(&mut self, list: [&'static str; 4]) -> &'static str {
        list[usize::try_from(self.below(4)).unwrap()]
    }
}

/// Writes, deaths, policies, restarts and crashes, in any order: what is stored
/// fits together after each, and in the end the entries are those of the last
/// policy, none missing and none left behind.
fn play(kind: Kind, seed: u64, steps: usize) {
    let mut random = Random(seed);
    let mut server = Server::new(kind);
    server.make_container(Some(30), &[]);
    let mut now = 1000;
    for _ in 0..steps {
        match random.below(20) {
            0..9 => {
                let indexing = match random.below(6) {
                    0 => Indexing::Exclude,
                    1 => Indexing::Include,
                    _ => Indexing::ByPolicy,
                };
                server.run(directed(&random.item(), indexing)).unwrap();
            }
            9 => {
                let (id, key) = (random.below(5).to_string(), random.below(4).to_string());
                let _ = server.run(write(Act::Delete(id), &key));
            }
            10..13 => {
                now += random.below(12);
                server.clock(now);
            }
            13 => {
                server.purge();
            }
            14 => {
                let (policy, computed) = random.definition();
                server.try_definition(Some(30), &policy, &computed).unwrap();
            }
            15..18 => {
                server.rebuild(1 + usize::try_from(random.below(3)).unwrap());
            }
            18 => server.restart(),
            _ => server.crash(Crash::Kill),
        }
        server.check();
    }
    server.rebuild_all();
    server.is_settled();
}

#[test]
fn histories_of_policies_in_memory() {
    for seed in 0..60 {
        play(Kind::Memory { slices: if seed % 2 == 0 { 1 } else { 4 } }, seed, 60);
    }
}

#[test]
fn histories_of_policies_on_disk() {
    for seed in 0..5 {
        play(Kind::Disk { slices: 1 }, 1000 + seed, 60);
    }
}

/// Writers, the rebuild, the purge and changes of the policy, each on a thread
/// of its own.
#[test]
fn a_policy_changes_under_load() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(3), &[]);
    let (server, over) = (&server, AtomicBool::new(false));
    thread::scope(|scope| {
        for writer in 0..2 {
            let over = &over;
            scope.spawn(move || {
                let mut random = Random(writer);
                while !over.load(Ordering::SeqCst) {
                    server.run(directed(&random.item(), Indexing::ByPolicy)).unwrap();
                }
            });
        }
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                server.rebuild(2);
            }
        });
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                server.purge();
            }
        });
        let mut random = Random(7);
        for round in 0..300 {
            server.wall().set(1000 + round);
            // Too many at once are refused.
            let (policy, computed) = random.definition();
            let _ = server.try_definition(Some(3), &policy, &computed);
        }
        over.store(true, Ordering::SeqCst);
    });
    server.check();
    server.rebuild_all();
    server.is_settled();
}
