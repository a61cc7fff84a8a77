//! JSON text: what is taken, and how a value is found in it.
//!
//! An item is kept as compact JSON text, so that a read copies bytes. Text that
//! is compact already is taken as it is; other text is read once, as a stream,
//! and written again:
//!
//! | in the text                        | what becomes of it                    |
//! |------------------------------------|---------------------------------------|
//! | white space between tokens         | left out                              |
//! | order of properties                | kept                                  |
//! | a property twice                   | the last value, in the first place    |
//! | an integer of 64 bits              | kept exactly                          |
//! | another number                     | the nearest double; `1.0` becomes `1` |
//! | a zero with a minus                | `0`                                   |
//! | a number too large for a double    | refused                               |
//! | half of a surrogate pair           | refused                               |
//! | more than 128 levels               | refused                               |
//! | anything but an object at the top  | refused                               |
//! | a control character in a string    | escaped in an item, refused elsewhere |
//!
//! What comes in may also be [`binary`]; then its text is made first.
//!
//! Where the first properties are is noted on the way. Looking another value
//! up reads past the others without building anything.

pub mod binary;
mod compact;
mod controls;
mod outline;
pub(crate) mod path;

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{self, DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use self::outline::{Noted, Outline};
pub use self::path::Path;
use crate::error::{Error, Result};

/// How deep objects and arrays may be nested; the item itself is the first
/// level.
pub const DEPTH_MAX: usize = 128;

/// The most bytes of an item, as it is sent and as it is stored, and of a patch: less than 2 MiB,
/// as the service has it.
pub const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024 - 1;

/// The compact text of one JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectText {
    /// Always UTF-8.
    text: Bytes,
    outline: Outline,
}

/// Where values are found by their path.
pub trait Lookup {
    /// The value under `path`.
    fn at(&self, path: &Path) -> Option<&RawValue>;
}

/// Reads one JSON object, in text or binary, without the top-level properties
/// named in `drop`.
pub fn parse(bytes: &[u8], drop: &[&str]) -> Result<ObjectText> {
    read(&Bytes::copy_from_slice(bytes), drop, rewrite)
}

/// Reads an item as [`parse`] does, but text that is compact already is shared, not
/// copied, and control characters in strings are escaped: the service takes them.
pub fn take(body: &Bytes, drop: &[&str]) -> Result<ObjectText> {
    read(body, drop, |bytes, drop| {
        rewrite(bytes, drop).or_else(|refused| match controls::escaped(bytes) {
            Some(text) => rewrite(&text, drop),
            None => Err(refused),
        })
    })
}

fn read(
    body: &Bytes,
    drop: &[&str],
    rewrite: impl Fn(&[u8], &[&str]) -> Result<ObjectText>,
) -> Result<ObjectText> {
    if binary::is_binary(body) {
        return rewrite(&binary::to_text(body)?, drop);
    }
    let Some(outline) = Outline::of(body, drop) else { return rewrite(body, drop) };
    Ok(match outline.cut(body) {
        Some(kept) => ObjectText::outlined(kept),
        None => ObjectText { text: body.clone(), outline },
    })
}

fn rewrite(bytes: &[u8], drop: &[&str]) -> Result<ObjectText> {
    let text = str::from_utf8(bytes).map_err(invalid)?;
    compact::object(text, drop).map(ObjectText::outlined).map_err(invalid)
}

/// The text of what comes in, for another reader than [`take`]: made of binary, and with
/// the control characters in its strings escaped.
pub fn text_of(body: &[u8]) -> Result<Cow<'_, str>> {
    let text = if binary::is_binary(body) {
        Some(binary::to_text(body)?)
    } else {
        controls::escaped(body)
    };
    match text {
        Some(text) => String::from_utf8(text).map(Cow::Owned).map_err(invalid),
        None => str::from_utf8(body).map(Cow::Borrowed).map_err(invalid),
    }
}

/// The compact text of one value of any kind.
pub fn value_text(text: &str) -> Result<String> {
    compact::value(text).map_err(invalid)
}

/// The value under `path` in the text of an object.
pub fn at<'a>(object: &'a str, path: &Path) -> Option<&'a RawValue> {
    let (first, rest) = path.segments().split_first()?;
    through(property(object, first)?, rest)
}

/// The value that `names` lead to, from `value` on.
fn through<'a>(value: &'a RawValue, names: &[String]) -> Option<&'a RawValue> {
    names.iter().try_fold(value, |found, name| property(found.get(), name))
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

impl Lookup for str {
    fn at(&self, path: &Path) -> Option<&RawValue> {
        at(self, path)
    }
}

impl Lookup for ObjectText {
    fn at(&self, path: &Path) -> Option<&RawValue> {
        let (first, rest) = path.segments().split_first()?;
        through(self.get(first)?, rest)
    }
}

impl ObjectText {
    /// Of text that is compact.
    fn outlined(text: impl Into<Bytes>) -> ObjectText {
        let text = text.into();
        let outline = Outline::of(&text, &[]).unwrap_or_default();
        ObjectText { text, outline }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.text).unwrap_or_default()
    }

    /// The text.
    pub fn into_string(self) -> String {
        String::from_utf8(self.text.into()).unwrap_or_default()
    }

    /// The text as bytes, shared.
    pub fn into_bytes(self) -> Bytes {
        self.text
    }

    /// How many bytes the text has.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The value of a top-level property.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        match self.outline.find(&self.text, name) {
            Noted::At(place) => serde_json::from_slice(self.text.get(place)?).ok(),
            Noted::Absent => None,
            Noted::Unknown => property(self.as_str(), name),
        }
    }
}

impl fmt::Display for ObjectText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
/// That of a zero with a minus is 0.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let integral = number.fract() == 0.0 && number.abs() < EXACT;
    #[expect(clippy::cast_possible_truncation, reason = "below 2^53 and whole")]
    integral.then_some(number as i64)
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
