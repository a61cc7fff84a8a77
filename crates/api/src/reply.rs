//! From what the engine said to what the client gets.
//!
//! Every response leaves through [`respond`], so every response carries the
//! activity id, the charge and the date, also the failed ones. The date is the
//! request's time, not the time of sending: a slow answer must not look as if
//! an item had been there after its end.

use std::borrow::Cow;
use std::cell::RefCell;
use std::time::Duration;

use bytes::Bytes;
use dayfly_engine::reply::{Pieces, Place, QueryFigures, QueryTimes, Reply, Success, Usage};
use dayfly_model::{Error, Timestamp, session};
use http::header::{CONTENT_LOCATION, DATE, ETAG, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use crate::advice;

const ACTIVITY_ID: HeaderName = HeaderName::from_static("x-ms-activity-id");
const ALT_CONTENT_PATH: HeaderName = HeaderName::from_static("x-ms-alt-content-path");
const CONTENT_PATH: HeaderName = HeaderName::from_static("x-ms-content-path");
const CONTINUATION: HeaderName = HeaderName::from_static("x-ms-continuation");
const COSMOS_LLSN: HeaderName = HeaderName::from_static("x-ms-cosmos-llsn");
const GLOBAL_LSN: HeaderName = HeaderName::from_static("x-ms-global-committed-lsn");
const INDEX_PROGRESS: HeaderName =
    HeaderName::from_static("x-ms-documentdb-collection-index-transformation-progress");
const INDEX_UTILIZATION: HeaderName = HeaderName::from_static("x-ms-cosmos-index-utilization");
const ITEM_COUNT: HeaderName = HeaderName::from_static("x-ms-item-count");
const ITEM_LSN: HeaderName = HeaderName::from_static("x-ms-item-lsn");
const LSN: HeaderName = HeaderName::from_static("lsn");
const MIN_THROUGHPUT: HeaderName = HeaderName::from_static("x-ms-cosmos-min-throughput");
const QUERY_METRICS: HeaderName = HeaderName::from_static("x-ms-documentdb-query-metrics");
const RANGE_ID: HeaderName = HeaderName::from_static("x-ms-documentdb-partitionkeyrangeid");
const REPLACE_PENDING: HeaderName = HeaderName::from_static("x-ms-offer-replace-pending");
const REQUEST_CHARGE: HeaderName = HeaderName::from_static("x-ms-request-charge");
const REQUEST_DURATION: HeaderName = HeaderName::from_static("x-ms-request-duration-ms");
const REQUIRES_DISTRIBUTION: HeaderName =
    HeaderName::from_static("x-ms-cosmos-query-requiresdistribution");
const RESOURCE_QUOTA: HeaderName = HeaderName::from_static("x-ms-resource-quota");
const RESOURCE_USAGE: HeaderName = HeaderName::from_static("x-ms-resource-usage");
const SESSION_TOKEN: HeaderName = HeaderName::from_static("x-ms-session-token");
const SHARE_THROUGHPUT: HeaderName = HeaderName::from_static("x-ms-share-throughput");
const STATE_CHANGE: HeaderName = HeaderName::from_static("x-ms-last-state-change-utc");
const SUBSTATUS: HeaderName = HeaderName::from_static("x-ms-substatus");
const TRANSPORT_ID: HeaderName = HeaderName::from_static("x-ms-transport-request-id");
const TTL_IGNORED: HeaderName = HeaderName::from_static("x-dayfly-ttl-ignored");

/// What the service would let a range hold, in megabytes. Nobody is refused for it:
/// there is no quota but the disk.
const RANGE_MB: usize = 10 * 1024;

/// The headers that never change: everywhere, and where a container is named
/// (one region, one replica).
pub(crate) struct Constant {
    everywhere: Vec<(HeaderName, HeaderValue)>,
    in_container: Vec<(HeaderName, HeaderValue)>,
}

impl Constant {
    /// The headers of a server that runs since `started`.
    pub(crate) fn new(started: Timestamp) -> Self {
        let fixed =
            |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        let everywhere = [
            ("content-type", "application/json"),
            ("x-ms-version", "2020-07-15"),
            ("x-ms-serviceversion", "version=2.14.0.0"),
            ("x-ms-gatewayversion", "version=2.14.0"),
        ];
        let in_container = [
            ("x-ms-schemaversion", "1.17"),
            ("x-ms-number-of-read-regions", "0"),
            ("x-ms-current-replica-set-size", "1"),
            ("x-ms-current-write-quorum", "1"),
            ("x-ms-xp-role", "1"),
        ];
        let since = HeaderValue::from_str(&started.to_http_date()).ok();
        Constant {
            everywhere: everywhere.map(fixed).into(),
            in_container: in_container
                .map(fixed)
                .into_iter()
                .chain(since.map(|since| (STATE_CHANGE, since)))
                .collect(),
        }
    }
}

/// How many headers a response may come to have.
const ROOM: usize = 32;

/// What a header value cannot hold as it is.
const NOT_IN_HEADERS: &AsciiSet = &CONTROLS.add(b'%');

/// What a response needs to know of its request.
pub(crate) struct Context<'a> {
    pub(crate) activity_id: String,
    /// The address of what is answered, if it is that of the request.
    pub(crate) location: Option<String>,
    /// The headers of the request: what they took is used again.
    pub(crate) headers: HeaderMap,
    /// The request's time.
    pub(crate) now: Timestamp,
    pub(crate) duration: Duration,
    /// Counts requests.
    pub(crate) number: u64,
    /// The headers that never change.
    pub(crate) constant: &'a Constant,
}

