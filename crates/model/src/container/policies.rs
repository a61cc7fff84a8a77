//! The policies that are checked and kept: conflicts, places, vectors, words.
//!
//! | vector embedding   | allowed                                   |
//! |--------------------|-------------------------------------------|
//! | `dataType`         | `float32`, `float16`, `int8`, `uint8`     |
//! | `dimensions`       | 1 to 4096                                 |
//! | `distanceFunction` | `cosine`, `euclidean`, `dotproduct`       |
//!
//! `changeFeedPolicy` has a `retentionDuration` in whole minutes; 0, or none, is off.

use serde_json::Value;

use super::ContainerDefinition;
use crate::error::{Error, Result};
use crate::json::Path;

/// What decides conflicts when nobody says.
pub(super) const CONFLICT_PATH: &str = "/_ts";

/// How many dimensions a vector may have.
const DIMENSIONS_MAX: u32 = 4096;

const DATA_TYPES: [&str; 4] = ["float32", "float16", "int8", "uint8"];
const DISTANCE_FUNCTIONS: [&str; 3] = ["cosine", "euclidean", "dotproduct"];
const LANGUAGES: [&str; 7] = ["en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-BR", "pt-PT"];

/// Where places lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Geospatial {
    /// On a globe.
    #[default]
    Geography,
    /// In a plane.
    Geometry,
}

/// A vector that items have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Embedding {
    /// Where it is.
    pub path: Path,
    /// Of what its dimensions are.
    pub data_type: String,
    /// How many there are.
    pub dimensions: u32,
    /// How far two are apart.
    pub distance_function: String,
}

impl Geospatial {
    pub(super) fn name(self) -> &'static str {
        match self {
            Geospatial::Geography => "Geography",
            Geospatial::Geometry => "Geometry",
        }
    }

    pub(super) fn parse(config: Option<&Value>) -> Result<Geospatial> {
        let Some(config) = config else { return Ok(Geospatial::default()) };
        match config.get("type").and_then(Value::as_str) {
            Some("Geography") => Ok(Geospatial::Geography),
            Some("Geometry") => Ok(Geospatial::Geometry),
            _ => Err(Error::bad_request(format!(
                "The geospatialConfig '{config}' is invalid: its type is 'Geography' or 'Geometry'."
            ))),
        }
    }
}

/// For how many minutes a change feed tells every version; `None`: it says so in no way
/// that can be read.
pub(super) fn feed_minutes(policy: &Value) -> Option<u32> {
    let Some(minutes) = policy.get("retentionDuration") else { return Some(0) };
    let minutes = u32::try_from(minutes.as_u64()?).ok()?;
    i32::try_from(minutes).is_ok().then_some(minutes)
}

/// Checks that the retention of a change feed is one.
pub(super) fn check_change_feed(definition: &ContainerDefinition) -> Result<()> {
    match &definition.change_feed_policy {
        Some(policy) if feed_minutes(policy).is_none() => Err(Error::bad_request(format!(
            "The changeFeedPolicy '{policy}' is invalid: its retentionDuration is a whole number \
             of minutes, from 0 to {}.",
            i32::MAX
        ))),
        _ => Ok(()),
    }
}

/// Checks that the places of a plane have their bounds, and those of a globe none.
pub(super) fn check_spatial(definition: &ContainerDefinition) -> Result<()> {
    for index in &definition.indexing.spatial {
        let path = index.path.text();
        if index.types.is_empty() {
            return Err(Error::in_its_words(format!(
                "The spatial data types array cannot be empty. Assign at least one spatial type \
                 for the 'types' array for the path '{path}'."
            )));
        }
        match (definition.geospatial, &index.bounding_box) {
            (Geospatial::Geometry, Some(_)) | (Geospatial::Geography, None) => {}
            (Geospatial::Geometry, None) => {
                return Err(Error::in_its_words(format!(
                    "Required parameter 'boundingBox' for 'Geometry' collection is missing in \
                     spatial path '{path}'"
                )));
            }
            (Geospatial::Geography, Some(_)) => {
                return Err(Error::in_its_words(format!(
                    "Incorrect parameter 'boundingBox' specified for 'Geography' collection in \
                     spatial path '{path}'"
                )));
            }
        }
    }
    Ok(())
}

/// Reads `conflictResolutionPolicy`.
pub(super) fn read_conflict_path(policy: &Value) -> Result<String> {
    let invalid = |reason: &str| {
        Error::bad_request(format!("The conflictResolutionPolicy '{policy}' is invalid: {reason}."))
    };
    match policy.get("mode").and_then(Value::as_str) {
        None => return Err(invalid("it has no mode")),
        Some(mode) if mode.eq_ignore_ascii_case("LastWriterWins") => {}
        Some(mode) if mode.eq_ignore_ascii_case("Custom") => {
            return Err(Error::not_yet("The conflict resolution mode Custom"));
        }
        Some(_) => return Err(invalid("its mode is not 'LastWriterWins' or 'Custom'")),
    }
    match policy.get("conflictResolutionPath") {
        None | Some(Value::Null) => Ok(CONFLICT_PATH.to_owned()),
        Some(Value::String(path)) if path.is_empty() => Ok(CONFLICT_PATH.to_owned()),
        Some(Value::String(path)) => {
            Path::parse(path)?;
            Ok(path.clone())
        }
        Some(_) => Err(invalid("its path is not a string")),
    }
}

