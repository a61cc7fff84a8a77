//! No client holds the server: each limit, at its edge.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]
#![allow(dead_code, reason = "each test file uses its part of the common one")]

mod common;

use bytes::Bytes;
use common::{Answer, Client, Server, request, send};
use http::Request;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const HEAD_BYTES_MAX: usize = 64 * 1024;
const URL_BYTES_MAX: usize = 16 * 1024;
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A GET whose head has `bytes` bytes.
fn head_of(bytes: usize) -> String {
    let frame = "GET /alive HTTP/1.1\r\nhost: localhost\r\na: \r\n\r\n";
    let padding = "x".repeat(bytes - frame.len());
    frame.replace("a: ", &format!("a: {padding}"))
}

fn answer_to(server: &Server, request: impl AsRef<[u8]>) -> Answer {
    let mut client = server.connect();
    client.send(request);
    client.answer()
}

#[test]
fn a_head_has_a_largest_size() {
    let server = Server::start(&[]);
    assert_eq!(answer_to(&server, head_of(HEAD_BYTES_MAX - 1)).status, 200);
    assert_eq!(answer_to(&server, head_of(HEAD_BYTES_MAX)).status, 200);
    let refused = answer_to(&server, head_of(HEAD_BYTES_MAX + 1));
    refused.is_error(431, "RequestHeaderFieldsTooLarge");
    assert_eq!(refused.header("connection"), Some("close"));

    let endless =
        format!("GET /alive HTTP/1.1\r\nhost: localhost\r\na: {}", "x".repeat(HEAD_BYTES_MAX + 1));
    answer_to(&server, endless).is_error(431, "RequestHeaderFieldsTooLarge");
}

#[test]
fn a_head_has_a_largest_number_of_headers() {
    let server = Server::start(&[]);
    let with = |count: usize| {
        let headers = "a: b\r\n".repeat(count);
        answer_to(&server, format!("GET /alive HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n"))
    };
    // And the host.
    assert_eq!(with(99).status, 200);
    with(100).is_error(431, "RequestHeaderFieldsTooLarge");
}

#[test]
fn a_url_has_a_largest_size() {
    let server = Server::start(&[]);
    let with = |bytes: usize| server.get(&format!("/alive?{}", "x".repeat(bytes - 7)));
    assert_eq!(with(URL_BYTES_MAX).status, 200);
    with(URL_BYTES_MAX + 1).is_error(431, "RequestHeaderFieldsTooLarge");
    with(HEAD_BYTES_MAX - 100).is_error(431, "RequestHeaderFieldsTooLarge");
}

/// To a page that needs no key, so that the body is read.
fn post(client: &mut Client, bytes: usize) -> Answer {
    client.send(format!(
        "POST /alive HTTP/1.1\r\nhost: localhost\r\ncontent-length: {bytes}\r\n\r\n"
    ));
    client.send(vec![b' '; bytes]);
    client.answer()
}

fn post_in_chunks(client: &mut Client, bytes: usize) -> Answer {
    client.send("POST /alive HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n");
    client.send(format!("{bytes:x}\r\n{}\r\n0\r\n\r\n", " ".repeat(bytes)));
    client.answer()
}

#[test]
fn a_body_has_a_largest_size() {
    let server = Server::start(&[]);
    for send in [post, post_in_chunks] {
        let mut client = server.connect();
        send(&mut client, BODY_BYTES_MAX - 1).is_error(405, "MethodNotAllowed");
        send(&mut client, BODY_BYTES_MAX).is_error(405, "MethodNotAllowed");
        let refused = send(&mut client, BODY_BYTES_MAX + 1);
        refused.is_error(413, "RequestEntityTooLarge");
        assert_eq!(refused.header("connection"), Some("close"));
        client.end();
        assert!(client.is_closed());
    }
}

/// Most clients read no answer before they have sent all of a body, some slowly.
#[test]
fn who_sends_far_too_much_reads_why_it_was_refused() {
    let server = Server::start(&["--linger-timeout-ms", "0"]);
    let id = "7d1b2bb1-98a6-4c8e-9b5e-1a2f3c4d5e6f";
    let mut client = server.connect();
    let bytes = 20_000_000;
    client.send(format!(
        "POST /dbs HTTP/1.1\r\nhost: localhost\r\nx-ms-activity-id: {id}\r\ncontent-length: {bytes}\r\n\r\n"
    ));
    client.send(vec![b' '; bytes]);
    let refused = client.answer();
    refused.is_error(413, "RequestEntityTooLarge");
    assert_eq!(refused.header("x-ms-activity-id"), Some(id));
    client.end();
    assert!(client.is_closed());
}

