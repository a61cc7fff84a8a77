//! Several writes in one commit: each sees what those before it did, and together they are
//! what they would be one after the other.

use std::task::{Context, Poll, Waker};

use dayfly_model::{ErrorKind, Timestamp};
use dayfly_storage::commit_returning;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::patches;
use super::server::{Kind, Server, Setup, at, partition_key, text};
use crate::items::{self, Around, RefusedPlan};
use crate::operation::{
    Act, BatchForm, BatchMode, Condition, Indexing, Operation, Part, WriteBatch, WriteItem,
};
use crate::version;

/// How a plan ended: the status of each write, or why none was made.
type Outcome = Result<Vec<Result<u16, ErrorKind>>, ErrorKind>;

impl Server {
    fn commit(&self, acts: Vec<Act>, is_atomic: bool) -> Outcome {
        let shared = &self.engine().shared;
        let part = Part::of(Some(partition_key("x")));
        let opened = shared.enter_part(&at(), &part).unwrap();
        let steps = acts.into_iter().map(|act| {
            Ok(WriteItem {
                at: at(),
                act,
                partition_key: None,
                condition: Condition::default(),
                minimal: false,
                indexing: Indexing::default(),
            })
        });
        let mode = if is_atomic { BatchMode::Atomic } else { BatchMode::GoesOn };
        let batch =
            WriteBatch { at: at(), part, mode, steps: steps.collect(), form: BatchForm::Text };
        let plan = items::batch_plan(&opened, batch, Around::of(shared)).unwrap();
        let bucket = plan.bucket();
        let written = match commit_returning(&shared.store, bucket, plan).wait() {
            Ok(written) | Err(RefusedPlan::Decided(written)) => written,
            Err(RefusedPlan::Failed(reply)) => panic!("{reply:?}"),
        };
        let outcomes: Vec<_> = written
            .into_replies()
            .into_iter()
            .map(|reply| reply.outcome.map(|done| done.status).map_err(|error| error.kind))
            .collect();
        let is_other = |kind: &ErrorKind| *kind != ErrorKind::FailedDependency;
        let failed = outcomes.iter().filter_map(|outcome| outcome.err()).find(is_other);
        match failed {
            Some(kind) if is_atomic => Err(kind),
            _ => Ok(outcomes),
        }
    }
}

fn item(id: &str, n: u8) -> Value {
    json!({"id": id, "pk": "x", "email": n % 3, "n": n})
}

fn create(id: &str, n: u8) -> Act {
    Act::Create(text(&item(id, n)))
}

fn upsert(id: &str, n: u8) -> Act {
    Act::Upsert(text(&item(id, n)))
}

/// A replace of the item `id`, which is called `new` from then on.
fn replace(id: &str, new: &str, n: u8) -> Act {
    Act::Replace(id.to_owned(), text(&item(new, n)))
}

/// Makes `n` larger, and says so by another address.
fn increment(id: &str, n: u8) -> Act {
    let operations = json!([
        {"op": "incr", "path": "/n", "value": n},
        {"op": "set", "path": "/email", "value": n % 3},
        {"op": "add", "path": "/log", "value": [n]},
    ]);
    patches::act(id, &operations)
}

/// Takes the log away, if there is one and `n` is even.
fn forget(id: &str) -> Act {
    let operations = json!([{"op": "move", "from": "/log", "path": "/old"}]);
    let condition = "from c where c.n % 2 = 0 and c._ts >= 1000";
    patches::act(id, &json!({"operations": operations, "condition": condition}))
}

fn delete(id: &str) -> Act {
    Act::Delete(id.to_owned())
}

#[test]
fn each_write_of_a_commit_sees_those_before_it() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(100), &[]);
    let acts = vec![
        create("a", 1),
        replace("a", "a", 2),
        delete("a"),
        create("a", 3),
        upsert("b", 4),
        replace("b", "c", 5),
        upsert("b", 6),
        increment("a", 7),
        forget("a"),
    ];
    let before = server.commits();
    let expected = [201, 200, 204, 201, 201, 200, 201, 200, 200];
    assert_eq!(server.commit(acts, true), Ok(expected.map(Ok).to_vec()));
    assert_eq!(server.commits(), before + 1);
    server.check();

    let read = |id: &str| server.read(id, "x").unwrap();
    assert_eq!([&read("a")["n"], &read("b")["n"], &read("c")["n"]], [10, 6, 5]);
    assert_eq!((&read("a")["old"], &read("a")["log"]), (&json!([7]), &Value::Null));
    // One commit, one second, and a place of its own for each version.
    let etags = ["a", "b", "c"].map(|id| read(id)["_etag"].to_string());
    let ordinals = etags.map(|etag| etag.trim_matches(['"', '\\']).chars().last().unwrap());
    assert_eq!(ordinals, ['9', '7', '6']);
    assert!(["a", "b", "c"].iter().all(|id| read(id)["_ts"] == 1000));
    assert_eq!(server.listed(), 3);
}

#[test]
fn a_refused_write_refuses_all_of_an_atomic_plan_and_itself_of_another() {
    let acts = || vec![create("a", 1), create("b", 1), create("c", 2)];
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &["/email"]);
    let (dump, commits) = (server.dump(), server.commits());
    assert_eq!(server.commit(acts(), true), Err(ErrorKind::Conflict));
    assert_eq!((server.dump(), server.commits()), (dump, commits), "nothing is written");

    let outcome = server.commit(acts(), false);
    assert_eq!(outcome, Ok(vec![Ok(201), Err(ErrorKind::Conflict), Ok(201)]));
    assert_eq!(server.listed(), 2);
    server.check();
}

