//! What a run of a query may cost: work and new values for one item, what is kept
//! in memory until the end, and steps of work in all.
//!
//! A query is on a leash. It counts its steps, and every so many of them asks
//! whether it may go on: somebody may have called it back, or it has gone too far.
//! Nothing here knows who holds the leash, or what time it is.

use std::cell::Cell;

use dayfly_model::{Error, Result};

use crate::functions::Setting;

/// How much work one item may make: rows of a cross product, elements that are
/// compared.
const WORK_PER_ITEM: u64 = 20_000_000;

/// How many bytes of values may be put together for one item: strings that are
/// joined, arrays and objects that are built.
const MADE_PER_ITEM: usize = 256 * 1024 * 1024;

/// How much a query may keep in memory, in bytes.
const KEPT_MAX: usize = 64 * 1024 * 1024;

/// How many steps a query makes between two looks at its leash.
pub const LOOK_EVERY: u64 = 1024;

/// How many bytes that are read, compared or written are one step.
const STEP_BYTES: usize = 64;

/// Who lets a query go on.
pub trait Leash {
    /// Whether the query may go on after so many steps in all, or why not.
    fn go_on(&self, steps: u64) -> Result<()>;

    /// Whether somebody waits who would rather have what there is.
    fn is_hurried(&self) -> bool {
        false
    }
}

/// A leash without an end, for what is small by itself.
pub struct Free;

impl Leash for Free {
    fn go_on(&self, _: u64) -> Result<()> {
        Ok(())
    }
}

/// The steps that a query has made, in its expressions and on the way to its items.
/// A step is about what it takes to bind a variable to an element of an array.
pub struct Steps<'l> {
    leash: &'l dyn Leash,
    made: Cell<u64>,
    next_look: Cell<u64>,
}

impl<'l> Steps<'l> {
    /// No step yet.
    pub fn new(leash: &'l dyn Leash) -> Steps<'l> {
        Steps { leash, made: Cell::new(0), next_look: Cell::new(LOOK_EVERY) }
    }

    /// Makes some steps, unless the leash is at its end.
    pub fn make(&self, count: u64) -> Result<()> {
        let made = self.made.get().saturating_add(count);
        self.made.set(made);
        if made < self.next_look.get() { Ok(()) } else { self.look(made) }
    }

    #[cold]
    fn look(&self, made: u64) -> Result<()> {
        self.leash.go_on(made)?;
        self.next_look.set(made.saturating_add(LOOK_EVERY));
        Ok(())
    }

    /// Whether a page that can end anywhere had better end here.
    pub fn is_hurried(&self) -> bool {
        self.leash.is_hurried()
    }

    /// How many were made.
    pub fn made(&self) -> u64 {
        self.made.get()
    }
}

/// What holds for a whole run.
pub(super) struct Run<'r> {
    pub(super) setting: Setting,
    pub(super) steps: &'r Steps<'r>,
    /// Work that is left for this item.
    work: Cell<u64>,
    /// Bytes that were put together for this item.
    made: Cell<usize>,
    kept: Cell<usize>,
    random: Cell<u64>,
}

impl<'r> Run<'r> {
    pub(super) fn new(setting: Setting, seed: u64, steps: &'r Steps<'r>) -> Run<'r> {
        Run {
            setting,
            steps,
            work: Cell::new(WORK_PER_ITEM),
            made: Cell::new(0),
            kept: Cell::new(0),
            random: Cell::new(seed | 1),
        }
    }

    /// The next item starts.
    pub(super) fn next_item(&self) {
        self.work.set(WORK_PER_ITEM);
        self.made.set(0);
    }

    /// Accounts for some work of this item.
    pub(super) fn work(&self, amount: usize) -> Result<()> {
        self.steps.make(amount as u64)?;
        match self.work.get().checked_sub(amount as u64) {
            Some(left) => {
                self.work.set(left);
                Ok(())
            }
            None => Err(refused(
                "The query makes too many combinations of one item. Filter before you join, or \
                 join fewer arrays.",
            )),
        }
    }

    /// Accounts for a step that is no work of its own: a part of an expression.
    pub(super) fn step(&self) -> Result<()> {
        self.steps.make(1)
    }

    /// Accounts for bytes that are gone over.
    pub(super) fn pass(&self, bytes: usize) -> Result<()> {
        self.steps.make((bytes / STEP_BYTES) as u64)
    }

    /// Accounts for bytes that are put together.
    pub(super) fn make(&self, bytes: usize) -> Result<()> {
        self.pass(bytes)?;
        let made = self.made.get().saturating_add(bytes);
        self.made.set(made);
        if made <= MADE_PER_ITEM { Ok(()) } else { Err(too_large()) }
    }

    /// Accounts for bytes that are kept until the end.
    pub(super) fn keep(&self, bytes: usize) -> Result<()> {
        let kept = self.kept.get() + bytes;
        self.kept.set(kept);
        if kept <= KEPT_MAX {
            return Ok(());
        }
        Err(refused(
            "The query needs too much memory for its groups, distinct values or sorted rows. \
             Narrow its filter, or let an index give the order.",
        ))
    }

    /// How many bytes are kept.
    pub(super) fn kept(&self) -> usize {
        self.kept.get()
    }

    /// What is kept no longer.
    pub(super) fn drop_kept(&self, bytes: usize) {
        self.kept.set(self.kept.get().saturating_sub(bytes));
    }

    /// A number from 0 up to 1.
    pub(super) fn random(&self) -> f64 {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        #[expect(clippy::cast_precision_loss, reason = "53 bits are a double's")]
        let fraction = (state >> 11) as f64 / (1u64 << 53) as f64;
        fraction
    }
}

/// How a query is refused that the service's compiler would take.
pub(super) fn refused(sentence: &str) -> Error {
    let body = serde_json::json!({ "Errors": [sentence] });
    Error::bad_request(format!("Message: {body}"))
}

pub(super) fn too_large() -> Error {
    refused(
        "The query makes too large a value of one item. Join fewer strings, or put less into its \
         arrays and objects.",
    )
}
