//! One commit of the purge: what is due in a bucket, from the cursors on.
//!
//! The cursors are committed with the deletes. Below a cursor nothing is left
//! to die, and nothing can appear: new versions come later in the feed, and a
//! new `ttl` ends after now. Whether an item is dead is judged once more by
//! the commit, so a write that came first wins.
//!
//! What an item has in the index is derived from its text, so the items are read
//! too, as many as a unit takes. Where there is a log, the unit tells each end in it, and
//! what it is to tell is in the item.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use dayfly_model::meter::Units;
use dayfly_model::ttl::{ContainerTtl, Life, Policy};
use dayfly_model::{Timestamp, charge};
use dayfly_storage::tally::Change;
use dayfly_storage::{
    Batch, Bucket, Direction, Draft, Error, Mark, Pair, Plan, Result, Room, Second, Snapshot,
    Stamp, Urgency, View,
};

use super::pacer::Pace;
use crate::deleted::DeletedPartition;
use crate::head::{PartitionDeletes, State};
use crate::index::{Index, Indexed, Policies, Runs, Source};
use crate::keys::{self, Partition};
use crate::liveness::{Ending, Liveness};
use crate::lives::Tallied;
use crate::log::{self, Ended, Telling};
use crate::record::{self, FeedRow, Record};

/// How many feed rows are read at once.
const ROWS: usize = 64;
/// How often one look reads that many, if none of them is due.
const STRIDES: usize = 64;

/// How many items are read at first, when nobody knows what the entries of such items weigh.
const FIRST_ITEMS: usize = 8;
/// How many items are read at once after that.
const ITEMS: usize = 64;

/// How many rows an item has besides its entries in the index, roughly.
const ROWS_OF_ITEM: usize = 5;

/// How far the purge of a bucket has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The last feed version looked at.
    feed: u64,
    /// The last queue row looked at.
    due: Option<Vec<u8>>,
}

impl Cursor {
    fn encode(&self) -> Bytes {
        let mut bytes = Vec::new();
        bytes.put_u64(self.feed);
        bytes.put_slice(self.due.as_deref().unwrap_or_default());
        bytes.into()
    }

    fn decode(mut bytes: Bytes) -> Cursor {
        let feed = bytes.try_get_u64().unwrap_or_default();
        Cursor { feed, due: (!bytes.is_empty()).then(|| bytes.to_vec()) }
    }
}

/// The last version in the feed that was looked at: below it nobody lives by the default.
pub(crate) fn passed(snapshot: &dyn Snapshot, bucket: Bucket) -> Result<u64> {
    let stored = snapshot.get(bucket, &keys::purge_cursor())?;
    Ok(stored.map(Cursor::decode).unwrap_or_default().feed)
}

/// What a look at a bucket found.
pub(super) enum Look {
    /// The bucket is no container's.
    Gone,
    /// This is due, or at least stepped over; `more` is due beside it.
    Due {
        /// What to commit.
        unit: Unit,
        /// Whether more is due than the unit takes.
        more: bool,
        /// When something is due after that, if `more` is not.
        next: Option<Second>,
    },
    /// Nothing is due before this second; `None`: nothing is to come.
    Nothing(Option<Second>),
}

/// One commit of the purge.
pub(super) struct Unit {
    index: Arc<Index>,
    bucket: Bucket,
    candidates: Arc<Vec<Candidate>>,
    /// The snapshot they were found in.
    mark: Mark,
    from: Cursor,
    to: Cursor,
    /// The partition that was deleted, if they are of one.
    sweep: Option<Sweep>,
    bytes_max: usize,
    /// What it may cost.
    charge_max: Option<Units>,
    urgency: Urgency,
}

/// A partition whose items were deleted, and go now.
struct Sweep {
    deleted: DeletedPartition,
    /// Whether nothing is left of it behind the candidates.
    is_last: bool,
}

/// An item that is due, and where in its queue it stands.
struct Candidate {
    row: FeedRow,
    place: Place,
    /// What it has in the index is derived from this, if there is an index.
    source: Option<Source>,
    /// Its canonical partition key, if it was read.
    partition_key: Option<Vec<u8>>,
    /// About how many bytes its burial is about.
    weight: u64,
    /// What deleting it would cost.
    charge: Units,
}

impl Candidate {
    fn new(row: FeedRow, place: Place) -> Candidate {
        let (weight, charge) = (row.bytes, charge_of(&row, 0));
        Candidate { weight, charge, row, place, source: None, partition_key: None }
    }

