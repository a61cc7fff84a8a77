//! The [`Store`] contract, on a [`Local`].

use super::backend::{Backend, Changes, Durability, Lease, NewHeads};
use super::gaps::Stretch;
use super::group::{Tallies, settle};
use super::reader::Reader;
use super::system::{SYSTEM, physical};
use super::tidy::Sight;
use super::{Local, Phase, Shared, State, Turn, committer, lock};
use crate::clock::{LeaseNeeded, Reading, Refused, Step, TestClock};
use crate::plan::fingerprint;
use crate::{
    Bucket, Cleared, Direction, Emptied, Error, Figures, Job, KeyRange, Result, Second, Snapshot,
    Store, StoreHints,
};

impl<B: Backend> Store for Local<B> {
    fn waits(&self) -> bool {
        self.shared.backend.waits()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        Ok(Box::new(self.shared.read()?))
    }

    fn submit(&self, bucket: Bucket, job: Box<dyn Job>) {
        if bucket == SYSTEM {
            return settle(job, Err(reserved()));
        }
        if let Err(((_, job), error)) = self.shared.queue.push((bucket, job)) {
            settle(job, Err(error));
        }
    }

    fn clear(&self, bucket: Bucket, range: &KeyRange, limit: usize) -> Result<Cleared> {
        let mut next = None;
        let removed = self.shared.write_alone(bucket, |reader, generation| {
            let pairs = reader.scan(bucket, range, Direction::Forward, limit)?;
            let last = pairs.last().filter(|_| pairs.len() == limit);
            next = last.map(|(key, _)| crate::after(key));
            for (key, _) in &pairs {
                reader.remembered().records.written(fingerprint(bucket, key), generation);
            }
            let writes = pairs.iter().map(|(key, _)| (physical(bucket, key), None)).collect();
            Ok(Changes { writes, ..Changes::default() })
        })?;
        Ok(Cleared { removed, next })
    }

    fn forget(&self, bucket: Bucket) -> Result<()> {
        let forgotten = self.shared.write_alone(bucket, |_, _| {
            Ok(Changes { heads: [(bucket, None)].into(), ..Changes::default() })
        });
        forgotten.map(|_| ())
    }

    fn buckets(&self) -> Vec<Bucket> {
        let state = lock(&self.shared.state);
        let published = state.published().ok().or_else(|| state.kept());
        drop(state);
        let Some(published) = published else { return Vec::new() };
        let mut buckets: Vec<Bucket> = published.heads.keys().copied().collect();
        buckets.sort_unstable();
        buckets
    }

    fn writable(&self) -> Result<()> {
        self.shared.open()?;
        if let Err(error) = self.shared.backend.is_alive() {
            self.shared.failed(&mut lock(&self.shared.turn), error.clone());
            return Err(error);
        }
        if self.shared.space.is_full(|| self.shared.free_bytes()) {
            return Err(Error::Full);
        }
        Ok(())
    }

    fn figures(&self) -> Figures {
        let held = self.shared.backend.held();
        let (cache_hits, cache_misses) = self.shared.remembered.records.looks();
        Figures {
            cache_hits,
            cache_misses,
            reserve_bytes: self.shared.options.reserve_bytes,
            disk_bytes: self.shared.backend.disk_bytes(),
            free_bytes: self.shared.free_bytes(),
            cached_bytes: self.shared.remembered.records.bytes(),
            rows: held.rows,
            deleted_rows: held.deleted,
            slow_scans: self.shared.remembered.gaps.slow_count(),
            empty_stretches: self.shared.remembered.gaps.count(),
            ..self.shared.counts.figures()
        }
    }

    fn clock(&self) -> Result<Reading> {
        let now = self.shared.read()?.now;
        Ok(lock(&self.shared.state).clock.reading(now))
    }

    fn glance(&self) -> Reading {
        let clock = &mut lock(&self.shared.state).clock;
        let now = clock.glance();
        clock.reading(now)
    }

    fn milliseconds(&self) -> u64 {
        lock(&self.shared.state).clock.milliseconds()
    }

    fn move_clock(&self, step: Step) -> Result<Reading, Refused> {
        if step != Step::Accept && !self.shared.options.test_clock {
            return Err(Refused::NoTestClock);
        }
        self.shared.move_clock(step)
    }

    fn tick(&self) -> Result<()> {
        self.shared.tick()
    }

    fn close(&self) -> Result<()> {
        self.drain();
        self.shared.close()
    }

    fn hints(&self) -> &dyn StoreHints {
        self
    }
}

