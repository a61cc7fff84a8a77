//! Items: create, upsert, replace, delete, read.
//!
//! Every operation sees items through [`Seen`], which applies liveness. That
//! is the whole of instant expiry: an expired item is not found, whether or
//! not it was purged yet, and a write that meets one buries it first.

mod rename;

use std::sync::Arc;

use bytes::Bytes;
use dayfly_model::epk::Epk;
use dayfly_model::json::ObjectText;
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::rid::ItemRid;
use dayfly_model::ttl::{ContainerTtl, Cuts, ItemTtl};
use dayfly_model::{Error, ErrorKind, Result, Timestamp, charge, id};
use dayfly_storage::{Batch, Bucket, Draft, Plan, Room, Stamp, View};
use serde_json::value::RawValue;

use self::rename::From;
use crate::catalog::{Container, not_found};
use crate::figures::{Gone, Graves};
use crate::head::State;
use crate::index::{Difference, Index, Indexed, Policies, Source};
use crate::keys::{self, ItemKey, Partition};
use crate::operation::{Act, Condition, Indexing, ItemAddress, Part, WriteItem};
use crate::purge::{Deadlines, Tell};
use crate::record::{self, Record, Seal, Unstamped};
use crate::reply::{Place, Reply, Success, storage_failed};
use crate::scope::{Opened, Touched};
use crate::unique;

/// The largest item, in bytes of JSON.
pub(crate) const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024;

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
    /// Judges a stored item. Nothing else in the engine makes an item of what
    /// is stored.
    pub(crate) fn of(bytes: Bytes, cuts: Cuts) -> dayfly_storage::Result<Seen> {
        let record = Record::decode(bytes)?;
        Ok(if record.life.is_dead(cuts) { Seen::Dead(record) } else { Seen::Alive(record) })
    }
}

/// Looks for an item by its place.
pub(crate) fn look(
    get: impl Fn(&[u8]) -> dayfly_storage::Result<Option<Bytes>>,
    key: &ItemKey,
    partition_key: &[u8],
    cuts: Cuts,
) -> dayfly_storage::Result<Seen> {
    let Some(bytes) = get(key.record())? else { return Ok(Seen::Absent) };
    let seen = Seen::of(bytes, cuts)?;
    match &seen {
        Seen::Dead(record) | Seen::Alive(record) if record.partition_key() != partition_key => {
            Err(dayfly_storage::Error::Corrupt("two partition keys share one place".to_owned()))
        }
        _ => Ok(seen),
    }
}

/// Where an item is, or would be.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) bucket: Bucket,
    pub(crate) range: Arc<str>,
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
        Spot {
            bucket: container.bucket(&epk),
            range: range_id(container, &epk),
            key: partition.item(&id),
            partition,
            partition_key: canonical.into(),
            id,
            docno: None,
        }
    }

    /// What was seen, if it is the item that the request means.
    fn meant(&self, seen: Seen) -> Seen {
        match (seen, self.docno) {
            (Seen::Alive(record), Some(docno)) if record.docno != docno => Seen::Absent,
            (seen, _) => seen,
        }
    }

    /// For an answer that knows the bucket's commits up to `lsn`.
    pub(crate) fn place(&self, container: &Container, lsn: u64) -> Place {
        container.place(Some(Arc::clone(&self.range)), Some(lsn))
    }
}

fn range_id(container: &Container, epk: &Epk) -> Arc<str> {
    container.range(epk).map_or_else(|| "0".into(), |range| Arc::clone(&range.id))
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
    let touched = Touched { range: Arc::clone(&spot.range), lsn: head.lsn };
    if let Err(error) = opened.check_session(&[touched]) {
        return opened.failed(error).at(place);
    }
    let get = |key: &[u8]| opened.snapshot.get(spot.bucket, key);
    let seen = State::policy(&head)
        .and_then(|policy| look(get, &spot.key, &spot.partition_key, policy.cuts(opened.now())));
    match seen.map(|seen| spot.meant(seen)) {
        Ok(Seen::Alive(record)) => shown(container, &record, condition, opened.now()).at(place),
        Ok(Seen::Dead(_) | Seen::Absent) => missing(opened, place),
        Err(error) => opened.failed(storage_failed(error)).at(place),
    }
}