    /// Takes what a burial needs of the item.
    fn read(&mut self, record: &Record) {
        self.source = Some(Source::of(record));
        self.partition_key = Some(record.partition_key().to_vec());
    }

    /// Its canonical partition key.
    fn partition_key(&self, view: &View<'_>) -> Result<Vec<u8>> {
        match &self.partition_key {
            Some(key) => Ok(key.clone()),
            None => record_of(&self.row, view.get(&keys::item(self.row.docno))?)
                .map(|record| record.partition_key().to_vec()),
        }
    }

    /// What it has in the index.
    fn indexed(&self, view: &View<'_>, policies: &Policies, done: u64) -> Result<Indexed> {
        let recipe = policies.recipe_of(self.row.version, done);
        match &self.source {
            _ if !recipe.rules().is_on() => Ok(Indexed::default()),
            Some(source) => source.by(recipe, self.row.ts),
            None => {
                let record = record_of(&self.row, view.get(&keys::item(self.row.docno))?)?;
                Source::of(&record).by(recipe, self.row.ts)
            }
        }
    }
}

enum Place {
    Feed(u64),
    Due(Vec<u8>),
    /// In the order of a partition that was deleted.
    Deleted,
}

/// What a unit did.
pub(super) struct Buried {
    /// How many expired items it removed.
    pub(super) items: u64,
    /// What deleting them would have cost.
    pub(super) charge: Units,
    /// How long they were dead, in seconds, where that is known.
    pub(super) lags: Vec<u64>,
    /// The commit's time.
    pub(super) at: Second,
    /// Whether it stopped early, because the items are large.
    pub(super) cut: bool,
    /// Where in the index it removed much.
    pub(super) runs: Runs,
}

/// Where a look begins, and where it ends.
#[derive(Clone, Debug, Default)]
pub(super) struct LookBounds {
    /// It begins behind this unit's end, which is not committed yet; else where
    /// the last one ended that was.
    pub(super) behind: Option<Cursor>,
    /// What was due at this time, and not what is due now.
    pub(super) until: Option<Timestamp>,
    /// What the unit may cost; one item is taken in any case.
    pub(super) charge_max: Option<Units>,
}

/// What is due in both queues of `bucket`.
///
/// The two queues share a unit. If one has little, the other gets the rest; if both have
/// more than enough, each gets half, and they are taken in turns: a unit that the commit
/// cuts short, because its items are large, has then come forward in both, and none
/// starves. When nothing is left that is due, the same look says when the next death
/// is, so that the bucket need not be looked at before. Cursors that have moved are
/// committed also without a burial: what was stepped over is not to be read again.
pub(super) fn look(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    pace: Pace,
    bounds: LookBounds,
    index: &Arc<Index>,
) -> Result<Look> {
    let head = snapshot.head(bucket);
    let state = State::of(&head);
    if head.lsn == 0 || state.deleted {
        return Ok(Look::Gone);
    }
    let (now, charge_max) = (Timestamp(snapshot.now()), bounds.charge_max);
    let pace = pace.within(charge_max);
    let cuts = state.policy.cuts(bounds.until.map_or(now, |until| until.min(now)));
    let is_first = bounds.behind.is_none();
    let from = if let Some(behind) = bounds.behind {
        behind
    } else {
        let stored = snapshot.get(bucket, &keys::purge_cursor())?;
        stored.map(Cursor::decode).unwrap_or_default()
    };
    if state.partitions.pending > 0 && is_first {
        return sweep(snapshot, bucket, (pace, charge_max), from, index);
    }
    let mut to = from.clone();

    // When both queues have more than enough, each gets half.
    let due = keys::due_between(from.due.as_deref(), cuts.explicit);
    let mut due = snapshot.scan(bucket, &due, Direction::Forward, pace.items)?;
    let mut more = due.len() == pace.items;
    let feed_max = pace.items - due.len().min(pace.items / 2);
    let feed = walk_feed(snapshot, bucket, cuts.inherit, feed_max, &mut to.feed)?;
    let due_max = pace.items - feed.candidates.len();
    more |= feed.more || due.len() > due_max;
    due.truncate(due_max);

    let mut candidates = Vec::with_capacity(feed.candidates.len() + due.len());
    let mut from_feed = feed.candidates.into_iter();
    let rows = rows_of_queue(snapshot, bucket, &due)?;
    for ((key, _), row) in due.into_iter().zip(rows) {
        to.due = Some(key.to_vec());
        candidates.extend(from_feed.next());
        candidates.extend(row.map(|row| Candidate::new(row, Place::Due(key.to_vec()))));
    }
    candidates.extend(from_feed);

    let policy = state.policy.at(now);
    let next = if more { None } else { next_after(snapshot, bucket, &to, policy)? };
    if from == to {
        return Ok(Look::Nothing(next));
    }
    let (bytes_max, urgency) = (pace.bytes(), pace.urgency);
    read_items(snapshot, bucket, index, (bytes_max, charge_max), &mut candidates)?;
    let (candidates, mark) = (Arc::new(candidates), snapshot.mark());
    let index = Arc::clone(index);
    let sweep = None;
    let unit =
        Unit { index, bucket, candidates, mark, from, to, sweep, bytes_max, charge_max, urgency };
    Ok(Look::Due { unit, more, next })
}

