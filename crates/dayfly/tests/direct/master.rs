//! Databases and containers, which clients ask of the master, and the barriers.

use serde_json::json;

use super::client::tokens::{Value, text};
use super::client::{
    Ask, CONTAINER, CREATE, Channel, DATABASE, HEAD, HEAD_FEED, Place, QUERY, READ, READ_FEED,
    Reply, rest,
};
use super::common::{Server, send};

/// The ids of a feed.
fn ids(reply: &Reply, name: &str) -> Vec<String> {
    let body = reply.is(200).json();
    let rows = body[name].as_array().unwrap();
    assert_eq!(reply.number(0x0014), i64::try_from(rows.len()).unwrap(), "{reply:?}");
    assert_eq!(body["_count"], rows.len());
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn databases_are_read_listed_and_asked_for() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    assert_eq!(send(&server, "POST", "/dbs", r#"{"id":"e"}"#).status, 201);
    let mut channel = Channel::open(&server);
    let read = channel.ask(&Ask::database(READ, Some("d")));
    assert_eq!(read.is(200).body, send(&server, "GET", "/dbs/d", "").body.as_bytes());
    let by_rid = Ask::by_rid(DATABASE, READ, &place.database_rid);
    assert_eq!(channel.ask(&by_rid).is(200).body, read.body);
    channel.ask(&Ask::database(READ, Some("nobody"))).fails(404, 0);

    assert_eq!(ids(&channel.ask(&Ask::database(READ_FEED, None)), "Databases"), ["d", "e"]);
    let query = json!({"query": "SELECT * FROM d WHERE d.id = 'e'"}).to_string();
    let asked = channel.ask(&Ask::database(QUERY, None).body(&query));
    assert_eq!(ids(&asked, "Databases"), ["e"]);

    let one = Ask::database(READ_FEED, None).with(0x0004, Value::ULong(1));
    let first = channel.ask(&one);
    assert_eq!(ids(&first, "Databases"), ["d"]);
    let second = channel.ask(&one.with(0x0006, text(first.text(0x0003))));
    assert_eq!(ids(&second, "Databases"), ["e"]);
}

/// A request to the containers of a database.
fn containers(operation: u16, database: &str) -> Ask {
    let ask = Ask::new(CONTAINER, operation, &format!("dbs/{database}"));
    ask.with(0x0015, text(database)).with(0x0010, Value::Byte(0))
}

#[test]
fn containers_are_listed_and_asked_for() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    Place::make_wide(&server, "d", "wide");
    let mut channel = Channel::open(&server);
    let listed = channel.ask(&containers(READ_FEED, "d"));
    assert_eq!(ids(&listed, "DocumentCollections"), ["c", "wide"]);
    let query = json!({"query": "SELECT * FROM c WHERE c.id = 'wide'"}).to_string();
    let asked = channel.ask(&containers(QUERY, "d").body(&query));
    assert_eq!(ids(&asked, "DocumentCollections"), ["wide"]);
    let by_rid = Ask::by_rid(CONTAINER, READ_FEED, &place.database_rid);
    assert_eq!(channel.ask(&by_rid).is(200).body, listed.body);
    channel.ask(&containers(READ_FEED, "nobody")).is(404);
}

/// Whatever the account has, clients ask the master for Strong.
#[test]
fn strong_is_taken_on_what_is_no_item() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let strong = |ask: Ask| ask.with(0x0010, Value::Byte(0));
    channel.ask(&strong(Ask::database(READ, Some("d")))).is(200);
    channel.ask(&strong(Ask::database(READ_FEED, None))).is(200);
    channel.ask(&strong(containers(READ_FEED, "d"))).is(200);
    channel.ask(&strong(place.itself(READ))).is(200);

    channel.ask(&place.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#)).is(201);
    let over_rest =
        rest(&server, "GET", "/dbs/d/colls/c/docs/a", "x-ms-consistency-level: Strong\r\n", "");
    assert_eq!(over_rest.status, 400, "{over_rest:?}");
    let item = channel.ask(&strong(place.item(READ, "a", "x")));
    item.fails(400, 0).is_of_range("0");
    let said: serde_json::Value = serde_json::from_str(&over_rest.body).unwrap();
    let sentence = |message: &str| message.split("ActivityId").next().unwrap().to_owned();
    assert_eq!(sentence(&item.message()), sentence(said["message"].as_str().unwrap()));
    for weaker in [2, 3, 4] {
        let ask = place.item(READ, "a", "x").with(0x0010, Value::Byte(weaker));
        channel.ask(&ask).is(200);
    }
}

/// A client that was told of a write asks whether it is here.
#[test]
fn a_barrier_is_passed() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let written = channel.ask(&place.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#));
    let lsn = written.is(201).number(0x0013);
    let barrier = place.itself(HEAD).with(0x0035, text(&place.rid)).range("0");
    for ask in [
        barrier.clone(),
        barrier.clone().with(0x004B, Value::LongLong(lsn)),
        Ask::by_rid(CONTAINER, HEAD, &place.rid).range("0"),
    ] {
        let reply = channel.ask(&ask);
        assert!(reply.is(200).body.is_empty());
        assert!(reply.number(0x0013) >= lsn, "{reply:?}");
    }
    let of_databases = channel.ask(&Ask::database(HEAD_FEED, None));
    assert!(of_databases.is(200).body.is_empty());
}

#[test]
fn a_container_is_read_by_its_names_and_by_its_id() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let read = channel.ask(&place.itself(READ));
    assert_eq!(read.is(200).body, send(&server, "GET", "/dbs/d/colls/c", "").body.as_bytes());
    let by_rid = channel.ask(&Ask::by_rid(CONTAINER, READ, &place.rid));
    assert_eq!(by_rid.is(200).body, read.body);
}
