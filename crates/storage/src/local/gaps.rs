//! Stretches of keys that are known to be empty.
//!
//! A delete leaves a tombstone in an LSM tree, which stays until a compaction
//! meets it. A scan steps over all tombstones on its way: after a purge of the
//! oldest million, whoever asks for the oldest ten steps over a million of them,
//! each time. So a stretch that took long to cross, with nothing in it, is
//! remembered, and the next scan leaps over it.
//!
//! A stretch is known to be empty from a generation on, until something is put
//! there:
//!
//! ```text
//! a scan at 5 finds it empty, while 6 is written    watched: what is put there cuts it
//! a scan at 7 finds it empty still                  known, for snapshots of 7 and later
//! the writes of 9 put a key there                   cut in two, around the key
//! ```
//!
//! It takes two scans if writes went by during the first: nobody knows where
//! those were. Who deletes much in one place does not wait for a scan to be slow:
//! a probe watches the stretch first, then looks, so it is sure at once. All of this
//! is in memory and small. To forget a stretch costs time, nothing else.
//!
//! The same is known of stretches that are **barren**: there is something in them,
//! but nothing that is alive, and what is dead stays dead. That is known from a
//! time on, too.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::backend::Writes;
use super::{instant, lock};
use crate::{Direction, Second, after};

/// How many stretches are known at most, and watched.
const KNOWN_MAX: usize = 4096;
const WATCHED_MAX: usize = 32;

/// A stretch that takes so many times longer is not slow by chance.
const VERY_SLOW: u32 = 20;

/// What a probe finds is worth to be known if it takes this part of what is slow.
const PROBE_PART: u32 = 10;

/// How many keys a probe comes to, at most.
const PROBE_KEYS: usize = 8;

/// Keys from the first up to but not including the second.
pub(super) type Stretch = (Vec<u8>, Vec<u8>);

/// What a snapshot is of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub(super) generation: u64,
    /// 0 where time does not matter.
    pub(super) now: Second,
}

impl Moment {
    /// Any time of a generation.
    pub(super) fn of(generation: u64) -> Moment {
        Moment { generation, now: 0 }
    }

    fn has_come(self, here: Moment) -> bool {
        self.generation <= here.generation && self.now <= here.now
    }

    fn later(self, other: Moment) -> Moment {
        Moment { generation: self.generation.max(other.generation), now: self.now.max(other.now) }
    }
}

/// The end of an empty stretch, and from when on it is empty.
type Until = (Vec<u8>, Moment);

/// What is known to be empty.
pub(super) struct Gaps {
    /// A stretch that takes longer than this is worth to be known.
    slow: Duration,
    known: Mutex<Known>,
    /// Whether anything is known; asked before the lock is taken.
    any: AtomicBool,
    /// How many stretches took very long.
    slow_count: AtomicU64,
}

#[derive(Default)]
struct Known {
    /// Empty stretches that neither meet nor touch, by their start.
    empty: BTreeMap<Vec<u8>, Until>,
    /// Stretches, and the generation after which all writes were compared.
    watched: VecDeque<(Stretch, u64)>,
    /// The last generation whose writes were compared.
    compared: u64,
}

/// Where a scan has to look.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    /// The next keys to read; none if the stretch starts inside an empty one.
    pub(super) part: Option<Stretch>,
    /// What to ask about after that. Between the two nothing is stored.
    pub(super) rest: Option<Stretch>,
}

impl Gaps {
    pub(super) fn new(slow: Duration) -> Gaps {
        Gaps {
            slow,
            known: Mutex::default(),
            any: AtomicBool::new(false),
            slow_count: AtomicU64::new(0),
        }
    }

    /// How many stretches took very long to cross.
    pub(super) fn slow_count(&self) -> u64 {
        self.slow_count.load(Ordering::Relaxed)
    }

    /// How many stretches are known to be empty.
    pub(super) fn count(&self) -> u64 {
        lock(&self.known).empty.len() as u64
    }

    /// Where a scan of a stretch has to look, in a snapshot of this moment.
    pub(super) fn ahead(&self, stretch: Stretch, here: Moment, direction: Direction) -> Ahead {
        if !self.any.load(Ordering::Relaxed) {
            return Ahead { part: Some(stretch), rest: None };
        }
        lock(&self.known).ahead(stretch, here, direction)
    }

