//! Partitions whose items were deleted all at once.
//!
//! However many they are, the delete is one row: items of the partition that were made
//! before it are dead from that commit on, for everybody and for ever, since a number is
//! never given out twice. The purge removes them later, and then the row. Until then the
//! bucket's head says that there are such rows, so that whoever asks who is dead knows
//! to look for them, and nobody else pays for it.
//!
//! ```text
//! w <partition>   -> <before:8> <done:8> <canonical key> [<before:8> <second:8>]*
//! ```
//!
//! Where there is a log, the row also says when: an item that would have expired later is
//! told as deleted, and one that had expired before is told as that.

use bytes::{Buf, BufMut, Bytes};
use dayfly_model::Timestamp;
use dayfly_model::partition_key::PartitionKey;
use dayfly_storage::{Bucket, Direction, Error, Head, Pair, Result, Snapshot};

use crate::head::State;
use crate::keys;

/// How many partitions of a bucket may wait for the purge. Who reads has to know all of
/// them.
pub(crate) const PENDING_MAX: u32 = 256;

/// How often a partition may be deleted, where there is a log, before the purge has come to
/// it: it says of each time when that was.
pub(crate) const AGAIN_MAX: usize = 64;

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
    /// Items with a lower number than the first had been deleted at that second, others by
    /// the next of these.
    pub(crate) times: Vec<(u64, Timestamp)>,
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
        let (_, mut behind) = PartitionKey::read_canonical(rest)?;
        let key = rest.get(..rest.len() - behind.len())?;
        let mut times = Vec::with_capacity(behind.len() / 16);
        while !behind.is_empty() {
            times.push((behind.try_get_u64().ok()?, Timestamp(behind.try_get_u64().ok()?)));
        }
        Some(DeletedPartition { partition, key: row.slice_ref(key), before, done, times })
    }

    /// When an item that is dead with it was deleted; 0 if nobody knows.
    pub(crate) fn deleted_at(&self, docno: u64) -> Timestamp {
        let known = self.times.iter().find(|(before, _)| docno < *before);
        known.map_or(Timestamp(0), |(_, at)| *at)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(16 + self.key.len());
        row.put_u64(self.before);
        row.put_u64(self.done);
        row.put_slice(&self.key);
        for (before, at) in &self.times {
            row.put_u64(*before);
            row.put_u64(at.0);
        }
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
