//! What a write asks for, read as far as that goes without a look at the items.

use bytes::Bytes;
use dayfly_model::json::{ITEM_BYTES_MAX, ObjectText};
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::{Error, ErrorKind, Result, id};
use serde_json::value::RawValue;

use super::patch::{self, Patching};
use super::{KEY_MISSING, Spot, expected_key, key_mismatch};
use crate::catalog::{Container, not_found};
use crate::index::Source;
use crate::keys::ItemKey;
use crate::operation::{self, Condition, Indexing, ItemAddress, WriteItem};
use crate::scope::Opened;
use crate::unique;

/// How the item is found that a write names.
pub(super) type Locate = fn(&Opened, ItemAddress) -> Result<Option<Spot>>;

/// A write to one item.
pub(super) struct Wanted {
    pub(super) act: LocatedAct,
    pub(super) condition: Condition,
    /// Whether the answer leaves out the item.
    pub(super) minimal: bool,
}

/// What is to be done, and where.
pub(super) enum LocatedAct {
    Create(Spot, Body),
    Upsert(Spot, Body),
    Replace(Target, Body),
    Patch(Spot, Box<Patching>),
    Delete(Spot),
    Read(Spot),
}

/// The item that a replace means.
pub(super) struct Target {
    /// Where it goes.
    pub(super) spot: Spot,
    /// Where it is, if it gets another id.
    pub(super) from: Option<From>,
    /// Whether the body has another partition key than the item.
    pub(super) misfit: bool,
}

/// Where an item stands that is about to get another id.
pub(super) struct From {
    pub(super) key: ItemKey,
    pub(super) id: Vec<u8>,
}

impl Wanted {
    /// `locate` finds what the write names.
    pub(super) fn read(opened: &Opened, write: WriteItem, locate: Locate) -> Result<Wanted> {
        let container = &opened.container;
        let read = |text: ObjectText| Body::read(container, text, write.indexing);
        let given = expected_key(container, write.partition_key.clone())?;
        let target_of = |id, key| locate(opened, address(id, key));
        let target_in = |id, key| target_of(id, key)?.ok_or_else(missing);
        let act = match write.act {
            operation::Act::Create(text) => {
                let body = read(text)?;
                LocatedAct::Create(body.spot(container, given)?, body)
            }
            operation::Act::Upsert(text) => {
                let body = read(text)?;
                LocatedAct::Upsert(body.spot(container, given)?, body)
            }
            operation::Act::Replace(target, text) => {
                let body = read(text)?;
                let target = target_in(target, write.partition_key)?;
                LocatedAct::Replace(body.over(container, target), body)
            }
            operation::Act::Patch(target, patch) => {
                let patching = Patching::read(container, patch, write.indexing)?;
                let spot = target_of(target, write.partition_key)?;
                LocatedAct::Patch(spot.ok_or_else(patch::missing)?, Box::new(patching))
            }
            operation::Act::Delete(target) => {
                LocatedAct::Delete(target_in(target, write.partition_key)?)
            }
            operation::Act::Read(target) => {
                LocatedAct::Read(target_in(target, write.partition_key)?)
            }
        };
        Ok(Wanted { act, condition: write.condition, minimal: write.minimal })
    }
}

fn missing() -> Error {
    not_found(ErrorKind::NotFound)
}

fn address(id: String, partition_key: Option<PartitionKey>) -> ItemAddress {
    ItemAddress { id, partition_key }
}

impl LocatedAct {
    /// Where the item is, or goes.
    pub(super) fn spot(&self) -> &Spot {
        match self {
            LocatedAct::Create(spot, _) | LocatedAct::Upsert(spot, _) => spot,
            LocatedAct::Delete(spot) | LocatedAct::Read(spot) => spot,
            LocatedAct::Patch(spot, _) => spot,
            LocatedAct::Replace(target, _) => &target.spot,
        }
    }

    /// Under which keys it looks for items.
    pub(super) fn places(&self) -> impl Iterator<Item = &ItemKey> {
        let from = match self {
            LocatedAct::Replace(Target { from, .. }, _) => from.as_ref(),
            _ => None,
        };
        [&self.spot().key].into_iter().chain(from.map(|from| &from.key))
    }

