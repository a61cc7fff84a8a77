//! What a store writes about itself, as rows in a bucket of their own:
//!
//! ```text
//! head   <bucket:8>   lsn:8 ts:8 state
//! clock  lease        the floor of the clock at the next opening:8
//! clock  anchor       boot id:16, looks, doubts: what measures the clock then
//! clock  test         offset:8 frozen:1 at:8, once the clock was moved
//! opened              how often the store was opened:4
//! \xFF                kept for the backend: see `embedded/journal.rs`
//! ```
//!
//! This is for backends that keep nothing but rows.
//! Numbers are big-endian, so byte order is number order.

use std::hash::{BuildHasherDefault, Hasher};
use std::ops::ControlFlow;

use bytes::Bytes;

use super::backend::{Changes, Lease, Loaded, Rows, Writes};
use crate::clock::{Anchor, Doubt, Look, TestClock};
use crate::{Bucket, Direction, Error, Head, Result, Second, after};

/// The bucket that holds these rows; nobody else may write there.
pub(super) const SYSTEM: Bucket = Bucket(u64::MAX);

const HEAD: &[u8] = b"head";
const LEASE: &[u8] = b"clock lease";
const ANCHOR: &[u8] = b"clock anchor";
const TEST_CLOCK: &[u8] = b"clock test";
const OPENED: &[u8] = b"opened";

/// The heads of all buckets, in a map whose copies are cheap.
pub(super) type Heads = rpds::HashTrieMapSync<Bucket, Head, BuildHasherDefault<Mixed>>;

/// A hash of the numbers of buckets, which nobody chooses.
#[derive(Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// Bytes of a key that name its bucket.
pub(super) const BUCKET_BYTES: usize = 8;

/// The key as the backend knows it.
pub(super) fn physical(bucket: Bucket, key: &[u8]) -> Vec<u8> {
    let mut physical = Vec::with_capacity(BUCKET_BYTES + key.len());
    physical.extend_from_slice(&bucket.0.to_be_bytes());
    physical.extend_from_slice(key);
    physical
}

/// The bucket and the key within it.
pub(super) fn split(physical: &[u8]) -> Option<(Bucket, &[u8])> {
    let (bucket, key) = physical.split_first_chunk::<BUCKET_BYTES>()?;
    Some((Bucket(u64::from_be_bytes(*bucket)), key))
}

impl Changes {
    /// All of it as rows.
    pub fn into_rows(self) -> Writes {
        let Changes { writes: mut rows, heads, lease, test_clock, opened } = self;
        for (bucket, head) in heads {
            rows.insert(head_key(bucket), head.as_ref().map(head_row));
        }
        let mut put = |key: &[u8], row: Bytes| rows.insert(physical(SYSTEM, key), Some(row));
        if let Some(Lease { until, anchor }) = lease {
            put(LEASE, Bytes::copy_from_slice(&until.to_be_bytes()));
            put(ANCHOR, anchor_row(&anchor));
        }
        if let Some(test) = test_clock {
            put(TEST_CLOCK, test_clock_row(test));
        }
        if let Some(opened) = opened {
            put(OPENED, Bytes::copy_from_slice(&opened.to_be_bytes()));
        }
        rows
    }
}

impl Loaded {
    /// What [`Changes::into_rows`] has left among `rows`.
    pub fn from_rows(rows: &impl Rows) -> Result<Loaded> {
        let get = |key: &[u8]| rows.get(&physical(SYSTEM, key));
        let mut loaded = Loaded { heads: heads(rows)?, ..Loaded::default() };
        if let Some(row) = get(LEASE)? {
            loaded.lease.until = Second::from_be_bytes(fixed(&row, "lease")?);
        }
        if let Some(row) = get(ANCHOR)? {
            loaded.lease.anchor = read_anchor(&row)?;
        }
        if let Some(row) = get(TEST_CLOCK)? {
            loaded.test_clock = Some(read_test_clock(&row)?);
        }
        if let Some(row) = get(OPENED)? {
            loaded.opened = u32::from_be_bytes(fixed(&row, "open counter")?);
        }
        Ok(loaded)
    }
}

fn head_row(head: &Head) -> Bytes {
    let mut row = Vec::with_capacity(16 + head.state.len());
    row.extend_from_slice(&head.lsn.to_be_bytes());
    row.extend_from_slice(&head.ts.to_be_bytes());
    row.extend_from_slice(&head.state);
    row.into()
}

/// `flags:1 boot id:16 good wall:8 boot:8 last wall:8 boot:8 accepted:8`; what is
/// absent is 0, and its flag is not set.
fn anchor_row(anchor: &Anchor) -> Bytes {
    let Anchor { boot_id, good, last, doubt, accepted } = *anchor;
    let flags = [boot_id.is_some(), good.is_some(), last.is_some(), doubt.jump, doubt.purge];
    let flags = flags.iter().rev().fold(0_u8, |flags, flag| flags << 1 | u8::from(*flag));
    let mut row = vec![flags];
    row.extend_from_slice(&boot_id.unwrap_or(0).to_be_bytes());
    for look in [good, last] {
        let Look { wall, boot } = look.unwrap_or_default();
        row.extend_from_slice(&wall.to_be_bytes());
        row.extend_from_slice(&boot.to_be_bytes());
    }
    row.extend_from_slice(&accepted.to_be_bytes());
    row.into()
}

