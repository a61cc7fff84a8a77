//! Which logical partition an item lives in.
//!
//! A key is a list of components, one for each path of the definition. On the
//! wire it is a JSON list:
//!
//! | header              | key                                            |
//! |---------------------|------------------------------------------------|
//! | `["a"]`, `[1.5]`    | a string, a number                             |
//! | `[true]`, `[null]`  | a boolean, null                                |
//! | `[{}]`              | undefined: the item does not have the property |
//! | `["a","b"]`         | two levels of a hierarchical key               |
//! | `[]`                | the system key: an item without a key, in a    |
//! |                     | container made without a definition            |
//!
//! Numbers are doubles, and -0 is 0. Keys are compared by their bytes
//! ([`PartitionKey::canonical`]): equal bytes, equal keys.

mod definition;

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;
use serde_json::value::RawValue;

pub use self::definition::{Kind, PATHS_MAX, PartitionKeyDefinition, Version};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{self, Lookup, Path};

/// How many bytes a string in a key may have.
pub const STRING_MAX: usize = 2048;

/// One component of a key.
#[derive(Clone, Debug)]
pub enum Component {
    /// The property is not there.
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number.
    Number(f64),
    /// Any string, up to [`STRING_MAX`] bytes.
    String(String),
}

/// The components of a key, in the order of the definition's paths.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionKey(pub Vec<Component>);

impl PartitionKey {
    /// Reads the header `x-ms-documentdb-partitionkey`.
    pub fn parse_header(text: &str) -> Result<PartitionKey> {
        let invalid = || Error::bad_request(format!("Partition key {text} is invalid."));
        let values: Vec<Value> = serde_json::from_str(text).map_err(|_| invalid())?;
        if values.len() > PATHS_MAX {
            return Err(mismatch());
        }
        let components = values.into_iter().map(|value| match value {
            Value::Null => Ok(Component::Null),
            Value::Bool(truth) => Ok(Component::Bool(truth)),
            Value::Number(number) => number.as_f64().map(Component::Number).ok_or_else(invalid),
            Value::String(string) => Component::string(string),
            Value::Object(object) if object.is_empty() => Ok(Component::Undefined),
            Value::Object(_) | Value::Array(_) => Err(invalid()),
        });
        components.collect::<Result<_>>().map(PartitionKey)
    }

    /// The key of an item.
    pub fn extract(
        definition: &PartitionKeyDefinition,
        item: &(impl Lookup + ?Sized),
    ) -> Result<PartitionKey> {
        let mut components = Vec::with_capacity(definition.paths.len());
        for path in &definition.paths {
            components.push(match item.at(path) {
                Some(value) => Component::of(value)?,
                None => Component::Undefined,
            });
        }
        Ok(PartitionKey(components).in_system_form(definition))
    }

    /// This key, if it names one logical partition of a container with this
    /// definition.
    pub fn fitted(self, definition: &PartitionKeyDefinition) -> Result<PartitionKey> {
        let key = self.in_system_form(definition);
        let system = definition.system_key && key.0.is_empty();
        if system || key.0.len() == definition.paths.len() { Ok(key) } else { Err(mismatch()) }
    }

    /// Whether `self` is `prefix` and possibly more.
    pub fn starts_with(&self, prefix: &PartitionKey) -> bool {
        self.0.starts_with(&prefix.0)
    }

    /// With a system key, `[{}]` and `[]` mean the same items.
    fn in_system_form(self, definition: &PartitionKeyDefinition) -> PartitionKey {
        if definition.system_key && self.0 == [Component::Undefined] {
            return PartitionKey(Vec::new());
        }
        self
    }

    /// As the header is written.
    pub fn to_json(&self) -> String {
        let mut json = "[".to_owned();
        for (place, component) in self.0.iter().enumerate() {
            if place > 0 {
                json.push(',');
            }
            json.push_str(&component.to_json());
        }
        json.push(']');
        json
    }

    /// As an object, with the last name of each path; if two have the same, with the whole
    /// paths. What an item does not have is left out.
    pub fn to_object(&self, definition: &PartitionKeyDefinition) -> String {
        let last = |path: &Path| path.segments().last().cloned().unwrap_or_default();
        let whole = |path: &Path| path.segments().join("/");
        let mut names: Vec<String> = definition.paths.iter().map(last).collect();
        let apart: HashSet<&String> = names.iter().collect();
        if apart.len() < names.len() {
            names = definition.paths.iter().map(whole).collect();
        }
        let there = |component: &&Component| !matches!(component, Component::Undefined);
        let members: Vec<String> = names
            .iter()
            .zip(&self.0)
            .filter(|(_, component)| there(component))
            .map(|(name, component)| format!("{}:{}", Value::from(&**name), component.to_json()))
            .collect();
        format!("{{{}}}", members.join(","))
    }

    /// The key as bytes that end by themselves: a count, then the components.
    pub fn canonical(&self) -> Vec<u8> {
        let mut bytes = vec![u8::try_from(self.0.len()).unwrap_or(u8::MAX)];
        for component in &self.0 {
            component.write_canonical(&mut bytes);
        }
        bytes
    }

