//! Which shapes meet, and which are within others.

use super::*;

/// Each row is two shapes and whether they meet, and whether the first is within
/// the second, and the second within the first.
fn check_relations(setting: Setting, rows: &[(String, String, bool, bool, bool)]) {
    for (left, right, meet, within, around) in rows {
        let told = |name, from: &str, to: &str| text(&ask(setting, name, &[from, to]));
        assert_eq!(told("ST_INTERSECTS", left, right), meet.to_string(), "{left} meets {right}");
        assert_eq!(told("ST_INTERSECTS", right, left), meet.to_string(), "{right} meets {left}");
        assert_eq!(told("ST_WITHIN", left, right), within.to_string(), "{left} in {right}");
        assert_eq!(told("ST_WITHIN", right, left), around.to_string(), "{right} in {left}");
    }
}

/// Rows that are the same on the earth and on the plane: edges are meridians or
/// the equator, or it does not matter.
fn common_rows() -> Vec<(String, String, bool, bool, bool)> {
    let square = rectangle(0.0, 0.0, 10.0, 10.0);
    let holed = polygon(
        "[[[0, 0], [30, 0], [30, 30], [0, 30], [0, 0]], [[10, 10], [20, 10], [20, 20], [10, 20], [10, 10]]]",
    );
    let plug = rectangle(10.0, 10.0, 20.0, 20.0);
    let two = multi(
        "[[[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]], [[[5, 5], [7, 5], [7, 7], [5, 7], [5, 5]]]]",
    );
    let way = line("[[0, 0], [5, 0], [10, 0]]");
    vec![
        // Points.
        (point(1.0, 2.0), point(1.0, 2.0), true, true, true),
        (point(1.0, 2.0), point(1.0, 2.1), false, false, false),
        (point(3.0, 0.0), way.clone(), true, true, false),
        (point(5.0, 0.0), way.clone(), true, true, false),
        (point(0.0, 0.0), way.clone(), true, false, false),
        (point(11.0, 0.0), way.clone(), false, false, false),
        (point(3.0, 1.0), way.clone(), false, false, false),
        (point(0.0, 0.0), line("[[0, 0], [5, 0], [5, 5], [0, 0]]"), true, true, false),
        (point(5.0, 5.0), square.clone(), true, true, false),
        (point(0.0, 5.0), square.clone(), true, false, false),
        (point(10.0, 10.0), square.clone(), true, false, false),
        (point(11.0, 5.0), square.clone(), false, false, false),
        (point(-5.0, 5.0), square.clone(), false, false, false),
        (point(5.0, 15.0), holed.clone(), true, true, false),
        (point(15.0, 15.0), holed.clone(), false, false, false),
        (point(20.0, 15.0), holed.clone(), true, false, false),
        (point(6.0, 6.0), two.clone(), true, true, false),
        (point(3.0, 3.0), two.clone(), false, false, false),
        // Lines.
        (line("[[0, 0], [10, 0]]"), way.clone(), true, true, true),
        (line("[[1, 0], [2, 0]]"), way.clone(), true, true, false),
        (line("[[9, 0], [12, 0]]"), way.clone(), true, false, false),
        (line("[[5, -5], [5, 5]]"), way.clone(), true, false, false),
        (line("[[10, 0], [10, 5]]"), way.clone(), true, false, false),
        (line("[[3, 5], [3, 0]]"), way.clone(), true, false, false),
        (line("[[11, 0], [11, 5]]"), way.clone(), false, false, false),
        (line("[[1, 1], [9, 9]]"), square.clone(), true, true, false),
        (line("[[0, 5], [9, 9]]"), square.clone(), true, true, false),
        (line("[[0, 0], [0, 10]]"), square.clone(), true, false, false),
        (line("[[-1, 5], [11, 5]]"), square.clone(), true, false, false),
        (line("[[5, 5], [15, 5]]"), square.clone(), true, false, false),
        (line("[[11, 0], [11, 10]]"), square.clone(), false, false, false),
        (line("[[12, 12], [18, 18]]"), holed.clone(), false, false, false),
        (line("[[5, 15], [25, 15]]"), holed.clone(), true, false, false),
        (line("[[5, 5], [5, 25]]"), holed.clone(), true, true, false),
        // A line that passes from edge to edge outside of a shape with a dent.
        (
            line("[[0.1, 9], [9.9, 9]]"),
            polygon("[[[0, 0], [10, 0], [10, 10], [5, 2], [0, 10], [0, 0]]]"),
            true,
            false,
            false,
        ),
        // Polygons.
        (square.clone(), square.clone(), true, true, true),
        (rectangle(2.0, 2.0, 3.0, 3.0), square.clone(), true, true, false),
        (rectangle(0.0, 0.0, 3.0, 3.0), square.clone(), true, true, false),
        (rectangle(5.0, 5.0, 15.0, 15.0), square.clone(), true, false, false),
        (rectangle(10.0, 0.0, 20.0, 10.0), square.clone(), true, false, false),
        (rectangle(11.0, 0.0, 20.0, 10.0), square.clone(), false, false, false),
        (plug.clone(), holed.clone(), true, false, false),
        (rectangle(12.0, 12.0, 18.0, 18.0), holed.clone(), false, false, false),
        (rectangle(5.0, 5.0, 25.0, 25.0), holed.clone(), true, false, false),
        (holed.clone(), rectangle(0.0, 0.0, 30.0, 30.0), true, true, false),
        (rectangle(1.0, 1.0, 4.0, 29.0), holed.clone(), true, true, false),
        (two.clone(), square.clone(), true, true, false),
        (rectangle(5.2, 5.2, 6.0, 6.0), two.clone(), true, true, false),
        (rectangle(2.0, 2.0, 3.0, 3.0), two.clone(), false, false, false),
        (two.clone(), rectangle(2.0, 2.0, 10.0, 10.0), true, false, false),
        (multi("[]"), square.clone(), false, false, false),
    ]
}

