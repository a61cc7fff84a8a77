//! Where a page of a query ended, as text for the client.
//!
//! ```text
//! <seal:12> <skip:8> <take:8> <rows done:8> <where> <check:4>
//!
//! where  0                                         at the start
//!        1 <numbered:4> <range:4> <mark:4> <number:8> <tried:6>  before an item
//!        2 <bytes:2> <sort values> <tie:16> <row:8>  after a sorted row
//!        3 <bytes:2> <sort values> <rows:1> <hash:8>*  after rows that start so
//!        4 <numbered:4> <tie:16> <row:8> <ranges:2> (<range:4> <lsn:8>)*  after a distinct row
//! ```
//!
//! The seal is made from the container and the query, so that a token is of use
//! for the query only that it came from. The place of a sorted row is the same
//! whatever the filter is, and clients that ask ranges by themselves do go on with
//! another filter: there the filter is not part of the seal. It is a place, not a row: rows may be
//! written, expire or be purged between two pages, and the server may restart.

use bytes::{Buf, BufMut};
use dayfly_model::Result;
use dayfly_sql::run::{After, Resume};
use dayfly_sql::tree::Query;
use sha2::{Digest, Sha256};

use crate::pages::{bad_token, read_checked, write_checked};
use crate::short::{put_short, take_short};

/// What a token belongs to.
pub(super) type TokenSeal = [u8; 12];

/// No limit.
const ALL: u64 = u64::MAX;

/// Where a page goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// From the start.
    Start,
    /// With the item of this number, or the next one.
    Item {
        /// The number of its range.
        range: u32,
        /// The mark of the segment.
        mark: u32,
        /// Its own.
        docno: u64,
        /// What the page before found out.
        tried: Tried,
    },
    /// With the first item once more. How far the ranges were when the first page was
    /// asked for.
    Again(Vec<(u32, u64)>),
}

/// Of how many ranges a token tells how far they were.
const RANGES_MAX: usize = 256;

/// What a page found out of how many items its filter names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tried {
    /// Nothing.
    #[default]
    Nothing,
    /// They can be listed, this many times four as many as are at first.
    Listed(u8),
    /// There are more than are listed before this level. So many items were gone through
    /// since that was known.
    Many(u8, u32),
}

impl Tried {
    fn write(self, bytes: &mut Vec<u8>) {
        let (kind, level, met) = match self {
            Tried::Nothing => (0, 0, 0),
            Tried::Listed(level) => (1, level, 0),
            Tried::Many(level, met) => (2, level, met),
        };
        bytes.put_slice(&[kind, level]);
        bytes.put_u32(met);
    }

    fn read(rest: &mut &[u8]) -> Option<Tried> {
        let (kind, level) = (rest.try_get_u8().ok()?, rest.try_get_u8().ok()?);
        match (kind, level, rest.try_get_u32().ok()?) {
            (0, 0, 0) => Some(Tried::Nothing),
            (1, level, 0) => Some(Tried::Listed(level)),
            (2, level, met) => Some(Tried::Many(level, met)),
            _ => None,
        }
    }
}

/// Where a page ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) resume: Resume,
    pub(super) at: Position,
    /// How many ranges had been numbered when the first page was asked for: the place is one
    /// in their order. The most there can be, where it is none in any.
    pub(super) numbered: u32,
}

/// The seals of a query of a container.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seals {
    /// Of the whole query.
    whole: TokenSeal,
    /// Of the query without its filter.
    unfiltered: TokenSeal,
}

impl Seals {
    /// The seals of the query in the body of a request.
    pub(super) fn new(container: u32, body: &[u8], query: &Query) -> Seals {
        let unfiltered = Query { filter: None, ..query.clone() };
        Seals {
            whole: seal(container, body),
            unfiltered: seal(container, unfiltered.to_string().as_bytes()),
        }
    }

    fn of(self, token: &Token) -> TokenSeal {
        match &token.resume.after {
            Some(After::Row((sorted, ..))) if token.resume.skip == 0 && !sorted.is_empty() => {
                self.unfiltered
            }
            _ => self.whole,
        }
    }
}

fn seal(container: u32, query: &[u8]) -> TokenSeal {
    let mut seal = [0; 12];
    let hash = Sha256::digest(query);
    let bytes = container.to_be_bytes().into_iter().chain(hash);
    seal.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    seal
}

