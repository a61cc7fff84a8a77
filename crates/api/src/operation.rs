//! From a request to the operation it asks for. After this nobody reads
//! headers.

use std::borrow::Cow;

use bytes::Bytes;
use dayfly_engine::operation::{
    Act, AdviceForm, BatchMode, ChangesFrom, Condition, ContainerScope, ContainerWishes, Feed,
    FeedMode, Indexing, Intended, ItemAddress, OfferReplacement, Operation, Page, Part, PlanQuery,
    Priority, QueryFeed, QueryItems, ReadChanges, Replacement, Service, Showing, WriteBatch,
    WriteItem,
};
use dayfly_model::epk::{self, Epk};
use dayfly_model::json::{self, ObjectText};
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::patch::Patch;
use dayfly_model::system::SYSTEM_PROPERTIES;
use dayfly_model::throughput::{Migration, Throughput};
use dayfly_model::{Error, ErrorKind, Result, Timestamp, database};

use crate::batch;
use crate::options::{Opt, Options};
use crate::route::Resource;

/// How long a page is when the client leaves it to the server with -1.
const PAGE_SERVERS_CHOICE: usize = 1000;

/// The first version of the API without kinds of index in a policy.
const NO_KINDS_SINCE: &str = "2018-09-17";

/// The first version of the API with containers that have a system key.
const SYSTEM_KEY_SINCE: &str = "2018-12-31";

/// A request, as far as operations need it: what it means, not how it is spelled.
pub(crate) struct Request<'a> {
    /// By the words of HTTP.
    pub(crate) verb: &'a str,
    pub(crate) options: &'a dyn Options,
    pub(crate) body: &'a Bytes,
}

