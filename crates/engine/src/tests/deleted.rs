//! Deletes of whole partitions: what can be seen while the purge removes them, bit by bit.

use std::sync::Arc;

use dayfly_model::{ErrorKind, Timestamp};
use dayfly_storage::Snapshot;
use serde_json::{Value, json};

use super::patches::batch;
use super::server::{Crash, Kind, Server, at, partition_key, text};
use crate::deleted::{AGAIN_MAX, PENDING_MAX, all};
use crate::keys;
use crate::operation::{Act, BatchMode, Operation, Part, QueryItems};

impl Server {
    pub(super) fn delete_partition(&self, key: &str) -> Result<(), ErrorKind> {
        let partition_key = Some(partition_key(key));
        self.run(Operation::DeletePartition { at: at(), partition_key }).map(|_| ())
    }

    fn count(&self) -> u64 {
        let query = json!({"query": "SELECT VALUE COUNT(1) FROM c"}).to_string().into_bytes();
        let query = QueryItems { at: at(), query, cross_partition: true, ..QueryItems::default() };
        let success = self.run(Operation::QueryItems(query)).unwrap();
        let body: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
        body["Documents"][0].as_u64().unwrap()
    }

    /// What is alive by the histogram, and what has expired and is still there.
    fn figures(&self) -> (u64, u64) {
        let success = self.run(Operation::ReadTtl { at: at() }).unwrap();
        let body: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
        let items = |name: &str| body[name]["items"].as_u64().unwrap();
        (items("live"), items("backlog"))
    }
}

/// Whoever counted before a delete, and says so after it, is not believed.
#[test]
fn figures_from_before_a_delete_are_not_told_after_it() {
    for slices in [1, 4] {
        let mut server = Server::new(Kind::Memory { slices });
        server.make_container(None, &[]);
        for (id, key) in [("1", "a"), ("2", "a"), ("3", "b")] {
            server.create(json!({"id": id, "pk": key})).unwrap();
        }
        server.clock(1001);
        let shared = &server.engine().shared;
        let container = Arc::clone(&shared.enter_part(&at(), &Part::default()).unwrap().container);
        let counted = |snapshot: &dyn Snapshot| {
            let live = shared.usage.of(snapshot, &container, Timestamp(snapshot.now()), 0);
            live.map(|live| live.items)
        };
        let before = shared.store.snapshot().unwrap();
        server.delete_partition("a").unwrap();
        server.purge();
        // As if somebody had begun to count before the delete and come to an end after it.
        assert_eq!(counted(&*before), Some(3), "{slices} buckets");
        assert_eq!(counted(&*shared.store.snapshot().unwrap()), Some(1), "{slices} buckets");
    }
}

/// More than one unit of the purge takes, so that what is seen in between is compared.
#[test]
fn nothing_of_a_large_partition_is_seen_while_it_goes() {
    const GONE: u64 = 1300;
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(100), &["/email"]);
    for number in 0..GONE {
        let item = json!({"id": number.to_string(), "pk": "a", "email": number, "n": number});
        server.create(item).unwrap();
    }
    server.create(json!({"id": "stays", "pk": "b", "n": 1})).unwrap();
    server.delete_partition("a").unwrap();
    server.create(json!({"id": "0", "pk": "a", "email": 7, "n": 1})).unwrap();
    let mut left = server.stored_items();
    assert!(left > 1000);
    while left > 2 {
        assert_eq!((server.count(), server.figures()), (2, (2, 0)));
        assert_eq!(server.read("5", "a"), Err(ErrorKind::NotFound));
        server.check();
        server.turn();
        let now = server.stored_items();
        assert!(now < left, "{now} of {left}");
        left = now;
    }
    // It was deleted and has not expired.
    assert_eq!(server.engine().purged_items(), 0);
    assert_eq!((server.count(), server.figures()), (2, (2, 0)));
    server.check();
}

impl Server {
    /// Items of a partition, in commits of many.
    fn fill(&self, key: &str, count: u64) {
        let numbers: Vec<u64> = (0..count).collect();
        for numbers in numbers.chunks(100) {
            let item = |n: &u64| json!({"id": n.to_string(), "pk": key, "email": n, "n": n});
            let acts = numbers.iter().map(|number| Act::Create(text(&item(number))));
            let done = self.run(Operation::WriteBatch(batch(BatchMode::Atomic, key, acts)));
            let done = done.unwrap();
            assert_eq!(done.status, 200);
        }
    }