    /// Which unique keys it wants, as far as that is known before it is decided.
    pub(super) fn unique(&self) -> &[[u8; 16]] {
        match self {
            LocatedAct::Create(_, body)
            | LocatedAct::Upsert(_, body)
            | LocatedAct::Replace(_, body) => &body.unique,
            LocatedAct::Patch(..) | LocatedAct::Delete(_) | LocatedAct::Read(_) => &[],
        }
    }

    /// About how many bytes it holds.
    pub(super) fn weight(&self) -> usize {
        match self {
            LocatedAct::Create(_, body)
            | LocatedAct::Upsert(_, body)
            | LocatedAct::Replace(_, body) => body.weight(),
            LocatedAct::Patch(_, patching) => patching.weight(),
            LocatedAct::Delete(_) | LocatedAct::Read(_) => 0,
        }
    }
}

/// What a write brings.
#[derive(Debug)]
pub(super) struct Body {
    id: String,
    pub(super) ttl: Option<Box<RawValue>>,
    /// The second that its life is counted from, if that is not its write.
    pub(super) ttl_base: Option<i64>,
    partition_key: PartitionKey,
    pub(super) unique: Vec<[u8; 16]>,
    pub(super) text: Bytes,
    pub(super) indexing: Indexing,
    /// The text, for the index.
    pub(super) source: Source,
}

impl Body {
    fn read(container: &Container, text: ObjectText, indexing: Indexing) -> Result<Body> {
        check_size(text.bytes())?;
        Body::of(container, text, indexing)
    }

    /// The same, whatever its size.
    pub(super) fn of(container: &Container, text: ObjectText, indexing: Indexing) -> Result<Body> {
        let id = item_id(&text)?;
        let definition = container.definition();
        let ttl = text.get("ttl").map(ToOwned::to_owned);
        let ttl_base = definition.ttl_base(&text);
        let partition_key = PartitionKey::extract(&definition.partition_key, &text)?;
        let unique = unique::hashes(&definition.unique_keys, &text);
        let text = text.into_bytes();
        let source = Source::new(text.clone(), indexing);
        Ok(Body { id, ttl, ttl_base, partition_key, unique, text, indexing, source })
    }

    /// Where the item goes. The key in the request and the key in the body must be
    /// the same.
    fn spot(&self, container: &Container, given: Option<PartitionKey>) -> Result<Spot> {
        if given.is_some_and(|given| given != self.partition_key) {
            return Err(key_mismatch(KEY_MISSING));
        }
        Ok(Spot::new(container, &self.partition_key, self.id.clone().into_bytes()))
    }

    /// The same for a replace, and where the item stands if it gets another id. It
    /// stays in its partition: whether the body would move it to another one counts only
    /// if it is there, so that is told last.
    fn over(&self, container: &Container, target: Spot) -> Target {
        let spot = Spot::new(container, &self.partition_key, self.id.clone().into_bytes());
        if target.partition_key != spot.partition_key {
            return Target { spot: target, from: None, misfit: true };
        }
        if target.key == spot.key {
            return Target { spot: target, from: None, misfit: false };
        }
        let spot = Spot { docno: target.docno, ..spot };
        let from = Some(From { key: target.key, id: target.id });
        Target { spot, from, misfit: false }
    }

    /// Whether it is the body of an item at this place.
    pub(super) fn is_at(&self, spot: &Spot) -> bool {
        self.id.as_bytes() == spot.id && self.partition_key.canonical() == spot.partition_key
    }

    /// About how many bytes it holds.
    pub(super) fn weight(&self) -> usize {
        self.text.len() + usize::try_from(self.source.weight()).unwrap_or_default()
    }
}

/// Refuses an item of more bytes than one can have.
pub(super) fn check_size(bytes: usize) -> Result<()> {
    if bytes <= ITEM_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::TooLarge,
        "Request size is too large: an item can have at most 2 MB.",
    ))
}

fn item_id(text: &ObjectText) -> Result<String> {
    let Some(raw) = text.get("id") else {
        return Err(Error::bad_request(
            "The input content is invalid because the required properties - 'id; ' - are missing",
        ));
    };
    let id: String = serde_json::from_str(raw.get()).map_err(|_| {
        Error::bad_request(format!("The input id '{}' is invalid: it must be a string.", raw.get()))
    })?;
    id::check_item_id(&id)?;
    Ok(id)
}
