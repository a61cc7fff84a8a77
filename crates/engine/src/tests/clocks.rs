//! What a wrong clock removes: nothing, as long as an operator does what the log
//! says.
//!
//! A history is a machine whose clock is set wrong and right, a server that is
//! stopped, killed and started with the machine, and items that live for some
//! while. The oracle knows the true time: what is not dead by that must be on
//! the disk. What was hidden stays hidden, whatever becomes of the clock.

use dayfly_storage::clock::{DOUBT_SECONDS, JUMP_SECONDS, LEASE_SECONDS, Wall as _};
use serde_json::json;

use super::random::Random;
use super::seeds::{Outcome, Seeds};
use super::server::{Crash, Kind, Server};
use crate::PurgeState;
use crate::operation::{ClockStep, Operation};

const DAY: i64 = 24 * 60 * 60;

#[test]
fn a_clock_that_turns_out_wrong_has_removed_nothing() {
    let seeds = Seeds {
        count: "DAYFLY_CLOCK_HISTORIES",
        usual: 300,
        first: "DAYFLY_MODEL_SEED",
        each: 1,
        what: "histories of clocks",
        progress: 1000,
    };
    if let Some((seed, why)) = seeds.play(|seed| Machine::new(seed).lives()) {
        panic!("seed {seed}: {why}");
    }
}

/// A machine with a server, and the true time.
struct Machine {
    random: Random,
    server: Server,
    truth: u64,
    /// How long the server has run with a wrong clock that it has told of.
    told_for: u64,
    /// When each item dies, by the server's time.
    ends: Vec<u64>,
    /// The greatest time that anybody was shown.
    seen: u64,
    log: Vec<String>,
}

impl Machine {
    fn new(seed: u64) -> Machine {
        let mut server = Server::new(Kind::Memory { slices: 1 });
        server.make_container(Some(-1), &[]);
        let truth = server.wall().seconds();
        Machine {
            random: Random(seed),
            server,
            truth,
            told_for: 0,
            ends: Vec::new(),
            seen: truth,
            log: Vec::new(),
        }
    }

    fn lives(mut self) -> Outcome {
        for _ in 0..30 {
            match self.random.below(10) {
                0..4 => self.runs(),
                4..6 => self.creates(),
                6..8 => {
                    let error = self.error();
                    self.set(error);
                }
                8 => self.restarts(),
                _ => self.reboots(),
            }
            self.server.engine().shared.store.tick().unwrap();
            self.server.turns();
            self.agrees().map_err(|why| format!("{why} after {:#?}", self.log))?;
        }
        Ok(())
    }

    /// By how much the clock is wrong: not at all, or by more than anybody would
    /// overlook.
    fn error(&mut self) -> i64 {
        let some = i64::try_from(self.random.below(100_000)).unwrap() + 200;
        self.random.pick(&[0, 0, 8 * DAY, some, -some])
    }

    fn set(&mut self, error: i64) {
        let second = self.truth.saturating_add_signed(error);
        self.log.push(format!("the clock is wrong by {error}"));
        if self.server.wall().seconds() != second {
            self.server.jump(second);
            self.told_for = 0;
        }
    }

    /// Time passes, and the operator acts before the ten minutes are over that
    /// the log gives.
    fn runs(&mut self) {
        let seconds = self.random.pick(&[1, 100, 300, 500]);
        let clock = self.server.engine().glance();
        let is_told = clock.held || clock.purge_hold.is_some();
        if is_told && self.server.wall().seconds() > self.truth {
            if self.told_for + seconds >= DOUBT_SECONDS {
                self.set(0);
                if self.random.chance(50) {
                    self.server.restart();
                }
            }
            self.told_for += seconds;
        }
        self.log.push(format!("runs for {seconds}"));
        self.truth += seconds;
        self.server.wall().pass(seconds);
    }

    fn creates(&mut self) {
        let ttl = self.random.pick(&[50, 1000, 20_000, 500_000]);
        let id = self.ends.len().to_string();
        let item = self.server.create(json!({"id": id, "pk": id, "ttl": ttl})).unwrap();
        let end = item["_ts"].as_u64().unwrap() + ttl;
        self.log.push(format!("item {id} lives until {end}"));
        self.ends.push(end);
    }

