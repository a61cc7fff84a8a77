//! What each operation means: databases, containers, items, lists, offers, and
//! the purge.
//!
//! [`Engine::run`] is the one switchboard. A read is answered at once, from
//! one snapshot with one time. A write to an item is one commit: its plan runs
//! here, against a snapshot, and the answer comes when the commit is durable
//! and visible. Queries go to lanes of threads, and end when nobody wants them. Changes of databases and containers go to the clerk, one at a
//! time.
//!
//! This crate knows nothing of HTTP, headers or tokio.

pub mod cancel;
mod catalog;
pub mod check;
mod clerk;
mod containers;
mod databases;
pub mod figures;
mod head;
mod index;
mod items;
mod keys;
mod lanes;
mod list;
mod lives;
mod offers;
pub mod operation;
mod purge;
mod query;
mod record;
pub mod reply;
mod scope;
mod statistics;
#[cfg(test)]
mod tests;
pub mod ttl;
mod unique;
mod usage;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_sql::run::Steps;
use dayfly_storage::clock::{LAST_SECOND, Reading, Refused, Step};
use dayfly_storage::{
    Batch, Bucket, Draft, Figures, Plan, Snapshot, Stamp, Store, Ticket, View, commit,
    commit_returning,
};
use serde_json::json;

use crate::cancel::{Cancel, Waiter};
use crate::catalog::{Catalog, CatalogView, Container, ContainerRecord};
use crate::check::Recounts;
use crate::clerk::{Clerk, Desk};
use crate::containers::Install;
use crate::databases::Numbers;
use crate::figures::Gone;
use crate::head::State;
use crate::index::Index;
use crate::items::{Around, ItemPlan};
use crate::lanes::Lanes;
pub use crate::lanes::{ByLane, LaneFigures, QuerySteps};
use crate::operation::{ContainerScope, Operation, Part, WriteItem};
pub use crate::purge::{LAG_SECONDS, Lag, PurgeFigures, PurgeState, PurgeStatus};
use crate::reply::{Reply, Success, storage_failed};
use crate::scope::Opened;
use crate::usage::Usage;

/// What can be set.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// Refuse what the strictest reading of the service refuses.
    pub strict: bool,
    /// How many buckets a new container gets.
    pub slices: usize,
    /// How long a change of a container's default waits before it counts.
    pub change_delay_seconds: u64,
    /// A change that would expire more than this part of a container's items
    /// must be confirmed.
    pub change_guard_percent: Option<f64>,
    /// Sort in memory where the service refuses to sort without an index.
    pub lenient_order_by: bool,
    /// How much work queries may make.
    pub query_steps: QuerySteps,
    /// Whether one request may remove everything: what is here is for tests.
    pub resettable: bool,
}

impl Default for EngineSettings {
    fn default() -> Self {
        EngineSettings {
            strict: false,
            slices: 1,
            change_delay_seconds: 0,
            change_guard_percent: None,
            lenient_order_by: false,
            query_steps: QuerySteps::USUAL,
            resettable: false,
        }
    }
}

/// What the engine and its clerk share.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) catalog: Catalog,
    pub(crate) settings: EngineSettings,
    pub(crate) last_container: AtomicU32,
    /// A definition has not reached all its buckets.
    pub(crate) unfinished: AtomicBool,
    /// Where the purge stands.
    pub(crate) purge: purge::Purge,
    /// What writes buried.
    pub(crate) gone: Arc<Gone>,
    /// The policies by which items are indexed.
    pub(crate) index: Arc<Index>,
    /// What is alive in containers.
    usage: Usage,
    /// How the recounts ended.
    pub(crate) recounts: Recounts,
}

impl Shared {
    /// Adds to an answer about items what is alive in their container.
    fn tell_usage(&self, container: &Container, mut reply: Reply) -> Reply {
        let lsn = reply.place.as_ref().and_then(|place| place.lsn);
        if let (Ok(success), Some(now)) = (&mut reply.outcome, reply.now) {
            let live = self.usage.of(&self.store, container, now, lsn.unwrap_or_default());
            success.usage = live.map(|live| container.usage(live));
        }
        reply
    }

