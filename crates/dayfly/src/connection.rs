//! One connection: what it speaks, and its life until it is closed.
//!
//! ```text
//! first byte 0x16      TLS ── ALPN h2 ──────► HTTP/2
//!                       └──── else ─────────► HTTP/1.1
//! `PRI * HTTP/2.0...`  clear text ──────────► HTTP/2
//! anything else        clear text ──────────► HTTP/1.1
//! ```
//!
//! Nobody waits for a client without a limit: not for its first byte, not for
//! the byte after a `P`, not for its handshake, and later not in any phase of
//! [`Progress`]. Most connections are idle most of the time: what each kind needs
//! is in a box, so that none takes the memory of the largest.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::Poll;

use bytes::Bytes;
use dayfly_api::{Api, Cancel, Pieces, Protocol, Reason, Way};
use dayfly_model::{Error, ErrorKind, Result};
use http::request::Parts;
use http::{HeaderMap, Response, Uri};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::answers::{Answers, Reader};
use crate::config::ClearText;
use crate::hosts::Hosts;
use crate::limits::{HEAD_BYTES_MAX, Limits, STREAMS_MAX};
use crate::listen::{Door, Guest};
use crate::progress::{Phase, Progress};
use crate::request::answer;
use crate::wire::{Replayed, Watched};

/// What an HTTP/2 client that knows its server sends first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// The most hyper reads ahead on one connection.
const READ_AHEAD_BYTES_MAX: usize = 2 * HEAD_BYTES_MAX;

/// What all connections share.
pub(crate) struct Host {
    pub(crate) api: Api,
    pub(crate) tls: RwLock<TlsAcceptor>,
    pub(crate) clear_text: ClearText,
    /// How a server of this machine may be called; another is called as one likes.
    pub(crate) hosts: Option<Hosts>,
    /// Whether whoever comes counts as one of this machine.
    pub(crate) all_local: bool,
    pub(crate) limits: Limits,
    /// Bytes of bodies held at this moment.
    pub(crate) bodies: AtomicUsize,
    /// What clients have not taken yet.
    pub(crate) answers: Arc<Answers>,
}

