//! The newest version of each item that is alive, once, at the commit that wrote it.

use dayfly_model::Result;
use dayfly_storage::{Bucket, Direction};

use super::{CHUNK_MAX, CHUNK_MIN, FeedCourse, FeedPage};
use crate::index::Barren;
use crate::keys;
use crate::liveness::Liveness;
use crate::parts::Scope;
use crate::record::{self, FeedRow};
use crate::reply::storage_failed;
use crate::version;

impl FeedPage<'_> {
    /// Reads on in the feed of a bucket. `true`: the page ends here, and the course says
    /// where.
    pub(super) fn read_latest(&mut self, course: &mut FeedCourse) -> Result<bool> {
        let (snapshot, bucket) = (&*self.opened.snapshot, course.bucket);
        let liveness = Liveness::of(snapshot, bucket).map_err(storage_failed)?;
        let limits = &self.opened.limits;
        let mut barren = Barren::new(snapshot, bucket, Direction::Forward, limits);
        let mut range = keys::feed_after(version::last_version(course.after));
        // The commit that is being read; it may go on in the next chunk.
        let mut reading = course.after;
        // How many rows are looked at before it is asked whether there are but few items.
        let mut until_few = (course.scope != Scope::Whole).then_some(limits.feed_few);
        loop {
            let chunk = self.size.room().clamp(CHUNK_MIN, CHUNK_MAX);
            let rows = snapshot.hints().scan_alive(bucket, &range, Direction::Forward, chunk);
            let rows = rows.map_err(storage_failed)?;
            if rows.is_empty() {
                return Ok(false);
            }
            self.make_steps(rows.len())?;
            let before = range.clone();
            let (mut numbers, mut dead, mut is_over) = (Vec::new(), 0, false);
            let (mut passed, mut last) = (0, None);
            for (key, row) in &rows {
                let row = FeedRow::decode(key, row).map_err(storage_failed)?;
                let lsn = version::lsn_of(row.version);
                if lsn > reading && self.size.is_full() {
                    is_over = true;
                    break;
                }
                reading = lsn;
                passed += 1;
                self.size.looked_at += 1;
                range.go_behind(key);
                if liveness.is_dead(&row) {
                    dead += 1;
                } else if course.scope.contains(row.partition().bytes()) {
                    self.size.count += 1;
                    self.size.bytes += row.bytes;
                    numbers.push(row.docno);
                }
                last = Some((row.version, row.ts));
            }
            barren.walked(before, &range, passed, dead);
            self.show_latest(bucket, &numbers)?;
            if is_over {
                course.after = reading;
                return Ok(true);
            }
            until_few = until_few.map(|left| left.saturating_sub(passed));
            if let Some(last) = last.filter(|_| until_few == Some(0)) {
                until_few = None;
                if let Some(few) = self.few_behind(course, &liveness, last)? {
                    return self.show_few(course, &few, reading);
                }
            }
        }
    }

    /// Shows the items with these numbers.
    pub(super) fn show_latest(&mut self, bucket: Bucket, numbers: &[u64]) -> Result<()> {
        let records = record::named(&*self.opened.snapshot, bucket, numbers);
        for record in &records.map_err(storage_failed)? {
            self.shown.latest(record);
        }
        Ok(())
    }
}
