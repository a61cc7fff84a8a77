//! The tests of `azure-cosmos`, from its source distribution.
//!
//! A plugin of ours (`tests/sdk/suite/stubs/suite_report.py`) notes what becomes
//! of each test. Against localhost the SDK does not verify certificates, so the
//! tests need no setting for that.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Case, Outcome, Suite};
use crate::{Result, failed};

const HERE: &str = "tests/sdk/suite";

/// The groups, and the marks of their tests.
const EMULATOR: &str = "cosmosEmulator";
const LONG: &str = "cosmosLong and cosmosQuery";
const SPLIT: &str = "cosmosSplit";
const MARKS: &str = "cosmosEmulator or cosmosLong or cosmosQuery or cosmosSplit";

/// For one test, in seconds.
const TEST_LIMIT: u32 = 90;

/// Time to live, items, queries.
const QUICK: [&str; 14] = [
    "test_ttl.py",
    "test_crud.py",
    "test_crud_container.py",
    "test_crud_container_async.py",
    "test_crud_database.py",
    "test_crud_subpartition.py",
    "test_cosmos_responses.py",
    "test_headers.py",
    "test_partition_key.py",
    "test_query.py",
    "test_query_cross_partition.py",
    "test_query_feed_range.py",
    "test_resource_id.py",
    "test_session.py",
];

pub(crate) struct Python {
    interpreter: PathBuf,
    tests: PathBuf,
    stubs: PathBuf,
}

impl Python {
    /// Installs what is missing or has changed.
    pub(crate) fn prepare(folder: &Path) -> Result<Python> {
        let folder = folder.join("python");
        let requirements = format!("{HERE}/requirements.txt");
        let wanted = fs::read_to_string(&requirements).map_err(failed(&requirements))?;
        let pinned = wanted.lines().find_map(|line| line.strip_prefix("azure-cosmos=="));
        let version = pinned.ok_or("the requirements do not name azure-cosmos")?;
        let here = std::env::current_dir().map_err(failed("where we are"))?;
        let suite = Python {
            interpreter: folder.join("venv/bin/python"),
            tests: folder.join(format!("azure_cosmos-{version}/tests")),
            stubs: here.join(HERE).join("stubs"),
        };
        let installed = folder.join("installed");
        if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
            return Ok(suite);
        }
        println!("installing azure-cosmos {version} and its tests");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(failed("the folder for the suite"))?;
        must(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")))?;
        must(suite.pip("install").args(["--requirement", &requirements]))?;
        let source = ["--no-deps", "--no-binary", "azure-cosmos", "--dest"];
        let package = format!("azure-cosmos=={version}");
        must(suite.pip("download").args(source).arg(&folder).arg(package))?;
        let archive = folder.join(format!("azure_cosmos-{version}.tar.gz"));
        must(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&folder))?;
        fs::write(&installed, wanted).map_err(failed("noting what is installed"))?;
        Ok(suite)
    }

    fn pip(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.args(["-m", "pip", verb, "--quiet", "--disable-pip-version-check"]);
        command
    }
}

