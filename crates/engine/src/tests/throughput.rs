//! What the purge lives on, and that no user notices. Rows B37 to B39, and the properties
//! of left-over units.

use dayfly_model::meter::Units;
use dayfly_storage::Bucket;
use serde_json::{Value, json};

use super::random::Random;
use super::server::{Kind, Server, at, creation, partition_key, write};
use crate::index::rebuild::RebuildMeans;
use crate::locks::lock;
use crate::operation::{Act, Condition, ItemAddress, Operation, Page, Part};
use crate::reply::Reply;
use crate::settings::ThroughputMode;

/// For rebuilds that somebody waits for.
pub(super) struct Unlimited;

impl RebuildMeans for Unlimited {
    fn items(&self, _: Bucket) -> usize {
        usize::MAX
    }

    fn spent(&self, _: Bucket, _: dayfly_model::charge::Charge) {}
}

/// What deleting one of the garbage costs: it has ten terms of the index.
const GARBAGE_RU: f64 = 6.95;

/// A server with a container of 400 RU/s, in which there is so much that has expired, and
/// something large that lives.
fn server(garbage: u64) -> Server {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(5), &[]);
    let text = "x".repeat(1_500_000);
    for id in ["one", "two"] {
        server.create(json!({"id": id, "pk": "large", "ttl": -1, "text": text})).unwrap();
    }
    for number in 0..garbage {
        let item = json!({
            "id": format!("g{number}"), "pk": "garbage",
            "a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9,
        });
        server.create(item).unwrap();
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

/// What a user does in a history.
fn act(random: &mut Random) -> Operation {
    let id = random.below(20).to_string();
    let text = "y".repeat(usize::try_from(random.below(90_000)).unwrap());
    let item: Value = json!({"id": id, "pk": "u", "ttl": -1, "text": text, "n": random.below(9)});
    let part = Part::of(Some(partition_key("u")));
    match random.below(8) {
        0 | 1 => creation(&item),
        2 => super::server::upsert(&item),
        3 => write(Act::Delete(id), "\"u\""),
        4 => Operation::ListItems { at: at(), part, page: Page::default() },
        5 => miss(),
        _ => {
            let item = ItemAddress { id, partition_key: Some(partition_key("u")) };
            Operation::ReadItem { at: at(), item, condition: Condition::default() }
        }
    }
}

/// Properties 1 and 2, and row B39: two servers with one history of users, one of them full of
/// what has expired. Users are told the same, to the last millisecond; and in no window more
/// is spent than the rate gives.
#[test]
fn no_answer_depends_on_what_waits_for_the_purge() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let (full, clean) = (server(300), server(0));
        let mut now = 0;
        let mut spends: Vec<(u64, f64)> = Vec::new();
        let mut refused = 0;
        for step in 0..400 {
            if random.chance(70) {
                let operation = act(&mut random);
                let (here, there) = (full.ask(operation.clone()), clean.ask(operation));
                let (here, there) = (told(&here), told(&there));
                assert_eq!(here, there, "seed {seed}, step {step}");
                refused += usize::from(here.0 == 429);
                spends.push((now, here.1));
            } else {
                let is_busy = step / 100 % 2 == 0;
                let passed = random.below(if is_busy { 5 } else { 800 });
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
        assert!(purged(&full) > 20 && refused > 10, "{} {refused}", purged(&full));
        let largest = spends.iter().map(|(_, spent)| *spent).fold(0.0, f64::max);
        for (first, (from, _)) in spends.iter().enumerate() {
            let mut sum = 0.0;
            for (at, spent) in &spends[first..] {
                sum += spent;
                let seconds = f64::from(u32::try_from(at - from).unwrap()) / 1000.0;
                let most = 400.0 * seconds + 3.0 * 400.0 + largest + GARBAGE_RU;
                assert!(sum <= most + 1e-6, "seed {seed}: {sum} from {from} to {at}");
            }
        }
    }
}

/// Property 3: with users who leave 100 RU/s over, a backlog of 3,475 RU is gone within
/// (400 + 3,475) / 100 + 1 seconds.
#[test]
fn a_backlog_is_gone_as_soon_as_what_is_left_over_pays_for_it() {
    let server = server(500);
    for _ in 0..398 {
        assert_eq!(misses(&server, 30), 0);
        server.wall().pass_milliseconds(100);
        server.turns();
    }
    assert_eq!(purged(&server), 500);
}
