//! The admin API, `/_admin/v1/…`: what dayfly offers beyond the service.

use std::borrow::Cow;

use dayfly_engine::ThroughputMode;
use dayfly_engine::operation::{
    BUCKETS, ClockStep as Step, ContainerScope, Division, Operation, Page, QueryItems, SurveyItems,
    SurveyOrder,
};
use dayfly_engine::throughput::HOUR;
use dayfly_engine::ttl::FORECAST_BUCKETS_MAX;
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::ttl::{ContainerTtl, TTL_MAX};
use dayfly_model::{Error, Result};
use serde_json::Value;

use crate::operation::{Request, verb, wrong_verb};
use crate::parameters::Parameters;
use crate::requests::Filter;
use crate::route;

/// A forecast tells the next day by the hour, unless asked for something else.
const FORECAST_BUCKETS: u32 = 24;
const FORECAST_BUCKET_SECONDS: u32 = 3600;

/// The throughput of the last minute is shown, unless asked for more.
const SHOWN_SECONDS: u32 = 60;

/// What a call asks for.
pub(crate) enum Call {
    /// Something of the engine.
    Operation(Operation),
    /// Some of the last requests.
    Requests(Filter),
    /// How the server was started, and how it fares.
    Server,
    /// What the server did in the last seconds.
    Series,
    /// The same from now on, a line a second.
    Events,
    /// A code for one session.
    MakeCode,
    /// The end of a session.
    CloseSession,
}

/// By what a session is asked for.
pub(crate) enum Proof {
    /// The key in the header.
    Bearer,
    /// A key.
    Key(String),
    /// A code that somebody with a key asked for.
    Code(String),
}

/// Whether a call asks for a session, which it may without one.
pub(crate) fn is_login(verb: &str, call: &[Cow<'_, str>]) -> bool {
    verb == "POST" && matches!(call, [only] if only == "session")
}

/// Reads by what a session is asked for.
pub(crate) fn proof(body: &[u8]) -> Result<Proof> {
    let refused = || {
        Error::bad_request(
            "The body must be {\"key\":\"<account key>\"} or {\"code\":\"<code>\"}, or empty with \
             'authorization: Bearer <account key>'.",
        )
    };
    if matches!(body.trim_ascii(), b"" | b"{}") {
        return Ok(Proof::Bearer);
    }
    let body: Value = serde_json::from_slice(body).map_err(|_| refused())?;
    let mut members = body.as_object().ok_or_else(refused)?.iter();
    match (members.next(), members.next()) {
        (Some((name, Value::String(text))), None) if name == "key" => {
            Ok(Proof::Key(text.trim().to_owned()))
        }
        (Some((name, Value::String(text))), None) if name == "code" => {
            Ok(Proof::Code(text.clone()))
        }
        _ => Err(refused()),
    }
}

/// Reads a call.
/// `query` is what stands behind the question mark of its address.
pub(crate) fn read(request: &Request<'_>, query: &str, call: &[Cow<'_, str>]) -> Result<Call> {
    let call: Vec<&str> = call.iter().map(AsRef::as_ref).collect();
    match (call.as_slice(), verb(request.verb)) {
        (["requests"], "GET") => Filter::read(query).map(Call::Requests),
        (["server"], "GET") => Parameters::read(query, &[]).map(|_| Call::Server),
        (["series"], "GET") => Parameters::read(query, &[]).map(|_| Call::Series),
        (["events"], "GET") => Parameters::read(query, &[]).map(|_| Call::Events),
        (["session"], "DELETE") => Ok(Call::CloseSession),
        (["session", "code"], "POST") => nothing(request.body).map(|()| Call::MakeCode),
        (["requests" | "server" | "series" | "events" | "session"] | ["session", "code"], _) => {
            Err(wrong_verb(request.verb))
        }
        _ => operation(request, query, &call).map(Call::Operation),
    }
}

