//! What the tests of this crate share.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part of it")]

use std::sync::Arc;

use dayfly_storage::clock::HandWall;
use dayfly_storage::tally::{self, Count};
use dayfly_storage::{
    Bucket, Direction, Draft, Error, Head, KeyRange, LARGE_ROWS, LocalOptions, Pair, Plan, Result,
    Room, Stamp, Store, Ticket, View, commit,
};

/// One write: keys to set or to remove, and perhaps a new state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    pub(crate) writes: Vec<(String, Option<String>)>,
    pub(crate) state: Option<String>,
    /// A key whose present value is put in front of every value written.
    pub(crate) reads: Option<String>,
    pub(crate) frees: bool,
    /// A cell to count in, of the tally `t`.
    pub(crate) counts: Option<u8>,
    /// Whether it says that it is large.
    pub(crate) is_large: bool,
}

impl Plan for Change {
    type Done = Stamp;
    type Refusal = Error;

    fn draft(&self, view: &View<'_>) -> Result<Draft<Stamp>> {
        let change = self.clone();
        let rows = if self.is_large { LARGE_ROWS + 1 } else { self.writes.len() };
        let before = match &self.reads {
            Some(key) => view.get(key.as_bytes())?.unwrap_or_default(),
            None => bytes::Bytes::new(),
        };
        Ok(Draft::new(move |stamp, batch| {
            for (key, value) in change.writes {
                match value {
                    Some(value) => {
                        let tail = value.as_bytes();
                        let from = before.len().min(64);
                        let value = [&before[..from], tail].concat();
                        batch.put(key.into_bytes(), value);
                    }
                    None => batch.delete(key.into_bytes()),
                }
            }
            if let Some(cell) = change.counts {
                let count = Count { items: 1, bytes: stamp.lsn };
                batch.add(b"t".to_vec(), cell, tally::Change::More(count));
            }
            if let Some(state) = change.state {
                batch.set_state(state);
            }
            stamp
        })
        .of_rows(rows))
    }

    fn room(&self) -> Room {
        if self.frees { Room::Frees } else { Room::Grows }
    }
}

pub(crate) fn submit(store: &dyn Store, bucket: Bucket, change: &Change) -> Ticket<Change> {
    commit(store, bucket, change.clone())
}

pub(crate) fn puts(key: &str, value: &str) -> Change {
    Change { writes: vec![(key.to_owned(), Some(value.to_owned()))], ..Change::default() }
}

pub(crate) fn deletes(key: &str) -> Change {
    Change { writes: vec![(key.to_owned(), None)], frees: true, ..Change::default() }
}

pub(crate) fn put(store: &dyn Store, bucket: Bucket, key: &str, value: &str) -> Result<Stamp> {
    submit(store, bucket, &puts(key, value)).wait()
}

pub(crate) fn get(store: &dyn Store, bucket: Bucket, key: &str) -> Option<String> {
    let value = store.snapshot().unwrap().get(bucket, key.as_bytes()).unwrap()?;
    Some(String::from_utf8(value.to_vec()).unwrap())
}

/// Everything a store shows: each bucket with its head and its pairs.
pub(crate) fn dump(store: &dyn Store) -> Vec<(Bucket, Head, Vec<Pair>)> {
    let snapshot = store.snapshot().unwrap();
    let all = KeyRange::prefix(b"");
    let scan = |bucket| snapshot.scan(bucket, &all, Direction::Forward, usize::MAX).unwrap();
    let buckets = store.buckets().into_iter();
    buckets.map(|bucket| (bucket, snapshot.head(bucket), scan(bucket))).collect()
}

/// Options with a clock that stands at `second`.
pub(crate) fn at(wall: &Arc<HandWall>) -> LocalOptions {
    LocalOptions { wall: wall.clone(), ..LocalOptions::default() }
}

/// A folder for a test that is not about the disk: in memory where there is
/// such a place, since a test syncs as often as a server does in an hour.
pub(crate) fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Text that does not compress well.
pub(crate) fn noise(seed: u32, length: usize) -> String {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b' ' + u8::try_from((state >> 16) % 95).unwrap())
    };
    (0..length).map(|_| next()).collect()
}
