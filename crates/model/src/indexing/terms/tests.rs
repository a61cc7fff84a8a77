//! Tables of terms; and the stream finds what a plain walk over values finds.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::super::rules::{Computed, path_id};
use super::super::{IndexingPolicy, Step};
use super::*;
use crate::value;

const TS: Timestamp = Timestamp(1000);

fn policy(text: &str) -> IndexingPolicy {
    IndexingPolicy::parse(&serde_json::from_str(text).unwrap()).unwrap()
}

fn terms(policy_text: &str, item: &str) -> Terms {
    Terms::of(item, TS, &[], &Rules::new(&policy(policy_text))).unwrap()
}

/// A path as `a.b.[]`.
fn steps(path: &str) -> Vec<Step<'_>> {
    path.split('.').map(|name| if name == "[]" { Step::Item } else { Step::Name(name) }).collect()
}

/// A term, free if the rules of any policy say so.
fn term(path: u64, value: &[u8], is_cut: bool) -> Term {
    Term::new(path, value, is_cut).by(path, &Rules::new(&policy("{}")))
}

/// The terms for `a=1` and the like; `a=07` is a type only.
fn expected(terms: &[(&str, &str)]) -> Vec<Term> {
    let made = |(path, value): &(&str, &str)| {
        let path = path_id(&steps(path));
        match *value {
            "[" => term(path, &[7], true),
            "{" => term(path, &[8], true),
            value => term(path, &order::key(&value::read(value).unwrap()), false),
        }
    };
    let all: BTreeSet<Term> = terms.iter().map(made).collect();
    all.into_iter().collect()
}

