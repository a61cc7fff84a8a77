//! Session tokens: what a client has seen.
//!
//! ```text
//! {range}:{version}#{lsn}[#{region}={lsn}...]     one range
//! 0:-1#42,1:-1#7                                  several
//! ```
//!
//! We write version -1 and no regions, always: the same version has to come
//! with the same regions, or clients fail. What others write is read, and only
//! range and lsn count. Old tokens are `{range}:{lsn}`.

use crate::error::{Error, Result};

/// How many ranges a token may name.
pub const RANGES_MAX: usize = 10_000;

/// The token of one range at `lsn`.
pub fn format(range_id: &str, lsn: u64) -> String {
    format!("{range_id}:-1#{lsn}")
}

/// The ranges of a token, each with its lsn.
pub fn parse(token: &str) -> Result<Vec<(String, u64)>> {
    let invalid =
        || Error::bad_request(format!("The session token provided '{token}' is invalid."));
    let ranges: Option<Vec<_>> = token.split(',').take(RANGES_MAX + 1).map(parse_range).collect();
    ranges.filter(|ranges| ranges.len() <= RANGES_MAX).ok_or_else(invalid)
}

fn parse_range(part: &str) -> Option<(String, u64)> {
    let (range_id, vector) = part.trim().split_once(':')?;
    if range_id.is_empty() {
        return None;
    }
    let mut parts = vector.split('#');
    let first = parts.next()?;
    let Some(global) = parts.next() else {
        return Some((range_id.to_owned(), number(first)?));
    };
    number::<i64>(first)?;
    for region in parts {
        let (id, lsn) = region.split_once('=')?;
        number::<u64>(id)?;
        number::<i64>(lsn)?;
    }
    Some((range_id.to_owned(), number(global)?))
}

/// Digits, with a minus where the type has one; `+1` is none.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read() {
        for (token, expected) in [
            ("0:-1#42", vec![("0", 42)]),
            ("0:1#42#1=-1", vec![("0", 42)]),
            ("0:1#42#1=7#2=8", vec![("0", 42)]),
            ("0:-1#42,1:-1#7", vec![("0", 42), ("1", 7)]),
            ("0:-1#42, 12:3#7#4=5", vec![("0", 42), ("12", 7)]),
            ("0:42", vec![("0", 42)]),
            ("M_0:-1#0", vec![("M_0", 0)]),
        ] {
            let read = parse(token).unwrap();
            let read: Vec<_> = read.iter().map(|(range, lsn)| (range.as_str(), *lsn)).collect();
            assert_eq!(read, expected, "{token}");
        }
        assert_eq!(parse(&format("3", u64::MAX)).unwrap(), [("3".to_owned(), u64::MAX)]);
    }

    #[test]
    fn tokens_that_are_refused() {
        let many = "0:1,".repeat(RANGES_MAX) + "0:1";
        for token in [
            "",
            "0",
            ":1",
            "0:",
            "0:-1",
            "0:-1#",
            "0:a#1",
            "0:-1#a",
            "0:-1#-1",
            "0:-1#+1",
            "0:-1#1#",
            "0:-1#1#1",
            "0:-1#1#a=1",
            "0:-1#1#1=a",
            "0:-1#1,",
            ",",
            "0:-1#1;1:-1#2",
            &many,
        ] {
            let error = parse(token).unwrap_err();
            assert_eq!(error.message, format!("The session token provided '{token}' is invalid."));
        }
    }
}
