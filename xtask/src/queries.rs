//! `queries`: asks as many random queries as you like, with an index, without one
//! and of a simple evaluator, from any seed on. The tests of the engine ask some.

use clap::Args;

use crate::{Result, cargo, failed};

#[derive(Args)]
pub(crate) struct Options {
    /// How many queries to ask.
    #[arg(long, default_value_t = 100_000)]
    count: u64,
    /// The seed of the first world of items; each has the next number.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Asks the queries.
pub(crate) fn run(options: &Options) -> Result<()> {
    println!("Asking {} queries from seed {} on.", options.count, options.seed);
    let asked = cargo()
        .args(["test", "--quiet", "--release", "--package", "dayfly-engine", "--lib", "--"])
        .args(["--nocapture", "--exact", "tests::queries::an_index_changes_no_answer"])
        .env("DAYFLY_QUERIES", options.count.to_string())
        .env("DAYFLY_QUERIES_SEED", options.seed.to_string())
        .status()
        .map_err(failed("cargo test"))?;
    if asked.success() { Ok(()) } else { Err("a query failed; see above".to_owned()) }
}
