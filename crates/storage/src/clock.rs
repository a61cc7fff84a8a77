//! What time it is, for everybody who reads or writes the store.
//!
//! ```text
//! now = clamp(wall, floor, ceiling)
//! ```
//!
//! - `wall` is the system's clock as far as it is believed (see `watch.rs`),
//!   or the test clock on top of it.
//! - `floor` is the greatest time ever handed out: time never runs backwards.
//!   When the system's clock steps back, time stands still until it catches up.
//! - `ceiling` is a durable lease, a few seconds ahead of the wall: no time
//!   past it is handed out before a later lease is on disk. After a crash the
//!   lease is the floor, so no restart can hand out an earlier time. It follows
//!   the wall and never the floor, so that crashes do not push time ahead.
//! - While a group of commits is in flight, `now` is at most their time.
//! - At [`LAST_SECOND`] time stands still, however it got there.

mod wall;
mod watch;

use std::sync::Arc;

pub use wall::{BootId, HandWall, Look, SystemWall, Wall};
use watch::Watch;
pub use watch::{AWAY_SECONDS, Anchor, DOUBT_SECONDS, Doubt, JUMP_SECONDS};

use crate::Second;

/// How far ahead of the wall clock a lease reaches.
pub const LEASE_SECONDS: u64 = 3;

/// The end of the year 9999, where dates end.
pub const LAST_SECOND: Second = 253_402_300_799;

/// What the clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The store's time.
    pub now: Second,
    /// Whether the test clock stands still.
    pub frozen: bool,
    /// How far the test clock is ahead of the wall clock.
    pub offset_seconds: u64,
    /// Whether an unexplained jump of the wall clock is being held.
    pub held: bool,
    /// Why nothing may be purged, if the clock may be wrong.
    pub purge_hold: Option<PurgeHold>,
    /// How many jumps were held since the store was opened.
    pub jumps: u64,
    /// How far the wall clock is behind the store's time, which stands still
    /// until it has caught up.
    pub behind_seconds: u64,
}

/// Why nothing is to be removed from the disk. What has expired is hidden all
/// the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeHold {
    /// Nothing explains the time that the wall clock shows.
    Unproven {
        /// How long it has to stand until it is believed.
        seconds: u64,
    },
    /// The wall clock is behind the store's time: one of them is wrong.
    Behind {
        /// How far.
        seconds: u64,
    },
}

impl std::fmt::Display for PurgeHold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PurgeHold::Unproven { seconds } => write!(
                f,
                "The clock may be wrong: nothing explains the time it shows. What has expired is \
                 removed when it has stood for another {seconds} seconds, or when it is accepted."
            ),
            PurgeHold::Behind { seconds } => write!(
                f,
                "The clock may be wrong, or was: it is {seconds} seconds behind the time that was \
                 handed out. What has expired is removed when it has caught up, or when the time \
                 is accepted."
            ),
        }
    }
}

/// A way to move the clock: the test clock, but for [`Step::Accept`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Show this time.
    To(Second),
    /// Go this far ahead.
    Advance(u64),
    /// Stand still.
    Freeze,
    /// Run again, from where it stands.
    Run,
    /// Believe the wall clock, if it is doubted; and the store's time, if the
    /// wall clock is behind it.
    Accept,
}

/// Why the clock was not moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The store was not opened with a test clock.
    NoTestClock,
    /// Time does not go back.
    Backwards {
        /// The store's time.
        now: Second,
    },
    /// No calendar goes that far.
    TooFar,
    /// Nobody doubts the clocks.
    NothingHeld,
    /// The store could not keep the new time.
    Storage(crate::Error),
}

/// What was done to the test clock, as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestClock {
    /// Seconds on top of the wall clock; less than 0 after a freeze.
    pub offset: i64,
    /// What it shows while it stands still.
    pub frozen: Option<Second>,
}

/// No time can be handed out before a later lease is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseNeeded;

