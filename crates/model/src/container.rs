//! What a container is: how it is partitioned, what it indexes, how long its
//! items live.
//!
//! | member                                     | absent                       | may change |
//! |--------------------------------------------|------------------------------|------------|
//! | `id`                                       | refused                      | no         |
//! | `partitionKey`                             | `/_partitionKey`, system key | no         |
//! | `indexingPolicy`                           | everything but `_etag`       | yes        |
//! | `uniqueKeyPolicy`                          | none                         | no         |
//! | `conflictResolutionPolicy`                 | last writer wins by `/_ts`   | no         |
//! | `geospatialConfig`                         | `Geography`                  | yes        |
//! | `defaultTtl`, `analyticalStorageTtl`       | off                          | yes        |
//! | `ttlPropertyPath`                          | lives are counted from `_ts` | yes        |
//! | `vectorEmbeddingPolicy`                    | none                         | added to   |
//! | `fullTextPolicy`, `changeFeedPolicy`,      | none                         | yes        |
//! | `computedProperties`                       |                              |            |
//! | `clientEncryptionPolicy`                   | none                         | no         |
//!
//! `null` counts as absent. In a replacement, what is absent and cannot change
//! stays as it is: clients leave it out. A default time to live needs an
//! index. Members that nobody knows, system properties among them, are read
//! past.

mod computed;
mod encryption;
mod policies;
mod unique;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

pub use self::computed::{ComputedProperty, invalid as invalid_computed};
pub use self::policies::{Embedding, Geospatial};
pub use self::unique::{UniqueKey, UniquePath};
use crate::database;
use crate::error::{Error, Result};
use crate::indexing::{IndexingMode, IndexingPolicy};
use crate::json::{self, Lookup, ObjectText, Path};
use crate::partition_key::PartitionKeyDefinition;
use crate::ttl::{self, ContainerTtl, TTL_MAX};

/// How deep a policy may be that is only stored.
pub(crate) const POLICY_DEPTH_MAX: usize = 32;

/// A container's definition, checked and with its defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerDefinition {
    /// Its name.
    pub id: String,
    /// How it is partitioned.
    pub partition_key: PartitionKeyDefinition,
    /// What it indexes.
    pub indexing: IndexingPolicy,
    /// What no two items of a logical partition may have in common.
    pub unique_keys: Vec<UniqueKey>,
    /// The property whose greater value wins a conflict.
    pub conflict_path: String,
    /// Whether places lie on a globe or in a plane.
    pub geospatial: Geospatial,
    /// How long items live.
    pub ttl: ContainerTtl,
    /// The property that lives are counted from; `_ts` without one.
    pub ttl_path: Option<Path>,
    /// How long an analytical store would keep items; -1 for ever.
    pub analytical_ttl: Option<i64>,
    /// What is computed from the properties of items.
    pub computed: Vec<ComputedProperty>,
    /// The vectors that items have.
    pub embeddings: Vec<Embedding>,
    /// `vectorEmbeddingPolicy`, as given.
    vector_embedding_policy: Option<Value>,
    /// `fullTextPolicy`, as given.
    full_text_policy: Option<Value>,
    /// `clientEncryptionPolicy`, as given.
    client_encryption_policy: Option<Value>,
    /// `changeFeedPolicy`, as given.
    change_feed_policy: Option<Value>,
}

/// Reads the body that creates a container. `strict` refuses a `defaultTtl` of
/// null. The encryption policy is checked by who knows the keys
/// ([`ContainerDefinition::check_encryption`]).
pub fn parse(body: &[u8], strict: bool) -> Result<ContainerDefinition> {
    let new = read(body, strict, None)?;
    new.partition_key.check_new()?;
    policies::check_change_feed(&new)?;
    policies::check_spatial(&new)?;
    Ok(new)
}

/// Reads the body that replaces the container `old`, and checks that it may.
pub fn parse_replacement(
    old: &ContainerDefinition,
    body: &[u8],
    strict: bool,
) -> Result<ContainerDefinition> {
    let mut new = read(body, strict, Some(old))?;
    check_replacement(old, &new)?;
    // What was taken before this was checked is in nobody's way.
    if new.change_feed_policy != old.change_feed_policy {
        policies::check_change_feed(&new)?;
    }
    if (new.geospatial, &new.indexing.spatial) != (old.geospatial, &old.indexing.spatial) {
        policies::check_spatial(&new)?;
    }
    // The same in another spelling or order stays as it was: items are stored
    // by it.
    new.partition_key = old.partition_key.clone();
    new.unique_keys.clone_from(&old.unique_keys);
    Ok(new)
}

