//! What a frame asks for: its verb, its resource and its options, by their meaning.
//!
//! A resource is named by names, or by the bytes of its RID, in which the RIDs of all it is
//! in stand first. Either makes the segments of a path, so routes, signatures and
//! operations are those of HTTP. Names come raw: nothing is decoded.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dayfly_model::{Error, Result};

use super::frame::{DirectClient, Head};
use super::token::Malformed;
use crate::options::{Opt, Options};

/// The tokens of a request that say where it goes and how it is answered.
mod id {
    pub(super) const RESOURCE_ID: u16 = 0x0000;
    pub(super) const PAYLOAD_PRESENT: u16 = 0x0002;
    pub(super) const MATCH: u16 = 0x0008;
    pub(super) const REPLICA_PATH: u16 = 0x0013;
    pub(super) const DATABASE: u16 = 0x0015;
    pub(super) const CONTAINER: u16 = 0x0016;
    pub(super) const USER: u16 = 0x0019;
    pub(super) const VERSION: u16 = 0x0028;
    pub(super) const PARTITION_KEY: u16 = 0x002B;
    pub(super) const RANGE_ID: u16 = 0x002C;
    pub(super) const CONTAINER_RID: u16 = 0x0035;
    pub(super) const TRANSPORT_ID: u16 = 0x004D;
}

/// A page of so many rows is as many as fit.
const ALL_THAT_FIT: u64 = u32::MAX as u64;

/// What is done, as far as a frame says it by a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Create,
    Upsert,
    Batch,
    Query,
    Plan,
    Read,
    ReadFeed,
    Replace,
    Patch,
    Delete,
    Execute,
    Head,
    HeadFeed,
}

impl Verb {
    fn of(number: u16) -> Option<Verb> {
        Some(match number {
            0x0001 => Verb::Create,
            0x0002 => Verb::Patch,
            0x0003 => Verb::Read,
            0x0004 => Verb::ReadFeed,
            0x0005 => Verb::Delete,
            0x0006 => Verb::Replace,
            0x0008 => Verb::Execute,
            0x0009 | 0x000F => Verb::Query,
            0x0011 => Verb::Head,
            0x0012 => Verb::HeadFeed,
            0x0013 => Verb::Upsert,
            0x0025 => Verb::Batch,
            0x0042 => Verb::Plan,
            _ => return None,
        })
    }

    /// By the words of HTTP, as it is signed.
    fn word(self) -> &'static str {
        match self {
            Verb::Create | Verb::Upsert | Verb::Batch => "POST",
            Verb::Query | Verb::Plan | Verb::Execute => "POST",
            Verb::Read | Verb::ReadFeed => "GET",
            Verb::Replace => "PUT",
            Verb::Patch => "PATCH",
            Verb::Delete => "DELETE",
            Verb::Head | Verb::HeadFeed => "HEAD",
        }
    }

    /// Whether it is about what is in a resource, and not about the resource.
    fn is_of_feed(self) -> bool {
        match self {
            Verb::Create | Verb::Upsert | Verb::Batch | Verb::Query | Verb::Plan => true,
            Verb::ReadFeed | Verb::HeadFeed => true,
            Verb::Read | Verb::Replace | Verb::Patch | Verb::Delete => false,
            Verb::Execute | Verb::Head => false,
        }
    }
}

/// Where a kind of resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Account,
    Database,
    Container,
    User,
}

/// A kind of resource: its word in a path, where it is, and the token with its name.
#[derive(Clone, Copy, Debug)]
struct Sort {
    word: &'static str,
    within: Within,
    name: u16,
}

impl Sort {
    fn of(number: u16) -> Option<Sort> {
        let (word, within, name) = match number {
            0x01 => ("dbs", Within::Account, id::DATABASE),
            0x02 => ("colls", Within::Database, id::CONTAINER),
            0x03 => ("docs", Within::Container, 0x0017),
            0x05 => ("users", Within::Database, id::USER),
            0x06 => ("permissions", Within::User, 0x001A),
            0x07 => ("sprocs", Within::Container, 0x001B),
            0x08 => ("conflicts", Within::Container, 0x0020),
            0x09 => ("triggers", Within::Container, 0x001D),
            0x0A => ("udfs", Within::Container, 0x001C),
            0x16 => ("pkranges", Within::Container, 0x0036),
            0x23 => ("clientencryptionkeys", Within::Database, 0x0080),
            _ => return None,
        };
        Some(Sort { word, within, name })
    }
}

