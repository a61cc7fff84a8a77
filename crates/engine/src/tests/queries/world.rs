//! Two containers with the same items, one with an index and one without, and
//! what a simple list knows of both.

use std::collections::BTreeMap;
use std::sync::Arc;

use dayfly_model::ErrorKind;
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::rid::ItemRid;
use dayfly_model::throughput::Throughput;
use dayfly_model::value::{self, Value};
use dayfly_sql::Request;
use dayfly_sql::plan::Feature;
use dayfly_storage::clock::HandWall;
use dayfly_storage::{Local, LocalOptions, Memory, Urgency};
use serde_json::{Value as Json, json};

use super::super::random::Random;
use super::defined::Defined;
use super::division::{Division, slashed};
use super::documents::IDS;
use super::naive::{self, Document};
use super::parts::{Bounds, Layout, Piece, Spot as Where};
use super::texts::{COMPOSITES, SORTED};
use crate::catalog::Range;
use crate::index::rebuild::{self, Moved, Size};
use crate::items::Spot;
use crate::operation::{
    Act, Condition, ContainerScope, Division as Cut, Indexing, Operation, Page, Part, PlanQuery,
    QueryItems, Replacement, Showing, WriteItem,
};
use crate::reply::Success;
use crate::tests::throughput::Unlimited;
use crate::{Engine, EngineSettings, QueryLimits, QuerySteps};

/// The containers: with an index, and without.
pub(super) const SIDES: [&str; 2] = ["indexed", "bare"];

/// No more ranges than this.
const RANGES: usize = 12;

/// Where an item is: the text of its partition key, and its id.
pub(super) type Place = (&'static str, String);

/// An item that was written.
#[derive(Clone)]
pub(super) struct Written {
    pub(super) value: Value,
    stands: Stands,
    expires: Option<u64>,
    /// Tells one write from another.
    pub(super) number: u64,
}

/// Where an item stands: its range, by the order of their bounds, its bucket, and its
/// number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stands {
    range: usize,
    docno: u64,
    slice: usize,
}

pub(super) struct World {
    engine: Engine,
    wall: Arc<HandWall>,
    now: u64,
    default: Option<i64>,
    /// By side.
    items: [BTreeMap<Place, Written>; 2],
    writes: u64,
    /// Whether some requests leave their items out of the index.
    leaves_out: bool,
    /// The policy of the first side, for a person.
    pub(super) policy: Json,
    /// The policy of the second side.
    bare: Json,
    /// The computed properties of both sides.
    pub(super) defined: Vec<Defined>,
    pub(super) layout: Layout,
}

/// In some worlds nearly no work is enough for a page, and nearly no query is quick. It
/// is not drawn, so that all else in a world of old is as it was.
fn steps(random: &Random) -> QuerySteps {
    let page = [QuerySteps::USUAL.page, 100, 0][usize::try_from(random.0 % 3).unwrap()];
    QuerySteps { quick: page.min(QuerySteps::USUAL.quick), page, ..QuerySteps::USUAL }
}

/// Small ones, so that every way is taken; and now and then those that are shipped.
fn limits(random: &mut Random) -> QueryLimits {
    if random.chance(20) { QueryLimits::USUAL } else { QueryLimits::SMALL }
}

impl World {
    pub(super) fn new(random: &mut Random) -> World {
        let division = Division::of(random.0);
        let wall = Arc::new(HandWall::at(1000));
        let options = LocalOptions { wall: Arc::clone(&wall) as _, ..LocalOptions::default() };
        let store = Arc::new(Local::on(Memory::default(), options).unwrap());
        let settings = EngineSettings {
            ranges_min: random.pick(&[1, 4]),
            slices_max: random.pick(&[256, 256, 2, 1]),
            lenient_order_by: true,
            query_steps: steps(random),
            query_limits: limits(random),
            ..EngineSettings::default()
        };
        let engine = Engine::open(store, settings).unwrap();
        let default = random.pick(&[None, Some(-1), Some(30)]);
        let policy = random.policy(division);
        let leaves_out = random.chance(10);
        let mode = if default.is_none() && random.chance(50) { "none" } else { "consistent" };
        let bare = json!({
            "indexingMode": mode,
            "automatic": mode != "none",
            "excludedPaths": [{"path": "/*"}],
        });
        let mut world = World {
            engine,
            wall,
            now: 1000,
            default,
            items: Default::default(),
            writes: 0,
            leaves_out,
            policy,
            bare,
            defined: random.defined(),
            layout: Layout { division, spots: BTreeMap::new(), ranges: Vec::new() },
        };
        world.run(Operation::CreateDatabase { id: "d".to_owned(), throughput: None }).unwrap();
        // Three ranges, if there are not as many buckets anyway.
        let throughput = random.chance(40).then_some(Throughput::Manual(18_000));
        for side in 0..SIDES.len() {
            let definition = world.definition(side);
            let database = "d".to_owned();
            world
                .run(Operation::CreateContainer {
                    database,
                    definition,
                    throughput,
                    showing: Showing::Whole,
                })
                .unwrap();
        }
        world.layout = world.layout();
        world
    }

