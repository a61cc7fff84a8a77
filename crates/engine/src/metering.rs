//! Who may take how much of a throughput: admission, and what is charged.
//!
//! ```text
//! purse     the meters of one offer: of a container's own, or of what a database shares
//! ledger    what became of its units in each second of the last hour
//! ```
//!
//! A request is admitted before it is carried out, and its charge is taken when it is
//! answered. In the mode `measured` the same is counted, and nobody is refused.
//!
//! All of this is in memory. A purse is made when an offer is first used, and thrown away
//! when it is as if nobody had used it; the meters of one that was just made are full. What
//! an offer says is read again when one was changed, or ranges were divided.

mod ledger;
mod purse;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use dayfly_model::Result;
use dayfly_model::charge::Charge;
use dayfly_model::meter::{Service, Throttled};
use dayfly_model::rid::{ContainerRid, DatabaseRid};
use dayfly_model::throughput::Throughput;
use dayfly_storage::{Snapshot, Store};
use serde::Deserialize;
use serde_json::Value;

pub use self::ledger::HOUR;
pub(crate) use self::ledger::{Ledger, LedgerSecond};
pub(crate) use self::purse::{Chore, Purse, Spent};
use crate::catalog::{self, CatalogView, Container, ContainerRecord};
use crate::keys::{self, CATALOG};
use crate::locks::lock;
use crate::operation::Part;
use crate::parts;
use crate::reply::storage_failed;
use crate::settings::{EngineSettings, ThroughputMode};

/// What is shared has one meter, under this number.
const SHARED_RANGE: u32 = 0;

/// Of how many containers it is known what they are offered.
const KNOWN_MAX: usize = 10_000;

/// How often purses are looked through for those that nobody uses, in milliseconds.
const SWEEP_PERIOD_MS: u64 = 60_000;

/// Whose throughput it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Payer {
    /// A container's own.
    Container(ContainerRid),
    /// What a database shares among those of its containers that have none.
    Database(DatabaseRid),
}

/// What a container is offered, by itself or with others.
#[derive(Clone, Debug)]
pub(crate) struct Offered {
    /// The last commit of the catalog when it was read there.
    pub(crate) lsn: u64,
    pub(crate) payer: Payer,
    /// The most that it gives in a second.
    pub(crate) max: u32,
    /// Whether it scales up to that.
    pub(crate) scales: bool,
    /// When it was last changed, in milliseconds.
    pub(crate) since_ms: u64,
    /// The numbers of the ranges that have a meter each. What is shared has one meter.
    pub(crate) ranges: Vec<u32>,
}

/// What the catalog says of a container's offer.
struct KnownOffer {
    /// The last commit of the catalog when it said it.
    lsn: u64,
    offered: Option<Arc<Offered>>,
    /// Its purse, as long as that is kept.
    purse: Weak<Mutex<Purse>>,
}

/// An offer, as far as it is of interest here.
#[derive(Deserialize)]
struct OfferContent {
    content: Value,
    ts: u64,
}

/// The purse of an offer, for all who use it.
pub(crate) type SharedPurse = Arc<Mutex<Purse>>;

/// All that is metered.
pub(crate) struct Metering {
    mode: ThroughputMode,
    burst: bool,
    /// Whether nothing is offered to anybody.
    serverless: bool,
    opened_ms: u64,
    offers: quick_cache::sync::Cache<u32, Arc<KnownOffer>>,
    /// The catalog's commit since which no offer was changed, and no range divided.
    changed: AtomicU64,
    /// The database of each container, as far as it was asked.
    databases: Mutex<HashMap<u32, u32>>,
    purses: RwLock<HashMap<Payer, SharedPurse>>,
    /// How many seconds all ledgers hold.
    held_seconds: Arc<AtomicUsize>,
    swept_ms: AtomicU64,
}

impl Metering {
    pub(crate) fn new(settings: &EngineSettings, store: &dyn Store) -> Metering {
        let opened_ms = store.milliseconds();
        Metering {
            mode: settings.throughput,
            burst: settings.burst,
            serverless: settings.serverless,
            opened_ms,
            offers: quick_cache::sync::Cache::new(KNOWN_MAX),
            changed: AtomicU64::new(0),
            databases: Mutex::default(),
            purses: RwLock::default(),
            held_seconds: Arc::default(),
            swept_ms: AtomicU64::new(opened_ms),
        }
    }

