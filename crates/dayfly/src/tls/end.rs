//! When a certificate ends, as its bytes say.
//!
//! ```text
//! Certificate { tbs { [0] version?, serial, algorithm, issuer,
//!                     validity { not before, not after }, … }, … }
//! ```

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The second after which nobody takes it, if it is a certificate.
pub(super) fn end_of(certificate: &[u8]) -> Option<u64> {
    let (_, certificate, _) = element(certificate).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (_, mut rest, _) = element(certificate).filter(|(tag, ..)| *tag == SEQUENCE)?;
    if let Some((VERSION, _, after)) = element(rest) {
        rest = after;
    }
    for _serial_algorithm_issuer in 0..3 {
        (_, _, rest) = element(rest)?;
    }
    let (_, validity, _) = element(rest).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (_, _, after_begin) = element(validity)?;
    let (tag, end, _) = element(after_begin)?;
    seconds(tag, std::str::from_utf8(end).ok()?)
}

/// The first element of `bytes`: its tag, what is in it, and what comes after.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (inside, after) = rest.split_at_checked(length)?;
    Some((*tag, inside, after))
}

/// `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`, as seconds since 1970.
fn seconds(tag: u8, text: &str) -> Option<u64> {
    let digits = text.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year: u64 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<u64>().ok();
    let (month, day) = (part(0)?, part(2)?);
    let (hour, minute, second) = (part(4)?, part(6)?, part(8)?);
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day) && year >= 1970;
    is_date.then(|| days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Days since 1970. Years are counted from March, so that a leap day is the last of its
/// year.
fn days(year: u64, month: u64, day: u64) -> u64 {
    const DAYS_BEFORE_1970: u64 = 719_468;
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let of_year = (153 * month + 2) / 5 + day - 1;
    let of_years = year * 365 + year / 4 - year / 100 + year / 400;
    of_years + of_year - DAYS_BEFORE_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_write_a_time_are_read() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "231114221320Z", Some(1_700_000_000)),
            (UTC_TIME, "000229120000Z", Some(951_825_600)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "231314221320Z", None),
            (UTC_TIME, "231114221320", None),
            (UTC_TIME, "2311142213Z", None),
            (0x16, "231114221320Z", None),
        ] {
            assert_eq!(seconds(tag, text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        for bytes in [&b""[..], b"\x30", b"\x30\x80", b"\x30\x85\0\0\0\0\0", b"\x30\x02\x30\x00"] {
            assert_eq!(end_of(bytes), None, "{bytes:?}");
        }
    }
}
