//! Parts of a container: one partition, a range, an interval of keys.

use std::collections::BTreeMap;

use dayfly_model::epk::Epk;

use super::super::random::Random;
use super::documents::KEYS;

/// What a request means of a container.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    pub(super) key: Option<&'static str>,
    pub(super) range: Option<String>,
    pub(super) start: Option<Epk>,
    pub(super) end: Option<Epk>,
}

/// Where a partition is.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) epk: Epk,
    pub(super) range: String,
}

impl Piece {
    /// Whether the items of a partition are meant.
    pub(super) fn contains(&self, key: &str, spot: &Spot) -> bool {
        self.key.is_none_or(|wanted| wanted == key)
            && self.range.as_ref().is_none_or(|range| *range == spot.range)
            && self.start.as_ref().is_none_or(|start| start.0 <= spot.epk.0)
            && self.end.as_ref().is_none_or(|end| spot.epk.0 < end.0)
    }
}

/// Where the partitions are, and how many ranges there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) spots: BTreeMap<&'static str, Spot>,
    pub(super) ranges: Vec<String>,
}

impl Random {
    /// Mostly all of it, sometimes a part.
    pub(super) fn piece(&mut self, layout: &Layout) -> Piece {
        let mut piece = Piece::default();
        match self.below(100) {
            0..15 => piece.key = Some(self.pick(&KEYS)),
            15..30 => piece.range = Some(self.range(layout)),
            30..40 => {
                let ends = [self.epk(layout), self.epk(layout)];
                let [first, second] = ends;
                let rises = first.0 <= second.0;
                let (start, end) = if rises { (first, second) } else { (second, first) };
                piece.start = self.chance(80).then_some(start);
                piece.end = self.chance(80).then_some(end);
                piece.range = self.chance(20).then(|| self.range(layout));
                piece.key = self.chance(10).then(|| self.pick(&KEYS));
            }
            _ => {}
        }
        piece
    }

    fn range(&mut self, layout: &Layout) -> String {
        layout.ranges[usize::try_from(self.below(layout.ranges.len() as u64)).unwrap()].clone()
    }

    /// Where a partition is, or anywhere.
    fn epk(&mut self, layout: &Layout) -> Epk {
        if self.chance(50) {
            return layout.spots[self.pick(&KEYS)].epk.clone();
        }
        let length = self.pick(&[1, 16]);
        Epk((0..length).map(|_| u8::try_from(self.below(64)).unwrap()).collect())
    }

    /// Parts that are all of a container together.
    pub(super) fn parts(&mut self, layout: &Layout) -> Vec<Piece> {
        if self.chance(50) {
            let ranges = layout.ranges.iter();
            return ranges
                .map(|id| Piece { range: Some(id.clone()), ..Piece::default() })
                .collect();
        }
        let mut cuts: Vec<Option<Epk>> =
            (0..=self.below(4)).map(|_| Some(self.epk(layout))).collect();
        cuts.sort_by(|left, right| left.as_ref().map(|e| &e.0).cmp(&right.as_ref().map(|e| &e.0)));
        let starts = [None].into_iter().chain(cuts.clone());
        let ends = cuts.into_iter().chain([None]);
        let piece = |(start, end)| Piece { start, end, ..Piece::default() };
        starts.zip(ends).map(piece).collect()
    }
}