    /// What holds for an offer for which nothing else was said.
    pub(crate) fn mode(&self) -> ThroughputMode {
        self.mode
    }

    /// Whether a request to a part of a container may be carried out, and to whom its charge
    /// goes; to nobody, if the container is offered nothing, or has no such part.
    pub(crate) fn admit(
        &self,
        store: &Arc<dyn Store>,
        snapshot: &dyn Snapshot,
        container: &Container,
        part: &Part,
        service: Service,
    ) -> Result<Option<Toll>, Throttled> {
        if self.serverless {
            return Ok(None);
        }
        let now_ms = snapshot.milliseconds();
        let Ok((known, Some(purse))) = self.known_with_purse(snapshot, &container.record, now_ms)
        else {
            return Ok(None);
        };
        let Some(offered) = &known.offered else { return Ok(None) };
        let places = match offered.payer {
            Payer::Database(_) => 0..1,
            Payer::Container(_) => match parts::places(container, part) {
                Ok(places) => places,
                Err(_) => return Ok(None),
            },
        };
        let mut open = lock(&purse);
        open.adapt(offered, now_ms);
        let counts = open.admit(now_ms, self.mode, &places, service)?;
        drop(open);
        let store = Arc::clone(store);
        Ok(Some(Toll { store, purse, places, service, counts, now_ms, is_paid: false }))
    }

    /// What a container is offered.
    pub(crate) fn offered(
        &self,
        snapshot: &dyn Snapshot,
        record: &ContainerRecord,
    ) -> Result<Option<Arc<Offered>>> {
        if self.serverless {
            return Ok(None);
        }
        if let Some(known) = self.known(record.number) {
            return Ok(known.offered.clone());
        }
        Ok(self.learn(snapshot, record)?.offered.clone())
    }

    /// What a container is offered, with the purse of that, if there is any: where both are
    /// known, as they are of a container that is in use, this locks nothing that others share.
    fn known_with_purse(
        &self,
        snapshot: &dyn Snapshot,
        record: &ContainerRecord,
        now_ms: u64,
    ) -> Result<(Arc<KnownOffer>, Option<SharedPurse>)> {
        let known = match self.known(record.number) {
            Some(known) => known,
            None => self.learn(snapshot, record)?,
        };
        let Some(offered) = &known.offered else { return Ok((known, None)) };
        if let Some(purse) = known.purse.upgrade() {
            return Ok((known, Some(purse)));
        }
        let purse = self.purse_as_it_was(offered, now_ms);
        let known = KnownOffer {
            lsn: known.lsn,
            offered: Some(Arc::clone(offered)),
            purse: Arc::downgrade(&purse),
        };
        let known = Arc::new(known);
        self.offers.insert(record.number, Arc::clone(&known));
        Ok((known, Some(purse)))
    }

    /// Reads what a container is offered.
    fn learn(&self, snapshot: &dyn Snapshot, record: &ContainerRecord) -> Result<Arc<KnownOffer>> {
        let lsn = snapshot.head(CATALOG).lsn;
        lock(&self.databases).insert(record.number, record.database);
        let offered = read_offer(snapshot, record)?.map(Arc::new);
        let known = Arc::new(KnownOffer { lsn, offered, purse: Weak::new() });
        self.offers.insert(record.number, Arc::clone(&known));
        Ok(known)
    }

    /// What a container is offered, as far as it is known.
    fn known(&self, container: u32) -> Option<Arc<KnownOffer>> {
        let known = self.offers.get(&container)?;
        (known.lsn >= self.changed.load(Ordering::Acquire)).then_some(known)
    }

    /// An offer may have been changed, or ranges divided, by this commit of the catalog or an
    /// earlier one. What was read in a snapshot from before is not taken for what is known.
    pub(crate) fn offers_changed(&self, lsn: u64) {
        self.changed.fetch_max(lsn, Ordering::AcqRel);
    }

    /// The purse of what is offered.
    pub(crate) fn purse(&self, offered: &Arc<Offered>, now_ms: u64) -> SharedPurse {
        let purse = self.purse_as_it_was(offered, now_ms);
        lock(&purse).adapt(offered, now_ms);
        purse
    }

