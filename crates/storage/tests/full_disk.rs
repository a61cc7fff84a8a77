//! A disk that is really full: a small file system in memory, mounted for the
//! test. This needs root, or the right to mount.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{deletes, dump, get, put, submit};
use dayfly_storage::{Bucket, Embedded, EmbeddedOptions, Error, Local, LocalOptions, Store};

const HERE: Bucket = Bucket(1);
const MIB: u64 = 1024 * 1024;

/// A small file system, gone with the test.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(bytes: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={bytes}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(folder.path())
            .output()
            .unwrap();
        assert!(
            mounted.status.success(),
            "This test mounts a small file system and may not: {}. Run it as root, or give it \
             the capability CAP_SYS_ADMIN.",
            String::from_utf8_lossy(&mounted.stderr).trim()
        );
        SmallDisk(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file of somebody else, so that `free` bytes are left, at most.
    fn crowd(&self, store: &dyn Store, free: u64) -> PathBuf {
        let file = self.path().join("of somebody else");
        let size = store.figures().free_bytes.unwrap() - free;
        std::fs::write(&file, vec![1; usize::try_from(size).unwrap()]).unwrap();
        file
    }

    fn open(&self, reserve_bytes: u64) -> Local<Embedded> {
        let folder = EmbeddedOptions {
            memtable_bytes: MIB,
            ..EmbeddedOptions::new(self.path().join("data"))
        };
        let options = LocalOptions { reserve_bytes, ..LocalOptions::default() };
        Local::embedded(folder, options).unwrap()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(self.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

/// 20 000 bytes that do not compress.
fn noise(seed: usize) -> String {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b' ' + u8::try_from(state % 95).unwrap())
    };
    (0..20_000).map(|_| next()).collect()
}

/// Writes until the store refuses; returns how many were kept, and why not
/// more.
fn fill(store: &dyn Store) -> (usize, Error) {
    for n in 0..10_000 {
        if let Err(error) = put(store, HERE, &format!("key {n}"), &noise(n)) {
            return (n, error);
        }
    }
    panic!("the disk is never full");
}

fn check(store: &dyn Store, kept: usize) {
    for n in 0..kept {
        assert!(get(store, HERE, &format!("key {n}")) == Some(noise(n)), "key {n} of {kept}");
    }
}

#[test]
fn a_full_disk_refuses_growth_and_deletes_make_room_again() {
    let disk = SmallDisk::new(80 * MIB);
    let store = disk.open(16 * MIB);
    let others = disk.crowd(&store, 48 * MIB);
    let (kept, why) = fill(&store);
    assert_eq!(why, Error::Full);
    assert!(kept > 200, "only {kept} writes fit");

    // The engine may still be giving room back, and then it is full no more. With
    // nothing left to give, it is as full as somebody else makes it.
    std::fs::remove_file(others).unwrap();
    store.hints().compact().unwrap();
    disk.crowd(&store, 12 * MIB);
    assert_eq!(store.writable(), Err(Error::Full));
    check(&store, kept);
    assert_eq!(put(&store, HERE, "more", "1"), Err(Error::Full));

    for n in 10..kept {
        submit(&store, HERE, &deletes(&format!("key {n}"))).wait().unwrap();
    }
    store.hints().compact().unwrap();
    assert_eq!(store.writable(), Ok(()));
    assert_eq!(put(&store, HERE, "more", "1").unwrap().lsn, (kept + kept - 10 + 1) as u64);
    check(&store, 10);

    store.close().unwrap();
    drop(store);
    let store = disk.open(16 * MIB);
    check(&store, 10);
    assert_eq!(dump(&store)[0].2.len(), 11);
}

#[test]
fn a_disk_that_fills_up_under_the_engine_loses_nothing_that_was_answered() {
    let disk = SmallDisk::new(48 * MIB);
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![1; 24 * 1024 * 1024]).unwrap();
    // No reserve: the engine itself runs into the wall.
    let store = disk.open(0);
    let (kept, why) = fill(&store);
    assert!(matches!(why, Error::Unknown(_) | Error::Unavailable(_)), "{why:?}");

    // There may be no room even to open again; with room, it comes back.
    std::fs::remove_file(&ballast).unwrap();
    while store.writable().is_err() {
        std::thread::yield_now();
    }
    check(&store, kept);
    // What it opened while there was no room may fail once more, but then it
    // says so, and the write was not done.
    let stamp = loop {
        match put(&store, HERE, "more", "1") {
            Err(Error::Unavailable(_)) => std::thread::yield_now(),
            outcome => break outcome.unwrap(),
        }
    };
    let kept_lsn = kept as u64;
    assert!(stamp.lsn == kept_lsn + 1 || stamp.lsn == kept_lsn + 2);
    drop(store);
    let store = disk.open(0);
    check(&store, kept);
    assert_eq!(get(&store, HERE, "more").as_deref(), Some("1"));
}