    /// Watches a stretch that is about to be looked at. No group may be on its way
    /// until the snapshot for that is taken.
    pub(super) fn watch(&self, stretch: Stretch) {
        lock(&self.known).watch(stretch);
    }

    /// Nobody looks there any more.
    pub(super) fn unwatch(&self, (start, end): &Stretch) {
        lock(&self.known).watched.retain(|((from, to), _)| from < start || end < to);
    }

    /// Before the writes of a generation are published.
    pub(super) fn compare(&self, generation: u64, writes: &Writes) {
        let mut known = lock(&self.known);
        known.compared = generation;
        if known.empty.is_empty() && known.watched.is_empty() {
            return;
        }
        for (key, value) in writes {
            if value.is_some() {
                known.cut(key);
            }
        }
        self.note(&known);
    }

    /// Forgets everything: what is there as `generation` was written elsewhere.
    pub(super) fn forget(&self, generation: u64) {
        let mut known = lock(&self.known);
        *known = Known { compared: generation, ..Known::default() };
        self.note(&known);
    }

    /// A scan of this moment found nothing in a stretch, and took long.
    pub(super) fn found(&self, stretch: Stretch, here: Moment) {
        let mut known = lock(&self.known);
        known.found(stretch, here);
        self.note(&known);
    }

    fn note(&self, known: &MutexGuard<'_, Known>) {
        self.any.store(!known.empty.is_empty(), Ordering::Relaxed);
    }
}

impl Known {
    fn ahead(&self, (start, end): Stretch, here: Moment, direction: Direction) -> Ahead {
        let some =
            |start: &Vec<u8>, end: &Vec<u8>| (start < end).then(|| (start.clone(), end.clone()));
        let meets = |(_, (to, since)): &(&Vec<u8>, &Until)| since.has_come(here) && *to > start;
        let within = (Bound::Excluded(&start[..]), Bound::Excluded(&end[..]));
        let mut within = self.empty.range::<[u8], _>(within);
        let before = || self.up_to(&start).filter(meets);
        let gap = match direction {
            Direction::Forward => before().or_else(|| within.find(meets)),
            Direction::Backward => within.rfind(meets).or_else(before),
        };
        let Some((from, (to, _))) = gap else {
            return Ahead { part: Some((start, end)), rest: None };
        };
        let (lower, upper) = (some(&start, from), some(to, &end));
        match direction {
            Direction::Forward => Ahead { part: lower, rest: upper },
            Direction::Backward => Ahead { part: upper, rest: lower },
        }
    }

    /// The last stretch that starts at a key or before.
    fn up_to(&self, key: &[u8]) -> Option<(&Vec<u8>, &Until)> {
        self.empty.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()
    }

    /// Takes what a scan of this moment found.
    ///
    /// If nothing was published since its snapshot, what it found is so. Else something may
    /// have been put there, and of writes that were compared before, nobody kept where they
    /// were. But what was put into a stretch that was watched has cut it; so what is left of
    /// those that were watched since before the snapshot is empty still, and only that is
    /// learnt. The whole is watched from now on, so that the next scan of it is sure.
    fn found(&mut self, stretch: Stretch, here: Moment) {
        if here.generation >= self.compared {
            return self.learn(stretch, here);
        }
        let (start, end) = &stretch;
        let sure: Vec<Stretch> = self
            .watched
            .iter()
            .filter(|(_, after)| *after <= here.generation)
            .map(|((from, to), _)| (from.max(start).clone(), to.min(end).clone()))
            .filter(|(from, to)| from < to)
            .collect();
        let is_new = !sure.contains(&stretch);
        for part in sure {
            self.learn(part, here);
        }
        if is_new {
            self.watch(stretch);
        }
    }

    fn watch(&mut self, stretch: Stretch) {
        if self.watched.len() >= WATCHED_MAX {
            self.watched.pop_front();
        }
        self.watched.push_back((stretch, self.compared));
    }

