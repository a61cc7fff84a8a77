//! From the body of a batch to its operations.
//!
//! ```text
//! [{"operationType": "Create", "resourceBody": {...}},
//!  {"operationType": "Read", "id": "a", "partitionKey": "[\"x\"]", "ifNoneMatch": "\"...\""}, ...]
//! ```
//!
//! .NET sends the same in binary rows, which begin with a byte that no JSON begins with.
//!
//! What is wrong with the batch refuses it; what is wrong with an item of it is told by the
//! answer of that operation.

use bytes::Bytes;
use dayfly_engine::operation::{Act, BatchForm, Condition, ContainerScope, Indexing, WriteItem};
use dayfly_model::json::{ObjectText, binary};
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::patch::Patch;
use dayfly_model::{Error, ErrorKind, Result};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::hybrid_row::{self, OPERATION, Row};

/// A batch may have no more bytes than this.
const BATCH_BYTES_MAX: usize = 2_202_010;

/// The operations that binary rows have a number for.
const NUMBERED: &[(i32, &str)] =
    &[(0, "Create"), (1, "Patch"), (2, "Read"), (4, "Delete"), (5, "Replace"), (20, "Upsert")];

/// The number of items among the kinds of resources.
const DOCUMENT: i32 = 2;

/// An operation, as clients write it in JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SentText<'a> {
    operation_type: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    partition_key: Option<String>,
    #[serde(default, borrow)]
    resource_body: Option<&'a RawValue>,
    #[serde(default)]
    if_match: Option<String>,
    #[serde(default)]
    if_none_match: Option<String>,
    #[serde(default)]
    minimal_return_preference: Option<bool>,
}

/// An operation, as clients send it in either form.
#[derive(Default)]
struct Sent {
    operation_type: String,
    id: Option<String>,
    partition_key: Option<String>,
    resource_body: Option<Bytes>,
    if_match: Option<String>,
    if_none_match: Option<String>,
    minimal: Option<bool>,
    indexing: Indexing,
    /// Counts if the item does not say it itself.
    ttl_seconds: Option<i32>,
}

/// The operations of a batch, and how they are written. `minimal`: the request asks for no
/// items in the answers to writes; `item` reads one.
pub(crate) fn read(
    body: &Bytes,
    minimal: bool,
    item: fn(&Bytes) -> Result<ObjectText>,
) -> Result<(BatchForm, Vec<Result<WriteItem>>)> {
    if body.len() > BATCH_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            "Message: {\"Errors\":[\"Request size is too large\"]}\r\n",
        ));
    }
    let (form, sent) = match body.first() {
        Some(&hybrid_row::VERSION) => (BatchForm::Rows, sent_in_rows(body)?),
        _ => (BatchForm::Text, sent_in_text(body)?),
    };
    let steps = sent.into_iter().map(|sent| step(sent, minimal, item));
    Ok((form, steps.collect::<Result<_>>()?))
}

fn sent_in_text(body: &Bytes) -> Result<Vec<Sent>> {
    if binary::is_binary(body) {
        return Err(Error::bad_request(
            "The batch is in binary JSON. It must be JSON text, or binary rows (HybridRow); the \
             items in it may be binary.",
        ));
    }
    let sent: Vec<SentText<'_>> = serde_json::from_slice(body).map_err(|why| {
        Error::bad_request(format!("The batch is not an array of operations: {why}."))
    })?;
    let sent = sent.into_iter().map(|sent| Sent {
        operation_type: sent.operation_type,
        id: sent.id,
        partition_key: sent.partition_key,
        resource_body: sent.resource_body.map(|raw| body.slice_ref(raw.get().as_bytes())),
        if_match: sent.if_match,
        if_none_match: sent.if_none_match,
        minimal: sent.minimal_return_preference,
        ..Sent::default()
    });
    Ok(sent.collect())
}

fn sent_in_rows(body: &Bytes) -> Result<Vec<Sent>> {
    let rows = hybrid_row::records(body)?;
    rows.into_iter().map(|row| sent_in_row(&Row::read(&OPERATION, row)?, body)).collect()
}

