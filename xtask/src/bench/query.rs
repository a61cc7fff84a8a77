//! `query`: what a query costs, against the items it needs.
//!
//! ```text
//! shapes.rs   what goes by the index, against point reads and other sizes
//! scan.rs     a look at every item, against a bare loop over fjall
//! memory.rs   a whole container as an answer, page by page over HTTP
//! purged.rs   the first of what is left, behind much that was purged
//! ```
//!
//! Three containers with the same kind of items, all compacted: a thousand, a
//! tenth of the largest, and the largest. CPU is measured inside the engine, on
//! both sides alike: point reads and queries are asked of it here in this
//! process, without HTTP. Only the memory is that of a server.

pub(super) mod data;
mod memory;
mod purged;
mod scan;
mod shapes;
pub(super) mod side;

use self::side::Side;
use super::Bench;
use super::report::Report;
use crate::Result;

/// How many items the largest container has, usually and at least.
pub(super) const ITEMS: u64 = 1_000_000;
pub(super) const ITEMS_MIN: u64 = 100_000;

const SMALLEST: u64 = 1000;

pub(super) fn run(bench: &Bench, items: u64) -> Result<Report> {
    let mut report = Report::new("query");
    let sides =
        [Side::new(bench, SMALLEST)?, Side::new(bench, items / 10)?, Side::new(bench, items)?];
    shapes::hits(&sides, &mut report)?;
    shapes::flat(&sides, &mut report)?;
    let [_, _, large] = &sides;
    shapes::cold_hits(large, &mut report)?;
    let [small, tenth, large] = sides;
    small.close()?;
    let (few, tenth) = tenth.close()?;
    let (many, folder) = scan::run(large, &mut report)?.close()?;
    memory::run(bench, [(&tenth, few.count), (&folder, many.count)], &mut report)?;
    purged::run(many, folder, &mut report)?;
    Ok(report)
}

/// A number of items, for reading.
pub(super) fn words(count: u64) -> String {
    match count {
        _ if count.is_multiple_of(1_000_000) => format!("{} million", count / 1_000_000),
        _ if count.is_multiple_of(1000) => format!("{} thousand", count / 1000),
        _ => count.to_string(),
    }
}
