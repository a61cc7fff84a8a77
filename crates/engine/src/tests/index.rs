//! The index: entries are there, are the right ones, and are found; while the
//! policy changes, too.

mod barren;
mod histories;
mod touched;

use dayfly_model::indexing::IndexingPolicy;
use dayfly_model::indexing::Step;
use dayfly_model::indexing::rules::{Rules, path_id};
use dayfly_model::indexing::terms::Terms;
use dayfly_model::value::{Value as Ordered, order};
use dayfly_model::{ErrorKind, json};
use dayfly_storage::{Direction, Snapshot, Urgency};
use serde_json::{Value, json};

use super::computed;
use super::server::{Crash, Kind, Server, at, text, write};
use super::throughput::Unlimited;
use crate::QueryLimits;
use crate::catalog::Container;
use crate::index::rebuild::{self, Moved, Size};
use crate::index::walk::{self, Entries, EntryRange};
use crate::keys::{self, EntryKind};
use crate::operation::{
    Act, Condition, ContainerWishes, Indexing, Operation, Replacement, Showing,
};
use crate::record::Record;
use crate::reply::Success;
use crate::scope::Opened;

fn path(name: &str) -> u64 {
    path_id(&[Step::Name(name)])
}

/// All values of a type that can stand at a path.
fn whole(path: u64) -> EntryRange {
    EntryRange { kind: EntryKind::Value, path, start: vec![0], end: vec![order::PAST] }
}

fn replacement(default: Option<i64>, policy: &Value, computed: &Value) -> Operation {
    let mut definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"]}, "indexingPolicy": policy, "computedProperties": computed});
    if let Some(default) = default {
        definition["defaultTtl"] = default.into();
    }
    Operation::ReplaceContainer(Replacement {
        at: at(),
        definition: definition.to_string().into_bytes(),
        condition: Condition::default(),
        quota: true,
        confirm_expiry: false,
        showing: Showing::Whole,
    })
}

impl Server {
    pub(super) fn opened(&self) -> Opened {
        self.engine().shared.enter(&at(), ErrorKind::NotFound).unwrap()
    }

    fn try_policy(&self, default: Option<i64>, policy: &Value) -> Result<Success, ErrorKind> {
        self.try_definition(default, policy, &json!([]))
    }

    pub(super) fn try_definition(
        &self,
        default: Option<i64>,
        policy: &Value,
        computed: &Value,
    ) -> Result<Success, ErrorKind> {
        self.run(replacement(default, policy, computed))
    }

    fn set_policy(&self, policy: &Value) -> u8 {
        self.try_policy(None, policy).unwrap().index_progress.unwrap()
    }

    pub(super) fn progress(&self) -> u8 {
        let condition = Condition::default();
        let wishes = ContainerWishes { quota: true, ..ContainerWishes::default() };
        let read = Operation::ReadContainer { at: at(), condition, wishes };
        self.run(read).unwrap().index_progress.unwrap()
    }

    /// One unit of a rebuild, of so many items.
    pub(super) fn rebuild(&self, items: usize) -> Moved {
        let size = Size { items, bytes: 1 << 20, charge_max: None, urgency: Urgency::Now };
        rebuild::turn(&*self.engine().shared.store, &self.engine().shared.index, size, &Unlimited)
            .unwrap()
    }

    pub(super) fn rebuild_all(&self) {
        while self.rebuild(3) != Moved::Idle {}
    }

    pub(super) fn is_indexed(&self, name: &str) -> bool {
        let opened = self.opened();
        let (index, steps) = (&self.engine().shared.index, [Step::Name(name)]);
        walk::is_indexed(index, &*opened.snapshot, &opened.container, &steps).unwrap()
    }

    pub(super) fn composites(&self) -> usize {
        let opened = self.opened();
        let index = &self.engine().shared.index;
        walk::composites(index, &*opened.snapshot, &opened.container).unwrap().len()
    }

    fn lacking(&self, name: &str) -> u64 {
        let opened = self.opened();
        let of = |bucket| walk::lacking(&*opened.snapshot, bucket, path(name)).unwrap();
        opened.container.buckets().map(of).sum()
    }

