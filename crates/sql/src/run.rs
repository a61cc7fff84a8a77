//! Carrying out a query over a stream of items.
//!
//! ```text
//! compile.rs     a tree and the values of its parameters -> program.rs
//! extract.rs     an item's text -> the values at the paths that the program reads
//! evaluate.rs    expressions over those values, with operators.rs
//! budget.rs      what a run may cost, and the leash it is on
//! rows.rs        FROM, JOIN and WHERE: an item -> its rows; subqueries
//! stage.rs       subqueries that need all items before their first row
//! aggregate.rs   COUNT, SUM and their like; groups
//! page.rs        rows -> one page of the answer
//! distinct.rs    the same for rows that are told apart
//! place.rs       where a page of a sorted answer ends
//! values.rs      computed properties by themselves
//! sieve.rs       what an index can say of the items that a query wants, and span.rs
//!                the same for people; uses.rs the rest of what it asks of indexes
//! ```
//!
//! Who calls it brings the items one by one, in an order of its own, and says
//! where a page may end. Nothing here knows where items are kept, which indexes
//! proposed them, or whether they are alive: an item that is brought counts.

mod aggregate;
mod budget;
mod compile;
mod computed;
mod distinct;
mod evaluate;
mod extract;
mod operators;
mod page;
mod place;
mod program;
mod rows;
mod sieve;
mod span;
mod stage;
mod uses;
mod values;

use dayfly_model::value::Value;

pub use self::budget::{Free, LOOK_EVERY, Leash, Steps};
pub use self::computed::Computed;
pub use self::page::{Added, Finished, Given, Held, Holds, Limits, QueryPage, Resume};
pub use self::place::{After, SortPlace};
pub use self::program::{OrderKey, Program, Style};
pub use self::sieve::{Fact, IndexStep, Sieve, ValueSpan};
pub use self::values::Values;

/// An item, as a query sees it.
pub trait Item {
    /// The JSON text of what the user wrote: an object. It was valid when it was stored.
    fn text(&self) -> &[u8];

    /// What the server adds: the value of one of
    /// [`SYSTEM_PROPERTIES`](dayfly_model::system::SYSTEM_PROPERTIES).
    fn system(&self, name: &str) -> Value;

    /// A number that no other item near it has.
    fn number(&self) -> u64;

    /// Appends the whole item as JSON.
    fn render(&self, out: &mut Vec<u8>);

    /// What it weighs for whoever counts what a page gave.
    fn weight(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests;
