//! What reads and writes cost, in request units, and what that is made of.
//!
//! The service publishes the cost of reading and creating by size:
//!
//! | KB     | 1    | 2    | 4    | 8    | 16   | 32    | 64    | 128   | 256   | 512    | 1024  | 2048  |
//! |--------|------|------|------|------|------|-------|-------|-------|-------|--------|-------|-------|
//! | read   | 1.00 | 1.04 | 1.14 | 1.33 | 1.67 | 2.19  | 4.76  | 9.95  | 20.28 | 40.95  | 145.9 | 291.8 |
//! | create | 4.95 | 6.29 | 6.67 | 7.04 | 9.52 | 11.23 | 22.67 | 48.19 | 98.29 | 184.57 | 625   | 1250  |
//!
//! and what writes are made of: create 5, replace 5 + 5, delete 5, each with
//! 0.2 for an index term that comes or goes, patch 0.4 more for a property.
//! Both together give the rules here:
//!
//! | operation | charge                                             |
//! |-----------|----------------------------------------------------|
//! | read      | the table                                          |
//! | create    | the table, + 0.2 for each index term               |
//! | delete    | as creating the item that goes                     |
//! | replace   | delete of the old + create of the new; unchanged   |
//! |           | terms are free                                     |
//! | patch     | replace + 0.4 for each operation                   |
//! | miss      | a read of 1 KB                                     |
//! | list      | its reads, but no less than a miss                 |
//! | query     | 2 + 0.3 of reading the items it is paid by + 0.25  |
//! |           | for each KB of its rows; a model of ours           |
//! | batch     | its operations                                     |
//! | failure   | what a miss does; what is refused unseen, nothing  |
//! | look      | 2, at databases, containers, offers, ranges        |
//! | change    | 4.95, of databases, containers, offers, keys       |
//!
//! Between rows the charge is linear, below the first it is the first, above
//! the last it goes on as before. Each look into the table, and each sum, has two
//! decimals, half a hundredth upwards; so charges are counted in whole hundredths, and
//! the same request costs the same to the last digit. `docs/charges.md` tells it to users.
//!
//! Nothing here knows of time: what a charge is made of comes from what was asked and from
//! what is alive.

use std::iter::Sum;

/// What an index term costs that is added or removed, in hundredths.
const TERM: u64 = 20;

/// What an operation of a patch costs, beside the replace, in hundredths.
const PATCHED: u64 = 40;

/// What a query costs before it has read anything, in hundredths.
const QUERY: u64 = 200;

/// (KB, read, create), charges in hundredths.
const TABLE: [(u64, u64, u64); 12] = [
    (1, 100, 495),
    (2, 104, 629),
    (4, 114, 667),
    (8, 133, 704),
    (16, 167, 952),
    (32, 219, 1_123),
    (64, 476, 2_267),
    (128, 995, 4_819),
    (256, 2_028, 9_829),
    (512, 4_095, 18_457),
    (1_024, 14_590, 62_500),
    (2_048, 29_180, 125_000),
];

/// What something costs, and what that is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// All of it, in hundredths of a unit.
    hundredths: u64,
    /// What is the same whatever was found, in hundredths.
    base: u64,
    /// Items that were shown one by one.
    read: Amount,
    /// Versions that went.
    removed: Amount,
    /// Versions that came.
    written: Amount,
    /// Index terms that came or went.
    terms: u64,
    /// Operations of patches.
    patched: u64,
    /// Items that a query is paid by.
    loaded: Loaded,
    /// The bytes of a query's rows.
    row_bytes: u64,
}

/// Some items, their bytes, and what the table says of them in hundredths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    items: u64,
    bytes: u64,
    hundredths: u64,
}

/// The items that a query is paid by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// How many.
    pub items: u64,
    /// What reading them one by one would cost, in hundredths.
    pub hundredths: u64,
}

impl Loaded {
    /// One more, with what it weighs.
    pub fn add(&mut self, weight: u64) {
        self.items += 1;
        self.hundredths += weight;
    }
}

