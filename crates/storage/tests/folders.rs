//! What an embedded store does with its folder, and what outlives a restart.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::{Change, at, deletes, dump, get, noise, put, submit};
use dayfly_storage::clock::{HandWall, Refused, Step, Wall};
use dayfly_storage::{
    Bucket, Direction, Durability, Embedded, EmbeddedOptions, Error, KeyRange, Local, LocalOptions,
    Store,
};

const HERE: Bucket = Bucket(1);

fn open(path: &Path) -> Local<Embedded> {
    Local::open(path, LocalOptions::default()).unwrap()
}

/// The sentence with which a folder is refused.
fn refusal(path: &Path, options: LocalOptions) -> String {
    match Local::open(path, options) {
        Err(Error::Unavailable(sentence)) => sentence,
        Err(other) => panic!("refused with {other:?}"),
        Ok(_) => panic!("opened"),
    }
}

#[test]
fn a_folder_in_use_is_refused_until_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    put(&first, HERE, "a", "1").unwrap();

    let sentence = refusal(folder.path(), LocalOptions::default());
    assert!(sentence.contains(folder.path().to_str().unwrap()), "{sentence}");
    assert!(sentence.contains("in use by another dayfly"), "{sentence}");

    first.close().unwrap();
    let second = open(folder.path());
    assert_eq!(get(&second, HERE, "a").as_deref(), Some("1"));
}

#[test]
fn another_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).close().unwrap();
    let format = folder.path().join("dayfly.format");
    assert!(std::fs::read_to_string(&format).unwrap().starts_with("dayfly 7 "));

    for other in [6, 8] {
        std::fs::write(&format, format!("dayfly {other}\n")).unwrap();
        let sentence = refusal(folder.path(), LocalOptions::default());
        assert!(sentence.contains(&format!("has format {other}")), "{sentence}");
        assert!(sentence.contains("Start the version that wrote it"), "{sentence}");
    }

    for unclear in ["something else", "dayfly 7", "dayfly 7 not-an-identity"] {
        std::fs::write(&format, unclear).unwrap();
        let sentence = refusal(folder.path(), LocalOptions::default());
        assert!(sentence.contains("does not say which format"), "{sentence}");
    }
}

#[test]
fn a_folder_with_other_files_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    let sentence = refusal(folder.path(), LocalOptions::default());
    assert!(sentence.contains("holds other files"), "{sentence}");
    let entries: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(entries.len(), 1);
}

#[test]
fn a_file_in_the_place_of_the_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "").unwrap();
    let sentence = refusal(&path, LocalOptions::default());
    assert!(sentence.contains("cannot be used"), "{sentence}");
}

#[test]
fn a_folder_whose_making_was_cut_short_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let half = folder.path().join("fjall");
    std::fs::create_dir(&half).unwrap();
    std::fs::write(half.join("0.jnl"), [0; 100]).unwrap();
    std::fs::write(folder.path().join("dayfly.lock"), "").unwrap();
    put(&open(folder.path()), HERE, "a", "1").unwrap();
}

#[test]
fn missing_folders_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b");
    put(&open(&path), HERE, "a", "1").unwrap();
    assert_eq!(get(&open(&path), HERE, "a").as_deref(), Some("1"));
}

#[test]
fn everything_outlives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut shown = Vec::new();
    for clean in [true, false, true] {
        let store = open(folder.path());
        if !shown.is_empty() {
            assert_eq!(dump(&store), shown);
        }
        for n in 0..20 {
            put(&store, Bucket(n % 3), &format!("key {n}"), "value").unwrap();
        }
        submit(&store, HERE, &deletes("key 4")).wait().unwrap();
        shown = dump(&store);
        if clean {
            store.close().unwrap();
        }
    }
}

#[test]
fn a_clean_close_leaves_nothing_to_replay() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let store = open(folder.path());
        for n in 0..50 {
            put(&store, HERE, &format!("key {n}"), &noise(n, 1000)).unwrap();
        }
        store.close().unwrap();
        drop(store);
        let journals: Vec<_> = std::fs::read_dir(folder.path().join("fjall"))
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "jnl"))
            .map(|entry| (entry.file_name(), entry.metadata().unwrap().len()))
            .collect();
        // Not empty, since backups leave out empty files, but no write is in it.
        assert_eq!(journals, [(format!("{}.jnl", round + 1).into(), 25)]);
    }
    assert_eq!(dump(&open(folder.path()))[0].2.len(), 50);
}

#[test]
fn every_opening_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    for expected in 1..=3 {
        assert_eq!(put(&open(folder.path()), HERE, "a", "1").unwrap().opened, expected);
    }
}

