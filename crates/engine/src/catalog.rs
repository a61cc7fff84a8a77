//! Which databases and containers there are, and how a request finds them.
//!
//! A request names its container by name or by RID; the RID is tried first, so
//! that no name takes over the links of another database. One called like a RID
//! that nobody has still works (see `databases.rs`). What was found is kept
//! parsed, and used again while the container's own head has its epoch: a request
//! that meets a known container reads nothing.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use dayfly_model::container::{ComputedProperty, ContainerDefinition};
use dayfly_model::epk::{self, Epk};
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::rid::{ContainerRid, DatabaseRid};
use dayfly_model::ttl::ContainerTtl;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_sql::Computed;
use dayfly_storage::{Batch, Bucket, Direction, KeyRange, Pair, Snapshot, Stamp, View};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::head::State;
use crate::keys::{self, CATALOG};
use crate::operation::Showing;
use crate::reply::{Count, Origin, Usage, storage_failed};
use crate::unfinished::Unfinished;
use crate::version;

/// How many containers are kept parsed.
const CACHE_CONTAINERS: usize = 10_000;

/// A database, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Database {
    pub(crate) id: String,
    pub(crate) number: u32,
    pub(crate) ts: u64,
    pub(crate) version: u64,
    pub(crate) opened: u32,
}

impl Database {
    pub(crate) fn rid(&self) -> String {
        DatabaseRid(self.number).encode()
    }

    pub(crate) fn etag(&self) -> String {
        version::etag(0, self.opened, self.version)
    }

    /// Where its containers are.
    pub(crate) fn place(&self) -> Origin {
        let rid = Some(self.rid().into());
        let names = format!("dbs/{}", self.id).into();
        Origin { names, rid, number: 0, range: None, lsn: None }
    }

    pub(crate) fn to_json(&self) -> Value {
        let rid = self.rid();
        json!({
            "id": self.id,
            "_rid": rid,
            "_self": format!("dbs/{rid}/"),
            "_etag": self.etag(),
            "_colls": "colls/",
            "_users": "users/",
            "_ts": self.ts,
        })
    }
}

/// A container, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ContainerRecord {
    pub(crate) database: u32,
    pub(crate) number: u32,
    pub(crate) definition: ContainerDefinition,
    /// The default before the definition's own, and the second at which that
    /// takes its place, if it had to wait.
    #[serde(default)]
    pub(crate) delayed: Option<Delayed>,
    /// Who changed the definition last; empty: nobody since it was made.
    pub(crate) changed_by: String,
    /// Grows with every change of the definition or of the ranges.
    pub(crate) epoch: u64,
    /// Where each of its buckets but the first begins. Fixed when it is made.
    pub(crate) slices: Vec<Epk>,
    /// The partition key ranges that clients see, in their order.
    pub(crate) ranges: Vec<RangeRecord>,
    /// Grows with every change of the ranges.
    pub(crate) ranges_version: u64,
    pub(crate) ts: u64,
    pub(crate) version: u64,
    pub(crate) opened: u32,
}

/// A default that counts until a later one takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delayed {
    pub(crate) from: ContainerTtl,
    pub(crate) until: u64,
}

impl ContainerRecord {
    /// The default in force at `now`.
    pub(crate) fn ttl_at(&self, now: Timestamp) -> ContainerTtl {
        match self.delayed {
            Some(delayed) if now.0 < delayed.until => delayed.from,
            _ => self.definition.ttl,
        }
    }

    /// The change that is still to come at `now`.
    pub(crate) fn pending_json(&self, now: Timestamp) -> Option<Value> {
        let until = self.delayed.map(|delayed| delayed.until).filter(|until| now.0 < *until)?;
        Some(json!({"defaultTtl": self.definition.ttl.to_json(), "at": until}))
    }
}

impl ContainerRecord {
    pub(crate) fn rid(&self) -> String {
        ContainerRid { database: self.database, container: self.number }.encode()
    }

