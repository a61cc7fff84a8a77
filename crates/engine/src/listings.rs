//! Lists of items that ranges of the index name, kept from one page of a query to the next.
//!
//! A range of values is not in the order of creation, so its items are listed and sorted
//! (`query/numbers.rs`). That costs as much as the range is long, for each page anew, unless
//! the list is kept. A list is about one bucket, and tells the commit at which it was made.
//! Whoever asks for it later gets with it what the feed has had since: those items may have
//! come into the range. So a list names all that is in the range, and perhaps more, and who
//! goes along it asks the items themselves:
//!
//! - what left the range is refused by the filter, as all that an index proposes too much;
//! - what died, or was removed, is no more; [`Liveness`](crate::liveness::Liveness) says so.
//!
//! When more was written since than the list is worth, it is dropped, and made anew by who
//! needs it. No answer depends on whether a list is kept, and neither does what it costs
//! the client.

use std::sync::{Arc, Mutex};

use dayfly_storage::{Bucket, Direction, Result, Snapshot};

use crate::index::walk::EntryRange;
use crate::keys;
use crate::locks::lock;
use crate::parts::Scope;
use crate::record::FeedRow;
use crate::version;

/// How many numbers are kept, in all: 32 MiB of them.
const NUMBERS_MAX: usize = 4 * 1024 * 1024;

/// A list weighs as much as one of so many numbers, at least: so there are 1024 at most.
const WEIGHT_MIN: usize = 4_096;

/// How many rows of the feed a list is worth: an eighth of its length, and some.
const SINCE_PART: usize = 8;
const SINCE_MIN: usize = 64;

/// What a list is of: a range of entries, of the items in a scope.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    pub(crate) bucket: Bucket,
    /// The epoch of the container: what a path leads to may be another thing in the next.
    pub(crate) epoch: u64,
    pub(crate) entry_range: EntryRange,
    pub(crate) scope: Scope,
}

/// The numbers of items, in order; some may be in both parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedNumbers {
    /// Those that the range named when it was listed.
    listed: Arc<Vec<u64>>,
    /// Those that were written since.
    since: Arc<Vec<u64>>,
}

impl ListedNumbers {
    /// Those that are in order already.
    pub(crate) fn new(listed: Vec<u64>) -> ListedNumbers {
        ListedNumbers { listed: Arc::new(listed), since: Arc::default() }
    }

    /// The first one that is not less than `least`.
    pub(crate) fn seek(&self, least: u64) -> Option<u64> {
        let first = |numbers: &[u64]| {
            numbers.get(numbers.partition_point(|number| *number < least)).copied()
        };
        [first(&self.listed), first(&self.since)].into_iter().flatten().min()
    }

    fn weight(&self) -> usize {
        (self.listed.len() + self.since.len()).max(WEIGHT_MIN)
    }

    /// How many may be written until the list is dropped.
    fn since_max(&self) -> usize {
        self.listed.len() / SINCE_PART + SINCE_MIN
    }
}

/// The lists that are kept.
#[derive(Default)]
pub(crate) struct Listings(Mutex<KeptLists>);

#[derive(Default)]
struct KeptLists {
    /// Those that were asked for last stand last.
    all: Vec<Listing>,
    weight: usize,
}

#[derive(Clone)]
struct Listing {
    of: Listed,
    numbers: ListedNumbers,
    /// The last commit that it knows of.
    lsn: u64,
}

impl Listings {
    /// Keeps a list that was made in this snapshot.
    pub(crate) fn keep(&self, snapshot: &dyn Snapshot, of: Listed, numbers: ListedNumbers) {
        let lsn = snapshot.head(of.bucket).lsn;
        self.with(|kept| kept.put(Listing { of, numbers, lsn }));
    }

    /// The list, with what was written until this snapshot, and how many rows of the feed
    /// that took. `None`: it is not kept, or too much was written.
    pub(crate) fn recall(
        &self,
        snapshot: &dyn Snapshot,
        of: &Listed,
    ) -> Result<Option<(ListedNumbers, u64)>> {
        let Some(listing) = self.with(|kept| kept.find(of)) else { return Ok(None) };
        let lsn = snapshot.head(of.bucket).lsn;
        if lsn == listing.lsn {
            return Ok(Some((listing.numbers, 0)));
        }
        // What left the range between this snapshot and the list is not in it.
        if lsn < listing.lsn {
            return Ok(None);
        }
        let Some((numbers, rows)) = mended(snapshot, &listing)? else {
            self.with(|kept| kept.drop_old(of, lsn));
            return Ok(None);
        };
        let mended = Listing { of: of.clone(), numbers: numbers.clone(), lsn };
        self.with(|kept| kept.put(mended));
        Ok(Some((numbers, rows)))
    }

