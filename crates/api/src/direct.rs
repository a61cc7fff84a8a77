//! Direct mode: the frames that .NET and Java send over TLS unless told otherwise.
//!
//! ```text
//! token.rs    values, as bytes
//! frame.rs    the heads of frames, and the greeting
//! asked.rs    a frame as verb, path and options, by their meaning
//! answer.rs   a reply as tokens
//! ```
//!
//! It is the second door: beside `route`, `headers` and `reply`, which spell the same for
//! HTTP. What a frame asks for becomes the same operation, signed by the same rule, and is
//! counted and logged in the same place.

mod answer;
mod asked;
mod frame;
#[cfg(test)]
mod tests;
mod token;

use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use dayfly_engine::reply::Reply;
use dayfly_engine::{Answer, Caller, PendingAnswer};
use dayfly_model::{Error, Result};
use uuid::Uuid;

pub(crate) use self::answer::Fixed;
pub use self::answer::Framed;
use self::answer::ReturnTo;
use self::asked::AskedFrame;
use self::frame::Head;
pub use self::frame::{
    DirectClient, FIXED_BYTES, FRAME_HEAD_BYTES_MAX, GREETING_SIGN_BYTES, head_bytes, is_greeting,
};
pub use self::token::Malformed;
use crate::auth::SignedPath;
use crate::operation::Request;
use crate::requests::{self, About, Answered, Channel};
use crate::told::Exchange;
use crate::{Api, Cancel, instant, route};

/// A request that came as a frame, before its body.
pub struct FrameCall {
    asked: AskedFrame,
    /// Who signed it, unless nobody did.
    caller: Result<Caller>,
    started: Instant,
}

impl FrameCall {
    /// Whether a body follows.
    pub fn has_body(&self) -> bool {
        self.asked.has_body
    }

    /// Whether it is refused already, whatever its body.
    pub fn is_refused(&self) -> bool {
        self.caller.is_err()
    }

    /// The same request, refused.
    pub fn refused(self, error: Error) -> FrameCall {
        FrameCall { caller: self.caller.and(Err(error)), ..self }
    }

    /// Where its answer goes.
    pub fn sender(&self) -> Sender {
        Sender { activity: self.asked.activity(), transport_id: self.asked.transport_id }
    }
}

/// By which a client knows the answer to its request.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    activity: [u8; 16],
    transport_id: u32,
}

/// What a request came to so far.
pub enum Begun {
    /// Its answer.
    Done(Framed),
    /// Its answer comes later.
    Later(Later),
}

/// A request whose answer has not come yet.
pub struct Later {
    asked: AskedFrame,
    about: About,
    started: Instant,
    pending: PendingAnswer,
}

impl Api {
    /// Reads the head of a frame, and sees who signed it: memory is kept only for the body
    /// of somebody who has a key.
    pub fn call(&self, head: Bytes, client: &DirectClient) -> Result<FrameCall, Malformed> {
        let started = instant();
        let asked = AskedFrame::read(Head::read(head)?, client)?;
        let caller = self.frame_signer(&asked);
        Ok(FrameCall { asked, caller, started })
    }

    fn frame_signer(&self, asked: &AskedFrame) -> Result<Caller> {
        let segments = asked.segments()?;
        self.verify(asked.verb(), SignedPath { raw: None, segments: &segments }, asked)
    }

    /// Begins with a request. Never fails: a failure is an answer too.
    pub fn begin(&self, call: FrameCall, body: &Bytes, cancel: Cancel) -> Begun {
        let FrameCall { asked, caller, started } = call;
        let mut about = About::default();
        let answer = caller.and_then(|caller| {
            let request = Request { verb: asked.verb(), options: &asked, body };
            let segments = asked.segments()?;
            let resource = route::resource(&segments)?;
            self.run(caller, &request, resource, &segments, cancel, &mut about)
        });
        match answer {
            Ok(Answer::Pending(pending)) => Begun::Later(Later { asked, about, started, pending }),
            Ok(Answer::Ready(reply)) => Begun::Done(self.frame(&asked, about, started, reply)),
            Err(error) => Begun::Done(self.frame(&asked, about, started, error.into())),
        }
    }

    /// The answer of a request that was begun.
    pub async fn finish(&self, later: Later) -> Framed {
        let Later { asked, about, started, pending } = later;
        let reply = pending.answer().await;
        self.frame(&asked, about, started, reply)
    }

    /// The answer to a request that failed, and nobody knows why.
    pub fn fail(&self, sender: Sender, error: Error) -> Framed {
        let (verb, about) = (requests::UNKNOWN, About::default());
        self.respond_framed(
            error.into(),
            sender,
            Asking { verb, path: verb, about, started: instant() },
        )
    }

    fn frame(&self, asked: &AskedFrame, about: About, started: Instant, reply: Reply) -> Framed {
        let mut path = String::with_capacity(64);
        for segment in asked.segments().unwrap_or_default() {
            path.push('/');
            path.push_str(&segment);
        }
        let sender = Sender { activity: asked.activity(), transport_id: asked.transport_id };
        self.respond_framed(
            reply,
            sender,
            Asking { verb: asked.verb(), path: &path, about, started },
        )
    }

    fn respond_framed(&self, reply: Reply, sender: Sender, asking: Asking<'_>) -> Framed {
        let Asking { verb, path, about, started } = asking;
        let activity_id = Uuid::from_bytes_le(sender.activity);
        let (now, took) = (reply.now.unwrap_or_else(&self.settings.wall), started.elapsed());
        let channel = Channel::Direct;
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
        let exchange = Exchange {
            activity_id: &activity_id.to_string(),
            now,
            took,
            number: self.number.fetch_add(1, Ordering::Relaxed),
            explains_charge: false,
        };
        let sent = ReturnTo { sender, only_head: verb == "HEAD", exchange };
        answer::respond(reply, sent, &self.fixed)
    }
}

/// What those who watch are told of a request.
struct Asking<'a> {
    verb: &'a str,
    path: &'a str,
    about: About,
    started: Instant,
}
