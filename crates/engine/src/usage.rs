//! What is alive in a container, for answers about its items.
//!
//! The histogram tells it exactly, for a dozen look-ups; that is what an answer
//! about the container itself says. On each answer about an item that would be
//! too much, so there the figures are kept for a second of the store's time, or
//! for some hundred commits. They may lack the last writes. They never count what
//! is dead: figures of an earlier second, from before a change of the container, or from
//! before the delete of a partition are not used. While items of a deleted partition wait
//! for the purge, an answer about an item has none.

use dayfly_model::Timestamp;
use dayfly_storage::tally::Count;
use dayfly_storage::{Mark, Snapshot};

use crate::catalog::Container;
use crate::head::State;
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
    /// Which deletes of partitions they know of: see [`deletes`].
    deletes: u64,
    /// A snapshot that has seen the same.
    mark: Mark,
}

impl Default for UsageCache {
    fn default() -> Self {
        UsageCache { known: quick_cache::sync::Cache::new(KEPT_MAX) }
    }
}

impl UsageCache {
    /// What is alive in a container, as an answer of the time `now` may say it,
    /// whose container has seen `lsn` commits; `None`: nobody knows without counting.
    /// `snapshot` has seen what the answer has.
    pub(crate) fn of(
        &self,
        snapshot: &dyn Snapshot,
        container: &Container,
        now: Timestamp,
        lsn: u64,
    ) -> Option<Count> {
        let (epoch, mark) = (container.record.epoch, snapshot.mark());
        let fits = |known: &KnownUsage| {
            known.at >= now && known.epoch == epoch && lsn < known.lsn.saturating_add(COMMITS_MAX)
        };
        let known = self.known.get(&container.number).filter(fits);
        if let Some(known) = known.filter(|known| known.mark == mark) {
            return Some(known.live);
        }
        let deletes = deletes(snapshot, container);
        if let Some(known) = known.filter(|known| known.deletes >= deletes) {
            if known.deletes == deletes {
                self.known.insert(container.number, KnownUsage { mark, ..known });
            }
            return Some(known.live);
        }
        // Else what was deleted with its partition would be counted, for each answer.
        if !container.buckets().all(|bucket| standing::knows_alone(snapshot, bucket)) {
            return None;
        }
        let live = standing::of(snapshot, container).ok()?.live;
        let at = Timestamp(snapshot.now());
        let known = KnownUsage { at, epoch, lsn, live, deletes, mark };
        self.known.insert(container.number, known);
        Some(live)
    }
}

/// A number that grows with each delete of a partition of a container.
fn deletes(snapshot: &dyn Snapshot, container: &Container) -> u64 {
    let last = |bucket| State::of(&snapshot.head(bucket)).partitions.last;
    container.buckets().map(last).sum()
}
