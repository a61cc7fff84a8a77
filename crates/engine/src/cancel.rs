//! Whether an answer is still wanted.
//!
//! Whoever asks something that may take long keeps one end of a [`Cancel`], and the
//! work looks at the other, while it waits and while it runs. It holds one number,
//! which only grows: the weightiest reason so far. Beside it stands whether the answer is
//! waited for with impatience: then less of it, now, is better than all of it later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use dayfly_model::{Error, ErrorKind};

/// Why an answer is not wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    /// The client has said its last word. Mostly it is gone; but it may still listen,
    /// so what is quick is answered.
    Silent = 1,
    /// The client is gone.
    Gone = 2,
    /// The time for the request is over.
    Late = 3,
    /// The server stops.
    Stopping = 4,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 4] = [Reason::Silent, Reason::Gone, Reason::Late, Reason::Stopping];

    fn of(number: u8) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| *reason as u8 == number)
    }

    /// What is told to whoever still listens.
    pub(crate) fn error(self) -> Error {
        let sentence = match self {
            Reason::Silent => {
                "The connection was closed on the client's side before the query was done. Keep \
                 it open until the answer is there."
            }
            Reason::Gone => "The client went away before the query was done.",
            Reason::Late => {
                "The query took too long, or waited too long for others. Narrow its filter, let \
                 an index help it, or ask again when the server is less busy."
            }
            Reason::Stopping => return crate::reply::stopped(),
        };
        Error::new(ErrorKind::RequestTimeout, sentence)
    }
}

/// Both ends of it: clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Wish>);

#[derive(Debug, Default)]
struct Wish {
    reason: AtomicU8,
    hurried: AtomicBool,
}

impl Cancel {
    /// From now on the answer is not wanted.
    pub fn cancel(&self, reason: Reason) {
        self.0.reason.fetch_max(reason as u8, Ordering::Relaxed);
    }

    /// Why the answer is not wanted any more, if it is not.
    pub fn reason(&self) -> Option<Reason> {
        Reason::of(self.0.reason.load(Ordering::Relaxed))
    }

    /// From now on a page is wanted as soon as it can end.
    pub fn hurry(&self) {
        self.0.hurried.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    pub(crate) fn is_hurried(&self) -> bool {
        self.0.hurried.load(Ordering::Relaxed)
    }
}

/// Whoever waits for an answer: gone when dropped.
pub(crate) struct Waiter(pub(crate) Cancel);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.cancel(Reason::Gone);
    }
}
