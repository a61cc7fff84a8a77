//! Is what is stored whole? Every item has its entries, every entry its item.
//!
//! The crash loop and the random histories ask this after each crash; it reads
//! everything, so nothing else does. The life histogram of one bucket is
//! recounted by itself, in the background after a start.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::{Error, ErrorKind, Result};
use dayfly_storage::{Batch, Bucket, Direction, Head, KeyRange, Pair, Snapshot};

use crate::catalog::{self, CatalogView, Container, ContainerRecord, Database};
use crate::head::State;
use crate::index::{self, Index};
use crate::keys;
use crate::lives::Recounted;
use crate::log::{self, Event, LogRow, Telling};
use crate::record::{FeedRow, Record};
use crate::reply::storage_failed;
use crate::shared::Shared;
use crate::version::lsn_of;
use crate::{encryption_keys, figures, items};

/// How many keys are read at once.
const CHUNK: usize = 1000;

/// How much may be written during a recount: until its snapshot is closed, the
/// engine keeps in memory and on disk what was overwritten since.
const OVERTAKEN_BYTES: u64 = 32 * 1024 * 1024;

/// What a check looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Containers.
    pub containers: usize,
    /// Items, expired ones too.
    pub items: usize,
}

/// Reads everything and compares it with itself. The error names the first
/// thing that does not fit.
pub(crate) fn everything(shared: &Shared) -> Result<Checked> {
    let snapshot = shared.store.snapshot().map_err(storage_failed)?;
    let snapshot = &*snapshot;
    if !encryption_keys::are_whole(snapshot)? {
        return Err(broken(keys::CATALOG, "the client encryption keys do not fit their names"));
    }
    let mut checked = Checked::default();
    for (_, row) in
        CatalogView::scan(snapshot, &keys::databases(), usize::MAX).map_err(storage_failed)?
    {
        let database: Database = catalog::decode(&row)?;
        let rows = CatalogView::scan(snapshot, &keys::containers(database.number), usize::MAX)
            .map_err(storage_failed)?;
        for (_, row) in rows {
            let record: ContainerRecord = catalog::decode(&row)?;
            let container = Container::new(&database, record);
            checked.containers += 1;
            for bucket in container.buckets() {
                checked.items += bucket_is_whole(snapshot, &shared.index, &container, bucket)?;
            }
        }
    }
    Ok(checked)
}

/// Makes every row anew from the items, and compares.
fn bucket_is_whole(
    snapshot: &dyn Snapshot,
    known: &Index,
    container: &Container,
    bucket: Bucket,
) -> Result<usize> {
    let head = snapshot.head(bucket);
    let state = State::of(&head);
    let installed = state.policy.pending.map_or(state.policy.default, |pending| pending.default);
    if state.epoch != container.record.epoch || installed != container.definition().ttl {
        return Err(broken(bucket, "the head does not have the container's definition"));
    }
    let get = |key: &[u8]| snapshot.get(bucket, key);
    let policies = known.policies(bucket, &get).map_err(storage_failed)?;
    let mut rows = HashMap::new();
    let mut made = Batch::default();
    let mut touched = HashSet::new();
    let mut stored = HashMap::new();
    let mut range = keys::everything();
    while let Some(pairs) = chunk(snapshot, bucket, &mut range)? {
        for (key, value) in pairs {
            if let Some(docno) = keys::item_number(&key) {
                let record = Record::decode(value.clone()).map_err(storage_failed)?;
                if lsn_of(record.version) > head.lsn || record.ts.0 > head.ts {
                    return Err(broken(bucket, "an item is newer than the head"));
                }
                let spot = check_place(container, bucket, docno, &record)?;
                let indexed = policies.of_stored(&record, &get).map_err(storage_failed)?;
                record.put(&mut made, &spot.partition, &spot.key, &indexed, &Telling::NOTHING);
                if record.is_touched {
                    touched.insert(record.docno);
                }
                stored.insert(record.docno, record.version);
            }
            rows.insert(key, value);
        }
    }
    let deleted = rows.keys().filter(|key| keys::of_deleted_partition(key).is_some()).count();
    if deleted != usize::try_from(state.partitions.pending).unwrap_or(usize::MAX) {
        return Err(broken(bucket, "the head does not know its deleted partitions"));
    }
    rows.retain(|key, _| keys::of_deleted_partition(key).is_none());
    check_log(bucket, &head, &take_log(&mut rows, bucket)?, &stored)?;
    for other in [
        keys::purge_cursor(),
        keys::policy_history(),
        keys::index_policies(),
        keys::index_rebuilt(),
    ] {
        rows.remove(&other[..]);
    }
    for (key, tally) in made.tallies() {
        if tally.encode() != rows.remove(key) {
            return Err(broken(bucket, &format!("the figures are wrong: {key:?}")));
        }
    }
    for (key, value) in made.rows() {
        match (rows.remove(key), value) {
            (Some(stored), Some(value)) if stored == *value => {}
            (Some(stored), Some(value))
                if keys::is_indexed(key)
                    && keys::entry_owner(key).is_some_and(|docno| touched.contains(&docno))
                    && index::fits(&stored, value) => {}
            _ => return Err(broken(bucket, &format!("a row of an item is missing: {key:?}"))),
        }
    }
    match rows.into_keys().next() {
        Some(key) => Err(broken(bucket, &format!("a row without an item: {key:?}"))),
        None => Ok(stored.len()),
    }
}

