//! `ttl`: what time to live costs where nothing is purged.
//!
//! A change of the default with a thousand and with a million items. What-if and
//! forecast at a million, against point reads of the same container. A server
//! with a million items that all expire some day, against one with the same
//! items and no default, both with nothing to do.

use std::time::Duration;

use super::fill::{Written, fill_written};
use super::item::{CONTAINER, DATABASE, Items};
use super::load::{self, Until};
use super::read::{read, requests};
use super::report::{Bar, Report};
use super::{Bench, median};
use crate::server::Server;
use crate::wire::{admin_request, partition};
use crate::{Result, failed};

const FEW: u64 = 1000;
const MANY: u64 = 1_000_000;
const EACH_SECOND: u64 = 50;

const ROUNDS: u64 = 5;
const CHANGES: u64 = 200;
const CALLS: u64 = 4000;
const READS: Duration = Duration::from_secs(3);
const IDLE: Duration = Duration::from_mins(1);

const DAY: u64 = 24 * 3600;

pub(super) fn run(bench: &Bench) -> Result<Report> {
    let mut report = Report::new("ttl");
    let few = side(bench, "few", FEW)?;
    let many = side(bench, "many", MANY)?;
    let plain = side(bench, "plain", MANY)?;
    changes(&few, &many, &mut report)?;
    calls(&many, &mut report)?;
    set_default(&many, 100 * DAY)?;
    idle(&many, &plain, &mut report)?;
    next_read(&few)?;
    next_read(&many)?;
    Ok(report)
}

/// A server with items written over a while until now.
fn side(bench: &Bench, name: &str, items: u64) -> Result<Server> {
    println!("ttl: filling a folder with {items} items");
    let data = bench.folder.path().join(name);
    let written = Written::Since {
        seconds_ago: items / EACH_SECOND,
        each_second: EACH_SECOND,
        is_exact: false,
    };
    fill_written(&data, &Items::new(), items, written)?;
    Server::start(&bench.program, &data)
}

fn set_default(server: &Server, seconds: u64) -> Result<()> {
    let path = format!("/dbs/{DATABASE}/colls/{CONTAINER}");
    server.connect()?.must("PUT", &path, &[], &with_default(seconds)).map(|_| ())
}

pub(super) fn with_default(seconds: u64) -> String {
    let definition = super::item::definition();
    let open = definition.strip_suffix('}').unwrap_or(&definition);
    format!("{open},\"defaultTtl\":{seconds}}}")
}

/// Back and forth between defaults that expire nothing.
fn changes(few: &Server, many: &Server, report: &mut Report) -> Result<()> {
    let mut cpus = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (server, cpus) in [few, many].into_iter().zip(&mut cpus) {
            let before = server.cpu_exact()?;
            let mut client = server.connect()?;
            let path = format!("/dbs/{DATABASE}/colls/{CONTAINER}");
            for change in 0..CHANGES {
                client.must("PUT", &path, &[], &with_default((100 + change % 2) * DAY))?;
            }
            let cpu = server.cpu_exact()?.saturating_sub(before);
            cpus.push(cpu.as_secs_f64() * 1e6 / CHANGES as f64);
        }
        println!("ttl, round {round}: a change of the default costs {cpus:?} us");
    }
    let [few_us, many_us] = cpus.map(median);
    report
        .note("server CPU of a change of defaultTtl, 1 thousand items", format!("{few_us:.0} us"));
    report.note("the same, 1 million items", format!("{many_us:.0} us"));
    report.judge("change: ratio", many_us / few_us, "", Bar::AtMost(1.5));
    Ok(())
}

/// A default that expires everything is in force for the next read.
fn next_read(server: &Server) -> Result<()> {
    let mut client = server.connect()?;
    let item = format!("/dbs/{DATABASE}/colls/{CONTAINER}/docs/{}", super::item::id(0));
    let key = partition(&super::item::partition_key(0));
    client.must("GET", &item, std::slice::from_ref(&key), "")?;
    set_default(server, 1)?;
    let answer = client.ask("GET", &item, &[key], "").map_err(failed("asking the server"))?;
    if answer.status == 404 { Ok(()) } else { Err(format!("expired, but {}", answer.told())) }
}

/// What an operator asks, against what a client asks.
fn calls(server: &Server, report: &mut Report) -> Result<()> {
    // All of them expire within the forecast.
    set_default(server, MANY / EACH_SECOND + 3600)?;
    let requests = requests(MANY)?;
    let containers = format!("containers/{DATABASE}/{CONTAINER}/ttl");
    let asked = [
        ("what-if", format!("{containers}/whatif?defaultTtl=7200")),
        ("forecast of 24 buckets", format!("{containers}/forecast?buckets=24")),
    ];
    let (mut reads, mut costs) = (Vec::new(), [Vec::new(), Vec::new()]);
    for round in 0..ROUNDS {
        reads.push(read(server, &requests, READS, round)?.0);
        for ((_, call), costs) in asked.iter().zip(&mut costs) {
            let request = admin_request("GET", call, "").into_bytes();
            let before = server.cpu_exact()?;
            load::run(server.address, 4, Until::Sent(CALLS), move |buffer| {
                buffer.extend_from_slice(&request);
            })?;
            let cpu = server.cpu_exact()?.saturating_sub(before);
            costs.push(cpu.as_secs_f64() * 1e6 / CALLS as f64);
        }
        println!("ttl, round {round}: reads cost {reads:?} us, calls {costs:?} us");
    }
    let read_us = median(reads);
    report.note("server CPU of a point read, 1 million items", format!("{read_us:.1} us"));
    for ((name, _), costs) in asked.iter().zip(costs) {
        let cost_us = median(costs);
        report.note(format!("server CPU of a {name}"), format!("{cost_us:.1} us"));
        let what = format!("{name}: in point reads");
        report.judge(what, cost_us / read_us, "", Bar::AtMost(5.0));
    }
    Ok(())
}

/// Two servers with nothing to do, side by side.
fn idle(many: &Server, plain: &Server, report: &mut Report) -> Result<()> {
    // What is left of the work before, and the recount after the start, are not
    // to be counted.
    std::thread::sleep(Duration::from_secs(40));
    let before = [many.cpu_exact()?, plain.cpu_exact()?];
    std::thread::sleep(IDLE);
    let after = [many.cpu_exact()?, plain.cpu_exact()?];
    let [on, off] = [0, 1].map(|place: usize| {
        let used = after.get(place).zip(before.get(place));
        used.map_or(f64::NAN, |(after, before)| after.saturating_sub(*before).as_secs_f64() * 1e3)
    });
    report.note("idle for a minute, time to live on", format!("{on:.1} ms"));
    report.note("idle for a minute, time to live off", format!("{off:.1} ms"));
    report.judge("idle: more with it on", on - off, " ms", Bar::AtMost(10.0));
    Ok(())
}
