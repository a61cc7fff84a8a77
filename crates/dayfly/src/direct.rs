//! A connection in direct mode: frames come in, answers go out, in any order.
//!
//! ```text
//! socket ──► inbox ──► Api::begin ──► outbox ──► socket
//!            a frame       │            ▲
//!            at a time     └► working ──┘   what has to wait, for a sync or a thread
//! ```
//!
//! All of it is one task: what is answered at once, as a read is, changes no hands. It
//! reads no further while too many requests are at work or too much is not taken, so a
//! client has as much of the server as one of HTTP. When the server stops, or when what
//! comes makes no sense any more, no further frame is begun, what is at work is answered,
//! and the connection is closed: our side first, and the other when the client has closed
//! its own, or soon. There is no word for goodbye.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use dayfly_api::direct::{Begun, Framed, Later, Sender};
use dayfly_api::{Cancel, Pieces, Protocol};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::answers::Outgoing;
use crate::house::Guest;
use crate::inbox::{Arrived, Bodies, Inbox, InboxEnd};
use crate::limits::REQUESTS_MAX;
use crate::progress::Phase;
use crate::request::{Counted, caught, failed, until_late};
use crate::visit::Visit;
use crate::wire::{Records, poll_discard};

/// How many bytes go into one record of TLS.
const RECORD_BYTES_MAX: usize = 16 * 1024;

/// With so many bytes of answers that are not taken, no further request is read.
const OWED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Serves a connection that began with a greeting, until it is closed.
pub(crate) async fn direct<S>(mut stream: S, visit: Arc<Visit>, mut guest: Guest)
where
    S: AsyncRead + AsyncWrite + Records + Unpin + Send + 'static,
{
    guest.speaks(Protocol::Direct);
    let mut line = Conversation {
        inbox: Inbox::default(),
        working: FuturesUnordered::new(),
        outbox: Outbox::default(),
        has_begun: false,
        is_ending: false,
        visit: Arc::clone(&visit),
    };
    let mut alarm = pin!(visit.progress().alarm());
    poll_fn(|cx| {
        if visit.reader().is_cut_off(cx) {
            return Poll::Ready(());
        }
        if guest.stopping(cx) {
            line.is_ending = true;
        }
        if line.poll(&mut stream, cx).is_ready() {
            return Poll::Ready(());
        }
        visit.progress().poll_overdue(alarm.as_mut(), cx)
    })
    .await;
    // What is still at work is not waited for any more.
    drop(line);
    let _ = timeout(visit.limits().linger_timeout(), close(stream)).await;
}

/// Says that nothing more comes, and reads on until the client has closed its side, too:
/// a socket that is closed with unread bytes takes its last answers back.
async fn close<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    if poll_fn(|cx| Pin::new(&mut stream).poll_shutdown(cx)).await.is_ok() {
        let mut discarded = 0;
        let _ = poll_fn(|cx| poll_discard(&mut stream, &mut discarded, cx)).await;
    }
}

type Work = Pin<Box<dyn Future<Output = Framed> + Send>>;

/// The requests of one connection.
struct Conversation {
    inbox: Inbox,
    working: FuturesUnordered<Work>,
    outbox: Outbox,
    /// A request came since that was asked.
    has_begun: bool,
    /// No further frame is read.
    is_ending: bool,
    visit: Arc<Visit>,
}

