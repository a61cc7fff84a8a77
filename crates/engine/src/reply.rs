//! What an operation answers, before it becomes HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dayfly_model::charge::Charge;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
pub use dayfly_storage::tally::Count;
use serde_json::{Map, Value};

use crate::condition::names;
use crate::operation::{AdviceForm, BatchForm, Condition};

/// The answer to an operation, also when it failed.
#[derive(Clone, Debug)]
pub struct Reply {
    /// What was asked for, or why not.
    pub outcome: Result<Success>,
    /// The request's time: a read's snapshot, or a write's commit. Unknown
    /// only when the store could not be asked.
    pub now: Option<Timestamp>,
    /// What it cost.
    pub charge: Charge,
    /// Where it happened, for requests that got as far as a container.
    pub place: Option<Origin>,
}

/// What a successful operation answers.
#[derive(Clone, Debug, Default)]
pub struct Success {
    /// The HTTP status.
    pub status: u16,
    /// The JSON to send; empty for none.
    pub body: Pieces,
    /// The resource's version.
    pub etag: Option<String>,
    /// The commit that wrote the item.
    pub item_lsn: Option<u64>,
    /// Where the next page starts.
    pub continuation: Option<String>,
    /// How many resources a list holds.
    pub item_count: Option<usize>,
    /// How far the index of a container has come to its policy, in percent, if
    /// that was asked for.
    pub index_progress: Option<u8>,
    /// For a container: what is alive in it.
    pub usage: Option<Usage>,
    /// Whether an item was written with a `ttl` that counts for nothing,
    /// because the container has no default.
    pub ttl_ignored: bool,
    /// Whether to say that the answer of a query needs no merging.
    pub is_whole: bool,
    /// What a query did, if that was asked for. Rare things are elsewhere: a
    /// success changes hands often.
    pub query: Option<Box<QueryFigures>>,
    /// Which indexes a query uses, if that was asked for.
    pub advice: Option<Box<(AdviceForm, IndexAdvice)>>,
    /// What each operation of a batch answers, in their order, and how that is written.
    pub batch: Option<Box<(BatchForm, Vec<Reply>)>>,
    /// For a container: whether it shares the throughput of its database.
    pub shares_throughput: bool,
    /// For an offer: the least throughput it could be given.
    pub throughput_min: Option<u32>,
}

/// What is alive in a container, and over how many ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The items, and their bytes.
    pub live: Count,
    /// How many ranges it has.
    pub ranges: usize,
    /// How many bytes it may hold, if that is limited.
    pub quota: Option<u64>,
}

/// What a page of a query did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueryFigures {
    /// How many items were read.
    pub items: u64,
    /// How many bytes they have.
    pub item_bytes: u64,
    /// How many keys or entries of the index were looked at.
    pub entries: u64,
    /// How many of those were of items that are dead and not removed yet.
    pub dead: u64,
    /// How many rows came out.
    pub rows: u64,
    /// How many bytes they have.
    pub row_bytes: u64,
    /// How long the steps before the first item took.
    pub times: QueryTimes,
}

/// How long it took until a query could begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryTimes {
    /// To read it.
    pub compile: Duration,
    /// To find out where to look.
    pub plan: Duration,
    /// To choose the way to the items.
    pub choose: Duration,
    /// To begin on it.
    pub open: Duration,
}

/// Which indexes a query uses, and which would help it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexAdvice {
    /// Those it uses.
    pub used: Indexes,
    /// Those that the container does not have.
    pub missing: Indexes,
}

/// Some indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes {
    /// Those of one path.
    pub single: Vec<SingleIndex>,
    /// Those of several, each with its direction, such as `/a ASC`.
    pub composite: Vec<Vec<String>>,
}

/// An index of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleIndex {
    /// The path, such as `/a/?`.
    pub path: String,
    /// Whether it leads to some values, and not to all of a type.
    pub is_selective: bool,
}

/// Bytes in two pieces, one after the other, so that an item of 2 MB is not
/// copied for the few properties that come after it.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    /// The beginning.
    pub first: Bytes,
    /// The end; empty where one piece is all.
    pub second: Bytes,
}

impl Pieces {
    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All in one piece, as a copy.
    pub fn to_vec(&self) -> Vec<u8> {
        [&*self.first, &*self.second].concat()
    }
}

