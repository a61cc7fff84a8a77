//! What no client sends: refused, skipped, or the end of the connection, and never more than
//! that.

use super::client::tokens::{Tokens, Value, encode, head, text};
use super::client::{
    Ask, CREATE, Channel, EXECUTE, HEAD, ITEM, PATCH, PROCEDURE, Place, READ, READ_FEED, Wire,
    context,
};
use super::common::Server;

const OTHER_KEY: &str = "b3RoZXIga2V5IG90aGVyIGtleSBvdGhlciBrZXkgMTI=";

const HEAD_BYTES_MAX: usize = 256 * 1024;
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

fn station() -> (Server, Place) {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    (server, place)
}

/// A connection on which these bytes come after the context ends without an answer.
#[track_caller]
fn closes(server: &Server, bytes: &[u8]) {
    let mut channel = Channel::open(server);
    // It may be closed before all is sent.
    let _ = channel.wire.try_write(bytes);
    channel.wire.is_closed();
}

/// The tokens of a request that is good, and the request.
fn good(server: &Server, place: &Place) -> (Ask, Vec<u8>) {
    let ask = place.item(READ, "a", "x");
    let frame = ask.encode(&super::client::key_of(server), 1);
    (ask, frame[24..].to_vec())
}

#[test]
fn a_length_that_cannot_be_ends_the_connection() {
    let (server, _) = station();
    let too_long = u32::try_from(HEAD_BYTES_MAX + 1).unwrap();
    for length in [0, 1, 23, too_long, 0x00FF_FFFF, 0x0100_0000, u32::MAX] {
        let bytes = [&length.to_le_bytes()[..], &[3, 0, 3, 0], &[7; 16]].concat();
        closes(&server, &bytes);
        closes(&server, &[bytes, vec![0; 100]].concat());
    }
    // Also as a first frame, as far as it looks like one.
    for length in [0, 23, too_long, 0x00FF_FFFF] {
        let mut wire = Wire::open(&server);
        let bytes = [&length.to_le_bytes()[..], &[0; 4], &[7; 16]].concat();
        let _ = wire.try_write(&bytes);
        wire.is_closed();
    }
    Channel::open(&server).is_alive();
}

#[test]
fn a_head_may_be_as_large_as_its_limit() {
    let (server, place) = station();
    let (ask, tokens) = good(&server, &place);
    let filler = |bytes: usize| encode(0x7FFF, &Value::ULongBytes(vec![b'x'; bytes]));
    let room = HEAD_BYTES_MAX - 24 - tokens.len() - filler(0).len();
    let mut channel = Channel::open(&server);
    channel.wire.write(&ask.frame(&[tokens.clone(), filler(room)].concat()));
    channel.next().unwrap().1.fails(404, 0);
    closes(&server, &ask.frame(&[tokens, filler(room + 1)].concat()));
}

