//! What the purge has done, in numbers.

use std::collections::HashMap;
use std::sync::Mutex;

use dayfly_storage::Second;

use super::unit::Buried;
use crate::locks::lock;

/// The upper ends of the classes of [`Lag`], in seconds; the last class has
/// none.
pub const LAG_SECONDS: [u64; 9] = [1, 2, 5, 10, 30, 60, 300, 3600, 86400];

/// Over how many seconds the rate is taken.
const RATE_SECONDS: usize = 10;

/// How long items were dead before they were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// How many items lagged up to [`LAG_SECONDS`], each in one class only; the
    /// last class is for all others.
    pub classes: [u64; 10],
    /// How many items there are in all classes.
    pub count: u64,
    /// Their seconds together.
    pub sum_seconds: u64,
}

impl Lag {
    fn add(&mut self, seconds: u64) {
        let class = LAG_SECONDS.partition_point(|end| *end < seconds);
        if let Some(class) = self.classes.get_mut(class) {
            *class += 1;
        }
        self.count += 1;
        self.sum_seconds = self.sum_seconds.saturating_add(seconds);
    }
}

/// What the purge has done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PurgeFigures {
    /// Expired items that were removed.
    pub purged_items: u64,
    /// What their deletes would have cost, in request units. Nobody pays it.
    pub ru_spent: f64,
    /// How long they were dead before.
    pub lag: Lag,
}

/// The counts.
#[derive(Default)]
pub(super) struct Counters(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    figures: PurgeFigures,
    containers: HashMap<u32, Counted>,
}

/// What was removed from one container.
#[derive(Default)]
struct Counted {
    purged_items: u64,
    rate: PurgeRate,
    failure: Option<String>,
}

impl Counters {
    /// A unit removed items of `container`.
    pub(super) fn buried(&self, container: u32, buried: &Buried) {
        let counts = &mut *lock(&self.0);
        counts.figures.purged_items += buried.items;
        counts.figures.ru_spent += buried.charge.ru();
        for lag in &buried.lags {
            counts.figures.lag.add(*lag);
        }
        let counted = counts.containers.entry(container).or_default();
        counted.purged_items += buried.items;
        counted.rate.add(buried.at, buried.items);
    }

    /// How the last look at `container` ended.
    pub(super) fn looked(&self, container: u32, failure: Option<String>) {
        let counts = &mut *lock(&self.0);
        match (counts.containers.get_mut(&container), failure) {
            (Some(counted), failure) => counted.failure = failure,
            (None, Some(failure)) => {
                let failure = Some(failure);
                counts.containers.insert(container, Counted { failure, ..Counted::default() });
            }
            (None, None) => {}
        }
    }

    /// `container` is gone.
    pub(super) fn forget(&self, container: u32) {
        lock(&self.0).containers.remove(&container);
    }

    pub(super) fn figures(&self) -> PurgeFigures {
        lock(&self.0).figures
    }

    /// How many items of `container` were removed, or of all.
    pub(super) fn purged_items(&self, container: Option<u32>) -> u64 {
        let counts = lock(&self.0);
        match container {
            None => counts.figures.purged_items,
            Some(container) => {
                counts.containers.get(&container).map_or(0, |counted| counted.purged_items)
            }
        }
    }

    /// How many items of each container were removed.
    pub(super) fn all_purged(&self) -> HashMap<u32, u64> {
        let counts = lock(&self.0);
        counts.containers.iter().map(|(number, counted)| (*number, counted.purged_items)).collect()
    }

    /// Items a second of `container` in the seconds before `now`, and why its
    /// last look failed.
    pub(super) fn state_of(&self, container: u32, now: Second) -> (f64, Option<String>) {
        let counts = lock(&self.0);
        let counted = counts.containers.get(&container);
        counted
            .map_or((0.0, None), |counted| (counted.rate.per_second(now), counted.failure.clone()))
    }
}

/// A count for each of the last seconds.
#[derive(Default)]
struct PurgeRate([(Second, u64); RATE_SECONDS]);

impl PurgeRate {
    fn add(&mut self, at: Second, items: u64) {
        let place = usize::try_from(at % RATE_SECONDS as u64).unwrap_or_default();
        if let Some((second, count)) = self.0.get_mut(place) {
            *count = if *second == at { *count + items } else { items };
            *second = at;
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn per_second(&self, now: Second) -> f64 {
        let recent = |second: Second| second + RATE_SECONDS as u64 > now;
        let items: u64 =
            self.0.iter().filter(|(second, _)| recent(*second)).map(|(_, count)| count).sum();
        items as f64 / RATE_SECONDS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_falls_into_the_first_class_that_holds_it() {
        let mut lag = Lag::default();
        for seconds in [0, 1, 2, 3, 60, 61, 86400, 86401] {
            lag.add(seconds);
        }
        assert_eq!(lag.classes, [2, 1, 1, 0, 0, 1, 1, 0, 1, 1]);
        assert_eq!((lag.count, lag.sum_seconds), (8, 172_928));
    }

    #[test]
    fn the_rate_follows_the_last_ten_seconds() {
        let mut rate = PurgeRate::default();
        for at in 100..110 {
            rate.add(at, 30);
            rate.add(at, 20);
        }
        let near = |now: Second, expected: f64| (rate.per_second(now) - expected).abs() < 1e-9;
        assert!(near(109, 50.0));
        assert!(near(114, 25.0));
        assert!(near(119, 0.0));
    }
}