    /// Both sides have the same.
    fn layout(&self) -> Layout {
        let opened = self.engine.shared.enter(&at(0), ErrorKind::NotFound).unwrap();
        let container = &opened.container;
        let spot = |text: &'static str| {
            let epk = container.epk(&key(text));
            let range = container.range(&epk).unwrap().id.to_string();
            (text, Where { epk, range })
        };
        let bounds = |range: &Range| {
            let (min, max) = (range.min.clone(), range.max.clone());
            Bounds { id: range.id.to_string(), min, max }
        };
        let division = self.layout.division;
        let spots = division.keys.iter().copied().map(spot).collect();
        Layout { division, spots, ranges: container.ranges.iter().map(bounds).collect() }
    }

    fn run(&self, operation: Operation) -> Result<Success, String> {
        match self.engine.run(operation).wait().outcome {
            // An aggregate without a value, over all partitions: no rows.
            Err(error) if error.kind == ErrorKind::NotServable => {
                Ok(Success::new(200, r#"{"Documents":[]}"#))
            }
            outcome => outcome.map_err(|error| error.to_string()),
        }
    }

    fn definition(&self, side: usize) -> Vec<u8> {
        let computed: Json = self.defined.iter().map(|defined| defined.to_json()).collect();
        let mut definition = json!({
            "id": SIDES[side],
            "partitionKey": self.layout.division.to_json(),
            "indexingPolicy": if side == 0 { &self.policy } else { &self.bare },
            "computedProperties": computed,
        });
        if let Some(default) = self.default {
            definition["defaultTtl"] = default.into();
        }
        definition.to_string().into_bytes()
    }

    /// Something happens: writes mostly.
    pub(super) fn step(&mut self, random: &mut Random) {
        match random.below(100) {
            0..70 => self.write(random),
            70..79 => self.delete(random),
            79 => self.clear(random),
            80..87 => self.pass(1 + random.below(6)),
            87..90 => {
                self.engine.purge_all().unwrap();
            }
            90 => self.split(random),
            91..97 => {
                for _ in 0..random.below(4) {
                    self.rebuild();
                }
            }
            97 => while self.rebuild() {},
            _ => self.change_policy(random.policy(self.layout.division)),
        }
    }

    pub(super) fn write(&mut self, random: &mut Random) {
        let place = random.place(self.layout.division);
        self.write_at(place, random);
    }

    /// An item is written again, or deleted.
    pub(super) fn disturb(&mut self, key: &str, id: &str, random: &mut Random) {
        let key = self.layout.division.keys.iter().find(|known| **known == key).unwrap();
        let place = (*key, id.to_owned());
        if random.chance(50) { self.delete_at(place) } else { self.write_at(place, random) }
    }

    fn write_at(&mut self, place: Place, random: &mut Random) {
        let item = random.item(self.layout.division, place.0, &place.1);
        let left_out = self.leaves_out && random.chance(5);
        let indexing = if left_out { Indexing::Exclude } else { Indexing::default() };
        self.writes += 1;
        for side in 0..SIDES.len() {
            let operation = Operation::WriteItem(WriteItem {
                at: at(side),
                act: Act::Upsert(super::super::server::text(&item)),
                partition_key: Some(key(place.0)),
                condition: Condition::default(),
                minimal: false,
                indexing,
            });
            let success = self.run(operation).unwrap();
            let body = String::from_utf8(success.body.to_vec()).unwrap();
            let value = value::read(&body).unwrap();
            let written = Written {
                stands: self.stands(side, &place, &value),
                expires: self.expiry(&value),
                number: self.writes,
                value,
            };
            self.check_place(side, &place, &written);
            self.items[side].insert(place.clone(), written);
        }
    }

    /// What is alive keeps its place in the order, and what is new comes last.
    fn check_place(&self, side: usize, place: &Place, written: &Written) {
        let (items, docno) = (&self.items[side], written.stands.docno);
        if let Some(known) = items.get(place).filter(|known| self.is_alive(known)) {
            assert_eq!(known.stands.docno, docno, "{place:?} was replaced");
            return;
        }
        let beside = |other: &&Written| other.stands.slice == written.stands.slice;
        let last = items.values().filter(beside).map(|other| other.stands.docno).max();
        assert!(last < Some(docno), "{place:?} was made");
    }

    /// When an item that is written now dies.
    fn expiry(&self, item: &Value) -> Option<u64> {
        let default = self.default?;
        let seconds = item.property("ttl").as_integer().unwrap_or(default);
        u64::try_from(seconds).ok().map(|seconds| self.now + seconds)
    }

    fn stands(&self, side: usize, place: &Place, item: &Value) -> Stands {
        let opened = self.engine.shared.enter(&at(side), ErrorKind::NotFound).unwrap();
        let spot = Spot::new(&opened.container, &key(place.0), place.1.clone().into_bytes());
        let slice = opened.container.buckets().position(|bucket| bucket == spot.bucket).unwrap();
        let in_range = &self.layout.spots[place.0].range;
        let range = self.layout.ranges.iter().position(|range| range.id == *in_range).unwrap();
        let rid = ItemRid::parse(item.property("_rid").as_str().unwrap()).unwrap();
        Stands { range, docno: rid.docno, slice }
    }

    fn delete(&mut self, random: &mut Random) {
        let place = random.place(self.layout.division);
        self.delete_at(place);
    }

    /// All items of a partition key are deleted.
    fn clear(&mut self, random: &mut Random) {
        let cleared = random.pick(self.layout.division.keys);
        for side in 0..SIDES.len() {
            let partition_key = Some(key(cleared));
            self.run(Operation::DeletePartition { at: at(side), partition_key }).unwrap();
            self.items[side].retain(|(place_key, _), _| *place_key != cleared);
        }
    }

    fn delete_at(&mut self, place: Place) {
        let (place_key, id) = place;
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

    /// A range is divided, on both sides, and what stands in it stands in one of its parts.
    fn split(&mut self, random: &mut Random) {
        if self.layout.ranges.len() >= RANGES {
            return;
        }
        let range = random.range(&self.layout);
        for side in 0..SIDES.len() {
            let division = Cut::Range(range.clone());
            self.run(Operation::SplitRanges { at: at(side), division }).unwrap();
        }
        self.layout = self.layout();
        for side in 0..SIDES.len() {
            let items = std::mem::take(&mut self.items[side]);
            let moved = items.into_iter().map(|(place, written)| {
                let stands = self.stands(side, &place, &written.value);
                (place, Written { stands, ..written })
            });
            self.items[side] = moved.collect();
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now += seconds;
        self.wall.set(self.now);
    }

    fn change_policy(&mut self, policy: Json) {
        self.policy = policy;
        self.replace(0);
    }

    /// Other properties are computed from now on.
    pub(super) fn redefine(&mut self, random: &mut Random) {
        self.defined = random.defined();
        (0..SIDES.len()).for_each(|side| self.replace(side));
    }

    fn replace(&self, side: usize) {
        self.run(Operation::ReplaceContainer(Replacement {
            at: at(side),
            definition: self.definition(side),
            condition: Condition::default(),
            quota: false,
            confirm_expiry: false,
            showing: Showing::Whole,
        }))
        .unwrap();
    }

    /// A change of the policy comes a little further. `false`: none is under way.
    fn rebuild(&self) -> bool {
        let size = Size { items: 5, bytes: 1 << 20, charge_max: None, urgency: Urgency::Now };
        rebuild::turn(&*self.engine.shared.store, &self.engine.shared.index, size, &Unlimited)
            .unwrap()
            != Moved::Idle
    }

    fn is_alive(&self, written: &Written) -> bool {
        written.expires.is_none_or(|expires| self.now < expires)
    }

    /// What is alive of a piece of a container, range by range in the order in which it
    /// was made.
    pub(super) fn alive(&self, side: usize, piece: &Piece) -> Vec<(&Place, &Written)> {
        let meant = |place: &Place| piece.contains(place.0, &self.layout.spots[place.0]);
        let alive = self.items[side].iter().filter(|(_, written)| self.is_alive(written));
        let mut alive: Vec<_> = alive.filter(|(place, _)| meant(place)).collect();
        alive.sort_by_key(|(_, written)| written.stands);
        alive
    }

    /// The same, as the naive answer needs it.
    pub(super) fn documents(&self, side: usize, piece: &Piece) -> Vec<Document> {
        let request = |defined: &Defined| {
            (defined.name, Request::read(json!({"query": defined.query}).to_string().as_bytes()))
        };
        let defined: Vec<_> = self.defined.iter().map(request).collect();
        let document = |(_, written): (_, &Written)| {
            let defined = defined.iter().map(|(name, request)| (*name, request.as_ref().unwrap()));
            let shown = naive::shown(&written.value, defined);
            let Stands { slice, docno, .. } = written.stands;
            Document { value: written.value.clone(), shown, tie: (slice, docno) }
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
            part: piece.part(),
            page: Page { limit: Some(rows), continuation },
            cross_partition: true,
            scan: true,
            ..QueryItems::default()
        };
        let success = self.run(Operation::QueryItems(query))?;
        let body = String::from_utf8(success.body.to_vec()).unwrap();
        let body = value::read(&body).map_err(|error| format!("{error} in {body}"))?;
        let Value::Array(rows) = body.property("Documents") else {
            return Err("the answer has no rows".to_owned());
        };
        Ok((rows.clone(), success.continuation))
    }

    /// One page of a list: the places of its items, and how the next one starts.
    pub(super) fn list(
        &self,
        side: usize,
        piece: &Piece,
        limit: usize,
        continuation: Option<String>,
    ) -> Result<(Vec<Value>, Option<String>), String> {
        let part = piece.part();
        let page = Page { limit: Some(limit), continuation };
        let success = self.run(Operation::ListItems { at: at(side), part, page })?;
        let body = value::read(&String::from_utf8(success.body.to_vec()).unwrap());
        let body = body.map_err(|error| error.to_string())?;
        let Value::Array(items) = body.property("Documents") else {
            return Err("the list has no items".to_owned());
        };
        Ok((items.clone(), success.continuation))
    }

    /// What a client is told that asks a query of each range by itself.
    pub(super) fn plan(&self, side: usize, query: &Json) -> Result<Json, String> {
        let features: Vec<&str> = Feature::ALL.iter().map(|feature| feature.name()).collect();
        let query = query.to_string().into_bytes();
        let asked = PlanQuery { at: at(side), query, features: features.join(",") };
        let success = self.run(Operation::PlanQuery(asked))?;
        Ok(serde_json::from_slice(&success.body.to_vec()).unwrap())
    }

    /// Everything that is stored fits together.
    pub(super) fn check(&self) {
        self.engine.check().unwrap();
    }
}

impl Random {
    pub(super) fn place(&mut self, division: &Division) -> Place {
        (self.pick(division.keys), self.below(IDS).to_string())
    }

    /// A policy: everything, or not all of it; with some composite indexes.
    fn policy(&mut self, division: &Division) -> Json {
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
        // What is computed is indexed only where it is named.
        let named = self.defined_paths();
        if !named.is_empty() {
            let (mut included, excluded) = lists(&policy);
            let named = named.into_iter().map(|path| json!({ "path": path }));
            included.extend(named.filter(|path| !excluded.contains(path)));
            policy["includedPaths"] = included.into();
        }
        let mut composites: Vec<Json> = Vec::new();
        for paths in COMPOSITES {
            if self.chance(60) {
                composites.push(paths.iter().map(|path| self.member(path)).collect());
            }
        }
        if division.is_deep() {
            self.add_key_paths(&mut policy, division);
            let paths = division.paths.iter().map(|path| path.replace('.', "/"));
            composites.push(paths.map(|path| self.member(&path)).collect());
        }
        if !composites.is_empty() {
            policy["compositeIndexes"] = composites.into();
        }
        policy
    }

    /// Of some parts of a key the policy says something by itself.
    fn add_key_paths(&mut self, policy: &mut Json, division: &Division) {
        let (mut included, mut excluded) = lists(policy);
        for path in division.paths {
            let path = json!({"path": format!("{}/{}", slashed(path), self.pick(&["?", "*"]))});
            let is_new = !included.contains(&path) && !excluded.contains(&path);
            match self.below(3) {
                0 if is_new => included.push(path),
                1 if is_new => excluded.push(path),
                _ => {}
            }
        }
        policy["includedPaths"] = included.into();
        policy["excludedPaths"] = excluded.into();
    }

    fn member(&mut self, path: &str) -> Json {
        let order = self.pick(&["ascending", "descending"]);
        json!({"path": format!("/{path}"), "order": order})
    }
}

/// What a policy includes and excludes.
fn lists(policy: &Json) -> (Vec<Json>, Vec<Json>) {
    let included = policy["includedPaths"].as_array().cloned();
    let excluded = policy["excludedPaths"].as_array().cloned();
    (included.unwrap_or_else(|| vec![json!({"path": "/*"})]), excluded.unwrap_or_default())
}

impl Piece {
    fn part(&self) -> Part {
        Part {
            partition_key: self.key.as_deref().map(key),
            range: self.range.clone(),
            start: self.start.clone(),
            end: self.end.clone(),
        }
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
