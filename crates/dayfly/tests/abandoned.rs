//! Nobody waits long for the queries of others, least of all for those of clients that
//! are gone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "each test file uses its part of the common one")]

mod common;

use common::{Answer, Client, Server, request, send};

/// How many clients ask the heavy query.
const MANY: usize = 64;

/// Fifteen million rows of one item: minutes of work in a build for tests.
const HEAVY: &str = "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a \
                     WHERE x + y + z < 0";

/// A server with one item that has a long array.
fn server(arguments: &[&str]) -> Server {
    let server = Server::start(arguments);
    let list: Vec<u32> = (0..250).collect();
    assert_eq!(send(&server, "POST", "/dbs", r#"{"id":"d"}"#).status, 201);
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#;
    assert_eq!(send(&server, "POST", "/dbs/d/colls", container).status, 201);
    let item = format!(r#"{{"id":"1","pk":"x","a":{list:?}}}"#);
    assert_eq!(send(&server, "POST", "/dbs/d/colls/c/docs", &item).status, 201);
    server
}

fn query(server: &Server, text: &str) -> String {
    let body = format!(r#"{{"query":"{text}"}}"#);
    let request = request(server, "POST", "/dbs/d/colls/c/docs", &body);
    let is_query = "x-ms-documentdb-isquery: True\r\ncontent-type: application/query+json\r\n";
    request.replacen("content-length:", &format!("{is_query}content-length:"), 1)
}

fn ask(server: &Server, text: &str) -> Client {
    let mut client = server.connect();
    client.send(query(server, text));
    client
}

fn ask_many(server: &Server) -> Vec<Client> {
    (0..MANY).map(|_| ask(server, HEAVY)).collect()
}

fn is_cheap_answered(server: &Server) {
    let answer = ask(server, "SELECT VALUE 1").answer();
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// The values of some metrics, together.
fn metric(server: &Server, name: &str) -> u64 {
    let text = server.get("/metrics").body;
    let samples = text.lines().filter(|line| line.starts_with(name));
    samples.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

fn under_way(server: &Server) -> u64 {
    metric(server, "dayfly_queries_running") + metric(server, "dayfly_queries_waiting")
}

fn await_that(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

#[test]
fn heavy_queries_of_clients_that_are_gone_hold_up_nobody() {
    let server = server(&[]);
    let clients = ask_many(&server);
    is_cheap_answered(&server);
    drop(clients);
    is_cheap_answered(&server);
    await_that(|| under_way(&server) == 0);
    assert_eq!(metric(&server, "dayfly_queries_cancelled_total"), MANY as u64);
    assert_eq!(metric(&server, "dayfly_requests_total{status=\"5"), 0);
}

#[test]
fn a_stop_does_not_wait_for_heavy_queries() {
    let server = server(&["--stop-timeout-ms", "200"]);
    let clients = ask_many(&server);
    await_that(|| under_way(&server) == MANY as u64);
    server.terminate();
    for mut client in clients {
        client.answer().is_error(503, "ServiceUnavailable");
    }
    assert!(server.ended().success());
}

#[test]
fn nor_for_those_of_clients_that_are_gone() {
    let server = server(&[]);
    drop(ask_many(&server));
    server.terminate();
    assert!(server.ended().success());
}

#[test]
fn a_query_has_a_time() {
    let server = server(&["--query-timeout-ms", "200"]);
    let late = ask(&server, HEAVY).answer();
    late.is_error(408, "RequestTimeout");
    assert!(late.body.contains("took too long"), "{late:?}");
}

/// Who has nothing more to say may still want the answer, if it does not take long.
#[test]
fn a_client_that_closed_its_side_is_answered_what_is_quick() {
    let server = server(&[]);
    let half_closed = |text: &str| -> Answer {
        let mut client = ask(&server, text);
        client.end();
        let answer = client.answer();
        assert!(client.is_closed());
        answer
    };
    for quick in ["SELECT VALUE 1", "SELECT VALUE c.id FROM c"] {
        let answer = half_closed(quick);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let given_up = half_closed(HEAVY);
    given_up.is_error(408, "RequestTimeout");
    assert!(given_up.body.contains("Keep it open"), "{given_up:?}");
    // Two in one go, and then the end.
    let mut client = server.connect();
    client.send([query(&server, "SELECT VALUE 1"), query(&server, "SELECT VALUE 2")].concat());
    client.end();
    assert!(client.answer().body.contains("[1]"));
    assert!(client.answer().body.contains("[2]"));
    assert!(client.is_closed());
}
