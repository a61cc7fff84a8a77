//! One pass from JSON text to compact JSON text.
//!
//! The pass writes while it reads. Only when a key comes twice in an object it
//! starts again and keeps the members of each object apart until the object
//! ends, so that the last value can take the place of the first.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;
use serde::de::{
    self, DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::outline::has_special;
use super::{DEPTH_MAX, whole};

/// The compact text of the object in `text`, without the properties named in
/// `drop`.
pub(super) fn object(text: &str, drop: &[&str]) -> serde_json::Result<String> {
    let mut twice = false;
    match read(text, drop, KeyRule::Distinct(&mut twice), true) {
        Err(_) if twice => read(text, drop, KeyRule::LastWins, true),
        outcome => outcome,
    }
}

/// The compact text of the value in `text`.
pub(super) fn value(text: &str) -> serde_json::Result<String> {
    let mut twice = false;
    match read(text, &[], KeyRule::Distinct(&mut twice), false) {
        Err(_) if twice => read(text, &[], KeyRule::LastWins, false),
        outcome => outcome,
    }
}

fn read(
    text: &str,
    drop: &[&str],
    mut keys: KeyRule<'_>,
    is_object: bool,
) -> serde_json::Result<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut input = serde_json::Deserializer::from_str(text);
    // The depth is counted here, to the level.
    input.disable_recursion_limit();
    let write = Write { out: &mut out, keys: &mut keys, depth: 0, drop };
    if is_object { input.deserialize_map(write) } else { input.deserialize_any(write) }?;
    input.end()?;
    String::from_utf8(out).map_err(de::Error::custom)
}

/// Whether a number is already spelled as it would be written.
pub(super) fn is_number(text: &[u8]) -> bool {
    let mut out = Vec::new();
    let write = Write { out: &mut out, keys: &mut KeyRule::LastWins, depth: 0, drop: &[] };
    let mut input = serde_json::Deserializer::from_slice(text);
    input.deserialize_any(write).and_then(|()| input.end()).is_ok() && out == text
}

/// What happens to keys that come twice.
enum KeyRule<'k> {
    /// Stop, and say so here.
    Distinct(&'k mut bool),
    /// The last value takes the place of the first.
    LastWins,
}

/// Writes the next value to `out`.
struct Write<'w, 'k> {
    out: &'w mut Vec<u8>,
    keys: &'w mut KeyRule<'k>,
    /// How many objects and arrays are around the value.
    depth: usize,
    /// Properties of this object to leave out.
    drop: &'w [&'w str],
}

impl<'k> Write<'_, 'k> {
    /// Writes a value one level down, to `out`.
    fn inner<'s>(&'s mut self) -> Write<'s, 'k> {
        Write { out: self.out, keys: self.keys, depth: self.depth, drop: &[] }
    }

    fn scalar<E: de::Error>(self, value: impl Serialize) -> Result<(), E> {
        serde_json::to_writer(self.out, &value).map_err(E::custom)
    }

    /// A string, which in most cases is written as it is.
    fn string<E: de::Error>(self, value: &str) -> Result<(), E> {
        if needs_escape(value.as_bytes()) {
            return self.scalar(value);
        }
        self.out.push(b'"');
        self.out.extend_from_slice(value.as_bytes());
        self.out.push(b'"');
        Ok(())
    }

    fn descend<E: de::Error>(&mut self) -> Result<(), E> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(E::custom(format_args!("nested deeper than {DEPTH_MAX} levels")));
        }
        Ok(())
    }

    fn distinct_members<'a, A: MapAccess<'a>>(&mut self, mut map: A) -> Result<(), A::Error> {
        let mut seen = Seen::default();
        self.out.push(b'{');
        let mut first = true;
        while let Some(key) = map.next_key_seed(Key)? {
            if self.drop.contains(&key.as_ref()) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if !seen.is_first(&key) {
                if let KeyRule::Distinct(twice) = self.keys {
                    **twice = true;
                }
                return Err(de::Error::custom(format_args!("the key '{key}' is there twice")));
            }
            if !first {
                self.out.push(b',');
            }
            first = false;
            self.inner().string(key.as_ref())?;
            self.out.push(b':');
            map.next_value_seed(self.inner())?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn last_members<'a, A: MapAccess<'a>>(&mut self, mut map: A) -> Result<(), A::Error> {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut members: Vec<Vec<u8>> = Vec::new();
        while let Some(key) = map.next_key_seed(Key)? {
            if self.drop.contains(&key.as_ref()) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let mut member = Vec::new();
            Write { out: &mut member, ..self.inner() }.string(key.as_ref())?;
            member.push(b':');
            map.next_value_seed(Write { out: &mut member, ..self.inner() })?;
            let place = *places.entry(key.into_owned()).or_insert(members.len());
            match members.get_mut(place) {
                Some(earlier) => *earlier = member,
                None => members.push(member),
            }
        }
        self.out.push(b'{');
        self.out.extend(members.join(&b','));
        self.out.push(b'}');
        Ok(())
    }
}

impl<'a> DeserializeSeed<'a> for Write<'_, '_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'a>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Write<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.scalar(())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        match whole(value) {
            Some(integer) => self.scalar(integer),
            None => self.scalar(value),
        }
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        self.string(value)
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut list: A) -> Result<(), A::Error> {
        self.descend()?;
        self.out.push(b'[');
        let mut any = false;
        while list.next_element_seed(self.inner())?.is_some() {
            self.out.push(b',');
            any = true;
        }
        if any {
            self.out.pop();
        }
        self.out.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(mut self, map: A) -> Result<(), A::Error> {
        self.descend()?;
        match self.keys {
            KeyRule::Distinct(_) => self.distinct_members(map),
            KeyRule::LastWins => self.last_members(map),
        }
    }
}

/// Reads a key, without a copy where the text has no escapes.
struct Key;

impl<'a> DeserializeSeed<'a> for Key {
    type Value = Cow<'a, str>;

    fn deserialize<D: de::Deserializer<'a>>(self, key: D) -> Result<Cow<'a, str>, D::Error> {
        key.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for Key {
    type Value = Cow<'a, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: de::Error>(self, key: &'a str) -> Result<Cow<'a, str>, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Cow<'a, str>, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

/// The keys met in an object, by their hash. Two keys with one hash count as
/// the same: the second pass is slower, not wrong.
#[derive(Default)]
struct Seen {
    few: Vec<u64>,
    many: HashSet<u64>,
}

impl Seen {
    /// Up to this many keys are compared one by one.
    const FEW: usize = 32;

    fn is_first(&mut self, key: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        if self.few.len() < Self::FEW {
            let first = !self.few.contains(&hash);
            self.few.push(hash);
            return first;
        }
        if self.many.is_empty() {
            self.many.extend(&self.few);
        }
        self.many.insert(hash)
    }
}

/// Whether a string has bytes that JSON does not take as they are. Looked at in
/// blocks without an early end, which is several times as fast.
fn needs_escape(bytes: &[u8]) -> bool {
    bytes.chunks(256).any(has_special)
}
