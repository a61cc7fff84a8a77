//! The clerk keeps the catalog: databases, containers and their definitions
//! change one at a time, on a thread of their own, since such a change is
//! several commits in a row and waits for each.

use std::sync::atomic::Ordering;

use dayfly_model::rid::DatabaseRid;
use dayfly_model::{ErrorKind, Result};
use dayfly_storage::{Bucket, Draft, Plan, Room, Snapshot, View, commit};

use crate::catalog;
use crate::install::Install;
use crate::keys;
use crate::reply::Reply;
use crate::settings::EngineSettings;
use crate::settings::SLICES_MAX;
use crate::shared::Shared;

/// What a change of the catalog works with.
pub(crate) struct Clerk<'a> {
    shared: &'a Shared,
}

impl<'a> Clerk<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Clerk { shared }
    }

    pub(crate) fn settings(&self) -> &EngineSettings {
        &self.shared.settings
    }

    /// What is stored just now.
    pub(crate) fn snapshot(&self) -> dayfly_storage::Result<Box<dyn Snapshot>> {
        self.shared.store.snapshot()
    }

    pub(crate) fn shared(&self) -> &Shared {
        self.shared
    }

    pub(crate) fn strict(&self) -> bool {
        self.shared.settings.strict
    }

    pub(crate) fn ranges_min(&self) -> usize {
        self.shared.settings.ranges_min
    }

    pub(crate) fn slices_max(&self) -> usize {
        self.shared.settings.slices_max.clamp(1, SLICES_MAX)
    }

    /// A container number that was never given out.
    pub(crate) fn next_container(&self) -> u32 {
        self.shared.last_container.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Answers from one snapshot of the catalog. Nobody else changes the
    /// catalog meanwhile.
    pub(crate) fn answer(&self, change: impl FnOnce(&dyn Snapshot) -> Result<Reply>) -> Reply {
        self.shared.answer(change)
    }

    /// Looks something up before a change.
    pub(crate) fn look<T>(
        &self,
        look: impl FnOnce(&dyn Snapshot) -> Result<T>,
    ) -> Result<T, Reply> {
        let snapshot = self.snapshot()?;
        look(&*snapshot).map_err(|error| Reply::failed(error, catalog::now(&*snapshot)))
    }

    /// Commits a change of the catalog.
    pub(crate) fn commit<F>(&self, plan: CatalogPlan<F>) -> Reply
    where
        CatalogPlan<F>: Plan<Done = Reply, Refusal = Reply>,
    {
        let reply = commit(&*self.shared.store, keys::CATALOG, plan).wait();
        let reply = reply.unwrap_or_else(|refusal| refusal);
        if matches!(&reply.outcome, Err(error) if error.kind == ErrorKind::ServiceUnavailable) {
            // It may have been a delete, and have landed all the same.
            self.shared.deadlines.condemned();
        }
        reply
    }

    /// Installs a definition in the heads of a container's buckets.
    pub(crate) fn install(
        &self,
        buckets: impl IntoIterator<Item = Bucket>,
        install: &Install,
    ) -> Result<()> {
        for bucket in buckets {
            let done = commit(&*self.shared.store, bucket, install.clone()).wait();
            // Also after a failure: it may have landed all the same.
            self.shared.deadlines.look_at(bucket);
            self.shared.index.line.look_at(bucket);
            if let Err(Reply { outcome: Err(error), .. }) = done {
                return Err(error);
            }
        }
        Ok(())
    }

    /// A change of containers that are there begins: until it has [ended](Clerk::end), or
    /// the background has finished it, nobody relies on what their heads say of them.
    pub(crate) fn begin(&self) {
        self.shared.catalog.unfinished.begin();
    }

    /// The change has ended. If it did not reach all heads, or may have landed without an
    /// answer, the next turn of the background finishes it.
    pub(crate) fn end(&self, is_finished: bool) {
        self.shared.catalog.unfinished.end(is_finished);
    }

    /// A database is gone, with the throughput that it shared.
    pub(crate) fn shares_no_more(&self, database: DatabaseRid) {
        self.shared.metering.forget_database(database);
    }

    /// An offer may say something else now, or a container have other ranges. Where nobody can
    /// say by which commit, offers are asked anew each time.
    pub(crate) fn offers_changed(&self) {
        let lsn = self.snapshot().map_or(u64::MAX, |snapshot| snapshot.head(keys::CATALOG).lsn);
        self.shared.metering.offers_changed(lsn);
    }

    /// Tells the buckets of a deleted container that it is gone, so that no
    /// write that is under way lands in them. The catalog says so already; if
    /// this fails, the background does it. A bucket without a head is gone already.
    /// Whether all of them know.
    pub(crate) fn close_buckets(&self, buckets: &[Bucket]) -> bool {
        self.shared.deadlines.condemned();
        let Ok(snapshot) = self.shared.store.snapshot() else { return false };
        let mut all = true;
        for bucket in buckets.iter().filter(|bucket| snapshot.head(**bucket).lsn > 0) {
            if let Err(error) = self.install([*bucket], &Install::END) {
                tracing::warn!(%error, bucket = bucket.0, "a deleted container's bucket stays open");
                all = false;
            }
        }
        all
    }
}

/// A change of the catalog as a plan.
pub(crate) struct CatalogPlan<F> {
    draft: F,
    room: Room,
}

impl<F> CatalogPlan<F> {
    /// A change that adds.
    pub(crate) fn grows(draft: F) -> Self {
        CatalogPlan { draft, room: Room::Grows }
    }

    /// A change that removes, or must go on with a full disk.
    pub(crate) fn frees(draft: F) -> Self {
        CatalogPlan { draft, room: Room::Frees }
    }
}

impl<F> Plan for CatalogPlan<F>
where
    F: Fn(&View<'_>) -> Result<Draft<Reply>> + Send + 'static,
{
    type Done = Reply;
    type Refusal = Reply;

    fn draft(&self, view: &View<'_>) -> Result<Draft<Reply>, Reply> {
        (self.draft)(view)
            .map_err(|error| Reply::failed(error, dayfly_model::Timestamp(view.now())))
    }

    fn room(&self) -> Room {
        self.room
    }
}