/// Nobody without the key makes the server keep a part of a body.
#[test]
fn a_body_in_pieces_is_not_waited_for_without_a_signature() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.send("POST /dbs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4000000\r\n\r\n{\"id\":");
    client.answer().is_error(401, "Unauthorized");
}

#[test]
fn a_body_that_would_be_too_large_is_refused_before_it_comes() {
    let server = Server::start(&[]);
    let large = BODY_BYTES_MAX + 1;
    for expect in ["", "expect: 100-continue\r\n"] {
        let head = format!(
            "POST /dbs HTTP/1.1\r\nhost: localhost\r\ncontent-length: {large}\r\n{expect}\r\n"
        );
        answer_to(&server, head).is_error(413, "RequestEntityTooLarge");
    }
}

#[test]
fn half_a_head_is_closed() {
    let server = Server::start(&["--header-timeout-ms", "200"]);
    for half in ["P", "PRI * HTTP", "G", "GET / HT", "GET / HTTP/1.1\r\nhost: localhost\r\n"] {
        let mut client = server.connect();
        client.send(half);
        client.answer().is_error(408, "RequestTimeout");
        assert!(client.is_closed(), "{half}");
    }
    assert!(server.connect().is_closed());
    // The start of a TLS handshake; its rest never comes.
    let mut client = server.connect();
    client.send([0x16, 0x03, 0x01]);
    assert!(client.is_closed());
}

#[test]
fn half_a_second_head_is_closed_too() {
    let server = Server::start(&["--header-timeout-ms", "200"]);
    let mut client = server.connect();
    client.get("/alive");
    assert_eq!(client.answer().status, 200);
    client.send("GET / HT");
    client.answer().is_error(408, "RequestTimeout");
    assert!(client.is_closed());
}

#[test]
fn an_http2_client_that_asks_nothing_is_closed() {
    let server = Server::start(&["--header-timeout-ms", "200", "--linger-timeout-ms", "100"]);
    let mut client = server.connect();
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    // Frames of settings and farewell come before the end.
    assert!(client.is_closed_in_the_end());
}

#[test]
fn many_slow_clients_hold_up_nobody_and_are_closed() {
    let server = Server::start(&["--header-timeout-ms", "500"]);
    let half = || {
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nhost: localhost\r\na: ");
        client
    };
    let mut slow: Vec<_> = std::iter::repeat_with(half).take(200).collect();
    assert_eq!(server.get("/ready").status, 200);
    for client in &mut slow {
        client.answer().is_error(408, "RequestTimeout");
        assert!(client.is_closed());
    }
}

#[test]
fn a_body_that_does_not_come_is_given_up() {
    for setting in ["--body-progress-timeout-ms", "--body-timeout-ms"] {
        let server = Server::start(&[setting, "200"]);
        let mut client = server.connect();
        client.send("POST /alive HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\n{}");
        client.answer().is_error(408, "RequestTimeout");
        client.end();
        assert!(client.is_closed());
    }
}

#[test]
fn a_silent_connection_is_closed_in_the_end() {
    let server = Server::start(&["--idle-timeout-ms", "200"]);
    let mut client = server.connect();
    client.get("/alive");
    assert_eq!(client.answer().status, 200);
    assert!(client.is_closed());
}

