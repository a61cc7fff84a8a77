//! A folder with a file missing, short or strange opens with everything that
//! was acknowledged, or is refused with the name of the file.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use common::{dump, get, put, quick_folder};
use dayfly_storage::{
    Bucket, Embedded, EmbeddedOptions, Error, Head, KeyRange, Local, LocalOptions, Pair, Store,
};

const HERE: Bucket = Bucket(1);

type Shown = Vec<(Bucket, Head, Vec<Pair>)>;

fn try_open(path: &Path) -> Result<Local<Embedded>, Error> {
    Local::open(path, LocalOptions::default())
}

fn open(path: &Path) -> Local<Embedded> {
    try_open(path).unwrap()
}

/// The sentence with which a folder is refused.
fn refusal(path: &Path) -> String {
    match try_open(path) {
        Err(Error::Unavailable(sentence)) => sentence,
        Err(other) => panic!("refused with {other:?}"),
        Ok(_) => panic!("opened"),
    }
}

/// Everything below `folder`, without the folders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}

/// Where the last byte ends that is not 0; a journal is made full of zeros.
fn written(file: &Path) -> u64 {
    let bytes = fs::read(file).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
}

/// What is done to a file: it goes, or keeps this many bytes.
fn harms(file: &Path) -> Vec<Option<u64>> {
    let (length, written) = (fs::metadata(file).unwrap().len(), written(file));
    let mut harms = vec![None, Some(0)];
    let shorter = [length / 2, written / 2, written.saturating_sub(4096)];
    harms.extend(shorter.map(Some));
    harms.extend([written, length].map(|all| Some(all.saturating_sub(1))));
    harms.dedup();
    harms
}

fn harm(file: &Path, harm: Option<u64>) {
    match harm {
        None => fs::remove_file(file).unwrap(),
        Some(bytes) => {
            OpenOptions::new().write(true).open(file).unwrap().set_len(bytes).unwrap();
        }
    }
}

/// Does each harm to each file that `chosen` says, and looks what comes of it.
/// Returns how often the folder was refused.
fn try_all(whole: &Path, shown: &Shown, chosen: impl Fn(&Path) -> bool) -> usize {
    let mut refused = 0;
    for file in files(whole).into_iter().filter(|file| chosen(file)) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        for bytes in harms(&file) {
            let work = quick_folder();
            let path = work.path().join("data");
            copy(whole, &path);
            harm(&path.join(file.strip_prefix(whole).unwrap()), bytes);
            let what = format!("{} cut to {bytes:?}", file.display());
            match try_open(&path) {
                Ok(store) => assert_eq!(&dump(&store), shown, "{what}"),
                Err(Error::Unavailable(why)) => {
                    refused += 1;
                    assert!(why.contains(&name), "{what}: {why}");
                    assert!(why.contains("Restore"), "{what}: {why}");
                    // And once more, since the first look must not change that.
                    assert_eq!(refusal(&path), why, "{what}");
                }
                Err(other) => panic!("{what}: {other:?}"),
            }
        }
    }
    refused
}

/// A folder with tables and a journal, and what it shows.
fn make(path: &Path, stops: bool) -> Shown {
    for round in 0..2 {
        let store = open(path);
        for n in 0..20 {
            put(&store, Bucket(n % 3), &format!("key {n}"), &format!("value {round}")).unwrap();
        }
        if round == 0 {
            store.close().unwrap();
        } else {
            let shown = dump(&store);
            if stops {
                store.close().unwrap();
            }
            return shown;
        }
    }
    Vec::new()
}

#[test]
fn after_a_clean_stop_nothing_may_be_missing() {
    let folder = quick_folder();
    let shown = make(folder.path(), true);
    let refused = try_all(folder.path(), &shown, |_| true);
    assert!(refused > 20, "{refused}");
}

#[test]
fn after_a_kill_nothing_may_be_missing() {
    let folder = quick_folder();
    let shown = make(folder.path(), false);
    let refused = try_all(folder.path(), &shown, |_| true);
    assert!(refused > 20, "{refused}");
}

#[test]
fn the_journal_of_a_stopped_folder_is_not_forgotten() {
    let folder = quick_folder();
    make(folder.path(), true);
    let journal = folder.path().join("fjall/2.jnl");
    fs::remove_file(&journal).unwrap();
    let why = refusal(folder.path());
    assert!(why.contains("'fjall/2.jnl' is missing"), "{why}");
}

#[test]
fn a_journal_behind_which_another_was_begun_may_not_be_missing() {
    let folder = quick_folder();
    let shown = make(folder.path(), false);
    // As the engine does by itself after 64 MB: each batch ends with these bytes.
    let [first, second, third] =
        [1, 2, 3].map(|number| folder.path().join(format!("fjall/{number}.jnl")));
    let bytes = fs::read(&first).unwrap();
    let ends: Vec<usize> =
        (4..=bytes.len()).filter(|end| bytes[..*end].ends_with(b"FJL\x03")).collect();
    let (one, two) = (ends[ends.len() / 3], ends[ends.len() / 2]);
    fs::write(&first, &bytes[..one]).unwrap();
    fs::write(&second, &bytes[one..two]).unwrap();
    fs::write(&third, &bytes[two..]).unwrap();
    let refused = try_all(folder.path(), &shown, |file| file.extension() == Some("jnl".as_ref()));
    assert!(refused >= 12, "{refused}");
    assert_eq!(dump(&open(folder.path())), shown);
}

