//! The purge removes what nobody can see any more: expired items, and the
//! buckets of deleted containers. It is never observable.
//!
//! ```text
//! deadlines   which bucket is due, and when the next one is
//! pacer       how much at once, and how long to rest, by what users do
//! unit        one commit: burials, and how far the cursors have come
//! clear       what deleted containers left
//! tally       what was done, in numbers
//! ```
//!
//! A bucket has two queues in the order of death: the feed, where items that
//! live by the container's default stand in the order of their `_ts`, and the
//! queue of items with a `ttl`. A unit takes from the heads of both.
//!
//! The background calls [`turn`] again and again, and rests as it says; when
//! nothing is due that is a glance at the clock, once a second. [`run`] is for
//! an operator who waits, [`all`] for tests. Whoever it is, there is one unit
//! at a time.

mod clear;
mod deadlines;
mod pacer;
mod tally;
mod unit;

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::clock::PurgeHold;
use dayfly_storage::{Bucket, Second, commit_on};
use serde_json::json;

pub(crate) use self::clear::clear_bucket;
use self::deadlines::After;
pub(crate) use self::deadlines::{Deadlines, Tell};
use self::pacer::{ByUsers, Load, Meter, PERIOD, Pace, Pacer, awaited};
use self::tally::Tally;
pub use self::tally::{LAG_SECONDS, Lag, PurgeFigures};
use self::unit::{Cursor, Look, Part};
use crate::index::Runs;
use crate::index::rebuild::{self, Size, Turn};
use crate::reply::{Reply, Success, storage_failed};
use crate::{Shared, figures, keys, stopped};

/// How often a run tries a unit again that failed, and what it rests before.
const TRIES: usize = 3;
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// How many containers are looked at to say how many expired items there are.
const COUNTED_CONTAINERS: usize = 10_000;

/// What the purge of a container is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeState {
    /// Nothing is due.
    Idle,
    /// It removes what is due.
    Running,
    /// An operator stopped it.
    Paused,
    /// It waits until the clock is trusted again.
    Held,
}

impl PurgeState {
    /// As the admin API calls it.
    pub fn name(self) -> &'static str {
        match self {
            PurgeState::Idle => "idle",
            PurgeState::Running => "running",
            PurgeState::Paused => "paused",
            PurgeState::Held => "held",
        }
    }
}

/// How the purge of a container stands.
#[derive(Clone, Debug, PartialEq)]
pub struct PurgeStatus {
    /// What it is doing.
    pub state: PurgeState,
    /// Why it rests, or what went wrong last.
    pub reason: Option<String>,
    /// How many items it removes a second, over the last seconds.
    pub items_per_second: f64,
    /// How many items it removed since the start.
    pub purged_items: u64,
}

/// Where the purge stands.
pub(crate) struct Purge {
    pub(crate) deadlines: Arc<Deadlines>,
    /// Whether a deleted container may have left something.
    condemned: AtomicBool,
    /// Which bucket is being cleared, and from where on.
    clearing: Mutex<Option<(Bucket, Vec<u8>)>>,
    /// Whether the last turn cleared, so that clearing and burying alternate.
    cleared: AtomicBool,
    /// All buckets had a look since the start, or stand in line for it.
    filled: AtomicBool,
    /// Held by whoever makes a unit.
    unit: Mutex<()>,
    /// Commits made here.
    units: AtomicU64,
    /// Where the index of a bucket lost something since the store was told.
    runs: Mutex<HashMap<Bucket, Runs>>,
    pacer: Box<dyn Pacer>,
    meter: Meter,
    paused: Mutex<Paused>,
    /// Whether the log says that the purge is held.
    told_held: AtomicBool,
    tally: Tally,
    stop: Stop,
}

/// What an operator stopped. A restart forgets it.
#[derive(Default)]
struct Paused {
    all: bool,
    containers: HashSet<u32>,
}

