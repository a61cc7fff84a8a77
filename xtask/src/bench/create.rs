//! `create`: durable writes a second, against the storage engine alone.
//!
//! 64 connections, each waiting for its write to be on the disk. Then the same
//! rows go into bare fjall from a loop, with as many commits in a batch as the
//! server had on average, and the same syncs. Both on a fresh folder each
//! time, in turns; the medians are compared.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::item::{
    Creates, DATABASE, ITEM_BYTES, Items, LARGE_BYTES, definition, replace_head, replace_request,
};
use super::load::{self, Done, Until};
use super::report::{Bar, Report};
use super::{Bench, median};
use crate::random::Random;
use crate::server::Server;
use crate::wire::Signer;
use crate::{Result, failed};

const CONNECTIONS: usize = 64;
/// The disk of a shared machine is uneven, so there are many.
const ROUNDS: u32 = 7;

/// At least this much of the engine's own rate.
const BAR: f64 = 0.5;

/// One item in so many is large, where large ones are in the mix.
const LARGE_EVERY: u64 = 200;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mix {
    /// New items of 1 KB.
    Create,
    /// New versions of random items of 1 KB.
    Replace,
    /// New items of 1 KB, and a few of 2 MB.
    Large,
    /// Items of 1 KB that go again.
    Purge,
}

impl Mix {
    /// How large an item is.
    pub(super) fn bytes(self, number: u64) -> usize {
        match self {
            Mix::Large if number % LARGE_EVERY == LARGE_EVERY - 1 => LARGE_BYTES,
            _ => ITEM_BYTES,
        }
    }

    /// How many are written in a round.
    fn count(self) -> u64 {
        match self {
            Mix::Create | Mix::Replace | Mix::Purge => 60_000,
            Mix::Large => 12_000,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Mix::Create => "create",
            Mix::Replace => "replace",
            Mix::Large => "create, one in 200 of 2 MB",
            Mix::Purge => "purge",
        }
    }
}

/// What the server did in a round.
struct Round {
    per_second: f64,
    cpu_us: f64,
    group: f64,
    stall_seconds: f64,
}

pub(super) fn run(bench: &Bench) -> Result<Report> {
    let mut report = Report::new("create");
    for mix in [Mix::Create, Mix::Replace, Mix::Large] {
        let (mut ours, mut theirs, mut cpus, mut groups) = (vec![], vec![], vec![], vec![]);
        let mut stalled = 0.0;
        for number in 1..=ROUNDS {
            let round = served(bench, mix)?;
            let raw = raw(bench, mix, mix.count(), round.group)?;
            println!(
                "{}, round {number}: dayfly {:.0}/s with {:.1} in a group and {:.1} us of CPU, \
                 bare fjall {raw:.0}/s",
                mix.name(),
                round.per_second,
                round.group,
                round.cpu_us
            );
            ours.push(round.per_second);
            theirs.push(raw);
            cpus.push(round.cpu_us);
            groups.push(round.group);
            stalled += round.stall_seconds;
        }
        let (ours, theirs, name) = (median(ours), median(theirs), mix.name());
        report.note(format!("{name}: dayfly"), format!("{ours:.0}/s"));
        report.note(format!("{name}: bare fjall"), format!("{theirs:.0}/s"));
        report.note(format!("{name}: commits in a group"), format!("{:.1}", median(groups)));
        report.note(format!("{name}: server CPU of a write"), format!("{:.1} us", median(cpus)));
        report.note(format!("{name}: committer stalled"), format!("{stalled:.2} s"));
        report.judge(format!("{name}: ratio"), ours / theirs, "", Bar::AtLeast(BAR));
    }
    Ok(report)
}

