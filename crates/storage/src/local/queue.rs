//! Where drafted writes wait for the committer, in three lanes.
//!
//! ```text
//! small    start a group, and fill it
//! large    start a group when no small one waits; small ones may join it
//! riders   go along with any group
//! ```
//!
//! Somebody waits for a write of the first two lanes. A group that small writes
//! have started takes no **large** one, since all of them would have to wait for it.
//! Riders go along with the next group after the others, and start one of their own
//! only when nothing was synced for a while. So they never make a user's write wait
//! for one more sync.
//!
//! A large write is a burden also when it is over: it makes the engine flush and
//! compact, and when that cannot keep up, everybody waits for it. So while there are
//! small writes, the lane of the large **rests** after each of its groups, for four times as
//! long as the group took, so that it has a fifth of the committer's time; and longer if
//! the engine is behind.
//!
//! Nothing waits for ever: a rest has an end, and what heads the lane of the large, or of the riders, and
//! was left behind by [`LEFT_BEHIND_MAX`] groups in a row, starts the next one.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::group::Load;
use super::{instant, lock};
use crate::{Bucket, Error, Job, Urgency};

/// How many writes may wait; more are refused, so that a slow disk shows in
/// answers and not in memory.
pub(super) const QUEUE_JOBS_MAX: usize = 16_384;

/// How many riders may wait.
pub(super) const QUEUE_RIDERS_MAX: usize = 256;

/// How many bytes the waiting writes may hold, as far as they say.
pub(super) const QUEUE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How long after a sync riders cause no other one.
const RIDERS_REST: Duration = Duration::from_millis(50);

/// How many groups may leave without the first of a lane that is not the first
/// lane.
const LEFT_BEHIND_MAX: u32 = 3;

/// How long the large rest after a group of theirs, in the time that it took, and at
/// most; the second if the engine has not caught up with what it wrote.
const REST_TIMES: u32 = 4;
const REST_TIMES_BEHIND: u32 = 8;
const REST_MAX: Duration = Duration::from_millis(500);

/// Small writes that are further apart than this do not make large ones rest.
const SMALL_APART: Duration = Duration::from_secs(1);

/// A write that waits, and the bucket it is for.
pub(super) type Waiting = (Bucket, Box<dyn Job>);

#[derive(Default)]
pub(super) struct Queue {
    line: Mutex<Line>,
    arrived: Condvar,
}

#[derive(Default)]
struct Line {
    small: Lane,
    large: Lane,
    riders: Lane,
    bytes: usize,
    /// When something was synced last.
    synced: Option<Instant>,
    /// When the last small write came.
    small_came: Option<Instant>,
    /// Until when the large rest.
    large_rest: Option<Instant>,
    closed: bool,
}

#[derive(Default)]
struct Lane {
    waiting: VecDeque<Waiting>,
    /// How many groups in a row left without its first.
    left_behind: u32,
}

impl Lane {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether its first must not wait any longer.
    fn is_overdue(&self) -> bool {
        self.left_behind >= LEFT_BEHIND_MAX && !self.is_empty()
    }

    /// Whether its first can be part of a group.
    fn fits(&self, group: &Load) -> bool {
        self.waiting.front().is_some_and(|(_, job)| group.takes(job.weight()))
    }

    fn pop(&mut self) -> Option<Waiting> {
        self.left_behind = 0;
        self.waiting.pop_front()
    }

    /// A group leaves.
    fn stay(&mut self) {
        self.left_behind = if self.is_empty() { 0 } else { self.left_behind + 1 };
    }
}

/// What the committer does next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// It starts a group.
    Group,
    /// It waits for a write, or until the riders may go alone.
    Wait(Option<Duration>),
    /// It ends.
    End,
}

