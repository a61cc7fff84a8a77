//! Items, one at a time and in batches: what REST does, said in frames.

use serde_json::{Value as Json, json};

use super::client::tokens::{Value, text};
use super::client::{
    Ask, BATCH, CREATE, Channel, DELETE, ITEM, PATCH, Place, READ, READ_FEED, REPLACE, Reply,
    UPSERT, rest,
};
use super::common::{Server, admin, send};

fn station() -> (Server, Place, Channel) {
    let server = Server::start(&[]);
    let place = Place::make(&server, "d", "c");
    let channel = Channel::open(&server);
    (server, place, channel)
}

/// It has what a point answer of an item has.
#[track_caller]
fn is_of_item(reply: &Reply, status: u32) {
    reply.is(status).is_of_range("0");
    assert!(reply.text(0x0004).starts_with('"'), "{reply:?}");
    assert!(reply.number(0x0032) > 0);
    assert_eq!(reply.number(0x003C), reply.number(0x0032));
    assert_eq!(reply.text(0x0017), "dbs/d/colls/c");
    if !reply.body.is_empty() {
        assert_eq!(reply.json()["_etag"], reply.text(0x0004));
    }
}

#[test]
fn an_item_lives_and_dies_by_its_names() {
    let (server, place, mut channel) = station();
    let created = channel.ask(&place.write(CREATE, "x", r#"{"id":"a","pk":"x","n":1}"#));
    is_of_item(&created, 201);
    assert_eq!(created.text(0x0018), place.rid);
    let read = channel.ask(&place.item(READ, "a", "x"));
    is_of_item(&read, 200);
    assert_eq!(read.body, created.body);
    assert_eq!(read.body, send(&server, "GET", "/dbs/d/colls/c/docs/a", "").body.as_bytes());

    let two = r#"{"id":"a","pk":"x","n":2}"#;
    let replaced = channel.ask(&place.item(REPLACE, "a", "x").body(two));
    is_of_item(&replaced, 200);
    assert!(replaced.number(0x0013) > created.number(0x0013));
    assert_ne!(replaced.text(0x0004), created.text(0x0004));
    let upserted = channel.ask(&place.write(UPSERT, "x", r#"{"id":"a","pk":"x","n":3}"#));
    is_of_item(&upserted, 200);
    is_of_item(&channel.ask(&place.write(UPSERT, "x", r#"{"id":"b","pk":"x"}"#)), 201);
    let more = r#"{"operations":[{"op":"incr","path":"/n","value":4}]}"#;
    let patched = channel.ask(&place.item(PATCH, "a", "x").body(more));
    is_of_item(&patched, 200);
    assert_eq!(patched.json()["n"], 7);

    let deleted = channel.ask(&place.item(DELETE, "a", "x"));
    assert!(deleted.is(204).is_of_range("0").body.is_empty());
    channel.ask(&place.item(READ, "a", "x")).fails(404, 0).is_of_range("0");
}

#[test]
fn an_item_lives_and_dies_by_its_resource_id() {
    let (_server, place, mut channel) = station();
    let to_all =
        |operation: u16, body: &str| Ask::by_rid(ITEM, operation, &place.rid).key("x").body(body);
    let created = channel.ask(&to_all(CREATE, r#"{"id":"a","pk":"x"}"#));
    is_of_item(&created, 201);
    let rid = created.json()["_rid"].as_str().unwrap().to_owned();
    let itself = |operation: u16| Ask::by_rid(ITEM, operation, &rid).key("x");

    assert_eq!(channel.ask(&itself(READ)).is(200).body, created.body);
    let replaced = channel.ask(&itself(REPLACE).body(r#"{"id":"a","pk":"x","n":2}"#));
    assert_eq!(replaced.is(200).json()["_rid"], rid);
    assert_eq!(channel.ask(&to_all(UPSERT, r#"{"id":"a","pk":"x","n":3}"#)).is(200).json()["n"], 3);
    let more = r#"{"operations":[{"op":"incr","path":"/n","value":4}]}"#;
    assert_eq!(channel.ask(&itself(PATCH).body(more)).is(200).json()["n"], 7);
    channel.ask(&itself(DELETE)).is(204);
    channel.ask(&itself(READ)).fails(404, 0).is_of_range("0");
}

#[test]
fn a_write_says_no_more_than_was_asked_for() {
    let (_server, place, mut channel) = station();
    let brief = |ask: Ask| ask.with(0x0082, Value::Byte(1));
    let body = r#"{"id":"a","pk":"x","n":1}"#;
    for (ask, status) in [
        (place.write(CREATE, "x", body), 201),
        (place.write(UPSERT, "x", body), 200),
        (place.item(REPLACE, "a", "x").body(body), 200),
        (
            place
                .item(PATCH, "a", "x")
                .body(r#"{"operations":[{"op":"set","path":"/n","value":2}]}"#),
            200,
        ),
    ] {
        let reply = channel.ask(&brief(ask.clone()));
        is_of_item(&reply, status);
        assert!(reply.body.is_empty(), "{reply:?}");
    }
    let whole = place.write(UPSERT, "x", body).with(0x0082, Value::Byte(0));
    assert_eq!(channel.ask(&whole).is(200).json()["id"], "a");
    assert_eq!(channel.ask(&brief(place.item(READ, "a", "x"))).is(200).json()["n"], 1);
}

#[test]
fn a_condition_is_kept() {
    let (_server, place, mut channel) = station();
    let body = r#"{"id":"a","pk":"x"}"#;
    let etag = channel.ask(&place.write(CREATE, "x", body)).text(0x0004).to_owned();
    let only_if = |ask: Ask, etag: &str| ask.with(0x0008, text(etag));
    for ask in [
        place.item(REPLACE, "a", "x").body(body),
        place.item(DELETE, "a", "x"),
        place.write(UPSERT, "x", body),
        place.item(PATCH, "a", "x").body(r#"{"operations":[]}"#),
    ] {
        let reply = channel.ask(&only_if(ask, "\"wrong\""));
        assert!([400, 412].contains(&reply.status), "{reply:?}");
        reply.is_of_range("0");
    }
    channel.ask(&only_if(place.item(REPLACE, "a", "x").body(body), "\"x\"")).fails(412, 0);

    let unchanged = channel.ask(&only_if(place.item(READ, "a", "x"), &etag));
    assert!(unchanged.is(304).is_of_range("0").body.is_empty());
    assert_eq!(unchanged.text(0x0004), etag);
    let replaced = channel.ask(&only_if(place.item(REPLACE, "a", "x").body(body), &etag));
    is_of_item(&replaced, 200);
    is_of_item(&channel.ask(&only_if(place.item(READ, "a", "x"), &etag)), 200);
    channel.ask(&only_if(place.item(DELETE, "a", "x"), replaced.text(0x0004))).is(204);
}

/// Names stand in a frame as they are, and are signed so.
#[test]
fn an_id_may_hold_any_character() {
    let (_server, place, mut channel) = station();
    let long = "a".repeat(255);
    for id in ["a%20b", "a b", "ü€😀", "a;b,c", "[x]", "a+b&c=d", "100%", "\"q\"", "..", &long]
    {
        let body = json!({"id": id, "pk": "ü€😀"}).to_string();
        channel.ask(&place.write(CREATE, "ü€😀", &body)).is(201);
        let read = channel.ask(&place.item(READ, id, "ü€😀"));
        assert_eq!(read.is(200).json()["id"], id);
        // The same key in the form of .NET.
        let escaped = r#"["\u00fc\u20ac\ud83d\ude00"]"#;
        channel.ask(&place.item(READ, id, "").with(0x002B, text(escaped))).is(200);
        channel.ask(&place.item(DELETE, id, "ü€😀")).is(204);
    }
}

#[test]
fn a_database_and_a_container_may_have_any_name() {
    let server = Server::start(&[]);
    let place = Place::make(&server, "a%20b ü€😀", "x;y,[z]");
    let mut channel = Channel::open(&server);
    let found = channel.ask(&Ask::database(READ, Some(&place.database)));
    assert_eq!(found.is(200).json()["id"], place.database);
    let created = channel.ask(&place.write(CREATE, "x", r#"{"id":"a","pk":"x"}"#));
    assert_eq!(created.is(201).text(0x0017), "dbs/a%20b ü€😀/colls/x;y,[z]");
    channel.ask(&place.item(READ, "a", "x")).is(200);
}

/// The kinds of keys, as REST has them.
#[test]
fn a_partition_key_may_be_of_any_kind() {
    let (_server, place, mut channel) = station();
    for (key, item) in [
        ("[7]", json!({"id": "a", "pk": 7})),
        ("[true]", json!({"id": "a", "pk": true})),
        ("[null]", json!({"id": "a", "pk": null})),
        ("[{}]", json!({"id": "a"})),
    ] {
        let of = |ask: Ask| ask.with(0x002B, text(key));
        channel.ask(&of(place.feed(CREATE)).body(&item.to_string())).is(201);
        let read = channel.ask(&of(place.item(READ, "a", "x")));
        assert_eq!(read.is(200).json().get("pk"), item.get("pk"), "{key}");
    }
}

/// Both clients believe a refusal only with the tokens of a good answer.
#[test]
fn a_refusal_says_where_and_when_it_was() {
    let server = Server::start(&[]);
    let place = Place::make_wide(&server, "d", "c");
    let mut channel = Channel::open(&server);
    for n in 0..8 {
        let (id, key) = (format!("i{n}"), format!("k{n}"));
        let body = json!({"id": id, "pk": key}).to_string();
        let written = channel.ask(&place.write(CREATE, &key, &body));
        let range = written.is(201).text(0x0021).to_owned();
        let taken = channel.ask(&place.write(CREATE, &key, &body));
        taken.fails(409, 0).is_of_range(&range);
        channel.ask(&place.item(READ, "none", &key)).fails(404, 0).is_of_range(&range);
        let wrong = place.item(DELETE, &id, &key).with(0x0008, text("\"x\""));
        channel.ask(&wrong).fails(412, 0).is_of_range(&range);
        channel.ask(&place.write(CREATE, &key, "{")).fails(400, 0).is_of_range(&range);
        let other_key = json!({"id": "b", "pk": "other"}).to_string();
        let refused = channel.ask(&place.write(CREATE, &key, &other_key));
        refused.fails(400, 1001).is_of_range(&range);
        let large = json!({"id": "b", "pk": key, "text": "x".repeat(2_300_000)}).to_string();
        channel.ask(&place.write(CREATE, &key, &large)).fails(413, 0).is_of_range(&range);
        let future = place.item(READ, &id, &key).with(0x0005, text(format!("{range}:1#999999")));
        channel.ask(&future).fails(404, 1002).is_of_range(&range);
        let body = json!({"id": "b", "pk": key}).to_string();
        let triggered = channel.ask(&place.write(CREATE, &key, &body).with(0x0009, text("t")));
        let missing = triggered.fails(501, 0).is_of_range(&range).message();
        assert!(missing.contains("is not supported by dayfly yet."), "{missing}");
    }
}

/// The ids of a page, in its order.
#[track_caller]
fn documents(page: &Reply) -> Vec<String> {
    let body = page.is(200).json();
    let documents = body["Documents"].as_array().unwrap();
    documents.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// The feed of a range by frames: from the beginning, and from the place that was told.
#[test]
fn the_change_feed_comes_in_frames() {
    let (_server, place, mut channel) = station();
    for n in 0..3 {
        let body = json!({"id": format!("i{n}"), "pk": "x"}).to_string();
        channel.ask(&place.write(CREATE, "x", &body)).is(201);
    }
    let changes = place.feed(READ_FEED).range("0").with(0x003F, text("Incremental Feed"));
    let page = channel.ask(&changes);
    assert_eq!(documents(&page), ["i0", "i1", "i2"]);
    let since = changes.with(0x0008, text(page.text(0x0004)));
    channel.ask(&since).is(304);
    channel.ask(&place.write(UPSERT, "x", r#"{"id":"i1","pk":"x","n":1}"#)).is(200);
    assert_eq!(documents(&channel.ask(&since)), ["i1"]);
}

#[test]
fn a_session_is_kept_over_both_ways() {
    let (server, place, mut channel) = station();
    let created = rest(&server, "POST", "/dbs/d/colls/c/docs", "", r#"{"id":"a","pk":"x"}"#);
    assert_eq!(created.status, 201, "{created:?}");
    let session = created.header("x-ms-session-token").unwrap().to_owned();
    let read = channel.ask(&place.item(READ, "a", "x").with(0x0005, text(&session)));
    assert_eq!(format!("0:{}", read.is(200).text(0x003E)), session);
    let replaced = channel.ask(&place.write(UPSERT, "x", r#"{"id":"a","pk":"x"}"#));
    let session = format!("x-ms-session-token: 0:{}\r\n", replaced.text(0x003E));
    assert_eq!(rest(&server, "GET", "/dbs/d/colls/c/docs/a", &session, "").status, 200);
}

/// An item is dead from its second on.
#[test]
fn an_item_expires_exactly() {
    let server = Server::start(&["--test-clock"]);
    let place = Place::make_with(&server, "d", "c", 400, r#","defaultTtl":-1"#);
    let mut channel = Channel::open(&server);
    admin(&server, "clock", r#"{"frozen":true}"#);
    channel.ask(&place.write(CREATE, "x", r#"{"id":"a","pk":"x","ttl":60}"#)).is(201);
    let found = |channel: &mut Channel| -> Json {
        let query = place.query("SELECT VALUE c.id FROM c").key("x");
        channel.ask(&query).is(200).json()["Documents"].clone()
    };
    admin(&server, "clock", r#"{"advanceSeconds":59}"#);
    channel.ask(&place.item(READ, "a", "x")).is(200);
    assert_eq!(found(&mut channel), json!(["a"]));
    admin(&server, "clock", r#"{"advanceSeconds":2}"#);
    channel.ask(&place.item(READ, "a", "x")).fails(404, 0).is_of_range("0");
    assert_eq!(found(&mut channel), json!([]));
    let body = r#"{"id":"a","pk":"x"}"#;
    channel.ask(&place.item(REPLACE, "a", "x").body(body)).fails(404, 0);
    channel.ask(&place.item(DELETE, "a", "x")).fails(404, 0);
    channel.ask(&place.write(CREATE, "x", body)).is(201);
}

/// The statuses of the operations of a batch.
fn statuses(reply: &Reply) -> Vec<u64> {
    let body = reply.json();
    body.as_array().unwrap().iter().map(|each| each["statusCode"].as_u64().unwrap()).collect()
}

/// A batch in JSON: all or nothing, or each by itself.
fn batch(place: &Place, atomic: bool, operations: &Json) -> Ask {
    let ask = place.feed(BATCH).body(&operations.to_string());
    let ask = ask.with(0x0073, Value::Byte(u8::from(atomic)));
    if atomic {
        ask.key("x").with(0x0075, Value::Byte(1))
    } else {
        ask.range("0").with(0x0074, Value::Byte(1))
    }
}

#[test]
fn a_batch_is_done_whole_or_not_at_all() {
    let (_server, place, mut channel) = station();
    let create =
        |id: &str| json!({"operationType": "Create", "resourceBody": {"id": id, "pk": "x"}});
    let read = |id: &str| json!({"operationType": "Read", "id": id});
    let done = channel.ask(&batch(&place, true, &json!([create("a"), create("b"), read("a")])));
    assert_eq!(statuses(done.is(200).is_of_range("0")), [201, 201, 200]);
    let failed = channel.ask(&batch(&place, true, &json!([create("c"), read("nobody")])));
    assert_eq!(statuses(failed.is(207).is_of_range("0")), [424, 404]);
    channel.ask(&place.item(READ, "c", "x")).fails(404, 0);
}

#[test]
fn in_bulk_each_is_done_by_itself() {
    let (_server, place, mut channel) = station();
    let create = |id: &str| {
        json!({
            "operationType": "Create",
            "partitionKey": "[\"x\"]",
            "resourceBody": {"id": id, "pk": "x"},
        })
    };
    let read = json!({"operationType": "Read", "id": "nobody", "partitionKey": "[\"x\"]"});
    let operations = json!([create("a"), create("a"), read, create("b")]);
    let done = channel.ask(&batch(&place, false, &operations));
    assert!([200, 207].contains(&done.status), "{done:?}");
    assert_eq!(statuses(&done), [201, 409, 404, 201]);
    done.is_of_range("0");
    channel.ask(&place.item(READ, "b", "x")).is(200);
}