/// The rows of the log, and up to which commit it is trimmed.
struct StoredLog {
    rows: BTreeMap<Bytes, LogRow>,
    trimmed: u64,
}

/// Takes the log out of the rows of a bucket.
fn take_log(rows: &mut HashMap<Bytes, Bytes>, bucket: Bucket) -> Result<StoredLog> {
    let trimmed = match rows.remove(&keys::log_trimmed()[..]) {
        Some(row) => row.as_ref().try_into().map(u64::from_be_bytes),
        None => Ok(0),
    };
    let trimmed = trimmed.map_err(|_| broken(bucket, "nobody knows how far the log is trimmed"))?;
    let keys: Vec<Bytes> =
        rows.keys().filter(|key| keys::log_lsn(key).is_some()).cloned().collect();
    let mut log = BTreeMap::new();
    for key in keys {
        let row = rows.remove(&key).unwrap_or_default();
        let row = LogRow::decode(&key, &row).map_err(storage_failed)?;
        log.insert(key, row);
    }
    Ok(StoredLog { rows: log, trimmed })
}

/// What the log tells last of each item is what is there, and nothing that is there is left
/// out.
fn check_log(
    bucket: Bucket,
    head: &Head,
    log: &StoredLog,
    stored: &HashMap<u64, u64>,
) -> Result<()> {
    let Some(state) = State::of(head).log else {
        return if log.rows.is_empty() { Ok(()) } else { Err(broken(bucket, "a log that is off")) };
    };
    if !state.is_on() {
        return Ok(());
    }
    let from = state.after.max(log.trimmed);
    let is_told =
        |version: u64| lsn_of(version) <= from || log.rows.contains_key(&log::key_of(version)[..]);
    let mut last: HashMap<u64, Option<u64>> = HashMap::new();
    for row in log.rows.values().filter(|row| row.lsn > state.after) {
        if row.lsn > head.lsn || row.ts.0 > head.ts {
            return Err(broken(bucket, "the log tells what has not happened"));
        }
        if row.previous.is_some_and(|previous| !is_told(previous)) {
            return Err(broken(bucket, "the log does not tell what was before"));
        }
        let known = match &row.event {
            Event::Created(record) | Event::Replaced(record) => {
                last.insert(record.docno, Some(record.version)).map(|_| record.docno)
            }
            Event::Ended(ended) => last.insert(ended.docno, None).map(|_| ended.docno),
        };
        if matches!(row.event, Event::Created(_)) && known.is_some() {
            return Err(broken(bucket, "the log tells of an item twice that it came"));
        }
    }
    let is_last = |(docno, version): (&u64, &Option<u64>)| stored.get(docno) == version.as_ref();
    if !last.iter().all(is_last) {
        return Err(broken(bucket, "the log tells of an item what is not so"));
    }
    if !stored.values().all(|version| is_told(*version)) {
        return Err(broken(bucket, "the log leaves out an item"));
    }
    Ok(())
}

/// What a recount found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recount {
    /// The histogram counts what is there.
    Right,
    /// It does not.
    Wrong {
        /// In which container, by name.
        container: String,
    },
    /// There was nothing to recount, or not the time for it.
    LeftOut,
    /// Too much was written meanwhile; another time.
    Overtaken,
}

