//! Which way a query takes, and that it goes on along it.

use serde_json::{Value, json};

use super::super::index::only;
use super::super::server::{Kind, Server, at, partition_key, write};
use crate::operation::{Act, Operation, Page, Part, QueryItems};

/// How many items a large partition has, and a small one: more than are read
/// without an index, and together not more than a page looks at.
const LARGE: u32 = 40;
const SMALL: u32 = 20;

/// A server with a large partition and a small one. In each item `a` is the same,
/// `n` is another, and `m` falls with it.
fn server(policy: &Value) -> Server {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(1000), &[]);
    server.try_definition(Some(1000), policy, &json!([])).unwrap();
    for number in 0..LARGE + SMALL {
        let key = if number < LARGE { "large" } else { "small" };
        let (n, m) = (number, LARGE + SMALL - number);
        let item = json!({"id": n.to_string(), "pk": key, "a": 1, "n": n, "m": m, "t": [n, m]});
        server.create(item).unwrap();
    }
    server
}

fn asked(key: Option<&str>, query: &str, page: Page) -> QueryItems {
    QueryItems {
        at: at(),
        query: json!({ "query": query }).to_string().into_bytes(),
        part: Part { partition_key: key.map(partition_key), ..Part::default() },
        page,
        cross_partition: true,
        scan: true,
        ..QueryItems::default()
    }
}

impl Server {
    /// The way of a query and the condition it goes by, and how many entries and
    /// items it looked at.
    fn way(&self, key: Option<&str>, query: &str) -> (String, String, u64, u64) {
        let page = Page { limit: Some(1000), continuation: None };
        let success = self.run(Operation::ExplainQuery(asked(key, query, page))).unwrap();
        let told: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (access, read) = (&told["access"], &told["read"]);
        let count = |name: &str| read[name].as_u64().unwrap();
        (text(&access["way"]), text(&access["condition"]), count("entries"), count("items"))
    }

    /// The numbers that a query finds, in pages of 7. After the first page
    /// `between` happens, and the partition is `keys.1`.
    fn numbers(
        &self,
        keys: (Option<&str>, Option<&str>),
        filter: &str,
        between: impl Fn(&Server),
    ) -> Vec<u64> {
        let query = format!("SELECT VALUE c.n FROM c WHERE {filter}");
        let mut found = Vec::new();
        let mut continuation = None;
        loop {
            let is_first = found.is_empty();
            let key = if is_first { keys.0 } else { keys.1 };
            let page = Page { limit: Some(7), continuation };
            let success = self.run(Operation::QueryItems(asked(key, &query, page))).unwrap();
            let body: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
            let rows = body["Documents"].as_array().unwrap();
            found.extend(rows.iter().map(|row| row.as_u64().unwrap()));
            continuation = success.continuation;
            if continuation.is_none() {
                return found;
            }
            if is_first {
                between(self);
            }
        }
    }
}

