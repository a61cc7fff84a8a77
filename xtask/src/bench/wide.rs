//! `wide`: whether anybody notices those who write items with very many
//! properties.
//!
//! Upserts of 1 KB come in at a steady rate, whether or not the server keeps up:
//! each is due at a time of its own, and late is counted from then. Beside them
//! four clients write items with 2,000 properties to another container, one after
//! the other as fast as they are answered: each item is created, and then replaced
//! by one that has another value at each path. Rounds without and with them take
//! turns. The same with 100,000 properties, which is as many as fit into an item,
//! for the store in memory.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use super::create::prepare;
use super::item::{CONTAINER, DATABASE, ITEM_BYTES, Items, definition, partition_key};
use super::load::{self, Done, Due, Until, open_loop};
use super::report::{Bar, Report};
use super::{Bench, median};
use crate::Result;
use crate::random::Random;
use crate::server::{Server, dayfly_in_memory};
use crate::wire::Signer;

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(10);

/// How many small writes a second there are, and to how many items.
const RATE: f64 = 200.0;
const SMALL_ITEMS: u64 = 10_000;

/// How many write wide items at once.
const WRITERS: usize = 4;

/// How many different wide items there are, but for their ids.
const VERSIONS: u64 = 4;

/// The container that the wide items go to.
const WIDE: &str = "wide";

/// At most so many times later than alone.
const BAR: f64 = 5.0;

pub(super) fn run(bench: &Bench) -> Result<Report> {
    let mut report = Report::new("wide");
    let data = bench.folder.path().join("data");
    let server = Server::start(&bench.program, &data)?;
    let disk = compare(&server, 2000)?;
    report.note("small writes a second", format!("{RATE:.0}"));
    disk.tell(&mut report, "2,000 properties", Some(Bar::AtMost(BAR)));
    server.stop()?;

    for (properties, name) in
        [(2000, "2,000 properties, in memory"), (100_000, "100,000 properties, in memory")]
    {
        let server = Server::spawn(&mut dayfly_in_memory(&bench.program))?;
        compare(&server, properties)?.tell(&mut report, name, None);
    }
    Ok(report)
}

/// How late small writes are, in the median round.
struct Compared {
    alone: [f64; 2],
    beside: [f64; 2],
    ratio: f64,
    wide: f64,
}

impl Compared {
    fn tell(&self, report: &mut Report, name: &str, bar: Option<Bar>) {
        let ms = |[p50, p99]: [f64; 2]| format!("{p50:.2} ms, {p99:.2} ms");
        report.note(format!("{name}: p50, p99 alone"), ms(self.alone));
        report.note(format!("{name}: p50, p99 beside"), ms(self.beside));
        report.note(format!("{name}: wide writes a second"), format!("{:.1}", self.wide));
        let what = format!("{name}: p99, median of the ratios");
        match bar {
            Some(bar) => report.judge(what, self.ratio, "", bar),
            None => report.note(what, format!("{:.2}", self.ratio)),
        }
    }
}

fn compare(server: &Server, properties: u64) -> Result<Compared> {
    prepare(server)?;
    let path = format!("/dbs/{DATABASE}/colls");
    server.connect()?.must("POST", &path, &[], &definition().replace(CONTAINER, WIDE))?;
    small(server.address, ROUND / 4)?;
    let figures = |due: &Due| [due.p50_ms(), due.p99_ms()];
    let (mut alone, mut beside, mut wides) = (vec![], vec![], vec![]);
    for round in 0..ROUNDS as u64 {
        let quiet = small(server.address, ROUND)?;
        let address = server.address;
        let writers = std::thread::spawn(move || wide(address, properties, round));
        let busy = small(address, ROUND)?;
        let done = writers.join().map_err(|_| "the wide writers panicked")??;
        println!(
            "wide, {properties} properties, round {}: p50 {:.2} ms and p99 {:.2} ms alone, \
             {:.2} ms and {:.2} ms beside {:.1} wide writes a second",
            round + 1,
            quiet.p50_ms(),
            quiet.p99_ms(),
            busy.p50_ms(),
            busy.p99_ms(),
            done.per_second()
        );
        alone.push(figures(&quiet));
        beside.push(figures(&busy));
        wides.push(done.per_second());
    }
    let middle = |rounds: &[[f64; 2]]| {
        let at = |figure: fn(&[f64; 2]) -> f64| median(rounds.iter().map(figure).collect());
        [at(|[p50, _]| *p50), at(|[_, p99]| *p99)]
    };
    let ratios = alone.iter().zip(&beside).map(|([_, alone], [_, beside])| beside / alone);
    Ok(Compared {
        alone: middle(&alone),
        beside: middle(&beside),
        ratio: median(ratios.collect()),
        wide: median(wides),
    })
}

/// Upserts of small items.
fn small(address: SocketAddr, time: Duration) -> Result<Due> {
    let head = Signer::new()?.head("POST", &format!("/dbs/{DATABASE}/colls/{CONTAINER}/docs"));
    let items = Items::new();
    let random = Rc::new(RefCell::new(Random::new(11)));
    open_loop(address, RATE, time, move |buffer| {
        let number = random.borrow_mut().below(SMALL_ITEMS);
        let json = items.json(number, random.borrow_mut().below(1000), ITEM_BYTES);
        upsert(&head, &partition_key(number), &[&json], buffer);
    })
}

/// Wide items, each created and then replaced. Their text is made before: it
/// takes longer than to send it.
fn wide(address: SocketAddr, properties: u64, round: u64) -> Result<Done> {
    let head = Signer::new()?.head("POST", &format!("/dbs/{DATABASE}/colls/{WIDE}/docs"));
    let rests: Vec<String> = (0..VERSIONS).map(|version| rest(properties, version)).collect();
    let mut number = 0;
    load::run(address, WRITERS, Until::Passed(ROUND), move |buffer| {
        // Four at once create, then the same four are replaced.
        let pair = number / (2 * WRITERS as u64) * WRITERS as u64 + number % WRITERS as u64;
        let start = format!("{{\"id\":\"wide-{round}-{pair}\",\"pk\":\"p\"");
        let version = usize::try_from((number / WRITERS as u64) % VERSIONS).unwrap_or_default();
        let rest = rests.get(version).map(String::as_str).unwrap_or_default();
        number += 1;
        upsert(&head, "p", &[&start, rest], buffer);
    })
}

/// What follows an item's id and key: its properties.
fn rest(properties: u64, version: u64) -> String {
    let mut rest = String::new();
    for property in 0..properties {
        rest.push_str(&format!(",\"p{property}\":{}", property * VERSIONS + version));
    }
    rest.push('}');
    rest
}

/// The request that upserts an item of these pieces.
fn upsert(head: &str, key: &str, pieces: &[&str], buffer: &mut Vec<u8>) {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let rest = format!(
        "x-ms-documentdb-is-upsert: true\r\nx-ms-documentdb-partitionkey: [\"{key}\"]\r\n\
         content-length: {length}\r\n\r\n"
    );
    for part in [head, &rest].iter().chain(pieces) {
        buffer.extend_from_slice(part.as_bytes());
    }
}