impl Token {
    pub(super) fn write(&self, seals: Seals) -> String {
        let mut bytes = Vec::new();
        bytes.put_slice(&seals.of(self));
        bytes.put_u64(self.resume.skip);
        bytes.put_u64(self.resume.take.unwrap_or(ALL));
        bytes.put_u64(self.resume.rows_done);
        match (&self.resume.after, &self.at) {
            (Some(After::Row((_, tie, row))), Position::Again(ranges)) => {
                bytes.put_u8(4);
                bytes.put_u32(self.numbered);
                bytes.put_u64(tie.0);
                bytes.put_u64(tie.1);
                bytes.put_u64(*row);
                let told = ranges.len().min(RANGES_MAX);
                bytes.put_u16(u16::try_from(told).unwrap_or(u16::MAX));
                for (range, lsn) in ranges.iter().take(told) {
                    bytes.put_u32(*range);
                    bytes.put_u64(*lsn);
                }
            }
            (Some(After::Row((key, tie, row))), _) => {
                bytes.put_u8(2);
                put_short(&mut bytes, key);
                bytes.put_u64(tie.0);
                bytes.put_u64(tie.1);
                bytes.put_u64(*row);
            }
            (Some(After::Start(start, rows)), _) => {
                bytes.put_u8(3);
                put_short(&mut bytes, start);
                bytes.put_u8(u8::try_from(rows.len()).unwrap_or(u8::MAX));
                for row in rows {
                    bytes.put_u64(*row);
                }
            }
            (None, Position::Item { range, mark, docno, tried }) => {
                bytes.put_u8(1);
                bytes.put_u32(self.numbered);
                bytes.put_u32(*range);
                bytes.put_u32(*mark);
                bytes.put_u64(*docno);
                tried.write(&mut bytes);
            }
            (None, Position::Start | Position::Again(_)) => bytes.put_u8(0),
        }
        write_checked(bytes)
    }

    pub(super) fn read(text: &str, seals: Seals) -> Result<Token> {
        let found = read(text).filter(|(seal, token)| *seal == seals.of(token));
        found.map(|(_, token)| token).ok_or_else(bad_token)
    }
}

