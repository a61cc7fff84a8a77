//! What may go into a unit of the purge: items that are due, and what they weigh.
//!
//! What an item has in the index is derived from its text, so the items are read
//! too, as many as a unit takes.

use bytes::Bytes;
use dayfly_model::charge;
use dayfly_model::meter::Units;
use dayfly_storage::{Bucket, Error, Result, Snapshot, View};

use crate::head::State;
use crate::index::{Index, Indexed, Policies, Source};
use crate::record::{FeedRow, Record};
use crate::{keys, log};

/// How many items are read at first, when nobody knows what the entries of such items weigh.
const FIRST_ITEMS: usize = 8;
/// How many items are read at once after that.
const ITEMS: usize = 64;

/// An item that is due, and where in its queue it stands.
pub(super) struct Candidate {
    pub(super) row: FeedRow,
    pub(super) place: Place,
    /// What it has in the index is derived from this, if there is an index.
    source: Option<Source>,
    /// Its canonical partition key, if it was read.
    partition_key: Option<Vec<u8>>,
    /// About how many bytes its burial is about.
    weight: u64,
    /// What deleting it would cost.
    charge: Units,
}

impl Candidate {
    pub(super) fn new(row: FeedRow, place: Place) -> Candidate {
        let (weight, charge) = (row.bytes, charge_of(&row, 0));
        Candidate { weight, charge, row, place, source: None, partition_key: None }
    }

    /// Takes what a burial needs of the item.
    pub(super) fn read(&mut self, record: &Record) {
        self.source = Some(Source::of(record));
        self.partition_key = Some(record.partition_key().to_vec());
    }

    /// Its canonical partition key.
    pub(super) fn partition_key(&self, view: &View<'_>) -> Result<Vec<u8>> {
        match &self.partition_key {
            Some(key) => Ok(key.clone()),
            None => record_of(&self.row, view.get(&keys::item(self.row.docno))?)
                .map(|record| record.partition_key().to_vec()),
        }
    }

    /// What it has in the index.
    pub(super) fn indexed(
        &self,
        view: &View<'_>,
        policies: &Policies,
        done: u64,
    ) -> Result<Indexed> {
        let recipe = policies.recipe_of(self.row.version, done);
        match &self.source {
            _ if !recipe.rules().is_on() => Ok(Indexed::default()),
            Some(source) => source.by(recipe, self.row.ts),
            None => {
                let record = record_of(&self.row, view.get(&keys::item(self.row.docno))?)?;
                Source::of(&record).by(recipe, self.row.ts)
            }
        }
    }
}

/// Where in its queue a candidate stands.
pub(super) enum Place {
    Feed(u64),
    Due(Vec<u8>),
    /// In the order of a partition that was deleted.
    Deleted,
}

/// Reads the items that a unit takes, many at once, and weighs them.
///
/// What an item weighs is known only when it was read. So as many are read as should fit,
/// if their entries are as heavy as those of the items before them.
pub(super) fn read_items(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    index: &Index,
    (bytes_max, charge_max): (usize, Option<Units>),
    candidates: &mut [Candidate],
) -> Result<()> {
    let get = |key: &[u8]| snapshot.get(bucket, key);
    let policies = index.policies(bucket, &get)?;
    let done = policies.done(&get)?;
    let recipe = |row: &FeedRow| policies.recipe_of(row.version, done);
    let has_log = log::is_on(&State::of(&snapshot.head(bucket)));
    let is_unread = |candidate: &&mut Candidate| {
        candidate.source.is_none() && (has_log || recipe(&candidate.row).rules().is_on())
    };
    let mut weighed = Weighed { bytes_max: bytes_max as u64, ..Weighed::default() };
    let mut rest = &mut *candidates;
    while !weighed.is_full() && !rest.is_empty() {
        let count = weighed.fitting(rest);
        let (chunk, behind) = std::mem::take(&mut rest).split_at_mut(count);
        rest = behind;
        read_sources(snapshot, bucket, chunk.iter_mut().filter(is_unread).collect())?;
        for candidate in chunk {
            if weighed.is_full() {
                break;
            }
            if let Some(source) = &candidate.source {
                let indexed = source.by(recipe(&candidate.row), candidate.row.ts)?;
                candidate.weight += indexed.weight();
                candidate.charge = charge_of(&candidate.row, indexed.charged());
            }
            weighed.add(candidate);
        }
    }
    // What the unit does not take is not held until it is committed.
    let taken = taken(candidates, bytes_max, charge_max);
    candidates.iter_mut().skip(taken).for_each(|candidate| candidate.source = None);
    Ok(())
}

