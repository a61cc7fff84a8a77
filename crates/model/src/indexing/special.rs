//! Indexes over several properties, places, vectors and words.
//!
//! | vector index setting     | allowed                                  |
//! |--------------------------|------------------------------------------|
//! | `type`                   | `flat`, `quantizedFlat`, `diskANN`       |
//! | `quantizationByteSize`   | 1 to 512, and not more than dimensions   |
//! | `indexingSearchListSize` | 25 to 500                                |
//! | `vectorIndexShardKey`    | a list of one path                       |

use serde_json::{Map, Value, json};

use super::{COMPOSITE_PATHS_MAX, COMPOSITES_MAX, IndexPath, invalid, read_list, read_path_text};
use crate::error::{Error, Result};
use crate::json::Path;

/// One property of a composite index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompositePath {
    text: String,
    /// The property.
    pub path: Path,
    /// Which way.
    pub order: Order,
}

/// Which way an index goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// From small to large.
    Ascending,
    /// From large to small.
    Descending,
}

/// An index over places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpatialIndex {
    /// Where the places are.
    pub path: IndexPath,
    /// What they are.
    pub types: Vec<SpatialType>,
    /// The plane they lie in, for flat geometry; kept as given.
    pub bounding_box: Option<Value>,
}

/// What a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpatialType {
    /// A point.
    Point,
    /// A line.
    LineString,
    /// A polygon.
    Polygon,
    /// Several polygons.
    MultiPolygon,
}

/// An index over vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorIndex {
    text: String,
    /// Where the vectors are.
    pub path: Path,
    /// How they are indexed.
    pub index_type: VectorIndexType,
    /// The other settings, as given.
    settings: Map<String, Value>,
}

/// How vectors are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorIndexType {
    /// As they are.
    Flat,
    /// Compressed.
    QuantizedFlat,
    /// As a graph.
    DiskAnn,
}

/// An index over words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullTextIndex {
    text: String,
    /// Where the text is.
    pub path: Path,
}

impl CompositePath {
    pub(super) fn to_json(&self) -> Value {
        json!({"path": self.text, "order": self.order.name()})
    }

    fn parse(value: &Value) -> Result<CompositePath> {
        let text = read_path_text(value)?;
        // The end `/?` goes without saying, but may be said.
        let path = Path::parse(text.strip_suffix("/?").unwrap_or(text))?;
        let order = match value.get("order") {
            None | Some(Value::Null) => Order::Ascending,
            Some(Value::String(name)) if name == "ascending" => Order::Ascending,
            Some(Value::String(name)) if name == "descending" => Order::Descending,
            Some(other) => {
                return Err(invalid(format!(
                    "the order {other} is not 'ascending' or 'descending'"
                )));
            }
        };
        Ok(CompositePath { text: text.to_owned(), path, order })
    }
}

impl Order {
    fn name(self) -> &'static str {
        match self {
            Order::Ascending => "ascending",
            Order::Descending => "descending",
        }
    }
}

impl SpatialIndex {
    pub(super) fn to_json(&self) -> Value {
        let types: Value = self.types.iter().map(|kind| kind.name()).collect();
        let mut entry = json!({"path": self.path.text(), "types": types});
        if let (Value::Object(members), Some(bounds)) = (&mut entry, &self.bounding_box) {
            members.insert("boundingBox".to_owned(), bounds.clone());
        }
        entry
    }

    fn parse(value: &Value) -> Result<SpatialIndex> {
        let path = IndexPath::parse(read_path_text(value)?)?;
        let types = match value.get("types") {
            None | Some(Value::Null) => SpatialType::ALL.to_vec(),
            Some(Value::Array(types)) => {
                types.iter().map(SpatialType::parse).collect::<Result<_>>()?
            }
            Some(other) => return Err(invalid(format!("types '{other}' is not a list"))),
        };
        let bounding_box = value.get("boundingBox").filter(|bounds| !bounds.is_null()).cloned();
        Ok(SpatialIndex { path, types, bounding_box })
    }
}

