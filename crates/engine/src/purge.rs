//! The purge removes what nobody can see any more: expired items, and the
//! buckets of deleted containers. It is never observable.
//!
//! It walks two queues in the order of death: the feed, where items that live
//! by the container's default stand in the order of their `_ts`, and the queue
//! of items with a `ttl`. Cursors say how far it has come in each; they are
//! committed with the deletes. Below a cursor nothing is left to die, and
//! nothing can appear: new versions come later in the feed, and a new `ttl`
//! ends after now. Whether an item is dead is judged once more by the commit,
//! so a write that came first wins.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::{Buf, BufMut, Bytes};
use dayfly_model::ttl::{Cuts, Life};
use dayfly_model::{Result, Timestamp};
use dayfly_storage::{
    Batch, Bucket, Direction, Draft, Error, Pair, Plan, Room, Snapshot, View, commit,
};

use crate::Shared;
use crate::clerk::{CatalogPlan, Clerk};
use crate::head::State;
use crate::items::Seen;
use crate::keys::{self, ItemKey};
use crate::record::FeedRow;
use crate::reply::{Reply, Success, storage_failed};

/// How many queue rows one commit looks at.
const UNIT: usize = 64;
/// How many times [`UNIT`] rows one commit steps over, if none of them is due.
const STRIDES: usize = 64;
/// How many keys of a deleted container are removed at once.
const CLEAR_UNIT: usize = 256;

/// How far the purge of a bucket has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cursor {
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

/// One commit of the purge.
struct Unit {
    candidates: Vec<ItemKey>,
    from: Cursor,
    to: Cursor,
}

/// What one unit did.
enum Step {
    /// Nothing is due.
    Idle,
    /// It removed this many items.
    Removed(usize),
}

/// Where the purge stands between two passes.
#[derive(Default)]
pub(crate) struct Round {
    /// Which bucket comes first in the next pass, so that each has its turn.
    first: AtomicUsize,
    /// Which bucket is being cleared, and from where on.
    clearing: Mutex<Option<(Bucket, Vec<u8>)>>,
}

/// Removes what is due, with at most `units` writes. Returns how many items
/// went. What fails in one bucket does not hold up the others; the first
/// failure is the answer.
pub(crate) fn pass(shared: &Shared, mut units: usize) -> Result<usize> {
    let mut failure = shared.finish_installs().err();
    let mut removed = 0;
    let mut buckets = shared.store.buckets();
    buckets.retain(|bucket| keys::container_of(*bucket).is_some());
    if !buckets.is_empty() {
        let first = shared.round.first.fetch_add(1, Ordering::Relaxed) % buckets.len();
        buckets.rotate_left(first);
    }
    for bucket in buckets {
        while units > 0 {
            match step(shared, bucket) {
                Ok(Step::Idle) => break,
                Ok(Step::Removed(count)) => removed += count,
                Err(error) => {
                    failure.get_or_insert_with(|| storage_failed(error));
                    break;
                }
            }
            units -= 1;
        }
    }
    clear_condemned(shared, units)?;
    failure.map_or(Ok(removed), Err)
}

fn step(shared: &Shared, bucket: Bucket) -> dayfly_storage::Result<Step> {
    let snapshot = shared.store.snapshot()?;
    let unit = gather(&*snapshot, bucket)?;
    if unit.from == unit.to {
        return Ok(Step::Idle);
    }
    match commit(&*shared.store, bucket, unit).wait() {
        Ok(count) => {
            shared.gone.purged(bucket, count);
            Ok(Step::Removed(count))
        }
        Err(error) => Err(error),
    }
}

/// What is due in both queues, from the cursors on.
fn gather(snapshot: &dyn Snapshot, bucket: Bucket) -> dayfly_storage::Result<Unit> {
    let state = State::of(&snapshot.head(bucket));
    let cuts = state.policy.cuts(Timestamp(snapshot.now()));
    let nothing = Timestamp(0);
    let stored = if state.deleted || (cuts.inherit == nothing && cuts.explicit == nothing) {
        None
    } else {
        Some(snapshot.get(bucket, &keys::purge_cursor())?)
    };
    let from = stored.clone().flatten().map(Cursor::decode).unwrap_or_default();
    let mut unit = Unit { candidates: Vec::new(), to: from.clone(), from };
    if stored.is_none() {
        return Ok(unit);
    }

    // Rows of items that do not live by the default are stepped over, many of
    // them in one unit.
    for _ in 0..STRIDES {
        let feed = keys::feed_after(unit.to.feed);
        let rows = snapshot.scan(bucket, &feed, Direction::Forward, UNIT)?;
        let is_last = rows.len() < UNIT;
        if unit.take_feed(rows, cuts)? || is_last || !unit.candidates.is_empty() {
            break;
        }
    }
    let due = keys::due_between(unit.from.due.as_deref(), cuts.explicit);
    for (key, value) in snapshot.scan(bucket, &due, Direction::Forward, UNIT)? {
        unit.candidates.push(ItemKey::of_tail(&value));
        unit.to.due = Some(key.to_vec());
    }
    Ok(unit)
}