/// Checks that `new` may take the place of `old`.
pub fn check_replacement(old: &ContainerDefinition, new: &ContainerDefinition) -> Result<()> {
    let fixed = |what: &str, same: bool| {
        let refused = || {
            Error::bad_request(format!("The {what} of container '{}' cannot be changed.", old.id))
        };
        if same { Ok(()) } else { Err(refused()) }
    };
    let (old_key, new_key) = (&old.partition_key, &new.partition_key);
    let same_key = (&old_key.paths, old_key.kind, old_key.version)
        == (&new_key.paths, new_key.kind, new_key.version);
    fixed("id", old.id == new.id)?;
    fixed("partition key", same_key)?;
    fixed("unique key policy", unique::same(&old.unique_keys, &new.unique_keys))?;
    fixed("conflict resolution policy", old.conflict_path == new.conflict_path)?;
    encryption::check_kept(
        old.client_encryption_policy.as_ref(),
        new.client_encryption_policy.as_ref(),
    )?;
    policies::check_vectors_kept(old, new)
}

impl ContainerDefinition {
    /// The second that the life of an item is counted from, if that is not its write.
    pub fn ttl_base(&self, item: &(impl Lookup + ?Sized)) -> Option<i64> {
        ttl::base(item.at(self.ttl_path.as_ref()?))
    }

    /// For how many minutes every version of its items is told, and how it ended, if the
    /// definition says so; 0: not at all.
    pub fn feed_minutes(&self) -> Option<u32> {
        let policy = self.change_feed_policy.as_ref()?;
        Some(policies::feed_minutes(policy).unwrap_or_default())
    }

    /// As the definition is written, without system properties.
    pub fn to_json(&self) -> Map<String, Value> {
        let conflict = json!({
            "mode": "LastWriterWins",
            "conflictResolutionPath": self.conflict_path,
            "conflictResolutionProcedure": "",
        });
        let unique: Value = self.unique_keys.iter().map(UniqueKey::to_json).collect();
        let unique = (!self.unique_keys.is_empty()).then(|| json!({"uniqueKeys": unique}));
        let computed: Value = self.computed.iter().map(ComputedProperty::to_json).collect();
        let computed = (!self.computed.is_empty()).then_some(computed);
        let members = [
            ("id", Some(json!(self.id))),
            ("partitionKey", Some(self.partition_key.to_json())),
            ("indexingPolicy", Some(self.indexing.to_json())),
            ("uniqueKeyPolicy", unique),
            ("conflictResolutionPolicy", Some(conflict)),
            ("geospatialConfig", Some(json!({"type": self.geospatial.name()}))),
            ("defaultTtl", self.ttl.to_json().map(Value::from)),
            ("ttlPropertyPath", self.ttl_path.as_ref().map(|path| json!(path.to_string()))),
            ("analyticalStorageTtl", self.analytical_ttl.map(Value::from)),
            ("vectorEmbeddingPolicy", self.vector_embedding_policy.clone()),
            ("fullTextPolicy", self.full_text_policy.clone()),
            ("clientEncryptionPolicy", self.client_encryption_policy.clone()),
            ("changeFeedPolicy", self.change_feed_policy.clone()),
            ("computedProperties", computed),
        ];
        let present =
            members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        present.collect()
    }
}

/// Stored as it is shown.
impl Serialize for ContainerDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContainerDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        read(value.to_string().as_bytes(), false, None).map_err(serde::de::Error::custom)
    }
}

/// What dayfly does not do yet, and would do silently wrong.
const NOT_YET: [(&str, &str); 2] = [
    ("materializedViewDefinition", "A materialized view"),
    ("globalSecondaryIndexDefinition", "A global secondary index"),
];

