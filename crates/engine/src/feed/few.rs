//! The changes of few items among very many others.
//!
//! Each item has a row in the order of its partition, whatever anybody else writes. Where the
//! partitions that are meant have few such rows, it costs less to ask each of these items
//! when it was written than to go over all that was written beside them.

use dayfly_model::{Result, Timestamp};
use dayfly_storage::Direction;

use super::{FeedCourse, FeedPage, PAGE_BYTES_MAX};
use crate::keys::{self, EntryKind};
use crate::liveness::Liveness;
use crate::lives::CountedItem;
use crate::record;
use crate::reply::storage_failed;
use crate::version;

/// The newest version of an item.
#[derive(Clone, Copy, Debug)]
pub(super) struct FewChange {
    version: u64,
    docno: u64,
    bytes: u64,
}

impl FeedPage<'_> {
    /// What is alive and was written behind a row of the feed, in the order of the feed.
    /// `None`: those who are meant are not few.
    pub(super) fn few_behind(
        &mut self,
        course: &FeedCourse,
        liveness: &Liveness,
        (behind, since): (u64, Timestamp),
    ) -> Result<Option<Vec<FewChange>>> {
        let (snapshot, bucket) = (&*self.opened.snapshot, course.bucket);
        let few = self.opened.limits.feed_few;
        let (mut asked, mut looked_at) = (Vec::new(), 0);
        for range in course.scope.ranges() {
            let range = keys::entries(EntryKind::Partition, 0, &range.start, &range.end);
            let limit = few + 1 - looked_at;
            let rows = snapshot.hints().scan_alive(bucket, &range, Direction::Forward, limit);
            let rows = rows.map_err(storage_failed)?;
            looked_at += rows.len();
            if looked_at > few {
                return Ok(None);
            }
            for (key, row) in &rows {
                let item = CountedItem::decode(row).map_err(storage_failed)?;
                let is_meant = |(partition, _): &(&[u8], u64)| course.scope.contains(partition);
                let place = keys::entry_parts(key).filter(is_meant);
                let place = place.filter(|_| item.ts >= since);
                asked.extend(place.map(|(_, docno)| (docno, item.bytes)));
            }
        }
        self.make_steps(looked_at)?;
        let mut found: Vec<FewChange> = Vec::new();
        while !asked.is_empty() {
            let numbers = take_some(&mut asked);
            let records = record::still_there(snapshot, bucket, &numbers, liveness);
            let records = records.map_err(storage_failed)?.into_iter();
            let change = |record: record::Record| {
                let (version, docno, bytes) = (record.version, record.docno, record.bytes());
                (version > behind).then_some(FewChange { version, docno, bytes })
            };
            found.extend(records.filter_map(change));
        }
        found.sort_unstable_by_key(|change| change.version);
        Ok(Some(found))
    }

    /// Shows these, until the page has enough. `true`: it ends here, and the course says where.
    pub(super) fn show_few(
        &mut self,
        course: &mut FeedCourse,
        few: &[FewChange],
        mut reading: u64,
    ) -> Result<bool> {
        let (mut numbers, mut is_over) = (Vec::new(), false);
        for FewChange { version, docno, bytes } in few {
            let lsn = version::lsn_of(*version);
            if lsn > reading && self.size.has_enough() {
                is_over = true;
                break;
            }
            reading = lsn;
            self.size.count += 1;
            self.size.bytes += bytes;
            numbers.push(*docno);
        }
        self.show_latest(course.bucket, &numbers)?;
        if is_over {
            course.after = reading;
        }
        Ok(is_over)
    }
}

/// Takes as many items as may be read at once: with their sizes, no more than a page has.
fn take_some(asked: &mut Vec<(u64, u64)>) -> Vec<u64> {
    let mut bytes = 0;
    let fits = |(_, size): &&(u64, u64)| {
        let fits = bytes < PAGE_BYTES_MAX;
        bytes += size;
        fits
    };
    let count = asked.iter().take_while(fits).count();
    asked.drain(..count).map(|(docno, _)| docno).collect()
}
