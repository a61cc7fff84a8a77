//! Areas and distances.

use super::*;

fn measure(setting: Setting, name: &str, arguments: &[&str]) -> f64 {
    ask(setting, name, arguments).as_double().expect("a number")
}

/// Equal but for one part in so many.
fn assert_near(found: f64, expected: f64, tolerance: f64, what: &str) {
    let error = (found - expected).abs() / expected.abs().max(1e-9);
    assert!(error <= tolerance, "{what}: {found} is not {expected}, but {error} off");
}

#[test]
fn distances_of_points_on_the_earth() {
    for (from, to, expected) in [
        // Those that the service is known to give.
        (
            (-122.128_268_223_046_72, 47.639_802_393_357_18),
            (-122.117_581_139_535_35, 47.669_010_870_061_31),
            3_345.269_817_267_368,
        ),
        (
            (-96.843_686_647_659_94, 46.812_977_943_146_63),
            (-122.117_581_139_535_35, 47.669_010_870_061_31),
            1_907_438.421_299_902,
        ),
        // Quarters of the equator and of a meridian, and both halves.
        ((0.0, 0.0), (90.0, 0.0), 10_018_754.171_394_62),
        ((0.0, 0.0), (0.0, 90.0), 10_001_965.729_312_72),
        ((0.0, -90.0), (77.0, 90.0), 20_003_931.458_625_44),
        ((13.0, 40.0), (-167.0, -40.0), 20_003_931.458_625_44),
        ((0.0, 0.0), (180.0, 0.0), 20_003_931.458_625_44),
        // Over the antimeridian and over the pole.
        ((179.5, 0.0), (-179.5, 0.0), 111_319.490_793_273_58),
        ((0.0, 89.0), (180.0, 89.0), 223_387.770_9),
        ((180.0, 10.0), (-180.0, 10.0), 0.0),
        ((5.0, 90.0), (-60.0, 90.0), 0.0),
        ((20.0, 20.0), (20.1, 20.0), 10_464.708_475_619_349),
    ] {
        let (left, right) = (point(from.0, from.1), point(to.0, to.1));
        let found = measure(SETTING, "ST_DISTANCE", &[&left, &right]);
        assert!((found - expected).abs() <= 1e-6 * expected + 1e-6, "{left} {right}: {found}");
        assert_near(measure(SETTING, "ST_DISTANCE", &[&right, &left]), found, 1e-12, &left);
    }
}

/// Most of these were found by trying all points of the edges, with the lengths
/// of cuts summed up from short chords.
#[test]
fn distances_of_shapes_on_the_earth() {
    let (square, other) =
        (rectangle(178.0, -1.0, 179.0, 1.0), rectangle(-179.0, -1.0, -178.0, 1.0));
    let holed = polygon(
        "[[[35, 10], [45, 45], [15, 40], [10, 20], [35, 10]], [[20, 30], [35, 35], [30, 20], [20, 30]]]",
    );
    let hundred = rectangle(100.0, -1.0, 101.0, 1.0);
    for (left, right, expected) in [
        (point(5.0, 5.0), line("[[0, 0], [10, 0]]"), 552_885.451_058_360_3),
        (point(-1.0, 0.0), line("[[0, 0], [10, 0]]"), 111_319.490_793_349_22),
        (point(11.0, 2.0), line("[[0, 0], [10, 0]]"), 247_576.472_647_728_95),
        (point(0.0, 1.0), line("[[-5, -5], [5, 5]]"), 78_299.383_640_631_26),
        (point(40.0, -30.0), line("[[-5, -5], [5, 5]]"), 5_369_071.958_576_88),
        (point(0.0, 90.0), line("[[-60, 80], [60, 80]]"), 562_740.818_030_086_2),
        (point(0.0, 90.0), line("[[0, 0], [80, 0]]"), 10_001_965.729_312_42),
        (point(0.0, 0.0), line("[[90, -40], [90, 40]]"), 10_011_850.034_008_903),
        (holed.clone(), point(30.0, 10.0), 230_282.190_584_081),
        (holed.clone(), point(28.0, 30.0), 305_751.796_466_713_95),
        (square.clone(), other.clone(), 222_605.296_096_888_92),
        (
            line("[[0, 50], [10, 52]]"),
            line("[[3, 45], [8, 48.5], [14, 47]]"),
            341_359.581_294_406_4,
        ),
        (
            polygon("[[[4.90, 52.37], [4.91, 52.37], [4.91, 52.38], [4.90, 52.37]]]"),
            polygon("[[[4.95, 52.40], [4.96, 52.41], [4.94, 52.42], [4.95, 52.40]]]"),
            3_516.896_023_073_827,
        ),
        // The nearer one of two polygons.
        (
            multi(
                "[[[[10, 0], [11, 0], [11, 1], [10, 1], [10, 0]]], [[[-2, 0], [-1, 0], [-1, 1], [-2, 1], [-2, 0]]]]",
            ),
            point(0.0, 0.0),
            111_319.490_793_349_22,
        ),
        // Inside, at a corner, on an edge, over the antimeridian.
        (rectangle(0.0, 0.0, 10.0, 10.0), point(5.0, 5.0), 0.0),
        (rectangle(0.0, 0.0, 10.0, 10.0), point(10.0, 10.0), 0.0),
        (rectangle(0.0, 0.0, 10.0, 10.0), point(10.0, 3.0), 0.0),
        (rectangle(0.0, 0.0, 10.0, 10.0), line("[[2, 2], [3, 3]]"), 0.0),
        (line("[[2, 2], [3, 3]]"), rectangle(0.0, 0.0, 10.0, 10.0), 0.0),
        (line("[[0, 0], [10, 0]]"), line("[[5, -5], [5, 5]]"), 0.0),
        (rectangle(170.0, -10.0, -170.0, 10.0), point(180.0, 0.0), 0.0),
        (rectangle(170.0, -10.0, -170.0, 10.0), point(-180.0, 0.0), 0.0),
        // A clockwise ring means the rest of the earth.
        (polygon("[[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]"), hundred, 0.0),
    ] {
        let found = measure(SETTING, "ST_DISTANCE", &[&left, &right]);
        assert!((found - expected).abs() <= 1e-9 * expected, "{left} {right}: {found}");
        assert_near(measure(SETTING, "ST_DISTANCE", &[&right, &left]), found, 1e-12, &left);
    }
}

