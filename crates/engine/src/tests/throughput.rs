//! What the purge lives on, and that no user notices. Rows B37 to B39, and the properties
//! of left-over units.

use dayfly_model::meter::{Priority, Service, Units};
use dayfly_model::patch::Patch;
use dayfly_model::throughput::Throughput;
use dayfly_model::{Error, ErrorKind};
use dayfly_storage::Bucket;
use serde_json::{Value, json};

use super::charges::LIMITS;
use super::random::Random;
use super::server::{Kind, Server, Setup, at, creation, partition_key, write};
use crate::index::rebuild::RebuildMeans;
use crate::locks::lock;
use crate::operation::{
    Act, BatchForm, BatchMode, ChangesFrom, Condition, ContainerScope, FeedMode, ItemAddress,
    Operation, Page, Part, QueryItems, ReadChanges, Showing, WriteBatch, WriteItem,
};
use crate::reply::Reply;
use crate::settings::ThroughputMode;

/// For rebuilds that somebody waits for.
pub(super) struct Unlimited;

impl RebuildMeans for Unlimited {
    fn most(&self, _: Bucket) -> Option<Units> {
        None
    }

    fn spent(&self, _: Bucket, _: dayfly_model::charge::Charge) {}

    fn idle(&self, _: Bucket) {}
}

/// What deleting one of the garbage costs: it has ten terms of the index.
const GARBAGE_RU: f64 = 6.95;

/// An item with ten terms of the index.
fn litter(id: &str, pk: &str) -> Value {
    json!({
        "id": id, "pk": pk,
        "a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9,
    })
}

/// What a container is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    /// 400 RU/s of its own.
    Own,
    /// What its database shares, 400 RU/s.
    Shared,
    /// From 100 RU/s up to 1,000.
    Scaling,
}

impl Given {
    fn rate(self) -> f64 {
        if self == Given::Scaling { 1_000.0 } else { 400.0 }
    }
}

/// A server with a container of 400 RU/s, in which there is so much that has expired, and
/// something large that lives.
fn server(garbage: u64) -> Server {
    offering(Given::Own, garbage)
}

/// The same with another offer.
fn offering(given: Given, garbage: u64) -> Server {
    let kind = Kind::Memory { slices: 1 };
    let mut server = Server::with(Setup { limits: LIMITS, ..Setup::of(kind) });
    let shared = (given == Given::Shared).then_some(Throughput::Manual(400));
    let id = "d".to_owned();
    server.run(Operation::CreateDatabase { id, throughput: shared }).unwrap();
    let scaling = Throughput::Autoscale { max: 1_000, increment: None };
    let definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"]}, "defaultTtl": 5});
    server
        .run(Operation::CreateContainer {
            database: "d".to_owned(),
            definition: definition.to_string().into_bytes(),
            throughput: (given == Given::Scaling).then_some(scaling),
            showing: Showing::Whole,
        })
        .unwrap();
    let text = "x".repeat(1_500_000);
    for id in ["one", "two"] {
        server.create(json!({"id": id, "pk": "large", "ttl": -1, "text": text})).unwrap();
    }
    for number in 0..garbage {
        server.create(litter(&format!("g{number}"), "garbage")).unwrap();
    }
    server.clock(1006);
    switch(&server, ThroughputMode::Enforced);
    server
}

fn switch(server: &Server, mode: ThroughputMode) {
    server.run(Operation::SwitchThroughput { at: at(), mode: Some(mode) }).unwrap();
}

/// A look at an item that is not there, for 1 RU.
fn miss() -> Operation {
    let item = ItemAddress { id: "nobody".to_owned(), partition_key: Some(partition_key("u")) };
    Operation::ReadItem { at: at(), item, condition: Condition::default() }
}

/// Asks so often; says how many were refused.
fn misses(server: &Server, count: u64) -> u64 {
    (0..count).filter(|_| told(&server.ask(miss())).0 == 429).count() as u64
}

/// What a user is told: the status, the charge, and the time to wait.
fn told(reply: &Reply) -> (u16, f64, Option<u64>) {
    match &reply.outcome {
        Ok(success) => (success.status, reply.charge.ru(), None),
        Err(error) => (error.kind.wire().status, reply.charge.ru(), error.retry_after_ms),
    }
}

