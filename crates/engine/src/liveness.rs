//! Who is dead: the one question that decides what anybody sees.
//!
//! It is asked in one way of all that says something about an item: its record, its row
//! in the feed, an entry of the index. Whoever walks over such rows takes the
//! [`Liveness`] of their bucket at the time of the request, and asks it of each.

use dayfly_model::Timestamp;
use dayfly_model::ttl::{Cuts, Life, Policy};
use dayfly_storage::{Head, Result};

use crate::head::State;

/// Something that is about an item, and dies with it.
pub(crate) trait Mortal {
    /// The life stamp of the item, or a lower bound of it.
    fn life(&self) -> Life;
}

/// Who is dead in a bucket, at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Liveness {
    cuts: Cuts,
}

impl Liveness {
    /// In the bucket with this head. A bucket that is closed shows nothing.
    pub(crate) fn of(head: &Head, now: Timestamp) -> Result<Liveness> {
        State::policy(head).map(|policy| Liveness::by(policy, now))
    }

    /// By this policy.
    pub(crate) fn by(policy: Policy, now: Timestamp) -> Liveness {
        Liveness { cuts: policy.cuts(now) }
    }

    /// Whether nobody may see it any more.
    pub(crate) fn is_dead(&self, mortal: &impl Mortal) -> bool {
        mortal.life().is_dead(self.cuts)
    }
}
