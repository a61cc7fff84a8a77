//! Patch: an item changed in parts, by up to ten operations in a row.
//!
//! ```text
//! {"condition": "from c where c.n = 1",
//!  "operations": [{"op": "set", "path": "/a/b", "value": 1},
//!                 {"op": "move", "from": "/a", "path": "/b"}]}
//! ```
//!
//! or the operations alone, as an array. What each of them does depends on what its path
//! leads to:
//!
//! |         | member there | missing    | index < length | = length | `-`      | > length |
//! |---------|--------------|------------|----------------|----------|----------|----------|
//! | add     | replaced     | added      | inserted       | appended | appended | refused  |
//! | set     | replaced     | added      | overwritten    | refused  | appended | refused  |
//! | replace | replaced     | refused    | overwritten    | refused  | refused  | refused  |
//! | remove  | removed      | refused    | removed        | refused  | refused  | refused  |
//! | incr    | added to     | the value  | added to       | refused  | refused  | refused  |
//!
//! `move` removes what is at `from`, and then adds it at `path`. Each operation sees what
//! those before it did, and one that is refused refuses them all.
//!
//! The text of the item is changed in place (`edit.rs`), and not read into values: what no
//! operation names stays as it is, to the byte, and costs a copy.

mod edit;
mod pointer;

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::value::RawValue;

use self::edit::{Edited, Fault};
use self::pointer::Pointer;
use crate::error::{Error, ErrorKind, Result};
use crate::json::{self, ObjectText};
use crate::system::SYSTEM_PROPERTIES;

/// The most operations of a patch.
pub const OPERATIONS_MAX: usize = 10;

/// What nobody but the service changes, besides what it adds to an item.
const ID: &str = "_id";

/// A patch, as far as it can be read without an item.
#[derive(Clone, Debug)]
pub struct Patch {
    operations: Vec<PatchOperation>,
    condition: Option<String>,
}

/// What a patch does in one place. Values are compact text.
#[derive(Clone, Debug)]
enum PatchOperation {
    Add(Pointer, String),
    Set(Pointer, String),
    Replace(Pointer, String),
    Remove(Pointer),
    Increment(Pointer, String),
    Move { from: Pointer, to: Pointer },
}

type Members<'a> = HashMap<String, &'a RawValue>;

impl Patch {
    /// Reads the body of a patch, in text or binary. All that is wrong with it, whatever the
    /// item is, is found here.
    pub fn read(body: &[u8]) -> Result<Patch> {
        if body.len() > json::ITEM_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "Request size is too large: a patch can have at most 2 MB.",
            ));
        }
        let text = json::text_of(body)?;
        if let Ok(operations) = serde_json::from_str(&text) {
            return Ok(Patch { operations: read_all(operations)?, condition: None });
        }
        let members: Members<'_> = serde_json::from_str(&text).map_err(|_| syntax())?;
        let operations = members.get("operations").ok_or_else(syntax)?;
        let operations = serde_json::from_str(operations.get()).map_err(|_| syntax())?;
        let condition = members.get("condition").map(|raw| serde_json::from_str(raw.get()));
        let condition: Option<Option<String>> = condition.transpose().map_err(|_| syntax())?;
        Ok(Patch { operations: read_all(operations)?, condition: condition.flatten() })
    }

    /// What must hold for the item: what follows `SELECT *` in a query.
    pub fn condition(&self) -> Option<&str> {
        self.condition.as_deref()
    }

    /// How many operations it has.
    pub fn operations(&self) -> usize {
        self.operations.len()
    }

    /// About how many bytes it holds.
    pub fn weight(&self) -> usize {
        let condition = self.condition.as_ref().map_or(0, String::len);
        condition + self.operations.iter().map(PatchOperation::weight).sum::<usize>()
    }

    /// The item, after all operations. `item` is compact text, as items are stored.
    pub fn apply(&self, item: &[u8]) -> Result<ObjectText> {
        let mut edited = Edited::new(item);
        for (place, operation) in self.operations.iter().enumerate() {
            operation.apply(&mut edited).map_err(|fault| self.told(place, fault))?;
        }
        // What was put in too deep is found here.
        json::take(&Bytes::from(edited.into_text()), &[])
    }

    /// What was wrong with the operation at `place`, in the words of the service.
    fn told(&self, place: usize, fault: Fault) -> Error {
        let (before, rest) = self.operations.split_at_checked(place).unwrap_or_default();
        let operation = rest.first();
        let sentence = match fault {
            Fault::Parent(name) => format!(
                "{} Operation can only create a child object of an existing node(array or object) \
                 and cannot create path recursively, no path found beyond: '{}'. Learn more: \
                 https://aka.ms/cosmosdbpatchdocs",
                if matches!(operation, Some(PatchOperation::Add(..))) { "Add" } else { "Given" },
                shortened(&name)
            ),
            Fault::Bounds(index) => {
                format!("Index({}) to operate on is out of array bounds", shortened(&index))
            }
            Fault::Index => return syntax(),
            Fault::Absent(name) => {
                let node = format!("Node({})", shortened(&name));
                match operation {
                    Some(PatchOperation::Replace(path, _)) => {
                        let is_taken = before.iter().any(|earlier| earlier.takes_away(path));
                        let how = if is_taken {
                            "has been removed earlier in the transaction."
                        } else {
                            "is absent."
                        };
                        format!("{node} to be replaced {how}")
                    }
                    _ => format!(
                        "{node} to be removed is absent. Note: it may also have been removed \
                         earlier in the transaction."
                    ),
                }
            }
            Fault::NoNumber(name) => format!("Node({}) is not a number.", shortened(&name)),
            Fault::Unreadable => {
                return Error::new(ErrorKind::Internal, "An item's text is not compact JSON.");
            }
        };
        Error::in_its_words(format!("For Operation({}): {sentence}", place + 1))
    }
}

