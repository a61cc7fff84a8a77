//! Deleted containers: their buckets are emptied and forgotten.
//!
//! The catalog has a row for each bucket that is to go. Whether there is any
//! is kept in memory, so that the purge does not ask the catalog again and
//! again. Nobody can reach what is in such a bucket, so its keys go unseen, in
//! commits that ride like any other unit. A container that shared the throughput of its
//! database is cleared with what is left over of that.

use dayfly_model::charge::{self, Charge};
use dayfly_model::meter::Units;
use dayfly_model::rid::DatabaseRid;
use dayfly_model::{Result, Timestamp};
use dayfly_storage::{
    Batch, Bucket, Direction, Draft, Error, Pair, Plan, Room, Stamp, Urgency, View, commit,
};

use super::Purge;
use super::means::Means;
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
    let outcome = first_closed(&purge.shared, pace);
    if !matches!(outcome, Ok(Condemned::None)) {
        deadlines.condemned();
    }
    match outcome? {
        Condemned::None | Condemned::Waits => Ok(false),
        Condemned::Closed(bucket, means) => clear_some(purge, bucket, pace, &means).map(|()| true),
    }
}

enum Condemned {
    /// No bucket is condemned.
    None,
    /// One is, but could not be closed, or there is nothing to spend on it.
    Waits,
    /// This one can be cleared.
    Closed(Bucket, Means),
}

/// A condemned bucket in which nothing lands any more, and what may be spent on it.
fn first_closed(shared: &Shared, pace: Pace) -> Result<Condemned> {
    let rows = {
        let snapshot = shared.store.snapshot().map_err(storage_failed)?;
        let range = keys::all_condemned();
        snapshot.scan(keys::CATALOG, &range, Direction::Forward, BUCKETS).map_err(storage_failed)?
    };
    for (key, payer) in &rows {
        let Some(bucket) = keys::condemned_bucket(key) else { continue };
        if !is_closed(shared, bucket)? {
            Clerk::new(shared).close_buckets(&[bucket]);
        }
        let means = means_of(shared, payer, pace);
        if means.is_there() && is_closed(shared, bucket)? {
            return Ok(Condemned::Closed(bucket, means));
        }
    }
    Ok(if rows.is_empty() { Condemned::None } else { Condemned::Waits })
}

/// What may be spent on a bucket, given what its row says of who pays. Who makes room on a full
/// disk does not ask.
fn means_of(shared: &Shared, payer: &[u8], pace: Pace) -> Means {
    let database = payer.try_into().ok().map(|number| DatabaseRid(u32::from_be_bytes(number)));
    let means = Means::of_deleted(shared, database);
    if pace == Pace::FULL { means.unlimited() } else { means }
}

fn is_closed(shared: &Shared, bucket: Bucket) -> Result<bool> {
    let head = shared.store.snapshot().map_err(storage_failed)?.head(bucket);
    Ok(head.lsn == 0 || State::of(&head).deleted)
}

/// Removes some keys of a bucket, from where the last time stopped, or the
/// bucket itself when there are none.
fn clear_some(purge: &Purge, bucket: Bucket, pace: Pace, means: &Means) -> Result<()> {
    let store = &purge.shared.store;
    let mut clearing = lock(&purge.clearing);
    let mut range = keys::everything();
    if let Some((known, next)) = clearing.take()
        && known == bucket
    {
        range.start = next;
    }
    let (gone, charge) = {
        let snapshot = store.snapshot().map_err(storage_failed)?;
        let keys_max = pace.items * KEYS_PER_ITEM;
        let pairs = snapshot.scan(bucket, &range, Direction::Forward, keys_max);
        let pairs = pairs.map_err(storage_failed)?;
        paid_for(pairs, means.most())
    };
    let Some(last) = gone.last().cloned() else {
        means.rest();
        return forget(purge, bucket);
    };
    let clear = Clear { gone, urgency: pace.urgency };
    commit(&**store, bucket, clear).wait().map_err(storage_failed)?;
    purge.counted();
    means.spend(&purge.shared, charge, false);
    range.go_behind(&last);
    *clearing = Some((bucket, range.start));
    Ok(())
}

/// The first keys, as many as may be removed for what there is, and what that costs. The first
/// goes in any case.
fn paid_for(pairs: Vec<Pair>, most: Option<Units>) -> (Vec<Vec<u8>>, Units) {
    let (mut gone, mut charge) = (Vec::with_capacity(pairs.len()), Units::ZERO);
    for (key, row) in pairs {
        let after = charge + charge_of(&key, &row).into();
        if !gone.is_empty() && most.is_some_and(|most| after > most) {
            break;
        }
        charge = after;
        gone.push(key.to_vec());
    }
    (gone, charge)
}

/// What a row adds to the cost of deleting what a container held: an item its bytes, as they are
/// kept, an entry of the index that of a term.
fn charge_of(key: &[u8], row: &[u8]) -> Charge {
    if keys::item_number(key).is_some() {
        charge::of_delete(row.len(), 0)
    } else {
        charge::of_terms(usize::from(keys::is_indexed(key)))
    }
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