fn read(
    body: &[u8],
    strict: bool,
    old: Option<&ContainerDefinition>,
) -> Result<ContainerDefinition> {
    let object = json::parse(body, &[])?;
    let id = database::read_id(&object)?;
    let member = |name: &str| read_member(&object, name);
    for (name, feature) in NOT_YET {
        if member(name)?.is_some_and(|value| value != json!([])) {
            return Err(Error::not_yet(feature));
        }
    }
    let partition_key = match (member("partitionKey")?, old) {
        (Some(value), _) => PartitionKeyDefinition::parse(&value)?,
        (None, Some(old)) => old.partition_key.clone(),
        (None, None) => PartitionKeyDefinition::system(),
    };
    let unique_keys = match (member("uniqueKeyPolicy")?, old) {
        (Some(value), _) => unique::parse(&value)?,
        (None, Some(old)) => old.unique_keys.clone(),
        (None, None) => Vec::new(),
    };
    let conflict_path = match (member("conflictResolutionPolicy")?, old) {
        (Some(value), _) => policies::read_conflict_path(&value)?,
        (None, Some(old)) => old.conflict_path.clone(),
        (None, None) => policies::CONFLICT_PATH.to_owned(),
    };
    let indexing = match member("indexingPolicy")? {
        Some(value) => IndexingPolicy::parse(&value)?,
        None => IndexingPolicy::default(),
    };
    let vector_embedding_policy = member("vectorEmbeddingPolicy")?;
    let full_text_policy = member("fullTextPolicy")?;
    let definition = ContainerDefinition {
        id,
        partition_key,
        indexing,
        unique_keys,
        conflict_path,
        geospatial: Geospatial::parse(member("geospatialConfig")?.as_ref())?,
        ttl: ContainerTtl::parse(object.get("defaultTtl"), strict)?,
        ttl_path: read_ttl_path(member("ttlPropertyPath")?.as_ref())?,
        analytical_ttl: read_analytical_ttl(member("analyticalStorageTtl")?.as_ref())?,
        computed: ComputedProperty::read_list(member("computedProperties")?.as_ref())?,
        embeddings: policies::read_embeddings(vector_embedding_policy.as_ref())?,
        vector_embedding_policy,
        full_text_policy,
        client_encryption_policy: object_member(&object, "clientEncryptionPolicy")?,
        change_feed_policy: object_member(&object, "changeFeedPolicy")?,
    };
    check_together(&definition)?;
    check_depth(&definition)?;
    Ok(definition)
}

/// What is only stored must not be deeper than what can be read again.
fn check_depth(definition: &ContainerDefinition) -> Result<()> {
    let stored = [
        &definition.vector_embedding_policy,
        &definition.full_text_policy,
        &definition.client_encryption_policy,
        &definition.change_feed_policy,
    ];
    if stored.into_iter().flatten().any(|value| depth(value) > POLICY_DEPTH_MAX) {
        return Err(Error::bad_request(format!(
            "A policy of the container has more than {POLICY_DEPTH_MAX} levels."
        )));
    }
    Ok(())
}

pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// What one member says about another.
fn check_together(definition: &ContainerDefinition) -> Result<()> {
    let indexing = &definition.indexing;
    if indexing.mode == IndexingMode::None && definition.ttl.is_on() {
        return Err(Error::bad_request(
            "Indexing mode value cannot be 'none' when 'defaultTtl' is specified in the collection",
        ));
    }
    if definition.ttl_path.is_some() && !definition.ttl.is_on() {
        return Err(Error::bad_request(
            "A 'ttlPropertyPath' can be specified only together with a 'defaultTtl'.",
        ));
    }
    let embeddings: Vec<(Path, u32)> = definition
        .embeddings
        .iter()
        .map(|embedding| (embedding.path.clone(), embedding.dimensions))
        .collect();
    indexing.vectors.iter().try_for_each(|index| index.check(&embeddings))?;
    let texts = policies::read_full_text_paths(definition.full_text_policy.as_ref())?;
    indexing.full_texts.iter().try_for_each(|index| index.check(&texts))?;
    computed::check_together(definition)
}

/// A member that is there and not null.
fn read_member(object: &ObjectText, name: &str) -> Result<Option<Value>> {
    let Some(raw) = object.get(name) else { return Ok(None) };
    let value: Value = serde_json::from_str(raw.get()).map_err(|error| {
        Error::bad_request(format!("The container's '{name}' is invalid: {error}."))
    })?;
    Ok(Some(value).filter(|value| !value.is_null()))
}

/// A member that is an object, kept as it is.
fn object_member(object: &ObjectText, name: &str) -> Result<Option<Value>> {
    match read_member(object, name)? {
        Some(value) if !value.is_object() => {
            Err(Error::bad_request(format!("The container's '{name}' is not an object: {value}.")))
        }
        other => Ok(other),
    }
}

fn read_ttl_path(value: Option<&Value>) -> Result<Option<Path>> {
    match value {
        None => Ok(None),
        Some(Value::String(path)) => Path::parse(path).map(Some),
        Some(other) => Err(Error::bad_request(format!(
            "The container's 'ttlPropertyPath' is not a string: {other}."
        ))),
    }
}

/// -1 and 1 up; 0 is off, and shown.
fn read_analytical_ttl(value: Option<&Value>) -> Result<Option<i64>> {
    let Some(value) = value else { return Ok(None) };
    match value.as_i64() {
        Some(ttl) if (-1..=i64::from(TTL_MAX)).contains(&ttl) => Ok(Some(ttl)),
        _ => Err(Error::bad_request(format!(
            "The input analyticalStorageTtl '{value}' is invalid. Ensure to provide a nonzero \
             positive integer less than or equal to '{TTL_MAX}', or '-1' which means never expire."
        ))),
    }
}

#[cfg(test)]
mod tests;