/// The server writes, on a fresh folder.
fn served(bench: &Bench, mix: Mix) -> Result<Round> {
    let folder = tempfile::tempdir_in(bench.folder.path()).map_err(failed("a folder"))?;
    let server = Server::start(&bench.program, &folder.path().join("data"))?;
    prepare(&server)?;
    if mix == Mix::Replace {
        creates(&server, Mix::Create, 0, mix.count())?;
    }
    let before = Figures::of(&server)?;
    let done = match mix {
        Mix::Create | Mix::Large | Mix::Purge => creates(&server, mix, 0, mix.count())?,
        Mix::Replace => replaces(&server, mix.count())?,
    };
    let after = Figures::of(&server)?;
    Ok(Round {
        per_second: done.per_second(),
        cpu_us: after.cpu.saturating_sub(before.cpu).as_secs_f64() * 1e6 / done.requests as f64,
        group: (after.commits - before.commits) / (after.groups - before.groups).max(1.0),
        stall_seconds: after.stall_seconds - before.stall_seconds,
    })
}

struct Figures {
    cpu: Duration,
    commits: f64,
    groups: f64,
    stall_seconds: f64,
}

impl Figures {
    fn of(server: &Server) -> Result<Figures> {
        Ok(Figures {
            cpu: server.cpu()?,
            commits: server.metric("dayfly_commits_total")?,
            groups: server.metric("dayfly_commit_groups_total")?,
            stall_seconds: server.metric("dayfly_commit_stall_seconds_total")?,
        })
    }
}

/// Makes the database and the container.
pub(super) fn prepare(server: &Server) -> Result<()> {
    let mut client = server.connect()?;
    client.must("POST", "/dbs", &[], &format!("{{\"id\":\"{DATABASE}\"}}"))?;
    let path = format!("/dbs/{DATABASE}/colls");
    client.must("POST", &path, &[], &definition()).map(|_| ())
}

/// Creates `count` items, from number `first` on.
pub(super) fn creates(server: &Server, mix: Mix, first: u64, count: u64) -> Result<Done> {
    let creates = Creates::new(&Signer::new()?);
    let items = Items::new();
    let mut number = first;
    let mut json = String::new();
    load::run(server.address, CONNECTIONS, Until::Sent(count), move |buffer| {
        items.put_json(number, 0, mix.bytes(number), &mut json);
        creates.request(number, &json, buffer);
        number += 1;
    })
}

/// Replaces `count` random items among as many.
fn replaces(server: &Server, count: u64) -> Result<Done> {
    let signer = Signer::new()?;
    let heads: Vec<String> = (0..count).map(|number| replace_head(&signer, number)).collect();
    let items = Items::new();
    let mut random = Random::new(3);
    let mut version = 0;
    let mut json = String::new();
    load::run(server.address, CONNECTIONS, Until::Sent(count), move |buffer| {
        let number = random.below(count);
        version += 1;
        let head = heads.get(usize::try_from(number).unwrap_or(0)).map_or("", String::as_str);
        items.put_json(number, version, ITEM_BYTES, &mut json);
        replace_request(head, number, &json, buffer);
    })
}

/// Bare fjall writes the same, in a process of its own, on a fresh folder.
/// Returns how many commits a second.
pub(super) fn raw(bench: &Bench, mix: Mix, items: u64, group: f64) -> Result<f64> {
    let folder = tempfile::tempdir_in(bench.folder.path()).map_err(failed("a folder"))?;
    let ours = std::env::current_exe().map_err(failed("looking for our own program"))?;
    let mix_name = match mix {
        Mix::Create => "create",
        Mix::Replace => "replace",
        Mix::Large => "large",
        Mix::Purge => "purge",
    };
    let output = raw_command(&ours, &folder.path().join("fjall"), mix_name, items, group)
        .output()
        .map_err(failed("starting bare fjall"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| {
        format!("bare fjall said '{text}' and '{}'", String::from_utf8_lossy(&output.stderr))
    })
}

fn raw_command(program: &Path, folder: &Path, mix: &str, items: u64, group: f64) -> Command {
    let mut command = Command::new(program);
    command.args(["raw", "--mix", mix, "--folder"]).arg(folder);
    command.args(["--items", &items.to_string(), "--group", &group.to_string()]);
    command
}
