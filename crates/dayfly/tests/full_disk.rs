//! A server whose disk is really full: a small file system in memory, mounted
//! for the test. This needs root, or the right to mount.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

mod common;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Server, admin, dayfly, send};

const MIB: u64 = 1024 * 1024;

/// A small file system, gone with the test.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(folder.path())
            .output()
            .unwrap();
        assert!(
            mounted.status.success(),
            "This test mounts a small file system and may not: {}. Run it as root.",
            String::from_utf8_lossy(&mounted.stderr).trim()
        );
        SmallDisk(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

/// Writes a file until there are `left` bytes on the disk.
fn fill(disk: &SmallDisk, left: u64) -> PathBuf {
    let path = disk.path().join("filler");
    let mut file = fs::File::create(&path).unwrap();
    let page = [0; 4096];
    while free(disk) > left && file.write_all(&page).is_ok() {}
    path
}

fn free(disk: &SmallDisk) -> u64 {
    let space = rustix::fs::statvfs(disk.path()).unwrap();
    space.f_bavail * space.f_frsize
}

/// Asks until it is so, but not for ever.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    assert!((0..100_000).any(|_| is_so()), "never: {what}");
}

/// A database with a container and the items `0` to `count`.
fn fill_container(server: &Server, count: usize, body: &str) {
    assert_eq!(send(server, "POST", "/dbs", r#"{"id":"d"}"#).status, 201);
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":-1}"#;
    assert_eq!(send(server, "POST", "/dbs/d/colls", container).status, 201);
    for n in 0..count {
        let item = format!(r#"{{"id":"{n}","pk":"x"{body}}}"#);
        assert_eq!(send(server, "POST", DOCS, &item).status, 201);
    }
}

const DOCS: &str = "/dbs/d/colls/c/docs";

#[test]
fn a_server_below_the_reserve_starts_and_makes_room() {
    let disk = SmallDisk::new(160 * MIB);
    let data = disk.path().join("data");
    let body = format!(r#","ttl":1000,"text":"{}""#, "text ".repeat(20_000));
    let server = Server::start_in(&data, &["--test-clock"]);
    fill_container(&server, 3, "");
    for n in 0..100 {
        let item = format!(r#"{{"id":"dies {n}","pk":"x"{body}}}"#);
        assert_eq!(send(&server, "POST", DOCS, &item).status, 201);
    }
    server.terminate();
    assert!(server.ended().success());
    let filler = fill(&disk, 30 * MIB);

    let mut command = dayfly(&["--listen", "127.0.0.1:0", "--test-clock"]);
    command.arg("--data").arg(&data).stderr(Stdio::piped());
    let server = Server::spawn(&mut command);
    let ready = server.get("/ready");
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains("Free some space"), "{}", ready.body);
    assert_eq!(send(&server, "GET", &format!("{DOCS}/0"), "").status, 200);
    assert_eq!(send(&server, "DELETE", &format!("{DOCS}/1"), "").status, 204);
    assert_eq!(send(&server, "POST", DOCS, r#"{"id":"z","pk":"x"}"#).status, 507);
    // The purge removes what has died.
    admin(&server, "clock", r#"{"advanceSeconds":2000}"#);
    let purged = r#"dayfly_ttl_purged_total{container="d/c"} 100"#;
    until("everything that died is purged", || server.get("/metrics").body.contains(purged));
    assert_eq!(send(&server, "GET", &format!("{DOCS}/0"), "").status, 200);

    fs::remove_file(&filler).unwrap();
    until("it is ready", || server.get("/ready").status == 200);
    assert_eq!(send(&server, "POST", DOCS, r#"{"id":"z","pk":"x"}"#).status, 201);
    server.terminate();
    let said = server.said();
    assert!(said.contains("starts without room for writes"), "{said}");
}

#[test]
fn without_a_byte_left_reads_go_on_and_the_server_comes_back() {
    let disk = SmallDisk::new(160 * MIB);
    let server = Server::start_in(&disk.path().join("data"), &[]);
    fill_container(&server, 300, &format!(r#","text":"{}""#, "text ".repeat(200)));
    let filler = fill(&disk, 0);
    assert_eq!(free(&disk), 0);

    // Some deletes find room in what is written already; then none does.
    let mut statuses = Vec::new();
    for n in 0..200 {
        statuses.push(send(&server, "DELETE", &format!("{DOCS}/{n}"), "").status);
        let read = send(&server, "GET", &format!("{DOCS}/299"), "");
        assert_eq!(read.status, 200, "after {statuses:?}: {}", read.body);
    }
    let last = *statuses.last().unwrap();
    assert!(last == 507 || last == 503, "{statuses:?}");
    let gone = statuses.iter().filter(|status| **status == 204).count();
    for (n, status) in statuses.iter().enumerate().filter(|(_, status)| **status == 204) {
        assert_eq!(*status, 204);
        assert_eq!(send(&server, "GET", &format!("{DOCS}/{n}"), "").status, 404);
    }
    // Time goes on, since a lease needs no room.
    let date = |server: &Server| {
        let answer = send(server, "GET", &format!("{DOCS}/299"), "");
        assert_eq!(answer.status, 200);
        answer.header("date").unwrap().to_owned()
    };
    let mut dates = std::collections::BTreeSet::new();
    until("five seconds have passed", || {
        dates.insert(date(&server));
        dates.len() > 5
    });
    assert_eq!(server.get("/ready").status, 503);

    // A server that is started there can be read as well.
    drop(server);
    let server = Server::start_in(&disk.path().join("data"), &[]);
    assert_eq!(send(&server, "GET", &format!("{DOCS}/299"), "").status, 200);
    assert_eq!(server.get("/ready").status, 503);

    fs::remove_file(&filler).unwrap();
    until("it is ready", || server.get("/ready").status == 200);
    assert_eq!(send(&server, "POST", DOCS, r#"{"id":"n","pk":"x"}"#).status, 201);
    let left =
        (0..300).filter(|n| send(&server, "GET", &format!("{DOCS}/{n}"), "").status == 200).count();
    // A delete that failed may have happened.
    assert!(left <= 300 - gone && left >= 299 - gone, "{left} left of 300, {gone} deleted");
}

#[test]
fn a_full_disk_refuses_writes_and_takes_them_again_when_there_is_room() {
    let disk = SmallDisk::new(160 * MIB);
    let server = Server::start_in(&disk.path().join("data"), &[]);
    let send = |method: &str, path: &str, body: &str| send(&server, method, path, body);
    assert_eq!(send("POST", "/dbs", r#"{"id":"d"}"#).status, 201);
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#;
    assert_eq!(send("POST", "/dbs/d/colls", container).status, 201);
    let docs = "/dbs/d/colls/c/docs";
    assert_eq!(send("POST", docs, r#"{"id":"a","pk":"x"}"#).status, 201);
    assert_eq!(send("POST", docs, r#"{"id":"b","pk":"x"}"#).status, 201);

    // Somebody else fills the disk, down to less than the reserve.
    let filler = disk.path().join("filler");
    fs::write(&filler, vec![0; usize::try_from(120 * MIB).unwrap()]).unwrap();
    let refused = (0..10_000)
        .map(|_| send("POST", docs, r#"{"id":"z","pk":"x"}"#))
        .find(|answer| answer.status != 409 && answer.status != 201)
        .expect("a full disk refuses writes");
    assert_eq!(refused.status, 507);
    assert!(refused.body.contains("InsufficientStorage"), "{}", refused.body);
    assert_eq!(server.get("/ready").status, 503);

    // Reads and deletes go on.
    assert_eq!(send("GET", "/dbs/d/colls/c/docs/a", "").status, 200);
    assert_eq!(send("DELETE", "/dbs/d/colls/c/docs/b", "").status, 204);
    assert_eq!(send("GET", "/dbs/d/colls/c/docs/b", "").status, 404);

    // Room comes back, and so do writes, without a restart.
    fs::remove_file(&filler).unwrap();
    let taken = (0..10_000).any(|_| send("POST", docs, r#"{"id":"n","pk":"x"}"#).status == 201);
    assert!(taken, "writes were not taken again");
    assert_eq!(server.get("/ready").status, 200);
    assert_eq!(send("GET", "/dbs/d/colls/c/docs/a", "").status, 200);
}