/// The state of the clock. It writes nothing itself: whoever holds it makes
/// the lease or the test clock durable and then says so.
pub(crate) struct Clock {
    wall: Arc<dyn Wall>,
    watch: Watch,
    floor: Second,
    ceiling: Second,
    in_flight: Option<Second>,
    test: TestClock,
    asked: bool,
    /// The greatest time in milliseconds that was seen.
    milliseconds: u64,
    /// The time that a person has accepted although the wall was behind it.
    accepted: Second,
    /// The doubt and the acceptance that are durable.
    saved: (Doubt, Second),
    /// Whether the log says that time stands still.
    said_to_stand: bool,
}

impl Clock {
    /// A clock that shows `wall`.
    pub(crate) fn new(wall: Arc<dyn Wall>) -> Self {
        Clock {
            wall,
            watch: Watch::default(),
            floor: 0,
            ceiling: 0,
            in_flight: None,
            test: TestClock::default(),
            asked: false,
            milliseconds: 0,
            accepted: 0,
            saved: (Doubt::default(), 0),
            said_to_stand: false,
        }
    }

    /// The store was opened, and `floor` is its last durable time; 0 if it is
    /// new. If it is opened again, because it had failed, this clock knows more
    /// of the wall than the `anchor`.
    pub(crate) fn opened(&mut self, floor: Second, test: TestClock, anchor: &Anchor) {
        if self.floor == 0 {
            self.watch.restore(anchor, self.wall.boot_id(), self.wall.look().0);
            self.accepted = anchor.accepted;
        }
        self.floor = self.floor.max(floor);
        self.ceiling = self.floor;
        self.in_flight = None;
        self.test = test;
    }

    /// The time, which nobody will see fall below this from now on.
    pub(crate) fn now(&mut self) -> Result<Second, LeaseNeeded> {
        self.asked = true;
        let wall = self.wall();
        let now = match self.in_flight {
            Some(ts) => wall.min(self.ceiling).max(self.floor).min(ts),
            None if wall > self.ceiling => return Err(LeaseNeeded),
            None => wall.max(self.floor),
        };
        self.floor = now;
        Ok(now)
    }

    /// The time, as far as the lease reaches: while no later one can be had, time
    /// stands still.
    pub(crate) fn stand(&mut self) -> Second {
        self.floor = self.wall().min(self.ceiling).max(self.floor);
        self.floor
    }

    /// About what time it is. Nobody may be shown this.
    pub(crate) fn glance(&mut self) -> Second {
        self.wall().max(self.floor)
    }

    /// About what time it is, in milliseconds; it does not run back. For a pace: no life is
    /// judged by it.
    pub(crate) fn milliseconds(&mut self) -> u64 {
        self.wall();
        self.milliseconds
    }

    /// The same as of the last look, without another one.
    pub(crate) fn last_milliseconds(&self) -> u64 {
        self.milliseconds
    }

    /// Starts a group. Its time may be past the ceiling, since nobody sees it
    /// before the group and a later lease are durable together.
    pub(crate) fn begin(&mut self) -> Second {
        let ts = self.wall().max(self.floor);
        self.in_flight = Some(ts);
        ts
    }

    /// The group in flight is published: its time is seen.
    pub(crate) fn published(&mut self) {
        if let Some(ts) = self.in_flight.take() {
            self.floor = self.floor.max(ts);
        }
    }

    /// The group in flight is gone, and its time was seen by nobody.
    pub(crate) fn abandoned(&mut self) {
        self.in_flight = None;
    }

    /// What the next lease is to be; the present one if time stands still.
    pub(crate) fn next_lease(&mut self) -> Second {
        let reach = if self.test.frozen.is_some() { 0 } else { LEASE_SECONDS };
        let ahead = self.wall().saturating_add(reach).min(LAST_SECOND);
        ahead.max(self.ceiling).max(self.floor).max(self.in_flight.unwrap_or(0))
    }

