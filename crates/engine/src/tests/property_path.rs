//! Lives that are counted from a property: ends come in another order than writes.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use dayfly_model::ErrorKind;
use proptest::prelude::*;
use serde_json::json;

use super::server::{Kind, Server, Setup, at, creation};
use crate::operation::{Condition, Operation, Replacement, Showing};
use crate::reply::Success;

fn set_path(server: &Server, default: u32) -> Result<Success, ErrorKind> {
    let definition = json!({
        "id": "c", "partitionKey": {"paths": ["/pk"]}, "defaultTtl": default,
        "ttlPropertyPath": "/born",
    });
    server.run(Operation::ReplaceContainer(Replacement {
        at: at(),
        definition: definition.to_string().into_bytes(),
        condition: Condition::default(),
        quota: false,
        confirm_expiry: false,
        showing: Showing::Whole,
    }))
}

/// A write that is decided in time and comes to its commit too late is refused, since
/// nothing is born dead.
#[test]
fn a_write_that_waits_past_its_end_is_refused() {
    let kind = Kind::Memory { slices: 1 };
    let setup = Setup { stepped: true, cache_bytes: 1 << 20, ..Setup::of(kind) };
    let mut server = Server::with(setup);
    server.make_container(Some(10), &[]);
    set_path(&server, 10).unwrap();
    let item = |id: &str| json!({"id": id, "pk": "x", "born": 995});
    for (second, expected) in [(1004, Ok(201)), (1005, Err(ErrorKind::BadRequest))] {
        server.clock(1000);
        let mut ticket = server.hand_in(creation(&item(&second.to_string())));
        server.clock(second);
        server.begin();
        server.publish();
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(reply) = ticket.as_mut().poll(&mut context) else { panic!("no answer") };
        let outcome = reply.outcome.map(|done| done.status).map_err(|error| error.kind);
        assert_eq!(outcome, expected, "at {second}");
    }
    server.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// An oracle that knows only "base and ttl": each second, what is listed and counted
    /// is what it says, whether or not the purge has been there. In the end nothing is left.
    #[test]
    fn ends_in_any_order(
        writes in prop::collection::vec((0..4u64, 0..8usize, -30..40i64, prop::option::of(1..30u32)), 1..40),
        slices in 1..3usize,
        purges in any::<u64>(),
    ) {
        let mut server = Server::new(Kind::Memory { slices });
        server.make_container(Some(20), &["/mail"]);
        set_path(&server, 20).unwrap();
        let empty = server.rows();
        let mut now = 1000;
        let mut ends: BTreeMap<usize, u64> = BTreeMap::new();
        for (pass, id, offset, ttl) in writes {
            now += pass;
            server.clock(now);
            let born = now.cast_signed() + offset;
            let mut item = json!({"id": id.to_string(), "pk": id % 3, "mail": id, "born": born});
            if let Some(ttl) = ttl {
                item["ttl"] = ttl.into();
            }
            let end = (born + i64::from(ttl.unwrap_or(20))).cast_unsigned();
            let outcome = server.upsert(item).map(drop);
            if end <= now {
                prop_assert_eq!(outcome, Err(ErrorKind::BadRequest));
            } else {
                prop_assert_eq!(outcome, Ok(()));
                ends.insert(id, end);
            }
            ends.retain(|_, end| *end > now);
            prop_assert_eq!(server.listed(), ends.len());
            if purges >> (now % 64) & 1 == 1 {
                server.turns();
                prop_assert_eq!(server.stored_items(), ends.len());
            }
            server.check();
        }
        while !ends.is_empty() {
            prop_assert!(set_path(&server, 21).is_err(), "there are items");
            now += 1;
            server.clock(now);
            ends.retain(|_, end| *end > now);
            prop_assert_eq!(server.listed(), ends.len());
        }
        set_path(&server, 1000).unwrap();
        prop_assert_eq!(server.listed(), 0);
        server.turns();
        server.check();
        prop_assert_eq!(server.stored_items(), 0);
        // Beside what says how far the purge came, and how the default changed.
        prop_assert!(server.rows() <= empty + 3 * slices, "{} rows", server.rows());
    }
}
