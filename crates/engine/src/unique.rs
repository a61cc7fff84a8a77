//! Unique keys: what their paths hold, as a hash.
//!
//! A path that an item does not have counts as null, so at most one item of a
//! logical partition can lack it. Numbers are compared by value: 10 and 10.0
//! are the same.

use dayfly_model::container::UniqueKey;
use dayfly_model::json::Lookup;
use dayfly_model::{Error, ErrorKind};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// One hash for each constraint, in the order of the policy.
pub(crate) fn hashes(constraints: &[UniqueKey], item: &(impl Lookup + ?Sized)) -> Vec<[u8; 16]> {
    constraints.iter().map(|constraint| hash(constraint, item)).collect()
}

fn hash(constraint: &UniqueKey, item: &(impl Lookup + ?Sized)) -> [u8; 16] {
    let mut hasher = Sha256::new();
    for unique in &constraint.paths {
        let value = item
            .at(&unique.path)
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or(Value::Null);
        let spelling = spelling(&value);
        hasher.update((spelling.len() as u64).to_be_bytes());
        hasher.update(spelling);
    }
    let mut short = [0; 16];
    for (to, from) in short.iter_mut().zip(hasher.finalize()) {
        *to = from;
    }
    short
}

/// The same text for equal values.
fn spelling(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if value.as_i64().is_none() && value.as_u64().is_none() => {
            #[expect(clippy::cast_possible_truncation, reason = "checked by the round trip")]
            let whole = number as i64;
            #[expect(
                clippy::cast_precision_loss,
                clippy::float_cmp,
                reason = "that is what is checked"
            )]
            if whole as f64 == number { whole.to_string() } else { value.to_string() }
        }
        _ => value.to_string(),
    }
}

/// The error for a unique key that another item has.
pub(crate) fn taken() -> Error {
    Error::new(ErrorKind::Conflict, "Unique index constraint violation.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes_of(paths: &str, text: &str) -> Vec<[u8; 16]> {
        let body = format!(
            r#"{{"id":"c","partitionKey":{{"paths":["/pk"]}},"uniqueKeyPolicy":{{"uniqueKeys":[{{"paths":{paths}}}]}}}}"#
        );
        let definition = dayfly_model::container::parse(body.as_bytes(), false).unwrap();
        hashes(&definition.unique_keys, text)
    }

    #[test]
    fn equal_values_have_equal_hashes() {
        let of = |text: &str| hashes_of(r#"["/a"]"#, text);

        assert_eq!(of(r#"{"a":10}"#), of(r#"{"b":1,"a":10.0}"#));
        assert_eq!(of(r#"{"a":null}"#), of("{}"));
        assert_eq!(of(r#"{"a":-0.0}"#), of(r#"{"a":0}"#));
        assert_ne!(of(r#"{"a":10}"#), of(r#"{"a":"10"}"#));
        assert_ne!(of(r#"{"a":9007199254740993}"#), of(r#"{"a":9007199254740992}"#));
    }

    #[test]
    fn neighbouring_paths_do_not_run_into_each_other() {
        let of = |text: &str| hashes_of(r#"["/a","/b"]"#, text);
        assert_ne!(of(r#"{"a":"x","b":"yz"}"#), of(r#"{"a":"xy","b":"z"}"#));
    }
}
