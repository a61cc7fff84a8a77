//! What becomes of a write: a pure function of what is asked and what is seen.
//!
//! It returns data, so that the next write of the same commit can see it, and so that
//! what it means in rows can be left to [`apply`](super::apply), which knows the stamp.

use bytes::Bytes;
use dayfly_model::charge::{self, Charge};
use dayfly_model::ttl::ItemTtl;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::Second;

use super::act::{Body, From, LocatedAct, Target, Wanted, check_size};
use super::patch::{self, Patching};
use super::sight::{Met, Old, Sight};
use super::{KEY_MISSING, Spot, key_mismatch};
use crate::catalog::{Container, not_found};
use crate::condition::taken;
use crate::index::{Difference, Indexed};
use crate::keys::{ItemKey, Partition};
use crate::liveness::Ending;
use crate::record::{Record, Unstamped, shown_bytes};
use crate::reply::storage_failed;
use crate::unique;

/// What becomes of a write.
pub(super) struct Decision {
    /// Expired items that stand in its way, and are buried first.
    pub(super) corpses: Vec<Corpse>,
    pub(super) change: ItemChange,
    pub(super) status: u16,
    pub(super) charge: Charge,
    /// Whether the item has a `ttl` that counts for nothing.
    pub(super) ttl_ignored: bool,
    /// It holds for commits before this second.
    pub(super) valid_before: Second,
}

/// What changes.
pub(super) enum ItemChange {
    /// An item comes.
    Create(New),
    /// The next version of an item.
    Replace { new: New, old: Old, difference: Difference },
    /// The next version of an item, under another id.
    Move { new: New, old: Old, before: Indexed, from: ItemKey },
    /// An item goes.
    Bury { old: Old, spot: Spot, indexed: Indexed },
    /// An item is shown, or only its version because it is known.
    Nothing { shown: Old },
}

/// A version of an item that is to be.
pub(super) struct New {
    pub(super) record: Unstamped,
    pub(super) ttl: ItemTtl,
    pub(super) partition: Partition,
    pub(super) key: ItemKey,
    /// The user's JSON, shared.
    pub(super) text: Bytes,
    pub(super) indexed: Indexed,
}

/// A dead item that a write buries first.
pub(super) struct Corpse {
    pub(super) record: Record,
    /// Whether its time was up; else it was deleted with its partition.
    pub(super) has_expired: bool,
    /// What ended its life, whichever came first.
    pub(super) end: Ending,
    pub(super) key: ItemKey,
    pub(super) indexed: Indexed,
}

impl Decision {
    /// About how many rows its commit writes and removes.
    pub(super) fn rows(&self) -> usize {
        let buried: usize = self.corpses.iter().map(|corpse| corpse.indexed.rows()).sum();
        buried
            + match &self.change {
                ItemChange::Create(new) => new.indexed.rows(),
                ItemChange::Replace { difference, .. } => difference.rows(),
                ItemChange::Move { new, before, .. } => before.rows() + new.indexed.rows(),
                ItemChange::Bury { indexed, .. } => indexed.rows(),
                ItemChange::Nothing { .. } => 0,
            }
    }

    /// How many bytes of stored items were read whole for it, to know their entries.
    pub(super) fn stored_bytes(&self) -> usize {
        let buried: usize = self.corpses.iter().map(|corpse| corpse.record.text().len()).sum();
        let replaced = match &self.change {
            ItemChange::Replace { old, .. }
            | ItemChange::Move { old, .. }
            | ItemChange::Bury { old, .. } => old.text().len(),
            ItemChange::Create(_) | ItemChange::Nothing { .. } => 0,
        };
        buried + replaced
    }

    /// An item whose end is known before its commit must not be dead when it comes.
    fn bounded(self) -> Decision {
        let end = match &self.change {
            ItemChange::Create(new)
            | ItemChange::Replace { new, .. }
            | ItemChange::Move { new, .. } => match new.ttl {
                ItemTtl::Until(end) => end.0,
                _ => Second::MAX,
            },
            ItemChange::Bury { .. } | ItemChange::Nothing { .. } => Second::MAX,
        };
        Decision { valid_before: self.valid_before.min(end), ..self }
    }

