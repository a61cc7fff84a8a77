//! The frames that real clients sent are answered as they were, and our client writes and
//! signs as those did.

use std::collections::BTreeMap;

use super::client::tokens::{CONTEXT_REPLY, CONTEXT_REQUEST, REPLY, Tokens, Value, text};
use super::client::{
    Ask, CREATE, Channel, Place, Reply, authorization, kind_name, rid_bytes, signature,
    split_frame, verb,
};
use super::common::Server;

/// The key that every emulator of the service uses.
const WELL_KNOWN_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// The frames by their names.
fn frames() -> BTreeMap<&'static str, Vec<u8>> {
    let mut frames = BTreeMap::new();
    for part in include_str!("captured.txt").split("\n= ").skip(1) {
        let (title, hex) = part.split_once('\n').unwrap();
        let digits: String = hex.split_whitespace().collect();
        let bytes = (0..digits.len()).step_by(2);
        let bytes = bytes.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
        frames.insert(title.split(' ').next().unwrap(), bytes.collect());
    }
    assert_eq!(frames.len(), 35);
    frames
}

const REQUESTS: [&str; 10] = ["F5", "F7", "F9", "F11", "F12", "F13", "F15", "F18", "F20", "F21"];
/// What Java's client asks.
const REQUESTS_OF_JAVA: [&str; 13] =
    ["J2", "J3", "J4", "J5", "J6", "J7", "J8", "J9", "J10", "J11", "J12", "J13", "J14"];
const REPLIES: [&str; 7] = ["F6", "F8", "F10", "F14", "F16", "F17", "F19"];

