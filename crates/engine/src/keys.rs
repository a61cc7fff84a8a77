//! Where things are stored. Every key is built here, so the layout of the
//! whole database can be read on one page.
//!
//! ```text
//! bucket 0: what there is
//!   d <name>                          a database
//!   D <database:4>                    its name
//!   c <database:4> <name>             a container
//!   C <database:4> <container:4>      its name
//!   k <database:4> <name>             a client encryption key
//!   K <database:4> <key:4>            its name
//!   o <offer:4>                       an offer
//!   O <rid of the resource>           the number of its offer
//!   n                                 the last numbers given out
//!   x <bucket:8>                      a bucket of a deleted container, to be cleared; and the
//!                                     number of the database whose throughput it shared
//!
//! bucket 1: the start-up probe
//!   p                                 the time of the last probe
//!
//! bucket <container:56 bits> <slice:8 bits>: one slice of a container
//!   i <docno:8>                       an item
//!   d <partition> <id>                the number of the item with this id
//!   o <partition> <docno:8>           the items of a partition in order: their life and size
//!   w <partition>                     up to which number all its items were deleted
//!   u <partition> <constraint:1> <hash:16>   a unique key: the id of its owner
//!   f <version:8>                     feed, newest version of each item: its life, size and entries
//!   x <due:8> <version:8>             items with a ttl, by expiry
//!   l <class:1> <level:1> <page:8>    life histogram: 64 cells of items and bytes
//!   k <path:8> <value> <docno:8>      index: the life and partition of an item with this value
//!   K <composite:8> <value>* <docno:8>   the same for a composite index; numbers fall with values
//!   n <path:8>                        how many items have a value at a path
//!   m                                 how many items are left out of the index
//!   t                                 how many items may have entries with earlier life stamps
//!   y                                 which indexing policies the entries follow
//!   z                                 how far a change of the policy has come
//!   v <lsn:8> <write:2> <place:2>     log: a version of an item, or how an item ended
//!   V                                 up to which commit the log is trimmed
//!   p                                 the last changes of the default
//!   q                                 how far the purge has come
//!
//! <partition> = EPK, then 8 bytes of SHA-256 of the canonical key
//! ```
//!
//! Numbers are big-endian, so byte order is number order. EPKs collide by
//! construction, so the partition also has a hash of the key itself, and the
//! record has the whole key, which is compared when it is read. An EPK is
//! never a prefix of another one of the same container.
//!
//! **Items lie in the order in which they were made**, by the number of their RID, and
//! an id leads to it. So what has no order asked for has that one: of a whole bucket by
//! its items, of a partition by its row of numbers, of a value by its entries.

use dayfly_model::Timestamp;
use dayfly_model::epk::Epk;
use dayfly_storage::{Bucket, Emptied, KeyRange};
use sha2::{Digest, Sha256};

/// What there is: databases, containers, offers.
pub(crate) const CATALOG: Bucket = Bucket(0);
/// Where the start-up probe writes.
pub(crate) const PROBE: Bucket = Bucket(1);

/// A slice of a container.
pub(crate) fn bucket(container: u32, slice: usize) -> Bucket {
    Bucket(u64::from(container) << 8 | (slice as u64 & 0xFF))
}

/// Which slice of its container a bucket is.
pub(crate) fn slice_of(bucket: Bucket) -> u8 {
    u8::try_from(bucket.0 & 0xFF).unwrap_or_default()
}

/// The number of the container a bucket belongs to; `None` for ours.
pub(crate) fn container_of(bucket: Bucket) -> Option<u32> {
    u32::try_from(bucket.0 >> 8).ok().filter(|number| *number > 0)
}

pub(crate) fn probe() -> Vec<u8> {
    b"p".to_vec()
}

pub(crate) fn database(name: &str) -> Vec<u8> {
    [b"d", name.as_bytes()].concat()
}

