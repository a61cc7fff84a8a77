//! The compact text of an item, changed in place.
//!
//! A path is followed through the text to the bytes of its value, past everything beside
//! it; then some bytes are replaced. In compact text a name has one spelling, and nothing
//! stands between two tokens, so both is simple.

use std::ops::Range;

use super::pointer::Pointer;
use crate::json;

/// Why an operation cannot be carried out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing is there that could hold this name.
    Parent(String),
    /// The array does not have this index.
    Bounds(String),
    /// An array is asked for something that is no index.
    Index,
    /// The value that is to be changed is not there.
    Absent(String),
    /// The value that is to be added to is not a number, or the sum is none.
    NoNumber(String),
    /// The text is not what it should be.
    Unreadable,
}

/// What a path leads to.
enum Landing {
    /// A member, and its value alone.
    Member { whole: Range<usize>, value: Range<usize> },
    /// The object does not have it; it ends here.
    NoMember { end: usize },
    /// An element.
    Element(Range<usize>),
    /// The place after the last element, by its index; the array ends here.
    Next { end: usize },
    /// The same place, by `-`.
    Dash { end: usize },
    /// A place farther on.
    Beyond,
}

/// An item's text on its way.
pub(super) struct Edited {
    text: Vec<u8>,
}

impl Edited {
    pub(super) fn new(text: &[u8]) -> Edited {
        Edited { text: text.to_vec() }
    }

    pub(super) fn into_text(self) -> Vec<u8> {
        self.text
    }

    pub(super) fn add(&mut self, path: &Pointer, value: &str) -> Result<(), Fault> {
        match self.land(path)? {
            Landing::Member { value: old, .. } => self.write(old, value),
            Landing::NoMember { end } => self.new_member(end, path.last(), value),
            Landing::Element(old) => self.write(old.start..old.start, &format!("{value},")),
            Landing::Next { end } | Landing::Dash { end } => self.append(end, value),
            Landing::Beyond => return Err(bounds(path)),
        }
        Ok(())
    }

    pub(super) fn set(&mut self, path: &Pointer, value: &str) -> Result<(), Fault> {
        match self.land(path)? {
            Landing::Member { value: old, .. } | Landing::Element(old) => self.write(old, value),
            Landing::NoMember { end } => self.new_member(end, path.last(), value),
            Landing::Dash { end } => self.append(end, value),
            Landing::Next { .. } | Landing::Beyond => return Err(bounds(path)),
        }
        Ok(())
    }

    pub(super) fn replace(&mut self, path: &Pointer, value: &str) -> Result<(), Fault> {
        match self.land(path)? {
            Landing::Member { value: old, .. } | Landing::Element(old) => self.write(old, value),
            Landing::NoMember { .. } => return Err(Fault::Absent(path.last().to_owned())),
            Landing::Next { .. } | Landing::Dash { .. } | Landing::Beyond => {
                return Err(bounds(path));
            }
        }
        Ok(())
    }

    /// Returns what was there.
    pub(super) fn remove(&mut self, path: &Pointer) -> Result<String, Fault> {
        let (whole, value) = match self.land(path)? {
            Landing::Member { whole, value } => (whole, value),
            Landing::Element(value) => (value.clone(), value),
            Landing::NoMember { .. } => return Err(Fault::Absent(path.last().to_owned())),
            Landing::Next { .. } | Landing::Dash { .. } | Landing::Beyond => {
                return Err(bounds(path));
            }
        };
        let removed = self.read(value)?.to_owned();
        // One comma goes with it: the one after it, or before.
        if self.byte(whole.end)? == b',' {
            self.write(whole.start..whole.end + 1, "");
        } else if self.byte(whole.start - 1)? == b',' {
            self.write(whole.start - 1..whole.end, "");
        } else {
            self.write(whole, "");
        }
        Ok(removed)
    }

    pub(super) fn increment(&mut self, path: &Pointer, by: &str) -> Result<(), Fault> {
        match self.land(path)? {
            Landing::Member { value: old, .. } | Landing::Element(old) => {
                let sum = sum(self.read(old.clone())?, by);
                let sum = sum.ok_or_else(|| Fault::NoNumber(path.last().to_owned()))?;
                self.write(old, &sum);
            }
            Landing::NoMember { end } => self.new_member(end, path.last(), by),
            Landing::Next { .. } | Landing::Dash { .. } | Landing::Beyond => {
                return Err(bounds(path));
            }
        }
        Ok(())
    }

    fn write(&mut self, place: Range<usize>, text: &str) {
        self.text.splice(place, text.bytes());
    }

    /// Adds a member to the object that ends at `end`.
    fn new_member(&mut self, end: usize, name: &str, value: &str) {
        self.append(end, &format!("{}:{value}", spelled(name)));
    }

    /// Adds to the object or array that ends at `end`.
    fn append(&mut self, end: usize, text: &str) {
        let is_empty = matches!(self.byte(end - 1), Ok(b'{' | b'['));
        let comma = if is_empty { "" } else { "," };
        self.write(end..end, &format!("{comma}{text}"));
    }

    fn read(&self, place: Range<usize>) -> Result<&str, Fault> {
        let bytes = self.text.get(place).ok_or(Fault::Unreadable)?;
        str::from_utf8(bytes).map_err(|_| Fault::Unreadable)
    }

