//! `throughput`: what offers cost where nobody asks for more than there is, and whether the
//! purge can be felt where somebody does.
//!
//! Point reads of a server with offers against the same binary with `--serverless`, over a copy
//! of its folder: measured at 400 RU/s, and with an offer that is enforced and so high that
//! every read pays for itself. Then many containers that have an offer each, against one. Then
//! two servers with an enforced offer that are asked for a little more than it gives, at the
//! same times; one of them is full of what has expired.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use dayfly_engine::operation::{Operation, Showing};
use dayfly_model::throughput::Throughput;
use dayfly_storage::clock::SystemWall;
use serde_json::json;

use super::fill::{self, Filling, Written, fill};
use super::item::{DATABASE, ITEM_BYTES, Items, items_path};
use super::read::{self, read};
use super::report::{Bar, Report};
use super::ttl::with_default;
use super::{Bench, median};
use crate::server::{Server, dayfly};
use crate::wire::{Client, partition};
use crate::{Result, failed};

/// At most this much of the CPU that a read costs without offers.
const READ_BAR: f64 = 1.03;

/// What each container with an offer takes in memory.
const CONTAINER_KIB_BAR: f64 = 4.0;

/// By how much the refusals with and without a purge may differ, of those without.
const REFUSED_BAR: f64 = 0.05;

/// An offer that no load of reads comes to the end of.
const HIGH: u32 = 1_000_000;

/// What is asked of an offer of 400 RU/s, in misses of 1 RU a second.
const ASKED_PER_SECOND: u32 = 420;

/// More than such an offer has at first.
const FIRST: u32 = 500;

/// The backlog is older than an hour, so it is purged in any case.
const EXPIRED_SECONDS: u64 = 7_200;

/// How much is measured.
struct Extent {
    items: u64,
    rounds: u64,
    warm_up: Duration,
    containers: u32,
    edge: Duration,
}

impl Extent {
    /// With fewer items than all it is a trial.
    fn of(items: u64) -> Extent {
        if items < super::query::ITEMS {
            let seconds = Duration::from_secs;
            let (warm_up, edge) = (seconds(1), seconds(5));
            return Extent { items: 10_000, rounds: 3, warm_up, containers: 200, edge };
        }
        Extent {
            items: 100_000,
            rounds: read::ROUNDS,
            warm_up: Duration::from_secs(10),
            containers: 10_000,
            edge: Duration::from_secs(40),
        }
    }
}

pub(super) fn run(bench: &Bench, items: u64) -> Result<Report> {
    let extent = Extent::of(items);
    let mut report = Report::new("throughput");
    reads(bench, &extent, &mut report)?;
    containers(bench, &extent, &mut report)?;
    edge(bench, &extent, &mut report)?;
    Ok(report)
}

/// What the accounting costs a point read.
fn reads(bench: &Bench, extent: &Extent, report: &mut Report) -> Result<()> {
    let data = bench.folder.path().join("offered");
    fill(&data, &Items::new(), extent.items)?;
    let ratio = beside_serverless(bench, extent, &data, "measured", report)?;
    report.judge("measured at 400 RU/s: ratio", ratio, "", Bar::AtMost(READ_BAR));
    raise(bench, &data)?;
    let ratio = beside_serverless(bench, extent, &data, "enforced", report)?;
    report.judge("enforced, and paid for: ratio", ratio, "", Bar::AtMost(READ_BAR));
    Ok(())
}

