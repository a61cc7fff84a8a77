//! Pages of distinct rows that have no order: each starts with the first item once more.
//!
//! Up to where the page before ended, a page remembers the rows it meets: they were given.
//! That is true of items that are as they were when the first page was asked for. Of one
//! that was written since, nobody knows what it gave, and where it stands pages have passed:
//! it is left out. So a row may come twice, if the item that stood for it first was changed
//! or removed, but none is taken for given that was not.

use std::collections::HashMap;

use dayfly_sql::run::{After, Program, Style};

use super::token::Position;
use crate::parts::Segment;
use crate::record::Record;
use crate::scope::Opened;
use crate::version::lsn_of;

/// What pages before have passed.
pub(super) struct Again {
    /// How far the ranges were when the first page was asked for; `None`: pages of this
    /// query go on where one ended.
    begun: Option<Vec<Begun>>,
    /// Where the page before ended.
    place: Option<(u64, u64)>,
}

#[derive(Clone, Copy)]
struct Begun {
    range: u32,
    rank: u64,
    lsn: u64,
}

impl Again {
    pub(super) fn new(
        opened: &Opened,
        program: &Program,
        segments: &[Segment],
        at: &Position,
        after: Option<&After>,
    ) -> Again {
        if program.style() != Style::Whole || !program.order().is_empty() {
            return Again { begun: None, place: None };
        }
        let known: Option<HashMap<u32, u64>> = match at {
            Position::Again(ranges) => Some(ranges.iter().copied().collect()),
            Position::Start | Position::Item { .. } => None,
        };
        let begun = |segment: &Segment| {
            let Segment { range, rank, bucket, .. } = *segment;
            let lsn = match &known {
                Some(known) => known.get(&range).copied().unwrap_or(0),
                None => opened.snapshot.head(bucket).lsn,
            };
            Begun { range, rank, lsn }
        };
        let place = match after {
            Some(After::Row((_, place, _))) => Some(*place),
            _ => None,
        };
        Again { begun: Some(segments.iter().map(begun).collect()), place }
    }

    /// Where the next page starts, if that is with the first item.
    pub(super) fn position(&self) -> Option<Position> {
        let begun = self.begun.as_ref()?.iter();
        Some(Position::Again(begun.map(|begun| (begun.range, begun.lsn)).collect()))
    }

    /// Whether an item stands where pages have passed, and was written since.
    pub(super) fn has_passed(&self, record: &Record, rank: Option<u64>) -> bool {
        let (Some(begun), Some(place), Some(rank)) = (&self.begun, self.place, rank) else {
            return false;
        };
        (rank, record.docno) <= place
            && begun.iter().any(|begun| begun.rank == rank && lsn_of(record.version) > begun.lsn)
    }
}
