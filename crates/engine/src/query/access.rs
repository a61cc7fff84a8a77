//! The items that a query looks at, one by one.
//!
//! Without an order of its own, a query gets its items in the order in which they were
//! made, range by range. What its filter names by single values is in that order in the
//! index. What it names by ranges is not: there numbers are listed and sorted if they are
//! few, and if they are many, all items are gone through in order, which meets one of
//! them soon. Nobody knows beforehand how many they are, so both are tried in turns, each
//! for about as long as the other was: lists of four times as many at each turn, and in
//! between the items that come next. The next page goes on with what this one found out, and
//! with the list, which is kept (`listings.rs`) unless it is soon made again. Where it was not
//! kept, all items are gone through once more, until a new one is worth it.
//!
//! Neither which items come nor what they cost the client depends on that: what an index can
//! serve is paid by what it gives.

use std::collections::VecDeque;

use dayfly_model::Result;
use dayfly_sql::run::{After, Program, Steps};
use dayfly_storage::Bucket;

use super::choose::Way;
use super::numbers::{Effort, Set, Stream};
use super::ordered::Ordered;
use super::token::{Position, Tried};
use crate::creation::{ITEM_STEPS, InOrder};
use crate::index::walk::{Entries, Entry, Looked};
use crate::listings::Listings;
use crate::liveness::Liveness;
use crate::pages::bad_token;
use crate::parts::Segment;
use crate::record::{self, Record};
use crate::reply::storage_failed;
use crate::scope::Opened;
use crate::settings::QueryLimits;

/// How many items are read at once, at most.
const READ_MAX: usize = 64;

/// A list is so many times as long as the one that was tried before.
const LIST_FACTOR: usize = 4;

/// An item that is read in order is worth so many numbers of a list.
const ITEM_NUMBERS: usize = 4;

/// What a query is carried out on.
#[derive(Clone, Copy)]
pub(super) struct Within<'a> {
    pub(super) opened: &'a Opened,
    pub(super) program: &'a Program,
    /// What ranges named for earlier pages.
    pub(super) listings: &'a Listings,
    pub(super) steps: &'a Steps<'a>,
}

/// An item that is alive.
pub(super) struct Found {
    pub(super) record: Record,
    pub(super) bucket: Bucket,
    /// The rank of its range, if items come range by range.
    pub(super) rank: Option<u64>,
    /// Where it stands.
    pub(super) at: Position,
    /// `false`: the item in which the last page stopped is gone, so this one gives all
    /// its rows.
    pub(super) resumed: bool,
}