    pub(crate) fn buckets(&self) -> impl Iterator<Item = Bucket> + use<> {
        let number = self.number;
        (0..=self.slices.len()).map(move |slice| keys::bucket(number, slice))
    }

    /// Takes the container out of the catalog, and notes its buckets for the
    /// purge, which lives on what its database shares if that did.
    pub(crate) fn condemn(&self, key: &[u8], shares: bool, batch: &mut Batch) {
        batch.delete(key.to_vec());
        batch.delete(keys::container_name(self.database, self.number));
        for bucket in self.buckets() {
            let payer = self.database.to_be_bytes();
            batch.put(keys::condemned(bucket), if shares { payer.to_vec() } else { Vec::new() });
        }
    }

    pub(crate) fn put(&self, batch: &mut Batch) {
        let id = &self.definition.id;
        batch.put(keys::container(self.database, id), encode(self));
        batch.put(keys::container_name(self.database, self.number), id.to_owned().into_bytes());
    }

    /// Fills in what the commit knows.
    pub(crate) fn stamp(&mut self, stamp: Stamp) {
        self.ts = stamp.ts;
        self.version = version::version(stamp, 1);
        self.opened = stamp.opened;
    }
}

/// A partition key range, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RangeRecord {
    /// Never given to another range of the container.
    pub(crate) id: u32,
    pub(crate) min: Epk,
    /// `None`: up to the end.
    pub(crate) max: Option<Epk>,
    /// The ranges that it came from, oldest first.
    pub(crate) parents: Vec<u32>,
}

/// The ranges of a new container, which cut the space of keys into equal parts.
pub(crate) fn equal_ranges(definition: &ContainerDefinition, count: usize) -> Vec<RangeRecord> {
    let mut mins = vec![Epk(Vec::new())];
    mins.extend(epk::boundaries(&definition.partition_key, count));
    let maxs = mins.iter().skip(1).cloned().map(Some).chain([None]);
    let ranges = mins.iter().cloned().zip(maxs).zip(0..);
    ranges.map(|((min, max), id)| RangeRecord { id, min, max, parents: Vec::new() }).collect()
}

/// Where each bucket but the first begins, of so many at most: always where a range
/// begins, so that a range lies in one bucket and has its order. Each range has its own,
/// if there are enough: then its items lie in the order in which they were made.
pub(crate) fn slice_starts(ranges: &[RangeRecord], slices_max: usize) -> Vec<Epk> {
    let slices = slices_max.min(ranges.len());
    (1..slices)
        .filter_map(|slice| ranges.get((slice * ranges.len()).div_ceil(slices)))
        .map(|range| range.min.clone())
        .collect()
}

/// A partition key range that clients see.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) number: u32,
    pub(crate) id: Arc<str>,
    pub(crate) min: Epk,
    /// `None`: up to the end.
    pub(crate) max: Option<Epk>,
    /// The numbers of the ranges that it came from, oldest first.
    pub(crate) parents: Arc<[u32]>,
}

impl Range {
    fn of(record: &RangeRecord) -> Range {
        let RangeRecord { id, min, max, parents } = record.clone();
        Range { number: id, id: id.to_string().into(), min, max, parents: parents.into() }
    }

    /// What it was a part of when so many numbers had been given out, as far as it lies in
    /// this one.
    fn before(&self, numbered: u32) -> Range {
        let older = self.parents.partition_point(|parent| *parent < numbered);
        let (before, from) = self.parents.split_at(older.saturating_sub(1));
        match from.first() {
            Some(number) if self.number >= numbered => Range {
                number: *number,
                id: number.to_string().into(),
                min: self.min.clone(),
                max: self.max.clone(),
                parents: before.into(),
            },
            _ => self.clone(),
        }
    }
}

/// The range of some, in their order, that a point lies in.
pub(crate) fn range_at<'a>(ranges: &'a [Range], epk: &Epk) -> Option<&'a Range> {
    let after = ranges.partition_point(|range| range.min.0 <= epk.0);
    ranges.get(after.checked_sub(1)?)
}

