//! The figures of all containers at once, for those who watch the server.
//!
//! What has expired since the start is what the purge removed, what a write
//! buried because it wanted the id or a unique key, and what is dead and still
//! there. The first two are counted after they happened and read before the
//! third, a sum over the life histogram: so nothing counts
//! twice, and what happens in between is missing for a moment. The greatest sum
//! that was shown is remembered, because such a count must not fall.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_model::{Result, Timestamp};
use dayfly_storage::tally::Count;
use dayfly_storage::{Bucket, Direction, Snapshot};

use crate::catalog::{self, ContainerRecord};
use crate::head::State;
use crate::reply::storage_failed;
use crate::{Engine, Shared, keys, ttl};

/// How a container stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerFigures {
    /// `database/container`, by name.
    pub container: String,
    /// What is alive.
    pub live: Count,
    /// What is dead and still there.
    pub dead: Count,
    /// How long the oldest of it has been dead.
    pub oldest_dead_seconds: u64,
    /// How many live items have a `ttl` that cannot be read.
    pub uninterpretable: u64,
    /// How many items have expired, as far as it was seen since the start.
    pub expired: u64,
    /// How many expired items the purge has removed since the start.
    pub purged: u64,
}

/// How the containers stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllFigures {
    /// In the order of their databases and names.
    pub containers: Vec<ContainerFigures>,
    /// How many there are that were left out.
    pub left_out: usize,
}

/// How many containers are counted. When there are more, counting starts anew,
/// as after a restart: containers that are no more are forgotten only when
/// somebody asks for the figures.
const COUNTED_MAX: usize = 100_000;

/// What is counted of each container since the start.
#[derive(Default)]
pub(crate) struct Gone(Mutex<HashMap<u32, Went>>);

#[derive(Clone, Copy, Default)]
struct Went {
    /// Expired items that stood in the way of a write.
    buried: u64,
    /// The greatest count of expired items that was shown.
    shown: u64,
}

impl Gone {
    /// A write has buried `items` that stood in its way.
    fn buried(&self, bucket: Bucket, items: usize) {
        if items > 0
            && let Some(container) = keys::container_of(bucket)
        {
            let mut all = self.lock();
            if all.len() >= COUNTED_MAX {
                all.clear();
            }
            all.entry(container).or_default().buried += items as u64;
        }
    }

    /// How many were buried so far.
    fn all_buried(&self) -> HashMap<u32, u64> {
        self.lock().iter().map(|(container, went)| (*container, went.buried)).collect()
    }

    /// What to show, if it looks as if `expired` items have expired.
    fn shown(&self, container: u32, expired: u64) -> u64 {
        let mut all = self.lock();
        let went = all.entry(container).or_default();
        went.shown = went.shown.max(expired);
        went.shown
    }

    /// Forgets containers that are no more.
    fn keep(&self, containers: &HashSet<u32>) {
        self.lock().retain(|container, _| containers.contains(container));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Went>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts what a write buried when it is dropped, which is after the write was
/// published.
pub(crate) struct Graves {
    pub(crate) gone: Arc<Gone>,
    pub(crate) bucket: Bucket,
    pub(crate) items: usize,
}

impl Drop for Graves {
    fn drop(&mut self) {
        self.gone.buried(self.bucket, self.items);
    }
}

impl Engine {
    /// How the first `limit` containers stand, all at one time.
    pub fn container_figures(&self, limit: usize) -> Result<AllFigures> {
        let (purged, buried) = (self.shared.purge.all_purged(), self.shared.gone.all_buried());
        let snapshot = self.shared.store.snapshot().map_err(storage_failed)?;
        let snapshot = &*snapshot;
        let there: HashSet<u32> = self
            .shared
            .store
            .buckets()
            .into_iter()
            .filter(|bucket| !State::of(&snapshot.head(*bucket)).deleted)
            .filter_map(keys::container_of)
            .collect();
        self.shared.gone.keep(&there);
        let mut containers = Vec::new();
        for (container, record) in named(snapshot, limit)? {
            let figures = ttl::figures(snapshot, &record)?;
            let of = |counts: &HashMap<u32, u64>| counts.get(&record.number).copied().unwrap_or(0);
            let expired = of(&purged) + of(&buried) + figures.dead.items;
            let now = Timestamp(snapshot.now());
            containers.push(ContainerFigures {
                container,
                live: figures.live,
                dead: figures.dead,
                oldest_dead_seconds: figures.oldest_dead.map_or(0, |at| now.0.saturating_sub(at.0)),
                uninterpretable: figures.uninterpretable,
                expired: self.shared.gone.shown(record.number, expired),
                purged: of(&purged),
            });
        }
        let left_out = there.len().saturating_sub(containers.len());
        Ok(AllFigures { containers, left_out })
    }
}

/// How many items are dead and still there, in the first `limit` containers.
pub(crate) fn dead_items(shared: &Shared, limit: usize) -> Result<u64> {
    let snapshot = shared.store.snapshot().map_err(storage_failed)?;
    let containers = named(&*snapshot, limit)?;
    let mut dead = containers
        .iter()
        .map(|(_, record)| ttl::figures(&*snapshot, record).map(|figures| figures.dead.items));
    dead.try_fold(0, |sum: u64, items| Ok(sum + items?))
}

/// The first `limit` containers, with their names.
pub(crate) fn named(
    snapshot: &dyn Snapshot,
    limit: usize,
) -> Result<Vec<(String, ContainerRecord)>> {
    let rows = snapshot
        .scan(keys::CATALOG, &keys::all_containers(), Direction::Forward, limit)
        .map_err(storage_failed)?;
    let mut databases: HashMap<u32, String> = HashMap::new();
    let mut named = Vec::with_capacity(rows.len());
    for (_, row) in rows {
        let record: ContainerRecord = catalog::decode(&row)?;
        let database = match databases.entry(record.database) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let name = snapshot
                    .get(keys::CATALOG, &keys::database_name(record.database))
                    .map_err(storage_failed)?
                    .unwrap_or_default();
                unknown.insert(String::from_utf8_lossy(&name).into_owned())
            }
        };
        named.push((format!("{database}/{}", record.definition.id), record));
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_expired_is_never_shown_as_less() {
        let gone = Gone::default();
        for (counted, shown) in [(5, 5), (4, 5), (6, 6)] {
            assert_eq!(gone.shown(1, counted), shown);
        }
    }

    #[test]
    fn nobody_is_counted_for_ever() {
        let gone = Gone::default();
        gone.buried(keys::bucket(1, 0), 1);
        gone.buried(keys::bucket(2, 0), 1);
        gone.buried(keys::bucket(2, 1), 1);
        gone.keep(&HashSet::from([2]));
        assert_eq!(gone.all_buried(), HashMap::from([(2, 2)]));
        for container in 1..=100_001 {
            gone.buried(keys::bucket(container, 0), 1);
        }
        assert!(gone.lock().len() <= COUNTED_MAX);
    }
}
