//! What each operation means: databases, containers, items, lists, offers, and
//! the purge.
//!
//! [`Engine::run`] is the one switchboard. A read is answered at once, from
//! one snapshot with one time. A write to an item is one commit: its plan runs
//! here, against a snapshot, and the answer comes when the commit is durable
//! and visible. Queries go to lanes of threads, and end when nobody wants them. Changes of
//! databases and containers go to the clerk, one at a time. Where the store waits for a
//! network, all of it begins at a desk of threads, so that no caller waits for a read.
//!
//! This crate knows nothing of HTTP, headers or tokio.

mod answer;
mod background;
mod burials;
mod caller;
pub mod cancel;
mod catalog;
pub mod check;
mod clerk;
mod clock;
mod condition;
mod containers;
mod creation;
mod databases;
mod deadlines;
mod delete_partition;
mod deleted;
mod desk;
mod encryption_keys;
mod feed;
pub mod figures;
mod head;
mod history;
mod index;
mod install;
mod items;
mod keys;
mod lanes;
mod list;
mod listings;
mod liveness;
mod lives;
mod locks;
mod log;
mod metering;
mod offers;
pub mod operation;
mod pages;
mod parts;
mod purge;
mod query;
mod quota;
mod ranges;
mod record;
mod recovery;
pub mod reply;
mod rows;
mod scope;
mod settings;
mod shared;
mod short;
mod splits;
mod standing;
mod statistics;
mod stopwatch;
mod survey;
#[cfg(test)]
mod tests;
pub mod throughput;
pub mod ttl;
mod unfinished;
mod unique;
mod usage;
mod version;
mod workers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use dayfly_model::partition_key::PartitionKey;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_sql::run::Steps;
pub use dayfly_storage::clock::Reading;
use dayfly_storage::clock::{Refused, Step};
use dayfly_storage::{
    Batch, Bucket, Draft, Plan, Snapshot, Stamp, Store, Ticket, View, commit, commit_returning,
    commit_returning_elsewhere,
};
pub use dayfly_storage::{COMMIT_SECONDS, Figures};
use serde_json::json;

pub use crate::answer::{Answer, PendingAnswer};
use crate::answer::{FromContainer, Waiting};
pub use crate::caller::Caller;
use crate::cancel::{Cancel, Waiter};
use crate::check::{Checked, Recount, Recounts};
use crate::clerk::Clerk;
use crate::delete_partition::DeletePartition;
use crate::desk::{Desk, DeskThreads};
use crate::feed::Changes;
use crate::figures::AllFigures;
use crate::items::Around;
use crate::lanes::Lanes;
pub use crate::lanes::{ByLane, LaneFigures};
use crate::metering::Toll;
use crate::operation::{ContainerScope, Operation, Part, ReadChanges, WriteBatch, WriteItem};
use crate::purge::Purge;
pub use crate::purge::{LAG_SECONDS, Lag, PurgeFigures, PurgeState, PurgeStatus};
use crate::reply::{Reply, Success, storage_failed};
use crate::scope::{Opened, paid};
pub use crate::settings::{EngineSettings, QueryLimits, QuerySteps, ThroughputMode};
use crate::shared::Shared;
use crate::throughput::OfferFigures;
use crate::workers::Worker;

/// The database.
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) purge: Arc<Purge>,
    /// How the recounts ended.
    recounts: Recounts,
    /// Where operations begin, if the store waits for a network. Gone before the others are.
    desk: Option<DeskThreads>,
    board: Arc<Switchboard>,
}

/// What carries operations out.
struct Switchboard {
    shared: Arc<Shared>,
    purge: Arc<Purge>,
    /// Where databases and containers are changed, one at a time.
    changes: Worker,
    /// Where purges are asked for that somebody waits for.
    purges: Worker,
    /// Where queries are handed in.
    lanes: Lanes,
    /// Where is read what is read after an operation began, if the store waits for a network.
    desk: Option<Arc<Desk>>,
}

impl Engine {
    /// Opens the database in `store`, and finishes what a crash cut off.
    pub fn open(store: Arc<dyn Store>, settings: EngineSettings) -> Result<Engine> {
        let shared = Arc::new(Shared::new(store, settings));
        recovery::recover(&shared)?;
        let changes = Worker::open("dayfly-clerk", &shared)?;
        let purges = Worker::open("dayfly-purge-run", &shared)?;
        let lanes = Lanes::open(&shared)?;
        let purge = Arc::new(Purge::new(Arc::clone(&shared)));
        let threads = shared.store.waits().then(DeskThreads::open).transpose()?;
        let desk = threads.as_ref().map(DeskThreads::desk);
        let board = Switchboard {
            shared: Arc::clone(&shared),
            purge: Arc::clone(&purge),
            changes,
            purges,
            lanes,
            desk,
        };
        let (board, recounts) = (Arc::new(board), Recounts::default());
        Ok(Engine { shared, purge, recounts, desk: threads, board })
    }