/// What the request asks for.
pub(crate) fn read(request: &Request<'_>, resource: Resource<'_>) -> Result<Operation> {
    check_consistency(request)?;
    check_format(request)?;
    check_service(request)?;
    request.options.flag(Opt::ExplainCharge)?;
    match (resource, verb(request.verb)) {
        (Resource::Databases, "GET") => Ok(Operation::ListDatabases { page: page(request)? }),
        (Resource::Databases, "POST") if request.options.is_query()? => {
            query_feed(request, Feed::Databases)
        }
        (Resource::Databases, "POST") => Ok(Operation::CreateDatabase {
            id: database::parse(request.body)?,
            throughput: throughput(request)?,
        }),
        (Resource::Database(database), "GET") => {
            let database = database.to_owned();
            Ok(Operation::ReadDatabase { database, condition: condition(request)? })
        }
        (Resource::Database(database), "DELETE") => {
            let database = database.to_owned();
            Ok(Operation::DeleteDatabase { database, condition: condition(request)? })
        }

        (Resource::Containers(database), "GET") => {
            let database = database.to_owned();
            let showing = showing(request)?;
            Ok(Operation::ListContainers { database, page: page(request)?, showing })
        }
        (Resource::Containers(database), "POST") if request.options.is_query()? => {
            query_feed(request, Feed::Containers(database.to_owned(), showing(request)?))
        }
        (Resource::Containers(database), "POST") => Ok(Operation::CreateContainer {
            database: database.to_owned(),
            definition: request.body.to_vec(),
            throughput: throughput(request)?,
            showing: showing(request)?,
        }),
        (Resource::Container(database, container), "GET") => Ok(Operation::ReadContainer {
            at: scope(request, database, container)?,
            condition: condition(request)?,
            wishes: ContainerWishes {
                quota: quota(request)?,
                statistics: request.options.flag(Opt::Statistics)?,
                showing: showing(request)?,
            },
        }),
        (Resource::Container(database, container), "PUT") => {
            Ok(Operation::ReplaceContainer(Replacement {
                at: scope(request, database, container)?,
                definition: request.body.to_vec(),
                condition: condition(request)?,
                quota: quota(request)?,
                confirm_expiry: request.options.flag(Opt::ConfirmExpiry)?,
                showing: showing(request)?,
            }))
        }
        (Resource::Container(database, container), "DELETE") => Ok(Operation::DeleteContainer {
            at: scope(request, database, container)?,
            condition: condition(request)?,
        }),

        (Resource::EncryptionKeys(_) | Resource::EncryptionKey(..), _) => {
            encryption_key(request, resource)
        }

        (Resource::Items(database, container), "GET") => {
            list_items(request, scope(request, database, container)?)
        }
        (Resource::Items(database, container), "POST") => {
            post_item(request, scope(request, database, container)?)
        }
        (Resource::Item(database, container, id), "GET") => Ok(Operation::ReadItem {
            at: scope(request, database, container)?,
            item: ItemAddress { id: id.to_owned(), partition_key: partition_key(request)? },
            condition: condition(request)?,
        }),
        (Resource::Item(database, container, id), "PUT") => {
            let act = Act::Replace(id.to_owned(), item(request)?);
            write_item(request, scope(request, database, container)?, act)
        }
        (Resource::Item(database, container, id), "DELETE") => {
            write_item(request, scope(request, database, container)?, Act::Delete(id.to_owned()))
        }
        (Resource::Item(database, container, id), "PATCH") => {
            let act = Act::Patch(id.to_owned(), Patch::read(request.body)?);
            write_item(request, scope(request, database, container)?, act)
        }

        (Resource::PartitionDelete(database, container), "POST") => {
            Ok(Operation::DeletePartition {
                at: scope(request, database, container)?,
                partition_key: partition_key(request)?,
            })
        }

        (Resource::Ranges(database, container), "GET") => Ok(Operation::ListRanges {
            at: scope(request, database, container)?,
            known: request.options.owned(Opt::IfNoneMatch)?,
        }),
        (Resource::Ranges(database, container), "POST") => {
            query_feed(request, Feed::Ranges(scope(request, database, container)?))
        }

        (Resource::Conflicts(database, container), "GET") => {
            Ok(Operation::ListConflicts { at: scope(request, database, container)? })
        }
        (Resource::Conflicts(database, container), "POST") if request.options.is_query()? => {
            query_feed(request, Feed::Conflicts(scope(request, database, container)?))
        }
        (Resource::Conflict(database, container), "GET" | "DELETE") => {
            Ok(Operation::FindConflict { at: scope(request, database, container)? })
        }

        (Resource::Offers, "GET") => Ok(Operation::ListOffers { page: page(request)? }),
        (Resource::Offers, "POST") => query_feed(request, Feed::Offers),
        (Resource::Offer(offer), "GET") => Ok(Operation::ReadOffer { offer: offer.to_owned() }),
        (Resource::Offer(offer), "PUT") => Ok(Operation::ReplaceOffer(OfferReplacement {
            offer: offer.to_owned(),
            body: request.body.to_vec(),
            condition: condition(request)?,
            migration: migration(request)?,
        })),

        (Resource::NotYet(feature, verbs), verb) if verbs.contains(&verb) => {
            Err(Error::not_yet(feature))
        }
        _ => Err(wrong_verb(request.verb)),
    }
}

/// What the request asks for of client encryption keys. The service deletes none.
fn encryption_key(request: &Request<'_>, resource: Resource<'_>) -> Result<Operation> {
    match (resource, verb(request.verb)) {
        (Resource::EncryptionKeys(database), "GET") => {
            let database = database.to_owned();
            Ok(Operation::ListEncryptionKeys { database, page: page(request)? })
        }
        (Resource::EncryptionKeys(database), "POST") if request.options.is_query()? => {
            query_feed(request, Feed::EncryptionKeys(database.to_owned()))
        }
        (Resource::EncryptionKeys(database), "POST") => Ok(Operation::CreateEncryptionKey {
            database: database.to_owned(),
            key: request.body.to_vec(),
        }),
        (Resource::EncryptionKey(database, key), "GET") => Ok(Operation::ReadEncryptionKey {
            database: database.to_owned(),
            key: key.to_owned(),
            condition: condition(request)?,
        }),
        (Resource::EncryptionKey(database, key), "PUT") => Ok(Operation::ReplaceEncryptionKey {
            database: database.to_owned(),
            key: key.to_owned(),
            replacement: request.body.to_vec(),
            condition: condition(request)?,
        }),
        _ => Err(wrong_verb(request.verb)),
    }
}

