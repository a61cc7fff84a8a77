//! Once after each start, a part of the figures is counted anew.
//!
//! The figures of a container, such as its live items, are kept up by every
//! write and never counted. So that a fault in them does not stay unseen, one
//! part of one container, chosen at random, is recounted in the background. It
//! takes its time: the requests come first. What is written meanwhile is kept
//! twice, so when that is much it ends, and is tried again later.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dayfly_engine::Engine;
use dayfly_engine::check;

/// A server that has just started has other things to do.
const DELAY: Duration = Duration::from_secs(1);

/// Until the next try, when too much was written meanwhile.
const AGAIN: Duration = Duration::from_mins(1);

/// Between two chunks.
const REST: Duration = Duration::from_millis(20);

/// The thread that recounts; it ends when this is dropped.
pub(crate) struct Recount {
    /// Never sent to: the thread ends when this is gone.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Recount {
    /// Recounts once.
    pub(crate) fn start(engine: Arc<Engine>) -> Result<Recount, String> {
        let (stop, stopped) = mpsc::channel();
        let goes_on = move |rest| stopped.recv_timeout(rest) == Err(RecvTimeoutError::Timeout);
        let thread = thread::Builder::new()
            .name("dayfly-recount".to_owned())
            .spawn(move || {
                let mut wait = DELAY;
                while goes_on(wait) && recount(&engine, || goes_on(REST)) {
                    wait = AGAIN;
                }
            })
            .map_err(|error| format!("The thread dayfly-recount could not be started: {error}."))?;
        Ok(Recount { stop: Some(stop), thread: Some(thread) })
    }
}

/// Returns whether to try again.
fn recount(engine: &Engine, rest: impl FnMut() -> bool) -> bool {
    let pick = RandomState::new().hash_one(());
    match engine.recount(pick, rest) {
        Ok(check::Recount::Right) => tracing::debug!("a part of the figures was recounted: right"),
        Ok(check::Recount::LeftOut) => tracing::debug!("nothing was recounted"),
        Ok(check::Recount::Overtaken) => {
            tracing::debug!("too much was written for a recount; later");
            return true;
        }
        Ok(check::Recount::Wrong { container }) => tracing::error!(
            container,
            "the figures of a container are wrong, its items are not: copy the items into a new \
             container to get right figures, and report this with the log"
        ),
        Err(error) => tracing::warn!(%error, "a part of the figures could not be recounted"),
    }
    false
}

impl Drop for Recount {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the recount had panicked");
        }
    }
}
