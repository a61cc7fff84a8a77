//! Commits that are written together: one time, one batch, one sync.
//!
//! A group grows job by job. Each job sees what the jobs before it wrote,
//! though nobody else does yet, so the outcome is as if they had come alone,
//! one after the other.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

use super::backend::{Rows, Writes};
use super::cache::Slots;
use super::reader::Reader;
use super::system::physical;
use crate::plan::{Basis, fingerprint};
use crate::tally::{Addition, Tally};
use crate::{
    Batch, Bucket, Direction, Error, Head, Job, KEY_BYTES_MAX, KeyRange, Pair, Result, Second,
    Snapshot, Stamp,
};

/// How many jobs go into one group.
const GROUP_JOBS_MAX: usize = 1024;

/// How many bytes a group writes before it takes no more jobs.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a row costs besides its bytes, roughly.
const ROW_BYTES: usize = 32;

/// What a row that counts has, roughly.
const TALLY_BYTES: usize = 512;

/// The group under way.
pub(super) struct Group<R> {
    pub(super) overlay: Overlay<R>,
    opened: u32,
    /// The jobs to answer once the group is published: committed or refused.
    pub(super) jobs: Vec<Box<dyn Job>>,
    pub(super) commits: u64,
    pub(super) redrafts: u64,
    bytes: usize,
    /// Rows that count, with what the jobs added, and where each one is.
    tallies: Vec<Counted>,
    places: HashMap<Vec<u8>, usize>,
}

/// A row that counts.
struct Counted {
    key: Vec<u8>,
    tally: Tally,
    /// Whether it is not yet among the group's writes.
    changed: bool,
}

/// What the jobs of a group see: what is published, at the time of the group,
/// under what the jobs before them wrote.
pub(super) struct Overlay<R> {
    pub(super) base: Reader<R>,
    pub(super) generation: u64,
    pub(super) writes: Writes,
    pub(super) heads: BTreeMap<Bucket, Head>,
}

/// What became of a job.
enum Judged {
    Taken,
    Refused,
    Failed(Error),
}

