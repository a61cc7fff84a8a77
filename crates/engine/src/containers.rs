//! Containers: create, read, list, replace, delete.
//!
//! A definition is recorded in the catalog; what the items need of it, the
//! life policy, is installed in the head of each bucket by a commit of its
//! own, whose time is the moment of the change. The epoch says which
//! definition a bucket has; an install that a crash cut off is finished when
//! the store is opened again.

use dayfly_model::charge::Charge;
use dayfly_model::container::{self, ContainerDefinition};
use dayfly_model::rid::DatabaseRid;
use dayfly_model::throughput::Throughput;
use dayfly_model::ttl::ContainerTtl;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::tally::Count;
use dayfly_storage::{Batch, Bucket, Draft, Snapshot, Stamp, View};
use serde_json::Value;

use crate::caller::Caller;
use crate::catalog::{
    self, Addressed, Container, ContainerRecord, Database, Delayed, Numbers, not_found,
};
use crate::clerk::{CatalogPlan, Clerk};
use crate::condition::{check_match, taken};
use crate::head::State;
use crate::index::Index;
use crate::install::Install;
use crate::offers::{self, Offer};
use crate::operation::{Condition, ContainerScope, ContainerWishes, Page, Replacement, Showing};
use crate::reply::{Reply, Success, Usage, feed, storage_failed};
use crate::scope::{Opened, check_intended};
use crate::shared::Shared;
use crate::{encryption_keys, history, keys, pages, splits, standing, statistics};

/// What a container has when neither it nor its database says otherwise.
const THROUGHPUT_DEFAULT: Throughput = Throughput::Manual(400);

/// Makes a container.
pub(crate) fn create(
    clerk: &Clerk<'_>,
    database: &str,
    definition: &[u8],
    throughput: Option<Throughput>,
    showing: Showing,
) -> Reply {
    clerk.answer(|snapshot| {
        let owner = catalog::open_database(snapshot, database)?;
        offers::check_container(clerk.settings(), throughput)?;
        let definition = container::parse(definition, clerk.strict())?;
        catalog::computed(&definition.computed)?;
        check_encryption(snapshot, &owner.value, &definition)?;
        let name = keys::container(owner.value.number, &definition.id);
        if catalog::read::<_, ContainerRecord>(snapshot, &name)?.is_some() {
            return Err(taken());
        }
        let serverless = clerk.settings().serverless;
        let shared = !serverless && offers::has_offer(snapshot, &owner.value.rid())?;
        let usual = (!shared && !serverless).then_some(THROUGHPUT_DEFAULT);
        let throughput = throughput.or(usual);
        if let Some(throughput) = throughput.filter(|_| definition.partition_key.system_key) {
            splits::check_undivided(throughput)?;
        }
        let count = throughput.map_or(1, Throughput::ranges).max(clerk.ranges_min());
        let ranges = catalog::equal_ranges(&definition, count);
        let record = ContainerRecord {
            database: owner.value.number,
            number: clerk.next_container(),
            definition,
            delayed: None,
            changed_by: String::new(),
            epoch: 1,
            slices: catalog::slice_starts(&ranges, clerk.slices_max()),
            ranges,
            ranges_version: 1,
            ts: 0,
            version: 0,
            opened: 0,
        };
        // The heads come first, so that the container is whole when it shows.
        // Nobody else makes or removes containers meanwhile: there is one
        // clerk.
        clerk.install(record.buckets(), &Install::of(&record))?;
        let offered = Provision { throughput, shared: shared && throughput.is_none() };
        Ok(record_new(clerk, owner.value, record, offered, showing))
    })
}

/// The encryption policy of a new container names keys that are there.
fn check_encryption(
    snapshot: &dyn Snapshot,
    owner: &Database,
    definition: &ContainerDefinition,
) -> Result<()> {
    for key in definition.encryption_keys() {
        if !encryption_keys::is_there(snapshot, owner, key)? {
            return Err(Error::bad_request(format!(
                "ClientEncryptionKey with id '[{key}]' does not exist."
            )));
        }
    }
    definition.check_encryption()
}

