//! Ordered bytes in buckets, with atomic commits, snapshots and a clock.
//!
//! A **bucket** is the unit of order and of atomicity. It has a **head**: its
//! `lsn` (one per commit, gap-free), the time `ts` of its last commit, and a
//! small `state` that belongs to the caller and is only bytes here.
//!
//! A **snapshot** shows everything published so far, with the heads and the
//! time that belong to it. A **commit** is a [`Plan`]: a pure function from
//! what it reads to what it writes. It is drafted on the caller's thread
//! against a snapshot. The committer, which gathers waiting writes into groups
//! and syncs once for a group, takes the draft as it is when nothing that it
//! read has changed, and otherwise runs the plan again.
//!
//! **Time belongs to the store.** A read's time comes with its snapshot; a
//! write's time is its commit's `ts`. Time never runs backwards, also not over
//! a restart, and never passes a commit that is not published yet: what was
//! seen dead could otherwise come back when its replacement is published.
//!
//! This crate knows nothing of documents, JSON or time to live.

pub mod clock;
mod embedded;
mod hints;
mod local;
mod memory;
mod plan;
pub mod suite;
pub mod tally;

use bytes::Bytes;

pub use embedded::{Embedded, EmbeddedOptions};
pub use hints::{Emptied, ReadHints, StoreHints};
pub use local::{
    Backend, Changes, Durability, FreeBytes, Held, Lease, Loaded, Local, LocalOptions, NewHeads,
    Rest, Rows, Visit, Writes,
};
pub use memory::{Disk, Memory};
pub use plan::{
    Basis, Batch, Draft, Elsewhere, Job, LARGE_BYTES, LARGE_ROWS, Plan, RETURNS_MAX, Redraft, Room,
    Stamp, Ticket, Urgency, View, Weight, Write, commit, commit_on, commit_returning,
    commit_returning_elsewhere,
};

/// Seconds since 1970.
pub type Second = u64;

/// The longest key an engine takes, in bytes, without the bucket.
pub const KEY_BYTES_MAX: usize = 2000;

/// A part of the store with an order and a head of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(pub u64);

/// Where a bucket stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The number of its last commit; 0 before the first.
    pub lsn: u64,
    /// The time of its last commit.
    pub ts: Second,
    /// What the caller keeps with the bucket.
    pub state: Bytes,
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the start of the range.
    Forward,
    /// From the end of the range.
    Backward,
}

/// Keys from `start` up to but not including `end`, in byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key.
    pub start: Vec<u8>,
    /// The first key that is not in the range.
    pub end: Vec<u8>,
}

impl KeyRange {
    /// All keys that start with `prefix`.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        let mut end = prefix.to_vec();
        while end.pop_if(|byte| *byte == 0xFF).is_some() {}
        match end.last_mut() {
            Some(last) => *last += 1,
            // Longer than any key, so past all of them.
            None => end = vec![0xFF; KEY_BYTES_MAX + 1],
        }
        KeyRange { start: prefix.to_vec(), end }
    }

    /// What is left of it behind `key`: it starts with the first key after that one.
    pub fn go_behind(&mut self, key: &[u8]) {
        self.start = after(key);
    }

    /// Whether a key is in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && *key < *self.end
    }
}

/// The first key after `key`.
pub fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// A key and its value.
pub type Pair = (Bytes, Bytes);

/// Names what one snapshot shows. The default one is older than all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(u64);

/// Everything published at one instant, and the time that belongs to it.
pub trait Snapshot: Send + Sync {
    /// The time of this snapshot: not less than the `ts` of any head in it.
    fn now(&self) -> Second;

    /// About the same in milliseconds, which do not run back from one snapshot to a later one:
    /// for a pace, such as that of a meter.
    fn milliseconds(&self) -> u64;

    /// The head of `bucket`; an empty one if nothing was ever committed there.
    fn head(&self, bucket: Bucket) -> Head;

    /// The value under `key`.
    fn get(&self, bucket: Bucket, key: &[u8]) -> Result<Option<Bytes>>;

    /// The values under several keys, in their order: one question for a store that
    /// is asked over a network.
    fn get_many(&self, bucket: Bucket, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        keys.iter().map(|key| self.get(bucket, key)).collect()
    }

    /// At most `limit` pairs of `range`, in order.
    fn scan(
        &self,
        bucket: Bucket,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>>;

    /// What this is a snapshot of; what a draft was made from.
    fn mark(&self) -> Mark;

    /// The same snapshot, for those who know more about their rows.
    fn hints(&self) -> &dyn ReadHints;
}

/// A place that keeps bytes.
pub trait Store: Send + Sync {
    /// A view of everything published so far. Later commits do not show in it.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>>;

    /// Whether a read may wait for a network. Then nobody reads on a thread that others
    /// need meanwhile.
    fn waits(&self) -> bool {
        false
    }

