//! A store in this process: one committer in front of a backend.
//!
//! ```text
//! readers    state (a short lock): what is published, and the time
//! writers    queue -> committer: group -> backend -> published -> answered
//! ```
//!
//! The **state** is what a reader needs for a snapshot: the published group
//! and the clock, under one lock, so that time and rows always fit. The
//! **turn** is held by whoever writes, for as long as it writes. A turn takes
//! the state's lock for moments; never the other way round.

mod backend;
mod committer;
mod counts;
mod gaps;
mod group;
mod merge;
mod queue;
mod reader;
mod records;
mod slots;
mod space;
mod store;
mod system;
mod tidy;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use backend::{
    Backend, Changes, Durability, Held, Lease, Loaded, NewHeads, Rest, Rows, Visit, Writes,
};
pub use space::FreeBytes;

use crate::clock::{Clock, SystemWall, Wall};
use crate::{Error, Result};

/// How much room a store keeps free by default.
const RESERVE_BYTES: u64 = 64 * 1024 * 1024;

/// How large the record cache may grow by default.
const CACHE_BYTES: u64 = 192 * 1024 * 1024;

/// What a scan may take from one key to the next, by default, before it is
/// remembered that there is nothing between them.
const SLOW_SCAN: Duration = Duration::from_millis(1);

/// How a store in this process behaves.
#[derive(Clone)]
pub struct LocalOptions {
    /// No committer thread: a test calls [`Local::begin_group`] and
    /// [`Local::publish_group`].
    pub manual: bool,
    /// When a write has to be on the disk.
    pub durability: Durability,
    /// How large the record cache may grow; 0 for none.
    pub cache_bytes: u64,
    /// As many keys are told apart, by when they were last written, as a cache of
    /// this size holds: also by a store that caches nothing. Keys that are not told
    /// apart cost each other's writes a second draft.
    pub slots_bytes: u64,
    /// What a scan may take from one key to the next before it is remembered
    /// that there is nothing between them.
    pub slow_scan: Duration,
    /// How much room to keep free on the disk; below it, writes that grow are
    /// refused with [`Error::Full`].
    pub reserve_bytes: u64,
    /// Says how much room is free, instead of the backend.
    pub free_bytes: Option<FreeBytes>,
    /// The system's clock.
    pub wall: Arc<dyn Wall>,
    /// Whether the clock may be moved by hand.
    pub test_clock: bool,
}

impl Default for LocalOptions {
    fn default() -> Self {
        LocalOptions {
            manual: false,
            durability: Durability::Sync,
            cache_bytes: CACHE_BYTES,
            slots_bytes: CACHE_BYTES,
            slow_scan: SLOW_SCAN,
            reserve_bytes: RESERVE_BYTES,
            free_bytes: None,
            wall: Arc::new(SystemWall),
            test_clock: false,
        }
    }
}

