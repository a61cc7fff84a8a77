//! What is due in a bucket, from the cursors of the purge on, and when something will be.

use std::sync::Arc;

use bytes::Bytes;
use dayfly_model::Timestamp;
use dayfly_model::meter::Units;
use dayfly_model::ttl::{ContainerTtl, Life, Policy};
use dayfly_storage::{Bucket, Direction, Error, Pair, Result, Second, Snapshot};

use super::candidates::{Candidate, Place, read_items};
use super::pacer::Pace;
use super::unit::{Cursor, Sweep, Unit};
use crate::deleted::DeletedPartition;
use crate::head::State;
use crate::index::Index;
use crate::keys::{self, Partition};
use crate::log;
use crate::record::{self, FeedRow, Record};

/// How many feed rows are read at once.
const ROWS: usize = 64;
/// How often one look reads that many, if none of them is due.
const STRIDES: usize = 64;

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
    /// The same for one of a deleted partition; of nothing, there is none now.
    pub(super) sweep_max: Option<Units>,
    /// The last unit of the bucket was one of a deleted partition.
    pub(super) after_sweep: bool,
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

/// The last version in the feed that was looked at: below it nobody lives by the default.
pub(crate) fn passed(snapshot: &dyn Snapshot, bucket: Bucket) -> Result<u64> {
    let stored = snapshot.get(bucket, &keys::purge_cursor())?;
    Ok(stored.map(Cursor::decode).unwrap_or_default().feed)
}

/// What is due in both queues of `bucket`.
///
/// The two queues share a unit. If one has little, the other gets the rest; if both have
/// more than enough, each gets half, and they are taken in turns: a unit that the commit
/// cuts short, because its items are large, has then come forward in both, and none
/// starves. When nothing is left that is due, the same look says when the next death
/// is, so that the bucket need not be looked at before. Cursors that have moved are
/// committed also without a burial: what was stepped over is not to be read again.
///
/// Items of a deleted partition go before all that, but while there is nothing to spend on
/// them they hold up nobody; then there is another look in the next second. Where there is a
/// log, somebody waits to be told of what expires: there a unit of each is taken in turns.
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
    let has_deleted = state.partitions.pending > 0;
    let may_sweep = has_deleted && bounds.sweep_max.is_none_or(Units::is_positive);
    let sweep = |from| {
        let pace = pace.within(bounds.sweep_max);
        sweep(snapshot, bucket, (pace, bounds.sweep_max), from, index)
    };
    if may_sweep && is_first && !(bounds.after_sweep && log::is_on(&state)) {
        return sweep(from);
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

    if from == to && may_sweep && is_first {
        return sweep(from);
    }
    more |= may_sweep;
    let policy = state.policy.at(now);
    let again = (has_deleted && is_first && !may_sweep).then(|| now.plus(1).0);
    let next = if more { None } else { next_after(snapshot, bucket, &to, policy)? };
    let next = next.into_iter().chain(again).min();
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
