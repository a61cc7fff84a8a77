//! Lists, page by page.
//!
//! A continuation token is a position in key order, not a row: it stays good
//! when rows are written, expire or are purged between two pages, and over a
//! restart.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{BufMut, Bytes};
use dayfly_model::epk::{self, Epk};
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::ttl::Cuts;
use dayfly_model::{Error, ErrorKind, Result, charge};
use dayfly_storage::{Bucket, Direction, KeyRange, Snapshot};
use sha2::{Digest, Sha256};

use crate::catalog::{Container, Range};
use crate::head::State;
use crate::items::Seen;
use crate::keys::{self, Partition};
use crate::operation::{Page, Part};
use crate::reply::{CHARGE_MINIMUM_RU, Reply, Success, storage_failed};
use crate::scope::{Opened, Touched};

/// A page without a wish of the client.
const PAGE_DEFAULT: usize = 100;
/// The longest page.
const PAGE_MAX: usize = 10_000;
/// The largest page, in bytes of JSON.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many keys one page looks at; many may be expired.
const SCAN_MAX: usize = 20_000;
/// How many keys are read at once.
const CHUNK: usize = 32;

/// Shows items of a container in key order: by EPK, then by id.
pub(crate) fn items(opened: &Opened, part: &Part, page: &Page) -> Reply {
    let outcome = Scan::new(opened, part, page).and_then(Scan::run);
    outcome.unwrap_or_else(|error| opened.failed(error)).at(opened.place(part))
}

/// One page of items on its way.
struct Scan<'a> {
    opened: &'a Opened,
    /// What to read, in order.
    segments: Vec<(Bucket, KeyRange)>,
    limit: usize,
    scope: [u8; 4],
    documents: Vec<u8>,
    count: usize,
    looked_at: usize,
    charge_ru: f64,
}

impl<'a> Scan<'a> {
    fn new(opened: &'a Opened, part: &Part, page: &Page) -> Result<Self> {
        let container = &opened.container;
        let mut segments = segments(opened, part)?;
        opened.check_session(&touched(opened, part)?)?;
        let scope = container.number.to_be_bytes();
        if let Some(token) = &page.continuation {
            skip_to(&mut segments, read_token(token, scope)?)?;
        }
        Ok(Scan {
            opened,
            segments,
            limit: limit(page),
            scope,
            documents: Vec::new(),
            count: 0,
            looked_at: 0,
            charge_ru: 0.0,
        })
    }

    fn run(mut self) -> Result<Reply> {
        let mut next = None;
        for (bucket, range) in std::mem::take(&mut self.segments) {
            next = self.read_segment(bucket, range)?;
            if next.is_some() {
                break;
            }
        }
        let rid = &self.opened.container.rid_text;
        let mut body = Vec::with_capacity(self.documents.len() + 64);
        body.put_slice(format!("{{\"_rid\":\"{rid}\",\"Documents\":[").as_bytes());
        body.put_slice(&self.documents);
        body.put_slice(format!("],\"_count\":{}}}", self.count).as_bytes());
        let success = Success {
            continuation: next.map(|(bucket, key)| write_token(bucket, &key, self.scope)),
            item_count: Some(self.count),
            ..Success::new(200, body)
        };
        let charge_ru = self.charge_ru.max(CHARGE_MINIMUM_RU);
        Ok(Reply::ok(success, self.opened.now(), charge_ru))
    }

    /// Reads one bucket's part. Where the next page starts, if this one is
    /// full.
    fn read_segment(
        &mut self,
        bucket: Bucket,
        mut range: KeyRange,
    ) -> Result<Option<(Bucket, Vec<u8>)>> {
        let snapshot = &*self.opened.snapshot;
        let policy = State::policy(&snapshot.head(bucket)).map_err(storage_failed)?;
        let cuts = policy.cuts(self.opened.now());
        loop {
            let pairs =
                snapshot.scan(bucket, &range, Direction::Forward, CHUNK).map_err(storage_failed)?;
            let end = pairs.len() < CHUNK;
            for (key, value) in &pairs {
                if !self.add(value.clone(), cuts)? {
                    return Ok(Some((bucket, key.to_vec())));
                }
                range.start = [key, &[0][..]].concat();
            }
            if end {
                return Ok(None);
            }
        }
    }

    /// Adds an item to the page if it is alive. `false`: the page ends before
    /// it. An expired item ends no page, unless too many were met.
    fn add(&mut self, value: Bytes, cuts: Cuts) -> Result<bool> {
        if self.looked_at >= SCAN_MAX {
            return Ok(false);
        }
        self.looked_at += 1;
        let Seen::Alive(record) = Seen::of(value, cuts).map_err(storage_failed)? else {
            return Ok(true);
        };
        if self.count >= self.limit {
            return Ok(false);
        }
        let container = &self.opened.container;
        let text = record.render(container, &record.etag(container));
        if self.count > 0 && self.documents.len() + text.len() > PAGE_BYTES_MAX {
            return Ok(false);
        }
        if self.count > 0 {
            self.documents.push(b',');
        }
        self.documents.extend_from_slice(&text.first);
        self.documents.extend_from_slice(&text.second);
        self.count += 1;
        self.charge_ru += charge::of_read(text.len());
        Ok(true)
    }
}

