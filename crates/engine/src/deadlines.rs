//! When is which bucket to be looked at?
//!
//! One queue of (due second, bucket), in memory. A bucket with nothing to come
//! is not in it, so it costs nothing. Three things put one in: the look at the
//! start, a write whose item dies earlier than anything known of its bucket,
//! and a change of its policy.
//!
//! Nothing may get lost between a look and a write beside it. So a bucket is
//! forgotten *before* the look takes its snapshot, and a write speaks up *after*
//! it is published: a write that the snapshot does not show is remembered, and
//! one that it shows is found.
//!
//! Buckets that are due take turns, one unit each.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use dayfly_storage::{Bucket, Second};

use crate::keys;
use crate::locks::lock;

/// Waits for its turn, or has it.
const READY: Second = 0;
/// Due, whatever the time.
const LONG_AGO: Second = 1;
/// Nothing is known to come.
const NEVER: Second = Second::MAX;

/// The longest pause, in seconds, between two looks at a bucket that fails.
const PAUSE_MAX: Second = 60;

/// What is known of every bucket.
#[derive(Default)]
pub(crate) struct Deadlines {
    known: RwLock<HashMap<Bucket, Arc<KnownDeadline>>>,
    line: Mutex<DueLine>,
    /// Whether a deleted container may have left something.
    condemned: AtomicBool,
}

/// What is known of one bucket. Changed under the lock of the line only; read
/// by every write.
struct KnownDeadline {
    due: AtomicU64,
}

#[derive(Default)]
struct DueLine {
    /// In the order of their time. Each bucket is here once at most.
    waiting: BTreeSet<(Second, Bucket)>,
    /// Those that are due, in the order of their turns.
    ready: VecDeque<Bucket>,
    /// Whose turn it is.
    working: Option<Bucket>,
    /// How often in a row a bucket failed.
    failures: HashMap<Bucket, u32>,
}

/// What a look at a bucket said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// More is due.
    More,
    /// Nothing is due before this second; `None`: nothing is to come.
    Next(Option<Second>),
    /// The bucket is gone.
    Gone,
    /// The look failed at this second.
    Failed(Second),
}

impl Outlook {
    /// What two looks at one bucket said.
    pub(crate) fn and(self, other: Outlook) -> Outlook {
        match (self, other) {
            (Outlook::Next(one), Outlook::Next(other)) => {
                Outlook::Next([one, other].into_iter().flatten().min())
            }
            (Outlook::Next(_) | Outlook::More, Outlook::More)
            | (Outlook::More, Outlook::Next(_)) => Outlook::More,
            (ended, Outlook::Next(_) | Outlook::More) => ended,
            (_, ended) => ended,
        }
    }
}

impl Deadlines {
    /// Something in `bucket` dies at `at`. Nearly always something else dies
    /// before it; then this is a comparison.
    pub(crate) fn tell(&self, bucket: Bucket, at: Second) {
        let earlier = |known: &Arc<KnownDeadline>| known.due.load(Ordering::Acquire) <= at;
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.get(&bucket).is_some_and(earlier) {
            return;
        }
        drop(known);
        let known = self.known(bucket);
        lock(&self.line).lower(bucket, &known, at);
    }

    /// `bucket` needs a look: its policy changed, perhaps.
    pub(crate) fn look_at(&self, bucket: Bucket) {
        self.tell(bucket, LONG_AGO);
    }

    /// A container was deleted, or may have been: its buckets are to be
    /// cleared.
    pub(crate) fn condemned(&self) {
        self.condemned.store(true, Ordering::SeqCst);
    }

    /// Whether something may be left of a deleted container.
    pub(crate) fn has_condemned(&self) -> bool {
        self.condemned.load(Ordering::SeqCst)
    }

    /// Forgets that, before a look: who condemns another bucket from now on is heard.
    pub(crate) fn forget_condemned(&self) {
        self.condemned.store(false, Ordering::SeqCst);
    }

    /// Lines up what is due at `now`. Says whether anything is.
    pub(crate) fn wake(&self, now: Second) -> bool {
        let mut line = lock(&self.line);
        while let Some((at, bucket)) = line.waiting.first().copied() {
            if at > now {
                break;
            }
            line.waiting.pop_first();
            self.known(bucket).due.store(READY, Ordering::Release);
            line.ready.push_back(bucket);
        }
        !line.ready.is_empty()
    }

    /// The bucket whose turn it is. What is known of it is forgotten, so that
    /// a write from now on is remembered.
    pub(crate) fn take(&self) -> Option<Bucket> {
        let mut line = lock(&self.line);
        let bucket = line.ready.pop_front()?;
        self.known(bucket).due.store(NEVER, Ordering::Release);
        line.working = Some(bucket);
        Some(bucket)
    }