pub(crate) fn databases() -> KeyRange {
    KeyRange::prefix(b"d")
}

pub(crate) fn database_name(number: u32) -> Vec<u8> {
    [b"D", &number.to_be_bytes()[..]].concat()
}

pub(crate) fn database_names() -> KeyRange {
    KeyRange::prefix(b"D")
}

pub(crate) fn container(database: u32, name: &str) -> Vec<u8> {
    [b"c", &database.to_be_bytes()[..], name.as_bytes()].concat()
}

pub(crate) fn containers(database: u32) -> KeyRange {
    KeyRange::prefix(&container(database, ""))
}

pub(crate) fn all_containers() -> KeyRange {
    KeyRange::prefix(b"c")
}

pub(crate) fn container_name(database: u32, number: u32) -> Vec<u8> {
    [b"C", &database.to_be_bytes()[..], &number.to_be_bytes()].concat()
}

pub(crate) fn container_names(database: u32) -> KeyRange {
    KeyRange::prefix(&[b"C", &database.to_be_bytes()[..]].concat())
}

pub(crate) fn encryption_key(database: u32, name: &str) -> Vec<u8> {
    [b"k", &database.to_be_bytes()[..], name.as_bytes()].concat()
}

pub(crate) fn encryption_keys(database: u32) -> KeyRange {
    KeyRange::prefix(&encryption_key(database, ""))
}

pub(crate) fn all_encryption_keys() -> KeyRange {
    KeyRange::prefix(b"k")
}

pub(crate) fn encryption_key_name(database: u32, number: u32) -> Vec<u8> {
    [b"K", &database.to_be_bytes()[..], &number.to_be_bytes()].concat()
}

pub(crate) fn encryption_key_names(database: u32) -> KeyRange {
    KeyRange::prefix(&[b"K", &database.to_be_bytes()[..]].concat())
}

pub(crate) fn all_encryption_key_names() -> KeyRange {
    KeyRange::prefix(b"K")
}

pub(crate) fn offer(number: u32) -> Vec<u8> {
    [b"o", &number.to_be_bytes()[..]].concat()
}

pub(crate) fn offers() -> KeyRange {
    KeyRange::prefix(b"o")
}

pub(crate) fn offer_of(rid: &str) -> Vec<u8> {
    [b"O", rid.as_bytes()].concat()
}

pub(crate) fn numbers() -> Vec<u8> {
    b"n".to_vec()
}

pub(crate) fn condemned(bucket: Bucket) -> Vec<u8> {
    [b"x", &bucket.0.to_be_bytes()[..]].concat()
}

pub(crate) fn all_condemned() -> KeyRange {
    KeyRange::prefix(b"x")
}

/// The bucket a condemned row names.
pub(crate) fn condemned_bucket(key: &[u8]) -> Option<Bucket> {
    let number = key.strip_prefix(b"x")?.try_into().ok()?;
    Some(Bucket(u64::from_be_bytes(number)))
}

/// Where in a container a logical partition is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Partition(Vec<u8>);

impl Partition {
    /// The place of a key that lies at `epk` and is `canonical` in full.
    pub(crate) fn new(epk: &Epk, canonical: &[u8]) -> Self {
        let hash = Sha256::digest(canonical);
        let mut bytes = Vec::with_capacity(epk.0.len().max(16) + 8);
        bytes.extend_from_slice(&epk.0);
        if epk.0.is_empty() {
            // The key of items without a key lies before all others.
            bytes.resize(16, 0);
        }
        bytes.extend(hash.iter().take(8));
        Partition(bytes)
    }

    /// The key of an item.
    pub(crate) fn item(&self, id: &[u8]) -> ItemKey {
        ItemKey([b"d", &self.0[..], id].concat())
    }

    /// The partition with these bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Partition {
        Partition(bytes.to_vec())
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// This partition alone, among others.
    pub(crate) fn range(&self) -> KeyRange {
        KeyRange::prefix(&self.0)
    }

