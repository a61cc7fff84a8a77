//! Finishes what a crash, or a full disk, cut off.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use dayfly_model::Result;
use dayfly_storage::Bucket;

use crate::catalog::{self, CatalogView, ContainerRecord, Numbers};
use crate::clerk::Clerk;
use crate::head::State;
use crate::install::Install;
use crate::reply::storage_failed;
use crate::shared::Shared;
use crate::{keys, purge};

/// Installs definitions that did not reach all their buckets, if there are any.
pub(crate) fn finish_installs(shared: &Shared) -> Result<()> {
    if shared.unfinished.swap(false, Ordering::Relaxed)
        && let Err(error) = install_all(shared)
    {
        shared.unfinished.store(true, Ordering::Relaxed);
        return Err(error);
    }
    Ok(())
}

/// Brings every bucket to its container's definition. Returns the buckets of
/// all containers.
fn install_all(shared: &Shared) -> Result<HashSet<Bucket>> {
    let snapshot = shared.store.snapshot().map_err(storage_failed)?;
    let rows = CatalogView::scan(&*snapshot, &keys::all_containers(), usize::MAX)
        .map_err(storage_failed)?;
    let mut known = HashSet::new();
    for (_, row) in rows {
        let record: ContainerRecord = catalog::decode(&row)?;
        for bucket in record.buckets() {
            known.insert(bucket);
            if State::of(&snapshot.head(bucket)).epoch < record.epoch {
                let clerk = Clerk::new(shared);
                clerk.install([bucket], &Install::of(&record))?;
            }
        }
    }
    Ok(known)
}

/// Finishes what a crash cut off: definitions that did not reach every bucket,
/// and buckets of containers that were never recorded.
pub(crate) fn recover(shared: &Shared) -> Result<()> {
    let mut known = install_all(shared)?;
    let snapshot = shared.store.snapshot().map_err(storage_failed)?;
    let condemned = CatalogView::scan(&*snapshot, &keys::all_condemned(), usize::MAX)
        .map_err(storage_failed)?;
    known.extend(condemned.iter().filter_map(|(key, _)| keys::condemned_bucket(key)));
    if !condemned.is_empty() {
        shared.deadlines.condemned();
    }

    let mut last = Numbers::read(&*snapshot)?.container;
    for bucket in shared.store.buckets() {
        let Some(number) = keys::container_of(bucket) else { continue };
        last = last.max(number);
        if !known.contains(&bucket) {
            purge::clear_bucket(shared, bucket).map_err(storage_failed)?;
        }
    }
    shared.last_container.store(last, Ordering::Relaxed);
    Ok(())
}
