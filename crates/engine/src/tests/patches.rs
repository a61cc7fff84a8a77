//! Patches: what they write, where they are drafted, and when they hold.

use std::task::{Context, Poll, Waker};

use dayfly_model::ErrorKind;
use dayfly_model::patch::Patch;
use dayfly_storage::{Batch, Plan, Stamp, View};
use serde_json::{Value, json};

use super::server::{Kind, Server, Setup, Ticket, at, partition_key, write};
use crate::items::{self, Around};
use crate::keys;
use crate::operation::{
    Act, BatchForm, BatchMode, Condition, Indexing, Operation, Part, WriteBatch, WriteItem,
};
use crate::reply::Reply;

pub(super) fn act(id: &str, patch: &Value) -> Act {
    Act::Patch(id.to_owned(), Patch::read(patch.to_string().as_bytes()).unwrap())
}

fn patch(id: &str, patch: &Value) -> Operation {
    write(act(id, patch), r#""x""#)
}

fn increment(path: &str) -> Value {
    json!([{"op": "incr", "path": path, "value": 1}])
}

fn stepped(default: Option<i64>) -> Server {
    let kind = Kind::Memory { slices: 1 };
    let setup = Setup { stepped: true, cache_bytes: 1 << 20, ..Setup::of(kind) };
    let mut server = Server::with(setup);
    server.make_container(default, &[]);
    server
}

pub(super) fn poll(ticket: &mut Ticket) -> Option<Reply> {
    match ticket.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(reply) => Some(reply),
        Poll::Pending => None,
    }
}

/// How many entries of the index the commit of a write would put and remove.
fn entries_written(server: &Server, operation: Operation) -> (usize, usize) {
    let Operation::WriteItem(write) = operation else { panic!("no write") };
    let WriteItem { partition_key, .. } = &write;
    let shared = &server.engine().shared;
    let opened = shared.enter_part(&at(), &Part::of(partition_key.clone())).unwrap();
    let plan = items::plan_one(&opened, write, Around::of(shared)).unwrap();
    let view = View::new(&*opened.snapshot, plan.bucket());
    let Ok(draft) = plan.draft(&view) else { panic!("it is refused") };
    let mut batch = Batch::default();
    (draft.write)(Stamp { lsn: 1000, ts: view.now(), opened: 1 }, &mut batch);
    let entries = || batch.rows().filter(|(key, _)| keys::is_indexed(key));
    (
        entries().filter(|(_, value)| value.is_some()).count(),
        entries().filter(|(_, value)| value.is_none()).count(),
    )
}

/// A patch costs what it changes, not what the item has.
#[test]
fn a_patch_writes_the_entries_of_what_it_changes() {
    for default in [None, Some(100)] {
        let mut server = Server::new(Kind::Memory { slices: 1 });
        server.make_container(default, &[]);
        let mut item = json!({"id": "a", "pk": "x"});
        for property in 0..100 {
            item[format!("p{property}")] = property.into();
        }
        server.create(item).unwrap();
        server.clock(1005);
        let set = |path: &str| json!([{"op": "set", "path": path, "value": "other"}]);
        let written = |operations: &Value| entries_written(&server, patch("a", operations));
        assert_eq!(written(&set("/p50")), (1, 1), "{default:?}");
        assert_eq!(written(&set("/new")), (1, 0), "{default:?}");
        assert_eq!(written(&json!([{"op": "remove", "path": "/p50"}])), (0, 1), "{default:?}");
        assert_eq!(written(&json!([{"op": "set", "path": "/p50", "value": 50}])), (0, 0));
        server.run(patch("a", &set("/p50"))).unwrap();
        server.check();
    }
}

