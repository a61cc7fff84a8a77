//! An engine with a clock set by hand; the only thing in these tests that
//! calls it.
//!
//! A *stepped* server has no committer: groups are begun and published by hand,
//! so that whatever is to happen between the two can. What waits for commits of
//! its own (a purge, a start) runs on a thread beside, with somebody who
//! commits.

mod counted;

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use dayfly_model::json;
use dayfly_model::partition_key::{Component, PartitionKey};
use dayfly_model::{ErrorKind, Timestamp};
use dayfly_storage::clock::HandWall;
use dayfly_storage::suite::{Far, FarReads, Stepped};
use dayfly_storage::{
    Batch, Direction, Disk, Draft, Local, LocalOptions, Memory, Pair, Plan, View, commit,
};
use serde_json::Value;

use self::counted::Counted;
use super::watched::Watched;
use crate::check::Recount;
use crate::desk::Desk;
use crate::items::Spot;
use crate::operation::{
    Act, Condition, ContainerScope, Indexing, ItemAddress, Operation, Page, Part, Replacement,
    Showing, WriteItem,
};
use crate::reply::{Reply, Success};
use crate::{Answer, Engine, EngineSettings, QueryLimits, keys};

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Memory {
        slices: usize,
    },
    /// In memory, and every write is committed at once.
    Watched {
        slices: usize,
    },
    Disk {
        slices: usize,
    },
    /// In memory, behind what looks like a network.
    Far {
        slices: usize,
    },
}

/// How a server is set up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) kind: Kind,
    /// Whether groups are begun and published by hand.
    pub(super) stepped: bool,
    pub(super) change_delay_seconds: u64,
    pub(super) cache_bytes: u64,
    /// Whether the container has the tenant of an item above its `pk` in the partition key.
    pub(super) hierarchical: bool,
    pub(super) limits: QueryLimits,
    pub(super) container_quota: Option<u64>,
    pub(super) partition_quota: Option<u64>,
}

/// The tenant of all items.
pub(super) const TENANT: &str = "t";

impl Setup {
    /// The usual one.
    pub(super) fn of(kind: Kind) -> Setup {
        Setup {
            kind,
            stepped: false,
            change_delay_seconds: 0,
            cache_bytes: LocalOptions::default().cache_bytes,
            hierarchical: false,
            limits: QueryLimits::SMALL,
            container_quota: None,
            partition_quota: None,
        }
    }

    /// The key of the items that have this `pk`.
    pub(super) fn partition_key(&self, pk: &str) -> PartitionKey {
        let tenant = self.hierarchical.then_some(TENANT);
        let parts = tenant.into_iter().chain([pk]).map(|part| Component::String(part.to_owned()));
        PartitionKey(parts.collect())
    }

    fn definition(&self, default: Option<i64>, unique: &[&str]) -> Value {
        let key = if self.hierarchical {
            serde_json::json!({"paths": ["/tenant", "/pk"], "kind": "MultiHash"})
        } else {
            serde_json::json!({"paths": ["/pk"]})
        };
        let mut definition = serde_json::json!({"id": "c", "partitionKey": key});
        if let Some(default) = default {
            definition["defaultTtl"] = default.into();
        }
        if !unique.is_empty() {
            definition["uniqueKeyPolicy"] = serde_json::json!({"uniqueKeys": [{"paths": unique}]});
        }
        definition
    }

    pub(super) fn slices(&self) -> usize {
        match self.kind {
            Kind::Memory { slices }
            | Kind::Watched { slices }
            | Kind::Disk { slices }
            | Kind::Far { slices } => slices,
        }
    }
}

/// What a crash takes with it, besides the process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Crash {
    /// Nothing.
    Kill,
    /// What was not synced; on the disk in memory only.
    PowerCut,
}

/// Who purges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purge {
    AllAtOnce,
    /// The background, until it rests.
    InTurns,
}

pub(super) struct Server {
    setup: Setup,
    wall: Arc<HandWall>,
    disk: Disk,
    folder: tempfile::TempDir,
    /// How many folders were made.
    folders: usize,
    store: Option<Arc<Counted>>,
    watched: Option<Arc<Watched>>,
    /// What was read from afar.
    pub(super) reads: Arc<FarReads>,
    engine: Option<Engine>,
}

/// A write or a change that is not answered yet.
pub(super) type Ticket = Pin<Box<dyn Future<Output = Reply> + Send>>;

impl Server {
    pub(super) fn new(kind: Kind) -> Self {
        Server::with_delay(kind, 0)
    }

    /// A server on which a change of the default waits so many seconds.
    pub(super) fn with_delay(kind: Kind, change_delay_seconds: u64) -> Self {
        Server::with(Setup { change_delay_seconds, ..Setup::of(kind) })
    }

