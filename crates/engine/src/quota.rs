//! How many bytes a container may hold.
//!
//! What counts is what is alive when a write is drafted, so an item that expires makes room in
//! that very second, purged or not. A write that makes the container larger than its quota is
//! refused; one that makes nothing larger never is, however full the container is.
//!
//! **In its own bucket a draft reads the life histogram** like anything else that it rests on: if
//! a commit counts there before it, it is drafted again. So writes of one bucket are judged one
//! after the other. Of the other buckets of a container the request knows what was alive when
//! it began; what they take in at the same moment may go over the quota together with it.

use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::{Bucket, View};

use crate::reply::storage_failed;
use crate::scope::Opened;
use crate::standing;

/// The quota of a container, for the writes of a request to one of its buckets.
pub(crate) struct Quota {
    bytes: u64,
    /// What was alive in its other buckets when the request began.
    elsewhere: u64,
    began: Timestamp,
    is_alone: bool,
}

impl Quota {
    /// The quota of a container, if it has one, for writes to `bucket`.
    pub(crate) fn of(opened: &Opened, bucket: Bucket) -> Result<Option<Quota>> {
        let Some(bytes) = opened.container_quota else { return Ok(None) };
        let others = || opened.container.buckets().filter(|other| *other != bucket);
        let mut elsewhere = 0;
        for other in others() {
            let standing = standing::of_bucket(&*opened.snapshot, other).map_err(storage_failed)?;
            elsewhere += standing.live.bytes;
        }
        let is_alone = others().next().is_none();
        Ok(Some(Quota { bytes, elsewhere, began: opened.now(), is_alone }))
    }

    /// What the writes of a draft may take.
    pub(crate) fn at<'q>(&'q self, view: &View<'_>) -> Result<Allowance<'q>> {
        let live = standing::in_view(view).map_err(storage_failed)?.bytes;
        Ok(Allowance { quota: self, live: live + self.elsewhere, now: Timestamp(view.now()) })
    }
}

/// What is alive as a draft sees it, with what it has decided already.
pub(crate) struct Allowance<'q> {
    quota: &'q Quota,
    live: u64,
    now: Timestamp,
}

impl Allowance<'_> {
    /// Lets a write put `after` bytes in the place of `before`, or not.
    pub(crate) fn take(&mut self, before: u64, after: u64) -> Result<()> {
        let live = (self.live + after).saturating_sub(before);
        if after > before && live > self.quota.bytes {
            return Err(self.refusal());
        }
        self.live = live;
        Ok(())
    }

    fn refusal(&self) -> Error {
        // In a later second there may be room elsewhere: who asks again knows.
        if !self.quota.is_alone && self.now != self.quota.began {
            return storage_failed(dayfly_storage::Error::Retry);
        }
        let size = spelled(self.quota.bytes);
        Error::new(ErrorKind::QuotaReached, format!("Partition key reached maximum size of {size}"))
    }
}

/// A size in the largest unit that it is a multiple of.
fn spelled(bytes: u64) -> String {
    let (mut size, mut units) = (bytes, ["B", "KB", "MB", "GB", "TB"].into_iter().peekable());
    while let Some(unit) = units.next() {
        if units.peek().is_none() || size == 0 || !size.is_multiple_of(1024) {
            return format!("{size} {unit}");
        }
        size /= 1024;
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_the_largest_unit_that_fits() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (102_400, "100 KB"),
            (1536, "1536 B"),
            (20 << 30, "20 GB"),
            (1 << 50, "1024 TB"),
        ] {
            assert_eq!(spelled(bytes), expected);
        }
    }

    #[test]
    fn only_what_grows_is_refused() {
        let quota = |is_alone| Quota { bytes: 100, elsewhere: 40, began: Timestamp(7), is_alone };
        let quotas = [quota(true), quota(false)];
        let allowance = |quota, now| Allowance { quota, live: 90, now: Timestamp(now) };
        for (before, after, is_taken) in
            [(0, 10, true), (0, 11, false), (20, 30, true), (20, 31, false), (50, 50, true)]
        {
            let taken = allowance(&quotas[0], 9).take(before, after);
            assert_eq!(taken.is_ok(), is_taken, "{before} {after}");
        }
        // Over it already, less is no more than before.
        let mut full = Allowance { live: 500, ..allowance(&quotas[0], 7) };
        assert!(full.take(100, 99).is_ok() && full.take(0, 1).is_err());
        let kind = |quota, now| allowance(quota, now).take(0, 11).unwrap_err().kind;
        assert_eq!(kind(&quotas[1], 7), ErrorKind::QuotaReached);
        assert_eq!(kind(&quotas[1], 8), ErrorKind::RetryWith);
        assert_eq!(kind(&quotas[0], 8), ErrorKind::QuotaReached);
    }
}
