//! Whose turn a query is, and when it ends before its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use dayfly_model::{Error, ErrorKind, Timestamp};
use dayfly_sql::run::Steps;
use serde_json::{Value, json};

use super::server::{Kind, Server, at, partition_key};
use crate::caller::Caller;
use crate::cancel::{Cancel, Reason};
use crate::lanes::{ByLane, Lanes, WAITING_MAX};
use crate::operation::{Operation, Page, Part, QueryItems};
use crate::reply::{Reply, Success};
use crate::settings::QuerySteps;
use crate::shared::Shared;

const STEPS: QuerySteps = QuerySteps { quick: 10_000, page: 10_000, whole: u64::MAX };

/// Lanes with one place in each.
fn lanes(server: &Server, steps: QuerySteps) -> Lanes {
    Lanes::with(&server.engine().shared, ByLane { quick: 1, slow: 1 }, steps).unwrap()
}

fn server() -> Server {
    Server::new(Kind::Memory { slices: 1 })
}

fn fine() -> Reply {
    Reply::ok(Success::new(200, ""), Timestamp(1000), 0.0)
}

/// A query that ends when it is told to. It says each time that it was begun.
fn endless(begun: Sender<()>) -> impl Fn(&Shared, &Steps<'_>) -> Reply + Send + Sync {
    move |_, steps| {
        let _ = begun.send(());
        loop {
            if let Err(error) = steps.make(100) {
                return error.into();
            }
        }
    }
}

/// A query on its way: how to cancel it, when it is begun, and its answer.
struct Sent {
    cancel: Cancel,
    begun: Receiver<()>,
    answer: oneshot::Receiver<Reply>,
}

impl Sent {
    fn endless(lanes: &Lanes) -> Sent {
        let (sender, begun) = channel();
        let cancel = Cancel::default();
        let answer = lanes.hand_in(cancel.clone(), endless(sender));
        Sent { cancel, begun, answer }
    }

    /// Waits until it is in the slow lane, where it runs or waits.
    fn once_slow(self, lanes: &Lanes) -> Sent {
        self.begun.recv().unwrap();
        await_that(|| lanes.figures().running.quick == 0);
        self
    }

    fn error(self) -> Error {
        self.answer.recv().unwrap().outcome.unwrap_err()
    }
}

fn await_that(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

fn cheap(lanes: &Lanes) -> oneshot::Receiver<Reply> {
    lanes.hand_in(Cancel::default(), |_, _| fine())
}

#[test]
fn a_query_ends_when_its_client_is_gone() {
    let server = server();
    let lanes = lanes(&server, STEPS);
    let query = Sent::endless(&lanes).once_slow(&lanes);
    query.cancel.cancel(Reason::Gone);
    let error = query.error();
    assert_eq!(error.kind, ErrorKind::RequestTimeout);
    assert_eq!(lanes.figures().cancelled, [0, 1, 0, 0]);
}

#[test]
fn a_query_that_waits_is_not_begun_when_its_client_is_gone() {
    let server = server();
    let lanes = lanes(&server, STEPS);
    let first = Sent::endless(&lanes).once_slow(&lanes);
    let second = Sent::endless(&lanes).once_slow(&lanes);
    await_that(|| lanes.figures().waiting.slow == 1);
    second.cancel.cancel(Reason::Gone);
    first.cancel.cancel(Reason::Gone);
    first.error();
    let begun = second.begun;
    let error = second.answer.recv().unwrap().outcome.unwrap_err();
    assert_eq!(error.message, "The client went away before the query was done.");
    assert_eq!(begun.try_iter().count(), 0, "only the turn in the quick lane");
    assert_eq!(lanes.figures().moved, 2);
}

#[test]
fn nor_in_the_quick_lane() {
    let server = server();
    let lanes = lanes(&server, STEPS);
    let ((begun, is_begun), (release, released)) = (channel(), channel::<()>());
    let released = std::sync::Mutex::new(released);
    let first = lanes.hand_in(Cancel::default(), move |_, _| {
        begun.send(()).unwrap();
        released.lock().unwrap().recv().unwrap();
        fine()
    });
    is_begun.recv().unwrap();
    let second = Sent::endless(&lanes);
    second.cancel.cancel(Reason::Gone);
    release.send(()).unwrap();
    first.recv().unwrap().outcome.unwrap();
    assert_eq!(second.answer.recv().unwrap().outcome.unwrap_err().kind, ErrorKind::RequestTimeout);
    assert_eq!(second.begun.try_iter().count(), 0);
}

#[test]
fn cheap_queries_do_not_wait_for_dear_ones() {
    let server = server();
    let lanes = lanes(&server, STEPS);
    let dear: Vec<Sent> = (0..60).map(|_| Sent::endless(&lanes)).collect();
    for _ in 0..10 {
        cheap(&lanes).recv().unwrap().outcome.unwrap();
    }
    await_that(|| lanes.figures().waiting.slow == 59);
    assert_eq!(lanes.figures().running, ByLane { quick: 0, slow: 1 });
    drop(lanes);
    for query in dear {
        assert_eq!(query.error().kind, ErrorKind::ServiceUnavailable);
    }
}

/// What it did in the quick lane is done again, and counts once.
#[test]
fn a_query_that_waits_begins_again_and_is_answered_once() {
    let server = server();
    let lanes = lanes(&server, STEPS);
    let first = Sent::endless(&lanes).once_slow(&lanes);
    let begun = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&begun);
    let long = lanes.hand_in(Cancel::default(), move |_, steps| {
        counter.fetch_add(1, Ordering::Relaxed);
        steps.make(20_000).map_or_else(Reply::from, |()| fine())
    });
    await_that(|| lanes.figures().waiting.slow == 1);
    first.cancel.cancel(Reason::Late);
    assert!(first.error().message.starts_with("The query took too long"));
    long.recv().unwrap().outcome.unwrap();
    assert_eq!(begun.load(Ordering::Relaxed), 2);
}

