//! `mutants`: plants one bug after the other and sees that a test finds each.
//!
//! The bugs are patches in `xtask/mutants`; none of them is in the source. The
//! first line of a patch says what it breaks. The tracked files are copied into
//! the target folder, so nothing here is touched; all mutants share one build
//! folder, so each costs the build of what it changed. The unchanged copy is
//! tested first: a test that always fails catches nothing.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{Result, cargo, failed};

/// The crates whose tests are to find the bugs.
const PACKAGES: [&str; 3] = ["dayfly-model", "dayfly-storage", "dayfly-engine"];

/// Longer than any build.
const BUILD_PATIENCE: Duration = Duration::from_mins(15);

/// Longer than all tests take.
const PATIENCE: Duration = Duration::from_mins(5);

#[derive(Args)]
pub(crate) struct Options {
    /// Only mutants with this in their name.
    #[arg(long)]
    only: Option<String>,
    /// Only tests with this in their name, to see what they catch alone.
    #[arg(long)]
    tests: Option<String>,
}

/// How the tests of a tree end.
enum End {
    Passed,
    /// The first test that failed, or what else went wrong.
    Failed(String),
    Unbuilt,
}

/// Plants each bug, and prints what caught it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let here = Workshop::open()?;
    let patches = here.patches(options.only.as_deref())?;
    here.restore()?;
    println!("{:<44} {:>6}  caught by", "mutant", "s");
    let (end, seconds) = here.test("none", options.tests.as_deref())?;
    match end {
        End::Passed => println!("{:<44} {seconds:>6}  nothing, as it should be", "(none)"),
        End::Failed(test) => return Err(format!("without a mutant, this fails: {test}")),
        End::Unbuilt => return Err("without a mutant, the tests do not build".to_owned()),
    }
    let mut wrong = 0;
    for patch in &patches {
        here.restore()?;
        let name = patch.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (caught, seconds) = if here.apply(patch)? {
            let (end, seconds) = here.test(&name, options.tests.as_deref())?;
            let told = match end {
                End::Failed(test) => Ok(test),
                End::Passed => Err("NOTHING: it survives"),
                End::Unbuilt => Err("NOTHING: it does not build"),
            };
            (told, seconds)
        } else {
            (Err("NOTHING: the patch does not apply any more"), 0)
        };
        wrong += usize::from(caught.is_err());
        println!("{name:<44} {seconds:>6}  {}", caught.as_deref().unwrap_or_else(|why| why));
    }
    match wrong {
        0 => Ok(()),
        _ => Err(format!("{wrong} of {} mutants were not caught", patches.len())),
    }
}

/// Where the mutants are made.
struct Workshop {
    root: PathBuf,
    folder: PathBuf,
}

impl Workshop {
    fn open() -> Result<Workshop> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().map_err(failed("looking for the project"))?;
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        let folder = root.join(target).join("mutants");
        fs::create_dir_all(folder.join("tree")).map_err(failed("making a folder"))?;
        Ok(Workshop { root, folder })
    }

    fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    fn patches(&self, only: Option<&str>) -> Result<Vec<PathBuf>> {
        let folder = self.root.join("xtask/mutants");
        let entries = fs::read_dir(folder).map_err(failed("reading the mutants"))?;
        let mut patches: Vec<PathBuf> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "patch"))
            .filter(|path| only.is_none_or(|only| path.to_string_lossy().contains(only)))
            .collect();
        patches.sort();
        Ok(patches)
    }

    /// Makes the copy the same as the tracked files. What is the same already
    /// stays as it is, so that it is not built again.
    fn restore(&self) -> Result<()> {
        let listed = Command::new("git")
            .args(["ls-files", "-z"])
            .current_dir(&self.root)
            .output()
            .map_err(failed("git ls-files"))?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let tracked: HashSet<&str> = listed.split('\0').filter(|name| !name.is_empty()).collect();
        for name in &tracked {
            // A file may be tracked and gone.
            let Ok(wanted) = fs::read(self.root.join(name)) else { continue };
            let copy = self.tree().join(name);
            if fs::read(&copy).is_ok_and(|found| found == wanted) {
                continue;
            }
            let folder = copy.parent().unwrap_or(&copy);
            fs::create_dir_all(folder).map_err(failed("making a folder"))?;
            fs::write(&copy, wanted).map_err(failed("copying"))?;
        }
        self.remove_others(&self.tree(), &tracked)
    }

    fn remove_others(&self, folder: &Path, tracked: &HashSet<&str>) -> Result<()> {
        for entry in fs::read_dir(folder).map_err(failed("reading the copy"))? {
            let path = entry.map_err(failed("reading the copy"))?.path();
            if path.is_dir() {
                self.remove_others(&path, tracked)?;
            } else if let Ok(name) = path.strip_prefix(self.tree())
                && !tracked.contains(&*name.to_string_lossy())
            {
                fs::remove_file(&path).map_err(failed("tidying the copy"))?;
            }
        }
        Ok(())
    }

    /// Plants a bug. `false`: the source has changed, and the patch has not.
    fn apply(&self, patch: &Path) -> Result<bool> {
        let applied = Command::new("git")
            .args(["apply", "--whitespace=nowarn"])
            .arg(patch)
            .current_dir(self.tree())
            // The copy stands inside the project, and is not part of it.
            .env("GIT_CEILING_DIRECTORIES", &self.folder)
            .status()
            .map_err(failed("git apply"))?;
        Ok(applied.success())
    }

    /// Runs the tests of the copy up to the first that fails.
    fn test(&self, name: &str, filter: Option<&str>) -> Result<(End, u64)> {
        let started = Instant::now();
        let log = self.folder.join(format!("{name}.log"));
        let log = File::create(log).map_err(failed("making a log"))?;
        let errors = log.try_clone().map_err(failed("making a log"))?;
        let mut command = cargo();
        command.args(["test", "--locked", "--lib", "--tests"]);
        command.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
        command.args(filter);
        let mut child = command
            .current_dir(self.tree())
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(failed("cargo test"))?;
        let end = watch(&mut child, log);
        Ok((end?, started.elapsed().as_secs()))
    }
}