    fn restarts(&mut self) {
        let seconds = self.random.below(1000);
        self.log.push(format!("the server is gone for {seconds}"));
        self.truth += seconds;
        let stops = self.random.chance(50);
        if stops {
            self.server.engine().close().unwrap();
        }
        self.server.wall().pass(seconds);
        if stops {
            let error = self.error();
            self.set(error);
        }
        self.server.crash(Crash::Kill);
        self.told_for = 0;
    }

    fn reboots(&mut self) {
        let (seconds, error) = (self.random.below(1000), self.error());
        self.log.push(format!("the machine is gone for {seconds}, then wrong by {error}"));
        self.truth += seconds;
        self.server.wall().reboot(self.truth.saturating_add_signed(error));
        self.server.crash(Crash::PowerCut);
        self.told_for = 0;
    }

    fn agrees(&mut self) -> Outcome {
        let now = self.server.now().0;
        self.seen = self.seen.max(now);
        let truth = self.truth + JUMP_SECONDS + LEASE_SECONDS;
        let kept = self.ends.iter().filter(|end| **end > truth).count();
        let stored = self.server.stored_items();
        if stored < kept {
            return Err(format!("{stored} items are stored, and {kept} are not dead"));
        }
        let alive = self.ends.iter().filter(|end| **end > self.seen).count();
        let listed = self.server.listed();
        if listed != alive {
            return Err(format!("{listed} items are listed at {now}, and {alive} are alive"));
        }
        Ok(())
    }
}

/// A server that has an item with a `ttl` of an hour, and one without.
fn server() -> Server {
    let mut server = Server::new(Kind::Memory { slices: 1 });
    server.make_container(Some(-1), &[]);
    server.create(json!({"id": "hour", "pk": "x", "ttl": 3600})).unwrap();
    server.create(json!({"id": "long", "pk": "x"})).unwrap();
    server
}

/// As it was done: stop, set the clock days ahead, start; the log says that one
/// should stop, so stop, set it right, start.
#[test]
fn the_advice_of_the_log_saves_everything() {
    for same_boot in [true, false] {
        let mut server = server();
        server.engine().close().unwrap();
        if same_boot {
            server.jump(1000 + 8 * 86_400);
        } else {
            server.wall().reboot(1000 + 8 * 86_400);
        }
        server.crash(Crash::Kill);
        assert_eq!((server.turns(), server.stored_items()), (0, 2));
        server.engine().close().unwrap();
        server.jump(1020);
        server.crash(Crash::Kill);
        for _ in 0..5 {
            assert_eq!((server.turns(), server.stored_items()), (0, 2));
            server.wall().pass(700);
        }
        // In the same boot not even the time was believed. After another one,
        // nobody could know: it is hidden, and stays on the disk.
        assert_eq!(server.read("hour", "x").is_ok(), same_boot);
        assert!(server.read("long", "x").is_ok());
        if !same_boot {
            let status = server.engine().purge_status(1);
            assert_eq!(status.state, PurgeState::Held);
            assert!(status.reason.unwrap().contains("seconds behind the time"), "no reason");
            server.run(Operation::MoveClock { step: ClockStep::Accept }).unwrap();
            assert_eq!(server.turns(), 1);
        }
    }
}

/// As it was done: the clock goes two hours ahead, which is held; then the server
/// is killed and started within the ten minutes.
#[test]
fn a_kill_does_not_end_a_doubt() {
    let mut server = server();
    server.jump(1000 + 2 * 3600);
    assert!(server.engine().glance().held);
    for _ in 0..3 {
        server.wall().pass(100);
        server.crash(Crash::Kill);
        assert_eq!((server.turns(), server.listed()), (0, 2));
        assert!(server.engine().glance().held);
    }
    server.jump(1300);
    assert_eq!((server.turns(), server.listed()), (0, 2));
    assert_eq!(server.now().0, 1300);
}