impl<B: Backend> StoreHints for Local<B> {
    fn compact(&self) -> Result<()> {
        self.shared.compact()
    }

    fn emptied(&self, bucket: Bucket, emptied: &[Emptied]) {
        for Emptied { range, deleted } in emptied {
            let stretch = (physical(bucket, &range.start), physical(bucket, &range.end));
            let watched = self.shared.watch(&stretch);
            let probed =
                watched.and_then(|reader| reader.probe(&stretch, physical(bucket, deleted)));
            self.shared.remembered.gaps.unwatch(&stretch);
            if let Err(error) = probed {
                return tracing::debug!(%error, "nobody knows what is empty");
            }
        }
    }

    fn written_bytes(&self) -> u64 {
        self.shared.counts.written_bytes()
    }
}

impl<B: Backend> Shared<B> {
    /// What is published, and the time that belongs to it.
    pub(super) fn read(&self) -> Result<Reader<B::Rows>> {
        loop {
            let needed = {
                let mut state = lock(&self.state);
                match (state.published(), state.clock.now()) {
                    (Ok(published), Ok(now)) => {
                        let milliseconds = state.clock.last_milliseconds();
                        return Ok(Reader { published, now, milliseconds });
                    }
                    (Ok(_), Err(LeaseNeeded)) => true,
                    (Err(_), _) => false,
                }
            };
            if needed {
                let renewed = self.renew();
                if lock(&self.state).kept().is_none() {
                    renewed?;
                }
            } else if let Some(reader) = self.read_kept() {
                return Ok(reader);
            } else {
                self.open()?;
            }
        }
    }

    /// What is still read while there is no room on the disk. Time goes on as far
    /// as a lease can be kept without room, and then stands still.
    fn read_kept(&self) -> Option<Reader<B::Rows>> {
        let reader = |state: &mut State<B::Rows>| {
            let published = state.kept()?;
            let now = state.clock.now();
            Some((published, now, state.clock.last_milliseconds()))
        };
        if let (published, Ok(now), milliseconds) = reader(&mut lock(&self.state))? {
            return Some(Reader { published, now, milliseconds });
        }
        let _turn = lock(&self.turn);
        let lease = {
            let mut state = lock(&self.state);
            if let (published, Ok(now), milliseconds) = reader(&mut state)? {
                return Some(Reader { published, now, milliseconds });
            }
            state.clock.next_lease()
        };
        let kept = self.backend.keep_lease(lease);
        let mut state = lock(&self.state);
        if kept.is_ok() {
            state.clock.leased_alone(lease);
        }
        let (published, now, milliseconds) = reader(&mut state)?;
        let now = now.unwrap_or_else(|LeaseNeeded| state.clock.stand());
        Some(Reader { published, now, milliseconds })
    }

    /// Makes sure that the store is open, or says why it is not.
    fn open(&self) -> Result<()> {
        if let Phase::Open(_) = lock(&self.state).phase {
            return Ok(());
        }
        self.heal(&mut lock(&self.turn))
    }

    /// Renews the lease, unless the group that held the turn has done so.
    fn renew(&self) -> Result<()> {
        let mut turn = lock(&self.turn);
        let lease = {
            let clock = &mut lock(&self.state).clock;
            if clock.now().is_ok() {
                return Ok(());
            }
            clock.next_lease()
        };
        self.write_lease(&mut turn, lease, None)
    }

    /// Makes a lease durable, and with it what was done to the test clock.
    fn write_lease(
        &self,
        turn: &mut Turn<B::Rows>,
        until: Second,
        test_clock: Option<TestClock>,
    ) -> Result<()> {
        let lease = {
            let mut state = lock(&self.state);
            state.published()?;
            Lease { until, anchor: state.clock.anchor() }
        };
        let changes = Changes { lease: Some(lease), test_clock, ..Changes::default() };
        if let Err(error) = self.backend.apply(changes, Durability::Sync) {
            self.failed(turn, error.clone());
            return Err(error);
        }
        self.queue.synced();
        lock(&self.state).clock.leased(until, &lease.anchor);
        Ok(())
    }

