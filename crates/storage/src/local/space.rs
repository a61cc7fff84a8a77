//! Whether there is room on the disk.
//!
//! An engine that runs into a full disk is broken until it is reopened, and it
//! needs room even to delete. So we look ourselves, before the journal is
//! touched: below the **reserve**, writes that grow are refused, and what is
//! left is for deletes, the clock's lease and compaction.
//!
//! When others take the reserve as well, a write fails. Then what was published is
//! still read, and the engine is opened again when there is room.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{instant, lock};

/// How long a look at a disk with much room is good.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A broken engine is not opened again with less room than this: it would be
/// broken again, and nobody could read meanwhile.
const OPEN_BYTES: u64 = 8 * 1024 * 1024;

/// How often an engine on a full disk is asked to give back what it can.
const RELEASE_EVERY: Duration = Duration::from_millis(500);

/// Says how many bytes are free; `None` if that is not known.
pub type FreeBytes = Arc<dyn Fn() -> Option<u64> + Send + Sync>;

pub(super) struct Space {
    reserve_bytes: u64,
    last: Mutex<Option<(Instant, u64)>>,
    released: Mutex<Option<Instant>>,
}

impl Space {
    pub(super) fn new(reserve_bytes: u64) -> Self {
        Space { reserve_bytes, last: Mutex::new(None), released: Mutex::new(None) }
    }

    /// Whether only the reserve is left. Asks `probe` rarely while there is
    /// more than twice the reserve, and every time below that.
    pub(super) fn is_full(&self, probe: impl Fn() -> Option<u64>) -> bool {
        if self.reserve_bytes == 0 {
            return false;
        }
        let now = instant();
        let mut last = lock(&self.last);
        if let Some((at, free)) = *last
            && free / 2 >= self.reserve_bytes
            && now.duration_since(at) < LOOK_AGAIN
        {
            return false;
        }
        let Some(free) = probe() else { return false };
        *last = Some((now, free));
        free < self.reserve_bytes
    }

    /// Whether there is too little room even to open the engine.
    pub(super) fn is_exhausted(&self, probe: impl Fn() -> Option<u64>) -> bool {
        probe().is_some_and(|free| free < OPEN_BYTES.min(self.reserve_bytes))
    }

    /// Whether it is time to ask the engine for what it can give back.
    pub(super) fn may_release(&self) -> bool {
        let now = instant();
        let mut released = lock(&self.released);
        let due = released.is_none_or(|at| now.duration_since(at) >= RELEASE_EVERY);
        if due {
            *released = Some(now);
        }
        due
    }
}
