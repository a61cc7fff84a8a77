use proptest::prelude::*;

use super::super::tables::{self, Row};
use super::FUNCTIONS;

const ROWS: &[Row] = &[
    ("LENGTH", r#""AdventureWorks""#, "14"),
    ("LENGTH", r#""""#, "0"),
    ("LENGTH", r#""é""#, "1"),
    ("LENGTH", r#""a😀b""#, "4"),
    ("LENGTH", "null", "undefined"),
    ("LENGTH", "0", "undefined"),
    ("LENGTH", r#"["Adventure", "Works"]"#, "undefined"),
    ("LENGTH", "undefined", "undefined"),
    ("LEFT", r#""AdventureWorks", 0"#, r#""""#),
    ("LEFT", r#""AdventureWorks", 1"#, r#""A""#),
    ("LEFT", r#""AdventureWorks", 5"#, r#""Adven""#),
    ("LEFT", r#""AdventureWorks", 14"#, r#""AdventureWorks""#),
    ("LEFT", r#""AdventureWorks", 100"#, r#""AdventureWorks""#),
    ("LEFT", r#""AdventureWorks", 5.0"#, r#""Adven""#),
    ("LEFT", r#""Hello", -3"#, r#""""#),
    ("LEFT", r#""Hello", 1.5"#, "undefined"),
    ("LEFT", r#""Hello", "1""#, "undefined"),
    ("LEFT", "5, 1", "undefined"),
    ("LEFT", r#""😀b", 1"#, r#""""#),
    ("LEFT", r#""😀b", 2"#, r#""😀""#),
    ("LEFT", r#""a😀b", 2"#, r#""a""#),
    ("RIGHT", r#""AdventureWorks", 0"#, r#""""#),
    ("RIGHT", r#""AdventureWorks", 1"#, r#""s""#),
    ("RIGHT", r#""AdventureWorks", 5"#, r#""Works""#),
    ("RIGHT", r#""AdventureWorks", 14"#, r#""AdventureWorks""#),
    ("RIGHT", r#""AdventureWorks", 100"#, r#""AdventureWorks""#),
    ("RIGHT", r#""Hello", -3"#, r#""""#),
    ("RIGHT", r#""Hello", 1.5"#, "undefined"),
    ("RIGHT", r#""Hello", 2147483648"#, r#""Hello""#),
    ("RIGHT", r#""Hello", -9223372036854775808"#, r#""""#),
    ("RIGHT", "null, 1", "undefined"),
    ("RIGHT", r#""b😀", 1"#, r#""""#),
    ("RIGHT", r#""b😀", 2"#, r#""😀""#),
    ("SUBSTRING", r#""AdventureWorks", 0, 9"#, r#""Adventure""#),
    ("SUBSTRING", r#""AdventureWorks", 9, 5"#, r#""Works""#),
    ("SUBSTRING", r#""AdventureWorks", 0, 14"#, r#""AdventureWorks""#),
    ("SUBSTRING", r#""AdventureWorks", 0, -1"#, r#""""#),
    ("SUBSTRING", r#""AdventureWorks", 2, 0"#, r#""""#),
    ("SUBSTRING", r#""AdventureWorks", 12, 100"#, r#""ks""#),
    ("SUBSTRING", r#""AdventureWorks", 14, 1"#, r#""""#),
    ("SUBSTRING", r#""AdventureWorks", 9223372036854775807, 9223372036854775807"#, r#""""#),
    ("SUBSTRING", r#""Hello", -3, 5"#, r#""""#),
    ("SUBSTRING", r#""Hello", 1.5, 2"#, "undefined"),
    ("SUBSTRING", r#""Hello", 1, NaN"#, "undefined"),
    ("SUBSTRING", r#"["Hello"], 0, 1"#, "undefined"),
    ("SUBSTRING", r#""a😀b", 1, 1"#, r#""""#),
    ("SUBSTRING", r#""a😀b", 2, 2"#, r#""b""#),
    ("SUBSTRING", r#""a😀b", 1, 2"#, r#""😀""#),
    ("INDEX_OF", r#""AdventureWorks", "A""#, "0"),
    ("INDEX_OF", r#""AdventureWorks", "s""#, "13"),
    ("INDEX_OF", r#""AdventureWorks", "Adventure""#, "0"),
    ("INDEX_OF", r#""AdventureWorks", "Works""#, "9"),
    ("INDEX_OF", r#""AdventureWorks", "tureW""#, "5"),
    ("INDEX_OF", r#""AdventureWorks", "Cosmos""#, "-1"),
    ("INDEX_OF", r#""AdventureWorks", "Works", 5"#, "9"),
    ("INDEX_OF", r#""AdventureWorks", "Adventure", 5"#, "-1"),
    ("INDEX_OF", r#""AdventureWorks", "aD""#, "-1"),
    ("INDEX_OF", r#""AdventureWorks", "Adventure", -5"#, "0"),
    ("INDEX_OF", r#""AdventureWorks", "s", 100"#, "-1"),
    ("INDEX_OF", r#""AdventureWorks", "s", 0.5"#, "undefined"),
    ("INDEX_OF", r#""AdventureWorks", "s", "0""#, "undefined"),
    ("INDEX_OF", r#""abc", """#, "0"),
    ("INDEX_OF", r#""😀b", "b""#, "2"),
    ("INDEX_OF", r#""😀b😀", "😀", 1"#, "3"),
    ("INDEX_OF", r#"1, "1""#, "undefined"),
    ("INDEX_OF", r#""1", 1"#, "undefined"),
    ("LASTINDEXOF", r#""abcdeabc", "abc""#, "5"),
    ("LASTINDEXOF", r#""abcdeabc", "abc", 6"#, "0"),
    ("LASTINDEXOF", r#""abcdeabc", "abc", 7"#, "5"),
    ("LASTINDEXOF", r#""abcdeabc", "abc", 100"#, "5"),
    ("LASTINDEXOF", r#""abcdeabc", "abc", 1"#, "-1"),
    ("LASTINDEXOF", r#""abcdeabc", "abc", -1"#, "-1"),
    ("LASTINDEXOF", r#""abcdeabc", "fg""#, "-1"),
    ("LASTINDEXOF", r#""abcdeabc", "abc", 1.5"#, "undefined"),
    ("LASTINDEXOF", r#""abc", """#, "3"),
    ("LASTINDEXOF", r#""😀b", "b""#, "2"),
    ("LASTINDEXOF", r#"null, "b""#, "undefined"),
];

#[test]
fn every_function() {
    tables::check(FUNCTIONS, ROWS);
}

/// The piece as a list of units; `None` if a half of a character is at an end.
fn model(text: &str, start: usize, count: usize) -> Option<String> {
    let units: Vec<u16> = text.encode_utf16().skip(start).take(count).collect();
    String::from_utf16(&units).ok()
}

proptest! {
    #[test]
    fn a_piece_is_the_same_units(text in "[ab😀é]{0,8}", start in 0_usize..12, count in 0_usize..12) {
        let found = tables::call(FUNCTIONS, "SUBSTRING", &[
            text.as_str().into(), start.into(), count.into(),
        ]);
        let found = found.as_str().unwrap();
        match model(&text, start, count) {
            Some(expected) => prop_assert_eq!(found, expected),
            None => prop_assert!(found.encode_utf16().count() < count && text.contains(found)),
        }
    }

    #[test]
    fn what_is_found_stands_there(text in "[ab😀]{0,8}", sought in "[ab😀]{0,2}") {
        for name in ["INDEX_OF", "LASTINDEXOF"] {
            let place = tables::call(FUNCTIONS, name, &[text.as_str().into(), sought.as_str().into()]);
            let place = place.as_integer().unwrap();
            prop_assert_eq!(place >= 0, text.contains(&sought));
            if let Ok(start) = usize::try_from(place) {
                let count = sought.encode_utf16().count();
                prop_assert_eq!(model(&text, start, count), Some(sought.clone()));
            }
        }
    }
}
