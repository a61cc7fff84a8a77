//! What a write sees: the items of its bucket, under what its commit has decided already.
//!
//! The writes of one commit are decided one after the other, before any of them has a
//! version. So what an earlier one made is known by its place among them: [`Old::Made`].
//! When it is applied, the record is there.
//!
//! What many writes of a commit look at is read ahead, in a few calls. To each of them it is
//! as if it had read that by itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use dayfly_model::ttl::{ContainerTtl, Life};
use dayfly_model::{ErrorKind, Result, Timestamp};
use dayfly_storage::{Bucket, Second, View};

use super::Spot;
use super::act::Wanted;
use super::budget::WorkBudget;
use super::decide::{Decision, ItemChange, New};
use crate::catalog::{Container, not_found};
use crate::condition;
use crate::deleted::DeletedPartition;
use crate::head::{LogState, State};
use crate::index::{Index, Indexed, Policies, Source};
use crate::keys::{self, ItemKey, Partition};
use crate::liveness::{Ending, Liveness};
use crate::operation::Condition;
use crate::record::{self, Record, Seen, look};
use crate::reply::storage_failed;

/// For how many writes is read ahead at a time: what they find may be large.
const AHEAD: usize = 32;

/// What the writes of a commit see.
pub(super) struct Sight<'v> {
    view: &'v View<'v>,
    pub(super) now: Timestamp,
    /// What the writes may cost.
    pub(super) budget: WorkBudget,
    liveness: Liveness,
    /// Whether some partitions of the bucket were deleted lately.
    has_deleted: bool,
    /// The log of the bucket, if it has one.
    pub(super) log: Option<LogState>,
    /// The container's default.
    pub(super) default: ContainerTtl,
    /// When another default takes its place.
    until: Second,
    pub(super) policies: Arc<Policies>,
    /// The items that this commit made or removed.
    items: HashMap<ItemKey, Option<Made>>,
    /// The owners of unique keys that it gave away or made free.
    owners: HashMap<Vec<u8>, Option<Vec<u8>>>,
    /// Rows that were read ahead.
    ahead: HashMap<Vec<u8>, Option<Bytes>>,
    /// Before which write.
    ahead_to: usize,
}

/// What a row that is read ahead says of where to look next.
enum Lead<'w> {
    Nowhere,
    /// It is the number of an item.
    Number,
    /// It is the id of an item that owns a unique key.
    Owner(&'w Spot),
}

/// What is under an item's key.
pub(super) enum Met {
    Absent,
    /// Expired, and stored still.
    Dead(Record),
    Alive(Old),
}

/// An item that a write finds.
pub(super) enum Old {
    Stored(Record),
    /// Made by an earlier write of the same commit.
    Made(Made),
}

/// An item that has no version yet.
#[derive(Clone)]
pub(super) struct Made {
    /// Which write of the commit makes it, from 0 on.
    pub(super) place: usize,
    /// Its number, if it had one before the commit.
    docno: Option<u64>,
    text: Bytes,
    unique: Vec<[u8; 16]>,
    indexed: Indexed,
}

