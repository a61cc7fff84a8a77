//! Programs that others wrote, as they are published, against the real binary:
//! `tests/programs/run` installs and runs them.

use std::path::PathBuf;
use std::process::Command;

use crate::{Profile, Result, build, failed};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only this one.
    #[arg(conflicts_with = "quick")]
    name: Option<String>,
    /// Only the few for every day.
    #[arg(long)]
    quick: bool,
    /// The server to test, if not the one that is built here.
    #[arg(long)]
    bin: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let bin = match &options.bin {
        Some(bin) => std::path::absolute(bin).map_err(failed("--bin"))?,
        None => build("dayfly", Profile::Debug)?,
    };
    let all = if options.quick { "quick" } else { "all" };
    let status = Command::new("tests/programs/run")
        .arg(options.name.as_deref().unwrap_or(all))
        .env("DAYFLY_BIN", bin)
        .status()
        .map_err(failed("tests/programs/run"))?;
    if status.success() { Ok(()) } else { Err("not all of them work".to_owned()) }
}
