//! What random queries once found.

use dayfly_model::ErrorKind;
use serde_json::{Value, json};

use super::super::server::{Kind, Server, at, write};
use crate::operation::{Act, Operation, Page, QueryItems, Showing};

/// More pages than any query here has.
const PAGES_MAX: usize = 1000;

/// More items than are read without an index.
const MANY: i64 = 30;

impl Server {
    /// One page of a query: its rows, and how the next one starts.
    pub(in crate::tests) fn page(
        &self,
        query: &str,
        rows: usize,
        continuation: Option<String>,
    ) -> (Vec<Value>, Option<String>) {
        self.try_page(query, rows, continuation).unwrap()
    }

    /// The same, if there is one.
    pub(super) fn try_page(
        &self,
        query: &str,
        rows: usize,
        continuation: Option<String>,
    ) -> Result<(Vec<Value>, Option<String>), ErrorKind> {
        let query = QueryItems {
            at: at(),
            query: json!({ "query": query }).to_string().into_bytes(),
            page: Page { limit: Some(rows), continuation },
            cross_partition: true,
            scan: true,
            ..QueryItems::default()
        };
        let success = self.run(Operation::QueryItems(query))?;
        let body: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
        Ok((body["Documents"].as_array().unwrap().clone(), success.continuation))
    }

    pub(super) fn pages(&self, query: &str, rows: usize) -> Vec<Value> {
        let (mut all, mut continuation) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let (page, next) = self.page(query, rows, continuation);
            all.extend(page);
            continuation = next;
            if continuation.is_none() {
                return all;
            }
        }
        panic!("{query} does not end");
    }
}

/// A container with items that are made from their numbers.
fn server(count: i64, policy: Value, item: impl Fn(i64) -> Value) -> Server {
    let server = empty(1, policy);
    add(&server, 0..count, item);
    server
}

/// A container without items.
pub(super) fn empty(slices: usize, policy: Value) -> Server {
    let server = Server::new(Kind::Memory { slices });
    server.run(Operation::CreateDatabase { id: "d".to_owned(), throughput: None }).unwrap();
    let definition =
        json!({"id": "c", "partitionKey": {"paths": ["/pk"]}, "indexingPolicy": policy});
    let create = Operation::CreateContainer {
        database: "d".to_owned(),
        definition: definition.to_string().into_bytes(),
        throughput: None,
        showing: Showing::Whole,
    };
    server.run(create).unwrap();
    server
}

fn add(server: &Server, numbers: std::ops::Range<i64>, item: impl Fn(i64) -> Value) {
    for number in numbers {
        let mut item = item(number);
        item["id"] = number.to_string().into();
        item["pk"] = "x".into();
        server.create(item).unwrap();
    }
}

fn ids(numbers: impl Iterator<Item = i64>) -> Vec<Value> {
    numbers.map(|number| number.to_string().into()).collect()
}

#[test]
fn an_item_with_several_values_in_a_range_comes_once() {
    let server = server(MANY, json!({}), |_| json!({"tags": [1, 2, 3]}));
    let query = "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 2) AND c.tags[0] > 0";
    assert_eq!(server.pages(query, 7).len(), 30);
    let query = "SELECT VALUE t FROM c JOIN t IN c.tags WHERE t > 1";
    assert_eq!(server.pages(query, 7).len(), 60);
}

#[test]
fn items_that_are_sorted_alike_have_one_order() {
    for (order, falls) in [("ascending", false), ("descending", true)] {
        let composite = json!([[{"path": "/a", "order": order}, {"path": "/b", "order": order}]]);
        let policy = json!({"compositeIndexes": composite});
        let server = server(MANY, policy, |_| json!({"a": 1, "b": 1}));
        let rising = server.pages("SELECT VALUE c.id FROM c ORDER BY c.a, c.b", 7);
        assert_eq!(rising, ids(0..MANY), "{falls}");
        let falling = server.pages("SELECT VALUE c.id FROM c ORDER BY c.a DESC, c.b DESC", 7);
        assert_eq!(falling, ids((0..MANY).rev()), "{falls}");
    }
}