impl Default for Purge {
    fn default() -> Self {
        Purge {
            deadlines: Arc::default(),
            condemned: AtomicBool::new(false),
            clearing: Mutex::default(),
            cleared: AtomicBool::new(false),
            filled: AtomicBool::new(false),
            unit: Mutex::default(),
            units: AtomicU64::new(0),
            runs: Mutex::default(),
            pacer: Box::new(ByUsers),
            meter: Meter::default(),
            paused: Mutex::default(),
            told_held: AtomicBool::new(false),
            tally: Tally::default(),
            stop: Stop::default(),
        }
    }
}

impl Purge {
    /// A container was deleted, or may have been: its buckets are to be
    /// cleared.
    pub(crate) fn condemned(&self) {
        self.condemned.store(true, Ordering::SeqCst);
    }

    /// Ends what is under way, soon.
    pub(crate) fn stop(&self) {
        self.stop.tell();
    }

    /// A container's bucket is gone, and nothing is kept of it here.
    fn forget(&self, bucket: Bucket) {
        self.deadlines.forget(bucket);
        lock(&self.runs).remove(&bucket);
        if let Some(container) = keys::container_of(bucket) {
            self.tally.forget(container);
            lock(&self.paused).containers.remove(&container);
        }
    }

    /// What was done since the start.
    pub(crate) fn figures(&self) -> PurgeFigures {
        self.tally.figures()
    }

    /// How many items of each container were removed since the start.
    pub(crate) fn all_purged(&self) -> HashMap<u32, u64> {
        self.tally.all_purged()
    }

    /// Whether an operator paused it, in all containers or in some.
    pub(crate) fn is_paused_somewhere(&self) -> bool {
        let paused = lock(&self.paused);
        paused.all || !paused.containers.is_empty()
    }

    fn is_paused(&self, container: Option<u32>) -> bool {
        let paused = lock(&self.paused);
        paused.all || container.is_some_and(|number| paused.containers.contains(&number))
    }

    fn load(&self, shared: &Shared, backlog: bool) -> Load {
        self.meter.load(&*shared.store, self.units.load(Ordering::Relaxed), backlog)
    }
}

/// One turn of the background: at most one unit, and at most one of a rebuild of
/// an index, which goes on at the same pace. Returns how long to rest before the
/// next.
pub(crate) fn turn(shared: &Shared) -> Duration {
    if let Err(error) = shared.finish_installs() {
        tracing::warn!(%error, "a container's definition did not reach all its buckets");
    }
    remove_in_turn(shared).min(rebuild_in_turn(shared))
}

/// Rebuilds some of an index whose policy changed.
fn rebuild_in_turn(shared: &Shared) -> Duration {
    let purge = &shared.purge;
    if shared.index.line.is_empty() {
        return PERIOD;
    }
    let pace = purge.pacer.pace(purge.load(shared, true));
    let Pace { items, urgency, .. } = pace;
    match rebuild::turn(shared, Size { items, bytes: pace.bytes() as u64, urgency }) {
        Ok(Turn::Idle) => PERIOD,
        Ok(Turn::Looked) => pace.rest,
        Ok(Turn::Committed) => {
            purge.units.fetch_add(1, Ordering::Relaxed);
            pace.rest
        }
        Err(error) => {
            tracing::warn!(%error, "an index was not rebuilt and is tried again");
            PERIOD
        }
    }
}

/// Removes some of what nobody can see.
fn remove_in_turn(shared: &Shared) -> Duration {
    let purge = &shared.purge;
    if !purge.filled.swap(true, Ordering::Relaxed) {
        look_at_all(shared, None);
    }
    let clock = shared.store.glance();
    tell_held(shared, clock.purge_hold);
    if clock.purge_hold.is_some() || purge.is_paused(None) {
        return PERIOD;
    }
    let has_due = purge.deadlines.wake(clock.now);
    let to_clear = purge.condemned.load(Ordering::SeqCst);
    if !has_due && !to_clear {
        return PERIOD;
    }

    let pace = purge.pacer.pace(purge.load(shared, true));
    let clears = to_clear && (!has_due || !purge.cleared.load(Ordering::Relaxed));
    purge.cleared.store(clears, Ordering::Relaxed);
    let mut stuck = false;
    if clears {
        stuck = !clear_in_turn(shared, pace);
    } else if let Some(bucket) = purge.deadlines.take() {
        bury_in_turn(shared, bucket, pace, clock.now);
    }

    let backlog = purge.deadlines.wake(shared.store.glance().now)
        || (!stuck && purge.condemned.load(Ordering::SeqCst));
    purge.pacer.pace(purge.load(shared, backlog)).rest
}

