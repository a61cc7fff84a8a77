//! How fast may the purge go?
//!
//! A unit of the purge joins the next group of commits, so it costs users what
//! it adds to that group. While they are busy units are small, one to a group;
//! the less they do, the larger units become. A rider never causes a sync
//! within 50 ms of the last one, and that is the pace on an idle server. One
//! unit at a time means about one for every other group on a busy one.
//!
//! | users' commits/s | items a unit | rest before it |
//! |------------------|--------------|----------------|
//! | less than 5      | 512          | none           |
//! | less than 50     | 128          | none           |
//! | less than 500    | 32           | 1 ms           |
//! | more             | 16           | 1 ms           |
//!
//! When writes are slow and users are there, units are smallest, and rest as
//! long as a write takes. When the disk is nearly full the purge goes first:
//! it is what makes room.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use dayfly_model::charge;
use dayfly_model::meter::Units;
use dayfly_storage::{Error, Figures, Store, Urgency};

use super::lock;
use crate::stopwatch::instant;

/// How long the purge rests when nothing is due.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);

/// For how long a measurement is good; measuring looks at the disk.
const MEASURE_EVERY: Duration = Duration::from_millis(250);

/// A measurement over more than this says nothing about now.
const MEASURE_WITHIN: Duration = Duration::from_secs(3);

/// Fewer commits a second than this, and nobody notices a large unit.
const IDLE_PER_SECOND: f64 = 5.0;

/// A write that takes longer than this is slow.
const SLOW_WRITE_MS: f64 = 50.0;

/// How many bytes of records eight items of a unit may have.
const BYTES_PER_EIGHT: usize = 32 * 1024;

/// What goes on in the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Load {
    /// Commits by others than the purge, a second.
    pub(super) users_per_second: f64,
    /// How long a write to the disk takes.
    pub(super) write_ms: f64,
    /// Whether anything is due.
    pub(super) backlog: bool,
    /// Whether the disk is nearly full.
    pub(super) full: bool,
}

/// What the purge may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The size of the next unit.
    pub(crate) items: usize,
    /// How long to rest before it.
    pub(crate) rest: Duration,
    /// Whether it waits for company.
    pub(crate) urgency: Urgency,
}

impl Pace {
    /// As fast as it goes.
    pub(super) const FULL: Pace = Pace { items: 512, rest: Duration::ZERO, urgency: Urgency::Now };

    /// The same, for a unit that may cost no more than this: none of its items costs less
    /// than the cheapest write.
    pub(super) fn within(self, charge_max: Option<Units>) -> Pace {
        let Some(most) = charge_max else { return self };
        let cheapest = charge::of_delete(0, 0).into();
        Pace { items: self.items.min(most.holds(cheapest)).max(1), ..self }
    }

    /// How many bytes of records the next unit may have.
    pub(crate) fn bytes(self) -> usize {
        self.items.div_ceil(8) * BYTES_PER_EIGHT
    }
}

/// Decides how fast the purge may go.
pub(super) trait Pacer: Send + Sync {
    /// What the purge may do under `load`.
    fn pace(&self, load: Load) -> Pace;
}

/// Follows what users do and how long their writes take.
pub(super) struct ByUsers;

impl Pacer for ByUsers {
    fn pace(&self, load: Load) -> Pace {
        let rides = |items, rest| Pace { items, rest, urgency: Urgency::Rides };
        let ms = Duration::from_millis;
        let users = load.users_per_second;
        if !load.backlog {
            rides(512, PERIOD)
        } else if load.full {
            Pace::FULL
        } else if users < IDLE_PER_SECOND {
            rides(512, Duration::ZERO)
        } else if load.write_ms > SLOW_WRITE_MS {
            rides(8, Duration::from_secs_f64(load.write_ms / 1000.0).min(PERIOD))
        } else if users < 50.0 {
            rides(128, Duration::ZERO)
        } else if users < 500.0 {
            rides(32, ms(1))
        } else {
            rides(16, ms(1))
        }
    }
}

/// The pace of a purge that somebody waits for: at once while there are no
/// users, and as ever beside them.
pub(super) fn awaited(pacer: &dyn Pacer, load: Load) -> Pace {
    if load.users_per_second < IDLE_PER_SECOND { Pace::FULL } else { pacer.pace(load) }
}

/// Measures the load.
#[derive(Default)]
pub(super) struct LoadMeter(Mutex<Option<Measured>>);

#[derive(Clone, Copy)]
struct Measured {
    at: Instant,
    figures: Figures,
    own: u64,
    load: Load,
}