    fn with<T>(&self, look: impl FnOnce(&mut KeptLists) -> T) -> T {
        look(&mut lock(&self.0))
    }
}

impl KeptLists {
    fn find(&mut self, of: &Listed) -> Option<Listing> {
        let place = self.all.iter().rposition(|listing| listing.of == *of)?;
        let listing = self.all.remove(place);
        self.all.push(listing.clone());
        Some(listing)
    }

    /// Of two lists of the same, the one stays that knows more.
    fn put(&mut self, listing: Listing) {
        if self.find(&listing.of).is_some_and(|known| known.lsn > listing.lsn) {
            return;
        }
        self.remove(|known| known.of == listing.of);
        self.weight += listing.numbers.weight();
        self.all.push(listing);
        while self.weight > NUMBERS_MAX && !self.all.is_empty() {
            let oldest = self.all.remove(0);
            self.weight -= oldest.numbers.weight();
        }
    }

    /// Drops a list that is older than a commit.
    fn drop_old(&mut self, of: &Listed, lsn: u64) {
        self.remove(|known| known.of == *of && known.lsn < lsn);
    }

    fn remove(&mut self, is_it: impl Fn(&Listing) -> bool) {
        self.all.retain(|listing| {
            let goes = is_it(listing);
            if goes {
                self.weight -= listing.numbers.weight();
            }
            !goes
        });
    }
}

/// A list with what was written since, and how many rows of the feed were looked at; `None`:
/// that is more than it is worth.
fn mended(snapshot: &dyn Snapshot, listing: &Listing) -> Result<Option<(ListedNumbers, u64)>> {
    let Listing { of, numbers, lsn } = listing;
    let most = numbers.since_max();
    let range = keys::feed_after(version::last_version(*lsn));
    let rows = snapshot.scan(of.bucket, &range, Direction::Forward, most + 1)?;
    let mut since = numbers.since.to_vec();
    for (key, row) in &rows {
        let row = FeedRow::decode(key, row)?;
        if of.scope.contains(row.partition().bytes()) {
            since.push(row.docno);
        }
    }
    since.sort_unstable();
    since.dedup();
    if rows.len() > most || since.len() > most {
        return Ok(None);
    }
    let numbers = ListedNumbers { listed: Arc::clone(&numbers.listed), since: Arc::new(since) };
    Ok(Some((numbers, rows.len() as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::EntryKind;

    fn of(path: u64) -> Listed {
        let (start, end) = (vec![0], vec![1]);
        let entry_range = EntryRange { kind: EntryKind::Value, path, start, end };
        Listed { bucket: keys::bucket(7, 0), epoch: 1, entry_range, scope: Scope::Whole }
    }

    fn put(kept: &mut KeptLists, path: u64, count: usize, lsn: u64) {
        let numbers = ListedNumbers::new((0..count as u64).collect());
        kept.put(Listing { of: of(path), numbers, lsn });
    }

    #[test]
    fn what_was_not_asked_for_longest_goes_first() {
        let mut kept = KeptLists::default();
        for path in 0..8 {
            put(&mut kept, path, NUMBERS_MAX / 8, 1);
        }
        assert_eq!((kept.all.len(), kept.weight), (8, NUMBERS_MAX));
        assert!(kept.find(&of(0)).is_some());
        // A short list weighs something, too.
        put(&mut kept, 8, 1, 1);
        assert_eq!(kept.weight, NUMBERS_MAX / 8 * 7 + WEIGHT_MIN);
        assert!(kept.find(&of(1)).is_none() && kept.find(&of(0)).is_some());
        // What is larger than all there is room for is not kept.
        put(&mut kept, 9, NUMBERS_MAX + 1, 1);
        assert_eq!((kept.all.len(), kept.weight), (0, 0));
    }

    #[test]
    fn of_two_the_one_stays_that_knows_more() {
        let mut kept = KeptLists::default();
        for (count, lsn) in [(5, 3), (6, 2), (7, 4)] {
            put(&mut kept, 1, count, lsn);
        }
        let known = kept.find(&of(1)).map(|known| (known.numbers.listed.len(), known.lsn));
        assert_eq!((known, kept.all.len(), kept.weight), (Some((7, 4)), 1, WEIGHT_MIN));
        kept.drop_old(&of(1), 4);
        assert_eq!(kept.all.len(), 1);
        kept.drop_old(&of(1), 5);
        assert_eq!((kept.all.len(), kept.weight), (0, 0));
    }

    #[test]
    fn numbers_are_sought_in_both_parts() {
        let since = Arc::new(vec![4, 9]);
        let numbers = ListedNumbers { since, ..ListedNumbers::new(vec![2, 4, 7]) };
        let found: Vec<_> = [0, 3, 5, 8, 10].map(|least| numbers.seek(least)).into();
        assert_eq!(found, [Some(2), Some(4), Some(7), Some(9), None]);
    }
}
