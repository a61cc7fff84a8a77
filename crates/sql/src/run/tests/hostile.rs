//! Whatever a client sends is refused or carried out, in bounded time and memory.
//!
//! `PROPTEST_CASES=100000 cargo test --release -p dayfly-sql hostile` tries more.

use dayfly_model::partition_key::PartitionKeyDefinition;

use super::*;
use crate::plan::{Feature, plan};
use crate::run::Values;
use crate::tests::random::{expr, query_of};

/// Queries that are fine, to be bent.
const FINE: [&str; 20] = [
    "SELECT * FROM c WHERE c.a = 1 AND c.b > 'x' OR NOT c.d",
    "SELECT TOP 2 c.a, c['b'] AS y FROM c ORDER BY c.a DESC, c.b",
    "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a OFFSET 1 LIMIT 2",
    "SELECT c.a, COUNT(1) AS n, SUM(c.b) FROM c GROUP BY c.a",
    "SELECT VALUE t FROM c JOIN t IN c.tags WHERE t IN ('x', 1, null)",
    "SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t > @p)",
    "SELECT VALUE ARRAY(SELECT VALUE t || 'x' FROM t IN c.tags) FROM c",
    "SELECT * FROM c WHERE c.s LIKE '%a_[b-d]!%' ESCAPE '!'",
    "SELECT * FROM c WHERE c.n NOT BETWEEN 1 AND 0x1F",
    "SELECT VALUE { 'a': [c.a, c.b[0]], b: c.n ?? 1 } FROM root c",
    "SELECT VALUE c.a % 2 + -c.a * 3 - ~c.a | 4 & 5 ^ 6 FROM c",
    "SELECT VALUE c.n << 3 >>> 1 >> 2 FROM c",
    "SELECT VALUE IIF(c.b, 'x', c.n > 1 ? true : undefined) FROM c",
    "SELECT VALUE MAX(c.n) FROM c JOIN (SELECT VALUE t FROM t IN c.tags) AS u",
    "SELECT c.id FROM c WHERE ARRAY_CONTAINS(c.tags, {'k': 1}, true) AND IS_DEFINED(c.a)",
    "SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c",
    "SELECT VALUE REGEXMATCH(c.s, '^(a|b)*$', 'i') FROM c",
    "SELECT VALUE SUBSTRING(REPLICATE(c.s, 3), 1, 2) FROM c",
    "SELECT x.k FROM c JOIN x IN OBJECTTOARRAY(c.o) WHERE x.v = NaN",
    "SELECT VALUE DateTimeAdd('mm', 1, '2020-01-31T00:00:00.0000000Z')",
];

/// Pieces of queries, to be put where they do not belong.
const PIECES: [&str; 30] = [
    "SELECT ",
    "VALUE ",
    "FROM ",
    "JOIN ",
    " IN ",
    "WHERE ",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".",
    "c",
    "NOT ",
    " AND ",
    "'",
    "\"",
    "@p",
    "-",
    "99999999999999999999",
    "1e999",
    "0x",
    "*",
    " ORDER BY c.a",
    " GROUP BY c.a",
    "EXISTS(",
    "\0",
    "😀",
];

/// Reads a request, plans it, compiles it, and runs some pages of it.
fn carry_out(body: &[u8]) -> Result<(), Error> {
    let request = Request::read(body)?;
    let key = PartitionKeyDefinition::parse(&json!({"paths": ["/pk"]})).unwrap();
    let _ = plan(&request.query, &request.parameters, &key, &[], Feature::ALL);
    let program = Program::compile(&request, &Computed::default())?;
    program.sieve();
    program.facts();
    let list = json!([
        {"id": "1", "a": 1, "b": "x", "s": "abc", "n": 2, "tags": ["x", 1, null], "o": {"k": 1}},
        {"id": "2", "a": [1], "b": true, "s": "ä😀", "n": 1e308, "tags": [["y"], {"k": 1}]},
    ]);
    let documents = documents(&list);
    let resume = request.boundary.as_ref().map(|from| program.start_at(from)).transpose()?;
    let mut start = resume.map(|resume| (0, resume));
    for _ in 0..3 {
        start = page(&program, &documents, 2, start)?.1;
        if start.is_none() {
            break;
        }
    }
    Ok(())
}