impl LoadMeter {
    /// The load of the last moments. `own` is how many of the store's commits
    /// were made by the purge.
    pub(super) fn load(&self, store: &dyn Store, own: u64, backlog: bool) -> Load {
        let now = instant();
        let mut last = lock(&self.0);
        if let Some(last) = &*last
            && now.duration_since(last.at) < MEASURE_EVERY
        {
            return Load { backlog, ..last.load };
        }
        let figures = store.figures();
        let full = store.writable() == Err(Error::Full);
        let since = last.filter(|last| now.duration_since(last.at) < MEASURE_WITHIN);
        let (users_per_second, write_ms) = match since {
            Some(last) => {
                let seconds = now.duration_since(last.at).as_secs_f64();
                between((&last.figures, last.own), (&figures, own), seconds)
            }
            // Nothing is known yet, so users may be there.
            None => (f64::INFINITY, 0.0),
        };
        if full && last.is_none_or(|last| !last.load.full) {
            tracing::warn!("the disk is nearly full, so the purge goes first");
        }
        let load = Load { users_per_second, write_ms, backlog, full };
        *last = Some(Measured { at: now, figures, own, load });
        load
    }
}

/// Commits a second by others, and the milliseconds of a write.
fn between(before: (&Figures, u64), after: (&Figures, u64), seconds: f64) -> (f64, f64) {
    let (figures_before, own_before) = before;
    let (figures, own) = after;
    let commits = figures.commits.saturating_sub(figures_before.commits);
    let users = commits.saturating_sub(own.saturating_sub(own_before));
    let groups = figures.groups.saturating_sub(figures_before.groups);
    let written = figures.commit_seconds - figures_before.commit_seconds;
    let write_ms = if groups == 0 { 0.0 } else { written * 1000.0 / float(groups) };
    (float(users) / seconds, write_ms)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(users_per_second: f64, write_ms: f64) -> Load {
        Load { users_per_second, write_ms, backlog: true, full: false }
    }

    /// The table of the module comment, and its exceptions.
    #[test]
    fn the_less_users_do_the_larger_a_unit() {
        use Urgency::{Now, Rides};
        let full = Load { full: true, ..load(5000.0, 200.0) };
        let nothing_due = Load { backlog: false, ..load(0.0, 1.0) };
        let cases = [
            (load(0.0, 2.0), 512, 0, Rides),
            (load(4.9, 2.0), 512, 0, Rides),
            (load(5.0, 2.0), 128, 0, Rides),
            (load(49.0, 2.0), 128, 0, Rides),
            (load(50.0, 2.0), 32, 1, Rides),
            (load(499.0, 2.0), 32, 1, Rides),
            (load(500.0, 2.0), 16, 1, Rides),
            (load(f64::INFINITY, 0.0), 16, 1, Rides),
            (load(5.0, 80.0), 8, 80, Rides),
            (load(500.0, 5000.0), 8, 1000, Rides),
            (load(0.0, 80.0), 512, 0, Rides),
            (full, 512, 0, Now),
            (nothing_due, 512, 1000, Rides),
            (Load { full: true, ..nothing_due }, 512, 1000, Rides),
        ];
        for (load, items, rest_ms, urgency) in cases {
            let expected = Pace { items, rest: Duration::from_millis(rest_ms), urgency };
            assert_eq!(ByUsers.pace(load), expected, "{load:?}");
        }
    }

    #[test]
    fn who_waits_for_a_purge_is_served_at_once_unless_users_are_busy() {
        assert_eq!(awaited(&ByUsers, load(0.0, 2.0)), Pace::FULL);
        assert_eq!(awaited(&ByUsers, load(900.0, 2.0)), ByUsers.pace(load(900.0, 2.0)));
    }

    #[test]
    fn a_unit_may_have_32_kib_for_eight_items() {
        assert_eq!(Pace { items: 8, ..Pace::FULL }.bytes(), 32 * 1024);
        assert_eq!(Pace::FULL.bytes(), 2 * 1024 * 1024);
    }

    #[test]
    fn the_purges_own_commits_are_nobodys_load() {
        let before =
            Figures { commits: 100, groups: 10, commit_seconds: 1.0, ..Figures::default() };
        let after = Figures { commits: 400, groups: 20, commit_seconds: 1.5, ..Figures::default() };
        let (users, write_ms) = between((&before, 5), (&after, 105), 2.0);
        assert!((users - 100.0).abs() < 1e-9);
        assert!((write_ms - 50.0).abs() < 1e-9);
    }
}
