//! What is kept of offers in memory, and for how long: whoever only looks adds nothing to it.

use std::sync::Arc;

use dayfly_model::meter::{Service, Units};
use dayfly_model::throughput::Throughput;
use dayfly_storage::Store;
use serde_json::json;

use super::server::{Kind, Server, at, creation, partition_key};
use crate::keys::CATALOG;
use crate::locks::lock;
use crate::metering::{Chore, Purse};
use crate::offers;
use crate::operation::{
    Condition, ContainerScope, Division, ItemAddress, Operation, Part, Showing, WriteItem,
};
use crate::scope::Opened;
use crate::settings::ThroughputMode;

const HOUR_MS: u64 = 3_600_000;

fn server() -> Server {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    server
}

/// A look at an item that is not there, for 1 RU.
fn miss(server: &Server) {
    let item = ItemAddress { id: "nobody".to_owned(), partition_key: Some(partition_key("u")) };
    server.ask(Operation::ReadItem { at: at(), item, condition: Condition::default() });
}

/// How many offers something is kept of.
fn kept(server: &Server) -> usize {
    server.engine().shared.metering.purses().len()
}

fn sweep(server: &Server) {
    let shared = &server.engine().shared;
    shared.metering.sweep(shared.store.milliseconds());
}

fn scrape(server: &Server) {
    server.engine().throughput_figures(10).unwrap();
    server.run(Operation::ReadThroughput { at: at(), seconds: 60 }).unwrap();
}

/// A monitor asks four times a minute; an hour after the last request nothing is kept of it.
#[test]
fn an_offer_that_is_only_looked_at_is_forgotten() {
    let server = server();
    miss(&server);
    for _ in 0..239 {
        server.wall().pass_milliseconds(15_000);
        scrape(&server);
        sweep(&server);
        assert_eq!(kept(&server), 1);
    }
    assert_eq!(server.engine().shared.metering.held_seconds(), 1);
    server.wall().pass_milliseconds(76_000);
    sweep(&server);
    assert_eq!(kept(&server), 0);
    assert_eq!(server.engine().shared.metering.held_seconds(), 0);
    // Whoever looks again makes it anew.
    scrape(&server);
    server.wall().pass_milliseconds(61_000);
    sweep(&server);
    assert_eq!(kept(&server), 0);
}

/// What an operator said is kept, and so is an offer whose answer has not come yet.
#[test]
fn an_offer_of_which_there_is_something_to_keep_is_kept() {
    let server = server();
    server
        .run(Operation::SwitchThroughput { at: at(), mode: Some(ThroughputMode::Enforced) })
        .unwrap();
    server.wall().pass_milliseconds(2 * HOUR_MS);
    sweep(&server);
    assert_eq!(kept(&server), 1);
    server.run(Operation::SwitchThroughput { at: at(), mode: None }).unwrap();
    server.wall().pass_milliseconds(61_000);
    let shared = &server.engine().shared;
    let (_, toll) = shared.enter_metered(&at(), &Part::of(None)).ok().unwrap();
    sweep(&server);
    assert_eq!(kept(&server), 1);
    drop(toll);
    server.wall().pass_milliseconds(61_000);
    sweep(&server);
    let spent = shared.metering.purses().iter().map(|(_, purse)| lock(purse).spent().used).sum();
    assert_eq!((kept(&server), spent), (1, Units::ONE));
}

/// What a database shared is gone with it, whatever an operator said of it.
#[test]
fn nothing_is_kept_of_a_deleted_database() {
    let server = shared();
    let mode = Some(ThroughputMode::Enforced);
    server.run(Operation::SwitchThroughput { at: at(), mode }).unwrap();
    assert_eq!(kept(&server), 1);
    let condition = Condition::default();
    server.run(Operation::DeleteDatabase { database: "d".to_owned(), condition }).unwrap();
    server.turns();
    assert_eq!(kept(&server), 0);
}

