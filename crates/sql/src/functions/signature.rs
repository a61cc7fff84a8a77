//! Every function of the language: its name, how many arguments it takes, and
//! of which sort it is. What a function does is written elsewhere.

use std::collections::HashMap;
use std::sync::OnceLock;

/// What is known of a function before it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    /// In upper case.
    pub(crate) name: &'static str,
    /// The fewest arguments.
    pub(crate) least: usize,
    /// The most arguments; [`ANY`] for no limit.
    pub(crate) most: usize,
    /// How it is evaluated and where it may stand.
    pub(crate) sort: Sort,
}

/// The sorts of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A value of values.
    Scalar,
    /// The same, and evaluates only the arguments that it needs.
    Lazy,
    /// A value of many rows.
    Aggregate,
    /// Only in `ORDER BY RANK`.
    Ranking,
    /// About the words of a text.
    FullText,
    /// About the distance of vectors.
    Vector,
}

/// No limit to the number of arguments.
pub(crate) const ANY: usize = usize::MAX;

/// The function of that name, in any case.
pub(crate) fn signature(name: &str) -> Option<&'static Signature> {
    static BY_NAME: OnceLock<HashMap<&str, &Signature>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| ALL.iter().map(|known| (known.name, known)).collect());
    by_name.get(name.to_ascii_uppercase().as_str()).copied()
}

impl Signature {
    /// Whether it can be called with so many arguments.
    pub(crate) fn takes(&self, count: usize) -> bool {
        (self.least..=self.most).contains(&count)
    }

    /// How many arguments it takes, in words.
    pub(crate) fn arity(&self) -> String {
        match (self.least, self.most) {
            (least, ANY) => format!("at least {least}"),
            (least, most) if least == most => least.to_string(),
            (least, most) => format!("{least} to {most}"),
        }
    }
}

const fn row(name: &'static str, least: usize, most: usize, sort: Sort) -> Signature {
    Signature { name, least, most, sort }
}

const fn scalar(name: &'static str, least: usize, most: usize) -> Signature {
    row(name, least, most, Sort::Scalar)
}