/// A container, ready to be used.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) number: u32,
    pub(crate) rid: ContainerRid,
    pub(crate) rid_text: Arc<str>,
    /// The same, for answers.
    rid_bytes: Bytes,
    /// `dbs/{name}/colls/{name}`.
    pub(crate) names: Bytes,
    /// The database it is in, for answers about the container itself.
    pub(crate) owner: Origin,
    /// `dbs/{rid}/colls/{rid}/`.
    pub(crate) self_link: String,
    pub(crate) record: ContainerRecord,
    pub(crate) ranges: Vec<Range>,
    /// The computed properties, when a query has asked for them.
    computed: OnceLock<Computed>,
}

impl Container {
    pub(crate) fn new(database: &Database, record: ContainerRecord) -> Container {
        let definition = &record.definition;
        let rid = ContainerRid { database: database.number, container: record.number };
        let rid_text: Arc<str> = rid.encode().into();
        Container {
            number: record.number,
            rid,
            self_link: format!("dbs/{}/colls/{rid_text}/", database.rid()),
            rid_bytes: rid_text.as_bytes().to_vec().into(),
            rid_text,
            names: format!("dbs/{}/colls/{}", database.id, definition.id).into(),
            owner: database.place(),
            ranges: record.ranges.iter().map(Range::of).collect(),
            record,
            computed: OnceLock::new(),
        }
    }

    pub(crate) fn definition(&self) -> &ContainerDefinition {
        &self.record.definition
    }

    /// Where its items are, in the range `range` if that is one, with all commits up to
    /// `lsn`.
    pub(crate) fn place(&self, range: Option<Arc<str>>, lsn: Option<u64>) -> Origin {
        let (names, rid) = (self.names.clone(), Some(self.rid_bytes.clone()));
        Origin { names, rid, number: self.number, range, lsn }
    }

    /// The computed properties of its items.
    pub(crate) fn computed(&self) -> Result<&Computed> {
        if let Some(computed) = self.computed.get() {
            return Ok(computed);
        }
        let computed = computed(&self.definition().computed)?;
        Ok(self.computed.get_or_init(|| computed))
    }

    pub(crate) fn etag(&self) -> String {
        version::etag(0, self.record.opened, self.record.version)
    }

    /// All buckets, in the order of what they hold.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = Bucket> {
        self.record.buckets()
    }

    /// The bucket of a logical partition.
    pub(crate) fn bucket(&self, epk: &Epk) -> Bucket {
        let slice = self.record.slices.partition_point(|start| start.0 <= epk.0);
        keys::bucket(self.number, slice)
    }

    /// The range of a logical partition.
    pub(crate) fn range(&self, epk: &Epk) -> Option<&Range> {
        range_at(&self.ranges, epk)
    }

    /// How many numbers were given to its ranges: it tells how the container is divided, and
    /// how it was.
    pub(crate) fn numbered(&self) -> u32 {
        self.ranges.iter().map(|range| range.number + 1).max().unwrap_or_default()
    }

    /// The ranges when so many numbers had been given out. What was begun in their order goes
    /// on in it, however they were divided since.
    pub(crate) fn ranges_before(&self, numbered: u32) -> Cow<'_, [Range]> {
        if self.ranges.iter().all(|range| range.number < numbered) {
            return Cow::Borrowed(&self.ranges);
        }
        let mut ranges: Vec<Range> = Vec::with_capacity(self.ranges.len());
        for range in self.ranges.iter().map(|range| range.before(numbered)) {
            match ranges.last_mut() {
                // All parts of it stand together.
                Some(last) if last.number == range.number => last.max = range.max,
                _ => ranges.push(range),
            }
        }
        Cow::Owned(ranges)
    }

    pub(crate) fn epk(&self, key: &PartitionKey) -> Epk {
        epk::of(&self.definition().partition_key, key)
    }

    /// What it holds, given what is alive in it, and what it may hold.
    pub(crate) fn usage(&self, live: Count, quota: Option<u64>) -> Usage {
        Usage { live, ranges: self.ranges.len(), quota }
    }

    /// As clients see it at `now`.
    pub(crate) fn to_json(&self, now: Timestamp, showing: Showing) -> Value {
        let ttl = self.record.ttl_at(now);
        let mut body: Map<String, Value> = match self.record.pending_json(now) {
            None => self.definition().to_json(),
            Some(pending) => {
                let mut shown = self.definition().clone();
                shown.ttl = ttl;
                let mut body = shown.to_json();
                body.insert("_pendingDefaultTtl".to_owned(), pending);
                body
            }
        };
        let system = json!({
            "_rid": &*self.rid_text,
            "_self": self.self_link,
            "_etag": self.etag(),
            "_docs": "docs/",
            "_sprocs": "sprocs/",
            "_triggers": "triggers/",
            "_udfs": "udfs/",
            "_conflicts": "conflicts/",
            "_ts": self.record.ts,
        });
        if let Value::Object(system) = system {
            body.extend(system);
        }
        if showing != Showing::WithKinds {
            hide_kinds(&mut body);
        }
        if showing != Showing::Whole && self.definition().partition_key.system_key {
            body.shift_remove("partitionKey");
        }
        Value::Object(body)
    }
}

