//! The purge removes what nobody can see any more: expired items, and the
//! buckets of deleted containers. It is never observable.
//!
//! ```text
//! pacer       how much at once, and how long to rest, by what users do
//! means       what it may spend, where throughput is enforced
//! candidates  the items that may go into a unit, and what they weigh
//! unit        one commit: burials, and how far the cursors have come
//! due         the next unit of a bucket, or when there will be one
//! clear       what deleted containers left
//! counters    what was done, in numbers
//! trim        the old end of the logs
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

mod candidates;
mod clear;
mod counters;
mod due;
mod means;
mod pacer;
mod trim;
mod unit;

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::clock::PurgeHold;
use dayfly_storage::{Bucket, Second, Snapshot, commit_on};
use serde_json::json;

pub(crate) use self::clear::clear_bucket;
use self::counters::Counters;
pub use self::counters::{LAG_SECONDS, Lag, PurgeFigures};
pub(crate) use self::due::passed;
use self::due::{Look, LookBounds};
pub(crate) use self::means::Means;
use self::pacer::{ByUsers, Load, LoadMeter, Pacer, awaited};
pub(crate) use self::pacer::{PERIOD, Pace};
use self::unit::Cursor;
use crate::deadlines::Outlook;
use crate::head::State;
use crate::index::Runs;
use crate::locks::lock;
use crate::metering::Chore;
use crate::reply::{Reply, Success, stopped, storage_failed};
use crate::settings::SLICES_MAX;
use crate::shared::Shared;
use crate::{figures, keys, log};

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
    shared: Arc<Shared>,
    /// Which bucket is being cleared, and from where on.
    clearing: Mutex<Option<(Bucket, Vec<u8>)>>,
    /// Whether the last turn cleared, so that clearing and burying alternate.
    cleared: AtomicBool,
    /// All buckets had a look since the start, or stand in line for it.
    filled: AtomicBool,
    /// Whose last unit was one of a deleted partition.
    swept: Mutex<HashSet<Bucket>>,
    /// Held by whoever makes a unit.
    unit: Mutex<()>,
    /// Commits made here.
    units: AtomicU64,
    /// Where the index of a bucket lost something since the store was told.
    runs: Mutex<HashMap<Bucket, Runs>>,
    pacer: Box<dyn Pacer>,
    meter: LoadMeter,
    paused: Mutex<Paused>,
    /// Whether the log says that the purge is held.
    told_held: AtomicBool,
    counters: Counters,
    stop: Stop,
}

/// What an operator stopped. A restart forgets it.
#[derive(Default)]
struct Paused {
    all: bool,
    containers: HashSet<u32>,
}

impl Purge {
    pub(crate) fn new(shared: Arc<Shared>) -> Purge {
        Purge {
            shared,
            clearing: Mutex::default(),
            cleared: AtomicBool::new(false),
            filled: AtomicBool::new(false),
            swept: Mutex::default(),
            unit: Mutex::default(),
            units: AtomicU64::new(0),
            runs: Mutex::default(),
            pacer: Box::new(ByUsers),
            meter: LoadMeter::default(),
            paused: Mutex::default(),
            told_held: AtomicBool::new(false),
            counters: Counters::default(),
            stop: Stop::default(),
        }
    }

    /// Ends what is under way, soon.
    pub(crate) fn stop(&self) {
        self.stop.tell();
    }

    /// A container's bucket is gone, and nothing is kept of it here.
    fn forget(&self, bucket: Bucket) {
        self.shared.deadlines.forget(bucket);
        if let Some(container) = keys::container_of(bucket) {
            self.shared.metering.forget(container);
        }
        lock(&self.runs).remove(&bucket);
        self.swept(bucket, false);
        if let Some(container) = keys::container_of(bucket) {
            self.counters.forget(container);
            lock(&self.paused).containers.remove(&container);
        }
    }

