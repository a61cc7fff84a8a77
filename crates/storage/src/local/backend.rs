//! What an engine in this process has to do for [`Local`](super::Local).
//!
//! A backend keeps keys in byte order and applies what changes whole or not at
//! all. A key here starts with the eight bytes of its bucket. Heads, the lease and
//! the test clock are handed to it as what they are: one that has no better place
//! for them makes rows of them ([`Changes::into_rows`], [`Loaded::from_rows`]).
//! Only one thread at a time calls `apply`, `load`, `sync`, `close` and `reopen`;
//! everything else comes from any thread.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bytes::Bytes;

use crate::clock::{Anchor, TestClock};
use crate::{Bucket, Direction, Error, Head, Result, Second};

/// Values to set, and keys (without a value) to remove.
pub type Writes = BTreeMap<Vec<u8>, Option<Bytes>>;

/// Heads to set, and buckets (without a head) to forget.
pub type NewHeads = BTreeMap<Bucket, Option<Head>>;

/// What one batch changes. What is absent stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Rows.
    pub writes: Writes,
    /// Where buckets stand.
    pub heads: NewHeads,
    /// How far the clock may go.
    pub lease: Option<Lease>,
    /// What was done to the test clock.
    pub test_clock: Option<TestClock>,
    /// How often the store was opened, with this time.
    pub opened: Option<u32>,
}

impl Changes {
    /// About how many bytes it brings. The lease does not count: it replaces one.
    pub(super) fn bytes(&self) -> usize {
        let rows = self.writes.iter();
        let rows = rows.map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len));
        let heads = self.heads.values().flatten();
        rows.sum::<usize>() + heads.map(|head| HEAD_BYTES + head.state.len()).sum::<usize>()
    }
}

/// Its bucket, its lsn and its time.
const HEAD_BYTES: usize = 24;

/// How far the clock may go, and what measures the clock then: never one without
/// the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// The floor of the clock at the next opening.
    pub until: Second,
    /// By what the next opening measures the wall clock.
    pub anchor: Anchor,
}

/// What a store knows of itself when it is opened; nothing in a new one.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// Where each bucket stands.
    pub heads: Vec<(Bucket, Head)>,
    /// The last lease.
    pub lease: Lease,
    /// What was done to the test clock, if it was moved.
    pub test_clock: Option<TestClock>,
    /// How often the store was opened.
    pub opened: u32,
}

/// When a write has to be on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Before it is visible and answered.
    #[default]
    Sync,
    /// About a second later. A power cut may take the last writes; a crash of
    /// the process takes none.
    Relaxed,
}

/// What a backend holds, roughly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Rows on disk, with tombstones.
    pub rows: u64,
    /// Tombstones on disk, which go in a compaction.
    pub deleted: u64,
}

/// Called between the steps of a long work; says whether to go on.
pub type Rest<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// Ordered bytes.
pub trait Backend: Send + Sync + 'static {
    /// What [`Backend::rows`] gives.
    type Rows: Rows;

    /// What to call it in a sentence for a person.
    fn name(&self) -> String;

    /// Everything applied so far. Later writes do not show in it.
    fn rows(&self) -> Result<Self::Rows>;

    /// Whether a read of its rows may wait for a network.
    fn waits(&self) -> bool {
        false
    }

    /// Whether the backend is in order. After an error it must be reopened.
    fn is_alive(&self) -> Result<()> {
        Ok(())
    }

    /// Waits until the backend can take a write. After an error nothing was
    /// written, and the backend must be reopened.
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    /// Whether there is much left to do of what was applied: with much more to
    /// come, writes would have to wait.
    fn is_behind(&self) -> bool {
        false
    }

    /// What the store wrote of itself so far.
    fn load(&self) -> Result<Loaded>;

    /// Applies `changes`, all or none, and syncs them if asked to. After an
    /// error it is not known whether they are there, and the backend must be
    /// reopened.
    fn apply(&self, changes: Changes, durability: Durability) -> Result<()>;

    /// Brings everything applied so far to the disk.
    fn sync(&self) -> Result<()>;

    /// Removes tombstones and what was overwritten. Long.
    fn compact(&self) -> Result<()>;

    /// Removes tombstones, step by step, each with little room on
    /// the disk. After each step it calls `rest`, which may wait, or stop it.
    fn tidy(&self, _rest: &mut Rest<'_>) -> Result<()> {
        Ok(())
    }

    /// Removes at once what [`Backend::tidy`] had to leave, if that is not long.
    /// Writes may have to wait meanwhile.
    fn sweep(&self) -> Result<()> {
        Ok(())
    }

    /// Called about once a second.
    fn tick(&self) {}

    /// What there is to compact.
    fn held(&self) -> Held {
        Held::default()
    }

    /// Gives back the room of what no snapshot can reach any more. Called
    /// after `compact`, when a newer snapshot is published, and while the
    /// disk is full.
    fn release(&self) -> Result<()>;

    /// Keeps the end of the clock's lease where that needs no room, and brings it
    /// to the disk. Called while a write finds no room. [`Backend::load`] shows it.
    fn keep_lease(&self, _until: Second) -> Result<()> {
        Err(Error::Full)
    }

    /// Bytes on disk.
    fn disk_bytes(&self) -> u64;

    /// Bytes free where the data is, if that is known.
    fn free_bytes(&self) -> Option<u64>;

    /// Leaves the data so that opening it is quick, and lets go of it.
    fn close(&self) -> Result<()>;

    /// Opens the data again after an error, as it is on disk.
    fn reopen(&self) -> Result<()>;
}

/// Everything a backend held at one instant.
pub trait Rows: Send + Sync + 'static {
    /// The value under `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// The values under several keys, in their order.
    fn get_many(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Bytes>>> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    /// Shows the pairs from `start` up to but not including `end` to `visit`,
    /// until it breaks. `start` is less than `end`.
    fn scan(
        &self,
        start: &[u8],
        end: &[u8],
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<()>;
}

/// Looks at a pair, and says whether to go on.
pub type Visit<'a> = dyn FnMut(Bytes, Bytes) -> ControlFlow<()> + 'a;
