//! Random histories against an oracle that knows only "once dead, dead for
//! ever".
//!
//! A history is a list of steps, made from a seed: writes that wait and are
//! committed later, changes of the default, a wall clock that moves in both
//! directions, purges, restarts, crashes. After each step reads, lists, counts
//! and figures must be what the oracle says. The engine may purge, restart and
//! be killed whenever it likes; a client must not be able to tell.
//!
//! A failure prints its seed, and the history without the steps that it does
//! not need. `cargo xtask model --histories N --seed S` plays as many as you
//! like, from any seed on.

mod feeds;
mod figures;
mod oracle;
mod play;
mod steps;

use self::steps::History;
use super::seeds::{Seeds, attempt};

/// How often a failing history is played to make it shorter, at most.
const REPLAYS_MAX: usize = 2000;

/// How many histories are told of in one line of progress.
const PROGRESS: u64 = 1000;

/// Where a history is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Memory,
    Disk,
    /// In memory, behind what looks like a network.
    Afar,
}

#[test]
fn histories_in_memory() {
    play_all("DAYFLY_MODEL_HISTORIES", 2000, Stage::Memory);
}

#[test]
fn histories_on_disk() {
    play_all("DAYFLY_MODEL_DISK_HISTORIES", 100, Stage::Disk);
}

#[test]
fn histories_from_afar() {
    play_all("DAYFLY_MODEL_FAR_HISTORIES", 100, Stage::Afar);
}

/// Plays as many histories as the variable says, on all cores.
fn play_all(count: &'static str, usual: u64, stage: Stage) {
    let first = "DAYFLY_MODEL_SEED";
    let seeds = Seeds { count, usual, first, each: 1, what: "histories", progress: PROGRESS };
    let Some((seed, why)) = seeds.play(|seed| play::play(&History::of(seed, stage))) else {
        return;
    };
    let (shorter, told) = shrink(History::of(seed, stage), why);
    let option = if stage == Stage::Disk { " --disk" } else { "" };
    panic!(
        "{told}\n{shorter}The whole history, {stage:?}: cargo xtask model --histories 1 --seed \
         {seed}{option}"
    );
}

/// Leaves out steps, many at once and then one by one, as long as what is left
/// fails too.
fn shrink(mut history: History, mut why: String) -> (History, String) {
    let mut replays = 0;
    let mut size = history.steps.len() / 2;
    while size > 0 {
        let mut start = 0;
        let mut shorter = false;
        while start < history.steps.len() && replays < REPLAYS_MAX {
            let mut candidate = history.clone();
            candidate.steps.drain(start..(start + size).min(history.steps.len()));
            replays += 1;
            match attempt(|| play::play(&candidate)) {
                Err(reason) => {
                    (history, why) = (candidate, reason);
                    shorter = true;
                }
                Ok(()) => start += size,
            }
        }
        if !shorter || size > 1 {
            size /= 2;
        }
    }
    (history, why)
}