    /// Does what `operation` asks, for whoever has the primary key.
    pub fn run(&self, operation: Operation) -> Answer {
        self.run_for(Caller::Primary, operation, Cancel::default())
    }

    /// Does what `operation` asks, if the caller may, and until the answer is not wanted any
    /// more. On a store that waits for a network it begins on a thread of the desk, unless it
    /// asks for the time alone, which takes no read.
    pub fn run_for(&self, caller: Caller, operation: Operation, cancel: Cancel) -> Answer {
        if let Err(refused) = caller.check(&operation) {
            return Answer::Ready(refused.into());
        }
        match &self.board.desk {
            Some(desk) if !matches!(operation, Operation::ReadTime) => {
                self.begin_at(desk, caller, operation, cancel)
            }
            _ => self.board.run(caller, operation, cancel),
        }
    }

    fn begin_at(
        &self,
        desk: &Desk,
        caller: Caller,
        operation: Operation,
        cancel: Cancel,
    ) -> Answer {
        let board = Arc::clone(&self.board);
        let work = AssertUnwindSafe(move || board.run(caller, operation, cancel));
        let answer = desk.hand_in(move || {
            catch_unwind(work).unwrap_or_else(|_| {
                let why = "The request could not be carried out.";
                Answer::Ready(Error::new(ErrorKind::Internal, why).into())
            })
        });
        match answer {
            Ok(receiver) => Answer::Pending(PendingAnswer(Waiting::Begun(receiver))),
            Err(refused) => Answer::Ready(refused.into()),
        }
    }
}

