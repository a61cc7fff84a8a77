//! Items by their numbers: what has one value and another, or one or another.
//!
//! The entries of one value come in the order of the items' numbers, so what is
//! in several of them, or in any, is found by going along all of them at once.

use std::collections::{BTreeMap, VecDeque};

use dayfly_model::Result;
use dayfly_storage::{Bucket, Direction, Snapshot};

use super::access::next_alive;
use crate::index::walk::{Entries, Entry, Stretch};
use crate::keys::ItemKey;
use crate::reply::storage_failed;

/// How many entries are read at once.
const CHUNK: usize = 64;

/// How many items a range may name when it is one of several alternatives.
const LISTED_MAX: usize = if cfg!(test) { 40 } else { 100_000 };

/// A set of items.
#[derive(Clone, Debug)]
pub(super) enum Set {
    /// Those with one value.
    Point(Stretch),
    /// Those with a value in a range.
    Range(Stretch),
    /// Those that are in all of them.
    All(Vec<Set>),
    /// Those that are in any of them.
    Any(Vec<Set>),
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
    Any(Vec<Stream<'a>>),
}

impl<'a> Stream<'a> {
    /// The items of `set` in a bucket. `None`: a range names too many.
    pub(super) fn open(
        set: &Set,
        snapshot: &'a dyn Snapshot,
        bucket: Bucket,
        looked_at: &mut u64,
    ) -> Result<Option<Stream<'a>>> {
        let mut many = |sets: &[Set]| -> Result<Option<Vec<Stream<'a>>>> {
            let mut streams = Vec::with_capacity(sets.len());
            for set in sets {
                match Stream::open(set, snapshot, bucket, looked_at)? {
                    Some(stream) => streams.push(stream),
                    None => return Ok(None),
                }
            }
            Ok(Some(streams))
        };
        Ok(match set {
            Set::Point(stretch) => Some(Stream::Point(Point::new(stretch, snapshot, bucket))),
            Set::Range(stretch) => list(stretch, snapshot, bucket, looked_at)?.map(Stream::Listed),
            Set::All(sets) => many(sets)?.map(Stream::All),
            Set::Any(sets) => many(sets)?.map(Stream::Any),
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
            Stream::Any(streams) => {
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
        }
    }

    /// How many entries were looked at.
    pub(super) fn looked_at(&self) -> u64 {
        match self {
            Stream::Point(point) => point.looked_at,
            Stream::Listed(_) => 0,
            Stream::All(streams) | Stream::Any(streams) => {
                streams.iter().map(Stream::looked_at).sum()
            }
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
    stretch: &Stretch,
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    looked_at: &mut u64,
) -> Result<Option<BTreeMap<u64, ItemKey>>> {
    let mut entries =
        Entries::new(snapshot, bucket, stretch, Direction::Forward).map_err(storage_failed)?;
    let mut listed = BTreeMap::new();
    loop {
        let page = next_alive(&mut entries, CHUNK * 8)?;
        if page.is_empty() {
            *looked_at += entries.looked_at;
            return Ok(Some(listed));
        }
        listed.extend(page.into_iter().map(|entry| (entry.docno, entry.item)));
        if listed.len() > LISTED_MAX {
            return Ok(None);
        }
    }
}

/// The items with one value.
pub(super) struct Point<'a> {
    stretch: Stretch,
    snapshot: &'a dyn Snapshot,
    bucket: Bucket,
    read: VecDeque<Entry>,
    /// From where on nothing was read yet; `None`: there is nothing more.
    next: Option<u64>,
    looked_at: u64,
}

impl<'a> Point<'a> {
    fn new(stretch: &Stretch, snapshot: &'a dyn Snapshot, bucket: Bucket) -> Point<'a> {
        let (stretch, read) = (stretch.clone(), VecDeque::new());
        Point { stretch, snapshot, bucket, read, next: Some(0), looked_at: 0 }
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
        let stretch = &self.stretch;
        let mut entries = Entries::new(self.snapshot, self.bucket, stretch, Direction::Forward)
            .map_err(storage_failed)?;
        if let Some(before) = from.checked_sub(1) {
            entries = entries.after(stretch, &stretch.start, before);
        }
        let page = next_alive(&mut entries, CHUNK)?;
        self.looked_at += entries.looked_at;
        self.next = page.last().map(|entry| entry.docno + 1);
        self.read = page.into();
        Ok(())
    }
}
