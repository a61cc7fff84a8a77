//! What must be true for all shapes, against models that are simple.
//!
//! Seen from the centre of the earth, edges are straight lines on a plane that
//! touches it. So shapes that are not too large lie to each other on the earth
//! as their pictures do on that plane.

#![expect(clippy::cast_precision_loss, reason = "there are few of them")]

use proptest::prelude::*;

use super::super::relate;
use super::super::vector::Vector;
use super::*;

/// A star around a place: corners with growing angles, at some distances.
fn star() -> impl Strategy<Value = Vec<(f64, f64)>> {
    (-3.0..3.0, -3.0..3.0, prop::collection::vec(0.5..3.0, 3..9)).prop_map(|(x, y, rays)| {
        let count = rays.len() as f64;
        let corner = |(place, ray): (usize, f64)| {
            let angle = std::f64::consts::TAU * place as f64 / count;
            (x + ray * angle.cos(), y + ray * angle.sin())
        };
        rays.into_iter().enumerate().map(corner).collect()
    })
}

fn path() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((-5.0..5.0, -5.0..5.0), 2..6)
}

/// Whether a point is inside of a ring, by the angles it is seen under.
fn is_inside(ring: &[(f64, f64)], x: f64, y: f64) -> bool {
    let mut turned = 0.0;
    for (place, from) in ring.iter().enumerate() {
        let to = ring[(place + 1) % ring.len()];
        let (a, b) = ((from.0 - x, from.1 - y), (to.0 - x, to.1 - y));
        turned += (a.0 * b.1 - a.1 * b.0).atan2(a.0 * b.0 + a.1 * b.1);
    }
    turned.abs() > 3.0
}

type Segment = ((f64, f64), (f64, f64));

fn edges(ring: &[(f64, f64)]) -> Vec<Segment> {
    (0..ring.len()).map(|place| (ring[place], ring[(place + 1) % ring.len()])).collect()
}

/// Whether two segments cross, by solving for the parts of the way.
fn cross(left: &Segment, right: &Segment) -> bool {
    let (a, b) = (
        (left.1.0 - left.0.0, left.1.1 - left.0.1),
        (right.1.0 - right.0.0, right.1.1 - right.0.1),
    );
    let between = (right.0.0 - left.0.0, right.0.1 - left.0.1);
    let area = a.0 * b.1 - a.1 * b.0;
    let of_left = (between.0 * b.1 - between.1 * b.0) / area;
    let of_right = (between.0 * a.1 - between.1 * a.0) / area;
    (0.0..=1.0).contains(&of_left) && (0.0..=1.0).contains(&of_right)
}

fn value(kind: &str, points: &[(f64, f64)]) -> Value {
    let position = |(x, y): &(f64, f64)| Value::Array(vec![(*x).into(), (*y).into()]);
    let mut positions: Vec<Value> = points.iter().map(position).collect();
    let coordinates = match kind {
        "Point" => positions.remove(0),
        "LineString" => Value::Array(positions),
        _ => {
            positions.push(position(&points[0]));
            Value::Array(vec![Value::Array(positions)])
        }
    };
    Value::Object(vec![("type".to_owned(), kind.into()), ("coordinates".to_owned(), coordinates)])
}

fn shape_of<S: Surface>(kind: &str, points: &[(f64, f64)]) -> Shape<S> {
    Shape::read(&value(kind, points)).expect("a valid shape")
}

/// Where on the earth a point of the plane is seen that touches it at a place.
fn seen(longitude: f64, latitude: f64, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let centre = Earth::point(longitude, latitude).unwrap();
    let north = Vector { x: 0.0, y: 0.0, z: 1.0 };
    let east = north.cross(centre).unit().unwrap();
    let up = centre.cross(east);
    let flat = 1.0 - 1.0 / 298.257_223_563;
    let seen = |(x, y): &(f64, f64)| {
        let at = centre + east * (x / 20.0) + up * (y / 20.0);
        (at.y.atan2(at.x).to_degrees(), at.z.atan2(at.x.hypot(at.y) * flat).to_degrees())
    };
    points.iter().map(seen).collect()
}

/// Sides in length, of the shapes that are drawn here, which no error of
/// calculation can bridge.
fn clear(left: &Shape<Plane>, right: &Shape<Plane>) -> bool {
    let apart = relate::distance(left, right).unwrap();
    let near = left.corners().any(|corner| right.edges().any(|edge| close(edge, corner)))
        || right.corners().any(|corner| left.edges().any(|edge| close(edge, corner)));
    !near && (apart == 0.0 || apart > 1e-6)
}

fn close(edge: &<Plane as Surface>::Edge, corner: <Plane as Surface>::Point) -> bool {
    Plane::gap(Plane::foot(edge, corner), corner) < 1e-6
}

