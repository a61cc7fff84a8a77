//! Where drafted writes wait for the committer.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

use super::lock;
use crate::{Bucket, Error, Job};

/// How many writes may wait; more are refused, so that a slow disk shows in
/// answers and not in memory.
pub(super) const QUEUE_JOBS_MAX: usize = 16_384;

/// How many bytes the waiting writes may hold, as far as they say.
pub(super) const QUEUE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A write that waits, and the bucket it is for.
pub(super) type Waiting = (Bucket, Box<dyn Job>);

#[derive(Default)]
pub(super) struct Queue {
    line: Mutex<Line>,
    arrived: Condvar,
}

#[derive(Default)]
struct Line {
    jobs: VecDeque<Waiting>,
    bytes: usize,
    closed: bool,
}

impl Queue {
    /// Puts the write at the end, or gives it back with the reason.
    pub(super) fn push(&self, waiting: Waiting) -> Result<(), (Waiting, Error)> {
        let mut line = lock(&self.line);
        let bytes = waiting.1.bytes();
        if line.closed {
            return Err((waiting, Error::Unavailable("the store is closed".to_owned())));
        }
        if line.jobs.len() >= QUEUE_JOBS_MAX || line.bytes.saturating_add(bytes) > QUEUE_BYTES_MAX {
            return Err((waiting, Error::Unavailable("too many writes are waiting".to_owned())));
        }
        line.bytes += bytes;
        line.jobs.push_back(waiting);
        if line.jobs.len() == 1 {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// The write that waited longest.
    pub(super) fn pop(&self) -> Option<Waiting> {
        let mut line = lock(&self.line);
        let waiting = line.jobs.pop_front()?;
        line.bytes -= waiting.1.bytes().min(line.bytes);
        Some(waiting)
    }

    /// Waits for a write. `false`: the queue is closed and empty.
    pub(super) fn wait(&self) -> bool {
        let mut line = lock(&self.line);
        while line.jobs.is_empty() && !line.closed {
            line = self.arrived.wait(line).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        !line.jobs.is_empty()
    }

    /// Takes no more writes.
    pub(super) fn close(&self) {
        lock(&self.line).closed = true;
        self.arrived.notify_all();
    }
}
