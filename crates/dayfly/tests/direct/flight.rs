//! Many requests on one connection, and how their frames come: in pieces, together, all at
//! once, and while the server ends.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::strategy::{Just, Strategy};
use proptest::test_runner::{Config, TestRunner};
use proptest::{prop_assert_eq, prop_oneof};
use serde_json::json;

use super::client::tokens::Value;
use super::client::{CREATE, Channel, Place, READ, Reply, UPSERT, Wire, context};
use super::common::{Server, request};

/// More than fit into what a client has on its way by itself.
const MANY: usize = 200;

#[test]
fn two_hundred_requests_are_on_their_way_at_once() {
    let server = Server::start(&[]);
    let place = Place::make_wide(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let item = |n: usize| json!({"id": format!("i{n}"), "pk": format!("k{n}")}).to_string();
    let creates = (0..MANY).map(|n| place.write(CREATE, &format!("k{n}"), &item(n)));
    let numbers: Vec<u32> = creates.map(|ask| channel.send(&ask)).collect();
    for number in numbers {
        channel.answer(number).is(201);
    }
    let mut asked = BTreeMap::new();
    for n in 0..MANY {
        // Every tenth is not there.
        let id = if n % 10 == 9 { "none".to_owned() } else { format!("i{n}") };
        let mut ask = place.item(READ, &id, &format!("k{n}"));
        ask.activity = u128::try_from(n).unwrap().to_le_bytes();
        asked.insert(channel.send(&ask), n);
    }
    while !asked.is_empty() {
        let (number, reply) = channel.next().unwrap();
        let n = asked.remove(&number).expect("each is answered once");
        assert_eq!(reply.activity, u128::try_from(n).unwrap().to_le_bytes());
        if n % 10 == 9 {
            reply.fails(404, 0);
        } else {
            assert_eq!(reply.is(200).json()["id"], format!("i{n}"));
        }
    }
}

/// An answer is not held up by one that takes long.
#[test]
fn answers_come_in_the_order_in_which_they_are_ready() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    write_long_list(&mut channel, &place);
    let slow = channel.send(&place.query(SLOW).key("x"));
    let quick = channel.send(&place.item(READ, "list", "x"));
    let (first, _) = channel.next().unwrap();
    assert_eq!(first, quick);
    assert_eq!(channel.answer(slow).is(200).json()["Documents"], json!([0]));
}

/// A second of work in a build for tests.
const SLOW: &str = "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a WHERE x + y < 0";

fn write_long_list(channel: &mut Channel, place: &Place) {
    let list: Vec<u32> = (0..600).collect();
    let item = json!({"id": "list", "pk": "x", "a": list}).to_string();
    channel.ask(&place.write(CREATE, "x", &item)).is(201);
}

#[test]
fn a_frame_may_come_in_pieces() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let (_, frame) = channel.encode(&place.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#));
    for piece in frame.chunks(9) {
        channel.wire.write(piece);
    }
    channel.next().unwrap().1.is(201);
    let (_, frame) = channel.encode(&place.item(READ, "a", "x"));
    for piece in frame.chunks(1) {
        channel.wire.write(piece);
    }
    channel.next().unwrap().1.is(200);
}

#[test]
fn the_first_frame_may_come_in_pieces() {
    let server = Server::start(&[]);
    let mut wire = Wire::open(&server);
    for piece in context(1).chunks(3) {
        wire.write(piece);
    }
    assert!(wire.frame(|_| false).is_some());
}

#[test]
fn several_frames_may_come_together() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let (first, mut bytes) = channel.encode(&place.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#));
    let (second, more) = channel.encode(&place.item(READ, "none", "x"));
    bytes.extend(more);
    channel.wire.write(&bytes);
    channel.answer(first).is(201);
    channel.answer(second).fails(404, 0);
}

/// Java's client reads an answer out of the bytes of its record when those may be in use for
/// something else already, if there was another answer in it.
#[test]
fn no_record_has_bytes_of_two_answers() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let large = json!({"id": "large", "pk": "x", "text": "x".repeat(100_000)}).to_string();
    channel.ask(&place.write(CREATE, "x", &large)).is(201);
    let mut bytes = Vec::new();
    for n in 0..50 {
        let id = if n % 10 == 5 { "large" } else { "none" };
        bytes.extend(channel.encode(&place.item(READ, id, "x")).1);
    }
    channel.wire.write(&bytes);
    for _ in 0..50 {
        let mut answer = channel.wire.record();
        let whole = |answer: &[u8]| {
            let head =
                usize::try_from(u32::from_le_bytes(answer[..4].try_into().unwrap())).unwrap();
            let body = u32::from_le_bytes(answer[head..head + 4].try_into().unwrap());
            head + 4 + usize::try_from(body).unwrap()
        };
        while answer.len() < whole(&answer) {
            answer.extend(channel.wire.record());
        }
        assert_eq!(answer.len(), whole(&answer), "the next answer begins in its last record");
        Reply::decode(&answer).is_whole();
    }
    channel.is_alive();
}

