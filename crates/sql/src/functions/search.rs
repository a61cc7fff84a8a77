//! Whether a text has another in it: `CONTAINS`, `STARTSWITH` and the like.
//!
//! `CONTAINS_ALL_CI` and its kin are an AND or an OR of `CONTAINS` with three
//! values: a term that is undefined, or no text, leaves the answer open unless
//! another term decides it.

use super::arguments::{flag, text};
use super::case::folded;
use super::{Arguments, Body, Family};

pub(super) const FUNCTIONS: &Family = &[
    ("CONTAINS", Body::Strict(|a| compared(a, |text, part| text.contains(part)).into())),
    ("CONTAINS_ALL_CI", Body::Seeing(|a| all(contained(a, true)).into())),
    ("CONTAINS_ALL_CS", Body::Seeing(|a| all(contained(a, false)).into())),
    ("CONTAINS_ANY_CI", Body::Seeing(|a| any(contained(a, true)).into())),
    ("CONTAINS_ANY_CS", Body::Seeing(|a| any(contained(a, false)).into())),
    ("ENDSWITH", Body::Strict(|a| compared(a, |text, part| text.ends_with(part)).into())),
    ("STARTSWITH", Body::Strict(|a| compared(a, |text, part| text.starts_with(part)).into())),
    ("STRINGEQUALS", Body::Strict(|a| compared(a, |text, other| text == other).into())),
];

fn compared(arguments: &Arguments<'_>, compare: fn(&str, &str) -> bool) -> Option<bool> {
    let ignore_case = flag(arguments, 2)?;
    let text = folded(text(arguments, 0)?, ignore_case);
    let part = folded(self::text(arguments, 1)?, ignore_case);
    Some(compare(&text, &part))
}

/// For each term whether the text has it; `None` where that is open.
fn contained(arguments: &Arguments<'_>, ignore_case: bool) -> impl Iterator<Item = Option<bool>> {
    let text = text(arguments, 0).map(|text| folded(text, ignore_case));
    arguments.iter().skip(1).map(move |term| {
        let term = folded(term.as_str()?, ignore_case);
        Some(text.as_ref()?.contains(term.as_ref()))
    })
}

/// False if one is, else open if one is.
pub(super) fn all(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    any(answers.map(|answer| answer.map(|answer| !answer))).map(|answer| !answer)
}

/// True if one is, else open if one is.
pub(super) fn any(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut outcome = Some(false);
    for answer in answers {
        match answer {
            Some(true) => return Some(true),
            Some(false) => {}
            None => outcome = None,
        }
    }
    outcome
}

#[cfg(test)]
mod tests;
