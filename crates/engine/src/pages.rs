//! Pages of what is listed: how long they are, how one says where the next begins, and
//! those of the catalog.
//!
//! A continuation token is a position in key order, not a row: it stays good
//! when rows are written, expire or are purged between two pages, and over a
//! restart.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{BufMut, Bytes};
use dayfly_model::{Error, Result};
use dayfly_storage::{Direction, KeyRange, Pair, Snapshot};
use sha2::{Digest, Sha256};

use crate::keys;
use crate::operation::Page;
use crate::reply::storage_failed;

/// A page without a wish of the client.
const PAGE_DEFAULT: usize = 100;
/// The longest page.
const PAGE_MAX: usize = 10_000;

/// How many bytes of a token are its check.
const CHECK_BYTES: usize = 4;

/// How long the page is that a request asks for.
pub(crate) fn limit(page: &Page) -> usize {
    page.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX)
}

/// A position as text: what it belongs to, where, and a check.
pub(crate) fn write_token(part: u64, place: &[u8], scope: [u8; 4]) -> String {
    let mut bytes = Vec::with_capacity(place.len() + 16);
    bytes.put_slice(&scope);
    bytes.put_u64(part);
    bytes.put_slice(place);
    write_checked(bytes)
}

pub(crate) fn read_token(token: &str, scope: [u8; 4]) -> Result<(u64, Vec<u8>)> {
    let read = || {
        let bytes = read_checked(token)?;
        let (part, place) = bytes.strip_prefix(&scope)?.split_first_chunk::<8>()?;
        Some((u64::from_be_bytes(*part), place.to_vec()))
    };
    read().ok_or_else(bad_token)
}

/// The text of a token: its bytes, and a check.
pub(crate) fn write_checked(mut bytes: Vec<u8>) -> String {
    let check = Sha256::digest(&bytes);
    bytes.extend(check.iter().take(CHECK_BYTES));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes of a token, if its text is whole.
pub(crate) fn read_checked(text: &str) -> Option<Vec<u8>> {
    let mut bytes = URL_SAFE_NO_PAD.decode(text.trim()).ok()?;
    let check = bytes.split_off(bytes.len().checked_sub(CHECK_BYTES)?);
    Sha256::digest(&bytes).iter().take(CHECK_BYTES).eq(&check).then_some(bytes)
}

pub(crate) fn bad_token() -> Error {
    Error::bad_request("Invalid Continuation Token")
}

/// A page of catalog rows.
pub(crate) fn rows(
    snapshot: &dyn Snapshot,
    mut range: KeyRange,
    page: &Page,
) -> Result<(Vec<Pair>, Option<String>)> {
    let scope = *b"list";
    if let Some(token) = &page.continuation {
        let (_, key) = read_token(token, scope)?;
        if !range.contains(&key) {
            return Err(bad_token());
        }
        range.start = key;
    }
    let limit = limit(page);
    let mut pairs = snapshot
        .scan(keys::CATALOG, &range, Direction::Forward, limit + 1)
        .map_err(storage_failed)?;
    let more = if pairs.len() > limit { pairs.pop() } else { None };
    let next = more.map(|(key, _)| write_token(0, &key, scope));
    Ok((pairs, next))
}

/// How many rows of the catalog a query goes through.
const ROWS_MAX: usize = 100_000;

/// All rows of a part of the catalog.
pub(crate) fn all_rows(snapshot: &dyn Snapshot, range: &KeyRange) -> Result<Vec<Pair>> {
    let pairs = snapshot
        .scan(keys::CATALOG, range, Direction::Forward, ROWS_MAX + 1)
        .map_err(storage_failed)?;
    if pairs.len() > ROWS_MAX {
        return Err(Error::bad_request(format!(
            "There are more than {ROWS_MAX} of these, which is too many for a query. List them \
             page by page."
        )));
    }
    Ok(pairs)
}

/// What is stored under the names that rows of the catalog lead to: databases and
/// containers are listed in the order of their numbers, as they were made.
pub(crate) fn by_name(
    snapshot: &dyn Snapshot,
    rows: &[Pair],
    key: impl Fn(&str) -> Vec<u8>,
) -> Result<Vec<Bytes>> {
    let broken = || storage_failed(dayfly_storage::Error::Corrupt("a name".to_owned()));
    let keys = rows.iter().map(|(_, name)| str::from_utf8(name).map(&key).map_err(|_| broken()));
    let keys: Vec<Vec<u8>> = keys.collect::<Result<_>>()?;
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let found = snapshot.get_many(keys::CATALOG, &keys).map_err(storage_failed)?;
    found.into_iter().map(|row| row.ok_or_else(broken)).collect()
}
