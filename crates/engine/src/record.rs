//! An item as it is stored: a small header, then the user's JSON text.
//!
//! ```text
//! <format:1> <version:8> <docno:8> <ts:8> <life:8> <opened:4> <touched:1>
//! <indexing:1> <key length:2> <canonical partition key>
//! <unique keys:1> <hash:16>*
//! <id length:2> <id> <JSON text>
//! ```
//!
//! The header has what liveness, conditions and burial need, so none of them
//! parses JSON. System properties are not in the text: they are made from the
//! header on the way out.
//!
//! An item is *touched* when a write that made its life longer left entries of
//! the index as they were: their life stamps may be earlier than its own. How
//! many items of a bucket are touched is counted where versions come and go.

use std::ops::Range;

use bytes::{Buf, BufMut, Bytes};
use dayfly_model::Timestamp;
use dayfly_model::rid::ItemRid;
use dayfly_model::ttl::Life;
use dayfly_model::value::Value;
use dayfly_storage::{Bucket, Direction, Error, KeyRange, Mark, Result, Snapshot, View};

use crate::catalog::Container;
use crate::deleted::DeletedPartition;
use crate::keys::{self, ItemKey, Partition};
use crate::liveness::{Liveness, Mortal};
use crate::operation::Indexing;
use crate::reply::Pieces;
use crate::short::put_short;
use crate::version;

const FORMAT: u8 = 3;

/// The part of the header that the commit fills in.
const SEAL_BYTES: usize = 38;

/// An item smaller than this is copied into its answer: that costs less than a
/// second piece to send.
const ONE_PIECE_BYTES: usize = 16 * 1024;

/// What the system properties add to an item's text, without the digits of its
/// `_ts`: all RIDs and etags are of one length.
pub(crate) const SYSTEM_BYTES: usize = 195;

/// Whether these versions are still the newest of their items. Known without a read if
/// `view` is the snapshot `looked`, in which they were, or if their rows in the feed were not
/// written since; those of the others are read at once.
pub(crate) fn are_newest(view: &View<'_>, looked: Mark, versions: &[u64]) -> Result<Vec<bool>> {
    let rows: Vec<Vec<u8>> = versions.iter().map(|version| keys::feed(*version)).collect();
    let mut newest: Vec<bool> = rows.iter().map(|row| view.is_as_in(looked, row)).collect();
    let doubted = rows.iter().zip(&newest).filter(|(_, is_known)| !**is_known);
    let doubted: Vec<&[u8]> = doubted.map(|(row, _)| row.as_slice()).collect();
    let mut found = view.get_many(&doubted)?.into_iter();
    for is_newest in newest.iter_mut().filter(|is_known| !**is_known) {
        *is_newest = found.next().flatten().is_some();
    }
    Ok(newest)
}

/// A stored item.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// This version.
    pub(crate) version: u64,
    /// What the RID is made of.
    pub(crate) docno: u64,
    /// `_ts`.
    pub(crate) ts: Timestamp,
    /// The life stamp.
    pub(crate) life: Life,
    /// How often the store had been opened at the write.
    pub(crate) opened: u32,
    /// Whether its entries in the index may have earlier life stamps.
    pub(crate) is_touched: bool,
    /// Whether it is in the index.
    pub(crate) indexing: Indexing,
    /// What the paths of each unique key hold, as a hash.
    pub(crate) unique: Vec<[u8; 16]>,
    /// The whole record.
    bytes: Bytes,
    partition_key: Range<usize>,
    id: Range<usize>,
}

/// A record without its stamp: made where the write was asked for, so that the
/// committer fills in a few bytes and copies nothing.
pub(crate) struct Unstamped {
    bytes: Vec<u8>,
    indexing: Indexing,
    unique: Vec<[u8; 16]>,
    partition_key: Range<usize>,
    id: Range<usize>,
}

/// What the commit adds to a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seal {
    pub(crate) version: u64,
    pub(crate) docno: u64,
    pub(crate) ts: Timestamp,
    pub(crate) life: Life,
    pub(crate) opened: u32,
    pub(crate) is_touched: bool,
}

