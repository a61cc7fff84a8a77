//! What changes in the index from one version of an item to the next.
//!
//! It is found where the write is drafted. The committer, for whom everybody
//! waits, compares nothing: it writes the entries that come, removes those that
//! go, and counts.

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
        let goes = before.all().map(|(kind, term)| !after.has(kind, term)).collect();
        let comes = after.all().map(|(kind, term)| !before.has(kind, term)).collect();
        let counts = counts(&before, &after);
        Difference { before, after, goes, comes, counts }
    }

    /// About how many rows a commit writes and removes.
    pub(crate) fn rows(&self) -> usize {
        let changed = self.goes.iter().chain(&self.comes).filter(|changed| **changed).count();
        changed + self.counts.len()
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

/// What is counted when one set of entries comes in the place of another.
fn counts(before: &Indexed, after: &Indexed) -> Vec<(Vec<u8>, Change)> {
    let (old, new): (Vec<_>, Vec<_>) =
        (before.terms.paths().collect(), after.terms.paths().collect());
    let count = |path: &&[u8], change| (keys::path_count(path), change);
    let went = old.iter().filter(|path| new.binary_search(path).is_err());
    let came = new.iter().filter(|path| old.binary_search(path).is_err());
    let mut counts: Vec<_> = went.map(|path| count(path, Change::Less(ONE))).collect();
    counts.extend(came.map(|path| count(path, Change::More(ONE))));
    match (before.is_left_out, after.is_left_out) {
        (true, false) => counts.push((keys::left_out(), Change::Less(ONE))),
        (false, true) => counts.push((keys::left_out(), Change::More(ONE))),
        _ => {}
    }
    counts
}