#[test]
fn which_terms_an_item_has() {
    let only =
        |paths: &str| format!(r#"{{"includedPaths":[{paths}],"excludedPaths":[{{"path":"/*"}}]}}"#);
    let everything = "{}".to_owned();
    let item = r#"{"id":"x","a":1,"b":{"c":null,"d":[true,true,{"e":2}]},"f":[],"_x":{}}"#;
    for (policy, item, expected_terms) in [
        (
            everything.clone(),
            item,
            &[
                ("id", r#""x""#),
                ("a", "1"),
                ("b", "{"),
                ("b.c", "null"),
                ("b.d", "["),
                ("b.d.[]", "true"),
                ("b.d.[]", "{"),
                ("b.d.[].e", "2"),
                ("f", "["),
                ("_x", "{"),
            ][..],
        ),
        (r#"{"indexingMode":"none"}"#.to_owned(), item, &[]),
        (only(""), item, &[("id", r#""x""#)]),
        (only(r#"{"path":"/a/?"}"#), item, &[("id", r#""x""#), ("a", "1")]),
        (only(r#"{"path":"/b/?"}"#), item, &[("id", r#""x""#), ("b", "{")]),
        (
            only(r#"{"path":"/b/d/[]/?"}"#),
            item,
            &[("id", r#""x""#), ("b.d.[]", "true"), ("b.d.[]", "{")],
        ),
        (only(r#"{"path":"/b/d/[]/e/?"}"#), item, &[("id", r#""x""#), ("b.d.[].e", "2")]),
        (only(r#"{"path":"/b/d/[]/{e, f}/?"}"#), item, &[("id", r#""x""#)]),
        (
            r#"{"excludedPaths":[{"path":"/b/*"},{"path":"/f/?"}],"includedPaths":[{"path":"/*"},{"path":"/b/c/?"}]}"#
                .to_owned(),
            item,
            &[("id", r#""x""#), ("a", "1"), ("b.c", "null"), ("_x", "{")],
        ),
        (
            r#"{"excludedPaths":[{"path":"/id/?"}],"includedPaths":[{"path":"/*"},{"path":"/_etag/?"}]}"#
                .to_owned(),
            r#"{"id":"x","_etag":"1","_ts":1,"_rid":"r","_self":"s","_attachments":"a"}"#,
            &[("id", r#""x""#)],
        ),
        (everything, r#"{"id":"x","a":[[1,1.0],[1]]}"#, &[
            ("id", r#""x""#),
            ("a", "["),
            ("a.[]", "["),
            ("a.[].[]", "1"),
        ]),
    ] {
        assert_eq!(terms(&policy, item).values, expected(expected_terms), "{policy}");
    }
}

#[test]
fn long_values_are_cut_and_marked() {
    for (length, is_cut) in
        [(0, false), (509, false), (510, true), (516, true), (517, true), (9000, true)]
    {
        let item = json!({"a": "x".repeat(length)}).to_string();
        let terms = terms("{}", &item);
        let [term] = &terms.values[..] else { panic!("{terms:?}") };
        assert_eq!(term.is_cut(), is_cut, "{length}");
        assert_eq!(term.bytes().len(), 8 + (length + 3).min(VALUE_BYTES_MAX), "{length}");
    }
    // Zeros take two bytes, and a character is not cut in two.
    for text in ["\0".repeat(300), "€".repeat(300)] {
        let item = json!({"a": text}).to_string();
        let whole = order::key(&Value::from(text));
        let term = &terms("{}", &item).values[0];
        assert_eq!((&term.bytes()[8..], term.is_cut()), (&whole[..VALUE_BYTES_MAX], true));
    }
}

#[test]
fn the_deepest_item_has_terms() {
    let depth = crate::json::DEPTH_MAX;
    let item = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    crate::json::parse(item.as_bytes(), &[]).unwrap();
    assert_eq!(terms("{}", &item).len(), depth);
}

const COMPOSITE: &str = r#"{"includedPaths":[],"excludedPaths":[{"path":"/*"}],"compositeIndexes":[
    [{"path":"/a","order":"ascending"},{"path":"/b/c","order":"descending"}]]}"#;

#[test]
fn a_composite_term_has_all_members_in_their_order() {
    let rules = Rules::new(&policy(COMPOSITE));
    let [composite] = rules.composites() else { panic!() };
    let value = |item: &str| {
        let terms = Terms::of(item, TS, &[], &rules).unwrap();
        let [term] = &terms.composites[..] else { panic!("{terms:?}") };
        (term.bytes()[8..].to_vec(), term.is_cut())
    };
    // As the index puts them.
    let long = |end: &str| format!(r#"{{"a":"{}{end}","b":{{"c":3}}}}"#, "x".repeat(300));
    let ordered = [
        r#"{"b":{"c":1}}"#.to_owned(),
        r#"{"b":1}"#.to_owned(),
        r#"{"a":1,"b":{"c":"z"}}"#.to_owned(),
        r#"{"a":1,"b":{"c":"a"}}"#.to_owned(),
        r#"{"a":1,"b":{"c":2}}"#.to_owned(),
        r#"{"a":1.5,"b":{"c":2}}"#.to_owned(),
        r#"{"a":"","b":{"c":7}}"#.to_owned(),
        r#"{"a":"x"}"#.to_owned(),
        long(""),
        r#"{"a":[1],"b":{"c":{}}}"#.to_owned(),
    ];
    let values: Vec<_> = ordered.iter().map(|item| value(item).0).collect();
    assert!(values.is_sorted(), "{values:?}");
    assert_eq!(value(&long("a")), value(&long("b")));
    for item in &ordered {
        let (bytes, is_cut) = value(item);
        let members = composite.split(&bytes).unwrap();
        assert_eq!(members.iter().any(|member| member.is_cut), is_cut, "{item}");
        let read = value::read(item).unwrap();
        let whole = [order::key(read.property("a")), order::key(read.property("b").property("c"))];
        for (member, whole) in members.iter().zip(whole) {
            assert!(whole.starts_with(&member.bytes) && member.bytes.len() <= 256, "{item}");
            assert_eq!(member.is_cut, member.bytes.len() < whole.len(), "{item}");
        }
        assert_eq!(composite.split(&bytes[1..]), None, "{item}");
        assert_eq!(composite.split(&[&bytes[..], &[1]].concat()), None, "{item}");
    }
}

#[test]
fn composites_over_what_the_server_adds_and_those_that_are_there_have_no_terms() {
    let rules = Rules::new(&policy(
        r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/_etag"}],[{"path":"/_ts/x"},{"path":"/b"}],[{"path":"/a"},{"path":"/b"}],
            [{"path":"/a/?"},{"path":"/b"}],[{"path":"/a","order":"descending"},{"path":"/b"}]]}"#,
    ));
    assert_eq!(rules.composites().len(), 2);
    assert_eq!(Terms::of("{}", TS, &[], &rules).unwrap().composites.len(), 2);
}

#[test]
fn when_an_item_was_written_can_be_a_member() {
    let rules = Rules::new(&policy(
        r#"{"compositeIndexes":[[{"path":"/_ts","order":"descending"},{"path":"/a"}]]}"#,
    ));
    assert!(rules.has_times() && !rules.is_indexed(&steps("_ts")));
    let value = |ts: u64, item: &str| {
        let terms = Terms::of(item, Timestamp(ts), &[], &rules).unwrap();
        terms.composites[0].bytes()[8..].to_vec()
    };
    let ordered =
        [value(7, r#"{"a":1}"#), value(7, r#"{"a":2}"#), value(6, "{}"), value(6, r#"{"a":1}"#)];
    assert!(ordered.is_sorted(), "{ordered:?}");
    let members = rules.composites()[0].split(&ordered[1]).unwrap();
    assert_eq!(members[0].bytes, order::key(&Value::from(7i64)));
    // It is the server's, whatever an item says.
    assert_eq!(value(7, r#"{"_ts":3,"a":1}"#), ordered[0]);
}

#[test]
fn which_computed_properties_have_terms() {
    let item = r#"{"id":"x","low":"STORED","b":1}"#;
    let computed = [("low", value::read(r#"["x",{"d":1}]"#).unwrap())];
    let id = ("id", r#""x""#);
    let all: &[_] =
        &[id, ("b", "1"), ("low", "["), ("low.[]", r#""x""#), ("low.[]", "{"), ("low.[].d", "1")];
    for (paths, has_entries, expected_terms) in [
        ("", true, &[id, ("b", "1")][..]),
        (r#",{"path":"/low/*"}"#, true, all),
        (r#",{"path":"/low/?"}"#, true, &[id, ("b", "1"), ("low", "[")]),
        (r#",{"path":"/low/[]/d/?"}"#, true, &[id, ("b", "1"), ("low.[].d", "1")]),
        (r#",{"path":"/low/*"}"#, false, &[id, ("b", "1")]),
    ] {
        let policy = policy(&format!(
            r#"{{"includedPaths":[{{"path":"/*"}}{paths}],"compositeIndexes":[[{{"path":"/low"}},{{"path":"/b"}}]]}}"#
        ));
        let rules = Rules::with_computed(&policy, &[Computed { name: "low", has_entries }]);
        let terms = Terms::of(item, TS, &computed, &rules).unwrap();
        assert_eq!(terms.values, expected(expected_terms), "{paths} {has_entries}");
        assert_eq!(terms.composites.len(), usize::from(has_entries));
        // A composite index alone is reason enough to look.
        assert_eq!(rules.looks_at("low"), has_entries);
    }
    let rules = Rules::with_computed(&policy("{}"), &[Computed { name: "low", has_entries: true }]);
    assert!(!rules.looks_at("low") && rules.looks_at("b"));
    assert!(!rules.is_indexed(&steps("low")) && !rules.is_indexed(&steps("low.a")));
}

#[test]
fn paths_that_are_spelled_alike_are_not_the_same() {
    let ids: BTreeSet<u64> = ["a", "b", "a.b", "ab", "a.[]", "[].a", "a.[].b", "na", "i"]
        .iter()
        .map(|path| path_id(&steps(path)))
        .chain([path_id(&[Step::Name("[]")]), path_id(&[Step::Name("a.b")])])
        .collect();
    assert_eq!(ids.len(), 11);
}

/// The terms for single paths, from the values and the words of the policy.
fn naive(value: &Value, way: &mut Vec<String>, policy: &IndexingPolicy, out: &mut BTreeSet<Term>) {
    let steps: Vec<Step<'_>> =
        way.iter().map(|name| if name == "[]" { Step::Item } else { Step::Name(name) }).collect();
    let is_id = way.len() == 1 && way[0] == "id";
    if !way.is_empty() && (is_id || policy.is_indexed(&steps)) {
        let whole = order::key(value);
        let cut = match value {
            Value::Array(_) | Value::Object(_) => 1,
            _ => VALUE_BYTES_MAX,
        };
        let kept = &whole[..whole.len().min(cut)];
        out.insert(term(path_id(&steps), kept, kept.len() < whole.len()));
    }
    match value {
        Value::Array(values) => {
            for value in values {
                way.push("[]".to_owned());
                naive(value, way, policy, out);
                way.pop();
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                way.push(name.clone());
                naive(value, way, policy, out);
                way.pop();
            }
        }
        _ => {}
    }
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        (-3..3i64).prop_map(|value| json!(value)),
        any::<u64>().prop_map(|value| json!(value)),
        any::<f64>().prop_filter("JSON", |value| value.is_finite()).prop_map(|value| json!(value)),
        "[ab\u{0}]{0,3}".prop_map(|text| json!(text)),
        (505..520usize).prop_map(|length| json!("y".repeat(length))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|values| json!(values)),
            prop::collection::btree_map("a|b|c|id", inner, 0..4).prop_map(|members| json!(members)),
        ]
    })
}

fn item() -> impl Strategy<Value = String> {
    prop::collection::btree_map("a|b|c|id", json_value(), 0..4)
        .prop_map(|members| json!(members).to_string())
}

/// Random paths, some included and some excluded, each once.
fn policies() -> impl Strategy<Value = String> {
    let path = prop::collection::vec("a|b|c|\\[\\]", 1..4).prop_flat_map(|segments| {
        let text = segments.join("/");
        prop_oneof![Just(format!("/{text}/?")), Just(format!("/{text}/*"))]
    });
    (prop::collection::btree_map(path, any::<bool>(), 0..6), any::<bool>()).prop_map(
        |(mut paths, everything)| {
            paths.insert("/*".to_owned(), everything);
            let list = |says: bool| -> Vec<serde_json::Value> {
                let chosen = paths.iter().filter(|(_, included)| **included == says);
                chosen.map(|(path, _)| json!({"path": path})).collect()
            };
            json!({"includedPaths": list(true), "excludedPaths": list(false)}).to_string()
        },
    )
}

proptest! {
    #[test]
    fn the_stream_finds_what_a_walk_finds(text in policies(), item in item()) {
        let policy = policy(&text);
        let value = value::read(&item).unwrap();
        let mut expected = BTreeSet::new();
        naive(&value, &mut Vec::new(), &policy, &mut expected);
        let found = Terms::of(&item, TS, &[], &Rules::new(&policy)).unwrap();
        prop_assert_eq!(&found.values, &expected.into_iter().collect::<Vec<_>>());
        let paths: BTreeSet<&[u8]> = found.values.iter().map(Term::path).collect();
        prop_assert_eq!(found.paths().collect::<Vec<_>>(), paths.into_iter().collect::<Vec<_>>());
    }

    /// A computed `a` has the terms that a stored one would have, whatever is
    /// stored as `a`; but for `/*`, which does not mean it.
    #[test]
    fn computed_values_stand_in_front_of_stored_ones(
        text in policies(),
        item in item(),
        stored in json_value(),
    ) {
        let mut policy = policy(&text);
        policy.composites = self::policy(COMPOSITE).composites;
        let computed = [Computed { name: "a", has_entries: true }];
        let rules = Rules::with_computed(&policy, &computed);
        let whole = super::super::IndexPath::parse("/a/*").unwrap();
        if !policy.included.contains(&whole) && !policy.excluded.contains(&whole) {
            policy.excluded.push(whole);
        }
        let expected = Terms::of(&item, TS, &[], &Rules::new(&policy)).unwrap();
        let value = value::read(&item).unwrap();
        let mut hidden: serde_json::Value = serde_json::from_str(&item).unwrap();
        hidden["a"] = stored;
        let computed = [("a", value.property("a").clone())];
        prop_assert_eq!(Terms::of(&hidden.to_string(), TS, &computed, &rules).unwrap(), expected);
    }

    #[test]
    fn rules_say_what_the_policy_says(
        text in policies(),
        way in prop::collection::vec("a|b|c|\\[\\]", 1..5),
    ) {
        let policy = policy(&text);
        let way = way.join(".");
        prop_assert_eq!(Rules::new(&policy).is_indexed(&steps(&way)), policy.is_indexed(&steps(&way)));
    }

    #[test]
    fn composite_terms_are_in_the_order_of_their_members(left in item(), right in item()) {
        let rules = Rules::new(&policy(COMPOSITE));
        let key = |item: &str| {
            let item = value::read(item).unwrap();
            (order::key(item.property("a")), order::key(item.property("b").property("c")))
        };
        let term = |item: &str| Terms::of(item, TS, &[], &rules).unwrap().composites.remove(0);
        let (left_key, right_key) = (key(&left), key(&right));
        let expected = left_key.0.cmp(&right_key.0).then(right_key.1.cmp(&left_key.1));
        let (left, right) = (term(&left), term(&right));
        if !left.is_cut() && !right.is_cut() {
            prop_assert_eq!(left.bytes().cmp(right.bytes()), expected);
        }
    }
}

/// What is about a life or a time is in the index, as the id is, and nobody pays for it.
#[test]
fn the_terms_of_id_ttl_and_ts_are_free() {
    let charged = |policy: &str, item: &str| {
        let terms = terms(policy, item);
        let all = || terms.values.iter().chain(&terms.composites);
        (all().count(), all().filter(|term| !term.is_free()).count())
    };
    let composite = |path: &str| {
        format!(
            r#"{{"compositeIndexes":[[{{"path":"/a","order":"ascending"}},
                {{"path":"{path}","order":"ascending"}}]]}}"#
        )
    };
    for (policy, item, expected) in [
        ("{}", r#"{"id":"1","a":1}"#, (2, 1)),
        ("{}", r#"{"id":"1","a":1,"ttl":5}"#, (3, 1)),
        // Another ttl is a property like any other.
        ("{}", r#"{"a":{"ttl":5,"id":5},"TTL":5}"#, (4, 4)),
        (&composite("/b"), r#"{"a":1,"b":2}"#, (3, 3)),
        (&composite("/ttl"), r#"{"a":1,"ttl":2}"#, (3, 1)),
        (&composite("/_ts"), r#"{"a":1}"#, (2, 1)),
        (&composite("/b/ttl"), r#"{"a":1,"b":{"ttl":2}}"#, (4, 4)),
    ] {
        assert_eq!(charged(policy, item), expected, "{policy} {item}");
    }
}
