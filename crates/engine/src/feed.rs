//! The change feed: what was written, in the order of the commits.
//!
//! ```text
//! place     how far somebody has read, as a token
//! shown     a change as clients see it
//! latest    the newest version of each item that is alive
//! few       the same, of few items among very many
//! versions  every version, and how each item ended
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
//! **All versions** are the rows of its log. Who asks for them where there is no log begins
//! one, unless the container's definition says that there is to be none. They are read from
//! now on, or from a place; what came after a place must not be older than the log keeps it.
//!
//! A page looks at so many rows at most, and goes on behind what it does not show until
//! then: clients take an empty page for the end. So one that has found nothing until then
//! goes on for much longer, on a thread for queries and on their leash; and before that, a
//! page of the latest versions asks whether there are but few items that could be on it.

mod few;
mod latest;
mod place;
mod shown;
mod versions;

use dayfly_model::charge::Charge;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_sql::run::Steps;
use dayfly_storage::{Bucket, commit};

use self::place::Places;
use self::shown::Shown;
use crate::clerk::Clerk;
use crate::head::{LogState, State};
use crate::keys;
use crate::log::{self, BeginLog};
use crate::operation::{ChangesFrom, FeedMode, Page, ReadChanges};
use crate::pages::limit;
use crate::parts::{Scope, scopes};
use crate::record;
use crate::reply::{Reply, Success, storage_failed};
use crate::scope::Opened;

/// The largest page, in bytes of items, unless one commit has more.
const PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How many bytes of a log are read for a page, of whatever items.
const LOG_BYTES_MAX: u64 = 16 * PAGE_BYTES_MAX;

/// How many rows are read at once, at least and at most.
const CHUNK_MIN: usize = 16;
const CHUNK_MAX: usize = 512;

/// What a request for changes came to.
pub(crate) enum Changes {
    Shown(Reply),
    /// Nothing was found so far, and there is more to look at: a page that has nothing, for
    /// whoever cannot [go on](go_on).
    Nothing(Reply),
    /// There is no log yet: it has to [begin](begin).
    HasNoLog,
}

/// Why a page is not shown.
enum Unshown {
    Failed(Error),
    HasNoLog,
}

impl From<Error> for Unshown {
    fn from(error: Error) -> Unshown {
        Unshown::Failed(error)
    }
}

/// Shows what changed in a part of a container.
pub(crate) fn changes(opened: &Opened, asked: &ReadChanges) -> Changes {
    read(opened, asked, None)
}

/// The same for as long as it takes to find something, within limits.
pub(crate) fn go_on(opened: &Opened, asked: &ReadChanges, steps: &Steps<'_>) -> Reply {
    match read(opened, asked, Some(steps)) {
        Changes::Shown(reply) | Changes::Nothing(reply) => reply,
        Changes::HasNoLog => opened.failed(is_off()).at(opened.place(&asked.part)),
    }
}

fn read(opened: &Opened, asked: &ReadChanges, steps: Option<&Steps<'_>>) -> Changes {
    let outcome = FeedPage::new(opened, asked, steps).and_then(|page| Ok(page.run()?));
    let (reply, is_in_vain) = match outcome {
        Ok(page) => page,
        Err(Unshown::HasNoLog) => return Changes::HasNoLog,
        Err(Unshown::Failed(error)) => (opened.failed(error), false),
    };
    let reply = reply.at(opened.place(&asked.part));
    if is_in_vain { Changes::Nothing(reply) } else { Changes::Shown(reply) }
}

