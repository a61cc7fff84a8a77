//! What a person sees who looks around, page by page: all containers with their figures,
//! and the items of one with the end of their lives.
//!
//! The figures are sums over the life histograms, and an order by expiry is there already,
//! in the queues of the purge. So a page costs by what is on it, and not by what is in the
//! containers.

mod deaths;

use bytes::BufMut as _;
use dayfly_model::charge::Charge;
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::ttl::Policy;
use dayfly_model::{Result, Timestamp};
use dayfly_storage::tally::Count;
use dayfly_storage::{Bucket, Snapshot};
use serde_json::{Value, json};

use crate::catalog::{self, ContainerRecord};
use crate::head::State;
use crate::operation::{Page, Part, SurveyItems, SurveyOrder};
use crate::purge::{self, Purge};
use crate::record::Record;
use crate::reply::{Reply, Success, storage_failed};
use crate::scope::Opened;
use crate::shared::Shared;
use crate::ttl::Span;
use crate::{containers, figures, keys, list, pages, standing, version};

/// How long something may be dead and still there, before a person is told. The purge comes
/// within a second or two, unless it is held up.
const LAG_SECONDS: u64 = 60;

/// How some containers stand.
pub(crate) fn containers(
    shared: &Shared,
    purge: &Purge,
    snapshot: &dyn Snapshot,
    page: &Page,
) -> Result<Reply> {
    let (rows, continuation) = pages::rows(snapshot, keys::all_containers(), page)?;
    let named = figures::with_databases(snapshot, &rows)?.into_iter();
    let shown: Result<Vec<Value>> = named
        .map(|(database, record)| container(shared, purge, snapshot, &database, &record))
        .collect();
    let now = catalog::now(snapshot);
    let body = json!({"now": now.0, "containers": shown?, "continuation": continuation});
    Ok(Reply::ok(Success::new(200, body.to_string()), now, Charge::NOTHING))
}

/// How one container stands: the same, asked for again and again by whoever looks at it.
pub(crate) fn one(shared: &Shared, purge: &Purge, opened: &Opened) -> Result<Reply> {
    let (snapshot, record) = (&*opened.snapshot, &opened.container.record);
    let database = figures::database_name(snapshot, record.database)?;
    let mut body = container(shared, purge, snapshot, &database, record)?;
    let now = opened.now();
    if let Value::Object(members) = &mut body {
        members.insert("now".to_owned(), now.0.into());
    }
    Ok(Reply::ok(Success::new(200, body.to_string()), now, Charge::NOTHING))
}

fn container(
    shared: &Shared,
    purge: &Purge,
    snapshot: &dyn Snapshot,
    database: &str,
    record: &ContainerRecord,
) -> Result<Value> {
    let now = catalog::now(snapshot);
    let figures = standing::figures(snapshot, record)?;
    let purge = purge::status(purge, record.number);
    let lag = figures.oldest_dead.map_or(0, |at| now.0.saturating_sub(at.0));
    let definition = &record.definition;
    Ok(json!({
        "database": database,
        "container": definition.id,
        "rid": record.rid(),
        "partitionKeyPaths": definition.partition_key.texts,
        "defaultTtl": record.ttl_at(now).to_json(),
        "ttlPropertyPath": definition.ttl_path.as_ref().map(ToString::to_string),
        "pending": record.pending_json(now),
        "live": count(figures.live),
        "never": count(figures.never),
        "uninterpretable": figures.uninterpretable,
        "backlog": {
            "items": figures.dead.items,
            "bytes": figures.dead.bytes,
            "oldestExpiredAt": figures.oldest_dead.map(|at| at.0),
        },
        "purge": {
            "state": purge.state.name(),
            "reason": purge.reason,
            "itemsPerSecond": purge.items_per_second,
            "purgedItems": purge.purged_items,
        },
        "lagSeconds": lag,
        "isLagging": lag > LAG_SECONDS,
        "indexProgress": containers::progress(&shared.index, snapshot, record.buckets())?,
    }))
}