impl SpatialType {
    const ALL: [SpatialType; 4] = [
        SpatialType::Point,
        SpatialType::LineString,
        SpatialType::Polygon,
        SpatialType::MultiPolygon,
    ];

    fn name(self) -> &'static str {
        match self {
            SpatialType::Point => "Point",
            SpatialType::LineString => "LineString",
            SpatialType::Polygon => "Polygon",
            SpatialType::MultiPolygon => "MultiPolygon",
        }
    }

    fn parse(value: &Value) -> Result<SpatialType> {
        let named = |kind: &SpatialType| value.as_str() == Some(kind.name());
        Self::ALL
            .into_iter()
            .find(named)
            .ok_or_else(|| invalid(format!("{value} is not a spatial type")))
    }
}

impl VectorIndex {
    /// Checks this index against the embeddings: (path, dimensions).
    pub fn check(&self, embeddings: &[(Path, u32)]) -> Result<()> {
        let Some((_, dimensions)) = embeddings.iter().find(|(path, _)| *path == self.path) else {
            return Err(Error::bad_request(format!(
                "The Vector Indexing Policy's path::{} not matching in Embedding's path.",
                self.text
            )));
        };
        if self.index_type == VectorIndexType::Flat && *dimensions > FLAT_DIMENSIONS_MAX {
            return Err(Error::bad_request(format!(
                "The vector index of type flat under '{}' has {dimensions} dimensions; at most \
                 {FLAT_DIMENSIONS_MAX} are allowed.",
                self.text
            )));
        }
        let bytes_max = u64::from(*dimensions).min(512);
        self.check_setting("quantizationByteSize", "QuantizationByteSize", 1, bytes_max)?;
        self.check_setting("indexingSearchListSize", "IndexingSearchListSize", 25, 500)
    }

    pub(super) fn to_json(&self) -> Value {
        let mut entry = Map::new();
        entry.insert("path".to_owned(), json!(self.text));
        entry.insert("type".to_owned(), json!(self.index_type.name()));
        entry.extend(self.settings.clone());
        Value::Object(entry)
    }

    fn parse(value: &Value) -> Result<VectorIndex> {
        let text = read_path_text(value)?;
        let path = Path::parse(text)?;
        let index_type = VectorIndexType::parse(value.get("type"))?;
        check_shards(value.get("vectorIndexShardKey"))?;
        let settings =
            value.as_object().into_iter().flatten().filter(|(name, value)| {
                !matches!(name.as_str(), "path" | "type") && !value.is_null()
            });
        let settings = settings.map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(VectorIndex { text: text.to_owned(), path, index_type, settings })
    }

    fn check_setting(&self, name: &str, title: &str, min: u64, max: u64) -> Result<()> {
        match self.settings.get(name) {
            Some(value) if !value.as_u64().is_some_and(|n| (min..=max).contains(&n)) => {
                Err(Error::bad_request(format!(
                    "The Vector Indexing Policy parameter {title} value :: {value} is out of \
                     range. The allowed range is between {min} and {max}."
                )))
            }
            _ => Ok(()),
        }
    }
}

impl VectorIndexType {
    fn name(self) -> &'static str {
        match self {
            VectorIndexType::Flat => "flat",
            VectorIndexType::QuantizedFlat => "quantizedFlat",
            VectorIndexType::DiskAnn => "diskANN",
        }
    }

    fn parse(value: Option<&Value>) -> Result<VectorIndexType> {
        let name = value.and_then(Value::as_str).unwrap_or_default();
        [VectorIndexType::Flat, VectorIndexType::QuantizedFlat, VectorIndexType::DiskAnn]
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| {
                Error::bad_request(format!(
                    "The Vector Indexing Policy's Index Type::{name} is invalid."
                ))
            })
    }
}

