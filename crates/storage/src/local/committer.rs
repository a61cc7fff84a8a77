//! The committer: takes the writes that wait, a group at a time.
//!
//! ```text
//! begin    time stands at the group's ts; jobs are judged and drafted
//! write    one batch, one sync
//! publish  rows, heads and time become visible together
//! settle   every job of the group is answered, also the refused ones
//! ```
//!
//! Everything that writes holds the **turn**, so a lease, a clear and a group
//! never mix. When a write fails nobody knows what is on disk: every job of
//! the group is Unknown, and the backend is reopened. If it failed for lack of
//! room, it would fail again: what was published is kept for readers, and the
//! backend is reopened when there is room.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::backend::{Backend, Changes, Durability, Lease, NewHeads};
use super::group::{Group, Overlay, Tallies, settle};
use super::reader::{Published, Reader};
use super::{Phase, Shared, Turn, instant, lock};
use crate::{Error, Job, Result, Room};

/// How long to wait before a broken backend is opened again.
const REOPEN_PAUSE: Duration = Duration::from_millis(250);

/// Jobs to answer, and with what.
type Unanswered = (Vec<Box<dyn Job>>, Result<()>);

impl<B: Backend> Shared<B> {
    /// Commits group after group, until the queue is closed and empty.
    pub(super) fn run(&self) {
        while self.queue.wait() {
            if catch_unwind(AssertUnwindSafe(|| self.commit_waiting())).is_err() {
                // The jobs are gone, and their tickets say Unknown.
                let mut turn = lock(&self.turn);
                turn.group = None;
                self.failed(&mut turn, Error::Unavailable("the committer panicked".to_owned()));
            }
        }
    }

    /// Commits one group of what waits.
    pub(super) fn commit_waiting(&self) {
        let started = instant();
        let has_large;
        let settled = {
            let mut turn = lock(&self.turn);
            self.begin(&mut turn);
            has_large = turn.group.as_ref().is_some_and(|group| group.load.has_large());
            self.finish(&mut turn)
        };
        if has_large {
            self.queue.rest_large(started.elapsed(), self.backend.is_behind());
        }
        settle_all(settled);
    }

    /// Begins a group, if there is none, and takes in what waits.
    pub(super) fn begin(&self, turn: &mut Turn<B::Rows>) {
        if turn.group.is_none() {
            match self.new_group(turn) {
                Ok(group) => turn.group = Some(group),
                Err(error) => return self.refuse_waiting(&error),
            }
        }
        let Some(group) = &mut turn.group else { return };
        let full = self.space.is_full(|| self.free_bytes());
        if full && self.space.may_release() {
            // What this frees may be needed by the deletes that make room. If
            // it fails, the write that follows fails too, and is told.
            let _ = self.backend.release();
        }
        while let Some((bucket, job)) = self.queue.pop(&group.load) {
            match job.room() {
                Room::Grows if full => settle(job, Err(Error::Full)),
                _ => group.add(bucket, job, &self.remembered.records),
            }
        }
        self.queue.leaves();
    }

    fn new_group(&self, turn: &mut Turn<B::Rows>) -> Result<Group<B::Rows>> {
        self.heal(turn)?;
        let mut state = lock(&self.state);
        let published = state.published()?;
        turn.generation += 1;
        let now = state.clock.begin();
        let milliseconds = state.clock.last_milliseconds();
        let reader = Reader { published, now, milliseconds };
        let tallies = std::mem::take(&mut turn.tallies);
        Ok(Group::new(reader, turn.generation, turn.opened, tallies))
    }

    fn refuse_waiting(&self, error: &Error) {
        while let Some((_, job)) = self.queue.pop_any() {
            settle(job, Err(error.clone()));
        }
    }

