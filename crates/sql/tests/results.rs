//! Plays the `result` lines of the file that `DAYFLY_QUERY_CASES` names: a query,
//! the documents it is run over, and the rows that the service answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may panic"
)]

use std::collections::HashMap;

use dayfly_model::Timestamp;
use dayfly_model::value::Value;
use dayfly_sql::run::{Added, Free, Item, Limits, Program, QueryPage, Steps};
use dayfly_sql::{Computed, Request};
use serde_json::{Value as Json, json};

/// Cases in which we differ on purpose.
const DIFFERENT: &[(&str, &str)] = &[(
    "doc/contains-all-cs/1",
    "the page says that \"Have\" contains \"have\", and compares with the case all the same",
)];

struct Document(String, u64);

impl Item for Document {
    fn text(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn system(&self, _: &str) -> Value {
        Value::Undefined
    }

    fn number(&self) -> u64 {
        self.1
    }

    fn render(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }
}

fn run(case: &Json, documents: &[Json]) -> Result<Vec<Json>, String> {
    let body = json!({ "query": case["query"], "parameters": case["parameters"] });
    let request = Request::read(body.to_string().as_bytes()).map_err(|error| error.message)?;
    let program = Program::compile(&request, Computed::NONE).map_err(|error| error.message)?;
    let limits = Limits { rows: 10_000, bytes: 4 << 20 };
    let plane = case["geospatial_type"] == "Geometry";
    let steps = Steps::new(&Free);
    let now = Timestamp(1_700_000_000);
    let mut page = QueryPage::new(&program, now, plane, limits, None, false, &steps);
    let mut add = || -> dayfly_model::Result<()> {
        if !program.reads_items() {
            page.add_nothing()?;
            return Ok(());
        }
        for (number, document) in (0..).zip(documents) {
            let document = Document(document.to_string(), number);
            if page.add(&document, (0, number))? != Added::More {
                break;
            }
        }
        Ok(())
    };
    add().map_err(|error| error.message)?;
    let finished = page.finish().map_err(|error| error.message)?;
    let rows = [b"[", &*finished.rows, b"]"].concat();
    let rows: Vec<Json> = serde_json::from_slice(&rows).map_err(|error| error.to_string())?;
    assert_eq!(rows.len(), finished.count);
    Ok(rows)
}

/// A value with its numbers as doubles, and with sorted arrays if order counts
/// for nothing.
fn normal(value: &Json, sort: bool) -> Json {
    match value {
        Json::Number(number) => json!(number.as_f64()),
        Json::Array(values) => {
            let mut values: Vec<Json> = values.iter().map(|value| normal(value, sort)).collect();
            if sort {
                values.sort_by_key(Json::to_string);
            }
            Json::Array(values)
        }
        Json::Object(members) => {
            let mut members: Vec<(String, Json)> =
                members.iter().map(|(name, value)| (name.clone(), normal(value, sort))).collect();
            members.sort_by(|left, right| left.0.cmp(&right.0));
            Json::Object(members.into_iter().collect())
        }
        other => other.clone(),
    }
}

fn close(left: &Json, right: &Json, tolerance: f64) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => {
            let (left, right) = (left.as_f64().unwrap(), right.as_f64().unwrap());
            (left - right).abs() <= tolerance * right.abs().max(1.0)
        }
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| close(left, right, tolerance))
        }
        (Json::Object(left), Json::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| {
                    right.get(name).is_some_and(|other| close(value, other, tolerance))
                })
        }
        _ => left == right,
    }
}

fn agrees(case: &Json, rows: &[Json]) -> bool {
    let inner = case["inner_multiset"] == true;
    let prepare = |rows: &[Json]| {
        let mut rows: Vec<Json> = rows.iter().map(|row| normal(row, inner)).collect();
        if case["compare"] == "multiset" {
            rows.sort_by_key(Json::to_string);
        }
        Json::Array(rows)
    };
    let expected = prepare(case["expected"].as_array().unwrap());
    let tolerance = case["float_tolerance"].as_f64().unwrap_or(0.0);
    close(&prepare(rows), &expected, tolerance)
}

#[test]
fn known_results() {
    let Some(path) = std::env::var_os("DAYFLY_QUERY_CASES") else {
        println!("DAYFLY_QUERY_CASES names no file: no known results were checked.");
        return;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let cases: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let datasets: HashMap<&str, &Json> = cases
        .iter()
        .filter(|case| case["kind"] == "dataset")
        .map(|case| (case["name"].as_str().unwrap(), &case["docs"]))
        .collect();
    let (mut right, mut different, mut wrong) = (0, 0, Vec::new());
    for case in cases.iter().filter(|case| case["kind"] == "result") {
        let id = case["id"].as_str().unwrap();
        let documents = match case["docs"].as_str() {
            Some(name) => datasets[name.trim_start_matches('@')],
            None => &case["docs"],
        };
        let outcome = run(case, documents.as_array().unwrap());
        let agrees = outcome.as_ref().is_ok_and(|rows| agrees(case, rows));
        match (agrees, DIFFERENT.iter().any(|(known, _)| *known == id)) {
            (true, false) => right += 1,
            (false, true) => different += 1,
            (true, true) => wrong.push(format!("{id} is no longer different")),
            (false, false) => {
                let shown = outcome.map(|rows| Json::Array(rows).to_string());
                let expected = &case["expected"];
                wrong.push(format!("{id}: {}\n    {shown:?}\n    {expected}", case["query"]));
            }
        }
    }
    println!(
        "{right} known results agree, {different} differ on purpose, {} are wrong",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
