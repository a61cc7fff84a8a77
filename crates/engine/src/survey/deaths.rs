//! Items in the order of their deaths, page by page.
//!
//! The purge has two queues, and both are in that order already, whatever the default and
//! whatever change of it is to come:
//!
//! | stream   | of items            | is read by                                          |
//! |----------|---------------------|-----------------------------------------------------|
//! | `ByTtl`  | with a `ttl`        | the queue of the purge, by the second of their end  |
//! | `Default`| that inherit        | the feed, by `_ts`                                  |
//! | `Never`  | with `ttl: -1`      | the feed                                            |
//!
//! A page merges the first two of all buckets; where an end is the same, or where there is
//! none, bucket goes by bucket. The immortal follow. A row of the feed that is of another
//! stream is stepped over; where many are, the life histogram knows the next second that
//! has one, and the feed is in the order of seconds.
//!
//! A token says where each stream was left. So no item is given twice that was not written
//! in between, and none is left out, whatever becomes of the others.

use std::collections::VecDeque;

use bytes::{Buf, BufMut};
use dayfly_model::ttl::{Cuts, Life, Policy};
use dayfly_model::{Result, Timestamp};
use dayfly_storage::{Bucket, Direction, KeyRange, Snapshot};

use crate::head::State;
use crate::list::PAGE_BYTES_MAX;
use crate::liveness::Liveness;
use crate::lives::{Class, Lives};
use crate::operation::Page;
use crate::pages::{bad_token, limit, read_token, write_token};
use crate::record::{self, FeedRow, Record};
use crate::reply::storage_failed;
use crate::scope::Opened;
use crate::{keys, purge, version};

/// How many rows are read at once, to begin with and at most.
const CHUNK_MIN: usize = 8;
const CHUNK_MAX: usize = 512;

/// Tells a token of this order from one of another.
const MARK: u64 = u64::MAX - 1;

/// How far a stream was read: the second and the version of a row in the queue, or 0 and the
/// version of one in the feed.
type StreamPlace = (u64, u64);

/// A page of items, those first that die first.
pub(super) struct Deaths {
    /// The items, each with the policy of its bucket.
    pub(super) records: Vec<(Record, Policy)>,
    pub(super) continuation: Option<String>,
}

/// An item that is on the page.
struct Picked {
    bucket: Bucket,
    policy: Policy,
    docno: u64,
}

/// Items of a container that die until a second, or all.
pub(super) fn page(opened: &Opened, until: Option<Timestamp>, page: &Page) -> Result<Deaths> {
    let mut walk = Walk::new(opened, until, page)?;
    let is_more = walk.fill().map_err(storage_failed)?;
    let continuation = is_more.then(|| walk.token());
    Ok(Deaths { records: walk.records().map_err(storage_failed)?, continuation })
}

/// A page on its way.
struct Walk<'a> {
    opened: &'a Opened,
    until: Option<Timestamp>,
    /// Two of each bucket, in the order of the buckets.
    mortal: Vec<DeathStream<'a>>,
    /// One of each bucket.
    immortal: Vec<DeathStream<'a>>,
    limit: usize,
    picked: Vec<Picked>,
    bytes: u64,
}

