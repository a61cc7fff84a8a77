//! A store that waits for a network: whoever asks reads nothing of it, and what belongs
//! together is read in one call.

use std::thread;

use dayfly_model::{ErrorKind, Timestamp};
use serde_json::json;

use super::patches;
use super::server::{Kind, Server, at, creation, partition_key, text, upsert};
use crate::operation::{
    Act, BatchForm, BatchMode, Condition, ContainerWishes, Indexing, ItemAddress, Operation, Page,
    Part, QueryItems, WriteBatch, WriteItem,
};
use crate::reply::Success;
use crate::{Answer, keys, standing};

fn server(slices: usize) -> Server {
    let mut server = Server::new(Kind::Far { slices });
    server.make_container(Some(100), &["/email"]);
    server
}

/// Reads, lists, queries and writes of all kinds.
fn operations(server: &Server) -> Vec<Operation> {
    let part = || Part::of(Some(partition_key("x")));
    let item =
        |id: &str| ItemAddress { id: id.to_owned(), partition_key: Some(partition_key("x")) };
    let read =
        |id| Operation::ReadItem { at: at(), item: item(id), condition: Condition::default() };
    let query = |text: &str| QueryItems {
        at: at(),
        query: json!({"query": text}).to_string().into_bytes(),
        cross_partition: true,
        ..QueryItems::default()
    };
    let wishes = ContainerWishes { quota: true, statistics: true, ..ContainerWishes::default() };
    vec![
        creation(&json!({"id": "a", "pk": "x", "email": 1})),
        creation(&json!({"id": "a", "pk": "x", "email": 2})),
        creation(&json!({"id": "b", "pk": "x", "email": 1})),
        upsert(&json!({"id": "a", "pk": "x", "email": 3, "ttl": 5})),
        read("a"),
        read("none"),
        Operation::ListItems { at: at(), part: part(), page: Page::default() },
        Operation::QueryItems(query("SELECT * FROM c WHERE c.email = 3")),
        Operation::ExplainQuery(query("SELECT COUNT(1) FROM c")),
        Operation::ReadContainer { at: at(), condition: Condition::default(), wishes },
        Operation::ListRanges { at: at(), known: None },
        Operation::ReadTtl { at: at() },
        Operation::ForecastTtl { at: at(), buckets: 3, bucket_seconds: 60 },
        Operation::DeletePartition { at: at(), partition_key: Some(partition_key("x")) },
        server.change_of_default(Some(7), &["/email"]),
        Operation::RunPurge { container: None },
    ]
}

/// What an answer says, but for what is alive: that may be of the second before.
fn told(outcome: Result<Success, ErrorKind>) -> Result<(u16, Option<usize>), ErrorKind> {
    outcome.map(|success| (success.status, success.item_count))
}

#[test]
fn whoever_asks_reads_nothing() {
    for slices in [1, 4] {
        let (far, mut near) = (server(slices), Server::new(Kind::Memory { slices }));
        near.make_container(Some(100), &["/email"]);
        let mut reading = 0;
        for (operation, same) in operations(&near).into_iter().zip(operations(&near)) {
            let what = format!("{operation:?}");
            far.reads.take();
            let answer = far.engine().run(operation);
            assert!(matches!(answer, Answer::Pending(_)), "{what}");
            let outcome = answer.wait().outcome.map_err(|error| error.kind);
            let readers = far.reads.take().threads;
            reading += usize::from(!readers.is_empty());
            assert!(!readers.contains(&thread::current().id()), "{what}");
            assert_eq!(told(outcome), told(near.run(same)), "{what}");
        }
        assert!(reading > 12, "{reading} of them read");
        far.check();
    }
}

#[test]
fn the_time_alone_is_told_at_once() {
    let server = server(1);
    server.reads.take();
    assert!(matches!(server.engine().run(Operation::ReadTime), Answer::Ready(_)));
    assert!(server.reads.take().threads.is_empty());
}

