//! Items in the order of a query, from the entries of an index.
//!
//! The entries of one bucket come in the order of their values; those of several
//! buckets are merged. An entry whose value was cut says too little: then all
//! entries that start alike are gathered, their items are read, and they are put
//! in order by the whole values.

use std::cmp::Ordering;
use std::collections::VecDeque;

use dayfly_model::Result;
use dayfly_model::indexing::rules::Composite;
use dayfly_model::indexing::terms::first_value;
use dayfly_sql::run::{After, OrderKey};
use dayfly_storage::{Bucket, Direction, KeyRange};

use super::access::{Found, Within, load, next_alive};
use super::choose::Route;
use super::item::Row;
use super::token::Position;
use crate::index::walk::{Entries, Entry, Looked};
use crate::parts::{Scope, Segment};
use crate::record::Record;

/// How many entries are read at once, to begin with and at most.
const CHUNK_MIN: usize = 16;
const CHUNK_MAX: usize = 256;

/// How many items with long values that start alike are put in order.
const RUN_MAX: usize = 100_000;

/// Items in the order of a query.
pub(super) struct Ordered<'a> {
    strands: Vec<Strand<'a>>,
    /// About how many items are still asked for.
    wanted: usize,
}

/// Those of one bucket.
struct Strand<'a> {
    within: Within<'a>,
    bucket: Bucket,
    /// Which items are meant: those of any of these.
    scopes: Vec<Scope>,
    entries: Entries<'a>,
    backward: bool,
    composite: Option<Composite>,
    chunk: usize,
    read: VecDeque<Entry>,
    /// Items that were put in order by their whole values: these, and their numbers.
    sorted: VecDeque<(Vec<u8>, u64)>,
    ready: VecDeque<Ready>,
}

/// An item in its place.
struct Ready {
    /// Its sort values, as the query orders them.
    key: Vec<u8>,
    record: Record,
}

impl<'a> Ordered<'a> {
    /// The items of some ranges of keys along a route, from where a page ended.
    pub(super) fn new(
        within: Within<'a>,
        segments: Vec<Segment>,
        route: &Route,
        after: Option<&After>,
        wanted: usize,
    ) -> Result<Ordered<'a>> {
        let Within { opened, program, .. } = within;
        let mut strands: Vec<Strand<'a>> = Vec::new();
        for Segment { bucket, scope, .. } in segments {
            // Ranges that share a bucket share its order.
            if let Some(last) = strands.last_mut().filter(|last| last.bucket == bucket) {
                last.scopes.push(scope);
                continue;
            }
            let mut route = route.clone();
            let last = after.and_then(|after| route.last_of(after, program.order(), bucket));
            if let Some(after) = after {
                route.start_at(after, program.order());
            }
            let mut entries = opened.entries(bucket, &route.entry_range, route.direction)?;
            if let Some((value, docno)) = last {
                entries = entries.after(&route.entry_range, &value, docno);
            }
            strands.push(Strand {
                within,
                bucket,
                scopes: vec![scope],
                entries,
                backward: route.direction == Direction::Backward,
                composite: route.composite,
                chunk: CHUNK_MIN,
                read: VecDeque::new(),
                sorted: VecDeque::new(),
                ready: VecDeque::new(),
            });
        }
        Ok(Ordered { strands, wanted })
    }

    pub(super) fn looked(&self) -> Looked {
        self.strands.iter().map(|strand| strand.entries.looked).sum()
    }

    /// The next item.
    pub(super) fn next(&mut self) -> Result<Option<Found>> {
        for strand in &mut self.strands {
            strand.fill(self.wanted)?;
        }
        self.wanted = self.wanted.saturating_sub(1);
        let first = self
            .strands
            .iter_mut()
            .filter(|strand| !strand.ready.is_empty())
            .min_by(|left, right| left.front().cmp(&right.front()));
        let Some(strand) = first else { return Ok(None) };
        let Some(Ready { record, .. }) = strand.ready.pop_front() else { return Ok(None) };
        let (bucket, at) = (strand.bucket, Position::Start);
        Ok(Some(Found { record, bucket, rank: None, at, resumed: true }))
    }
}

