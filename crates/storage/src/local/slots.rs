//! Commit validation: when each key was last written.
//!
//! A **slot** holds the generation of the last write to any key that falls into it.
//! Writers mark their slots before they are published. So a draft holds if no slot of the
//! keys it read is newer than its snapshot, and the committer finds that out without a
//! read. Two keys in one slot cost a second draft, never a wrong answer.
//!
//! The record cache is used under the same rule, and keeps one bit of each slot.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many slots there are at least, and at most: one for each record that
/// may be cached. Two keys in one slot cost a second look.
const SLOTS_MIN: usize = 64 * 1024;
const SLOTS_MAX: usize = 16 * 1024 * 1024;

/// How many slots are made at once, when one of them is first written.
const SLOTS_TOGETHER: usize = 2048;

/// A number for each key, or for each few of them; 0 at first. Takes memory
/// only where something was written.
pub(super) struct Sparse(Box<[OnceLock<Box<[AtomicU64]>>]>);

impl Sparse {
    /// At least so many.
    pub(super) fn new(numbers: usize) -> Self {
        let parts = numbers.div_ceil(SLOTS_TOGETHER).next_power_of_two();
        Sparse((0..parts).map(|_| OnceLock::new()).collect())
    }

    /// The key's number, if any was written near it.
    fn find(&self, fingerprint: u64) -> Option<&AtomicU64> {
        let (part, at) = self.place(fingerprint);
        self.0.get(part)?.get()?.get(at)
    }

    /// The key's number, to be written.
    pub(super) fn reach(&self, fingerprint: u64) -> Option<&AtomicU64> {
        let (part, at) = self.place(fingerprint);
        let make = || (0..SLOTS_TOGETHER).map(|_| AtomicU64::new(0)).collect();
        self.0.get(part)?.get_or_init(make).get(at)
    }

    fn place(&self, fingerprint: u64) -> (usize, usize) {
        // A hash: any of its bits will do, and the number of parts is a power of two.
        let place = usize::try_from(fingerprint & u64::from(u32::MAX)).unwrap_or(0);
        ((place / SLOTS_TOGETHER) & (self.0.len() - 1), place % SLOTS_TOGETHER)
    }
}

/// The generation of the last write, by key; the lowest bit says whether a record
/// of the slot was cached.
pub(super) struct Slots(Sparse);

const WAS_CACHED: u64 = 1;

impl Slots {
    /// About so many.
    pub(super) fn new(slots: usize) -> Self {
        Slots(Sparse::new(slots.clamp(SLOTS_MIN, SLOTS_MAX)))
    }

    pub(super) fn count(&self) -> usize {
        self.0.0.len() * SLOTS_TOGETHER
    }

    /// The last generation that may have written the key.
    pub(super) fn last_write(&self, fingerprint: u64) -> u64 {
        self.0.find(fingerprint).map_or(0, |slot| slot.load(Ordering::Acquire) >> 1)
    }

    /// Brings the slots of many keys near, before they are marked: each is a wait for memory,
    /// and they wait together.
    pub(super) fn approach(&self, fingerprints: &[u64]) {
        let slots = fingerprints.iter().filter_map(|key| self.0.find(*key));
        std::hint::black_box(slots.fold(0, |all, slot| all | slot.load(Ordering::Relaxed)));
    }

    /// Says that `generation` writes the key. Returns whether a record of the slot
    /// was cached.
    pub(super) fn mark(&self, fingerprint: u64, generation: u64) -> bool {
        let Some(slot) = self.0.reach(fingerprint) else { return false };
        let before = slot.fetch_max(generation << 1, Ordering::AcqRel);
        let was_cached = before & WAS_CACHED != 0;
        if was_cached {
            slot.fetch_or(WAS_CACHED, Ordering::AcqRel);
        }
        was_cached
    }

    /// Says that a record of the key is cached. Returns the last generation that may
    /// have written it: later ones know that it is there.
    pub(super) fn note_cached(&self, fingerprint: u64) -> u64 {
        let slot = self.0.reach(fingerprint);
        slot.map_or(0, |slot| slot.fetch_or(WAS_CACHED, Ordering::AcqRel) >> 1)
    }
}