/// Reads `vectorEmbeddingPolicy`.
pub(super) fn read_embeddings(policy: Option<&Value>) -> Result<Vec<Embedding>> {
    let Some(policy) = policy else { return Ok(Vec::new()) };
    let embeddings = match policy.get("vectorEmbeddings") {
        None | Some(Value::Null) if policy.is_object() => return Ok(Vec::new()),
        Some(Value::Array(embeddings)) => embeddings,
        _ => return Err(Error::bad_request("One of the specified inputs is invalid")),
    };
    let embeddings = embeddings.iter().map(read_embedding).collect::<Result<Vec<_>>>()?;
    for (number, embedding) in embeddings.iter().enumerate() {
        if embeddings.iter().take(number).any(|earlier| earlier.path == embedding.path) {
            return Err(Error::bad_request(format!(
                "The Vector Embedding Policy has the Path:{} twice.",
                embedding.path
            )));
        }
    }
    Ok(embeddings)
}

fn read_embedding(value: &Value) -> Result<Embedding> {
    let has = |what: String| Error::bad_request(format!("The Vector Embedding Policy has {what}"));
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let path = Path::parse(text("path")).map_err(|_| {
        has(format!(
            "an invalid Path:{}. Specify the correct path for vector properties of your documents.",
            text("path")
        ))
    })?;
    let data_type = text("dataType");
    if !DATA_TYPES.iter().any(|known| known.eq_ignore_ascii_case(data_type)) {
        return Err(has(format!("an invalid DataType:{data_type}.")));
    }
    let distance_function = text("distanceFunction");
    if !DISTANCE_FUNCTIONS.iter().any(|known| known.eq_ignore_ascii_case(distance_function)) {
        return Err(has(format!("an invalid DistanceFunction:{distance_function}.")));
    }
    let dimensions = value.get("dimensions").unwrap_or(&Value::Null);
    if dimensions.as_f64().is_some_and(|number| number > f64::from(DIMENSIONS_MAX)) {
        return Err(has(format!(
            "Dimensions:{dimensions} which is more than the maximum supported value \
             {DIMENSIONS_MAX}."
        )));
    }
    let count = dimensions.as_u64().and_then(|count| u32::try_from(count).ok());
    let count = count.filter(|count| *count > 0);
    Ok(Embedding {
        path,
        data_type: data_type.to_owned(),
        dimensions: count
            .ok_or_else(|| has(format!("Dimensions:{dimensions}; a vector has 1 or more.")))?,
        distance_function: distance_function.to_owned(),
    })
}

/// The paths of `fullTextPolicy`.
pub(super) fn read_full_text_paths(policy: Option<&Value>) -> Result<Vec<Path>> {
    let Some(policy) = policy else { return Ok(Vec::new()) };
    if !policy.is_object() {
        return Err(Error::bad_request("One of the specified inputs is invalid"));
    }
    check_language(policy.get("defaultLanguage"))?;
    let entries = match policy.get("fullTextPaths") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err(Error::bad_request("One of the specified inputs is invalid")),
    };
    let path = |entry: &Value| {
        check_language(entry.get("language"))?;
        let text = entry.get("path").and_then(Value::as_str).unwrap_or_default();
        Path::parse(text).map_err(|_| {
            Error::bad_request(format!("The Full-Text Policy contains an invalid Path: {text}."))
        })
    };
    entries.iter().map(path).collect()
}

fn check_language(value: Option<&Value>) -> Result<()> {
    match value {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(language)) if is_language(language) => Ok(()),
        Some(other) => {
            let shown = other.as_str().map_or_else(|| other.to_string(), ToOwned::to_owned);
            Err(Error::bad_request(format!(
                "The Full Text Policy contains an unsupported language {shown}. Supported \
                 languages are: {}.",
                LANGUAGES.join(", ")
            )))
        }
    }
}

/// A language by its name, or by the number that Windows has for it, which the service
/// does not look at.
fn is_language(text: &str) -> bool {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    LANGUAGES.contains(&text) || is_number
}

/// Vectors can be added and removed, not changed.
pub(super) fn check_vectors_kept(
    old: &ContainerDefinition,
    new: &ContainerDefinition,
) -> Result<()> {
    let refused = |what: &str| {
        Err(Error::bad_request(format!(
            "Paths in existing {what} policy cannot be modified in Collection Replace. They can \
             only be added or removed."
        )))
    };
    for embedding in &new.embeddings {
        let earlier = old.embeddings.iter().find(|earlier| earlier.path == embedding.path);
        if earlier.is_some_and(|earlier| earlier != embedding) {
            return refused("embedding");
        }
    }
    for index in &new.indexing.vectors {
        let earlier = old.indexing.vectors.iter().find(|earlier| earlier.path == index.path);
        if earlier.is_some_and(|earlier| earlier != index) {
            return refused("vector indexing");
        }
    }
    Ok(())
}
