//! Client encryption keys: create, read, list, replace. They lie in a database, for all of
//! its containers, and go with it. To the server they are what clients wrapped: it keeps
//! and shows them.

use dayfly_model::charge::Charge;
use dayfly_model::rid::EncryptionKeyRid;
use dayfly_model::{Error, ErrorKind, Result, Timestamp, encryption_key};
use dayfly_storage::{Batch, Draft, Snapshot, Stamp, View};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::catalog::{self, Addressed, CatalogView, Database, Numbers, not_found};
use crate::clerk::{CatalogPlan, Clerk};
use crate::condition::{check_match, taken};
use crate::operation::{Condition, Page};
use crate::reply::{Reply, Success, feed, storage_failed};
use crate::{keys, pages, version};

/// How many keys a database can have.
pub(crate) const KEYS_MAX: usize = 1000;

/// A client encryption key, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EncryptionKey {
    database: u32,
    number: u32,
    id: String,
    /// All that the client gave, the id too.
    content: Map<String, Value>,
    ts: u64,
    version: u64,
    opened: u32,
}

impl EncryptionKey {
    fn etag(&self) -> String {
        version::etag(0, self.opened, self.version)
    }

    fn to_json(&self, owner: &Database) -> Value {
        let rid = EncryptionKeyRid { database: self.database, key: self.number }.encode();
        let mut body = self.content.clone();
        let system = json!({
            "_rid": rid,
            "_self": format!("dbs/{}/clientencryptionkeys/{rid}/", owner.rid()),
            "_etag": self.etag(),
            "_ts": self.ts,
        });
        if let Value::Object(system) = system {
            body.extend(system);
        }
        Value::Object(body)
    }

    /// Fills in what the commit knows, and writes it.
    fn put(mut self, stamp: Stamp, batch: &mut Batch) -> EncryptionKey {
        self.ts = stamp.ts;
        self.version = version::version(stamp, 1);
        self.opened = stamp.opened;
        batch.put(keys::encryption_key(self.database, &self.id), catalog::encode(&self));
        let name = keys::encryption_key_name(self.database, self.number);
        batch.put(name, self.id.clone().into_bytes());
        self
    }
}

/// Makes a key.
pub(crate) fn create(clerk: &Clerk<'_>, database: &str, body: &[u8]) -> Reply {
    let (database, body) = (database.to_owned(), body.to_vec());
    clerk.commit(CatalogPlan::grows(move |view: &View<'_>| {
        let owner = catalog::open_database(view, &database)?.value;
        let (id, content) = encryption_key::parse(&body)?;
        if is_there(view, &owner, &id)? {
            return Err(taken());
        }
        check_room(view, &owner)?;
        let mut numbers = Numbers::read(view)?;
        numbers.encryption_key += 1;
        let (database, number) = (owner.number, numbers.encryption_key);
        let key = EncryptionKey { database, number, id, content, ts: 0, version: 0, opened: 0 };
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            numbers.write(batch);
            shown(&owner, &key.put(stamp, batch), 201, Timestamp(stamp.ts), Charge::CHANGE)
        }))
    }))
}

fn check_room(view: &View<'_>, owner: &Database) -> Result<()> {
    let rows = CatalogView::scan(view, &keys::encryption_key_names(owner.number), KEYS_MAX)
        .map_err(storage_failed)?;
    if rows.len() < KEYS_MAX {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "The database '{}' has {KEYS_MAX} client encryption keys, and can have no more.",
        owner.id
    )))
}

/// Replaces a key, when the key that wraps it was changed.
pub(crate) fn replace(
    clerk: &Clerk<'_>,
    database: &str,
    segment: &str,
    body: &[u8],
    condition: Condition,
) -> Reply {
    let (database, segment, body) = (database.to_owned(), segment.to_owned(), body.to_vec());
    clerk.commit(CatalogPlan::grows(move |view: &View<'_>| {
        let owner = catalog::open_database(view, &database)?;
        let old = find(view, &owner, &segment)?;
        let (id, content) = encryption_key::parse(&body)?;
        if id != old.id {
            return Err(Error::bad_request(format!(
                "The id of the client encryption key '{}' cannot be changed.",
                old.id
            )));
        }
        check_match(&condition, &old.etag())?;
        let (owner, key) = (owner.value, EncryptionKey { content, ..old });
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            shown(&owner, &key.put(stamp, batch), 200, Timestamp(stamp.ts), Charge::CHANGE)
        }))
    }))
}

