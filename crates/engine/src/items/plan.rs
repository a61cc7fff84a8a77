//! One commit of one write, or of many.
//!
//! The writes of a plan are in one bucket, and are decided in their order; each sees what
//! those before it decided. If it is atomic, one that is refused refuses all of them.

use std::sync::Arc;

use dayfly_model::ttl::ContainerTtl;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::{Batch, Bucket, Draft, Plan, Room, Second, Stamp, View};

use super::act::{Act, Body, Wanted};
use super::apply::Applied;
use super::decide::{Decision, decide};
use super::sight::Sight;
use crate::burials::Burials;
use crate::catalog::Container;
use crate::deadlines::Deadlines;
use crate::head::State;
use crate::index::Index;
use crate::operation::WriteItem;
use crate::record::Record;
use crate::reply::{Place, Reply, Success};
use crate::scope::Opened;
use crate::shared::Shared;

/// What writes work with besides the store.
pub(crate) struct Around {
    index: Arc<Index>,
    deadlines: Arc<Deadlines>,
    /// Where expired items are counted that writes bury.
    burials: Arc<Burials>,
}

impl Around {
    pub(crate) fn of(shared: &Shared) -> Around {
        Around {
            index: Arc::clone(&shared.index),
            deadlines: Arc::clone(&shared.deadlines),
            burials: Arc::clone(&shared.burials),
        }
    }
}

/// Reads writes as far as they can be read without looking at the store's
/// items, and makes the plan for them. All are in one logical partition, or at least in
/// one bucket.
pub(crate) fn plan(
    opened: &Opened,
    writes: impl IntoIterator<Item = WriteItem>,
    is_atomic: bool,
    around: Around,
) -> Result<WritePlan> {
    let wanted = writes.into_iter().map(|write| Wanted::read(opened, write)).collect::<Result<_>>();
    let container = Arc::clone(&opened.container);
    Ok(WritePlan { container, wanted: wanted?, is_atomic, around })
}

/// Writes to items of one bucket, ready to be drafted. There is at least one.
pub(crate) struct WritePlan {
    container: Arc<Container>,
    wanted: Vec<Wanted>,
    is_atomic: bool,
    around: Around,
}

/// What a committed plan answers, before it is rendered.
pub(crate) struct Written {
    container: Arc<Container>,
    place: Place,
    lsn: u64,
    now: Timestamp,
    /// How each write went.
    outcomes: Vec<Result<Done>>,
    /// How many expired items stood in their way.
    buried: usize,
}

/// What one write did.
struct Done {
    status: u16,
    /// The new version; none after a delete.
    record: Option<Record>,
    minimal: bool,
    charge_ru: f64,
    ttl_ignored: bool,
    /// When the new version dies, if the default stays.
    dies_at: Option<Second>,
}

impl WritePlan {
    pub(crate) fn bucket(&self) -> Bucket {
        self.first().map_or(Bucket(0), |wanted| wanted.act.spot().bucket)
    }

    fn first(&self) -> Option<&Wanted> {
        self.wanted.first()
    }

    /// Where it happens, with all commits up to `lsn`.
    fn place(&self, lsn: u64) -> Place {
        match self.first() {
            Some(wanted) => wanted.act.spot().place(&self.container, lsn),
            None => self.container.place(None, Some(lsn)),
        }
    }

    fn refuse(&self, view: &View<'_>, error: Error) -> Reply {
        Reply::failed(error, Timestamp(view.now())).at(self.place(view.head().lsn))
    }

    /// What becomes of each write.
    fn decide(&self, view: &View<'_>) -> Result<Vec<Result<Decision>>> {
        let mut sight = Sight::new(view, self.bucket(), &self.around.index)?;
        let mut decisions = Vec::with_capacity(self.wanted.len());
        for (place, wanted) in self.wanted.iter().enumerate() {
            let decision = decide(&sight, &self.container, wanted);
            match &decision {
                // Nobody looks after the last one.
                Ok(decision) if place + 1 < self.wanted.len() => sight.note(place, decision),
                Err(error) if self.is_atomic => return Err(error.clone()),
                _ => {}
            }
            decisions.push(decision);
        }
        Ok(decisions)
    }
}

