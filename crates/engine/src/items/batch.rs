//! A batch: several writes and reads in one request, and one commit.
//!
//! Those of an atomic batch are in one logical partition, which the request names. Those of
//! another, which clients call bulk, have a key each, all in the range that the request
//! names; where a client's map of the ranges is old it is told so, and sorts them anew.

use dayfly_model::partition_key::PartitionKey;
use dayfly_model::{Error, ErrorKind, Result};

use super::plan::{Around, Refused, WritePlan, Written, plan as plan_of};
use crate::operation::{Act, BatchMode, WriteBatch, WriteItem};
use crate::parts::{self, Home};
use crate::reply::{Reply, Success};
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
pub(crate) fn answer(outcome: Result<Written, Refused>) -> Reply {
    match outcome {
        Ok(written) | Err(Refused::Decided(written)) => {
            let (place, now) = written.origin();
            let results: Vec<Reply> = written.into_replies().into_iter().map(free).collect();
            let charge_ru = results.iter().map(|result| result.charge_ru).sum();
            Reply::ok(shown(results), now, charge_ru).at(place)
        }
        Err(Refused::Failed(reply)) => reply,
    }
}

/// What was not tried costs nothing.
fn free(result: Reply) -> Reply {
    let is_dependent =
        matches!(&result.outcome, Err(error) if error.kind == ErrorKind::FailedDependency);
    Reply { charge_ru: if is_dependent { 0.0 } else { result.charge_ru }, ..result }
}

fn shown(results: Vec<Reply>) -> Success {
    let is_good = |result: &Reply| matches!(&result.outcome, Ok(done) if done.status < 300);
    let status = if results.iter().all(is_good) { 200 } else { 207 };
    let ttl_ignored =
        results.iter().any(|result| matches!(&result.outcome, Ok(done) if done.ttl_ignored));
    let count = results.len();
    let mut body = Vec::new();
    for result in results {
        body.push(if body.is_empty() { b'[' } else { b',' });
        write_result(&mut body, &result);
    }
    body.push(b']');
    Success { ttl_ignored, item_count: Some(count), ..Success::new(status, body) }
}

fn write_result(body: &mut Vec<u8>, result: &Reply) {
    let charge_ru = (result.charge_ru * 100.0).round() / 100.0;
    match &result.outcome {
        Ok(done) => {
            body.extend(format!("{{\"statusCode\":{}", done.status).bytes());
            if let Some(etag) = &done.etag {
                body.extend(format!(",\"eTag\":{}", serde_json::json!(etag)).bytes());
            }
            if !done.body.is_empty() {
                body.extend(b",\"resourceBody\":");
                body.extend_from_slice(&done.body.first);
                body.extend_from_slice(&done.body.second);
            }
        }
        Err(error) => {
            let wire = error.kind.wire();
            body.extend(format!("{{\"statusCode\":{}", wire.status).bytes());
            if wire.substatus != 0 {
                body.extend(format!(",\"subStatusCode\":{}", wire.substatus).bytes());
            }
            body.extend(format!(",\"message\":{}", serde_json::json!(error.message)).bytes());
        }
    }
    body.extend(format!(",\"requestCharge\":{charge_ru}}}").bytes());
}
