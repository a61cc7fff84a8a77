//! Rows that are told apart: DISTINCT.
//!
//! **Without ORDER BY** rows come where they are first met, and items are met in their
//! order. A page ends with a row; the next one goes from the first item on once more, and
//! remembers what it meets up to there as given. It comes again only if what it stood for
//! is gone meanwhile, and another stands further on.
//!
//! **With ORDER BY**, rows that all fit in one page come in that order. Of more than that,
//! they come in an order of their own: by their sort values, and then by what they are.
//! Where a page ends is then a place in that order, which writes and expiry between two
//! pages do not move. A row that stands at several places, since what is sorted by is not
//! selected, counts for the first. Whether an earlier page has it is then known only when
//! all items were seen, so until then nothing is left out.

use std::collections::{BTreeMap, HashMap, HashSet};

use dayfly_model::Result;
use dayfly_model::value::order;
use sha2::{Digest, Sha256};

use super::aggregate::kept;
use super::evaluate::Scope;
use super::page::{Limits, Resume, SortedRow, rows_wanted};
use super::place::{After, SortPlace, may_follow};
use super::program::Program;

/// How many bytes of a row tell its place; of a longer one, how it starts and a hash
/// of all of it.
const MARK_MAX: usize = 256;
const MARK_START: usize = MARK_MAX - 32;

/// About how many bytes it costs to remember a row.
const GIVEN_BYTES: usize = 40;

/// What a row is, in few bytes: how the rows of earlier pages are remembered.
type RowMark = [u8; 16];

/// Distinct rows on their way.
pub(super) struct DistinctRows {
    /// Where the page before ended.
    after: Option<After>,
    /// Whether they come in an order of their own.
    paged: bool,
    /// The first place of each row, by what it is.
    places: HashMap<Vec<u8>, SortPlace>,
    rows: BTreeMap<SortPlace, DistinctRow>,
    /// How many bytes the page has with all of them.
    bytes: usize,
    /// Whether some were left out.
    cut: bool,
    /// What earlier pages have and may be met once more.
    given: HashSet<RowMark>,
}

struct DistinctRow {
    key: Vec<u8>,
    text: Vec<u8>,
}

impl DistinctRows {
    pub(super) fn new(after: Option<After>) -> DistinctRows {
        DistinctRows {
            paged: after.is_some(),
            after,
            places: HashMap::new(),
            rows: BTreeMap::new(),
            bytes: 0,
            cut: false,
            given: HashSet::new(),
        }
    }

    /// Adds a row that was met at a place. `false`: it has no room, and none that follows
    /// can have any.
    pub(super) fn add(
        &mut self,
        met: SortPlace,
        program: &Program,
        row: &Scope<'_>,
        resume: &Resume,
        limits: &Limits,
    ) -> Result<bool> {
        let value = program.select.projection.eval(row)?;
        if !value.is_defined() {
            return Ok(true);
        }
        let key = order::key(&value);
        row.run.pass(key.len())?;
        if program.order.is_empty() {
            return self.add_next(met, key, program, row, resume, limits);
        }
        self.add_sorted(met, key, program, row, resume, limits)?;
        Ok(true)
    }

    /// Adds a row where rows are met in their order.
    fn add_next(
        &mut self,
        place: SortPlace,
        key: Vec<u8>,
        program: &Program,
        row: &Scope<'_>,
        resume: &Resume,
        limits: &Limits,
    ) -> Result<bool> {
        if self.is_given(&key, &place, program, row)? || self.places.contains_key(&key) {
            return Ok(true);
        }
        let found = DistinctRow::new(key, program, row)?;
        let is_long = resume.skip == 0 && self.bytes + found.text.len() > limits.bytes;
        if self.rows.len() >= rows_wanted(resume, limits) || is_long && !self.rows.is_empty() {
            self.cut = true;
            return Ok(false);
        }
        self.insert(place, found, row)?;
        Ok(true)
    }

    fn add_sorted(
        &mut self,
        met: SortPlace,
        key: Vec<u8>,
        program: &Program,
        row: &Scope<'_>,
        resume: &Resume,
        limits: &Limits,
    ) -> Result<()> {
        let place = if self.paged { own_place(&met.0, &key) } else { met };
        if self.is_given(&key, &place, program, row)? {
            return Ok(());
        }
        if let Some(known) = self.places.get_mut(&key) {
            if place < *known
                && let Some(found) = self.rows.remove(known)
            {
                known.clone_from(&place);
                self.rows.insert(place, found);
            }
            return Ok(());
        }
        let full = self.paged && self.rows.len() >= self.wanted(program, resume, limits);
        if full && self.rows.last_key_value().is_none_or(|(last, _)| place > *last) {
            self.cut = true;
            return Ok(());
        }
        let found = DistinctRow::new(key, program, row)?;
        self.insert(place, found, row)?;
        let wanted = self.wanted(program, resume, limits);
        self.trim(wanted, row, resume, limits);
        Ok(())
    }

