//! `deny`: what we build on has licences we can pass on, comes from the
//! registry, and is nothing we banned. The rules are in `deny.toml`.

use std::process::Stdio;

use crate::{Result, cargo, failed};

/// Checks all dependencies.
pub(crate) fn run() -> Result<()> {
    if !is_installed() {
        println!("cargo-deny is not installed; installing it with cargo.");
        let installed = cargo()
            .args(["install", "--locked", "cargo-deny"])
            .status()
            .map_err(failed("cargo install"))?;
        if !installed.success() {
            return Err("cargo-deny could not be installed".to_owned());
        }
    }
    let checked = cargo()
        .args(["deny", "check", "bans", "licenses", "sources"])
        .status()
        .map_err(failed("cargo deny"))?;
    if checked.success() { Ok(()) } else { Err("cargo deny found something".to_owned()) }
}

fn is_installed() -> bool {
    let version =
        cargo().args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}
