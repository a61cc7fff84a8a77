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

    /// Reads what HTTP writes.
    pub fn parse_http_date(text: &str) -> Option<Timestamp> {
        let moment = httpdate::parse_http_date(text).ok()?;
        let since = moment.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(Timestamp(since.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_http_date_is_read_back() {
        let moment = Timestamp(1_700_000_000);
        assert_eq!(moment.to_http_date(), "Tue, 14 Nov 2023 22:13:20 GMT");
        assert_eq!(Timestamp::parse_http_date("Tue, 14 Nov 2023 22:13:20 GMT"), Some(moment));
        assert_eq!(Timestamp::parse_http_date("tomorrow"), None);
    }

    #[test]
    fn the_ends_of_time_do_not_wrap() {
        assert_eq!(Timestamp(u64::MAX).plus(1), Timestamp(u64::MAX));
        assert_eq!(Timestamp(3).minus(5), Timestamp(0));
        assert_eq!(Timestamp(u64::MAX).to_http_date(), "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
