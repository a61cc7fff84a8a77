//! The boundary of a life, under the real clock: items are read in a tight loop,
//! on several connections, around the second in which they expire.
//!
//! This is the one test that lets real time pass; all others move a clock.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{Answer, Server, request, send};
use dayfly_model::Timestamp;

const CONNECTIONS: usize = 3;

const ATTEMPTS: usize = 5;

/// How many reads each connection makes once the item is gone.
const READS_AFTER: usize = 300;

/// Dates of the answers with an item, and of those without.
#[derive(Default)]
struct Seen {
    there: Vec<String>,
    gone: Vec<String>,
}

/// Reads an item until it is gone, and then some more. Once anybody got a 404,
/// nobody who asks after that gets anything else.
fn hammer(server: &Server, path: &str, is_gone: &AtomicBool) -> Seen {
    let read = request(server, "GET", path, "");
    let mut client = server.connect();
    let mut seen = Seen::default();
    while seen.gone.len() < READS_AFTER {
        let was_gone = is_gone.load(Ordering::SeqCst);
        client.send(&read);
        let answer = client.answer();
        let date = answer.header("date").unwrap().to_owned();
        match answer.status {
            200 if !was_gone => seen.there.push(date),
            404 => {
                is_gone.store(true, Ordering::SeqCst);
                seen.gone.push(date);
            }
            _ => panic!("it was gone: {was_gone}; now {answer:?}"),
        }
    }
    seen
}

fn hammer_together(server: &Server, path: &str) -> Vec<Seen> {
    let is_gone = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hammers =
            [(); CONNECTIONS].map(|()| scope.spawn(move || hammer(server, path, is_gone)));
        hammers.into_iter().map(|hammer| hammer.join().unwrap()).collect()
    })
}

fn created(answer: &Answer) -> u64 {
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.body.split("\"_ts\":").nth(1).unwrap().trim_end_matches('}').parse().unwrap()
}

#[test]
fn an_item_is_there_until_its_last_second_and_never_after() {
    let server = &Server::start(&[]);
    assert_eq!(send(server, "POST", "/dbs", r#"{"id":"d"}"#).status, 201);
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":2}"#;
    assert_eq!(send(server, "POST", "/dbs/d/colls", container).status, 201);
    let docs = "/dbs/d/colls/c/docs";
    std::thread::scope(|scope| {
        // One by its own ttl, one by the container's.
        for (id, body) in [("a", r#"{"id":"a","pk":"x","ttl":2}"#), ("b", r#"{"id":"b","pk":"x"}"#)]
        {
            scope.spawn(move || {
                // On a busy machine the reads may begin too late to see it.
                let was_there = (0..ATTEMPTS).any(|_| {
                    let ts = created(&send(server, "POST", docs, body));
                    let seen = hammer_together(server, &format!("{docs}/{id}"));
                    check(&seen, ts);
                    seen.iter().all(|seen| !seen.there.is_empty())
                });
                assert!(was_there, "no read was in time");
            });
        }
    });
}

/// No item in an answer of its last second or later, and no item missed before.
fn check(seen: &[Seen], ts: u64) {
    let dates = |from, to| {
        let seconds = from..to;
        seconds.map(|second| Timestamp(second).to_http_date().to_lowercase()).collect::<Vec<_>>()
    };
    let alive = dates(ts, ts + 2);
    for Seen { there, gone } in seen {
        assert!(there.iter().all(|date| alive.contains(date)), "{:?} {ts}", there.last());
        assert!(gone.iter().all(|date| !alive.contains(date)), "{:?} {ts}", gone.first());
    }
}
