//! The log of a bucket: every version of its items, and how each item ended, in the order of
//! the commits.
//!
//! ```text
//! v <lsn:8> <write:2> <place:2>  ->  <kind:1> <ts:8> <previous version:8>
//!                                    <partition length:2> <partition>, and then
//!   of a version                     the record, as it is stored
//!   of an end                        <docno:8> <second:8> <key length:2> <canonical key> <id>
//! ```
//!
//! A row is written by the commit that does what it tells, so it is told once, whatever
//! crashes: a version with the version, an end with the burial. An item that has expired is
//! stored until then, so its end is not lost either; whoever wants its id buries it first,
//! and so tells its end before the new beginning.
//!
//! A bucket has a log while its head says so ([`LogState`]), because the container's
//! definition asks for one, or because somebody has read it once. What is older than its
//! retention is in no page; the background removes it later.
//!
//! An end has no copy of the item: what it was is in the row of its last version, whose key
//! follows from the version.

use bytes::{Buf, BufMut, Bytes};
use dayfly_model::{ErrorKind, Result, Timestamp};
use dayfly_storage::{Batch, Bucket, Draft, Error, Plan, Room, Snapshot, Stamp, View};

use crate::catalog::not_found;
use crate::head::{LogState, State};
use crate::keys::{self, Partition};
use crate::liveness::Ending;
use crate::record::{FeedRow, Record};
use crate::reply::Reply;
use crate::short::{put_short, take_short};
use crate::version;

/// The place of a version among what its write did: after all whom it buried.
const VERSION: u16 = u16::MAX;

const CREATED: u8 = 1;
const REPLACED: u8 = 2;
const DELETED: u8 = 3;
const EXPIRED: u8 = 4;

/// A row of the log.
#[derive(Clone, Debug)]
pub(crate) struct LogRow {
    pub(crate) lsn: u64,
    /// When that was.
    pub(crate) ts: Timestamp,
    /// The version before.
    pub(crate) previous: Option<u64>,
    pub(crate) partition: Bytes,
    pub(crate) event: Event,
}

/// What happened to an item.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// It came.
    Created(Record),
    /// It has another version.
    Replaced(Record),
    /// It ended.
    Ended(EndedItem),
}

/// An item that is no more.
#[derive(Clone, Debug)]
pub(crate) struct EndedItem {
    pub(crate) docno: u64,
    pub(crate) end: Ending,
    /// The canonical partition key.
    pub(crate) partition_key: Bytes,
    pub(crate) id: Bytes,
}

impl LogRow {
    /// The row under `key`.
    pub(crate) fn decode(key: &[u8], row: &Bytes) -> dayfly_storage::Result<LogRow> {
        let broken = || Error::Corrupt("a row of the log".to_owned());
        Self::read(key, row)?.ok_or_else(broken)
    }

    fn read(key: &[u8], row: &Bytes) -> dayfly_storage::Result<Option<LogRow>> {
        let Some(Header { lsn, kind, ts, previous, partition, rest }) = Header::read(key, row)
        else {
            return Ok(None);
        };
        let event = match kind {
            CREATED => Event::Created(Record::decode(rest)?),
            REPLACED => Event::Replaced(Record::decode(rest)?),
            _ => match EndedItem::read(kind, &rest) {
                Some(ended) => Event::Ended(ended),
                None => return Ok(None),
            },
        };
        Ok(Some(LogRow { lsn, ts, previous, partition, event }))
    }

    /// When a row was written, without a look at what else it says.
    pub(crate) fn ts_of(row: &[u8]) -> dayfly_storage::Result<Timestamp> {
        let second = row.get(1..9).and_then(|second| second.try_into().ok());
        let second = second.ok_or_else(|| Error::Corrupt("a row of the log".to_owned()))?;
        Ok(Timestamp(u64::from_be_bytes(second)))
    }
}

/// What all rows begin with.
struct Header {
    lsn: u64,
    kind: u8,
    ts: Timestamp,
    previous: Option<u64>,
    partition: Bytes,
    rest: Bytes,
}

impl Header {
    fn read(key: &[u8], row: &Bytes) -> Option<Header> {
        let lsn = keys::log_lsn(key)?;
        let mut rest: &[u8] = row;
        let kind = rest.try_get_u8().ok()?;
        let ts = Timestamp(rest.try_get_u64().ok()?);
        let previous = Some(rest.try_get_u64().ok()?).filter(|version| *version > 0);
        let partition = row.slice_ref(take_short(&mut rest)?);
        Some(Header { lsn, kind, ts, previous, partition, rest: row.slice_ref(rest) })
    }

