//! Arrays as sets: `SETUNION` and the like.
//!
//! Elements are the same when they are equal, whatever their depth; each comes
//! out once, at the place where it came first. An intersection has the order of
//! the second array.

use std::collections::HashSet;

use dayfly_model::value::{Value, order};

use super::arguments::{SIZE_MAX, list, size};
use super::{Arguments, Body, Family};

pub(super) const FUNCTIONS: &Family = &[
    ("SETDIFFERENCE", Body::Strict(|a| difference(a).into())),
    ("SETEQUAL", Body::Strict(|a| equal(a).into())),
    ("SETINTERSECT", Body::Strict(|a| intersection(a).into())),
    ("SETUNION", Body::Strict(|a| union(a).into())),
];

fn union(arguments: &Arguments<'_>) -> Option<Value> {
    let (first, second) = both(arguments)?;
    let total = arguments.iter().fold(0_usize, |total, part| total.saturating_add(size(part)));
    (total <= SIZE_MAX).then(|| distinct(first.iter().chain(second), |_| true))
}

fn intersection(arguments: &Arguments<'_>) -> Option<Value> {
    let (first, second) = both(arguments)?;
    let first = keys(first);
    Some(distinct(second.iter(), |key| first.contains(key)))
}

fn difference(arguments: &Arguments<'_>) -> Option<Value> {
    let (first, second) = both(arguments)?;
    let second = keys(second);
    Some(distinct(first.iter(), |key| !second.contains(key)))
}

fn equal(arguments: &Arguments<'_>) -> Option<bool> {
    let (first, second) = both(arguments)?;
    Some(keys(first) == keys(second))
}

fn both<'a>(arguments: &'a Arguments<'_>) -> Option<(&'a [Value], &'a [Value])> {
    list(arguments, 0).zip(list(arguments, 1))
}

/// The elements as bytes that are equal when they are.
fn keys(values: &[Value]) -> HashSet<Vec<u8>> {
    values.iter().map(order::key).collect()
}

/// Each element once, if its key is wanted.
fn distinct<'a>(
    values: impl Iterator<Item = &'a Value>,
    wanted: impl Fn(&Vec<u8>) -> bool,
) -> Value {
    let mut seen = HashSet::new();
    let kept = values.filter(|value| {
        let key = order::key(value);
        wanted(&key) && seen.insert(key)
    });
    Value::Array(kept.cloned().collect())
}

#[cfg(test)]
mod tests;
