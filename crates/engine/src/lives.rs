//! The life histogram: how many items live until when.
//!
//! Each bucket counts its items by the second of their life stamp, in rows that
//! are changed in the same commit as the items. There is one histogram for each
//! class: by `_ts` for items that inherit, that never expire and whose `ttl`
//! cannot be read, by the second of expiry for those with a `ttl`. Dead is what
//! stands at or before the cut of its class; so what is alive at any second,
//! what will expire when, and what another default would expire, are a few sums,
//! exact to the second, whether or not anything was purged.
//!
//! ```text
//! level 6   cells of 64^6 seconds   one page: all there is
//! ...
//! level 1   cells of 64 seconds
//! level 0   cells of 1 second
//! ```
//!
//! 64 cells are a page, one row. A cell is the sum of the page below it. The sum
//! of everything up to a second needs one page of each level.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use dayfly_model::Timestamp;
use dayfly_model::ttl::{Cuts, Life, Policy};
use dayfly_storage::tally::{CELLS, Change, Count, Tally};
use dayfly_storage::{Batch, Error, KeyRange, Pair, Result};

use crate::deleted::DeletedPartition;
use crate::keys;

/// How many levels there are; together they reach past the year 9999.
const LEVELS: u8 = 7;

/// The bits of a cell's number within its page.
const CELL_BITS: u32 = 6;

/// The same, as a mask.
const CELL_MASK: u8 = (1 << CELL_BITS) - 1;

/// The first second that is past all of them.
const END: u64 = 1 << (CELL_BITS * LEVELS as u32);

/// How many rows of a deleted partition are read at once.
const CHUNK: usize = 1024;

/// How an item lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// By the container's default.
    Inherit,
    /// By its own `ttl`.
    Explicit,
    /// For ever.
    Never,
    /// By the default, since its `ttl` cannot be read.
    Opaque,
}

impl Class {
    pub(crate) const ALL: [Class; 4] =
        [Class::Inherit, Class::Explicit, Class::Never, Class::Opaque];

    /// The classes that may expire.
    pub(crate) const MORTAL: [Class; 3] = [Class::Inherit, Class::Explicit, Class::Opaque];

    /// The classes that live by the container's default.
    pub(crate) const BY_DEFAULT: [Class; 2] = [Class::Inherit, Class::Opaque];

    pub(crate) fn of(life: Life) -> Class {
        match life {
            Life::Inherit(_) => Class::Inherit,
            Life::Explicit(_) => Class::Explicit,
            Life::Never => Class::Never,
            Life::Opaque(_) => Class::Opaque,
        }
    }

    fn tag(self) -> u8 {
        match self {
            Class::Inherit => b'i',
            Class::Explicit => b'e',
            Class::Never => b'n',
            Class::Opaque => b'o',
        }
    }

    /// The last second of this class that is dead; `None`: none is.
    pub(crate) fn cut(self, cuts: Cuts) -> Option<Timestamp> {
        match self {
            Class::Inherit | Class::Opaque => Some(cuts.inherit),
            Class::Explicit => Some(cuts.explicit),
            Class::Never => None,
        }
    }
}

/// What an item is counted by. The order of its partition has it, after which an entry of
/// that order is read like any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountedItem {
    pub(crate) life: Life,
    pub(crate) ts: Timestamp,
    pub(crate) bytes: u64,
}

impl CountedItem {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut row = Vec::with_capacity(24);
        row.put_u64(self.life.to_bits());
        row.put_u64(self.ts.0);
        row.put_u64(self.bytes);
        row
    }

    pub(crate) fn decode(mut row: &[u8]) -> Result<CountedItem> {
        let broken = |_| Error::Corrupt("a row of a partition's order".to_owned());
        let life = Life::from_bits(row.try_get_u64().map_err(broken)?);
        let ts = Timestamp(row.try_get_u64().map_err(broken)?);
        Ok(CountedItem { life, ts, bytes: row.try_get_u64().map_err(broken)? })
    }
}

/// Versions that came, or that went. Neighbours of one class and second are added
/// up: the purge takes them in their order.
#[derive(Default)]
pub(crate) struct Tallied(Vec<((Class, u64), Count)>);

impl Tallied {
    /// Notes a version with this life stamp and `_ts`.
    pub(crate) fn add(&mut self, life: Life, ts: Timestamp, bytes: u64) {
        let place = (Class::of(life), second_of(life, ts));
        let count = Count { items: 1, bytes };
        match self.0.last_mut() {
            Some((last, sum)) if *last == place => *sum = sum.plus(count),
            _ => self.0.push((place, count)),
        }
    }

