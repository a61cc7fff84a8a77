//! fjall itself. Of our folder it knows where it is, and that each batch has a row
//! that says which batch was before it (see `journal.rs`).

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use fjall::compaction::Leveled;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{
    AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode,
    Readable, SeqNo,
};
use lsm_tree::Memtable;
use uuid::Uuid;

use super::EmbeddedOptions;
use super::folder::Folder;
use super::journal::{LINK, Link};
use super::state::StateFile;
use crate::local::{Durability, Held, Rows, Visit, Writes};
use crate::{Direction, Error, Result};

/// Where the rows are, among fjall's keyspaces.
const KEYSPACE: &str = "rows";

/// How many memtables and level-0 runs may wait before a write waits. fjall
/// itself stops at 4 and 30, for ever if need be; a write adds at most one.
/// Few runs, since they are all compacted at once, and that needs as much room
/// on the disk again.
const SEALED_MAX: usize = 2;
const RUNS_MAX: usize = 8;

/// The smallest table worth a file.
const TABLE_BYTES_MIN: u64 = 1024 * 1024;

/// What is read and unpacked for one record: about two of 1 KB.
const BLOCK_BYTES: u32 = 2 * 1024;

/// By level: new tables and those of the first level are few, and soon written
/// again.
const COMPRESSION: [CompressionType; 3] =
    [CompressionType::None, CompressionType::None, CompressionType::Lz4];

/// fjall has seven levels. Deletes go when they come to the last.
const LAST_LEVEL: usize = 6;

/// How many snapshots fjall closes before it sees which are still open.
const SNAPSHOTS_UNTIL_NOTICED: usize = 10_000;

/// How many memtables are kept until somebody frees them who has the time.
const FULL_MAX: usize = 8;

/// An open fjall database.
#[derive(Clone)]
pub(super) struct Engine {
    database: Database,
    rows: Keyspace,
    table_bytes: u64,
    chain: Arc<Chain>,
    full: Arc<Mutex<VecDeque<Arc<Memtable>>>>,
}

/// What the next batch follows.
struct Chain {
    identity: Uuid,
    /// The number of the last batch.
    last: AtomicU64,
    state: Arc<StateFile>,
}

impl Chain {
    /// All batches so far are on the disk.
    fn reached(&self) {
        let last = self.last.load(Ordering::Acquire);
        // If the disk does not take it, what it says is still true.
        if let Err(error) = self.state.note(|seen| seen.reached = last) {
            tracing::debug!(%error, "it is not noted how far the journal reached");
        }
    }
}

impl Engine {
    /// Opens the engine, or says in a sentence why it cannot be opened.
    pub(super) fn open(options: &EmbeddedOptions, folder: &Folder) -> Result<Self> {
        Self::try_open(options, folder).map_err(|error| match failed(error) {
            Error::Unavailable(why) | Error::Corrupt(why) => folder.cannot_open(&why),
            other => other,
        })
    }

    fn try_open(options: &EmbeddedOptions, folder: &Folder) -> Result<Self, fjall::Error> {
        let database = Database::builder(folder.engine())
            .cache_size(options.cache_bytes)
            .max_journaling_size(options.journal_bytes)
            .worker_threads(options.workers.clamp(1, 2))
            .open()?;
        let table_bytes = (options.memtable_bytes / 2).max(TABLE_BYTES_MIN);
        let rows = database.keyspace(KEYSPACE, || keyspace_options(table_bytes))?;
        let last = AtomicU64::new(rows.tree.get_highest_seqno().unwrap_or(0));
        let chain = Chain { identity: folder.identity(), last, state: folder.state() };
        Ok(Engine { database, rows, table_bytes, chain: Arc::new(chain), full: Arc::default() })
    }

    pub(super) fn rows(&self) -> Frozen {
        Frozen { snapshot: self.database.snapshot(), rows: self.rows.clone() }
    }

    /// The row that each of our batches has.
    pub(super) fn link(&self) -> Result<Option<Bytes>> {
        self.rows().get(&LINK)
    }