#[test]
fn what_does_not_belong_to_the_folder_is_named() {
    let other = quick_folder();
    make(other.path(), false);
    for stops in [true, false] {
        let folder = quick_folder();
        let shown = make(folder.path(), stops);
        let journal = if stops { "fjall/2.jnl" } else { "fjall/1.jnl" };
        let strangers: &[(&str, &str)] = &[
            ("fjall/1.jnl", "fjall/7.jnl"),
            ("fjall/1.jnl", journal),
            ("fjall/version", "fjall/notes.txt"),
            ("fjall/version", "fjall/keyspaces/1/tables/table"),
            ("fjall/version", "fjall/keyspaces/2"),
            ("fjall/version", "fjall/keyspaces/1/blobs"),
            ("dayfly.state", "dayfly.state"),
        ];
        for (from, to) in strangers {
            let work = quick_folder();
            copy(folder.path(), &work.path().join("data"));
            fs::copy(other.path().join(from), work.path().join("data").join(to)).unwrap();
            let why = refusal(&work.path().join("data"));
            assert!(why.contains(&format!("'{to}'")), "{stops} {to}: {why}");
        }
        // What systems leave everywhere is nothing.
        for name in ["fjall/.DS_Store", "fjall/keyspaces/1/tables/._7", "fjall/lost+found"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        fs::write(folder.path().join("notes.txt"), "x").unwrap();
        assert_eq!(dump(&open(folder.path())), shown);
    }
}

#[test]
fn a_table_that_was_copied_in_is_named_after_a_clean_stop() {
    let folder = quick_folder();
    make(folder.path(), true);
    let tables = folder.path().join("fjall/keyspaces/1/tables");
    let table = fs::read_dir(&tables).unwrap().next().unwrap().unwrap().path();
    fs::copy(table, tables.join("77")).unwrap();
    let why = refusal(folder.path());
    assert!(why.contains("'fjall/keyspaces/1/tables/77' does not belong"), "{why}");
}

#[test]
fn the_data_of_another_folder_is_refused() {
    let (ours, theirs) = (quick_folder(), quick_folder());
    make(ours.path(), true);
    make(theirs.path(), true);
    // With all of the engine's files there is no list any more.
    fs::remove_dir_all(ours.path().join("fjall")).unwrap();
    fs::remove_file(ours.path().join("dayfly.files")).unwrap();
    copy(&theirs.path().join("fjall"), &ours.path().join("fjall"));
    let why = refusal(ours.path());
    assert!(why.contains("of another folder"), "{why}");
}

#[test]
fn locks_are_made_again() {
    for stops in [true, false] {
        let folder = quick_folder();
        let shown = make(folder.path(), stops);
        for lock in ["dayfly.lock", "fjall/lock"] {
            fs::remove_file(folder.path().join(lock)).unwrap();
        }
        assert_eq!(dump(&open(folder.path())), shown);
    }
}

#[test]
fn what_a_crash_leaves_is_nothing() {
    let folder = quick_folder();
    let shown = make(folder.path(), false);
    let rows = folder.path().join("fjall/keyspaces/1");
    // A table and a version that were on their way, and a torn write.
    fs::write(rows.join("tables/99"), "half a table").unwrap();
    fs::write(rows.join("v99"), "half a version").unwrap();
    fs::write(rows.join(".tmpAbCdEf"), "half").unwrap();
    let journal = folder.path().join("fjall/1.jnl");
    let mut bytes = fs::read(&journal).unwrap();
    bytes.extend(bytes[..20].to_vec());
    fs::write(&journal, bytes).unwrap();
    // A journal that was just begun.
    fs::write(folder.path().join("fjall/2.jnl"), [0; 4096]).unwrap();
    for _ in 0..2 {
        assert_eq!(dump(&open(folder.path())), shown);
    }
    assert_eq!(get(&open(folder.path()), HERE, "key 19").as_deref(), Some("value 1"));
}

#[test]
fn what_the_engine_does_with_its_files_is_no_fault() {
    let folder = quick_folder();
    let small =
        || EmbeddedOptions { memtable_bytes: 1024 * 1024, ..EmbeddedOptions::new(folder.path()) };
    let noise = common::noise(1, 256 * 1024);
    let mut shown = Vec::new();
    let mut newest = 0;
    // Journals are begun and removed, tables written and merged, and each round
    // ends as with a kill, wherever the engine is just then.
    for round in 0..8 {
        let store = Local::embedded(small(), LocalOptions::default()).unwrap();
        if round > 0 {
            assert_eq!(dump(&store), shown, "round {round}");
        }
        let tickets: Vec<_> = (0..100)
            .map(|n| {
                let key = format!("key {}", n % 20);
                let change =
                    if n % 3 == 2 { common::deletes(&key) } else { common::puts(&key, &noise) };
                common::submit(&store, HERE, &change)
            })
            .collect();
        for ticket in tickets {
            ticket.wait().unwrap();
        }
        if round % 3 == 1 {
            store.clear(HERE, &KeyRange::prefix(b"key 1"), 100).unwrap();
            store.hints().compact().unwrap();
        }
        shown = dump(&store);
        let journals = files(&folder.path().join("fjall"));
        let number = |file: &PathBuf| file.file_stem().unwrap().to_str().unwrap().parse().ok();
        let journals = journals.iter().filter(|file| file.extension() == Some("jnl".as_ref()));
        newest = newest.max(journals.filter_map(number).max().unwrap());
    }
    assert!(newest > 0, "no second journal was begun");
    assert_eq!(dump(&open(folder.path())), shown);
}
