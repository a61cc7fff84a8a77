//! Builds the portal: its sources in `portal/` become files, and these, packed, the content
//! of `portal/dist`, which is part of the repository. So whoever builds the server needs no
//! Node.js, and what is served is what was reviewed: `--check` builds it anew and fails if
//! a byte differs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use brotli::enc::BrotliEncoderParams;
use clap::Args;

use crate::{Result, failed};

/// What the sources are built into, by `npm run build`.
const BUILT: &str = "build";

/// What is part of the repository.
const PACKED: &str = "dist";

/// The list of the files, as the server includes it.
const LIST: &str = "files.rs";

/// As small as it gets: it is done once.
const QUALITY: i32 = 11;

/// How the portal is built.
#[derive(Args)]
pub(crate) struct Options {
    /// Changes nothing, and fails if what is built differs from what is there.
    #[arg(long)]
    check: bool,

    /// Packs what was built before, without npm.
    #[arg(long)]
    pack_only: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../portal");
    if !options.pack_only {
        npm(&home, &["ci", "--no-audit", "--no-fund"])?;
        npm(&home, &["run", "build"])?;
    }
    let packed = pack(&home.join(BUILT))?;
    let bytes: usize = packed.values().map(Vec::len).sum();
    let dist = home.join(PACKED);
    if options.check {
        return compare(&packed, &read(&dist)?);
    }
    if dist.exists() {
        fs::remove_dir_all(&dist).map_err(failed("clearing portal/dist"))?;
    }
    fs::create_dir_all(&dist).map_err(failed("making portal/dist"))?;
    for (name, content) in &packed {
        fs::write(dist.join(name), content).map_err(failed(name))?;
    }
    println!("portal/dist has {} files with {bytes} bytes", packed.len());
    Ok(())
}

fn npm(home: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("npm");
    let status = command.current_dir(home).args(arguments).status().map_err(failed("npm"))?;
    if status.success() { Ok(()) } else { Err(format!("npm {} failed", arguments.join(" "))) }
}

/// The files of a folder, by name.
fn read(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let doing = || format!("reading {}", folder.display());
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(failed(&doing()))? {
        let path: PathBuf = entry.map_err(failed(&doing()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            return Err(format!("{name} in {} is a folder: files lie flat", folder.display()));
        }
        files.insert(name, fs::read(&path).map_err(failed(&doing()))?);
    }
    Ok(files)
}

/// The files of a folder packed, and the list of them.
fn pack(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut packed = BTreeMap::new();
    let mut list = "// Made by `cargo xtask portal`.\n&[\n".to_owned();
    for (name, content) in read(folder)? {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !name.bytes().all(is_plain) {
            return Err(format!("'{name}' is no name for a file of the portal"));
        }
        list.push_str(&format!("    (\"{name}\", include_bytes!(\"{name}.br\").as_slice()),\n"));
        let params = BrotliEncoderParams {
            quality: QUALITY,
            size_hint: content.len(),
            ..BrotliEncoderParams::default()
        };
        let mut bytes = Vec::new();
        brotli::BrotliCompress(&mut content.as_slice(), &mut bytes, &params)
            .map_err(failed("packing"))?;
        packed.insert(format!("{name}.br"), bytes);
    }
    list.push_str("]\n");
    packed.insert(LIST.to_owned(), list.into_bytes());
    Ok(packed)
}

fn compare(built: &BTreeMap<String, Vec<u8>>, kept: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    if built == kept {
        println!("portal/dist is what its sources are built into");
        return Ok(());
    }
    let names = built.keys().chain(kept.keys().filter(|name| !built.contains_key(*name)));
    let different: Vec<&str> =
        names.filter(|name| built.get(*name) != kept.get(*name)).map(String::as_str).collect();
    Err(format!(
        "portal/dist is not what its sources are built into: run `cargo xtask portal` and commit \
         what changes. It differs in {}.",
        different.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_differs_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("index.html"), "<p>a</p>").unwrap();
        fs::write(folder.path().join("app-0123abcd.js"), "1").unwrap();
        let packed = pack(folder.path()).unwrap();
        assert_eq!(packed, pack(folder.path()).unwrap());
        assert!(compare(&packed, &packed.clone()).is_ok());
        let list = String::from_utf8(packed[LIST].clone()).unwrap();
        assert!(list.contains("(\"index.html\", include_bytes!(\"index.html.br\").as_slice())"));

        let mut other = packed.clone();
        other.insert("app-0123abcd.js.br".to_owned(), vec![1]);
        other.insert("more.br".to_owned(), vec![1]);
        let sentence = compare(&packed, &other).unwrap_err();
        assert!(sentence.ends_with("It differs in app-0123abcd.js.br, more.br."), "{sentence}");
        fs::write(folder.path().join("a b"), "1").unwrap();
        assert!(pack(folder.path()).is_err());
    }
}
