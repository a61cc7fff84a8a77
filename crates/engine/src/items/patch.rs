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
use dayfly_sql::run::{Item, Leash, Limits, Page, Program, Steps};
use dayfly_sql::{Parameters, Request, SyntaxError};
use dayfly_storage::Second;

use super::Spot;
use super::act::Body;
use super::sight::Old;
use crate::catalog::Container;
use crate::condition;
use crate::operation::Indexing;
use crate::record;

/// How many steps a condition may make. It is no query: it has one item, and whoever sent
/// it has a thread that others wait for, too.
const CONDITION_STEPS_MAX: u64 = 1_000_000;

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

    /// What is decided at `now` holds before this second. A condition may ask for the time,
    /// and for the `_ts` of an item that the same commit made.
    pub(super) fn valid_before(&self, now: Timestamp) -> Second {
        if self.condition.is_some() { now.0 + 1 } else { Second::MAX }
    }

    /// Whether the item is as the condition wants it.
    pub(super) fn check(&self, container: &Container, old: &Old, now: Timestamp) -> Result<()> {
        let Some(program) = &self.condition else { return Ok(()) };
        let steps = Steps::new(&Short);
        let flat = container.definition().geospatial == Geospatial::Geometry;
        let limits = Limits { rows: 1, bytes: usize::MAX };
        let mut page = Page::new(program, now, flat, limits, None, false, &steps);
        if program.reads_items() {
            page.add(&Judged { container, old, now }, (0, 0))?;
        } else {
            page.add_nothing()?;
        }
        match page.finish()?.count {
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

/// The leash of a condition.
struct Short;

impl Leash for Short {
    fn go_on(&self, steps: u64) -> Result<()> {
        if steps <= CONDITION_STEPS_MAX {
            return Ok(());
        }
        Err(Error::bad_request("The condition of the patch makes too much work of the item."))
    }
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