fn sent_in_row(row: &Row<'_>, body: &Bytes) -> Result<Sent> {
    if let Some(other) = row.int("resourceType").filter(|kind| *kind != DOCUMENT) {
        return Err(Error::bad_request(format!(
            "An operation of the batch is for the resource type '{other}'; only items \
             ('{DOCUMENT}') are written in batches."
        )));
    }
    let partition_key = row.text("partitionKey");
    // A hash, which nobody can turn back into the key.
    if row.binary("effectivePartitionKey").is_some() && partition_key.is_none() {
        return Err(Error::bad_request(
            "An operation of the batch has an effectivePartitionKey and no partitionKey.",
        ));
    }
    let number = row.int("operationType").unwrap_or(-1);
    let known = NUMBERED.iter().find(|(known, _)| *known == number);
    let directive = row.text("indexingDirective").unwrap_or_default();
    let owned = |name| row.text(name).map(ToOwned::to_owned);
    Ok(Sent {
        operation_type: known.map_or_else(|| number.to_string(), |(_, word)| (*word).to_owned()),
        id: owned("id"),
        partition_key: partition_key.map(ToOwned::to_owned),
        resource_body: row.binary("resourceBody").map(|bytes| body.slice_ref(bytes)),
        if_match: owned("ifMatch"),
        if_none_match: owned("ifNoneMatch"),
        minimal: row.flag("minimalReturnPreference"),
        indexing: Indexing::named(directive).ok_or_else(|| {
            Error::bad_request(format!(
                "The indexing directive '{directive}' must be 'Default', 'Include' or 'Exclude'."
            ))
        })?,
        ttl_seconds: row.int("timeToLiveInSeconds"),
    })
}

fn step(
    sent: Sent,
    minimal: bool,
    item: fn(&Bytes) -> Result<ObjectText>,
) -> Result<Result<WriteItem>> {
    let target = || {
        let id = sent.id.clone().filter(|id| !id.is_empty());
        id.ok_or_else(|| {
            Error::bad_request(format!("The operation '{}' needs an id.", sent.operation_type))
        })
    };
    let raw = || match &sent.resource_body {
        Some(raw) => Ok(raw),
        None => Err(Error::bad_request(format!(
            "The operation '{}' needs a resourceBody.",
            sent.operation_type
        ))),
    };
    let text = || with_ttl(item(raw()?)?, sent.ttl_seconds, item);
    let act = match &*sent.operation_type {
        "Create" => text().map(Act::Create),
        "Upsert" => text().map(Act::Upsert),
        "Replace" => {
            let id = target()?;
            text().map(|text| Act::Replace(id, text))
        }
        "Delete" => Ok(Act::Delete(target()?)),
        "Read" => Ok(Act::Read(target()?)),
        "Patch" => {
            let id = target()?;
            raw().and_then(|raw| Patch::read(raw)).map(|patch| Act::Patch(id, patch))
        }
        other => {
            return Err(Error::bad_request(format!(
                "The operation type '{other}' is not one of Create, Upsert, Read, Delete, Replace \
                 and Patch."
            )));
        }
    };
    let key = sent.partition_key.as_deref().map(PartitionKey::parse_header).transpose()?;
    Ok(act.map(|act| WriteItem {
        at: ContainerScope::default(),
        minimal: !matches!(act, Act::Read(_)) && sent.minimal.unwrap_or(minimal),
        act,
        partition_key: key,
        condition: Condition { if_match: sent.if_match, if_none_match: sent.if_none_match },
        indexing: sent.indexing,
    }))
}

/// The item with a time to live that came beside it, unless it has one of its own.
fn with_ttl(
    text: ObjectText,
    seconds: Option<i32>,
    item: fn(&Bytes) -> Result<ObjectText>,
) -> Result<ObjectText> {
    let Some(seconds) = seconds.filter(|_| text.get("ttl").is_none()) else { return Ok(text) };
    let inside = text.as_str().strip_suffix('}').unwrap_or_default();
    let comma = if inside == "{" { "" } else { "," };
    item(&format!("{inside}{comma}\"ttl\":{seconds}}}").into())
}

#[cfg(test)]
mod tests;