impl Switchboard {
    /// Does what `operation` asks. Everything the server can do is here.
    fn run(&self, caller: Caller, operation: Operation, cancel: Cancel) -> Answer {
        match operation {
            Operation::ReadTime => self
                .look(|snapshot| Ok(Reply::ok(Success::new(200, ""), catalog::now(snapshot), 0.0))),

            Operation::CreateDatabase { id, throughput } => {
                self.change(move |clerk| databases::create(clerk, &id, throughput))
            }
            Operation::ReadDatabase { database, condition } => {
                self.look(|snapshot| databases::read(snapshot, &database, &condition))
            }
            Operation::ListDatabases { page } => {
                self.look(|snapshot| databases::list(snapshot, &page))
            }
            Operation::DeleteDatabase { database, condition } => {
                self.change(move |clerk| databases::delete(clerk, &database, condition))
            }

            Operation::CreateContainer { database, definition, throughput, showing } => self
                .change(move |clerk| {
                    containers::create(clerk, &database, &definition, throughput, showing)
                }),
            Operation::ReadContainer { at, condition, wishes } => {
                Answer::Ready(self.shared.enter(&at, ErrorKind::NotFound).map_or_else(
                    |reply| reply,
                    |opened| containers::read(&opened, &condition, wishes, &self.shared),
                ))
            }
            Operation::ListContainers { database, page, showing } => {
                self.look(|snapshot| containers::list(snapshot, &database, &page, showing))
            }
            Operation::ReplaceContainer(replacement) => {
                self.change(move |clerk| containers::replace(clerk, &replacement, caller))
            }
            Operation::DeleteContainer { at, condition } => {
                self.change(move |clerk| containers::delete(clerk, &at, &condition))
            }

            Operation::CreateEncryptionKey { database, key } => {
                self.change(move |clerk| encryption_keys::create(clerk, &database, &key))
            }
            Operation::ReadEncryptionKey { database, key, condition } => {
                self.look(|snapshot| encryption_keys::read(snapshot, &database, &key, &condition))
            }
            Operation::ListEncryptionKeys { database, page } => {
                self.look(|snapshot| encryption_keys::list(snapshot, &database, &page))
            }
            Operation::ReplaceEncryptionKey { database, key, replacement, condition } => self
                .change(move |clerk| {
                    encryption_keys::replace(clerk, &database, &key, &replacement, condition)
                }),

            Operation::WriteItem(write) => self.write_item(write),
            Operation::WriteBatch(batch) => self.write_batch(batch),
            Operation::DeletePartition { at, partition_key } => {
                self.delete_partition(&at, partition_key)
            }
            Operation::ReadItem { at, item, condition } => {
                let part = Part::of(item.partition_key.clone());
                let read = |opened: &Opened| items::read(opened, item, &part, &condition);
                Answer::Ready(self.shared.in_metered(&at, &part, read))
            }
            Operation::ListItems { at, part, page } => {
                Answer::Ready(
                    self.shared.in_metered(&at, &part, |opened| list::items(opened, &part, &page)),
                )
            }

            Operation::ReadChanges(asked) => self.read_changes(asked, cancel),

            Operation::QueryItems(asked) => {
                // A query that is begun anew in another lane is one request all the same.
                let toll = match self.shared.enter_metered(&asked.at, &asked.part) {
                    Ok((_, toll)) => toll,
                    Err(reply) => return Answer::Ready(reply),
                };
                self.query(cancel, toll, move |shared, steps| {
                    let look = |opened: &Opened| query::items(shared, opened, &asked, steps);
                    shared.in_container(&asked.at, &asked.part, look)
                })
            }
            Operation::ExplainQuery(asked) => self.query(cancel, None, move |shared, steps| {
                let opened = shared.enter(&asked.at, ErrorKind::NotFound);
                opened.map_or_else(
                    |reply| reply,
                    |opened| query::explain(shared, &opened, &asked, steps),
                )
            }),
            Operation::PlanQuery(asked) => {
                self.view_at(&asked.at, ErrorKind::OwnerNotFound, |opened| {
                    query::plan(opened, &asked)
                })
            }
            Operation::QueryFeed(asked) => {
                self.query(cancel, None, move |shared, steps| query::feed(shared, &asked, steps))
            }

            Operation::Refuse { at, part, error } => Answer::Ready(self.refuse(&at, &part, error)),

            Operation::ListRanges { at, known } => Answer::Ready(
                self.shared
                    .enter(&at, ErrorKind::OwnerNotFound)
                    .map_or_else(|reply| reply, |opened| ranges::list(&opened, known.as_deref())),
            ),
            Operation::ListConflicts { at } => {
                self.view(&at, |opened| Ok(containers::conflicts(opened)))
            }
            Operation::FindConflict { at } => {
                self.view(&at, |_| Err(catalog::not_found(ErrorKind::NotFound)))
            }
            Operation::ListOffers { page } => {
                self.look_at_offers(|snapshot| offers::list(snapshot, &page))
            }
            Operation::ReadOffer { offer } => {
                self.look_at_offers(|snapshot| offers::read(snapshot, &offer))
            }
            Operation::SplitRanges { at, division } => {
                self.change(move |clerk| splits::split(clerk, &at, &division))
            }
            Operation::ReplaceOffer(replacement) => {
                self.change(move |clerk| offers::replace(clerk, replacement))
            }

            Operation::ReadTtl { at } => self.view(&at, |opened| {
                ttl::status(opened, &purge::status(&self.purge, opened.container.number))
            }),
            Operation::ForecastTtl { at, buckets, bucket_seconds } => {
                self.view(&at, |opened| ttl::forecast(opened, buckets, bucket_seconds))
            }
            Operation::WhatIfTtl { at, default } => {
                self.view(&at, |opened| ttl::what_if(opened, default))
            }
            Operation::ExplainTtl { at, id, partition_key } => {
                self.view(&at, |opened| ttl::explain(opened, &id, partition_key))
            }

            Operation::SurveyContainers { page } => {
                self.look(|snapshot| survey::containers(&self.shared, &self.purge, snapshot, &page))
            }
            Operation::SurveyContainer { at } => {
                self.view(&at, |opened| survey::one(&self.shared, &self.purge, opened))
            }
            Operation::SurveyItems(asked) => {
                self.view(&asked.at, |opened| survey::items(opened, &asked))
            }

            Operation::ReadThroughput { at, seconds } => {
                self.view(&at, |opened| throughput::status(&self.shared, opened, seconds))
            }
            Operation::SwitchThroughput { at, mode } => self.view(&at, |opened| {
                offers::check_account(&self.shared.settings)?;
                throughput::switch(&self.shared, opened, mode)
            }),
            Operation::ShareThroughput { at, shares } => self.view(&at, |opened| {
                offers::check_account(&self.shared.settings)?;
                throughput::share(&self.shared, opened, shares)
            }),

            Operation::ReadClock => {
                Answer::Ready(clock::reply(self.shared.store.clock().map_err(Refused::Storage)))
            }
            Operation::MoveClock { step } => self.move_clock(step),
            Operation::Reset => self.change(databases::reset),

            Operation::RunPurge { container } => match self.purge_scope(container) {
                Ok((scope, now)) => self.run_purge(scope, now),
                Err(reply) => Answer::Ready(reply),
            },
            Operation::PausePurge { container } => self.steer_purge(container, purge::pause),
            Operation::ResumePurge { container } => self.steer_purge(container, purge::resume),
        }
    }

