//! A batch: several writes and reads in one request, and one commit.
//!
//! Those of an atomic batch are in one logical partition, which the request names. Those of
//! another, which clients call bulk, have a key each, all in the range that the request
//! names; where a client's map of the ranges is old it is told so, and sorts them anew.

use dayfly_model::charge::Charge;
use dayfly_model::partition_key::{self, PartitionKey};
use dayfly_model::{Error, ErrorKind, Result};

use super::plan::{Around, RefusedPlan, WritePlan, Written, plan as plan_of};
use crate::operation::{Act, BatchForm, BatchMode, WriteBatch, WriteItem};
use crate::parts::{self, Home};
use crate::reply::{Origin, Reply, Success};
use crate::scope::Opened;

/// The most operations of a batch.
const STEPS_MAX: usize = 100;

/// Makes the plan for a batch. What is wrong with the batch as a whole refuses it.
pub(crate) fn plan(opened: &Opened, batch: WriteBatch, around: Around) -> Result<WritePlan> {
    let WriteBatch { part, mode, steps, .. } = batch;
    if steps.is_empty() {
        return Err(Error::bad_request("Batch request has no operations."));
    }
    if steps.len() > STEPS_MAX {
        let why = "Batch request has more operations than what is supported.";
        return Err(Error::bad_request(why));
    }
    if mode == BatchMode::Atomic && part.partition_key.is_none() {
        // A hierarchical key that is not complete comes as the keys that begin with it.
        if part.start.is_some() || part.end.is_some() {
            return Err(partition_key::mismatch());
        }
        return Err(Error::bad_request("An atomic batch needs the partition key of its items."));
    }
    let home = parts::home(&opened.container, &part)?;
    let is_read = |step: &Result<WriteItem>| matches!(step, Ok(step) if is_read(step));
    if steps.iter().any(is_read) {
        opened.check_session(&opened.touched(&part)?)?;
    }
    let steps = steps
        .into_iter()
        .map(|step| step.map_or_else(|error| Ok(Err(error)), |step| at_home(step, &home)))
        .collect::<Result<Vec<_>>>()?;
    let bucket = home.bucket();
    Ok(plan_of(opened, bucket, opened.place(&part), steps, mode, around))
}

fn is_read(step: &WriteItem) -> bool {
    matches!(step.act, Act::Read(_))
}

/// The step, with the key of its item. Without one it fails alone; with one that belongs
/// elsewhere all do.
fn at_home(mut step: WriteItem, home: &Home<'_>) -> Result<Result<WriteItem>> {
    let given = step.partition_key.take();
    step.partition_key = Some(match home {
        Home::Partition(key, _) => checked(given, key)?,
        Home::Range(range) => {
            let Some(key) = given else {
                let why = "An operation of a bulk request needs a partition key.";
                return Ok(Err(Error::bad_request(why)));
            };
            let is_inside = match range.contains(&key) {
                Ok(is_inside) => is_inside,
                Err(error) => return Ok(Err(error)),
            };
            if !is_inside {
                return Err(Error::new(
                    ErrorKind::RangeGone,
                    "An operation has a partition key that is not in the range of the request.",
                ));
            }
            key
        }
    });
    Ok(Ok(step))
}

fn checked(given: Option<PartitionKey>, key: &PartitionKey) -> Result<PartitionKey> {
    match given {
        Some(given) if given != *key => Err(Error::bad_request(
            "One or more operations within the batch request have a different partition key \
             value than the request.",
        )),
        _ => Ok(key.clone()),
    }
}

/// The answer to a batch: that of each operation, in order.
pub(crate) fn answer(outcome: Result<Written, RefusedPlan>, form: BatchForm) -> Reply {
    match outcome {
        Ok(written) | Err(RefusedPlan::Decided(written)) => {
            let (mut place, now) = written.origin();
            let results: Vec<Reply> = written.into_replies().into_iter().map(free).collect();
            // Where one failed, the service does not tell the RID.
            if results.iter().any(|result| result.outcome.is_err()) {
                place.rid = None;
            }
            let charge: Charge = results.iter().map(|result| result.charge).sum();
            Reply::ok(shown(results, form), now, charge).at(place)
        }
        Err(RefusedPlan::Failed(reply)) => reply,
    }
}

/// The answer to a batch that the container's throughput does not admit. Each operation of a
/// bulk request says so by itself: its client sends those again, and not the whole.
pub(crate) fn throttled(refused: Reply, batch: &WriteBatch) -> Reply {
    let steps = batch.steps.len();
    let is_throttled = refused.outcome.as_ref().is_err_and(|error| error.retry_after_ms.is_some());
    if !is_throttled || batch.mode == BatchMode::Atomic || !(1..=STEPS_MAX).contains(&steps) {
        return refused;
    }
    let place = refused.place.clone().map(|place| Origin { rid: None, ..place });
    let results = vec![refused.clone(); steps];
    Reply { outcome: Ok(shown(results, batch.form)), place, ..refused }
}

/// What was not tried costs nothing.
fn free(result: Reply) -> Reply {
    let is_dependent =
        matches!(&result.outcome, Err(error) if error.kind == ErrorKind::FailedDependency);
    Reply { charge: if is_dependent { Charge::NOTHING } else { result.charge }, ..result }
}

fn shown(results: Vec<Reply>, form: BatchForm) -> Success {
    let is_good = |result: &Reply| matches!(&result.outcome, Ok(done) if done.status < 300);
    let status = if results.iter().all(is_good) { 200 } else { 207 };
    let ttl_ignored =
        results.iter().any(|result| matches!(&result.outcome, Ok(done) if done.ttl_ignored));
    let item_count = Some(results.len());
    let batch = Some(Box::new((form, results)));
    Success { status, item_count, ttl_ignored, batch, ..Success::default() }
}
