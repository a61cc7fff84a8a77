//! Clocks that are wrong for long, beside an operator who does what the log says.

use super::*;

/// What happens to a machine whose clock may be wrong, and to its server.
#[derive(Clone, Copy, Debug)]
enum Life {
    /// The server runs for so long.
    Runs(u64),
    /// Somebody sets the clock wrong, by so much against the true time.
    SetWrong(i64),
    /// Somebody sets it right.
    SetRight,
    /// The server is killed, and started so much later; the clock may have been
    /// set meanwhile.
    Killed(u64, Option<i64>),
    /// The machine is started so much later, and its clock is then wrong by so
    /// much.
    Rebooted(u64, i64),
}

/// A machine, the true time, and an operator who does what the log says.
struct Machine {
    test: Test,
    truth: Second,
    /// How long the server has run with a wrong clock that it has told of.
    told_for: u64,
    /// Whether the operator stops the server to set the clock.
    stops_first: bool,
}

impl Machine {
    fn new() -> Self {
        let mut test = Test::at(START);
        test.now();
        Machine { test, truth: START, told_for: 0, stops_first: false }
    }

    fn lives(&mut self, life: Life) {
        match life {
            Life::Runs(seconds) => self.runs(seconds),
            Life::SetWrong(error) => self.set(error),
            Life::SetRight => self.set(0),
            Life::Killed(seconds, error) => {
                self.truth += seconds;
                self.test.wall.pass(seconds);
                if let Some(error) = error {
                    self.set(error);
                }
                self.test.restart();
                self.told_for = 0;
            }
            Life::Rebooted(seconds, error) => {
                self.truth += seconds;
                self.test.wall.reboot(self.truth.saturating_add_signed(error));
                self.test.restart();
                self.told_for = 0;
            }
        }
    }

    /// The server runs, and looks every few minutes. The operator acts before the
    /// ten minutes are over that the log gives.
    fn runs(&mut self, seconds: u64) {
        for seconds in
            std::iter::repeat_n(200, usize::try_from(seconds / 200).unwrap()).chain([seconds % 200])
        {
            let reading = self.test.reading();
            let is_told = reading.held || reading.purge_hold.is_some();
            if is_told && self.test.wall.seconds() > self.truth {
                if self.told_for + seconds >= DOUBT_SECONDS {
                    let stop = Life::Killed(1, Some(0));
                    self.lives(if self.stops_first { stop } else { Life::SetRight });
                }
                self.told_for += seconds;
            } else {
                self.told_for = 0;
            }
            self.truth += seconds;
            self.test.wall.pass(seconds);
            self.test.tick();
        }
    }

    fn set(&mut self, error: i64) {
        let second = self.truth.saturating_add_signed(error);
        if self.test.wall.seconds() != second {
            self.test.wall.jump(second);
            self.told_for = 0;
        }
    }

    /// What the purge would remove now was dead by the true time, but for what a
    /// clock may be wrong without anybody's knowing.
    fn removes_only_the_dead(&mut self) -> Result<(), String> {
        let reading = self.test.reading();
        let wrong = reading.now.saturating_sub(self.truth);
        if reading.purge_hold.is_none() && wrong > JUMP_SECONDS + LEASE_SECONDS {
            return Err(format!("the purge goes on {wrong} seconds ahead: {reading:?}"));
        }
        Ok(())
    }
}

/// Clocks are wrong by more than anybody would overlook.
fn error() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), Just(8 * 86_400), 200..100_000_i64, -100_000..-200_i64]
}

fn life() -> impl Strategy<Value = Life> {
    prop_oneof![
        5 => (0_u64..2000).prop_map(Life::Runs),
        1 => Just(Life::Runs(100_000)),
        2 => error().prop_map(Life::SetWrong),
        1 => Just(Life::SetRight),
        2 => (0_u64..1000, prop::option::of(error())).prop_map(|(s, e)| Life::Killed(s, e)),
        2 => (0_u64..1000, error()).prop_map(|(s, e)| Life::Rebooted(s, e)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever happens to clocks, machines and servers: while an operator does
    /// what the log says, nothing is removed by a clock that was wrong, time does
    /// not fall, and once the clock is right for long enough all is as it was.
    #[test]
    fn nothing_is_removed_by_a_clock_that_turns_out_wrong(
        lives in prop::collection::vec((life(), any::<bool>()), 1..40),
        stops_first in any::<bool>(),
    ) {
        let mut machine = Machine { stops_first, ..Machine::new() };
        let mut now = machine.test.now();
        for (life, ticks) in lives {
            machine.lives(life);
            prop_assert_eq!(machine.removes_only_the_dead(), Ok(()), "{:?}", life);
            prop_assert!(machine.test.now() >= now);
            now = machine.test.now();
            if ticks {
                machine.test.tick();
                prop_assert_eq!(machine.removes_only_the_dead(), Ok(()), "{:?}, later", life);
            }
        }
        machine.lives(Life::SetRight);
        machine.runs(now.saturating_sub(machine.truth) + 3 * DOUBT_SECONDS);
        let reading = machine.test.reading();
        prop_assert_eq!(reading.now, machine.truth);
        prop_assert_eq!((reading.held, reading.purge_hold), (false, None));
    }
}
