//! Partitions whose items were deleted all at once.
//!
//! However many they are, the delete is one row: items of the partition that were made
//! before it are dead from that commit on, for everybody and for ever, since a number is
//! never given out twice. The purge removes them later, and then the row. Until then the
//! bucket's head says that there are such rows, so that whoever asks who is dead knows
//! to look for them, and nobody else pays for it.
//!
//! ```text
//! w <partition>   -> <before:8> <done:8> <canonical key> <deletion>*
//!
//! <deletion> = <before:8> <second:8> <inherit cut:8> <explicit cut:8>
//! ```
//!
//! Where there is a log, the row also says when that was, and who was dead then: an item
//! that would have expired later is told as deleted, and one that had expired as that.

use bytes::{Buf, BufMut, Bytes};
use dayfly_model::Timestamp;
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::ttl::Cuts;
use dayfly_storage::{Bucket, Direction, Error, Head, KeyRange, Pair, Result, Snapshot};

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
    /// When it was deleted, once or again and again.
    pub(crate) deletions: Vec<Deletion>,
}

/// One time that the items of a partition were deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deletion {
    /// Items with a lower number were, as far as they had not been before.
    pub(crate) before: u64,
    pub(crate) at: Timestamp,
    /// Who had expired then.
    pub(crate) cuts: Cuts,
}

impl Deletion {
    /// One of which nobody knows when it was: there was no log.
    pub(crate) fn unknown(before: u64) -> Deletion {
        let cuts = Cuts { inherit: Timestamp(0), explicit: Timestamp(0) };
        Deletion { before, at: Timestamp(0), cuts }
    }

    fn read(rest: &mut &[u8]) -> Option<Deletion> {
        let before = rest.try_get_u64().ok()?;
        let mut second = || rest.try_get_u64().ok().map(Timestamp);
        let at = second()?;
        Some(Deletion { before, at, cuts: Cuts { inherit: second()?, explicit: second()? } })
    }

    fn write(&self, row: &mut Vec<u8>) {
        row.put_u64(self.before);
        row.put_u64(self.at.0);
        row.put_u64(self.cuts.inherit.0);
        row.put_u64(self.cuts.explicit.0);
    }
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
        let mut deletions = Vec::with_capacity(behind.len() / 32);
        while !behind.is_empty() {
            deletions.push(Deletion::read(&mut behind)?);
        }
        let key = row.slice_ref(key);
        Some(DeletedPartition { partition, key, before, done, deletions })
    }

    /// What ended an item that is dead with it; `None`: nobody knows when.
    pub(crate) fn deletion_of(&self, docno: u64) -> Option<&Deletion> {
        let found = self.deletions.iter().find(|deletion| docno < deletion.before);
        found.filter(|deletion| deletion.at.0 > 0)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(16 + self.key.len());
        row.put_u64(self.before);
        row.put_u64(self.done);
        row.put_slice(&self.key);
        self.deletions.iter().for_each(|deletion| deletion.write(&mut row));
        row
    }
}

/// The deleted partitions of a bucket.
pub(crate) fn all(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    head: &Head,
) -> Result<Vec<DeletedPartition>> {
    scanned(head, &|range, limit| snapshot.scan(bucket, range, Direction::Forward, limit))
}

/// The same, from whatever can be scanned.
pub(crate) fn scanned(
    head: &Head,
    scan: &dyn Fn(&KeyRange, usize) -> Result<Vec<Pair>>,
) -> Result<Vec<DeletedPartition>> {
    if State::of(head).partitions.pending == 0 {
        return Ok(Vec::new());
    }
    let limit = usize::try_from(PENDING_MAX).unwrap_or(usize::MAX);
    let rows = scan(&keys::deleted_partitions(), limit)?.into_iter();
    rows.map(|(key, row): Pair| DeletedPartition::decode(&key, &row)).collect()
}
