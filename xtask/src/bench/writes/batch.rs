//! Batches of 100 creates on one connection, against single creates on one.

use super::{BATCH, Batches};
use crate::Result;
use crate::bench::create::prepare;
use crate::bench::item::{Creates, ITEM_BYTES, Items, PARTITIONS};
use crate::bench::load::{self, Until};
use crate::bench::report::{Bar, Report};
use crate::bench::{Bench, median};
use crate::server::Server;
use crate::wire::Signer;

const ROUNDS: u32 = 7;

/// How many items single creates and batches make in a round: one for so many of
/// the large partition.
const SINGLE_PART: u64 = 20;
const BATCHED_PART: u64 = 2;

/// At least so many times the items of single creates.
const BAR: f64 = 8.0;

pub(super) fn run(bench: &Bench, items: u64, report: &mut Report) -> Result<()> {
    let server = Server::start(&bench.program, &bench.folder.path().join("batches"))?;
    prepare(&server)?;
    let (mut alone, mut batches) = (Singles { next: 1 << 32 }, Batched { next: 0 });
    let (mut ones, mut many) = (vec![], vec![]);
    for round in 0..=ROUNDS {
        let single = alone.write(&server, items / SINGLE_PART)?;
        let together = batches.write(&server, items / BATCHED_PART / BATCH)?;
        println!(
            "writes, round {round}: {single:.0} items/s one by one, {together:.0} in batches of \
             {BATCH}"
        );
        // In the first one the server takes the memory that it writes in from the system.
        if round > 0 {
            ones.push(single);
            many.push(together);
        }
    }
    server.stop()?;
    let ratio = median(many.iter().zip(&ones).map(|(many, one)| many / one).collect());
    report.note("creates on one connection", format!("{:.0} items/s", median(ones)));
    report.note(format!("the same in batches of {BATCH}"), format!("{:.0} items/s", median(many)));
    report.judge("batches: ratio", ratio, "", Bar::AtLeast(BAR));
    Ok(())
}

/// Items one by one, with numbers that no batch reaches.
struct Singles {
    next: u64,
}

impl Singles {
    /// How many items a second, one after the other.
    fn write(&mut self, server: &Server, count: u64) -> Result<f64> {
        let creates = Creates::new(&Signer::new()?);
        let items = Items::new();
        let (mut number, mut json) = (self.next, String::new());
        self.next += count;
        let done = load::run(server.address, 1, Until::Sent(count), move |buffer| {
            items.put_json(number, 0, ITEM_BYTES, &mut json);
            creates.request(number, &json, buffer);
            number += 1;
        })?;
        Ok(done.per_second())
    }
}

/// Items in batches.
struct Batched {
    next: u64,
}

impl Batched {
    /// How many items a second, one batch after the other, each of another partition.
    fn write(&mut self, server: &Server, count: u64) -> Result<f64> {
        let mut batches = Batches::new(&Signer::new()?);
        let mut batch = self.next;
        self.next += count;
        let done = load::run(server.address, 1, Until::Sent(count), move |buffer| {
            batches.request(batch % PARTITIONS, batch / PARTITIONS * BATCH, BATCH, buffer);
            batch += 1;
        })?;
        Ok(done.per_second() * BATCH as f64)
    }
}
