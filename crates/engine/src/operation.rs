//! Everything the server can be asked to do.
//!
//! An operation is complete: whoever made it has read the request, and nobody
//! below looks at headers again. Resources are named as the client named them,
//! by name or by RID.

use dayfly_model::epk::Epk;
use dayfly_model::json::ObjectText;
pub use dayfly_model::meter::{BUCKETS, Priority, Service};
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::patch::Patch;
use dayfly_model::throughput::{Migration, Throughput};
use dayfly_model::ttl::ContainerTtl;
use dayfly_model::{Error, ErrorKind, Timestamp};
pub use dayfly_storage::clock::Step as ClockStep;

use crate::settings::ThroughputMode;

/// A request, understood.
#[derive(Clone, Debug)]
pub enum Operation {
    /// The time, for answers that come from no resource.
    ReadTime,

    /// Makes a database.
    CreateDatabase {
        /// Its name.
        id: String,
        /// What its containers share, if anything.
        throughput: Option<Throughput>,
    },
    /// Shows a database.
    ReadDatabase {
        /// Which one.
        database: String,
        /// On which condition.
        condition: Condition,
    },
    /// Shows the databases of the account.
    ListDatabases {
        /// Which page.
        page: Page,
    },
    /// Removes a database with all that is in it.
    DeleteDatabase {
        /// Which one.
        database: String,
        /// On which condition.
        condition: Condition,
    },

    /// Makes a container.
    CreateContainer {
        /// Where.
        database: String,
        /// The request's body.
        definition: Vec<u8>,
        /// Its own throughput, if it has any.
        throughput: Option<Throughput>,
        /// How it is shown.
        showing: Showing,
    },
    /// Shows a container.
    ReadContainer {
        /// Which one.
        at: ContainerScope,
        /// On which condition.
        condition: Condition,
        /// What else is asked for.
        wishes: ContainerWishes,
    },
    /// Shows the containers of a database.
    ListContainers {
        /// Of which one.
        database: String,
        /// Which page.
        page: Page,
        /// How they are shown.
        showing: Showing,
    },
    /// Changes a container's definition.
    ReplaceContainer(Replacement),
    /// Removes a container with all that is in it.
    DeleteContainer {
        /// Which one.
        at: ContainerScope,
        /// On which condition.
        condition: Condition,
    },

    /// Makes a client encryption key.
    CreateEncryptionKey {
        /// In which database.
        database: String,
        /// The request's body.
        key: Vec<u8>,
    },
    /// Shows a client encryption key.
    ReadEncryptionKey {
        /// In which database.
        database: String,
        /// Its name; or its RID, when the database is named by RID.
        key: String,
        /// On which condition.
        condition: Condition,
    },
    /// Shows the client encryption keys of a database.
    ListEncryptionKeys {
        /// Of which one.
        database: String,
        /// Which page.
        page: Page,
    },
    /// Replaces a client encryption key.
    ReplaceEncryptionKey {
        /// In which database.
        database: String,
        /// Its name; or its RID, when the database is named by RID.
        key: String,
        /// The request's body.
        replacement: Vec<u8>,
        /// On which condition.
        condition: Condition,
    },

    /// Writes an item.
    WriteItem(WriteItem),
    /// Writes and reads several items.
    WriteBatch(WriteBatch),
    /// Deletes all items of a partition key.
    DeletePartition {
        /// Where.
        at: ContainerScope,
        /// The key, which must be whole.
        partition_key: Option<PartitionKey>,
    },
    /// Shows an item.
    ReadItem {
        /// Where.
        at: ContainerScope,
        /// Which one.
        item: ItemAddress,
        /// On which condition.
        condition: Condition,
    },
    /// Shows the items of a container, or of a part of it.
    ListItems {
        /// Where.
        at: ContainerScope,
        /// Which part.
        part: Part,
        /// Which page.
        page: Page,
    },
    /// Shows what changed in a container, or in a part of it.
    ReadChanges(ReadChanges),
    /// Shows the items that a query asks for.
    QueryItems(QueryItems),
    /// Carries out the first page of a query, and says how that was done.
    ExplainQuery(QueryItems),
    /// Says how a client carries out a query that asks ranges by itself.
    PlanQuery(PlanQuery),
    /// Shows the databases, containers, keys, offers or ranges that a query asks for.
    QueryFeed(QueryFeed),

