//! The emulator tests of `azcosmos`, which its module has among its files.
//!
//! `tests/sdk/suite/go` names the version. Its tests are compiled once; a "file"
//! is a test here, with a process and a server of its own. Most clients of these
//! tests verify no certificate; those that do find ours where Go looks for roots.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Case, Outcome, Suite};
use crate::{Result, failed};

/// What asks for the module.
const HERE: &str = "tests/sdk/suite/go";
const MODULE: &str = "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos";

/// The source files with tests that need an emulator begin with this.
const EMULATOR_FILE: &str = "emulator_";
const TEST_FILE: &str = "_test.go";
const GROUP: &str = "emulator";

/// For one test.
const TEST_LIMIT: &str = "-test.timeout=2m";

/// As much of what a failed test printed as is kept.
const LONGEST_ERROR: usize = 2000;

/// Databases, containers, items, queries, both gateways.
const QUICK: [&str; 9] = [
    "TestContainerVectorSearch",
    "TestDatabaseCRUD",
    "TestEmulatorContainerPartitionKeyRangesAndFeedRanges",
    "TestHierarchicalPartitionQueryParentPartition",
    "TestItemCRUDHierarchicalPartitionKey",
    "TestItemConcurrent",
    "TestItemIdEncodingComputeGW",
    "TestReadManyWithQueries_MultipleLogicalPKs",
    "TestSinglePartitionQueryWithParameters",
];

pub(crate) struct Go {
    program: PathBuf,
    /// Where the tests are, for those that open files beside them.
    source: PathBuf,
    certificate: PathBuf,
    tests: Vec<String>,
}

impl Go {
    /// Downloads the module and compiles its tests, if that is not done.
    pub(crate) fn prepare(folder: &Path, certificate: &Path) -> Result<Go> {
        let folder = folder.join("go");
        fs::create_dir_all(&folder).map_err(failed("the folder for the suite"))?;
        let program = folder.join("azcosmos.test");
        println!("compiling the tests of azcosmos; the first time takes minutes");
        run(go(&folder, "test").arg("-c").arg("-o").arg(&program).arg(MODULE))?;
        let source = run(go(&folder, "list").args(["-m", "-f", "{{.Dir}}", MODULE]))?;
        let source = PathBuf::from(source.trim());
        let tests = names(&source)?;
        Ok(Go { program, source, certificate: certificate.to_owned(), tests })
    }
}

/// The go tool, with its downloads where they can be removed with all the others.
fn go(folder: &Path, verb: &str) -> Command {
    let mut command = Command::new("go");
    command.args([verb, "-modcacherw"]).current_dir(HERE);
    command.env("GOMODCACHE", folder.join("modules"));
    command
}

/// Runs a command that must succeed, and says what it printed.
fn run(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(failed("go, which must be installed"))?;
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The names of all tests that need an emulator, in order.
fn names(source: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(source).map_err(failed("the suite's tests"))? {
        let entry = entry.map_err(failed("the suite's tests"))?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if file.starts_with(EMULATOR_FILE) && file.ends_with(TEST_FILE) {
            let text = fs::read_to_string(entry.path()).map_err(failed(&file))?;
            names.extend(tests_in(&text).map(str::to_owned));
        }
    }
    names.sort();
    Ok(names)
}

/// The tests that a source file has.
fn tests_in(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (name, parameters) = line.strip_prefix("func ")?.split_once('(')?;
        (name.starts_with("Test") && parameters.contains("*testing.T)")).then_some(name)
    })
}

impl Suite for Go {
    fn name(&self) -> &'static str {
        "go"
    }

    fn groups(&self) -> &'static [&'static str] {
        &[GROUP]
    }

    fn files(&self) -> Result<Vec<String>> {
        Ok(self.tests.clone())
    }

    fn quick(&self) -> &'static [&'static str] {
        &QUICK
    }

    fn command(&self, test: &str, _: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-test.v", TEST_LIMIT]).arg(format!("-test.run=^{test}$"));
        command.env("EMULATOR", "true").env("SSL_CERT_FILE", &self.certificate);
        command.current_dir(&self.source);
        command
    }

    fn read(&self, test: &str, printed: &str, _: &str) -> Vec<Case> {
        vec![read_test(test, printed)]
    }
}

