//! How much of a throughput is left: the meter of one partition key range.
//!
//! ```text
//!            rate R fills it, R units a second
//!              │
//!   cap R ─────┼──── what comes when it is full is the overflow
//!              ▼
//!   level      ████████     charges take from it, after what they are for is done
//!   0    ──────────────     above it whoever comes is admitted
//!   debt                    below it nobody is, until the rate has filled it up
//! ```
//!
//! A meter is a value: it changes by how much time has passed and by what was charged, and by
//! nothing else. It is kept as what is missing from full, so that a meter that nobody used is
//! full whatever its rate. Sums are exact: units are counted in millionths, time in
//! milliseconds.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use crate::charge::Charge;

/// How many throughput buckets there are.
pub const BUCKETS: usize = 5;

/// Overflow of this many seconds is kept for a burst.
const RESERVE_SECONDS: i64 = 300;

/// A range gives no more than this in a second, whatever it has in reserve.
const BURST: Rate = Rate(3_000 * Units::MILLION / 1_000);

/// Request units, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Units(i64);

impl Units {
    /// None.
    pub const ZERO: Units = Units(0);
    /// One.
    pub const ONE: Units = Units(Units::MILLION);

    const MILLION: i64 = 1_000_000;

    /// A number of request units.
    #[expect(clippy::cast_possible_truncation, reason = "it is far below that")]
    pub fn of(ru: f64) -> Units {
        Units((ru * 1e6).round() as i64)
    }

    /// As a number of request units.
    #[expect(clippy::cast_precision_loss, reason = "what is shown has fewer digits")]
    pub fn ru(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// One of `parts` equal parts; the first of them takes what cannot be divided.
    pub fn part(self, place: usize, parts: usize) -> Units {
        let parts = i64::try_from(parts).unwrap_or(i64::MAX).max(1);
        let rest = if place == 0 { self.0 % parts } else { 0 };
        Units(self.0 / parts + rest)
    }

    /// Whether there are any.
    pub fn is_positive(self) -> bool {
        self.0 > 0
    }

    /// So many, or none if it is a debt.
    pub fn or_none(self) -> Units {
        self.max(Units::ZERO)
    }

    /// So many times.
    #[must_use]
    pub fn times(self, count: u32) -> Units {
        Units(self.0.saturating_mul(count.into()))
    }

    /// How many times it has `each` in it.
    pub fn holds(self, each: Units) -> usize {
        usize::try_from(self.0 / each.0.max(1)).unwrap_or(0)
    }
}

impl From<Charge> for Units {
    fn from(charge: Charge) -> Units {
        let hundredths = i64::try_from(charge.hundredths()).unwrap_or(i64::MAX);
        Units(hundredths.saturating_mul(Units::MILLION / 100))
    }
}

impl Add for Units {
    type Output = Units;

    fn add(self, other: Units) -> Units {
        Units(self.0.saturating_add(other.0))
    }
}

impl Sub for Units {
    type Output = Units;

    fn sub(self, other: Units) -> Units {
        Units(self.0.saturating_sub(other.0))
    }
}

impl Neg for Units {
    type Output = Units;

    fn neg(self) -> Units {
        Units(self.0.saturating_neg())
    }
}

impl AddAssign for Units {
    fn add_assign(&mut self, other: Units) {
        *self = *self + other;
    }
}

impl SubAssign for Units {
    fn sub_assign(&mut self, other: Units) {
        *self = *self - other;
    }
}

impl Sum for Units {
    fn sum<I: Iterator<Item = Units>>(units: I) -> Units {
        units.fold(Units::ZERO, Add::add)
    }
}

/// Units a millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(i64);

impl Rate {
    /// What each of `parts` has of so many request units a second.
    pub fn of(ru_per_second: u32, parts: usize) -> Rate {
        let parts = i64::try_from(parts).unwrap_or(i64::MAX).max(1);
        Rate(i64::from(ru_per_second) * (Units::MILLION / 1_000) / parts)
    }

    /// A part of a hundred of it.
    #[must_use]
    pub fn percent(self, percent: u8) -> Rate {
        Rate(self.0 * i64::from(percent) / 100)
    }

    /// What it gives in so many milliseconds.
    pub fn over(self, milliseconds: u64) -> Units {
        Units(self.0.saturating_mul(i64::try_from(milliseconds).unwrap_or(i64::MAX)))
    }

    /// What it gives in a second, which is what a meter holds.
    pub fn cap(self) -> Units {
        self.over(1_000)
    }

    /// So many of it.
    #[must_use]
    pub fn times(self, count: usize) -> Rate {
        Rate(self.0.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX)))
    }

    /// How many milliseconds it takes to give so much; at least one.
    fn time_for(self, units: Units) -> u64 {
        let rate = self.0.max(1);
        let milliseconds = units.0 / rate + i64::from(units.0 % rate > 0);
        u64::try_from(milliseconds).unwrap_or(1).max(1)
    }
}

/// How soon a request is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// When nothing is left.
    #[default]
    High,
    /// When half a second of the throughput is left, which is kept for the others.
    Low,
}

/// How a request is to be served, beside others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// How soon it is refused.
    pub priority: Priority,
    /// The throughput bucket that it takes from, counted from 1.
    pub bucket: Option<u8>,
}

/// What a meter goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tariff {
    /// How fast it fills.
    pub rate: Rate,
    /// Whether what overflows may be spent later.
    pub burst: bool,
    /// How much of the rate each throughput bucket may take, in percent.
    pub shares: [Option<u8>; BUCKETS],
}

