//! The compactor: removes what deletes left behind, when scans suffer from it.
//!
//! Deletes stay on the disk as rows of their own until a compaction meets them;
//! most are met in good time. Where a scan had to step over many, it asks, and
//! if they are a good part of all rows, they are brought to their end: step by
//! step, and after each step the compactor rests as long as the step took, so
//! that it never takes more than half of a core.

use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::backend::{Backend, Held};
use super::{Shared, instant, lock};
use crate::Result;

/// As many deletes are worth a compaction, if they are this part of all rows.
const DELETED_MIN: u64 = 10_000;
const PART: u64 = 10;

/// Whether there is something to do.
#[derive(Default)]
pub(super) struct Tidy {
    wish: Mutex<Wish>,
    wake: Condvar,
}

#[derive(Default)]
struct Wish {
    is_asked: bool,
    is_closed: bool,
    /// How many scans had been slow when they were last looked at.
    slow_scans: u64,
    /// How many deletes the last compaction left: there were readers.
    left: u64,
}

impl Tidy {
    /// Looks how many scans were slow, and wakes the compactor if there are new
    /// ones.
    pub(super) fn look(&self, slow_scans: u64) {
        let mut wish = lock(&self.wish);
        if slow_scans > wish.slow_scans {
            wish.slow_scans = slow_scans;
            wish.is_asked = true;
            self.wake.notify_all();
        }
    }

    pub(super) fn close(&self) {
        lock(&self.wish).is_closed = true;
        self.wake.notify_all();
    }

    /// Waits until somebody asks. `false`: the store is closed.
    fn wait(&self) -> bool {
        let mut wish = lock(&self.wish);
        while !wish.is_asked && !wish.is_closed {
            wish = self.wake.wait(wish).unwrap_or_else(PoisonError::into_inner);
        }
        wish.is_asked = false;
        !wish.is_closed
    }

    /// Rests for a while, or until the store is closed.
    fn rest(&self, time: Duration) -> ControlFlow<()> {
        let wish = lock(&self.wish);
        let rested = self.wake.wait_timeout_while(wish, time, |wish| !wish.is_closed);
        let (wish, _) = rested.unwrap_or_else(PoisonError::into_inner);
        if wish.is_closed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Held {
    /// Whether a compaction would make scans faster.
    pub(crate) fn is_worth_compacting(self) -> bool {
        self.deleted >= DELETED_MIN && self.deleted.saturating_mul(PART) >= self.rows
    }
}

impl<B: Backend> Shared<B> {
    /// Compacts whenever it is asked for, until the store is closed.
    pub(super) fn keep_tidy(&self) {
        while self.tidy.wait() {
            if let Err(error) = self.tidy_up() {
                tracing::warn!("{} was not compacted: {error}", self.backend.name());
            }
        }
    }

    /// Compacts, if it is worth it. Returns whether it did.
    pub(super) fn tidy_up(&self) -> Result<bool> {
        let before = self.backend.held();
        let left = lock(&self.tidy.wish).left;
        if !before.is_worth_compacting() || before.deleted < left.saturating_mul(2) {
            return Ok(false);
        }
        // It needs room before it gives any back.
        if self.space.is_full(|| self.free_bytes()) {
            return Ok(false);
        }
        let mut since = instant();
        self.backend.tidy(&mut || {
            let rested = self.tidy.rest(since.elapsed());
            since = instant();
            rested
        })?;
        if lock(&self.tidy.wish).is_closed {
            return Ok(false);
        }
        self.show_anew()?;
        let after = self.backend.held();
        lock(&self.tidy.wish).left = after.deleted;
        self.counts.compacted();
        tracing::debug!(before = before.deleted, after = after.deleted, "deleted rows");
        Ok(true)
    }
}
