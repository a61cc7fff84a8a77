//! The change from one indexing policy to another, in the background.
//!
//! A unit takes the next versions of the feed that follow an old policy, and
//! writes the difference between their entries and those of the newest policy.
//! How far it came is committed with it, so a restart goes on from there. A
//! version that was written over meanwhile follows the newest policy already,
//! and is left alone.
//!
//! Units ride and are paced like those of the purge.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use dayfly_model::charge::{self, Charge};
use dayfly_model::meter::Units;
use dayfly_storage::{
    Batch, Bucket, Direction, Draft, Error, Mark, Plan, Result, Room, Snapshot, Store, Urgency,
    View, commit_on,
};

use super::policies::{Index, Policies};
use super::{Difference, Indexed, Owner, Source};
use crate::head::State;
use crate::keys::{self, Partition};
use crate::locks::lock;
use crate::record::{self, FeedRow, Record};

/// How many feed rows are read at once.
const ROWS: usize = 64;

/// How many buckets are looked at in one turn, if none has anything to do.
const LOOKS: usize = 64;

/// How large a unit may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Items.
    pub(crate) items: usize,
    /// Their bytes, with those of their entries.
    pub(crate) bytes: u64,
    /// What reading them may cost; without one, as much as it does. The first is read in any
    /// case.
    pub(crate) charge_max: Option<Units>,
    /// Whether it waits for company.
    pub(crate) urgency: Urgency,
}

/// What a turn did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Nothing is to be rebuilt.
    Idle,
    /// Some buckets were looked at; more wait.
    Looked,
    /// There is something to do, and nothing to spend on it.
    Waits,
    /// A unit was committed.
    Committed,
}

/// The buckets that may have to be rebuilt, each once.
#[derive(Default)]
pub(crate) struct RebuildLine {
    waiting: Mutex<VecDeque<Bucket>>,
    /// All buckets were in the line since the start.
    filled: AtomicBool,
}

impl RebuildLine {
    /// `bucket` may have another policy.
    pub(crate) fn look_at(&self, bucket: Bucket) {
        let mut waiting = self.waiting();
        if !waiting.contains(&bucket) {
            waiting.push_back(bucket);
        }
    }

    fn fill(&self, store: &dyn Store) {
        if !self.filled.swap(true, Ordering::Relaxed) {
            let mut buckets = store.buckets();
            buckets.retain(|bucket| keys::container_of(*bucket).is_some());
            *self.waiting() = buckets.into();
        }
    }

    /// Whether no bucket has to be looked at.
    pub(crate) fn is_empty(&self) -> bool {
        self.filled.load(Ordering::Relaxed) && self.waiting().is_empty()
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Bucket>> {
        lock(&self.waiting)
    }
}

/// What a rebuild may spend, and where it says what it spent.
pub(crate) trait RebuildMeans {
    /// What it may spend in a bucket now; without one, as much as it takes.
    fn most(&self, bucket: Bucket) -> Option<Units>;

    /// It went through some, which would cost so much to read.
    fn spent(&self, bucket: Bucket, charge: Charge);