/// The answer to a read of an item that is not there. As that of the service, it does not
/// say the RID of the container.
fn missing(opened: &Opened, place: Place) -> Reply {
    opened.failed(not_found(ErrorKind::NotFound)).at(Place { rid: None, ..place })
}

fn shown(container: &Container, record: &Record, condition: &Condition, now: Timestamp) -> Reply {
    let etag = record.etag(container);
    let mut success = Success {
        item_lsn: Some(record::lsn_of(record.version)),
        ..Success::new(200, record.render(container, &etag))
    };
    success.etag = Some(etag);
    success.unless_known(condition);
    let charge_ru = charge::of_read(success.body.len());
    Reply::ok(success, now, charge_ru)
}

/// Where the item is that a request names, by id or, under a container named
/// by RID, by RID. `None`: there is no such RID.
fn locate(opened: &Opened, item: ItemAddress) -> Result<Option<Spot>> {
    let container = &opened.container;
    if opened.by_rid {
        return locate_by_rid(opened, item);
    }
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
    let bucket = keys::bucket(container.number, usize::from(record::slice_of(rid.docno)));
    let entry = opened.snapshot.get(bucket, &keys::by_rid(rid.docno)).map_err(storage_failed)?;
    let Some(tail) = entry else { return Ok(None) };
    let key = ItemKey::of_tail(&tail);
    let bytes = opened.snapshot.get(bucket, key.record()).map_err(storage_failed)?;
    let policy = State::policy(&opened.snapshot.head(bucket)).map_err(storage_failed)?;
    let cuts = policy.cuts(opened.now());
    let seen = bytes.map(|bytes| Seen::of(bytes, cuts)).transpose().map_err(storage_failed)?;
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

/// Reads a write as far as it can be read without looking at the store's
/// items, and makes the plan for it.
pub(crate) fn plan(opened: &Opened, write: WriteItem, around: Around) -> Result<ItemPlan> {
    let container = &opened.container;
    let indexing = write.indexing;
    let given = expected_key(container, write.partition_key.clone())?;
    let (mut from, mut misfit) = (None, false);
    let (act, spot) = match write.act {
        Act::Create(text) => {
            let body = Body::read(container, text, indexing)?;
            (PlannedAct::Create, body.spot(container, given)?.with(body))
        }
        Act::Upsert(text) => {
            let body = Body::read(container, text, indexing)?;
            (PlannedAct::Upsert, body.spot(container, given)?.with(body))
        }
        Act::Replace(target, text) => {
            let body = Body::read(container, text, indexing)?;
            let target = target_of(opened, target, write.partition_key)?;
            let spot;
            (spot, from, misfit) = body.over(container, target);
            (PlannedAct::Replace, spot.with(body))
        }
        Act::Delete(target) => {
            (PlannedAct::Delete, (target_of(opened, target, write.partition_key)?, None))
        }
    };
    let (spot, body) = spot;
    Ok(ItemPlan {
        container: Arc::clone(container),
        spot,
        from,
        misfit,
        act,
        body,
        condition: write.condition,
        minimal: write.minimal,
        around,
    })
}

/// What writes work with besides the store.
pub(crate) struct Around {
    pub(crate) index: Arc<Index>,
    pub(crate) deadlines: Arc<Deadlines>,
    /// Where expired items are counted that writes bury.
    pub(crate) gone: Arc<Gone>,
}

fn target_of(opened: &Opened, id: String, key: Option<PartitionKey>) -> Result<Spot> {
    locate(opened, ItemAddress { id, partition_key: key })?
        .ok_or_else(|| not_found(ErrorKind::NotFound))
}

/// What a write brings.
#[derive(Debug)]
struct Body {
    id: String,
    ttl: Option<Box<RawValue>>,
    partition_key: PartitionKey,
    unique: Vec<[u8; 16]>,
    text: Bytes,
    indexing: Indexing,
    /// The text, for the index.
    source: Source,
}

impl Spot {
    fn with(self, body: Body) -> (Spot, Option<Body>) {
        (self, Some(body))
    }
}

impl Body {
    fn read(container: &Container, text: ObjectText, indexing: Indexing) -> Result<Body> {
        if text.bytes() > ITEM_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "Request size is too large: an item can have at most 2 MB.",
            ));
        }
        let id = item_id(&text)?;
        let definition = container.definition();
        let ttl = text.get("ttl").map(ToOwned::to_owned);
        let partition_key = PartitionKey::extract(&definition.partition_key, &text)?;
        let unique = unique::hashes(&definition.unique_keys, &text);
        let text = text.into_bytes();
        let source = Source::new(text.clone(), indexing);
        Ok(Body { id, ttl, partition_key, unique, text, indexing, source })
    }

    /// Where the item goes. The key in the request and the key in the body must be
    /// the same.
    fn spot(&self, container: &Container, given: Option<PartitionKey>) -> Result<Spot> {
        if given.is_some_and(|given| given != self.partition_key) {
            return Err(key_mismatch(KEY_MISSING));
        }
        Ok(Spot::new(container, &self.partition_key, self.id.clone().into_bytes()))
    }

    /// The same for a replace, and where the item stands if it gets another id. It
    /// stays in its partition: whether the body would move it to another one counts only
    /// if it is there, so that is told last.
    fn over(&self, container: &Container, target: Spot) -> (Spot, Option<From>, bool) {
        let spot = Spot::new(container, &self.partition_key, self.id.clone().into_bytes());
        if target.partition_key != spot.partition_key {
            return (target, None, true);
        }
        if target.key == spot.key {
            return (target, None, false);
        }
        let spot = Spot { docno: target.docno, ..spot };
        (spot, Some(From { key: target.key, id: target.id }), false)
    }
}