/// Turns a reply into a response.
pub(crate) fn respond(reply: Reply, mut context: Context<'_>) -> Response<Pieces> {
    let Reply { outcome, charge_ru, place, .. } = reply;
    let mut response = Response::new(Pieces::default());
    let headers = response.headers_mut();
    *headers = std::mem::take(&mut context.headers);
    headers.clear();
    headers.reserve(ROOM);
    let in_container = context.constant.in_container.iter().filter(|_| place.is_some());
    for (name, value) in context.constant.everywhere.iter().chain(in_container) {
        headers.insert(name, value.clone());
    }
    common(response.headers_mut(), charge_ru, &context);
    if let Some(place) = place {
        container(response.headers_mut(), &place, &context);
    }
    match outcome {
        Ok(success) => {
            if let Some(location) = context.location.take() {
                take(response.headers_mut(), CONTENT_LOCATION, location);
            }
            succeed(&mut response, success, &context);
        }
        Err(error) => fail(&mut response, &error, &context.activity_id),
    }
    take(response.headers_mut(), ACTIVITY_ID, context.activity_id);
    response
}

fn common(headers: &mut HeaderMap, charge_ru: f64, context: &Context<'_>) {
    headers.insert(DATE, date(context.now));
    headers.insert(REQUEST_CHARGE, charge(charge_ru));
    take(headers, REQUEST_DURATION, milliseconds(context.duration));
}

fn container(headers: &mut HeaderMap, place: &Place, context: &Context<'_>) {
    let names = match Cow::from(percent_encode(&place.names, NOT_IN_HEADERS)) {
        Cow::Borrowed(_) => place.names.clone(),
        Cow::Owned(encoded) => encoded.into(),
    };
    take(headers, ALT_CONTENT_PATH, names);
    if let Some(rid) = &place.rid {
        take(headers, CONTENT_PATH, rid.clone());
    }
    headers.insert(TRANSPORT_ID, context.number.into());
    if let (Some(range), Some(lsn)) = (&place.range, place.lsn) {
        take(headers, SESSION_TOKEN, session::format(range, place.number, lsn));
        set(headers, RANGE_ID, range);
    }
    if let Some(lsn) = place.lsn {
        let lsn = HeaderValue::from(lsn);
        headers.insert(LSN, lsn.clone());
        headers.insert(GLOBAL_LSN, lsn.clone());
        headers.insert(COSMOS_LLSN, lsn);
    }
}

