//! Entries in order, and what is alive of them.
//!
//! A walk goes over the entries of one path, or of one composite index, in one
//! bucket and one snapshot, a page at a time. What it shows is alive: an entry
//! whose stamp says so, or else one whose item does. The item is asked only if
//! the bucket has items that were touched: else the stamps are the items' own,
//! and hundreds of thousands of dead entries that wait for the purge cost no
//! look at their items.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::iter::Sum;
use std::ops::AddAssign;

use dayfly_model::indexing::Step;
use dayfly_model::indexing::rules::Composite;
use dayfly_storage::tally::{Count, Tally};
use dayfly_storage::{Bucket, Direction, KeyRange, Pair, Result, Snapshot};

use super::barren::Barren;
pub(crate) use super::entry::Entry;
use super::policies::Index;
pub(crate) use super::times::leads_to_time;
use super::times::{Times, is_time};
use crate::catalog::Container;
use crate::keys::{self, EntryKind};
use crate::liveness::Liveness;
use crate::lives::Lives;
use crate::record;
use crate::settings::QueryLimits;

/// Which entries a walk goes over: those whose value is not less than `start`
/// and less than `end`, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryRange {
    pub(crate) kind: EntryKind,
    /// The number of the path or of the composite index.
    pub(crate) path: u64,
    pub(crate) start: Vec<u8>,
    pub(crate) end: Vec<u8>,
}

impl EntryRange {
    /// The rows of the order of some partitions.
    pub(crate) fn of_partitions(KeyRange { start, end }: KeyRange) -> EntryRange {
        EntryRange { kind: EntryKind::Partition, path: 0, start, end }
    }
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    /// Keys of items, or entries.
    pub(crate) keys: u64,
    /// Those among them whose item is dead and not removed yet.
    pub(crate) dead: u64,
}

impl AddAssign for Looked {
    fn add_assign(&mut self, other: Looked) {
        self.keys += other.keys;
        self.dead += other.dead;
    }
}

impl Sum for Looked {
    fn sum<I: Iterator<Item = Looked>>(all: I) -> Looked {
        all.fold(Looked::default(), |mut sum, looked| {
            sum += looked;
            sum
        })
    }
}

/// A walk over entries.
pub(crate) struct Entries<'a> {
    snapshot: &'a dyn Snapshot,
    bucket: Bucket,
    liveness: Liveness,
    kind: EntryKind,
    range: KeyRange,
    direction: Direction,
    /// The feed, if that is walked.
    times: Option<Times<'a>>,
    /// Whether an item may live longer than its entry says, once that is asked.
    has_touched: OnceCell<bool>,
    barren: Barren<'a>,
    /// What was looked at, dead ones too, so that the caller can keep to a limit.
    pub(crate) looked: Looked,
    /// The number of the last entry that was read.
    passed: Option<u64>,
}

