//! The data folder: whose it is, which format it has, and who is using it.
//!
//! ```text
//! dayfly.lock      locked by the process that has the folder open
//! dayfly.format    the format's number; written last, so it means "complete"
//! fjall/           the engine's files
//! ```
//!
//! A folder without a format is new, or its making was cut short; then
//! nothing was ever committed there, and it is made again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// The format this version writes and reads.
pub(super) const FORMAT_VERSION: u32 = 4;

const LOCK: &str = "dayfly.lock";
const FORMAT: &str = "dayfly.format";
const FORMAT_NEW: &str = "dayfly.format.new";
const ENGINE: &str = "fjall";

/// How the engine's journals end.
const JOURNAL: &str = ".jnl";

/// What a fresh file system puts into its top folder.
const LOST_AND_FOUND: &str = "lost+found";

/// A folder that only we have open.
pub(super) struct Folder {
    path: PathBuf,
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
        let folder = Folder { path: path.to_owned(), _lock: lock };
        if folder.format()?.is_none() {
            folder.refuse_data_without_format()?;
            folder.start_over().map_err(|error| cannot(path, &error))?;
        }
        Ok(folder)
    }

    /// Where the engine's files are.
    pub(super) fn engine(&self) -> PathBuf {
        self.path.join(ENGINE)
    }

    /// Notes that the engine's files are complete, unless that is known.
    pub(super) fn is_made(&self) -> Result<()> {
        if self.format()?.is_some() {
            return Ok(());
        }
        self.write_format().map_err(|error| cannot(&self.path, &error))
    }

    /// Replaces the engine's journals by an empty one, as the engine itself
    /// does when one has grown: then opening has nothing to read. Only for an
    /// engine that is closed and has everything in tables.
    pub(super) fn empty_journal(&self) -> Result<()> {
        let replaced = || -> io::Result<()> {
            let old = self.journals()?;
            let Some(last) = old.iter().map(|(number, _)| *number).max() else { return Ok(()) };
            let new = self.engine().join(format!("{}{JOURNAL}", last + 1));
            File::create_new(new)?.sync_all()?;
            // An older journal beside the new one is whole, and read again.
            sync_folder(&self.engine())?;
            for (_, path) in old {
                fs::remove_file(path)?;
            }
            sync_folder(&self.engine())
        };
        replaced().map_err(|error| cannot(&self.path, &error))
    }

    /// The engine's journals and their numbers.
    fn journals(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut journals = Vec::new();
        for entry in fs::read_dir(self.engine())? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(JOURNAL));
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                journals.push((number, entry.path()));
            }
        }
        Ok(journals)
    }

    fn write_format(&self) -> io::Result<()> {
        let new = self.path.join(FORMAT_NEW);
        let mut file = File::create(&new)?;
        writeln!(file, "dayfly {FORMAT_VERSION}")?;
        file.sync_all()?;
        fs::rename(&new, self.path.join(FORMAT))?;
        sync_folder(&self.path)?;
        // The folder's own name must last as well.
        self.path.canonicalize()?.parent().map_or(Ok(()), sync_folder)
    }

    /// The folder's format; refuses one that this version does not know.
    fn format(&self) -> Result<Option<u32>> {
        read_format(&self.path)
    }

    /// Without the format file the folder was never finished, and has nothing
    /// in it. If it has, the file was lost.
    fn refuse_data_without_format(&self) -> Result<()> {
        let journals = self.journals().unwrap_or_default();
        if journals.iter().any(|(_, path)| is_written(path)) || self.has_tables() {
            return Err(Error::Unavailable(format!(
                "The folder '{}' has data, but its file '{FORMAT}' is missing. Restore the file, \
                 or use another folder.",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// Whether there is a table of rows; the engine's own are in keyspace 0.
    fn has_tables(&self) -> bool {
        let keyspaces = fs::read_dir(self.engine().join("keyspaces")).into_iter().flatten();
        keyspaces.flatten().filter(|keyspace| keyspace.file_name() != "0").any(|keyspace| {
            fs::read_dir(keyspace.path().join("tables"))
                .is_ok_and(|mut tables| tables.next().is_some())
        })
    }

    fn start_over(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.engine()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn read_format(path: &Path) -> Result<Option<u32>> {
    let text = match fs::read_to_string(path.join(FORMAT)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(path, &error)),
    };
    let number = text.trim().strip_prefix("dayfly ").and_then(|number| number.parse().ok());
    match number {
        Some(FORMAT_VERSION) => Ok(Some(FORMAT_VERSION)),
        Some(newer) => Err(Error::Unavailable(format!(
            "The folder '{}' has format {newer}, and this version of dayfly knows format \
             {FORMAT_VERSION} only. Start the version that wrote it, or use another folder.",
            path.display()
        ))),
        None => Err(Error::Unavailable(format!(
            "The file '{}' does not say which format the folder has. Restore the folder from a \
             backup, or use another folder.",
            path.join(FORMAT).display()
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

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn cannot(path: &Path, error: &io::Error) -> Error {
    Error::Unavailable(format!(
        "The folder '{}' cannot be used: {error}. Check that it exists and that dayfly may write \
         there, or use another folder.",
        path.display()
    ))
}
