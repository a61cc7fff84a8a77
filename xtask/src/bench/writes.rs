//! `writes`: what writes save that are not one whole item each.
//!
//! ```text
//! batch.rs       batches of 100 creates, against single creates
//! patch.rs       a patch of one property, against a replace of the whole item
//! partition.rs   the delete of a large partition, against that of a small one
//! ```
//!
//! All of them durable, on fresh folders. Both sides take turns; the medians are
//! compared.

mod batch;
mod partition;
mod patch;

use super::Bench;
use super::item::{ITEM_BYTES, Items, PARTITIONS, end_with_body, items_path};
use super::report::Report;
use crate::Result;
use crate::wire::Signer;

/// How many items the large partition has. All else that is written is a part of it,
/// so that fewer are quick to try.
const ITEMS: u64 = 100_000;

/// How many items a batch has.
const BATCH: u64 = 100;

pub(super) fn run(bench: &Bench, items: u64) -> Result<Report> {
    let items = items.min(ITEMS) / BATCH * BATCH;
    let mut report = Report::new("writes");
    batch::run(bench, items, &mut report)?;
    patch::run(bench, items, &mut report)?;
    partition::run(bench, items, &mut report)?;
    Ok(report)
}

/// Makes requests that create many items of a partition at once.
struct Batches {
    head: String,
    items: Items,
    json: String,
    body: String,
}

impl Batches {
    fn new(signer: &Signer) -> Batches {
        let head = signer.head("POST", &items_path())
            + "x-ms-cosmos-is-batch-request: true\r\nx-ms-cosmos-batch-atomic: true\r\n";
        Batches { head, items: Items::new(), json: String::new(), body: String::new() }
    }

    /// Puts the request for `count` items of a partition into `request`, from its
    /// `first` on.
    fn request(&mut self, partition: u64, first: u64, count: u64, request: &mut Vec<u8>) {
        self.body.clear();
        for place in first..first + count {
            self.body.push(if place == first { '[' } else { ',' });
            let number = number(partition, place);
            self.items.put_json(number, 0, ITEM_BYTES, &mut self.json);
            self.body.push_str("{\"operationType\":\"Create\",\"resourceBody\":");
            self.body.push_str(&self.json);
            self.body.push('}');
        }
        self.body.push(']');
        end_with_body(&self.head, partition, &self.body, request);
    }
}

/// The number of the item at a place of a partition.
fn number(partition: u64, place: u64) -> u64 {
    place * PARTITIONS + partition
}