fn operation(request: &Request<'_>, query: &str, call: &[&str]) -> Result<Operation> {
    match (call, verb(request.verb)) {
        (["clock"], "GET") => Ok(Operation::ReadClock),
        (["clock"], "POST") => Ok(Operation::MoveClock { step: step(request.body)? }),
        (["clock"], _) => Err(wrong_verb(request.verb)),
        (["containers"], "GET") => containers(query),
        (["containers", database, container], "GET") => {
            let at = named(database, container);
            Parameters::read(query, &[]).map(|_| Operation::SurveyContainer { at })
        }
        (["containers", database, container, "items"], "GET") => {
            items(named(database, container), query)
        }
        (["containers"] | ["containers", _, _] | ["containers", _, _, "items"], _) => {
            Err(wrong_verb(request.verb))
        }
        (["containers", database, container, "ttl", view @ ..], verb) => {
            let view = View::of(view).ok_or_else(route::unknown)?;
            if verb != "GET" {
                return Err(wrong_verb(request.verb));
            }
            view.read(named(database, container), query)
        }
        (["containers", database, container, "split"], "POST") => {
            let at = named(database, container);
            division(request.body).map(|division| Operation::SplitRanges { at, division })
        }
        (["containers", _, _, "split"], _) => Err(wrong_verb(request.verb)),
        (["containers", database, container, "throughput", view @ ..], verb) => {
            throughput(verb, view, named(database, container), query, request)
        }
        (["query", "explain"], "POST") => explain(request.body).map(Operation::ExplainQuery),
        (["query", "explain"], _) => Err(wrong_verb(request.verb)),
        (["reset"], "POST") => nothing(request.body).map(|()| Operation::Reset),
        (["reset"], _) => Err(wrong_verb(request.verb)),
        (["purge", "run"], "POST") => Ok(Operation::RunPurge { container: scope(request.body)? }),
        (["purge", "pause"], "POST") => {
            Ok(Operation::PausePurge { container: scope(request.body)? })
        }
        (["purge", "resume"], "POST") => {
            Ok(Operation::ResumePurge { container: scope(request.body)? })
        }
        (["purge", "run" | "pause" | "resume"], _) => Err(wrong_verb(request.verb)),
        _ => Err(route::unknown()),
    }
}

/// How many rows a page may have, and has without a wish.
const PAGE_ROWS_MAX: u32 = 1000;
const PAGE_ROWS: u32 = 100;

/// Which page is asked for.
fn page(parameters: &Parameters<'_>) -> Result<Page> {
    let limit = parameters.number("limit", PAGE_ROWS, PAGE_ROWS_MAX)?;
    let continuation = parameters.get("continuation").map(ToOwned::to_owned);
    Ok(Page { limit: usize::try_from(limit).ok(), continuation })
}

fn containers(query: &str) -> Result<Operation> {
    let parameters = Parameters::read(query, &["limit", "continuation"])?;
    Ok(Operation::SurveyContainers { page: page(&parameters)? })
}

/// Which items of a container are asked for.
fn items(at: ContainerScope, query: &str) -> Result<Operation> {
    let parameters = Parameters::read(query, &["order", "within", "limit", "continuation"])?;
    let within = parameters.get("within").map(seconds).transpose()?;
    let order = match (parameters.get("order").unwrap_or("key"), within) {
        ("key", None) => SurveyOrder::ByKey,
        ("key", Some(_)) => {
            return Err(Error::bad_request(
                "The parameter 'within' goes with 'order=expiry' only.",
            ));
        }
        ("expiry", within) => SurveyOrder::ByExpiry { within },
        (other, _) => {
            return Err(Error::bad_request(format!(
                "The parameter 'order' has the value '{other}', but must be key or expiry."
            )));
        }
    };
    Ok(Operation::SurveyItems(SurveyItems { at, order, page: page(&parameters)? }))
}

/// A number of seconds, 0 too.
fn seconds(text: &str) -> Result<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(seconds @ 0..=TTL_MAX) if digits => Ok(seconds),
        _ => Err(Error::bad_request(format!(
            "The parameter 'within' has the value '{text}', but must be a number of seconds from 0 \
             to {TTL_MAX}."
        ))),
    }
}

/// What became of the throughput of a container, and what becomes of those who ask for more.
fn throughput(
    verb: &str,
    view: &[&str],
    at: ContainerScope,
    query: &str,
    request: &Request<'_>,
) -> Result<Operation> {
    match (view, verb) {
        ([], "GET") => {
            let parameters = Parameters::read(query, &["seconds"])?;
            let most = u32::try_from(HOUR).unwrap_or(u32::MAX);
            let seconds = parameters.number("seconds", SHOWN_SECONDS, most)?;
            Ok(Operation::ReadThroughput { at, seconds: seconds.into() })
        }
        ([], "PUT") => Ok(Operation::SwitchThroughput { at, mode: mode(request.body)? }),
        (["buckets"], "PUT") => {
            Ok(Operation::ShareThroughput { at, shares: shares(request.body)? })
        }
        ([] | ["buckets"], _) => Err(wrong_verb(request.verb)),
        _ => Err(route::unknown()),
    }
}

