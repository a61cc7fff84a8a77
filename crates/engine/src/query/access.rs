//! The items that a query looks at, one by one.

use std::collections::VecDeque;

use dayfly_model::Result;
use dayfly_sql::run::{After, Program, Steps};
use dayfly_storage::{Bucket, Direction, Error, KeyRange, Pair};

use super::choose::{Way, entry_range};
use super::numbers::{Set, Stream};
use super::ordered::Ordered;
use super::token::{Position, bad_token, index_gone};
use crate::index::walk::{Entries, Entry, EntryRange, Looked};
use crate::keys::{self, ItemKey};
use crate::liveness::Liveness;
use crate::record::{Record, Seen};
use crate::reply::storage_failed;
use crate::scope::Opened;

/// How many keys are read at once, to begin with and at most.
const CHUNK_MIN: usize = 16;
const CHUNK_MAX: usize = 512;

/// How many steps it is to read a key with its item, and to find the item of an entry.
const KEY_STEPS: u64 = 2;
const ITEM_STEPS: u64 = 10;

/// What a query is carried out on.
#[derive(Clone, Copy)]
pub(super) struct Within<'a> {
    pub(super) opened: &'a Opened,
    pub(super) program: &'a Program,
    pub(super) steps: &'a Steps<'a>,
}

/// An item that is alive.
pub(super) struct Found {
    pub(super) record: Record,
    pub(super) bucket: Bucket,
    /// Where it stands.
    pub(super) at: Position,
    /// `false`: the item in which the last page stopped is gone, so this one gives all
    /// its rows.
    pub(super) resumed: bool,
}

/// The items on a way.
pub(super) enum Access<'a> {
    Nothing,
    Scan(Scan<'a>),
    Walk(Walk<'a>),
    Numbers(NumberWalk<'a>),
    Ordered(Ordered<'a>),
}

/// The ranges of keys that are meant, bucket by bucket, in their order.
pub(super) type Segments = Vec<(Bucket, Scope)>;

/// Ranges of the keys of items, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope(pub(super) Vec<KeyRange>);

impl Scope {
    /// Whether all items of the bucket are meant.
    pub(super) fn is_whole(&self) -> bool {
        let all = keys::items();
        self.0.iter().any(|range| range.start <= all.start && all.end <= range.end)
    }

    /// Whether an item is meant.
    pub(super) fn contains(&self, item: &ItemKey) -> bool {
        self.0.iter().any(|range| range.contains(item.record()))
    }
}

impl<'a> Access<'a> {
    /// Goes a way through some ranges of keys, from where a page ended.
    pub(super) fn open(
        within: Within<'a>,
        way: &Way,
        mut segments: Segments,
        start: &Position,
        after: Option<&After>,
    ) -> Result<Access<'a>> {
        if let Some(bucket) = start.bucket() {
            segments.retain(|(candidate, _)| *candidate >= bucket);
            if segments.first().is_none_or(|(first, _)| *first != bucket) {
                return Err(bad_token());
            }
        }
        Ok(match way {
            Way::Nothing => Access::Nothing,
            Way::Scan(_) => Access::Scan(Scan::new(within, segments, start)?),
            Way::Walk(span) => Access::Walk(Walk::new(within, segments, entry_range(span), start)?),
            Way::Numbers(set) => {
                match NumberWalk::new(within, segments.clone(), set, start)? {
                    Some(numbers) => Access::Numbers(numbers),
                    // The alternatives name too many items to be listed.
                    None if *start == Position::Start => {
                        Access::Scan(Scan::new(within, segments, start)?)
                    }
                    None => return Err(index_gone()),
                }
            }
            Way::Ordered(route) => Access::Ordered(Ordered::new(within, segments, route, after)?),
        })
    }

    /// Whether items come in the order of the query.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self, Access::Ordered(_))
    }

    /// Whether all items are read, whatever was meant to be.
    pub(super) fn is_scan(&self) -> bool {
        matches!(self, Access::Scan(_))
    }

    /// The next item that is alive.
    pub(super) fn next(&mut self) -> Result<Option<Found>> {
        match self {
            Access::Nothing => Ok(None),
            Access::Scan(scan) => scan.next(),
            Access::Walk(walk) => walk.next(),
            Access::Numbers(numbers) => numbers.next(),
            Access::Ordered(ordered) => ordered.next(),
        }
    }

    /// How many keys or entries were looked at, also of items that are dead.
    pub(super) fn looked(&self) -> Looked {
        match self {
            Access::Nothing => Looked::default(),
            Access::Scan(scan) => scan.looked,
            Access::Walk(walk) => walk.looked(),
            Access::Numbers(numbers) => numbers.looked(),
            Access::Ordered(ordered) => ordered.looked(),
        }
    }
}

/// The next entries that are alive, `limit` at most; none at the end.
pub(super) fn next_alive(
    entries: &mut Entries<'_>,
    limit: usize,
    steps: &Steps<'_>,
) -> Result<Vec<Entry>> {
    loop {
        let before = entries.looked.keys;
        let page = entries.page(limit).map_err(storage_failed)?;
        steps.make(1 + entries.looked.keys - before)?;
        match page {
            Some(alive) if alive.is_empty() => {}
            Some(alive) => return Ok(alive),
            None => return Ok(Vec::new()),
        }
    }
}

/// The item that an entry of the index is about.
pub(super) fn load(
    opened: &Opened,
    bucket: Bucket,
    item: &ItemKey,
    docno: u64,
    steps: &Steps<'_>,
) -> Result<Record> {
    steps.make(ITEM_STEPS)?;
    let found = opened.snapshot.get(bucket, item.record()).map_err(storage_failed)?;
    let record = found.map(Record::decode).transpose().map_err(storage_failed)?;
    record.filter(|record| record.docno == docno).ok_or_else(|| {
        storage_failed(Error::Corrupt("an entry of the index without its item".to_owned()))
    })
}

/// All items, in the order of their keys.
pub(super) struct Scan<'a> {
    within: Within<'a>,
    /// What is still to be read.
    segments: VecDeque<(Bucket, KeyRange)>,
    liveness: Option<Liveness>,
    read: VecDeque<Pair>,
    chunk: usize,
    looked: Looked,
    /// The key with which the page before ended.
    resumes: Option<Vec<u8>>,
}

