//! Throughput, as the operator sees it: what became of each second of it, and whether more
//! than that is refused.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use dayfly_model::Result;
use dayfly_model::meter::{BUCKETS, Units};
use dayfly_storage::Snapshot;
use serde_json::{Value, json};

use crate::catalog::CatalogView;
use crate::keys;
use crate::locks::lock;
use crate::metering::{LedgerSecond, Offered, Payer, Purse, Spent};
use crate::reply::{Reply, Success, storage_failed};
use crate::scope::Opened;
use crate::settings::ThroughputMode;
use crate::shared::Shared;

pub use crate::metering::HOUR;

/// What became of the units of an offer since it was first used.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferFigures {
    /// `database/container`, or the database whose containers share it.
    pub owner: String,
    /// The most that it gives in a second.
    pub provisioned: u32,
    /// What users were charged.
    pub used: f64,
    /// What they left over.
    pub overflow: f64,
    /// What the background spent of that.
    pub background: f64,
    /// How many requests were refused, or would have been if the offer were enforced.
    pub throttled: u64,
    /// Whether the background gets a little also where users leave nothing over.
    pub is_forced: bool,
}

/// Shows what became of the throughput of a container in its last seconds.
pub(crate) fn status(shared: &Shared, opened: &Opened, seconds: u64) -> Result<Reply> {
    let usual = shared.metering.mode();
    let now_ms = shared.store.milliseconds();
    let offered = shared.metering.offered(&*opened.snapshot, &opened.container.record)?;
    let Some(offered) = offered else {
        let body = json!({"owner": null, "mode": usual.name()});
        return Ok(told(opened, &body));
    };
    let purse = shared.metering.purse(&offered, now_ms);
    let mut purse = lock(&purse);
    purse.pass(now_ms);
    Ok(told(opened, &shown(&mut purse, usual, opened, (now_ms, seconds))))
}

fn told(opened: &Opened, body: &Value) -> Reply {
    Reply::ok(Success::new(200, body.to_string()), opened.now(), 0.0)
}

fn shown(
    purse: &mut Purse,
    usual: ThroughputMode,
    opened: &Opened,
    (now_ms, seconds): (u64, u64),
) -> Value {
    let left_over = purse.left_over(now_ms);
    let Offered { payer, max, scales, .. } = *purse.offered();
    let owner = match payer {
        Payer::Container(_) => "container",
        Payer::Database(_) => "database",
    };
    let (rate, levels) = purse.levels();
    let ranges = levels.into_iter().enumerate().map(|(place, level)| {
        let range = opened.container.ranges.get(place).filter(|_| owner == "container");
        json!({"range": range.map(|range| &*range.id), "rate": ru(rate.cap()), "level": ru(level)})
    });
    let shares = (1..).zip(purse.shares());
    let shares = shares
        .filter_map(|(id, percent)| Some(json!({"id": id, "maxThroughputPercentage": percent?})));
    let Spent { used, overflow, background, throttled } = purse.spent();
    let highest = purse.ledger().highest();
    let least = if scales { max / 10 } else { max };
    json!({
        "owner": owner,
        "mode": purse.mode(usual).name(),
        "provisioned": max,
        "autoscale": scales,
        "highest": ru(highest),
        "scaledTo": ru(highest).ceil().clamp(f64::from(least), f64::from(max)),
        "ranges": ranges.collect::<Vec<_>>(),
        "leftOver": ru(left_over),
        "buckets": shares.collect::<Vec<_>>(),
        "total": {
            "used": ru(used),
            "overflow": ru(overflow),
            "purge": ru(background),
            "throttled": throttled,
        },
        "seconds": purse.ledger().last(seconds.min(HOUR)).iter().map(second).collect::<Vec<_>>(),
    })
}

fn second((second, of): &(u64, LedgerSecond)) -> Value {
    json!({
        "second": second,
        "provisioned": of.provisioned,
        "used": ru(of.used),
        "overflow": ru(of.overflow),
        "purge": ru(of.background),
        "throttled": of.throttled,
    })
}

/// Two decimals, as charges have them.
fn ru(units: Units) -> f64 {
    (units.ru() * 100.0).round() / 100.0
}

/// Says whether requests to a container are refused that ask for more than it is given, and
/// to all others that share its throughput.
pub(crate) fn switch(
    shared: &Shared,
    opened: &Opened,
    mode: Option<ThroughputMode>,
) -> Result<Reply> {
    change(shared, opened, |purse, now_ms| purse.set_mode(mode, now_ms))
}

/// Says how much of the throughput each throughput bucket may take.
pub(crate) fn share(
    shared: &Shared,
    opened: &Opened,
    parts: [Option<u8>; BUCKETS],
) -> Result<Reply> {
    change(shared, opened, |purse, now_ms| purse.set_shares(parts, now_ms))
}

fn change(shared: &Shared, opened: &Opened, change: impl FnOnce(&mut Purse, u64)) -> Result<Reply> {
    let offered = shared.metering.offered(&*opened.snapshot, &opened.container.record)?;
    let now_ms = shared.store.milliseconds();
    if let Some(offered) = offered {
        change(&mut lock(&shared.metering.purse(&offered, now_ms)), now_ms);
    }
    status(shared, opened, 0)
}

/// What became of the throughput that is in use, of `limit` offers at most.
pub(crate) fn figures(shared: &Shared, limit: usize) -> Result<Vec<OfferFigures>> {
    let snapshot = shared.store.snapshot().map_err(storage_failed)?;
    let now_ms = shared.store.milliseconds();
    let mut databases = HashMap::new();
    let mut figures = Vec::new();
    for (payer, purse) in shared.metering.purses().into_iter().take(limit) {
        let Some(owner) = owner(&*snapshot, payer, &mut databases)? else { continue };
        let mut purse = lock(&purse);
        purse.pass(now_ms);
        let Spent { used, overflow, background, throttled } = purse.spent();
        figures.push(OfferFigures {
            owner,
            provisioned: purse.offered().max,
            used: used.ru(),
            overflow: overflow.ru(),
            background: background.ru(),
            throttled,
            is_forced: purse.is_forced(now_ms),
        });
    }
    Ok(figures)
}

/// The name of whose throughput it is, if that is still there.
fn owner(
    snapshot: &dyn Snapshot,
    payer: Payer,
    databases: &mut HashMap<u32, Option<String>>,
) -> Result<Option<String>> {
    let text = |key: Vec<u8>| -> Result<Option<String>> {
        let row = CatalogView::get(snapshot, &key).map_err(storage_failed)?;
        Ok(row.map(|row| String::from_utf8_lossy(&row).into_owned()))
    };
    let number = match payer {
        Payer::Container(rid) => rid.database,
        Payer::Database(rid) => rid.0,
    };
    let database = match databases.entry(number) {
        Entry::Occupied(known) => known.get().clone(),
        Entry::Vacant(unknown) => unknown.insert(text(keys::database_name(number))?).clone(),
    };
    let (Some(database), Payer::Container(rid)) = (database.clone(), payer) else {
        return Ok(database);
    };
    let container = text(keys::container_name(rid.database, rid.container))?;
    Ok(container.map(|container| format!("{database}/{container}")))
}
