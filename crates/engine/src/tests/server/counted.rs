//! A store that counts what is handed in, so that a test can wait until
//! another thread has handed in its write: that makes the order of writes, and
//! with it the whole history, the same each time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_storage::clock::{Reading, Refused, Step};
use dayfly_storage::suite::Stepped;
use dayfly_storage::{
    Bucket, Cleared, Figures, Job, KeyRange, Result, Snapshot, Store, StoreHints,
};

/// Longer than any write takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often to look whether waiting makes sense.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) struct Counted {
    store: Box<dyn Stepped>,
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Default)]
struct Seen {
    submitted: u64,
    done: bool,
}

/// Tells, when dropped, that what was done is done.
pub(crate) struct Done<'a>(&'a Counted);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.seen().done = true;
        self.0.changed.notify_all();
    }
}

impl Counted {
    pub(crate) fn new(store: Box<dyn Stepped>) -> Self {
        Counted { store, seen: Mutex::default(), changed: Condvar::new() }
    }

    /// What is under this lock is whole, whoever panicked with it.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is so, but not longer than `patience`. `false`: it is not.
    fn wait(&self, patience: Duration, until: impl Fn(&Seen) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.seen(), patience, |seen| !until(seen));
        let (seen, _) = waited.unwrap_or_else(PoisonError::into_inner);
        until(&seen)
    }

    pub(crate) fn submitted(&self) -> u64 {
        self.seen().submitted
    }

    /// Waits until more than `known` writes were handed in. `false`: there will
    /// be none, since it is `over`.
    pub(crate) fn await_submit(&self, known: u64, mut over: impl FnMut() -> bool) -> bool {
        loop {
            if self.wait(LOOK_EVERY, |seen| seen.submitted > known) {
                return true;
            }
            if over() {
                return false;
            }
        }
    }

    pub(crate) fn tells_when_done(&self) -> Done<'_> {
        Done(self)
    }

    /// Waits for a write, or for the end. `true`: it is a write.
    pub(crate) fn waits_or_done(&self, known: u64) -> bool {
        let came = self.wait(PATIENCE, |seen| seen.submitted > known || seen.done);
        assert!(came, "nothing was handed in");
        let mut seen = self.seen();
        let waits = seen.submitted > known;
        if !waits {
            seen.done = false;
        }
        waits
    }
}

impl Stepped for Counted {
    fn begin_group(&self) {
        self.store.begin_group();
    }

    fn publish_group(&self) {
        self.store.publish_group();
    }
}

impl Store for Counted {
    fn submit(&self, bucket: Bucket, job: Box<dyn Job>) {
        self.store.submit(bucket, job);
        self.seen().submitted += 1;
        self.changed.notify_all();
    }

    fn waits(&self) -> bool {
        self.store.waits()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        self.store.snapshot()
    }

    fn clear(&self, bucket: Bucket, range: &KeyRange, limit: usize) -> Result<Cleared> {
        self.store.clear(bucket, range, limit)
    }

    fn forget(&self, bucket: Bucket) -> Result<()> {
        self.store.forget(bucket)
    }

    fn buckets(&self) -> Vec<Bucket> {
        self.store.buckets()
    }

    fn writable(&self) -> Result<()> {
        self.store.writable()
    }

    fn figures(&self) -> Figures {
        self.store.figures()
    }

    fn clock(&self) -> Result<Reading> {
        self.store.clock()
    }

    fn glance(&self) -> Reading {
        self.store.glance()
    }

    fn milliseconds(&self) -> u64 {
        self.store.milliseconds()
    }

    fn move_clock(&self, step: Step) -> Result<Reading, Refused> {
        self.store.move_clock(step)
    }

    fn tick(&self) -> Result<()> {
        self.store.tick()
    }

    fn close(&self) -> Result<()> {
        self.store.close()
    }

    fn hints(&self) -> &dyn StoreHints {
        self.store.hints()
    }
}