/// Some items of the first partition that was deleted. They go before all others, since
/// whoever counts what is alive has to count them as long as they are there.
fn sweep(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    (pace, charge_max): (Pace, Option<Units>),
    from: Cursor,
    index: &Arc<Index>,
) -> Result<Look> {
    let first = snapshot.scan(bucket, &keys::deleted_partitions(), Direction::Forward, 1)?;
    let Some((key, row)) = first.first() else {
        return Err(Error::Corrupt("a head with deleted partitions that are not there".to_owned()));
    };
    let deleted = DeletedPartition::decode(key, row)?;
    let range = keys::in_partition(&deleted.partition, deleted.done, deleted.before);
    let rows = snapshot.scan(bucket, &range, Direction::Forward, pace.items)?;
    let is_last = rows.len() < pace.items;
    let numbers: Vec<u64> = rows.iter().filter_map(|(key, _)| keys::entry_owner(key)).collect();
    let records = record::named(snapshot, bucket, &numbers)?;
    let partition = Partition::of_bytes(&deleted.partition);
    let candidate = |record: &Record| {
        let row = FeedRow::of(record, &partition.item(record.id()));
        let mut candidate = Candidate::new(row, Place::Deleted);
        candidate.read(record);
        candidate
    };
    let mut candidates: Vec<Candidate> = records.iter().map(candidate).collect();
    let (bytes_max, urgency) = (pace.bytes(), pace.urgency);
    read_items(snapshot, bucket, index, (bytes_max, charge_max), &mut candidates)?;
    let unit = Unit {
        index: Arc::clone(index),
        bucket,
        candidates: Arc::new(candidates),
        mark: snapshot.mark(),
        to: from.clone(),
        from,
        sweep: Some(Sweep { deleted, is_last }),
        bytes_max,
        charge_max,
        urgency,
    };
    Ok(Look::Due { unit, more: true, next: None })
}

/// The rows in the feed that these rows of the queue lead to, as far as they are there.
fn rows_of_queue(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    due: &[Pair],
) -> Result<Vec<Option<FeedRow>>> {
    let feed = |key: &[u8]| keys::due_version(key).map(keys::feed).ok_or_else(broken);
    let keys = due.iter().map(|(key, _)| feed(key)).collect::<Result<Vec<_>>>()?;
    let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let rows = snapshot.hints().get_many_once(bucket, &asked)?;
    let read = |(key, row): (&Vec<u8>, Option<Bytes>)| {
        row.map(|row| FeedRow::decode(key, &row)).transpose()
    };
    keys.iter().zip(rows).map(read).collect()
}