#[test]
fn silence_between_requests_may_last_longer_than_a_head() {
    let server = Server::start(&["--header-timeout-ms", "100"]);
    let mut client = server.connect();
    client.get("/alive");
    assert_eq!(client.answer().status, 200);
    // When this one is closed, the time for a head has passed for both.
    assert!(server.connect().is_closed());
    client.get("/alive");
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_client_that_does_not_take_its_answers_is_closed() {
    let server = Server::start(&["--write-timeout-ms", "200"]);
    let mut client = server.connect();
    let requests = "GET /_explorer/emulator.pem HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1000);
    let error = loop {
        if let Err(error) = client.try_send(&requests) {
            break error;
        }
    };
    let closed = [std::io::ErrorKind::ConnectionReset, std::io::ErrorKind::BrokenPipe];
    assert!(closed.contains(&error.kind()), "{error}");
}

/// A number on the page of the metrics.
fn metric(server: &Server, name: &str) -> u64 {
    let page = server.get("/metrics").body;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is not on the page")).parse().unwrap()
}

const CUT: &str = "dayfly_slow_readers_cut_total";
const UNREAD: &str = "dayfly_unread_answer_bytes";

/// An item of nearly 2 MB, and the request that reads it.
fn large_item(server: &Server) -> String {
    assert_eq!(send(server, "POST", "/dbs", r#"{"id":"d"}"#).status, 201);
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    assert_eq!(send(server, "POST", "/dbs/d/colls", container).status, 201);
    let item = format!(r#"{{"id":"a","pk":"x","text":"{}"}}"#, "x".repeat(2_000_000));
    assert_eq!(send(server, "POST", "/dbs/d/colls/c/docs", &item).status, 201);
    request(server, "GET", "/dbs/d/colls/c/docs/a", "")
}

/// More than the system takes for a client that does not read.
const ASKED: usize = 8;

#[test]
fn answers_that_nobody_reads_have_a_limit_and_the_slowest_goes_first() {
    let server = Server::start(&[]);
    let read = large_item(&server);
    let asked = read.repeat(ASKED - 1) + &read.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    let mut quick = server.connect();
    let mut slow = Vec::new();
    while metric(&server, CUT) == 0 {
        assert!(slow.len() < 400, "{} bytes are held, nobody was cut", metric(&server, UNREAD));
        let mut client = server.connect();
        client.send(&asked);
        slow.push(client);
        // Who reads goes on.
        quick.send(&read);
        assert_eq!(quick.answer().status, 200);
    }
    let mut last = slow.pop().unwrap();
    for _ in 0..ASKED {
        assert_eq!(last.answer().status, 200);
    }
    // One of the first did not get all.
    let whole = ASKED * 2_000_000;
    assert!(slow.iter_mut().take(5).any(|client| client.bytes_until_closed() < whole));
    quick.send(&read);
    assert_eq!(quick.answer().status, 200);

    // When they are gone, nothing is held for them.
    drop(slow);
    while metric(&server, UNREAD) > 0 {}
}

/// The head of `read` for HTTP/2.
fn as_http_2(read: &str) -> Request<Full<Bytes>> {
    let mut request = Request::get("http://localhost/dbs/d/colls/c/docs/a");
    for (name, value) in read.lines().filter_map(|line| line.split_once(": ")) {
        if name.starts_with("x-ms-") || name == "authorization" {
            request = request.header(name, value);
        }
    }
    request.body(Full::default()).unwrap()
}

#[tokio::test]
async fn answers_that_nobody_reads_have_a_limit_in_http_2_too() {
    let server = Server::start(&[]);
    let read = as_http_2(&large_item(&server));
    let mut connections = JoinSet::new();
    // Kept, and not read.
    let mut answers = Vec::new();
    while metric(&server, CUT) == 0 {
        assert!(answers.len() < 1000, "{} are held, nobody was cut", metric(&server, UNREAD));
        let stream = TokioIo::new(TcpStream::connect(server.address()).await.unwrap());
        let (mut client, connection) =
            http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        connections.spawn(connection);
        for _ in 0..50 {
            let answer = client.send_request(read.clone()).await.unwrap();
            assert_eq!(answer.status(), 200);
            answers.push(answer);
        }
    }
    // One ends although its client would go on, the others do go on.
    let _ = connections.join_next().await.unwrap();
    assert_eq!(server.get("/alive").status, 200);
    assert_eq!(metric(&server, CUT), 1);
}

#[test]
fn only_so_many_connections_are_open_at_one_time() {
    let server = Server::start(&["--max-connections", "2"]);
    let open = || {
        let mut client = server.connect();
        client.get("/alive");
        assert_eq!(client.answer().status, 200);
        client
    };
    let (first, mut second) = (open(), open());
    assert!(server.connect().is_closed());
    second.get("/alive");
    assert_eq!(second.answer().status, 200);

    drop(first);
    loop {
        let mut client = server.connect();
        if client.try_send("GET /alive HTTP/1.1\r\nhost: localhost\r\n\r\n").is_ok()
            && !client.is_turned_away()
        {
            break;
        }
    }
}
