//! What a run of a query may cost: work and new values for one item, and what is
//! kept in memory until the end.

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

/// What holds for a whole run.
pub(super) struct Run {
    pub(super) setting: Setting,
    /// Work that is left for this item.
    work: Cell<u64>,
    /// Work that was done before this item.
    done: Cell<u64>,
    /// Bytes that were put together for this item.
    made: Cell<usize>,
    kept: Cell<usize>,
    random: Cell<u64>,
}

impl Run {
    pub(super) fn new(setting: Setting, seed: u64) -> Run {
        Run {
            setting,
            work: Cell::new(WORK_PER_ITEM),
            done: Cell::new(0),
            made: Cell::new(0),
            kept: Cell::new(0),
            random: Cell::new(seed | 1),
        }
    }

    /// The next item starts.
    pub(super) fn next_item(&self) {
        self.done.set(self.work_done());
        self.work.set(WORK_PER_ITEM);
        self.made.set(0);
    }

    /// How much was done so far.
    pub(super) fn work_done(&self) -> u64 {
        self.done.get() + (WORK_PER_ITEM - self.work.get())
    }

    /// Accounts for some work.
    pub(super) fn work(&self, amount: usize) -> Result<()> {
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

    /// Accounts for bytes that are put together.
    pub(super) fn make(&self, bytes: usize) -> Result<()> {
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