impl Unstamped {
    pub(crate) fn new(
        indexing: Indexing,
        partition_key: &[u8],
        unique: &[[u8; 16]],
        id: &[u8],
        text: &[u8],
    ) -> Self {
        let length = SEAL_BYTES + 6 + partition_key.len() + unique.len() * 16 + id.len();
        let mut bytes = Vec::with_capacity(length + text.len());
        bytes.put_bytes(0, SEAL_BYTES);
        bytes.put_u8(indexing_byte(indexing));
        let partition_key = put_short(&mut bytes, partition_key);
        bytes.put_u8(u8::try_from(unique.len()).unwrap_or(u8::MAX));
        for hash in unique {
            bytes.put_slice(hash);
        }
        let id = put_short(&mut bytes, id);
        bytes.put_slice(text);
        Unstamped { bytes, indexing, unique: unique.to_vec(), partition_key, id }
    }

    /// `id`.
    pub(crate) fn id(&self) -> &[u8] {
        self.bytes.get(self.id.clone()).unwrap_or_default()
    }

    /// What the paths of each unique key hold, as a hash.
    pub(crate) fn unique(&self) -> &[[u8; 16]] {
        &self.unique
    }

    /// The record, complete.
    pub(crate) fn seal(mut self, seal: Seal) -> Record {
        let mut header: &mut [u8] = &mut self.bytes;
        header.put_u8(FORMAT);
        header.put_u64(seal.version);
        header.put_u64(seal.docno);
        header.put_u64(seal.ts.0);
        header.put_u64(seal.life.to_bits());
        header.put_u32(seal.opened);
        header.put_u8(u8::from(seal.is_touched));
        let Seal { version, docno, ts, life, opened, is_touched } = seal;
        let Unstamped { bytes, indexing, unique, partition_key, id } = self;
        Record {
            version,
            docno,
            ts,
            life,
            opened,
            is_touched,
            indexing,
            unique,
            bytes: bytes.into(),
            partition_key,
            id,
        }
    }
}

impl Record {
    pub(crate) fn decode(bytes: Bytes) -> Result<Record> {
        Self::read(bytes).ok_or_else(|| Error::Corrupt("an item's header".to_owned()))
    }

    fn read(bytes: Bytes) -> Option<Record> {
        let mut rest: &[u8] = &bytes;
        if rest.try_get_u8().ok()? != FORMAT {
            return None;
        }
        let version = rest.try_get_u64().ok()?;
        let docno = rest.try_get_u64().ok()?;
        let ts = Timestamp(rest.try_get_u64().ok()?);
        let life = Life::from_bits(rest.try_get_u64().ok()?);
        let opened = rest.try_get_u32().ok()?;
        let is_touched = rest.try_get_u8().ok()? != 0;
        let indexing = indexing_of(rest.try_get_u8().ok()?)?;
        let partition_key = skip_short(&bytes, &mut rest)?;
        let count = rest.try_get_u8().ok()?;
        let mut unique = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let mut hash = [0; 16];
            rest.try_copy_to_slice(&mut hash).ok()?;
            unique.push(hash);
        }
        let id = skip_short(&bytes, &mut rest)?;
        Some(Record {
            version,
            docno,
            ts,
            life,
            opened,
            is_touched,
            indexing,
            unique,
            bytes,
            partition_key,
            id,
        })
    }

    /// The canonical partition key.
    pub(crate) fn partition_key(&self) -> &[u8] {
        self.bytes.get(self.partition_key.clone()).unwrap_or_default()
    }

    /// `id`.
    pub(crate) fn id(&self) -> &[u8] {
        self.bytes.get(self.id.clone()).unwrap_or_default()
    }

    /// The user's JSON, without system properties.
    pub(crate) fn text(&self) -> &[u8] {
        self.bytes.get(self.id.end..).unwrap_or_default()
    }

    /// The same, shared.
    pub(crate) fn text_bytes(&self) -> Bytes {
        self.bytes.slice(self.id.end.min(self.bytes.len())..)
    }

    /// The item's version as clients see it.
    pub(crate) fn etag(&self, container: &Container) -> String {
        version::etag(container.number, self.opened, self.version)
    }

    /// The item as clients see it: the user's properties, then ours. A large
    /// item is not copied. `etag` is its [`etag`](Record::etag).
    pub(crate) fn render(&self, container: &Container, etag: &str) -> Pieces {
        let open = self.open_text();
        let copied = if open.len() < ONE_PIECE_BYTES { open } else { &[] };
        let mut out = Vec::with_capacity(copied.len() + container.self_link.len() + 192);
        out.put_slice(copied);
        self.close(container, etag, &mut out);
        if copied.len() == open.len() {
            return out.into();
        }
        Pieces { first: self.bytes.slice_ref(open), second: out.into() }
    }

    /// Writes the same behind what is in `out`, for an answer of many items.
    pub(crate) fn render_into(&self, container: &Container, etag: &str, out: &mut Vec<u8>) {
        out.put_slice(self.open_text());
        self.close(container, etag, out);
    }

    /// The user's JSON, to which something is to be added.
    fn open_text(&self) -> &[u8] {
        let text = self.text();
        text.strip_suffix(b"}").unwrap_or(text)
    }

    /// Writes our properties behind the user's.
    fn close(&self, container: &Container, etag: &str, out: &mut Vec<u8>) {
        let rid = ItemRid { container: container.rid, docno: self.docno }.encode();
        if self.open_text().len() > 1 {
            out.put_u8(b',');
        }
        for part in ["\"_rid\":\"", &rid, "\",\"_self\":\"", &container.self_link, "docs/", &rid] {
            out.put_slice(part.as_bytes());
        }
        out.put_slice(b"/\",\"_etag\":\"\\\"");
        out.put_slice(etag.trim_matches('"').as_bytes());
        out.put_slice(b"\\\"\",\"_attachments\":\"attachments/\",\"_ts\":");
        out.put_slice(self.ts.0.to_string().as_bytes());
        out.put_u8(b'}');
    }

    /// The whole record, as it is stored.
    pub(crate) fn stored(&self) -> Bytes {
        self.bytes.clone()
    }

    /// How many bytes the item has as clients see it.
    pub(crate) fn bytes(&self) -> u64 {
        shown_bytes(self.text().len(), self.ts)
    }
}

