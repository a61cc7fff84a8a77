//! The change feed: whose turn it is, what a page looks at, and what it finds past what it
//! does not show.

use dayfly_model::epk::Epk;
use serde_json::{Value, json};

use super::server::{Kind, Server, Setup, at, partition_key};
use crate::cancel::Cancel;
use crate::operation::{ChangesFrom, Division, FeedMode, Operation, Part, ReadChanges};
use crate::{Caller, QueryLimits};

/// A page: the ids on it, and the place behind it; none: nothing is new.
type FeedPageSeen = (Option<Vec<String>>, String);

impl Server {
    fn changes(&self, part: &Part, from: ChangesFrom, limit: usize) -> FeedPageSeen {
        let read = ReadChanges {
            at: at(),
            part: part.clone(),
            mode: FeedMode::Latest,
            from,
            since: None,
            limit: Some(limit),
            envelope: false,
        };
        seen(&self.run(Operation::ReadChanges(read)).unwrap())
    }
}

fn seen(page: &crate::reply::Success) -> FeedPageSeen {
    let place = page.etag.clone().unwrap();
    if page.status == 304 {
        return (None, place);
    }
    let body: Value = serde_json::from_slice(&page.body.to_vec()).unwrap();
    let items = body["Documents"].as_array().unwrap().iter();
    let name = |item: &Value| {
        let item = if item["current"].is_object() { &item["current"] } else { item };
        item["id"].as_str().unwrap_or("an end").to_owned()
    };
    (Some(items.map(name).collect()), place)
}

fn key(name: &str) -> Part {
    Part::of(Some(partition_key(name)))
}

/// A page that one bucket fills to the last row is followed by one of the next bucket, not
/// by what came into the first meanwhile.
#[test]
fn no_bucket_waits_for_one_that_always_has_something() {
    let mut server = Server::new(Kind::Memory { slices: 2 });
    server.make_container(None, &[]);
    let in_slice = |slice| {
        let mut keys = (0..).map(|number| format!("k{number}"));
        keys.find(|key| server.slice_of(key) == slice).unwrap()
    };
    for (busy, idle) in [(0, 1), (1, 0)] {
        let whole = Part::default();
        let (_, mut place) = server.changes(&whole, ChangesFrom::Now, 1);
        server.upsert(json!({"id": "idle", "pk": in_slice(idle)})).unwrap();
        let mut ids = Vec::new();
        for _ in 0..4 {
            server.upsert(json!({"id": "busy", "pk": in_slice(busy)})).unwrap();
            let (page, next) = server.changes(&whole, ChangesFrom::After(place), 1);
            ids.extend(page.unwrap());
            place = next;
        }
        assert!(ids.contains(&"idle".to_owned()), "{ids:?}");
        assert!(ids.contains(&"busy".to_owned()), "{ids:?}");
        while let (Some(_), next) = server.changes(&whole, ChangesFrom::After(place.clone()), 9) {
            place = next;
        }
    }
}

/// A page that is full where nothing more has changed is told as what it is; the one behind
/// it is the end.
#[test]
fn a_page_that_is_full_at_the_end_is_the_last() {
    let mut server = Server::new(Kind::Memory { slices: 3 });
    server.make_container(None, &[]);
    server.create(json!({"id": "a", "pk": "x"})).unwrap();
    let whole = Part::default();
    let (page, place) = server.changes(&whole, ChangesFrom::Beginning, 1);
    assert_eq!(page.unwrap(), ["a"]);
    assert_eq!(server.changes(&whole, ChangesFrom::After(place), 1).0, None);
}

/// A few items among very many others cost what they are, whoever else wrote what.
#[test]
fn what_a_small_key_costs_is_not_what_the_others_wrote() {
    const OTHERS: usize = 6_000;
    let limits = QueryLimits { feed_looks: 3_000, ..QueryLimits::USUAL };
    let setup = Setup { limits, ..Setup::of(Kind::Watched { slices: 1 }) };
    let mut server = Server::with(setup);
    server.make_container(Some(50), &[]);
    let small = |id: usize| json!({"id": format!("s{id}"), "pk": "small"});
    server.create(small(0)).unwrap();
    server.create(json!({"id": "dead", "pk": "small", "ttl": 1})).unwrap();
    server.create(small(1)).unwrap();
    for number in 0..OTHERS {
        server
            .create(json!({"id": number.to_string(), "pk": format!("k{}", number % 40)}))
            .unwrap();
        if number % 2_000 == 0 {
            server.create(small(2 + number / 2_000)).unwrap();
        }
    }
    server.upsert(small(1)).unwrap();
    server.clock(1001);
    let parts = [key("small"), {
        let mut epk = server.epk_of("small");
        let start = Epk(epk.clone());
        *epk.last_mut().unwrap() += 1;
        Part { start: Some(start), end: Some(Epk(epk)), ..Part::default() }
    }];
    for part in parts {
        for limit in [1, 2, 3, 100] {
            let (mut place, mut ids) = (ChangesFrom::Beginning, Vec::new());
            let mut pages = 0;
            loop {
                let before = server.watched().rows_read();
                let (page, next) = server.changes(&part, place, limit);
                let looked = server.watched().rows_read() - before;
                assert!(looked < 2_000, "{looked} rows for a page of {limit}");
                place = ChangesFrom::After(next);
                let Some(page) = page else { break };
                assert!(!page.is_empty() && page.len() <= limit, "{page:?}");
                ids.extend(page);
                pages += 1;
            }
            assert_eq!(ids, ["s0", "s2", "s3", "s4", "s1"], "by {limit}");
            assert_eq!(pages, 5usize.div_ceil(limit));
        }
    }
    // What comes later comes behind the place of a page that knew all there was.
    let (_, place) = server.changes(&key("small"), ChangesFrom::Beginning, 100);
    server.create(small(9)).unwrap();
    let (page, place) = server.changes(&key("small"), ChangesFrom::After(place), 100);
    assert_eq!(page.unwrap(), ["s9"]);
    server.clock(1100);
    assert_eq!(server.changes(&key("small"), ChangesFrom::After(place), 100).0, None);
    assert_eq!(server.changes(&key("small"), ChangesFrom::Beginning, 100).0, None);
}