/// Patches of one item that were drafted together: each is drafted again by who waits for
/// it, on what the others made, and the committer drafts none.
#[test]
fn a_patch_is_drafted_again_by_who_waits_for_it() {
    let server = stepped(None);
    let mut create = server.hand_in(super::server::creation(&json!({"id": "a", "pk": "x"})));
    server.begin();
    server.publish();
    assert!(poll(&mut create).is_some());

    let redrafts = server.engine().figures().redrafts;
    let mut waiting: Vec<Ticket> =
        (0..3).map(|_| server.hand_in(patch("a", &increment("/n")))).collect();
    let mut groups = 0;
    while !waiting.is_empty() {
        server.begin();
        server.publish();
        waiting.retain_mut(|ticket| match poll(ticket) {
            Some(reply) => {
                assert_eq!(reply.outcome.unwrap().status, 200);
                false
            }
            None => true,
        });
        groups += 1;
        assert!(groups < 10, "{} still wait", waiting.len());
    }
    assert_eq!(server.engine().figures().redrafts, redrafts);
    assert_eq!(server.read("a", "x").unwrap()["n"], 3);
    server.check();
}

/// What held when it was drafted must hold when it is committed.
#[test]
fn a_patch_is_judged_at_the_time_of_its_commit() {
    let server = stepped(Some(10));
    let item = json!({"id": "a", "pk": "x", "n": 1});
    let mut create = server.hand_in(super::server::creation(&item));
    server.begin();
    server.publish();
    assert!(poll(&mut create).is_some());
    let answer = |mut ticket: Ticket| loop {
        server.begin();
        server.publish();
        if let Some(reply) = poll(&mut ticket) {
            return reply.outcome.map(|done| done.status).map_err(|error| error.kind);
        }
    };
    let body = json!({
        "condition": "from c where GetCurrentTimestamp() < 1006000",
        "operations": increment("/n"),
    });
    server.wall().set(1005);
    assert_eq!(answer(server.hand_in(patch("a", &body))), Ok(200));
    // The condition is true in the second of the draft, and not in that of the commit.
    let ticket = server.hand_in(patch("a", &body));
    server.wall().set(1006);
    assert_eq!(answer(ticket), Err(ErrorKind::PatchConditionNotMet));
    // The item is alive in the one, and dead in the other.
    let ticket = server.hand_in(patch("a", &increment("/n")));
    server.wall().set(1015);
    assert_eq!(answer(ticket), Err(ErrorKind::NotFound));
    server.check();
}

/// What a condition without a clock said is true in the next second, too: nobody judges it
/// again.
#[test]
fn a_condition_that_knows_no_time_holds_as_long_as_its_item() {
    let server = stepped(None);
    let item = json!({"id": "a", "pk": "x", "n": 1, "of": [1]});
    let mut create = server.hand_in(super::server::creation(&item));
    server.begin();
    server.publish();
    assert!(poll(&mut create).is_some());
    let groups = |condition: &str| {
        let body = json!({"condition": condition, "operations": increment("/n")});
        let now = server.now().0;
        let mut ticket = server.hand_in(patch("a", &body));
        server.wall().set(now + 1);
        for group in 1.. {
            server.begin();
            server.publish();
            if let Some(reply) = poll(&mut ticket) {
                assert_eq!(reply.outcome.unwrap().status, 200, "{condition}");
                return group;
            }
        }
        unreachable!()
    };
    assert_eq!(groups("from c where c.n > 0 and c._ts > 0 and upper(c.id) = 'A'"), 1);
    assert_eq!(groups("from c where exists(select value 1 from x in c.of where x <= c.n)"), 1);
    assert_eq!(groups("from c where GetCurrentTimestamp() > 0"), 2);
    assert_eq!(groups("from c where exists(select value NOW() from x in c.of)"), 2);
    server.check();
}

/// A batch about items with this partition key.
pub(super) fn batch(mode: BatchMode, key: &str, acts: impl IntoIterator<Item = Act>) -> WriteBatch {
    let step = |act| {
        Ok(WriteItem {
            at: at(),
            act,
            partition_key: Some(partition_key(key)),
            condition: Condition::default(),
            minimal: false,
            indexing: Indexing::default(),
        })
    };
    let steps = acts.into_iter().map(step).collect();
    let part = Part::of(Some(partition_key(key)));
    WriteBatch { at: at(), part, mode, steps, form: BatchForm::Text }
}

/// The same, whose answers leave out the items.
fn minimal(mut batch: WriteBatch) -> WriteBatch {
    for step in batch.steps.iter_mut().flatten() {
        step.minimal = true;
    }
    batch
}

