//! The system's stopwatch: for a pace and for figures that are shown, never for judging
//! anything.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "the only place of the engine that asks")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}