/// What the output says of a test.
fn read_test(test: &str, printed: &str) -> Case {
    let told = printed.lines().find_map(|line| {
        let (outcome, rest) = line.strip_prefix("--- ")?.split_once(": ")?;
        let (name, seconds) = rest.split_once(" (")?;
        (name == test).then_some((outcome, seconds))
    });
    let (outcome, seconds) = match told {
        Some(("PASS", seconds)) => (Outcome::Passed, seconds),
        Some(("SKIP", seconds)) => (Outcome::Skipped, seconds),
        Some((_, seconds)) => (Outcome::Failed, seconds),
        None => (Outcome::Failed, ""),
    };
    let seconds = seconds.strip_suffix("s)").and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let error = match (outcome, told) {
        (Outcome::Passed, _) => String::new(),
        (_, None) => format!("it did not end: {}", last_words(printed)),
        _ => last_words(printed),
    };
    Case { name: test.to_owned(), group: GROUP, outcome, seconds, error }
}

/// What was printed, without the lines that tell how far the tests are, and where
/// their source is.
fn last_words(printed: &str) -> String {
    let progress = ["=== ", "--- ", "FAIL", "PASS", "Error Trace:", "/"];
    let lines = printed.lines().map(str::trim).filter(|line| !line.is_empty());
    let told = lines.filter(|line| !progress.iter().any(|sign| line.starts_with(sign)));
    // A place without a message: that follows.
    let told = told.filter(|line| !line.ends_with(':') || line.contains(' '));
    told.collect::<Vec<_>>().join("\n").chars().take(LONGEST_ERROR).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_test_program_prints_is_understood() {
        let failed = "=== RUN   TestA\n    a_test.go:4: Failed to patch: PATCH https://localhost/\n\
                      {\n  \"message\": \"Patch is not supported by dayfly yet.\"\n}\n\
                      --- FAIL: TestA (0.25s)\nFAIL\n";
        for (printed, outcome, seconds, error) in [
            ("=== RUN   TestA\n--- PASS: TestA (1.50s)\nPASS\n", Outcome::Passed, 1.5, ""),
            (
                "=== RUN   TestA\n=== RUN   TestA/B\n--- FAIL: TestA (0.00s)\n    --- PASS: TestA/B (0.00s)\n",
                Outcome::Failed,
                0.0,
                "",
            ),
            (
                failed,
                Outcome::Failed,
                0.25,
                "a_test.go:4: Failed to patch: PATCH https://localhost/\n\
                 {\n\"message\": \"Patch is not supported by dayfly yet.\"\n}",
            ),
            (
                "    a_test.go:4: not here\n--- SKIP: TestA (0.00s)\n",
                Outcome::Skipped,
                0.0,
                "a_test.go:4: not here",
            ),
            (
                "    a_test.go:4: \n\tError Trace:\t/a_test.go:4\n\t/a_test.go:2\n\tError: not \
                 equal\n--- FAIL: TestA (0.00s)\n",
                Outcome::Failed,
                0.0,
                "Error: not equal",
            ),
            (
                "=== RUN   TestA\npanic: test timed out\n",
                Outcome::Failed,
                0.0,
                "it did not end: panic: test timed out",
            ),
        ] {
            let case = read_test("TestA", printed);
            assert_eq!((case.outcome, case.error.as_str()), (outcome, error), "{printed}");
            assert!((case.seconds - seconds).abs() < 0.001, "{printed}");
        }
    }

    #[test]
    fn the_tests_of_a_source_file_are_found() {
        let text = "func TestOne(t *testing.T) {\n}\nfunc TestMain(m *testing.M) {\nfunc help(t \
                    *testing.T) {\n\tfunc TestInner(t *testing.T)\nfunc TestTwo(tt *testing.T) {";
        assert_eq!(tests_in(text).collect::<Vec<_>>(), ["TestOne", "TestTwo"]);
    }
}
