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
//!
//! ```text
//! Resting --asked, or many--> Stepping --quiet--> Sweeping --> Showing --> Resting
//!                                      --busy----------------> Showing --> Resting, unfinished
//! ```
//!
//! [`next`] decides all of this, of what was seen; the thread only carries it out.

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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sight {
    /// How many scans were slow so far.
    pub(super) slow_scans: u64,
    /// How much was written so far.
    pub(super) written_bytes: u64,
    pub(super) held: Held,
}

/// What the compactor is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing. The last compaction left so many tombstones: somebody could still read
    /// what they hide. If it is unfinished, it was not quiet enough to remove them.
    Resting { left: u64, is_unfinished: bool },
    /// Tombstones are met step by step.
    Stepping,
    /// Those that no step meets are removed at once.
    Sweeping,
    /// What is there is shown anew, so that what was replaced can go.
    Showing { is_unfinished: bool },
}

impl Default for Stage {
    fn default() -> Self {
        Stage::Resting { left: 0, is_unfinished: false }
    }
}

/// What comes after a stage, when it is over; for one that rests, at each look.
fn next(stage: Stage, trend: &Trend, held: Held) -> Stage {
    let is_worth_it = held.has_one_in(TOMBSTONES_ONE_IN);
    match stage {
        Stage::Resting { left, is_unfinished } => {
            let is_wanted = trend.is_asked() || trend.is_calm() && held.has_one_in(UNASKED_ONE_IN);
            let may_finish = is_unfinished && trend.is_quiet();
            // What the last one had to leave, the next one would have to leave again.
            let is_new = held.deleted >= left.saturating_mul(2);
            match is_wanted || may_finish {
                true if is_worth_it && (is_new || may_finish) => Stage::Stepping,
                true => Stage::Resting { left, is_unfinished: is_unfinished && is_worth_it },
                false => stage,
            }
        }
        Stage::Stepping if trend.is_quiet() && is_worth_it => Stage::Sweeping,
        Stage::Stepping => Stage::Showing { is_unfinished: !trend.is_quiet() },
        Stage::Sweeping => Stage::Showing { is_unfinished: false },
        Stage::Showing { is_unfinished } => {
            Stage::Resting { left: held.deleted, is_unfinished: is_unfinished && is_worth_it }
        }
    }
}

/// What the looks so far have come to.
#[derive(Clone, Copy, Debug, Default)]
struct Trend {
    /// What there was to see at the last look.
    last: Sight,
    /// How many looks in a row there were hardly more tombstones.
    calm: u32,
    /// How many looks in a row hardly anything was written.
    quiet: u32,
    /// How many looks ago a scan was slow for which nothing was done.
    asked: Option<u32>,
}

impl Trend {
    fn after(self, sight: Sight) -> Trend {
        let held = sight.held;
        let more = held.deleted.saturating_sub(self.last.held.deleted);
        let written = sight.written_bytes.saturating_sub(self.last.written_bytes);
        let is_slow = sight.slow_scans > self.last.slow_scans;
        let count = |is_so: bool, looks: u32| if is_so { looks.saturating_add(1) } else { 0 };
        Trend {
            last: sight,
            calm: count(more <= held.deleted / NEW_ONE_IN, self.calm),
            quiet: count(written <= QUIET_BYTES, self.quiet),
            asked: self.asked.or(is_slow.then_some(0)).map(|looks| looks.saturating_add(1)),
        }
    }

    /// Whether somebody has asked, and it is calm, or they waited long.
    fn is_asked(&self) -> bool {
        self.asked.is_some_and(|looks| self.is_calm() || looks > WAIT_LOOKS)
    }

    fn is_calm(&self) -> bool {
        self.calm >= CALM_LOOKS
    }

    fn is_quiet(&self) -> bool {
        self.quiet >= QUIET_LOOKS
    }
}

impl Held {
    /// Whether there are many tombstones: one row in so many.
    fn has_one_in(self, rows: u64) -> bool {
        self.deleted >= TOMBSTONES_MIN && self.deleted.saturating_mul(rows) >= self.rows
    }
}

/// What is to be done, and whoever does it.
#[derive(Default)]
pub(super) struct Tidy {
    course: Mutex<Course>,
    wake: Condvar,
    /// Held by whoever compacts.
    working: Mutex<()>,
}

#[derive(Default)]
struct Course {
    stage: Stage,
    /// The stage of the last rest, for when a compaction fails.
    rest: Stage,
    trend: Trend,
    is_closed: bool,
}

impl Course {
    /// Whether there is something to do now, if there was nothing before.
    fn starts(&mut self, held: Held) -> bool {
        let Stage::Resting { .. } = self.stage else { return false };
        let stage = next(self.stage, &self.trend, held);
        let starts = stage == Stage::Stepping;
        if starts || self.trend.is_asked() {
            self.trend.asked = None;
        }
        if !starts {
            self.rest = stage;
        }
        self.stage = stage;
        starts
    }
}