impl<R: Rows> Group<R> {
    /// An empty group at the time of `base`, which will be published as
    /// `generation`.
    pub(super) fn new(base: Reader<R>, generation: u64, opened: u32) -> Self {
        let (writes, heads) = (Writes::new(), BTreeMap::new());
        let overlay = Overlay { base, generation, writes, heads };
        Group {
            overlay,
            opened,
            jobs: Vec::new(),
            commits: 0,
            redrafts: 0,
            bytes: 0,
            tallies: Vec::new(),
            places: HashMap::new(),
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.jobs.len() < GROUP_JOBS_MAX && self.bytes < GROUP_BYTES_MAX
    }

    /// Takes a job in. A job that cannot be part of any group is answered at
    /// once; a plan that panics takes only its own job with it.
    pub(super) fn add(&mut self, bucket: Bucket, mut job: Box<dyn Job>, slots: &Slots) {
        let judged = catch_unwind(AssertUnwindSafe(|| self.judge(bucket, &mut *job, slots)))
            .unwrap_or_else(|_| Judged::Failed(panicked()));
        match judged {
            Judged::Taken => {
                self.commits += 1;
                self.jobs.push(job);
            }
            Judged::Refused => self.jobs.push(job),
            Judged::Failed(error) => settle(job, Err(error)),
        }
    }

    fn judge(&mut self, bucket: Bucket, job: &mut dyn Job, slots: &Slots) -> Judged {
        let head = self.overlay.head(bucket);
        if !self.holds(job.basis(), &head, slots) {
            self.redrafts += 1;
            self.note_tallies();
            if !job.redraft(&self.overlay, bucket) {
                return Judged::Refused;
            }
            if job.basis().valid_before <= self.overlay.now() {
                return Judged::Failed(Error::Retry);
            }
        }
        let stamp = Stamp { lsn: head.lsn + 1, ts: self.overlay.now(), opened: self.opened };
        let mut batch = Batch::default();
        job.write(stamp, &mut batch);
        match self.take(bucket, &head, stamp, batch, slots) {
            Ok(()) => Judged::Taken,
            Err(error) => Judged::Failed(error),
        }
    }

    /// Whether the draft would come out the same now.
    fn holds(&self, basis: &Basis, head: &Head, slots: &Slots) -> bool {
        let unwritten = |key: &u64| slots.last_write(*key) <= basis.generation;
        basis.state == head.state
            && self.overlay.now() < basis.valid_before
            && (!basis.reads.whole_bucket || basis.lsn == head.lsn)
            && basis.reads.keys.iter().all(unwritten)
    }

    fn take(
        &mut self,
        bucket: Bucket,
        head: &Head,
        stamp: Stamp,
        batch: Batch,
        slots: &Slots,
    ) -> Result<()> {
        let keys = batch.writes.iter().map(|(key, _)| key);
        let counted = batch.additions.iter().map(|(key, _)| key);
        if let Some(length) = keys.chain(counted).map(Vec::len).find(|len| *len > KEY_BYTES_MAX) {
            return Err(Error::Unavailable(format!(
                "a key of {length} bytes is longer than the limit of {KEY_BYTES_MAX}"
            )));
        }
        let places = self.load_tallies(bucket, &batch, slots)?;
        for (place, (_, addition)) in places.into_iter().zip(&batch.additions) {
            self.count(place, *addition);
        }
        for (key, value) in batch.writes {
            slots.mark(fingerprint(bucket, &key), self.overlay.generation);
            self.bytes += ROW_BYTES + key.len() + value.as_ref().map_or(0, Bytes::len);
            self.overlay.writes.insert(physical(bucket, &key), value);
        }
        let state = batch.state.unwrap_or_else(|| head.state.clone());
        self.overlay.heads.insert(bucket, Head { lsn: stamp.lsn, ts: stamp.ts, state });
        Ok(())
    }
}

impl<R: Rows> Group<R> {
    /// Reads the rows that `batch` counts in, as far as they are not known, and
    /// returns which ones they are.
    fn load_tallies(&mut self, bucket: Bucket, batch: &Batch, slots: &Slots) -> Result<Vec<usize>> {
        let mut places = Vec::with_capacity(batch.additions.len());
        for (key, _) in &batch.additions {
            let physical = physical(bucket, key);
            if let Some(place) = self.places.get(&physical) {
                places.push(*place);
                continue;
            }
            let row = self.overlay.get(bucket, key)?;
            let tally = row.map(|row| Tally::decode(&row)).transpose()?.unwrap_or_default();
            slots.mark(fingerprint(bucket, key), self.overlay.generation);
            self.bytes += ROW_BYTES + physical.len() + TALLY_BYTES;
            places.push(self.tallies.len());
            self.places.insert(physical.clone(), self.tallies.len());
            self.tallies.push(Counted { key: physical, tally, changed: false });
        }
        Ok(places)
    }

    fn count(&mut self, place: usize, addition: Addition) {
        let Some(counted) = self.tallies.get_mut(place) else { return };
        counted.changed = true;
        if !counted.tally.add(addition.cell, addition.change) {
            // The figures are wrong now, and the recount will say so; the data
            // is not, so the write stands.
            tracing::error!(key = ?counted.key, "more went than was counted; this is a bug");
            debug_assert!(false, "more went than was counted: {addition:?}");
        }
    }

    /// Puts the rows that count among the group's writes.
    pub(super) fn note_tallies(&mut self) {
        for counted in self.tallies.iter_mut().filter(|counted| counted.changed) {
            counted.changed = false;
            self.overlay.writes.insert(counted.key.clone(), counted.tally.encode());
        }
    }
}

impl<R: Rows> Snapshot for Overlay<R> {
    fn now(&self) -> Second {
        self.base.now
    }

    fn head(&self, bucket: Bucket) -> Head {
        self.heads.get(&bucket).cloned().unwrap_or_else(|| self.base.head(bucket))
    }

    fn get(&self, bucket: Bucket, key: &[u8]) -> Result<Option<Bytes>> {
        match self.writes.get(&physical(bucket, key)) {
            Some(written) => Ok(written.clone()),
            None => self.base.get(bucket, key),
        }
    }

    fn scan(
        &self,
        bucket: Bucket,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>> {
        self.base.merged(&self.writes, bucket, range, direction, limit)
    }

    fn generation(&self) -> u64 {
        self.generation
    }
}

/// Answers a job; whatever that sets off stays with the job.
pub(super) fn settle(job: Box<dyn Job>, outcome: Result<()>) {
    if catch_unwind(AssertUnwindSafe(|| job.settle(outcome))).is_err() {
        tracing::error!("answering a write failed: its plan panicked");
    }
}

fn panicked() -> Error {
    tracing::error!("a write was not done: its plan panicked");
    Error::Unavailable("the write was not done, because its plan failed; this is a bug".to_owned())
}
