//! How far the folder has come: a small file that is overwritten in place.
//!
//! It says up to which write the journal **reached** at least. It is written
//! after a write is on the disk and before that write is answered, but not
//! synced with it: a kill leaves it exact, and after a power cut it may be about
//! a second behind, never ahead. It says *at least*, so behind is never wrong.
//!
//! Overwriting needs no room. There are two slots, written in turn: when a power
//! cut tears one, the other holds.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::folder::replace;

pub(super) const STATE: &str = "dayfly.state";

/// What one slot takes; it is a line of text, filled up with spaces.
const SLOT_BYTES: usize = 160;
const SLOTS: usize = 2;

/// What a slot says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Grows with each slot that is written: the greater one holds.
    turn: u64,
    /// The number that the engine gave to the last write that is on the disk.
    pub(super) reached: u64,
    /// The number of the newest journal, for a sentence.
    pub(super) journal: u64,
    /// The clock's lease, while the engine cannot take it.
    pub(super) lease: u64,
}

/// The file, open for writing.
pub(super) struct StateFile {
    identity: Uuid,
    file: File,
    noted: Mutex<Noted>,
}

struct Noted {
    seen: Seen,
    is_synced: bool,
}

impl StateFile {
    /// Makes the file in the folder `path`.
    pub(super) fn make(path: &Path, identity: Uuid) -> io::Result<StateFile> {
        let slot = slot(identity, Seen::default());
        replace(path, STATE, &slot.repeat(SLOTS))?;
        Self::on(path, identity, Seen::default())
    }

    /// Opens the file. `None`: it does not say what it should.
    pub(super) fn open(path: &Path, identity: Uuid) -> io::Result<Option<StateFile>> {
        let text = std::fs::read(path.join(STATE))?;
        match read(&text, identity) {
            Some(seen) => Self::on(path, identity, seen).map(Some),
            None => Ok(None),
        }
    }

    fn on(path: &Path, identity: Uuid, seen: Seen) -> io::Result<StateFile> {
        let file = File::options().write(true).open(path.join(STATE))?;
        Ok(StateFile { identity, file, noted: Mutex::new(Noted { seen, is_synced: true }) })
    }

    pub(super) fn seen(&self) -> Seen {
        self.noted().seen
    }

    /// Changes what is known. If the disk does not take it, what it says is still
    /// true, and the next change is tried again.
    pub(super) fn note(&self, change: impl FnOnce(&mut Seen)) -> io::Result<()> {
        let mut noted = self.noted();
        let before = noted.seen;
        change(&mut noted.seen);
        if noted.seen == before {
            return Ok(());
        }
        noted.seen.turn += 1;
        noted.is_synced = false;
        let at = if noted.seen.turn.is_multiple_of(2) { 0 } else { SLOT_BYTES as u64 };
        let written = self.file.write_all_at(&slot(self.identity, noted.seen), at);
        written.inspect_err(|_| noted.seen = before)
    }

    /// Brings it to the disk. Nobody who notes something waits for that.
    pub(super) fn sync(&self) -> io::Result<()> {
        if std::mem::replace(&mut self.noted().is_synced, true) {
            return Ok(());
        }
        let synced = self.file.sync_data();
        synced.inspect_err(|_| self.noted().is_synced = false)
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn slot(identity: Uuid, seen: Seen) -> Vec<u8> {
    let Seen { turn, reached, journal, lease } = seen;
    let text = format!("{} {turn} {reached} {journal} {lease}", identity.simple());
    let mut slot = format!("{text} {:016x}", fingerprint(&text));
    slot.push_str(&" ".repeat(SLOT_BYTES - 1 - slot.len()));
    slot.push('\n');
    slot.into_bytes()
}

/// What the file says; `None` if it has another length, or no slot is good.
fn read(text: &[u8], identity: Uuid) -> Option<Seen> {
    if text.len() != SLOTS * SLOT_BYTES {
        return None;
    }
    let slots = text.chunks(SLOT_BYTES).filter_map(|slot| read_slot(slot, identity));
    slots.max_by_key(|seen| seen.turn)
}

fn read_slot(slot: &[u8], identity: Uuid) -> Option<Seen> {
    let (text, check) = std::str::from_utf8(slot).ok()?.trim_end().rsplit_once(' ')?;
    let numbers = text.strip_prefix(&identity.simple().to_string())?.strip_prefix(' ')?;
    let mut numbers = numbers.split(' ').map(|number| number.parse().ok());
    let mut next = || numbers.next().flatten();
    let seen = Seen { turn: next()?, reached: next()?, journal: next()?, lease: next()? };
    (format!("{:016x}", fingerprint(text)) == check).then_some(seen)
}

/// FNV-1a: enough to see that a line was torn.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_slot_holds_and_a_torn_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let identity = Uuid::new_v4();
        let state = StateFile::make(folder.path(), identity).unwrap();
        for reached in 1..10 {
            state.note(|seen| seen.reached = reached).unwrap();
            let again = StateFile::open(folder.path(), identity).unwrap().unwrap();
            assert_eq!(again.seen().reached, reached);
        }
        let whole = std::fs::read(folder.path().join(STATE)).unwrap();
        for torn in 0..SLOTS {
            let mut text = whole.clone();
            text[torn * SLOT_BYTES + 40] = 0;
            let reached = read(&text, identity).unwrap().reached;
            assert!((8..=9).contains(&reached), "{reached}");
        }
        assert_eq!(read(&whole, Uuid::new_v4()), None);
        assert_eq!(read(&whole[1..], identity), None);
        let most = Seen { turn: u64::MAX, reached: u64::MAX, journal: u64::MAX, lease: u64::MAX };
        assert_eq!(slot(identity, most).len(), SLOT_BYTES);
    }
}