    /// Reads what [`PartitionKey::canonical`] wrote, and nothing after it.
    pub fn from_canonical(bytes: &[u8]) -> Option<PartitionKey> {
        let (key, rest) = PartitionKey::read_canonical(bytes)?;
        rest.is_empty().then_some(key)
    }

    /// Reads what [`PartitionKey::canonical`] wrote, and says what follows.
    pub fn read_canonical(bytes: &[u8]) -> Option<(PartitionKey, &[u8])> {
        let (count, mut rest) = bytes.split_first()?;
        let mut components = Vec::with_capacity(usize::from(*count).min(PATHS_MAX));
        for _ in 0..*count {
            let (component, after) = Component::read_canonical(rest)?;
            components.push(component);
            rest = after;
        }
        Some((PartitionKey(components), rest))
    }
}

/// The key has another number of components than the container's definition,
/// or is not the item's. SDKs look the container up again when they see it.
pub fn mismatch() -> Error {
    Error::new(
        ErrorKind::PartitionKeyMismatch,
        "Partition key provided either doesn't correspond to definition in the collection or \
         doesn't match partition key field values specified in the document.",
    )
}

const UNDEFINED: u8 = 0;
const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const NUMBER: u8 = 5;
const STRING: u8 = 8;

impl Component {
    /// A string of a length that keys may have.
    fn string(string: String) -> Result<Component> {
        if string.len() > STRING_MAX {
            return Err(Error::bad_request(format!(
                "A partition key value has {} bytes; at most {STRING_MAX} are allowed.",
                string.len()
            )));
        }
        Ok(Component::String(string))
    }

    /// The component that an item has. An object and an array are no key, which
    /// is as good as absent.
    fn of(value: &RawValue) -> Result<Component> {
        let text = value.get();
        let broken = |_| Error::new(ErrorKind::Internal, format!("'{text}' is not a JSON value."));
        match text.as_bytes().first() {
            Some(b'n') => Ok(Component::Null),
            Some(b't') => Ok(Component::Bool(true)),
            Some(b'f') => Ok(Component::Bool(false)),
            Some(b'"') => Component::string(serde_json::from_str(text).map_err(broken)?),
            Some(b'{' | b'[') => Ok(Component::Undefined),
            _ => serde_json::from_str(text).map(Component::Number).map_err(broken),
        }
    }

    fn to_json(&self) -> Cow<'static, str> {
        match self {
            Component::Undefined => "{}".into(),
            Component::Null => "null".into(),
            Component::Bool(truth) => if *truth { "true" } else { "false" }.into(),
            Component::Number(number) => json::number_text(positive_zero(*number)).into(),
            // A string can always be written.
            Component::String(string) => serde_json::to_string(string).unwrap_or_default().into(),
        }
    }

    fn write_canonical(&self, out: &mut Vec<u8>) {
        match self {
            Component::Undefined => out.push(UNDEFINED),
            Component::Null => out.push(NULL),
            Component::Bool(false) => out.push(FALSE),
            Component::Bool(true) => out.push(TRUE),
            Component::Number(number) => {
                out.push(NUMBER);
                out.extend(positive_zero(*number).to_bits().to_be_bytes());
            }
            Component::String(string) => {
                out.push(STRING);
                out.extend(u32::try_from(string.len()).unwrap_or(u32::MAX).to_be_bytes());
                out.extend(string.as_bytes());
            }
        }
    }

    fn read_canonical(bytes: &[u8]) -> Option<(Component, &[u8])> {
        let (tag, rest) = bytes.split_first()?;
        Some(match *tag {
            UNDEFINED => (Component::Undefined, rest),
            NULL => (Component::Null, rest),
            FALSE => (Component::Bool(false), rest),
            TRUE => (Component::Bool(true), rest),
            NUMBER => {
                let (bits, rest) = rest.split_first_chunk()?;
                (Component::Number(f64::from_bits(u64::from_be_bytes(*bits))), rest)
            }
            STRING => {
                let (length, rest) = rest.split_first_chunk()?;
                let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
                let (string, rest) = rest.split_at_checked(length)?;
                (Component::String(str::from_utf8(string).ok()?.to_owned()), rest)
            }
            _ => return None,
        })
    }
}

/// -0 is 0, in keys and in their hash.
pub(crate) fn positive_zero(number: f64) -> f64 {
    number + 0.0
}

impl PartialEq for Component {
    fn eq(&self, other: &Component) -> bool {
        match (self, other) {
            (Component::Undefined, Component::Undefined) => true,
            (Component::Null, Component::Null) => true,
            (Component::Bool(a), Component::Bool(b)) => a == b,
            (Component::Number(a), Component::Number(b)) => {
                positive_zero(*a).to_bits() == positive_zero(*b).to_bits()
            }
            (Component::String(a), Component::String(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Component {}

impl std::hash::Hash for Component {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let mut bytes = Vec::new();
        self.write_canonical(&mut bytes);
        bytes.hash(state);
    }
}

#[cfg(test)]
mod tests;
