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
use dayfly_engine::reply::{Pieces, Reply, Usage};
use dayfly_model::Timestamp;
use http::header::{CONTENT_LOCATION, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use crate::told::{self, Exchange, Figure, Out, Told};

macro_rules! spelled {
    ($($figure:ident $name:literal;)+) => {
        /// The header of a figure.
        fn header(figure: Figure) -> &'static HeaderName {
            match figure {
                $(Figure::$figure => {
                    static NAME: HeaderName = HeaderName::from_static($name);
                    &NAME
                })+
            }
        }
    };
}

spelled! {
    Time "date";
    Etag "etag";
    ActivityId "x-ms-activity-id";
    AltContentPath "x-ms-alt-content-path";
    ContentPath "x-ms-content-path";
    ContentType "content-type";
    Continuation "x-ms-continuation";
    LocalLsn "x-ms-cosmos-llsn";
    GlobalLsn "x-ms-global-committed-lsn";
    IndexProgress "x-ms-documentdb-collection-index-transformation-progress";
    IndexUtilization "x-ms-cosmos-index-utilization";
    ItemCount "x-ms-item-count";
    ItemLsn "x-ms-item-lsn";
    Lsn "lsn";
    MinThroughput "x-ms-cosmos-min-throughput";
    QueryMetrics "x-ms-documentdb-query-metrics";
    RangeId "x-ms-documentdb-partitionkeyrangeid";
    ReplacePending "x-ms-offer-replace-pending";
    Charge "x-ms-request-charge";
    ChargeParts "x-dayfly-charge-parts";
    Duration "x-ms-request-duration-ms";
    RequiresDistribution "x-ms-cosmos-query-requiresdistribution";
    RetryAfter "x-ms-retry-after-ms";
    Quota "x-ms-resource-quota";
    Usage "x-ms-resource-usage";
    SessionToken "x-ms-session-token";
    ShareThroughput "x-ms-share-throughput";
    Substatus "x-ms-substatus";
    TransportId "x-ms-transport-request-id";
    TtlIgnored "x-dayfly-ttl-ignored";
}

const STATE_CHANGE: HeaderName = HeaderName::from_static("x-ms-last-state-change-utc");

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
            ("x-ms-schemaversion", told::SCHEMA_VERSION),
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
    /// Whether it asks what its charge is made of.
    pub(crate) explains_charge: bool,
    /// The headers that never change.
    pub(crate) constant: &'a Constant,
}

/// Turns a reply into a response.
pub(crate) fn respond(reply: Reply, mut context: Context<'_>) -> Response<Pieces> {
    let mut response = Response::new(Pieces::default());
    let headers = response.headers_mut();
    *headers = std::mem::take(&mut context.headers);
    headers.clear();
    headers.reserve(ROOM);
    let in_container = context.constant.in_container.iter().filter(|_| reply.place.is_some());
    for (name, value) in context.constant.everywhere.iter().chain(in_container) {
        headers.insert(name, value.clone());
    }
    if reply.outcome.is_ok()
        && let Some(location) = context.location.take()
    {
        take(headers, CONTENT_LOCATION, location);
    }
    let about = Exchange {
        activity_id: &context.activity_id,
        now: context.now,
        took: context.duration,
        number: context.number,
        explains_charge: context.explains_charge,
    };
    let (status, body) = told::tell(reply, about, headers);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.body_mut() = body;
    response
}

impl Out for HeaderMap {
    fn put(&mut self, figure: Figure, told: Told) {
        let name = header(figure);
        match told {
            Told::Text(text) if figure == Figure::AltContentPath => {
                let text = match Cow::from(percent_encode(&text, NOT_IN_HEADERS)) {
                    Cow::Borrowed(_) => text.clone(),
                    Cow::Owned(encoded) => encoded.into(),
                };
                take(self, name.clone(), text);
            }
            Told::Text(text) => take(self, name.clone(), text),
            Told::Word(word) => drop(self.insert(name, HeaderValue::from_static(word))),
            Told::Number(number) => drop(self.insert(name, number.into())),
            Told::Charge(charge_ru) => drop(self.insert(name, charge(charge_ru))),
            Told::Time(now) => drop(self.insert(name, date(now))),
            Told::Took(took) => take(self, name.clone(), told::milliseconds(took)),
            Told::Quota(usage) => drop(self.insert(name, usage_values(usage).0)),
            Told::Usage(usage) => drop(self.insert(name, usage_values(usage).1)),
        }
    }
}

/// What was made of the last value of a kind: many answers in a row have the same.
struct Last<K, V>(RefCell<Option<(K, V)>>);

impl<K: PartialEq, V: Clone> Last<K, V> {
    const fn new() -> Self {
        Last(RefCell::new(None))
    }

    /// What `make` makes of a key.
    fn of(&self, key: K, make: impl FnOnce(&K) -> V) -> V {
        let mut last = self.0.borrow_mut();
        match &*last {
            Some((known, value)) if *known == key => value.clone(),
            _ => {
                let value = make(&key);
                *last = Some((key, value.clone()));
                value
            }
        }
    }
}

thread_local! {
    static LAST_USAGE: Last<Usage, (HeaderValue, HeaderValue)> = const { Last::new() };
    static LAST_CHARGE: Last<u64, HeaderValue> = const { Last::new() };
    static LAST_DATE: Last<Timestamp, HeaderValue> = const { Last::new() };
}

/// Quota and usage as headers.
fn usage_values(usage: Usage) -> (HeaderValue, HeaderValue) {
    let values = |usage: &Usage| (value(told::quota(*usage)), value(told::used(*usage)));
    LAST_USAGE.with(|last| last.of(usage, values))
}

/// A charge as a header.
fn charge(charge_ru: f64) -> HeaderValue {
    LAST_CHARGE.with(|last| last.of(charge_ru.to_bits(), |_| value(charge_ru.to_string())))
}

/// The date as a header: it is the same for a second.
fn date(now: Timestamp) -> HeaderValue {
    LAST_DATE.with(|last| last.of(now, |now| value(now.to_http_date())))
}

/// A text that the server made as a value.
fn value(text: String) -> HeaderValue {
    HeaderValue::from_maybe_shared(Bytes::from(text)).unwrap_or(HeaderValue::from_static(""))
}

/// Sets a header, if the value can be one.
fn take(headers: &mut HeaderMap, name: HeaderName, value: impl Into<Bytes>) {
    if let Ok(value) = HeaderValue::from_maybe_shared(value.into()) {
        headers.insert(name, value);
    }
}