impl Host {
    fn tls(&self) -> TlsAcceptor {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on handshakes are done with this.
    pub(crate) fn set_tls(&self, acceptor: TlsAcceptor) {
        *self.tls.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
    }

    /// The way that the requests of a connection take, before any TLS.
    fn way(&self, stream: &TcpStream, door: Door) -> Way {
        let local = self.all_local || is_local(stream);
        Way { secure: false, local, health: door == Door::Health }
    }
}

/// One connection, as its requests see it.
pub(crate) struct Visit {
    host: Arc<Host>,
    way: Way,
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
    fn new(host: &Arc<Host>, way: Way) -> Arc<Visit> {
        Arc::new(Visit {
            host: Arc::clone(host),
            way,
            progress: Progress::new(host.limits),
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
        &self.host.limits
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
    fn is_over(&self) -> bool {
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

/// Serves a connection until it is closed. Its failures concern nobody else
/// and are not worth more than a line for whoever looks for them.
pub(crate) async fn serve(stream: TcpStream, door: Door, host: Arc<Host>, mut guest: Guest) {
    let way = host.way(&stream, door);
    let Some(opening) = guest.unless_stopping(open(stream, &host, way)).await else { return };
    match opening {
        Ok(Opening::Http1(stream)) => {
            Box::pin(http1(stream, Visit::new(&host, way), guest)).await;
        }
        Ok(Opening::Http2(stream)) => {
            Box::pin(http2(stream, Visit::new(&host, way), guest)).await;
        }
        Ok(Opening::Tls(stream)) => Box::pin(tls(stream, &host, way, guest)).await,
        Err(error) => tracing::debug!(%error, "a connection ended before its first request"),
    }
}

/// Whether a client is on this machine. The address of its end cannot be made up: the
/// answers would go there.
fn is_local(stream: &TcpStream) -> bool {
    stream.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback())
}

/// What a client speaks, by its first bytes.
enum Opening {
    Tls(TcpStream),
    Http1(Replayed<TcpStream>),
    Http2(Replayed<TcpStream>),
}

async fn open(mut stream: TcpStream, host: &Arc<Host>, way: Way) -> io::Result<Opening> {
    let mut first = [0; PREFACE.len()];
    let mut count = 0;
    let sniffing = sniff(&mut stream, &mut first, &mut count);
    let outcome = timeout(host.limits.header_timeout(), sniffing).await;
    let read = Bytes::copy_from_slice(first.get(..count).unwrap_or_default());
    match outcome {
        Ok(Ok(Spoken::Tls)) => Ok(Opening::Tls(stream)),
        Ok(Ok(Spoken::Http1)) => Ok(Opening::Http1(Replayed::new(read, stream))),
        Ok(Ok(Spoken::Http2)) => Ok(Opening::Http2(Replayed::new(read, stream))),
        Ok(Err(error)) => Err(error),
        Err(late) => {
            if count > 0 {
                say_too_slow(&mut stream, host, way).await?;
            }
            Err(late.into())
        }
    }
}

enum Spoken {
    Tls,
    Http1,
    Http2,
}

/// Reads until the bytes are, or can no longer be, the preface of HTTP/2.
async fn sniff(
    stream: &mut TcpStream,
    first: &mut [u8; PREFACE.len()],
    count: &mut usize,
) -> io::Result<Spoken> {
    let mut byte = [0];
    if stream.peek(&mut byte).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if byte == [TLS_HANDSHAKE] {
        return Ok(Spoken::Tls);
    }
    while let Some(space) = first.get_mut(*count..)
        && !space.is_empty()
    {
        match stream.read(space).await? {
            0 => return Ok(Spoken::Http1),
            read => *count += read,
        }
        if !first.get(..*count).is_some_and(|read| PREFACE.starts_with(read)) {
            return Ok(Spoken::Http1);
        }
    }
    Ok(Spoken::Http2)
}

/// A client that began in clear text and stopped learns why it is closed.
async fn say_too_slow(stream: &mut TcpStream, host: &Arc<Host>, way: Way) -> io::Result<()> {
    let refusal = Visit::new(host, way).raw_refusal(too_slow());
    timeout(host.limits.linger_timeout(), stream.write_all(&refusal)).await?
}

fn too_slow() -> Error {
    Error::new(ErrorKind::RequestTimeout, "The head of the request did not come in time.")
}

async fn tls(stream: TcpStream, host: &Arc<Host>, way: Way, mut guest: Guest) {
    let handshake = timeout(host.limits.header_timeout(), host.tls().accept(stream));
    match guest.unless_stopping(handshake).await {
        Some(Ok(Ok(stream))) => {
            let visit = Visit::new(host, Way { secure: true, ..way });
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                Box::pin(http2(stream, visit, guest)).await;
            } else {
                Box::pin(http1(stream, visit, guest)).await;
            }
        }
        Some(Ok(Err(error))) => tracing::debug!(%error, "a TLS handshake failed"),
        Some(Err(_late)) => tracing::debug!("a TLS handshake took too long"),
        None => {}
    }
}

/// How an HTTP/1 connection ended, when there is still something to say.
enum End {
    Closed,
    Broken(Error),
}

async fn http1<S>(stream: S, visit: Arc<Visit>, mut guest: Guest)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    guest.speaks(if visit.way().secure { Protocol::TlsHttp1 } else { Protocol::Http1 });
    let service = {
        let visit = Arc::clone(&visit);
        service_fn(move |request| answer(Arc::clone(&visit), request))
    };
    let mut connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(READ_AHEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Watched::new(stream, Arc::clone(&visit))), service);
    let mut alarm = pin!(visit.progress().alarm());
    let mut told = false;
    let end = poll_fn(|cx| {
        if visit.reader().is_cut_off(cx) {
            return Poll::Ready(End::Closed);
        }
        if guest.stopping(cx) && !told {
            told = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        if let Poll::Ready(outcome) = Pin::new(&mut connection).poll(cx) {
            return Poll::Ready(match outcome {
                Err(error) if error.is_incomplete_message() => {
                    broken(&visit, Error::bad_request("The head of the request broke off."))
                }
                _ => End::Closed,
            });
        }
        visit.progress().poll_overdue(alarm.as_mut(), cx).map(|()| broken(&visit, too_slow()))
    })
    .await;
    if let End::Broken(error) = end {
        let mut wire = connection.into_parts().io.into_inner();
        wire.refuse(error);
        // The client may be gone, or not take this either.
        let _ = timeout(visit.limits().linger_timeout(), wire.shutdown()).await;
    }
}

/// A request that was begun deserves an answer; a silence does not.
fn broken(visit: &Visit, error: Error) -> End {
    match visit.progress().phase() {
        Phase::Head if !visit.has_refused() => End::Broken(error),
        _ => End::Closed,
    }
}

async fn http2<S>(stream: S, visit: Arc<Visit>, mut guest: Guest)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    guest.speaks(if visit.way().secure { Protocol::TlsHttp2 } else { Protocol::Http2 });
    let service = {
        let visit = Arc::clone(&visit);
        service_fn(move |request| answer(Arc::clone(&visit), request))
    };
    let limits = visit.limits();
    let mut connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(20)
        .max_local_error_reset_streams(100)
        .keep_alive_interval(limits.ping_timeout())
        .keep_alive_timeout(limits.ping_timeout())
        .serve_connection(TokioIo::new(stream), service);
    let mut alarm = pin!(visit.progress().alarm());
    let mut told = false;
    let overdue = poll_fn(|cx| {
        if visit.reader().is_cut_off(cx) {
            return Poll::Ready(false);
        }
        loop {
            if Pin::new(&mut connection).poll(cx).is_ready() {
                return Poll::Ready(false);
            }
            if told || !(guest.stopping(cx) || visit.is_over()) {
                break;
            }
            told = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        visit.progress().poll_overdue(alarm.as_mut(), cx).map(|()| true)
    })
    .await;
    if overdue {
        Pin::new(&mut connection).graceful_shutdown();
        // Whoever does not go now is cut off.
        let _ = timeout(limits.linger_timeout(), connection).await;
    }
}
