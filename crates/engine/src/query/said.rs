//! What the partition of a query says of its items.
//!
//! All items of one logical partition have the values of its key. A condition that
//! an item has one of these values tells none of them apart: what is to be sought
//! is the filter without it.
//!
//! Keys are compared as doubles, and values are not. So a number that is no safe
//! integer may stand for several, and says nothing.

use dayfly_model::partition_key::{Component, PartitionKey, PartitionKeyDefinition};
use dayfly_model::value::{Value, order};
use dayfly_sql::run::{IndexStep, Sieve, ValueSpan};
use dayfly_storage::KeyRange;

/// Below this, no two integers are the same double: 2^53.
const SAFE_MAX: f64 = 9_007_199_254_740_992.0;

/// The values that all items have.
pub(super) struct Said(Vec<ValueSpan>);

impl Said {
    /// Nothing.
    pub(super) fn nothing() -> Said {
        Said(Vec::new())
    }

    /// What the key of one logical partition says. The begin of a key of a hierarchy
    /// is none.
    pub(super) fn by(key: &PartitionKey, definition: &PartitionKeyDefinition) -> Said {
        if key.0.len() != definition.paths.len() {
            return Said::nothing();
        }
        let value = |component: &Component| match component {
            Component::Undefined => None,
            Component::Null => Some(Value::Null),
            Component::Bool(truth) => Some(Value::Bool(*truth)),
            Component::Number(number) => (number.abs() < SAFE_MAX).then(|| Value::from(*number)),
            Component::String(text) => Some(Value::from(text.as_str())),
        };
        let said = definition.paths.iter().zip(&key.0).filter_map(|(path, component)| {
            let low = order::key(&value(component)?);
            Some(ValueSpan {
                path: path.segments().iter().cloned().map(IndexStep::Name).collect(),
                high: KeyRange::prefix(&low).end,
                low,
                is_point: true,
                exact: true,
            })
        });
        Said(said.collect())
    }

    /// Whether it says anything.
    pub(super) fn is_anything(&self) -> bool {
        !self.0.is_empty()
    }

    /// What an item has by the partition and by the filter.
    pub(super) fn with(&self, sieve: &Sieve) -> Sieve {
        let said = self.0.iter().cloned().map(Sieve::Span);
        Sieve::And(said.chain([self.without(sieve)]).collect())
    }

    /// What is left to be sought.
    pub(super) fn without(&self, sieve: &Sieve) -> Sieve {
        match sieve {
            sieve if self.is_said(sieve) => Sieve::All,
            Sieve::And(members) => {
                let mut left: Vec<Sieve> =
                    members.iter().filter(|member| !self.is_said(member)).cloned().collect();
                if left.len() == 1 { left.remove(0) } else { Sieve::And(left) }
            }
            sieve => sieve.clone(),
        }
    }

    /// Whether all items have this.
    fn is_said(&self, sieve: &Sieve) -> bool {
        match sieve {
            Sieve::All => true,
            Sieve::Nothing => false,
            Sieve::Span(span) => {
                let is_same = |said: &ValueSpan| {
                    span.is_point && (&span.path, &span.low) == (&said.path, &said.low)
                };
                self.0.iter().any(is_same)
            }
            Sieve::And(members) => members.iter().all(|member| self.is_said(member)),
            Sieve::Or(members) => members.iter().any(|member| self.is_said(member)),
        }
    }
}

#[cfg(test)]
mod tests {
    use dayfly_sql::Request;
    use dayfly_sql::run::Program;
    use serde_json::json;

    use super::*;

    /// The sieve of a filter.
    fn sieve(filter: &str) -> Sieve {
        let query = json!({ "query": format!("SELECT * FROM c WHERE {filter}") });
        let request = Request::read(query.to_string().as_bytes()).unwrap();
        Program::compile(&request, &dayfly_sql::Computed::default()).unwrap().sieve()
    }