impl Conversation {
    /// Goes on as far as it goes. Ready when the connection is at its end.
    fn poll<S>(&mut self, stream: &mut S, cx: &mut Context<'_>) -> Poll<()>
    where
        S: AsyncRead + AsyncWrite + Records + Unpin,
    {
        loop {
            let mut has_moved = false;
            while !self.is_ending && !self.is_full() {
                match self.inbox.poll(stream, &self.visit, cx) {
                    Poll::Pending => break,
                    Poll::Ready(Ok(arrived)) => self.begin(arrived),
                    Poll::Ready(Err(InboxEnd::Closed)) => return Poll::Ready(()),
                    Poll::Ready(Err(InboxEnd::Senseless)) => {
                        tracing::debug!("a frame made no sense; its connection is closed");
                        self.is_ending = true;
                    }
                }
                has_moved = true;
            }
            while let Poll::Ready(Some(framed)) = self.working.poll_next_unpin(cx) {
                self.outbox.push(&self.visit, framed);
                has_moved = true;
            }
            let was_full = self.is_full();
            if let Poll::Ready(Err(_)) = self.outbox.poll_write(stream, cx) {
                return Poll::Ready(());
            }
            // Nobody else would say that there is room for more.
            has_moved |= was_full && !self.is_full();
            if self.is_ending && self.working.is_empty() && self.outbox.is_empty() {
                return Poll::Ready(());
            }
            if !has_moved {
                self.tell_progress();
                return Poll::Pending;
            }
        }
    }

    /// Whether so much is at work, or not taken, that no more is begun.
    fn is_full(&self) -> bool {
        self.working.len() + self.outbox.answers.len() >= REQUESTS_MAX
            || self.outbox.bytes >= OWED_BYTES_MAX
    }

    fn begin(&mut self, arrived: Arrived) {
        self.has_begun = true;
        let (call, body, counted) = match arrived {
            Arrived::Greeting(answer) => {
                return self
                    .outbox
                    .push(&self.visit, Framed { head: answer, body: Pieces::default() });
            }
            Arrived::Request(call, body, counted) => (call, body, counted),
        };
        let (sender, cancel) = (call.sender(), Cancel::default());
        let api = self.visit.api();
        let begun = catch_unwind(AssertUnwindSafe(|| api.begin(*call, &body, cancel.clone())));
        match begun {
            Ok(Begun::Done(framed)) => self.outbox.push(&self.visit, framed),
            Ok(Begun::Later(later)) => {
                let visit = Arc::clone(&self.visit);
                self.working.push(Box::pin(finish(visit, later, sender, cancel, counted)));
            }
            Err(_) => {
                let framed = api.fail(sender, failed());
                self.outbox.push(&self.visit, framed);
            }
        }
    }

    /// Says what the connection waits for, so that it does not for too long.
    fn tell_progress(&mut self) {
        let is_ready = self.outbox.is_empty() && !self.is_full() && !self.is_ending;
        let phase = match self.inbox.waits_for() {
            _ if !self.outbox.is_empty() => Phase::Stalled,
            Some(phase) if is_ready => phase,
            _ if !self.working.is_empty() => Phase::Serving,
            _ => Phase::Idle,
        };
        let has_moved = self.inbox.has_moved() | std::mem::take(&mut self.outbox.has_moved);
        // What is answered at once leaves no phase: between two looks there may have been many.
        let has_begun = std::mem::take(&mut self.has_begun);
        let is_by_piece = matches!(phase, Phase::Body | Phase::Stalled);
        let progress = self.visit.progress();
        if phase != progress.phase() || has_begun || (has_moved && is_by_piece) {
            progress.enter(phase);
        }
    }
}

/// Waits for the answer of a request. A panic in there ends the request, not the
/// connection.
async fn finish(
    visit: Arc<Visit>,
    later: Later,
    sender: Sender,
    cancel: Cancel,
    counted: Counted<Bodies>,
) -> Framed {
    let finishing = caught(visit.api().finish(later));
    let framed = until_late(finishing, &cancel, visit.limits()).await;
    drop(counted);
    framed.unwrap_or_else(|| visit.api().fail(sender, failed()))
}

/// Answers on their way to the socket.
#[derive(Default)]
struct Outbox {
    answers: VecDeque<(Bytes, Outgoing)>,
    /// How many bytes they have.
    bytes: usize,
    /// What was written may not be on its way yet.
    is_unsent: bool,
    /// The client has taken something since that was asked.
    has_moved: bool,
}

thread_local! {
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Outbox {
    fn push(&mut self, visit: &Visit, Framed { head, body }: Framed) {
        self.bytes += head.len() + body.len();
        self.answers.push_back((head.into(), visit.reader().take(body)));
    }

    fn is_empty(&self) -> bool {
        self.answers.is_empty() && !self.is_unsent
    }

    /// Writes until nothing is left. No record has bytes of two answers: Java's client
    /// reads what an answer says when it is asked for, out of the bytes of the record, and
    /// gives those back with the first answer in it.
    fn poll_write<S>(&mut self, stream: &mut S, cx: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        S: AsyncWrite + Records + Unpin,
    {
        while !self.is_empty() {
            while !self.answers.is_empty() {
                match self.put_record(stream)? {
                    0 if self.is_unsent => break,
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    count => self.advance(count),
                }
            }
            ready!(Pin::new(&mut *stream).poll_flush(cx))?;
            self.is_unsent = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Makes a record of the first answer, or of what is left of it.
    fn put_record(&self, stream: &mut impl Records) -> io::Result<usize> {
        let Some((head, body)) = self.answers.front() else { return Ok(0) };
        RECORD.with_borrow_mut(|record| {
            record.clear();
            for piece in std::iter::once(&head[..]).chain(body.pieces()) {
                let room = RECORD_BYTES_MAX - record.len();
                record.extend_from_slice(piece.get(..room).unwrap_or(piece));
            }
            stream.put_record(record)
        })
    }

    /// So many bytes were written.
    fn advance(&mut self, mut count: usize) {
        (self.is_unsent, self.has_moved) = (true, true);
        self.bytes -= count;
        while let Some((head, body)) = self.answers.front_mut() {
            let of_head = count.min(head.len());
            head.advance(of_head);
            count -= of_head;
            let of_body = count.min(body.remaining());
            body.advance(of_body);
            count -= of_body;
            if head.has_remaining() || body.has_remaining() {
                break;
            }
            self.answers.pop_front();
        }
    }
}