fn item_id(text: &ObjectText) -> Result<String> {
    let Some(raw) = text.get("id") else {
        return Err(Error::bad_request(
            "The input content is invalid because the required properties - 'id; ' - are missing",
        ));
    };
    let id: String = serde_json::from_str(raw.get()).map_err(|_| {
        Error::bad_request(format!("The input id '{}' is invalid: it must be a string.", raw.get()))
    })?;
    id::check_item_id(&id)?;
    Ok(id)
}

/// A write to one item, ready to be drafted.
pub(crate) struct ItemPlan {
    container: Arc<Container>,
    /// Where the item is, or goes.
    spot: Spot,
    /// Where it was, if it gets another id.
    from: Option<From>,
    /// Whether a replace brings another partition key than the item's.
    misfit: bool,
    act: PlannedAct,
    body: Option<Body>,
    condition: Condition,
    minimal: bool,
    around: Around,
}

/// What a write is decided by, besides the item itself.
struct Rules {
    now: Timestamp,
    cuts: Cuts,
    /// The container's default.
    default: ContainerTtl,
    policies: Arc<Policies>,
}

/// An expired item that a write buries first.
struct Corpse {
    record: Record,
    key: ItemKey,
    indexed: Indexed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlannedAct {
    Create,
    Upsert,
    Replace,
    Delete,
}

/// What a committed write answers, before it is rendered.
pub(crate) struct Written {
    container: Arc<Container>,
    place: Place,
    status: u16,
    /// The new version; none after a delete.
    record: Option<Record>,
    lsn: u64,
    minimal: bool,
    charge_ru: f64,
    now: Timestamp,
    ttl_ignored: bool,
    /// Tells the purge when the new version dies, once all can see it.
    tell: Option<Tell>,
    /// Counts the expired items that were buried, at the same moment.
    graves: Option<Graves>,
}

impl ItemPlan {
    pub(crate) fn bucket(&self) -> Bucket {
        self.spot.bucket
    }

    fn refuse(&self, view: &View<'_>, error: Error) -> Reply {
        let place = self.spot.place(&self.container, view.head().lsn);
        Reply::failed(error, Timestamp(view.now())).at(place)
    }

    fn decide(&self, view: &View<'_>) -> Result<Draft<Written>> {
        let state = State::of(view.head());
        if state.deleted || state.epoch == 0 {
            return Err(not_found(ErrorKind::OwnerNotFound));
        }
        let now = Timestamp(view.now());
        let cuts = state.policy.cuts(now);
        let key = self.from.as_ref().map_or(&self.spot.key, |from| &from.key);
        let seen = self.spot.meant(self.look(view, key, cuts)?);
        self.check_unmoved(view, &seen, key)?;
        let policy = state.policy.at(now);
        let policies = self.around.index.policies(self.spot.bucket, &|key| view.get(key));
        let policies = policies.map_err(storage_failed)?;
        let has_times = policies.newest().rules().has_times();
        let by = Rules { now, cuts, default: policy.default, policies };
        let mut draft = self.decide_on(view, seen, &by)?;
        if has_times {
            // What the item has in the index is that of this second.
            draft = draft.valid_before(now.0 + 1);
        }
        // With another default to come, what was decided holds until then.
        Ok(draft.valid_before(policy.pending.map_or(u64::MAX, |pending| pending.at.0)))
    }