    /// The ids of what is alive in a range of entries, in pages of `limit`.
    fn walk(&self, entry_range: &EntryRange, direction: Direction, limit: usize) -> Vec<String> {
        let opened = self.opened();
        let walk = |bucket| {
            let snapshot = &*opened.snapshot;
            let mut entries =
                Entries::new(snapshot, bucket, entry_range, direction, &QueryLimits::SMALL)
                    .unwrap();
            let mut found = Vec::new();
            loop {
                let Some(page) = entries.page(limit).unwrap() else { return found };
                assert!(page.len() <= limit && page.len() as u64 <= entries.looked.keys);
                if let Some(last) = page.last() {
                    // Going on from a position is the same as going on.
                    let again =
                        Entries::new(snapshot, bucket, entry_range, direction, &QueryLimits::SMALL)
                            .unwrap();
                    entries = again.after(entry_range, &last.value, last.docno);
                }
                found.extend(page.iter().map(|entry| {
                    let item = snapshot.get(bucket, &keys::item(entry.docno)).unwrap().unwrap();
                    let id = Record::decode(item).unwrap().id().to_vec();
                    String::from_utf8(id).unwrap()
                }));
            }
        };
        opened.container.buckets().flat_map(walk).collect()
    }

    fn found(&self, name: &str) -> Vec<String> {
        self.walk(&whole(path(name)), Direction::Forward, 2)
    }

    /// The keys of all entries.
    pub(super) fn entries(&self) -> Vec<Vec<u8>> {
        let entries = self.dump().into_iter().filter(|(key, _)| keys::is_indexed(key));
        entries.map(|(key, _)| key.to_vec()).collect()
    }

    /// Nothing is under way any more, and the entries are those that the policy
    /// of the container says, derived from nothing but that and the items.
    pub(super) fn is_settled(&self) {
        let opened = self.opened();
        let rules = computed::plain_rules(opened.container.definition());
        let mut expected: Vec<_> = opened
            .container
            .buckets()
            .flat_map(|bucket| derived(&*opened.snapshot, &opened.container, bucket, &rules))
            .collect();
        let mut entries = self.entries();
        expected.sort();
        entries.sort();
        assert_eq!(entries, expected);
        assert!(self.dump().iter().all(|(key, _)| *key != keys::index_rebuilt()));
        assert_eq!(self.progress(), 100);
        self.check();
    }
}

fn derived(
    snapshot: &dyn Snapshot,
    container: &Container,
    bucket: dayfly_storage::Bucket,
    rules: &Rules,
) -> Vec<Vec<u8>> {
    let range = dayfly_storage::KeyRange::prefix(b"i");
    let rows = snapshot.scan(bucket, &range, Direction::Forward, usize::MAX).unwrap();
    let mut expected = Vec::new();
    for (_, row) in rows {
        let record = crate::record::Record::decode(row).unwrap();
        if record.indexing == Indexing::Exclude {
            continue;
        }
        let text = std::str::from_utf8(record.text()).unwrap();
        let text = computed::as_if_stored(container.definition(), text);
        let terms = Terms::of(&text, record.ts, &[], rules).unwrap();
        let all = terms.values.iter().map(|term| (EntryKind::Value, term));
        let all = all.chain(terms.composites.iter().map(|term| (EntryKind::Composite, term)));
        expected.extend(all.map(|(kind, term)| keys::entry(kind, term.bytes(), record.docno)));
    }
    expected
}

fn directed(item: &Value, indexing: Indexing) -> Operation {
    match write(Act::Upsert(text(item)), &item["pk"].to_string()) {
        Operation::WriteItem(write) => {
            Operation::WriteItem(crate::operation::WriteItem { indexing, ..write })
        }
        other => other,
    }
}

const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];

pub(super) fn only(names: &[&str]) -> Value {
    let included: Vec<_> = names.iter().map(|name| json!({"path": format!("/{name}/*")})).collect();
    json!({"includedPaths": included, "excludedPaths": [{"path": "/*"}]})
}

