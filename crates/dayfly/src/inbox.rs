//! Frames as they come in: a greeting, then requests, each with its body.
//!
//! One read is not one frame: .NET sends heads and bodies apart, and several small frames
//! may come together. What is refused by its head is answered at once, and its body read
//! and dropped: a connection that is closed with unread bytes loses the answer.

use std::cell::RefCell;
use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use dayfly_api::direct::{DirectClient, FIXED_BYTES, FrameCall, Malformed, head_bytes};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

use crate::limits::{BODY_BYTES_MAX, LINGER_BYTES_MAX};
use crate::progress::Phase;
use crate::request::{Counted, too_large};
use crate::visit::Visit;

/// How much is read at a time. What is held beyond it counts as a body does.
const READ_BYTES: usize = 16 * 1024;

/// How many bytes say how long what follows is.
const LENGTH_BYTES: usize = 4;

/// What came in.
pub(crate) enum Arrived {
    /// A client, and what it is answered.
    Greeting(Vec<u8>),
    /// A request, with its body and what that takes of what all bodies may.
    Request(Box<FrameCall>, Bytes, Counted<Bodies>),
}

/// Why nothing more comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InboxEnd {
    /// The client has closed the connection, or is not to be waited for.
    Closed,
    /// What comes cannot be read.
    Senseless,
}

impl From<Malformed> for InboxEnd {
    fn from(_: Malformed) -> Self {
        InboxEnd::Senseless
    }
}

/// What all bodies of all connections come to.
#[derive(Clone)]
pub(crate) struct Bodies(Arc<Visit>);

impl Deref for Bodies {
    type Target = AtomicUsize;

    fn deref(&self) -> &AtomicUsize {
        self.0.bodies()
    }
}

/// What of a frame is on its way.
#[derive(Default)]
enum Next {
    #[default]
    Head,
    /// The length of a body, and the body.
    BodyOf(Box<FrameCall>),
    Body {
        call: Box<FrameCall>,
        body: BytesMut,
        missing: usize,
        counted: Counted<Bodies>,
        since: Instant,
    },
    /// A body that nobody wants.
    Nothing { missing: usize },
}

/// The frames of one connection.
#[derive(Default)]
pub(crate) struct Inbox {
    client: Option<DirectClient>,
    read: BytesMut,
    /// What `read` takes of what all bodies may.
    counted: Option<Counted<Bodies>>,
    next: Next,
    has_moved: bool,
}

