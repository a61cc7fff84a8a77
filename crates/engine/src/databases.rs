//! Databases: create, read, list, delete.

use dayfly_model::charge::Charge;
use dayfly_model::rid::DatabaseRid;
use dayfly_model::throughput::Throughput;
use dayfly_model::{Error, ErrorKind, Result, Timestamp, id};
use dayfly_storage::{Batch, Direction, Draft, Snapshot, Stamp, View};
use serde_json::{Value, json};

use crate::catalog::{self, CatalogView, ContainerRecord, Database, Numbers, not_found};
use crate::clerk::{CatalogPlan, Clerk};
use crate::condition::{check_match, taken};
use crate::offers::{self, Offer};
use crate::operation::{Condition, Page};
use crate::reply::{Reply, Success, feed, storage_failed};
use crate::{encryption_keys, keys, pages, version};

/// How many containers one delete of a database looks at.
pub(crate) const CONTAINERS_MAX: usize = 100_000;

/// Makes a database, with an offer if it has throughput of its own.
pub(crate) fn create(clerk: &Clerk<'_>, id: &str, throughput: Option<Throughput>) -> Reply {
    let (id, settings) = (id.to_owned(), *clerk.settings());
    clerk.commit(CatalogPlan::grows(move |view: &View<'_>| {
        offers::check_database(&settings, throughput)?;
        id::check_resource_id(&id)?;
        if catalog::read::<_, Database>(view, &keys::database(&id))?.is_some() {
            return Err(taken());
        }
        check_no_rid(view, &id)?;
        let mut numbers = Numbers::read(view)?;
        numbers.database = next_number(view, numbers.database, &id)?;
        let id = id.clone();
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            let database = Database {
                id,
                number: numbers.database,
                ts: stamp.ts,
                version: version::version(stamp, 1),
                opened: stamp.opened,
            };
            batch.put(keys::database(&database.id), catalog::encode(&database));
            batch.put(keys::database_name(database.number), database.id.clone().into_bytes());
            if let Some(throughput) = throughput {
                numbers.offer += 1;
                let rid = DatabaseRid(database.number).encode();
                let link = format!("dbs/{rid}/");
                Offer::new(numbers.offer, throughput, rid, link, stamp).put(batch);
            }
            numbers.write(batch);
            shown(&database, 201, Timestamp(stamp.ts), Charge::CHANGE)
        }))
    }))
}

/// A database called like the RID of another could not be reached by its name.
fn check_no_rid(view: &View<'_>, id: &str) -> Result<()> {
    match catalog::database_with_rid(view, id)? {
        None => Ok(()),
        Some(other) => Err(Error::bad_request(format!(
            "The id '{id}' is the RID of the database '{}', and would lead there. Choose another id.",
            other.id
        ))),
    }
}

/// The number of the database `id`, after `last`. A RID that is somebody's name
/// is given to nobody.
fn next_number(view: &View<'_>, last: u32, id: &str) -> Result<u32> {
    let mut number = last + 1;
    loop {
        let rid = DatabaseRid(number).encode();
        if rid != id && catalog::read::<_, Database>(view, &keys::database(&rid))?.is_none() {
            return Ok(number);
        }
        number += 1;
    }
}

/// Shows a database.
pub(crate) fn read(snapshot: &dyn Snapshot, segment: &str, condition: &Condition) -> Result<Reply> {
    let found =
        catalog::find_database(snapshot, segment)?.ok_or_else(|| not_found(ErrorKind::NotFound))?;
    let mut reply = shown(&found.value, 200, catalog::now(snapshot), Charge::LOOK);
    if let Ok(success) = &mut reply.outcome {
        success.unless_known(condition);
    }
    Ok(reply)
}

fn shown(database: &Database, status: u16, now: Timestamp, charge: Charge) -> Reply {
    let body = database.to_json().to_string();
    let success = Success { etag: Some(database.etag()), ..Success::new(status, body) };
    Reply::ok(success, now, charge)
}

/// Shows the databases of the account.
pub(crate) fn list(snapshot: &dyn Snapshot, page: &Page) -> Result<Reply> {
    let (names, next) = pages::rows(snapshot, keys::database_names(), page)?;
    let databases = pages::by_name(snapshot, &names, keys::database)?
        .iter()
        .map(|row| Ok(catalog::decode::<Database>(row)?.to_json()))
        .collect::<Result<Vec<_>>>()?;
    Ok(feed("", "Databases", databases, next, catalog::now(snapshot)))
}