/// Reads the items that a unit takes, many at once, and weighs them.
///
/// What an item weighs is known only when it was read. So as many are read as should fit,
/// if their entries are as heavy as those of the items before them.
fn read_items(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    index: &Index,
    (bytes_max, charge_max): (usize, Option<Units>),
    candidates: &mut [Candidate],
) -> Result<()> {
    let get = |key: &[u8]| snapshot.get(bucket, key);
    let policies = index.policies(bucket, &get)?;
    let done = policies.done(&get)?;
    let recipe = |row: &FeedRow| policies.recipe_of(row.version, done);
    let has_log = log::is_on(&State::of(&snapshot.head(bucket)));
    let is_unread = |candidate: &&mut Candidate| {
        candidate.source.is_none() && (has_log || recipe(&candidate.row).rules().is_on())
    };
    let mut weighed = Weighed { bytes_max: bytes_max as u64, ..Weighed::default() };
    let mut rest = &mut *candidates;
    while !weighed.is_full() && !rest.is_empty() {
        let count = weighed.fitting(rest);
        let (chunk, behind) = std::mem::take(&mut rest).split_at_mut(count);
        rest = behind;
        read_sources(snapshot, bucket, chunk.iter_mut().filter(is_unread).collect())?;
        for candidate in chunk {
            if weighed.is_full() {
                break;
            }
            if let Some(source) = &candidate.source {
                let indexed = source.by(recipe(&candidate.row), candidate.row.ts)?;
                candidate.weight += indexed.weight();
                candidate.charge = charge_of(&candidate.row, indexed.charged());
            }
            weighed.add(candidate);
        }
    }
    // What the unit does not take is not held until it is committed.
    let taken = taken(candidates, bytes_max, charge_max);
    candidates.iter_mut().skip(taken).for_each(|candidate| candidate.source = None);
    Ok(())
}

/// How many of the candidates go into the commit: as many as weigh what it may, and cost no
/// more than it may, but for the first.
fn taken(candidates: &[Candidate], bytes_max: usize, charge_max: Option<Units>) -> usize {
    let (mut bytes, mut charge) = (0, Units::ZERO);
    let fits = |candidate: &&Candidate| {
        let is_first = charge == Units::ZERO;
        charge += candidate.charge;
        let is_paid = is_first || charge_max.is_none_or(|most| charge <= most);
        let fits = bytes < bytes_max as u64 && is_paid;
        bytes += candidate.weight;
        fits
    };
    candidates.iter().take_while(fits).count()
}

/// Reads the texts of some items at once.
fn read_sources(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    candidates: Vec<&mut Candidate>,
) -> Result<()> {
    let keys: Vec<Vec<u8>> =
        candidates.iter().map(|candidate| keys::item(candidate.row.docno)).collect();
    let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let found = snapshot.hints().get_many_once(bucket, &asked)?;
    for (candidate, record) in candidates.into_iter().zip(found) {
        candidate.read(&record_of(&candidate.row, record)?);
    }
    Ok(())
}

/// How much of a unit is weighed.
#[derive(Default)]
struct Weighed {
    /// How much it may weigh.
    bytes_max: u64,
    /// What the items weigh, with their entries.
    bytes: u64,
    /// What they weigh without.
    items_bytes: u64,
}

impl Weighed {
    fn add(&mut self, candidate: &Candidate) {
        self.items_bytes += candidate.row.bytes;
        self.bytes += candidate.weight;
    }

    fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max
    }

    /// How many of the next candidates should fit; one does in any case.
    fn fitting(&self, next: &[Candidate]) -> usize {
        let most = if self.bytes == 0 { FIRST_ITEMS } else { ITEMS };
        let mut bytes = self.bytes;
        let fits = |candidate: &&Candidate| {
            let fits = bytes < self.bytes_max;
            bytes += candidate.row.bytes * self.bytes.max(1) / self.items_bytes.max(1);
            fits
        };
        next.iter().take(most).take_while(fits).count()
    }
}

/// The item that a feed row is about.
fn record_of(row: &FeedRow, record: Option<Bytes>) -> Result<Record> {
    let record = record.map(Record::decode).transpose()?;
    let record = record.filter(|record| record.version == row.version);
    record.ok_or_else(|| Error::Corrupt("a feed row without its item".to_owned()))
}

/// What a walk over the feed found.
#[derive(Default)]
struct FeedWalk {
    candidates: Vec<Candidate>,
    more: bool,
}

