//! Whether everything is there that belongs to the folder, and nothing else.
//!
//! fjall opens what it finds. A journal that is missing is a new one to it, a
//! tree without its file `current` is one that was never finished, and it removes
//! that with all its tables. So we look before it does, in one of two ways:
//!
//! - **After a clean stop** there is the list `dayfly.files`: each of the engine's
//!   files with its length. It is written when the engine is closed, and removed
//!   before the engine is opened.
//! - **Without the list**, after a kill, the files are followed as the engine
//!   does: each tree from `current` to its version and its tables; then the
//!   journals. Each batch says which one was before it (`journal.rs`). What is
//!   known begins with what is in tables, and grows batch by batch. A batch after
//!   one that is not known is a hole, and what is known in the end must reach as
//!   far as `dayfly.state` says.
//!
//! What a power cut leaves between any two steps is good:
//!
//! - *the list, then its removal, then the engine*: the engine changes nothing as
//!   long as there is a list, so a list always fits. When its removal is lost, the
//!   engine had not begun.
//! - *the engine closed, then the list*: without it the files are followed.
//! - *a batch synced, then the state*: the state is behind, never ahead.
//! - *tables synced, then a journal removed*: a journal that comes back has nothing
//!   that is not known, and one that is gone was known from the tables.
//! - *a new journal*: it is there, empty, before a batch is in it.
//!
//! A table that no version names is what a crash left, and the engine removes it;
//! only the list can tell that somebody copied it there.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use lsm_tree::{AbstractTree as _, SeqNo, SequenceNumberCounter};
use uuid::Uuid;

use super::folder::{LOST_AND_FOUND, replace, sync_folder};
use super::journal::{self, LINK, Link};
use super::state::Seen;

pub(super) const ENGINE: &str = "fjall";

const LIST: &str = "dayfly.files";
const VERSION: &str = "version";
const LOCK: &str = "lock";
const TREES: &str = "keyspaces";
const TABLES: &str = "tables";
const CURRENT: &str = "current";

/// How the engine's journals end.
const JOURNAL: &str = ".jnl";

/// What the engine's file `version` says.
const VERSION_SAYS: &[u8] = b"FJL\x03";

/// The version's number, a checksum and its kind.
const CURRENT_BYTES: u64 = 25;

/// The engine's own tree, and that of the rows.
const TREE_NAMES: [&str; 2] = ["0", ROWS];
const ROWS: &str = "1";

/// How a file begins that the engine had not finished.
const UNFINISHED: &str = ".tmp";

/// Why a folder is not opened.
#[derive(Debug)]
pub(super) enum Fault {
    /// In a few words that come after "is not whole".
    NotWhole(String),
    /// Somebody still reads from the engine that was open before.
    InUse,
    Io(io::Error),
}

type Checked<T = ()> = Result<T, Fault>;

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Io(error)
    }
}

/// The folder's files, looked at from outside.
pub(super) struct Inventory<'a> {
    pub(super) path: &'a Path,
    pub(super) identity: Uuid,
}