    /// Whether it writes anything.
    pub(super) fn writes(&self) -> bool {
        !matches!(self.change, ItemChange::Nothing { .. })
    }

    /// How many bytes of items are alive before it and after it, of those that it is about.
    pub(super) fn item_bytes(&self, now: Timestamp) -> (u64, u64) {
        let of_old = |old: &Old| shown_bytes(old.text().len(), now);
        let of_new = |new: &New| shown_bytes(new.text.len(), now);
        match &self.change {
            ItemChange::Create(new) => (0, of_new(new)),
            ItemChange::Replace { new, old, .. } | ItemChange::Move { new, old, .. } => {
                (of_old(old), of_new(new))
            }
            ItemChange::Bury { old, .. } => (of_old(old), 0),
            ItemChange::Nothing { .. } => (0, 0),
        }
    }

    /// About how many bytes of items its answer has, which leaves out what was made if it is
    /// `minimal`.
    pub(super) fn answer_bytes(&self, minimal: bool) -> usize {
        match &self.change {
            ItemChange::Create(_) | ItemChange::Replace { .. } | ItemChange::Move { .. }
                if minimal =>
            {
                0
            }
            ItemChange::Create(new)
            | ItemChange::Replace { new, .. }
            | ItemChange::Move { new, .. } => new.text.len(),
            ItemChange::Nothing { .. } if self.status == 304 => 0,
            ItemChange::Nothing { shown } => shown.shown_bytes(),
            ItemChange::Bury { .. } => 0,
        }
    }
}

/// What becomes of `wanted`.
pub(super) fn decide(
    sight: &Sight<'_>,
    container: &Container,
    wanted: &Wanted,
) -> Result<Decision> {
    let decider = Decider { sight, container, wanted };
    let missing = || not_found(ErrorKind::NotFound);
    let decision = match &wanted.act {
        LocatedAct::Create(spot, body) => match sight.meet(spot, &spot.key)? {
            Met::Alive(_) => Err(taken()),
            Met::Dead(dead) => decider.create(spot, body, Some(dead)),
            Met::Absent => decider.create(spot, body, None),
        },
        LocatedAct::Upsert(spot, body) => match sight.meet(spot, &spot.key)? {
            Met::Alive(old) => decider.replace(spot, body, old),
            Met::Dead(dead) => decider.create(spot, body, Some(dead)),
            Met::Absent => decider.create(spot, body, None),
        },
        LocatedAct::Replace(Target { spot, from, misfit }, body) => {
            let at = from.as_ref().map_or(&spot.key, |from| &from.key);
            let Met::Alive(old) = sight.meet(spot, at)? else { return Err(missing()) };
            match from {
                _ if *misfit => Err(key_mismatch(KEY_MISSING)),
                Some(from) => decider.rename(spot, body, old, from),
                None => decider.replace(spot, body, old),
            }
        }
        LocatedAct::Patch(spot, patching) => match sight.meet(spot, &spot.key)? {
            Met::Alive(old) => decider.patch(spot, patching, old),
            Met::Dead(_) | Met::Absent => Err(patch::missing()),
        },
        LocatedAct::Delete(spot) => match sight.meet(spot, &spot.key)? {
            Met::Alive(old) => decider.delete(spot, old),
            Met::Dead(_) | Met::Absent => Err(missing()),
        },
        LocatedAct::Read(spot) => match sight.meet(spot, &spot.key)? {
            Met::Alive(old) => Ok(decider.read(old)),
            Met::Dead(_) | Met::Absent => Err(missing()),
        },
    };
    decision.map(Decision::bounded)
}

struct Decider<'a> {
    sight: &'a Sight<'a>,
    container: &'a Container,
    wanted: &'a Wanted,
}