impl Queue {
    /// Puts the write at the end of its lane, or gives it back with the
    /// reason.
    pub(super) fn push(&self, waiting: Waiting) -> Result<(), (Waiting, Error)> {
        let line = &mut *lock(&self.line);
        if line.closed {
            return Err((waiting, Error::Unavailable("the store is closed".to_owned())));
        }
        let weight = waiting.1.weight();
        let is_small = waiting.1.urgency() == Urgency::Now && !weight.is_large();
        let users = line.small.waiting.len() + line.large.waiting.len();
        let riders = line.riders.waiting.len();
        let (to, is_full) = match waiting.1.urgency() {
            Urgency::Now if weight.is_large() => (&mut line.large, users >= QUEUE_JOBS_MAX),
            Urgency::Now => (&mut line.small, users >= QUEUE_JOBS_MAX),
            Urgency::Rides => (&mut line.riders, riders >= QUEUE_RIDERS_MAX),
        };
        if is_full || line.bytes.saturating_add(weight.bytes) > QUEUE_BYTES_MAX {
            return Err((waiting, Error::Unavailable("too many writes are waiting".to_owned())));
        }
        to.waiting.push_back(waiting);
        let is_first = to.waiting.len() == 1;
        line.bytes += weight.bytes;
        if is_small {
            line.small_came = Some(instant());
        }
        if is_first {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// The write that goes next into a group, which holds so much already.
    pub(super) fn pop(&self, group: &Load) -> Option<Waiting> {
        let line = &mut *lock(&self.line);
        let waiting = line.choose(group, instant())?.pop()?;
        line.bytes -= waiting.1.weight().bytes.min(line.bytes);
        Some(waiting)
    }

    /// Any write: the store cannot take them.
    pub(super) fn pop_any(&self) -> Option<Waiting> {
        self.pop(&Load::default())
    }

    /// The group takes no more writes.
    pub(super) fn leaves(&self) {
        let line = &mut *lock(&self.line);
        line.large.stay();
        line.riders.stay();
    }

    /// Waits until a group is to be started. `false`: the queue is closed and
    /// empty.
    pub(super) fn wait(&self) -> bool {
        let mut line = lock(&self.line);
        loop {
            line = match line.next(instant()) {
                Next::Group => return true,
                Next::End => return false,
                Next::Wait(None) => self.arrived.wait(line).unwrap_or_else(PoisonError::into_inner),
                Next::Wait(Some(rest)) => {
                    let waited = self.arrived.wait_timeout(line, rest);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            }
        }
    }

    /// A group with a large write is over, which `took` so long. `behind`: the engine
    /// has not caught up with it.
    pub(super) fn rest_large(&self, took: Duration, behind: bool) {
        let line = &mut *lock(&self.line);
        let now = instant();
        let apart = line.small_came.map(|came| now.saturating_duration_since(came));
        if apart.is_some_and(|apart| apart <= SMALL_APART) {
            let times = if behind { REST_TIMES_BEHIND } else { REST_TIMES };
            line.large_rest = Some(now + took.saturating_mul(times).min(REST_MAX));
        }
    }

    /// Something was synced just now.
    pub(super) fn synced(&self) {
        lock(&self.line).synced = Some(instant());
    }

    /// Takes no more writes.
    pub(super) fn close(&self) {
        lock(&self.line).closed = true;
        self.arrived.notify_all();
    }
}

impl Line {
    /// The lane whose first goes next into a group.
    fn choose(&mut self, group: &Load, now: Instant) -> Option<&mut Lane> {
        let starts = group.is_empty() && self.rest_of_large(now).is_none();
        let large_starts = starts && (self.large.is_overdue() || self.small.is_empty());
        let joins = group.has_large() && self.large.fits(group);
        if self.riders.is_overdue() && self.riders.fits(group) {
            Some(&mut self.riders)
        } else if large_starts && !self.large.is_empty() {
            Some(&mut self.large)
        } else if self.small.fits(group) {
            Some(&mut self.small)
        } else if joins {
            Some(&mut self.large)
        } else {
            self.riders.fits(group).then_some(&mut self.riders)
        }
    }

    /// How long the large still rest.
    fn rest_of_large(&self, now: Instant) -> Option<Duration> {
        let rest = self.large_rest.filter(|_| !self.closed)?.saturating_duration_since(now);
        (!rest.is_zero()).then_some(rest)
    }

    /// How long riders cause no sync.
    fn rest_of_riders(&self, now: Instant) -> Option<Duration> {
        let since = now.saturating_duration_since(self.synced.filter(|_| !self.closed)?);
        RIDERS_REST.checked_sub(since).filter(|rest| !rest.is_zero())
    }

    fn next(&self, now: Instant) -> Next {
        let rests = [
            (!self.small.is_empty()).then_some(None),
            (!self.large.is_empty()).then(|| self.rest_of_large(now)),
            (!self.riders.is_empty()).then(|| self.rest_of_riders(now)),
        ];
        match rests.into_iter().flatten().min() {
            // Some lane has nothing to wait for; it comes before any rest.
            Some(None) => Next::Group,
            Some(rest) => Next::Wait(rest),
            None if self.closed => Next::End,
            None => Next::Wait(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Draft, Local, LocalOptions, Plan, Stamp, Store, View, commit};

    struct Waits(Urgency);

    impl Plan for Waits {
        type Done = Stamp;
        type Refusal = Error;

        fn draft(&self, _: &View<'_>) -> crate::Result<Draft<Stamp>> {
            Ok(Draft::new(|stamp, batch: &mut Batch| {
                batch.put(b"k".to_vec(), "v");
                stamp
            }))
        }

        fn urgency(&self) -> Urgency {
            self.0
        }
    }

    /// The line of a store after `urgencies` were handed in, `since` after the
    /// last sync.
    fn next(urgencies: &[Urgency], since: Option<Duration>, closed: bool) -> Next {
        let options = LocalOptions { manual: true, ..LocalOptions::default() };
        let store = Local::memory(options).unwrap();
        for urgency in urgencies {
            let _ticket = commit(&store, Bucket(1), Waits(*urgency));
        }
        let synced = instant();
        let mut line = lock(&store.shared.queue.line);
        line.synced = since.map(|_| synced);
        line.closed = closed;
        line.next(synced + since.unwrap_or_default())
    }

    #[test]
    fn riders_alone_start_a_group_only_when_nothing_was_synced_for_a_while() {
        use Urgency::{Now, Rides};
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(next(&[], ms(0), false), Next::Wait(None));
        assert_eq!(next(&[Now], ms(0), false), Next::Group);
        assert_eq!(next(&[Rides], None, false), Next::Group);
        assert_eq!(next(&[Rides], ms(0), false), Next::Wait(ms(50)));
        assert_eq!(next(&[Rides], ms(49), false), Next::Wait(ms(1)));
        assert_eq!(next(&[Rides], ms(50), false), Next::Group);
        assert_eq!(next(&[Rides, Now], ms(0), false), Next::Group);
    }

    #[test]
    fn full_groups_do_not_leave_a_rider_behind_for_ever() {
        let options = LocalOptions { manual: true, ..LocalOptions::default() };
        let store = Local::memory(options).unwrap();
        let _rider = commit(&store, Bucket(1), Waits(Urgency::Rides));
        let mut groups = 0;
        while !lock(&store.shared.queue.line).riders.is_empty() {
            assert!(groups < 4, "{groups} groups left without the rider");
            for _ in 0..1024 {
                let _ticket = commit(&store, Bucket(1), Waits(Urgency::Now));
            }
            store.begin_group();
            store.publish_group();
            groups += 1;
        }
        // It went ahead of others once, and only then.
        assert_eq!((groups, lock(&store.shared.queue.line).small.waiting.len()), (4, 1));
    }

    #[test]
    fn a_closed_queue_is_emptied_at_once() {
        let just_now = Some(Duration::ZERO);
        assert_eq!(next(&[Urgency::Rides], just_now, true), Next::Group);
        assert_eq!(next(&[], just_now, true), Next::End);
    }

    #[test]
    fn a_written_group_lets_the_riders_rest() {
        let store = Local::memory(LocalOptions { manual: true, ..LocalOptions::default() });
        let store = store.unwrap();
        lock(&store.shared.queue.line).synced = None;
        let ticket = commit(&store, Bucket(1), Waits(Urgency::Now));
        store.begin_group();
        store.publish_group();
        ticket.wait().unwrap();
        assert!(lock(&store.shared.queue.line).synced.is_some());
        store.close().unwrap();
    }
}
