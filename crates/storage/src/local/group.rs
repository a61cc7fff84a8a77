//! Commits that are written together: one time, one batch, one sync.
//!
//! A group grows job by job. Each job sees what the jobs before it wrote,
//! though nobody else does yet, so the outcome is as if they had come alone,
//! one after the other.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

use super::backend::{Rows, Writes};
use super::reader::Reader;
use super::records::Records;
use super::slots::Slots;
use super::system::physical;
use crate::plan::{Basis, fingerprint};
use crate::tally::{Addition, Tally};
use crate::{
    Batch, Bucket, Direction, Error, Head, Job, KEY_BYTES_MAX, KeyRange, Mark, Pair, ReadHints,
    Result, Second, Snapshot, Stamp, Weight,
};

/// How many jobs go into one group.
const GROUP_JOBS_MAX: usize = 1024;

/// How many rows a group writes, and how many bytes. A job with more goes alone.
const GROUP_ROWS_MAX: usize = 4096;
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A job with more rows is sorted by itself before it goes into the group.
const SORTED_ROWS_MIN: usize = 64;

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
    pub(super) load: Load,
    pub(super) tallies: Tallies,
}

/// Rows that count, with what was added to them, by their keys as the backend knows them.
///
/// They stay from group to group: nearly every write counts in the same ones, and nobody
/// but the committer changes them. Whatever else is written, or fails, forgets them.
#[derive(Default)]
pub(super) struct Tallies {
    known: HashMap<Vec<u8>, Counted>,
    /// Those that this group counted in.
    counted: Vec<Vec<u8>>,
}

/// A row that counts.
#[derive(Default)]
struct Counted {
    tally: Tally,
    /// Whether this group counted in it.
    in_group: bool,
    /// Whether it is not yet among the group's writes.
    is_changed: bool,
}

/// How many rows that count are known from group to group.
const TALLIES_MAX: usize = 8192;

/// What a group holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    jobs: usize,
    rows: usize,
    bytes: usize,
    has_large: bool,
}

impl Load {
    pub(super) fn is_empty(&self) -> bool {
        self.jobs == 0
    }

    pub(super) fn has_large(&self) -> bool {
        self.has_large
    }

    /// Whether there is room for a job of this weight.
    pub(super) fn takes(&self, weight: Weight) -> bool {
        let fits = self.jobs < GROUP_JOBS_MAX
            && self.rows.saturating_add(weight.rows) <= GROUP_ROWS_MAX
            && self.bytes.saturating_add(weight.bytes) <= GROUP_BYTES_MAX;
        fits || self.is_empty()
    }

    fn add_row(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += ROW_BYTES + bytes;
    }
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
    /// It is refused, or goes back to its caller.
    Unwritten,
    Failed(Error),
}

impl<R: Rows> Group<R> {
    /// An empty group at the time of `base`, which will be published as
    /// `generation`.
    pub(super) fn new(base: Reader<R>, generation: u64, opened: u32, tallies: Tallies) -> Self {
        let (writes, heads) = (Writes::new(), BTreeMap::new());
        let overlay = Overlay { base, generation, writes, heads };
        Group {
            overlay,
            opened,
            jobs: Vec::new(),
            commits: 0,
            redrafts: 0,
            load: Load::default(),
            tallies,
        }
    }

    /// Takes a job in. A job that cannot be part of any group is answered at
    /// once; a plan that panics takes only its own job with it.
    pub(super) fn add(&mut self, bucket: Bucket, mut job: Box<dyn Job>, records: &Records) {
        self.load.jobs += 1;
        self.load.has_large |= job.weight().is_large();
        let judged = catch_unwind(AssertUnwindSafe(|| self.judge(bucket, &mut *job, records)))
            .unwrap_or_else(|_| Judged::Failed(panicked()));
        match judged {
            Judged::Taken => {
                self.commits += 1;
                self.jobs.push(job);
            }
            Judged::Unwritten => self.jobs.push(job),
            Judged::Failed(error) => settle(job, Err(error)),
        }
    }

