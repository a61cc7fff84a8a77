//! The partition key ranges of a container, as clients see them.

use dayfly_model::charge::Charge;
use dayfly_model::epk::Epk;
use dayfly_model::rid::RangeRid;
use serde_json::{Value, json};

use crate::catalog::Container;
use crate::condition::names;
use crate::reply::{Reply, Success, feed};
use crate::scope::Opened;
use crate::version;

/// Shows the partition key ranges, like a change feed that has ended: a client
/// that knows them gets 304.
pub(crate) fn list(opened: &Opened, known: Option<&str>) -> Reply {
    let container = &opened.container;
    let etag = etag(container);
    if known.is_some_and(|known| known.trim() != "*" && names(known, &etag)) {
        let success =
            Success { status: 304, etag: Some(etag), item_count: Some(0), ..Success::default() };
        return Reply::ok(success, opened.now(), Charge::LOOK).at(container.place(None, None));
    }
    let ranges = ranges_json(opened, &etag);
    let mut reply = feed(&container.rid_text, "PartitionKeyRanges", ranges, None, opened.now());
    if let Ok(success) = &mut reply.outcome {
        success.etag = Some(etag);
    }
    reply.at(container.place(None, None))
}

/// All ranges of a container, as clients see them.
pub(crate) fn all(opened: &Opened) -> Vec<Value> {
    ranges_json(opened, &etag(&opened.container))
}

/// Changes with the ranges, and only then.
fn etag(container: &Container) -> String {
    version::etag(0, container.record.number, container.record.ranges_version)
}

/// The partition key ranges of a container, as clients see them.
fn ranges_json(opened: &Opened, etag: &str) -> Vec<Value> {
    let container = &opened.container;
    let count = u32::try_from(container.ranges.len()).unwrap_or(u32::MAX);
    let fraction = 1.0 / f64::from(count.max(1));
    container
        .ranges
        .iter()
        .map(|range| {
            let number = u64::from(range.number);
            let rid = RangeRid { container: container.rid, range: number }.encode();
            json!({
                "id": &*range.id,
                "_rid": rid,
                "_self": format!("{}pkranges/{rid}/", container.self_link),
                "_etag": etag,
                "_ts": container.record.ts,
                "_lsn": opened.snapshot.head(container.bucket(&range.min)).lsn,
                "minInclusive": range.min.to_hex(),
                "maxExclusive": range.max.as_ref().map_or_else(|| "FF".to_owned(), Epk::to_hex),
                "ridPrefix": number,
                "throughputFraction": fraction,
                "status": "online",
                "parents": range.parents.iter().map(u32::to_string).collect::<Vec<_>>(),
                "ownedArchivalPKRangeIds": [],
            })
        })
        .collect()
}
