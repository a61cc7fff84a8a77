//! What is sent as the body of an answer: all of it, or a line a second to a page that
//! listens to what the server does.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dayfly_api::Events;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::answers::Outgoing;
use crate::progress::Phase;
use crate::visit::Visit;

/// How often there is a line.
const PERIOD: Duration = Duration::from_secs(1);

/// The body of an answer.
pub(crate) enum Sent {
    Whole(Full<Outgoing>),
    Lines(Box<Lines>),
}

/// Lines for one who listens.
pub(crate) struct Lines {
    visit: Arc<Visit>,
    events: Events,
    /// The first is at once.
    ticks: Interval,
}

impl Sent {
    pub(crate) fn whole(body: Outgoing) -> Sent {
        Sent::Whole(Full::new(body))
    }

    pub(crate) fn lines(visit: Arc<Visit>, events: Events) -> Sent {
        let mut ticks = interval(PERIOD);
        // Who did not read for a while has missed something, and need not catch up.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Sent::Lines(Box::new(Lines { visit, events, ticks }))
    }
}

impl Lines {
    fn poll_line(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outgoing>> {
        ready!(self.ticks.poll_tick(cx));
        let Some(line) = self.visit.api().event(&self.events) else { return Poll::Ready(None) };
        // A connection that has something to send is not idle.
        let progress = self.visit.progress();
        if progress.phase() == Phase::Idle {
            progress.enter(Phase::Idle);
        }
        Poll::Ready(Some(self.visit.reader().take(line.into())))
    }
}

impl Body for Sent {
    type Data = Outgoing;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Outgoing>, Infallible>>> {
        match self.get_mut() {
            Sent::Whole(whole) => Pin::new(whole).poll_frame(cx),
            Sent::Lines(lines) => {
                lines.poll_line(cx).map(|line| line.map(|line| Ok(Frame::data(line))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Sent::Whole(whole) => whole.is_end_stream(),
            Sent::Lines(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Sent::Whole(whole) => whole.size_hint(),
            Sent::Lines(_) => SizeHint::default(),
        }
    }
}
