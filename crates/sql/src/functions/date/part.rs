//! The parts of a date and time, and what can be done by them: adding,
//! counting the boundaries between two moments, rounding down.
//!
//! A part is a step of the calendar, which is so many months, or one of the
//! clock, which is so many nanoseconds.

use super::moment::Moment;

/// A part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

/// How far it is from one to the next.
enum Step {
    Months(i64),
    Nanoseconds(i128),
}

/// Nanoseconds of a tick.
const TICK: i128 = 100;

impl Part {
    /// The part that a text names, in upper or lower case.
    pub(super) fn read(name: &str) -> Option<Part> {
        Some(match name.to_ascii_lowercase().as_str() {
            "year" | "yyyy" | "yy" => Part::Year,
            "month" | "mm" | "m" => Part::Month,
            "day" | "dd" | "d" => Part::Day,
            "hour" | "hh" => Part::Hour,
            "minute" | "mi" | "n" => Part::Minute,
            "second" | "ss" | "s" => Part::Second,
            "millisecond" | "ms" => Part::Millisecond,
            "microsecond" | "mcs" => Part::Microsecond,
            "nanosecond" | "ns" => Part::Nanosecond,
            _ => return None,
        })
    }

    fn step(self) -> Step {
        let seconds = |count: i128| Step::Nanoseconds(count * 1_000_000_000);
        match self {
            Part::Year => Step::Months(12),
            Part::Month => Step::Months(1),
            Part::Day => seconds(86_400),
            Part::Hour => seconds(3600),
            Part::Minute => seconds(60),
            Part::Second => seconds(1),
            Part::Millisecond => Step::Nanoseconds(1_000_000),
            Part::Microsecond => Step::Nanoseconds(1000),
            Part::Nanosecond => Step::Nanoseconds(1),
        }
    }

    /// What a clock or a calendar shows for this part.
    pub(super) fn of(self, moment: Moment) -> i64 {
        let shown = moment.shown();
        match self {
            Part::Year => shown.year,
            Part::Month => shown.month,
            Part::Day => shown.day,
            Part::Hour => shown.hour,
            Part::Minute => shown.minute,
            Part::Second => shown.second,
            Part::Millisecond => shown.fraction / 10_000,
            Part::Microsecond => shown.fraction / 10,
            Part::Nanosecond => shown.fraction * 100,
        }
    }

    /// The moment so many of this part later, or earlier if there are less than
    /// none. Nanoseconds that do not fill a tick are dropped.
    pub(super) fn add(self, count: i64, moment: Moment) -> Option<Moment> {
        match self.step() {
            Step::Months(months) => {
                let shown = moment.shown();
                shown.in_month(count.checked_mul(months)?.checked_add(shown.months())?)
            }
            Step::Nanoseconds(length) => {
                let ticks = i128::from(moment.ticks()) + i128::from(count) * length / TICK;
                Moment::of_ticks(i64::try_from(ticks).ok()?)
            }
        }
    }

    /// How many boundaries of this part are passed on the way from one moment to
    /// another.
    pub(super) fn boundaries(self, from: Moment, to: Moment) -> i128 {
        let number = |moment: Moment| match self.step() {
            Step::Months(months) => i128::from(moment.shown().months().div_euclid(months)),
            Step::Nanoseconds(length) => nanoseconds(moment).div_euclid(length),
        };
        number(to) - number(from)
    }

    /// The start of the bin that a moment lies in, if bins are so many of this
    /// part long, and one starts at `origin`.
    pub(super) fn bin(self, moment: Moment, size: i64, origin: Moment) -> Option<Moment> {
        match self.step() {
            Step::Months(months) => {
                let start = origin.shown();
                let length = size.checked_mul(months)?;
                let passed = moment.shown().months() - start.months();
                let last = start.months() + passed.div_euclid(length) * length;
                let found = start.in_month(last)?;
                if found <= moment { Some(found) } else { start.in_month(last - length) }
            }
            Step::Nanoseconds(length) => {
                let length = i128::from(size) * length;
                let passed = nanoseconds(moment) - nanoseconds(origin);
                let found = nanoseconds(origin) + passed.div_euclid(length) * length;
                Moment::of_ticks(i64::try_from(found.div_euclid(TICK)).ok()?)
            }
        }
    }
}

/// Nanoseconds since 1970.
fn nanoseconds(moment: Moment) -> i128 {
    i128::from(moment.ticks()) * TICK
}
