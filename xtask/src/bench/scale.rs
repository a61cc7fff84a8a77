//! `scale`: whether a read or a create costs more when there are more items.
//!
//! Two servers with the same settings, one with 100 thousand items and one
//! with a million, both compacted. Rounds take turns. Of reads the medians are
//! compared; of creates the sums, since a compaction falls into some round and
//! belongs to all.
//!
//! Reads are also compared with a cache that holds the smaller container and
//! one in seven items of the larger one: the others are found in the files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::create::{Mix, creates};
use super::fill::fill;
use super::item::Items;
use super::read::{ROUND, ROUNDS, Requests, read, read_each, requests};
use super::report::{Bar, Report};
use super::{Bench, median};
use crate::Result;
use crate::server::{Server, dayfly};

const SMALL: u64 = 100_000;
const LARGE: u64 = 1_000_000;

const CREATE_ROUNDS: u64 = 5;
const CREATES: u64 = 20_000;

const BAR: f64 = 1.5;

/// In MiB.
const SMALL_CACHE: &str = "256";

/// How often to look whether the recount after the start is over.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(super) fn run(bench: &Bench) -> Result<Report> {
    for items in [SMALL, LARGE] {
        println!("scale: filling a folder with {items} items");
        fill(&folder(bench, items), &Items::new(), items)?;
    }
    let mut report = Report::new("scale");
    let sides = start(bench, &["--cache", SMALL_CACHE])?;
    let [small, large] = all_reads(&sides)?;
    drop(sides);
    report.note("a read with a cache of 256 MiB: 100 thousand items", us(small));
    report.note("the same, 1 million items", us(large));
    report.note("the same: ratio", format!("{:.2}", large / small));
    let sides = start(bench, &[])?;
    for (what, [small, large]) in [("read", all_reads(&sides)?), ("create", all_creates(&sides)?)] {
        report.note(format!("server CPU of a {what}, 100 thousand items"), us(small));
        report.note(format!("server CPU of a {what}, 1 million items"), us(large));
        report.judge(format!("{what}: ratio"), large / small, "", Bar::AtMost(BAR));
    }
    Ok(report)
}

fn folder(bench: &Bench, items: u64) -> PathBuf {
    bench.folder.path().join(items.to_string())
}

fn us(cpu: f64) -> String {
    format!("{cpu:.2} us")
}

/// A server with so many items.
struct Side {
    items: u64,
    server: Server,
    requests: Requests,
}

fn start(bench: &Bench, settings: &[&str]) -> Result<[Side; 2]> {
    let start = |items| Side::start(&bench.program, &folder(bench, items), items, settings);
    Ok([start(SMALL)?, start(LARGE)?])
}

/// The CPU of a read on each side, in microseconds.
fn all_reads(sides: &[Side; 2]) -> Result<[f64; 2]> {
    let mut measured = [Vec::new(), Vec::new()];
    for round in 1..=ROUNDS {
        for (side, measured) in sides.iter().zip(&mut measured) {
            let (cpu, rate) = read(&side.server, &side.requests, ROUND, round)?;
            println!("scale, {} items: read {cpu:.2} us at {rate:.0}/s", side.items);
            measured.push(cpu);
        }
    }
    Ok(measured.map(median))
}

/// The CPU of a create on each side, in microseconds.
fn all_creates(sides: &[Side; 2]) -> Result<[f64; 2]> {
    let mut measured = [0.0; 2];
    for round in 0..CREATE_ROUNDS {
        for (side, measured) in sides.iter().zip(&mut measured) {
            let before = side.server.cpu()?;
            let done = creates(&side.server, Mix::Create, LARGE + round * CREATES, CREATES)?;
            let cpu = side.server.cpu_since(before)?.as_secs_f64() * 1e6 / CREATES as f64;
            let rate = done.per_second();
            println!("scale, {} items: create {cpu:.1} us at {rate:.0}/s", side.items);
            *measured += cpu / CREATE_ROUNDS as f64;
        }
    }
    Ok(measured)
}

impl Side {
    /// Starts a server, and waits until it has read each item once and its recount
    /// is over.
    fn start(program: &Path, data: &Path, items: u64, settings: &[&str]) -> Result<Side> {
        println!("scale: starting a server with {items} items");
        let server = Server::spawn(dayfly(program, data).args(settings))?;
        let requests = requests(items)?;
        read_each(&server, &requests)?;
        recounted(&server)?;
        Ok(Side { items, server, requests })
    }
}

/// Waits until the recount after the start is over.
pub(super) fn recounted(server: &Server) -> Result<()> {
    while server.metric("dayfly_figures_recounts_total")? == 0.0 {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
