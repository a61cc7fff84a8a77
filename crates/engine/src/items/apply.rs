//! What was decided, in rows, with the stamp of the commit.
//!
//! This runs in the committer, for whom everybody waits: nothing is read or compared.

use dayfly_model::Timestamp;
use dayfly_model::ttl::ItemTtl;
use dayfly_storage::{Batch, Bucket, Stamp};

use super::decide::{Corpse, ItemChange, New};
use super::sight::Old;
use crate::keys::Partition;
use crate::liveness::Ending;
use crate::log::Telling;
use crate::quota::Shift;
use crate::record::{Record, Seal};
use crate::{keys, version};

/// The writes of a commit, as far as they are applied.
pub(super) struct Applied<'b> {
    stamp: Stamp,
    bucket: Bucket,
    batch: &'b mut Batch,
    /// What is told of it in the log.
    told: Telling,
    /// What each write made, in order.
    made: Vec<Option<Record>>,
    /// What each of them shows.
    shown: Vec<Option<Record>>,
    /// What they do in their partitions, if somebody has to know.
    moved: Option<Vec<(Partition, Shift)>>,
}

impl<'b> Applied<'b> {
    pub(super) fn new(stamp: Stamp, bucket: Bucket, has_log: bool, batch: &'b mut Batch) -> Self {
        let told = Telling::by(stamp, has_log);
        Applied { stamp, bucket, batch, told, made: Vec::new(), shown: Vec::new(), moved: None }
    }

    /// Somebody has to know what becomes of partitions.
    pub(super) fn count(&mut self) {
        self.moved = Some(Vec::new());
    }

    fn note(&mut self, partition: &Partition, gone: Option<&Record>, came: Option<&Record>) {
        if let Some(moved) = &mut self.moved {
            let (gone, came) = (gone.map(Record::counted), came.map(Record::counted));
            moved.push((partition.clone(), Shift::Item { gone, came }));
        }
    }

    /// Leaves out a write that was refused.
    pub(super) fn pass(&mut self) {
        self.made.push(None);
        self.shown.push(None);
    }

    /// Writes the rows of the next write.
    pub(super) fn apply(&mut self, corpses: &[Corpse], change: ItemChange) {
        self.told.turn_to(self.ordinal());
        for Corpse { record, key, indexed, end, .. } in corpses {
            record.bury(self.batch, key, indexed, *end, &mut self.told);
        }
        if let ItemChange::Nothing { shown } = change {
            self.made.push(None);
            self.shown.push(self.resolved(shown));
            return;
        }
        let made = self.change(change);
        self.made.push(made);
        self.shown.push(None);
    }

    /// The version that each write made or shows; a delete has none. And what became of
    /// partitions.
    pub(super) fn into_versions(self) -> (Vec<Option<Record>>, Vec<(Partition, Shift)>) {
        let versions = self.made.into_iter().zip(self.shown);
        let versions = versions.map(|(made, shown)| made.or(shown)).collect();
        (versions, self.moved.unwrap_or_default())
    }

    fn change(&mut self, change: ItemChange) -> Option<Record> {
        match change {
            ItemChange::Create(New { record, ttl, partition, key, indexed, .. }) => {
                let docno = version::docno(self.stamp, self.ordinal(), keys::slice_of(self.bucket));
                let record = record.seal(self.seal(ttl, docno));
                record.put(self.batch, &partition, &key, &indexed, &self.told);
                self.note(&partition, None, Some(&record));
                Some(record)
            }
            ItemChange::Replace { new, old, difference } => {
                let old = self.resolved(old)?;
                let mut seal = self.seal(new.ttl, old.docno);
                seal.is_touched = old.is_touched_by(seal.life, &difference);
                let record = new.record.seal(seal);
                let (partition, key) = (&new.partition, &new.key);
                record.put_over(&old, self.batch, partition, key, &difference, &self.told);
                self.note(partition, Some(&old), Some(&record));
                Some(record)
            }
            ItemChange::Move { new, old, before, from } => {
                let old = self.resolved(old)?;
                let New { record, ttl, partition, key, indexed, .. } = new;
                let record = record.seal(self.seal(ttl, old.docno));
                let (from, told) = ((&old, &before, &from), &mut self.told);
                record.put_moved(from, self.batch, &partition, &key, &indexed, told);
                self.note(&partition, Some(&old), Some(&record));
                Some(record)
            }
            ItemChange::Bury { old, spot, indexed } => {
                let old = self.resolved(old)?;
                old.bury(self.batch, &spot.key, &indexed, Ending::Deleted(None), &mut self.told);
                self.note(&spot.partition, Some(&old), None);
                None
            }
            ItemChange::Nothing { .. } => None,
        }
    }

    /// The place of the next write in its commit.
    fn ordinal(&self) -> u64 {
        self.made.len() as u64 + 1
    }

    /// What the commit adds to a record.
    fn seal(&self, ttl: ItemTtl, docno: u64) -> Seal {
        let (ts, opened) = (Timestamp(self.stamp.ts), self.stamp.opened);
        let version = version::version(self.stamp, self.ordinal());
        Seal { version, docno, ts, life: ttl.life(ts), opened, is_touched: false }
    }

    /// The record of an item that a write found. An earlier write of this commit has made
    /// it by now.
    fn resolved(&self, old: Old) -> Option<Record> {
        match old {
            Old::Stored(record) => Some(record),
            Old::Made(made) => self.made.get(made.place).cloned().flatten(),
        }
    }
}
