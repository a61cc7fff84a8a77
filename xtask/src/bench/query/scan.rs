//! A query that has to look at every item, against a loop over the storage
//! engine that reads the same keys of the same folder, and looks up the same
//! property in each.

use std::path::Path;

use fjall::{Database, KeyspaceCreateOptions};

use super::side::{Side, body, cpu};
use super::words;
use crate::bench::median;
use crate::bench::report::{Bar, Report};
use crate::{Result, failed};

const ROUNDS: u64 = 3;

/// At least this much of the bare loop's rate.
const BAR: f64 = 0.5;

/// The items of the first container, as the storage engine has them.
const FIRST: [u8; 9] = [0, 0, 0, 0, 0, 0, 1, 0, b'i'];
const PAST: [u8; 9] = [0, 0, 0, 0, 0, 0, 1, 0, b'i' + 1];

/// Measures both in turns. The folder is open again afterwards.
pub(super) fn run(mut side: Side, report: &mut Report) -> Result<Side> {
    let count = side.data.count;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let asked = asked(&side)?;
        let (data, folder) = side.close()?;
        let looped = looped(&folder, count)?;
        side = Side::open(data, folder, std::sync::Arc::new(dayfly_storage::clock::SystemWall))?;
        println!("query, round {round}: a scan {asked:.0} items/s, a bare loop {looped:.0}/s");
        ours.push(asked);
        bare.push(looped);
    }
    let (ours, bare, many) = (median(ours), median(bare), words(count));
    report.note(format!("scan of {many} items, a second of CPU"), format!("{ours:.0} items"));
    report.note("bare loop over fjall, a second of CPU", format!("{bare:.0} items"));
    report.judge("scan: ratio", ours / bare, "", Bar::AtLeast(BAR));
    Ok(side)
}

/// How many items a query looks at in a second of CPU; it finds none.
fn asked(side: &Side) -> Result<f64> {
    let before = cpu();
    let rows = side.ask_all(&body("SELECT * FROM c WHERE c.u = -1", None))?.rows;
    let used = cpu().saturating_sub(before);
    if rows > 0 { Err(format!("{rows} rows of none")) } else { Ok(rate(side.data.count, used)) }
}

/// How many the bare loop looks at.
fn looped(folder: &Path, count: u64) -> Result<f64> {
    let database = Database::builder(folder.join("fjall")).worker_threads(1).open();
    let database = database.map_err(failed("opening fjall"))?;
    let rows = database.keyspace("rows", KeyspaceCreateOptions::default);
    let rows = rows.map_err(failed("opening fjall"))?;
    let before = cpu();
    let (mut found, mut looked_at) = (0, 0);
    for pair in rows.range(FIRST..PAST) {
        let (_, record) = pair.into_inner().map_err(failed("reading"))?;
        let text = text(&record).ok_or("a record without an item")?;
        let value =
            dayfly_model::json::property(text, "u").ok_or("an item without the property")?;
        found += u64::from(value.get() == "-1");
        looked_at += 1;
    }
    let used = cpu().saturating_sub(before);
    match (looked_at, found) {
        (looked_at, 0) if looked_at == count => Ok(rate(count, used)),
        _ => Err(format!("the loop found {found} of {looked_at} items")),
    }
}

/// The item in a record: what comes after a short head.
fn text(record: &[u8]) -> Option<&str> {
    let start = memchr::memmem::find(record, b"{\"n\":")?;
    str::from_utf8(record.get(start..)?).ok()
}

fn rate(count: u64, used: std::time::Duration) -> f64 {
    count as f64 / used.as_secs_f64()
}
