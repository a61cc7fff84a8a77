//! `direct`: what point reads and creates cost over direct mode, against HTTP/1.1 with
//! connections kept, over TLS as direct mode is and in clear text; and what a direct
//! connection takes that asks nothing any more.
//!
//! Always 64 requests are on their way: over direct on one connection, over HTTP on 64.
//! The same server answers all three ways, in turns.

mod channel;
mod frames;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use self::channel::Channel;
use self::frames::Place;
use super::create::prepare;
use super::fill::fill;
use super::item::{CONTAINER, Creates, DATABASE, ITEM_BYTES, Items, read_request};
use super::load::{Done, Kept, Until};
use super::report::{Bar, Report};
use super::{Bench, median};
use crate::direct::trust;
use crate::random::Random;
use crate::server::Server;
use crate::wire::Signer;
use crate::{Result, failed};

const ITEMS: u64 = 100_000;
const IN_FLIGHT: usize = 64;
const ROUNDS: u64 = 15;
const ROUND: Duration = Duration::from_secs(2);
/// Until the items are in the cache, and the recount after the start is over.
const WARM_UP: Duration = Duration::from_secs(10);
const CREATES: u64 = 6_000;
const CREATE_ROUNDS: u64 = 9;

const RATIO_BAR: f64 = 1.0;
const CONNECTION_KIB_BAR: f64 = 48.0;

/// Some are there before it is measured, so that what the first ones take for all is not
/// theirs. Not so many that we run out of files.
const CONNECTIONS_BEFORE: usize = 100;
const CONNECTIONS: usize = 800;

/// An idle client needs no more.
const IDLE_READ_BYTES: usize = 4096;

pub(super) fn run(bench: &Bench) -> Result<Report> {
    let data = bench.folder.path().join("data");
    let items = Rc::new(Items::new());
    fill(&data, &items, ITEMS)?;
    let server = Server::start(&bench.program, &data)?;
    let mut ways = Ways::open(&server)?;
    let mut report = Report::new("direct");
    reads(&server, &mut ways, &mut report)?;
    creates(&server, &mut ways, &items, &mut report)?;
    drop(ways);
    server.stop()?;

    let server = Server::start(&bench.program, &bench.folder.path().join("idle"))?;
    prepare(&server)?;
    let connection = connection_bytes(&server)? / 1024.0;
    let bar = Bar::AtMost(CONNECTION_KIB_BAR);
    report.judge("memory of an idle direct connection", connection, " KiB", bar);
    Ok(report)
}

/// The resource id of the container, as text and as bytes.
fn container_rid(server: &Server) -> Result<(String, Vec<u8>)> {
    let path = format!("/dbs/{DATABASE}/colls/{CONTAINER}");
    let definition = server.connect()?.must("GET", &path, &[], "")?.json();
    let rid = definition.get("_rid").and_then(|rid| rid.as_str()).ok_or("no _rid")?.to_owned();
    let bytes = STANDARD.decode(rid.replace('-', "/")).map_err(failed("the _rid"))?;
    Ok((rid, bytes))
}

/// All connections, open from the first round to the last.
struct Ways {
    direct: Channel,
    encrypted: Kept<TlsStream<TcpStream>>,
    clear: Kept<TcpStream>,
    rid: (String, Vec<u8>),
}

impl Ways {
    fn open(server: &Server) -> Result<Ways> {
        let config = trust(server)?;
        let mut encrypted = Kept::encrypted(server.address, IN_FLIGHT, &config)?;
        let mut clear = Kept::in_clear(server.address, IN_FLIGHT)?;
        // Who has asked once may say nothing for long; before that a server is not so patient.
        let request = read_request(&Signer::new()?, 0);
        encrypted.ask_each(&request)?;
        clear.ask_each(&request)?;
        let direct = Channel::for_load(server.address, &config)?;
        Ok(Ways { direct, encrypted, clear, rid: container_rid(server)? })
    }
}

/// What each way came to, round by round.
#[derive(Default)]
struct Figures {
    cpu: Vec<f64>,
    rate: Vec<f64>,
}

impl Figures {
    /// The server's CPU of a request of a load, in microseconds.
    fn measure(&mut self, server: &Server, load: impl FnOnce() -> Result<Done>) -> Result<()> {
        let before = server.cpu()?;
        let done = load()?;
        let cpu = server.cpu_since(before)?.as_secs_f64() * 1e6 / done.requests as f64;
        self.cpu.push(cpu);
        self.rate.push(done.per_second());
        Ok(())
    }

    fn last(&self) -> String {
        let (cpu, rate) = (self.cpu.last(), self.rate.last());
        format!("{:.2} us at {:.0}/s", cpu.unwrap_or(&f64::NAN), rate.unwrap_or(&f64::NAN))
    }

    /// Of the rounds side by side: what else the machine does weighs on both sides of one.
    fn ratio(&self, other: &Figures) -> f64 {
        median(self.cpu.iter().zip(&other.cpu).map(|(ours, theirs)| ours / theirs).collect())
    }
}

/// The figures of the three ways.
#[derive(Default)]
struct Sides {
    direct: Figures,
    encrypted: Figures,
    clear: Figures,
}

impl Sides {
    fn tell(&self, what: &str, round: u64) {
        println!(
            "{what}, round {round}: direct {}, HTTP over TLS {}, in clear text {}",
            self.direct.last(),
            self.encrypted.last(),
            self.clear.last()
        );
    }