/// The refusal of a request for something in a container, which its answer tells of as
/// every other does; of any other request, the error.
pub(crate) fn refuse(
    request: &Request<'_>,
    segments: &[Cow<'_, str>],
    error: Error,
) -> Result<Operation> {
    let at = match segments {
        [dbs, database, colls, container, _, ..] if dbs == "dbs" && colls == "colls" => {
            let (database, container) = (database.to_string(), container.to_string());
            ContainerScope { database, container, ..ContainerScope::default() }
        }
        _ => return Err(error),
    };
    match part(request) {
        Ok(part) => Ok(Operation::Refuse { at, part, error }),
        // It may be the part that was refused.
        Err(_) => Err(error),
    }
}

/// HEAD is GET without the body, which the listener leaves out.
pub(crate) fn verb(method: &str) -> &str {
    if method == "HEAD" { "GET" } else { method }
}

/// The error for a verb that a resource does not have.
pub(crate) fn wrong_verb(method: &str) -> Error {
    Error::new(
        ErrorKind::MethodNotAllowed,
        format!("The resource does not have the verb {method}."),
    )
}

/// What comes with `A-IM` asks for the change feed, also as a query.
fn check_feed(request: &Request<'_>) -> Result<()> {
    match request.options.text(Opt::IncrementalFeed)? {
        Some(_) => Err(Error::not_yet("A query of the change feed")),
        None => Ok(()),
    }
}

fn list_items(request: &Request<'_>, at: ContainerScope) -> Result<Operation> {
    if let Some(mode) = feed_mode(request)? {
        return read_changes(request, at, mode);
    }
    Ok(Operation::ListItems { at, part: part(request)?, page: page(request)? })
}

/// Which changes are asked for, if any are.
fn feed_mode(request: &Request<'_>) -> Result<Option<FeedMode>> {
    let Some(mode) = request.options.owned(Opt::IncrementalFeed)? else { return Ok(None) };
    let is = |known: &str| mode.trim().eq_ignore_ascii_case(known);
    match () {
        () if is("Incremental Feed") => Ok(Some(FeedMode::Latest)),
        () if is("Full-Fidelity Feed") => Ok(Some(FeedMode::AllVersions)),
        () => Err(Error::bad_request(format!(
            "The header '{}' has the value '{mode}', but must be 'Incremental Feed' or \
             'Full-Fidelity Feed'.",
            request.options.name(Opt::IncrementalFeed)
        ))),
    }
}

/// A page of the change feed. Its place comes as a condition would: only if it is not the
/// newest.
fn read_changes(request: &Request<'_>, at: ContainerScope, mode: FeedMode) -> Result<Operation> {
    let from = match request.options.owned(Opt::IfNoneMatch)? {
        None => ChangesFrom::Beginning,
        Some(place) if place.trim() == "*" => ChangesFrom::Now,
        Some(place) => ChangesFrom::After(place),
    };
    let envelope = request.options.owned(Opt::FeedFormat)?.is_some();
    Ok(Operation::ReadChanges(ReadChanges {
        at,
        part: part(request)?,
        mode,
        from,
        since: since(request)?,
        limit: page(request)?.limit,
        envelope,
    }))
}

/// From which second on changes are wanted.
fn since(request: &Request<'_>) -> Result<Option<Timestamp>> {
    let Some(date) = request.options.owned(Opt::ModifiedSince)? else { return Ok(None) };
    let since = Timestamp::parse_date_of_any_client(&date).ok_or_else(|| {
        Error::bad_request(format!(
            "The header '{}' has the value '{date}', which is no date.",
            request.options.name(Opt::ModifiedSince)
        ))
    });
    since.map(Some)
}

fn part(request: &Request<'_>) -> Result<Part> {
    let (start, end) = epk_bounds(request)?;
    Ok(Part {
        partition_key: partition_key(request)?,
        range: request.options.owned(Opt::RangeId)?,
        start,
        end,
    })
}

fn epk_bounds(request: &Request<'_>) -> Result<(Option<Epk>, Option<Epk>)> {
    let bound = |option: Opt| -> Result<Option<Epk>> {
        request.options.text(option)?.map(|text| epk::parse_hex(&text)).transpose()
    };
    let bounds = (bound(Opt::StartEpk)?, bound(Opt::EndEpk)?);
    let kind = request.options.owned(Opt::ReadKeyType)?;
    if kind.is_some_and(|kind| kind != "EffectivePartitionKeyRange") {
        return Err(Error::bad_request("One of the input values is invalid."));
    }
    Ok(bounds)
}

fn post_item(request: &Request<'_>, at: ContainerScope) -> Result<Operation> {
    let options = request.options;
    if options.flag(Opt::IsBatch)? {
        return write_batch(request, at);
    }
    if options.flag(Opt::IsQueryPlan)? {
        let features = options.owned(Opt::QueryFeatures)?.unwrap_or_default();
        return Ok(Operation::PlanQuery(PlanQuery { at, query: request.body.to_vec(), features }));
    }
    if request.options.is_query()? {
        check_feed(request)?;
        return query_items(request, at);
    }
    let body = item(request)?;
    let upsert = options.flag(Opt::IsUpsert)?;
    write_item(request, at, if upsert { Act::Upsert(body) } else { Act::Create(body) })
}

fn write_item(request: &Request<'_>, at: ContainerScope, act: Act) -> Result<Operation> {
    let options = request.options;
    for trigger in [Opt::PreTriggers, Opt::PostTriggers] {
        if options.owned(trigger)?.is_some() {
            return Err(Error::not_yet("A trigger"));
        }
    }
    Ok(Operation::WriteItem(WriteItem {
        at,
        act,
        partition_key: partition_key(request)?,
        condition: condition(request)?,
        minimal: minimal(request)?,
        indexing: indexing(request)?,
    }))
}

fn query_items(request: &Request<'_>, at: ContainerScope) -> Result<Operation> {
    let options = request.options;
    Ok(Operation::QueryItems(QueryItems {
        at,
        query: request.body.to_vec(),
        part: part(request)?,
        page: page(request)?,
        cross_partition: options.flag(Opt::CrossPartition)?,
        scan: options.flag(Opt::EnableScan)?,
        metrics: options.flag(Opt::QueryMetrics)?,
        direct: options.flag(Opt::DirectExecution)?,
        advice: advice_form(request)?,
    }))
}

/// Whether it is asked which indexes a query uses, and in which form. Of both
/// forms the newer one counts.
fn advice_form(request: &Request<'_>) -> Result<Option<AdviceForm>> {
    let second = request.options.flag(Opt::IndexMetricsV2)?;
    let first = request.options.flag(Opt::IndexMetrics)?;
    Ok(match (first, second) {
        (_, true) => Some(AdviceForm::Second),
        (true, false) => Some(AdviceForm::First),
        (false, false) => None,
    })
}

fn query_feed(request: &Request<'_>, feed: Feed) -> Result<Operation> {
    let query = request.body.to_vec();
    Ok(Operation::QueryFeed(QueryFeed { feed, query, page: page(request)? }))
}

/// Whether the item is to be in the index.
fn indexing(request: &Request<'_>) -> Result<Indexing> {
    let directive = request.options.text(Opt::IndexingDirective)?.unwrap_or_default();
    Indexing::named(&directive).ok_or_else(|| {
        Error::bad_request(format!(
            "The header '{}' has the value '{directive}', but must be 'Default', 'Include' or \
             'Exclude'.",
            request.options.name(Opt::IndexingDirective)
        ))
    })
}

fn write_batch(request: &Request<'_>, at: ContainerScope) -> Result<Operation> {
    let options = request.options;
    let mode = match (options.flag(Opt::BatchAtomic)?, options.flag(Opt::BatchContinue)?) {
        (true, _) => BatchMode::Atomic,
        (false, true) => BatchMode::GoesOn,
        (false, false) => BatchMode::Stops,
    };
    let (form, steps) = batch::read(request.body, minimal(request)?, item_of)?;
    Ok(Operation::WriteBatch(WriteBatch { at, part: part(request)?, mode, steps, form }))
}

fn item(request: &Request<'_>) -> Result<ObjectText> {
    item_of(request.body)
}

fn item_of(text: &Bytes) -> Result<ObjectText> {
    // As it is sent, escapes included.
    if text.len() > json::ITEM_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            "Request size is too large: an item can have at most 2 MB.",
        ));
    }
    json::take(text, &SYSTEM_PROPERTIES)
}