/// How many of the candidates go into the commit: as many as weigh what it may, and cost no
/// more than it may, but for the first.
pub(super) fn taken(
    candidates: &[Candidate],
    bytes_max: usize,
    charge_max: Option<Units>,
) -> usize {
    let (mut bytes, mut charge) = (0, Units::ZERO);
    let fits = |candidate: &&Candidate| {
        let is_first = charge == Units::ZERO;
        charge += candidate.charge;
        let is_paid = is_first || charge_max.is_none_or(|most| charge <= most);
        let fits = bytes < bytes_max as u64 && is_paid;
        bytes += candidate.weight;
        fits
    };
    candidates.iter().take_while(fits).count()
}

/// Reads the texts of some items at once.
fn read_sources(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    candidates: Vec<&mut Candidate>,
) -> Result<()> {
    let keys: Vec<Vec<u8>> =
        candidates.iter().map(|candidate| keys::item(candidate.row.docno)).collect();
    let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let found = snapshot.hints().get_many_once(bucket, &asked)?;
    for (candidate, record) in candidates.into_iter().zip(found) {
        candidate.read(&record_of(&candidate.row, record)?);
    }
    Ok(())
}

/// How much of a unit is weighed.
#[derive(Default)]
struct Weighed {
    /// How much it may weigh.
    bytes_max: u64,
    /// What the items weigh, with their entries.
    bytes: u64,
    /// What they weigh without.
    items_bytes: u64,
}

impl Weighed {
    fn add(&mut self, candidate: &Candidate) {
        self.items_bytes += candidate.row.bytes;
        self.bytes += candidate.weight;
    }

    fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max
    }

    /// How many of the next candidates should fit; one does in any case.
    fn fitting(&self, next: &[Candidate]) -> usize {
        let most = if self.bytes == 0 { FIRST_ITEMS } else { ITEMS };
        let mut bytes = self.bytes;
        let fits = |candidate: &&Candidate| {
            let fits = bytes < self.bytes_max;
            bytes += candidate.row.bytes * self.bytes.max(1) / self.items_bytes.max(1);
            fits
        };
        next.iter().take(most).take_while(fits).count()
    }
}

/// The item that a feed row is about.
fn record_of(row: &FeedRow, record: Option<Bytes>) -> Result<Record> {
    let record = record.map(Record::decode).transpose()?;
    let record = record.filter(|record| record.version == row.version);
    record.ok_or_else(|| Error::Corrupt("a feed row without its item".to_owned()))
}

/// What deleting an item with so many terms in the index would cost.
pub(super) fn charge_of(row: &FeedRow, terms: usize) -> Units {
    charge::of_delete(usize::try_from(row.bytes).unwrap_or(usize::MAX), terms).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_items_are_read_at_once_than_should_fit() {
        let row = FeedRow { bytes: 10, ..FeedRow::decode(&keys::feed(1), &[0; 32]).unwrap() };
        let candidate =
            |weight| Candidate { weight, ..Candidate::new(row.clone(), Place::Feed(1)) };
        let rest: Vec<Candidate> = (0..100).map(|_| candidate(10)).collect();
        let mut weighed = Weighed { bytes_max: 1000, ..Weighed::default() };
        assert_eq!(weighed.fitting(&rest), FIRST_ITEMS);
        assert_eq!(weighed.fitting(&rest[..3]), 3);
        // Each has entries of four times its bytes.
        (0..8).for_each(|_| weighed.add(&candidate(50)));
        assert_eq!(weighed.fitting(&rest), 12);
        (0..11).for_each(|_| weighed.add(&candidate(50)));
        assert_eq!((weighed.fitting(&rest), weighed.is_full()), (1, false));
        weighed.add(&candidate(50));
        assert!(weighed.is_full());
        // Light ones come in steps, however many would fit.
        let mut light = Weighed { bytes_max: 100_000, ..Weighed::default() };
        light.add(&candidate(10));
        assert_eq!(light.fitting(&rest), ITEMS);
    }
}
