//! The threads of queries, and whose turn it is.
//!
//! ```text
//! handed in ──► quick ──► answered
//!                 │ more steps than are quick
//!                 ▼
//!               slow ───► answered, or ended by its budget
//! ```
//!
//! Nobody can tell from its text what a query costs. So each begins in the quick lane,
//! where a turn is short. One that needs more goes on in the slow lane, if that has a
//! free place; else what it has done is thrown away, and it waits there to begin again:
//! it answered nobody yet, and it must not keep a snapshot while it waits. Each lane
//! runs only so many at a time, so dear queries never have all threads, and a cheap
//! one waits for short turns only.
//!
//! A query whose answer is not wanted any more is not begun, and one that runs ends at
//! its next look at the leash. What is quick is answered also to a client that closed
//! its side of the connection: it may still listen.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use dayfly_model::{Error, ErrorKind, Result};
use dayfly_sql::run::{Leash, Steps};

use crate::cancel::{Cancel, Reason};
use crate::locks::lock;
use crate::reply::{Reply, stopped};
use crate::settings::QuerySteps;
use crate::shared::Shared;

/// How many queries may wait in each lane.
pub(crate) const WAITING_MAX: usize = 1024;

/// How many threads a lane has at most.
const THREADS_MAX: usize = 16;

/// How queries went since the start, and how many there are just now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneFigures {
    /// Those that needed more than is quick.
    pub moved: u64,
    /// Those that reached the end of their budget.
    pub spent: u64,
    /// Those that nobody wanted any more, by [`Reason::ALL`].
    pub cancelled: [u64; Reason::ALL.len()],
    /// Those that wait.
    pub waiting: ByLane<usize>,
    /// Those that run.
    pub running: ByLane<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Quick,
    Slow,
}

/// One for each lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByLane<T> {
    /// Where a turn is short.
    pub quick: T,
    /// Where it is long.
    pub slow: T,
}

impl<T> ByLane<T> {
    fn of(&mut self, lane: Lane) -> &mut T {
        match lane {
            Lane::Quick => &mut self.quick,
            Lane::Slow => &mut self.slow,
        }
    }
}