fn purged(server: &Server) -> u64 {
    server.engine().purged_items()
}

fn spent(server: &Server) -> Units {
    let metering = &server.engine().shared.metering;
    metering.purses().iter().map(|(_, purse)| lock(purse).spent().background).sum()
}

/// Rows B37 and B38: 10 RU/s are left over for 30 s, and then all.
#[test]
fn the_purge_lives_on_what_users_leave_over() {
    let server = server(2_000);
    for _ in 0..300 {
        assert_eq!(misses(&server, 39), 0);
        server.wall().pass_milliseconds(100);
        server.turns();
    }
    assert!((43..=44).contains(&purged(&server)), "{}", purged(&server));
    // 1,956 more at 6.95, of which 400 RU are paid for in each second.
    for _ in 0..36 {
        server.wall().pass_milliseconds(1000);
        server.turns();
    }
    assert_eq!(purged(&server), 2_000);
    assert!((spent(&server).ru() - 2_000.0 * GARBAGE_RU).abs() < 1e-6);
}

#[test]
fn while_users_take_all_there_is_the_purge_rests() {
    let server = server(100);
    for _ in 0..50 {
        misses(&server, 60);
        server.wall().pass_milliseconds(100);
        server.turns();
    }
    assert_eq!(purged(&server), 0);
}

/// Whatever users take, what is dead does not stay for ever: 20 RU/s are for the purge once
/// there is more that is dead than what lives.
#[test]
fn a_large_backlog_is_purged_whatever_users_take() {
    let server = server(1_000);
    switch(&server, ThroughputMode::Measured);
    for id in ["one", "two"] {
        server.run(write(Act::Delete(id.to_owned()), "\"large\"")).unwrap();
    }
    switch(&server, ThroughputMode::Enforced);
    misses(&server, 400);
    for _ in 0..100 {
        server.turns();
        misses(&server, 60);
        server.wall().pass_milliseconds(100);
    }
    let told = server.engine().throughput_figures(10).unwrap();
    assert!(told[0].is_forced);
    // 10 s at 20 RU/s, from the first look on.
    assert!((25..=30).contains(&purged(&server)), "{}", purged(&server));
    // It is not taken from users: they had 400 and 4,000.
    assert!(told[0].used >= 4_300.0, "{told:?}");
}

#[test]
fn where_nothing_is_enforced_the_purge_does_not_ask() {
    let server = server(500);
    switch(&server, ThroughputMode::Measured);
    server.turns();
    assert_eq!(purged(&server), 500);
}

/// An operator who waits does not wait for units.
#[test]
fn a_purge_that_is_asked_for_spends_what_it_takes() {
    let server = server(500);
    misses(&server, 500);
    server.run(Operation::RunPurge { container: None }).unwrap();
    assert_eq!(purged(&server), 500);
}

/// What a user does in a history: in one partition mostly, with any priority, and in a
/// throughput bucket that has a share or in none.
fn act(random: &mut Random) -> Operation {
    let id = random.below(20).to_string();
    let text = "y".repeat(usize::try_from(random.below(90_000)).unwrap());
    let item: Value = json!({"id": id, "pk": "u", "ttl": -1, "text": text, "n": random.below(9)});
    let part = Part::of(Some(partition_key("u")));
    let anywhere = if random.chance(20) { Part::default() } else { part.clone() };
    let mut operation = match random.below(15) {
        0..=2 => creation(&item),
        3 => super::server::upsert(&item),
        4 => write(Act::Delete(id), "\"u\""),
        5 => Operation::ListItems { at: at(), part: anywhere, page: Page::default() },
        6 => miss(),
        7 => {
            let steps = json!([{"op": "set", "path": "/n", "value": random.below(9)}]);
            let patch = Patch::read(steps.to_string().as_bytes()).unwrap();
            write(Act::Patch(id, patch), "\"u\"")
        }
        8 => {
            let small = |place: u64| json!({"id": format!("b{place}"), "pk": "u", "ttl": -1});
            let steps = 0..1 + random.below(4);
            let steps = steps.map(|place| match super::server::upsert(&small(place)) {
                Operation::WriteItem(write) => Ok(write),
                _ => unreachable!(),
            });
            let (steps, form) = (steps.collect(), BatchForm::Text);
            Operation::WriteBatch(WriteBatch {
                at: at(),
                part,
                mode: BatchMode::Atomic,
                steps,
                form,
            })
        }
        9 | 10 => Operation::QueryItems(QueryItems {
            at: at(),
            query: json!({"query": random.pick(&QUERIES)}).to_string().into_bytes(),
            part: anywhere,
            page: Page::default(),
            cross_partition: true,
            scan: true,
            metrics: false,
            direct: true,
            advice: None,
        }),
        11 => Operation::ReadChanges(ReadChanges {
            at: at(),
            part: anywhere,
            mode: FeedMode::Latest,
            from: ChangesFrom::Beginning,
            since: None,
            limit: None,
            envelope: false,
        }),
        12 if random.chance(20) => {
            Operation::DeletePartition { at: at(), partition_key: Some(partition_key("u")) }
        }
        _ => {
            let item = ItemAddress { id, partition_key: Some(partition_key("u")) };
            Operation::ReadItem { at: at(), item, condition: Condition::default() }
        }
    };
    let priority = if random.chance(20) { Priority::Low } else { Priority::High };
    let bucket = random.chance(40).then(|| random.pick(&[2, 3]));
    if let Some(at) = scope_of(&mut operation) {
        at.service = Service { priority, bucket };
    }
    operation
}