    pub(super) fn with(setup: Setup) -> Self {
        // In memory where there is such a place: this is not about the disk's speed.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let mut server = Server {
            setup,
            wall: Arc::new(HandWall::at(1000)),
            disk: Disk::default(),
            folder,
            folders: 0,
            store: None,
            watched: None,
            reads: Arc::default(),
            engine: None,
        };
        server.start();
        server
    }

    fn start(&mut self) {
        let options = LocalOptions {
            manual: self.setup.stepped || matches!(self.setup.kind, Kind::Watched { .. }),
            cache_bytes: self.setup.cache_bytes,
            wall: Arc::clone(&self.wall) as _,
            ..LocalOptions::default()
        };
        let memory = |options| Local::on(Memory::on(&self.disk), options).unwrap();
        let store: Box<dyn Stepped> = match self.setup.kind {
            Kind::Memory { .. } => Box::new(memory(options)),
            Kind::Far { .. } => {
                Box::new(Far::new(Box::new(memory(options)), Arc::clone(&self.reads)))
            }
            Kind::Disk { .. } => Box::new(Local::open(self.path(), options).unwrap()),
            Kind::Watched { .. } => {
                let watched = Arc::new(Watched::new(memory(options)));
                self.watched = Some(Arc::clone(&watched));
                self.engine = Some(Engine::open(watched, self.settings()).unwrap());
                return;
            }
        };
        let store = Arc::new(Counted::new(store));
        self.store = Some(Arc::clone(&store));
        let settings = self.settings();
        self.engine = Some(self.pumped(|_| Engine::open(store, settings).unwrap()).0);
    }

    fn settings(&self) -> EngineSettings {
        EngineSettings {
            ranges_min: self.setup.slices(),
            change_delay_seconds: self.setup.change_delay_seconds,
            query_limits: self.setup.limits,
            container_quota: self.setup.container_quota,
            partition_quota: self.setup.partition_quota,
            ..EngineSettings::default()
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(self.folders.to_string())
    }

    pub(super) fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    fn store(&self) -> &Counted {
        self.store.as_ref().unwrap()
    }

    pub(super) fn clock(&mut self, second: u64) {
        self.wall.set(second);
    }

    pub(super) fn wall(&self) -> &HandWall {
        &self.wall
    }

    /// Stops the server as a signal would, and starts it again.
    pub(super) fn restart(&mut self) {
        self.engine().close().unwrap();
        self.stop();
        self.start();
    }

    /// Takes away the server where it stands, and starts one on what the disk
    /// holds at that moment.
    pub(super) fn crash(&mut self, crash: Crash) {
        let before = self.path();
        self.folders += 1;
        let disk = match (self.setup.kind, crash) {
            (Kind::Disk { .. }, _) => {
                copy_folder(&before, &self.path());
                Disk::default()
            }
            (_, Crash::Kill) => self.disk.after_kill(),
            (_, Crash::PowerCut) => self.disk.after_power_cut(),
        };
        // What the old server still does happens to the old disk.
        self.stop();
        if before.exists() {
            std::fs::remove_dir_all(&before).unwrap();
        }
        self.disk = disk;
        self.start();
    }

    fn stop(&mut self) {
        if let Some(engine) = self.engine.take() {
            // The clerk may be waiting for a commit.
            self.pumped_with(0, |_| drop(engine), || ());
        }
        self.store = None;
        self.watched = None;
    }

    /// Does what waits for commits of its own, and commits meanwhile, if
    /// nobody else does. Says whether there was anything to commit.
    fn pumped<T: Send>(&self, act: impl FnOnce(Option<&Engine>) -> T + Send) -> (T, bool) {
        let handled = self.store.as_ref().map_or(0, |store| store.submitted());
        self.pumped_with(handled, act, || ())
    }

    /// The same; the first commit is made as soon as more than `handled` writes
    /// were handed in, and `meanwhile` is called before it.
    fn pumped_with<T: Send>(
        &self,
        mut handled: u64,
        act: impl FnOnce(Option<&Engine>) -> T + Send,
        meanwhile: impl FnOnce(),
    ) -> (T, bool) {
        if !self.setup.stepped {
            return (act(self.engine.as_ref()), false);
        }
        let (store, engine) = (self.store(), self.engine.as_ref());
        let mut meanwhile = Some(meanwhile);
        let mut pumped = false;
        let act = std::thread::scope(|scope| {
            let store_of_act = store;
            let act = scope.spawn(move || {
                let done = store_of_act.tells_when_done();
                let outcome = act(engine);
                drop(done);
                outcome
            });
            while store.waits_or_done(handled) {
                pumped = true;
                if let Some(meanwhile) = meanwhile.take() {
                    meanwhile();
                }
                handled = store.submitted();
                store.begin_group();
                store.publish_group();
            }
            act.join()
        });
        (act.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), pumped)
    }

    /// Removes what is due, with every commit that this needs and every write
    /// that waited before. `meanwhile` is called when the first piece of work is
    /// drafted and waits; `true`: there was one.
    pub(super) fn purge_while(&self, by: Purge, meanwhile: impl FnOnce()) -> bool {
        let purge = |engine: Option<&Engine>| match by {
            Purge::AllAtOnce => engine.unwrap().purge_all().unwrap(),
            Purge::InTurns => turns(engine.unwrap()),
        };
        self.pumped_with(self.submitted(), purge, meanwhile).1
    }

    /// Stops the background purge, or lets it go on.
    pub(super) fn steer_purge(&self, paused: bool) {
        let container = Some(("d".to_owned(), "c".to_owned()));
        let operation = if paused {
            Operation::PausePurge { container }
        } else {
            Operation::ResumePurge { container }
        };
        self.ask(operation).outcome.unwrap();
    }

    /// Begins a group with the writes that wait.
    pub(super) fn begin(&self) {
        self.store().begin_group();
    }

    /// Publishes the group that was begun.
    pub(super) fn publish(&self) {
        self.store().publish_group();
    }

    /// How many writes were handed in so far.
    pub(super) fn submitted(&self) -> u64 {
        self.store().submitted()
    }

    /// Waits until more writes than `known` were handed in. `false`: there will
    /// be none, since it is `over`.
    pub(super) fn await_submit(&self, known: u64, over: impl FnMut() -> bool) -> bool {
        self.store().await_submit(known, over)
    }

    /// Hands an operation in. Wherever it begins, it has begun then.
    pub(super) fn hand_in(&self, operation: Operation) -> Ticket {
        match self.engine().run(operation).begun() {
            Answer::Ready(reply) => Box::pin(std::future::ready(reply)),
            Answer::Pending(pending) => match self.engine().board.desk.clone() {
                Some(desk) => Box::pin(when_all_is_done(desk, Box::pin(pending.answer()))),
                None => Box::pin(pending.answer()),
            },
        }
    }

    /// Asks what is answered at once.
    pub(super) fn ask(&self, operation: Operation) -> Reply {
        self.engine().run(operation).wait()
    }

    /// Which of the container's buckets has this partition key.
    pub(super) fn slice_of(&self, key: &str) -> usize {
        let opened = self.engine().shared.enter(&at(), ErrorKind::NotFound).unwrap();
        let spot = Spot::new(&opened.container, &self.setup.partition_key(key), b"a".to_vec());
        opened.container.buckets().position(|bucket| bucket == spot.bucket).unwrap()
    }

    /// Which of the container's ranges has it.
    pub(super) fn range_of(&self, key: &str) -> usize {
        let opened = self.engine().shared.enter(&at(), ErrorKind::NotFound).unwrap();
        let epk = opened.container.epk(&self.setup.partition_key(key));
        let mut ranges = opened.container.ranges.iter();
        ranges.rposition(|range| range.min.0 <= epk.0).unwrap()
    }

    /// Where in the space of keys it is.
    pub(super) fn epk_of(&self, key: &str) -> Vec<u8> {
        let opened = self.engine().shared.enter(&at(), ErrorKind::NotFound).unwrap();
        opened.container.epk(&self.setup.partition_key(key)).0
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
    /// `false`: there are none left.
    pub(super) fn damage_figures(&self) -> bool {
        let store = &self.engine().shared.store;
        let buckets = store.buckets().into_iter();
        let buckets = buckets.filter(|bucket| keys::container_of(*bucket).is_some());
        buckets
            .map(|bucket| store.clear(bucket, &keys::all_lives(), 1).unwrap().removed)
            .sum::<usize>()
            > 0
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

    pub(super) fn watched(&self) -> &Watched {
        self.watched.as_ref().unwrap()
    }

    /// One turn of the purge. Returns how long it rests.
    pub(super) fn turn(&self) -> Duration {
        self.engine().purge_turn()
    }

    /// Turns of the purge until it rests. Returns how many items went.
    pub(super) fn turns(&self) -> u64 {
        turns(self.engine())
    }

    /// The system's clock shows `second`, and no time has passed.
    pub(super) fn jump(&self, second: u64) {
        self.wall.jump(second);
    }

    pub(super) fn run(&self, operation: Operation) -> Result<Success, ErrorKind> {
        let (reply, _) = self.pumped(|engine| engine.unwrap().run(operation).wait());
        reply.outcome.map_err(|error| error.kind)
    }

    pub(super) fn make_container(&mut self, default: Option<i64>, unique: &[&str]) {
        self.run(Operation::CreateDatabase { id: "d".to_owned(), throughput: None }).unwrap();
        let definition = self.setup.definition(default, unique).to_string().into_bytes();
        let database = "d".to_owned();
        self.run(Operation::CreateContainer {
            database,
            definition,
            throughput: None,
            showing: Showing::Whole,
        })
        .unwrap();
    }

    pub(super) fn set_default(&mut self, default: Option<i64>, unique: &[&str]) {
        self.try_default(default, unique).unwrap();
    }

    pub(super) fn try_default(
        &self,
        default: Option<i64>,
        unique: &[&str],
    ) -> Result<Success, ErrorKind> {
        self.run(self.change_of_default(default, unique))
    }

    /// A change of the container's default, and of its indexing policy with it.
    pub(super) fn change_of_default(&self, default: Option<i64>, unique: &[&str]) -> Operation {
        let mut definition = self.setup.definition(default, unique);
        definition["indexingPolicy"] = indexing(default);
        Operation::ReplaceContainer(Replacement {
            at: at(),
            definition: definition.to_string().into_bytes(),
            condition: Condition::default(),
            quota: false,
            confirm_expiry: false,
            showing: Showing::Whole,
        })
    }

    pub(super) fn delete_container(&mut self) {
        self.run(Operation::DeleteContainer { at: at(), condition: Condition::default() }).unwrap();
    }

    fn write(&self, act: Act, key: &str) -> Result<Value, ErrorKind> {
        let success = self.run(write(act, key))?;
        Ok(serde_json::from_slice(&success.body.to_vec()).unwrap())
    }

    pub(super) fn create(&self, item: Value) -> Result<Value, ErrorKind> {
        self.write(Act::Create(text(&item)), &item["pk"].to_string())
    }

    pub(super) fn upsert(&self, item: Value) -> Result<Value, ErrorKind> {
        self.write(Act::Upsert(text(&item)), &item["pk"].to_string())
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
        self.dump().iter().filter(|(key, _)| key.starts_with(b"i")).count()
    }

    /// How many items a list shows.
    pub(super) fn listed(&self) -> usize {
        let (mut count, mut page) = (0, Page::default());
        loop {
            let list = Operation::ListItems { at: at(), part: Part::default(), page };
            let success = self.run(list).unwrap();
            count += success.item_count.unwrap();
            if success.continuation.is_none() {
                return count;
            }
            page = Page { limit: None, continuation: success.continuation };
        }
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

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// An answer that waits for nobody but the committer whenever it is polled: what there is to
/// do for it at the desk is done then.
fn when_all_is_done(desk: Arc<Desk>, mut answer: Ticket) -> impl Future<Output = Reply> {
    std::future::poll_fn(move |context| {
        loop {
            let done = desk.done();
            match answer.as_mut().poll(context) {
                Poll::Pending if desk.done_all() > done => {}
                polled => return polled,
            }
        }
    })
}

/// Turns of the purge until it rests. Returns how many items went.
fn turns(engine: &Engine) -> u64 {
    let before = engine.purged_items();
    while engine.purge_turn() < Duration::from_secs(1) {}
    engine.purged_items() - before
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

/// The operation that makes `item`, or replaces it.
pub(super) fn upsert(item: &Value) -> Operation {
    write(Act::Upsert(text(item)), &item["pk"].to_string())
}

/// A write to the partition with the key that is spelled `key`.
pub(super) fn write(act: Act, key: &str) -> Operation {
    Operation::WriteItem(WriteItem {
        at: at(),
        act,
        partition_key: Some(PartitionKey::parse_header(&format!("[{key}]")).unwrap()),
        condition: Condition::default(),
        minimal: false,
        indexing: Indexing::default(),
    })
}

/// The container that all these tests are about.
pub(super) fn at() -> ContainerScope {
    ContainerScope {
        database: "d".to_owned(),
        container: "c".to_owned(),
        ..ContainerScope::default()
    }
}

pub(super) fn partition_key(key: &str) -> PartitionKey {
    PartitionKey::parse_header(&format!("[\"{key}\"]")).unwrap()
}

/// Each change of the default changes the indexing policy too: so whatever is
/// proven of histories is proven while indexes are rebuilt.
fn indexing(default: Option<i64>) -> Value {
    let composite = serde_json::json!([
        [{"path": "/email", "order": "descending"}, {"path": "/_ts"}],
    ]);
    match default.map(|default| default.rem_euclid(3)) {
        None | Some(0) => serde_json::json!({}),
        Some(1) => serde_json::json!({
            "includedPaths": [{"path": "/mark/?"}],
            "excludedPaths": [{"path": "/*"}],
            "compositeIndexes": composite,
        }),
        Some(_) => serde_json::json!({
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/mark/?"}],
        }),
    }
}

pub(super) fn text(item: &Value) -> json::ObjectText {
    json::parse(item.to_string().as_bytes(), &[]).unwrap()
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
