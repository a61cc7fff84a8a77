//! Two containers with the same items, one with an index and one without, and
//! what a simple list knows of both.

use std::collections::BTreeMap;
use std::sync::Arc;

use dayfly_model::ErrorKind;
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::rid::ItemRid;
use dayfly_model::value::{self, Value};
use dayfly_storage::clock::HandWall;
use dayfly_storage::{Local, LocalOptions, Memory, Urgency};
use serde_json::{Value as Json, json};

use super::super::random::Random;
use super::documents::{IDS, KEYS};
use super::naive::Document;
use super::texts::{COMPOSITES, SORTED};
use crate::index::rebuild::{self, Size, Turn};
use crate::items::Spot;
use crate::operation::{
    Act, Condition, ContainerScope, Indexing, Operation, Page, Part, QueryItems, Replacement,
    WriteItem,
};
use crate::reply::Success;
use crate::{Engine, EngineSettings};

/// The containers: with an index, and without.
pub(super) const SIDES: [&str; 2] = ["indexed", "bare"];

/// Where an item is: the text of its partition key, and its id.
pub(super) type Place = (&'static str, String);

/// An item that was written.
#[derive(Clone)]
pub(super) struct Written {
    pub(super) value: Value,
    tie: (usize, u64),
    expires: Option<u64>,
    /// Tells one write from another.
    pub(super) number: u64,
}

pub(super) struct World {
    engine: Engine,
    wall: Arc<HandWall>,
    now: u64,
    default: Option<i64>,
    /// By side.
    items: [BTreeMap<Place, Written>; 2],
    writes: u64,
    /// The policy of the first side, for a person.
    pub(super) policy: Json,
}

/// A part of the containers.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    pub(super) key: Option<&'static str>,
}

impl World {
    pub(super) fn new(random: &mut Random) -> World {
        let wall = Arc::new(HandWall::at(1000));
        let options = LocalOptions { wall: Arc::clone(&wall) as _, ..LocalOptions::default() };
        let store = Arc::new(Local::on(Memory::default(), options).unwrap());
        let slices = random.pick(&[1, 4]);
        let settings =
            EngineSettings { slices, lenient_order_by: true, ..EngineSettings::default() };
        let engine = Engine::open(store, settings).unwrap();
        let default = random.pick(&[None, Some(-1), Some(30)]);
        let policy = random.policy();
        let items = Default::default();
        let world = World { engine, wall, now: 1000, default, items, writes: 0, policy };
        world.run(Operation::CreateDatabase { id: "d".to_owned(), throughput: None }).unwrap();
        let mode = if default.is_none() && random.chance(50) { "none" } else { "consistent" };
        let bare = json!({
            "indexingMode": mode,
            "automatic": mode != "none",
            "excludedPaths": [{"path": "/*"}],
        });
        let policies = [world.policy.clone(), bare];
        for (side, policy) in SIDES.into_iter().zip(policies) {
            let definition = world.definition(side, &policy);
            let create = Operation::CreateContainer {
                database: "d".to_owned(),
                definition,
                throughput: None,
            };
            world.run(create).unwrap();
        }
        world
    }

    fn run(&self, operation: Operation) -> Result<Success, String> {
        self.engine.run(operation).wait().outcome.map_err(|error| error.to_string())
    }

    fn definition(&self, side: &str, policy: &Json) -> Vec<u8> {
        let mut definition =
            json!({"id": side, "partitionKey": {"paths": ["/pk"]}, "indexingPolicy": policy});
        if let Some(default) = self.default {
            definition["defaultTtl"] = default.into();
        }
        definition.to_string().into_bytes()
    }

    /// Something happens: writes mostly.
    pub(super) fn step(&mut self, random: &mut Random) {
        match random.below(100) {
            0..70 => self.write(random),
            70..80 => self.delete(random),
            80..87 => self.pass(1 + random.below(6)),
            87..91 => {
                self.engine.purge_all().unwrap();
            }
            91..97 => {
                for _ in 0..random.below(4) {
                    self.rebuild();
                }
            }
            97 => while self.rebuild() {},
            _ => self.change_policy(random.policy()),
        }
    }

    pub(super) fn write(&mut self, random: &mut Random) {
        let place = random.place();
        let item = random.item(place.0, &place.1);
        self.writes += 1;
        for side in 0..SIDES.len() {
            let operation = Operation::WriteItem(WriteItem {
                at: at(side),
                act: Act::Upsert(super::super::server::text(&item)),
                partition_key: Some(key(place.0)),
                condition: Condition::default(),
                minimal: false,
                indexing: Indexing::default(),
            });
            let success = self.run(operation).unwrap();
            let body = String::from_utf8(success.body.to_vec()).unwrap();
            let value = value::read(&body).unwrap();
            let written = Written {
                tie: self.tie(side, &place, &value),
                expires: self.expiry(&value),
                number: self.writes,
                value,
            };
            self.items[side].insert(place.clone(), written);
        }
    }

    /// When an item that is written now dies.
    fn expiry(&self, item: &Value) -> Option<u64> {
        let default = self.default?;
        let seconds = item.property("ttl").as_integer().unwrap_or(default);
        u64::try_from(seconds).ok().map(|seconds| self.now + seconds)
    }

