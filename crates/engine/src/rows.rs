//! All rows of an item: how they come, change and go, in one commit.
//!
//! An item has a record, a row for its id, one in the order of its partition, one in the
//! feed, one in the queue if it has a `ttl`, one for each unique key, and its entries in
//! the index; and it is counted. Where there is a log, what happens to it is told there.
//! Everything that writes or removes items does it here, so that none of them is
//! forgotten.

use dayfly_model::ttl::Life;
use dayfly_storage::Batch;
use dayfly_storage::tally::Change;

use crate::index::{self, Difference, Indexed, Owner};
use crate::keys::{self, EntryKind, ItemKey, Partition};
use crate::liveness::Ending;
use crate::lives::{CountedItem, Tallied};
use crate::log::{Ended, Telling};
use crate::record::{FeedRow, Record};

impl Record {
    /// Writes this version as a new item.
    pub(crate) fn put(
        &self,
        batch: &mut Batch,
        partition: &Partition,
        key: &ItemKey,
        indexed: &Indexed,
        told: &Telling,
    ) {
        told.version(batch, self, partition, None);
        self.put_whole(batch, partition, key, indexed);
    }

    fn put_whole(
        &self,
        batch: &mut Batch,
        partition: &Partition,
        key: &ItemKey,
        indexed: &Indexed,
    ) {
        self.put_version(batch, partition, key);
        indexed.put(batch, &Owner::of(self, partition));
        batch.put(key.number().to_vec(), self.docno.to_be_bytes().to_vec());
        for unique in self.unique_keys(partition) {
            batch.put(unique, self.id().to_vec());
        }
    }

    /// Whether the next version of the item, with this life, is touched: it keeps
    /// entries of this one, and not all of them surely have its own life stamp.
    pub(crate) fn is_touched_by(&self, life: Life, difference: &Difference) -> bool {
        let is_earlier = self.is_touched || self.life != life;
        is_earlier && !index::outlives(self.life, life) && difference.shares_any()
    }

    /// Writes this version over `old`, and what changes in the index. Entries that
    /// stay as they are, are not written again.
    pub(crate) fn put_over(
        &self,
        old: &Record,
        batch: &mut Batch,
        partition: &Partition,
        key: &ItemKey,
        difference: &Difference,
        told: &Telling,
    ) {
        told.version(batch, self, partition, Some(old.version));
        let mut gone = Tallied::default();
        FeedRow::of(old, key).remove_version(batch, &mut gone);
        gone.write(batch, Change::Less);
        self.put_version(batch, partition, key);
        let again = index::outlives(old.life, self.life);
        difference.put(again, batch, &Owner::of(self, partition));
        let before = old.unique_keys(partition);
        let after = self.unique_keys(partition);
        for gone in before.iter().filter(|unique| !after.contains(unique)) {
            batch.delete(gone.clone());
        }
        for new in after.into_iter().filter(|unique| !before.contains(unique)) {
            batch.put(new, self.id().to_vec());
        }
    }

    /// Writes this version as `old` under another id. What says where the item
    /// stands is removed and written again: the last word on a row counts.
    pub(crate) fn put_moved(
        &self,
        (old, before, from): (&Record, &Indexed, &ItemKey),
        batch: &mut Batch,
        partition: &Partition,
        key: &ItemKey,
        indexed: &Indexed,
        told: &mut Telling,
    ) {
        told.version(batch, self, partition, Some(old.version));
        let mut gone = Tallied::default();
        FeedRow::of(old, from).bury(batch, &mut gone, before, None, told);
        gone.write(batch, Change::Less);
        self.put_whole(batch, partition, key, indexed);
    }

    /// Buries the item, which stands at `key`, and tells what ended it.
    pub(crate) fn bury(
        &self,
        batch: &mut Batch,
        key: &ItemKey,
        indexed: &Indexed,
        end: Ending,
        told: &mut Telling,
    ) {
        let mut gone = Tallied::default();
        let ended = Ended { end, partition_key: self.partition_key() };
        FeedRow::of(self, key).bury(batch, &mut gone, indexed, Some(&ended), told);
        gone.write(batch, Change::Less);
    }

    /// What it is counted by.
    pub(crate) fn counted(&self) -> CountedItem {
        CountedItem { life: self.life, ts: self.ts, bytes: self.bytes() }
    }

    /// The row in the partition is written with each version, and so has its life stamp and
    /// its size: with any policy there is one entry that knows, and items that are deleted
    /// with their partition can be told from the figures of all without being read.
    fn put_version(&self, batch: &mut Batch, partition: &Partition, key: &ItemKey) {
        let row = FeedRow::of(self, key);
        batch.put(keys::item(self.docno), self.stored());
        let ordered = keys::entry(EntryKind::Partition, partition.bytes(), self.docno);
        batch.put(ordered, self.counted().encode());
        batch.put(keys::feed(self.version), row.encode());
        if let Some(due) = row.due() {
            batch.put(due, "");
        }
        let mut new = Tallied::default();
        new.add(self.life, self.ts, row.bytes);
        new.write(batch, Change::More);
        if self.is_touched {
            batch.add(keys::touched(), 0, Change::More(index::ONE));
        }
    }

    fn unique_keys(&self, partition: &Partition) -> Vec<Vec<u8>> {
        unique_keys(&self.unique, partition)
    }
}

fn unique_keys(hashes: &[[u8; 16]], partition: &Partition) -> Vec<Vec<u8>> {
    (0u8..).zip(hashes).map(|(place, hash)| partition.unique(place, hash)).collect()
}

impl FeedRow {
    /// The one way an item dies: with its record go all of its entries, those in
    /// the index too, and `gone` notes that it is to be counted no more.
    ///
    /// Purge calls this, deletes call it, and a write that meets an expired
    /// item calls it first, in its own commit. How it ended is told with it, if that is the
    /// end and somebody wants to know.
    pub(crate) fn bury(
        &self,
        batch: &mut Batch,
        gone: &mut Tallied,
        indexed: &Indexed,
        ended: Option<&Ended<'_>>,
        told: &mut Telling,
    ) {
        if let Some(ended) = ended {
            told.end(batch, self, ended);
        }
        let partition = self.partition();
        batch.delete(keys::item(self.docno));
        batch.delete(self.key.number().to_vec());
        batch.delete(keys::entry(EntryKind::Partition, partition.bytes(), self.docno));
        indexed.remove(batch, self.docno);
        self.remove_version(batch, gone);
        for unique in unique_keys(&self.unique, &partition) {
            batch.delete(unique);
        }
    }

    fn remove_version(&self, batch: &mut Batch, gone: &mut Tallied) {
        batch.delete(keys::feed(self.version));
        if let Some(due) = self.due() {
            batch.delete(due);
        }
        gone.add(self.life, self.ts, self.bytes);
        if self.is_touched {
            batch.add(keys::touched(), 0, Change::Less(index::ONE));
        }
    }
}
