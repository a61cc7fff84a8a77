//! Who may pass and who may fail.
//!
//! A surprise is a test that fails and is not on the list, or passes and is.
//! One that happens in some of the rounds only is no surprise, the test wavers.
//! A test marked as flaky surprises nobody.

use std::collections::{BTreeMap, BTreeSet};

use super::list::Expected;
use super::{Case, Outcome};
use crate::Result;

/// What became of one test in all its rounds.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) file: String,
    pub(crate) group: &'static str,
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) seconds: f64,
    /// Of the last round that it did not pass.
    pub(crate) error: String,
}

impl Tally {
    pub(crate) fn new(file: &str) -> Tally {
        let (file, error) = (file.to_owned(), String::new());
        Tally { file, group: "", passed: 0, failed: 0, seconds: 0.0, error }
    }

    pub(crate) fn add(&mut self, case: Case) {
        self.group = case.group;
        self.seconds = self.seconds.max(case.seconds);
        match case.outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Skipped => {}
        }
        if case.outcome != Outcome::Passed {
            self.error = case.error;
        }
    }

    /// What it counts as: one that passed once can pass.
    pub(crate) fn outcome(&self) -> Outcome {
        match (self.passed, self.failed) {
            (0, 0) => Outcome::Skipped,
            (0, _) => Outcome::Failed,
            _ => Outcome::Passed,
        }
    }

    pub(crate) fn wavers(&self) -> bool {
        self.passed > 0 && self.failed > 0
    }
}

/// How a test may surprise.
#[derive(Debug, PartialEq, Eq)]
enum Surprise {
    Fails,
    Passes,
}

fn surprise(name: &str, tally: &Tally, expected: &Expected) -> Option<Surprise> {
    if expected.is_flaky(name) || tally.wavers() {
        return None;
    }
    match (tally.outcome(), expected.has(name)) {
        (Outcome::Failed, false) => Some(Surprise::Fails),
        (Outcome::Passed, true) => Some(Surprise::Passes),
        _ => None,
    }
}

/// The files to be played again.
pub(crate) fn files_with_surprises(
    tallies: &BTreeMap<String, Tally>,
    expected: &Expected,
    rounds: u32,
) -> Vec<String> {
    let surprising = tallies.iter().filter(|(name, tally)| {
        tally.passed + tally.failed < rounds && surprise(name, tally, expected).is_some()
    });
    let files: BTreeSet<String> = surprising.map(|(_, tally)| tally.file.clone()).collect();
    files.into_iter().collect()
}

/// Whether the run was as the list says.
pub(crate) fn judge(tallies: &BTreeMap<String, Tally>, expected: &Expected) -> Result<()> {
    let mut fail = Vec::new();
    let mut pass = Vec::new();
    for (name, tally) in tallies {
        match surprise(name, tally, expected) {
            Some(Surprise::Fails) => fail.push(format!("{name}: {}", first_line(&tally.error))),
            Some(Surprise::Passes) => pass.push(name.clone()),
            None => {}
        }
    }
    if fail.is_empty() && pass.is_empty() {
        return Ok(());
    }
    let mut told = String::new();
    if !fail.is_empty() {
        told += &format!("these passed before and fail now:\n  {}\n", fail.join("\n  "));
    }
    if !pass.is_empty() {
        let pass = pass.join("\n  ");
        told += &format!("these are listed and pass: take them off with --record\n  {pass}\n");
    }
    Err(told)
}

pub(crate) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u32, failed: u32) -> Tally {
        let mut tally = Tally::new("file");
        tally.passed = passed;
        tally.failed = failed;
        tally
    }

    #[test]
    fn only_what_happens_every_time_is_a_surprise() {
        let expected = Expected::parse("listed | 501: patch\nshaky | flaky: a race\n").unwrap();
        for (name, passed, failed, surprising) in [
            ("unlisted", 1, 0, None),
            ("unlisted", 0, 3, Some(Surprise::Fails)),
            ("unlisted", 1, 2, None),
            ("unlisted", 0, 0, None),
            ("listed", 0, 1, None),
            ("listed", 3, 0, Some(Surprise::Passes)),
            ("listed", 2, 1, None),
            ("shaky", 3, 0, None),
            ("shaky", 0, 3, None),
        ] {
            let found = surprise(name, &tally(passed, failed), &expected);
            assert_eq!(found, surprising, "{name} {passed} {failed}");
        }
    }

    #[test]
    fn files_are_played_again_until_it_is_sure() {
        let expected = Expected::parse("").unwrap();
        let played = |failed| BTreeMap::from([("test".to_owned(), tally(0, failed))]);
        assert_eq!(files_with_surprises(&played(1), &expected, 3), ["file"]);
        assert_eq!(files_with_surprises(&played(2), &expected, 3), ["file"]);
        assert!(files_with_surprises(&played(3), &expected, 3).is_empty());
        assert!(judge(&played(3), &expected).is_err());
    }
}
