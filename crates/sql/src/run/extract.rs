//! The values at the paths that a query reads, in one look over an item's text.
//!
//! The paths of a program make a tree. The text is read along that tree; what
//! no path leads to is read past, and nothing is built for it. Behind the last
//! property that is wanted, nothing is read: no property comes twice in a stored
//! text. Only an item that is given as it is, after its filter has read a part, is
//! read as a whole before, so that no damaged text leaves the server.
//!
//! A path that starts with a computed property leads into what that is for the item,
//! which is computed from fields that are read before. To all others it is a field
//! like any other.

use std::fmt;

use dayfly_model::ErrorKind;
use dayfly_model::system::SYSTEM_PROPERTIES;
use dayfly_model::value::Value;
use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Item;
use super::program::Code;

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FieldStep {
    Name(String),
    Place(usize),
}

/// The paths that a program reads.
#[derive(Default)]
pub(super) struct Fields {
    /// Where each is, and in which computed property, if it is in one.
    paths: Vec<(Option<usize>, Vec<FieldStep>)>,
    root: Node,
    /// Which of them are system properties, and how they are called.
    system: Vec<(usize, String)>,
    computed: Vec<ComputedField>,
    /// The item is also read as a whole.
    pub(super) whole: bool,
}

/// A computed property, and what is wanted of it.
pub(super) struct ComputedField {
    name: String,
    pub(super) code: Code,
    root: Node,
}

impl ComputedField {
    /// Takes what is wanted out of its value.
    pub(super) fn take(&self, value: &Value, found: &mut [Value]) {
        self.root.take(value, found);
    }
}

#[derive(Debug, Default)]
struct Node {
    /// The field that is wanted here.
    field: Option<usize>,
    names: Vec<(String, Node)>,
    places: Vec<(usize, Node)>,
}

impl Fields {
    /// The number of the field at a path, which has at least one step.
    pub(super) fn add(&mut self, path: Vec<FieldStep>) -> usize {
        let path = (None, path);
        if let Some(known) = self.paths.iter().position(|known| *known == path) {
            return known;
        }
        let field = self.paths.len();
        match path.1.as_slice() {
            [FieldStep::Name(name)] if SYSTEM_PROPERTIES.contains(&name.as_str()) => {
                self.system.push((field, name.clone()));
            }
            path => self.root.add(path, field),
        }
        self.paths.push(path);
        field
    }

    /// The same at a path that starts with a computed property.
    pub(super) fn add_computed(&mut self, property: usize, path: Vec<FieldStep>) -> usize {
        let path = (Some(property), path);
        if let Some(known) = self.paths.iter().position(|known| *known == path) {
            return known;
        }
        let field = self.paths.len();
        if let Some(computed) = self.computed.get_mut(property) {
            computed.root.add(path.1.get(1..).unwrap_or_default(), field);
        }
        self.paths.push(path);
        field
    }

    /// The number of a computed property that is known already.
    pub(super) fn property(&self, name: &str) -> Option<usize> {
        self.computed.iter().position(|known| known.name == name)
    }

    /// The number of a new computed property.
    pub(super) fn add_property(&mut self, name: &str, code: Code) -> usize {
        self.computed.push(ComputedField { name: name.to_owned(), code, root: Node::default() });
        self.computed.len() - 1
    }

    /// The computed properties.
    pub(super) fn computed(&self) -> &[ComputedField] {
        &self.computed
    }

    /// Whether anything is read that the server adds to an item.
    pub(super) fn reads_system(&self) -> bool {
        self.whole || !self.system.is_empty()
    }

    /// The path of a field.
    pub(super) fn path(&self, field: usize) -> &[FieldStep] {
        self.paths.get(field).map_or(&[], |(_, path)| path.as_slice())
    }

    /// Whether anything is read of an item's text.
    pub(super) fn reads_text(&self) -> bool {
        !self.root.is_leaf()
    }

    /// The values at all paths, in their order; those that are computed come later.
    pub(super) fn read(&self, item: &dyn Item) -> dayfly_model::Result<Vec<Value>> {
        let mut found = vec![Value::Undefined; self.paths.len()];
        if self.reads_text() {
            let mut text = serde_json::Deserializer::from_slice(item.text());
            // An item is not nested deeper than it may be.
            text.disable_recursion_limit();
            let mut top = Top { root: &self.root, found: &mut found, is_enough: false };
            if text.deserialize_map(&mut top).is_err() && !top.is_enough {
                return Err(damaged());
            }
        }
        for (field, name) in &self.system {
            if let Some(place) = found.get_mut(*field) {
                *place = item.system(name);
            }
        }
        Ok(found)
    }
}

