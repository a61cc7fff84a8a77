//! The calls of the admin API that are answered without the engine, and who may call: by a
//! key, or by a session that stands for one.

use std::borrow::Cow;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dayfly_engine::Caller;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use http::header::ORIGIN;
use http::{Method, request};
use serde_json::json;

use crate::admin::{self, Call, Proof};
use crate::auth::{self, unauthorized};
use crate::events::Events;
use crate::facts::Shown;
use crate::headers::Headers;
use crate::kind::Kind;
use crate::operation::Request;
use crate::options::{Opt, Options as _};
use crate::requests::About;
use crate::series::Totals;
use crate::{Api, Incoming, Said, Way, host, instant, query_of, sessions};

/// What is said of a key that is not of the account.
const NO_KEY: &str = "This is no key of the account.";

/// In how many containers expired items are counted, and in how many a second.
const COUNTED_MAX: usize = 100_000;
const COUNTED_PER_SECOND: usize = 50;

impl Api {
    /// A call of the admin API.
    pub(crate) fn called(
        &self,
        call: &[Cow<'_, str>],
        request: &Request<'_>,
        incoming: &Incoming,
        about: &mut About,
    ) -> Result<Said> {
        let Incoming { parts, way, cancel, .. } = incoming;
        self.check_near(*way)?;
        self.check_origin(parts)?;
        if admin::is_login(request.verb, call) {
            *about = Kind::Admin.into();
            return self.log_in(request, *way);
        }
        let caller = self.bearer(request, *way)?;
        Ok(match admin::read(request, query_of(&parts.uri), call)? {
            Call::Operation(operation) => {
                *about = self.log.about(&operation);
                Said::Operation(self.engine.run_for(caller, operation, cancel.clone()))
            }
            Call::Requests(filter) => {
                *about = Kind::ReadRequests.into();
                self.tell(self.log.show(&filter).to_string())
            }
            Call::Server => {
                *about = Kind::Watch.into();
                self.tell(self.show_server(caller, incoming))
            }
            Call::Series => {
                *about = Kind::Watch.into();
                self.tell(self.series.show(Timestamp(self.engine.glance().now)).to_string())
            }
            Call::Events => {
                *about = Kind::Watch.into();
                let bearer = auth::bearer(request.options)?.unwrap_or_default();
                Said::Events(Events::new(bearer, &self.listeners)?)
            }
            Call::MakeCode => {
                *about = Kind::Admin.into();
                let code = self.sessions.make_code(caller, instant())?;
                let seconds = sessions::CODE_LIFE.as_secs();
                self.tell(json!({"code": code, "expiresInSeconds": seconds}).to_string())
            }
            Call::CloseSession => {
                *about = Kind::Admin.into();
                let token = auth::bearer(request.options)?.unwrap_or_default();
                if !self.sessions.close(&token, instant()) {
                    return Err(unauthorized("There is no session with this token."));
                }
                Said::Reply(self.nothing())
            }
        })
    }

    /// Opens a session for somebody with a key, or with a code.
    pub(crate) fn log_in(&self, request: &Request<'_>, way: Way) -> Result<Said> {
        check_encrypted(way)?;
        let caller = match admin::proof(request.body)? {
            Proof::Bearer => {
                let key = auth::bearer(request.options)?;
                key.and_then(|key| self.keys().whose(&key)).ok_or_else(|| unauthorized(NO_KEY))
            }
            Proof::Key(key) => self.keys().whose(&key).ok_or_else(|| unauthorized(NO_KEY)),
            Proof::Code(code) => self.sessions.redeem(&code, instant()).ok_or_else(|| {
                unauthorized("This code is not good, or not any more: it is so once, for a minute.")
            }),
        }?;
        let body = json!({
            "token": self.sessions.open(caller, instant())?,
            "readOnly": caller == Caller::ReadOnly,
            "by": caller.name(),
            "idleSeconds": sessions::IDLE.as_secs(),
        });
        Ok(self.tell(body.to_string()))
    }

    fn show_server(&self, caller: Caller, incoming: &Incoming) -> String {
        let settings = &self.settings;
        let pem = self.certificate_pem.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (started_at, since) = self.started;
        let shown = Shown {
            facts: &settings.facts,
            clock: self.engine.glance(),
            started_at: started_at.0,
            uptime_seconds: since.elapsed().as_secs(),
            caller,
            request_log: settings.request_log,
            direct: settings.direct,
            has_public_key: self.keys().whose(settings.facts.public_key) == Some(Caller::Primary),
            host: settings.public_host.as_deref().unwrap_or_else(|| host(&incoming.parts)),
            certificate_pem: pem.as_deref(),
            certificate_end: self.edge.certificate_end.load(Ordering::Relaxed),
        };
        shown.to_json().to_string()
    }

    /// To be called once a second, for those who look what the server does. Says how long it
    /// is until the next second.
    pub fn sample(&self) -> Duration {
        let elapsed = self.started.1.elapsed();
        let second = elapsed.as_secs();
        let (requests, charge, errors) = self.meters.totals();
        let purged = self.engine.purged_items();
        let expired = self.expired(second);
        self.series.note(second, Totals { requests, charge, errors, expired, purged });
        Duration::from_secs(second + 1).saturating_sub(elapsed)
    }

    /// How many items have expired. With many containers that is not counted each second.
    fn expired(&self, second: u64) -> u64 {
        if second < self.count_again.load(Ordering::Relaxed) {
            return self.series.expired();
        }
        let Ok(all) = self.engine.container_figures(COUNTED_MAX) else {
            return self.series.expired();
        };
        let pause = 1 + all.containers.len() / COUNTED_PER_SECOND;
        self.count_again.store(second.saturating_add(pause as u64), Ordering::Relaxed);
        all.containers.iter().map(|container| container.expired).sum()
    }

    /// Whether somebody who came this way may see the portal.
    pub(crate) fn shows_portal(&self, way: Way) -> bool {
        self.settings.portal && self.check_near(way).is_ok()
    }

    /// Refuses what a page from elsewhere has a browser send. It cannot read an answer, but
    /// what it asks would be done.
    pub(crate) fn check_origin(&self, parts: &request::Parts) -> Result<()> {
        let Some(origin) = parts.headers.get(ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        let from = origin.split_once("://").map_or("", |(_, from)| from);
        let public = self.settings.public_host.as_deref();
        let is_ours = |host: &str| host.eq_ignore_ascii_case(from);
        if is_ours(host(parts)) || public.is_some_and(is_ours) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Forbidden,
            "The admin API answers no page from elsewhere: the header 'origin' names another host.",
        ))
    }

