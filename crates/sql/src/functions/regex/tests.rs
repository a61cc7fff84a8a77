use std::borrow::Cow;

use proptest::prelude::*;

use dayfly_model::value::Value;

use super::super::tables::{self, Row};
use super::{FUNCTIONS, KEPT, KEPT_MAX, Refusal, regexmatch};

const ROWS: &[Row] = &[
    ("REGEXMATCH", r#""abcd", "ABC""#, "false"),
    ("REGEXMATCH", r#""abcd", "ABC", "i""#, "true"),
    ("REGEXMATCH", r#""abcd", "ab.", """#, "true"),
    ("REGEXMATCH", r#""abcd", "ab c", "x""#, "true"),
    ("REGEXMATCH", r#""abcd", "aB c", "ix""#, "true"),
    ("REGEXMATCH", r#""03a", "[0-9]""#, "true"),
    ("REGEXMATCH", r#""salt3824908", "salt{1}""#, "true"),
    ("REGEXMATCH", r#""shame", "s....", "i""#, "true"),
    ("REGEXMATCH", r#""Tecozow coat", " coat{1}""#, "true"),
    ("REGEXMATCH", r#""heavy jacket", " coat{1}""#, "false"),
    ("REGEXMATCH", r#""", """#, "true"),
    ("REGEXMATCH", r#""abc", "(""#, "undefined"),
    ("REGEXMATCH", r#""abc", "a", "q""#, "undefined"),
    ("REGEXMATCH", r#""abc", "a", "I""#, "undefined"),
    ("REGEXMATCH", r#""abc", "a", 1"#, "undefined"),
    ("REGEXMATCH", r#"1, "1""#, "undefined"),
    ("REGEXMATCH", r#""1", 1"#, "undefined"),
    ("REGEXMATCH", r#""1", null"#, "undefined"),
    ("REGEXMATCH", r#"undefined, "1""#, "undefined"),
];

#[test]
fn the_function() {
    tables::check(FUNCTIONS, ROWS);
}

fn search(text: &str, pattern: &str, modifiers: &str) -> Result<Value, Refusal> {
    let arguments = [text, pattern, modifiers].map(|text| Cow::Owned(Value::from(text)));
    regexmatch(&arguments)
}

/// Pattern, modifiers, a text that has a match, one that has none.
const CONSTRUCTS: &[(&str, &str, &[&str], &[&str])] = &[
    ("^b", "", &["bc"], &["ab", "a\nb"]),
    ("^b", "m", &["a\nb"], &["ab"]),
    ("a$", "", &["ba", "ba\n"], &["ab", "a\nb", "a\n\n"]),
    ("a$", "m", &["a\nb"], &["ab"]),
    ("(a|b$)", "", &["ac", "b\n"], &["bc"]),
    (r"a\Z", "", &["a\n"], &["a\nb"]),
    (r"a\z", "", &["a"], &["a\n"]),
    (r"\Aa", "m", &["a"], &["b\na"]),
    ("a.b", "", &["axb", "a😀b"], &["a\nb", "ab"]),
    ("a.b", "s", &["a\nb"], &["ab"]),
    ("a.b", "is", &["A\nB"], &["ab"]),
    (r"^\d+$", "", &["42"], &["4x", "٤٢"]),
    (r"^\D$", "", &["x", "٤"], &["4"]),
    (r"^\w+$", "", &["a_1"], &["é", "a b"]),
    (r"^\W$", "", &["é", "-"], &["a"]),
    (r"^\w$", "i", &["S"], &["\u{17f}"]),
    (r"^a\sb$", "", &["a b", "a\tb", "a\u{b}b"], &["a\u{a0}b"]),
    (r"^\S$", "", &["\u{a0}"], &[" "]),
    (r"^a\hb$", "", &["a b", "a\u{a0}b"], &["a\nb"]),
    (r"^a\vb$", "", &["a\nb", "a\u{2028}b"], &["a b"]),
    (r"\bcat\b", "", &["a cat!", "écaté"], &["cats"]),
    (r"^\p{Lu}\pL$", "", &["Éa"], &["éa", "E1"]),
    (r"^\P{L}$", "", &["1"], &["a"]),
    (r"^\p{^L}$", "", &["1"], &["a"]),
    (r"^\p{Greek}$", "", &["λ"], &["l"]),
    (r"^\x41\x{1F600}$", "", &["A😀"], &["A"]),
    (r"^\t\n\r\f\e\a\0\012$", "", &["\t\n\r\u{c}\u{1b}\u{7}\0\n"], &["t"]),
    (r"^a\.b\+\-\<\/\ $", "", &["a.b+-</ "], &["axb+-</ "]),
    ("^[abc]$", "", &["b"], &["d"]),
    ("^[^abc]$", "", &["d", "é"], &["b"]),
    ("^[a-c-]$", "", &["b", "-"], &["d"]),
    ("^[]a]$", "", &["]", "a"], &["b"]),
    ("^[^]a]$", "", &["b"], &["]", "a"]),
    ("^[a[b]]$", "", &["a]", "[]"], &["a", "b"]),
    ("^[a&&b]$", "", &["a", "&", "b"], &["c"]),
    ("^[a~~b]$", "", &["a", "~"], &["c"]),
    ("^[+--]$", "", &["+", ",", "-"], &["."]),
    ("^[a b]$", "x", &[" ", "a"], &["c"]),
    ("^[#]$ # the sign", "x", &["#"], &["a"]),
    (r"^[\d\-x]$", "", &["7", "-", "x"], &["y"]),
    (r"^[\D]$", "", &["y"], &["7"]),
    (r"^[\]\\]$", "", &["]", "\\"], &["a"]),
    (r"^[\b]$", "", &["\u{8}"], &["b"]),
    (r"^[[:alpha:]_]+$", "", &["aZ_"], &["a1", "é"]),
    ("^[[:alpha]$", "", &["[", ":", "a"], &["z"]),
    (r"^[[:^alpha:]]$", "", &["1"], &["a"]),
    (r"^[\p{Lu}1]$", "", &["É", "1"], &["a"]),
    ("^[a-c]$", "i", &["B"], &["D"]),
    ("^ab?$", "", &["a", "ab"], &["abb"]),
    ("^ab*$", "", &["a", "abbb"], &["c"]),
    ("^ab+?$", "", &["abb"], &["a"]),
    ("^a{2}$", "", &["aa"], &["a", "aaa"]),
    ("^a{2,}$", "", &["aaa"], &["a"]),
    ("^a{2,3}?$", "", &["aa", "aaa"], &["a", "aaaa"]),
    ("^a{x}$", "", &["a{x}"], &["a"]),
    ("^a{,x}$", "", &["a{,x}"], &["a"]),
    (r"^\Qa.b\E+$", "", &["a.b", "a.bb"], &["axb", "a.ba.b"]),
    (r"^\Qa b", "x", &["a b"], &["ab"]),
    ("^{$", "", &["{"], &["a"]),
    ("^a}$", "", &["a}"], &["a"]),
    ("^(ab)+$", "", &["abab"], &["aba"]),
    ("^(?:ab|c)$", "", &["c"], &["abc"]),
    ("^(?<n>a)(?P<m>b)(?'o'c)$", "", &["abc"], &["ab"]),
    ("^a(?#b)c$", "", &["ac"], &["abc"]),
    ("^(?i)ab$", "", &["AB"], &["b"]),
    ("^a(?i)b$", "", &["aB"], &["AB"]),
    ("^(a(?i)b)c$", "", &["aBc"], &["aBC"]),
    ("^(?i:a)b$", "", &["Ab"], &["AB"]),
    ("^(?-i)a$", "i", &["a"], &["A"]),
    ("^(?-i:a)b$", "i", &["aB"], &["AB"]),
    ("(?s)a.b", "", &["a\nb"], &["ab"]),
    ("(?m-i)^b$", "i", &["a\nb\nc"], &["a\nB"]),
    ("a|", "", &["b"], &[]),
    ("a b # c\n d", "x", &["abd"], &["ab d"]),
    ("a\\ b", "x", &["a b"], &["ab"]),
    ("É", "i", &["é"], &["e"]),
];

#[test]
fn every_construct_is_that_of_perl() {
    for (pattern, modifiers, with, without) in CONSTRUCTS {
        for (texts, expected) in [(with, true), (without, false)] {
            for text in *texts {
                let found = search(text, pattern, modifiers);
                assert_eq!(found, Ok(expected.into()), "{pattern} in {text:?}");
            }
        }
    }
}

#[test]
fn what_is_no_expression_is_undefined() {
    let patterns = [
        "(",
        ")",
        "a)",
        "[",
        "[a",
        "[]",
        "*",
        "+a",
        "a**",
        "(*)",
        "a|?",
        r"\",
        "a{3,2}",
        "a{99999}",
        "[z-a]",
        "[[:nothing:]]",
        "[[.a.]]",
        "[:alpha:]",
        r"\x{110000}",
        r"\x{zz}",
        "(?i",
        "(?<1>a)",
        "(?<a",
        "(?#a",
        "(?",
    ];
    for pattern in patterns {
        let found = search("a", pattern, "");
        let refused_or_undefined = found.as_ref().map_or(true, |value| !value.is_defined());
        assert!(refused_or_undefined, "{pattern}: {found:?}");
    }
    assert_eq!(search("a", "(", ""), Ok(Value::Undefined));
    assert_eq!(search("a", "a**", ""), Ok(Value::Undefined));
    assert_eq!(search("a", "(?<n>a)(?<n>b)", ""), Ok(Value::Undefined));
}

#[test]
fn what_the_engine_cannot_do_is_refused_with_a_reason() {
    let rows = [
        ("a(?=b)", "a look-around"),
        ("a(?!b)", "a look-around"),
        ("(?<=a)b", "a look-around"),
        ("(?<!a)b", "a look-around"),
        (r"(a)\1", "a reference to a group"),
        (r"(?<n>a)\k<n>", "a reference to a group"),
        ("(?>a)", "an atomic group"),
        ("a+(?#b)+", "a repetition in parts"),
        ("(?|a|b)", "an unusual group"),
        ("a++", "a possessive repetition"),
        ("a{2}+", "a possessive repetition"),
        ("(?R)", "an unusual group"),
        ("(?1)", "an unusual group"),
        ("(?(1)a|b)", "an unusual group"),
        ("(*UTF8)a", "a verb"),
        (r"a\Eb", "an unusual escape"),
        (r"a\R", "an unusual escape"),
        (r"\Bb", r"\B"),
        (r"\N{3}", "an unusual escape"),
        (r"\u0041", "an unusual escape"),
        ("a$\n", "something after the end of the text"),
        ("(a$)?b", "something after the end of the text"),
        ("^*", "a repetition of a place"),
        ("a{,3}", "a repetition without a least number"),
        (r"[\d-z]", "a range that starts with a set"),
        (r"[a-\d]", "a range that ends with a set"),
        (r"\p{Nonsense}", "a construct of another dialect"),
        (r"\p{L}{60000}", "repetitions that grow too large"),
    ];
    for (pattern, reason) in rows {
        assert_eq!(search("ab", pattern, ""), Err(Refusal { reason }), "{pattern}");
    }
    let refusal = search("a", "(?=a)", "").unwrap_err().to_string();
    assert_eq!(refusal, "The regular expression has a look-around, which is not supported here.");
}

#[test]
fn no_line_starts_after_the_last_newline() {
    assert_eq!(search("a\nb\n", "^b$", "m"), Ok(true.into()));
    assert_eq!(search("a\n\n", "^$", "m"), Ok(true.into()));
    assert_eq!(search("a", "^$", "m"), Ok(false.into()));
    assert_eq!(search("a\n", "^b", "m"), Ok(false.into()));
    assert!(search("a\n", "^$", "m").is_err());
    assert!(search("a\n", r"^\n*\z", "m").is_err());
}

#[test]
fn limits() {
    let long = "a".repeat(20_000);
    assert_eq!(search("a", &long, ""), Err(Refusal { reason: "more than 16 KB" }));
    let deep = "(".repeat(101) + &")".repeat(101);
    assert!(search("a", &deep, "").is_err());
    assert!(search("a", &("(".repeat(100) + &")".repeat(100)), "").is_ok());
    for number in 0..3 * KEPT_MAX {
        assert_eq!(search(&number.to_string(), &format!("^{number}$"), ""), Ok(true.into()));
    }
    KEPT.with_borrow(|kept| assert_eq!(kept.len(), KEPT_MAX));
}

#[test]
fn modifiers_are_part_of_what_is_kept() {
    assert_eq!(search("A", "a", ""), Ok(false.into()));
    assert_eq!(search("A", "a", "i"), Ok(true.into()));
    assert_eq!(search("A", "a", ""), Ok(false.into()));
}

#[test]
fn time_does_not_explode() {
    let text = "a".repeat(5_000);
    assert_eq!(search(&text, "^(a+)+b$", ""), Ok(false.into()));
    assert_eq!(search(&text, "(a|aa)+b", ""), Ok(false.into()));
}

proptest! {
    #[test]
    fn any_pattern_is_answered(pattern in "[a-c.*+?|()\\[\\]{}^$\\\\,0-9:<=!#-]{0,12}", text in "[a-c]{0,4}") {
        let _ = search(&text, &pattern, "");
    }

    #[test]
    fn an_escaped_text_is_found_as_it_is(text in "[a-c.*+?|()\\[\\]{}^$\\\\/<> -]{1,6}") {
        let pattern: String = text.chars()
            .map(|character| match character {
                'a'..='c' => character.to_string(),
                other => format!(r"\{other}"),
            })
            .collect();
        prop_assert_eq!(search(&format!("x{text}y"), &pattern, "x"), Ok(true.into()));
        prop_assert_eq!(search("xy", &pattern, ""), Ok(false.into()));
    }
}