    /// Only one thread at a time calls this.
    pub(super) fn apply(&self, mut writes: Writes, durability: Durability) -> Result<()> {
        let (identity, before) = (self.chain.identity, self.chain.last.load(Ordering::Acquire));
        writes.insert(LINK.to_vec(), Some(Link { identity, before }.encode().into()));
        let mode = match durability {
            Durability::Sync => PersistMode::SyncAll,
            Durability::Relaxed => PersistMode::Buffer,
        };
        let mut batch = self.database.batch().durability(Some(mode));
        for (key, value) in writes {
            match value {
                Some(value) => batch.insert(&self.rows, key, value),
                None => batch.remove(&self.rows, key),
            }
        }
        batch.commit().map_err(failed)?;
        // Nobody else writes, so the greatest number is that of this batch.
        let last = self.rows.tree.active_memtable().get_highest_seqno().unwrap_or(before);
        self.chain.last.store(last, Ordering::Release);
        if durability == Durability::Sync {
            self.chain.reached();
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.database.persist(PersistMode::SyncAll).map_err(failed)?;
        self.chain.reached();
        Ok(())
    }

    /// Whether a write of the engine has failed, or one of its threads.
    pub(super) fn is_alive(&self) -> Result<()> {
        self.database.persist(PersistMode::Buffer).map_err(failed)
    }

    pub(super) fn memtable_bytes(&self) -> u64 {
        self.rows.tree.active_memtable().size()
    }

    /// Starts a new memtable; a thread of the engine flushes the old one. To free
    /// one of many small rows takes tens of milliseconds, and fjall would do that
    /// here, with the next one that is full: so we hold on to it until
    /// [`free_memtables`](Engine::free_memtables).
    pub(super) fn start_memtable(&self) -> Result<()> {
        let memtable = self.rows.tree.active_memtable();
        self.rows.rotate_memtable().map_err(failed)?;
        let mut full = self.full();
        full.push_back(memtable);
        let oldest = if full.len() > FULL_MAX { full.pop_front() } else { None };
        drop(full);
        drop(oldest);
        Ok(())
    }

    /// Frees the memtables that were flushed and that nobody reads any more.
    pub(super) fn free_memtables(&self) {
        let mut full = self.full();
        let (free, used): (VecDeque<_>, VecDeque<_>) =
            full.drain(..).partition(|memtable| Arc::strong_count(memtable) == 1);
        *full = used;
        drop(full);
        drop(free);
    }

    fn full(&self) -> MutexGuard<'_, VecDeque<Arc<Memtable>>> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.rows.tree.sealed_memtable_count() == 0
    }

    /// Whether the journal holds nothing that the tables do not.
    pub(super) fn is_all_in_tables(&self) -> bool {
        self.is_flushed() && self.rows.tree.active_memtable().is_empty()
    }

    pub(super) fn has_caught_up(&self) -> bool {
        self.rows.tree.sealed_memtable_count() <= SEALED_MAX && !self.has_many_runs()
    }

    /// Whether it is half way to where writes wait.
    pub(super) fn is_behind(&self) -> bool {
        let tree = &self.rows.tree;
        tree.sealed_memtable_count() > SEALED_MAX / 2 || tree.l0_run_count() > RUNS_MAX / 2
    }

    /// What has not been caught up with, in words.
    pub(super) fn waits(&self) -> String {
        let tree = &self.rows.tree;
        let (sealed, runs) = (tree.sealed_memtable_count(), tree.l0_run_count());
        format!("{sealed} memtables and {runs} runs of tables wait")
    }

    /// Compacts here if level 0 is too full. fjall's own thread compacts once
    /// after each flush, which may be the wrong level, and there are no
    /// flushes while writes wait. Its strategy may also find nothing to do for
    /// ever, when a lower level is too full and no part of it small enough;
    /// for one that is `stuck` there is the compaction of everything.
    pub(super) fn help(&self, stuck: bool) -> Result<()> {
        if !self.has_many_runs() {
            return Ok(());
        }
        if stuck {
            return self.compact_all();
        }
        let strategy = Arc::clone(&self.rows.config.compaction_strategy);
        let compacted = self.rows.tree.compact(strategy, self.past());
        compacted.map_err(|error| failed(error.into()))
    }

