//! What becomes of a wall clock that nothing explains.

mod operator;

use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::Once;

use proptest::prelude::*;
use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata};

use super::tests::Test;
use super::*;

const YEAR: u64 = 365 * 24 * 60 * 60;
const DAY: u64 = 24 * 60 * 60;
const START: Second = 1_000_000;
const WEEK: u64 = AWAY_SECONDS;

/// What happens between two looks.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// Both clocks run for this long.
    Pass(u64),
    /// The wall clock alone goes ahead.
    Ahead(u64),
    /// The wall clock alone goes back.
    Back(u64),
    /// A step by hand.
    By(Step),
    /// The process is killed, and started so much later.
    Down(u64),
    /// The machine is started again so much later, by its wall clock.
    Reboot(u64),
}
use Happens::{Ahead, Back, By, Down, Pass, Reboot};

impl Test {
    fn happens(&mut self, what: Happens) {
        match what {
            Pass(seconds) => self.wall.pass(seconds),
            Ahead(seconds) => self.wall.jump(self.wall.seconds() + seconds),
            Back(seconds) => self.wall.jump(self.wall.seconds().saturating_sub(seconds)),
            By(step) => assert!(self.step(step).is_ok(), "{step:?}"),
            Down(seconds) => {
                self.wall.pass(seconds);
                self.restart();
            }
            Reboot(seconds) => {
                self.wall.reboot(self.wall.seconds() + seconds);
                self.restart();
            }
        }
    }

    fn purge_is_held(&mut self) -> bool {
        self.reading().purge_hold.is_some()
    }

    fn reading(&mut self) -> Reading {
        let now = self.now();
        self.clock.reading(now)
    }
}

/// Plays what happens from [`START`] on. After each line the time is so far
/// past that, and a jump is held or not.
fn check(lines: &[(Happens, u64, bool)]) {
    let mut test = Test::at(START);
    assert_eq!(test.now(), START);
    for (number, (what, passed, held)) in (1..).zip(lines) {
        test.happens(*what);
        let reading = test.reading();
        let seen = (reading.now - START, reading.held);
        assert_eq!(seen, (*passed, *held), "line {number}: {what:?}");
        assert!(test.lease <= reading.now + LEASE_SECONDS, "line {number}: the lease is ahead");
        assert_eq!(test.clock.glance(), reading.now, "line {number}");
    }
}

#[test]
fn a_jump_of_more_than_a_minute_is_held() {
    check(&[(Ahead(60), 60, false), (Ahead(61), 60, true)]);
}

#[test]
fn time_that_has_passed_is_no_jump() {
    check(&[
        (Pass(3600), 3600, false),
        (Pass(YEAR), 3600 + YEAR, false),
        (Pass(1), 3601 + YEAR, false),
    ]);
}

#[test]
fn a_held_clock_goes_on_at_the_pace_of_real_time() {
    check(&[
        (Ahead(YEAR), 0, true),
        (Pass(1), 1, true),
        (Pass(100), 101, true),
        (Pass(300), 401, true),
    ]);
}

#[test]
fn a_jump_that_comes_back_has_done_nothing() {
    check(&[
        (Ahead(YEAR), 0, true),
        (Pass(5), 5, true),
        (Back(YEAR), 5, false),
        (Pass(1), 6, false),
        // Not quite to where it should be, but near.
        (Ahead(5000), 6, true),
        (Back(4950), 56, false),
        (Pass(1), 57, false),
        (Ahead(5000), 57, true),
        (Back(5030), 57, false),
        (Pass(31), 58, false),
        // Too far back: time stands still, as after any step back.
        (Ahead(5000), 58, true),
        (Back(5100), 58, false),
        (Pass(99), 58, false),
        (Pass(2), 59, false),
    ]);
}

#[test]
fn a_jump_that_stands_for_ten_minutes_is_taken_as_right() {
    check(&[
        (Ahead(5000), 0, true),
        (Pass(599), 599, true),
        (Pass(1), 5600, false),
        (Pass(1), 5601, false),
    ]);
}

#[test]
fn ten_minutes_count_from_the_last_jump() {
    check(&[
        (Ahead(5000), 0, true),
        (Pass(599), 599, true),
        (Ahead(5000), 599, true),
        (Pass(599), 1198, true),
        (Back(100), 1198, true),
        (Pass(599), 1797, true),
        (Pass(1), 11_698, false),
    ]);
}

