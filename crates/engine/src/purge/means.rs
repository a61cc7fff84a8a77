//! What may the background spend?
//!
//! Where an offer is enforced, what users leave over of it: the purge, deletes of whole
//! partitions and rebuilds of indexes live on the overflow of its meters, which is lost to
//! users whatever becomes of it. So no answer to a user depends on them, nor does the time
//! that it takes until the next one is admitted. Where nothing is enforced, the pacer alone
//! says how fast they go; where it is, both do. A disk that is nearly full, and an operator
//! who waits, do not ask.
//!
//! A backlog that is older than an hour, or has more bytes than what is alive, gets a
//! twentieth of the throughput in any case: users who leave nothing over would otherwise
//! keep what is dead for ever. That, too, is taken from no meter.

use dayfly_model::meter::Units;
use dayfly_storage::{Bucket, Snapshot};

use crate::head::State;
use crate::locks::lock;
use crate::metering::SharedPurse;
use crate::reply::storage_failed;
use crate::shared::Shared;
use crate::{catalog, keys, standing};

/// A backlog that is older is forced, in seconds.
const OLD_SECONDS: u64 = 3600;

/// What the background may spend in a bucket, and where it is counted.
pub(crate) struct Means {
    /// Where it is counted: nowhere, if the container is offered nothing.
    purse: Option<SharedPurse>,
    /// How much it is; without one, as much as it takes.
    most: Option<Units>,
    /// Whether it is the delete of a whole partition that spends it.
    sweeps: bool,
}

impl Means {
    /// As much as it takes, and nobody counts it.
    const FREE: Means = Means { purse: None, most: None, sweeps: false };

    /// What may be spent now. When nobody can say, as much as it takes: what is dead must go.
    pub(crate) fn of(shared: &Shared, bucket: Bucket) -> Means {
        Means::read(shared, bucket).unwrap_or_else(|error| {
            tracing::warn!(%error, bucket = bucket.0, "nobody knows what a purge may spend");
            Means::FREE
        })
    }

    fn read(shared: &Shared, bucket: Bucket) -> dayfly_model::Result<Means> {
        let Some(container) = keys::container_of(bucket) else { return Ok(Means::FREE) };
        let Some(purse) = shared.metering.purse_of(&*shared.store, container)? else {
            return Ok(Means::FREE);
        };
        let snapshot = shared.store.snapshot().map_err(storage_failed)?;
        let sweeps = State::of(&snapshot.head(bucket)).partitions.pending > 0;
        let now_ms = shared.store.milliseconds();
        let (is_enforced, mut most, is_forced) = {
            let mut purse = lock(&purse);
            let is_enforced = shared.metering.is_enforced(&purse);
            (is_enforced, purse.left_over(now_ms, sweeps), purse.is_forced())
        };
        if is_enforced && (is_forced || !most.is_positive()) {
            let is_large = is_large(shared, &*snapshot, container)?;
            let mut purse = lock(&purse);
            purse.force(now_ms, is_large);
            most = purse.left_over(now_ms, sweeps);
        }
        Ok(Means { purse: Some(purse), most: is_enforced.then_some(most), sweeps })
    }

    /// The same for those who do not ask what is left over.
    pub(super) fn unlimited(self) -> Means {
        Means { most: None, ..self }
    }

    /// Whether there is anything to spend.
    pub(crate) fn is_there(&self) -> bool {
        self.most.is_none_or(Units::is_positive)
    }

    /// How many items may be gone through, if none costs less than this.
    pub(crate) fn items(&self, cheapest: Units) -> usize {
        match self.most {
            None => usize::MAX,
            Some(most) if most.is_positive() => most.holds(cheapest).max(1),
            Some(_) => 0,
        }
    }

    /// How much may be spent; without one, as much as it takes.
    pub(super) fn most(&self) -> Option<Units> {
        self.most
    }

    /// So much was spent.
    pub(crate) fn spend(&self, shared: &Shared, charge: Units) {
        if let Some(purse) = &self.purse {
            let is_limited = self.most.is_some();
            lock(purse).spend(shared.store.milliseconds(), charge, is_limited, self.sweeps);
        }
    }

    /// Nothing is left to do.
    pub(super) fn rest(&self, shared: &Shared) {
        if let Some(purse) = &self.purse {
            let mut purse = lock(purse);
            if purse.is_forced() {
                purse.force(shared.store.milliseconds(), false);
            }
        }
    }
}

/// Whether so much waits to be removed that users must not keep it there for ever.
fn is_large(
    shared: &Shared,
    snapshot: &dyn Snapshot,
    container: u32,
) -> dayfly_model::Result<bool> {
    let Some(record) = shared.metering.record(snapshot, container)? else { return Ok(false) };
    let figures = standing::figures(snapshot, &record)?;
    let now = catalog::now(snapshot);
    let is_old = figures.oldest_dead.is_some_and(|at| at.0.saturating_add(OLD_SECONDS) < now.0);
    Ok(is_old || figures.dead.bytes > figures.live.bytes)
}
