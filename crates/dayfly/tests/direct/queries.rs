//! Queries and feeds: by key, by range, by the bounds of a part of a range, and in pages.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::client::tokens::{Value, text};
use super::client::{
    Ask, CREATE, Channel, ITEM, Place, QUERY, QUERY_PLAN, READ, READ_FEED, SQL_QUERY,
};
use super::common::{Server, admin, send};

const ITEMS: usize = 60;

/// A server with items in all four ranges.
fn station() -> (Server, Place, Channel) {
    let server = Server::start(&[]);
    let place = Place::make_wide(&server, "d", "c");
    let mut channel = Channel::open(&server);
    for n in 0..ITEMS {
        let key = format!("k{}", n % 20);
        let item = json!({"id": format!("i{n:02}"), "pk": key, "n": n}).to_string();
        channel.ask(&place.write(CREATE, &key, &item)).is(201);
    }
    (server, place, channel)
}

/// All pages of what is asked, and how many there were.
fn pages(channel: &mut Channel, ask: &Ask) -> (Vec<Json>, usize) {
    let (mut rows, mut ask, mut count) = (Vec::new(), ask.clone(), 0);
    loop {
        let reply = channel.ask(&ask);
        let page = reply.is(200).json()["Documents"].as_array().unwrap().clone();
        assert_eq!(reply.number(0x0014), i64::try_from(page.len()).unwrap());
        assert_eq!(reply.json()["_count"], page.len());
        rows.extend(page);
        count += 1;
        let Some(token) = reply.tokens.get(0x0003) else { return (rows, count) };
        // Clients cut a token at its first semicolon.
        assert!(!token.text().is_empty() && !token.text().contains(';'), "{token:?}");
        ask = ask.with(0x0006, token.clone());
    }
}

fn ids(rows: &[Json]) -> BTreeSet<String> {
    let ids: BTreeSet<_> = rows.iter().map(|row| row.as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), rows.len(), "a row twice: {rows:?}");
    ids
}

const ALL: &str = "SELECT VALUE c.id FROM c";

#[test]
fn a_query_is_of_one_key() {
    let (_server, place, mut channel) = station();
    for operation in [QUERY, SQL_QUERY] {
        let ask = Ask { operation, ..place.query(ALL).key("k7") };
        let reply = channel.ask(&ask);
        assert_eq!(reply.is(200).json()["_rid"], place.rid);
        reply.is_of_range(reply.text(0x0021));
        assert_eq!(pages(&mut channel, &ask).0, ["i07", "i27", "i47"]);
    }
    let named = json!({
        "query": "SELECT VALUE c.id FROM c WHERE c.n > @n",
        "parameters": [{"name": "@n", "value": 20}],
    });
    let ask = place.feed(QUERY).key("k7").body(&named.to_string());
    assert_eq!(pages(&mut channel, &ask).0, ["i27", "i47"]);
    let nonsense = place.query("SELECT nonsense FROM");
    let range = channel.ask(&ask).text(0x0021).to_owned();
    channel.ask(&nonsense.clone().key("k7")).fails(400, 0).is_of_range(&range);
    channel.ask(&nonsense.range("2")).fails(400, 0).is_of_range("2");
}

#[test]
fn a_query_is_of_one_range() {
    let (_server, place, mut channel) = station();
    let mut all = BTreeSet::new();
    for range in ["0", "1", "2", "3"] {
        let ask = place.query(ALL).range(range);
        channel.ask(&ask).is(200).is_of_range(range);
        let (rows, _) = pages(&mut channel, &ask);
        assert!(!rows.is_empty(), "range {range}");
        all.extend(ids(&rows));
    }
    assert_eq!(all.len(), ITEMS);
    channel.ask(&place.query("SELECT VALUE COUNT(1) FROM c").range("0")).is(200);
}

#[test]
fn a_query_by_resource_id_finds_the_same() {
    let (_server, place, mut channel) = station();
    let body = json!({"query": ALL}).to_string();
    let by_rid = Ask::by_rid(ITEM, QUERY, &place.rid);
    let ask = by_rid.clone().key("k7").body(&body);
    assert_eq!(pages(&mut channel, &ask).0, ["i07", "i27", "i47"]);
    let (rows, _) = pages(&mut channel, &by_rid.range("2").body(&body));
    let (same, _) = pages(&mut channel, &place.query(ALL).range("2"));
    assert_eq!(rows, same);
    let feed = Ask::by_rid(ITEM, READ_FEED, &place.rid).range("2");
    assert_eq!(pages(&mut channel, &feed).0.len(), same.len());
}

