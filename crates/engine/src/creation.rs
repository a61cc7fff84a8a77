//! Items in the order in which they were made.
//!
//! Whatever asks for no order gets this one: range by range, and within a range by the
//! number that is in an item's RID. A replace keeps it, a new item gets a new one.
//!
//! | what is meant                       | is read by                                |
//! |-------------------------------------|-------------------------------------------|
//! | a whole bucket                      | its items, one after the other            |
//! | one partition, or some              | the rows of their order, merged           |
//! | a part of the space of keys         | the same, gathered and sorted if they are |
//! |                                     | few; else all items of the bucket         |
//!
//! A place in it is a range and a number, whichever way was taken to it: so another page
//! may take another way.

use std::collections::VecDeque;

use dayfly_model::Result;
use dayfly_model::partition_key::PartitionKey;
use dayfly_storage::{Bucket, Direction};

use crate::index::Barren;
use crate::index::walk::{Entries, Entry, EntryRange, Looked};
use crate::keys::{self, Partition};
use crate::liveness::Liveness;
use crate::parts::{Scope, Segment};
use crate::record::{self, Record, Seen};
use crate::reply::storage_failed;
use crate::scope::Opened;

/// How many keys are read at once, to begin with and at most.
const CHUNK_MIN: usize = 16;
const CHUNK_MAX: usize = 512;

/// How many rows of a partition are read ahead, over all partitions.
const AHEAD: usize = 64;

/// How many times as many rows are looked at as may be gathered, if some are dead.
const LOOKED_FACTOR: usize = 8;

/// How many steps it is to look at a key, and to read an item by its number.
const KEY_STEPS: u64 = 2;
pub(crate) const ITEM_STEPS: u64 = 10;

/// Counts the steps of whoever reads, and may stop it.
pub(crate) type CountSteps<'a> = &'a dyn Fn(u64) -> Result<()>;

/// The items of a segment, from a number on.
pub(crate) struct InOrder<'a> {
    opened: &'a Opened,
    bucket: Bucket,
    liveness: Liveness,
    course: Course<'a>,
    /// From this number on nothing was read yet.
    from: u64,
    chunk: usize,
    read: VecDeque<Record>,
    looked: Looked,
}

enum Course<'a> {
    /// All items, but for those outside of the scope.
    Items(Scope, Barren<'a>),
    /// The rows of some partitions.
    Partitions(Vec<Rows<'a>>),
    /// These numbers.
    Gathered(VecDeque<u64>),
}

impl<'a> InOrder<'a> {
    pub(crate) fn new(
        opened: &'a Opened,
        segment: &Segment,
        from: u64,
        count: CountSteps<'_>,
    ) -> Result<InOrder<'a>> {
        let (snapshot, bucket) = (&*opened.snapshot, segment.bucket);
        let liveness = Liveness::of(snapshot, bucket).map_err(storage_failed)?;
        let mut looked = Looked::default();
        let barren = || Barren::new(snapshot, bucket, Direction::Forward, &opened.limits);
        let items = || Course::Items(segment.scope.clone(), barren());
        let course = match &segment.scope {
            Scope::Whole => items(),
            Scope::Named(partitions) => {
                let ahead = (AHEAD / partitions.len().max(1)).max(2);
                let rows = partitions.iter().map(|one| Rows::new(opened, bucket, one, from, ahead));
                Course::Partitions(rows.collect::<Result<_>>()?)
            }
            Scope::Between(_) => match gathered(opened, segment, from, &mut looked, count)? {
                Some(numbers) => Course::Gathered(numbers.into()),
                None => items(),
            },
        };
        let (chunk, read) = (CHUNK_MIN, VecDeque::new());
        Ok(InOrder { opened, bucket, liveness, course, from, chunk, read, looked })
    }

    /// How much was looked at, also of what is dead.
    pub(crate) fn looked(&self) -> Looked {
        match &self.course {
            Course::Partitions(rows) => rows.iter().map(Rows::looked).chain([self.looked]).sum(),
            Course::Items(..) | Course::Gathered(_) => self.looked,
        }
    }

    /// The next item of those that were read.
    pub(crate) fn pop(&mut self) -> Option<Record> {
        self.read.pop_front()
    }

    /// The number from which on nothing was read yet.
    pub(crate) fn from(&self) -> u64 {
        self.from
    }

    /// Reads on; all that is met may be dead. `false`: there is nothing more.
    pub(crate) fn fetch(&mut self, wanted: usize, count: CountSteps<'_>) -> Result<bool> {
        let chunk = self.chunk.min(wanted.max(CHUNK_MIN));
        self.chunk = (self.chunk * 2).min(CHUNK_MAX);
        let numbers: Vec<u64> = match &mut self.course {
            Course::Items(..) => return self.fetch_items(chunk, count),
            Course::Gathered(numbers) => numbers.drain(..chunk.min(numbers.len())).collect(),
            Course::Partitions(rows) => match rows.as_mut_slice() {
                [only] => match only.read_on(chunk, count)? {
                    Some(passed) => {
                        self.from = passed + 1;
                        only.read.drain(..).map(|entry| entry.docno).collect()
                    }
                    None => return Ok(false),
                },
                rows => merged(rows, chunk.min(AHEAD), count)?,
            },
        };
        if let Some(last) = numbers.last() {
            self.from = last + 1;
        } else if !matches!(&self.course, Course::Partitions(rows) if rows.len() == 1) {
            return Ok(false);
        }
        count(ITEM_STEPS * numbers.len() as u64)?;
        let records = record::named(&*self.opened.snapshot, self.bucket, &numbers);
        self.read.extend(records.map_err(storage_failed)?);
        Ok(true)
    }

    fn fetch_items(&mut self, chunk: usize, count: CountSteps<'_>) -> Result<bool> {
        let Course::Items(scope, barren) = &mut self.course else { return Ok(false) };
        let range = keys::items_from(self.from);
        let pairs =
            self.opened.snapshot.hints().scan_alive(self.bucket, &range, Direction::Forward, chunk);
        let pairs = pairs.map_err(storage_failed)?;
        let last = pairs.last().and_then(|(key, _)| keys::item_number(key));
        let Some(last) = last else { return Ok(false) };
        self.from = last + 1;
        count(KEY_STEPS * pairs.len() as u64)?;
        let (keys, mut dead) = (pairs.len(), 0);
        for (_, value) in pairs {
            match Seen::of(value, &self.liveness).map_err(storage_failed)? {
                Seen::Alive(record) if is_meant(scope, &record, self.opened) => {
                    self.read.push_back(record);
                }
                Seen::Alive(_) | Seen::Absent => {}
                Seen::Dead(_) => dead += 1,
            }
        }
        self.looked += Looked { keys: keys as u64, dead: dead as u64 };
        barren.walked(range, &keys::items_from(self.from), keys, dead);
        Ok(true)
    }
}

