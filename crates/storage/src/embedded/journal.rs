//! What a journal of the engine says, batch by batch.
//!
//! Each batch of ours has a row of its own, the **link**: whose folder it is, and
//! the number of the batch before. So a reader of journals sees that one is
//! missing, has lost its end, or is of another folder. The layout is fjall's:
//!
//! ```text
//! start  1  rows:4 number:8
//! row    2  kind:1 packed:1 keyspace:8 key:2 value:4 stored:4, then both
//! end    3  checksum:8 "FJL" 3
//! clear  4  keyspace:8
//! ```
//!
//! A journal ends where this stops, as for fjall itself: it is made full of zeros,
//! and what a crash cut short is the end.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use uuid::Uuid;

/// The key of the link: in the bucket that belongs to the store itself, after
/// everything that it keeps there.
pub(super) const LINK: [u8; 9] = [0xFF; 9];

const LINK_BYTES: usize = 24;
const END: [u8; 4] = *b"FJL\x03";
const BUFFER_BYTES: usize = 256 * 1024;

/// What a batch follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) identity: Uuid,
    /// The number of the last batch before this one.
    pub(super) before: u64,
}

impl Link {
    pub(super) fn encode(self) -> Vec<u8> {
        [&self.identity.as_bytes()[..], &self.before.to_be_bytes()].concat()
    }

    pub(super) fn decode(row: &[u8]) -> Option<Link> {
        let row: &[u8; LINK_BYTES] = row.try_into().ok()?;
        let (identity, before) = row.split_first_chunk::<16>()?;
        let identity = Uuid::from_bytes(*identity);
        Some(Link { identity, before: u64::from_be_bytes(before.try_into().ok()?) })
    }
}

/// One batch: its number, and its link if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JournalBatch {
    pub(super) number: u64,
    pub(super) link: Option<Link>,
}

/// Shows the whole batches of the journal `path` to `visit`, in their order.
pub(super) fn walk<E: From<io::Error>>(
    path: &Path,
    mut visit: impl FnMut(JournalBatch) -> Result<(), E>,
) -> Result<(), E> {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
    loop {
        match batch(&mut reader) {
            Ok(Some(batch)) => visit(batch)?,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The next batch; `None` where no whole one begins.
fn batch(reader: &mut BufReader<File>) -> io::Result<Option<JournalBatch>> {
    if byte(reader)? != 1 {
        return Ok(None);
    }
    let mut rows = u32::from_le_bytes(bytes(reader)?);
    let mut batch = JournalBatch { number: u64::from_le_bytes(bytes(reader)?), link: None };
    loop {
        match (byte(reader)?, rows) {
            (2, 1..) => {
                batch.link = row(reader)?.or(batch.link);
                rows -= 1;
            }
            (4, 1..) => {
                let _keyspace: [u8; 8] = bytes(reader)?;
                rows -= 1;
            }
            (3, 0) => {
                let _checksum: [u8; 8] = bytes(reader)?;
                return Ok((bytes(reader)? == END).then_some(batch));
            }
            _ => return Ok(None),
        }
    }
}

/// Steps over a row. If it is the link, it is returned.
fn row(reader: &mut BufReader<File>) -> io::Result<Option<Link>> {
    let _kind_packed_keyspace: [u8; 10] = bytes(reader)?;
    let key_bytes = u16::from_le_bytes(bytes(reader)?);
    let _value_bytes: [u8; 4] = bytes(reader)?;
    let stored_bytes = u32::from_le_bytes(bytes(reader)?);
    if usize::from(key_bytes) != LINK.len() || stored_bytes as usize != LINK_BYTES {
        // What is not there is missed at the next read.
        reader.seek_relative(i64::from(key_bytes) + i64::from(stored_bytes))?;
        return Ok(None);
    }
    let key: [u8; LINK.len()] = bytes(reader)?;
    let value: [u8; LINK_BYTES] = bytes(reader)?;
    Ok(Link::decode(&value).filter(|_| key == LINK))
}

fn byte(reader: &mut impl Read) -> io::Result<u8> {
    bytes::<1>(reader).map(|[byte]| byte)
}

fn bytes<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}
