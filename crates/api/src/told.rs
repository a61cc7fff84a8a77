//! What an answer tells beside its status and its body.
//!
//! A figure is named by what it means. How a protocol spells it is the affair of the door
//! that the request came by: `reply.rs` knows it for HTTP.

use std::time::Duration;

use bytes::Bytes;
use dayfly_engine::operation::BatchForm;
use dayfly_engine::reply::{Origin, Pieces, QueryFigures, QueryTimes, Reply, Success, Usage};
use dayfly_model::charge::Charge;
use dayfly_model::{Error, Timestamp, session};

use crate::{advice, results};

/// A figure of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// The time of the request.
    Time,
    /// The version of the resource.
    Etag,
    /// The name of this request.
    ActivityId,
    /// Where it happened, by names.
    AltContentPath,
    /// Where it happened, by RID.
    ContentPath,
    /// What the body is, if it is not JSON.
    ContentType,
    /// Where the next page begins.
    Continuation,
    /// The last commit of the replica.
    LocalLsn,
    /// The last commit of all regions.
    GlobalLsn,
    /// How far an index has come, in percent.
    IndexProgress,
    /// Which indexes a query used.
    IndexUtilization,
    /// How many resources a page has.
    ItemCount,
    /// The commit that wrote the item.
    ItemLsn,
    /// The last commit of the range.
    Lsn,
    /// The least throughput of an offer.
    MinThroughput,
    /// What a query did.
    QueryMetrics,
    /// Which partition key range it is about.
    RangeId,
    /// Whether an offer is still being changed.
    ReplacePending,
    /// What it cost.
    Charge,
    /// What that is made of.
    ChargeParts,
    /// How long it took.
    Duration,
    /// Whether a query must be merged.
    RequiresDistribution,
    /// After how many milliseconds it is worth to try again.
    RetryAfter,
    /// What a container may hold.
    Quota,
    /// What it holds.
    Usage,
    /// What the client has seen now.
    SessionToken,
    /// Whether a container shares its database's throughput.
    ShareThroughput,
    /// Which kind of this status.
    Substatus,
    /// The number of the request.
    TransportId,
    /// Whether a `ttl` counts for nothing.
    TtlIgnored,
}

/// The value of a figure.
pub(crate) enum Told {
    Text(Bytes),
    Word(&'static str),
    Number(u64),
    Charge(f64),
    Time(Timestamp),
    /// How long it took.
    Took(Duration),
    /// What a container may hold.
    Quota(Usage),
    /// What it holds.
    Usage(Usage),
}

/// Where figures are written, in the words of a protocol.
pub(crate) trait Out {
    fn put(&mut self, figure: Figure, told: Told);
}

/// What the service would let a range hold, in kilobytes. Nobody is refused for it: without a
/// quota of the server's there is none but the disk.
const RANGE_KB: u64 = 10 * 1024 * 1024;

/// What the service calls the form of its resources.
pub(crate) const SCHEMA_VERSION: &str = "1.17";

/// What an answer needs to know of its request.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) activity_id: &'a str,
    /// The request's time.
    pub(crate) now: Timestamp,
    pub(crate) took: Duration,
    /// Counts requests.
    pub(crate) number: u64,
    /// Whether it asks what its charge is made of.
    pub(crate) explains_charge: bool,
}

/// Tells everything of a reply; returns its status and its body.
pub(crate) fn tell(reply: Reply, about: Exchange<'_>, out: &mut impl Out) -> (u16, Pieces) {
    let Reply { outcome, charge, place, .. } = reply;
    out.put(Figure::Time, Told::Time(about.now));
    out.put(Figure::Charge, Told::Charge(charge.ru()));
    if about.explains_charge {
        out.put(Figure::ChargeParts, text(parts(&charge)));
    }
    out.put(Figure::Duration, Told::Took(about.took));
    if let Some(place) = place {
        container(out, &place, about.number);
    }
    let told = match outcome {
        Ok(success) => succeed(out, success, about.took),
        Err(error) => fail(out, &error, about.activity_id),
    };
    out.put(Figure::ActivityId, text(about.activity_id.to_owned()));
    told
}

fn text(text: impl Into<Bytes>) -> Told {
    Told::Text(text.into())
}