/// How many recounts ended how, since the start.
#[derive(Debug, Default)]
pub struct Recounts {
    /// The figures were right.
    pub right: AtomicU64,
    /// They were wrong.
    pub wrong: AtomicU64,
    /// There was none.
    pub left_out: AtomicU64,
    /// What is stored could not be read.
    pub failed: AtomicU64,
}

impl Recounts {
    fn note(&self, outcome: &Result<Recount>) {
        let counter = match outcome {
            Ok(Recount::Right) => &self.right,
            Ok(Recount::Wrong { .. }) => &self.wrong,
            Ok(Recount::LeftOut | Recount::Overtaken) => &self.left_out,
            Err(_) => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts the items of a bucket, which are all in its feed, and compares with
/// its life histogram. `pick` chooses the bucket; between two chunks `rest` is called, and
/// ends the recount by saying `false`.
pub(crate) fn recount(
    shared: &Shared,
    recounts: &Recounts,
    pick: u64,
    rest: impl FnMut() -> bool,
) -> Result<Recount> {
    let outcome = recount_one(shared, pick, rest);
    recounts.note(&outcome);
    outcome
}

fn recount_one(shared: &Shared, pick: u64, mut rest: impl FnMut() -> bool) -> Result<Recount> {
    let snapshot = shared.store.snapshot().map_err(storage_failed)?;
    let snapshot = &*snapshot;
    let mut buckets = shared.store.buckets();
    buckets.retain(|bucket| {
        keys::container_of(*bucket).is_some() && !State::of(&snapshot.head(*bucket)).deleted
    });
    let place = pick.checked_rem(buckets.len() as u64);
    let place = place.and_then(|place| usize::try_from(place).ok());
    let Some(bucket) = place.and_then(|place| buckets.get(place).copied()) else {
        return Ok(Recount::LeftOut);
    };
    let written = || shared.store.hints().written_bytes();
    let most = written().saturating_add(OVERTAKEN_BYTES);
    let mut goes_on = || match (rest(), written() <= most) {
        (true, true) => None,
        (true, false) => Some(Ok(Recount::Overtaken)),
        (false, _) => Some(Ok(Recount::LeftOut)),
    };
    let get = |key: &[u8]| snapshot.get(bucket, key);
    let mut recounted = Recounted::default();
    let mut range = keys::feed_after(0);
    while let Some(pairs) = chunk(snapshot, bucket, &mut range)? {
        for (key, value) in pairs {
            let row = FeedRow::decode(&key, &value).map_err(storage_failed)?;
            recounted.add(row.life, row.ts, row.bytes);
        }
        if let Some(ended) = goes_on() {
            return ended;
        }
    }
    let mut fits = true;
    let mut range = keys::all_lives();
    while let Some(pairs) = chunk(snapshot, bucket, &mut range)? {
        for (key, row) in pairs {
            fits &= recounted.fits(&key, &row, &get).map_err(storage_failed)?;
        }
        if let Some(ended) = goes_on() {
            return ended;
        }
    }
    if fits && recounted.is_whole() {
        return Ok(Recount::Right);
    }
    let number = keys::container_of(bucket).unwrap_or_default();
    let mut names = figures::named(snapshot, usize::MAX)?.into_iter();
    let found = names.find(|(_, record)| record.number == number);
    Ok(Recount::Wrong { container: found.map(|(name, _)| name).unwrap_or_default() })
}

/// The next rows of `range`, which moves on; `None` at its end.
fn chunk(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    range: &mut KeyRange,
) -> Result<Option<Vec<Pair>>> {
    let pairs = snapshot.scan(bucket, range, Direction::Forward, CHUNK).map_err(storage_failed)?;
    let Some((last, _)) = pairs.last() else { return Ok(None) };
    range.go_behind(last);
    Ok(Some(pairs))
}

/// Where an item stands, if that is where its number and its partition key say.
fn check_place(
    container: &Container,
    bucket: Bucket,
    docno: u64,
    record: &Record,
) -> Result<items::Spot> {
    let key = PartitionKey::from_canonical(record.partition_key())
        .ok_or_else(|| broken(bucket, "an item's partition key cannot be read"))?;
    let spot = items::Spot::new(container, &key, record.id().to_vec());
    if record.docno != docno || spot.bucket != bucket {
        return Err(broken(bucket, "an item stands in another one's place"));
    }
    Ok(spot)
}

fn broken(bucket: Bucket, what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("Bucket {}: {what}.", bucket.0))
}
