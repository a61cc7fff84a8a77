//! Text that is compact already, and where its properties are.
//!
//! SDKs send compact text, so most bodies are, byte for byte, what the pass of
//! [`compact`](super::compact) would make of them. One look over such a text
//! proves it, and notes the properties of the object at the top; then nothing
//! is written, and nobody who wants a property reads past the others again.
//!
//! An item that was read, changed and sent back brings properties of ours along,
//! which are to be left out. They are cut out of the text, and the rest is
//! copied.
//!
//! A text of which this is not certain is left to that pass: one with white
//! space, a key twice, another spelling than ours, or a fault. So there is one
//! place that spells, and one that words errors.

use std::collections::HashSet;
use std::ops::Range;

use super::{DEPTH_MAX, compact};

/// How many properties are noted. Who looks for another one reads the text.
const NOTED_MAX: usize = 32;

/// Up to this many keys of an object are compared one by one.
const COMPARED_MAX: usize = 32;

/// Strings are looked at in blocks without an early end, which is several
/// times as fast as byte by byte.
const BLOCK_BYTES: usize = 64;

/// Where the properties of an object are in its compact text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Outline {
    noted: Vec<Property>,
    /// Whether all properties are noted.
    complete: bool,
    /// The properties to leave out, in the order of the text.
    cuts: Vec<Range<usize>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Property {
    /// Without its quotes.
    key: Range<usize>,
    value: Range<usize>,
}

/// What an outline says of a property.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// Its value is here.
    At(Range<usize>),
    /// The object does not have it.
    Absent,
    /// Only the text says it.
    Unknown,
}

impl Outline {
    /// The outline of `text`, if it is the compact text of an object, from which
    /// the properties named in `drop` are to be cut.
    pub(super) fn of(text: &[u8], drop: &[&str]) -> Option<Outline> {
        let mut look = Look { text, at: 0, ascii: true, keys: Vec::new() };
        let outline = look.top(drop)?;
        let whole = look.at == text.len();
        // What is outside of strings was compared byte by byte.
        (whole && (look.ascii || str::from_utf8(text).is_ok())).then_some(outline)
    }

    /// What is left of `text`, of which this is the outline; `None` when nothing
    /// is cut.
    pub(super) fn cut(&self, text: &[u8]) -> Option<Vec<u8>> {
        if self.cuts.is_empty() {
            return None;
        }
        let mut kept = Vec::with_capacity(text.len());
        let mut from = 0;
        for cut in &self.cuts {
            kept.extend_from_slice(text.get(from..cut.start)?);
            from = cut.end;
            // One comma goes with the property: the one after it, or before.
            if text.get(from) == Some(&b',') {
                from += 1;
            } else if kept.last() == Some(&b',') {
                kept.pop();
            }
        }
        kept.extend_from_slice(text.get(from..)?);
        Some(kept)
    }

    /// Where in `text`, of which this is the outline, the value of `name` is.
    pub(super) fn find(&self, text: &[u8], name: &str) -> Noted {
        // In compact text a string has one spelling.
        if has_special(name.as_bytes()) {
            return Noted::Unknown;
        }
        let is_it = |noted: &&Property| text.get(noted.key.clone()) == Some(name.as_bytes());
        match self.noted.iter().find(is_it) {
            Some(noted) => Noted::At(noted.value.clone()),
            None if self.complete => Noted::Absent,
            None => Noted::Unknown,
        }
    }
}

/// A look over a text. `None` means: not certain.
struct Look<'a> {
    text: &'a [u8],
    at: usize,
    /// Whether all strings so far are ASCII.
    ascii: bool,
    /// The keys of the objects around this place, the innermost last.
    keys: Vec<Range<usize>>,
}

impl<'a> Look<'a> {
    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Whether `byte` comes next; goes past it.
    fn takes(&mut self, byte: u8) -> bool {
        let takes = self.next() == Some(byte);
        self.at += usize::from(takes);
        takes
    }

    fn exactly(&mut self, expected: &[u8]) -> Option<()> {
        let found = self.rest().starts_with(expected);
        self.at += expected.len();
        found.then_some(())
    }

    /// The object at the top.
    fn top(&mut self, drop: &[&str]) -> Option<Outline> {
        let mut outline = Outline { complete: true, ..Outline::default() };
        self.members(1, |text, property| {
            let key = text.get(property.key.clone())?;
            if drop.iter().any(|name| name.as_bytes() == key) {
                let quote = property.key.start - 1;
                outline.cuts.push(quote..property.value.end);
                return Some(());
            }
            outline.complete = outline.noted.len() < NOTED_MAX;
            if outline.complete {
                outline.noted.push(property);
            }
            Some(())
        })?;
        Some(outline)
    }

