//! What a compiler cannot see: the layers, the ledger, the scripts.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use dayfly_model::ErrorKind;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Who may use whom: `dayfly -> api -> engine -> { sql, storage, model }`.
#[test]
fn the_arrows_between_the_crates_go_one_way() {
    let allowed: &[(&str, &[&str])] = &[
        ("model", &[]),
        ("storage", &[]),
        ("sql", &["model"]),
        ("engine", &["model", "sql", "storage"]),
        ("api", &["engine", "model"]),
        ("dayfly", &["api", "engine", "model", "storage"]),
    ];
    for (name, may_use) in allowed {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let normal = manifest.split("[dev-dependencies]").next().unwrap();
        let mut uses: Vec<&str> = normal
            .lines()
            .filter_map(|line| line.strip_prefix("dayfly-")?.split(['.', ' ']).next())
            .collect();
        uses.sort_unstable();
        assert_eq!(uses, *may_use, "{name}");
    }
    let crates = fs::read_dir(root().join("crates")).unwrap().count();
    assert_eq!(crates, allowed.len(), "a crate without a row here");
}

#[test]
fn every_error_is_in_the_ledger() {
    let ledger = read("COMPATIBILITY.md");
    for kind in ErrorKind::ALL {
        let wire = kind.wire();
        let row = format!("| {}/{} | {} |", wire.status, wire.substatus, wire.code);
        assert!(ledger.contains(&row), "COMPATIBILITY.md has no row '{row}'");
    }
}

#[test]
fn every_script_says_what_it_proves() {
    let mut folders = vec![root().join("tests/scenarios")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                assert!(text.starts_with("# "), "{} has no first comment", path.display());
            }
        }
    }
}

#[test]
fn every_setting_is_in_the_readme() {
    let readme = read("README.md");
    let config = read("crates/dayfly/src/config.rs");
    let variables = config.split('"').filter(|text| text.starts_with("DAYFLY_"));
    for variable in variables.filter(|text| *text != "DAYFLY_") {
        assert!(readme.contains(variable), "README.md does not mention {variable}");
    }
}
