//! What a run has found: for a person at the end of it, and as JSON in a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::judge::{Tally, first_line};
use super::list::{Baseline, Expected};
use super::{Outcome, Suite};
use crate::{Result, failed};

type Tallies = BTreeMap<String, Tally>;

/// Writes one line of JSON for each test.
pub(crate) fn write(
    folder: &Path,
    suite: &dyn Suite,
    tallies: &Tallies,
    expected: &Expected,
    baseline: &Baseline,
) -> Result<()> {
    let path = folder.join(format!("report-{}.json", suite.name()));
    let lines = tallies.iter().map(|(test, tally)| {
        let line = json!({
            "test": test,
            "group": tally.group,
            "outcome": word(tally.outcome()),
            "passed": tally.passed,
            "failed": tally.failed,
            "seconds": tally.seconds,
            "error": tally.error,
            "listed": expected.reason(test),
            "baseline": baseline.has(test),
        });
        format!("  {line}")
    });
    let text = format!("[\n{}\n]\n", lines.collect::<Vec<_>>().join(",\n"));
    fs::write(&path, text).map_err(failed("the report"))?;
    println!("\nreport: {}", path.display());
    Ok(())
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::Skipped => "skipped",
    }
}

/// Prints why tests fail, most frequent first, who wavers, and the score.
pub(crate) fn print(
    suite: &dyn Suite,
    tallies: &Tallies,
    expected: &Expected,
    baseline: &Baseline,
) {
    print_reasons(tallies, expected);
    for (test, tally) in tallies.iter().filter(|(_, tally)| tally.wavers()) {
        let rounds = tally.passed + tally.failed;
        println!(
            "wavers: {test} failed {} of {rounds}: {}",
            tally.failed,
            first_line(&tally.error)
        );
    }
    let flaky = tallies.keys().filter(|test| expected.is_flaky(test)).count();
    println!("\n{flaky} tests are marked as flaky");
    for group in suite.groups() {
        let (passed, all) = score(group, tallies, baseline);
        println!("{group}: {passed} of {all} that need a server pass");
    }
}

fn print_reasons(tallies: &Tallies, expected: &Expected) {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for (test, _) in tallies.iter().filter(|(_, tally)| tally.outcome() == Outcome::Failed) {
        *counts.entry(expected.reason(test).unwrap_or("not on the list")).or_default() += 1;
    }
    let mut counts: Vec<(&str, u32)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    println!("\nwhy tests fail");
    for (reason, count) in counts {
        println!("{count:6}  {reason}");
    }
}

/// How many tests of a group pass beyond the baseline, and of how many.
fn score(group: &str, tallies: &Tallies, baseline: &Baseline) -> (usize, usize) {
    let ours: Vec<Outcome> = tallies
        .iter()
        .filter(|(test, tally)| tally.group == group && !baseline.has(test))
        .map(|(_, tally)| tally.outcome())
        .filter(|outcome| *outcome != Outcome::Skipped)
        .collect();
    (ours.iter().filter(|outcome| **outcome == Outcome::Passed).count(), ours.len())
}

/// Prints the closing lines.
pub(crate) fn close(tallies: &Tallies, took: Duration) {
    let count = |wanted| tallies.values().filter(|tally| tally.outcome() == wanted).count();
    let [passed, failed, skipped] = [Outcome::Passed, Outcome::Failed, Outcome::Skipped].map(count);
    println!("took {} min {} s", took.as_secs() / 60, took.as_secs() % 60);
    println!("{passed} passed, {failed} failed, {skipped} skipped");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_leaves_out_what_passes_anyhow_and_what_is_skipped() {
        let mut tallies = Tallies::new();
        for (test, group, passed, failed) in [
            ("ours", "a", 1, 0),
            ("not yet", "a", 0, 1),
            ("skipped", "a", 0, 0),
            ("anyhow", "a", 1, 0),
            ("elsewhere", "b", 1, 0),
        ] {
            let mut tally = Tally::new("file");
            (tally.group, tally.passed, tally.failed) = (group, passed, failed);
            tallies.insert(test.to_owned(), tally);
        }
        let baseline = Baseline::of(["anyhow"]);
        assert_eq!(score("a", &tallies, &baseline), (1, 2));
        assert_eq!(score("b", &tallies, &baseline), (1, 1));
    }
}
