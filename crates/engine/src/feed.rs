//! The change feed: what was written, in the order of the commits.
//!
//! ```text
//! place     how far somebody has read, as a token
//! shown     a change as clients see it
//! ```
//!
//! **A place is a commit.** Each bucket counts its own, so a place is the last commit that
//! was looked at, in one bucket or in several. A page ends between two commits: what one of
//! them wrote comes together, also where that is more than was asked for. A place says
//! nothing of rows, so it stays good when they are written, expire or are purged, over a
//! restart, and in whatever ranges a bucket is divided.
//!
//! **The latest versions** are the rows of the bucket's feed, of which an item has one: at
//! the commit that wrote it last. What is dead is in no page.
//!
//! A page looks at so many rows at most, and goes on behind what it does not show until
//! then: clients take an empty page for the end.

mod place;
mod shown;

use dayfly_model::charge::Charge;
use dayfly_model::{Error, Result, Timestamp};
use dayfly_storage::{Bucket, Direction};

use self::place::Places;
use self::shown::Shown;
use crate::index::Barren;
use crate::keys;
use crate::liveness::Liveness;
use crate::operation::{ChangesFrom, FeedMode, Page, ReadChanges};
use crate::pages::limit;
use crate::parts::{Scope, scopes};
use crate::record::{self, FeedRow};
use crate::reply::{Reply, Success, storage_failed};
use crate::scope::Opened;
use crate::version;

/// The largest page, in bytes of items, unless one commit has more.
const PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How many rows are read at once, at least and at most.
const CHUNK_MIN: usize = 16;
const CHUNK_MAX: usize = 512;

/// Shows what changed in a part of a container.
pub(crate) fn changes(opened: &Opened, asked: &ReadChanges) -> Reply {
    let outcome = FeedPage::new(opened, asked).and_then(FeedPage::run);
    outcome.unwrap_or_else(|error| opened.failed(error)).at(opened.place(&asked.part))
}

/// One page of changes on its way.
struct FeedPage<'a> {
    opened: &'a Opened,
    /// Where to read, in this order, and from where on.
    courses: Vec<FeedCourse>,
    shown: Shown<'a>,
    size: PageSize,
    /// Whether somebody asked for nothing but where the feed is now.
    is_from_now: bool,
}

/// What of one bucket is read.
struct FeedCourse {
    bucket: Bucket,
    scope: Scope,
    /// The last commit that was looked at.
    after: u64,
}

/// How much a page has, and how much it may.
struct PageSize {
    limit: usize,
    looks: u64,
    count: usize,
    bytes: u64,
    looked_at: u64,
}

impl PageSize {
    /// Whether nothing more comes on this page, once a commit is complete.
    fn is_full(&self) -> bool {
        self.count >= self.limit || self.bytes >= PAGE_BYTES_MAX || self.looked_at >= self.looks
    }
}

impl<'a> FeedPage<'a> {
    fn new(opened: &'a Opened, asked: &ReadChanges) -> Result<Self> {
        let ReadChanges { part, mode, from, since, .. } = asked;
        let container = &opened.container;
        let scopes = scopes(container, part)?;
        opened.check_session(&opened.touched(part)?)?;
        if *mode == FeedMode::AllVersions {
            return Err(Error::not_yet("The change feed with all versions and deletes"));
        }
        let page = Page { limit: asked.limit, continuation: None };
        let size = PageSize {
            limit: limit(&page),
            looks: opened.limits.feed_looks,
            count: 0,
            bytes: 0,
            looked_at: 0,
        };
        let places = match from {
            ChangesFrom::After(token) => Some(Places::read(token)?),
            ChangesFrom::Beginning | ChangesFrom::Now => None,
        };
        let is_from_now = matches!(from, ChangesFrom::Now);
        let is_only = scopes.len() == 1;
        let mut courses = Vec::with_capacity(scopes.len());
        for (bucket, scope) in scopes {
            let last = opened.snapshot.head(bucket).lsn;
            let mut after = match &places {
                Some(places) => places.of(bucket, is_only)?,
                None if is_from_now => last,
                None => 0,
            };
            if after > last {
                return Err(beyond(after, last));
            }
            if let Some(since) = since.filter(|_| !is_from_now) {
                after = after.max(last_before(opened, bucket, since, last)?);
            }
            courses.push(FeedCourse { bucket, scope, after });
        }
        if let Some(places) = &places {
            courses.sort_by_key(|course| places.turn(course.bucket));
        }
        let shown = Shown::new(opened, asked.envelope);
        Ok(FeedPage { opened, courses, shown, size, is_from_now })
    }

