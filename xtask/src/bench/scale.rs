//! `scale`: whether a read or a create costs more when there are more items.
//!
//! Two servers with the same settings, one with 100 thousand items and one
//! with a million, both compacted. Rounds take turns. Of reads the medians are
//! compared; of creates the sums, since a compaction falls into some round and
//! belongs to all.

use std::time::Duration;

use super::create::{Mix, creates};
use super::fill::fill;
use super::item::Items;
use super::read::{Requests, read, requests};
use super::report::{Bar, Report};
use super::{Bench, median};
use crate::Result;
use crate::server::Server;

const SMALL: u64 = 100_000;
const LARGE: u64 = 1_000_000;

const ROUNDS: u64 = 5;
const ROUND: Duration = Duration::from_secs(3);
const CREATES: u64 = 20_000;

const BAR: f64 = 1.5;

/// A server with so many items.
struct Side {
    items: u64,
    server: Server,
    requests: Requests,
    read_us: Vec<f64>,
    create_us: Vec<f64>,
}

pub(super) fn run(bench: &Bench) -> Result<Report> {
    let mut sides = [Side::new(bench, SMALL)?, Side::new(bench, LARGE)?];
    for round in 0..ROUNDS {
        for side in &mut sides {
            side.read(round)?;
        }
    }
    for round in 0..ROUNDS {
        for side in &mut sides {
            side.create(round)?;
        }
    }
    let mut report = Report::new("scale");
    let [small, large] = &sides;
    let reads = [small, large].map(|side| median(side.read_us.clone()));
    let creates = [small, large].map(|side| side.create_us.iter().sum::<f64>() / ROUNDS as f64);
    for (what, [small, large]) in [("read", reads), ("create", creates)] {
        report
            .note(format!("server CPU of a {what}, 100 thousand items"), format!("{small:.2} us"));
        report.note(format!("server CPU of a {what}, 1 million items"), format!("{large:.2} us"));
        report.judge(format!("{what}: ratio"), large / small, "", Bar::AtMost(BAR));
    }
    Ok(report)
}

impl Side {
    fn new(bench: &Bench, items: u64) -> Result<Side> {
        println!("scale: filling a folder with {items} items");
        let data = bench.folder.path().join(items.to_string());
        fill(&data, &Items::new(), items)?;
        let server = Server::start(&bench.program, &data)?;
        let requests = requests(items)?;
        read(&server, &requests, ROUND, 0)?;
        Ok(Side { items, server, requests, read_us: Vec::new(), create_us: Vec::new() })
    }

    fn read(&mut self, round: u64) -> Result<()> {
        let (cpu, rate) = read(&self.server, &self.requests, ROUND, round + 1)?;
        println!("scale, {} items: read {cpu:.2} us at {rate:.0}/s", self.items);
        self.read_us.push(cpu);
        Ok(())
    }

    fn create(&mut self, round: u64) -> Result<()> {
        let before = self.server.cpu()?;
        let done = creates(&self.server, Mix::Create, LARGE + round * CREATES, CREATES)?;
        let cpu = self.server.cpu_since(before)?.as_secs_f64() * 1e6 / CREATES as f64;
        println!("scale, {} items: create {cpu:.1} us at {:.0}/s", self.items, done.per_second());
        self.create_us.push(cpu);
        Ok(())
    }
}
