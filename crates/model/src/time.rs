//! A moment, in whole seconds.

use std::time::{Duration, SystemTime};

/// Seconds since 1970: the unit of `_ts` and of every time to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The moment `seconds` later.
    pub fn plus(self, seconds: u32) -> Timestamp {
        Timestamp(self.0.saturating_add(u64::from(seconds)))
    }

    /// The moment `seconds` earlier, or 1970.
    pub fn minus(self, seconds: u32) -> Timestamp {
        Timestamp(self.0.saturating_sub(u64::from(seconds)))
    }

    /// As HTTP writes it: `Tue, 14 Nov 2023 22:13:20 GMT`.
    pub fn to_http_date(self) -> String {
        // HTTP dates end with the year 9999.
        let seconds = self.0.min(253_402_300_799);
        httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    }

    /// As ISO 8601 writes it: `2023-11-14T22:13:20Z`.
    pub fn to_iso_date(self) -> String {
        // Days are counted from the first of March of the year 0, so that a leap
        // day is the last of its year, and in spans of 400 years, which are all
        // alike.
        let (days, second) = (self.0 / 86_400 + 719_468, self.0 % 86_400);
        let (span, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, late) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        let year = span * 400 + year + late;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// Reads a moment as RFC 3339 has them, from 1970 on; parts of a second are left out.
    pub fn parse_iso_date(text: &str) -> Option<Timestamp> {
        let (date, time) = text.split_once(['T', 't', ' '])?;
        let zone = time.find(['Z', 'z', '+', '-'])?;
        let (time, zone) = (time.get(..zone)?, time.get(zone..)?);
        let (time, part) = time.split_once('.').unwrap_or((time, "0"));
        let is_part = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let [hour, minute, second] = numbers(time, ':', [2, 2, 2]).filter(|_| is_part)?;
        if !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        // As above: days are counted from the first of March of the year 0.
        let (late, from_march) = if month > 2 { (0, month - 3) } else { (1, month + 9) };
        let years = year.checked_sub(late)?;
        let days = 365 * years + years / 4 - years / 100 + years / 400;
        let days = (days + (153 * from_march + 2) / 5 + day).checked_sub(719_469)?;
        let there = days * 86_400 + hour * 3600 + minute * 60 + second;
        // A day that its month does not have is one of the next month.
        let date = date.to_owned() + "T";
        Some(Timestamp(there)).filter(|moment| moment.to_iso_date().starts_with(&date))?;
        let offset = match zone.split_at(1) {
            ("Z" | "z", "") => return Some(Timestamp(there)),
            (_, offset) => numbers(offset, ':', [2, 2])?,
        };
        let [hours, minutes] = offset;
        let offset = (hours < 24 && minutes < 60).then_some(hours * 3600 + minutes * 60)?;
        if zone.starts_with('+') { there.checked_sub(offset) } else { Some(there + offset) }
            .map(Timestamp)
    }

    /// Reads what HTTP writes.
    pub fn parse_http_date(text: &str) -> Option<Timestamp> {
        let moment = httpdate::parse_http_date(text).ok()?;
        let since = moment.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(Timestamp(since.as_secs()))
    }

    /// The same as clients come to write it: with `UTC` for `GMT`, a day of one digit, or
    /// a year long before 1970, which is as good as 1970.
    pub fn parse_date_of_any_client(text: &str) -> Option<Timestamp> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [weekday, day, month, year, time, "GMT" | "UTC"] = words.as_slice() else {
            return Timestamp::parse_http_date(text);
        };
        let is_early = year.len() == 4 && year.parse().is_ok_and(|year: u32| year < 1970);
        if is_early {
            let text = format!("Thu, 01 Jan 1970 {time} GMT");
            return Timestamp::parse_http_date(&text).map(|_| Timestamp(0));
        }
        Timestamp::parse_http_date(&format!("{weekday} {day:0>2} {month} {year} {time} GMT"))
    }
}

/// Numbers with so many digits each.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[u64; N]> {
    let mut parts = text.split(between);
    let mut read = [0; N];
    for (number, digits) in read.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = part.parse().ok().filter(|_| is_number)?;
    }
    parts.next().is_none().then_some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iso_date_is_read_back() {
        for second in [0, 68_169_599, 68_169_600, 951_827_696, 1_700_000_000, 4_102_444_800] {
            let moment = Timestamp(second);
            assert_eq!(Timestamp::parse_iso_date(&moment.to_iso_date()), Some(moment));
        }
        for (text, second) in [
            ("2023-11-14T22:13:20.999Z", 1_700_000_000),
            ("2023-11-14t23:43:20+01:30", 1_700_000_000),
            ("2023-11-14 20:13:20-02:00", 1_700_000_000),
        ] {
            assert_eq!(Timestamp::parse_iso_date(text), Some(Timestamp(second)), "{text}");
        }
        for wrong in [
            "",
            "2023-11-14",
            "2023-11-14T22:13:20",
            "2023-11-14T22:13Z",
            "2023-02-29T00:00:00Z",
            "2023-13-01T00:00:00Z",
            "2023-00-01T00:00:00Z",
            "2023-01-00T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+00:01",
            "2023-11-14T24:00:00Z",
            "2023-11-14T22:13:20.Z",
            "2023-11-14T22:13:20Zx",
            "2023-11-14T22:13:20+1:00",
            "+023-11-14T22:13:20Z",
            "2023-11-14T22:13:20é",
            "0000-01-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse_iso_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_http_date_is_read_back() {
        let moment = Timestamp(1_700_000_000);
        assert_eq!(moment.to_http_date(), "Tue, 14 Nov 2023 22:13:20 GMT");
        assert_eq!(Timestamp::parse_http_date("Tue, 14 Nov 2023 22:13:20 GMT"), Some(moment));
        assert_eq!(Timestamp::parse_http_date("tomorrow"), None);
    }

    #[test]
    fn dates_are_read_as_clients_write_them() {
        for (text, second) in [
            ("Tue, 14 Nov 2023 22:13:20 GMT", Some(1_700_000_000)),
            ("Tue, 14 Nov 2023 22:13:20 UTC", Some(1_700_000_000)),
            ("Tue, 7 Nov 2023 22:13:20 GMT", Some(1_699_395_200)),
            ("Mon, 01 Jan 0001 00:00:00 GMT", Some(0)),
            ("Thu, 01 Jan 1970 00:00:09 GMT", Some(9)),
            ("Mon, 01 Jan 0001 00:00:61 GMT", None),
            ("tomorrow", None),
            ("", None),
        ] {
            assert_eq!(Timestamp::parse_date_of_any_client(text), second.map(Timestamp), "{text}");
        }
    }

    #[test]
    fn iso_dates() {
        for (second, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(Timestamp(second).to_iso_date(), expected);
        }
    }

    #[test]
    fn the_ends_of_time_do_not_wrap() {
        assert_eq!(Timestamp(u64::MAX).plus(1), Timestamp(u64::MAX));
        assert_eq!(Timestamp(3).minus(5), Timestamp(0));
        assert_eq!(Timestamp(u64::MAX).to_http_date(), "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