/// What an item of this size weighs in a query: the hundredths of reading it.
pub fn weight(bytes: usize) -> u64 {
    by_size(bytes, |(kb, read, _)| (kb, read))
}

impl Charge {
    /// What is not tried, or is none of a user's operations.
    pub const NOTHING: Charge = Charge::flat(0);
    /// A read that finds nothing, or a condition that is not met.
    pub const MISS: Charge = Charge::flat(100);
    /// Whatever else fails in a container, or for want of one.
    pub const FAILURE: Charge = Charge::MISS;
    /// A look at what is no item.
    pub const LOOK: Charge = Charge::flat(200);
    /// A change of what is no item.
    pub const CHANGE: Charge = Charge::flat(495);

    const fn flat(hundredths: u64) -> Charge {
        let nothing = Amount { items: 0, bytes: 0, hundredths: 0 };
        Charge {
            hundredths,
            base: hundredths,
            read: nothing,
            removed: nothing,
            written: nothing,
            terms: 0,
            patched: 0,
            loaded: Loaded { items: 0, hundredths: 0 },
            row_bytes: 0,
        }
    }

    /// In request units, with two decimals.
    #[expect(clippy::cast_precision_loss, reason = "it is far below 2^53")]
    pub fn ru(&self) -> f64 {
        self.hundredths as f64 / 100.0
    }

    /// In hundredths of a request unit.
    pub fn hundredths(&self) -> u64 {
        self.hundredths
    }

    /// With so many operations of a patch.
    #[must_use]
    pub fn patched(self, operations: usize) -> Charge {
        let patched = operations as u64;
        let hundredths = self.hundredths + PATCHED * patched;
        Charge { hundredths, patched: self.patched + patched, ..self }
    }

    /// With so many index terms that come or go.
    fn with_terms(self, terms: usize) -> Charge {
        let terms = terms as u64;
        let hundredths = self.hundredths + TERM * terms;
        Charge { hundredths, terms: self.terms + terms, ..self }
    }

    /// A miss, if it is less than one.
    #[must_use]
    pub fn or_miss(self) -> Charge {
        if self.hundredths < Charge::MISS.hundredths { Charge::MISS } else { self }
    }

    /// Both.
    #[must_use]
    pub fn plus(self, other: Charge) -> Charge {
        Charge {
            hundredths: self.hundredths + other.hundredths,
            base: self.base + other.base,
            read: self.read.plus(other.read),
            removed: self.removed.plus(other.removed),
            written: self.written.plus(other.written),
            terms: self.terms + other.terms,
            patched: self.patched + other.patched,
            loaded: Loaded {
                items: self.loaded.items + other.loaded.items,
                hundredths: self.loaded.hundredths + other.loaded.hundredths,
            },
            row_bytes: self.row_bytes + other.row_bytes,
        }
    }

    /// What it is made of, by name: charges as decimal numbers, and what they are for. What
    /// there is none of is left out; `total` comes last.
    pub fn parts(&self) -> Vec<(&'static str, String)> {
        let mut parts = Vec::new();
        let Charge { read, removed, written, terms, patched, loaded, row_bytes, .. } = self;
        if self.base > 0 {
            parts.push(("base", decimal(self.base, 2)));
        }
        if read.items > 0 {
            parts.push(("read", decimal(read.hundredths, 2)));
            parts.push(("readItems", read.items.to_string()));
            parts.push(("readBytes", read.bytes.to_string()));
        }
        if removed.items > 0 {
            parts.push(("removed", decimal(removed.hundredths, 2)));
            parts.push(("removedBytes", removed.bytes.to_string()));
        }
        if written.items > 0 {
            parts.push(("written", decimal(written.hundredths, 2)));
            parts.push(("writtenBytes", written.bytes.to_string()));
        }
        if *terms > 0 {
            parts.push(("terms", decimal(TERM * terms, 2)));
            parts.push(("termCount", terms.to_string()));
        }
        if *patched > 0 {
            parts.push(("patched", decimal(PATCHED * patched, 2)));
            parts.push(("patchedCount", patched.to_string()));
        }
        if loaded.items > 0 {
            parts.push(("loaded", decimal(3 * loaded.hundredths, 3)));
            parts.push(("loadedItems", loaded.items.to_string()));
        }
        if *row_bytes > 0 {
            parts.push(("rows", decimal(quotient(10_000 * row_bytes, 4096), 4)));
            parts.push(("rowBytes", row_bytes.to_string()));
        }
        parts.push(("total", decimal(self.hundredths, 2)));
        parts
    }
}

