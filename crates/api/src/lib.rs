//! HTTP to operations, and back.
//!
//! A request is a walk in one direction: path, resource, signature, operation,
//! reply, response. `Api::answer` shows it on one screen.

mod account;
mod addresses;
mod admin;
mod advice;
mod auth;
mod batch;
mod calls;
pub mod direct;
mod edge;
mod events;
mod facts;
mod headers;
pub mod hybrid_row;
mod kind;
mod metrics;
mod operation;
mod options;
mod parameters;
mod portal;
mod reply;
mod requests;
mod results;
mod route;
mod series;
mod sessions;
mod told;
mod warnings;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Instant;

use bytes::Bytes;
pub use dayfly_engine::cancel::{Cancel, Reason};
use dayfly_engine::operation::Operation;
pub use dayfly_engine::reply::Pieces;
use dayfly_engine::reply::{Reply, Success};
use dayfly_engine::{Answer, Caller, Engine};
use dayfly_model::charge::Charge;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use http::header::{
    AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use http::{Response, Uri, request};
use uuid::Uuid;

pub use crate::auth::AccountKeys;
use crate::auth::{Keys, SignedPath};
pub use crate::edge::{Edge, Protocol};
pub use crate::events::Events;
pub use crate::facts::Facts;
use crate::headers::Headers;
use crate::kind::Kind;
use crate::metrics::Meters;
use crate::operation::{Request, wrong_verb};
use crate::options::Options;
use crate::reply::{Constant, Context};
use crate::requests::{About, Answered, Channel, RequestLog};
use crate::route::Resource;
pub use crate::route::UNKNOWN_PATH;
use crate::series::Series;
use crate::sessions::Sessions;
use crate::warnings::Warnings;

/// What can be set.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Settings {
    /// The keys of the account.
    pub keys: AccountKeys,
    /// Whether only this machine can reach the server.
    pub loopback: bool,
    /// Whether who comes to `localhost` finds the server at 127.0.0.1 too.
    pub on_ipv4: bool,
    /// Whether the admin API is there also for other machines. It is for this one,
    /// whatever the server listens on.
    pub admin_public: bool,
    /// Whether the account is shown to those, too, who sign nothing.
    pub open_account: bool,
    /// The host that the account names, with its port; without one, the host by which its
    /// reader came.
    pub public_host: Option<String>,
    /// Whether clients in direct mode are served, and told where.
    pub direct: bool,
    /// The name of this machine, for clients that may come by nothing but a name.
    pub machine: Option<String>,
    /// What `/_explorer/emulator.pem` serves.
    pub certificate_pem: Option<String>,
    /// Whether the last requests are kept in memory, for those who look.
    pub request_log: bool,
    /// Whether the portal is served.
    pub portal: bool,
    /// What the portal shows of how the server was started.
    pub facts: Facts,
    /// Real time, for the dates of signatures.
    pub wall: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

/// The way that a request took.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Whether it came over TLS.
    pub secure: bool,
    /// Whether it came from this machine, by the address at the other end, or is to count
    /// as if it had.
    pub local: bool,
    /// Whether it came by the door for health checks, behind which there is nothing else.
    pub health: bool,
}

/// A request, with its body.
pub struct Incoming {
    /// Everything but the body.
    pub parts: request::Parts,
    /// The body.
    pub body: Bytes,
    /// How it came.
    pub way: Way,
    /// By which the client's side says that it does not wait any more.
    pub cancel: Cancel,
}

/// The REST API over an engine.
pub struct Api {
    engine: Arc<Engine>,
    /// Who asks takes a copy of the pointer, and is not in the way of a change.
    keys: RwLock<Arc<Keys>>,
    certificate_pem: RwLock<Option<String>>,
    meters: Meters,
    log: RequestLog,
    warnings: Warnings,
    sessions: Sessions,
    series: Series,
    /// When, in seconds since the start, expired items are to be counted again.
    count_again: AtomicU64,
    /// How many listen to what happens.
    listeners: Arc<AtomicUsize>,
    /// When it was started, by the wall and by the stopwatch.
    started: (Timestamp, Instant),
    settings: Settings,
    edge: Arc<Edge>,
    number: AtomicU64,
    constant: Constant,
    fixed: direct::Fixed,
}