    /// The lease that should be written before somebody needs it, if time was
    /// asked for since the last one; or because a doubt came or went, which is
    /// stored with it.
    pub(crate) fn lease_due(&mut self) -> Option<Second> {
        // Looks also when nobody asked, so that a jump is seen when it happens.
        let near = self.wall().saturating_add(1) >= self.ceiling;
        let is_due = self.asked && near && self.can_renew();
        (is_due || self.doubts_anew()).then(|| self.next_lease())
    }

    /// What is to be stored with the next lease.
    pub(crate) fn anchor(&mut self) -> Anchor {
        let wall = self.wall();
        let is_behind = self.is_behind(wall);
        let Anchor { doubt, .. } = self.watch.anchor();
        let doubt = Doubt { purge: doubt.purge || is_behind, ..doubt };
        Anchor { doubt, accepted: self.accepted, ..self.watch.anchor() }
    }

    /// Whether there is a doubt that is not durable, or none any more.
    fn doubts_anew(&mut self) -> bool {
        let Anchor { doubt, accepted, .. } = self.anchor();
        self.saved != (doubt, accepted)
    }

    /// Whether the wall is so far behind what was handed out that one of the
    /// two is wrong, and nobody has said which.
    fn is_behind(&self, wall: Second) -> bool {
        self.floor.saturating_sub(wall) > JUMP_SECONDS && self.floor > self.accepted
    }

    /// Whether the next lease would reach further than the present one.
    pub(crate) fn can_renew(&mut self) -> bool {
        self.next_lease() > self.ceiling
    }

    /// Whether the group in flight needs a later lease than there is.
    pub(crate) fn group_needs_lease(&self) -> bool {
        self.in_flight.is_some_and(|ts| ts > self.ceiling)
    }

    /// `lease` is durable, and `anchor` with it.
    pub(crate) fn leased(&mut self, lease: Second, anchor: &Anchor) {
        self.leased_alone(lease);
        self.saved = (anchor.doubt, anchor.accepted);
    }

    /// `lease` is durable, but there was no room for what is stored with it.
    pub(crate) fn leased_alone(&mut self, lease: Second) {
        self.ceiling = lease;
        self.asked = false;
    }

    /// Hands out nothing past the floor until the next lease, and returns the
    /// floor: a lease that stops time exactly where it is.
    pub(crate) fn stop(&mut self) -> Second {
        self.ceiling = self.floor;
        self.floor
    }

    /// What the clock shows at `now`.
    pub(crate) fn reading(&mut self, now: Second) -> Reading {
        let system = self.system();
        let wall = self.on_top_of(system);
        let behind_seconds = self.floor.saturating_sub(wall);
        let behind = PurgeHold::Behind { seconds: behind_seconds };
        Reading {
            now,
            frozen: self.test.frozen.is_some(),
            offset_seconds: wall.saturating_sub(system),
            held: self.watch.holds_jump(),
            purge_hold: self.is_behind(wall).then_some(behind).or(self.watch.purge_hold()),
            jumps: self.watch.jumps(),
            behind_seconds,
        }
    }

    /// A person says that the wall clock is right; or, if it is behind what was
    /// handed out, that what has expired by that may go.
    pub(crate) fn accept(&mut self) -> Result<(), Refused> {
        let mut doubted = self.watch.accept(self.wall.look().0);
        let wall = self.wall();
        if self.is_behind(wall) {
            // After a crash the ceiling is the floor.
            self.accepted = self.floor.max(self.ceiling);
            doubted = true;
        }
        if !doubted {
            return Err(Refused::NothingHeld);
        }
        tracing::warn!("the clock was accepted: nothing is held any more");
        Ok(())
    }

