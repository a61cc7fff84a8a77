//! Requests, counted by what they were: how long they took, what they were charged, and
//! how they ended.
//!
//! A request adds to four numbers, and no lock is taken. Which numbers there are is
//! fixed: kinds, classes of status, and the table of errors.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dayfly_engine::reply::Success;
use dayfly_model::{ErrorKind, Result};

use super::page::MetricsPage;
use crate::kind::Kind;
use crate::requests::Answered;

/// The upper ends of the classes of durations; the last class has none. A point read
/// takes some hundredths of a millisecond, a query may take a minute.
const SECONDS: [f64; 17] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 30.0,
];

/// The classes of status that answers have.
const CLASSES: [(u16, &str); 4] = [(2, "2xx"), (3, "3xx"), (4, "4xx"), (5, "5xx")];

/// The statuses of answers that are no errors. Another would be told as `other`.
const GOOD: [u16; 6] = [200, 201, 202, 204, 207, 304];

/// Charges are kept in hundredths: they have two decimals, and sums of those are exact.
const CHARGE_PARTS: f64 = 100.0;

/// All counts of requests.
pub(crate) struct Meters {
    by_kind: [Meter; Kind::COUNT],
    /// By the place of their status in [`GOOD`]; the last is for all others.
    good: [AtomicU64; GOOD.len() + 1],
    failed: [AtomicU64; ErrorKind::ALL.len()],
}

/// The counts of one kind of request.
#[derive(Default)]
struct Meter {
    by_class: [Durations; CLASSES.len()],
    /// In hundredths of a request unit.
    charge: AtomicU64,
}

/// How long requests took.
#[derive(Default)]
struct Durations {
    nanos: AtomicU64,
    classes: [AtomicU64; SECONDS.len() + 1],
}

impl Default for Meters {
    fn default() -> Self {
        Meters {
            by_kind: std::array::from_fn(|_| Meter::default()),
            good: Default::default(),
            failed: Default::default(),
        }
    }
}

impl Meters {
    /// A request was answered.
    pub(crate) fn count(&self, answered: &Answered<'_>) {
        let outcome = &answered.reply.outcome;
        let status = match outcome {
            Ok(success) => success.status,
            Err(error) => error.kind.wire().status,
        };
        if let Some(meter) = self.by_kind.get(answered.about.kind as usize) {
            meter.charge.fetch_add(answered.reply.charge.hundredths(), Ordering::Relaxed);
            let class = usize::from(status / 100).saturating_sub(2);
            if let Some(durations) = meter.by_class.get(class) {
                durations.add(answered.took);
            }
        }
        if let Some(count) = self.ended(outcome) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All requests that are logged: how many, their charge, and how many were refused or
    /// failed.
    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        let (mut requests, mut charge, mut errors) = (0, 0, 0);
        for (kind, meter) in Kind::ALL.iter().zip(&self.by_kind) {
            if !kind.is_logged() {
                continue;
            }
            charge += meter.charge.load(Ordering::Relaxed);
            for ((class, _), durations) in CLASSES.iter().zip(&meter.by_class) {
                let counts = durations.classes.iter().map(|count| count.load(Ordering::Relaxed));
                let count: u64 = counts.sum();
                requests += count;
                errors += if *class >= 4 { count } else { 0 };
            }
        }
        (requests, charge, errors)
    }

    /// Where those are counted that ended so.
    fn ended(&self, outcome: &Result<Success>) -> Option<&AtomicU64> {
        match outcome {
            Ok(success) => {
                let place = GOOD.iter().position(|status| *status == success.status);
                self.good.get(place.unwrap_or(GOOD.len()))
            }
            Err(error) => self.failed.get(error.kind as usize),
        }
    }

    pub(super) fn render(&self, page: &mut MetricsPage) {
        page.describe(
            "dayfly_requests_total",
            "counter",
            "Requests, by status and substatus of their answers.",
        );
        let names = GOOD.iter().map(u16::to_string).chain(["other".to_owned()]);
        for (status, count) in names.zip(&self.good) {
            let labels = [("status", &*status), ("substatus", "0")];
            page.sample(&labels, count.load(Ordering::Relaxed));
        }
        for (kind, count) in ErrorKind::ALL.iter().zip(&self.failed) {
            let (status, substatus) =
                (kind.wire().status.to_string(), kind.wire().substatus.to_string());
            let labels = [("status", &*status), ("substatus", &*substatus)];
            page.sample(&labels, count.load(Ordering::Relaxed));
        }
        self.render_durations(page);
        page.describe(
            "dayfly_request_charge_total",
            "counter",
            "Request units that were charged, by operation.",
        );
        for (kind, meter) in Kind::ALL.iter().zip(&self.by_kind) {
            page.sample(&[("operation", kind.name())], units(meter.charge.load(Ordering::Relaxed)));
        }
    }

    /// Only of what there was: each is many lines.
    fn render_durations(&self, page: &mut MetricsPage) {
        page.describe(
            "dayfly_request_seconds",
            "histogram",
            "How long requests took until they were answered, by operation and class of status.",
        );
        for (kind, meter) in Kind::ALL.iter().zip(&self.by_kind) {
            for ((_, class), durations) in CLASSES.iter().zip(&meter.by_class) {
                let classes =
                    durations.classes.each_ref().map(|class| class.load(Ordering::Relaxed));
                if classes.iter().any(|count| *count > 0) {
                    let labels = [("operation", kind.name()), ("status", *class)];
                    let nanos = Duration::from_nanos(durations.nanos.load(Ordering::Relaxed));
                    page.histogram(&labels, &SECONDS, &classes, nanos.as_secs_f64());
                }
            }
        }
    }
}

impl Durations {
    fn add(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let class = SECONDS.partition_point(|end| *end < seconds);
        if let Some(class) = self.classes.get(class) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is far below 2^53")]
fn units(hundredths: u64) -> f64 {
    hundredths as f64 / CHARGE_PARTS
}

#[cfg(test)]
mod tests {
    use dayfly_model::charge::Charge;

    use super::*;

    #[test]
    fn every_error_has_its_own_place() {
        for (place, kind) in ErrorKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, place);
        }
    }

    #[test]
    fn a_duration_falls_into_the_first_class_that_holds_it() {
        let durations = Durations::default();
        for micros in [1, 100, 101, 1_000, 30_000_000, 30_000_001] {
            durations.add(Duration::from_micros(micros));
        }
        let classes = durations.classes.map(AtomicU64::into_inner);
        assert_eq!(classes[..4], [2, 1, 0, 1]);
        assert_eq!(classes[SECONDS.len() - 1..], [1, 1]);
        assert_eq!(durations.nanos.into_inner(), 60_001_203_000);
    }

    #[test]
    fn sums_of_charges_are_exact() {
        let sum: u64 = (0..1000).map(|_| Charge::from(2.83).hundredths()).sum();
        assert!((units(sum) - 2830.0).abs() < 1e-9);
    }
}