fn container(out: &mut impl Out, place: &Origin, number: u64) {
    out.put(Figure::AltContentPath, text(place.names.clone()));
    if let Some(rid) = &place.rid {
        out.put(Figure::ContentPath, text(rid.clone()));
    }
    out.put(Figure::TransportId, Told::Number(number));
    if let (Some(range), Some(lsn)) = (&place.range, place.lsn) {
        out.put(Figure::SessionToken, text(session::format(range, place.number, lsn)));
        out.put(Figure::RangeId, text(range.to_string()));
    }
    if let Some(lsn) = place.lsn {
        for figure in [Figure::Lsn, Figure::GlobalLsn, Figure::LocalLsn] {
            out.put(figure, Told::Number(lsn));
        }
    }
}

fn succeed(out: &mut impl Out, success: Success, took: Duration) -> (u16, Pieces) {
    if let Some(etag) = success.etag {
        out.put(Figure::Etag, text(etag));
    }
    if let Some(lsn) = success.item_lsn {
        out.put(Figure::ItemLsn, Told::Number(lsn));
    }
    if let Some(continuation) = success.continuation {
        out.put(Figure::Continuation, text(continuation));
    }
    if let Some(count) = success.item_count {
        out.put(Figure::ItemCount, Told::Number(count as u64));
    }
    if success.is_whole {
        out.put(Figure::RequiresDistribution, Told::Word("False"));
    }
    if let Some(figures) = &success.query {
        out.put(Figure::QueryMetrics, text(metrics(figures, took)));
    }
    if let Some((form, advice)) = success.advice.map(|advice| *advice) {
        out.put(Figure::IndexUtilization, text(advice::write(form, advice)));
    }
    if let Some(min) = success.throughput_min {
        out.put(Figure::MinThroughput, Told::Number(min.into()));
        out.put(Figure::ReplacePending, Told::Word("false"));
    }
    if success.shares_throughput {
        out.put(Figure::ShareThroughput, Told::Word("true"));
    }
    if success.ttl_ignored {
        out.put(Figure::TtlIgnored, Told::Word("true"));
    }
    if let Some(usage) = success.usage {
        out.put(Figure::Quota, Told::Quota(usage));
        out.put(Figure::Usage, Told::Usage(usage));
    }
    if let Some(percent) = success.index_progress {
        out.put(Figure::IndexProgress, Told::Number(percent.into()));
    }
    let body = match success.batch.map(|batch| *batch) {
        Some((BatchForm::Text, results)) => results::text(&results),
        Some((BatchForm::Rows, results)) => {
            out.put(Figure::ContentType, Told::Word("application/octet-stream"));
            results::rows(&results)
        }
        None => success.body,
    };
    (success.status, body)
}

fn fail(out: &mut impl Out, error: &Error, activity_id: &str) -> (u16, Pieces) {
    let wire = error.kind.wire();
    if wire.substatus != 0 {
        out.put(Figure::Substatus, Told::Number(wire.substatus.into()));
    }
    if let Some(milliseconds) = error.retry_after_ms {
        out.put(Figure::RetryAfter, Told::Number(milliseconds));
    }
    let message = format!("{}\r\nActivityId: {activity_id}", error.message);
    let body = serde_json::json!({ "code": wire.code, "message": message });
    (wire.status, body.to_string().into())
}

/// What a charge is made of, in the form of the figures of a query.
fn parts(charge: &Charge) -> String {
    let parts = charge.parts().into_iter();
    parts.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(";")
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

/// What a container may hold, as the service writes it: kilobytes in all, and nothing that is
/// limited beside that.
pub(crate) fn quota(usage: Usage) -> String {
    let of_ranges = || RANGE_KB * usage.ranges as u64;
    let kilobytes = usage.quota.map_or_else(of_ranges, |bytes| bytes / 1024);
    format!("documentSize=-1;documentsSize=-1;documentsCount=-1;collectionSize={kilobytes};")
}

/// What a container holds, in the same units.
pub(crate) fn used(usage: Usage) -> String {
    let kilobytes = usage.live.bytes.div_ceil(1024);
    format!(
        "documentSize={};documentsSize={kilobytes};documentsCount={};collectionSize={kilobytes};",
        kilobytes / 1024,
        usage.live.items,
    )
}

/// Milliseconds with three decimals.
pub(crate) fn milliseconds(duration: Duration) -> String {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let mut text = (micros / 1000).to_string();
    text.push('.');
    for unit in [100, 10, 1] {
        let digit = (micros / unit % 10) as u32;
        text.push(char::from_digit(digit, 10).unwrap_or('0'));
    }
    text
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
