//! Nobody is waited for without an end: not for a first frame, not for the rest of one, not
//! for a client that does not read.

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::json;

use super::client::{CREATE, Channel, Place, READ, Wire, context};
use super::common::Server;

/// Much shorter than what is waited for.
const MOMENT: Duration = Duration::from_millis(50);

#[test]
fn who_says_nothing_after_the_handshake_is_closed() {
    let server = Server::start(&["--header-timeout-ms", "200"]);
    Wire::open(&server).is_closed();
}

#[test]
fn half_a_context_is_closed() {
    let server = Server::start(&["--header-timeout-ms", "200"]);
    let context = context(1);
    for length in [8, 23, 24, context.len() - 1] {
        let mut wire = Wire::open(&server);
        wire.write(&context[..length]);
        wire.is_closed();
    }
    // So few bytes may be a request as well, and are told that they came too late.
    let mut wire = Wire::open(&server);
    wire.write(&context[..4]);
    wire.rest();
}

#[test]
fn half_a_head_is_closed() {
    let server = Server::start(&["--header-timeout-ms", "200"]);
    let place = Place::make(&server, "d", "c");
    for length in [1, 4, 24, 60] {
        let mut channel = Channel::open(&server);
        let (_, frame) = channel.encode(&place.item(READ, "a", "x"));
        channel.wire.write(&frame[..length]);
        channel.wire.is_closed();
    }
}

