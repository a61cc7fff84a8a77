//! Rows in a row that are all dead.
//!
//! What waits for the purge stands in the way of whoever walks in the order of
//! time: the oldest ten are behind all that has expired. A dead item stays dead,
//! so a walk tells the store of long stretches in which nothing is alive, and the
//! next one leaps over them.

use dayfly_storage::{Bucket, Direction, KeyRange, Snapshot};

use crate::settings::QueryLimits;

/// What a walk has passed since it last met something alive.
pub(crate) struct Barren<'a> {
    snapshot: &'a dyn Snapshot,
    bucket: Bucket,
    direction: Direction,
    passed: Option<KeyRange>,
    rows: usize,
    /// As many dead rows in a row are worth to be known.
    rows_min: usize,
}

impl<'a> Barren<'a> {
    pub(crate) fn new(
        snapshot: &'a dyn Snapshot,
        bucket: Bucket,
        direction: Direction,
        limits: &QueryLimits,
    ) -> Self {
        let rows_min = limits.dead_run;
        Barren { snapshot, bucket, direction, passed: None, rows: 0, rows_min }
    }

    /// The walk has read some rows, after which this much of `before` is left.
    pub(crate) fn walked(&mut self, before: KeyRange, left: &KeyRange, rows: usize, dead: usize) {
        if dead < rows {
            return self.tell();
        }
        let passed = match (self.direction, self.passed.take()) {
            (Direction::Forward, None) => KeyRange { end: left.start.clone(), ..before },
            (Direction::Forward, Some(passed)) => KeyRange { end: left.start.clone(), ..passed },
            (Direction::Backward, None) => KeyRange { start: left.end.clone(), ..before },
            (Direction::Backward, Some(passed)) => KeyRange { start: left.end.clone(), ..passed },
        };
        self.passed = Some(passed);
        self.rows += rows;
    }

    /// Tells the store what was passed, if it was long.
    fn tell(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        if let Some(passed) = self.passed.take()
            && rows >= self.rows_min
        {
            self.snapshot.hints().barren(self.bucket, &passed);
        }
    }
}

impl Drop for Barren<'_> {
    fn drop(&mut self) {
        self.tell();
    }
}
