//! Every version of the items, and how each of them ended.
//!
//! What is older than the log keeps it is in no page, whether or not the background has
//! removed it. Who asks from a place behind which something has gone is told so, since
//! nobody could say what is missing; a place behind which nothing was written is good,
//! however old it is.

use bytes::Bytes;
use dayfly_model::{Error, Result, Timestamp};
use dayfly_storage::{Bucket, Direction, Pair};

use super::{CHUNK_MAX, CHUNK_MIN, FeedCourse, FeedPage, PAGE_BYTES_MAX};
use crate::head::LogState;
use crate::keys;
use crate::liveness::Ending;
use crate::log::{self, Event, LogRow};
use crate::record::Record;
use crate::reply::storage_failed;

impl FeedPage<'_> {
    /// Reads on in the log of a bucket. `true`: the page ends here, and the course says
    /// where.
    pub(super) fn read_versions(&mut self, course: &mut FeedCourse) -> Result<bool> {
        let (snapshot, bucket) = (&*self.opened.snapshot, course.bucket);
        let Some(log) = course.log else { return Ok(false) };
        let trimmed = log::trimmed(snapshot, bucket).map_err(storage_failed)?;
        if course.after < log.after.max(trimmed) {
            return Err(too_old());
        }
        let kept = KeptLog { log, cut: log.cut(self.opened.now()) };
        let mut range = keys::log_after(course.after);
        // The commit that is being read; it may go on in the next chunk.
        let (mut reading, mut is_first) = (course.after, true);
        loop {
            let rows = snapshot.scan(bucket, &range, Direction::Forward, self.chunk());
            let rows = rows.map_err(storage_failed)?;
            if std::mem::take(&mut is_first) {
                kept.check(&rows)?;
            }
            if rows.is_empty() {
                return Ok(false);
            }
            self.make_steps(rows.len())?;
            let (mut told, mut is_over) = (Vec::new(), false);
            for (key, row) in &rows {
                let lsn = keys::log_lsn(key).unwrap_or(u64::MAX);
                if lsn > reading && self.size.is_full() {
                    is_over = true;
                    break;
                }
                reading = lsn;
                self.size.looked_at += 1;
                self.size.bytes_looked_at += row.len() as u64;
                range.go_behind(key);
                let bytes = row.len() as u64;
                let row = LogRow::decode(key, row).map_err(storage_failed)?;
                if course.scope.contains(&row.partition) {
                    self.size.count += 1;
                    self.size.bytes += bytes;
                    told.push(row);
                }
            }
            self.tell(bucket, &kept, &told)?;
            if is_over {
                course.after = reading;
                return Ok(true);
            }
        }
    }

    /// How many rows to read next: they have whole items, so it goes by those so far.
    fn chunk(&self) -> usize {
        let Some(each) = self.size.bytes_looked_at.checked_div(self.size.looked_at) else {
            return CHUNK_MIN;
        };
        let fitting = usize::try_from(PAGE_BYTES_MAX / each.max(1)).unwrap_or(CHUNK_MAX);
        self.size.room().clamp(CHUNK_MIN, fitting.clamp(CHUNK_MIN, CHUNK_MAX))
    }

    /// Shows some rows, what was deleted with what it was.
    fn tell(&mut self, bucket: Bucket, kept: &KeptLog, told: &[LogRow]) -> Result<()> {
        let keys: Vec<Vec<u8>> = told.iter().filter_map(before_delete).map(log::key_of).collect();
        let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let found = self.opened.snapshot.get_many(bucket, &asked).map_err(storage_failed)?;
        let mut found = keys.iter().zip(found);
        for row in told {
            let before = before_delete(row).and_then(|_| found.next());
            let previous = match before {
                Some((key, Some(version))) => kept.version(key, &version)?,
                _ => None,
            };
            self.size.bytes += previous.as_ref().map_or(0, Record::bytes);
            self.shown.told(row, previous.as_ref());
        }
        Ok(())
    }
}

/// The last version of an item that a row says was deleted.
fn before_delete(row: &LogRow) -> Option<u64> {
    match &row.event {
        Event::Ended(ended) if matches!(ended.end, Ending::Deleted(_)) => row.previous,
        _ => None,
    }
}

/// What a log keeps at some second.
struct KeptLog {
    log: LogState,
    cut: Timestamp,
}

impl KeptLog {
    fn has(&self, lsn: u64, ts: Timestamp) -> bool {
        lsn > self.log.after && ts > self.cut
    }

    /// The first rows behind a place must be there still, or some may be gone.
    fn check(&self, rows: &[Pair]) -> Result<()> {
        let Some((key, row)) = rows.first() else { return Ok(()) };
        let ts = LogRow::ts_of(row).map_err(storage_failed)?;
        if self.has(keys::log_lsn(key).unwrap_or_default(), ts) { Ok(()) } else { Err(too_old()) }
    }

    /// A version, if it is kept.
    fn version(&self, key: &[u8], row: &Bytes) -> Result<Option<Record>> {
        let row = LogRow::decode(key, row).map_err(storage_failed)?;
        let is_kept = self.has(row.lsn, row.ts);
        Ok(match row.event {
            Event::Created(record) | Event::Replaced(record) if is_kept => Some(record),
            _ => None,
        })
    }
}

/// Something that is asked for is not told any more, or never was.
pub(super) fn too_old() -> Error {
    Error::bad_request("You must read the change feed from within the retention period.")
}