    /// What was done since the start.
    pub(crate) fn figures(&self) -> PurgeFigures {
        self.counters.figures()
    }

    /// How many items of each container were removed since the start.
    pub(crate) fn all_purged(&self) -> HashMap<u32, u64> {
        self.counters.all_purged()
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

    /// How much at once, and how long to rest, while there is something to do.
    pub(crate) fn pace(&self) -> Pace {
        self.pacer.pace(self.load(true))
    }

    /// What may be spent now in a bucket. Who makes room on a full disk does not ask.
    pub(crate) fn means(&self, bucket: Bucket, pace: Pace, chore: Chore) -> Means {
        let means = Means::of(&self.shared, bucket, chore);
        if pace == Pace::FULL { means.unlimited() } else { means }
    }

    /// Notes whose turn it is next in a bucket.
    fn swept(&self, bucket: Bucket, sweeps: bool) {
        let mut swept = lock(&self.swept);
        if sweeps {
            swept.insert(bucket);
        } else {
            swept.remove(&bucket);
        }
    }

    /// A commit was made in the background.
    pub(crate) fn counted(&self) {
        self.units.fetch_add(1, Ordering::Relaxed);
    }

    fn load(&self, backlog: bool) -> Load {
        self.meter.load(&*self.shared.store, self.units.load(Ordering::Relaxed), backlog)
    }
}

/// One turn of the background: at most one unit. Returns how long to rest before the
/// next.
pub(crate) fn turn(purge: &Purge) -> Duration {
    if !purge.filled.swap(true, Ordering::Relaxed) {
        look_at_all(purge, None);
    }
    let clock = purge.shared.store.glance();
    tell_held(purge, clock.purge_hold);
    if clock.purge_hold.is_some() {
        return PERIOD;
    }
    let has_due = purge.shared.deadlines.wake(clock.now);
    let may_clear = !purge.is_paused(None);
    let to_clear = may_clear && purge.shared.deadlines.has_condemned();
    if !has_due && !to_clear {
        return PERIOD;
    }

    let pace = purge.pace();
    let clears = to_clear && (!has_due || !purge.cleared.load(Ordering::Relaxed));
    purge.cleared.store(clears, Ordering::Relaxed);
    let mut stuck = false;
    if clears {
        stuck = !clear_in_turn(purge, pace);
    } else if let Some(bucket) = purge.shared.deadlines.take() {
        bury_in_turn(purge, bucket, pace, clock.now);
    }

    let backlog = purge.shared.deadlines.wake(purge.shared.store.glance().now)
        || (!stuck && may_clear && purge.shared.deadlines.has_condemned());
    purge.pacer.pace(purge.load(backlog)).rest
}

/// Gives `bucket` its turn. What fails, or panics, is tried again later; the
/// others go on.
fn bury_in_turn(purge: &Purge, bucket: Bucket, pace: Pace, now: Second) {
    let container = keys::container_of(bucket);
    let tells = || purge.shared.store.snapshot().is_ok_and(|now| tells_ends(&*now, bucket));
    if purge.is_paused(container) && !tells() {
        // Resuming looks at it again, and so does whoever begins its log.
        return purge.shared.deadlines.settle(bucket, Outlook::Next(None));
    }
    let means = purge.means(bucket, pace, Chore::Purge);
    if !means.is_there() {
        let next = Outlook::Next(Some(now.saturating_add(1)));
        return purge.shared.deadlines.settle(bucket, next);
    }
    let stepped = catch_unwind(AssertUnwindSafe(|| step(purge, bucket, pace, &means)));
    let stepped = stepped.unwrap_or_else(|_| {
        let why = "the purge of this bucket panicked; this is a bug".to_owned();
        Err(dayfly_storage::Error::Unavailable(why))
    });
    let (after, failure) = match stepped {
        // The store's time may stand a little behind what a glance shows.
        Ok(Outlook::Next(Some(at))) => (Outlook::Next(Some(at.max(now.saturating_add(1)))), None),
        Ok(after) => (after, None),
        // Its container was deleted meanwhile; the next look finds that out.
        Err(dayfly_storage::Error::Retry) => {
            tracing::debug!(bucket = bucket.0, "a write came before a purge");
            (Outlook::Failed(now), None)
        }
        Err(error) => {
            tracing::warn!(%error, bucket = bucket.0, "a purge failed and is tried again");
            (Outlook::Failed(now), Some(error.to_string()))
        }
    };
    if matches!(after, Outlook::Next(_)) {
        means.rest();
    }
    purge.shared.deadlines.settle(bucket, after);
    if after == Outlook::Gone {
        purge.forget(bucket);
    } else if let Some(container) = container {
        purge.counters.looked(container, failure);
    }
}

/// Clears some of what deleted containers left. `false`: nothing could be done.
fn clear_in_turn(purge: &Purge, pace: Pace) -> bool {
    let _unit = lock(&purge.unit);
    clear::step(purge, pace).unwrap_or_else(|error| {
        tracing::warn!(%error, "a deleted container was not cleared and is tried again");
        false
    })
}

/// One look at a bucket, and one unit if something is due; and one at its log.
fn step(
    purge: &Purge,
    bucket: Bucket,
    pace: Pace,
    means: &Means,
) -> dayfly_storage::Result<Outlook> {
    let _unit = lock(&purge.unit);
    let (charge_max, sweep_max) = (means.most(), means.sweep_most());
    let after_sweep = lock(&purge.swept).contains(&bucket);
    let bounds = LookBounds { charge_max, sweep_max, after_sweep, ..LookBounds::default() };
    let look =
        due::look(&*purge.shared.store.snapshot()?, bucket, pace, bounds, &purge.shared.index);
    let (after, _) = commit(purge, bucket, (look?, means), |_| Ok(None))?;
    Ok(after.and(trim::step(purge, bucket, pace)?))
}

/// The units of a bucket, one after the other, up to what was due at some time.
/// While one is on its way to the disk, the next one is read.
struct UnitSteps<'a> {
    purge: &'a Purge,
    bucket: Bucket,
    until: Timestamp,
    ahead: Option<Look>,
    means: Means,
}

