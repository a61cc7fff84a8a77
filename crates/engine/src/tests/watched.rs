//! A store that commits each write the moment it is handed in, and lets a test
//! look over its shoulder: what was read, and what becomes of the next rider or
//! of the next write to a bucket.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dayfly_storage::clock::{PurgeHold, Reading, Refused, Step};
use dayfly_storage::{
    Basis, Batch, Bucket, Cleared, Direction, Error, Figures, Head, Job, KeyRange, Local, Mark,
    Memory, Pair, ReadHints, Result, Room, Second, Snapshot, Stamp, Store, StoreHints, Urgency,
    Weight,
};

/// How long a test waits for what must come at once.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Watched {
    inner: Local<Memory>,
    snapshots: AtomicUsize,
    rows: Arc<AtomicUsize>,
    pub(super) held: AtomicBool,
    rider: Mutex<Rider>,
    doubted: Mutex<Option<(Bucket, Landed)>>,
    changed: Condvar,
}

/// Whether a write whose outcome nobody knows is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landed {
    Yes,
    No,
}

/// What becomes of the next rider.
enum Rider {
    Goes,
    Fails(Error),
    Parks,
    Parked(Bucket, Box<dyn Job>),
}

impl Watched {
    pub(super) fn new(inner: Local<Memory>) -> Self {
        Watched {
            inner,
            snapshots: AtomicUsize::new(0),
            rows: Arc::default(),
            held: AtomicBool::new(false),
            rider: Mutex::new(Rider::Goes),
            doubted: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// How many snapshots were taken.
    pub(super) fn snapshots(&self) -> usize {
        self.snapshots.load(Ordering::SeqCst)
    }

    /// How many rows scans returned.
    pub(super) fn rows_read(&self) -> usize {
        self.rows.load(Ordering::SeqCst)
    }

    /// The next rider fails.
    pub(super) fn fail_rider(&self, error: Error) {
        *self.rider.lock().unwrap() = Rider::Fails(error);
    }

    /// The next rider is drafted, but comes no further.
    pub(super) fn park_rider(&self) {
        *self.rider.lock().unwrap() = Rider::Parks;
    }

    /// Waits until a rider is parked, does something else first, and lets it
    /// go on.
    pub(super) fn before_parked(&self, first: impl FnOnce()) {
        let rider = self.rider.lock().unwrap();
        let waits = |rider: &mut Rider| !matches!(rider, Rider::Parked(..));
        let waited = self.changed.wait_timeout_while(rider, PATIENCE, waits).unwrap();
        assert!(!waited.1.timed_out(), "no rider came");
        let mut rider = waited.0;
        let parked = std::mem::replace(&mut *rider, Rider::Goes);
        drop(rider);
        first();
        if let Rider::Parked(bucket, job) = parked {
            self.commit(bucket, job);
        }
    }

    /// The outcome of the next write to `bucket` is not known to whoever asked.
    pub(super) fn doubt(&self, bucket: Bucket, landed: Landed) {
        *self.doubted.lock().unwrap() = Some((bucket, landed));
    }

    fn commit(&self, bucket: Bucket, job: Box<dyn Job>) {
        self.inner.submit(bucket, job);
        self.inner.begin_group();
        self.inner.publish_group();
    }
}

fn unknown() -> Error {
    Error::Unknown("the disk is on fire".to_owned())
}

/// A write that lands, while whoever asked is told that nobody knows.
struct Doubted(Box<dyn Job>);

impl Job for Doubted {
    fn basis(&self) -> &Basis {
        self.0.basis()
    }

    fn room(&self) -> Room {
        self.0.room()
    }

    fn urgency(&self) -> Urgency {
        self.0.urgency()
    }

    fn weight(&self) -> Weight {
        self.0.weight()
    }

    fn return_plan(&mut self) -> bool {
        self.0.return_plan()
    }

    fn redraft(&mut self, snapshot: &dyn Snapshot, bucket: Bucket) -> bool {
        self.0.redraft(snapshot, bucket)
    }

    fn write(&mut self, stamp: Stamp, batch: &mut Batch) {
        self.0.write(stamp, batch);
    }

    fn settle(self: Box<Self>, _: Result<()>) {
        self.0.settle(Err(unknown()));
    }
}

struct WatchedSnapshot {
    inner: Box<dyn Snapshot>,
    rows: Arc<AtomicUsize>,
}

impl WatchedSnapshot {
    fn counted(&self, pairs: Result<Vec<Pair>>) -> Result<Vec<Pair>> {
        pairs.inspect(|pairs| _ = self.rows.fetch_add(pairs.len(), Ordering::SeqCst))
    }
}

impl Snapshot for WatchedSnapshot {
    fn now(&self) -> Second {
        self.inner.now()
    }

    fn milliseconds(&self) -> u64 {
        self.inner.milliseconds()
    }

    fn head(&self, bucket: Bucket) -> Head {
        self.inner.head(bucket)
    }

    fn get(&self, bucket: Bucket, key: &[u8]) -> Result<Option<Bytes>> {
        self.inner.get(bucket, key)
    }

    fn scan(
        &self,
        bucket: Bucket,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>> {
        self.counted(self.inner.scan(bucket, range, direction, limit))
    }

    fn mark(&self) -> Mark {
        self.inner.mark()
    }

    fn hints(&self) -> &dyn ReadHints {
        self
    }
}

impl ReadHints for WatchedSnapshot {
    fn scan_alive(
        &self,
        bucket: Bucket,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>> {
        self.counted(self.inner.hints().scan_alive(bucket, range, direction, limit))
    }

    fn barren(&self, bucket: Bucket, range: &KeyRange) {
        self.inner.hints().barren(bucket, range);
    }
}

impl Store for Watched {
    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        self.snapshots.fetch_add(1, Ordering::SeqCst);
        let inner = self.inner.snapshot()?;
        Ok(Box::new(WatchedSnapshot { inner, rows: Arc::clone(&self.rows) }))
    }

    fn submit(&self, bucket: Bucket, job: Box<dyn Job>) {
        match self.doubted.lock().unwrap().take_if(|(doubted, _)| *doubted == bucket) {
            Some((_, Landed::Yes)) => return self.commit(bucket, Box::new(Doubted(job))),
            Some((_, Landed::No)) => return job.settle(Err(unknown())),
            None => {}
        }
        if job.urgency() == Urgency::Now {
            return self.commit(bucket, job);
        }
        let mut rider = self.rider.lock().unwrap();
        match std::mem::replace(&mut *rider, Rider::Goes) {
            Rider::Fails(error) => job.settle(Err(error)),
            Rider::Parks => {
                *rider = Rider::Parked(bucket, job);
                self.changed.notify_all();
            }
            Rider::Goes | Rider::Parked(..) => {
                drop(rider);
                self.commit(bucket, job);
            }
        }
    }

    fn clear(&self, bucket: Bucket, range: &KeyRange, limit: usize) -> Result<Cleared> {
        self.inner.clear(bucket, range, limit)
    }

    fn forget(&self, bucket: Bucket) -> Result<()> {
        self.inner.forget(bucket)
    }

    fn buckets(&self) -> Vec<Bucket> {
        self.inner.buckets()
    }

    fn writable(&self) -> Result<()> {
        self.inner.writable()
    }

    fn figures(&self) -> Figures {
        self.inner.figures()
    }

    fn clock(&self) -> Result<Reading> {
        self.inner.clock()
    }

    fn glance(&self) -> Reading {
        let glance = self.inner.glance();
        let doubted = self.held.load(Ordering::SeqCst);
        let hold = doubted.then_some(PurgeHold::Unproven { seconds: 1 });
        Reading { purge_hold: glance.purge_hold.or(hold), ..glance }
    }

    fn milliseconds(&self) -> u64 {
        self.inner.milliseconds()
    }

    fn move_clock(&self, step: Step) -> Result<Reading, Refused> {
        self.inner.move_clock(step)
    }

    fn tick(&self) -> Result<()> {
        self.inner.tick()
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }

    fn hints(&self) -> &dyn StoreHints {
        self.inner.hints()
    }
}