/// A request that came as a frame.
#[derive(Debug)]
pub(super) struct AskedFrame {
    head: Head,
    /// The version of the API that its client greeted with.
    version: String,
    verb: Option<Verb>,
    sort: Option<Sort>,
    pub(super) has_body: bool,
    /// By which the client knows the answer.
    pub(super) transport_id: u32,
}

impl AskedFrame {
    /// Takes a head apart. One that does not say whether a body follows, or by which
    /// number it is answered, ends the connection.
    pub(super) fn read(head: Head, client: &DirectClient) -> Result<AskedFrame, Malformed> {
        let has_body = match head.tokens.number(id::PAYLOAD_PRESENT) {
            Some(0) => false,
            Some(1) => true,
            // Where the next frame begins would be a guess.
            _ => return Err(Malformed),
        };
        let transport_id = head.tokens.number(id::TRANSPORT_ID).ok_or(Malformed)?;
        Ok(AskedFrame {
            version: client.version.clone(),
            verb: Verb::of(head.operation),
            sort: Sort::of(head.resource),
            has_body,
            transport_id: u32::try_from(transport_id).map_err(|_| Malformed)?,
            head,
        })
    }

    pub(super) fn activity(&self) -> [u8; 16] {
        self.head.activity
    }

    /// By the words of HTTP.
    pub(super) fn verb(&self) -> &'static str {
        self.verb.map_or("-", Verb::word)
    }

    /// The segments of the path to what is asked for.
    pub(super) fn segments(&self) -> Result<Vec<Cow<'_, str>>> {
        let verb = self.verb.ok_or_else(|| {
            Error::bad_request(format!("There is no operation {:#06x}.", self.head.operation))
        })?;
        let sort = self.sort.ok_or_else(|| {
            Error::bad_request(format!("There is no resource type {:#06x}.", self.head.resource))
        })?;
        let is_feed = verb.is_of_feed();
        let has_names = self.head.tokens.text(id::DATABASE).is_some();
        match self.head.tokens.bytes(id::RESOURCE_ID) {
            Some(rid) if !has_names => by_rid(sort, is_feed, rid),
            _ => self.by_name(sort, is_feed),
        }
    }

    fn by_name(&self, sort: Sort, is_feed: bool) -> Result<Vec<Cow<'_, str>>> {
        let mut path = Vec::with_capacity(6);
        let above: &[(&str, u16)] = match sort.within {
            Within::Account => &[],
            Within::Database => &[("dbs", id::DATABASE)],
            Within::Container => &[("dbs", id::DATABASE), ("colls", id::CONTAINER)],
            Within::User => &[("dbs", id::DATABASE), ("users", id::USER)],
        };
        for (word, name) in above {
            path.extend([Cow::from(*word), Cow::from(self.name(word, *name)?)]);
        }
        path.push(sort.word.into());
        if !is_feed {
            path.push(self.name(sort.word, sort.name)?.into());
        }
        Ok(path)
    }

    fn name(&self, word: &str, token: u16) -> Result<&str> {
        self.head.tokens.text(token).filter(|name| !name.is_empty()).ok_or_else(|| {
            Error::bad_request(format!(
                "The request does not name what it is about: the name in '{word}' (token \
                 {token:#06x}) is missing."
            ))
        })
    }

    /// The range that the address belongs to, by which the request came.
    fn range_of_address(&self) -> Option<&str> {
        let path = self.head.tokens.text(id::REPLICA_PATH)?;
        let (_, rest) = path.split_once("/partitions/")?;
        let (_, range) = rest.split('/').next()?.rsplit_once('-')?;
        let is_range = !range.is_empty() && range.bytes().all(|byte| byte.is_ascii_digit());
        is_range.then_some(range)
    }

    /// The token of an option, and how its value is to be read.
    fn token(&self, option: Opt) -> Option<(u16, TokenReading)> {
        let is_read = matches!(self.verb, Some(Verb::Read | Verb::ReadFeed));
        let is_item = self.sort.is_some_and(|sort| sort.word == "docs");
        Some(match option {
            Opt::IncrementalFeed => (0x003F, TokenReading::Text),
            Opt::ModifiedSince => (0x0047, TokenReading::Text),
            Opt::FeedFormat => (0x00B2, TokenReading::Text),
            Opt::Authorization => (0x0001, TokenReading::Text),
            Opt::IfMatch if !is_read => (id::MATCH, TokenReading::Text),
            Opt::IfNoneMatch if is_read => (id::MATCH, TokenReading::Text),
            Opt::Prefer => {
                (0x0082, TokenReading::Words(&["return=representation", "return=minimal"]))
            }
            // Clients ask for the strongest of whatever is no item, in every account.
            Opt::ConsistencyLevel if is_item => (0x0010, TokenReading::Words(&LEVELS)),
            Opt::ContentFormat => (0x0065, TokenReading::Words(&["JsonText", "CosmosBinary"])),
            Opt::Continuation => (0x0006, TokenReading::Text),
            Opt::ContinuationKbMax => (0x0043, TokenReading::Number),
            Opt::IntendedRid => (0x009D, TokenReading::Text),
            Opt::BatchAtomic => (0x0073, TokenReading::Flag),
            Opt::BatchContinue => (0x0074, TokenReading::Flag),
            Opt::QueryFeatures => (0x00FF, TokenReading::Text),
            Opt::Date => (0x0003, TokenReading::Text),
            Opt::PartitionKey => (id::PARTITION_KEY, TokenReading::Text),
            Opt::RangeId => (id::RANGE_ID, TokenReading::Text),
            Opt::Quota => (0x0040, TokenReading::Flag),
            Opt::PostTriggers => (0x000A, TokenReading::Text),
            Opt::PreTriggers => (0x0009, TokenReading::Text),
            Opt::Statistics => (0x0044, TokenReading::Flag),
            Opt::DirectExecution => (0x00C8, TokenReading::Flag),
            Opt::EnableScan => (0x001E, TokenReading::Flag),
            Opt::QueryMetrics => (0x0042, TokenReading::Flag),
            Opt::IndexMetrics => (0x00A9, TokenReading::Flag),
            Opt::IndexMetricsV2 => (0x00C2, TokenReading::Flag),
            Opt::StartEpk => (0x0062, TokenReading::Text),
            Opt::EndEpk => (0x0063, TokenReading::Text),
            Opt::IndexingDirective => {
                (0x0007, TokenReading::Words(&["Default", "Include", "Exclude"]))
            }
            Opt::MaxItemCount => (0x0004, TokenReading::Count),
            Opt::ReadKeyType => (0x0064, TokenReading::Words(&KEY_TYPES)),
            Opt::SessionToken => (0x0005, TokenReading::Text),
            Opt::ThroughputBucket => (0x00DB, TokenReading::Number),
            Opt::Priority => (0x00BF, TokenReading::Words(&["", "High", "Low"])),
            Opt::Version => (id::VERSION, TokenReading::Text),
            // Said by the operation, or by nobody.
            Opt::PlainDate | Opt::IfMatch | Opt::IfNoneMatch | Opt::ConsistencyLevel => {
                return None;
            }
            Opt::ConfirmExpiry | Opt::ExplainCharge | Opt::Watch => return None,
            Opt::IsBatch | Opt::IsQueryPlan | Opt::IsUpsert => return None,
            Opt::IsQuery | Opt::HasQuery | Opt::CrossPartition | Opt::CacheAge => return None,
            Opt::OfferAutopilot | Opt::OfferThroughput | Opt::OfferType => return None,
            Opt::MigrateToAutoscale | Opt::MigrateToManual => return None,
        })
    }
}

