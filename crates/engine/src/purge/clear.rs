//! Deleted containers: their buckets are emptied and forgotten.
//!
//! The catalog has a row for each bucket that is to go. Whether there is any
//! is kept in memory, so that the purge does not ask the catalog again and
//! again. Nobody can reach what is in such a bucket, so its keys go unseen, in
//! commits that ride like any other unit.

use std::sync::atomic::Ordering;

use dayfly_model::{Result, Timestamp};
use dayfly_storage::{
    Batch, Bucket, Direction, Draft, Error, Plan, Room, Stamp, Urgency, View, commit,
};

use super::lock;
use super::pacer::Pace;
use crate::Shared;
use crate::clerk::{CatalogPlan, Clerk};
use crate::head::State;
use crate::keys;
use crate::reply::{Reply, Success, storage_failed};

/// How many condemned buckets are looked at, if they cannot be closed.
const BUCKETS: usize = 64;
/// About how many keys an item has, with its entries in the index.
const KEYS_PER_ITEM: usize = 16;
/// How many keys are removed at once when nobody is served yet.
const CLEAR_UNIT: usize = 256;

/// Removes some of what deleted containers left. `false`: there was nothing
/// that could be done.
pub(super) fn step(shared: &Shared, pace: Pace) -> Result<bool> {
    let flag = &shared.purge.condemned;
    // Before the look: who condemns another bucket from now on is heard.
    flag.store(false, Ordering::SeqCst);
    let outcome = first_closed(shared);
    if !matches!(outcome, Ok(Found::None)) {
        flag.store(true, Ordering::SeqCst);
    }
    match outcome? {
        Found::None | Found::Open => Ok(false),
        Found::Closed(bucket) => clear_some(shared, bucket, pace).map(|()| true),
    }
}

enum Found {
    /// No bucket is condemned.
    None,
    /// One is, but could not be closed.
    Open,
    /// This one can be cleared.
    Closed(Bucket),
}

/// A condemned bucket in which nothing lands any more.
fn first_closed(shared: &Shared) -> Result<Found> {
    let rows = {
        let snapshot = shared.store.snapshot().map_err(storage_failed)?;
        let range = keys::all_condemned();
        snapshot.scan(keys::CATALOG, &range, Direction::Forward, BUCKETS).map_err(storage_failed)?
    };
    for bucket in rows.iter().filter_map(|(key, _)| keys::condemned_bucket(key)) {
        if is_closed(shared, bucket)? {
            return Ok(Found::Closed(bucket));
        }
        Clerk::new(shared).close_buckets(&[bucket]);
        if is_closed(shared, bucket)? {
            return Ok(Found::Closed(bucket));
        }
    }
    Ok(if rows.is_empty() { Found::None } else { Found::Open })
}

fn is_closed(shared: &Shared, bucket: Bucket) -> Result<bool> {
    let head = shared.store.snapshot().map_err(storage_failed)?.head(bucket);
    Ok(head.lsn == 0 || State::of(&head).deleted)
}

/// Removes some keys of a bucket, from where the last time stopped, or the
/// bucket itself when there are none.
fn clear_some(shared: &Shared, bucket: Bucket, pace: Pace) -> Result<()> {
    let mut clearing = lock(&shared.purge.clearing);
    let mut range = keys::everything();
    if let Some((known, next)) = clearing.take()
        && known == bucket
    {
        range.start = next;
    }
    let gone: Vec<Vec<u8>> = {
        let snapshot = shared.store.snapshot().map_err(storage_failed)?;
        let keys_max = pace.items * KEYS_PER_ITEM;
        let pairs = snapshot.scan(bucket, &range, Direction::Forward, keys_max);
        let pairs = pairs.map_err(storage_failed)?;
        pairs.into_iter().map(|(key, _)| key.to_vec()).collect()
    };
    let Some(last) = gone.last().cloned() else { return forget(shared, bucket) };
    let clear = Clear { gone, urgency: pace.urgency };
    commit(&*shared.store, bucket, clear).wait().map_err(storage_failed)?;
    shared.purge.units.fetch_add(1, Ordering::Relaxed);
    *clearing = Some((bucket, [&last[..], &[0]].concat()));
    Ok(())
}

/// Forgets a bucket that is empty, then that it was condemned.
fn forget(shared: &Shared, bucket: Bucket) -> Result<()> {
    shared.store.forget(bucket).map_err(storage_failed)?;
    shared.purge.forget(bucket);
    let reply = Clerk::new(shared).commit(CatalogPlan::frees(move |_: &View<'_>| {
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
