//! The index: where items with a value are found.
//!
//! ```text
//! policies   which indexing policy the entries of an item follow
//! recipe     how the entries of an item are made by a policy
//! entry      what an entry says
//! difference what changes from one version of an item to the next
//! walk       entries in order, and what is alive of them
//! times      the feed in the place of entries for `_ts`
//! barren     long stretches of dead rows, which the next walk leaps over
//! runs       where many entries went, perhaps in a row
//! rebuild    the change from one policy to another, in the background
//! ```
//!
//! An item's entries are derived from its text and a policy, whenever they are
//! needed: nothing but the text says what they are. So a burial reads the item,
//! and a replace derives the entries of both versions and writes the difference.
//!
//! **The life stamp of an entry is a lower bound**: of the item's class, and not
//! later than the item's. Alive by the entry is alive; dead by the entry, ask the
//! item. So a touch, which only makes a life longer, rewrites no entry.
//!
//! **The entries of an item that is not touched have its own stamp.** Whether it
//! is stands in its record, and each bucket counts those that are. While there
//! are none, dead by the entry is dead, and nobody is asked.
//!
//! Beside the entries it is counted how many items have a value at each path,
//! and how many are left out of the index because a request said so.

mod barren;
mod difference;
mod entry;
mod policies;
pub(crate) mod rebuild;
mod recipe;
mod runs;
mod times;
pub(crate) mod walk;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dayfly_model::Timestamp;
use dayfly_model::indexing::terms::{Term, Terms};
use dayfly_model::ttl::Life;
use dayfly_storage::tally::{Change, Count};
use dayfly_storage::{Batch, Error, Result};

pub(crate) use self::barren::Barren;
pub(crate) use self::difference::Difference;
pub(crate) use self::entry::{Owner, fits};
pub(crate) use self::policies::{Index, Policies, PolicyChange};
pub(crate) use self::recipe::Recipe;
pub(crate) use self::runs::Runs;
use crate::keys::{self, EntryKind};
use crate::locks::lock;
use crate::operation::Indexing;
use crate::record::Record;

/// What an entry weighs in a commit besides its own bytes, roughly.
const ENTRY_BYTES: u64 = 64;

/// Of how many policies a source remembers what it said: an old one and a new.
const POLICIES_KNOWN: usize = 2;

/// An item's text, and what it has in the index by the policies that were asked
/// for last: a draft that is made again does not read the text again.
#[derive(Debug)]
pub(crate) struct Source {
    text: Bytes,
    indexing: Indexing,
    known: Mutex<Vec<KnownEntries>>,
}

/// What an item with this `_ts` has in the index by a policy.
#[derive(Debug)]
struct KnownEntries {
    recipe: Arc<Recipe>,
    ts: Timestamp,
    indexed: Indexed,
}

impl Source {
    pub(crate) fn new(text: Bytes, indexing: Indexing) -> Source {
        Source { text, indexing, known: Mutex::default() }
    }

    /// The text of a stored item.
    pub(crate) fn of(record: &Record) -> Source {
        Source::new(record.text_bytes(), record.indexing)
    }

    /// About how many bytes are held to know what it has in the index.
    pub(crate) fn weight(&self) -> u64 {
        let known = lock(&self.known);
        known.iter().map(|known| known.indexed.weight()).sum()
    }

    /// What the item has in the index by this recipe, if `ts` is its `_ts`.
    pub(crate) fn by(&self, recipe: &Arc<Recipe>, ts: Timestamp) -> Result<Indexed> {
        let mut known = lock(&self.known);
        let fits = |known: &&KnownEntries| {
            Arc::ptr_eq(&known.recipe, recipe) && (known.ts == ts || !recipe.rules().has_times())
        };
        if let Some(found) = known.iter().find(fits) {
            return Ok(found.indexed.clone());
        }
        let indexed = self.derive(recipe, ts)?;
        known.truncate(POLICIES_KNOWN - 1);
        known.insert(0, KnownEntries { recipe: Arc::clone(recipe), ts, indexed: indexed.clone() });
        Ok(indexed)
    }

    fn derive(&self, recipe: &Recipe, ts: Timestamp) -> Result<Indexed> {
        let rules = recipe.rules();
        if !rules.is_on() || self.indexing == Indexing::Exclude {
            return Ok(Indexed { is_left_out: rules.is_on(), ..Indexed::default() });
        }
        let terms = Arc::new(recipe.terms(&self.text, ts)?);
        let mut indexed = Indexed { terms, ..Indexed::default() };
        indexed.weight =
            indexed.all().map(|(_, term)| term.bytes().len() as u64 + ENTRY_BYTES).sum();
        Ok(indexed)
    }
}

/// What an item has in the index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Indexed {
    terms: Arc<Terms>,
    /// There is an index, and the item is not in it.
    is_left_out: bool,
    /// About how many bytes a commit has that writes or removes all of it.
    weight: u64,
}

impl Indexed {
    /// About how many bytes a commit has that writes or removes all of it.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    /// How many entries there are.
    pub(crate) fn entries(&self) -> usize {
        self.terms.len()
    }

    /// How many entries a write is charged for that brings or takes all of them.
    pub(crate) fn charged(&self) -> usize {
        self.all().filter(|(_, term)| !term.is_free()).count()
    }

    /// How many entries a write is charged for that puts these in the place of `before`.
    pub(crate) fn charged_after(&self, before: &Indexed) -> usize {
        difference::charged(before, self)
    }

    /// About how many rows a commit writes or removes for all of them: each entry,
    /// and the count of each path.
    pub(crate) fn rows(&self) -> usize {
        2 * self.entries()
    }

    /// Writes the entries of a new item.
    pub(crate) fn put(&self, batch: &mut Batch, owner: &Owner<'_>) {
        let values = owner.values();
        for (kind, term) in self.all() {
            let value = values.of(term.is_cut());
            batch.put(keys::entry(kind, term.bytes(), owner.docno), value);
        }
        self.count(batch, Change::More);
    }

    /// Removes the entries of an item.
    pub(crate) fn remove(&self, batch: &mut Batch, docno: u64) {
        for (kind, term) in self.all() {
            batch.delete(keys::entry(kind, term.bytes(), docno));
        }
        self.count(batch, Change::Less);
    }

    /// Counts an item that comes, or goes.
    fn count(&self, batch: &mut Batch, change: fn(Count) -> Change) {
        for path in self.terms.paths() {
            batch.add(keys::path_count(path), 0, change(ONE));
        }
        if self.is_left_out {
            batch.add(keys::left_out(), 0, change(ONE));
        }
    }

    /// All entries, in order.
    fn all(&self) -> impl Iterator<Item = (EntryKind, &Term)> {
        let values = self.terms.values.iter().map(|term| (EntryKind::Value, term));
        values.chain(self.terms.composites.iter().map(|term| (EntryKind::Composite, term)))
    }
}

/// One item; its bytes are counted elsewhere.
pub(crate) const ONE: Count = Count { items: 1, bytes: 0 };

/// Whether entries with the stamp of one version say too much of the next one:
/// another class, or a life that ends later than it does.
pub(crate) fn outlives(before: Life, after: Life) -> bool {
    match (before, after) {
        (Life::Inherit(before), Life::Inherit(after))
        | (Life::Explicit(before), Life::Explicit(after))
        | (Life::Opaque(before), Life::Opaque(after)) => before > after,
        (Life::Never, Life::Never) => false,
        _ => true,
    }
}

fn unreadable() -> Error {
    Error::Corrupt("an item's text".to_owned())
}