    /// What is sought within a partition of a container with these paths.
    fn sought(paths: &[&str], key: Option<&str>, sieve: &Sieve) -> Sieve {
        let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
        let definition =
            json!({"id": "c", "partitionKey": {"paths": paths, "kind": kind, "version": 2}});
        let definition = definition.to_string();
        let definition = dayfly_model::container::parse(definition.as_bytes(), false).unwrap();
        let key = key.map(|key| PartitionKey::parse_header(key).unwrap());
        let said = |key| Said::by(key, &definition.partition_key);
        key.as_ref().map_or_else(Said::nothing, said).without(sieve)
    }

    #[test]
    fn what_the_key_says_is_not_sought() {
        let x = Some(r#"["x"]"#);
        for (key, filter, expected) in [
            (x, "c.pk = 'x' AND c.a = 1", Some("c.a = 1")),
            (x, "c.a = 1 AND 'x' = c.pk AND c.b > 2", Some("c.a = 1 AND c.b > 2")),
            (x, "c.pk IN ('y', 'x') AND c.a = 1", Some("c.a = 1")),
            (x, "(c.pk = 'x' OR c.b = 1) AND c.a = 1", Some("c.a = 1")),
            (x, "c.pk = 'x' AND c.pk >= 'a' AND c.a = 1", Some("c.a = 1")),
            (x, "c.pk = 'x'", None),
            (Some("[5]"), "c.pk = 5 AND c.a = 1", Some("c.a = 1")),
            (Some("[5]"), "c.pk = 5.0 AND c.a = 1", Some("c.a = 1")),
            (Some("[-0.0]"), "c.pk = 0 AND c.a = 1", Some("c.a = 1")),
            (Some("[9007199254740991]"), "c.pk = 9007199254740991 AND c.a = 1", Some("c.a = 1")),
            (Some("[0.1]"), "c.pk = 0.1 AND c.a = 1", Some("c.a = 1")),
            (Some("[true]"), "c.pk AND c.a = 1", Some("c.a = 1")),
            (Some("[null]"), "c.pk = null AND c.a = 1", Some("c.a = 1")),
        ] {
            let expected = expected.map_or(Sieve::All, sieve);
            assert_eq!(sought(&["/pk"], key, &sieve(filter)), expected, "{key:?} {filter}");
        }
    }

    #[test]
    fn all_else_is_sought() {
        let x = Some(r#"["x"]"#);
        for (key, filter) in [
            (None, "c.pk = 'x' AND c.a = 1"),
            (x, "c.pk = 'y' AND c.a = 1"),
            (x, "c.pk = 'X' AND c.a = 1"),
            (x, "c.pk >= 'x' AND c.a = 1"),
            (x, "STARTSWITH(c.pk, 'x') AND c.a = 1"),
            (x, "c.a = 'x' AND c.pk.b = 'x'"),
            (x, "c.o.pk = 'x' AND c.a = 1"),
            (x, "ARRAY_CONTAINS(c.pk, 'x') AND c.a = 1"),
            (x, "c.pk IN ('y', 'z') AND c.a = 1"),
            (Some("[{}]"), "c.pk = null AND c.a = 1"),
            (Some("[5]"), "c.pk = '5' AND c.a = 1"),
            (Some("[9007199254740992]"), "c.pk = 9007199254740992 AND c.a = 1"),
            (Some("[-9007199254740993]"), "c.pk = -9007199254740993 AND c.a = 1"),
        ] {
            let all = sieve(filter);
            assert_eq!(sought(&["/pk"], key, &all), all, "{key:?} {filter}");
        }
    }

    #[test]
    fn a_hierarchy_says_all_its_levels_or_nothing() {
        let paths = ["/t", "/o/u"];
        let all = sieve("c.t = 1 AND c.o.u = 2 AND c.a = 3");
        assert_eq!(sought(&paths, Some("[1,2]"), &all), sieve("c.a = 3"));
        assert_eq!(sought(&paths, Some("[1]"), &all), all);
        assert_eq!(sought(&paths, Some("[1,{}]"), &all), sieve("c.o.u = 2 AND c.a = 3"));
    }
}
