//! The request log: a line for each request that was answered, where that is asked for,
//! and the last [`CAPACITY`] of them in memory.
//!
//! It is told what a reply means, not how it was sent, so any protocol can have its
//! requests in it. No bodies are kept, no keys and nothing behind a question mark; of a
//! query its text, without the values of its parameters.
//!
//! A request takes the next number, and with it a place of its own. Two meet there only
//! when one was a whole round slower, so nobody waits for the lock of a place. A place
//! uses the memory of the path before.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_engine::operation::Operation;
use dayfly_engine::reply::Reply;
use dayfly_model::{Error, Result, Timestamp};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::kind::Kind;
use crate::parameters::Parameters;

/// How many requests are kept.
const CAPACITY: u32 = 1000;

/// How many are shown, unless somebody asks for more or fewer.
const SHOWN: u32 = 100;

/// How much of a path, of a query's text and of a feature's name is kept.
const PATH_BYTES_MAX: usize = 512;
const QUERY_BYTES_MAX: usize = 1024;
const MISSING_BYTES_MAX: usize = 256;

/// What stands for a verb or a path that is not known: nobody's own word is kept for a
/// verb.
pub(crate) const UNKNOWN: &str = "-";

const VERBS: [&str; 9] =
    ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "TRACE", "CONNECT"];

/// What a request asks for, as far as it was understood.
#[derive(Default)]
pub(crate) struct About {
    pub(crate) kind: Kind,
    /// The text of a query, if it is kept.
    query: Option<Box<str>>,
}

impl From<Kind> for About {
    fn from(kind: Kind) -> Self {
        About { kind, query: None }
    }
}

/// How a request came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Channel {
    #[default]
    Http,
    /// As a frame of direct mode.
    Direct,
}

impl Channel {
    fn name(self) -> &'static str {
        match self {
            Channel::Http => "http",
            Channel::Direct => "direct",
        }
    }
}

/// A request that has its answer.
pub(crate) struct Answered<'a> {
    pub(crate) verb: &'a str,
    /// Without what stands behind a question mark.
    pub(crate) path: &'a str,
    pub(crate) about: About,
    pub(crate) channel: Channel,
    pub(crate) activity_id: Uuid,
    pub(crate) reply: &'a Reply,
    /// The request's time.
    pub(crate) at: Timestamp,
    pub(crate) took: Duration,
}

/// The last requests.
pub(crate) struct RequestLog {
    /// None, if none are kept.
    places: Box<[Mutex<Entry>]>,
    /// The number of the last request; they begin with 1.
    last: AtomicU64,
}

/// A request, as it is kept.
#[derive(Clone, Default)]
struct Entry {
    /// 0 where there was none yet.
    number: u64,
    at: Timestamp,
    kind: Kind,
    channel: Channel,
    verb: &'static str,
    path: String,
    status: u16,
    substatus: u32,
    charge_ru: f64,
    took: Duration,
    activity_id: Uuid,
    missing: Option<Box<str>>,
    query: Option<Box<str>>,
}

impl RequestLog {
    /// A log that keeps requests, or one that does not.
    pub(crate) fn new(keeps: bool) -> Self {
        let count = if keeps { CAPACITY } else { 0 };
        RequestLog {
            places: (0..count).map(|_| Mutex::default()).collect(),
            last: AtomicU64::new(0),
        }
    }

    /// What is kept of the request for an operation.
    pub(crate) fn about(&self, operation: &Operation) -> About {
        let body = if self.is_on() { query_of(operation) } else { None };
        About { kind: Kind::of(operation), query: body.and_then(text_of) }
    }

    /// Whether requests are kept.
    fn is_on(&self) -> bool {
        !self.places.is_empty()
    }

    /// A request was answered.
    pub(crate) fn note(&self, answered: Answered<'_>) {
        if answered.about.kind.is_logged() {
            answered.tell();
            self.keep(answered);
        }
    }

