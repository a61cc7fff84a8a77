//! What a request says beside its verb, its resource and its body.
//!
//! An option is named by what it means. How a protocol spells it is the affair of the door
//! that the request came by: `headers.rs` knows it for HTTP.

use std::borrow::Cow;

use dayfly_model::{Error, Result};

/// An option of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opt {
    /// Asks for the change feed, in one of its modes.
    IncrementalFeed,
    /// Only what was written in this second or later.
    ModifiedSince,
    /// In which form changes are written.
    FeedFormat,
    /// The signature, or the key.
    Authorization,
    /// When it was signed, for those who cannot set the other one.
    PlainDate,
    /// Only if the resource has this etag.
    IfMatch,
    /// Only if it has not.
    IfNoneMatch,
    /// Says that a change may expire much.
    ConfirmExpiry,
    /// Asks what the charge is made of.
    ExplainCharge,
    /// It is asked again and again, by somebody who watches.
    Watch,
    /// Whether the answer may leave out the item.
    Prefer,
    /// How fresh a read must be.
    ConsistencyLevel,
    /// In which form answers are read.
    ContentFormat,
    /// Where the page begins.
    Continuation,
    /// How long the token of the next page may be.
    ContinuationKbMax,
    /// Which container of this name is meant.
    IntendedRid,
    /// Whether a batch is all or nothing.
    BatchAtomic,
    /// Whether a batch goes on after a failure.
    BatchContinue,
    /// The body is a batch.
    IsBatch,
    /// Asks for the plan of a query.
    IsQueryPlan,
    /// Which plans the client can carry out.
    QueryFeatures,
    /// How much throughput, at most.
    OfferAutopilot,
    /// When it was signed.
    Date,
    /// A create may replace.
    IsUpsert,
    /// The body is a query.
    IsQuery,
    /// Which partition.
    PartitionKey,
    /// Which partition key range.
    RangeId,
    /// Asks for quota and usage.
    Quota,
    /// Triggers after the write.
    PostTriggers,
    /// Triggers before the write.
    PreTriggers,
    /// Asks for the statistics of ranges.
    Statistics,
    /// The body is a query, too.
    HasQuery,
    /// A query may go over all partitions.
    CrossPartition,
    /// The client carries out no plan.
    DirectExecution,
    /// A query may go without an index.
    EnableScan,
    /// Asks what a query did.
    QueryMetrics,
    /// Asks which indexes it uses.
    IndexMetrics,
    /// The same, in the newer form.
    IndexMetricsV2,
    /// Keys before this.
    EndEpk,
    /// Whether the item is in the index.
    IndexingDirective,
    /// How long a page is.
    MaxItemCount,
    /// How much throughput.
    OfferThroughput,
    /// How much, by an old name.
    OfferType,
    /// The offer scales from now on.
    MigrateToAutoscale,
    /// The offer scales no more.
    MigrateToManual,
    /// What kind the bounds are of.
    ReadKeyType,
    /// What the client has seen.
    SessionToken,
    /// Keys from here on.
    StartEpk,
    /// Which share of the throughput the request takes from.
    ThroughputBucket,
    /// Whether it may wait for others.
    Priority,
    /// How old an answer from a cache may be.
    CacheAge,
    /// The version of the API.
    Version,
}

/// The options of a request, as its protocol brings them.
pub(crate) trait Options {
    /// The value of an option.
    fn text(&self, option: Opt) -> Result<Option<Cow<'_, str>>>;

    /// What the protocol calls it, for sentences.
    fn name(&self, option: Opt) -> &str;

    /// The RID that the client has cached for the container that it names, where it says so
    /// and does not send the request before it is told that the container is another one.
    fn cached_rid(&self) -> Option<&str> {
        None
    }

    /// Another RID for the same container, where the request gives two that differ.
    fn second_rid(&self) -> Option<String> {
        None
    }

    /// Whether the body is a query.
    fn is_query(&self) -> Result<bool>;

    /// Whether an option says true, in whatever case.
    fn flag(&self, option: Opt) -> Result<bool> {
        match self.text(option)? {
            None => Ok(false),
            Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
            Some(value) if value.eq_ignore_ascii_case("false") || value.is_empty() => Ok(false),
            Some(value) => Err(Error::bad_request(format!(
                "The header '{}' has the value '{value}', but must be true or false.",
                self.name(option)
            ))),
        }
    }

    /// The value of an option, if it is not empty.
    fn owned(&self, option: Opt) -> Result<Option<String>> {
        Ok(self.text(option)?.filter(|value| !value.is_empty()).map(Cow::into_owned))
    }
}
