//! What cargo itself does not do. `cargo xtask help` says what there is.
//!
//! ```text
//! deny       licences, sources and bans of everything we build on
//! crash      kills the real server again and again, and looks for lost writes
//! bench      measures the real server against bare hyper and bare fjall
//! model      plays random histories against a model of time to live
//! mutants    plants bugs, and sees that the tests find them
//! fuzz       looks for bytes that what reads them first cannot bear
//! sdk-suite  runs the official SDKs' own tests, as a ratchet
//! programs   runs programs that others wrote, as they are published
//! portal     builds the page at /_explorer/, or sees that it is built from its sources
//! ```
//!
//! Everything here talks to a server on this machine's loopback, started here.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are tools for a person at a terminal"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "a stopwatch and a pause are what these tools are made of"
)]
#![allow(clippy::cast_precision_loss, reason = "figures are for reading, not for counting")]

mod bench;
mod crash;
mod deny;
mod direct;
mod fuzz;
mod model;
mod mutants;
mod portal;
mod programs;
mod queries;
mod random;
mod server;
mod suite;
mod wire;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

/// What went wrong, in a sentence for a person.
pub(crate) type Result<T, E = String> = std::result::Result<T, E>;

/// What cargo itself does not do.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Checks bans, licences and sources of all dependencies with cargo-deny.
    Deny,
    /// Kills the server under load, again and again, and looks for lost writes.
    Crash(crash::Options),
    /// Measures speed and size.
    Bench(bench::Options),
    /// Plays random histories against a model of time to live.
    Model(model::Options),
    /// Asks random queries with an index, without one, and of a simple evaluator.
    Queries(queries::Options),
    /// Plants one bug after the other, and sees that a test finds each.
    Mutants(mutants::Options),
    /// Looks for bytes over which what reads them first panics, with libFuzzer.
    Fuzz(fuzz::Options),
    /// Runs the official SDKs' own tests, and compares with the lists of known failures.
    SdkSuite(suite::Options),
    /// Runs programs that others wrote, as they are published.
    Programs(programs::Options),
    /// Builds the portal and packs it into `portal/dist`, from where it gets into the binary.
    Portal(portal::Options),
    /// A hyper server that answers everything with the response in a file.
    #[command(hide = true)]
    Bare(bench::bare::Options),
    /// The storage engine alone, writing what the server would write.
    #[command(hide = true)]
    Raw(bench::raw::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Deny => deny::run(),
        Task::Crash(options) => crash::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::Model(options) => model::run(&options),
        Task::Queries(options) => queries::run(&options),
        Task::Mutants(options) => mutants::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::SdkSuite(options) => suite::run(&options),
        Task::Programs(options) => programs::run(&options),
        Task::Portal(options) => portal::run(&options),
        Task::Bare(options) => bench::bare::run(&options),
        Task::Raw(options) => bench::raw::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("xtask: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Turns any failure into a sentence that says what was being done.
pub(crate) fn failed<E: std::fmt::Display>(doing: &str) -> impl FnOnce(E) -> String {
    move |error| format!("{doing}: {error}")
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Which build of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// As `cargo build` makes it.
    Debug,
    /// As users get it.
    Release,
}

/// Builds `package` and says where the program is: beside our own.
pub(crate) fn build(package: &str, profile: Profile) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--quiet", "--package", package]);
    if profile == Profile::Release {
        command.arg("--release");
    }
    let status = command.status().map_err(failed("cargo build"))?;
    if !status.success() {
        return Err(format!("{package} does not build"));
    }
    let ours = std::env::current_exe().map_err(failed("looking for our own program"))?;
    let target = ours.parent().and_then(|folder| folder.parent()).unwrap_or(&ours);
    let folder = if profile == Profile::Release { "release" } else { "debug" };
    Ok(target.join(folder).join(package))
}
