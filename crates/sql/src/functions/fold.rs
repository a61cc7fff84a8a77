//! One value of all elements of an array: `ARRAY_SUM`, `ARRAY_MAX` and the like.
//!
//! Elements that are undefined do not count. One element of a type that the
//! function cannot take makes the result undefined. The sum of nothing is 0, and
//! of nothing there is no average, median, greatest or least.

use std::cmp::Ordering;

use dayfly_model::value::Value;

use super::arguments::list;
use super::kind::is_primitive;
use super::{Arguments, Body, Family};

pub(super) const FUNCTIONS: &Family = &[
    ("ARRAY_AVG", Body::Strict(|a| numbers(a).and_then(|numbers| mean(&numbers)).into())),
    ("ARRAY_MAX", Body::Strict(|a| outermost(a, Ordering::Greater).into())),
    ("ARRAY_MEDIAN", Body::Strict(|a| numbers(a).and_then(median).into())),
    ("ARRAY_MIN", Body::Strict(|a| outermost(a, Ordering::Less).into())),
    ("ARRAY_SUM", Body::Strict(|a| numbers(a).map(|numbers| sum(&numbers)).into())),
];

/// The elements, if all of them are numbers.
fn numbers(arguments: &Arguments<'_>) -> Option<Vec<f64>> {
    let defined = list(arguments, 0)?.iter().filter(|value| value.is_defined());
    defined.map(Value::as_double).collect()
}

fn sum(numbers: &[f64]) -> f64 {
    // The sum of an empty iterator of doubles is -0.
    numbers.iter().fold(0.0, |sum, number| sum + number)
}

fn mean(numbers: &[f64]) -> Option<f64> {
    let count = Value::from(numbers.len()).as_double()?;
    (!numbers.is_empty()).then(|| sum(numbers) / count)
}

/// The number in the middle, or the mean of the two that are.
fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let upper = *numbers.get(middle)?;
    if numbers.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *numbers.get(middle.checked_sub(1)?)?;
    Some(f64::midpoint(lower, upper))
}

/// The element that all others lie on one side of.
fn outermost(arguments: &Arguments<'_>, side: Ordering) -> Option<Value> {
    let mut found: Option<&Value> = None;
    for value in list(arguments, 0)?.iter().filter(|value| value.is_defined()) {
        if !is_primitive(value) {
            return None;
        }
        if found.is_none_or(|found| order(value, found) == side) {
            found = Some(value);
        }
    }
    found.cloned()
}

/// By type, then by value.
fn order(left: &Value, right: &Value) -> Ordering {
    let by_value = || left.compare(right).unwrap_or(Ordering::Equal);
    left.kind().cmp(&right.kind()).then_with(by_value)
}

#[cfg(test)]
mod tests;
