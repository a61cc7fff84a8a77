//! `cancel`: whether anybody notices heavy queries that nobody waits for.
//!
//! Point reads and small queries come in at a fixed rate, whether or not the server
//! keeps up: each is due at a time of its own, and late is counted from then. Beside
//! them 64 clients ask a join of three arrays that would take ten seconds of CPU, go
//! away after a second without an answer, and come again at once. Rounds without them
//! and with them take turns.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::fill::fill;
use super::item::{CONTAINER, DATABASE, Items, id, partition_key};
use super::load::open_loop;
use super::read::{Requests, requests};
use super::report::{Bar, Report};
use super::{Bench, median};
use crate::random::Random;
use crate::server::Server;
use crate::wire::{Signer, partition};
use crate::{Result, failed};

const ITEMS: u64 = 100_000;
const ROUNDS: u64 = 7;
const ROUND: Duration = Duration::from_secs(6);
const RATE: f64 = 500.0;

/// How many clients go away and come again, and after how long.
const CROWD: u32 = 64;
const STAY: Duration = Duration::from_secs(1);

/// How many elements the arrays of the join have: 17 million rows.
const ELEMENTS: u64 = 258;

/// At most so many times the p99 without them.
const BAR: f64 = 3.0;

pub(super) fn run(bench: &Bench) -> Result<Report> {
    let data = bench.folder.path().join("data");
    fill(&data, &Items::new(), ITEMS)?;
    let server = Server::start(&bench.program, &data)?;
    let path = format!("/dbs/{DATABASE}/colls/{CONTAINER}/docs");
    let list: Vec<u64> = (0..ELEMENTS).collect();
    let item = format!("{{\"id\":\"heavy\",\"pk\":\"heavy\",\"a\":{list:?}}}");
    server.connect()?.must("POST", &path, &[partition("heavy")], &item)?;

    let reads = requests(ITEMS)?;
    let queries = small_queries()?;
    let kinds = [("point reads", &reads), ("small queries", &queries)];
    for (_, requests) in kinds {
        p99(&server, requests, 0)?;
    }
    let mut asked = 0;
    let mut measured = [(vec![], vec![], vec![]), (vec![], vec![], vec![])];
    for round in 1..=ROUNDS {
        for ((what, requests), (alone, beside, ratios)) in kinds.iter().zip(&mut measured) {
            let without = p99(&server, requests, round)?;
            let crowd = Crowd::come(server.address)?;
            let with = p99(&server, requests, round)?;
            asked += crowd.leave()?;
            println!(
                "cancel, round {round}: {what} p99 {without:.2} ms alone, {with:.2} ms beside"
            );
            alone.push(without);
            beside.push(with);
            ratios.push(with / without);
        }
    }
    let mut report = Report::new("cancel");
    report.note("heavy queries that nobody waited for", format!("{asked}"));
    let cancelled = server.metric("dayfly_queries_cancelled_total")?;
    report.note("of them given up", format!("{cancelled:.0}"));
    for ((what, _), (alone, beside, ratios)) in kinds.iter().zip(measured) {
        report.note(format!("{what}: p99 without them"), format!("{:.2} ms", median(alone)));
        report.note(format!("{what}: p99 beside them"), format!("{:.2} ms", median(beside)));
        let ratio = format!("{what}: median of the ratios");
        report.judge(ratio, median(ratios), "", Bar::AtMost(BAR));
    }
    Ok(report)
}

/// Queries for one item each, by its id.
fn small_queries() -> Result<Requests> {
    let signer = Signer::new()?;
    let query = |number| {
        let text = format!("SELECT * FROM c WHERE c.id = '{}'", id(number));
        query_request(&signer, &partition_key(number), &text)
    };
    Ok(Rc::new((0..ITEMS).map(query).collect()))
}

fn query_request(signer: &Signer, key: &str, query: &str) -> Vec<u8> {
    let head = signer.head("POST", &format!("/dbs/{DATABASE}/colls/{CONTAINER}/docs"));
    let body = format!("{{\"query\":\"{query}\"}}");
    let length = body.len();
    format!(
        "{head}x-ms-documentdb-isquery: True\r\ncontent-type: application/query+json\r\n\
         x-ms-documentdb-partitionkey: [\"{key}\"]\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// How late 99 of 100 requests were at most, in milliseconds.
fn p99(server: &Server, requests: &Requests, seed: u64) -> Result<f64> {
    let requests = Rc::clone(requests);
    let mut random = Random::new(seed);
    let due = open_loop(server.address, RATE, ROUND, move |buffer| {
        let place = usize::try_from(random.below(requests.len() as u64)).unwrap_or(0);
        buffer.extend_from_slice(requests.get(place).map(Vec::as_slice).unwrap_or_default());
    })?;
    Ok(due.p99_ms())
}

/// Clients that ask and do not wait for the answer.
struct Crowd {
    leaves: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    thread: JoinHandle<Result<()>>,
}

impl Crowd {
    fn come(address: SocketAddr) -> Result<Crowd> {
        let (leaves, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let query = "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a \
                     WHERE x + y + z < 0";
        let request = Arc::new(query_request(&Signer::new()?, "heavy", query));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed("starting the crowd"))?;
        let shared = (Arc::clone(&leaves), Arc::clone(&asked));
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let one = |number| {
                    let (leaves, asked) = (Arc::clone(&shared.0), Arc::clone(&shared.1));
                    tokio::spawn(visit(address, number, Arc::clone(&request), leaves, asked))
                };
                let tasks: Vec<_> = (0..CROWD).map(one).collect();
                for task in tasks {
                    task.await.map_err(failed("a client"))??;
                }
                Ok(())
            })
        });
        Ok(Crowd { leaves, asked, thread })
    }

    /// How many queries were asked.
    fn leave(self) -> Result<u64> {
        self.leaves.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the crowd panicked".to_owned())??;
        Ok(self.asked.load(Ordering::Relaxed))
    }
}

/// A client that comes again and again. They do not all come at the same moment.
async fn visit(
    address: SocketAddr,
    number: u32,
    request: Arc<Vec<u8>>,
    leaves: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
) -> Result<()> {
    tokio::time::sleep(STAY * number / CROWD).await;
    while !leaves.load(Ordering::Relaxed) {
        let mut stream = TcpStream::connect(address).await.map_err(failed("connecting"))?;
        stream.write_all(&request).await.map_err(failed("sending"))?;
        asked.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(STAY).await;
    }
    Ok(())
}