#[test]
fn distances_on_the_plane() {
    let square = rectangle(0.0, 0.0, 10.0, 10.0);
    let holed = polygon(
        "[[[0, 0], [30, 0], [30, 30], [0, 30], [0, 0]], [[10, 10], [20, 10], [20, 20], [10, 20], [10, 10]]]",
    );
    for (left, right, expected) in [
        (point(0.0, 0.0), point(3.0, 4.0), 5.0),
        (point(-1000.0, 500.0), point(2000.0, 4500.0), 5000.0),
        (point(5.0, 3.0), line("[[0, 0], [10, 0]]"), 3.0),
        (point(13.0, 4.0), line("[[0, 0], [10, 0]]"), 5.0),
        (point(-3.0, 4.0), line("[[0, 0], [10, 0]]"), 5.0),
        (point(0.0, 2.0), line("[[-5, -5], [5, 5]]"), std::f64::consts::SQRT_2),
        (square.clone(), point(13.0, 14.0), 5.0),
        (square.clone(), rectangle(12.0, 2.0, 20.0, 3.0), 2.0),
        (square.clone(), rectangle(10.0, 10.0, 20.0, 20.0), 0.0),
        (square.clone(), rectangle(2.0, 2.0, 3.0, 3.0), 0.0),
        // The direction of a ring means nothing.
        (polygon("[[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]"), point(13.0, 14.0), 5.0),
        (polygon("[[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]"), point(5.0, 5.0), 0.0),
        (holed.clone(), point(14.0, 15.0), 4.0),
        (holed, rectangle(13.0, 14.0, 15.0, 16.0), 3.0),
        (line("[[0, 0], [1, 1]]"), line("[[0, 3], [3, 0]]"), std::f64::consts::FRAC_1_SQRT_2),
        (
            polygon(
                "[[[35, 10], [45, 45], [15, 40], [10, 20], [35, 10]], [[20, 30], [35, 35], [30, 20], [20, 30]]]",
            ),
            point(30.0, 10.0),
            1.856_953_381_770_519,
        ),
    ] {
        let found = measure(PLANE, "ST_DISTANCE", &[&left, &right]);
        assert!((found - expected).abs() <= 1e-12 * expected, "{left} {right}: {found}");
        assert_near(measure(PLANE, "ST_DISTANCE", &[&right, &left]), found, 1e-12, &left);
    }
}