impl Api {
    /// The API, with these settings. Fails if a key is not base64.
    pub fn new(engine: Arc<Engine>, mut settings: Settings) -> Result<Api> {
        Ok(Api {
            keys: RwLock::new(Arc::new(Keys::parse(&settings.keys)?)),
            certificate_pem: RwLock::new(settings.certificate_pem.take()),
            constant: Constant::new((settings.wall)()),
            fixed: direct::Fixed::new((settings.wall)()),
            log: RequestLog::new(settings.request_log),
            meters: Meters::default(),
            warnings: Warnings::default(),
            sessions: Sessions::default(),
            series: Series::default(),
            count_again: AtomicU64::new(0),
            listeners: Arc::default(),
            started: ((settings.wall)(), instant()),
            engine,
            settings,
            edge: Arc::default(),
            number: AtomicU64::new(0),
        })
    }

    /// Answers one request. Never fails: a failure is an answer too.
    pub async fn handle(&self, mut incoming: Incoming) -> Response<Pieces> {
        let started = instant();
        let activity_id = activity_id(&incoming.parts.headers);
        let mut about = About::default();
        let said = self.answer(&incoming, &mut about).unwrap_or_else(Said::failed);
        if self.is_watch(&incoming, about.kind) {
            about = Kind::Watch.into();
        }
        let settled = match said {
            Said::Operation(Answer::Pending(pending)) => pending.answer().await.into(),
            Said::Operation(Answer::Ready(reply)) | Said::Reply(reply) => reply.into(),
            Said::Page(page) => page.into(),
            Said::Events(events) => events.into(),
        };
        let location = location(&incoming);
        let headers = std::mem::take(&mut incoming.parts.headers);
        let (verb, path) = named(&incoming.parts);
        self.respond(settled, Asked { verb, path, about, activity_id, location, headers, started })
    }

    /// From now on the account has these keys, and no others; sessions end. Fails, and
    /// changes nothing, if one is not base64.
    pub fn set_keys(&self, keys: &AccountKeys) -> Result<()> {
        let keys = Arc::new(Keys::parse(keys)?);
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        self.sessions.forget_all();
        Ok(())
    }

    fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on `/_explorer/emulator.pem` serves this.
    pub fn set_certificate(&self, pem: String) {
        *self.certificate_pem.write().unwrap_or_else(PoisonError::into_inner) = Some(pem);
    }

    /// Where the listener tells of itself, for `/metrics`.
    pub fn edge(&self) -> &Arc<Edge> {
        &self.edge
    }

    /// Whether a request with this head may send its body. The listener asks
    /// before it keeps a body that does not come in one piece, and before it
    /// tells a client that waits for it to go on.
    pub fn admit(&self, head: &request::Parts, way: Way) -> Result<()> {
        let (options, body) = (Headers::new(&head.headers), Bytes::new());
        let request = Request { verb: head.method.as_str(), options: &options, body: &body };
        let path = head.uri.path();
        let segments = route::segments(path)?;
        match resource(&segments, way)? {
            resource if resource.is_page() => Ok(()),
            Resource::Admin(_) => self.admin_caller(&request, way).map(drop),
            resource => match self.signer(&request, &head.uri, path, &segments, way) {
                Ok(_) => Ok(()),
                Err(refused) => {
                    self.whole_signer(&request, &head.uri, resource, way, refused).map(drop)
                }
            },
        }
    }

