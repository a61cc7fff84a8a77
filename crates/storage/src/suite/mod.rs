//! The contract suite that every engine runs: one check for each sentence of
//! the contract in [`Store`] and [`Snapshot`], each on a fresh store.
//!
//! An engine's test calls [`run`] with a way to open an empty store. The
//! checks in [`stepped`](self) stop a group between its begin and its
//! publication, to see what must not be seen.

#![expect(clippy::unwrap_used, reason = "a check that fails panics")]

mod commits;
mod far;
mod large;
mod reads;
mod stepped;
mod time;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

pub use self::far::{Far, FarCalls, FarReads};
use crate::clock::HandWall;
use crate::{
    Backend, Batch, Bucket, Direction, Draft, Error, KeyRange, Local, LocalOptions, Pair, Plan,
    Result, Room, Second, Snapshot, Stamp, Store, Ticket, Urgency, View, commit, commit_returning,
};

/// When every check starts.
const START: Second = 1000;

/// The bucket that most checks use.
const HERE: Bucket = Bucket(7);

/// A store whose groups can be stepped by hand.
pub trait Stepped: Store {
    /// Begins a group with what waits.
    fn begin_group(&self);

    /// Publishes the group and answers its writes.
    fn publish_group(&self);
}

impl<B: Backend> Stepped for Local<B> {
    fn begin_group(&self) {
        Local::begin_group(self);
    }

    fn publish_group(&self) {
        Local::publish_group(self);
    }
}

/// What a check needs of the store it is given.
pub struct Setup {
    /// The clock the store must read.
    pub wall: Arc<HandWall>,
    /// What the store must believe to be free on its disk, in bytes.
    pub free: Arc<AtomicU64>,
    /// Whether groups are stepped by hand.
    pub manual: bool,
}

impl Setup {
    fn new(manual: bool) -> Self {
        let free = Arc::new(AtomicU64::new(u64::MAX));
        Setup { wall: Arc::new(HandWall::at(START)), free, manual }
    }

    /// Options for a store in this process.
    pub fn local(&self) -> LocalOptions {
        let free = Arc::clone(&self.free);
        LocalOptions {
            manual: self.manual,
            wall: self.wall.clone(),
            test_clock: true,
            free_bytes: Some(Arc::new(move || Some(free.load(Ordering::SeqCst)))),
            ..LocalOptions::default()
        }
    }
}

/// Runs every check, each on a fresh store made by `open`.
pub fn run(open: &dyn Fn(&Setup) -> Box<dyn Stepped>) {
    for check in [commits::CHECKS, reads::CHECKS, time::CHECKS].concat() {
        check(&Bench::new(open, false));
    }
    for check in [stepped::CHECKS, large::CHECKS].concat() {
        check(&Bench::new(open, true));
    }
}

/// Something that must be true of every store.
type Check = fn(&Bench);

/// A fresh store, and what is around it.
struct Bench {
    store: Arc<dyn Stepped>,
    setup: Setup,
}

impl Bench {
    fn new(open: &dyn Fn(&Setup) -> Box<dyn Stepped>, manual: bool) -> Self {
        let setup = Setup::new(manual);
        Bench { store: open(&setup).into(), setup }
    }

