//! The query language.
//!
//! A query is read whole before anything is done with it:
//!
//! ```text
//! body of the request
//!   request.rs       text and parameters
//!   lex.rs           text -> tokens, each with its place
//!   parse.rs         clauses, and expression.rs expressions -> tree.rs
//!   names.rs         what its names mean, and everything that is wrong in it
//!   computed.rs      names that a container defines by queries of their own
//!   run.rs           carries it out over items, with functions.rs
//!   plan.rs          how a client that asks ranges by itself carries it out
//! ```
//!
//! What is wrong in a query is told as the service tells it: all of it, in its order
//! (`findings.rs`), with codes and places in the text (`error.rs`). A tree is written
//! as text again by `print.rs`.

mod error;
mod expression;
mod findings;
mod functions;
mod lex;
mod names;
mod parse;
pub mod plan;
mod print;
mod request;
pub mod run;
pub mod tree;
mod walk;

#[cfg(test)]
mod tests;

pub use error::SyntaxError;
pub use names::check;
pub use parse::{DEPTH_MAX, TEXT_MAX, parse};
pub use request::{Boundary, Parameters, Request};
pub use run::Computed;
