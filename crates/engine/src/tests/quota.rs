//! A quota under many writers: what is admitted fits to the byte.

use std::sync::atomic::{AtomicU64, Ordering};

use dayfly_model::ErrorKind;
use serde_json::json;

use super::patches::poll;
use super::random::Random;
use super::server::{Kind, Server, Setup, at, creation, partition_key, write};
use crate::operation::{Act, Operation};

/// How many threads write, and how many items each of them tries.
const THREADS: u64 = 8;
const TRIES: u64 = 40;

/// How many items there is room for.
const ROOM: u64 = 100;

/// An item of this many bytes, as a read shows it while the time has four digits.
const ITEM_BYTES: u64 = 1024;

fn item(round: u64, number: u64) -> serde_json::Value {
    let mut item = json!({"id": format!("{round}-{number:04}"), "pk": "x", "f": ""});
    let fill = ITEM_BYTES - 195 - 4 - item.to_string().len() as u64;
    item["f"] = "f".repeat(usize::try_from(fill).unwrap()).into();
    item
}

/// All of them at once, in one bucket: as many are taken as there is room for, and again when
/// those have expired, purged or not. One byte less, and it is one item less.
#[test]
fn many_writers_fill_it_to_the_byte() {
    for (quota, expected) in [(ROOM * ITEM_BYTES, ROOM), (ROOM * ITEM_BYTES - 1, ROOM - 1)] {
        let setup = Setup { container_quota: Some(quota), ..Setup::of(Kind::Memory { slices: 1 }) };
        let mut server = Server::with(setup);
        server.make_container(Some(10), &[]);
        for round in 0..3 {
            server.clock(1000 + 10 * round);
            let taken = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (server, taken) = (&server, &taken);
                    scope.spawn(move || {
                        for number in 0..TRIES {
                            match server.create(item(round, thread * TRIES + number)) {
                                Ok(_) => drop(taken.fetch_add(1, Ordering::Relaxed)),
                                Err(kind) => assert_eq!(kind, ErrorKind::QuotaReached),
                            }
                        }
                    });
                }
            });
            assert_eq!(taken.into_inner(), expected, "round {round}");
            assert_eq!(server.listed() as u64, expected);
        }
    }
}

/// In several buckets, too: what one of them takes in is known to the drafts of the others.
#[test]
fn writers_of_all_buckets_fill_it_to_the_byte() {
    let setup =
        Setup { container_quota: Some(ROOM * ITEM_BYTES), ..Setup::of(Kind::Memory { slices: 4 }) };
    let mut server = Server::with(setup);
    server.make_container(Some(10), &[]);
    for round in 0..3 {
        server.clock(1000 + 10 * round);
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (server, taken) = (&server, &taken);
                scope.spawn(move || {
                    for number in 0..TRIES {
                        let mut item = item(round, thread * TRIES + number);
                        item["pk"] = pk(number % 26).into();
                        match server.create(item) {
                            Ok(_) => drop(taken.fetch_add(1, Ordering::Relaxed)),
                            Err(kind) => assert_eq!(kind, ErrorKind::QuotaReached),
                        }
                    }
                });
            }
        });
        assert_eq!(taken.into_inner(), ROOM, "round {round}");
        assert_eq!(server.listed() as u64, ROOM);
    }
}

/// A name of one letter.
fn pk(number: u64) -> String {
    char::from(b'a' + u8::try_from(number).unwrap()).to_string()
}

