//! Offers: how much throughput a database or container was given. Recorded, changed and
//! shown; enforcing them is another matter.

use dayfly_model::charge::Charge;
use dayfly_model::rid::{ContainerRid, DatabaseRid, OfferRid};
use dayfly_model::throughput::{Floor, Throughput};
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::{Batch, Draft, Snapshot, Stamp, View};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::catalog::{self, CatalogView, ContainerRecord, not_found};
use crate::clerk::{CatalogPlan, Clerk};
use crate::condition::check_match;
use crate::operation::{OfferReplacement, Page};
use crate::reply::{Reply, Success, feed, storage_failed};
use crate::settings::EngineSettings;
use crate::{keys, pages, splits, standing, version};

/// Where the most that was ever given stands in the content.
const EVER: &str = "/offerMinimumThroughputParameters/maxThroughputEverProvisioned";

const GIGABYTE: u64 = 1 << 30;

/// What a serverless account says of offers.
const NO_OFFERS: &str = "Reading or replacing offers is not supported for serverless accounts.";

/// What it says to whoever makes a container with a throughput.
const NO_CONTAINER_OFFER: &str = "Setting offer throughput or autopilot on container is not \
                                  supported for serverless accounts.";

/// And to whoever makes a database with one.
const NO_DATABASE_OFFER: &str =
    "Shared throughput database creation is not supported for serverless accounts.";

/// Offers can be looked at and changed, unless the account has none.
pub(crate) fn check_account(settings: &EngineSettings) -> Result<()> {
    if settings.serverless { Err(Error::bad_request(NO_OFFERS)) } else { Ok(()) }
}

/// A container may be given a throughput.
pub(crate) fn check_container(
    settings: &EngineSettings,
    throughput: Option<Throughput>,
) -> Result<()> {
    check_given(settings, throughput, NO_CONTAINER_OFFER)
}

/// A database may be given a throughput.
pub(crate) fn check_database(
    settings: &EngineSettings,
    throughput: Option<Throughput>,
) -> Result<()> {
    check_given(settings, throughput, NO_DATABASE_OFFER)
}

fn check_given(
    settings: &EngineSettings,
    throughput: Option<Throughput>,
    refusal: &str,
) -> Result<()> {
    match throughput {
        Some(_) if settings.serverless => Err(Error::bad_request(refusal)),
        _ => Ok(()),
    }
}

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

    /// The most that was ever given.
    fn ever(&self) -> u32 {
        let ever = self.content.pointer(EVER).and_then(Value::as_u64);
        ever.and_then(|ever| u32::try_from(ever).ok()).unwrap_or_default()
    }

    /// What it can not go below.
    fn floor(&self, load: OfferLoad) -> Floor {
        let gigabytes = load.live_bytes.div_ceil(GIGABYTE);
        Floor {
            ever: self.ever(),
            gigabytes: u32::try_from(gigabytes).unwrap_or(u32::MAX),
            sharing: load.sharing,
        }
    }

    fn change(&mut self, throughput: Throughput, ever: u32, stamp: Stamp) {
        self.content = throughput.to_content();
        if let Some(place) = self.content.pointer_mut(EVER) {
            *place = ever.into();
        }
        if let Value::Object(content) = &mut self.content {
            content.insert("offerLastReplaceTimestamp".to_owned(), stamp.ts.into());
        }
        self.level = None;
        self.ts = stamp.ts;
        self.version = version::version(stamp, 1);
        self.opened = stamp.opened;
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

fn find<V: CatalogView + ?Sized>(view: &V, rid: &str) -> Result<Offer> {
    let missing = || not_found(ErrorKind::NotFound);
    let OfferRid(number) = OfferRid::parse(rid).ok_or_else(missing)?;
    catalog::read(view, &keys::offer(number))?.ok_or_else(missing)
}

/// Shows an offer.
pub(crate) fn read(snapshot: &dyn Snapshot, rid: &str) -> Result<Reply> {
    let offer = find(snapshot, rid)?;
    let load = load_of(snapshot, &offer.resource_rid)?;
    Ok(shown(&offer, load, catalog::now(snapshot), Charge::LOOK))
}

fn shown(offer: &Offer, load: OfferLoad, now: Timestamp, charge: Charge) -> Reply {
    let throughput = Throughput::of_content(&offer.content);
    let success = Success {
        etag: Some(offer.etag()),
        throughput_min: throughput.map(|throughput| throughput.least(offer.floor(load))),
        ..Success::new(200, offer.to_json().to_string())
    };
    Reply::ok(success, now, charge)
}

/// Changes the throughput of a database or container. It counts at once, with the ranges
/// that it needs: there is nothing to be moved for it.
pub(crate) fn replace(clerk: &Clerk<'_>, replacement: OfferReplacement) -> Reply {
    let (load, body, rid) = match clerk.look(|snapshot| {
        check_account(clerk.settings())?;
        let rid = find(snapshot, &replacement.offer)?.resource_rid;
        Ok((load_of(snapshot, &rid)?, read_body(&replacement.body)?, rid))
    }) {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    let plan = CatalogPlan::grows(move |view: &View<'_>| {
        let mut offer = find(view, &replacement.offer)?;
        check_body(&offer, &body)?;
        check_match(&replacement.condition, &offer.etag())?;
        let old = Throughput::of_content(&offer.content)
            .ok_or_else(|| Error::new(ErrorKind::Internal, "The offer cannot be read."))?;
        let content = body.get("content").unwrap_or(&Value::Null);
        let new = old.replaced(content, replacement.migration, offer.floor(load))?;
        let ever = offer.ever().max(new.max());
        let divided = splits::for_throughput(view, &offer.resource_rid, new)?;
        Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
            if let Some(container) = divided {
                container.put(batch);
            }
            offer.change(new, ever, stamp);
            offer.put(batch);
            shown(&offer, load, Timestamp(stamp.ts), Charge::CHANGE)
        }))
    });
    splits::around(clerk, &rid, || clerk.commit(plan))
}

