//! What an item has in the index.
//!
//! The item's text is read once, as a stream; nothing is built but the terms:
//!
//! | at an indexed path     | term                                               |
//! |------------------------|----------------------------------------------------|
//! | a scalar               | path and value, as [`order`] writes it             |
//! | one that is too long   | the first 512 bytes of that, marked as *cut*       |
//! | an array, an object    | path and type only, *cut*                          |
//! | an element of an array | as above, under the path with `[]`; equal ones once |
//!
//! Computed properties are given beside the text, and stand in front of what the
//! text has under their names.
//!
//! For each composite index there is one term with all its members: bytes in
//! descending order are inverted, what is missing is undefined, and each member
//! is cut to its share of the 512 bytes.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Order;
use super::rules::{
    Composite, Place, Rules, Slot, VALUE_BYTES_MAX, spell_item, spell_name, spelled_id,
};
use crate::Timestamp;
use crate::value::{Number, Type, Value, order};

/// What an item has in the index, in order, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// For single paths.
    pub values: Vec<Term>,
    /// For composite indexes.
    pub composites: Vec<Term>,
}

/// A value at a path, or the values of a composite index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// `<path:8> <value>`
    bytes: Vec<u8>,
    is_cut: bool,
    is_free: bool,
}

impl Term {
    fn new(path: u64, value: &[u8], is_cut: bool) -> Term {
        Term { bytes: [&path.to_be_bytes(), value].concat(), is_cut, is_free: false }
    }

    /// The same, with what these rules say of its charge.
    fn by(self, path: u64, rules: &Rules) -> Term {
        Term { is_free: rules.is_free(path), ..self }
    }

    /// The path's number, then the bytes of the value.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The path's number, as bytes.
    pub fn path(&self) -> &[u8] {
        self.bytes.get(..8).unwrap_or_default()
    }

    /// Whether the value is more than its bytes say.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether nobody pays for it: it is about how long an item lives, or when it was written,
    /// or it is its `id`.
    pub fn is_free(&self) -> bool {
        self.is_free
    }
}

/// One member of a composite term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its bytes, in ascending order.
    pub bytes: Vec<u8>,
    /// Whether the value is more than its bytes say.
    pub is_cut: bool,
}

impl Terms {
    /// What the item with this text and these computed properties has in the
    /// index, if `ts` is its `_ts`.
    pub fn of(
        text: &str,
        ts: Timestamp,
        computed: &[(&str, Value)],
        rules: &Rules,
    ) -> serde_json::Result<Terms> {
        if !rules.is_on() {
            return Ok(Terms::default());
        }
        let slots = rules.composites().iter().map(|composite| vec![None; composite.members.len()]);
        let mut walk = Walk {
            rules,
            path: Vec::new(),
            value: Vec::new(),
            terms: Vec::new(),
            slots: slots.collect(),
        };
        let mut reader = serde_json::Deserializer::from_str(text);
        // Items are not deeper than they may be; that was seen to before.
        reader.disable_recursion_limit();
        At { place: Place::TOP, path: None, walk: &mut walk }.deserialize(&mut reader)?;
        reader.end()?;
        for (name, value) in computed {
            spell_name(name, &mut walk.path);
            walk.take_all(rules.under(Place::TOP, name), value);
            walk.path.clear();
        }
        walk.value.clear();
        order::write(&Value::Number(ts.0.into()), &mut walk.value);
        for slot in rules.times() {
            walk.fill(*slot, false);
        }
        Ok(walk.finish())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len() + self.composites.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The paths with a value, each once.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.values
            .chunk_by(|left, right| left.path() == right.path())
            .filter_map(|same| same.first().map(Term::path))
    }
}

impl Composite {
    /// The members of a term's value; `None` if it is not one of this index.
    pub fn split(&self, value: &[u8]) -> Option<Vec<Member>> {
        let mut rest = value;
        let mut members = Vec::with_capacity(self.members.len());
        for (_, order) in &self.members {
            let turned = turned(rest, *order);
            let (length, is_cut) = first_value(&turned, self.member_bytes_max())?;
            members.push(Member { bytes: turned.get(..length)?.to_vec(), is_cut });
            rest = rest.get(length..)?;
        }
        rest.is_empty().then_some(members)
    }
}

