//! Rows that count.
//!
//! A [`Tally`] is one row with 64 cells, each a number of things and their
//! bytes. A commit adds to a cell with [`Batch::add`](crate::Batch::add) and
//! does not read it: so two commits that count in the same cell do not stand
//! in each other's way, as they would if their drafts had read it. The
//! committer adds up what the commits of a group say and writes each row once.
//!
//! ```text
//! <cells in use, a bit each:8> then for each, lowest first: <items> <bytes>
//! ```
//!
//! Numbers are written seven bits a byte, lowest first, the highest bit set in
//! all but the last. A tally that counts nothing has no row.

use bytes::Bytes;

use crate::{Error, Result};

/// How many cells a row has.
pub const CELLS: usize = 64;

/// How many things, and how many bytes they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub items: u64,
    /// Their bytes, all together.
    pub bytes: u64,
}

impl Count {
    /// Whether nothing was counted.
    pub fn is_empty(self) -> bool {
        self == Count::default()
    }

    /// Both together.
    pub fn plus(self, other: Count) -> Count {
        Count { items: self.items + other.items, bytes: self.bytes + other.bytes }
    }

    /// What is left without `other`, which is a part of this.
    pub fn minus(self, other: Count) -> Count {
        debug_assert!(self.items >= other.items && self.bytes >= other.bytes);
        Count {
            items: self.items.saturating_sub(other.items),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// Whether something came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// So much more.
    More(Count),
    /// So much less.
    Less(Count),
}

/// What the commits of a group say about one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addition {
    pub(crate) cell: u8,
    pub(crate) change: Change,
}

/// A row that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Up to the last one that counts anything: many rows use the first cell only,
    /// and one commit may count in a hundred thousand rows.
    cells: Vec<Count>,
}

impl Tally {
    /// Reads a row.
    pub fn decode(row: &[u8]) -> Result<Tally> {
        Self::read(row).ok_or_else(|| Error::Corrupt("a row that counts".to_owned()))
    }

    fn read(row: &[u8]) -> Option<Tally> {
        let (used, mut rest) = row.split_first_chunk::<8>()?;
        let used = u64::from_be_bytes(*used);
        let mut cells = vec![Count::default(); CELLS - used.leading_zeros() as usize];
        for (place, cell) in cells.iter_mut().enumerate() {
            if used >> place & 1 == 1 {
                *cell = Count { items: number(&mut rest)?, bytes: number(&mut rest)? };
            }
        }
        rest.is_empty().then_some(Tally { cells })
    }

    /// The row; none if nothing is counted.
    pub fn encode(&self) -> Option<Bytes> {
        let mut row = vec![0; 8];
        let mut used: u64 = 0;
        for (place, cell) in self.cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            used |= 1 << place;
            put_number(&mut row, cell.items);
            put_number(&mut row, cell.bytes);
        }
        row.get_mut(..8)?.copy_from_slice(&used.to_be_bytes());
        (used != 0).then(|| row.into())
    }

    /// The cells, in order, up to the last one that counts anything.
    pub fn cells(&self) -> &[Count] {
        &self.cells
    }

    /// What one cell counts.
    pub fn cell(&self, cell: usize) -> Count {
        self.cells.get(cell).copied().unwrap_or_default()
    }

    /// What is counted in all cells before `end`.
    pub fn before(&self, end: usize) -> Count {
        self.cells.iter().take(end).fold(Count::default(), |sum, cell| sum.plus(*cell))
    }

    /// Counts a change. `false`: there was less than what went; the cell then
    /// has nothing.
    pub fn add(&mut self, cell: u8, change: Change) -> bool {
        let place = usize::from(cell);
        if place < CELLS && place >= self.cells.len() {
            self.cells.resize(place + 1, Count::default());
        }
        let Some(cell) = self.cells.get_mut(place) else { return false };
        let next = match change {
            Change::More(more) => {
                cell.items.checked_add(more.items).zip(cell.bytes.checked_add(more.bytes))
            }
            Change::Less(less) => {
                cell.items.checked_sub(less.items).zip(cell.bytes.checked_sub(less.bytes))
            }
        };
        let counted = next.is_some();
        let (items, bytes) = next.unwrap_or_default();
        *cell = Count { items, bytes };
        while self.cells.pop_if(|last| last.is_empty()).is_some() {}
        counted
    }
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number: u64 = 0;
    for shift in (0..64).step_by(7) {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn put_number(row: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = (number & 0x7F).to_le_bytes();
        number >>= 7;
        if number == 0 {
            row.push(low);
            return;
        }
        row.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn more(bytes: u64) -> Change {
        Change::More(Count { items: 1, bytes })
    }

    fn less(bytes: u64) -> Change {
        Change::Less(Count { items: 1, bytes })
    }

    #[test]
    fn a_tally_is_read_back() {
        let mut tally = Tally::default();
        assert_eq!(tally.encode(), None);
        for (cell, bytes) in [(0, 0), (0, 127), (5, 128), (63, u64::MAX), (31, 1 << 40)] {
            assert!(tally.add(cell, more(bytes)));
        }
        let row = tally.encode().unwrap();
        assert_eq!(Tally::decode(&row).unwrap(), tally);
        assert_eq!(tally.before(6), Count { items: 3, bytes: 255 });
        assert_eq!(tally.before(0), Count::default());
    }

    #[test]
    fn what_comes_and_goes_leaves_no_row() {
        let mut tally = Tally::default();
        assert!(tally.add(7, more(1000)));
        assert!(tally.add(7, less(1000)));
        assert_eq!(tally.encode(), None);
    }

    #[test]
    fn less_than_nothing_is_told() {
        let mut tally = Tally::default();
        assert!(!tally.add(7, less(1)));
        assert!(tally.add(7, more(5)));
        assert!(!tally.add(7, less(6)));
        assert_eq!(tally.encode(), None);
        assert!(!tally.add(64, more(1)));
    }

    #[test]
    fn a_damaged_row_is_told() {
        let mut tally = Tally::default();
        assert!(tally.add(3, more(300)));
        let row = tally.encode().unwrap();
        assert!(Tally::decode(&row[..row.len() - 1]).is_err());
        assert!(Tally::decode(&[&row[..], &[0]].concat()).is_err());
        assert!(Tally::decode(&[0; 7]).is_err());
    }
}