#[test]
fn an_accepted_jump_counts_at_once() {
    check(&[
        (Ahead(5000), 0, true),
        (Pass(7), 7, true),
        (By(Step::Accept), 5007, false),
        (Pass(1), 5008, false),
        (Ahead(61), 5008, true),
    ]);
}

#[test]
fn where_nothing_is_held_there_is_nothing_to_accept() {
    let mut test = Test::at(START);
    assert_eq!(test.step(Step::Accept), Err(Refused::NothingHeld));
    test.happens(Ahead(5000));
    test.happens(Back(5000));
    assert_eq!(test.step(Step::Accept), Err(Refused::NothingHeld));
    test.happens(Ahead(5000));
    // Also when nobody has looked since.
    assert_eq!(test.step(Step::Accept), Ok(START + 5000));
    assert_eq!(test.step(Step::Accept), Err(Refused::NothingHeld));
}

#[test]
fn a_clock_that_runs_fast_never_adds_up_to_a_jump() {
    let mut test = Test::at(START);
    for _ in 0..1000 {
        test.happens(Pass(1));
        test.happens(Ahead(1));
        assert!(!test.reading().held);
    }
    assert_eq!(test.now(), START + 2000);
}

#[test]
fn a_wall_set_back_may_return_to_where_it_was() {
    check(&[
        (Pass(100), 100, false),
        (Back(3600), 100, false),
        (Pass(300), 100, false),
        (Ahead(3600), 400, false),
        // And not further.
        (Back(3600), 400, false),
        (Pass(300), 400, false),
        (Ahead(3661), 700, true),
    ]);
}

#[test]
fn a_wall_set_back_for_good_is_the_measure_once_it_has_caught_up() {
    check(&[
        (Back(3600), 0, false),
        (Pass(3600), 0, false),
        (Pass(1), 1, false),
        (Ahead(3600), 1, true),
    ]);
}

#[test]
fn moving_the_test_clock_is_no_jump() {
    check(&[
        (By(Step::Advance(YEAR)), YEAR, false),
        (By(Step::To(START + 2 * YEAR)), 2 * YEAR, false),
        // The wall below it is watched all the same.
        (Ahead(5000), 2 * YEAR, true),
        (Pass(1), 2 * YEAR + 1, true),
        (By(Step::Advance(10)), 2 * YEAR + 11, true),
        (Back(5000), 2 * YEAR + 11, false),
        (Pass(1), 2 * YEAR + 12, false),
    ]);
}

#[test]
fn a_frozen_test_clock_stands_through_a_jump() {
    check(&[
        (By(Step::Freeze), 0, false),
        (Ahead(5000), 0, true),
        (Pass(300), 0, true),
        (Pass(300), 0, false),
        (By(Step::Run), 0, false),
        (Pass(1), 1, false),
    ]);
}

#[test]
fn jumps_are_counted() {
    let mut test = Test::at(START);
    for (what, jumps) in [
        (Ahead(60), 0),
        (Ahead(5000), 1),
        (Pass(10), 1),
        (Ahead(5000), 2),
        (Back(10_000), 2),
        (Ahead(5000), 3),
        (Pass(600), 3),
    ] {
        test.happens(what);
        assert_eq!(test.reading().jumps, jumps, "{what:?}");
    }
}

#[test]
fn how_far_the_wall_is_behind_is_known() {
    let mut test = Test::at(START);
    test.now();
    for (what, behind) in [
        (Pass(1), 0),
        (Back(100), 100),
        (Pass(99), 1),
        (Pass(1), 0),
        (Ahead(5000), 0),
        (By(Step::Freeze), 0),
        (Back(6000), 0),
    ] {
        test.happens(what);
        assert_eq!(test.reading().behind_seconds, behind, "{what:?}");
    }
}

#[test]
fn a_group_has_the_held_time_and_a_held_lease() {
    let mut test = Test::at(START);
    test.now();
    test.happens(Ahead(YEAR));
    assert_eq!(test.clock.begin(), START);
    assert!(!test.clock.group_needs_lease());
    assert!(test.clock.next_lease() <= START + 3);
    test.happens(Pass(10));
    test.clock.abandoned();
    assert_eq!(test.clock.begin(), START + 10);
    assert_eq!(test.clock.next_lease(), START + 13);
}

#[test]
fn a_tick_sees_the_jump_when_nobody_asks() {
    let mut test = Test::at(START);
    test.happens(Ahead(5000));
    test.tick();
    test.happens(Pass(600));
    // Ten minutes since the tick, not since somebody asked.
    assert_eq!(test.reading().now, START + 5600);
}

