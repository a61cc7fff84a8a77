//! Items by their numbers: what has one value and another, or one or another.
//!
//! The entries of one value come in the order of the items' numbers, so what is
//! in several of them, or in any, is found by going along all of them at once.
//!
//! What a range names is listed, and longer lists are kept for the next page (`listings.rs`).
//!
//! Within a partition, an entry says itself whether its item is meant. The rows of the
//! partition's order are read only to leap over what is not.

use std::collections::VecDeque;

use dayfly_model::Result;
use dayfly_sql::run::{Steps, ValueSpan};
use dayfly_storage::{Bucket, Direction};

use super::access::{Within, next_alive};
use super::choose::entry_range;
use crate::index::walk::{Entry, EntryRange, Looked};
use crate::listings::{Listed, ListedNumbers};
use crate::parts::{Scope, Segment};
use crate::reply::storage_failed;

/// How many entries are read at once, and for a list.
const CHUNK: usize = 64;
const LIST_CHUNK: usize = 512;

/// How many times as many entries are looked at as may be listed, if some are dead.
const LOOKED_FACTOR: usize = 8;

/// A set of items.
#[derive(Clone, Debug)]
pub(super) enum Set {
    /// Those with one value.
    Point(ValueSpan),
    /// Those with a value in a range.
    Range(ValueSpan),
    /// Those that are in all of them.
    All(Vec<Set>),
    /// Those that are in any of them.
    Any(Vec<Set>),
}

impl Set {
    /// Whether it has to be listed, at least in part.
    pub(super) fn has_ranges(&self) -> bool {
        match self {
            Set::Point(_) => false,
            Set::Range(_) => true,
            Set::All(sets) | Set::Any(sets) => sets.iter().any(Set::has_ranges),
        }
    }
}

/// How what ranges name is come by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effort {
    /// From lists that are kept.
    Recall,
    /// By lists of so many numbers at most; and whether they are kept.
    List(usize, bool),
}

/// An item by its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) docno: u64,
    /// Whether its partition is meant.
    pub(super) is_meant: bool,
}

/// A set of one bucket, on the way.
pub(super) enum Stream<'a> {
    Point(Point<'a>),
    /// Of items that are meant; and whether it was kept, so that some may be gone.
    Listed(ListedNumbers, bool),
    All(Vec<Stream<'a>>),
    /// The steps are for going along all of them.
    Any(Vec<Stream<'a>>, &'a Steps<'a>),
    Within(Box<InPartition<'a>>),
}

impl<'a> Stream<'a> {
    /// The items of `set` in a segment, and some more perhaps. `None`: ranges name more than
    /// may be listed, or no list is kept.
    pub(super) fn open(
        set: &Set,
        on: Within<'a>,
        segment: &Segment,
        effort: Effort,
        looked: &mut Looked,
    ) -> Result<Option<Stream<'a>>> {
        let opened = Opening { on, segment, effort }.open(set, looked)?;
        let Scope::Named(partitions) = &segment.scope else { return Ok(opened) };
        let rows = partitions.iter().map(|one| EntryRange::of_partitions(one.range()));
        let rows = rows.map(|rows| Stream::Point(Point::new(rows, on, segment)));
        let rows = Stream::Any(rows.collect(), on.steps);
        Ok(opened.map(|set| Stream::Within(Box::new(InPartition { set, rows }))))
    }

    /// The first item whose number is not less than `least`.
    pub(super) fn seek(&mut self, least: u64) -> Result<Option<Hit>> {
        match self {
            Stream::Point(point) => point.seek(least),
            Stream::Listed(numbers, _) => {
                Ok(numbers.seek(least).map(|docno| Hit { docno, is_meant: true }))
            }
            Stream::All(streams) => all(streams, least),
            Stream::Any(streams, steps) => {
                steps.make(streams.len() as u64)?;
                let mut first: Option<Hit> = None;
                for stream in streams {
                    if let Some(hit) = stream.seek(least)?
                        && first.as_ref().is_none_or(|first| hit.docno < first.docno)
                    {
                        first = Some(hit);
                    }
                }
                Ok(first)
            }
            Stream::Within(within) => within.seek(least),
        }
    }

    /// Whether all items that it names are there and alive: none of its lists was kept.
    pub(super) fn is_exact(&self) -> bool {
        match self {
            Stream::Point(_) => true,
            Stream::Listed(_, is_kept) => !is_kept,
            Stream::All(streams) | Stream::Any(streams, _) => streams.iter().all(Stream::is_exact),
            Stream::Within(within) => within.set.is_exact(),
        }
    }

    /// How many entries were looked at.
    pub(super) fn looked(&self) -> Looked {
        match self {
            Stream::Point(point) => point.looked,
            Stream::Listed(..) => Looked::default(),
            Stream::All(streams) | Stream::Any(streams, _) => {
                streams.iter().map(Stream::looked).sum()
            }
            Stream::Within(within) => {
                [&within.set, &within.rows].map(Stream::looked).into_iter().sum()
            }
        }
    }
}

/// The items of a set that are in some partitions.
pub(super) struct InPartition<'a> {
    set: Stream<'a>,
    /// All items of these partitions.
    rows: Stream<'a>,
}

impl InPartition<'_> {
    fn seek(&mut self, mut least: u64) -> Result<Option<Hit>> {
        loop {
            let Some(hit) = self.set.seek(least)? else { return Ok(None) };
            if hit.is_meant {
                return Ok(Some(hit));
            }
            let Some(next) = self.rows.seek(hit.docno + 1)? else { return Ok(None) };
            least = next.docno;
        }
    }
}