/// Found by an index, by none, in order, and counted.
const QUERIES: [&str; 4] = [
    "SELECT c.id FROM c WHERE c.n > 4",
    "SELECT c.id FROM c WHERE UPPER(c.pk) = 'U'",
    "SELECT VALUE c.n FROM c ORDER BY c.n",
    "SELECT VALUE COUNT(1) FROM c",
];

/// The container that it is for.
fn scope_of(operation: &mut Operation) -> Option<&mut ContainerScope> {
    match operation {
        Operation::WriteItem(WriteItem { at, .. })
        | Operation::WriteBatch(WriteBatch { at, .. })
        | Operation::DeletePartition { at, .. }
        | Operation::ReadItem { at, .. }
        | Operation::ListItems { at, .. }
        | Operation::QueryItems(QueryItems { at, .. })
        | Operation::ReadChanges(ReadChanges { at, .. }) => Some(at),
        _ => None,
    }
}

/// Properties 1 and 2, and row B39: two servers with one history of users, one of them full of
/// what has expired. Users are told the same, to the last millisecond; and in no window more
/// is spent than the rate gives.
#[test]
fn no_answer_depends_on_what_waits_for_the_purge() {
    let mut all_by_share = 0;
    for seed in 0..9 {
        let mut random = Random(seed);
        let given = [Given::Own, Given::Shared, Given::Scaling][usize::try_from(seed % 3).unwrap()];
        let (full, clean) = (offering(given, 300), offering(given, 0));
        let shares = [None, Some(30), None, None, None];
        for server in [&full, &clean] {
            server.run(Operation::ShareThroughput { at: at(), shares }).unwrap();
        }
        let mut now = 0;
        let mut spends: Vec<(u64, f64)> = Vec::new();
        let (mut refused, mut by_share) = (0, 0);
        for step in 0..300 {
            if random.chance(70) {
                let operation = act(&mut random);
                let what = format!("seed {seed}, step {step}, {given:?}: {operation:?}");
                let (here, there) = (full.ask(operation.clone()), clean.ask(operation));
                let is_shared = |error: &Error| error.kind == ErrorKind::ShareSpent;
                by_share += usize::from(here.outcome.as_ref().err().is_some_and(is_shared));
                let (here, there) = (told(&here), told(&there));
                assert_eq!(here, there, "{what:.300}");
                refused += usize::from(here.0 == 429);
                spends.push((now, here.1));
            } else {
                let is_busy = step / 100 % 2 == 0;
                let passed = random.below(if is_busy { 5 } else { 2_500 });
                now += passed;
                full.wall().pass_milliseconds(passed);
                clean.wall().pass_milliseconds(passed);
            }
            if random.chance(40) {
                let before = spent(&full);
                full.turns();
                spends.push((now, (spent(&full) - before).ru()));
            }
        }
        assert!(purged(&full) > 20 && refused > 10, "seed {seed}: {} {refused}", purged(&full));
        assert!(by_share < refused, "seed {seed}: {by_share} {refused}");
        all_by_share += by_share;
        let largest = spends.iter().map(|(_, spent)| *spent).fold(0.0, f64::max);
        for (first, (from, _)) in spends.iter().enumerate() {
            let mut sum = 0.0;
            for (at, spent) in &spends[first..] {
                sum += spent;
                let seconds = f64::from(u32::try_from(at - from).unwrap()) / 1000.0;
                let most = given.rate() * (seconds + 3.0) + largest + GARBAGE_RU;
                assert!(sum <= most + 1e-6, "seed {seed}: {sum} from {from} to {at}");
            }
        }
    }
    assert!(all_by_share > 10, "{all_by_share}");
}