    /// Its bucket, and its number.
    fn tie(&self, side: usize, place: &Place, item: &Value) -> (usize, u64) {
        let opened = self.engine.shared.enter(&at(side), ErrorKind::NotFound).unwrap();
        let spot = Spot::new(&opened.container, &key(place.0), place.1.clone().into_bytes());
        let slice = opened.container.buckets().position(|bucket| bucket == spot.bucket).unwrap();
        let rid = ItemRid::parse(item.property("_rid").as_str().unwrap()).unwrap();
        (slice, rid.docno)
    }

    fn delete(&mut self, random: &mut Random) {
        let (place_key, id) = random.place();
        for side in 0..SIDES.len() {
            let operation = Operation::WriteItem(WriteItem {
                at: at(side),
                act: Act::Delete(id.clone()),
                partition_key: Some(key(place_key)),
                condition: Condition::default(),
                minimal: false,
                indexing: Indexing::default(),
            });
            let known = self.items[side].remove(&(place_key, id.clone()));
            let alive = known.is_some_and(|known| self.is_alive(&known));
            assert_eq!(self.run(operation).is_ok(), alive);
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now += seconds;
        self.wall.set(self.now);
    }

    fn change_policy(&mut self, policy: Json) {
        let definition = self.definition(SIDES[0], &policy);
        self.run(Operation::ReplaceContainer(Replacement {
            at: at(0),
            definition,
            condition: Condition::default(),
            quota: false,
            confirm_expiry: false,
        }))
        .unwrap();
        self.policy = policy;
    }

    /// A change of the policy comes a little further. `false`: none is under way.
    fn rebuild(&self) -> bool {
        let size = Size { items: 5, bytes: 1 << 20, urgency: Urgency::Now };
        rebuild::turn(&self.engine.shared, size).unwrap() != Turn::Idle
    }

    fn is_alive(&self, written: &Written) -> bool {
        written.expires.is_none_or(|expires| self.now < expires)
    }

    /// What is alive of a piece of a container.
    pub(super) fn alive(&self, side: usize, piece: &Piece) -> Vec<(&Place, &Written)> {
        let meant = |place: &Place| piece.key.is_none_or(|key| place.0 == key);
        let alive = self.items[side].iter().filter(|(_, written)| self.is_alive(written));
        alive.filter(|(place, _)| meant(place)).collect()
    }

    /// The same, as the naive answer needs it.
    pub(super) fn documents(&self, side: usize, piece: &Piece) -> Vec<Document> {
        let document = |(_, written): (_, &Written)| Document {
            value: written.value.clone(),
            tie: written.tie,
        };
        self.alive(side, piece).into_iter().map(document).collect()
    }

    /// One page of a query: its rows, and how the next one starts.
    pub(super) fn page(
        &self,
        side: usize,
        query: &Json,
        piece: &Piece,
        rows: usize,
        continuation: Option<String>,
    ) -> Result<(Vec<Value>, Option<String>), String> {
        let query = QueryItems {
            at: at(side),
            query: query.to_string().into_bytes(),
            part: Part { partition_key: piece.key.map(key), ..Part::default() },
            page: Page { limit: Some(rows), continuation },
            cross_partition: true,
            scan: true,
            metrics: false,
            direct: false,
        };
        let success = self.run(Operation::QueryItems(query))?;
        let body = String::from_utf8(success.body.to_vec()).unwrap();
        let body = value::read(&body).map_err(|error| format!("{error} in {body}"))?;
        let Value::Array(rows) = body.property("Documents") else {
            return Err("the answer has no rows".to_owned());
        };
        Ok((rows.clone(), success.continuation))
    }

    /// Everything that is stored fits together.
    pub(super) fn check(&self) {
        self.engine.check().unwrap();
    }
}

impl Random {
    pub(super) fn place(&mut self) -> Place {
        (self.pick(&KEYS), self.below(IDS).to_string())
    }

    /// A policy: everything, or not all of it; with some composite indexes.
    fn policy(&mut self) -> Json {
        let mut policy = match self.below(4) {
            0 | 1 => json!({}),
            2 => {
                let path = self.pick(&SORTED);
                let excluded = [path, "tags/[]", "list"].map(|name| format!("/{name}/*"));
                let excluded: Vec<Json> = excluded[..=usize::from(self.chance(40))]
                    .iter()
                    .map(|path| json!({ "path": path }))
                    .collect();
                json!({"includedPaths": [{"path": "/*"}], "excludedPaths": excluded})
            }
            _ => {
                let paths = ["/a/?", "/n/*", "/s/?", "/o/*", "/tags/[]/?", "/list/[]/k/?"];
                let some = paths.into_iter().filter(|_| self.chance(50));
                let included: Vec<Json> = some.map(|path| json!({ "path": path })).collect();
                json!({"includedPaths": included, "excludedPaths": [{"path": "/*"}]})
            }
        };
        let mut composites: Vec<Json> = Vec::new();
        for paths in COMPOSITES {
            if self.chance(60) {
                composites.push(paths.iter().map(|path| self.member(path)).collect());
            }
        }
        if !composites.is_empty() {
            policy["compositeIndexes"] = composites.into();
        }
        policy
    }

    fn member(&mut self, path: &str) -> Json {
        let order = self.pick(&["ascending", "descending"]);
        json!({"path": format!("/{path}"), "order": order})
    }
}

fn at(side: usize) -> ContainerScope {
    ContainerScope {
        database: "d".to_owned(),
        container: SIDES[side].to_owned(),
        ..ContainerScope::default()
    }
}

fn key(text: &str) -> PartitionKey {
    PartitionKey::parse_header(&format!("[{text}]")).unwrap()
}