/// What is not few is gone on for, as long as nothing was found: a client takes an empty page
/// for the end.
#[test]
fn a_page_goes_on_until_it_has_found_something() {
    let limits = QueryLimits { feed_looks: 20, ..QueryLimits::SMALL };
    for mode in [FeedMode::Latest, FeedMode::AllVersions] {
        let setup = Setup { limits, ..Setup::of(Kind::Memory { slices: 1 }) };
        let mut server = Server::with(setup);
        server.make_container(Some(50), &[]);
        server.begin_log();
        let read = |part: Part, from| {
            let (at, limit) = (at(), Some(100));
            let read = ReadChanges { at, part, mode, from, since: None, limit, envelope: true };
            seen(&server.run(Operation::ReadChanges(read)).unwrap())
        };
        let (_, start) = read(Part::default(), ChangesFrom::Now);
        for id in 0..300 {
            server.create(json!({"id": id.to_string(), "pk": "other"})).unwrap();
        }
        for id in 0..90 {
            server.create(json!({"id": format!("b{id}"), "pk": "big"})).unwrap();
        }
        let (mut place, mut ids) = (start, Vec::new());
        while let (Some(page), next) = read(key("big"), ChangesFrom::After(place.clone())) {
            assert!(!page.is_empty(), "{mode:?} at {place}");
            ids.extend(page);
            place = next;
        }
        assert_eq!(ids.len(), 90, "{mode:?}");
    }
}

/// Who is in a hurry is told how far a page came that has found nothing.
#[test]
fn a_page_that_finds_nothing_ends_when_it_is_hurried() {
    let limits =
        QueryLimits { feed_looks: 20, feed_looks_in_vain: 5_000_000, ..QueryLimits::SMALL };
    let setup = Setup { limits, ..Setup::of(Kind::Memory { slices: 1 }) };
    let mut server = Server::with(setup);
    server.make_container(None, &[]);
    for id in 0..300 {
        server.create(json!({"id": id.to_string(), "pk": "other"})).unwrap();
    }
    for id in 0..9 {
        server.create(json!({"id": format!("b{id}"), "pk": "big"})).unwrap();
    }
    let hurried = |from| {
        let cancel = Cancel::default();
        cancel.hurry();
        let (at, part, limit) = (at(), key("big"), Some(10));
        let mode = FeedMode::Latest;
        let read = ReadChanges { at, part, mode, from, since: None, limit, envelope: false };
        let asked = Operation::ReadChanges(read);
        let reply = server.engine().run_for(Caller::Primary, asked, cancel).wait();
        seen(&reply.outcome.unwrap())
    };
    let (mut place, mut pages, mut ids) = (ChangesFrom::Beginning, 0, Vec::new());
    while let (Some(page), next) = hurried(place) {
        (pages, place) = (pages + 1, ChangesFrom::After(next));
        ids.extend(page);
    }
    assert_eq!(ids.len(), 9);
    assert!(pages > 5, "{pages}");
}

/// What has expired and waits for the purge is in the way of a page, and is passed.
#[test]
fn one_who_lives_behind_ten_thousand_dead_is_on_the_first_page() {
    let setup = Setup { limits: QueryLimits::USUAL, ..Setup::of(Kind::Memory { slices: 1 }) };
    let mut server = Server::with(setup);
    server.make_container(Some(5), &[]);
    for id in 0..10_000 {
        server.create(json!({"id": id.to_string(), "pk": "x"})).unwrap();
    }
    server.clock(1005);
    server.create(json!({"id": "alive", "pk": "x"})).unwrap();
    let (page, place) = server.changes(&Part::default(), ChangesFrom::Beginning, 1);
    assert_eq!(page.unwrap(), ["alive"]);
    assert_eq!(server.changes(&Part::default(), ChangesFrom::After(place), 1).0, None);
    assert_eq!(server.stored_items(), 10_001, "nothing was purged");
}

/// The halves of a range share a bucket, and each is told its own, whoever wrote how much to
/// the other.
#[test]
fn a_small_half_is_told_its_own() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    server.run(Operation::SplitRanges { at: at(), division: Division::Widest }).unwrap();
    let in_range = |range| {
        let mut keys = (0..).map(|number| format!("k{number}"));
        keys.find(|key| server.range_of(key) == range).unwrap()
    };
    for id in 0..3 {
        server.create(json!({"id": format!("left{id}"), "pk": in_range(0)})).unwrap();
        for other in 0..20 {
            let id = format!("right{id}-{other}");
            server.create(json!({"id": id, "pk": in_range(1)})).unwrap();
        }
    }
    let ids = server.engine().ranges_of(&at()).unwrap();
    let left = Part { range: Some(ids[0].to_string()), ..Part::default() };
    let (mut place, mut told) = (ChangesFrom::Beginning, Vec::new());
    while let (Some(page), next) = server.changes(&left, place, 100) {
        assert!(!page.is_empty(), "at {next}");
        told.extend(page);
        place = ChangesFrom::After(next);
    }
    assert_eq!(told, ["left0", "left1", "left2"]);
}