/// What a new container is offered.
#[derive(Clone, Copy)]
struct Provision {
    /// By itself.
    throughput: Option<Throughput>,
    /// Whether it has part in what its database is offered.
    shared: bool,
}

fn record_new(
    clerk: &Clerk<'_>,
    database: Database,
    record: ContainerRecord,
    Provision { throughput, shared }: Provision,
    showing: Showing,
) -> Reply {
    clerk.commit(CatalogPlan::grows(move |view: &View<'_>| {
        let mut numbers = Numbers::read(view)?;
        let (database, mut record) = (database.clone(), record.clone());
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            record.stamp(stamp);
            record.put(batch);
            numbers.container = numbers.container.max(record.number);
            if let Some(throughput) = throughput {
                numbers.offer += 1;
                let link = format!("dbs/{}/colls/{}/", database.rid(), record.rid());
                Offer::new(numbers.offer, throughput, record.rid(), link, stamp).put(batch);
            }
            numbers.write(batch);
            let mut reply = committed(&database, record, 201, stamp, showing);
            if let Ok(success) = &mut reply.outcome {
                success.shares_throughput = shared;
            }
            reply
        }))
    }))
}

fn committed(
    database: &Database,
    record: ContainerRecord,
    status: u16,
    stamp: Stamp,
    showing: Showing,
) -> Reply {
    let (container, now) = (Container::new(database, record), Timestamp(stamp.ts));
    let success = success(&container, status, container.to_json(now, showing));
    Reply::ok(success, now, Charge::CHANGE).at(container.owner)
}

fn success(container: &Container, status: u16, body: Value) -> Success {
    Success { etag: Some(container.etag()), ..Success::new(status, body.to_string()) }
}

/// Shows a container.
pub(crate) fn read(
    opened: &Opened,
    condition: &Condition,
    wishes: ContainerWishes,
    shared: &Shared,
) -> Reply {
    match look(opened, condition, wishes, shared) {
        Ok(success) => Reply::ok(success, opened.now(), Charge::LOOK),
        Err(error) => opened.failed(error),
    }
    .at(opened.owner())
}

fn look(
    opened: &Opened,
    condition: &Condition,
    wishes: ContainerWishes,
    shared: &Shared,
) -> Result<Success> {
    let (snapshot, container) = (&*opened.snapshot, &opened.container);
    let mut body = container.to_json(opened.now(), wishes.showing);
    if wishes.statistics
        && let Some(members) = body.as_object_mut()
    {
        let statistics = statistics::of_ranges(snapshot, container, &opened.limits)?;
        members.insert("statistics".to_owned(), statistics);
    }
    let mut success = success(container, 200, body);
    success.unless_known(condition);
    let live = standing::of(snapshot, container)?.live;
    success.usage = Some(container.usage(live, shared.settings.container_quota));
    let owner = DatabaseRid(container.record.database).encode();
    success.shares_throughput = !shared.settings.serverless
        && !offers::has_offer(snapshot, &container.rid_text)?
        && offers::has_offer(snapshot, &owner)?;
    if wishes.quota {
        success.index_progress = Some(progress(&shared.index, snapshot, container.buckets())?);
    }
    Ok(success)
}

/// How far the index of a container has come to its policy, in percent: as far as
/// its buckets on average, and to 100 when all are there.
pub(crate) fn progress(
    index: &Index,
    snapshot: &dyn Snapshot,
    of: impl Iterator<Item = Bucket>,
) -> Result<u8> {
    let (mut sum, mut buckets) = (0, 0);
    for bucket in of {
        let get = |key: &[u8]| snapshot.get(bucket, key);
        let policies = index.policies(bucket, &get).map_err(storage_failed)?;
        let done = policies.done(&get).map_err(storage_failed)?;
        sum += usize::from(policies.progress(done));
        buckets += 1;
    }
    Ok(u8::try_from(sum / buckets.max(1)).unwrap_or(100))
}

