//! What readers see: the last published group, at a time.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use super::LocalOptions;
use super::backend::{Rows, Writes};
use super::gaps::{Ahead, Gaps, Moment, Probe, Stopwatch, Stretch};
use super::merge::Merge;
use super::records::Records;
use super::system::{Heads, physical, split};
use crate::plan::fingerprint;
use crate::{
    Bucket, Direction, Head, KEY_BYTES_MAX, KeyRange, Mark, Pair, ReadHints, Result, Second,
    Snapshot,
};

/// What is known beside the rows, in memory, for all readers.
pub(super) struct Remembered {
    pub(super) records: Records,
    /// Where nothing is.
    pub(super) gaps: Gaps,
    /// Where nothing is alive.
    barren: Gaps,
}

impl Remembered {
    pub(super) fn new(options: &LocalOptions) -> Remembered {
        let [gaps, barren] = [Gaps::new(options.slow_scan), Gaps::new(options.slow_scan)];
        let records = Records::new(options.cache_bytes, options.slots_bytes);
        Remembered { records, gaps, barren }
    }

    /// Before the writes of a generation are published.
    pub(super) fn compare(&self, generation: u64, writes: &Writes) {
        self.gaps.compare(generation, writes);
        self.barren.compare(generation, writes);
    }

    /// Keeps a row that a generation writes, before that is published.
    pub(super) fn keep(&self, physical: &[u8], generation: u64, row: &Bytes) {
        let Some((bucket, key)) = split(physical) else { return };
        self.records.keep(fingerprint(bucket, key), bucket, key, generation, row);
    }

    /// Forgets everything but when each key was written: what is there as
    /// `generation` was written elsewhere.
    pub(super) fn forget(&self, generation: u64) {
        self.records.empty();
        self.gaps.forget(generation);
        self.barren.forget(generation);
    }
}

/// Everything that one group made visible. A snapshot holds this one `Arc`: each
/// further one would be a contended reference count on every read.
pub(super) struct Published<R> {
    pub(super) generation: u64,
    pub(super) heads: Heads,
    pub(super) rows: R,
    pub(super) remembered: Arc<Remembered>,
}

/// A snapshot: what is published, and the time that belongs to it.
pub(super) struct Reader<R> {
    pub(super) published: Arc<Published<R>>,
    pub(super) now: Second,
    pub(super) milliseconds: u64,
}

impl<R: Rows> Reader<R> {
    /// Merges `writes` that are not published yet into what is.
    pub(super) fn merged(
        &self,
        writes: &Writes,
        bucket: Bucket,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>> {
        collect(writes, (bucket, range), direction, limit, |stretch, merge| {
            self.leap(stretch, direction, |part| self.merge(part, direction, merge))
        })
    }

    /// Merges what is in a part of a stretch.
    fn merge(
        &self,
        part: &Stretch,
        direction: Direction,
        merge: &mut Merge<'_>,
    ) -> Result<ControlFlow<()>> {
        let mut watch =
            Stopwatch::new(&self.remembered().gaps, part, self.published.generation, direction);
        let flow = self.visit(part, direction, |key, value| {
            watch.met(&key);
            merge.older(key, value)
        })?;
        if flow.is_continue() {
            watch.ended();
        }
        Ok(flow)
    }

    /// Goes through the parts of a stretch in which there may be something.
    fn leap(
        &self,
        stretch: Stretch,
        direction: Direction,
        through: impl FnMut(&Stretch) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        leap_over(
            &self.remembered().gaps,
            Moment::of(self.published.generation),
            stretch,
            direction,
            through,
        )
    }

    /// What is known beside the rows.
    pub(super) fn remembered(&self) -> &Remembered {
        &self.published.remembered
    }

    /// This snapshot, with its time.
    fn moment(&self) -> Moment {
        Moment { generation: self.published.generation, now: self.now }
    }

    /// Visits all rows of a stretch, or those up to where the visitor stops.
    fn visit(
        &self,
        (start, end): &Stretch,
        direction: Direction,
        mut visitor: impl FnMut(Bytes, Bytes) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let mut flow = ControlFlow::Continue(());
        self.published.rows.scan(start, end, direction, &mut |key, value| {
            flow = visitor(key, value);
            flow
        })?;
        Ok(flow)
    }

    /// The value under a key, past the cache.
    fn stored(&self, bucket: Bucket, key: &[u8]) -> Result<Option<Bytes>> {
        if key.len() > KEY_BYTES_MAX {
            return Ok(None);
        }
        self.published.rows.get(&physical(bucket, key))
    }

    /// The values under several keys. What is cached is not asked for; what is asked for is
    /// asked at once, and shown to `met`.
    fn known_or_stored(
        &self,
        bucket: Bucket,
        keys: &[&[u8]],
        met: impl Fn(&[u8], &Bytes),
    ) -> Result<Vec<Option<Bytes>>> {
        let (records, generation) = (&self.remembered().records, self.published.generation);
        let cached = |key: &&[u8]| records.get(fingerprint(bucket, key), bucket, key, generation);
        let mut values: Vec<Option<Bytes>> = keys.iter().map(cached).collect();
        let is_missing = |(value, key): &(&mut Option<Bytes>, &&[u8])| {
            value.is_none() && key.len() <= KEY_BYTES_MAX
        };
        let missing: Vec<_> = values.iter_mut().zip(keys).filter(is_missing).collect();
        let asked: Vec<_> = missing.iter().map(|(_, key)| physical(bucket, key)).collect();
        let found = self.published.rows.get_many(&asked)?;
        for ((value, key), found) in missing.into_iter().zip(found) {
            if let Some(found) = &found {
                met(key, found);
            }
            *value = found;
        }
        Ok(values)
    }

    /// Finds out what is empty in a stretch, of which much was deleted before
    /// `deleted`, so that scans leap over it. The stretch is watched already.
    pub(super) fn probe(&self, stretch: &Stretch, deleted: Vec<u8>) -> Result<()> {
        let (start, end) = stretch;
        if start >= end {
            return Ok(());
        }
        let (gaps, generation) = (&self.remembered().gaps, self.published.generation);
        let mut probe = Probe::new(gaps, generation, start.clone(), deleted);
        let flow = self.leap(stretch.clone(), Direction::Forward, |part| {
            self.visit(part, Direction::Forward, |key, _| probe.met(&key))
        })?;
        if flow.is_continue() {
            probe.empty_to(end.clone());
        }
        Ok(())
    }
}

impl<R: Rows> Snapshot for Reader<R> {
    fn now(&self) -> Second {
        self.now
    }

