//! Upper and lower case, the same in all languages.
//!
//! One character becomes one character, whatever stands beside it: `ß` has no
//! upper case then, and a text keeps its length in characters.

use std::borrow::Cow;

/// In upper case.
pub(super) fn upper(text: &str) -> String {
    text.chars().map(|character| single(character, character.to_uppercase())).collect()
}

/// In lower case.
pub(super) fn lower(text: &str) -> String {
    text.chars().map(|character| single(character, character.to_lowercase())).collect()
}

/// The text as it is compared: in upper case if case does not count.
pub(super) fn folded(text: &str, ignore_case: bool) -> Cow<'_, str> {
    if ignore_case { Cow::Owned(upper(text)) } else { Cow::Borrowed(text) }
}

/// What a character becomes, if that is one.
fn single(character: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => character,
    }
}
