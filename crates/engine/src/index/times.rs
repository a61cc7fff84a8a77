//! `_ts` has no entries: the feed has one row for each item, and goes from the
//! oldest write to the newest.
//!
//! What is written within a second stands there in the order of the commits,
//! where entries of one value stand in the order of the items' numbers. So the
//! rows of a second are gathered and sorted; of more than there is room for the
//! first ones, then the next.

use std::collections::VecDeque;
use std::sync::LazyLock;

use bytes::Bytes;
use dayfly_model::Timestamp;
use dayfly_model::indexing::Step;
use dayfly_model::indexing::rules::path_id;
use dayfly_model::value::{Value, order};
use dayfly_storage::{Bucket, Direction, KeyRange, Result, Snapshot};

use super::barren::Barren;
use super::entry::Entry;
use super::walk::{EntryRange, Looked};
use crate::keys::{self, EntryKind};
use crate::liveness::Liveness;
use crate::record::{self, FeedRow};
use crate::settings::QueryLimits;
use crate::version;

/// How many rows of a second are read at once, at most.
const CHUNK_MAX: usize = 512;

/// The number of the path `/_ts`.
static PATH: LazyLock<u64> = LazyLock::new(|| path_id(&[Step::Name("_ts")]));

/// Whether these steps lead to when an item was written.
pub(crate) fn leads_to_time(steps: &[Step<'_>]) -> bool {
    matches!(steps, [Step::Name("_ts")])
}

/// Whether this is the number of that path.
pub(super) fn is_time(path: u64) -> bool {
    path == *PATH
}

/// The rows of the feed, as if they were entries.
pub(super) struct Times<'a> {
    snapshot: &'a dyn Snapshot,
    bucket: Bucket,
    liveness: Liveness,
    direction: Direction,
    /// Which values are meant.
    start: Vec<u8>,
    end: Vec<u8>,
    /// What of the feed is still to be read, once it is known.
    range: Option<KeyRange>,
    /// Of the items with this value only those behind this number are left.
    after: Option<WrittenAt>,
    ready: VecDeque<Entry>,
    /// The second of the last row, as the bytes of an entry.
    second: (Timestamp, Bytes),
    barren: Barren<'a>,
    /// How many rows of a second are read at once, to begin with.
    chunk_min: usize,
    /// How many of them are held at once.
    held_max: usize,
}

/// When an item was written, as the bytes of an entry, and its number.
type WrittenAt = (Bytes, u64);

