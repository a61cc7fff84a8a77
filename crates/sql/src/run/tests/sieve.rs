//! What a filter asks of an index, and that it never asks too much.

use std::fmt::Write;

use dayfly_model::value::{order, read};

use super::*;

/// A sieve as text: `/a[1..2]`, with the values as numbers of their bytes.
fn show(sieve: &Sieve) -> String {
    let list = |members: &[Sieve], word: &str| {
        let members: Vec<String> = members.iter().map(show).collect();
        format!("({})", members.join(word))
    };
    match sieve {
        Sieve::All => "all".to_owned(),
        Sieve::Nothing => "nothing".to_owned(),
        Sieve::And(members) => list(members, " and "),
        Sieve::Or(members) => list(members, " or "),
        Sieve::Span(span) => {
            let mut text = path(&span.path);
            let kind = if span.is_point { "=" } else { "~" };
            let exact = if span.exact { "" } else { "?" };
            write!(text, "{kind}{}{exact}", span.low.len()).unwrap();
            text
        }
    }
}

fn path(steps: &[IndexStep]) -> String {
    let step = |step: &IndexStep| match step {
        IndexStep::Name(name) => format!("/{name}"),
        IndexStep::Items => "/[]".to_owned(),
    };
    steps.iter().map(step).collect()
}

#[test]
fn what_filters_ask_for() {
    for (filter, expected) in [
        ("c.a = 1", "/a=11"),
        ("1 = c.a", "/a=11"),
        ("c.a = 'x'", "/a=4"),
        ("c.a = [1]", "/a~1?"),
        ("c.a = undefined", "nothing"),
        ("c.a != 1", "/a~1?"),
        ("c.a > 1", "/a~11"),
        ("1 < c.a", "/a~11"),
        ("c.a <= 'x'", "/a~1"),
        ("c.a < [1]", "nothing"),
        ("c.a BETWEEN 1 AND 5", "/a~11"),
        ("c.a > 1 AND c.a < 0", "nothing"),
        ("c.a > 1 AND c.b = 2", "(/a~11 and /b=11)"),
        ("c.a = 1 OR c.b = 2", "(/a=11 or /b=11)"),
        ("c.a = 1 OR UPPER(c.b) = 'X'", "all"),
        ("c.a = 1 AND UPPER(c.b) = 'X'", "/a=11?"),
        ("NOT (c.a = 1 OR c.b > 2)", "(/a~1? and /b~1)"),
        ("c.a", "/a=1"),
        ("NOT c.a", "/a=1"),
        ("c.a.b['c d'] = 1", "/a/b/c d=11"),
        ("c.a[3] = 1", "/a/[]=11?"),
        ("c.a IN (1)", "/a=11"),
        ("STARTSWITH(c.a, 'ab')", "/a~3"),
        ("STARTSWITH(c.a, 'ab', true)", "/a~1?"),
        ("CONTAINS(c.a, 'ab')", "/a~1?"),
        ("c.a LIKE 'ab%'", "/a~3?"),
        ("c.a LIKE 'ab'", "/a=5"),
        ("IS_DEFINED(c.a)", "/a~1"),
        ("IS_STRING(c.a)", "/a~1"),
        ("NOT IS_DEFINED(c.a)", "all"),
        ("ARRAY_CONTAINS(c.a, 1)", "/a/[]=11?"),
        ("ARRAY_CONTAINS(c.a, {'x': 1}, true)", "all"),
        ("ARRAY_CONTAINS([1], c.a)", "/a=11"),
        ("EXISTS(SELECT VALUE t FROM t IN c.a WHERE t.n = 1)", "/a/[]/n=11?"),
        ("c.a > NaN", "nothing"),
        ("NOT (c.a > NaN)", "/a~1"),
        ("NOT (NaN <= c.a)", "/a~1"),
        ("c.a = c.b", "all"),
        ("false", "nothing"),
        ("true", "all"),
        ("1", "nothing"),
    ] {
        let query = format!("SELECT * FROM c WHERE {filter}");
        assert_eq!(show(&program(&query, json!([])).unwrap().sieve()), expected, "{filter}");
    }
    for (query, expected) in [
        ("SELECT * FROM c", "all"),
        ("SELECT * FROM t IN c.tags WHERE t = 'x'", "/tags/[]=4?"),
        (
            "SELECT c FROM c JOIN t IN c.t JOIN u IN t.u WHERE u.n = 1 AND t.m = 2",
            "(/t/[]/u/[]/n=11? and /t/[]/m=11?)",
        ),
        ("SELECT * FROM c.a.b x WHERE x.y = 1", "/a/b/y=11"),
    ] {
        assert_eq!(show(&program(query, json!([])).unwrap().sieve()), expected, "{query}");
    }
}

/// Whether an item has what a sieve asks for.
fn passes(sieve: &Sieve, item: &Value) -> bool {
    match sieve {
        Sieve::All => true,
        Sieve::Nothing => false,
        Sieve::And(members) => members.iter().all(|member| passes(member, item)),
        Sieve::Or(members) => members.iter().any(|member| passes(member, item)),
        Sieve::Span(span) => values(&span.path, item).iter().any(|value| {
            let mut key = order::key(value);
            if matches!(value, Value::Array(_) | Value::Object(_)) {
                key.truncate(1);
            }
            span.low <= key && key < span.high
        }),
    }
}