/// Takes up to `items_max` items whose time is up from the feed, and moves the
/// cursor `at`. Rows of items that do not live by the default are stepped over,
/// many of them in one look.
///
/// The feed is in the order of `_ts`, so the first row after the cut ends the walk. Rows
/// that are stepped over cost a read and bring nothing: in a bucket of items that never
/// expire a look would move by a few rows, and the purge would come back again and again.
/// So as long as nothing was found, it goes on in longer strides; but not for ever, since
/// other buckets wait for their turn. `more` says that there may be due rows behind `at`.
fn walk_feed(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    cut: Timestamp,
    items_max: usize,
    at: &mut u64,
) -> Result<FeedWalk> {
    let mut walk = FeedWalk::default();
    if cut == Timestamp(0) {
        return Ok(walk);
    }
    // One row more than is taken, to see whether it is due too.
    let mut rows_max = items_max + 1;
    for _ in 0..STRIDES {
        let range = keys::feed_after(*at);
        let rows = snapshot.scan(bucket, &range, Direction::Forward, rows_max)?;
        walk.more = rows.len() == rows_max;
        for (key, value) in rows {
            let row = FeedRow::decode(&key, &value)?;
            if row.ts > cut {
                walk.more = false;
                break;
            }
            if walk.candidates.len() == items_max {
                walk.more = true;
                break;
            }
            *at = row.version;
            if inherits(row.life) {
                walk.candidates.push(Candidate::new(row, Place::Feed(*at)));
            }
        }
        if !walk.more || !walk.candidates.is_empty() {
            break;
        }
        rows_max = ROWS.max(items_max + 1);
    }
    Ok(walk)
}

/// When something is due again, with the cursors at `at` and nothing due now.
///
/// Looks a little further than the first row of the feed, so that an item
/// which does not live by the default causes no look of its own.
fn next_after(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    at: &Cursor,
    policy: Policy,
) -> Result<Option<Second>> {
    // Another default to come is to be looked at when it has come.
    let pending = policy.pending.map(|pending| pending.at.0);
    if !policy.default.is_on() {
        return Ok(pending);
    }
    let due = keys::due_between(at.due.as_deref(), Timestamp(Second::MAX));
    let due = snapshot.scan(bucket, &due, Direction::Forward, 1)?;
    let explicit = due.first().and_then(|(key, _)| keys::due_second(key));
    let ContainerTtl::Default(default) = policy.default else {
        return Ok([explicit, pending].into_iter().flatten().min());
    };

    let feed = keys::feed_after(at.feed);
    let rows = snapshot.scan(bucket, &feed, Direction::Forward, ROWS)?;
    let is_all = rows.len() < ROWS;
    let mut inherit = None;
    for (key, value) in rows {
        let row = FeedRow::decode(&key, &value)?;
        inherit = Some(row.ts);
        if inherits(row.life) {
            break;
        }
        if is_all {
            inherit = None;
        }
    }
    let inherit = inherit.map(|ts| ts.plus(default).0);
    Ok([explicit, inherit, pending].into_iter().flatten().min())
}

fn inherits(life: Life) -> bool {
    matches!(life, Life::Inherit(_) | Life::Opaque(_))
}

fn broken() -> Error {
    Error::Corrupt("a queue row".to_owned())
}

impl Unit {
    /// Up to where the unit goes that takes only the first `taken` candidates.
    fn to(&self, taken: usize) -> Cursor {
        if taken == self.candidates.len() {
            return self.to.clone();
        }
        // The first of a queue that is left says that its end is not reached.
        let left = || self.candidates.iter().skip(taken).map(|candidate| &candidate.place);
        let mut to = self.to.clone();
        if left().any(|place| matches!(place, Place::Feed(_))) {
            to.feed = self.from.feed;
        }
        if left().any(|place| matches!(place, Place::Due(_))) {
            to.due.clone_from(&self.from.due);
        }
        for candidate in self.candidates.iter().take(taken) {
            match &candidate.place {
                Place::Feed(version) => to.feed = to.feed.max(*version),
                Place::Due(key) => to.due = to.due.max(Some(key.clone())),
                Place::Deleted => {}
            }
        }
        to
    }
}

impl Unit {
    /// How far the cursors come, if it takes all it has; none if they stay.
    pub(super) fn end(&self) -> Option<Cursor> {
        self.sweep.is_none().then(|| self.to.clone())
    }

    /// The partition that goes, as the view has it.
    fn deleted(&self, view: &View<'_>) -> Result<Option<DeletedPartition>> {
        let Some(Sweep { deleted, .. }) = &self.sweep else { return Ok(None) };
        let key = Bytes::from(keys::deleted_partition(&deleted.partition));
        let row = view.get(&key)?.ok_or(Error::Retry)?;
        DeletedPartition::decode(&key, &row).map(Some)
    }

