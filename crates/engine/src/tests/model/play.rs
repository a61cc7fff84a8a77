//! Plays a history on an engine and on the oracle, and compares after each
//! step whatever a client can see.
//!
//! Writes are judged in the order in which they were handed in, at the time of
//! their group. A change of the default is several commits in a row: its
//! record in the catalog, then one in each bucket. The next one is handed in
//! as soon as the one before is seen; so writes come between them.

use std::collections::HashSet;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use dayfly_model::ErrorKind;
use dayfly_model::partition_key::{Component, PartitionKey};
use dayfly_model::patch::Patch;
use dayfly_model::ttl::ContainerTtl;
use dayfly_storage::clock::LEASE_SECONDS;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::feeds::Readers;
use super::figures::{STRETCH_SECONDS, STRETCHES};
use super::oracle::{Definition, Oracle};
use super::steps::{Act, Batch, Default, History, Place, Step, Ttl, TtlPatch, Write};
use crate::operation::{
    self, BatchForm, Condition, Indexing, ItemAddress, Operation, Page, Part, SurveyItems,
    SurveyOrder, WriteBatch, WriteItem,
};
use crate::reply::{Reply, Success};
use crate::tests::seeds::Outcome;
use crate::tests::server::{Purge, Server, Setup, TENANT, Ticket, at, text};

const UNIQUE: &[&str] = &["/email"];

/// No more ranges than this.
const RANGES: usize = 9;

macro_rules! same {
    ($seen:expr, $expected:expr, $($what:tt)*) => {
        match (&$seen, &$expected) {
            (seen, expected) => if seen != expected {
                let what = format!($($what)*);
                return Err(format!("{what}: is {seen:?}, should be {expected:?}"));
            }
        }
    };
}

/// Plays a history. The error says after which step what was wrong.
pub(super) fn play(history: &History) -> Outcome {
    let mut play = Play::new(history);
    for (number, step) in (1..).zip(&history.steps) {
        let told = |why| format!("step {number}, {step}: {why}");
        play.step(step).and_then(|()| play.compare(number)).map_err(told)?;
    }
    play.settle().and_then(|()| play.compare_all()).map_err(|why| format!("at the end: {why}"))
}

struct Play {
    server: Server,
    oracle: Oracle,
    setup: Setup,
    wall: u64,
    /// The latest that the wall clock ever showed.
    wall_max: u64,
    /// A crash lets time stand up to a lease ahead.
    crashed: bool,
    /// Whether the background purge rests.
    paused: bool,
    has_log: bool,
    definition: Definition,
    waiting: Vec<Job>,
    group: Option<Group>,
    change: Option<Change>,
    rids: HashSet<String>,
    readers: Readers,
}

/// A commit on its way.
enum Job {
    Write(Write, Ticket),
    Batch(Batch, Ticket),
    /// The next part of the change of the default.
    Change,
}

/// What the oracle says of a write.
type Judged = Result<u16, ErrorKind>;

struct Group {
    ts: u64,
    jobs: Vec<Job>,
}

/// A change of the default on its way.
struct Change {
    definition: Definition,
    ticket: Ticket,
    /// How many of its commits are seen: first the catalog's, then the buckets'.
    seen: usize,
}

impl Play {
    fn new(history: &History) -> Play {
        let mut server = Server::with(history.setup);
        server.make_container(None, UNIQUE);
        let setup = history.setup;
        let readers = Readers::begin(|asked| page(server.run(asked)), history.has_log).unwrap();
        let now = server.now().0;
        let oracle = Oracle::new(setup.slices(), |key| server.slice_of(key), now);
        Play {
            oracle,
            server,
            setup,
            wall: now,
            wall_max: now,
            crashed: false,
            paused: false,
            has_log: history.has_log,
            definition: Definition::default(),
            waiting: Vec::new(),
            group: None,
            change: None,
            rids: HashSet::new(),
            readers,
        }
    }