    /// Up to which number the purge has removed the items of the only deleted partition; `None`:
    /// it has come to an end.
    fn swept(&self) -> Option<u64> {
        let snapshot = self.engine().shared.store.snapshot().unwrap();
        let buckets = self.engine().shared.store.buckets().into_iter();
        let buckets = buckets.filter(|bucket| keys::container_of(*bucket).is_some());
        let all =
            buckets.flat_map(|bucket| all(&*snapshot, bucket, &snapshot.head(bucket)).unwrap());
        all.map(|deleted| deleted.done).next()
    }
}

/// A sweep that is cut off goes on where it was: after a stop, a kill and a power cut between
/// its units, again and again. Nothing comes back meanwhile, and nothing stays behind.
#[test]
fn a_sweep_goes_on_after_whatever_cuts_it_off() {
    for kind in [Kind::Memory { slices: 1 }, Kind::Disk { slices: 1 }] {
        let mut server = Server::new(kind);
        server.make_container(Some(1000), &["/email"]);
        server.fill("a", 300);
        server.create(json!({"id": "stays", "pk": "b", "email": 7, "n": 1})).unwrap();
        server.delete_partition("a").unwrap();
        server.create(json!({"id": "5", "pk": "a", "email": 7, "n": 1})).unwrap();
        let (mut left, mut swept, mut units) = (server.stored_items(), server.swept(), 0);
        let mut cuts = [None, Some(Crash::Kill), Some(Crash::PowerCut)].into_iter().cycle();
        while swept.is_some() {
            match cuts.next().unwrap() {
                None => server.restart(),
                Some(crash) => server.crash(crash),
            }
            assert_eq!((server.stored_items(), server.swept()), (left, swept), "{kind:?}");
            assert_eq!((server.count(), server.figures()), (2, (2, 0)), "{kind:?}");
            assert_eq!(server.read("6", "a"), Err(ErrorKind::NotFound));
            assert_eq!(server.read("5", "a").unwrap()["n"], 1);
            server.check();
            server.turn();
            let now = (server.stored_items(), server.swept());
            assert!(now.0 < left || now.1.is_none(), "{kind:?}: {now:?} of {left}");
            // The place is stored with the unit: nothing is looked at twice.
            assert!(now.1.is_none_or(|done| Some(done) > swept), "{kind:?}: {now:?}");
            (left, swept) = now;
            units += 1;
        }
        assert!(units >= 10, "{kind:?}: {units} units");
        server.crash(Crash::Kill);
        assert_eq!((server.count(), server.stored_items()), (2, 2), "{kind:?}");
        server.check();
    }
}

/// The answer costs the same, and the sweep comes to an end.
#[test]
fn ten_thousand_items_are_gone_at_once() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    server.fill("a", 10_000);
    server.create(json!({"id": "stays", "pk": "b"})).unwrap();
    let commits = server.commits();
    server.delete_partition("a").unwrap();
    assert_eq!(server.commits(), commits + 1);
    assert_eq!((server.count(), server.figures()), (1, (1, 0)));
    assert_eq!(server.stored_items(), 10_001);
    server.purge();
    assert_eq!((server.count(), server.figures()), (1, (1, 0)));
    assert_eq!(server.stored_items(), 1);
    server.check();
}

#[test]
fn only_so_many_wait_for_the_purge() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    for number in 0..=PENDING_MAX {
        server.create(json!({"id": "1", "pk": format!("k{number}")})).unwrap();
    }
    for number in 0..PENDING_MAX {
        server.delete_partition(&format!("k{number}")).unwrap();
    }
    let last = format!("k{PENDING_MAX}");
    assert_eq!(server.delete_partition(&last), Err(ErrorKind::RetryWith));
    // One that waits already can be deleted again.
    server.delete_partition("k0").unwrap();
    assert_eq!(server.count(), 1);
    server.crash(Crash::Kill);
    assert_eq!(server.count(), 1);
    server.purge();
    server.delete_partition(&last).unwrap();
    assert_eq!(server.count(), 0);
    server.purge();
    assert_eq!(server.stored_items(), 0);
    server.check();
}

/// Where there is a log, each time is remembered until the purge came.
#[test]
fn with_a_log_a_partition_waits_only_so_often() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    server.begin_log();
    for _ in 0..AGAIN_MAX {
        server.create(json!({"id": "1", "pk": "a"})).unwrap();
        server.delete_partition("a").unwrap();
    }
    server.create(json!({"id": "1", "pk": "a"})).unwrap();
    assert_eq!(server.delete_partition("a"), Err(ErrorKind::RetryWith));
    assert_eq!(server.count(), 1, "it was refused");
    server.delete_partition("b").unwrap();
    server.purge();
    server.delete_partition("a").unwrap();
    assert_eq!(server.count(), 0);
    server.check();
}
