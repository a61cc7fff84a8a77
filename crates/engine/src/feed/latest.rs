//! The newest version of each item that is alive, once, at the commit that wrote it.

use dayfly_model::Result;
use dayfly_storage::Direction;

use super::{CHUNK_MAX, CHUNK_MIN, FeedCourse, FeedPage};
use crate::index::Barren;
use crate::keys;
use crate::liveness::Liveness;
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
        loop {
            let chunk = self.size.room().clamp(CHUNK_MIN, CHUNK_MAX);
            let rows = snapshot.hints().scan_alive(bucket, &range, Direction::Forward, chunk);
            let rows = rows.map_err(storage_failed)?;
            if rows.is_empty() {
                return Ok(false);
            }
            let before = range.clone();
            let (mut numbers, mut dead, mut is_over) = (Vec::new(), 0, false);
            let mut passed = 0;
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
            }
            barren.walked(before, &range, passed, dead);
            let records = record::named(snapshot, bucket, &numbers).map_err(storage_failed)?;
            for record in &records {
                self.shown.latest(record);
            }
            if is_over {
                course.after = reading;
                return Ok(true);
            }
        }
    }
}
