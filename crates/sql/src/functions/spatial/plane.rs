//! The plane: coordinates and distances are in the same unit.

use super::surface::Surface;

/// The plane.
pub(super) struct Plane;

/// A point of the plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    x: f64,
    y: f64,
}

/// A straight edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    from: Point,
    to: Point,
}

/// Coordinates beyond this cannot be multiplied with each other.
const GREATEST: f64 = 1e100;

/// Points are the same that differ by less than this part of their coordinates.
const SAME: f64 = 1e-13;

/// What is nearer to an edge than this part of the coordinates is on neither
/// side.
const NEITHER: f64 = 1e-15;

impl Point {
    fn minus(self, other: Point) -> Point {
        Point { x: self.x - other.x, y: self.y - other.y }
    }

    fn plus(self, other: Point, part: f64) -> Point {
        Point { x: self.x + other.x * part, y: self.y + other.y * part }
    }

    fn dot(self, other: Point) -> f64 {
        self.x * other.x + self.y * other.y
    }

    fn cross(self, other: Point) -> f64 {
        self.x * other.y - self.y * other.x
    }

    fn length(self) -> f64 {
        self.x.hypot(self.y)
    }

    /// How large its coordinates are.
    fn size(self) -> f64 {
        self.x.abs() + self.y.abs()
    }
}

impl Surface for Plane {
    type Point = Point;
    type Edge = Edge;

    fn point(x: f64, y: f64) -> Result<Point, &'static str> {
        if x.abs() <= GREATEST && y.abs() <= GREATEST {
            Ok(Point { x, y })
        } else {
            Err("Coordinates must be numbers between -1e100 and 1e100.")
        }
    }

    fn edge(from: Point, to: Point) -> Option<Edge> {
        Some(Edge { from, to })
    }

    fn start(edge: &Edge) -> Point {
        edge.from
    }

    fn end(edge: &Edge) -> Point {
        edge.to
    }

    fn along(edge: &Edge, part: f64) -> Point {
        edge.from.plus(edge.to.minus(edge.from), part)
    }

    fn part(edge: &Edge, point: Point) -> f64 {
        point.minus(edge.from).length() / edge.to.minus(edge.from).length()
    }

    fn beside(edge: &Edge, part: f64) -> Point {
        let way = edge.to.minus(edge.from);
        Plane::along(edge, 0.5).plus(Point { x: -way.y, y: way.x }, part)
    }

    fn foot(edge: &Edge, point: Point) -> Point {
        let way = edge.to.minus(edge.from);
        let part = point.minus(edge.from).dot(way) / way.dot(way);
        if part >= 1.0 {
            edge.to
        } else if part > 0.0 {
            edge.from.plus(way, part)
        } else {
            // Also for an edge that is a point, whose part is not a number.
            edge.from
        }
    }

    fn side(edge: &Edge, point: Point) -> f64 {
        let way = edge.to.minus(edge.from);
        let side = way.cross(point.minus(edge.from)) / way.length();
        let noise = NEITHER * (edge.from.size() + edge.to.size() + point.size());
        if side.abs() > noise { side } else { 0.0 }
    }

    fn apart(left: &Edge, right: &Edge) -> bool {
        let reach = left.to.minus(left.from).length() + right.to.minus(right.from).length();
        let middles = Plane::along(left, 0.5).minus(Plane::along(right, 0.5));
        middles.length() > reach / 2.0 * (1.0 + SAME) + SAME * (left.to.size() + right.to.size())
    }

    fn gap(left: Point, right: Point) -> f64 {
        left.minus(right).length()
    }

    fn reach(distance: f64) -> f64 {
        distance
    }

    fn distance(left: Point, right: Point) -> f64 {
        left.minus(right).length()
    }

    fn same(left: Point, right: Point) -> bool {
        left.minus(right).length() <= SAME * (left.size() + right.size())
    }

    fn ring_area(ring: &[Edge]) -> f64 {
        // From the first corner, so that far away from 0 nothing is lost.
        let Some(first) = ring.first() else { return 0.0 };
        let twice = |edge: &Edge| edge.from.minus(first.from).cross(edge.to.minus(first.from));
        ring.iter().map(twice).sum::<f64>() / 2.0
    }

    /// The direction of a ring means nothing here.
    fn is_turned(ring: &[Edge]) -> bool {
        Plane::ring_area(ring) < 0.0
    }

    fn outer_area(ring: &[Edge]) -> f64 {
        Plane::ring_area(ring)
    }
}