#[test]
fn what_is_known_of_a_token_and_not_so_ends_the_connection() {
    let (server, place) = station();
    let (ask, tokens) = good(&server, &place);
    let with = |more: &[u8]| ask.frame(&[&tokens[..], more].concat());
    let text_of = |length: u16, bytes: &[u8]| {
        [&0x0005_u16.to_le_bytes()[..], &[0x08], &length.to_le_bytes(), bytes].concat()
    };
    for (what, more) in [
        ("a token runs past the head", text_of(100, b"0:1#1")),
        ("so does its length", vec![0x05, 0x00, 0x08, 0x05]),
        ("its type is missing", vec![0x05, 0x00]),
        ("half an identifier", vec![0x05]),
        ("an unknown one runs past the head", vec![0xFF, 0x7F, 0x0C, 0xFF, 0xFF, 0xFF, 0xFF, 1]),
        ("there is no such type", vec![0x05, 0x00, 0x0F, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("nor for an unknown token", vec![0xFF, 0x7F, 0x0F, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("a token comes twice", encode(0x0049, &Value::ULong(1))),
        ("with another type, too", encode(0x0049, &Value::Byte(1))),
        ("a known token has another type", encode(0x0005, &Value::SmallString("0:1#1".into()))),
        ("a number, too", encode(0x0004, &Value::Long(1))),
        ("and a byte", encode(0x0010, &Value::ULong(3))),
        ("and bytes", encode(0x0062, &text("00"))),
        ("a text is not UTF-8", text_of(3, &[0xFF, 0xFE, b'x'])),
        ("nor are these", text_of(2, &[0xC3, 0x28])),
    ] {
        println!("{what}");
        closes(&server, &with(&more));
    }
    Channel::open(&server).is_alive();
}

/// Clients of later versions say more than we know.
#[test]
fn an_unknown_token_is_skipped_by_its_type() {
    let (server, place) = station();
    let (ask, tokens) = good(&server, &place);
    let words = || "words".to_owned();
    let unknown = [
        Value::Byte(1),
        Value::UShort(2),
        Value::ULong(3),
        Value::Long(-4),
        Value::ULongLong(5),
        Value::LongLong(-6),
        Value::Guid([7; 16]),
        Value::SmallString(words()),
        Value::String(words()),
        Value::ULongString(words()),
        Value::SmallBytes(vec![0xFF; 3]),
        Value::Bytes(vec![0xFF; 3]),
        Value::ULongBytes(vec![0xFF; 3]),
        Value::Float(1.5),
        Value::Double(f64::NAN),
    ];
    let more: Vec<u8> =
        (0x7F00..).zip(&unknown).flat_map(|(id, value)| encode(id, value)).collect();
    let mut channel = Channel::open(&server);
    for tokens in [[&tokens[..], &more].concat(), [&more[..], &tokens].concat()] {
        channel.wire.write(&ask.frame(&tokens));
        channel.next().unwrap().1.fails(404, 0);
    }
    // Of what is skipped nothing is kept, so nobody knows that it came twice.
    let twice = encode(0x7F00, &Value::ULong(1)).repeat(2);
    channel.wire.write(&ask.frame(&[&tokens[..], &twice].concat()));
    channel.next().unwrap().1.fails(404, 0);
    // This one is of two types: .NET has the one, Java the other.
    for value in [Value::ULong(60), Value::Long(60)] {
        channel.ask(&place.item(READ, "a", "x").with(0x0059, value)).fails(404, 0);
    }
}

#[test]
fn a_request_without_its_number_ends_the_connection() {
    let (server, place) = station();
    let key = super::client::key_of(&server);
    for id in [0x0002, 0x004D] {
        closes(&server, &place.item(READ, "a", "x").without(id).encode(&key, 1));
    }
}

/// The stream cannot be followed if a body may be there or not.
#[test]
fn whether_a_body_follows_is_zero_or_one() {
    let (server, place) = station();
    let key = super::client::key_of(&server);
    for neither in [2, 0xFF] {
        let ask = place.item(READ, "a", "x").with(0x0002, Value::Byte(neither));
        closes(&server, &ask.encode(&key, 1));
    }
    let mut channel = Channel::open(&server);
    let empty = place.write(CREATE, "x", "").with(0x0002, Value::Byte(1)).encode(&key, 1);
    channel.wire.write(&[&empty[..], &[0; 4]].concat());
    channel.next().unwrap().1.fails(400, 0);
    channel.is_alive();
}

#[test]
fn another_first_frame_is_no_frame() {
    let (server, place) = station();
    let frame = place.item(READ, "a", "x").encode(&super::client::key_of(&server), 1);
    let mut wire = Wire::open(&server);
    wire.write(&frame);
    let said = wire.rest();
    assert!(said.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn a_context_is_exchanged_once() {
    let (server, _) = station();
    closes(&server, &context(1));
}

#[test]
fn another_version_of_the_protocol_is_not_spoken() {
    let (server, _) = station();
    let mut tokens = Tokens::default();
    tokens.set(0x0001, Value::SmallString("2020-07-15".to_owned()));
    tokens.set(0x0002, Value::SmallString("dayfly-tests".to_owned()));
    let without = head([0; 4], [7; 16], &tokens.encode());
    tokens.set(0x0000, Value::Byte(1));
    let other_type = head([0; 4], [7; 16], &tokens.encode());
    for context in [context(0), context(2), context(u32::MAX), without, other_type] {
        let mut wire = Wire::open(&server);
        wire.write(&context);
        wire.is_closed();
    }
}

/// What may be meant for others is refused by itself.
#[test]
fn what_makes_no_sense_is_refused_and_the_connection_stays() {
    let (server, place) = station();
    let mut channel = Channel::open(&server);
    let read = || place.item(READ, "a", "x");
    let procedure = Ask::new(PROCEDURE, EXECUTE, "dbs/d/colls/c");
    for (what, ask) in [
        ("an unknown operation", Ask { operation: 0x7777, ..read() }),
        ("one between replicas", Ask { operation: 0x000A, ..read() }),
        ("another", Ask { operation: 0xFFFF, ..read() }),
        ("an unknown resource", Ask { kind: 0x7777, ..read() }),
        ("no resource", Ask { kind: 0, ..read() }),
        ("what goes over http: an attachment", Ask { kind: 0x04, ..read() }),
        ("an offer", Ask { kind: 0x0F, ..read() }),
        ("a partition key", Ask { kind: 0x20, ..read() }),
        ("no name of the item", read().without(0x0017)),
        ("no name of the container", read().without(0x0016)),
        ("no name of the database", read().without(0x0015)),
        ("no name of the procedure", procedure.with(0x0015, text("d")).with(0x0016, text("c"))),
        ("no address at all", Ask::new(ITEM, READ, "")),
        ("an id of no length", Ask::new(ITEM, READ, "").with(0x0000, Value::Bytes(vec![0; 7]))),
        ("the id of a database", Ask::by_rid(ITEM, READ, &place.database_rid)),
        ("an empty name", read().with(0x0017, text(""))),
    ] {
        println!("{what}");
        channel.ask(&ask).fails(400, 0).is_final();
        channel.is_alive();
    }
    for (ask, status) in [
        (Ask { operation: EXECUTE, ..read() }, 405),
        (place.itself(PATCH), 405),
        (Ask::database(PATCH, Some("d")).body("{}"), 405),
    ] {
        channel.ask(&ask).fails(status, 0);
        channel.is_alive();
    }
    for ask in [Ask { operation: 0x7777, ..read() }, read().without(0x0016)] {
        // There is nothing that could have been signed.
        channel.ask(&ask.signed_with(OTHER_KEY)).fails(400, 0);
    }
}

#[test]
fn a_body_is_not_kept_for_who_did_not_sign() {
    let (server, place) = station();
    let mut channel = Channel::open(&server);
    let body = "x".repeat(BODY_BYTES_MAX - 100);
    for ask in [
        place.write(CREATE, "x", &body).signed_with(OTHER_KEY),
        place.write(CREATE, "x", &body).without(0x0001),
    ] {
        channel.ask(&ask).fails(401, 0);
        channel.is_alive();
    }
    // It is refused before its body has come.
    let (number, frame) = channel.encode(&place.write(CREATE, "x", &body).signed_with(OTHER_KEY));
    let (head, rest) = frame.split_at(frame.len() - body.len() + 1000);
    channel.wire.write(head);
    channel.answer(number).fails(401, 0);
    channel.wire.write(rest);
    channel.is_alive();
}

#[test]
fn a_body_that_is_too_large_is_refused_and_read_over() {
    let (server, place) = station();
    let mut channel = Channel::open(&server);
    for bytes in [BODY_BYTES_MAX + 1, 5_000_000, 20_000_000, 50_000_000] {
        let ask = place.write(CREATE, "x", &" ".repeat(bytes));
        let (number, frame) = channel.encode(&ask);
        let (head, rest) = frame.split_at(frame.len() - bytes);
        channel.wire.write(head);
        channel.answer(number).fails(413, 0);
        channel.wire.write(rest);
        channel.is_alive();
    }
    let item = r#"{"id":"a","pk":"x"}"#;
    let largest = item.to_owned() + &" ".repeat(BODY_BYTES_MAX - item.len());
    let reply = channel.ask(&place.write(CREATE, "x", &largest));
    assert!([201, 413].contains(&reply.status), "{reply:?}");
    channel.is_alive();
}

#[test]
fn a_body_of_no_end_ends_the_connection() {
    let (server, place) = station();
    for bytes in [64 * 1024 * 1024 + 1, 0x7FFF_FFFF, u32::MAX] {
        let mut channel = Channel::open(&server);
        let ask = place.write(CREATE, "x", "").with(0x0002, Value::Byte(1));
        let (_, head) = channel.encode(&ask);
        channel.wire.write(&[&head[..], &bytes.to_le_bytes(), b"{"].concat());
        // It may be told why before.
        channel.wire.rest();
    }
    Channel::open(&server).is_alive();
}

/// What all clients send at one time has a limit, the same as over HTTP.
#[test]
fn the_bodies_of_all_together_have_a_limit() {
    let server = Server::start(&["--body-progress-timeout-ms", "60000"]);
    let place = Place::make(&server, "d", "c");
    let full = 512 * 1024 * 1024 / BODY_BYTES_MAX;
    // Each announces a body, and sends nearly none of it; for the last there is no room.
    let mut waiting: Vec<(Channel, u32)> = (0..=full)
        .map(|_| {
            let mut channel = Channel::open(&server);
            let ask = place.write(CREATE, "x", "").with(0x0002, Value::Byte(1));
            let (number, head) = channel.encode(&ask);
            let length = u32::try_from(BODY_BYTES_MAX).unwrap().to_le_bytes();
            channel.wire.write(&[&head[..], &length, b"{"].concat());
            (channel, number)
        })
        .collect();
    let refused = loop {
        let told = waiting.iter().position(|(channel, _)| channel.wire.has_more());
        if let Some(place) = told {
            break place;
        }
    };
    let (mut channel, number) = waiting.swap_remove(refused);
    channel.answer(number).fails(503, 0);
    assert!(waiting.iter().all(|(channel, _)| !channel.wire.has_more()));
    // What is small comes in one piece, and is taken.
    let mut small = Channel::open(&server);
    small.ask(&place.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#)).is(201);
    drop(waiting);
    let large = format!(r#"{{"id":"b","pk":"x","text":"{}"}}"#, "x".repeat(1_900_000));
    while small.ask(&place.write(CREATE, "x", &large)).status != 201 {}
}

/// A large head is held for somebody who has not shown a key: of the same memory as bodies,
/// and not at all when there is none.
#[test]
fn large_heads_take_of_what_all_bodies_may() {
    let server = Server::start(&["--body-progress-timeout-ms", "60000"]);
    let place = Place::make(&server, "d", "c");
    let ask = || place.write(CREATE, "x", "").with(0x0002, Value::Byte(1));
    let length = u32::try_from(BODY_BYTES_MAX).unwrap().to_le_bytes();
    // Nothing is left.
    let waiting: Vec<Channel> = (0..512 * 1024 * 1024 / BODY_BYTES_MAX)
        .map(|_| {
            let mut channel = Channel::open(&server);
            let (_, head) = channel.encode(&ask());
            channel.wire.write(&[&head[..], &length, b"{"].concat());
            channel
        })
        .collect();
    let is_served = || {
        let mut channel = Channel::open(&server);
        let filler = Value::ULongBytes(vec![b'x'; 200_000]);
        let (_, frame) = channel.encode(&place.item(READ, "a", "x").with(0x7FFF, filler));
        channel.wire.try_write(&frame).is_ok() && channel.next().is_some()
    };
    // All that is announced has to come first.
    while is_served() {}
    Channel::open(&server).ask(&place.item(READ, "a", "x")).fails(404, 0);
    drop(waiting);
    while !is_served() {}
}

/// A read has no body; one that says so is read over.
#[test]
fn a_body_where_none_belongs_does_not_shift_what_follows() {
    let (server, place) = station();
    let mut channel = Channel::open(&server);
    let reply = channel.ask(&place.item(READ, "a", "x").body("{}"));
    assert!([400, 404].contains(&reply.status), "{reply:?}");
    channel.is_alive();
    channel.ask(&place.feed(READ_FEED).range("0")).is(200);
    channel.ask(&place.itself(HEAD)).is(200);
}

/// Frames with bytes changed, lost, doubled and cut off: each is answered or ends its
/// connection, and that is never our failure.
#[test]
fn mutilated_frames_hurt_nobody() {
    let server = Server::start(&["--header-timeout-ms", "1000"]);
    let place = Place::make(&server, "d", "c");
    let key = super::client::key_of(&server);
    let good = place.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#).encode(&key, 1);
    let mut random = 1_u64;
    let mut channel = Channel::open(&server);
    for _ in 0..1000 {
        let mut frame = good.clone();
        for _ in 0..=below(&mut random, 3) {
            mutilate(&mut frame, &mut random);
        }
        // What is short is waited for: the end of the connection is its end.
        if channel.wire.try_write(&frame).is_ok() {
            channel.wire.end();
        }
        let said = channel.wire.rest();
        if !said.is_empty() {
            let status = u32::from_le_bytes(said[4..8].try_into().unwrap());
            assert!((200..500).contains(&status), "{status}: {frame:?} {said:?}");
        }
        channel = Channel::open(&server);
    }
    channel.is_alive();
}

fn mutilate(frame: &mut Vec<u8>, random: &mut u64) {
    if frame.is_empty() {
        return;
    }
    let at = below(random, frame.len());
    let end = (at + below(random, 20)).min(frame.len());
    match below(random, 4) {
        0 | 1 => frame[at] = u8::try_from(below(random, 256)).unwrap(),
        2 => drop(frame.drain(at..end)),
        _ => {
            let part = frame[at..end].to_vec();
            frame.splice(at..at, part);
        }
    }
}

/// A number below `limit`; the same each time the test runs.
fn below(random: &mut u64, limit: usize) -> usize {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    usize::try_from(*random >> 33).unwrap() % limit.max(1)
}
