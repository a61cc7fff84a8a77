//! Parts of a container: one partition, a range, an interval of keys.

use std::collections::BTreeMap;

use dayfly_model::epk::{self, Epk};
use serde_json::Value as Json;

use super::super::random::Random;
use super::division::{Division, begins_with};

/// What a request means of a container.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    /// A key, or the begin of one.
    pub(super) key: Option<String>,
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
        self.key.as_ref().is_none_or(|wanted| begins_with(key, wanted))
            && self.range.as_ref().is_none_or(|range| *range == spot.range)
            && self.start.as_ref().is_none_or(|start| start.0 <= spot.epk.0)
            && self.end.as_ref().is_none_or(|end| spot.epk.0 < end.0)
    }
}

/// A range of a container.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) id: String,
    pub(super) min: Epk,
    pub(super) max: Option<Epk>,
}

/// Where the partitions are, and which ranges there are.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) division: &'static Division,
    pub(super) spots: BTreeMap<&'static str, Spot>,
    pub(super) ranges: Vec<Bounds>,
}

impl Layout {
    /// All ranges, each as a part.
    pub(super) fn as_parts(&self) -> Vec<Piece> {
        let part = |range: &Bounds| Piece { range: Some(range.id.clone()), ..Piece::default() };
        self.ranges.iter().map(part).collect()
    }

    /// Whether the range of a piece is there, if it names one.
    pub(super) fn has_range(&self, piece: &Piece) -> bool {
        let is_there = |id: &String| self.ranges.iter().any(|known| known.id == *id);
        piece.range.as_ref().is_none_or(is_there)
    }

    /// The same piece after its range was divided, as its points.
    pub(super) fn without_range(&self, piece: &Piece) -> Piece {
        let Some(id) = &piece.range else { return piece.clone() };
        let bounds = self.ranges.iter().find(|known| known.id == *id).unwrap();
        let starts = [piece.start.clone(), Some(bounds.min.clone())].into_iter().flatten();
        let start = starts.max_by(|left, right| left.0.cmp(&right.0));
        let ends = [piece.end.clone(), bounds.max.clone()].into_iter().flatten();
        let end = ends.min_by(|left, right| left.0.cmp(&right.0));
        Piece { key: piece.key.clone(), range: None, start, end }
    }

    /// Those parts that a plan leads to; all, if it leads to none.
    pub(super) fn led(&self, parts: &[Piece], plan: &Json) -> Vec<Piece> {
        let wanted: Vec<Wanted> =
            plan["queryRanges"].as_array().unwrap().iter().map(Wanted::of).collect();
        let leads = |piece: &&Piece| {
            let range = piece.range.as_ref();
            let bounds = range.and_then(|id| self.ranges.iter().find(|known| known.id == *id));
            let (start, end) = match bounds {
                Some(bounds) => (Some(&bounds.min), bounds.max.as_ref()),
                None => (piece.start.as_ref(), piece.end.as_ref()),
            };
            wanted.iter().any(|wanted| wanted.meets(start, end))
        };
        let led: Vec<Piece> = parts.iter().filter(leads).cloned().collect();
        if led.is_empty() { parts.to_vec() } else { led }
    }
}

/// Where a plan leads.
struct Wanted {
    min: Epk,
    max: Epk,
    has_max: bool,
}

impl Wanted {
    fn of(range: &Json) -> Wanted {
        let epk = |name: &str| epk::parse_hex(range[name].as_str().unwrap()).unwrap();
        let has_max = range["isMaxInclusive"] == true;
        Wanted { min: epk("min"), max: epk("max"), has_max }
    }

    /// Whether any of it is in a part.
    fn meets(&self, start: Option<&Epk>, end: Option<&Epk>) -> bool {
        let reaches = |start: &Epk| start.0 < self.max.0 || self.has_max && start.0 == self.max.0;
        start.is_none_or(reaches) && end.is_none_or(|end| self.min.0 < end.0)
    }
}

impl Random {
    /// Mostly all of it, sometimes a part.
    pub(super) fn piece(&mut self, layout: &Layout) -> Piece {
        let mut piece = Piece::default();
        match self.below(100) {
            0..15 => piece.key = Some(self.key(layout.division)),
            15..30 => piece.range = Some(self.range(layout)),
            30..40 => {
                let ends = [self.epk(layout), self.epk(layout)];
                let [first, second] = ends;
                let rises = first.0 <= second.0;
                let (start, end) = if rises { (first, second) } else { (second, first) };
                piece.start = self.chance(80).then_some(start);
                piece.end = self.chance(80).then_some(end);
                piece.range = self.chance(20).then(|| self.range(layout));
                piece.key = self.chance(10).then(|| self.key(layout.division));
            }
            40..60 if layout.division.is_deep() => {
                piece.key = Some(self.key(layout.division));
                piece.range = self.chance(10).then(|| self.range(layout));
            }
            _ => {}
        }
        piece
    }

    pub(super) fn range(&mut self, layout: &Layout) -> String {
        layout.ranges[usize::try_from(self.below(layout.ranges.len() as u64)).unwrap()].id.clone()
    }

    /// Where a partition is, or anywhere.
    fn epk(&mut self, layout: &Layout) -> Epk {
        if self.chance(50) {
            let mut epk = layout.spots[self.pick(layout.division.keys)].epk.clone();
            if layout.division.is_deep() {
                // Where a begin of the key starts, or just where it ends.
                epk.0.truncate(self.pick(&[8, 16, 32, 48]));
                epk.0.extend(self.chance(30).then_some(0xFF));
            }
            return epk;
        }
        let length = self.pick(&[1, 16]);
        Epk((0..length).map(|_| u8::try_from(self.below(64)).unwrap()).collect())
    }

    /// Parts that are all of a container together.
    pub(super) fn parts(&mut self, layout: &Layout) -> Vec<Piece> {
        if self.chance(50) {
            return layout.as_parts();
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