fn must(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(failed("starting a program"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}

impl Suite for Python {
    fn name(&self) -> &'static str {
        "python"
    }

    fn groups(&self) -> &'static [&'static str] {
        &[EMULATOR, LONG, SPLIT]
    }

    /// The files that have one of the marks.
    fn files(&self) -> Result<Vec<String>> {
        let mut files = Vec::new();
        for below in ["", "routing/"] {
            let folder = self.tests.join(below);
            for entry in fs::read_dir(&folder).map_err(failed("the suite's tests"))? {
                let entry = entry.map_err(failed("the suite's tests"))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_python = entry.path().extension().is_some_and(|ending| ending == "py");
                if !name.starts_with("test_") || !is_python {
                    continue;
                }
                let text = fs::read_to_string(entry.path()).map_err(failed(&name))?;
                if MARKS.split(" or ").any(|mark| text.contains(mark)) {
                    files.push(format!("{below}{name}"));
                }
            }
        }
        files.sort();
        Ok(files)
    }

    fn quick(&self) -> &'static [&'static str] {
        &QUICK
    }

    fn command(&self, file: &str, notes: &Path) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.args(["-m", "pytest", "--quiet", "--rootdir", ".", "-c", "/dev/null"]);
        // Its own form of traceback reads the source again, and may die of that.
        command.arg("--tb=native");
        command.args(["-p", "suite_report", "-p", "no:cacheprovider", "-m", MARKS]);
        command.arg(format!("--timeout={TEST_LIMIT}")).arg(file);
        command.env("PYTHONPATH", &self.stubs).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("SUITE_REPORT", notes).current_dir(&self.tests);
        command
    }

    fn read(&self, file: &str, printed: &str, notes: &str) -> Vec<Case> {
        let mut cases = BTreeMap::new();
        let mut collected = false;
        for line in notes.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if line.get("collected").is_some() {
                collected = true;
                continue;
            }
            let case = read_note(&line);
            cases.insert(case.name.clone(), case);
        }
        if !collected {
            let error = format!("the file did not run: {}", last_line(printed));
            let (group, outcome) = (EMULATOR, Outcome::Failed);
            let case = Case { name: file.to_owned(), group, outcome, seconds: 0.0, error };
            cases.insert(file.to_owned(), case);
        }
        cases.into_values().collect()
    }
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or_default()
}

/// A line of the plugin. A test that was only started took the process with it.
fn read_note(line: &Value) -> Case {
    let text = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let outcome = text("outcome");
    let marks = line.get("marks").and_then(Value::as_array);
    let has = |wanted: &str| marks.is_some_and(|marks| marks.iter().any(|mark| mark == wanted));
    Case {
        name: text("test"),
        group: [EMULATOR, SPLIT].into_iter().find(|group| has(group)).unwrap_or(LONG),
        outcome: match outcome.as_str() {
            "passed" => Outcome::Passed,
            "skipped" => Outcome::Skipped,
            _ => Outcome::Failed,
        },
        seconds: line.get("seconds").and_then(Value::as_f64).unwrap_or(0.0),
        error: if outcome == "started" { "it did not end".to_owned() } else { text("error") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugins_notes_are_understood() {
        let suite =
            Python { interpreter: PathBuf::new(), tests: PathBuf::new(), stubs: PathBuf::new() };
        let notes = r#"{"collected": 3}
{"test": "a", "outcome": "started", "marks": ["cosmosEmulator"]}
{"test": "a", "outcome": "passed", "seconds": 1.5, "marks": ["cosmosEmulator"]}
{"test": "b", "outcome": "skipped", "error": "why", "marks": ["cosmosLong"]}
{"test": "c", "outcome": "started", "marks": ["cosmosQuery"]}
{"test": "d", "outcome": "collected", "error": "never", "marks": ["cosmosQuery"]}
{"test": "e", "outcome": "passed", "marks": ["cosmosSplit"]}"#;
        let cases = suite.read("file", "", notes);
        let told: Vec<_> =
            cases.iter().map(|case| (case.group, case.outcome, case.error.as_str())).collect();
        assert_eq!(
            told,
            [
                (EMULATOR, Outcome::Passed, ""),
                (LONG, Outcome::Skipped, "why"),
                (LONG, Outcome::Failed, "it did not end"),
                (LONG, Outcome::Failed, "never"),
                (SPLIT, Outcome::Passed, ""),
            ]
        );
    }

    #[test]
    fn a_file_that_did_not_run_has_failed() {
        let suite =
            Python { interpreter: PathBuf::new(), tests: PathBuf::new(), stubs: PathBuf::new() };
        let cases = suite.read("file", "traceback\nno module\n", "");
        let told: Vec<_> = cases.iter().map(|case| (case.outcome, case.error.as_str())).collect();
        assert_eq!(told, [(Outcome::Failed, "the file did not run: no module")]);
    }
}