impl<'a> Times<'a> {
    /// The rows of a range; `None`: it is not about `_ts`.
    pub(super) fn new(
        snapshot: &'a dyn Snapshot,
        bucket: Bucket,
        liveness: Liveness,
        entry_range: &EntryRange,
        direction: Direction,
        limits: &QueryLimits,
    ) -> Option<Times<'a>> {
        let is_time = entry_range.kind == EntryKind::Value && is_time(entry_range.path);
        is_time.then(|| Times {
            snapshot,
            bucket,
            liveness,
            direction,
            start: entry_range.start.clone(),
            end: entry_range.end.clone(),
            range: None,
            after: None,
            ready: VecDeque::new(),
            second: (Timestamp(0), value_of(Timestamp(0))),
            barren: Barren::new(snapshot, bucket, direction, limits),
            chunk_min: limits.second_chunk,
            held_max: limits.second_held,
        })
    }

    /// Goes on behind an item, in the direction of the walk.
    pub(super) fn go_behind(&mut self, value: &[u8], docno: u64) {
        match self.direction {
            Direction::Forward if *value > *self.start => self.start = value.to_vec(),
            Direction::Backward => self.end = self.end.clone().min(dayfly_storage::after(value)),
            Direction::Forward => {}
        }
        self.after = Some((Bytes::copy_from_slice(value), docno));
    }

    /// The next items that are alive, `limit` at most; `None` at the end.
    pub(super) fn page(&mut self, limit: usize, looked: &mut Looked) -> Result<Option<Vec<Entry>>> {
        if self.ready.is_empty() && !self.fill(limit, looked)? {
            return Ok(None);
        }
        let page: Vec<Entry> = self.ready.drain(..limit.min(self.ready.len())).collect();
        looked.keys += page.len() as u64;
        Ok(Some(page))
    }

    /// Reads some rows, those of whole seconds if they can be held. `false`: there
    /// are no more.
    ///
    /// The feed has the rows of a second in the order of the commits, and who walks wants
    /// them in the order of their numbers. So a second is shown when all of it was read. Of
    /// what one scan brings, the last second may go on behind it: it is left for the next
    /// time, unless the scan came to the end. If that leaves nothing, a single second fills
    /// the scan, and is gathered by itself. `after` is where the page before ended within a
    /// second; behind that second it says nothing more.
    fn fill(&mut self, limit: usize, looked: &mut Looked) -> Result<bool> {
        let mut range = match self.range.take() {
            Some(range) => range,
            None => self.versions()?,
        };
        let rows = self.rows(&range, limit)?;
        let Some(last) = rows.last().map(|row| row.ts) else {
            self.range = Some(range);
            return Ok(false);
        };
        let (before, dead_before) = (range.clone(), looked.dead);
        let is_end = rows.len() < limit;
        let mut whole = rows.iter().take_while(|row| is_end || row.ts != last).count();
        let mut met = Vec::with_capacity(whole);
        if whole > 0 {
            for row in rows.into_iter().take(whole) {
                self.move_on(&mut range, row.version);
                self.meet(row, &mut met, looked);
            }
            self.sort(&mut met);
            self.after = None;
        } else {
            whole = self.gather(last, &mut range, &mut met, looked)?;
        }
        let dead = usize::try_from(looked.dead - dead_before).unwrap_or(0);
        self.barren.walked(before, &range, whole, dead);
        self.ready = met.into();
        self.range = Some(range);
        Ok(true)
    }

    /// Reads the rows of a second, as many as can be held. Returns how many there
    /// were.
    fn gather(
        &mut self,
        second: Timestamp,
        range: &mut KeyRange,
        met: &mut Vec<Entry>,
        looked: &mut Looked,
    ) -> Result<usize> {
        let begin = range.clone();
        let (mut is_cut, mut count) = (false, 0);
        let mut chunk = self.chunk_min;
        loop {
            let rows = self.rows(range, chunk)?;
            let here = rows.iter().take_while(|row| row.ts == second).count();
            count += here;
            for row in rows.into_iter().take(here) {
                self.move_on(range, row.version);
                self.meet(row, met, looked);
            }
            if met.len() > self.held_max {
                self.sort(met);
                met.truncate(self.held_max);
                is_cut = true;
            }
            if here < chunk {
                break;
            }
            chunk = (chunk * 2).min(CHUNK_MAX);
        }
        self.sort(met);
        self.after = None;
        if is_cut {
            self.after = met.last().map(|entry| (entry.value.clone(), entry.docno));
            *range = begin;
        }
        Ok(count)
    }

    /// Puts items in the order of the walk.
    fn sort(&self, met: &mut [Entry]) {
        met.sort_unstable_by(|left, right| {
            let order = (&left.value, left.docno).cmp(&(&right.value, right.docno));
            if self.direction == Direction::Forward { order } else { order.reverse() }
        });
    }

    fn rows(&self, range: &KeyRange, limit: usize) -> Result<Vec<FeedRow>> {
        if range.start >= range.end {
            return Ok(Vec::new());
        }
        let pairs = self.snapshot.hints().scan_alive(self.bucket, range, self.direction, limit)?;
        pairs.iter().map(|(key, row)| FeedRow::decode(key, row)).collect()
    }

    /// Takes the item of a row, if it is alive and was not taken before.
    fn meet(&mut self, row: FeedRow, met: &mut Vec<Entry>, looked: &mut Looked) {
        if self.liveness.is_dead(&row) {
            *looked += Looked { keys: 1, dead: 1 };
            return;
        }
        if self.second.0 != row.ts {
            self.second = (row.ts, value_of(row.ts));
        }
        let FeedRow { docno, life, .. } = row;
        let value = self.second.1.clone();
        let is_behind = self.after.as_ref().is_none_or(|after| match self.direction {
            Direction::Forward => (&value, docno) > (&after.0, after.1),
            Direction::Backward => (&value, docno) < (&after.0, after.1),
        });
        if is_behind {
            let partition = Bytes::copy_from_slice(row.partition().bytes());
            met.push(Entry { value, is_cut: false, docno, life, partition });
        }
    }

    fn move_on(&self, range: &mut KeyRange, version: u64) {
        match self.direction {
            Direction::Forward => range.start = keys::feed_after(version).start,
            Direction::Backward => range.end = keys::feed(version),
        }
    }

    /// The part of the feed with the values that are meant.
    fn versions(&self) -> Result<KeyRange> {
        let all = keys::feed_after(0);
        let start = self.first_at(&self.start, &all)?;
        let rest = KeyRange { start, end: all.end };
        let end = self.first_at(&self.end, &rest)?;
        Ok(KeyRange { end, ..rest })
    }

    /// Where the first row of a part of the feed is that was not written before
    /// a value, found by halving.
    fn first_at(&self, value: &[u8], part: &KeyRange) -> Result<Vec<u8>> {
        if *value <= *value_of(Timestamp(0)) {
            return Ok(part.start.clone());
        }
        let is_before = |ts| *value_of(ts) < *value;
        let found = record::first_commit(self.snapshot, self.bucket, part, &is_before)?;
        Ok(found.map_or_else(
            || part.end.clone(),
            |lsn| keys::feed(version::first_version(lsn)).max(part.start.clone()),
        ))
    }
}

/// When an item was written, as an entry would say it.
fn value_of(ts: Timestamp) -> Bytes {
    order::key(&Value::from(i64::try_from(ts.0).unwrap_or(i64::MAX))).into()
}
