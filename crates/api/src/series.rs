//! What the server did in each of the last seconds, for those who look at it.
//!
//! Once a second somebody brings the counts since the start; what is kept is how much they
//! grew. So a request costs nothing more than to be counted, and what is not looked at costs
//! a few sums a second. Seconds are those of the stopwatch, whatever the clock shows.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dayfly_model::Timestamp;
use serde_json::{Value, json};

/// How many seconds are kept: 15 minutes.
const SECONDS: usize = 900;

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) requests: u64,
    /// In hundredths of a request unit.
    pub(crate) charge: u64,
    pub(crate) errors: u64,
    pub(crate) expired: u64,
    pub(crate) purged: u64,
}

impl Totals {
    /// How much more they are than `before`. A container that was deleted takes its counts
    /// with it.
    fn since(self, before: Totals) -> Totals {
        Totals {
            requests: self.requests.saturating_sub(before.requests),
            charge: self.charge.saturating_sub(before.charge),
            errors: self.errors.saturating_sub(before.errors),
            expired: self.expired.saturating_sub(before.expired),
            purged: self.purged.saturating_sub(before.purged),
        }
    }
}

/// The last seconds.
#[derive(Default)]
pub(crate) struct Series(Mutex<LastSeconds>);

#[derive(Default)]
struct LastSeconds {
    /// The second of the last counts, and these.
    last: Option<(u64, Totals)>,
    /// The oldest first.
    grown: VecDeque<Totals>,
}

impl Series {
    fn seconds(&self) -> MutexGuard<'_, LastSeconds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many items had expired when that was counted last.
    pub(crate) fn expired(&self) -> u64 {
        self.seconds().last.map_or(0, |(_, totals)| totals.expired)
    }

    /// The counts at the end of a second. What lies between is one growth: nobody came to
    /// look in time.
    pub(crate) fn note(&self, second: u64, totals: Totals) {
        let mut seconds = self.seconds();
        if let Some((before, last)) = seconds.last {
            let missed = second.saturating_sub(before).saturating_sub(1);
            let missed = usize::try_from(missed).unwrap_or(SECONDS).min(SECONDS);
            seconds.grown.extend(std::iter::repeat_n(Totals::default(), missed));
            seconds.grown.push_back(totals.since(last));
            let over = seconds.grown.len().saturating_sub(SECONDS);
            seconds.grown.drain(..over);
        }
        seconds.last = Some((second, totals));
    }

    /// All of them.
    pub(crate) fn show(&self, now: Timestamp) -> Value {
        let seconds = self.seconds();
        let each =
            |figure: fn(&Totals) -> u64| seconds.grown.iter().map(figure).collect::<Vec<_>>();
        let charge: Vec<f64> = seconds.grown.iter().map(|grown| units(grown.charge)).collect();
        json!({
            "now": now.0,
            "seconds": SECONDS,
            "requests": each(|grown| grown.requests),
            "charge": charge,
            "errors": each(|grown| grown.errors),
            "expired": each(|grown| grown.expired),
            "purged": each(|grown| grown.purged),
        })
    }

    /// The last one.
    pub(crate) fn show_last(&self, now: Timestamp, frozen: bool) -> Value {
        let last = self.seconds().grown.back().copied().unwrap_or_default();
        json!({
            "now": now.0,
            "frozen": frozen,
            "requests": last.requests,
            "charge": units(last.charge),
            "errors": last.errors,
            "expired": last.expired,
            "purged": last.purged,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is far below 2^53")]
fn units(hundredths: u64) -> f64 {
    hundredths as f64 / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(requests: u64, expired: u64) -> Totals {
        Totals { requests, charge: requests * 250, expired, ..Totals::default() }
    }

    #[test]
    fn a_second_has_what_grew_in_it() {
        let series = Series::default();
        assert_eq!(series.show(Timestamp(7))["requests"], json!([]));
        series.note(10, totals(5, 3));
        series.note(11, totals(7, 3));
        // One second was missed, and a container with its counts is gone.
        series.note(13, totals(8, 1));
        series.note(14, totals(8, 2));
        let shown = series.show(Timestamp(7));
        assert_eq!(shown["requests"], json!([2, 0, 1, 0]));
        assert_eq!(shown["charge"], json!([5.0, 0.0, 2.5, 0.0]));
        assert_eq!(shown["expired"], json!([0, 0, 0, 1]));
        assert_eq!((&shown["now"], &shown["seconds"]), (&json!(7), &json!(900)));
        let last = series.show_last(Timestamp(8), true);
        assert_eq!(last["expired"], 1);
        assert_eq!((&last["now"], &last["frozen"]), (&json!(8), &json!(true)));
    }

    #[test]
    fn the_last_fifteen_minutes_are_kept() {
        let series = Series::default();
        for second in 0..2000 {
            series.note(second, totals(second * 2, 0));
        }
        let shown = series.show(Timestamp(0));
        assert_eq!(shown["requests"].as_array().unwrap().len(), SECONDS);
        series.note(1_000_000, totals(4001, 0));
        let shown = series.show(Timestamp(0));
        let requests = shown["requests"].as_array().unwrap();
        assert_eq!((requests.len(), &requests[0], &requests[899]), (900, &json!(0), &json!(3)));
    }
}
