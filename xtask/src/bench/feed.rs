//! `feed`: what it costs to read changes, and to keep them.
//!
//! The whole feed of a container, page after page, against a bare scan of the same rows of
//! the feed and of the items, both in this process on one folder. A poll when nothing is new
//! against a point read, there too, and one of a key with few items from the beginning, past
//! all that others wrote. And durable creates a second of a server whose container
//! keeps every version, against one whose container does not, in turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dayfly_engine::Engine;
use dayfly_engine::operation::{
    ChangesFrom, Condition, ContainerScope, FeedMode, ItemAddress, Operation, Part, ReadChanges,
};
use dayfly_engine::reply::Success;
use dayfly_model::partition_key::{Component, PartitionKey};
use dayfly_storage::clock::SystemWall;
use dayfly_storage::{Direction, KeyRange, Store};

use super::create::{Mix, creates};
use super::fill::{fill, open};
use super::item::{CONTAINER, DATABASE, Items, definition, id, partition_key};
use super::report::{Bar, Report};
use super::{Bench, median};
use crate::random::Random;
use crate::server::Server;
use crate::{Result, failed};

const ITEMS: u64 = 200_000;
const ROUNDS: u64 = 5;
const PAGE: usize = 1000;
const CHUNK: usize = 512;
const POLLS: u64 = 50_000;
const KEYED_POLLS: u64 = 500;
const CREATES: u64 = 40_000;

pub(super) fn run(bench: &Bench) -> Result<Report> {
    let mut report = Report::new("feed");
    reads(bench, &mut report)?;
    writes(bench, &mut report)?;
    Ok(report)
}

fn reads(bench: &Bench, report: &mut Report) -> Result<()> {
    let folder = bench.folder.path().join("feed");
    fill(&folder, &Items::new(), ITEMS)?;
    let (store, engine) = open(&folder, Arc::new(SystemWall))?;
    let (mut feeds, mut scans) = (Vec::new(), Vec::new());
    let (mut polls, mut points, mut keyed) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (feed, etag) = timed(|| whole_feed(&engine))?;
        let (scan, ()) = timed(|| bare_scan(&*store))?;
        let (poll, ()) = timed(|| idle_polls(&engine, &etag))?;
        let (point, ()) = timed(|| point_reads(&engine, round))?;
        let (key, ()) = timed(|| keyed_polls(&engine, ITEMS, round))?;
        // The first round warms everything up.
        if round > 0 {
            feeds.push(ITEMS as f64 / feed.as_secs_f64());
            scans.push(ITEMS as f64 / scan.as_secs_f64());
            polls.push(poll.as_secs_f64() * 1e6 / POLLS as f64);
            points.push(point.as_secs_f64() * 1e6 / POLLS as f64);
            keyed.push(key.as_secs_f64() * 1e6 / KEYED_POLLS as f64);
        }
        println!(
            "feed, round {round}: {feed:?}, bare {scan:?}, polls {poll:?}, reads {point:?}, keys \
             {key:?}"
        );
    }
    let (feed, scan) = (median(feeds), median(scans));
    report.note("items of the feed a second, from the beginning", format!("{feed:.0}"));
    report.note("rows of the feed and of items a second, bare scan", format!("{scan:.0}"));
    report.judge("feed: ratio", feed / scan, "", Bar::AtLeast(0.5));
    let (poll, point, key) = (median(polls), median(points), median(keyed));
    report.note("a poll when nothing is new", format!("{poll:.2} us"));
    report.note("a point read", format!("{point:.2} us"));
    report.judge("poll: in point reads", poll / point, "", Bar::AtMost(1.0));
    report.note("a key of few items, from the beginning", format!("{key:.2} us"));
    report.note("the same in point reads", format!("{:.0}", key / point));
    engine.close().map_err(failed("closing"))
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let began = Instant::now();
    let done = work()?;
    Ok((began.elapsed(), done))
}

fn at() -> ContainerScope {
    ContainerScope {
        database: DATABASE.to_owned(),
        container: CONTAINER.to_owned(),
        ..ContainerScope::default()
    }
}

fn page(engine: &Engine, part: Part, from: ChangesFrom) -> Result<Success> {
    let asked = ReadChanges {
        at: at(),
        part,
        mode: FeedMode::Latest,
        from,
        since: None,
        limit: Some(PAGE),
        envelope: false,
    };
    engine.run(Operation::ReadChanges(asked)).wait().outcome.map_err(failed("reading the feed"))
}

