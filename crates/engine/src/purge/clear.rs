//! Deleted containers: their buckets are emptied and forgotten.
//!
//! The catalog has a row for each bucket that is to go. Whether there is any
//! is kept in memory, so that the purge does not ask the catalog again and
//! again. Nobody can reach what is in such a bucket, so its keys go unseen, in
//! commits that ride like any other unit.

use dayfly_model::{Result, Timestamp};
use dayfly_storage::{
    Batch, Bucket, Direction, Draft, Error, Plan, Room, Stamp, Urgency, View, commit,
};

use super::Purge;
use super::pacer::Pace;
use crate::clerk::{CatalogPlan, Clerk};
use crate::head::State;
use crate::keys;
use crate::locks::lock;
use crate::reply::{Reply, Success, storage_failed};
use crate::shared::Shared;

/// How many condemned buckets are looked at, if they cannot be closed.
const BUCKETS: usize = 64;
/// About how many keys an item has, with its entries in the index.
const KEYS_PER_ITEM: usize = 16;
/// How many keys are removed at once when nobody is served yet.
const CLEAR_UNIT: usize = 256;

/// Removes some of what deleted containers left. `false`: there was nothing
/// that could be done.
pub(super) fn step(purge: &Purge, pace: Pace) -> Result<bool> {
    let deadlines = &purge.shared.deadlines;
    deadlines.forget_condemned();
    let outcome = first_closed(&purge.shared);
    if !matches!(outcome, Ok(Condemned::None)) {
        deadlines.condemned();
    }
    match outcome? {
        Condemned::None | Condemned::Open => Ok(false),
        Condemned::Closed(bucket) => clear_some(purge, bucket, pace).map(|()| true),
    }
}

enum Condemned {
    /// No bucket is condemned.
    None,
    /// One is, but could not be closed.
    Open,
    /// This one can be cleared.
    Closed(Bucket),
}

/// A condemned bucket in which nothing lands any more.
fn first_closed(shared: &Shared) -> Result<Condemned> {
    let rows = {
        let snapshot = shared.store.snapshot().map_err(storage_failed)?;
        let range = keys::all_condemned();
        snapshot.scan(keys::CATALOG, &range, Direction::Forward, BUCKETS).map_err(storage_failed)?
    };
    for bucket in rows.iter().filter_map(|(key, _)| keys::condemned_bucket(key)) {
        if is_closed(shared, bucket)? {
            return Ok(Condemned::Closed(bucket));
        }
        Clerk::new(shared).close_buckets(&[bucket]);
        if is_closed(shared, bucket)? {
            return Ok(Condemned::Closed(bucket));
        }
    }
    Ok(if rows.is_empty() { Condemned::None } else { Condemned::Open })
}

fn is_closed(shared: &Shared, bucket: Bucket) -> Result<bool> {
    let head = shared.store.snapshot().map_err(storage_failed)?.head(bucket);
    Ok(head.lsn == 0 || State::of(&head).deleted)
}

/// Removes some keys of a bucket, from where the last time stopped, or the
/// bucket itself when there are none.
fn clear_some(purge: &Purge, bucket: Bucket, pace: Pace) -> Result<()> {
    let store = &purge.shared.store;
    let mut clearing = lock(&purge.clearing);
    let mut range = keys::everything();
    if let Some((known, next)) = clearing.take()
        && known == bucket
    {
        range.start = next;
    }
    let gone: Vec<Vec<u8>> = {
        let snapshot = store.snapshot().map_err(storage_failed)?;
        let keys_max = pace.items * KEYS_PER_ITEM;
        let pairs = snapshot.scan(bucket, &range, Direction::Forward, keys_max);
        let pairs = pairs.map_err(storage_failed)?;
        pairs.into_iter().map(|(key, _)| key.to_vec()).collect()
    };
    let Some(last) = gone.last().cloned() else { return forget(purge, bucket) };
    let clear = Clear { gone, urgency: pace.urgency };
    commit(&**store, bucket, clear).wait().map_err(storage_failed)?;
    purge.counted();
    range.go_behind(&last);
    *clearing = Some((bucket, range.start));
    Ok(())
}

/// Forgets a bucket that is empty, then that it was condemned.
fn forget(purge: &Purge, bucket: Bucket) -> Result<()> {
    purge.shared.store.forget(bucket).map_err(storage_failed)?;
    purge.forget(bucket);
    let reply = Clerk::new(&purge.shared).commit(CatalogPlan::frees(move |_: &View<'_>| {
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            batch.delete(keys::condemned(bucket));
            Reply::ok(Success::new(204, ""), Timestamp(stamp.ts), 0.0)
        }))
    }));
    reply.outcome.map(|_| ())
}

/// Removes everything in a bucket that belongs to no container, and the bucket.
/// For the start, when nobody is served yet.
pub(crate) fn clear_bucket(shared: &Shared, bucket: Bucket) -> dayfly_storage::Result<()> {
    let mut range = keys::everything();
    while let Some(next) = shared.store.clear(bucket, &range, CLEAR_UNIT)?.next {
        range.start = next;
    }
    shared.store.forget(bucket)
}

/// One commit that removes keys of a deleted container.
struct Clear {
    gone: Vec<Vec<u8>>,
    urgency: Urgency,
}

impl Plan for Clear {
    type Done = ();
    type Refusal = Error;

    fn draft(&self, view: &View<'_>) -> dayfly_storage::Result<Draft<()>> {
        if !State::of(view.head()).deleted {
            return Err(Error::Retry);
        }
        let gone = self.gone.clone();
        Ok(Draft::new(move |_, batch: &mut Batch| {
            for key in gone {
                batch.delete(key);
            }
        }))
    }

    fn room(&self) -> Room {
        Room::Frees
    }

    fn urgency(&self) -> Urgency {
        self.urgency
    }
}
