//! Who is dead: the one question that decides what anybody sees.
//!
//! It is asked in one way of all that says something about an item: its record, its row
//! in the feed, an entry of the index. Whoever walks over such rows takes the
//! [`Liveness`] of their bucket at the time of the request, and asks it of each.
//!
//! An item is dead because its time is up, or because its partition was deleted. Neither
//! is ever taken back.

use std::sync::Arc;

use dayfly_model::Timestamp;
use dayfly_model::ttl::{Cuts, Life, Policy};
use dayfly_storage::{Bucket, Result, Snapshot};

use crate::deleted::{self, DeletedPartition, Deletion};
use crate::head::State;

/// Something that is about an item, and dies with it.
pub(crate) trait Mortal {
    /// The life stamp of the item, or a lower bound of it.
    fn life(&self) -> Life;

    /// The number of the item.
    fn docno(&self) -> u64;

    /// Whether the item is in a partition.
    fn is_in(&self, partition: &DeletedPartition) -> bool;
}

/// What ended the life of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Somebody deleted it, at this second if not just now.
    Deleted(Option<Timestamp>),
    /// Its time was up at this second.
    Expired(Timestamp),
}

/// Who is dead in a bucket, at one time.
#[derive(Clone, Debug)]
pub(crate) struct Liveness {
    cuts: Cuts,
    policy: Policy,
    now: Timestamp,
    deleted: Option<Arc<[DeletedPartition]>>,
}

impl Liveness {
    /// In a bucket, at the time of a snapshot. A bucket that is closed shows nothing.
    pub(crate) fn of(snapshot: &dyn Snapshot, bucket: Bucket) -> Result<Liveness> {
        let head = snapshot.head(bucket);
        let policy = State::policy(&head)?;
        let deleted = deleted::all(snapshot, bucket, &head)?;
        Ok(Liveness::by(policy, Timestamp(snapshot.now())).without(deleted))
    }

    /// By this policy alone.
    pub(crate) fn by(policy: Policy, now: Timestamp) -> Liveness {
        Liveness { cuts: policy.cuts(now), policy, now, deleted: None }
    }

    /// The same where these partitions were deleted.
    pub(crate) fn without(self, deleted: Vec<DeletedPartition>) -> Liveness {
        let deleted = (!deleted.is_empty()).then(|| deleted.into());
        Liveness { deleted, ..self }
    }

    /// Whether nobody may see it any more.
    pub(crate) fn is_dead(&self, mortal: &impl Mortal) -> bool {
        self.has_expired(mortal) || self.is_deleted(mortal)
    }

    /// Whether its time is up.
    pub(crate) fn has_expired(&self, mortal: &impl Mortal) -> bool {
        mortal.life().is_dead(self.cuts)
    }

    /// Whether its partition was deleted.
    pub(crate) fn is_deleted(&self, mortal: &impl Mortal) -> bool {
        self.deleted_with(mortal).is_some()
    }

    fn deleted_with(&self, mortal: &impl Mortal) -> Option<&DeletedPartition> {
        let is_of = |partition: &&DeletedPartition| {
            mortal.docno() < partition.before && mortal.is_in(partition)
        };
        self.deleted.as_ref()?.iter().find(is_of)
    }

    /// What ended the life of something that is dead: what came first. Of a partition that
    /// was deleted before there was a log, nobody knows when, and it came first.
    pub(crate) fn end_of(&self, mortal: &impl Mortal) -> Ending {
        let died = self.policy.died_at(mortal.life(), self.now).unwrap_or(self.now);
        let Some(partition) = self.deleted_with(mortal) else { return Ending::Expired(died) };
        match partition.deletion_of(mortal.docno()) {
            Some(Deletion { at, cuts, .. }) if mortal.life().is_dead(*cuts) => {
                Ending::Expired(died.min(*at))
            }
            deletion => Ending::Deleted(deletion.map(|deletion| deletion.at)),
        }
    }
}