impl<'v> Sight<'v> {
    pub(super) fn new(
        view: &'v View<'v>,
        bucket: Bucket,
        index: &Index,
        budget: WorkBudget,
    ) -> Result<Sight<'v>> {
        let state = State::of(view.head());
        if state.deleted || state.epoch == 0 {
            return Err(not_found(ErrorKind::OwnerNotFound));
        }
        let now = Timestamp(view.now());
        let policy = state.policy.at(now);
        let policies = index.policies(bucket, &|key| view.get(key)).map_err(storage_failed)?;
        Ok(Sight {
            view,
            now,
            budget,
            liveness: Liveness::by(state.policy, now),
            has_deleted: state.partitions.pending > 0,
            log: state.log.filter(|log| log.is_on()),
            default: policy.default,
            until: policy.pending.map_or(Second::MAX, |pending| pending.at.0),
            policies,
            items: HashMap::new(),
            owners: HashMap::new(),
            ahead: HashMap::new(),
            ahead_to: 0,
        })
    }

    /// Reads what the writes from `place` on will look at, if that was not read before. One
    /// write looks for itself.
    ///
    /// What an earlier write decided is not looked at after all, so something may be read in
    /// vain: then the draft rests on more than it has to, which costs another one at worst.
    pub(super) fn look_ahead(&mut self, wanted: &[Result<Wanted>], place: usize) -> Result<()> {
        if wanted.len() < 2 || place < self.ahead_to {
            return Ok(());
        }
        self.ahead.clear();
        self.ahead_to = place + AHEAD;
        let mut next = BTreeMap::new();
        for wanted in wanted.iter().skip(place).take(AHEAD).flatten() {
            self.looked_at_by(wanted, &mut next);
        }
        if !self.policies.is_settled() {
            next.insert(keys::index_rebuilt(), Lead::Nowhere);
        }
        self.read_ahead(next).map_err(storage_failed)
    }

    /// What a write looks at first.
    fn looked_at_by<'w>(&self, wanted: &'w Wanted, next: &mut BTreeMap<Vec<u8>, Lead<'w>>) {
        let spot = wanted.act.spot();
        for key in wanted.act.places() {
            next.insert(key.number().to_vec(), Lead::Number);
        }
        for (constraint, hash) in (0u8..).zip(wanted.act.unique()) {
            next.insert(spot.partition.unique(constraint, hash), Lead::Owner(spot));
        }
        if self.has_deleted {
            next.insert(keys::deleted_partition(spot.partition.bytes()), Lead::Nowhere);
        }
    }

    /// Reads these rows at once, and then those that they lead to.
    fn read_ahead(&mut self, mut next: BTreeMap<Vec<u8>, Lead<'_>>) -> dayfly_storage::Result<()> {
        while !next.is_empty() {
            let asked: Vec<&[u8]> = next.keys().map(Vec::as_slice).collect();
            let found = self.view.get_many(&asked)?;
            let mut behind = BTreeMap::new();
            for ((key, lead), row) in next.into_iter().zip(found) {
                match (lead, &row) {
                    (Lead::Number, Some(number)) => {
                        behind.insert(keys::item(record::read_number(number)?), Lead::Nowhere);
                    }
                    (Lead::Owner(spot), Some(id)) if **id != *spot.id => {
                        let owner = spot.partition.item(id);
                        behind.insert(owner.number().to_vec(), Lead::Number);
                    }
                    _ => {}
                }
                self.ahead.insert(key, row);
            }
            behind.retain(|key, _| !self.ahead.contains_key(key));
            next = behind;
        }
        Ok(())
    }

    /// A row of the bucket as it was before the commit.
    fn get(&self, key: &[u8]) -> dayfly_storage::Result<Option<Bytes>> {
        self.ahead.get(key).map_or_else(|| self.view.get(key), |row| Ok(row.clone()))
    }

    /// Decisions hold for commits before this second, whatever they are.
    pub(super) fn valid_before(&self) -> Second {
        // What an item has in the index may be that of this second.
        let has_times = self.policies.newest().rules().has_times();
        // With another default to come, what was decided holds until then.
        self.until.min(if has_times { self.now.0 + 1 } else { Second::MAX })
    }

    /// What is under an item's key.
    pub(super) fn look(&self, key: &ItemKey, spot: &Spot) -> Result<Met> {
        match self.items.get(key) {
            Some(Some(made)) => return Ok(Met::Alive(Old::Made(made.clone()))),
            Some(None) => return Ok(Met::Absent),
            None => {}
        }
        let get = |key: &[u8]| self.get(key);
        let liveness = self.liveness_in(&spot.partition).map_err(storage_failed)?;
        let seen = look(get, key, &spot.partition_key, &liveness).map_err(storage_failed)?;
        Ok(match seen {
            Seen::Absent => Met::Absent,
            Seen::Dead(record) => Met::Dead(record),
            Seen::Alive(record) => Met::Alive(Old::Stored(record)),
        })
    }

    /// Who is dead in a partition.
    fn liveness_in(&self, partition: &Partition) -> dayfly_storage::Result<Liveness> {
        let mut liveness = self.liveness.clone();
        if self.has_deleted {
            let key = Bytes::from(keys::deleted_partition(partition.bytes()));
            let row = self.get(&key)?;
            let deleted = row.map(|row| DeletedPartition::decode(&key, &row)).transpose()?;
            liveness = liveness.without(deleted.into_iter().collect());
        }
        Ok(liveness)
    }

    /// Whether the time of an item that is dead was up.
    pub(super) fn has_expired(&self, record: &Record) -> bool {
        self.liveness.has_expired(record)
    }

    /// What ended the life of an item that is dead.
    pub(super) fn end_of(&self, record: &Record, partition: &Partition) -> Result<Ending> {
        let liveness = self.liveness_in(partition).map_err(storage_failed)?;
        Ok(liveness.end_of(record))
    }

    /// The item that a request means, which stands at `key` if it is there.
    pub(super) fn meet(&self, spot: &Spot, key: &ItemKey) -> Result<Met> {
        match self.look(key, spot)? {
            Met::Alive(old) if old.is_meant(spot) => Ok(Met::Alive(old)),
            Met::Dead(record) => Ok(Met::Dead(record)),
            Met::Alive(_) | Met::Absent => self.check_unmoved(spot, key).map(|()| Met::Absent),
        }
    }

    /// An item that is meant by its RID may have got another id since it was
    /// located. It is there, so it must not be told as missing.
    fn check_unmoved(&self, spot: &Spot, key: &ItemKey) -> Result<()> {
        let Some(docno) = spot.docno else { return Ok(()) };
        let stored = self.get(&keys::item(docno)).map_err(storage_failed)?;
        let record = stored.map(Record::decode).transpose().map_err(storage_failed)?;
        match record {
            Some(record) if spot.partition.item(record.id()) != *key => {
                Err(storage_failed(dayfly_storage::Error::Retry))
            }
            _ => Ok(()),
        }
    }

    /// The id of the item that owns a unique key.
    pub(super) fn owner(&self, unique: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(known) = self.owners.get(unique) {
            return Ok(known.clone());
        }
        let owner = self.get(unique).map_err(storage_failed)?;
        Ok(owner.map(|id| id.to_vec()))
    }

    /// What a stored item has in the index.
    pub(super) fn stored_index(&self, record: &Record) -> Result<Indexed> {
        self.policies.of_stored(record, &|key| self.get(key)).map_err(storage_failed)
    }

    /// What an item has in the index.
    pub(super) fn index_of(&self, old: &Old) -> Result<Indexed> {
        match old {
            Old::Stored(record) => self.stored_index(record),
            Old::Made(made) => Ok(made.indexed.clone()),
        }
    }

    /// What an item would have in the index by the policy in force, while that is not what it
    /// has: no charge depends on how far a rebuild has come.
    pub(super) fn index_by_newest(&self, old: &Old) -> Result<Option<Indexed>> {
        match old {
            Old::Stored(record) if !self.policies.is_settled() => {
                let indexed = Source::of(record).by(self.policies.newest(), record.ts);
                indexed.map(Some).map_err(storage_failed)
            }
            Old::Stored(_) | Old::Made(_) => Ok(None),
        }
    }

    /// From now on the commit has made this decision too, the one at `place`.
    pub(super) fn note(&mut self, place: usize, decision: &Decision) {
        for corpse in &decision.corpses {
            let partition = corpse.key.partition(corpse.record.id());
            self.free(&corpse.key, corpse.record.unique.iter().enumerate(), &partition);
        }
        match &decision.change {
            ItemChange::Create(new) => self.take(new, place, None),
            ItemChange::Replace { new, old, .. } => {
                self.free(&new.key, old.unique().iter().enumerate(), &new.partition);
                self.take(new, place, old.docno());
            }
            ItemChange::Move { new, old, from, .. } => {
                self.free(from, old.unique().iter().enumerate(), &new.partition);
                self.take(new, place, old.docno());
            }
            ItemChange::Bury { old, spot, .. } => {
                self.free(&spot.key, old.unique().iter().enumerate(), &spot.partition);
            }
            ItemChange::Nothing { .. } => {}
        }
    }

    /// An item is no more, and its unique keys are free.
    fn free<'u>(
        &mut self,
        key: &ItemKey,
        unique: impl Iterator<Item = (usize, &'u [u8; 16])>,
        partition: &keys::Partition,
    ) {
        self.items.insert(key.clone(), None);
        for (constraint, hash) in unique {
            let constraint = u8::try_from(constraint).unwrap_or(u8::MAX);
            self.owners.insert(partition.unique(constraint, hash), None);
        }
    }

    /// An item is there, and has its unique keys.
    fn take(&mut self, new: &New, place: usize, docno: Option<u64>) {
        for (constraint, hash) in (0u8..).zip(new.record.unique()) {
            let unique = new.partition.unique(constraint, hash);
            self.owners.insert(unique, Some(new.record.id().to_vec()));
        }
        let made = Made {
            place,
            docno,
            text: new.text.clone(),
            unique: new.record.unique().to_vec(),
            indexed: new.indexed.clone(),
        };
        self.items.insert(new.key.clone(), Some(made));
    }
}

