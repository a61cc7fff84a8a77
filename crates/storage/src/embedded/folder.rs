//! The data folder: whose it is, which format it has, and who is using it.
//!
//! ```text
//! dayfly.lock      locked by the process that has the folder open
//! dayfly.format    the format's number and the folder's identity; written
//!                  last, so it means "complete"
//! dayfly.state     how far the journal reached (see `state.rs`)
//! dayfly.files     the engine's files after a clean stop (see `inventory.rs`)
//! fjall/           the engine's files
//! ```
//!
//! The identity is a random number, made with the folder. It stands in each of
//! our files, and in every batch that the engine is given, so nothing of another
//! folder is taken for ours. A lock that is missing is made again: it says nothing.
//!
//! A folder without a format is new, or its making was cut short; then
//! nothing was ever committed there, and it is made again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::inventory::{ENGINE, Fault, Inventory, journal_name};
use super::state::{STATE, StateFile};
use crate::{Error, Result};

/// The format this version writes and reads.
pub(super) const FORMAT_VERSION: u32 = 7;

const LOCK: &str = "dayfly.lock";
const FORMAT: &str = "dayfly.format";

/// What a fresh file system puts into its top folder.
pub(super) const LOST_AND_FOUND: &str = "lost+found";

/// What stands in the journal of a stopped folder. It is no batch, so the engine
/// cuts it off; but backups leave out empty files.
const NOTHING: &[u8] = b"Everything is in tables.\n";

/// A folder that only we have open.
pub(super) struct Folder {
    path: PathBuf,
    identity: Uuid,
    state: Arc<StateFile>,
    is_new: bool,
    _lock: File,
}

/// Whether something stands at the start of a journal: it is made full of zeros.
fn is_written(journal: &Path) -> bool {
    let mut start = [0; 64];
    let read = File::open(journal).and_then(|mut file| file.read(&mut start));
    read.is_ok() && start.iter().any(|byte| *byte != 0)
}

/// Makes the folder, if it is not there, for its owner only.
fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

impl Folder {
    /// Takes the folder, or makes it. Refuses, in a sentence that says what to
    /// do, what is not ours to open.
    pub(super) fn open(path: &Path) -> Result<Self> {
        make_private(path).map_err(|error| cannot(path, &error))?;
        refuse_strangers(path)?;
        let lock = take_lock(path)?;
        let format = read_format(path)?;
        let identity = format.unwrap_or_else(Uuid::new_v4);
        let state = match format {
            Some(_) => open_state(path, identity)?,
            None => start_over(path, identity)?,
        };
        let (path, state) = (path.to_owned(), Arc::new(state));
        Ok(Folder { path, identity, state, is_new: format.is_none(), _lock: lock })
    }

    /// Where the engine's files are.
    pub(super) fn engine(&self) -> PathBuf {
        self.path.join(ENGINE)
    }

    pub(super) fn identity(&self) -> Uuid {
        self.identity
    }

    pub(super) fn state(&self) -> Arc<StateFile> {
        Arc::clone(&self.state)
    }

    /// Whether the folder is not made yet.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Whether nobody reads from an engine that was open before.
    pub(super) fn is_let_go(&self) -> bool {
        self.inventory().is_let_go()
    }

    /// Looks whether everything is there and nothing else, before the engine is
    /// opened. Refuses with the name of what is wrong.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_new {
            return Ok(());
        }
        self.inventory().check(self.state.seen()).map_err(|fault| refused(&self.path, fault))
    }

    /// Whether the engine has what belongs to this folder: `link` is the row that
    /// each of our batches has.
    pub(super) fn check_link(&self, link: Option<&[u8]>) -> Result<()> {
        let checked = self.inventory().check_link(link.unwrap_or_default());
        checked.map_err(|fault| refused(&self.path, fault))
    }

    /// The engine says that it cannot open its files.
    pub(super) fn cannot_open(&self, why: &str) -> Error {
        Error::Unavailable(format!(
            "The folder '{}' does not open: its engine says {why}. Restore the folder from a \
             backup, or use another folder.",
            self.path.display()
        ))
    }

    /// Notes that the engine's files are complete, unless that is known.
    pub(super) fn is_made(&mut self) -> Result<()> {
        if self.is_new {
            self.write_format().map_err(|error| cannot(&self.path, &error))?;
            self.is_new = false;
        }
        Ok(())
    }

    /// Notes which journal is the newest; only a sentence needs it. Returns what
    /// is to be synced then.
    pub(super) fn note_journal(&self) -> io::Result<Arc<StateFile>> {
        let journals = self.inventory().journals()?;
        let newest = journals.last().map_or(0, |(number, _)| *number);
        self.state.note(|seen| seen.journal = newest)?;
        Ok(self.state())
    }

    /// Replaces the engine's journals by one with nothing in it, as the engine
    /// itself does when one has grown, and lists what there is: then opening has
    /// little to look at. Only for an engine that is closed and has everything in
    /// tables.
    pub(super) fn stop(&self) -> Result<()> {
        let stopped = self.empty_journal().and_then(|()| {
            // If this does not reach the disk, only a sentence is less exact.
            let _ = self.note_journal().and_then(|state| state.sync());
            self.inventory().write_list()
        });
        stopped.map_err(|error| cannot(&self.path, &error))
    }

    fn empty_journal(&self) -> io::Result<()> {
        let old = self.inventory().journals()?;
        let Some((last, _)) = old.last() else { return Ok(()) };
        let mut new = File::create_new(self.path.join(journal_name(last + 1)))?;
        new.write_all(NOTHING)?;
        new.sync_all()?;
        // An older journal beside the new one is whole, and read again.
        sync_folder(&self.engine())?;
        for (_, path) in old {
            fs::remove_file(path)?;
        }
        sync_folder(&self.engine())
    }

    fn inventory(&self) -> Inventory<'_> {
        Inventory { path: &self.path, identity: self.identity }
    }

    fn write_format(&self) -> io::Result<()> {
        let says = format!("dayfly {FORMAT_VERSION} {}\n", self.identity.simple());
        replace(&self.path, FORMAT, says.as_bytes())?;
        // The folder's own name must last as well.
        self.path.canonicalize()?.parent().map_or(Ok(()), sync_folder)
    }
}

