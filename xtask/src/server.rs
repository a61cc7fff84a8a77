//! A server process: started, measured, stopped or killed.
//!
//! What a process has used comes from `/proc`. Its CPU time counts in ticks of
//! 10 ms there, so whoever measures lets it work for seconds.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::wire::Client;
use crate::{Result, failed};

/// What `/proc` counts CPU time in.
const TICK: Duration = Duration::from_millis(10);

/// A running process; killed when dropped.
pub(crate) struct Server {
    child: Child,
    /// Kept, so that the server can write to it.
    _stdout: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts dayfly on a free port, with its data in `folder`, and waits until
    /// it says that it has started.
    pub(crate) fn start(program: &Path, folder: &Path) -> Result<Server> {
        Server::spawn(&mut dayfly(program, folder))
    }

    /// Starts a process that prints an `AccountEndpoint` and `Started`.
    pub(crate) fn spawn(command: &mut Command) -> Result<Server> {
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed("starting"))?;
        let Some(stdout) = child.stdout.take() else { return Err("no stdout".to_owned()) };
        let mut stdout = BufReader::new(stdout);
        match read_banner(&mut stdout) {
            Ok(port) => {
                let address = ([127, 0, 0, 1], port).into();
                Ok(Server { child, _stdout: stdout, address })
            }
            Err(sentence) => {
                let _ = child.kill();
                let ended = child.wait().map_err(failed("waiting"))?;
                Err(format!("the server did not start ({ended}): {sentence}"))
            }
        }
    }

    pub(crate) fn connect(&self) -> Result<Client> {
        Client::connect(self.address)
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill().map_err(failed("kill"))?;
        self.child.wait().map(|_| ()).map_err(failed("waiting for the end"))
    }

    /// Asks the server to end, and waits until it has.
    pub(crate) fn stop(mut self) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or("the process has no number")?;
        kill_process(pid, Signal::TERM).map_err(failed("asking the server to end"))?;
        let ended = self.child.wait().map_err(failed("waiting for the end"))?;
        if ended.success() { Ok(()) } else { Err(format!("the server ended with {ended}")) }
    }

    /// The CPU time it has used since `before`.
    pub(crate) fn cpu_since(&self, before: Duration) -> Result<Duration> {
        Ok(self.cpu()?.saturating_sub(before))
    }

    /// The CPU time it has used.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let [user, system, ..] = stat(&self.child.id().to_string())?;
        Ok(user + system)
    }

    /// The same, to the nanosecond: what the scheduler counts for each thread
    /// that is there.
    pub(crate) fn cpu_exact(&self) -> Result<Duration> {
        let path = format!("/proc/{}/task", self.child.id());
        let mut nanos = 0;
        for thread in std::fs::read_dir(&path).map_err(failed(&path))? {
            let path = thread.map_err(failed(&path))?.path().join("schedstat");
            // A thread may end meanwhile.
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            nanos += text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(nanos))
    }

    /// Its memory that is in RAM, in bytes.
    pub(crate) fn rss_bytes(&self) -> Result<u64> {
        self.status_bytes("VmRSS:")
    }

    /// The most of it that there ever was.
    pub(crate) fn rss_peak_bytes(&self) -> Result<u64> {
        self.status_bytes("VmHWM:")
    }

    /// How many threads it has.
    pub(crate) fn threads(&self) -> Result<usize> {
        let path = format!("/proc/{}/task", self.child.id());
        Ok(std::fs::read_dir(&path).map_err(failed(&path))?.count())
    }

    fn status_bytes(&self, name: &str) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(&path).map_err(failed(&path))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| format!("{path} has no {name}"))
    }

    /// A number from `/metrics`; of one that has labels, the sum.
    pub(crate) fn metric(&self, name: &str) -> Result<f64> {
        let text = self.connect()?.must("GET", "/metrics", &[], "")?.body;
        let text = String::from_utf8_lossy(&text).into_owned();
        let values: Vec<f64> = text.lines().filter_map(|line| sample(line, name)).collect();
        if values.is_empty() {
            return Err(format!("/metrics has no {name}"));
        }
        Ok(values.into_iter().sum())
    }
}

/// The value in a line of metrics, if it is one of `name`.
fn sample(line: &str, name: &str) -> Option<f64> {
    let rest = line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '{']))?;
    rest.rsplit(' ').next()?.parse().ok()
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command that starts dayfly, with nothing of ours in its environment.
pub(crate) fn dayfly(program: &Path, folder: &Path) -> Command {
    let mut command = bare(program);
    command.arg("--data").arg(folder);
    command
}

/// The same, with its data in memory.
pub(crate) fn dayfly_in_memory(program: &Path) -> Command {
    let mut command = bare(program);
    command.arg("--memory");
    command
}

fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DAYFLY_") {
            command.env_remove(name);
        }
    }
    command.env("DAYFLY_LOG", "warn");
    command.args(["--listen", "127.0.0.1:0"]).stdin(Stdio::null());
    command
}

/// The CPU time of all our children that have ended.
pub(crate) fn cpu_of_children() -> Result<Duration> {
    let [_, _, user, system] = stat("self")?;
    Ok(user + system)
}

fn read_banner(stdout: &mut BufReader<ChildStdout>) -> Result<u16> {
    let mut banner = String::new();
    while !banner.ends_with("Started\n") {
        if stdout.read_line(&mut banner).map_err(failed("reading its output"))? == 0 {
            return Err(format!("it ended after saying '{}'", banner.trim()));
        }
    }
    let endpoint = banner.split("AccountEndpoint=").nth(1).and_then(|rest| rest.split('/').nth(2));
    let port = endpoint.and_then(|host| host.rsplit(':').next()?.parse().ok());
    port.ok_or_else(|| format!("no port in '{banner}'"))
}

/// `utime`, `stime`, `cutime` and `cstime` of a process.
fn stat(process: &str) -> Result<[Duration; 4]> {
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path).map_err(failed(&path))?;
    // The name of the program may have spaces, and stands in parentheses.
    let fields = text.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks: Vec<u32> = fields.skip(11).take(4).filter_map(|ticks| ticks.parse().ok()).collect();
    match ticks.as_slice() {
        [user, system, waited_user, waited_system] => {
            Ok([user, system, waited_user, waited_system].map(|ticks| TICK * *ticks))
        }
        _ => Err(format!("{path} cannot be read")),
    }
}
