//! Plays test files, a few at the same time, each beside its own server.
//!
//! The suites want `localhost:8081` and nothing else, but for some tests that want
//! the same on port 8903. In a network namespace of its own every file has these
//! ports for itself. Where the machine allows no namespaces, one file after the other
//! takes the machine's own ports.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Case, Suite};
use crate::server::Server;
use crate::{Result, failed};

/// Starts a server and a command in the same namespace.
const BESIDE: &str = "tests/sdk/suite/beside";

/// Where some tests look for the same server.
const COMPUTE_GATEWAY: &str = "127.0.0.1:8903";

/// A file that takes longer than this is ended. Its tests have limits of their own.
const FILE_LIMIT: Duration = Duration::from_mins(15);

/// How often a file that is being played is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// What became of the tests, by file.
pub(crate) type Played = BTreeMap<String, Vec<Case>>;

pub(crate) struct Player<'a> {
    suite: &'a dyn Suite,
    /// The server's command line, in words without blanks.
    server: String,
    workers: usize,
    own_network: bool,
    /// For what the processes print and note.
    logs: PathBuf,
}

/// A folder with the certificate and the key of all servers.
pub(crate) struct Certificate(PathBuf);

impl Certificate {
    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("tls.pem")
    }
}

/// A certificate that a dayfly makes, before several want it at the same time.
pub(crate) fn certificate(program: &Path, folder: &Path) -> Result<Certificate> {
    let kept = folder.join("certificate");
    // Another version of dayfly may have left it.
    let _ = fs::remove_dir_all(&kept);
    Server::start(program, &kept)?.stop()?;
    Ok(Certificate(kept))
}

/// The command line of a dayfly that forgets everything when it ends.
pub(crate) fn dayfly(program: &Path, certificate: &Certificate) -> Result<String> {
    let (program, folder) = (word(program)?, word(&certificate.0)?);
    Ok(format!("{program} --memory --tls-dir {folder} --compute-listen {COMPUTE_GATEWAY}"))
}

/// The command line of the stub.
pub(crate) fn stub(certificate: &Certificate) -> Result<String> {
    let script = std::path::absolute("tests/sdk/suite/stub_server.py").map_err(failed("stub"))?;
    Ok(format!("python3 {} {}", word(&script)?, word(&certificate.file())?))
}

/// A path that a shell takes for one word.
fn word(path: &Path) -> Result<&str> {
    let text = path.to_str().filter(|text| !text.contains(char::is_whitespace));
    text.ok_or_else(|| format!("{} has a blank: move the project", path.display()))
}

impl<'a> Player<'a> {
    pub(crate) fn new(
        suite: &'a dyn Suite,
        server: String,
        workers: usize,
        folder: &Path,
    ) -> Result<Player<'a>> {
        let logs = folder.join("logs").join(suite.name());
        fs::create_dir_all(&logs).map_err(failed("the folder for logs"))?;
        let own_network = has_namespaces();
        if !own_network {
            println!("no network namespaces here: one file at a time on the machine's ports");
        }
        let workers = if own_network { workers.max(1) } else { 1 };
        Ok(Player { suite, server, workers, own_network, logs })
    }

    /// Plays the files and says what became of each test.
    pub(crate) fn play(&self, files: &[String]) -> Result<Played> {
        let waiting = Mutex::new(files.iter().cloned().collect::<VecDeque<_>>());
        let played = Mutex::new(Played::new());
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..self.workers).map(|_| scope.spawn(|| self.work(&waiting, &played))).collect();
            workers.into_iter().try_for_each(|worker| {
                worker.join().unwrap_or_else(|_| Err("a worker has panicked".to_owned()))
            })
        })?;
        Ok(played.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn work(&self, waiting: &Mutex<VecDeque<String>>, played: &Mutex<Played>) -> Result<()> {
        loop {
            let file = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(file) = file else { return Ok(()) };
            let cases = self.play_one(&file)?;
            played.lock().unwrap_or_else(PoisonError::into_inner).insert(file, cases);
        }
    }

    fn play_one(&self, file: &str) -> Result<Vec<Case>> {
        let begun = Instant::now();
        let log = |ending| self.logs.join(format!("{}.{ending}", file.replace('/', ".")));
        let (printed, notes) = (log("log"), log("notes"));
        // Of an earlier run, if there was one.
        let _ = fs::remove_file(&notes);
        let output = File::create(&printed).map_err(failed("a log"))?;
        let errors = output.try_clone().map_err(failed("a log"))?;
        let mut command = self.beside(&self.suite.command(file, &notes))?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let mut child = command.spawn().map_err(failed("starting a test file"))?;
        wait_or_end(&mut child, begun + FILE_LIMIT)?;

        let printed = fs::read(&printed).map_err(failed("a log"))?;
        let notes = fs::read_to_string(&notes).unwrap_or_default();
        let cases = self.suite.read(file, &String::from_utf8_lossy(&printed), &notes);
        let passed = cases.iter().filter(|case| case.outcome == super::Outcome::Passed).count();
        println!("{file}: {passed} of {} in {:.1?}", cases.len(), begun.elapsed());
        Ok(cases)
    }

    /// The command, beside a server, in a namespace if there are any.
    fn beside(&self, command: &Command) -> Result<Command> {
        let script = std::path::absolute(BESIDE).map_err(failed(BESIDE))?;
        let mut outer = if self.own_network {
            let mut outer = Command::new("unshare");
            outer.args(NAMESPACES).arg(script);
            outer
        } else {
            let mut outer = Command::new(script);
            outer.env("SUITE_NETWORK", "shared");
            outer
        };
        outer.arg(command.get_program()).args(command.get_args());
        outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        outer.env("SUITE_SERVER", &self.server);
        if let Some(folder) = command.get_current_dir() {
            outer.current_dir(folder);
        }
        Ok(outer)
    }
}

/// All of a file's processes are in one namespace of processes, so that they end
/// together.
const NAMESPACES: [&str; 6] =
    ["--map-root-user", "--net", "--pid", "--mount-proc", "--fork", "--kill-child"];

fn has_namespaces() -> bool {
    let mut command = Command::new("unshare");
    command.args(NAMESPACES).args(["ip", "link", "set", "lo", "up"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Waits until a process ends, and ends it at a time.
fn wait_or_end(child: &mut Child, limit: Instant) -> Result<()> {
    while child.try_wait().map_err(failed("waiting for a test file"))?.is_none() {
        if Instant::now() > limit {
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let pid = pid.ok_or("the process has no number")?;
            kill_process(pid, Signal::TERM).map_err(failed("ending a test file"))?;
            child.wait().map_err(failed("waiting for a test file"))?;
            return Ok(());
        }
        std::thread::sleep(GLANCE);
    }
    Ok(())
}
