//! How long do the steps of a query take before its first item?

use std::time::{Duration, Instant};

use crate::stopwatch::instant;

/// A stopwatch: for figures that are shown, never for judging anything.
pub(super) struct Laps(Instant);

impl Laps {
    pub(super) fn start() -> Laps {
        Laps(instant())
    }

    /// The time since the last lap ended.
    pub(super) fn next(&mut self) -> Duration {
        let now = instant();
        now.saturating_duration_since(std::mem::replace(&mut self.0, now))
    }
}