    /// Buckets take turns: the one behind that which filled a page begins the next.
    fn run(mut self) -> Result<Reply> {
        let mut courses = std::mem::take(&mut self.courses);
        let mut turned = 0;
        for (place, course) in (1..).zip(&mut courses) {
            if !self.is_from_now && self.read(course)? {
                turned = place % courses.len();
                break;
            }
        }
        courses.rotate_left(turned);
        let places = Places::of_courses(courses.iter().map(|course| (course.bucket, course.after)));
        let is_end = turned == 0;
        let etag = Some(places.to_etag());
        let (success, charge) = if is_end && self.size.count == 0 {
            (Success { status: 304, ..Success::default() }, Charge::NOTHING)
        } else {
            let (body, charge) = self.shown.into_body();
            (Success::new(200, body), charge)
        };
        let success = Success { etag, item_count: Some(self.size.count), ..success };
        Ok(Reply::ok(success, self.opened.now(), charge.or_miss()))
    }

    /// Reads on in a bucket. `true`: the page ends here.
    fn read(&mut self, course: &mut FeedCourse) -> Result<bool> {
        let (snapshot, bucket) = (&*self.opened.snapshot, course.bucket);
        let last = snapshot.head(bucket).lsn;
        if course.after == last {
            return Ok(false);
        }
        let liveness = Liveness::of(snapshot, bucket).map_err(storage_failed)?;
        let limits = &self.opened.limits;
        let mut barren = Barren::new(snapshot, bucket, Direction::Forward, limits);
        let mut range = keys::feed_after(version::last_version(course.after));
        // The commit that is being read; it may go on in the next chunk.
        let mut reading = course.after;
        loop {
            let wanted = (self.size.limit - self.size.count.min(self.size.limit)).max(CHUNK_MIN);
            let chunk = wanted.min(CHUNK_MAX);
            let rows = snapshot.hints().scan_alive(bucket, &range, Direction::Forward, chunk);
            let rows = rows.map_err(storage_failed)?;
            if rows.is_empty() {
                course.after = last;
                return Ok(false);
            }
            let before = range.clone();
            let (mut numbers, mut dead, mut is_over) = (Vec::new(), 0, false);
            let mut passed = 0;
            for (key, row) in &rows {
                let row = FeedRow::decode(key, row).map_err(storage_failed)?;
                let lsn = version::lsn_of(row.version);
                if lsn > reading && self.size.is_full() {
                    is_over = true;
                    break;
                }
                reading = lsn;
                passed += 1;
                self.size.looked_at += 1;
                range.go_behind(key);
                if liveness.is_dead(&row) {
                    dead += 1;
                } else if course.scope.contains(row.partition().bytes()) {
                    self.size.count += 1;
                    self.size.bytes += row.bytes;
                    numbers.push(row.docno);
                }
            }
            barren.walked(before, &range, passed, dead);
            let records = record::named(snapshot, bucket, &numbers).map_err(storage_failed)?;
            for record in &records {
                self.shown.latest(record);
            }
            if is_over {
                course.after = reading;
                return Ok(true);
            }
        }
    }
}

/// The last commit before a second, of those up to `last`.
fn last_before(opened: &Opened, bucket: Bucket, since: Timestamp, last: u64) -> Result<u64> {
    let is_before = |ts| ts < since;
    let all = keys::feed_after(0);
    let first = record::first_commit(&*opened.snapshot, bucket, &all, &is_before);
    Ok(first.map_err(storage_failed)?.map_or(last, |lsn| lsn.saturating_sub(1)))
}

/// Whoever has such a token has it from another container, or from another store: to say
/// that nothing is new would hide every change until this one has come as far.
fn beyond(after: u64, last: u64) -> Error {
    Error::bad_request(format!(
        "The change feed cannot go on after commit {after}: the last one is {last}. The \
         container was created anew, or the token is that of another one."
    ))
}
