//! Answers that clients have not taken yet: how much they come to, and who is
//! cut off when it is too much.
//!
//! An answer stays in memory until the socket has taken its last byte, and who
//! does not read keeps it there. All such bytes together have a limit,
//! [`ANSWERS_BYTES_MAX`]. The answer that goes past it is not the one to blame:
//! the connections that have waited longest for their client to take something
//! are closed, until what is left is within the limit.
//!
//! [`Outgoing`] is an answer on its way, for HTTP/1.1 and HTTP/2 alike: hyper
//! tells it of each byte that went to the socket, and drops it after the last.
//! Until then it counts whole, since it is in memory whole. What the system holds
//! for a socket is not counted, nor are heads.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::buf::Chain;
use bytes::{Buf, Bytes};
use dayfly_api::{Edge, Pieces};
use tokio::time::Instant;

use crate::limits::ANSWERS_BYTES_MAX;

/// What a client has to take to count as reading. With less it could look quick
/// by taking a byte now and then.
const PROGRESS_BYTES: usize = 64 * 1024;

/// How often the log says that somebody was cut off.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// What all connections have answered and not got rid of.
pub(crate) struct Answers {
    edge: Arc<Edge>,
    /// Counts what clients take, so that it is known who did so last.
    turn: AtomicU64,
    readers: Mutex<Readers>,
    /// Held while somebody chooses whom to cut off, and when it was told last.
    choosing: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Readers {
    next: u64,
    open: HashMap<u64, Weak<Reader>>,
}

impl Answers {
    pub(crate) fn new(edge: Arc<Edge>) -> Self {
        Answers {
            edge,
            turn: AtomicU64::new(0),
            readers: Mutex::default(),
            choosing: Mutex::default(),
        }
    }

    /// The client of a new connection.
    pub(crate) fn reader(self: &Arc<Self>) -> Arc<Reader> {
        let mut readers = self.readers();
        readers.next += 1;
        let reader = Arc::new(Reader {
            answers: Arc::clone(self),
            number: readers.next,
            owed: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            since: AtomicU64::new(0),
            cut: AtomicBool::new(false),
            waker: OnceLock::new(),
        });
        readers.open.insert(reader.number, Arc::downgrade(&reader));
        reader
    }

    fn readers(&self) -> MutexGuard<'_, Readers> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts off the slowest readers, as many as it takes to be within the limit
    /// when they are gone.
    fn relieve(&self) {
        let mut told = self.choosing.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader that is dropped takes the lock, so none is held from here on.
        let mut readers: Vec<_> = self.readers().open.values().filter_map(Weak::upgrade).collect();
        let held = self.edge.unread_bytes.load(Ordering::Relaxed);
        let going: usize = readers.iter().filter(|of| of.is_cut()).map(|of| of.owed()).sum();
        let mut over = held.saturating_sub(going).saturating_sub(ANSWERS_BYTES_MAX);
        readers.retain(|reader| !reader.is_cut() && reader.owed() > 0);
        readers
            .sort_by_key(|reader| (reader.since.load(Ordering::Relaxed), Reverse(reader.owed())));
        let mut count = 0;
        for reader in readers {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(reader.owed());
            reader.cut();
            count += 1;
        }
        if count == 0 {
            return;
        }
        self.edge.readers_cut.fetch_add(count, Ordering::Relaxed);
        if told.is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            tracing::warn!(
                count,
                "clients do not read their answers, and these came to more than \
                 {ANSWERS_BYTES_MAX} bytes: the slowest are closed"
            );
        }
    }
}

/// The client of one connection, as one that takes answers.
pub(crate) struct Reader {
    answers: Arc<Answers>,
    number: u64,
    /// Bytes of the answers that the socket has not taken to the end.
    owed: AtomicUsize,
    /// Bytes that it took since the turn below.
    taken: AtomicUsize,
    /// The turn at which it last took [`PROGRESS_BYTES`], or had nothing to take.
    since: AtomicU64,
    cut: AtomicBool,
    waker: OnceLock<Waker>,
}

impl Reader {
    /// The body of an answer, on its way.
    pub(crate) fn take(self: &Arc<Self>, body: Pieces) -> Outgoing {
        let bytes = body.len();
        let pieces = body.first.chain(body.second);
        if bytes > 0 {
            if self.owed.fetch_add(bytes, Ordering::Relaxed) == 0 {
                self.progressed();
            }
            let held = &self.answers.edge.unread_bytes;
            if held.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > ANSWERS_BYTES_MAX {
                self.answers.relieve();
            }
        }
        Outgoing { pieces, bytes, reader: Arc::clone(self) }
    }