/// Whether requests are refused; nothing, if the server says so.
fn mode(body: &[u8]) -> Result<Option<ThroughputMode>> {
    let refused = || {
        Error::bad_request(
            "The body must be {\"mode\":\"enforced\"}, {\"mode\":\"measured\"} or {\"mode\":null}.",
        )
    };
    let body: Value = serde_json::from_slice(body).map_err(|_| refused())?;
    let mut members = body.as_object().ok_or_else(refused)?.iter();
    match (members.next(), members.next()) {
        (Some((name, mode)), None) if name == "mode" => match mode {
            Value::Null => Ok(None),
            mode if mode == "enforced" => Ok(Some(ThroughputMode::Enforced)),
            mode if mode == "measured" => Ok(Some(ThroughputMode::Measured)),
            _ => Err(refused()),
        },
        _ => Err(refused()),
    }
}

/// How much each throughput bucket may take, in percent.
fn shares(body: &[u8]) -> Result<[Option<u8>; BUCKETS]> {
    let refused = || {
        Error::bad_request(
            "The body must be a list of {\"id\":n,\"maxThroughputPercentage\":p}, each id once and \
             from 1 to 5, and p from 1 to 100.",
        )
    };
    let list: Vec<Value> = serde_json::from_slice(body).map_err(|_| refused())?;
    let mut shares = [None; BUCKETS];
    for one in list {
        let number =
            |name: &str| one.get(name).and_then(Value::as_u64).and_then(|n| u8::try_from(n).ok());
        let is_whole = one.as_object().is_some_and(|members| members.len() == 2);
        let (Some(id), Some(percent @ 1..=100)) = (number("id"), number("maxThroughputPercentage"))
        else {
            return Err(refused());
        };
        let place = usize::from(id).checked_sub(1).and_then(|place| shares.get_mut(place));
        match place {
            Some(share @ None) if is_whole => *share = Some(percent),
            _ => return Err(refused()),
        }
    }
    Ok(shares)
}

/// The query that is to be explained: whatever part of the container its filter
/// leads to, and also without an index.
fn explain(body: &[u8]) -> Result<QueryItems> {
    let refused = || {
        Error::bad_request(
            "The body must be {\"container\":\"database/container\",\"query\":\"SELECT …\"}, and may \
             have \"parameters\":[{\"name\":\"@a\",\"value\":1}].",
        )
    };
    let body: Value = serde_json::from_slice(body).map_err(|_| refused())?;
    let Value::Object(mut body) = body else { return Err(refused()) };
    let Some(Value::String(container)) = body.remove("container") else { return Err(refused()) };
    let (database, container) = container.split_once('/').ok_or_else(refused)?;
    let is_known = |name: &String| name == "query" || name == "parameters";
    if !body.contains_key("query") || !body.keys().all(is_known) {
        return Err(refused());
    }
    Ok(QueryItems {
        at: named(database, container),
        query: Value::Object(body).to_string().into_bytes(),
        cross_partition: true,
        scan: true,
        ..QueryItems::default()
    })
}

fn named(database: &str, container: &str) -> ContainerScope {
    ContainerScope {
        database: database.to_owned(),
        container: container.to_owned(),
        ..ContainerScope::default()
    }
}

/// Which ranges are divided; the widest, if it says nothing.
fn division(body: &[u8]) -> Result<Division> {
    let refused =
        || Error::bad_request("The body must be empty, {}, {\"range\":\"0\"} or {\"ranges\":2}.");
    if body.trim_ascii().is_empty() {
        return Ok(Division::Widest);
    }
    let body: Value = serde_json::from_slice(body).map_err(|_| refused())?;
    let mut members = body.as_object().ok_or_else(refused)?.iter();
    match (members.next(), members.next()) {
        (None, _) => Ok(Division::Widest),
        (Some((name, Value::String(range))), None) if name == "range" => {
            Ok(Division::Range(range.clone()))
        }
        (Some((name, count)), None) if name == "ranges" => {
            let count = count.as_u64().and_then(|count| usize::try_from(count).ok());
            count.map(Division::Ranges).ok_or_else(refused)
        }
        _ => Err(refused()),
    }
}

/// A body that says nothing.
fn nothing(body: &[u8]) -> Result<()> {
    match body.trim_ascii() {
        b"" | b"{}" => Ok(()),
        _ => Err(Error::bad_request("The body must be empty or {}.")),
    }
}

