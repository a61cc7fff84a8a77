//! Which items are touched, and what that spares a walk.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use dayfly_storage::tally::Tally;
use dayfly_storage::{
    Batch, Bucket, Direction, Draft, Head, KeyRange, Mark, Pair, Plan, ReadHints, Result, Second,
    Snapshot, View, commit,
};
use serde_json::{Value, json};

use super::{directed, only, path, whole};
use crate::QueryLimits;
use crate::index::walk::Entries;
use crate::keys;
use crate::operation::{Act, Indexing};
use crate::tests::server::{Kind, Server, text, write};

impl Server {
    /// How many items are touched, as it is counted.
    fn touched(&self) -> u64 {
        let rows = self.dump();
        let row = rows.iter().find(|(key, _)| *key == keys::touched());
        row.map_or(0, |(_, row)| Tally::decode(row).unwrap().before(1).items)
    }
}

fn item(b: i64, ttl: Option<i64>) -> Value {
    let mut item = json!({"id": "a", "pk": "x", "b": b, "c": [1, 2]});
    if let Some(ttl) = ttl {
        item["ttl"] = ttl.into();
    }
    item
}

/// A server with one item, which is touched.
fn touched_server(default: Option<i64>, unique: &[&str]) -> Server {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(default, unique);
    server.create(item(1, None)).unwrap();
    assert_eq!(server.touched(), 0, "a new item");
    server.clock(1004);
    server.upsert(item(1, None)).unwrap();
    assert_eq!(server.touched(), 1, "a touch");
    server.check();
    server
}

#[test]
fn a_write_that_leaves_entries_behind_touches_the_item() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(1000), &[]);
    let by_policy = Indexing::ByPolicy;
    for (second, now, indexing, expected, why) in [
        (1000, item(1, None), by_policy, 0, "a new item"),
        (1000, item(2, None), by_policy, 0, "the same life"),
        (1001, item(2, None), by_policy, 1, "a touch"),
        (1001, item(3, None), by_policy, 1, "the same life, with entries of an earlier one"),
        (1002, item(3, None), by_policy, 1, "another touch"),
        (1002, item(3, Some(100)), by_policy, 0, "another class"),
        (1002, item(3, Some(200)), by_policy, 1, "a longer life"),
        (1002, item(3, Some(150)), by_policy, 0, "a shorter one"),
        (1003, item(4, Some(150)), by_policy, 1, "a touch with another value"),
        (1004, item(4, Some(-1)), by_policy, 0, "for ever"),
        (1005, item(4, Some(-1)), by_policy, 0, "for ever is not longer"),
        (1005, item(4, None), by_policy, 0, "another class"),
        (1006, item(4, None), by_policy, 1, "a touch"),
        (1006, item(4, None), Indexing::Exclude, 0, "it is left out of the index"),
        (1007, item(4, None), Indexing::Exclude, 0, "a touch without entries"),
        (1008, item(4, None), Indexing::Include, 0, "all entries are new"),
        (1009, item(4, None), Indexing::Include, 1, "a touch"),
    ] {
        server.clock(second);
        server.run(directed(&now, indexing)).unwrap();
        assert_eq!(server.touched(), expected, "{why}");
        server.check();
    }
}

#[test]
fn whatever_removes_an_item_counts_it_no_more() {
    let server = touched_server(Some(9), &[]);
    server.run(write(Act::Delete("a".to_owned()), "\"x\"")).unwrap();
    assert_eq!(server.touched(), 0, "a delete");

    let mut server = touched_server(Some(9), &[]);
    server.clock(1013);
    assert_eq!((server.touched(), server.purge(), server.touched()), (1, 1, 0), "the purge");

    let mut server = touched_server(Some(9), &[]);
    server.clock(1013);
    server.upsert(item(1, None)).unwrap();
    assert_eq!(server.touched(), 0, "a write over a dead item");
    server.check();

    let mut server = touched_server(Some(9), &["/b"]);
    server.clock(1013);
    server.create(json!({"id": "other", "pk": "x", "b": 1})).unwrap();
    assert_eq!(server.touched(), 0, "a write that takes its unique key");
    server.check();

    let server = touched_server(Some(9), &[]);
    let renamed = json!({"id": "z", "pk": "x", "b": 1, "c": [1, 2]});
    server.run(write(Act::Replace("a".to_owned(), text(&renamed)), "\"x\"")).unwrap();
    assert_eq!(server.touched(), 0, "another id, whose entries are all new");
    server.check();

    let mut server = touched_server(Some(9), &[]);
    server.restart();
    assert_eq!(server.touched(), 1, "a restart does not");
    server.delete_container();
    server.purge();
    assert_eq!(server.rows(), 0);
}

