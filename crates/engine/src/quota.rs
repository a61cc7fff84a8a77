//! How many bytes may be alive in a container, and in a logical partition.
//!
//! ```text
//! partitions    how much a partition has, as far as somebody had to know
//! hidden        what is dead with its partition and in the histograms still
//! ```
//!
//! What counts is what is alive when a write is drafted, so an item that expires makes room in
//! that very second, purged or not. A write that makes a container or a partition larger than its
//! quota is refused; one that makes nothing larger never is, however full it is.
//!
//! **A draft reads the life histograms** of all buckets of its container like anything else that
//! it rests on: if a commit counts there before it, it is drafted again. So writes of a container
//! that has a quota are judged one after the other.
//!
//! **What takes long is not done in the committer**, for whom everybody waits: to count what was
//! deleted with its partition, or to go through a partition. Most drafts need neither: what would
//! fit even if all of the histogram were alive does fit. A draft that needs it there is made again
//! by its caller, who counts once what is then known to all.

mod hidden;
mod partitions;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use dayfly_model::{Error, ErrorKind, Result};
use dayfly_storage::{Bucket, View};

use self::hidden::Hidden;
pub(crate) use self::partitions::Shift;
use self::partitions::{Fits, Partitions, Promise};
use crate::catalog::Container;
use crate::keys::Partition;
use crate::locks::lock;
use crate::reply::storage_failed;
use crate::settings::EngineSettings;
use crate::standing;

/// What limits the items of containers and of partitions.
pub(crate) struct Quotas {
    container: Option<u64>,
    partitions: Option<Partitions>,
    hidden: Hidden,
}

impl Quotas {
    /// Those of a server that has any.
    pub(crate) fn of(settings: &EngineSettings) -> Option<Arc<Quotas>> {
        let EngineSettings { container_quota, partition_quota, .. } = *settings;
        if container_quota.is_none() && partition_quota.is_none() {
            return None;
        }
        let partitions = partition_quota.map(Partitions::new);
        let hidden = Hidden::default();
        Some(Arc::new(Quotas { container: container_quota, partitions, hidden }))
    }

    /// What limits writes to these partitions of a bucket. To be had before the snapshot that
    /// they are drafted with.
    pub(crate) fn quota<'p>(
        self: &Arc<Quotas>,
        container: &Container,
        bucket: Bucket,
        written: impl Iterator<Item = &'p Partition>,
    ) -> Quota {
        let mut promises = HashMap::new();
        if let Some(partitions) = &self.partitions {
            for partition in written {
                let promise = || Mutex::new(partitions.promise(bucket, partition));
                promises.entry(partition.clone()).or_insert_with(promise);
            }
        }
        let buckets = container.buckets().collect();
        let took_long = AtomicBool::new(false);
        Quota { quotas: Arc::clone(self), bucket, buckets, promises, took_long }
    }

    /// All items of a partition are dead since this commit.
    pub(crate) fn emptied(&self, bucket: Bucket, partition: &Partition, lsn: u64) {
        if let Some(partitions) = &self.partitions {
            partitions.moved(bucket, partition, lsn, std::iter::once(Shift::Emptied));
        }
    }

    /// A commit that is about to be written buries something dead.
    pub(crate) fn buried(&self, bucket: Bucket, lsn: u64) {
        self.hidden.uncover(bucket, lsn);
    }

    /// A commit may have landed, or not.
    pub(crate) fn doubt(&self) {
        if let Some(partitions) = &self.partitions {
            partitions.forget();
        }
    }
}

/// What limits the writes of a plan.
pub(crate) struct Quota {
    quotas: Arc<Quotas>,
    bucket: Bucket,
    /// Those of the container.
    buckets: Vec<Bucket>,
    /// What the plan may add to each partition that it writes to.
    promises: HashMap<Partition, Mutex<Promise>>,
    /// Whether a draft needed to know what takes long to find out.
    took_long: AtomicBool,
}