    /// A unique key: the constraint's place in the policy, and what its paths
    /// hold.
    pub(crate) fn unique(&self, constraint: u8, hash: &[u8; 16]) -> Vec<u8> {
        [b"u", &self.0[..], &[constraint], hash].concat()
    }
}

/// What an item is called: its partition and its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ItemKey(Vec<u8>);

impl ItemKey {
    /// Where the number of the item is.
    pub(crate) fn number(&self) -> &[u8] {
        &self.0
    }

    /// `<partition> <id>`.
    pub(crate) fn tail(&self) -> &[u8] {
        self.0.get(1..).unwrap_or_default()
    }

    /// The item with this tail.
    pub(crate) fn of_tail(tail: &[u8]) -> ItemKey {
        ItemKey([b"d", tail].concat())
    }

    /// The partition of the item, which is the first `bytes` of its tail.
    pub(crate) fn partition_of(&self, bytes: usize) -> Partition {
        Partition(self.tail().get(..bytes).unwrap_or(self.tail()).to_vec())
    }

    /// The partition of the item, whose id is `id`.
    pub(crate) fn partition(&self, id: &[u8]) -> Partition {
        Partition(self.tail().strip_suffix(id).unwrap_or(self.tail()).to_vec())
    }
}

/// The row of a partition whose items were deleted all at once.
pub(crate) fn deleted_partition(partition: &[u8]) -> Vec<u8> {
    [b"w", partition].concat()
}

/// All such rows.
pub(crate) fn deleted_partitions() -> KeyRange {
    KeyRange::prefix(b"w")
}

/// The partition of such a row; `None` for other keys.
pub(crate) fn of_deleted_partition(key: &[u8]) -> Option<&[u8]> {
    key.strip_prefix(b"w")
}

/// An item.
pub(crate) fn item(docno: u64) -> Vec<u8> {
    [b"i", &docno.to_be_bytes()[..]].concat()
}

/// All items whose number is not less than `docno`.
pub(crate) fn items_from(docno: u64) -> KeyRange {
    KeyRange { start: item(docno), end: b"j".to_vec() }
}

/// The number of the item that is stored under a key; `None` for other keys.
pub(crate) fn item_number(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.strip_prefix(b"i")?.try_into().ok()?))
}

/// The rows of the order of a partition, from one number up to another.
pub(crate) fn in_partition(partition: &[u8], from: u64, to: u64) -> KeyRange {
    let row = |docno| entry(EntryKind::Partition, partition, docno);
    KeyRange { start: row(from), end: row(to) }
}

/// Where items were removed, from one number to another.
pub(crate) fn emptied_items(first: u64, last: u64) -> Emptied {
    Emptied { range: items_from(first), deleted: item(last.saturating_add(1)) }
}

/// Partitions with an EPK from `start` up to `end`; no end: all that follow.
pub(crate) fn partitions_between(start: &Epk, end: Option<&Epk>) -> KeyRange {
    // No EPK starts so.
    let end = end.map_or_else(|| vec![0xFF], |end| end.0.clone());
    KeyRange { start: start.0.clone(), end }
}

pub(crate) fn feed(version: u64) -> Vec<u8> {
    [b"f", &version.to_be_bytes()[..]].concat()
}

/// Feed rows after `version`.
pub(crate) fn feed_after(version: u64) -> KeyRange {
    KeyRange { start: feed(version.saturating_add(1)), end: b"g".to_vec() }
}

/// Feed rows after `version`, up to and including `last`.
pub(crate) fn feed_between(version: u64, last: u64) -> KeyRange {
    KeyRange { start: feed(version.saturating_add(1)), end: feed(last.saturating_add(1)) }
}

/// The version a feed row stands for.
pub(crate) fn feed_version(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.strip_prefix(b"f")?.try_into().ok()?))
}