impl Plan for WritePlan {
    type Done = Written;
    type Refusal = Reply;

    fn draft(&self, view: &View<'_>) -> Result<Draft<Written>, Reply> {
        let decisions = self.decide(view).map_err(|error| self.refuse(view, error))?;
        let made = || decisions.iter().flatten();
        let valid_before = made().map(|decision| decision.valid_before).min();
        let rows = made().map(Decision::rows).sum();
        let draft = Decided {
            container: Arc::clone(&self.container),
            place: self.place(0),
            bucket: self.bucket(),
            default: State::of(view.head()).policy.at(Timestamp(view.now())).default,
            minimal: self.wanted.iter().map(|wanted| wanted.minimal).collect(),
            decisions,
        };
        Ok(Draft::new(move |stamp, batch: &mut Batch| draft.apply(stamp, batch))
            .of_rows(rows)
            .valid_before(valid_before.unwrap_or(Second::MAX)))
    }

    fn room(&self) -> Room {
        let frees = |wanted: &Wanted| matches!(wanted.act, Act::Delete(_));
        if self.wanted.iter().all(frees) { Room::Frees } else { Room::Grows }
    }

    fn bytes(&self) -> usize {
        self.wanted.iter().filter_map(|wanted| wanted.act.body()).map(Body::weight).sum()
    }

    /// Tells the purge when the new versions die, and counts the expired items that were
    /// buried: now that all can see it, and not before.
    fn published(&self, written: &Written) {
        let dies_at = |done: &Done| done.dies_at;
        for at in written.outcomes.iter().flatten().filter_map(dies_at) {
            self.around.deadlines.tell(self.bucket(), at);
        }
        self.around.burials.buried(self.bucket(), written.buried);
    }

    /// What it made may be there, and die: the purge looks for itself.
    fn doubtful(&self) {
        self.around.deadlines.look_at(self.bucket());
    }
}

/// A plan that is decided, on its way to the commit.
struct Decided {
    container: Arc<Container>,
    place: Place,
    bucket: Bucket,
    /// The container's default.
    default: ContainerTtl,
    minimal: Vec<bool>,
    decisions: Vec<Result<Decision>>,
}

impl Decided {
    fn apply(self, stamp: Stamp, batch: &mut Batch) -> Written {
        let mut applied = Applied::new(stamp, self.bucket, batch);
        let mut outcomes = Vec::with_capacity(self.decisions.len());
        let mut buried = 0;
        for (decision, minimal) in self.decisions.into_iter().zip(self.minimal) {
            outcomes.push(decision.map(|decision| {
                let Decision { corpses, change, status, charge_ru, ttl_ignored, .. } = decision;
                applied.apply(&corpses, change);
                buried += corpses.len();
                Done { status, record: None, minimal, charge_ru, ttl_ignored, dies_at: None }
            }));
            if outcomes.last().is_some_and(Result::is_err) {
                applied.pass();
            }
        }
        for (outcome, record) in outcomes.iter_mut().zip(applied.into_versions()) {
            if let Ok(done) = outcome {
                let life = record.as_ref().map(|record| record.life);
                done.dies_at = life.and_then(|life| life.expires_at(self.default)).map(|at| at.0);
                done.record = record;
            }
        }
        let place = Place { lsn: Some(stamp.lsn), ..self.place };
        let (lsn, now) = (stamp.lsn, Timestamp(stamp.ts));
        Written { container: self.container, place, lsn, now, outcomes, buried }
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

    fn reply(&self, outcome: Result<Done>) -> Reply {
        match outcome {
            Ok(done) => Reply::ok(self.shown(&done), self.now, done.charge_ru),
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
            if !done.minimal {
                success.body = record.render(&self.container, &etag);
            }
            success.etag = Some(etag);
        }
        success
    }
}
