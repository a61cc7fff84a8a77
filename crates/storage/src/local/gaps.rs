//! Stretches of keys that are known to be empty.
//!
//! What is deleted leaves a mark in an LSM tree, and the mark stays until a
//! compaction comes by. A scan steps over all marks on its way: after a purge
//! of the oldest million, whoever asks for the oldest ten steps over a million
//! marks, each time. So a stretch that took long to cross, with nothing in it,
//! is remembered, and the next scan leaps over it.
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
//! those were. All of this is in memory and small. To forget a stretch costs
//! time, nothing else.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::backend::Writes;
use super::{instant, lock};
use crate::Direction;

/// How many stretches are known at most, and watched.
const KNOWN_MAX: usize = 256;
const WATCHED_MAX: usize = 32;

/// A stretch that takes so many times longer is not slow by chance.
const VERY_SLOW: u32 = 20;

/// Keys from the first up to but not including the second.
pub(super) type Stretch = (Vec<u8>, Vec<u8>);

/// The end of an empty stretch, and the generation from which on it is empty.
type Until = (Vec<u8>, u64);

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

impl Gaps {
    pub(super) fn new(slow: Duration) -> Gaps {
        let known = Mutex::new(Known::default());
        Gaps { slow, known, any: AtomicBool::new(false), slow_count: AtomicU64::new(0) }
    }

    /// How many stretches took very long to cross.
    pub(super) fn slow_count(&self) -> u64 {
        self.slow_count.load(Ordering::Relaxed)
    }

    /// What is left of a stretch for a snapshot of this generation, in the
    /// direction of a scan.
    pub(super) fn rest(
        &self,
        stretch: Stretch,
        generation: u64,
        direction: Direction,
    ) -> Vec<Stretch> {
        if !self.any.load(Ordering::Relaxed) {
            return vec![stretch];
        }
        let mut rest = lock(&self.known).rest(stretch, generation);
        if direction == Direction::Backward {
            rest.reverse();
        }
        rest
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

    /// A scan of this generation found nothing in a stretch, and took long.
    fn found(&self, stretch: Stretch, generation: u64) {
        let mut known = lock(&self.known);
        known.found(stretch, generation);
        self.note(&known);
    }

    fn note(&self, known: &MutexGuard<'_, Known>) {
        self.any.store(!known.empty.is_empty(), Ordering::Relaxed);
    }
}

impl Known {
    fn rest(&self, (mut start, end): Stretch, generation: u64) -> Vec<Stretch> {
        let before = self.up_to(&start);
        let behind = (Bound::Excluded(&start[..]), Bound::Excluded(&end[..]));
        let within = self.empty.range::<[u8], _>(behind);
        let met: Vec<_> = before.into_iter().chain(within).collect();
        let mut rest = Vec::new();
        for (from, (to, since)) in met {
            if *since > generation || *to <= start {
                continue;
            }
            if *from > start {
                rest.push((start.clone(), from.clone()));
            }
            start.clone_from(to);
        }
        if start < end {
            rest.push((start, end));
        }
        rest
    }

    /// The last stretch that starts at a key or before.
    fn up_to(&self, key: &[u8]) -> Option<(&Vec<u8>, &Until)> {
        self.empty.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()
    }

    fn found(&mut self, stretch: Stretch, generation: u64) {
        if generation >= self.compared {
            return self.learn(stretch, generation);
        }
        let (start, end) = &stretch;
        let sure: Vec<Stretch> = self
            .watched
            .iter()
            .filter(|(_, after)| *after <= generation)
            .map(|((from, to), _)| (from.max(start).clone(), to.min(end).clone()))
            .filter(|(from, to)| from < to)
            .collect();
        let is_new = !sure.contains(&stretch);
        for part in sure {
            self.learn(part, generation);
        }
        if is_new {
            self.watched.push_back((stretch, self.compared));
            self.keep_watch();
        }
    }

    fn keep_watch(&mut self) {
        while self.watched.len() > WATCHED_MAX {
            self.watched.pop_front();
        }
    }

