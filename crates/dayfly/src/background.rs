//! What goes on beside the requests, on threads of its own: the clock's lease is
//! kept alive, and expired items are removed.
//!
//! They are two threads because the first must not wait for the second: when
//! the lease runs out, time stands still.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long to rest between two pieces of work that are not pressing.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);

/// A thread that does something again and again until it is dropped.
pub(crate) struct Background {
    /// Never sent to: the thread ends when this is gone.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Calls `work` again and again. Each piece of work says how long to rest
    /// before the next; it should be short, since the thread ends between two.
    /// One that panics is not the last.
    pub(crate) fn start(
        name: &'static str,
        mut work: impl FnMut() -> Duration + Send + 'static,
    ) -> Result<Background, String> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let mut rest = Duration::ZERO;
                while stopped.recv_timeout(rest) == Err(RecvTimeoutError::Timeout) {
                    rest = attempt(name, &mut work);
                }
            })
            .map_err(|error| format!("The thread {name} could not be started: {error}."))?;
        Ok(Background { stop: Some(stop), thread: Some(thread) })
    }
}

/// Does one piece of work, whatever becomes of it.
fn attempt(name: &str, work: &mut impl FnMut() -> Duration) -> Duration {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        tracing::error!("the thread {name} panicked and goes on; this is a bug");
        PERIOD
    })
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It catches what its work throws.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_work_that_panics_is_not_the_last() {
        let mut panics = || -> Duration { std::panic::resume_unwind(Box::new("on purpose")) };
        assert_eq!(attempt("test", &mut panics), PERIOD);
    }

    #[test]
    fn a_rest_ends_when_the_thread_is_to_stop() {
        let (done, heard) = mpsc::channel();
        let background = Background::start("test", move || {
            let _ = done.send(());
            Duration::MAX
        });
        heard.recv().unwrap();
        drop(background.unwrap());
        assert_eq!(heard.recv(), Err(mpsc::RecvError));
    }
}