/// Reads an item as a whole, for nothing but its faults.
pub(super) fn check(text: &[u8]) -> dayfly_model::Result<()> {
    let mut text = serde_json::Deserializer::from_str(utf8(text)?);
    text.disable_recursion_limit();
    IgnoredAny::deserialize(&mut text).map(drop).map_err(|_| damaged())
}

/// The text of an item.
pub(super) fn utf8(text: &[u8]) -> dayfly_model::Result<&str> {
    str::from_utf8(text).map_err(|_| damaged())
}

/// An item's text was valid when it was stored.
pub(super) fn damaged() -> dayfly_model::Error {
    dayfly_model::Error::new(ErrorKind::Internal, "The stored data is damaged: an item's text.")
}

impl Node {
    fn add(&mut self, path: &[FieldStep], field: usize) {
        let Some((step, rest)) = path.split_first() else {
            self.field = Some(field);
            return;
        };
        match step {
            FieldStep::Name(name) => child(&mut self.names, name).add(rest, field),
            FieldStep::Place(place) => child(&mut self.places, place).add(rest, field),
        }
    }

    fn is_leaf(&self) -> bool {
        self.names.is_empty() && self.places.is_empty()
    }

    /// Takes what is wanted out of a value that was read whole.
    fn take(&self, value: &Value, found: &mut [Value]) {
        for (name, node) in &self.names {
            node.take(value.property(name), found);
        }
        for (place, node) in &self.places {
            node.take(value.element(*place), found);
        }
        if let Some(slot) = self.field.and_then(|field| found.get_mut(field)) {
            *slot = value.clone();
        }
    }
}

fn child<'n, K: PartialEq + Clone>(children: &'n mut Vec<(K, Node)>, key: &K) -> &'n mut Node {
    let known = children.iter().position(|(known, _)| known == key);
    let at = known.unwrap_or_else(|| {
        children.push((key.clone(), Node::default()));
        children.len() - 1
    });
    // It is there, or was just put there.
    #[expect(clippy::indexing_slicing, reason = "found or pushed above")]
    &mut children[at].1
}

/// Reads an item.
struct Top<'l> {
    root: &'l Node,
    found: &'l mut [Value],
    /// Whether everything is found: it can only fail to end early.
    is_enough: bool,
}

impl<'de> Visitor<'de> for &mut Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let names = &self.root.names;
        let mut left = names.len();
        while left > 0 {
            match map.next_key_seed(Named(names))? {
                Some(Some(node)) => {
                    map.next_value_seed(Look { node, found: self.found })?;
                    left = left.saturating_sub(1);
                }
                Some(None) => {
                    map.next_value::<IgnoredAny>()?;
                }
                None => return Ok(()),
            }
        }
        self.is_enough = true;
        Err(A::Error::custom("enough"))
    }
}

/// Reads a value along a node.
struct Look<'l> {
    node: &'l Node,
    found: &'l mut [Value],
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.node.field {
            Some(field) if self.node.is_leaf() => {
                let value = Value::deserialize(deserializer)?;
                if let Some(slot) = self.found.get_mut(field) {
                    *slot = value;
                }
                Ok(())
            }
            Some(_) => {
                let value = Value::deserialize(deserializer)?;
                self.node.take(&value, self.found);
                Ok(())
            }
            None => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(child) = map.next_key_seed(Named(&self.node.names))? {
            match child {
                Some(node) => map.next_value_seed(Look { node, found: self.found })?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        for place in 0usize.. {
            let wanted = self.node.places.iter().find(|(known, _)| *known == place);
            let more = match wanted {
                Some((_, node)) => {
                    seq.next_element_seed(Look { node, found: self.found })?.is_some()
                }
                None => seq.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

/// Which child a key leads to.
struct Named<'n>(&'n [(String, Node)]);

impl<'n, 'de> DeserializeSeed<'de> for Named<'n> {
    type Value = Option<&'n Node>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Option<&'n Node>, D::Error> {
        key.deserialize_str(self)
    }
}

impl<'n> Visitor<'_> for Named<'n> {
    type Value = Option<&'n Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Option<&'n Node>, E> {
        Ok(self.0.iter().find(|(name, _)| name == key).map(|(_, node)| node))
    }
}