impl Old {
    /// Its number, if it has one already.
    pub(super) fn docno(&self) -> Option<u64> {
        match self {
            Old::Stored(record) => Some(record.docno),
            Old::Made(made) => made.docno,
        }
    }

    fn is_meant(&self, spot: &Spot) -> bool {
        self.docno().map_or(spot.docno.is_none(), |docno| spot.means(docno))
    }

    fn unique(&self) -> &[[u8; 16]] {
        match self {
            Old::Stored(record) => &record.unique,
            Old::Made(made) => &made.unique,
        }
    }

    /// The user's JSON, without system properties.
    pub(super) fn text(&self) -> &[u8] {
        match self {
            Old::Stored(record) => record.text(),
            Old::Made(made) => &made.text,
        }
    }

    /// How many bytes it has as clients see it.
    pub(super) fn shown_bytes(&self) -> usize {
        match self {
            Old::Stored(record) => usize::try_from(record.bytes()).unwrap_or(usize::MAX),
            Old::Made(made) => made.text.len() + record::SYSTEM_BYTES,
        }
    }

    /// Whether a request that reads has this version already.
    pub(super) fn is_known(&self, condition: &Condition, container: &Container) -> bool {
        // One that has no etag yet can be meant by `*` only.
        let etag = match self {
            Old::Stored(record) => record.etag(container),
            Old::Made(_) => String::new(),
        };
        let wanted = [&condition.if_match, &condition.if_none_match];
        wanted.into_iter().flatten().any(|known| condition::names(known, &etag))
    }

    /// The second at which it dies, if the default stays. What a commit makes outlives
    /// the commit.
    pub(super) fn dies_at(&self, default: ContainerTtl) -> Second {
        let life = match self {
            Old::Stored(record) => record.life,
            Old::Made(_) => Life::Never,
        };
        life.expires_at(default).map_or(Second::MAX, |at| at.0)
    }

    /// Whether it is the version that a request means. One that has no etag yet can be
    /// meant by `*` only.
    pub(super) fn check(&self, condition: &Condition, container: &Container) -> Result<()> {
        let etag = match self {
            Old::Stored(record) => record.etag(container),
            Old::Made(_) => String::new(),
        };
        condition::check(condition, &etag)
    }
}
