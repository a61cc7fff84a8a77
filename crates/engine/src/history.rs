//! The changes of a container's default, as each bucket keeps them.

use dayfly_model::{Result, Timestamp};
use dayfly_storage::Snapshot;
use serde::{Deserialize, Serialize};

use crate::catalog::{self, Container};
use crate::keys;
use crate::reply::storage_failed;

/// A change of the default, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changed {
    /// The second from which it counts.
    pub(crate) at: u64,
    pub(crate) by: String,
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    /// How many items it expired; of a change that is to come, how many it
    /// would if nothing were written until then.
    pub(crate) condemned_items: u64,
}

/// How many changes are kept.
const CHANGES_MAX: usize = 32;

/// The changes of a bucket, newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History(Vec<Changed>);

impl History {
    pub(crate) fn decode(row: Option<&[u8]>) -> dayfly_storage::Result<History> {
        let Some(row) = row else { return Ok(History::default()) };
        serde_json::from_slice(row).map_err(|why| {
            dayfly_storage::Error::Corrupt(format!("the changes of a default: {why}"))
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        catalog::encode(self)
    }

    /// Notes a change made at `now`. One that was still to come never was.
    pub(crate) fn push(&mut self, now: Timestamp, changed: Option<Changed>) {
        self.0.retain(|earlier| earlier.at <= now.0);
        self.0.extend(changed);
        let surplus = self.0.len().saturating_sub(CHANGES_MAX);
        self.0.drain(..surplus);
    }

    /// Adds what the same changes did in another bucket.
    pub(crate) fn merge(&mut self, other: History) {
        if self.0.is_empty() {
            *self = other;
            return;
        }
        for (mine, theirs) in self.0.iter_mut().rev().zip(other.0.into_iter().rev()) {
            mine.condemned_items += theirs.condemned_items;
        }
    }
}

/// How many items the last change of the default expired, or would.
pub(crate) fn last_condemned(snapshot: &dyn Snapshot, container: &Container) -> Result<u64> {
    let mut items = 0;
    for bucket in container.buckets() {
        let row = snapshot.get(bucket, &keys::policy_history()).map_err(storage_failed)?;
        let history = History::decode(row.as_deref()).map_err(storage_failed)?;
        items += history.0.last().map_or(0, |changed| changed.condemned_items);
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_history_is_told_and_not_shown_as_none() {
        assert_eq!(History::decode(None), Ok(History::default()));
        assert!(matches!(History::decode(Some(b"?")), Err(dayfly_storage::Error::Corrupt(_))));
    }
}