/// The items on a way.
pub(super) enum Access<'a> {
    Nothing,
    Items(ItemWalk<'a>),
    Ordered(Ordered<'a>),
}

impl<'a> Access<'a> {
    /// Goes a way through some segments, from where a page ended. `wanted`: about how many
    /// items are asked for.
    pub(super) fn open(
        within: Within<'a>,
        way: &Way,
        segments: Vec<Segment>,
        start: &Position,
        after: Option<&After>,
        wanted: usize,
    ) -> Result<Access<'a>> {
        let set = match way {
            Way::Nothing => return Ok(Access::Nothing),
            Way::Ordered(route) => {
                return Ordered::new(within, segments, route, after, wanted).map(Access::Ordered);
            }
            Way::Scan(_) => None,
            Way::Numbers(set) => Some(set.clone()),
        };
        ItemWalk::new(within, set, segments, start, wanted).map(Access::Items)
    }

    /// Whether items come in the order of the query.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self, Access::Ordered(_))
    }

    /// The next item that is alive.
    pub(super) fn next(&mut self) -> Result<Option<Found>> {
        match self {
            Access::Nothing => Ok(None),
            Access::Items(items) => items.next(),
            Access::Ordered(ordered) => ordered.next(),
        }
    }

    /// How many keys or entries were looked at, also of items that are dead.
    pub(super) fn looked(&self) -> Looked {
        match self {
            Access::Nothing => Looked::default(),
            Access::Items(items) => items.looked(),
            Access::Ordered(ordered) => ordered.looked(),
        }
    }

    /// Whether some items were found by going through all of them, because the filter
    /// names too many to list.
    pub(super) fn is_scan(&self) -> bool {
        matches!(self, Access::Items(ItemWalk { tried: Tried::Many(..), .. }))
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

/// The items that entries of the index are about, read at once.
pub(super) fn load(
    opened: &Opened,
    bucket: Bucket,
    numbers: &[u64],
    steps: &Steps<'_>,
) -> Result<Vec<Record>> {
    steps.make(ITEM_STEPS * numbers.len() as u64)?;
    record::named(&*opened.snapshot, bucket, numbers).map_err(storage_failed)
}

/// Items in the order in which they were made.
pub(super) struct ItemWalk<'a> {
    within: Within<'a>,
    /// Those that the filter names; `None`: all.
    set: Option<Set>,
    segments: VecDeque<Segment>,
    /// What the first segment is read from.
    source: Option<ItemSource<'a>>,
    /// From which number on.
    next: u64,
    tried: Tried,
    /// About how many items were asked for, and how many came.
    wanted: usize,
    given: usize,
    /// What was looked at in sources that are done.
    looked: Looked,
    /// The number with which the page before ended.
    resumes: Option<u64>,
    /// Whether the page before ended in the first segment.
    is_resumed: bool,
}

enum ItemSource<'a> {
    /// What the filter names.
    Named(NamedItems<'a>),
    /// All items; with an end, a longer list is tried when so many were met.
    All(InOrder<'a>, Option<u64>),
}

/// What became of items that were listed earlier.
struct Gone {
    liveness: Liveness,
    /// How many were gone.
    met: u64,
    /// With more than these, the list is made anew.
    most: u64,
}

struct NamedItems<'a> {
    stream: Stream<'a>,
    read: VecDeque<Record>,
    /// If a list says who was alive earlier.
    gone: Option<Gone>,
}