#[test]
fn relations_on_the_plane() {
    check_relations(PLANE, &common_rows());
    let wide = rectangle(-60.0, 20.0, 70.0, 70.0);
    check_relations(
        PLANE,
        &[
            (line("[[0, 0], [0, 40]]"), wide.clone(), true, false, false),
            (point(0.0, 40.0), wide, true, true, false),
            (point(-2000.0, 3000.0), rectangle(-4000.0, 1000.0, 1000.0, 4000.0), true, true, false),
        ],
    );
}

#[test]
fn relations_on_the_earth() {
    check_relations(SETTING, &common_rows());
    let wide = rectangle(-60.0, 20.0, 70.0, 70.0);
    let campus = polygon(
        "[[[-122.13236581015025, 47.64606476313813], [-122.13221982500913, 47.633757091363975],
        [-122.11840598103835, 47.641749416109235], [-122.12061400629656, 47.64589264786028],
        [-122.13236581015025, 47.64606476313813]]]",
    );
    let highway = polygon(
        "[[[-122.13693695285855, 47.64996065621003], [-122.1351662656516, 47.64627863318731],
        [-122.13488295569863, 47.646326350048696], [-122.1366182291613, 47.650016321952904],
        [-122.13693695285855, 47.64996065621003]]]",
    );
    let grounds = polygon(
        "[[[-122.14034847687708, 47.6494835188378], [-122.14014779899375, 47.64625477474044],
        [-122.13256925774829, 47.646207057813655], [-122.13254564858545, 47.64941990019193],
        [-122.14034847687708, 47.6494835188378]]]",
    );
    let degree = polygon("[[[19, 49], [19, 48], [20, 48], [20, 49], [19, 49]]]");
    let rest = polygon("[[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]");
    let cap = polygon("[[[0, 80], [120, 80], [-120, 80], [0, 80]]]");
    let date_line = rectangle(170.0, -10.0, -170.0, 10.0);
    check_relations(
        SETTING,
        &[
            // What the service is known to say. An edge along a parallel runs north
            // of it, in the north.
            (line("[[0, 0], [0, 40]]"), wide.clone(), false, false, false),
            (point(0.0, 40.0), wide.clone(), false, false, false),
            (point(-122.128_248_573_325_58, 47.639_551_667_571_2), campus, true, true, false),
            (highway, grounds, true, false, false),
            (point(19.599_07, 48.000_11), degree.clone(), false, false, false),
            (point(19.599_07, 48.001_05), degree, true, true, false),
            (
                point(24.890_739, 41.128_275),
                rectangle(-18.620_72, 35.986_78, 42.287_49, 54.335_66),
                true,
                true,
                false,
            ),
            (
                point(24.890_739, 41.128_275),
                rectangle(-31.211_05, 35.986_78, 54.877_82, 54.335_66),
                false,
                false,
                false,
            ),
            (point(20.0, 20.0), rectangle(10.0, 10.0, 30.0, 30.0), true, true, false),
            // The other side of a parallel.
            (point(0.0, 42.0), wide.clone(), true, true, false),
            (point(0.0, 75.0), wide, true, true, false),
            // All but a square.
            (point(5.0, 5.0), rest.clone(), false, false, false),
            (point(0.0, 5.0), rest.clone(), true, false, false),
            (point(50.0, 50.0), rest.clone(), true, true, false),
            (point(-175.0, -5.0), rest.clone(), true, true, false),
            (rectangle(2.0, 2.0, 8.0, 8.0), rest.clone(), false, false, false),
            (rectangle(20.0, 20.0, 30.0, 30.0), rest.clone(), true, true, false),
            (rectangle(-5.0, -5.0, 15.0, 15.0), rest.clone(), true, false, false),
            (rectangle(0.0, 0.0, 10.0, 10.0), rest.clone(), true, false, false),
            (cap.clone(), rest, true, true, false),
            // Poles and the antimeridian.
            (point(0.0, 90.0), cap.clone(), true, true, false),
            (point(123.0, 90.0), point(-57.0, 90.0), true, true, true),
            (point(60.0, 85.1), cap.clone(), true, true, false),
            (point(60.0, 84.0), cap.clone(), false, false, false),
            (point(0.0, -90.0), cap.clone(), false, false, false),
            (line("[[0, 89], [180, 89]]"), cap, true, true, false),
            (line("[[0, 80], [180, 80]]"), point(77.0, 90.0), true, false, true),
            (point(180.0, 0.0), date_line.clone(), true, true, false),
            (point(-180.0, 0.0), date_line.clone(), true, true, false),
            (point(0.0, 0.0), date_line.clone(), false, false, false),
            (line("[[179, -5], [-179, 5]]"), date_line.clone(), true, true, false),
            (point(180.0, 5.0), point(-180.0, 5.0), true, true, true),
            // A corner that is written in two ways, and a ring that is flat.
            (
                point(175.0, 40.0),
                polygon("[[[180, 0], [-180, 0], [-170, 0], [0, 90], [170, 0], [180, 0]]]"),
                true,
                true,
                false,
            ),
            (
                point(165.0, 40.0),
                polygon("[[[180, 0], [-180, 0], [-170, 0], [0, 90], [170, 0], [180, 0]]]"),
                false,
                false,
                false,
            ),
            (point(3.0, 3.0), polygon("[[[0, 0], [5, 0], [10, 0], [0, 0]]]"), false, false, false),
            // Opposite to each other.
            (line("[[-5, 0], [5, 0]]"), line("[[180, -5], [180, 5]]"), false, false, false),
            (date_line, rectangle(-10.0, -10.0, 10.0, 10.0), false, false, false),
        ],
    );
}
