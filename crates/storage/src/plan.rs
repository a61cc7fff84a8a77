//! A write as a pure function, and its way through the committer.
//!
//! ```text
//! caller's thread                       committer
//!   snapshot -> View                      (one group at a time)
//!   plan.draft(view) -> Draft  --job-->   unchanged since? take the draft
//!   Ticket  <---------------------------- else plan.draft(newer view)
//!                                         draft.write(stamp, batch)
//! ```
//!
//! A draft is a function of the keys it read, the head's state and the time.
//! The view remembers the keys; the draft says until when it holds. So the
//! committer needs no versions to compare and parses nothing.
//!
//! **A large draft is not made again by the committer**, for all others would wait
//! for it. If it no longer holds, its plan goes back to whoever waits for the
//! ticket, once the group is published that it came too late for; there it is
//! drafted from a new snapshot and handed in again. After [`RETURNS_MAX`] times the
//! committer drafts it all the same, so that no stream of other writes can keep it
//! away for ever.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;

use crate::tally::{Addition, Change, Tally};
use crate::{
    Bucket, Direction, Error, Head, KeyRange, Mark, Pair, Result, Second, Snapshot, Store,
};

/// A write: pure, and run as often as the committer needs.
pub trait Plan: Send + 'static {
    /// What the write answers once it is durable and visible.
    type Done: Send + 'static;
    /// Why it is not done.
    type Refusal: From<Error> + Send + 'static;

    /// What the write would do to what `view` shows.
    fn draft(&self, view: &View<'_>) -> Result<Draft<Self::Done>, Self::Refusal>;

    /// Whether the write makes the store larger.
    fn room(&self) -> Room {
        Room::Grows
    }

    /// Whether somebody waits for it.
    fn urgency(&self) -> Urgency {
        Urgency::Now
    }

    /// About how many bytes the write holds while it waits; counts towards the
    /// limit of what may wait.
    fn bytes(&self) -> usize {
        0
    }

    /// Called once, when the commit is published, and only then, whether or not somebody
    /// still waits for the answer. Quick, since it runs in the committer.
    fn published(&self, _done: &Self::Done) {}

    /// Called once instead, when writing the group failed: nobody knows whether the commit
    /// is there. Quick, too.
    fn doubtful(&self) {}

    /// Where the plan is drafted again, if it has to be. What is large goes back to
    /// its caller in any case. A plan that finds out in the committer that it would take long
    /// refuses there, and says it then.
    fn redraft(&self) -> Redraft {
        Redraft::Here
    }
}

/// How often a plan is drafted again by its caller before the committer does it.
pub const RETURNS_MAX: u32 = 2;

/// A write of more rows than this is large, or of more bytes than this.
pub const LARGE_ROWS: usize = 512;
/// See [`LARGE_ROWS`].
pub const LARGE_BYTES: usize = 256 * 1024;

/// Where a plan is drafted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redraft {
    /// In the committer: it is quickly done.
    Here,
    /// By whoever waits for the ticket, if they can: see [`commit_returning`].
    AtCaller,
}

/// What a write weighs, roughly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// How many rows it writes and removes.
    pub rows: usize,
    /// How many bytes it holds.
    pub bytes: usize,
}

impl Weight {
    /// Whether others should not have to wait for it.
    pub fn is_large(self) -> bool {
        self.rows > LARGE_ROWS || self.bytes > LARGE_BYTES
    }
}

/// What a write does to the space on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It adds; refused with [`Error::Full`] when the disk is nearly full.
    Grows,
    /// It removes, or must go on in any case; it may use the reserve.
    Frees,
}

/// How soon a write has to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// As soon as the disk can take it.
    Now,
    /// Whenever others are written anyway; when there are none, after a short
    /// rest.
    Rides,
}

/// What a plan decided.
pub struct Draft<Done> {
    /// The draft holds for commits before this second.
    pub valid_before: Second,
    /// About how many rows it writes and removes.
    pub rows: usize,
    /// Fills in the stamp and writes. Cheap, since it runs in the committer.
    pub write: Write<Done>,
}

/// The second half of a draft.
pub type Write<Done> = Box<dyn FnOnce(Stamp, &mut Batch) -> Done + Send>;

impl<Done> Draft<Done> {
    /// A draft that holds whatever the time.
    pub fn new(write: impl FnOnce(Stamp, &mut Batch) -> Done + Send + 'static) -> Self {
        Draft { valid_before: Second::MAX, rows: 0, write: Box::new(write) }
    }

    /// Limits the draft to commits before `second`.
    pub fn valid_before(mut self, second: Second) -> Self {
        self.valid_before = self.valid_before.min(second);
        self
    }