#[test]
fn the_way_of_a_query() {
    const LARGE: Option<&str> = Some("large");
    const SMALL: Option<&str> = Some("small");
    let all = server(&json!({}));
    let some = server(&only(&["n", "a"]));
    for (server, key, filter, way, condition, entries, items) in [
        // All partitions.
        (&all, None, "c.a = 1", "values", "/a = 1", 60, 60),
        // A list of few is tried first, and then a longer one.
        (&all, None, "c.n < 2", "range", "/n < 2", 2, 2),
        (&all, None, "c.n < 5", "range", "/n < 5", 4 + 5, 5),
        (&all, None, "c.n >= 1 AND c.m < 6", "range", "/m < 6", 4 + 5, 5),
        // The tightest range is not indexed, and another is.
        (&some, None, "c.n >= 55 AND c.m BETWEEN 1 AND 9", "range", "/n >= 55", 4 + 5, 5),
        (&some, None, "c.m BETWEEN 1 AND 9", "scan", "", 60, 60),
        // Nothing is sought but the partition.
        (&all, SMALL, "c.pk = 'small'", "scan", "", 20, 20),
        (&all, None, "c.pk = 'small'", "scan", "", 20, 20),
        (&all, SMALL, "true", "scan", "", 20, 20),
        // One value in a partition: the rows of the partition are read only to leap.
        (&all, LARGE, "c.n = 5", "values", "/n = 5", 1, 1),
        (&all, None, "c.pk = 'large' AND c.n = 5", "values", "/n = 5", 1, 1),
        (&all, SMALL, "c.n = 5", "values", "/n = 5", 21, 0),
        (&all, SMALL, "c.a = 1", "values", "/a = 1", 80, 20),
        (&all, SMALL, "c.a = 1 AND c.n = 50", "values", "(/a = 1 AND /n = 50)", 61, 1),
        (&some, SMALL, "c.n = 50", "values", "/n = 50", 1, 1),
        // Another partition than the filter's has nothing.
        (&all, SMALL, "c.pk = 'large' AND c.n = 5", "values", "", 61, 0),
        // A range in a partition; one with too many entries is read in turns with its items.
        (&all, SMALL, "c.n > 50", "range", "/n > 50", 4 + 9, 9),
        (&all, LARGE, "c.n > 50", "range", "/n > 50", 4 + 9, 0),
        (&all, SMALL, "c.n >= 0", "scan", "", 62, 20),
        (&all, None, "c.pk = 'small' AND c.n >= 0", "scan", "", 62, 20),
        (&all, SMALL, "ARRAY_LENGTH(c.t) = 2 AND c.t[0] > 0", "scan", "", 62, 20),
        (&some, SMALL, "c.n >= 0", "scan", "", 62, 20),
    ] {
        let (taken, by, looked, read) = server.way(key, &format!("SELECT * FROM c WHERE {filter}"));
        assert_eq!(taken, way, "{filter} in {key:?}");
        if !condition.is_empty() || way == "scan" {
            assert_eq!(by, condition, "{filter} in {key:?}");
        }
        assert_eq!((looked, read), (entries, items), "{filter} in {key:?}");
    }
}

/// A subquery that gives the items is asked of the index as the container is.
#[test]
fn the_way_to_items_of_a_subquery() {
    let server = server(&json!({}));
    for (of_subquery, of_container) in [
        ("SELECT * FROM (SELECT * FROM c WHERE c.n < 5) AS s", "SELECT * FROM c WHERE c.n < 5"),
        (
            "SELECT * FROM (SELECT VALUE c FROM c WHERE c.n >= 1) s WHERE s.m < 6",
            "SELECT * FROM c WHERE c.n >= 1 AND c.m < 6",
        ),
        (
            "SELECT TOP 3 * FROM (SELECT * FROM c) s ORDER BY s.n DESC",
            "SELECT TOP 3 * FROM c ORDER BY c.n DESC",
        ),
    ] {
        let way = server.way(None, of_subquery);
        assert_ne!(way.0, "scan", "{of_subquery}");
        assert_eq!(way, server.way(None, of_container), "{of_subquery}");
    }
    // No entries have the order of one element: the matches are read.
    assert_eq!(server.way(None, "SELECT TOP 3 * FROM c ORDER BY c.t[0]").0, "scan");
}

/// What the policy becomes between two pages.
fn becomes(policy: &Value) -> impl Fn(&Server) {
    move |server| {
        server.try_definition(Some(1000), policy, &json!([])).unwrap();
        server.rebuild_all();
    }
}

#[test]
fn a_page_goes_on_along_another_range_that_says_more_by_now() {
    let filters = ["c.n >= 0 AND c.m BETWEEN 1 AND 55", "c.n >= 0 AND c.m BETWEEN 1 AND 12"];
    for (filter, expected) in filters.into_iter().zip([5..60, 48..60]) {
        let (one, both) = (only(&["n", "pk"]), json!({}));
        for (policy, next) in [(&one, &both), (&both, &one)] {
            let server = server(policy);
            let found = server.numbers((None, None), filter, becomes(next));
            assert_eq!(found, expected.clone().collect::<Vec<_>>(), "{filter}");
        }
    }
}

#[test]
fn a_page_goes_on_in_a_partition_however_that_is_named() {
    let everything = json!({});
    let small = Some("small");
    let expected: Vec<u64> = (40..60).collect();
    for filter in ["c.pk = 'small'", "c.pk = 'small' AND c.a = 1", "c.pk = 'small' AND c.n > 0"] {
        for keys in [(small, None), (None, small), (small, small), (None, None)] {
            let server = server(&everything);
            assert_eq!(server.numbers(keys, filter, |_| {}), expected, "{filter} {keys:?}");
        }
    }
    // The entries of the key may go, or come.
    let (with, without) = (only(&["a", "pk"]), only(&["a"]));
    for (policy, next) in [(&with, &without), (&without, &with)] {
        let server = server(policy);
        let found = server.numbers((small, small), "c.a = 1", becomes(next));
        assert_eq!(found, expected, "{policy}");
    }
}

