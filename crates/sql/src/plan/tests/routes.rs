//! Where filters lead.

use dayfly_model::epk;
use dayfly_model::partition_key::{Component, PartitionKey, PartitionKeyDefinition};
use serde_json::json;

use super::{key, parameters};
use crate::parse;
use crate::plan::{EpkRange, KEYS_MAX, Routing, routing};

/// Where a query leads, as the texts of keys.
fn route(query: &str, definition: &PartitionKeyDefinition) -> Vec<String> {
    let parameters = parameters(&[
        ("@one", json!(1)),
        ("@list", json!([1, "a"])),
        ("@name", json!("k")),
        ("@yes", json!(true)),
    ]);
    match routing(&parse(query).unwrap(), &parameters, definition) {
        Routing::Nothing => vec![],
        Routing::Everything => vec!["all".to_owned()],
        Routing::Keys(keys) => keys.iter().map(PartitionKey::to_json).collect(),
    }
}

fn leads(definition: &PartitionKeyDefinition, cases: &[(&str, &[&str])]) {
    for (filter, expected) in cases {
        let found = route(&format!("SELECT * FROM c WHERE {filter}"), definition);
        assert_eq!(found, *expected, "{filter}");
    }
}

#[test]
fn filters_that_name_keys() {
    leads(
        &key(&["/k"]),
        &[
            ("c.k = 1", &["[1]"]),
            ("1 = c.k", &["[1]"]),
            ("c['k'] = 'a'", &["[\"a\"]"]),
            ("c[@name] = @one", &["[1]"]),
            ("c.k = null", &["[null]"]),
            ("c.k = -1.5", &["[-1.5]"]),
            ("c.k = []", &["[{}]"]),
            ("c.k = {a: 1}", &["[{}]"]),
            ("c.k", &["[true]"]),
            ("NOT c.k", &["[false]"]),
            ("c.k IN (1, 'a', @one)", &["[1]", "[\"a\"]"]),
            ("c.k IN ([], [1])", &["[{}]"]),
            ("c.k = 1 OR c.k = 2 OR c.k = 1", &["[1]", "[2]"]),
            ("c.k = 1 AND c.x > 5", &["[1]"]),
            ("c.k IN (1, 2, 3) AND c.k IN (2, 3, 4)", &["[2]", "[3]"]),
            ("ABS(c.k) = 2", &["[2]", "[-2]"]),
            ("ABS(c.k) = 0", &["[0]"]),
            ("IS_NULL(c.k)", &["[null]"]),
            ("is_bool(c.k)", &["[false]", "[true]"]),
            ("ARRAY_CONTAINS([1, 'a'], c.k)", &["[1]", "[\"a\"]"]),
            ("ARRAY_CONTAINS(@list, c.k)", &["[1]", "[\"a\"]"]),
            ("_TRY_ARRAY_CONTAINS([1], c.k)", &["[1]"]),
            ("c.k LIKE 'abc'", &["[\"abc\"]"]),
            ("c.k LIKE 'a!%!!' ESCAPE '!'", &["[\"a%!\"]"]),
            ("true AND c.k = 1", &["[1]"]),
            ("@yes AND c.k = 1", &["[1]"]),
        ],
    );
}

#[test]
fn filters_that_let_nothing_through() {
    leads(
        &key(&["/k"]),
        &[
            ("false", &[]),
            ("null", &[]),
            ("1", &[]),
            ("@none", &[]),
            ("NOT true", &[]),
            ("1 = 2", &[]),
            ("'a' = 1", &[]),
            ("1 != 1", &[]),
            ("1 > 2", &[]),
            ("1 < 'a'", &[]),
            ("undefined = undefined", &[]),
            ("c.k = undefined", &[]),
            ("c.k = @none", &[]),
            ("c.k = 1 AND c.k = 2", &[]),
            ("c.k = 1 AND false", &[]),
            ("ABS(c.k) = -1", &[]),
            ("c.k IN (undefined)", &[]),
        ],
    );
    for query in ["SELECT 1", "SELECT 1 WHERE true"] {
        assert!(route(query, &key(&["/k"])).is_empty());
    }
}

#[test]
fn filters_that_are_not_understood() {
    for filter in [
        "true",
        "1 = 1",
        "[1] = [1, undefined]",
        "1 <= 2",
        "c.k > 1",
        "c.k != 1",
        "c.k NOT IN (1)",
        "c.k NOT LIKE 'a'",
        "c.k BETWEEN 1 AND 1",
        "NOT (c.k = 1)",
        "c.k = 1 OR c.x = 2",
        "c.k = c.x",
        "c.k = 1 = true",
        "c.k IN (1, c.x)",
        "c.k LIKE 'a%'",
        "c.k LIKE 'a_'",
        "c.k LIKE '[a]'",
        "c.k LIKE 'a!' ESCAPE '!'",
        "c.k.x = 1",
        "c.k[0] = 1",
        "c['K'] = 1",
        "c[0] = 1",
        "IS_NUMBER(c.k)",
        "IS_DEFINED(c.k)",
        "ARRAY_CONTAINS([1], c.k, true)",
        "ARRAY_CONTAINS(c.list, c.k)",
        "udf.ABS(c.k) = 1",
        "ABS(c.x) = 1",
        "c.k = NaN",
        "c.k ? true : false",
        "EXISTS(SELECT 1 FROM c WHERE c.k = 1)",
        "c.k = (SELECT VALUE 1)",
    ] {
        leads(&key(&["/k"]), &[(filter, &["all"])]);
    }
    assert_eq!(route("SELECT * FROM c", &key(&["/k"])), ["all"]);
}

