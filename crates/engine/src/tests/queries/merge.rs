//! The rows of a query that was asked of each part of a container by itself, put
//! together as clients do it.

use std::collections::{BTreeMap, HashSet};

use dayfly_model::value::{Value, order};
use serde_json::{Value as Json, json};

use super::naive::functions;

/// A row, and by which bytes it is sorted.
pub(super) type Sorted = (Vec<Vec<u8>>, Value);

/// What a client does with the rows of all parts.
pub(super) struct Merge<'p> {
    info: &'p Json,
}

impl Merge<'_> {
    /// By what the plan says.
    pub(super) fn new(plan: &Json) -> Merge<'_> {
        Merge { info: &plan["queryInfo"] }
    }

    /// The query that is asked of each part.
    pub(super) fn sent(&self, query: &Json) -> Json {
        let rewritten = self.info["rewrittenQuery"].as_str().unwrap();
        if rewritten.is_empty() {
            return query.clone();
        }
        let text = rewritten.replace("{documentdb-formattableorderbyquery-filter}", "true");
        json!({"query": text, "parameters": query["parameters"]})
    }

    /// The same from some sort values on: those of a row, which are told if they
    /// are scalars.
    pub(super) fn sent_from(&self, query: &Json, row: &Value, exclude: bool) -> Option<Json> {
        let told = |item: &Value| match item.property("item") {
            Value::Undefined => Some(json!([])),
            Value::Array(_) | Value::Object(_) => None,
            scalar => serde_json::from_str(&super::shown(scalar)).ok(),
        };
        let Value::Array(items) = row.property("orderByItems") else { return None };
        let values = items.iter().map(told).collect::<Option<Vec<Json>>>()?;
        let rid = super::shown(row.property("_rid"));
        let mut sent = self.sent(query);
        sent["resumeFilter"] = json!({"value": values, "rid": rid, "exclude": exclude});
        Some(sent)
    }

    /// Whether a client that goes on needs to know of the last row alone.
    pub(super) fn can_go_on(&self) -> bool {
        let cuts = ["top", "offset", "limit"].iter().any(|name| !self.info[name].is_null());
        let whole = cuts || self.has("groupByExpressions");
        self.is_sorted() && !whole && self.info["distinctType"] != "Unordered"
    }

    fn has(&self, list: &str) -> bool {
        !self.info[list].as_array().unwrap().is_empty()
    }

    /// Whether the rows are in an order.
    pub(super) fn is_sorted(&self) -> bool {
        self.has("orderBy")
    }

    /// The rows of the whole, from those of the parts.
    pub(super) fn rows(&self, parts: Vec<Vec<Value>>) -> Result<Vec<Sorted>, String> {
        let mut rows: Vec<Sorted> = if self.has("groupByExpressions") {
            let rows = if self.is_sorted() { self.in_order(parts)? } else { plain(parts.concat()) };
            self.groups(rows)
        } else if self.has("aggregates") || self.has("groupByAliases") {
            let rows = parts.concat().into_iter().map(|row| match &row {
                Value::Array(one) => one[0].clone(),
                _ => row.property("payload").clone(),
            });
            plain(vec![self.merged(rows.collect())])
        } else if self.is_sorted() {
            self.in_order(parts)?
        } else {
            plain(parts.concat())
        };
        rows.retain(|(_, row)| row.is_defined());
        if self.info["distinctType"] != "None" {
            let mut seen = HashSet::new();
            rows.retain(|(_, row)| seen.insert(order::key(row)));
        }
        let count = |name: &str| self.info[name].as_u64().map(|n| usize::try_from(n).unwrap());
        let take = [count("limit"), count("top")].into_iter().flatten().min();
        let rows = rows.into_iter().skip(count("offset").unwrap_or(0));
        Ok(rows.take(take.unwrap_or(usize::MAX)).collect())
    }

    /// Merges sorted parts, which have to be sorted.
    fn in_order(&self, parts: Vec<Vec<Value>>) -> Result<Vec<Sorted>, String> {
        let mut all = Vec::new();
        for part in parts {
            let sorted = |row: &Value| (self.keys(row), row.property("payload").clone());
            let rows: Vec<Sorted> = part.iter().map(sorted).collect();
            if !rows.is_sorted_by_key(|(keys, _)| keys.clone()) {
                return Err("a part is not sorted".to_owned());
            }
            all.extend(rows);
        }
        all.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(all)
    }

    /// By which bytes a row is sorted: what falls is turned around.
    pub(super) fn keys(&self, row: &Value) -> Vec<Vec<u8>> {
        let items = row.property("orderByItems");
        let key = |(place, way): (usize, &Json)| {
            let key = order::key(items.element(place).property("item"));
            if way == "Descending" { key.iter().map(|byte| !byte).collect() } else { key }
        };
        self.info["orderBy"].as_array().unwrap().iter().enumerate().map(key).collect()
    }

    /// Groups, in the order in which they come.
    fn groups(&self, rows: Vec<Sorted>) -> Vec<Sorted> {
        let mut places = BTreeMap::new();
        let mut groups: Vec<(Vec<Vec<u8>>, Vec<Value>)> = Vec::new();
        for (keys, row) in rows {
            let group = order::key(row.property("groupByItems"));
            let place = *places.entry(group).or_insert(groups.len());
            if place == groups.len() {
                groups.push((keys, Vec::new()));
            }
            groups[place].1.push(row.property("payload").clone());
        }
        groups.into_iter().map(|(keys, members)| (keys, self.merged(members))).collect()
    }

    /// Rows of several parts that are one.
    fn merged(&self, rows: Vec<Value>) -> Value {
        if let [aggregate] = self.info["aggregates"].as_array().unwrap().as_slice() {
            return aggregated(aggregate.as_str().unwrap(), &rows);
        }
        let types = self.info["groupByAliasToAggregateType"].as_object().unwrap();
        let names = self.info["groupByAliases"].as_array().unwrap().iter();
        let member = |name: &Json| {
            let name = name.as_str().unwrap();
            let values: Vec<Value> = rows.iter().map(|row| row.property(name).clone()).collect();
            let value = match types[name].as_str() {
                Some(aggregate) => aggregated(aggregate, &values),
                None => values[0].clone(),
            };
            (name.to_owned(), value)
        };
        Value::Object(names.map(member).filter(|(_, value)| value.is_defined()).collect())
    }
}

