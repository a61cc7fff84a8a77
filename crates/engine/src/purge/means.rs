//! What may the background spend?
//!
//! Where an offer is enforced, what users leave over of it: the purge, deletes of whole
//! partitions, rebuilds of indexes and the clearing of deleted containers live on the overflow of
//! its meters, which is lost to users whatever becomes of it. So no answer to a user depends on
//! them, nor does the time that it takes until the next one is admitted. Where nothing is enforced, the pacer alone
//! says how fast they go; where it is, both do. A disk that is nearly full, and an operator
//! who waits, do not ask.
//!
//! What there is of all this for one offer takes turns, a unit each: first come, first served,
//! and whoever was served comes last. None of it goes before another by what it is, so none can
//! keep another waiting for more than a unit of each. Deletes of partitions get a tenth of the rate; while they wait for it, what has expired goes on. A
//! deleted container lives on what its database shares, if it had part in that: its own offer
//! is gone with it, and nobody is there to be disturbed.
//!
//! A backlog that is older than an hour, or has more bytes than what is alive, gets a
//! twentieth of the throughput in any case: users who leave nothing over would otherwise
//! keep what is dead for ever. That, too, is taken from no meter.

use dayfly_model::Result;
use dayfly_model::meter::Units;
use dayfly_model::rid::DatabaseRid;
use dayfly_storage::{Bucket, Snapshot};

use crate::locks::lock;
use crate::metering::{Chore, SharedPurse};
use crate::reply::storage_failed;
use crate::shared::Shared;
use crate::{catalog, keys, standing};

/// A backlog that is older is forced, in seconds.
const OLD_SECONDS: u64 = 3600;

/// What the background may spend in a bucket, and where it is counted.
pub(crate) struct Means {
    /// Where it is counted: nowhere, if the container is offered nothing.
    purse: Option<SharedPurse>,
    /// What it is spent for.
    chore: Chore,
    /// How much it is; without one, as much as it takes.
    most: Option<Units>,
    /// How much of it deletes of whole partitions may spend.
    sweep_most: Option<Units>,
}

impl Means {
    /// As much as it takes, and nobody counts it.
    fn free(chore: Chore) -> Means {
        Means { purse: None, chore, most: None, sweep_most: None }
    }

    /// What may be spent now. When nobody can say, as much as it takes: what is dead must go.
    pub(crate) fn of(shared: &Shared, bucket: Bucket, chore: Chore) -> Means {
        Means::read(shared, bucket, chore).unwrap_or_else(|error| {
            tracing::warn!(%error, bucket = bucket.0, "nobody knows what a purge may spend");
            Means::free(chore)
        })
    }

    fn read(shared: &Shared, bucket: Bucket, chore: Chore) -> Result<Means> {
        let Some(container) = keys::container_of(bucket) else { return Ok(Means::free(chore)) };
        let Some(purse) = shared.metering.purse_of(&*shared.store, container)? else {
            return Ok(Means::free(chore));
        };
        let snapshot = shared.store.snapshot().map_err(storage_failed)?;
        let means = Means::free(chore).within(shared, purse);
        if means.is_there() || !is_large(shared, &*snapshot, container)? {
            return Ok(means);
        }
        let Means { purse: Some(purse), .. } = means else { return Ok(means) };
        lock(&purse).force(shared.store.milliseconds());
        Ok(Means::free(chore).within(shared, purse))
    }

    /// What may be spent now to clear a bucket of a deleted container, which shared the
    /// throughput of a database, or of none.
    pub(super) fn of_deleted(shared: &Shared, database: Option<DatabaseRid>) -> Means {
        let purse = database.map(|database| {
            let snapshot = shared.store.snapshot().map_err(storage_failed)?;
            shared.metering.purse_of_database(&*shared.store, &*snapshot, database)
        });
        match purse.transpose() {
            Ok(purse) => {
                let free = Means::free(Chore::Clear);
                purse
                    .flatten()
                    .map_or(free, |purse| Means::free(Chore::Clear).within(shared, purse))
            }
            Err(error) => {
                tracing::warn!(%error, "nobody knows what clearing a container may spend");
                Means::free(Chore::Clear)
            }
        }
    }

    /// The same, as much as the purse has.
    fn within(self, shared: &Shared, purse: SharedPurse) -> Means {
        let (mut most, mut sweep_most) = (None, None);
        {
            let mut purse = lock(&purse);
            if shared.metering.is_enforced(&purse) {
                let left_over = purse.ask(shared.store.milliseconds(), self.chore);
                most = Some(left_over);
                sweep_most = Some(purse.for_sweeps(left_over));
            }
        }
        Means { purse: Some(purse), most, sweep_most, ..self }
    }

    /// The same for those who do not ask what is left over.
    pub(super) fn unlimited(self) -> Means {
        if let Some(purse) = &self.purse {
            lock(purse).leave(self.chore);
        }
        Means { most: None, sweep_most: None, ..self }
    }

    /// Whether there is anything to spend.
    pub(crate) fn is_there(&self) -> bool {
        self.most.is_none_or(Units::is_positive)
    }

    /// How much may be spent; without one, as much as it takes.
    pub(crate) fn most(&self) -> Option<Units> {
        self.most
    }

    /// The same for deletes of whole partitions.
    pub(super) fn sweep_most(&self) -> Option<Units> {
        self.sweep_most
    }

    /// A unit was done for so much; `sweeps` says that it was one of a deleted partition.
    pub(crate) fn spend(&self, shared: &Shared, charge: Units, sweeps: bool) {
        if let Some(purse) = &self.purse {
            let is_limited = self.most.is_some();
            let mut purse = lock(purse);
            purse.leave(self.chore);
            purse.spend(shared.store.milliseconds(), charge, is_limited, sweeps);
        }
    }

    /// Nothing is to be done now.
    pub(crate) fn rest(&self) {
        if let Some(purse) = &self.purse {
            lock(purse).leave(self.chore);
        }
    }
}

/// Whether so much waits to be removed that users must not keep it there for ever.
fn is_large(shared: &Shared, snapshot: &dyn Snapshot, container: u32) -> Result<bool> {
    let Some(record) = shared.metering.record(snapshot, container)? else { return Ok(false) };
    let figures = standing::figures(snapshot, &record)?;
    let now = catalog::now(snapshot);
    let is_old = figures.oldest_dead.is_some_and(|at| at.0.saturating_add(OLD_SECONDS) < now.0);
    Ok(is_old || figures.dead.bytes > figures.live.bytes)
}
