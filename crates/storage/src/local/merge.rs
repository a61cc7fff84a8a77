//! What is written and not published yet, merged into what is published.
//!
//! A job of a group scans what the jobs before it wrote, over the rows of the backend.
//! Both come in the order of their keys, so one pass does it, and stops at the limit.

use std::collections::btree_map;
use std::ops::ControlFlow;

use bytes::Bytes;

use super::system::BUCKET_BYTES;
use crate::{Direction, Pair};

/// Two ordered runs becoming one; the newer one has the last word on a key.
pub(super) struct Merge<'a> {
    newer: Newer<'a>,
    pairs: Vec<Pair>,
    limit: usize,
}

impl<'a> Merge<'a> {
    /// At most `limit` pairs of `newer` and of what comes to [`Merge::older`].
    pub(super) fn new(
        newer: btree_map::Range<'a, Vec<u8>, Option<Bytes>>,
        direction: Direction,
        limit: usize,
    ) -> Self {
        Merge { newer: Newer::new(newer, direction), pairs: Vec::new(), limit }
    }

    /// Takes the next pair of the older run, after what comes before it.
    pub(super) fn older(&mut self, key: Bytes, value: Bytes) -> ControlFlow<()> {
        while self.pairs.len() < self.limit
            && let Some((newer, written)) = self.newer.up_to(&key)
        {
            let same = newer[..] == key[..];
            self.push(Bytes::copy_from_slice(newer), written.clone());
            if same {
                return self.on();
            }
        }
        self.push(key, Some(value));
        self.on()
    }

    /// All pairs, when the older run has ended.
    pub(super) fn finish(mut self) -> Vec<Pair> {
        while self.pairs.len() < self.limit
            && let Some((newer, written)) = self.newer.next()
        {
            self.push(Bytes::copy_from_slice(newer), written.clone());
        }
        self.pairs
    }

    fn push(&mut self, key: Bytes, value: Option<Bytes>) {
        if let Some(value) = value
            && self.pairs.len() < self.limit
        {
            self.pairs.push((key.slice(BUCKET_BYTES..), value));
        }
    }

    fn on(&self) -> ControlFlow<()> {
        if self.pairs.len() < self.limit {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// The newer run, in the direction of the scan.
struct Newer<'a> {
    rest: btree_map::Range<'a, Vec<u8>, Option<Bytes>>,
    direction: Direction,
    ahead: Option<(&'a Vec<u8>, &'a Option<Bytes>)>,
}

impl<'a> Newer<'a> {
    fn new(rest: btree_map::Range<'a, Vec<u8>, Option<Bytes>>, direction: Direction) -> Self {
        let mut newer = Newer { rest, direction, ahead: None };
        newer.ahead = newer.step();
        newer
    }

    /// The next write, if its key does not come after `key`.
    fn up_to(&mut self, key: &[u8]) -> Option<(&'a Vec<u8>, &'a Option<Bytes>)> {
        let (next, _) = self.ahead?;
        let not_after = match self.direction {
            Direction::Forward => &next[..] <= key,
            Direction::Backward => &next[..] >= key,
        };
        if not_after { self.next() } else { None }
    }

    fn next(&mut self) -> Option<(&'a Vec<u8>, &'a Option<Bytes>)> {
        let step = self.step();
        std::mem::replace(&mut self.ahead, step)
    }

    fn step(&mut self) -> Option<(&'a Vec<u8>, &'a Option<Bytes>)> {
        match self.direction {
            Direction::Forward => self.rest.next(),
            Direction::Backward => self.rest.next_back(),
        }
    }
}