/// Shows the containers of a database.
pub(crate) fn list(
    snapshot: &dyn Snapshot,
    database: &str,
    page: &Page,
    showing: Showing,
) -> Result<Reply> {
    let owner = catalog::open_database(snapshot, database)?.value;
    let (names, next) = pages::rows(snapshot, keys::container_names(owner.number), page)?;
    let now = catalog::now(snapshot);
    let key = |name: &str| keys::container(owner.number, name);
    let containers = pages::by_name(snapshot, &names, key)?
        .iter()
        .map(|row| Ok(Container::new(&owner, catalog::decode(row)?).to_json(now, showing)))
        .collect::<Result<Vec<_>>>()?;
    Ok(feed(&owner.rid(), "DocumentCollections", containers, next, now).at(owner.place()))
}

/// All containers of a database, as clients see them, and the database.
pub(crate) fn all(
    snapshot: &dyn Snapshot,
    database: &str,
    showing: Showing,
) -> Result<(Database, Vec<Value>)> {
    let owner = catalog::open_database(snapshot, database)?.value;
    let names = pages::all_rows(snapshot, &keys::container_names(owner.number))?;
    let rows = pages::by_name(snapshot, &names, |name| keys::container(owner.number, name))?;
    let now = catalog::now(snapshot);
    let shown = |row: &bytes::Bytes| {
        Ok(Container::new(&owner, catalog::decode(row)?).to_json(now, showing))
    };
    let containers = rows.iter().map(shown).collect::<Result<_>>()?;
    Ok((owner, containers))
}

/// The container that a change is about.
fn open(
    snapshot: &dyn Snapshot,
    at: &ContainerScope,
) -> Result<(Addressed<Database>, ContainerRecord, Container)> {
    let owner = catalog::open_database(snapshot, &at.database)?;
    let record = catalog::find_container_record(snapshot, &owner, &at.container)?
        .ok_or_else(|| not_found(ErrorKind::NotFound))?;
    let container = Container::new(&owner.value, record.clone());
    check_intended(&container, &at.intended)?;
    Ok((owner, record, container))
}

/// Changes a container's definition.
///
/// First all buckets catch up with the definition that is there: what an earlier change
/// expires must not depend on this one. Then all is judged, on a snapshot that has seen
/// them catch up, before anything is written. The definition is recorded in the catalog,
/// which is the promise, and then installed bucket by bucket, each in a commit of its own;
/// what fails in between, or may have landed without an answer, is finished by the
/// background, by the next change or at the next start. While a change is delayed, items
/// live by `in_force` and not by what the record says: so the guard and the log compare
/// the new default with that.
pub(crate) fn replace(clerk: &Clerk<'_>, change: &Replacement, caller: Caller) -> Reply {
    let mut reply = clerk.answer(|snapshot| {
        catch_up(clerk, snapshot, &change.at)?;
        let snapshot = &*clerk.snapshot().map_err(storage_failed)?;
        let now = catalog::now(snapshot);
        let (owner, mut record, old) = open(snapshot, &change.at)?;
        let in_force = record.ttl_at(now);
        record.definition =
            container::parse_replacement(old.definition(), &change.definition, clerk.strict())?;
        catalog::computed(&record.definition.computed)?;
        check_match(&change.condition, &old.etag())?;
        let ttl = record.definition.ttl;
        check_ttl_path(snapshot, &old, &record.definition, in_force)?;
        if ttl != in_force {
            check_guard(clerk, snapshot, &old, ttl, change.confirm_expiry)?;
        }
        let indexes = |definition: &ContainerDefinition| {
            (definition.indexing.effective(), definition.computed.clone())
        };
        if indexes(&record.definition) != indexes(old.definition()) {
            check_rebuilds(clerk, snapshot, &old)?;
        }
        record.epoch += 1;
        caller.name().clone_into(&mut record.changed_by);
        let waits = clerk.settings().change_delay_seconds > 0;
        let keeps = ttl == old.definition().ttl && record.pending_json(now).is_some();
        if record.definition.ttl_path.is_some() {
            // There are no items that it could be too early for.
            record.delayed = None;
        } else if !keeps {
            // A change to what is in force takes back one that was to come.
            record.delayed = (waits && ttl != in_force).then_some(Delayed {
                from: in_force,
                until: now.0 + clerk.settings().change_delay_seconds,
            });
        }
        let (buckets, install) = (record.buckets(), Install::of(&record));
        clerk.begin();
        let reply = record_changed(clerk, owner.value, record, change.showing);
        let installed = match reply.outcome {
            Ok(_) => clerk.install(buckets, &install),
            Err(_) => Ok(()),
        };
        clerk.end(reply.outcome.is_ok() && installed.is_ok());
        installed?;
        if ttl != in_force && reply.outcome.is_ok() {
            tell_of_change(clerk, &old, in_force, ttl, caller);
        }
        Ok(reply)
    });
    if let Ok(success) = &mut reply.outcome
        && let Some((usage, progress)) = figures_after(clerk, &change.at)
    {
        success.usage = Some(usage);
        success.index_progress = change.quota.then_some(progress);
    }
    reply
}

