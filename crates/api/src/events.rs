//! A line a second for a page that is open: the time, and what the server did. It ends with
//! the session, or when the server stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};

use crate::{Api, instant};

/// How many may listen at one time.
const LISTENERS_MAX: usize = 64;

/// Somebody who listens. The answer to their request has it as an extension, and its body is
/// the lines.
#[derive(Clone)]
pub struct Events(Arc<Listener>);

struct Listener {
    /// The key or the token: when it is good no more, this ends.
    bearer: String,
    open: Arc<AtomicUsize>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Events {
    pub(crate) fn new(bearer: String, open: &Arc<AtomicUsize>) -> Result<Events> {
        let open = Arc::clone(open);
        let before = open.fetch_add(1, Ordering::Relaxed);
        let listener = Listener { bearer, open };
        if before >= LISTENERS_MAX {
            return Err(Error::new(
                ErrorKind::ServiceUnavailable,
                format!("{LISTENERS_MAX} others listen already; try again later."),
            ));
        }
        Ok(Events(Arc::new(listener)))
    }
}

impl Api {
    /// The next line for somebody who listens; none at the end.
    pub fn event(&self, events: &Events) -> Option<Bytes> {
        let bearer = &events.0.bearer;
        let is_good =
            self.keys().whose(bearer).is_some() || self.sessions.is_open(bearer, instant());
        if !is_good || self.edge.closing.load(Ordering::Relaxed) {
            return None;
        }
        let clock = self.engine.glance();
        let mut line = self.series.show_last(Timestamp(clock.now), clock.frozen).to_string();
        line.push('\n');
        Some(line.into())
    }
}