#[test]
fn a_doubt_is_stored_once_when_it_comes_and_once_when_it_goes() {
    let mut test = Test::at(START);
    test.now();
    let doubts = |test: &Test| (test.anchor.doubt.jump, test.anchor.doubt.purge);
    for (what, stored) in [
        (Ahead(5000), (true, true)),
        (Pass(1), (true, true)),
        (Back(5000), (false, true)),
        (Pass(600), (false, false)),
        (Back(100), (false, true)),
        (Pass(600), (false, false)),
    ] {
        test.happens(what);
        test.tick();
        assert_eq!(doubts(&test), stored, "{what:?}");
        assert_eq!(test.clock.lease_due(), None, "{what:?}: it is stored again");
    }
}

/// After another boot with the wall this far past the last stored time: whether
/// the purge is held.
#[test]
fn a_wall_ahead_after_another_boot_is_believed_but_holds_the_purge() {
    for (away, held) in [(0, false), (60, false), (61, true), (WEEK, true), (YEAR, true)] {
        let mut test = Test::at(START);
        test.now();
        test.wall.reboot(test.lease + away);
        test.restart();
        let reading = test.reading();
        assert_eq!(reading.now, START + 3 + away, "{away}");
        assert_eq!(reading.purge_hold.is_some(), held, "{away}");
        assert!(!reading.held);
    }
}

#[test]
fn in_the_same_boot_the_time_that_the_process_was_gone_is_explained() {
    for away in [0, 61, WEEK, YEAR] {
        let mut test = Test::at(START);
        test.now();
        test.happens(Down(away));
        assert_eq!(test.reading().now, START + away.max(LEASE_SECONDS));
        assert!(!test.reading().held);
        assert!(!test.purge_is_held(), "{away}");
    }
}

/// The wall jumps while the process is gone, and while a jump is held the
/// process is killed: the same as if it had run.
#[test]
fn in_the_same_boot_a_jump_over_a_restart_is_held() {
    for what in [[Ahead(7200), Down(0)], [Down(5), Ahead(7200)], [Ahead(7200), Pass(500)]] {
        let mut test = Test::at(START);
        test.now();
        for what in what {
            test.happens(what);
            test.tick();
        }
        for _ in 0..3 {
            test.happens(Down(10));
            let reading = test.reading();
            assert!(reading.held, "{what:?}");
            assert!(reading.now < START + 600, "{what:?}: {reading:?}");
        }
        // A person has the ten minutes while the server runs.
        test.happens(Pass(599));
        assert!(test.reading().held, "{what:?}");
        test.happens(Back(7200));
        assert!(!test.reading().held, "{what:?}");
        assert!(test.now() <= START + 1200, "{what:?}");
        assert!(test.purge_is_held(), "{what:?}");
        test.happens(Pass(600));
        assert!(!test.purge_is_held(), "{what:?}");
    }
}

#[test]
fn a_boot_clock_that_fell_is_another_boot() {
    let mut test = Test::at(START);
    test.happens(Pass(5000));
    test.now();
    let anchor = Anchor { boot_id: Some(2), ..test.anchor };
    test.wall.reboot(START + 5000 + 100);
    test.anchor = anchor;
    test.restart();
    assert!(test.purge_is_held());
}

/// Found by an attack: start with a clock that is days ahead, stop as the log
/// says, set the clock right, start. Everything was removed within seconds.
#[test]
fn what_a_wrong_clock_hid_is_not_removed_when_the_clock_was_set_right() {
    for stops in [false, true] {
        let mut test = Test::at(START);
        test.now();
        test.happens(Reboot(8 * DAY));
        assert_eq!(test.now(), START + 8 * DAY);
        assert!(test.purge_is_held());
        test.happens(Back(8 * DAY));
        test.tick();
        if stops {
            test.happens(Down(1));
        }
        for _ in 0..7 {
            assert!(matches!(test.reading().purge_hold, Some(PurgeHold::Behind { .. })));
            let passed = test.now() - START - 8 * DAY;
            assert!(passed <= LEASE_SECONDS, "{passed}");
            test.happens(Pass(DAY));
            test.tick();
            test.happens(Down(0));
        }
        // Now the right clock says so, too.
        test.happens(Pass(DAY + 600));
        assert!(!test.purge_is_held());
    }
}

