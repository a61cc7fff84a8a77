//! How much memory the server takes for an answer that is a whole container,
//! page by page over HTTP.
//!
//! It takes what its caches may hold, whatever is read. So these are small, and
//! two containers are read that are both larger: how much more the larger one
//! takes must not be more than a few pages.

use std::path::Path;

use super::side::body;
use super::words;
use crate::Result;
use crate::bench::Bench;
use crate::bench::item::{CONTAINER, DATABASE};
use crate::bench::report::{Bar, Report};
use crate::server::{Server, dayfly};

/// Four pages of 4 MiB.
const BAR_MIB: f64 = 16.0;

/// Less than a hundred thousand items take.
const CACHE_MIB: &str = "64";

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Compares the folders of a smaller and of a larger container.
pub(super) fn run(bench: &Bench, folders: [(&Path, u64); 2], report: &mut Report) -> Result<()> {
    let mut grown = Vec::new();
    for (folder, count) in folders {
        let server = Server::spawn(dayfly(&bench.program, folder).args(["--cache", CACHE_MIB]))?;
        // The first answer sets up what any answer needs.
        server.connect()?.must("POST", &docs(), &headers("1", None), &everything())?;
        let before = server.rss_bytes()?;
        let (rows, pages) = read_all(&server)?;
        if rows != count {
            return Err(format!("{rows} rows came of {count}"));
        }
        let (after, peak) = (server.rss_bytes()?, server.rss_peak_bytes()?);
        let [before, after, peak] = [before, after, peak].map(|bytes| bytes as f64 / MEBIBYTE);
        let many = words(count);
        report.note(
            format!("memory, {many} rows in {pages} pages: before, most, after"),
            format!("{before:.0}, {peak:.0}, {after:.0} MiB"),
        );
        println!("query, {many} rows: {before:.1} MiB before, {peak:.1} at most, {after:.1} after");
        grown.push(peak - before);
        server.stop()?;
    }
    let more = match grown.as_slice() {
        [few, many] => many - few,
        _ => f64::NAN,
    };
    report.judge("memory: growth, ten times the rows", more, " MiB", Bar::AtMost(BAR_MIB));
    Ok(())
}

/// Returns how many rows there were, in how many pages.
fn read_all(server: &Server) -> Result<(u64, u64)> {
    let mut client = server.connect()?;
    let (mut rows, mut pages, mut continuation) = (0, 0, None);
    loop {
        let answer = client.must("POST", &docs(), &headers("-1", continuation), &everything())?;
        let count = answer.header("x-ms-item-count").and_then(|count| count.parse::<u64>().ok());
        rows += count.ok_or("an answer without a count")?;
        pages += 1;
        continuation = answer.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            return Ok((rows, pages));
        }
    }
}

fn docs() -> String {
    format!("/dbs/{DATABASE}/colls/{CONTAINER}/docs")
}

fn everything() -> String {
    body("SELECT * FROM c", None)
}

fn headers(limit: &str, continuation: Option<String>) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("content-type", "application/query+json".to_owned()),
        ("x-ms-documentdb-query-enablecrosspartition", "True".to_owned()),
        ("x-ms-max-item-count", limit.to_owned()),
    ];
    headers.extend(continuation.map(|token| ("x-ms-continuation", token)));
    headers
}
