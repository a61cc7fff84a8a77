//! Session tokens: what a client has seen.
//!
//! ```text
//! {range}:{version}#{lsn}[#{region}={lsn}...]     one range
//! 0:5#42,1:5#7                                    several
//! ```
//!
//! The version we write is the number of the container, and there are no
//! regions: the same version has to come with the same regions, or clients
//! fail. Some clients keep the tokens of a container by its name, also when it
//! was deleted and made anew; by the version such a token is known, and asks
//! for nothing. A version of -1 fits every container. Old tokens are
//! `{range}:{lsn}`.

use crate::error::{Error, Result};

/// How many ranges a token may name.
pub const RANGES_MAX: usize = 10_000;

/// What a client has seen of one range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPart {
    /// The range.
    pub range: String,
    /// Which container; -1 for any.
    pub version: i64,
    /// The last commit.
    pub lsn: u64,
}

/// The token of one range at `lsn`.
pub fn format(range: &str, version: u32, lsn: u64) -> String {
    let mut token = String::with_capacity(range.len() + 32);
    token.push_str(range);
    token.push(':');
    token.push_str(&version.to_string());
    token.push('#');
    token.push_str(&lsn.to_string());
    token
}

/// The ranges of a token.
pub fn parse(token: &str) -> Result<Vec<TokenPart>> {
    let invalid =
        || Error::bad_request(format!("The session token provided '{token}' is invalid."));
    let ranges: Option<Vec<_>> = token.split(',').take(RANGES_MAX + 1).map(parse_range).collect();
    ranges.filter(|ranges| ranges.len() <= RANGES_MAX).ok_or_else(invalid)
}

fn parse_range(part: &str) -> Option<TokenPart> {
    let (range, vector) = part.trim().split_once(':')?;
    if range.is_empty() {
        return None;
    }
    let range = range.to_owned();
    let mut parts = vector.split('#');
    let first = parts.next()?;
    let Some(global) = parts.next() else {
        return Some(TokenPart { range, version: -1, lsn: number(first)? });
    };
    let version = number::<i64>(first)?;
    for region in parts {
        let (id, lsn) = region.split_once('=')?;
        number::<u64>(id)?;
        number::<i64>(lsn)?;
    }
    Some(TokenPart { range, version, lsn: number(global)? })
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
            ("0:-1#42", vec![("0", -1, 42)]),
            ("0:1#42#1=-1", vec![("0", 1, 42)]),
            ("0:1#42#1=7#2=8", vec![("0", 1, 42)]),
            ("0:-1#42,1:-1#7", vec![("0", -1, 42), ("1", -1, 7)]),
            ("0:-1#42, 12:3#7#4=5", vec![("0", -1, 42), ("12", 3, 7)]),
            ("0:42", vec![("0", -1, 42)]),
            ("M_0:-1#0", vec![("M_0", -1, 0)]),
        ] {
            let read = parse(token).unwrap();
            let read: Vec<_> =
                read.iter().map(|part| (part.range.as_str(), part.version, part.lsn)).collect();
            assert_eq!(read, expected, "{token}");
        }
        let written = TokenPart { range: "3".to_owned(), version: 9, lsn: u64::MAX };
        assert_eq!(parse(&format("3", 9, u64::MAX)).unwrap(), [written]);
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
