//! What is not there any more, is not there yet, or is another by now.

use serde_json::json;

use super::client::tokens::{Value, text};
use super::client::{
    Ask, BATCH, CREATE, Channel, DELETE, EXECUTE, HEAD, ITEM, PATCH, PROCEDURE, Place, QUERY, READ,
    READ_FEED, REPLACE, UPSERT, rid_bytes,
};
use super::common::{Server, send};

/// Each operation on items, with what it needs.
fn operations(place: &Place) -> Vec<Ask> {
    let body = r#"{"id":"a","pk":"x"}"#;
    let batch = json!([{"operationType": "Read", "id": "a"}]).to_string();
    vec![
        place.write(CREATE, "x", body),
        place.item(READ, "a", "x"),
        place.item(REPLACE, "a", "x").body(body),
        place.write(UPSERT, "x", body),
        place.item(PATCH, "a", "x").body(r#"{"operations":[{"op":"set","path":"/n","value":2}]}"#),
        place.item(DELETE, "a", "x"),
        place.query("SELECT * FROM c").key("x"),
        place.query("SELECT * FROM c").range("0"),
        place.feed(READ_FEED).range("0"),
        place.feed(BATCH).key("x").with(0x0073, Value::Byte(1)).body(&batch),
    ]
}

/// A client with an old name cache reads it anew when it is told so, and only then.
#[test]
fn a_container_that_is_gone_or_another_is_gone() {
    let server = Server::start(&[]);
    let old = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    assert_eq!(send(&server, "DELETE", "/dbs/d/colls/c", "").status, 204);
    for ask in operations(&old) {
        channel.ask(&ask).fails(410, 1000).is_final();
        // By names alone it is what REST says.
        let unchecked = channel.ask(&ask.without(0x0035));
        assert_eq!(unchecked.status, 404, "{unchecked:?}");
        unchecked.is_final();
    }

    let new = Place::make(&server, "d", "c");
    assert_ne!(new.rid, old.rid);
    for ask in operations(&old) {
        // The token of the new one says nothing to who knows the old one.
        channel.ask(&ask).fails(410, 1000).is_final();
    }
    // Nothing of that was done.
    let all = channel.ask(&new.query("SELECT * FROM c").range("0"));
    assert_eq!(all.is(200).json()["_count"], 0);
    channel.ask(&new.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#)).is(201);

    assert_eq!(send(&server, "DELETE", "/dbs/d", "").status, 204);
    channel.ask(&new.item(READ, "a", "x")).fails(410, 1000);
}

#[test]
fn a_container_that_is_gone_is_not_found_by_its_id() {
    let server = Server::start(&[]);
    let old = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let created = channel.ask(&old.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#));
    let item = created.is(201).json()["_rid"].as_str().unwrap().to_owned();
    assert_eq!(send(&server, "DELETE", "/dbs/d/colls/c", "").status, 204);
    Place::make(&server, "d", "c");
    for ask in [
        Ask::by_rid(ITEM, READ, &item).key("x"),
        Ask::by_rid(ITEM, READ_FEED, &old.rid).range("0"),
        Ask::by_rid(ITEM, QUERY, &old.rid).range("0").body(r#"{"query":"SELECT * FROM c"}"#),
        Ask::by_rid(ITEM, CREATE, &old.rid).key("x").body(r#"{"id":"a","pk":"x"}"#),
    ] {
        let missing = channel.ask(&ask);
        assert_eq!(missing.status, 404, "{ask:?}");
        missing.is_final();
    }
}

/// Who reads in a session believes a refusal by its session token, and asks again for many
/// seconds when there is none, unless it is told that this is useless.
#[test]
fn what_has_no_session_token_is_final_and_nothing_else() {
    let server = Server::start(&[]);
    let place = Place::make_wide(&server, "d", "c");
    let mut channel = Channel::open(&server);
    for ask in [
        Ask { operation: 0x7777, ..place.item(READ, "a", "x") },
        place.feed(READ_FEED).range("77"),
        place.query("SELECT").without(0x0013),
        place.write(CREATE, "x", &" ".repeat(5_000_000)),
        Ask::database(READ, Some("nobody")),
    ] {
        let refused = channel.ask(&ask);
        assert!(refused.status >= 400 && refused.tokens.get(0x003E).is_none(), "{refused:?}");
        refused.is_final();
    }
    for ask in [
        place.item(READ, "a", "x"),
        place.item(DELETE, "a", "x"),
        place.write(CREATE, "x", "{"),
        place.query("SELECT").key("x"),
        place.item(READ, "a", "x").with(0x0005, text("0:1#1000")),
    ] {
        let refused = channel.ask(&ask);
        assert!(refused.status >= 400 && refused.tokens.get(0x003E).is_some(), "{refused:?}");
        assert!(refused.tokens.get(0x001B).is_none(), "{refused:?}");
    }
    let read = channel.ask(&place.feed(READ_FEED).range("0"));
    assert!(read.is(200).tokens.get(0x001B).is_none(), "{read:?}");
}

#[test]
fn a_range_that_is_not_there_is_gone() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    channel.ask(&place.query("SELECT * FROM c").range("7")).fails(410, 1002);
    channel.ask(&place.feed(READ_FEED).range("7")).fails(410, 1002);
    channel.is_alive();
}

/// A frame whose id and names disagree was put together wrongly.
#[test]
fn names_and_ids_have_to_agree() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let other = Place::make(&server, "d", "other");
    let mut channel = Channel::open(&server);
    let id_of_other = Value::Bytes(rid_bytes(&other.rid));
    let read = place.item(READ, "a", "x").with(0x0000, id_of_other);
    channel.ask(&read).fails(400, 0);
    channel.ask(&read.with(0x0035, text(&other.rid))).fails(410, 1000);
    channel.ask(&place.item(READ, "a", "x")).fails(404, 0);
    channel.ask(&place.itself(HEAD)).is(200);
}

#[test]
fn what_is_missing_says_so() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let mut procedure = Ask::new(PROCEDURE, EXECUTE, "dbs/d/colls/c/sprocs/p");
    for (id, name) in [(0x0015, "d"), (0x0016, "c"), (0x001B, "p")] {
        procedure = procedure.with(id, text(name));
    }
    let procedure = procedure.with(0x0035, text(&place.rid)).key("x").body("[1]");
    let body = r#"{"id":"a","pk":"x"}"#;
    let triggered = place.write(CREATE, "x", body).with(0x0009, text("t"));
    for ask in [procedure, triggered] {
        let refused = channel.ask(&ask);
        let sentence = refused.fails(501, 0).message();
        assert!(sentence.contains(" is not supported by dayfly yet."), "{sentence}");
        refused.is_of_range("0");
    }
    channel.ask(&place.item(READ, "a", "x")).fails(404, 0);
}