/// Shows a key.
pub(crate) fn read(
    snapshot: &dyn Snapshot,
    database: &str,
    segment: &str,
    condition: &Condition,
) -> Result<Reply> {
    let owner = catalog::open_database(snapshot, database)?;
    let key = find(snapshot, &owner, segment)?;
    let mut reply = shown(&owner.value, &key, 200, catalog::now(snapshot), Charge::LOOK);
    if let Ok(success) = &mut reply.outcome {
        success.unless_known(condition);
    }
    Ok(reply)
}

/// The key called `segment`, in a database that was named in the same way; it must be there.
fn find<V: CatalogView + ?Sized>(
    view: &V,
    owner: &Addressed<Database>,
    segment: &str,
) -> Result<EncryptionKey> {
    let number = owner.value.number;
    let name = if owner.by_rid {
        let rid = EncryptionKeyRid::parse(segment).filter(|rid| rid.database == number);
        let name = rid.map(|rid| keys::encryption_key_name(number, rid.key));
        let name = name.map(|name| view.get(&name).map_err(storage_failed)).transpose()?;
        name.flatten().map(|name| String::from_utf8_lossy(&name).into_owned())
    } else {
        Some(segment.to_owned())
    };
    let key = name.map(|name| catalog::read(view, &keys::encryption_key(number, &name)));
    key.transpose()?.flatten().ok_or_else(|| not_found(ErrorKind::NotFound))
}

/// Whether a database has a key with this id.
pub(crate) fn is_there<V: CatalogView + ?Sized>(
    view: &V,
    owner: &Database,
    id: &str,
) -> Result<bool> {
    let row = view.get(&keys::encryption_key(owner.number, id)).map_err(storage_failed)?;
    Ok(row.is_some())
}

fn shown(
    owner: &Database,
    key: &EncryptionKey,
    status: u16,
    now: Timestamp,
    charge: Charge,
) -> Reply {
    let body = key.to_json(owner).to_string();
    let success = Success { etag: Some(key.etag()), ..Success::new(status, body) };
    Reply::ok(success, now, charge).at(owner.place())
}

/// Shows the keys of a database, in the order in which they were made.
pub(crate) fn list(snapshot: &dyn Snapshot, database: &str, page: &Page) -> Result<Reply> {
    let owner = catalog::open_database(snapshot, database)?.value;
    let (names, next) = pages::rows(snapshot, keys::encryption_key_names(owner.number), page)?;
    let keys = named(snapshot, &owner, &names)?;
    let now = catalog::now(snapshot);
    Ok(feed(&owner.rid(), "ClientEncryptionKeys", keys, next, now).at(owner.place()))
}

/// All keys of a database, as clients see them, and the database.
pub(crate) fn all(snapshot: &dyn Snapshot, database: &str) -> Result<(Database, Vec<Value>)> {
    let owner = catalog::open_database(snapshot, database)?.value;
    let names = pages::all_rows(snapshot, &keys::encryption_key_names(owner.number))?;
    let keys = named(snapshot, &owner, &names)?;
    Ok((owner, keys))
}

fn named(
    snapshot: &dyn Snapshot,
    owner: &Database,
    names: &[dayfly_storage::Pair],
) -> Result<Vec<Value>> {
    let key = |name: &str| keys::encryption_key(owner.number, name);
    let rows = pages::by_name(snapshot, names, key)?;
    rows.iter().map(|row| Ok(catalog::decode::<EncryptionKey>(row)?.to_json(owner))).collect()
}

/// The rows of all keys of a database, for whoever removes it.
pub(crate) fn rows_of<V: CatalogView + ?Sized>(view: &V, database: u32) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for range in [keys::encryption_keys(database), keys::encryption_key_names(database)] {
        let rows = view.scan(&range, KEYS_MAX).map_err(storage_failed)?;
        found.extend(rows.into_iter().map(|(key, _)| key.to_vec()));
    }
    Ok(found)
}

/// Whether every key has its name, every name its key, and all their database.
pub(crate) fn are_whole(snapshot: &dyn Snapshot) -> Result<bool> {
    let all = |range| CatalogView::scan(snapshot, &range, usize::MAX).map_err(storage_failed);
    let (rows, names) = (all(keys::all_encryption_keys())?, all(keys::all_encryption_key_names())?);
    let mut whole = rows.len() == names.len();
    for (place, row) in &rows {
        let key: EncryptionKey = catalog::decode(row)?;
        let name = CatalogView::get(snapshot, &keys::encryption_key_name(key.database, key.number));
        let owner = CatalogView::get(snapshot, &keys::database_name(key.database));
        whole &= **place == *keys::encryption_key(key.database, &key.id)
            && name.map_err(storage_failed)?.is_some_and(|name| *name == *key.id.as_bytes())
            && owner.map_err(storage_failed)?.is_some();
    }
    Ok(whole)
}
