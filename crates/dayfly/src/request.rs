//! One request: its body is read, within limits, and the rest is the API's.
//!
//! What is refused here never reached the API. The body of such a request is
//! not read, so the connection ends with the answer.

use std::convert::Infallible;
use std::future::poll_fn;
use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use dayfly_api::{Cancel, Events, Pieces, Reason};
use dayfly_model::{Error, ErrorKind, Result};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderValue, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Method, Request, Response, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant, sleep, timeout_at};

use crate::events::Sent;
use crate::limits::{BODIES_BYTES_MAX, BODY_BYTES_MAX, Limits, URL_BYTES_MAX};
use crate::visit::Visit;

/// Answers one request. Never fails: a failure is an answer too.
pub(crate) async fn answer(
    visit: Arc<Visit>,
    request: Request<Incoming>,
) -> Result<Response<Sent>, Infallible> {
    let only_head = request.method() == Method::HEAD;
    let mut response = respond(&visit, request).await;
    if only_head {
        leave_body_out(&mut response);
    }
    let events = response.extensions_mut().remove::<Events>();
    Ok(response.map(|body| match events {
        Some(events) if !only_head => Sent::lines(visit, events),
        _ => Sent::whole(visit.reader().take(body)),
    }))
}

async fn respond(visit: &Visit, request: Request<Incoming>) -> Response<Pieces> {
    let _serving = visit.progress().serving();
    let (parts, body) = request.into_parts();
    match receive(visit, &parts, body).await {
        Ok(body) => handle(visit, parts, body).await,
        Err(error) => {
            visit.expect_answer();
            refuse(visit, error, &parts)
        }
    }
}

/// A HEAD gets the head of the answer, with the length that the body would
/// have. hyper sees to that in HTTP/1.1 only.
fn leave_body_out(response: &mut Response<Pieces>) {
    let length = std::mem::take(response.body_mut()).len();
    if length > 0 {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
}

/// The body of a request that may pass on to the API.
async fn receive<'a>(visit: &'a Visit, parts: &Parts, body: Incoming) -> Result<Held<'a>> {
    visit.check_secure()?;
    check_head(parts)?;
    visit.check_name(&parts.uri, &parts.headers)?;
    if body.is_end_stream() {
        return Ok(Held { bytes: Bytes::new(), counted: Counted::none(visit.bodies()) });
    }
    let admission = Admission {
        // hyper says `100 Continue` when the body is first looked for.
        at_once: parts.headers.contains_key(EXPECT),
        ask: || visit.api().admit(parts, visit.way()),
    };
    read_body(body, visit.limits(), visit.bodies(), admission).await
}

/// What is wrong with the head of a request for HTTP itself.
fn check_head(parts: &Parts) -> Result<()> {
    let url_bytes = parts.uri.path_and_query().map_or(0, |path| path.as_str().len());
    if url_bytes > URL_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::HeaderTooLarge,
            format!("The URL has {url_bytes} bytes, more than {URL_BYTES_MAX}."),
        ));
    }
    check_host(parts)?;
    check_coding(parts)
}

/// Of two hosts nobody can tell which one counts, and who stands between might
/// take the other. HTTP/2 has a place of its own for it.
fn check_host(parts: &Parts) -> Result<()> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let first = hosts.next();
    if first.is_none() && parts.version == Version::HTTP_11 {
        return Err(Error::bad_request("An HTTP/1.1 request needs the header 'host'."));
    }
    if hosts.any(|host| Some(host) != first) {
        return Err(Error::bad_request("The header 'host' was sent twice, with different values."));
    }
    Ok(())
}

/// hyper takes off the last coding, and what it leaves would be taken for the
/// body.
fn check_coding(parts: &Parts) -> Result<()> {
    let mut codings = parts.headers.get_all(TRANSFER_ENCODING).iter();
    let chunked =
        |coding: &HeaderValue| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    if codings.next().is_none_or(chunked) && codings.next().is_none() {
        return Ok(());
    }
    Err(Error::not_yet("A transfer coding other than chunked, and that once,"))
}

/// Hands a request to the API. A panic in there ends the request, not the
/// connection, and the client learns that it was our fault.
async fn handle(visit: &Visit, parts: Parts, body: Held<'_>) -> Response<Pieces> {
    let cancel = visit.expect_answer();
    let incoming =
        dayfly_api::Incoming { parts, body: body.bytes, way: visit.way(), cancel: cancel.clone() };
    let handling = caught(visit.api().handle(incoming));
    let outcome = until_late(handling, &cancel, visit.limits()).await;
    drop(body.counted);
    outcome.unwrap_or_else(|| visit.api().refuse(failed(), None))
}

/// What `work` comes to; none if it panics.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Some),
        Err(_) => std::task::Poll::Ready(None),
    })
    .await
}

/// What the client learns of a panic.
pub(crate) fn failed() -> Error {
    Error::new(ErrorKind::Internal, "The server failed in this request.")
}