    /// Hands a drafted write to the committer; [`commit`] is the typed way.
    fn submit(&self, bucket: Bucket, job: Box<dyn Job>);

    /// Removes up to `limit` keys of `range`, without a commit of the bucket:
    /// only for what nobody can reach any more.
    fn clear(&self, bucket: Bucket, range: &KeyRange, limit: usize) -> Result<Cleared>;

    /// Forgets the head of a bucket that was cleared.
    fn forget(&self, bucket: Bucket) -> Result<()>;

    /// All buckets with a head, in order.
    fn buckets(&self) -> Vec<Bucket>;

    /// Whether writes are taken just now.
    fn writable(&self) -> Result<()>;

    /// What the store has done and holds.
    fn figures(&self) -> Figures;

    /// The clock, as it stands.
    fn clock(&self) -> Result<clock::Reading>;

    /// The clock as it stands, for deciding when to look again: it hands out no
    /// time, needs no lease, and nothing may be judged by it.
    fn glance(&self) -> clock::Reading;

    /// The same in milliseconds, which do not run back: for a pace, as those of a snapshot.
    fn milliseconds(&self) -> u64 {
        self.glance().now.saturating_mul(1000)
    }

    /// Moves the test clock, if the store was opened with one, or accepts what
    /// the wall clock shows.
    fn move_clock(&self, step: clock::Step) -> Result<clock::Reading, clock::Refused>;

    /// Keeps the clock's lease alive; called about once a second.
    fn tick(&self) -> Result<()>;

    /// Stops the committer after the waiting writes, and leaves the folder so
    /// that opening it is quick. Writes after this answer [`Error::Unavailable`].
    fn close(&self) -> Result<()>;

    /// The same store, for those who know more about its rows.
    fn hints(&self) -> &dyn StoreHints;
}

/// How far a range was cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// How many keys went.
    pub removed: usize,
    /// Where to go on; `None` when the range is empty. Going on there, and not
    /// from the start, saves a walk over what was just removed.
    pub next: Option<Vec<u8>>,
}

/// The upper ends of the classes of [`Figures::commit_classes`], in seconds; the last
/// class has none.
pub const COMMIT_SECONDS: [f64; 13] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

/// Counts since the store was opened, and sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Writes that were committed.
    pub commits: u64,
    /// Groups that were written.
    pub groups: u64,
    /// Drafts that the committer had to run again.
    pub redrafts: u64,
    /// Bytes that were written, before the engine writes them again and again.
    pub written_bytes: u64,
    /// Time the committer spent writing and syncing, in seconds.
    pub commit_seconds: f64,
    /// How many groups took up to [`COMMIT_SECONDS`], each in one class only; the last
    /// class is for all others.
    pub commit_classes: [u64; COMMIT_SECONDS.len() + 1],
    /// The part of it above what a write usually takes: the engine made the
    /// committer wait for a flush or a compaction.
    pub stall_seconds: f64,
    /// Scans that took long from one key to the next: tombstones were there.
    pub slow_scans: u64,
    /// Stretches of keys that are known to be empty, and leapt over.
    pub empty_stretches: u64,
    /// Compactions that were made because of such scans, or after many deletes.
    pub compactions: u64,
    /// Bytes of records read lately, kept in memory.
    pub cached_bytes: u64,
    /// Records that were found there.
    pub cache_hits: u64,
    /// Records that were looked for there and not found; none without a cache.
    pub cache_misses: u64,
    /// Rows on disk, roughly, with tombstones; 0 in memory.
    pub rows: u64,
    /// Tombstones: deletes that are on disk until a compaction meets them.
    pub deleted_rows: u64,
    /// Bytes on disk; 0 in memory.
    pub disk_bytes: u64,
    /// Bytes free where the data is, if that is known.
    pub free_bytes: Option<u64>,
    /// With fewer than these, writes that grow are refused.
    pub reserve_bytes: u64,
}

/// How storage fails. One kind for each thing a caller can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Not applied, for certain; run it again.
    Retry,
    /// Sent to the disk, but whether it got there is not known. Never send it
    /// again without looking.
    Unknown(String),
    /// The disk is full; reads and deletes still work.
    Full,
    /// The bytes on disk are not what was written; tell a person.
    Corrupt(String),
    /// The store cannot be used just now, or not in this way.
    Unavailable(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Retry => write!(f, "another write came first"),
            Error::Unknown(why) => write!(f, "the outcome of the write is not known: {why}"),
            Error::Full => write!(f, "the disk is full"),
            Error::Corrupt(what) => write!(f, "the stored data is damaged: {what}"),
            Error::Unavailable(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for Error {}

/// The outcome of a storage call.
pub type Result<T, E = Error> = std::result::Result<T, E>;
