mod measures;
mod model;
mod relations;

use super::*;
use crate::functions::testing::{SETTING, call, call_with, text};

const PLANE: Setting = Setting { plane: true, ..SETTING };

fn point(x: f64, y: f64) -> String {
    format!(r#"{{"type": "Point", "coordinates": [{x}, {y}]}}"#)
}

fn line(coordinates: &str) -> String {
    format!(r#"{{"type": "LineString", "coordinates": {coordinates}}}"#)
}

fn polygon(coordinates: &str) -> String {
    format!(r#"{{"type": "Polygon", "coordinates": {coordinates}}}"#)
}

fn multi(coordinates: &str) -> String {
    format!(r#"{{"type": "MultiPolygon", "coordinates": {coordinates}}}"#)
}

/// A rectangle, counter-clockwise.
fn rectangle(west: f64, south: f64, east: f64, north: f64) -> String {
    polygon(&format!(
        "[[[{west}, {south}], [{east}, {south}], [{east}, {north}], [{west}, {north}], [{west}, {south}]]]"
    ))
}

fn ask(setting: Setting, name: &str, arguments: &[&str]) -> Value {
    call(setting, FUNCTIONS, name, &arguments.join(", "))
}

#[test]
fn what_is_valid() {
    let valid = r#"{"valid":true}"#;
    let latitude = "Latitude values must be between -90 and 90 degrees.";
    let longitude = "Longitude values must be between -180 and 180 degrees.";
    let open = |number: usize| {
        format!(
            "The Polygon input is not valid because the start and end points of the ring number \
             {number} are not the same. Each ring of a polygon must have the same start and end \
             points."
        )
    };
    let no_type = "The GeoJSON input is not valid because it is not an object whose type is \
                   Point, LineString, Polygon or MultiPolygon.";
    let no_position = "The GeoJSON input is not valid because a position is not an array of at \
                       least two numbers.";
    let few = "The Polygon input is not valid because the ring number 1 does not have enough \
               points. Each ring of a polygon must contain at least four points.";
    let same = "The Polygon input is not valid because the ring does not have enough distinct \
                points. Each ring of a polygon must contain at least three distinct points.";
    let one = "The LineString input is not valid because it does not have enough distinct points. \
               A LineString must have at least two distinct points.";
    let nested = |of: &str| {
        format!(
            "The {of} input is not valid because its coordinates are not nested as those of a {of}."
        )
    };
    for (shape, reason) in [
        (point(-84.388_761_943_453_23, 33.756_827_843_063_48), ""),
        (point(133.756_827_843_063_5, -184.388_761_943_453_23), latitude),
        (point(20.0, 180.0), latitude),
        (point(31.9, -132.8), latitude),
        (point(180.5, 0.0), longitude),
        (point(-180.0, 90.0), ""),
        (r#"{"type": "Point", "coordinates": [1, 2, 3000]}"#.to_owned(), ""),
        (r#"{"coordinates": [1, 2], "type": "Point", "bbox": null}"#.to_owned(), ""),
        (r#"{"type": "Point", "coordinates": [1]}"#.to_owned(), no_position),
        (r#"{"type": "Point", "coordinates": []}"#.to_owned(), no_position),
        (r#"{"type": "Point", "coordinates": ["1", 2]}"#.to_owned(), no_position),
        (r#"{"type": "Point", "coordinates": [1, 2, null]}"#.to_owned(), no_position),
        (r#"{"type": "Point", "coordinates": [[1, 2]]}"#.to_owned(), no_position),
        (r#"{"type": "Point"}"#.to_owned(), no_position),
        (r#"{"type": "point", "coordinates": [1, 2]}"#.to_owned(), no_type),
        (r#"{"type": "MultiPoint", "coordinates": [[1, 2]]}"#.to_owned(), no_type),
        (r#"{"type": "GeometryCollection", "geometries": []}"#.to_owned(), no_type),
        (r#"{"coordinates": [1, 2]}"#.to_owned(), no_type),
        ("{}".to_owned(), no_type),
        ("42".to_owned(), no_type),
        ("null".to_owned(), no_type),
        ("[1, 2]".to_owned(), no_type),
        (line("[[31.8, -5], [31.8, -4.7]]"), ""),
        (line("[[0, 0], [0, 0], [1, 1]]"), ""),
        (line("[[0, 0]]"), one),
        (line("[]"), one),
        (line("[[0, 0], [0, 0]]"), one),
        (line("5"), &nested("LineString")),
        (line("[[0, 0], [0, 91]]"), latitude),
        (
            line("[[0, 0], [180, 0]]"),
            "An edge between opposite points of the earth is not valid. Add a point between them.",
        ),
        (rectangle(31.8, -5.0, 32.0, -4.7), ""),
        (polygon("[[[31.8, -5], [31.8, -4.7], [32, -4.7], [32, -5]]]"), &open(1)),
        (
            polygon("[[[0, 0], [9, 0], [9, 9], [0, 0]], [[4, 1], [5, 1], [5, 2], [4, 1.5]]]"),
            &open(2),
        ),
        (polygon("[[[0, 0], [9, 0], [0, 0]]]"), few),
        (polygon("[[]]"), few),
        (polygon("[[[0, 0], [9, 0], [0, 0], [0, 0]]]"), same),
        (polygon("[[[0, 0], [9, 0], [0, 0], [9, 0], [0, 0]]]"), same),
        (polygon("[[[0, 90], [120, 90], [-120, 90], [0, 90]]]"), same),
        (line("[[180, 5], [-180, 5]]"), one),
        (polygon("[]"), "The Polygon input is not valid because it has no ring."),
        (polygon("[[0, 0], [9, 0], [0, 0], [0, 0]]"), no_position),
        (polygon("[5]"), &nested("Polygon")),
        (
            polygon("[[[-1000, 1000], [1000, 1000], [1000, 4000], [-1000, 4000], [-1000, 1000]]]"),
            latitude,
        ),
        (
            multi(
                "[[[[52, 12], [53, 12], [53, 13], [52, 13], [52, 12]]], [[[50, 0], [51, 0], [51, 5], [50, 5], [50, 0]]]]",
            ),
            "",
        ),
        (multi("[]"), ""),
        (multi("7"), &nested("MultiPolygon")),
        (multi("[[[[52, 12], [53, 12], [53, 13], [52, 13]]]]"), &open(1)),
    ] {
        let expected = match reason {
            "" => valid.to_owned(),
            _ => format!(r#"{{"valid":false,"reason":"{reason}"}}"#),
        };
        assert_eq!(text(&ask(SETTING, "ST_ISVALIDDETAILED", &[&shape])), expected, "{shape}");
        let found = ask(SETTING, "ST_ISVALID", &[&shape]);
        assert_eq!(text(&found), reason.is_empty().to_string(), "{shape}");
        if !reason.is_empty() {
            let fine = point(1.0, 2.0);
            assert!(!ask(SETTING, "ST_AREA", &[&shape]).is_defined());
            for name in ["ST_DISTANCE", "ST_INTERSECTS", "ST_WITHIN"] {
                assert!(!ask(SETTING, name, &[&shape, &fine]).is_defined(), "{name} {shape}");
                assert!(!ask(SETTING, name, &[&fine, &shape]).is_defined(), "{name} {shape}");
            }
        }
    }
}

#[test]
fn what_is_valid_on_the_plane() {
    for (shape, expected) in [
        (
            polygon("[[[-1000, 1000], [1000, 1000], [1000, 4000], [-1000, 4000], [-1000, 1000]]]"),
            "true",
        ),
        (point(133.0, -184.0), "true"),
        (line("[[0, 0], [180, 0]]"), "true"),
        (point(1e101, 0.0), "false"),
        (polygon("[[[0, 0], [1, 0], [1, 1], [0, 1]]]"), "false"),
    ] {
        assert_eq!(text(&ask(PLANE, "ST_ISVALID", &[&shape])), expected, "{shape}");
    }
}

#[test]
fn a_number_that_is_none_is_no_coordinate() {
    let coordinates = Value::Array(vec![f64::NAN.into(), 1.0.into()]);
    let shape = Value::Object(vec![
        ("type".to_owned(), "Point".into()),
        ("coordinates".to_owned(), coordinates),
    ]);
    for setting in [SETTING, PLANE] {
        let found = call_with(setting, FUNCTIONS, "ST_ISVALID", std::slice::from_ref(&shape));
        assert_eq!(found, Value::Bool(false));
    }
}

#[test]
fn undefined_stays_undefined() {
    for (name, arguments) in [
        ("ST_AREA", "undefined"),
        ("ST_ISVALID", "undefined"),
        ("ST_ISVALIDDETAILED", "undefined"),
        ("ST_DISTANCE", r#"{"type": "Point", "coordinates": [1, 2]}, undefined"#),
        (
            "ST_DISTANCE",
            r#"{"type": "Point", "coordinates": [1, 2]}, {"type": "MultiPolygon", "coordinates": []}"#,
        ),
        ("ST_WITHIN", "42, 1337"),
    ] {
        assert_eq!(call(SETTING, FUNCTIONS, name, arguments), Value::Undefined, "{name}");
    }
}

/// A ring of so many corners around a place.
fn wheel(corners: u16, longitude: f64, latitude: f64, radius: f64) -> String {
    let corner = |place: u16| {
        let angle = std::f64::consts::TAU * f64::from(place % corners) / f64::from(corners);
        format!("[{}, {}]", longitude + radius * angle.cos(), latitude + radius * angle.sin())
    };
    let corners: Vec<String> = (0..=corners).map(corner).collect();
    polygon(&format!("[[{}]]", corners.join(",")))
}

#[test]
fn shapes_have_a_limit() {
    let large = wheel(4095, 10.0, 50.0, 1.0);
    assert_eq!(ask(SETTING, "ST_ISVALID", &[&large]), Value::Bool(true));
    assert_eq!(ask(SETTING, "ST_WITHIN", &[&point(10.5, 50.5), &large]), Value::Bool(true));
    let too_large = wheel(4096, 10.0, 50.0, 1.0);
    assert_eq!(
        text(&ask(SETTING, "ST_ISVALIDDETAILED", &[&too_large])),
        r#"{"valid":false,"reason":"Maximum allowed point count per geometry is exceeded. Currently maximum supported number of points is 4096."}"#
    );
    assert_eq!(ask(SETTING, "ST_AREA", &[&too_large]), Value::Undefined);
}

/// Shapes whose edges run over the same corners many times would be cut into
/// pieces without end.
#[test]
fn a_shape_that_touches_without_end_has_no_answer() {
    let zigzag: Vec<&str> = (0..300).map(|turn| ["[0, 0]", "[10, 0]"][turn % 2]).collect();
    let zigzag = line(&format!("[{}]", zigzag.join(",")));
    let steps: Vec<String> =
        (0..=100).map(|step| format!("[{}, 0]", f64::from(step) / 10.0)).collect();
    let way = line(&format!("[{}]", steps.join(",")));
    assert_eq!(ask(PLANE, "ST_WITHIN", &[&zigzag, &way]), Value::Undefined);
    assert_eq!(ask(PLANE, "ST_WITHIN", &[&way, &zigzag]), Value::Bool(true));
}