/// How many bytes an item has as clients see it, with so many of the user's, if this is its `_ts`.
pub(crate) fn shown_bytes(text_bytes: usize, ts: Timestamp) -> u64 {
    let digits = ts.0.checked_ilog10().unwrap_or(0) as usize + 1;
    (text_bytes + SYSTEM_BYTES + digits) as u64
}

/// How many items are read at once that may lie side by side, to begin with and at most.
const IN_A_ROW_MIN: usize = 16;
const IN_A_ROW_MAX: usize = 128;

/// What is stored under an item's key.
pub(crate) enum Seen {
    /// Nothing.
    Absent,
    /// An item whose time has passed, not purged yet. Only a burial may touch
    /// it; nobody may show it.
    Dead(Record),
    /// An item.
    Alive(Record),
}

impl Seen {
    /// Judges a stored item. Whatever is shown to a client went through here.
    pub(crate) fn of(bytes: Bytes, liveness: &Liveness) -> Result<Seen> {
        let record = Record::decode(bytes)?;
        Ok(if liveness.is_dead(&record) { Seen::Dead(record) } else { Seen::Alive(record) })
    }
}

/// Looks for an item by its place: its id leads to its number, and that to the item.
pub(crate) fn look(
    get: impl Fn(&[u8]) -> Result<Option<Bytes>>,
    key: &ItemKey,
    partition_key: &[u8],
    liveness: &Liveness,
) -> Result<Seen> {
    let Some(number) = get(key.number())? else { return Ok(Seen::Absent) };
    let docno = read_number(&number)?;
    let missing = || Error::Corrupt("an id without its item".to_owned());
    let seen = Seen::of(get(&keys::item(docno))?.ok_or_else(missing)?, liveness)?;
    match &seen {
        Seen::Dead(record) | Seen::Alive(record) if record.partition_key() != partition_key => {
            Err(Error::Corrupt("two partition keys share one place".to_owned()))
        }
        _ => Ok(seen),
    }
}

