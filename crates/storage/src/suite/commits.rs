//! What a commit does, and what is left of one that is not done.

use std::sync::atomic::Ordering;

use super::{Act, Bench, Check, HERE, Refusal, START, appends, creates, draft, puts, range, scan};
use crate::tally::{CELLS, Change, Count, Tally};
use crate::{
    Bucket, Cleared, Error, Head, KEY_BYTES_MAX, Plan, Room, Stamp, Store, Urgency, View, commit,
};

pub(super) const CHECKS: &[Check] = &[
    a_commit_is_visible_when_it_is_answered,
    a_commit_shows_all_of_its_writes,
    the_last_word_on_a_key_counts,
    a_delete_removes_and_may_miss,
    lsns_have_no_gaps,
    buckets_have_heads_of_their_own,
    the_state_stays_until_it_is_set,
    a_refused_write_leaves_nothing,
    the_stamp_is_what_the_head_says,
    concurrent_appends_all_count,
    concurrent_creates_have_one_winner,
    concurrent_additions_all_count_and_no_draft_is_run_again,
    a_tally_that_counts_nothing_has_no_row,
    a_key_over_the_limit_is_refused,
    the_longest_key_is_kept,
    a_full_disk_refuses_what_grows_only,
    a_cleared_range_is_gone_and_the_lsn_stays,
    a_forgotten_bucket_has_no_head,
    buckets_are_listed_in_order,
    the_stores_own_bucket_is_closed,
    a_plan_that_panics_takes_only_itself,
    a_closed_store_answers_unavailable,
    a_rider_is_committed_without_company,
];

fn a_commit_is_visible_when_it_is_answered(bench: &Bench) {
    for n in 0..20 {
        bench.put(HERE, "a", &n.to_string());
        assert_eq!(bench.get(HERE, "a"), Some(n.to_string()));
    }
}

fn a_commit_shows_all_of_its_writes(bench: &Bench) {
    let both = |value: &'static str| {
        move |_: &View<'_>| {
            Ok(draft(move |_, batch| {
                batch.put(b"a".to_vec(), value);
                batch.put(b"b".to_vec(), value);
            }))
        }
    };
    for value in ["1", "2", "3"] {
        bench.submit(HERE, both(value)).wait().unwrap();
        let snapshot = bench.snapshot();
        assert_eq!(super::get(&*snapshot, HERE, "a").as_deref(), Some(value));
        assert_eq!(super::get(&*snapshot, HERE, "b").as_deref(), Some(value));
    }
}

fn the_last_word_on_a_key_counts(bench: &Bench) {
    let act = |_: &View<'_>| {
        Ok(draft(|_, batch| {
            batch.put(b"a".to_vec(), "1");
            batch.delete(b"a".to_vec());
            batch.delete(b"b".to_vec());
            batch.put(b"b".to_vec(), "2");
        }))
    };
    bench.submit(HERE, act).wait().unwrap();
    assert_eq!(bench.get(HERE, "a"), None);
    assert_eq!(bench.get(HERE, "b"), Some("2".to_owned()));
}

fn a_delete_removes_and_may_miss(bench: &Bench) {
    let delete = |_: &View<'_>| Ok(draft(|_, batch| batch.delete(b"a".to_vec())));
    bench.put(HERE, "a", "1");
    bench.submit(HERE, delete).wait().unwrap();
    assert_eq!(bench.get(HERE, "a"), None);
    bench.submit(HERE, delete).wait().unwrap();
}

fn lsns_have_no_gaps(bench: &Bench) {
    for expected in 1..=10 {
        let _ = bench.submit(HERE, |_| Err(Refusal::Said("no".to_owned()))).wait();
        assert_eq!(bench.put(HERE, "a", "1").lsn, expected);
    }
}

fn buckets_have_heads_of_their_own(bench: &Bench) {
    bench.put(Bucket(1), "a", "1");
    bench.put(Bucket(1), "a", "2");
    bench.put(Bucket(2), "a", "3");
    let snapshot = bench.snapshot();
    assert_eq!(snapshot.head(Bucket(1)).lsn, 2);
    assert_eq!(snapshot.head(Bucket(2)).lsn, 1);
    assert_eq!(snapshot.head(Bucket(3)), Head::default());
    assert_eq!(super::get(&*snapshot, Bucket(1), "a").as_deref(), Some("2"));
    assert_eq!(super::get(&*snapshot, Bucket(2), "a").as_deref(), Some("3"));
}

