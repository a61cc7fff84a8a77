//! Who may do what: each frame is signed by itself, and one that is not good is refused
//! alone.

use rustix::process::Signal;

use super::client::tokens::{Value, text};
use super::client::{
    Ask, CREATE, Channel, DELETE, ITEM, PATCH, Place, READ, READ_FEED, REPLACE, UPSERT, date,
};
use super::common::Server;

const OTHER_KEY: &str = "b3RoZXIga2V5IG90aGVyIGtleSBvdGhlciBrZXkgMTI=";

#[test]
fn a_wrong_signature_is_refused_and_nothing_else() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let read = place.item(READ, "a", "x");
    channel.ask(&place.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#)).is(201);
    let another_link = Ask { link: "dbs/d/colls/c/docs/b".to_owned(), ..read.clone() };
    for wrong in [
        read.clone().signed_with(OTHER_KEY),
        read.clone().without(0x0001),
        read.clone().without(0x0003),
        read.clone().with(0x0001, text("")),
        read.clone().with(0x0001, text("nonsense")),
        read.clone().with(0x0003, Value::SmallString("yesterday".to_owned())),
        another_link,
        // Signed for another verb.
        Ask { operation: DELETE, ..read.clone() }
            .with(0x0001, text(token_for("get", "docs", "dbs/d/colls/c/docs/a", &server))),
    ] {
        let refused = channel.ask(&wrong);
        assert_eq!(refused.status, 401, "{wrong:?} {refused:?}");
        refused.is_final();
        assert!(refused.json()["message"].is_string());
        channel.ask(&read).is(200);
    }
    // Also for what is not there, and of a container that is not.
    channel.ask(&Ask::database(READ, Some("nobody")).signed_with(OTHER_KEY)).fails(401, 0);
    channel.ask(&place.itself(READ).signed_with(OTHER_KEY)).fails(401, 0);
}

fn token_for(verb: &str, kind: &str, link: &str, server: &Server) -> String {
    let key = super::client::key_of(server);
    super::client::authorization(&super::client::signature(&key, verb, kind, link, &date(0)))
}

#[test]
fn an_old_date_is_refused() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let dated = |seconds: u64| Value::SmallString(date(seconds));
    let old = place.feed(READ_FEED).range("0").with(0x0003, dated(16 * 60));
    channel.ask(&old).fails(403, 0).is_final();
    // A retry carries the date of the first attempt.
    channel.ask(&place.feed(READ_FEED).range("0").with(0x0003, dated(60))).is(200);
    // And what was seen once is as good again.
    let again = place.feed(READ_FEED).range("0").with(0x0003, dated(30));
    channel.ask(&again).is(200);
    channel.ask(&again).is(200);
}

#[test]
fn the_read_only_key_reads() {
    let server = Server::start(&["--read-only-key", OTHER_KEY]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let body = r#"{"id":"a","pk":"x"}"#;
    let rid = channel.ask(&place.write(CREATE, "x", body)).is(201).json()["_rid"].clone();
    for ask in [
        place.item(READ, "a", "x"),
        Ask::by_rid(ITEM, READ, rid.as_str().unwrap()).key("x"),
        place.feed(READ_FEED).range("0"),
        place.query("SELECT * FROM c").range("0"),
        Ask::database(READ, Some("d")),
        Ask::database(READ_FEED, None),
    ] {
        channel.ask(&ask.signed_with(OTHER_KEY)).is(200);
    }
    for ask in [
        place.write(CREATE, "x", body),
        place.write(UPSERT, "x", body),
        place.item(REPLACE, "a", "x").body(body),
        place.item(PATCH, "a", "x").body(r#"{"operations":[{"op":"set","path":"/n","value":2}]}"#),
        place.item(DELETE, "a", "x"),
    ] {
        channel.ask(&ask.signed_with(OTHER_KEY)).fails(403, 0);
    }
    assert!(channel.ask(&place.item(READ, "a", "x")).is(200).json().get("n").is_none());
}

/// A second key is as good as the first.
#[test]
fn the_secondary_key_does_everything() {
    let server = Server::start(&["--secondary-key", OTHER_KEY]);
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let create = place.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#);
    channel.ask(&create.signed_with(OTHER_KEY)).is(201);
}

/// A frame is asked for its key when it comes, not its connection when it was opened.
#[test]
fn new_keys_hold_on_a_connection_that_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("account.key");
    let first = super::common::OWN_KEY;
    std::fs::write(&file, first).unwrap();
    let flags = ["--memory", "--listen", "127.0.0.1:0", "--key-file", file.to_str().unwrap()];
    let mut command = super::common::dayfly(&flags);
    let mut server = Server::spawn(command.stderr(std::process::Stdio::piped()));
    let mut channel = Channel::open(&server);
    let list = |key| Ask::database(READ_FEED, None).signed_with(key);
    channel.ask(&list(first)).is(200);
    channel.ask(&list(OTHER_KEY)).fails(401, 0);
    std::fs::write(&file, OTHER_KEY).unwrap();
    server.signal(Signal::HUP);
    server.hear("were read again");
    channel.ask(&list(first)).fails(401, 0).is_final();
    channel.ask(&list(OTHER_KEY)).is(200);
}

/// What only replicas say to each other does nothing here, and stands in no log.
#[test]
fn secrets_are_not_logged() {
    let mut command = super::common::dayfly(&["--memory", "--listen", "127.0.0.1:0"]);
    command.env("DAYFLY_LOG", "debug,requests");
    let server = Server::spawn(command.stderr(std::process::Stdio::piped()));
    let place = Place::make(&server, "d", "c");
    let mut channel = Channel::open(&server);
    let secrets = [0x0022, 0x0023, 0x0024, 0x0025].map(|id| (id, format!("hidden-{id}")));
    for ask in [place.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#), place.item(READ, "b", "x")] {
        let with_secrets =
            secrets.iter().fold(ask, |ask, (id, secret)| ask.with(*id, text(secret)));
        let reply = channel.ask(&with_secrets.with(0x003D, text("hidden-signature")));
        assert!([201, 404].contains(&reply.status), "{reply:?}");
    }
    let wrong = token_for("get", "docs", "hidden", &server);
    channel.ask(&place.item(READ, "b", "x").with(0x0001, text(&wrong))).fails(401, 0);
    drop(channel);
    server.terminate();
    let log = server.said();
    assert!(log.contains("answered") && log.contains("channel=\"direct\""), "{log}");
    for hidden in ["hidden-", wrong.rsplit("sig%3d").next().unwrap(), "type%3dmaster"] {
        assert!(!log.contains(hidden), "{hidden} is in the log: {log}");
    }
}