#[test]
fn pages_are_as_large_as_was_asked_for() {
    let (_server, place, mut channel) = station();
    for query in [ALL, "SELECT VALUE c.id FROM c ORDER BY c.n DESC"] {
        let ask = place.query(query).range("1");
        let (all, count) = pages(&mut channel, &ask.clone().with(0x0004, Value::ULong(u32::MAX)));
        assert_eq!(count, 1);
        let (rows, count) = pages(&mut channel, &ask.with(0x0004, Value::ULong(2)));
        assert_eq!(rows, all);
        assert!(count >= all.len() / 2, "{count} pages");
    }
    let feed = place.feed(READ_FEED).range("1");
    let (all, _) = pages(&mut channel, &feed);
    let (rows, count) = pages(&mut channel, &feed.with(0x0004, Value::ULong(3)));
    assert_eq!(rows, all);
    assert!(count > 1);
}

#[test]
fn a_feed_is_of_one_range() {
    let (_server, place, mut channel) = station();
    let mut count = 0;
    for range in ["0", "1", "2", "3"] {
        let ask = place.feed(READ_FEED).range(range);
        channel.ask(&ask).is(200).is_of_range(range);
        count += pages(&mut channel, &ask).0.len();
    }
    assert_eq!(count, ITEMS);
    let of_key = place.feed(READ_FEED).key("k7");
    assert_eq!(pages(&mut channel, &of_key).0.len(), 3);
}

/// Who asks the range that is gone is told, and goes on in the halves with the token that it
/// has; items are found by their keys, whatever is taken for their range.
#[test]
fn a_range_that_is_divided_goes_on_in_its_halves() {
    let server = Server::start(&[]);
    let mut channel = Channel::open(&server);
    let queries = [
        ("streamed", ALL),
        ("listed", "SELECT VALUE c.id FROM c WHERE c.n >= 0"),
        ("sorted", "SELECT VALUE c.id FROM c ORDER BY c.n"),
    ];
    for (name, query) in queries {
        let place = Place::make(&server, "d", name);
        for n in 0..ITEMS {
            let key = format!("k{}", n % 20);
            let item = json!({"id": format!("i{n:02}"), "pk": key, "n": n}).to_string();
            channel.ask(&place.write(CREATE, &key, &item)).is(201);
        }
        let ask = place.query(query);
        let first = channel.ask(&ask.clone().range("0").with(0x0004, Value::ULong(9)));
        let mut rows = first.is(200).json()["Documents"].as_array().unwrap().clone();
        let ask = ask.with(0x0006, first.tokens.get(0x0003).unwrap().clone());
        admin(&server, &format!("containers/d/{name}/split"), "");
        channel.ask(&ask.clone().range("0")).fails(410, 1002);
        for half in ["1", "2"] {
            rows.extend(pages(&mut channel, &ask.clone().range(half)).0);
        }
        assert_eq!(ids(&rows).len(), ITEMS, "{query}");
        channel.ask(&place.feed(READ_FEED).range("0")).fails(410, 1002);
        let stale = channel.ask(&place.item(READ, "i07", "k7").range("0"));
        assert_ne!(stale.is(200).text(0x0021), "0");
    }
}

