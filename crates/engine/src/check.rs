//! Is what is stored whole? Every item has its entries, every entry its item.
//!
//! The crash loop and the random histories ask this after each crash; it reads
//! everything, so nothing else does.

use std::collections::HashMap;

use dayfly_model::partition_key::PartitionKey;
use dayfly_model::{Error, ErrorKind, Result};
use dayfly_storage::{Batch, Bucket, Direction, Snapshot};

use crate::catalog::{self, CatalogView, Container, ContainerRecord, Database};
use crate::head::State;
use crate::keys::{self, ItemKey};
use crate::record::{Record, lsn_of};
use crate::reply::storage_failed;
use crate::{Engine, items};

/// How many keys are read at once.
const CHUNK: usize = 1000;

/// What a check looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Containers.
    pub containers: usize,
    /// Items, expired ones too.
    pub items: usize,
}

impl Engine {
    /// Reads everything and compares it with itself. The error names the first
    /// thing that does not fit.
    pub fn check(&self) -> Result<Checked> {
        let snapshot = self.shared.store.snapshot().map_err(storage_failed)?;
        let snapshot = &*snapshot;
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
                    checked.items += bucket_is_whole(snapshot, &container, bucket)?;
                }
            }
        }
        Ok(checked)
    }
}

/// Makes every row anew from the items, and compares.
fn bucket_is_whole(
    snapshot: &dyn Snapshot,
    container: &Container,
    bucket: Bucket,
) -> Result<usize> {
    let head = snapshot.head(bucket);
    let state = State::of(&head);
    if state.epoch != container.record.epoch || state.policy.default != container.definition().ttl {
        return Err(broken(bucket, "the head does not have the container's definition"));
    }
    let mut rows = HashMap::new();
    let mut made = Batch::default();
    let mut items = 0;
    let mut range = keys::everything();
    loop {
        let pairs =
            snapshot.scan(bucket, &range, Direction::Forward, CHUNK).map_err(storage_failed)?;
        let Some((last, _)) = pairs.last() else { break };
        range.start = [&last[..], &[0]].concat();
        for (key, value) in pairs {
            if let Some(item) = ItemKey::of_record(&key) {
                let record = Record::decode(value.clone()).map_err(storage_failed)?;
                if lsn_of(record.version) > head.lsn || record.ts.0 > head.ts {
                    return Err(broken(bucket, "an item is newer than the head"));
                }
                check_place(container, bucket, &item, &record)?;
                record.put(&mut made, &item.partition(record.id()), &item);
                items += 1;
            }
            rows.insert(key, value);
        }
    }
    rows.remove(&keys::purge_cursor()[..]);
    for (key, value) in made.rows() {
        match (rows.remove(key), value) {
            (Some(stored), Some(value)) if stored == *value => {}
            _ => return Err(broken(bucket, &format!("a row of an item is missing: {key:?}"))),
        }
    }
    match rows.into_keys().next() {
        Some(key) => Err(broken(bucket, &format!("a row without an item: {key:?}"))),
        None => Ok(items),
    }
}

/// An item stands where its partition key and id say.
fn check_place(
    container: &Container,
    bucket: Bucket,
    item: &ItemKey,
    record: &Record,
) -> Result<()> {
    let key = PartitionKey::from_canonical(record.partition_key())
        .ok_or_else(|| broken(bucket, "an item's partition key cannot be read"))?;
    let spot = items::Spot::new(container, &key, record.id().to_vec());
    if spot.key != *item || spot.bucket != bucket {
        return Err(broken(bucket, "an item stands in another one's place"));
    }
    Ok(())
}

fn broken(bucket: Bucket, what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("Bucket {}: {what}.", bucket.0))
}
