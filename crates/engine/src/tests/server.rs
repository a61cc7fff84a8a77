//! An engine with a clock set by hand; the only thing in these tests that
//! calls it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dayfly_model::json;
use dayfly_model::partition_key::PartitionKey;
use dayfly_model::{ErrorKind, Timestamp};
use dayfly_storage::clock::HandWall;
use dayfly_storage::{
    Batch, Direction, Disk, Draft, Local, LocalOptions, Memory, Pair, Plan, Store, View, commit,
};
use serde_json::Value;

use super::watched::Watched;
use crate::check::Recount;
use crate::operation::{
    Act, Condition, ContainerScope, ItemAddress, Operation, Page, Part, Replacement, WriteItem,
};
use crate::reply::{Reply, Success};
use crate::{Engine, EngineSettings, keys};

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Memory { slices: usize },
    Watched { slices: usize },
    Disk,
}

pub(super) struct Server {
    kind: Kind,
    wall: Arc<HandWall>,
    disk: Disk,
    folder: tempfile::TempDir,
    /// How long a change of the default waits.
    delay: u64,
    engine: Option<Engine>,
    watched: Option<Arc<Watched>>,
}

impl Server {
    pub(super) fn new(kind: Kind) -> Self {
        Server::with_delay(kind, 0)
    }

    /// A server on which a change of the default waits so many seconds.
    pub(super) fn with_delay(kind: Kind, delay: u64) -> Self {
        let mut server = Server {
            kind,
            wall: Arc::new(HandWall::at(1000)),
            disk: Disk::default(),
            folder: tempfile::tempdir().unwrap(),
            delay,
            engine: None,
            watched: None,
        };
        server.start();
        server
    }

    fn start(&mut self) {
        let options = LocalOptions { wall: Arc::clone(&self.wall) as _, ..LocalOptions::default() };
        let (store, slices): (Arc<dyn Store>, usize) = match self.kind {
            Kind::Memory { slices } => {
                (Arc::new(Local::on(Memory::on(&self.disk), options).unwrap()), slices)
            }
            Kind::Watched { slices } => {
                let options = LocalOptions { manual: true, ..options };
                let local = Local::on(Memory::on(&self.disk), options).unwrap();
                let watched = Arc::new(Watched::new(local));
                self.watched = Some(Arc::clone(&watched));
                (watched, slices)
            }
            Kind::Disk => {
                (Arc::new(Local::open(self.folder.path().join("d"), options).unwrap()), 1)
            }
        };
        let change_delay_seconds = self.delay;
        let settings = EngineSettings { slices, change_delay_seconds, ..EngineSettings::default() };
        self.engine = Some(Engine::open(store, settings).unwrap());
    }

    pub(super) fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    pub(super) fn clock(&mut self, second: u64) {
        self.wall.set(second);
    }

    pub(super) fn restart(&mut self) {
        self.engine().close().unwrap();
        self.engine = None;
        self.watched = None;
        self.start();
    }

    pub(super) fn crash(&mut self) {
        self.engine = None;
        self.watched = None;
        self.disk = self.disk.after_kill();
        self.start();
    }

    pub(super) fn now(&self) -> Timestamp {
        self.engine().run(Operation::ReadTime).wait().now.unwrap()
    }

    pub(super) fn purge(&self) -> u64 {
        self.engine().purge_all().unwrap()
    }

    pub(super) fn recount(&self, pick: u64, rest: impl FnMut() -> bool) -> Recount {
        self.engine().recount(pick, rest).unwrap()
    }

    /// How many recounts were right, wrong, and left out.
    pub(super) fn recounts(&self) -> [u64; 3] {
        let recounts = self.engine().recounts();
        [&recounts.right, &recounts.wrong, &recounts.left_out]
            .map(|counter| counter.load(Ordering::Relaxed))
    }

    /// Takes away a row of the life histogram.
    pub(super) fn damage_figures(&self) {
        let store = &self.engine().shared.store;
        for bucket in store.buckets() {
            if keys::container_of(bucket).is_some() {
                store.clear(bucket, &keys::all_lives(), 1).unwrap();
            }
        }
    }

    /// Makes the heads of containers unreadable.
    pub(super) fn damage_head(&self) {
        let store = &*self.engine().shared.store;
        for bucket in store.buckets() {
            if keys::container_of(bucket).is_some() {
                commit(store, bucket, Damage).wait().unwrap();
            }
        }
    }

    /// The system's clock shows `second`, and no time has passed.
    pub(super) fn jump(&self, second: u64) {
        self.wall.jump(second);
    }

    pub(super) fn watched(&self) -> &Watched {
        self.watched.as_ref().unwrap()
    }

    /// One turn of the purge. Returns how long it rests.
    pub(super) fn turn(&self) -> Duration {
        self.engine().purge_turn()
    }

    /// Turns of the purge until it rests. Returns how many items went.
    pub(super) fn turns(&self) -> u64 {
        let before = self.engine().purged_items();
        while self.turn() < Duration::from_secs(1) {}
        self.engine().purged_items() - before
    }

    pub(super) fn run(&self, operation: Operation) -> Result<Success, ErrorKind> {
        let Reply { outcome, .. } = self.engine().run(operation).wait();
        outcome.map_err(|error| error.kind)
    }

    pub(super) fn make_container(&mut self, default: Option<i64>, unique: &[&str]) {
        self.run(Operation::CreateDatabase { id: "d".to_owned(), throughput: None }).unwrap();
        let definition = definition(default, unique).to_string().into_bytes();
        let database = "d".to_owned();
        self.run(Operation::CreateContainer { database, definition, throughput: None }).unwrap();
    }