    /// Answers a request that was refused before it became an operation, as one about
    /// its part of a container.
    Refuse {
        /// Where.
        at: ContainerScope,
        /// Which part it names.
        part: Part,
        /// Why.
        error: Error,
    },

    /// Shows the partition key ranges of a container.
    ListRanges {
        /// Of which one.
        at: ContainerScope,
        /// The version the client knows.
        known: Option<String>,
    },

    /// Shows the conflicts of a container: where there is one region, there are none.
    ListConflicts {
        /// Of which one.
        at: ContainerScope,
    },
    /// Looks for one conflict, and finds none.
    FindConflict {
        /// Where.
        at: ContainerScope,
    },

    /// Shows the offers of the account.
    ListOffers {
        /// Which page.
        page: Page,
    },
    /// Shows an offer.
    ReadOffer {
        /// Its RID.
        offer: String,
    },
    /// Changes the throughput of a database or container.
    ReplaceOffer(OfferReplacement),
    /// Divides partition key ranges of a container.
    SplitRanges {
        /// Of which one.
        at: ContainerScope,
        /// Which of them.
        division: Division,
    },

    /// Shows how time to live stands in a container.
    ReadTtl {
        /// Which one.
        at: ContainerScope,
    },
    /// Shows what will expire when.
    ForecastTtl {
        /// Where.
        at: ContainerScope,
        /// How many stretches of time.
        buckets: u32,
        /// How long each is.
        bucket_seconds: u32,
    },
    /// Shows what another default would expire.
    WhatIfTtl {
        /// Where.
        at: ContainerScope,
        /// The default.
        default: ContainerTtl,
    },
    /// Shows why an item lives, or not.
    ExplainTtl {
        /// Where.
        at: ContainerScope,
        /// Its id.
        id: String,
        /// Its partition key.
        partition_key: PartitionKey,
    },

    /// Shows how all containers stand, page by page.
    SurveyContainers {
        /// Which page.
        page: Page,
    },
    /// Shows how one container stands.
    SurveyContainer {
        /// The container.
        at: ContainerScope,
    },
    /// Shows items with the end of their lives.
    SurveyItems(SurveyItems),

    /// Shows what becomes of the throughput of a container.
    ReadThroughput {
        /// Of which one.
        at: ContainerScope,
        /// How many of the last seconds.
        seconds: u64,
    },
    /// Says whether requests to a container are refused that ask for more than it is given.
    SwitchThroughput {
        /// Which one.
        at: ContainerScope,
        /// Nothing: as the server does.
        mode: Option<ThroughputMode>,
    },
    /// Says how much of the throughput of a container each of its throughput buckets may take.
    ShareThroughput {
        /// Of which one.
        at: ContainerScope,
        /// In percent; a bucket without a share takes what there is.
        shares: [Option<u8>; BUCKETS],
    },

    /// Shows the clock.
    ReadClock,
    /// Moves the test clock, or accepts what the wall clock shows.
    MoveClock {
        /// How.
        step: ClockStep,
    },

    /// Removes all databases, on a server for tests.
    Reset,

    /// Removes what is due now, and answers when it is gone.
    RunPurge {
        /// In which database and container; in all without.
        container: Option<(String, String)>,
    },
    /// Stops the background purge, until it is resumed or the server restarts.
    PausePurge {
        /// In which database and container; in all without.
        container: Option<(String, String)>,
    },
    /// Lets the background purge go on.
    ResumePurge {
        /// In which database and container; in all without.
        container: Option<(String, String)>,
    },
}

/// What may be asked for together with a container.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContainerWishes {
    /// The progress of its index.
    pub quota: bool,
    /// What each of its partition key ranges holds.
    pub statistics: bool,
    /// How it is shown.
    pub showing: Showing,
}

/// How containers are shown to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Showing {
    /// With all they have.
    #[default]
    Whole,
    /// As to clients from before there was a system key: one that has it is shown
    /// without a partition key, or such a client would ask for the key of every item.
    NoSystemKey,
    /// As to still older ones: also with the kinds of index that an included path was
    /// given.
    WithKinds,
}