/// Begins the log of a container, then shows what is asked.
pub(crate) fn begin(clerk: &Clerk<'_>, asked: &ReadChanges) -> Reply {
    let shared = clerk.shared();
    let opened = match shared.enter_part(&asked.at, &asked.part) {
        Ok(opened) => opened,
        Err(reply) => return reply,
    };
    let given = opened.container.definition().feed_minutes();
    let plan = BeginLog {
        minutes: given.unwrap_or(clerk.settings().feed_retention_minutes),
        by_definition: given.is_some(),
    };
    let lacks = |bucket: &Bucket| !log::is_on(&State::of(&opened.snapshot.head(*bucket)));
    if plan.minutes > 0 {
        for bucket in opened.container.buckets().filter(lacks) {
            let begun = commit(&*shared.store, bucket, plan).wait();
            // An operator may have paused the purge where nobody was told of an end.
            shared.deadlines.look_at(bucket);
            if let Err(reply) = begun {
                return reply.at(opened.place(&asked.part));
            }
        }
    }
    drop(opened);
    shared.in_container(&asked.at, &asked.part, |opened| match changes(opened, asked) {
        Changes::Shown(reply) | Changes::Nothing(reply) => reply,
        Changes::HasNoLog => opened.failed(is_off()).at(opened.place(&asked.part)),
    })
}

/// One page of changes on its way.
struct FeedPage<'a> {
    opened: &'a Opened,
    mode: FeedMode,
    /// Where to read, in this order, and from where on.
    courses: Vec<FeedCourse>,
    shown: Shown<'a>,
    size: PageSize,
    /// Who lets it go on while it finds nothing; none: it is read while somebody waits.
    steps: Option<&'a Steps<'a>>,
    /// Whether somebody asked for nothing but where the feed is now.
    is_from_now: bool,
}

/// What of one bucket is read.
struct FeedCourse {
    bucket: Bucket,
    scope: Scope,
    /// The last commit that was looked at.
    after: u64,
    /// What is told of every version, if that is asked for.
    log: Option<LogState>,
}

/// How much a page has, and how much it may.
struct PageSize {
    limit: usize,
    looks: u64,
    looks_in_vain: u64,
    count: usize,
    bytes: u64,
    looked_at: u64,
    bytes_looked_at: u64,
}

impl PageSize {
    /// Whether nothing more comes on this page, once a commit is complete.
    fn is_full(&self) -> bool {
        let is_tired = self.looked_at >= self.looks || self.bytes_looked_at >= LOG_BYTES_MAX;
        self.has_enough() || is_tired && (self.count > 0 || self.looked_at >= self.looks_in_vain)
    }

    /// Whether it shows as much as it may.
    fn has_enough(&self) -> bool {
        self.count >= self.limit || self.bytes >= PAGE_BYTES_MAX
    }

    /// How many more items have room.
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.count)
    }
}

impl<'a> FeedPage<'a> {
    fn new(
        opened: &'a Opened,
        asked: &ReadChanges,
        steps: Option<&'a Steps<'a>>,
    ) -> Result<Self, Unshown> {
        let ReadChanges { part, mode, from, since, .. } = asked;
        let scopes = scopes(&opened.container, part)?;
        opened.check_session(&opened.touched(part)?)?;
        let has_log = *mode == FeedMode::AllVersions;
        if has_log {
            check_start(from, *since)?;
        }
        let places = match from {
            ChangesFrom::After(token) => Some(Places::read(token)?),
            ChangesFrom::Beginning | ChangesFrom::Now => None,
        };
        let is_from_now = matches!(from, ChangesFrom::Now);
        let is_only = scopes.len() == 1;
        let mut courses = Vec::with_capacity(scopes.len());
        for (bucket, scope) in scopes {
            let head = opened.snapshot.head(bucket);
            let last = head.lsn;
            let mut after = match &places {
                Some(places) => places.of(bucket, is_only)?,
                None if is_from_now => last,
                None => 0,
            };
            if after > last {
                return Err(beyond(after, last).into());
            }
            if let Some(since) = since.filter(|_| !is_from_now) {
                after = after.max(last_before(opened, bucket, since, last)?);
            }
            let log = if has_log { Some(log_of(opened, &State::of(&head))?) } else { None };
            courses.push(FeedCourse { bucket, scope, after, log });
        }
        if let Some(places) = &places {
            courses.sort_by_key(|course| places.turn(course.bucket));
        }
        let page = Page { limit: asked.limit, continuation: None };
        let size = PageSize {
            limit: limit(&page),
            looks: opened.limits.feed_looks,
            looks_in_vain: steps.map_or(0, |_| opened.limits.feed_looks_in_vain),
            count: 0,
            bytes: 0,
            looked_at: 0,
            bytes_looked_at: 0,
        };
        let shown = Shown::new(opened, asked.envelope);
        Ok(FeedPage { opened, mode: *mode, courses, shown, size, steps, is_from_now })
    }

