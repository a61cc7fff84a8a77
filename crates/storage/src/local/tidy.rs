//! The compactor: removes tombstones when they are in the way.
//!
//! A delete stays on the disk as a tombstone until a compaction meets it; most are
//! met in good time. A scan that had to step over many asks for a compaction, which
//! is made if one row in ten is a tombstone. After a large purge, when it is one in
//! three, nobody has to ask. As long as many more come, the compactor waits: what is
//! compacted now would be compacted again.
//!
//! It goes step by step, and rests after each step as long as the step took, so that
//! it never takes more than half of a core; while much is written it rests three times
//! as long. Some tombstones no step meets. To remove those takes the whole folder at
//! once, and writes would wait for it: that is left until hardly anything is written.

use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::backend::{Backend, Held};
use super::{Shared, instant, lock};
use crate::Result;

/// A compaction pays when one row in ten is a tombstone, and there are 10,000.
const TOMBSTONES_MIN: u64 = 10_000;
const TOMBSTONES_ONE_IN: u64 = 10;

/// With one row in three a tombstone it is made unasked.
const UNASKED_ONE_IN: u64 = 3;

/// More come as long as one look sees more than a hundredth of them as new.
const NEW_ONE_IN: u64 = 100;

/// So many looks in a row must see hardly more; who asked waits for that at most
/// this long.
const CALM_LOOKS: u32 = 3;
const WAIT_LOOKS: u32 = 60;

/// It is quiet when no more than this is written from look to look, so many times
/// in a row.
const QUIET_BYTES: u64 = 1024 * 1024;
const QUIET_LOOKS: u32 = 3;

/// How long to rest after a step, in times of the step, when it is not quiet.
const BUSY_REST: u32 = 3;

/// What there is to see, about once a second.
#[derive(Clone, Copy, Default)]
pub(super) struct Sight {
    /// How many scans were slow so far.
    pub(super) slow_scans: u64,
    /// How much was written so far.
    pub(super) written_bytes: u64,
    pub(super) held: Held,
}

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
    /// What there was to see at the last look.
    last: Sight,
    /// How many looks in a row there were hardly more tombstones.
    calm: u32,
    /// How many looks in a row hardly anything was written.
    quiet: u32,
    /// How many looks ago a scan was slow for which nothing was done.
    wanted: Option<u32>,
    /// How many tombstones the last compaction left: there were readers.
    left: u64,
    /// Whether it left some because it was not quiet.
    is_unfinished: bool,
}

impl Wish {
    fn is_quiet(&self) -> bool {
        self.quiet >= QUIET_LOOKS
    }
}

