//! Durable creates on fresh folders, and then, in some rounds, the purge of what
//! they made.

use std::time::{Duration, Instant};

use super::side::Build;
use super::tell;
use crate::bench::create::{Mix, creates, prepare};
use crate::bench::item::{CONTAINER, DATABASE};
use crate::bench::query::words;
use crate::bench::report::{Bar, Report};
use crate::bench::ttl::with_default;
use crate::bench::{Bench, median};
use crate::server::Server;
use crate::{Result, failed};

const ROUNDS: u64 = 7;
const PURGE_ROUNDS: u64 = 3;

/// How many items are created in a round, if there are as many.
const ITEMS: u64 = 100_000;

/// At least this much of the rate before.
const BAR: f64 = 0.97;

/// Longer than the items live once they have a default of a second.
const EXPIRY: Duration = Duration::from_millis(2500);

/// What a build did, round by round.
#[derive(Default)]
struct Done {
    per_second: Vec<f64>,
    cpu_us: Vec<f64>,
    purged_per_second: Vec<f64>,
}

pub(super) fn run(
    bench: &Bench,
    builds: &[Build<'_>; 2],
    items: u64,
    report: &mut Report,
) -> Result<()> {
    let count = items.min(ITEMS);
    let mut done = [Done::default(), Done::default()];
    for round in 1..=ROUNDS {
        for (build, done) in builds.iter().zip(&mut done) {
            write(bench, build, count, round, done)?;
        }
    }
    let [before, now] = done;
    let rates = [median(before.per_second), median(now.per_second)];
    tell(report, "durable creates", rates, "a second", Some(Bar::AtLeast(BAR)));
    tell(report, "a create", [median(before.cpu_us), median(now.cpu_us)], "us", None);
    let rates = [median(before.purged_per_second), median(now.purged_per_second)];
    let what = format!("purge of {} expired items", words(count));
    tell(report, &what, rates, "a second", None);
    Ok(())
}

fn write(bench: &Bench, build: &Build<'_>, count: u64, round: u64, done: &mut Done) -> Result<()> {
    let folder = tempfile::tempdir_in(bench.folder.path()).map_err(failed("a folder"))?;
    let server = Server::start(build.program, &folder.path().join("data"))?;
    prepare(&server)?;
    let before = server.cpu()?;
    let created = creates(&server, Mix::Create, 0, count)?;
    let cpu_us = server.cpu_since(before)?.as_secs_f64() * 1e6 / count as f64;
    let (name, rate) = (build.name, created.per_second());
    println!("order, round {round}: creates {name}: {rate:.0}/s, {cpu_us:.1} us of CPU");
    done.per_second.push(rate);
    done.cpu_us.push(cpu_us);
    if round <= PURGE_ROUNDS {
        let rate = purge(&server, count)?;
        println!("order, round {round}: purge {name}: {rate:.0}/s");
        done.purged_per_second.push(rate);
    }
    Ok(())
}

/// Lets all items expire, and removes them. Returns how many a second.
fn purge(server: &Server, count: u64) -> Result<f64> {
    let mut client = server.connect()?;
    client.admin("POST", "purge/pause", "{}")?;
    let path = format!("/dbs/{DATABASE}/colls/{CONTAINER}");
    client.must("PUT", &path, &[], &with_default(1))?;
    std::thread::sleep(EXPIRY);
    let started = Instant::now();
    client.admin_patiently("POST", "purge/run", "{}")?;
    let took = started.elapsed();
    let purged = server.metric("dayfly_ttl_purged_total")?;
    if purged < count as f64 {
        return Err(format!("the purge removed {purged} of {count} items"));
    }
    Ok(count as f64 / took.as_secs_f64())
}
