//! The backend on disk: fjall, an LSM tree, in a folder of ours.
//!
//! How we use it, each rule for a reason in its record: one keyspace, leveled
//! compaction, small memtables, no key-value separation, no weak deletes, and
//! its journal emptied when we close, so that opening reads little.
//!
//! fjall waits without end in three places when one of its threads has died,
//! as it does on a full disk. So we stay away from them:
//!
//! - it stops writes while too much waits for a flush or a compaction: we look
//!   before each write, and wait ourselves, with an end;
//! - every write over the memtable's size puts a message into a queue that
//!   nobody may be reading: we set that size to infinity and start a new
//!   memtable ourselves, once;
//! - closing waits for a flush: we look whether the engine is alive meanwhile.

mod engine;
mod folder;
mod inventory;
mod journal;
mod state;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{Engine, Frozen};
use folder::Folder;
use state::StateFile;

use crate::local::{Backend, Changes, Durability, Held, Loaded, Local, LocalOptions, Rest, Writes};
use crate::{Error, Result, Second};

/// How often to look whether the engine has caught up, and how often at most
/// before the write fails.
const LOOK_EVERY: Duration = Duration::from_millis(5);
const LOOKS_MAX: u32 = 12_000;

/// How often to look whether those who read from a broken engine are done.
const LOOKS_UNTIL_READ: u32 = 60;

/// After so many looks a compaction of everything is tried.
const LOOKS_UNTIL_STUCK: u32 = 400;

/// How many steps a compaction takes at most: a table comes down some levels,
/// and others come while it does.
const STEPS_PER_TABLE: usize = 4;
const STEPS_MIN: usize = 64;

/// Up to this many rows are compacted in one step: nobody waits long for it.
const WHOLE_ROWS_MAX: u64 = 4_000_000;

/// Where the data is, and how much memory it may take.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The folder.
    pub path: PathBuf,
    /// Blocks read lately.
    pub cache_bytes: u64,
    /// Writes that are not in a table yet.
    pub memtable_bytes: u64,
    /// The journal, before what is in it is brought into tables.
    pub journal_bytes: u64,
    /// Threads that flush and compact: 1 or 2. With 2, the first only waits
    /// for flushes, and keeps a core busy with waiting while the second
    /// compacts.
    pub workers: usize,
}

impl EmbeddedOptions {
    /// The defaults, in the folder `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        EmbeddedOptions {
            path: path.into(),
            cache_bytes: 64 * 1024 * 1024,
            memtable_bytes: 16 * 1024 * 1024,
            journal_bytes: 128 * 1024 * 1024,
            workers: 1,
        }
    }
}

impl Local<Embedded> {
    /// Opens the store in the folder `path`, or makes one there.
    pub fn open(path: impl AsRef<Path>, options: LocalOptions) -> Result<Self> {
        Local::embedded(EmbeddedOptions::new(path.as_ref()), options)
    }

    /// As [`Local::open`], with more to choose.
    pub fn embedded(embedded: EmbeddedOptions, options: LocalOptions) -> Result<Self> {
        Local::on(Embedded::open(embedded)?, options)
    }
}

/// The backend on disk.
pub struct Embedded {
    options: EmbeddedOptions,
    inner: Mutex<Inner>,
    /// Never told anything: a way to wait with an end.
    pause: Condvar,
    /// How much was written when it was last found out who looks back.
    noticed: AtomicU64,
}

struct Inner {
    folder: Option<Folder>,
    engine: Option<Engine>,
}

impl Embedded {
    /// Opens the folder, or makes it, and keeps everybody else out.
    pub fn open(options: EmbeddedOptions) -> Result<Self> {
        let mut folder = Folder::open(&options.path)?;
        let engine = open_engine(&options, &mut folder)?;
        let inner = Inner { folder: Some(folder), engine: Some(engine) };
        let (pause, noticed) = (Condvar::new(), AtomicU64::new(0));
        Ok(Embedded { options, inner: Mutex::new(inner), pause, noticed })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn engine(&self) -> Result<Engine> {
        let closed = || Error::Unavailable(format!("{} is closed", self.name()));
        self.inner().engine.clone().ok_or_else(closed)
    }

    fn state(&self) -> Option<Arc<StateFile>> {
        self.inner().folder.as_ref().map(Folder::state)
    }

    /// Waits a little.
    fn pause(&self) {
        let waiting = self.pause.wait_timeout(self.inner(), LOOK_EVERY);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }

    /// Looks until `done`, or until the engine is broken, but not for ever.
    fn wait_until(&self, engine: &Engine, done: impl Fn(&Engine) -> bool) -> Result<()> {
        for look in 1..=LOOKS_MAX {
            if done(engine) {
                return Ok(());
            }
            engine.is_alive()?;
            engine.help(look.is_multiple_of(LOOKS_UNTIL_STUCK))?;
            self.pause();
        }
        let waits = engine.waits();
        Err(Error::Unavailable(format!("{} does not catch up: {waits}", self.name())))
    }

    /// Brings everything in memory into tables.
    fn flush(&self, engine: &Engine) -> Result<()> {
        engine.start_memtable()?;
        self.wait_until(engine, Engine::is_flushed)
    }
}

/// Opens the engine, if its files are those of the folder, and all of them.
fn open_engine(options: &EmbeddedOptions, folder: &mut Folder) -> Result<Engine> {
    folder.check()?;
    let engine = Engine::open(options, folder)?;
    if folder.is_new() {
        engine.apply(Writes::new(), Durability::Sync)?;
    }
    folder.check_link(engine.link()?.as_deref())?;
    folder.is_made()?;
    sync_state(folder.note_journal());
    Ok(engine)
}

/// Brings the folder's state to the disk. If it does not get there, it is behind,
/// and still true.
fn sync_state(noted: std::io::Result<Arc<StateFile>>) {
    if let Err(error) = noted.and_then(|state| state.sync()) {
        tracing::debug!(%error, "the folder's state is not on the disk");
    }
}

impl Backend for Embedded {
    type Rows = Frozen;