/// Whether the partition of an item is meant.
fn is_meant(scope: &Scope, record: &Record, opened: &Opened) -> bool {
    if *scope == Scope::Whole {
        return true;
    }
    let canonical = record.partition_key();
    let key = PartitionKey::from_canonical(canonical);
    key.is_some_and(|key| {
        scope.contains(Partition::new(&opened.container.epk(&key), canonical).bytes())
    })
}

/// The numbers of the items of a segment, from one on, in order; `None`: there are more
/// than are gathered.
fn gathered(
    opened: &Opened,
    segment: &Segment,
    from: u64,
    looked: &mut Looked,
    count: CountSteps<'_>,
) -> Result<Option<Vec<u64>>> {
    let (mut numbers, mut chunk) = (Vec::new(), CHUNK_MIN);
    let most = opened.limits.gathered_items;
    for range in segment.scope.ranges() {
        let range = EntryRange::of_partitions(range);
        let mut entries = opened.entries(segment.bucket, &range, Direction::Forward)?;
        while let Some(page) = entries.page(chunk).map_err(storage_failed)? {
            count(1 + page.len() as u64)?;
            numbers.extend(page.iter().map(|entry| entry.docno));
            chunk = (chunk * 2).min(CHUNK_MAX);
            if numbers.len() > most || entries.looked.keys > (LOOKED_FACTOR * most) as u64 {
                *looked += entries.looked;
                return Ok(None);
            }
        }
        *looked += entries.looked;
    }
    numbers.retain(|docno| *docno >= from);
    numbers.sort_unstable();
    Ok(Some(numbers))
}

/// The rows of one partition, read ahead.
struct Rows<'a> {
    entries: Entries<'a>,
    ahead: usize,
    read: VecDeque<Entry>,
    is_end: bool,
}

impl<'a> Rows<'a> {
    fn new(
        opened: &'a Opened,
        bucket: Bucket,
        partition: &Partition,
        from: u64,
        ahead: usize,
    ) -> Result<Rows<'a>> {
        let entry_range = EntryRange::of_partitions(partition.range());
        let mut entries = opened.entries(bucket, &entry_range, Direction::Forward)?;
        if let Some(before) = from.checked_sub(1) {
            entries = entries.after(&entry_range, partition.bytes(), before);
        }
        Ok(Rows { entries, ahead, read: VecDeque::new(), is_end: false })
    }

    fn looked(&self) -> Looked {
        self.entries.looked
    }

    /// Reads some rows, of which those are kept that are alive. The number of the last
    /// one; none at the end.
    fn read_on(&mut self, limit: usize, count: CountSteps<'_>) -> Result<Option<u64>> {
        let before = self.entries.looked.keys;
        match self.entries.page(limit).map_err(storage_failed)? {
            Some(page) => self.read.extend(page),
            None => self.is_end = true,
        }
        count(1 + self.entries.looked.keys - before)?;
        Ok(self.entries.passed().filter(|_| !self.is_end))
    }

    /// The number of the next item; none at the end.
    fn peek(&mut self, count: CountSteps<'_>) -> Result<Option<u64>> {
        while self.read.is_empty() && !self.is_end {
            self.read_on(self.ahead, count)?;
        }
        Ok(self.read.front().map(|entry| entry.docno))
    }
}

/// The next numbers of several partitions, in order.
fn merged(rows: &mut [Rows<'_>], limit: usize, count: CountSteps<'_>) -> Result<Vec<u64>> {
    let mut numbers = Vec::with_capacity(limit);
    while numbers.len() < limit {
        let mut first: Option<(u64, usize)> = None;
        for (place, rows) in rows.iter_mut().enumerate() {
            if let Some(docno) = rows.peek(count)?
                && first.is_none_or(|(least, _)| docno < least)
            {
                first = Some((docno, place));
            }
        }
        let Some((docno, place)) = first else { break };
        numbers.push(docno);
        if let Some(rows) = rows.get_mut(place) {
            rows.read.pop_front();
        }
    }
    Ok(numbers)
}
