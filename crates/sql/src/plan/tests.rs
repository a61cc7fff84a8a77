//! Plans, rule by rule.

mod hybrid;
mod random;
mod rewriting;
mod routes;

use dayfly_model::container::Embedding;
use dayfly_model::json::Path;
use dayfly_model::partition_key::PartitionKeyDefinition;
use serde_json::{Value, json};

use super::{Feature, Plan, plan};
use crate::request::Parameters;
use crate::{SyntaxError, check, parse};

fn key(paths: &[&str]) -> PartitionKeyDefinition {
    let kind = if paths.len() == 1 { "Hash" } else { "MultiHash" };
    let definition = json!({"paths": paths, "kind": kind, "version": 2});
    PartitionKeyDefinition::parse(&definition).unwrap()
}

fn parameters(given: &[(&str, Value)]) -> Parameters {
    given.iter().map(|(name, value)| ((*name).to_owned(), Some(value.clone()))).collect()
}

fn embedding(path: &str, function: &str) -> Embedding {
    Embedding {
        path: Path::parse(path).unwrap(),
        data_type: "float32".to_owned(),
        dimensions: 2,
        distance_function: function.to_owned(),
    }
}

/// Every feature but the one that changes what is sent.
fn features() -> Vec<Feature> {
    let skip = Feature::HybridSearchSkipOrderByRewrite;
    Feature::ALL.iter().copied().filter(|feature| *feature != skip).collect()
}

/// The plan of a query over a container partitioned by `/key`.
fn planned(text: &str) -> Result<Plan, SyntaxError> {
    let query = parse(text)?;
    check(&query, text)?;
    let parameters = parameters(&[("@one", json!(1)), ("@two", json!(2)), ("@text", json!("a"))]);
    let vectors = [embedding("/near", "euclidean"), embedding("/alike", "cosine")];
    plan(&query, &parameters, &key(&["/key"]), &vectors, &features())
}

/// What a plan says beyond the defaults, as JSON.
fn info(text: &str) -> Value {
    let plan = planned(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).to_json();
    let mut info = plan["queryInfo"].clone();
    let defaults = planned("SELECT * FROM c").unwrap().to_json()["queryInfo"].clone();
    info.as_object_mut().unwrap().retain(|part, value| *value != defaults[part]);
    info
}

/// The text with `true` in place of what clients put in.
fn filled(text: &str) -> String {
    let mut pieces = text.split("{documentdb-");
    let mut filled = pieces.next().unwrap().to_owned();
    for piece in pieces {
        filled.push_str("true");
        filled.push_str(piece.split_once('}').unwrap().1);
    }
    filled
}

/// What is as deep as can be read is also checked and planned.
#[test]
fn deep_queries_are_planned() {
    let nests = [
        ("(", "c.a", ")"),
        ("[", "c.a", "]"),
        ("- ", "c.a", ""),
        ("ABS(", "c.a", ")"),
        ("@p[", "1", "]"),
        ("c.a ? 1 : ", "1", ""),
        ("(SELECT VALUE ", "c.a", ")"),
        ("(SELECT VALUE x FROM x IN (SELECT VALUE ", "c.a", "))"),
        ("c.a OR c.b AND (", "c.a", ")"),
    ];
    for (open, inner, close) in nests {
        let text = |depth: usize| {
            let nested = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
            format!("SELECT {nested} AS x FROM c WHERE {nested} ORDER BY c.a")
        };
        let deepest = (1..200).map(text).take_while(|text| parse(text).is_ok()).last().unwrap();
        assert!(planned(&deepest).is_ok(), "{open}");
        let grouped = deepest.replace("ORDER BY c.a", "GROUP BY c");
        assert!(planned(&grouped).is_ok(), "{open}");
    }
}

/// What is long is planned too.
#[test]
fn long_queries_are_planned() {
    let filter = vec!["c.key = 1"; 20_000].join(" OR ");
    assert!(planned(&format!("SELECT * FROM c WHERE {filter} ORDER BY c.a")).is_ok());
    let list = vec!["c.a AS a"; 20_000].join(", ");
    assert!(planned(&format!("SELECT {list} FROM c ORDER BY c.a")).is_ok());
    let path = format!("c{}", ".a".repeat(40_000));
    assert!(planned(&format!("SELECT {path} FROM c GROUP BY {path}, c.b")).is_ok());
}