    fn name(&self) -> String {
        format!("the folder '{}'", self.options.path.display())
    }

    fn rows(&self) -> Result<Frozen> {
        Ok(self.engine()?.rows())
    }

    fn is_alive(&self) -> Result<()> {
        self.engine()?.is_alive()
    }

    fn prepare(&self) -> Result<()> {
        // What fails here was certainly not written.
        let engine = self.engine()?;
        engine.is_alive()?;
        self.wait_until(&engine, Engine::has_caught_up)
    }

    fn is_behind(&self) -> bool {
        self.engine().is_ok_and(|engine| engine.is_behind())
    }

    fn load(&self) -> Result<Loaded> {
        let mut loaded = Loaded::from_rows(&self.rows()?)?;
        let kept = self.state().map_or(0, |state| state.seen().lease);
        loaded.lease.until = loaded.lease.until.max(kept);
        Ok(loaded)
    }

    fn apply(&self, changes: Changes, durability: Durability) -> Result<()> {
        let engine = self.engine()?;
        engine.apply(changes.into_rows(), durability)?;
        if engine.memtable_bytes() > self.options.memtable_bytes {
            engine.start_memtable()?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.engine()?.sync()
    }

    fn compact(&self) -> Result<()> {
        let engine = self.engine()?;
        self.flush(&engine)?;
        engine.notice_the_past();
        engine.compact_all()
    }

    fn tidy(&self, rest: &mut Rest<'_>) -> Result<()> {
        let engine = self.engine()?;
        self.flush(&engine)?;
        engine.notice_the_past();
        let steps_max = STEPS_PER_TABLE * engine.tables() + STEPS_MIN;
        let mut steps = 0;
        while steps < steps_max && engine.sink()? {
            steps += 1;
            if rest().is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// What came to the last level without a merge is still there. The thread that
    /// flushes waits for this.
    fn sweep(&self) -> Result<()> {
        let engine = self.engine()?;
        if engine.held().rows > WHOLE_ROWS_MAX {
            return Ok(());
        }
        engine.compact_all()
    }

    /// While a purge goes on there are few snapshots, and what it removes would be
    /// carried from level to level.
    fn tick(&self) {
        let Ok(engine) = self.engine() else { return };
        let noted = self.inner().folder.as_ref().map(Folder::note_journal);
        if let Some(noted) = noted {
            sync_state(noted);
        }
        engine.free_memtables();
        let written = engine.written();
        if self.noticed.swap(written, Ordering::Relaxed) != written {
            engine.notice_the_past();
        }
    }

    fn held(&self) -> Held {
        self.engine().map(|engine| engine.held()).unwrap_or_default()
    }

    fn release(&self) -> Result<()> {
        // fjall lets go of old tables when it starts a new memtable.
        self.flush(&self.engine()?)
    }

    fn keep_lease(&self, until: Second) -> Result<()> {
        let state = self.state().ok_or(Error::Full)?;
        let kept = state.note(|seen| seen.lease = until).and_then(|()| state.sync());
        kept.map_err(|_| Error::Full)
    }

    fn disk_bytes(&self) -> u64 {
        folder::disk_bytes(&self.options.path)
    }

    fn free_bytes(&self) -> Option<u64> {
        let space = rustix::fs::statvfs(&self.options.path).ok()?;
        Some(space.f_bavail.saturating_mul(space.f_frsize))
    }

    fn close(&self) -> Result<()> {
        let Ok(engine) = self.engine() else { return Ok(()) };
        let flushed = self.flush(&engine).map(|()| engine.is_all_in_tables());
        drop(engine);
        let mut inner = self.inner();
        inner.engine = None;
        match (inner.folder.take(), flushed?) {
            (Some(folder), true) => folder.stop(),
            _ => Ok(()),
        }
    }

    fn reopen(&self) -> Result<()> {
        // The old engine goes first: it holds fjall's own lock, as long as somebody
        // still reads from it.
        let old = self.inner().engine.take();
        drop(old);
        if self.inner().folder.is_none() {
            let folder = Folder::open(&self.options.path)?;
            self.inner().folder = Some(folder);
        }
        for _ in 0..LOOKS_UNTIL_READ {
            if self.inner().folder.as_ref().is_none_or(Folder::is_let_go) {
                break;
            }
            self.pause();
        }
        let mut inner = self.inner();
        let Some(folder) = &mut inner.folder else { return Ok(()) };
        let engine = open_engine(&self.options, folder)?;
        engine.notice_the_past();
        inner.engine = Some(engine);
        Ok(())
    }
}