    /// The items of deleted partitions that are still there.
    pub(crate) fn of_deleted(
        deleted: &[DeletedPartition],
        scan: &dyn Fn(&KeyRange, usize) -> Result<Vec<Pair>>,
    ) -> Result<Tallied> {
        let mut hidden = Tallied::default();
        for DeletedPartition { partition, before, done, .. } in deleted {
            let mut range = keys::in_partition(partition, *done, *before);
            loop {
                let rows = scan(&range, CHUNK)?;
                let Some((last, _)) = rows.last() else { break };
                range.go_behind(last);
                for (_, row) in &rows {
                    let CountedItem { life, ts, bytes } = CountedItem::decode(row)?;
                    hidden.add(life, ts, bytes);
                }
            }
        }
        Ok(hidden)
    }

    /// The same, each second once.
    pub(crate) fn summed(self) -> Tallied {
        let mut sums: HashMap<(Class, u64), Count> = HashMap::new();
        for (place, count) in self.0 {
            let sum = sums.entry(place).or_default();
            *sum = sum.plus(count);
        }
        Tallied(sums.into_iter().collect())
    }

    /// Counts them all.
    pub(crate) fn write(self, batch: &mut Batch, change: fn(Count) -> Change) {
        for ((class, second), count) in self.0 {
            for level in 0..LEVELS {
                let key = keys::lives(class.tag(), level, page_of(second, level));
                batch.add(key, cell_of(second, level), change(count));
            }
        }
    }
}

/// The second by which a version is counted.
pub(crate) fn second_of(life: Life, ts: Timestamp) -> u64 {
    let second = match life {
        Life::Inherit(ts) | Life::Opaque(ts) => ts,
        Life::Explicit(at) => at,
        Life::Never => ts,
    };
    second.0.min(END - 1)
}

/// The cell of a second within its page.
fn cell_of(second: u64, level: u8) -> u8 {
    let [low, ..] = (second >> (CELL_BITS * u32::from(level))).to_le_bytes();
    low & CELL_MASK
}

fn page_of(second: u64, level: u8) -> u64 {
    second >> (CELL_BITS * (u32::from(level) + 1))
}

/// Reads several rows of a bucket, in one call.
pub(crate) type GetMany<'a> = &'a dyn Fn(&[&[u8]]) -> Result<Vec<Option<Bytes>>>;

/// The histogram of one bucket, as one snapshot shows it.
pub(crate) struct Lives<'a> {
    get_many: GetMany<'a>,
    /// What is counted there and not here.
    hidden: Arc<Tallied>,
    /// The last page that was read of each class and level: sums that follow
    /// each other need mostly the same ones.
    pages: RefCell<[[Option<LifePage>; LEVELS as usize]; 4]>,
}

/// A page: its number, and what it counts.
type LifePage = (u64, Box<Tally>);

/// Which page it is.
#[derive(Clone, Copy)]
struct PagePlace {
    class: Class,
    level: u8,
    number: u64,
}

impl PagePlace {
    /// The page of all there is of a class.
    fn top(class: Class) -> PagePlace {
        PagePlace { class, level: LEVELS - 1, number: 0 }
    }

    /// The page that has the cell of a second on a level.
    fn with(class: Class, second: u64, level: u8) -> PagePlace {
        PagePlace { class, level, number: page_of(second, level) }
    }
}

/// What is alive, and what is dead and still there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) live: Count,
    pub(crate) dead: Count,
}

impl<'a> Lives<'a> {
    pub(crate) fn new(get_many: GetMany<'a>) -> Self {
        Lives { get_many, hidden: Arc::default(), pages: RefCell::default() }
    }

    /// The same without some items, which are dead whatever their stamps say.
    pub(crate) fn without(self, hidden: impl Into<Arc<Tallied>>) -> Self {
        Lives { hidden: hidden.into(), ..self }
    }

    /// All items of a class, dead or alive.
    pub(crate) fn all(&self, class: Class) -> Result<Count> {
        self.page(PagePlace::top(class), |page| page.before(CELLS))
    }

    /// All items, dead or alive.
    pub(crate) fn whole(&self) -> Result<Count> {
        self.read(Class::ALL.into_iter().map(PagePlace::top))?;
        let mut all = Count::default();
        for class in Class::ALL {
            all = all.plus(self.all(class)?);
        }
        Ok(all)
    }

