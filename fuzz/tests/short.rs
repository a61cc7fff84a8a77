//! Each target over its seeds and some thousands of bytes that are nearly as good, always
//! the same ones. `DAYFLY_FUZZ_RUNS` and `DAYFLY_FUZZ_SEED` ask for more, and for others;
//! `cargo xtask fuzz` looks where libFuzzer leads.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test may panic")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use dayfly_fuzz::bend::{Random, bent};
use dayfly_fuzz::target;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Runs a target, and tells the bytes if it panics.
fn check(name: &str, default_runs: u64) {
    let target = target(name).unwrap();
    let try_with = |bytes: &[u8]| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))) {
            eprintln!("{name} panics over {:?}", bytes.escape_ascii().to_string());
            resume_unwind(panic);
        }
    };
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty());
    for seed in &seeds {
        try_with(seed);
    }
    let mut random = Random::new(number("DAYFLY_FUZZ_SEED", 1));
    for _ in 0..number("DAYFLY_FUZZ_RUNS", default_runs) {
        try_with(&bent(&seeds, &mut random));
    }
}

#[test]
fn bodies_are_read_or_refused() {
    check("json", 20_000);
}

#[test]
fn patches_are_read_or_refused() {
    check("patch", 20_000);
}

#[test]
fn rows_are_read_or_refused() {
    check("rows", 20_000);
}

#[test]
fn frames_are_answered_or_refused() {
    check("frames", 6_000);
}
