//! Records read lately, in front of the backend, and when each key was last
//! written.
//!
//! A **slot** holds the generation of the last write to any key that falls
//! into it. A cached record was read at some generation; it is what a snapshot
//! shows if nothing was written to its slot since the older of the two. So
//! nothing is ever taken out of the cache, and a stale record is never used:
//! it is only not found. Writers mark their slots before they are published.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf as _, BufMut as _, Bytes};
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::Bucket;

/// How many slots there are. Two keys in one slot cost a second look.
const SLOTS: usize = 65_536;

/// How many keys the doorkeeper remembers.
const DOORS: usize = 65_536;

/// Larger values are not cached: one would push out many.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// What an entry costs besides its bytes, roughly.
const ENTRY_BYTES: usize = 128;

/// The generation of the last write, by key.
pub(super) struct Slots(Box<[AtomicU64]>);

impl Slots {
    pub(super) fn new() -> Self {
        Slots((0..SLOTS).map(|_| AtomicU64::new(0)).collect())
    }

    /// The last generation that may have written the key.
    pub(super) fn last_write(&self, fingerprint: u64) -> u64 {
        self.slot(fingerprint).map_or(u64::MAX, |slot| slot.load(Ordering::Acquire))
    }

    /// Says that `generation` writes the key.
    pub(super) fn mark(&self, fingerprint: u64, generation: u64) {
        if let Some(slot) = self.slot(fingerprint) {
            slot.fetch_max(generation, Ordering::AcqRel);
        }
    }

    fn slot(&self, fingerprint: u64) -> Option<&AtomicU64> {
        self.0.get(usize::try_from(fingerprint % SLOTS as u64).unwrap_or(0))
    }
}

/// Who has asked lately: a full cache takes a record only when it is asked for
/// a second time. Otherwise a walk over more records than fit would replace the
/// whole cache again and again, and cost more than it saves.
///
/// The doors are made when the cache is full for the first time.
#[derive(Default)]
struct Doorkeeper(OnceLock<Box<[AtomicU64]>>);

impl Doorkeeper {
    /// Whether the key was the last one that asked at its door.
    fn knows(&self, fingerprint: u64) -> bool {
        let doors = self.0.get_or_init(|| (0..DOORS).map(|_| AtomicU64::new(0)).collect());
        let door = usize::try_from(fingerprint % DOORS as u64).ok().and_then(|at| doors.get(at));
        door.is_some_and(|door| door.swap(fingerprint, Ordering::Relaxed) == fingerprint)
    }
}

/// The record cache.
pub(super) struct Records {
    pub(super) slots: Slots,
    doorkeeper: Doorkeeper,
    cache: Option<Cache<u64, Bytes, Weight, BuildHasherDefault<AsItIs>>>,
}

/// What stands before the value: bucket, generation, the key and its length.
/// It is one piece of memory with the value, since each piece is one more wait
/// for memory that no processor has at hand.
const HEADER_BYTES: usize = 8 + 8 + 2;

impl Records {
    /// A cache of at most `bytes`; none if that is 0.
    pub(super) fn new(bytes: u64) -> Self {
        let cache = (bytes > 0).then(|| {
            let items = usize::try_from(bytes / 1024).unwrap_or(usize::MAX).max(64);
            Cache::with(
                items,
                bytes,
                Weight,
                BuildHasherDefault::default(),
                DefaultLifecycle::default(),
            )
        });
        Records { slots: Slots::new(), doorkeeper: Doorkeeper::default(), cache }
    }

    /// The value of the key at `generation`, if it is here.
    pub(super) fn get(
        &self,
        fingerprint: u64,
        bucket: Bucket,
        key: &[u8],
        generation: u64,
    ) -> Option<Bytes> {
        let mut record = self.cache.as_ref()?.get(&fingerprint)?;
        let of_bucket = record.try_get_u64().ok()?;
        let read_at = record.try_get_u64().ok()?;
        let key_bytes = usize::from(record.try_get_u16().ok()?);
        let same_key = of_bucket == bucket.0 && record.get(..key_bytes)? == key;
        let written = self.slots.last_write(fingerprint);
        if !same_key || written > read_at.min(generation) {
            return None;
        }
        record.advance(key_bytes);
        Some(record)
    }

    /// Keeps what a snapshot of `generation` shows under the key.
    pub(super) fn keep(
        &self,
        fingerprint: u64,
        bucket: Bucket,
        key: &[u8],
        generation: u64,
        value: &Bytes,
    ) {
        let Some(cache) = &self.cache else { return };
        // A record that is already old would only be in the way of a newer one.
        if value.len() > VALUE_BYTES_MAX || self.slots.last_write(fingerprint) > generation {
            return;
        }
        let Ok(key_bytes) = u16::try_from(key.len()) else { return };
        let is_full = cache.weight() + cache.capacity() / 32 > cache.capacity();
        if is_full && !self.doorkeeper.knows(fingerprint) {
            return;
        }
        // A copy: the value may be a small part of a large block. The spare
        // byte makes it shared from the start, not when it is first read.
        let mut record = Vec::with_capacity(HEADER_BYTES + key.len() + value.len() + 1);
        record.put_u64(bucket.0);
        record.put_u64(generation);
        record.put_u16(key_bytes);
        record.put_slice(key);
        record.put_slice(value);
        cache.insert(fingerprint, record.into());
    }

    /// Forgets all records.
    pub(super) fn empty(&self) {
        if let Some(cache) = &self.cache {
            cache.clear();
        }
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<u64, Bytes> for Weight {
    fn weight(&self, _: &u64, record: &Bytes) -> u64 {
        (ENTRY_BYTES + record.len()) as u64
    }
}

/// A fingerprint is a hash already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}
