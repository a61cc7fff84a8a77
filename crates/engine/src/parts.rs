//! What a part of a container means: which keys of which buckets, and which ranges.

use std::sync::Arc;

use dayfly_model::epk::{self, Epk};
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::{Error, ErrorKind, Result};
use dayfly_storage::{Bucket, KeyRange, Snapshot};

use crate::catalog::{Container, Range};
use crate::keys::{self, Partition};
use crate::operation::Part;

/// A partition key range that a request touches, and its last commit.
pub(crate) struct Touched {
    pub(crate) range: Arc<str>,
    pub(crate) lsn: u64,
}

/// What a part of a container means in keys.
pub(crate) fn segments(container: &Container, part: &Part) -> Result<Vec<(Bucket, KeyRange)>> {
    let interval = Interval::of(container, part)?;
    if let Some(key) = whole_key(container, part)? {
        let epk = container.epk(&key);
        let inside = interval.contains(&epk);
        let keys = Partition::new(&epk, &key.canonical()).items();
        return Ok(inside.then(|| (container.bucket(&epk), keys)).into_iter().collect());
    }
    let (min, max) = (&interval.min, interval.max.as_ref());
    let keys = keys::items_between(min, max);
    Ok(container.buckets_between(min, max).map(|bucket| (bucket, keys.clone())).collect())
}

/// A part of a container that lies in one bucket: where all of a batch is.
pub(crate) enum Home<'a> {
    /// One logical partition, and where it lies.
    Partition(PartitionKey, Bucket),
    /// One range.
    Range(HomeRange<'a>),
}

/// A range of a container.
pub(crate) struct HomeRange<'a> {
    container: &'a Container,
    range: &'a Range,
}

impl Home<'_> {
    pub(crate) fn bucket(&self) -> Bucket {
        match self {
            Home::Partition(_, bucket) => *bucket,
            Home::Range(HomeRange { container, range }) => container.bucket(&range.min),
        }
    }
}

impl HomeRange<'_> {
    /// Whether a partition is in it.
    pub(crate) fn contains(&self, key: &PartitionKey) -> Result<bool> {
        let HomeRange { container, range } = self;
        let key = key.clone().fitted(&container.definition().partition_key)?;
        let epk = container.epk(&key);
        Ok(range.min.0 <= epk.0 && range.max.as_ref().is_none_or(|max| epk.0 < max.0))
    }
}

/// The logical partition, or else the range, that a part names.
pub(crate) fn home<'a>(container: &'a Container, part: &Part) -> Result<Home<'a>> {
    match (&part.partition_key, &part.range) {
        (Some(key), _) => {
            let key = key.clone().fitted(&container.definition().partition_key)?;
            let bucket = container.bucket(&container.epk(&key));
            Ok(Home::Partition(key, bucket))
        }
        (None, Some(id)) => {
            Ok(Home::Range(HomeRange { container, range: find_range(container, id)? }))
        }
        (None, None) => Err(Error::bad_request(
            "A batch needs the partition key of its items, or the range that they are in.",
        )),
    }
}

/// The ranges that a part of a container touches: that of its partition key if it has
/// one, whatever else it says.
pub(crate) fn touched(
    snapshot: &dyn Snapshot,
    container: &Container,
    part: &Part,
) -> Result<Vec<Touched>> {
    let touch = |range: &Range| {
        let lsn = snapshot.head(container.bucket(&range.min)).lsn;
        Touched { range: Arc::clone(&range.id), lsn }
    };
    if let Some(key) = whole_key(container, part)? {
        return Ok(container.range(&container.epk(&key)).map(touch).into_iter().collect());
    }
    let interval = Interval::of(container, part)?;
    Ok(container.ranges.iter().filter(|range| interval.overlaps(range)).map(touch).collect())
}

/// The key of a part, if it names one logical partition.
fn whole_key(container: &Container, part: &Part) -> Result<Option<PartitionKey>> {
    match &part.partition_key {
        Some(key) if !is_prefix(container, key) => {
            key.clone().fitted(&container.definition().partition_key).map(Some)
        }
        _ => Ok(None),
    }
}

/// A list may give the first components of a hierarchical key.
fn is_prefix(container: &Container, key: &PartitionKey) -> bool {
    !key.0.is_empty() && key.0.len() < container.definition().partition_key.paths.len()
}

fn find_range<'a>(container: &'a Container, id: &str) -> Result<&'a Range> {
    let gone = |id: &str| {
        Error::new(
            ErrorKind::RangeGone,
            format!("The container has no partition key range '{id}'."),
        )
    };
    let id = match id.split_once(',') {
        Some((rid, _)) if rid.trim() != &*container.rid_text => return Err(gone(id)),
        Some((_, id)) => id.trim(),
        None => id.trim(),
    };
    container.ranges.iter().find(|range| &*range.id == id).ok_or_else(|| gone(id))
}

/// EPKs from `min` up to `max`; no max: all that follow.
struct Interval {
    min: Epk,
    max: Option<Epk>,
}

impl Interval {
    /// What a part says of EPKs, but for a key that names one logical partition.
    fn of(container: &Container, part: &Part) -> Result<Interval> {
        let mut interval = Interval { min: Epk(Vec::new()), max: None };
        if let Some(id) = &part.range {
            let range = find_range(container, id)?;
            interval.narrow(&range.min, range.max.as_ref());
        }
        if let Some(start) = &part.start {
            interval.narrow(start, None);
        }
        if let Some(end) = &part.end {
            interval.narrow(&Epk(Vec::new()), Some(end));
        }
        if let Some(key) = part.partition_key.as_ref().filter(|key| is_prefix(container, key)) {
            let (min, max) = epk::prefix_range(&container.definition().partition_key, key);
            interval.narrow(&min, Some(&max));
        }
        Ok(interval)
    }

    fn narrow(&mut self, min: &Epk, max: Option<&Epk>) {
        if min.0 > self.min.0 {
            self.min = min.clone();
        }
        if let Some(max) = max
            && self.max.as_ref().is_none_or(|known| max.0 < known.0)
        {
            self.max = Some(max.clone());
        }
    }

    fn contains(&self, epk: &Epk) -> bool {
        self.min.0 <= epk.0 && self.max.as_ref().is_none_or(|max| epk.0 < max.0)
    }

    fn overlaps(&self, range: &Range) -> bool {
        self.max.as_ref().is_none_or(|max| range.min.0 < max.0)
            && range.max.as_ref().is_none_or(|max| self.min.0 < max.0)
    }
}
