//! One commit of one write, or of many.
//!
//! The writes of a plan are in one bucket, and are decided in their order; each sees what
//! those before it decided. If it is atomic, one that is refused refuses all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dayfly_model::charge::Charge;
use dayfly_model::ttl::ContainerTtl;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::{Batch, Bucket, Draft, Plan, Redraft, Room, Second, Stamp, View};

use super::act::{LocatedAct, Wanted};
use super::apply::Applied;
use super::budget::WorkBudget;
use super::decide::{Decision, decide};
use super::sight::Sight;
use super::{locate, locate_by_id};
use crate::burials::Burials;
use crate::catalog::Container;
use crate::deadlines::Deadlines;
use crate::head::LogState;
use crate::index::Index;
use crate::keys::Partition;
use crate::operation::{BatchMode, WriteItem};
use crate::quota::{Allowance, Quota, Quotas, Shift};
use crate::record::Record;
use crate::reply::{Origin, Reply, Success, storage_failed};
use crate::scope::Opened;
use crate::shared::Shared;

/// What writes work with besides the store.
pub(crate) struct Around {
    index: Arc<Index>,
    deadlines: Arc<Deadlines>,
    /// Where expired items are counted that writes bury.
    burials: Arc<Burials>,
    /// What limits them, if anything does.
    quotas: Option<Arc<Quotas>>,
}

impl Around {
    pub(crate) fn of(shared: &Shared) -> Around {
        Around {
            index: Arc::clone(&shared.index),
            deadlines: Arc::clone(&shared.deadlines),
            burials: Arc::clone(&shared.burials),
            quotas: shared.quotas.as_ref().map(Arc::clone),
        }
    }
}

impl Around {
    /// What limits these writes to a bucket.
    fn quota(
        &self,
        container: &Container,
        bucket: Bucket,
        wanted: &[Result<Wanted>],
    ) -> Option<Quota> {
        let partitions = wanted.iter().flatten().map(|wanted| &wanted.act.spot().partition);
        let quotas = self.quotas.as_ref()?;
        Some(quotas.quota(container, bucket, partitions))
    }
}

/// Reads writes as far as they can be read without looking at the store's
/// items, and makes the plan for them. All are in `bucket` and are named by id; what cannot be
/// read fails in its turn.
pub(crate) fn plan(
    opened: &Opened,
    bucket: Bucket,
    origin: Origin,
    writes: impl IntoIterator<Item = Result<WriteItem>>,
    mode: BatchMode,
    around: Around,
) -> WritePlan {
    let parsed = |write: Result<WriteItem>| {
        write.and_then(|write| Wanted::read(opened, write, locate_by_id))
    };
    let container = Arc::clone(&opened.container);
    let wanted: Vec<_> = writes.into_iter().map(parsed).collect();
    let quota = around.quota(&container, bucket, &wanted);
    let (place, read) = (origin, AtomicUsize::new(0));
    WritePlan { container, bucket, place, wanted, mode, around, quota, read }
}

/// The plan for one write, which must be readable.
pub(crate) fn plan_one(opened: &Opened, write: WriteItem, around: Around) -> Result<WritePlan> {
    let wanted = Wanted::read(opened, write, locate)?;
    let spot = wanted.act.spot();
    let (bucket, place) = (spot.bucket, spot.place(&opened.container, 0));
    let (container, wanted) = (Arc::clone(&opened.container), vec![Ok(wanted)]);
    let quota = around.quota(&container, bucket, &wanted);
    let (mode, read) = (BatchMode::Atomic, AtomicUsize::new(0));
    Ok(WritePlan { container, bucket, place, wanted, mode, around, quota, read })
}

/// Writes to items of one bucket, ready to be drafted. There is at least one.
pub(crate) struct WritePlan {
    container: Arc<Container>,
    bucket: Bucket,
    /// Where it happens.
    place: Origin,
    wanted: Vec<Result<Wanted>>,
    mode: BatchMode,
    around: Around,
    /// What may be alive, if that is limited.
    quota: Option<Quota>,
    /// How many bytes of stored items the last draft read whole.
    read: AtomicUsize,
}

/// What a committed plan answers, before it is rendered.
pub(crate) struct Written {
    container: Arc<Container>,
    place: Origin,
    lsn: u64,
    now: Timestamp,
    /// How each write went.
    outcomes: Vec<Result<Done>>,
    /// How many expired items stood in their way.
    buried: usize,
    /// From which second on it is not told any more what they did, if it is told.
    told_until: Option<Second>,
    /// What it did in partitions, if somebody has to know.
    moved: Vec<(Partition, Shift)>,
}

