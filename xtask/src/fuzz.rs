//! `fuzz`: libFuzzer looks for bytes over which a target of `dayfly-fuzz` panics.
//!
//! The compiler that builds everything else is enough: it can count what code is reached,
//! which is all that libFuzzer needs to be led by. What looks for errors of memory needs
//! another compiler, and is about code that is `unsafe`, of which there is none here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use dayfly_fuzz::{TARGETS, Target};

use crate::{Result, cargo, failed};

/// What makes the compiler count the code that is reached, and tell libFuzzer of it.
const COUNTED: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Longer inputs say nothing new.
const INPUT_BYTES_MAX: usize = 8 * 1024;

/// An input that takes longer is as bad as one that panics.
const INPUT_SECONDS_MAX: u32 = 10;

#[derive(Args)]
pub(crate) struct Options {
    /// How long each target is run.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Runs only this target; otherwise all of them, one after the other.
    #[arg(long)]
    only: Option<String>,
    /// Where the inputs are kept that led further: it goes on from there the next time.
    #[arg(long, default_value = "target/fuzz/corpus")]
    corpus: PathBuf,
}

/// Builds the targets and runs them.
pub(crate) fn run(options: &Options) -> Result<()> {
    let is_wanted = |target: &&Target| options.only.as_ref().is_none_or(|only| only == target.name);
    let targets: Vec<&Target> = TARGETS.iter().filter(is_wanted).collect();
    if targets.is_empty() {
        let names = TARGETS.map(|target| target.name).join(", ");
        return Err(format!("there is no such target; there are {names}"));
    }
    let folder = Path::new("target/fuzz");
    let program = build(folder)?;
    for target in targets {
        run_one(target, &program, folder, options)?;
    }
    Ok(())
}

/// Builds the program into a folder of its own, so that nothing else is built again.
fn build(folder: &Path) -> Result<PathBuf> {
    let host = host()?;
    let built = cargo()
        .args(["build", "--quiet", "--profile", "fuzz", "--package", "dayfly-fuzz"])
        .args(["--features", "libfuzzer", "--bin", "dayfly-fuzz"])
        // With a target, what runs while it is built is not counted.
        .args(["--target", &host, "--target-dir"])
        .arg(folder)
        .env("RUSTFLAGS", COUNTED.join(" "))
        .status()
        .map_err(failed("cargo build"))?;
    if built.success() {
        Ok(folder.join(host).join("fuzz/dayfly-fuzz"))
    } else {
        Err("the targets do not build".to_owned())
    }
}

/// What the compiler calls this machine.
fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let told = Command::new(rustc).arg("-vV").output().map_err(failed("rustc"))?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not name this machine".to_owned())
}

fn run_one(target: &Target, program: &Path, folder: &Path, options: &Options) -> Result<()> {
    let corpus = options.corpus.join(target.name);
    let found = folder.join("found");
    for folder in [&corpus, &found] {
        fs::create_dir_all(folder).map_err(failed("making a folder"))?;
    }
    for (number, seed) in (target.seeds)().iter().enumerate() {
        let file = corpus.join(format!("seed-{number}"));
        fs::write(file, seed).map_err(failed("writing a seed"))?;
    }
    println!("{}: {} seconds", target.name, options.seconds);
    let found = found.join(format!("{}-", target.name));
    let ran = Command::new(program)
        .env("DAYFLY_FUZZ_TARGET", target.name)
        .arg(format!("-max_total_time={}", options.seconds))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-artifact_prefix={}", found.display()))
        .arg("-print_final_stats=1")
        .arg(&corpus)
        .status()
        .map_err(failed("running a target"))?;
    if ran.success() {
        Ok(())
    } else {
        Err(format!("{} found something; it is kept in {}*", target.name, found.display()))
    }
}
