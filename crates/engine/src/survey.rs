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
use crate::{containers, figures, keys, list, pages, standing};

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
    let mut policies: Vec<(Bucket, Policy)> = Vec::new();
    for bucket in opened.container.buckets() {
        policies.push((bucket, policy(opened, bucket)?));
    }
    let text = |record: &Record| {
        let policy = match &*policies {
            [(_, only)] => *only,
            several => {
                let bucket = opened.container.bucket(&opened.container.epk(&key_of(record)));
                several
                    .iter()
                    .find(|(of, _)| *of == bucket)
                    .map_or_else(Policy::default, |(_, policy)| *policy)
            }
        };
        Ok(row(opened, record, policy).into())
    };
    let filled = list::rows(opened, &Part::default(), page, &text)?;
    Ok((filled.rows, filled.continuation))
}

fn by_expiry(
    opened: &Opened,
    within: Option<u32>,
    page: &Page,
) -> Result<(Vec<u8>, Option<String>)> {
    let until = within.map(|seconds| Timestamp(opened.now().0 + u64::from(seconds)));
    let deaths::Deaths { records, policies, continuation } = deaths::page(opened, until, page)?;
    let mut rows = Vec::new();
    for (record, policy) in records.iter().zip(policies) {
        if !rows.is_empty() {
            rows.push(b',');
        }
        rows.append(&mut row(opened, record, policy));
    }
    Ok((rows, continuation))
}

fn policy(opened: &Opened, bucket: Bucket) -> Result<Policy> {
    State::policy(&opened.snapshot.head(bucket)).map_err(storage_failed)
}

fn key_of(record: &Record) -> PartitionKey {
    let key = PartitionKey::from_canonical(record.partition_key());
    key.unwrap_or_else(|| PartitionKey(Vec::new()))
}

/// What is shown of an item. Its text is a string, so that whoever reads JSON changes no
/// number in it.
fn row(opened: &Opened, record: &Record, policy: Policy) -> Vec<u8> {
    let container = &opened.container;
    let Span { class, ttl, expires, is_ignored } =
        Span::of(container, record, policy, opened.now());
    let shown = record.render(container, &record.etag(container));
    let mut row = Vec::with_capacity(shown.len() + shown.len() / 8 + 192);
    let text = |row: &mut Vec<u8>, name: &str, text: &str| {
        row.put_slice(name.as_bytes());
        // Into memory, where nothing goes wrong.
        let _ = serde_json::to_writer(row, text);
    };
    text(&mut row, "{\"id\":", &String::from_utf8_lossy(record.id()));
    text(&mut row, ",\"partitionKey\":", &key_of(record).to_json());
    text(&mut row, ",\"text\":", &String::from_utf8_lossy(&shown.to_vec()));
    let number =
        |number: Option<i64>| number.map_or("null".to_owned(), |number| number.to_string());
    let (ttl, expires) = (number(ttl), number(expires.map(|at| at.0.cast_signed())));
    let rest = format!(
        ",\"ts\":{},\"ttl\":{ttl},\"expiresAt\":{expires},\"class\":\"{class}\",\"ignored\":{is_ignored}}}",
        record.ts.0,
    );
    row.put_slice(rest.as_bytes());
    row
}