/// What `work` comes to. After a while `cancel` says that a page had better end, and when
/// that takes too long, that it has to see to its end itself. What is ready at once has no
/// timer.
pub(crate) async fn until_late<T>(
    work: impl Future<Output = T>,
    cancel: &Cancel,
    limits: &Limits,
) -> T {
    let late = limits.query_timeout().saturating_sub(limits.page_timeout());
    let mut waits = [limits.page_timeout(), late].into_iter().enumerate().peekable();
    let (mut work, mut timer) = (pin!(work), None);
    poll_fn(|cx| {
        let outcome = work.as_mut().poll(cx);
        while outcome.is_pending()
            && let Some((place, limit)) = waits.peek()
        {
            let waiting = timer.get_or_insert_with(|| Box::pin(sleep(*limit)));
            if waiting.as_mut().poll(cx).is_pending() {
                break;
            }
            match place {
                0 => cancel.hurry(),
                _ => cancel.cancel(Reason::Late),
            }
            timer = None;
            waits.next();
        }
        outcome
    })
    .await
}

fn refuse(visit: &Visit, error: Error, parts: &Parts) -> Response<Pieces> {
    let mut response = visit.refuse(error, Some(parts));
    if parts.version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether a request may send its body, and whether that is asked before any of
/// it is looked for.
struct Admission<F> {
    at_once: bool,
    ask: F,
}

/// A body, and its share of what all bodies may take.
struct Held<'a> {
    bytes: Bytes,
    counted: Counted<&'a AtomicUsize>,
}

async fn read_body<'a>(
    mut body: Incoming,
    limits: &Limits,
    bodies: &'a AtomicUsize,
    admission: Admission<impl Fn() -> Result<()>>,
) -> Result<Held<'a>> {
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > BODY_BYTES_MAX {
        return Err(too_large());
    }
    if admission.at_once {
        (admission.ask)()?;
    }
    let started = Instant::now();
    let mut counted = Counted::none(bodies);
    let Some(first) = next_piece(&mut body, started, limits).await? else {
        return Ok(Held { bytes: Bytes::new(), counted });
    };
    if first.len() <= BODY_BYTES_MAX && (first.len() == declared || body.is_end_stream()) {
        return Ok(Held { bytes: first, counted });
    }

    // Memory is kept only for somebody who has the key.
    if !admission.at_once {
        (admission.ask)()?;
    }
    let mut whole = BytesMut::with_capacity(declared.max(first.len()));
    let mut next = Some(first);
    while let Some(piece) = next {
        if whole.len() + piece.len() > BODY_BYTES_MAX {
            return Err(too_large());
        }
        counted.add(piece.len())?;
        whole.extend_from_slice(&piece);
        next = next_piece(&mut body, started, limits).await?;
    }
    Ok(Held { bytes: whole.freeze(), counted })
}

/// The next bytes of a body, or `None` at its end.
async fn next_piece(
    body: &mut Incoming,
    started: Instant,
    limits: &Limits,
) -> Result<Option<Bytes>> {
    loop {
        let deadline =
            (Instant::now() + limits.body_progress_timeout()).min(started + limits.body_timeout());
        match timeout_at(deadline, Pin::new(&mut *body).frame()).await {
            Err(_late) => return Err(too_slow()),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(Error::bad_request(BROKEN_BODY)),
            // Trailers say nothing that we read.
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(piece) if !piece.is_empty() => return Ok(Some(piece)),
                _ => {}
            },
        }
    }
}

const BROKEN_BODY: &str = "The body of the request broke off or is not well formed.";

pub(crate) fn too_large() -> Error {
    Error::new(
        ErrorKind::TooLarge,
        format!("Request size is too large: the limit is {BODY_BYTES_MAX} bytes."),
    )
}

fn too_slow() -> Error {
    Error::new(ErrorKind::RequestTimeout, "The body of the request did not come in time.")
}

/// Bytes taken from what all bodies together may hold, until dropped.
pub(crate) struct Counted<B: Deref<Target = AtomicUsize>> {
    bodies: B,
    bytes: usize,
}

impl<B: Deref<Target = AtomicUsize>> Counted<B> {
    pub(crate) fn none(bodies: B) -> Self {
        Counted { bodies, bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn add(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        let all = self.bodies.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if all <= BODIES_BYTES_MAX {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::ServiceUnavailable,
            "Too many large requests at one time; send it again later.",
        ))
    }
}

impl<B: Deref<Target = AtomicUsize>> Drop for Counted<B> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.bodies.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bodies_together_have_a_limit() {
        let bodies = AtomicUsize::new(0);
        let mut most = Counted::none(&bodies);
        most.add(BODIES_BYTES_MAX).unwrap();
        let refused = Counted::none(&bodies).add(1).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::ServiceUnavailable);

        drop(most);
        Counted::none(&bodies).add(1).unwrap();
        assert_eq!(bodies.load(Ordering::Relaxed), 0);
    }
}