    /// Writes something that is no commit, and publishes it. Returns how many
    /// rows it wrote; without rows and heads it does nothing.
    fn write_alone(
        &self,
        bucket: Bucket,
        draw: impl FnOnce(&Reader<B::Rows>, u64) -> Result<Changes>,
    ) -> Result<usize> {
        if bucket == SYSTEM {
            return Err(reserved());
        }
        let mut turn = lock(&self.turn);
        self.heal(&mut turn)?;
        if turn.group.is_some() {
            return Err(Error::Unavailable("a group is under way".to_owned()));
        }
        turn.generation += 1;
        turn.tallies = Tallies::default();
        let generation = turn.generation;
        let published = lock(&self.state).published()?;
        let changes = draw(&Reader { published, now: 0, milliseconds: 0 }, generation)?;
        let (count, heads) = (changes.writes.len(), changes.heads.clone());
        if count == 0 && heads.is_empty() {
            return Ok(0);
        }
        self.remembered.compare(generation, &changes.writes);
        let prepared = self.backend.prepare();
        let applied = prepared.and_then(|()| self.backend.apply(changes, self.options.durability));
        let outcome = applied.and_then(|()| self.publish(generation, heads));
        outcome.inspect_err(|error| self.failed(&mut turn, error.clone())).map(|()| count)
    }

    /// Watches a stretch from what is published now on.
    fn watch(&self, stretch: &Stretch) -> Result<Reader<B::Rows>> {
        let _turn = lock(&self.turn);
        let published = lock(&self.state).published()?;
        self.remembered.gaps.watch(stretch.clone());
        Ok(Reader { published, now: 0, milliseconds: 0 })
    }

    /// Compacts while everything else goes on.
    fn compact(&self) -> Result<()> {
        self.open()?;
        self.backend.compact()?;
        self.show_anew()
    }

    /// Publishes what is there once more, so that nobody reads what a
    /// compaction replaced, and its room can be given back.
    pub(super) fn show_anew(&self) -> Result<()> {
        {
            let mut turn = lock(&self.turn);
            let lease = lock(&self.state).clock.next_lease();
            self.write_lease(&mut turn, lease, None)?;
            if turn.group.is_none() {
                turn.generation += 1;
                self.publish(turn.generation, NewHeads::new())?;
            }
        }
        self.backend.release()
    }

    /// The new time is durable before anybody sees it; nobody sees a time
    /// past a freeze while it is on its way.
    fn move_clock(&self, step: Step) -> Result<Reading, Refused> {
        let now = self.read().map_err(Refused::Storage)?.now;
        let mut turn = lock(&self.turn);
        let change = {
            let clock = &mut lock(&self.state).clock;
            if step == Step::Accept {
                clock.accept()?;
            }
            let now = clock.now().unwrap_or(now);
            let test = clock.after(step, now)?;
            let is_moved = test != clock.test();
            // What was accepted is accepted over a restart, too.
            (is_moved || step == Step::Accept).then(|| (test, is_moved, clock.lease_after(test)))
        };
        if let Some((test, is_moved, lease)) = change {
            let moved = is_moved.then_some(test);
            self.write_lease(&mut turn, lease, moved).map_err(Refused::Storage)?;
            lock(&self.state).clock.moved(test);
        }
        drop(turn);
        let now = self.read().map_err(Refused::Storage)?.now;
        Ok(lock(&self.state).clock.reading(now))
    }

    fn tick(&self) -> Result<()> {
        self.open()?;
        self.backend.tick();
        self.tidy.look(Sight {
            slow_scans: self.remembered.gaps.slow_count(),
            written_bytes: self.counts.written_bytes(),
            held: self.backend.held(),
        });
        let mut turn = lock(&self.turn);
        let due = lock(&self.state).clock.lease_due();
        match due {
            Some(lease) => self.write_lease(&mut turn, lease, None),
            None if self.options.durability == Durability::Relaxed => {
                let synced = self.backend.sync();
                synced.inspect_err(|error| self.failed(&mut turn, error.clone()))
            }
            None => Ok(()),
        }
    }

    /// Leaves the exact time as the lease, so that time does not stand still
    /// after the next opening.
    fn close(&self) -> Result<()> {
        let mut turn = lock(&self.turn);
        if let Phase::Closed = lock(&self.state).phase {
            return Ok(());
        }
        if let Some(group) = turn.group.take() {
            let unpublished = Error::Unavailable("the store was closed".to_owned());
            committer::settle_all(Some((group.jobs, Err(unpublished))));
        }
        let floor = {
            let mut state = lock(&self.state);
            state.clock.abandoned();
            state.clock.stop()
        };
        let leased = self.write_lease(&mut turn, floor, None);
        lock(&self.state).phase = Phase::Closed;
        leased.and(self.backend.close())
    }
}

fn reserved() -> Error {
    Error::Unavailable(format!("bucket {} belongs to the store itself", SYSTEM.0))
}