/// The value of a property that the server adds to an item, as queries see it; undefined
/// where there is none yet: an item that its own commit makes has no version, and if it is
/// new, no number.
pub(crate) fn system(
    name: &str,
    container: &Container,
    docno: Option<u64>,
    ts: Timestamp,
    stored: Option<&Record>,
) -> Value {
    let rid = || docno.map(|docno| ItemRid { container: container.rid, docno }.encode());
    let known = match name {
        "_rid" => rid().map(Value::from),
        "_self" => rid().map(|rid| Value::from(format!("{}docs/{rid}/", container.self_link))),
        "_etag" => stored.map(|record| Value::from(record.etag(container))),
        "_attachments" => Some(Value::from("attachments/")),
        "_ts" => Some(Value::from(i64::try_from(ts.0).unwrap_or(i64::MAX))),
        _ => None,
    };
    known.unwrap_or(Value::Undefined)
}

/// The number that an id leads to.
pub(crate) fn read_number(mut row: &[u8]) -> Result<u64> {
    row.try_get_u64().map_err(|_| Error::Corrupt("the number of an item".to_owned()))
}

/// The items with these numbers, which something in the same snapshot says are there.
/// They are read at once.
pub(crate) fn named(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    numbers: &[u64],
) -> Result<Vec<Record>> {
    let keys: Vec<Vec<u8>> = numbers.iter().map(|docno| keys::item(*docno)).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let found = snapshot.get_many(bucket, &keys)?.into_iter();
    let missing = || Error::Corrupt("an entry of the index without its item".to_owned());
    found.map(|bytes| Record::decode(bytes.ok_or_else(missing)?)).collect()
}

/// Those of the items with these numbers that are there and alive: what names them was true
/// in an earlier snapshot.
pub(crate) fn still_there(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    numbers: &[u64],
    liveness: &Liveness,
) -> Result<Vec<Record>> {
    let keys: Vec<Vec<u8>> = numbers.iter().map(|docno| keys::item(*docno)).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut alive = Vec::with_capacity(numbers.len());
    for bytes in snapshot.get_many(bucket, &keys)?.into_iter().flatten() {
        if let Seen::Alive(record) = Seen::of(bytes, liveness)? {
            alive.push(record);
        }
    }
    Ok(alive)
}

/// The items with these numbers, which rise. What was written one after the other lies side
/// by side, and is read in one go, as long as more than half of it is wanted. What is asked
/// for by its number is maybe in the cache, where it costs less than a row of a scan.
pub(crate) fn neighbours(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    numbers: &[u64],
) -> Result<Vec<Record>> {
    let mut found = Vec::with_capacity(numbers.len());
    let (mut missing, mut at_once) = (numbers, IN_A_ROW_MIN);
    while let [first, .., last] = missing {
        let range = KeyRange { start: keys::item(*first), end: keys::item(last.saturating_add(1)) };
        let pairs = snapshot.scan(bucket, &range, Direction::Forward, at_once)?;
        let (read, before) = (pairs.len(), found.len());
        for (key, value) in pairs {
            if let [next, rest @ ..] = missing
                && keys::item_number(&key) == Some(*next)
            {
                found.push(Record::decode(value)?);
                missing = rest;
            }
        }
        if (found.len() - before) * 2 <= read {
            break;
        }
        at_once = (at_once * 2).min(IN_A_ROW_MAX);
    }
    found.extend(named(snapshot, bucket, missing)?);
    Ok(found)
}

/// The first commit with a row in a part of the feed that was not made before some second,
/// found by halving: all that a commit wrote has one time, and time does not run back.
pub(crate) fn first_commit(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    part: &KeyRange,
    is_before: &dyn Fn(Timestamp) -> bool,
) -> Result<Option<u64>> {
    let first = |range: &KeyRange, direction| {
        let pairs = snapshot.scan(bucket, range, direction, 1)?;
        pairs.first().map(|(key, row)| FeedRow::decode(key, row)).transpose()
    };
    let last = first(part, Direction::Backward)?;
    let Some(last) = last.filter(|last| !is_before(last.ts)) else { return Ok(None) };
    let begin = keys::feed_version(&part.start).unwrap_or(0);
    let at = |lsn: u64| keys::feed(version::first_version(lsn));
    let (mut low, mut high) = (version::lsn_of(begin), version::lsn_of(last.version));
    while low < high {
        let middle = low + (high - low) / 2;
        let half = KeyRange { start: at(middle).max(part.start.clone()), end: at(high) };
        match first(&half, Direction::Forward)? {
            Some(row) if is_before(row.ts) => low = version::lsn_of(row.version) + 1,
            _ => high = middle,
        }
    }
    Ok(Some(low))
}