    /// Says about how many rows it writes and removes.
    pub fn of_rows(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }
}

/// When and where in the bucket's order a commit happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The commit's number in its bucket.
    pub lsn: u64,
    /// The commit's time.
    pub ts: Second,
    /// How often the store had been opened. With `lsn` it names the commit for
    /// ever, also when a crash in relaxed mode took the end of the log.
    pub opened: u32,
}

/// What one commit writes, in its bucket. The last word on a key counts.
#[derive(Debug, Default)]
pub struct Batch {
    /// Values to set, and keys (without a value) to remove.
    pub(crate) writes: Vec<(Vec<u8>, Option<Bytes>)>,
    /// What to count, in rows that are [tallies](crate::tally).
    pub(crate) additions: Vec<(Vec<u8>, Addition)>,
    /// Which of them the next one may be the same as.
    next_addition: usize,
    /// The head's new state.
    pub(crate) state: Option<Bytes>,
}

impl Batch {
    /// Sets `key` to `value`.
    pub fn put(&mut self, key: Vec<u8>, value: impl Into<Bytes>) {
        self.writes.push((key, Some(value.into())));
    }

    /// Removes `key`; removing what is not there is no error.
    pub fn delete(&mut self, key: Vec<u8>) {
        self.writes.push((key, None));
    }

    /// Counts a change in a cell of the [tally](crate::tally) under `key`. Such a
    /// key is never put or deleted.
    ///
    /// What comes is added up where it can be: the items of a batch count in the same rows,
    /// one after the other. What goes is not, since it must not go before it came.
    pub fn add(&mut self, key: Vec<u8>, cell: u8, change: Change) {
        let next = if self.next_addition < self.additions.len() { self.next_addition } else { 0 };
        self.next_addition = next + 1;
        if let Some((known, Addition { cell: of, change: Change::More(sum) })) =
            self.additions.get_mut(next)
            && let Change::More(count) = change
            && (*of, &*known) == (cell, &key)
        {
            *sum = sum.plus(count);
            return;
        }
        self.additions.push((key, Addition { cell, change }));
        self.next_addition = self.additions.len();
    }

    /// The tallies that were added to, as if there had been none before.
    pub fn tallies(&self) -> HashMap<&[u8], Tally> {
        let mut tallies: HashMap<&[u8], Tally> = HashMap::new();
        for (key, addition) in &self.additions {
            tallies.entry(&key[..]).or_default().add(addition.cell, addition.change);
        }
        tallies
    }

    /// What was written, in order; no value for a key that is removed.
    pub fn rows(&self) -> impl Iterator<Item = (&[u8], Option<&Bytes>)> {
        self.writes.iter().map(|(key, value)| (&key[..], value.as_ref()))
    }

    /// Gives the head a new state.
    pub fn set_state(&mut self, state: impl Into<Bytes>) {
        self.state = Some(state.into());
    }
}

/// What a plan sees of its bucket. It remembers what was looked at.
pub struct View<'a> {
    snapshot: &'a dyn Snapshot,
    bucket: Bucket,
    head: Head,
    reads: RefCell<Reads>,
    /// Whether it is shown by the committer.
    is_waited_for: bool,
}

impl<'a> View<'a> {
    /// The bucket as `snapshot` shows it.
    pub fn new(snapshot: &'a dyn Snapshot, bucket: Bucket) -> Self {
        let (head, reads) = (snapshot.head(bucket), RefCell::default());
        View { snapshot, bucket, head, reads, is_waited_for: false }
    }

    /// Whether everybody waits for the draft: then it is no time to read much.
    pub fn is_waited_for(&self) -> bool {
        self.is_waited_for
    }

    /// The time: in the committer, the time of the commit.
    pub fn now(&self) -> Second {
        self.snapshot.now()
    }

