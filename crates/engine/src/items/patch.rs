//! A patch, on its way to being a replace: the condition that it makes of the item, and
//! the body that comes of the item.
//!
//! What is wrong is told in this order: the patch itself and the query that its condition
//! is; that the item is not there; `If-Match`; the condition; an operation; the `id`, the
//! partition key and the `ttl` of what comes of it; its size; unique keys. The first is
//! found when the write is read, the others when it is decided.

use std::sync::atomic::{AtomicUsize, Ordering};

use dayfly_model::container::Geospatial;
use dayfly_model::patch::Patch;
use dayfly_model::value::Value;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_sql::run::{Item, Limits, Program, QueryPage, Steps};
use dayfly_sql::{Parameters, Request, SyntaxError};
use dayfly_storage::Second;

use super::Spot;
use super::act::Body;
use super::budget::WorkBudget;
use super::sight::Old;
use crate::catalog::Container;
use crate::condition;
use crate::operation::Indexing;
use crate::record;

/// A patch that was read.
pub(super) struct Patching {
    patch: Patch,
    condition: Option<Program>,
    indexing: Indexing,
    /// About how many bytes the last draft holds.
    drafted: AtomicUsize,
}

impl Patching {
    pub(super) fn read(
        container: &Container,
        patch: Patch,
        indexing: Indexing,
    ) -> Result<Patching> {
        let condition = patch.condition().map(|text| compiled(container, text)).transpose()?;
        Ok(Patching { patch, condition, indexing, drafted: AtomicUsize::new(0) })
    }

    /// How many operations it has.
    pub(super) fn operations(&self) -> usize {
        self.patch.operations()
    }

    /// About how many bytes it holds, with what was made of it last.
    pub(super) fn weight(&self) -> usize {
        self.patch.weight() + self.drafted.load(Ordering::Relaxed)
    }

    /// What is decided at `now` of an item holds before this second. A condition may ask for
    /// the time, and for the `_ts` of an item that the same commit made; what any other says
    /// of an item is true as long as that is there. So one that takes long to judge is not
    /// judged again only because a second is over.
    pub(super) fn valid_before(&self, old: &Old, now: Timestamp) -> Second {
        let knows_time = |condition: &Program| condition.may_know_time();
        let is_stamped = matches!(old, Old::Stored(_));
        match &self.condition {
            Some(condition) if knows_time(condition) || !is_stamped => now.0 + 1,
            _ => Second::MAX,
        }
    }

    /// Whether the item is as the condition wants it.
    pub(super) fn check(
        &self,
        container: &Container,
        old: &Old,
        now: Timestamp,
        budget: &WorkBudget,
    ) -> Result<()> {
        let Some(program) = &self.condition else { return Ok(()) };
        match budget.judge(|steps| rows(program, &Judged { container, old, now }, steps))? {
            0 => Err(condition::patch_condition_not_met()),
            _ => Ok(()),
        }
    }

    /// What comes of the item at `spot` that is `old`. It stays the one it is.
    pub(super) fn body(&self, container: &Container, spot: &Spot, old: &Old) -> Result<Body> {
        let text = self.patch.apply(old.text())?;
        // Another kind of refusal would make clients look for the container's definition.
        let body = Body::of(container, text, self.indexing)
            .map_err(|error| Error::bad_request(error.message))?;
        if !body.is_at(spot) {
            return Err(Error::bad_request(
                "A patch cannot change the id or the partition key of an item.",
            ));
        }
        Ok(body)
    }

    /// A draft holds this body.
    pub(super) fn note(&self, body: &Body) {
        self.drafted.store(body.weight(), Ordering::Relaxed);
    }
}

/// The error for an item that is not there.
pub(super) fn missing() -> Error {
    Error::new(
        ErrorKind::NotFound,
        "Resource Not Found. Entity with the specified id does not exist in the system. Learn \
         more: https://aka.ms/cosmosdb-tsg-not-found",
    )
}

/// The query that a condition is the rest of.
fn compiled(container: &Container, condition: &str) -> Result<Program> {
    let is_other = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
    let first = condition.trim_start().split(is_other).next().unwrap_or_default();
    if !first.eq_ignore_ascii_case("FROM") {
        return Err(Error::bad_request("The condition of a patch must begin with FROM."));
    }
    let text = format!("SELECT * {condition}");
    let query = dayfly_sql::parse(&text).map_err(SyntaxError::into_error)?;
    dayfly_sql::check(&query, &text).map_err(SyntaxError::into_error)?;
    let request = Request { query, parameters: Parameters::new(), boundary: None };
    Program::compile(&request, container.computed()?)
}

/// How many rows a condition makes of an item.
fn rows(condition: &Program, item: &Judged<'_>, steps: &Steps<'_>) -> Result<usize> {
    let flat = item.container.definition().geospatial == Geospatial::Geometry;
    let limits = Limits { rows: 1, bytes: usize::MAX };
    let mut page = QueryPage::new(condition, item.now, flat, limits, None, false, steps);
    if condition.reads_items() {
        page.add(item, (0, 0))?;
    } else {
        page.add_nothing()?;
    }
    Ok(page.finish()?.count)
}

/// The item of which a condition is asked.
struct Judged<'a> {
    container: &'a Container,
    old: &'a Old,
    now: Timestamp,
}

impl Item for Judged<'_> {
    fn text(&self) -> &[u8] {
        self.old.text()
    }

    /// An item that an earlier write of the same commit made has the `_ts` of the commit,
    /// which is now, or the draft does not hold; but no `_etag` yet, and no `_rid` if it is
    /// new: these are undefined.
    fn system(&self, name: &str) -> Value {
        let (ts, stored) = match self.old {
            Old::Stored(record) => (record.ts, Some(record)),
            Old::Made(_) => (self.now, None),
        };
        record::system(name, self.container, self.old.docno(), ts, stored)
    }

    fn number(&self) -> u64 {
        self.old.docno().unwrap_or_default()
    }

    /// Only whether there is a row counts, not what is in it.
    fn render(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{}");
    }
}
