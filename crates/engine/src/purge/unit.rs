//! One commit of the purge: burials, and how far the cursors have come.
//!
//! The cursors are committed with the deletes. Below a cursor nothing is left
//! to die, and nothing can appear: new versions come later in the feed, and a
//! new `ttl` ends after now. Whether an item is dead is judged once more by
//! the commit, so a write that came first wins.
//!
//! Where there is a log, the unit tells each end in it, and what it is to tell is in the
//! item.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use dayfly_model::Timestamp;
use dayfly_model::meter::Units;
use dayfly_storage::tally::Change;
use dayfly_storage::{
    Batch, Bucket, Draft, Error, Mark, Plan, Result, Room, Second, Stamp, Urgency, View,
};

use super::candidates::{Candidate, Place, charge_of, taken};
use crate::deleted::DeletedPartition;
use crate::head::{PartitionDeletes, State};
use crate::index::{Index, Indexed, Runs};
use crate::keys;
use crate::liveness::{Ending, Liveness};
use crate::lives::Tallied;
use crate::log::{self, Ended, Telling};
use crate::record::{self, FeedRow};

/// How many rows an item has besides its entries in the index, roughly.
const ROWS_OF_ITEM: usize = 5;

/// How far the purge of a bucket has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The last feed version looked at.
    pub(super) feed: u64,
    /// The last queue row looked at.
    pub(super) due: Option<Vec<u8>>,
}

impl Cursor {
    fn encode(&self) -> Bytes {
        let mut bytes = Vec::new();
        bytes.put_u64(self.feed);
        bytes.put_slice(self.due.as_deref().unwrap_or_default());
        bytes.into()
    }

    pub(super) fn decode(mut bytes: Bytes) -> Cursor {
        let feed = bytes.try_get_u64().unwrap_or_default();
        Cursor { feed, due: (!bytes.is_empty()).then(|| bytes.to_vec()) }
    }
}

/// One commit of the purge.
pub(super) struct Unit {
    pub(super) index: Arc<Index>,
    pub(super) bucket: Bucket,
    pub(super) candidates: Arc<Vec<Candidate>>,
    /// The snapshot they were found in.
    pub(super) mark: Mark,
    pub(super) from: Cursor,
    pub(super) to: Cursor,
    /// The partition that was deleted, if they are of one.
    pub(super) sweep: Option<Sweep>,
    pub(super) bytes_max: usize,
    /// What it may cost.
    pub(super) charge_max: Option<Units>,
    pub(super) urgency: Urgency,
}

/// A partition whose items were deleted, and go now.
pub(super) struct Sweep {
    pub(super) deleted: DeletedPartition,
    /// Whether nothing is left of it behind the candidates.
    pub(super) is_last: bool,
}

/// What a unit did.
pub(super) struct Buried {
    /// How many expired items it removed.
    pub(super) items: u64,
    /// What deleting them would have cost.
    pub(super) charge: Units,
    /// How long they were dead, in seconds, where that is known.
    pub(super) lags: Vec<u64>,
    /// The commit's time.
    pub(super) at: Second,
    /// Whether it stopped early, because the items are large.
    pub(super) cut: bool,
    /// Where in the index it removed much.
    pub(super) runs: Runs,
}

impl Unit {
    /// Up to where the unit goes that takes only the first `taken` candidates.
    fn to(&self, taken: usize) -> Cursor {
        if taken == self.candidates.len() {
            return self.to.clone();
        }
        // The first of a queue that is left says that its end is not reached.
        let left = || self.candidates.iter().skip(taken).map(|candidate| &candidate.place);
        let mut to = self.to.clone();
        if left().any(|place| matches!(place, Place::Feed(_))) {
            to.feed = self.from.feed;
        }
        if left().any(|place| matches!(place, Place::Due(_))) {
            to.due.clone_from(&self.from.due);
        }
        for candidate in self.candidates.iter().take(taken) {
            match &candidate.place {
                Place::Feed(version) => to.feed = to.feed.max(*version),
                Place::Due(key) => to.due = to.due.max(Some(key.clone())),
                Place::Deleted => {}
            }
        }
        to
    }
}

impl Unit {
    /// Whether it is one of a deleted partition.
    pub(super) fn sweeps(&self) -> bool {
        self.sweep.is_some()
    }

