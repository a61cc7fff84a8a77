//! What the words of dayfly mean: names, items, partition keys, time to live,
//! time itself, and the table of errors.
//!
//! Everything here is pure: the same input gives the same answer, and the time
//! comes in as a value. No clocks, files, sockets or HTTP.

pub mod charge;
pub mod container;
pub mod database;
pub mod encryption_key;
pub mod epk;
pub mod error;
pub mod id;
pub mod indexing;
pub mod json;
pub mod meter;
pub mod partition_key;
pub mod patch;
pub mod rid;
pub mod session;
pub mod system;
pub mod throughput;
pub mod time;
pub mod ttl;
pub mod value;

pub use error::{Error, ErrorKind, Result};
pub use time::Timestamp;