#[test]
fn a_restart_with_an_older_clock_does_not_turn_time_back() {
    let folder = tempfile::tempdir().unwrap();
    let wall = Arc::new(HandWall::at(5000));
    let open = || Local::open(folder.path(), at(&wall)).unwrap();
    assert_eq!(open().snapshot().unwrap().now(), 5000);
    // No clean close: the lease, three seconds ahead, is the floor.
    wall.set(100);
    let store = open();
    assert_eq!(store.snapshot().unwrap().now(), 5003);
    store.close().unwrap();
    // Crashes and restarts do not push it further.
    for _ in 0..3 {
        assert_eq!(open().snapshot().unwrap().now(), 5003);
    }
    wall.set(6000);
    assert_eq!(open().snapshot().unwrap().now(), 6000);
}

#[test]
fn a_clean_restart_does_not_stop_the_clock() {
    let folder = tempfile::tempdir().unwrap();
    let wall = Arc::new(HandWall::at(5000));
    let store = Local::open(folder.path(), at(&wall)).unwrap();
    assert_eq!(store.snapshot().unwrap().now(), 5000);
    store.close().unwrap();
    wall.set(5001);
    let store = Local::open(folder.path(), at(&wall)).unwrap();
    assert_eq!(store.snapshot().unwrap().now(), 5001);
}

#[test]
fn a_moved_clock_is_kept_and_needs_the_flag() {
    let folder = tempfile::tempdir().unwrap();
    let wall = Arc::new(HandWall::at(5000));
    let with = || LocalOptions { test_clock: true, ..at(&wall) };
    let store = Local::open(folder.path(), with()).unwrap();
    store.move_clock(Step::Advance(1000)).unwrap();
    store.move_clock(Step::Freeze).unwrap();
    drop(store);

    let sentence = refusal(folder.path(), at(&wall));
    assert!(sentence.contains("Start with --test-clock"), "{sentence}");

    wall.set(5010);
    let store = Local::open(folder.path(), with()).unwrap();
    let reading = store.clock().unwrap();
    assert_eq!((reading.now, reading.frozen, reading.offset_seconds), (6000, true, 990));
    let reading = store.move_clock(Step::Run).unwrap();
    assert_eq!((reading.now, reading.frozen, reading.offset_seconds), (6000, false, 990));
    store.close().unwrap();
    wall.set(5020);
    let store = Local::open(folder.path(), with()).unwrap();
    assert_eq!(store.clock().unwrap().now, 6010);
    assert_eq!(wall.seconds(), 5020);
}

#[test]
fn a_folder_whose_clock_was_never_moved_opens_without_the_flag() {
    let folder = tempfile::tempdir().unwrap();
    let options = LocalOptions { test_clock: true, ..LocalOptions::default() };
    put(&Local::open(folder.path(), options).unwrap(), HERE, "a", "1").unwrap();
    put(&open(folder.path()), HERE, "a", "2").unwrap();
}

#[test]
fn an_idle_store_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let wall = Arc::new(HandWall::at(5000));
    let store = Local::open(folder.path(), at(&wall)).unwrap();
    let journal = folder.path().join("fjall/0.jnl");
    let before = std::fs::read(&journal).unwrap();
    for second in 5000..5100 {
        wall.set(second);
        store.tick().unwrap();
    }
    assert!(std::fs::read(&journal).unwrap() == before);

    // Asked for the time, it keeps the lease ahead of the need.
    store.snapshot().unwrap();
    wall.set(5101);
    store.tick().unwrap();
    let asked = std::fs::read(&journal).unwrap();
    assert!(asked != before);

    // And only once, unless it is asked again; looking at it is not asking.
    for second in 5102..5200 {
        wall.set(second);
        store.glance();
        store.tick().unwrap();
    }
    assert!(std::fs::read(&journal).unwrap() == asked);
}

#[test]
fn a_jump_can_be_accepted_without_a_test_clock() {
    let folder = tempfile::tempdir().unwrap();
    let wall = Arc::new(HandWall::at(5000));
    let store = Local::open(folder.path(), at(&wall)).unwrap();
    wall.jump(50_000);
    assert_eq!(store.snapshot().unwrap().now(), 5000);
    assert_eq!(store.move_clock(Step::Advance(1)), Err(Refused::NoTestClock));
    assert_eq!(store.move_clock(Step::Accept).map(|reading| reading.now), Ok(50_000));
    drop(store);
    // Nothing of it is a moved test clock.
    let store = Local::open(folder.path(), at(&wall)).unwrap();
    assert!(store.snapshot().unwrap().now() >= 50_000);
}