    /// The same, which may go by an offer of before.
    fn purse_as_it_was(&self, offered: &Arc<Offered>, now_ms: u64) -> SharedPurse {
        let purses = self.purses.read().unwrap_or_else(PoisonError::into_inner);
        let known = purses.get(&offered.payer).map(Arc::clone);
        drop(purses);
        known.unwrap_or_else(|| {
            let mut purses = self.purses.write().unwrap_or_else(PoisonError::into_inner);
            let new = || {
                let ledger = Ledger::new(now_ms / 1000, Arc::clone(&self.held_seconds));
                let since_ms = self.opened_ms.max(offered.since_ms);
                Purse::new(offered, self.burst, ledger, (since_ms, now_ms))
            };
            let purse = purses.entry(offered.payer).or_insert_with(|| Arc::new(Mutex::new(new())));
            Arc::clone(purse)
        })
    }

    /// All purses there are.
    pub(crate) fn purses(&self) -> Vec<(Payer, SharedPurse)> {
        let purses = self.purses.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = purses.iter().map(|(payer, purse)| (*payer, purse.clone())).collect();
        drop(purses);
        all.sort_unstable_by_key(|(payer, _)| *payer);
        all
    }

    /// How many seconds are held of all offers.
    #[cfg(test)]
    pub(crate) fn held_seconds(&self) -> usize {
        self.held_seconds.load(Ordering::Relaxed)
    }

    /// Throws away the purses that are as if they had never been used, now and then.
    pub(crate) fn sweep(&self, now_ms: u64) {
        let last = self.swept_ms.load(Ordering::Relaxed);
        if now_ms < last.saturating_add(SWEEP_PERIOD_MS) {
            return;
        }
        self.swept_ms.store(now_ms, Ordering::Relaxed);
        let mut purses = self.purses.write().unwrap_or_else(PoisonError::into_inner);
        // Whoever takes from one just now holds it, too.
        let idle = purses
            .iter()
            .filter(|(_, purse)| Arc::strong_count(purse) == 1 && lock(purse).is_idle(now_ms));
        for payer in idle.map(|(payer, _)| *payer).collect::<Vec<_>>() {
            // So does whoever knew of it and came meanwhile.
            if let Some(Err(held)) = purses.remove(&payer).map(Arc::try_unwrap) {
                purses.insert(payer, held);
            }
        }
        purses.shrink_to_fit();
    }

    /// Whether requests are refused that ask for more than this one has.
    pub(crate) fn is_enforced(&self, purse: &Purse) -> bool {
        purse.mode(self.mode) == ThroughputMode::Enforced
    }

    /// The purse of a container, by the container's number.
    pub(crate) fn purse_of(
        &self,
        store: &dyn Store,
        container: u32,
    ) -> Result<Option<SharedPurse>> {
        if self.serverless {
            return Ok(None);
        }
        let snapshot = store.snapshot().map_err(storage_failed)?;
        let offered = match self.known(container) {
            Some(known) => known.offered.clone(),
            None => match self.record(&*snapshot, container)? {
                Some(record) => self.offered(&*snapshot, &record)?,
                None => None,
            },
        };
        Ok(offered.map(|offered| self.purse(&offered, store.milliseconds())))
    }

    /// The purse of what a database shares, if it shares anything.
    pub(crate) fn purse_of_database(
        &self,
        store: &dyn Store,
        snapshot: &dyn Snapshot,
        database: DatabaseRid,
    ) -> Result<Option<SharedPurse>> {
        if self.serverless {
            return Ok(None);
        }
        let lsn = snapshot.head(CATALOG).lsn;
        let offer = offer_content(snapshot, &database.encode())?;
        let offered = offer.and_then(|offer| {
            Offered::by(Payer::Database(database), &offer, vec![SHARED_RANGE], lsn)
        });
        Ok(offered.map(|offered| self.purse(&Arc::new(offered), store.milliseconds())))
    }

    /// A container by its number.
    pub(crate) fn record(
        &self,
        snapshot: &dyn Snapshot,
        number: u32,
    ) -> Result<Option<ContainerRecord>> {
        let known = lock(&self.databases).get(&number).copied();
        let database = match known {
            Some(database) => database,
            None => match self.look_for(snapshot, number)? {
                Some(database) => database,
                None => return Ok(None),
            },
        };
        let name = CatalogView::get(snapshot, &keys::container_name(database, number));
        let Some(name) = name.map_err(storage_failed)? else { return Ok(None) };
        catalog::read(snapshot, &keys::container(database, &String::from_utf8_lossy(&name)))
    }

