//! Counting one logical partition: by the rows of its order, without its items.

use dayfly_model::partition_key::PartitionKey;
use serde_json::{Value, json};

use super::super::server::{Kind, Server, at, text};
use crate::operation::{Act, Condition, Indexing, Operation, Part, QueryItems, Showing, WriteItem};
use crate::reply::QueryFigures;

fn server(slices: usize, paths: &[&str], policy: &Value) -> Server {
    let server = Server::new(Kind::Memory { slices });
    server.run(Operation::CreateDatabase { id: "d".to_owned(), throughput: None }).unwrap();
    let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
    let definition = json!({
        "id": "c",
        "partitionKey": {"paths": paths, "kind": kind, "version": 2},
        "indexingPolicy": policy,
        "defaultTtl": -1,
    });
    let create = Operation::CreateContainer {
        database: "d".to_owned(),
        definition: definition.to_string().into_bytes(),
        throughput: None,
        showing: Showing::Whole,
    };
    server.run(create).unwrap();
    server
}

fn add(server: &Server, item: &Value) {
    let write = WriteItem {
        at: at(),
        act: Act::Create(text(item)),
        partition_key: None,
        condition: Condition::default(),
        minimal: true,
        indexing: Indexing::default(),
    };
    server.run(Operation::WriteItem(write)).unwrap();
}

/// The first row of a query in one partition, and what it did.
fn ask(server: &Server, query: &str, key: &str) -> (Value, QueryFigures) {
    let query = QueryItems {
        at: at(),
        query: json!({ "query": query }).to_string().into_bytes(),
        part: Part {
            partition_key: Some(PartitionKey::parse_header(key).unwrap()),
            ..Part::default()
        },
        metrics: true,
        ..QueryItems::default()
    };
    let success = server.run(Operation::QueryItems(query)).unwrap();
    let body: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
    (body["Documents"][0].clone(), *success.query.unwrap())
}

/// Counts a partition with and without the index, and says whether its items were
/// read by the first.
fn counted(server: &Server, key: &str) -> (u64, bool) {
    let (count, figures) = ask(server, "SELECT VALUE COUNT(1) FROM c", key);
    let (naive, _) = ask(server, "SELECT VALUE SUM(c.one) FROM c", key);
    assert_eq!(count, naive, "{key}");
    assert!(figures.items == 0 || figures.items >= count.as_u64().unwrap());
    (count.as_u64().unwrap(), figures.items == 0)
}

#[test]
fn a_partition_is_counted_by_the_rows_of_its_order() {
    let long = format!("{:?}", "z".repeat(1500));
    let keys = ["\"a\"", "\"ab\"", "\"\"", "5", "5.5", "true", "null", "9007199254740993", &long];
    for slices in [1, 4] {
        let mut server = server(slices, &["/pk"], &json!({}));
        for (number, key) in (0..27).zip(keys.iter().cycle()) {
            let pk: Value = serde_json::from_str(key).unwrap();
            let mut item = json!({"id": number.to_string(), "pk": pk, "one": 1});
            if number < 9 {
                item["ttl"] = json!(10);
            }
            add(&server, &item);
        }
        add(&server, &json!({"id": "other spelling", "pk": 5.0, "one": 1}));
        add(&server, &json!({"id": "same double", "pk": 9_007_199_254_740_992_i64, "one": 1}));
        add(&server, &json!({"id": "no key", "one": 1}));
        let counts = |server: &Server| -> Vec<_> {
            keys.iter().map(|key| counted(server, &format!("[{key}]"))).collect()
        };
        let with = |counts: [u64; 9]| counts.map(|count| (count, true)).to_vec();
        assert_eq!(counts(&server), with([3, 3, 3, 4, 3, 3, 3, 4, 3]));
        assert_eq!(counted(&server, "[{}]"), (1, true));
        assert_eq!(ask(&server, "SELECT VALUE COUNT(1) FROM c", "[\"nobody\"]").0, json!(0));
        server.clock(1100);
        assert_eq!(counts(&server), with([2, 2, 2, 3, 2, 2, 2, 3, 2]), "not the dead");
        server.purge();
        assert_eq!(counts(&server), with([2, 2, 2, 3, 2, 2, 2, 3, 2]));
    }
}

#[test]
fn a_partition_is_counted_whatever_is_indexed() {
    let excluded = json!({"excludedPaths": [{"path": "/pk/?"}], "includedPaths": [{"path": "/*"}]});
    let unindexed = server(1, &["/pk"], &excluded);
    add(&unindexed, &json!({"id": "1", "pk": "a", "one": 1}));
    assert_eq!(counted(&unindexed, "[\"a\"]"), (1, true));

    let deep = server(1, &["/a", "/b"], &json!({}));
    for number in 0..20 {
        let b = if number < 2 { "rare" } else { "all" };
        add(&deep, &json!({"id": "1", "a": number, "b": b, "one": 1}));
    }
    assert_eq!(counted(&deep, "[1,\"rare\"]"), (1, true));
    assert_eq!(counted(&deep, "[5,\"all\"]"), (1, true));
}