impl Tidy {
    /// Looks at what there is to see, and wakes the compactor if there are new
    /// slow scans, if a large purge has ended, or if it is quiet enough for what
    /// was left.
    pub(super) fn look(&self, sight: Sight) {
        let mut wish = lock(&self.wish);
        let held = sight.held;
        let more = held.deleted.saturating_sub(wish.last.held.deleted);
        let is_calm = more <= held.deleted / NEW_ONE_IN;
        wish.calm = if is_calm { wish.calm.saturating_add(1) } else { 0 };
        let is_quiet = sight.written_bytes.saturating_sub(wish.last.written_bytes) <= QUIET_BYTES;
        wish.quiet = if is_quiet { wish.quiet.saturating_add(1) } else { 0 };
        if sight.slow_scans > wish.last.slow_scans {
            wish.wanted.get_or_insert(0);
        }
        wish.wanted = wish.wanted.map(|looks| looks.saturating_add(1));
        wish.last = sight;

        let is_settled = wish.calm >= CALM_LOOKS;
        let waited = wish.wanted.is_some_and(|looks| is_settled || looks > WAIT_LOOKS);
        let is_worth_it = held.has_one_in(UNASKED_ONE_IN) && held.deleted >= wish.left * 2;
        let may_finish = wish.is_unfinished && wish.is_quiet();
        if waited || is_settled && is_worth_it || may_finish {
            wish.wanted = None;
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

    /// Rests after a step that took so long, or until the store is closed.
    fn rest(&self, took: Duration) -> ControlFlow<()> {
        let wish = lock(&self.wish);
        let time = if wish.is_quiet() { took } else { took * BUSY_REST };
        let rested = self.wake.wait_timeout_while(wish, time, |wish| !wish.is_closed);
        let (wish, _) = rested.unwrap_or_else(PoisonError::into_inner);
        if wish.is_closed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Held {
    /// Whether a compaction would make scans faster.
    pub(crate) fn is_worth_compacting(self) -> bool {
        self.has_one_in(TOMBSTONES_ONE_IN)
    }

    /// Whether there are many tombstones: one row in so many.
    fn has_one_in(self, rows: u64) -> bool {
        self.deleted >= TOMBSTONES_MIN && self.deleted.saturating_mul(rows) >= self.rows
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
        {
            let mut wish = lock(&self.tidy.wish);
            wish.is_unfinished &= before.is_worth_compacting();
            let is_new = before.deleted >= wish.left * 2;
            let may_finish = wish.is_unfinished && wish.is_quiet();
            if !before.is_worth_compacting() || !is_new && !may_finish {
                return Ok(false);
            }
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
        let (is_closed, is_quiet) = {
            let wish = lock(&self.tidy.wish);
            (wish.is_closed, wish.is_quiet())
        };
        if is_closed {
            return Ok(false);
        }
        if is_quiet && self.backend.held().is_worth_compacting() {
            self.backend.sweep()?;
        }
        self.show_anew()?;
        let after = self.backend.held();
        {
            let mut wish = lock(&self.tidy.wish);
            wish.left = after.deleted;
            wish.is_unfinished = !is_quiet && after.is_worth_compacting();
        }
        self.counts.compacted();
        tracing::debug!(before = before.deleted, after = after.deleted, "deleted rows");
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_asked(looks: &[(u64, Held)]) -> bool {
        let tidy = Tidy::default();
        for (slow_scans, held) in looks.iter().copied() {
            tidy.look(Sight { slow_scans, written_bytes: 0, held });
        }
        lock(&tidy.wish).is_asked
    }

    #[test]
    fn slow_scans_ask_and_so_does_a_large_purge_that_has_ended() {
        let many = |deleted| Held { rows: 60_000, deleted };
        let few = |deleted| Held { rows: 600_000, deleted };
        for (looks, expected) in [
            (vec![(0, few(15_000)); 5], false),
            (vec![(1, few(15_000)); 4], true),
            // Not before it is calm.
            (vec![(1, few(15_000)); 3], false),
            (vec![(0, few(0)), (0, few(0)), (0, few(0)), (1, few(0))], true),
            (vec![(0, many(20_000)); 4], true),
            // A few more are no matter.
            (
                vec![(0, many(20_000)), (0, many(20_100)), (0, many(20_200)), (0, many(20_300))],
                true,
            ),
            // It goes on.
            (
                vec![(0, many(20_000)), (0, many(21_000)), (0, many(21_000)), (0, many(21_000))],
                false,
            ),
            // Not so large.
            (vec![(0, many(19_000)); 4], false),
            (vec![(0, Held { rows: 9_000, deleted: 9_000 }); 4], false),
        ] {
            assert_eq!(is_asked(&looks), expected, "{looks:?}");
        }
    }

    #[test]
    fn who_asks_beside_a_purge_waits_for_a_minute() {
        let beside = |looks: u64| {
            let held = |look| Held { rows: 10_000_000, deleted: 100_000 + look * 50_000 };
            is_asked(&(0..looks).map(|look| (1, held(look))).collect::<Vec<_>>())
        };
        assert!(!beside(60));
        assert!(beside(61));
    }

    #[test]
    fn what_a_compaction_had_to_leave_asks_for_no_other() {
        let tidy = Tidy::default();
        lock(&tidy.wish).left = 15_000;
        for (deleted, expected) in [(29_000, false), (31_000, true)] {
            for _ in 0..4 {
                tidy.look(Sight { held: Held { rows: 60_000, deleted }, ..Sight::default() });
            }
            assert_eq!(lock(&tidy.wish).is_asked, expected);
        }
    }

    #[test]
    fn what_is_left_while_much_is_written_is_for_a_quiet_moment() {
        const MIB: u64 = 1024 * 1024;
        for (written, expected) in [
            (vec![0, 0, 0], true),
            (vec![0, 0], false),
            (vec![0, MIB, 2 * MIB], true),
            (vec![2 * MIB, 4 * MIB, 6 * MIB, 8 * MIB], false),
            (vec![2 * MIB, 2 * MIB, 2 * MIB], false),
            (vec![2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB], true),
            (vec![0, 0, 2 * MIB], false),
        ] {
            let tidy = Tidy::default();
            lock(&tidy.wish).is_unfinished = true;
            for written_bytes in &written {
                tidy.look(Sight { written_bytes: *written_bytes, ..Sight::default() });
            }
            assert_eq!(lock(&tidy.wish).is_asked, expected, "{written:?}");
        }
    }
}
