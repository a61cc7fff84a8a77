use std::sync::Arc;

use super::*;

/// A clock over a hand wall, and the durable lease beside it, as a store
/// keeps them.
pub(super) struct Test {
    pub(super) wall: Arc<HandWall>,
    pub(super) clock: Clock,
    pub(super) lease: Second,
    pub(super) anchor: Anchor,
}

impl Test {
    /// A new store at `second`.
    pub(super) fn at(second: Second) -> Self {
        let wall = Arc::new(HandWall::at(second));
        let clock = Clock::new(wall.clone());
        let mut test = Test { wall, clock, lease: 0, anchor: Anchor::default() };
        test.restart();
        test
    }

    /// The process is gone; what was durable is the floor.
    pub(super) fn restart(&mut self) {
        let test = self.clock.test();
        self.clock = Clock::new(self.wall.clone());
        self.clock.opened(self.lease, test, &self.anchor);
        self.renew();
    }

    fn renew(&mut self) {
        self.lease = self.clock.next_lease();
        self.leased();
    }

    /// The lease is durable, and what is stored with it.
    fn leased(&mut self) {
        self.anchor = self.clock.anchor();
        self.clock.leased(self.lease, &self.anchor);
    }

    /// What a store does about once a second.
    pub(super) fn tick(&mut self) {
        if let Some(lease) = self.clock.lease_due() {
            self.lease = lease;
            self.leased();
        }
    }

    /// The time, after a lease if one is needed.
    pub(super) fn now(&mut self) -> Second {
        self.clock.now().unwrap_or_else(|LeaseNeeded| {
            self.renew();
            self.clock.now().unwrap()
        })
    }

    fn now_at(&mut self, wall: Second) -> Second {
        self.wall.set(wall);
        self.now()
    }

    pub(super) fn step(&mut self, step: Step) -> Result<Second, Refused> {
        if step == Step::Accept {
            self.clock.accept()?;
        }
        let now = self.now();
        let test = self.clock.after(step, now)?;
        self.lease = self.clock.lease_after(test);
        self.leased();
        self.clock.moved(test);
        Ok(self.now())
    }
}

#[test]
fn time_follows_the_wall() {
    let mut test = Test::at(1000);
    assert_eq!(test.now(), 1000);
    assert_eq!(test.now_at(1001), 1001);
    assert_eq!(test.now_at(9000), 9000);
}

#[test]
fn a_backward_step_stops_time_until_the_wall_catches_up() {
    let mut test = Test::at(1000);
    assert_eq!(test.now(), 1000);
    assert_eq!(test.now_at(500), 1000);
    assert_eq!(test.now_at(999), 1000);
    assert_eq!(test.now_at(1001), 1001);
}

#[test]
fn no_time_past_the_ceiling_is_handed_out_before_a_later_lease() {
    let mut test = Test::at(1000);
    assert_eq!(test.lease, 1003);
    test.wall.set(1003);
    assert_eq!(test.clock.now(), Ok(1003));
    test.wall.set(1004);
    assert_eq!(test.clock.now(), Err(LeaseNeeded));
    test.renew();
    assert_eq!((test.lease, test.clock.now()), (1007, Ok(1004)));
}

#[test]
fn a_restart_starts_at_the_lease_and_leases_do_not_pile_up() {
    let mut test = Test::at(1000);
    test.now();
    for _ in 0..5 {
        test.restart();
        assert_eq!((test.now(), test.lease), (1003, 1003));
    }
    test.wall.set(1002);
    test.restart();
    assert_eq!((test.now(), test.lease), (1003, 1005));
}

#[test]
fn a_restart_with_an_older_wall_keeps_the_time() {
    let mut test = Test::at(1000);
    test.now();
    test.wall.set(10);
    test.restart();
    assert_eq!((test.now(), test.lease), (1003, 1003));
}

#[test]
fn a_clean_stop_leaves_the_exact_time() {
    let mut test = Test::at(1000);
    test.now();
    test.lease = test.clock.stop();
    assert_eq!(test.lease, 1000);
    test.wall.set(1001);
    assert_eq!(test.clock.now(), Err(LeaseNeeded));
    test.restart();
    assert_eq!(test.now(), 1001);
}

#[test]
fn time_stands_at_a_group_in_flight() {
    let mut test = Test::at(1000);
    assert_eq!(test.clock.begin(), 1000);
    test.wall.set(1002);
    assert_eq!(test.clock.now(), Ok(1000));
    test.wall.set(5000);
    assert_eq!(test.clock.now(), Ok(1000));
    test.clock.published();
    assert_eq!(test.now(), 5000);
}

#[test]
fn a_group_past_the_ceiling_is_seen_only_with_its_lease() {
    let mut test = Test::at(1000);
    test.now();
    test.wall.set(1500);
    assert_eq!(test.clock.begin(), 1500);
    assert!(test.clock.group_needs_lease());
    assert_eq!(test.clock.now(), Ok(1003));
    test.renew();
    assert_eq!(test.lease, 1503);
    assert_eq!(test.clock.now(), Ok(1500));
    test.clock.published();
    assert_eq!(test.clock.now(), Ok(1500));
}

#[test]
fn an_abandoned_group_leaves_no_time() {
    let mut test = Test::at(1000);
    test.now();
    test.wall.set(1500);
    test.clock.begin();
    test.clock.abandoned();
    test.wall.set(1001);
    assert_eq!(test.now(), 1001);
}

