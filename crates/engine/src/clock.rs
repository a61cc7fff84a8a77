//! The clock, as the admin API shows and moves it.

use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::clock::{LAST_SECOND, Reading, Refused};
use serde_json::json;

use crate::reply::{Reply, Success};

/// The answer to a look at the clock, or to a move of it.
pub(crate) fn reply(outcome: Result<Reading, Refused>) -> Reply {
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