    fn insert(&mut self, place: SortPlace, found: DistinctRow, row: &Scope<'_>) -> Result<()> {
        row.run.keep(found.kept(&place))?;
        self.bytes += found.text.len() + 1;
        self.places.insert(found.key.clone(), place.clone());
        self.rows.insert(place, found);
        Ok(())
    }

    /// How many rows are kept.
    fn wanted(&self, program: &Program, resume: &Resume, limits: &Limits) -> usize {
        let may_lose = self.after.is_some() && !program.is_place_told();
        if may_lose { usize::MAX } else { rows_wanted(resume, limits) }
    }

    /// Whether a row is on an earlier page. What it is decides its place, unless it is
    /// sorted by something else, or by nothing: then it is remembered.
    fn is_given(
        &mut self,
        key: &[u8],
        place: &SortPlace,
        program: &Program,
        row: &Scope<'_>,
    ) -> Result<bool> {
        if self.given.is_empty() && may_follow(self.after.as_ref(), place) {
            return Ok(false);
        }
        let mark = row_mark(key);
        if may_follow(self.after.as_ref(), place) {
            return Ok(self.given.contains(&mark));
        }
        if !program.is_place_told() && self.given.insert(mark) {
            row.run.keep(GIVEN_BYTES)?;
            if let Some(place) = self.places.get(key).cloned() {
                self.remove(&place, row);
            }
        }
        Ok(true)
    }

    /// Leaves out what has no room on this page.
    fn trim(&mut self, wanted: usize, row: &Scope<'_>, resume: &Resume, limits: &Limits) {
        let in_one_page =
            resume.take.is_some_and(|take| take <= limits.rows as u64) || self.rows.len() <= wanted;
        if !self.paged && in_one_page && self.bytes <= limits.bytes {
            return;
        }
        self.turn();
        while let Some((last, found)) = self.rows.last_key_value() {
            let filled = wanted < usize::MAX
                && resume.skip == 0
                && self.bytes - found.text.len() - 1 > limits.bytes;
            if self.rows.len() <= wanted && !filled {
                return;
            }
            self.cut = true;
            let last = last.clone();
            self.remove(&last, row);
        }
    }

    /// Puts the rows in their own order.
    fn turn(&mut self) {
        if self.paged {
            return;
        }
        self.paged = true;
        for (met, row) in std::mem::take(&mut self.rows) {
            let place = own_place(&met.0, &row.key);
            self.places.insert(row.key.clone(), place.clone());
            self.rows.insert(place, row);
        }
    }

    fn remove(&mut self, place: &SortPlace, row: &Scope<'_>) {
        let Some(found) = self.rows.remove(place) else { return };
        row.run.drop_kept(found.kept(place));
        self.bytes -= found.text.len() + 1;
        self.places.remove(&found.key);
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    /// The rows in their order, and whether some were left out. None is of one item alone.
    pub(super) fn finish(self) -> (BTreeMap<SortPlace, SortedRow>, bool) {
        let rows = self.rows.into_iter().map(|(place, row)| (place, (row.text, 0)));
        (rows.collect(), self.cut)
    }
}

impl DistinctRow {
    fn new(key: Vec<u8>, program: &Program, row: &Scope<'_>) -> Result<DistinctRow> {
        let mut text = Vec::new();
        program.select.projection.write(row, &mut text)?;
        row.run.pass(text.len())?;
        Ok(DistinctRow { key, text })
    }

    /// How many bytes are kept for it, about.
    fn kept(&self, place: &SortPlace) -> usize {
        2 * kept(&self.key) + kept(&self.text) + 2 * place.0.len()
    }
}

fn row_mark(key: &[u8]) -> RowMark {
    let mut mark = RowMark::default();
    mark.iter_mut().zip(Sha256::digest(key)).for_each(|(to, from)| *to = from);
    mark
}

/// The place of a row in the order of its own.
fn own_place(sort_values: &[u8], key: &[u8]) -> SortPlace {
    let mut place = sort_values.to_vec();
    if key.len() <= MARK_MAX {
        place.extend_from_slice(key);
    } else {
        place.extend_from_slice(key.get(..MARK_START).unwrap_or(key));
        place.extend_from_slice(&Sha256::digest(key));
    }
    (place, (0, 0), 0)
}