    fn keep(&self, answered: Answered<'_>) {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(mut entry) = self.place(number) else { return };
        // Somebody may have been quicker by a whole round.
        if entry.number < number {
            entry.write(number, answered);
        }
    }

    /// The place of a number, if there are any.
    fn place(&self, number: u64) -> Option<MutexGuard<'_, Entry>> {
        let place = usize::try_from(number % u64::from(CAPACITY)).ok()?;
        Some(self.places.get(place)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The newest requests that a filter lets through, the last one first.
    pub(crate) fn show(&self, filter: &Filter) -> Value {
        let last = self.last.load(Ordering::Relaxed);
        let shown: Vec<Value> = (1..=last)
            .rev()
            .take(self.places.len())
            .filter_map(|number| {
                let entry = self.place(number)?;
                (entry.number == number && filter.passes(&entry)).then(|| entry.show())
            })
            .take(filter.limit)
            .collect();
        json!({ "enabled": self.is_on(), "requests": shown })
    }
}

impl Answered<'_> {
    fn status(&self) -> (u16, u32) {
        match &self.reply.outcome {
            Ok(success) => (success.status, 0),
            Err(error) => (error.kind.wire().status, error.kind.wire().substatus),
        }
    }

    fn missing(&self) -> Option<&str> {
        self.reply.outcome.as_ref().err().and_then(Error::missing)
    }

    /// Writes the line.
    fn tell(&self) {
        let (status, substatus) = self.status();
        tracing::info!(
            target: "requests",
            verb = verb(self.verb),
            path = &*cut(self.path, PATH_BYTES_MAX),
            channel = self.channel.name(),
            status,
            substatus,
            charge = self.reply.charge.ru(),
            ms = milliseconds(self.took),
            activity_id = %self.activity_id,
            missing = self.missing(),
            "answered"
        );
    }
}

impl Entry {
    /// Takes the place of the request that was here.
    fn write(&mut self, number: u64, answered: Answered<'_>) {
        (self.status, self.substatus) = answered.status();
        self.number = number;
        self.at = answered.at;
        self.kind = answered.about.kind;
        self.channel = answered.channel;
        self.verb = verb(answered.verb);
        self.path.clear();
        self.path.push_str(&cut(answered.path, PATH_BYTES_MAX));
        self.charge_ru = answered.reply.charge.ru();
        self.took = answered.took;
        self.activity_id = answered.activity_id;
        self.missing = answered.missing().map(|feature| cut(feature, MISSING_BYTES_MAX).into());
        self.query = answered.about.query;
    }

    fn show(&self) -> Value {
        let mut shown = json!({
            "at": self.at.0,
            "operation": self.kind.name(),
            "verb": self.verb,
            "path": self.path,
            "channel": self.channel.name(),
            "status": self.status,
            "substatus": self.substatus,
            "charge": self.charge_ru,
            "ms": milliseconds(self.took),
            "activityId": self.activity_id.to_string(),
            "number": self.number,
        });
        for (name, text) in [("missing", &self.missing), ("query", &self.query)] {
            if let (Value::Object(members), Some(text)) = (&mut shown, text) {
                members.insert(name.to_owned(), (&**text).into());
            }
        }
        shown
    }
}

/// Which requests somebody wants to see.
pub(crate) struct Filter {
    status: Option<Wanted>,
    verb: Option<&'static str>,
    /// A part of the path, as it was sent or decoded.
    path: Option<String>,
    activity_id: Option<Uuid>,
    limit: usize,
}

/// A status, or those that begin with a digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Status(u16),
    Class(u16),
}

impl Filter {
    /// Reads the parameters of the call.
    pub(crate) fn read(query: &str) -> Result<Filter> {
        let known = ["status", "verb", "path", "activityId", "limit"];
        let parameters = Parameters::read(query, &known)?;
        let limit = parameters.number("limit", SHOWN, CAPACITY)?;
        Ok(Filter {
            status: parameters.get("status").map(Wanted::read).transpose()?,
            verb: parameters.get("verb").map(wanted_verb).transpose()?,
            path: parameters.get("path").map(ToOwned::to_owned),
            activity_id: parameters.get("activityId").map(wanted_id).transpose()?,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        })
    }

