//! What the engine does by itself, a little at a time: definitions that a crash kept from
//! some buckets, the purge, and indexes whose policy changed.

use std::time::Duration;

use dayfly_model::charge::Charge;
use dayfly_model::meter::Units;
use dayfly_storage::Bucket;

use crate::index::rebuild::{self, Moved, RebuildMeans, Size};
use crate::metering::Chore;
use crate::purge::{self, Means, PERIOD, Pace, Purge};
use crate::recovery;
use crate::shared::Shared;

/// One turn: at most one unit of the purge, and at most one of a rebuild of
/// an index, which goes on at the same pace. Returns how long to rest before the
/// next.
pub(crate) fn turn(shared: &Shared, purge: &Purge) -> Duration {
    if let Err(error) = recovery::finish_installs(shared) {
        tracing::warn!(%error, "a container's definition did not reach all its buckets");
    }
    shared.metering.sweep(shared.store.milliseconds());
    purge::turn(purge).min(rebuild_in_turn(shared, purge))
}

/// Rebuilds some of an index whose policy changed.
fn rebuild_in_turn(shared: &Shared, purge: &Purge) -> Duration {
    if shared.index.line.is_empty() {
        return PERIOD;
    }
    let pace = purge.pace();
    let Pace { items, urgency, .. } = pace;
    let size = Size { items, bytes: pace.bytes() as u64, charge_max: None, urgency };
    match rebuild::turn(&*shared.store, &shared.index, size, &LeftOver { shared, purge, pace }) {
        Ok(Moved::Idle | Moved::Waits) => PERIOD,
        Ok(Moved::Looked) => pace.rest,
        Ok(Moved::Committed) => {
            purge.counted();
            pace.rest
        }
        Err(error) => {
            tracing::warn!(%error, "an index was not rebuilt and is tried again");
            PERIOD
        }
    }
}

/// A rebuild lives on what the purge lives on.
struct LeftOver<'a> {
    shared: &'a Shared,
    purge: &'a Purge,
    pace: Pace,
}

impl LeftOver<'_> {
    fn means(&self, bucket: Bucket) -> Means {
        self.purge.means(bucket, self.pace, Chore::Rebuild)
    }
}

impl RebuildMeans for LeftOver<'_> {
    fn most(&self, bucket: Bucket) -> Option<Units> {
        self.means(bucket).most()
    }

    fn spent(&self, bucket: Bucket, charge: Charge) {
        self.means(bucket).spend(self.shared, charge.into(), false);
    }

    fn idle(&self, bucket: Bucket) {
        self.means(bucket).rest();
    }
}
