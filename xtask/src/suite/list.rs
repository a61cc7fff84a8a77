//! The two lists that are kept with the source: the tests that are known to fail,
//! and those that pass without a database.
//!
//! A line of the first is a test and why it fails:
//!
//! ```text
//! test_batch.py::TestBatch::test_one | 501: Transactional batch
//! test_aad.py::TestAad::test_two | out of scope: Entra ID
//! test_session.py::TestSession::test_three | flaky: compares clocks
//! ```
//!
//! `501: what` waits for a feature, `out of scope: why` for nothing, `unread` for
//! somebody who reads its error. A reason that no rule gives was written by hand
//! and stays until its test passes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::judge::Tally;
use super::play::Played;
use super::{Outcome, Record, reasons};
use crate::{Result, failed};

/// Between a test and its reason.
const BAR: &str = " | ";
const FLAKY: &str = "flaky";
const HEAD: &str = "\
# Tests of the official SDK that are known to fail, and why. A test may leave this
# list, never enter it: `cargo xtask sdk-suite` proves it, `--record` renews it.
";
const BASELINE_HEAD: &str = "\
# Tests of the official SDK that pass against a stub without a database, so they
# count for nobody. `cargo xtask sdk-suite LANGUAGE --baseline` renews the list.
";

/// The tests that are known to fail.
#[derive(Debug)]
pub(crate) struct Expected {
    path: PathBuf,
    reasons: BTreeMap<String, String>,
}

impl Expected {
    pub(crate) fn read(suite: &str) -> Result<Expected> {
        let path = PathBuf::from(format!("tests/sdk/expected-failures-{suite}.txt"));
        let text = fs::read_to_string(&path).map_err(failed(&path.to_string_lossy()))?;
        Ok(Expected { path, ..Expected::parse(&text)? })
    }

    pub(crate) fn parse(text: &str) -> Result<Expected> {
        let mut reasons = BTreeMap::new();
        for line in entries(text) {
            let Some((name, reason)) = line.split_once(BAR) else {
                return Err(format!("'{line}' in a list of known failures has no reason"));
            };
            if reasons.insert(name.to_owned(), reason.to_owned()).is_some() {
                return Err(format!("'{name}' is in a list of known failures twice"));
            }
        }
        Ok(Expected { path: PathBuf::new(), reasons })
    }

    pub(crate) fn has(&self, test: &str) -> bool {
        self.reasons.contains_key(test)
    }

    pub(crate) fn reason(&self, test: &str) -> Option<&str> {
        self.reasons.get(test).map(String::as_str)
    }

    pub(crate) fn is_flaky(&self, test: &str) -> bool {
        self.reason(test).is_some_and(|reason| reason.starts_with(FLAKY))
    }

    /// The entries that no test has.
    pub(crate) fn unknown(&self, tallies: &BTreeMap<String, Tally>) -> Vec<String> {
        self.reasons.keys().filter(|test| !tallies.contains_key(*test)).cloned().collect()
    }

    /// Takes off what passes and renews the reasons; new entries only if they
    /// are admitted.
    pub(crate) fn record(&mut self, tallies: &BTreeMap<String, Tally>, how: Record) -> Result<()> {
        for (test, tally) in tallies {
            self.record_one(test, tally, how);
        }
        let lines = self.reasons.iter().map(|(test, reason)| format!("{test}{BAR}{reason}\n"));
        let text: String = std::iter::once(HEAD.to_owned()).chain(lines).collect();
        fs::write(&self.path, text).map_err(failed(&self.path.to_string_lossy()))
    }

    fn record_one(&mut self, test: &str, tally: &Tally, how: Record) {
        let listed = self.has(test);
        if self.is_flaky(test) || (!listed && how == Record::Leave) {
            return;
        }
        if tally.wavers() {
            let rounds = tally.passed + tally.failed;
            let reason = format!("{FLAKY}: failed {} times of {rounds}", tally.failed);
            self.reasons.insert(test.to_owned(), reason);
        } else if tally.outcome() != Outcome::Failed {
            self.reasons.remove(test);
        } else if self.reason(test).is_none_or(reasons::is_automatic) {
            self.reasons.insert(test.to_owned(), reasons::reason(test, &tally.error));
        }
    }

    /// Takes off what no test is called.
    pub(crate) fn forget(&mut self, tests: &[String]) {
        self.reasons.retain(|test, _| !tests.contains(test));
    }
}

/// The tests that pass without a database.
pub(crate) struct Baseline {
    tests: BTreeSet<String>,
}

impl Baseline {
    fn path(suite: &str) -> String {
        format!("tests/sdk/baseline-{suite}.txt")
    }

    pub(crate) fn read(suite: &str) -> Result<Baseline> {
        let path = Baseline::path(suite);
        let text = fs::read_to_string(&path).map_err(failed(&path))?;
        Ok(Baseline { tests: entries(&text).map(str::to_owned).collect() })
    }

    pub(crate) fn has(&self, test: &str) -> bool {
        self.tests.contains(test)
    }

    #[cfg(test)]
    pub(crate) fn of<const N: usize>(tests: [&str; N]) -> Baseline {
        Baseline { tests: tests.map(str::to_owned).into() }
    }

    pub(crate) fn record(suite: &str, played: &Played) -> Result<()> {
        let cases = played.values().flatten();
        let passed = cases.filter(|case| case.outcome == Outcome::Passed);
        let tests: BTreeSet<String> = passed.map(|case| format!("{}\n", case.name)).collect();
        println!("{} tests pass without a database", tests.len());
        let path = Baseline::path(suite);
        let text: String = std::iter::once(BASELINE_HEAD.to_owned()).chain(tests).collect();
        fs::write(&path, text).map_err(failed(&path))
    }
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::Record::{Admit, Leave};
    use super::*;

    fn recorded(line: &str, passed: u32, failed: u32, how: Record) -> Option<String> {
        let mut expected = Expected::parse(line).unwrap();
        let mut tally = Tally::new("file");
        (tally.passed, tally.failed) = (passed, failed);
        tally.error = "Patch is not supported by dayfly yet.".to_owned();
        expected.record_one("test", &tally, how);
        expected.reason("test").map(str::to_owned)
    }

    #[test]
    fn a_test_may_leave_the_list_and_enters_only_if_admitted() {
        for (line, passed, failed, how, reason) in [
            ("", 0, 3, Leave, None),
            ("", 0, 3, Admit, Some("501: Patch")),
            ("", 1, 2, Admit, Some("flaky: failed 2 times of 3")),
            ("test | 501: Batch", 0, 1, Leave, Some("501: Patch")),
            ("test | unread: what", 0, 1, Leave, Some("501: Patch")),
            ("test | by hand", 0, 1, Leave, Some("by hand")),
            ("test | by hand", 3, 0, Leave, None),
            ("test | by hand", 0, 0, Leave, None),
            ("test | 501: Batch", 2, 1, Leave, Some("flaky: failed 1 times of 3")),
            ("test | flaky: a race", 3, 0, Leave, Some("flaky: a race")),
        ] {
            let found = recorded(line, passed, failed, how);
            assert_eq!(found.as_deref(), reason, "{line} {passed} {failed} {how:?}");
        }
    }

    #[test]
    fn a_list_that_is_damaged_is_refused() {
        for text in ["no reason", "twice | a\ntwice | b"] {
            assert!(Expected::parse(text).is_err(), "{text}");
        }
    }
}
