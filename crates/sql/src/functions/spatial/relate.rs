//! How two shapes lie to each other: do they meet, is one within the other, how
//! far are they apart.
//!
//! Each question looks at all pairs of an edge of one and an edge or corner of
//! the other once, and then at a few points that decide.

use super::place::Place;
use super::shape::{Shape, ShapeKind, ShapePart};
use super::surface::{Surface, lies_on, meet, pass_through};

/// How many pieces edges may be cut into. Shapes that do not run over the same
/// corners again and again have fewer.
const PIECES_MAX: usize = 16_384;

/// How often an interval is made smaller that has the nearest point in it.
const NARROWINGS: usize = 60;

/// How many parts of an edge are looked at first.
const LOOKS: u32 = 16;

/// Whether two shapes have a point in common.
pub(super) fn intersect<S: Surface>(left: &Shape<S>, right: &Shape<S>) -> bool {
    let edges = left.edges().any(|edge| right.edges().any(|other| meet::<S>(edge, other)));
    edges || has_start_in(left, right) || has_start_in(right, left)
}

/// Whether a chain starts in an area. If no edges meet, the whole chain is
/// there.
fn has_start_in<S: Surface>(shape: &Shape<S>, area: &Shape<S>) -> bool {
    area.kind == ShapeKind::Area && shape.starts().any(|point| area.place(point) != Place::Outside)
}

/// How far two shapes are apart; none if one of them is nowhere.
pub(super) fn distance<S: Surface>(left: &Shape<S>, right: &Shape<S>) -> Option<f64> {
    if left.parts.is_empty() || right.parts.is_empty() {
        return None;
    }
    if intersect(left, right) {
        return Some(0.0);
    }
    // Shapes that do not meet are nearest at a corner of one of them.
    let mut nearest = Nearest { distance: f64::INFINITY, gap: f64::INFINITY, between: None };
    nearest.look(left, right);
    nearest.look(right, left);
    let (corner, edge) = nearest.between?;
    Some(nearest.distance.min(from_edge::<S>(corner, edge)))
}

/// A corner and an edge that are nearest, of those that were looked at.
struct Nearest<'a, S: Surface> {
    distance: f64,
    /// Pairs with a greater gap are further apart.
    gap: f64,
    between: Option<(S::Point, &'a S::Edge)>,
}

impl<'a, S: Surface> Nearest<'a, S> {
    fn look(&mut self, corners: &Shape<S>, edges: &'a Shape<S>) {
        for corner in corners.edges().map(S::start).chain(corners.edges().last().map(S::end)) {
            for edge in edges.edges() {
                let foot = S::foot(edge, corner);
                if S::gap(foot, corner) >= self.gap {
                    continue;
                }
                let distance = S::distance(corner, foot);
                if distance < self.distance {
                    self.distance = distance;
                    self.gap = S::reach(distance);
                    self.between = Some((corner, edge));
                }
            }
        }
    }
}

/// How far a corner is from an edge. The foot is only nearly the nearest point,
/// so that is searched: close to the best of some looks, in an interval that is
/// made smaller.
fn from_edge<S: Surface>(corner: S::Point, edge: &S::Edge) -> f64 {
    let distance = |part| S::distance(corner, S::along(edge, part));
    let looks = (0..=LOOKS).map(|look| f64::from(look) / f64::from(LOOKS));
    let best = looks.map(|part| (distance(part), part)).min_by(|a, b| a.0.total_cmp(&b.0));
    let (nearest, part) = best.unwrap_or((f64::INFINITY, 0.0));
    let beside = 1.0 / f64::from(LOOKS);
    let (mut from, mut to) = ((part - beside).max(0.0), (part + beside).min(1.0));
    for _ in 0..NARROWINGS {
        let third = (to - from) / 3.0;
        if distance(from + third) < distance(to - third) {
            to -= third;
        } else {
            from += third;
        }
    }
    nearest.min(distance(f64::midpoint(from, to)))
}

/// Whether a shape lies in another, and not only on its boundary. None if they
/// touch at too many points to tell.
pub(super) fn within<S: Surface>(shape: &Shape<S>, other: &Shape<S>) -> Option<bool> {
    if shape.kind > other.kind || shape.parts.is_empty() {
        return Some(false);
    }
    let mut pieces = Pieces { left: PIECES_MAX };
    for part in &shape.parts {
        if !part_within(part, shape, other, &mut pieces)? {
            return Some(false);
        }
    }
    Some(shape.kind != ShapeKind::Area || !pieces.any_inside(other, shape)?)
}

/// Whether no edge of a part leaves a shape, and the part is inside of it
/// somewhere.
fn part_within<S: Surface>(
    part: &ShapePart<S>,
    shape: &Shape<S>,
    other: &Shape<S>,
    pieces: &mut Pieces,
) -> Option<bool> {
    let mut inside = false;
    for edge in part.edges() {
        if other.kind == ShapeKind::Area
            && other.edges().any(|found| pass_through::<S>(edge, found))
        {
            return Some(false);
        }
        for point in pieces.cut(edge, other)? {
            match other.place(point) {
                Place::Outside => return Some(false),
                Place::Inside => inside = true,
                Place::Boundary => {}
            }
        }
    }
    // All of the boundary may be common: the part fills the other, or its hole.
    let fills = || shape.kind == ShapeKind::Area && is_filled_by(part, shape, other);
    Some(inside || fills())
}

/// Whether a point close to the edge of a part, and inside of it, is also inside
/// of another shape.
fn is_filled_by<S: Surface>(part: &ShapePart<S>, shape: &Shape<S>, other: &Shape<S>) -> bool {
    let beside = |edge| (1..24).map(move |halving| S::beside(edge, 0.5_f64.powi(halving)));
    let samples = part.edges().take(8).flat_map(beside);
    let inner = samples.into_iter().find(|point| shape.place(*point) == Place::Inside);
    inner.is_some_and(|point| other.place(point) == Place::Inside)
}

/// Cuts edges into pieces, and counts them.
struct Pieces {
    left: usize,
}

impl Pieces {
    /// Whether a piece of an edge of a shape lies inside of another.
    fn any_inside<S: Surface>(&mut self, shape: &Shape<S>, other: &Shape<S>) -> Option<bool> {
        for edge in shape.edges() {
            for point in self.cut(edge, other)? {
                if other.place(point) == Place::Inside {
                    return Some(true);
                }
            }
        }
        Some(false)
    }

    /// The middles of the pieces of an edge between the corners of a shape that
    /// lie on it.
    fn cut<S: Surface>(&mut self, edge: &S::Edge, at: &Shape<S>) -> Option<Vec<S::Point>> {
        let on_edge = at.corners().filter(|corner| lies_on::<S>(*corner, edge));
        let mut cuts: Vec<f64> = on_edge.map(|corner| S::part(edge, corner)).collect();
        cuts.extend([0.0, 1.0]);
        cuts.retain(|cut| (0.0..=1.0).contains(cut));
        cuts.sort_by(f64::total_cmp);
        cuts.dedup_by(|cut, before| *cut - *before < 1e-9);
        let middles = cuts.windows(2).filter_map(|pair| match pair {
            [from, to] => Some(S::along(edge, f64::midpoint(*from, *to))),
            _ => None,
        });
        let middles: Vec<S::Point> = middles.collect();
        self.left = self.left.checked_sub(middles.len())?;
        Some(middles)
    }
}