/// A partition among others of its bucket: whoever is told to come again does, and in the end
/// it is filled to the byte, and no further.
#[test]
fn many_writers_fill_a_partition_to_the_byte() {
    for (quota, expected) in [(ROOM * ITEM_BYTES, ROOM), (ROOM * ITEM_BYTES - 1, ROOM - 1)] {
        let setup = Setup { partition_quota: Some(quota), ..Setup::of(Kind::Memory { slices: 1 }) };
        let mut server = Server::with(setup);
        server.make_container(Some(10), &[]);
        for number in 0..30 {
            let mut other = item(0, number);
            (other["pk"], other["ttl"]) = (pk(number % 3).into(), (-1).into());
            server.create(other).unwrap();
        }
        for round in 0..3 {
            server.clock(1000 + 10 * round);
            let taken = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (server, taken) = (&server, &taken);
                    scope.spawn(move || {
                        for number in 0..TRIES {
                            let item = item(round, thread * TRIES + number);
                            let again = || server.create(item.clone());
                            let mut outcome = again();
                            while outcome == Err(ErrorKind::RetryWith) {
                                outcome = again();
                            }
                            match outcome {
                                Ok(_) => drop(taken.fetch_add(1, Ordering::Relaxed)),
                                Err(kind) => assert_eq!(kind, ErrorKind::QuotaReached),
                            }
                        }
                    });
                }
            });
            assert_eq!(taken.into_inner(), expected, "round {round}");
            assert_eq!(server.listed() as u64, 30 + expected);
        }
    }
}

/// A server with a quota that keeps all commits at once and counts what is read, with so many
/// items of a partition that was deleted and not purged.
fn with_hidden(items: u64, container_quota: Option<u64>, partition_quota: Option<u64>) -> Server {
    let kind = Kind::Watched { slices: 1 };
    let mut server = Server::with(Setup { container_quota, partition_quota, ..Setup::of(kind) });
    server.make_container(None, &[]);
    for number in 0..items {
        let mut item = item(0, number);
        item["pk"] = "h".into();
        server.create(item).unwrap();
    }
    let partition_key = Some(partition_key("h"));
    server.run(Operation::DeletePartition { at: at(), partition_key }).unwrap();
    server
}

/// How many rows scans return while something is done.
fn rows_read(server: &Server, what: impl FnOnce()) -> usize {
    let before = server.watched().rows_read();
    what();
    server.watched().rows_read() - before
}

/// A million items that were deleted with their partition and are not removed yet cost a write
/// nothing: what fits if all of them are alive fits. Where it would not, they are counted once.
#[test]
fn what_was_deleted_with_its_partition_is_not_counted_for_each_write() {
    const HIDDEN: u64 = 500;
    let create = |server: &Server, number: u64| server.create(item(1, number)).map(drop);
    for (container, partition) in [(Some(1 << 30), None), (None, Some(1 << 30))] {
        let server = with_hidden(HIDDEN, container, partition);
        let read =
            rows_read(&server, || (0..10).for_each(|number| create(&server, number).unwrap()));
        assert!(read < 50, "{read}");
    }
    let server = with_hidden(HIDDEN, Some((HIDDEN + ROOM) * ITEM_BYTES), None);
    (0..ROOM).for_each(|number| create(&server, number).unwrap());
    let first = rows_read(&server, || create(&server, ROOM).unwrap());
    assert!((500..600).contains(&first), "{first}");
    let others = rows_read(&server, || {
        (ROOM + 1..HIDDEN + ROOM).for_each(|number| create(&server, number).unwrap());
        assert_eq!(create(&server, HIDDEN + ROOM), Err(ErrorKind::QuotaReached));
    });
    assert!(others < 3 * 500, "{others}");
}

/// A write that takes the place of what was deleted with its partition makes it no larger, and
/// what is counted of that follows: in the end the container is full to the byte.
#[test]
fn what_takes_the_place_of_what_is_hidden_is_counted() {
    const HIDDEN: u64 = 40;
    let server = with_hidden(HIDDEN, Some(2 * HIDDEN * ITEM_BYTES), None);
    let create = |pk: &str, number: u64| {
        let mut item = item(0, number);
        item["pk"] = pk.into();
        server.create(item).map(drop)
    };
    // From the next one on it is not enough to take all that was deleted for alive.
    (0..HIDDEN).for_each(|number| create("x", number).unwrap());
    for number in 0..HIDDEN {
        // Every second one is in the place of one that was deleted.
        create(if number % 2 == 0 { "h" } else { "y" }, number).unwrap();
    }
    for pk in ["h", "y"] {
        assert_eq!(create(pk, HIDDEN + 1), Err(ErrorKind::QuotaReached));
    }
    assert_eq!(server.listed() as u64, 2 * HIDDEN);
    server.purge();
    assert_eq!(create("x", HIDDEN + 1), Err(ErrorKind::QuotaReached));
}