/// A store in this process, on a backend.
///
/// Dropping it stops the committer after the waiting writes, as a crash would
/// leave it; [`close`](crate::Store::close) also makes the next opening quick.
pub struct Local<B: Backend> {
    shared: Arc<Shared<B>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl<B: Backend> Local<B> {
    /// Opens the store that `backend` holds.
    pub fn on(backend: B, options: LocalOptions) -> Result<Self> {
        let manual = options.manual;
        let shared = Arc::new(Shared::new(backend, options));
        shared.start()?;
        let mut threads = Vec::new();
        if !manual {
            threads.push(start("committer", &shared, Shared::run)?);
            threads.push(start("compactor", &shared, Shared::keep_tidy)?);
        }
        Ok(Local { shared, threads: Mutex::new(threads) })
    }

    /// In manual mode: begins a group with the writes that wait. They are
    /// judged and drafted, and time stands still, but nobody sees them yet.
    /// With a group begun already, the waiting writes join it.
    pub fn begin_group(&self) {
        self.shared.begin(&mut lock(&self.shared.turn));
    }

    /// In manual mode: writes and publishes the group that was begun, and
    /// answers its writes.
    pub fn publish_group(&self) {
        let settled = self.shared.finish(&mut lock(&self.shared.turn));
        committer::settle_all(settled);
    }

    /// What the compactor does when scans were slow: compacts, if deletes are a
    /// good part of all rows. Returns whether it did.
    pub fn tidy_up(&self) -> Result<bool> {
        self.shared.tidy_up()
    }

    /// Takes no more writes, and waits for those that wait.
    fn drain(&self) {
        self.shared.queue.close();
        self.shared.tidy.close();
        for thread in lock(&self.threads).drain(..) {
            // The committer catches what its plans throw; if it died all the
            // same, the tickets know. Nobody waits for the compactor.
            let _ = thread.join();
        }
        while self.shared.queue.wait() {
            self.shared.commit_waiting();
        }
    }
}

impl<B: Backend> Drop for Local<B> {
    fn drop(&mut self) {
        self.drain();
    }
}

fn start<B: Backend>(
    name: &str,
    shared: &Arc<Shared<B>>,
    run: fn(&Shared<B>),
) -> Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || run(&shared))
        .map_err(|error| Error::Unavailable(format!("the {name} did not start: {error}")))
}

/// What the committer and the callers share.
struct Shared<B: Backend> {
    backend: B,
    options: LocalOptions,
    state: Mutex<State<B::Rows>>,
    turn: Mutex<Turn<B::Rows>>,
    queue: queue::Queue,
    remembered: Arc<reader::Remembered>,
    tidy: tidy::Tidy,
    space: space::Space,
    counts: counts::Counts,
}

impl<B: Backend> Shared<B> {
    fn new(backend: B, options: LocalOptions) -> Self {
        let clock = Clock::new(Arc::clone(&options.wall));
        Shared {
            backend,
            state: Mutex::new(State { phase: Phase::Closed, clock }),
            turn: Mutex::new(Turn {
                group: None,
                generation: 0,
                opened: 0,
                tallies: group::Tallies::default(),
            }),
            queue: queue::Queue::default(),
            remembered: Arc::new(reader::Remembered::new(&options)),
            tidy: tidy::Tidy::default(),
            space: space::Space::new(options.reserve_bytes),
            counts: counts::Counts::default(),
            options,
        }
    }

    fn free_bytes(&self) -> Option<u64> {
        match &self.options.free_bytes {
            Some(probe) => probe(),
            None => self.backend.free_bytes(),
        }
    }
}

/// What a reader needs for a snapshot.
struct State<R> {
    phase: Phase<R>,
    clock: Clock,
}

impl<R> State<R> {
    fn published(&self) -> Result<Arc<reader::Published<R>>> {
        match &self.phase {
            Phase::Open(published) => Ok(Arc::clone(published)),
            Phase::Broken { why, .. } => Err(committer::broken(why)),
            Phase::Closed => Err(committer::closed()),
        }
    }

    /// What is still read while the backend is broken for lack of room.
    fn kept(&self) -> Option<Arc<reader::Published<R>>> {
        match &self.phase {
            Phase::Broken { kept, .. } => kept.clone(),
            Phase::Open(_) | Phase::Closed => None,
        }
    }
}

enum Phase<R> {
    Open(Arc<reader::Published<R>>),
    /// With `kept`, there is no room on the disk to open the backend again, and
    /// what was published before is read.
    Broken {
        why: String,
        again: Instant,
        kept: Option<Arc<reader::Published<R>>>,
    },
    Closed,
}

/// What a writer needs.
struct Turn<R> {
    group: Option<group::Group<R>>,
    /// The last generation that was given to a group.
    generation: u64,
    /// How often the store had been opened.
    opened: u32,
    /// The rows that count, while no group has them.
    tallies: group::Tallies,
}

/// Locks `mutex`, also after a thread panicked with it: what is under our
/// locks is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The system's stopwatch: for durations, never for the time of a commit.
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks")]
fn instant() -> Instant {
    Instant::now()
}