fn values(path: &[IndexStep], item: &Value) -> Vec<Value> {
    match (path, item) {
        ([], Value::Undefined) => Vec::new(),
        ([], value) => vec![value.clone()],
        ([IndexStep::Name(name), rest @ ..], value) => values(rest, value.property(name)),
        ([IndexStep::Items, rest @ ..], Value::Array(elements)) => {
            elements.iter().flat_map(|element| values(rest, element)).collect()
        }
        _ => Vec::new(),
    }
}

fn constants() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "NaN",
        "0",
        "1",
        "2.5",
        "'a'",
        "'ab'",
        "''",
        "true",
        "null",
        "[1]",
        "{'x': 1}",
        "undefined",
    ])
    .prop_map(ToOwned::to_owned)
}

fn filters() -> impl Strategy<Value = String> {
    let paths = prop::sample::select(vec!["c.a", "c.b", "c.b[0]", "c.b.x", "c.d"]);
    let operators = prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">="]);
    let leaf = prop_oneof![
        (paths.clone(), operators, constants()).prop_map(|(p, o, v)| format!("({p} {o} {v})")),
        (paths.clone(), constants(), constants())
            .prop_map(|(p, v, w)| format!("({p} BETWEEN {v} AND {w})")),
        (paths.clone(), constants(), constants())
            .prop_map(|(p, v, w)| format!("({p} IN ({v}, {w}))")),
        (paths.clone(), constants()).prop_map(|(p, v)| format!("ARRAY_CONTAINS({p}, {v})")),
        (paths.clone(), constants()).prop_map(|(p, v)| format!("STARTSWITH({p}, {v})")),
        (paths.clone(), prop::sample::select(vec!["a%", "%b", "a", "_b"]))
            .prop_map(|(p, v)| format!("({p} LIKE '{v}')")),
        (
            paths.clone(),
            prop::sample::select(vec!["IS_DEFINED", "IS_STRING", "IS_ARRAY", "IS_NULL"])
        )
            .prop_map(|(p, f)| format!("{f}({p})")),
        (paths, constants())
            .prop_map(|(p, v)| format!("EXISTS(SELECT VALUE t FROM t IN {p} WHERE t = {v})")),
        prop::sample::select(vec!["c.a", "true", "false", "undefined"]).prop_map(ToOwned::to_owned),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} AND {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} OR {b})")),
            inner.prop_map(|a| format!("(NOT {a})")),
        ]
    })
}

fn values_of_items() -> impl Strategy<Value = Json> {
    let leaf = prop::sample::select(vec![
        json!(0),
        json!(1),
        json!(2.5),
        json!("a"),
        json!("ab"),
        json!("b"),
        json!(""),
        json!(true),
        json!(false),
        json!(null),
    ]);
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Json::Array),
            inner.prop_map(|value| json!({ "x": value })),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_a_filter_keeps_passes_its_sieve(
        filter in filters(),
        a in values_of_items(),
        b in values_of_items(),
    ) {
        let item = json!({ "a": a, "b": b });
        let program = program(&format!("SELECT VALUE 1 FROM c WHERE {filter}"), json!([])).unwrap();
        let kept = !page(&program, &documents(&json!([item])), 10, None).unwrap().0.is_empty();
        let passes = passes(&program.sieve(), &read(&item.to_string()).unwrap());
        prop_assert!(!kept || passes, "{} {}", filter, item);
        if let Sieve::Span(span) = program.sieve() && span.exact && !kept {
            prop_assert!(!passes, "not exact: {} {}", filter, item);
        }
    }
}

/// Aggregates of a subquery's rows are no facts about items.
#[test]
fn what_aggregates_ask_for() {
    let name = |name: &str| vec![IndexStep::Name(name.to_owned())];
    for (query, expected) in [
        ("SELECT VALUE COUNT(1) FROM c", Some(Fact::Count(None))),
        ("SELECT VALUE COUNT(c.a) FROM c", Some(Fact::Count(Some(name("a"))))),
        ("SELECT VALUE MIN(c.a) FROM c WHERE c.a > 1", Some(Fact::Minimum(name("a")))),
        ("SELECT VALUE MAX(c.a) FROM c", Some(Fact::Maximum(name("a")))),
        ("SELECT VALUE SUM(c.a) FROM c", None),
        ("SELECT VALUE COUNT(1) FROM c JOIN t IN c.t", None),
        ("SELECT VALUE COUNT(1) FROM c GROUP BY c.a", None),
        ("SELECT VALUE COUNT(1) FROM (SELECT VALUE c.a FROM c) s", None),
        ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c) s", None),
        ("SELECT VALUE MAX(s.n) FROM (SELECT COUNT(1) AS n FROM c GROUP BY c.a) s", None),
    ] {
        let facts = program(query, json!([])).unwrap().facts();
        assert_eq!(facts, expected.map(|fact| vec![fact]), "{query}");
    }
}