/// Computed properties, as the query language knows them.
pub(crate) fn computed(definitions: &[ComputedProperty]) -> Result<Computed> {
    let pairs = definitions.iter().map(|property| (&*property.name, &*property.query));
    Computed::read(pairs)
}

/// Takes away what only old clients know: the kinds of index of each included path.
fn hide_kinds(body: &mut Map<String, Value>) {
    let paths = body.get_mut("indexingPolicy").and_then(|policy| policy.get_mut("includedPaths"));
    for path in paths.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(path) = path {
            path.shift_remove("indexes");
        }
    }
}

/// The last numbers given out. They are never given out again.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Numbers {
    pub(crate) database: u32,
    pub(crate) container: u32,
    pub(crate) offer: u32,
    #[serde(default)]
    pub(crate) encryption_key: u32,
}

impl Numbers {
    pub(crate) fn read<V: CatalogView + ?Sized>(view: &V) -> Result<Numbers> {
        Ok(read(view, &keys::numbers())?.unwrap_or_default())
    }

    pub(crate) fn write(self, batch: &mut Batch) {
        batch.put(keys::numbers(), encode(&self));
    }
}

/// Reading the catalog: from a snapshot, or from inside a plan.
pub(crate) trait CatalogView {
    fn get(&self, key: &[u8]) -> dayfly_storage::Result<Option<Bytes>>;
    fn scan(&self, range: &KeyRange, limit: usize) -> dayfly_storage::Result<Vec<Pair>>;
}

impl CatalogView for dyn Snapshot + '_ {
    fn get(&self, key: &[u8]) -> dayfly_storage::Result<Option<Bytes>> {
        Snapshot::get(self, CATALOG, key)
    }

    fn scan(&self, range: &KeyRange, limit: usize) -> dayfly_storage::Result<Vec<Pair>> {
        Snapshot::scan(self, CATALOG, range, Direction::Forward, limit)
    }
}

impl CatalogView for View<'_> {
    fn get(&self, key: &[u8]) -> dayfly_storage::Result<Option<Bytes>> {
        View::get(self, key)
    }

    fn scan(&self, range: &KeyRange, limit: usize) -> dayfly_storage::Result<Vec<Pair>> {
        View::scan(self, range, Direction::Forward, limit)
    }
}

/// A database, and whether it was named by its RID.
pub(crate) struct Addressed<T> {
    pub(crate) value: T,
    pub(crate) by_rid: bool,
}

/// The database called `segment`, by name or RID.
pub(crate) fn find_database<V: CatalogView + ?Sized>(
    view: &V,
    segment: &str,
) -> Result<Option<Addressed<Database>>> {
    if let Some(value) = database_with_rid(view, segment)? {
        return Ok(Some(Addressed { value, by_rid: true }));
    }
    let database = read(view, &keys::database(segment))?;
    Ok(database.map(|value| Addressed { value, by_rid: false }))
}

