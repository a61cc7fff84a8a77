//! The parts of a date and time, and what can be done by them: adding,
//! counting the boundaries between two moments, rounding down.
//!
//! A part is a step of the calendar, which is so many months, or one of the
//! clock, which is so many nanoseconds.

use super::moment::Moment;

/// A part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DatePart {
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
enum Stride {
    Months(i64),
    Nanoseconds(i128),
}

/// Nanoseconds of a tick.
const TICK: i128 = 100;

impl DatePart {
    /// The part that a text names, in upper or lower case.
    pub(super) fn read(name: &str) -> Option<DatePart> {
        Some(match name.to_ascii_lowercase().as_str() {
            "year" | "yyyy" | "yy" => DatePart::Year,
            "month" | "mm" | "m" => DatePart::Month,
            "day" | "dd" | "d" => DatePart::Day,
            "hour" | "hh" => DatePart::Hour,
            "minute" | "mi" | "n" => DatePart::Minute,
            "second" | "ss" | "s" => DatePart::Second,
            "millisecond" | "ms" => DatePart::Millisecond,
            "microsecond" | "mcs" => DatePart::Microsecond,
            "nanosecond" | "ns" => DatePart::Nanosecond,
            _ => return None,
        })
    }

    fn step(self) -> Stride {
        let seconds = |count: i128| Stride::Nanoseconds(count * 1_000_000_000);
        match self {
            DatePart::Year => Stride::Months(12),
            DatePart::Month => Stride::Months(1),
            DatePart::Day => seconds(86_400),
            DatePart::Hour => seconds(3600),
            DatePart::Minute => seconds(60),
            DatePart::Second => seconds(1),
            DatePart::Millisecond => Stride::Nanoseconds(1_000_000),
            DatePart::Microsecond => Stride::Nanoseconds(1000),
            DatePart::Nanosecond => Stride::Nanoseconds(1),
        }
    }

    /// What a clock or a calendar shows for this part.
    pub(super) fn of(self, moment: Moment) -> i64 {
        let shown = moment.shown();
        match self {
            DatePart::Year => shown.year,
            DatePart::Month => shown.month,
            DatePart::Day => shown.day,
            DatePart::Hour => shown.hour,
            DatePart::Minute => shown.minute,
            DatePart::Second => shown.second,
            DatePart::Millisecond => shown.fraction / 10_000,
            DatePart::Microsecond => shown.fraction / 10,
            DatePart::Nanosecond => shown.fraction * 100,
        }
    }

    /// The moment so many of this part later, or earlier if there are less than
    /// none. Nanoseconds that do not fill a tick are dropped.
    pub(super) fn add(self, count: i64, moment: Moment) -> Option<Moment> {
        match self.step() {
            Stride::Months(months) => {
                let shown = moment.shown();
                shown.in_month(count.checked_mul(months)?.checked_add(shown.months())?)
            }
            Stride::Nanoseconds(length) => {
                let ticks = i128::from(moment.ticks()) + i128::from(count) * length / TICK;
                Moment::of_ticks(i64::try_from(ticks).ok()?)
            }
        }
    }

    /// How many boundaries of this part are passed on the way from one moment to
    /// another.
    pub(super) fn boundaries(self, from: Moment, to: Moment) -> i128 {
        let number = |moment: Moment| match self.step() {
            Stride::Months(months) => i128::from(moment.shown().months().div_euclid(months)),
            Stride::Nanoseconds(length) => nanoseconds(moment).div_euclid(length),
        };
        number(to) - number(from)
    }

    /// The start of the bin that a moment lies in, if bins are so many of this
    /// part long, and one starts at `origin`.
    pub(super) fn bin(self, moment: Moment, size: i64, origin: Moment) -> Option<Moment> {
        match self.step() {
            Stride::Months(months) => {
                let start = origin.shown();
                let length = size.checked_mul(months)?;
                let passed = moment.shown().months() - start.months();
                let last = start.months() + passed.div_euclid(length) * length;
                let found = start.in_month(last)?;
                if found <= moment { Some(found) } else { start.in_month(last - length) }
            }
            Stride::Nanoseconds(length) => {
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
