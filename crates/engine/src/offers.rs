//! Offers: how much throughput a database or container was given. Recorded and
//! shown; enforcing them is another matter.

use dayfly_model::rid::OfferRid;
use dayfly_model::throughput::Throughput;
use dayfly_model::{ErrorKind, Result};
use dayfly_storage::{Batch, Snapshot, Stamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::catalog::{self, CatalogView, not_found};
use crate::operation::Page;
use crate::reply::{CHARGE_LOOK_RU, Reply, Success, feed, storage_failed};
use crate::{keys, pages, version};

/// An offer, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Offer {
    number: u32,
    /// `content`, as clients see it.
    content: Value,
    /// The name of its level, if it was given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    /// The RID of the database or container.
    resource_rid: String,
    /// Its `_self`.
    resource: String,
    ts: u64,
    version: u64,
    opened: u32,
}

impl Offer {
    pub(crate) fn new(
        number: u32,
        throughput: Throughput,
        resource_rid: String,
        resource: String,
        stamp: Stamp,
    ) -> Self {
        Offer {
            number,
            content: throughput.to_content(),
            level: throughput.level().map(|level| level.name().to_owned()),
            resource_rid,
            resource,
            ts: stamp.ts,
            version: version::version(stamp, 1),
            opened: stamp.opened,
        }
    }

    pub(crate) fn put(&self, batch: &mut Batch) {
        batch.put(keys::offer(self.number), catalog::encode(self));
        let number = self.number.to_be_bytes().to_vec();
        batch.put(keys::offer_of(&self.resource_rid), number);
    }

    fn etag(&self) -> String {
        version::etag(0, self.opened, self.version)
    }

    fn to_json(&self) -> Value {
        let rid = OfferRid(self.number).encode();
        json!({
            "id": rid,
            "_rid": rid,
            "_self": format!("offers/{rid}/"),
            "_etag": self.etag(),
            "_ts": self.ts,
            "offerVersion": if self.level.is_some() { "V1" } else { "V2" },
            "offerType": self.level.as_deref().unwrap_or("Invalid"),
            "resource": self.resource,
            "offerResourceId": self.resource_rid,
            "content": self.content,
        })
    }
}

fn number_of<V: CatalogView + ?Sized>(view: &V, rid: &str) -> Result<Option<u32>> {
    let row = view.get(&keys::offer_of(rid)).map_err(storage_failed)?;
    Ok(row.and_then(|bytes| Some(u32::from_be_bytes(bytes.as_ref().try_into().ok()?))))
}

/// Whether the database or container with this RID has an offer of its own.
pub(crate) fn has_offer<V: CatalogView + ?Sized>(view: &V, rid: &str) -> Result<bool> {
    Ok(number_of(view, rid)?.is_some())
}

/// The keys of the offer of a database or container, for whoever removes it.
pub(crate) fn rows_of<V: CatalogView + ?Sized>(view: &V, rid: &str) -> Result<Vec<Vec<u8>>> {
    let number = number_of(view, rid)?;
    Ok(number.map_or_else(Vec::new, |number| vec![keys::offer(number), keys::offer_of(rid)]))
}

/// Shows an offer.
pub(crate) fn read(snapshot: &dyn Snapshot, rid: &str) -> Result<Reply> {
    let missing = || not_found(ErrorKind::NotFound);
    let OfferRid(number) = OfferRid::parse(rid).ok_or_else(missing)?;
    let offer: Offer = catalog::read(snapshot, &keys::offer(number))?.ok_or_else(missing)?;
    let success = Success {
        etag: Some(offer.etag()),
        throughput_min: Throughput::from_content(&offer.content).map(Throughput::least).ok(),
        ..Success::new(200, offer.to_json().to_string())
    };
    Ok(Reply::ok(success, catalog::now(snapshot), CHARGE_LOOK_RU))
}

/// Shows the offers of the account.
pub(crate) fn list(snapshot: &dyn Snapshot, page: &Page) -> Result<Reply> {
    let (rows, next) = pages::rows(snapshot, keys::offers(), page)?;
    let offers = rows.iter().map(|(_, row)| json_of(row)).collect::<Result<Vec<_>>>()?;
    Ok(feed("", "Offers", offers, next, catalog::now(snapshot)))
}

/// All offers of the account, as clients see them.
pub(crate) fn all(snapshot: &dyn Snapshot) -> Result<Vec<Value>> {
    pages::all_rows(snapshot, &keys::offers())?.iter().map(|(_, row)| json_of(row)).collect()
}

fn json_of(row: &[u8]) -> Result<Value> {
    Ok(catalog::decode::<Offer>(row)?.to_json())
}
