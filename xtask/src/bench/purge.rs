//! `purge`: how fast expired items go when nobody else wants anything, against
//! the storage engine removing the same keys.
//!
//! A million items that a change of the default expires at once. `purge/run`
//! removes them in units back to back. Bare fjall removes the same keys in units
//! of the same size, with the same syncs.

use std::time::{Duration, Instant};

use super::create::{Mix, raw};
use super::fill::{Written, fill_written};
use super::item::{CONTAINER, DATABASE, Items};
use super::report::{Bar, Report};
use super::ttl::with_default;
use super::{Bench, median};
use crate::Result;
use crate::server::Server;

const ITEMS: u64 = 1_000_000;
const ROUNDS: u64 = 3;
const LOOK: Duration = Duration::from_millis(50);
const DAY: u64 = 24 * 3600;

struct Round {
    per_second: f64,
    /// The rate of the second half, in parts of the first half's.
    flat: f64,
    unit: f64,
}

pub(super) fn run(bench: &Bench) -> Result<Report> {
    let (mut ours, mut theirs, mut flat, mut units) = (vec![], vec![], vec![], vec![]);
    for round in 1..=ROUNDS {
        let purged = purge(bench, round)?;
        let bare = raw(bench, Mix::Purge, ITEMS, purged.unit)?;
        println!(
            "purge, round {round}: dayfly {:.0}/s in units of {:.0}, second half at {:.2} of the \
             first, bare fjall {bare:.0}/s",
            purged.per_second, purged.unit, purged.flat
        );
        ours.push(purged.per_second);
        flat.push(purged.flat);
        units.push(purged.unit);
        theirs.push(bare);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let mut report = Report::new("purge");
    report.note("purge: dayfly", format!("{ours:.0}/s"));
    report.note("purge: bare fjall", format!("{theirs:.0}/s"));
    report.note("purge: items in a unit", format!("{:.0}", median(units)));
    report.judge("purge: ratio", ours / theirs, "", Bar::AtLeast(0.5));
    report.judge("purge: second half against the first", median(flat), "", Bar::AtLeast(0.8));
    Ok(report)
}

fn purge(bench: &Bench, round: u64) -> Result<Round> {
    let data = bench.folder.path().join(round.to_string());
    let written = Written::Since { seconds_ago: 2 * DAY, each_second: 50, is_exact: false };
    fill_written(&data, &Items::new(), ITEMS, written)?;
    let server = Server::start(&bench.program, &data)?;
    let mut client = server.connect()?;
    client.admin("POST", "purge/pause", "{}")?;
    let path = format!("/dbs/{DATABASE}/colls/{CONTAINER}");
    client.must("PUT", &path, &[], &with_default(3600))?;
    let purged = || server.metric("dayfly_ttl_purged_total");
    let groups = server.metric("dayfly_commit_groups_total")?;
    let before = purged()?;
    let started = Instant::now();
    let address = server.address;
    let call = std::thread::spawn(move || {
        crate::wire::Client::connect(address)?.admin_patiently("POST", "purge/run", "{}")
    });
    let mut half = None;
    let whole = loop {
        let gone = purged()? - before;
        if gone >= ITEMS as f64 / 2.0 && half.is_none() {
            half = Some((started.elapsed(), gone));
        }
        if gone >= ITEMS as f64 {
            break started.elapsed();
        }
        if call.is_finished() && gone < ITEMS as f64 {
            return Err(format!("the purge ended after {gone} items"));
        }
        std::thread::sleep(LOOK);
    };
    call.join().map_err(|_| "the purge call failed".to_owned())??;
    let units = server.metric("dayfly_commit_groups_total")? - groups;
    let (first, gone) = half.ok_or("there was no first half")?;
    let rate = |items: f64, time: Duration| items / time.as_secs_f64();
    let flat = rate(ITEMS as f64 - gone, whole.saturating_sub(first)) / rate(gone, first);
    let unit = ITEMS as f64 / units.max(1.0);
    Ok(Round { per_second: rate(ITEMS as f64, whole), flat, unit })
}