/// Where lives are counted from a property, each item's end was fixed when it was written.
/// So what it was fixed by changes only while there are no items. A write that is under way
/// meanwhile counts as one before the change.
fn check_ttl_path(
    snapshot: &dyn Snapshot,
    old: &Container,
    new: &ContainerDefinition,
    in_force: ContainerTtl,
) -> Result<()> {
    let path = &old.definition().ttl_path;
    let changes = *path != new.ttl_path || path.is_some() && in_force != new.ttl;
    if changes && standing::of(snapshot, old)?.live.items > 0 {
        return Err(Error::not_yet(
            "Changing the ttlPropertyPath, or the defaultTtl beside it, of a container with items",
        ));
    }
    Ok(())
}

/// The line in the log that every change of the default leaves.
fn tell_of_change(
    clerk: &Clerk<'_>,
    old: &Container,
    from: ContainerTtl,
    to: ContainerTtl,
    caller: Caller,
) {
    let condemned = clerk.snapshot().map_err(storage_failed);
    let condemned = condemned.and_then(|snapshot| history::last_condemned(&*snapshot, old));
    tracing::info!(
        target: AUDIT,
        container = %String::from_utf8_lossy(&old.names),
        from = %shown_ttl(from),
        to = %shown_ttl(to),
        by = caller.name(),
        condemned_items = %condemned.map_or_else(|_| "unknown".to_owned(), |items| items.to_string()),
        "defaultTtl changed"
    );
}

fn shown_ttl(ttl: ContainerTtl) -> String {
    ttl.to_json().map_or_else(|| "off".to_owned(), |ttl| ttl.to_string())
}

/// Brings buckets that an earlier change did not reach to where the container
/// is: what that change expires must not depend on the one that follows it.
fn catch_up(clerk: &Clerk<'_>, snapshot: &dyn Snapshot, at: &ContainerScope) -> Result<()> {
    let (_, record, _) = open(snapshot, at)?;
    for bucket in record.buckets() {
        State::policy(&snapshot.head(bucket)).map_err(storage_failed)?;
    }
    let is_behind = |bucket: &Bucket| State::of(&snapshot.head(*bucket)).epoch < record.epoch;
    clerk.install(record.buckets().filter(is_behind), &Install::of(&record))
}

/// What is alive in a container after it was changed, and how far its index is.
fn figures_after(clerk: &Clerk<'_>, at: &ContainerScope) -> Option<(Usage, u8)> {
    let snapshot = clerk.snapshot().ok()?;
    let (_, _, container) = open(&*snapshot, at).ok()?;
    let live = standing::of(&*snapshot, &container).ok()?.live;
    let usage = container.usage(live, clerk.shared().settings.container_quota);
    Some((usage, progress(&clerk.shared().index, &*snapshot, container.buckets()).ok()?))
}