    /// Reads the page. Whether it has nothing though there is more to look at, too.
    ///
    /// Buckets take turns: the one behind that which filled a page begins the next, also where
    /// it was filled by the last there was.
    fn run(mut self) -> Result<(Reply, bool)> {
        let mut courses = std::mem::take(&mut self.courses);
        let mut turned = 0;
        for (place, course) in (1..).zip(&mut courses) {
            if self.is_from_now {
                break;
            }
            if self.read(course)? || self.size.is_full() {
                turned = place % courses.len();
                break;
            }
        }
        let last = |course: &FeedCourse| self.opened.snapshot.head(course.bucket).lsn;
        let is_end = courses.iter().all(|course| course.after == last(course));
        courses.rotate_left(turned);
        let places = Places::of_courses(courses.iter().map(|course| (course.bucket, course.after)));
        let etag = Some(places.to_etag());
        let (success, charge) = if is_end && self.size.count == 0 {
            (Success { status: 304, ..Success::default() }, Charge::NOTHING)
        } else {
            let (body, charge) = self.shown.into_body();
            (Success::new(200, body), charge)
        };
        let success = Success { etag, item_count: Some(self.size.count), ..success };
        let is_in_vain = !is_end && self.size.count == 0;
        Ok((Reply::ok(success, self.opened.now(), charge.or_miss()), is_in_vain))
    }

    /// Makes the steps of so many rows. Who is in a hurry takes what there is.
    fn make_steps(&mut self, rows: usize) -> Result<()> {
        let Some(steps) = self.steps else { return Ok(()) };
        steps.make(rows as u64)?;
        if steps.is_hurried() {
            self.size.looks_in_vain = 0;
        }
        Ok(())
    }

    /// Reads on in a bucket. `true`: the page ends here.
    fn read(&mut self, course: &mut FeedCourse) -> Result<bool> {
        let last = self.opened.snapshot.head(course.bucket).lsn;
        if course.after == last {
            return Ok(false);
        }
        let is_over = match self.mode {
            FeedMode::Latest => self.read_latest(course),
            FeedMode::AllVersions => self.read_versions(course),
        }?;
        if !is_over {
            course.after = last;
        }
        Ok(is_over)
    }
}

/// Every version is told from now on, or from a place.
fn check_start(from: &ChangesFrom, since: Option<Timestamp>) -> Result<()> {
    match from {
        ChangesFrom::Now => Ok(()),
        _ if since.is_some() => Err(Error::bad_request(
            "Start from beginning is not supported with 'All Versions and Deletes' mode.",
        )),
        ChangesFrom::After(_) => Ok(()),
        ChangesFrom::Beginning => Err(versions::too_old()),
    }
}

/// The log of a bucket, if it has one.
fn log_of(opened: &Opened, state: &State) -> Result<LogState, Unshown> {
    match (state.log, opened.container.definition().feed_minutes()) {
        (Some(log), _) if log.is_on() => Ok(log),
        (_, Some(0)) => Err(is_off().into()),
        _ => Err(Unshown::HasNoLog),
    }
}

/// The container's definition wants no log.
fn is_off() -> Error {
    Error::new(
        ErrorKind::BadRequest,
        "Change Feed 'All Versions and Deletes' mode must be enabled: the container's \
         changeFeedPolicy has a retentionDuration of 0.",
    )
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