/// Property 3: with users who ask for u RU/s, after what left a debt, a backlog is gone within
/// (400 + the debt + its charge) / (400 - u) + 1 seconds.
#[test]
fn a_backlog_is_gone_as_soon_as_what_is_left_over_pays_for_it() {
    for seed in 0..10 {
        let mut random = Random(seed);
        let (backlog, each_tenth) = (50 + random.below(450), random.below(37));
        let server = server(backlog);
        misses(&server, random.below(400));
        if random.chance(50) {
            let part = Part::of(Some(partition_key("large")));
            server.run(Operation::ListItems { at: at(), part, page: Page::default() }).unwrap();
        }
        let purses = server.engine().shared.metering.purses();
        let level = lock(&purses[0].1).levels().1[0].ru();
        let charge = GARBAGE_RU * f64::from(u32::try_from(backlog).unwrap());
        let used = 10.0 * f64::from(u32::try_from(each_tenth).unwrap());
        let seconds = (400.0 + (-level).max(0.0) + charge) / (400.0 - used) + 1.0;
        let mut passed = 0.0;
        while passed < seconds {
            misses(&server, each_tenth);
            server.wall().pass_milliseconds(100);
            server.turns();
            passed += 0.1;
        }
        assert_eq!(purged(&server), backlog, "seed {seed}: {seconds} at {used}, from {level}");
    }
}

/// While a delete of a partition waits for its tenth of the rate, what has expired in the same
/// bucket goes on: of 400 RU/s the delete gets 40, and the purge the rest.
#[test]
fn a_deleted_partition_does_not_hold_up_what_has_expired() {
    let server = server(600);
    switch(&server, ThroughputMode::Measured);
    for number in 0..100 {
        let mut item = litter(&format!("d{number}"), "deleted");
        item["ttl"] = (-1).into();
        server.create(item).unwrap();
    }
    let partition_key = Some(partition_key("deleted"));
    server.run(Operation::DeletePartition { at: at(), partition_key }).unwrap();
    switch(&server, ThroughputMode::Enforced);
    for _ in 0..5 {
        server.wall().pass_milliseconds(1000);
        server.turns();
    }
    // 5 × 360 RU, and 5 × 40.
    assert!((240..=265).contains(&purged(&server)), "{}", purged(&server));
    let swept = 702 - purged(&server) - server.stored_items() as u64;
    assert!((25..=35).contains(&swept), "{swept}");
    for _ in 0..20 {
        server.wall().pass_milliseconds(1000);
        server.turns();
    }
    assert_eq!((purged(&server), server.stored_items()), (600, 2));
}

/// A server with a database of 400 RU/s that is enforced, and two containers that share it:
/// `c`, where items live for five seconds, and `gone`. Each has so many items.
fn shared(items: u64) -> Server {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    let throughput = Some(Throughput::Manual(400));
    server.run(Operation::CreateDatabase { id: "d".to_owned(), throughput }).unwrap();
    for (id, default) in [("c", 5), ("gone", -1)] {
        let definition = json!({
            "id": id, "partitionKey": {"paths": ["/pk"]}, "defaultTtl": default,
        });
        server
            .run(Operation::CreateContainer {
                database: "d".to_owned(),
                definition: definition.to_string().into_bytes(),
                throughput: None,
                showing: Showing::Whole,
            })
            .unwrap();
        for number in 0..items {
            let item = creation(&litter(&number.to_string(), "x"));
            let Operation::WriteItem(write) = item else { unreachable!() };
            let at = ContainerScope { container: id.to_owned(), ..at() };
            server.run(Operation::WriteItem(WriteItem { at, ..write })).unwrap();
        }
    }
    server.clock(1003);
    switch(&server, ThroughputMode::Enforced);
    server
}

