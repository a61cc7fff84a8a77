//! `model`: plays as many random histories against the oracle as you like, from
//! any seed on. The tests of the engine play the first two thousand.

use clap::Args;

use crate::{Result, cargo, failed};

#[derive(Args)]
pub(crate) struct Options {
    /// How many histories to play.
    #[arg(long, default_value_t = 100_000)]
    histories: u64,
    /// The seed of the first one; each has the next number.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// On disk, with the files as a crash leaves them, and not in memory.
    #[arg(long)]
    disk: bool,
}

/// Plays the histories.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (test, variable) = if options.disk {
        ("tests::model::histories_on_disk", "DAYFLY_MODEL_DISK_HISTORIES")
    } else {
        ("tests::model::histories_in_memory", "DAYFLY_MODEL_HISTORIES")
    };
    println!("Playing {} histories from seed {} on.", options.histories, options.seed);
    let played = cargo()
        .args(["test", "--quiet", "--release", "--package", "dayfly-engine", "--lib", "--"])
        .args(["--nocapture", "--exact", test])
        .env(variable, options.histories.to_string())
        .env("DAYFLY_MODEL_SEED", options.seed.to_string())
        .status()
        .map_err(failed("cargo test"))?;
    if played.success() { Ok(()) } else { Err("a history failed; see above".to_owned()) }
}