impl Tidy {
    /// Looks at what there is to see, and wakes the compactor if there is something to do.
    pub(super) fn look(&self, sight: Sight) {
        let mut course = lock(&self.course);
        course.trend = course.trend.after(sight);
        if course.starts(sight.held) {
            self.wake.notify_all();
        }
    }

    pub(super) fn close(&self) {
        lock(&self.course).is_closed = true;
        self.wake.notify_all();
    }

    /// Waits until there is something to do. `false`: the store is closed.
    fn wait(&self) -> bool {
        let mut course = lock(&self.course);
        while matches!(course.stage, Stage::Resting { .. }) && !course.is_closed {
            course = self.wake.wait(course).unwrap_or_else(PoisonError::into_inner);
        }
        !course.is_closed
    }

    /// Rests after a step that took so long, or until the store is closed.
    fn rest(&self, took: Duration) -> ControlFlow<()> {
        let course = lock(&self.course);
        let time = if course.trend.is_quiet() { took } else { took * BUSY_REST };
        let rested = self.wake.wait_timeout_while(course, time, |course| !course.is_closed);
        let (course, _) = rested.unwrap_or_else(PoisonError::into_inner);
        if course.is_closed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// What to do now; nothing in a store that is closed.
    fn stage(&self) -> Stage {
        let course = lock(&self.course);
        if course.is_closed { course.rest } else { course.stage }
    }

    /// The stage is over.
    fn go_on(&self, held: Held) {
        let mut course = lock(&self.course);
        course.stage = next(course.stage, &course.trend, held);
        if let Stage::Resting { .. } = course.stage {
            course.rest = course.stage;
        }
    }

    /// Nothing more is done, as if nothing had been.
    fn give_up(&self) {
        let mut course = lock(&self.course);
        course.stage = course.rest;
    }
}

impl<B: Backend> Shared<B> {
    /// Compacts whenever there is reason to, until the store is closed.
    pub(super) fn keep_tidy(&self) {
        while self.tidy.wait() {
            if let Err(error) = self.carry_out() {
                tracing::warn!("{} was not compacted: {error}", self.backend.name());
            }
        }
    }

    /// Compacts as if somebody had asked for long, if it is worth it. Returns whether it
    /// did.
    pub(super) fn tidy_up(&self) -> Result<bool> {
        let held = self.backend.held();
        {
            let mut course = lock(&self.tidy.course);
            course.trend.asked = Some(u32::MAX);
            course.starts(held);
        }
        self.carry_out()
    }

    /// Does what there is to do. Returns whether that was anything.
    fn carry_out(&self) -> Result<bool> {
        let _working = lock(&self.tidy.working);
        let before = self.backend.held();
        let done = self.work();
        if !matches!(done, Ok(true)) {
            self.tidy.give_up();
            return done;
        }
        self.counts.compacted();
        let after = self.backend.held();
        tracing::debug!(before = before.deleted, after = after.deleted, "deleted rows");
        done
    }

    /// Goes from stage to stage until the next rest. Returns whether it got there from
    /// another.
    fn work(&self) -> Result<bool> {
        let mut is_done = false;
        loop {
            match self.tidy.stage() {
                Stage::Resting { .. } => return Ok(is_done),
                // It needs room before it gives any back.
                Stage::Stepping if self.space.is_full(|| self.free_bytes()) => return Ok(false),
                Stage::Stepping => self.step()?,
                Stage::Sweeping => self.backend.sweep()?,
                Stage::Showing { .. } => {
                    self.show_anew()?;
                    is_done = true;
                }
            }
            self.tidy.go_on(self.backend.held());
        }
    }