/// A change of a container's definition.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// Which container.
    pub at: ContainerScope,
    /// The request's body.
    pub definition: Vec<u8>,
    /// On which condition.
    pub condition: Condition,
    /// Whether the progress of the index is asked for.
    pub quota: bool,
    /// Whether the client knows that the change may expire many items.
    pub confirm_expiry: bool,
    /// How the container is shown.
    pub showing: Showing,
}

/// A change of an offer.
#[derive(Clone, Debug)]
pub struct OfferReplacement {
    /// Which offer, by RID.
    pub offer: String,
    /// The request's body.
    pub body: Vec<u8>,
    /// On which condition.
    pub condition: Condition,
    /// Whether it is to scale from now on, or no more.
    pub migration: Option<Migration>,
}

/// A container as the request names it, and what the request believes of it.
#[derive(Clone, Debug, Default)]
pub struct ContainerScope {
    /// The database, by name or RID.
    pub database: String,
    /// The container, by name or RID.
    pub container: String,
    /// The RIDs that the client has cached for it, judged one after the other.
    pub intended: Vec<Intended>,
    /// What the client has seen already.
    pub session: Option<String>,
    /// How it is to be served, beside others.
    pub service: Service,
}

/// A RID that a client takes for that of a container.
#[derive(Clone, Debug)]
pub struct Intended {
    /// The RID.
    pub rid: String,
    /// What it is told when the container has another one.
    pub otherwise: ErrorKind,
}

/// An item as the request names it.
#[derive(Clone, Debug)]
pub struct ItemAddress {
    /// Its id; or its RID, when the container is named by RID.
    pub id: String,
    /// Its partition key, if the request gives one.
    pub partition_key: Option<PartitionKey>,
}

/// A write to one item.
#[derive(Clone, Debug)]
pub struct WriteItem {
    /// Where.
    pub at: ContainerScope,
    /// What to do.
    pub act: Act,
    /// The partition key of the request, if it gives one.
    pub partition_key: Option<PartitionKey>,
    /// On which condition.
    pub condition: Condition,
    /// Whether the answer leaves the item out.
    pub minimal: bool,
    /// Whether the item is in the index.
    pub indexing: Indexing,
}

/// Which partition key ranges are divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Division {
    /// The widest; of several, the first.
    Widest,
    /// The one with this id.
    Range(String),
    /// The widest one again and again, until there are so many.
    Ranges(usize),
}

/// Whether an item is in the index of its container, if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// As the container's policy says.
    #[default]
    ByPolicy,
    /// It is.
    Include,
    /// It is not.
    Exclude,
}

impl Indexing {
    /// What a word of the service means; no word is as good as `Default`.
    pub fn named(word: &str) -> Option<Indexing> {
        let is = |known: &str| word.eq_ignore_ascii_case(known);
        match word {
            _ if word.is_empty() || is("Default") => Some(Indexing::ByPolicy),
            _ if is("Include") => Some(Indexing::Include),
            _ if is("Exclude") => Some(Indexing::Exclude),
            _ => None,
        }
    }
}

/// Several writes and reads in one request.
#[derive(Clone, Debug)]
pub struct WriteBatch {
    /// Where.
    pub at: ContainerScope,
    /// The partition, or the range, that all of them are in.
    pub part: Part,
    /// What happens when one of them fails.
    pub mode: BatchMode,
    /// One after the other. What cannot be read fails in its turn. Where they are is said
    /// above.
    pub steps: Vec<Result<WriteItem, Error>>,
    /// How it is written, and how its answer is to be.
    pub form: BatchForm,
}

/// How a batch is written; it comes back with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchForm {
    /// As an array of JSON.
    Text,
    /// In binary rows, as .NET does.
    Rows,
}

/// What happens when an operation of a batch fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchMode {
    /// None is carried out.
    Atomic,
    /// Those before it are carried out, those after it are not.
    Stops,
    /// All others are carried out.
    GoesOn,
}

/// What a write does.
#[derive(Clone, Debug)]
pub enum Act {
    /// Makes a new item.
    Create(ObjectText),
    /// Makes the item, or replaces it.
    Upsert(ObjectText),
    /// Replaces the item with this id.
    Replace(String, ObjectText),
    /// Changes parts of the item with this id.
    Patch(String, Patch),
    /// Removes the item with this id.
    Delete(String),
    /// Shows the item with this id; in a batch only.
    Read(String),
}

/// `If-Match` and `If-None-Match`.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// Only if the resource has this etag.
    pub if_match: Option<String>,
    /// Only if it has not.
    pub if_none_match: Option<String>,
}

