//! Items: where they are, how they are shown, how they are written.
//!
//! ```text
//! act      what a write asks for, read as far as that goes without the store
//! sight    what it sees: the items of its bucket, under what its commit did already
//! budget   what all writes of a commit may cost together
//! patch    what comes of an item that is changed in parts
//! decide   what becomes of it: a pure function that returns data
//! apply    the rows of that, with the stamp of the commit
//! plan     one commit of one write, or of many
//! batch    a request with many, and its answer
//! ```
//!
//! Every operation sees items through [`Seen`], which applies liveness. That
//! is the whole of instant expiry: an expired item is not found, whether or
//! not it was purged yet, and a write that meets one buries it first.

mod act;
mod apply;
mod batch;
mod budget;
mod decide;
mod patch;
mod plan;
mod sight;

use std::sync::Arc;

use bytes::Bytes;
use dayfly_model::charge::{self, Charge};
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::rid::ItemRid;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::Bucket;

pub(crate) use self::batch::{
    answer as batch_answer, plan as batch_plan, throttled as batch_throttled,
};
pub(crate) use self::plan::{Around, RefusedPlan, WritePlan, Written, plan_one};
use crate::catalog::{Container, not_found};
use crate::keys::{self, ItemKey, Partition};
use crate::liveness::Liveness;
use crate::operation::{Act, Condition, ItemAddress, Part, WriteItem};
use crate::parts::Touched;
use crate::record::{Record, Seen, look};
use crate::reply::{Origin, Reply, Success, storage_failed};
use crate::scope::Opened;
use crate::version;

/// Where an item is, or would be.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) bucket: Bucket,
    pub(crate) range: Arc<str>,
    /// The ranges that its range came from.
    parents: Arc<[u32]>,
    pub(crate) partition: Partition,
    pub(crate) partition_key: Bytes,
    pub(crate) key: ItemKey,
    pub(crate) id: Vec<u8>,
    /// Which item with this id, when the request says so by RID.
    docno: Option<u64>,
}

impl Spot {
    pub(crate) fn new(container: &Container, partition_key: &PartitionKey, id: Vec<u8>) -> Spot {
        let epk = container.epk(partition_key);
        let canonical = partition_key.canonical();
        let partition = Partition::new(&epk, &canonical);
        let range = container.range(&epk);
        Spot {
            bucket: container.bucket(&epk),
            range: range.map_or_else(|| "0".into(), |range| Arc::clone(&range.id)),
            parents: range.map_or_else(Arc::default, |range| Arc::clone(&range.parents)),
            key: partition.item(&id),
            partition,
            partition_key: canonical.into(),
            id,
            docno: None,
        }
    }

    /// Whether the item with this number is the one that the request means.
    fn means(&self, docno: u64) -> bool {
        self.docno.is_none_or(|meant| meant == docno)
    }

    /// For an answer that knows the bucket's commits up to `lsn`.
    pub(crate) fn place(&self, container: &Container, lsn: u64) -> Origin {
        container.place(Some(Arc::clone(&self.range)), Some(lsn))
    }
}

/// The partition that a write goes to which names none, if the body says so and there are
/// others of which it matters.
pub(crate) fn part_in_body(container: &Container, write: &WriteItem) -> Option<Part> {
    let (Act::Create(text) | Act::Upsert(text)) = &write.act else { return None };
    if write.partition_key.is_some() || container.ranges.len() == 1 {
        return None;
    }
    let key = PartitionKey::extract(&container.definition().partition_key, text);
    key.ok().map(|key| Part::of(Some(key)))
}

