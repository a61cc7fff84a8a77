//! `computedProperties`: properties that items do not store, but that are
//! computed from what they store. Each has a name and a query.
//!
//! | rule                          |                                              |
//! |-------------------------------|----------------------------------------------|
//! | how many                      | 20                                           |
//! | name                          | each once, 255 bytes; not `id`, none of the  |
//! |                               | system's, not where the partition key starts |
//! | query                         | 4096 bytes; what it may say is judged by     |
//! |                               | those who know the language                  |
//! | spatial, vector and text index| not on a computed property                   |
//!
//! A query that names the partition key is led to its partition by what is
//! stored, so nothing else may have its name.

use serde_json::{Value, json};

use super::ContainerDefinition;
use crate::error::{Error, Result};
use crate::indexing::Segment;
use crate::json::Path;
use crate::system::SYSTEM_PROPERTIES;

/// How many computed properties a container may have.
const COMPUTED_MAX: usize = 20;
/// How long a name may be, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// How long a query may be, in bytes.
const QUERY_BYTES_MAX: usize = 4096;

/// A property that is computed from the others of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputedProperty {
    /// Its name, at the top of an item.
    pub name: String,
    /// `SELECT VALUE <expression> FROM c`
    pub query: String,
}

impl ComputedProperty {
    /// Reads `computedProperties`; absent is empty.
    pub fn read_list(list: Option<&Value>) -> Result<Vec<ComputedProperty>> {
        let entries = match list {
            None => return Ok(Vec::new()),
            Some(Value::Array(entries)) => entries,
            Some(other) => {
                return Err(refused(&format!("'computedProperties' is not a list: {other}.")));
            }
        };
        if entries.len() > COMPUTED_MAX {
            return Err(refused(&format!(
                "the container has {} computed properties, and {COMPUTED_MAX} are allowed.",
                entries.len()
            )));
        }
        let properties = entries.iter().map(Self::read).collect::<Result<Vec<_>>>()?;
        for (number, property) in properties.iter().enumerate() {
            if properties.iter().take(number).any(|earlier| earlier.name == property.name) {
                return Err(Error::in_its_words(format!(
                    "Computed property name '{}' cannot be used in multiple definitions.",
                    property.name
                )));
            }
        }
        Ok(properties)
    }

    fn read(entry: &Value) -> Result<ComputedProperty> {
        let text = |member: &str| match entry.get(member) {
            Some(Value::String(text)) if text.is_empty() => Err(Error::in_its_words(format!(
                "Computed property '{member}' is either empty or unspecified."
            ))),
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(Error::in_its_words("One of the specified inputs is invalid")),
        };
        let property = ComputedProperty { name: text("name")?, query: text("query")? };
        let ComputedProperty { name, query } = &property;
        if name.len() > NAME_BYTES_MAX {
            return Err(property.invalid(&format!("its name has {NAME_BYTES_MAX} bytes at most")));
        }
        if name == "id" || SYSTEM_PROPERTIES.contains(&name.as_str()) {
            return Err(Error::in_its_words(format!(
                "The system property name '{name}' cannot be used as a computed property name."
            )));
        }
        if query.len() > QUERY_BYTES_MAX {
            return Err(property.invalid(&format!("its query has {QUERY_BYTES_MAX} bytes at most")));
        }
        Ok(property)
    }

    /// As it is written.
    pub fn to_json(&self) -> Value {
        json!({"name": self.name, "query": self.query})
    }

    fn invalid(&self, reason: &str) -> Error {
        let name: String = self.name.chars().take(NAME_BYTES_MAX).collect();
        invalid(&name, &format!("{reason}."))
    }
}

/// The error for a computed property that cannot be, with a sentence that says why,
/// where the service has no text of its own for it.
pub fn invalid(name: &str, reason: &str) -> Error {
    refused(&format!("the computed property '{name}' is wrong: {reason}"))
}

/// The service's text for what has none of its own, and our reason.
fn refused(reason: &str) -> Error {
    Error::bad_request(format!("One of the specified inputs is invalid: {reason}"))
}

/// What the computed properties of a container and its other members say about
/// each other.
pub(super) fn check_together(definition: &ContainerDefinition) -> Result<()> {
    for (number, property) in definition.computed.iter().enumerate() {
        let name = property.name.as_str();
        let leads = |path: &Path| path.segments().first().is_some_and(|first| first == name);
        if definition.partition_key.paths.iter().any(leads) {
            return Err(property.invalid("the partition key starts with its name"));
        }
        let indexing = &definition.indexing;
        let first = Segment::Name(name.to_owned());
        if indexing.spatial.iter().any(|index| index.path.segments.first() == Some(&first)) {
            return Err(Error::in_its_words(format!(
                "Computed property '{name}' at index ({number}) has a spatial index. Remove the \
                 spatial index on this path."
            )));
        }
        let has_special = indexing.vectors.iter().any(|index| leads(&index.path))
            || indexing.full_texts.iter().any(|index| leads(&index.path));
        if has_special {
            return Err(property.invalid(
                "it can be in included, excluded and composite paths, and in no other index",
            ));
        }
    }
    Ok(())
}