    fn decide_on(&self, view: &View<'_>, seen: Seen, by: &Rules) -> Result<Draft<Written>> {
        match (self.act, &self.body) {
            (PlannedAct::Create, Some(body)) => match seen {
                Seen::Alive(_) => Err(taken()),
                Seen::Dead(old) => self.create(view, body, Some(old), by),
                Seen::Absent => self.create(view, body, None, by),
            },
            (PlannedAct::Upsert, Some(body)) => match seen {
                Seen::Alive(old) => self.replace(view, body, old, by),
                Seen::Dead(old) => self.create(view, body, Some(old), by),
                Seen::Absent => self.create(view, body, None, by),
            },
            (PlannedAct::Replace, Some(body)) => match seen {
                Seen::Alive(_) if self.misfit => Err(key_mismatch(KEY_MISSING)),
                Seen::Alive(old) => match &self.from {
                    Some(from) => self.rename(view, body, old, from, by),
                    None => self.replace(view, body, old, by),
                },
                Seen::Dead(_) | Seen::Absent => Err(not_found(ErrorKind::NotFound)),
            },
            (PlannedAct::Delete, _) => match seen {
                Seen::Alive(old) => self.delete(view, old, by),
                Seen::Dead(_) | Seen::Absent => Err(not_found(ErrorKind::NotFound)),
            },
            (_, None) => Err(Error::new(ErrorKind::Internal, "A write without a body.")),
        }
    }

    /// An item that is meant by its RID may have got another id since it was
    /// located. It is there, so it must not be told as missing.
    fn check_unmoved(&self, view: &View<'_>, seen: &Seen, key: &ItemKey) -> Result<()> {
        let (Seen::Absent, Some(docno)) = (seen, self.spot.docno) else { return Ok(()) };
        match view.get(&keys::by_rid(docno)).map_err(storage_failed)? {
            Some(tail) if tail != key.tail() => Err(storage_failed(dayfly_storage::Error::Retry)),
            _ => Ok(()),
        }
    }

    fn look(&self, view: &View<'_>, key: &ItemKey, cuts: Cuts) -> Result<Seen> {
        look(|key| view.get(key), key, &self.spot.partition_key, cuts).map_err(storage_failed)
    }

    /// A new item, over `dead` if its id had one that expired.
    fn create(
        &self,
        view: &View<'_>,
        body: &Body,
        dead: Option<Record>,
        by: &Rules,
    ) -> Result<Draft<Written>> {
        let ttl = ItemTtl::parse(body.ttl.as_deref(), by.default)?;
        let mut corpses = self.free_unique_keys(view, body, by)?;
        if let Some(record) = dead {
            let indexed = stored_index(view, &record, by)?;
            corpses.push(Corpse { record, key: self.spot.key.clone(), indexed });
        }
        let (bytes, indexed) = self.made(body, by)?;
        let rows = rows_of(&corpses) + indexed.rows();
        let charge_ru = charge::of_create(body.text.len(), 0);
        let ttl_ignored = body.ttl.is_some() && !by.default.is_on();
        let answer = self.answer(201, charge_ru, ttl_ignored, by.default);
        let (spot, gone) = (self.spot.clone(), Arc::clone(&self.around.gone));
        Ok(Draft::new(move |stamp, batch| {
            let graves = bury(corpses, gone, spot.bucket, batch);
            let docno = record::docno(stamp, 1, keys::slice_of(spot.bucket));
            let record = bytes.seal(seal(stamp, ttl, docno));
            record.put(batch, &spot.partition, &spot.key, &indexed);
            Written { graves: Some(graves), ..answer(stamp, Some(record)) }
        })
        .of_rows(rows))
    }

