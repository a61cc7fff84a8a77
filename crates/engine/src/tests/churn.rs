//! What is left in memory of what was written, read and is gone.

use serde_json::{Value, json};

use super::server::{Kind, Server, write};
use crate::operation::Act;

const ITEMS: u64 = 50;

/// What may stay: figures, cursors, policies and definitions.
const AROUND: u64 = 64 * 1024;

fn item(id: u64, round: u64, ttl: Option<i64>) -> Value {
    let filler = "x".repeat(4000);
    let mut item = json!({"id": id.to_string(), "pk": id, "n": round, "filler": filler});
    if let Some(ttl) = ttl {
        item["ttl"] = ttl.into();
    }
    item
}

fn read(server: &Server, id: u64) {
    server.read_at(&id.to_string(), &id.to_string()).unwrap();
}

fn cached(server: &Server) -> u64 {
    server.engine().figures().cached_bytes
}

/// Items are created, replaced and deleted, or they expire and are purged; each
/// version is read. What is cached in the end is what lives.
#[test]
fn what_is_cached_after_churn_is_what_lives() {
    for kind in [Kind::Memory { slices: 1 }, Kind::Disk { slices: 1 }] {
        let mut server = Server::new(kind);
        server.make_container(Some(-1), &[]);
        let mut second = 1000;
        for round in 0..8 {
            let ids = round * ITEMS..(round + 1) * ITEMS;
            for id in ids.clone() {
                let is_mortal = id % 2 == 0;
                server.create(item(id, round, None)).unwrap();
                read(&server, id);
                server.upsert(item(id, round + 1, is_mortal.then_some(5))).unwrap();
                read(&server, id);
                if !is_mortal {
                    let delete = Act::Delete(id.to_string());
                    server.run(write(delete, &id.to_string())).unwrap();
                }
            }
            second += 10;
            server.clock(second);
            server.turns();
        }
        assert_eq!(server.stored_items(), 0);
        assert!(cached(&server) < AROUND, "{} are cached of nothing", cached(&server));

        for id in 0..ITEMS {
            server.create(item(id, 0, None)).unwrap();
            read(&server, id);
        }
        let (all, of_items) = (cached(&server), ITEMS * 4000);
        assert!((of_items..of_items * 5 / 4 + AROUND).contains(&all), "{all} of {of_items}");
        for round in 0..8 {
            for id in 0..ITEMS {
                server.upsert(item(id, round, None)).unwrap();
                read(&server, id);
            }
        }
        let after = cached(&server);
        assert!(after < all + AROUND, "{after} after what was {all}");
        server.delete_container();
        server.turns();
        assert!(cached(&server) < AROUND, "{} are cached of nothing", cached(&server));
    }
}
