//! What the official Rust SDK does, tried against the real binary.
//!
//! The SDK has no call that lists items, and puts no groups and aggregates of
//! several ranges together; the other suites do that.

mod batches;
mod change_feed;
mod items;
mod partition_keys;
mod queries;
mod query_pages;
mod resources;
mod sample;
mod throughput;
mod ttl;
