//! The tests of `azure_data_cosmos`, from the package that `tests/sdk/rust` uses.
//!
//! The package is copied into a workspace of its own, where it builds with the
//! versions that its authors locked. A file is a module of `tests/emulator.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Case, Outcome, Suite};
use crate::{Result, cargo, failed};

const PACKAGE: &str = "azure_data_cosmos";
const USED_BY: &str = "tests/sdk/rust/Cargo.toml";
const FEATURES: &str = "key_auth,control_plane,fault_injection,unstable_patch";
const CATEGORY: &str = r#"--cfg test_category="emulator""#;
const WORKSPACE: &str = "[workspace]
members = [\"azure_data_cosmos\"]
resolver = \"2\"

[profile.dev]
debug = false
";

/// All tests are below this module.
const ROOT: &str = "emulator_tests::";
const GROUP: &str = "emulator";

/// How many tests of a file at the same time: most of them wait.
const THREADS: &str = "4";

/// As much of what a failed test printed as is kept.
const LONGEST_ERROR: usize = 2000;

/// Databases, containers, items, queries.
const QUICK: [&str; 4] = ["cosmos_containers", "cosmos_databases", "cosmos_items", "cosmos_query"];

pub(crate) struct Rust {
    program: PathBuf,
    folder: PathBuf,
    tests: Vec<String>,
}

impl Rust {
    /// Copies the package and builds its tests, if that is not done.
    pub(crate) fn prepare(folder: &Path) -> Result<Rust> {
        let workspace = folder.join("rust");
        let package = workspace.join(PACKAGE);
        let (source, version) = find_package()?;
        let installed = workspace.join("installed");
        if fs::read_to_string(&installed).ok().as_ref() != Some(&version) {
            println!("copying {PACKAGE} {version}");
            let _ = fs::remove_dir_all(&package);
            copy(&source, &package)?;
            fs::copy(package.join("Cargo.lock"), workspace.join("Cargo.lock"))
                .map_err(failed("the package's Cargo.lock"))?;
            fs::write(workspace.join("Cargo.toml"), WORKSPACE).map_err(failed("a workspace"))?;
            fs::write(&installed, version).map_err(failed("noting what is installed"))?;
        }
        let program = build(&workspace)?;
        let tests = names(&program)?;
        Ok(Rust { program, folder: package, tests })
    }

    fn tests_of(&self, file: &str) -> impl Iterator<Item = &str> {
        self.tests.iter().map(String::as_str).filter(move |test| file_of(test) == Some(file))
    }
}

/// Where cargo keeps the package, and its version.
fn find_package() -> Result<(PathBuf, String)> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--locked", "--manifest-path", USED_BY]);
    let output = command.stderr(Stdio::inherit()).output().map_err(failed("cargo metadata"))?;
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(failed("cargo metadata"))?;
    let packages = metadata.get("packages").and_then(Value::as_array).into_iter().flatten();
    let text = |package: &Value, name| package.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut found = packages.filter(|package| text(package, "name").as_deref() == Some(PACKAGE));
    let package = found.next().ok_or_else(|| format!("{USED_BY} does not use {PACKAGE}"))?;
    let manifest = text(package, "manifest_path").map(PathBuf::from);
    let source = manifest.as_deref().and_then(Path::parent).ok_or("it has no place")?;
    Ok((source.to_owned(), text(package, "version").ok_or("it has no version")?))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(failed("copying"))?;
    for entry in fs::read_dir(from).map_err(failed("copying"))? {
        let entry = entry.map_err(failed("copying"))?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target).map_err(failed("copying"))?;
        }
    }
    Ok(())
}

/// Builds the tests and says where the program is.
fn build(workspace: &Path) -> Result<PathBuf> {
    println!("building the tests of {PACKAGE}; the first time takes minutes");
    let mut command = cargo();
    command.args(["test", "--no-run", "--locked", "--quiet", "--message-format=json"]);
    command.args(["--test", "emulator", "--features", FEATURES, "--target-dir", "build"]);
    command.env("RUSTFLAGS", CATEGORY).env_remove("CARGO_TARGET_DIR").current_dir(workspace);
    let output = command.stderr(Stdio::inherit()).output().map_err(failed("cargo test"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs =
        messages.filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)));
    programs.next_back().ok_or_else(|| format!("the tests of {PACKAGE} do not build"))
}

