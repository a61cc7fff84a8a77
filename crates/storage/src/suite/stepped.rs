//! What must not be seen of a group that is not published yet, and what its
//! own jobs must see.

use super::{Bench, Check, HERE, Refusal, START, appends, creates, draft, keys, puts, range, text};
use crate::clock::Step;
use crate::tally::{Change, Count};
use crate::{Bucket, Direction, Error, View};

pub(super) const CHECKS: &[Check] = &[
    nobody_sees_a_group_before_it_is_published,
    time_does_not_pass_an_unpublished_commit,
    a_moved_clock_does_not_pass_an_unpublished_commit_either,
    an_accepted_jump_does_not_pass_an_unpublished_commit_either,
    a_job_sees_the_jobs_before_it,
    a_refusal_waits_for_what_it_is_judged_by,
    a_draft_that_still_holds_is_taken_as_it_is,
    a_key_written_since_the_draft_is_read_again,
    each_of_several_keys_written_since_the_draft_is_read_again,
    a_state_set_since_the_draft_is_read_again,
    a_scan_holds_while_the_bucket_stands_still,
    a_scan_in_a_group_merges_what_the_group_wrote,
    a_job_sees_what_the_jobs_before_it_counted,
    a_draft_past_its_time_is_drafted_at_the_groups_time,
    one_group_serves_all_buckets,
    riders_go_along_after_the_others,
    riders_go_alone_when_nobody_else_writes,
    a_rider_is_judged_like_any_other,
    too_many_riders_are_refused,
    a_closing_store_takes_its_riders_along,
];

fn nobody_sees_a_group_before_it_is_published(bench: &Bench) {
    let ticket = bench.submit(HERE, puts("a", "1"));
    bench.store.begin_group();
    assert_eq!(bench.get(HERE, "a"), None);
    assert_eq!(bench.snapshot().head(HERE).lsn, 0);
    assert!(bench.store.buckets().is_empty());
    bench.store.publish_group();
    assert_eq!(ticket.wait().unwrap().lsn, 1);
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("1"));
}

fn time_does_not_pass_an_unpublished_commit(bench: &Bench) {
    assert_eq!(bench.snapshot().now(), START);
    let ticket = bench.submit(HERE, puts("a", "1"));
    bench.store.begin_group();
    bench.setup.wall.set(START + 2);
    assert_eq!(bench.snapshot().now(), START);
    assert_eq!(bench.store.clock().unwrap().now, START);
    bench.setup.wall.set(START + 200);
    assert_eq!(bench.snapshot().now(), START);
    bench.store.publish_group();
    assert_eq!(ticket.wait().unwrap().ts, START);
    assert_eq!(bench.snapshot().now(), START + 200);
}

fn a_moved_clock_does_not_pass_an_unpublished_commit_either(bench: &Bench) {
    let ticket = bench.submit(HERE, puts("a", "1"));
    bench.store.begin_group();
    assert_eq!(bench.store.move_clock(Step::Advance(100)).unwrap().now, START);
    bench.store.publish_group();
    assert_eq!(ticket.wait().unwrap().ts, START);
    assert_eq!(bench.snapshot().now(), START + 100);
}

fn an_accepted_jump_does_not_pass_an_unpublished_commit_either(bench: &Bench) {
    let ticket = bench.submit(HERE, puts("a", "1"));
    bench.setup.wall.jump(START + 5000);
    bench.store.begin_group();
    assert_eq!(bench.store.move_clock(Step::Accept).unwrap().now, START);
    bench.store.publish_group();
    assert_eq!(ticket.wait().unwrap().ts, START);
    assert_eq!(bench.snapshot().now(), START + 5000);
}

fn a_job_sees_the_jobs_before_it(bench: &Bench) {
    let tickets: Vec<_> = ["x", "y", "z"].map(|more| bench.submit(HERE, appends("a", more))).into();
    bench.store.begin_group();
    bench.store.publish_group();
    let lsns: Vec<u64> = tickets.into_iter().map(|ticket| ticket.wait().unwrap().lsn).collect();
    assert_eq!(lsns, [1, 2, 3]);
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("xyz"));
    assert_eq!(bench.store.figures().redrafts, 2);
}

fn a_job_sees_what_the_jobs_before_it_counted(bench: &Bench) {
    let counts = |_: &View<'_>| {
        Ok(draft(|_, batch| {
            batch.add(b"t".to_vec(), 0, Change::More(Count { items: 1, bytes: 1 }));
        }))
    };
    let copies = |view: &View<'_>| {
        let row = view.get(b"t").map_err(Refusal::Storage)?.unwrap_or_default();
        Ok(draft(move |_, batch| batch.put(b"copy".to_vec(), row)))
    };
    let first = bench.submit(HERE, counts);
    let reader = bench.submit(HERE, copies);
    let last = bench.submit(HERE, counts);
    bench.store.begin_group();
    bench.store.publish_group();
    first.wait().unwrap();
    reader.wait().unwrap();
    last.wait().unwrap();
    let count = |key: &[u8]| {
        let row = bench.snapshot().get(HERE, key).unwrap().unwrap();
        crate::tally::Tally::decode(&row).unwrap().before(1).items
    };
    assert_eq!((count(b"copy"), count(b"t")), (1, 2));
}

