//! Patterns of `LIKE`.
//!
//! ```text
//! %        any run of characters, also none
//! _        any one character
//! [a-cx]   one of a, b, c and x
//! [^a-c]   one that is none of them
//! ```
//!
//! In brackets `%` and `_` stand for themselves, and so does the character after
//! the escape character anywhere. A bracket that is not closed stands for itself.
//! The whole text must match.
//!
//! A match is found without going back over more than the last `%`: what an
//! earlier run could take, the last one can take as well. So it costs at most the
//! length of the text times that of the pattern.

/// So many characters are compared in a step.
const CHARACTERS_PER_STEP: usize = 64;

/// A pattern, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Like {
    parts: Vec<LikePart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LikePart {
    /// This character.
    One(char),
    /// Any character.
    Any,
    /// Any run of characters.
    Run,
    /// A character that is within one of these, or within none if `negated`.
    Set { ranges: Vec<(char, char)>, negated: bool },
}

impl Like {
    /// Reads a pattern; `None` if it ends with the escape character, which then
    /// escapes nothing.
    pub(crate) fn new(pattern: &str, escape: Option<char>) -> Option<Like> {
        let characters = unescaped(pattern, escape)?;
        let mut parts = Vec::new();
        let mut rest = characters.as_slice();
        while let Some((first, after)) = rest.split_first() {
            let set = if first.is('[') { set(after) } else { None };
            let (part, after) = set.unwrap_or_else(|| (first.part(), after));
            if part != LikePart::Run || parts.last() != Some(&LikePart::Run) {
                parts.push(part);
            }
            rest = after;
        }
        Some(Like { parts })
    }

    /// Whether a text, the whole of it, is like the pattern.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let (mut parts, mut rest) = (self.parts.as_slice(), text.chars());
        let mut again = None;
        loop {
            let here = rest.clone();
            match (parts.split_first(), rest.next()) {
                (Some((LikePart::Run, after)), _) => {
                    (parts, rest) = (after, here);
                    again = Some((parts, rest.clone()));
                }
                (Some((part, after)), Some(character)) if part.takes(character) => parts = after,
                (None, None) => return true,
                (Some(_), None) => return false,
                (_, Some(_)) => {
                    let Some((after_run, mut start)) = again else { return false };
                    start.next();
                    (parts, rest) = (after_run, start.clone());
                    again = Some((after_run, start));
                }
            }
        }
    }

    /// About how many steps it is to match a text: each run may make it begin again behind
    /// each character.
    pub(crate) fn effort(&self, text: &str) -> u64 {
        let again = if self.parts.contains(&LikePart::Run) { self.parts.len() } else { 1 };
        1 + (text.len().saturating_mul(again) / CHARACTERS_PER_STEP) as u64
    }

    /// The one text that is like the pattern, if it has no wildcards.
    pub(crate) fn literal(&self) -> Option<String> {
        self.parts.iter().map(LikePart::literal).collect()
    }

    /// What all texts start with that are like the pattern.
    pub(crate) fn prefix(&self) -> String {
        self.parts.iter().map_while(LikePart::literal).collect()
    }
}

impl LikePart {
    fn takes(&self, character: char) -> bool {
        match self {
            LikePart::One(known) => *known == character,
            LikePart::Any | LikePart::Run => true,
            LikePart::Set { ranges, negated } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&character)) != *negated
            }
        }
    }

    fn literal(&self) -> Option<char> {
        match self {
            LikePart::One(character) => Some(*character),
            _ => None,
        }
    }
}

/// A character of a pattern, and whether it was escaped.
#[derive(Clone, Copy)]
struct Written {
    character: char,
    escaped: bool,
}

impl Written {
    /// Whether it is a special character, and means it.
    fn is(self, special: char) -> bool {
        self.character == special && !self.escaped
    }

    fn part(self) -> LikePart {
        match self.character {
            '%' if !self.escaped => LikePart::Run,
            '_' if !self.escaped => LikePart::Any,
            character => LikePart::One(character),
        }
    }
}

fn unescaped(pattern: &str, escape: Option<char>) -> Option<Vec<Written>> {
    let mut written = Vec::new();
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        written.push(if Some(character) == escape {
            Written { character: rest.next()?, escaped: true }
        } else {
            Written { character, escaped: false }
        });
    }
    Some(written)
}

/// The set after an opening bracket, and what comes after it; `None` if it is
/// not closed or has nothing in it.
fn set(after_bracket: &[Written]) -> Option<(LikePart, &[Written])> {
    let (negated, inside) = match after_bracket.split_first() {
        Some((first, inside)) if first.is('^') => (true, inside),
        _ => (false, after_bracket),
    };
    let length = inside.iter().position(|written| written.is(']')).filter(|length| *length > 0)?;
    let (inside, after) = inside.split_at_checked(length)?;
    let part = match (ranges(inside).as_slice(), negated) {
        ([(from, to)], false) if from == to => LikePart::One(*from),
        (ranges, negated) => LikePart::Set { ranges: ranges.to_vec(), negated },
    };
    Some((part, after.get(1..)?))
}

fn ranges(mut inside: &[Written]) -> Vec<(char, char)> {
    let mut ranges = Vec::new();
    while let [from, rest @ ..] = inside {
        inside = match rest {
            [dash, to, rest @ ..] if dash.is('-') => {
                ranges.push((from.character, to.character));
                rest
            }
            _ => {
                ranges.push((from.character, from.character));
                rest
            }
        };
    }
    ranges
}

#[cfg(test)]
mod tests;