#[test]
fn items_are_found_by_what_they_hold() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    for (id, a) in [
        ("1", json!(3)),
        ("2", json!("x")),
        ("3", json!(-1.5)),
        ("4", json!([1, "x", 1])),
        ("5", json!({"b": 3})),
        ("6", json!(null)),
        ("7", json!(3.0)),
        ("8", json!("y".repeat(600))),
    ] {
        server.create(json!({"id": id, "pk": id, "a": a})).unwrap();
    }
    server.create(json!({"id": "9", "pk": "9"})).unwrap();
    let order = ["6", "3", "1", "7", "2", "8", "4", "5"];
    for limit in 1..10 {
        assert_eq!(server.walk(&whole(path("a")), Direction::Forward, limit), order, "{limit}");
        let mut backward = server.walk(&whole(path("a")), Direction::Backward, limit);
        backward.reverse();
        assert_eq!(backward, order, "{limit}");
    }
    let key = |value: i64| order::key(&Ordered::from(value));
    let numbers = EntryRange { start: key(0), end: key(4), ..whole(path("a")) };
    assert_eq!(server.walk(&numbers, Direction::Forward, 9), ["1", "7"]);
    let elements = path_id(&[Step::Name("a"), Step::Item]);
    assert_eq!(server.walk(&whole(elements), Direction::Forward, 9), ["4", "4"]);
    let below = path_id(&[Step::Name("a"), Step::Name("b")]);
    assert_eq!(server.walk(&whole(below), Direction::Forward, 9), ["5"]);
    assert_eq!((server.lacking("a"), server.lacking("id"), server.lacking("zz")), (1, 0, 9));
    assert!(server.is_indexed("a") && server.is_indexed("zz"));
    assert!(server.is_indexed("_ts"), "the feed serves it");
    assert!(!server.is_indexed("_etag"));
    server.is_settled();
}

#[test]
fn a_walk_shows_what_is_alive() {
    for slices in [1, 4] {
        let mut server = Server::new(Kind::Memory { slices });
        server.make_container(Some(9), &[]);
        let item = |id: &str, ttl: Value| json!({"id": id, "pk": id, "a": 1, "ttl": ttl});
        for (id, ttl) in [("1", json!(5)), ("2", json!(-1)), ("3", json!(30)), ("4", json!(5))] {
            server.create(item(id, ttl)).unwrap();
        }
        server.create(json!({"id": "5", "pk": "5", "a": 1})).unwrap();
        server.create(json!({"id": "6", "pk": "6", "a": 1})).unwrap();
        let alive = |server: &Server, expected: &[&str]| {
            for direction in BOTH {
                for limit in [1, 2, 100] {
                    let mut found = server.walk(&whole(path("a")), direction, limit);
                    found.sort();
                    assert_eq!(found, expected);
                }
            }
        };
        alive(&server, &["1", "2", "3", "4", "5", "6"]);
        server.clock(1004);
        // A touch leaves the entries as they are; a shorter life does not.
        server.upsert(item("4", json!(5))).unwrap();
        server.upsert(json!({"id": "6", "pk": "6", "a": 1})).unwrap();
        server.upsert(item("3", json!(2))).unwrap();
        server.check();
        server.clock(1005);
        alive(&server, &["2", "3", "4", "5", "6"]);
        server.clock(1006);
        alive(&server, &["2", "4", "5", "6"]);
        server.clock(1009);
        alive(&server, &["2", "6"]);
        server.purge();
        server.check();
        alive(&server, &["2", "6"]);
        assert_eq!(server.lacking("a"), 0);
    }
}

#[test]
fn what_a_touch_writes() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(1000), &[]);
    let item = |b: i64, ttl: Value| json!({"id": "a", "pk": "x", "b": b, "c": [1, 2], "ttl": ttl});
    server.create(item(1, json!(100))).unwrap();
    let all = server.entries().len();
    assert_eq!(all, 7);
    server.clock(1010);
    for (now, expected, why) in [
        (item(1, json!(100)), 0, "a touch"),
        (item(1, json!(200)), 1, "a longer life, whose ttl has another entry"),
        (item(1, json!(50)), all, "a shorter life"),
        (item(1, json!(-1)), all, "another class"),
        (item(1, json!(-1)), 0, "nothing"),
        (item(2, json!(-1)), 1, "one value"),
    ] {
        let before = server.dump();
        server.upsert(now).unwrap();
        let after = server.dump();
        let changed = after.iter().filter(|row| keys::is_indexed(&row.0) && !before.contains(row));
        assert_eq!(changed.count(), expected, "{why}");
        assert_eq!(server.entries().len(), all, "{why}");
        server.check();
    }
}