    /// How many items there are, dead or alive. In most buckets nearly all of them live by
    /// the default: when these are more than `enough`, the others are not counted.
    pub(crate) fn items(&self, enough: u64) -> Result<u64> {
        let by_default = self.all(Class::Inherit)?.items;
        if by_default > enough {
            return Ok(by_default);
        }
        Ok(self.whole()?.items)
    }

    /// The items of a class that are dead at these cuts.
    pub(crate) fn dead(&self, class: Class, cuts: Cuts) -> Result<Count> {
        self.dead_of(&[class], cuts)
    }

    /// The items of all classes that are dead at `now`.
    pub(crate) fn dead_at(&self, policy: Policy, now: Timestamp) -> Result<Count> {
        self.dead_of(&Class::MORTAL, policy.cuts(now))
    }

    /// What is alive and what is dead at `now`.
    pub(crate) fn standing(&self, policy: Policy, now: Timestamp) -> Result<Standing> {
        let all = self.whole()?;
        let dead = self.dead_at(policy, now)?;
        Ok(Standing { live: all.minus(dead), dead })
    }

    /// The items of a class that are alive at these cuts.
    pub(crate) fn alive(&self, class: Class, cuts: Cuts) -> Result<Count> {
        Ok(self.all(class)?.minus(self.dead(class, cuts)?))
    }

    /// The first second of a class that is counted, and its last, of what is
    /// alive at these cuts.
    pub(crate) fn ends(&self, class: Class, cuts: Cuts) -> Result<Option<(Timestamp, Timestamp)>> {
        let after = class.cut(cuts).map_or(0, |cut| cut.0 + 1);
        Ok(match (self.first(class, after)?, self.last(class)?) {
            (Some(first), Some(last)) => Some((first, last)),
            _ => None,
        })
    }

    /// The first second of a class that is counted, dead or alive.
    pub(crate) fn oldest(&self, class: Class) -> Result<Option<Timestamp>> {
        self.first(class, 0)
    }

    /// The items of some classes that are dead at these cuts.
    ///
    /// All classes go down together, so that what is read of a level is read at once. Below
    /// a cell that is empty nothing is stored: there a class ends.
    fn dead_of(&self, classes: &[Class], cuts: Cuts) -> Result<Count> {
        let mut sum = Count::default();
        let mut ends = Vec::with_capacity(classes.len());
        for class in classes {
            match class.cut(cuts).map(|last| (last.0 + 1).min(END)) {
                Some(END) => sum = sum.plus(self.all(*class)?),
                Some(end) => ends.push((*class, end)),
                None => {}
            }
        }
        for level in (0..LEVELS).rev() {
            let places = ends.iter().map(|(class, end)| PagePlace::with(*class, *end, level));
            self.read(places)?;
            let mut below = Vec::with_capacity(ends.len());
            for (class, end) in ends {
                let cell = usize::from(cell_of(end, level));
                let (before, edge) = self.page(PagePlace::with(class, end, level), |page| {
                    (page.before(cell), page.cell(cell))
                })?;
                sum = sum.plus(before);
                if !edge.is_empty() {
                    below.push((class, end));
                }
            }
            ends = below;
        }
        Ok(sum)
    }

    /// The first second from `start` on that is counted.
    pub(crate) fn first(&self, class: Class, start: u64) -> Result<Option<Timestamp>> {
        self.first_in(class, LEVELS - 1, 0, start)
    }

    fn first_in(
        &self,
        class: Class,
        level: u8,
        page: u64,
        start: u64,
    ) -> Result<Option<Timestamp>> {
        let width = 1 << (CELL_BITS * u32::from(level));
        let used = self.page(PagePlace { class, level, number: page }, used)?;
        for cell in (0..CELLS as u64).filter(|cell| used >> cell & 1 == 1) {
            let from = (page * CELLS as u64 + cell) * width;
            if from + width <= start {
                continue;
            }
            if level == 0 {
                return Ok(Some(Timestamp(from)));
            }
            // Only a cell that `start` cuts can turn out to have nothing.
            if let Some(second) =
                self.first_in(class, level - 1, page * CELLS as u64 + cell, start)?
            {
                return Ok(Some(second));
            }
        }
        Ok(None)
    }

    /// The last second that is counted.
    fn last(&self, class: Class) -> Result<Option<Timestamp>> {
        let mut page = 0;
        for level in (0..LEVELS).rev() {
            let used = self.page(PagePlace { class, level, number: page }, used)?;
            if used == 0 {
                return Ok(None);
            }
            page = page * CELLS as u64 + u64::from(used.ilog2());
        }
        Ok(Some(Timestamp(page)))
    }