/// What a part of a container means in keys.
pub(crate) fn segments(opened: &Opened, part: &Part) -> Result<Vec<(Bucket, KeyRange)>> {
    let container = &opened.container;
    let interval = Interval::of(container, part)?;
    if let Some(key) = whole_key(container, part)? {
        let epk = container.epk(&key);
        let inside = interval.contains(&epk);
        let keys = Partition::new(&epk, &key.canonical()).items();
        return Ok(inside.then(|| (container.bucket(&epk), keys)).into_iter().collect());
    }
    let keys = keys::items_between(&interval.min, interval.max.as_ref());
    Ok(container.buckets().map(|bucket| (bucket, keys.clone())).collect())
}

/// The ranges that a part of a container touches: that of its partition key if it has
/// one, whatever else it says.
pub(crate) fn touched(opened: &Opened, part: &Part) -> Result<Vec<Touched>> {
    let container = &opened.container;
    let touch = |range: &Range| {
        let lsn = opened.snapshot.head(container.bucket(&range.min)).lsn;
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

pub(crate) fn limit(page: &Page) -> usize {
    page.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX)
}

/// Lets `segments` start at a position that an earlier page returned.
fn skip_to(segments: &mut Vec<(Bucket, KeyRange)>, position: (Bucket, Vec<u8>)) -> Result<()> {
    let (bucket, key) = position;
    segments.retain(|(candidate, _)| *candidate >= bucket);
    match segments.first_mut() {
        Some((first, range)) if *first == bucket && range.contains(&key) => {
            range.start = key;
            Ok(())
        }
        _ => Err(bad_token()),
    }
}

/// A position as text: what it belongs to, where, and a check.
pub(crate) fn write_token(bucket: Bucket, key: &[u8], scope: [u8; 4]) -> String {
    let mut bytes = Vec::with_capacity(key.len() + 16);
    bytes.put_slice(&scope);
    bytes.put_u64(bucket.0);
    bytes.put_slice(key);
    let check = Sha256::digest(&bytes);
    bytes.extend(check.iter().take(4));
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn read_token(token: &str, scope: [u8; 4]) -> Result<(Bucket, Vec<u8>)> {
    let read = || {
        let bytes = URL_SAFE_NO_PAD.decode(token.trim()).ok()?;
        let (bytes, check) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        let right = Sha256::digest(bytes).iter().take(4).eq(check);
        let rest = bytes.strip_prefix(&scope)?;
        let (bucket, key) = rest.split_first_chunk::<8>()?;
        right.then(|| (Bucket(u64::from_be_bytes(*bucket)), key.to_vec()))
    };
    read().ok_or_else(bad_token)
}

fn bad_token() -> Error {
    Error::bad_request("Invalid Continuation Token")
}

/// A page of catalog rows.
pub(crate) fn rows(
    snapshot: &dyn Snapshot,
    mut range: KeyRange,
    page: &Page,
) -> Result<(Vec<Bytes>, Option<String>)> {
    let scope = *b"list";
    if let Some(token) = &page.continuation {
        let (_, key) = read_token(token, scope)?;
        if !range.contains(&key) {
            return Err(bad_token());
        }
        range.start = key;
    }
    let limit = limit(page);
    let mut pairs = snapshot
        .scan(keys::CATALOG, &range, Direction::Forward, limit + 1)
        .map_err(storage_failed)?;
    let more = if pairs.len() > limit { pairs.pop() } else { None };
    let next = more.map(|(key, _)| write_token(keys::CATALOG, &key, scope));
    Ok((pairs.into_iter().map(|(_, value)| value).collect(), next))
}

/// How many rows of the catalog a query goes through.
const ROWS_MAX: usize = 100_000;

/// All rows of a part of the catalog.
pub(crate) fn all_rows(snapshot: &dyn Snapshot, range: &KeyRange) -> Result<Vec<Bytes>> {
    let pairs = snapshot
        .scan(keys::CATALOG, range, Direction::Forward, ROWS_MAX + 1)
        .map_err(storage_failed)?;
    if pairs.len() > ROWS_MAX {
        return Err(Error::bad_request(format!(
            "There are more than {ROWS_MAX} of these, which is too many for a query. List them \
             page by page."
        )));
    }
    Ok(pairs.into_iter().map(|(_, value)| value).collect())
}
