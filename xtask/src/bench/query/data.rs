//! The items that are asked for: a kilobyte of JSON each, with values that are
//! spread over the container.
//!
//! ```text
//! n     the item's number, which is the order of writing
//! rank  a place of its own, which has nothing to do with any other order
//! x     100 items have the same
//! y     10 thousand items have the same
//! u     not indexed; stands last, so that finding it takes the whole text
//! ```

use crate::bench::item::{CONTAINER, ITEM_BYTES, Items, id, partition_key};

/// How many items have the same `x`, and the same `y`.
pub(in crate::bench) const FEW: u64 = 100;
pub(super) const MANY: u64 = 10_000;

/// A prime above any number of items: times this is another order.
const SPREAD: u64 = 15_485_863;

/// The items of a container.
pub(in crate::bench) struct Data {
    items: Items,
    pub(in crate::bench) count: u64,
    /// What undoes `SPREAD`.
    back: u64,
}

impl Data {
    pub(in crate::bench) fn new(count: u64) -> Data {
        let back = (1..count).find(|back| SPREAD * back % count == 1).unwrap_or(1);
        Data { items: Items::new(), count, back }
    }

    /// Item `number`.
    pub(in crate::bench) fn json(&self, number: u64) -> String {
        let rank = self.rank(number);
        let (x, y) = (rank / FEW, rank / MANY);
        let start = format!("{{\"n\":{number},\"rank\":{rank},\"x\":{x},\"y\":{y},");
        let end = format!(",\"u\":{rank}}}");
        let rest = self.items.json(number, 0, ITEM_BYTES + 2 - start.len() - end.len());
        let rest = rest.trim_start_matches('{').trim_end_matches('}');
        let rest = rest.replacen(&format!("\"n\":{number},"), "", 1);
        [&start, &*rest, &end].concat()
    }

    /// Its place by `rank`: each number has another one below the count.
    pub(in crate::bench) fn rank(&self, number: u64) -> u64 {
        number * SPREAD % self.count
    }

    /// How many values `x` has that 100 items share.
    pub(in crate::bench) fn values(&self) -> u64 {
        self.count / FEW
    }

    /// The items with `x`, as ids and partition keys.
    pub(super) fn hits(&self, x: u64) -> impl Iterator<Item = (String, String)> {
        let numbers = (x * FEW..(x + 1) * FEW).map(|rank| rank * self.back % self.count);
        numbers.map(|number| (id(number), partition_key(number)))
    }
}

/// The container: all of an item is indexed, but for `u`.
pub(in crate::bench) fn definition() -> String {
    format!(
        "{{\"id\":\"{CONTAINER}\",\"partitionKey\":{{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\
         \"version\":2}},\"indexingPolicy\":{{\"includedPaths\":[{{\"path\":\"/*\"}}],\
         \"excludedPaths\":[{{\"path\":\"/u/?\"}}]}}}}"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_value_has_100_items_in_many_partitions() {
        let data = Data::new(20_000);
        let mut found: HashMap<u64, Vec<String>> = HashMap::new();
        for number in 0..data.count {
            let json = data.json(number);
            assert!(json.len().abs_diff(ITEM_BYTES) <= 16, "{}", json.len());
            let item: serde_json::Value = serde_json::from_str(&json).unwrap();
            let x = item["x"].as_u64().unwrap();
            assert_eq!(item["n"], number);
            found.entry(x).or_default().push(item["id"].as_str().unwrap().to_owned());
        }
        assert_eq!(found.len() as u64, data.values());
        for (x, mut ids) in found {
            let (mut told, keys): (Vec<String>, Vec<String>) = data.hits(x).unzip();
            ids.sort();
            told.sort();
            assert_eq!(ids, told);
            let keys: std::collections::HashSet<String> = keys.into_iter().collect();
            assert!(keys.len() > 50, "{}", keys.len());
        }
    }
}