pub(crate) fn due(at: Timestamp, version: u64) -> Vec<u8> {
    [b"x", &at.0.to_be_bytes()[..], &version.to_be_bytes()].concat()
}

/// Queue rows after the row `after`, due up to and including `until`.
pub(crate) fn due_between(after: Option<&[u8]>, until: Timestamp) -> KeyRange {
    let start = match after {
        Some(key) => dayfly_storage::after(key),
        None => b"x".to_vec(),
    };
    KeyRange { start, end: due(Timestamp(until.0.saturating_add(1)), 0) }
}

/// Queue rows behind a second and a version, whether there is such a row or not.
pub(crate) fn due_after(at: Timestamp, version: u64) -> KeyRange {
    KeyRange { start: dayfly_storage::after(&due(at, version)), end: b"y".to_vec() }
}

/// A page of the life histogram.
pub(crate) fn lives(class: u8, level: u8, page: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(11);
    key.extend([b'l', class, level]);
    key.extend(page.to_be_bytes());
    key
}

/// Class, level and number of a page of the life histogram.
pub(crate) fn lives_parts(key: &[u8]) -> Option<(u8, u8, u64)> {
    let [b'l', class, level, page @ ..] = key else { return None };
    Some((*class, *level, u64::from_be_bytes(page.try_into().ok()?)))
}

/// The pages of the life histogram.
pub(crate) fn all_lives() -> KeyRange {
    KeyRange::prefix(b"l")
}

/// The last changes of the default.
pub(crate) fn policy_history() -> Vec<u8> {
    b"p".to_vec()
}

/// What an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntryKind {
    /// The value at a path.
    Value,
    /// The values of a composite index.
    Composite,
    /// The partition: every item has this one, whatever the indexing policy is.
    Partition,
}

impl EntryKind {
    fn tag(self) -> u8 {
        match self {
            EntryKind::Value => b'k',
            EntryKind::Composite => b'K',
            EntryKind::Partition => b'o',
        }
    }

    /// How many bytes of a term name the path.
    fn path_bytes(self) -> usize {
        match self {
            EntryKind::Value | EntryKind::Composite => 8,
            EntryKind::Partition => 0,
        }
    }

    /// Of what kind the entry under a key is; `None` for other keys.
    fn of(key: &[u8]) -> Option<EntryKind> {
        let kinds = [EntryKind::Value, EntryKind::Composite, EntryKind::Partition];
        kinds.into_iter().find(|kind| key.first() == Some(&kind.tag()))
    }

    /// The bytes of values that fall are inverted, of the first one as well. There the
    /// numbers of items with the same one fall too, so that either way of going over
    /// them has one order.
    fn turned(self, value: &[u8], docno: u64) -> u64 {
        let falls =
            self != EntryKind::Partition && value.first().is_some_and(|first| *first >= 0x80);
        if falls { !docno } else { docno }
    }
}

/// An entry; the term is the path and the value.
pub(crate) fn entry(kind: EntryKind, term: &[u8], docno: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(9 + term.len());
    key.push(kind.tag());
    key.extend_from_slice(term);
    let value = term.get(kind.path_bytes()..).unwrap_or_default();
    key.extend(kind.turned(value, docno).to_be_bytes());
    key
}

/// The term of a value of a path.
pub(crate) fn term(kind: EntryKind, path: u64, value: &[u8]) -> Vec<u8> {
    let path = path.to_be_bytes();
    [path.get(..kind.path_bytes()).unwrap_or_default(), value].concat()
}

/// The value and the item's number of an entry.
pub(crate) fn entry_parts(key: &[u8]) -> Option<(&[u8], u64)> {
    let kind = EntryKind::of(key)?;
    let (value, docno) = key.get(1 + kind.path_bytes()..)?.split_last_chunk::<8>()?;
    Some((value, kind.turned(value, u64::from_be_bytes(*docno))))
}

