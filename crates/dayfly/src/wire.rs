//! The socket as hyper sees it: with the bytes we looked at put back, with its
//! progress told, and with answers of ours where hyper's are empty.

use std::cell::RefCell;
use std::io::{self, IoSlice, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf as _, Bytes};
use dayfly_model::{Error, ErrorKind};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::limits::{HEAD_BYTES_MAX, LINGER_BYTES_MAX};
use crate::progress::Phase;
use crate::visit::Visit;

/// How much is thrown away at a time.
const DISCARD_BYTES: usize = 4096;

/// What is not larger goes out in one piece: to copy it costs less than what the
/// system does for each of several, and TLS makes one record of it.
const GATHERED_BYTES_MAX: usize = 8 * 1024;

thread_local! {
    static GATHERED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A stream whose first bytes were read and are to be read again.
pub(crate) struct Replayed<S> {
    first: Bytes,
    stream: S,
}

impl<S> Replayed<S> {
    pub(crate) fn new(first: Bytes, stream: S) -> Self {
        Replayed { first, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Replayed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let count = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first.split_to(count));
        // With what has come after it, or hyper would take a second read for a
        // sign that it needs a larger buffer. What goes wrong here does so again.
        if buffer.remaining() > 0 {
            let _ = Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Replayed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// What is written record by record, and sent with a flush: many with one call of the system.
pub(crate) trait Records {
    /// Makes a record of these bytes, or of the first of them. How many it took; none while
    /// too much is not sent.
    fn put_record(&mut self, bytes: &[u8]) -> io::Result<usize>;
}

impl Records for Replayed<TlsStream<TcpStream>> {
    fn put_record(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.get_mut().1.writer().write(bytes)
    }
}

/// An HTTP/1 connection that tells its progress.
///
/// hyper answers a head that it cannot read with a bare status. Such an answer
/// is known by its time and its form: it is written while no request is at work,
/// and it has no body, where each error of ours has one. It is swapped for one
/// with our headers and a JSON body. Two such answers stay bare, because we
/// do not see them: one that is written together with an answer before it, to
/// a client that does not keep up, and a head over the limit on HTTP/2, which
/// h2 answers itself with 431.
///
/// While a request is being answered, hyper looks whether the client is gone, and the
/// end of what it sends would be that. But who has nothing more to say may still want
/// the answer. So the end is told to the request, which may give up what takes long,
/// and hyper learns of it when the answer was sent. hyper may also look when a request
/// is whole and nobody has begun with it; so it always learns of the end one look late.
///
/// After a refusal the client may still be sending. A socket that is closed
/// with unread bytes is reset, and the answer is lost; so [`AsyncWrite::poll_shutdown`]
/// then reads on for a moment.
pub(crate) struct Watched<S> {
    stream: S,
    visit: Arc<Visit>,
    /// What goes out before anything else.
    refusal: Bytes,
    sent_end: bool,
    discarded: usize,
    /// The client has sent its last byte.
    is_silent: bool,
    /// Who is to be woken when hyper may learn of it.
    woken: Option<Waker>,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S, visit: Arc<Visit>) -> Self {
        Watched {
            stream,
            visit,
            refusal: Bytes::new(),
            sent_end: false,
            discarded: 0,
            is_silent: false,
            woken: None,
        }
    }

    /// Says `error` instead of what hyper would have said, and nothing after it.
    pub(crate) fn refuse(&mut self, error: Error) {
        self.refusal = self.visit.raw_refusal(error);
    }

    fn swap(&mut self, bytes: &[u8]) -> bool {
        // A head that came along with the request before it was read while we
        // were at work, and nobody saw it come.
        if !matches!(self.visit.progress().phase(), Phase::Head | Phase::Idle) {
            return false;
        }
        let Some(error) = hypers_refusal(bytes) else { return false };
        self.refuse(error);
        true
    }

    fn note_write(&self, outcome: &Poll<io::Result<usize>>) {
        let progress = self.visit.progress();
        match (outcome, progress.phase()) {
            (Poll::Pending, Phase::Idle) => progress.enter(Phase::Stalled),
            (Poll::Ready(_), Phase::Stalled) => progress.enter(Phase::Idle),
            _ => {}
        }
    }
}

/// What hyper means by an answer of its own.
fn hypers_refusal(bytes: &[u8]) -> Option<Error> {
    const EMPTY: &[u8] = b"\r\ncontent-length: 0\r\n";
    let status = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    if !bytes.ends_with(b"\r\n\r\n") || !bytes.windows(EMPTY.len()).any(|part| part == EMPTY) {
        return None;
    }
    match status {
        b"400" => Some(Error::bad_request("The request is not valid HTTP.")),
        b"414" | b"431" => Some(Error::new(
            ErrorKind::HeaderTooLarge,
            format!(
                "The request line and the headers are over the limit of {HEAD_BYTES_MAX} bytes \
                 or 100 headers."
            ),
        )),
        _ => None,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_silent {
            if self.visit.owes_answer() {
                self.visit.falls_silent();
                self.woken = Some(cx.waker().clone());
                return Poll::Pending;
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let room = buffer.remaining();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let is_end = matches!(outcome, Poll::Ready(Ok(()))) && buffer.filled().len() == before;
        if is_end && room > 0 {
            self.is_silent = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if buffer.filled().len() > before && self.visit.progress().phase() == Phase::Idle {
            self.visit.progress().enter(Phase::Head);
        }
        outcome
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Watched<S> {
    fn poll_refusal(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.refusal.is_empty() {
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.refusal))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.refusal.advance(count);
        }
        Poll::Ready(Ok(()))
    }
}

/// Throws away what still comes, until the client has closed its side or it was too much.
pub(crate) fn poll_discard<S: AsyncRead + Unpin>(
    stream: &mut S,
    discarded: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let mut space = [0; DISCARD_BYTES];
    while *discarded < LINGER_BYTES_MAX {
        let mut buffer = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer))?;
        if buffer.filled().is_empty() {
            break;
        }
        *discarded += buffer.filled().len();
    }
    Poll::Ready(Ok(()))
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.swap(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note_write(&outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [only] = slices
            && self.swap(only)
        {
            return Poll::Ready(Ok(only.len()));
        }
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        let outcome = if bytes <= GATHERED_BYTES_MAX {
            GATHERED.with_borrow_mut(|gathered| {
                gathered.clear();
                for slice in slices {
                    gathered.extend_from_slice(slice);
                }
                Pin::new(&mut self.stream).poll_write(cx, gathered)
            })
        } else {
            Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
        };
        self.note_write(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_refusal(cx))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        if self.visit.has_answered()
            && let Some(waker) = self.woken.take()
        {
            waker.wake();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_refusal(cx))?;
        if !self.sent_end {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.sent_end = true;
            if self.visit.has_refused() {
                self.visit.progress().enter(self.visit.farewell());
            }
        }
        if !self.visit.has_refused() {
            return Poll::Ready(Ok(()));
        }
        let Watched { stream, discarded, .. } = &mut *self;
        poll_discard(stream, discarded, cx)
    }
}