    /// Answers about the items of a part of a container.
    fn in_container(
        &self,
        at: &ContainerScope,
        part: &Part,
        look: impl FnOnce(&Opened) -> Reply,
    ) -> Reply {
        match self.enter_part(at, part) {
            Ok(opened) => self.tell_usage(&opened.container, look(&opened)),
            Err(reply) => reply,
        }
    }

    /// Installs definitions that did not reach all their buckets, if there are
    /// any.
    pub(crate) fn finish_installs(&self) -> Result<()> {
        if self.unfinished.swap(false, Ordering::Relaxed)
            && let Err(error) = install_all(self)
        {
            self.unfinished.store(true, Ordering::Relaxed);
            return Err(error);
        }
        Ok(())
    }
}

/// The database.
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    desk: Desk,
    /// Where purges are asked for that somebody waits for.
    purge_desk: Desk,
    /// Where queries are handed in.
    lanes: Lanes,
}

/// The answer to an operation, now or later.
pub enum Answer {
    /// It is here.
    Ready(Reply),
    /// It comes when a commit is durable and visible.
    Pending(Pending),
}

/// An answer that has not come yet.
pub struct Pending(Waiting);

enum Waiting {
    Item(Ticket<ItemPlan>, Within),
    Clerk(oneshot::Receiver<Reply>),
    /// It is given up when this is dropped.
    Query(oneshot::Receiver<Reply>, Waiter),
}

/// The container that an answer about an item is from.
struct Within {
    shared: Arc<Shared>,
    container: Arc<Container>,
}

impl Within {
    /// Says what is alive in the container.
    fn tell(&self, reply: Reply) -> Reply {
        self.shared.tell_usage(&self.container, reply)
    }
}

impl Answer {
    fn ready(reply: Reply) -> Answer {
        Answer::Ready(reply)
    }

    /// Blocks until the answer is here.
    pub fn wait(self) -> Reply {
        match self {
            Answer::Ready(reply) => reply,
            Answer::Pending(Pending(Waiting::Item(ticket, within))) => {
                within.tell(done(ticket.wait()))
            }
            Answer::Pending(Pending(Waiting::Clerk(receiver) | Waiting::Query(receiver, _))) => {
                receiver.recv().unwrap_or_else(|_| stopped().into())
            }
        }
    }
}

impl Pending {
    /// Resolves when the answer is here.
    pub async fn answer(self) -> Reply {
        match self.0 {
            Waiting::Item(ticket, within) => within.tell(done(ticket.answer().await)),
            Waiting::Clerk(receiver) => receiver.await.unwrap_or_else(|_| stopped().into()),
            Waiting::Query(receiver, waiter) => {
                let reply = receiver.await.unwrap_or_else(|_| stopped().into());
                drop(waiter);
                reply
            }
        }
    }
}

fn done(outcome: Result<items::Written, Reply>) -> Reply {
    outcome.map_or_else(|refusal| refusal, items::Written::into_reply)
}

fn stopped() -> Error {
    Error::new(ErrorKind::ServiceUnavailable, "The server is stopping.")
}

impl Engine {
    /// Opens the database in `store`, and finishes what a crash cut off.
    pub fn open(store: Arc<dyn Store>, settings: EngineSettings) -> Result<Engine> {
        let shared = Arc::new(Shared {
            store,
            catalog: Catalog::new(),
            settings,
            last_container: AtomicU32::new(0),
            unfinished: AtomicBool::new(false),
            purge: purge::Purge::default(),
            gone: Arc::default(),
            index: Arc::default(),
            usage: Usage::default(),
            recounts: Recounts::default(),
        });
        recover(&shared)?;
        let desk = Desk::open("dayfly-clerk", &shared)?;
        let purge_desk = Desk::open("dayfly-purge-run", &shared)?;
        let lanes = Lanes::open(&shared)?;
        Ok(Engine { shared, desk, purge_desk, lanes })
    }

