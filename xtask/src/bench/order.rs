//! `order`: two builds of the server side by side, in turns.
//!
//! ```text
//! side.rs     a build with its items, filled over HTTP and compacted
//! pages.rs    lists and queries: pages from all over, hits, whole answers
//! writes.rs   durable creates, and the purge of what they made
//! trial.rs    the two ways to list that there were, on bare fjall
//! ```
//!
//! It was made for the order of creation: before, items lay under the hash of
//! their key and their id; now they lie under their number. Folders of the one
//! build are nothing to the other, so each fills its own. CPU is that of the
//! server's process; all figures are medians of rounds that take turns.

mod pages;
mod side;
mod trial;
mod writes;

use std::path::Path;

use self::side::{Build, Pair};
use super::query::words;
use super::read::{ROUND, ROUNDS, Requests, read, read_some};
use super::report::{Bar, Report};
use super::{Bench, median};
use crate::Result;

/// How many items the largest container has at least, and the smaller one always.
pub(super) const ITEMS_MIN: u64 = 10_000;

pub(super) const NEEDS_BEFORE: &str = "`order` compares two builds: build an older commit in a \
    worktree of its own with `cargo build --release -p dayfly`, and name its program with \
    --before PATH";

/// A point read costs at most this much of what it did.
const READ_BAR: f64 = 1.0 / 0.97;

/// In how many parts all items are read for the first time.
const FIRST_ROUNDS: u64 = 5;

const MEBIBYTE: f64 = 1024.0 * 1024.0;

pub(super) fn run(bench: &Bench, before: Option<&Path>, items: u64) -> Result<Report> {
    let before = before.ok_or(NEEDS_BEFORE)?;
    let builds = [Build::new("before", before), Build::new("now", &bench.program)];
    let mut report = Report::with_arguments("order", " --before PATH");
    let few = Pair::new(bench, &builds, ITEMS_MIN)?;
    let many = Pair::new(bench, &builds, items)?;
    for pair in [&few, &many] {
        reads(pair, &mut report)?;
    }
    pages::run(&few, &many, &mut report)?;
    sizes(&many, &mut report)?;
    drop((few, many));
    writes::run(bench, &builds, items, &mut report)?;
    trial::run(bench, [ITEMS_MIN, items], &mut report)?;
    Ok(report)
}

/// Point reads: of items that were not read yet, then again and again.
fn reads(pair: &Pair, report: &mut Report) -> Result<()> {
    let many = words(pair.data.count);
    let requests = pair.reads()?;
    let part = requests.len() / usize::try_from(FIRST_ROUNDS).unwrap_or(1);
    let what = format!("a first read, {many} items");
    let first = in_turns(&what, FIRST_ROUNDS, &pair.sides, |side, round| {
        let start = usize::try_from(round - 1).unwrap_or(0) * part;
        let before = side.server.cpu()?;
        read_some(&side.server, &requests, start..start + part)?;
        Ok(side.server.cpu_since(before)?.as_secs_f64() * 1e6 / part as f64)
    })?;
    tell(report, &what, first, "us", None);
    let what = format!("a point read, {many} items");
    let again = again(pair, &what, &requests)?;
    tell(report, &what, again, "us", Some(Bar::AtMost(READ_BAR)));
    Ok(())
}

fn again(pair: &Pair, what: &str, requests: &Requests) -> Result<[f64; 2]> {
    in_turns(what, ROUNDS, &pair.sides, |side, round| {
        read(&side.server, requests, ROUND, round).map(|(cpu, _)| cpu)
    })
}

/// What the items take on the disk, and what it all took in memory.
fn sizes(pair: &Pair, report: &mut Report) -> Result<()> {
    let many = words(pair.data.count);
    let [before, now] = &pair.sides;
    let disk = [before.disk_bytes, now.disk_bytes].map(|bytes| bytes as f64 / MEBIBYTE);
    tell(report, &format!("on the disk, {many} items, compacted"), disk, "MiB", None);
    let memory = [before.server.rss_peak_bytes()?, now.server.rss_peak_bytes()?];
    let memory = memory.map(|bytes| bytes as f64 / MEBIBYTE);
    tell(report, &format!("most memory, {many} items"), memory, "MiB", None);
    Ok(())
}

/// Measures all sides in turns. Returns the medians.
fn in_turns<S, const N: usize>(
    what: &str,
    rounds: u64,
    sides: &[S; N],
    mut measure: impl FnMut(&S, u64) -> Result<f64>,
) -> Result<[f64; N]> {
    let mut measured = [const { Vec::new() }; N];
    for round in 1..=rounds {
        let mut told = Vec::new();
        for (side, measured) in sides.iter().zip(&mut measured) {
            let value = measure(side, round)?;
            told.push(shown(value));
            measured.push(value);
        }
        println!("order, round {round}: {what}: {}", told.join(", "));
    }
    Ok(measured.map(median))
}

/// Puts both figures and their ratio into the report.
fn tell(report: &mut Report, what: &str, measured: [f64; 2], unit: &str, bar: Option<Bar>) {
    let [before, now] = measured;
    let both = format!("{}, {} {unit}", shown(before), shown(now));
    report.note(format!("{what}: before, now"), both);
    let (what, ratio) = (format!("{what}: ratio"), now / before);
    match bar {
        Some(bar) => report.judge(what, ratio, "", bar),
        None => report.note(what, format!("{ratio:.2}")),
    }
}

/// A figure, with as many digits as it deserves.
fn shown(value: f64) -> String {
    if value < 100.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}
