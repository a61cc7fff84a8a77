//! Shapes, and how they are read from `GeoJSON`.
//!
//! A shape is made of parts, a part of chains, a chain of edges. A point is a
//! chain of one edge that goes nowhere, a line is one chain, and each polygon
//! is a part whose chains are its rings: the outer one first, then the holes.
//!
//! Inside is what lies to the left of all rings of a polygon. Holes may be given
//! in both directions and are turned when they are read. So is the outer ring
//! on the plane; on the earth it is taken as it is, and what is given clockwise
//! means all the rest of the earth.
//!
//! Read are the types that the service has: Point, `LineString`, Polygon and
//! `MultiPolygon`. Rings that cross themselves are not looked for.

use dayfly_model::value::Value;

use super::surface::Surface;

/// The most points a shape may have.
pub(super) const POINTS_MAX: usize = 4096;

/// What a shape is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShapeKind {
    Point,
    Line,
    Area,
}

/// A shape.
pub(super) struct Shape<S: Surface> {
    pub(super) kind: ShapeKind,
    pub(super) parts: Vec<ShapePart<S>>,
}

/// A part of a shape.
pub(super) struct ShapePart<S: Surface> {
    pub(super) chains: Vec<Chain<S>>,
}

/// Edges, one after the other.
pub(super) type Chain<S> = Vec<<S as Surface>::Edge>;

impl<S: Surface> Shape<S> {
    /// The shape that a value describes, or why it describes none.
    pub(super) fn read(value: &Value) -> Result<Shape<S>, String> {
        let coordinates = value.property("coordinates");
        let mut reader = CoordinateReader { points: 0 };
        let (kind, parts) = match value.property("type").as_str() {
            Some("Point") => (ShapeKind::Point, vec![reader.point(coordinates)?]),
            Some("LineString") => (ShapeKind::Line, vec![reader.line(coordinates)?]),
            Some("Polygon") => (ShapeKind::Area, vec![reader.polygon(coordinates)?]),
            Some("MultiPolygon") => {
                let polygons = list(coordinates, "MultiPolygon")?.iter();
                let parts = polygons.map(|polygon| reader.polygon(polygon));
                (ShapeKind::Area, parts.collect::<Result<_, _>>()?)
            }
            _ => return Err(NO_TYPE.to_owned()),
        };
        Ok(Shape { kind, parts })
    }

    /// How large it is; points and lines are not.
    pub(super) fn area(&self) -> f64 {
        let parts = self.parts.iter().filter(|_| self.kind == ShapeKind::Area);
        parts.map(ShapePart::area).sum()
    }

    /// All edges.
    pub(super) fn edges(&self) -> impl Iterator<Item = &S::Edge> {
        self.parts.iter().flat_map(ShapePart::edges)
    }

    /// The start of each chain.
    pub(super) fn starts(&self) -> impl Iterator<Item = S::Point> {
        let chains = self.parts.iter().flat_map(|part| &part.chains);
        chains.filter_map(|chain| chain.first()).map(S::start)
    }

    /// All points that it was given by, some of them twice.
    pub(super) fn corners(&self) -> impl Iterator<Item = S::Point> {
        self.edges().flat_map(|edge| [S::start(edge), S::end(edge)])
    }
}

impl<S: Surface> ShapePart<S> {
    /// The area of a polygon.
    fn area(&self) -> f64 {
        let area_of = |(place, ring): (usize, &Chain<S>)| match place {
            0 => S::outer_area(ring),
            _ => S::ring_area(ring),
        };
        self.chains.iter().enumerate().map(area_of).sum()
    }

    /// Its edges.
    pub(super) fn edges(&self) -> impl Iterator<Item = &S::Edge> {
        self.chains.iter().flatten()
    }
}

const NO_TYPE: &str = "The GeoJSON input is not valid because it is not an object whose type is \
                       Point, LineString, Polygon or MultiPolygon.";

const NO_POSITION: &str = "The GeoJSON input is not valid because a position is not an array of \
                           at least two numbers.";

const OPPOSITE: &str = "An edge between opposite points of the earth is not valid. Add a point \
                        between them.";

/// Reads coordinates, and counts the points.
struct CoordinateReader {
    points: usize,
}

/// A position as it was written.
type Position = (f64, f64);

impl CoordinateReader {
    fn point<S: Surface>(&mut self, coordinates: &Value) -> Result<ShapePart<S>, String> {
        let (x, y) = self.position(coordinates)?;
        let point = S::point(x, y)?;
        Ok(ShapePart { chains: vec![S::edge(point, point).into_iter().collect()] })
    }

