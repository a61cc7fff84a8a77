//! Rows that are told apart: DISTINCT.
//!
//! Rows that all fit in one page come in the order in which they were met, or in
//! that of ORDER BY. Of more than that, the next page would have to know all that were
//! given before. So they come in an order of their own: by their sort values, and then
//! by what they are. Where a page ends is then a place in that order, which writes and
//! expiry between two pages do not move.
//!
//! A row that stands at several places, since what is sorted by is not selected,
//! counts for the first. Whether an earlier page has it is then known only when all
//! items were seen, so until then nothing is left out. It comes again only if what it
//! stood for is gone meanwhile, and another stands further on.

use std::collections::{BTreeMap, HashMap, HashSet};

use dayfly_model::Result;
use dayfly_model::value::order;
use sha2::{Digest, Sha256};

use super::aggregate::kept;
use super::evaluate::Scope;
use super::page::{Limits, Resume, rows_wanted};
use super::place::{After, SortPlace, may_follow};
use super::program::Program;

/// How many bytes of a row tell its place; of a longer one, how it starts and a hash
/// of all of it.
const MARK_MAX: usize = 256;
const MARK_START: usize = MARK_MAX - 32;

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
    given: HashSet<Vec<u8>>,
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

    /// Adds a row that was met at a place.
    pub(super) fn add(
        &mut self,
        met: SortPlace,
        program: &Program,
        row: &Scope<'_>,
        resume: &Resume,
        limits: &Limits,
    ) -> Result<()> {
        let value = program.select.projection.eval(row)?;
        if !value.is_defined() {
            return Ok(());
        }
        let key = order::key(&value);
        row.run.pass(key.len())?;
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
        let mut text = Vec::new();
        program.select.projection.write(row, &mut text)?;
        row.run.pass(text.len())?;
        let found = DistinctRow { key, text };
        row.run.keep(found.kept(&place))?;
        self.bytes += found.text.len() + 1;
        self.places.insert(found.key.clone(), place.clone());
        self.rows.insert(place, found);
        let wanted = self.wanted(program, resume, limits);
        self.trim(wanted, row, resume, limits);
        Ok(())
    }

    /// How many rows are kept.
    fn wanted(&self, program: &Program, resume: &Resume, limits: &Limits) -> usize {
        let may_lose = self.after.is_some() && !program.order_is_selected;
        if may_lose { usize::MAX } else { rows_wanted(resume, limits) }
    }

    /// Whether a row is on an earlier page. What it is decides its place, unless it is
    /// sorted by something else: then it is remembered.
    fn is_given(
        &mut self,
        key: &[u8],
        place: &SortPlace,
        program: &Program,
        row: &Scope<'_>,
    ) -> Result<bool> {
        if may_follow(self.after.as_ref(), place) {
            return Ok(self.given.contains(key));
        }
        if !program.order_is_selected && !self.given.contains(key) {
            row.run.keep(kept(key))?;
            self.given.insert(key.to_vec());
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

    /// The rows in their order, and whether some were left out.
    pub(super) fn finish(self) -> (BTreeMap<SortPlace, Vec<u8>>, bool) {
        let rows = self.rows.into_iter().map(|(place, row)| (place, row.text));
        (rows.collect(), self.cut)
    }
}

impl DistinctRow {
    /// How many bytes are kept for it, about.
    fn kept(&self, place: &SortPlace) -> usize {
        2 * kept(&self.key) + kept(&self.text) + 2 * place.0.len()
    }
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