#[test]
fn a_small_partition_is_sorted_by_itself() {
    let server = server(&json!({}));
    // More than are read without an index.
    for number in 100..109 {
        let item = json!({"id": number.to_string(), "pk": "tiny", "a": 1, "n": number});
        server.create(item).unwrap();
    }
    for filter in ["true", "c.a = 1", "c.n > 0"] {
        let query = format!("SELECT * FROM c WHERE {filter} ORDER BY c.n");
        assert_eq!(server.way(None, &query).0, "order", "{filter}");
        assert_eq!(server.way(Some("small"), &query).0, "order", "{filter}");
        let (way, _, _, items) = server.way(Some("tiny"), &query);
        assert_ne!(way, "order", "{filter}");
        assert_eq!(items, 9, "{filter}");
    }
}

/// The dead are not counted, so the purge changes no way and no charge.
#[test]
fn few_are_those_that_are_alive() {
    for key in [None, Some("x")] {
        let mut server = Server::new(Kind::Memory { slices: 1 });
        server.make_container(Some(1000), &[]);
        let add = |server: &Server, numbers: std::ops::Range<u32>, ttl: u32| {
            for n in numbers {
                let item = json!({"id": n.to_string(), "pk": "x", "a": 1, "n": n, "ttl": ttl});
                server.create(item).unwrap();
            }
        };
        let query = "SELECT * FROM c WHERE c.a = 1";
        let way = |server: &Server| server.way(key, query).0;
        add(&server, 0..6, 500);
        assert_eq!(way(&server), "scan", "{key:?}");
        add(&server, 6..7, 50);
        assert_eq!(way(&server), "values", "{key:?}");
        add(&server, 7..18, 50);
        server.clock(1050);
        assert_eq!(way(&server), "scan", "12 are dead, {key:?}");
        add(&server, 18..19, 1);
        server.clock(1051);
        // In a partition, those were leapt over that a walk met before.
        let expected = if key.is_some() { "scan" } else { "values" };
        assert_eq!(way(&server), expected, "13 are dead, {key:?}");
        server.purge();
        assert_eq!(way(&server), "scan", "{key:?}");
    }
}

#[test]
fn a_page_goes_on_among_items_that_are_sorted_alike() {
    const COUNT: u32 = 150;
    let composite = json!([
        {"path": "/a", "order": "descending"}, {"path": "/b", "order": "ascending"}
    ]);
    for slices in [1, 3] {
        let mut server = Server::new(Kind::Memory { slices });
        server.make_container(None, &[]);
        server.try_definition(None, &json!({"compositeIndexes": [composite]}), &json!([])).unwrap();
        for number in 0..COUNT {
            let key = format!("p{}", number % 9);
            let item = json!({"id": number.to_string(), "pk": key, "n": number, "a": 1, "b": "x"});
            server.create(item).unwrap();
        }
        for order in ["c.a", "c.a DESC", "c.a DESC, c.b", "c.a ASC, c.b DESC"] {
            let query = format!("SELECT VALUE c.n FROM c ORDER BY {order}");
            let mut found = Vec::new();
            let mut continuation = None;
            loop {
                let page = Page { limit: Some(7), continuation: continuation.take() };
                let ask = asked(None, &query, page);
                let told = server.run(Operation::ExplainQuery(ask.clone())).unwrap();
                let told: Value = serde_json::from_slice(&told.body.to_vec()).unwrap();
                assert_eq!(told["access"]["way"], "order");
                // The one that the page before ended in, those of the page, and the next.
                assert!(told["read"]["items"].as_u64().unwrap() <= 9, "{order}: {told}");
                let success = server.run(Operation::QueryItems(ask)).unwrap();
                let body: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
                let rows = body["Documents"].as_array().unwrap();
                found.extend(rows.iter().map(|row| row.as_u64().unwrap()));
                continuation = success.continuation;
                if continuation.is_none() {
                    break;
                }
            }
            let mut all = found.clone();
            all.sort_unstable();
            assert_eq!(all, (0..u64::from(COUNT)).collect::<Vec<_>>(), "{order}: {found:?}");
        }
    }
}