/// The number of the item that an entry is about; `None` for other keys.
pub(crate) fn entry_owner(key: &[u8]) -> Option<u64> {
    entry_parts(key).map(|(_, docno)| docno)
}

/// Whether this is the key of an entry that an indexing policy asked for.
pub(crate) fn is_indexed(key: &[u8]) -> bool {
    EntryKind::of(key).is_some_and(|kind| kind != EntryKind::Partition)
}

/// The entries of a path with values from `start` up to `end`.
pub(crate) fn entries(kind: EntryKind, path: u64, start: &[u8], end: &[u8]) -> KeyRange {
    let bound = |value: &[u8]| [&[kind.tag()], &term(kind, path, value)[..]].concat();
    KeyRange { start: bound(start), end: bound(end) }
}

/// Where entries were removed, from one term of a path to another.
pub(crate) fn emptied(kind: EntryKind, path: &[u8], first: &[u8], last: &[u8]) -> Emptied {
    let all = |start: &[u8]| KeyRange::prefix(&[&[kind.tag()], start].concat());
    let range = KeyRange { start: all(first).start, end: all(path).end };
    Emptied { range, deleted: all(last).end }
}

/// Where rows of the feed were removed, from one version to another.
pub(crate) fn emptied_feed(first: u64, last: u64) -> Emptied {
    let range = KeyRange { start: feed(first), ..feed_after(first) };
    Emptied { range, deleted: feed_after(last).start }
}

/// How many items have a value at a path.
pub(crate) fn path_count(path: &[u8]) -> Vec<u8> {
    [b"n", path].concat()
}

/// How many items are left out of the index.
pub(crate) fn left_out() -> Vec<u8> {
    b"m".to_vec()
}

/// How many items may have entries with earlier life stamps than their own.
pub(crate) fn touched() -> Vec<u8> {
    b"t".to_vec()
}

/// Which indexing policies the entries follow.
pub(crate) fn index_policies() -> Vec<u8> {
    b"y".to_vec()
}

/// How far a change of the indexing policy has come.
pub(crate) fn index_rebuilt() -> Vec<u8> {
    b"z".to_vec()
}

/// The version a queue row stands for.
pub(crate) fn due_version(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.strip_prefix(b"x")?.get(8..)?.try_into().ok()?))
}

/// When the item of a queue row is due.
pub(crate) fn due_second(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.strip_prefix(b"x")?.get(..8)?.try_into().ok()?))
}

/// A row of the log: the commit, the write of it, and a place among what that write did.
pub(crate) fn log(lsn: u64, write: u16, place: u16) -> Vec<u8> {
    let mut key = Vec::with_capacity(13);
    key.push(b'v');
    key.extend(lsn.to_be_bytes());
    key.extend(write.to_be_bytes());
    key.extend(place.to_be_bytes());
    key
}

/// The rows of the log of the commits after `lsn`.
pub(crate) fn log_after(lsn: u64) -> KeyRange {
    KeyRange { start: log(lsn.saturating_add(1), 0, 0), end: b"w".to_vec() }
}

/// All rows of the log, from those of the commit `lsn` on.
pub(crate) fn log_from(lsn: u64) -> KeyRange {
    KeyRange { start: log(lsn, 0, 0), ..log_after(lsn) }
}

/// The commit that wrote a row of the log; `None` for other keys.
pub(crate) fn log_lsn(key: &[u8]) -> Option<u64> {
    let (lsn, _) = key.strip_prefix(b"v")?.split_first_chunk::<8>()?;
    Some(u64::from_be_bytes(*lsn))
}

/// Up to which commit the log is trimmed.
pub(crate) fn log_trimmed() -> Vec<u8> {
    b"V".to_vec()
}

pub(crate) fn purge_cursor() -> Vec<u8> {
    b"q".to_vec()
}

/// Everything in a bucket.
pub(crate) fn everything() -> KeyRange {
    KeyRange::prefix(b"")
}