    /// The database of a container that nobody used since the start.
    fn look_for(&self, snapshot: &dyn Snapshot, number: u32) -> Result<Option<u32>> {
        let rows = CatalogView::scan(snapshot, &keys::all_containers(), usize::MAX);
        let mut databases = lock(&self.databases);
        for (_, row) in rows.map_err(storage_failed)? {
            let record: ContainerRecord = catalog::decode(&row)?;
            databases.insert(record.number, record.database);
        }
        Ok(databases.get(&number).copied())
    }

    /// A database is gone, with what it shared. Nothing is known of its containers any more, so
    /// that nobody takes the offer for there who clears them.
    pub(crate) fn forget_database(&self, database: DatabaseRid) {
        for (container, of) in &*lock(&self.databases) {
            if *of == database.0 {
                self.offers.remove(container);
            }
        }
        let mut purses = self.purses.write().unwrap_or_else(PoisonError::into_inner);
        purses.remove(&Payer::Database(database));
    }

    /// A container is gone.
    pub(crate) fn forget(&self, container: u32) {
        self.offers.remove(&container);
        let database = lock(&self.databases).remove(&container);
        let Some(database) = database.map(|database| ContainerRid { database, container }) else {
            return;
        };
        let mut purses = self.purses.write().unwrap_or_else(PoisonError::into_inner);
        purses.remove(&Payer::Container(database));
    }
}

/// What a container is offered, as the catalog says.
fn read_offer(snapshot: &dyn Snapshot, record: &ContainerRecord) -> Result<Option<Offered>> {
    let rid = ContainerRid { database: record.database, container: record.number };
    let owner = DatabaseRid(record.database);
    let own = offer_content(snapshot, &rid.encode())?;
    let (payer, offer, ranges) = match own {
        Some(offer) => {
            let ranges = record.ranges.iter().map(|range| range.id).collect();
            (Payer::Container(rid), offer, ranges)
        }
        None => match offer_content(snapshot, &owner.encode())? {
            Some(offer) => (Payer::Database(owner), offer, vec![SHARED_RANGE]),
            None => return Ok(None),
        },
    };
    Ok(Offered::by(payer, &offer, ranges, snapshot.head(CATALOG).lsn))
}

impl Offered {
    /// What an offer says, for whom it is and for which ranges.
    fn by(payer: Payer, offer: &OfferContent, ranges: Vec<u32>, lsn: u64) -> Option<Offered> {
        let throughput = Throughput::of_content(&offer.content)?;
        Some(Offered {
            lsn,
            payer,
            max: throughput.max(),
            scales: matches!(throughput, Throughput::Autoscale { .. }),
            since_ms: offer.ts.saturating_mul(1000),
            ranges,
        })
    }

    /// Whether another reading of it found the same.
    fn says_the_same(&self, other: &Offered) -> bool {
        let content = |of: &Offered| (of.payer, of.max, of.scales, of.since_ms);
        content(self) == content(other) && self.ranges == other.ranges
    }
}

fn offer_content(snapshot: &dyn Snapshot, rid: &str) -> Result<Option<OfferContent>> {
    let number = CatalogView::get(snapshot, &keys::offer_of(rid)).map_err(storage_failed)?;
    let number = number.and_then(|bytes| Some(u32::from_be_bytes(bytes.as_ref().try_into().ok()?)));
    match number {
        Some(number) => catalog::read(snapshot, &keys::offer(number)),
        None => Ok(None),
    }
}

/// A request that was admitted, and has not paid yet.
pub(crate) struct Toll {
    store: Arc<dyn Store>,
    purse: SharedPurse,
    places: Range<usize>,
    service: Service,
    /// Whether its charge is taken from the meters: not, if it would have been refused.
    counts: bool,
    /// When it was admitted.
    now_ms: u64,
    is_paid: bool,
}

impl Toll {
    /// It was answered, for this charge.
    pub(crate) fn pay(mut self, charge: Charge) {
        self.take(self.store.milliseconds(), charge);
    }

    /// It was answered at once, which is in its one time.
    pub(crate) fn pay_at_once(mut self, charge: Charge) {
        self.take(self.now_ms, charge);
    }

    fn take(&mut self, now_ms: u64, charge: Charge) {
        self.is_paid = true;
        lock(&self.purse).take(now_ms, &self.places, self.service, (charge.into(), self.counts));
    }
}

/// Whoever goes away before the answer pays for having asked.
impl Drop for Toll {
    fn drop(&mut self) {
        if !self.is_paid {
            self.take(self.store.milliseconds(), Charge::MISS);
        }
    }
}
