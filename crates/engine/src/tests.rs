//! The engine from outside: named cases, and random histories against a model.

mod charges;
mod churn;
mod clocks;
mod computed;
mod deleted;
mod encryption;
mod feed;
mod index;
mod known;
mod lanes;
mod log;
mod metering;
mod model;
mod patches;
mod plans;
mod property_path;
mod purge;
mod queries;
mod quota;
mod random;
mod rename;
mod seeds;
mod server;
mod splits;
mod throughput;
mod touch;
mod waits;
mod watched;
mod wide;

use dayfly_model::ErrorKind;
use dayfly_storage::{KeyRange, Pair};
use serde_json::json;

use self::server::{Kind, Server};
use self::watched::Landed;
use crate::catalog::{self, ContainerRecord};
use crate::check::Recount;
use crate::operation::{Condition, Operation};
use crate::{encryption_keys, keys};

/// A container's record, for tests that need some.
pub(crate) fn container_record() -> ContainerRecord {
    let definition = br#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#;
    let definition = dayfly_model::container::parse(definition, false).unwrap();
    ContainerRecord {
        database: 1,
        number: 1,
        ranges: catalog::equal_ranges(&definition, 1),
        ranges_version: 1,
        definition,
        delayed: None,
        changed_by: String::new(),
        epoch: 1,
        slices: Vec::new(),
        ts: 1,
        version: 1,
        opened: 1,
    }
}

/// What a container shows as its default and what its items live by is the
/// same, also when one change follows another that has not arrived.
#[test]
fn a_change_of_the_default_comes_after_the_one_before_it() {
    for slices in [1, 4] {
        let mut server = Server::with_delay(Kind::Watched { slices }, 60);
        server.make_container(None, &[]);
        for key in 0..20 {
            server.create(json!({"id": "a", "pk": key})).unwrap();
        }
        server.watched().doubt(keys::bucket(1, slices - 1), Landed::No);
        server.try_default(Some(10), &[]).unwrap_err();
        server.clock(1070);
        // From now on it is 10, for another 60 seconds.
        server.set_default(Some(5000), &[]);
        assert_eq!(server.listed(), 0);
        server.clock(1130);
        assert_eq!(server.listed(), 0);
        server.check();
    }
}

#[test]
fn a_bucket_with_a_damaged_head_stays_closed() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(5), &[]);
    server.create(json!({"id": "a", "pk": "x"})).unwrap();
    server.clock(1005);
    server.set_default(None, &[]);
    server.damage_head();
    server.restart();
    // That the item expired stood in the head only.
    assert_eq!(server.read("a", "x"), Err(ErrorKind::Internal));
    assert!(server.create(json!({"id": "b", "pk": "x"})).is_err());
    assert_eq!(server.try_default(Some(100), &[]).unwrap_err(), ErrorKind::Internal);
    server.restart();
    assert_eq!(server.read("a", "x"), Err(ErrorKind::Internal));
    server.delete_container();
    server.turns();
    assert_eq!((server.rows(), server.heads()), (0, 0));
}

#[test]
fn an_id_can_be_used_again_a_thousand_times() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(5), &[]);
    let mut rids = std::collections::HashSet::new();
    for round in 0..1000 {
        server.clock(1000 + round * 5);
        let body = server.create(json!({"id": "a", "pk": "x"})).unwrap();
        assert!(rids.insert(body["_rid"].to_string()), "round {round}");
    }
}

#[test]
fn the_purge_leaves_nothing_of_what_it_removes() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(5), &["/email"]);
    server.clock(1000);
    let empty = server.rows();
    server.create(json!({"id": "a", "pk": "x", "email": 1})).unwrap();
    server.create(json!({"id": "b", "pk": "x", "email": 2, "ttl": 9})).unwrap();
    server.clock(1009);
    assert_eq!(server.purge(), 2);
    // The cursor stays.
    assert_eq!(server.rows(), empty + 1);
}

#[test]
fn the_purge_of_a_deleted_container_leaves_nothing() {
    let mut server = Server::new(Kind::Memory { slices: 4 });
    server.make_container(None, &["/email"]);
    for id in 0..50 {
        server.create(json!({"id": id.to_string(), "pk": id, "email": 1})).unwrap();
    }
    assert!(server.rows() > 0);
    server.delete_container();
    server.purge();
    assert_eq!(server.rows(), 0);
    assert_eq!(server.heads(), 0);
}

