//! The effective partition key: where in the hash space a key lies.
//!
//! SDKs compute it too and route by it, so it agrees with theirs bit for bit.
//! The space goes from `""` to `"FF"`, in the order of bytes. A key is first
//! written as bytes, each component by its tag:
//!
//! | component | bytes to hash                         | bytes in the EPK of version 1   |
//! |-----------|---------------------------------------|---------------------------------|
//! | undefined | `00`                                  | `00`                            |
//! | null      | `01`                                  | `01`                            |
//! | boolean   | `02` false, `03` true                 | the same                        |
//! | number    | `05`, double little-endian            | `05`, ordered bits in groups    |
//! | string    | `08`, UTF-8, then `00` (V1), `FF` (V2)| `08`, UTF-8 + 1, `00` when short|
//!
//! | definition | EPK                                                        |
//! |------------|------------------------------------------------------------|
//! | version 2  | Murmur3 x64 128, reversed, two top bits cleared: 16 bytes  |
//! | several    | that of each component, one after the other                |
//! | version 1  | Murmur3 x86 32 as a number, then the components themselves |
//!
//! In version 1 strings are cut to 100 UTF-16 units first. The key without
//! components lies at `""`.

mod hash;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::partition_key::{Kind, PartitionKey, PartitionKeyDefinition, Version};

/// A point of the hash space. As text, it is spelled in hex digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Epk(pub Vec<u8>);

impl From<Epk> for String {
    fn from(epk: Epk) -> String {
        epk.to_hex()
    }
}

impl TryFrom<String> for Epk {
    type Error = Error;

    fn try_from(text: String) -> Result<Epk> {
        parse_hex(&text)
    }
}

/// How many hex digits are read at most: more than any key has.
const HEX_MAX: usize = 1024;

/// Where `key` lies; for the first components of a hierarchical key, where the
/// keys that begin so lie.
pub fn of(definition: &PartitionKeyDefinition, key: &PartitionKey) -> Epk {
    if key.0.is_empty() {
        return Epk::min();
    }
    Epk(match (definition.kind, definition.version) {
        (Kind::Hash, Version::V1) => hash::v1(&key.0),
        (Kind::Hash, Version::V2) => hash::v2(&key.0).to_vec(),
        (Kind::MultiHash, _) => {
            key.0.iter().flat_map(|component| hash::v2(std::slice::from_ref(component))).collect()
        }
    })
}

/// The keys that begin with `key` lie from the first point up to but not
/// including the second.
pub fn prefix_range(definition: &PartitionKeyDefinition, key: &PartitionKey) -> (Epk, Epk) {
    let start = of(definition, key);
    let mut end = start.clone();
    end.0.push(0xFF);
    (start, end)
}

/// The points that cut the space into `n` equal ranges, without its ends.
pub fn boundaries(definition: &PartitionKeyDefinition, n: usize) -> Vec<Epk> {
    let space = Space::of(definition);
    let count = u32::try_from(n).unwrap_or(u32::MAX).max(1);
    let width = space.end() / u128::from(count);
    (1..count).map(|k| space.point(u128::from(k) * width)).collect()
}

/// The point that cuts a range in halves; `None`: there is none between its ends. No `max`:
/// it goes up to the end of the space.
pub fn middle(definition: &PartitionKeyDefinition, min: &Epk, max: Option<&Epk>) -> Option<Epk> {
    let space = Space::of(definition);
    let (low, high) = space.bounds(min, max);
    let middle = low + high.saturating_sub(low) / 2;
    (middle > low).then(|| space.point(middle))
}

/// How much of the space a range has.
pub fn width(definition: &PartitionKeyDefinition, min: &Epk, max: Option<&Epk>) -> u128 {
    let (low, high) = Space::of(definition).bounds(min, max);
    high.saturating_sub(low)
}

/// How many ranges a new container with this much throughput has.
pub fn range_count(ru: u32) -> usize {
    let ranges = if ru <= 10_000 { 1 } else { ru.div_ceil(6_000) };
    usize::try_from(ranges).unwrap_or(usize::MAX)
}

/// How many ranges a container has at least whose throughput was raised to this much.
pub fn raised_range_count(ru: u32) -> usize {
    usize::try_from(ru.div_ceil(10_000)).unwrap_or(usize::MAX)
}

/// The points at which ranges begin and end, as numbers.
#[derive(Clone, Copy)]
enum Space {
    /// The hash of version 1, written as a number.
    Numbers,
    /// The hash itself.
    Hashes,
}

impl Space {
    fn of(definition: &PartitionKeyDefinition) -> Space {
        match (definition.kind, definition.version) {
            (Kind::Hash, Version::V1) => Space::Numbers,
            (Kind::Hash, Version::V2) | (Kind::MultiHash, _) => Space::Hashes,
        }
    }

    fn end(self) -> u128 {
        match self {
            Space::Numbers => u128::from(u32::MAX),
            Space::Hashes => u128::MAX >> 2,
        }
    }

    fn point(self, number: u128) -> Epk {
        match self {
            Space::Numbers => {
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                Epk(hash::number(f64::from(number)))
            }
            Space::Hashes => Epk(number.to_be_bytes().to_vec()),
        }
    }

    /// The first number whose point does not lie before this one.
    fn number(self, epk: &Epk) -> u128 {
        let (mut low, mut high) = (0, self.end());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.point(middle).0 < epk.0 {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn bounds(self, min: &Epk, max: Option<&Epk>) -> (u128, u128) {
        (self.number(min), max.map_or(self.end(), |max| self.number(max)))
    }
}

/// Reads hex digits, as `x-ms-start-epk` has them.
pub fn parse_hex(text: &str) -> Result<Epk> {
    let invalid =
        || Error::bad_request(format!("The effective partition key '{text}' is invalid."));
    if !text.len().is_multiple_of(2) || text.len() > HEX_MAX {
        return Err(invalid());
    }
    let byte = |pair: &[u8]| -> Option<u8> {
        let mut digits = pair.iter().map(|digit| char::from(*digit).to_digit(16));
        let value = digits.next()?? * 16 + digits.next()??;
        u8::try_from(value).ok()
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
    bytes.map(Epk).ok_or_else(invalid)
}

impl Epk {
    /// The begin of the space.
    pub fn min() -> Epk {
        Epk(Vec::new())
    }

    /// The end of the space; no key lies there.
    pub fn max() -> Epk {
        Epk(vec![0xFF])
    }

    /// Upper-case hex digits.
    pub fn to_hex(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Epk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

#[cfg(test)]
mod tests;