/// What one write did.
struct Done {
    status: u16,
    /// The new version; none after a delete.
    record: Option<Record>,
    minimal: bool,
    charge: Charge,
    ttl_ignored: bool,
    /// When the new version dies, if the default stays.
    dies_at: Option<Second>,
}

/// Why nothing was written.
pub(crate) enum RefusedPlan {
    /// The writes were decided, and none of them writes anything.
    Decided(Written),
    /// They could not be decided.
    Failed(Reply),
}

impl From<dayfly_storage::Error> for RefusedPlan {
    fn from(error: dayfly_storage::Error) -> Self {
        RefusedPlan::Failed(error.into())
    }
}

/// More than this of stored items is not read while everybody waits.
const READ_BYTES_MAX: usize = 16 * 1024;

/// The largest answer of a plan, in bytes of items.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

impl WritePlan {
    pub(crate) fn bucket(&self) -> Bucket {
        self.bucket
    }

    /// Where it happens, with all commits up to `lsn`.
    fn place(&self, lsn: u64) -> Origin {
        Origin { lsn: Some(lsn), ..self.place.clone() }
    }

    /// What becomes of each write.
    fn decide<'p>(
        &'p self,
        sight: &mut Sight<'_>,
        mut allowance: Option<Allowance<'p>>,
    ) -> Vec<Result<Decision>> {
        let mut decisions: Vec<Result<Decision>> = Vec::with_capacity(self.wanted.len());
        let (mut bytes, mut has_failed) = (0, false);
        // Why there is no room for more. Those that are sent again stay in their order.
        let mut full: Option<Error> = None;
        for (place, wanted) in self.wanted.iter().enumerate() {
            let decision = match (wanted, &full) {
                _ if has_failed && self.mode != BatchMode::GoesOn => Err(dependent()),
                (Err(error), _) | (Ok(_), Some(error)) => Err(error.clone()),
                (Ok(wanted), None) => sight
                    .look_ahead(&self.wanted, place)
                    .and_then(|()| decide(&*sight, &self.container, wanted))
                    .map(|decision| (decision, wanted)),
            };
            let decision = decision.and_then(|(decision, wanted)| {
                bytes += decision.answer_bytes(wanted.minimal);
                // One item always has room.
                if place > 0 && bytes > ANSWER_BYTES_MAX {
                    return Err(self.too_much());
                }
                if let Some(allowance) = &mut allowance {
                    let (before, after) = decision.item_bytes(sight.now);
                    allowance.take(&wanted.act.spot().partition, before, after)?;
                }
                Ok(decision)
            });
            if self.mode == BatchMode::Atomic && place > 0 && bytes > ANSWER_BYTES_MAX {
                return self.refuse_last();
            }
            if full.is_none() {
                full = decision.as_ref().err().filter(|error| is_sent_again(error)).cloned();
            }
            match &decision {
                // Nobody looks after the last one.
                Ok(decision) if place + 1 < self.wanted.len() => sight.note(place, decision),
                Ok(_) => {}
                Err(_) if self.mode == BatchMode::Atomic && !has_failed => {
                    has_failed = true;
                    for before in &mut decisions {
                        *before = Err(dependent());
                    }
                }
                Err(_) => has_failed = true,
            }
            decisions.push(decision);
        }
        decisions
    }

    /// An atomic batch whose answer is too much. The last operation says so, as the service's
    /// does, and those between are not decided in vain: each may make another version of a
    /// large item.
    fn refuse_last(&self) -> Vec<Result<Decision>> {
        let mut refused: Vec<_> = self.wanted.iter().map(|_| Err(dependent())).collect();
        if let Some(last) = refused.last_mut() {
            *last = Err(self.too_much());
        }
        refused
    }

    /// The refusal of an operation whose answer is too much for the batch. What is not
    /// atomic can be sent again by itself, and says so.
    fn too_much(&self) -> Error {
        let kind = match self.mode {
            BatchMode::Atomic => ErrorKind::TooLarge,
            BatchMode::Stops | BatchMode::GoesOn => ErrorKind::AnswerTooLarge,
        };
        Error::new(kind, "Response size is too large: the limit is 4 MB for a batch.")
    }

    fn is_minimal(&self) -> Vec<bool> {
        self.wanted
            .iter()
            .map(|wanted| wanted.as_ref().is_ok_and(|wanted| wanted.minimal))
            .collect()
    }
}