    /// A stretch is empty, from this generation on.
    fn learn(&mut self, (mut start, mut end): Stretch, generation: u64) {
        let mut since = generation;
        while let Some((from, (to, earlier))) = self.up_to(&end)
            && *to >= start
        {
            since = since.max(*earlier);
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
            self.watched.extend(around(&stretch, key).map(|part| (part, after)));
        }
        self.keep_watch();
        if self.empty.len() > KNOWN_MAX {
            self.empty.clear();
        }
    }
}

/// What is left of a stretch on both sides of a key.
fn around((start, end): &Stretch, key: &[u8]) -> impl Iterator<Item = Stretch> {
    let parts = [(start.clone(), key.to_vec()), (behind(key), end.clone())];
    parts.into_iter().filter(|(start, end)| start < end)
}

/// The first key after a key.
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// Looks how long a scan takes from key to key.
pub(super) struct Watch<'a> {
    gaps: &'a Gaps,
    stretch: &'a Stretch,
    generation: u64,
    direction: Direction,
    /// The key that was met last, and when.
    last: Option<Bytes>,
    since: Instant,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        gaps: &'a Gaps,
        stretch: &'a Stretch,
        generation: u64,
        direction: Direction,
    ) -> Watch<'a> {
        Watch { gaps, stretch, generation, direction, last: None, since: instant() }
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
                self.last.as_ref().map_or_else(|| start.clone(), |last| behind(last)),
                key.map_or_else(|| end.clone(), |key| key.to_vec()),
            ),
            Direction::Backward => (
                key.map_or_else(|| start.clone(), |key| behind(key)),
                self.last.as_ref().map_or_else(|| end.clone(), |last| last.to_vec()),
            ),
        };
        if empty.0 >= empty.1 {
            return;
        }
        self.gaps.found(empty, self.generation);
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

    /// What a scan from `a` to `z` still reads, as text.
    fn rest(gaps: &Gaps, generation: u64) -> String {
        let rest = gaps.rest(stretch("a", "z"), generation, Direction::Forward);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', "+");
        let parts = rest.iter().map(|(start, end)| format!("{}-{}", text(start), text(end)));
        parts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_empty_is_leapt_over_until_something_is_put_there() {
        let gaps = gaps();
        put(&gaps, 5, "q");
        gaps.found(stretch("c", "g"), 5);
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
    fn what_was_found_beside_writes_is_found_twice() {
        let gaps = gaps();
        put(&gaps, 6, "d");
        gaps.found(stretch("c", "g"), 5);
        assert_eq!(rest(&gaps, 6), "a-z", "the writes of 6 may be there, and are");

        put(&gaps, 7, "f");
        gaps.found(stretch("d+", "f"), 6);
        assert_eq!(rest(&gaps, 7), "a-d+ f-z");

        put(&gaps, 8, "q");
        gaps.found(stretch("f\0", "z"), 7);
        assert_eq!(rest(&gaps, 8), "a-d+ f-f+ g-z", "what was watched is sure, and no more");
    }

    #[test]
    fn stretches_that_touch_become_one_and_a_scan_may_start_within() {
        let gaps = gaps();
        for (start, end) in [("c", "e"), ("g", "i"), ("e", "g"), ("k", "l")] {
            gaps.found(stretch(start, end), 5);
        }
        assert_eq!(rest(&gaps, 5), "a-c i-k l-z");
        assert_eq!(lock(&gaps.known).empty.len(), 2);
        let within = gaps.rest(stretch("d", "k"), 5, Direction::Backward);
        assert_eq!(within, [stretch("i", "k")]);
        assert!(gaps.rest(stretch("d", "f"), 5, Direction::Forward).is_empty());
        let backward = gaps.rest(stretch("a", "z"), 5, Direction::Backward);
        assert_eq!(backward, [stretch("l", "z"), stretch("i", "k"), stretch("a", "c")]);
    }

    #[test]
    fn what_is_known_has_a_limit() {
        let gaps = gaps();
        for number in 0..10_000 {
            gaps.found(stretch(&format!("b{number:05}"), &format!("b{number:05}x")), 0);
            put(&gaps, 0, "q");
            assert!(lock(&gaps.known).empty.len() <= KNOWN_MAX);
        }
        put(&gaps, 9, "q");
        for number in 0..100 {
            gaps.found(stretch(&format!("b{number:05}"), "c"), 8);
            put(&gaps, 9, &format!("b{number:05}x"));
            assert!(lock(&gaps.known).watched.len() <= WATCHED_MAX);
        }
    }
}