impl<'a> ItemWalk<'a> {
    fn new(
        within: Within<'a>,
        set: Option<Set>,
        segments: Vec<Segment>,
        start: &Position,
        wanted: usize,
    ) -> Result<ItemWalk<'a>> {
        let mut walk = ItemWalk {
            within,
            set,
            segments: segments.into(),
            source: None,
            next: 0,
            tried: Tried::Nothing,
            wanted,
            given: 0,
            looked: Looked::default(),
            resumes: None,
            is_resumed: false,
        };
        if let Position::Item { range, mark, docno, tried } = start {
            let first = walk.segments.iter().position(|segment| segment.range == *range);
            walk.segments.drain(..first.ok_or_else(bad_token)?);
            if walk.segments.front().is_some_and(|segment| segment.mark != *mark) {
                return Err(bad_token());
            }
            (walk.next, walk.tried, walk.resumes) = (*docno, *tried, Some(*docno));
            walk.is_resumed = true;
        }
        Ok(walk)
    }

    fn looked(&self) -> Looked {
        let here = self.source.as_ref().map(ItemSource::looked);
        [self.looked].into_iter().chain(here).sum()
    }

    fn next(&mut self) -> Result<Option<Found>> {
        while let Some(segment) = self.segments.front() {
            let Segment { range, rank, mark, bucket, .. } = *segment;
            let ahead = self.ahead();
            let Some(source) = &mut self.source else {
                self.source = Some(self.open()?);
                continue;
            };
            if let Some(record) = source.pop() {
                let (docno, tried) = (record.docno, source.tried(self.tried));
                self.next = docno + 1;
                self.given += 1;
                let resumed = self.resumes.take().is_none_or(|resumes| resumes == docno);
                let at = Position::Item { range, mark, docno, tried };
                return Ok(Some(Found { record, bucket, rank: Some(rank), at, resumed }));
            }
            if source.is_tired(self.tried) {
                self.close();
                self.source = Some(self.list()?);
            } else if !source.fetch(self.within, bucket, self.next, ahead)? {
                self.close();
                self.segments.pop_front();
                self.next = 0;
                self.is_resumed = false;
                self.tried = self.tried.afresh();
            }
        }
        Ok(None)
    }

    /// How many items are worth to be read at once. Whoever wants more than were asked for
    /// refuses some: then it is as many again as came beyond that.
    fn ahead(&self) -> usize {
        match self.wanted.checked_sub(self.given) {
            Some(left) => left,
            None => (self.given - self.wanted).min(READ_MAX),
        }
    }

    /// Is done with a source.
    fn close(&mut self) {
        if let Some(source) = self.source.take() {
            self.looked += source.looked();
            self.tried = source.tried(self.tried);
            if let ItemSource::All(items, _) = source {
                self.next = items.from();
            }
        }
    }

    /// What the first segment is read from.
    fn open(&mut self) -> Result<ItemSource<'a>> {
        match &self.set {
            None => return self.all(None),
            Some(set) if !set.has_ranges() => {
                let stream = self.stream(Effort::Recall)?;
                // Without ranges nothing is listed.
                return stream.map_or_else(|| self.all(None), |stream| self.named(stream));
            }
            Some(_) => {}
        }
        let level = match self.tried {
            Tried::Nothing | Tried::Listed(0) => return self.list(),
            Tried::Listed(level) | Tried::Many(level, _) => level,
        };
        if let Some(stream) = self.stream(Effort::Recall)? {
            self.tried = Tried::Listed(level);
            return self.named(stream);
        }
        if matches!(self.tried, Tried::Listed(_)) {
            if !self.is_resumed {
                return self.list();
            }
            self.tried = Tried::Many(level, 0);
        }
        self.all(self.patience(level))
    }

    /// Lists what the filter names, if it is not too much.
    fn list(&mut self) -> Result<ItemSource<'a>> {
        let (Tried::Listed(level) | Tried::Many(level, _)) = self.tried else {
            self.tried = Tried::Listed(0);
            return self.list();
        };
        // Short lists are soon made again.
        let effort = Effort::List(self.limits().listed(level), level > 0);
        if let Some(stream) = self.stream(effort)? {
            self.tried = Tried::Listed(level);
            return self.named(stream);
        }
        let level = level.saturating_add(1);
        self.tried = Tried::Many(level, 0);
        self.all(self.patience(level))
    }

    fn stream(&mut self, effort: Effort) -> Result<Option<Stream<'a>>> {
        match (&self.set, self.segments.front()) {
            (Some(set), Some(segment)) => {
                Stream::open(set, self.within, segment, effort, &mut self.looked)
            }
            _ => Ok(None),
        }
    }

    fn named(&self, stream: Stream<'a>) -> Result<ItemSource<'a>> {
        let gone = match self.segments.front() {
            Some(segment) if !stream.is_exact() => {
                let snapshot = &*self.within.opened.snapshot;
                let liveness = Liveness::of(snapshot, segment.bucket).map_err(storage_failed)?;
                Some(Gone { liveness, met: 0, most: self.limits().few_dead })
            }
            _ => None,
        };
        Ok(ItemSource::Named(NamedItems { stream, read: VecDeque::new(), gone }))
    }

    fn all(&self, until: Option<u64>) -> Result<ItemSource<'a>> {
        let Within { opened, steps, .. } = self.within;
        let Some(segment) = self.segments.front() else { return Err(bad_token()) };
        let items = InOrder::new(opened, segment, self.next, &|made| steps.make(made))?;
        Ok(ItemSource::All(items, until))
    }

    /// How many items are worth to be read before a list of this level is tried; `None`:
    /// it would be too long.
    fn patience(&self, level: u8) -> Option<u64> {
        let limits = self.limits();
        let before = limits.listed(level.saturating_sub(1));
        (before < limits.listed(level)).then_some((before / ITEM_NUMBERS) as u64)
    }

    fn limits(&self) -> &QueryLimits {
        &self.within.opened.limits
    }
}

