//! Deletes all items of a partition key, however many they are: see `deleted.rs`.

use std::sync::Arc;

use bytes::Bytes;
use dayfly_model::charge::Charge;
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::{Batch, Bucket, Draft, Plan, Room, Stamp, View};

use crate::catalog::not_found;
use crate::deleted::{AGAIN_MAX, DeletedPartition, Deletion, PENDING_MAX};
use crate::head::{LogState, PartitionDeletes, State};
use crate::keys::{self, Partition};
use crate::reply::{Origin, Reply, Success, storage_failed};
use crate::scope::Opened;
use crate::shared::Shared;
use crate::version;

/// The plan for it.
pub(crate) struct DeletePartition {
    shared: Arc<Shared>,
    bucket: Bucket,
    place: Origin,
    partition: Partition,
    /// The canonical key.
    key: Bytes,
}

impl DeletePartition {
    /// The partition must be named by a whole key.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        opened: &Opened,
        key: Option<PartitionKey>,
    ) -> Result<DeletePartition> {
        let key = key.ok_or_else(|| {
            Error::bad_request(
                "Deleting all items of a partition key needs the header \
                 x-ms-documentdb-partitionkey.",
            )
        })?;
        let container = &opened.container;
        let key = key.fitted(&container.definition().partition_key)?;
        let epk = container.epk(&key);
        let canonical = key.canonical();
        let range = container.range(&epk).map(|range| Arc::clone(&range.id));
        Ok(DeletePartition {
            shared: Arc::clone(shared),
            bucket: container.bucket(&epk),
            place: container.place(range, None),
            partition: Partition::new(&epk, &canonical),
            key: canonical.into(),
        })
    }

    pub(crate) fn bucket(&self) -> Bucket {
        self.bucket
    }

    fn failed(&self, error: Error, view: &View<'_>) -> Reply {
        let place = Origin { lsn: Some(view.head().lsn), ..self.place.clone() };
        Reply::failed(error, Timestamp(view.now())).at(place)
    }
}

impl Plan for DeletePartition {
    type Done = Reply;
    type Refusal = Reply;

    /// Nothing is read but whether the partition is known already. The state of the head
    /// changes, so every draft that did not see this is made again.
    fn draft(&self, view: &View<'_>) -> Result<Draft<Reply>, Reply> {
        let state = State::of(view.head());
        if state.deleted || state.epoch == 0 {
            return Err(self.failed(not_found(ErrorKind::OwnerNotFound), view));
        }
        let row_key = Bytes::from(keys::deleted_partition(self.partition.bytes()));
        let known = view
            .get(&row_key)
            .and_then(|row| row.map(|row| DeletedPartition::decode(&row_key, &row)).transpose());
        let known = known.map_err(|error| self.failed(storage_failed(error), view))?;
        let PartitionDeletes { pending, .. } = state.partitions;
        if known.is_none() && pending >= PENDING_MAX {
            return Err(self.failed(too_many(), view));
        }
        let pending = if known.is_none() { pending + 1 } else { pending };
        let has_log = state.log.is_some_and(LogState::is_on);
        let (earlier, done, mut deletions) = known.map_or((None, 0, Vec::new()), |known| {
            (Some(known.before), known.done, known.deletions)
        });
        if has_log && deletions.len() >= AGAIN_MAX {
            return Err(self.failed(too_many(), view));
        }
        if let Some(earlier) = earlier.filter(|_| has_log && deletions.is_empty()) {
            deletions.push(Deletion::unknown(earlier));
        }
        let (partition, key) = (Bytes::copy_from_slice(self.partition.bytes()), self.key.clone());
        let (place, slice) = (self.place.clone(), keys::slice_of(self.bucket));
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            let before = version::docno(stamp, 0, slice);
            if has_log {
                let at = Timestamp(stamp.ts);
                deletions.push(Deletion { before, at, cuts: state.policy.cuts(at) });
            }
            let deleted = DeletedPartition { partition, key, before, done, deletions };
            batch.put(row_key.to_vec(), deleted.encode());
            let partitions = PartitionDeletes { pending, last: stamp.lsn };
            batch.set_state(State { partitions, ..state }.encode());
            let place = Origin { lsn: Some(stamp.lsn), ..place };
            Reply::ok(Success::new(200, ""), Timestamp(stamp.ts), Charge::MISS).at(place)
        }))
    }

    fn room(&self) -> Room {
        Room::Frees
    }

    /// The purge removes what is dead now.
    fn published(&self, reply: &Reply) {
        let lsn = reply.place.as_ref().and_then(|place| place.lsn);
        if let (Some(quotas), Some(lsn)) = (&self.shared.quotas, lsn) {
            quotas.emptied(self.bucket, &self.partition, lsn);
        }
        self.shared.deadlines.look_at(self.bucket);
    }

    fn doubtful(&self) {
        if let Some(quotas) = &self.shared.quotas {
            quotas.doubt();
        }
        self.shared.deadlines.look_at(self.bucket);
    }
}

fn too_many() -> Error {
    Error::new(
        ErrorKind::RetryWith,
        "Too many partition keys were deleted whose items are not removed yet. Try again later.",
    )
}