fn turned(bytes: &[u8], order: Order) -> Vec<u8> {
    match order {
        Order::Ascending => bytes.to_vec(),
        Order::Descending => bytes.iter().map(|byte| !byte).collect(),
    }
}

/// How many bytes an entry has of the first value that stands in `bytes`, and
/// whether that is less than all of it. `None`: the bytes end within the value.
pub fn first_value(bytes: &[u8], bytes_max: usize) -> Option<(usize, bool)> {
    let first = *bytes.first()?;
    let is = |kind: Type| {
        let (from, past) = order::bounds(kind);
        (from..past).contains(&first)
    };
    if is(Type::Array) || is(Type::Object) {
        return Some((1, true));
    }
    if is(Type::Number) {
        return Some((order::NUMBER_BYTES, false));
    }
    if !is(Type::String) {
        return Some((1, false));
    }
    let text = bytes.get(..bytes_max).unwrap_or(bytes);
    match text.windows(2).position(|pair| pair == [0, 0]) {
        Some(end) => Some((end + 2, false)),
        None => (text.len() == bytes_max).then_some((bytes_max, true)),
    }
}

/// The way through an item.
struct Walk<'r> {
    rules: &'r Rules,
    /// The spelling of the path.
    path: Vec<u8>,
    /// The bytes of the last value.
    value: Vec<u8>,
    terms: Vec<Term>,
    /// What the members of each composite index were found to be.
    slots: Vec<Vec<Option<Member>>>,
}

impl Walk<'_> {
    /// Takes the value whose bytes are in `value`; `is_cut`: it has no more of
    /// them here.
    fn take(&mut self, place: Place, path: Option<u64>, is_cut: bool) {
        if self.rules.takes(place) {
            let path = path.unwrap_or_else(|| spelled_id(&self.path));
            let (bytes, shortened) = shortened(&self.value, VALUE_BYTES_MAX);
            self.terms.push(Term::new(path, bytes, is_cut || shortened).by(path, self.rules));
        }
        let rules = self.rules;
        for slot in rules.slots(place) {
            self.fill(*slot, is_cut);
        }
    }

    /// The same for a member of a composite index.
    fn fill(&mut self, slot: Slot, is_cut: bool) {
        let composite = self.rules.composites().get(slot.composite);
        let bytes_max = composite.map_or(0, Composite::member_bytes_max);
        let (bytes, shortened) = shortened(&self.value, bytes_max);
        let member = Member { bytes: bytes.to_vec(), is_cut: is_cut || shortened };
        let members = self.slots.get_mut(slot.composite);
        if let Some(found) = members.and_then(|members| members.get_mut(slot.member)) {
            *found = Some(member);
        }
    }

    fn take_value(&mut self, place: Place, path: Option<u64>, value: &Value) {
        self.value.clear();
        order::write(value, &mut self.value);
        self.take(place, path, false);
    }

    fn take_text(&mut self, place: Place, path: Option<u64>, text: &str) {
        self.value.clear();
        // Of a long text only the beginning is of interest.
        match text.get(..text.floor_char_boundary(VALUE_BYTES_MAX + 4)) {
            Some(start) if start.len() < text.len() => {
                order::write_text_start(start, &mut self.value);
            }
            _ => order::write_text(text, &mut self.value),
        }
        self.take(place, path, false);
    }

    /// Takes an array or an object by its type.
    fn take_type(&mut self, place: Place, path: Option<u64>, kind: Type) {
        self.value.clear();
        self.value.push(order::bounds(kind).0);
        self.take(place, path, true);
    }

    /// Takes a value with everything in it.
    fn take_all(&mut self, place: Place, value: &Value) {
        if self.rules.passes_over(place) {
            return;
        }
        let length = self.path.len();
        match value {
            Value::Undefined => {}
            Value::String(text) => self.take_text(place, None, text),
            Value::Array(values) => {
                self.take_type(place, None, Type::Array);
                spell_item(&mut self.path);
                let place = self.rules.within(place);
                for value in values {
                    self.take_all(place, value);
                }
            }
            Value::Object(members) => {
                self.take_type(place, None, Type::Object);
                for (name, value) in members {
                    spell_name(name, &mut self.path);
                    self.take_all(self.rules.under(place, name), value);
                    self.path.truncate(length);
                }
            }
            scalar => self.take_value(place, None, scalar),
        }
        self.path.truncate(length);
    }

    fn finish(mut self) -> Terms {
        self.terms.sort_unstable();
        self.terms.dedup();
        let undefined = Member { bytes: order::key(&Value::Undefined), is_cut: false };
        let composite = |(composite, found): (&Composite, &Vec<Option<Member>>)| {
            let mut value = Vec::new();
            let mut is_cut = false;
            for ((_, order), member) in composite.members.iter().zip(found) {
                let member = member.as_ref().unwrap_or(&undefined);
                value.extend(turned(&member.bytes, *order));
                is_cut |= member.is_cut;
            }
            Term::new(composite.id, &value, is_cut).by(composite.id, self.rules)
        };
        let mut composites: Vec<Term> =
            self.rules.composites().iter().zip(&self.slots).map(composite).collect();
        composites.sort_unstable();
        Terms { values: self.terms, composites }
    }
}