/// Gives `bucket` its turn. What fails, or panics, is tried again later; the
/// others go on.
fn bury_in_turn(shared: &Shared, bucket: Bucket, pace: Pace, now: Second) {
    let purge = &shared.purge;
    let container = keys::container_of(bucket);
    if purge.is_paused(container) {
        // Resuming looks at it again.
        return purge.deadlines.settle(bucket, After::Next(None));
    }
    let stepped = catch_unwind(AssertUnwindSafe(|| step(shared, bucket, pace)));
    let stepped = stepped.unwrap_or_else(|_| {
        let why = "the purge of this bucket panicked; this is a bug".to_owned();
        Err(dayfly_storage::Error::Unavailable(why))
    });
    let (after, failure) = match stepped {
        // The store's time may stand a little behind what a glance shows.
        Ok(After::Next(Some(at))) => (After::Next(Some(at.max(now.saturating_add(1)))), None),
        Ok(after) => (after, None),
        Err(error) => {
            tracing::warn!(%error, bucket = bucket.0, "a purge failed and is tried again");
            (After::Failed(now), Some(error.to_string()))
        }
    };
    purge.deadlines.settle(bucket, after);
    if after == After::Gone {
        purge.forget(bucket);
    } else if let Some(container) = container {
        purge.tally.looked(container, failure);
    }
}

/// Clears some of what deleted containers left. `false`: nothing could be done.
fn clear_in_turn(shared: &Shared, pace: Pace) -> bool {
    let _unit = lock(&shared.purge.unit);
    clear::step(shared, pace).unwrap_or_else(|error| {
        tracing::warn!(%error, "a deleted container was not cleared and is tried again");
        false
    })
}

/// One look at a bucket, and one unit if something is due.
fn step(shared: &Shared, bucket: Bucket, pace: Pace) -> dayfly_storage::Result<After> {
    let _unit = lock(&shared.purge.unit);
    let look = unit::look(&*shared.store.snapshot()?, bucket, pace, Part::default(), &shared.index);
    commit(shared, bucket, look?, |_| Ok(None)).map(|(after, _)| after)
}

/// The units of a bucket, one after the other, up to what was due at some time.
/// While one is on its way to the disk, the next one is read.
struct Steps<'a> {
    shared: &'a Shared,
    bucket: Bucket,
    until: Timestamp,
    ahead: Option<Look>,
}

