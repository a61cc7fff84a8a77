//! What a compiler cannot see: the layers, the ledger, the scripts.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
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
fn every_variable_of_the_emulators_is_in_the_docs() {
    let page = read("docs/ci.md");
    let source = read("crates/dayfly/src/emulator.rs");
    let (_, table) = source.split_once("const TABLE").unwrap();
    let (table, _) = table.split_once("];").unwrap();
    let is_name = |text: &&str| text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let names: Vec<_> = table.split('"').filter(is_name).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "docs/ci.md does not mention {name}");
    }
}

/// What everybody has to know must not grow.
#[test]
fn the_glossary_has_fifty_words_and_names_files_that_are_there() {
    let page = read("docs/glossary.md");
    let words = page.lines().filter(|line| line.starts_with("- **")).count();
    assert!((40..=50).contains(&words), "{words} words");
    let is_file = |text: &&str| Path::new(text).extension().is_some_and(|end| end == "rs");
    let files: Vec<&str> = page.split('`').filter(is_file).collect();
    assert!(files.len() > 8, "{files:?}");
    for file in files {
        let is_in = |name: &&str| {
            let within = file.strip_prefix(&format!("{name}/")).unwrap_or(file);
            root().join("crates").join(name).join("src").join(within).is_file()
        };
        assert!(ONE_MEANING.iter().any(is_in) || root().join(file).is_file(), "no {file}");
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

/// The crates in which a module names what it uses by its module, and not by what `lib.rs`
/// has of it.
const HIDES_NOTHING: [&str; 3] = ["sql", "engine", "dayfly"];

/// The modules of a crate in the order of the page: each uses only those before it.
#[test]
fn the_arrows_within_a_crate_go_one_way() {
    let page = read("ARCHITECTURE.md");
    for name in ["model", "storage", "sql", "engine", "api", "dayfly"] {
        let order = printed_order(&page, name);
        let source = root().join("crates").join(name).join("src");
        let mut modules: Vec<String> = module_names(&source);
        modules.sort_unstable();
        let mut printed = order.clone();
        printed.sort_unstable();
        assert_eq!(printed, modules, "ARCHITECTURE.md does not have the modules of {name}");
        let place = |module: &str| order.iter().position(|known| known == module);
        for module in &modules {
            for used in used_by(&source, module) {
                assert!(
                    order.contains(&used) || !HIDES_NOTHING.contains(&name),
                    "{name}: what `{module}` calls `crate::{used}` hides whose it is"
                );
                assert!(
                    place(&used) <= place(module) || !order.contains(&used),
                    "{name}: `{module}` uses `{used}`, which comes after it in ARCHITECTURE.md"
                );
            }
        }
    }
}

/// The crates in which a reader knows a type by its name alone.
const ONE_MEANING: [&str; 6] = ["model", "storage", "sql", "engine", "api", "dayfly"];

#[test]
fn a_name_is_one_type_within_a_crate() {
    let mut twice = Vec::new();
    for name in ONE_MEANING {
        let mut known: BTreeMap<String, PathBuf> = BTreeMap::new();
        for file in sources(root().join("crates").join(name).join("src")) {
            for defined in types(&fs::read_to_string(&file).unwrap()) {
                if let Some(other) = known.insert(defined.clone(), file.clone()) {
                    let (other, file) = (other.display(), file.display());
                    twice.push(format!("{name}: `{defined}` in {other} and in {file}"));
                }
            }
        }
        assert!(known.len() > 20, "{name} has {} types", known.len());
    }
    assert!(twice.is_empty(), "{twice:#?}");
}

/// What a crate takes from one below it is not called like something of its own.
#[test]
fn a_name_is_one_type_across_an_arrow() {
    let mut twice = Vec::new();
    for name in ONE_MEANING {
        let files = sources(root().join("crates").join(name).join("src"));
        let texts: Vec<String> =
            files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let own: BTreeSet<String> = texts.iter().flat_map(|text| types(text)).collect();
        for (file, text) in files.iter().zip(&texts) {
            let taken = from_other_crates(text).into_iter().filter(|taken| own.contains(taken));
            twice.extend(taken.map(|taken| format!("{name}: `{taken}` in {}", file.display())));
        }
    }
    assert!(twice.is_empty(), "{twice:#?}");
}

/// The types of our other crates that a text names, but for its tests.
fn from_other_crates(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let mut names = Vec::new();
    for rest in text.split("dayfly_").skip(1) {
        let Some((_, path)) = rest.split_once("::") else { continue };
        let is_of_path = |c: char| c.is_alphanumeric() || "_:{}, \n".contains(c);
        let path = &path[..path.find(|c| !is_of_path(c)).unwrap_or(path.len())];
        let (path, group) = path.split_once('{').unwrap_or((path, ""));
        let group = group.split('}').next().unwrap();
        let last = path.split([' ', ',', '\n', '}']).next().unwrap().rsplit("::").next();
        let words = last.into_iter().chain(group.split(',').map(str::trim));
        let is_type = |name: &&str| name.starts_with(char::is_uppercase) && !name.contains(' ');
        names.extend(words.filter(is_type).map(str::to_owned));
    }
    names
}

#[test]
fn what_is_known_in_memory_is_named_by_its_type() {
    let page = read("ARCHITECTURE.md");
    let (_, rows) = page.split_once("| what | where | true until |\n|---|---|---|\n").unwrap();
    let rows = rows.lines().take_while(|line| line.starts_with('|'));
    let places: Vec<&str> = rows.map(|row| row.split('|').nth(2).unwrap().trim()).collect();
    assert!(places.len() > 15, "{places:?}");
    for place in places {
        let (name, named) = place.split_once(", ").unwrap();
        let files = sources(root().join("crates").join(name).join("src"));
        let known: Vec<String> =
            files.iter().flat_map(|file| types(&fs::read_to_string(file).unwrap())).collect();
        for named in named.split('`').skip(1).step_by(2) {
            assert!(known.iter().any(|known| known == named), "{name} has no `{named}`");
        }
    }
}

/// The files of a folder and of those in it, but for tests.
fn sources(folder: PathBuf) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.file_stem().unwrap().to_str() {
                Some(name) if name.ends_with("tests") => {}
                _ if path.is_dir() => folders.push(path),
                _ => files.push(path),
            }
        }
    }
    files
}