impl Tried {
    /// The same for another segment.
    fn afresh(self) -> Tried {
        if let Tried::Many(level, _) = self { Tried::Many(level, 0) } else { self }
    }
}

impl QueryLimits {
    /// How many numbers are listed at a level.
    fn listed(&self, level: u8) -> usize {
        let (first, most) = self.listed_items;
        let factor = LIST_FACTOR.checked_pow(level.into()).unwrap_or(usize::MAX);
        first.saturating_mul(factor).min(most)
    }
}

impl ItemSource<'_> {
    fn looked(&self) -> Looked {
        match self {
            ItemSource::Named(named) => named.stream.looked(),
            ItemSource::All(items, _) => items.looked(),
        }
    }

    fn pop(&mut self) -> Option<Record> {
        match self {
            ItemSource::Named(named) => named.read.pop_front(),
            ItemSource::All(items, _) => items.pop(),
        }
    }

    /// What is found out by now, if it was this when the source was opened. What is dead does
    /// not count: a query takes the same way before the purge and after it.
    fn tried(&self, at_first: Tried) -> Tried {
        match (self, at_first) {
            (ItemSource::All(items, _), Tried::Many(level, met)) => {
                let looked = items.looked();
                let here = u32::try_from(looked.keys - looked.dead).unwrap_or(u32::MAX);
                Tried::Many(level, met.saturating_add(here))
            }
            _ => at_first,
        }
    }

    /// Whether so many items were met that a longer list may be better, or so few of a list
    /// that was kept.
    fn is_tired(&self, at_first: Tried) -> bool {
        match (self, self.tried(at_first)) {
            (ItemSource::All(_, Some(until)), Tried::Many(_, met)) => u64::from(met) >= *until,
            (ItemSource::Named(named), _) => named.is_worn(),
            _ => false,
        }
    }

    /// Reads on. `false`: there is nothing more.
    fn fetch(
        &mut self,
        within: Within<'_>,
        bucket: Bucket,
        next: u64,
        wanted: usize,
    ) -> Result<bool> {
        match self {
            ItemSource::All(items, _) => items.fetch(wanted, &|made| within.steps.make(made)),
            ItemSource::Named(named) => named.fetch(within, bucket, next, wanted),
        }
    }
}

impl NamedItems<'_> {
    /// Whether so many were gone that a new list is better.
    fn is_worn(&self) -> bool {
        self.gone.as_ref().is_some_and(|gone| gone.met > gone.most)
    }

    /// Reads the next items from this number on. `false`: there are none.
    fn fetch(
        &mut self,
        Within { opened, steps, .. }: Within<'_>,
        bucket: Bucket,
        mut next: u64,
        wanted: usize,
    ) -> Result<bool> {
        let most = wanted.clamp(1, READ_MAX);
        loop {
            let mut numbers = Vec::with_capacity(most);
            while numbers.len() < most
                && let Some(hit) = self.stream.seek(next)?
            {
                next = hit.docno + 1;
                if hit.is_meant {
                    numbers.push(hit.docno);
                }
            }
            if numbers.is_empty() {
                return Ok(false);
            }
            match &mut self.gone {
                None => self.read.extend(load(opened, bucket, &numbers, steps)?),
                Some(gone) => {
                    steps.make(ITEM_STEPS * numbers.len() as u64)?;
                    let snapshot = &*opened.snapshot;
                    let there = record::still_there(snapshot, bucket, &numbers, &gone.liveness);
                    let there = there.map_err(storage_failed)?;
                    gone.met += (numbers.len() - there.len()) as u64;
                    self.read.extend(there);
                }
            }
            if !self.read.is_empty() || self.is_worn() {
                return Ok(true);
            }
        }
    }
}