    /// A value, inside `depth` objects and arrays.
    fn value(&mut self, depth: usize) -> Option<()> {
        match self.next()? {
            b'"' => self.string().map(|_| ()),
            b'{' if depth < DEPTH_MAX => self.members(depth + 1, |_, _| Some(())),
            b'[' if depth < DEPTH_MAX => self.elements(depth + 1),
            b'-' | b'0'..=b'9' => self.number(),
            b'n' => self.exactly(b"null"),
            b't' => self.exactly(b"true"),
            b'f' => self.exactly(b"false"),
            _ => None,
        }
    }

    fn elements(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        if self.takes(b']') {
            return Some(());
        }
        loop {
            self.value(depth)?;
            if !self.takes(b',') {
                return self.exactly(b"]");
            }
        }
    }

    /// An object, of which each property is shown to `note`.
    fn members(
        &mut self,
        depth: usize,
        mut note: impl FnMut(&'a [u8], Property) -> Option<()>,
    ) -> Option<()> {
        self.exactly(b"{")?;
        if self.takes(b'}') {
            return Some(());
        }
        let mut keys = Keys { first: self.keys.len(), many: HashSet::new() };
        loop {
            let key = self.string()?;
            self.exactly(b":")?;
            keys.add(self, key.clone())?;
            let start = self.at;
            self.value(depth)?;
            note(self.text, Property { key, value: start..self.at })?;
            if !self.takes(b',') {
                break;
            }
        }
        self.keys.truncate(keys.first);
        self.exactly(b"}")
    }

    /// A string; returns where it is, without its quotes.
    fn string(&mut self) -> Option<Range<usize>> {
        self.exactly(b"\"")?;
        let start = self.at;
        loop {
            self.at += self.plain();
            match self.next()? {
                b'"' => {
                    self.at += 1;
                    return Some(start..self.at - 1);
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    /// How many bytes follow that stand for themselves in a string.
    fn plain(&mut self) -> usize {
        let (blocks, _) = self.rest().as_chunks::<BLOCK_BYTES>();
        let mut plain = 0;
        let mut seen = 0;
        for block in blocks {
            if has_special(block) {
                break;
            }
            seen |= block.iter().fold(0, |seen, byte| seen | byte);
            plain += BLOCK_BYTES;
        }
        for byte in self.rest().get(plain..).unwrap_or_default() {
            if is_special(*byte) {
                break;
            }
            seen |= byte;
            plain += 1;
        }
        self.ascii &= seen.is_ascii();
        plain
    }

    /// An escape, if it is the one that we would write.
    fn escape(&mut self) -> Option<()> {
        let bytes = match self.rest() {
            [_, b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
            [_, b'u', b'0', b'0', b'0', b'0'..=b'7' | b'b' | b'e' | b'f', ..] => 6,
            [_, b'u', b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f', ..] => 6,
            _ => return None,
        };
        self.at += bytes;
        Some(())
    }

    /// A number, if we would write it so.
    fn number(&mut self) -> Option<()> {
        let part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let rest = self.rest();
        let (number, _) =
            rest.split_at_checked(rest.iter().take_while(|byte| part(byte)).count())?;
        self.at += number.len();
        (is_short_integer(number) || compact::is_number(number)).then_some(())
    }
}

/// The keys of one object.
struct Keys<'a> {
    /// Where they begin among those of all objects around.
    first: usize,
    /// All of them, when they are many.
    many: HashSet<&'a [u8]>,
}

impl<'a> Keys<'a> {
    /// Notes a key, if it is not there yet.
    fn add(&mut self, look: &mut Look<'a>, key: Range<usize>) -> Option<()> {
        let text = look.text;
        let bytes = text.get(key.clone())?;
        let known = look.keys.get(self.first..)?;
        if known.len() < COMPARED_MAX {
            if known.iter().any(|known| text.get(known.clone()) == Some(bytes)) {
                return None;
            }
            look.keys.push(key);
            return Some(());
        }
        if self.many.is_empty() {
            self.many.extend(known.iter().filter_map(|key| text.get(key.clone())));
        }
        self.many.insert(bytes).then_some(())
    }
}

/// Whether a byte does not stand for itself in a JSON string.
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Whether there is a byte that does not stand for itself in a JSON string.
pub(super) fn has_special(bytes: &[u8]) -> bool {
    bytes.iter().fold(false, |found, byte| found | is_special(*byte))
}

/// Whether it is an integer that surely has 64 bits at most.
fn is_short_integer(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let negative_zero = number == b"-0";
    match digits {
        [b'0'] => !negative_zero,
        [b'1'..=b'9', more @ ..] => more.len() < 18 && more.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
