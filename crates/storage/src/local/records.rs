//! The record cache: records read lately, in front of the backend.
//!
//! A cached record was read at some generation; it is what a snapshot shows if nothing was
//! written to its [slot](super::slots) since the older of the two. So a stale record is
//! never used. Writers take the records of what they write out of the cache: nobody can
//! use them any more.
//!
//! A slot also says whether a record of it was ever cached. Most of what is written is
//! entries of the index, which nobody reads by their keys: their writers need not look
//! into the cache.
//!
//! ```text
//! reader   puts a record into the cache, then says so in the slot
//! writer   marks the slot, then removes the record if the slot said so
//! ```
//!
//! Whoever comes second to the slot sees the other: a reader whose record was overwritten
//! meanwhile takes it out again itself. So nothing that is dead stays, also when both come
//! at once.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::{Buf as _, BufMut as _, Bytes};
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::slots::{Slots, Sparse};
use crate::Bucket;

/// What a record takes, for want of a better guess: an item of 1 KB.
const RECORD_BYTES: u64 = 1024;

/// Larger values are not cached: one would push out many.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// What an entry costs besides its bytes, roughly.
const ENTRY_BYTES: usize = 128;

/// After how many records that came or went the cache is asked whether it is full.
const ASK_EVERY: u64 = 64;

/// Who has asked lately: a full cache takes a record only when it is asked for
/// a second time. Otherwise a walk over more records than fit would replace the
/// whole cache again and again, and cost more than it saves.
///
/// Comes when the cache is full for the first time.
#[derive(Default)]
struct Doorkeeper(OnceLock<Sparse>);

impl Doorkeeper {
    /// Whether the key was the last one that asked at its door, of so many.
    fn knows(&self, fingerprint: u64, doors: usize) -> bool {
        let door = self.0.get_or_init(|| Sparse::new(doors)).reach(fingerprint);
        door.is_some_and(|door| door.swap(fingerprint, Ordering::Relaxed) == fingerprint)
    }
}

type RecordCache = Cache<u64, Bytes, RecordWeight, BuildHasherDefault<AsItIs>>;

/// How many stripes looks are counted in.
const STRIPES: usize = 16;

/// How often records were found, and how often not. Everybody counts all the time, so
/// threads count in different stripes, each in memory of its own.
#[derive(Default)]
struct Looks([Stripe; STRIPES]);

#[derive(Default)]
#[repr(align(128))]
struct Stripe {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Looks {
    fn count(&self, found: bool) {
        thread_local! {
            static STRIPE: usize = {
                static NEXT: AtomicUsize = AtomicUsize::new(0);
                NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES
            };
        }
        if let Some(stripe) = self.0.get(STRIPE.with(|stripe| *stripe)) {
            let count = if found { &stripe.hits } else { &stripe.misses };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many hits and misses there were.
    fn sums(&self) -> (u64, u64) {
        let sum = |of: fn(&Stripe) -> &AtomicU64| {
            self.0.iter().map(|stripe| of(stripe).load(Ordering::Relaxed)).sum()
        };
        (sum(|stripe| &stripe.hits), sum(|stripe| &stripe.misses))
    }
}

/// The record cache.
pub(super) struct Records {
    pub(super) slots: Slots,
    doorkeeper: Doorkeeper,
    cache: Option<RecordCache>,
    /// Whether the cache was full when it was asked last. To ask it takes a lock of
    /// each of its shards.
    is_full: AtomicBool,
    /// How many records came, or went because they were written.
    changes: AtomicU64,
    looks: Looks,
}

/// What stands before the value: bucket, generation, the key and its length.
/// It is one piece of memory with the value, since each piece is one more wait
/// for memory that no processor has at hand.
const HEADER_BYTES: usize = 8 + 8 + 2;

impl Records {
    /// A cache of at most `bytes`; none if that is 0. There are as many slots as
    /// for a cache of `slots_bytes`.
    pub(super) fn new(bytes: u64, slots_bytes: u64) -> Self {
        let of = |bytes| usize::try_from(bytes / RECORD_BYTES).unwrap_or(usize::MAX);
        let records = of(bytes);
        let cache = (bytes > 0).then(|| {
            Cache::with(
                records.max(64),
                bytes,
                RecordWeight,
                BuildHasherDefault::default(),
                DefaultLifecycle::default(),
            )
        });
        Records {
            slots: Slots::new(of(slots_bytes)),
            doorkeeper: Doorkeeper::default(),
            cache,
            is_full: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            looks: Looks::default(),
        }
    }

    /// Says that `generation` writes the key, before that is published: what is
    /// cached of it leaves. Only one thread at a time says so.
    pub(super) fn written(&self, fingerprint: u64, generation: u64) {
        if self.slots.mark(fingerprint, generation)
            && let Some(cache) = &self.cache
            && cache.remove(&fingerprint).is_some()
        {
            self.changed(cache);
        }
    }

    /// The value of the key at `generation`, if it is here.
    pub(super) fn get(
        &self,
        fingerprint: u64,
        bucket: Bucket,
        key: &[u8],
        generation: u64,
    ) -> Option<Bytes> {
        let cache = self.cache.as_ref()?;
        let found = self.find(cache, fingerprint, bucket, key, generation);
        self.looks.count(found.is_some());
        found
    }

    fn find(
        &self,
        cache: &RecordCache,
        fingerprint: u64,
        bucket: Bucket,
        key: &[u8],
        generation: u64,
    ) -> Option<Bytes> {
        let mut record = cache.get(&fingerprint)?;
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
        if self.is_full.load(Ordering::Relaxed)
            && !self.doorkeeper.knows(fingerprint, self.slots.count())
        {
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
        if self.slots.note_cached(fingerprint) > generation {
            // It was written meanwhile, and its writer did not know of this record.
            cache.remove(&fingerprint);
        }
        self.changed(cache);
    }

    /// A record came or went.
    fn changed(&self, cache: &RecordCache) {
        if self.changes.fetch_add(1, Ordering::Relaxed).is_multiple_of(ASK_EVERY) {
            let capacity = cache.capacity();
            self.is_full.store(cache.weight() + capacity / 32 > capacity, Ordering::Relaxed);
        }
    }

    /// How large it is.
    pub(super) fn bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, Cache::weight)
    }

    /// How often a record was found, and how often not.
    pub(super) fn looks(&self) -> (u64, u64) {
        self.looks.sums()
    }

    /// Forgets all records.
    pub(super) fn empty(&self) {
        if let Some(cache) = &self.cache {
            cache.clear();
            self.is_full.store(false, Ordering::Relaxed);
        }
    }
}

#[derive(Clone)]
struct RecordWeight;

impl Weighter<u64, Bytes> for RecordWeight {
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

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKET: Bucket = Bucket(7);

