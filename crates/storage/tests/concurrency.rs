//! Readers and writers at once: nothing stale, nothing torn, nothing lost.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use common::{Change, dump, puts, quick_folder, submit};
use dayfly_storage::{
    Bucket, Direction, Draft, Emptied, Error, KeyRange, Local, LocalOptions, Plan, Result,
    Snapshot, Store, View, commit,
};

const HERE: Bucket = Bucket(1);
const KEYS: usize = 8;
const WRITERS: usize = 3;
const ROUNDS: usize = 300;

/// Writers raise pairs of counters that always have to be equal; readers look
/// at them through the cache. The head says how many raises there were.
fn readers_see_whole_and_fresh_values(store: &dyn Store) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = [0; KEYS];
                while !done.load(Ordering::SeqCst) {
                    look(store, &mut last);
                }
            });
        }
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || (0..ROUNDS).for_each(|n| raise(store, writer + n))))
            .collect();
        let outcomes = writers.into_iter().map(std::thread::ScopedJoinHandle::join);
        let failed = outcomes.filter(std::result::Result::is_err).count();
        done.store(true, Ordering::SeqCst);
        assert_eq!(failed, 0);
    });
    let mut last = [0; KEYS];
    look(store, &mut last);
    assert_eq!(last.iter().sum::<u64>(), (WRITERS * ROUNDS) as u64);
}

/// Adds one to both counters of a key, and sees its own write.
fn raise(store: &dyn Store, n: usize) {
    let key = n % KEYS;
    let (lsn, raised) = commit(store, HERE, Raise(key)).wait().unwrap();
    let snapshot = store.snapshot().unwrap();
    assert!(snapshot.head(HERE).lsn >= lsn);
    assert!(number(snapshot.get(HERE, &left(key)).unwrap()) >= raised);
}

/// Looks at all counters: equal, never falling, and together the head's lsn.
fn look(store: &dyn Store, last: &mut [u64; KEYS]) {
    let snapshot: Box<dyn Snapshot> = store.snapshot().unwrap();
    let mut sum = 0;
    for (key, before) in last.iter_mut().enumerate() {
        let count = number(snapshot.get(HERE, &left(key)).unwrap());
        assert_eq!(count, number(snapshot.get(HERE, &right(key)).unwrap()));
        assert!(count >= *before);
        *before = count;
        sum += count;
    }
    assert_eq!(sum, snapshot.head(HERE).lsn);
}

fn left(key: usize) -> Vec<u8> {
    format!("left {key}").into_bytes()
}

fn right(key: usize) -> Vec<u8> {
    format!("right {key}").into_bytes()
}

fn number(value: Option<Bytes>) -> u64 {
    value.map_or(0, |value| std::str::from_utf8(&value).unwrap().parse().unwrap())
}

/// Adds one to both counters of a key; answers the lsn and the counter.
struct Raise(usize);

impl Plan for Raise {
    type Done = (u64, u64);
    type Refusal = Error;

    fn draft(&self, view: &View<'_>) -> Result<Draft<(u64, u64)>> {
        let key = self.0;
        let raised = number(view.get(&left(key))?) + 1;
        let also = number(view.get(&right(key))?) + 1;
        Ok(Draft::new(move |stamp, batch| {
            batch.put(left(key), raised.to_string());
            batch.put(right(key), also.to_string());
            (stamp.lsn, raised)
        }))
    }
}

#[test]
fn readers_see_whole_and_fresh_values_in_memory() {
    readers_see_whole_and_fresh_values(&Local::memory(LocalOptions::default()).unwrap());
}

#[test]
fn readers_see_whole_and_fresh_values_on_disk() {
    let folder = quick_folder();
    let store = Local::open(folder.path(), LocalOptions::default()).unwrap();
    readers_see_whole_and_fresh_values(&store);
}

/// One key moves about, and nothing else is there. Probes and scans learn
/// where it is not, and no reader may miss it.
#[test]
fn a_key_that_moves_is_always_found() {
    let slow_scan = Duration::ZERO;
    let store = Local::memory(LocalOptions { slow_scan, ..LocalOptions::default() }).unwrap();
    let key = |n: usize| format!("key {}", n * 7 % 10);
    submit(&store, HERE, &puts(&key(0), "here")).wait().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (range, deleted) = (KeyRange::prefix(b"key"), b"key 5".to_vec());
            while !done.load(Ordering::SeqCst) {
                let emptied = Emptied { range: range.clone(), deleted: deleted.clone() };
                store.hints().emptied(HERE, &[emptied]);
            }
        });
        let reader = scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let snapshot = store.snapshot().unwrap();
                for direction in [Direction::Forward, Direction::Backward] {
                    let all = KeyRange::prefix(b"key");
                    let found = snapshot.scan(HERE, &all, direction, 10).unwrap().len();
                    if found != 1 {
                        return found;
                    }
                }
            }
            1
        });
        for n in 0..5000 {
            let moves = Change {
                writes: vec![(key(n), None), (key(n + 1), Some("here".to_owned()))],
                ..Change::default()
            };
            submit(&store, HERE, &moves).wait().unwrap();
        }
        done.store(true, Ordering::SeqCst);
        assert_eq!(reader.join().unwrap(), 1, "it was there once, all the time");
    });
}

#[test]
fn many_waiting_writes_share_a_sync() {
    let folder = quick_folder();
    let store = Local::open(folder.path(), LocalOptions::default()).unwrap();
    let put = |n| submit(&store, HERE, &puts(&format!("key {n}"), "value"));
    let tickets: Vec<_> = (0..5000).map(put).collect();
    let lsns: Vec<u64> = tickets.into_iter().map(|ticket| ticket.wait().unwrap().lsn).collect();
    assert!(lsns.into_iter().eq(1..=5000));
    let figures = store.figures();
    assert_eq!(figures.commits, 5000);
    assert!(figures.groups < 2500, "{} groups for 5000 writes", figures.groups);
}

#[test]
fn clearing_beside_writers_loses_no_write() {
    let store = Local::memory(LocalOptions::default()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..200 {
                submit(&store, HERE, &puts(&format!("b{n}"), "1")).wait().unwrap();
            }
        });
        scope.spawn(|| {
            for _ in 0..200 {
                submit(&store, HERE, &puts("a", "1")).wait().unwrap();
                assert_eq!(store.clear(HERE, &KeyRange::prefix(b"a"), 10).unwrap().removed, 1);
            }
        });
    });
    let dump = dump(&store);
    assert_eq!((dump[0].1.lsn, dump[0].2.len()), (400, 200));
}