impl Strand<'_> {
    fn front(&self) -> Option<(&[u8], u64)> {
        self.ready.front().map(|ready| (&*ready.key, self.bucket.0))
    }

    fn load(&self, numbers: &[u64]) -> Result<Vec<Record>> {
        load(self.within.opened, self.bucket, numbers, self.within.steps)
    }

    fn is_meant(&self, entry: &Entry) -> bool {
        self.scopes.iter().any(|scope| scope.contains(&entry.partition))
    }

    /// Sees to it that the next item is ready, if there is one. Items are read some at
    /// once, but not many more than are wanted.
    fn fill(&mut self, wanted: usize) -> Result<()> {
        while self.ready.is_empty() {
            let sorted: Vec<(Vec<u8>, u64)> =
                self.sorted.drain(..self.sorted.len().min(CHUNK_MIN)).collect();
            if !sorted.is_empty() {
                self.ready = self.loaded(sorted)?;
                return Ok(());
            }
            let Some(first) = self.next_entry(wanted)? else { return Ok(()) };
            if first.is_cut {
                self.gather(first)?;
                continue;
            }
            let mut entries = vec![first];
            while let Some(entry) = self.read.pop_front_if(|entry| !entry.is_cut) {
                entries.push(entry);
            }
            entries.retain(|entry| self.is_meant(entry));
            let sorted = entries.iter().map(|entry| (self.as_sorted(&entry.value), entry.docno));
            self.ready = self.loaded(sorted.collect())?;
        }
        Ok(())
    }

    fn loaded(&self, sorted: Vec<(Vec<u8>, u64)>) -> Result<VecDeque<Ready>> {
        let numbers: Vec<u64> = sorted.iter().map(|(_, docno)| *docno).collect();
        let records = self.load(&numbers)?;
        let ready = sorted.into_iter().zip(records);
        Ok(ready.map(|((key, _), record)| Ready { key, record }).collect())
    }

    fn next_entry(&mut self, wanted: usize) -> Result<Option<Entry>> {
        if self.read.is_empty() {
            let chunk = self.chunk.min(wanted.max(CHUNK_MIN));
            self.read = next_alive(&mut self.entries, chunk, self.within.steps)?.into();
            self.chunk = (self.chunk * 2).min(CHUNK_MAX);
        }
        Ok(self.read.pop_front())
    }

    /// The bytes of an entry as the query orders them.
    fn as_sorted(&self, value: &[u8]) -> Vec<u8> {
        if self.backward { value.iter().map(|byte| !byte).collect() } else { value.to_vec() }
    }

    /// Puts all entries in order that start as this one does.
    fn gather(&mut self, first: Entry) -> Result<()> {
        let start = first.value.get(..self.sure(&first)).unwrap_or_default().to_vec();
        let mut run = Vec::new();
        let mut next = Some(first);
        while let Some(entry) = next {
            if !entry.value.starts_with(&start) {
                self.read.push_front(entry);
                break;
            }
            if self.is_meant(&entry) {
                let Within { opened, program, steps, .. } = self.within;
                let Some(record) = self.load(&[entry.docno])?.pop() else { break };
                let row = Row::new(&record, &opened.container);
                let key = program.sort_key(&row, steps)?;
                let falls = program.order().first().is_some_and(OrderKey::descends);
                let tie = if falls { !entry.docno } else { entry.docno };
                run.push((key, tie, entry.docno));
            }
            if run.len() > RUN_MAX {
                return Err(super::too_many_alike());
            }
            next = self.next_entry(CHUNK_MAX)?;
        }
        run.sort_unstable_by(|left, right| (&left.0, left.1).cmp(&(&right.0, right.1)));
        // They were read to be sorted, and are read again a few at once: many items with
        // long values are not held at the same time.
        self.sorted.extend(run.into_iter().map(|(key, _, docno)| (key, docno)));
        Ok(())
    }

    /// How many bytes of a cut entry stand for its place in the order.
    fn sure(&self, entry: &Entry) -> usize {
        let members = self.composite.as_ref().and_then(|composite| composite.split(&entry.value));
        let Some(members) = members else { return entry.value.len() };
        let mut length = 0;
        for member in members {
            length += member.bytes.len();
            if member.is_cut {
                break;
            }
        }
        length
    }
}

impl Route {
    /// Leaves out what comes before the end of a page. What it leaves may still
    /// have rows that were on that page.
    fn start_at(&mut self, after: &After, order: &[OrderKey]) {
        let key = match after {
            After::Row((key, _, _)) => key,
            After::Start(start, _) => start,
        };
        let sure = key.get(..self.sure(key, order).0).unwrap_or(key);
        let value = self.as_entry(sure);
        match self.direction {
            Direction::Forward if value > self.entry_range.start => self.entry_range.start = value,
            Direction::Backward => {
                let end = KeyRange::prefix(&value).end;
                if end < self.entry_range.end {
                    self.entry_range.end = end;
                }
            }
            Direction::Forward => {}
        }
    }

    /// The last entry of a bucket that was on a page, by its value and number, as
    /// far as the end of the page tells: many items may have that value.
    fn last_of(&self, after: &After, order: &[OrderKey], bucket: Bucket) -> Option<(Vec<u8>, u64)> {
        let After::Row((key, (at, number), _)) = after else { return None };
        // The item itself may have more rows.
        let last = match bucket.0.cmp(at) {
            Ordering::Less => u64::MAX,
            Ordering::Equal => number.checked_sub(1)?,
            Ordering::Greater => return None,
        };
        let falls = order.first().is_some_and(OrderKey::descends);
        let docno = if falls { !last } else { last };
        let value = self.as_entry(key);
        let (start, end) = (&self.entry_range.start, &self.entry_range.end);
        let is_here = self.sure(key, order).1 && *start <= value && value < *end;
        is_here.then_some((value, docno))
    }

    /// Sort values as the index has them.
    fn as_entry(&self, key: &[u8]) -> Vec<u8> {
        match self.direction {
            Direction::Forward => key.to_vec(),
            Direction::Backward => key.iter().map(|byte| !byte).collect(),
        }
    }

    /// How many bytes of a row's sort values stand in its entry as they are, up to
    /// the first that the index cuts; and whether it cuts none.
    ///
    /// A page goes on from the sort values of its last row, and has to find where these are
    /// among entries. Long values are cut there, and arrays and objects stand by their type
    /// alone: behind such a value the entries follow another order than the rows. So a
    /// walk starts at what is sure, and meets some rows again that were given already,
    /// which the page itself leaves out. Only if nothing is cut it can start behind the
    /// very item in which the page ended; that matters where more items have one value
    /// than a page looks at.
    fn sure(&self, key: &[u8], order: &[OrderKey]) -> (usize, bool) {
        let mut length = 0;
        for member in order {
            let rest = key.get(length..).unwrap_or_default().iter();
            let rest: Vec<u8> =
                rest.map(|byte| if member.descends() { !byte } else { *byte }).collect();
            match first_value(&rest, self.value_bytes_max) {
                Some((bytes, false)) => length += bytes,
                Some((bytes, true)) => return (length + bytes, false),
                None => return (length, false),
            }
        }
        (length, length == key.len())
    }
}