/// Whether an operation is refused only because of those before it in its request.
fn is_sent_again(error: &Error) -> bool {
    error.kind == ErrorKind::AnswerTooLarge
}

fn dependent() -> Error {
    Error::new(
        ErrorKind::FailedDependency,
        "Another operation of the batch failed, so this one was not carried out.",
    )
}

impl Plan for WritePlan {
    type Done = Written;
    type Refusal = RefusedPlan;

    fn draft(&self, view: &View<'_>) -> Result<Draft<Written>, RefusedPlan> {
        let (lsn, now) = (view.head().lsn, Timestamp(view.now()));
        let failed = |error| RefusedPlan::Failed(Reply::failed(error, now).at(self.place(lsn)));
        let budget = WorkBudget::new(self.mode);
        let sight = Sight::new(view, self.bucket, &self.around.index, budget);
        let mut sight = sight.map_err(failed)?;
        let allowance = self.quota.as_ref().map(|quota| quota.at(view)).transpose();
        let decisions = self.decide(&mut sight, allowance.map_err(failed)?);
        if let Some(quota) = self.quota.as_ref().filter(|quota| quota.takes_long(view)) {
            quota.give_back();
            return Err(failed(storage_failed(dayfly_storage::Error::Retry)));
        }
        let made = || decisions.iter().flatten();
        self.read.store(made().map(Decision::stored_bytes).sum(), Ordering::Relaxed);
        let writes = made().any(Decision::writes);
        let valid_before = made().map(|decision| decision.valid_before).min();
        // What stands in the way of a write that failed may be dead in the next second.
        let refused_before = decisions.iter().any(Result::is_err).then_some(now.0 + 1);
        let valid_before = valid_before.into_iter().chain(refused_before).min();
        let rows = made().map(Decision::rows).sum();
        let decided = Decided {
            container: Arc::clone(&self.container),
            place: self.place(lsn),
            bucket: self.bucket,
            default: sight.default,
            log: sight.log,
            minimal: self.is_minimal(),
            counts: self.quota.as_ref().is_some_and(Quota::counts),
            quotas: self.around.quotas.as_ref().map(Arc::clone),
            decisions,
        };
        if !writes {
            if let Some(quota) = &self.quota {
                quota.give_back();
            }
            return Err(RefusedPlan::Decided(decided.show(lsn, now)));
        }
        Ok(Draft::new(move |stamp, batch: &mut Batch| decided.apply(stamp, batch))
            .of_rows(rows)
            .valid_before(valid_before.unwrap_or(Second::MAX)))
    }

    fn room(&self) -> Room {
        let frees =
            |wanted: &Wanted| matches!(wanted.act, LocatedAct::Delete(_) | LocatedAct::Read(_));
        if self.wanted.iter().flatten().all(frees) { Room::Frees } else { Room::Grows }
    }

    fn bytes(&self) -> usize {
        self.wanted.iter().flatten().map(|wanted| wanted.act.weight()).sum()
    }

    /// A patch reads the whole item and may run a query over it: too much for the
    /// committer, for whom everybody waits. So is a large item that is replaced or goes, whose
    /// entries are derived from its text, and so may be a quota, if much has to be counted.
    /// Where others write the item all the time the committer does it in the end; then it is
    /// bounded by [`WorkBudget`].
    fn redraft(&self) -> Redraft {
        let is_patch = |wanted: &Wanted| matches!(wanted.act, LocatedAct::Patch(..));
        let is_long = self.wanted.iter().flatten().any(is_patch)
            || self.read.load(Ordering::Relaxed) > READ_BYTES_MAX
            || self.quota.as_ref().is_some_and(Quota::took_long);
        if is_long { Redraft::AtCaller } else { Redraft::Here }
    }

    /// Tells the purge when the new versions die, and leave the log, and counts the expired items that were
    /// buried: now that all can see it, and not before.
    fn published(&self, written: &Written) {
        let dies_at = |done: &Done| done.dies_at;
        let deaths = written.outcomes.iter().flatten().filter_map(dies_at);
        for at in deaths.chain(written.told_until) {
            self.around.deadlines.tell(self.bucket, at);
        }
        self.around.burials.buried(self.bucket, written.buried);
        if let Some(quota) = &self.quota {
            quota.settle(written.lsn, &written.moved);
        }
    }