#[test]
fn a_request_may_leave_an_item_out_of_the_index() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    let item = |id: &str| json!({"id": id, "pk": "x", "a": 1});
    for (id, indexing) in
        [("1", Indexing::ByPolicy), ("2", Indexing::Exclude), ("3", Indexing::Include)]
    {
        server.run(directed(&item(id), indexing)).unwrap();
    }
    assert_eq!(server.found("a"), ["1", "3"]);
    assert!(!server.is_indexed("a"), "an item is missing");
    server.is_settled();
    assert_eq!(server.set_policy(&only(&["a"])), 0);
    server.rebuild_all();
    assert_eq!(server.found("a"), ["1", "3"], "another policy leaves out the same items");
    server.is_settled();
    // The next write decides anew.
    server.run(directed(&item("2"), Indexing::Include)).unwrap();
    assert_eq!(server.found("a"), ["1", "2", "3"]);
    assert!(server.is_indexed("a"));
    server.is_settled();
    server.run(write(Act::Delete("1".to_owned()), "\"x\"")).unwrap();
    server.run(directed(&item("2"), Indexing::Exclude)).unwrap();
    assert!(!server.is_indexed("a"));
    server.run(write(Act::Delete("2".to_owned()), "\"x\"")).unwrap();
    assert!(server.is_indexed("a"));
    server.is_settled();
}

#[test]
fn a_policy_changes_while_items_are_written() {
    for slices in [1, 4] {
        let mut server = Server::new(Kind::Memory { slices });
        server.make_container(None, &[]);
        let item =
            |id: u32, a: u32| json!({"id": id.to_string(), "pk": id, "a": a, "b": 1, "c": 1});
        for id in 0..40 {
            server.create(item(id, 0)).unwrap();
        }
        assert_eq!(server.set_policy(&only(&["a", "b"])), 0);
        assert!(server.is_indexed("a") && server.is_indexed("b") && !server.is_indexed("c"));
        for round in 0..5 {
            assert_eq!(server.rebuild(4), Moved::Committed);
            for id in [round, 39 - round, 40 + round] {
                server.upsert(item(id, round)).unwrap();
            }
            server
                .run(write(Act::Delete((20 + round).to_string()), &(20 + round).to_string()))
                .unwrap();
            server.check();
        }
        let halfway = server.progress();
        assert!((1..100).contains(&halfway), "{halfway}");
        server.restart();
        assert_eq!(server.progress(), halfway);
        assert!(!server.is_indexed("c"));
        server.rebuild_all();
        assert_eq!(server.found("a").len(), 40);
        assert_eq!(server.found("c").len(), 0);
        server.is_settled();

        // New entries can be used when they are all there.
        assert_eq!(server.set_policy(&only(&["c"])), 0);
        server.rebuild(4);
        assert!(!server.is_indexed("a") && !server.is_indexed("c"));
        server.crash(Crash::Kill);
        server.rebuild_all();
        assert!(!server.is_indexed("a") && server.is_indexed("c"));
        assert_eq!(server.found("c").len(), 40);
        server.is_settled();

        assert_eq!(server.set_policy(&json!({"indexingMode": "none"})), 0);
        server.rebuild_all();
        assert_eq!(server.entries().len(), 0);
        assert!(!server.is_indexed("id"));
        server.is_settled();
    }
}

#[test]
fn an_empty_container_follows_its_policy_at_once() {
    let mut server = Server::new(Kind::Memory { slices: 4 });
    server.make_container(None, &[]);
    assert_eq!(server.set_policy(&only(&["a"])), 100);
    assert!(server.is_indexed("a") && !server.is_indexed("b"));
    // What is not about entries is no change.
    server.create(json!({"id": "1", "pk": "x"})).unwrap();
    let mut policy = only(&["a"]);
    policy["spatialIndexes"] = json!([{"path": "/p/*"}]);
    policy["indexingMode"] = json!("lazy");
    assert_eq!(server.set_policy(&policy), 100);
    server.is_settled();
}

#[test]
fn the_background_rebuilds_an_index() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    for id in 0..100 {
        server.create(json!({"id": id.to_string(), "pk": id, "a": id})).unwrap();
    }
    server.set_policy(&only(&["a"]));
    server.restart();
    assert_eq!(server.progress(), 0);
    server.turns();
    server.is_settled();
    let commits = server.commits();
    server.turns();
    assert_eq!(server.commits(), commits);
}

#[test]
fn too_many_changes_at_once_are_refused() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    server.create(json!({"id": "1", "pk": "x", "a": 1})).unwrap();
    let refused = (0..).find_map(|round| {
        server.try_policy(None, &only(&[&format!("a{round}")])).err().map(|kind| (round, kind))
    });
    assert_eq!(refused, Some((31, ErrorKind::ServiceUnavailable)));
    server.check();
    server.rebuild_all();
    server.is_settled();
    server.set_policy(&only(&["a"]));
    server.rebuild_all();
    server.is_settled();
}