impl<T: Into<Bytes>> From<T> for Pieces {
    fn from(whole: T) -> Self {
        Pieces { first: whole.into(), second: Bytes::new() }
    }
}

/// What an answer is about lies in a container, or is one and lies in a database:
/// the names of that, and where the order of its commits stood.
#[derive(Clone, Debug)]
pub struct Origin {
    /// `dbs/{name}/colls/{name}` or `dbs/{name}`, in UTF-8.
    pub names: Bytes,
    /// Its RID, unless that is not to be told.
    pub rid: Option<Bytes>,
    /// The container's number, which no other container ever has.
    pub number: u32,
    /// The one partition key range that the answer is about. Nothing else makes a
    /// session token: most clients cannot read one of several ranges.
    pub range: Option<Arc<str>>,
    /// The last commit that this answer knows, of all that it is about.
    pub lsn: Option<u64>,
}

impl Success {
    /// A status and a body.
    pub(crate) fn new(status: u16, body: impl Into<Pieces>) -> Self {
        Success { status, body: body.into(), ..Success::default() }
    }

    /// Leaves the body out for a client that has this version already.
    pub(crate) fn unless_known(&mut self, condition: &Condition) {
        let etag = self.etag.as_deref().unwrap_or_default();
        if condition.if_none_match.as_ref().is_some_and(|known| names(known, etag)) {
            self.status = 304;
            self.body = Pieces::default();
        }
    }
}

impl Reply {
    /// A success at `now`.
    pub(crate) fn ok(success: Success, now: Timestamp, charge: impl Into<Charge>) -> Self {
        Reply { outcome: Ok(success), now: Some(now), charge: charge.into(), place: None }
    }

    /// A failure at `now`.
    pub(crate) fn failed(error: Error, now: Timestamp) -> Self {
        Reply { outcome: Err(error), now: Some(now), charge: Charge::FAILURE, place: None }
    }

    /// The same, with the place it happened.
    pub(crate) fn at(mut self, place: Origin) -> Self {
        self.place = Some(place);
        self
    }
}

impl From<Error> for Reply {
    fn from(error: Error) -> Self {
        Reply { outcome: Err(error), now: None, charge: Charge::NOTHING, place: None }
    }
}

impl From<dayfly_storage::Error> for Reply {
    fn from(error: dayfly_storage::Error) -> Self {
        storage_failed(error).into()
    }
}

/// A page of resources in the envelope of the service.
pub(crate) fn feed(
    rid: &str,
    name: &str,
    resources: Vec<Value>,
    continuation: Option<String>,
    now: Timestamp,
) -> Reply {
    let count = resources.len();
    let mut body = Map::new();
    body.insert("_rid".to_owned(), rid.into());
    body.insert(name.to_owned(), Value::Array(resources));
    body.insert("_count".to_owned(), count.into());
    let success = Success {
        continuation,
        item_count: Some(count),
        ..Success::new(200, Value::Object(body).to_string())
    };
    Reply::ok(success, now, Charge::LOOK)
}

/// The answer to whoever still waits when the server ends.
pub(crate) fn stopped() -> Error {
    Error::new(ErrorKind::ServiceUnavailable, "The server is stopping.")
}

/// How a failure of the store looks to a client.
pub(crate) fn storage_failed(error: dayfly_storage::Error) -> Error {
    use dayfly_storage::Error as Storage;
    match error {
        Storage::Retry => Error::new(
            ErrorKind::RetryWith,
            "Conflicting request to resource has been attempted. Retry to avoid conflicts.",
        ),
        Storage::Full => Error::new(
            ErrorKind::InsufficientStorage,
            "The disk is full, or nearly: writes that need space are refused. Reads work, and \
             deletes as long as there is space for them. Free some space and send the request \
             again.",
        ),
        Storage::Unknown(why) => Error::new(
            ErrorKind::ServiceUnavailable,
            format!("The write may or may not have happened: {why}. Read before you write again."),
        ),
        Storage::Unavailable(why) => Error::new(
            ErrorKind::ServiceUnavailable,
            format!("The store cannot be used just now: {why}."),
        ),
        Storage::Corrupt(what) => {
            tracing::error!(what, "the stored data is damaged");
            Error::new(ErrorKind::Internal, format!("The stored data is damaged: {what}."))
        }
    }
}