    /// Looks at a page.
    fn page<T>(&self, place: PagePlace, look: impl FnOnce(&Tally) -> T) -> Result<T> {
        self.read([place].into_iter())?;
        let pages = self.pages.borrow();
        let known = pages.get(place.class as usize);
        let known = known.and_then(|levels| levels.get(usize::from(place.level)));
        Ok(match known {
            Some(Some((_, tally))) => look(tally),
            _ => look(&Tally::default()),
        })
    }

    /// Reads those of these pages at once that are not known. No two are of one class and
    /// level.
    fn read(&self, places: impl Iterator<Item = PagePlace>) -> Result<()> {
        let unknown: Vec<PagePlace> = places.filter(|place| !self.knows(*place)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let key = |place: &PagePlace| keys::lives(place.class.tag(), place.level, place.number);
        let keys: Vec<Vec<u8>> = unknown.iter().map(key).collect();
        let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let rows = (self.get_many)(&asked)?;
        let mut pages = self.pages.borrow_mut();
        for (PagePlace { class, level, number }, row) in unknown.into_iter().zip(rows) {
            let mut tally = row.map(|row| Tally::decode(&row)).transpose()?.unwrap_or_default();
            for ((of, second), count) in &self.hidden.0 {
                if *of == class && page_of(*second, level) == number {
                    tally.add(cell_of(*second, level), Change::Less(*count));
                }
            }
            let known = pages.get_mut(class as usize);
            if let Some(known) = known.and_then(|levels| levels.get_mut(usize::from(level))) {
                *known = Some((number, Box::new(tally)));
            }
        }
        Ok(())
    }

    fn knows(&self, place: PagePlace) -> bool {
        let pages = self.pages.borrow();
        let known = pages.get(place.class as usize);
        let known = known.and_then(|levels| levels.get(usize::from(place.level)));
        known.is_some_and(|known| matches!(known, Some((number, _)) if *number == place.number))
    }
}

/// The cells that count something, a bit each.
fn used(page: &Tally) -> u64 {
    let cells = (0..).zip(page.cells());
    cells.filter(|(_, cell)| !cell.is_empty()).fold(0, |used, (place, _)| used | 1 << place)
}

/// The level from which on a recount counts for itself: below it there may be as
/// many pages as there are items.
const RECOUNT_LEVEL: u8 = 2;

/// Counts the items of a bucket anew.
#[derive(Default)]
pub(crate) struct Recounted {
    pages: HashMap<Vec<u8>, Tally>,
    /// How many more cells there are with something in them than pages below
    /// them, on each level that is not counted anew.
    missing: [i64; RECOUNT_LEVEL as usize],
}

impl Recounted {
    /// Counts a version with this life stamp and `_ts`.
    pub(crate) fn add(&mut self, life: Life, ts: Timestamp, bytes: u64) {
        let second = second_of(life, ts);
        for level in RECOUNT_LEVEL..LEVELS {
            let key = keys::lives(Class::of(life).tag(), level, page_of(second, level));
            let more = Change::More(Count { items: 1, bytes });
            self.pages.entry(key).or_default().add(cell_of(second, level), more);
        }
    }

    /// Whether a row of the histogram is right: a page that was recounted has the
    /// same counts, and one below adds up to its cell in the page above.
    pub(crate) fn fits(
        &mut self,
        key: &[u8],
        row: &[u8],
        get: &dyn Fn(&[u8]) -> Result<Option<Bytes>>,
    ) -> Result<bool> {
        let stored = Tally::decode(row)?;
        let Some((class, level, page)) = keys::lives_parts(key) else { return Ok(false) };
        if let Some(missing) = self.missing.get_mut(usize::from(level)) {
            *missing -= 1;
        }
        let below = usize::from(level).checked_sub(1).and_then(|below| self.missing.get_mut(below));
        if let Some(missing) = below {
            *missing += i64::from(used(&stored).count_ones());
        }
        if level >= RECOUNT_LEVEL {
            return Ok(self.pages.remove(key).is_some_and(|counted| counted == stored));
        }
        let above = get(&keys::lives(class, level + 1, page >> CELL_BITS))?;
        let above = above.map(|row| Tally::decode(&row)).transpose()?.unwrap_or_default();
        let cell = usize::from(cell_of(page, 0));
        Ok(above.cell(cell) == stored.before(CELLS))
    }

    /// Whether the histogram has all that was counted.
    pub(crate) fn is_whole(&self) -> bool {
        self.pages.is_empty() && self.missing.iter().all(|missing| *missing == 0)
    }
}