fn partition_key(request: &Request<'_>) -> Result<Option<PartitionKey>> {
    let text = request.options.text(Opt::PartitionKey)?;
    text.map(|text| PartitionKey::parse_header(&text)).transpose()
}

fn scope(request: &Request<'_>, database: &str, container: &str) -> Result<ContainerScope> {
    Ok(ContainerScope {
        database: database.to_owned(),
        container: container.to_owned(),
        intended: intended(request)?,
        session: request.options.owned(Opt::SessionToken)?,
        service: service(request)?,
    })
}

/// What the request believes of its container's RID, in the order in which that is judged.
fn intended(request: &Request<'_>) -> Result<Vec<Intended>> {
    let cached = request.options.cached_rid().map(str::to_owned);
    let cached = cached.map(|rid| Intended { rid, otherwise: ErrorKind::NameCacheStale });
    let second = request.options.second_rid();
    let second = second.map(|rid| Intended { rid, otherwise: ErrorKind::BadRequest });
    let named = request.options.owned(Opt::IntendedRid)?;
    let named = named.map(|rid| Intended { rid, otherwise: ErrorKind::ContainerRidMismatch });
    Ok(cached.into_iter().chain(second).chain(named).collect())
}

fn condition(request: &Request<'_>) -> Result<Condition> {
    Ok(Condition {
        if_match: request.options.owned(Opt::IfMatch)?,
        if_none_match: request.options.owned(Opt::IfNoneMatch)?,
    })
}