fn read(text: &str) -> Option<(TokenSeal, Token)> {
    let bytes = read_checked(text)?;
    let (seal, mut rest) = bytes.split_first_chunk::<12>()?;
    let skip = rest.try_get_u64().ok()?;
    let take = Some(rest.try_get_u64().ok()?).filter(|take| *take != ALL);
    let rows_done = rest.try_get_u64().ok()?;
    let (mut at, mut numbered) = (Position::Start, u32::MAX);
    let after = match rest.try_get_u8().ok()? {
        0 => None,
        1 => {
            numbered = rest.try_get_u32().ok()?;
            let (range, mark) = (rest.try_get_u32().ok()?, rest.try_get_u32().ok()?);
            let docno = rest.try_get_u64().ok()?;
            let tried = Tried::read(&mut rest)?;
            at = Position::Item { range, mark, docno, tried };
            None
        }
        2 => {
            let key = take_short(&mut rest)?.to_vec();
            let tie = (rest.try_get_u64().ok()?, rest.try_get_u64().ok()?);
            Some(After::Row((key, tie, rest.try_get_u64().ok()?)))
        }
        3 => {
            let start = take_short(&mut rest)?.to_vec();
            let mut rows = Vec::new();
            for _ in 0..rest.try_get_u8().ok()? {
                rows.push(rest.try_get_u64().ok()?);
            }
            Some(After::Start(start, rows))
        }
        4 => {
            numbered = rest.try_get_u32().ok()?;
            let tie = (rest.try_get_u64().ok()?, rest.try_get_u64().ok()?);
            let row = rest.try_get_u64().ok()?;
            let mut ranges = Vec::new();
            for _ in 0..rest.try_get_u16().ok()? {
                ranges.push((rest.try_get_u32().ok()?, rest.try_get_u64().ok()?));
            }
            at = Position::Again(ranges);
            Some(After::Row((Vec::new(), tie, row)))
        }
        _ => return None,
    };
    let token = Token { resume: Resume { skip, take, rows_done, after }, at, numbered };
    rest.is_empty().then_some((*seal, token))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seals(container: u32, query: &str) -> Seals {
        Seals::new(container, query.as_bytes(), &dayfly_sql::parse(query).unwrap())
    }

    const QUERY: &str = "SELECT * FROM c WHERE c.a = 1 ORDER BY c.b";
    const OTHER_FILTER: &str = "SELECT * FROM c WHERE c.a = 2 ORDER BY c.b";
    const OTHER_ORDER: &str = "SELECT * FROM c WHERE c.a = 1 ORDER BY c.a";

    /// Bytes behind the seal of a token, with a check that fits.
    fn sealed(seal: TokenSeal, rest: &[u8]) -> String {
        write_checked([&seal, rest].concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            prop_assert!(Token::read(&text, seals(7, QUERY)).is_err());
        }

        #[test]
        fn any_bytes_are_read_as_they_would_be_written_or_refused(
            start in prop::collection::vec(any::<u8>(), 24),
            rest in prop::collection::vec(0..9u8, 0..60),
        ) {
            let seals = seals(7, QUERY);
            for seal in [seals.whole, seals.unfiltered] {
                let text = sealed(seal, &[&*start, &*rest].concat());
                if let Ok(token) = Token::read(&text, seals) {
                    prop_assert_eq!(token.write(seals), text);
                }
            }
        }

        #[test]
        fn a_token_that_was_bent_is_refused(at in any::<prop::sample::Index>(), bit in 0..6u32) {
            let seals = seals(7, QUERY);
            let entry = Position::Item { range: 9, mark: 5, docno: 8, tried: Tried::Many(1, 9) };
            let text = Token { resume: Resume::default(), at: entry, numbered: 10 }.write(seals);
            let mut bent = text.clone().into_bytes();
            let at = at.index(bent.len());
            bent[at] ^= 1 << bit;
            let read = std::str::from_utf8(&bent).map(|bent| Token::read(bent, seals));
            prop_assert!(!matches!(read, Ok(Ok(_))));
        }
    }

    #[test]
    fn tokens_are_read_as_they_were_written() {
        let seals = seals(7, QUERY);
        let resume = Resume { skip: 1, take: Some(2), rows_done: 3, after: None };
        let row = After::Row((vec![1, 2], (3, 4), 5));
        let distinct = After::Row((Vec::new(), (3, 4), 5));
        for (after, at) in [
            (None, Position::Start),
            (None, Position::Item { range: 9, mark: 5, docno: 8, tried: Tried::Nothing }),
            (None, Position::Item { range: 9, mark: 5, docno: 8, tried: Tried::Listed(2) }),
            (
                None,
                Position::Item {
                    range: 9,
                    mark: 5,
                    docno: 8,
                    tried: Tried::Many(3, 4_000_000_000),
                },
            ),
            (Some(row), Position::Start),
            (Some(distinct), Position::Again(vec![(6, 7), (8, 9)])),
            (Some(After::Start(vec![6; 512], vec![7; 8])), Position::Start),
        ] {
            let is_in_ranges = matches!(at, Position::Item { .. } | Position::Again(_));
            let numbered = if is_in_ranges { 10 } else { u32::MAX };
            let token = Token { resume: Resume { after, ..resume.clone() }, at, numbered };
            let text = token.write(seals);
            assert!(text.len() <= 1024, "{}", text.len());
            assert_eq!(Token::read(&text, seals).unwrap(), token);
        }
    }

    #[test]
    fn tokens_of_others_are_refused() {
        let at = Position::Item { range: 1, mark: 0, docno: 1, tried: Tried::Nothing };
        let token = Token { resume: Resume::default(), at, numbered: 2 };
        let text = token.write(seals(7, QUERY));
        assert!(Token::read(&text, seals(7, OTHER_FILTER)).is_err());
        assert!(Token::read(&text, seals(8, QUERY)).is_err());
        let mut bent = text.clone().into_bytes();
        bent[20] ^= 1;
        assert!(Token::read(str::from_utf8(&bent).unwrap(), seals(7, QUERY)).is_err());
        assert!(Token::read(&text[..text.len() - 4], seals(7, QUERY)).is_err());
        assert!(Token::read("", seals(7, QUERY)).is_err());
    }

    #[test]
    fn the_place_of_a_sorted_row_is_good_for_another_filter() {
        let row = After::Row((vec![1, 2], (3, 4), 5));
        for (skip, after, fits) in [
            (0, row.clone(), true),
            (1, row, false),
            (0, After::Row((Vec::new(), (3, 4), 5)), false),
            (0, After::Start(vec![6; 512], vec![7; 8]), false),
        ] {
            let resume = Resume { skip, after: Some(after), ..Resume::default() };
            let text =
                Token { resume, at: Position::Start, numbered: u32::MAX }.write(seals(7, QUERY));
            assert!(Token::read(&text, seals(7, QUERY)).is_ok());
            assert_eq!(Token::read(&text, seals(7, OTHER_FILTER)).is_ok(), fits);
            assert!(Token::read(&text, seals(7, OTHER_ORDER)).is_err());
            assert!(Token::read(&text, seals(8, QUERY)).is_err());
        }
    }
}