fn outcomes(server: &Server, batch: WriteBatch) -> Vec<Result<u16, ErrorKind>> {
    let done = server.run(Operation::WriteBatch(batch)).unwrap().batch.unwrap();
    let outcome = |reply: Reply| reply.outcome.map(|done| done.status).map_err(|why| why.kind);
    done.1.into_iter().map(outcome).collect()
}

const DEPENDENT: Result<u16, ErrorKind> = Err(ErrorKind::FailedDependency);
const SENT_AGAIN: Result<u16, ErrorKind> = Err(ErrorKind::AnswerTooLarge);

/// A hundred conditions have no more steps than one; what has too few left is sent again,
/// and what needs too many by itself is told so.
#[test]
fn the_conditions_of_a_batch_share_their_steps() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    server.create(json!({"id": "a", "pk": "x", "n": 0, "of": vec![0; 600]})).unwrap();
    let combined = |lists: &str| {
        let condition = format!("from c where not exists(select value 1 from {lists} where 1 = 2)");
        act("a", &json!({"condition": condition, "operations": increment("/n")}))
    };
    let long = || combined("a in c.of join b in c.of");
    let endless = || combined("a in c.of join b in c.of join d in c.of");
    let quick = || combined("a in c.of");
    let run = |mode, acts: Vec<Act>| outcomes(&server, batch(mode, "x", acts));

    let all = run(BatchMode::GoesOn, vec![quick(), long(), long(), long(), quick()]);
    assert_eq!(all, [Ok(200), Ok(200), SENT_AGAIN, SENT_AGAIN, SENT_AGAIN]);
    assert_eq!(run(BatchMode::GoesOn, vec![long(), quick()]), [Ok(200), Ok(200)]);
    let all = run(BatchMode::GoesOn, vec![endless(), quick()]);
    assert_eq!(all, [Err(ErrorKind::BadRequest), SENT_AGAIN]);
    let all = run(BatchMode::Stops, vec![long(), long(), long(), quick()]);
    assert_eq!(all, [Ok(200), SENT_AGAIN, DEPENDENT, DEPENDENT]);
    let all = run(BatchMode::Atomic, vec![long(), long(), long(), quick()]);
    assert_eq!(all, [DEPENDENT, Err(ErrorKind::BadRequest), DEPENDENT, DEPENDENT]);
    assert_eq!(server.read("a", "x").unwrap()["n"], 5);
    server.check();
}

/// What the patches of a batch go over is limited, whether or not it is answered.
#[test]
fn the_patches_of_a_batch_share_what_they_go_over() {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(None, &[]);
    server.create(json!({"id": "a", "pk": "x", "n": 0, "text": "a".repeat(1_800_000)})).unwrap();
    let more = || act("a", &increment("/n"));
    let missing = || Act::Delete("b".to_owned());
    let patches = |count: usize| (0..count).map(|_| more()).chain([missing()]);
    let told = |mode, count| outcomes(&server, batch(mode, "x", patches(count)));
    let untold = |mode, count| outcomes(&server, minimal(batch(mode, "x", patches(count))));

    // Two have room in the answer. The others are not made, and so nobody knows what becomes
    // of the last one.
    let too_large = Err(ErrorKind::TooLarge);
    assert_eq!(told(BatchMode::Atomic, 3), [DEPENDENT, DEPENDENT, DEPENDENT, too_large]);
    let all = told(BatchMode::GoesOn, 3);
    assert_eq!(all, [Ok(200), Ok(200), SENT_AGAIN, SENT_AGAIN]);
    // Nine are all there can be.
    assert_eq!(untold(BatchMode::GoesOn, 9)[8..], [Ok(200), Err(ErrorKind::NotFound)]);
    assert_eq!(untold(BatchMode::GoesOn, 10)[8..], [Ok(200), SENT_AGAIN, SENT_AGAIN]);
    assert_eq!(untold(BatchMode::Atomic, 10)[8..], [DEPENDENT, too_large, DEPENDENT]);
    assert_eq!(server.read("a", "x").unwrap()["n"], 20);
    server.check();
}