impl Mortal for Record {
    fn life(&self) -> Life {
        self.life
    }

    fn docno(&self) -> u64 {
        self.docno
    }

    fn is_in(&self, partition: &DeletedPartition) -> bool {
        self.partition_key() == partition.key
    }
}

impl Mortal for FeedRow {
    fn life(&self) -> Life {
        self.life
    }

    fn docno(&self) -> u64 {
        self.docno
    }

    fn is_in(&self, partition: &DeletedPartition) -> bool {
        self.partition().bytes() == partition.partition
    }
}

/// What the feed says of an item's newest version: all that a burial needs, but
/// for what the item has in the index.
///
/// ```text
/// <ts:8> <life:8> <docno:8> <bytes:4> <touched:1> <partition length:2>
/// <unique keys:1> <hash:16>* <partition> <id>
/// ```
#[derive(Clone, Debug)]
pub(crate) struct FeedRow {
    pub(crate) version: u64,
    pub(crate) ts: Timestamp,
    pub(crate) life: Life,
    pub(crate) docno: u64,
    /// How many bytes the item has as clients see it.
    pub(crate) bytes: u64,
    pub(crate) is_touched: bool,
    pub(crate) partition_bytes: u16,
    pub(crate) unique: Vec<[u8; 16]>,
    pub(crate) key: ItemKey,
}

impl FeedRow {
    pub(crate) fn of(record: &Record, key: &ItemKey) -> FeedRow {
        let partition_bytes = key.tail().len().saturating_sub(record.id().len());
        FeedRow {
            version: record.version,
            ts: record.ts,
            life: record.life,
            docno: record.docno,
            bytes: record.bytes(),
            is_touched: record.is_touched,
            partition_bytes: u16::try_from(partition_bytes).unwrap_or(u16::MAX),
            unique: record.unique.clone(),
            key: key.clone(),
        }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let tail = self.key.tail();
        let mut bytes = Vec::with_capacity(32 + self.unique.len() * 16 + tail.len());
        bytes.put_u64(self.ts.0);
        bytes.put_u64(self.life.to_bits());
        bytes.put_u64(self.docno);
        bytes.put_u32(u32::try_from(self.bytes).unwrap_or(u32::MAX));
        bytes.put_u8(u8::from(self.is_touched));
        bytes.put_u16(self.partition_bytes);
        bytes.put_u8(u8::try_from(self.unique.len()).unwrap_or(u8::MAX));
        for hash in &self.unique {
            bytes.put_slice(hash);
        }
        bytes.put_slice(tail);
        bytes.into()
    }

    /// What the row begins with: when the version was written, and its life stamp.
    pub(crate) fn glance(mut row: &[u8]) -> Result<(Timestamp, Life)> {
        let ts = row.try_get_u64().map(Timestamp);
        ts.and_then(|ts| Ok((ts, Life::from_bits(row.try_get_u64()?))))
            .map_err(|_| Error::Corrupt("a feed row".to_owned()))
    }

    /// The row under `key`.
    pub(crate) fn decode(key: &[u8], row: &[u8]) -> Result<FeedRow> {
        Self::read(key, row).ok_or_else(|| Error::Corrupt("a feed row".to_owned()))
    }

    fn read(key: &[u8], mut rest: &[u8]) -> Option<FeedRow> {
        let version = keys::feed_version(key)?;
        let ts = Timestamp(rest.try_get_u64().ok()?);
        let life = Life::from_bits(rest.try_get_u64().ok()?);
        let docno = rest.try_get_u64().ok()?;
        let bytes = u64::from(rest.try_get_u32().ok()?);
        let is_touched = rest.try_get_u8().ok()? != 0;
        let partition_bytes = rest.try_get_u16().ok()?;
        let count = rest.try_get_u8().ok()?;
        let mut unique = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let mut hash = [0; 16];
            rest.try_copy_to_slice(&mut hash).ok()?;
            unique.push(hash);
        }
        let key = ItemKey::of_tail(rest);
        Some(FeedRow { version, ts, life, docno, bytes, is_touched, partition_bytes, unique, key })
    }

    /// The partition of the item.
    pub(crate) fn partition(&self) -> Partition {
        self.key.partition_of(usize::from(self.partition_bytes))
    }

    /// The id of the item.
    pub(crate) fn id(&self) -> &[u8] {
        self.key.tail().get(usize::from(self.partition_bytes)..).unwrap_or_default()
    }

    /// Where in the queue of items with a `ttl` this version waits.
    pub(crate) fn due(&self) -> Option<Vec<u8>> {
        match self.life {
            Life::Explicit(at) => Some(keys::due(at.max(self.ts), self.version)),
            Life::Inherit(_) | Life::Opaque(_) | Life::Never => None,
        }
    }
}

