//! What all connections share, and what one connection is to its requests.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use dayfly_api::{Api, Cancel, Pieces, Reason, Way};
use dayfly_model::{Error, ErrorKind, Result};
use http::request::Parts;
use http::{HeaderMap, Response, Uri};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::answers::{Answers, Reader};
use crate::config::ClearText;
use crate::hosts::Hosts;
use crate::house::Door;
use crate::limits::Limits;
use crate::progress::{Phase, Progress};

/// What all connections share.
pub(crate) struct Host {
    pub(crate) api: Api,
    pub(crate) tls: RwLock<TlsAcceptor>,
    pub(crate) clear_text: ClearText,
    /// How a server of this machine may be called; another is called as one likes.
    pub(crate) hosts: Option<Hosts>,
    /// Whether whoever comes counts as one of this machine.
    pub(crate) all_local: bool,
    /// Whether clients in direct mode are served.
    pub(crate) direct: bool,
    pub(crate) limits: Limits,
    /// Bytes of bodies held at this moment.
    pub(crate) bodies: AtomicUsize,
    /// What clients have not taken yet.
    pub(crate) answers: Arc<Answers>,
}

impl Host {
    pub(crate) fn tls(&self) -> TlsAcceptor {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on handshakes are done with this.
    pub(crate) fn set_tls(&self, acceptor: TlsAcceptor) {
        *self.tls.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
    }

    /// The way that the requests of a connection take, before any TLS.
    pub(crate) fn way_of(&self, stream: &TcpStream, door: Door) -> Way {
        let local = self.all_local || is_local(stream);
        Way { secure: false, local, health: door == Door::Health }
    }
}

/// One connection, as its requests see it.
pub(crate) struct Visit {
    host: Arc<Host>,
    way: Way,
    limits: Limits,
    progress: Progress,
    reader: Arc<Reader>,
    refused: AtomicBool,
    /// Whether a body was refused that may be on its way.
    comes_more: AtomicBool,
    line: Mutex<Line>,
}

/// What is known of an HTTP/1 client that waits for an answer.
#[derive(Default)]
struct Line {
    /// How to say that it does not, while a request is being handled.
    cancel: Option<Cancel>,
    /// It has said its last word.
    is_silent: bool,
}

impl Visit {
    pub(crate) fn new(host: &Arc<Host>, way: Way) -> Arc<Visit> {
        Visit::within(host, way, host.limits)
    }

    /// A connection in direct mode, which may be idle for longer.
    pub(crate) fn direct(host: &Arc<Host>, way: Way) -> Arc<Visit> {
        Visit::within(host, way, host.limits.direct())
    }

    fn within(host: &Arc<Host>, way: Way, limits: Limits) -> Arc<Visit> {
        Arc::new(Visit {
            host: Arc::clone(host),
            way,
            limits,
            progress: Progress::new(limits),
            reader: host.answers.reader(),
            refused: AtomicBool::new(false),
            comes_more: AtomicBool::new(false),
            line: Mutex::default(),
        })
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request is whole, and its answer is owed. It is to be given up when the
    /// result says so.
    pub(crate) fn expect_answer(&self) -> Cancel {
        let cancel = Cancel::default();
        let mut line = self.line();
        if line.is_silent {
            cancel.cancel(Reason::Silent);
        }
        line.cancel = Some(cancel.clone());
        cancel
    }

    /// Whether a whole request has no answer yet.
    pub(crate) fn owes_answer(&self) -> bool {
        self.line().cancel.is_some()
    }

    /// What was written is sent. Whether that was all that is owed.
    pub(crate) fn has_answered(&self) -> bool {
        self.progress.phase() != Phase::Serving && self.line().cancel.take().is_some()
    }

    /// The client says nothing more; whether it still listens is not known.
    pub(crate) fn falls_silent(&self) {
        let mut line = self.line();
        line.is_silent = true;
        if let Some(cancel) = &line.cancel {
            cancel.cancel(Reason::Silent);
        }
    }

    pub(crate) fn api(&self) -> &Api {
        &self.host.api
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn bodies(&self) -> &AtomicUsize {
        &self.host.bodies
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    pub(crate) fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }

    pub(crate) fn way(&self) -> Way {
        self.way
    }

    /// Refuses every request of a connection that should have been encrypted. Of the
    /// server's health anybody may know.
    pub(crate) fn check_secure(&self) -> Result<()> {
        let served = self.host.clear_text == ClearText::Served || self.way.health;
        if self.way.secure || served {
            return Ok(());
        }
        Err(Error::bad_request("This server does not take clear text: use https."))
    }

    /// Refuses a request that calls us by a name that is not ours. Those who only ask for
    /// the server's health, by an address of their own, need not know any.
    pub(crate) fn check_name(&self, uri: &Uri, headers: &HeaderMap) -> Result<()> {
        match &self.host.hosts {
            Some(hosts) if !self.way.health => hosts.check(uri, headers),
            _ => Ok(()),
        }
    }

    /// Whether there is nothing more to come on an HTTP/2 connection. Other
    /// refusals end a stream and leave the connection.
    pub(crate) fn is_over(&self) -> bool {
        self.has_refused() && self.check_secure().is_err()
    }

    /// The answer that says `error` to a request with the head `of`, if there is one; the
    /// connection ends after it.
    pub(crate) fn refuse(&self, error: Error, of: Option<&Parts>) -> Response<Pieces> {
        self.refused.store(true, Ordering::Relaxed);
        if error.kind == ErrorKind::TooLarge {
            self.comes_more.store(true, Ordering::Relaxed);
        }
        self.host.api.refuse(error, of)
    }

    /// What the connection does after its refusal, until the client is done.
    pub(crate) fn farewell(&self) -> Phase {
        if self.comes_more.load(Ordering::Relaxed) { Phase::Draining } else { Phase::Lingering }
    }

    pub(crate) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// [`Visit::refuse`] as bytes, for when there is no request to answer.
    pub(crate) fn raw_refusal(&self, error: Error) -> Bytes {
        let response = self.refuse(error, None);
        let status = response.status();
        let reason = status.canonical_reason().unwrap_or_default();
        let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
        for (name, value) in response.headers() {
            if name != http::header::CONTENT_LENGTH {
                bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
            }
        }
        let length = response.body().len();
        bytes.extend(format!("content-length: {length}\r\nconnection: close\r\n\r\n").bytes());
        bytes.extend(response.body().to_vec());
        bytes.into()
    }
}

/// Whether a client is on this machine. The address of its end cannot be made up: the
/// answers would go there.
fn is_local(stream: &TcpStream) -> bool {
    stream.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback())
}