fn body(query: &str) -> Vec<u8> {
    json!({ "query": query, "parameters": [{"name": "@p", "value": 1}] }).to_string().into_bytes()
}

/// A fine query with some pieces cut out, doubled, moved or put in.
fn bent() -> impl Strategy<Value = String> {
    let place = any::<prop::sample::Index>;
    let change = (0..4usize, place(), place(), prop::sample::select(PIECES.to_vec()));
    let changes = prop::collection::vec(change, 1..5);
    (prop::sample::select(FINE.to_vec()), changes).prop_map(|(query, changes)| {
        let mut words: Vec<&str> = query.split_inclusive([' ', '(', ')', ',', '.', '[']).collect();
        for (how, at, other, piece) in changes {
            let at = at.index(words.len());
            let word = words[other.index(words.len())];
            match how {
                0 if words.len() > 1 => drop(words.remove(at)),
                1 => words.insert(at, word),
                2 => words[at] = word,
                _ => words.insert(at, piece),
            }
        }
        words.concat()
    })
}

/// Any JSON.
fn anything() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        prop::sample::select(vec!["@p", "@", "", "SELECT * FROM c", "x"]).prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 20, 4, |inner| {
        let names = prop::sample::select(vec!["query", "parameters", "name", "value", "x"]);
        let member = (names.prop_map(ToOwned::to_owned), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Json::from),
            prop::collection::vec(member, 0..4)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bent_queries_are_refused_or_carried_out(query in bent()) {
        let _ = carry_out(&body(&query));
    }

    #[test]
    fn trees_are_refused_or_carried_out(tree in query_of(expr())) {
        let _ = carry_out(&body(&tree.to_string()));
    }

    #[test]
    fn bodies_are_refused_or_carried_out(value in anything()) {
        let _ = carry_out(value.to_string().as_bytes());
        let body = json!({"query": "SELECT @p FROM c", "parameters": value});
        let _ = carry_out(body.to_string().as_bytes());
    }

    #[test]
    fn boundaries_are_refused_or_carried_out(value in anything(), exclude in any::<bool>()) {
        for query in ["SELECT * FROM c ORDER BY c.a", "SELECT * FROM c ORDER BY c.a DESC, c.n"] {
            for boundary in [
                value.clone(),
                json!({"value": value, "exclude": exclude}),
                json!({"value": [value], "exclude": exclude}),
                json!({"value": [value, 1], "exclude": exclude}),
            ] {
                let body = json!({"query": query, "resumeFilter": boundary});
                let _ = carry_out(body.to_string().as_bytes());
            }
        }
    }

    #[test]
    fn definitions_are_refused_or_computed(query in bent(), tree in expr()) {
        for query in [query, format!("SELECT VALUE {tree} FROM c")] {
            let Ok(computed) = Computed::read([("p", &*query)]) else { continue };
            let _ = Values::new(&computed, &["p"]).unwrap().of(r#"{"a":1,"s":"x","tags":[1]}"#);
        }
    }
}

#[test]
fn fine_queries_are_carried_out() {
    for query in FINE {
        carry_out(&body(query)).unwrap_or_else(|error| panic!("{query}: {error}"));
    }
}

/// As deep as a query may be nested, it is carried out; deeper, it is refused.
#[test]
fn nested_queries() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{'a': ", "}"),
        ("NOT ", ""),
        ("- ", ""),
        ("ABS(", ")"),
        ("c.a ? 1 : ", ""),
        ("c.a IN (", ")"),
        ("(SELECT VALUE ", ")"),
        ("EXISTS(SELECT VALUE ", ")"),
        ("ARRAY(SELECT VALUE t FROM t IN (SELECT VALUE ", "))"),
    ] {
        let nested = |depth| {
            let (open, close) = (str::repeat(open, depth), str::repeat(close, depth));
            body(&format!("SELECT VALUE {open}c.a{close} FROM c"))
        };
        for depth in [1, 20] {
            carry_out(&nested(depth)).unwrap_or_else(|error| panic!("{open} {depth}: {error}"));
        }
        for depth in [60, 63, 64, 120, 124] {
            let _ = carry_out(&nested(depth));
        }
        for depth in [129, 8_000] {
            assert!(carry_out(&nested(depth)).is_err(), "{open} {depth}");
        }
    }
    let depth = 100_000;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let deep = format!("{{\"query\": \"SELECT 1\", \"parameters\": {deep}}}");
    assert!(carry_out(deep.as_bytes()).is_err());
}

