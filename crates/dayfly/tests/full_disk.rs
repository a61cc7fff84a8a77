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
use std::path::Path;
use std::process::Command;

use common::{Server, send};

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