    fn passes(&self, entry: &Entry) -> bool {
        self.status.is_none_or(|wanted| wanted.holds(entry.status))
            && self.verb.is_none_or(|verb| verb == entry.verb)
            && self.activity_id.is_none_or(|id| id == entry.activity_id)
            && self.path.as_ref().is_none_or(|part| has_part(&entry.path, part))
    }
}

impl Wanted {
    fn read(text: &str) -> Result<Wanted> {
        let wanted = match text.as_bytes() {
            [digit @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => {
                Some(Wanted::Class(u16::from(digit - b'0')))
            }
            [b'1'..=b'5', _, _] => text.parse().ok().map(Wanted::Status),
            _ => None,
        };
        wanted.ok_or_else(|| unfit("status", text, "a status such as 404, or a class such as 4xx"))
    }

    fn holds(self, status: u16) -> bool {
        match self {
            Wanted::Status(wanted) => wanted == status,
            Wanted::Class(digit) => status / 100 == digit,
        }
    }
}

fn wanted_verb(text: &str) -> Result<&'static str> {
    let known = VERBS.into_iter().find(|known| known.eq_ignore_ascii_case(text));
    known.ok_or_else(|| unfit("verb", text, &format!("one of {}", VERBS.join(", "))))
}

fn wanted_id(text: &str) -> Result<Uuid> {
    Uuid::parse_str(text).map_err(|_| unfit("activityId", text, "a UUID"))
}

fn unfit(name: &str, text: &str, wanted: &str) -> Error {
    Error::bad_request(format!(
        "The parameter '{name}' has the value '{text}', but must be {wanted}."
    ))
}

fn has_part(path: &str, part: &str) -> bool {
    path.contains(part) || percent_decode_str(path).decode_utf8_lossy().contains(part)
}

fn verb(given: &str) -> &'static str {
    VERBS.into_iter().find(|known| *known == given).unwrap_or(UNKNOWN)
}

/// The beginning of a text, with a sign where more was cut off.
fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    match text.get(..text.floor_char_boundary(bytes_max)) {
        Some(start) if start.len() < text.len() => Cow::Owned(format!("{start}…")),
        _ => Cow::Borrowed(text),
    }
}

/// Milliseconds with three decimals.
#[expect(clippy::cast_precision_loss, reason = "nobody waits for years")]
fn milliseconds(took: Duration) -> f64 {
    took.as_micros() as f64 / 1000.0
}

/// The body of an operation that is a query.
fn query_of(operation: &Operation) -> Option<&[u8]> {
    match operation {
        Operation::QueryItems(asked) | Operation::ExplainQuery(asked) => Some(&asked.query),
        Operation::PlanQuery(asked) => Some(&asked.query),
        Operation::QueryFeed(asked) => Some(&asked.query),
        _ => None,
    }
}

/// The text in the body of a query.
fn text_of(body: &[u8]) -> Option<Box<str>> {
    #[derive(Deserialize)]
    struct Query<'a> {
        #[serde(borrow)]
        query: Cow<'a, str>,
    }
    let Query { query } = serde_json::from_slice(body).ok()?;
    Some(cut(&query, QUERY_BYTES_MAX).into())
}

#[cfg(test)]
mod tests {
    use dayfly_engine::reply::Success;
    use dayfly_model::charge::Charge;

    use super::*;

    fn note(log: &RequestLog, verb: &str, path: &str, reply: &Reply) {
        log.note(Answered {
            verb,
            path,
            about: Kind::ReadItem.into(),
            channel: Channel::Http,
            activity_id: Uuid::from_u128(7),
            reply,
            at: Timestamp(1000),
            took: Duration::from_micros(1234),
        });
    }

