//! From the body of a batch to its operations.
//!
//! ```text
//! [{"operationType": "Create", "resourceBody": {...}},
//!  {"operationType": "Read", "id": "a", "partitionKey": "[\"x\"]", "ifNoneMatch": "\"...\""}, ...]
//! ```
//!
//! What is wrong with the batch refuses it; what is wrong with an item of it is told by the
//! answer of that operation.

use bytes::Bytes;
use dayfly_engine::operation::{Act, Condition, ContainerScope, Indexing, WriteItem};
use dayfly_model::json::ObjectText;
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::{Error, ErrorKind, Result};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A batch may have no more bytes than this.
const BATCH_BYTES_MAX: usize = 2_202_010;

/// How the batches of .NET begin.
const BINARY_ROWS: u8 = 0x81;

/// An operation, as clients write it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a> {
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

/// The operations of a batch. `minimal`: the request asks for no items in the answers to
/// writes; `item` reads one.
pub(crate) fn read(
    body: &Bytes,
    minimal: bool,
    item: fn(&Bytes) -> Result<ObjectText>,
) -> Result<Vec<Result<WriteItem>>> {
    if body.len() > BATCH_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            "Message: {\"Errors\":[\"Request size is too large\"]}\r\n",
        ));
    }
    if body.first() == Some(&BINARY_ROWS) {
        return Err(Error::not_yet("A batch in binary rows (HybridRow)"));
    }
    let sent: Vec<Sent<'_>> = serde_json::from_slice(body).map_err(|why| {
        Error::bad_request(format!("The batch is not an array of operations: {why}."))
    })?;
    sent.into_iter().map(|sent| step(sent, body, minimal, item)).collect()
}

fn step(
    sent: Sent<'_>,
    body: &Bytes,
    minimal: bool,
    item: fn(&Bytes) -> Result<ObjectText>,
) -> Result<Result<WriteItem>> {
    let target = || {
        let id = sent.id.clone().filter(|id| !id.is_empty());
        id.ok_or_else(|| {
            Error::bad_request(format!("The operation '{}' needs an id.", sent.operation_type))
        })
    };
    let text = || match sent.resource_body {
        Some(raw) => item(&body.slice_ref(raw.get().as_bytes())),
        None => Err(Error::bad_request(format!(
            "The operation '{}' needs a resourceBody.",
            sent.operation_type
        ))),
    };
    let act = match &*sent.operation_type {
        "Create" => text().map(Act::Create),
        "Upsert" => text().map(Act::Upsert),
        "Replace" => {
            let id = target()?;
            text().map(|text| Act::Replace(id, text))
        }
        "Delete" => Ok(Act::Delete(target()?)),
        "Read" => Ok(Act::Read(target()?)),
        "Patch" => return Err(Error::not_yet("Patch")),
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
        minimal: !matches!(act, Act::Read(_)) && sent.minimal_return_preference.unwrap_or(minimal),
        act,
        partition_key: key,
        condition: Condition { if_match: sent.if_match, if_none_match: sent.if_none_match },
        indexing: Indexing::default(),
    }))
}
