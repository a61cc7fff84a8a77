//! Where in the index many entries went: perhaps they stood in a row.
//!
//! A purge takes items in the order of their death, so whatever rises with time
//! loses its entries from one end on, and so do the feed and the items. The store is told, and
//! finds out whether anything is left there.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use dayfly_storage::Emptied;

use super::Indexed;
use crate::keys::{self, EntryKind};
use crate::record::FeedRow;

/// As many entries of a path are worth a look at what is left between them.
const RUN_MIN: usize = 32;

/// As many items are.
const ITEMS_MIN: usize = 256;

/// Of how many paths at most it is known what went.
const PATHS_MAX: usize = 256;

/// What went of each path.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    by_path: BTreeMap<(EntryKind, [u8; 8]), Run>,
    /// The first version that went from the feed, and the last.
    versions: Option<(u64, u64)>,
    /// The first number of an item that went, and the last.
    numbers: Option<(u64, u64)>,
    items: usize,
}

/// What went of a path.
#[derive(Debug)]
struct Run {
    first: Vec<u8>,
    last: Vec<u8>,
    count: usize,
}

impl Runs {
    /// An item went, its entries, and its row in the feed.
    pub(crate) fn add(&mut self, row: &FeedRow, indexed: &Indexed) {
        self.items += 1;
        went(&mut self.versions, (row.version, row.version));
        went(&mut self.numbers, (row.docno, row.docno));
        for (kind, term) in indexed.all() {
            let term = term.bytes();
            if let Some(path) = term.first_chunk() {
                self.entries_went(kind, *path, (term, term), 1);
            }
        }
    }

    /// What went later.
    pub(crate) fn join(&mut self, later: &Runs) {
        self.items += later.items;
        for (known, later) in
            [(&mut self.versions, later.versions), (&mut self.numbers, later.numbers)]
        {
            if let Some(ends) = later {
                went(known, ends);
            }
        }
        for ((kind, path), run) in &later.by_path {
            self.entries_went(*kind, *path, (&run.first, &run.last), run.count);
        }
    }

    fn entries_went(&mut self, kind: EntryKind, path: [u8; 8], ends: (&[u8], &[u8]), more: usize) {
        let (first, last) = ends;
        let is_full = self.by_path.len() >= PATHS_MAX;
        match self.by_path.entry((kind, path)) {
            Entry::Occupied(mut run) => {
                let run = run.get_mut();
                run.count += more;
                if *first < *run.first {
                    run.first = first.to_vec();
                }
                if *last > *run.last {
                    run.last = last.to_vec();
                }
            }
            Entry::Vacant(_) if is_full => {}
            Entry::Vacant(new) => {
                new.insert(Run { first: first.to_vec(), last: last.to_vec(), count: more });
            }
        }
    }

    /// Whether enough went.
    pub(crate) fn is_long(&self) -> bool {
        self.items >= ITEMS_MIN
    }

    /// Where to look.
    pub(crate) fn emptied(&self) -> Vec<Emptied> {
        let long = self.by_path.iter().filter(|(_, run)| run.count >= RUN_MIN);
        let place = |((kind, path), run): (&(EntryKind, [u8; 8]), &Run)| {
            keys::emptied(*kind, path, &run.first, &run.last)
        };
        let ends = |ends: Option<(u64, u64)>| ends.filter(|_| self.items >= RUN_MIN);
        let feed = ends(self.versions).map(|(first, last)| keys::emptied_feed(first, last));
        let items = ends(self.numbers).map(|(first, last)| keys::emptied_items(first, last));
        long.map(place).chain(feed).chain(items).collect()
    }
}

/// Makes ends wide enough for others.
fn went(known: &mut Option<(u64, u64)>, (first, last): (u64, u64)) {
    let (known_first, known_last) = known.unwrap_or((first, last));
    *known = Some((known_first.min(first), known_last.max(last)));
}