fn indexing_byte(indexing: Indexing) -> u8 {
    match indexing {
        Indexing::ByPolicy => 0,
        Indexing::Include => 1,
        Indexing::Exclude => 2,
    }
}

fn indexing_of(byte: u8) -> Option<Indexing> {
    [Indexing::ByPolicy, Indexing::Include, Indexing::Exclude].get(usize::from(byte)).copied()
}

/// Writes a part with its length, and says where it stands.
/// Where in `bytes` the next short part is, of which `rest` is what follows.
fn skip_short(bytes: &[u8], rest: &mut &[u8]) -> Option<Range<usize>> {
    let length = usize::from(rest.try_get_u16().ok()?);
    let start = bytes.len() - rest.len();
    *rest = rest.get(length..)?;
    Some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{ContainerRecord, Database};

    #[test]
    fn a_sealed_record_is_what_is_read_back() {
        let seal = Seal {
            version: 1,
            docno: 2,
            ts: Timestamp(3),
            life: Life::Explicit(Timestamp(4)),
            opened: 5,
            is_touched: true,
        };
        for indexing in [Indexing::ByPolicy, Indexing::Include, Indexing::Exclude] {
            let unique = &[[7; 16], [8; 16]];
            let made = Unstamped::new(indexing, b"key", unique, b"id", b"{}").seal(seal);
            let read = Record::decode(made.bytes.clone()).unwrap();
            assert_eq!(format!("{made:?}"), format!("{read:?}"));
            assert_eq!(
                (read.partition_key(), read.id(), read.text(), read.indexing),
                (&b"key"[..], &b"id"[..], &b"{}"[..], indexing)
            );
            assert_eq!(read.text(), read.text_bytes());
        }
    }

    #[test]
    fn an_item_has_as_many_bytes_as_a_read_returns() {
        let database = Database { id: "d".to_owned(), number: 1, ts: 1, version: 1, opened: 1 };
        for (number, ts) in [(1, 9), (0x7FFF_FFFF, 1_700_000_000), (256, 253_402_300_799)] {
            let container = Container::new(
                &Database { number, ..database.clone() },
                ContainerRecord { number, ..crate::tests::container_record() },
            );
            let seal = Seal {
                version: u64::MAX,
                docno: u64::from(number) << 20,
                ts: Timestamp(ts),
                life: Life::Never,
                opened: number,
                is_touched: false,
            };
            let record =
                Unstamped::new(Indexing::ByPolicy, b"key", &[], b"a", br#"{"id":"a"}"#).seal(seal);
            let shown = record.render(&container, &record.etag(&container));
            assert_eq!(record.bytes(), shown.len() as u64, "{shown:?}");
        }
    }

    #[test]
    fn a_feed_row_is_read_back() {
        let seal = Seal {
            version: 1 << 12,
            docno: 2,
            ts: Timestamp(3),
            life: Life::Explicit(Timestamp(4)),
            opened: 5,
            is_touched: true,
        };
        let unique = &[[7; 16], [8; 16]];
        let record = Unstamped::new(Indexing::ByPolicy, b"key", unique, b"id", b"{}").seal(seal);
        let key = ItemKey::of_tail(b"partitionid");
        let row = FeedRow::of(&record, &key);
        let read = FeedRow::decode(&keys::feed(row.version), &row.encode()).unwrap();
        assert_eq!(format!("{row:?}"), format!("{read:?}"));
        assert_eq!(row.partition_bytes, 9);
        assert!(FeedRow::decode(b"f", &row.encode()).is_err());
        assert!(FeedRow::decode(&keys::feed(1), b"short").is_err());
    }
}