/// All entries of the first composite index of a policy.
fn first_composite(policy: &Value) -> EntryRange {
    let rules = Rules::new(&IndexingPolicy::parse(policy).unwrap());
    let path = rules.composites()[0].id;
    EntryRange { kind: EntryKind::Composite, path, start: vec![], end: vec![0xFF] }
}

#[test]
fn composite_entries_are_in_the_order_of_their_index() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    for (id, a, b) in [("1", 1, 1), ("2", 1, 2), ("3", 0, 0), ("4", 2, 9)] {
        server.create(json!({"id": id, "pk": id, "a": a, "b": b})).unwrap();
    }
    server.create(json!({"id": "5", "pk": "5", "a": 1})).unwrap();
    assert_eq!(server.composites(), 0);
    let mut policy = only(&[]);
    let paths = [json!({"path": "/a"}), json!({"path": "/b", "order": "descending"})];
    policy["compositeIndexes"] = json!([paths]);
    server.set_policy(&policy);
    server.rebuild(2);
    assert_eq!(server.composites(), 0);
    server.rebuild_all();
    assert_eq!(server.composites(), 1);
    server.is_settled();
    let entry_range = first_composite(&policy);
    assert_eq!(server.walk(&entry_range, Direction::Forward, 2), ["3", "2", "1", "5", "4"]);
    assert_eq!(server.walk(&entry_range, Direction::Backward, 2), ["4", "5", "1", "2", "3"]);
}

#[test]
fn a_touch_moves_an_item_in_a_composite_index_over_its_time() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    let mut policy = only(&[]);
    let paths = [json!({"path": "/a"}), json!({"path": "/_ts", "order": "descending"})];
    policy["compositeIndexes"] = json!([paths]);
    server.set_policy(&policy);
    let entry_range = first_composite(&policy);
    for (second, id) in (1001..).zip(["1", "2", "3", "1", "2"]) {
        server.clock(second);
        server.upsert(json!({"id": id, "pk": id, "a": 1})).unwrap();
        server.is_settled();
    }
    assert_eq!(server.walk(&entry_range, Direction::Forward, 2), ["2", "1", "3"]);
    assert_eq!(server.composites(), 1);
}

#[test]
fn a_check_finds_entries_that_are_missing_or_too_many() {
    use dayfly_storage::{Batch, Draft, Plan, View, commit};
    struct Tamper(Vec<u8>, Option<Vec<u8>>);
    impl Plan for Tamper {
        type Done = ();
        type Refusal = dayfly_storage::Error;
        fn draft(&self, _: &View<'_>) -> dayfly_storage::Result<Draft<()>> {
            let (key, value) = (self.0.clone(), self.1.clone());
            Ok(Draft::new(move |_, batch: &mut Batch| match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }))
        }
    }
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    server.create(json!({"id": "1", "pk": "x", "a": 1})).unwrap();
    server.check();
    let store = &*server.engine().shared.store;
    let tamper = |key: &[u8], value: Option<&[u8]>| {
        let tamper = Tamper(key.to_vec(), value.map(<[u8]>::to_vec));
        commit(store, keys::bucket(1, 0), tamper).wait().unwrap();
    };
    let rows = server.dump();
    let mut tampered = 0;
    for (key, value) in rows.iter().filter(|(key, _)| matches!(key[0], b'k' | b'n')) {
        tamper(key, None);
        assert!(server.engine().check().is_err(), "{key:?}");
        tamper(key, Some(value));
        server.check();
        let surplus = [&key[..], &[0; 8]].concat();
        tamper(&surplus, Some(value));
        assert!(server.engine().check().is_err(), "{key:?}");
        tamper(&surplus, None);
        tampered += 1;
    }
    assert_eq!(tampered, 6);
}

#[test]
fn the_largest_item_is_indexed_and_removed() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(5), &[]);
    let empty = server.entries().len();
    let item = json!({"id": "1", "pk": "x", "a": (0..200_000).collect::<Vec<_>>()});
    assert!(json::parse(item.to_string().as_bytes(), &[]).unwrap().bytes() > 1_000_000);
    server.create(item).unwrap();
    assert!(server.entries().len() > 200_000);
    server.clock(1005);
    assert_eq!(server.purge(), 1);
    assert_eq!(server.entries().len(), empty);
}