/// The types that a text defines, but for its tests and for those of a trait, which
/// are indented.
fn types(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let defined = |line: &str| {
        let line = line.trim_start();
        let words =
            line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
        let mut words = words.skip_while(|word| ["pub", "crate", "super", "in"].contains(word));
        let is_type = ["struct", "enum", "union", "trait", "type"].contains(&words.next()?);
        let is_code = line.starts_with(char::is_alphabetic);
        words.next().filter(|_| is_type && is_code).map(str::to_owned)
    };
    let of_trait = |line: &&str| line.starts_with("    ") && line.trim_start().starts_with("type ");
    text.lines().filter(|line| !of_trait(line)).filter_map(defined).collect()
}

/// The words of the paragraph that begins with `` `name`: ``.
fn printed_order(page: &str, name: &str) -> Vec<String> {
    let start = format!("- `{name}`: ");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no order of {name}"));
    let words = rest.split("\n-").next().unwrap().split("\n\n").next().unwrap();
    words.split([',', ' ', '\n', '.']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn module_names(source: &Path) -> Vec<String> {
    let names = fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path());
    let names = names.filter(|path| path.is_dir() || path.extension().is_some_and(|e| e == "rs"));
    let mut names: Vec<String> =
        names.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !["lib", "main", "tests"].contains(&name.as_str()));
    names
}

/// The modules of the same crate that the files of one name, but for their tests.
fn used_by(source: &Path, module: &str) -> Vec<String> {
    let mut files = sources(source.join(module));
    files.push(source.join(format!("{module}.rs")));
    let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
    let mut used: Vec<String> = texts.flat_map(|text| named(&text)).collect();
    used.sort_unstable();
    used.dedup();
    used.retain(|name| name != module);
    used
}

/// What follows each `crate::`, also within braces.
fn named(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    let text = lines.collect::<Vec<_>>().join("\n");
    let mut names = Vec::new();
    for rest in text.split("crate::").skip(1) {
        let word = |text: &str| {
            text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
        };
        let Some(group) = rest.strip_prefix('{') else {
            names.push(word(rest));
            continue;
        };
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    names.push(word(&group[start..at]));
                    start = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    names
}

/// What only some files may say, as far as that can be seen: the invariants of
/// ARCHITECTURE.md that a machine can check. The lint of clippy.toml has the clocks.
#[test]
fn what_is_said_in_one_place_is_said_nowhere_else() {
    for (what, folder, needle, places) in [
        ("liveness is asked of `Liveness`", "engine", "life().is_dead(", &["liveness.rs"][..]),
        ("liveness is asked of `Liveness`", "engine", "life.is_dead(", &["liveness.rs"]),
        // What they read is not shown, or an entry has said already that it is alive; a log
        // shows what was, whether or not it is.
        (
            "a stored record is judged",
            "engine",
            "Record::decode",
            &["record.rs", "check.rs", "purge/candidates.rs", "items/sight.rs", "log.rs"],
        ),
        ("keys are built in one file", "engine", "[b\"", &["keys.rs"]),
        ("an item dies by `FeedRow::bury`", "engine", "delete(keys::item(", &["rows.rs"]),
        ("every response leaves by one function", "api", "Response::new(", &["reply.rs"]),
        ("every response leaves by one function", "api", "Response::builder(", &[]),
        ("every response leaves by one function", "dayfly", "Response::new(", &[]),
        ("every frame leaves by one function", "api", "Framed { head", &["direct/answer.rs"]),
        ("every response leaves by one function", "dayfly", "Response::builder(", &[]),
        ("what is tested is what is shipped", "engine", "cfg!(test)", &[]),
    ] {
        let source = root().join("crates").join(folder).join("src");
        for (file, text) in named_sources(&source) {
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            if text.contains(needle) {
                assert!(places.contains(&&*file), "{what}, but {folder}/src/{file} has '{needle}'");
            }
        }
    }
}

/// All files of a crate but those of its tests, with their names.
fn named_sources(source: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![source.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(source).unwrap().to_string_lossy().into_owned();
            match path.file_stem().unwrap().to_str() {
                Some(stem) if stem.ends_with("tests") => {}
                _ if path.is_dir() => folders.push(path),
                _ => found.push((name, fs::read_to_string(path).unwrap())),
            }
        }
    }
    found
}
