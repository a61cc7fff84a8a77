//! A moment, to 100 nanoseconds, between the years 1 and 9999, and how it is
//! read from a text and written as one.
//!
//! A moment is a count of ticks since 1970; a tick is 100 nanoseconds. Its
//! calendar is the Gregorian one, also for the time before there was one.
//! Days are counted from the first of March, so that the leap day is the last
//! of its year, and in spans of 400 years, which are all alike.

use dayfly_model::Timestamp;

/// Ticks of a second.
pub(super) const SECOND: i64 = 10_000_000;
/// Ticks of a millisecond.
pub(super) const MILLISECOND: i64 = SECOND / 1000;
/// Ticks of a day.
const DAY: i64 = 86_400 * SECOND;

/// Days of 400 years.
const SPAN: i64 = 146_097;
/// Days from the first of March of the year 0 to 1970.
const BEFORE_1970: i64 = 719_468;

/// No clock is further from UTC than this.
const OFFSET_MAX_MINUTES: i64 = 14 * 60;

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    ticks: i64,
}

/// A moment as a calendar and a clock show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    /// Ticks of the second.
    pub(super) fraction: i64,
}

impl Moment {
    /// The first moment of 1970.
    pub(super) const EPOCH: Moment = Moment { ticks: 0 };

    /// The moment so many ticks after 1970, if it is in the years 1 to 9999.
    pub(super) fn of_ticks(ticks: i64) -> Option<Moment> {
        (-719_162 * DAY..2_932_897 * DAY).contains(&ticks).then_some(Moment { ticks })
    }

    /// The moment of a second.
    pub(super) fn of_second(second: Timestamp) -> Option<Moment> {
        Moment::of_ticks(i64::try_from(second.0).ok()?.checked_mul(SECOND)?)
    }

    /// Ticks since 1970.
    pub(super) fn ticks(self) -> i64 {
        self.ticks
    }

    /// As a calendar and a clock show it.
    pub(super) fn shown(self) -> Shown {
        let (year, month, day) = date_of(self.ticks.div_euclid(DAY));
        let tick = self.ticks.rem_euclid(DAY);
        let second = tick / SECOND;
        Shown {
            year,
            month,
            day,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            fraction: tick % SECOND,
        }
    }

    /// Reads `2024-12-12`, or `2024-12-12T20:21:25` with `T` or a space and up
    /// to seven digits after a point; with or without `Z` at the end. After a time
    /// it may be `+02:00` instead: how far its clock is ahead of UTC.
    pub(super) fn read(text: &str) -> Option<Moment> {
        let (text, ahead) = match text.strip_suffix('Z') {
            Some(text) => (text, 0),
            None => split_offset(text)?,
        };
        let (date, time) = match text.as_bytes().get(10) {
            None => (text, None),
            Some(b'T' | b' ') => (text.get(..10)?, Some(text.get(11..)?)),
            Some(_) => return None,
        };
        let mut fields = date.splitn(3, '-');
        let year = digits(fields.next()?, 4)?;
        let month = digits(fields.next()?, 2)?;
        let day = digits(fields.next()?, 2)?;
        let (hour, minute, second, fraction) = time.map_or(Some((0, 0, 0, 0)), read_time)?;
        let shown = Shown { year, month, day, hour, minute, second, fraction }.moment()?;
        Moment::of_ticks(shown.ticks - ahead)
    }

    /// Writes it with all seven digits: `2024-12-12T20:21:25.0000000Z`.
    pub(super) fn text(self) -> String {
        let Shown { year, month, day, hour, minute, second, fraction } = self.shown();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z")
    }
}

impl Shown {
    /// The moment that is shown so; none if no calendar or clock shows this.
    pub(super) fn moment(self) -> Option<Moment> {
        let exists = (1..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_of_month(self.year, self.month)).contains(&self.day)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second)
            && (0..SECOND).contains(&self.fraction);
        if !exists {
            return None;
        }
        let second = self.hour * 3600 + self.minute * 60 + self.second;
        let days = day_number(self.year, self.month, self.day);
        Moment::of_ticks(days * DAY + second * SECOND + self.fraction)
    }

    /// Months since the first of the year 0.
    pub(super) fn months(self) -> i64 {
        self.year * 12 + self.month - 1
    }

    /// The same day and time in another month, counted from the year 0; the last
    /// day of a month that is too short.
    pub(super) fn in_month(self, months: i64) -> Option<Moment> {
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        let day = self.day.min(days_of_month(year, month));
        Shown { year, month, day, ..self }.moment()
    }
}

/// A text without the offset at its end, and how many ticks that is.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    // A date has signs of its own.
    let sign = text.rfind(['+', '-']).filter(|at| *at > 10);
    let Some((text, offset)) = sign.and_then(|at| text.split_at_checked(at)) else {
        return Some((text, 0));
    };
    let (sign, offset) = offset.split_at_checked(1)?;
    let (hours, minutes) = offset.split_once(':')?;
    let ahead = digits(hours, 2)? * 60 + digits(minutes, 2).filter(|minutes| *minutes < 60)?;
    let ahead = (ahead <= OFFSET_MAX_MINUTES).then_some(ahead * 60 * SECOND)?;
    Some((text, if sign == "-" { -ahead } else { ahead }))
}

/// Hour, minute, second and ticks of `20:21:25.1234567`.
fn read_time(text: &str) -> Option<(i64, i64, i64, i64)> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, read_fraction(fraction)?),
        None => (text, 0),
    };
    let mut fields = clock.splitn(3, ':');
    let hour = digits(fields.next()?, 2)?;
    let minute = digits(fields.next()?, 2)?;
    Some((hour, minute, digits(fields.next()?, 2)?, fraction))
}

/// The ticks that one to seven digits after the point are.
fn read_fraction(text: &str) -> Option<i64> {
    let missing = (1..=7).contains(&text.len()).then(|| 7 - text.len())?;
    Some(digits(text, text.len())? * 10_i64.pow(u32::try_from(missing).ok()?))
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let fits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.parse().ok())?
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to a date.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (span, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    span * SPAN + year * 365 + year / 4 - year / 100 + day_of_year - BEFORE_1970
}

/// Year, month and day of a number of days since 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + BEFORE_1970;
    let (span, day) = (days.div_euclid(SPAN), days.rem_euclid(SPAN));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (span * 400 + year + late, month, day)
}

#[cfg(test)]
mod tests;
