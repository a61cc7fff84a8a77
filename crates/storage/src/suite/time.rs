//! What time it is.

use super::{Bench, Check, HERE, START, draft, puts};
use crate::clock::{DOUBT_SECONDS, Reading, Refused, Step};
use crate::{Head, View};

pub(super) const CHECKS: &[Check] = &[
    now_is_not_less_than_any_head,
    time_follows_the_wall_and_never_falls,
    commits_have_rising_times,
    a_draft_past_its_time_is_drafted_again,
    the_test_clock_moves_and_freezes,
    time_does_not_go_back_by_hand,
    a_commit_has_the_test_clocks_time,
    a_tick_changes_nothing_visible,
    a_jump_is_held_for_everybody,
    a_jump_that_comes_back_leaves_nothing,
    a_jump_that_stands_is_believed,
    an_accepted_jump_is_believed_at_once,
    a_glance_sees_the_jump_too,
];

fn now_is_not_less_than_any_head(bench: &Bench) {
    for second in [START, START + 5, START - 100, START + 6] {
        bench.setup.wall.set(second);
        let stamp = bench.put(HERE, "a", "1");
        assert!(bench.snapshot().now() >= stamp.ts);
        assert_eq!(bench.snapshot().head(HERE).ts, stamp.ts);
    }
}

fn time_follows_the_wall_and_never_falls(bench: &Bench) {
    let now_at = |wall| {
        bench.setup.wall.set(wall);
        bench.snapshot().now()
    };
    assert_eq!(now_at(START), START);
    assert_eq!(now_at(START + 100), START + 100);
    assert_eq!(now_at(START - 500), START + 100);
    assert_eq!(now_at(START + 99), START + 100);
    assert_eq!(now_at(START + 101), START + 101);
}

fn commits_have_rising_times(bench: &Bench) {
    let ts_at = |wall| {
        bench.setup.wall.set(wall);
        bench.put(HERE, "a", "1").ts
    };
    assert_eq!(ts_at(START + 10), START + 10);
    assert_eq!(ts_at(START), START + 10);
    assert_eq!(ts_at(START + 50), START + 50);
}

fn a_draft_past_its_time_is_drafted_again(bench: &Bench) {
    // Holds only in the second it was drafted in; the wall moves meanwhile.
    let wall = bench.setup.wall.clone();
    let act = move |view: &View<'_>| {
        let now = view.now();
        wall.set(START + 1);
        let write = draft(move |stamp, batch| {
            batch.put(b"a".to_vec(), format!("{now} {}", stamp.ts));
        });
        Ok(write.valid_before(now + 1))
    };
    bench.submit(HERE, act).wait().unwrap();
    assert_eq!(bench.get(HERE, "a"), Some(format!("{0} {0}", START + 1)));
}

fn the_test_clock_moves_and_freezes(bench: &Bench) {
    let read = |now, frozen, offset_seconds| Reading {
        now,
        frozen,
        offset_seconds,
        held: false,
        purge_hold: None,
        jumps: 0,
        behind_seconds: 0,
    };
    let step = |step| bench.store.move_clock(step).unwrap();
    assert_eq!(bench.store.clock(), Ok(read(START, false, 0)));
    assert_eq!(step(Step::Advance(50)), read(START + 50, false, 50));
    bench.setup.wall.set(START + 1);
    assert_eq!(bench.store.clock(), Ok(read(START + 51, false, 50)));
    assert_eq!(step(Step::Freeze), read(START + 51, true, 50));
    bench.setup.wall.set(START + 11);
    assert_eq!(bench.store.clock(), Ok(read(START + 51, true, 40)));
    assert_eq!(step(Step::To(START + 90)), read(START + 90, true, 79));
    assert_eq!(step(Step::Advance(10)), read(START + 100, true, 89));
    assert_eq!(step(Step::Run), read(START + 100, false, 89));
    bench.setup.wall.set(START + 12);
    assert_eq!(bench.snapshot().now(), START + 101);
}