    /// Hands in a write.
    fn submit<F>(&self, bucket: Bucket, act: F) -> Ticket<Act<F>>
    where
        F: Fn(&View<'_>) -> Outcome + Send + 'static,
    {
        commit(&*self.store, bucket, Act { draft: act, room: Room::Grows, urgency: Urgency::Now })
    }

    /// Hands in a write that may come back to be drafted again.
    fn submit_returning<F>(&self, bucket: Bucket, act: F) -> Ticket<Act<F>>
    where
        F: Fn(&View<'_>) -> Outcome + Send + 'static,
    {
        let store: Arc<dyn Store> = Arc::clone(&self.store) as _;
        let act = Act { draft: act, room: Room::Grows, urgency: Urgency::Now };
        commit_returning(&store, bucket, act)
    }

    /// Writes and publishes a group of what waits.
    fn step(&self) {
        self.store.begin_group();
        self.store.publish_group();
    }

    /// Hands in a write that rides.
    fn submit_rider<F>(&self, bucket: Bucket, act: F) -> Ticket<Act<F>>
    where
        F: Fn(&View<'_>) -> Outcome + Send + 'static,
    {
        commit(&*self.store, bucket, Act { draft: act, room: Room::Frees, urgency: Urgency::Rides })
    }

    /// Commits `key` = `value`.
    fn put(&self, bucket: Bucket, key: &str, value: &str) -> Stamp {
        self.submit(bucket, puts(key, value)).wait().unwrap()
    }

    fn snapshot(&self) -> Box<dyn Snapshot> {
        self.store.snapshot().unwrap()
    }

    fn get(&self, bucket: Bucket, key: &str) -> Option<String> {
        get(&*self.snapshot(), bucket, key)
    }
}

/// What an [`Act`] drafts, or why it does not.
type Outcome = Result<Draft<Stamp>, Refusal>;

/// Why a plan of the suite is not done.
#[derive(Debug, PartialEq)]
enum Refusal {
    /// The plan said no.
    Said(String),
    /// The store said no.
    Storage(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Storage(error)
    }
}

/// A plan made of a function.
struct Act<F> {
    draft: F,
    room: Room,
    urgency: Urgency,
}

impl<F: Fn(&View<'_>) -> Outcome + Send + 'static> Plan for Act<F> {
    type Done = Stamp;
    type Refusal = Refusal;

    fn draft(&self, view: &View<'_>) -> Outcome {
        (self.draft)(view)
    }

    fn room(&self) -> Room {
        self.room
    }

    fn urgency(&self) -> Urgency {
        self.urgency
    }
}

/// A draft that writes with `write`.
fn draft(write: impl FnOnce(Stamp, &mut Batch) + Send + 'static) -> Draft<Stamp> {
    Draft::new(move |stamp, batch| {
        write(stamp, batch);
        stamp
    })
}

/// A plan that sets `key` without looking.
fn puts(key: &str, value: &str) -> impl Fn(&View<'_>) -> Outcome + Send + use<> {
    let (key, value) = (key.as_bytes().to_vec(), value.to_owned());
    move |_| {
        let (key, value) = (key.clone(), value.clone());
        Ok(draft(move |_, batch| batch.put(key, value)))
    }
}

/// A plan that sets `key` unless it is there.
fn creates(key: &str, value: &str) -> impl Fn(&View<'_>) -> Outcome + Send + use<> {
    let put = puts(key, value);
    let key = key.as_bytes().to_vec();
    move |view| match view.get(&key)? {
        Some(_) => Err(Refusal::Said("it is there".to_owned())),
        None => put(view),
    }
}

/// A plan that appends `more` to the value of `key`.
fn appends(key: &str, more: &str) -> impl Fn(&View<'_>) -> Outcome + Send + use<> {
    let (key, more) = (key.as_bytes().to_vec(), more.to_owned());
    move |view| {
        let mut value = view.get(&key)?.unwrap_or_default().to_vec();
        value.extend_from_slice(more.as_bytes());
        let key = key.clone();
        Ok(draft(move |_, batch| batch.put(key, value)))
    }
}

/// The same plan, as one that writes so many rows.
fn of_rows(
    rows: usize,
    act: impl Fn(&View<'_>) -> Outcome + Send,
) -> impl Fn(&View<'_>) -> Outcome + Send {
    move |view| act(view).map(|draft| draft.of_rows(rows))
}

fn get(snapshot: &dyn Snapshot, bucket: Bucket, key: &str) -> Option<String> {
    snapshot.get(bucket, key.as_bytes()).unwrap().map(|value| text(&value))
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn range(start: &str, end: &str) -> KeyRange {
    KeyRange { start: start.into(), end: end.into() }
}

fn keys(pairs: &[Pair]) -> String {
    pairs.iter().map(|(key, _)| text(key)).collect::<Vec<_>>().join(" ")
}

/// All keys of `range`, forward.
fn scan(snapshot: &dyn Snapshot, bucket: Bucket, range: &KeyRange) -> String {
    keys(&snapshot.scan(bucket, range, Direction::Forward, usize::MAX).unwrap())
}