    pub(super) fn set_default(&mut self, default: Option<i64>, unique: &[&str]) {
        self.try_default(default, unique).unwrap();
    }

    pub(super) fn try_default(
        &self,
        default: Option<i64>,
        unique: &[&str],
    ) -> Result<Success, ErrorKind> {
        let definition = definition(default, unique).to_string().into_bytes();
        let replacement = Replacement {
            at: at(),
            definition,
            condition: Condition::default(),
            quota: false,
            confirm_expiry: false,
        };
        self.run(Operation::ReplaceContainer(replacement))
    }

    pub(super) fn delete_container(&mut self) {
        self.run(Operation::DeleteContainer { at: at(), condition: Condition::default() }).unwrap();
    }

    fn write(&self, act: Act, key: &str) -> Result<Value, ErrorKind> {
        let success = self.run(write(act, key))?;
        Ok(serde_json::from_slice(&success.body.to_vec()).unwrap_or(Value::from(success.status)))
    }

    pub(super) fn create(&self, item: Value) -> Result<Value, ErrorKind> {
        self.write(Act::Create(text(&item)), &item["pk"].to_string())
    }

    pub(super) fn upsert(&self, item: Value) -> Result<Value, ErrorKind> {
        self.write(Act::Upsert(text(&item)), &item["pk"].to_string())
    }

    pub(super) fn replace(&self, item: Value) -> Result<Value, ErrorKind> {
        let id = item["id"].as_str().unwrap().to_owned();
        self.write(Act::Replace(id, text(&item)), &item["pk"].to_string())
    }

    pub(super) fn delete(&self, id: &str, key: &str) -> Result<Value, ErrorKind> {
        self.write(Act::Delete(id.to_owned()), &format!("\"{key}\""))
    }

    pub(super) fn read(&self, id: &str, key: &str) -> Result<Value, ErrorKind> {
        self.read_at(id, &format!("\"{key}\""))
    }

    pub(super) fn read_at(&self, id: &str, key: &str) -> Result<Value, ErrorKind> {
        let partition_key = Some(PartitionKey::parse_header(&format!("[{key}]")).unwrap());
        let item = ItemAddress { id: id.to_owned(), partition_key };
        let condition = Condition::default();
        let success = self.run(Operation::ReadItem { at: at(), item, condition })?;
        Ok(serde_json::from_slice(&success.body.to_vec()).unwrap())
    }

    /// All items, read in pages of `limit`.
    pub(super) fn list(&self, limit: usize) -> Vec<Value> {
        let mut items = Vec::new();
        let mut continuation = None;
        loop {
            let page = Page { limit: Some(limit), continuation };
            let part = Part::default();
            let success = self.run(Operation::ListItems { at: at(), part, page }).unwrap();
            let body: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
            items.extend(body["Documents"].as_array().unwrap().clone());
            continuation = success.continuation;
            if continuation.is_none() {
                return items;
            }
        }
    }

    /// Everything stored for containers.
    pub(super) fn dump(&self) -> Vec<Pair> {
        let store = &self.engine().shared.store;
        let snapshot = store.snapshot().unwrap();
        store
            .buckets()
            .into_iter()
            .filter(|bucket| keys::container_of(*bucket).is_some())
            .flat_map(|bucket| {
                snapshot.scan(bucket, &keys::everything(), Direction::Forward, usize::MAX).unwrap()
            })
            .collect()
    }

    /// How many items are stored, dead or alive.
    pub(super) fn stored_items(&self) -> usize {
        self.dump().iter().filter(|(key, _)| keys::ItemKey::of_record(key).is_some()).count()
    }

    pub(super) fn rows(&self) -> usize {
        self.dump().len()
    }

    /// How many buckets of containers there are.
    pub(super) fn heads(&self) -> usize {
        let buckets = self.engine().shared.store.buckets();
        buckets.into_iter().filter(|bucket| keys::container_of(*bucket).is_some()).count()
    }

    /// Everything that is stored fits together.
    pub(super) fn check(&self) {
        self.engine().check().unwrap();
    }

    pub(super) fn commits(&self) -> u64 {
        self.engine().figures().commits
    }
}

/// Gives a bucket a head that nobody can read.
struct Damage;

impl Plan for Damage {
    type Done = ();
    type Refusal = dayfly_storage::Error;

    fn draft(&self, _: &View<'_>) -> dayfly_storage::Result<Draft<()>> {
        Ok(Draft::new(|_, batch: &mut Batch| batch.set_state("?")))
    }
}

/// The operation that makes `item`.
pub(super) fn creation(item: &Value) -> Operation {
    write(Act::Create(text(item)), &item["pk"].to_string())
}

fn write(act: Act, key: &str) -> Operation {
    Operation::WriteItem(WriteItem {
        at: at(),
        act,
        partition_key: Some(PartitionKey::parse_header(&format!("[{key}]")).unwrap()),
        condition: Condition::default(),
        minimal: false,
    })
}

fn at() -> ContainerScope {
    ContainerScope {
        database: "d".to_owned(),
        container: "c".to_owned(),
        ..ContainerScope::default()
    }
}

fn definition(default: Option<i64>, unique: &[&str]) -> Value {
    let mut definition = serde_json::json!({"id": "c", "partitionKey": {"paths": ["/pk"]}});
    if let Some(default) = default {
        definition["defaultTtl"] = default.into();
    }
    if !unique.is_empty() {
        definition["uniqueKeyPolicy"] = serde_json::json!({"uniqueKeys": [{"paths": unique}]});
    }
    definition
}

fn text(item: &Value) -> json::ObjectText {
    json::parse(item.to_string().as_bytes(), &[]).unwrap()
}