fn the_state_stays_until_it_is_set(bench: &Bench) {
    bench.submit(HERE, |_| Ok(draft(|_, batch| batch.set_state("x")))).wait().unwrap();
    bench.put(HERE, "a", "1");
    assert_eq!(bench.snapshot().head(HERE), Head { lsn: 2, ts: START, state: "x".into() });
}

fn a_refused_write_leaves_nothing(bench: &Bench) {
    bench.put(HERE, "a", "1");
    let before = bench.snapshot();
    let refused = bench.submit(HERE, creates("a", "2")).wait();
    assert_eq!(refused, Err(Refusal::Said("it is there".to_owned())));
    assert_eq!(bench.snapshot().head(HERE), before.head(HERE));
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("1"));
}

fn the_stamp_is_what_the_head_says(bench: &Bench) {
    let stamp = bench.put(HERE, "a", "1");
    let head = bench.snapshot().head(HERE);
    assert_eq!((stamp.lsn, stamp.ts), (head.lsn, head.ts));
    assert!(stamp.opened >= 1);
}

fn concurrent_appends_all_count(bench: &Bench) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    bench.submit(HERE, appends("a", "x")).wait().unwrap();
                }
            });
        }
    });
    assert_eq!(bench.get(HERE, "a"), Some("x".repeat(100)));
    assert_eq!(bench.snapshot().head(HERE).lsn, 100);
}

fn concurrent_creates_have_one_winner(bench: &Bench) {
    for round in 0..10 {
        let key = format!("k{round}");
        let tickets: Vec<_> =
            (0..8).map(|n| bench.submit(HERE, creates(&key, &n.to_string()))).collect();
        let won = tickets.into_iter().flat_map(super::Ticket::wait).count();
        assert_eq!(won, 1);
    }
}

/// Something of ten bytes.
const TEN: Count = Count { items: 1, bytes: 10 };

/// Counts a change of 10 bytes in cell 3 of the tally `t`.
fn counts(change: Change) -> impl Fn(&View<'_>) -> super::Outcome + Send {
    move |_: &View<'_>| Ok(draft(move |_, batch| batch.add(b"t".to_vec(), 3, change)))
}

fn tally(bench: &Bench) -> Option<Tally> {
    let row = bench.snapshot().get(HERE, b"t").unwrap();
    row.map(|row| Tally::decode(&row).unwrap())
}

fn concurrent_additions_all_count_and_no_draft_is_run_again(bench: &Bench) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    bench.submit(HERE, counts(Change::More(TEN))).wait().unwrap();
                }
            });
        }
    });
    let counted = tally(bench).unwrap();
    assert_eq!(counted.cell(3), Count { items: 100, bytes: 1000 });
    assert_eq!(counted.before(CELLS), Count { items: 100, bytes: 1000 });
    assert_eq!(bench.store.figures().redrafts, 0);
}

fn a_tally_that_counts_nothing_has_no_row(bench: &Bench) {
    bench.submit(HERE, counts(Change::More(TEN))).wait().unwrap();
    assert!(tally(bench).is_some());
    bench.submit(HERE, counts(Change::Less(TEN))).wait().unwrap();
    assert_eq!(tally(bench), None);
}

fn a_key_over_the_limit_is_refused(bench: &Bench) {
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    let refused = bench.submit(HERE, puts(&long, "1")).wait();
    assert!(matches!(refused, Err(Refusal::Storage(Error::Unavailable(_)))));
    assert_eq!(bench.snapshot().head(HERE).lsn, 0);
    assert_eq!(bench.get(HERE, &long), None);
}

fn the_longest_key_is_kept(bench: &Bench) {
    let long = "k".repeat(KEY_BYTES_MAX);
    bench.put(HERE, &long, "1");
    assert_eq!(bench.get(HERE, &long).as_deref(), Some("1"));
}

fn a_full_disk_refuses_what_grows_only(bench: &Bench) {
    bench.put(HERE, "a", "1");
    bench.setup.free.store(0, Ordering::SeqCst);
    // A store may trust its last look for a moment; `writable` looks again.
    while bench.store.writable().is_ok() {
        std::thread::yield_now();
    }
    assert_eq!(bench.store.writable(), Err(Error::Full));
    let refused = bench.submit(HERE, puts("b", "2")).wait();
    assert_eq!(refused, Err(Refusal::Storage(Error::Full)));
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("1"));

    let act = |_: &View<'_>| Ok(draft(|_, batch| batch.delete(b"a".to_vec())));
    let act = Act { draft: act, room: Room::Frees, urgency: Urgency::Now };
    commit(&*bench.store, HERE, act).wait().unwrap();
    assert_eq!(bench.get(HERE, "a"), None);

    bench.setup.free.store(u64::MAX, Ordering::SeqCst);
    assert_eq!(bench.put(HERE, "b", "2").lsn, 3);
    assert_eq!(bench.store.writable(), Ok(()));
}