    fn write(kind: u8, ts: Timestamp, previous: u64, partition: &[u8], room: usize) -> Vec<u8> {
        let mut row = Vec::with_capacity(19 + partition.len() + room);
        row.put_u8(kind);
        row.put_u64(ts.0);
        row.put_u64(previous);
        put_short(&mut row, partition);
        row
    }
}

impl EndedItem {
    fn read(kind: u8, row: &Bytes) -> Option<EndedItem> {
        let mut rest: &[u8] = row;
        let docno = rest.try_get_u64().ok()?;
        let second = Timestamp(rest.try_get_u64().ok()?);
        let end = match kind {
            DELETED => Ending::Deleted(Some(second)),
            EXPIRED => Ending::Expired(second),
            _ => return None,
        };
        let partition_key = row.slice_ref(take_short(&mut rest)?);
        Some(EndedItem { docno, end, partition_key, id: row.slice_ref(rest) })
    }
}

/// Where the row of a version is.
pub(crate) fn key_of(version: u64) -> Vec<u8> {
    let write = u16::try_from(version::ordinal_of(version)).unwrap_or(u16::MAX);
    keys::log(version::lsn_of(version), write, VERSION)
}

/// What one commit tells, if anybody wants to know.
pub(crate) struct Telling {
    /// The commit; `None`: there is no log.
    stamp: Option<Stamp>,
    /// Which of its writes is carried out.
    write: u16,
    /// How many ends it told.
    ends: u16,
}

impl Telling {
    /// A commit where there is no log.
    pub(crate) const NOTHING: Telling = Telling { stamp: None, write: 0, ends: 0 };

    /// A commit; whether there is a log.
    pub(crate) fn by(stamp: Stamp, has_log: bool) -> Telling {
        Telling { stamp: has_log.then_some(stamp), ..Telling::NOTHING }
    }

    /// What follows is done by this write of the commit.
    pub(crate) fn turn_to(&mut self, ordinal: u64) {
        self.write = u16::try_from(ordinal).unwrap_or(u16::MAX);
        self.ends = 0;
    }

    /// Tells a version, and that there was one before.
    pub(crate) fn version(
        &self,
        batch: &mut Batch,
        record: &Record,
        partition: &Partition,
        previous: Option<u64>,
    ) {
        let Some(stamp) = self.stamp else { return };
        let kind = if previous.is_some() { REPLACED } else { CREATED };
        let (ts, stored) = (Timestamp(stamp.ts), record.stored());
        let previous = previous.unwrap_or_default();
        let mut row = Header::write(kind, ts, previous, partition.bytes(), stored.len());
        row.put_slice(&stored);
        batch.put(key_of(record.version), row);
    }

    /// Tells how an item ended, whose last version this was.
    pub(crate) fn end(&mut self, batch: &mut Batch, row: &FeedRow, ended: &Ended<'_>) {
        let Some(stamp) = self.stamp else { return };
        let (kind, second) = match ended.end {
            Ending::Deleted(at) => (DELETED, at.map_or(stamp.ts, |at| at.0)),
            Ending::Expired(at) => (EXPIRED, at.0),
        };
        let (partition, key) = (row.partition(), ended.partition_key);
        let id = row.id();
        let room = 18 + key.len() + id.len();
        let ts = Timestamp(stamp.ts);
        let mut told = Header::write(kind, ts, row.version, partition.bytes(), room);
        told.put_u64(row.docno);
        told.put_u64(second);
        put_short(&mut told, key);
        told.put_slice(id);
        batch.put(keys::log(stamp.lsn, self.write, self.ends), told);
        self.ends += 1;
    }
}

/// How an item ends, for those who are told.
pub(crate) struct Ended<'a> {
    pub(crate) end: Ending,
    /// Its canonical partition key.
    pub(crate) partition_key: &'a [u8],
}

/// Up to which commit the log of a bucket is trimmed.
pub(crate) fn trimmed(snapshot: &dyn Snapshot, bucket: Bucket) -> dayfly_storage::Result<u64> {
    let row = snapshot.get(bucket, &keys::log_trimmed())?;
    let Some(row) = row else { return Ok(0) };
    let broken = |_| Error::Corrupt("how far a log is trimmed".to_owned());
    row.as_ref().try_into().map(u64::from_be_bytes).map_err(broken)
}

