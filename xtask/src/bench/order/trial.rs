//! A trial of the two layouts that can list in the order of creation, on bare
//! fjall: items under their names, and rows by number that lead to them; or items
//! under their numbers. The one reads a page by as many gets as there are items, the
//! other by one scan.

use fjall::PersistMode;

use super::shown;
use crate::bench::item::ITEM_BYTES;
use crate::bench::query::side::cpu;
use crate::bench::query::words;
use crate::bench::raw::{MEBIBYTE, Raw, key, name, record};
use crate::bench::report::Report;
use crate::bench::{Bench, median};
use crate::random::Random;
use crate::{Result, failed};

const ROUNDS: u64 = 5;

/// How many pages are read in a round, and how many items each has.
const PAGES: u64 = 1000;
const PAGE: usize = 100;

/// How many items are written at once.
const BATCH: u64 = 1000;

/// About what the server has for blocks of the files, where it has 24 GB.
const CACHE_BYTES: u64 = 768 * MEBIBYTE;

/// Items under their names, rows that lead to them, items under their numbers.
const BY_NAME: u8 = b'i';
const LEADS: u8 = b'r';
const BY_NUMBER: u8 = b'j';

/// Reads a page from a number on, and says how many bytes it has.
type Way = fn(&Raw, u64) -> Result<usize>;

const WAYS: [(&str, Way); 2] =
    [("by number rows and gets", by_rows_and_gets), ("by one scan", by_one_scan)];

pub(super) fn run(bench: &Bench, sizes: [u64; 2], report: &mut Report) -> Result<()> {
    for items in sizes {
        let folder = tempfile::tempdir_in(bench.folder.path()).map_err(failed("a folder"))?;
        let raw = Raw::open(&folder.path().join("fjall"), CACHE_BYTES)?;
        fill(&raw, items)?;
        let mut costs = [Vec::new(), Vec::new()];
        // The first round only fills the cache.
        for round in 0..=ROUNDS {
            for ((way, read), costs) in WAYS.into_iter().zip(&mut costs) {
                let cost = cost(&raw, items, round, read)?;
                println!("order, round {round}: a page {way}, {items} items: {cost:.0} us");
                if round > 0 {
                    costs.push(cost);
                }
            }
        }
        let costs = costs.map(median);
        let what = format!("layout trial, {} items: a page of {PAGE}", words(items));
        for ((way, _), cost) in WAYS.into_iter().zip(costs) {
            report.note(format!("{what} {way}"), format!("{} us", shown(cost)));
        }
        let [gets, scan] = costs;
        report.note(format!("{what}: scan in parts of gets"), format!("{:.2}", scan / gets));
    }
    Ok(())
}

/// Writes the rows of both layouts.
fn fill(raw: &Raw, items: u64) -> Result<()> {
    println!("order: bare fjall is filled with {items} items in both layouts");
    let mut number: u64 = 0;
    while number < items {
        let mut batch = raw.database.batch().durability(Some(PersistMode::Buffer));
        for number in number..items.min(number + BATCH) {
            let record = record(number, &raw.items.json(number, 0, ITEM_BYTES));
            let (name, place) = (name(number), number.to_be_bytes());
            batch.insert(&raw.rows, key(BY_NAME, &name), record.clone());
            batch.insert(&raw.rows, key(LEADS, &place), name);
            batch.insert(&raw.rows, key(BY_NUMBER, &place), record);
        }
        batch.commit().map_err(failed("writing"))?;
        number += BATCH;
    }
    raw.rows.rotate_memtable_and_wait().map_err(failed("writing"))?;
    raw.rows.major_compact().map_err(failed("compacting"))
}

/// The CPU of a page at a random place, in microseconds.
fn cost(raw: &Raw, items: u64, seed: u64, read: Way) -> Result<f64> {
    let mut random = Random::new(seed);
    let before = cpu();
    for _ in 0..PAGES {
        let bytes = read(raw, random.below(items - PAGE as u64))?;
        if bytes < PAGE * ITEM_BYTES {
            return Err(format!("a page of {bytes} bytes"));
        }
    }
    Ok(cpu().saturating_sub(before).as_secs_f64() * 1e6 / PAGES as f64)
}

fn by_rows_and_gets(raw: &Raw, from: u64) -> Result<usize> {
    let mut bytes = 0;
    for row in raw.rows.range(key(LEADS, &from.to_be_bytes())..).take(PAGE) {
        let name = row.value().map_err(failed("reading"))?;
        let item = raw.rows.get(key(BY_NAME, &name)).map_err(failed("reading"))?;
        bytes += item.map_or(0, |item| item.len());
    }
    Ok(bytes)
}

fn by_one_scan(raw: &Raw, from: u64) -> Result<usize> {
    let mut bytes = 0;
    for row in raw.rows.range(key(BY_NUMBER, &from.to_be_bytes())..).take(PAGE) {
        bytes += row.value().map_err(failed("reading"))?.len();
    }
    Ok(bytes)
}