impl<'a> Scan<'a> {
    fn new(within: Within<'a>, segments: Segments, start: &Position) -> Result<Self> {
        let mut segments: VecDeque<(Bucket, KeyRange)> = segments
            .into_iter()
            .flat_map(|(bucket, scope)| scope.0.into_iter().map(move |range| (bucket, range)))
            .collect();
        let mut resumes = None;
        match start {
            Position::Start => {}
            Position::Item(bucket, key) => {
                segments.retain(|(candidate, range)| candidate > bucket || range.end > *key);
                match segments.front_mut() {
                    Some((first, range)) if first == bucket && range.contains(key) => {
                        range.start.clone_from(key);
                    }
                    _ => return Err(bad_token()),
                }
                resumes = Some(key.clone());
            }
            _ => return Err(bad_token()),
        }
        let (read, looked) = (VecDeque::new(), Looked::default());
        Ok(Scan { within, segments, liveness: None, read, chunk: CHUNK_MIN, looked, resumes })
    }

    fn next(&mut self) -> Result<Option<Found>> {
        loop {
            let Some((key, value)) = self.read.pop_front() else {
                if self.fetch()? {
                    continue;
                }
                return Ok(None);
            };
            self.looked.keys += 1;
            self.within.steps.make(KEY_STEPS)?;
            let (Some((bucket, _)), Some(liveness)) = (self.segments.front(), self.liveness) else {
                return Ok(None);
            };
            let bucket = *bucket;
            let resumed = self.resumes.as_ref().is_none_or(|resumes| *resumes == key);
            if let Seen::Alive(record) = Seen::of(value, &liveness).map_err(storage_failed)? {
                self.resumes = None;
                let at = Position::Item(bucket, key.to_vec());
                return Ok(Some(Found { record, bucket, at, resumed }));
            }
            self.looked.dead += 1;
        }
    }

    /// Reads on. `false`: there is nothing more.
    fn fetch(&mut self) -> Result<bool> {
        while let Some((bucket, range)) = self.segments.front_mut() {
            let opened = self.within.opened;
            let snapshot = &*opened.snapshot;
            if self.liveness.is_none() {
                let liveness = Liveness::of(&snapshot.head(*bucket), opened.now());
                self.liveness = Some(liveness.map_err(storage_failed)?);
            }
            let pairs = snapshot
                .scan(*bucket, range, Direction::Forward, self.chunk)
                .map_err(storage_failed)?;
            self.chunk = (self.chunk * 2).min(CHUNK_MAX);
            if let Some((last, _)) = pairs.last() {
                range.go_behind(last);
                self.read = pairs.into();
                return Ok(true);
            }
            self.segments.pop_front();
            self.liveness = None;
        }
        Ok(false)
    }
}

/// The items of a range of entries, bucket by bucket, in the order of the
/// entries.
pub(super) struct Walk<'a> {
    within: Within<'a>,
    entry_range: EntryRange,
    segments: VecDeque<(Bucket, Scope)>,
    entries: Option<Entries<'a>>,
    read: VecDeque<Entry>,
    chunk: usize,
    looked: Looked,
    /// The entry with which the page before ended.
    resumes: Option<(Vec<u8>, u64)>,
}