    /// The bucket's head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The value under `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.reads.borrow_mut().keys.push(fingerprint(self.bucket, key));
        self.snapshot.get(self.bucket, key)
    }

    /// The values under several keys, in their order. The draft rests on each of them, as
    /// if they had been read one by one.
    pub fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let named = keys.iter().map(|key| fingerprint(self.bucket, key));
        self.reads.borrow_mut().keys.extend(named);
        self.snapshot.get_many(self.bucket, keys)
    }

    /// The same in another bucket. The draft rests on what is read there, too, but for the
    /// bucket's head.
    pub fn get_many_in(&self, bucket: Bucket, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let named = keys.iter().map(|key| fingerprint(bucket, key));
        self.reads.borrow_mut().keys.extend(named);
        self.snapshot.get_many(bucket, keys)
    }

    /// What is stored. The draft does not rest on what is read there: nothing else than the
    /// time makes it another one, or something that it rests on goes with it.
    pub fn snapshot(&self) -> &dyn Snapshot {
        self.snapshot
    }

    /// Which bucket it is.
    pub fn bucket(&self) -> Bucket {
        self.bucket
    }

    /// Whether `key` has, for certain, the value that it had in an earlier snapshot.
    /// Then the draft rests on it, as if it had been read here.
    pub fn is_as_in(&self, since: Mark, key: &[u8]) -> bool {
        let is_same = self.snapshot.mark() == since
            || !self.snapshot.hints().may_differ(self.bucket, key, since);
        if is_same {
            self.reads.borrow_mut().keys.push(fingerprint(self.bucket, key));
        }
        is_same
    }

    /// At most `limit` pairs of `range`. The draft then holds only while the
    /// whole bucket stands still, so this is for buckets that change rarely.
    pub fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<Pair>> {
        self.reads.borrow_mut().whole_bucket = true;
        self.snapshot.scan(self.bucket, range, direction, limit)
    }
}

/// What a draft looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    /// Fingerprints of the keys.
    pub(crate) keys: Vec<u64>,
    /// Whether it scanned.
    pub(crate) whole_bucket: bool,
}

/// A short name of a key. Two keys may share one: that costs a second look,
/// never a wrong answer.
pub(crate) fn fingerprint(bucket: Bucket, key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bucket.0.hash(&mut hasher);
    hasher.write(key);
    hasher.finish()
}

/// What a draft was made from.
#[derive(Clone, Debug)]
pub struct Basis {
    pub(crate) reads: Reads,
    pub(crate) generation: u64,
    pub(crate) lsn: u64,
    pub(crate) state: Bytes,
    pub(crate) valid_before: Second,
    pub(crate) rows: usize,
}

/// A drafted write on its way through the committer.
pub trait Job: Send {
    /// What the draft was made from.
    fn basis(&self) -> &Basis;

    /// Whether the write makes the store larger.
    fn room(&self) -> Room;

    /// Whether somebody waits for it.
    fn urgency(&self) -> Urgency;

    /// What the write weighs, roughly.
    fn weight(&self) -> Weight;

    /// Makes the plan go back to its caller when the job is settled, to be drafted
    /// again there. `false`: it does not; it is to be drafted again here.
    fn return_plan(&mut self) -> bool;

    /// Drafts again. `false`: the plan now refuses, and has no draft.
    fn redraft(&mut self, snapshot: &dyn Snapshot, bucket: Bucket) -> bool;

    /// Writes the draft. Called once, after `basis` was found to hold.
    fn write(&mut self, stamp: Stamp, batch: &mut Batch);

    /// Answers the ticket: with what the plan said, or with the store's error.
    fn settle(self: Box<Self>, outcome: Result<()>);
}

struct Drafted<P: Plan> {
    plan: P,
    basis: Basis,
    draft: Option<Write<P::Done>>,
    answer: Option<Result<P::Done, P::Refusal>>,
    /// How often the plan may still go back to its caller.
    returns_left: u32,
    is_returned: bool,
    sender: oneshot::Sender<Settled<P>>,
}

/// What comes back for a job.
enum Settled<P: Plan> {
    Answer(Result<P::Done, P::Refusal>),
    /// The draft no longer held. The plan may still go back so many times.
    Again(P, u32),
}

impl<P: Plan> Job for Drafted<P> {
    fn basis(&self) -> &Basis {
        &self.basis
    }

    fn room(&self) -> Room {
        self.plan.room()
    }

    fn urgency(&self) -> Urgency {
        self.plan.urgency()
    }

    fn weight(&self) -> Weight {
        Weight { rows: self.basis.rows, bytes: self.plan.bytes() }
    }

    fn return_plan(&mut self) -> bool {
        let is_long = self.plan.redraft() == Redraft::AtCaller || self.weight().is_large();
        self.is_returned = is_long && self.returns_left > 0;
        if self.is_returned {
            self.draft = None;
        }
        self.is_returned
    }

    fn redraft(&mut self, snapshot: &dyn Snapshot, bucket: Bucket) -> bool {
        let view = View { is_waited_for: true, ..View::new(snapshot, bucket) };
        match draft(&self.plan, view) {
            Ok((basis, write)) => {
                self.basis = basis;
                self.draft = Some(write);
                true
            }
            Err(refusal) => {
                self.draft = None;
                if !self.return_plan() {
                    self.answer = Some(Err(refusal));
                }
                false
            }
        }
    }