    /// A stretch is empty, from this moment on.
    fn learn(&mut self, (mut start, mut end): Stretch, mut since: Moment) {
        while let Some((from, (to, earlier))) = self.up_to(&end)
            && *to >= start
        {
            since = since.later(*earlier);
            let (from, to) = (from.clone(), to.clone());
            self.empty.remove(&from);
            start = start.min(from);
            end = end.max(to);
        }
        if self.empty.len() >= KNOWN_MAX {
            self.empty.clear();
        }
        self.empty.insert(start, (end, since));
    }

    /// Something is put at a key.
    fn cut(&mut self, key: &[u8]) {
        if let Some((start, (end, since))) = self.up_to(key)
            && *key < **end
        {
            let (stretch, since) = ((start.clone(), end.clone()), *since);
            self.empty.remove(&stretch.0);
            for (start, end) in around(&stretch, key) {
                self.empty.insert(start, (end, since));
            }
        }
        let met = |((start, end), _): &(Stretch, u64)| **start <= *key && *key < **end;
        while let Some(place) = self.watched.iter().position(met)
            && let Some((stretch, after)) = self.watched.remove(place)
        {
            // Most is put behind what was there, so the part before the key stays when
            // there is no room for both.
            let room = WATCHED_MAX - self.watched.len().min(WATCHED_MAX);
            let parts = around(&stretch, key).map(|part| (part, after));
            self.watched.extend(parts.take(room));
        }
        if self.empty.len() > KNOWN_MAX {
            self.empty.clear();
        }
    }
}

/// What is left of a stretch on both sides of a key.
fn around((start, end): &Stretch, key: &[u8]) -> impl Iterator<Item = Stretch> {
    let parts = [(start.clone(), key.to_vec()), (after(key), end.clone())];
    parts.into_iter().filter(|(start, end)| start < end)
}

/// Looks whether a stretch is empty in which much was deleted.
pub(super) struct Probe<'a> {
    gaps: &'a Gaps,
    generation: u64,
    /// The end of what was deleted.
    deleted: Vec<u8>,
    /// Where the next empty part begins.
    from: Vec<u8>,
    since: Instant,
    keys: usize,
}

impl<'a> Probe<'a> {
    /// A probe of a stretch from `from` on, of which what is before `deleted`
    /// was deleted.
    pub(super) fn new(gaps: &'a Gaps, generation: u64, from: Vec<u8>, deleted: Vec<u8>) -> Self {
        Probe { gaps, generation, deleted, from, since: instant(), keys: 0 }
    }

    /// There is something at a key. There may be another empty part behind it.
    pub(super) fn met(&mut self, key: &Bytes) -> ControlFlow<()> {
        let now = instant();
        let is_slow = now.duration_since(self.since) >= self.gaps.slow / PROBE_PART;
        let is_behind = **key >= *self.deleted;
        if is_slow || is_behind {
            self.empty_to(key.to_vec());
        }
        self.from = after(key);
        self.since = now;
        self.keys += 1;
        let goes_on = !is_behind && self.keys < PROBE_KEYS;
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// There is nothing up to a key, not even at it.
    pub(super) fn empty_to(&mut self, end: Vec<u8>) {
        let start = std::mem::replace(&mut self.from, end.clone());
        if start < end {
            self.gaps.found((start, end), Moment::of(self.generation));
        }
    }
}

/// Looks how long a scan takes from key to key.
pub(super) struct Stopwatch<'a> {
    gaps: &'a Gaps,
    stretch: &'a Stretch,
    generation: u64,
    direction: Direction,
    /// The key that was met last, and when.
    last: Option<Bytes>,
    since: Instant,
}