fn plain(rows: Vec<Value>) -> Vec<Sorted> {
    rows.into_iter().map(|row| (Vec::new(), row)).collect()
}

/// An aggregate, from what each part says of it.
fn aggregated(aggregate: &str, parts: &[Value]) -> Value {
    let items: Vec<&Value> = parts.iter().map(|part| part.property("item")).collect();
    let sum = |values: Vec<&Value>| -> Option<f64> {
        values.into_iter().map(Value::as_double).sum::<Option<f64>>()
    };
    let all = |name: &str| items.iter().map(|item| item.property(name)).collect::<Vec<_>>();
    match aggregate {
        "Count" | "Sum" => sum(items).into(),
        "Average" => {
            let count = sum(all("count")).filter(|count| *count > 0.0);
            sum(all("sum")).zip(count).map(|(sum, count)| sum / count).into()
        }
        "Min" | "Max" => {
            let counted = |part: &&Value| {
                part.property("item2").property("count").as_integer().is_some_and(|n| n > 0)
            };
            let values: Vec<Value> =
                parts.iter().filter(counted).map(|part| part.property("item").clone()).collect();
            if values.iter().any(|value| !value.is_defined()) {
                return Value::Undefined;
            }
            functions::aggregate(&aggregate.to_ascii_uppercase(), values)
        }
        // Lists of ranges, in the order of these.
        "MakeList" | "MakeSet" => {
            let elements = |item: &&Value| match item {
                Value::Array(elements) => elements.clone(),
                other => panic!("no list: {other:?}"),
            };
            let values = items.iter().flat_map(elements).collect();
            functions::aggregate(&aggregate.to_ascii_uppercase(), values)
        }
        other => panic!("no such aggregate is made: {other}"),
    }
}
