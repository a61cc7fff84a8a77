//! Which version of what: the numbers that are never given out twice.
//!
//! A commit has a number in its bucket, and each thing that it writes has a place in
//! the commit: the ordinal. Together they are a version. The first version of an item
//! is also what its RID is made of.

use dayfly_storage::Stamp;

/// How many versions one commit can make, as bits.
const ORDINAL_BITS: u32 = 12;

/// The slice of a container, as bits.
const SLICE_BITS: u32 = 8;

/// A version: the commit, and the place in it.
pub(crate) fn version(stamp: Stamp, ordinal: u64) -> u64 {
    debug_assert!(ordinal < 1 << ORDINAL_BITS);
    stamp.lsn << ORDINAL_BITS | ordinal
}

/// The number in an item's RID: its first version, and the slice it is in, since
/// each slice counts its own commits. At most 60 bits.
pub(crate) fn docno(stamp: Stamp, ordinal: u64, slice: u8) -> u64 {
    debug_assert!(stamp.lsn < 1 << (60 - ORDINAL_BITS - SLICE_BITS));
    (stamp.lsn << SLICE_BITS | u64::from(slice)) << ORDINAL_BITS | ordinal
}

/// The slice of the item with this number.
pub(crate) fn slice_of(docno: u64) -> u8 {
    u8::try_from(docno >> ORDINAL_BITS & 0xFF).unwrap_or_default()
}

/// The first version that a commit makes.
pub(crate) fn first_version(lsn: u64) -> u64 {
    lsn << ORDINAL_BITS
}

/// The last version that a commit can make.
pub(crate) fn last_version(lsn: u64) -> u64 {
    first_version(lsn.saturating_add(1)).saturating_sub(1)
}

/// The commit a version was made by.
pub(crate) fn lsn_of(version: u64) -> u64 {
    version >> ORDINAL_BITS
}

/// The place in its commit of what made a version.
pub(crate) fn ordinal_of(version: u64) -> u64 {
    version & ((1 << ORDINAL_BITS) - 1)
}

/// A version that is never given out twice: the container, how often the store
/// was opened, and the commit. Quoted, as HTTP wants it.
pub(crate) fn etag(container: u32, opened: u32, version: u64) -> String {
    let number = u128::from(container) << 96 | u128::from(opened) << 64 | u128::from(version);
    let mut text = String::with_capacity(38);
    text.push('"');
    for place in 0..32u32 {
        if matches!(place, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        let digit = (number >> (124 - 4 * place)) & 0xF;
        text.push(char::from_digit(digit as u32, 16).unwrap_or('0'));
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_names_container_opening_and_commit() {
        assert_eq!(
            etag(0x1A2B, 0x0003_0004, 0x0005_0000_0000_0006),
            "\"00001a2b-0003-0004-0005-000000000006\""
        );
    }
}