fn count(count: Count) -> Value {
    json!({"items": count.items, "bytes": count.bytes})
}

/// Some items of a container.
pub(crate) fn items(opened: &Opened, asked: &SurveyItems) -> Result<Reply> {
    let now = opened.now();
    let (rows, continuation) = match asked.order {
        SurveyOrder::ByKey => by_key(opened, &asked.page)?,
        SurveyOrder::ByExpiry { within } => by_expiry(opened, within, &asked.page)?,
    };
    let record = &opened.container.record;
    let head = json!({
        "now": now.0,
        "defaultTtl": record.ttl_at(now).to_json(),
        "pending": record.pending_json(now),
        "continuation": continuation,
    });
    let head = head.to_string();
    let mut body = Vec::with_capacity(head.len() + rows.len() + 16);
    body.put_slice(head.strip_suffix('}').unwrap_or(&head).as_bytes());
    body.put_slice(b",\"items\":[");
    body.put_slice(&rows);
    body.put_slice(b"]}");
    Ok(Reply::ok(Success::new(200, body), now, Charge::NOTHING))
}

fn by_key(opened: &Opened, page: &Page) -> Result<(Vec<u8>, Option<String>)> {
    let policies: Vec<Policy> =
        opened.container.buckets().map(|bucket| policy(opened, bucket)).collect::<Result<_>>()?;
    let show = |record: &Record, out: &mut Vec<u8>| {
        let slice = usize::from(version::slice_of(record.docno));
        let policy = policies.get(slice).copied().unwrap_or_default();
        put_row(opened, record, policy, out);
    };
    let filled = list::rows(opened, &Part::default(), page, &show)?;
    Ok((filled.rows, filled.continuation))
}

fn by_expiry(
    opened: &Opened,
    within: Option<u32>,
    page: &Page,
) -> Result<(Vec<u8>, Option<String>)> {
    let until = within.map(|seconds| Timestamp(opened.now().0 + u64::from(seconds)));
    let deaths::Deaths { records, continuation } = deaths::page(opened, until, page)?;
    let mut rows = Vec::new();
    for (record, policy) in &records {
        if !rows.is_empty() {
            rows.push(b',');
        }
        put_row(opened, record, *policy, &mut rows);
    }
    Ok((rows, continuation))
}

fn policy(opened: &Opened, bucket: Bucket) -> Result<Policy> {
    State::policy(&opened.snapshot.head(bucket)).map_err(storage_failed)
}

/// Writes what is shown of an item. The item stands there as a read answers it, to the byte:
/// who must not change a number in it takes its text, and not its value.
fn put_row(opened: &Opened, record: &Record, policy: Policy, out: &mut Vec<u8>) {
    let container = &opened.container;
    let Span { class, ttl, expires, is_ignored } =
        Span::of(container, record, policy, opened.now());
    let key = PartitionKey::from_canonical(record.partition_key());
    let key = key.map_or_else(|| "[]".to_owned(), |key| key.to_json());
    put_string(b"{\"id\":", &String::from_utf8_lossy(record.id()), out);
    put_string(b",\"partitionKey\":", &key, out);
    put_number(b",\"ts\":", Some(record.ts.0.cast_signed()), out);
    put_number(b",\"ttl\":", ttl, out);
    put_number(b",\"expiresAt\":", expires.map(|at| at.0.cast_signed()), out);
    put_string(b",\"class\":", class, out);
    out.put_slice(if is_ignored { b",\"ignored\":true" } else { b",\"ignored\":false" });
    out.put_slice(b",\"item\":");
    record.render_into(container, &record.etag(container), out);
    out.put_u8(b'}');
}

fn put_string(name: &[u8], text: &str, out: &mut Vec<u8>) {
    out.put_slice(name);
    // Into memory, where nothing goes wrong.
    let _ = serde_json::to_writer(out, text);
}

fn put_number(name: &[u8], number: Option<i64>, out: &mut Vec<u8>) {
    out.put_slice(name);
    let _ = serde_json::to_writer(out, &number);
}