#[test]
fn half_a_body_is_closed() {
    let server = Server::start(&["--body-progress-timeout-ms", "200"]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let (_, frame) = channel.encode(&place.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#));
    channel.wire.write(&frame[..frame.len() - 1]);
    channel.wire.is_closed();
    let mut other = Channel::open(&server);
    other.ask(&place.item(READ, "a", "x")).fails(404, 0);
}

/// Also if some of it comes now and then.
#[test]
fn a_body_that_takes_for_ever_is_closed() {
    let server = Server::start(&["--body-timeout-ms", "300"]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let text = "x".repeat(1000);
    let item = json!({"id": "a", "pk": "x", "text": text}).to_string();
    let (_, frame) = channel.encode(&place.write(CREATE, "x", &item));
    let (start, rest) = frame.split_at(frame.len() - text.len());
    channel.wire.write(start);
    let taken = rest.iter().position(|byte| {
        channel.wire.try_write(&[*byte]).is_err() || !channel.wire.is_silent_for(MOMENT)
    });
    assert!(taken.is_some_and(|taken| taken > 2), "{taken:?}");
    channel.wire.is_closed();
    let mut other = Channel::open(&server);
    other.ask(&place.item(READ, "a", "x")).fails(404, 0);
}

/// What is asked before the half is answered.
#[test]
fn who_stops_half_way_gets_the_answers_to_what_was_whole() {
    let server = Server::start(&["--header-timeout-ms", "500"]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let (number, mut frame) = channel.encode(&place.item(READ, "a", "x"));
    let (_, half) = channel.encode(&place.item(READ, "b", "x"));
    frame.extend(&half[..50]);
    channel.wire.write(&frame);
    channel.answer(number).fails(404, 0);
    channel.wire.is_closed();
}

/// Clients keep a connection for hours and say nothing.
#[test]
fn silence_between_frames_may_last_longer_than_a_head() {
    let server = Server::start(&["--header-timeout-ms", "100"]);
    let mut channel = Channel::open(&server);
    channel.is_alive();
    // When this one is closed, the time for a head has passed for both.
    Wire::open(&server).is_closed();
    channel.is_alive();
}

#[test]
fn a_silent_connection_is_closed_in_the_end() {
    let server = Server::start(&["--direct-idle-timeout-ms", "200"]);
    let mut channel = Channel::open(&server);
    channel.is_alive();
    channel.wire.is_closed();
    // One that has said nothing since its context, too.
    Channel::open(&server).wire.is_closed();
}

/// What is answered at once never makes it look busy, and it is.
#[test]
fn a_busy_connection_is_not_an_idle_one() {
    let server = Server::start(&["--direct-idle-timeout-ms", "300"]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    for _ in 0..20 {
        channel.ask(&place.item(READ, "a", "x")).fails(404, 0);
        assert!(channel.wire.is_silent_for(MOMENT));
    }
}

/// Nor is one whose reads never end with a frame one that does not come to the end of a head.
#[test]
fn who_is_always_in_the_middle_of_a_head_gets_on() {
    let server = Server::start(&["--header-timeout-ms", "300"]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let (_, frame) = channel.encode(&place.item(READ, "a", "x"));
    let (start, rest) = frame.split_at(50);
    channel.wire.write(start);
    for _ in 0..20 {
        channel.wire.write(&[rest, start].concat());
        channel.next().unwrap().1.fails(404, 0);
        assert!(channel.wire.is_silent_for(MOMENT));
    }
    channel.wire.is_closed();
}

/// A client that ends its side has all answers, and then the end of the other.
#[test]
fn who_closes_is_closed() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let number = channel.send(&place.item(READ, "a", "x"));
    channel.answer(number).fails(404, 0);
    channel.wire.end();
    channel.wire.is_closed();
    drop(Channel::open(&server));
    Channel::open(&server).is_alive();
}

/// An item of nearly 2 MB.
fn write_large(channel: &mut Channel, place: &Place) {
    let item = json!({"id": "a", "pk": "x", "text": "x".repeat(1_900_000)}).to_string();
    channel.ask(&place.write(CREATE, "x", &item)).is(201);
}

#[test]
fn who_does_not_take_its_answers_is_closed() {
    let server = Server::start(&["--write-timeout-ms", "300"]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    write_large(&mut channel, &place);
    let error = loop {
        let (_, frame) = channel.encode(&place.item(READ, "a", "x"));
        if let Err(error) = channel.wire.try_write(&frame) {
            break error;
        }
    };
    let closed = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(closed.contains(&error.kind()), "{error}");
    Channel::open(&server).is_alive();
}

/// Many small answers that a client takes together leave room for what it asked meanwhile.
#[test]
fn who_takes_all_of_its_answers_at_once_is_read_on() {
    let server = Server::start(&["--header-timeout-ms", "600000"]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let read = place.item(READ, "none", "x");
    let bytes = u64::try_from(channel.ask(&read).fails(404, 0).body.len()).unwrap();
    let (_, frame) = channel.encode(&read);
    let mut sent = 0;
    // Until as many answers as may be at work wait, and go on waiting.
    while (0..10).any(|_| unread(&server) < 256 * bytes) {
        channel.wire.write(&frame.repeat(100));
        sent += 100;
    }
    // These are not read before there is room.
    channel.wire.write(&frame.repeat(1000));
    for _ in 0..sent + 1000 {
        channel.next().unwrap().1.fails(404, 0);
    }
    channel.is_alive();
}

/// A socket that is closed with unread bytes takes back what it has not delivered.
#[test]
fn an_answer_is_not_taken_back_by_what_comes_after_it() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let item = json!({"id": "a", "pk": "x", "text": "x".repeat(600_000)}).to_string();
    channel.ask(&place.write(CREATE, "x", &item)).is(201);
    let (number, frame) = channel.encode(&place.item(READ, "a", "x"));
    // Nothing that follows a frame of no length makes any sense.
    channel.wire.write(&[frame, vec![0; 100_000]].concat());
    while metric(&server, r#"dayfly_connections_open{protocol="direct"}"#) > 0 {}
    assert_eq!(channel.answer(number).is(200).body.len() / 100_000, 6);
    channel.wire.is_closed();
}

/// Clients have asked again by then, or have given up.
#[test]
fn a_query_that_nobody_waits_for_any_more_ends() {
    let server = Server::start(&["--page-timeout-ms", "100", "--direct-query-timeout-ms", "300"]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let list: Vec<u32> = (0..600).collect();
    let item = json!({"id": "list", "pk": "x", "a": list}).to_string();
    channel.ask(&place.write(CREATE, "x", &item)).is(201);
    let heavy =
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a WHERE x < 0";
    channel.ask(&place.query(heavy).key("x")).fails(408, 0).is_of_range("0");
    channel.is_alive();
}

fn metric(server: &Server, name: &str) -> u64 {
    let page = server.get("/metrics").body;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap().parse().unwrap()
}

/// Bytes of answers that wait for their clients.
fn unread(server: &Server) -> u64 {
    metric(server, "dayfly_unread_answer_bytes")
}

/// The server stops reading before it holds much for one client.
#[test]
fn who_does_not_take_its_answers_makes_nobody_hold_them_all() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    write_large(&mut channel, &place);
    let mut numbers = Vec::new();
    for _ in 0..150 {
        numbers.push(channel.send(&place.item(READ, "a", "x")));
    }
    let mut most = 0;
    for number in numbers {
        most = most.max(unread(&server));
        assert_eq!(channel.answer(number).is(200).body.len() / 100_000, 19);
    }
    // As many as that would be 285 MB.
    assert!(most < 128 * 1024 * 1024, "{most} bytes were held");
    while unread(&server) > 0 {}
}

/// What all of them leave unread has a limit, the same as over HTTP, and the slowest goes first.
#[test]
fn who_takes_nothing_is_cut_off_when_it_is_too_much() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut quick = Channel::open(&server);
    write_large(&mut quick, &place);
    let mut slow = Vec::new();
    while metric(&server, "dayfly_slow_readers_cut_total") == 0 {
        assert!(slow.len() < 400, "{} bytes are held, nobody was cut", unread(&server));
        let mut channel = Channel::open(&server);
        for _ in 0..8 {
            channel.send(&place.item(READ, "a", "x"));
        }
        slow.push(channel);
        // Who reads goes on.
        quick.ask(&place.item(READ, "a", "x")).is(200);
    }
    drop(slow);
    while unread(&server) > 0 {}
    quick.is_alive();
}
