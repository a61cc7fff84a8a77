//! One connection: what it speaks, and its life until it is closed.
//!
//! ```text
//! first byte 0x16      TLS ── ALPN h2 ──────► HTTP/2
//!                       ├──── a greeting ────► direct mode
//!                       └──── else ─────────► HTTP/1.1
//! `PRI * HTTP/2.0...`  clear text ──────────► HTTP/2
//! anything else        clear text ──────────► HTTP/1.1
//! ```
//!
//! Nobody waits for a client without a limit: not for its first byte, not for
//! the byte after a `P`, not for its handshake, and later not in any phase of
//! [`Progress`](crate::progress::Progress). Most connections are idle most of the time:
//! what each kind needs is in a box, so that none takes the memory of the largest.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use dayfly_api::direct::{GREETING_SIGN_BYTES, is_greeting};
use dayfly_api::{Protocol, Way};
use dayfly_model::{Error, ErrorKind};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use crate::direct::direct;
use crate::house::{Door, Guest};
use crate::limits::{HEAD_BYTES_MAX, STREAMS_MAX};
use crate::progress::Phase;
use crate::request::answer;
use crate::visit::{Host, Visit};
use crate::wire::{Replayed, Watched};

/// What an HTTP/2 client that knows its server sends first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// The most hyper reads ahead on one connection.
const READ_AHEAD_BYTES_MAX: usize = 2 * HEAD_BYTES_MAX;

/// Serves a connection until it is closed. Its failures concern nobody else
/// and are not worth more than a line for whoever looks for them.
pub(crate) async fn serve(stream: TcpStream, door: Door, host: Arc<Host>, mut guest: Guest) {
    let way = host.way_of(&stream, door);
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
async fn say_too_slow<S>(stream: &mut S, host: &Arc<Host>, way: Way) -> io::Result<()>
where
    S: AsyncWrite + Unpin,
{
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
            let way = Way { secure: true, ..way };
            match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => Box::pin(http2(stream, Visit::new(host, way), guest)).await,
                None if host.direct && !way.health => {
                    Box::pin(http1_or_direct(stream, host, way, guest)).await;
                }
                _ => Box::pin(http1(stream, Visit::new(host, way), guest)).await,
            }
        }
        Some(Ok(Err(error))) => tracing::debug!(%error, "a TLS handshake failed"),
        Some(Err(_late)) => tracing::debug!("a TLS handshake took too long"),
        None => {}
    }
}

/// Serves a client that did not say what it speaks: one in direct mode greets first.
async fn http1_or_direct(
    mut stream: TlsStream<TcpStream>,
    host: &Arc<Host>,
    way: Way,
    mut guest: Guest,
) {
    let (mut first, mut count) = ([0; GREETING_SIGN_BYTES], 0);
    let sniffing = sniff_greeting(&mut stream, &mut first, &mut count);
    let sniffed = guest.unless_stopping(timeout(host.limits.header_timeout(), sniffing)).await;
    let read = Bytes::copy_from_slice(first.get(..count).unwrap_or_default());
    match sniffed {
        Some(Ok(Ok(true))) => {
            let stream = Replayed::new(read, stream);
            Box::pin(direct(stream, Visit::direct(host, way), guest)).await;
        }
        Some(Ok(Ok(false))) => {
            Box::pin(http1(Replayed::new(read, stream), Visit::new(host, way), guest)).await;
        }
        Some(Err(_late)) if count > 0 => {
            if let Err(error) = say_too_slow(&mut stream, host, way).await {
                tracing::debug!(%error, "a client that was too slow did not want to know it");
            }
        }
        _ => tracing::debug!("a connection ended before its first request"),
    }
}

/// Reads until the bytes are, or can no longer be, the beginning of a greeting.
async fn sniff_greeting<S>(
    stream: &mut S,
    first: &mut [u8; GREETING_SIGN_BYTES],
    count: &mut usize,
) -> io::Result<bool>
where
    S: AsyncRead + Unpin,
{
    while let Some(space) = first.get_mut(*count..)
        && !space.is_empty()
    {
        match stream.read(space).await? {
            0 if *count == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            0 => return Ok(false),
            read => *count += read,
        }
        // The bytes that have not come are still those of a greeting.
        if !is_greeting(first) {
            return Ok(false);
        }
    }
    Ok(true)
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