    /// How far the cursors come, if it takes all it has; none if they stay.
    pub(super) fn end(&self) -> Option<Cursor> {
        self.sweep.is_none().then(|| self.to.clone())
    }

    /// The partition that goes, as the view has it.
    fn deleted(&self, view: &View<'_>) -> Result<Option<DeletedPartition>> {
        let Some(Sweep { deleted, .. }) = &self.sweep else { return Ok(None) };
        let key = Bytes::from(keys::deleted_partition(&deleted.partition));
        let row = view.get(&key)?.ok_or(Error::Retry)?;
        DeletedPartition::decode(&key, &row).map(Some)
    }

    /// What becomes of the partition's row if the first `taken` candidates go. It goes when
    /// nothing is left, and was not deleted again meanwhile.
    fn swept(&self, deleted: Option<DeletedPartition>, taken: usize) -> Option<Swept> {
        let (sweep, now) = (self.sweep.as_ref()?, deleted?);
        let is_end = sweep.is_last && taken == self.candidates.len();
        let last = taken.checked_sub(1).and_then(|last| self.candidates.get(last));
        let done = match last {
            _ if is_end => sweep.deleted.before,
            Some(last) => last.row.docno + 1,
            None => now.done,
        };
        Some(if is_end && now.before == sweep.deleted.before {
            Swept::Gone(now)
        } else {
            Swept::Left(DeletedPartition { done, ..now })
        })
    }
}

impl Unit {
    /// Who is dead, where also how matters: what came first is told.
    fn liveness(
        &self,
        view: &View<'_>,
        state: &State,
        swept: Option<DeletedPartition>,
    ) -> Result<Liveness> {
        let mut deleted: Vec<DeletedPartition> = swept.into_iter().collect();
        if deleted.is_empty() && log::is_on(state) && state.partitions.pending > 0 {
            let partitions = self.candidates.iter().map(|candidate| candidate.row.partition());
            let keys: HashSet<Vec<u8>> =
                partitions.map(|partition| keys::deleted_partition(partition.bytes())).collect();
            let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let rows = view.get_many(&asked)?;
            for (key, row) in keys.into_iter().zip(rows) {
                let key = Bytes::from(key);
                let row = row.map(|row| DeletedPartition::decode(&key, &row)).transpose()?;
                deleted.extend(row);
            }
        }
        Ok(Liveness::by(state.policy, Timestamp(view.now())).without(deleted))
    }
}

/// An item that a unit buries.
struct DeadCandidate {
    /// Which of the candidates it is.
    place: usize,
    indexed: Indexed,
    /// What is told of it, if anything is.
    ended: Option<(Ending, Vec<u8>)>,
}

impl DeadCandidate {
    fn bury(&self, row: &FeedRow, batch: &mut Batch, gone: &mut Tallied, told: &mut Telling) {
        let ended = self.ended.as_ref();
        let ended = ended.map(|(end, key)| Ended { end: *end, partition_key: key });
        row.bury(batch, gone, &self.indexed, ended.as_ref(), told);
    }
}

/// What becomes of the row of a deleted partition.
enum Swept {
    Gone(DeletedPartition),
    Left(DeletedPartition),
}

impl Swept {
    fn write(&self, state: State, batch: &mut Batch) {
        let (Swept::Gone(deleted) | Swept::Left(deleted)) = self;
        let key = keys::deleted_partition(&deleted.partition);
        match self {
            Swept::Left(deleted) => batch.put(key, deleted.encode()),
            Swept::Gone(_) => {
                batch.delete(key);
                let pending = state.partitions.pending.saturating_sub(1);
                let partitions = PartitionDeletes { pending, ..state.partitions };
                batch.set_state(State { partitions, ..state }.encode());
            }
        }
    }
}

impl Plan for Unit {
    type Done = Buried;
    type Refusal = Error;