    fn milliseconds(&self) -> u64 {
        self.milliseconds
    }

    fn head(&self, bucket: Bucket) -> Head {
        self.published.heads.get(&bucket).cloned().unwrap_or_default()
    }

    fn get(&self, bucket: Bucket, key: &[u8]) -> Result<Option<Bytes>> {
        let fingerprint = fingerprint(bucket, key);
        let generation = self.published.generation;
        if let Some(value) = self.remembered().records.get(fingerprint, bucket, key, generation) {
            return Ok(Some(value));
        }
        let found = self.stored(bucket, key)?;
        if let Some(value) = &found {
            self.remembered().records.keep(fingerprint, bucket, key, generation, value);
        }
        Ok(found)
    }

    fn get_many(&self, bucket: Bucket, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let (records, generation) = (&self.remembered().records, self.published.generation);
        self.known_or_stored(bucket, keys, |key, found| {
            records.keep(fingerprint(bucket, key), bucket, key, generation, found);
        })
    }

    fn scan(
        &self,
        bucket: Bucket,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>> {
        self.merged(&Writes::new(), bucket, range, direction, limit)
    }

    fn mark(&self) -> Mark {
        Mark(self.published.generation)
    }

    fn hints(&self) -> &dyn ReadHints {
        self
    }
}

impl<R: Rows> ReadHints for Reader<R> {
    fn get_once(&self, bucket: Bucket, key: &[u8]) -> Result<Option<Bytes>> {
        let known = self.remembered().records.get(
            fingerprint(bucket, key),
            bucket,
            key,
            self.published.generation,
        );
        known.map_or_else(|| self.stored(bucket, key), |value| Ok(Some(value)))
    }

    fn get_many_once(&self, bucket: Bucket, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        self.known_or_stored(bucket, keys, |_, _| ())
    }

    /// Writers mark their slots before they are published.
    fn may_differ(&self, bucket: Bucket, key: &[u8], since: Mark) -> bool {
        self.remembered().records.slots.last_write(fingerprint(bucket, key)) > since.0
    }

    fn scan_alive(
        &self,
        bucket: Bucket,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>> {
        collect(&Writes::new(), (bucket, range), direction, limit, |stretch, merge| {
            leap_over(&self.remembered().barren, self.moment(), stretch, direction, |part| {
                self.leap(part.clone(), direction, |part| self.merge(part, direction, merge))
            })
        })
    }

    fn barren(&self, bucket: Bucket, range: &KeyRange) {
        if range.start < range.end {
            let stretch = (physical(bucket, &range.start), physical(bucket, &range.end));
            self.remembered().barren.found(stretch, self.moment());
        }
    }
}

/// Merges `writes` into what `walk` finds in a range.
fn collect(
    writes: &Writes,
    (bucket, range): (Bucket, &KeyRange),
    direction: Direction,
    limit: usize,
    walk: impl FnOnce(Stretch, &mut Merge<'_>) -> Result<ControlFlow<()>>,
) -> Result<Vec<Pair>> {
    if range.start >= range.end || limit == 0 {
        return Ok(Vec::new());
    }
    let (start, end) = (physical(bucket, &range.start), physical(bucket, &range.end));
    let newer = writes.range(start.clone()..end.clone());
    let mut merge = Merge::new(newer, direction, limit);
    let _ = walk((start, end), &mut merge)?;
    Ok(merge.finish())
}

/// Goes through the parts of a stretch that are not known to hold nothing.
fn leap_over(
    gaps: &Gaps,
    here: Moment,
    stretch: Stretch,
    direction: Direction,
    mut through: impl FnMut(&Stretch) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    let mut left = Some(stretch);
    while let Some(stretch) = left {
        let Ahead { part, rest } = gaps.ahead(stretch, here, direction);
        left = rest;
        if let Some(part) = part
            && through(&part)?.is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
