//! The items of all benchmarks: a kilobyte of JSON, and a few large ones.

use crate::random::Random;
use crate::wire::Signer;

/// Where the items are.
pub(super) const DATABASE: &str = "bench";
pub(super) const CONTAINER: &str = "items";

/// The usual item, in bytes of JSON.
pub(super) const ITEM_BYTES: usize = 1024;

/// The largest item that the service takes, but for a little.
pub(super) const LARGE_BYTES: usize = 2_000_000;

/// How many logical partitions the items are in.
pub(super) const PARTITIONS: u64 = 1000;

/// Text to fill items with; different items take different parts.
const FILLER_BYTES: usize = 4 * 1024 * 1024;

/// Makes items. The same number always makes the same item.
pub(super) struct Items {
    filler: String,
}

impl Items {
    pub(super) fn new() -> Items {
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        let mut random = Random::new(7);
        let mut filler = String::with_capacity(FILLER_BYTES + 16);
        while filler.len() < FILLER_BYTES {
            let word = usize::try_from(random.below(words.len() as u64)).unwrap_or(0);
            filler.push_str(words.get(word).copied().unwrap_or_default());
            filler.push(' ');
        }
        Items { filler }
    }

    /// Item `number` as JSON of `bytes` bytes. Another `version` has another
    /// text.
    pub(super) fn json(&self, number: u64, version: u64, bytes: usize) -> String {
        let mut json = String::with_capacity(bytes);
        self.put_json(number, version, bytes, &mut json);
        json
    }

    /// The same, into a string that is used again and again: a load that asks the
    /// system for two megabytes each time takes the server's cores.
    pub(super) fn put_json(&self, number: u64, version: u64, bytes: usize, json: &mut String) {
        let (id, key) = (id(number), partition_key(number));
        json.clear();
        json.push_str(&format!("{{\"id\":\"{id}\",\"pk\":\"{key}\",\"n\":{number},\"text\":\""));
        let length = bytes.saturating_sub(json.len() + 2);
        json.push_str(self.text(number ^ (version << 40), length));
        json.push_str("\"}");
    }

    /// Some words; the same for the same seed.
    pub(super) fn text(&self, seed: u64, length: usize) -> &str {
        let places = self.filler.len().saturating_sub(length).max(1) as u64;
        let start = usize::try_from(Random::new(seed).below(places)).unwrap_or(0);
        self.filler.get(start..start + length).unwrap_or_default()
    }
}

pub(super) fn id(number: u64) -> String {
    format!("item-{number:08}")
}

pub(super) fn partition_key(number: u64) -> String {
    format!("p-{:04}", number % PARTITIONS)
}

/// The container's definition.
pub(super) fn definition() -> String {
    format!(
        "{{\"id\":\"{CONTAINER}\",\"partitionKey\":{{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\
         \"version\":2}}}}"
    )
}

pub(super) fn items_path() -> String {
    format!("/dbs/{DATABASE}/colls/{CONTAINER}/docs")
}

/// The whole request that reads an item.
pub(super) fn read_request(signer: &Signer, number: u64) -> Vec<u8> {
    let head = signer.head("GET", &format!("{}/{}", items_path(), id(number)));
    let key = partition_key(number);
    format!("{head}x-ms-documentdb-partitionkey: [\"{key}\"]\r\n\r\n").into_bytes()
}

/// Makes requests that create items; they all have the same signature.
pub(super) struct Creates {
    head: String,
}

impl Creates {
    pub(super) fn new(signer: &Signer) -> Creates {
        Creates { head: signer.head("POST", &items_path()) }
    }

    /// Puts the request for an item into `request`.
    pub(super) fn request(&self, number: u64, json: &str, request: &mut Vec<u8>) {
        end_with_body(&self.head, number, json, request);
    }
}

/// Puts the request that replaces an item into `request`.
pub(super) fn replace_request(head: &str, number: u64, json: &str, request: &mut Vec<u8>) {
    end_with_body(head, number, json, request);
}

/// The signed head of a request that replaces an item.
pub(super) fn replace_head(signer: &Signer, number: u64) -> String {
    signer.head("PUT", &format!("{}/{}", items_path(), id(number)))
}

/// Ends a request with the key of an item's partition and a body.
pub(super) fn end_with_body(head: &str, number: u64, json: &str, request: &mut Vec<u8>) {
    let key = partition_key(number);
    let length = json.len();
    for part in [
        head,
        "x-ms-documentdb-partitionkey: [\"",
        &key,
        "\"]\r\ncontent-length: ",
        &length.to_string(),
        "\r\n\r\n",
        json,
    ] {
        request.extend_from_slice(part.as_bytes());
    }
}

const WORDS: &str = "amber basin cedar delta ember fjord grove heath inlet jetty knoll ledge marsh \
    north ocean plain quarry ridge shore tundra upland valley willow yonder zephyr a b c of the in \
    and to by with 1 22 333 4444 2025 2026 red green blue small large early late open closed north \
    south east west order cart user session device price amount total status active pending done";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_the_size_that_was_asked_for() {
        let items = Items::new();
        for (number, bytes) in [(0, ITEM_BYTES), (99_999_999, ITEM_BYTES), (5, LARGE_BYTES)] {
            let json = items.json(number, 0, bytes);
            assert_eq!(json.len(), bytes);
            assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
        }
        assert_ne!(items.json(1, 0, ITEM_BYTES), items.json(1, 1, ITEM_BYTES));
    }
}
