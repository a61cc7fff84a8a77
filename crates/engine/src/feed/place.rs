//! How far somebody has read a feed, as a token.
//!
//! | scope                     | token           |
//! |---------------------------|-----------------|
//! | one bucket                | `"42"`          |
//! | several, in their turns   | `"1:17,0:42"`   |
//!
//! What is in one bucket is nearly always what is asked for: a range, a key. Clients cut
//! and move such tokens with their ranges, and never look into them.

use dayfly_model::{Error, Result};
use dayfly_storage::Bucket;

use crate::keys;
use crate::settings::SLICES_MAX;

/// The last commit that was looked at, in each bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Places {
    /// In the one bucket that is meant.
    One(u64),
    /// In each of these slices of a container, in the order in which they are read next.
    Several(Vec<(u8, u64)>),
}

impl Places {
    pub(super) fn of_courses(courses: impl ExactSizeIterator<Item = (Bucket, u64)>) -> Places {
        let places: Vec<_> =
            courses.map(|(bucket, after)| (keys::slice_of(bucket), after)).collect();
        match places.as_slice() {
            [(_, after)] => Places::One(*after),
            _ => Places::Several(places),
        }
    }

    /// Reads a token, in quotes or without.
    pub(super) fn read(token: &str) -> Result<Places> {
        let text = token.trim();
        let text = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
        let several = || {
            let places = text.split(',').map(|place| {
                let (slice, after) = place.split_once(':')?;
                Some((slice.parse().ok()?, number(after)?))
            });
            places.take(SLICES_MAX + 1).collect::<Option<Vec<_>>>()
        };
        let places = number(text).map(Places::One);
        let places =
            places.or_else(|| several().map(Places::Several)).filter(|places| match places {
                Places::One(_) => true,
                Places::Several(places) => places.len() <= SLICES_MAX,
            });
        places.ok_or_else(|| invalid(token))
    }

    /// The last commit in a bucket. A token that does not speak of it is for another scope.
    pub(super) fn of(&self, bucket: Bucket, is_only: bool) -> Result<u64> {
        match self {
            Places::One(after) if is_only => Ok(*after),
            Places::One(after) => Err(invalid(&after.to_string())),
            Places::Several(places) => {
                let slice = keys::slice_of(bucket);
                let found = places.iter().find(|(other, _)| *other == slice);
                found.map(|(_, after)| *after).ok_or_else(|| invalid(&self.to_etag()))
            }
        }
    }

    /// When a bucket's turn comes.
    pub(super) fn turn(&self, bucket: Bucket) -> usize {
        let Places::Several(places) = self else { return 0 };
        let slice = keys::slice_of(bucket);
        places.iter().position(|(other, _)| *other == slice).unwrap_or(places.len())
    }

    /// As clients get it, and send it back.
    pub(super) fn to_etag(&self) -> String {
        match self {
            Places::One(after) => format!("\"{after}\""),
            Places::Several(places) => {
                let places: Vec<String> =
                    places.iter().map(|(slice, after)| format!("{slice}:{after}")).collect();
                format!("\"{}\"", places.join(","))
            }
        }
    }
}

/// A number in digits alone.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn invalid(token: &str) -> Error {
    Error::bad_request(format!(
        "The change feed token {token} is invalid: it is none, or one for another part of the \
         container."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back() {
        let one = Places::One(42);
        assert_eq!(one.to_etag(), "\"42\"");
        let several = Places::of_courses([(Bucket(0x101), 17), (Bucket(0x100), 42)].into_iter());
        assert_eq!(several.to_etag(), "\"1:17,0:42\"");
        for places in [&one, &several] {
            assert_eq!(Places::read(&places.to_etag()).unwrap(), *places);
            assert_eq!(Places::read(places.to_etag().trim_matches('"')).unwrap(), *places);
        }
        assert_eq!(several.of(Bucket(0x101), false).unwrap(), 17);
        assert_eq!(several.of(Bucket(0x100), true).unwrap(), 42);
        assert!(several.of(Bucket(0x102), true).is_err());
        assert!(one.of(Bucket(0x100), false).is_err());
        assert_eq!(several.turn(Bucket(0x100)), 1);
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for token in ["", "\"\"", "x", "-1", "+1", "1.5", "1:2,", "300:1", "18446744073709551616"] {
            assert!(Places::read(token).is_err(), "{token}");
        }
    }
}
