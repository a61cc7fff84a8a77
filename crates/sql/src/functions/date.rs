//! Dates and times: texts such as `2024-12-12T20:21:25.0000000Z`, ticks of 100
//! nanoseconds and milliseconds since 1970.
//!
//! All times are UTC, and those with another offset are converted. What is not a
//! date and time, a part that is not known and a result outside of the years 1 to
//! 9999 make the result undefined; so do years before 1601 where a part or a
//! number is wanted. The current time is the one of the request, in whole seconds, and the same for
//! all items of a page; the functions with `STATIC` in their names are then
//! the same as those without.

mod format;
mod moment;
mod part;

use dayfly_model::value::{Number, Value};

use self::moment::{MILLISECOND, Moment, Shown};
use self::part::DatePart;
use super::{Arguments, Body, Family, Setting};

/// The functions of this family.
pub(super) const FUNCTIONS: &Family = &[
    ("AGO", Body::Set(|setting, given| ago(setting, given).into())),
    ("DATETIMEADD", Body::Strict(|given| add(given).into())),
    ("DATETIMEBIN", Body::Strict(|given| bin(given).into())),
    ("DATETIMEDIFF", Body::Strict(|given| difference(given).into())),
    ("DATETIMEFORMAT", Body::Strict(|given| format(given).into())),
    ("DATETIMEFROMPARTS", Body::Strict(|given| from_parts(given).into())),
    ("DATETIMEPART", Body::Strict(|given| part_of(given).into())),
    ("DATETIMETOTICKS", Body::Strict(|given| to_ticks(given).into())),
    ("DATETIMETOTIMESTAMP", Body::Strict(|given| to_timestamp(given).into())),
    ("DAY", Body::Strict(|given| shorthand(DatePart::Day, given).into())),
    ("GETCURRENTDATETIME", Body::Set(|setting, _| current_text(setting).into())),
    ("GETCURRENTDATETIMESTATIC", Body::Set(|setting, _| current_text(setting).into())),
    ("GETCURRENTTICKS", Body::Set(|setting, _| current_ticks(setting).into())),
    ("GETCURRENTTICKSSTATIC", Body::Set(|setting, _| current_ticks(setting).into())),
    ("GETCURRENTTIMESTAMP", Body::Set(|setting, _| current_timestamp(setting).into())),
    ("GETCURRENTTIMESTAMPSTATIC", Body::Set(|setting, _| current_timestamp(setting).into())),
    ("IS_DATETIME", Body::Seeing(|given| moment(given, 0).is_some().into())),
    ("MONTH", Body::Strict(|given| shorthand(DatePart::Month, given).into())),
    ("NOW", Body::Set(|setting, given| now(setting, given).into())),
    ("TICKSTODATETIME", Body::Strict(|given| of_ticks(given).into())),
    ("TIMESTAMPTODATETIME", Body::Strict(|given| of_timestamp(given).into())),
    ("YEAR", Body::Strict(|given| shorthand(DatePart::Year, given).into())),
];

/// The first moment that is counted with or from: Windows counts from here.
const FIRST_COUNTED: Shown =
    Shown { year: 1601, month: 1, day: 1, hour: 0, minute: 0, second: 0, fraction: 0 };

fn add(given: &Arguments<'_>) -> Option<String> {
    let moment = part(given, 0)?.add(integer(given, 1)?, moment(given, 2)?)?;
    Some(moment.text())
}

fn bin(given: &Arguments<'_>) -> Option<String> {
    let size = if given.len() > 2 { integer(given, 2)? } else { 1 };
    let origin = if given.len() > 3 { moment(given, 3)? } else { Moment::EPOCH };
    if size <= 0 || origin < FIRST_COUNTED.moment()? {
        return None;
    }
    Some(part(given, 1)?.bin(moment(given, 0)?, size, origin)?.text())
}

/// Boundaries passed; a count that 64 bits do not hold is the nearest double.
#[expect(clippy::cast_precision_loss, reason = "the nearest is what is meant")]
fn difference(given: &Arguments<'_>) -> Option<Value> {
    let count = part(given, 0)?.boundaries(counted(given, 1)?, counted(given, 2)?);
    let exact = i64::try_from(count).map(Number::Integer);
    Some(Value::Number(exact.unwrap_or(Number::Double(count as f64))))
}

fn format(given: &Arguments<'_>) -> Option<String> {
    format::write(moment(given, 0)?, given.get(1)?.as_str()?)
}

fn from_parts(given: &Arguments<'_>) -> Option<String> {
    let or_zero = |place| if given.len() > place { integer(given, place) } else { Some(0) };
    let shown = Shown {
        year: integer(given, 0)?,
        month: integer(given, 1)?,
        day: integer(given, 2)?,
        hour: or_zero(3)?,
        minute: or_zero(4)?,
        second: or_zero(5)?,
        fraction: or_zero(6)?,
    };
    Some(shown.moment()?.text())
}

fn part_of(given: &Arguments<'_>) -> Option<i64> {
    Some(part(given, 0)?.of(counted(given, 1)?))
}

fn shorthand(part: DatePart, given: &Arguments<'_>) -> Option<i64> {
    Some(part.of(counted(given, 0)?))
}

fn to_ticks(given: &Arguments<'_>) -> Option<i64> {
    Some(counted(given, 0)?.ticks())
}

fn to_timestamp(given: &Arguments<'_>) -> Option<i64> {
    Some(counted(given, 0)?.ticks().div_euclid(MILLISECOND))
}

fn of_ticks(given: &Arguments<'_>) -> Option<String> {
    Some(Moment::of_ticks(integer(given, 0)?)?.text())
}

fn of_timestamp(given: &Arguments<'_>) -> Option<String> {
    Some(Moment::of_ticks(integer(given, 0)?.checked_mul(MILLISECOND)?)?.text())
}

fn current_text(setting: &Setting) -> Option<String> {
    Some(Moment::of_second(setting.now)?.text())
}

fn current_ticks(setting: &Setting) -> Option<i64> {
    Some(Moment::of_second(setting.now)?.ticks())
}

fn current_timestamp(setting: &Setting) -> Option<i64> {
    Some(Moment::of_second(setting.now)?.ticks() / MILLISECOND)
}

fn now(setting: &Setting, given: &Arguments<'_>) -> Option<String> {
    let now = Moment::of_second(setting.now)?;
    let moment =
        if given.is_empty() { now } else { part(given, 0)?.add(integer(given, 1)?, now)? };
    Some(moment.text())
}

fn ago(setting: &Setting, given: &Arguments<'_>) -> Option<String> {
    let count = integer(given, 1)?.checked_neg()?;
    Some(part(given, 0)?.add(count, Moment::of_second(setting.now)?)?.text())
}

fn moment(given: &Arguments<'_>, place: usize) -> Option<Moment> {
    Moment::read(given.get(place)?.as_str()?)
}

/// A moment that parts are taken of, or that is counted.
fn counted(given: &Arguments<'_>, place: usize) -> Option<Moment> {
    let first = FIRST_COUNTED.moment()?;
    moment(given, place).filter(|moment| *moment >= first)
}

fn part(given: &Arguments<'_>, place: usize) -> Option<DatePart> {
    DatePart::read(given.get(place)?.as_str()?)
}

fn integer(given: &Arguments<'_>, place: usize) -> Option<i64> {
    given.get(place)?.as_integer()
}

#[cfg(test)]
mod tests;