    /// The look at a bucket that was taken is over.
    pub(crate) fn settle(&self, bucket: Bucket, after: Outlook) {
        let known = self.known(bucket);
        let mut line = lock(&self.line);
        line.working = None;
        let failed = matches!(after, Outlook::Failed(_));
        if !failed {
            line.failures.remove(&bucket);
        }
        match after {
            Outlook::More => {
                line.waiting.remove(&(known.due.load(Ordering::Acquire), bucket));
                known.due.store(READY, Ordering::Release);
                line.ready.push_back(bucket);
            }
            Outlook::Next(Some(at)) => line.lower(bucket, &known, at),
            Outlook::Next(None) => {}
            Outlook::Gone => {
                drop(line);
                self.forget(bucket);
            }
            Outlook::Failed(now) => {
                let times = line.failures.entry(bucket).or_default();
                let pause = (1 << (*times).min(6)).min(PAUSE_MAX);
                *times += 1;
                line.lower(bucket, &known, now.saturating_add(pause));
            }
        }
    }

    /// The bucket is gone.
    pub(crate) fn forget(&self, bucket: Bucket) {
        let known = self.known(bucket);
        let mut line = lock(&self.line);
        line.waiting.remove(&(known.due.load(Ordering::Acquire), bucket));
        line.failures.remove(&bucket);
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(&bucket);
    }

    /// The containers whose turn has come.
    pub(crate) fn at_work(&self) -> HashSet<u32> {
        let line = lock(&self.line);
        let buckets = line.ready.iter().copied().chain(line.working);
        buckets.filter_map(keys::container_of).collect()
    }

    fn known(&self, bucket: Bucket) -> Arc<KnownDeadline> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&bucket) {
            return Arc::clone(known);
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(KnownDeadline { due: AtomicU64::new(NEVER) });
        Arc::clone(known.entry(bucket).or_insert_with(new))
    }

    /// The time of the next look, and how many buckets wait for theirs.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> (Option<Second>, usize) {
        let line = lock(&self.line);
        (line.waiting.first().map(|(at, _)| *at), line.waiting.len() + line.ready.len())
    }
}

impl DueLine {
    fn lower(&mut self, bucket: Bucket, known: &KnownDeadline, at: Second) {
        let before = known.due.load(Ordering::Acquire);
        if before > at {
            self.waiting.remove(&(before, bucket));
            self.waiting.insert((at, bucket));
            known.due.store(at, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Bucket = Bucket(0x100);
    const B: Bucket = Bucket(0x200);

    fn turns(deadlines: &Deadlines, now: Second) -> Vec<Bucket> {
        deadlines.wake(now);
        std::iter::from_fn(|| deadlines.take()).collect()
    }

    #[test]
    fn a_bucket_comes_when_its_earliest_is_due_and_only_once() {
        let deadlines = Deadlines::default();
        for at in [50, 40, 60] {
            deadlines.tell(A, at);
        }
        deadlines.tell(B, 45);
        assert_eq!(deadlines.waiting(), (Some(40), 2));
        assert_eq!(turns(&deadlines, 39), []);
        assert_eq!(turns(&deadlines, 45), [A, B]);
        assert_eq!(turns(&deadlines, 1000), []);
    }

    #[test]
    fn a_bucket_with_more_goes_to_the_end_of_the_line() {
        let deadlines = Deadlines::default();
        deadlines.tell(A, 10);
        deadlines.tell(B, 20);
        deadlines.wake(20);
        let turns: Vec<_> = (0..4)
            .filter_map(|_| {
                let bucket = deadlines.take()?;
                deadlines.settle(bucket, Outlook::More);
                Some(bucket)
            })
            .collect();
        assert_eq!(turns, [A, B, A, B]);
    }

    #[test]
    fn what_is_told_during_a_look_is_not_lost() {
        let deadlines = Deadlines::default();
        deadlines.tell(A, 10);
        deadlines.wake(10);
        assert_eq!(deadlines.take(), Some(A));
        deadlines.tell(A, 15);
        deadlines.settle(A, Outlook::Next(Some(30)));
        assert_eq!(deadlines.waiting(), (Some(15), 1));

        assert_eq!(turns(&deadlines, 15), [A]);
        deadlines.tell(A, 20);
        deadlines.settle(A, Outlook::More);
        assert_eq!(deadlines.waiting(), (None, 1));
    }

    #[test]
    fn a_bucket_that_fails_is_tried_again_after_longer_and_longer() {
        let deadlines = Deadlines::default();
        deadlines.look_at(A);
        let mut now = 100;
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(turns(&deadlines, now), [A]);
            deadlines.settle(A, Outlook::Failed(now));
            assert_eq!(deadlines.waiting(), (Some(now + pause), 1));
            now += pause;
        }
        assert_eq!(turns(&deadlines, now), [A]);
        deadlines.settle(A, Outlook::Next(Some(now)));
        assert_eq!(turns(&deadlines, now), [A]);
        deadlines.settle(A, Outlook::Failed(now));
        assert_eq!(deadlines.waiting(), (Some(now + 1), 1));
    }

    #[test]
    fn a_bucket_that_is_gone_leaves_nothing() {
        let deadlines = Deadlines::default();
        deadlines.look_at(A);
        assert_eq!(turns(&deadlines, 1), [A]);
        deadlines.tell(A, 50);
        deadlines.settle(A, Outlook::Gone);
        assert_eq!(deadlines.waiting(), (None, 0));
        assert!(deadlines.known.read().unwrap().is_empty());
    }
}