impl<'a> UnitSteps<'a> {
    fn new(purge: &'a Purge, bucket: Bucket, until: Timestamp) -> UnitSteps<'a> {
        let means = Means::of(&purge.shared, bucket, Chore::Purge).unlimited();
        UnitSteps { purge, bucket, until, ahead: None, means }
    }

    fn step(&mut self, pace: Pace) -> dayfly_storage::Result<Outlook> {
        let UnitSteps { purge, bucket, until, .. } = *self;
        let _unit = lock(&purge.unit);
        let look = |behind| {
            let (until, after_sweep) = (Some(until), lock(&purge.swept).contains(&bucket));
            let bounds = LookBounds { behind, until, after_sweep, ..LookBounds::default() };
            due::look(&*purge.shared.store.snapshot()?, bucket, pace, bounds, &purge.shared.index)
        };
        let now = self.ahead.take().map_or_else(|| look(None), Ok)?;
        let now = (now, &self.means);
        let (after, ahead) = commit(purge, bucket, now, |end| look(Some(end)).map(Some))?;
        self.ahead = ahead;
        Ok(after)
    }
}

/// Commits what a look found, and does something `meanwhile`, if more is due
/// behind its end. What that brings is of use only if the whole unit was taken.
fn commit(
    purge: &Purge,
    bucket: Bucket,
    (look, means): (Look, &Means),
    meanwhile: impl FnOnce(Cursor) -> dayfly_storage::Result<Option<Look>>,
) -> dayfly_storage::Result<(Outlook, Option<Look>)> {
    let (unit, more, next) = match look {
        Look::Gone => return Ok((Outlook::Gone, None)),
        Look::Nothing(next) => return Ok((Outlook::Next(next), None)),
        Look::Due { unit, more, next } => (unit, more, next),
    };
    let (end, sweeps) = (unit.end(), unit.sweeps());
    let snapshot = purge.shared.store.snapshot()?;
    let ticket = commit_on(&*purge.shared.store, &*snapshot, bucket, unit);
    drop(snapshot);
    let ahead = end.filter(|_| more).map_or(Ok(None), meanwhile);
    let buried = ticket.wait()?;
    purge.swept(bucket, sweeps);
    purge.counted();
    means.spend(&purge.shared, buried.charge, sweeps);
    if let Some(container) = keys::container_of(bucket) {
        purge.counters.buried(container, &buried);
    }
    let is_cut = buried.cut;
    let more = more || is_cut;
    // Another look has the deleted partitions, too.
    let ahead = ahead.map(|ahead| ahead.filter(|look| !matches!(look, Look::Nothing(_))));
    tell_emptied(purge, bucket, &buried.runs, more);
    let after = if more { Outlook::More } else { Outlook::Next(next) };
    Ok((after, if is_cut { None } else { ahead? }))
}

/// Tells the store where the index lost much. What small units took is gathered.
fn tell_emptied(purge: &Purge, bucket: Bucket, runs: &Runs, more: bool) {
    let mut gathered = lock(&purge.runs);
    let all = gathered.entry(bucket).or_default();
    all.join(runs);
    if more && !all.is_long() {
        return;
    }
    let emptied = all.emptied();
    gathered.remove(&bucket);
    drop(gathered);
    purge.shared.store.hints().emptied(bucket, &emptied);
}

/// Removes everything that is due, at once, also what is paused or held.
/// Returns how many items went. What fails in one bucket does not hold up the
/// others; the first failure is the answer.
pub(crate) fn all(purge: &Purge) -> Result<u64> {
    let before = purge.counters.purged_items(None);
    let mut failure = None;
    let until = now(purge)?;
    for bucket in buckets(purge, None) {
        let mut steps = UnitSteps::new(purge, bucket, until);
        let mut outcome = Ok(Outlook::More);
        while outcome == Ok(Outlook::More) {
            outcome = steps.step(Pace::FULL);
        }
        let _unit = lock(&purge.unit);
        while outcome.is_ok() {
            outcome = trim::step(purge, bucket, Pace::FULL);
            if outcome != Ok(Outlook::More) {
                break;
            }
        }
        if let Err(error) = outcome {
            failure.get_or_insert_with(|| storage_failed(error));
        }
    }
    let _unit = lock(&purge.unit);
    while clear::step(purge, Pace::FULL)? {
        tracing::debug!("a part of a deleted container was cleared");
    }
    failure.map_or_else(|| Ok(purge.counters.purged_items(None) - before), Err)
}

/// Removes what was due at `until`, in one container or in all, for somebody
/// who waits. Works also while the purge is paused: the operator asked.
pub(crate) fn run(purge: &Purge, container: Option<u32>, until: Timestamp) -> Reply {
    if let Some(hold) = purge.shared.store.glance().purge_hold {
        return held(hold).into();
    }
    let before = purge.counters.purged_items(container);
    let outcome = buckets(purge, container)
        .into_iter()
        .try_for_each(|bucket| drain(purge, bucket, until))
        .and_then(|()| now(purge));
    match outcome {
        Ok(now) => {
            let purged = purge.counters.purged_items(container).saturating_sub(before);
            let body = json!({ "purgedItems": purged }).to_string();
            Reply::ok(Success::new(200, body), now, 0.0)
        }
        Err(error) => error.into(),
    }
}

/// Removes what was due in `bucket` at `until`.
fn drain(purge: &Purge, bucket: Bucket, until: Timestamp) -> Result<()> {
    let mut tries = TRIES;
    let mut steps = UnitSteps::new(purge, bucket, until);
    loop {
        if let Some(hold) = purge.shared.store.glance().purge_hold {
            return Err(held(hold));
        }
        let pace = awaited(&*purge.pacer, purge.load(true));
        let rest = match steps.step(pace) {
            Ok(Outlook::More) => pace.rest,
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
fn tell_held(purge: &Purge, hold: Option<PurgeHold>) {
    let was_told = purge.told_held.swap(hold.is_some(), Ordering::Relaxed);
    if was_told {
        return;
    }
    let Some(hold) = hold else { return };
    match figures::dead_items(&purge.shared, COUNTED_CONTAINERS) {
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
pub(crate) fn pause(purge: &Purge, container: Option<u32>) -> bool {
    let mut paused = lock(&purge.paused);
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
pub(crate) fn resume(purge: &Purge, container: Option<u32>) -> bool {
    {
        let mut paused = lock(&purge.paused);
        match container {
            Some(container) => {
                paused.containers.remove(&container);
            }
            None => *paused = Paused::default(),
        }
    }
    look_at_all(purge, container);
    purge.is_paused(container)
}

/// How the purge of a container stands.
pub(crate) fn status(purge: &Purge, container: u32) -> PurgeStatus {
    let clock = purge.shared.store.glance();
    let (items_per_second, failure) = purge.counters.state_of(container, clock.now);
    let (state, reason) = if purge.is_paused(Some(container)) {
        let reason = match who_tell_ends(purge, Some(container)) {
            0 => "An operator paused it.",
            _ => {
                "An operator paused it, but the container keeps a log of all versions: what \
                 expires is removed all the same, since that is how its end is told."
            }
        };
        (PurgeState::Paused, Some(reason.to_owned()))
    } else if let Some(hold) = clock.purge_hold {
        (PurgeState::Held, Some(hold.to_string()))
    } else if purge.shared.deadlines.at_work().contains(&container) {
        (PurgeState::Running, failure)
    } else {
        (PurgeState::Idle, failure)
    };
    let purged_items = purge.counters.purged_items(Some(container));
    PurgeStatus { state, reason, items_per_second, purged_items }
}

/// Whether the ends of a bucket's items are told. They are told by burials, so these wait
/// for no operator.
fn tells_ends(snapshot: &dyn Snapshot, bucket: Bucket) -> bool {
    log::is_on(&State::of(&snapshot.head(bucket)))
}

/// How many containers that is so of, of one or of all: they are purged during a pause.
pub(crate) fn who_tell_ends(purge: &Purge, container: Option<u32>) -> usize {
    let Ok(snapshot) = purge.shared.store.snapshot() else { return 0 };
    let tells = |bucket: &Bucket| tells_ends(&*snapshot, *bucket);
    if let Some(number) = container {
        let mut buckets = (0..SLICES_MAX).map(|slice| keys::bucket(number, slice));
        return usize::from(buckets.any(|bucket| tells(&bucket)));
    }
    let telling = buckets(purge, None).into_iter().filter(tells);
    telling.filter_map(keys::container_of).collect::<HashSet<_>>().len()
}

/// Has the background look at the buckets of one container, or of all.
fn look_at_all(purge: &Purge, container: Option<u32>) {
    for bucket in buckets(purge, container) {
        purge.shared.deadlines.look_at(bucket);
    }
}

/// The buckets of one container, or of all.
fn buckets(purge: &Purge, container: Option<u32>) -> Vec<Bucket> {
    let mut buckets = purge.shared.store.buckets();
    buckets.retain(|bucket| {
        let number = keys::container_of(*bucket);
        number.is_some() && (container.is_none() || container == number)
    });
    buckets
}

fn now(purge: &Purge) -> Result<Timestamp> {
    purge.shared.store.snapshot().map(|snapshot| Timestamp(snapshot.now())).map_err(storage_failed)
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
