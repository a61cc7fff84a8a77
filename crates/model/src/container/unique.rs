//! Unique keys: what no two items of a logical partition may have in common.
//!
//! Up to 10 constraints of up to 16 paths each. A property that an item does
//! not have counts as null.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::json::Path;
use crate::system::SYSTEM_PROPERTIES;

/// How many constraints a container may have.
const KEYS_MAX: usize = 10;
/// How many paths a constraint may have.
const PATHS_MAX: usize = 16;

/// One constraint: the values under all its paths together are unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueKey {
    /// The paths.
    pub paths: Vec<UniquePath>,
}

/// One path of a constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniquePath {
    text: String,
    /// The property.
    pub path: Path,
}

impl UniqueKey {
    pub(super) fn to_json(&self) -> Value {
        let texts: Vec<&str> = self.paths.iter().map(|path| path.text.as_str()).collect();
        json!({"paths": texts})
    }

    fn parse(value: &Value) -> Result<UniqueKey> {
        let Some(Value::Array(paths)) = value.get("paths") else {
            return Err(invalid(format!("'{value}' has no list of paths")));
        };
        if paths.is_empty() || paths.len() > PATHS_MAX {
            return Err(invalid(format!(
                "a unique key has {} paths; 1 to {PATHS_MAX} are allowed",
                paths.len()
            )));
        }
        let paths = paths.iter().map(UniquePath::parse).collect::<Result<Vec<_>>>()?;
        for (number, path) in paths.iter().enumerate() {
            if paths.iter().take(number).any(|earlier| earlier.path == path.path) {
                return Err(invalid(format!("the path '{}' is twice in a unique key", path.text)));
            }
        }
        Ok(UniqueKey { paths })
    }

    /// The paths in an order of their own, for comparing.
    fn sorted(&self) -> Vec<&[String]> {
        let mut paths: Vec<&[String]> =
            self.paths.iter().map(|path| path.path.segments()).collect();
        paths.sort_unstable();
        paths
    }
}

impl UniquePath {
    fn parse(value: &Value) -> Result<UniquePath> {
        let Value::String(text) = value else {
            return Err(invalid(format!("the path {value} is not a string")));
        };
        let path = Path::parse(text).map_err(|_| {
            Error::bad_request(format!(
                "Error parsing the unique key path '{text}'. Make sure the unique key path does \
                 not contain wildcards and invalid characters."
            ))
        })?;
        if path.segments().first().is_some_and(|name| SYSTEM_PROPERTIES.contains(&name.as_str())) {
            return Err(invalid(format!("the path '{text}' is a system property")));
        }
        Ok(UniquePath { text: text.clone(), path })
    }
}

/// Reads `uniqueKeyPolicy`.
pub(super) fn parse(value: &Value) -> Result<Vec<UniqueKey>> {
    if !value.is_object() {
        return Err(invalid(format!("'{value}' is not an object")));
    }
    let keys = match value.get("uniqueKeys") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(keys)) => keys,
        Some(other) => return Err(invalid(format!("uniqueKeys '{other}' is not a list"))),
    };
    if keys.len() > KEYS_MAX {
        return Err(invalid(format!(
            "there are {} unique keys; {KEYS_MAX} are allowed",
            keys.len()
        )));
    }
    let keys = keys.iter().map(UniqueKey::parse).collect::<Result<Vec<_>>>()?;
    for (number, key) in keys.iter().enumerate() {
        if keys.iter().take(number).any(|earlier| earlier.sorted() == key.sorted()) {
            return Err(invalid(format!("the unique key '{}' is there twice", key.to_json())));
        }
    }
    Ok(keys)
}

/// Whether two policies constrain the same, in whatever order they are given.
pub(super) fn same(old: &[UniqueKey], new: &[UniqueKey]) -> bool {
    let has = |keys: &[UniqueKey], key: &UniqueKey| {
        keys.iter().any(|other| other.sorted() == key.sorted())
    };
    old.len() == new.len() && old.iter().all(|key| has(new, key))
}

fn invalid(reason: String) -> Error {
    Error::bad_request(format!("The unique key policy is invalid: {reason}."))
}