    /// Judges the candidates once more, by what the view shows. Cuts never fall, so only a
    /// write that came first can have saved an item; then its new version stands behind the
    /// cursors, which go past the old one all the same. As many are taken as the unit may
    /// weigh and cost, and the cursors stop before the first that is left. All that the
    /// committer has to do then is to write what was made ready here.
    fn draft(&self, view: &View<'_>) -> Result<Draft<Buried>> {
        let state = State::of(view.head());
        if view.head().lsn == 0 || state.deleted {
            return Err(Error::Retry);
        }
        let deleted = self.deleted(view)?;
        let liveness = self.liveness(view, &state, deleted.clone())?;
        let has_log = log::is_on(&state);
        let get = |key: &[u8]| view.get(key);
        let policies = self.index.policies(self.bucket, &get)?;
        let done = policies.done(&get)?;
        let mut dead = Vec::new();
        let taken = taken(&self.candidates, self.bytes_max, self.charge_max);
        let candidates = || self.candidates.iter().take(taken);
        let versions: Vec<u64> = candidates().map(|candidate| candidate.row.version).collect();
        let newest = record::are_newest(view, self.mark, &versions)?;
        for (place, (candidate, is_newest)) in candidates().zip(newest).enumerate() {
            if is_newest && liveness.is_dead(&candidate.row) {
                let indexed = candidate.indexed(view, &policies, done)?;
                let end = has_log.then(|| liveness.end_of(&candidate.row));
                let ended = end.map(|end| Ok((end, candidate.partition_key(view)?))).transpose()?;
                dead.push(DeadCandidate { place, indexed, ended });
            }
        }
        let (to, cut) = (self.to(taken), taken < self.candidates.len());
        let swept = self.swept(deleted, taken);
        let mut runs = Runs::default();
        for corpse in &dead {
            if let Some(candidate) = self.candidates.get(corpse.place) {
                runs.add(&candidate.row, &corpse.indexed);
            }
        }
        let rows = dead.iter().map(|corpse| corpse.indexed.entries() + ROWS_OF_ITEM).sum();

        let candidates = Arc::clone(&self.candidates);
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            let mut gone = Tallied::default();
            let mut told = Telling::by(stamp, has_log);
            let buried = || {
                dead.iter().filter_map(|corpse| Some((&candidates.get(corpse.place)?.row, corpse)))
            };
            for (row, corpse) in buried() {
                corpse.bury(row, batch, &mut gone, &mut told);
            }
            let rows = || buried().map(|(row, _)| row);
            gone.write(batch, Change::Less);
            match &swept {
                Some(swept) => swept.write(state, batch),
                None => batch.put(keys::purge_cursor(), to.encode()),
            }
            Buried {
                items: rows().filter(|row| liveness.has_expired(*row)).count() as u64,
                charge: buried().map(|(row, of)| charge_of(row, of.indexed.charged())).sum(),
                lags: rows()
                    .filter_map(|row| state.policy.died_at(row.life, Timestamp(stamp.ts)))
                    .map(|died| stamp.ts.saturating_sub(died.0))
                    .collect(),
                at: stamp.ts,
                cut,
                runs,
            }
        })
        .of_rows(rows))
    }

    fn room(&self) -> Room {
        Room::Frees
    }

    fn urgency(&self) -> Urgency {
        self.urgency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_stops_early_leaves_its_cursors_before_what_is_left() {
        let feed = |version| Place::Feed(version);
        let due = |key: &[u8]| Place::Due(key.to_vec());
        let places = [feed(5), due(b"x1"), feed(6), due(b"x2"), feed(7)];
        let row = FeedRow::decode(&keys::feed(1), &[0; 32]).unwrap();
        let candidates = places.map(|place| Candidate::new(row.clone(), place));
        let unit = Unit {
            index: Arc::default(),
            bucket: Bucket(256),
            candidates: Arc::new(candidates.into()),
            mark: Mark::default(),
            from: Cursor { feed: 2, due: None },
            to: Cursor { feed: 9, due: Some(b"x2".to_vec()) },
            sweep: None,
            bytes_max: 1,
            charge_max: None,
            urgency: Urgency::Rides,
        };
        let cursor = |feed, due: Option<&[u8]>| Cursor { feed, due: due.map(<[u8]>::to_vec) };
        assert_eq!(unit.to(0), cursor(2, None));
        assert_eq!(unit.to(1), cursor(5, None));
        assert_eq!(unit.to(3), cursor(6, Some(b"x1")));
        assert_eq!(unit.to(4), cursor(6, Some(b"x2")));
        assert_eq!(unit.to(5), cursor(9, Some(b"x2")));
    }
}
