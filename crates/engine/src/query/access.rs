//! Which items a query looks at, and in which order.

use std::collections::VecDeque;

use dayfly_model::Result;
use dayfly_model::ttl::Cuts;
use dayfly_storage::{Bucket, Direction, KeyRange, Pair};

use super::token::{Place, bad_token};
use crate::head::State;
use crate::items::Seen;
use crate::record::Record;
use crate::reply::storage_failed;
use crate::scope::Opened;

/// How many keys are read at once, to begin with and at most.
const CHUNK_MIN: usize = 16;
const CHUNK_MAX: usize = 512;

/// An item that is alive.
pub(super) struct Found {
    pub(super) record: Record,
    /// Where it stands.
    pub(super) at: Place,
    /// Whether it is the one with which the page before ended; also for all
    /// that come after such a one.
    pub(super) resumed: bool,
}

/// All items of some ranges of keys, in the order of their keys.
pub(super) struct Scan<'a> {
    opened: &'a Opened,
    /// What is still to be read.
    segments: VecDeque<(Bucket, KeyRange)>,
    cuts: Option<Cuts>,
    read: VecDeque<Pair>,
    chunk: usize,
    looked_at: u64,
    /// The key with which the page before ended.
    resumes: Option<Vec<u8>>,
}

impl<'a> Scan<'a> {
    /// A scan from `start` on.
    pub(super) fn new(
        opened: &'a Opened,
        segments: Vec<(Bucket, KeyRange)>,
        start: &Place,
    ) -> Result<Self> {
        let mut segments = VecDeque::from(segments);
        let mut resumes = None;
        if let Place::Item(bucket, key) = start {
            segments.retain(|(candidate, _)| candidate >= bucket);
            match segments.front_mut() {
                Some((first, range)) if first == bucket && range.contains(key) => {
                    range.start.clone_from(key);
                }
                _ => return Err(bad_token()),
            }
            resumes = Some(key.clone());
        }
        let read = VecDeque::new();
        Ok(Scan { opened, segments, cuts: None, read, chunk: CHUNK_MIN, looked_at: 0, resumes })
    }

    /// How many keys were looked at, also of items that are dead.
    pub(super) fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// The next item that is alive.
    pub(super) fn next(&mut self) -> Result<Option<Found>> {
        loop {
            let Some((key, value)) = self.read.pop_front() else {
                if self.fetch()? {
                    continue;
                }
                return Ok(None);
            };
            self.looked_at += 1;
            let (Some((bucket, _)), Some(cuts)) = (self.segments.front(), self.cuts) else {
                return Ok(None);
            };
            let bucket = *bucket;
            let resumed = self.resumes.as_ref().is_none_or(|resumes| *resumes == key);
            if let Seen::Alive(record) = Seen::of(value, cuts).map_err(storage_failed)? {
                self.resumes = None;
                return Ok(Some(Found { record, at: Place::Item(bucket, key.to_vec()), resumed }));
            }
        }
    }

    /// Reads on. `false`: there is nothing more.
    fn fetch(&mut self) -> Result<bool> {
        while let Some((bucket, range)) = self.segments.front_mut() {
            let snapshot = &*self.opened.snapshot;
            if self.cuts.is_none() {
                let policy = State::policy(&snapshot.head(*bucket)).map_err(storage_failed)?;
                self.cuts = Some(policy.cuts(self.opened.now()));
            }
            let pairs = snapshot
                .scan(*bucket, range, Direction::Forward, self.chunk)
                .map_err(storage_failed)?;
            self.chunk = (self.chunk * 2).min(CHUNK_MAX);
            if let Some((last, _)) = pairs.last() {
                range.start = [last, &[0][..]].concat();
                self.read = pairs.into();
                return Ok(true);
            }
            self.segments.pop_front();
            self.cuts = None;
        }
        Ok(false)
    }
}