#[test]
fn a_lease_is_due_shortly_before_its_end_if_somebody_asked() {
    let mut test = Test::at(1000);
    test.wall.set(1002);
    assert_eq!(test.clock.lease_due(), None);
    test.now();
    assert_eq!(test.clock.lease_due(), Some(1005));
    test.renew();
    assert_eq!(test.clock.lease_due(), None);
    test.wall.set(1003);
    test.now();
    assert_eq!(test.clock.lease_due(), None);
    test.wall.set(10_000);
    assert_eq!(test.clock.lease_due(), Some(10_003));
}

#[test]
fn the_test_clock_moves_ahead_only() {
    let mut test = Test::at(1000);
    assert_eq!(test.step(Step::Advance(50)), Ok(1050));
    assert_eq!(test.step(Step::To(1049)), Err(Refused::Backwards { now: 1050 }));
    assert_eq!(test.step(Step::To(1050)), Ok(1050));
    assert_eq!(test.step(Step::To(2000)), Ok(2000));
    assert_eq!(test.now_at(1001), 2001);
}

#[test]
fn moving_does_not_change_whether_the_clock_runs() {
    let mut test = Test::at(1000);
    test.step(Step::Freeze).unwrap();
    for (step, shown) in [(Step::Advance(5), 1005), (Step::To(1010), 1010)] {
        assert_eq!(test.step(step), Ok(shown));
        assert!(test.clock.reading(shown).frozen);
    }
    assert_eq!(test.now_at(9000), 1010);
    test.step(Step::Run).unwrap();
    test.step(Step::Advance(5)).unwrap();
    assert!(!test.clock.reading(0).frozen);
}

#[test]
fn the_offset_is_what_the_clock_is_ahead_of_the_wall() {
    let mut test = Test::at(1000);
    let offset = |test: &mut Test| test.clock.reading(0).offset_seconds;
    assert_eq!(offset(&mut test), 0);
    test.step(Step::Advance(100)).unwrap();
    assert_eq!(offset(&mut test), 100);
    test.step(Step::Freeze).unwrap();
    test.wall.set(1030);
    assert_eq!(offset(&mut test), 70);
    test.step(Step::Run).unwrap();
    assert_eq!((offset(&mut test), test.now()), (70, 1100));
    test.wall.set(1031);
    assert_eq!((offset(&mut test), test.now()), (70, 1101));
}

#[test]
fn a_clock_that_stood_long_runs_behind_the_wall() {
    let mut test = Test::at(1000);
    test.step(Step::Freeze).unwrap();
    test.wall.set(5000);
    assert_eq!(test.step(Step::Run), Ok(1000));
    assert_eq!(test.clock.reading(1000).offset_seconds, 0);
    assert_eq!(test.now_at(5001), 1001);
}

#[test]
fn a_frozen_clock_stands_still_over_a_crash() {
    let mut test = Test::at(1000);
    test.step(Step::Freeze).unwrap();
    assert_eq!(test.lease, 1000);
    for _ in 0..3 {
        test.wall.set(test.wall.seconds() + 100);
        test.restart();
        assert_eq!(test.now(), 1000);
    }
}

#[test]
fn nobody_sees_a_time_past_a_freeze_that_is_on_its_way() {
    let mut test = Test::at(1000);
    test.now();
    let frozen = test.clock.after(Step::Freeze, 1000).unwrap();
    let lease = test.clock.lease_after(frozen);
    assert_eq!(lease, 1000);
    // Not durable yet, so the clock runs, but not past the lease to come.
    test.wall.set(1001);
    assert_eq!(test.clock.now(), Err(LeaseNeeded));
    test.clock.leased(lease, &Anchor::default());
    test.clock.moved(frozen);
    assert_eq!(test.clock.now(), Ok(1000));
}

#[test]
fn the_end_of_time_is_not_passed() {
    let mut test = Test::at(1000);
    assert_eq!(test.step(Step::Advance(u64::MAX)), Err(Refused::TooFar));
    assert_eq!(test.step(Step::To(LAST_SECOND + 1)), Err(Refused::TooFar));
    assert_eq!(test.step(Step::To(LAST_SECOND)), Ok(LAST_SECOND));
    assert_eq!(test.step(Step::Advance(1)), Err(Refused::TooFar));
}

#[test]
fn a_clock_that_runs_stands_still_at_the_end_of_time() {
    // Moved there by hand, and where the system's clock says so.
    let mut moved = Test::at(1000);
    assert_eq!(moved.step(Step::To(LAST_SECOND - 1)), Ok(LAST_SECOND - 1));
    for mut test in [moved, Test::at(LAST_SECOND - 1)] {
        assert!(test.lease <= LAST_SECOND);
        for _ in 0..3 {
            test.wall.pass(1);
            assert_eq!(test.clock.begin(), LAST_SECOND);
            test.clock.abandoned();
            assert_eq!(test.now(), LAST_SECOND);
            assert_eq!(test.clock.glance(), LAST_SECOND);
            assert_eq!(test.lease, LAST_SECOND);
            assert_eq!(test.clock.lease_due(), None);
        }
        test.restart();
        assert_eq!(test.now(), LAST_SECOND);
    }
}