#[test]
fn a_page_may_end_among_values_that_the_index_cuts() {
    let server = server(MANY, json!({}), |number| json!({"a": [MANY - number]}));
    let rising = server.pages("SELECT VALUE c.id FROM c ORDER BY c.a", 7);
    assert_eq!(rising, ids((0..MANY).rev()));
    let falling = server.pages("SELECT VALUE c.id FROM c ORDER BY c.a DESC", 7);
    assert_eq!(falling, ids(0..MANY));
}

#[test]
fn a_query_goes_on_when_few_items_have_become_many() {
    for filter in ["c.a = 1", "c.a > 0", "c.a != 0 OR c.b = 1"] {
        let item = |_| json!({"a": 1, "b": 1});
        let server = server(3, json!({}), item);
        let query = format!("SELECT VALUE c.id FROM c WHERE {filter}");
        let (mut rows, continuation) = server.page(&query, 2, None);
        add(&server, 3..MANY, item);
        rows.extend(server.page(&query, 1000, continuation).0);
        let old: Vec<Value> = rows.into_iter().filter(|id| ids(0..3).contains(id)).collect();
        assert_eq!(old, ids(0..3), "{filter}");
    }
}

#[test]
fn a_page_comes_further_however_hard_its_first_item_is_to_find() {
    let server = server(2 * MANY, json!({}), |number| json!({"a": number, "b": number % 2}));
    let values: Vec<String> = (0..2 * MANY).map(|number| number.to_string()).collect();
    let values = values.join(", ");
    for filter in [format!("c.a IN ({values})"), "c.b = 0 OR c.b = 1 OR c.a >= 40".to_owned()] {
        let query = format!("SELECT VALUE c.id FROM c WHERE {filter}");
        assert_eq!(server.pages(&query, 7).len(), 60, "{filter}");
    }
}

#[test]
fn a_page_ends_within_an_item_that_goes() {
    for query in ["SELECT VALUE t FROM c JOIN t IN c.tags", "SELECT VALUE t FROM t IN c.tags"] {
        let tags = |n: i64| (0..3).map(|place| json!(10 * n + place)).collect::<Vec<Value>>();
        let server = server(4, json!({}), |n| json!({"tags": tags(n)}));
        let (rows, continuation) = server.page(query, 5, None);
        assert_eq!(rows, [tags(0), tags(1)[..2].to_vec()].concat());
        server.run(write(Act::Delete("1".to_owned()), "\"x\"")).unwrap();
        let (rows, _) = server.page(query, 100, continuation);
        assert_eq!(rows, [tags(2), tags(3)].concat(), "{query}");
    }
}

/// A row that stands at several places of an order counts for the first, also when that
/// is on an earlier page; and one that stands behind a page's end is not left out for one
/// that turns out to have been given.
#[test]
fn a_distinct_row_comes_once_wherever_else_it_stands() {
    let item = |n: i64| json!({ "id": n.to_string(), "pk": 1, "v": n % 7, "n": (n * 11) % MANY });
    let server = server(MANY, json!({}), item);
    for query in [
        "SELECT DISTINCT VALUE c.v FROM c ORDER BY c.n",
        "SELECT DISTINCT VALUE c.v FROM c ORDER BY c.n DESC",
        "SELECT DISTINCT VALUE c.v FROM c ORDER BY c.v DESC",
        "SELECT DISTINCT VALUE c.v FROM c",
    ] {
        let whole = server.pages(query, 100);
        let mut sorted = whole.clone();
        sorted.sort_by_key(Value::as_i64);
        assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6], "{query}");
        for rows in 1..7 {
            assert_eq!(server.pages(query, rows), whole, "{query} in pages of {rows}");
        }
    }
}
