//! Partitions whose items were deleted all at once.
//!
//! However many they are, the delete is one row: items of the partition that were made
//! before it are dead from that commit on, for everybody and for ever, since a number is
//! never given out twice. The purge removes them later, and then the row. Until then the
//! bucket's head says that there are such rows, so that whoever asks who is dead knows
//! to look for them, and nobody else pays for it.
//!
//! ```text
//! w <partition>   -> <before:8> <done:8> <canonical key>
//! ```

use bytes::{Buf, BufMut, Bytes};
use dayfly_storage::{Bucket, Direction, Error, Head, Pair, Result, Snapshot};

use crate::head::State;
use crate::keys;

/// How many partitions of a bucket may wait for the purge. Who reads has to know all of
/// them.
pub(crate) const PENDING_MAX: u32 = 256;

/// A partition whose items were deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeletedPartition {
    /// As keys have it.
    pub(crate) partition: Bytes,
    /// The canonical partition key, as records have it.
    pub(crate) key: Bytes,
    /// Items with a lower number are dead.
    pub(crate) before: u64,
    /// Items with a lower number are removed already.
    pub(crate) done: u64,
}

impl DeletedPartition {
    pub(crate) fn decode(key: &Bytes, row: &Bytes) -> Result<DeletedPartition> {
        let broken = || Error::Corrupt("a deleted partition".to_owned());
        Self::read(key, row).ok_or_else(broken)
    }

    fn read(key: &Bytes, row: &Bytes) -> Option<DeletedPartition> {
        let partition = key.slice_ref(keys::of_deleted_partition(key)?);
        let mut rest: &[u8] = row;
        let (before, done) = (rest.try_get_u64().ok()?, rest.try_get_u64().ok()?);
        Some(DeletedPartition { partition, key: row.slice_ref(rest), before, done })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(16 + self.key.len());
        row.put_u64(self.before);
        row.put_u64(self.done);
        row.put_slice(&self.key);
        row
    }
}

/// The deleted partitions of a bucket.
pub(crate) fn all(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    head: &Head,
) -> Result<Vec<DeletedPartition>> {
    if State::of(head).partitions.pending == 0 {
        return Ok(Vec::new());
    }
    let limit = usize::try_from(PENDING_MAX).unwrap_or(usize::MAX);
    let rows =
        snapshot.scan(bucket, &keys::deleted_partitions(), Direction::Forward, limit)?.into_iter();
    rows.map(|(key, row): Pair| DeletedPartition::decode(&key, &row)).collect()
}
