use proptest::prelude::*;

use dayfly_model::value::Value;

use super::super::arguments::SIZE_MAX;
use super::super::tables::{self, Row};
use super::FUNCTIONS;

const ROWS: &[Row] = &[
    ("CONCAT", r#""Ferpal", "Ropes""#, r#""FerpalRopes""#),
    ("CONCAT", r#""66403", "-", "gear""#, r#""66403-gear""#),
    ("CONCAT", r#""", """#, r#""""#),
    ("CONCAT", r#""a", 1"#, "undefined"),
    ("CONCAT", r#""a", null"#, "undefined"),
    ("CONCAT", r#""a", "b", undefined"#, "undefined"),
    ("LOWER", r#""ADVENTURE_Works""#, r#""adventure_works""#),
    ("LOWER", r#""ÄΣ""#, r#""äσ""#),
    ("LOWER", r#""İ""#, r#""İ""#),
    ("LOWER", "1", "undefined"),
    ("UPPER", r#""adventureWorks""#, r#""ADVENTUREWORKS""#),
    ("UPPER", r#""äß""#, r#""Äß""#),
    ("UPPER", "null", "undefined"),
    ("LTRIM", r#""  AdventureWorks""#, r#""AdventureWorks""#),
    ("LTRIM", r#""  AdventureWorks  ""#, r#""AdventureWorks  ""#),
    ("LTRIM", r#""AdventureWorks  ""#, r#""AdventureWorks  ""#),
    ("LTRIM", r#""AdventureWorks", "Works""#, r#""AdventureWorks""#),
    ("LTRIM", r#""AdventureWorks", "Adventure""#, r#""Works""#),
    ("LTRIM", r#""AdventureWorks", "AdventureWorks""#, r#""""#),
    ("LTRIM", r#""AdventureWorks", """#, r#""AdventureWorks""#),
    ("LTRIM", r#""\t\n a", null"#, "undefined"),
    ("LTRIM", r#""\t\n a""#, r#""a""#),
    ("LTRIM", "1", "undefined"),
    ("RTRIM", r#""  AdventureWorks""#, r#""  AdventureWorks""#),
    ("RTRIM", r#""  AdventureWorks  ""#, r#""  AdventureWorks""#),
    ("RTRIM", r#""AdventureWorks", "Works""#, r#""Adventure""#),
    ("RTRIM", r#""AdventureWorks", "Adventure""#, r#""AdventureWorks""#),
    ("RTRIM", r#""AdventureWorks", "AdventureWorks""#, r#""""#),
    ("RTRIM", r#""AdventureWorks", """#, r#""AdventureWorks""#),
    ("TRIM", r#""   AdventureWorks   ""#, r#""AdventureWorks""#),
    ("TRIM", r#""---AdventureWorks---""#, r#""---AdventureWorks---""#),
    ("TRIM", r#""___AdventureWorks___", "_""#, r#""AdventureWorks""#),
    ("TRIM", r#""-- AdventureWorks --", "-""#, r#"" AdventureWorks ""#),
    ("TRIM", r#""-_-AdventureWorks-_-", "-_""#, r#""AdventureWorks""#),
    ("TRIM", r#""aa", "a""#, r#""""#),
    ("TRIM", r#""a", 1"#, "undefined"),
    ("TRIM", r#""a", undefined"#, "undefined"),
    ("REPLACE", r#""AdventureWorksLT", "LT", "LT2""#, r#""AdventureWorksLT2""#),
    ("REPLACE", r#""aXbXc", "X", """#, r#""abc""#),
    ("REPLACE", r#""aaa", "aa", "b""#, r#""ba""#),
    ("REPLACE", r#""abc", "x", "y""#, r#""abc""#),
    ("REPLACE", r#""Hello", "", "World""#, "undefined"),
    ("REPLACE", r#""Hello", "l", 1"#, "undefined"),
    ("REPLACE", r#"1, "1", "2""#, "undefined"),
    ("REPLICATE", r#""Cosmic", 3"#, r#""CosmicCosmicCosmic""#),
    ("REPLICATE", r#""Hello", 0"#, r#""""#),
    ("REPLICATE", r#""Hello", -1"#, "undefined"),
    ("REPLICATE", r#""Hello", 1.5"#, r#""Hello""#),
    ("REPLICATE", r#""Hello", 10000"#, "undefined"),
    ("REPLICATE", r#""Hello", 1e300"#, "undefined"),
    ("REPLICATE", r#""Hello", NaN"#, "undefined"),
    ("REPLICATE", r#""Hello", Infinity"#, "undefined"),
    ("REPLICATE", r#""", 1e300"#, r#""""#),
    ("REPLICATE", r#""Hello", "2""#, "undefined"),
    ("REVERSE", r#""AdventureWorks""#, r#""skroWerutnevdA""#),
    ("REVERSE", r#""a😀b""#, r#""b😀a""#),
    ("REVERSE", r#""""#, r#""""#),
    ("REVERSE", "[1, 2]", "undefined"),
    ("STRINGJOIN", r#"["Iropa", "Mountain", "Bike"], " ""#, r#""Iropa Mountain Bike""#),
    ("STRINGJOIN", r#"["Iropa", "Mountain"], """#, r#""IropaMountain""#),
    ("STRINGJOIN", r#"["Iropa", "Mountain"], undefined"#, "undefined"),
    ("STRINGJOIN", r#"["6", "7", "4"], "A""#, r#""6A7A4""#),
    ("STRINGJOIN", r#"["Adventure", "LT"], "Works""#, r#""AdventureWorksLT""#),
    ("STRINGJOIN", r#"[], "A""#, r#""""#),
    ("STRINGJOIN", r#"["a", 1], "A""#, "undefined"),
    ("STRINGJOIN", r#""a", "A""#, "undefined"),
    ("STRINGSPLIT", r#""Handlebar", "e""#, r#"["Handl", "bar"]"#),
    ("STRINGSPLIT", r#""CARBON_STEEL_WHEEL", "_""#, r#"["CARBON", "STEEL", "WHEEL"]"#),
    ("STRINGSPLIT", r#""xenmoun mountain", "moun""#, r#"["xen", " ", "tain"]"#),
    ("STRINGSPLIT", r#""Frame", undefined"#, "undefined"),
    ("STRINGSPLIT", r#""Helmet", """#, r#"["Helmet"]"#),
    ("STRINGSPLIT", r#""", """#, r#"[""]"#),
    ("STRINGSPLIT", r#""a,,b,", ",""#, r#"["a", "", "b", ""]"#),
    ("STRINGSPLIT", r#"1, ",""#, "undefined"),
];

#[test]
fn every_function() {
    tables::check(FUNCTIONS, ROWS);
}

#[test]
fn what_would_be_larger_than_an_item_is_undefined() {
    let half = Value::from("x".repeat(SIZE_MAX / 2));
    let call = |name, arguments: &[Value]| tables::call(FUNCTIONS, name, arguments).is_defined();
    assert!(call("CONCAT", &[half.clone(), half.clone()]));
    assert!(!call("CONCAT", &[half.clone(), half.clone(), "x".into()]));
    assert!(!call("REPLACE", &[half.clone(), "x".into(), "xxx".into()]));
    let three = Value::Array(vec!["".into(), "".into(), "".into()]);
    assert!(call("STRINGJOIN", &[three.clone(), half.clone()]));
    assert!(!call("STRINGJOIN", &[three, format!("{}x", half.as_str().unwrap()).into()]));
}

#[test]
fn a_repeated_string_has_ten_thousand_units_at_most() {
    let repeated = |text: &str, times: i64| {
        tables::call(FUNCTIONS, "REPLICATE", &[text.into(), times.into()]).is_defined()
    };
    assert!(repeated("ab", 5_000));
    assert!(!repeated("ab", 5_001));
    assert!(repeated("😀", 5_000));
    assert!(!repeated("😀", 5_001));
}

proptest! {
    #[test]
    fn pieces_joined_are_the_text(text in "[ab,]{0,12}", separator in "[a,]{0,2}") {
        let separator = Value::from(separator);
        let pieces = tables::call(FUNCTIONS, "STRINGSPLIT", &[text.as_str().into(), separator.clone()]);
        let joined = tables::call(FUNCTIONS, "STRINGJOIN", &[pieces, separator]);
        prop_assert_eq!(joined.as_str(), Some(text.as_str()));
    }
}