impl PatchOperation {
    fn read(raw: &RawValue) -> Result<PatchOperation> {
        let members: Members<'_> = serde_json::from_str(raw.get()).map_err(|_| syntax())?;
        let text = |name: &str| -> Result<String> {
            let raw = members.get(name).ok_or_else(syntax)?;
            serde_json::from_str(raw.get()).map_err(|_| syntax())
        };
        let pointer = |name: &str| text(name).and_then(|path| Pointer::read(&path));
        // That there is null is another thing than that there is none.
        let value = || -> Result<String> {
            let raw = members.get("value").ok_or_else(syntax)?;
            json::value_text(raw.get()).map_err(|_| syntax())
        };
        let operation = match &*text("op")? {
            "add" => PatchOperation::Add(pointer("path")?, value()?),
            "set" => PatchOperation::Set(pointer("path")?, value()?),
            "replace" => PatchOperation::Replace(pointer("path")?, value()?),
            "remove" => PatchOperation::Remove(pointer("path")?),
            "incr" => {
                let by = value()?;
                edit::sum("0", &by).ok_or_else(syntax)?;
                PatchOperation::Increment(pointer("path")?, by)
            }
            "move" => {
                let (from, to) = (pointer("from")?, pointer("path")?);
                if to.is_within(&from) {
                    return Err(syntax());
                }
                PatchOperation::Move { from, to }
            }
            _ => return Err(syntax()),
        };
        operation.pointers().into_iter().flatten().try_for_each(check_free)?;
        Ok(operation)
    }

    fn pointers(&self) -> [Option<&Pointer>; 2] {
        match self {
            PatchOperation::Add(path, _)
            | PatchOperation::Set(path, _)
            | PatchOperation::Replace(path, _)
            | PatchOperation::Remove(path)
            | PatchOperation::Increment(path, _) => [Some(path), None],
            PatchOperation::Move { from, to } => [Some(from), Some(to)],
        }
    }

    fn weight(&self) -> usize {
        let value = match self {
            PatchOperation::Add(_, value)
            | PatchOperation::Set(_, value)
            | PatchOperation::Replace(_, value)
            | PatchOperation::Increment(_, value) => value.len(),
            PatchOperation::Remove(_) | PatchOperation::Move { .. } => 0,
        };
        value + self.pointers().into_iter().flatten().map(Pointer::weight).sum::<usize>()
    }

    /// Whether what was at `path` is not there after it, or was not at its end.
    fn takes_away(&self, path: &Pointer) -> bool {
        match self {
            PatchOperation::Remove(gone) | PatchOperation::Move { from: gone, .. } => {
                path.is_within(gone)
            }
            _ => false,
        }
    }

    fn apply(&self, edited: &mut Edited) -> Result<(), Fault> {
        match self {
            PatchOperation::Add(path, value) => edited.add(path, value),
            PatchOperation::Set(path, value) => edited.set(path, value),
            PatchOperation::Replace(path, value) => edited.replace(path, value),
            PatchOperation::Remove(path) => edited.remove(path).map(|_| ()),
            PatchOperation::Increment(path, by) => edited.increment(path, by),
            PatchOperation::Move { from, to } => {
                let value = edited.remove(from)?;
                edited.add(to, &value)
            }
        }
    }
}

fn read_all(operations: Vec<&RawValue>) -> Result<Vec<PatchOperation>> {
    if operations.is_empty() {
        return Err(syntax());
    }
    if operations.len() > OPERATIONS_MAX {
        let sentence = format!("The number of patch operations cannot exceed {OPERATIONS_MAX}");
        return Err(Error::in_its_words(sentence));
    }
    operations.into_iter().map(PatchOperation::read).collect()
}

fn check_free(path: &Pointer) -> Result<()> {
    match SYSTEM_PROPERTIES.iter().chain([&ID]).find(|name| path.first() == **name) {
        Some(name) => Err(Error::in_its_words(format!(
            "Invalid patch request: Cannot patch system property {name}."
        ))),
        None => Ok(()),
    }
}

fn syntax() -> Error {
    Error::in_its_words("Invalid patch request: check syntax of patch specification")
}

/// A name, as far as a sentence has room for it.
fn shortened(name: &str) -> &str {
    const CHARACTERS_MAX: usize = 255;
    name.char_indices().nth(CHARACTERS_MAX).and_then(|(end, _)| name.get(..end)).unwrap_or(name)
}

#[cfg(test)]
mod tests;