    fn write(&mut self, stamp: Stamp, batch: &mut Batch) {
        if let Some(write) = self.draft.take() {
            self.answer = Some(Ok(write(stamp, batch)));
        }
    }

    fn settle(self: Box<Self>, outcome: Result<()>) {
        let settled = match (outcome, self.answer) {
            (Ok(()), _) if self.is_returned => Settled::Again(self.plan, self.returns_left - 1),
            (Ok(()), Some(answer)) => {
                if let Ok(done) = &answer {
                    self.plan.published(done);
                }
                Settled::Answer(answer)
            }
            (Ok(()), None) => Settled::Answer(Err(Error::Retry.into())),
            (Err(error), _) => {
                if let Error::Unknown(_) = error {
                    self.plan.doubtful();
                }
                Settled::Answer(Err(error.into()))
            }
        };
        // Whoever asked may have gone away; the write stands all the same.
        let _ = self.sender.send(settled);
    }
}

fn draft<P: Plan>(plan: &P, view: View<'_>) -> Result<(Basis, Write<P::Done>), P::Refusal> {
    let Draft { valid_before, rows, write } = plan.draft(&view)?;
    let basis = Basis {
        generation: view.snapshot.mark().0,
        lsn: view.head.lsn,
        state: view.head.state.clone(),
        valid_before,
        rows,
        reads: view.reads.into_inner(),
    };
    Ok((basis, write))
}

/// Commits `plan` in `bucket`: drafts it here, then hands it to the committer.
///
/// A refusal is judged by a published snapshot or by a published group, so it
/// can be answered as it is.
pub fn commit<P: Plan>(store: &dyn Store, bucket: Bucket, plan: P) -> Ticket<P> {
    match store.snapshot() {
        Ok(snapshot) => commit_on(store, &*snapshot, bucket, plan),
        Err(error) => Ticket { state: TicketState::Ready(Err(error.into())), returns: None },
    }
}

/// The same, drafted from a snapshot that is there already.
pub fn commit_on<P: Plan>(
    store: &dyn Store,
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    plan: P,
) -> Ticket<P> {
    Ticket { state: hand_in(store, snapshot, bucket, plan, 0), returns: None }
}

/// The same as [`commit`], for plans that may be large: whoever waits for the ticket
/// drafts the plan again, if need be.
pub fn commit_returning<P: Plan>(store: &Arc<dyn Store>, bucket: Bucket, plan: P) -> Ticket<P> {
    let returns = Returns::to(store, bucket);
    let state = returns.hand_in(plan, RETURNS_MAX);
    Ticket { state, returns: Some(returns) }
}

/// Drafts a plan and submits it. What is refused here is answered here.
fn hand_in<P: Plan>(
    store: &dyn Store,
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    plan: P,
    returns_left: u32,
) -> TicketState<P> {
    let (basis, write) = match draft(&plan, View::new(snapshot, bucket)) {
        Ok(drafted) => drafted,
        Err(refusal) => return TicketState::Ready(Err(refusal)),
    };
    let (sender, receiver) = oneshot::channel();
    let job = Drafted {
        plan,
        basis,
        draft: Some(write),
        answer: None,
        returns_left,
        is_returned: false,
        sender,
    };
    store.submit(bucket, Box::new(job));
    TicketState::Waiting(receiver)
}

/// The same, where whoever waits for the ticket must not read: it is drafted again
/// elsewhere. The first draft is made here.
pub fn commit_returning_elsewhere<P: Plan>(
    store: &Arc<dyn Store>,
    bucket: Bucket,
    plan: P,
    elsewhere: Elsewhere,
) -> Ticket<P> {
    let returns = Returns { elsewhere: Some(elsewhere), ..Returns::to(store, bucket) };
    let state = returns.hand_in(plan, RETURNS_MAX);
    Ticket { state, returns: Some(returns) }
}

/// Does something on another thread, soon; or drops it, if it cannot.
pub type Elsewhere = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// The answer to a commit, when it comes. Wait for it, or await it.
pub struct Ticket<P: Plan> {
    state: TicketState<P>,
    returns: Option<Returns>,
}

enum TicketState<P: Plan> {
    Ready(Result<P::Done, P::Refusal>),
    Waiting(oneshot::Receiver<Settled<P>>),
    /// The plan is drafted again elsewhere.
    Drafted(oneshot::Receiver<TicketState<P>>),
}

/// Where a plan that came back is handed in again.
#[derive(Clone)]
struct Returns {
    store: Arc<dyn Store>,
    bucket: Bucket,
    /// Where it is drafted; `None`: where the ticket is waited for.
    elsewhere: Option<Elsewhere>,
}

