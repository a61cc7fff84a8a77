use proptest::prelude::*;

use super::Like;

/// Pattern, escape character, text, whether it is like it.
const ROWS: &[(&str, Option<char>, &str, bool)] = &[
    ("%driver%", None, "a screwdriver set", true),
    ("%driver%", None, "driver", true),
    ("%driver%", None, "drive", false),
    ("fruit%", None, "fruit salad", true),
    ("fruit%", None, "a fruit", false),
    ("%Road", None, "HL Road", true),
    ("%Road", None, "Roads", false),
    ("", None, "", true),
    ("", None, "a", false),
    ("%", None, "", true),
    ("%%", None, "abc", true),
    ("_", None, "", false),
    ("_", None, "a", true),
    ("_", None, "😀", true),
    ("_", None, "ab", false),
    ("%SO_PS%", None, "xSOaPSx", true),
    ("%SO_PS%", None, "xSOPSx", false),
    ("%SO[t-z]PS%", None, "SOuPS", true),
    ("%SO[t-z]PS%", None, "SOaPS", false),
    ("%SO[^abc]PS%", None, "SOdPS", true),
    ("%SO[^abc]PS%", None, "SObPS", false),
    ("%SO[^abc]PS%", None, "SOPS", false),
    ("[a-c]at", None, "bat", true),
    ("[a-c]at", None, "dat", false),
    ("[a-]x", None, "-x", true),
    ("[-a]x", None, "-x", true),
    ("[c-a]x", None, "bx", false),
    ("[^]x", None, "[^]x", true),
    ("[]x", None, "[]x", true),
    ("[_]n", None, "_n", true),
    ("[_]n", None, "abn", false),
    ("[_]n", None, "an", false),
    ("20-30[%]", None, "20-30%", true),
    ("20-30[%]", None, "20-305", false),
    ("[[]", None, "[", true),
    ("]", None, "]", true),
    ("a[b", None, "a[b", true),
    ("%20^%%", Some('^'), "only 20% left", true),
    ("%20^%%", Some('^'), "only 20 left", false),
    ("!%a", Some('!'), "%a", true),
    ("!%a", Some('!'), "xa", false),
    ("!!%", Some('!'), "!abc", true),
    ("![a]", Some('!'), "[a]", true),
    ("[a!]]", Some('!'), "]", true),
    ("!a", Some('!'), "a", true),
    ("a%", Some('%'), "a", false),
    ("ABC", None, "abc", false),
    ("$a", None, "a", false),
    ("a.c", None, "abc", false),
    ("%a%b%", None, "xaxxbx", true),
    ("%ab%ab", None, "ababxab", true),
    ("%ab%ab", None, "ab", false),
];

#[test]
fn every_construct() {
    for (pattern, escape, text, expected) in ROWS {
        let like = Like::new(pattern, *escape);
        let found = like.is_some_and(|like| like.matches(text));
        assert_eq!(found, *expected, "{text:?} LIKE {pattern:?} ESCAPE {escape:?}");
    }
}

#[test]
fn an_escape_character_at_the_end_is_no_pattern() {
    assert_eq!(Like::new("a!", Some('!')), None);
    assert_eq!(Like::new("%", Some('%')), None);
}

#[test]
fn what_all_matches_start_with() {
    let rows: &[(&str, Option<char>, Option<&str>, &str)] = &[
        ("abc", None, Some("abc"), "abc"),
        ("abc%", None, None, "abc"),
        ("a_c", None, None, "a"),
        ("a[bc]d", None, None, "a"),
        ("a[%]c", None, Some("a%c"), "a%c"),
        ("a[^b]c", None, None, "a"),
        ("a!%", Some('!'), Some("a%"), "a%"),
        ("a!%%", Some('!'), None, "a%"),
        ("%", None, None, ""),
        ("", None, Some(""), ""),
        ("é😀%", None, None, "é😀"),
    ];
    for (pattern, escape, literal, prefix) in rows {
        let like = Like::new(pattern, *escape).unwrap();
        assert_eq!(like.literal().as_deref(), *literal, "{pattern}");
        assert_eq!(like.prefix(), *prefix, "{pattern}");
    }
}

#[test]
fn many_runs_take_no_more_than_length_times_length() {
    let pattern = "%a".repeat(500) + "%b";
    let like = Like::new(&pattern, None).unwrap();
    assert!(!like.matches(&"a".repeat(20_000)));
    assert!(like.matches(&("a".repeat(20_000) + "b")));
}

/// By the rule itself: a run takes nothing, or one character and is asked again.
fn naive(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        (['%', after @ ..], _) => {
            naive(after, text) || text.split_first().is_some_and(|(_, rest)| naive(pattern, rest))
        }
        (['_', after @ ..], [_, rest @ ..]) => naive(after, rest),
        ([one, after @ ..], [first, rest @ ..]) => one == first && naive(after, rest),
        _ => false,
    }
}

proptest! {
    #[test]
    fn matches_are_those_of_a_naive_matcher(pattern in "[ab%_]{0,7}", text in "[ab]{0,8}") {
        let like = Like::new(&pattern, None).unwrap();
        let characters = |text: &str| text.chars().collect::<Vec<_>>();
        prop_assert_eq!(like.matches(&text), naive(&characters(&pattern), &characters(&text)));
        if like.matches(&text) {
            prop_assert!(text.starts_with(&like.prefix()));
        }
        if let Some(literal) = like.literal() {
            prop_assert_eq!(like.matches(&text), text == literal);
        }
    }

    #[test]
    fn an_escaped_text_is_like_itself_only(text in "[a%_!^\\[\\]-]{0,6}", other in "[a%_!^\\[\\]-]{0,6}") {
        let escaped: String = text.chars().flat_map(|character| ['!', character]).collect();
        let like = Like::new(&escaped, Some('!')).unwrap();
        prop_assert!(like.matches(&text));
        prop_assert_eq!(like.matches(&other), text == other);
        prop_assert_eq!(like.literal(), Some(text));
    }
}