const KINDS: [&str; 3] = ["Point", "LineString", "Polygon"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_point_is_where_the_angles_say(ring in star(), x in -5.0..5.0, y in -5.0..5.0) {
        let shape = shape_of::<Plane>("Polygon", &ring);
        let point = shape_of::<Plane>("Point", &[(x, y)]);
        prop_assume!(clear(&shape, &point));
        let inside = is_inside(&ring, x, y);
        prop_assert_eq!(relate::within(&point, &shape), Some(inside));
        prop_assert_eq!(relate::intersect(&point, &shape), inside);
        prop_assert_eq!(relate::distance(&point, &shape) == Some(0.0), inside);
    }

    #[test]
    fn shapes_on_the_earth_are_as_their_pictures(
        left in star(),
        right in star(),
        path in path(),
        kinds in prop::sample::select(vec![(0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (0, 1)]),
        longitude in -180.0..180.0,
        latitude in -89.0..89.0,
    ) {
        let points = |kind: usize, star: &[(f64, f64)]| match kind {
            0 => vec![star[0]],
            1 => path.clone(),
            _ => star.to_vec(),
        };
        let (left, right) = (points(kinds.0, &left), points(kinds.1, &right));
        let (left_kind, right_kind) = (KINDS[kinds.0], KINDS[kinds.1]);
        let flat = (shape_of::<Plane>(left_kind, &left), shape_of::<Plane>(right_kind, &right));
        prop_assume!(clear(&flat.0, &flat.1));
        let round = (
            shape_of::<Earth>(left_kind, &seen(longitude, latitude, &left)),
            shape_of::<Earth>(right_kind, &seen(longitude, latitude, &right)),
        );
        prop_assert_eq!(
            relate::intersect(&round.0, &round.1),
            relate::intersect(&flat.0, &flat.1)
        );
        prop_assert_eq!(relate::within(&round.0, &round.1), relate::within(&flat.0, &flat.1));
        prop_assert_eq!(relate::within(&round.1, &round.0), relate::within(&flat.1, &flat.0));
    }

    /// A polygon is within another if its corners are and no edges cross.
    #[test]
    fn within_is_corners_inside_and_no_crossing(
        outer in star(),
        inner in star(),
        scale in 0.1..1.0,
    ) {
        let inner: Vec<(f64, f64)> = inner.iter().map(|(x, y)| (x * scale, y * scale)).collect();
        let shapes = (shape_of::<Plane>("Polygon", &inner), shape_of::<Plane>("Polygon", &outer));
        prop_assume!(clear(&shapes.0, &shapes.1));
        let inside = inner.iter().all(|(x, y)| is_inside(&outer, *x, *y));
        let crossed = edges(&inner).iter().any(|left| edges(&outer).iter().any(|right| cross(left, right)));
        prop_assert_eq!(relate::within(&shapes.0, &shapes.1), Some(inside && !crossed));
    }

    /// Corners that lie on edges of another do not make a shape leave it, also if
    /// they are off by less than can be told apart.
    #[test]
    fn the_middles_of_the_edges_are_within(
        corners in prop::collection::vec((-5.0..5.0, -5.0..5.0), 3),
        off in (-1e-12..1e-12, -1e-12..1e-12),
        longitude in -180.0..180.0,
        latitude in -89.0..89.0,
    ) {
        let middle = |(from, to): Segment| {
            (f64::midpoint(from.0, to.0) + off.0, f64::midpoint(from.1, to.1) + off.1)
        };
        let (a, b, c) = (corners[0], corners[1], corners[2]);
        let area: f64 = (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0);
        prop_assume!(area.abs() > 0.1);
        let corners = if area > 0.0 { vec![a, b, c] } else { vec![a, c, b] };
        let middles: Vec<(f64, f64)> = edges(&corners).into_iter().map(middle).collect();
        let moved = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            points.iter().map(|(x, y)| (x + 50.0, y + 50.0)).collect()
        };
        let flat = (
            shape_of::<Plane>("Polygon", &moved(&middles)),
            shape_of("Polygon", &moved(&corners)),
        );
        prop_assert_eq!(relate::within(&flat.0, &flat.1), Some(true));
        prop_assert_eq!(relate::within(&flat.1, &flat.0), Some(false));
        let round = (
            shape_of::<Earth>("Polygon", &seen(longitude, latitude, &middles)),
            shape_of("Polygon", &seen(longitude, latitude, &corners)),
        );
        prop_assert_eq!(relate::within(&round.0, &round.1), Some(true));
        prop_assert_eq!(relate::within(&round.1, &round.0), Some(false));
    }

    /// The nearest points of an edge are found: no other is nearer.
    #[test]
    fn no_point_of_an_edge_is_nearer(
        corners in prop::collection::vec((-179.0..179.0, -89.0..89.0), 3),
        part in 0.0..1.0,
    ) {
        let [point, from, to] = [corners[0], corners[1], corners[2]]
            .map(|(x, y)| Earth::point(x, y).unwrap());
        let edge = Earth::edge(from, to).unwrap();
        let shapes = (
            shape_of::<Earth>("Point", &corners[..1]),
            shape_of::<Earth>("LineString", &corners[1..]),
        );
        let found = relate::distance(&shapes.0, &shapes.1).unwrap();
        let other = Earth::distance(point, Earth::along(&edge, part));
        prop_assert!(found <= other * (1.0 + 1e-9), "{} {}", found, other);
    }

    /// A polygon that is cut into triangles is as large as they are together.
    #[test]
    fn areas_add_up(ring in star(), longitude in -180.0..180.0, latitude in -89.0..89.0) {
        let middle = (
            ring.iter().map(|(x, _)| x).sum::<f64>() / ring.len() as f64,
            ring.iter().map(|(_, y)| y).sum::<f64>() / ring.len() as f64,
        );
        let mut ring = seen(longitude, latitude, &ring);
        let centre = seen(longitude, latitude, &[middle])[0];
        let whole = shape_of::<Earth>("Polygon", &ring).area();
        let earth = 510_065_621_724_088.4;
        let mut sum = 0.0;
        for place in 0..ring.len() {
            let corners = [centre, ring[place], ring[(place + 1) % ring.len()]];
            let area = shape_of::<Earth>("Polygon", &corners).area();
            sum += if area > earth / 2.0 { area - earth } else { area };
        }
        prop_assert!((whole - sum).abs() < 1e-9 * whole, "{} {}", whole, sum);
        ring.reverse();
        let rest = shape_of::<Earth>("Polygon", &ring).area();
        prop_assert!((whole + rest - earth).abs() < 1e-9 * earth);
    }
}