    fn step(&self) -> Result<()> {
        let mut since = instant();
        self.backend.tidy(&mut || {
            let rested = self.tidy.rest(since.elapsed());
            since = instant();
            rested
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;
    const NEW: Stage = Stage::Resting { left: 0, is_unfinished: false };

    /// One row in four is a tombstone.
    const MANY: Held = Held { rows: 60_000, deleted: 15_000 };
    /// One in a hundred.
    const FEW: Held = Held { rows: 1_500_000, deleted: 15_000 };
    /// One in two.
    const HALF: Held = Held { rows: 30_000, deleted: 15_000 };

    /// A trend in which it is calm or quiet, and somebody asked so many looks ago.
    fn trend(calm: bool, quiet: bool, asked: Option<u32>) -> Trend {
        let looks = |is_so: bool, looks: u32| if is_so { looks } else { looks - 1 };
        let (calm, quiet) = (looks(calm, CALM_LOOKS), looks(quiet, QUIET_LOOKS));
        Trend { last: Sight::default(), calm, quiet, asked }
    }

    #[test]
    fn every_stage_and_what_comes_after_it() {
        let resting = |left, is_unfinished| Stage::Resting { left, is_unfinished };
        let showing = |is_unfinished| Stage::Showing { is_unfinished };
        let (calm, busy) = (trend(true, true, None), trend(false, false, None));
        let asked = |looks| trend(false, false, Some(looks));
        for (stage, trend, held, expected) in [
            // Nobody asks, and there are not many.
            (NEW, calm, MANY, NEW),
            // Nobody has to ask, once it is calm.
            (NEW, calm, HALF, Stage::Stepping),
            (NEW, busy, HALF, NEW),
            // Who asks waits until it is calm, or for long.
            (NEW, asked(1), MANY, NEW),
            (NEW, trend(true, false, Some(1)), MANY, Stage::Stepping),
            (NEW, asked(WAIT_LOOKS), MANY, NEW),
            (NEW, asked(WAIT_LOOKS + 1), MANY, Stage::Stepping),
            // It must be worth it.
            (NEW, trend(true, true, Some(1)), FEW, NEW),
            (NEW, trend(true, true, Some(1)), Held { rows: 9_999, deleted: 9_999 }, NEW),
            // What was left asks for no other.
            (resting(7_501, false), trend(true, true, Some(1)), MANY, resting(7_501, false)),
            (resting(7_500, false), trend(true, true, Some(1)), MANY, Stage::Stepping),
            (resting(7_501, false), calm, HALF, resting(7_501, false)),
            // But for what was left because it was not quiet.
            (resting(15_000, true), trend(false, true, None), MANY, Stage::Stepping),
            (resting(15_000, true), trend(true, false, None), MANY, resting(15_000, true)),
            (resting(15_000, true), calm, FEW, resting(15_000, false)),
            // A quiet moment is for what no step meets.
            (Stage::Stepping, calm, MANY, Stage::Sweeping),
            (Stage::Stepping, calm, FEW, showing(false)),
            (Stage::Stepping, busy, MANY, showing(true)),
            (Stage::Sweeping, calm, MANY, showing(false)),
            (Stage::Sweeping, busy, MANY, showing(false)),
            (showing(false), calm, MANY, resting(15_000, false)),
            (showing(true), calm, MANY, resting(15_000, true)),
            (showing(true), busy, FEW, resting(15_000, false)),
        ] {
            assert_eq!(next(stage, &trend, held), expected, "{stage:?}, {trend:?}, {held:?}");
        }
    }

    /// Whether a compaction starts at the last of some looks, and not before.
    fn starts(stage: Stage, looks: &[Sight]) -> bool {
        let mut course = Course { stage, ..Course::default() };
        let starts = looks.iter().map(|sight| {
            course.trend = course.trend.after(*sight);
            course.starts(sight.held)
        });
        starts.collect::<Vec<_>>().iter().position(|starts| *starts) == Some(looks.len() - 1)
    }

    #[test]
    fn slow_scans_ask_and_so_does_a_large_purge_that_has_ended() {
        let sight = |(slow_scans, held)| Sight { slow_scans, written_bytes: 0, held };
        let many = |deleted| Held { rows: 60_000, deleted };
        let some = |deleted| Held { rows: 150_000, deleted };
        for (looks, expected) in [
            (vec![(0, some(15_000)); 5], false),
            (vec![(1, some(15_000)); 4], true),
            // Not before it is calm.
            (vec![(1, some(15_000)); 3], false),
            // It was calm already.
            ([vec![(0, some(15_000)); 4], vec![(1, some(15_000))]].concat(), true),
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
            let sights: Vec<_> = looks.iter().copied().map(sight).collect();
            assert_eq!(starts(NEW, &sights), expected, "{looks:?}");
        }
    }

    #[test]
    fn who_asks_beside_a_purge_waits_for_a_minute() {
        let held = |look: u64| Held { rows: 10_000_000, deleted: 100_000 + look * 50_000 };
        let sight = |look| Sight { slow_scans: 1, written_bytes: 0, held: held(look) };
        let beside = |looks| starts(NEW, &(0..looks).map(sight).collect::<Vec<_>>());
        assert!(!beside(60));
        assert!(beside(61));
    }

    #[test]
    fn what_is_left_while_much_is_written_is_for_a_quiet_moment() {
        let unfinished = Stage::Resting { left: 15_000, is_unfinished: true };
        for (written, expected) in [
            (vec![0, 0, 0], true),
            (vec![0, 0], false),
            (vec![0, MIB, 2 * MIB], true),
            (vec![2 * MIB, 4 * MIB, 6 * MIB, 8 * MIB], false),
            (vec![2 * MIB, 2 * MIB, 2 * MIB], false),
            (vec![2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB], true),
            (vec![0, 0, 2 * MIB], false),
        ] {
            let sight = |written_bytes| Sight { slow_scans: 0, written_bytes, held: MANY };
            let sights: Vec<_> = written.iter().copied().map(sight).collect();
            assert_eq!(starts(unfinished, &sights), expected, "{written:?}");
        }
    }
}
