//! Which indexing policy the entries of an item follow.
//!
//! Each bucket has a row with the policy that new versions follow. While a change
//! of the policy is under way, the row also says what came before, and until
//! which version; and a second row says how far the rebuild has come, which walks
//! the feed from its beginning:
//!
//! ```text
//! versions    1 ........ done ........ until ............
//!             | rebuilt  | not yet     | written since   |
//! follow        new        old           new
//! ```
//!
//! Nothing new appears in the feed behind its end, so the policy of an item is a
//! function of its version, whatever is written beside the rebuild. A change that
//! comes before the last one is done adds what is there to what came before, and
//! starts anew.
//!
//! A path can be used by queries when all of these policies index it, and all mean
//! the same by it: a computed property of another definition is another one.

use std::sync::Arc;

use bytes::Bytes;
use dayfly_model::container::{ComputedProperty, ContainerDefinition};
use dayfly_model::indexing::Step;
use dayfly_model::indexing::rules::Composite;
use dayfly_storage::{Batch, Bucket, Error, Result, Stamp, View};
use serde_json::{Value, json};

use super::rebuild::RebuildLine;
use super::{Indexed, Recipe, Source};
use crate::keys;
use crate::lives::Lives;
use crate::record::Record;
use crate::version;

/// How many buckets' policies are kept ready.
const CACHE_BUCKETS: usize = 10_000;

/// How many stretches of old versions there may be in a bucket. A change adds one,
/// or two if the one before has begun.
const STRETCHES_MAX: usize = 32;

/// Reads a row of a bucket.
pub(crate) type Get<'a> = &'a dyn Fn(&[u8]) -> Result<Option<Bytes>>;

/// The policies of all buckets, and which of them change.
pub(crate) struct Index {
    known: quick_cache::sync::Cache<Bucket, (Bytes, Arc<Policies>)>,
    /// The buckets that may have to be rebuilt.
    pub(crate) line: RebuildLine,
}

impl Default for Index {
    fn default() -> Self {
        let known = quick_cache::sync::Cache::new(CACHE_BUCKETS);
        Index { known, line: RebuildLine::default() }
    }
}

impl Index {
    /// The policies of `bucket`.
    pub(crate) fn policies(&self, bucket: Bucket, get: Get<'_>) -> Result<Arc<Policies>> {
        let row = get(&keys::index_policies())?.ok_or_else(damaged)?;
        if let Some((known, policies)) = self.known.get(&bucket)
            && known == row
        {
            return Ok(policies);
        }
        let policies = Arc::new(Policies::decode(&row)?);
        self.known.insert(bucket, (row, Arc::clone(&policies)));
        Ok(policies)
    }
}

/// The policies that the entries of a bucket follow.
#[derive(Clone, Debug)]
pub(crate) struct Policies {
    newest: Arc<Recipe>,
    /// What came before, by the last version that follows it.
    old: Vec<(u64, Arc<Recipe>)>,
}

impl Policies {
    fn settled(newest: Arc<Recipe>) -> Policies {
        Policies { newest, old: Vec::new() }
    }

    fn decode(row: &[u8]) -> Result<Policies> {
        Self::read(row).ok_or_else(damaged)
    }

    fn read(row: &[u8]) -> Option<Policies> {
        let row: Value = serde_json::from_slice(row).ok()?;
        let recipe = |value: &Value| Recipe::read(value).map(Arc::new);
        let old = row.get("before")?.as_array()?.iter();
        let old = old.map(|old| Some((old.get("until")?.as_u64()?, recipe(old)?)));
        Some(Policies { newest: recipe(&row)?, old: old.collect::<Option<_>>()? })
    }

    fn encode(&self) -> Vec<u8> {
        let old = |(until, recipe): &(u64, Arc<Recipe>)| {
            let mut old = recipe.to_json();
            old.insert("until".to_owned(), json!(until));
            Value::Object(old)
        };
        let mut row = self.newest.to_json();
        row.insert("before".to_owned(), self.old.iter().map(old).collect());
        Value::Object(row).to_string().into_bytes()
    }

    /// Whether no change is under way.
    pub(crate) fn is_settled(&self) -> bool {
        self.old.is_empty()
    }

    /// Whether another change would be one too many.
    pub(crate) fn is_crowded(&self) -> bool {
        self.old.len() + 2 > STRETCHES_MAX
    }

    /// What new versions follow.
    pub(crate) fn newest(&self) -> &Arc<Recipe> {
        &self.newest
    }

    /// The last version that does not follow the newest policy from the start.
    pub(super) fn until(&self) -> u64 {
        self.old.last().map_or(0, |(until, _)| *until)
    }

    /// The last version that was rebuilt.
    pub(crate) fn done(&self, get: Get<'_>) -> Result<u64> {
        if self.is_settled() {
            return Ok(0);
        }
        let Some(row) = get(&keys::index_rebuilt())? else { return Ok(0) };
        let done = row.as_ref().try_into().map_err(|_| damaged())?;
        Ok(u64::from_be_bytes(done))
    }

