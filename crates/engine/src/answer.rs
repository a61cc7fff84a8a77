//! The answer to an operation, now or later.
//!
//! A read has its answer when it returns. That of a write comes when the commit is durable
//! and visible, that of a query when a thread of its lane has it; a change of a container,
//! a purge and whatever begins at the desk come from a thread, too. Whoever asked blocks on
//! it, or awaits it.

use std::sync::Arc;

use dayfly_model::Result;
use dayfly_storage::Ticket;

use crate::cancel::Waiter;
use crate::catalog::Container;
use crate::delete_partition::DeletePartition;
use crate::desk::Desk;
use crate::items::{RefusedPlan, WritePlan, Written, batch_answer};
use crate::metering::Toll;
use crate::operation::BatchForm;
use crate::reply::{Reply, Usage, stopped};
use crate::scope::paid;
use crate::shared::Shared;

/// The answer to an operation, now or later.
pub enum Answer {
    /// It is here.
    Ready(Reply),
    /// It comes when a commit is durable and visible.
    Pending(PendingAnswer),
}

/// An answer that has not come yet.
pub struct PendingAnswer(pub(crate) Waiting);

/// What an answer waits for.
pub(crate) enum Waiting {
    Item(Ticket<WritePlan>, FromContainer),
    Batch(Ticket<WritePlan>, FromContainer, BatchForm),
    Partition(Ticket<DeletePartition>, FromContainer),
    Work(oneshot::Receiver<Reply>, Option<Toll>),
    /// It is given up when this is dropped.
    Query(oneshot::Receiver<Reply>, Waiter, Option<Toll>),
    /// The operation begins on another thread.
    Begun(oneshot::Receiver<Answer>),
    /// What is alive is added to it.
    Told(Reply, oneshot::Receiver<Option<Usage>>),
}

/// The container that an answer about an item is from.
pub(crate) struct FromContainer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) container: Arc<Container>,
    pub(crate) desk: Option<Arc<Desk>>,
    pub(crate) toll: Option<Toll>,
}

impl FromContainer {
    /// Takes the charge, and says what is alive in the container.
    fn tell(self, reply: Reply) -> Answer {
        let FromContainer { shared, container, desk, toll } = self;
        let reply = paid(toll, reply);
        let (Ok(_), Some(now)) = (&reply.outcome, reply.now) else { return Answer::Ready(reply) };
        let lsn = reply.place.as_ref().and_then(|place| place.lsn);
        let Some(desk) = desk else { return told(reply, shared.usage_at(&container, now, lsn)) };
        match desk.hand_in(move || shared.usage_at(&container, now, lsn)) {
            Ok(usage) => Answer::Pending(PendingAnswer(Waiting::Told(reply, usage))),
            // The write is done, whether or not somebody has time for figures.
            Err(_) => Answer::Ready(reply),
        }
    }
}

impl Answer {
    /// Blocks until the operation has begun, wherever it does.
    #[cfg(test)]
    pub(crate) fn begun(self) -> Answer {
        match self {
            Answer::Pending(PendingAnswer(Waiting::Begun(receiver))) => begun(receiver.recv().ok()),
            answer => answer,
        }
    }

    /// Blocks until the answer is here.
    pub fn wait(mut self) -> Reply {
        loop {
            self = match self {
                Answer::Ready(reply) => return reply,
                Answer::Pending(PendingAnswer(waiting)) => match waiting {
                    Waiting::Item(ticket, within) => within.tell(done(ticket.wait())),
                    Waiting::Batch(ticket, within, form) => {
                        within.tell(batch_answer(ticket.wait(), form))
                    }
                    Waiting::Partition(ticket, within) => {
                        within.tell(ticket.wait().unwrap_or_else(|refused| refused))
                    }
                    Waiting::Work(receiver, toll) => {
                        return paid(toll, receiver.recv().unwrap_or_else(|_| stopped().into()));
                    }
                    Waiting::Query(receiver, _, toll) => {
                        return paid(toll, receiver.recv().unwrap_or_else(|_| stopped().into()));
                    }
                    Waiting::Begun(receiver) => begun(receiver.recv().ok()),
                    Waiting::Told(reply, usage) => told(reply, usage.recv().ok().flatten()),
                },
            }
        }
    }
}

impl PendingAnswer {
    /// Resolves when the answer is here.
    pub async fn answer(self) -> Reply {
        let mut waiting = self.0;
        loop {
            let answer = match waiting {
                Waiting::Item(ticket, within) => within.tell(done(ticket.answer().await)),
                Waiting::Batch(ticket, within, form) => {
                    within.tell(batch_answer(ticket.answer().await, form))
                }
                Waiting::Partition(ticket, within) => {
                    within.tell(ticket.answer().await.unwrap_or_else(|refused| refused))
                }
                Waiting::Work(receiver, toll) => {
                    return paid(toll, receiver.await.unwrap_or_else(|_| stopped().into()));
                }
                Waiting::Query(receiver, waiter, toll) => {
                    let reply = receiver.await.unwrap_or_else(|_| stopped().into());
                    drop(waiter);
                    return paid(toll, reply);
                }
                Waiting::Begun(receiver) => begun(receiver.await.ok()),
                Waiting::Told(reply, usage) => told(reply, usage.await.ok().flatten()),
            };
            match answer {
                Answer::Ready(reply) => return reply,
                Answer::Pending(PendingAnswer(next)) => waiting = next,
            }
        }
    }
}

/// What an operation came to that began on another thread.
fn begun(answer: Option<Answer>) -> Answer {
    answer.unwrap_or_else(|| Answer::Ready(stopped().into()))
}

/// An answer, with what is alive where it is from.
fn told(mut reply: Reply, usage: Option<Usage>) -> Answer {
    if let Ok(success) = &mut reply.outcome {
        success.usage = usage;
    }
    Answer::Ready(reply)
}

fn done(outcome: Result<Written, RefusedPlan>) -> Reply {
    match outcome {
        Ok(written) | Err(RefusedPlan::Decided(written)) => written.into_reply(),
        Err(RefusedPlan::Failed(reply)) => reply,
    }
}