/// All of them, by family.
static ALL: &[Signature] = &[
    // Aggregates.
    row("AVG", 1, 1, Sort::Aggregate),
    row("COUNT", 1, 1, Sort::Aggregate),
    row("COUNTIF", 1, 1, Sort::Aggregate),
    row("MAKELIST", 1, 1, Sort::Aggregate),
    row("MAKESET", 1, 1, Sort::Aggregate),
    row("MAX", 1, 1, Sort::Aggregate),
    row("MIN", 1, 1, Sort::Aggregate),
    row("SUM", 1, 1, Sort::Aggregate),
    // Arrays.
    scalar("ARRAY_AVG", 1, 1),
    scalar("ARRAY_CONCAT", 2, ANY),
    scalar("ARRAY_CONTAINS", 2, 3),
    scalar("ARRAY_CONTAINS_ALL", 2, ANY),
    scalar("ARRAY_CONTAINS_ANY", 2, ANY),
    scalar("ARRAY_LENGTH", 1, 1),
    scalar("ARRAY_MAX", 1, 1),
    scalar("ARRAY_MEDIAN", 1, 1),
    scalar("ARRAY_MIN", 1, 1),
    scalar("ARRAY_SLICE", 2, 3),
    scalar("ARRAY_SUM", 1, 1),
    scalar("OBJECTTOARRAY", 1, 3),
    scalar("SETDIFFERENCE", 2, 2),
    scalar("SETEQUAL", 2, 2),
    scalar("SETINTERSECT", 2, 2),
    scalar("SETUNION", 2, 2),
    scalar("_TRY_ARRAY_CONTAINS", 2, 3),
    // Choices.
    row("CHOOSE", 2, ANY, Sort::Lazy),
    row("IIF", 3, 3, Sort::Lazy),
    // Dates and times.
    scalar("AGO", 2, 2),
    scalar("DATETIMEADD", 3, 3),
    scalar("DATETIMEBIN", 2, 4),
    scalar("DATETIMEDIFF", 3, 3),
    scalar("DATETIMEFORMAT", 2, 2),
    scalar("DATETIMEFROMPARTS", 3, 7),
    scalar("DATETIMEPART", 2, 2),
    scalar("DATETIMETOTICKS", 1, 1),
    scalar("DATETIMETOTIMESTAMP", 1, 1),
    scalar("DAY", 1, 1),
    scalar("GETCURRENTDATETIME", 0, 0),
    scalar("GETCURRENTDATETIMESTATIC", 0, 0),
    scalar("GETCURRENTTICKS", 0, 0),
    scalar("GETCURRENTTICKSSTATIC", 0, 0),
    scalar("GETCURRENTTIMESTAMP", 0, 0),
    scalar("GETCURRENTTIMESTAMPSTATIC", 0, 0),
    scalar("IS_DATETIME", 1, 1),
    scalar("MONTH", 1, 1),
    scalar("NOW", 0, 2),
    scalar("TICKSTODATETIME", 1, 1),
    scalar("TIMESTAMPTODATETIME", 1, 1),
    scalar("YEAR", 1, 1),
    // Full text.
    row("FULLTEXTCONTAINS", 2, 2, Sort::FullText),
    row("FULLTEXTCONTAINSALL", 2, ANY, Sort::FullText),
    row("FULLTEXTCONTAINSANY", 2, ANY, Sort::FullText),
    row("FULLTEXTSCORE", 2, ANY, Sort::Ranking),
    row("RRF", 2, ANY, Sort::Ranking),
    row("_FULLTEXTSCORE", 5, 5, Sort::FullText),
    row("_FULLTEXTWORDCOUNT", 1, 1, Sort::FullText),
    // Items.
    scalar("DOCUMENTID", 1, 1),
    // Numbers.
    scalar("ABS", 1, 1),
    scalar("ACOS", 1, 1),
    scalar("ASIN", 1, 1),
    scalar("ATAN", 1, 1),
    scalar("ATN2", 2, 2),
    scalar("CEILING", 1, 1),
    scalar("COS", 1, 1),
    scalar("COT", 1, 1),
    scalar("DEGREES", 1, 1),
    scalar("EXP", 1, 1),
    scalar("FLOOR", 1, 1),
    scalar("INTADD", 2, 2),
    scalar("INTBITAND", 2, 2),
    scalar("INTBITLEFTSHIFT", 2, 2),
    scalar("INTBITNOT", 1, 1),
    scalar("INTBITOR", 2, 2),
    scalar("INTBITRIGHTSHIFT", 2, 2),
    scalar("INTBITXOR", 2, 2),
    scalar("INTDIV", 2, 2),
    scalar("INTMOD", 2, 2),
    scalar("INTMUL", 2, 2),
    scalar("INTSUB", 2, 2),
    scalar("LOG", 1, 2),
    scalar("LOG10", 1, 1),
    scalar("NUMBERBIN", 1, 2),
    scalar("PI", 0, 0),
    scalar("POWER", 2, 2),
    scalar("RADIANS", 1, 1),
    scalar("RAND", 0, 0),
    scalar("ROUND", 1, 1),
    scalar("SIGN", 1, 1),
    scalar("SIN", 1, 1),
    scalar("SQRT", 1, 1),
    scalar("SQUARE", 1, 1),
    scalar("TAN", 1, 1),
    scalar("TRUNC", 1, 1),
    // Places.
    scalar("ST_AREA", 1, 1),
    scalar("ST_DISTANCE", 2, 2),
    scalar("ST_INTERSECTS", 2, 2),
    scalar("ST_ISVALID", 1, 1),
    scalar("ST_ISVALIDDETAILED", 1, 1),
    scalar("ST_WITHIN", 2, 2),
    // Strings.
    scalar("CONCAT", 2, ANY),
    scalar("CONTAINS", 2, 3),
    scalar("CONTAINS_ALL_CI", 2, ANY),
    scalar("CONTAINS_ALL_CS", 2, ANY),
    scalar("CONTAINS_ANY_CI", 2, ANY),
    scalar("CONTAINS_ANY_CS", 2, ANY),
    scalar("ENDSWITH", 2, 3),
    scalar("INDEX_OF", 2, 3),
    scalar("LASTINDEXOF", 2, 3),
    scalar("LEFT", 2, 2),
    scalar("LENGTH", 1, 1),
    scalar("LOWER", 1, 1),
    scalar("LTRIM", 1, 2),
    scalar("REGEXMATCH", 2, 3),
    scalar("REPLACE", 3, 3),
    scalar("REPLICATE", 2, 2),
    scalar("REVERSE", 1, 1),
    scalar("RIGHT", 2, 2),
    scalar("RTRIM", 1, 2),
    scalar("STARTSWITH", 2, 3),
    scalar("STRINGEQUALS", 2, 3),
    scalar("STRINGJOIN", 2, 2),
    scalar("STRINGSPLIT", 2, 2),
    scalar("STRINGTOARRAY", 1, 1),
    scalar("STRINGTOBOOLEAN", 1, 1),
    scalar("STRINGTONULL", 1, 1),
    scalar("STRINGTONUMBER", 1, 1),
    scalar("STRINGTOOBJECT", 1, 1),
    scalar("SUBSTRING", 3, 3),
    scalar("TOSTRING", 1, 1),
    scalar("TRIM", 1, 2),
    scalar("UPPER", 1, 1),
    // Types.
    scalar("IS_ARRAY", 1, 1),
    scalar("IS_BOOL", 1, 1),
    scalar("IS_BOOLEAN", 1, 1),
    scalar("IS_DEFINED", 1, 1),
    scalar("IS_FINITE_NUMBER", 1, 1),
    scalar("IS_INTEGER", 1, 1),
    scalar("IS_NULL", 1, 1),
    scalar("IS_NUMBER", 1, 1),
    scalar("IS_OBJECT", 1, 1),
    scalar("IS_PRIMITIVE", 1, 1),
    scalar("IS_STRING", 1, 1),
    // Vectors.
    row("VECTORDISTANCE", 2, 4, Sort::Vector),
    row("_VECTORSCORE", 2, 4, Sort::Vector),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_there_once_and_in_upper_case() {
        let mut names: Vec<&str> = ALL.iter().map(|known| known.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert!(names.iter().all(|name| *name == name.to_ascii_uppercase()));
        assert!(ALL.iter().all(|known| known.least <= known.most));
        // What is documented, three more aggregates, four for plans, and `IS_BOOLEAN`.
        assert_eq!(ALL.len(), 136 + 3 + 4 + 1);
    }

    /// The editor of the portal offers what there is, and nothing else. What begins with `_` is
    /// for plans; nobody writes it.
    #[test]
    fn the_portal_knows_the_same_functions() {
        let source = include_str!("../../../../portal/src/sql.ts");
        let (_, after) = source.split_once("FUNCTIONS = (").unwrap();
        let (list, _) = after.split_once(").split").unwrap();
        let text: String = list.split('"').skip(1).step_by(2).collect();
        let told: Vec<&str> = text.split(' ').collect();
        let mut names: Vec<&str> =
            ALL.iter().map(|known| known.name).filter(|name| !name.starts_with('_')).collect();
        names.sort_unstable();
        assert_eq!(told, names);
    }

    #[test]
    fn names_are_found_in_any_case() {
        assert_eq!(signature("ArrayContains"), None);
        assert_eq!(signature("Array_Contains").unwrap().name, "ARRAY_CONTAINS");
        assert_eq!(signature("_FullTextScore").unwrap().sort, Sort::FullText);
    }

    #[test]
    fn arguments_are_counted() {
        for (name, taken, arity) in [
            ("ABS", vec![1], "1"),
            ("LOG", vec![1, 2], "1 to 2"),
            ("CONCAT", vec![2, 3, 40_000], "at least 2"),
            ("PI", vec![0], "0"),
        ] {
            let signature = signature(name).unwrap();
            for count in [0, 1, 2, 3, 40_000] {
                assert_eq!(signature.takes(count), taken.contains(&count), "{name} {count}");
            }
            assert_eq!(signature.arity(), arity);
        }
    }
}