/// Reads the feed from the beginning to its end, and says where that is.
fn whole_feed(engine: &Engine) -> Result<String> {
    let (mut from, mut items) = (ChangesFrom::Beginning, 0);
    loop {
        let page = page(engine, Part::default(), from)?;
        items += page.item_count.unwrap_or_default() as u64;
        let etag = page.etag.unwrap_or_default();
        if page.status == 304 {
            let is_all = items == ITEMS;
            return if is_all { Ok(etag) } else { Err(format!("the feed has {items} items")) };
        }
        from = ChangesFrom::After(etag);
    }
}

/// Reads the same rows, and does nothing with them.
fn bare_scan(store: &dyn Store) -> Result<()> {
    let snapshot = store.snapshot().map_err(failed("a snapshot"))?;
    let bucket = store.buckets().into_iter().max().unwrap_or(dayfly_storage::Bucket(0));
    for rows in [b"f", b"i"] {
        let (mut range, mut count) = (KeyRange::prefix(rows), 0);
        loop {
            let pairs = snapshot
                .scan(bucket, &range, Direction::Forward, CHUNK)
                .map_err(failed("scanning"))?;
            let Some((last, _)) = pairs.last() else { break };
            range.go_behind(last);
            count += std::hint::black_box(pairs.len()) as u64;
        }
        if count != ITEMS {
            return Err(format!("there are {count} rows"));
        }
    }
    Ok(())
}

fn idle_polls(engine: &Engine, etag: &str) -> Result<()> {
    for _ in 0..POLLS {
        let from = ChangesFrom::After(etag.to_owned());
        let status = page(engine, Part::default(), from)?.status;
        if status != 304 {
            return Err(format!("a poll answered {status}"));
        }
    }
    Ok(())
}

/// Reads all changes of single keys: each has few, and all of them come on one page.
fn keyed_polls(engine: &Engine, items: u64, seed: u64) -> Result<()> {
    let mut random = Random::new(seed + 2);
    for _ in 0..KEYED_POLLS {
        let part = Part::of(Some(key_of(random.below(items))));
        let first = page(engine, part.clone(), ChangesFrom::Beginning)?;
        let place = ChangesFrom::After(first.etag.unwrap_or_default());
        if first.item_count == Some(0) || page(engine, part, place)?.status != 304 {
            return Err("a key has not all its changes on one page".to_owned());
        }
    }
    Ok(())
}

fn key_of(number: u64) -> PartitionKey {
    PartitionKey(vec![Component::String(partition_key(number))])
}

fn point_reads(engine: &Engine, seed: u64) -> Result<()> {
    let mut random = Random::new(seed + 1);
    for _ in 0..POLLS {
        let number = random.below(ITEMS);
        let item = ItemAddress { id: id(number), partition_key: Some(key_of(number)) };
        let asked = Operation::ReadItem { at: at(), item, condition: Condition::default() };
        engine.run(asked).wait().outcome.map_err(failed("reading an item"))?;
    }
    Ok(())
}

fn writes(bench: &Bench, report: &mut Report) -> Result<()> {
    let (mut kept, mut plain) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        for (keeps, rates) in [(true, &mut kept), (false, &mut plain)] {
            let folder = tempfile::tempdir_in(bench.folder.path()).map_err(failed("a folder"))?;
            let server = Server::start(&bench.program, &folder.path().join("data"))?;
            let mut client = server.connect()?;
            client.must("POST", "/dbs", &[], &format!("{{\"id\":\"{DATABASE}\"}}"))?;
            client.must("POST", &format!("/dbs/{DATABASE}/colls"), &[], &defined(keeps))?;
            rates.push(creates(&server, Mix::Create, 0, CREATES)?.per_second());
        }
        println!(
            "feed, round {round}: creates {kept:.0?}/s with all versions, {plain:.0?}/s without"
        );
    }
    let (kept, plain) = (median(kept), median(plain));
    report.note("durable creates with all versions", format!("{kept:.0}/s"));
    report.note("the same without", format!("{plain:.0}/s"));
    report.judge("all versions: ratio", kept / plain, "", Bar::AtLeast(0.7));
    Ok(())
}

/// The container's definition, with or without a log.
fn defined(keeps: bool) -> String {
    let definition = definition();
    let open = definition.strip_suffix('}').unwrap_or(&definition);
    let policy = if keeps { ",\"changeFeedPolicy\":{\"retentionDuration\":60}" } else { "" };
    format!("{open}{policy}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_changes_on_one_page() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("feed");
        fill(&folder, &Items::new(), 3_000).unwrap();
        let (_, engine) = open(&folder, Arc::new(SystemWall)).unwrap();
        keyed_polls(&engine, 3_000, 1).unwrap();
        engine.close().unwrap();
    }
}