    /// A new version of an item that is alive.
    fn replace(
        &self,
        view: &View<'_>,
        body: &Body,
        old: Record,
        by: &Rules,
    ) -> Result<Draft<Written>> {
        self.check_condition(&old)?;
        let ttl = ItemTtl::parse(body.ttl.as_deref(), by.default)?;
        let corpses = self.free_unique_keys(view, body, by)?;
        let before = stored_index(view, &old, by)?;
        let (bytes, indexed) = self.made(body, by)?;
        let difference = Difference::new(before, indexed);
        let rows = rows_of(&corpses) + difference.rows();
        let answer = self.replaced(body, &old, by);
        let (spot, gone) = (self.spot.clone(), Arc::clone(&self.around.gone));
        let alive_before = expiry(&old, by.default);
        Ok(Draft::new(move |stamp, batch: &mut Batch| {
            let graves = bury(corpses, gone, spot.bucket, batch);
            let mut seal = seal(stamp, ttl, old.docno);
            seal.is_touched = old.is_touched_by(seal.life, &difference);
            let record = bytes.seal(seal);
            record.put_over(&old, batch, &spot.partition, &spot.key, &difference);
            Written { graves: Some(graves), ..answer(stamp, Some(record)) }
        })
        .of_rows(rows)
        .valid_before(alive_before))
    }

    /// How a replace will be answered.
    fn replaced(
        &self,
        body: &Body,
        old: &Record,
        by: &Rules,
    ) -> impl FnOnce(Stamp, Option<Record>) -> Written + Send + use<> {
        let charge_ru = charge::of_replace(old.text().len(), body.text.len(), 0);
        let ttl_ignored = body.ttl.is_some() && !by.default.is_on();
        self.answer(200, charge_ru, ttl_ignored, by.default)
    }

    fn delete(&self, view: &View<'_>, old: Record, by: &Rules) -> Result<Draft<Written>> {
        self.check_condition(&old)?;
        let indexed = stored_index(view, &old, by)?;
        let rows = indexed.rows();
        let answer = self.answer(204, charge::of_delete(old.text().len(), 0), false, by.default);
        let spot = self.spot.clone();
        let alive_before = expiry(&old, by.default);
        Ok(Draft::new(move |stamp, batch: &mut Batch| {
            old.bury(batch, &spot.key, &indexed);
            answer(stamp, None)
        })
        .of_rows(rows)
        .valid_before(alive_before))
    }

    /// The record of what the write brings, and what that has in the index.
    fn made(&self, body: &Body, by: &Rules) -> Result<(Unstamped, Indexed)> {
        let Spot { partition_key, id, .. } = &self.spot;
        let bytes = Unstamped::new(body.indexing, partition_key, &body.unique, id, &body.text);
        Ok((bytes, body.source.by(by.policies.newest(), by.now).map_err(storage_failed)?))
    }

    /// The expired owners of the unique keys this write wants; an owner that
    /// is alive refuses it.
    fn free_unique_keys(&self, view: &View<'_>, body: &Body, by: &Rules) -> Result<Vec<Corpse>> {
        let mut corpses: Vec<Corpse> = Vec::new();
        for (place, hash) in (0u8..).zip(&body.unique) {
            let entry = self.spot.partition.unique(place, hash);
            let Some(owner) = view.get(&entry).map_err(storage_failed)? else { continue };
            let is_own = self.from.as_ref().is_some_and(|from| owner == from.id);
            if is_own || owner == self.spot.id {
                continue;
            }
            let key = self.spot.partition.item(&owner);
            match self.look(view, &key, by.cuts)? {
                Seen::Alive(_) => return Err(unique::taken()),
                Seen::Dead(record) if corpses.iter().all(|known| known.key != key) => {
                    let indexed = stored_index(view, &record, by)?;
                    corpses.push(Corpse { record, key, indexed });
                }
                Seen::Dead(_) | Seen::Absent => {}
            }
        }
        Ok(corpses)
    }

    fn check_condition(&self, old: &Record) -> Result<()> {
        let etag = old.etag(&self.container);
        let other = |wanted: &String| !names(wanted, &etag);
        let same = |unwanted: &String| names(unwanted, &etag);
        if self.condition.if_match.as_ref().is_some_and(other)
            || self.condition.if_none_match.as_ref().is_some_and(same)
        {
            return Err(precondition_failed());
        }
        Ok(())
    }