impl<'a> Walk<'a> {
    fn new(
        within: Within<'a>,
        segments: Segments,
        entry_range: EntryRange,
        start: &Position,
    ) -> Result<Self> {
        let mut walk = Walk {
            within,
            entry_range,
            segments: segments.into(),
            entries: None,
            read: VecDeque::new(),
            chunk: CHUNK_MIN,
            looked: Looked::default(),
            resumes: None,
        };
        match start {
            Position::Start => {}
            Position::Entry { bucket, path, value, docno } if *path == walk.entry_range.path => {
                let entries = walk.entries_of(*bucket)?;
                // The entry itself is meant, or the next one after where it was.
                walk.entries = Some(match docno.checked_sub(1) {
                    Some(before) => entries.after(&walk.entry_range, value, before),
                    None => entries,
                });
                walk.resumes = Some((value.clone(), *docno));
            }
            _ => return Err(bad_token()),
        }
        Ok(walk)
    }

    fn entries_of(&self, bucket: Bucket) -> Result<Entries<'a>> {
        self.within.opened.entries(bucket, &self.entry_range, Direction::Forward)
    }

    fn looked(&self) -> Looked {
        let here = self.entries.as_ref().map(|entries| entries.looked);
        [self.looked].into_iter().chain(here).sum()
    }

    fn next(&mut self) -> Result<Option<Found>> {
        while let Some((bucket, scope)) = self.segments.front().cloned() {
            let Some(entry) = self.read.pop_front() else {
                self.fetch(bucket)?;
                continue;
            };
            if !scope.contains(&entry.item) {
                continue;
            }
            let here = (entry.value.to_vec(), entry.docno);
            let resumed = self.resumes.take().is_none_or(|resumes| resumes == here);
            let Within { opened, steps, .. } = self.within;
            let record = load(opened, bucket, &entry.item, entry.docno, steps)?;
            let (path, (value, docno)) = (self.entry_range.path, here);
            let at = Position::Entry { bucket, path, value, docno };
            return Ok(Some(Found { record, bucket, at, resumed }));
        }
        Ok(None)
    }

    /// Reads on, or goes to the next bucket.
    fn fetch(&mut self, bucket: Bucket) -> Result<()> {
        let mut entries = match self.entries.take() {
            Some(entries) => entries,
            None => self.entries_of(bucket)?,
        };
        let page = next_alive(&mut entries, self.chunk, self.within.steps)?;
        self.chunk = (self.chunk * 2).min(CHUNK_MAX);
        if page.is_empty() {
            self.looked += entries.looked;
            self.segments.pop_front();
        } else {
            self.read = page.into();
            self.entries = Some(entries);
        }
        Ok(())
    }
}

/// The items of a set, bucket by bucket, in the order of their numbers.
pub(super) struct NumberWalk<'a> {
    within: Within<'a>,
    streams: VecDeque<(Bucket, Scope, Stream<'a>)>,
    next: u64,
    looked: Looked,
    /// The number with which the page before ended.
    resumes: Option<u64>,
}

impl<'a> NumberWalk<'a> {
    fn new(
        within: Within<'a>,
        segments: Segments,
        set: &Set,
        start: &Position,
    ) -> Result<Option<Self>> {
        let mut streams = VecDeque::new();
        let mut looked = Looked::default();
        for (bucket, scope) in segments {
            match Stream::open(set, within, (bucket, &scope), &mut looked)? {
                Some(stream) => streams.push_back((bucket, scope, stream)),
                None => return Ok(None),
            }
        }
        let resumes = match start {
            Position::Start => None,
            Position::Number(_, docno) => Some(*docno),
            Position::Item(..) | Position::Entry { .. } => return Err(bad_token()),
        };
        let next = resumes.unwrap_or(0);
        Ok(Some(NumberWalk { within, streams, next, looked, resumes }))
    }

    fn looked(&self) -> Looked {
        let streams = self.streams.iter().map(|(_, _, stream)| stream.looked());
        [self.looked].into_iter().chain(streams).sum()
    }

    fn next(&mut self) -> Result<Option<Found>> {
        while let Some((bucket, scope, stream)) = self.streams.front_mut() {
            let Some(hit) = stream.seek(self.next)? else {
                self.looked += stream.looked();
                self.streams.pop_front();
                self.next = 0;
                continue;
            };
            self.next = hit.docno + 1;
            if scope.contains(&hit.item) {
                let bucket = *bucket;
                let resumed = self.resumes.take().is_none_or(|resumes| resumes == hit.docno);
                let Within { opened, steps, .. } = self.within;
                let record = load(opened, bucket, &hit.item, hit.docno, steps)?;
                let at = Position::Number(bucket, hit.docno);
                return Ok(Some(Found { record, bucket, at, resumed }));
            }
        }
        Ok(None)
    }
}
