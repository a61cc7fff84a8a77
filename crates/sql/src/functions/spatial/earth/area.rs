//! The area inside of a ring on the earth.
//!
//! It is the sum of the triangles that each edge makes with a pole: positive
//! for edges to the east, seen from the north pole, and negative for those to
//! the west. The triangle is summed up in slices from the edge to the pole; a
//! slice is as wide as the longitude passes by, and the surface of its parts
//! has a density that depends on their height above the equator only.
//!
//! Close to the other pole longitudes pass very quickly. Edges there are taken
//! with that pole, and the slices between both poles are added, whose area is
//! known.

use std::f64::consts::PI;

use super::super::vector::Vector;
use super::integral::integral;
use super::{Arc, ECCENTRICITY, EQUATOR, FLAT, SAME};

/// Edges are cut into pieces no longer than this, which the sums are exact for.
const PIECE: f64 = 0.2;

/// Square metres for each part of the sphere, at a height above its equator.
fn density(height: f64) -> f64 {
    EQUATOR * EQUATOR * (FLAT * FLAT + ECCENTRICITY * height * height).sqrt()
}

/// The mean density between two heights.
fn mean_density(from: f64, to: f64) -> f64 {
    let (middle, half) = (f64::midpoint(from, to), (to - from) / 2.0);
    integral(-1.0, 1.0, |place| density(middle + half * place)) / 2.0
}

/// Square metres of the earth.
pub(super) fn of_earth() -> f64 {
    4.0 * PI * mean_density(0.0, 1.0)
}

/// The area inside of a ring: positive if it is to its left, and none if the ring
/// is so flat that its points are the same as others.
pub(super) fn of_ring(ring: &[Arc]) -> f64 {
    let pole = if ring.iter().map(|arc| arc.from.z).sum::<f64>() < 0.0 { -1.0 } else { 1.0 };
    let slice = mean_density(0.0, 1.0);
    let (mut area, mut turned) = (0.0, 0.0);
    for arc in ring {
        let pieces = (arc.angle / PIECE).ceil().max(1.0);
        let mut piece = 0.0;
        while piece < pieces {
            let (from, to) = (arc.angle * piece / pieces, arc.angle * (piece + 1.0) / pieces);
            let middle = arc.at(f64::midpoint(from, to)).z;
            let near = if middle.abs() > 0.5 { middle.signum() } else { pole };
            let passed = longitude_between(arc.at(from), arc.at(to));
            area += triangle(arc, from, to, near) + (pole - near) * slice * passed;
            turned += passed;
            piece += 1.0;
        }
    }
    // A ring around a pole leaves out that pole's half, or counts the other's.
    let around = (turned / (2.0 * PI)).round();
    let half = 2.0 * PI * slice;
    let left = area + half * (around.rem_euclid(2.0) - pole * around);
    let inside = left - 2.0 * half * (left / (2.0 * half)).round();
    let length = ring.iter().map(|arc| arc.angle).sum::<f64>();
    if inside.abs() > length * SAME * EQUATOR * EQUATOR { inside } else { 0.0 }
}

/// The area between a piece of an arc and a pole.
fn triangle(arc: &Arc, from: f64, to: f64, pole: f64) -> f64 {
    let eastward = arc.from.cross(arc.ahead).z;
    let slice = |at: f64| {
        let height = arc.at(at).z;
        pole * mean_density(height, pole) / (1.0 + pole * height)
    };
    eastward * integral(from, to, slice)
}

/// The longitude that is passed from one point to another, to the east.
fn longitude_between(from: Vector, to: Vector) -> f64 {
    from.cross(to).z.atan2(from.x * to.x + from.y * to.y)
}