    /// Compacts everything. fjall's own way makes tables of 64 MB, too large
    /// for its strategy to go on with beside smaller ones.
    pub(super) fn compact_all(&self) -> Result<()> {
        let compacted = self.rows.tree.major_compact(self.table_bytes, self.past());
        compacted.map_err(|error| failed(error.into()))
    }

    /// Brings some of what is above the last level a step towards it, where
    /// deletes go. `false`: there is nothing above it. fjall's strategy does so
    /// by itself with levels that may hold nothing.
    pub(super) fn sink(&self) -> Result<bool> {
        let above = (0..LAST_LEVEL).any(|level| self.rows.tree.level_table_count(level) != Some(0));
        if above {
            let strategy =
                leveled(self.table_bytes).with_l0_threshold(0).with_level_ratio_policy(vec![0.0]);
            let compacted = self.rows.tree.compact(Arc::new(strategy), self.past());
            compacted.map_err(|error| failed(error.into()))?;
        }
        Ok(above)
    }

    pub(super) fn tables(&self) -> usize {
        self.rows.tree.table_count()
    }

    pub(super) fn held(&self) -> Held {
        let tree = &self.rows.tree;
        Held { rows: tree.approximate_len() as u64, deleted: tree.tombstone_count() }
    }

    /// Lets compactions drop what is deleted. fjall finds out which writes nobody
    /// looks back at after this many snapshots, and forgets it over a restart;
    /// until then a compaction frees nothing.
    pub(super) fn notice_the_past(&self) {
        for _ in 0..SNAPSHOTS_UNTIL_NOTICED {
            drop(self.database.snapshot());
        }
    }

    /// How much was written: grows with each write.
    pub(super) fn written(&self) -> SeqNo {
        self.database.supervisor.snapshot_tracker.get()
    }

    fn has_many_runs(&self) -> bool {
        self.rows.tree.l0_run_count() > RUNS_MAX
    }

    /// Versions that are older than this, and not the newest, nobody sees.
    fn past(&self) -> SeqNo {
        self.database.supervisor.snapshot_tracker.get_seqno_safe_to_gc()
    }
}

/// Small tables, so that a compaction needs little room on the disk.
fn leveled(table_bytes: u64) -> Leveled {
    Leveled::default().with_table_target_size(table_bytes)
}

fn keyspace_options(table_bytes: u64) -> KeyspaceCreateOptions {
    let bloom = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
    KeyspaceCreateOptions::default()
        .max_memtable_size(u64::MAX)
        .compaction_strategy(Arc::new(leveled(table_bytes)))
        .filter_policy(FilterPolicy::all(bloom))
        .data_block_compression_policy(CompressionPolicy::new(COMPRESSION))
        .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
}

/// Everything fjall held at one instant.
pub struct Frozen {
    snapshot: fjall::Snapshot,
    rows: Keyspace,
}

impl Rows for Frozen {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.snapshot.get(&self.rows, key).map_err(failed)?.map(Bytes::from))
    }

    fn scan(
        &self,
        start: &[u8],
        end: &[u8],
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let mut pairs = self.snapshot.range::<&[u8], _>(&self.rows, start..end);
        while let Some(pair) = match direction {
            Direction::Forward => pairs.next(),
            Direction::Backward => pairs.next_back(),
        } {
            let (key, value) = pair.into_inner().map_err(failed)?;
            if let ControlFlow::Break(()) = visit(key.into(), value.into()) {
                break;
            }
        }
        Ok(())
    }
}

/// What a failure of fjall means to a caller.
fn failed(error: fjall::Error) -> Error {
    let io = match &error {
        fjall::Error::Io(io) | fjall::Error::Storage(fjall::LsmError::Io(io)) => Some(io.kind()),
        _ => None,
    };
    match (io, &error) {
        (Some(std::io::ErrorKind::StorageFull), _) => Error::Full,
        (Some(_), _) | (_, fjall::Error::Locked | fjall::Error::Poisoned) => {
            Error::Unavailable(error.to_string())
        }
        _ => Error::Corrupt(error.to_string()),
    }
}
