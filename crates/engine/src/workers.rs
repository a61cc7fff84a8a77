//! Threads for work that takes long: it is handed in, and its answer comes later.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};

use dayfly_model::{Error, ErrorKind, Result};

use crate::reply::{Reply, stopped};
use crate::shared::Shared;

/// How many tasks may wait.
const WAITING_MAX: usize = 1024;

type Work = Box<dyn FnOnce(&Shared) -> Reply + Send>;

struct Task {
    work: Work,
    answer: oneshot::Sender<Reply>,
}

/// A thread to which work is handed in, done one by one: changes of the catalog, and
/// purges that somebody waits for.
pub(crate) struct Worker {
    closing: Arc<AtomicBool>,
    tasks: Mutex<Option<SyncSender<Task>>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Worker {
    /// Starts a thread called `name`.
    pub(crate) fn open(name: &str, shared: &Arc<Shared>) -> Result<Worker> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let closing = Arc::new(AtomicBool::new(false));
        let (shared, is_closing) = (Arc::clone(shared), Arc::clone(&closing));
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&shared, &receiver, &is_closing))
            .map_err(|why| {
                Error::new(ErrorKind::Internal, format!("No thread for {name}: {why}."))
            })?;
        let (tasks, thread) = (Mutex::new(Some(sender)), Mutex::new(Some(thread)));
        Ok(Worker { closing, tasks, thread })
    }

    /// Hands in some work. The answer comes when it is done.
    pub(crate) fn hand_in(
        &self,
        work: impl FnOnce(&Shared) -> Reply + Send + 'static,
    ) -> oneshot::Receiver<Reply> {
        let (answer, receiver) = oneshot::channel();
        let task = Task { work: Box::new(work), answer };
        let tasks = self.tasks.lock().ok().and_then(|tasks| tasks.clone());
        let refused = match tasks.map(|tasks| tasks.try_send(task)) {
            Some(Ok(())) => None,
            Some(Err(TrySendError::Full(task))) => {
                Some((task, "Too many requests like this one are waiting."))
            }
            // The task is gone with the worker; its sender answers for us.
            Some(Err(TrySendError::Disconnected(_))) | None => None,
        };
        if let Some((task, why)) = refused {
            let error = Error::new(ErrorKind::ServiceUnavailable, why);
            let _ = task.answer.send(error.into());
        }
        receiver
    }

    /// Stops after what it is at. What waits is told so.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        if let Ok(mut tasks) = self.tasks.lock() {
            tasks.take();
        }
        if let Some(thread) = self.thread.lock().ok().and_then(|mut thread| thread.take()) {
            let _ = thread.join();
        }
    }
}

/// The folder must be free when the engine is gone.
impl Drop for Worker {
    fn drop(&mut self) {
        self.close();
    }
}

fn run(shared: &Shared, tasks: &Receiver<Task>, closing: &AtomicBool) {
    while let Ok(task) = tasks.recv() {
        if closing.load(Ordering::Relaxed) {
            let _ = task.answer.send(stopped().into());
            continue;
        }
        let work = std::panic::AssertUnwindSafe(|| (task.work)(shared));
        let reply = std::panic::catch_unwind(work).unwrap_or_else(|_| {
            Error::new(ErrorKind::Internal, "The change could not be carried out.").into()
        });
        let _ = task.answer.send(reply);
    }
}
