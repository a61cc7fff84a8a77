//! What a part of a container means: which partitions of which ranges, and in which
//! buckets they are.

use std::borrow::Cow;
use std::sync::Arc;

use dayfly_model::epk::{self, Epk};
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::{Error, ErrorKind, Result};
use dayfly_storage::{Bucket, KeyRange, Snapshot};
use sha2::{Digest, Sha256};

use crate::catalog::{self, Container, Range};
use crate::keys::{self, Partition};
use crate::operation::Part;

/// A partition key range that a request touches, and its last commit.
pub(crate) struct Touched {
    pub(crate) range: Arc<str>,
    /// The ranges that it came from, whose commits are its own.
    pub(crate) parents: Arc<[u32]>,
    pub(crate) lsn: u64,
}

impl Touched {
    /// Whether what is said of a range is said of this one: by its id, or by that of one
    /// that it came from.
    pub(crate) fn is_named(&self, id: &str) -> bool {
        *self.range == *id
            || !self.parents.is_empty()
                && id.parse().is_ok_and(|number| self.parents.contains(&number))
    }
}

/// Some partitions of one range, and where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The number of the range.
    pub(crate) range: u32,
    /// Where the range stands among the others, by how its lower bound starts.
    pub(crate) rank: u64,
    /// Tells the partitions that are meant from others, if they are named: a place in the
    /// order of some is none in that of others. In the half of a range, those of the whole.
    pub(crate) mark: u32,
    pub(crate) bucket: Bucket,
    pub(crate) scope: Scope,
}

impl Segment {
    fn new(range: &Range, bucket: Bucket, scope: Scope) -> Segment {
        let rank = range.min.0.iter().copied().chain([0; 8]).take(8);
        let rank = rank.fold(0, |rank, byte| rank << 8 | u64::from(byte));
        let mark = scope.mark();
        Segment { range: range.number, rank, mark, bucket, scope }
    }

    /// The same range, but only what these say of it, which is a part of what is meant.
    pub(crate) fn only(self, scopes: &[&Scope], meant: &[&Scope]) -> Segment {
        Segment { mark: Scope::any(meant).mark(), scope: Scope::any(scopes), ..self }
    }
}

/// Which partitions of a bucket are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of them.
    Whole,
    /// These.
    Named(Vec<Partition>),
    /// Those between two points of the space of keys, or between several: in order, and
    /// apart from each other.
    Between(Vec<KeyRange>),
}

impl Scope {
    /// What any of these means: single partitions, if they all name some.
    fn any(scopes: &[&Scope]) -> Scope {
        let mut partitions: Vec<Partition> = Vec::new();
        for scope in scopes {
            let Scope::Named(more) = scope else { return Scope::between(scopes) };
            for one in more {
                if !partitions.contains(one) {
                    partitions.push(one.clone());
                }
            }
        }
        Scope::Named(partitions)
    }

    fn between(scopes: &[&Scope]) -> Scope {
        let mut ranges: Vec<KeyRange> = scopes.iter().flat_map(|scope| scope.ranges()).collect();
        ranges.sort_by(|left, right| left.start.cmp(&right.start));
        let mut apart: Vec<KeyRange> = Vec::new();
        for range in ranges {
            match apart.last_mut() {
                Some(last) if range.start <= last.end => last.end = range.end.max(last.end.clone()),
                _ => apart.push(range),
            }
        }
        Scope::Between(apart)
    }

    fn mark(&self) -> u32 {
        let Scope::Named(partitions) = self else { return 0 };
        let mut hasher = Sha256::new();
        for partition in partitions {
            hasher.update(partition.bytes());
        }
        hasher.finalize().iter().take(4).fold(0, |mark, byte| mark << 8 | u32::from(*byte))
    }

    /// Whether a partition is meant.
    pub(crate) fn contains(&self, partition: &[u8]) -> bool {
        match self {
            Scope::Whole => true,
            Scope::Named(partitions) => partitions.iter().any(|known| known.bytes() == partition),
            Scope::Between(ranges) => ranges.iter().any(|range| range.contains(partition)),
        }
    }

    /// The partitions that are meant, as ranges of their bytes.
    pub(crate) fn ranges(&self) -> Vec<KeyRange> {
        match self {
            Scope::Whole => vec![keys::partitions_between(&Epk(Vec::new()), None)],
            Scope::Named(partitions) => partitions.iter().map(Partition::range).collect(),
            Scope::Between(ranges) => ranges.clone(),
        }
    }
}

/// What a part of a container means, in the order of the ranges.
pub(crate) fn segments(container: &Container, part: &Part) -> Result<Vec<Segment>> {
    segments_before(container, part, container.numbered())
}

/// The same, in the order of the ranges when so many numbers had been given to them. What a
/// page tells of its end is a place in that order: in that of the parts of a range, it would
/// be behind some items that were not given, and before some that were.
pub(crate) fn segments_before(
    container: &Container,
    part: &Part,
    numbered: u32,
) -> Result<Vec<Segment>> {
    let interval = Interval::of(container, part)?;
    let ranges = &*container.ranges_before(numbered);
    if let Some(key) = whole_key(container, part)? {
        let epk = container.epk(&key);
        let range = catalog::range_at(ranges, &epk).filter(|_| interval.contains(&epk));
        let partition = Partition::new(&epk, &key.canonical());
        let scope = Scope::Named(vec![partition]);
        let segment = range.map(|range| Segment::new(range, container.bucket(&epk), scope));
        return Ok(segment.into_iter().collect());
    }
    let overlapping = ranges.iter().filter(|range| interval.overlaps(range));
    Ok(overlapping.map(|range| segment(container, ranges, range, &interval)).collect())
}