/// A client that cannot wait for the answer to its context; none does, all may.
#[test]
fn what_comes_with_the_context_is_answered_too() {
    let server = Server::start(&[]);
    let mut channel = Channel::open(&server);
    let (_, list) = channel.encode(&super::client::Ask::database(super::client::READ_FEED, None));
    let mut wire = Wire::open(&server);
    wire.write(&[context(1), list].concat());
    assert!(wire.frame(|_| false).is_some());
    assert!(wire.frame(super::client::has_payload).is_some());
}

fn metric(server: &Server, name: &str) -> u64 {
    together(server, &[name])
}

/// The values of some metrics at one moment.
fn together(server: &Server, names: &[&str]) -> u64 {
    let text = server.get("/metrics").body;
    let samples = text.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
    samples.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn a_stop_answers_what_is_on_its_way() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    write_long_list(&mut channel, &place);
    let mut idle = Channel::open(&server);
    let slow = channel.send(&place.query(SLOW).key("x"));
    while metric(&server, "dayfly_queries_running") == 0 {
        std::thread::yield_now();
    }
    server.terminate();
    idle.wire.is_closed();
    assert_eq!(channel.answer(slow).is(200).json()["Documents"], json!([0]));
    channel.wire.is_closed();
    assert!(server.ended().success());
}

/// What was begun is done and said; what was not is neither.
#[test]
fn a_stop_leaves_no_write_in_doubt() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let item = |n: usize| json!({"id": format!("i{n}"), "pk": "x"}).to_string();
    channel.ask(&place.write(CREATE, "x", &item(MANY))).is(201);
    let numbers: BTreeMap<u32, usize> =
        (0..MANY).map(|n| (channel.send(&place.write(CREATE, "x", &item(n))), n)).collect();
    server.terminate();
    let mut done = vec![format!("i{MANY}")];
    while let Some((number, reply)) = channel.next() {
        reply.is(201);
        done.push(format!("i{}", numbers[&number]));
    }
    assert!(server.ended().success());

    let server = Server::start_in(folder.path(), &[]);
    let all = place.query("SELECT VALUE c.id FROM c").range("0").with(0x0004, Value::ULong(1000));
    let all = Channel::open(&server).ask(&all).is(200).json()["Documents"].clone();
    let mut found: Vec<String> = serde_json::from_value(all).unwrap();
    found.sort();
    done.sort();
    assert_eq!(found, done);
}

/// More than a connection may have at work at one time: the rest is not read meanwhile.
#[test]
fn one_client_has_only_so_much_at_work() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    write_long_list(&mut channel, &place);
    let heavy = SLOW.replace("WHERE", "JOIN z IN c.a WHERE");
    for _ in 0..300 {
        channel.send(&place.query(&heavy).key("x"));
    }
    // A query goes from one line to the other now and then.
    let at_work = || together(&server, &["dayfly_queries_running", "dayfly_queries_waiting"]);
    while at_work() < 256 {
        std::thread::yield_now();
    }
    for _ in 0..100 {
        let count = at_work();
        assert!(count <= 256, "{count} are at work");
    }
    // Others are served meanwhile.
    Channel::open(&server).is_alive();
}

/// As many as that are waited for, and answered.
#[test]
fn more_than_may_be_at_work_are_answered_in_the_end() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let item = |n: usize| json!({"id": format!("i{n}"), "pk": "x"}).to_string();
    let numbers: Vec<u32> =
        (0..1000).map(|n| channel.send(&place.write(CREATE, "x", &item(n)))).collect();
    for reply in channel.answers(&numbers) {
        reply.is(201);
    }
}

