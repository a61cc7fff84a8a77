//! What an entry of the index says.
//!
//! ```text
//! k <path:8> <value> <docno:8>         -> <life:8> <cut:1> <partition length:2> <partition> <id>
//! K <composite:8> <value>* <docno:8>   -> the same
//! ```

use bytes::{Buf, BufMut, Bytes};
use dayfly_model::ttl::Life;
use dayfly_storage::{Error, Result};

use super::outlives;
use crate::keys::{self, ItemKey};
use crate::liveness::Mortal;
use crate::record::Record;

/// The item that entries are about.
pub(crate) struct Owner<'a> {
    pub(crate) docno: u64,
    life: Life,
    key: &'a ItemKey,
    partition_bytes: usize,
}

impl<'a> Owner<'a> {
    /// The item `record`, which stands at `key`.
    pub(crate) fn of(record: &Record, key: &'a ItemKey) -> Owner<'a> {
        let partition_bytes = key.tail().len().saturating_sub(record.id().len());
        Owner { docno: record.docno, life: record.life, key, partition_bytes }
    }

    pub(super) fn values(&self) -> Values {
        Values { whole: self.value(false), cut: self.value(true) }
    }

    fn value(&self, is_cut: bool) -> Bytes {
        let tail = self.key.tail();
        let mut bytes = Vec::with_capacity(11 + tail.len());
        bytes.put_u64(self.life.to_bits());
        bytes.put_u8(u8::from(is_cut));
        bytes.put_u16(u16::try_from(self.partition_bytes).unwrap_or(u16::MAX));
        bytes.put_slice(tail);
        bytes.into()
    }
}

/// The two values that the entries of an item have; all of them share these.
pub(super) struct Values {
    whole: Bytes,
    cut: Bytes,
}

impl Values {
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
    /// Where the item is.
    pub(crate) item: ItemKey,
}

impl Entry {
    pub(super) fn decode(key: &Bytes, row: &[u8]) -> Result<Entry> {
        Self::read(key, row).ok_or_else(|| Error::Corrupt("an entry of the index".to_owned()))
    }

    fn read(key: &Bytes, mut row: &[u8]) -> Option<Entry> {
        let (value, docno) = keys::entry_parts(key)?;
        let value = key.slice_ref(value);
        let life = Life::from_bits(row.try_get_u64().ok()?);
        let is_cut = row.try_get_u8().ok()? != 0;
        let partition_bytes = usize::from(row.try_get_u16().ok()?);
        let item = ItemKey::of_tail(row);
        (partition_bytes <= row.len()).then_some(())?;
        Some(Entry { value, is_cut, docno, life, item })
    }
}

impl Mortal for Entry {
    fn life(&self) -> Life {
        self.life
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
    use crate::keys::EntryKind;

    fn value(life: Life, is_cut: bool) -> Bytes {
        let key = ItemKey::of_tail(b"partitionid");
        Owner { docno: 7, life, key: &key, partition_bytes: 9 }.value(is_cut)
    }

    #[test]
    fn an_entry_is_read_back() {
        let key = keys::entry(EntryKind::Value, b"pathpathvalue", 7).into();
        let life = Life::Explicit(Timestamp(5));
        let entry = Entry::decode(&key, &value(life, true)).unwrap();
        assert_eq!((&entry.value[..], entry.docno, entry.life), (&b"value"[..], 7, life));
        assert_eq!(entry.item.tail(), b"partitionid");
        assert!(entry.is_cut);
        for short in [&b"k"[..], b"kpathpath1234567"] {
            assert!(Entry::decode(&Bytes::copy_from_slice(short), &value(life, false)).is_err());
        }
        assert!(Entry::decode(&key, &value(life, true)[..15]).is_err());
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