/// A part as its client asked for it when so many numbers had been given to the ranges: who
/// asks for the half of a range meant all of it then.
pub(crate) fn part_before<'a>(
    container: &Container,
    part: &'a Part,
    numbered: u32,
) -> Result<Cow<'a, Part>> {
    let Some(id) = &part.range else { return Ok(Cow::Borrowed(part)) };
    let range = find_range(container, id)?;
    let ranges = container.ranges_before(numbered);
    let whole = catalog::range_at(&ranges, &range.min).filter(|_| range.number >= numbered);
    let Some(whole) = whole else { return Ok(Cow::Borrowed(part)) };
    let mut interval = Interval { min: whole.min.clone(), max: whole.max.clone() };
    interval.narrow(part.start.as_ref().unwrap_or(&Epk::min()), part.end.as_ref());
    let Interval { min, max } = interval;
    Ok(Cow::Owned(Part { range: None, start: Some(min), end: max, ..part.clone() }))
}

/// What a part of a container means in each of its buckets. It must not say of a range that
/// it goes on where it ends: whoever believes that has not looked at the ranges again.
pub(crate) fn scopes(container: &Container, part: &Part) -> Result<Vec<(Bucket, Scope)>> {
    check_within(container, part)?;
    let segments = segments(container, part)?;
    let mut scopes: Vec<(Bucket, Scope)> = Vec::with_capacity(segments.len());
    for Segment { bucket, scope, .. } in segments {
        match scopes.last_mut() {
            Some((last, known)) if *last == bucket => *known = Scope::any(&[&*known, &scope]),
            _ => scopes.push((bucket, scope)),
        }
    }
    if scopes.is_empty() {
        return Err(Error::bad_request("The partition key is not in the range that is named."));
    }
    Ok(scopes)
}

/// Whether the keys that a part names are in the range that it names.
fn check_within(container: &Container, part: &Part) -> Result<()> {
    let Some(id) = &part.range else { return Ok(()) };
    let range = find_range(container, id)?;
    let starts = part.start.as_ref().is_none_or(|start| range.min.0 <= start.0);
    let has_end = |end: &Epk| range.max.as_ref().is_none_or(|max| end.0 <= max.0);
    if starts && part.end.as_ref().is_none_or(has_end) {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "The effective partition keys of the request reach beyond the partition key range '{id}'."
    )))
}

/// What an interval means in one of some ranges.
fn segment(container: &Container, ranges: &[Range], range: &Range, interval: &Interval) -> Segment {
    let bucket = container.bucket(&range.min);
    let has_all = |other: &Range| other.id == range.id || container.bucket(&other.min) != bucket;
    let scope = if interval.covers(range) && ranges.iter().all(has_all) {
        Scope::Whole
    } else {
        let mut within = Interval { min: range.min.clone(), max: range.max.clone() };
        within.narrow(&interval.min, interval.max.as_ref());
        Scope::Between(vec![keys::partitions_between(&within.min, within.max.as_ref())])
    };
    Segment::new(range, bucket, scope)
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
        Touched { range: Arc::clone(&range.id), parents: Arc::clone(&range.parents), lsn }
    };
    if let Some(key) = whole_key(container, part)? {
        return Ok(container.range(&container.epk(&key)).map(touch).into_iter().collect());
    }
    let interval = Interval::of(container, part)?;
    Ok(container.ranges.iter().filter(|range| interval.overlaps(range)).map(touch).collect())
}

/// The ranges that a part of a container touches, by their places.
pub(crate) fn places(container: &Container, part: &Part) -> Result<std::ops::Range<usize>> {
    if container.ranges.len() == 1 && part.range.is_none() {
        return Ok(0..1);
    }
    if let Some(key) = whole_key(container, part)? {
        let epk = container.epk(&key);
        let after = container.ranges.partition_point(|range| range.min.0 <= epk.0);
        return Ok(after.saturating_sub(1)..after);
    }
    let interval = Interval::of(container, part)?;
    let first = container.ranges.iter().position(|range| interval.overlaps(range)).unwrap_or(0);
    let touched = container.ranges.iter().skip(first);
    Ok(first..first + touched.take_while(|range| interval.overlaps(range)).count())
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

    fn covers(&self, range: &Range) -> bool {
        let is_below = |max: &Epk| range.max.as_ref().is_some_and(|end| end.0 <= max.0);
        self.min.0 <= range.min.0 && self.max.as_ref().is_none_or(is_below)
    }

    fn overlaps(&self, range: &Range) -> bool {
        self.max.as_ref().is_none_or(|max| range.min.0 < max.0)
            && range.max.as_ref().is_none_or(|max| self.min.0 < max.0)
    }
}
