//! Finishes what a crash, or a full disk, cut off.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use dayfly_model::{Result, Timestamp};
use dayfly_storage::{Bucket, Draft, View};

use crate::catalog::{self, CatalogView, ContainerRecord, Numbers};
use crate::clerk::{CatalogPlan, Clerk};
use crate::head::State;
use crate::install::Install;
use crate::reply::{Reply, Success, storage_failed};
use crate::shared::Shared;
use crate::{keys, purge};

/// Finishes changes of containers that did not reach all their heads, if there are any.
pub(crate) fn finish_installs(shared: &Shared) -> Result<()> {
    let unfinished = &shared.catalog.unfinished;
    let Some(left) = unfinished.left() else { return Ok(()) };
    learn_what_landed(shared)?;
    install_all(shared)?;
    close_condemned(shared)?;
    unfinished.finished_to(left);
    Ok(())
}

/// A store that failed shows what it showed before, until it can be opened again. Once a
/// commit comes back, what is shown is what is there: a change whose outcome nobody knew is
/// there, or never will be.
fn learn_what_landed(shared: &Shared) -> Result<()> {
    let nothing = CatalogPlan::frees(|view: &View<'_>| {
        let now = Timestamp(view.now());
        Ok(Draft::new(move |_, _| Reply::ok(Success::new(204, ""), now, 0.0)))
    });
    Clerk::new(shared).commit(nothing).outcome.map(|_| ())
}

/// Tells the buckets of deleted containers that these are gone, as far as they do not know.
fn close_condemned(shared: &Shared) -> Result<()> {
    let snapshot = shared.store.snapshot().map_err(storage_failed)?;
    let rows = CatalogView::scan(&*snapshot, &keys::all_condemned(), usize::MAX)
        .map_err(storage_failed)?;
    let is_open = |bucket: &Bucket| {
        let head = snapshot.head(*bucket);
        head.lsn > 0 && !State::of(&head).deleted
    };
    let condemned = rows.iter().filter_map(|(key, _)| keys::condemned_bucket(key));
    Clerk::new(shared).install(condemned.filter(is_open), &Install::END)
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