#[test]
fn an_engine_that_is_closed_says_so() {
    let server = server(1);
    server.engine().close().unwrap();
    assert_eq!(server.read("a", "x").unwrap_err(), ErrorKind::ServiceUnavailable);
}

/// With the entries of its items in the index, and queues of both kinds.
#[test]
fn a_unit_of_the_purge_reads_many_rows_in_one_call() {
    let mut server = server(1);
    for id in 0..200 {
        let ttl = if id % 2 == 0 { json!({"ttl": 50}) } else { json!({}) };
        let mut item = json!({"id": id.to_string(), "pk": "x", "email": id});
        item.as_object_mut().unwrap().extend(ttl.as_object().unwrap().clone());
        server.create(item).unwrap();
    }
    server.clock(1100);
    server.reads.take();
    assert_eq!(server.purge(), 200);
    let calls = server.reads.take().calls[&keys::bucket(1, 0)];
    assert!(calls < 20, "{calls} calls");
    server.check();
}

/// Over items that are there, that expired and that were deleted with their partition, and
/// over unique keys whose owners expired.
#[test]
fn a_batch_looks_at_many_items_in_one_call() {
    let mut server = server(1);
    let item = |id: usize, email: usize| json!({"id": id.to_string(), "pk": "x", "email": email});
    for id in 0..20 {
        server.create(item(id, 1000 + id)).unwrap();
    }
    let partition_key = Some(partition_key("x"));
    let part = Part::of(partition_key.clone());
    server.run(Operation::DeletePartition { at: at(), partition_key }).unwrap();
    for id in 20..100 {
        let mut item = item(id, id);
        item["ttl"] = json!(if id < 40 { 5 } else { -1 });
        server.create(item).unwrap();
    }
    server.clock(1010);
    let act = |id: usize| match id {
        // The first ones want the unique keys of items that expired.
        0..40 => Act::Create(text(&item(id, (id + 20) % 40))),
        40..60 => Act::Upsert(text(&item(id, id))),
        60..80 => Act::Replace(id.to_string(), text(&item(id + 100, id))),
        80..90 => patches::act(&id.to_string(), &json!([{"op": "incr", "path": "/n", "value": 1}])),
        _ => Act::Delete(id.to_string()),
    };
    let step = |id| {
        let (act, condition, indexing) = (act(id), Condition::default(), Indexing::default());
        Ok(WriteItem { at: at(), act, partition_key: None, condition, minimal: false, indexing })
    };
    server.reads.take();
    let steps = (0..100).map(step).collect();
    let batch =
        WriteBatch { at: at(), part, mode: BatchMode::Atomic, steps, form: BatchForm::Text };
    let outcome = server.run(Operation::WriteBatch(batch)).unwrap();
    let calls = server.reads.take().calls[&keys::bucket(1, 0)];
    assert_eq!((outcome.status, outcome.item_count), (200, Some(100)));
    // 32 of them at a time: their ids and unique keys, the items and the owners, their items.
    // Which unique keys a patch wants is known when it is decided.
    assert!(calls <= 10 + 10, "{calls} calls");
    server.check();
}

#[test]
fn the_histogram_is_read_level_by_level() {
    let mut server = server(1);
    for id in 0..100 {
        server.clock(1000 + id * 7);
        let ttl =
            [json!(1000), json!(-1), json!(90 * id + 1)][usize::try_from(id % 3).unwrap()].clone();
        server.create(json!({"id": id.to_string(), "pk": "x", "email": id, "ttl": ttl})).unwrap();
    }
    let (bucket, store) = (keys::bucket(1, 0), &server.engine().shared.store);
    let snapshot = store.snapshot().unwrap();
    server.reads.take();
    let standing = standing::of_bucket(&*snapshot, bucket).unwrap();
    let calls = server.reads.take().calls[&bucket];
    assert_eq!(standing.live.plus(standing.dead).items, 100);
    assert!(standing.dead.items > 0 && Timestamp(snapshot.now()) > Timestamp(1000));
    // All classes at the top, then at most one call for each level below it.
    assert!(calls <= 7, "{calls} calls");
}