fn all(streams: &mut [Stream<'_>], mut least: u64) -> Result<Option<Hit>> {
    'candidates: loop {
        let mut found = None;
        for stream in streams.iter_mut() {
            let Some(hit) = stream.seek(least)? else { return Ok(None) };
            if found.is_some() && hit.docno > least {
                least = hit.docno;
                continue 'candidates;
            }
            least = hit.docno;
            found = Some(hit);
        }
        return Ok(found);
    }
}

/// How a set is opened.
struct Opening<'o, 'a> {
    on: Within<'a>,
    segment: &'o Segment,
    effort: Effort,
}

impl<'a> Opening<'_, 'a> {
    fn open(&self, set: &Set, looked: &mut Looked) -> Result<Option<Stream<'a>>> {
        Ok(match set {
            Set::Point(span) => {
                Some(Stream::Point(Point::new(entry_range(span), self.on, self.segment)))
            }
            Set::Range(span) => self.range(entry_range(span), looked)?,
            Set::All(sets) => self.many(sets, looked)?.map(Stream::All),
            Set::Any(sets) => {
                self.many(sets, looked)?.map(|streams| Stream::Any(streams, self.on.steps))
            }
        })
    }

    fn many(&self, sets: &[Set], looked: &mut Looked) -> Result<Option<Vec<Stream<'a>>>> {
        let mut streams = Vec::with_capacity(sets.len());
        for set in sets {
            match self.open(set, looked)? {
                Some(stream) => streams.push(stream),
                None => return Ok(None),
            }
        }
        Ok(Some(streams))
    }

    /// The items that a range names, from a list that is kept or from a new one.
    fn range(&self, entry_range: EntryRange, looked: &mut Looked) -> Result<Option<Stream<'a>>> {
        let Within { opened, listings, steps, .. } = self.on;
        let Segment { bucket, scope, .. } = self.segment;
        let snapshot = &*opened.snapshot;
        let (epoch, scope) = (opened.container.record.epoch, scope.clone());
        let of = Listed { bucket: *bucket, epoch, entry_range, scope };
        match self.effort {
            Effort::Recall => {
                let kept = listings.recall(snapshot, &of).map_err(storage_failed)?;
                let Some((numbers, rows)) = kept else { return Ok(None) };
                steps.make(1 + rows)?;
                Ok(Some(Stream::Listed(numbers, true)))
            }
            Effort::List(most, is_kept) => {
                let Some(numbers) = self.list(&of.entry_range, most, looked)? else {
                    return Ok(None);
                };
                let numbers = ListedNumbers::new(numbers);
                if is_kept {
                    listings.keep(snapshot, of, numbers.clone());
                }
                Ok(Some(Stream::Listed(numbers, false)))
            }
        }
    }

    /// The numbers that a range names, in order; `None`: too many.
    fn list(
        &self,
        entry_range: &EntryRange,
        most: usize,
        looked: &mut Looked,
    ) -> Result<Option<Vec<u64>>> {
        let Within { opened, steps, .. } = self.on;
        let Segment { bucket, scope, .. } = self.segment;
        let mut entries = opened.entries(*bucket, entry_range, Direction::Forward)?;
        let (mut numbers, mut met) = (Vec::new(), 0);
        let looked_max = most.saturating_mul(LOOKED_FACTOR) as u64;
        loop {
            let page = next_alive(&mut entries, LIST_CHUNK.min(most + 1), steps)?;
            met += page.len();
            let is_end = page.is_empty();
            let is_many = met > most || entries.looked.keys > looked_max;
            if is_end || is_many {
                *looked += entries.looked;
            }
            if is_end {
                break;
            }
            if is_many {
                return Ok(None);
            }
            let meant = |entry: &&Entry| scope.contains(&entry.partition);
            numbers.extend(page.iter().filter(meant).map(|entry| entry.docno));
        }
        // An item may have several values in a range.
        numbers.sort_unstable();
        numbers.dedup();
        Ok(Some(numbers))
    }
}

/// The items with one value.
pub(super) struct Point<'a> {
    entry_range: EntryRange,
    on: Within<'a>,
    bucket: Bucket,
    scope: Scope,
    read: VecDeque<Entry>,
    /// From where on nothing was read yet; `None`: there is nothing more.
    next: Option<u64>,
    looked: Looked,
}

impl<'a> Point<'a> {
    fn new(entry_range: EntryRange, on: Within<'a>, segment: &Segment) -> Point<'a> {
        let (read, looked) = (VecDeque::new(), Looked::default());
        let (bucket, scope) = (segment.bucket, segment.scope.clone());
        Point { entry_range, on, bucket, scope, read, next: Some(0), looked }
    }

    fn seek(&mut self, least: u64) -> Result<Option<Hit>> {
        loop {
            while self.read.pop_front_if(|entry| entry.docno < least).is_some() {}
            if let Some(entry) = self.read.front() {
                let is_meant = self.scope.contains(&entry.partition);
                return Ok(Some(Hit { docno: entry.docno, is_meant }));
            }
            let Some(next) = self.next else { return Ok(None) };
            self.fetch(next.max(least))?;
        }
    }

    fn fetch(&mut self, from: u64) -> Result<()> {
        let entry_range = &self.entry_range;
        let mut entries = self.on.opened.entries(self.bucket, entry_range, Direction::Forward)?;
        if let Some(before) = from.checked_sub(1) {
            entries = entries.after(entry_range, &entry_range.start, before);
        }
        let page = next_alive(&mut entries, CHUNK, self.on.steps)?;
        self.looked += entries.looked;
        self.next = page.last().map(|entry| entry.docno + 1);
        self.read = page.into();
        Ok(())
    }
}