    /// Does what `operation` asks.
    pub fn run(&self, operation: Operation) -> Answer {
        self.run_until(operation, Cancel::default())
    }

    /// The same, until the answer is not wanted any more. Everything the server can do
    /// is here.
    pub fn run_until(&self, operation: Operation, cancel: Cancel) -> Answer {
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
                Answer::ready(self.shared.enter(&at, ErrorKind::NotFound).map_or_else(
                    |reply| reply,
                    |opened| containers::read(&opened, &condition, wishes, &self.shared.index),
                ))
            }
            Operation::ListContainers { database, page, showing } => {
                self.look(|snapshot| containers::list(snapshot, &database, &page, showing))
            }
            Operation::ReplaceContainer(replacement) => {
                self.change(move |clerk| containers::replace(clerk, &replacement))
            }
            Operation::DeleteContainer { at, condition } => {
                self.change(move |clerk| containers::delete(clerk, &at, &condition))
            }

            Operation::WriteItem(write) => self.write_item(write),
            Operation::ReadItem { at, item, condition } => {
                let part = Part::of(item.partition_key.clone());
                let read = |opened: &Opened| items::read(opened, item, &part, &condition);
                Answer::ready(self.shared.in_container(&at, &part, read))
            }
            Operation::ListItems { at, part, page } => Answer::ready(self.shared.in_container(
                &at,
                &part,
                |opened| list::items(opened, &part, &page),
            )),

            Operation::QueryItems(asked) => self.query(cancel, move |clerk, steps| {
                let shared = clerk.shared();
                let look = |opened: &Opened| query::items(shared, opened, &asked, steps);
                shared.in_container(&asked.at, &asked.part, look)
            }),
            Operation::ExplainQuery(asked) => self.query(cancel, move |clerk, steps| {
                let opened = clerk.shared().enter(&asked.at, ErrorKind::NotFound);
                opened.map_or_else(
                    |reply| reply,
                    |opened| query::explain(clerk.shared(), &opened, &asked, steps),
                )
            }),
            Operation::PlanQuery(asked) => {
                self.view_at(&asked.at, ErrorKind::OwnerNotFound, |opened| {
                    query::plan(opened, &asked)
                })
            }
            Operation::QueryFeed(asked) => {
                self.query(cancel, move |clerk, steps| query::feed(clerk, &asked, steps))
            }

            Operation::Refuse { at, part, error } => Answer::ready(self.refuse(&at, &part, error)),

            Operation::ListRanges { at, known } => {
                Answer::ready(self.shared.enter(&at, ErrorKind::OwnerNotFound).map_or_else(
                    |reply| reply,
                    |opened| containers::ranges(&opened, known.as_deref()),
                ))
            }
            Operation::ListConflicts { at } => {
                self.view(&at, |opened| Ok(containers::conflicts(opened)))
            }
            Operation::FindConflict { at } => {
                self.view(&at, |_| Err(catalog::not_found(ErrorKind::NotFound)))
            }
            Operation::ListOffers { page } => self.look(|snapshot| offers::list(snapshot, &page)),
            Operation::ReadOffer { offer } => self.look(|snapshot| offers::read(snapshot, &offer)),

            Operation::ReadTtl { at } => self.view(&at, |opened| {
                ttl::status(opened, &self.purge_status(opened.container.number))
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

            Operation::ReadClock => {
                Answer::ready(clock_reply(self.shared.store.clock().map_err(Refused::Storage)))
            }
            Operation::MoveClock { step } => self.move_clock(step),
            Operation::Reset => self.change(databases::reset),

            Operation::RunPurge { container } => match self.purge_scope(container) {
                Ok((scope, now)) => self.run_purge(scope, now),
                Err(reply) => Answer::ready(reply),
            },
            Operation::PausePurge { container } => self.steer_purge(container, purge::pause),
            Operation::ResumePurge { container } => self.steer_purge(container, purge::resume),
        }
    }