/// A server with a database of 400 RU/s, and two containers that share it.
fn shared() -> Server {
    let server = Server::new(Kind::Memory { slices: 1 });
    let throughput = Some(Throughput::Manual(400));
    server.run(Operation::CreateDatabase { id: "d".to_owned(), throughput }).unwrap();
    for id in ["c", "small"] {
        let definition = json!({"id": id, "partitionKey": {"paths": ["/pk"]}, "defaultTtl": 5});
        let database = "d".to_owned();
        let definition = definition.to_string().into_bytes();
        let (throughput, showing) = (None, Showing::Whole);
        server
            .run(Operation::CreateContainer { database, definition, throughput, showing })
            .unwrap();
    }
    server
}

/// A large backlog of one container is not forgotten because another one, which shares the
/// throughput, has a small one, or none: it gets its twentieth.
#[test]
fn what_is_forced_for_one_container_is_not_undone_by_another() {
    let mut server = shared();
    let create = |server: &Server, container: &str, item: &serde_json::Value| {
        let Operation::WriteItem(write) = creation(item) else { unreachable!() };
        let at = ContainerScope { container: container.to_owned(), ..at() };
        server.run(Operation::WriteItem(WriteItem { at, ..write })).unwrap();
    };
    // Twice as much lives in the small one as dies in it from time to time.
    let text = "x".repeat(100_000);
    create(&server, "small", &json!({"id": "lives", "pk": "a", "ttl": -1, "text": text}));
    for number in 0..400 {
        create(&server, "c", &json!({"id": number.to_string(), "pk": "a"}));
    }
    server.clock(1006);
    server
        .run(Operation::SwitchThroughput { at: at(), mode: Some(ThroughputMode::Enforced) })
        .unwrap();
    let spend_all = |server: &Server| (0..60).for_each(|_| miss(server));
    (0..10).for_each(|_| spend_all(&server));
    let mut forced = 0;
    for tenth in 0..200 {
        if tenth % 10 == 0 {
            create_expired(&server, tenth);
        }
        server.turns();
        forced += u32::from(server.engine().throughput_figures(10).unwrap()[0].is_forced);
        spend_all(&server);
        server.wall().pass_milliseconds(100);
    }
    assert!(forced >= 195, "{forced}");
    // 20 s at 20 RU/s, for items of some 5.75.
    let purged = server.engine().purged_items();
    assert!((60..=80).contains(&purged), "{purged}");
}

/// An item of the small container that is dead in the next second.
fn create_expired(server: &Server, number: u32) {
    let item = json!({"id": format!("s{number}"), "pk": "a", "ttl": 1});
    let Operation::WriteItem(write) = creation(&item) else { unreachable!() };
    let at = ContainerScope { container: "small".to_owned(), ..at() };
    server.ask(Operation::WriteItem(WriteItem { at, ..write }));
}

/// First come, first served; whoever was served, or does not ask for a while, comes last.
#[test]
fn what_the_background_does_takes_turns_in_the_order_in_which_it_came() {
    let server = server();
    miss(&server);
    let purse = server.engine().shared.metering.purses().remove(0).1;
    let mut purse = lock(&purse);
    let mut now_ms = server.engine().shared.store.milliseconds() + 2_000;
    let has_turn = |purse: &mut Purse, now_ms: u64, chore: Chore| {
        let has_turn = purse.ask(now_ms, chore).is_positive();
        if has_turn {
            purse.leave(chore);
            purse.spend(now_ms, Units::ONE, true, false);
        }
        has_turn
    };
    // Clearing came first.
    assert!(purse.ask(now_ms, Chore::Clear).is_positive());
    assert!(!has_turn(&mut purse, now_ms, Chore::Purge));
    assert!(!has_turn(&mut purse, now_ms, Chore::Rebuild));
    assert!(has_turn(&mut purse, now_ms, Chore::Clear));
    for _ in 0..3 {
        for (next, others) in [
            (Chore::Purge, [Chore::Clear, Chore::Rebuild]),
            (Chore::Rebuild, [Chore::Purge, Chore::Clear]),
            (Chore::Clear, [Chore::Rebuild, Chore::Purge]),
        ] {
            assert!(others.into_iter().all(|other| !has_turn(&mut purse, now_ms, other)));
            assert!(has_turn(&mut purse, now_ms, next), "{next:?}");
        }
    }
    // The purge has not asked for five seconds, so it is behind the others.
    now_ms += 4_000;
    assert!(!has_turn(&mut purse, now_ms, Chore::Rebuild));
    now_ms += 2_000;
    assert!(has_turn(&mut purse, now_ms, Chore::Rebuild));
}