/// The deepest item there can be is read like others.
#[test]
fn nested_items() {
    let levels = dayfly_model::json::DEPTH_MAX - 1;
    let deep = (0..levels).fold(json!(1), |inside, _| json!([inside]));
    // A value of all levels but the item's own, which also stands in the answer.
    check(
        &json!([{ "id": "x", "a": deep }]),
        &[
            ("SELECT VALUE ARRAY_LENGTH(c.a) FROM c", json!([1])),
            ("SELECT VALUE IS_ARRAY(c.a[0][0]) FROM c WHERE IS_DEFINED(c.a)", json!([true])),
            ("SELECT VALUE IS_OBJECT(c) FROM c", json!([true])),
            ("SELECT VALUE c.id FROM c JOIN t IN c.a WHERE t = c.a[0]", json!(["x"])),
        ],
    );
}

#[test]
fn long_lists() {
    let numbers: Vec<String> = (0..80_000).map(|number| number.to_string()).collect();
    let numbers = numbers.join(",");
    let many = |part: &str, between: &str| vec![part; 30_000].join(between);
    for query in [
        format!("SELECT * FROM c WHERE c.n IN ({numbers})"),
        format!("SELECT * FROM c WHERE NOT (c.n NOT IN ({numbers}))"),
        format!("SELECT * FROM c WHERE ARRAY_CONTAINS([{numbers}], c.n)"),
        format!("SELECT * FROM c WHERE {}", many("c.n = 1", " OR ")),
        format!("SELECT * FROM c WHERE {}", many("c.n > 1", " AND ")),
        format!("SELECT VALUE {} FROM c", many("c.a", " + ")),
        format!("SELECT * FROM c WHERE c.s LIKE '{}'", many("%a", "_")),
        format!("SELECT VALUE 'x{}' FROM c", "y".repeat(500_000)),
    ] {
        carry_out(&body(&query)).unwrap_or_else(|error| panic!("{}: {error}", &query[..40]));
    }
}

/// What is put together has a limit, however it is done.
#[test]
fn values_that_are_too_large() {
    let text = "x".repeat(1_000_000);
    let list = json!([{ "s": text, "l": vec![1; 500] }]);
    let many = |part: &str, between: &str| vec![part; 500].join(between);
    let named: Vec<String> = (0..100).map(|name| format!("c.s AS x{name}")).collect();
    for query in [
        format!("SELECT VALUE {} FROM c", many("c.s", " || ")),
        format!("SELECT VALUE [{}] FROM c", many("c.s", ",")),
        format!("SELECT VALUE ARRAY_CONCAT({}) FROM c", many("[c.s]", ",")),
        format!("SELECT * FROM c WHERE [{}] = 1", many("{'a': c.s}", ",")),
        format!("SELECT {} FROM c", named.join(",")),
        "SELECT VALUE ARRAY(SELECT VALUE c.s FROM t IN c.l) FROM c".to_owned(),
        "SELECT VALUE ARRAY(SELECT VALUE [t, c.s] FROM t IN c.l) FROM c".to_owned(),
    ] {
        let error = all(&query, &list).expect_err(&query[..40]);
        assert!(error.message.contains("too large a value"), "{}: {error}", &query[..40]);
    }
}

#[test]
fn groups_without_end() {
    let text = "x".repeat(200);
    let list = json!([{ "l": (0..400).collect::<Vec<i32>>() }]);
    let query = format!(
        "SELECT COUNT(1) AS n FROM c JOIN x IN c.l JOIN y IN c.l \
         GROUP BY CONCAT('{text}', ToString(x), '-', ToString(y))"
    );
    let error = all(&query, &list).unwrap_err();
    assert!(error.message.contains("too much memory"), "{error}");
}