/// Which page of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// At most this many; the server decides without it.
    pub limit: Option<usize>,
    /// Where the page before ended.
    pub continuation: Option<String>,
}

/// Some items of a container, with the end of their lives.
#[derive(Clone, Debug)]
pub struct SurveyItems {
    /// Where.
    pub at: ContainerScope,
    /// In which order, and which of them.
    pub order: SurveyOrder,
    /// Which page.
    pub page: Page,
}

/// An order of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurveyOrder {
    /// That in which they are kept.
    ByKey,
    /// Those that die first, first.
    ByExpiry {
        /// Only those that die within so many seconds.
        within: Option<u32>,
    },
}

/// A page of the change feed.
#[derive(Clone, Debug)]
pub struct ReadChanges {
    /// Where.
    pub at: ContainerScope,
    /// Which part.
    pub part: Part,
    /// Which changes.
    pub mode: FeedMode,
    /// From where on.
    pub from: ChangesFrom,
    /// Only what was written in this second or later.
    pub since: Option<Timestamp>,
    /// At most this many, but for those of one commit; the server decides without it.
    pub limit: Option<usize>,
    /// Whether each item comes in an envelope, with what is told of the change.
    pub envelope: bool,
}

/// Which changes a feed shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedMode {
    /// The newest version of each item that is alive.
    Latest,
    /// Every version, and how it ended.
    AllVersions,
}

/// Where a feed is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangesFrom {
    /// The first change of all.
    Beginning,
    /// The first that comes after this request.
    Now,
    /// What comes after this place, which an earlier page told.
    After(String),
}

/// A query of items.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
pub struct QueryItems {
    /// Where.
    pub at: ContainerScope,
    /// The request's body.
    pub query: Vec<u8>,
    /// Which part.
    pub part: Part,
    /// Which page.
    pub page: Page,
    /// Whether it may go over several ranges.
    pub cross_partition: bool,
    /// Whether it may read a container that has no index.
    pub scan: bool,
    /// Whether its metrics are asked for.
    pub metrics: bool,
    /// Whether the client would merge the answers of ranges, if it had to.
    pub direct: bool,
    /// Whether it is asked which indexes it uses, and how that is to be written.
    pub advice: Option<AdviceForm>,
}

/// How it is written which indexes a query uses; it comes back with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdviceForm {
    /// As older clients read it.
    First,
    /// As newer ones do.
    Second,
}

/// A request for the plan of a query.
#[derive(Clone, Debug)]
pub struct PlanQuery {
    /// Where.
    pub at: ContainerScope,
    /// The request's body.
    pub query: Vec<u8>,
    /// What the client says it can do, as a list with commas.
    pub features: String,
}

/// A query of resources that are not items.
#[derive(Clone, Debug)]
pub struct QueryFeed {
    /// Which ones.
    pub feed: Feed,
    /// The request's body.
    pub query: Vec<u8>,
    /// Which page.
    pub page: Page,
}

/// Resources that are not items.
#[derive(Clone, Debug)]
pub enum Feed {
    /// The databases of the account.
    Databases,
    /// The containers of a database, and how they are shown.
    Containers(String, Showing),
    /// The client encryption keys of a database.
    EncryptionKeys(String),
    /// The partition key ranges of a container.
    Ranges(ContainerScope),
    /// The conflicts of a container, of which there are none.
    Conflicts(ContainerScope),
    /// The offers of the account.
    Offers,
}

/// Which part of a container.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// One logical partition, or those that share a prefix.
    pub partition_key: Option<PartitionKey>,
    /// One partition key range, by its id.
    pub range: Option<String>,
    /// Keys from here on.
    pub start: Option<Epk>,
    /// Keys before this.
    pub end: Option<Epk>,
}

impl Part {
    /// The part with this partition key; everything without one.
    pub fn of(partition_key: Option<PartitionKey>) -> Part {
        Part { partition_key, ..Part::default() }
    }

    /// Whether all of the container is meant.
    pub fn is_everything(&self) -> bool {
        self.partition_key.is_none() && !self.is_scoped()
    }

    /// Whether the client says which ranges of keys it means.
    pub fn is_scoped(&self) -> bool {
        self.range.is_some() || self.start.is_some() || self.end.is_some()
    }
}
