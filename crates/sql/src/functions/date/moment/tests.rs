use proptest::prelude::*;

use super::*;

/// All days from the first to the last, one after the other.
#[test]
fn the_calendar_is_the_one_of_stepping_day_by_day() {
    let (mut year, mut month, mut day) = (1, 1, 1);
    let leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    for number in -719_162..2_932_897 {
        assert_eq!(date_of(number), (year, month, day));
        assert_eq!(day_number(year, month, day), number);
        let last = match month {
            2 => 28 + i64::from(leap(year)),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        day += 1;
        if day > last {
            (month, day) = (month + 1, 1);
        }
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
    assert_eq!((year, month, day), (10_000, 1, 1));
}

#[test]
fn what_is_a_moment() {
    for (text, ticks) in [
        ("1970-01-01", 0),
        ("1970-01-01Z", 0),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01 00:00:00Z", 0),
        ("1970-01-01T00:00:01.5", 15_000_000),
        ("1970-01-01T00:00:00.0000001Z", 1),
        ("1970-01-01T00:00:00.1234567", 1_234_567),
        ("1969-12-31T23:59:59.9999999", -1),
        ("2015-05-19T12:00:00.0000000", 14_320_368_000_000_000),
        ("2000-02-29", 9_517_824_000_000_000),
        ("1601-01-01", -116_444_736_000_000_000),
        ("0001-01-01T00:00:00", -621_355_968_000_000_000),
        ("9999-12-31T23:59:59.9999999", 2_534_023_007_999_999_999),
        // Another offset than that of UTC.
        ("1970-01-01T00:00:00+00:00", 0),
        ("1970-01-01 00:00:00-00:00", 0),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T18:15:00.0000000-05:45", 0),
        ("1970-01-02T14:00:00.0000001+14:00", 864_000_000_001),
        ("2015-05-19T17:30:00+05:30", 14_320_368_000_000_000),
    ] {
        assert_eq!(Moment::read(text).unwrap().ticks(), ticks, "{text}");
    }
}

#[test]
fn what_is_not() {
    for text in [
        "",
        "Z",
        "2024",
        "2024-12",
        "2024-12-1",
        "2024-1-12",
        "24-12-12",
        "12024-12-12",
        "2024/12/12",
        "2024-12-12ZZ",
        "2024-12-12z",
        "2024-12-12T",
        "2024-12-12 ",
        "2024-12-12t20:21:25",
        "2024-12-12_20:21:25",
        "2024-12-12T20",
        "2024-12-12T20Z",
        "2024-12-12T20:21",
        "2024-12-12T20:21:2",
        "2024-12-12T20:21:25.",
        "2024-12-12T20:21:25.Z",
        "2024-12-12T20:21:25.12345678",
        "2024-12-12T20:21:25,1",
        "2024-12-12T20:21:25+1:00",
        "2024-12-12T20:21:25+0100",
        "2024-12-12T20:21:25+01",
        "2024-12-12T20:21:25+01:60",
        "2024-12-12T20:21:25+14:01",
        "2024-12-12T20:21:25-24:00",
        "2024-12-12T20:21:25+01:00Z",
        "2024-12-12T20:21:25Z+01:00",
        "2024-12-12T20:21:25+-1:00",
        "2024-12-12T20:21:25+",
        "2024-12-12+01:00",
        "2024-12-12T+01:00",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "2024-12-12T20:21:25:00",
        "2024-12-12T24:00:00",
        "2024-12-12T20:60:00",
        "2024-12-12T20:21:60",
        "2024-00-12",
        "2024-13-12",
        "2024-12-00",
        "2024-12-32",
        "2024-11-31",
        "2023-02-29",
        "1900-02-29",
        "0000-01-01",
        " 2024-12-12",
        "2024-12-12T 2:21:25",
        "2024-12-12T+2:21:25",
        "2020 - 01 - 03T01: 02:03.1234567Z",
        "2024-12-1２",
        "２024-12-12",
        "2024-12-1éT20:21:25",
    ] {
        assert_eq!(Moment::read(text), None, "{text}");
    }
}

#[test]
fn a_second_past_the_last_year_is_no_moment() {
    assert_eq!(Moment::of_second(Timestamp(0)), Some(Moment::EPOCH));
    assert!(Moment::of_second(Timestamp(253_402_300_799)).is_some());
    assert_eq!(Moment::of_second(Timestamp(253_402_300_800)), None);
    assert_eq!(Moment::of_second(Timestamp(u64::MAX)), None);
}

proptest! {
    #[test]
    fn a_moment_is_written_and_read_back(
        ticks in -621_355_968_000_000_000_i64..2_534_023_008_000_000_000,
    ) {
        let moment = Moment::of_ticks(ticks).unwrap();
        prop_assert_eq!(moment.shown().moment(), Some(moment));
        prop_assert_eq!(Moment::read(&moment.text()), Some(moment));
        prop_assert_eq!(moment.text().len(), 28);
    }

    #[test]
    fn texts_have_the_order_of_moments(
        left in -621_355_968_000_000_000_i64..2_534_023_008_000_000_000,
        right in -621_355_968_000_000_000_i64..2_534_023_008_000_000_000,
    ) {
        let (left, right) = (Moment::of_ticks(left).unwrap(), Moment::of_ticks(right).unwrap());
        prop_assert_eq!(left.text().cmp(&right.text()), left.cmp(&right));
    }
}