    fn look(&self, read: impl FnOnce(&dyn Snapshot) -> Result<Reply>) -> Answer {
        Answer::ready(Clerk::new(&self.shared).answer(read))
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
        Answer::ready(match self.shared.enter(at, missing) {
            Ok(opened) => look(&opened).unwrap_or_else(|error| opened.failed(error)),
            Err(reply) => reply,
        })
    }

    fn change(&self, change: impl FnOnce(&Clerk<'_>) -> Reply + Send + 'static) -> Answer {
        Answer::Pending(Pending(Waiting::Clerk(self.desk.hand_in(change))))
    }

    /// Queries may take long, so they have threads of their own.
    fn query(
        &self,
        cancel: Cancel,
        query: impl Fn(&Clerk<'_>, &Steps<'_>) -> Reply + Send + Sync + 'static,
    ) -> Answer {
        let receiver = self.lanes.hand_in(cancel.clone(), query);
        Answer::Pending(Pending(Waiting::Query(receiver, Waiter(cancel))))
    }

    fn write_item(&self, write: WriteItem) -> Answer {
        let part = Part::of(write.partition_key.clone());
        let opened = match self.shared.enter_part(&write.at, &part) {
            Ok(opened) => opened,
            Err(reply) => return Answer::ready(reply),
        };
        let around = Around {
            index: Arc::clone(&self.shared.index),
            deadlines: Arc::clone(&self.shared.purge.deadlines),
            gone: Arc::clone(&self.shared.gone),
        };
        match items::plan(&opened, write, around) {
            Ok(plan) => {
                let bucket = plan.bucket();
                let ticket = commit_returning(&self.shared.store, bucket, plan);
                let (shared, container) = (Arc::clone(&self.shared), opened.container);
                Answer::Pending(Pending(Waiting::Item(ticket, Within { shared, container })))
            }
            Err(error) => Answer::ready(opened.failed(error).at(opened.place(&part))),
        }
    }

    /// A refusal costs nothing. Where the container is not there, that is not what the
    /// request was refused for.
    fn refuse(&self, at: &ContainerScope, part: &Part, error: Error) -> Reply {
        match self.shared.enter(at, ErrorKind::OwnerNotFound) {
            Ok(opened) => Reply { charge_ru: 0.0, ..opened.failed(error) }.at(opened.place(part)),
            Err(_) => error.into(),
        }
    }

    fn move_clock(&self, step: Step) -> Answer {
        let store = Arc::clone(&self.shared.store);
        self.change(move |_| clock_reply(store.move_clock(step)))
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
        let run = move |clerk: &Clerk<'_>| purge::run(clerk.shared(), scope, now);
        Answer::Pending(Pending(Waiting::Clerk(self.purge_desk.hand_in(run))))
    }

    fn steer_purge(
        &self,
        container: Option<(String, String)>,
        steer: fn(&Shared, Option<u32>) -> bool,
    ) -> Answer {
        Answer::ready(self.purge_scope(container).map_or_else(
            |reply| reply,
            |(scope, now)| {
                let body = json!({ "paused": steer(&self.shared, scope) }).to_string();
                Reply::ok(Success::new(200, body), now, 0.0)
            },
        ))
    }

    /// One turn of the background purge: a small piece of work, if anything is
    /// due. Returns how long to rest before the next. To be called by one
    /// thread, again and again, once the server is started.
    pub fn purge_turn(&self) -> Duration {
        purge::turn(&self.shared)
    }

    /// Removes everything that is due, at once. Returns how many items went.
    pub fn purge_all(&self) -> Result<u64> {
        purge::all(&self.shared)
    }

    /// How the purge of a container stands, given the container's number.
    pub fn purge_status(&self, container: u32) -> PurgeStatus {
        purge::status(&self.shared, container)
    }

    /// Whether an operator paused the purge, in all containers or in some; and
    /// whether it rests because the clock may be wrong.
    pub fn purge_rests(&self) -> (bool, bool) {
        (self.shared.purge.is_paused_somewhere(), self.shared.store.glance().purge_hold.is_some())
    }

    /// What the purge has done since the start.
    pub fn purge_figures(&self) -> PurgeFigures {
        self.shared.purge.figures()
    }

    /// One write, all the way to the disk and back.
    pub fn probe(&self) -> Result<()> {
        commit(&*self.shared.store, keys::PROBE, Probe).wait().map_err(storage_failed)
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

    /// How queries go.
    pub fn query_figures(&self) -> LaneFigures {
        self.lanes.figures()
    }

    /// Ends all queries, and all purges that somebody waits for, and takes no more.
    /// Whoever waits for one learns that the server stops.
    pub fn stop_long_work(&self) {
        self.shared.purge.stop();
        self.lanes.stop();
    }

    /// Finishes what is under way, begins nothing that waits, and closes the store.
    pub fn close(&self) -> Result<()> {
        self.stop_long_work();
        self.purge_desk.close();
        self.lanes.close();
        self.desk.close();
        self.shared.store.close().map_err(storage_failed)
    }
}

/// Whoever drops the engine does not wait for a purge that runs.
impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.purge.stop();
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

fn clock_reply(outcome: Result<Reading, Refused>) -> Reply {
    match outcome {
        Ok(reading) => {
            let body = json!({
                "now": reading.now,
                "frozen": reading.frozen,
                "offsetSeconds": reading.offset_seconds,
                "held": reading.held,
                "behindSeconds": reading.behind_seconds,
                "purgeHeld": reading.purge_hold.map(|hold| hold.to_string()),
            });
            Reply::ok(Success::new(200, body.to_string()), Timestamp(reading.now), 0.0)
        }
        Err(Refused::NoTestClock) => Error::new(
            ErrorKind::Forbidden,
            "The clock can be moved only when the server was started with --test-clock.",
        )
        .into(),
        Err(Refused::Backwards { now }) => Reply::failed(
            Error::bad_request(format!("The clock shows {now} and does not go back.")),
            Timestamp(now),
        ),
        Err(Refused::TooFar) => Error::bad_request(format!(
            "The clock does not go past the year 9999, which ends at {LAST_SECOND}."
        ))
        .into(),
        Err(Refused::NothingHeld) => Error::bad_request(
            "There is nothing to accept: no jump of the clock is held, and the purge is not held.",
        )
        .into(),
        Err(Refused::Storage(error)) => error.into(),
    }
}

/// Brings every bucket to its container's definition. Returns the buckets of
/// all containers.
fn install_all(shared: &Shared) -> Result<HashSet<Bucket>> {
    let snapshot = shared.store.snapshot().map_err(storage_failed)?;
    let rows = CatalogView::scan(&*snapshot, &keys::all_containers(), usize::MAX)
        .map_err(storage_failed)?;
    let mut known = HashSet::new();
    for (_, row) in rows {
        let record: ContainerRecord = catalog::decode(&row)?;
        for bucket in record.buckets() {
            known.insert(bucket);
            if State::of(&snapshot.head(bucket)).epoch < record.epoch {
                let clerk = Clerk::new(shared);
                clerk.install([bucket], &Install::of(&record))?;
            }
        }
    }
    Ok(known)
}

/// Finishes what a crash cut off: definitions that did not reach every bucket,
/// and buckets of containers that were never recorded.
fn recover(shared: &Shared) -> Result<()> {
    let mut known = install_all(shared)?;
    let snapshot = shared.store.snapshot().map_err(storage_failed)?;
    let condemned = CatalogView::scan(&*snapshot, &keys::all_condemned(), usize::MAX)
        .map_err(storage_failed)?;
    known.extend(condemned.iter().filter_map(|(key, _)| keys::condemned_bucket(key)));
    if !condemned.is_empty() {
        shared.purge.condemned();
    }

    let mut last = Numbers::read(&*snapshot)?.container;
    for bucket in shared.store.buckets() {
        let Some(number) = keys::container_of(bucket) else { continue };
        last = last.max(number);
        if !known.contains(&bucket) {
            purge::clear_bucket(shared, bucket).map_err(storage_failed)?;
        }
    }
    shared.last_container.store(last, Ordering::Relaxed);
    Ok(())
}
