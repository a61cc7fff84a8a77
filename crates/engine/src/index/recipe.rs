//! How the entries of an item are made: an indexing policy, and the computed
//! properties that it may name.
//!
//! The value of a computed property is made from the item's text, like everything
//! else in the index. One that also depends on what the server adds, such as `_ts`,
//! has no entries: it is found by reading items.

use dayfly_model::Timestamp;
use dayfly_model::container::ComputedProperty;
use dayfly_model::indexing::rules::{Computed, Rules};
use dayfly_model::indexing::terms::Terms;
use dayfly_model::indexing::{IndexingMode, IndexingPolicy};
use dayfly_sql::run::Values;
use dayfly_storage::Result;
use serde_json::{Map, Value};

use super::unreadable;
use crate::catalog;

/// How the entries of an item are made.
#[derive(Debug)]
pub(crate) struct Recipe {
    policy: IndexingPolicy,
    computed: Vec<ComputedProperty>,
    rules: Rules,
    /// The computed properties that have entries.
    values: Values,
}

/// Two that make the same entries of all items.
impl PartialEq for Recipe {
    fn eq(&self, other: &Recipe) -> bool {
        (&self.policy, &self.computed) == (&other.policy, &other.computed)
    }
}

impl Recipe {
    /// The recipe of a policy and computed properties, which were checked before.
    pub(super) fn new(
        policy: &IndexingPolicy,
        computed: &[ComputedProperty],
    ) -> dayfly_model::Result<Recipe> {
        let policy = IndexingPolicy {
            mode: match policy.mode {
                IndexingMode::None => IndexingMode::None,
                IndexingMode::Consistent | IndexingMode::Lazy => IndexingMode::Consistent,
            },
            spatial: Vec::new(),
            vectors: Vec::new(),
            full_texts: Vec::new(),
            ..policy.clone()
        };
        let read = catalog::computed(computed)?;
        let names = computed.iter().map(|property| Computed {
            name: &property.name,
            has_entries: !read.reads_system(&property.name),
        });
        let rules = Rules::with_computed(&policy, &names.collect::<Vec<_>>());
        let names = computed.iter().map(|property| property.name.as_str());
        let wanted: Vec<&str> = names.filter(|name| rules.looks_at(name)).collect();
        let values = Values::new(&read, &wanted)?;
        Ok(Recipe { policy, computed: computed.to_vec(), rules, values })
    }

    /// Reads what [`Recipe::to_json`] wrote.
    pub(super) fn read(value: &Value) -> Option<Recipe> {
        let policy = IndexingPolicy::parse(value.get("policy")?).ok()?;
        let computed = ComputedProperty::read_list(value.get("computed")).ok()?;
        Recipe::new(&policy, &computed).ok()
    }

    pub(super) fn to_json(&self) -> Map<String, Value> {
        let computed: Value = self.computed.iter().map(ComputedProperty::to_json).collect();
        let computed = (!self.computed.is_empty()).then_some(("computed", computed));
        let members = [("policy", self.policy.to_json())].into_iter().chain(computed);
        members.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Which values have entries.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whether the property `name` is the same to these definitions as it is here:
    /// computed in the same way, or stored.
    pub(super) fn agrees(&self, name: &str, computed: &[ComputedProperty]) -> bool {
        let named = |property: &&ComputedProperty| property.name == name;
        self.computed.iter().find(named) == computed.iter().find(named)
    }

    /// What the item with this text has in the index, if `ts` is its `_ts`.
    pub(super) fn terms(&self, text: &[u8], ts: Timestamp) -> Result<Terms> {
        let text = str::from_utf8(text).map_err(|_| unreadable())?;
        Terms::of(text, ts, &self.values.of(text), &self.rules).map_err(|_| unreadable())
    }
}