fn succeed(response: &mut Response<Pieces>, success: Success, context: &Context<'_>) {
    let headers = response.headers_mut();
    if let Some(etag) = success.etag {
        take(headers, ETAG, etag);
    }
    if let Some(lsn) = success.item_lsn {
        headers.insert(ITEM_LSN, lsn.into());
    }
    if let Some(continuation) = &success.continuation {
        set(headers, CONTINUATION, continuation);
    }
    if let Some(count) = success.item_count {
        headers.insert(ITEM_COUNT, count.into());
    }
    if success.is_whole {
        headers.insert(REQUIRES_DISTRIBUTION, HeaderValue::from_static("False"));
    }
    if let Some(figures) = &success.query {
        take(headers, QUERY_METRICS, metrics(figures, context.duration));
    }
    if let Some((form, advice)) = success.advice.map(|advice| *advice) {
        take(headers, INDEX_UTILIZATION, advice::write(form, advice));
    }
    if let Some(min) = success.throughput_min {
        headers.insert(MIN_THROUGHPUT, min.into());
        headers.insert(REPLACE_PENDING, HeaderValue::from_static("false"));
    }
    if success.shares_throughput {
        headers.insert(SHARE_THROUGHPUT, HeaderValue::from_static("true"));
    }
    if success.ttl_ignored {
        headers.insert(TTL_IGNORED, HeaderValue::from_static("true"));
    }
    if let Some(usage) = success.usage {
        let [quota, used] = usage_values(usage);
        headers.insert(RESOURCE_QUOTA, quota);
        headers.insert(RESOURCE_USAGE, used);
    }
    if let Some(percent) = success.index_progress {
        headers.insert(INDEX_PROGRESS, u16::from(percent).into());
    }
    *response.status_mut() = status(success.status);
    *response.body_mut() = success.body;
}

/// What a query did, as the service writes it. Time is measured up to the first item in
/// steps, and from there as a whole.
fn metrics(figures: &QueryFigures, duration: Duration) -> String {
    let total = milliseconds(duration);
    let QueryFigures { items, item_bytes, rows, row_bytes, times, .. } = figures;
    let QueryTimes { compile, plan, choose, open } = times;
    let [compile, plan, choose, open] = [compile, plan, choose, open].map(|time| begun(*time));
    #[expect(clippy::cast_precision_loss, reason = "a page is small")]
    let used = if *items == 0 { 1.0 } else { (*rows as f64 / *items as f64).min(1.0) };
    format!(
        "totalExecutionTimeInMs={total};queryCompileTimeInMs={compile};\
         queryLogicalPlanBuildTimeInMs={plan};queryPhysicalPlanBuildTimeInMs={open};\
         queryOptimizationTimeInMs={choose};VMExecutionTimeInMs={total};indexLookupTimeInMs=0.00;\
         instructionCount=0;documentLoadTimeInMs=0.00;systemFunctionExecuteTimeInMs=0.00;\
         userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount={items};\
         retrievedDocumentSize={item_bytes};outputDocumentCount={rows};\
         outputDocumentSize={row_bytes};writeOutputTimeInMs=0.00;indexUtilizationRatio={used:.2}"
    )
}