    /// What becomes of the partition's row if the first `taken` candidates go. It goes when
    /// nothing is left, and was not deleted again meanwhile.
    fn swept(&self, deleted: Option<DeletedPartition>, taken: usize) -> Option<Swept> {
        let (sweep, now) = (self.sweep.as_ref()?, deleted?);
        let is_end = sweep.is_last && taken == self.candidates.len();
        let last = taken.checked_sub(1).and_then(|last| self.candidates.get(last));
        let done = match last {
            _ if is_end => sweep.deleted.before,
            Some(last) => last.row.docno + 1,
            None => now.done,
        };
        Some(if is_end && now.before == sweep.deleted.before {
            Swept::Gone(now)
        } else {
            Swept::Left(DeletedPartition { done, ..now })
        })
    }
}

impl Unit {
    /// Who is dead, where also how matters: what came first is told.
    fn liveness(
        &self,
        view: &View<'_>,
        state: &State,
        swept: Option<DeletedPartition>,
    ) -> Result<Liveness> {
        let mut deleted: Vec<DeletedPartition> = swept.into_iter().collect();
        if deleted.is_empty() && log::is_on(state) && state.partitions.pending > 0 {
            let partitions = self.candidates.iter().map(|candidate| candidate.row.partition());
            let partitions: HashSet<Vec<u8>> =
                partitions.map(|partition| keys::deleted_partition(partition.bytes())).collect();
            for key in partitions.into_iter().map(Bytes::from) {
                let row = view.get(&key)?;
                let row = row.map(|row| DeletedPartition::decode(&key, &row)).transpose()?;
                deleted.extend(row);
            }
        }
        Ok(Liveness::by(state.policy, Timestamp(view.now())).without(deleted))
    }
}

/// An item that a unit buries.
struct DeadCandidate {
    /// Which of the candidates it is.
    place: usize,
    indexed: Indexed,
    /// What is told of it, if anything is.
    ended: Option<(Ending, Vec<u8>)>,
}

impl DeadCandidate {
    fn bury(&self, row: &FeedRow, batch: &mut Batch, gone: &mut Tallied, told: &mut Telling) {
        let ended = self.ended.as_ref();
        let ended = ended.map(|(end, key)| Ended { end: *end, partition_key: key });
        row.bury(batch, gone, &self.indexed, ended.as_ref(), told);
    }
}

/// What becomes of the row of a deleted partition.
enum Swept {
    Gone(DeletedPartition),
    Left(DeletedPartition),
}

impl Swept {
    fn write(&self, state: State, batch: &mut Batch) {
        let (Swept::Gone(deleted) | Swept::Left(deleted)) = self;
        let key = keys::deleted_partition(&deleted.partition);
        match self {
            Swept::Left(deleted) => batch.put(key, deleted.encode()),
            Swept::Gone(_) => {
                batch.delete(key);
                let pending = state.partitions.pending.saturating_sub(1);
                let partitions = PartitionDeletes { pending, ..state.partitions };
                batch.set_state(State { partitions, ..state }.encode());
            }
        }
    }
}

impl Plan for Unit {
    type Done = Buried;
    type Refusal = Error;