impl<'a> Entries<'a> {
    /// The entries of a range, from its start or from its end.
    pub(crate) fn new(
        snapshot: &'a dyn Snapshot,
        bucket: Bucket,
        entry_range: &EntryRange,
        direction: Direction,
        limits: &QueryLimits,
    ) -> Result<Entries<'a>> {
        let EntryRange { kind, path, start, end } = entry_range;
        let liveness = Liveness::of(snapshot, bucket)?;
        let range = keys::entries(*kind, *path, start, end);
        let times = Times::new(snapshot, bucket, liveness.clone(), entry_range, direction, limits);
        let (has_touched, looked) = (OnceCell::new(), Looked::default());
        let barren = Barren::new(snapshot, bucket, direction, limits);
        Ok(Entries {
            snapshot,
            bucket,
            liveness,
            kind: *kind,
            range,
            direction,
            times,
            has_touched,
            barren,
            looked,
            passed: None,
        })
    }

    /// The same from behind an entry with this value and number on, in the
    /// direction of the walk.
    pub(crate) fn after(
        mut self,
        entry_range: &EntryRange,
        value: &[u8],
        docno: u64,
    ) -> Entries<'a> {
        if let Some(times) = &mut self.times {
            times.go_behind(value, docno);
            return self;
        }
        let term = keys::term(entry_range.kind, entry_range.path, value);
        let key = keys::entry(entry_range.kind, &term, docno);
        self.go_behind(&key);
        self
    }

    /// Looks at the next entries, `limit` at most, and returns those that are
    /// alive, which may be none; `None` at the end.
    ///
    /// An empty page is no end: each call looks at few entries, so that its caller makes
    /// steps and can be stopped, also among hundreds of thousands of the dead. The walk
    /// moves behind the last entry it has read, alive or not. What it passed is told to
    /// `barren`: a long run of the dead is remembered by the store, and the next walk leaps
    /// over it, until something is put there.
    pub(crate) fn page(&mut self, limit: usize) -> Result<Option<Vec<Entry>>> {
        if let Some(times) = &mut self.times {
            return times.page(limit, &mut self.looked);
        }
        let pairs =
            self.snapshot.hints().scan_alive(self.bucket, &self.range, self.direction, limit)?;
        let Some((last, _)) = pairs.last() else { return Ok(None) };
        self.passed = keys::entry_owner(last);
        let before = self.range.clone();
        self.go_behind(last);
        let alive = self.alive(&pairs)?;
        let dead = pairs.len() - alive.len();
        self.looked += Looked { keys: pairs.len() as u64, dead: dead as u64 };
        self.barren.walked(before, &self.range, pairs.len(), dead);
        Ok(Some(alive))
    }

    /// The number of the last entry that was read, dead or alive.
    pub(crate) fn passed(&self) -> Option<u64> {
        self.passed
    }

    fn go_behind(&mut self, key: &[u8]) {
        match self.direction {
            Direction::Forward => self.range.go_behind(key),
            Direction::Backward => self.range.end = key.to_vec(),
        }
    }

    /// The entries whose items are alive. Items that may live longer than their entries
    /// say are asked, all at once.
    fn alive(&self, pairs: &[Pair]) -> Result<Vec<Entry>> {
        let entries = pairs.iter().map(|(key, row)| Entry::decode(self.kind, key, row));
        let mut entries: Vec<Entry> = entries.collect::<Result<_>>()?;
        let dead = |entry: &&Entry| self.liveness.is_dead(*entry);
        let asked: Vec<u64> = entries.iter().filter(dead).map(|entry| entry.docno).collect();
        if asked.is_empty() {
            return Ok(entries);
        }
        let mut survivors = HashSet::new();
        if self.has_touched()? {
            let records = record::named(self.snapshot, self.bucket, &asked)?.into_iter();
            let alive = records.filter(|record| !self.liveness.is_dead(record));
            survivors.extend(alive.map(|record| record.docno));
        }
        entries.retain(|entry| !self.liveness.is_dead(entry) || survivors.contains(&entry.docno));
        Ok(entries)
    }

    fn has_touched(&self) -> Result<bool> {
        if let Some(known) = self.has_touched.get() {
            return Ok(*known);
        }
        let touched = counted(self.snapshot, self.bucket, &keys::touched())?;
        Ok(*self.has_touched.get_or_init(|| !touched.is_empty()))
    }
}

/// Whether the entries of what stands under these steps can be used now: every
/// item of the container that has something there has an entry for it.
pub(crate) fn is_indexed(
    index: &Index,
    snapshot: &dyn Snapshot,
    container: &Container,
    steps: &[Step<'_>],
) -> Result<bool> {
    if leads_to_time(steps) {
        return Ok(true);
    }
    let computed = &container.definition().computed;
    for bucket in container.buckets() {
        let get = |key: &[u8]| snapshot.get(bucket, key);
        let has_all = index.policies(bucket, &get)?.has_all_of(steps, computed);
        if !has_all || has_left_out(snapshot, bucket)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The composite indexes that can be used now: each has one entry for every item
/// of the container.
pub(crate) fn composites(
    index: &Index,
    snapshot: &dyn Snapshot,
    container: &Container,
) -> Result<Vec<Composite>> {
    let mut usable: Option<Vec<Composite>> = None;
    for bucket in container.buckets() {
        if has_left_out(snapshot, bucket)? {
            return Ok(Vec::new());
        }
        let get = |key: &[u8]| snapshot.get(bucket, key);
        let here = index.policies(bucket, &get)?.composites(&container.definition().computed);
        usable = Some(match usable {
            None => here,
            Some(there) => there.into_iter().filter(|known| here.contains(known)).collect(),
        });
    }
    Ok(usable.unwrap_or_default())
}

/// How many items of a bucket have nothing at a path that is indexed, with those
/// that are dead and not removed yet.
pub(crate) fn lacking(snapshot: &dyn Snapshot, bucket: Bucket, path: u64) -> Result<u64> {
    if is_time(path) {
        return Ok(0);
    }
    let get_many = |keys: &[&[u8]]| snapshot.get_many(bucket, keys);
    let items = Lives::new(&get_many).whole()?.items;
    let with = counted(snapshot, bucket, &keys::path_count(&path.to_be_bytes()))?.items;
    Ok(items.saturating_sub(with))
}

fn has_left_out(snapshot: &dyn Snapshot, bucket: Bucket) -> Result<bool> {
    Ok(!counted(snapshot, bucket, &keys::left_out())?.is_empty())
}

fn counted(snapshot: &dyn Snapshot, bucket: Bucket, key: &[u8]) -> Result<Count> {
    let row = snapshot.get(bucket, key)?;
    let tally = row.map(|row| Tally::decode(&row)).transpose()?.unwrap_or_default();
    Ok(tally.before(1))
}
