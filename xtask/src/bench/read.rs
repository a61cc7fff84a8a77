//! `read`: what a point read costs, against a server that only answers.
//!
//! Random items of 1 KB among 100 thousand, over HTTP/1.1 in clear text with
//! connections kept and requests signed. The bare server sends the very bytes
//! that dayfly sent. Rounds take turns; the medians are compared.

use std::net::SocketAddr;
use std::ops::Range;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use super::fill::fill;
use super::item::{Items, id, partition_key, read_request};
use super::load::{self, Until};
use super::report::{Bar, Report};
use super::{Bench, median};
use crate::random::Random;
use crate::server::Server;
use crate::wire::{Signer, partition};
use crate::{Result, failed};

const ITEMS: u64 = 100_000;
/// Many short ones: a machine that others use is slow for seconds at a time.
pub(super) const ROUNDS: u64 = 21;
pub(super) const ROUND: Duration = Duration::from_secs(1);
/// Until the items are in the cache, and the recount after the start is over.
const WARM_UP: Duration = Duration::from_secs(10);
const CONNECTIONS: usize = 32;
const HOT_ITEMS: usize = 10_000;

/// At most this much of the bare server's CPU.
const BAR: f64 = 1.0 / 0.6;

/// Requests that are ready to be sent.
pub(super) type Requests = Rc<Vec<Vec<u8>>>;

pub(super) fn run(bench: &Bench) -> Result<Report> {
    let data = bench.folder.path().join("data");
    fill(&data, &Items::new(), ITEMS)?;
    let server = Server::start(&bench.program, &data)?;
    let bare = start_bare(bench, &server)?;
    let requests = requests(ITEMS)?;
    for server in [&server, &bare] {
        read(server, &requests, WARM_UP, 0)?;
    }
    let (mut ours, mut theirs, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let (cpu, rate) = read(&server, &requests, ROUND, round)?;
        let (bare_cpu, bare_rate) = read(&bare, &requests, ROUND, round)?;
        println!(
            "read, round {round}: dayfly {cpu:.2} us at {rate:.0}/s, bare hyper {bare_cpu:.2} us \
             at {bare_rate:.0}/s"
        );
        ours.push(cpu);
        theirs.push(bare_cpu);
        rates.push(rate);
    }
    let (hot, _) = read(&server, &hot(&requests), ROUND, 0)?;
    let (ours, theirs) = (median(ours), median(theirs));
    let mut report = Report::new("read");
    report.note("requests a second, client on the same cores", format!("{:.0}", median(rates)));
    report.note("server CPU of a read, dayfly", format!("{ours:.2} us"));
    report.note("the same, 10 thousand items that are all cached", format!("{hot:.2} us"));
    report.note("server CPU of a read, bare hyper", format!("{theirs:.2} us"));
    report.judge("ratio", ours / theirs, "", Bar::AtMost(BAR));
    Ok(report)
}

/// A signed read of each of the `items`.
pub(super) fn requests(items: u64) -> Result<Requests> {
    let signer = Signer::new()?;
    Ok(Rc::new((0..items).map(|number| read_request(&signer, number)).collect()))
}

/// Few enough to be in the record cache.
fn hot(requests: &Requests) -> Requests {
    Rc::new(requests.iter().take(HOT_ITEMS).cloned().collect())
}

/// Reads for a while. Returns the server's CPU of a request, in microseconds,
/// and the requests a second.
pub(super) fn read(
    server: &Server,
    requests: &Requests,
    time: Duration,
    seed: u64,
) -> Result<(f64, f64)> {
    ask(server, CONNECTIONS, requests, time, seed)
}

/// The same with any requests, over so many connections.
pub(super) fn ask(
    server: &Server,
    connections: usize,
    requests: &Requests,
    time: Duration,
    seed: u64,
) -> Result<(f64, f64)> {
    let before = server.cpu()?;
    let done = send(server.address, connections, requests, time, seed)?;
    let cpu = server.cpu_since(before)?;
    Ok((cpu.as_secs_f64() * 1e6 / done.requests as f64, done.per_second()))
}

/// Reads each item once.
pub(super) fn read_each(server: &Server, requests: &Requests) -> Result<()> {
    read_some(server, requests, 0..requests.len())
}

/// Reads the items at some places once.
pub(super) fn read_some(server: &Server, requests: &Requests, places: Range<usize>) -> Result<()> {
    let (requests, mut place) = (Rc::clone(requests), places.start);
    let count = Until::Sent(places.len() as u64);
    load::run(server.address, CONNECTIONS, count, move |buffer| {
        buffer.extend_from_slice(requests.get(place).map(Vec::as_slice).unwrap_or_default());
        place += 1;
    })?;
    Ok(())
}

fn send(
    address: SocketAddr,
    connections: usize,
    requests: &Requests,
    time: Duration,
    seed: u64,
) -> Result<load::Done> {
    let requests = Rc::clone(requests);
    let mut random = Random::new(seed);
    load::run(address, connections, Until::Passed(time), move |buffer| {
        let place = usize::try_from(random.below(requests.len() as u64)).unwrap_or(0);
        buffer.extend_from_slice(requests.get(place).map(Vec::as_slice).unwrap_or_default());
    })
}

/// A bare server that says what dayfly says to a read.
fn start_bare(bench: &Bench, server: &Server) -> Result<Server> {
    let path = format!("/dbs/bench/colls/items/docs/{}", id(1));
    let answer = server.connect()?.must("GET", &path, &[partition(&partition_key(1))], "")?;
    let file = bench.folder.path().join("response");
    let response = [answer.head.as_bytes(), &answer.body].concat();
    std::fs::write(&file, response).map_err(failed("writing the response"))?;
    let ours = std::env::current_exe().map_err(failed("looking for our own program"))?;
    Server::spawn(Command::new(ours).args(["bare", "--response"]).arg(file))
}
