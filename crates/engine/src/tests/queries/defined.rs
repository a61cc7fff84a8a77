//! Random computed properties: one of several definitions for each of a few names,
//! of which some are those of properties that items store.

use serde_json::{Value, json};

use super::super::random::Random;

/// What may have these names, and how often one of them is computed, in percent.
const NAMES: [(&str, u64); 3] = [("v", 60), ("w", 50), ("b", 15)];

/// What may be computed, and which values come of it, as `documents.rs` names them.
const QUERIES: [(&str, &str); 10] = [
    ("SELECT VALUE LOWER(c.s) FROM c", "s"),
    ("SELECT VALUE c.s || c.s FROM c", "s"),
    ("SELECT VALUE c.n + 1 FROM c", "n"),
    // Not finite, but for zero.
    ("SELECT VALUE c.n * 1e308 * 10 FROM c", "n"),
    // Under its own name it sees what is stored.
    ("SELECT VALUE x.v FROM items x", "a"),
    ("SELECT VALUE c.a ?? c.b FROM c", "a"),
    ("SELECT VALUE IS_NUMBER(c.a) FROM c", "b"),
    ("SELECT VALUE c.tags FROM c", "tags"),
    ("SELECT VALUE {\"x\": c.a, \"y\": {\"z\": c.n * 1e308 * 10}} FROM c", "o"),
    ("SELECT VALUE c._ts FROM c", "ts"),
];

/// A computed property.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defined {
    pub(super) name: &'static str,
    pub(super) query: &'static str,
    kind: &'static str,
}

impl Defined {
    pub(super) fn to_json(self) -> Value {
        json!({"name": self.name, "query": self.query})
    }

    /// Whether it is an array, mostly.
    pub(super) fn is_list(&self) -> bool {
        self.kind == "tags"
    }

    /// As a query writes it.
    pub(super) fn path(&self) -> String {
        format!("c.{}", self.name)
    }

    /// The paths to ask for, and which values may stand there.
    pub(super) fn paths(&self) -> Vec<(String, &'static str)> {
        let below: &[(&str, &str)] = match self.kind {
            "o" => &[(".x", "a"), (".y.z", "n"), (".y", "o")],
            "tags" => &[("[0]", "tag"), ("[1]", "tag")],
            _ => &[],
        };
        let below = below.iter().map(|(steps, kind)| (self.path() + steps, *kind));
        [(self.path(), self.kind)].into_iter().chain(below).collect()
    }
}

impl Random {
    pub(super) fn defined(&mut self) -> Vec<Defined> {
        let mut defined = Vec::new();
        for (name, percent) in NAMES {
            if self.chance(percent) {
                let (query, kind) = self.pick(&QUERIES);
                defined.push(Defined { name, query, kind });
            }
        }
        defined
    }

    /// The paths by which an index holds some of them.
    pub(super) fn defined_paths(&mut self) -> Vec<String> {
        let names = NAMES.into_iter().filter(|_| self.chance(70)).collect::<Vec<_>>();
        names.into_iter().map(|(name, _)| format!("/{name}/{}", self.pick(&["?", "*"]))).collect()
    }
}