/// Shows an item.
pub(crate) fn read(
    opened: &Opened,
    item: ItemAddress,
    part: &Part,
    condition: &Condition,
) -> Reply {
    let container = &opened.container;
    let spot = match locate(opened, item) {
        Ok(Some(spot)) => spot,
        Ok(None) => return missing(opened, opened.place(part)),
        Err(error) => return opened.failed(error).at(opened.place(part)),
    };
    let head = opened.snapshot.head(spot.bucket);
    let place = spot.place(container, head.lsn);
    let (range, parents) = (Arc::clone(&spot.range), Arc::clone(&spot.parents));
    if let Err(error) = opened.check_session(&[Touched { range, parents, lsn: head.lsn }]) {
        return opened.failed(error).at(place);
    }
    let get = |key: &[u8]| opened.snapshot.get(spot.bucket, key);
    let seen = Liveness::of(&*opened.snapshot, spot.bucket)
        .and_then(|liveness| look(get, &spot.key, &spot.partition_key, &liveness));
    match seen {
        Ok(Seen::Alive(record)) if spot.means(record.docno) => {
            shown(container, &record, condition, opened.now()).at(place)
        }
        Ok(Seen::Alive(_) | Seen::Dead(_) | Seen::Absent) => missing(opened, place),
        Err(error) => opened.failed(storage_failed(error)).at(place),
    }
}

/// The answer to a read of an item that is not there. As that of the service, it does not
/// say the RID of the container.
fn missing(opened: &Opened, place: Origin) -> Reply {
    opened.failed(not_found(ErrorKind::NotFound)).at(Origin { rid: None, ..place })
}

fn shown(container: &Container, record: &Record, condition: &Condition, now: Timestamp) -> Reply {
    let etag = record.etag(container);
    let mut success = Success {
        item_lsn: Some(version::lsn_of(record.version)),
        ..Success::new(200, record.render(container, &etag))
    };
    success.etag = Some(etag);
    success.unless_known(condition);
    let bytes = success.body.len();
    let charge = if success.status == 304 { Charge::MISS } else { charge::of_read(bytes) };
    Reply::ok(success, now, charge)
}

/// Where the item is that a request names, by id or, under a container named
/// by RID, by RID. `None`: there is no such RID.
fn locate(opened: &Opened, item: ItemAddress) -> Result<Option<Spot>> {
    if opened.by_rid { locate_by_rid(opened, item) } else { locate_by_id(opened, item) }
}

/// Where the item with an id is, or would be. In the body of a request items have ids,
/// whatever its path says.
fn locate_by_id(opened: &Opened, item: ItemAddress) -> Result<Option<Spot>> {
    let container = &opened.container;
    let partition_key =
        expected_key(container, item.partition_key)?.ok_or_else(|| key_mismatch(KEY_MISSING))?;
    Ok(Some(Spot::new(container, &partition_key, item.id.into_bytes())))
}

/// Where the item with a RID is, if it is alive. The caller looks again, as for
/// any other item: here only its partition key and id are of interest.
fn locate_by_rid(opened: &Opened, item: ItemAddress) -> Result<Option<Spot>> {
    let container = &opened.container;
    let given = expected_key(container, item.partition_key)?;
    let Some(rid) = ItemRid::parse(&item.id) else { return Ok(None) };
    if rid.container != container.rid {
        return Ok(None);
    }
    let bucket = keys::bucket(container.number, usize::from(version::slice_of(rid.docno)));
    let bytes = opened.snapshot.get(bucket, &keys::item(rid.docno)).map_err(storage_failed)?;
    let liveness = Liveness::of(&*opened.snapshot, bucket).map_err(storage_failed)?;
    let seen = bytes.map(|bytes| Seen::of(bytes, &liveness)).transpose().map_err(storage_failed)?;
    let Some(Seen::Alive(record)) = seen else { return Ok(None) };
    let Some(partition_key) = PartitionKey::from_canonical(record.partition_key()) else {
        return Ok(None);
    };
    if given.is_some_and(|given| given != partition_key) {
        return Ok(None);
    }
    let spot = Spot::new(container, &partition_key, record.id().to_vec());
    Ok(Some(Spot { docno: Some(rid.docno), ..spot }))
}

const KEY_MISSING: &str =
    "PartitionKey extracted from document doesn't match the one specified in the header";

fn key_mismatch(message: &str) -> Error {
    Error::new(ErrorKind::PartitionKeyMismatch, message)
}

/// The request's partition key, made to fit the container. `None`: it gives
/// none, and the container needs one.
fn expected_key(
    container: &Container,
    given: Option<PartitionKey>,
) -> Result<Option<PartitionKey>> {
    let definition = &container.definition().partition_key;
    match given {
        None if definition.system_key => PartitionKey(Vec::new()).fitted(definition).map(Some),
        None => Ok(None),
        Some(key) => key.fitted(definition).map(Some),
    }
}