/// Refuses a change of the indexing policy while too many others are under way.
fn check_rebuilds(clerk: &Clerk<'_>, snapshot: &dyn Snapshot, container: &Container) -> Result<()> {
    for bucket in container.buckets() {
        let get = |key: &[u8]| snapshot.get(bucket, key);
        let policies = clerk.shared().index.policies(bucket, &get).map_err(storage_failed)?;
        if policies.is_crowded() {
            return Err(Error::new(
                ErrorKind::ServiceUnavailable,
                "The indexing policy was changed too often for the index to follow. Wait until \
                 its progress is 100, then send the request again.",
            ));
        }
    }
    Ok(())
}

/// Refuses a default that would expire more than the guard lets pass, unless
/// that is what is wanted.
fn check_guard(
    clerk: &Clerk<'_>,
    snapshot: &dyn Snapshot,
    container: &Container,
    default: ContainerTtl,
    confirmed: bool,
) -> Result<()> {
    let Some(percent) = clerk.settings().change_guard_percent.filter(|_| !confirmed) else {
        return Ok(());
    };
    let (expired, live) = standing::would_expire(snapshot, container, default)?;
    #[expect(clippy::cast_precision_loss, reason = "a limit for typos, not a figure")]
    if expired.items as f64 * 100.0 > percent * live.items as f64 {
        return Err(guarded(expired, live, percent));
    }
    Ok(())
}

/// The refusal of a change that would expire more than the guard lets pass.
fn guarded(expired: Count, live: Count, percent: f64) -> Error {
    Error::new(
        ErrorKind::PreconditionFailed,
        format!(
            "This defaultTtl would expire {} of {} items ({} of {} bytes) at once, which is more \
             than the {percent} % that the server lets pass. To expire them, send the header \
             x-dayfly-confirm-expiry: true.",
            expired.items, live.items, expired.bytes, live.bytes
        ),
    )
}

fn record_changed(
    clerk: &Clerk<'_>,
    database: Database,
    record: ContainerRecord,
    showing: Showing,
) -> Reply {
    clerk.commit(CatalogPlan::frees(move |_: &View<'_>| {
        let (database, mut record) = (database.clone(), record.clone());
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            record.stamp(stamp);
            record.put(batch);
            committed(&database, record, 200, stamp, showing)
        }))
    }))
}

/// Removes a container. Its buckets are cleared later, by the purge.
pub(crate) fn delete(clerk: &Clerk<'_>, at: &ContainerScope, condition: &Condition) -> Reply {
    clerk.answer(|snapshot| {
        let (owner, record, container) = open(snapshot, at)?;
        check_match(condition, &container.etag())?;
        let gone = offers::rows_of(snapshot, &record.rid())?;
        let shares = gone.is_empty() && offers::has_offer(snapshot, &owner.value.rid())?;
        let key = keys::container(record.database, &container.definition().id);
        let buckets: Vec<_> = record.buckets().collect();
        clerk.begin();
        let reply = clerk.commit(CatalogPlan::frees(move |_: &View<'_>| {
            let (record, key, gone) = (record.clone(), key.clone(), gone.clone());
            Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
                record.condemn(&key, shares, batch);
                for row in gone {
                    batch.delete(row);
                }
                Reply::ok(Success::new(204, ""), Timestamp(stamp.ts), Charge::CHANGE)
            }))
        }));
        clerk.end(reply.outcome.is_ok() && clerk.close_buckets(&buckets));
        Ok(reply.at(owner.value.place()))
    })
}

/// Shows the conflicts: two regions that write can be at odds, and there is one.
pub(crate) fn conflicts(opened: &Opened) -> Reply {
    let rid = &opened.container.rid_text;
    feed(rid, "Conflicts", Vec::new(), None, opened.now()).at(opened.container.place(None, None))
}

/// What the log shows also when it is quiet.
const AUDIT: &str = "audit";