/// Whoever has an older snapshot than others does not turn the meters back to the ranges of
/// before; the offer itself was not changed by the one who divided them.
#[test]
fn an_older_snapshot_turns_nothing_back() {
    let server = server();
    let shared = &server.engine().shared;
    let before = shared.enter(&at(), dayfly_model::ErrorKind::NotFound).ok().unwrap();
    miss(&server);
    server.run(Operation::SplitRanges { at: at(), division: Division::Widest }).unwrap();
    miss(&server);
    let ranges = || {
        let purses = shared.metering.purses();
        lock(&purses[0].1).levels().1.len()
    };
    assert_eq!(ranges(), 2);
    let admit = |opened: &Opened, part: &Part| {
        let (snapshot, container) = (&*opened.snapshot, &opened.container);
        let store: Arc<dyn Store> = Arc::clone(&shared.store);
        let service = Service::default();
        drop(shared.metering.admit(&store, snapshot, container, part, service).unwrap());
    };
    let lsn = shared.store.snapshot().unwrap().head(CATALOG).lsn;
    shared.metering.offers_changed(lsn + 1);
    admit(&before, &Part::of(None));
    assert_eq!(ranges(), 2);
}

/// What an offer has to serve is what is alive in its containers, at this second and before
/// anything is purged: its own, or all that share it and no other.
#[test]
fn what_an_offer_serves_is_what_is_alive() {
    let mut server = shared();
    let definition = json!({"id": "own", "partitionKey": {"paths": ["/pk"]}, "defaultTtl": 7});
    server
        .run(Operation::CreateContainer {
            database: "d".to_owned(),
            definition: definition.to_string().into_bytes(),
            throughput: Some(Throughput::Manual(400)),
            showing: Showing::Whole,
        })
        .unwrap();
    let create = |container: &str, id: &str, ttl: Option<i64>| {
        let mut item = json!({"id": id, "pk": "a", "text": "x".repeat(10_000)});
        if let Some(ttl) = ttl {
            item["ttl"] = ttl.into();
        }
        let Operation::WriteItem(write) = creation(&item) else { unreachable!() };
        let at = ContainerScope { container: container.to_owned(), ..at() };
        server.run(Operation::WriteItem(WriteItem { at, ..write })).unwrap();
    };
    create("c", "1", None);
    create("c", "2", Some(-1));
    create("small", "1", None);
    create("own", "1", None);
    let loads = |server: &Server| {
        let snapshot = server.engine().shared.store.snapshot().unwrap();
        let offers = offers::all(&*snapshot).unwrap();
        let of = |place: usize| {
            let rid = offers[place]["offerResourceId"].as_str().unwrap();
            offers::load_of(&*snapshot, rid).unwrap()
        };
        let (shared, own) = (of(0), of(1));
        assert_eq!((shared.sharing, own.sharing), (2, 0));
        // An item has some 10,200 bytes.
        (shared.live_bytes / 10_000, own.live_bytes / 10_000)
    };
    assert_eq!(loads(&server), (3, 1));
    server.clock(1005);
    assert_eq!(loads(&server), (1, 1));
    server.clock(1007);
    assert_eq!(loads(&server), (1, 0));
    assert_eq!(server.purge(), 3);
    assert_eq!(loads(&server), (1, 0));
}