    fn draft(&self, view: &View<'_>) -> Result<Draft<Buried>> {
        let state = State::of(view.head());
        if view.head().lsn == 0 || state.deleted {
            return Err(Error::Retry);
        }
        let deleted = self.deleted(view)?;
        let liveness = self.liveness(view, &state, deleted.clone())?;
        let has_log = log::is_on(&state);
        let get = |key: &[u8]| view.get(key);
        let policies = self.index.policies(self.bucket, &get)?;
        let done = policies.done(&get)?;
        let mut dead = Vec::new();
        let taken = taken(&self.candidates, self.bytes_max, self.charge_max);
        let candidates = || self.candidates.iter().take(taken);
        let versions: Vec<u64> = candidates().map(|candidate| candidate.row.version).collect();
        let newest = record::are_newest(view, self.mark, &versions)?;
        for (place, (candidate, is_newest)) in candidates().zip(newest).enumerate() {
            if is_newest && liveness.is_dead(&candidate.row) {
                let indexed = candidate.indexed(view, &policies, done)?;
                let end = has_log.then(|| liveness.end_of(&candidate.row));
                let ended = end.map(|end| Ok((end, candidate.partition_key(view)?))).transpose()?;
                dead.push(DeadCandidate { place, indexed, ended });
            }
        }
        let (to, cut) = (self.to(taken), taken < self.candidates.len());
        let swept = self.swept(deleted, taken);
        let mut runs = Runs::default();
        for corpse in &dead {
            if let Some(candidate) = self.candidates.get(corpse.place) {
                runs.add(&candidate.row, &corpse.indexed);
            }
        }
        let rows = dead.iter().map(|corpse| corpse.indexed.entries() + ROWS_OF_ITEM).sum();

        let candidates = Arc::clone(&self.candidates);
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            let mut gone = Tallied::default();
            let mut told = Telling::by(stamp, has_log);
            let buried = || {
                dead.iter().filter_map(|corpse| Some((&candidates.get(corpse.place)?.row, corpse)))
            };
            for (row, corpse) in buried() {
                corpse.bury(row, batch, &mut gone, &mut told);
            }
            let rows = || buried().map(|(row, _)| row);
            gone.write(batch, Change::Less);
            match &swept {
                Some(swept) => swept.write(state, batch),
                None => batch.put(keys::purge_cursor(), to.encode()),
            }
            Buried {
                items: rows().filter(|row| liveness.has_expired(*row)).count() as u64,
                charge: buried().map(|(row, of)| charge_of(row, of.indexed.charged())).sum(),
                lags: rows()
                    .filter_map(|row| state.policy.died_at(row.life, Timestamp(stamp.ts)))
                    .map(|died| stamp.ts.saturating_sub(died.0))
                    .collect(),
                at: stamp.ts,
                cut,
                runs,
            }
        })
        .of_rows(rows))
    }

    fn room(&self) -> Room {
        Room::Frees
    }

    fn urgency(&self) -> Urgency {
        self.urgency
    }
}

/// What deleting an item with so many terms in the index would cost.
fn charge_of(row: &FeedRow, terms: usize) -> Units {
    charge::of_delete(usize::try_from(row.bytes).unwrap_or(usize::MAX), terms).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_items_are_read_at_once_than_should_fit() {
        let row = FeedRow { bytes: 10, ..FeedRow::decode(&keys::feed(1), &[0; 32]).unwrap() };
        let candidate =
            |weight| Candidate { weight, ..Candidate::new(row.clone(), Place::Feed(1)) };
        let rest: Vec<Candidate> = (0..100).map(|_| candidate(10)).collect();
        let mut weighed = Weighed { bytes_max: 1000, ..Weighed::default() };
        assert_eq!(weighed.fitting(&rest), FIRST_ITEMS);
        assert_eq!(weighed.fitting(&rest[..3]), 3);
        // Each has entries of four times its bytes.
        (0..8).for_each(|_| weighed.add(&candidate(50)));
        assert_eq!(weighed.fitting(&rest), 12);
        (0..11).for_each(|_| weighed.add(&candidate(50)));
        assert_eq!((weighed.fitting(&rest), weighed.is_full()), (1, false));
        weighed.add(&candidate(50));
        assert!(weighed.is_full());
        // Light ones come in steps, however many would fit.
        let mut light = Weighed { bytes_max: 100_000, ..Weighed::default() };
        light.add(&candidate(10));
        assert_eq!(light.fitting(&rest), ITEMS);
    }

    #[test]
    fn a_unit_that_stops_early_leaves_its_cursors_before_what_is_left() {
        let feed = |version| Place::Feed(version);
        let due = |key: &[u8]| Place::Due(key.to_vec());
        let places = [feed(5), due(b"x1"), feed(6), due(b"x2"), feed(7)];
        let row = FeedRow::decode(&keys::feed(1), &[0; 32]).unwrap();
        let candidates = places.map(|place| Candidate::new(row.clone(), place));
        let unit = Unit {
            index: Arc::default(),
            bucket: Bucket(256),
            candidates: Arc::new(candidates.into()),
            mark: Mark::default(),
            from: Cursor { feed: 2, due: None },
            to: Cursor { feed: 9, due: Some(b"x2".to_vec()) },
            sweep: None,
            bytes_max: 1,
            charge_max: None,
            urgency: Urgency::Rides,
        };
        let cursor = |feed, due: Option<&[u8]>| Cursor { feed, due: due.map(<[u8]>::to_vec) };
        assert_eq!(unit.to(0), cursor(2, None));
        assert_eq!(unit.to(1), cursor(5, None));
        assert_eq!(unit.to(3), cursor(6, Some(b"x1")));
        assert_eq!(unit.to(4), cursor(6, Some(b"x2")));
        assert_eq!(unit.to(5), cursor(9, Some(b"x2")));
    }
}
