use proptest::prelude::*;

use super::super::tables::{self, Row};
use super::{FUNCTIONS, bits};

const ROWS: &[Row] = &[
    ("INTADD", "20, 10", "30"),
    ("INTADD", "20, 0", "20"),
    ("INTADD", "20, 0.10", "undefined"),
    ("INTADD", "9007199254740992, 1", "9007199254740993"),
    ("INTADD", "9223372036854775807, 1", "-9223372036854775808"),
    ("INTADD", "9223372036854775808, 1", "undefined"),
    ("INTADD", "2.0, 1", "3"),
    ("INTADD", r#""1", 1"#, "undefined"),
    ("INTADD", "null, 1", "undefined"),
    ("INTADD", "1, undefined", "undefined"),
    ("INTSUB", "25, 50", "-25"),
    ("INTSUB", "25, 15", "10"),
    ("INTSUB", "25, 25", "0"),
    ("INTSUB", "25, 2.5", "undefined"),
    ("INTSUB", "-9223372036854775808, 1", "9223372036854775807"),
    ("INTMUL", "5, 2", "10"),
    ("INTMUL", "5, -2", "-10"),
    ("INTMUL", "-5, -2", "10"),
    ("INTMUL", "5, 25", "125"),
    ("INTMUL", "5, 0", "0"),
    ("INTMUL", "5, 0.5", "undefined"),
    ("INTMUL", "4611686018427387904, 4", "0"),
    ("INTDIV", "10, 2", "5"),
    ("INTDIV", "10, -2", "-5"),
    ("INTDIV", "-10, -2", "5"),
    ("INTDIV", "-7, 2", "-3"),
    ("INTDIV", "10, 10", "1"),
    ("INTDIV", "10, 0", "undefined"),
    ("INTDIV", "10, 0.1", "undefined"),
    ("INTDIV", "-9223372036854775808, -1", "-9223372036854775808"),
    ("INTMOD", "12, 5", "2"),
    ("INTMOD", "12, -5", "2"),
    ("INTMOD", "-12, -5", "-2"),
    ("INTMOD", "-12, 5", "-2"),
    ("INTMOD", "15, 5", "0"),
    ("INTMOD", "12, 0", "undefined"),
    ("INTMOD", "12, 0.2", "undefined"),
    ("INTMOD", "-9223372036854775808, -1", "0"),
    ("INTBITAND", "15, 25", "9"),
    ("INTBITAND", "15, 0", "0"),
    ("INTBITAND", "15, 15", "15"),
    ("INTBITAND", "15, 1.5", "undefined"),
    ("INTBITAND", "-1, 9007199254740993", "9007199254740993"),
    ("INTBITOR", "56, 100", "124"),
    ("INTBITOR", "56, 56", "56"),
    ("INTBITOR", "56, 0", "56"),
    ("INTBITOR", "56, 0.1", "undefined"),
    ("INTBITXOR", "56, 100", "92"),
    ("INTBITXOR", "56, 56", "0"),
    ("INTBITXOR", "56, 0", "56"),
    ("INTBITXOR", "56, 0.1", "undefined"),
    ("INTBITNOT", "65", "-66"),
    ("INTBITNOT", "0", "-1"),
    ("INTBITNOT", "0.1", "undefined"),
    ("INTBITNOT", r#""0""#, "undefined"),
    ("INTBITLEFTSHIFT", "16, 4", "256"),
    ("INTBITLEFTSHIFT", "16, 0.4", "undefined"),
    ("INTBITLEFTSHIFT", "1, 63", "-9223372036854775808"),
    ("INTBITLEFTSHIFT", "1, 64", "1"),
    ("INTBITLEFTSHIFT", "1, -1", "undefined"),
    ("INTBITRIGHTSHIFT", "16, 4", "1"),
    ("INTBITRIGHTSHIFT", "16, 0.4", "undefined"),
    ("INTBITRIGHTSHIFT", "-16, 2", "-4"),
    ("INTBITRIGHTSHIFT", "16, 68", "1"),
    ("INTBITRIGHTSHIFT", "16, -4", "undefined"),
];

#[test]
fn every_function() {
    tables::check(FUNCTIONS, ROWS);
}

proptest! {
    #[test]
    fn results_are_those_of_wider_integers_cut_off(x: i64, y: i64) {
        let run = |name| {
            tables::call(FUNCTIONS, name, &[x.into(), y.into()]).as_integer()
        };
        let cut = |wide: i128| Some(i64::from_le_bytes(wide.to_le_bytes()[..8].try_into().unwrap()));
        let (wide_x, wide_y) = (i128::from(x), i128::from(y));
        prop_assert_eq!(run("INTADD"), cut(wide_x + wide_y));
        prop_assert_eq!(run("INTSUB"), cut(wide_x - wide_y));
        prop_assert_eq!(run("INTMUL"), cut(wide_x * wide_y));
        prop_assert_eq!(run("INTDIV"), wide_x.checked_div(wide_y).and_then(cut));
        prop_assert_eq!(run("INTMOD"), wide_x.checked_rem(wide_y).and_then(cut));
    }

    #[test]
    fn a_shift_has_fewer_bits_than_an_integer(count: i64) {
        prop_assert_eq!(bits(count).is_some(), count >= 0);
        prop_assert!(bits(count).unwrap_or(0) < 64);
    }
}