    fn look(&self, read: impl FnOnce(&dyn Snapshot) -> Result<Reply>) -> Answer {
        Answer::Ready(self.shared.answer(read))
    }

    /// Answers about offers, if there are any in this account.
    fn look_at_offers(&self, read: impl FnOnce(&dyn Snapshot) -> Result<Reply>) -> Answer {
        self.look(|snapshot| {
            offers::check_account(&self.shared.settings)?;
            read(snapshot)
        })
    }

    /// Answers from one look at a container.
    fn view(&self, at: &ContainerScope, look: impl FnOnce(&Opened) -> Result<Reply>) -> Answer {
        self.view_at(at, ErrorKind::NotFound, look)
    }

    /// The same, with the error for a container that is not there.
    fn view_at(
        &self,
        at: &ContainerScope,
        missing: ErrorKind,
        look: impl FnOnce(&Opened) -> Result<Reply>,
    ) -> Answer {
        Answer::Ready(match self.shared.enter(at, missing) {
            Ok(opened) => look(&opened).unwrap_or_else(|error| opened.failed(error)),
            Err(reply) => reply,
        })
    }

    fn change(&self, change: impl FnOnce(&Clerk<'_>) -> Reply + Send + 'static) -> Answer {
        self.change_for(None, change)
    }

    /// The same, for whoever pays.
    fn change_for(
        &self,
        toll: Option<Toll>,
        change: impl FnOnce(&Clerk<'_>) -> Reply + Send + 'static,
    ) -> Answer {
        let change = move |shared: &Shared| change(&Clerk::new(shared));
        Answer::Pending(PendingAnswer(Waiting::Work(self.changes.hand_in(change), toll)))
    }

    /// Queries may take long, so they have threads of their own.
    fn query(
        &self,
        cancel: Cancel,
        toll: Option<Toll>,
        query: impl Fn(&Shared, &Steps<'_>) -> Reply + Send + Sync + 'static,
    ) -> Answer {
        let receiver = self.lanes.hand_in(cancel.clone(), query);
        Answer::Pending(PendingAnswer(Waiting::Query(receiver, Waiter(cancel), toll)))
    }

    fn write_item(&self, write: WriteItem) -> Answer {
        let part = Part::of(write.partition_key.clone());
        let opened = match self.shared.enter_part(&write.at, &part) {
            Ok(opened) => opened,
            Err(reply) => return Answer::Ready(reply),
        };
        // Who names no partition key has it in the body; what is answered is about what is named.
        let in_body = items::part_in_body(&opened.container, &write);
        let payer = in_body.as_ref().unwrap_or(&part);
        let toll = match self.shared.admit(&opened, write.at.service, payer) {
            Ok(toll) => toll,
            Err(reply) => return Answer::Ready(reply.at(opened.place(&part))),
        };
        let plan = items::plan_one(&opened, write, Around::of(&self.shared));
        self.commit((opened, toll), &part, plan.map(|plan| (plan.bucket(), plan)), Waiting::Item)
    }

    fn write_batch(&self, batch: WriteBatch) -> Answer {
        let (part, form) = (batch.part.clone(), batch.form);
        let (opened, toll) = match self.shared.enter_metered(&batch.at, &part) {
            Ok(entered) => entered,
            Err(reply) => return Answer::Ready(items::batch_throttled(reply, &batch)),
        };
        let plan = items::batch_plan(&opened, batch, Around::of(&self.shared));
        let plan = plan.map(|plan| (plan.bucket(), plan));
        self.commit((opened, toll), &part, plan, |ticket, within| {
            Waiting::Batch(ticket, within, form)
        })
    }

    fn delete_partition(&self, at: &ContainerScope, key: Option<PartitionKey>) -> Answer {
        let part = Part::of(key.clone());
        let (opened, toll) = match self.shared.enter_metered(at, &part) {
            Ok(entered) => entered,
            Err(reply) => return Answer::Ready(reply),
        };
        let plan = DeletePartition::new(&self.shared, &opened, key);
        self.commit(
            (opened, toll),
            &part,
            plan.map(|plan| (plan.bucket(), plan)),
            Waiting::Partition,
        )
    }

    /// Whoever is the first to read every version of a container's items begins its log. Who
    /// finds nothing where there is much to look at goes on beside the queries.
    fn read_changes(&self, asked: ReadChanges, cancel: Cancel) -> Answer {
        let (opened, toll) = match self.shared.enter_metered(&asked.at, &asked.part) {
            Ok(entered) => entered,
            Err(reply) => return Answer::Ready(reply),
        };
        match feed::changes(&opened, &asked) {
            Changes::Shown(reply) => {
                Answer::Ready(paid(toll, self.shared.tell_usage(&opened, reply)))
            }
            Changes::Nothing(_) => self.query(cancel, toll, move |shared, steps| {
                let look = |opened: &Opened| feed::go_on(opened, &asked, steps);
                shared.in_container(&asked.at, &asked.part, look)
            }),
            Changes::HasNoLog => self.change_for(toll, move |clerk| feed::begin(clerk, &asked)),
        }
    }

    /// Hands in a plan, if there is one.
    fn commit<P: Plan>(
        &self,
        (opened, toll): (Opened, Option<Toll>),
        part: &Part,
        plan: Result<(Bucket, P)>,
        waiting: impl FnOnce(Ticket<P>, FromContainer) -> Waiting,
    ) -> Answer {
        match plan {
            Ok((bucket, plan)) => {
                let (store, desk) = (&self.shared.store, self.desk.clone());
                let ticket = match &desk {
                    None => commit_returning(store, bucket, plan),
                    Some(desk) => {
                        commit_returning_elsewhere(store, bucket, plan, desk::elsewhere(desk))
                    }
                };
                let (shared, container) = (Arc::clone(&self.shared), opened.container);
                let within = FromContainer { shared, container, desk, toll };
                Answer::Pending(PendingAnswer(waiting(ticket, within)))
            }
            Err(error) => {
                let reply = opened.failed(error).at(opened.place(part));
                Answer::Ready(paid(toll, reply))
            }
        }
    }

    /// Where the container is not there, that is not what the request was refused for. Where
    /// nothing is left of its throughput, it is: a failure is paid for like anything else.
    fn refuse(&self, at: &ContainerScope, part: &Part, error: Error) -> Reply {
        let Ok(opened) = self.shared.enter(at, ErrorKind::OwnerNotFound) else {
            return error.into();
        };
        match self.shared.admit(&opened, at.service, part) {
            Ok(toll) => paid(toll, opened.failed(error).at(opened.place(part))),
            Err(throttled) => throttled,
        }
    }

    fn move_clock(&self, step: Step) -> Answer {
        let store = Arc::clone(&self.shared.store);
        self.change(move |_| clock::reply(store.move_clock(step)))
    }

    /// The container that a call about the purge means, or all, and the time.
    fn purge_scope(
        &self,
        container: Option<(String, String)>,
    ) -> Result<(Option<u32>, Timestamp), Reply> {
        let Some((database, container)) = container else {
            return Ok((None, catalog::now(&*self.shared.store.snapshot()?)));
        };
        let at = ContainerScope { database, container, ..ContainerScope::default() };
        let opened = self.shared.enter(&at, ErrorKind::NotFound)?;
        Ok((Some(opened.container.number), opened.now()))
    }

    fn run_purge(&self, scope: Option<u32>, now: Timestamp) -> Answer {
        let purge = Arc::clone(&self.purge);
        let run = move |_: &Shared| purge::run(&purge, scope, now);
        Answer::Pending(PendingAnswer(Waiting::Work(self.purges.hand_in(run), None)))
    }

    fn steer_purge(
        &self,
        container: Option<(String, String)>,
        steer: fn(&Purge, Option<u32>) -> bool,
    ) -> Answer {
        Answer::Ready(self.purge_scope(container).map_or_else(
            |reply| reply,
            |(scope, now)| {
                let paused = steer(&self.purge, scope);
                let goes_on = if paused { purge::who_tell_ends(&self.purge, scope) } else { 0 };
                let body = match goes_on {
                    0 => json!({ "paused": paused }),
                    _ => json!({ "paused": paused, "goesOn": goes_on }),
                };
                Reply::ok(Success::new(200, body.to_string()), now, 0.0)
            },
        ))
    }
}

impl Engine {
    /// One turn of the background purge: a small piece of work, if anything is
    /// due. Returns how long to rest before the next. To be called by one
    /// thread, again and again, once the server is started.
    pub fn purge_turn(&self) -> Duration {
        background::turn(&self.shared, &self.purge)
    }

    /// Removes everything that is due, at once. Returns how many items went.
    pub fn purge_all(&self) -> Result<u64> {
        let installed = recovery::finish_installs(&self.shared);
        let purged = purge::all(&self.purge)?;
        installed.map(|()| purged)
    }

    /// How the purge of a container stands, given the container's number.
    pub fn purge_status(&self, container: u32) -> PurgeStatus {
        purge::status(&self.purge, container)
    }

    /// Whether an operator paused the purge, in all containers or in some; and
    /// whether it rests because the clock may be wrong.
    pub fn purge_rests(&self) -> (bool, bool) {
        (self.purge.is_paused_somewhere(), self.shared.store.glance().purge_hold.is_some())
    }

    /// What the purge has done since the start.
    pub fn purge_figures(&self) -> PurgeFigures {
        self.purge.figures()
    }

    /// One write, all the way to the disk and back.
    pub fn probe(&self) -> Result<()> {
        commit(&*self.shared.store, keys::PROBE, Probe).wait().map_err(storage_failed)
    }

    /// The ids of a container's partition key ranges, in their order; or why there are none.
    pub fn ranges_of(&self, at: &ContainerScope) -> Result<Vec<Arc<str>>, Reply> {
        let opened = self.shared.enter(at, ErrorKind::NotFound)?;
        Ok(opened.container.ranges.iter().map(|range| Arc::clone(&range.id)).collect())
    }

    /// Whether writes are taken just now.
    pub fn writable(&self) -> Result<()> {
        self.shared.store.writable().map_err(storage_failed)
    }

    /// What the store has done and holds.
    pub fn figures(&self) -> Figures {
        self.shared.store.figures()
    }

    /// The clock, for those who watch it; nothing may be judged by it.
    pub fn glance(&self) -> Reading {
        self.shared.store.glance()
    }

    /// How many expired items were removed since the start.
    pub fn purged_items(&self) -> u64 {
        self.purge_figures().purged_items
    }

    /// How the first `limit` containers stand, all at one time.
    pub fn container_figures(&self, limit: usize) -> Result<AllFigures> {
        let purged = self.purge.all_purged();
        figures::of_containers(&self.shared, &purged, limit)
    }

    /// What became of the throughput that is in use, of `limit` offers at most.
    pub fn throughput_figures(&self, limit: usize) -> Result<Vec<OfferFigures>> {
        throughput::figures(&self.shared, limit)
    }

    /// Reads everything and compares it with itself. The error names the first
    /// thing that does not fit.
    pub fn check(&self) -> Result<Checked> {
        check::everything(&self.shared)
    }

    /// Counts the items of a bucket and compares with its life histogram. `pick` chooses
    /// the bucket; between two chunks `rest` is called, and ends the recount by saying
    /// `false`.
    pub fn recount(&self, pick: u64, rest: impl FnMut() -> bool) -> Result<Recount> {
        check::recount(&self.shared, &self.recounts, pick, rest)
    }

    /// How the recounts ended.
    pub fn recounts(&self) -> &Recounts {
        &self.recounts
    }

    /// How queries go.
    pub fn query_figures(&self) -> LaneFigures {
        self.board.lanes.figures()
    }

    /// Ends all queries, and all purges that somebody waits for, and takes no more.
    /// Whoever waits for one learns that the server stops.
    pub fn stop_long_work(&self) {
        self.purge.stop();
        self.board.lanes.stop();
    }

    /// Finishes what is under way, begins nothing that waits, and closes the store.
    pub fn close(&self) -> Result<()> {
        self.stop_long_work();
        if let Some(desk) = &self.desk {
            desk.close();
        }
        self.board.purges.close();
        self.board.lanes.close();
        self.board.changes.close();
        self.shared.store.close().map_err(storage_failed)
    }
}

/// Whoever drops the engine does not wait for a purge that runs.
impl Drop for Engine {
    fn drop(&mut self) {
        self.purge.stop();
    }
}

/// Writes the time, to see that writing works.
struct Probe;

impl Plan for Probe {
    type Done = ();
    type Refusal = dayfly_storage::Error;

    fn draft(&self, _: &View<'_>) -> dayfly_storage::Result<Draft<()>> {
        Ok(Draft::new(|stamp: Stamp, batch: &mut Batch| {
            batch.put(keys::probe(), stamp.ts.to_be_bytes().to_vec());
        }))
    }
}