    fn report(self, what: &str, report: &mut Report) {
        let (over_tls, in_clear) =
            (self.direct.ratio(&self.encrypted), self.direct.ratio(&self.clear));
        for (name, figures) in [
            ("direct", self.direct),
            ("HTTP/1.1 over TLS", self.encrypted),
            ("HTTP/1.1 in clear text", self.clear),
        ] {
            let (cpu, rate) = (median(figures.cpu), median(figures.rate));
            report.note(format!("{what}: server CPU, {name}"), format!("{cpu:.2} us"));
            report.note(format!("{what}: a second, {name}"), format!("{rate:.0}"));
        }
        let bar = Bar::AtMost(RATIO_BAR);
        report.judge(format!("{what}: against HTTP/1.1 over TLS"), over_tls, "", bar);
        report.judge(format!("{what}: against HTTP/1.1 in clear text"), in_clear, "", bar);
    }
}

fn reads(server: &Server, ways: &mut Ways, report: &mut Report) -> Result<()> {
    let signer = Signer::new()?;
    let place = Place { signer: &signer, rid: (&ways.rid.0, &ways.rid.1) };
    let frames: Rc<Vec<Vec<u8>>> = Rc::new((0..ITEMS).map(|number| place.read(number)).collect());
    let requests = (0..ITEMS).map(|number| read_request(&signer, number)).collect();
    let requests: Rc<Vec<Vec<u8>>> = Rc::new(requests);
    let mut sides = Sides::default();
    for round in 0..=ROUNDS {
        let until = Until::Passed(if round == 0 { WARM_UP } else { ROUND });
        let any = |of: &Rc<Vec<Vec<u8>>>| any_of(Rc::clone(of), round);
        sides.direct.measure(server, || ways.direct.run(IN_FLIGHT, until, any(&frames)))?;
        sides.encrypted.measure(server, || ways.encrypted.run(until, any(&requests)))?;
        sides.clear.measure(server, || ways.clear.run(until, any(&requests)))?;
        sides.tell("read", round);
        if round == 0 {
            sides = Sides::default();
        }
    }
    sides.report("read", report);
    Ok(())
}

/// Puts one of them into the buffer, another each time.
fn any_of(requests: Rc<Vec<Vec<u8>>>, seed: u64) -> impl FnMut(&mut Vec<u8>) + 'static {
    let mut random = Random::new(seed);
    move |buffer| {
        let place = usize::try_from(random.below(requests.len() as u64)).unwrap_or(0);
        buffer.extend_from_slice(requests.get(place).map(Vec::as_slice).unwrap_or_default());
    }
}

fn creates(server: &Server, ways: &mut Ways, items: &Rc<Items>, report: &mut Report) -> Result<()> {
    let signer = Signer::new()?;
    let place = Place { signer: &signer, rid: (&ways.rid.0, &ways.rid.1) };
    let next = Rc::new(Cell::new(ITEMS));
    let mut sides = Sides::default();
    for round in 0..=CREATE_ROUNDS {
        let until = Until::Sent(CREATES);
        let (frames, items_of_frames) = (place.creates(), new_items(items, &next));
        let create = with_json(items_of_frames, move |number, json, frame| {
            frames.put(number, json, frame);
        });
        sides.direct.measure(server, || ways.direct.run(IN_FLIGHT, until, create))?;
        let over_http = || {
            let requests = Creates::new(&signer);
            with_json(new_items(items, &next), move |number, json, request| {
                requests.request(number, json, request);
            })
        };
        sides.encrypted.measure(server, || ways.encrypted.run(until, over_http()))?;
        sides.clear.measure(server, || ways.clear.run(until, over_http()))?;
        sides.tell("create", round);
        if round == 0 {
            sides = Sides::default();
        }
    }
    sides.report("create", report);
    Ok(())
}

/// Items that are not there yet, by number.
fn new_items(items: &Rc<Items>, next: &Rc<Cell<u64>>) -> impl FnMut(&mut String) -> u64 + 'static {
    let (items, next) = (Rc::clone(items), Rc::clone(next));
    move |json| {
        let number = next.get();
        next.set(number + 1);
        items.put_json(number, 0, ITEM_BYTES, json);
        number
    }
}

/// Puts a request for each of them into the buffer.
fn with_json(
    mut item: impl FnMut(&mut String) -> u64 + 'static,
    mut request: impl FnMut(u64, &str, &mut Vec<u8>) + 'static,
) -> impl FnMut(&mut Vec<u8>) + 'static {
    let mut json = String::new();
    move |buffer| {
        let number = item(&mut json);
        request(number, &json, buffer);
    }
}

/// What a connection takes that has asked once and is kept.
fn connection_bytes(server: &Server) -> Result<f64> {
    let (config, rid) = (trust(server)?, container_rid(server)?);
    let signer = Signer::new()?;
    let place = Place { signer: &signer, rid: (&rid.0, &rid.1) };
    let mut first = Channel::open(server.address, &config, IDLE_READ_BYTES)?;
    let mut frame = Vec::new();
    place.creates().put(0, &Items::new().json(0, 0, ITEM_BYTES), &mut frame);
    first.ask(&frame)?;
    let read = place.read(0);
    let connect = |_| {
        let mut channel = Channel::open(server.address, &config, IDLE_READ_BYTES)?;
        channel.ask(&read)?;
        Ok(channel)
    };
    let _before: Vec<Channel> = (0..CONNECTIONS_BEFORE).map(connect).collect::<Result<_>>()?;
    let before = server.rss_bytes()?;
    let _idle: Vec<Channel> = (0..CONNECTIONS).map(connect).collect::<Result<_>>()?;
    let grown = server.rss_bytes()?.saturating_sub(before);
    Ok(grown as f64 / CONNECTIONS as f64)
}