const LEVELS: [&str; 5] = ["Strong", "BoundedStaleness", "Session", "Eventual", "ConsistentPrefix"];

const KEY_TYPES: [&str; 4] =
    ["", "ResourceId", "EffectivePartitionKey", "EffectivePartitionKeyRange"];

/// How the value of a token says what a header says in words.
#[derive(Clone, Copy)]
enum TokenReading {
    Text,
    Number,
    /// A number, and the largest there is for -1.
    Count,
    Flag,
    /// A number that stands for a word.
    Words(&'static [&'static str]),
}

impl Options for AskedFrame {
    fn text(&self, option: Opt) -> Result<Option<Cow<'_, str>>> {
        let by_operation = match option {
            Opt::IsUpsert => self.verb == Some(Verb::Upsert),
            Opt::IsBatch => self.verb == Some(Verb::Batch),
            Opt::IsQueryPlan => self.verb == Some(Verb::Plan),
            // The client asks each range by itself, or names a key.
            Opt::CrossPartition => self.verb == Some(Verb::Query),
            _ => false,
        };
        if by_operation {
            return Ok(Some("true".into()));
        }
        let Some((token, reading)) = self.token(option) else { return Ok(None) };
        let tokens = &self.head.tokens;
        let number = || tokens.number(token);
        Ok(match reading {
            TokenReading::Text => match tokens.bytes(token) {
                Some(bytes) => Some(String::from_utf8_lossy(bytes)),
                None if option == Opt::Version => Some(self.version.as_str().into()),
                None if option == Opt::RangeId && tokens.bytes(id::PARTITION_KEY).is_none() => {
                    self.range_of_address().map(Cow::from)
                }
                None => None,
            },
            TokenReading::Number => number().map(|number| number.to_string().into()),
            TokenReading::Count if number() == Some(ALL_THAT_FIT) => Some("-1".into()),
            TokenReading::Count => number().map(|number| number.to_string().into()),
            TokenReading::Flag => {
                number().map(|number| if number == 0 { "false" } else { "true" }.into())
            }
            TokenReading::Words(words) => number().map(|number| {
                let word = usize::try_from(number).ok().and_then(|place| words.get(place));
                word.map_or_else(|| number.to_string().into(), |word| Cow::from(*word))
            }),
        })
    }

    fn name(&self, option: Opt) -> &str {
        crate::headers::name(option)
    }

    fn is_query(&self) -> Result<bool> {
        Ok(matches!(self.verb, Some(Verb::Query | Verb::Plan)))
    }

    fn cached_rid(&self) -> Option<&str> {
        self.head.tokens.text(id::CONTAINER_RID)
    }

    /// Beside names stands the RID of the container, as bytes.
    fn second_rid(&self) -> Option<String> {
        let bytes = self.head.tokens.bytes(id::RESOURCE_ID)?;
        self.head.tokens.text(id::CONTAINER)?;
        let container = rid_text(bytes.get(..8)?);
        (self.cached_rid() != Some(&*container)).then_some(container)
    }
}