impl FullTextIndex {
    /// Checks this index against the paths of the full-text policy.
    pub fn check(&self, paths: &[Path]) -> Result<()> {
        if paths.contains(&self.path) {
            return Ok(());
        }
        Err(invalid(format!(
            "the full-text index path '{}' is not in the full-text policy",
            self.text
        )))
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"path": self.text})
    }

    fn parse(value: &Value) -> Result<FullTextIndex> {
        let text = read_path_text(value)?;
        Ok(FullTextIndex { text: text.to_owned(), path: Path::parse(text)? })
    }
}

/// How many dimensions a vector in a flat index may have.
const FLAT_DIMENSIONS_MAX: u32 = 505;

pub(super) fn read_composites(members: &Map<String, Value>) -> Result<Vec<Vec<CompositePath>>> {
    let composites = read_list(members, "compositeIndexes", read_composite)?;
    if composites.len() > COMPOSITES_MAX {
        return Err(invalid(format!(
            "there are {} composite indexes; {COMPOSITES_MAX} are allowed",
            composites.len()
        )));
    }
    Ok(composites)
}

fn read_composite(value: &Value) -> Result<Vec<CompositePath>> {
    let Value::Array(entries) = value else {
        return Err(invalid(format!("the composite index '{value}' is not a list")));
    };
    if !(2..=COMPOSITE_PATHS_MAX).contains(&entries.len()) {
        return Err(invalid(format!(
            "a composite index has {} paths; 2 to {COMPOSITE_PATHS_MAX} are allowed",
            entries.len()
        )));
    }
    let paths = entries.iter().map(CompositePath::parse).collect::<Result<Vec<_>>>()?;
    for (number, path) in paths.iter().enumerate() {
        if paths.iter().take(number).any(|earlier| earlier.path == path.path) {
            return Err(invalid(format!("the path '{}' is twice in a composite index", path.text)));
        }
    }
    Ok(paths)
}

pub(super) fn read_spatial(members: &Map<String, Value>) -> Result<Vec<SpatialIndex>> {
    let spatial = read_list(members, "spatialIndexes", SpatialIndex::parse)?;
    refuse_twice("spatial", spatial.iter().map(|index| index.path.text()))?;
    Ok(spatial)
}

pub(super) fn read_vectors(members: &Map<String, Value>) -> Result<Vec<VectorIndex>> {
    let vectors = read_list(members, "vectorIndexes", VectorIndex::parse)?;
    refuse_twice("vector", vectors.iter().map(|index| index.text.as_str()))?;
    Ok(vectors)
}

pub(super) fn read_full_texts(members: &Map<String, Value>) -> Result<Vec<FullTextIndex>> {
    let full_texts = read_list(members, "fullTextIndexes", FullTextIndex::parse)?;
    refuse_twice("full-text", full_texts.iter().map(|index| index.text.as_str()))?;
    Ok(full_texts)
}

fn refuse_twice<'a>(what: &str, paths: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for path in paths {
        if !seen.insert(path) {
            return Err(invalid(format!("the {what} index path '{path}' is there twice")));
        }
    }
    if seen.len() > super::PATHS_MAX {
        return Err(invalid(format!("there are {} {what} indexes", seen.len())));
    }
    Ok(())
}

fn check_shards(value: Option<&Value>) -> Result<()> {
    let paths = match value {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(paths)) => paths,
        Some(_) => return Err(Error::bad_request("One of the specified inputs is invalid")),
    };
    if paths.len() > 1 {
        return Err(Error::bad_request(format!(
            "The number of shard paths defined in the Vector Indexing Policy: {} exceeds the \
             maximum: 1.",
            paths.len()
        )));
    }
    for path in paths {
        let text = path.as_str().unwrap_or_default();
        Path::parse(text).map_err(|_| {
            Error::bad_request(format!(
                "The Vector Indexing Policy has an invalid Shard Path: {text}."
            ))
        })?;
    }
    Ok(())
}
