//! What is dead is walked over once.

use dayfly_storage::Direction;
use serde_json::json;

use super::{path, whole};
use crate::QueryLimits;
use crate::index::walk::Entries;
use crate::keys;
use crate::scope::Opened;
use crate::tests::server::{Kind, Server};

const PAGE: usize = 7;

fn add(server: &Server, id: &str, b: f64) {
    server.upsert(json!({"id": id, "pk": "x", "b": b})).unwrap();
}

/// How many are alive, and how many dead ones were looked at.
fn walked(opened: &Opened, name: &str, direction: Direction) -> (usize, u64) {
    let bucket = keys::bucket(opened.container.number, 0);
    let entry_range = whole(path(name));
    let mut entries =
        Entries::new(&*opened.snapshot, bucket, &entry_range, direction, &QueryLimits::SMALL)
            .unwrap();
    let mut alive = 0;
    while let Some(page) = entries.page(PAGE).unwrap() {
        alive += page.len();
    }
    (alive, entries.looked.dead)
}

/// A server with forty items that die at 1009, and ten that die at 1014.
fn filled_server() -> Server {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(9), &[]);
    for id in 0..40_u8 {
        add(&server, &id.to_string(), f64::from(id));
    }
    server.clock(1005);
    for id in 40..50_u8 {
        add(&server, &id.to_string(), f64::from(id));
    }
    server
}

const WAYS: [(&str, Direction); 4] = [
    ("b", Direction::Forward),
    ("b", Direction::Backward),
    ("_ts", Direction::Forward),
    ("_ts", Direction::Backward),
];

#[test]
fn a_walk_leaps_over_what_an_earlier_one_found_dead() {
    for (name, direction) in WAYS {
        let way = format!("{name} {direction:?}");
        let mut server = filled_server();
        let walk = |server: &Server| walked(&server.opened(), name, direction);
        server.clock(1008);
        let before = server.opened();
        assert_eq!(walk(&server), (50, 0), "{way}");
        server.clock(1010);
        assert_eq!(walk(&server), (10, 40), "{way}");
        let (alive, dead) = walk(&server);
        assert!(alive == 10 && dead < PAGE as u64, "{way}: {dead}");
        assert_eq!(walked(&before, name, direction), (50, 0), "{way}: they are not dead yet");

        add(&server, "new", 20.5);
        let (alive, dead) = walk(&server);
        assert!(alive == 11 && dead < 2 * PAGE as u64, "{way}: {dead}");
        server.clock(1014);
        assert_eq!(walk(&server).0, 1, "{way}");
        let (alive, dead) = walk(&server);
        assert!(alive == 1 && dead < 2 * PAGE as u64, "{way}: {dead}");
        server.purge();
        assert_eq!(walk(&server), (1, 0), "{way}");
        server.check();
    }
}

#[test]
fn an_id_that_died_is_found_again_where_it_was() {
    for (name, direction) in WAYS {
        let mut server = filled_server();
        let walk = |server: &Server| walked(&server.opened(), name, direction).0;
        server.clock(1014);
        assert_eq!(walk(&server), 0);
        assert_eq!(walk(&server), 0);
        for id in 10..13_u8 {
            add(&server, &id.to_string(), f64::from(id));
        }
        assert_eq!(walk(&server), 3, "{name} {direction:?}");
        server.check();
    }
}

#[test]
fn an_item_that_outlives_its_entry_is_not_leapt_over() {
    let mut server = filled_server();
    let walk = |server: &Server| walked(&server.opened(), "b", Direction::Forward).0;
    server.clock(1007);
    add(&server, "20", 20.0);
    server.clock(1010);
    assert_eq!((walk(&server), walk(&server)), (11, 11));
    server.clock(1015);
    assert_eq!((walk(&server), walk(&server)), (1, 1), "to 1016");
    server.clock(1016);
    assert_eq!(walk(&server), 0);
}