    fn line<S: Surface>(&mut self, coordinates: &Value) -> Result<ShapePart<S>, String> {
        let positions = self.positions(coordinates, "LineString")?;
        let chain = chain::<S>(&positions)?;
        if chain.is_empty() {
            return Err("The LineString input is not valid because it does not have enough \
                        distinct points. A LineString must have at least two distinct points."
                .to_owned());
        }
        Ok(ShapePart { chains: vec![chain] })
    }

    fn polygon<S: Surface>(&mut self, coordinates: &Value) -> Result<ShapePart<S>, String> {
        let rings = list(coordinates, "Polygon")?;
        let mut chains = Vec::with_capacity(rings.len());
        for (place, ring) in rings.iter().enumerate() {
            let mut positions = self.positions(ring, "Polygon")?;
            check_ring(&positions, place + 1)?;
            let mut ring = chain::<S>(&positions)?;
            check_corners::<S>(&ring)?;
            let turned = match place {
                0 => S::is_turned(&ring),
                _ => S::ring_area(&ring) > 0.0,
            };
            if turned {
                positions.reverse();
                ring = chain::<S>(&positions)?;
            }
            chains.push(ring);
        }
        if chains.is_empty() {
            return Err("The Polygon input is not valid because it has no ring.".to_owned());
        }
        Ok(ShapePart { chains })
    }

    fn positions(&mut self, value: &Value, of: &str) -> Result<Vec<Position>, String> {
        list(value, of)?.iter().map(|position| self.position(position)).collect()
    }

    fn position(&mut self, value: &Value) -> Result<Position, String> {
        self.points += 1;
        if self.points > POINTS_MAX {
            return Err(format!(
                "Maximum allowed point count per geometry is exceeded. Currently maximum \
                 supported number of points is {POINTS_MAX}."
            ));
        }
        let Value::Array(numbers) = value else { return Err(NO_POSITION.to_owned()) };
        match (value.element(0).as_double(), value.element(1).as_double()) {
            (Some(x), Some(y)) if numbers.iter().all(|number| number.as_double().is_some()) => {
                Ok((x, y))
            }
            _ => Err(NO_POSITION.to_owned()),
        }
    }
}

fn list<'a>(value: &'a Value, of: &str) -> Result<&'a [Value], String> {
    match value {
        Value::Array(values) => Ok(values),
        _ => Err(format!(
            "The {of} input is not valid because its coordinates are not nested as those of a \
             {of}."
        )),
    }
}

/// The edges between positions; positions that are the same as the one before
/// are left out.
fn chain<S: Surface>(positions: &[Position]) -> Result<Chain<S>, String> {
    let points = positions.iter().map(|(x, y)| S::point(*x, *y));
    let mut points = points.collect::<Result<Vec<_>, _>>()?.into_iter();
    let mut edges = Vec::with_capacity(positions.len());
    let Some(mut last) = points.next() else { return Ok(edges) };
    for point in points {
        if S::same(last, point) {
            continue;
        }
        edges.push(S::edge(last, point).ok_or(OPPOSITE)?);
        last = point;
    }
    Ok(edges)
}

/// Whether a ring is closed and long enough.
fn check_ring(positions: &[Position], number: usize) -> Result<(), String> {
    if positions.first() != positions.last() {
        return Err(format!(
            "The Polygon input is not valid because the start and end points of the ring number \
             {number} are not the same. Each ring of a polygon must have the same start and end \
             points."
        ));
    }
    if positions.len() < 4 {
        return Err(format!(
            "The Polygon input is not valid because the ring number {number} does not have enough \
             points. Each ring of a polygon must contain at least four points."
        ));
    }
    Ok(())
}

/// Whether a ring has three corners at least.
fn check_corners<S: Surface>(ring: &Chain<S>) -> Result<(), String> {
    let mut corners: Vec<S::Point> = Vec::with_capacity(3);
    for corner in ring.iter().map(S::start) {
        if corners.len() < 3 && !corners.iter().any(|known| S::same(*known, corner)) {
            corners.push(corner);
        }
    }
    if corners.len() < 3 {
        return Err(
            "The Polygon input is not valid because the ring does not have enough distinct \
                    points. Each ring of a polygon must contain at least three distinct points."
                .to_owned(),
        );
    }
    Ok(())
}
