//! Plans of ORDER BY RANK.

use serde_json::{Value, json};

use super::{embedding, key, parameters, planned};
use crate::parse;
use crate::plan::{Feature, plan};

const TEXT: &str = "_FullTextScore(c.t, [\"x\"], {documentdb-formattablehybridsearchquery-totaldocumentcount}, {documentdb-formattablehybridsearchquery-totalwordcount-0}, {documentdb-formattablehybridsearchquery-hitcountsarray-0})";

fn hybrid(text: &str) -> Value {
    let plan = planned(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).to_json();
    assert_eq!(plan["queryInfo"], Value::Null);
    plan["hybridSearchQueryInfo"].clone()
}

/// The plan for a client that sorts by the scores itself.
fn scored(text: &str) -> Value {
    let query = parse(text).unwrap();
    let vectors = [embedding("/near", "euclidean")];
    let plan = plan(&query, &parameters(&[]), &key(&["/key"]), &vectors, Feature::ALL).unwrap();
    plan.to_json()["hybridSearchQueryInfo"].clone()
}

#[test]
fn one_text() {
    let info = hybrid("SELECT TOP 10 c.a FROM c WHERE c.b ORDER BY RANK FullTextScore(c.t, 'x')");
    assert_eq!(
        info["globalStatisticsQuery"],
        "SELECT COUNT(1) AS documentCount, [{\"totalWordCount\": SUM(_FullTextWordCount(c.t)), \"hitCounts\": [COUNTIF(FullTextContains(c.t, \"x\"))]}] AS fullTextStatistics\nFROM c"
    );
    let rest = ["componentWeights", "skip", "take", "requiresGlobalStatistics"];
    assert_eq!(
        rest.map(|part| info[part].clone()),
        [json!([]), json!(null), json!(10), json!(true)]
    );
    let component = &info["componentQueryInfos"][0];
    assert_eq!(component["top"], 120);
    assert_eq!(component["orderBy"], json!(["Descending"]));
    assert_eq!(component["orderByExpressions"], json!([TEXT]));
    assert_eq!(component["hasNonStreamingOrderBy"], true);
    assert_eq!(
        component["rewrittenQuery"],
        format!(
            "SELECT TOP 120 c._rid, [{{\"item\": {TEXT}}}] AS orderByItems, {{\"payload\": {{\"a\": c.a}}, \"componentScores\": [({TEXT} ?? -1)]}} AS payload\nFROM c\nWHERE (c.b AND ({{documentdb-formattableorderbyquery-filter}}))\nORDER BY {TEXT} DESC"
        )
    );
    let alone = scored("SELECT TOP 10 * FROM c ORDER BY RANK FullTextScore(c.t, 'x')");
    let text = alone["componentQueryInfos"][0]["rewrittenQuery"].as_str().unwrap();
    assert!(text.contains("{\"payload\": c, \"componentScores\": []} AS payload"), "{text}");
}

#[test]
fn several_scores_and_their_weights() {
    let rank = "RRF(VectorDistance(c.near, [1]), FullTextScore(c.t, 'x'), VectorDistance(c.v, [2]), [2, -3, -0.5])";
    let query = format!("SELECT VALUE c.a FROM c ORDER BY RANK {rank} OFFSET 50 LIMIT 20");
    let info = hybrid(&query);
    assert_eq!(info["componentWeights"], json!([2.0, 3.0, 0.5]));
    assert_eq!((&info["skip"], &info["take"]), (&json!(50), &json!(20)));
    let components = info["componentQueryInfos"].as_array().unwrap();
    let directions: Vec<&Value> = components.iter().map(|info| &info["orderBy"][0]).collect();
    assert_eq!(directions, ["Ascending", "Ascending", "Ascending"]);
    let limits: Vec<(&Value, &Value)> =
        components.iter().map(|info| (&info["offset"], &info["limit"])).collect();
    assert_eq!(limits, vec![(&json!(0), &json!(140)); 3]);
    let near = "_VectorScore(c.near, [1])";
    let far = "_VectorScore(c.v, [2])";
    let keys = [near.to_owned(), format!("{TEXT} ASC"), format!("{far} ASC")];
    for (component, key) in components.iter().zip(&keys) {
        let text = component["rewrittenQuery"].as_str().unwrap();
        assert!(text.contains("AND IS_DEFINED(c.a))"), "{text}");
        assert!(text.ends_with(&format!("\nORDER BY {key}\nOFFSET 0 LIMIT 140")), "{text}");
        let scores = format!("[({near} ?? 1.79769e+308), ({TEXT} ?? 1), ({far} ?? 1.79769e+308)]");
        assert!(text.contains(&scores), "{text}");
    }
    let info = scored(&query);
    for (component, key) in info["componentQueryInfos"].as_array().unwrap().iter().zip(&keys) {
        assert_eq!(component["orderBy"], json!([]));
        assert_eq!(component["limit"], json!(null));
        assert_eq!(
            component["rewrittenQuery"],
            format!(
                "SELECT c._rid, c.a AS payload, [(-1 * ({near} ?? 1.79769e+308)), (-1 * ({TEXT} ?? 1)), (-1 * ({far} ?? 1.79769e+308))] AS componentScores\nFROM c\nWHERE IS_DEFINED(c.a)\nORDER BY {key}\nOFFSET 0 LIMIT 140"
            )
        );
    }
}

#[test]
fn texts_are_numbered_among_themselves() {
    let info = hybrid(
        "SELECT TOP 1 c FROM c ORDER BY RANK RRF(VectorDistance(c.v, [1]), FullTextScore(c.t, ['x', 'y']), FullTextScore(c.u, 'z'))",
    );
    let statistics = info["globalStatisticsQuery"].as_str().unwrap();
    assert!(statistics.contains("COUNTIF(FullTextContains(c.t, \"y\"))"), "{statistics}");
    let keys =
        |number: usize| info["componentQueryInfos"][number]["orderByExpressions"][0].to_string();
    assert!(keys(1).contains("totalwordcount-0"), "{}", keys(1));
    assert!(keys(2).contains("hitcountsarray-1"), "{}", keys(2));
    let vectors = hybrid("SELECT TOP 1 c FROM c ORDER BY RANK VectorDistance(c.v, [1])");
    assert_eq!(
        vectors["globalStatisticsQuery"],
        "SELECT COUNT(1) AS documentCount, [] AS fullTextStatistics\nFROM c"
    );
    assert_eq!(vectors["requiresGlobalStatistics"], false);
}

#[test]
fn so_many_rows_are_fused() {
    for (cut, rows) in [
        ("TOP 0", 120),
        ("TOP 60", 120),
        ("TOP 61", 122),
        ("TOP 2147483647", 4_294_967_294_u32),
        ("TOP 4294967295", 4_294_967_294),
    ] {
        let query = format!("SELECT {cut} c FROM c ORDER BY RANK FullTextScore(c.t, 'x')");
        assert_eq!(hybrid(&query)["componentQueryInfos"][0]["top"], rows, "{cut}");
    }
    let page = |page: &str| {
        let query = format!("SELECT c FROM c ORDER BY RANK FullTextScore(c.t, 'x') {page}");
        hybrid(&query)["componentQueryInfos"][0]["limit"].clone()
    };
    assert_eq!(page("OFFSET 4294967295 LIMIT 10"), 18);
    assert_eq!(page("OFFSET 100 LIMIT 10"), 220);
    assert_eq!(page(""), json!(null));
}