fn minimal(request: &Request<'_>) -> Result<bool> {
    let prefer = request.options.text(Opt::Prefer)?;
    Ok(prefer.is_some_and(|prefer| prefer.eq_ignore_ascii_case("return=minimal")))
}

/// How the version of the API shows containers. What is no date is taken for a new one.
fn showing(request: &Request<'_>) -> Result<Showing> {
    let version = request.options.text(Opt::Version)?;
    let is_date = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    Ok(match version.as_deref() {
        Some(date) if is_date(date) && date < NO_KINDS_SINCE => Showing::WithKinds,
        Some(date) if is_date(date) && date < SYSTEM_KEY_SINCE => Showing::NoSystemKey,
        _ => Showing::Whole,
    })
}

fn quota(request: &Request<'_>) -> Result<bool> {
    request.options.flag(Opt::Quota)
}

/// Whether an offer is to scale from now on, or no more.
fn migration(request: &Request<'_>) -> Result<Option<Migration>> {
    let to_autoscale = request.options.flag(Opt::MigrateToAutoscale)?;
    match (to_autoscale, request.options.flag(Opt::MigrateToManual)?) {
        (true, true) => Err(Error::bad_request(
            "An offer cannot be migrated to autoscale and to manual throughput at one time.",
        )),
        (true, false) => Ok(Some(Migration::ToAutoscale)),
        (false, true) => Ok(Some(Migration::ToManual)),
        (false, false) => Ok(None),
    }
}

fn throughput(request: &Request<'_>) -> Result<Option<Throughput>> {
    Throughput::parse(
        request.options.text(Opt::OfferThroughput)?.as_deref(),
        request.options.text(Opt::OfferAutopilot)?.as_deref(),
        request.options.text(Opt::OfferType)?.as_deref(),
    )
}

