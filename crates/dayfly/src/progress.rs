//! Whether a connection gets on, and when it no longer may.
//!
//! A connection is always in one phase, and each phase has a time it may last:
//!
//! ```text
//! Head ──► Serving ──► Idle ──► Head ...
//!                       │▲
//!                       ▼│
//!                     Stalled          a client does not take its answer
//! any ──► Lingering                    refused; what still comes is dropped
//! any ──► Draining                     the same, of a body that is too large
//! ```
//!
//! hyper has a timeout for heads, but it also runs between two requests, where
//! a client may be silent for minutes, and sets a timer for each request. Here
//! a phase is two words in memory, and one timer for each connection looks at
//! them when it fires. A request that comes in one piece touches no timer.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::limits::Limits;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// The head of a request is on its way.
    Head,
    /// A body is, in direct mode.
    Body,
    /// We are at work. Bodies have timeouts of their own.
    Serving,
    /// Nothing, between two requests.
    Idle,
    /// The client does not take its answer.
    Stalled,
    /// We refused, and throw away what still comes.
    Lingering,
    /// We refused a body, and throw it away for as long as a body may take.
    Draining,
}

impl Phase {
    fn of(number: u8) -> Phase {
        match number {
            0 => Phase::Head,
            1 => Phase::Body,
            2 => Phase::Serving,
            3 => Phase::Idle,
            4 => Phase::Stalled,
            5 => Phase::Lingering,
            _ => Phase::Draining,
        }
    }
}

/// The phase of one connection, and since when.
///
/// All of it is told by one task for HTTP/1, and by few for HTTP/2; nothing
/// else hangs on the order in which they see it.
pub(crate) struct Progress {
    limits: Limits,
    opened: Instant,
    phase: AtomicU8,
    /// Milliseconds after `opened`.
    since_ms: AtomicU64,
    serving: AtomicU32,
}

impl Progress {
    pub(crate) fn new(limits: Limits) -> Self {
        Progress {
            limits,
            opened: Instant::now(),
            phase: AtomicU8::new(Phase::Head as u8),
            since_ms: AtomicU64::new(0),
            serving: AtomicU32::new(0),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        Phase::of(self.phase.load(Ordering::Relaxed))
    }

    /// From now on `phase`.
    pub(crate) fn enter(&self, phase: Phase) {
        let since = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.since_ms.store(since, Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// A request is being served until the guard is dropped, also when that is
    /// because the client went away.
    pub(crate) fn serving(&self) -> Serving<'_> {
        self.serving.fetch_add(1, Ordering::Relaxed);
        self.phase.store(Phase::Serving as u8, Ordering::Relaxed);
        Serving(self)
    }

    /// When the phase has lasted too long; never while we are at work.
    fn due(&self) -> Option<Instant> {
        let limit_ms = match self.phase() {
            Phase::Head => self.limits.header_timeout_ms,
            Phase::Body => self.limits.body_progress_timeout_ms,
            Phase::Serving => return None,
            Phase::Idle => self.limits.idle_timeout_ms,
            Phase::Stalled => self.limits.write_timeout_ms,
            Phase::Lingering => self.limits.linger_timeout_ms,
            Phase::Draining => self.limits.body_timeout_ms,
        };
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        Some(self.opened + Duration::from_millis(since_ms.saturating_add(limit_ms)))
    }

    /// A timer for [`Progress::poll_overdue`].
    pub(crate) fn alarm(&self) -> Sleep {
        tokio::time::sleep(self.limits.header_timeout())
    }

    /// Ready when the phase has lasted too long. To be called after each step
    /// of the connection: it is a comparison, unless the alarm has to move.
    pub(crate) fn poll_overdue(
        &self,
        mut alarm: Pin<&mut Sleep>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        loop {
            if let Some(due) = self.due()
                && due < alarm.deadline()
            {
                alarm.as_mut().reset(due);
            }
            ready!(alarm.as_mut().poll(cx));
            let now = Instant::now();
            match self.due() {
                Some(due) if due <= now => return Poll::Ready(()),
                Some(due) => alarm.as_mut().reset(due),
                None => alarm.as_mut().reset(now + self.limits.header_timeout()),
            }
        }
    }
}

/// A request at work.
pub(crate) struct Serving<'a>(&'a Progress);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        let was_last = self.0.serving.fetch_sub(1, Ordering::Relaxed) == 1;
        if was_last && self.0.phase() == Phase::Serving {
            self.0.enter(Phase::Idle);
        }
    }
}
