//! The delete of all items of a partition: what is waited for is the answer, after
//! which they are gone for everybody. The purge is paused meanwhile, and removes them
//! before the next delete: who deletes is not to pay for what others have deleted.

use std::ops::Range;
use std::time::Instant;

use super::{BATCH, Batches, number};
use crate::bench::create::prepare;
use crate::bench::item::{CONTAINER, DATABASE, id, items_path, partition_key};
use crate::bench::load::{self, Until};
use crate::bench::query::words;
use crate::bench::report::{Bar, Report};
use crate::bench::{Bench, median};
use crate::server::Server;
use crate::wire::{self, Client, Signer};
use crate::{Result, failed};

/// How many large partitions there are; they come first.
const LARGE: u64 = 5;

/// How many small ones are deleted before each large one, and their items.
const SMALL: u64 = 40;
const SMALL_ITEMS: u64 = 10;

const CONNECTIONS: usize = 8;

/// At most so many times later.
const BAR: f64 = 1.5;

pub(super) fn run(bench: &Bench, items: u64, report: &mut Report) -> Result<()> {
    let server = Server::start(&bench.program, &bench.folder.path().join("partitions"))?;
    prepare(&server)?;
    server.connect()?.admin("POST", "purge/pause", "{}")?;
    fill(&server, 0..LARGE, items, BATCH)?;
    fill(&server, LARGE..LARGE + LARGE * SMALL, SMALL_ITEMS, SMALL_ITEMS)?;
    let mut client = server.connect()?;
    let (mut smalls, mut larges) = (vec![], vec![]);
    for large in 0..LARGE {
        for small in 0..SMALL {
            smalls.push(delete_ms(&mut client, LARGE + large * SMALL + small, SMALL_ITEMS)?);
        }
        let ms = delete_ms(&mut client, large, items)?;
        println!("writes: {ms:.2} ms for the delete of a partition of {}", words(items));
        larges.push(ms);
    }
    let (small, large) = (median(smalls), median(larges));
    report.note(format!("delete of a partition of {SMALL_ITEMS} items"), format!("{small:.2} ms"));
    report.note(format!("the same, {} items", words(items)), format!("{large:.2} ms"));
    report.judge("delete: ratio", large / small, "", Bar::AtMost(BAR));
    Ok(())
}

/// Puts `items` items into each partition, in batches.
fn fill(server: &Server, mut partitions: Range<u64>, items: u64, batch: u64) -> Result<()> {
    let mut batches = Batches::new(&Signer::new()?);
    let in_each = items / batch;
    let all = (partitions.end - partitions.start) * in_each;
    let mut done = 0;
    load::run(server.address, CONNECTIONS, Until::Sent(all), move |buffer| {
        batches.request(partitions.start, done * batch, batch, buffer);
        done += 1;
        if done == in_each {
            (partitions.start, done) = (partitions.start + 1, 0);
        }
    })?;
    Ok(())
}

/// Deletes all items of a partition, and lets them be removed. Returns how long the
/// answer took.
fn delete_ms(client: &mut Client, partition: u64, items: u64) -> Result<f64> {
    let key = [wire::partition(&partition_key(partition))];
    let path = format!("/dbs/{DATABASE}/colls/{CONTAINER}/operations/partitionkeydelete");
    let last = format!("{}/{}", items_path(), id(number(partition, items - 1)));
    client.must("GET", &last, &key, "")?;
    let started = Instant::now();
    client.must("POST", &path, &key, "")?;
    let took = started.elapsed();
    let after = client.ask("GET", &last, &key, "").map_err(failed("asking the server"))?;
    if after.status != 404 {
        return Err(format!("deleted, but {}", after.told()));
    }
    client.admin_patiently("POST", "purge/run", "{}")?;
    Ok(took.as_secs_f64() * 1e3)
}