/// The path to what has a RID, or to a feed in it.
fn by_rid(sort: Sort, is_feed: bool, rid: &[u8]) -> Result<Vec<Cow<'static, str>>> {
    let above: &[(&str, usize)] = match sort.within {
        Within::Account => &[],
        Within::Database => &[("dbs", 4)],
        Within::Container => &[("dbs", 4), ("colls", 8)],
        Within::User => &[("dbs", 4), ("users", 8)],
    };
    let parent = above.last().map_or(0, |(_, bytes)| *bytes);
    let is_whole = if is_feed { rid.len() == parent } else { rid.len() > parent };
    let own = match sort.within {
        _ if is_feed => Some(parent),
        Within::Account => Some(4),
        Within::Database if sort.word != "clientencryptionkeys" => Some(8),
        _ => Some(16),
    };
    if !is_whole || own != Some(rid.len()) {
        return Err(Error::bad_request(format!(
            "A resource id of {} bytes does not name anything in '{}'.",
            rid.len(),
            sort.word
        )));
    }
    let mut path = Vec::with_capacity(6);
    for (word, bytes) in above {
        let text = rid_text(rid.get(..*bytes).unwrap_or_default());
        path.extend([Cow::from(*word), Cow::from(text)]);
    }
    path.push(sort.word.into());
    if !is_feed {
        path.push(rid_text(rid).into());
    }
    Ok(path)
}

/// A RID as text.
fn rid_text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes).replace('/', "-")
}