impl Returns {
    fn to(store: &Arc<dyn Store>, bucket: Bucket) -> Returns {
        Returns { store: Arc::clone(store), bucket, elsewhere: None }
    }

    /// Drafts a plan that came back, here or elsewhere.
    fn again<P: Plan>(&self, plan: P, returns_left: u32) -> TicketState<P> {
        let Some(elsewhere) = &self.elsewhere else { return self.hand_in(plan, returns_left) };
        let (sender, receiver) = oneshot::channel();
        let returns = self.clone();
        // Whoever asked may have gone away; the write is handed in all the same.
        elsewhere(Box::new(move || _ = sender.send(returns.hand_in(plan, returns_left))));
        TicketState::Drafted(receiver)
    }

    /// Drafts the plan from a new snapshot.
    fn hand_in<P: Plan>(&self, plan: P, returns_left: u32) -> TicketState<P> {
        match self.store.snapshot() {
            Ok(snapshot) => hand_in(&*self.store, &*snapshot, self.bucket, plan, returns_left),
            Err(error) => TicketState::Ready(Err(error.into())),
        }
    }
}

impl<P: Plan> Ticket<P> {
    /// Blocks until the write is durable and visible, or refused.
    pub fn wait(self) -> Result<P::Done, P::Refusal> {
        let Ticket { mut state, returns } = self;
        loop {
            state = match state {
                TicketState::Ready(answer) => return answer,
                TicketState::Waiting(receiver) => next(receiver.recv().ok(), returns.as_ref()),
                TicketState::Drafted(receiver) => receiver.recv().unwrap_or_else(|_| refused()),
            }
        }
    }

    /// Resolves when the write is durable and visible, or refused.
    pub async fn answer(self) -> Result<P::Done, P::Refusal> {
        let Ticket { mut state, returns } = self;
        loop {
            state = match state {
                TicketState::Ready(answer) => return answer,
                TicketState::Waiting(receiver) => next(receiver.await.ok(), returns.as_ref()),
                TicketState::Drafted(receiver) => receiver.await.unwrap_or_else(|_| refused()),
            }
        }
    }
}

/// What a ticket waits for after something came back for its job.
fn next<P: Plan>(settled: Option<Settled<P>>, returns: Option<&Returns>) -> TicketState<P> {
    match (settled, returns) {
        (Some(Settled::Answer(answer)), _) => TicketState::Ready(answer),
        (Some(Settled::Again(plan, left)), Some(returns)) => returns.again(plan, left),
        (Some(Settled::Again(..)), None) => refused(),
        (None, _) => TicketState::Ready(Err(lost().into())),
    }
}

/// The plan is not drafted again, and was not done.
fn refused<P: Plan>() -> TicketState<P> {
    TicketState::Ready(Err(Error::Retry.into()))
}

/// The committer is gone, and with it the answer.
fn lost() -> Error {
    Error::Unknown("the server stopped while the write was under way".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Count;

    fn more(items: u64) -> Change {
        Change::More(Count { items, bytes: 10 * items })
    }

    fn less(items: u64) -> Change {
        Change::Less(Count { items, bytes: 10 * items })
    }

    /// What a batch says of its counts: the rows, and what comes or goes.
    fn said(changes: &[(&str, u8, Change)]) -> Vec<(String, u8, Change)> {
        let mut batch = Batch::default();
        for (key, cell, change) in changes {
            batch.add((*key).into(), *cell, *change);
        }
        let text = |key: Vec<u8>| String::from_utf8_lossy(&key).into_owned();
        let said = batch.additions.into_iter();
        said.map(|(key, Addition { cell, change })| (text(key), cell, change)).collect()
    }

    #[test]
    fn what_the_items_of_a_batch_bring_is_added_up() {
        let item = [("a", 1, more(1)), ("b", 2, more(2)), ("c", 3, more(1))];
        let expected = [("a", 1, more(3)), ("b", 2, more(6)), ("c", 3, more(3))];
        let expected = expected.map(|(key, cell, change)| (key.to_owned(), cell, change));
        assert_eq!(said(&[item, item, item].concat()), expected);
        // Another row, or another cell of the same, stands by itself.
        let others = [("a", 1, more(1)), ("d", 1, more(1)), ("a", 2, more(1)), ("a", 1, more(1))];
        assert_eq!(said(&others).len(), 3);
    }

    /// An item that comes and goes in one commit must not go first.
    #[test]
    fn what_goes_stays_behind_what_came() {
        let changes = [("a", 1, less(1)), ("a", 1, more(1)), ("a", 1, less(1))];
        let expected = changes.map(|(key, cell, change)| (key.to_owned(), cell, change));
        assert_eq!(said(&changes), expected);
    }
}