    /// What it made may be there, and die: the purge looks for itself.
    fn doubtful(&self) {
        self.around.deadlines.look_at(self.bucket);
        if let Some(quota) = &self.quota {
            quota.doubt();
        }
    }
}

/// A plan that is decided, on its way to the commit.
struct Decided {
    container: Arc<Container>,
    place: Origin,
    bucket: Bucket,
    /// The container's default.
    default: ContainerTtl,
    /// The log of the bucket, if it has one.
    log: Option<LogState>,
    minimal: Vec<bool>,
    /// Whether somebody has to know what it does in partitions.
    counts: bool,
    /// Who has to know that something dead is buried.
    quotas: Option<Arc<Quotas>>,
    decisions: Vec<Result<Decision>>,
}

impl Decided {
    /// What is answered where nothing is written.
    fn show(self, lsn: u64, now: Timestamp) -> Written {
        let stamp = Stamp { lsn, ts: now.0, opened: 0 };
        self.apply(stamp, &mut Batch::default())
    }

    fn apply(self, stamp: Stamp, batch: &mut Batch) -> Written {
        let mut applied = Applied::new(stamp, self.bucket, self.log.is_some(), batch);
        if self.counts {
            applied.count();
        }
        let has_corpses = |decision: &Decision| !decision.corpses.is_empty();
        if let Some(quotas) = &self.quotas
            && self.decisions.iter().flatten().any(has_corpses)
        {
            quotas.buried(self.bucket, stamp.lsn);
        }
        let mut outcomes = Vec::with_capacity(self.decisions.len());
        let mut buried = 0;
        for (decision, minimal) in self.decisions.into_iter().zip(self.minimal) {
            outcomes.push(decision.map(|decision| {
                let Decision { corpses, change, status, charge, ttl_ignored, .. } = decision;
                applied.apply(&corpses, change);
                buried += corpses.iter().filter(|corpse| corpse.has_expired).count();
                Done { status, record: None, minimal, charge, ttl_ignored, dies_at: None }
            }));
            if outcomes.last().is_some_and(Result::is_err) {
                applied.pass();
            }
        }
        let (versions, moved) = applied.into_versions();
        for (outcome, record) in outcomes.iter_mut().zip(versions) {
            if let Ok(done) = outcome {
                let life = record.as_ref().map(|record| record.life);
                done.dies_at = life.and_then(|life| life.expires_at(self.default)).map(|at| at.0);
                done.record = record;
            }
        }
        let place = Origin { lsn: Some(stamp.lsn), ..self.place };
        let (lsn, now) = (stamp.lsn, Timestamp(stamp.ts));
        let told_until = self.log.map(|log| log.until(now));
        let container = self.container;
        Written { container, place, lsn, now, outcomes, buried, told_until, moved }
    }
}

impl Written {
    /// The answer to the one write of a plan, as clients see it.
    pub(crate) fn into_reply(self) -> Reply {
        let nothing = || Error::new(ErrorKind::Internal, "A plan without a write.").into();
        self.into_replies().pop().unwrap_or_else(nothing)
    }

    /// The answer to each write of a plan.
    pub(crate) fn into_replies(mut self) -> Vec<Reply> {
        let outcomes = std::mem::take(&mut self.outcomes).into_iter();
        outcomes.map(|outcome| self.reply(outcome)).collect()
    }

    /// Where and when it happened.
    pub(crate) fn origin(&self) -> (Origin, Timestamp) {
        (self.place.clone(), self.now)
    }

    fn reply(&self, outcome: Result<Done>) -> Reply {
        match outcome {
            Ok(done) => Reply::ok(self.shown(&done), self.now, done.charge),
            Err(error) => Reply::failed(error, self.now),
        }
        .at(self.place.clone())
    }

    fn shown(&self, done: &Done) -> Success {
        let ttl_ignored = done.ttl_ignored;
        let mut success = Success { status: done.status, ttl_ignored, ..Success::default() };
        if let Some(record) = &done.record {
            let etag = record.etag(&self.container);
            success.item_lsn = Some(self.lsn);
            if !done.minimal && done.status != 304 {
                success.body = record.render(&self.container, &etag);
            }
            success.etag = Some(etag);
        }
        success
    }
}
