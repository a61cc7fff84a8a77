//! What a container indexes.
//!
//! | member                            | default                   | rule                                   |
//! |-----------------------------------|---------------------------|----------------------------------------|
//! | `indexingMode`                    | `consistent`              | `consistent`, `lazy`, `none`           |
//! | `automatic`                       | by the mode               | a boolean; read past                   |
//! | `includedPaths`, `excludedPaths`  | `/*`; `/"_etag"/?`        | `/*` in one of them; no path twice;    |
//! |                                   |                           | 1500 together                          |
//! | `compositeIndexes`                | none                      | 100, each with 2 to 8 paths            |
//! | `spatialIndexes`                  | none                      | types of [`SpatialType`]               |
//! | `vectorIndexes`                   | none                      | paths of the embedding policy          |
//! | `fullTextIndexes`                 | none                      | paths of the full-text policy          |
//!
//! `_etag` is excluded unless a policy names it. With mode `none` there are no
//! paths. `automatic` says only whether the mode is another than `none`. `indexes`
//! inside a path is a leftover of an older service: it changes nothing, and is kept
//! for clients that know it.
//!
//! For a value under two paths the longer one decides, and of two equally long
//! ones `/?` before `/*`.

mod path;
pub mod rules;
mod special;
pub mod terms;

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

pub use self::path::{End, IndexPath, Segment, Step, path_text};
pub use self::special::{
    CompositePath, FullTextIndex, Order, SpatialIndex, SpatialType, VectorIndex, VectorIndexType,
};
use crate::error::{Error, Result};

/// How many included and excluded paths there may be together.
pub const PATHS_MAX: usize = 1500;
/// How many composite indexes there may be.
pub const COMPOSITES_MAX: usize = 100;
/// How many paths a composite index may have.
pub const COMPOSITE_PATHS_MAX: usize = 8;

/// When the index is brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexingMode {
    /// With every write.
    Consistent,
    /// As `consistent`; the name is kept.
    Lazy,
    /// Never: there is no index.
    None,
}

/// The `indexingPolicy` of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexingPolicy {
    /// When the index is brought up to date.
    pub mode: IndexingMode,
    /// What is indexed.
    pub included: Vec<IndexPath>,
    /// What is not.
    pub excluded: Vec<IndexPath>,
    /// The `indexes` of included paths that have them, by the path.
    pub kinds: BTreeMap<String, Vec<IndexKind>>,
    /// Indexes over several properties.
    pub composites: Vec<Vec<CompositePath>>,
    /// Indexes over places.
    pub spatial: Vec<SpatialIndex>,
    /// Indexes over vectors.
    pub vectors: Vec<VectorIndex>,
    /// Indexes over words.
    pub full_texts: Vec<FullTextIndex>,
}

/// An entry of `indexes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexKind {
    name: String,
    data_type: String,
    precision: Option<i64>,
}

impl IndexKind {
    fn read(value: &Value) -> Option<IndexKind> {
        let text = |name| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let precision = value.get("precision").and_then(Value::as_i64);
        Some(IndexKind { name: text("kind")?, data_type: text("dataType")?, precision })
    }

    fn to_json(&self) -> Value {
        let mut entry = json!({"kind": self.name, "dataType": self.data_type});
        if let (Some(precision), Value::Object(entry)) = (self.precision, &mut entry) {
            entry.insert("precision".to_owned(), json!(precision));
        }
        entry
    }
}

impl Default for IndexingPolicy {
    fn default() -> Self {
        IndexingPolicy {
            mode: IndexingMode::Consistent,
            included: vec![IndexPath::everything()],
            excluded: vec![IndexPath::etag()],
            kinds: BTreeMap::new(),
            composites: Vec::new(),
            spatial: Vec::new(),
            vectors: Vec::new(),
            full_texts: Vec::new(),
        }
    }
}

impl IndexingPolicy {
    /// Reads `indexingPolicy`.
    pub fn parse(value: &Value) -> Result<IndexingPolicy> {
        let Value::Object(members) = value else {
            return Err(invalid(format!("'{value}' is not an object")));
        };
        let mode = read_mode(members.get("indexingMode"))?;
        match members.get("automatic") {
            None | Some(Value::Null | Value::Bool(_)) => {}
            Some(other) => return Err(invalid(format!("automatic '{other}' is not a boolean"))),
        }
        let (included, excluded) = match mode {
            IndexingMode::None => (Vec::new(), Vec::new()),
            IndexingMode::Consistent | IndexingMode::Lazy => read_paths(members)?,
        };
        Ok(IndexingPolicy {
            mode,
            kinds: read_kinds(members, &included),
            included,
            excluded,
            composites: special::read_composites(members)?,
            spatial: special::read_spatial(members)?,
            vectors: special::read_vectors(members)?,
            full_texts: special::read_full_texts(members)?,
        })
    }

