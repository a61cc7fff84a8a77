//! A container's definition, on its way into the heads of its buckets.
//!
//! One commit in each bucket brings it there, and that commit's time is the moment at
//! which the life policy changes. So a change has a place in the order of the bucket's
//! writes, and every draft made under the old policy is made again under the new one.

use std::sync::Arc;

use dayfly_model::container::ContainerDefinition;
use dayfly_model::ttl::{ContainerTtl, Policy};
use dayfly_model::{Result, Timestamp};
use dayfly_storage::{Batch, Direction, Draft, KeyRange, Plan, Room, Stamp, View};

use crate::catalog::ContainerRecord;
use crate::deleted::DeletedPartition;
use crate::head::{LogState, State};
use crate::history::{Changed, History};
use crate::index::PolicyChange;
use crate::keys;
use crate::lives::{Lives, Tallied};
use crate::reply::Reply;

/// Brings one bucket to a container's epoch. The time of this commit is the
/// moment the policy changes, unless the change is to come later.
#[derive(Clone, Debug)]
pub(crate) struct Install {
    epoch: u64,
    /// What says how items are indexed; `None`: the container is deleted.
    definition: Option<Arc<ContainerDefinition>>,
    /// The container's default; `None`: the container is deleted.
    default: Option<ContainerTtl>,
    /// From when on the default counts; 0: at once.
    from: Timestamp,
    /// Who changed it.
    by: String,
}

impl Install {
    /// The definition of a container.
    pub(crate) fn of(record: &ContainerRecord) -> Install {
        Install {
            epoch: record.epoch,
            definition: Some(Arc::new(record.definition.clone())),
            default: Some(record.definition.ttl),
            from: Timestamp(record.delayed.map_or(0, |delayed| delayed.until)),
            by: record.changed_by.clone(),
        }
    }

    /// The end of a container.
    pub(crate) const END: Install = Install {
        epoch: u64::MAX,
        definition: None,
        default: None,
        from: Timestamp(0),
        by: String::new(),
    };

    /// The policy after the install at `now`.
    fn policy(&self, old: &State, now: Timestamp) -> Policy {
        match self.default {
            None => old.policy,
            Some(default) if old.epoch == 0 => Policy { default, ..Policy::default() },
            Some(default) if self.from > now => old.policy.delayed(default, now, self.from),
            Some(default) if default != old.policy.at(now).default => {
                old.policy.changed(default, now)
            }
            Some(_) => Policy { pending: None, ..old.policy.at(now) },
        }
    }

    /// What changes with the policy: an entry for the history, if the default
    /// becomes another one.
    fn change(
        &self,
        view: &View<'_>,
        old: Policy,
        new: Policy,
    ) -> dayfly_storage::Result<Option<Changed>> {
        let now = Timestamp(view.now());
        let at = new.pending.map_or(now, |pending| pending.at);
        let (from, to) = (old.at(now).default, new.at(at).default);
        if from == to {
            return Ok(None);
        }
        let get_many = |keys: &[&[u8]]| view.get_many(keys);
        let lives = Lives::new(&get_many).without(hidden(view)?);
        let stays = Policy { pending: None, ..old.at(now) };
        let condemned = lives.dead_at(new, at)?.minus(lives.dead_at(stays, at)?);
        Ok(Some(Changed {
            at: at.0,
            by: self.by.clone(),
            from: from.to_json(),
            to: to.to_json(),
            condemned_items: condemned.items,
        }))
    }

    /// The history after the install, if it changes.
    fn history(
        &self,
        view: &View<'_>,
        old: &State,
        new: Policy,
    ) -> dayfly_storage::Result<Option<Vec<u8>>> {
        if old.epoch == 0 || self.default.is_none() || new == old.policy {
            return Ok(None);
        }
        let row = view.get(&keys::policy_history())?;
        let before = History::decode(row.as_deref())?;
        let mut history = before.clone();
        history.push(Timestamp(view.now()), self.change(view, old.policy, new)?);
        Ok((history != before).then(|| history.encode()))
    }
}

/// The items of deleted partitions that are still there.
fn hidden(view: &View<'_>) -> dayfly_storage::Result<Tallied> {
    if State::of(view.head()).partitions.pending == 0 {
        return Ok(Tallied::default());
    }
    let scan = |range: &KeyRange, limit| view.scan(range, Direction::Forward, limit);
    let rows = scan(&keys::deleted_partitions(), usize::MAX)?;
    let deleted = rows.iter().map(|(key, row)| DeletedPartition::decode(key, row));
    Tallied::of_deleted(&deleted.collect::<dayfly_storage::Result<Vec<_>>>()?, &scan)
}

impl Plan for Install {
    type Done = ();
    type Refusal = Reply;

    fn draft(&self, view: &View<'_>) -> Result<Draft<()>, Reply> {
        let old = State::of(view.head());
        let epoch = self.epoch;
        if old.epoch >= epoch {
            // A later definition is here already.
            return Ok(Draft::new(|_, _| ()));
        }
        let now = Timestamp(view.now());
        let policy = self.policy(&old, now);
        let history = self.history(view, &old, policy).map_err(Reply::from)?;
        let deleted = self.default.is_none();
        let change = |definition| PolicyChange::of(definition, view);
        let indexing = self.definition.as_deref().map(change).transpose();
        let indexing = indexing.map_err(Reply::from)?.flatten();
        let minutes = self.definition.as_deref().map(ContainerDefinition::feed_minutes);
        // It is the policy of this second, and of no other.
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            if let Some(change) = indexing {
                change.write(stamp, batch);
            }
            if let Some(history) = history {
                batch.put(keys::policy_history(), history);
            }
            // What was deleted stays deleted.
            let partitions = old.partitions;
            let log = minutes.map_or(old.log, |minutes| {
                LogState::defined(old.log, minutes, stamp.lsn, Timestamp(stamp.ts))
            });
            batch.set_state(State { epoch, deleted, policy, partitions, log }.encode());
        })
        .valid_before(now.0 + 1))
    }

    /// A new container grows; a change of one, and its end, must go on.
    fn room(&self) -> Room {
        if self.epoch == 1 { Room::Grows } else { Room::Frees }
    }
}