impl Unit {
    /// Takes in rows of the feed. `true`: the rest is not due.
    fn take_feed(&mut self, rows: Vec<Pair>, cuts: Cuts) -> dayfly_storage::Result<bool> {
        for (key, value) in rows {
            let row = FeedRow::decode(&value)?;
            if row.ts > cuts.inherit {
                return Ok(true);
            }
            self.to.feed = keys::feed_version(&key).ok_or_else(broken)?;
            if matches!(row.life, Life::Inherit(_) | Life::Opaque(_)) {
                self.candidates.push(row.key);
            }
        }
        Ok(false)
    }
}

fn broken() -> Error {
    Error::Corrupt("a queue row".to_owned())
}

impl Plan for Unit {
    type Done = usize;
    type Refusal = Error;

    fn draft(&self, view: &View<'_>) -> dayfly_storage::Result<Draft<usize>> {
        let cuts = State::of(view.head()).policy.cuts(Timestamp(view.now()));
        let mut dead = Vec::new();
        for key in &self.candidates {
            let Some(bytes) = view.get(key.record())? else { continue };
            if let Seen::Dead(record) = Seen::of(bytes, cuts)? {
                dead.push((record, key.clone()));
            }
        }
        let to = self.to.clone();
        Ok(Draft::new(move |_, batch: &mut Batch| {
            for (record, key) in &dead {
                record.bury(batch, &key.partition(record.id()), key);
            }
            batch.put(keys::purge_cursor(), to.encode());
            dead.len()
        }))
    }

    fn room(&self) -> Room {
        Room::Frees
    }
}

/// Empties the buckets of deleted containers, and forgets them, with at most
/// `units` writes.
fn clear_condemned(shared: &Shared, mut units: usize) -> Result<()> {
    let rows = {
        let snapshot = shared.store.snapshot().map_err(storage_failed)?;
        snapshot
            .scan(keys::CATALOG, &keys::all_condemned(), Direction::Forward, UNIT)
            .map_err(storage_failed)?
    };
    for bucket in rows.iter().filter_map(|(key, _)| keys::condemned_bucket(key)) {
        Clerk::new(shared).close_buckets(&[bucket]);
        let snapshot = shared.store.snapshot().map_err(storage_failed)?;
        let head = snapshot.head(bucket);
        drop(snapshot);
        if head.lsn > 0 && !State::of(&head).deleted {
            continue;
        }
        if !clear_some(shared, bucket, &mut units).map_err(storage_failed)? {
            return Ok(());
        }
        let reply = Clerk::new(shared).commit(CatalogPlan::frees(move |_: &View<'_>| {
            Ok(Draft::new(move |stamp: dayfly_storage::Stamp, batch: &mut Batch| {
                batch.delete(keys::condemned(bucket));
                Reply::ok(Success::new(204, ""), Timestamp(stamp.ts), 0.0)
            }))
        }));
        reply.outcome?;
    }
    Ok(())
}

/// Removes what is in a bucket that nobody can reach any more, from where the
/// last pass stopped. `false`: some is left.
fn clear_some(shared: &Shared, bucket: Bucket, units: &mut usize) -> dayfly_storage::Result<bool> {
    let mut clearing = shared.round.clearing.lock().unwrap_or_else(PoisonError::into_inner);
    let mut range = keys::everything();
    match clearing.take() {
        Some((known, next)) if known == bucket => range.start = next,
        _ => {}
    }
    while *units > 0 {
        *units -= 1;
        match shared.store.clear(bucket, &range, CLEAR_UNIT)?.next {
            Some(next) => range.start = next,
            None => return shared.store.forget(bucket).map(|()| true),
        }
    }
    *clearing = Some((bucket, range.start));
    Ok(false)
}

/// Removes everything in a bucket that nobody can reach any more.
pub(crate) fn clear_bucket(shared: &Shared, bucket: Bucket) -> dayfly_storage::Result<()> {
    clear_some(shared, bucket, &mut usize::MAX.clone()).map(|_| ())
}
