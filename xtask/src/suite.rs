//! The official SDKs' own tests, run unmodified against the real binary, as a
//! ratchet: what passes once must pass for ever.
//!
//! A suite is a set of test files. Each file is played in a process of its own,
//! beside a server of its own, in a network namespace of its own, because the
//! suites insist on ports 8081 and 8903 (`play.rs`). What came of it is judged by a list
//! of the tests that are known to fail (`list.rs`, `judge.rs`): a test may leave
//! the list and never enter it. A surprise counts when it happens three times
//! out of three (`--rounds`), so the files with surprises are played again.
//!
//! Many tests pass whatever the server does. Those that pass against a stub
//! without a database are the baseline, and the score is what passes beyond it. Their tests of
//! offers (row B42) are among those that pass.

mod go;
mod judge;
mod list;
mod play;
mod python;
mod reasons;
mod report;
mod rust;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;

use self::judge::Tally;
use self::list::{Baseline, Expected};
use self::play::Player;
use crate::{Profile, Result, build, failed};

/// Everything that is downloaded, built or reported lives below here.
const FOLDER: &str = "target/sdk-suite";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Whose tests.
    language: Language,
    /// Only the files whose name contains this; may be given again.
    #[arg(long = "file", value_name = "PART")]
    files: Vec<String>,
    /// Only the slice for every day: time to live, items, queries.
    #[arg(long)]
    quick: bool,
    /// Writes the list anew, with the reasons that were given by hand.
    #[arg(long, value_name = "HOW", num_args = 0..=1, default_missing_value = "leave")]
    record: Option<Record>,
    /// Plays against a stub without a database, and records what passes anyhow.
    #[arg(long, conflicts_with_all = ["record", "quick", "files"])]
    baseline: bool,
    /// How often a surprise must happen before it counts.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// How many files at the same time.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// The server to test, if not the one that is built here.
    #[arg(long)]
    bin: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    /// The tests of `azure-cosmos`.
    Python,
    /// The tests of `azure_data_cosmos`.
    Rust,
    /// The tests of `azcosmos`.
    Go,
}

/// How a list is written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Record {
    /// Tests that pass leave it.
    Leave,
    /// Tests that fail enter it, too. For a new version of an SDK.
    Admit,
}

/// What became of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// A test that was played.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// What it is counted with.
    pub(crate) group: &'static str,
    pub(crate) outcome: Outcome,
    pub(crate) seconds: f64,
    /// What the suite said of a test that did not pass.
    pub(crate) error: String,
}

/// What the suites have in common.
pub(crate) trait Suite: Sync {
    /// The name that its lists and reports have.
    fn name(&self) -> &'static str;
    /// The groups that are counted apart, in the order of the report.
    fn groups(&self) -> &'static [&'static str];
    /// All its test files.
    fn files(&self) -> Result<Vec<String>>;
    /// The slice for every day.
    fn quick(&self) -> &'static [&'static str];
    /// The command that plays a file. It may leave notes in the file `notes`.
    fn command(&self, file: &str, notes: &Path) -> std::process::Command;
    /// What became of the tests of a file, from what its process printed and noted.
    fn read(&self, file: &str, printed: &str, notes: &str) -> Vec<Case>;
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    let folder = std::env::current_dir().map_err(failed("where we are"))?.join(FOLDER);
    std::fs::create_dir_all(&folder).map_err(failed(FOLDER))?;
    let bin = match &options.bin {
        Some(bin) => std::path::absolute(bin).map_err(failed("--bin"))?,
        None => build("dayfly", Profile::Debug)?,
    };
    let certificate = play::certificate(&bin, &folder)?;
    let suite: Box<dyn Suite> = match options.language {
        Language::Python => Box::new(python::Python::prepare(&folder)?),
        Language::Rust => Box::new(rust::Rust::prepare(&folder)?),
        Language::Go => Box::new(go::Go::prepare(&folder, &certificate.file())?),
    };
    let suite = suite.as_ref();
    let server = if options.baseline {
        play::stub(&certificate)?
    } else {
        play::dayfly(&bin, &certificate)?
    };
    let player = Player::new(suite, server, options.workers, &folder)?;
    let files = chosen(suite, options)?;
    if options.baseline {
        let cases = player.play(&files)?;
        return Baseline::record(suite.name(), &cases);
    }

    let baseline = Baseline::read(suite.name())?;
    let mut expected = Expected::read(suite.name())?;
    let tallies = play_until_sure(&player, &files, &expected, options.rounds)?;
    report::write(&folder, suite, &tallies, &expected, &baseline)?;
    report::print(suite, &tallies, &expected, &baseline);
    // Only who has played all files knows which entries have no test.
    let whole = !options.quick && options.files.is_empty();
    let unknown = if whole { expected.unknown(&tallies) } else { Vec::new() };
    if let Some(how) = options.record {
        expected.forget(&unknown);
        expected.record(&tallies, how)?;
    } else if !unknown.is_empty() {
        return Err(format!("these are listed and are no tests: {}", unknown.join(" ")));
    }
    report::close(&tallies, begun.elapsed());
    judge::judge(&tallies, &expected)
}

/// Plays all files once, and those with a surprise until it is one or is not.
fn play_until_sure(
    player: &Player<'_>,
    files: &[String],
    expected: &Expected,
    rounds: u32,
) -> Result<BTreeMap<String, Tally>> {
    let mut tallies = BTreeMap::new();
    let mut files = files.to_vec();
    for _ in 0..rounds {
        for (file, cases) in player.play(&files)? {
            for case in cases {
                tallies.entry(case.name.clone()).or_insert_with(|| Tally::new(&file)).add(case);
            }
        }
        files = judge::files_with_surprises(&tallies, expected, rounds);
        if files.is_empty() {
            break;
        }
        println!("played again, for a surprise: {}", files.join(" "));
    }
    Ok(tallies)
}

/// The files that the options ask for.
fn chosen(suite: &dyn Suite, options: &Options) -> Result<Vec<String>> {
    let mut files = suite.files()?;
    if options.quick {
        files.retain(|file| suite.quick().contains(&file.as_str()));
    }
    if !options.files.is_empty() {
        files.retain(|file| options.files.iter().any(|part| file.contains(part.as_str())));
    }
    if files.is_empty() { Err("no test file has such a name".to_owned()) } else { Ok(files) }
}