impl<'a> Stopwatch<'a> {
    pub(super) fn new(
        gaps: &'a Gaps,
        stretch: &'a Stretch,
        generation: u64,
        direction: Direction,
    ) -> Stopwatch<'a> {
        Stopwatch { gaps, stretch, generation, direction, last: None, since: instant() }
    }

    /// The scan has come to a key.
    pub(super) fn met(&mut self, key: &Bytes) {
        let now = instant();
        let took = now.duration_since(self.since);
        if took >= self.gaps.slow {
            self.slow(Some(key), took);
        }
        self.last = Some(key.clone());
        self.since = now;
    }

    /// The scan has come to the end of the stretch.
    pub(super) fn ended(self) {
        let took = self.since.elapsed();
        if took >= self.gaps.slow {
            self.slow(None, took);
        }
    }

    /// It took long to get to a key, or to the end.
    fn slow(&self, key: Option<&Bytes>, took: Duration) {
        let (start, end) = self.stretch;
        let empty = match self.direction {
            Direction::Forward => (
                self.last.as_ref().map_or_else(|| start.clone(), |last| after(last)),
                key.map_or_else(|| end.clone(), |key| key.to_vec()),
            ),
            Direction::Backward => (
                key.map_or_else(|| start.clone(), |key| after(key)),
                self.last.as_ref().map_or_else(|| end.clone(), |last| last.to_vec()),
            ),
        };
        if empty.0 >= empty.1 {
            return;
        }
        self.gaps.found(empty, Moment::of(self.generation));
        if took / VERY_SLOW >= self.gaps.slow {
            self.gaps.slow_count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(start: &str, end: &str) -> Stretch {
        (start.into(), end.into())
    }

    fn gaps() -> Gaps {
        Gaps::new(Duration::ZERO)
    }

    fn put(gaps: &Gaps, generation: u64, key: &str) {
        gaps.compare(generation, &Writes::from([(key.into(), Some(Bytes::new()))]));
    }

    /// Where a scan of a stretch looks.
    fn parts(gaps: &Gaps, stretch: Stretch, generation: u64, direction: Direction) -> Vec<Stretch> {
        let (mut parts, mut left) = (Vec::new(), Some(stretch));
        while let Some(stretch) = left {
            let ahead = gaps.ahead(stretch, Moment::of(generation), direction);
            parts.extend(ahead.part);
            left = ahead.rest;
        }
        parts
    }

    /// What a scan from `a` to `z` still reads, as text.
    fn rest(gaps: &Gaps, generation: u64) -> String {
        let rest = parts(gaps, stretch("a", "z"), generation, Direction::Forward);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', "+");
        let parts = rest.iter().map(|(start, end)| format!("{}-{}", text(start), text(end)));
        parts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_empty_is_leapt_over_until_something_is_put_there() {
        let gaps = gaps();
        put(&gaps, 5, "q");
        gaps.found(stretch("c", "g"), Moment::of(5));
        assert_eq!(rest(&gaps, 5), "a-c g-z");
        assert_eq!(rest(&gaps, 4), "a-z", "older snapshots may have had something there");

        put(&gaps, 6, "d");
        assert_eq!(rest(&gaps, 6), "a-c d-d+ g-z");
        gaps.compare(7, &Writes::from([(b"e".to_vec(), None)]));
        assert_eq!(rest(&gaps, 7), "a-c d-d+ g-z", "a delete puts nothing there");

        gaps.forget(8);
        assert_eq!(rest(&gaps, 8), "a-z");
    }

    #[test]
    fn what_is_barren_is_so_from_a_time_on() {
        let gaps = gaps();
        let at = |generation, now| Moment { generation, now };
        gaps.found(stretch("c", "g"), at(5, 100));
        gaps.found(stretch("g", "k"), at(4, 101));
        for (here, expected) in
            [(at(5, 101), true), (at(6, 102), true), (at(5, 100), false), (at(4, 101), false)]
        {
            let ahead = gaps.ahead(stretch("d", "h"), here, Direction::Forward);
            assert_eq!(ahead.part.is_none(), expected, "{here:?}");
        }
    }

    #[test]
    fn what_was_found_beside_writes_is_found_twice() {
        let gaps = gaps();
        put(&gaps, 6, "d");
        gaps.found(stretch("c", "g"), Moment::of(5));
        assert_eq!(rest(&gaps, 6), "a-z", "the writes of 6 may be there, and are");

        put(&gaps, 7, "f");
        gaps.found(stretch("d+", "f"), Moment::of(6));
        assert_eq!(rest(&gaps, 7), "a-d+ f-z");

        put(&gaps, 8, "q");
        gaps.found(stretch("f\0", "z"), Moment::of(7));
        assert_eq!(rest(&gaps, 8), "a-d+ f-f+ g-z", "what was watched is sure, and no more");
    }

    #[test]
    fn a_probe_is_sure_around_what_was_put_meanwhile() {
        let gaps = gaps();
        put(&gaps, 5, "q");
        gaps.watch(stretch("c", "m"));
        put(&gaps, 6, "b");
        put(&gaps, 7, "k");
        put(&gaps, 8, "f");
        let mut probe = Probe::new(&gaps, 5, b"c".to_vec(), b"j".to_vec());
        assert!(probe.met(&Bytes::from_static(b"d")).is_continue());
        assert_eq!(rest(&gaps, 8), "a-c d-z");
        assert!(probe.met(&Bytes::from_static(b"j")).is_break(), "behind what was deleted");
        assert_eq!(rest(&gaps, 8), "a-c d-d+ f-f+ j-z", "`f` was put there");
        assert_eq!(rest(&gaps, 4), "a-z");
        put(&gaps, 9, "e");
        assert_eq!(rest(&gaps, 9), "a-c d-d+ e-e+ f-f+ j-z", "what is known is watched as ever");
        gaps.unwatch(&stretch("c", "m"));
        assert!(lock(&gaps.known).watched.is_empty());

        gaps.watch(stretch("r", "z"));
        gaps.forget(10);
        gaps.found(stretch("r", "z"), Moment::of(9));
        assert_eq!(rest(&gaps, 10), "a-z", "it was another store");
    }

    #[test]
    fn a_probe_ends_behind_what_was_deleted_or_after_some_keys() {
        let gaps = Gaps::new(Duration::MAX);
        gaps.watch(stretch("c", "m"));
        let mut probe = Probe::new(&gaps, 0, b"c".to_vec(), b"j".to_vec());
        for _ in 1..PROBE_KEYS {
            assert!(probe.met(&Bytes::from_static(b"d")).is_continue());
        }
        assert!(probe.met(&Bytes::from_static(b"d")).is_break());
        assert_eq!(rest(&gaps, 0), "a-z", "what was deleted lies here and there");
        let mut probe = Probe::new(&gaps, 0, b"c".to_vec(), b"j".to_vec());
        assert!(probe.met(&Bytes::from_static(b"k")).is_break());
        assert_eq!(rest(&gaps, 0), "a-c k-z", "all that was deleted lies together");
    }

    #[test]
    fn stretches_that_touch_become_one_and_a_scan_may_start_within() {
        let gaps = gaps();
        for (start, end) in [("c", "e"), ("g", "i"), ("e", "g"), ("k", "l")] {
            gaps.found(stretch(start, end), Moment::of(5));
        }
        assert_eq!(rest(&gaps, 5), "a-c i-k l-z");
        assert_eq!(lock(&gaps.known).empty.len(), 2);
        let within = parts(&gaps, stretch("d", "k"), 5, Direction::Backward);
        assert_eq!(within, [stretch("i", "k")]);
        assert!(parts(&gaps, stretch("d", "f"), 5, Direction::Forward).is_empty());
        let backward = parts(&gaps, stretch("a", "z"), 5, Direction::Backward);
        assert_eq!(backward, [stretch("l", "z"), stretch("i", "k"), stretch("a", "c")]);
    }

    #[test]
    fn what_is_known_has_a_limit() {
        let gaps = gaps();
        for number in 0..3 * KNOWN_MAX {
            gaps.found(stretch(&format!("b{number:05}"), &format!("b{number:05}x")), Moment::of(0));
            put(&gaps, 0, "q");
            assert!(lock(&gaps.known).empty.len() <= KNOWN_MAX);
        }
        put(&gaps, 9, "q");
        for number in 0..100 {
            gaps.found(stretch(&format!("b{number:05}"), "c"), Moment::of(8));
            put(&gaps, 9, &format!("b{number:05}x"));
            assert!(lock(&gaps.known).watched.len() <= WATCHED_MAX);
        }
        gaps.watch(stretch("d", "e"));
        (1..100).for_each(|number| put(&gaps, 10, &format!("d{number:02}")));
        gaps.found(stretch("d", "d01"), Moment::of(9));
        assert!(rest(&gaps, 10).contains(" d01-"), "what is before all that was put stays");
        assert!(lock(&gaps.known).watched.len() <= WATCHED_MAX);
    }
}