fn read_body(body: &[u8]) -> Result<Value> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|why| Error::bad_request(format!("The offer is not valid JSON: {why}.")))?;
    if body.is_object() { Ok(body) } else { Err(Error::bad_request("The offer is no object.")) }
}

/// The path says which offer is meant. A body that names another one, or that is for
/// another resource or of another kind, is a mistake.
fn check_body(offer: &Offer, body: &Value) -> Result<()> {
    let shown = offer.to_json();
    let bare = |value: &Value| value.as_str().map(|text| text.trim_matches('/').to_owned());
    for name in ["id", "_rid", "offerResourceId", "resource"] {
        if let Some(given) = body.get(name)
            && bare(given) != shown.get(name).and_then(bare)
        {
            return Err(Error::bad_request(format!(
                "The '{name}' of the offer is {given}, but must be {}.",
                shown.get(name).unwrap_or(&Value::Null)
            )));
        }
    }
    match body.get("offerVersion") {
        None => Ok(()),
        Some(version) if version == "V2" => Ok(()),
        Some(other) => Err(Error::bad_request(format!(
            "The offerVersion is {other}, but only an offer of the version \"V2\" can be put."
        ))),
    }
}

/// What an offer is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfferLoad {
    pub(crate) live_bytes: u64,
    /// How many containers share it.
    pub(crate) sharing: u32,
}

/// What the offer of a database or container is for: the containers that have no other.
pub(crate) fn load_of(snapshot: &dyn Snapshot, rid: &str) -> Result<OfferLoad> {
    let mut load = OfferLoad::default();
    if let Some(container) = ContainerRid::parse(rid) {
        let name = keys::container_name(container.database, container.container);
        let name = CatalogView::get(snapshot, &name).map_err(storage_failed)?;
        let id = name.map(|name| String::from_utf8_lossy(&name).into_owned());
        let record =
            id.map(|id| catalog::read(snapshot, &keys::container(container.database, &id)));
        if let Some(record) = record.transpose()?.flatten() {
            load.live_bytes = live_bytes(snapshot, &record)?;
        }
    } else if let Some(DatabaseRid(number)) = DatabaseRid::parse(rid) {
        for (_, row) in pages::all_rows(snapshot, &keys::containers(number))? {
            let record: ContainerRecord = catalog::decode(&row)?;
            if !has_offer(snapshot, &record.rid())? {
                load.sharing += 1;
                load.live_bytes += live_bytes(snapshot, &record)?;
            }
        }
    }
    Ok(load)
}

fn live_bytes(snapshot: &dyn Snapshot, record: &ContainerRecord) -> Result<u64> {
    let (now, mut bytes) = (catalog::now(snapshot), 0);
    standing::each_bucket(snapshot, record.buckets(), &mut |lives, policy| {
        bytes += lives.standing(policy, now)?.live.bytes;
        Ok(())
    })
    .map_err(storage_failed)?;
    Ok(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is alive has to be served: 1 RU/s for each GB, 10 where it scales.
    #[test]
    fn the_least_follows_what_is_alive() {
        let stamp = Stamp { lsn: 1, ts: 1000, opened: 1 };
        let scales = Throughput::Autoscale { max: 20_000, increment: None };
        for (throughput, gigabytes, least) in [
            (Throughput::Manual(1_000), 0, 400),
            (Throughput::Manual(1_000), 400, 400),
            (Throughput::Manual(1_000), 401, 500),
            (Throughput::Manual(100_000), 5, 1_000),
            (scales, 100, 2_000),
            (scales, 500, 5_000),
            (scales, 501, 6_000),
        ] {
            let offer = Offer::new(1, throughput, "rid".to_owned(), "dbs/rid/".to_owned(), stamp);
            let load = OfferLoad { live_bytes: gigabytes * GIGABYTE, sharing: 0 };
            assert_eq!(throughput.least(offer.floor(load)), least, "{throughput:?} {gigabytes}");
            // A byte more is another GB.
            let more = OfferLoad { live_bytes: load.live_bytes + 1, ..load };
            assert_eq!(offer.floor(more).gigabytes, offer.floor(load).gigabytes + 1);
        }
    }
}
