//! `start`: what it takes to start on an empty folder and answer a first
//! write, how much memory the server has when nobody asks anything, how much of
//! it for each connection that asks nothing any more, and how large it is.

use std::thread;
use std::time::{Duration, Instant};

use super::Bench;
use super::create::prepare;
use super::item::DATABASE;
use super::report::{Bar, Report};
use crate::server::{Server, cpu_of_children};
use crate::wire::Client;
use crate::{Result, failed};

/// CPU time is counted in ticks of 10 ms, so many starts are added up.
const STARTS: u32 = 20;

const IDLE: Duration = Duration::from_secs(5);

const CPU_MS_BAR: f64 = 100.0;
const IDLE_MIB_BAR: f64 = 25.0;
const CONNECTION_KIB_BAR: f64 = 32.0;
const BINARY_MB_BAR: f64 = 25.0;

/// Connections in clear text that have asked once. Some are there before it is
/// measured, so that what the first ones take for all is not theirs. Not so many
/// that we run out of files.
const CONNECTIONS_BEFORE: usize = 100;
const CONNECTIONS: usize = 800;

pub(super) fn run(bench: &Bench) -> Result<Report> {
    let (cpu_before, started) = (cpu_of_children()?, Instant::now());
    for number in 0..STARTS {
        let data = bench.folder.path().join(format!("start-{number}"));
        let mut server = Server::start(&bench.program, &data)?;
        server.connect()?.must("POST", "/dbs", &[], "{\"id\":\"first\"}")?;
        server.kill()?;
    }
    let cpu = cpu_of_children()?.saturating_sub(cpu_before) / STARTS;
    let wall = started.elapsed() / STARTS;

    let server = Server::start(&bench.program, &bench.folder.path().join("idle"))?;
    prepare(&server)?;
    thread::sleep(IDLE);
    let idle = server.rss_bytes()? as f64 / 1024.0 / 1024.0;
    let connection = connection_bytes(&server)? / 1024.0;
    let binary = std::fs::metadata(&bench.program).map_err(failed("the binary"))?.len();

    let mut report = Report::new("start");
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    report.note("cold start to the first answered write", format!("{:.1} ms", milliseconds(wall)));
    report.judge("CPU of it", milliseconds(cpu), " ms", Bar::AtMost(CPU_MS_BAR));
    report.judge("memory when idle, after 5 s", idle, " MiB", Bar::AtMost(IDLE_MIB_BAR));
    let bar = Bar::AtMost(CONNECTION_KIB_BAR);
    report.judge("memory of an idle connection", connection, " KiB", bar);
    report.judge("size of the binary", binary as f64 / 1e6, " MB", Bar::AtMost(BINARY_MB_BAR));
    Ok(report)
}

/// What a connection takes that has asked once and is kept.
fn connection_bytes(server: &Server) -> Result<f64> {
    let connect = |_| {
        let mut client = server.connect()?;
        client.must("GET", &format!("/dbs/{DATABASE}/colls"), &[], "")?;
        Ok(client)
    };
    let _before: Vec<Client> = (0..CONNECTIONS_BEFORE).map(connect).collect::<Result<_>>()?;
    let before = server.rss_bytes()?;
    let _idle: Vec<Client> = (0..CONNECTIONS).map(connect).collect::<Result<_>>()?;
    let grown = server.rss_bytes()?.saturating_sub(before);
    Ok(grown as f64 / CONNECTIONS as f64)
}