impl Tariff {
    /// The bucket of a request that has a share, and the rate of that.
    fn share(&self, service: Service) -> Option<(usize, Rate)> {
        let place = usize::from(service.bucket?).checked_sub(1)?;
        let percent = (*self.shares.get(place)?)?;
        Some((place, self.rate.percent(percent)))
    }

    fn can_burst(&self) -> bool {
        self.burst && self.rate < BURST
    }

    fn reserve_max(&self) -> Units {
        Units(self.rate.cap().0.saturating_mul(RESERVE_SECONDS))
    }
}

/// Why a request is refused, and when it would not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    /// Whether it is the share of its throughput bucket that is spent.
    pub by_share: bool,
    /// After so many milliseconds, and not before, there is a unit again of what is spent. It
    /// would be admitted then, if nobody came before it: a little less is enough for that, but
    /// not to be told to come for.
    pub wait_ms: u64,
}

/// What is left for one range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// What is missing from full; more than the cap is a debt.
    missing: Units,
    /// What may be spent although the meter is empty.
    reserve: Units,
    /// What was spent of all that a range gives in a second.
    peak: Units,
    /// What each throughput bucket has spent of its share.
    shares: [Units; BUCKETS],
}

impl Meter {
    /// A meter that nobody used for so many milliseconds.
    pub fn rested(tariff: &Tariff, milliseconds: u64) -> Meter {
        let mut meter = Meter::default();
        meter.pass(tariff, milliseconds);
        meter
    }

    /// What may be charged before somebody is refused; below 0 it is a debt.
    pub fn level(&self, tariff: &Tariff) -> Units {
        tariff.rate.cap() - self.missing
    }

    /// Time passes. Returns the overflow: what users left over.
    pub fn pass(&mut self, tariff: &Tariff, milliseconds: u64) -> Units {
        let gained = tariff.rate.over(milliseconds);
        let taken = gained.min(self.missing);
        self.missing -= taken;
        let overflow = gained - taken;
        if tariff.can_burst() {
            self.reserve = (self.reserve + overflow).min(tariff.reserve_max());
            self.peak = (self.peak - BURST.over(milliseconds)).or_none();
        }
        for (spent, percent) in self.shares.iter_mut().zip(tariff.shares) {
            let refilled = tariff.rate.percent(percent.unwrap_or(100)).over(milliseconds);
            *spent = (*spent - refilled).or_none();
        }
        overflow
    }

    /// Whether a request is admitted.
    pub fn admit(&self, tariff: &Tariff, service: Service) -> Result<(), Throttled> {
        let share = self.wait_for_share(tariff, service);
        let rest = self.wait_for_rest(tariff, service);
        match share.max(rest) {
            None => Ok(()),
            Some(wait_ms) => Err(Throttled { by_share: share.is_some(), wait_ms }),
        }
    }

    /// How long it takes until there is a unit again in the share of its throughput bucket, if
    /// that is spent.
    fn wait_for_share(&self, tariff: &Tariff, service: Service) -> Option<u64> {
        let (place, share) = tariff.share(service)?;
        let spent = self.shares.get(place).copied().unwrap_or_default();
        let left = share.cap() - spent;
        (!left.is_positive()).then(|| share.time_for(Units::ONE - left))
    }

    /// The same for what is left for all.
    fn wait_for_rest(&self, tariff: &Tariff, service: Service) -> Option<u64> {
        let kept = match service.priority {
            Priority::High => Units::ZERO,
            Priority::Low => Units(tariff.rate.cap().0 / 2),
        };
        let left = self.level(tariff) - kept;
        if left.is_positive() {
            return None;
        }
        let wait_ms = tariff.rate.time_for(Units::ONE - left);
        if !self.has_reserve(tariff) || service.priority == Priority::Low {
            return Some(wait_ms);
        }
        let room = BURST.cap() - self.peak;
        (!room.is_positive()).then(|| wait_ms.min(BURST.time_for(Units::ONE - room)))
    }

    fn has_reserve(&self, tariff: &Tariff) -> bool {
        tariff.can_burst() && self.reserve.is_positive()
    }

    /// A request that was admitted is done. The charge may be more than what is left.
    pub fn take(&mut self, tariff: &Tariff, service: Service, charge: Units) {
        let mut rest = charge;
        if self.has_reserve(tariff) && !self.level(tariff).is_positive() {
            let taken = rest.min(self.reserve);
            self.reserve -= taken;
            rest -= taken;
        }
        self.missing += rest;
        if tariff.can_burst() {
            self.peak += charge;
        }
        if let Some((place, _)) = tariff.share(service)
            && let Some(spent) = self.shares.get_mut(place)
        {
            *spent += charge;
        }
    }

    /// From now on it goes by another tariff. What was spent stays spent when the rate rises;
    /// when it falls, nobody is in debt for what was there.
    pub fn change(&mut self, from: &Tariff, to: &Tariff) {
        if to.rate < from.rate {
            self.missing = (self.missing - (from.rate.cap() - to.rate.cap())).or_none();
        }
        self.reserve = self.reserve.min(to.reserve_max());
    }

    /// Whether one that nobody ever used would be the same from now on.
    pub fn is_full(&self, tariff: &Tariff) -> bool {
        let whole = self.reserve == tariff.reserve_max() || !tariff.can_burst();
        let spent = self.shares.iter().any(|spent| spent.is_positive());
        whole && !spent && self.missing == Units::ZERO && self.peak == Units::ZERO
    }
}

#[cfg(test)]
mod tests;