fn read_anchor(row: &[u8]) -> Result<Anchor> {
    let damaged = || Error::Corrupt("the row of the clock's anchor".to_owned());
    let ([flags], rest) = row.split_first_chunk::<1>().ok_or_else(damaged)?;
    let (boot_id, rest) = rest.split_first_chunk::<16>().ok_or_else(damaged)?;
    let (numbers, []) = rest.as_chunks::<8>() else { return Err(damaged()) };
    let &[good_wall, good_boot, last_wall, last_boot, accepted] = numbers else {
        return Err(damaged());
    };
    let is_set = |bit: u8| flags & (1 << bit) != 0;
    let number = u64::from_be_bytes;
    let look = |wall, boot| Look { wall: number(wall), boot: number(boot) };
    Ok(Anchor {
        boot_id: is_set(0).then(|| u128::from_be_bytes(*boot_id)),
        good: is_set(1).then(|| look(good_wall, good_boot)),
        last: is_set(2).then(|| look(last_wall, last_boot)),
        doubt: Doubt { jump: is_set(3), purge: is_set(4) },
        accepted: number(accepted),
    })
}

fn test_clock_row(test: TestClock) -> Bytes {
    let mut row = test.offset.to_be_bytes().to_vec();
    row.push(u8::from(test.frozen.is_some()));
    row.extend_from_slice(&test.frozen.unwrap_or(0).to_be_bytes());
    row.into()
}

fn read_test_clock(row: &[u8]) -> Result<TestClock> {
    let damaged = || Error::Corrupt("the row of the test clock".to_owned());
    let (offset, rest) = row.split_first_chunk::<8>().ok_or_else(damaged)?;
    let ([frozen], rest) = rest.split_first_chunk::<1>().ok_or_else(damaged)?;
    let at = Second::from_be_bytes(fixed(rest, "test clock")?);
    Ok(TestClock { offset: i64::from_be_bytes(*offset), frozen: (*frozen == 1).then_some(at) })
}

fn head_key(bucket: Bucket) -> Vec<u8> {
    let mut key = physical(SYSTEM, HEAD);
    key.extend_from_slice(&bucket.0.to_be_bytes());
    key
}

fn heads(rows: &impl Rows) -> Result<Vec<(Bucket, Head)>> {
    let (start, end) = (head_key(Bucket(0)), after(&head_key(Bucket(u64::MAX))));
    let mut heads = Vec::new();
    let mut outcome = Ok(());
    rows.scan(&start, &end, Direction::Forward, &mut |key, row| match read_head(&key, &row) {
        Ok(head) => {
            heads.push(head);
            ControlFlow::Continue(())
        }
        Err(error) => {
            outcome = Err(error);
            ControlFlow::Break(())
        }
    })?;
    outcome.map(|()| heads)
}

fn read_head(key: &Bytes, row: &Bytes) -> Result<(Bucket, Head)> {
    let damaged = || Error::Corrupt("the head of a bucket".to_owned());
    let bucket = key.last_chunk::<8>().ok_or_else(damaged)?;
    let (lsn, rest) = row.split_first_chunk::<8>().ok_or_else(damaged)?;
    let (ts, state) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
    let head = Head {
        lsn: u64::from_be_bytes(*lsn),
        ts: Second::from_be_bytes(*ts),
        state: Bytes::copy_from_slice(state),
    };
    Ok((Bucket(u64::from_be_bytes(*bucket)), head))
}

fn fixed<const N: usize>(row: &[u8], what: &str) -> Result<[u8; N]> {
    row.try_into().map_err(|_| Error::Corrupt(format!("the row of the {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backend, Durability, Memory};

    /// The rows are on disks; who changes one changes the format.
    #[test]
    fn the_rows_are_as_they_always_were() {
        let head = Head { lsn: 2, ts: 3, state: Bytes::from_static(b"s") };
        let look = |wall, boot| Some(Look { wall, boot });
        let doubt = Doubt { jump: false, purge: true };
        let anchor =
            Anchor { boot_id: Some(4), good: look(5, 6), last: look(7, 8), doubt, accepted: 9 };
        let changes = Changes {
            writes: [(b"row".to_vec(), None)].into(),
            heads: [(Bucket(1), Some(head.clone())), (Bucket(2), None)].into(),
            lease: Some(Lease { until: 10, anchor }),
            test_clock: Some(TestClock { offset: -1, frozen: Some(11) }),
            opened: Some(12),
        };
        let shown = |bytes: &[u8]| bytes.escape_ascii().to_string().replace("\\x00", ".");
        let system = |key: &str| format!("{}{key}", "\\xff".repeat(8));
        let rows: Vec<_> = changes.clone().into_rows().into_iter().collect();
        let rows = rows.iter().map(|(key, row)| (shown(key), row.as_deref().map(shown)));
        let expected = [
            ("row".to_owned(), None),
            (
                system("clock anchor"),
                Some(
                    [
                        r"\x17",
                        &".".repeat(15),
                        r"\x04.......\x05.......\x06.......\x07",
                        ".......\\x08.......\\t",
                    ]
                    .concat(),
                ),
            ),
            (system("clock lease"), Some(r".......\n".to_owned())),
            (system("clock test"), Some([&r"\xff".repeat(8), r"\x01.......\x0b"].concat())),
            (system(r"head.......\x01"), Some(r".......\x02.......\x03s".to_owned())),
            (system(r"head.......\x02"), None),
            (system("opened"), Some(r"...\x0c".to_owned())),
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);

        let memory = Memory::default();
        memory.apply(changes, Durability::Sync).unwrap();
        let loaded = memory.load().unwrap();
        assert_eq!(loaded.heads, [(Bucket(1), head)]);
        assert_eq!(loaded.lease, Lease { until: 10, anchor });
        assert_eq!(loaded.test_clock, Some(TestClock { offset: -1, frozen: Some(11) }));
        assert_eq!(loaded.opened, 12);
    }
}
