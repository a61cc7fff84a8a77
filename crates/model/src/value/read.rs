//! From JSON text to values.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Number, Value};
use crate::json::DEPTH_MAX;

/// Reads JSON text, whoever wrote it. The text must be whole, and not nested
/// deeper than items may be.
pub fn read(text: &str) -> serde_json::Result<Value> {
    if depth(text) > DEPTH_MAX {
        return Err(serde::de::Error::custom("it is nested too deep"));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    // Its own limit is one level less than that of items.
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// How deep a text is nested, as far as it is JSON.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The value of text that was found in an item, and so is valid.
pub fn read_raw(raw: &RawValue) -> Value {
    read(raw.get()).unwrap_or_default()
}

impl<'a> Deserialize<'a> for Value {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'a> Visitor<'a> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(Number::Double(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut values: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(value) = values.next_element()? {
            read.push(value);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'a>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read: Vec<(String, Value)> = Vec::new();
        while let Some(member) = members.next_entry::<String, Value>()? {
            read.push(member);
        }
        Ok(Value::Object(each_once(read)))
    }
}

/// Of a name that is there twice the last value counts, in the first place.
fn each_once(members: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let mut names = HashSet::with_capacity(members.len());
    if members.iter().all(|(name, _)| names.insert(name.as_str())) {
        return members;
    }
    let mut once: Vec<(String, Value)> = Vec::new();
    for (name, value) in members {
        match once.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => once.push((name, value)),
        }
    }
    once
}
