//! The door: who comes in, how many, and how it is closed.
//!
//! The server listens on one port for everything, or on two that are the same but
//! for their number; what a client speaks is found out per connection. When the limit is reached the next connection is
//! accepted and closed at once: its client learns of it now, where one that
//! waits in the queue of the system would wait for ever. Connections that do
//! nothing useful leave within seconds, so the place is not lost for long.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::config::Checked;
use crate::connection::{Host, serve};
use crate::signals::Signals;

/// The pause after the system refused us a connection, most likely because we
/// have as many files open as we may. Without it the loop would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Where connections come in.
pub(crate) struct Doors {
    main: TcpListener,
    compute: Option<TcpListener>,
}

impl Doors {
    /// Opens all of them, or says which cannot be opened.
    pub(crate) async fn open(settings: &Checked) -> Result<Doors, String> {
        let main = bind(settings.listen).await?;
        let compute = match settings.compute_listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        Ok(Doors { main, compute })
    }

    /// The main address, and that of the compute gateway.
    pub(crate) fn addresses(&self) -> io::Result<(SocketAddr, Option<SocketAddr>)> {
        let compute = self.compute.as_ref().map(TcpListener::local_addr).transpose()?;
        Ok((self.main.local_addr()?, compute))
    }

    /// The next connection. Who comes by one door does not wait for the other.
    async fn accept(&self) -> io::Result<TcpStream> {
        let Some(compute) = &self.compute else {
            return self.main.accept().await.map(|(stream, _)| stream);
        };
        let (stream, _) = tokio::select! {
            accepted = self.main.accept() => accepted,
            accepted = compute.accept() => accepted,
        }?;
        Ok(stream)
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, String> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| format!("{address} cannot be listened on: {error}."))
}

/// Takes connections until a signal comes, then lets the requests that run
/// come to their end, for a limited time or until the next signal. Queries that have
/// not ended by then are told to, and their clients learn of it.
pub(crate) async fn listen(doors: Doors, host: Arc<Host>, signals: &mut Signals) {
    let house = Arc::new(House::new(host.limits.max_connections));
    loop {
        tokio::select! {
            biased;
            () = signals.next() => break,
            accepted = doors.accept() => match accepted {
                Ok(stream) => receive(stream, &host, &house),
                Err(error) => pause(&error).await,
            },
        }
    }
    drop(doors);
    tokio::select! {
        is_empty = house.empty(host.limits.stop_timeout()) => {
            host.api.stop_long_work();
            if !is_empty && !house.empty(host.limits.linger_timeout()).await {
                tracing::warn!(open = house.guests().count, "stopped with connections still open");
            }
        }
        () = signals.next() => {}
    }
}

async fn pause(error: &io::Error) {
    // These are the client's affair: it went away before we came to it.
    let gone = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset];
    if !gone.contains(&error.kind()) {
        tracing::warn!(%error, "no connection can be taken just now");
        sleep(ACCEPT_PAUSE).await;
    }
}

fn receive(stream: TcpStream, host: &Arc<Host>, house: &Arc<House>) {
    let Some(guest) = house.enter() else { return };
    // Answers are written whole; waiting for more to send only delays them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY was refused");
    }
    tokio::spawn(serve(stream, Arc::clone(host), guest));
}

/// All connections that are open.
struct House {
    limit: usize,
    stopping: AtomicBool,
    guests: Mutex<Guests>,
    empty: Notify,
}

#[derive(Default)]
struct Guests {
    count: usize,
    next: u64,
    /// Whether somebody was turned away since there was room.
    full: bool,
    /// How to tell each connection that we close.
    wakers: HashMap<u64, Waker>,
}

impl House {
    fn new(limit: u32) -> Self {
        House {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            stopping: AtomicBool::new(false),
            guests: Mutex::default(),
            empty: Notify::new(),
        }
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>) -> Option<Guest> {
        let mut guests = self.guests();
        if guests.count >= self.limit {
            if !guests.full {
                guests.full = true;
                tracing::warn!(limit = self.limit, "too many connections; new ones are closed");
            }
            return None;
        }
        guests.full = false;
        guests.count += 1;
        guests.next += 1;
        Some(Guest { house: Arc::clone(self), number: guests.next, known: false })
    }

    /// Tells every connection that we close, and waits until all are gone. Whether
    /// they are.
    async fn empty(&self, patience: Duration) -> bool {
        self.stopping.store(true, Ordering::SeqCst);
        let wakers: Vec<_> = self.guests().wakers.values().cloned().collect();
        wakers.into_iter().for_each(Waker::wake);
        let all_gone = async {
            while self.guests().count > 0 {
                self.empty.notified().await;
            }
        };
        timeout(patience, all_gone).await.is_ok()
    }
}

/// The place of one connection, until dropped.
pub(crate) struct Guest {
    house: Arc<House>,
    number: u64,
    known: bool,
}

impl Guest {
    /// Whether the server is closing; if not, the task is woken when it does.
    ///
    /// To be called from the task of the connection only: it leaves its waker
    /// once and for all, so that a step of the connection costs one look.
    pub(crate) fn stopping(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.known {
            self.known = true;
            self.house.guests().wakers.insert(self.number, cx.waker().clone());
        }
        self.house.stopping.load(Ordering::SeqCst)
    }

    /// What `work` comes to, or `None` if the server closes before.
    pub(crate) async fn unless_stopping<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if self.stopping(cx) {
                return Poll::Ready(None);
            }
            work.as_mut().poll(cx).map(Some)
        })
        .await
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut guests = self.house.guests();
        guests.wakers.remove(&self.number);
        guests.count -= 1;
        if guests.count == 0 {
            self.house.empty.notify_one();
        }
    }
}