impl Inventory<'_> {
    /// Looks at everything. After this the engine may be opened.
    pub(super) fn check(&self, seen: Seen) -> Checked {
        self.make_lock()?;
        match self.read_list()? {
            Some(listed) => {
                self.compare(&listed)?;
                fs::remove_file(self.path.join(LIST))?;
                sync_folder(self.path)?;
                Ok(())
            }
            None => self.follow(seen),
        }
    }

    /// Writes the list. Only for an engine that is closed.
    pub(super) fn write_list(&self) -> io::Result<()> {
        let files = self.files()?;
        let mut list = format!("dayfly {}\n", self.identity.simple());
        for (name, bytes) in &files {
            list.push_str(&format!("{bytes} {name}\n"));
        }
        list.push_str(&format!("{} files\n", files.len()));
        replace(self.path, LIST, list.as_bytes())
    }

    /// Removes what a folder that was never finished may have.
    pub(super) fn clear(&self) -> io::Result<()> {
        let gone = |result: io::Result<()>| match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        gone(fs::remove_dir_all(self.path.join(ENGINE)))?;
        gone(fs::remove_file(self.path.join(LIST)))
    }

    /// The engine's journals and their numbers, in their order.
    pub(super) fn journals(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut journals = Vec::new();
        for entry in fs::read_dir(self.path.join(ENGINE))? {
            let entry = entry?;
            if let Some(number) = entry.file_name().to_str().and_then(journal_number) {
                journals.push((number, entry.path()));
            }
        }
        journals.sort();
        Ok(journals)
    }

    /// Whether there is a table of rows.
    pub(super) fn has_tables(&self) -> bool {
        let tables = self.tree(ROWS).join(TABLES);
        fs::read_dir(tables).is_ok_and(|mut tables| tables.next().is_some())
    }

    fn tree(&self, name: &str) -> PathBuf {
        self.path.join(ENGINE).join(TREES).join(name)
    }

    /// Whether nobody has the engine's lock.
    pub(super) fn is_let_go(&self) -> bool {
        !matches!(self.make_lock(), Err(Fault::InUse))
    }

    /// Our lock is what keeps others out. The engine wants its own as well, and it
    /// says whether an engine that failed is still being read.
    fn make_lock(&self) -> Checked {
        let engine = self.path.join(ENGINE);
        if !engine.is_dir() {
            return Err(missing(ENGINE));
        }
        let lock = File::options().create(true).append(true).open(engine.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(Fault::InUse),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// The engine's files and their lengths, but for what is nothing to it.
    fn files(&self) -> io::Result<BTreeMap<String, u64>> {
        let mut files = BTreeMap::new();
        let skipped = [LOCK, LOST_AND_FOUND].map(|name| Path::new(ENGINE).join(name));
        let mut folders = vec![PathBuf::from(ENGINE)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.path.join(&folder))? {
                let entry = entry?;
                let name = folder.join(entry.file_name());
                if skipped.contains(&name) || is_nothing(&entry.file_name().to_string_lossy()) {
                    continue;
                }
                let metadata = entry.metadata()?;
                if metadata.is_dir() {
                    folders.push(name);
                } else {
                    files.insert(name.display().to_string(), metadata.len());
                }
            }
        }
        Ok(files)
    }

    /// The list, if there is one.
    fn read_list(&self) -> Checked<Option<BTreeMap<String, u64>>> {
        let text = match fs::read(self.path.join(LIST)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let listed = String::from_utf8(text).ok().and_then(|text| self.parse_list(&text));
        listed.map(Some).ok_or_else(|| damaged(LIST))
    }

    fn parse_list(&self, text: &str) -> Option<BTreeMap<String, u64>> {
        let mut lines = text.lines();
        if lines.next()? != format!("dayfly {}", self.identity.simple()) {
            return None;
        }
        let mut listed = BTreeMap::new();
        for line in lines.by_ref() {
            let (number, name) = line.split_once(' ')?;
            let number: u64 = number.parse().ok()?;
            if name == "files" {
                return (number == listed.len() as u64).then_some(listed);
            }
            listed.insert(name.to_owned(), number);
        }
        None
    }

    fn compare(&self, listed: &BTreeMap<String, u64>) -> Checked {
        let files = self.files()?;
        for (name, bytes) in listed {
            match files.get(name) {
                None => return Err(missing(name)),
                Some(found) if found != bytes => {
                    return Err(Fault::NotWhole(format!(
                        "the file '{name}' has {found} bytes and should have {bytes}"
                    )));
                }
                Some(_) => {}
            }
        }
        let strange = files.keys().find(|name| !listed.contains_key(*name));
        strange.map_or(Ok(()), |name| Err(foreign(name)))
    }

    /// Follows the engine's files as the engine does.
    fn follow(&self, seen: Seen) -> Checked {
        self.refuse_strangers()?;
        let version = Path::new(ENGINE).join(VERSION);
        match fs::read(self.path.join(&version)) {
            Ok(says) if says == VERSION_SAYS => {}
            Ok(_) => return Err(damaged(&version.display().to_string())),
            Err(error) => return Err(unread(&version.display().to_string(), error)),
        }
        for name in TREE_NAMES {
            self.follow_tree(name)?;
        }
        self.follow_journals(seen)
    }

    fn refuse_strangers(&self) -> Checked {
        let engine = Path::new(ENGINE);
        let known = |name: &str| {
            matches!(name, VERSION | LOCK | TREES | LOST_AND_FOUND)
                || journal_number(name).is_some()
        };
        self.refuse_others(engine, known)?;
        let trees = engine.join(TREES);
        self.refuse_others(&trees, |name| TREE_NAMES.contains(&name))?;
        for name in TREE_NAMES {
            let tree = trees.join(name);
            let version = |name: &str| name.strip_prefix('v').is_some_and(is_number);
            let known = |name: &str| {
                matches!(name, CURRENT | TABLES) || version(name) || name.starts_with(UNFINISHED)
            };
            self.refuse_others(&tree, known)?;
            self.refuse_others(&tree.join(TABLES), is_number)?;
        }
        Ok(())
    }

    /// Refuses what is in `folder` and is not `known`.
    fn refuse_others(&self, folder: &Path, known: impl Fn(&str) -> bool) -> Checked {
        let name = |path: &Path| path.display().to_string();
        let entries =
            fs::read_dir(self.path.join(folder)).map_err(|error| unread(&name(folder), error))?;
        for entry in entries {
            let file = entry?.file_name();
            let text = file.to_string_lossy();
            if !is_nothing(&text) && !known(&text) {
                return Err(foreign(&name(&folder.join(&file))));
            }
        }
        Ok(())
    }

    /// A tree's version, which `current` names, and the tables that it names.
    fn follow_tree(&self, name: &str) -> Checked {
        let short = |file: &str| format!("{ENGINE}/{TREES}/{name}/{file}");
        let tree = self.tree(name);
        let current =
            fs::read(tree.join(CURRENT)).map_err(|error| unread(&short(CURRENT), error))?;
        let number = current.first_chunk::<8>().filter(|_| current.len() as u64 == CURRENT_BYTES);
        let number = number.ok_or_else(|| damaged(&short(CURRENT)))?;
        let version = format!("v{}", u64::from_le_bytes(*number));
        let tables = read_version(&tree.join(&version));
        for table in tables.map_err(|error| unread(&short(&version), error))? {
            let table = format!("{TABLES}/{table}");
            archive(&tree.join(&table)).map_err(|error| unread(&short(&table), error))?;
        }
        Ok(())
    }

    fn follow_journals(&self, seen: Seen) -> Checked {
        let journals = self.journals()?;
        let Some((newest, _)) = journals.last() else {
            return Err(missing(&journal_name(seen.journal)));
        };
        let mut known = self.in_tables()?;
        let mut last: Option<u64> = None;
        for (number, path) in &journals {
            let name = journal_name(*number);
            journal::walk(path, |batch| {
                let link = batch.link.filter(|link| link.identity == self.identity);
                let link = link.ok_or_else(|| foreign(&name))?;
                if link.before > known {
                    // The journal before this one is gone, or its end is.
                    let before = number.saturating_sub(1);
                    return Err(if last == Some(before) { cut(before) } else { gone(before) });
                }
                known = known.max(batch.number);
                Ok(())
            })?;
            last = Some(*number);
        }
        match known < seen.reached {
            true if *newest < seen.journal => Err(gone(seen.journal)),
            // The engine may have begun another since that was noted.
            true => Err(Fault::NotWhole(format!(
                "'{}' has lost its end, or '{}' after it is missing",
                journal_name(*newest),
                journal_name(newest + 1)
            ))),
            false => Ok(()),
        }
    }

    /// How far the tables go without a journal.
    fn in_tables(&self) -> Checked<u64> {
        let (number, visible) =
            (SequenceNumberCounter::default(), SequenceNumberCounter::default());
        let rows = self.tree(ROWS);
        let unread = |error: lsm_tree::Error| {
            Fault::NotWhole(format!("the files in '{ENGINE}/{TREES}/{ROWS}' do not open: {error}"))
        };
        let tree = lsm_tree::Config::new(rows, number, visible).open().map_err(unread)?;
        if let Some(row) = tree.get(LINK, SeqNo::MAX).map_err(unread)? {
            self.check_link(&row)?;
        }
        Ok(tree.get_highest_persisted_seqno().unwrap_or(0))
    }

    /// Whether the row of the link is of this folder.
    pub(super) fn check_link(&self, row: &[u8]) -> Checked {
        match Link::decode(row).filter(|link| link.identity == self.identity) {
            Some(_) => Ok(()),
            None => Err(Fault::NotWhole(format!("the files in '{ENGINE}' are of another folder"))),
        }
    }
}

/// The tables that a version names.
fn read_version(path: &Path) -> io::Result<Vec<u64>> {
    let archive = archive(path)?;
    let section = archive.toc().section(b"tables").ok_or(io::ErrorKind::InvalidData)?;
    let mut reader = section.buf_reader(path)?;
    let mut tables = Vec::new();
    let [levels] = bytes(&mut reader)?;
    for _ in 0..levels {
        let [runs] = bytes(&mut reader)?;
        for _ in 0..runs {
            for _ in 0..u32::from_le_bytes(bytes(&mut reader)?) {
                tables.push(u64::from_le_bytes(bytes(&mut reader)?));
                let _checksum_and_number: [u8; 25] = bytes(&mut reader)?;
            }
        }
    }
    Ok(tables)
}

/// Reads the end of a table or a version, which says what is in it.
fn archive(path: &Path) -> io::Result<sfa::Reader> {
    sfa::Reader::new(path).map_err(|error| match error {
        sfa::Error::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
    })
}

fn bytes<const N: usize>(reader: &mut impl io::Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn journal_number(name: &str) -> Option<u64> {
    name.strip_suffix(JOURNAL).filter(|number| is_number(number))?.parse().ok()
}

/// What the journal is called, from the folder on.
pub(super) fn journal_name(number: u64) -> String {
    format!("{ENGINE}/{number}{JOURNAL}")
}

fn is_number(name: &str) -> bool {
    name.parse::<u64>().is_ok_and(|number| number.to_string() == name)
}

/// What systems put into every folder; the engine steps over it.
fn is_nothing(name: &str) -> bool {
    name == ".DS_Store" || name.starts_with("._")
}

fn missing(name: &str) -> Fault {
    Fault::NotWhole(format!("'{name}' is missing"))
}

fn gone(journal: u64) -> Fault {
    missing(&journal_name(journal))
}

fn cut(journal: u64) -> Fault {
    Fault::NotWhole(format!("'{}' has lost its end", journal_name(journal)))
}

fn damaged(name: &str) -> Fault {
    Fault::NotWhole(format!("'{name}' is damaged"))
}

fn foreign(name: &str) -> Fault {
    Fault::NotWhole(format!("'{name}' does not belong to it"))
}

/// A file that could not be read: it is missing, short, or the disk fails.
fn unread(name: &str, error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::NotFound => missing(name),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => damaged(name),
        io::ErrorKind::InvalidInput => damaged(name),
        _ => Fault::NotWhole(format!("'{name}' cannot be read: {error}")),
    }
}