    /// As `indexingPolicy` is written.
    pub fn to_json(&self) -> Value {
        let paths = |paths: &[IndexPath]| -> Value {
            paths.iter().map(|path| json!({"path": path.text()})).collect()
        };
        let included = |path: &IndexPath| match self.kinds.get(path.text()) {
            Some(kinds) => {
                let indexes: Value = kinds.iter().map(IndexKind::to_json).collect();
                json!({"path": path.text(), "indexes": indexes})
            }
            None => json!({"path": path.text()}),
        };
        let composite = |paths: &Vec<CompositePath>| -> Value {
            paths.iter().map(CompositePath::to_json).collect()
        };
        json!({
            "indexingMode": self.mode.name(),
            "automatic": self.mode != IndexingMode::None,
            "includedPaths": self.included.iter().map(included).collect::<Value>(),
            "excludedPaths": paths(&self.excluded),
            "compositeIndexes": self.composites.iter().map(composite).collect::<Value>(),
            "spatialIndexes": self.spatial.iter().map(SpatialIndex::to_json).collect::<Value>(),
            "vectorIndexes": self.vectors.iter().map(VectorIndex::to_json).collect::<Value>(),
            "fullTextIndexes": self.full_texts.iter().map(FullTextIndex::to_json).collect::<Value>(),
        })
    }

    /// Without what changes nothing.
    #[must_use]
    pub fn effective(&self) -> IndexingPolicy {
        IndexingPolicy { kinds: BTreeMap::new(), ..self.clone() }
    }

    /// Whether the scalar under these steps is in the index.
    pub fn is_indexed(&self, steps: &[Step<'_>]) -> bool {
        let best = |paths: &[IndexPath]| {
            paths.iter().filter(|path| path.covers(steps)).map(IndexPath::precision).max()
        };
        best(&self.included) > best(&self.excluded)
    }
}

impl IndexingMode {
    fn name(self) -> &'static str {
        match self {
            IndexingMode::Consistent => "consistent",
            IndexingMode::Lazy => "lazy",
            IndexingMode::None => "none",
        }
    }
}

fn read_mode(value: Option<&Value>) -> Result<IndexingMode> {
    let name = match value {
        None | Some(Value::Null) => return Ok(IndexingMode::Consistent),
        Some(Value::String(name)) => name.as_str(),
        Some(other) => return Err(invalid(format!("the mode '{other}' is not a string"))),
    };
    // Older clients write `Consistent`.
    [IndexingMode::Consistent, IndexingMode::Lazy, IndexingMode::None]
        .into_iter()
        .find(|mode| name.eq_ignore_ascii_case(mode.name()))
        .ok_or_else(|| invalid(format!("the mode '{name}' is not 'consistent', 'lazy' or 'none'")))
}

/// Included and excluded paths.
fn read_paths(members: &Map<String, Value>) -> Result<(Vec<IndexPath>, Vec<IndexPath>)> {
    let mut included = read_list(members, "includedPaths", read_index_path)?;
    let mut excluded = read_list(members, "excludedPaths", read_index_path)?;
    if included.is_empty() && excluded.is_empty() {
        included.push(IndexPath::everything());
    }
    // The path that is added below is not counted, so that a stored policy can
    // be read again.
    let etag = IndexPath::etag().identity();
    let count = included.iter().chain(&excluded).filter(|path| path.identity() != etag).count();
    if count > PATHS_MAX {
        return Err(invalid(format!("there are {count} paths; {PATHS_MAX} are allowed")));
    }
    let mut seen = HashSet::new();
    for path in included.iter().chain(&excluded) {
        if !seen.insert(path.identity()) {
            return Err(invalid(format!("the path '{}' is there twice", path.text())));
        }
    }
    if !seen.contains(&IndexPath::everything().identity()) {
        return Err(Error::bad_request(
            "The special mandatory indexing path \"/*\" is not provided in any of the path type \
             sets. Please provide this path in one of the sets.",
        ));
    }
    if !seen.contains(&etag) {
        excluded.push(IndexPath::etag());
    }
    Ok((included, excluded))
}

/// The `indexes` of the included paths. What is none is read past.
fn read_kinds(
    members: &Map<String, Value>,
    included: &[IndexPath],
) -> BTreeMap<String, Vec<IndexKind>> {
    let given = members.get("includedPaths").and_then(Value::as_array).into_iter().flatten();
    let kinds = included.iter().zip(given).filter_map(|(path, entry)| {
        let kinds: Vec<IndexKind> =
            entry.get("indexes")?.as_array()?.iter().filter_map(IndexKind::read).collect();
        (!kinds.is_empty()).then(|| (path.text().to_owned(), kinds))
    });
    kinds.collect()
}

fn read_index_path(value: &Value) -> Result<IndexPath> {
    IndexPath::parse(read_path_text(value)?)
}

/// The `path` of an entry.
fn read_path_text(value: &Value) -> Result<&str> {
    match value.get("path") {
        Some(Value::String(text)) => Ok(text),
        _ => Err(invalid(format!("'{value}' has no path"))),
    }
}

/// A list of entries; absent is empty.
fn read_list<T>(
    members: &Map<String, Value>,
    name: &str,
    read: impl Fn(&Value) -> Result<T>,
) -> Result<Vec<T>> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(entries)) => entries.iter().map(read).collect(),
        Some(other) => Err(invalid(format!("{name} '{other}' is not a list"))),
    }
}

fn invalid(reason: String) -> Error {
    Error::bad_request(format!("The indexing policy is invalid: {reason}."))
}

#[cfg(test)]
mod tests;