/// Who closed its side of the connection may still listen, but not for long.
#[test]
fn a_silent_client_is_answered_what_is_quick() {
    let server = server();
    let lanes = lanes(&server, STEPS);
    let silent = || {
        let cancel = Cancel::default();
        cancel.cancel(Reason::Silent);
        cancel
    };
    lanes.hand_in(silent(), |_, _| fine()).recv().unwrap().outcome.unwrap();
    let (begun, _kept) = channel();
    let slow = lanes.hand_in(silent(), endless(begun)).recv().unwrap();
    assert!(slow.outcome.unwrap_err().message.contains("Keep it open"));
    assert_eq!(lanes.figures().moved, 0);
}

#[test]
fn a_query_has_a_budget() {
    let server = server();
    let lanes = lanes(&server, QuerySteps { whole: 100_000, ..STEPS });
    let error = Sent::endless(&lanes).error();
    assert_eq!(error.kind, ErrorKind::RequestTimeout);
    assert!(error.message.contains("more work than one answer may"), "{}", error.message);
    assert_eq!(lanes.figures().spent, 1);
}

#[test]
fn a_stop_ends_what_runs_and_what_waits() {
    let server = server();
    let lanes = lanes(&server, STEPS);
    let queries: Vec<Sent> = (0..20).map(|_| Sent::endless(&lanes)).collect();
    queries[0].begun.recv().unwrap();
    lanes.close();
    for query in queries {
        assert_eq!(query.error().kind, ErrorKind::ServiceUnavailable);
    }
    assert_eq!(
        cheap(&lanes).recv().unwrap().outcome.unwrap_err().kind,
        ErrorKind::ServiceUnavailable
    );
    assert_eq!(lanes.figures().running, ByLane::default());
}

/// A line is full of those that somebody wants, not of others.
#[test]
fn the_gone_keep_nobody_out() {
    let server = server();
    let lanes = lanes(&server, STEPS);
    let ((begun, is_begun), (release, released)) = (channel(), channel::<()>());
    let released = std::sync::Mutex::new(released);
    let first = lanes.hand_in(Cancel::default(), move |_, _| {
        begun.send(()).unwrap();
        released.lock().unwrap().recv().unwrap();
        fine()
    });
    is_begun.recv().unwrap();
    let gone = Cancel::default();
    for _ in 0..WAITING_MAX {
        lanes.hand_in(gone.clone(), |_, _| fine());
    }
    let refused = cheap(&lanes).recv().unwrap().outcome.unwrap_err();
    assert_eq!(refused.message, "Too many requests like this one are waiting.");
    gone.cancel(Reason::Gone);
    let taken = cheap(&lanes);
    release.send(()).unwrap();
    first.recv().unwrap().outcome.unwrap();
    taken.recv().unwrap().outcome.unwrap();
}

/// Who will not wait much longer gets what there is, and a place to go on from: each page
/// gets further, and all together are all.
#[test]
fn a_hurried_page_ends_where_it_can() {
    let mut server = server();
    server.make_container(None, &[]);
    for id in 0..10 {
        server.create(json!({"id": id.to_string(), "pk": "a", "n": 10 - id})).unwrap();
    }
    for (query, count) in [
        ("SELECT VALUE c.id FROM c", 10),
        ("SELECT VALUE c.id FROM c WHERE c.n > 5 ORDER BY c.n", 5),
        // What has to come in one page does.
        ("SELECT VALUE COUNT(1) FROM c WHERE c.n > 5", 1),
    ] {
        let (mut rows, mut pages, mut continuation) = (Vec::new(), 0, None);
        loop {
            let asked = QueryItems {
                at: at(),
                query: json!({ "query": query }).to_string().into_bytes(),
                part: Part::of(Some(partition_key("a"))),
                page: Page { limit: Some(100), continuation },
                ..QueryItems::default()
            };
            let cancel = Cancel::default();
            cancel.hurry();
            let operation = Operation::QueryItems(asked);
            let reply = server.engine().run_for(Caller::Primary, operation, cancel).wait();
            let success = reply.outcome.unwrap();
            let body: Value = serde_json::from_slice(&success.body.to_vec()).unwrap();
            let page = body["Documents"].as_array().unwrap();
            rows.extend(page.iter().cloned());
            pages += 1;
            assert!(pages <= 11, "{query}");
            continuation = success.continuation;
            if continuation.is_none() {
                break;
            }
        }
        let mut all = server.page(query, 100, None).0;
        assert_eq!(rows.len(), count, "{query}");
        assert!(count == 1 || pages > 1, "{query}");
        assert_eq!(rows, std::mem::take(&mut all), "{query}");
    }
}
