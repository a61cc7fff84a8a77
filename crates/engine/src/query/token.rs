//! Where a page of a query ended, as text for the client.
//!
//! ```text
//! <seal:12> <skip:8> <take:8> <rows done:8> <where> <check:4>
//!
//! where  0                                         at the start
//!        1 <bucket:8> <key>                        before an item
//!        4 <bucket:8> <docno:8> <value>            before an entry of the index
//!        5 <bucket:8> <docno:8>                    before an item's number
//!        2 <bytes:2> <sort values> <tie:16> <row:8>  after a sorted row
//!        3 <bytes:2> <sort values> <rows:1> <hash:8>*  after rows that start so
//! ```
//!
//! The seal is made from the container and the query, so that a token is of use
//! for the query only that it came from. The place of a sorted row is the same
//! whatever the filter is, and clients that ask ranges by themselves do go on with
//! another filter: there the filter is not part of the seal. It is a place, not a row: rows may be
//! written, expire or be purged between two pages, and the server may restart.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{Buf, BufMut};
use dayfly_model::{Error, Result};
use dayfly_sql::run::{After, Resume};
use dayfly_sql::tree::Query;
use dayfly_storage::Bucket;
use sha2::{Digest, Sha256};

/// What a token belongs to.
pub(super) type TokenSeal = [u8; 12];

/// No limit.
const ALL: u64 = u64::MAX;

/// Where a page goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// From the start.
    Start,
    /// With this item, or the next one after where it was.
    Item(Bucket, Vec<u8>),
    /// With this entry of an index.
    Entry {
        /// Where it is.
        bucket: Bucket,
        /// The number of its path.
        path: u64,
        /// Its value.
        value: Vec<u8>,
        /// The item's number.
        docno: u64,
    },
    /// With the item of this number, or the next one.
    Number(Bucket, u64),
}

impl Position {
    /// The bucket that it is in.
    pub(super) fn bucket(&self) -> Option<Bucket> {
        match self {
            Position::Start => None,
            Position::Item(bucket, _)
            | Position::Entry { bucket, .. }
            | Position::Number(bucket, _) => Some(*bucket),
        }
    }
}

/// Where a page ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) resume: Resume,
    pub(super) at: Position,
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
            Some(After::Row(_)) if token.resume.skip == 0 => self.unfiltered,
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
            (None, Position::Item(bucket, key)) => {
                bytes.put_u8(1);
                bytes.put_u64(bucket.0);
                bytes.put_slice(key);
            }
            (None, Position::Entry { bucket, path, value, docno }) => {
                bytes.put_u8(4);
                bytes.put_u64(bucket.0);
                bytes.put_u64(*path);
                bytes.put_u64(*docno);
                bytes.put_slice(value);
            }
            (None, Position::Number(bucket, docno)) => {
                bytes.put_u8(5);
                bytes.put_u64(bucket.0);
                bytes.put_u64(*docno);
            }
            (None, Position::Start) => bytes.put_u8(0),
        }
        let check = Sha256::digest(&bytes);
        bytes.extend(check.iter().take(4));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(super) fn read(text: &str, seals: Seals) -> Result<Token> {
        let found = read(text).filter(|(seal, token)| *seal == seals.of(token));
        found.map(|(_, token)| token).ok_or_else(bad_token)
    }
}

pub(super) fn bad_token() -> Error {
    Error::bad_request("Invalid Continuation Token")
}

/// The place is on a way that is no longer there.
pub(super) fn index_gone() -> Error {
    Error::bad_request(
        "The query cannot go on where its last page ended, because the indexing policy has \
         changed meanwhile, or too many items were written that it names. Start it again without \
         a continuation token.",
    )
}

fn put_short(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.put_u16(u16::try_from(part.len()).unwrap_or(u16::MAX));
    bytes.put_slice(part);
}

fn take_short(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::from(rest.try_get_u16().ok()?);
    let (part, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(part.to_vec())
}

fn read(text: &str) -> Option<(TokenSeal, Token)> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim()).ok()?;
    let (bytes, check) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
    if !Sha256::digest(bytes).iter().take(4).eq(check) {
        return None;
    }
    let (seal, mut rest) = bytes.split_first_chunk::<12>()?;
    let skip = rest.try_get_u64().ok()?;
    let take = Some(rest.try_get_u64().ok()?).filter(|take| *take != ALL);
    let rows_done = rest.try_get_u64().ok()?;
    let mut at = Position::Start;
    let after = match rest.try_get_u8().ok()? {
        0 => None,
        1 => {
            at = Position::Item(Bucket(rest.try_get_u64().ok()?), rest.to_vec());
            rest = &[];
            None
        }
        4 => {
            let (bucket, path) = (Bucket(rest.try_get_u64().ok()?), rest.try_get_u64().ok()?);
            let docno = rest.try_get_u64().ok()?;
            at = Position::Entry { bucket, path, value: rest.to_vec(), docno };
            rest = &[];
            None
        }
        5 => {
            let bucket = Bucket(rest.try_get_u64().ok()?);
            at = Position::Number(bucket, rest.try_get_u64().ok()?);
            None
        }
        2 => {
            let key = take_short(&mut rest)?;
            let tie = (rest.try_get_u64().ok()?, rest.try_get_u64().ok()?);
            Some(After::Row((key, tie, rest.try_get_u64().ok()?)))
        }
        3 => {
            let start = take_short(&mut rest)?;
            let mut rows = Vec::new();
            for _ in 0..rest.try_get_u8().ok()? {
                rows.push(rest.try_get_u64().ok()?);
            }
            Some(After::Start(start, rows))
        }
        _ => return None,
    };
    let token = Token { resume: Resume { skip, take, rows_done, after }, at };
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
        let mut bytes = [&seal, rest].concat();
        let check = Sha256::digest(&bytes);
        bytes.extend(check.iter().take(4));
        URL_SAFE_NO_PAD.encode(bytes)
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
            let entry = Position::Entry { bucket: Bucket(9), path: 7, value: vec![5; 40], docno: 8 };
            let text = Token { resume: Resume::default(), at: entry }.write(seals);
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
        for (after, at) in [
            (None, Position::Start),
            (None, Position::Item(Bucket(9), b"key".to_vec())),
            (None, Position::Entry { bucket: Bucket(9), path: 7, value: vec![5; 512], docno: 8 }),
            (None, Position::Number(Bucket(9), 8)),
            (Some(row), Position::Start),
            (Some(After::Start(vec![6; 512], vec![7; 8])), Position::Start),
        ] {
            let token = Token { resume: Resume { after, ..resume.clone() }, at };
            let text = token.write(seals);
            assert!(text.len() <= 1024, "{}", text.len());
            assert_eq!(Token::read(&text, seals).unwrap(), token);
        }
    }

    #[test]
    fn tokens_of_others_are_refused() {
        let token = Token { resume: Resume::default(), at: Position::Item(Bucket(1), vec![1]) };
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
            (0, After::Start(vec![6; 512], vec![7; 8]), false),
        ] {
            let resume = Resume { skip, after: Some(after), ..Resume::default() };
            let text = Token { resume, at: Position::Start }.write(seals(7, QUERY));
            assert!(Token::read(&text, seals(7, QUERY)).is_ok());
            assert_eq!(Token::read(&text, seals(7, OTHER_FILTER)).is_ok(), fits);
            assert!(Token::read(&text, seals(7, OTHER_ORDER)).is_err());
            assert!(Token::read(&text, seals(8, QUERY)).is_err());
        }
    }
}
