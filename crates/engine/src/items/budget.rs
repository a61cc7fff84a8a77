//! What the writes of one plan may cost, all of them together.
//!
//! A plan is drafted where others wait: on the thread of a connection, and at worst in the
//! committer. A hundred patches must not be a hundred times as long about it as one.

use std::cell::Cell;

use dayfly_model::{Error, ErrorKind, Result};
use dayfly_sql::run::{Leash, Steps};

use crate::operation::BatchMode;

/// How many steps the conditions of a plan may make. They are no queries, which have threads
/// of their own.
const CONDITION_STEPS_MAX: u64 = 1_000_000;

/// How many bytes of items the patches of a plan may go over: each reads its item, and makes
/// another and its entries of the index, which are held until the commit.
const PATCHED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What is left for the writes of a plan.
pub(super) struct WorkBudget {
    mode: BatchMode,
    steps: Steps<'static>,
    patched: Cell<usize>,
}

impl WorkBudget {
    pub(super) fn new(mode: BatchMode) -> WorkBudget {
        WorkBudget { mode, steps: Steps::new(&Short), patched: Cell::new(0) }
    }

    /// Lets a condition make its steps.
    pub(super) fn judge<T>(&self, condition: impl FnOnce(&Steps<'_>) -> Result<T>) -> Result<T> {
        let before = self.steps.made();
        let judged = if before > CONDITION_STEPS_MAX {
            Err(too_long("The conditions of the batch make too much work of its items."))
        } else {
            condition(&self.steps)
        };
        let is_own = self.steps.made() - before > CONDITION_STEPS_MAX;
        // What had too little left after others can be sent again.
        match judged {
            Err(_) if self.mode != BatchMode::Atomic && !is_own && self.is_spent() => {
                Err(sent_again("The conditions before this one made too much work."))
            }
            judged => judged,
        }
    }

    /// Whether no condition can be judged any more.
    fn is_spent(&self) -> bool {
        self.steps.made() > CONDITION_STEPS_MAX
    }

    /// Lets a patch go over an item of so many bytes.
    pub(super) fn patch(&self, bytes: usize) -> Result<()> {
        let patched = self.patched.get().saturating_add(bytes);
        self.patched.set(patched);
        if patched <= PATCHED_BYTES_MAX {
            return Ok(());
        }
        let why = "The patches of a batch can go over 16 MB of items.";
        match self.mode {
            BatchMode::Atomic => Err(Error::new(ErrorKind::TooLarge, why)),
            BatchMode::Stops | BatchMode::GoesOn => Err(sent_again(why)),
        }
    }
}

/// The refusal of an operation that may be carried out in another request.
fn sent_again(why: &str) -> Error {
    Error::new(ErrorKind::AnswerTooLarge, why)
}

fn too_long(why: &str) -> Error {
    Error::bad_request(why)
}

/// The leash of all conditions of a plan.
struct Short;

impl Leash for Short {
    fn go_on(&self, steps: u64) -> Result<()> {
        if steps <= CONDITION_STEPS_MAX {
            return Ok(());
        }
        Err(too_long("The condition of the patch makes too much work of the item."))
    }
}
