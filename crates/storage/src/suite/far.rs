//! A store that says that its reads wait for a network, and knows what was read of it: how
//! many calls there were in which bucket, and whose threads made them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use bytes::Bytes;

use super::Stepped;
use crate::clock::{Reading, Refused, Step};
use crate::{
    Bucket, Cleared, Direction, Figures, Head, Job, KeyRange, Mark, Pair, ReadHints, Result,
    Second, Snapshot, Store, StoreHints,
};

/// A store behind what looks like a network, for the tests of those who use one.
pub struct Far {
    inner: Box<dyn Stepped>,
    reads: Arc<FarReads>,
}

/// What was read from afar.
#[derive(Default)]
pub struct FarReads(Mutex<FarCalls>);

/// The calls that read something.
#[derive(Default)]
pub struct FarCalls {
    /// How many there were in each bucket.
    pub calls: HashMap<Bucket, usize>,
    /// Who made them.
    pub threads: HashSet<ThreadId>,
}

impl FarReads {
    fn lock(&self) -> MutexGuard<'_, FarCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, bucket: Bucket) {
        let mut read = self.lock();
        *read.calls.entry(bucket).or_default() += 1;
        read.threads.insert(thread::current().id());
    }

    /// The calls since this was asked last.
    pub fn take(&self) -> FarCalls {
        std::mem::take(&mut *self.lock())
    }
}

impl Far {
    /// Puts `inner` behind a network, and notes in `reads` what is read.
    pub fn new(inner: Box<dyn Stepped>, reads: Arc<FarReads>) -> Far {
        Far { inner, reads }
    }
}

struct FarSnapshot {
    inner: Box<dyn Snapshot>,
    reads: Arc<FarReads>,
}

impl Snapshot for FarSnapshot {
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
        self.reads.note(bucket);
        self.inner.get(bucket, key)
    }

    fn get_many(&self, bucket: Bucket, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        self.reads.note(bucket);
        self.inner.get_many(bucket, keys)
    }

    fn scan(
        &self,
        bucket: Bucket,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>> {
        self.reads.note(bucket);
        self.inner.scan(bucket, range, direction, limit)
    }

    fn mark(&self) -> Mark {
        self.inner.mark()
    }

    fn hints(&self) -> &dyn ReadHints {
        self
    }
}

impl ReadHints for FarSnapshot {
    fn get_once(&self, bucket: Bucket, key: &[u8]) -> Result<Option<Bytes>> {
        self.reads.note(bucket);
        self.inner.hints().get_once(bucket, key)
    }

    fn get_many_once(&self, bucket: Bucket, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        self.reads.note(bucket);
        self.inner.hints().get_many_once(bucket, keys)
    }

    fn may_differ(&self, bucket: Bucket, key: &[u8], since: Mark) -> bool {
        self.inner.hints().may_differ(bucket, key, since)
    }

    fn scan_alive(
        &self,
        bucket: Bucket,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>> {
        self.reads.note(bucket);
        self.inner.hints().scan_alive(bucket, range, direction, limit)
    }

    fn barren(&self, bucket: Bucket, range: &KeyRange) {
        self.inner.hints().barren(bucket, range);
    }
}

impl Stepped for Far {
    fn begin_group(&self) {
        self.inner.begin_group();
    }

    fn publish_group(&self) {
        self.inner.publish_group();
    }
}

impl Store for Far {
    fn waits(&self) -> bool {
        true
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        let inner = self.inner.snapshot()?;
        Ok(Box::new(FarSnapshot { inner, reads: Arc::clone(&self.reads) }))
    }

    fn submit(&self, bucket: Bucket, job: Box<dyn Job>) {
        self.inner.submit(bucket, job);
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
        self.inner.glance()
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