fn a_cleared_range_is_gone_and_the_lsn_stays(bench: &Bench) {
    for key in ["a", "b", "c", "d"] {
        bench.put(HERE, key, "1");
        bench.put(Bucket(8), key, "1");
    }
    let before = bench.snapshot();
    // Read before, so that a cache would know it.
    assert_eq!(super::get(&*before, HERE, "b").as_deref(), Some("1"));
    let next = Some(b"b\0".to_vec());
    assert_eq!(bench.store.clear(HERE, &range("b", "d"), 1), Ok(Cleared { removed: 1, next }));
    let all = |removed| Ok(Cleared { removed, next: None });
    assert_eq!(bench.store.clear(HERE, &range("b\0", "d"), 10), all(1));
    assert_eq!(bench.store.clear(HERE, &range("b", "d"), 10), all(0));
    let after = bench.snapshot();
    assert_eq!(scan(&*after, HERE, &range("", "z")), "a d");
    assert_eq!(super::get(&*after, HERE, "b"), None);
    assert_eq!(scan(&*after, Bucket(8), &range("", "z")), "a b c d");
    assert_eq!(scan(&*before, HERE, &range("", "z")), "a b c d");
    assert_eq!(after.head(HERE).lsn, 4);
}

fn a_forgotten_bucket_has_no_head(bench: &Bench) {
    bench.put(HERE, "a", "1");
    bench.put(Bucket(8), "a", "1");
    let before = bench.snapshot();
    bench.store.clear(HERE, &range("", "z"), 10).unwrap();
    bench.store.forget(HERE).unwrap();
    assert_eq!(bench.snapshot().head(HERE), Head::default());
    assert_eq!(bench.store.buckets(), [Bucket(8)]);
    assert_eq!(before.head(HERE).lsn, 1);
    assert_eq!(bench.put(HERE, "a", "2").lsn, 1);
}

fn buckets_are_listed_in_order(bench: &Bench) {
    for bucket in [300, 2, 70_000, 1] {
        bench.put(Bucket(bucket), "a", "1");
    }
    assert_eq!(bench.store.buckets(), [1, 2, 300, 70_000].map(Bucket));
}

fn the_stores_own_bucket_is_closed(bench: &Bench) {
    let own = Bucket(u64::MAX);
    let refused = bench.submit(own, puts("a", "1")).wait();
    assert!(matches!(refused, Err(Refusal::Storage(Error::Unavailable(_)))));
    assert!(bench.store.clear(own, &range("", "z"), 1).is_err());
    assert!(bench.store.forget(own).is_err());
}

/// A plan whose write panics.
struct Panics;

impl Plan for Panics {
    type Done = Stamp;
    type Refusal = Error;

    fn draft(&self, _: &View<'_>) -> crate::Result<crate::Draft<Stamp>> {
        Ok(draft(|_, batch| {
            batch.put(b"a".to_vec(), "half");
            // Not `panic!`, which would fill the test's output.
            std::panic::resume_unwind(Box::new("a plan panics on purpose"));
        }))
    }
}

fn a_plan_that_panics_takes_only_itself(bench: &Bench) {
    let failed = commit(&*bench.store as &dyn Store, HERE, Panics).wait();
    assert!(matches!(failed, Err(Error::Unavailable(_))));
    assert_eq!(bench.get(HERE, "a"), None);
    assert_eq!(bench.put(HERE, "a", "1").lsn, 1);
}

fn a_closed_store_answers_unavailable(bench: &Bench) {
    bench.put(HERE, "a", "1");
    bench.store.close().unwrap();
    let refused = bench.submit(HERE, puts("b", "2")).wait();
    assert!(matches!(refused, Err(Refusal::Storage(Error::Unavailable(_)))));
    assert!(matches!(bench.store.writable(), Err(Error::Unavailable(_))));
    assert!(bench.store.snapshot().is_err());
    assert_eq!(bench.store.close(), Ok(()));
}

fn a_rider_is_committed_without_company(bench: &Bench) {
    bench.put(HERE, "a", "1");
    let rider = bench.submit_rider(HERE, puts("a", "2"));
    assert_eq!(rider.wait().unwrap().lsn, 2);
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("2"));
}