/// What has to be counted is not counted by the committer: a draft that finds out there that it
/// needs it goes back to its caller.
#[test]
fn the_committer_counts_nothing() {
    let kind = Kind::Memory { slices: 1 };
    let container_quota = Some(5 * ITEM_BYTES / 2);
    let mut server = Server::with(Setup { stepped: true, container_quota, ..Setup::of(kind) });
    server.make_container(None, &[]);
    let next = |server: &Server| {
        server.begin();
        server.publish();
    };
    let mut hidden = item(0, 0);
    hidden["pk"] = "h".into();
    let partition_key = Some(partition_key("h"));
    for operation in [creation(&hidden), Operation::DeletePartition { at: at(), partition_key }] {
        let mut ticket = server.hand_in(operation);
        next(&server);
        poll(&mut ticket).unwrap().outcome.unwrap();
    }
    // Each fits if what was deleted is taken for alive, but not both.
    let [mut first, mut second] = [1, 2].map(|number| server.hand_in(creation(&item(1, number))));
    next(&server);
    poll(&mut first).unwrap().outcome.unwrap();
    assert!(poll(&mut second).is_none());
    next(&server);
    poll(&mut second).unwrap().outcome.unwrap();
}

/// What an item of this text takes, while the time has four digits.
fn bytes(item: &serde_json::Value) -> u64 {
    item.to_string().len() as u64 + 195 + 4
}

/// Random histories, with items that expire or are touched, other defaults, deleted partitions,
/// the purge and restarts: a write is taken if what is shown of its partition leaves room for it.
#[test]
fn a_partition_has_what_is_shown_of_it() {
    const QUOTA: u64 = 4_000;
    let (mut refused, mut taken) = (0, 0);
    for seed in 0..16 {
        let mut random = Random(seed);
        let slices = if random.chance(50) { 1 } else { 4 };
        let setup = Setup { partition_quota: Some(QUOTA), ..Setup::of(Kind::Disk { slices }) };
        let mut server = Server::with(setup);
        server.make_container(Some(20), &[]);
        let mut now = 1000;
        for step in 0..120 {
            let (key, id) = (pk(random.below(3)), random.below(12).to_string());
            match random.below(20) {
                0..=1 => {
                    now += random.below(12);
                    server.clock(now);
                }
                2 => drop(server.turns()),
                3 => {
                    let partition_key = Some(partition_key(&key));
                    server.run(Operation::DeletePartition { at: at(), partition_key }).unwrap();
                }
                4 => server.set_default([None, Some(-1), Some(7), Some(20)][step % 4], &[]),
                5 => server.restart(),
                6..=7 => {
                    let _ = server.run(write(Act::Delete(id), &format!("\"{key}\"")));
                }
                _ => {
                    let live: u64 = (0..12)
                        .filter_map(|id| server.read(&id.to_string(), &key).ok())
                        .map(|shown| shown.to_string().len() as u64)
                        .sum();
                    let before = server.read(&id, &key).map_or(0, |shown| shown.to_string().len());
                    let text = "x".repeat(usize::try_from(random.below(1_200)).unwrap());
                    let mut new = json!({"id": id, "pk": key, "text": text});
                    if random.chance(30) {
                        new["ttl"] = (1 + random.below(30)).into();
                    }
                    let (before, after) = (before as u64, bytes(&new));
                    let fits = after <= before || live - before + after <= QUOTA;
                    let outcome = server.upsert(new).map(drop);
                    let expected = if fits { Ok(()) } else { Err(ErrorKind::QuotaReached) };
                    assert_eq!(
                        outcome, expected,
                        "seed {seed}, step {step}: {live} {before} {after}"
                    );
                    *(if fits { &mut taken } else { &mut refused }) += 1;
                }
            }
        }
    }
    assert!(taken > 300 && refused > 200, "{taken} {refused}");
}