type LaneQuery = dyn Fn(&Shared, &Steps<'_>) -> Reply + Send + Sync;

struct Job {
    query: Box<LaneQuery>,
    cancel: Cancel,
    answer: oneshot::Sender<Reply>,
}

impl Job {
    fn refuse(self, error: Error) {
        let _ = self.answer.send(error.into());
    }
}

/// Where queries are handed in.
pub(crate) struct Lanes {
    road: Arc<Road>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What its threads share.
struct Road {
    steps: QuerySteps,
    places: ByLane<usize>,
    state: Mutex<RoadState>,
    /// Somebody may begin.
    turn: Condvar,
    moved: AtomicU64,
    spent: AtomicU64,
    cancelled: [AtomicU64; Reason::ALL.len()],
}

#[derive(Default)]
struct RoadState {
    waiting: ByLane<VecDeque<Job>>,
    running: ByLane<usize>,
    /// How to call back each that runs.
    cancels: HashMap<u64, Cancel>,
    begun: u64,
    closed: bool,
}

impl Lanes {
    /// Starts as many threads as the machine is good for.
    pub(crate) fn open(shared: &Arc<Shared>) -> Result<Lanes> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // The slow lane leaves a core to others where there is more than one.
        let places = ByLane {
            quick: cores.clamp(2, THREADS_MAX),
            slow: (cores * 3 / 4).clamp(1, THREADS_MAX),
        };
        Lanes::with(shared, places, shared.settings.query_steps)
    }

    /// Lanes with so many places.
    pub(crate) fn with(
        shared: &Arc<Shared>,
        places: ByLane<usize>,
        steps: QuerySteps,
    ) -> Result<Lanes> {
        let road = Arc::new(Road {
            steps,
            places,
            state: Mutex::default(),
            turn: Condvar::new(),
            moved: AtomicU64::new(0),
            spent: AtomicU64::new(0),
            cancelled: Default::default(),
        });
        let lanes = Lanes { road, threads: Mutex::default() };
        for _ in 0..places.quick + places.slow {
            let (shared, road) = (Arc::clone(shared), Arc::clone(&lanes.road));
            let thread = std::thread::Builder::new()
                .name("dayfly-query".to_owned())
                .spawn(move || work(&shared, &road))
                .map_err(|why| {
                    Error::new(ErrorKind::Internal, format!("No thread for queries: {why}."))
                })?;
            if let Ok(mut threads) = lanes.threads.lock() {
                threads.push(thread);
            }
        }
        Ok(lanes)
    }

    /// Hands in a query, which may be begun several times. The answer comes when it is
    /// done; perhaps it does not when it was cancelled.
    pub(crate) fn hand_in(
        &self,
        cancel: Cancel,
        query: impl Fn(&Shared, &Steps<'_>) -> Reply + Send + Sync + 'static,
    ) -> oneshot::Receiver<Reply> {
        let (answer, receiver) = oneshot::channel();
        self.road.line_up(Lane::Quick, Job { query: Box::new(query), cancel, answer });
        receiver
    }

    pub(crate) fn figures(&self) -> LaneFigures {
        let road = &self.road;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut figures = LaneFigures {
            moved: count(&road.moved),
            spent: count(&road.spent),
            ..LaneFigures::default()
        };
        for (figure, counter) in figures.cancelled.iter_mut().zip(&road.cancelled) {
            *figure = count(counter);
        }
        let state = road.state();
        figures.running = state.running;
        figures.waiting =
            ByLane { quick: state.waiting.quick.len(), slow: state.waiting.slow.len() };
        figures
    }

    /// Calls back all queries, and takes no more.
    pub(crate) fn stop(&self) {
        let lines = {
            let mut state = self.road.state();
            state.closed = true;
            for cancel in state.cancels.values() {
                cancel.cancel(Reason::Stopping);
            }
            std::mem::take(&mut state.waiting)
        };
        self.road.turn.notify_all();
        for job in lines.quick.into_iter().chain(lines.slow) {
            self.road.drop_cancelled(job, Reason::Stopping);
        }
    }

    /// The same, and waits until the threads have ended.
    pub(crate) fn close(&self) {
        self.stop();
        let threads = self.threads.lock().map(|mut threads| std::mem::take(&mut *threads));
        for thread in threads.unwrap_or_default() {
            let _ = thread.join();
        }
    }
}

/// The folder must be free when the engine is gone.
impl Drop for Lanes {
    fn drop(&mut self) {
        self.close();
    }
}

impl Road {
    fn state(&self) -> MutexGuard<'_, RoadState> {
        lock(&self.state)
    }

    /// Puts a query at the end of a line.
    fn line_up(&self, lane: Lane, job: Job) {
        let mut swept = Vec::new();
        let mut state = self.state();
        if state.waiting.of(lane).len() >= WAITING_MAX {
            // Those that nobody wants any more keep nobody out.
            swept = state.sweep(lane);
        }
        let is_full = state.waiting.of(lane).len() >= WAITING_MAX;
        let refused = if state.closed {
            Some((job, stopped()))
        } else if is_full {
            let sentence = "Too many requests like this one are waiting.";
            Some((job, Error::new(ErrorKind::ServiceUnavailable, sentence)))
        } else {
            state.waiting.of(lane).push_back(job);
            None
        };
        drop(state);
        self.turn.notify_one();
        for (job, reason) in swept {
            self.drop_cancelled(job, reason);
        }
        if let Some((job, error)) = refused {
            job.refuse(error);
        }
    }

    /// The next query whose turn it is, once there is one. `None`: there are no more.
    fn next(&self) -> Option<(Lane, u64, Job)> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if let Some((lane, job)) = state.next(self.places) {
                if let Some(reason) = unwanted(&job.cancel, lane) {
                    drop(state);
                    self.drop_cancelled(job, reason);
                    state = self.state();
                    continue;
                }
                *state.running.of(lane) += 1;
                state.begun += 1;
                let number = state.begun;
                state.cancels.insert(number, job.cancel.clone());
                return Some((lane, number, job));
            }
            state = self.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, lane: Lane, number: u64) {
        let mut state = self.state();
        *state.running.of(lane) -= 1;
        state.cancels.remove(&number);
    }

    /// A query that runs goes on in the slow lane, if that has a place for it.
    fn goes_on(&self) -> bool {
        let mut state = self.state();
        if state.running.slow >= self.places.slow || !state.waiting.slow.is_empty() {
            return false;
        }
        state.running.slow += 1;
        state.running.quick -= 1;
        drop(state);
        self.turn.notify_one();
        true
    }

    fn drop_cancelled(&self, job: Job, reason: Reason) {
        self.count_cancelled(reason);
        job.refuse(reason.error());
    }

    fn count_cancelled(&self, reason: Reason) {
        let of = Reason::ALL.iter().position(|known| *known == reason);
        if let Some(counter) = of.and_then(|place| self.cancelled.get(place)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl RoadState {
    /// The first of a line that may begin.
    fn next(&mut self, mut places: ByLane<usize>) -> Option<(Lane, Job)> {
        for lane in [Lane::Quick, Lane::Slow] {
            if self.running.of(lane) < places.of(lane)
                && let Some(job) = self.waiting.of(lane).pop_front()
            {
                return Some((lane, job));
            }
        }
        None
    }

    /// Takes those out of a line that nobody wants any more.
    fn sweep(&mut self, lane: Lane) -> Vec<(Job, Reason)> {
        let (mut kept, mut swept) = (VecDeque::new(), Vec::new());
        for job in std::mem::take(self.waiting.of(lane)) {
            match unwanted(&job.cancel, lane) {
                Some(reason) => swept.push((job, reason)),
                None => kept.push_back(job),
            }
        }
        *self.waiting.of(lane) = kept;
        swept
    }
}

/// Why a query should not run in a lane, if it should not.
fn unwanted(cancel: &Cancel, lane: Lane) -> Option<Reason> {
    cancel.reason().filter(|reason| lane == Lane::Slow || *reason != Reason::Silent)
}

fn work(shared: &Shared, road: &Road) {
    while let Some((lane, number, job)) = road.next() {
        let turn =
            Turn { road, cancel: &job.cancel, lane: Cell::new(lane), moves: Cell::new(false) };
        let steps = Steps::new(&turn);
        let query = AssertUnwindSafe(|| (job.query)(shared, &steps));
        let reply = catch_unwind(query).unwrap_or_else(|_| {
            Error::new(ErrorKind::Internal, "The query could not be carried out.").into()
        });
        let (lane, moves) = (turn.lane.get(), turn.moves.get());
        road.end(lane, number);
        if moves {
            road.line_up(Lane::Slow, job);
        } else {
            let _ = job.answer.send(reply);
        }
    }
}

/// The turn of a query: the leash it is on.
struct Turn<'a> {
    road: &'a Road,
    cancel: &'a Cancel,
    lane: Cell<Lane>,
    /// It is to begin again in the slow lane.
    moves: Cell<bool>,
}

impl Leash for Turn<'_> {
    fn is_hurried(&self) -> bool {
        self.cancel.is_hurried()
    }

    fn go_on(&self, steps: u64) -> Result<()> {
        let moves = self.lane.get() == Lane::Quick && steps > self.road.steps.quick;
        let lane = if moves { Lane::Slow } else { self.lane.get() };
        if let Some(reason) = unwanted(self.cancel, lane) {
            self.road.count_cancelled(reason);
            return Err(reason.error());
        }
        if moves {
            self.road.moved.fetch_add(1, Ordering::Relaxed);
            if !self.road.goes_on() {
                self.moves.set(true);
                return Err(spent());
            }
            self.lane.set(Lane::Slow);
        }
        if self.lane.get() == Lane::Slow {
            // Where there are fewer cores than work, others go first.
            std::thread::yield_now();
        }
        if steps > self.road.steps.whole {
            self.road.spent.fetch_add(1, Ordering::Relaxed);
            return Err(spent());
        }
        Ok(())
    }
}

/// A query that cannot be answered in pages went too far.
fn spent() -> Error {
    Error::new(
        ErrorKind::RequestTimeout,
        "The query makes more work than one answer may: all of its aggregates, groups, distinct \
         or sorted rows, or all rows of one item, have to come in one page. Narrow its filter, \
         let an index help it, or join fewer arrays.",
    )
}
