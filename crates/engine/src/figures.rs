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

use dayfly_model::{Result, Timestamp};
use dayfly_storage::tally::Count;
use dayfly_storage::{Direction, Pair, Snapshot};

use crate::catalog::{self, ContainerRecord};
use crate::head::State;
use crate::reply::storage_failed;
use crate::shared::Shared;
use crate::{keys, standing};

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

/// How the first `limit` containers stand, all at one time. `purged` says how many items
/// the purge has removed from each, as of a moment before this one.
pub(crate) fn of_containers(
    shared: &Shared,
    purged: &HashMap<u32, u64>,
    limit: usize,
) -> Result<AllFigures> {
    let buried = shared.burials.all_buried();
    let snapshot = shared.store.snapshot().map_err(storage_failed)?;
    let snapshot = &*snapshot;
    let there: HashSet<u32> = shared
        .store
        .buckets()
        .into_iter()
        .filter(|bucket| !State::of(&snapshot.head(*bucket)).deleted)
        .filter_map(keys::container_of)
        .collect();
    shared.burials.keep(&there);
    let mut containers = Vec::new();
    for (container, record) in named(snapshot, limit)? {
        let figures = standing::figures(snapshot, &record)?;
        let of = |counts: &HashMap<u32, u64>| counts.get(&record.number).copied().unwrap_or(0);
        let expired = of(purged) + of(&buried) + figures.dead.items;
        let now = Timestamp(snapshot.now());
        containers.push(ContainerFigures {
            container,
            live: figures.live,
            dead: figures.dead,
            oldest_dead_seconds: figures.oldest_dead.map_or(0, |at| now.0.saturating_sub(at.0)),
            uninterpretable: figures.uninterpretable,
            expired: shared.burials.shown(record.number, expired),
            purged: of(purged),
        });
    }
    let left_out = there.len().saturating_sub(containers.len());
    Ok(AllFigures { containers, left_out })
}

/// How many items are dead and still there, in the first `limit` containers.
pub(crate) fn dead_items(shared: &Shared, limit: usize) -> Result<u64> {
    let snapshot = shared.store.snapshot().map_err(storage_failed)?;
    let containers = named(&*snapshot, limit)?;
    let mut dead = containers
        .iter()
        .map(|(_, record)| standing::figures(&*snapshot, record).map(|figures| figures.dead.items));
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
    let named = with_databases(snapshot, &rows)?.into_iter();
    Ok(named.map(|(of, record)| (format!("{of}/{}", record.definition.id), record)).collect())
}

/// The containers in rows of the catalog, each with the name of its database.
pub(crate) fn with_databases(
    snapshot: &dyn Snapshot,
    rows: &[Pair],
) -> Result<Vec<(String, ContainerRecord)>> {
    let mut databases: HashMap<u32, String> = HashMap::new();
    let mut named = Vec::with_capacity(rows.len());
    for (_, row) in rows {
        let record: ContainerRecord = catalog::decode(row)?;
        let database = match databases.entry(record.database) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(database_name(snapshot, record.database)?),
        };
        named.push((database.clone(), record));
    }
    Ok(named)
}

/// The name of a database.
pub(crate) fn database_name(snapshot: &dyn Snapshot, number: u32) -> Result<String> {
    let name = snapshot.get(keys::CATALOG, &keys::database_name(number)).map_err(storage_failed)?;
    Ok(String::from_utf8_lossy(&name.unwrap_or_default()).into_owned())
}
