//! Direct mode, from outside: the real binary, and a client of our own that knows nothing
//! but the protocol.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "each test file uses its part of the common one")]

mod addresses;
mod captured;
#[path = "../common/direct/mod.rs"]
mod client;
#[path = "../common/mod.rs"]
mod common;
mod flight;
mod gone;
mod hostile;
mod items;
mod keys;
mod master;
mod queries;
mod slow;