impl<'a> Steps<'a> {
    fn new(shared: &'a Shared, bucket: Bucket, until: Timestamp) -> Steps<'a> {
        Steps { shared, bucket, until, ahead: None }
    }

    fn step(&mut self, pace: Pace) -> dayfly_storage::Result<After> {
        let Steps { shared, bucket, until, .. } = *self;
        let _unit = lock(&shared.purge.unit);
        let look = |behind| {
            let part = Part { behind, until: Some(until) };
            unit::look(&*shared.store.snapshot()?, bucket, pace, part, &shared.index)
        };
        let now = self.ahead.take().map_or_else(|| look(None), Ok)?;
        let (after, ahead) = commit(shared, bucket, now, |end| look(Some(end)).map(Some))?;
        self.ahead = ahead;
        Ok(after)
    }
}

/// Commits what a look found, and does something `meanwhile`, if more is due
/// behind its end. What that brings is of use only if the whole unit was taken.
fn commit(
    shared: &Shared,
    bucket: Bucket,
    look: Look,
    meanwhile: impl FnOnce(Cursor) -> dayfly_storage::Result<Option<Look>>,
) -> dayfly_storage::Result<(After, Option<Look>)> {
    let purge = &shared.purge;
    let (unit, more, next) = match look {
        Look::Gone => return Ok((After::Gone, None)),
        Look::Nothing(next) => return Ok((After::Next(next), None)),
        Look::Due { unit, more, next } => (unit, more, next),
    };
    let end = unit.end();
    let snapshot = shared.store.snapshot()?;
    let ticket = commit_on(&*shared.store, &*snapshot, bucket, unit);
    drop(snapshot);
    let ahead = if more { meanwhile(end) } else { Ok(None) };
    let buried = ticket.wait()?;
    purge.units.fetch_add(1, Ordering::Relaxed);
    if let Some(container) = keys::container_of(bucket) {
        purge.tally.buried(container, &buried);
    }
    let is_cut = buried.cut;
    let more = more || is_cut;
    tell_emptied(shared, bucket, &buried.runs, more);
    let after = if more { After::More } else { After::Next(next) };
    Ok((after, if is_cut { None } else { ahead? }))
}

/// Tells the store where the index lost much. What small units took is gathered.
fn tell_emptied(shared: &Shared, bucket: Bucket, runs: &Runs, more: bool) {
    let mut gathered = lock(&shared.purge.runs);
    let all = gathered.entry(bucket).or_default();
    all.join(runs);
    if more && !all.is_long() {
        return;
    }
    let emptied = all.emptied();
    gathered.remove(&bucket);
    drop(gathered);
    shared.store.emptied(bucket, &emptied);
}

/// Removes everything that is due, at once, also what is paused or held.
/// Returns how many items went. What fails in one bucket does not hold up the
/// others; the first failure is the answer.
pub(crate) fn all(shared: &Shared) -> Result<u64> {
    let purge = &shared.purge;
    let before = purge.tally.purged_items(None);
    let mut failure = shared.finish_installs().err();
    let until = now(shared)?;
    for bucket in buckets(shared, None) {
        let mut steps = Steps::new(shared, bucket, until);
        let mut outcome = Ok(After::More);
        while outcome == Ok(After::More) {
            outcome = steps.step(Pace::FULL);
        }
        if let Err(error) = outcome {
            failure.get_or_insert_with(|| storage_failed(error));
        }
    }
    let _unit = lock(&purge.unit);
    while clear::step(shared, Pace::FULL)? {
        tracing::debug!("a part of a deleted container was cleared");
    }
    failure.map_or_else(|| Ok(purge.tally.purged_items(None) - before), Err)
}

/// Removes what was due at `until`, in one container or in all, for somebody
/// who waits. Works also while the purge is paused: the operator asked.
pub(crate) fn run(shared: &Shared, container: Option<u32>, until: Timestamp) -> Reply {
    let purge = &shared.purge;
    if let Some(hold) = shared.store.glance().purge_hold {
        return held(hold).into();
    }
    let before = purge.tally.purged_items(container);
    let outcome = buckets(shared, container)
        .into_iter()
        .try_for_each(|bucket| drain(shared, bucket, until))
        .and_then(|()| now(shared));
    match outcome {
        Ok(now) => {
            let purged = purge.tally.purged_items(container).saturating_sub(before);
            let body = json!({ "purgedItems": purged }).to_string();
            Reply::ok(Success::new(200, body), now, 0.0)
        }
        Err(error) => error.into(),
    }
}

/// Removes what was due in `bucket` at `until`.
fn drain(shared: &Shared, bucket: Bucket, until: Timestamp) -> Result<()> {
    let purge = &shared.purge;
    let mut tries = TRIES;
    let mut steps = Steps::new(shared, bucket, until);
    loop {
        if let Some(hold) = shared.store.glance().purge_hold {
            return Err(held(hold));
        }
        let pace = awaited(&*purge.pacer, purge.load(shared, true));
        let rest = match steps.step(pace) {
            Ok(After::More) => pace.rest,
            Ok(_) => return Ok(()),
            Err(error) if tries == 0 => return Err(storage_failed(error)),
            Err(_) => {
                tries -= 1;
                TRY_AGAIN
            }
        };
        if purge.stop.rest(rest) {
            return Err(stopped());
        }
    }
}

fn held(hold: PurgeHold) -> Error {
    let what_to_do = "Accept it by POST {\"accept\":true} to /_admin/v1/clock, or set the clock \
                      right, then send the request again.";
    Error::new(ErrorKind::ServiceUnavailable, format!("{hold} {what_to_do}"))
}

/// Tells a person, once, what is kept on the disk because the clock may be
/// wrong, so that there is time to set it right.
fn tell_held(shared: &Shared, hold: Option<PurgeHold>) {
    let was_told = shared.purge.told_held.swap(hold.is_some(), Ordering::Relaxed);
    if was_told {
        return;
    }
    let Some(hold) = hold else { return };
    match figures::dead_items(shared, COUNTED_CONTAINERS) {
        Ok(0) => tracing::info!("nothing is removed from the disk. {hold}"),
        Ok(items) => tracing::warn!(
            "{items} expired items are hidden, and are kept on the disk. {hold} GET \
             /_admin/v1/clock tells how it stands"
        ),
        Err(error) => tracing::warn!(%error, "nothing is removed from the disk. {hold}"),
    }
}

/// Stops the background purge of one container, or of all. Says whether it is
/// paused now.
pub(crate) fn pause(shared: &Shared, container: Option<u32>) -> bool {
    let mut paused = lock(&shared.purge.paused);
    match container {
        Some(container) => {
            paused.containers.insert(container);
        }
        None => paused.all = true,
    }
    true
}

/// Lets the purge of one container go on, or of all. Says whether it is paused
/// still, as one is while all are.
pub(crate) fn resume(shared: &Shared, container: Option<u32>) -> bool {
    {
        let mut paused = lock(&shared.purge.paused);
        match container {
            Some(container) => {
                paused.containers.remove(&container);
            }
            None => *paused = Paused::default(),
        }
    }
    look_at_all(shared, container);
    shared.purge.is_paused(container)
}

/// How the purge of a container stands.
pub(crate) fn status(shared: &Shared, container: u32) -> PurgeStatus {
    let purge = &shared.purge;
    let clock = shared.store.glance();
    let (items_per_second, failure) = purge.tally.state_of(container, clock.now);
    let (state, reason) = if purge.is_paused(Some(container)) {
        (PurgeState::Paused, Some("An operator paused it.".to_owned()))
    } else if let Some(hold) = clock.purge_hold {
        (PurgeState::Held, Some(hold.to_string()))
    } else if purge.deadlines.at_work().contains(&container) {
        (PurgeState::Running, failure)
    } else {
        (PurgeState::Idle, failure)
    };
    let purged_items = purge.tally.purged_items(Some(container));
    PurgeStatus { state, reason, items_per_second, purged_items }
}

/// Has the background look at the buckets of one container, or of all.
fn look_at_all(shared: &Shared, container: Option<u32>) {
    for bucket in buckets(shared, container) {
        shared.purge.deadlines.look_at(bucket);
    }
}

/// The buckets of one container, or of all.
fn buckets(shared: &Shared, container: Option<u32>) -> Vec<Bucket> {
    let mut buckets = shared.store.buckets();
    buckets.retain(|bucket| {
        let number = keys::container_of(*bucket);
        number.is_some() && (container.is_none() || container == number)
    });
    buckets
}

fn now(shared: &Shared) -> Result<Timestamp> {
    shared.store.snapshot().map(|snapshot| Timestamp(snapshot.now())).map_err(storage_failed)
}

/// Says that it is time to end.
#[derive(Default)]
struct Stop {
    is_told: Mutex<bool>,
    told: Condvar,
}

impl Stop {
    fn tell(&self) {
        *lock(&self.is_told) = true;
        self.told.notify_all();
    }

    /// Rests. `true`: it is time to end.
    fn rest(&self, rest: Duration) -> bool {
        let is_told = lock(&self.is_told);
        let waited = self.told.wait_timeout_while(is_told, rest, |is_told| !*is_told);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Locks `mutex`, also after a thread panicked with it: what is under our locks
/// is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