/// The database with this RID.
pub(crate) fn database_with_rid<V: CatalogView + ?Sized>(
    view: &V,
    rid: &str,
) -> Result<Option<Database>> {
    let Some(DatabaseRid(number)) = DatabaseRid::parse(rid) else { return Ok(None) };
    let Some(name) = text(view, &keys::database_name(number))? else { return Ok(None) };
    read(view, &keys::database(&name))
}

/// The database called `segment`; it must be there.
pub(crate) fn open_database<V: CatalogView + ?Sized>(
    view: &V,
    segment: &str,
) -> Result<Addressed<Database>> {
    find_database(view, segment)?.ok_or_else(|| not_found(ErrorKind::OwnerNotFound))
}

/// The stored form of the container called `segment` in `database`.
pub(crate) fn find_container_record<V: CatalogView + ?Sized>(
    view: &V,
    database: &Addressed<Database>,
    segment: &str,
) -> Result<Option<ContainerRecord>> {
    let number = database.value.number;
    if !database.by_rid {
        return read(view, &keys::container(number, segment));
    }
    let Some(rid) = ContainerRid::parse(segment) else { return Ok(None) };
    if rid.database != number {
        return Ok(None);
    }
    match text(view, &keys::container_name(number, rid.container))? {
        Some(name) => read(view, &keys::container(number, &name)),
        None => Ok(None),
    }
}

/// The error for a resource, or the owner of one, that is not there.
pub(crate) fn not_found(kind: ErrorKind) -> Error {
    let message = match kind {
        ErrorKind::OwnerNotFound => "Owner resource does not exist",
        _ => "Resource Not Found. Entity with the specified id does not exist in the system.",
    };
    Error::new(kind, message)
}

/// A stored value, read.
pub(crate) fn read<V: CatalogView + ?Sized, T: for<'de> Deserialize<'de>>(
    view: &V,
    key: &[u8],
) -> Result<Option<T>> {
    let bytes = view.get(key).map_err(storage_failed)?;
    bytes.map(|bytes| decode(&bytes)).transpose()
}

/// What a catalog row holds.
pub(crate) fn decode<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|why| {
        storage_failed(dayfly_storage::Error::Corrupt(format!("the catalog: {why}")))
    })
}

/// A catalog row.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    // Our own plain structs; there is nothing in them that JSON cannot hold.
    serde_json::to_vec(value).unwrap_or_default()
}