/// All databases, as clients see them.
pub(crate) fn all(snapshot: &dyn Snapshot) -> Result<Vec<Value>> {
    let names = pages::all_rows(snapshot, &keys::database_names())?;
    let rows = pages::by_name(snapshot, &names, keys::database)?;
    rows.iter().map(|row| Ok(catalog::decode::<Database>(row)?.to_json())).collect()
}

/// Removes a database with its containers, offers and client encryption keys.
pub(crate) fn delete(clerk: &Clerk<'_>, segment: &str, condition: Condition) -> Reply {
    let segment = segment.to_owned();
    let condemned = std::sync::Arc::new(std::sync::Mutex::new((None, Vec::new())));
    let found = std::sync::Arc::clone(&condemned);
    clerk.begin();
    let reply = clerk.commit(CatalogPlan::frees(move |view: &View<'_>| {
        let database = catalog::find_database(view, &segment)?
            .ok_or_else(|| not_found(ErrorKind::NotFound))?
            .value;
        check_match(&condition, &database.etag())?;
        let rows = CatalogView::scan(view, &keys::containers(database.number), CONTAINERS_MAX)
            .map_err(storage_failed)?;
        let containers = rows
            .iter()
            .map(|(key, row)| Ok((key.to_vec(), catalog::decode::<ContainerRecord>(row)?)))
            .collect::<Result<Vec<_>>>()?;
        let mut gone = offers::rows_of(view, &database.rid())?;
        gone.extend(encryption_keys::rows_of(view, database.number)?);
        for (_, record) in &containers {
            gone.extend(offers::rows_of(view, &record.rid())?);
        }
        if let Ok(mut found) = found.lock() {
            let buckets = containers.iter().flat_map(|(_, record)| record.buckets());
            *found = (Some(DatabaseRid(database.number)), buckets.collect());
        }
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            for (key, record) in &containers {
                record.condemn(key, false, batch);
            }
            for key in gone {
                batch.delete(key);
            }
            batch.delete(keys::database(&database.id));
            batch.delete(keys::database_name(database.number));
            Reply::ok(Success::new(204, ""), Timestamp(stamp.ts), Charge::CHANGE)
        }))
    }));
    let refusals = [ErrorKind::NotFound, ErrorKind::PreconditionFailed];
    clerk.end(match &reply.outcome {
        Ok(_) => {
            let condemned = condemned.lock().map(|found| found.clone());
            let (database, buckets) = condemned.unwrap_or_default();
            if let Some(database) = database {
                clerk.shares_no_more(database);
            }
            clerk.close_buckets(&buckets)
        }
        Err(error) => refusals.contains(&error.kind),
    });
    reply
}

/// How many databases a reset looks at together.
const RESET_STEP: usize = 100;

/// Removes all databases, if this is a server for tests. The clerk is at nothing
/// else meanwhile, so none is made between the first and the last.
pub(crate) fn reset(clerk: &Clerk<'_>) -> Reply {
    if !clerk.settings().resettable {
        return Error::new(
            ErrorKind::Forbidden,
            "Everything can be removed at once only when the server was started with \
             --test-clock or --memory.",
        )
        .into();
    }
    removed_all(clerk).unwrap_or_else(|reply| reply)
}

fn removed_all(clerk: &Clerk<'_>) -> Result<Reply, Reply> {
    let mut removed = 0u64;
    loop {
        let snapshot = clerk.snapshot()?;
        let rows = snapshot
            .scan(keys::CATALOG, &keys::databases(), Direction::Forward, RESET_STEP)
            .map_err(storage_failed)?;
        if rows.is_empty() {
            let body = json!({"removedDatabases": removed}).to_string();
            return Ok(Reply::ok(Success::new(200, body), catalog::now(&*snapshot), 0.0));
        }
        let before = removed;
        for (_, row) in rows {
            let database: Database = catalog::decode(&row)?;
            let reply = delete(clerk, &database.rid(), Condition::default());
            match &reply.outcome {
                Ok(_) => removed += 1,
                // One that has this RID as its name went instead of it, or before.
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(_) => return Err(reply),
            }
        }
        if removed == before {
            let why = "There are databases that could not be removed.";
            return Err(Error::new(ErrorKind::Internal, why).into());
        }
    }
}
