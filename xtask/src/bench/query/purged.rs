//! The first items in the order of writing, when nine of ten were purged: what
//! is gone stood before them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dayfly_engine::operation::{Condition, Operation, Replacement};
use dayfly_storage::clock::{HandWall, SystemWall, Wall as _};

use super::data::{Data, definition};
use super::side::{Side, body, container, cpu, query};
use super::words;
use crate::bench::median;
use crate::bench::report::{Bar, Report};
use crate::{Result, failed};

const ROUNDS: u64 = 5;

const PAUSE: Duration = Duration::from_millis(200);

const TEXT: &str = "SELECT TOP 10 * FROM c ORDER BY c.n";

/// At most this much of what it cost before.
const BAR: f64 = 3.0;

/// Measures before and after. Time stands still meanwhile.
pub(super) fn run(data: Data, folder: PathBuf, report: &mut Report) -> Result<()> {
    let side = Side::open(data, folder, Arc::new(HandWall::at(SystemWall.seconds())))?;
    let fresh = once(&side)?;
    let before = cost(&side)?;
    let expired = side.data.count / 10 * 9;
    expire(&side, expired)?;
    let waiting = once(&side)?;
    let purged = side.purge()?;
    if purged.abs_diff(expired) > expired / 100 {
        return Err(format!("{purged} items were purged, and not {expired}"));
    }
    quiet();
    let first = once(&side)?;
    let after = cost(&side)?;
    side.compact()?;
    let compacted = cost(&side)?;
    let (gone, many) = (words(expired), words(side.data.count));
    let us = |cost: f64| format!("{cost:.0} us");
    report.note(format!("TOP 10 of the oldest, {many} items, first time"), us(fresh));
    report.note(format!("the same, {many} items"), us(before));
    report.note(format!("the same, {gone} expired and not purged"), us(waiting));
    report.note(format!("the same, {gone} purged, first time"), us(first));
    report.note(format!("the same, {gone} purged"), us(after));
    report.note(format!("the same, {gone} purged and compacted"), us(compacted));
    report.judge("TOP 10 of the oldest: after the purge", after / before, "", Bar::AtMost(BAR));
    report.judge("the same, first time", first / fresh, "", Bar::AtMost(BAR));
    side.close().map(|_| ())
}

fn cost(side: &Side) -> Result<f64> {
    let mut costs = Vec::new();
    for round in 1..=ROUNDS {
        let cost = side.cost(|_| vec![query(&body(TEXT, None), None)])?;
        println!("query, round {round}: TOP 10 of the oldest {cost:.0} us");
        costs.push(cost);
    }
    Ok(median(costs))
}

/// Waits until the threads of fjall have written what they had to: their time
/// is none of the query's.
fn quiet() {
    loop {
        let before = cpu();
        std::thread::sleep(PAUSE);
        if cpu().saturating_sub(before) < PAUSE / 100 {
            return;
        }
    }
}

/// Asks once, to the end. In microseconds.
fn once(side: &Side) -> Result<f64> {
    let before = cpu();
    let rows = side.ask_all(&body(TEXT, None))?.rows;
    let used = cpu().saturating_sub(before);
    println!("query: TOP 10 of the oldest {used:?}");
    if rows == 10 { Ok(used.as_secs_f64() * 1e6) } else { Err(format!("{rows} rows of 10")) }
}

/// Sets a default of the age of the oldest item that is to stay.
fn expire(side: &Side, expired: u64) -> Result<()> {
    let text = "SELECT VALUE c._ts FROM c WHERE c.n = @v";
    let answered = side.ask_all(&body(text, Some(expired)))?;
    let told: serde_json::Value =
        serde_json::from_slice(&answered.body).map_err(failed("an answer"))?;
    let written = told.pointer("/Documents/0").and_then(serde_json::Value::as_u64);
    let (written, now) = written.zip(answered.now).ok_or("no item, or no time")?;
    let default = now.0.saturating_sub(written) + 1;
    let definition = definition();
    let open = definition.strip_suffix('}').unwrap_or(&definition);
    let replacement = Replacement {
        at: container(),
        definition: format!("{open},\"defaultTtl\":{default}}}").into_bytes(),
        condition: Condition::default(),
        quota: false,
        confirm_expiry: true,
    };
    side.ask(Operation::ReplaceContainer(replacement)).map(|_| ())
}