/// The names of all tests.
fn names(program: &Path) -> Result<Vec<String>> {
    let output = Command::new(program).arg("--list").output().map_err(failed("--list"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = printed.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

/// The file that a test is in.
fn file_of(test: &str) -> Option<&str> {
    test.strip_prefix(ROOT)?.split("::").next()
}

impl Suite for Rust {
    fn name(&self) -> &'static str {
        "rust"
    }

    fn groups(&self) -> &'static [&'static str] {
        &[GROUP]
    }

    fn files(&self) -> Result<Vec<String>> {
        let files: BTreeSet<&str> = self.tests.iter().filter_map(|test| file_of(test)).collect();
        Ok(files.into_iter().map(str::to_owned).collect())
    }

    fn quick(&self) -> &'static [&'static str] {
        &QUICK
    }

    fn command(&self, file: &str, _: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(format!("{ROOT}{file}::")).args(["--test-threads", THREADS]);
        command.env("AZURE_COSMOS_CONNECTION_STRING", "emulator");
        command.env("AZURE_COSMOS_EMULATOR_SERVER_CERT_VALIDATION_DISABLED", "true");
        command.env("AZURE_COSMOS_TEST_MODE", "required").env("RUST_BACKTRACE", "0");
        command.current_dir(&self.folder);
        command
    }

    fn read(&self, file: &str, printed: &str, _: &str) -> Vec<Case> {
        self.tests_of(file).map(|test| read_test(test, printed)).collect()
    }
}

/// What the output says of a test.
fn read_test(test: &str, printed: &str) -> Case {
    let title = format!("test {test} ");
    let mut lines = printed.lines().filter_map(|line| line.strip_prefix(&title));
    let told =
        lines.find_map(|rest| rest.trim_start_matches("- should panic ").strip_prefix("... "));
    let outcome = match told {
        Some("ok") => Outcome::Passed,
        Some(told) if told.starts_with("ignored") => Outcome::Skipped,
        _ => Outcome::Failed,
    };
    let error = match (outcome, told) {
        (Outcome::Passed, _) => String::new(),
        (Outcome::Skipped, told) => told.unwrap_or_default().to_owned(),
        (Outcome::Failed, Some(_)) => last_words(test, printed),
        (Outcome::Failed, None) => "it did not end".to_owned(),
    };
    Case { name: test.to_owned(), group: GROUP, outcome, seconds: 0.0, error }
}

/// What a failed test printed, from the first line that tells of a failure on.
fn last_words(test: &str, printed: &str) -> String {
    let title = format!("---- {test} stdout ----\n");
    let told = printed.split_once(&title).map_or("", |(_, rest)| rest);
    let told = told.split("\n---- ").next().unwrap_or_default();
    let told = told.split("\nfailures:").next().unwrap_or_default();
    let start = ["panicked at", "Error: "].iter().filter_map(|sign| told.find(sign)).min();
    let told = told.get(start.unwrap_or(0)..).unwrap_or_default().trim();
    // The first line of a panic is only its place.
    let place = told.split_once(":\n").filter(|_| told.starts_with("panicked at"));
    place.map_or(told, |(_, message)| message).chars().take(LONGEST_ERROR).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "
running 4 tests
test emulator_tests::items::good ... ok
test emulator_tests::items::later ... ignored, needs a cloud
test emulator_tests::items::bad ... FAILED
test emulator_tests::items::panics ... FAILED
test emulator_tests::items::must_panic - should panic ... ok

failures:

---- emulator_tests::items::bad stdout ----
waiting
Error: 501: A query is not supported by dayfly yet.

---- emulator_tests::items::panics stdout ----

thread 'emulator_tests::items::panics' (7) panicked at tests/items.rs:5:9:
it is not true
note: run with a backtrace

failures:
    emulator_tests::items::bad
";

    #[test]
    fn what_libtest_prints_is_understood() {
        for (test, outcome, error) in [
            ("emulator_tests::items::good", Outcome::Passed, ""),
            ("emulator_tests::items::later", Outcome::Skipped, "ignored, needs a cloud"),
            (
                "emulator_tests::items::bad",
                Outcome::Failed,
                "Error: 501: A query is not supported by dayfly yet.",
            ),
            (
                "emulator_tests::items::panics",
                Outcome::Failed,
                "it is not true\nnote: run with a backtrace",
            ),
            ("emulator_tests::items::must_panic", Outcome::Passed, ""),
            ("emulator_tests::items::lost", Outcome::Failed, "it did not end"),
        ] {
            let case = read_test(test, PRINTED);
            assert_eq!((case.outcome, case.error.as_str()), (outcome, error), "{test}");
        }
    }

    #[test]
    fn a_test_is_in_the_file_of_its_module() {
        assert_eq!(file_of("emulator_tests::cosmos_aad::tests::one"), Some("cosmos_aad"));
        assert_eq!(file_of("elsewhere::one"), None);
    }
}
