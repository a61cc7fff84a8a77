//! A build of the server with a container of some size, and both builds with the
//! same items.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use dayfly_storage::{Local, LocalOptions, Store as _, StoreHints as _};

use crate::bench::Bench;
use crate::bench::item::{Creates, DATABASE, read_request};
use crate::bench::load::{self, Until};
use crate::bench::query::data::{Data, definition};
use crate::bench::read::Requests;
use crate::bench::scale::recounted;
use crate::server::{Server, dayfly};
use crate::wire::Signer;
use crate::{Result, failed};

/// How many creates are on their way at once.
const CONNECTIONS: usize = 64;

/// How many items are written before a line says how far it is.
const TELL_EVERY: u64 = 200_000;

/// What the system counts a file's room in.
const BLOCK_BYTES: u64 = 512;

/// One of the two servers.
pub(super) struct Build<'b> {
    pub(super) name: &'static str,
    pub(super) program: &'b Path,
}

impl<'b> Build<'b> {
    pub(super) fn new(name: &'static str, program: &'b Path) -> Build<'b> {
        Build { name, program }
    }
}

/// A build that runs, with its items.
pub(super) struct Side {
    pub(super) server: Server,
    /// What its folder took before it started.
    pub(super) disk_bytes: u64,
}

/// Both builds with the same items: before, and now.
pub(super) struct Pair {
    pub(super) data: Rc<Data>,
    pub(super) sides: [Side; 2],
}

impl Pair {
    pub(super) fn new(bench: &Bench, builds: &[Build<'_>; 2], count: u64) -> Result<Pair> {
        let data = Rc::new(Data::new(count));
        let [before, now] = builds;
        // One after the other: a server that has something to do is no neighbour.
        let (before_folder, before_bytes) = filled(bench, before, &data)?;
        let (now_folder, now_bytes) = filled(bench, now, &data)?;
        let sides = [
            Side::start(before, &before_folder, before_bytes)?,
            Side::start(now, &now_folder, now_bytes)?,
        ];
        for side in &sides {
            recounted(&side.server)?;
        }
        Ok(Pair { data, sides })
    }

    /// A signed read of each item, in no order.
    pub(super) fn reads(&self) -> Result<Requests> {
        let signer = Signer::new()?;
        let numbers = (0..self.data.count).map(|place| self.data.rank(place));
        Ok(Rc::new(numbers.map(|number| read_request(&signer, number)).collect()))
    }
}

impl Side {
    fn start(build: &Build<'_>, folder: &Path, disk_bytes: u64) -> Result<Side> {
        Ok(Side { server: Server::start(build.program, folder)?, disk_bytes })
    }
}

/// Makes a folder with all items, compacted, and says how large it is.
fn filled(bench: &Bench, build: &Build<'_>, data: &Rc<Data>) -> Result<(PathBuf, u64)> {
    let folder = bench.folder.path().join(format!("{}-{}", build.name, data.count));
    println!("order: the build {} fills a folder with {} items", build.name, data.count);
    let mut command = dayfly(build.program, &folder);
    let server = Server::spawn(command.args(["--durability", "relaxed"]))?;
    let mut client = server.connect()?;
    client.must("POST", "/dbs", &[], &format!("{{\"id\":\"{DATABASE}\"}}"))?;
    client.must("POST", &format!("/dbs/{DATABASE}/colls"), &[], &definition())?;
    for first in (0..data.count).step_by(usize::try_from(TELL_EVERY).unwrap_or(1)) {
        if first > 0 {
            println!("filling: {first} of {} items", data.count);
        }
        create(&server, data, first, TELL_EVERY.min(data.count - first))?;
    }
    drop(client);
    server.stop()?;
    compact(&folder)?;
    let bytes = bytes_of(&folder)?;
    Ok((folder, bytes))
}

fn create(server: &Server, data: &Rc<Data>, first: u64, count: u64) -> Result<()> {
    let creates = Creates::new(&Signer::new()?);
    let (data, mut number) = (Rc::clone(data), first);
    load::run(server.address, CONNECTIONS, Until::Sent(count), move |buffer| {
        creates.request(number, &data.json(number), buffer);
        number += 1;
    })?;
    Ok(())
}

/// Merges all files, as the store does it: what its rows are is nothing to it, so
/// it can do that for either build.
fn compact(folder: &Path) -> Result<()> {
    let store = Local::open(folder, LocalOptions::default());
    let store = store.map_err(failed("opening the folder"))?;
    store.compact().map_err(failed("compacting"))?;
    store.close().map_err(failed("closing"))
}

/// What a folder takes on the disk.
fn bytes_of(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).map_err(failed("reading the folder"))? {
        let entry = entry.map_err(failed("reading the folder"))?;
        let metadata = entry.metadata().map_err(failed("reading the folder"))?;
        bytes += if metadata.is_dir() {
            bytes_of(&entry.path())?
        } else {
            metadata.blocks() * BLOCK_BYTES
        };
    }
    Ok(bytes)
}
