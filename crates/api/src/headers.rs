//! How HTTP spells the options of a request: headers, as text, once each.

use std::borrow::Cow;

use dayfly_model::{Error, Result};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::options::{Opt, Options};

macro_rules! spelled {
    ($($option:ident $name:literal;)+) => {
        /// The header of an option.
        fn header(option: Opt) -> &'static HeaderName {
            match option {
                $(Opt::$option => {
                    static NAME: HeaderName = HeaderName::from_static($name);
                    &NAME
                })+
            }
        }
    };
}

spelled! {
    IncrementalFeed "a-im";
    ModifiedSince "if-modified-since";
    FeedFormat "x-ms-cosmos-changefeed-wire-format-version";
    Authorization "authorization";
    PlainDate "date";
    IfMatch "if-match";
    IfNoneMatch "if-none-match";
    ConfirmExpiry "x-dayfly-confirm-expiry";
    ExplainCharge "x-dayfly-explain-charge";
    Watch "x-dayfly-watch";
    Prefer "prefer";
    ConsistencyLevel "x-ms-consistency-level";
    ContentFormat "x-ms-documentdb-content-serialization-format";
    Continuation "x-ms-continuation";
    ContinuationKbMax "x-ms-documentdb-responsecontinuationtokenlimitinkb";
    IntendedRid "x-ms-cosmos-intended-collection-rid";
    BatchAtomic "x-ms-cosmos-batch-atomic";
    BatchContinue "x-ms-cosmos-batch-continue-on-error";
    IsBatch "x-ms-cosmos-is-batch-request";
    IsQueryPlan "x-ms-cosmos-is-query-plan-request";
    QueryFeatures "x-ms-cosmos-supported-query-features";
    OfferAutopilot "x-ms-cosmos-offer-autopilot-settings";
    Date "x-ms-date";
    IsUpsert "x-ms-documentdb-is-upsert";
    IsQuery "x-ms-documentdb-isquery";
    PartitionKey "x-ms-documentdb-partitionkey";
    RangeId "x-ms-documentdb-partitionkeyrangeid";
    Quota "x-ms-documentdb-populatequotainfo";
    PostTriggers "x-ms-documentdb-post-trigger-include";
    PreTriggers "x-ms-documentdb-pre-trigger-include";
    Statistics "x-ms-documentdb-populatepartitionstatistics";
    HasQuery "x-ms-documentdb-query";
    CrossPartition "x-ms-documentdb-query-enablecrosspartition";
    DirectExecution "x-ms-cosmos-query-optimisticdirectexecute";
    EnableScan "x-ms-documentdb-query-enable-scan";
    QueryMetrics "x-ms-documentdb-populatequerymetrics";
    IndexMetrics "x-ms-cosmos-populateindexmetrics";
    IndexMetricsV2 "x-ms-cosmos-populateindexmetrics-v2";
    EndEpk "x-ms-end-epk";
    IndexingDirective "x-ms-indexing-directive";
    MaxItemCount "x-ms-max-item-count";
    OfferThroughput "x-ms-offer-throughput";
    OfferType "x-ms-offer-type";
    MigrateToAutoscale "x-ms-cosmos-migrate-offer-to-autopilot";
    MigrateToManual "x-ms-cosmos-migrate-offer-to-manual-throughput";
    ReadKeyType "x-ms-read-key-type";
    SessionToken "x-ms-session-token";
    StartEpk "x-ms-start-epk";
    ThroughputBucket "x-ms-cosmos-throughput-bucket";
    Priority "x-ms-cosmos-priority-level";
    CacheAge "x-ms-dedicatedgateway-max-age";
    Version "x-ms-version";
}

/// What an option is called where it is told in a sentence: by every protocol as in HTTP.
pub(crate) fn name(option: Opt) -> &'static str {
    header(option).as_str()
}

/// Whether a request asks what its charge is made of. It is told with a refusal, too, so it
/// is looked for where the others may not have been read.
pub(crate) fn explains_charge(map: &HeaderMap) -> bool {
    let value = map.get(header(Opt::ExplainCharge)).map(HeaderValue::as_bytes);
    value.is_some_and(|value| value.eq_ignore_ascii_case(b"true"))
}

/// The headers of a request.
#[derive(Clone, Copy)]
pub(crate) struct Headers<'a> {
    map: &'a HeaderMap,
    /// A bit for each header that is there. Most of those we ask for are not, and
    /// this says so without a look-up.
    marks: u64,
}

/// The bit of a header; others may share it.
fn mark(name: &HeaderName) -> u64 {
    let name = name.as_str().as_bytes();
    let last = name.last().copied().map_or(0, usize::from);
    1 << ((name.len() + 5 * last) % 64)
}

impl<'a> Headers<'a> {
    pub(crate) fn new(map: &'a HeaderMap) -> Self {
        Headers { map, marks: map.keys().fold(0, |marks, name| marks | mark(name)) }
    }

    /// The header's value. Two values that differ are an error: nobody can
    /// tell which one counts.
    pub(crate) fn value(&self, name: &HeaderName) -> Result<Option<Cow<'a, str>>> {
        if self.marks & mark(name) == 0 {
            return Ok(None);
        }
        let mut values = self.map.get_all(name).iter();
        let Some(first) = values.next() else { return Ok(None) };
        if values.any(|value| value != first) {
            return Err(Error::bad_request(format!(
                "The header '{name}' was sent twice, with different values."
            )));
        }
        Ok(Some(as_text(first.as_bytes())))
    }
}

impl Options for Headers<'_> {
    fn text(&self, option: Opt) -> Result<Option<Cow<'_, str>>> {
        self.value(header(option))
    }

    fn name(&self, option: Opt) -> &str {
        name(option)
    }

    /// By the type of the body, or by one of three flags.
    fn is_query(&self) -> Result<bool> {
        let by_type = self
            .value(&CONTENT_TYPE)?
            .is_some_and(|kind| kind.trim_start().starts_with("application/query+json"));
        Ok(by_type
            || self.flag(Opt::IsQuery)?
            || self.flag(Opt::HasQuery)?
            || self.flag(Opt::IsQueryPlan)?)
    }
}

/// UTF-8 if it is, else one byte a character.
fn as_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
    }
}
