//! A touch against the purge: upserts, reads and the purge meet, on threads of
//! their own, in the second in which an item expires.
//!
//! Nothing here depends on who comes first. A write that is answered is there,
//! with the content of the last one; and who was seen dead is not seen again:
//! whatever is there afterwards was made by a write that answered 201.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, Scope};

use serde_json::{Value, json};

use super::server::{Kind, Server, upsert};
use crate::reply::Success;

const ROUNDS: u64 = 10_000;

/// What a writer was told: the status, the commit, and the item.
struct Told {
    status: u16,
    lsn: u64,
    item: Value,
}

fn told(success: Success) -> Told {
    let item = serde_json::from_slice(&success.body.to_vec()).unwrap();
    Told { status: success.status, lsn: success.item_lsn.unwrap(), item }
}

fn rid(item: &Value) -> &str {
    item["_rid"].as_str().unwrap()
}

/// Threads that start together, once a round.
struct Field {
    start: Barrier,
    end: Barrier,
    over: AtomicBool,
}

impl Field {
    /// Does `act` in each round, and sends what it says, also when it panics:
    /// nobody is left waiting.
    fn player<'scope, T: Send + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        mut act: impl FnMut(u64) -> T + Send + 'scope,
    ) -> Receiver<thread::Result<T>> {
        let (sender, receiver) = channel();
        scope.spawn(move || {
            for round in 0.. {
                self.start.wait();
                if self.over.load(Ordering::SeqCst) {
                    break;
                }
                let _ = sender.send(catch_unwind(AssertUnwindSafe(|| act(round))));
                self.end.wait();
            }
        });
        receiver
    }
}

fn said<T>(receiver: &Receiver<thread::Result<T>>) -> T {
    receiver.recv().unwrap().unwrap_or_else(|panic| resume_unwind(panic))
}

#[test]
fn no_touch_is_lost_to_the_purge_and_nothing_comes_back() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(1), &["/email"]);
    let server = &server;
    let barrier = || Barrier::new(5);
    let field = Field { start: barrier(), end: barrier(), over: AtomicBool::new(false) };
    thread::scope(|scope| {
        let writers = [0, 1].map(|writer| {
            field.player(scope, move |round| {
                let mark = round * 2 + writer;
                let item = json!({"id": "a", "pk": "x", "email": 1, "mark": mark});
                told(server.run(upsert(&item)).unwrap())
            })
        });
        let reader = field.player(scope, |_| [(); 4].map(|()| server.read("a", "x").ok()));
        let purge = field.player(scope, |_| server.purge());
        let played = catch_unwind(AssertUnwindSafe(|| {
            for round in 0..ROUNDS {
                let born = 1000 + 3 * round;
                server.wall().set(born);
                let first = server.create(json!({"id": "a", "pk": "x", "email": 1})).unwrap();
                field.start.wait();
                server.wall().set(born + 1);
                field.end.wait();
                said(&purge);
                let mut acked = writers.each_ref().map(said);
                acked.sort_by_key(|told| told.lsn);
                check_writes(&first, &acked, born);
                check_reads(&first, &said(&reader));
                let left = acked.last().filter(|last| last.item["_ts"] == born + 1);
                assert_eq!(
                    server.read("a", "x").ok(),
                    left.map(|last| last.item.clone()),
                    "round {round}"
                );
                server.wall().set(born + 2);
            }
        }));
        field.over.store(true, Ordering::SeqCst);
        field.start.wait();
        played.unwrap_or_else(|panic| resume_unwind(panic));
    });
    server.check();
}

/// Before its expiry a write touches the item; from then on the first one makes
/// a new one, and the others touch that.
fn check_writes(first: &Value, writes: &[Told], born: u64) {
    let mut alive = first;
    for told in writes {
        let ts = told.item["_ts"].as_u64().unwrap();
        let expired = alive["_ts"].as_u64().unwrap() < born + 1 && ts == born + 1;
        assert_eq!(told.status, if expired { 201 } else { 200 }, "{:?}", told.item);
        assert_eq!(rid(alive) == rid(&told.item), !expired, "{:?}", told.item);
        alive = &told.item;
    }
}

/// Who was seen to be gone is not seen again.
fn check_reads(first: &Value, seen: &[Option<Value>]) {
    let mut gone = false;
    for item in seen {
        match item {
            Some(item) => assert!(!gone || rid(item) != rid(first), "back: {item}"),
            None => gone = true,
        }
        gone |= item.as_ref().is_some_and(|item| rid(item) != rid(first));
    }
}
