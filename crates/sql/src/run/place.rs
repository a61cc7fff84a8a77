//! The place of a row in a sorted answer: where a page of it ends, and which rows
//! come after that.
//!
//! A place is told by the values that are sorted by, so it is good for rows that
//! are written later, too. Values that are too long to be told are known by how they
//! start, and by the last rows of the page.

use dayfly_model::value::{Value, order};
use dayfly_model::{Result, Timestamp};
use sha2::{Digest, Sha256};

use super::Item;
use super::budget::{Run, Steps, refused};
use super::evaluate::{Loaded, Scope};
use super::page::Resume;
use super::program::{OrderKey, Program, Style};
use crate::functions::Setting;
use crate::request::Boundary;

/// Where a page of a sorted answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// With this row.
    Row(SortPlace),
    /// With one whose sort values are too long to be told: how their bytes
    /// start, and the last rows of the page that start so, as hashes. The next
    /// page goes on after those of them that are still there.
    Start(Vec<u8>, Vec<u64>),
}

/// How many bytes of a row's sort values are told.
pub(super) const AFTER_MAX: usize = 512;

/// How many of the last rows are told.
const LAST_ROWS: usize = 8;

impl After {
    /// The end of a page whose last row is this one, and `before` the one before
    /// it.
    pub(super) fn next(before: Option<After>, place: SortPlace) -> After {
        if place.0.len() <= AFTER_MAX {
            return After::Row(place);
        }
        let start = place.0.get(..AFTER_MAX).unwrap_or_default().to_vec();
        let mut rows = match before {
            Some(After::Start(known, rows)) if known == start => rows,
            _ => Vec::new(),
        };
        if rows.len() == LAST_ROWS {
            rows.remove(0);
        }
        rows.push(hash(&place));
        After::Start(start, rows)
    }
}

/// A hash that is the same after a restart, and with the next version: it stands in tokens.
fn hash((values, (bucket, item), row): &SortPlace) -> u64 {
    let mut hasher = Sha256::new();
    for number in [*bucket, *item, *row] {
        hasher.update(number.to_be_bytes());
    }
    hasher.update(values);
    let digest = hasher.finalize();
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Holds back the rows of a sorted answer that earlier pages have.
#[derive(Default)]
pub(super) struct Gate {
    /// A row was met of which it cannot be told yet on which page it was.
    unsure: bool,
    /// One of the last rows was met.
    passed: bool,
}

impl Gate {
    /// Whether a row is for this page. Rows come in their order.
    pub(super) fn passes(&mut self, after: Option<&After>, place: &SortPlace) -> Result<bool> {
        let (start, rows) = match after {
            None => return Ok(true),
            Some(After::Row(last)) => return Ok(place > last),
            Some(After::Start(start, rows)) => (start, rows),
        };
        if !place.0.starts_with(start) {
            self.check()?;
            return Ok(place.0 > *start);
        }
        if rows.contains(&hash(place)) {
            self.passed = true;
            return Ok(false);
        }
        self.unsure |= !self.passed;
        Ok(self.passed)
    }

    /// Whether it is known where this page starts.
    pub(super) fn check(&self) -> Result<()> {
        if self.unsure && !self.passed {
            return Err(refused(
                "The last rows of the page before are gone, and others start with the same long \
                 values: where to go on is not known. Run the query again from its start.",
            ));
        }
        Ok(())
    }
}

/// The place of a row in a sorted answer: its sort values as bytes, its item,
/// and which of the item's rows it is.
pub type SortPlace = (Vec<u8>, (u64, u64), u64);

/// Whether a row may be one of the next page, as far as its place can tell.
pub(super) fn may_follow(after: Option<&After>, place: &SortPlace) -> bool {
    match after {
        None => true,
        Some(After::Row(last)) => place > last,
        Some(After::Start(start, _)) => place.0 >= *start,
    }
}

impl Program {
    /// How a page starts at a boundary of a sorted answer.
    pub fn start_at(&self, boundary: &Boundary) -> Result<Resume> {
        if self.style() != Style::Sort {
            return Err(refused(
                "Only a query with ORDER BY, and without DISTINCT, can start at a resumeFilter.",
            ));
        }
        if boundary.values.len() != self.order.len() {
            return Err(refused(
                "The resumeFilter must have one value for each sort key of the query.",
            ));
        }
        let mut key = Vec::new();
        for (member, value) in self.order.iter().zip(&boundary.values) {
            member.write(value, &mut key);
        }
        let (tie, row) =
            if boundary.exclude { ((u64::MAX, u64::MAX), u64::MAX) } else { ((0, 0), 0) };
        let after = Some(After::Row((key, tie, row)));
        Ok(Resume { skip: self.skip, take: self.take, rows_done: 0, after })
    }

    /// The sort values of an item, as bytes in their order, where they are the
    /// same for all its rows.
    pub fn sort_key(&self, item: &dyn Item, steps: &Steps<'_>) -> Result<Vec<u8>> {
        let run = Run::new(Setting { now: Timestamp(0), plane: false }, 0, steps);
        let loaded = Loaded::read(&self.fields, item, &run)?;
        sort_key(&self.order, &Scope { run: &run, item: Some(&loaded), bound: None, group: None })
    }

    /// Among equals the last comes first when the greatest does.
    pub(super) fn tie(&self, tie: (u64, u64)) -> (u64, u64) {
        let falls = self.order.first().is_some_and(OrderKey::descends);
        if falls { (tie.0, !tie.1) } else { tie }
    }
}

/// The sort values of a row, as bytes in their order.
pub(super) fn sort_key(order: &[OrderKey], row: &Scope<'_>) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    for member in order {
        member.write(&*member.code.eval(row)?, &mut key);
    }
    row.run.pass(key.len())?;
    Ok(key)
}

impl OrderKey {
    /// Appends the bytes of a value, in the direction of the key.
    fn write(&self, value: &Value, key: &mut Vec<u8>) {
        let start = key.len();
        order::write(value, key);
        if self.descends() {
            key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
        }
    }
}