    /// Who signed the address of an item together with what a URL takes for a query, and
    /// its segments: an id may have a question mark, and some clients do not
    /// escape it. Otherwise the signature was `refused`.
    fn whole_signer<'u>(
        &self,
        request: &Request<'_>,
        uri: &'u Uri,
        resource: Resource<'_>,
        way: Way,
        refused: Error,
    ) -> Result<(Caller, Vec<Cow<'u, str>>)> {
        let whole = uri.path_and_query().filter(|target| target.query().is_some());
        let (Resource::Item(..), Some(whole)) = (resource, whole) else { return Err(refused) };
        let segments = route::segments(whole.as_str())?;
        match self.signer(request, uri, whole.as_str(), &segments, way) {
            Ok(caller) => Ok((caller, segments)),
            // The signature is good, and something else is not.
            Err(error) if error.kind == ErrorKind::Forbidden => Err(error),
            Err(_) => Err(refused),
        }
    }

    /// Who signed a request for `uri`, as one for `path`, or has a session.
    fn signer(
        &self,
        request: &Request<'_>,
        uri: &Uri,
        path: &str,
        segments: &[Cow<'_, str>],
        way: Way,
    ) -> Result<Caller> {
        if let Some(token) = auth::bearer(request.options)? {
            return self.session_caller(&token, way);
        }
        let resolved = route::resolved(segments, query_of(uri));
        let (path, segments) = match &resolved {
            Some(path) => (path.as_ref(), Cow::Owned(route::segments(path)?)),
            None => (path, Cow::Borrowed(segments)),
        };
        let path = SignedPath { raw: Some(path), segments: &segments };
        self.verify(request.verb, path, request.options)
    }

    /// Who signed a request, by whatever protocol it came.
    fn verify(&self, verb: &str, path: SignedPath<'_>, options: &dyn Options) -> Result<Caller> {
        let keys = self.keys();
        let verify = |now| keys.verify(verb, path, options, now);
        verify((self.settings.wall)()).or_else(|refused| {
            // When our clock has jumped, clients on other machines are right.
            let clock = self.engine.glance();
            let believed = Timestamp(clock.now.saturating_sub(clock.offset_seconds));
            if clock.held { verify(believed) } else { Err(refused) }
        })
    }

    /// Ends what may take long, and takes no more of it: the server stops, and its
    /// patience is at an end.
    pub fn stop_long_work(&self) {
        self.engine.stop_long_work();
    }

    /// What the listener refuses by itself, with all the usual headers. `of` is the
    /// request, if there is a whole head of one.
    pub fn refuse(&self, error: Error, of: Option<&request::Parts>) -> Response<Pieces> {
        let (verb, path) = of.map_or((requests::UNKNOWN, requests::UNKNOWN), named);
        let asked = Asked {
            verb,
            path,
            about: About::default(),
            activity_id: of.map_or_else(new_activity_id, |parts| activity_id(&parts.headers)),
            location: None,
            headers: HeaderMap::new(),
            started: instant(),
        };
        self.respond(Settled::from(Reply::from(error)), asked)
    }

    /// The walk of a request, top to bottom. `about` says how far it came.
    fn answer(&self, incoming: &Incoming, about: &mut About) -> Result<Said> {
        let path = incoming.parts.uri.path();
        let options = Headers::new(&incoming.parts.headers);
        let verb = incoming.parts.method.as_str();
        let request = Request { verb, options: &options, body: &incoming.body };
        let segments = route::segments(path)?;
        let resource = resource(&segments, incoming.way)?;
        if let Some(said) = self.open(&request, resource, incoming, about)? {
            return Ok(said);
        }
        let (uri, way) = (&incoming.parts.uri, incoming.way);
        let (caller, whole) = match self.signer(&request, uri, path, &segments, way) {
            Ok(caller) => (caller, None),
            Err(refused) => {
                let (caller, whole) = self.whole_signer(&request, uri, resource, way, refused)?;
                (caller, Some(whole))
            }
        };
        let segments = whole.as_ref().unwrap_or(&segments);
        let resource = route::resource(segments)?;
        self.carry_out(caller, &request, resource, segments, incoming, about)
    }

    /// What a request with a good signature asks for.
    fn carry_out(
        &self,
        caller: Caller,
        request: &Request<'_>,
        resource: Resource<'_>,
        segments: &[Cow<'_, str>],
        incoming: &Incoming,
        about: &mut About,
    ) -> Result<Said> {
        if resource == Resource::Account {
            *about = Kind::ReadAccount.into();
            return self.account(request, incoming);
        }
        if resource == Resource::Addresses {
            *about = Kind::ReadAddresses.into();
            return self.addresses(request, incoming);
        }
        let cancel = incoming.cancel.clone();
        self.run(caller, request, resource, segments, cancel, about).map(Said::Operation)
    }

    /// Begins with the operation that a request asks for, by whatever protocol it came.
    fn run(
        &self,
        caller: Caller,
        request: &Request<'_>,
        resource: Resource<'_>,
        segments: &[Cow<'_, str>],
        cancel: Cancel,
        about: &mut About,
    ) -> Result<Answer> {
        let operation = operation::read(request, resource)
            .or_else(|error| operation::refuse(request, segments, error))?;
        *about = self.log.about(&operation);
        Ok(self.engine.run_for(caller, operation, cancel))
    }

    /// What is not signed like the rest: a few open pages, and the admin API
    /// with its own key.
    fn open(
        &self,
        request: &Request<'_>,
        resource: Resource<'_>,
        incoming: &Incoming,
        about: &mut About,
    ) -> Result<Option<Said>> {
        let Incoming { parts, way, .. } = incoming;
        let is_signed = parts.headers.contains_key(AUTHORIZATION);
        if resource.is_page() {
            *about = Kind::Page.into();
            if !matches!(request.verb, "GET" | "HEAD") {
                return Err(wrong_verb(request.verb));
            }
        }
        Ok(Some(match resource {
            // Whoever reads this has chosen the wrong mode, and may as well have the key.
            Resource::Addresses => {
                addresses::check(query_of(&parts.uri), self.settings.direct)?;
                return Ok(None);
            }
            Resource::Account
                if !is_signed && portal::is_browser(&parts.headers) && self.shows_portal(*way) =>
            {
                *about = Kind::Page.into();
                Said::moved(portal::PATH)
            }
            Resource::Account if self.settings.open_account && !is_signed => {
                *about = Kind::ReadAccount.into();
                self.account(request, incoming)?
            }
            Resource::Alive => Said::text("text/plain", "alive\n"),
            Resource::Ready => {
                let busy = |why: Error| Error::new(ErrorKind::ServiceUnavailable, why.message);
                self.engine.writable().map_err(busy)?;
                Said::text("text/plain", "ready\n")
            }
            Resource::Certificate => {
                match self.certificate_pem.read().unwrap_or_else(PoisonError::into_inner).clone() {
                    Some(pem) => Said::text("application/x-pem-file", pem),
                    None => return Err(route::unknown()),
                }
            }
            Resource::Portal(name) => {
                let file = portal::file(name, &parts.headers).filter(|_| self.shows_portal(*way));
                let portal::File { kind, body, headers } = file.ok_or_else(route::unknown)?;
                let mut page = OpenPage::new(kind, body);
                page.headers.extend(headers);
                Said::Page(page)
            }
            Resource::Metrics => {
                if !self.settings.loopback {
                    self.bearer(request, *way)?;
                }
                let text = metrics::render(&self.engine, &self.meters, &self.edge);
                Said::text("text/plain; version=0.0.4", text)
            }
            Resource::Admin(call) => self.called(call, request, incoming, about)?,
            _ => return Ok(None),
        }))
    }

    /// Who calls the admin API.
    fn admin_caller(&self, request: &Request<'_>, way: Way) -> Result<Caller> {
        self.check_near(way)?;
        self.bearer(request, way)
    }

    /// Hides from other machines what is for this one.
    fn check_near(&self, way: Way) -> Result<()> {
        if way.local || self.settings.admin_public { Ok(()) } else { Err(route::unknown()) }
    }

    fn account(&self, request: &Request<'_>, incoming: &Incoming) -> Result<Said> {
        if !matches!(request.verb, "GET" | "HEAD") {
            return Err(wrong_verb(request.verb));
        }
        // Two that differ are refused.
        Headers::new(&incoming.parts.headers).value(&HOST)?;
        let public = self.settings.public_host.as_deref();
        let host = public.unwrap_or_else(|| host(&incoming.parts));
        let body = account::describe(host, incoming.way.secure, self.settings.on_ipv4);
        Ok(self.tell(body.to_string()))
    }

    fn addresses(&self, request: &Request<'_>, incoming: &Incoming) -> Result<Said> {
        if !matches!(request.verb, "GET" | "HEAD") {
            return Err(wrong_verb(request.verb));
        }
        let wanted = addresses::read(query_of(&incoming.parts.uri))?;
        let public = self.settings.public_host.as_deref();
        let host = public.unwrap_or_else(|| host(&incoming.parts));
        let Settings { on_ipv4, machine, .. } = &self.settings;
        let home = addresses::home(host, incoming.way.secure, *on_ipv4, machine.as_deref());
        let body = match &wanted.container {
            None => addresses::of_master(&home),
            Some(at) => match self.engine.ranges_of(at) {
                Ok(ranges) => addresses::of_ranges(&home, &wanted, &at.container, &ranges),
                Err(reply) => return Ok(Said::Reply(reply)),
            },
        };
        Ok(self.tell(body.to_string()))
    }

    /// What is answered without the engine, at the time that it has.
    fn tell(&self, body: String) -> Said {
        let mut reply = self.engine.run(Operation::ReadTime).wait();
        reply.outcome = Ok(Success { status: 200, body: body.into(), ..Success::default() });
        Said::Reply(reply)
    }

    /// That something was done, and nothing is to be said of it.
    fn nothing(&self) -> Reply {
        let mut reply = self.engine.run(Operation::ReadTime).wait();
        reply.outcome = Ok(Success { status: 204, ..Success::default() });
        reply
    }

    fn respond(&self, settled: Settled, asked: Asked<'_>) -> Response<Pieces> {
        let Settled { reply, more, events } = settled;
        let Asked { verb, path, about, activity_id, location, headers, started } = asked;
        let (now, took) = (reply.now.unwrap_or_else(&self.settings.wall), started.elapsed());
        let explains_charge = headers::explains_charge(&headers);
        let channel = Channel::Http;
        self.note(Answered {
            verb,
            path,
            about,
            channel,
            activity_id,
            reply: &reply,
            at: now,
            took,
        });
        let context = Context {
            activity_id: activity_id.to_string(),
            location,
            headers,
            now,
            duration: took,
            number: self.number.fetch_add(1, Ordering::Relaxed),
            explains_charge,
            constant: &self.constant,
        };
        let mut response = reply::respond(reply, context);
        for (name, value) in more {
            response.headers_mut().insert(name, value);
        }
        if let Some(events) = events {
            response.extensions_mut().insert(events);
        }
        response
    }

    /// Tells those who watch of a request, by whatever protocol it came.
    fn note(&self, answered: Answered<'_>) {
        self.meters.count(&answered);
        self.warnings.look(answered.reply);
        self.log.note(answered);
    }
}

/// What a path names, for who came this way.
fn resource<'a>(segments: &'a [Cow<'a, str>], way: Way) -> Result<Resource<'a>> {
    let resource = route::resource(segments)?;
    let is_health = matches!(resource, Resource::Ready | Resource::Alive);
    if way.health && !is_health { Err(route::unknown()) } else { Ok(resource) }
}

/// What is left of a request when it is answered.
struct Asked<'a> {
    verb: &'a str,
    path: &'a str,
    about: About,
    activity_id: Uuid,
    location: Option<String>,
    headers: HeaderMap,
    started: Instant,
}

/// What a request came to.
enum Said {
    Operation(Answer),
    Reply(Reply),
    /// What is not JSON.
    Page(OpenPage),
    /// Lines, as long as somebody listens.
    Events(Events),
}

/// A page, with what is said of it besides the usual.
struct OpenPage {
    status: u16,
    body: Bytes,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl OpenPage {
    fn new(kind: &'static str, body: impl Into<Bytes>) -> OpenPage {
        let kind = (CONTENT_TYPE, HeaderValue::from_static(kind));
        OpenPage { status: 200, body: body.into(), headers: vec![kind] }
    }
}

/// What it comes to in the end.
struct Settled {
    reply: Reply,
    /// What is said besides the usual.
    more: Vec<(HeaderName, HeaderValue)>,
    /// What follows, as long as somebody listens.
    events: Option<Events>,
}

impl From<Reply> for Settled {
    fn from(reply: Reply) -> Self {
        Settled { reply, more: Vec::new(), events: None }
    }
}

impl From<OpenPage> for Settled {
    fn from(page: OpenPage) -> Self {
        let OpenPage { status, body, headers } = page;
        let success = Success { status, body: body.into(), ..Success::default() };
        let reply = Reply { outcome: Ok(success), now: None, charge: Charge::NOTHING, place: None };
        Settled { more: headers, ..reply.into() }
    }
}

impl From<Events> for Settled {
    fn from(events: Events) -> Self {
        let page = OpenPage::new("application/x-ndjson", "");
        Settled { events: Some(events), ..page.into() }
    }
}

impl Said {
    fn failed(error: Error) -> Said {
        Said::Reply(error.into())
    }

    fn text(kind: &'static str, text: impl Into<Bytes>) -> Said {
        Said::Page(OpenPage::new(kind, text))
    }

    /// That a page is elsewhere.
    fn moved(to: &'static str) -> Said {
        let place = (LOCATION, HeaderValue::from_static(to));
        Said::Page(OpenPage { status: 302, body: Bytes::new(), headers: vec![place] })
    }
}

/// What stands behind the question mark.
fn query_of(uri: &Uri) -> &str {
    uri.query().unwrap_or_default()
}

/// The verb and the path of a request.
fn named(parts: &request::Parts) -> (&str, &str) {
    (parts.method.as_str(), parts.uri.path())
}

/// The host by which a client came.
fn host(parts: &request::Parts) -> &str {
    let header = || parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    authority.or_else(header).filter(|host| !host.is_empty()).unwrap_or("localhost")
}

/// The address of what is read, replaced or deleted, as the client gave it. What a
/// POST answers is not what is at its address.
fn location(incoming: &Incoming) -> Option<String> {
    let Incoming { parts, way, .. } = incoming;
    let path = parts.uri.path_and_query()?.as_str();
    let is_resource = path.starts_with("/dbs") || path.starts_with("/offers");
    if parts.method == http::Method::POST || !is_resource {
        return None;
    }
    let scheme = if way.secure { "https" } else { "http" };
    Some([scheme, "://", host(parts), path].concat())
}

/// The client's activity id, if it is one, or a new one.
fn activity_id(headers: &HeaderMap) -> Uuid {
    headers
        .get("x-ms-activity-id")
        .and_then(|value| value.to_str().ok())
        .and_then(|text| Uuid::parse_str(text).ok())
        .unwrap_or_else(new_activity_id)
}

/// An id that nobody else has: a random one of this process, and a count.
fn new_activity_id() -> Uuid {
    static PROCESS: LazyLock<u128> = LazyLock::new(|| Uuid::new_v4().as_u128());
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = u128::from(COUNT.fetch_add(1, Ordering::Relaxed));
    // The count goes into the last twelve digits, which say nothing of the
    // kind of id.
    Uuid::from_u128(PROCESS.wrapping_add(count & 0xFFFF_FFFF_FFFF))
}

#[expect(clippy::disallowed_methods, reason = "how long a request took is not a time of day")]
fn instant() -> Instant {
    Instant::now()
}