/// Reads what the tests say, and ends them when one has failed.
fn watch(child: &mut Child, mut log: File) -> Result<End> {
    let lines = lines_of(child)?;
    let mut until = Instant::now() + BUILD_PATIENCE;
    let mut built = false;
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                writeln!(log, "{line}").map_err(failed("writing a log"))?;
                if !built && line.starts_with("running ") {
                    built = true;
                    until = Instant::now() + PATIENCE;
                }
                if let Some(test) = line.strip_prefix("test ")
                    && let Some(test) = test.strip_suffix(" ... FAILED")
                {
                    end(child)?;
                    return Ok(End::Failed(test.to_owned()));
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                end(child)?;
                let endless = || End::Failed("a test that does not end".to_owned());
                return Ok(if built { endless() } else { End::Unbuilt });
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait().map_err(failed("cargo test"))?;
    Ok(match (status.success(), built) {
        (true, _) => End::Passed,
        (false, true) => End::Failed("tests that broke off".to_owned()),
        (false, false) => End::Unbuilt,
    })
}

fn lines_of(child: &mut Child) -> Result<Receiver<String>> {
    let stdout = child.stdout.take().ok_or("cargo test says nothing")?;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    Ok(lines)
}

/// Ends cargo and the tests it runs.
fn end(child: &mut Child) -> Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        kill_process_group(group, Signal::KILL).map_err(failed("ending the tests"))?;
    }
    child.wait().map_err(failed("ending the tests"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    /// Asks git whether a patch fits the files as they are, committed or not.
    fn fits(root: &Path, patch: &Path, options: &[&str]) -> std::io::Result<bool> {
        let mut command = Command::new("git");
        command.args(["apply", "--check", "--whitespace=nowarn"]).args(options).arg(patch);
        // Neither an index nor a repository is needed, and none above a copy is asked.
        command.env_remove("GIT_DIR").env_remove("GIT_INDEX_FILE");
        command.env("GIT_CEILING_DIRECTORIES", root.parent().unwrap_or(root));
        let output = command.current_dir(root).stdin(Stdio::null()).output()?;
        Ok(output.status.success())
    }

    /// A bug whose patch does not apply any more is planted by nobody, and nobody would know
    /// until all of them are tried.
    #[test]
    fn every_mutant_can_be_planted() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
        let here = Workshop { folder: root.join("target/mutants"), root: root.clone() };
        let patches = here.patches(None).unwrap();
        assert!(patches.len() > 100, "{} mutants", patches.len());
        let mut stale = Vec::new();
        for patch in &patches {
            // Somebody may have planted one by hand, to look at it.
            let planted = || fits(&root, patch, &["--reverse"]);
            match fits(&root, patch, &[]).and_then(|fits| Ok(fits || planted()?)) {
                Ok(true) => {}
                Ok(false) => stale.push(patch.file_name().unwrap().to_string_lossy().into_owned()),
                Err(why) if why.kind() == ErrorKind::NotFound => {
                    println!("There is no git: no mutant was tried.");
                    return;
                }
                Err(why) => panic!("git apply: {why}"),
            }
        }
        assert!(
            stale.is_empty(),
            "the source has changed, and these have not; make each anew with the same meaning:\n{}",
            stale.join("\n")
        );
    }
}
