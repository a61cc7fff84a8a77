//! The earth: an ellipsoid, WGS 84. Coordinates are longitude and latitude in
//! degrees, distances are metres.
//!
//! The straight way between two points is where a plane through both and the
//! centre of the earth cuts its surface, and the distance is the length of that
//! cut. This is how the service does it; it is longer than the shortest way by
//! a few centimetres in a thousand kilometres.
//!
//! Stretched along its axis the ellipsoid becomes a sphere, and planes through
//! the centre stay planes. So all questions of where something lies are asked
//! on a sphere of radius 1, where a point is a vector and an edge an arc of a
//! great circle, and only distances and areas know about the ellipsoid.

mod area;
mod integral;

use std::f64::consts::PI;

use self::integral::integral;
use super::surface::Surface;
use super::vector::Vector;

/// The earth.
pub(super) struct Earth;

/// An arc that is shorter than half a circle, or a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    from: Vector,
    to: Vector,
    /// Its length, as an angle.
    angle: f64,
    /// The direction in which it sets out; null for a point.
    ahead: Vector,
    /// The direction back from its end.
    back: Vector,
}

/// Metres from the centre to the equator.
const EQUATOR: f64 = 6_378_137.0;
/// Metres from the centre to a pole, as a part of those to the equator.
const FLAT: f64 = 1.0 - 1.0 / 298.257_223_563;
/// The square of the eccentricity.
const ECCENTRICITY: f64 = 1.0 - FLAT * FLAT;

/// Points are the same that are nearer than this, which is six micrometres.
const SAME: f64 = 1e-12;
/// What is nearer to an arc than this is on neither side: six nanometres.
const NEITHER: f64 = 1e-15;

/// The vector of null length.
const NULL: Vector = Vector { x: 0.0, y: 0.0, z: 0.0 };

impl Arc {
    /// The point at an angle from the start.
    fn at(&self, angle: f64) -> Vector {
        self.from * angle.cos() + self.ahead * angle.sin()
    }
}

/// The direction from one point to another, at the first. Opposite points, for
/// which all are right, are taken over a pole.
fn direction(from: Vector, to: Vector) -> Vector {
    let way = to - from;
    let across = way - from * from.dot(way);
    let over_a_pole =
        || Vector { x: -from.x * from.z, y: -from.y * from.z, z: 1.0 - from.z * from.z };
    let tiny = across.length() < SAME && way.length() > 1.0;
    let across = if tiny { over_a_pole() } else { across };
    across.unit().unwrap_or(NULL)
}

/// The angle between two vectors, exact also where it is small.
fn angle(left: Vector, right: Vector) -> f64 {
    2.0 * (left - right).length().atan2((left + right).length())
}

impl Surface for Earth {
    type Point = Vector;
    type Edge = Arc;

    fn point(longitude: f64, latitude: f64) -> Result<Vector, &'static str> {
        if !(-90.0..=90.0).contains(&latitude) {
            return Err("Latitude values must be between -90 and 90 degrees.");
        }
        if !(-180.0..=180.0).contains(&longitude) {
            return Err("Longitude values must be between -180 and 180 degrees.");
        }
        let (up, out) = latitude.to_radians().sin_cos();
        let (east, north) = (longitude.to_radians().sin_cos(), up * FLAT);
        let stretch = 1.0 / out.hypot(north);
        let out = out * stretch;
        Ok(Vector { x: out * east.1, y: out * east.0, z: north * stretch })
    }

    fn edge(from: Vector, to: Vector) -> Option<Arc> {
        let angle = angle(from, to);
        let (ahead, back) = (direction(from, to), direction(to, from));
        (angle < PI - SAME).then_some(Arc { from, to, angle, ahead, back })
    }

    fn start(arc: &Arc) -> Vector {
        arc.from
    }

    fn end(arc: &Arc) -> Vector {
        arc.to
    }

    fn along(arc: &Arc, part: f64) -> Vector {
        arc.at(arc.angle * part)
    }

    fn part(arc: &Arc, point: Vector) -> f64 {
        angle(arc.from, point) / arc.angle
    }

    fn beside(arc: &Arc, part: f64) -> Vector {
        let left = arc.from.cross(arc.ahead) * (arc.angle * part);
        let middle = Earth::along(arc, 0.5);
        (middle + left).unit().unwrap_or(middle)
    }

    fn foot(arc: &Arc, point: Vector) -> Vector {
        let (ahead, behind) = (point.dot(arc.ahead), point.dot(arc.back));
        if ahead > 0.0 && behind > 0.0 {
            let foot = arc.from * point.dot(arc.from) + arc.ahead * ahead;
            foot.unit().unwrap_or(arc.from)
        } else if Earth::gap(point, arc.from) <= Earth::gap(point, arc.to) {
            arc.from
        } else {
            arc.to
        }
    }

    fn side(arc: &Arc, point: Vector) -> f64 {
        let way = arc.to - arc.from;
        let side = arc.from.dot(way.cross(point - arc.from)) / way.length();
        if side.abs() > NEITHER { side } else { 0.0 }
    }

    fn apart(left: &Arc, right: &Arc) -> bool {
        // No point of an arc is further from the middle of its chord than its ends.
        let middle = |arc: &Arc| (arc.from + arc.to) * 0.5;
        let reach = |arc: &Arc| (arc.to - arc.from).length() / 2.0;
        (middle(left) - middle(right)).length() > reach(left) + reach(right) + SAME
    }

    fn gap(left: Vector, right: Vector) -> f64 {
        (left - right).length()
    }

    fn reach(distance: f64) -> f64 {
        // A radian is never shorter than at the equator, to the north.
        let angle = distance / (EQUATOR * FLAT);
        if angle < PI { 2.0 * (angle / 2.0).sin() } else { f64::INFINITY }
    }

    fn distance(left: Vector, right: Vector) -> f64 {
        let ahead = direction(left, right);
        // A step is as long as its part along the axis is not.
        let step = |at: f64| {
            let north = ahead.z * at.cos() - left.z * at.sin();
            (1.0 - ECCENTRICITY * north * north).sqrt()
        };
        EQUATOR * integral(0.0, angle(left, right), step)
    }

    fn same(left: Vector, right: Vector) -> bool {
        (left - right).length() <= SAME
    }

    fn ring_area(ring: &[Arc]) -> f64 {
        area::of_ring(ring)
    }

    /// The inside of an outer ring is always to its left.
    fn is_turned(_: &[Arc]) -> bool {
        false
    }

    fn outer_area(ring: &[Arc]) -> f64 {
        let inside = area::of_ring(ring);
        if inside < 0.0 { inside + area::of_earth() } else { inside }
    }
}
