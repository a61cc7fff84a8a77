//! What time it is, for everybody who reads or writes the store.
//!
//! ```text
//! now = clamp(wall, floor, ceiling)
//! ```
//!
//! - `wall` is the system's clock, or the test clock on top of it.
//! - `floor` is the greatest time ever handed out: time never runs backwards.
//!   When the system's clock steps back, time stands still until it catches up.
//! - `ceiling` is a durable lease, a few seconds ahead of the wall: no time
//!   past it is handed out before a later lease is on disk. After a crash the
//!   lease is the floor, so no restart can hand out an earlier time. It follows
//!   the wall and never the floor, so that crashes do not push time ahead.
//! - While a group of commits is in flight, `now` is at most their time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Second;

/// How far ahead of the wall clock a lease reaches.
pub const LEASE_SECONDS: u64 = 3;

/// The end of the year 9999, where dates end.
pub const LAST_SECOND: Second = 253_402_300_799;

/// The system's clock, replaced by hand in tests.
pub trait Wall: Send + Sync {
    /// Seconds since 1970.
    fn seconds(&self) -> Second;
}

/// The real clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemWall;

impl Wall for SystemWall {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks")]
    fn seconds(&self) -> Second {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs())
    }
}

/// A clock that shows what it is told, also when that is in the past.
#[derive(Debug, Default)]
pub struct HandWall(AtomicU64);

impl HandWall {
    /// A clock that shows `second`.
    pub fn at(second: Second) -> Self {
        HandWall(AtomicU64::new(second))
    }

    /// Shows `second` from now on.
    pub fn set(&self, second: Second) {
        self.0.store(second, Ordering::SeqCst);
    }
}

impl Wall for HandWall {
    fn seconds(&self) -> Second {
        self.0.load(Ordering::SeqCst)
    }
}

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
    /// Whether nothing may be purged, because the clock may be wrong.
    pub purge_held: bool,
}

/// A way to move the test clock.
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
    /// The store could not keep the new time.
    Storage(crate::Error),
}

/// What was done to the test clock, as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestClock {
    /// Seconds on top of the wall clock; less than 0 after a freeze.
    pub(crate) offset: i64,
    /// What it shows while it stands still.
    pub(crate) frozen: Option<Second>,
}

/// No time can be handed out before a later lease is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseNeeded;

/// The state of the clock. It writes nothing itself: whoever holds it makes
/// the lease or the test clock durable and then says so.
pub(crate) struct Clock {
    wall: Arc<dyn Wall>,
    floor: Second,
    ceiling: Second,
    in_flight: Option<Second>,
    test: TestClock,
    asked: bool,
}

impl Clock {
    /// A clock that shows `wall`.
    pub(crate) fn new(wall: Arc<dyn Wall>) -> Self {
        let test = TestClock::default();
        Clock { wall, floor: 0, ceiling: 0, in_flight: None, test, asked: false }
    }

    /// The store was opened, again perhaps, and `floor` is its last durable
    /// time.
    pub(crate) fn opened(&mut self, floor: Second, test: TestClock) {
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

    /// About what time it is. Nobody may be shown this.
    pub(crate) fn glance(&self) -> Second {
        self.wall().max(self.floor)
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
    pub(crate) fn next_lease(&self) -> Second {
        let reach = if self.test.frozen.is_some() { 0 } else { LEASE_SECONDS };
        let ahead = self.wall().saturating_add(reach);
        ahead.max(self.ceiling).max(self.floor).max(self.in_flight.unwrap_or(0))
    }

    /// The lease that should be written before somebody needs it, if time was
    /// asked for since the last one.
    pub(crate) fn lease_due(&self) -> Option<Second> {
        let near = self.wall().saturating_add(1) >= self.ceiling;
        (self.asked && near && self.can_renew()).then(|| self.next_lease())
    }

    /// Whether the next lease would reach further than the present one.
    pub(crate) fn can_renew(&self) -> bool {
        self.next_lease() > self.ceiling
    }

    /// Whether the group in flight needs a later lease than there is.
    pub(crate) fn group_needs_lease(&self) -> bool {
        self.in_flight.is_some_and(|ts| ts > self.ceiling)
    }

    /// `lease` is durable.
    pub(crate) fn leased(&mut self, lease: Second) {
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
    pub(crate) fn reading(&self, now: Second) -> Reading {
        Reading {
            now,
            frozen: self.test.frozen.is_some(),
            offset_seconds: self.wall().saturating_sub(self.wall.seconds()),
            held: false,
            purge_held: false,
        }
    }

    /// What the test clock would be after `step`, taken at `now`.
    pub(crate) fn after(&self, step: Step, now: Second) -> Result<TestClock, Refused> {
        let showing = |second: Second| match self.test.frozen {
            Some(_) => TestClock { frozen: Some(second), ..self.test },
            None => TestClock { offset: self.offset_to(second), frozen: None },
        };
        Ok(match step {
            Step::To(second) if second < now => return Err(Refused::Backwards { now }),
            Step::To(second) if second > LAST_SECOND => return Err(Refused::TooFar),
            Step::Advance(seconds) if seconds > LAST_SECOND.saturating_sub(now) => {
                return Err(Refused::TooFar);
            }
            Step::To(second) => showing(second),
            Step::Advance(seconds) => showing(now.saturating_add(seconds)),
            Step::Freeze => TestClock { frozen: Some(now), ..self.test },
            Step::Run if self.test.frozen.is_none() => self.test,
            Step::Run => TestClock { offset: self.offset_to(now), frozen: None },
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
    fn wall(&self) -> Second {
        self.test
            .frozen
            .unwrap_or_else(|| self.wall.seconds().saturating_add_signed(self.test.offset))
    }

    fn offset_to(&self, second: Second) -> i64 {
        let wall = self.wall.seconds();
        let ahead = i64::try_from(second.saturating_sub(wall)).unwrap_or(i64::MAX);
        let behind = i64::try_from(wall.saturating_sub(second)).unwrap_or(i64::MAX);
        ahead - behind
    }
}

#[cfg(test)]
mod tests;