fn time_does_not_go_back_by_hand(bench: &Bench) {
    bench.store.move_clock(Step::To(START + 10)).unwrap();
    let refused = bench.store.move_clock(Step::To(START + 9));
    assert_eq!(refused, Err(Refused::Backwards { now: START + 10 }));
    assert_eq!(bench.store.move_clock(Step::To(START + 10)).map(|read| read.now), Ok(START + 10));
}

fn a_commit_has_the_test_clocks_time(bench: &Bench) {
    bench.store.move_clock(Step::Freeze).unwrap();
    bench.setup.wall.set(START + 1000);
    assert_eq!(bench.put(HERE, "a", "1").ts, START);
    bench.store.move_clock(Step::Advance(5000)).unwrap();
    let stamp = bench.submit(HERE, puts("a", "2")).wait().unwrap();
    assert_eq!(stamp.ts, START + 5000);
    let head = Head { lsn: 2, ts: START + 5000, ..Head::default() };
    assert_eq!(bench.snapshot().head(HERE), head);
}

fn a_jump_is_held_for_everybody(bench: &Bench) {
    bench.put(HERE, "a", "1");
    bench.setup.wall.jump(START + 100_000);
    for second in START + 1..START + 10 {
        bench.setup.wall.pass(1);
        bench.store.tick().unwrap();
        assert_eq!(bench.put(HERE, "a", "2").ts, second);
        assert_eq!(bench.snapshot().now(), second);
        let reading = bench.store.clock().unwrap();
        assert_eq!((reading.now, reading.held, reading.jumps), (second, true, 1));
        assert_eq!(bench.store.glance(), reading);
    }
}

fn a_jump_that_comes_back_leaves_nothing(bench: &Bench) {
    bench.put(HERE, "a", "1");
    bench.setup.wall.jump(START + 100_000);
    assert!(bench.store.clock().unwrap().held);
    bench.setup.wall.jump(START + 1);
    let reading = bench.store.clock().unwrap();
    assert_eq!((reading.now, reading.held, reading.behind_seconds), (START + 1, false, 0));
    assert_eq!(bench.put(HERE, "a", "2").ts, START + 1);
}

fn a_jump_that_stands_is_believed(bench: &Bench) {
    bench.snapshot();
    bench.setup.wall.jump(START + 100_000);
    bench.store.tick().unwrap();
    bench.setup.wall.pass(DOUBT_SECONDS - 1);
    assert_eq!(bench.snapshot().now(), START + DOUBT_SECONDS - 1);
    bench.setup.wall.pass(1);
    assert_eq!(bench.put(HERE, "a", "1").ts, START + 100_000 + DOUBT_SECONDS);
    assert!(!bench.store.clock().unwrap().held);
}

fn an_accepted_jump_is_believed_at_once(bench: &Bench) {
    assert_eq!(bench.store.move_clock(Step::Accept), Err(Refused::NothingHeld));
    bench.setup.wall.jump(START + 100_000);
    assert_eq!(bench.snapshot().now(), START);
    let reading = bench.store.move_clock(Step::Accept).unwrap();
    assert_eq!((reading.now, reading.held), (START + 100_000, false));
    assert_eq!(bench.put(HERE, "a", "1").ts, START + 100_000);
    assert_eq!(bench.store.move_clock(Step::Accept), Err(Refused::NothingHeld));
}

fn a_glance_sees_the_jump_too(bench: &Bench) {
    bench.setup.wall.jump(START + 100_000);
    let glance = bench.store.glance();
    assert_eq!((glance.now, glance.held, glance.jumps), (START, true, 1));
    // Ten minutes later, by the glance's own count.
    bench.setup.wall.pass(DOUBT_SECONDS);
    assert_eq!(bench.store.glance().now, START + 100_000 + DOUBT_SECONDS);
}

fn a_tick_changes_nothing_visible(bench: &Bench) {
    bench.put(HERE, "a", "1");
    let before = bench.snapshot();
    for second in 0..10 {
        bench.setup.wall.set(START + second);
        bench.store.tick().unwrap();
    }
    let after = bench.snapshot();
    assert_eq!(after.head(HERE), before.head(HERE));
    assert_eq!(after.now(), START + 9);
}