/// The bounds are the hexadecimal text of places in the ring of keys.
#[test]
fn a_query_may_be_of_a_part_of_a_range() {
    let (server, place, mut channel) = station();
    let ranges: Json =
        serde_json::from_str(&send(&server, "GET", "/dbs/d/colls/c/pkranges", "").body).unwrap();
    for range in ranges["PartitionKeyRanges"].as_array().unwrap() {
        let bound = |name: &str| range[name].as_str().unwrap().to_owned();
        let (id, start, end) = (bound("id"), bound("minInclusive"), bound("maxExclusive"));
        let middle = middle(&start, &end);
        let part = |start: Option<&str>, end: Option<&str>| {
            let bound = |ask: Ask, id: u16, at: Option<&str>| match at {
                Some(at) => ask.with(id, Value::Bytes(at.as_bytes().to_vec())),
                None => ask,
            };
            let ask = place.query(ALL).range(&id).with(0x0064, Value::Byte(3));
            bound(bound(ask, 0x0062, start), 0x0063, end)
        };
        let all = ids(&pages(&mut channel, &place.query(ALL).range(&id)).0);
        for (first, second) in [
            (part(None, Some(&middle)), part(Some(&middle), None)),
            (part(Some(&start), Some(&middle)), part(Some(&middle), Some(&end))),
        ] {
            let first = ids(&pages(&mut channel, &first.with(0x0004, Value::ULong(2))).0);
            let second = ids(&pages(&mut channel, &second).0);
            assert!(!first.is_empty() && !second.is_empty(), "{id} {first:?} {second:?}");
            assert_eq!(first.union(&second).cloned().collect::<BTreeSet<_>>(), all, "{id}");
            assert!(first.is_disjoint(&second), "{id}");
        }
        // A feed has them too.
        let feed = place.feed(READ_FEED).range(&id).with(0x0064, Value::Byte(3));
        let feed = feed.with(0x0063, Value::Bytes(middle.as_bytes().to_vec()));
        let (rows, _) = pages(&mut channel, &feed);
        let first = ids(&pages(&mut channel, &part(None, Some(&middle))).0);
        assert_eq!(rows.len(), first.len(), "{id}");
    }
}

/// A place between two; nothing is the first, `FF` after the last.
fn middle(start: &str, end: &str) -> String {
    let number = |text: &str| {
        let digits: String = text.chars().chain("00000000".chars()).take(8).collect();
        u64::from_str_radix(&digits, 16).unwrap()
    };
    let end = if end == "FF" { 0x4000_0000 } else { number(end) };
    format!("{:08X}{}", u64::midpoint(number(start), end), "0".repeat(24))
}

#[test]
fn what_a_query_took_is_told_who_asks() {
    let (_server, place, mut channel) = station();
    let ask = place.query(ALL).key("k7");
    let plain = channel.ask(&ask);
    assert!(plain.tokens.get(0x0028).is_none() && plain.tokens.get(0x0044).is_none());
    let told = ask.with(0x0042, Value::Byte(1)).with(0x00C2, Value::Byte(1));
    let told = channel.ask(&told.with(0x00C4, Value::Byte(3)).with(0x00C8, Value::Byte(0)));
    assert!(told.is(200).text(0x0028).contains("retrievedDocumentCount=3"), "{told:?}");
    assert!(!told.text(0x0044).is_empty());
    assert_eq!(told.json()["_count"], 3, "the answer is text");
}

/// Clients wait five or six seconds for a page: one that can end anywhere does so in time, with
/// what it has, and goes on from there.
#[test]
fn a_page_that_takes_long_is_a_part() {
    let counts = ["1", "3600000"].map(|page_timeout| {
        let server = Server::start(&["--page-timeout-ms", page_timeout]);
        let place = Place::make(&server, "d", "c");
        let mut channel = Channel::open(&server);
        let list: Vec<u32> = (0..60).collect();
        for n in 0..ITEMS {
            let item = json!({"id": format!("i{n}"), "pk": "x", "a": list}).to_string();
            channel.ask(&place.write(CREATE, "x", &item)).is(201);
        }
        let slow = "SELECT VALUE c.id FROM c WHERE NOT EXISTS(\
                    SELECT VALUE 1 FROM x IN c.a JOIN y IN c.a WHERE x + y < 0)";
        let ask = place.query(slow).range("0").with(0x0004, Value::ULong(u32::MAX));
        let (rows, count) = pages(&mut channel, &ask);
        assert_eq!(ids(&rows).len(), ITEMS);
        count
    });
    assert!(counts[0] > 2 && counts[1] == 1, "{counts:?} pages");
}

#[test]
fn a_plan_is_made_over_frames_too() {
    let (_server, place, mut channel) = station();
    let query = json!({"query": "SELECT * FROM c ORDER BY c.n"}).to_string();
    let features = "Aggregate, Distinct, MultipleOrderBy, OffsetAndLimit, OrderBy, Top";
    let ask = place.feed(QUERY_PLAN).body(&query).with(0x00FF, text(features));
    let reply = channel.ask(&ask.with(0x0100, Value::SmallString("1.0".to_owned())));
    assert_eq!(reply.is(200).json()["queryInfo"]["orderBy"], json!(["Ascending"]));
}