    /// Whose key or token stands in the request. Other machines send it over https only.
    pub(crate) fn bearer(&self, request: &Request<'_>, way: Way) -> Result<Caller> {
        check_encrypted(way)?;
        let given = auth::bearer(request.options)?;
        let caller = given.and_then(|given| {
            let by_key = self.keys().whose(&given);
            by_key.or_else(|| self.sessions.caller(&given, instant()))
        });
        caller.ok_or_else(|| {
            unauthorized("The admin API needs 'authorization: Bearer <primary key>'.")
        })
    }

    /// Whether a session asks this because it watches: again and again, and it says so. What
    /// was refused before it became an operation is told all the same.
    pub(crate) fn is_watch(&self, incoming: &Incoming, kind: Kind) -> bool {
        let parts = &incoming.parts;
        let options = Headers::new(&parts.headers);
        if parts.method != Method::GET || kind == Kind::Refused {
            return false;
        }
        let token = match options.flag(Opt::Watch) {
            Ok(true) => auth::bearer(&options).ok().flatten(),
            _ => None,
        };
        token.is_some_and(|token| self.sessions.is_open(&token, instant()))
    }

    /// Whose rights the token has that was sent to the REST API. Sessions are for those to
    /// whom the admin API is open.
    pub(crate) fn session_caller(&self, token: &str, way: Way) -> Result<Caller> {
        check_encrypted(way)?;
        let is_near = self.check_near(way).is_ok();
        let caller = is_near.then(|| self.sessions.caller(token, instant())).flatten();
        caller.ok_or_else(|| {
            unauthorized("There is no session with this token, or not any more: log in again.")
        })
    }
}

/// Refuses a key or a token that another machine sent in clear text.
fn check_encrypted(way: Way) -> Result<()> {
    if way.local || way.secure {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Forbidden, "This answers other machines over https only."))
}