    /// Writes and publishes the group. Whom to answer is returned, so that
    /// answering does not hold the turn.
    pub(super) fn finish(&self, turn: &mut Turn<B::Rows>) -> Option<Unanswered> {
        let mut group = turn.group.take()?;
        group.note_tallies();
        self.counts.redrafted(group.redrafts);
        let Group { overlay, jobs, commits, mut tallies, .. } = group;
        // The rows that count: most of them are going to be read.
        let counted: Vec<_> = tallies
            .end_group()
            .into_iter()
            .filter_map(|key| Some((overlay.writes.get(&key)?.clone()?, key)))
            .collect();
        // The base goes at once: a backend that failed is reopened below, and
        // cannot be while somebody reads it.
        let Overlay { base, generation, writes, heads } = overlay;
        drop(base);
        let started = instant();
        if let Err(error) = self.backend.prepare() {
            self.failed(turn, error.clone());
            return Some((jobs, Err(error)));
        }
        self.remembered.compare(generation, &writes);
        let heads: NewHeads = heads.into_iter().map(|(at, head)| (at, Some(head))).collect();
        let changes = Changes { writes, heads: heads.clone(), ..Changes::default() };
        let outcome = self.write_group(changes, started).and_then(|()| {
            for (row, key) in &counted {
                self.remembered.keep(key, generation, row);
            }
            self.publish(generation, heads)
        });
        match outcome {
            Ok(()) => {
                self.counts.committed(commits);
                turn.tallies = tallies;
                Some((jobs, Ok(())))
            }
            Err(error) => {
                let why = error.to_string();
                self.failed(turn, error);
                Some((jobs, Err(Error::Unknown(why))))
            }
        }
    }

    /// Writes what the group changes, and the lease with it. A group that wrote
    /// nothing is written only if its time needs a lease.
    fn write_group(&self, mut changes: Changes, started: Instant) -> Result<()> {
        let (lease, later, needed) = {
            let clock = &mut lock(&self.state).clock;
            let lease = Lease { until: clock.next_lease(), anchor: clock.anchor() };
            (lease, clock.can_renew(), clock.group_needs_lease())
        };
        if changes.writes.is_empty() && changes.heads.is_empty() && !needed {
            return Ok(());
        }
        // A relaxed write does not wait for the disk, so it renews no lease,
        // unless nobody may see its time without one.
        let durability = if needed { Durability::Sync } else { self.options.durability };
        let renews = durability == Durability::Sync && later;
        changes.lease = renews.then_some(lease);
        let bytes = changes.bytes();
        self.backend.apply(changes, durability)?;
        self.counts.wrote(bytes as u64, started.elapsed());
        self.queue.synced();
        if renews {
            lock(&self.state).clock.leased(lease.until, &lease.anchor);
        }
        Ok(())
    }

    /// Shows what is in the backend now, as `generation`.
    pub(super) fn publish(&self, generation: u64, changed: NewHeads) -> Result<()> {
        let rows = self.backend.rows()?;
        let mut state = lock(&self.state);
        let mut heads = state.published()?.heads.clone();
        for (bucket, head) in changed {
            match head {
                Some(head) => heads.insert_mut(bucket, head),
                None => _ = heads.remove_mut(&bucket),
            }
        }
        let remembered = Arc::clone(&self.remembered);
        let published = Arc::new(Published { generation, heads, rows, remembered });
        let before = std::mem::replace(&mut state.phase, Phase::Open(published));
        state.clock.published();
        drop(state);
        drop(before);
        Ok(())
    }

    /// Opens the store. Without room on the disk it is opened for readers.
    pub(super) fn start(&self) -> Result<()> {
        let loaded = self.load(&mut lock(&self.turn));
        let Err(error) = loaded else { return Ok(()) };
        if lock(&self.state).kept().is_none() {
            return Err(error);
        }
        tracing::error!("{} can only be read: {error}", self.backend.name());
        Ok(())
    }

    /// Notes that the backend is broken, and tries to open it again.
    pub(super) fn failed(&self, turn: &mut Turn<B::Rows>, error: Error) {
        let has_room = error != Error::Full && !self.space.is_exhausted(|| self.free_bytes());
        let when = if has_room { "" } else { " when there is room; until then it is only read" };
        tracing::error!("{} failed and is opened again{when}: {error}", self.backend.name());
        let before = {
            let mut state = lock(&self.state);
            state.clock.abandoned();
            let kept = match &state.phase {
                _ if has_room => None,
                Phase::Open(published) => Some(Arc::clone(published)),
                _ => state.kept(),
            };
            let broken = Phase::Broken { why: error.to_string(), again: instant(), kept };
            std::mem::replace(&mut state.phase, broken)
        };
        drop(before);
        // If it stays broken, the next caller is told.
        let _ = self.heal(turn);
    }