fn open_state(path: &Path, identity: Uuid) -> Result<StateFile> {
    match StateFile::open(path, identity) {
        Ok(Some(state)) => Ok(state),
        Ok(None) => Err(refused(
            path,
            Fault::NotWhole(format!("'{STATE}' is damaged, or of another folder")),
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(refused(path, Fault::NotWhole(format!("'{STATE}' is missing"))))
        }
        Err(error) => Err(cannot(path, &error)),
    }
}

/// Makes the folder anew. Without the format file it was never finished, and has
/// nothing in it. If it has, the file was lost.
fn start_over(path: &Path, identity: Uuid) -> Result<StateFile> {
    let inventory = Inventory { path, identity };
    let journals = inventory.journals().unwrap_or_default();
    if journals.iter().any(|(_, path)| is_written(path)) || inventory.has_tables() {
        let lost = format!("it has data, and '{FORMAT}' is missing");
        return Err(refused(path, Fault::NotWhole(lost)));
    }
    let made = inventory.clear().and_then(|()| StateFile::make(path, identity));
    made.map_err(|error| cannot(path, &error))
}

/// The folder's identity; refuses a format that this version does not know.
fn read_format(path: &Path) -> Result<Option<Uuid>> {
    let text = match fs::read_to_string(path.join(FORMAT)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(path, &error)),
    };
    let mut words = text.split_whitespace();
    let number = words.next().filter(|word| *word == "dayfly").and_then(|_| words.next());
    let identity = words.next().and_then(|word| Uuid::try_parse(word).ok());
    match (number.and_then(|number| number.parse().ok()), identity) {
        (Some(FORMAT_VERSION), Some(identity)) => Ok(Some(identity)),
        (None | Some(FORMAT_VERSION), _) => Err(Error::Unavailable(format!(
            "The file '{}' does not say which format the folder has. Restore the folder from a \
             backup, or use another folder.",
            path.join(FORMAT).display()
        ))),
        (Some(other), _) => Err(Error::Unavailable(format!(
            "The folder '{}' has format {other}, and this version of dayfly knows format \
             {FORMAT_VERSION} only. Start the version that wrote it, or use another folder.",
            path.display()
        ))),
    }
}

/// Refuses a folder that holds something, but nothing of ours.
fn refuse_strangers(path: &Path) -> Result<()> {
    if read_format(path)?.is_some() || path.join(LOCK).exists() {
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(|error| cannot(path, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| cannot(path, &error))?;
        if entry.file_name() != LOST_AND_FOUND {
            return Err(Error::Unavailable(format!(
                "The folder '{}' holds other files and no dayfly data. Use an empty folder, or \
                 one that does not exist yet.",
                path.display()
            )));
        }
    }
    Ok(())
}

fn take_lock(path: &Path) -> Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join(LOCK))
        .map_err(|error| cannot(path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Unavailable(format!(
            "The folder '{}' is in use by another dayfly. Stop that one first, or use another \
             folder.",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(cannot(path, &error)),
    }
}

/// Bytes that the files below `path` take. Files that were made longer than
/// what is in them, as journals are, count with what they take.
pub(super) fn disk_bytes(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        Ok(metadata) => allocated(&metadata),
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

#[cfg(unix)]
fn allocated(metadata: &fs::Metadata) -> u64 {
    /// What `st_blocks` counts in, whatever the file system.
    const BLOCK_BYTES: u64 = 512;
    std::os::unix::fs::MetadataExt::blocks(metadata) * BLOCK_BYTES
}

#[cfg(not(unix))]
fn allocated(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}

pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Writes the file `name` of the folder `path`, whole or not at all.
pub(super) fn replace(path: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    let new = path.join(format!("{name}.new"));
    let mut file = File::create(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&new, path.join(name))?;
    sync_folder(path)
}

fn refused(path: &Path, fault: Fault) -> Error {
    match fault {
        Fault::NotWhole(why) => Error::Unavailable(format!(
            "The folder '{}' is not whole: {why}. Restore the folder from a backup, or use \
             another folder.",
            path.display()
        )),
        Fault::InUse => Error::Unavailable(format!(
            "The folder '{}' is still being read, or in use by another program. Stop that one \
             first, or use another folder.",
            path.display()
        )),
        Fault::Io(error) => cannot(path, &error),
    }
}

fn cannot(path: &Path, error: &io::Error) -> Error {
    Error::Unavailable(format!(
        "The folder '{}' cannot be used: {error}. Check that it exists and that dayfly may write \
         there, or use another folder.",
        path.display()
    ))
}
