//! What an entry of the index says.
//!
//! ```text
//! k <path:8> <value> <docno:8>         -> <life:8> <cut:1> <partition>
//! K <composite:8> <value>* <docno:8>   -> the same
//! o <partition> <docno:8>              -> <life:8> <ts:8> <bytes:8>
//! ```

use bytes::{Buf, BufMut, Bytes};
use dayfly_model::ttl::Life;
use dayfly_storage::{Error, Result};

use super::outlives;
use crate::deleted::DeletedPartition;
use crate::keys::{self, EntryKind, Partition};
use crate::liveness::Mortal;
use crate::record::Record;

/// The item that entries are about.
pub(crate) struct Owner<'a> {
    pub(crate) docno: u64,
    life: Life,
    partition: &'a Partition,
}

impl<'a> Owner<'a> {
    /// The item `record`, which is in `partition`.
    pub(crate) fn of(record: &Record, partition: &'a Partition) -> Owner<'a> {
        Owner { docno: record.docno, life: record.life, partition }
    }

    pub(super) fn values(&self) -> EntryValues {
        EntryValues { whole: self.value(false), cut: self.value(true) }
    }

    fn value(&self, is_cut: bool) -> Bytes {
        let partition = self.partition.bytes();
        let mut bytes = Vec::with_capacity(9 + partition.len());
        bytes.put_u64(self.life.to_bits());
        bytes.put_u8(u8::from(is_cut));
        bytes.put_slice(partition);
        bytes.into()
    }
}

/// The two values that the entries of an item have; all of them share these.
pub(super) struct EntryValues {
    whole: Bytes,
    cut: Bytes,
}

impl EntryValues {
    pub(super) fn of(&self, is_cut: bool) -> Bytes {
        if is_cut { self.cut.clone() } else { self.whole.clone() }
    }
}

/// An entry, read.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The bytes of the value, or of the values of a composite index.
    pub(crate) value: Bytes,
    /// Whether the item has more than these bytes say.
    pub(crate) is_cut: bool,
    /// The number of the item.
    pub(crate) docno: u64,
    /// A lower bound of the item's life stamp.
    pub(crate) life: Life,
    /// The partition of the item.
    pub(crate) partition: Bytes,
}

impl Entry {
    pub(super) fn decode(kind: EntryKind, key: &Bytes, row: &Bytes) -> Result<Entry> {
        Self::read(kind, key, row).ok_or_else(|| Error::Corrupt("an entry of the index".to_owned()))
    }

    fn read(kind: EntryKind, key: &Bytes, row: &Bytes) -> Option<Entry> {
        let (value, docno) = keys::entry_parts(key)?;
        let value = key.slice_ref(value);
        let mut rest: &[u8] = row;
        let life = Life::from_bits(rest.try_get_u64().ok()?);
        if kind == EntryKind::Partition {
            return Some(Entry { partition: value.clone(), value, is_cut: false, docno, life });
        }
        let is_cut = rest.try_get_u8().ok()? != 0;
        Some(Entry { value, is_cut, docno, life, partition: row.slice_ref(rest) })
    }
}

impl Mortal for Entry {
    fn life(&self) -> Life {
        self.life
    }

    fn docno(&self) -> u64 {
        self.docno
    }

    fn is_in(&self, partition: &DeletedPartition) -> bool {
        self.partition == partition.partition
    }
}

/// Whether a stored entry is as good as one made anew: the same, but for a life
/// stamp that is a lower bound.
pub(crate) fn fits(stored: &[u8], made: &[u8]) -> bool {
    let split = |bytes: &[u8]| {
        let (life, rest) = bytes.split_first_chunk::<8>()?;
        Some((Life::from_bits(u64::from_be_bytes(*life)), rest.to_vec()))
    };
    match (split(stored), split(made)) {
        (Some((stored, what)), Some((made, expected))) => {
            what == expected && !outlives(stored, made)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use dayfly_model::Timestamp;

    use super::*;
    use crate::keys::ItemKey;

    fn value(life: Life, is_cut: bool) -> Bytes {
        let partition = ItemKey::of_tail(b"partitionid").partition(b"id");
        Owner { docno: 7, life, partition: &partition }.value(is_cut)
    }

    #[test]
    fn an_entry_is_read_back() {
        let key = keys::entry(EntryKind::Value, b"pathpathvalue", 7).into();
        let life = Life::Explicit(Timestamp(5));
        let read = |key: &Bytes, row: &Bytes| Entry::decode(EntryKind::Value, key, row);
        let entry = read(&key, &value(life, true)).unwrap();
        assert_eq!((&entry.value[..], entry.docno, entry.life), (&b"value"[..], 7, life));
        assert_eq!(entry.partition, b"partition"[..]);
        assert!(entry.is_cut);
        for short in [&b"k"[..], b"kpathpath1234567"] {
            assert!(read(&Bytes::copy_from_slice(short), &value(life, false)).is_err());
        }
        assert!(read(&key, &value(life, true).slice(..8)).is_err());
    }

    #[test]
    fn an_entry_of_a_partition_names_it() {
        // As bytes that fall would begin.
        for partition in [&b"partition"[..], b"\xFFpartition"] {
            let key = keys::entry(EntryKind::Partition, partition, 7).into();
            let row = Bytes::copy_from_slice(&Life::Never.to_bits().to_be_bytes());
            let entry = Entry::decode(EntryKind::Partition, &key, &row).unwrap();
            assert_eq!((&entry.partition[..], entry.docno), (partition, 7));
            assert_eq!((entry.life, entry.is_cut), (Life::Never, false));
        }
    }

    #[test]
    fn a_stamp_may_be_earlier_and_nothing_else_may_differ() {
        let at = Timestamp;
        for (stored, made, expected) in [
            (Life::Inherit(at(5)), Life::Inherit(at(5)), true),
            (Life::Inherit(at(4)), Life::Inherit(at(5)), true),
            (Life::Inherit(at(6)), Life::Inherit(at(5)), false),
            (Life::Explicit(at(4)), Life::Explicit(at(5)), true),
            (Life::Explicit(at(6)), Life::Explicit(at(5)), false),
            (Life::Opaque(at(4)), Life::Opaque(at(5)), true),
            (Life::Never, Life::Never, true),
            (Life::Inherit(at(4)), Life::Explicit(at(5)), false),
            (Life::Inherit(at(4)), Life::Opaque(at(5)), false),
            (Life::Never, Life::Explicit(at(5)), false),
            (Life::Inherit(at(4)), Life::Never, false),
        ] {
            let stored_value = value(stored, false);
            assert_eq!(fits(&stored_value, &value(made, false)), expected, "{stored:?} {made:?}");
            assert!(!fits(&stored_value, &value(made, true)));
        }
        assert!(!fits(b"short", &value(Life::Never, false)));
    }
}