#[test]
fn a_held_jump_is_not_stored() {
    for stops in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let wall = Arc::new(HandWall::at(5000));
        let store = Local::open(folder.path(), at(&wall)).unwrap();
        wall.jump(1_000_000);
        for _ in 0..10 {
            put(&store, HERE, "a", "1").unwrap();
            store.hints().compact().unwrap();
            wall.pass(1);
            store.tick().unwrap();
        }
        if stops {
            store.close().unwrap();
        }
        drop(store);
        wall.jump(5000);
        let store = Local::open(folder.path(), at(&wall)).unwrap();
        let now = store.snapshot().unwrap().now();
        assert!((5009..=5013).contains(&now), "{now}");
    }
}

#[test]
fn a_folder_found_after_another_boot_holds_the_purge() {
    let folder = tempfile::tempdir().unwrap();
    let wall = Arc::new(HandWall::at(5000));
    let open = || Local::open(folder.path(), at(&wall)).unwrap();
    let is_held = |store: &Local<Embedded>| store.glance().purge_hold.is_some();
    assert!(!is_held(&open()), "a new folder was held");
    wall.set(6000);
    assert!(!is_held(&open()), "the same boot explains it");
    wall.reboot(8000);
    for _ in 0..3 {
        let store = open();
        assert!(is_held(&store), "and remembers that it was");
        let now = store.snapshot().unwrap().now();
        assert!((8000..8007).contains(&now), "{now}");
        wall.pass(1);
    }
    let store = open();
    wall.pass(600);
    assert!(!is_held(&store));
}

/// A clock that is set ahead while the server is down, or before it is killed.
#[test]
fn a_jump_over_a_restart_is_held() {
    for stops in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let wall = Arc::new(HandWall::at(5000));
        let open = || Local::open(folder.path(), at(&wall)).unwrap();
        let store = open();
        put(&store, HERE, "a", "1").unwrap();
        if stops {
            store.close().unwrap();
            drop(store);
            wall.jump(1_000_000);
        } else {
            wall.jump(1_000_000);
            assert!(store.glance().held);
            drop(store);
        }
        wall.pass(10);
        let store = open();
        let reading = store.glance();
        assert!(reading.held && (5010..5020).contains(&reading.now), "{reading:?}");
        wall.jump(5020);
        assert_eq!(store.snapshot().unwrap().now(), 5020);
        assert!(store.glance().purge_hold.is_some(), "it has just been set");
        wall.pass(600);
        assert!(store.glance().purge_hold.is_none());
    }
}

#[test]
fn what_was_accepted_is_accepted_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let wall = Arc::new(HandWall::at(50_000));
    let open = || Local::open(folder.path(), at(&wall)).unwrap();
    put(&open(), HERE, "a", "1").unwrap();
    wall.jump(5000);
    let store = open();
    assert!(store.glance().purge_hold.is_some());
    store.move_clock(Step::Accept).unwrap();
    assert!(store.glance().purge_hold.is_none());
    drop(store);
    assert!(open().glance().purge_hold.is_none());
}

#[test]
fn a_relaxed_store_keeps_its_writes_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let relaxed = || LocalOptions { durability: Durability::Relaxed, ..LocalOptions::default() };
    let store = Local::open(folder.path(), relaxed()).unwrap();
    put(&store, HERE, "a", "1").unwrap();
    store.tick().unwrap();
    put(&store, HERE, "a", "2").unwrap();
    drop(store);
    let store = Local::open(folder.path(), relaxed()).unwrap();
    assert_eq!(get(&store, HERE, "a").as_deref(), Some("2"));
}

#[test]
fn figures_tell_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    put(&store, HERE, "a", "1").unwrap();
    let figures = store.figures();
    assert_eq!((figures.commits, figures.groups), (1, 1));
    assert!(figures.free_bytes.is_some_and(|bytes| bytes > 0));
    // The journal's 64 MiB that are not written yet do not count.
    assert!(figures.disk_bytes > 0 && figures.disk_bytes < 10_000_000, "{figures:?}");
}

#[test]
fn compaction_gives_back_what_was_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for n in 0..200_u32 {
        put(&store, HERE, &format!("key {n}"), &noise(n, 4000)).unwrap();
    }
    store.hints().compact().unwrap();
    let tables = || tables_bytes(&folder.path().join("fjall/keyspaces/1/tables"));
    let before = tables();
    for n in 1..200 {
        submit(&store, HERE, &deletes(&format!("key {n}"))).wait().unwrap();
    }
    store.hints().compact().unwrap();
    assert!(tables() < before / 4, "{} of {before} bytes are left", tables());
    assert_eq!(dump(&store)[0].2.len(), 1);
}