#[test]
fn what_a_person_accepts_is_removed_at_once_and_stays_accepted() {
    let mut test = Test::at(START);
    test.now();
    test.happens(Back(DAY));
    assert!(test.purge_is_held());
    let now = test.now();
    assert_eq!(test.step(Step::Accept), Ok(now));
    for what in [Pass(10), Down(10), Reboot(10)] {
        test.happens(what);
        assert!(!test.purge_is_held(), "{what:?}");
    }
    assert_eq!(test.step(Step::Accept), Err(Refused::NothingHeld));
    // Only for that time: what is handed out later is doubted again.
    test.happens(Pass(2 * DAY));
    test.now();
    test.happens(Back(DAY));
    assert!(test.purge_is_held());
}

#[test]
fn a_wall_that_was_set_back_and_returns_holds_the_purge() {
    let mut test = Test::at(START);
    test.now();
    for (what, held) in [
        (Back(5000), true),
        (Ahead(5000), true),
        (Pass(599), true),
        (Pass(1), false),
        (Back(5000), true),
        (Pass(4939), true),
        // It has caught up by itself.
        (Pass(1), false),
    ] {
        test.happens(what);
        test.tick();
        assert_eq!(test.purge_is_held(), held, "{what:?}");
    }
}

#[test]
fn a_doubt_is_open_again_after_another_boot() {
    // The start was doubted, and is at once started again.
    let mut test = Test::at(START);
    test.now();
    test.happens(Reboot(YEAR));
    test.now();
    for what in [Reboot(1), Down(1), Pass(300), Reboot(0), Pass(3), Pass(599)] {
        test.happens(what);
        assert!(test.purge_is_held(), "{what:?}");
    }
    test.happens(Pass(1));
    assert!(!test.purge_is_held());

    // A jump was held.
    let mut test = Test::at(START);
    test.now();
    test.happens(Ahead(YEAR));
    test.tick();
    for what in [Reboot(10), Reboot(10), Pass(100)] {
        test.happens(what);
        let reading = test.reading();
        assert!(reading.held && reading.now < START + 200, "{what:?}: {reading:?}");
    }
    test.happens(Pass(600));
    assert!(test.now() >= START + YEAR);
}

/// As on a machine that learns the time only after the server has started.
#[test]
fn a_wall_behind_the_stored_time_at_the_start_is_no_measure() {
    for past in [0, 60, 61, WEEK + 1] {
        let mut test = Test::at(START);
        test.now();
        test.wall.reboot(0);
        test.restart();
        for what in [Pass(10), Ahead(1000), Pass(10)] {
            test.happens(what);
            assert_eq!(test.reading().now, START + 3);
            assert!(test.purge_is_held());
        }
        test.wall.jump(START + 3 + past);
        let reading = test.reading();
        assert_eq!((reading.now, reading.held), (START + 3 + past, false), "{past}");
        assert!(reading.purge_hold.is_some(), "{past}");
        // From now on it is.
        test.happens(Ahead(61));
        assert!(test.reading().held, "{past}");
    }
}

#[test]
fn the_purge_goes_on_after_ten_minutes_or_when_told() {
    let away = || {
        let mut test = Test::at(START);
        test.wall.reboot(START + YEAR);
        test.restart();
        test
    };
    let mut test = away();
    for (what, held) in [(Pass(599), true), (Pass(1), false), (Pass(1), false)] {
        test.happens(what);
        assert_eq!(test.purge_is_held(), held, "{what:?}");
    }
    assert_eq!(test.step(Step::Accept), Err(Refused::NothingHeld));

    let mut test = away();
    assert_eq!(test.step(Step::Accept), Ok(START + YEAR));
    assert!(!test.purge_is_held());
}

#[test]
fn a_new_store_and_a_store_opened_again_hold_no_purge() {
    let mut test = Test::at(START + YEAR);
    assert!(!test.purge_is_held());
    // Behind the contract, after a failure, when nobody had asked for long.
    test.wall.pass(YEAR);
    test.clock.opened(test.lease, TestClock::default(), &test.anchor);
    assert!(!test.purge_is_held());
}

#[test]
fn a_moved_test_clock_holds_no_purge_at_the_start() {
    let mut test = Test::at(START);
    test.step(Step::Advance(YEAR)).unwrap();
    test.restart();
    assert!(!test.purge_is_held());
    test.step(Step::Freeze).unwrap();
    test.wall.set(START + 3 * YEAR);
    test.restart();
    assert!(!test.purge_is_held());
    test.wall.reboot(START + 4 * YEAR);
    test.restart();
    assert!(!test.purge_is_held());
}

