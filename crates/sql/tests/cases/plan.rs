//! What a planner makes of queries, compared part by part: texts as trees, and
//! ranges as parts of the hash space.

use dayfly_model::container::Embedding;
use dayfly_model::epk;
use dayfly_model::json::Path;
use dayfly_model::partition_key::{PartitionKey, PartitionKeyDefinition};
use dayfly_sql::plan::{Feature, Plan, plan};
use dayfly_sql::tree::Query;
use dayfly_sql::{Parameters, SyntaxError, check, parse};
use serde_json::{Value, json};

/// What a line has only in words: the vectors of its container.
const POLICIES: &[(&str, &str, &str)] = &[("plan-VectorSearch/1", "/embedding", "euclidean")];

/// The plan of a case agrees with what it expects.
pub(crate) fn agrees(case: &Value) -> Result<&'static str, String> {
    let plan = plan_of(case).map_err(|error| format!("{error:?}"))?.to_json();
    let expected = &case["expected"];
    let mut differences = Vec::new();
    for (part, expected) in expected.as_object().unwrap() {
        match part.as_str() {
            "queryInfo" => info(&plan["queryInfo"], expected, &mut differences),
            "hybridSearchQueryInfo" => {
                hybrid(&plan["hybridSearchQueryInfo"], expected, &mut differences);
            }
            "hybridSearchQueryInfoText" => {
                let text = in_words(&plan["hybridSearchQueryInfo"]);
                compare(part, &json!(text), expected, &mut differences);
            }
            "queryRangesText" => {
                let expected = ranges(expected, &definition(case));
                compare(part, &plan["queryRanges"], &expected, &mut differences);
            }
            // The whole range, written out.
            "queryRanges" => {
                let all = json!([{"min": [], "max": "Infinity", "isMinInclusive": true, "isMaxInclusive": false}]);
                assert_eq!(*expected, all);
                let ours = json!([{"min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false}]);
                compare(part, &plan["queryRanges"], &ours, &mut differences);
            }
            part => panic!("a plan with an unknown part {part}"),
        }
    }
    if differences.is_empty() { Ok("agree") } else { Err(differences.join("\n    ")) }
}

/// The query is refused, by the parser, the checks or the planner.
pub(crate) fn refused(case: &Value) -> Result<&'static str, String> {
    let error = plan_of(case).err().ok_or("is planned")?;
    let body: Value = serde_json::from_str(&error.body()).unwrap();
    if body == case["expected"] { Ok("agree") } else { Err(format!("{body}")) }
}

fn plan_of(case: &Value) -> Result<Plan, SyntaxError> {
    let text = case["query"].as_str().unwrap();
    let query = parse(text)?;
    check(&query, text)?;
    let skip = case["features"].as_str().is_some_and(|features| features.starts_with("with "));
    let features: Vec<Feature> = Feature::ALL
        .iter()
        .copied()
        .filter(|feature| skip || *feature != Feature::HybridSearchSkipOrderByRewrite)
        .collect();
    let embeddings: Vec<Embedding> = POLICIES
        .iter()
        .filter(|(id, _, _)| case["id"] == *id)
        .map(|(_, path, function)| Embedding {
            path: Path::parse(path).unwrap(),
            data_type: "float32".to_owned(),
            dimensions: 8,
            distance_function: (*function).to_owned(),
        })
        .collect();
    plan(&query, &parameters(case), &definition(case), &embeddings, &features)
}

fn parameters(case: &Value) -> Parameters {
    let list = case["parameters"].as_array().unwrap().iter();
    list.map(|parameter| {
        (parameter["name"].as_str().unwrap().to_owned(), Some(parameter["value"].clone()))
    })
    .collect()
}

/// A container has a partition key, and no other kind than by hash.
fn definition(case: &Value) -> PartitionKeyDefinition {
    let mut given = case["partition_key"].clone();
    if given["paths"] == json!([]) {
        return PartitionKeyDefinition::system();
    }
    let several = given["paths"].as_array().unwrap().len() > 1;
    given["kind"] = json!(if several { "MultiHash" } else { "Hash" });
    PartitionKeyDefinition::parse(&given).unwrap()
}

fn compare(part: &str, ours: &Value, expected: &Value, differences: &mut Vec<String>) {
    if ours != expected {
        differences.push(format!("{part}: {ours}\n     and not {expected}"));
    }
}

fn info(ours: &Value, expected: &Value, differences: &mut Vec<String>) {
    for (part, expected) in expected.as_object().unwrap() {
        let ours = &ours[part];
        match (part.as_str(), expected) {
            ("rewrittenQuery", _) => {
                if tree(ours) != tree(expected) {
                    compare(part, ours, expected, differences);
                }
            }
            ("hasSelectValue" | "hasNonStreamingOrderBy", Value::Number(number)) => {
                compare(part, ours, &json!(number.as_i64() == Some(1)), differences);
            }
            _ => compare(part, ours, expected, differences),
        }
    }
}

fn hybrid(ours: &Value, expected: &Value, differences: &mut Vec<String>) {
    for (part, expected) in expected.as_object().unwrap() {
        let ours = &ours[part];
        match part.as_str() {
            "componentQueryInfos" => {
                let (all, wanted) = (ours.as_array().unwrap(), expected.as_array().unwrap());
                compare("components", &json!(all.len()), &json!(wanted.len()), differences);
                all.iter().zip(wanted).for_each(|(ours, wanted)| info(ours, wanted, differences));
            }
            "globalStatisticsQuery" if tree(ours) == tree(expected) => {}
            _ => compare(part, ours, expected, differences),
        }
    }
}

/// The tree of a text, with `true` in place of what the client puts in.
fn tree(text: &Value) -> Option<Query> {
    let text = text.as_str().unwrap();
    (!text.is_empty())
        .then(|| parse(&filled(text)).unwrap_or_else(|error| panic!("{error:?}: {text}")))
}

fn filled(text: &str) -> String {
    let mut pieces = text.split("{documentdb-");
    let mut filled = pieces.next().unwrap().to_owned();
    for piece in pieces {
        filled.push_str("true");
        filled.push_str(piece.split_once('}').unwrap().1);
    }
    filled
}

/// The parts of a hybrid plan, one after the other.
fn in_words(hybrid: &Value) -> String {
    let mut words = vec![&hybrid["globalStatisticsQuery"]];
    for component in hybrid["componentQueryInfos"].as_array().unwrap() {
        words.extend(["distinctType", "top", "offset", "limit"].map(|part| &component[part]));
        words.extend(component["orderBy"].as_array().unwrap());
        words.extend(component["orderByExpressions"].as_array().unwrap());
        words.extend(["hasSelectValue", "rewrittenQuery"].map(|part| &component[part]));
    }
    words.extend(["skip", "take", "requiresGlobalStatistics"].map(|part| &hybrid[part]));
    let word = |value: &Value| match value {
        Value::Null => None,
        Value::Bool(truth) => Some(if *truth { "True" } else { "False" }.to_owned()),
        Value::String(text) => Some(text.replace('\n', " ")),
        value => Some(value.to_string()),
    };
    words.into_iter().filter_map(word).collect::<Vec<_>>().join(" ")
}

/// From `[["a"],["a"]]` to parts of the hash space.
fn ranges(texts: &Value, definition: &PartitionKeyDefinition) -> Value {
    let mut ranges: Vec<(String, String, bool)> = texts
        .as_array()
        .unwrap()
        .iter()
        .map(|text| range(text.as_str().unwrap(), definition))
        .collect();
    ranges.sort();
    let range = |(min, max, inclusive)| json!({"min": min, "max": max, "isMinInclusive": true, "isMaxInclusive": inclusive});
    ranges.into_iter().map(range).collect()
}

fn range(text: &str, definition: &PartitionKeyDefinition) -> (String, String, bool) {
    if text == "[[],\"Infinity\")" {
        return (String::new(), "FF".to_owned(), false);
    }
    let pair: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let [min, max] = pair.as_slice() else { return (text.to_owned(), String::new(), false) };
    let point = |key: &Value| {
        epk::of(definition, &PartitionKey::parse_header(&key.to_string()).unwrap()).to_hex()
    };
    (point(min), point(max), true)
}
