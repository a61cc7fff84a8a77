//! Where a point is: inside of a shape, on its boundary, or outside.
//!
//! Whether a point is to the left of a ring is told by walking to it from the
//! middle of an edge. The walk sets out to the left of that edge or to its
//! right, and each edge that it crosses changes sides. A walk that passes too
//! close to a corner tells nothing, and another one is tried.

use super::shape::{Chain, Shape, ShapeKind, ShapePart};
use super::surface::{Crossing, Surface, crossing, lies_on};

/// Where a point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Inside; on a line, but not at its ends; at a point.
    Inside,
    /// On the boundary: on a ring, or at the end of a line.
    Boundary,
    /// Outside.
    Outside,
}

/// How many walks are tried.
const WALKS_MAX: usize = 32;

/// Where walks set out on their edges: not in the middle, where edges of regular
/// shapes look at each other's corners.
const SET_OUT: f64 = 0.437_016_024_448_821;
/// How much further on its edge each walk sets out.
const GOLDEN: f64 = 0.618_033_988_749_895;

impl<S: Surface> Shape<S> {
    /// Where a point is.
    pub(super) fn place(&self, point: S::Point) -> Place {
        let mut found = Place::Outside;
        for part in &self.parts {
            match part.place(self.kind, point) {
                Place::Inside => return Place::Inside,
                Place::Boundary => found = Place::Boundary,
                Place::Outside => {}
            }
        }
        found
    }
}

impl<S: Surface> ShapePart<S> {
    fn place(&self, kind: ShapeKind, point: S::Point) -> Place {
        let on_edge = self.edges().any(|edge| lies_on::<S>(point, edge));
        match kind {
            ShapeKind::Point if on_edge => Place::Inside,
            ShapeKind::Line if on_edge && self.ends_at(point) => Place::Boundary,
            ShapeKind::Line if on_edge => Place::Inside,
            ShapeKind::Area if on_edge => Place::Boundary,
            ShapeKind::Area if self.chains.iter().all(|ring| is_left::<S>(ring, point)) => {
                Place::Inside
            }
            _ => Place::Outside,
        }
    }

    /// Whether a line ends here; one that is closed ends nowhere.
    fn ends_at(&self, point: S::Point) -> bool {
        self.chains.iter().any(|chain| match (chain.first(), chain.last()) {
            (Some(first), Some(last)) => {
                let (start, end) = (S::start(first), S::end(last));
                !S::same(start, end) && (S::same(point, start) || S::same(point, end))
            }
            _ => false,
        })
    }
}

/// Whether a point that is not on a ring is to its left.
fn is_left<S: Surface>(ring: &Chain<S>, point: S::Point) -> bool {
    let mut part = SET_OUT;
    let told = (0..WALKS_MAX).find_map(|walk| {
        // Far from the edge of the walk before, and at another part of it.
        let edge = (walk * ring.len() / WALKS_MAX + walk) % ring.len().max(1);
        part = (part + GOLDEN).fract();
        walk_from::<S>(ring, edge, part, point)
    });
    // A ring that no walk can tell about is flat, and has no inside.
    told.unwrap_or(false)
}

/// Whether the walk from an edge says that the point is to the left.
fn walk_from<S: Surface>(ring: &Chain<S>, from: usize, part: f64, point: S::Point) -> Option<bool> {
    let edge = ring.get(from)?;
    let side = S::side(edge, point);
    if side == 0.0 {
        return None;
    }
    let walk = S::edge(S::along(edge, part), point)?;
    let mut left = side > 0.0;
    for (place, edge) in ring.iter().enumerate() {
        if place == from {
            continue;
        }
        match crossing::<S>(&walk, edge) {
            Crossing::Yes => left = !left,
            Crossing::No => {}
            Crossing::Unsure => return None,
        }
    }
    Some(left)
}