impl Decider<'_> {
    /// A new item, over `dead` if its id had one that expired.
    fn create(&self, spot: &Spot, body: &Body, dead: Option<Record>) -> Result<Decision> {
        let ttl = ItemTtl::parse(body.ttl.as_deref(), self.sight.default)?;
        let mut corpses = self.free_unique_keys(spot, body, None)?;
        corpses.extend(dead.map(|record| self.corpse(record, &spot.key)).transpose()?);
        let new = self.made(spot, body, ttl)?;
        Ok(Decision {
            corpses,
            status: 201,
            charge: charge::of_create(body.text.len(), new.indexed.charged()),
            change: ItemChange::Create(new),
            ttl_ignored: self.ignores_ttl(body),
            valid_before: self.sight.valid_before(),
        })
    }

    /// A new version of an item that is alive.
    fn replace(&self, spot: &Spot, body: &Body, old: Old) -> Result<Decision> {
        old.check(&self.wanted.condition, self.container)?;
        let ttl = ItemTtl::parse(body.ttl.as_deref(), self.sight.default)?;
        let corpses = self.free_unique_keys(spot, body, None)?;
        let before = self.sight.index_of(&old)?;
        let new = self.made(spot, body, ttl)?;
        let other = self.sight.index_by_newest(&old)?;
        let difference = Difference::new(before, new.indexed.clone());
        let terms =
            other.map_or_else(|| difference.charged(), |other| new.indexed.charged_after(&other));
        Ok(self.over(body, old, corpses, terms, |old| ItemChange::Replace { new, old, difference }))
    }

    /// A new version of an item that is alive, made of the one that it has.
    fn patch(&self, spot: &Spot, patching: &Patching, old: Old) -> Result<Decision> {
        old.check(&self.wanted.condition, self.container)?;
        let (now, budget) = (self.sight.now, &self.sight.budget);
        patching.check(self.container, &old, now, budget)?;
        budget.patch(old.text().len())?;
        let valid_before = patching.valid_before(&old, now);
        let body = patching.body(self.container, spot, &old)?;
        ItemTtl::parse(body.ttl.as_deref(), self.sight.default)?;
        check_size(body.text.len())?;
        let decision = self.replace(spot, &body, old)?;
        patching.note(&body);
        Ok(Decision {
            charge: decision.charge.patched(patching.operations()),
            valid_before: decision.valid_before.min(valid_before),
            ..decision
        })
    }

    /// A new version of an item that is alive, under another id.
    ///
    /// The item stays the one it was: its RID, its partition, its unique keys. Only
    /// everything that says where it stands is written anew, in the commit that moves it,
    /// so nobody sees it twice or not at all. The new id must be free; one whose item has
    /// expired is.
    fn rename(&self, spot: &Spot, body: &Body, old: Old, from: &From) -> Result<Decision> {
        old.check(&self.wanted.condition, self.container)?;
        let in_the_way = match self.sight.look(&spot.key, spot)? {
            Met::Alive(_) => return Err(taken()),
            Met::Dead(record) => Some(record),
            Met::Absent => None,
        };
        let ttl = ItemTtl::parse(body.ttl.as_deref(), self.sight.default)?;
        let mut corpses = self.free_unique_keys(spot, body, Some(from))?;
        corpses.extend(in_the_way.map(|record| self.corpse(record, &spot.key)).transpose()?);
        let before = self.sight.index_of(&old)?;
        let new = self.made(spot, body, ttl)?;
        let from = from.key.clone();
        let other = self.sight.index_by_newest(&old)?;
        let terms = new.indexed.charged_after(other.as_ref().unwrap_or(&before));
        Ok(self.over(body, old, corpses, terms, |old| ItemChange::Move { new, old, before, from }))
    }

    /// The decision to write over `old`, with so many terms that come or go.
    fn over(
        &self,
        body: &Body,
        old: Old,
        corpses: Vec<Corpse>,
        terms: usize,
        change: impl FnOnce(Old) -> ItemChange,
    ) -> Decision {
        Decision {
            corpses,
            status: 200,
            charge: charge::of_replace(old.text().len(), body.text.len(), terms),
            ttl_ignored: self.ignores_ttl(body),
            valid_before: self.alive_before(&old),
            change: change(old),
        }
    }

    fn delete(&self, spot: &Spot, old: Old) -> Result<Decision> {
        old.check(&self.wanted.condition, self.container)?;
        let indexed = self.sight.index_of(&old)?;
        let other = self.sight.index_by_newest(&old)?;
        let terms = other.as_ref().unwrap_or(&indexed).charged();
        Ok(Decision {
            corpses: Vec::new(),
            status: 204,
            charge: charge::of_delete(old.text().len(), terms),
            ttl_ignored: false,
            valid_before: self.alive_before(&old),
            change: ItemChange::Bury { old, spot: spot.clone(), indexed },
        })
    }

    /// A batch has conditions for reads, too: of either kind, the version that is named is
    /// the one that is not sent again.
    fn read(&self, old: Old) -> Decision {
        let is_known = old.is_known(&self.wanted.condition, self.container);
        Decision {
            corpses: Vec::new(),
            status: if is_known { 304 } else { 200 },
            charge: if is_known { Charge::MISS } else { charge::of_read(old.shown_bytes()) },
            ttl_ignored: false,
            valid_before: self.alive_before(&old),
            change: ItemChange::Nothing { shown: old },
        }
    }

    /// A decision about an item that is alive holds only until it dies.
    fn alive_before(&self, old: &Old) -> Second {
        self.sight.valid_before().min(old.dies_at(self.sight.default))
    }

    fn ignores_ttl(&self, body: &Body) -> bool {
        body.ttl.is_some() && !self.sight.default.is_on()
    }

    /// The record of what the write brings, and what that has in the index.
    fn made(&self, spot: &Spot, body: &Body, ttl: ItemTtl) -> Result<New> {
        let Spot { partition_key, id, .. } = spot;
        let indexed = body.source.by(self.sight.policies.newest(), self.sight.now);
        Ok(New {
            record: Unstamped::new(body.indexing, partition_key, &body.unique, id, &body.text),
            ttl: self.counted(body, ttl)?,
            partition: spot.partition.clone(),
            key: spot.key.clone(),
            text: body.text.clone(),
            indexed: indexed.map_err(storage_failed)?,
        })
    }

    /// Counts a life from where the container says. Nothing is born dead: what has ended
    /// already is refused.
    fn counted(&self, body: &Body, ttl: ItemTtl) -> Result<ItemTtl> {
        let Some(base) = body.ttl_base else { return Ok(ttl) };
        let (ttl, now) = (ttl.counted_from(base, self.sight.default), self.sight.now);
        match ttl {
            ItemTtl::Until(end) if end <= now => Err(Error::bad_request(format!(
                "The item would have expired before it is written: counted from {base}, by the \
                 container's ttlPropertyPath, its life ends at {}, and it is {}.",
                end.0, now.0
            ))),
            _ => Ok(ttl),
        }
    }

    fn corpse(&self, record: Record, key: &ItemKey) -> Result<Corpse> {
        let indexed = self.sight.stored_index(&record)?;
        let has_expired = self.sight.has_expired(&record);
        let end = self.sight.end_of(&record, &key.partition(record.id()))?;
        Ok(Corpse { record, has_expired, end, key: key.clone(), indexed })
    }

    /// The expired owners of the unique keys this write wants; an owner that
    /// is alive refuses it.
    fn free_unique_keys(
        &self,
        spot: &Spot,
        body: &Body,
        from: Option<&From>,
    ) -> Result<Vec<Corpse>> {
        let mut corpses: Vec<Corpse> = Vec::new();
        for (constraint, hash) in (0u8..).zip(&body.unique) {
            let entry = spot.partition.unique(constraint, hash);
            let Some(owner) = self.sight.owner(&entry)? else { continue };
            let is_own = from.is_some_and(|from| owner == from.id);
            if is_own || owner == spot.id {
                continue;
            }
            let key = spot.partition.item(&owner);
            match self.sight.look(&key, spot)? {
                Met::Alive(_) => return Err(unique::taken()),
                Met::Dead(record) if corpses.iter().all(|known| known.key != key) => {
                    corpses.push(self.corpse(record, &key)?);
                }
                Met::Dead(_) | Met::Absent => {}
            }
        }
        Ok(corpses)
    }
}