/// Reads of a server with offers against those of one without, over a copy of its folder.
fn beside_serverless(
    bench: &Bench,
    extent: &Extent,
    data: &Path,
    mode: &str,
    report: &mut Report,
) -> Result<f64> {
    let without = bench.folder.path().join(format!("{mode}-without"));
    copy(data, &without)?;
    let offered = Server::spawn(dayfly(&bench.program, data).args(["--throughput", mode]))?;
    let without = Server::spawn(dayfly(&bench.program, &without).arg("--serverless"))?;
    let requests = read::requests(extent.items)?;
    for server in [&offered, &without] {
        read(server, &requests, extent.warm_up, 0)?;
    }
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=extent.rounds {
        let cost = |server: &Server| read(server, &requests, read::ROUND, round).map(|(us, _)| us);
        // Whoever is first in one round is second in the next.
        let (with_us, without_us) = if round % 2 == 0 {
            let with_us = cost(&offered)?;
            (with_us, cost(&without)?)
        } else {
            let without_us = cost(&without)?;
            (cost(&offered)?, without_us)
        };
        println!("throughput, {mode}, round {round}: {with_us:.2} us, without {without_us:.2} us");
        ours.push(with_us);
        theirs.push(without_us);
        ratios.push(with_us / without_us);
    }
    let told = format!("{:.2} us, without offers {:.2} us", median(ours), median(theirs));
    report.note(format!("server CPU of a read, {mode}"), told);
    Ok(median(ratios))
}

/// Gives the container of a folder so much that all reads are admitted.
fn raise(bench: &Bench, data: &Path) -> Result<()> {
    let server = Server::start(&bench.program, data)?;
    let mut client = server.connect()?;
    let offers = client.must("GET", "/offers", &[], "")?.json();
    let rid = offers.pointer("/Offers/0/_rid").and_then(|rid| rid.as_str()).unwrap_or_default();
    let body = json!({"content": {"offerThroughput": HIGH}}).to_string();
    client.must("PUT", &format!("/offers/{rid}"), &[], &body)?;
    server.stop()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let ended = Command::new("cp").arg("-r").args([from, to]).status();
    let ended = ended.map_err(failed("copying a folder"))?;
    if ended.success() { Ok(()) } else { Err("a folder was not copied".to_owned()) }
}

/// What many containers take that have an offer each, when nobody uses them and when each was
/// used once.
fn containers(bench: &Bench, extent: &Extent, report: &mut Report) -> Result<()> {
    let [few, many] = [1, extent.containers].map(|count| -> Result<Figures> {
        let data = bench.folder.path().join(format!("containers-{count}"));
        fill_containers(&data, count)?;
        let started = Instant::now();
        let server = Server::start(&bench.program, &data)?;
        server.connect()?.must("GET", "/", &[], "")?;
        let started = started.elapsed();
        std::thread::sleep(extent.warm_up);
        let (idle, threads) = (server.rss_bytes()?, server.threads()?);
        let mut client = server.connect()?;
        for number in 0..count {
            miss(&mut client, &format!("/dbs/{DATABASE}/colls/c{number}/docs"))?;
        }
        std::thread::sleep(extent.warm_up);
        Ok(Figures { started, idle, used: server.rss_bytes()?, threads })
    });
    let (few, many) = (few?, many?);
    let each = |few: u64, many: u64| {
        let grown = many.saturating_sub(few) as f64 / f64::from(extent.containers - 1);
        grown / 1024.0
    };
    let count = extent.containers;
    let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / 1024.0 / 1024.0);
    report.note("memory when idle, 1 container", mebibytes(few.idle));
    report.note(format!("the same, {count} containers"), mebibytes(many.idle));
    let milliseconds = |time: Duration| format!("{:.0} ms", time.as_secs_f64() * 1e3);
    report.note("start to the first answer, 1 container", milliseconds(few.started));
    report.note(format!("the same, {count} containers"), milliseconds(many.started));
    let idle = each(few.idle, many.idle);
    report.judge(
        "memory of a container that nobody used",
        idle,
        " KiB",
        Bar::AtMost(CONTAINER_KIB_BAR),
    );
    let used = each(few.used, many.used);
    report.judge("the same, used once", used, " KiB", Bar::AtMost(CONTAINER_KIB_BAR));
    let more = many.threads as f64 - few.threads as f64;
    report.judge(format!("more threads with {count} containers"), more, "", Bar::AtMost(0.0));
    Ok(())
}

/// What a server with some containers came to.
struct Figures {
    started: Duration,
    idle: u64,
    used: u64,
    threads: usize,
}