impl Amount {
    fn plus(self, other: Amount) -> Amount {
        Amount {
            items: self.items + other.items,
            bytes: self.bytes + other.bytes,
            hundredths: self.hundredths + other.hundredths,
        }
    }
}

impl Sum for Charge {
    fn sum<I: Iterator<Item = Charge>>(charges: I) -> Charge {
        charges.fold(Charge::NOTHING, Charge::plus)
    }
}

/// What is the same whatever was found, in request units.
impl From<f64> for Charge {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no charge is negative"
    )]
    fn from(ru: f64) -> Charge {
        Charge::flat((ru * 100.0).round() as u64)
    }
}

/// Reading an item of this size.
pub fn of_read(bytes: usize) -> Charge {
    let read = Amount { items: 1, bytes: bytes as u64, hundredths: weight(bytes) };
    Charge { hundredths: read.hundredths, read, ..Charge::NOTHING }
}

/// Creating an item of this size with this many index terms.
pub fn of_create(bytes: usize, terms: usize) -> Charge {
    let written = write(bytes);
    Charge { hundredths: written.hundredths, written, ..Charge::NOTHING }.with_terms(terms)
}

/// Deleting an item of this size with this many index terms.
pub fn of_delete(bytes: usize, terms: usize) -> Charge {
    let removed = write(bytes);
    Charge { hundredths: removed.hundredths, removed, ..Charge::NOTHING }.with_terms(terms)
}

/// What index terms cost that go.
pub fn of_terms(terms: usize) -> Charge {
    Charge::NOTHING.with_terms(terms)
}

/// Replacing an item of one size by one of another; `terms` are those that
/// come or go.
pub fn of_replace(old_bytes: usize, new_bytes: usize, terms: usize) -> Charge {
    of_delete(old_bytes, 0).plus(of_create(new_bytes, 0)).with_terms(terms)
}

/// A page of a query: the items that it is paid by, and the bytes of its rows.
pub fn of_query(loaded: Loaded, row_bytes: u64) -> Charge {
    // The parts have more decimals than the sum: a hundredth is 5120 of these.
    let parts = 5_120 * QUERY + 512 * 3 * loaded.hundredths + 125 * row_bytes;
    Charge { hundredths: quotient(parts, 5_120), base: QUERY, loaded, row_bytes, ..Charge::NOTHING }
}

fn write(bytes: usize) -> Amount {
    let hundredths = by_size(bytes, |(kb, _, create)| (kb, create));
    Amount { items: 1, bytes: bytes as u64, hundredths }
}

fn by_size(bytes: usize, column: impl Fn((u64, u64, u64)) -> (u64, u64)) -> u64 {
    let bytes = (bytes as u64).max(1024);
    let mut rows = TABLE.iter().copied().map(column).map(|(kb, charge)| (kb * 1024, charge));
    let (mut lower, mut upper) = (rows.next().unwrap_or_default(), rows.next().unwrap_or_default());
    for row in rows {
        if bytes <= upper.0 {
            break;
        }
        (lower, upper) = (upper, row);
    }
    lower.1 + quotient((bytes - lower.0) * (upper.1 - lower.1), upper.0 - lower.0)
}

/// To the nearest; a half goes up.
fn quotient(number: u64, by: u64) -> u64 {
    (2 * number + by) / (2 * by)
}

/// A number of so many decimals, without its point until now.
fn decimal(number: u64, decimals: u32) -> String {
    let one = 10_u64.pow(decimals);
    format!("{}.{:0width$}", number / one, number % one, width = decimals as usize)
}

#[cfg(test)]
mod tests;
