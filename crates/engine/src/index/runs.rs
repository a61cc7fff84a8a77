//! Where in the index many entries went: perhaps they stood in a row.
//!
//! A purge takes items in the order of their death, so whatever rises with time
//! loses its entries from one end on, and so does the feed. The store is told, and
//! finds out whether anything is left there.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use dayfly_storage::Emptied;

use super::Indexed;
use crate::keys::{self, EntryKind};

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
    /// The entries of an item went, and its row in the feed.
    pub(crate) fn add(&mut self, version: u64, indexed: &Indexed) {
        self.items += 1;
        self.versions_went(version, version);
        for (kind, term) in indexed.all() {
            let term = term.bytes();
            if let Some(path) = term.first_chunk() {
                self.went(kind, *path, (term, term), 1);
            }
        }
    }

    /// What went later.
    pub(crate) fn join(&mut self, later: &Runs) {
        self.items += later.items;
        if let Some((first, last)) = later.versions {
            self.versions_went(first, last);
        }
        for ((kind, path), run) in &later.by_path {
            self.went(*kind, *path, (&run.first, &run.last), run.count);
        }
    }

    fn versions_went(&mut self, first: u64, last: u64) {
        let (known_first, known_last) = self.versions.unwrap_or((first, last));
        self.versions = Some((known_first.min(first), known_last.max(last)));
    }

    fn went(&mut self, kind: EntryKind, path: [u8; 8], ends: (&[u8], &[u8]), more: usize) {
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
        let feed = self.versions.filter(|_| self.items >= RUN_MIN);
        long.map(place).chain(feed.map(|(first, last)| keys::emptied_feed(first, last))).collect()
    }
}
