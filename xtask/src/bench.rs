//! `bench`: how fast and how large the server is, against what it is made of.
//!
//! ```text
//! read     CPU of a point read, against a bare hyper server with the same answer
//! create   durable writes a second, against bare fjall with the same entries
//! start    CPU of a cold start, idle memory, size of the binary
//! scale    CPU of reads and creates at 100 thousand and at 1 million items
//! ttl      CPU of a change of the default, of what-if and forecast, and of idling
//! purge    expired items removed a second, against bare fjall removing the same keys
//! beside   latency of writes with and without a purge beside them
//! wide     latency of small writes beside those of items with very many properties
//! writes   batches against single creates, patches against replaces, deletes of partitions
//! cancel   latency of reads and small queries beside heavy ones that nobody waits for
//! query    CPU of queries, against point reads, other sizes and a bare loop; their memory
//! feed     reading changes against a bare scan, keeping them, and polling for nothing
//! direct   CPU of reads and creates over direct mode, against HTTP/1.1; its idle connections
//! throughput  CPU of reads with offers and without, memory of many, refusals beside a purge
//! portal   CPU of the portal's pages of items, and of the request log
//! order    two builds side by side: what the order of creation costs; needs --before
//! ```
//!
//! Both sides of every comparison run in one run, in turns, each as a process
//! of its own, so that the machine and its other work weigh on both alike.
//! Read every figure as a ratio.

pub(crate) mod bare;
mod beside;
mod cancel;
mod create;
mod direct;
mod feed;
mod fill;
mod item;
mod load;
mod order;
mod portal;
mod purge;
mod query;
pub(crate) mod raw;
mod read;
mod report;
mod scale;
mod start;
mod throughput;
mod ttl;
mod wide;
mod writes;

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::{Profile, Result, build, failed};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which one; without it, all.
    #[arg(value_enum)]
    name: Option<Name>,
    /// Puts the figures into docs/performance.md.
    #[arg(long)]
    write: bool,
    /// The server; without it, the release build is made and used.
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
    /// An older build of the server, which `order` measures beside the other one.
    #[arg(long, value_name = "PATH")]
    before: Option<PathBuf>,
    /// How many items the largest container of `query` and of `order` has, and at most
    /// the largest partition of `writes`: fewer are for trying it out, and are not
    /// written down. `throughput` is short then.
    #[arg(long, value_name = "N", default_value_t = query::ITEMS, conflicts_with = "write",
        value_parser = clap::value_parser!(u64).range(order::ITEMS_MIN..=query::ITEMS))]
    items: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    Read,
    Create,
    Start,
    Scale,
    Ttl,
    Purge,
    Beside,
    Wide,
    Writes,
    Cancel,
    Query,
    Feed,
    Direct,
    Portal,
    Throughput,
    Order,
}

/// All that need nothing but the server.
const ALL: [Name; 15] = [
    Name::Start,
    Name::Read,
    Name::Create,
    Name::Scale,
    Name::Ttl,
    Name::Purge,
    Name::Beside,
    Name::Wide,
    Name::Writes,
    Name::Cancel,
    Name::Query,
    Name::Feed,
    Name::Direct,
    Name::Portal,
    Name::Throughput,
];

/// What every benchmark needs.
struct Bench {
    /// The server.
    program: PathBuf,
    /// A folder for data, gone afterwards.
    folder: TempDir,
}

/// Measures, prints, and says whether every bar was met.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(sentence) = refusal(options) {
        return Err(sentence);
    }
    if cfg!(debug_assertions) {
        return run_optimized();
    }
    let program = match &options.bin {
        Some(program) => program.clone(),
        None => build("dayfly", Profile::Release)?,
    };
    let mut missed = 0;
    for name in names(options) {
        let folder = tempfile::Builder::new().prefix("dayfly-bench-").tempdir();
        let bench = Bench { program: program.clone(), folder: folder.map_err(failed("a folder"))? };
        let report = match name {
            Name::Read => read::run(&bench)?,
            Name::Create => create::run(&bench)?,
            Name::Start => start::run(&bench)?,
            Name::Scale => scale::run(&bench)?,
            Name::Ttl => ttl::run(&bench)?,
            Name::Purge => purge::run(&bench)?,
            Name::Beside => beside::run(&bench)?,
            Name::Wide => wide::run(&bench)?,
            Name::Writes => writes::run(&bench, options.items)?,
            Name::Cancel => cancel::run(&bench)?,
            Name::Query => query::run(&bench, options.items)?,
            Name::Feed => feed::run(&bench)?,
            Name::Direct => direct::run(&bench)?,
            Name::Portal => portal::run(&bench)?,
            Name::Throughput => throughput::run(&bench, options.items)?,
            Name::Order => order::run(&bench, options.before.as_deref(), options.items)?,
        };
        println!("\n{}", report.table());
        missed += report.missed();
        if options.write {
            report.write()?;
        }
    }
    if missed == 0 { Ok(()) } else { Err(format!("{missed} bars were missed")) }
}

/// What is to be measured.
fn names(options: &Options) -> Vec<Name> {
    match options.name {
        Some(name) => vec![name],
        None if options.before.is_some() => [&ALL[..], &[Name::Order]].concat(),
        None => ALL.to_vec(),
    }
}

/// Why that cannot be measured, before anything is.
fn refusal(options: &Options) -> Option<String> {
    let names = names(options);
    if names.contains(&Name::Query) && options.items < query::ITEMS_MIN {
        return Some(format!("`query` needs --items {} or more", query::ITEMS_MIN));
    }
    match &options.before {
        None if names.contains(&Name::Order) => Some(order::NEEDS_BEFORE.to_owned()),
        Some(path) if !path.is_file() => Some(format!(
            "--before names {}, where no program is: build an older commit, and name what \
             `cargo build --release -p dayfly` made of it",
            path.display()
        )),
        _ => None,
    }
}

/// Half of what is measured here is in this program, so it has to be a
/// release build too.
fn run_optimized() -> Result<()> {
    let program = build("xtask", Profile::Release)?;
    let ended = Command::new(program)
        .args(std::env::args_os().skip(1))
        .status()
        .map_err(failed("starting the release build"))?;
    if ended.success() { Ok(()) } else { Err("see above".to_owned()) }
}

/// The one in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
