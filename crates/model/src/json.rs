//! JSON text: what is taken, and how a value is found in it.
//!
//! An item is kept as compact JSON text, so that a read copies bytes. What
//! comes in is read once, as a stream, and written again:
//!
//! | in the text                        | what becomes of it                    |
//! |------------------------------------|---------------------------------------|
//! | white space between tokens         | left out                              |
//! | order of properties                | kept                                  |
//! | a property twice                   | the last value, in the first place    |
//! | an integer of 64 bits              | kept exactly                          |
//! | another number                     | the nearest double; `1.0` becomes `1` |
//! | a number too large for a double    | refused                               |
//! | half of a surrogate pair           | refused                               |
//! | more than 128 levels               | refused                               |
//! | anything but an object at the top  | refused                               |
//!
//! What comes in may also be [`binary`]; then its text is made first.
//!
//! Looking a value up reads past the others without building anything.

pub mod binary;
mod compact;
pub(crate) mod path;

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

pub use self::path::Path;
use crate::error::{Error, Result};

/// How deep objects and arrays may be nested; the item itself is the first
/// level.
pub const DEPTH_MAX: usize = 128;

/// The compact text of one JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectText(String);

/// Reads one JSON object, in text or binary, without the top-level properties
/// named in `drop`.
pub fn parse(bytes: &[u8], drop: &[&str]) -> Result<ObjectText> {
    if binary::is_binary(bytes) {
        return parse_text(&binary::to_text(bytes)?, drop);
    }
    parse_text(bytes, drop)
}

fn parse_text(bytes: &[u8], drop: &[&str]) -> Result<ObjectText> {
    let text = std::str::from_utf8(bytes).map_err(invalid)?;
    compact::object(text, drop).map(ObjectText).map_err(invalid)
}

/// The value under `path` in the text of an object.
pub fn at<'a>(object: &'a str, path: &Path) -> Option<&'a RawValue> {
    let (first, rest) = path.segments().split_first()?;
    let mut found = property(object, first)?;
    for name in rest {
        found = property(found.get(), name)?;
    }
    Some(found)
}

/// The value of the property `name` in the text of an object; `None` when the
/// text is not an object.
pub fn property<'a>(object: &'a str, name: &str) -> Option<&'a RawValue> {
    if !object.trim_ascii_start().starts_with('{') {
        return None;
    }
    let mut found = None;
    // Reading stops at the property, and then says that the rest is missing.
    let _ = serde_json::Deserializer::from_str(object)
        .deserialize_map(Find { name, found: &mut found });
    found
}

impl ObjectText {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.0
    }

    /// The value of a top-level property.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        property(&self.0, name)
    }

    /// The value under `path`.
    pub fn at(&self, path: &Path) -> Option<&RawValue> {
        at(&self.0, path)
    }
}

impl fmt::Display for ObjectText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A number as JSON writes it: `1`, `1.5`, `1e+300`.
pub fn number_text(number: f64) -> String {
    match whole(number) {
        Some(integer) => integer.to_string(),
        None => serde_json::Number::from_f64(number).map_or("null".to_owned(), |n| n.to_string()),
    }
}

/// The integer that a double stands for, as far as doubles count one by one.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let integral = number.fract() == 0.0 && number.abs() < EXACT;
    let negative_zero = number == 0.0 && number.is_sign_negative();
    #[expect(clippy::cast_possible_truncation, reason = "below 2^53 and whole")]
    (integral && !negative_zero).then_some(number as i64)
}

fn invalid(reason: impl fmt::Display) -> Error {
    Error::bad_request(format!(
        "The input content is invalid because it is not valid JSON: {reason}"
    ))
}

/// Stops at one property of an object.
struct Find<'f, 'a> {
    name: &'f str,
    found: &'f mut Option<&'a RawValue>,
}

impl<'a> Visitor<'a> for Find<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(is_it) = map.next_key_seed(Named(self.name))? {
            if is_it {
                *self.found = Some(map.next_value()?);
                return Ok(());
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// Whether a key is this one.
struct Named<'n>(&'n str);

impl<'a> DeserializeSeed<'a> for Named<'_> {
    type Value = bool;

    fn deserialize<D: de::Deserializer<'a>>(self, key: D) -> Result<bool, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Named<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

#[cfg(test)]
mod tests;