#[test]
fn scans_over_many_deletes_ask_for_a_compaction() {
    let folder = common::quick_folder();
    let store = open(folder.path());
    let all = |value: Option<&str>| {
        let keys = (0..30_000).map(|number| format!("key {number:06}"));
        let writes = keys.map(|key| (key, value.map(str::to_owned))).collect();
        submit(&store, HERE, &Change { writes, ..Change::default() }).wait().unwrap();
    };
    all(Some("a value"));
    store.hints().compact().unwrap();
    assert!(!store.tidy_up().unwrap(), "nothing was deleted");
    all(None);
    put(&store, HERE, "key 070000", "the last").unwrap();
    store.close().unwrap();
    drop(store);

    let full = LocalOptions { free_bytes: Some(Arc::new(|| Some(0))), ..LocalOptions::default() };
    let store = Local::open(folder.path(), full).unwrap();
    assert_eq!(store.figures().deleted_rows, 30_000);
    assert!(!store.tidy_up().unwrap(), "there is no room to compact in");
    drop(store);

    let store = open(folder.path());
    assert!(store.tidy_up().unwrap());
    let figures = store.figures();
    assert!(figures.deleted_rows == 0 && figures.rows < 100, "{figures:?}");
    assert_eq!(figures.compactions, 1);
    assert_eq!(get(&store, HERE, "key 070000").as_deref(), Some("the last"));
    assert_eq!(dump(&store)[0].2.len(), 1);
    assert!(!store.tidy_up().unwrap(), "once is enough");
}

#[test]
fn deletes_that_no_step_meets_wait_until_it_is_quiet() {
    let folder = common::quick_folder();
    let open = |options: LocalOptions| {
        let small =
            EmbeddedOptions { memtable_bytes: 1024 * 1024, ..EmbeddedOptions::new(folder.path()) };
        Local::embedded(small, options).unwrap()
    };
    let store = open(LocalOptions::default());
    // The last level is large enough for one above it.
    let writes = (0..2000).map(|n| (format!("a {n}"), Some(noise(n, 4000)))).collect();
    submit(&store, HERE, &Change { writes, ..Change::default() }).wait().unwrap();
    store.hints().compact().unwrap();
    // These are before all that, and fill tables of their own: most come to the last
    // level as they are.
    for half in 0..2 {
        let numbers = (half..30_000).step_by(2);
        let keys = numbers.map(|number| format!("0 {number:06}{}", noise(number, 200)));
        let writes = keys.map(|key| (key, None)).collect();
        submit(&store, HERE, &Change { writes, ..Change::default() }).wait().unwrap();
    }
    store.close().unwrap();
    drop(store);

    // Without a compactor of its own.
    let store = open(LocalOptions { manual: true, ..LocalOptions::default() });
    for is_new in [true, false] {
        store.tick().unwrap();
        assert_eq!(store.tidy_up().unwrap(), is_new, "once, as long as it is not quiet");
        let left = store.figures().deleted_rows;
        assert!(left > 20_000, "{left}");
    }
    store.tick().unwrap();
    assert!(store.tidy_up().unwrap());
    assert_eq!(store.figures().deleted_rows, 0);
    assert!(!store.tidy_up().unwrap(), "once is enough");
}

#[test]
fn a_stretch_that_was_slow_to_cross_is_leapt_over() {
    let folder = common::quick_folder();
    let options = LocalOptions { slow_scan: Duration::ZERO, ..LocalOptions::default() };
    let store = Local::open(folder.path(), options).unwrap();
    put(&store, HERE, "z", "1").unwrap();
    let scan = || {
        let before = store.figures().slow_scans;
        let all = KeyRange::prefix(b"");
        store.snapshot().unwrap().scan(HERE, &all, Direction::Forward, 1).unwrap();
        store.figures().slow_scans - before
    };
    assert_eq!((scan(), scan()), (1, 0));
    put(&store, HERE, "a", "1").unwrap();
    submit(&store, HERE, &deletes("a")).wait().unwrap();
    assert_eq!((scan(), scan()), (1, 0));
}

fn tables_bytes(path: &Path) -> u64 {
    std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn data_without_its_format_file_is_not_thrown_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    for clean in [true, false] {
        let store = open(&path);
        put(&store, HERE, "a", "1").unwrap();
        if clean {
            store.close().unwrap();
        }
        drop(store);
        let format = std::fs::read(path.join("dayfly.format")).unwrap();
        std::fs::remove_file(path.join("dayfly.format")).unwrap();
        let why = refusal(&path, LocalOptions::default());
        assert!(why.contains("dayfly.format") && why.contains("Restore"), "{why}");
        std::fs::write(path.join("dayfly.format"), format).unwrap();
    }
    assert_eq!(get(&open(&path), HERE, "a").as_deref(), Some("1"));
}
