//! Strings made of strings: `CONCAT`, `REPLACE`, `TRIM` and the like.
//!
//! A string that would be larger than the largest item is undefined; for
//! `REPLICATE` the limit is 10,000 UTF-16 units.

use dayfly_model::value::Value;

use super::arguments::{SIZE_MAX, double, list, optional, text};
use super::case::{lower, upper};
use super::units::units;
use super::{Arguments, Body, Family};

pub(super) const FUNCTIONS: &Family = &[
    ("CONCAT", Body::Strict(|a| concat(a).into())),
    ("LOWER", Body::Strict(|a| text(a, 0).map(lower).into())),
    ("LTRIM", Body::Strict(|a| trimmed(a, Sides { start: true, end: false }).into())),
    ("REPLACE", Body::Strict(|a| replace(a).into())),
    ("REPLICATE", Body::Strict(|a| replicate(a).into())),
    ("REVERSE", Body::Strict(|a| text(a, 0).map(reverse).into())),
    ("RTRIM", Body::Strict(|a| trimmed(a, Sides { start: false, end: true }).into())),
    ("STRINGJOIN", Body::Strict(|a| join(a).into())),
    ("STRINGSPLIT", Body::Strict(|a| split(a).into())),
    ("TRIM", Body::Strict(|a| trimmed(a, Sides { start: true, end: true }).into())),
    ("UPPER", Body::Strict(|a| text(a, 0).map(upper).into())),
];

/// How many UTF-16 units a repeated string may have.
const REPLICATE_MAX: usize = 10_000;

fn concat(arguments: &Arguments<'_>) -> Option<String> {
    let parts: Option<Vec<&str>> = arguments.iter().map(|part| part.as_str()).collect();
    joined(&parts?, "")
}

fn join(arguments: &Arguments<'_>) -> Option<String> {
    let parts: Option<Vec<&str>> = list(arguments, 0)?.iter().map(Value::as_str).collect();
    joined(&parts?, text(arguments, 1)?)
}

fn joined(parts: &[&str], separator: &str) -> Option<String> {
    let between = separator.len().saturating_mul(parts.len().saturating_sub(1));
    let size = parts.iter().fold(between, |size, part| size.saturating_add(part.len()));
    (size <= SIZE_MAX).then(|| parts.join(separator))
}

/// The pieces between separators; without a separator the text is one piece.
fn split(arguments: &Arguments<'_>) -> Option<Value> {
    let (text, separator) = (text(arguments, 0)?, text(arguments, 1)?);
    let pieces = if separator.is_empty() {
        vec![text.into()]
    } else {
        text.split(separator).map(Value::from).collect()
    };
    Some(Value::Array(pieces))
}

fn replace(arguments: &Arguments<'_>) -> Option<String> {
    let (text, sought, by) = (text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?);
    if sought.is_empty() {
        return None;
    }
    let pieces: Vec<&str> = text.split(sought).collect();
    joined(&pieces, by)
}

/// The text some times over; a fraction of a time is not.
fn replicate(arguments: &Arguments<'_>) -> Option<String> {
    let (text, times) = (text(arguments, 0)?, double(arguments, 1)?);
    if times < 0.0 || !times.is_finite() {
        return None;
    }
    if text.is_empty() {
        return Some(String::new());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the limit holds")]
    let times = times as usize;
    let size = units(text).saturating_mul(times);
    (size <= REPLICATE_MAX).then(|| text.repeat(times))
}

fn reverse(text: &str) -> String {
    text.chars().rev().collect()
}

/// From which ends a text is trimmed.
#[derive(Clone, Copy)]
struct Sides {
    start: bool,
    end: bool,
}

/// The text without white space at its ends, or without any of the characters
/// that are given.
fn trimmed<'a>(arguments: &'a Arguments<'_>, sides: Sides) -> Option<&'a str> {
    let text = text(arguments, 0)?;
    let unwanted = optional(arguments, 1, None, |value| value.as_str().map(Some))?;
    let goes = |character: char| match unwanted {
        None => character.is_whitespace(),
        Some(unwanted) => unwanted.contains(character),
    };
    let text = if sides.start { text.trim_start_matches(goes) } else { text };
    Some(if sides.end { text.trim_end_matches(goes) } else { text })
}

#[cfg(test)]
mod tests;
