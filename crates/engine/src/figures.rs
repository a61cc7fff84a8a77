//! The figures of all containers at once, for those who watch the server.
//!
//! What has expired since the start is what the purge removed, what a write
//! buried because it wanted the id or a unique key, and what is dead and still
//! there. The first two are counted here; the third is a sum over the
//! [life histogram](crate::lives). The counts and the histogram are not read at
//! one moment, so the sum could be one less than it was before: the greatest
//! that was shown is remembered, because such a count must not fall.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dayfly_model::{Result, Timestamp};
use dayfly_storage::tally::Count;
use dayfly_storage::{Bucket, Direction, Snapshot};

use crate::catalog::{self, ContainerRecord};
use crate::head::State;
use crate::reply::storage_failed;
use crate::{Engine, keys, ttl};

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

/// How many expired items are gone since the start, by container.
#[derive(Default)]
pub(crate) struct Gone(Mutex<HashMap<u32, Went>>);

#[derive(Clone, Copy, Default)]
struct Went {
    purged: u64,
    buried: u64,
    /// The greatest count of expired items that was shown.
    shown: u64,
}

impl Gone {
    /// The purge has removed `items` from a bucket.
    pub(crate) fn purged(&self, bucket: Bucket, items: usize) {
        self.add(bucket, items, |went, items| went.purged += items);
    }

    /// A write has buried `items` that stood in its way.
    pub(crate) fn buried(&self, bucket: Bucket, items: usize) {
        self.add(bucket, items, |went, items| went.buried += items);
    }

    fn add(&self, bucket: Bucket, items: usize, add: impl FnOnce(&mut Went, u64)) {
        if items > 0
            && let Some(container) = keys::container_of(bucket)
        {
            let mut all = self.lock();
            if all.len() >= COUNTED_MAX {
                all.clear();
            }
            add(all.entry(container).or_default(), items as u64);
        }
    }

    /// How many were purged, and how many have expired if `dead` are still
    /// there.
    fn shown(&self, container: u32, dead: u64) -> (u64, u64) {
        let mut all = self.lock();
        let went = all.entry(container).or_default();
        went.shown = went.shown.max(went.purged + went.buried + dead);
        (went.purged, went.shown)
    }

    /// Forgets containers that are no more.
    fn keep(&self, containers: &HashSet<u32>) {
        self.lock().retain(|container, _| containers.contains(container));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Went>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// How the first `limit` containers stand, all at one time.
    pub fn container_figures(&self, limit: usize) -> Result<AllFigures> {
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
            let (purged, expired) = self.shared.gone.shown(record.number, figures.dead.items);
            let now = Timestamp(snapshot.now());
            containers.push(ContainerFigures {
                container,
                live: figures.live,
                dead: figures.dead,
                oldest_dead_seconds: figures.oldest_dead.map_or(0, |at| now.0.saturating_sub(at.0)),
                uninterpretable: figures.uninterpretable,
                expired,
                purged,
            });
        }
        let left_out = there.len().saturating_sub(containers.len());
        Ok(AllFigures { containers, left_out })
    }
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
        let bucket = keys::bucket(1, 0);
        assert_eq!(gone.shown(1, 5), (0, 5));
        gone.purged(bucket, 2);
        // The histogram was read before the purge was counted, or after it.
        assert_eq!(gone.shown(1, 2), (2, 5));
        gone.buried(bucket, 1);
        assert_eq!(gone.shown(1, 2), (2, 5));
        assert_eq!(gone.shown(1, 3), (2, 6));
    }

    #[test]
    fn nobody_is_counted_for_ever() {
        let gone = Gone::default();
        gone.purged(keys::bucket(1, 0), 1);
        gone.purged(keys::bucket(2, 0), 1);
        gone.keep(&HashSet::from([2]));
        assert_eq!((gone.shown(1, 0), gone.shown(2, 0)), ((0, 0), (1, 1)));
        for container in 1..=100_001 {
            gone.purged(keys::bucket(container, 0), 1);
        }
        assert!(gone.lock().len() <= COUNTED_MAX);
    }
}
