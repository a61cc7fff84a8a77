//! Tokens that nobody gave out: sealed and checked, with anything inside. A query goes
//! on somewhere with them, or refuses them, and comes to its end.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dayfly_model::ErrorKind;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::super::random::Random;
use super::named::empty;

/// One for each way to the items.
const QUERIES: [&str; 8] = [
    "SELECT VALUE c.id FROM c",
    "SELECT VALUE t FROM c JOIN t IN c.tags",
    "SELECT VALUE c.id FROM c WHERE c.n > 3",
    "SELECT VALUE c.id FROM c WHERE c.k = 1",
    "SELECT VALUE c.id FROM c WHERE c.k = 1 OR c.n > 3 OFFSET 2 LIMIT 50",
    "SELECT VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.long DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.k, c.n DESC",
];

/// How many tokens are forged for each query.
const TOKENS: u64 = 150;

/// Before this byte is the seal of the query.
const SEAL: usize = 12;

impl Random {
    /// The token with some bytes behind the seal bent, cut out or put in.
    fn forge(&mut self, token: &str) -> String {
        let mut bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
        bytes.truncate(bytes.len() - 4);
        for _ in 0..=self.below(4) {
            let inside = (bytes.len() - SEAL) as u64;
            let place = SEAL + usize::try_from(self.below(inside.max(1))).unwrap();
            let byte = [0, 1, 2, 5, 0x7F, 0xFF, self.below(256)];
            let byte = u8::try_from(self.pick(&byte)).unwrap();
            match self.below(4) {
                0 if place < bytes.len() => drop(bytes.remove(place)),
                1 => bytes.insert(place, byte),
                _ if place < bytes.len() => bytes[place] = byte,
                _ => bytes.push(byte),
            }
        }
        let check = Sha256::digest(&bytes);
        bytes.extend(check.iter().take(4));
        URL_SAFE_NO_PAD.encode(bytes)
    }
}

#[test]
fn forged_tokens_lead_somewhere_or_are_refused() {
    let composite = json!([[{"path": "/k"}, {"path": "/n", "order": "descending"}]]);
    let mut pages = 0;
    for slices in [1, 4] {
        let server = empty(slices, json!({ "compositeIndexes": composite }));
        for n in 0..60 {
            let long = "l".repeat(600) + &n.to_string();
            let tags = json!([n, 1, "x"]);
            let item = json!({"id": n.to_string(), "pk": n, "n": n, "k": n % 2, "tags": tags, "long": long});
            server.create(item).unwrap();
        }
        for query in QUERIES {
            let token = server.page(query, 7, None).1.expect("there are more pages");
            let mut random = Random(slices as u64);
            for _ in 0..TOKENS {
                let forged = random.forge(&token);
                let mut next = Some(forged.clone());
                // A page for each row, if it goes through all of them.
                for _ in 0..400 {
                    let Some(token) = next.take() else { break };
                    match server.try_page(query, 7, Some(token)) {
                        Ok((_, after)) => (next, pages) = (after, pages + 1),
                        Err(kind) => assert_eq!(kind, ErrorKind::BadRequest, "{query} {forged}"),
                    }
                }
                assert_eq!(next, None, "{query} does not end: {forged}");
            }
        }
    }
    assert!(pages > 1000, "nearly all are refused: {pages}");
}