#[test]
fn a_stop_does_not_wait_for_ever() {
    let server = Server::start(&["--stop-timeout-ms", "200"]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    write_long_list(&mut channel, &place);
    let heavy = SLOW.replace("WHERE", "JOIN z IN c.a WHERE");
    let number = channel.send(&place.query(&heavy).key("x"));
    while metric(&server, "dayfly_queries_running") == 0 {
        std::thread::yield_now();
    }
    server.terminate();
    channel.answer(number).fails(503, 0);
    channel.wire.is_closed();
    assert!(server.ended().success());
}

/// A client that is gone leaves nothing behind.
#[test]
fn what_nobody_waits_for_is_given_up() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    write_long_list(&mut channel, &place);
    channel.send(&place.query(&SLOW.replace("WHERE", "JOIN z IN c.a WHERE")).key("x"));
    while metric(&server, "dayfly_queries_running") == 0 {
        std::thread::yield_now();
    }
    drop(channel);
    while metric(&server, "dayfly_queries_running") > 0 {
        std::thread::yield_now();
    }
    assert_eq!(metric(&server, "dayfly_queries_cancelled_total"), 1);
}

/// Connections are counted together, whatever they speak.
#[test]
fn only_so_many_connections_are_open_at_one_time() {
    let server = Server::start(&["--max-connections", "2"]);
    let pem = server.get("/_explorer/emulator.pem").body;
    let open = || Wire::trusting(&server, &pem, "localhost", &[]);
    let greeted = || {
        let mut wire = open().ok()?;
        wire.try_write(&context(1)).ok()?;
        wire.frame(|_| false).map(|_| wire)
    };
    // The connection by which the certificate was asked for may not be counted out yet.
    let first = loop {
        if let Some(wire) = greeted() {
            break wire;
        }
    };
    let mut http = loop {
        let mut client = server.connect();
        if client.try_send("GET /alive HTTP/1.1\r\nhost: localhost\r\n\r\n").is_ok()
            && !client.is_turned_away()
        {
            break client;
        }
    };
    assert_eq!(http.answer().status, 200);
    assert!(greeted().is_none());
    assert!(server.connect().is_closed());
    drop(first);
    while greeted().is_none() {}
}

/// What is sent in one test of many.
#[derive(Clone, Debug)]
enum Sent {
    Read,
    Miss,
    Wrong(usize),
    Write(usize),
    Unread(usize),
}

/// How one test of many goes: what is sent, and where it is cut.
fn in_pieces() -> impl Strategy<Value = (Vec<Sent>, Vec<usize>)> {
    let sent = prop_oneof![
        Just(Sent::Read),
        Just(Sent::Miss),
        (0..20_000_usize).prop_map(Sent::Wrong),
        (0..20_000_usize).prop_map(Sent::Write),
        (1..20_000_usize).prop_map(Sent::Unread),
    ];
    (vec(sent, 1..8), vec(1..30_000_usize, 0..20))
}

/// What comes is the same, wherever it is cut.
#[test]
fn where_bytes_are_cut_does_not_matter() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    channel.ask(&place.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#)).is(201);
    let text = |length| json!({"id": "b", "pk": "x", "text": "x".repeat(length)}).to_string();
    channel.ask(&place.write(UPSERT, "x", &text(0))).is(201);
    let config = Config { cases: 60, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&in_pieces(), |(sent, cuts)| {
        let mut channel = Channel::open(&server);
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for what in sent {
            let (ask, status, length) = match what {
                Sent::Read => (place.item(READ, "a", "x"), 200, None),
                Sent::Miss => (place.item(READ, "none", "x"), 404, None),
                Sent::Wrong(length) => {
                    let ask = place.write(UPSERT, "x", &text(length));
                    (ask.signed_with("b3RoZXI="), 401, None)
                }
                Sent::Write(length) => (place.write(UPSERT, "x", &text(length)), 200, Some(length)),
                Sent::Unread(length) => {
                    (place.item(READ, "none", "x").body(&"x".repeat(length)), 404, None)
                }
            };
            let (number, frame) = channel.encode(&ask);
            bytes.extend(frame);
            expected.push((number, status, length));
        }
        let mut rest = &bytes[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            channel.wire.write(piece);
            rest = after;
        }
        channel.wire.write(rest);
        for (number, status, length) in expected {
            let reply = channel.answer(number);
            prop_assert_eq!(reply.status, status);
            if let Some(length) = length {
                prop_assert_eq!(reply.json()["text"].as_str().unwrap().len(), length);
            }
        }
        Ok(())
    });
    outcome.unwrap();
}

/// The items of one way are those of the other, on connections side by side.
#[test]
fn http_goes_on_beside_it() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let (mut direct, mut http) = (Channel::open(&server), server.connect());
    for n in 0..5 {
        let body = json!({"id": format!("i{n}"), "pk": "x"}).to_string();
        direct.ask(&place.write(CREATE, "x", &body)).is(201);
        http.send(request(&server, "GET", &format!("/dbs/d/colls/c/docs/i{n}"), ""));
        assert_eq!(http.answer().status, 200);
    }
}