    fn step(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Write(write) => self.hand_in(write),
            Step::Batch(batch) => self.hand_in_batch(batch),
            Step::Begin => {
                self.begin();
                Ok(())
            }
            Step::Publish => self.publish(),
            Step::Commit => {
                self.begin();
                self.publish()
            }
            Step::Wall(seconds) => {
                self.wall = self.wall.saturating_add_signed(*seconds);
                self.wall_max = self.wall_max.max(self.wall);
                self.server.wall().set(self.wall);
                Ok(())
            }
            Step::Default(default) => self.change_default(*default),
            Step::Split(pick) => self.split(*pick),
            Step::Purge(meanwhile) => self.purge(Purge::AllAtOnce, meanwhile.as_ref()),
            Step::Turns(meanwhile) => {
                // The background looks at a clock that no group holds back.
                self.publish()?;
                self.purge(Purge::InTurns, meanwhile.as_ref())
            }
            Step::Pause(paused) => {
                self.server.steer_purge(*paused);
                self.paused = *paused;
                Ok(())
            }
            Step::Restart => {
                self.paused = false;
                self.settle()?;
                self.server.restart();
                Ok(())
            }
            Step::Crash(crash) => {
                self.waiting.clear();
                self.group = None;
                self.server.crash(*crash);
                self.crashed = true;
                self.paused = false;
                self.finish_change()?;
                self.check_stored()
            }
        }
    }

    /// The time of a group that begins now.
    fn next_ts(&self) -> u64 {
        self.wall.max(self.oracle.now)
    }

    fn hand_in(&mut self, write: &Write) -> Outcome {
        let ticket = self.server.hand_in(operation(self.setup, write));
        self.handed_in(write, ticket)
    }

    /// The same of several as one.
    fn hand_in_batch(&mut self, batch: &Batch) -> Outcome {
        let mut ticket = self.server.hand_in(batch_operation(self.setup, batch));
        self.pass_time()?;
        let expected = self.oracle.judge_batch(batch);
        match poll(&mut ticket) {
            Some(reply) => same!(answers(&reply)?, expected, "the answers"),
            None if expected.iter().all(Result::is_err) => {
                return Err(format!("not answered at once, should be {expected:?}"));
            }
            None => self.waiting.push(Job::Batch(*batch, ticket)),
        }
        Ok(())
    }

    fn settle_batch(&mut self, batch: &Batch, reply: Reply) -> Outcome {
        let expected = self.oracle.judge_batch(batch);
        same!(answers(&reply)?, expected, "the answers to '{}'", Step::Batch(*batch));
        if expected.iter().all(Result::is_err) {
            return Ok(());
        }
        let results = reply.outcome.ok().and_then(|success| success.batch).unwrap().1;
        for ((write, result), expected) in batch.writes.iter().zip(results).zip(expected) {
            // What was not tried was not judged.
            if expected != Err(ErrorKind::FailedDependency) {
                self.settle_write(write, result)?;
            }
        }
        Ok(())
    }

    /// A write that cannot be done is refused at once; any other waits.
    fn handed_in(&mut self, write: &Write, mut ticket: Ticket) -> Outcome {
        self.pass_time()?;
        match (poll(&mut ticket), self.oracle.judge(write)) {
            (Some(reply), Err(expected)) => {
                same!(reply.now.map(|now| now.0), Some(self.oracle.now), "the time of a refusal");
                same!(kind_of(&reply), Err(expected), "the answer");
                Ok(())
            }
            (None, Ok(_)) => {
                self.waiting.push(Job::Write(*write, ticket));
                Ok(())
            }
            (reply, expected) => {
                let reply = reply.as_ref().map(kind_of);
                Err(format!("answered at once: {reply:?}, should be {expected:?}"))
            }
        }
    }

    fn begin(&mut self) {
        self.server.begin();
        self.has_begun();
    }

    fn has_begun(&mut self) {
        let ts = self.next_ts();
        let group = self.group.get_or_insert(Group { ts, jobs: Vec::new() });
        group.jobs.append(&mut self.waiting);
    }

    fn publish(&mut self) -> Outcome {
        let submitted = self.server.submitted();
        self.server.publish();
        self.is_published(submitted)
    }

    /// The group is seen; `submitted` writes had been handed in before.
    fn is_published(&mut self, submitted: u64) -> Outcome {
        let Some(group) = self.group.take() else { return Ok(()) };
        if group.ts < self.oracle.now {
            return Err(format!("time passed the group of second {}", group.ts));
        }
        self.oracle.pass(group.ts);
        let changes = group.jobs.iter().any(|job| matches!(job, Job::Change));
        // Before a patch is handed in again, so that their order is known.
        if changes {
            self.go_on_changing(submitted)?;
        }
        let (mut late, mut late_batches) = (Vec::new(), Vec::new());
        for job in group.jobs {
            match job {
                Job::Write(write, mut ticket) => match (poll(&mut ticket), write.act) {
                    (None, Act::Patch(_)) => self.waiting.push(Job::Write(write, ticket)),
                    (None, _) => return Err(format!("not answered: {write}")),
                    (Some(reply), Act::Patch(_)) if reply.outcome.is_err() => {
                        late.push((write, self.oracle.judge(&write), reply));
                    }
                    (Some(reply), _) => self.settle_write(&write, reply)?,
                },
                Job::Batch(batch, mut ticket) => match poll(&mut ticket) {
                    None if batch.has_patch() => self.waiting.push(Job::Batch(batch, ticket)),
                    Some(reply) if batch.has_patch() && is_refused(&reply)? => {
                        late_batches.push((batch, self.oracle.judge_batch(&batch), reply));
                    }
                    None => return Err(format!("not answered: {}", Step::Batch(batch))),
                    Some(reply) => self.settle_batch(&batch, reply)?,
                },
                Job::Change => self.settle_change(),
            }
        }
        self.refused_late(late)?;
        self.batches_refused_late(late_batches)?;
        if changes { self.end_changing() } else { Ok(()) }
    }

    /// A patch whose draft did not hold is drafted again by who polls it, when the group is
    /// seen. So it may be refused for what came after it in the group, or with the time.
    fn refused_late(&mut self, late: Vec<(Write, Judged, Reply)>) -> Outcome {
        for (write, in_turn, reply) in late {
            if kind_of(&reply) != in_turn {
                self.pass_time()?;
                same!(kind_of(&reply), self.oracle.judge(&write), "the late answer to '{write}'");
            }
        }
        Ok(())
    }

    /// The same of batches that have a patch.
    fn batches_refused_late(&mut self, late: Vec<(Batch, Vec<Judged>, Reply)>) -> Outcome {
        for (batch, in_turn, reply) in late {
            let answers = answers(&reply)?;
            if answers != in_turn {
                self.pass_time()?;
                let told = Step::Batch(batch);
                same!(answers, self.oracle.judge_batch(&batch), "the late answers to '{told}'");
            }
        }
        Ok(())
    }

    fn settle_write(&mut self, write: &Write, reply: Reply) -> Outcome {
        let expected = self.oracle.judge(write);
        same!(kind_of(&reply), expected, "the answer to '{write}'");
        same!(reply.now.map(|now| now.0), Some(self.oracle.now), "the time of '{write}'");
        let Ok(success) = reply.outcome else { return Ok(()) };
        let shown = Bytes::from(success.body.to_vec());
        if !matches!(write.act, Act::Delete | Act::Clear) {
            self.check_answer(write, success.status, &shown)?;
        }
        let gone = self.oracle.deleted_by(write).map(|item| rid_of(&item.shown));
        self.readers.deleted.extend(gone);
        self.oracle.apply(write, shown);
        Ok(())
    }

    /// A write shows what was written; a new item has a RID that is new.
    fn check_answer(&mut self, write: &Write, status: u16, shown: &Bytes) -> Outcome {
        let text = std::str::from_utf8(shown).unwrap();
        let sent = self.wanted(write).to_string();
        let (start, end) = (sent.trim_end_matches('}'), format!("\"_ts\":{}}}", self.oracle.now));
        if !text.starts_with(start) || !text.ends_with(&end) {
            return Err(format!("'{write}' shows {text}"));
        }
        let is_new = self.rids.insert(rid_of(shown));
        same!(is_new, status == 201, "whether the RID of '{write}' is new");
        Ok(())
    }

    /// What an item is to be after a write, without what the server adds.
    fn wanted(&self, write: &Write) -> Value {
        let Act::Patch(ttl) = write.act else { return json_of(write) };
        let before = &self.oracle.items[&write.place].shown;
        let mut item: Value = serde_json::from_slice(before).unwrap();
        let members = item.as_object_mut().unwrap();
        members.retain(|name, _| !name.starts_with('_'));
        members["email"] = write.email.into();
        members["mark"] = write.mark.into();
        match (ttl, json_of(write).get("ttl")) {
            (TtlPatch::Set, Some(ttl)) => drop(members.insert("ttl".to_owned(), ttl.clone())),
            (TtlPatch::Remove, _) => drop(members.shift_remove("ttl")),
            _ => {}
        }
        item
    }

    fn change_default(&mut self, default: Default) -> Outcome {
        if self.change.is_some() {
            return Ok(());
        }
        let submitted = self.server.submitted();
        let mut ticket = self.server.hand_in(self.server.change_of_default(default, UNIQUE));
        self.await_change(submitted, &mut ticket)?;
        let delay = self.setup.change_delay_seconds;
        let definition = self.definition.changed(default, self.server.now().0, delay);
        self.change = Some(Change { definition, ticket, seen: 0 });
        Ok(())
    }

    /// A division of a range is a change of the container that leaves its definition.
    fn split(&mut self, pick: usize) -> Outcome {
        let ranges = self.server.engine().ranges_of(&at()).unwrap();
        if self.change.is_some() || ranges.len() >= RANGES {
            return Ok(());
        }
        let division = operation::Division::Range(ranges[pick % ranges.len()].to_string());
        let submitted = self.server.submitted();
        let mut ticket = self.server.hand_in(Operation::SplitRanges { at: at(), division });
        self.await_change(submitted, &mut ticket)?;
        self.change = Some(Change { definition: self.definition, ticket, seen: 0 });
        Ok(())
    }

    /// Waits until the next commit of a change is handed in.
    fn await_change(&mut self, submitted: u64, ticket: &mut Ticket) -> Outcome {
        let mut early = None;
        let is_over = || {
            early = poll(ticket);
            early.is_some()
        };
        if !self.server.await_submit(submitted, is_over) {
            let early = early.as_ref().map(kind_of);
            return Err(format!("the change of the default broke off: {early:?}"));
        }
        self.waiting.push(Job::Change);
        Ok(())
    }

    /// One more commit of the change is seen.
    fn settle_change(&mut self) {
        let Some(change) = &mut self.change else { return };
        match change.seen.checked_sub(1) {
            None => self.definition = change.definition,
            Some(slice) => self.oracle.install(slice, change.definition),
        }
        change.seen += 1;
    }

    /// One more commit of the change is about to be seen; if it is not the last one, the
    /// next is handed in.
    fn go_on_changing(&mut self, submitted: u64) -> Outcome {
        let Some(mut change) = self.change.take() else { return Ok(()) };
        if change.seen < self.setup.slices() {
            self.await_change(submitted, &mut change.ticket)?;
        }
        self.change = Some(change);
        Ok(())
    }

    fn end_changing(&mut self) -> Outcome {
        let is_over = |change: &mut Change| change.seen > self.setup.slices();
        if let Some(change) = self.change.take_if(is_over) {
            same!(kind_of(&wait(change.ticket)), Ok(200), "the change of the default");
        }
        Ok(())
    }

    /// After a crash: what is in the catalog reached the buckets.
    fn finish_change(&mut self) -> Outcome {
        let change = self.change.take();
        self.pass_time()?;
        if let Some(change) = change {
            for slice in change.seen.saturating_sub(1)..self.setup.slices() {
                if change.seen > 0 {
                    self.oracle.install(slice, change.definition);
                }
            }
        }
        Ok(())
    }

    /// Commits until nothing waits.
    fn settle(&mut self) -> Outcome {
        while self.group.is_some() || !self.waiting.is_empty() {
            self.begin();
            self.publish()?;
        }
        Ok(())
    }

    /// Who is dead now goes. The first commit takes the writes along that
    /// waited before, and the one that is handed in meanwhile.
    fn purge(&mut self, by: Purge, meanwhile: Option<&Write>) -> Outcome {
        if self.change.is_some() {
            self.settle()?;
        }
        self.pass_time()?;
        // Where every end is told, no pause keeps anybody waiting for it.
        let rests = by == Purge::InTurns && self.paused && !self.has_log;
        let dead = if rests { Vec::new() } else { self.oracle.dead() };
        let submitted = self.server.submitted();
        let mut ticket = None;
        let pumped = self.server.purge_while(by, || {
            ticket = meanwhile.map(|write| self.server.hand_in(operation(self.setup, write)));
        });
        if pumped {
            if let (Some(write), Some(mut ticket)) = (meanwhile, ticket) {
                // It was judged before the purge, and once more with it.
                match self.oracle.judge(write) {
                    Ok(_) => self.waiting.push(Job::Write(*write, ticket)),
                    Err(kind) => {
                        let reply = poll(&mut ticket).as_ref().map(kind_of);
                        same!(reply, Some(Err(kind)), "the answer to '{write}'");
                    }
                }
            }
            self.has_begun();
            self.is_published(submitted)?;
        }
        self.pass_time()?;
        self.oracle.purge(&dead);
        Ok(())
    }

    /// Time never runs back, nor past a group that nobody has seen.
    fn pass_time(&mut self) -> Outcome {
        let now = self.server.now().0;
        let (seen, usual) = (self.oracle.now, self.next_ts());
        let (least, most) = match &self.group {
            Some(group) => (seen, group.ts),
            None if self.crashed => (usual, seen.max(self.wall_max + LEASE_SECONDS)),
            None => (usual, usual),
        };
        if now < least || now > most {
            return Err(format!("it is {now}, should be from {least} to {most}"));
        }
        self.crashed = false;
        self.oracle.pass(now);
        Ok(())
    }

    /// What a client sees is what the oracle says.
    fn compare(&mut self, number: usize) -> Outcome {
        self.pass_time()?;
        for place in Place::all() {
            let seen = self.read(place)?;
            let expected = self.oracle.alive(place).map(|item| &item.shown);
            same!(seen.as_ref(), expected, "{place}");
        }
        self.compare_list(1 + number % 4)?;
        self.compare_feed(number)?;
        self.compare_deaths(1 + number % 5)?;
        self.compare_figures(number)
    }

    /// Somebody reads the feed on from where they once were.
    fn compare_feed(&mut self, number: usize) -> Outcome {
        let mut readers = std::mem::take(&mut self.readers);
        let ask = |asked| page(self.ask(asked)?.outcome);
        let outcome = readers.read(number, &self.oracle, ask);
        self.readers = readers;
        outcome
    }

    fn compare_all(&mut self) -> Outcome {
        self.compare(0)?;
        self.check_stored()?;
        // Nothing dead is left: each end has been told.
        self.purge(Purge::AllAtOnce, None)?;
        self.settle()?;
        let mut readers = std::mem::take(&mut self.readers);
        readers.read_all(&self.oracle, |asked| page(self.ask(asked)?.outcome))?;
        self.check_stored()
    }

    fn check_stored(&mut self) -> Outcome {
        self.server.engine().check().map(|_| ()).map_err(|error| error.to_string())
    }

    /// Asks, at the time that the oracle knows.
    fn ask(&self, operation: Operation) -> Outcome<Reply> {
        let reply = self.server.ask(operation);
        same!(reply.now.map(|now| now.0), Some(self.oracle.now), "the time of a read");
        Ok(reply)
    }

    fn read(&self, place: Place) -> Outcome<Option<Bytes>> {
        let partition_key = Some(self.setup.partition_key(place.key));
        let item = ItemAddress { id: place.id.to_owned(), partition_key };
        let condition = Condition::default();
        let reply = self.ask(Operation::ReadItem { at: at(), item, condition })?;
        match reply.outcome {
            Ok(success) => Ok(Some(success.body.to_vec().into())),
            Err(error) if error.kind == dayfly_model::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{place}: {error}")),
        }
    }

    /// All items, in pages of `limit`: range by range, in the order of their RIDs.
    /// In a hierarchy, those of the tenant are all.
    fn compare_list(&self, limit: usize) -> Outcome {
        let by_tenant = self.setup.hierarchical && limit.is_multiple_of(2);
        let mut listed: Vec<String> = Vec::new();
        let mut page = Page { limit: Some(limit), continuation: None };
        loop {
            let part = if by_tenant { Part::of(Some(tenant())) } else { Part::default() };
            let reply = self.ask(Operation::ListItems { at: at(), part, page: page.clone() })?;
            let success = reply.outcome.map_err(|error| format!("the list: {error}"))?;
            let body: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
            let items = body["Documents"].as_array().unwrap();
            listed.extend(items.iter().map(Value::to_string));
            page.continuation = success.continuation;
            if page.continuation.is_none() {
                break;
            }
        }
        same!(listed, self.oracle.list(|key| self.server.range_of(key)), "the list");
        Ok(())
    }

    /// All items in the order of their deaths, in pages of `limit`.
    fn compare_deaths(&self, limit: usize) -> Outcome {
        let mut told: Vec<(u64, String)> = Vec::new();
        let mut page = Page { limit: Some(limit), continuation: None };
        loop {
            let order = SurveyOrder::ByExpiry { within: None };
            let asked = SurveyItems { at: at(), order, page: page.clone() };
            let body: Survey = self.view(Operation::SurveyItems(asked))?;
            for Survived { expires_at, item } in body.items {
                told.push((expires_at.unwrap_or(u64::MAX), item.get().to_owned()));
            }
            page.continuation = body.continuation;
            if page.continuation.is_none() {
                break;
            }
        }
        let ends: Vec<u64> = told.iter().map(|(end, _)| *end).collect();
        same!(ends.is_sorted(), true, "the order of deaths, {ends:?}");
        told.sort();
        same!(told, self.oracle.deaths(), "the deaths");
        Ok(())
    }

    /// What is alive and dead, after each step; what will be and would be,
    /// after each step that changed anything that can be seen.
    fn compare_figures(&mut self, number: usize) -> Outcome {
        let mut status: Value = self.view(Operation::ReadTtl { at: at() })?;
        if self.change.is_none() {
            let default = self.definition.in_force(self.oracle.now);
            same!(status["defaultTtl"], json!(default), "the default");
        }
        if self.change.is_none() && self.setup.change_delay_seconds == 0 {
            let mut history = status["history"].as_array().unwrap().clone();
            for change in history.iter_mut().filter_map(Value::as_object_mut) {
                change.retain(|name, _| name != "at" && name != "by");
            }
            same!(history, self.oracle.history(), "the changes of the default");
        }
        status["backlog"].as_object_mut().unwrap().remove("oldestExpiredAt");
        contains(&status, &self.oracle.status(), "the figures")?;

        if !std::mem::take(&mut self.oracle.changed) {
            return Ok(());
        }
        let (buckets, bucket_seconds) = (STRETCHES, STRETCH_SECONDS);
        let forecast = self.view(Operation::ForecastTtl { at: at(), buckets, bucket_seconds })?;
        contains(&forecast, &self.oracle.forecast(), "the forecast")?;

        let seconds = 1 + u32::try_from(number % 5).unwrap();
        let (default, told) = match number % 4 {
            0 => (ContainerTtl::Off, None),
            1 => (ContainerTtl::NoDefault, Some(-1)),
            _ => (ContainerTtl::Default(seconds), Some(i64::from(seconds))),
        };
        let what_if = self.view(Operation::WhatIfTtl { at: at(), default })?;
        contains(&what_if, &self.oracle.what_if(told), "what would be")
    }

    fn view<T: DeserializeOwned>(&self, operation: Operation) -> Outcome<T> {
        let success = self.ask(operation)?.outcome.map_err(|error| error.to_string())?;
        Ok(serde_json::from_slice(&success.body.to_vec()).unwrap())
    }
}