impl Quota {
    /// What the writes of a draft may take.
    pub(crate) fn at<'q>(&'q self, view: &'q View<'q>) -> Result<Allowance<'q>> {
        if view.is_waited_for() {
            self.took_long.store(false, Ordering::Relaxed);
        }
        let most_in = |bucket: Bucket| -> Result<u64> {
            let live = standing::in_view(view, bucket, Arc::default());
            Ok(live.map_err(storage_failed)?.bytes)
        };
        let container = match self.quotas.container {
            Some(quota) => {
                let most = self.buckets.iter().map(|bucket| most_in(*bucket)).sum::<Result<_>>()?;
                Some(QuotaRoom { quota, live: most, is_exact: false })
            }
            None => None,
        };
        let around = match self.quotas.partitions {
            Some(_) => most_in(self.bucket)?,
            None => 0,
        };
        Ok(Allowance { quota: self, view, container, around, added: HashMap::new() })
    }

    /// How much of what the histograms take for alive is dead with its partition; `None`: it
    /// would have to be counted first, and not here.
    fn hidden(&self, view: &View<'_>) -> dayfly_storage::Result<Option<u64>> {
        let mut bytes = 0;
        for bucket in &self.buckets {
            let Some(hidden) = self.quotas.hidden.of(view, *bucket)? else { return Ok(None) };
            let most = standing::in_view(view, *bucket, Arc::default())?.bytes;
            bytes += most - standing::in_view(view, *bucket, hidden)?.bytes.min(most);
        }
        Ok(Some(bytes))
    }

    /// Whether a draft was given up that everybody waits for, since it would take long.
    pub(crate) fn takes_long(&self, view: &View<'_>) -> bool {
        view.is_waited_for() && self.took_long()
    }

    /// Whether one needed what takes long to find out.
    pub(crate) fn took_long(&self) -> bool {
        self.took_long.load(Ordering::Relaxed)
    }

    /// A draft needs what takes long to find out, and is made elsewhere.
    fn go_back(&self) -> Error {
        self.took_long.store(true, Ordering::Relaxed);
        storage_failed(dayfly_storage::Error::Retry)
    }

    /// Whether somebody has to know what becomes of partitions.
    pub(crate) fn counts(&self) -> bool {
        !self.promises.is_empty()
    }

    /// The plan is committed, and did this.
    pub(crate) fn settle(&self, lsn: u64, moved: &[(Partition, Shift)]) {
        let Some(partitions) = &self.quotas.partitions else { return };
        for partition in self.promises.keys() {
            let here = moved.iter().filter(|(of, _)| of == partition);
            partitions.moved(self.bucket, partition, lsn, here.map(|(_, moved)| *moved));
        }
        self.give_back();
    }

    /// Nothing will be written, unless the plan is drafted again.
    pub(crate) fn give_back(&self) {
        self.promises.values().for_each(|promise| lock(promise).give_back());
    }

    /// It may be committed, or not.
    pub(crate) fn doubt(&self) {
        self.quotas.doubt();
    }
}

/// What a container may hold, and what is alive in it.
#[derive(Clone, Copy)]
struct QuotaRoom {
    quota: u64,
    live: u64,
    /// Whether that is not less.
    is_exact: bool,
}

/// What is alive as a draft sees it, with what it has decided already.
pub(crate) struct Allowance<'q> {
    quota: &'q Quota,
    view: &'q View<'q>,
    container: Option<QuotaRoom>,
    /// No more than this is alive in the bucket.
    around: u64,
    /// By how much each partition has grown.
    added: HashMap<&'q Partition, i64>,
}

impl<'q> Allowance<'q> {
    /// Lets a write to a partition put `after` bytes in the place of `before`, or not.
    pub(crate) fn take(&mut self, partition: &'q Partition, before: u64, after: u64) -> Result<()> {
        let fits = |room: QuotaRoom| (room.live + after).saturating_sub(before) <= room.quota;
        if let Some(room) = &mut self.container
            && after > before
            && !fits(*room)
        {
            if !room.is_exact {
                let hidden = self.quota.hidden(self.view).map_err(storage_failed)?;
                let hidden = hidden.ok_or_else(|| self.quota.go_back())?;
                *room =
                    QuotaRoom { live: room.live.saturating_sub(hidden), is_exact: true, ..*room };
            }
            if !fits(*room) {
                return Err(full(room.quota));
            }
        }
        self.take_in(partition, before, after)?;
        if let Some(room) = &mut self.container {
            room.live = (room.live + after).saturating_sub(before);
        }
        Ok(())
    }

    fn take_in(&mut self, partition: &'q Partition, before: u64, after: u64) -> Result<()> {
        let Some(partitions) = &self.quota.quotas.partitions else { return Ok(()) };
        let Some(promise) = self.quota.promises.get(partition) else { return Ok(()) };
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let added = self.added.entry(partition).or_default();
        let sum = added.saturating_add(signed(after)).saturating_sub(signed(before));
        if after > before
            && let Ok(to) = u64::try_from(sum)
        {
            let quota = partitions.bytes_max();
            let fits = lock(promise).raise(to, quota, self.around, self.view);
            match fits.map_err(storage_failed)? {
                Fits::Yes => {}
                Fits::No => return Err(full(quota)),
                Fits::Perhaps => return Err(storage_failed(dayfly_storage::Error::Retry)),
                Fits::Unknown => return Err(self.quota.go_back()),
            }
        }
        *added = sum;
        Ok(())
    }
}

fn full(quota: u64) -> Error {
    let size = spelled(quota);
    Error::new(ErrorKind::QuotaReached, format!("Partition key reached maximum size of {size}"))
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
}
