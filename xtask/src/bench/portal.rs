//! `portal`: what the portal costs the server.
//!
//! A page of items with the end of their lives, by key and soonest to die first, against a
//! list page of the same length, with ten thousand and with a million items: a third of them
//! live by the default, a third by a ttl of their own, a third for ever. A point read with the
//! request log and without it. And how large the files are that are in the binary.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::fill::{Filling, Written, fill_with};
use super::item::{CONTAINER, DATABASE, ITEM_BYTES, Items, items_path};
use super::load::{self, Until};
use super::read::{read, requests};
use super::report::{Bar, Report};
use super::ttl::with_default;
use super::{Bench, median};
use crate::server::{Server, dayfly};
use crate::wire::{Signer, admin_request};
use crate::{Result, failed};

const FEW: u64 = 10_000;
const MANY: u64 = 1_000_000;
const EACH_SECOND: u64 = 50;
const DAY: u64 = 24 * 3600;

/// How long a page is, and how many in a row are asked for again and again.
const ROWS: u64 = 100;
const PAGES: usize = 30;

const ROUNDS: u64 = 7;
const CALLS: u64 = 2000;
const READS: Duration = Duration::from_secs(3);

/// What an item costs in the portal, of what it costs in a list.
const PAGE_BAR: f64 = 1.5;
/// What a read costs with the request log, of one without.
const LOG_BAR: f64 = 1.02;
/// How large the files may be that are in the binary.
const FILES_KIB_MAX: f64 = 512.0;

pub(super) fn run(bench: &Bench) -> Result<Report> {
    let mut report = Report::new("portal");
    for (count, words) in [(FEW, "10 thousand"), (MANY, "a million")] {
        pages(bench, count, words, &mut report)?;
    }
    request_log(bench, &mut report)?;
    files(&mut report)?;
    Ok(report)
}

/// A folder with items of every class, written one after the other until now.
fn filled(bench: &Bench, name: &str, count: u64) -> Result<std::path::PathBuf> {
    println!("portal: filling a folder with {count} items");
    let data = bench.folder.path().join(name);
    let items = Items::new();
    let item = |number: u64| {
        let json = items.json(number, 0, ITEM_BYTES);
        let ttl = match number % 3 {
            0 => return json,
            1 => (200 * DAY + number).to_string(),
            _ => "-1".to_owned(),
        };
        format!("{},\"ttl\":{ttl}}}", json.strip_suffix('}').unwrap_or(&json))
    };
    let seconds_ago = count / EACH_SECOND;
    let written = Written::Since { seconds_ago, each_second: EACH_SECOND, is_exact: false };
    let filling = Filling { definition: with_default(100 * DAY), item: &item, count, written };
    fill_with(&data, &filling)?;
    Ok(data)
}

fn pages(bench: &Bench, count: u64, words: &str, report: &mut Report) -> Result<()> {
    let data = filled(bench, &format!("items-{count}"), count)?;
    let server = Server::start(&bench.program, &data)?;
    let asked = [listed(&server)?, surveyed(&server, "key")?, surveyed(&server, "expiry")?];
    let mut costs = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (requests, costs) in asked.iter().zip(&mut costs) {
            let (requests, mut place) = (requests.clone(), 0);
            let before = server.cpu_exact()?;
            load::run(server.address, 4, Until::Sent(CALLS), move |buffer| {
                if let Some(request) = requests.get(place % requests.len().max(1)) {
                    buffer.extend_from_slice(request);
                }
                place += 1;
            })?;
            let cpu = server.cpu_exact()?.saturating_sub(before);
            costs.push(cpu.as_secs_f64() * 1e6 / CALLS as f64);
        }
        println!("portal, {words}, round {round}: list, key and expiry cost {costs:?} us");
    }
    let [list, key, expiry] = costs.map(median);
    report.note(
        format!("server CPU of a list page of {ROWS}, {words} items"),
        format!("{list:.0} us"),
    );
    for (order, us) in [("by key", key), ("by expiry", expiry)] {
        let what = format!("a page of items {order}, {words} items");
        report.note(what.clone(), format!("{us:.0} us"));
        report.judge(format!("{what}: of the list page"), us / list, "", Bar::AtMost(PAGE_BAR));
    }
    server.stop()
}

/// The first pages of a list.
fn listed(server: &Server) -> Result<Vec<Vec<u8>>> {
    let (mut client, mut place) = (server.connect()?, None::<String>);
    let mut requests = Vec::new();
    for _ in 0..PAGES {
        let mut headers = vec![("x-ms-max-item-count", ROWS.to_string())];
        headers.extend(place.clone().map(|token| ("x-ms-continuation", token)));
        let mut request = Signer::new()?.head("GET", &items_path());
        for (name, value) in &headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("content-length: 0\r\n\r\n");
        requests.push(request.into_bytes());
        let answer = client.must("GET", &items_path(), &headers, "")?;
        place = answer.header("x-ms-continuation").map(str::to_owned);
    }
    Ok(requests)
}

/// The first pages of the items in an order of the portal.
fn surveyed(server: &Server, order: &str) -> Result<Vec<Vec<u8>>> {
    let (mut client, mut place) = (server.connect()?, String::new());
    let mut requests = Vec::new();
    for _ in 0..PAGES {
        let call =
            format!("containers/{DATABASE}/{CONTAINER}/items?order={order}&limit={ROWS}{place}");
        requests.push(admin_request("GET", &call, "").into_bytes());
        let page = client.admin("GET", &call, "")?;
        let rows = page.get("items").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        if rows != ROWS {
            return Err(format!("a page of {rows} rows, where {ROWS} were asked for"));
        }
        let next = page.get("continuation").and_then(Value::as_str);
        let next = next.ok_or("the last page too early")?;
        place = format!("&continuation={next}");
    }
    Ok(requests)
}

/// Reads with the log and without it, in turns.
fn request_log(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut servers = Vec::new();
    for (name, flag) in [("without", "off"), ("with", "on")] {
        let data = filled(bench, name, FEW)?;
        let mut command = dayfly(&bench.program, &data);
        servers.push(Server::spawn(command.args(["--request-log", flag]))?);
    }
    let requests = requests(FEW)?;
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..2 * ROUNDS {
        for (server, costs) in servers.iter().zip(&mut costs) {
            costs.push(read(server, &requests, READS, round)?.0);
        }
    }
    let [without, with] = costs.map(median);
    report.note("server CPU of a point read without the request log", format!("{without:.2} us"));
    report.judge("with the request log: ratio", with / without, "", Bar::AtMost(LOG_BAR));
    Ok(())
}

/// What the binary grows by is little more than these.
fn files(report: &mut Report) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../portal/dist");
    let mut bytes = 0;
    for entry in fs::read_dir(folder).map_err(failed("portal/dist"))? {
        let entry = entry.map_err(failed("portal/dist"))?;
        bytes += entry.metadata().map_err(failed("portal/dist"))?.len();
    }
    let kib = bytes as f64 / 1024.0;
    report.judge("the portal's files in the binary", kib, " KiB", Bar::AtMost(FILES_KIB_MAX));
    Ok(())
}