/// Whether a bucket with this state has a log now.
pub(crate) fn is_on(state: &State) -> bool {
    state.log.is_some_and(LogState::is_on)
}

/// Begins the log of a bucket that has none, because somebody wants to read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeginLog {
    /// For how long it tells what happened.
    pub(crate) minutes: u32,
    /// Whether the container's definition asks for it.
    pub(crate) by_definition: bool,
}

impl Plan for BeginLog {
    type Done = ();
    type Refusal = Reply;

    fn draft(&self, view: &View<'_>) -> Result<Draft<()>, Reply> {
        let state = State::of(view.head());
        if state.deleted || state.epoch == 0 {
            let missing = not_found(ErrorKind::OwnerNotFound);
            return Err(Reply::failed(missing, Timestamp(view.now())));
        }
        if is_on(&state) {
            return Ok(Draft::new(|_, _| ()));
        }
        let BeginLog { minutes, by_definition } = *self;
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            let log = Some(LogState::begun(stamp.lsn, minutes, by_definition));
            batch.set_state(State { log, ..state }.encode());
        }))
    }

    fn room(&self) -> Room {
        Room::Grows
    }
}

#[cfg(test)]
mod tests {
    use dayfly_model::ttl::Life;

    use super::*;
    use crate::keys::ItemKey;
    use crate::operation::Indexing;
    use crate::record::{Seal, Unstamped};

    #[test]
    fn what_a_commit_tells_is_read_back() {
        let stamp = Stamp { lsn: 7, ts: 100, opened: 1 };
        let seal = Seal {
            version: version::version(stamp, 2),
            docno: 5,
            ts: Timestamp(100),
            life: Life::Never,
            opened: 1,
            is_touched: false,
        };
        let record = Unstamped::new(Indexing::ByPolicy, b"key", &[], b"id", b"{}").seal(seal);
        let partition = Partition::of_bytes(b"partition");
        let row = FeedRow::of(&record, &ItemKey::of_tail(b"partitionid"));
        let mut batch = Batch::default();
        let mut told = Telling::by(stamp, true);
        told.turn_to(2);
        let ended = |end| Ended { end, partition_key: b"key" };
        told.end(&mut batch, &row, &ended(Ending::Expired(Timestamp(90))));
        told.end(&mut batch, &row, &ended(Ending::Deleted(None)));
        told.version(&mut batch, &record, &partition, None);
        told.version(&mut batch, &record, &partition, Some(9));
        Telling::NOTHING.version(&mut batch, &record, &partition, None);
        let rows: Vec<_> = batch.rows().map(|(key, row)| (key.to_vec(), row.cloned())).collect();
        assert!(rows[0].0 < rows[1].0 && rows[1].0 < rows[2].0, "{rows:?}");
        assert_eq!((&rows[2].0, rows.len()), (&key_of(record.version), 4));
        let read = rows.iter().map(|(key, row)| {
            let row = row.clone().unwrap();
            assert_eq!(LogRow::ts_of(&row).unwrap(), Timestamp(100));
            let row = LogRow::decode(key, &row).unwrap();
            assert_eq!((row.lsn, &row.partition[..]), (7, &b"partition"[..]));
            row
        });
        let read: Vec<LogRow> = read.collect();
        let ends = [Ending::Expired(Timestamp(90)), Ending::Deleted(Some(Timestamp(100)))];
        for (row, expected) in read.iter().zip(ends) {
            let Event::Ended(ended) = &row.event else { panic!("{row:?}") };
            assert_eq!((ended.end, ended.docno), (expected, 5));
            assert_eq!((&ended.partition_key[..], &ended.id[..]), (&b"key"[..], &b"id"[..]));
            assert_eq!(row.previous, Some(record.version));
        }
        let is_same = |stored: &Record| stored.stored() == record.stored();
        assert!(matches!(&read[2].event, Event::Created(stored) if is_same(stored)));
        assert!(matches!(&read[3].event, Event::Replaced(stored) if is_same(stored)));
        assert_eq!((read[2].previous, read[3].previous), (None, Some(9)));
        assert!(LogRow::decode(&rows[0].0, &Bytes::from_static(b"short")).is_err());
    }
}