/// An item that is changed where pages have passed says nothing of what they gave.
#[test]
fn no_distinct_row_is_lost_to_a_change_behind_the_page() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    for (id, v) in ["pear", "plum", "fig", "kiwi"].into_iter().enumerate() {
        server.create(json!({"id": id.to_string(), "pk": "x", "v": v})).unwrap();
    }
    let query = "SELECT DISTINCT VALUE c.v FROM c";
    let (first, next) = server.page(query, 2, None);
    assert_eq!(first, ["pear", "plum"]);
    server.upsert(json!({"id": "1", "pk": "x", "v": "fig"})).unwrap();
    assert_eq!(server.page(query, 2, next).0, ["fig", "kiwi"]);
}

/// A page of the ids of what a filter finds.
fn ids(key: Option<&str>, filter: &str, continuation: Option<String>) -> QueryItems {
    let page = Page { limit: Some(7), continuation };
    asked(key, &format!("SELECT VALUE c.id FROM c WHERE {filter}"), page)
}

impl Server {
    /// What a page has, and how the next one starts.
    fn ids_of(&self, asked: QueryItems) -> (Vec<String>, Option<String>) {
        let success = self.run(Operation::QueryItems(asked)).unwrap();
        let body: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
        let rows = body["Documents"].as_array().unwrap().iter();
        (rows.map(|row| row.as_str().unwrap().to_owned()).collect(), success.continuation)
    }

    /// How many entries a page looks at.
    fn entries_of(&self, asked: QueryItems) -> u64 {
        let success = self.run(Operation::ExplainQuery(asked)).unwrap();
        let told: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
        told["read"]["entries"].as_u64().unwrap()
    }
}

/// The second page finds the list of the first one. What came into the range since is in it,
/// and what left it, was deleted or has expired is not.
#[test]
fn a_list_that_is_kept_knows_what_was_written_since() {
    for key in [None, Some("small")] {
        let mut server = server(&json!({}));
        let small = |id: u32, n: u32| json!({"id": id.to_string(), "pk": "small", "n": n, "a": 1});
        let mut mortal = small(57, 57);
        mortal["ttl"] = 50.into();
        server.upsert(mortal).unwrap();
        // 19 of them: more than the first lists have.
        let filter = "c.n >= 40 AND c.n < 59";
        let (first, continuation) = server.ids_of(ids(key, filter, None));
        assert_eq!(first, (40..47).map(|id| id.to_string()).collect::<Vec<_>>(), "{key:?}");
        let second = || ids(key, filter, continuation.clone());
        let expected: Vec<String> = (47..54).map(|id| id.to_string()).collect();
        assert_eq!(server.ids_of(second()).0, expected, "{key:?}");
        assert_eq!(server.entries_of(second()), 0, "{key:?}: a list is kept");
        server.upsert(small(59, 45)).unwrap();
        server.upsert(small(47, 99)).unwrap();
        server.create(small(60, 50)).unwrap();
        server.create(small(61, 59)).unwrap();
        server.create(json!({"id": "62", "pk": "large", "n": 50})).unwrap();
        server.run(write(Act::Delete("48".to_owned()), "\"small\"")).unwrap();
        server.clock(1060);
        let mut expected: Vec<String> = (49..57).chain(58..61).map(|id| id.to_string()).collect();
        expected.extend(key.is_none().then(|| "62".to_owned()));
        let (mut found, mut next) = (Vec::new(), continuation.clone());
        while next.is_some() {
            assert_eq!(server.entries_of(ids(key, filter, next.clone())), 0, "{key:?}");
            let (rows, continuation) = server.ids_of(ids(key, filter, next));
            found.extend(rows);
            next = continuation;
        }
        assert_eq!(found, expected, "{key:?}");
        // When much more was written than it is worth, a list is made anew.
        for id in 100..200 {
            server.create(small(id, 1000 + id)).unwrap();
        }
        assert!(server.entries_of(second()) > 0, "{key:?}");
        // The list that was made anew is as good; and a start forgets it, and no more.
        let (third, _) = server.ids_of(second());
        server.restart();
        assert_eq!(server.ids_of(second()).0, third, "{key:?}");
    }
}