    /// There is nothing to rebuild in it.
    fn idle(&self, bucket: Bucket);
}

/// One turn of the background: at most one unit. A bucket whose unit fails goes
/// to the end of the line, as does one where there is nothing to spend.
pub(crate) fn turn(
    store: &dyn Store,
    index: &Arc<Index>,
    size: Size,
    budget: &impl RebuildMeans,
) -> Result<Moved> {
    let line = &index.line;
    line.fill(store);
    let mut first_waiting = None;
    for _ in 0..LOOKS {
        let Some(bucket) = line.waiting().pop_front() else { return Ok(Moved::Idle) };
        let charge_max = budget.most(bucket);
        if charge_max.is_some_and(|most| !most.is_positive()) {
            line.look_at(bucket);
            if first_waiting == Some(bucket) {
                return Ok(Moved::Waits);
            }
            first_waiting = first_waiting.or(Some(bucket));
            continue;
        }
        let moved = step(store, index, bucket, Size { charge_max, ..size });
        if !matches!(moved, Ok(RebuildStep::Nothing)) {
            line.look_at(bucket);
        }
        match moved {
            // Another change came first; the next look begins with that.
            Ok(RebuildStep::Nothing) => budget.idle(bucket),
            Err(Error::Retry) => {}
            Ok(RebuildStep::Committed(charge)) => {
                budget.spent(bucket, charge);
                return Ok(Moved::Committed);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Moved::Looked)
}

enum RebuildStep {
    Nothing,
    /// What reading the items would cost.
    Committed(Charge),
}

/// One unit in `bucket`, if its policy changes.
fn step(store: &dyn Store, index: &Arc<Index>, bucket: Bucket, size: Size) -> Result<RebuildStep> {
    let snapshot = store.snapshot()?;
    let Some(unit) = look(&*snapshot, index, bucket, size)? else {
        return Ok(RebuildStep::Nothing);
    };
    let charge = unit.items.iter().map(RebuiltItem::charge).sum();
    let ticket = commit_on(store, &*snapshot, bucket, unit);
    drop(snapshot);
    ticket.wait()?;
    Ok(RebuildStep::Committed(charge))
}

/// The next unit of `bucket`; `None`: it has no change under way.
fn look(
    snapshot: &dyn Snapshot,
    index: &Arc<Index>,
    bucket: Bucket,
    size: Size,
) -> Result<Option<RebuildUnit>> {
    let head = snapshot.head(bucket);
    if head.lsn == 0 || State::of(&head).deleted {
        return Ok(None);
    }
    let get = |key: &[u8]| snapshot.get(bucket, key);
    let policies = index.policies(bucket, &get)?;
    if policies.is_settled() {
        return Ok(None);
    }
    let from = policies.done(&get)?;
    let mut unit = RebuildUnit {
        index: Arc::clone(index),
        bucket,
        items: Arc::default(),
        mark: snapshot.mark(),
        from,
        to: policies.until(),
        urgency: size.urgency,
        frees: !policies.newest().rules().is_on(),
    };
    let (mut items, mut bytes, mut charge, mut at) = (Vec::new(), 0, Units::ZERO, from);
    let mut is_full = size.items == 0;
    while !is_full {
        let range = keys::feed_between(at, policies.until());
        let rows = snapshot.scan(bucket, &range, Direction::Forward, ROWS)?;
        if rows.is_empty() {
            unit.items = Arc::new(items);
            return Ok(Some(unit));
        }
        let rows = rows.iter().map(|(key, row)| FeedRow::decode(key, row));
        let rows: Vec<FeedRow> = rows.collect::<Result<_>>()?;
        let numbers: Vec<u64> = rows.iter().map(|row| row.docno).collect();
        let records = record::named(snapshot, bucket, &numbers)?;
        for (row, record) in rows.into_iter().zip(records) {
            let version = row.version;
            let item = RebuiltItem::new(row, record)?;
            charge += item.charge().into();
            is_full = !items.is_empty() && size.charge_max.is_some_and(|most| charge > most);
            if is_full {
                break;
            }
            bytes += item.weigh(&policies, from)?;
            at = version;
            items.push(item);
            is_full = items.len() >= size.items || bytes >= size.bytes;
            if is_full {
                break;
            }
        }
    }
    unit.to = at;
    unit.items = Arc::new(items);
    Ok(Some(unit))
}

/// An item whose entries are to follow another policy.
struct RebuiltItem {
    record: Record,
    partition: Partition,
    source: Source,
}

impl RebuiltItem {
    fn new(row: FeedRow, record: Record) -> Result<RebuiltItem> {
        if record.version != row.version {
            return Err(Error::Corrupt("a feed row without item".to_owned()));
        }
        Ok(RebuiltItem { source: Source::of(&record), record, partition: row.partition() })
    }

    /// What reading it would cost.
    fn charge(&self) -> Charge {
        charge::of_read(self.record.text().len())
    }

    fn weigh(&self, policies: &Policies, done: u64) -> Result<u64> {
        let (before, after) = self.indexed(policies, done)?;
        Ok(self.record.bytes() + before.weight() + after.weight())
    }

    /// What it has in the index, and what it is to have.
    fn indexed(&self, policies: &Policies, done: u64) -> Result<(Indexed, Indexed)> {
        let Record { version, ts, .. } = self.record;
        let before = self.source.by(policies.recipe_of(version, done), ts)?;
        Ok((before, self.source.by(policies.newest(), ts)?))
    }
}

/// One commit of a rebuild.
struct RebuildUnit {
    index: Arc<Index>,
    bucket: Bucket,
    items: Arc<Vec<RebuiltItem>>,
    /// The snapshot they were found in.
    mark: Mark,
    from: u64,
    to: u64,
    urgency: Urgency,
    frees: bool,
}

impl Plan for RebuildUnit {
    type Done = ();
    type Refusal = Error;

    fn draft(&self, view: &View<'_>) -> Result<Draft<()>> {
        let state = State::of(view.head());
        if view.head().lsn == 0 || state.deleted {
            return Err(Error::Retry);
        }
        let get = |key: &[u8]| view.get(key);
        let policies = self.index.policies(self.bucket, &get)?;
        if policies.done(&get)? != self.from || policies.until() < self.to {
            // Another change came first, and starts anew.
            return Err(Error::Retry);
        }
        let mut changes = Vec::new();
        let versions: Vec<u64> = self.items.iter().map(|item| item.record.version).collect();
        let newest = record::are_newest(view, self.mark, &versions)?;
        for (place, (item, is_newest)) in self.items.iter().zip(newest).enumerate() {
            if is_newest {
                let (before, after) = item.indexed(&policies, self.from)?;
                changes.push((place, Difference::new(before, after)));
            }
        }
        let (items, to) = (Arc::clone(&self.items), self.to);
        let rows = changes.iter().map(|(_, difference)| difference.rows()).sum();
        Ok(Draft::new(move |_, batch: &mut Batch| {
            for (place, difference) in changes {
                let Some(item) = items.get(place) else { continue };
                difference.put(false, batch, &Owner::of(&item.record, &item.partition));
            }
            policies.rebuilt(to, batch);
        })
        .of_rows(rows))
    }

    /// An index that goes makes room.
    fn room(&self) -> Room {
        if self.frees { Room::Frees } else { Room::Grows }
    }

    fn urgency(&self) -> Urgency {
        self.urgency
    }

    fn bytes(&self) -> usize {
        self.items.iter().map(|item| usize::try_from(item.record.bytes()).unwrap_or_default()).sum()
    }
}
