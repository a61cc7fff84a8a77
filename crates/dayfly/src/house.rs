//! Who is in: the connections that are open, how many there may be, and how they are told
//! that the server closes.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dayfly_api::{Edge, Protocol};
use tokio::sync::Notify;
use tokio::time::timeout;

/// What a door leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// Everything.
    Main,
    /// Whether the server is well, and nothing else.
    Health,
}

/// All connections that are open.
pub(crate) struct House {
    limit: usize,
    /// Where it is told who comes and goes.
    edge: Arc<Edge>,
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
    pub(crate) fn new(limit: u32, edge: Arc<Edge>) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        edge.connections_max.store(limit, Ordering::Relaxed);
        House {
            limit,
            edge,
            stopping: AtomicBool::new(false),
            guests: Mutex::default(),
            empty: Notify::new(),
        }
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Option<Guest> {
        let mut guests = self.guests();
        if guests.count >= self.limit {
            self.edge.turned_away.fetch_add(1, Ordering::Relaxed);
            if !guests.full {
                guests.full = true;
                tracing::warn!(limit = self.limit, "too many connections; new ones are closed");
            }
            return None;
        }
        guests.full = false;
        guests.count += 1;
        guests.next += 1;
        self.edge.accepted.fetch_add(1, Ordering::Relaxed);
        self.edge.begins(Protocol::Unknown);
        Some(Guest {
            house: Arc::clone(self),
            number: guests.next,
            known: false,
            protocol: Protocol::Unknown,
        })
    }

    /// How many connections there are.
    pub(crate) fn count(&self) -> usize {
        self.guests().count
    }

    /// Tells every connection that we close, and waits until all are gone. Whether
    /// they are.
    pub(crate) async fn empty(&self, patience: Duration) -> bool {
        self.stopping.store(true, Ordering::SeqCst);
        self.edge.closing.store(true, Ordering::Relaxed);
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
    protocol: Protocol,
}

impl Guest {
    /// It is known now what the connection speaks.
    pub(crate) fn speaks(&mut self, protocol: Protocol) {
        self.house.edge.begins(protocol);
        self.house.edge.ends(std::mem::replace(&mut self.protocol, protocol));
    }

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
        self.house.edge.ends(self.protocol);
        let mut guests = self.house.guests();
        guests.wakers.remove(&self.number);
        guests.count -= 1;
        if guests.count == 0 {
            self.house.empty.notify_one();
        }
    }
}