    /// What the test clock would be after `step`, taken at `now`.
    pub(crate) fn after(&mut self, step: Step, now: Second) -> Result<TestClock, Refused> {
        let (test, system) = (self.test, self.system());
        let running = |second| TestClock { offset: offset(system, second), frozen: None };
        let standing = |second| TestClock { frozen: Some(second), ..test };
        let showing = |second| match test.frozen {
            Some(_) => standing(second),
            None => running(second),
        };
        Ok(match step {
            Step::To(second) if second < now => return Err(Refused::Backwards { now }),
            Step::To(second) if second > LAST_SECOND => return Err(Refused::TooFar),
            Step::Advance(seconds) if seconds > LAST_SECOND.saturating_sub(now) => {
                return Err(Refused::TooFar);
            }
            Step::To(second) => showing(second),
            Step::Advance(seconds) => showing(now.saturating_add(seconds)),
            Step::Freeze => standing(now),
            Step::Run if test.frozen.is_none() => test,
            Step::Run => running(now),
            Step::Accept => test,
        })
    }

    /// The lease to write together with `test`. For a clock that stands still
    /// it ends where the clock stands, and until it is written no time past
    /// that is handed out.
    pub(crate) fn lease_after(&mut self, test: TestClock) -> Second {
        let before = std::mem::replace(&mut self.test, test);
        if test.frozen.is_some() {
            self.stop();
        }
        let lease = self.next_lease();
        self.test = before;
        lease
    }

    /// `test` is durable.
    pub(crate) fn moved(&mut self, test: TestClock) {
        self.test = test;
    }

    /// How the test clock stands.
    pub(crate) fn test(&self) -> TestClock {
        self.test
    }

    /// What is shown before floor and ceiling.
    fn wall(&mut self) -> Second {
        let (system, part) = self.look();
        let wall = self.on_top_of(system);
        self.tell(self.floor.saturating_sub(wall));
        let runs = self.test.frozen.is_none() && wall >= self.floor;
        let seen = wall.max(self.floor).saturating_mul(1000);
        self.milliseconds = self.milliseconds.max(seen + if runs { part } else { 0 });
        wall
    }

    /// The system's clock, as far as it is believed.
    fn system(&mut self) -> Second {
        self.look().0
    }

    /// The same, and how many milliseconds of its second have passed.
    fn look(&mut self) -> (Second, u64) {
        let (look, part) = self.wall.look();
        if self.watch.is_new() {
            // As long as the wall is behind what was stored it is wrong for
            // certain, and no measure.
            if let Some(away) = self.on_top_of(look.wall).checked_sub(self.floor) {
                self.watch.begin(look, if self.floor == 0 { 0 } else { away });
            }
        }
        (self.watch.believe(look), part)
    }

    /// The test clock, on top of the system's.
    fn on_top_of(&self, system: Second) -> Second {
        let runs = || system.saturating_add_signed(self.test.offset).min(LAST_SECOND);
        self.test.frozen.unwrap_or_else(runs)
    }

    /// Tells a person when time begins to stand still, and when it goes on.
    /// After a kill it stands still for the rest of the lease, which is usual.
    fn tell(&mut self, behind: u64) {
        if !self.said_to_stand && behind > LEASE_SECONDS {
            self.said_to_stand = true;
            if behind > JUMP_SECONDS {
                tracing::warn!(
                    "the system's clock is {behind} seconds behind the time that was handed out: \
                     time stands still until it has caught up. What has expired by the later time \
                     is hidden, but stays on the disk until then. If the clock is wrong, set it \
                     right. If it is right, there is nothing to do; POST {{\"accept\":true}} to \
                     /_admin/v1/clock removes what is hidden at once"
                );
            } else {
                tracing::warn!(
                    "the system's clock is {behind} seconds behind the time that was handed out: \
                     time stands still until it has caught up"
                );
            }
        } else if self.said_to_stand && behind == 0 {
            self.said_to_stand = false;
            tracing::warn!("the system's clock has caught up: time goes on");
        }
    }
}

/// How far `second` is ahead of `system`.
fn offset(system: Second, second: Second) -> i64 {
    let ahead = i64::try_from(second.saturating_sub(system)).unwrap_or(i64::MAX);
    let behind = i64::try_from(system.saturating_sub(second)).unwrap_or(i64::MAX);
    ahead - behind
}

#[cfg(test)]
mod jump_tests;
#[cfg(test)]
mod tests;