#[test]
fn a_touch_writes_no_entry_that_stays_the_same() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(100), &["/email"]);
    server.create(json!({"id": "a", "pk": "x", "email": 1})).unwrap();
    let before = server.dump();
    server.clock(1010);
    server.upsert(json!({"id": "a", "pk": "x", "email": 1})).unwrap();
    let after = server.dump();
    let counts = |row: &&Pair| row.0.starts_with(b"l") || *row.0 == *keys::touched();
    let changed: Vec<_> =
        after.iter().filter(|row| !before.contains(row) && !counts(row)).collect();
    // The item, its place in the partition and its row in the feed; and what is counted.
    assert_eq!(changed.len(), 3, "{changed:?}");
    let rows = |all: &[Pair]| all.iter().filter(|row| !counts(row)).count();
    assert_eq!(rows(&before), rows(&after));
}

#[test]
fn the_purge_stops_where_nothing_is_due() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(5), &[]);
    server.create(json!({"id": "a", "pk": "x"})).unwrap();
    server.clock(1004);
    let commits = server.commits();
    assert_eq!(server.purge(), 0);
    assert_eq!(server.commits(), commits);
}

#[test]
fn the_purge_of_a_held_clock_removes_what_is_dead_by_it_and_no_more() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(5), &[]);
    server.create(json!({"id": "a", "pk": "x"})).unwrap();
    server.clock(1004);
    server.create(json!({"id": "b", "pk": "x"})).unwrap();
    server.jump(1_000_000);
    assert_eq!(server.purge(), 0);
    server.clock(1_000_001);
    assert_eq!(server.purge(), 1);
    server.jump(1005);
    assert!(server.read("b", "x").is_ok());
}

#[test]
fn items_that_never_expire_are_stepped_over_many_at_a_time() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(5), &[]);
    for id in 0..2000 {
        server.create(json!({"id": id.to_string(), "pk": "x", "ttl": -1})).unwrap();
    }
    server.create(json!({"id": "a", "pk": "x"})).unwrap();
    server.clock(1005);
    let commits = server.commits();
    assert_eq!(server.purge(), 1);
    assert!(server.commits() - commits <= 2);
}

#[test]
fn a_recount_finds_figures_that_are_wrong() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    assert_eq!(server.recount(7, || true), Recount::LeftOut, "there is no container");
    server.make_container(Some(5), &["/email"]);
    assert_eq!(server.recount(7, || true), Recount::Right);
    for id in 0..1500 {
        server.create(json!({"id": id.to_string(), "pk": id, "email": 1, "ttl": 1 + id})).unwrap();
    }
    server.clock(1100);
    server.purge();
    let mut rests = 0;
    let rest = || {
        rests += 1;
        true
    };
    assert_eq!(server.recount(u64::MAX, rest), Recount::Right);
    assert_eq!(rests, 3, "1400 items are two chunks, and their figures one");
    assert_eq!(server.recount(0, || false), Recount::LeftOut, "told to stop");
    let large = "x".repeat(1024 * 1024);
    let mut writes = 0..40;
    let write = || {
        for id in writes.by_ref() {
            let id = (5000 + id).to_string();
            server.create(json!({"id": id, "pk": id, "email": id, "large": large})).unwrap();
        }
        true
    };
    assert_eq!(server.recount(0, write), Recount::Overtaken);
    // Whichever row is missing.
    while server.damage_figures() {
        let container = "d/c".to_owned();
        assert_eq!(server.recount(0, || true), Recount::Wrong { container });
    }
    assert_eq!(server.recounts()[0], 2);
}

/// A database has a thousand keys of two rows each, `check` misses either row, and they go
/// with their database.
#[test]
fn encryption_keys_fit_their_names() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    let key = |id: &str| Operation::CreateEncryptionKey {
        database: "d".to_owned(),
        key: json!({"id": id}).to_string().into_bytes(),
    };
    for id in 0..1000 {
        server.run(key(&id.to_string())).unwrap();
    }
    // No more than that.
    assert_eq!(server.run(key("more")).unwrap_err(), ErrorKind::BadRequest);
    assert_eq!(server.run(key("0")).unwrap_err(), ErrorKind::Conflict);
    server.check();
    let rows = |server: &Server| {
        let snapshot = server.engine().shared.store.snapshot().unwrap();
        encryption_keys::rows_of(&*snapshot, 1).unwrap().len()
    };
    assert_eq!(rows(&server), 2000);
    let damage = |row: Vec<u8>| {
        let range = KeyRange { end: dayfly_storage::after(&row), start: row };
        let cleared = server.engine().shared.store.clear(keys::CATALOG, &range, 1);
        assert_eq!(cleared.unwrap().removed, 1);
    };
    damage(keys::encryption_key_name(1, 7));
    assert!(server.engine().check().is_err());
    damage(keys::encryption_key(1, "6"));
    server.check();
    damage(keys::encryption_key(1, "0"));
    assert!(server.engine().check().is_err());

    let (database, condition) = ("d".to_owned(), Condition::default());
    server.run(Operation::DeleteDatabase { database, condition }).unwrap();
    assert_eq!(rows(&server), 0);
    server.check();
}
