//! What changes in the index from one version of an item to the next.
//!
//! It is found where the write is drafted. The committer, for whom everybody
//! waits, compares nothing: it writes the entries that come, removes those that
//! go, and counts.

use std::cmp::Ordering;

use dayfly_storage::Batch;
use dayfly_storage::tally::Change;

use super::{Indexed, ONE, Owner};
use crate::keys;

/// From what an item has in the index to what its next version has.
#[derive(Debug)]
pub(crate) struct Difference {
    before: Indexed,
    after: Indexed,
    /// For each entry from before, whether it goes.
    goes: Vec<bool>,
    /// For each entry from now on, whether it comes.
    comes: Vec<bool>,
    /// What is counted, and where.
    counts: Vec<(Vec<u8>, Change)>,
}

impl Difference {
    pub(crate) fn new(before: Indexed, after: Indexed) -> Difference {
        let (goes, comes) = compare(before.all(), after.all());
        let counts = counts(&before, &after);
        Difference { before, after, goes, comes, counts }
    }

    /// About how many rows a commit writes and removes.
    pub(crate) fn rows(&self) -> usize {
        let changed = self.goes.iter().chain(&self.comes).filter(|changed| **changed).count();
        changed + self.counts.len()
    }

    /// How many entries go or come that somebody pays for.
    pub(crate) fn charged(&self) -> usize {
        let went = self.before.all().zip(&self.goes);
        let came = self.after.all().zip(&self.comes);
        went.chain(came).filter(|((_, term), changes)| **changes && !term.is_free()).count()
    }

    /// Whether any entry stays.
    pub(crate) fn shares_any(&self) -> bool {
        self.goes.contains(&false)
    }

    /// Writes the new entries over those from before. Entries that stay are written
    /// again only if `again`.
    pub(crate) fn put(&self, again: bool, batch: &mut Batch, owner: &Owner<'_>) {
        for ((kind, term), _) in self.before.all().zip(&self.goes).filter(|(_, goes)| **goes) {
            batch.delete(keys::entry(kind, term.bytes(), owner.docno));
        }
        let values = owner.values();
        for ((kind, term), comes) in self.after.all().zip(&self.comes) {
            if again || *comes {
                let value = values.of(term.is_cut());
                batch.put(keys::entry(kind, term.bytes(), owner.docno), value);
            }
        }
        for (key, change) in &self.counts {
            batch.add(key.clone(), 0, *change);
        }
    }
}

/// How many entries go or come that somebody pays for.
pub(super) fn charged(before: &Indexed, after: &Indexed) -> usize {
    let (goes, comes) = compare(before.all(), after.all());
    let went = before.all().zip(goes);
    let came = after.all().zip(comes);
    went.chain(came).filter(|((_, term), changes)| *changes && !term.is_free()).count()
}

/// Which of the first are not among the second, and which of the second not among
/// the first. Both come in order.
fn compare<T: Ord>(
    first: impl Iterator<Item = T>,
    second: impl Iterator<Item = T>,
) -> (Vec<bool>, Vec<bool>) {
    let (mut first, mut second) = (first.peekable(), second.peekable());
    let (mut goes, mut comes) = (Vec::new(), Vec::new());
    loop {
        let order = match (first.peek(), second.peek()) {
            (Some(old), Some(new)) => old.cmp(new),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return (goes, comes),
        };
        if order.is_le() {
            first.next();
            goes.push(order.is_lt());
        }
        if order.is_ge() {
            second.next();
            comes.push(order.is_gt());
        }
    }
}

/// What is counted when one set of entries comes in the place of another.
fn counts(before: &Indexed, after: &Indexed) -> Vec<(Vec<u8>, Change)> {
    let (goes, comes) = compare(before.terms.paths(), after.terms.paths());
    let went = before.terms.paths().zip(goes).map(|(path, goes)| (path, goes, Change::Less(ONE)));
    let came = after.terms.paths().zip(comes).map(|(path, comes)| (path, comes, Change::More(ONE)));
    let mut counts: Vec<_> = went
        .chain(came)
        .filter(|(_, changes, _)| *changes)
        .map(|(path, _, change)| (keys::path_count(path), change))
        .collect();
    match (before.is_left_out, after.is_left_out) {
        (true, false) => counts.push((keys::left_out(), Change::Less(ONE))),
        (false, true) => counts.push((keys::left_out(), Change::More(ONE))),
        _ => {}
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_one_run_only_goes_or_comes() {
        for (first, second) in [("", ""), ("ab", ""), ("", "ab"), ("abc", "abc"), ("acdg", "abde")]
        {
            let lacks = |letters: &str, other: &str| -> Vec<bool> {
                letters.chars().map(|letter| !other.contains(letter)).collect()
            };
            let expected = (lacks(first, second), lacks(second, first));
            assert_eq!(compare(first.chars(), second.chars()), expected, "{first} {second}");
        }
    }
}