thread_local! {
    static SPACE: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

impl Inbox {
    /// The next thing that comes in.
    pub(crate) fn poll<S>(
        &mut self,
        stream: &mut S,
        visit: &Arc<Visit>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Arrived, InboxEnd>>
    where
        S: AsyncRead + Unpin,
    {
        loop {
            if let Some(arrived) = self.take(visit)? {
                return Poll::Ready(Ok(arrived));
            }
            self.count_read(visit)?;
            if ready!(self.poll_read(stream, cx)).is_err() {
                return Poll::Ready(Err(InboxEnd::Closed));
            }
        }
    }

    /// Takes for a large head from what all bodies may, and gives it back. It belongs to
    /// nobody who has shown a key, so without room for it the connection ends.
    fn count_read(&mut self, visit: &Arc<Visit>) -> Result<(), InboxEnd> {
        let beyond = self.read.len().saturating_sub(READ_BYTES);
        if beyond == 0 {
            self.counted = None;
            return Ok(());
        }
        let bodies = || Counted::none(Bodies(Arc::clone(visit)));
        let counted = self.counted.get_or_insert_with(bodies);
        counted.add(beyond.saturating_sub(counted.bytes())).map_err(|_| InboxEnd::Closed)
    }

    /// Reads some bytes. Until there are any, an idle connection holds none.
    fn poll_read<S>(&mut self, stream: &mut S, cx: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        S: AsyncRead + Unpin,
    {
        if self.read.is_empty() {
            self.read = BytesMut::new();
        }
        SPACE.with_borrow_mut(|space| {
            let mut buffer = ReadBuf::new(space);
            ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            self.has_moved = true;
            self.read.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(()))
        })
    }

    /// What is there whole.
    fn take(&mut self, visit: &Arc<Visit>) -> Result<Option<Arrived>, InboxEnd> {
        loop {
            match std::mem::take(&mut self.next) {
                Next::Head => {
                    let Some(head) = self.head()? else { return Ok(None) };
                    let Some(client) = &self.client else {
                        let (client, answer) = DirectClient::greet(head)?;
                        self.client = Some(client);
                        return Ok(Some(Arrived::Greeting(answer)));
                    };
                    let call = Box::new(visit.api().call(head, client)?);
                    if !call.has_body() {
                        let counted = Counted::none(Bodies(Arc::clone(visit)));
                        return Ok(Some(Arrived::Request(call, Bytes::new(), counted)));
                    }
                    self.next = Next::BodyOf(call);
                }
                Next::BodyOf(call) => {
                    let Some(length) = self.length() else {
                        self.next = Next::BodyOf(call);
                        return Ok(None);
                    };
                    self.read.advance(LENGTH_BYTES);
                    if let Some(arrived) = self.begin_body(call, length, visit)? {
                        return Ok(Some(arrived));
                    }
                }
                Next::Body { call, mut body, missing, counted, since } => {
                    let piece = self.read.split_to(missing.min(self.read.len()));
                    let missing = missing - piece.len();
                    body.extend_from_slice(&piece);
                    if missing == 0 {
                        return Ok(Some(Arrived::Request(call, body.freeze(), counted)));
                    }
                    self.next = Next::Body { call, body, missing, counted, since };
                    let is_late = since.elapsed() > visit.limits().body_timeout();
                    return if is_late { Err(InboxEnd::Closed) } else { Ok(None) };
                }
                Next::Nothing { missing } => {
                    let dropped = missing.min(self.read.len());
                    self.read.advance(dropped);
                    if missing > dropped {
                        self.next = Next::Nothing { missing: missing - dropped };
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// A whole head of a frame.
    fn head(&mut self) -> Result<Option<Bytes>, InboxEnd> {
        let Some(first) = self.read.first_chunk() else { return Ok(None) };
        let bytes = head_bytes(*first)?;
        if self.read.len() < bytes {
            return Ok(None);
        }
        debug_assert!(bytes >= FIXED_BYTES);
        Ok(Some(self.read.split_to(bytes).freeze()))
    }

    fn length(&self) -> Option<usize> {
        let length = u32::from_le_bytes(*self.read.first_chunk::<LENGTH_BYTES>()?);
        usize::try_from(length).ok()
    }

    /// Begins with the body of a request; one that is there already comes without a copy.
    fn begin_body(
        &mut self,
        call: Box<FrameCall>,
        length: usize,
        visit: &Arc<Visit>,
    ) -> Result<Option<Arrived>, InboxEnd> {
        let mut counted = Counted::none(Bodies(Arc::clone(visit)));
        let is_here = self.read.len() >= length;
        let room = match length {
            _ if call.is_refused() => Ok(()),
            _ if length > BODY_BYTES_MAX => Err(too_large()),
            _ if is_here => Ok(()),
            _ => counted.add(length),
        };
        let call = match room {
            Ok(()) => call,
            Err(error) => Box::new(call.refused(error)),
        };
        if call.is_refused() {
            if length > LINGER_BYTES_MAX {
                return Err(InboxEnd::Senseless);
            }
            self.next = Next::Nothing { missing: length };
            return Ok(Some(Arrived::Request(call, Bytes::new(), counted)));
        }
        if is_here {
            let body = self.read.split_to(length).freeze();
            return Ok(Some(Arrived::Request(call, body, counted)));
        }
        let (body, since) = (BytesMut::with_capacity(length), Instant::now());
        self.next = Next::Body { call, body, missing: length, counted, since };
        Ok(None)
    }

    /// What the rest of a frame is waited for, if one has begun.
    pub(crate) fn waits_for(&self) -> Option<Phase> {
        match self.next {
            Next::Head if self.read.is_empty() && self.client.is_some() => None,
            Next::Head => Some(Phase::Head),
            Next::BodyOf(_) | Next::Body { .. } => Some(Phase::Body),
            Next::Nothing { .. } => Some(Phase::Draining),
        }
    }

    /// Whether something came since this was asked.
    pub(crate) fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }
}