fn a_refusal_waits_for_what_it_is_judged_by(bench: &Bench) {
    let first = bench.submit(HERE, creates("a", "1"));
    let second = bench.submit(HERE, creates("a", "2"));
    bench.store.begin_group();
    bench.store.publish_group();
    assert!(first.wait().is_ok());
    assert_eq!(second.wait(), Err(Refusal::Said("it is there".to_owned())));
    assert_eq!(bench.snapshot().head(HERE).lsn, 1);
}

fn a_draft_that_still_holds_is_taken_as_it_is(bench: &Bench) {
    let tickets = [
        bench.submit(HERE, appends("a", "x")),
        bench.submit(HERE, appends("b", "x")),
        bench.submit(Bucket(8), appends("a", "x")),
    ];
    bench.setup.wall.set(START + 1);
    bench.store.begin_group();
    bench.store.publish_group();
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    assert_eq!(bench.store.figures().redrafts, 0);
    assert_eq!(bench.store.figures().commits, 3);
}

fn a_key_written_since_the_draft_is_read_again(bench: &Bench) {
    let first = bench.submit(HERE, puts("a", "first"));
    bench.store.begin_group();
    // Drafted while the first is not published, so against nothing.
    let second = bench.submit(HERE, appends("a", " second"));
    let other = bench.submit(HERE, appends("b", "other"));
    bench.store.publish_group();
    first.wait().unwrap();
    bench.store.begin_group();
    bench.store.publish_group();
    second.wait().unwrap();
    other.wait().unwrap();
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("first second"));
    assert_eq!(bench.get(HERE, "b").as_deref(), Some("other"));
    assert_eq!(bench.store.figures().redrafts, 1);
}

fn each_of_several_keys_written_since_the_draft_is_read_again(bench: &Bench) {
    let joins = |view: &View<'_>| {
        let keys: [&[u8]; 4] = [b"a", b"b", b"c", b"a"];
        let values = view.get_many(&keys)?;
        let values = values.iter().map(|value| value.as_ref().map_or("-".to_owned(), text));
        let all = values.collect::<Vec<_>>().join(" ");
        Ok(draft(move |_, batch| batch.put(b"all".to_vec(), all)))
    };
    for (written, all) in
        [("b", "- 1 - -"), ("c", "- 1 1 -"), ("a", "1 1 1 1"), ("d", "1 1 1 1"), ("all", "1 1 1 1")]
    {
        let redrafts = bench.store.figures().redrafts;
        let write = bench.submit(HERE, puts(written, "1"));
        let join = bench.submit(HERE, joins);
        bench.step();
        write.wait().unwrap();
        join.wait().unwrap();
        assert_eq!(bench.get(HERE, "all").as_deref(), Some(all));
        let is_read = ["a", "b", "c"].contains(&written);
        assert_eq!(bench.store.figures().redrafts - redrafts, u64::from(is_read), "{written}");
    }
}

fn a_state_set_since_the_draft_is_read_again(bench: &Bench) {
    let sets = bench.submit(HERE, |_| Ok(draft(|_, batch| batch.set_state("new"))));
    let copies = bench.submit(HERE, |view: &View<'_>| {
        let state = view.head().state.clone();
        Ok(draft(move |_, batch| batch.put(b"a".to_vec(), state)))
    });
    bench.store.begin_group();
    bench.store.publish_group();
    sets.wait().unwrap();
    copies.wait().unwrap();
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("new"));
    assert_eq!(bench.store.figures().redrafts, 1);
}

/// A plan that writes how many keys there are.
fn counts(view: &View<'_>) -> super::Outcome {
    let count = view.scan(&range("", "z"), Direction::Forward, 100)?.len();
    Ok(draft(move |_, batch| batch.put(b"count".to_vec(), count.to_string())))
}

fn a_scan_holds_while_the_bucket_stands_still(bench: &Bench) {
    let elsewhere = bench.submit(Bucket(8), puts("a", "1"));
    let alone = bench.submit(HERE, counts);
    bench.store.begin_group();
    bench.store.publish_group();
    elsewhere.wait().unwrap();
    alone.wait().unwrap();
    assert_eq!(bench.store.figures().redrafts, 0);

    let before = bench.submit(HERE, puts("b", "1"));
    let after = bench.submit(HERE, counts);
    bench.store.begin_group();
    bench.store.publish_group();
    before.wait().unwrap();
    after.wait().unwrap();
    assert_eq!(bench.store.figures().redrafts, 1);
    assert_eq!(bench.get(HERE, "count").as_deref(), Some("2"));
}

