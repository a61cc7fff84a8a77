//! What the committer did, in numbers.
//!
//! **Stall time** is the part of a write's time above what writes usually
//! take: above four times the moving average, and above 50 ms in any case.
//! The average follows the last 16 writes or so, and an outlier counts in it
//! only up to that limit, so that one stall does not hide the next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{COMMIT_SECONDS, Figures};

const STALL_AT_LEAST: Duration = Duration::from_millis(50);
const STALL_TIMES_AVERAGE: u64 = 4;
const AVERAGE_OVER: u64 = 16;

#[derive(Default)]
pub(super) struct Counts {
    commits: AtomicU64,
    groups: AtomicU64,
    redrafts: AtomicU64,
    written_bytes: AtomicU64,
    commit_nanos: AtomicU64,
    commit_classes: [AtomicU64; COMMIT_SECONDS.len() + 1],
    stall_nanos: AtomicU64,
    average_nanos: AtomicU64,
    compactions: AtomicU64,
}

impl Counts {
    pub(super) fn committed(&self, commits: u64) {
        self.commits.fetch_add(commits, Ordering::Relaxed);
    }

    pub(super) fn redrafted(&self, redrafts: u64) {
        self.redrafts.fetch_add(redrafts, Ordering::Relaxed);
    }

    pub(super) fn compacted(&self) {
        self.compactions.fetch_add(1, Ordering::Relaxed);
    }

    /// A group of so many bytes was written in `took`. Only one thread at a time
    /// says so.
    pub(super) fn wrote(&self, bytes: u64, took: Duration) {
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
        let nanos = whole_nanos(took);
        let average = self.average_nanos.load(Ordering::Relaxed);
        let usual = whole_nanos(STALL_AT_LEAST).max(average * STALL_TIMES_AVERAGE);
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.commit_nanos.fetch_add(nanos, Ordering::Relaxed);
        let class = COMMIT_SECONDS.partition_point(|end| *end < took.as_secs_f64());
        if let Some(class) = self.commit_classes.get(class) {
            class.fetch_add(1, Ordering::Relaxed);
        }
        self.stall_nanos.fetch_add(nanos.saturating_sub(usual), Ordering::Relaxed);
        let next = (average * (AVERAGE_OVER - 1) + nanos.min(usual)) / AVERAGE_OVER;
        self.average_nanos.store(next, Ordering::Relaxed);
    }

    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn figures(&self) -> Figures {
        let seconds =
            |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Ordering::Relaxed)).as_secs_f64();
        Figures {
            commits: self.commits.load(Ordering::Relaxed),
            groups: self.groups.load(Ordering::Relaxed),
            redrafts: self.redrafts.load(Ordering::Relaxed),
            written_bytes: self.written_bytes(),
            commit_seconds: seconds(&self.commit_nanos),
            commit_classes: self
                .commit_classes
                .each_ref()
                .map(|class| class.load(Ordering::Relaxed)),
            stall_seconds: seconds(&self.stall_nanos),
            compactions: self.compactions.load(Ordering::Relaxed),
            ..Figures::default()
        }
    }
}

fn whole_nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_of_a_write_above_the_usual_is_a_stall() {
        let counts = Counts::default();
        counts.wrote(1, Duration::from_millis(40));
        assert_eq!(counts.figures().stall_seconds.to_bits(), 0.0_f64.to_bits());

        counts.wrote(1, Duration::from_millis(150));
        let figures = counts.figures();
        assert!((figures.stall_seconds - 0.1).abs() < 1e-9);
        assert!((figures.commit_seconds - 0.19).abs() < 1e-9);
        assert_eq!(figures.groups, 2);
        assert_eq!(figures.commit_classes, [0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_disk_that_is_always_slow_does_not_stall() {
        let counts = Counts::default();
        for _ in 0..200 {
            counts.wrote(1, Duration::from_millis(60));
        }
        let settled = counts.figures().stall_seconds;
        counts.wrote(1, Duration::from_millis(60));
        assert_eq!(counts.figures().stall_seconds.to_bits(), settled.to_bits());
    }
}
