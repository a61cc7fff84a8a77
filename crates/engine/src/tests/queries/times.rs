//! What is found by when it was written.

use serde_json::{Value, json};

use super::super::server::Server;
use super::named::empty;

/// Twelve items in second 1000. In second 1001 the even ones are written again, the
/// last first, and twelve more come.
fn server(slices: usize) -> Server {
    let mut server = empty(slices, json!({}));
    for id in 0..12 {
        server.create(item(id)).unwrap();
    }
    server.clock(1001);
    for id in (0..12).rev().filter(|id| id % 2 == 0) {
        server.upsert(item(id)).unwrap();
    }
    for id in 12..24 {
        server.create(item(id)).unwrap();
    }
    server
}

fn item(id: i64) -> Value {
    json!({"id": id.to_string(), "pk": id % 5, "number": id})
}

fn numbers(range: impl Iterator<Item = i64>) -> Vec<Value> {
    range.map(Value::from).collect()
}

/// By second, and then as they were created.
fn in_order() -> Vec<Value> {
    numbers((1..12).step_by(2).chain((0..12).step_by(2)).chain(12..24))
}

#[test]
fn items_of_one_second_come_in_the_order_of_their_numbers() {
    let server = server(1);
    let mut expected = in_order();
    for (order, query) in [
        ("up", "SELECT VALUE c.number FROM c ORDER BY c._ts"),
        ("down", "SELECT VALUE c.number FROM c ORDER BY c._ts DESC"),
    ] {
        for rows in 1..9 {
            assert_eq!(server.pages(query, rows), expected, "{order}, pages of {rows}");
        }
        expected.reverse();
    }
}

#[test]
fn every_item_of_a_range_comes_once() {
    for slices in [1, 4] {
        let server = server(slices);
        for (range, expected) in [
            ("c._ts >= 1001", numbers((0..12).step_by(2).chain(12..24))),
            ("c._ts > 1000", numbers((0..12).step_by(2).chain(12..24))),
            ("c._ts = 1001", numbers((0..12).step_by(2).chain(12..24))),
            ("c._ts < 1001", numbers((1..12).step_by(2))),
            ("c._ts <= 1000", numbers((1..12).step_by(2))),
            ("c._ts BETWEEN 1000 AND 1001", numbers(0..24)),
            ("c._ts > 1001", vec![]),
            ("c._ts < 1000", vec![]),
        ] {
            for rows in [1, 3, 100] {
                for order in ["", " ORDER BY c._ts", " ORDER BY c._ts DESC"] {
                    let query = format!("SELECT VALUE c.number FROM c WHERE {range}{order}");
                    let mut found = server.pages(&query, rows);
                    found.sort_by_key(Value::as_i64);
                    assert_eq!(found, expected, "{query}, {slices} slices, pages of {rows}");
                }
            }
        }
    }
}

#[test]
fn the_dead_are_not_found_by_when_they_were_written() {
    let mut server = empty(1, json!({}));
    server.set_default(Some(-1), &[]);
    for id in 0..20 {
        let mut item = item(id);
        if id % 2 == 0 {
            item["ttl"] = 10.into();
        }
        server.create(item).unwrap();
    }
    let query = "SELECT VALUE c.number FROM c ORDER BY c._ts";
    assert_eq!(server.pages(query, 3), numbers(0..20));
    server.clock(1010);
    for query in [query, "SELECT VALUE c.number FROM c WHERE c._ts = 1000"] {
        assert_eq!(server.pages(query, 3), numbers((1..20).step_by(2)), "{query}");
    }
    let count = "SELECT VALUE COUNT(1) FROM c WHERE c._ts <= 1000";
    assert_eq!(server.pages(count, 3), [json!(10)]);
}
