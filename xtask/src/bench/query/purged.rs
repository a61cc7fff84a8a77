//! The first items in the order of writing, when nine of ten have expired, and
//! when those were purged: what is gone stood before them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dayfly_engine::operation::{Condition, Operation, Replacement, Showing};
use dayfly_storage::clock::{HandWall, SystemWall, Wall as _};

use super::data::{Data, definition};
use super::side::{Side, body, container, cpu, query};
use super::words;
use crate::bench::median;
use crate::bench::report::{Bar, Report};
use crate::{Result, failed};

const ROUNDS: u64 = 5;

const PAUSE: Duration = Duration::from_millis(200);

/// What rises with time: a property, and `_ts` itself.
const PATHS: [&str; 2] = ["n", "_ts"];

/// At most this much of what it cost before.
const BAR: f64 = 3.0;

/// What the query costs, by each path.
type Costs = [f64; 2];

/// Measures before and after. Time stands still meanwhile.
pub(super) fn run(data: Data, folder: PathBuf, report: &mut Report) -> Result<()> {
    let side = Side::open(data, folder, Arc::new(HandWall::at(SystemWall.seconds())))?;
    let fresh = by_each(|path| once(&side, path))?;
    let before = by_each(|path| cost(&side, path))?;
    let expired = side.data.count / 10 * 9;
    expire(&side, expired)?;
    let met = by_each(|path| once(&side, path))?;
    let waiting = by_each(|path| cost(&side, path))?;
    let purged = side.purge()?;
    if purged.abs_diff(expired) > expired / 100 {
        return Err(format!("{purged} items were purged, and not {expired}"));
    }
    quiet();
    let first = by_each(|path| once(&side, path))?;
    let after = by_each(|path| cost(&side, path))?;
    side.compact()?;
    let compacted = by_each(|path| cost(&side, path))?;
    let (gone, many) = (words(expired), words(side.data.count));
    for (place, path) in PATHS.into_iter().enumerate() {
        let of = |costs: Costs| costs.get(place).copied().unwrap_or(f64::NAN);
        let name = format!("TOP 10 of the oldest by {path}");
        for (when, costs) in [
            (format!("{many} items, first time"), fresh),
            (format!("{many} items"), before),
            (format!("{gone} expired and not purged, first time"), met),
            (format!("{gone} expired and not purged"), waiting),
            (format!("{gone} purged, first time"), first),
            (format!("{gone} purged"), after),
            (format!("{gone} purged and compacted"), compacted),
        ] {
            report.note(format!("{name}, {when}"), format!("{:.0} us", of(costs)));
        }
        for (when, costs) in [("before the purge", waiting), ("after the purge", after)] {
            let ratio = of(costs) / of(before);
            report.judge(format!("{name}: {when}"), ratio, "", Bar::AtMost(BAR));
        }
    }
    side.close().map(|_| ())
}

fn by_each(mut cost: impl FnMut(&str) -> Result<f64>) -> Result<Costs> {
    let [one, other] = PATHS.map(&mut cost);
    Ok([one?, other?])
}

fn text(path: &str) -> String {
    format!("SELECT TOP 10 * FROM c ORDER BY c.{path}")
}

fn cost(side: &Side, path: &str) -> Result<f64> {
    let mut costs = Vec::new();
    for round in 1..=ROUNDS {
        let cost = side.cost(|_| vec![query(&body(&text(path), None), None)])?;
        println!("query, round {round}: TOP 10 of the oldest by {path} {cost:.0} us");
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
fn once(side: &Side, path: &str) -> Result<f64> {
    let before = cpu();
    let rows = side.ask_all(&body(&text(path), None))?.rows;
    let used = cpu().saturating_sub(before);
    println!("query: TOP 10 of the oldest by {path} {used:?}");
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
        showing: Showing::Whole,
    };
    side.ask(Operation::ReplaceContainer(replacement)).map(|_| ())
}