    /// Whether the connection is to be closed; if not, the task is woken when it
    /// is. To be called from the task of the connection only, which leaves its
    /// waker once and for all.
    pub(crate) fn is_cut_off(&self, cx: &Context<'_>) -> bool {
        self.waker.get_or_init(|| cx.waker().clone());
        self.is_cut()
    }

    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }

    fn cut(&self) {
        tracing::debug!(owed = self.owed(), "a client that does not read is closed");
        self.cut.store(true, Ordering::SeqCst);
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    fn owed(&self) -> usize {
        self.owed.load(Ordering::Relaxed)
    }

    fn progressed(&self) {
        self.taken.store(0, Ordering::Relaxed);
        let turn = self.answers.turn.fetch_add(1, Ordering::Relaxed);
        self.since.store(turn, Ordering::Relaxed);
    }

    fn took(&self, bytes: usize) {
        if self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) >= PROGRESS_BYTES {
            self.progressed();
        }
    }

    fn forget(&self, bytes: usize) {
        self.owed.fetch_sub(bytes, Ordering::Relaxed);
        self.answers.edge.unread_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.answers.readers().open.remove(&self.number);
    }
}

/// The body of an answer, until the socket has taken it or the connection ends.
pub(crate) struct Outgoing {
    pieces: Chain<Bytes, Bytes>,
    /// What it had in the beginning.
    bytes: usize,
    reader: Arc<Reader>,
}

impl Outgoing {
    /// What is left, in pieces.
    pub(crate) fn pieces(&self) -> [&[u8]; 2] {
        [self.pieces.first_ref(), self.pieces.last_ref()].map(AsRef::as_ref)
    }
}

impl Buf for Outgoing {
    fn remaining(&self) -> usize {
        self.pieces.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.chunk()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.pieces.chunks_vectored(slices)
    }

    fn advance(&mut self, count: usize) {
        self.pieces.advance(count);
        self.reader.took(count);
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.reader.forget(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers() -> Arc<Answers> {
        Arc::new(Answers::new(Arc::new(Edge::default())))
    }

    fn body(bytes: usize) -> Pieces {
        vec![0; bytes].into()
    }

    fn held(answers: &Answers) -> usize {
        answers.edge.unread_bytes.load(Ordering::Relaxed)
    }

    #[test]
    fn what_is_taken_or_given_up_is_not_held() {
        let answers = answers();
        let reader = answers.reader();
        let pieces = Pieces { first: vec![0; 10].into(), second: vec![0; 5].into() };
        let mut outgoing = reader.take(pieces);
        assert_eq!(held(&answers), 15);
        outgoing.advance(12);
        assert_eq!((outgoing.remaining(), held(&answers), reader.owed()), (3, 15, 15));
        drop(outgoing);
        assert_eq!((held(&answers), reader.owed()), (0, 0));
        drop(reader);
        assert!(answers.readers().open.is_empty());
    }

    /// Who took nothing for longest goes first, also if another came before it
    /// and reads, and also if it takes a byte now and then.
    #[test]
    fn the_slowest_are_cut_off_until_the_rest_is_within_the_limit() {
        let answers = answers();
        let part = ANSWERS_BYTES_MAX / 4;
        let [reads, drips, sleeps, fresh, last] = std::array::from_fn(|_| answers.reader());
        let mut held_by_reads = reads.take(body(part));
        let mut held_by_drips = drips.take(body(part));
        let held_by_sleeps = sleeps.take(body(part));
        held_by_drips.advance(1);
        held_by_reads.advance(PROGRESS_BYTES);
        let held_by_fresh = fresh.take(body(part));
        assert_eq!(held(&answers), ANSWERS_BYTES_MAX);

        let cut = || [&reads, &drips, &sleeps, &fresh, &last].map(|reader| reader.is_cut());
        assert_eq!(cut(), [false; 5]);
        let _one = last.take(body(1));
        assert_eq!(cut(), [false, true, false, false, false]);
        // It is not gone yet, but it will be.
        let _two = last.take(body(part - 1));
        assert_eq!(cut(), [false, true, false, false, false]);
        let _three = last.take(body(1));
        assert_eq!(cut(), [false, true, true, false, false]);
        assert_eq!(answers.edge.readers_cut.load(Ordering::Relaxed), 2);
        drop((held_by_reads, held_by_drips, held_by_sleeps, held_by_fresh));
    }
}
