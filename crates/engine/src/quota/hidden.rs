//! What is dead with its partition and not removed yet, as far as somebody had to know.
//!
//! It is in the histograms still, and to count it is to go through all of it. That is done where
//! it matters, which is when a container would be full if all of it were alive, and by somebody
//! for whom nobody waits; and then it is known until the purge removes some, another partition is
//! deleted, or a write takes the place of what is hidden.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use dayfly_storage::{Bucket, Result, View};

use crate::deleted::{self, DeletedPartition};
use crate::lives::Tallied;
use crate::locks::lock;
use crate::standing;

/// Of how many buckets it is known at most.
const KNOWN_MAX: usize = 1_024;

/// What is hidden in buckets.
#[derive(Default)]
pub(super) struct Hidden {
    known: Mutex<HashMap<Bucket, HiddenCount>>,
    /// Whoever has this goes through what is hidden.
    counting: Mutex<()>,
}

/// What is hidden in a bucket.
#[derive(Default)]
struct HiddenCount {
    /// It says nothing of a snapshot with fewer commits.
    lsn: u64,
    /// The partitions that were counted, and how far the purge was.
    deleted: Vec<DeletedPartition>,
    hidden: Arc<Tallied>,
}

impl Hidden {
    /// What is hidden in a bucket; `None`: that would have to be counted, and everybody waits
    /// for this draft.
    pub(super) fn of(&self, view: &View<'_>, bucket: Bucket) -> Result<Option<Arc<Tallied>>> {
        let (snapshot, head) = (view.snapshot(), view.snapshot().head(bucket));
        let deleted = deleted::all(snapshot, bucket, &head)?;
        if deleted.is_empty() {
            return Ok(Some(Arc::default()));
        }
        if let Some(hidden) = self.known(bucket, head.lsn, &deleted) {
            return Ok(Some(hidden));
        }
        if view.is_waited_for() {
            return Ok(None);
        }
        let _counting = lock(&self.counting);
        if let Some(hidden) = self.known(bucket, head.lsn, &deleted) {
            return Ok(Some(hidden));
        }
        let hidden = standing::count_hidden(snapshot, bucket, &deleted)?.summed();
        let hidden = Arc::new(hidden);
        let mut known = lock(&self.known);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        let of = known.entry(bucket).or_default();
        if of.lsn <= head.lsn {
            *of = HiddenCount { lsn: head.lsn, deleted, hidden: Arc::clone(&hidden) };
        }
        Ok(Some(hidden))
    }

    fn known(
        &self,
        bucket: Bucket,
        lsn: u64,
        deleted: &[DeletedPartition],
    ) -> Option<Arc<Tallied>> {
        let known = lock(&self.known);
        let known = known.get(&bucket)?;
        (known.lsn <= lsn && known.deleted == deleted).then(|| Arc::clone(&known.hidden))
    }

    /// A write takes the place of something that is hidden in a bucket.
    pub(super) fn uncover(&self, bucket: Bucket, lsn: u64) {
        let mut known = lock(&self.known);
        let of = known.entry(bucket).or_default();
        if of.lsn <= lsn {
            *of = HiddenCount { lsn, ..HiddenCount::default() };
        }
    }
}