#[test]
fn a_jump_below_a_moved_test_clock_is_held_after_a_restart_too() {
    check(&[
        (By(Step::Advance(YEAR)), YEAR, false),
        (Down(0), YEAR + LEASE_SECONDS, false),
        (Pass(10), YEAR + 10, false),
        (Ahead(61), YEAR + 10, true),
    ]);
}

fn anything() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => (0_u64..90).prop_map(Pass),
        1 => (0_u64..900).prop_map(Pass),
        1 => (0_u64..=60).prop_map(Ahead),
        2 => (0_u64..10_000).prop_map(Ahead),
        2 => (0_u64..10_000).prop_map(Back),
    ]
}

proptest! {
    /// Whatever the wall does, time does not fall, and does not gain more than
    /// a minute on real time in one look, unless a jump stood for ten minutes.
    #[test]
    fn time_does_not_fall_and_does_not_run_ahead(
        happenings in prop::collection::vec(anything(), 1..60),
    ) {
        let mut test = Test::at(100_000);
        let mut now = test.now();
        let mut lead = i128::from(now);
        let mut last_jump = 0;
        for what in happenings {
            let before = test.reading();
            test.happens(what);
            let boot = test.wall.look().0.boot;
            let after = test.reading();
            prop_assert!(after.now >= now, "{what:?}: {now}, then {}", after.now);
            now = after.now;
            if after.jumps > before.jumps {
                last_jump = boot;
            }
            let gained = i128::from(now) - i128::from(boot) - lead;
            let stood = before.held && !after.held && boot - last_jump >= DOUBT_SECONDS;
            prop_assert!(gained <= 60 || stood, "{what:?}: ahead by {gained}");
            lead += gained.max(0);
        }
    }
}

thread_local! {
    /// The lines that were logged on this thread.
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what is logged, each thread for itself. It is the whole process's: a
/// line that another test reaches first, on a thread without a subscriber of its
/// own, would be switched off for all.
struct Lines;

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut |_: &Field, value: &dyn Debug| {
            LINES.with_borrow_mut(|lines| lines.push(format!("{value:?}")));
        });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Looks often while all this happens. Each line of the log starts so.
fn logs(happenings: &[Happens], expected: &[&str]) {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| tracing::subscriber::set_global_default(Lines).unwrap());
    LINES.take();
    let mut test = Test::at(START);
    test.now();
    for what in happenings {
        test.happens(*what);
        for _ in 0..3 {
            test.reading();
            test.clock.lease_due();
        }
    }
    let lines = LINES.take();
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for (line, start) in lines.iter().zip(expected) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn a_person_is_told_once_of_each_thing_that_happens() {
    logs(&[Pass(YEAR), Ahead(60), Back(3), Pass(3)], &[]);
    logs(
        &[Back(100), Pass(50), Pass(50), Pass(1)],
        &["the system's clock is 100 seconds behind", "the system's clock has caught up"],
    );
    let jumped = "the system's clock jumped 5000 seconds ahead";
    logs(
        &[Ahead(5000), Pass(5), Ahead(100), Pass(5), Back(5100)],
        &[jumped, "the system's clock came back from its jump"],
    );
    logs(
        &[Ahead(5000), Pass(300), Pass(300)],
        &[jumped, "the jump of the system's clock has stood for ten minutes"],
    );
    logs(&[Ahead(5000), By(Step::Accept)], &[jumped, "the clock was accepted"]);

    let away = "the system's clock is 31536000 seconds past the last time that was stored";
    logs(&[Down(YEAR), Down(1), Reboot(WEEK)], &[]);
    logs(&[Reboot(YEAR + LEASE_SECONDS), Pass(599), Pass(1)], &[away]);
    logs(&[Reboot(YEAR + LEASE_SECONDS), By(Step::Accept)], &[away, "the clock was accepted"]);
    logs(
        &[Reboot(YEAR + LEASE_SECONDS), Down(1)],
        &[away, "the system's clock was doubted when the server was last stopped"],
    );
    logs(
        &[Back(100), By(Step::Accept)],
        &["the system's clock is 100 seconds behind", "the clock was accepted"],
    );
    logs(
        &[Back(100), Ahead(100)],
        &[
            "the system's clock is 100 seconds behind",
            "the system's clock was set back, and is again where it was",
            "the system's clock has caught up",
        ],
    );
}

#[test]
fn the_real_clocks_run_forward() {
    let (first, second) = (SystemWall.look().0, SystemWall.look().0);
    assert!(first.boot > 0 && first.boot <= second.boot);
    assert!(first.wall > 1_700_000_000);
}