#[test]
fn a_unique_key_goes_from_one_item_to_the_next_within_a_commit() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(10), &["/email"]);
    server.create(item("dead", 1)).unwrap();
    server.clock(1010);
    let acts =
        vec![create("a", 1), replace("a", "a", 2), create("b", 1), delete("b"), create("c", 1)];
    assert_eq!(server.commit(acts, true), Ok([201, 200, 201, 204, 201].map(Ok).to_vec()));
    server.check();
    assert_eq!(server.commit(vec![create("d", 1)], true), Err(ErrorKind::Conflict));
    // The one that had expired was buried, and is counted once.
    assert_eq!(server.engine().container_figures(1).unwrap().containers[0].expired, 1);
    assert_eq!(server.stored_items(), 2);
}

#[test]
fn the_purge_knows_when_the_items_of_a_commit_die() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(-1), &[]);
    server.turns();
    let dying = |id: &str, ttl: u64| Act::Create(text(&json!({"id": id, "pk": "x", "ttl": ttl})));
    server.commit(vec![dying("a", 50), dying("b", 20), dying("c", 90)], true).unwrap();
    assert_eq!(server.engine().shared.deadlines.waiting().0, Some(1020));
    server.clock(1050);
    assert_eq!(server.turns(), 2);
    server.check();
}

/// A write of a batch that goes on is refused by what is alive at the time of the commit,
/// not at that of its draft.
#[test]
fn what_has_expired_by_the_commit_refuses_nothing() {
    let kind = Kind::Memory { slices: 1 };
    let setup = Setup { stepped: true, cache_bytes: 1 << 20, ..Setup::of(kind) };
    let mut server = Server::with(setup);
    server.make_container(Some(10), &[]);
    server.create(item("old", 1)).unwrap();
    server.clock(1009);
    let step = |act| {
        Ok(WriteItem {
            at: at(),
            act,
            partition_key: None,
            condition: Condition::default(),
            minimal: false,
            indexing: Indexing::default(),
        })
    };
    let steps = vec![step(create("new", 2)), step(create("old", 3))];
    let part = Part::of(Some(partition_key("x")));
    let batch =
        WriteBatch { at: at(), part, mode: BatchMode::GoesOn, steps, form: BatchForm::Text };
    let mut ticket = server.hand_in(Operation::WriteBatch(batch));
    server.clock(1010);
    server.begin();
    server.publish();
    let Poll::Ready(reply) = ticket.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("not answered")
    };
    assert_eq!(reply.now, Some(Timestamp(1010)));
    assert_eq!(reply.outcome.unwrap().status, 200, "both are created");
    server.check();
}

fn acts() -> impl Strategy<Value = Vec<(u8, u8, u8, u8)>> {
    prop::collection::vec((0..6u8, 0..3u8, 0..3u8, any::<u8>()), 1..12)
}

fn act((kind, id, other, n): (u8, u8, u8, u8)) -> Act {
    let (id, other) = (["a", "b", "c"][usize::from(id)], ["a", "b", "c"][usize::from(other)]);
    match kind {
        0 => create(id, n),
        1 => upsert(id, n),
        2 => replace(id, other, n),
        3 => increment(id, n),
        4 => forget(id),
        _ => delete(id),
    }
}

/// All that users wrote.
fn shown(item: Value) -> String {
    let Value::Object(mut item) = item else { panic!("{item}") };
    item.retain(|name, _| !name.starts_with('_'));
    Value::Object(item).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whether in one commit or one by one: the same answers, and the same items.
    #[test]
    fn a_commit_of_many_is_the_same_as_many_commits(
        before in acts(),
        during in acts(),
        is_unique in any::<bool>(),
        expired in any::<bool>(),
    ) {
        let unique: &[&str] = if is_unique { &["/email"] } else { &[] };
        let [mut together, mut single] = [0, 1].map(|_| Server::new(Kind::Memory { slices: 1 }));
        for server in [&mut together, &mut single] {
            server.make_container(Some(10), unique);
            server.commit(before.iter().copied().map(act).collect(), false).unwrap();
            server.clock(if expired { 1010 } else { 1001 });
        }
        let outcome = together.commit(during.iter().copied().map(act).collect(), false).unwrap();
        let one_by_one: Vec<_> = during
            .iter()
            .map(|step| {
                let outcome = single.commit(vec![act(*step)], true);
                outcome.and_then(|mut done| done.remove(0))
            })
            .collect();
        prop_assert_eq!(outcome, one_by_one);
        for id in ["a", "b", "c"] {
            let read = |server: &Server| server.read(id, "x").map(shown);
            prop_assert_eq!(read(&together), read(&single));
        }
        together.check();
        prop_assert_eq!(together.listed(), single.listed());
        // Everything dies, and nothing is left behind.
        together.clock(5000);
        together.purge();
        prop_assert_eq!(together.stored_items(), 0);
        together.check();
    }
}

#[test]
fn versions_of_a_commit_are_in_the_order_of_its_writes() {
    let stamp = dayfly_storage::Stamp { lsn: 7, ts: 1, opened: 1 };
    assert!(version::version(stamp, 1) < version::version(stamp, 2));
    assert_eq!(version::lsn_of(version::version(stamp, 4095)), 7);
}