impl<'a> Walk<'a> {
    fn new(opened: &'a Opened, until: Option<Timestamp>, page: &Page) -> Result<Walk<'a>> {
        let buckets: Vec<Bucket> = opened.container.buckets().collect();
        let mut places = vec![None; buckets.len() * 3];
        if let Some(token) = &page.continuation {
            places = read_places(token, opened, places.len())?;
        }
        let mut places = places.into_iter();
        let stream = |bucket: Bucket, kind, place: Option<StreamPlace>| {
            DeathStream::new(opened, bucket, kind, place).map_err(storage_failed)
        };
        let (mut mortal, mut immortal) = (Vec::new(), Vec::new());
        for bucket in buckets {
            mortal.push(stream(bucket, Kind::ByTtl, places.next().flatten())?);
            mortal.push(stream(bucket, Kind::Default, places.next().flatten())?);
            immortal.push(stream(bucket, Kind::Never, places.next().flatten())?);
        }
        let limit = limit(page);
        Ok(Walk { opened, until, mortal, immortal, limit, picked: Vec::new(), bytes: 0 })
    }

    /// Picks what is on the page. Whether there may be more.
    fn fill(&mut self) -> dayfly_storage::Result<bool> {
        let mut budget = Budget { looks: self.opened.limits.list_looks, rows: self.limit };
        while let Some((end, place)) = first(&mut self.mortal, &mut budget)? {
            if self.until.is_some_and(|until| end.second() > until.0) {
                return Ok(false);
            }
            let Some(stream) = self.mortal.get_mut(place) else { break };
            if !take(stream, &mut self.picked, &mut self.bytes, &mut budget) {
                return Ok(true);
            }
        }
        if budget.is_spent() || self.until.is_some() {
            return Ok(budget.is_spent());
        }
        for stream in &mut self.immortal {
            while stream.peek(&mut budget)?.is_some() {
                if !take(stream, &mut self.picked, &mut self.bytes, &mut budget) {
                    return Ok(true);
                }
            }
            if budget.is_spent() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the items that were picked, those of a bucket at once.
    fn records(self) -> dayfly_storage::Result<Vec<(Record, Policy)>> {
        let snapshot = &*self.opened.snapshot;
        let mut places: Vec<(usize, &Picked)> = (0..).zip(&self.picked).collect();
        places.sort_unstable_by_key(|(_, of)| (of.bucket, of.docno));
        let mut found = Vec::with_capacity(places.len());
        for of_bucket in places.chunk_by(|(_, one), (_, next)| one.bucket == next.bucket) {
            let numbers: Vec<u64> = of_bucket.iter().map(|(_, of)| of.docno).collect();
            let Some((_, first)) = of_bucket.first() else { continue };
            let records = record::neighbours(snapshot, first.bucket, &numbers)?;
            let with_places = of_bucket.iter().zip(records);
            found.extend(with_places.map(|((place, of), record)| (*place, record, of.policy)));
        }
        found.sort_unstable_by_key(|(place, ..)| *place);
        Ok(found.into_iter().map(|(_, record, policy)| (record, policy)).collect())
    }

    fn token(&self) -> String {
        let mut places = Vec::new();
        for (mortal, immortal) in self.mortal.chunks(2).zip(&self.immortal) {
            for stream in mortal.iter().chain([immortal]) {
                let (second, version) = stream.left_at();
                if stream.kind == Kind::ByTtl {
                    places.put_u64(second);
                }
                places.put_u64(version);
            }
        }
        write_token(MARK, &places, self.opened.container.number.to_be_bytes())
    }
}

/// Where the streams were left, as a token says.
fn read_places(token: &str, opened: &Opened, count: usize) -> Result<Vec<Option<StreamPlace>>> {
    let (mark, places) = read_token(token, opened.container.number.to_be_bytes())?;
    let mut rest = &*places;
    let mut places = Vec::with_capacity(count);
    for kind in [Kind::ByTtl, Kind::Default, Kind::Never].into_iter().cycle().take(count) {
        let second = if kind == Kind::ByTtl { rest.try_get_u64() } else { Ok(0) };
        let second = second.map_err(|_| bad_token())?;
        places.push(Some((second, rest.try_get_u64().map_err(|_| bad_token())?)));
    }
    if mark == MARK && rest.is_empty() { Ok(places) } else { Err(bad_token()) }
}

/// When an item dies, if it does: what does not is behind all that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeathAt(Option<Timestamp>);

impl DeathAt {
    fn is_before(self, other: DeathAt) -> bool {
        self.second() < other.second()
    }

    fn second(self) -> u64 {
        self.0.map_or(u64::MAX, |at| at.0)
    }
}

/// The end of the item that dies first, and its stream; none at the end, or when too much
/// was looked at.
fn first(
    streams: &mut [DeathStream<'_>],
    budget: &mut Budget,
) -> dayfly_storage::Result<Option<(DeathAt, usize)>> {
    let mut first: Option<(DeathAt, usize)> = None;
    for (place, stream) in (0..).zip(streams) {
        if let Some(end) = stream.peek(budget)?
            && first.is_none_or(|(least, _)| end.is_before(least))
        {
            first = Some((end, place));
        }
        if budget.is_spent() {
            return Ok(None);
        }
    }
    Ok(first)
}

/// Takes the first item of a stream onto the page. `false`: it is full.
fn take(
    stream: &mut DeathStream<'_>,
    picked: &mut Vec<Picked>,
    bytes: &mut u64,
    budget: &mut Budget,
) -> bool {
    let Some(waiting) = stream.read.front() else { return false };
    let fits = picked.is_empty() || *bytes + waiting.bytes <= PAGE_BYTES_MAX as u64;
    if budget.rows == 0 || !fits {
        return false;
    }
    budget.rows -= 1;
    *bytes += waiting.bytes;
    picked.push(Picked { bucket: stream.bucket, policy: stream.policy, docno: waiting.docno });
    stream.read.pop_front();
    true
}

/// What a page may still take and step over. What is stepped over is behind the place that
/// a token names, so that each page comes further.
struct Budget {
    looks: u64,
    rows: usize,
}

impl Budget {
    fn spend_one(&mut self) {
        self.looks = self.looks.saturating_sub(1);
    }

    fn is_spent(&self) -> bool {
        self.looks == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ByTtl,
    Default,
    Never,
}

impl Kind {
    fn is_of(self, life: Life) -> bool {
        matches!(
            (self, life),
            (Kind::ByTtl, Life::Explicit(_))
                | (Kind::Default, Life::Inherit(_) | Life::Opaque(_))
                | (Kind::Never, Life::Never)
        )
    }
}

/// The items of one kind in one bucket, in the order of their ends.
struct DeathStream<'a> {
    snapshot: &'a dyn Snapshot,
    bucket: Bucket,
    kind: Kind,
    policy: Policy,
    cuts: Cuts,
    now: Timestamp,
    liveness: Liveness,
    /// The last row that was read.
    at: StreamPlace,
    chunk: usize,
    /// How many rows were read, and how many of them are of this stream.
    looked: usize,
    kept: usize,
    /// What was read and not taken.
    read: VecDeque<Fetched>,
    is_end: bool,
}

/// An item that was read in a stream.
struct Fetched {
    place: StreamPlace,
    life: Life,
    docno: u64,
    bytes: u64,
}

impl<'a> DeathStream<'a> {
    fn new(
        opened: &'a Opened,
        bucket: Bucket,
        kind: Kind,
        place: Option<StreamPlace>,
    ) -> dayfly_storage::Result<DeathStream<'a>> {
        let (snapshot, now) = (&*opened.snapshot, opened.now());
        let policy = State::policy(&snapshot.head(bucket))?;
        let cuts = policy.cuts(now);
        // What is dead is not read.
        let begin = match kind {
            Kind::ByTtl => (cuts.explicit.0, u64::MAX),
            Kind::Default => (0, purge::passed(snapshot, bucket)?),
            Kind::Never => (0, 0),
        };
        Ok(DeathStream {
            snapshot,
            bucket,
            kind,
            policy,
            cuts,
            now,
            liveness: Liveness::of(snapshot, bucket)?,
            at: place.map_or(begin, |place| place.max(begin)),
            chunk: CHUNK_MIN,
            looked: 0,
            kept: 0,
            read: VecDeque::new(),
            is_end: false,
        })
    }

    /// The end of the first item; none if there is no item, or when too much was looked at.
    fn peek(&mut self, budget: &mut Budget) -> dayfly_storage::Result<Option<DeathAt>> {
        while self.read.is_empty() && !self.is_end && !budget.is_spent() {
            match self.kind {
                Kind::ByTtl => self.read_queue(budget)?,
                Kind::Default | Kind::Never => self.read_feed(budget)?,
            }
            self.chunk = self.next_chunk(budget.rows);
        }
        let end = |waiting: &Fetched| self.policy.dies_at(waiting.life, self.now);
        Ok(self.read.front().map(|waiting| DeathAt(end(waiting))))
    }

    /// How many rows to read next, for a page that wants so many items: as it was so far, so
    /// many of them are of this stream.
    fn next_chunk(&self, wanted: usize) -> usize {
        let next = (wanted * self.looked).checked_div(self.kept).unwrap_or(self.chunk * 2);
        next.clamp(CHUNK_MIN, CHUNK_MAX)
    }

    /// Behind which row the next page begins.
    fn left_at(&self) -> StreamPlace {
        match self.read.front() {
            Some(Fetched { place: (second, version), .. }) => (*second, version - 1),
            None => self.at,
        }
    }

    fn read_queue(&mut self, budget: &mut Budget) -> dayfly_storage::Result<()> {
        let range = keys::due_after(Timestamp(self.at.0), self.at.1);
        let due = self.snapshot.scan(self.bucket, &range, Direction::Forward, self.chunk)?;
        self.is_end = due.len() < self.chunk;
        let place = |key: &[u8]| keys::due_second(key).zip(keys::due_version(key));
        let places: Option<Vec<StreamPlace>> = due.iter().map(|(key, _)| place(key)).collect();
        let places = places.ok_or_else(|| broken("a queue row"))?;
        let feed: Vec<Vec<u8>> = places.iter().map(|(_, version)| keys::feed(*version)).collect();
        let asked: Vec<&[u8]> = feed.iter().map(Vec::as_slice).collect();
        let rows = self.snapshot.get_many(self.bucket, &asked)?;
        for ((place, key), row) in places.into_iter().zip(&feed).zip(rows) {
            self.at = place;
            let row = row.ok_or_else(|| broken("a queue row without its item"))?;
            self.keep(place, key, &row, budget)?;
        }
        Ok(())
    }

    fn read_feed(&mut self, budget: &mut Budget) -> dayfly_storage::Result<()> {
        let range = keys::feed_after(self.at.1);
        let rows = self.snapshot.scan(self.bucket, &range, Direction::Forward, self.chunk)?;
        self.is_end = rows.len() < self.chunk;
        let mut second = Timestamp(0);
        for (key, row) in &rows {
            let version = keys::feed_version(key).ok_or_else(|| broken("a feed row"))?;
            self.at = (0, version);
            second = self.keep(self.at, key, row, budget)?;
        }
        if self.read.is_empty() && !self.is_end {
            self.leap(second, &range)?;
        }
        Ok(())
    }

    /// Keeps a row of the feed if it is of this stream. Says when it was written.
    fn keep(
        &mut self,
        place: StreamPlace,
        key: &[u8],
        row: &[u8],
        budget: &mut Budget,
    ) -> dayfly_storage::Result<Timestamp> {
        self.looked += 1;
        let (ts, life) = FeedRow::glance(row)?;
        if self.kind.is_of(life) {
            let row = FeedRow::decode(key, row)?;
            if !self.liveness.is_dead(&row) {
                let FeedRow { life, docno, bytes, .. } = row;
                self.kept += 1;
                self.read.push_back(Fetched { place, life, docno, bytes });
                return Ok(ts);
            }
        }
        if self.read.is_empty() {
            budget.spend_one();
        }
        Ok(ts)
    }

    /// Goes on where the next living item can be that was written in `second` or later.
    fn leap(&mut self, second: Timestamp, range: &KeyRange) -> dayfly_storage::Result<()> {
        let get_many = |keys: &[&[u8]]| self.snapshot.get_many(self.bucket, keys);
        let lives = Lives::new(&get_many);
        let (classes, from): (&[Class], u64) = match self.kind {
            Kind::Default => (&Class::BY_DEFAULT, second.0.max(self.cuts.inherit.0 + 1)),
            Kind::ByTtl | Kind::Never => (&[Class::Never], second.0),
        };
        let mut next: Option<Timestamp> = None;
        for class in classes {
            next = next.into_iter().chain(lives.first(*class, from)?).min();
        }
        let Some(next) = next else {
            self.is_end = true;
            return Ok(());
        };
        if next > second {
            let rest = KeyRange { start: keys::feed(self.at.1 + 1), end: range.end.clone() };
            let is_before = |ts: Timestamp| ts < next;
            match record::first_commit(self.snapshot, self.bucket, &rest, &is_before)? {
                Some(commit) => {
                    let before = version::first_version(commit).saturating_sub(1);
                    self.at = self.at.max((0, before));
                }
                None => self.is_end = true,
            }
        }
        Ok(())
    }
}

fn broken(what: &str) -> dayfly_storage::Error {
    dayfly_storage::Error::Corrupt(what.to_owned())
}