fn drop_gone(server: &Server) {
    let at = ContainerScope { container: "gone".to_owned(), ..at() };
    let condition = Condition::default();
    server.run(Operation::DeleteContainer { at, condition }).unwrap();
}

/// What a dropped container left goes with what the others leave over of the throughput that it
/// shared: not at all while they leave nothing, and in as many seconds as that pays for.
#[test]
fn a_dropped_container_is_cleared_with_what_is_left_over() {
    let server = shared(300);
    assert_eq!(server.stored_items(), 600);
    drop_gone(&server);
    for _ in 0..10 {
        misses(&server, 60);
        server.wall().pass_milliseconds(100);
        server.turns();
    }
    assert_eq!(server.stored_items(), 600);
    let before = spent(&server).ru();
    let mut seconds = 0;
    while server.heads() > 1 {
        server.wall().pass_milliseconds(1000);
        server.turns();
        seconds += 1;
        assert!(seconds < 30);
    }
    // 300 items of 6.95, and then what has expired beside them.
    assert!((6..=16).contains(&seconds), "{seconds}");
    let spent = spent(&server).ru() - before;
    let of_purge = GARBAGE_RU * f64::from(u32::try_from(purged(&server)).unwrap());
    assert!((2_000.0..2_300.0).contains(&(spent - of_purge)), "{spent} {of_purge}");
}

/// A rebuild stops where what it may spend ends, however large the items are: at 400 RU/s there
/// are 800 at most, for ten items of 700 KB.
#[test]
fn a_rebuild_spends_no_more_than_there_is() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    let text = "x".repeat(700_000);
    for number in 0..30 {
        server.create(json!({"id": number.to_string(), "pk": "x", "text": text})).unwrap();
    }
    switch(&server, ThroughputMode::Enforced);
    server
        .try_definition(
            None,
            &json!({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/i/?"}]}),
            &json!([]),
        )
        .unwrap();
    let left_over = || {
        let metering = &server.engine().shared.metering;
        let now_ms = server.engine().shared.store.milliseconds();
        let purses = metering.purses();
        lock(&purses[0].1).left_over(now_ms)
    };
    let largest = Units::from(dayfly_model::charge::of_read(700_100));
    let mut before = spent(&server);
    for _ in 0..40 {
        server.wall().pass_milliseconds(500);
        server.turn();
        let spent_now = spent(&server);
        // What is left may be overdrawn by the first item alone.
        assert!(left_over() > -largest, "{:?}", left_over());
        assert!(spent_now - before <= Units::of(800.0), "{spent_now:?} {before:?}");
        before = spent_now;
    }
    assert!(before > Units::of(2_000.0), "{before:?}");
}

/// One that had a throughput of its own took it along: nobody is left to be disturbed.
#[test]
fn what_had_a_throughput_of_its_own_is_cleared_at_once() {
    let mut server = server(300);
    misses(&server, 500);
    server.delete_container();
    server.turns();
    assert_eq!(server.heads(), 0);
}

/// However little is left over, each kind of work has its turn.
#[test]
fn what_is_left_over_is_spent_in_turns() {
    let server = shared(400);
    server
        .try_definition(
            Some(5),
            &json!({"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/i/?"}]}),
            &json!([]),
        )
        .unwrap();
    drop_gone(&server);
    server.wall().pass_milliseconds(10_000);
    switch(&server, ThroughputMode::Enforced);
    let before = server.dump().len();
    let mut done = Vec::new();
    for _ in 0..150 {
        assert_eq!(misses(&server, 36), 0);
        server.wall().pass_milliseconds(100);
        server.turns();
        let cleared = 800 - server.stored_items() as u64 - purged(&server);
        done.push((purged(&server), server.progress(), cleared));
    }
    // 15 s with 40 RU/s left over, a unit of what there is for each.
    let (purged, rebuilt, cleared) = done.last().copied().unwrap();
    assert!((40..=75).contains(&purged), "{done:?}");
    assert!(rebuilt > 12, "{done:?}");
    assert!(cleared > 9 && server.dump().len() < before, "{done:?}");
}
