//! Threads for what a store makes wait.
//!
//! Where a store is at hand, a read takes microseconds and is done where it is asked for.
//! Where it is at the other end of a network, a thread stands still for each read; and who
//! asks here is a task that shares its thread with many others. So there is a line, and
//! threads that take from it. None of them waits for a commit: what a write comes to is
//! awaited by whoever asked.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use dayfly_model::{Error, ErrorKind, Result};
use dayfly_storage::Elsewhere;

use crate::locks::lock;
use crate::reply::stopped;

/// How many threads there are: so many reads are under way at once.
const THREADS: usize = 64;

/// How many tasks may wait.
const WAITING_MAX: usize = 1024;

type Errand = Box<dyn FnOnce() + Send>;

/// Where tasks are handed in.
#[derive(Default)]
pub(crate) struct Desk {
    line: Mutex<Line>,
    /// There is something to do, or nothing any more.
    turn: Condvar,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<Errand>,
    is_closed: bool,
    #[cfg(test)]
    running: usize,
    #[cfg(test)]
    done: u64,
}

impl Desk {
    /// Hands in some work. What it comes to is received when it is done; nothing is, if the
    /// desk was closed before.
    pub(crate) fn hand_in<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>> {
        let (answer, receiver) = oneshot::channel();
        // Whoever asked may have gone away.
        self.line_up(Box::new(move || _ = answer.send(work())))?;
        Ok(receiver)
    }

    fn line_up(&self, task: Errand) -> Result<()> {
        let mut line = lock(&self.line);
        if line.is_closed {
            return Err(stopped());
        }
        if line.waiting.len() >= WAITING_MAX {
            let sentence = "Too many requests like this one are waiting.";
            return Err(Error::new(ErrorKind::ServiceUnavailable, sentence));
        }
        line.waiting.push_back(task);
        drop(line);
        self.turn.notify_one();
        Ok(())
    }

    /// The next task, once there is one. `None`: there are no more.
    fn next(&self) -> Option<Errand> {
        let mut line = lock(&self.line);
        loop {
            if line.is_closed {
                return None;
            }
            if let Some(task) = line.waiting.pop_front() {
                #[cfg(test)]
                (line.running += 1);
                return Some(task);
            }
            line = self.turn.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        let waiting = {
            let mut line = lock(&self.line);
            line.is_closed = true;
            std::mem::take(&mut line.waiting)
        };
        self.turn.notify_all();
        // Whoever waits for one of them learns that nothing comes.
        drop(waiting);
    }
}

/// For storage, which drafts large plans again.
pub(crate) fn elsewhere(desk: &Arc<Desk>) -> Elsewhere {
    let desk = Arc::clone(desk);
    // A task that is refused is dropped, and its ticket says so.
    Arc::new(move |task| _ = desk.line_up(task))
}

/// The threads of a desk.
pub(crate) struct DeskThreads {
    desk: Arc<Desk>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl DeskThreads {
    /// Starts them.
    pub(crate) fn open() -> Result<DeskThreads> {
        let threads = DeskThreads { desk: Arc::default(), threads: Mutex::default() };
        for _ in 0..THREADS {
            let desk = Arc::clone(&threads.desk);
            let thread = std::thread::Builder::new()
                .name("dayfly-desk".to_owned())
                .spawn(move || work(&desk))
                .map_err(|why| {
                    Error::new(ErrorKind::Internal, format!("No thread for reads: {why}."))
                })?;
            lock(&threads.threads).push(thread);
        }
        Ok(threads)
    }

    /// Where tasks are handed in.
    pub(crate) fn desk(&self) -> Arc<Desk> {
        Arc::clone(&self.desk)
    }

    /// Finishes what is under way, and begins nothing that waits.
    pub(crate) fn close(&self) {
        self.desk.close();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            let _ = thread.join();
        }
    }
}

/// The folder must be free when the engine is gone.
impl Drop for DeskThreads {
    fn drop(&mut self) {
        self.close();
    }
}

fn work(desk: &Desk) {
    while let Some(task) = desk.next() {
        // A task that panics answers nothing, and takes no thread with it.
        let _ = catch_unwind(AssertUnwindSafe(task));
        #[cfg(test)]
        desk.ended();
    }
}

/// For tests that leave nothing to chance.
#[cfg(test)]
impl Desk {
    fn ended(&self) {
        let mut line = lock(&self.line);
        line.running -= 1;
        line.done += 1;
    }

    /// How many tasks were done.
    pub(crate) fn done(&self) -> u64 {
        lock(&self.line).done
    }

    /// The same, once nothing is left to do.
    pub(crate) fn done_all(&self) -> u64 {
        loop {
            let line = lock(&self.line);
            if line.running == 0 && line.waiting.is_empty() {
                return line.done;
            }
            drop(line);
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_desk_does_what_it_takes_and_says_what_it_does_not() {
        let threads = DeskThreads::open().unwrap();
        let desk = threads.desk();
        assert_eq!(desk.hand_in(|| 7).unwrap().recv(), Ok(7));
        assert!(desk.hand_in(|| panic!("as it may")).unwrap().recv().is_err());
        // All threads are busy, and the line is full.
        let (gate, gates) = mpsc::channel::<()>();
        let gates = Arc::new(Mutex::new(gates));
        let (begun, begins) = mpsc::channel();
        let busy: Vec<_> = (0..THREADS)
            .map(|_| {
                let (gates, begun) = (Arc::clone(&gates), begun.clone());
                let work = move || {
                    begun.send(()).unwrap();
                    _ = lock(&gates).recv();
                };
                desk.hand_in(work).unwrap()
            })
            .collect();
        for _ in &busy {
            begins.recv().unwrap();
        }
        let waiting: Vec<_> = (0..WAITING_MAX).map(|_| desk.hand_in(|| 8).unwrap()).collect();
        let refused = desk.hand_in(|| 9).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::ServiceUnavailable);
        drop(gate);
        assert!(waiting.into_iter().all(|waits| waits.recv() == Ok(8)));
        assert!(busy.into_iter().all(|waits| waits.recv().is_ok()));
        threads.close();
        assert_eq!(desk.hand_in(|| 9).unwrap_err().kind, stopped().kind);
    }
}
