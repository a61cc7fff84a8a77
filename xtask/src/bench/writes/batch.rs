//! Batches of 100 creates on one connection, against single creates on one.

use super::{BATCH, Batches};
use crate::bench::create::prepare;
use crate::bench::item::{Creates, ITEM_BYTES, Items, PARTITIONS};
use crate::bench::load::{self, Until};
use crate::bench::report::{Bar, Report};
use crate::bench::{Bench, median};
use crate::server::Server;
use crate::wire::Signer;
use crate::{Result, failed};

const ROUNDS: u32 = 7;

/// How many items single creates and batches make in a round: one for so many of
/// the large partition.
const SINGLE_PART: u64 = 40;
const BATCHED_PART: u64 = 4;

/// At least so many times the items of single creates.
const BAR: f64 = 8.0;

pub(super) fn run(bench: &Bench, items: u64, report: &mut Report) -> Result<()> {
    let (mut ones, mut many) = (vec![], vec![]);
    for round in 1..=ROUNDS {
        let single = on_fresh(bench, |server| single(server, items / SINGLE_PART))?;
        let batched = on_fresh(bench, |server| batched(server, items / BATCHED_PART / BATCH))?;
        println!(
            "writes, round {round}: {single:.0} items/s one by one, {batched:.0} in batches of \
             {BATCH}"
        );
        ones.push(single);
        many.push(batched);
    }
    let (single, batched) = (median(ones), median(many));
    report.note("creates on one connection", format!("{single:.0} items/s"));
    report.note(format!("the same in batches of {BATCH}"), format!("{batched:.0} items/s"));
    report.judge("batches: ratio", batched / single, "", Bar::AtLeast(BAR));
    Ok(())
}

/// Writes to a server on a fresh folder.
fn on_fresh(bench: &Bench, write: impl FnOnce(&Server) -> Result<f64>) -> Result<f64> {
    let folder = tempfile::tempdir_in(bench.folder.path()).map_err(failed("a folder"))?;
    let server = Server::start(&bench.program, &folder.path().join("data"))?;
    prepare(&server)?;
    write(&server)
}

/// How many items a second, one after the other.
fn single(server: &Server, count: u64) -> Result<f64> {
    let creates = Creates::new(&Signer::new()?);
    let items = Items::new();
    let (mut number, mut json) = (0, String::new());
    let done = load::run(server.address, 1, Until::Sent(count), move |buffer| {
        items.put_json(number, 0, ITEM_BYTES, &mut json);
        creates.request(number, &json, buffer);
        number += 1;
    })?;
    Ok(done.per_second())
}

/// How many items a second, one batch after the other, each of another partition.
fn batched(server: &Server, count: u64) -> Result<f64> {
    let mut batches = Batches::new(&Signer::new()?);
    let mut batch = 0;
    let done = load::run(server.address, 1, Until::Sent(count), move |buffer| {
        batches.request(batch % PARTITIONS, batch / PARTITIONS * BATCH, BATCH, buffer);
        batch += 1;
    })?;
    Ok(done.per_second() * BATCH as f64)
}