#[test]
fn sources_say_where_a_path_starts() {
    let definition = key(&["/a/k"]);
    for (query, expected) in [
        ("SELECT 1 FROM root r WHERE r.a.k = 1", "[1]"),
        ("SELECT 1 FROM c.a WHERE a.k = 1", "[1]"),
        ("SELECT 1 FROM c['a'] AS x WHERE x.k = 1", "[1]"),
        ("SELECT 1 FROM c.a.k WHERE k = 1", "[1]"),
        ("SELECT 1 FROM c.a.k WHERE k", "[true]"),
        ("SELECT 1 FROM c JOIN t IN c.t WHERE c.a.k = 1", "[1]"),
        ("SELECT 1 FROM c JOIN t IN c.t WHERE t.a.k = 1", "all"),
        ("SELECT 1 FROM c.a[0] AS a WHERE a.k = 1", "all"),
        ("SELECT 1 FROM x IN c.a WHERE x.k = 1", "all"),
        ("SELECT 1 FROM (SELECT VALUE c FROM c) r WHERE r.a.k = 1", "all"),
    ] {
        assert_eq!(route(query, &definition), [expected], "{query}");
    }
}

#[test]
fn keys_with_levels() {
    leads(
        &key(&["/a", "/b", "/c"]),
        &[
            ("c.a = 1 AND c.b = 2 AND c.c = 3", &["[1,2,3]"]),
            ("c.c = 3 AND c.b = 2 AND c.a = 1", &["[1,2,3]"]),
            ("c.a = 1 AND c.b = 2", &["[1,2]"]),
            ("c.a = 1", &["[1]"]),
            ("c.a = 1 AND c.c = 3", &["[1]"]),
            ("c.b = 2 AND c.c = 3", &["all"]),
            ("c.a IN (1, 2) AND c.b IN (3, 4)", &["[1,3]", "[1,4]", "[2,3]", "[2,4]"]),
            ("(c.a = 1 AND c.b = 2) OR c.a = 3", &["[3]", "[1,2]"]),
            ("(c.a = 1 AND c.b = 2) OR c.a = 1", &["[1]"]),
            ("c.a = 1 AND c.b = 2 AND c.a = 2", &[]),
        ],
    );
    let definition = key(&["/a", "/b"]);
    let ranges = |filter: &str| {
        let query = parse(&format!("SELECT * FROM c WHERE {filter}")).unwrap();
        routing(&query, &parameters(&[]), &definition).ranges(&definition)
    };
    let one = PartitionKey(vec![Component::Number(1.0)]);
    let (min, max) = epk::prefix_range(&definition, &one);
    assert_eq!(ranges("c.a = 1"), [EpkRange { min, max, max_inclusive: false }]);
    let both = PartitionKey(vec![Component::Number(1.0), Component::String("x".to_owned())]);
    let point = epk::of(&definition, &both);
    let range = EpkRange { min: point.clone(), max: point, max_inclusive: true };
    assert_eq!(ranges("c.a = 1 AND c.b = 'x'"), [range]);
    let several = ranges("c.a IN (1, 2, 3, 4, 5)");
    assert_eq!(several.len(), 5);
    assert!(several.is_sorted_by(|one, next| one.max <= next.min));
    assert!(ranges("false").is_empty());
}

#[test]
fn too_many_keys_are_everything() {
    let list = |count: usize| {
        let numbers: Vec<String> = (0..count).map(|number| number.to_string()).collect();
        numbers.join(", ")
    };
    let query = |filter: &str| format!("SELECT * FROM c WHERE {filter}");
    let definition = key(&["/a", "/b"]);
    assert_eq!(route(&query(&format!("c.a IN ({})", list(KEYS_MAX))), &definition).len(), KEYS_MAX);
    assert_eq!(route(&query(&format!("c.a IN ({})", list(KEYS_MAX + 1))), &definition), ["all"]);
    let or = vec!["c.a = 1"; KEYS_MAX + 1].join(" OR ");
    assert_eq!(route(&query(&or), &definition), ["all"]);
    // Of two sets that are too much together, the smaller one is kept.
    let both = format!("c.a IN ({}) AND c.b IN ({})", list(100), list(200));
    assert_eq!(route(&query(&both), &definition).len(), 100);
}