/// The first is what the service gives; others are areas of geodesic polygons
/// whose edges were cut into ever smaller pieces.
#[test]
fn areas_on_the_earth() {
    let earth = 510_065_621_724_088.4;
    let rows = [
        (rectangle(31.8, -5.0, 32.0, -4.7), 735_970_283.052_261_4, 1e-9),
        (rectangle(-60.0, 20.0, 70.0, 70.0), 38_885_639_274_731.52, 1e-9),
        (rectangle(170.0, -10.0, -170.0, 10.0), 4_948_157_712_346.21, 1e-9),
        (rectangle(4.9, 52.37, 4.900_1, 52.370_1), 75.789_292_626_207_74, 1e-7),
        (
            polygon(
                "[[[35, 10], [45, 45], [15, 40], [10, 20], [35, 10]], [[20, 30], [35, 35], [30, 20], [20, 30]]]",
            ),
            8_233_201_565_818.772 - 1_074_606_670_019.162,
            1e-9,
        ),
        // A hole in the other direction is a hole as well.
        (
            polygon(
                "[[[35, 10], [45, 45], [15, 40], [10, 20], [35, 10]], [[20, 30], [30, 20], [35, 35], [20, 30]]]",
            ),
            8_233_201_565_818.772 - 1_074_606_670_019.162,
            1e-9,
        ),
        // Around the poles, and close to one.
        (polygon("[[[0, 80], [120, 80], [-120, 80], [0, 80]]]"), 1_634_950_047_852.379_2, 1e-9),
        (polygon("[[[0, -60], [-120, -60], [120, -60], [0, -60]]]"), 15_811_070_796_792.605, 1e-9),
        (
            polygon("[[[0, 70], [10, 70], [170, 70], [-170, 70], [0, 70]]]"),
            2_627_329_913_745.981_4,
            1e-8,
        ),
        // From one pole to the other, and over both.
        (
            polygon("[[[-90, 60], [-90, -80], [80, -85], [90, 60], [-90, 60]]]"),
            252_998_318_475_015.84,
            1e-11,
        ),
        (
            polygon("[[[0, -50], [100, -50], [170, 85], [-5, 85], [0, -50]]]"),
            140_343_342_184_838.64,
            1e-11,
        ),
        (
            polygon("[[[0, 50], [-5, -88], [170, -88], [100, 50], [0, 50]]]"),
            134_756_156_242_081.7,
            1e-11,
        ),
        // Clockwise: the rest of the earth.
        (
            polygon("[[[31.8, -5], [31.8, -4.7], [32, -4.7], [32, -5], [31.8, -5]]]"),
            earth - 735_970_283.05,
            1e-12,
        ),
        (
            polygon("[[[0, 80], [-120, 80], [120, 80], [0, 80]]]"),
            earth - 1_634_950_047_852.379_2,
            1e-9,
        ),
        // An eighth, and a half.
        (polygon("[[[0, 0], [90, 0], [0, 90], [0, 0]]]"), earth / 8.0, 1e-12),
        (polygon("[[[0, 0], [0, -90], [90, 0], [0, 0]]]"), earth / 8.0, 1e-12),
        (polygon("[[[0, 0], [120, 0], [-120, 0], [0, 0]]]"), earth / 2.0, 1e-12),
        (
            multi("[[[[0, 0], [90, 0], [0, 90], [0, 0]]], [[[0, 0], [0, -90], [90, 0], [0, 0]]]]"),
            earth / 4.0,
            1e-12,
        ),
        // Flat, in both directions, and at a pole.
        (polygon("[[[0, 0], [5, 0], [10, 0], [0, 0]]]"), 0.0, 0.0),
        (polygon("[[[0, 0], [10, 0], [5, 0], [0, 0]]]"), 0.0, 0.0),
        (polygon("[[[7, 10], [7, 20], [7, 30], [7, 10]]]"), 0.0, 0.0),
        // A corner that is written in two ways.
        (
            polygon("[[[170, 0], [180, 0], [-180, 0], [-170, 0], [0, 90], [170, 0]]]"),
            earth / 36.0,
            1e-9,
        ),
        (multi("[]"), 0.0, 0.0),
        (point(3.0, 4.0), 0.0, 0.0),
        (line("[[0, 0], [1, 1]]"), 0.0, 0.0),
    ];
    for (shape, expected, tolerance) in rows {
        assert_near(measure(SETTING, "ST_AREA", &[&shape]), expected, tolerance, &shape);
    }
}

#[test]
fn areas_on_the_plane() {
    for (shape, expected) in [
        (rectangle(0.0, 0.0, 3.0, 4.0), 12.0),
        (polygon("[[[0, 0], [0, 4], [3, 4], [3, 0], [0, 0]]]"), 12.0),
        (
            polygon(
                "[[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]], [[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]]",
            ),
            80.0,
        ),
        (
            polygon(
                "[[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]], [[1, 1], [1, 2], [2, 2], [2, 1], [1, 1]]]",
            ),
            80.0,
        ),
        (rectangle(123_456_789.125, 987_654_321.625, 123_456_791.625, 987_654_325.125), 8.75),
        (
            multi(
                "[[[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]], [[[5, 5], [7, 5], [7, 7], [5, 7], [5, 5]]]]",
            ),
            5.0,
        ),
        (point(1.0, 2.0), 0.0),
        (line("[[0, 0], [1, 1], [0, 0]]"), 0.0),
    ] {
        let found = measure(PLANE, "ST_AREA", &[&shape]);
        assert!((found - expected).abs() < 1e-12 * expected.max(1.0), "{shape}: {found}");
    }
}