/// Hundredths of milliseconds, each that has begun: a step takes some time, and clients
/// take none at all for a step that was left out.
fn begun(duration: Duration) -> String {
    let hundredths = duration.as_micros().div_ceil(10).max(1);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Quota and usage as headers. They are the same on many answers in a row.
fn usage_values(usage: Usage) -> [HeaderValue; 2] {
    thread_local! {
        static LAST: RefCell<Option<(Usage, [HeaderValue; 2])>> = const { RefCell::new(None) };
    }
    LAST.with_borrow_mut(|last| match last {
        Some((known, values)) if *known == usage => values.clone(),
        _ => {
            let value = |text: String| {
                let value = HeaderValue::from_maybe_shared(Bytes::from(text));
                value.unwrap_or(HeaderValue::from_static(""))
            };
            let values = [value(quota(usage)), value(used(usage))];
            *last = Some((usage, values.clone()));
            values
        }
    })
}

/// What a container may hold, as the service writes it: megabytes, kilobytes, items and
/// kilobytes with the index.
fn quota(usage: Usage) -> String {
    let megabytes = RANGE_MB * usage.ranges;
    let kilobytes = 1024 * megabytes;
    format!(
        "documentSize={megabytes};documentsSize={kilobytes};documentsCount=-1;\
         collectionSize={kilobytes};"
    )
}

/// What a container holds, in the same units.
fn used(usage: Usage) -> String {
    let kilobytes = usage.live.bytes.div_ceil(1024);
    format!(
        "documentSize={};documentsSize={kilobytes};documentsCount={};collectionSize={kilobytes};",
        kilobytes / 1024,
        usage.live.items,
    )
}

fn fail(response: &mut Response<Pieces>, error: &Error, activity_id: &str) {
    let wire = error.kind.wire();
    if wire.substatus != 0 {
        set(response.headers_mut(), SUBSTATUS, &wire.substatus.to_string());
    }
    *response.status_mut() = status(wire.status);
    let message = format!("{}\r\nActivityId: {activity_id}", error.message);
    let body = serde_json::json!({ "code": wire.code, "message": message });
    *response.body_mut() = body.to_string().into();
}

/// A charge as a header. It is the same on many answers in a row.
fn charge(charge_ru: f64) -> HeaderValue {
    thread_local! {
        static LAST: RefCell<(f64, HeaderValue)> =
            const { RefCell::new((1.0, HeaderValue::from_static("1"))) };
    }
    LAST.with_borrow_mut(|(known, value)| {
        if known.to_bits() != charge_ru.to_bits()
            && let Ok(text) = HeaderValue::from_maybe_shared(Bytes::from(charge_ru.to_string()))
        {
            (*known, *value) = (charge_ru, text);
        }
        value.clone()
    })
}

/// Milliseconds with three decimals.
fn milliseconds(duration: Duration) -> String {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let mut text = (micros / 1000).to_string();
    text.push('.');
    for unit in [100, 10, 1] {
        let digit = (micros / unit % 10) as u32;
        text.push(char::from_digit(digit, 10).unwrap_or('0'));
    }
    text
}

/// The date as a header. It is the same for a second, so it is written once a
/// second.
fn date(now: Timestamp) -> HeaderValue {
    thread_local! {
        static LAST: RefCell<(Timestamp, HeaderValue)> =
            const { RefCell::new((Timestamp(u64::MAX), HeaderValue::from_static(""))) };
    }
    LAST.with_borrow_mut(|(second, value)| {
        if *second != now
            && let Ok(text) = HeaderValue::from_str(&now.to_http_date())
        {
            *second = now;
            *value = text;
        }
        value.clone()
    })
}

fn status(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// As [`set`], without a copy.
fn take(headers: &mut HeaderMap, name: HeaderName, value: impl Into<Bytes>) {
    if let Ok(value) = HeaderValue::from_maybe_shared(value.into()) {
        headers.insert(name, value);
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_step_of_a_query_took_no_time() {
        let ms = Duration::from_millis;
        let times = QueryTimes {
            compile: ms(12),
            plan: Duration::from_micros(21),
            ..QueryTimes::default()
        };
        let text = metrics(&QueryFigures { times, ..QueryFigures::default() }, ms(40));
        for part in [
            "queryCompileTimeInMs=12.00;",
            "queryLogicalPlanBuildTimeInMs=0.03;",
            "queryPhysicalPlanBuildTimeInMs=0.01;",
            "queryOptimizationTimeInMs=0.01;",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