    /// Decides what becomes of a job, against the group so far.
    ///
    /// In the usual case this reads nothing: the draft holds, and what it writes is taken
    /// as it is. Otherwise the plan is drafted again against what the jobs before it wrote,
    /// as if it had come after them; the rows that this group counted in are put among its
    /// writes first, since a plan may read them. If even that draft does not hold in the
    /// second it was made for, the job is given up: it would be drafted for ever. A plan
    /// that refuses now may do so because of what this group wrote, which nobody can see
    /// yet. So its job stays, and is answered when the group is published.
    fn judge(&mut self, bucket: Bucket, job: &mut dyn Job, records: &Records) -> Judged {
        let head = self.overlay.head(bucket);
        if !self.holds(job.basis(), &head, &records.slots) {
            // It is settled when the group is published: then the caller sees what
            // stood in the way, and does not run into it again.
            if job.return_plan() {
                return Judged::Unwritten;
            }
            self.redrafts += 1;
            self.note_tallies();
            if !job.redraft(&self.overlay, bucket) {
                return Judged::Unwritten;
            }
            if job.basis().valid_before <= self.overlay.now() {
                return Judged::Failed(Error::Retry);
            }
        }
        let stamp = Stamp { lsn: head.lsn + 1, ts: self.overlay.now(), opened: self.opened };
        let mut batch = Batch::default();
        job.write(stamp, &mut batch);
        match self.take(bucket, &head, stamp, batch, records) {
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
        records: &Records,
    ) -> Result<()> {
        let keys = batch.writes.iter().map(|(key, _)| key);
        let counted = batch.additions.iter().map(|(key, _)| key);
        if let Some(length) = keys.chain(counted).map(Vec::len).find(|len| *len > KEY_BYTES_MAX) {
            return Err(Error::Unavailable(format!(
                "a key of {length} bytes is longer than the limit of {KEY_BYTES_MAX}"
            )));
        }
        self.load_tallies(bucket, &batch)?;
        for (key, addition) in &batch.additions {
            if self.tallies.count(&physical(bucket, key), *addition) {
                records.written(fingerprint(bucket, key), self.overlay.generation);
                self.load.add_row(key.len() + TALLY_BYTES);
            }
        }
        let (generation, load) = (self.overlay.generation, &mut self.load);
        let is_long = batch.writes.len() >= SORTED_ROWS_MIN;
        let written = batch.writes.iter().map(|(key, _)| fingerprint(bucket, key));
        let written: Vec<u64> = written.collect();
        records.slots.approach(&written);
        let rows = batch.writes.into_iter().zip(written).map(|((key, value), fingerprint)| {
            records.written(fingerprint, generation);
            load.add_row(key.len() + value.as_ref().map_or(0, Bytes::len));
            (physical(bucket, &key), value)
        });
        if is_long {
            // Entries of the index come in their order, and are sorted in no time.
            self.overlay.writes.append(&mut rows.collect());
        } else {
            self.overlay.writes.extend(rows);
        }
        let state = batch.state.unwrap_or_else(|| head.state.clone());
        self.overlay.heads.insert(bucket, Head { lsn: stamp.lsn, ts: stamp.ts, state });
        Ok(())
    }
}

impl<R: Rows> Group<R> {
    /// Reads the rows that `batch` counts in, as far as they are not known, in one call.
    /// Nothing is counted before all of them are there.
    fn load_tallies(&mut self, bucket: Bucket, batch: &Batch) -> Result<()> {
        let known = &self.tallies.known;
        let keys = batch.additions.iter().map(|(key, _)| (physical(bucket, key), &key[..]));
        let unknown = keys.filter(|(physical, _)| !known.contains_key(physical));
        let (new, asked): (Vec<_>, Vec<_>) = unknown.collect();
        if asked.is_empty() {
            return Ok(());
        }
        let rows = self.overlay.get_many(bucket, &asked)?;
        for (physical, row) in new.into_iter().zip(rows) {
            let tally = row.map(|row| Tally::decode(&row)).transpose()?.unwrap_or_default();
            self.tallies.known.insert(physical, Counted { tally, ..Counted::default() });
        }
        Ok(())
    }

    /// Puts the rows that count among the group's writes.
    pub(super) fn note_tallies(&mut self) {
        self.tallies.note(&mut self.overlay.writes);
    }
}

impl Tallies {
    /// Counts in a row that is known. Whether it is the first time in this group.
    fn count(&mut self, key: &[u8], addition: Addition) -> bool {
        let Some(counted) = self.known.get_mut(key) else { return false };
        counted.is_changed = true;
        if !counted.tally.add(addition.cell, addition.change) {
            // The figures are wrong now, and the recount will say so; the data
            // is not, so the write stands.
            tracing::error!(?key, "more went than was counted; this is a bug");
            debug_assert!(false, "more went than was counted: {addition:?}");
        }
        if counted.in_group {
            return false;
        }
        counted.in_group = true;
        self.counted.push(key.to_vec());
        true
    }

    fn note(&mut self, writes: &mut Writes) {
        for key in &self.counted {
            if let Some(counted) = self.known.get_mut(key)
                && std::mem::take(&mut counted.is_changed)
            {
                writes.insert(key.clone(), counted.tally.encode());
            }
        }
    }

    /// The keys of the rows that the group counted in. The group is over, and the next
    /// one knows them.
    pub(super) fn end_group(&mut self) -> Vec<Vec<u8>> {
        let counted = std::mem::take(&mut self.counted);
        if self.known.len() > TALLIES_MAX {
            self.known.retain(|_, counted| counted.in_group);
        }
        for key in &counted {
            if let Some(counted) = self.known.get_mut(key) {
                counted.in_group = false;
            }
        }
        counted
    }
}

impl<R: Rows> Snapshot for Overlay<R> {
    fn now(&self) -> Second {
        self.base.now
    }

    fn milliseconds(&self) -> u64 {
        self.base.milliseconds
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

    /// What the group wrote is not asked for, and the others are asked for at once.
    fn get_many(&self, bucket: Bucket, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let written = keys.iter().map(|key| self.writes.get(&physical(bucket, key)));
        let written: Vec<Option<&Option<Bytes>>> = written.collect();
        let asked = keys.iter().zip(&written);
        let asked = asked.filter_map(|(key, written)| written.is_none().then_some(*key));
        let found = self.base.get_many(bucket, &asked.collect::<Vec<_>>())?;
        let mut found = found.into_iter();
        let values = written.into_iter().map(|written| match written {
            Some(written) => written.clone(),
            None => found.next().flatten(),
        });
        Ok(values.collect())
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

    fn mark(&self) -> Mark {
        Mark(self.generation)
    }

    fn hints(&self) -> &dyn ReadHints {
        self
    }
}

/// A plan that is drafted in the committer does without them.
impl<R: Rows> ReadHints for Overlay<R> {}

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