    fn good(status: u16) -> Reply {
        let success = Success { status, ..Success::default() };
        Reply { outcome: Ok(success), now: None, charge: Charge::from(1.5), place: None }
    }

    fn paths(log: &RequestLog, query: &str) -> Vec<String> {
        let shown = log.show(&Filter::read(query).unwrap());
        let requests = shown["requests"].as_array().unwrap();
        requests.iter().map(|one| one["path"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_last_thousand_are_kept() {
        let log = RequestLog::new(true);
        assert!(paths(&log, "").is_empty());
        for number in 0..2500 {
            note(&log, "GET", &format!("/{number}"), &good(200));
        }
        let kept = paths(&log, "limit=1000");
        let expected: Vec<String> = (1500..2500).rev().map(|number| format!("/{number}")).collect();
        assert_eq!(kept, expected);
        assert_eq!(paths(&log, "").len(), 100);
        assert_eq!(paths(&log, "limit=2&path=9"), ["/2499", "/2498"]);
    }

    #[test]
    fn a_request_is_found_by_what_it_was() {
        let log = RequestLog::new(true);
        note(&log, "GET", "/dbs/a%20b", &good(200));
        note(&log, "POST", "/dbs", &Error::not_yet("A trigger").into());
        note(&log, "BREW", "/pot", &Error::bad_request("no").into());
        for (query, expected) in [
            ("", &["/pot", "/dbs", "/dbs/a%20b"][..]),
            ("status=501", &["/dbs"]),
            ("status=4xx", &["/pot"]),
            ("status=2XX&verb=get", &["/dbs/a%20b"]),
            ("path=a+b", &["/dbs/a%20b"]),
            ("path=a%2520b", &["/dbs/a%20b"]),
            ("path=/dbs", &["/dbs", "/dbs/a%20b"]),
            ("activityId=00000000-0000-0000-0000-000000000007&limit=1", &["/pot"]),
            ("activityId=00000000-0000-0000-0000-000000000008", &[]),
        ] {
            assert_eq!(paths(&log, query), expected, "{query}");
        }
        let shown = log.show(&Filter::read("verb=POST").unwrap());
        assert_eq!(shown["requests"][0]["missing"], "A trigger");
        assert_eq!(shown["requests"][0]["ms"], 1.234);
        let shown = log.show(&Filter::read("status=400").unwrap());
        assert_eq!(shown["requests"][0]["verb"], "-");
        for wrong in
            ["status=abc", "status=600", "status=4x", "verb=BREW", "activityId=7", "limit=0"]
        {
            assert!(Filter::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_log_that_is_off_keeps_nothing() {
        let log = RequestLog::new(false);
        note(&log, "GET", "/", &good(200));
        assert_eq!(log.show(&Filter::read("").unwrap()), json!({"enabled": false, "requests": []}));
    }

    #[test]
    fn nothing_is_kept_that_is_long() {
        let log = RequestLog::new(true);
        note(&log, "GET", &"ä".repeat(10_000), &good(200));
        let [path] = &paths(&log, "")[..] else { panic!("one was noted") };
        assert_eq!(path.len(), PATH_BYTES_MAX + "…".len());
        let body = json!({"query": "x".repeat(5000), "parameters": [{"name": "@a", "value": 1}]});
        let text = text_of(body.to_string().as_bytes()).unwrap();
        assert_eq!(text.len(), QUERY_BYTES_MAX + "…".len());
        assert_eq!(text_of(br#"{"query":"SELECT \"a\""}"#).as_deref(), Some("SELECT \"a\""));
        assert_eq!(text_of(b"{}"), None);
    }

    #[test]
    fn writers_and_readers_meet() {
        let log = RequestLog::new(true);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..2000).for_each(|_| note(&log, "GET", "/", &good(200))));
            }
            scope.spawn(|| (0..20).for_each(|_| assert!(paths(&log, "limit=1000").len() <= 1000)));
        });
        assert_eq!(paths(&log, "limit=1000").len(), 1000);
    }
}