    /// Numbers that are spread like fingerprints.
    fn fingerprint(number: u64) -> u64 {
        number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
    }

    fn keep(records: &Records, number: u64) {
        let value = Bytes::from(vec![0; 1000]);
        records.keep(fingerprint(number), BUCKET, &number.to_be_bytes(), 1, &value);
    }

    fn has(records: &Records, number: u64) -> bool {
        records.get(fingerprint(number), BUCKET, &number.to_be_bytes(), 1).is_some()
    }

    #[test]
    fn a_full_cache_takes_what_is_asked_for_twice_and_an_emptied_one_everything() {
        let records = Records::new(1 << 20, 1 << 20);
        (0..2000).for_each(|number| keep(&records, number));
        assert!((512 * 1024..=1 << 20).contains(&records.bytes()), "{}", records.bytes());
        assert!(has(&records, 0));
        keep(&records, 5000);
        assert!(!has(&records, 5000));
        keep(&records, 5000);
        assert!(has(&records, 5000));
        records.empty();
        assert_eq!(records.bytes(), 0);
        keep(&records, 5001);
        assert!(has(&records, 5001));
        assert_eq!(records.looks(), (3, 1));
    }

    #[test]
    fn a_write_hides_its_own_record_and_few_others() {
        // As many slots as records of 1 KB: a million.
        let records = Records::new(1 << 30, 1 << 30);
        (0..10_000).for_each(|number| keep(&records, number));
        (0..1000).for_each(|number| records.written(fingerprint(number * 10), 2));
        for number in (0..10_000).step_by(10) {
            assert!(!has(&records, number), "{number} was written");
        }
        let hidden = (0..10_000).filter(|number| !has(&records, *number)).count();
        assert!((1000..1050).contains(&hidden), "{hidden} are hidden, 1000 were written");
    }

    #[test]
    fn what_is_written_leaves_the_cache() {
        let records = Records::new(1 << 20, 1 << 20);
        (0..100).for_each(|number| keep(&records, number));
        let of_one = records.bytes() / 100;
        (0..90).for_each(|number| records.written(fingerprint(number), 2));
        assert_eq!(records.bytes(), 10 * of_one);
        // Another time, though the slot was marked before.
        let value = Bytes::from(vec![0; 1000]);
        records.keep(fingerprint(3), BUCKET, &3_u64.to_be_bytes(), 2, &value);
        assert_eq!(records.bytes(), 11 * of_one);
        records.written(fingerprint(3), 3);
        assert_eq!(records.bytes(), 10 * of_one);
    }

    #[test]
    fn a_full_cache_is_no_longer_full_when_what_it_held_is_gone() {
        let records = Records::new(1 << 20, 1 << 20);
        (0..2000).for_each(|number| keep(&records, number));
        (0..2000).for_each(|number| records.written(fingerprint(number), 2));
        assert_eq!(records.bytes(), 0);
        let value = Bytes::from(vec![0; 1000]);
        records.keep(fingerprint(5000), BUCKET, &5000_u64.to_be_bytes(), 2, &value);
        assert!(records.bytes() > 0, "it takes what is asked for once");
    }

    #[test]
    fn a_record_that_is_written_while_it_is_kept_does_not_stay() {
        // A reader and a writer at once, many times: whoever comes second removes
        // the record.
        let records = Records::new(1 << 20, 1 << 20);
        std::thread::scope(|scope| {
            for half in 0..2 {
                let records = &records;
                scope.spawn(move || match half {
                    0 => (0..20_000).for_each(|number| keep(records, number)),
                    _ => (0..20_000).for_each(|number| records.written(fingerprint(number), 2)),
                });
            }
        });
        assert_eq!(records.bytes(), 0);
    }
}