    /// Opens a broken backend again, but not more often than every
    /// [`REOPEN_PAUSE`].
    pub(super) fn heal(&self, turn: &mut Turn<B::Rows>) -> Result<()> {
        if let Phase::Open(_) = lock(&self.state).phase {
            return Ok(());
        }
        let now = instant();
        let exhausted = self.space.is_exhausted(|| self.free_bytes());
        let kept = match &mut lock(&self.state).phase {
            Phase::Open(_) => return Ok(()),
            Phase::Closed => return Err(closed()),
            Phase::Broken { kept: Some(_), .. } if exhausted => return Err(Error::Full),
            Phase::Broken { why, again, .. } if now < *again => return Err(broken(why)),
            Phase::Broken { again, kept, .. } => {
                *again = now + REOPEN_PAUSE;
                kept.take()
            }
        };
        // The backend cannot be opened while somebody reads it.
        drop(kept);
        match self.backend.reopen().and_then(|()| self.load(turn)) {
            Ok(()) => {
                tracing::info!("{} works again", self.backend.name());
                Ok(())
            }
            Err(error) => {
                let why = error.to_string();
                tracing::error!("{} could not be opened again: {why}", self.backend.name());
                let error = broken(&why);
                let mut state = lock(&self.state);
                let kept = state.kept();
                state.phase = Phase::Broken { why, again: instant() + REOPEN_PAUSE, kept };
                Err(error)
            }
        }
    }

    /// Reads heads and clock from the backend, and counts the opening.
    pub(super) fn load(&self, turn: &mut Turn<B::Rows>) -> Result<()> {
        let loaded = self.backend.load()?;
        if loaded.test_clock.is_some() && !self.options.test_clock {
            return Err(Error::Unavailable(format!(
                "The clock of {} was moved by hand. Start with --test-clock, or use another \
                 folder.",
                self.backend.name()
            )));
        }
        turn.opened = loaded.opened + 1;
        turn.generation += 1;
        turn.tallies = Tallies::default();
        self.remembered.forget(turn.generation);
        let latest = loaded.heads.iter().map(|(_, head)| head.ts).max().unwrap_or(0);
        let lease = {
            let clock = &mut lock(&self.state).clock;
            let floor = loaded.lease.until.max(latest);
            clock.opened(floor, loaded.test_clock.unwrap_or_default(), &loaded.lease.anchor);
            Lease { until: clock.next_lease(), anchor: clock.anchor() }
        };
        let opened =
            Changes { lease: Some(lease), opened: Some(turn.opened), ..Changes::default() };
        let applied = self.backend.apply(opened, Durability::Sync);
        let (generation, heads) = (turn.generation, loaded.heads.into_iter().collect());
        let (rows, remembered) = (self.backend.rows()?, Arc::clone(&self.remembered));
        let published = Arc::new(Published { generation, heads, rows, remembered });
        let mut state = lock(&self.state);
        match &applied {
            Ok(()) => {
                state.clock.leased(lease.until, &lease.anchor);
                state.phase = Phase::Open(published);
            }
            Err(error) => {
                let kept = (*error == Error::Full).then_some(published);
                let why = error.to_string();
                state.phase = Phase::Broken { why, again: instant() + REOPEN_PAUSE, kept };
            }
        }
        applied
    }
}

/// Answers the jobs of a group.
pub(super) fn settle_all(settled: Option<Unanswered>) {
    let Some((jobs, outcome)) = settled else { return };
    for job in jobs {
        settle(job, outcome.clone());
    }
}

pub(super) fn broken(why: &str) -> Error {
    Error::Unavailable(format!("the store failed and is being opened again: {why}"))
}

pub(super) fn closed() -> Error {
    Error::Unavailable("the store is closed".to_owned())
}