/// The bytes of a value up to a limit, and whether there are more.
fn shortened(value: &[u8], bytes_max: usize) -> (&[u8], bool) {
    match value.get(..bytes_max) {
        Some(start) if start.len() < value.len() => (start, true),
        _ => (value, false),
    }
}

/// Reads the value at a place.
struct At<'w, 'r> {
    place: Place,
    /// The path's number, where it is known.
    path: Option<u64>,
    walk: &'w mut Walk<'r>,
}

impl<'a> DeserializeSeed<'a> for At<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, value: D) -> Result<(), D::Error> {
        if self.walk.rules.passes_over(self.place) {
            return value.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        value.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for At<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.walk.take_value(self.place, self.path, &Value::Null);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.walk.take_value(self.place, self.path, &Value::Bool(value));
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.walk.take_value(self.place, self.path, &value.into());
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.walk.take_value(self.place, self.path, &Value::Number(Number::from(value)));
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.walk.take_value(self.place, self.path, &value.into());
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.walk.take_text(self.place, self.path, value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut values: A) -> Result<(), A::Error> {
        let At { place, path, walk } = self;
        walk.take_type(place, path, Type::Array);
        let length = walk.path.len();
        spell_item(&mut walk.path);
        let place = walk.rules.within(place);
        let path = Some(spelled_id(&walk.path));
        while values.next_element_seed(At { place, path, walk: &mut *walk })?.is_some() {}
        walk.path.truncate(length);
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(self, mut members: A) -> Result<(), A::Error> {
        let At { place, path, walk } = self;
        let length = walk.path.len();
        if length > 0 {
            walk.take_type(place, path, Type::Object);
        }
        while let Some(place) = members.next_key_seed(Into { place, walk: &mut *walk })? {
            members.next_value_seed(At { place, path: None, walk: &mut *walk })?;
            walk.path.truncate(length);
        }
        Ok(())
    }
}

/// Steps into a property.
struct Into<'w, 'r> {
    place: Place,
    walk: &'w mut Walk<'r>,
}

impl<'a> DeserializeSeed<'a> for Into<'_, '_> {
    type Value = Place;

    fn deserialize<D: Deserializer<'a>>(self, name: D) -> Result<Place, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for Into<'_, '_> {
    type Value = Place;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Place, E> {
        let is_hidden = self.walk.path.is_empty() && self.walk.rules.is_computed(name);
        spell_name(name, &mut self.walk.path);
        let rules = self.walk.rules;
        Ok(if is_hidden { Place::NOWHERE } else { rules.under(self.place, name) })
    }
}

#[cfg(test)]
mod tests;
