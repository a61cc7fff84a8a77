//! What is sent, and what is merged.

use serde_json::{Value, json};

use super::{info, planned};
use crate::plan::{Feature, plan};
use crate::{check, parse};

fn plans(cases: &[(&str, Value)]) {
    for (query, expected) in cases {
        assert_eq!(info(query), *expected, "{query}");
    }
}

#[test]
fn what_each_range_answers_by_itself_is_sent_as_it_is() {
    plans(&[
        ("SELECT c.a, 5 FROM c WHERE c.b > 1", json!({})),
        ("SELECT VALUE c.a FROM c", json!({"hasSelectValue": true})),
        ("SELECT TOP 5 * FROM c", json!({"top": 5})),
        ("SELECT TOP @two * FROM c", json!({"top": 2})),
        ("SELECT DISTINCT c.a FROM c", json!({"distinctType": "Unordered"})),
        ("SELECT c.a, n FROM c JOIN (SELECT VALUE COUNT(1) FROM t IN c.t) n", json!({})),
    ]);
}

#[test]
fn all_parts_are_always_there() {
    let plan = planned("SELECT * FROM c").unwrap().to_json();
    assert_eq!(
        plan,
        json!({
            "partitionedQueryExecutionInfoVersion": 2,
            "queryInfo": {
                "distinctType": "None", "top": null, "offset": null, "limit": null,
                "orderBy": [], "orderByExpressions": [], "groupByExpressions": [],
                "groupByAliases": [], "aggregates": [], "groupByAliasToAggregateType": {},
                "rewrittenQuery": "", "hasSelectValue": false, "dCountInfo": null,
                "hasNonStreamingOrderBy": false,
            },
            "queryRanges": [
                {"min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false},
            ],
        })
    );
    let nobody = planned("SELECT 1").unwrap().to_json();
    assert_eq!(
        nobody["queryRanges"],
        json!([{"min": "", "max": "", "isMinInclusive": true, "isMaxInclusive": true}])
    );
}

#[test]
fn sorted_rows_come_with_their_keys() {
    plans(&[
        (
            "select c.a, c.b[0] from root c where c.d = 'x' order by c.a, c['b'] desc",
            json!({
                "orderBy": ["Ascending", "Descending"],
                "orderByExpressions": ["c.a", "c[\"b\"]"],
                "rewrittenQuery": "SELECT c._rid, [{\"item\": c.a}, {\"item\": c[\"b\"]}] AS orderByItems, {\"a\": c.a, \"$1\": c.b[0]} AS payload\nFROM root AS c\nWHERE ((c.d = \"x\") AND ({documentdb-formattableorderbyquery-filter}))\nORDER BY c.a, c[\"b\"] DESC",
            }),
        ),
        (
            "SELECT TOP 3 * FROM c ORDER BY c.a ASC",
            json!({
                "top": 3,
                "orderBy": ["Ascending"],
                "orderByExpressions": ["c.a"],
                "rewrittenQuery": "SELECT TOP 3 c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload\nFROM c\nWHERE ({documentdb-formattableorderbyquery-filter})\nORDER BY c.a ASC",
            }),
        ),
        (
            "SELECT VALUE c.b FROM c WHERE c.x OR c.y ORDER BY c.a OFFSET @one LIMIT @two",
            json!({
                "offset": 1,
                "limit": 2,
                "hasSelectValue": true,
                "orderBy": ["Ascending"],
                "orderByExpressions": ["c.a"],
                "rewrittenQuery": "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c.b AS payload\nFROM c\nWHERE (((c.x OR c.y) AND ({documentdb-formattableorderbyquery-filter})) AND IS_DEFINED(c.b))\nORDER BY c.a\nOFFSET 0 LIMIT 3",
            }),
        ),
    ]);
}

#[test]
fn pages_are_cut_by_who_has_all_rows() {
    let sent = |text: &str| info(text)["rewrittenQuery"].clone();
    plans(&[
        (
            "SELECT * FROM c OFFSET 20 LIMIT 10",
            json!({"offset": 20, "limit": 10, "rewrittenQuery": "SELECT *\nFROM c\nOFFSET 0 LIMIT 30"}),
        ),
        (
            "SELECT * FROM c OFFSET 0 LIMIT 10",
            json!({"offset": 0, "limit": 10, "rewrittenQuery": "SELECT *\nFROM c\nOFFSET 0 LIMIT 10"}),
        ),
        ("SELECT * FROM c WHERE c.key = 'a' OFFSET 20 LIMIT 10", json!({})),
        (
            "SELECT DISTINCT c.a FROM c WHERE c.key = 'a' OFFSET 1 LIMIT 2",
            json!({
                "distinctType": "Unordered", "offset": 1, "limit": 2,
                "rewrittenQuery": "SELECT DISTINCT c.a\nFROM c\nWHERE (c.key = \"a\")",
            }),
        ),
        (
            "SELECT DISTINCT TOP 5 c.a FROM c",
            json!({
                "distinctType": "Unordered", "top": 5,
                "rewrittenQuery": "SELECT DISTINCT c.a\nFROM c",
            }),
        ),
    ]);
    assert_eq!(
        sent("SELECT * FROM c OFFSET 4294967295 LIMIT 10"),
        "SELECT *\nFROM c\nOFFSET 0 LIMIT 4294967295"
    );
    assert_eq!(
        sent("SELECT * FROM c WHERE c.key = 1 ORDER BY c.a OFFSET 1 LIMIT 2"),
        "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload\nFROM c\nWHERE ((c.key = 1) AND ({documentdb-formattableorderbyquery-filter}))\nORDER BY c.a\nOFFSET 1 LIMIT 2"
    );
}

#[test]
fn equal_rows_follow_each_other_when_sorted_by_all_of_them() {
    let cases = [
        ("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a", "Ordered"),
        ("SELECT DISTINCT VALUE c['a'] FROM c ORDER BY c.a DESC", "Ordered"),
        ("SELECT DISTINCT c.a FROM c ORDER BY c.a", "Ordered"),
        ("SELECT DISTINCT c.a, c.b FROM c ORDER BY c.b, c.a", "Ordered"),
        ("SELECT DISTINCT c.a, c.b FROM c ORDER BY c.a", "Unordered"),
        ("SELECT DISTINCT c.a FROM c ORDER BY c.b", "Unordered"),
        ("SELECT DISTINCT * FROM c ORDER BY c.a", "Unordered"),
    ];
    for (query, expected) in cases {
        let info = info(query);
        assert_eq!(info["distinctType"], expected, "{query}");
        let text = info["rewrittenQuery"].as_str().unwrap();
        assert!(text.starts_with("SELECT c._rid, "), "{text}");
    }
    let top = info("SELECT DISTINCT TOP 5 VALUE c.a FROM c ORDER BY c.a");
    assert!(top["rewrittenQuery"].as_str().unwrap().starts_with("SELECT c._rid, "));
}

#[test]
fn aggregates_are_sent_so_that_they_can_be_merged() {
    let one = |call: &str| {
        let info = info(&format!("SELECT VALUE {call} FROM c WHERE c.b"));
        assert_eq!(info["hasSelectValue"], true);
        let text = info["rewrittenQuery"].as_str().unwrap();
        let text = text.strip_prefix("SELECT VALUE [").unwrap();
        let text = text.strip_suffix("]\nFROM c\nWHERE c.b").unwrap().to_owned();
        (info["aggregates"].clone(), text)
    };
    for (call, name, sent) in [
        ("COUNT(1)", "Count", "{\"item\": COUNT(1)}"),
        ("Sum(c.a)", "Sum", "{\"item\": Sum(c.a)}"),
        ("COUNTIF(c.a)", "CountIf", "{\"item\": COUNTIF(c.a)}"),
        ("MAKELIST(c.a)", "MakeList", "{\"item\": MAKELIST(c.a)}"),
        ("MAKESET(c.a)", "MakeSet", "{\"item\": MAKESET(c.a)}"),
        ("avg(c.a)", "Average", "{\"item\": {\"sum\": SUM(c.a), \"count\": COUNT(c.a)}}"),
        (
            "MIN(c.a + 1)",
            "Min",
            "{\"item\": MIN((c.a + 1)), \"item2\": {\"min\": MIN((c.a + 1)), \"count\": COUNT((c.a + 1))}}",
        ),
        (
            "MAX(c.a)",
            "Max",
            "{\"item\": MAX(c.a), \"item2\": {\"max\": MAX(c.a), \"count\": COUNT(c.a)}}",
        ),
    ] {
        assert_eq!(one(call), (json!([name]), sent.to_owned()), "{call}");
    }
}

#[test]
fn aggregates_with_names_and_groups() {
    plans(&[
        (
            "SELECT TOP 1 COUNT(1) AS n, 5, SUM(c.a) FROM c ORDER BY c.b OFFSET 1 LIMIT 2",
            json!({
                "top": 1, "offset": 1, "limit": 2,
                "groupByAliases": ["n", "$1", "$2"],
                "groupByAliasToAggregateType": {"n": "Count", "$1": null, "$2": "Sum"},
                "rewrittenQuery": "SELECT {\"n\": {\"item\": COUNT(1)}, \"$1\": 5, \"$2\": {\"item\": SUM(c.a)}} AS payload\nFROM c\nORDER BY c.b",
            }),
        ),
        (
            "SELECT c.city, COUNT(1) FROM c GROUP BY c.city, LOWER(c.x)",
            json!({
                "groupByExpressions": ["c.city", "LOWER(c.x)"],
                "groupByAliases": ["city", "$1"],
                "groupByAliasToAggregateType": {"city": null, "$1": "Count"},
                "rewrittenQuery": "SELECT [{\"item\": c.city}, {\"item\": LOWER(c.x)}] AS groupByItems, {\"city\": c.city, \"$1\": {\"item\": COUNT(1)}} AS payload\nFROM c\nGROUP BY c.city, LOWER(c.x)",
            }),
        ),
        (
            "SELECT VALUE c.city FROM c GROUP BY c.city OFFSET 1 LIMIT 2",
            json!({
                "hasSelectValue": true, "offset": 1, "limit": 2,
                "groupByExpressions": ["c.city"],
                "rewrittenQuery": "SELECT [{\"item\": c.city}] AS groupByItems, c.city AS payload\nFROM c\nGROUP BY c.city",
            }),
        ),
        (
            "SELECT VALUE AVG(c.a) FROM c GROUP BY c.city",
            json!({
                "hasSelectValue": true, "aggregates": ["Average"],
                "groupByExpressions": ["c.city"],
                "rewrittenQuery": "SELECT [{\"item\": c.city}] AS groupByItems, [{\"item\": {\"sum\": SUM(c.a), \"count\": COUNT(c.a)}}] AS payload\nFROM c\nGROUP BY c.city",
            }),
        ),
    ]);
}

#[test]
fn sorted_groups_are_the_payload_of_sorted_rows() {
    plans(&[
        (
            "SELECT c.city AS town, COUNT(1) AS n FROM c WHERE c.a > 1 GROUP BY c.city ORDER BY town DESC",
            json!({
                "orderBy": ["Descending"], "orderByExpressions": ["c.city"],
                "groupByExpressions": ["c.city"], "groupByAliases": ["town", "n"],
                "groupByAliasToAggregateType": {"town": null, "n": "Count"},
                "rewrittenQuery": "SELECT MIN(c._rid) AS _rid, [{\"item\": c.city}] AS orderByItems, {\"groupByItems\": [{\"item\": c.city}], \"payload\": {\"town\": c.city, \"n\": {\"item\": COUNT(1)}}} AS payload\nFROM c\nWHERE ((c.a > 1) AND ({documentdb-formattableorderbyquery-filter}))\nGROUP BY c.city\nORDER BY c.city DESC",
            }),
        ),
        (
            "SELECT VALUE c.b FROM c GROUP BY c.a, c.b ORDER BY c.a, c.b OFFSET 1 LIMIT 2",
            json!({
                "orderBy": ["Ascending", "Ascending"], "orderByExpressions": ["c.a", "c.b"],
                "groupByExpressions": ["c.a", "c.b"], "offset": 1, "limit": 2,
                "hasSelectValue": true,
                "rewrittenQuery": "SELECT MIN(c._rid) AS _rid, [{\"item\": c.a}, {\"item\": c.b}] AS orderByItems, {\"groupByItems\": [{\"item\": c.a}, {\"item\": c.b}], \"payload\": c.b} AS payload\nFROM c\nWHERE ({documentdb-formattableorderbyquery-filter})\nGROUP BY c.a, c.b\nORDER BY c.a, c.b",
            }),
        ),
    ]);
}

/// What is no item has no `_rid`, and clients want one.
#[test]
fn groups_of_what_is_no_item_have_an_empty_rid() {
    let plan = info("SELECT t FROM t IN c.tags GROUP BY t ORDER BY t");
    let sent = plan["rewrittenQuery"].as_str().unwrap();
    assert!(sent.starts_with("SELECT \"\" AS _rid, [{\"item\": t}] AS orderByItems,"), "{sent}");
    let plan = info("SELECT s.a FROM (SELECT * FROM c) s GROUP BY s.a ORDER BY s.a");
    let sent = plan["rewrittenQuery"].as_str().unwrap();
    assert!(sent.starts_with("SELECT MIN(s._rid) AS _rid,"), "{sent}");
}

/// One row has any order: the clause is sent as it is.
#[test]
fn an_aggregate_is_not_sorted() {
    plans(&[(
        "SELECT VALUE COUNT(1) FROM c JOIN t IN c.t ORDER BY t",
        json!({
            "aggregates": ["Count"], "hasSelectValue": true,
            "rewrittenQuery": "SELECT VALUE [{\"item\": COUNT(1)}]\nFROM c\nJOIN t IN c.t\nORDER BY t",
        }),
    )]);
}

#[test]
fn a_subquery_that_gives_the_items_is_sorted_by_their_paths() {
    plans(&[(
        "SELECT * FROM (SELECT * FROM root c WHERE c.a = 1) AS s ORDER BY s.id",
        json!({
            "orderBy": ["Ascending"], "orderByExpressions": ["s.id"],
            "rewrittenQuery": "SELECT s._rid, [{\"item\": s.id}] AS orderByItems, s AS payload\nFROM (\n    SELECT *\n    FROM root AS c\n    WHERE (c.a = 1)\n) AS s\nWHERE ({documentdb-formattableorderbyquery-filter})\nORDER BY s.id",
        }),
    )]);
}

#[test]
fn counts_of_distinct_rows() {
    let rows = "SELECT DISTINCT VALUE c.a FROM c WHERE c.b";
    let sent = "SELECT DISTINCT VALUE c.a\nFROM c\nWHERE c.b";
    plans(&[
        (
            &format!("SELECT VALUE COUNT(1) FROM ({rows}) AS d"),
            json!({
                "distinctType": "Unordered", "hasSelectValue": true,
                "dCountInfo": {"dCountAlias": ""}, "rewrittenQuery": sent,
            }),
        ),
        (
            &format!("SELECT COUNT(d) AS n FROM ({rows}) AS d"),
            json!({
                "distinctType": "Unordered", "dCountInfo": {"dCountAlias": "n"},
                "rewrittenQuery": sent,
            }),
        ),
        (
            &format!("SELECT COUNT(1) FROM ({rows})"),
            json!({
                "distinctType": "Unordered", "dCountInfo": {"dCountAlias": "$1"},
                "rewrittenQuery": sent,
            }),
        ),
    ]);
    for other in [
        format!("SELECT VALUE COUNT(undefined) FROM ({rows}) AS d"),
        format!("SELECT VALUE COUNT(d.x) FROM ({rows}) AS d"),
        format!("SELECT VALUE SUM(d) FROM ({rows}) AS d"),
        format!("SELECT VALUE COUNT(1) FROM ({rows}) AS d WHERE d > 1"),
        "SELECT VALUE COUNT(1) FROM (SELECT VALUE c.a FROM c) AS d".to_owned(),
    ] {
        assert_eq!(info(&other)["dCountInfo"], Value::Null, "{other}");
    }
}

#[test]
fn vectors_are_sorted_by_what_is_alike() {
    for (vector, options, direction) in [
        ("c.near", "", "Ascending"),
        ("c['near']", "", "Ascending"),
        ("c.alike", "", "Descending"),
        ("c.other", "", "Descending"),
        ("c.alike", ", true, {distanceFunction: 'Euclidean'}", "Ascending"),
        ("c.near", ", true, {distanceFunction: 'DotProduct'}", "Descending"),
        ("c.near", ", true, {dataType: 'Float32'}", "Ascending"),
    ] {
        for call in [
            format!("VectorDistance({vector}, [1]{options})"),
            format!("vectordistance([1], {vector}{options})"),
        ] {
            let info = info(&format!("SELECT TOP 2 c.a FROM c ORDER BY {call}"));
            assert_eq!(info["orderBy"], json!([direction]), "{call}");
            assert_eq!(info["hasNonStreamingOrderBy"], true);
            let text = info["rewrittenQuery"].as_str().unwrap();
            assert!(text.starts_with("SELECT TOP 2 c._rid, "), "{text}");
            assert!(text.ends_with(')'), "no direction is written: {text}");
        }
    }
}

#[test]
fn what_cannot_be_merged_is_refused() {
    let composed = "Compositions of aggregates and other expressions are not allowed.";
    let count = |clause: &str| {
        format!(
            "The count value provided for a {clause} clause must be an integer from 0 to 4294967295."
        )
    };
    for (query, message) in [
        ("SELECT ABS(AVG(c.a)) FROM c", composed),
        ("SELECT VALUE {n: COUNT(1)} FROM c", composed),
        ("SELECT c.a, MIN(c.b) / 2 FROM c GROUP BY c.a", composed),
        ("SELECT VALUE [SUM(c.b)] FROM c GROUP BY c.a", composed),
        ("SELECT TOP @text * FROM c", &count("TOP")),
        ("SELECT TOP @none * FROM c", &count("TOP")),
        ("SELECT * FROM c OFFSET @text LIMIT 1", &count("OFFSET")),
        ("SELECT * FROM c OFFSET 1 LIMIT @text", &count("LIMIT")),
        (
            "SELECT COUNT(1) AS n, SUM(c.a) AS n FROM c",
            "The name 'n' is selected more than once. Give each item a name of its own with AS.",
        ),
    ] {
        let error = planned(query).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (None, message), "{query}");
    }
    assert_eq!(
        planned("SELECT -SUM(c.a) FROM c").unwrap_err().body(),
        format!(r#"{{"Errors":["{composed}"]}}"#)
    );
}

#[test]
fn what_a_client_cannot_do_is_not_planned() {
    let missing = |query: &str, features: &str| {
        let tree = parse(query).unwrap();
        check(&tree, query).unwrap();
        let features = Feature::read_list(features);
        plan(&tree, &super::parameters(&[]), &super::key(&["/key"]), &[], &features)
            .map_err(|error| error.message)
    };
    let cases = [
        ("SELECT * FROM c WHERE c.a", ""),
        ("SELECT TOP 1 * FROM c", "Top"),
        ("SELECT DISTINCT c.a FROM c", "Distinct"),
        ("SELECT * FROM c OFFSET 1 LIMIT 1", "OffsetAndLimit"),
        ("SELECT * FROM c ORDER BY c.a", "OrderBy"),
        ("SELECT * FROM c ORDER BY c.a, c.b", "MultipleOrderBy"),
        ("SELECT VALUE AVG(c.a) FROM c", "Aggregate"),
        ("SELECT SUM(c.a) FROM c", "NonValueAggregate"),
        ("SELECT c.a FROM c GROUP BY c.a", "GroupBy"),
        ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c)", "DCount"),
        ("SELECT c FROM c ORDER BY VectorDistance(c.a, [1])", "NonStreamingOrderBy"),
        ("SELECT c FROM c ORDER BY RANK FullTextScore(c.a, 'x')", "HybridSearch"),
    ];
    for (query, feature) in cases {
        assert!(missing(query, feature).is_ok(), "{query}");
        if feature.is_empty() {
            continue;
        }
        let message = format!(
            "Query contains 1 or more unsupported features. Upgrade your SDK to a version that \
             does support the requested features:\r\nQuery contained {feature}, which the calling \
             client does not support."
        );
        assert_eq!(missing(query, "None, Unknown").unwrap_err(), message);
    }
    let two = "SELECT COUNTIF(c.a), MAKESET(c.a) FROM c";
    assert!(missing(two, "NonValueAggregate, MultipleAggregates,CountIf").is_ok());
    let error = missing(two, "NonValueAggregate").unwrap_err();
    for feature in ["MultipleAggregates", "CountIf"] {
        assert!(error.contains(&format!("Query contained {feature},")), "{error}");
    }
    let weights = "SELECT c FROM c ORDER BY RANK RRF(VectorDistance(c.a, [1]), VectorDistance(c.b, [1]), [1, 2])";
    assert!(missing(weights, "HybridSearch,WeightedRankFusion").is_ok());
    assert!(missing(weights, "HybridSearch").unwrap_err().contains("WeightedRankFusion"));
}