    fn byte(&self, at: usize) -> Result<u8, Fault> {
        self.text.get(at).copied().ok_or(Fault::Unreadable)
    }

    /// What `path` leads to. All but its last name must be there.
    fn land(&self, path: &Pointer) -> Result<Landing, Fault> {
        let mut at = 0;
        for name in path.parents() {
            at = match self.step(at, name)? {
                Landing::Member { value, .. } | Landing::Element(value) => value.start,
                Landing::NoMember { .. } => return Err(Fault::Parent(name.to_owned())),
                Landing::Next { .. } | Landing::Dash { .. } | Landing::Beyond => {
                    return Err(Fault::Bounds(name.to_owned()));
                }
            };
        }
        let landing = self.step(at, path.last())?;
        // Where a value ends is looked for only when it is reached.
        Ok(match landing {
            Landing::Member { whole, value } => {
                let end = self.past_value(value.start)?;
                Landing::Member { whole: whole.start..end, value: value.start..end }
            }
            Landing::Element(value) => Landing::Element(value.start..self.past_value(value.start)?),
            other => other,
        })
    }

    /// What `name` leads to in the value that starts at `at`. Of what it leads to only the
    /// start is known.
    fn step(&self, at: usize, name: &str) -> Result<Landing, Fault> {
        match self.byte(at)? {
            b'{' => self.step_to_member(at + 1, &spelled(name)),
            b'[' => self.step_to_element(at + 1, name),
            _ => Err(Fault::Parent(name.to_owned())),
        }
    }

    fn step_to_member(&self, mut at: usize, name: &str) -> Result<Landing, Fault> {
        if self.byte(at)? == b'}' {
            return Ok(Landing::NoMember { end: at });
        }
        loop {
            let colon = self.past_string(at)?;
            let value = colon + 1;
            if self.text.get(at..colon) == Some(name.as_bytes()) {
                return Ok(Landing::Member { whole: at..value, value: value..value });
            }
            let end = self.past_value(value)?;
            if self.byte(end)? != b',' {
                return Ok(Landing::NoMember { end });
            }
            at = end + 1;
        }
    }

    fn step_to_element(&self, mut at: usize, name: &str) -> Result<Landing, Fault> {
        let wanted = match name {
            "-" => None,
            _ => Some(index(name).ok_or(Fault::Index)?),
        };
        let landed = |place: usize, end: usize| match wanted {
            None => Landing::Dash { end },
            Some(wanted) if wanted == place => Landing::Next { end },
            Some(_) => Landing::Beyond,
        };
        if self.byte(at)? == b']' {
            return Ok(landed(0, at));
        }
        for place in 0.. {
            if wanted == Some(place) {
                return Ok(Landing::Element(at..at));
            }
            let end = self.past_value(at)?;
            if self.byte(end)? != b',' {
                return Ok(landed(place + 1, end));
            }
            at = end + 1;
        }
        Err(Fault::Unreadable)
    }

    /// Where the value that starts at `at` has ended.
    fn past_value(&self, mut at: usize) -> Result<usize, Fault> {
        let mut depth = 0usize;
        loop {
            match self.byte(at)? {
                b'"' => at = self.past_string(at)?,
                b'{' | b'[' => {
                    depth += 1;
                    at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1).ok_or(Fault::Unreadable)?;
                    at += 1;
                }
                b',' | b':' if depth > 0 => at += 1,
                _ => at = self.past_word(at)?,
            }
            if depth == 0 {
                return Ok(at);
            }
        }
    }

    fn past_string(&self, at: usize) -> Result<usize, Fault> {
        let mut at = at + 1;
        loop {
            match self.byte(at)? {
                b'"' => return Ok(at + 1),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    /// Past a number, true, false or null.
    fn past_word(&self, at: usize) -> Result<usize, Fault> {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let rest = self.text.get(at..).ok_or(Fault::Unreadable)?;
        match rest.iter().take_while(|byte| is_part(byte)).count() {
            0 => Err(Fault::Unreadable),
            length => Ok(at + length),
        }
    }
}

fn bounds(path: &Pointer) -> Fault {
    Fault::Bounds(path.last().to_owned())
}

/// A name as compact text has it.
fn spelled(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}

/// The index that a name is, if it is one. One that no array has is `usize::MAX`.
fn index(name: &str) -> Option<usize> {
    let is_index = match name.as_bytes() {
        b"0" => true,
        [b'1'..=b'9', more @ ..] => more.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_index.then(|| name.parse().unwrap_or(usize::MAX))
}

/// The sum of two numbers, as text: exact while all three are whole and have 64 bits, else
/// that of doubles. `None`: one of them is not a number.
pub(super) fn sum(first: &str, second: &str) -> Option<String> {
    let read = |text: &str| serde_json::from_str::<serde_json::Number>(text).ok();
    let (first, second) = (read(first)?, read(second)?);
    if let (Some(first), Some(second)) = (first.as_i128(), second.as_i128()) {
        let sum = first.checked_add(second)?;
        if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&sum) {
            return Some(sum.to_string());
        }
    }
    let sum = first.as_f64()? + second.as_f64()?;
    sum.is_finite().then(|| json::number_text(sum))
}
