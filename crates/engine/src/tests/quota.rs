//! A quota under many writers: what is admitted fits to the byte.

use std::sync::atomic::{AtomicU64, Ordering};

use dayfly_model::ErrorKind;
use serde_json::json;

use super::server::{Kind, Server, Setup};

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

/// In several buckets each judges by what was alive in the others when the request began.
#[test]
fn all_buckets_of_a_container_count() {
    let setup =
        Setup { container_quota: Some(ROOM * ITEM_BYTES), ..Setup::of(Kind::Memory { slices: 4 }) };
    let mut server = Server::with(setup);
    server.make_container(Some(10), &[]);
    for round in 0..2 {
        server.clock(1000 + 10 * round);
        for number in 0..ROOM + 20 {
            let mut item = item(round, number);
            item["pk"] = char::from(b'a' + u8::try_from(number % 26).unwrap()).to_string().into();
            let outcome = server.create(item);
            assert_eq!(outcome.is_ok(), number < ROOM, "{round} {number} {outcome:?}");
        }
    }
}
