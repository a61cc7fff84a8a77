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
use dayfly_storage::{Bucket, Direction, KeyRange, Snapshot};
use sha2::{Digest, Sha256};

use crate::keys;
use crate::operation::Page;
use crate::reply::storage_failed;

/// A page without a wish of the client.
const PAGE_DEFAULT: usize = 100;
/// The longest page.
const PAGE_MAX: usize = 10_000;

/// How long the page is that a request asks for.
pub(crate) fn limit(page: &Page) -> usize {
    page.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX)
}

/// A position as text: what it belongs to, where, and a check.
pub(crate) fn write_token(bucket: Bucket, key: &[u8], scope: [u8; 4]) -> String {
    let mut bytes = Vec::with_capacity(key.len() + 16);
    bytes.put_slice(&scope);
    bytes.put_u64(bucket.0);
    bytes.put_slice(key);
    let check = Sha256::digest(&bytes);
    bytes.extend(check.iter().take(4));
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn read_token(token: &str, scope: [u8; 4]) -> Result<(Bucket, Vec<u8>)> {
    let read = || {
        let bytes = URL_SAFE_NO_PAD.decode(token.trim()).ok()?;
        let (bytes, check) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        let right = Sha256::digest(bytes).iter().take(4).eq(check);
        let rest = bytes.strip_prefix(&scope)?;
        let (bucket, key) = rest.split_first_chunk::<8>()?;
        right.then(|| (Bucket(u64::from_be_bytes(*bucket)), key.to_vec()))
    };
    read().ok_or_else(bad_token)
}

pub(crate) fn bad_token() -> Error {
    Error::bad_request("Invalid Continuation Token")
}

/// A page of catalog rows.
pub(crate) fn rows(
    snapshot: &dyn Snapshot,
    mut range: KeyRange,
    page: &Page,
) -> Result<(Vec<Bytes>, Option<String>)> {
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
    let next = more.map(|(key, _)| write_token(keys::CATALOG, &key, scope));
    Ok((pairs.into_iter().map(|(_, value)| value).collect(), next))
}

/// How many rows of the catalog a query goes through.
const ROWS_MAX: usize = 100_000;

/// All rows of a part of the catalog.
pub(crate) fn all_rows(snapshot: &dyn Snapshot, range: &KeyRange) -> Result<Vec<Bytes>> {
    let pairs = snapshot
        .scan(keys::CATALOG, range, Direction::Forward, ROWS_MAX + 1)
        .map_err(storage_failed)?;
    if pairs.len() > ROWS_MAX {
        return Err(Error::bad_request(format!(
            "There are more than {ROWS_MAX} of these, which is too many for a query. List them \
             page by page."
        )));
    }
    Ok(pairs.into_iter().map(|(_, value)| value).collect())
}
