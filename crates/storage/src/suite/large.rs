//! Large writes: who waits for them, and who drafts them again.

use std::pin::{Pin, pin};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};

use super::{Act, Bench, Check, HERE, Refusal, appends, draft, of_rows, puts};
use crate::{
    Bucket, Elsewhere, Error, LARGE_ROWS, RETURNS_MAX, Room, Stamp, Store, Urgency, View,
    commit_returning_elsewhere,
};

pub(super) const CHECKS: &[Check] = &[
    small_writes_do_not_wait_for_a_large_one,
    small_writes_join_the_group_of_a_large_one,
    a_large_write_is_not_left_behind_for_ever,
    a_group_holds_so_many_rows_and_what_has_more_goes_alone,
    a_large_draft_that_no_longer_holds_is_made_again_by_its_caller,
    a_large_draft_is_made_again_by_the_committer_in_the_end,
    a_large_draft_whose_caller_cannot_is_made_again_by_the_committer,
    a_large_draft_whose_caller_must_not_read_is_made_again_elsewhere,
    a_plan_that_came_back_may_refuse,
    a_plan_that_came_back_to_a_closed_store_is_told,
];

/// The bucket of the large writes.
const THERE: Bucket = Bucket(8);

const LARGE: usize = LARGE_ROWS + 1;

/// What a ticket says now, if it says anything. Drafts again what came back.
fn poll<T>(answer: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match answer.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

fn small_writes_do_not_wait_for_a_large_one(bench: &Bench) {
    let large = bench.submit(THERE, of_rows(LARGE, puts("large", "1")));
    let small = bench.submit(HERE, puts("small", "1"));
    bench.step();
    small.wait().unwrap();
    assert_eq!(bench.get(THERE, "large"), None);
    bench.step();
    large.wait().unwrap();
    assert_eq!(bench.get(THERE, "large").as_deref(), Some("1"));
}

fn small_writes_join_the_group_of_a_large_one(bench: &Bench) {
    let large = bench.submit(THERE, of_rows(LARGE, puts("large", "1")));
    bench.store.begin_group();
    let small = bench.submit(HERE, puts("small", "1"));
    bench.step();
    large.wait().unwrap();
    small.wait().unwrap();
    assert_eq!(bench.store.figures().groups, 1);
}

fn a_large_write_is_not_left_behind_for_ever(bench: &Bench) {
    let large = bench.submit(THERE, of_rows(LARGE, puts("large", "1")));
    let mut groups = 0;
    while bench.get(THERE, "large").is_none() {
        assert!(groups < 4, "{groups} groups left without it");
        let small = bench.submit(HERE, puts("small", "1"));
        bench.step();
        small.wait().unwrap();
        groups += 1;
    }
    large.wait().unwrap();
    // It waited for the small ones, and the last of them went along with it.
    assert_eq!((groups, bench.store.figures().groups), (4, 4));
}

fn a_group_holds_so_many_rows_and_what_has_more_goes_alone(bench: &Bench) {
    let fills = |rows: usize| {
        of_rows(rows, move |_: &View<'_>| {
            Ok(draft(move |_, batch| {
                (0..rows).for_each(|row| batch.put(row.to_be_bytes().to_vec(), "1"));
            }))
        })
    };
    let tickets = [3000, 1000, 1000, 3000, 5000, 600].map(|rows| bench.submit(THERE, fills(rows)));
    for commits in [2, 4, 5, 6] {
        bench.step();
        assert_eq!(bench.store.figures().commits, commits);
    }
    let lsns = tickets.map(|ticket| ticket.wait().unwrap().lsn);
    assert_eq!(lsns, [1, 2, 3, 4, 5, 6]);
}

/// A large write that others come before so many times.
fn outrun(bench: &Bench, times: u32) -> Result<Stamp, Refusal> {
    let ticket = bench.submit_returning(HERE, of_rows(LARGE, appends("a", "large")));
    let mut answer = pin!(ticket.answer());
    for number in 0..times {
        assert!(poll(answer.as_mut()).is_none());
        let other = bench.submit(HERE, appends("a", &number.to_string()));
        bench.step();
        other.wait().unwrap();
        bench.step();
    }
    if let Some(answer) = poll(answer.as_mut()) {
        return answer;
    }
    bench.step();
    poll(answer).unwrap()
}

fn a_large_draft_that_no_longer_holds_is_made_again_by_its_caller(bench: &Bench) {
    let stamp = outrun(bench, RETURNS_MAX).unwrap();
    assert_eq!(stamp.lsn, u64::from(RETURNS_MAX) + 1);
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("01large"));
    assert_eq!(bench.store.figures().redrafts, 0);
}

fn a_large_draft_is_made_again_by_the_committer_in_the_end(bench: &Bench) {
    outrun(bench, RETURNS_MAX + 1).unwrap();
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("012large"));
    assert_eq!(bench.store.figures().redrafts, 1);
}

fn a_large_draft_whose_caller_cannot_is_made_again_by_the_committer(bench: &Bench) {
    let large = bench.submit(HERE, of_rows(LARGE, appends("a", "large")));
    let small = bench.submit(HERE, appends("a", "small "));
    bench.step();
    bench.step();
    small.wait().unwrap();
    large.wait().unwrap();
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("small large"));
    assert_eq!(bench.store.figures().redrafts, 1);
}

fn a_large_draft_whose_caller_must_not_read_is_made_again_elsewhere(bench: &Bench) {
    let (line, tasks) = mpsc::channel();
    let elsewhere: Elsewhere = Arc::new(move |task| line.send(task).unwrap());
    let store: Arc<dyn Store> = Arc::clone(&bench.store) as _;
    let outrun = || {
        let draft = of_rows(LARGE, appends("a", "large"));
        let act = Act { draft, room: Room::Grows, urgency: Urgency::Now };
        let ticket = commit_returning_elsewhere(&store, HERE, act, Arc::clone(&elsewhere));
        let small = bench.submit(HERE, puts("a", "small "));
        bench.step();
        small.wait().unwrap();
        bench.step();
        ticket
    };
    let mut answer = pin!(outrun().answer());
    assert!(poll(answer.as_mut()).is_none());
    bench.step();
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("small "), "nobody has drafted it");
    tasks.try_recv().unwrap()();
    bench.step();
    assert_eq!(poll(answer).unwrap().unwrap().lsn, 2);
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("small large"));

    let mut answer = pin!(outrun().answer());
    assert!(poll(answer.as_mut()).is_none());
    drop(tasks.try_recv().unwrap());
    assert_eq!(poll(answer), Some(Err(Refusal::Storage(Error::Retry))));
}

fn a_plan_that_came_back_may_refuse(bench: &Bench) {
    let creates = super::creates("a", "large");
    let ticket = bench.submit_returning(HERE, of_rows(LARGE, creates));
    let small = bench.submit(HERE, puts("a", "small"));
    bench.step();
    small.wait().unwrap();
    bench.step();
    assert_eq!(ticket.wait(), Err(Refusal::Said("it is there".to_owned())));
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("small"));
}

fn a_plan_that_came_back_to_a_closed_store_is_told(bench: &Bench) {
    let ticket = bench.submit_returning(HERE, of_rows(LARGE, appends("a", "large")));
    let small = bench.submit(HERE, puts("a", "small"));
    bench.store.close().unwrap();
    small.wait().unwrap();
    let told = ticket.wait();
    assert!(matches!(told, Err(Refusal::Storage(Error::Unavailable(_)))), "{told:?}");
}
