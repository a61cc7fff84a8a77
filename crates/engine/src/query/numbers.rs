//! Items by their numbers: what has one value and another, or one or another.
//!
//! The entries of one value come in the order of the items' numbers, so what is
//! in several of them, or in any, is found by going along all of them at once.
//!
//! Within one partition, an entry says itself whether its item is meant. The
//! entries of the partition's key are read only to leap over what is not.

use std::collections::{BTreeMap, VecDeque};

use dayfly_model::Result;
use dayfly_sql::run::{Steps, ValueSpan};
use dayfly_storage::{Bucket, Direction};

use super::access::{Scope, Within, next_alive};
use super::choose::entry_range;
use crate::index::walk::{Entry, EntryRange, Looked};
use crate::keys::ItemKey;

/// How many entries are read at once.
const CHUNK: usize = 64;

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
    /// Those of it that are in a partition, all of whose items have this value.
    Within(Box<Set>, ValueSpan),
}

/// An item by its number.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) docno: u64,
    pub(super) item: ItemKey,
}

/// A set of one bucket, on the way.
pub(super) enum Stream<'a> {
    Point(Point<'a>),
    Listed(BTreeMap<u64, ItemKey>),
    All(Vec<Stream<'a>>),
    /// The steps are for going along all of them.
    Any(Vec<Stream<'a>>, &'a Steps<'a>),
    Within(Box<InPartition<'a>>),
}

impl<'a> Stream<'a> {
    /// The items of `set` in a bucket, some more than those of `scope` perhaps.
    /// `None`: a range names too many.
    pub(super) fn open(
        set: &Set,
        on: Within<'a>,
        (bucket, scope): (Bucket, &Scope),
        looked: &mut Looked,
    ) -> Result<Option<Stream<'a>>> {
        let mut many = |sets: &[Set]| -> Result<Option<Vec<Stream<'a>>>> {
            let mut streams = Vec::with_capacity(sets.len());
            for set in sets {
                match Stream::open(set, on, (bucket, scope), looked)? {
                    Some(stream) => streams.push(stream),
                    None => return Ok(None),
                }
            }
            Ok(Some(streams))
        };
        Ok(match set {
            Set::Point(span) => Some(Stream::Point(Point::new(entry_range(span), on, bucket))),
            Set::Range(span) => list(&entry_range(span), on, bucket, looked)?.map(Stream::Listed),
            Set::All(sets) => many(sets)?.map(Stream::All),
            Set::Any(sets) => many(sets)?.map(|streams| Stream::Any(streams, on.steps)),
            Set::Within(set, key) => {
                let set = Stream::open(set, on, (bucket, scope), looked)?;
                let key = Point::new(entry_range(key), on, bucket);
                let within =
                    |set| Stream::Within(Box::new(InPartition { set, key, scope: scope.clone() }));
                set.map(within)
            }
        })
    }

    /// The first item whose number is not less than `least`.
    pub(super) fn seek(&mut self, least: u64) -> Result<Option<Hit>> {
        match self {
            Stream::Point(point) => point.seek(least),
            Stream::Listed(list) => Ok(list
                .range(least..)
                .next()
                .map(|(docno, item)| Hit { docno: *docno, item: item.clone() })),
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

    /// How many entries were looked at.
    pub(super) fn looked(&self) -> Looked {
        match self {
            Stream::Point(point) => point.looked,
            Stream::Listed(_) => Looked::default(),
            Stream::All(streams) | Stream::Any(streams, _) => {
                streams.iter().map(Stream::looked).sum()
            }
            Stream::Within(within) => [within.set.looked(), within.key.looked].into_iter().sum(),
        }
    }
}

/// The items of a set that are in a partition.
pub(super) struct InPartition<'a> {
    set: Stream<'a>,
    /// All items that have the value of the partition's key.
    key: Point<'a>,
    scope: Scope,
}

impl InPartition<'_> {
    fn seek(&mut self, mut least: u64) -> Result<Option<Hit>> {
        loop {
            let Some(hit) = self.set.seek(least)? else { return Ok(None) };
            if self.scope.contains(&hit.item) {
                return Ok(Some(hit));
            }
            let Some(next) = self.key.seek(hit.docno + 1)? else { return Ok(None) };
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

fn list(
    entry_range: &EntryRange,
    Within { opened, steps, .. }: Within<'_>,
    bucket: Bucket,
    looked: &mut Looked,
) -> Result<Option<BTreeMap<u64, ItemKey>>> {
    let mut entries = opened.entries(bucket, entry_range, Direction::Forward)?;
    let mut listed = BTreeMap::new();
    loop {
        let page = next_alive(&mut entries, CHUNK * 8, steps)?;
        let is_end = page.is_empty();
        listed.extend(page.into_iter().map(|entry| (entry.docno, entry.item)));
        if is_end || listed.len() > opened.limits.listed_items {
            *looked += entries.looked;
            return Ok(is_end.then_some(listed));
        }
    }
}

/// The items with one value.
pub(super) struct Point<'a> {
    entry_range: EntryRange,
    on: Within<'a>,
    bucket: Bucket,
    read: VecDeque<Entry>,
    /// From where on nothing was read yet; `None`: there is nothing more.
    next: Option<u64>,
    looked: Looked,
}

impl<'a> Point<'a> {
    fn new(entry_range: EntryRange, on: Within<'a>, bucket: Bucket) -> Point<'a> {
        let (read, looked) = (VecDeque::new(), Looked::default());
        Point { entry_range, on, bucket, read, next: Some(0), looked }
    }

    fn seek(&mut self, least: u64) -> Result<Option<Hit>> {
        loop {
            while self.read.pop_front_if(|entry| entry.docno < least).is_some() {}
            if let Some(entry) = self.read.front() {
                return Ok(Some(Hit { docno: entry.docno, item: entry.item.clone() }));
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