/// Makes a folder with empty containers that have an offer each.
fn fill_containers(folder: &Path, count: u32) -> Result<()> {
    let (store, engine) = fill::open(folder, std::sync::Arc::new(SystemWall))?;
    let done = |operation| engine.run(operation).wait().outcome.map_err(failed("filling"));
    let database = DATABASE.to_owned();
    done(Operation::CreateDatabase { id: database.clone(), throughput: None })?;
    for number in 0..count {
        let definition = json!({"id": format!("c{number}"), "partitionKey": {"paths": ["/pk"]}});
        done(Operation::CreateContainer {
            database: database.clone(),
            definition: definition.to_string().into_bytes(),
            throughput: Some(Throughput::Manual(400)),
            showing: Showing::Whole,
        })?;
    }
    store.hints().compact().map_err(failed("compacting"))?;
    engine.close().map_err(failed("closing"))
}

/// Asks for an item that is not there, for 1 RU. Says whether that was refused.
fn miss(client: &mut Client, items: &str) -> Result<bool> {
    let path = format!("{items}/nobody");
    let answer = client.ask("GET", &path, &[partition("p-0000")], "");
    match answer.map_err(failed("asking the server"))? {
        answer if answer.status == 404 => Ok(false),
        answer if answer.status == 429 => Ok(true),
        answer => Err(format!("a miss answered {}", answer.told())),
    }
}

/// Two servers at the edge of their offer, asked at the same times.
fn edge(bench: &Bench, extent: &Extent, report: &mut Report) -> Result<()> {
    let backlog = extent.items / 5;
    let [full, clean] = [("full", backlog), ("clean", 0)].map(|(name, count)| -> Result<Server> {
        let data = bench.folder.path().join(name);
        let items = Items::new();
        let item = &|number| items.json(number, 0, ITEM_BYTES);
        let written = Written::Since {
            seconds_ago: 2 * EXPIRED_SECONDS,
            each_second: (backlog / EXPIRED_SECONDS).max(1),
            is_exact: false,
        };
        let definition = with_default(EXPIRED_SECONDS / 4);
        fill::fill_with(&data, &Filling { definition, item, count, written })?;
        let mut command = dayfly(&bench.program, &data);
        let server = Server::spawn(command.args(["--throughput", "enforced"]))?;
        // The clock of the filling says nothing to the purge.
        server.connect()?.admin("POST", "clock", "{\"accept\":true}")?;
        Ok(server)
    });
    let servers = [full?, clean?];
    let mut clients = Vec::new();
    for server in &servers {
        clients.push(server.connect()?);
    }
    let items = items_path();
    let mut ask = |times: u32, each: Duration| -> Result<[u32; 2]> {
        let (began, mut refused) = (Instant::now(), [0; 2]);
        for number in 0..times {
            // Whoever is late does not ask less.
            std::thread::sleep((each * number).saturating_sub(began.elapsed()));
            for (client, refused) in clients.iter_mut().zip(&mut refused) {
                *refused += u32::from(miss(client, &items)?);
            }
        }
        Ok(refused)
    };
    ask(FIRST, Duration::ZERO)?;
    let seconds = u32::try_from(extent.edge.as_secs()).unwrap_or(u32::MAX);
    let [with, without] =
        ask(ASKED_PER_SECOND * seconds, Duration::from_secs(1) / ASKED_PER_SECOND)?;
    let [purged, _] =
        [&servers[0], &servers[1]].map(|server| server.metric("dayfly_ttl_purged_total"));
    report.note(format!("refused in {seconds} s at 420 of 400 RU/s"), without.to_string());
    report.note(format!("the same beside a backlog of {backlog} items"), with.to_string());
    report.note("purged of it meanwhile", format!("{:.0} items", purged?));
    let difference = f64::from(with.abs_diff(without)) / f64::from(without.max(1));
    report.judge("difference, of those without", difference, "", Bar::AtMost(REFUSED_BAR));
    Ok(())
}