/// A page of items with the ends of their lives, each as it is written there.
#[derive(Deserialize)]
struct Survey {
    items: Vec<Survived>,
    continuation: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Survived {
    expires_at: Option<u64>,
    item: Box<RawValue>,
}

/// A page of a feed: its status, what is on it, and where it ends.
fn page<E: std::fmt::Debug>(outcome: Result<Success, E>) -> Outcome<(u16, Value, String)> {
    let success = outcome.map_err(|error| format!("a page of the feed: {error:?}"))?;
    let body = serde_json::from_slice(&success.body.to_vec()).unwrap_or_default();
    Ok((success.status, body, success.etag.unwrap_or_default()))
}

/// The begin of all keys of a hierarchy.
fn tenant() -> PartitionKey {
    PartitionKey(vec![Component::String(TENANT.to_owned())])
}

/// Whether `seen` has everything that is in `expected`.
fn contains(seen: &Value, expected: &Value, what: &str) -> Outcome {
    for (name, value) in expected.as_object().unwrap() {
        let seen = &seen[name];
        if seen != value {
            return Err(format!("{what}, '{name}': is {seen}, should be {value}"));
        }
    }
    Ok(())
}

fn json_of(write: &Write) -> Value {
    let (place, Write { email, mark, .. }) = (write.target(), write);
    let filler = "+".repeat(usize::try_from(mark % 7).unwrap());
    let mut item = json!({
        "id": place.id,
        "pk": place.key,
        "tenant": TENANT,
        "email": email,
        "mark": mark,
        "filler": filler,
    });
    match write.ttl {
        Ttl::Absent => {}
        Ttl::Never => item["ttl"] = (-1).into(),
        Ttl::After(seconds) => item["ttl"] = seconds.into(),
        Ttl::Odd => item["ttl"] = "odd".into(),
    }
    item
}

fn operation(setup: Setup, write: &Write) -> Operation {
    let (id, body) = (write.place.id.to_owned(), || text(&json_of(write)));
    let partition_key = Some(setup.partition_key(write.place.key));
    Operation::WriteItem(WriteItem {
        at: at(),
        act: match write.act {
            Act::Create => operation::Act::Create(body()),
            Act::Upsert => operation::Act::Upsert(body()),
            Act::Replace | Act::Rename(_) => operation::Act::Replace(id, body()),
            Act::Patch(ttl) => operation::Act::Patch(id, patch(write, ttl)),
            Act::Delete => operation::Act::Delete(id),
            Act::Clear => return Operation::DeletePartition { at: at(), partition_key },
        },
        partition_key,
        condition: Condition::default(),
        minimal: false,
        indexing: Indexing::default(),
    })
}

fn batch_operation(setup: Setup, batch: &Batch) -> Operation {
    let step = |write: &Write| match operation(setup, write) {
        Operation::WriteItem(write) => Ok(write),
        _ => unreachable!("a batch has writes of items"),
    };
    Operation::WriteBatch(WriteBatch {
        at: at(),
        part: Part::of(Some(setup.partition_key(batch.writes[0].place.key))),
        mode: batch.mode,
        steps: batch.writes.iter().map(step).collect(),
        form: BatchForm::Text,
    })
}

/// What each operation of a batch answers.
fn answers(reply: &Reply) -> Outcome<Vec<Judged>> {
    let success = reply.outcome.as_ref().map_err(ToString::to_string)?;
    let batch = success.batch.as_ref().ok_or("no answers")?;
    Ok(batch.1.iter().map(kind_of).collect())
}

/// Whether nothing of a batch was written.
fn is_refused(reply: &Reply) -> Outcome<bool> {
    Ok(answers(reply)?.iter().all(Result::is_err))
}

fn patch(write: &Write, ttl: TtlPatch) -> Patch {
    let set =
        |name: &str, value: Value| json!({"op": "set", "path": format!("/{name}"), "value": value});
    let mut operations = vec![set("email", write.email.into()), set("mark", write.mark.into())];
    match (ttl, json_of(write).get("ttl")) {
        (TtlPatch::Set, Some(ttl)) => operations.push(set("ttl", ttl.clone())),
        (TtlPatch::Remove, _) => operations.push(json!({"op": "remove", "path": "/ttl"})),
        _ => {}
    }
    Patch::read(json!(operations).to_string().as_bytes()).unwrap()
}

fn kind_of(reply: &Reply) -> Judged {
    reply.outcome.as_ref().map(|success| success.status).map_err(|error| error.kind)
}

fn rid_of(shown: &Bytes) -> String {
    let item: Value = serde_json::from_slice(shown).unwrap();
    item["_rid"].as_str().unwrap().to_owned()
}

/// The answer, if it is here.
fn poll(ticket: &mut Ticket) -> Option<Reply> {
    match ticket.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(reply) => Some(reply),
        Poll::Pending => None,
    }
}

/// The answer, which another thread is about to give.
fn wait(mut ticket: Ticket) -> Reply {
    loop {
        if let Some(reply) = poll(&mut ticket) {
            return reply;
        }
        std::thread::yield_now();
    }
}