/// What a captured request has signed of its address.
fn link(ask: &Ask) -> String {
    let name = |id: u16| ask.tokens.get(id).map(Value::text);
    match (name(0x0015), name(0x0016), name(0x0017)) {
        (Some(database), Some(container), Some(item)) => {
            format!("dbs/{database}/colls/{container}/docs/{item}")
        }
        (Some(database), Some(container), None) => format!("dbs/{database}/colls/{container}"),
        (Some(database), None, None) => format!("dbs/{database}"),
        (None, None, None) => String::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn our_client_reads_and_writes_frames_as_real_ones_do() {
    let frames = frames();
    for (name, frame) in &frames {
        let (_, _, tokens, _) = split_frame(frame);
        assert_eq!(Tokens::decode(tokens).encode(), tokens, "{name}");
    }
    for name in REQUESTS.iter().chain(&REQUESTS_OF_JAVA).copied() {
        let frame = &frames[name];
        assert_eq!(Ask::decode(frame).encode("", 0), *frame, "{name}");
    }
    for name in REPLIES {
        let reply = Reply::decode(&frames[name]);
        reply.is_whole();
        reply.tokens.are_of(REPLY);
    }
    for (name, table) in [
        ("F1", CONTEXT_REQUEST),
        ("F2", CONTEXT_REQUEST),
        ("J1", CONTEXT_REQUEST),
        ("F3", CONTEXT_REPLY),
        ("F4", CONTEXT_REPLY),
    ] {
        Tokens::decode(split_frame(&frames[name]).2).are_of(table);
    }
}

#[test]
fn our_client_signs_as_real_ones_do() {
    let by_rid = "aaaadiaaacmbacaaaaaaaa==";
    let date = "Mon, 16 Nov 2026 15:08:29 GMT";
    let signed = signature(WELL_KNOWN_KEY, "get", "docs", "dbs/extra/colls/cap/docs/1", date);
    assert_eq!(signed, "r2YNB0RIFIIpqgsoePdk49gTTZ4mvf4wn0H9gAYRhCo=");
    let frames = frames();
    for name in REQUESTS.iter().chain(&REQUESTS_OF_JAVA).copied() {
        let ask = Ask::decode(&frames[name]);
        let link = if name == "F12" { by_rid.to_owned() } else { link(&ask) };
        let date = ask.tokens.get(0x0003).unwrap().text();
        let (verb, kind) = (verb(ask.operation), kind_name(ask.kind));
        let signed = signature(WELL_KNOWN_KEY, verb, kind, &link, date);
        let escaped = match authorization(&signed) {
            escaped if name.starts_with('F') => escaped,
            escaped => escaped.replace("%2b", "%2B").replace("%2f", "%2F").replace("%3d", "%3D"),
        };
        assert_eq!(ask.tokens.get(0x0001).unwrap().text(), escaped, "{name}");
    }
}

/// Tokens that say the same whenever a frame is answered.
const STEADY: [u16; 9] = [0x0000, 0x0010, 0x0014, 0x0017, 0x001E, 0x001F, 0x0026, 0x0030, 0x0035];

/// Of what is in no container there is no range and no session, and like over REST no state
/// of a replica.
const OF_MASTER: [u16; 4] = [0x0010, 0x0021, 0x0026, 0x003E];

/// The container by its id, which REST says of what was found.
const OF_FOUND: u16 = 0x0018;

/// It says what the captured one did.
#[track_caller]
fn is_as_captured(name: &str, reply: &Reply, captured: &Reply) {
    assert_eq!(reply.status, captured.status, "{name} {reply:?}");
    assert_eq!(reply.activity, captured.activity, "{name}");
    let is_master = captured.tokens.get(0x0021).map(Value::text) == Some("M");
    for (id, value) in captured.tokens.iter() {
        let Some(ours) = reply.tokens.get(id) else {
            let is_missing =
                (is_master && OF_MASTER.contains(&id)) || (reply.status == 404 && id == OF_FOUND);
            assert!(is_missing, "{name} has no {id:#06x}: {reply:?}");
            continue;
        };
        assert_eq!(ours.kind(), value.kind(), "{name} {id:#06x}");
        if STEADY.contains(&id) {
            assert_eq!(ours, value, "{name} {id:#06x}");
        }
    }
    assert_eq!(names(&reply.body), names(&captured.body), "{name}");
}

/// The names of the members of an object.
fn names(body: &[u8]) -> Vec<String> {
    if body.is_empty() {
        return Vec::new();
    }
    let body: serde_json::Value = serde_json::from_slice(body).unwrap();
    body.as_object().unwrap().keys().cloned().collect()
}

/// A captured request about our own container, to be signed anew.
fn renewed(name: &str, place: &Place, session: &str) -> Ask {
    let mut ask = Ask::decode(&frames()[name]);
    ask.link = link(&ask);
    for id in [0x0001, 0x0003] {
        ask.tokens.remove(id);
    }
    if ask.tokens.get(0x0035).is_some() {
        ask.tokens.set(0x0000, Value::Bytes(rid_bytes(&place.rid)));
        ask.tokens.set(0x0035, text(&place.rid));
    }
    if ask.tokens.get(0x0005).is_some() {
        ask.tokens.set(0x0005, text(format!("0:{session}")));
    }
    ask
}

/// Sends it with the number that it has.
fn play(channel: &mut Channel, ask: &Ask) -> Reply {
    let frame = ask.encode(WELL_KNOWN_KEY, 0);
    channel.wire.write(&frame);
    let (number, reply) = channel.next().unwrap();
    assert_eq!(i64::from(number), ask.tokens.get(0x004D).unwrap().number());
    reply
}

#[test]
fn contexts_are_answered_as_they_were() {
    let frames = frames();
    let server = Server::start(&[]);
    for (request, captured) in [("F1", "F3"), ("F2", "F4")] {
        let (mut channel, reply) = Channel::open_with(&server, &frames[request]);
        let captured = Reply::decode(&frames[captured]);
        assert_eq!(reply.activity, captured.activity);
        for id in [0x0000, 0x0001, 0x0003] {
            assert_eq!(reply.tokens.get(id), captured.tokens.get(id), "{request} {id:#06x}");
        }
        assert_eq!(reply.text(0x0002), "dayfly");
        assert!(reply.number(0x0004) >= 1800, "it is idle for half an hour: {reply:?}");
        channel.is_alive();
    }
}

#[test]
fn a_database_that_is_not_there_is_answered_as_it_was() {
    let frames = frames();
    let server = Server::start(&[]);
    let mut ask = Ask::decode(&frames["F18"]);
    ask.link = "dbs/extra".to_owned();
    for id in [0x0001, 0x0003] {
        ask.tokens.remove(id);
    }
    let reply = play(&mut Channel::open(&server), &ask);
    is_as_captured("F19", &reply, &Reply::decode(&frames["F19"]));
    // The id is read from its bytes as .NET writes it.
    assert!(reply.message().ends_with("ActivityId: ef9d59b8-ae75-4478-a976-ad4d725eb726"));
    Place::make(&server, "extra", "cap");
    assert_eq!(play(&mut Channel::open(&server), &ask).is(200).json()["id"], "extra");
}

#[test]
fn items_are_answered_as_they_were() {
    let frames = frames();
    let captured = |name: &str| Reply::decode(&frames[name]);
    let server = Server::start(&[]);
    let place = Place::make(&server, "extra", "cap");
    let (mut channel, _) = Channel::open_with(&server, &frames["F1"]);

    let created = play(&mut channel, &renewed("F5", &place, ""));
    is_as_captured("F6", &created, &captured("F6"));
    let brief = play(&mut channel, &renewed("F7", &place, ""));
    is_as_captured("F8", &brief, &captured("F8"));
    let session = brief.text(0x003E);

    let read = play(&mut channel, &renewed("F9", &place, session));
    is_as_captured("F10", &read, &captured("F10"));
    assert_eq!(read.body, created.body);
    let eventual = play(&mut channel, &renewed("F11", &place, session));
    assert_eq!(eventual.is(200).json()["ttl"], 60);

    let found = play(&mut channel, &renewed("F13", &place, session));
    is_as_captured("F14", &found, &captured("F14"));
    assert_eq!(found.json()["Documents"], serde_json::json!([{"id": "1"}]));
    let first = play(&mut channel, &renewed("F15", &place, session).without(0x0006));
    let token = first.is(200).text(0x0003).to_owned();
    let second = play(&mut channel, &renewed("F15", &place, session).with(0x0006, text(token)));
    let rows = &second.is(200).json()["Documents"];
    assert_eq!(rows[0]["orderByItems"], serde_json::json!([{"item": "2"}]), "{rows}");

    let mut missing = renewed("F9", &place, session).with(0x0017, text("nobody"));
    missing.link = link(&missing);
    let missing = play(&mut channel, &missing);
    let mut expected = captured("F16");
    expected.activity = missing.activity;
    expected.tokens.set(0x0035, Value::ULong(4));
    is_as_captured("F16", &missing, &expected);
    let conflict = play(&mut channel, &renewed("F5", &place, ""));
    let mut expected = captured("F17");
    expected.activity = conflict.activity;
    expected.tokens.set(0x0035, Value::ULong(2));
    is_as_captured("F17", &conflict, &expected);

    play(&mut channel, &renewed("F20", &place, "")).fails(412, 0).is_of_range("0");
    let feed = play(&mut channel, &renewed("F21", &place, session));
    assert_eq!(feed.is(200).json()["_count"], feed.number(0x0014), "{feed:?}");
    let next = renewed("F21", &place, session).with(0x0008, text(feed.text(0x0004)));
    let end = play(&mut channel, &next);
    assert!(end.is(304).body.is_empty(), "{end:?}");
    assert_eq!((end.text(0x0004), end.number(0x0014)), (feed.text(0x0004), 0), "{end:?}");
}

#[test]
fn an_item_is_read_by_its_resource_id_as_the_forerunner_did() {
    let frames = frames();
    let server = Server::start(&[]);
    let place = Place::make(&server, "extra", "cap");
    let (mut channel, _) = Channel::open_with(&server, &frames["F2"]);
    let created = channel.ask(&place.write(CREATE, "a", r#"{"id":"1","pk":"a"}"#));
    let rid = created.is(201).json()["_rid"].as_str().unwrap().to_owned();

    let mut ask = Ask::decode(&frames["F12"]);
    ask.link = rid.to_lowercase();
    for id in [0x0001, 0x0003] {
        ask.tokens.remove(id);
    }
    ask.tokens.set(0x0000, Value::Bytes(rid_bytes(&rid)));
    ask.tokens.set(0x0005, text(format!("0:{}", created.text(0x003E))));
    let read = play(&mut channel, &ask);
    assert_eq!(read.is(200).is_of_range("0").body, created.body);
}

#[test]
fn what_java_asks_is_answered() {
    let frames = frames();
    let server = Server::start(&[]);
    let place = Place::make(&server, "extra", "cap");
    let (mut channel, greeted) = Channel::open_with(&server, &frames["J1"]);
    assert_eq!(greeted.text(0x0001), "2020-07-15");
    let mut session = "0#0".to_owned();
    let mut said = BTreeMap::new();
    for name in REQUESTS_OF_JAVA {
        let reply = play(&mut channel, &renewed(name, &place, &session));
        let expected = match name {
            "J5" => 201,
            "J14" => 204,
            _ => 200,
        };
        reply.is(expected);
        if reply.tokens.get(0x0021).is_some() {
            reply.is_of_range("0");
            session = reply.text(0x003E).to_owned();
        }
        said.insert(name, reply);
    }
    // Its writes say no more than they have to.
    for name in ["J5", "J7", "J8", "J14"] {
        assert!(said[name].body.is_empty(), "{name}");
    }
    let ids = |name: &str, list: &str| -> Vec<String> {
        let body = said[name].json();
        let rows = body[list].as_array().unwrap();
        assert_eq!(said[name].number(0x0014), i64::try_from(rows.len()).unwrap());
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(said["J2"].json()["id"], "extra");
    assert_eq!(ids("J3", "DocumentCollections"), ["cap"]);
    assert_eq!(ids("J4", "Databases"), ["extra"]);
    assert_eq!(said["J6"].json()["n"], 1);
    assert_eq!(said["J9"].json()[0]["statusCode"], 201);
    assert_eq!(said["J10"].json()[0]["statusCode"], 201);
    assert_eq!(ids("J11", "Documents"), ["1", "2"]);
    assert_eq!(said["J12"].json()["Documents"][0]["payload"], "1");
    assert!(said["J12"].tokens.get(0x0003).is_some(), "there are more pages");
    assert_eq!(ids("J13", "Documents"), ["1", "2", "3"]);
    assert!(!said["J13"].text(0x0004).is_empty());
}
