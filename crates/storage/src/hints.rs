//! What only some stores have a use for.
//!
//! An LSM tree keeps what was deleted as tombstones, and a scan steps over them; it
//! holds in memory what is written while a snapshot is open; it reads faster what it
//! was asked for lately. Whoever knows something about that says so here, and asks
//! here. Nothing of it changes what a store holds or shows: for another kind of store
//! the defaults are right, and a caller cannot tell.

use bytes::Bytes;

use crate::{Bucket, Direction, KeyRange, Mark, Pair, Result, Snapshot, Store};

/// What may be said to a snapshot, and asked of it.
pub trait ReadHints: Snapshot {
    /// The value under `key`, for what nobody is going to ask for again.
    fn get_once(&self, bucket: Bucket, key: &[u8]) -> Result<Option<Bytes>> {
        self.get(bucket, key)
    }

    /// The values under several keys, for what nobody is going to ask for again.
    fn get_many_once(&self, bucket: Bucket, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        self.get_many(bucket, keys)
    }

    /// Whether `key` may have another value here than in an earlier snapshot. May be
    /// wrong only in saying so.
    fn may_differ(&self, _bucket: Bucket, _key: &[u8], _since: Mark) -> bool {
        true
    }

    /// As [`Snapshot::scan`], but what is in a range that is
    /// [barren](ReadHints::barren) may be left out.
    fn scan_alive(
        &self,
        bucket: Bucket,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>> {
        self.scan(bucket, range, direction, limit)
    }

    /// Says that nothing in this range is alive, at the time of this snapshot, and
    /// that what is there now never will be.
    fn barren(&self, _bucket: Bucket, _range: &KeyRange) {}
}

/// What may be said to a store, and asked of it.
pub trait StoreHints: Store {
    /// Much was deleted here. A store whose scans step over what was deleted
    /// finds out what is empty now, so that they do not.
    fn emptied(&self, _bucket: Bucket, _emptied: &[Emptied]) {}

    /// Removes tombstones and what was overwritten. Long.
    fn compact(&self) -> Result<()> {
        Ok(())
    }

    /// How many bytes were written since the start, where what is written while a
    /// snapshot is open stays in memory until it is closed: whoever keeps one open
    /// for long looks at this.
    fn written_bytes(&self) -> u64 {
        0
    }
}

/// Where much was deleted, in the order of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emptied {
    /// From the first key that was deleted to where it is of no more interest
    /// whether there is anything.
    pub range: KeyRange,
    /// All that was deleted is before this key.
    pub deleted: Vec<u8>,
}