    /// How the write will be answered, once its stamp is known.
    fn answer(
        &self,
        status: u16,
        charge_ru: f64,
        ttl_ignored: bool,
        default: ContainerTtl,
    ) -> impl FnOnce(Stamp, Option<Record>) -> Written + Send + use<> {
        let container = Arc::clone(&self.container);
        let mut place = self.spot.place(&self.container, 0);
        let minimal = self.minimal;
        let (deadlines, bucket) = (Arc::clone(&self.around.deadlines), self.spot.bucket);
        move |stamp, record| {
            place.lsn = Some(stamp.lsn);
            let now = Timestamp(stamp.ts);
            let dies = record.as_ref().and_then(|record| record.life.expires_at(default));
            let tell = dies.map(|at| Tell { deadlines, bucket, at: at.0 });
            Written {
                container,
                place,
                status,
                record,
                lsn: stamp.lsn,
                minimal,
                charge_ru,
                now,
                ttl_ignored,
                tell,
                graves: None,
            }
        }
    }
}

impl Plan for ItemPlan {
    type Done = Written;
    type Refusal = Reply;

    fn draft(&self, view: &View<'_>) -> Result<Draft<Written>, Reply> {
        self.decide(view).map_err(|error| self.refuse(view, error))
    }

    fn room(&self) -> Room {
        if self.act == PlannedAct::Delete { Room::Frees } else { Room::Grows }
    }

    fn bytes(&self) -> usize {
        let index_bytes = |body: &Body| usize::try_from(body.source.weight()).unwrap_or_default();
        self.body.as_ref().map_or(0, |body| body.text.len() + index_bytes(body))
    }
}

impl Written {
    /// The answer as clients see it.
    pub(crate) fn into_reply(self) -> Reply {
        drop((self.tell, self.graves));
        let ttl_ignored = self.ttl_ignored;
        let mut success = Success { status: self.status, ttl_ignored, ..Success::default() };
        if let Some(record) = &self.record {
            let etag = record.etag(&self.container);
            success.item_lsn = Some(self.lsn);
            if !self.minimal {
                success.body = record.render(&self.container, &etag);
            }
            success.etag = Some(etag);
        }
        Reply::ok(success, self.now, self.charge_ru).at(self.place)
    }
}

/// What the commit adds to the record of a new item.
fn seal(stamp: Stamp, ttl: ItemTtl, docno: u64) -> Seal {
    let ts = Timestamp(stamp.ts);
    let version = record::version(stamp, 1);
    let (life, opened) = (ttl.life(ts), stamp.opened);
    Seal { version, docno, ts, life, opened, is_touched: false }
}

/// Buries expired items that stand in the way of a write.
fn bury(corpses: Vec<Corpse>, gone: Arc<Gone>, bucket: Bucket, batch: &mut Batch) -> Graves {
    for Corpse { record, key, indexed } in &corpses {
        record.bury(batch, key, indexed);
    }
    Graves { gone, bucket, items: corpses.len() }
}

/// How many rows go with them.
fn rows_of(corpses: &[Corpse]) -> usize {
    corpses.iter().map(|corpse| corpse.indexed.rows()).sum()
}

/// What a stored item has in the index.
fn stored_index(view: &View<'_>, record: &Record, by: &Rules) -> Result<Indexed> {
    by.policies.of_stored(record, &|key| view.get(key)).map_err(storage_failed)
}

fn expiry(record: &Record, default: ContainerTtl) -> u64 {
    record.life.expires_at(default).map_or(u64::MAX, |at| at.0)
}

/// Whether a condition's etag means this one. Some clients leave the quotes
/// out.
pub(crate) fn names(wanted: &str, etag: &str) -> bool {
    let bare = |text: &str| text.trim().trim_matches('"').to_owned();
    wanted.trim() == "*" || bare(wanted) == bare(etag)
}

pub(crate) fn precondition_failed() -> Error {
    Error::new(ErrorKind::PreconditionFailed, "One of the specified pre-condition is not met")
}

pub(crate) fn taken() -> Error {
    Error::new(ErrorKind::Conflict, "Entity with the specified id already exists in the system.")
}
