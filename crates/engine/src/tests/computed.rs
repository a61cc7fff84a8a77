//! Computed properties: their entries, and queries while their definitions change.

use dayfly_model::container::ContainerDefinition;
use dayfly_model::indexing::IndexPath;
use dayfly_model::indexing::rules::Rules;
use serde_json::{Value, json};

use super::index::only;
use super::server::{Crash, Kind, Server};
use crate::index::rebuild::Moved;

/// What random histories compute. The last one depends on what the server adds.
pub(super) const QUERIES: [&str; 4] = [
    "SELECT VALUE c.c FROM c",
    "SELECT VALUE {\"x\": c.b, \"y\": [c.c, c.a]} FROM c",
    "SELECT VALUE IS_DEFINED(c.a) FROM c",
    "SELECT VALUE [c._ts] FROM c",
];

/// The value of one of those, worked out by hand.
fn value(query: &str, item: &Value) -> Option<Value> {
    let stored = |name: &str| item.get(name).cloned();
    let number = QUERIES.iter().position(|known| *known == query);
    match number.unwrap() {
        0 => stored("c"),
        1 => {
            let list: Vec<Value> = stored("c").into_iter().chain(stored("a")).collect();
            let mut pair = json!({"y": list});
            if let Some(b) = stored("b") {
                pair["x"] = b;
            }
            Some(pair)
        }
        2 => Some(stored("a").is_some().into()),
        _ => None,
    }
}

/// The item as it would be if what is computed were stored.
pub(super) fn as_if_stored(definition: &ContainerDefinition, text: &str) -> String {
    let item: Value = serde_json::from_str(text).unwrap();
    let mut shown = item.as_object().unwrap().clone();
    for property in &definition.computed {
        shown.remove(&property.name);
        shown.extend(value(&property.query, &item).map(|value| (property.name.clone(), value)));
    }
    Value::Object(shown).to_string()
}

/// The rules for such items.
pub(super) fn plain_rules(definition: &ContainerDefinition) -> Rules {
    let mut policy = definition.indexing.clone();
    for property in &definition.computed {
        let whole = IndexPath::parse(&format!("/{}/*", property.name)).unwrap();
        if !policy.included.contains(&whole) && !policy.excluded.contains(&whole) {
            policy.excluded.push(whole);
        }
        if property.query == QUERIES[3] {
            policy.composites.retain(|members| {
                !members.iter().any(|member| member.path.segments()[0] == property.name)
            });
        }
    }
    Rules::new(&policy)
}

const LOWER: &str = "SELECT VALUE LOWER(c.name) FROM c";
const REVERSE: &str = "SELECT VALUE REVERSE(c.name) FROM c";

fn computed(query: &str) -> Value {
    json!([{"name": "low", "query": query}])
}

/// The name of an item, and what the queries make of it.
fn name(id: u32) -> String {
    format!("N{:02}", (id * 7) % 50)
}

fn computed_name(query: &str, id: u32) -> String {
    let name = name(id);
    if query == LOWER { name.to_lowercase() } else { name.chars().rev().collect() }
}

impl Server {
    fn query(&self, query: &str) -> Value {
        self.page(query, 1000, None).0.into()
    }

    /// Queries see what `query` says, by whichever way.
    fn is_computed_by(&self, query: &str, items: u32) {
        let mut values: Vec<String> = (0..items).map(|id| computed_name(query, id)).collect();
        for wanted in [3, 17] {
            let value = computed_name(query, wanted);
            let found = self.query(&format!("SELECT VALUE c.id FROM c WHERE c.low = '{value}'"));
            let ids = (0..items).filter(|id| computed_name(query, *id) == value);
            assert_eq!(found, json!(ids.map(|id| id.to_string()).collect::<Vec<_>>()));
        }
        values.sort();
        let (least, greatest) = (values.first(), values.last());
        assert_eq!(self.query("SELECT VALUE MIN(c.low) FROM c"), json!([least]));
        assert_eq!(self.query("SELECT VALUE MAX(c.low) FROM c"), json!([greatest]));
        assert_eq!(self.query("SELECT VALUE COUNT(c.low) FROM c"), json!([items]));
        assert_eq!(self.query("SELECT VALUE c.low FROM c ORDER BY c.low"), json!(values));
        let pairs = self.query("SELECT VALUE [c.low, c.k] FROM c ORDER BY c.low, c.k");
        let lows: Vec<&Value> = pairs.as_array().unwrap().iter().map(|pair| &pair[0]).collect();
        assert_eq!(json!(lows), json!(values));
    }
}

#[test]
fn a_definition_changes_while_queries_go_on() {
    for slices in [1, 4] {
        let mut server = Server::new(Kind::Memory { slices });
        server.make_container(None, &[]);
        for id in 0..40 {
            let low = "stored and hidden";
            server
                .create(
                    json!({"id": id.to_string(), "pk": id, "name": name(id), "k": id, "low": low}),
                )
                .unwrap();
        }
        let mut policy = only(&["low", "k"]);
        policy["compositeIndexes"] = json!([[{"path": "/low"}, {"path": "/k"}]]);
        server.try_definition(None, &policy, &computed(LOWER)).unwrap();
        assert!(!server.is_indexed("low"), "{:?}", server.progress());
        server.is_computed_by(LOWER, 40);
        server.rebuild_all();
        assert!(server.is_indexed("low") && server.composites() == 1);
        server.is_computed_by(LOWER, 40);
        server.check();

        // The same path with another meaning is another one.
        server.try_definition(None, &policy, &computed(REVERSE)).unwrap();
        assert!(!server.is_indexed("low") && server.composites() == 0);
        assert!(server.is_indexed("k"));
        server.is_computed_by(REVERSE, 40);
        assert_eq!(server.rebuild(9), Moved::Committed);
        server.is_computed_by(REVERSE, 40);
        for id in 40..44 {
            server
                .create(json!({"id": id.to_string(), "pk": id, "name": name(id), "k": id}))
                .unwrap();
        }
        server.is_computed_by(REVERSE, 44);
        server.check();
        server.crash(Crash::Kill);
        server.is_computed_by(REVERSE, 44);
        server.rebuild_all();
        assert!(server.is_indexed("low") && server.composites() == 1);
        server.is_computed_by(REVERSE, 44);
        server.check();

        // And so is the stored property that it was hiding.
        server.try_definition(None, &policy, &json!([])).unwrap();
        assert!(!server.is_indexed("low"));
        server.rebuild_all();
        assert!(server.is_indexed("low"));
        assert_eq!(
            server.query("SELECT VALUE COUNT(1) FROM c WHERE c.low = 'stored and hidden'"),
            json!([40])
        );
        server.is_settled();
    }
}

#[test]
fn an_item_that_dies_takes_its_computed_entries_along() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(5), &[]);
    let mut policy = only(&["low"]);
    policy["compositeIndexes"] = json!([[{"path": "/low"}, {"path": "/name"}]]);
    server.try_definition(Some(5), &policy, &computed(LOWER)).unwrap();
    let empty = server.entries().len();
    server.create(json!({"id": "1", "pk": 1, "name": "A"})).unwrap();
    assert_eq!(server.entries().len(), empty + 3, "id, low, and both");
    assert_eq!(server.query("SELECT VALUE c.low FROM c"), json!(["a"]));
    server.clock(1005);
    assert_eq!(server.query("SELECT VALUE c.low FROM c"), json!([]));
    // While the definition changes, an item goes by the one it was written under.
    server.try_definition(Some(5), &policy, &computed(REVERSE)).unwrap();
    assert_eq!(server.purge(), 1);
    assert_eq!(server.entries().len(), empty);
    server.check();
}