fn page(request: &Request<'_>) -> Result<Page> {
    let limit = match request.options.text(Opt::MaxItemCount)?.as_deref() {
        None | Some("") => None,
        Some("-1") => Some(PAGE_SERVERS_CHOICE),
        Some(text) => match text.parse() {
            Ok(limit) if limit > 0 => Some(limit),
            _ => {
                return Err(Error::bad_request(format!(
                    "The header '{}' has the value '{text}', but must be a positive number or -1.",
                    request.options.name(Opt::MaxItemCount)
                )));
            }
        },
    };
    check_token_limit(request)?;
    Ok(Page { limit, continuation: request.options.owned(Opt::Continuation)? })
}

/// How long the token of the next page may be. Clients say 1 and more; ours is as long
/// as it has to be, which a client that sends it back does not mind.
fn check_token_limit(request: &Request<'_>) -> Result<()> {
    let Some(text) = request.options.text(Opt::ContinuationKbMax)? else { return Ok(()) };
    match text.trim().parse::<u32>() {
        Ok(0) => Err(Error::bad_request(
            "The continuation token limit specified is not large enough. Please retry with a \
             higher limit.",
        )),
        Ok(_) => Ok(()),
        Err(_) if text.is_empty() => Ok(()),
        Err(_) => Err(Error::bad_request(format!(
            "The header '{}' has the value '{text}', but must be a whole number.",
            request.options.name(Opt::ContinuationKbMax)
        ))),
    }
}

/// Answers are text, which those who ask for the binary form read as well.
fn check_format(request: &Request<'_>) -> Result<()> {
    let Some(format) = request.options.text(Opt::ContentFormat)? else { return Ok(()) };
    if ["", "JsonText", "CosmosBinary"].iter().any(|known| format.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "The header '{}' has the value '{format}', but must be 'JsonText' or 'CosmosBinary'.",
        request.options.name(Opt::ContentFormat)
    )))
}

/// How the request is to be served, beside others.
fn service(request: &Request<'_>) -> Result<Service> {
    let priority = match request.options.text(Opt::Priority)? {
        Some(level) if level.trim().eq_ignore_ascii_case("Low") => Priority::Low,
        _ => Priority::High,
    };
    let bucket = request.options.text(Opt::ThroughputBucket)?;
    Ok(Service { priority, bucket: bucket.and_then(|bucket| bucket.trim().parse().ok()) })
}

/// What says how the request is to be served must make sense, also where it changes nothing.
fn check_service(request: &Request<'_>) -> Result<()> {
    let is_level = |text: &str| ["High", "Low"].iter().any(|one| text.eq_ignore_ascii_case(one));
    let is_age = |text: &str| text.parse().is_ok_and(|age: f64| age.is_finite() && age >= 0.0);
    check_value(request, Opt::ThroughputBucket, |text| {
        matches!(text, "1" | "2" | "3" | "4" | "5")
    })?;
    check_value(request, Opt::Priority, is_level)?;
    check_value(request, Opt::CacheAge, is_age)
}

fn check_value(request: &Request<'_>, option: Opt, is_known: impl Fn(&str) -> bool) -> Result<()> {
    match request.options.text(option)? {
        Some(value) if !value.is_empty() && !is_known(value.trim()) => {
            Err(Error::bad_request(format!(
                "The value '{value}' specified for the header '{}' is invalid.",
                request.options.name(option)
            )))
        }
        _ => Ok(()),
    }
}

/// A request may ask for less than the account's level, not for more.
fn check_consistency(request: &Request<'_>) -> Result<()> {
    let Some(level) = request.options.text(Opt::ConsistencyLevel)? else { return Ok(()) };
    match &*level {
        "" | "Session" | "ConsistentPrefix" | "Eventual" => Ok(()),
        "Strong" | "BoundedStaleness" => Err(Error::bad_request(format!(
            "ConsistencyLevel {level} specified in the request is invalid when service is \
             configured with consistency level Session. Ensure the request consistency level is \
             not stronger than the service consistency level."
        ))),
        _ => Err(Error::bad_request(format!("The consistency level '{level}' is not known."))),
    }
}
