//! Places in a string, counted in UTF-16 units: `LENGTH`, `SUBSTRING`,
//! `INDEX_OF`.
//!
//! The service counts so. A character beyond U+FFFF has two units, and a half of
//! one is no text: where a cut falls between the two, the character is left out,
//! so that a piece never has more units than were asked for. A search that starts
//! there starts after the character.

use dayfly_model::value::Value;

use super::arguments::{integer, optional, text};
use super::{Arguments, Body, Family};

pub(super) const FUNCTIONS: &Family = &[
    ("INDEX_OF", Body::Strict(|a| index_of(a).into())),
    ("LASTINDEXOF", Body::Strict(|a| last_index_of(a).into())),
    ("LEFT", Body::Strict(|a| left(a).into())),
    ("LENGTH", Body::Strict(|a| text(a, 0).map(units).into())),
    ("RIGHT", Body::Strict(|a| right(a).into())),
    ("SUBSTRING", Body::Strict(|a| substring(a).into())),
];

/// How many units a text has.
pub(super) fn units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

fn left<'a>(arguments: &'a Arguments<'_>) -> Option<&'a str> {
    let text = text(arguments, 0)?;
    Some(piece(text, 0, integer(arguments, 1)?))
}

fn right<'a>(arguments: &'a Arguments<'_>) -> Option<&'a str> {
    let text = text(arguments, 0)?;
    let count = integer(arguments, 1)?.max(0);
    let start = signed(units(text)).saturating_sub(count).max(0);
    Some(piece(text, start, count))
}

fn substring<'a>(arguments: &'a Arguments<'_>) -> Option<&'a str> {
    Some(piece(text(arguments, 0)?, integer(arguments, 1)?, integer(arguments, 2)?))
}

/// The characters that lie wholly in `count` units from `start` on.
fn piece(text: &str, start: i64, count: i64) -> &str {
    let (Ok(start), Ok(count)) = (usize::try_from(start), usize::try_from(count)) else {
        return "";
    };
    let from = after(text, start);
    let to = before(text, start.saturating_add(count));
    text.get(from..to).unwrap_or_default()
}

fn index_of(arguments: &Arguments<'_>) -> Option<i64> {
    let (text, sought) = (text(arguments, 0)?, text(arguments, 1)?);
    let start = optional(arguments, 2, 0, Value::as_integer)?.max(0);
    let from = after(text, usize::try_from(start).unwrap_or(usize::MAX));
    let found = text.get(from..).and_then(|rest| rest.find(sought));
    Some(found.map_or(-1, |place| unit_of(text, from + place)))
}

/// Where the last occurrence starts that ends at a place or before it.
fn last_index_of(arguments: &Arguments<'_>) -> Option<i64> {
    let (text, sought) = (text(arguments, 0)?, text(arguments, 1)?);
    let last = optional(arguments, 2, i64::MAX, Value::as_integer)?;
    let end = usize::try_from(last).ok().map(|last| before(text, last.saturating_add(1)));
    let found = end.and_then(|end| text.get(..end)).and_then(|start| start.rfind(sought));
    Some(found.map_or(-1, |place| unit_of(text, place)))
}

/// The byte where the first character starts that is at a unit or after it.
fn after(text: &str, unit: usize) -> usize {
    if text.is_ascii() {
        return unit.min(text.len());
    }
    boundaries(text).find(|(_, at)| *at >= unit).map_or(text.len(), |(byte, _)| byte)
}

/// The byte where the last character ends that ends at a unit or before it.
fn before(text: &str, unit: usize) -> usize {
    if text.is_ascii() {
        return unit.min(text.len());
    }
    boundaries(text).take_while(|(_, at)| *at <= unit).last().map_or(0, |(byte, _)| byte)
}

/// The places between characters, the start and the end with them: as bytes and
/// as units.
fn boundaries(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let ends = text.chars().scan((0, 0), |(byte, unit), character| {
        *byte += character.len_utf8();
        *unit += character.len_utf16();
        Some((*byte, *unit))
    });
    std::iter::once((0, 0)).chain(ends)
}

fn unit_of(text: &str, byte: usize) -> i64 {
    signed(units(text.get(..byte).unwrap_or_default()))
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
