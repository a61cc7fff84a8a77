//! What is alive in a container, for answers about its items.
//!
//! The histogram tells it exactly, for a dozen look-ups; that is what an answer
//! about the container itself says. On each answer about an item that would be
//! too much, so there the figures are kept for a second of the store's time, or
//! for some hundred commits. They may lack the last writes. They never count what
//! is dead: figures of an earlier second, or from before a change of the
//! container, are not used. While items of a deleted partition wait for the purge, an
//! answer about an item has none.

use std::sync::Arc;

use dayfly_model::Timestamp;
use dayfly_storage::Store;
use dayfly_storage::tally::Count;

use crate::catalog::Container;
use crate::standing;

/// Of how many containers figures are kept.
const KEPT_MAX: usize = 1_000;

/// After how many commits they are made anew.
const COMMITS_MAX: u64 = 256;

/// The last figures of containers.
pub(crate) struct UsageCache {
    known: quick_cache::sync::Cache<u32, KnownUsage>,
}

#[derive(Clone, Copy)]
struct KnownUsage {
    at: Timestamp,
    epoch: u64,
    lsn: u64,
    live: Count,
}

impl Default for UsageCache {
    fn default() -> Self {
        UsageCache { known: quick_cache::sync::Cache::new(KEPT_MAX) }
    }
}

impl UsageCache {
    /// Much of a container is gone at once: its figures are made anew.
    pub(crate) fn forget(&self, container: u32) {
        self.known.remove(&container);
    }

    /// What is alive in a container, as an answer of the time `now` may say it,
    /// whose container has seen `lsn` commits; `None`: nobody knows without counting.
    pub(crate) fn of(
        &self,
        store: &Arc<dyn Store>,
        container: &Container,
        now: Timestamp,
        lsn: u64,
    ) -> Option<Count> {
        let epoch = container.record.epoch;
        let fits = |known: &KnownUsage| {
            known.at >= now && known.epoch == epoch && lsn < known.lsn.saturating_add(COMMITS_MAX)
        };
        if let Some(known) = self.known.get(&container.number).filter(fits) {
            return Some(known.live);
        }
        let snapshot = store.snapshot().ok()?;
        // Else what was deleted with its partition would be counted, for each answer.
        if !container.buckets().all(|bucket| standing::knows_alone(&*snapshot, bucket)) {
            return None;
        }
        let live = standing::of(&*snapshot, container).ok()?.live;
        let at = Timestamp(snapshot.now());
        self.known.insert(container.number, KnownUsage { at, epoch, lsn, live });
        Some(live)
    }
}