#[test]
fn a_rebuild_leaves_items_as_touched_as_they_were() {
    let mut server = touched_server(None, &[]);
    let set_policy = |server: &Server, policy: &Value| {
        server.try_policy(None, policy).unwrap();
        server.rebuild_all();
        server.is_settled();
    };
    set_policy(&server, &only(&["b"]));
    assert_eq!(server.touched(), 1);
    set_policy(&server, &json!({"indexingMode": "none", "automatic": false}));
    assert_eq!(server.touched(), 1, "only a write knows better");
    server.clock(1005);
    server.upsert(item(1, None)).unwrap();
    assert_eq!(server.touched(), 0, "there are no entries");
    server.clock(1006);
    server.upsert(item(1, None)).unwrap();
    set_policy(&server, &json!({}));
    assert_eq!(server.touched(), 0, "all entries are new");
    // A write beside a rebuild: some entries are of the old policy, some are new.
    server.try_policy(None, &only(&["c"])).unwrap();
    server.clock(1007);
    server.upsert(item(1, None)).unwrap();
    assert_eq!(server.touched(), 1);
    server.rebuild_all();
    server.is_settled();
}

/// A snapshot that counts how often a row is asked for.
struct Asked<'a>(&'a dyn Snapshot, AtomicUsize);

impl Snapshot for Asked<'_> {
    fn now(&self) -> Second {
        self.0.now()
    }

    fn milliseconds(&self) -> u64 {
        self.0.milliseconds()
    }

    fn head(&self, bucket: Bucket) -> Head {
        self.0.head(bucket)
    }

    fn get(&self, bucket: Bucket, key: &[u8]) -> Result<Option<Bytes>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.get(bucket, key)
    }

    fn scan(
        &self,
        bucket: Bucket,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>> {
        self.0.scan(bucket, range, direction, limit)
    }

    fn mark(&self) -> Mark {
        self.0.mark()
    }

    fn hints(&self) -> &dyn ReadHints {
        self
    }
}

impl ReadHints for Asked<'_> {}

/// How many entries are alive, and how many rows were asked for to know it.
fn walked(server: &Server, name: &str) -> (usize, usize) {
    let opened = server.opened();
    let asked = Asked(&*opened.snapshot, AtomicUsize::new(0));
    let bucket = keys::bucket(opened.container.number, 0);
    let entry_range = whole(path(name));
    let mut entries =
        Entries::new(&asked, bucket, &entry_range, Direction::Forward, &QueryLimits::SMALL)
            .unwrap();
    let mut alive = 0;
    while let Some(page) = entries.page(7).unwrap() {
        alive += page.len();
    }
    drop(entries);
    (alive, asked.1.into_inner())
}

#[test]
fn dead_entries_cost_no_look_at_their_items_unless_some_item_is_touched() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(9), &[]);
    let add = |server: &Server, id: u32| {
        server.upsert(json!({"id": id.to_string(), "pk": id, "b": 1})).unwrap();
    };
    for id in 0..40 {
        add(&server, id);
    }
    server.clock(1005);
    for id in 40..50 {
        add(&server, id);
    }
    assert_eq!(walked(&server, "b"), (50, 0));
    server.clock(1010);
    assert_eq!(walked(&server, "b"), (10, 1), "none is touched: that was asked once");
    add(&server, 40);
    assert_eq!(walked(&server, "b"), (10, 41), "one is touched: each of the dead is asked");
    server.clock(1014);
    assert_eq!(walked(&server, "b"), (1, 51), "the touched one lives by its item");
    server.purge();
    assert_eq!(walked(&server, "b"), (1, 2), "as long as it is there");
    server.clock(1019);
    server.purge();
    server.check();
    add(&server, 1);
    server.clock(1028);
    assert_eq!(walked(&server, "b"), (0, 1));
}

/// Writes rows as they are.
struct Tamper(Vec<(Vec<u8>, Option<Vec<u8>>)>);

impl Plan for Tamper {
    type Done = ();
    type Refusal = dayfly_storage::Error;

    fn draft(&self, _: &View<'_>) -> Result<Draft<()>> {
        let rows = self.0.clone();
        Ok(Draft::new(move |_, batch: &mut Batch| {
            for (key, value) in rows {
                match value {
                    Some(value) => batch.put(key, value),
                    None => batch.delete(key),
                }
            }
        }))
    }
}

#[test]
fn a_check_finds_a_touch_that_nobody_noted() {
    let server = touched_server(Some(9), &[]);
    let store = &*server.engine().shared.store;
    let tamper = |rows: Vec<(Vec<u8>, Option<Vec<u8>>)>| {
        commit(store, keys::bucket(1, 0), Tamper(rows)).wait().unwrap();
        server.engine().check()
    };
    let stored = |tag: u8| {
        let (key, value) = server.dump().into_iter().find(|(key, _)| key[0] == tag).unwrap();
        (key.to_vec(), value.to_vec())
    };
    let (count, counted) = stored(b't');
    assert!(tamper(vec![(count.clone(), None)]).is_err(), "it is not counted");
    // It is not noted anywhere: then its entries are wrong.
    let mut rows = vec![(count, None)];
    for (tag, at) in [(b'i', 37), (b'f', 28)] {
        let (key, mut value) = stored(tag);
        assert_eq!(std::mem::replace(&mut value[at], 0), 1);
        rows.push((key, Some(value)));
    }
    let error = tamper(rows.clone()).unwrap_err().to_string();
    assert!(error.contains("a row of an item"), "{error}");
    let (feed, _) = rows.pop().unwrap();
    let (_, row) = stored(b'f');
    let mut noted = row;
    noted[28] = 1;
    let count = (keys::touched(), Some(counted));
    assert!(tamper(vec![(feed, Some(noted)), count]).is_err(), "the item does not say so");
}