    /// What the entries of a version follow, with all rebuilt up to `done`.
    pub(crate) fn recipe_of(&self, version: u64, done: u64) -> &Arc<Recipe> {
        let old = self.old.iter().find(|(until, _)| version <= *until);
        match old {
            Some((_, old)) if version > done => old,
            _ => self.newest(),
        }
    }

    /// What a stored item has in the index.
    pub(crate) fn of_stored(&self, record: &Record, get: Get<'_>) -> Result<Indexed> {
        Source::of(record).by(self.recipe_of(record.version, self.done(get)?), record.ts)
    }

    /// Notes that everything up to `to` was rebuilt.
    pub(super) fn rebuilt(&self, to: u64, batch: &mut Batch) {
        if to < self.until() {
            batch.put(keys::index_rebuilt(), to.to_be_bytes().to_vec());
        } else {
            batch.put(keys::index_policies(), Policies::settled(self.newest.clone()).encode());
            batch.delete(keys::index_rebuilt());
        }
    }

    /// How far the rebuild has come, in percent.
    pub(crate) fn progress(&self, done: u64) -> u8 {
        let percent = (u128::from(done) * 100).checked_div(u128::from(self.until()));
        percent.map_or(100, |percent| u8::try_from(percent).unwrap_or(99).min(99))
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Recipe>> {
        self.old.iter().map(|(_, old)| old).chain([self.newest()])
    }

    /// Whether all items that are in the index have their entries for what
    /// stands under these steps, in a container with these computed properties.
    pub(super) fn has_all_of(&self, steps: &[Step<'_>], computed: &[ComputedProperty]) -> bool {
        let Some(Step::Name(first)) = steps.first() else { return false };
        self.all().all(|by| by.rules().is_indexed(steps) && by.agrees(first, computed))
    }

    /// The composite indexes with all their entries, in a container with these
    /// computed properties.
    pub(super) fn composites(&self, computed: &[ComputedProperty]) -> Vec<Composite> {
        let agree = |by: &Recipe, composite: &Composite| {
            let mut firsts =
                composite.members.iter().filter_map(|(path, _)| path.segments().first());
            firsts.all(|first| by.agrees(first, computed))
        };
        let has = |composite: &&Composite| {
            self.all().all(|by| by.rules().composites().contains(composite) && agree(by, composite))
        };
        self.newest().rules().composites().iter().filter(has).cloned().collect()
    }
}

fn damaged() -> Error {
    Error::Corrupt("the indexing policy of a bucket".to_owned())
}

/// A bucket gets another indexing policy.
pub(crate) struct PolicyChange {
    newest: Arc<Recipe>,
    before: Option<(Policies, u64)>,
}

impl PolicyChange {
    /// What changes when a bucket gets the policy of `definition`; `None`: nothing.
    pub(crate) fn of(
        definition: &ContainerDefinition,
        view: &View<'_>,
    ) -> Result<Option<PolicyChange>> {
        let get = |key: &[u8]| view.get(key);
        let newest = Recipe::new(&definition.indexing.effective(), &definition.computed);
        let newest = Arc::new(newest.map_err(|_| damaged())?);
        let Some(row) = get(&keys::index_policies())? else {
            return Ok(Some(PolicyChange { newest, before: None }));
        };
        let policies = Policies::decode(&row)?;
        if policies.newest == newest {
            return Ok(None);
        }
        let get_many = |keys: &[&[u8]]| view.get_many(keys);
        if Lives::new(&get_many).items(0)? == 0 {
            return Ok(Some(PolicyChange { newest, before: None }));
        }
        let done = policies.done(&get)?;
        Ok(Some(PolicyChange { newest, before: Some((policies, done)) }))
    }

    /// Writes the change, which is the commit `stamp`: what came before it
    /// follows what came before.
    pub(crate) fn write(self, stamp: Stamp, batch: &mut Batch) {
        let Some((before, done)) = self.before else {
            batch.put(keys::index_policies(), Policies::settled(self.newest).encode());
            return batch.delete(keys::index_rebuilt());
        };
        let until = version::version(stamp, 0).saturating_sub(1);
        let mut old = Vec::with_capacity(before.old.len() + 2);
        if done > 0 {
            old.push((done, before.newest.clone()));
        }
        old.extend(before.old.into_iter().filter(|(until, _)| *until > done));
        old.push((until, before.newest));
        batch.put(keys::index_policies(), Policies { newest: self.newest, old }.encode());
        batch.delete(keys::index_rebuilt());
    }
}

#[cfg(test)]
mod tests {
    use dayfly_model::indexing::IndexingPolicy;

    use super::*;

    fn policy(name: &str) -> IndexingPolicy {
        let json = json!({
            "includedPaths": [{"path": format!("/{name}/?")}, {"path": "/common/?"}],
            "excludedPaths": [{"path": "/*"}],
            "compositeIndexes": [[{"path": "/x"}, {"path": format!("/{name}")}], [{"path": "/x"}, {"path": "/y"}]],
        });
        IndexingPolicy::parse(&json).unwrap()
    }

    /// The policies after a change to `to` in the commit `lsn`.
    fn changed(before: Option<(Policies, u64)>, to: &str, lsn: u64) -> Policies {
        let mut batch = Batch::default();
        let newest = Arc::new(Recipe::new(&policy(to), &[]).unwrap());
        let change = PolicyChange { newest, before };
        change.write(Stamp { lsn, ts: 1, opened: 1 }, &mut batch);
        let (key, row) = batch.rows().next().unwrap();
        assert_eq!(key, keys::index_policies());
        Policies::decode(row.unwrap()).unwrap()
    }

    /// The policy of the first version of each commit, by name.
    fn followed(policies: &Policies, lsns: std::ops::Range<u64>, done: u64) -> String {
        let of = |lsn: u64| {
            let rules = policies.recipe_of(lsn << 12 | 1, done).rules();
            ["a", "b", "c"].into_iter().find(|name| rules.is_indexed(&[Step::Name(name)])).unwrap()
        };
        lsns.map(of).collect()
    }

    #[test]
    fn the_version_says_which_policy_an_item_follows() {
        let at = |lsn: u64| lsn << 12 | 1;
        let first = changed(None, "a", 1);
        assert_eq!(followed(&first, 1..4, 0), "aaa");
        let second = changed(Some((first, 0)), "b", 5);
        assert_eq!(followed(&second, 1..8, 0), "aaaabbb");
        assert_eq!(followed(&second, 1..8, at(2)), "bbaabbb");
        assert!(Arc::ptr_eq(second.recipe_of(5 << 12, 0), second.newest()));
        let third = changed(Some((second.clone(), at(2))), "c", 8);
        assert_eq!(followed(&third, 1..10, 0), "bbaabbbcc");
        assert_eq!(followed(&third, 1..10, at(3)), "cccabbbcc");
        let back = changed(Some((second, at(2))), "a", 8);
        assert_eq!(followed(&back, 1..10, 0), "bbaabbbaa");
        let fourth = changed(Some((third, at(3))), "b", 9);
        assert_eq!(followed(&fourth, 1..11, 0), "cccabbbcbb");
    }

    #[test]
    fn what_all_policies_have_can_be_used() {
        let first = changed(None, "a", 1);
        let second = changed(Some((first.clone(), 0)), "b", 5);
        for (name, before, during) in
            [("a", true, false), ("b", false, false), ("common", true, true), ("id", true, true)]
        {
            assert_eq!(first.has_all_of(&[Step::Name(name)], &[]), before, "{name}");
            assert_eq!(second.has_all_of(&[Step::Name(name)], &[]), during, "{name}");
        }
        assert_eq!((first.composites(&[]).len(), second.composites(&[]).len()), (2, 1));
    }

    /// The catalog may be ahead of a bucket, too.
    #[test]
    fn what_all_mean_alike_can_be_used() {
        let defined = |query: &str| {
            let list = json!([{"name": "x", "query": format!("SELECT VALUE {query} FROM c")}]);
            ComputedProperty::read_list(Some(&list)).unwrap()
        };
        let (one, two, none) = (defined("c.a"), defined("c.b"), Vec::new());
        let recipe = |computed: &[ComputedProperty]| {
            let json = json!({
                "includedPaths": [{"path": "/*"}, {"path": "/x/?"}],
                "compositeIndexes": [[{"path": "/x"}, {"path": "/y"}], [{"path": "/y"}, {"path": "/z"}]],
            });
            let policy = IndexingPolicy::parse(&json).unwrap();
            Arc::new(Recipe::new(&policy, computed).unwrap())
        };
        for (old, newest, catalog, is_usable) in [
            (None, &one, &one, true),
            (None, &one, &two, false),
            (None, &one, &none, false),
            (None, &none, &one, false),
            (Some(&one), &one, &one, true),
            (Some(&one), &two, &two, false),
            (Some(&two), &one, &two, false),
            (Some(&none), &one, &one, false),
            (Some(&one), &none, &none, false),
        ] {
            let old = old.map(|old| (1, recipe(old))).into_iter().collect();
            let policies = Policies { newest: recipe(newest), old };
            let policies = Policies::decode(&policies.encode()).unwrap();
            assert_eq!(policies.has_all_of(&[Step::Name("x")], catalog), is_usable);
            assert!(policies.has_all_of(&[Step::Name("y")], catalog));
            assert_eq!(policies.composites(catalog).len(), 1 + usize::from(is_usable));
        }
    }

    #[test]
    fn progress_is_100_at_the_end_only() {
        let first = changed(None, "a", 1);
        assert_eq!(first.progress(0), 100);
        let second = changed(Some((first, 0)), "b", 101);
        for (lsn, percent) in [(0, 0), (50, 49), (100, 99)] {
            assert_eq!(second.progress(lsn << 12), percent, "{lsn}");
        }
        assert_eq!(second.progress(second.until()), 99);
    }

    #[test]
    fn a_damaged_row_is_told() {
        for row in [&b"?"[..], b"{}", br#"{"policy":{},"before":[{}]}"#] {
            assert!(Policies::decode(row).is_err());
        }
        let none = |_: &[u8]| Ok(None);
        assert!(Index::default().policies(Bucket(256), &none).is_err());
    }
}
