//! What the official Rust SDK does, tried against the real binary.
//!
//! The SDK has no call that lists items; the other suites do that.

mod items;
mod partition_keys;
mod resources;
mod ttl;
