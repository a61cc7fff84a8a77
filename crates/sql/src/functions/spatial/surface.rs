//! What shapes lie on: the plane or the earth.
//!
//! All that is asked about shapes is put together from the few questions here:
//! where a point is, seen from an edge, and how far it is.

/// A surface with points, and straight edges between them.
pub(super) trait Surface: Sized {
    /// A point.
    type Point: Copy;
    /// The straight way from one point to another, or a single point.
    type Edge;

    /// The point with these coordinates, or why there is none.
    fn point(x: f64, y: f64) -> Result<Self::Point, &'static str>;

    /// The edge between two points; none if no way is the straight one.
    fn edge(from: Self::Point, to: Self::Point) -> Option<Self::Edge>;

    /// Where an edge starts.
    fn start(edge: &Self::Edge) -> Self::Point;

    /// Where an edge ends.
    fn end(edge: &Self::Edge) -> Self::Point;

    /// The point of an edge at a part of the way, between 0 and 1.
    fn along(edge: &Self::Edge, part: f64) -> Self::Point;

    /// At which part of the way a point of an edge lies.
    fn part(edge: &Self::Edge, point: Self::Point) -> f64;

    /// A point to the left of the middle of an edge, at a part of its length.
    fn beside(edge: &Self::Edge, part: f64) -> Self::Point;

    /// The point of an edge that is nearest to a point, or nearly so where the
    /// surface is no sphere.
    fn foot(edge: &Self::Edge, point: Self::Point) -> Self::Point;

    /// How far to the left of an edge, prolonged, a point lies; negative to the
    /// right, and 0 where that cannot be told.
    fn side(edge: &Self::Edge, point: Self::Point) -> f64;

    /// Whether two edges are too far apart to meet.
    fn apart(left: &Self::Edge, right: &Self::Edge) -> bool;

    /// How far two points are apart, in a measure that is quick to find.
    fn gap(left: Self::Point, right: Self::Point) -> f64;

    /// The gap from which on two points are surely further apart than a
    /// distance.
    fn reach(distance: f64) -> f64;

    /// How far two points are apart.
    fn distance(left: Self::Point, right: Self::Point) -> f64;

    /// Whether two points are the same, but for the errors of calculation.
    fn same(left: Self::Point, right: Self::Point) -> bool;

    /// The area inside of a ring: what lies to its left is positive, and what
    /// lies to its right is negative. Where both have an area it is the smaller.
    fn ring_area(ring: &[Self::Edge]) -> f64;

    /// Whether an outer ring means what is to its right.
    fn is_turned(ring: &[Self::Edge]) -> bool;

    /// The area of what an outer ring means.
    fn outer_area(ring: &[Self::Edge]) -> f64;
}

/// Where two edges are, seen from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crossing {
    /// Each passes through the other.
    Yes,
    /// They do not.
    No,
    /// An end of one lies on the other, as far as can be told.
    Unsure,
}

/// Whether two edges cross.
pub(super) fn crossing<S: Surface>(left: &S::Edge, right: &S::Edge) -> Crossing {
    let sides = |edge, other| (S::side(edge, S::start(other)), S::side(edge, S::end(other)));
    let (right_start, right_end) = sides(left, right);
    if right_start * right_end > 0.0 {
        return Crossing::No;
    }
    let (left_start, left_end) = sides(right, left);
    if left_start * left_end > 0.0 {
        Crossing::No
    } else if right_start * right_end == 0.0 || left_start * left_end == 0.0 {
        Crossing::Unsure
    } else if (right_end > 0.0) == (left_start > 0.0) {
        Crossing::Yes
    } else {
        // They are on opposite sides of the earth.
        Crossing::No
    }
}

/// Whether a point lies on an edge.
pub(super) fn lies_on<S: Surface>(point: S::Point, edge: &S::Edge) -> bool {
    S::same(S::foot(edge, point), point)
}

/// Whether an end of one of two edges lies on the other.
pub(super) fn touch<S: Surface>(left: &S::Edge, right: &S::Edge) -> bool {
    lies_on::<S>(S::start(left), right)
        || lies_on::<S>(S::end(left), right)
        || lies_on::<S>(S::start(right), left)
        || lies_on::<S>(S::end(right), left)
}

/// Whether two edges have a point in common.
pub(super) fn meet<S: Surface>(left: &S::Edge, right: &S::Edge) -> bool {
    !S::apart(left, right)
        && (crossing::<S>(left, right) == Crossing::Yes || touch::<S>(left, right))
}

/// Whether one of two edges passes through the other, and does not end there.
pub(super) fn pass_through<S: Surface>(left: &S::Edge, right: &S::Edge) -> bool {
    !S::apart(left, right)
        && crossing::<S>(left, right) == Crossing::Yes
        && !touch::<S>(left, right)
}
