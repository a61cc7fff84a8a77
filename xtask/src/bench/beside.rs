//! `beside`: whether anybody notices the purge.
//!
//! Durable upserts come in at half of what the server can take, whether or not
//! it keeps up: each is due at a time of its own, and late is counted from then.
//! Half a million items of another container expire at once. Rounds with the
//! purge paused and rounds with it going on take turns.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::create::{Mix, creates, prepare};
use super::fill::{Written, fill_written};
use super::item::{CONTAINER, DATABASE, ITEM_BYTES, Items, id, partition_key};
use super::load::{Due, open_loop};
use super::report::{Bar, Report};
use super::ttl::with_default;
use super::{Bench, median};
use crate::Result;
use crate::server::Server;
use crate::wire::Signer;

const ITEMS: u64 = 500_000;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(18);
const WRITTEN: u64 = 20_000;
const DAY: u64 = 24 * 3600;

/// The container that is written to meanwhile.
const BUSY: &str = "busy";

pub(super) fn run(bench: &Bench) -> Result<Report> {
    let data = bench.folder.path().join("data");
    let written = Written::Since { seconds_ago: 2 * DAY, each_second: 50, is_exact: false };
    fill_written(&data, &Items::new(), ITEMS, written)?;
    let server = Server::start(&bench.program, &data)?;
    let mut client = server.connect()?;
    client.admin("POST", "purge/pause", "{}")?;
    let path = format!("/dbs/{DATABASE}/colls");
    let definition = super::item::definition().replace(CONTAINER, BUSY);
    client.must("POST", &path, &[], &definition)?;
    client.must("PUT", &format!("{path}/{CONTAINER}"), &[], &with_default(3600))?;

    let capacity = capacity(bench)?;
    let rate = capacity / 2.0;
    println!("beside: {capacity:.0} writes a second are all, so {rate:.0} it is");
    upserts(&server, rate, ROUND / 2)?;
    let purged = || server.metric("dayfly_ttl_purged_total");
    let (mut quiet, mut busy, mut ratios, mut rates) = (vec![], vec![], vec![], vec![]);
    for round in 1..=ROUNDS {
        let alone = upserts(&server, rate, ROUND)?;
        client.admin("POST", "purge/resume", "{}")?;
        let before = purged()?;
        let beside = upserts(&server, rate, ROUND)?;
        let gone = (purged()? - before) / ROUND.as_secs_f64();
        client.admin("POST", "purge/pause", "{}")?;
        println!(
            "beside, round {round}: p99 {:.2} ms alone, {:.2} ms beside a purge of {gone:.0}/s",
            alone.p99_ms(),
            beside.p99_ms()
        );
        quiet.push(alone.p99_ms());
        busy.push(beside.p99_ms());
        ratios.push(beside.p99_ms() / alone.p99_ms());
        rates.push(gone);
    }
    let left = client.admin("GET", &format!("containers/{DATABASE}/{CONTAINER}/ttl"), "")?;
    let left = left.get("backlog").and_then(|backlog| backlog.get("items")).cloned();
    let mut report = Report::new("beside");
    report.note("writes a second", format!("{rate:.0}"));
    report.note("p99 without a purge", format!("{:.2} ms", median(quiet)));
    report.note("p99 beside a purge", format!("{:.2} ms", median(busy)));
    report.note("not purged at the end", format!("{}", left.unwrap_or_default()));
    report.judge("p99: median of the ratios", median(ratios), "", Bar::AtMost(1.25));
    report.judge("purged a second", median(rates), "", Bar::AtLeast(2000.0));
    Ok(report)
}

/// How many writes a second the server takes, from clients that wait.
fn capacity(bench: &Bench) -> Result<f64> {
    let data = bench.folder.path().join("capacity");
    let server = Server::start(&bench.program, &data)?;
    prepare(&server)?;
    Ok(creates(&server, Mix::Create, 0, WRITTEN * 3)?.per_second())
}

/// Upserts of random items, at `rate` a second.
fn upserts(server: &Server, rate: f64, time: Duration) -> Result<Due> {
    let signer = Signer::new()?;
    let head = signer.head("POST", &format!("/dbs/{DATABASE}/colls/{BUSY}/docs"));
    let items = Items::new();
    let state = Rc::new(RefCell::new(crate::random::Random::new(11)));
    open_loop(server.address, rate, time, move |buffer| {
        let number = state.borrow_mut().below(WRITTEN);
        let json = items.json(number, state.borrow_mut().below(1000), ITEM_BYTES);
        debug_assert!(json.contains(&id(number)));
        let key = partition_key(number);
        let length = json.len();
        buffer.extend_from_slice(head.as_bytes());
        buffer.extend_from_slice(
            format!(
                "x-ms-documentdb-is-upsert: true\r\nx-ms-documentdb-partitionkey: [\"{key}\"]\r\n\
                 content-length: {length}\r\n\r\n{json}"
            )
            .as_bytes(),
        );
    })
}
