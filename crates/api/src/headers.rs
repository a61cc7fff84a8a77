//! Reading request headers: as text, once each.

use std::borrow::Cow;

use dayfly_model::{Error, Result};
use http::{HeaderMap, HeaderName};

/// The headers that we look at, ready to be looked up.
pub(crate) mod name {
    use http::HeaderName;

    pub(crate) const A_IM: HeaderName = HeaderName::from_static("a-im");
    pub(crate) const AUTHORIZATION: HeaderName = HeaderName::from_static("authorization");
    pub(crate) const CONTENT_TYPE: HeaderName = HeaderName::from_static("content-type");
    pub(crate) const DATE: HeaderName = HeaderName::from_static("date");
    pub(crate) const IF_MATCH: HeaderName = HeaderName::from_static("if-match");
    pub(crate) const IF_NONE_MATCH: HeaderName = HeaderName::from_static("if-none-match");
    pub(crate) const CONFIRM_EXPIRY: HeaderName =
        HeaderName::from_static("x-dayfly-confirm-expiry");
    pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");
    pub(crate) const CONSISTENCY_LEVEL: HeaderName =
        HeaderName::from_static("x-ms-consistency-level");
    pub(crate) const CONTENT_FORMAT: HeaderName =
        HeaderName::from_static("x-ms-documentdb-content-serialization-format");
    pub(crate) const CONTINUATION: HeaderName = HeaderName::from_static("x-ms-continuation");
    pub(crate) const CONTINUATION_KB_MAX: HeaderName =
        HeaderName::from_static("x-ms-documentdb-responsecontinuationtokenlimitinkb");
    pub(crate) const INTENDED_COLLECTION_RID: HeaderName =
        HeaderName::from_static("x-ms-cosmos-intended-collection-rid");
    pub(crate) const BATCH_ATOMIC: HeaderName = HeaderName::from_static("x-ms-cosmos-batch-atomic");
    pub(crate) const BATCH_CONTINUE: HeaderName =
        HeaderName::from_static("x-ms-cosmos-batch-continue-on-error");
    pub(crate) const IS_BATCH_REQUEST: HeaderName =
        HeaderName::from_static("x-ms-cosmos-is-batch-request");
    pub(crate) const IS_QUERY_PLAN_REQUEST: HeaderName =
        HeaderName::from_static("x-ms-cosmos-is-query-plan-request");
    pub(crate) const QUERY_FEATURES: HeaderName =
        HeaderName::from_static("x-ms-cosmos-supported-query-features");
    pub(crate) const OFFER_AUTOPILOT_SETTINGS: HeaderName =
        HeaderName::from_static("x-ms-cosmos-offer-autopilot-settings");
    pub(crate) const MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
    pub(crate) const IS_UPSERT: HeaderName = HeaderName::from_static("x-ms-documentdb-is-upsert");
    pub(crate) const IS_QUERY: HeaderName = HeaderName::from_static("x-ms-documentdb-isquery");
    pub(crate) const PARTITION_KEY: HeaderName =
        HeaderName::from_static("x-ms-documentdb-partitionkey");
    pub(crate) const RANGE_ID: HeaderName =
        HeaderName::from_static("x-ms-documentdb-partitionkeyrangeid");
    pub(crate) const QUOTA: HeaderName =
        HeaderName::from_static("x-ms-documentdb-populatequotainfo");
    pub(crate) const POST_TRIGGER_INCLUDE: HeaderName =
        HeaderName::from_static("x-ms-documentdb-post-trigger-include");
    pub(crate) const PRE_TRIGGER_INCLUDE: HeaderName =
        HeaderName::from_static("x-ms-documentdb-pre-trigger-include");
    pub(crate) const STATISTICS: HeaderName =
        HeaderName::from_static("x-ms-documentdb-populatepartitionstatistics");
    pub(crate) const QUERY: HeaderName = HeaderName::from_static("x-ms-documentdb-query");
    pub(crate) const CROSS_PARTITION: HeaderName =
        HeaderName::from_static("x-ms-documentdb-query-enablecrosspartition");
    pub(crate) const DIRECT_EXECUTION: HeaderName =
        HeaderName::from_static("x-ms-cosmos-query-optimisticdirectexecute");
    pub(crate) const ENABLE_SCAN: HeaderName =
        HeaderName::from_static("x-ms-documentdb-query-enable-scan");
    pub(crate) const QUERY_METRICS: HeaderName =
        HeaderName::from_static("x-ms-documentdb-populatequerymetrics");
    pub(crate) const INDEX_METRICS: HeaderName =
        HeaderName::from_static("x-ms-cosmos-populateindexmetrics");
    pub(crate) const INDEX_METRICS_V2: HeaderName =
        HeaderName::from_static("x-ms-cosmos-populateindexmetrics-v2");
    pub(crate) const END_EPK: HeaderName = HeaderName::from_static("x-ms-end-epk");
    pub(crate) const INDEXING_DIRECTIVE: HeaderName =
        HeaderName::from_static("x-ms-indexing-directive");
    pub(crate) const MAX_ITEM_COUNT: HeaderName = HeaderName::from_static("x-ms-max-item-count");
    pub(crate) const OFFER_THROUGHPUT: HeaderName =
        HeaderName::from_static("x-ms-offer-throughput");
    pub(crate) const OFFER_TYPE: HeaderName = HeaderName::from_static("x-ms-offer-type");
    pub(crate) const READ_KEY_TYPE: HeaderName = HeaderName::from_static("x-ms-read-key-type");
    pub(crate) const SESSION_TOKEN: HeaderName = HeaderName::from_static("x-ms-session-token");
    pub(crate) const START_EPK: HeaderName = HeaderName::from_static("x-ms-start-epk");
    pub(crate) const VERSION: HeaderName = HeaderName::from_static("x-ms-version");
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
    pub(crate) fn text(&self, name: &HeaderName) -> Result<Option<Cow<'a, str>>> {
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

    /// Whether the header says true, in whatever case.
    pub(crate) fn flag(&self, name: &HeaderName) -> Result<bool> {
        match self.text(name)? {
            None => Ok(false),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
            Some(value) if value.eq_ignore_ascii_case("false") || value.is_empty() => Ok(false),
            Some(value) => Err(Error::bad_request(format!(
                "The header '{name}' has the value '{value}', but must be true or false."
            ))),
        }
    }

    /// The header's value, if it has one.
    pub(crate) fn owned(&self, name: &HeaderName) -> Result<Option<String>> {
        Ok(self.text(name)?.filter(|value| !value.is_empty()).map(Cow::into_owned))
    }
}

/// UTF-8 if it is, else one byte a character.
fn as_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
    }
}