fn text<V: CatalogView + ?Sized>(view: &V, key: &[u8]) -> Result<Option<String>> {
    let bytes = view.get(key).map_err(storage_failed)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Containers that were met before.
pub(crate) struct Catalog {
    known: quick_cache::sync::Cache<Name, KnownContainer>,
    /// The changes of containers that their heads may not have.
    pub(crate) unfinished: Unfinished,
}

/// A database and a container, as requests name them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name(String, String);

impl quick_cache::Equivalent<Name> for (&str, &str) {
    fn equivalent(&self, name: &Name) -> bool {
        self.0 == name.0 && self.1 == name.1
    }
}

#[derive(Clone)]
struct KnownContainer {
    /// The catalog's commit this was read at.
    lsn: u64,
    by_rid: bool,
    container: Arc<Container>,
}

/// What was known of a container before a request took its snapshot.
pub(crate) struct Recalled {
    known: Option<KnownContainer>,
    /// Whether the heads of all containers were where the catalog was.
    is_settled: bool,
}

impl Recalled {
    /// The container, if it is in this snapshot what it is known as. See [`Catalog::open`].
    fn fresh(&self, snapshot: &dyn Snapshot) -> Option<&KnownContainer> {
        let known = self.known.as_ref()?;
        let is_fresh = if self.is_settled {
            let head = known.container.buckets().next().map(|first| snapshot.head(first));
            let state = State::of(&head.unwrap_or_default());
            state.epoch == known.container.record.epoch && !state.deleted
        } else {
            snapshot.head(CATALOG).lsn == known.lsn
        };
        is_fresh.then_some(known)
    }
}

impl Catalog {
    pub(crate) fn new() -> Self {
        let known = quick_cache::sync::Cache::new(CACHE_CONTAINERS);
        Catalog { known, unfinished: Unfinished::default() }
    }

    /// What is known of the container that a request names, for [`Catalog::open`]: to be
    /// asked before the snapshot is taken.
    pub(crate) fn recall(&self, database: &str, container: &str) -> Recalled {
        let known = self.known.get(&(database, container));
        Recalled { known, is_settled: self.unfinished.is_none() }
    }

    /// The container that a request names; it must be there. `missing` is the
    /// error when only the container is not there.
    ///
    /// What a name or a RID leads to becomes another only when that was deleted, since no
    /// RID is given out that is somebody's name; and that there is nothing is always asked of
    /// the catalog. So a known container is right while the head of its first bucket has its
    /// epoch and is not closed, whatever else the catalog did. That holds when no change was
    /// on its way from the catalog to a head, or cut off there, at an instant before the
    /// snapshot and after the container was found; else only a catalog without any commit
    /// since then is trusted.
    pub(crate) fn open(
        &self,
        snapshot: &dyn Snapshot,
        recalled: Recalled,
        (database, container): (&str, &str),
        missing: ErrorKind,
    ) -> Result<Addressed<Arc<Container>>> {
        if let Some(KnownContainer { by_rid, container, .. }) = recalled.fresh(snapshot) {
            return Ok(Addressed { value: Arc::clone(container), by_rid: *by_rid });
        }

        let (lsn, known) = (snapshot.head(CATALOG).lsn, recalled.known);
        let name = Name(database.to_owned(), container.to_owned());
        let owner = open_database(snapshot, database)?;
        let record = find_container_record(snapshot, &owner, container)?
            .ok_or_else(|| not_found(missing))?;
        let container = match known {
            Some(known) if same(&known.container.record, &record) => known.container,
            _ => Arc::new(Container::new(&owner.value, record)),
        };
        let found = KnownContainer { lsn, by_rid: owner.by_rid, container: Arc::clone(&container) };
        self.known.insert(name, found);
        Ok(Addressed { value: container, by_rid: owner.by_rid })
    }
}

fn same(known: &ContainerRecord, record: &ContainerRecord) -> bool {
    known.number == record.number
        && known.epoch == record.epoch
        && known.version == record.version
        && known.opened == record.opened
}

/// The time of a snapshot.
pub(crate) fn now(snapshot: &dyn Snapshot) -> Timestamp {
    Timestamp(snapshot.now())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Rows, as an older version may have left them.
    struct Rows(HashMap<Vec<u8>, Bytes>);

    impl CatalogView for Rows {
        fn get(&self, key: &[u8]) -> dayfly_storage::Result<Option<Bytes>> {
            Ok(self.0.get(key).cloned())
        }

        fn scan(&self, _: &KeyRange, _: usize) -> dayfly_storage::Result<Vec<Pair>> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_rid_leads_to_its_database_also_where_another_is_called_like_it() {
        let rid = |number| DatabaseRid(number).encode();
        let mut rows = Rows(HashMap::new());
        for (id, number) in [("d", 1), (&*rid(1), 2), (&*rid(9), 3)] {
            let id = id.to_owned();
            let database = Database { id: id.clone(), number, ts: 1, version: 1, opened: 1 };
            rows.0.insert(keys::database(&id), encode(&database).into());
            rows.0.insert(keys::database_name(number), id.into());
        }
        for (segment, expected) in [
            ("d", Some((1, false))),
            (&*rid(1), Some((1, true))),
            (&*rid(2), Some((2, true))),
            (&*rid(9), Some((3, false))),
            (&*rid(4), None),
        ] {
            let found = find_database(&rows, segment).unwrap();
            let found = found.map(|found| (found.value.number, found.by_rid));
            assert_eq!(found, expected, "{segment}");
        }
    }
}
