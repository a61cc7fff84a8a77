//! What reads and writes cost, in request units.
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
//! | patch     | replace + 0.4 for each property                    |
//! | miss      | a read of 1 KB                                     |
//! | query     | 2 + 0.3 of reading the items it loads + 0.25 for   |
//! |           | each KB of its rows; a model of ours               |
//!
//! Between rows the charge is linear, below the first it is the first, above
//! the last it goes on as before. Two decimals.

/// What an index term costs that is added or removed.
pub const TERM: f64 = 0.2;

/// What patching one property costs, beside the replace.
pub const PATCHED_PROPERTY: f64 = 0.4;

/// The charge of a read that finds nothing, or of a condition not met.
pub const MISS: f64 = 1.0;

/// (KB, read, create)
const TABLE: [(f64, f64, f64); 12] = [
    (1.0, 1.00, 4.95),
    (2.0, 1.04, 6.29),
    (4.0, 1.14, 6.67),
    (8.0, 1.33, 7.04),
    (16.0, 1.67, 9.52),
    (32.0, 2.19, 11.23),
    (64.0, 4.76, 22.67),
    (128.0, 9.95, 48.19),
    (256.0, 20.28, 98.29),
    (512.0, 40.95, 184.57),
    (1024.0, 145.90, 625.0),
    (2048.0, 291.80, 1250.0),
];

/// Reading an item of this size.
pub fn of_read(bytes: usize) -> f64 {
    rounded(by_size(bytes, |(kb, read, _)| (kb, read)))
}

/// Creating an item of this size with this many index terms.
pub fn of_create(bytes: usize, terms: usize) -> f64 {
    rounded(write(bytes) + of_terms(terms))
}

/// Deleting an item of this size with this many index terms.
pub fn of_delete(bytes: usize, terms: usize) -> f64 {
    of_create(bytes, terms)
}

/// Replacing an item of one size by one of another; `terms` are those that
/// come or go.
pub fn of_replace(old_bytes: usize, new_bytes: usize, terms: usize) -> f64 {
    rounded(write(old_bytes) + write(new_bytes) + of_terms(terms))
}

/// Patching some properties of an item.
pub fn of_patch(old_bytes: usize, new_bytes: usize, terms: usize, properties: usize) -> f64 {
    rounded(of_replace(old_bytes, new_bytes, terms) + float(properties) * PATCHED_PROPERTY)
}

/// A page of a query: what reading the loaded items would cost one by one, and
/// the bytes of its rows.
#[expect(clippy::cast_precision_loss, reason = "a page is small")]
pub fn of_query(items: f64, row_bytes: u64) -> f64 {
    rounded(2.0 + 0.3 * items + 0.25 * (row_bytes as f64 / 1024.0))
}

/// Two decimals, as charges are shown.
pub fn rounded(charge: f64) -> f64 {
    (charge * 100.0).round() / 100.0
}

fn write(bytes: usize) -> f64 {
    by_size(bytes, |(kb, _, create)| (kb, create))
}

fn of_terms(terms: usize) -> f64 {
    float(terms) * TERM
}

fn by_size(bytes: usize, column: impl Fn((f64, f64, f64)) -> (f64, f64)) -> f64 {
    let kb = (float(bytes) / 1024.0).max(1.0);
    let mut rows = TABLE.iter().copied().map(column);
    let (mut lower, mut upper) = (rows.next().unwrap_or_default(), rows.next().unwrap_or_default());
    for row in rows {
        if kb <= upper.0 {
            break;
        }
        (lower, upper) = (upper, row);
    }
    let slope = (upper.1 - lower.1) / (upper.0 - lower.0);
    lower.1 + (kb - lower.0) * slope
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_rows() {
        for (kb, read, create) in [
            (1, 1.00, 4.95),
            (2, 1.04, 6.29),
            (4, 1.14, 6.67),
            (8, 1.33, 7.04),
            (16, 1.67, 9.52),
            (32, 2.19, 11.23),
            (64, 4.76, 22.67),
            (128, 9.95, 48.19),
            (256, 20.28, 98.29),
            (512, 40.95, 184.57),
            (1024, 145.90, 625.0),
            (2048, 291.80, 1250.0),
        ] {
            assert_eq!((of_read(kb * 1024), of_create(kb * 1024, 0)), (read, create), "{kb} KB");
        }
    }

    #[test]
    fn between_below_and_above_the_rows() {
        for (charge, expected) in [
            (of_read(0), "1"),
            (of_read(100), "1"),
            (of_read(1536), "1.02"),
            (of_read(3 * 1024), "1.09"),
            (of_create(1536, 0), "5.62"),
            (of_read(4096 * 1024), "583.6"),
            (of_create(4096 * 1024, 0), "2500"),
        ] {
            assert_eq!(charge.to_string(), expected);
        }
    }

    #[test]
    fn writes_are_made_of_parts() {
        for (charge, expected) in [
            (of_create(500, 10), "6.95"),
            (of_delete(500, 10), "6.95"),
            (of_replace(500, 500, 0), "9.9"),
            (of_replace(500, 2048, 4), "12.04"),
            (of_patch(500, 500, 0, 2), "10.7"),
        ] {
            assert_eq!(charge.to_string(), expected);
        }
    }

    #[test]
    fn more_bytes_never_cost_less() {
        let sizes = || (0..3_000_000).step_by(777);
        for (smaller, larger) in sizes().zip(sizes().skip(1)) {
            assert!(of_read(smaller) <= of_read(larger));
            assert!(of_create(smaller, 0) <= of_create(larger, 0));
        }
    }
}