fn a_scan_in_a_group_merges_what_the_group_wrote(bench: &Bench) {
    for key in ["b", "d", "f"] {
        let ticket = bench.submit(HERE, puts(key, "old"));
        bench.store.begin_group();
        bench.store.publish_group();
        ticket.wait().unwrap();
    }
    let changes = bench.submit(HERE, |_| {
        Ok(draft(|_, batch| {
            batch.put(b"a".to_vec(), "new");
            batch.put(b"c".to_vec(), "new");
            batch.delete(b"d".to_vec());
            batch.put(b"f".to_vec(), "new");
            batch.put(b"g".to_vec(), "new");
        }))
    });
    let lists = bench.submit(HERE, |view: &View<'_>| {
        let list = |direction, limit| view.scan(&range("", "z"), direction, limit);
        let all = list(Direction::Forward, 100)?;
        let text = [
            keys(&all),
            keys(&list(Direction::Backward, 100)?),
            keys(&list(Direction::Forward, 2)?),
            keys(&list(Direction::Backward, 3)?),
            all.iter().map(|(_, value)| super::text(value)).collect::<Vec<_>>().join(" "),
        ];
        Ok(draft(move |_, batch| batch.put(b"zz".to_vec(), text.join("|"))))
    });
    bench.store.begin_group();
    bench.store.publish_group();
    changes.wait().unwrap();
    lists.wait().unwrap();
    let expected = "a b c f g|g f c b a|a b|g f c|new old new new new";
    assert_eq!(bench.get(HERE, "zz").as_deref(), Some(expected));
}

fn a_draft_past_its_time_is_drafted_at_the_groups_time(bench: &Bench) {
    let ticket = bench.submit(HERE, |view: &View<'_>| {
        let now = view.now();
        let write = draft(move |stamp, batch| {
            batch.put(b"a".to_vec(), format!("{now} {}", stamp.ts));
        });
        Ok(write.valid_before(START + 10))
    });
    bench.setup.wall.set(START + 9);
    bench.store.begin_group();
    bench.store.publish_group();
    ticket.wait().unwrap();
    assert_eq!(bench.get(HERE, "a"), Some(format!("{START} {}", START + 9)));

    let refuses = bench.submit(HERE, |view: &View<'_>| {
        if view.now() >= START + 10 {
            return Err(Refusal::Said(format!("too late at {}", view.now())));
        }
        Ok(draft(|_, batch| batch.delete(b"a".to_vec())).valid_before(START + 10))
    });
    bench.setup.wall.set(START + 10);
    bench.store.begin_group();
    bench.store.publish_group();
    assert_eq!(refuses.wait(), Err(Refusal::Said(format!("too late at {}", START + 10))));
    assert!(bench.snapshot().now() >= START + 10);
}

fn one_group_serves_all_buckets(bench: &Bench) {
    let tickets: Vec<_> = (0..5).map(|n| bench.submit(Bucket(n), puts("a", "1"))).collect();
    let before = bench.store.figures().groups;
    bench.store.begin_group();
    bench.store.publish_group();
    for ticket in tickets {
        assert_eq!(ticket.wait().unwrap().lsn, 1);
    }
    assert_eq!(bench.store.figures().groups, before + 1);
}

fn riders_go_along_after_the_others(bench: &Bench) {
    let rider = bench.submit_rider(HERE, appends("a", "rider"));
    let other = bench.submit(HERE, appends("a", "other "));
    let before = bench.store.figures().groups;
    bench.store.begin_group();
    bench.store.publish_group();
    assert_eq!(other.wait().unwrap().lsn, 1);
    assert_eq!(rider.wait().unwrap().lsn, 2);
    assert_eq!(bench.get(HERE, "a").as_deref(), Some("other rider"));
    assert_eq!(bench.store.figures().groups, before + 1);
}

fn riders_go_alone_when_nobody_else_writes(bench: &Bench) {
    let riders =
        [bench.submit_rider(HERE, puts("a", "1")), bench.submit_rider(HERE, puts("b", "1"))];
    bench.store.begin_group();
    bench.store.publish_group();
    let lsns: Vec<u64> = riders.into_iter().map(|rider| rider.wait().unwrap().lsn).collect();
    assert_eq!(lsns, [1, 2]);
}

fn a_rider_is_judged_like_any_other(bench: &Bench) {
    let rider = bench.submit_rider(HERE, creates("a", "rider"));
    let other = bench.submit(HERE, puts("a", "other"));
    bench.store.begin_group();
    bench.store.publish_group();
    assert!(other.wait().is_ok());
    assert_eq!(rider.wait(), Err(Refusal::Said("it is there".to_owned())));
}

fn too_many_riders_are_refused(bench: &Bench) {
    let riders: Vec<_> = (0..1000).map(|_| bench.submit_rider(HERE, puts("a", "1"))).collect();
    let other = bench.submit(HERE, puts("b", "1"));
    bench.store.begin_group();
    bench.store.publish_group();
    assert!(other.wait().is_ok());
    let outcomes: Vec<_> = riders.into_iter().map(super::Ticket::wait).collect();
    let refused =
        |outcome: &Result<_, _>| matches!(outcome, Err(Refusal::Storage(Error::Unavailable(_))));
    assert!(outcomes.iter().take(100).all(Result::is_ok));
    assert!(outcomes.iter().skip(500).all(refused));
}

fn a_closing_store_takes_its_riders_along(bench: &Bench) {
    let rider = bench.submit_rider(HERE, puts("a", "1"));
    bench.store.close().unwrap();
    assert_eq!(rider.wait().unwrap().lsn, 1);
}