/// Which container a call about the purge is for; all, if it says nothing.
fn scope(body: &[u8]) -> Result<Option<(String, String)>> {
    let refused = || {
        Error::bad_request("The body must be empty, {}, or {\"container\":\"database/container\"}.")
    };
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let body: Value = serde_json::from_slice(body).map_err(|_| refused())?;
    let mut members = body.as_object().ok_or_else(refused)?.iter();
    match (members.next(), members.next()) {
        (None, _) => Ok(None),
        (Some((name, Value::String(container))), None) if name == "container" => {
            // No name has a slash in it.
            let (database, container) = container.split_once('/').ok_or_else(refused)?;
            Ok(Some((database.to_owned(), container.to_owned())))
        }
        _ => Err(refused()),
    }
}

/// A way to look at the time to live of a container.
#[derive(Clone, Copy)]
enum View {
    Status,
    Forecast,
    WhatIf,
    Explain,
}

impl View {
    fn of(call: &[&str]) -> Option<View> {
        match call {
            [] => Some(View::Status),
            ["forecast"] => Some(View::Forecast),
            ["whatif"] => Some(View::WhatIf),
            ["explain"] => Some(View::Explain),
            _ => None,
        }
    }

    fn read(self, at: ContainerScope, query: &str) -> Result<Operation> {
        match self {
            View::Status => Parameters::read(query, &[]).map(|_| Operation::ReadTtl { at }),
            View::Forecast => {
                let parameters = Parameters::read(query, &["buckets", "bucketSeconds"])?;
                Ok(Operation::ForecastTtl {
                    at,
                    buckets: parameters.number(
                        "buckets",
                        FORECAST_BUCKETS,
                        FORECAST_BUCKETS_MAX,
                    )?,
                    bucket_seconds: parameters.number(
                        "bucketSeconds",
                        FORECAST_BUCKET_SECONDS,
                        TTL_MAX,
                    )?,
                })
            }
            View::WhatIf => {
                let parameters = Parameters::read(query, &["defaultTtl"])?;
                Ok(Operation::WhatIfTtl { at, default: default(parameters.need("defaultTtl")?)? })
            }
            View::Explain => {
                let parameters = Parameters::read(query, &["id", "partitionKey"])?;
                let id = parameters.need("id")?.to_owned();
                let key = parameters.need("partitionKey")?;
                let partition_key = PartitionKey::parse_header(key).map_err(|_| {
                    Error::bad_request(format!(
                        "The parameter 'partitionKey' has the value '{key}', but must be a JSON \
                         array of the key's values, such as [\"x\"]."
                    ))
                })?;
                Ok(Operation::ExplainTtl { at, id, partition_key })
            }
        }
    }
}

/// A `defaultTtl` as it is asked about.
fn default(text: &str) -> Result<ContainerTtl> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match (text, text.parse()) {
        ("off", _) => Ok(ContainerTtl::Off),
        ("-1", _) => Ok(ContainerTtl::NoDefault),
        (_, Ok(seconds @ 1..=TTL_MAX)) if digits => Ok(ContainerTtl::Default(seconds)),
        _ => Err(Error::bad_request(format!(
            "The parameter 'defaultTtl' has the value '{text}', but must be off, -1, or a number \
             of seconds from 1 to {TTL_MAX}."
        ))),
    }
}

fn step(body: &[u8]) -> Result<Step> {
    let refused = || {
        Error::bad_request(
            "The body must be one of {\"now\":n}, {\"advanceSeconds\":n}, {\"frozen\":true}, \
             {\"frozen\":false} and {\"accept\":true}.",
        )
    };
    let body: Value = serde_json::from_slice(body).map_err(|_| refused())?;
    let body = body.as_object().ok_or_else(refused)?;
    let mut members = body.iter();
    let (Some((name, value)), None) = (members.next(), members.next()) else {
        return Err(refused());
    };
    match (name.as_str(), value.as_u64(), value.as_bool()) {
        ("now", Some(second), _) => Ok(Step::To(second)),
        ("advanceSeconds", Some(seconds), _) => Ok(Step::Advance(seconds)),
        ("frozen", _, Some(true)) => Ok(Step::Freeze),
        ("frozen", _, Some(false)) => Ok(Step::Run),
        ("accept", _, Some(true)) => Ok(Step::Accept),
        _ => Err(refused()),
    }
}
