//! What goes on beside the requests, about once a second, on threads of its
//! own: the clock's lease is kept alive, and expired items are removed.
//!
//! They are two threads because the first must not wait for the second: when
//! the lease runs out, time stands still.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const PERIOD: Duration = Duration::from_secs(1);

/// A thread that does something again and again until it is dropped.
pub(crate) struct Background {
    /// Never sent to: the thread ends when this is gone.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Calls `work` about once a second.
    pub(crate) fn start(
        name: &'static str,
        mut work: impl FnMut() + Send + 'static,
    ) -> Result<Background, String> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                    work();
                }
            })
            .map_err(|error| format!("The thread {name} could not be started: {error}."))?;
        Ok(Background { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a background thread had panicked");
        }
    }
}
