//! Computed properties: which queries may define one, and what they are in queries.

use super::*;
use crate::Computed;
use crate::run::Values;

fn define(query: &str) -> Result<Computed, Error> {
    Computed::read([("p", query)])
}

#[test]
fn queries_that_define_a_property() {
    for (query, reads_system) in [
        ("SELECT VALUE LOWER(c.name) FROM c", false),
        ("SELECT VALUE x.a[0] ?? 'none' FROM root x", false),
        ("SELECT VALUE x.a FROM MyContainer AS x", false),
        ("SELECT VALUE {\"a\": [c.a, c['b']], \"b\": c.n BETWEEN 1 AND 2} FROM c", false),
        ("SELECT VALUE c._tsx FROM c", false),
        ("SELECT VALUE c.a._ts FROM c", false),
        ("SELECT VALUE DateTimePart('m', TimestampToDateTime(c._ts * 1000)) FROM c", true),
        ("SELECT VALUE [c['_etag']] FROM c", true),
        ("SELECT VALUE c FROM c", true),
        ("SELECT VALUE DOCUMENTID(c) FROM c", true),
    ] {
        let computed = define(query).unwrap_or_else(|error| panic!("{query}: {}", error.message));
        assert_eq!(computed.reads_system("p"), reads_system, "{query}");
    }
}

#[test]
fn queries_that_do_not() {
    for (query, reason) in [
        ("SELECT VALUE 1", "its query must read the item, as in 'FROM c'."),
        ("SELECT VALUE a FROM c.a", "its query must read the item"),
        ("SELECT VALUE t FROM t IN c.tags", "its query must read the item"),
        ("SELECT VALUE 1 FROM (SELECT VALUE c FROM c) x", "its query must read the item"),
        ("SELECT VALUE t FROM c JOIN t IN c.tags", "cannot have JOIN."),
        ("SELECT VALUE c.a FROM c WHERE c.b", "cannot have WHERE."),
        ("SELECT VALUE c.a FROM c GROUP BY c.a", "cannot have GROUP BY."),
        ("SELECT VALUE c.a FROM c ORDER BY c.a", "cannot have ORDER BY."),
        ("SELECT TOP 1 VALUE c.a FROM c", "cannot have TOP."),
        ("SELECT DISTINCT VALUE c.a FROM c", "cannot have DISTINCT."),
        ("SELECT VALUE c.a FROM c OFFSET 0 LIMIT 1", "cannot have OFFSET LIMIT."),
        ("SELECT VALUE [(SELECT VALUE 1)] FROM c", "cannot have a subquery."),
        ("SELECT VALUE EXISTS(SELECT VALUE c.a) FROM c", "cannot have a subquery."),
        ("SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.t) FROM c", "cannot have a subquery."),
        ("SELECT VALUE COUNT(1) FROM c", "cannot have an aggregate, COUNT."),
        ("SELECT VALUE 1 + udf.f(c.a) FROM c", "cannot have a user-defined function."),
        ("SELECT VALUE c.a = @a FROM c", "cannot have a parameter."),
        ("SELECT VALUE RAND() FROM c", "cannot have a function that changes by itself, RAND."),
        ("SELECT VALUE [GetCurrentDateTime()] FROM c", "by itself, GETCURRENTDATETIME."),
        ("SELECT VALUE GetCurrentTicksStatic() FROM c", "by itself, GETCURRENTTICKSSTATIC."),
        ("SELECT VALUE ABS(GetCurrentTimestamp()) FROM c", "by itself, GETCURRENTTIMESTAMP."),
        ("SELECT VALUE ST_ISVALID(c.a) FROM c", "cannot have a spatial function, ST_ISVALID."),
        ("SELECT VALUE VectorDistance(c.a, [1]) FROM c", "a vector function, VECTORDISTANCE."),
        ("SELECT VALUE FullTextContains(c.a, 'x') FROM c", "a full-text function"),
    ] {
        let error = define(query).unwrap_err();
        assert_eq!(error.kind, dayfly_model::ErrorKind::BadRequest, "{query}");
        let start = "One of the specified inputs is invalid: the computed property 'p' is wrong: ";
        assert!(error.message.starts_with(start), "{query}");
        assert!(error.message.contains(reason), "{query}: {}", error.message);
    }
}

#[test]
fn what_the_service_has_its_own_words_for() {
    let said = |query: &str| {
        let defined = [("first", "SELECT VALUE 1 FROM c"), ("p", query)];
        let error = Computed::read(defined).unwrap_err();
        let body = error.message.strip_prefix("Message: ").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        body["Errors"][0].as_str().unwrap().to_owned()
    };
    for query in ["SELECT c.a FROM c", "SELECT * FROM c"] {
        let expected = format!(
            "Required VALUE expression missing from computed property query '{query}' at index (1)."
        );
        assert_eq!(said(query), expected);
    }
    for (query, details) in [
        ("SELECT VALUE d.a FROM c", "Identifier 'd' could not be resolved."),
        // This is told before the missing VALUE.
        ("SELECT d.a FROM c", "Identifier 'd' could not be resolved."),
        ("SELECT VALUE LOWWER(c.a) FROM c", "'LOWWER' is not a recognized built-in function name."),
        ("SELECT VALUE", "SC1002"),
        ("", "SC1002"),
        ("SELECT VALUE c.a LIKE 'x' ESCAPE 'no' FROM c", "must be one character"),
    ] {
        let said = said(query);
        let start = format!(
            "Computed property at index (1) has a malformed query: '{query}' Error details: '{{"
        );
        assert!(said.starts_with(&start) && said.ends_with("}'"), "{said}");
        assert!(said.contains(details), "{said}");
    }
}

const DEFINED: [(&str, &str); 6] = [
    ("low", "SELECT VALUE LOWER(c.name) FROM c"),
    // Hides a stored property, and sees it.
    ("n", "SELECT VALUE x.n * 10 FROM items x"),
    // Sees what is stored, not what is computed.
    ("ten", "SELECT VALUE c.n FROM c"),
    ("words", "SELECT VALUE STRINGSPLIT(c.name, ' ') FROM c"),
    ("deep", "SELECT VALUE {\"a\": {\"b\": [c.n, c._ts]}} FROM c"),
    ("month", "SELECT VALUE c._ts FROM c"),
];

fn items() -> Vec<Document> {
    documents(&json!([
        {"id": "1", "name": "Red Car", "n": 2, "low": "stored"},
        {"id": "2", "name": "blue bus", "n": 1},
        {"id": "3", "n": 3},
    ]))
}

fn compiled(query: &str) -> Result<Program, Error> {
    let body = json!({ "query": query });
    let request = Request::read(body.to_string().as_bytes())?;
    Program::compile(&request, &Computed::read(DEFINED)?)
}

#[test]
fn what_they_are_in_queries() {
    for (query, expected) in [
        ("SELECT VALUE c.low FROM c", json!(["red car", "blue bus"])),
        ("SELECT VALUE c['low'] FROM c", json!(["red car", "blue bus"])),
        (
            "SELECT c.id, c.n, c.ten FROM c WHERE c.n > 10",
            json!([
            {"id": "1", "n": 20, "ten": 2}, {"id": "3", "n": 30, "ten": 3}]),
        ),
        ("SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.low)", json!(["3"])),
        ("SELECT VALUE c.id FROM c ORDER BY c.low DESC", json!(["1", "2", "3"])),
        ("SELECT VALUE c.id FROM c ORDER BY c.deep.a.b[0]", json!(["2", "1", "3"])),
        ("SELECT VALUE w FROM c JOIN w IN c.words", json!(["Red", "Car", "blue", "bus"])),
        ("SELECT VALUE w FROM w IN c.words", json!(["Red", "Car", "blue", "bus"])),
        ("SELECT VALUE b[1] FROM c.deep.a.b", json!([1000, 1000, 1000])),
        ("SELECT VALUE c.deep.a FROM c WHERE c.id = '2'", json!([{"b": [1, 1000]}])),
        (
            "SELECT VALUE [c.deep.a.b[0], c.deep.a.b] FROM c WHERE c.id = '2'",
            json!([[1, [1, 1000]]]),
        ),
        (
            "SELECT VALUE ARRAY(SELECT VALUE UPPER(w) FROM w IN c.words) FROM c WHERE c.id = '2'",
            json!([["BLUE", "BUS"]]),
        ),
        (
            "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE w FROM w IN c.words WHERE w = 'Car')",
            json!(["1"]),
        ),
        (
            "SELECT COUNT(1) AS k, c.low FROM c GROUP BY c.low",
            json!([
            {"k": 1, "low": "red car"}, {"k": 1, "low": "blue bus"}, {"k": 1}]),
        ),
        ("SELECT VALUE SUM(c.n) FROM c", json!([60])),
        (
            "SELECT c.deep.a.b[0] AS x FROM c GROUP BY c.deep.a",
            json!([{"x": 2}, {"x": 1}, {"x": 3}]),
        ),
        ("SELECT DISTINCT VALUE c.month FROM c", json!([1000])),
        // Only what is named is computed.
        (
            "SELECT * FROM c WHERE c.id = '1'",
            json!([
            {"id": "1", "name": "Red Car", "n": 2, "low": "stored"}]),
        ),
        ("SELECT VALUE c FROM c WHERE c.n = 10", json!([{"id": "2", "name": "blue bus", "n": 1}])),
        ("SELECT VALUE x.n FROM (SELECT VALUE c FROM c) x", json!([2, 1, 3])),
    ] {
        let program = compiled(query).unwrap_or_else(|error| panic!("{query}: {}", error.message));
        let (rows, _) = page(&program, &items(), 100, None).unwrap();
        assert_eq!(json!(rows), expected, "{query}");
    }
}

/// Like a stored property it holds what JSON can say.
#[test]
fn what_is_not_finite_is_undefined() {
    for (expression, expected) in [
        ("LOG(c.n)", json!([])),
        ("SQRT(0 - 1 - c.n)", json!([])),
        ("[1, LOG(c.n), {\"a\": LOG(c.n), \"b\": [LOG(c.n)]}]", json!([[1, {"b": []}]])),
        ("LOG(c.n) < 5", json!([true])),
    ] {
        let computed = define(&format!("SELECT VALUE {expression} FROM c")).unwrap();
        let request = Request::read(br#"{"query":"SELECT VALUE c.p FROM c"}"#).unwrap();
        let program = Program::compile(&request, &computed).unwrap();
        let (rows, _) = page(&program, &documents(&json!([{"n": 0}])), 9, None).unwrap();
        assert_eq!(json!(rows), expected, "{expression}");
    }
}

#[test]
fn an_index_can_hold_them() {
    let program = compiled("SELECT * FROM c WHERE c.low = 'x' ORDER BY c.low").unwrap();
    let low = [IndexStep::Name("low".to_owned())];
    assert!(matches!(program.sieve(), Sieve::Span(span) if span.path == low));
    assert_eq!(program.order()[0].path.as_deref(), Some(&["low".to_owned()][..]));
}

#[test]
fn their_values_by_themselves() {
    let computed = Computed::read(DEFINED).unwrap();
    let values = Values::new(&computed, &["n", "low"]).unwrap();
    assert_eq!(
        values.of(r#"{"n":4,"name":"A","low":1}"#),
        [("n", Value::from(40i64)), ("low", Value::from("a"))]
    );
    assert_eq!(values.of("{}"), []);
    assert_eq!(Values::new(Computed::NONE, &[]).unwrap().of("{}"), []);
}

/// What fails has no value in an index, whatever else is computed; a query tells it.
#[test]
fn a_property_that_fails() {
    let defined = [("bad", "SELECT VALUE REGEXMATCH(c.a, c.b) FROM c"), DEFINED[1]];
    let computed = Computed::read(defined).unwrap();
    let item = json!({"a": "x", "b": "(?=x)", "n": 1});
    let values = Values::new(&computed, &["bad", "n"]).unwrap();
    assert_eq!(values.of(&item.to_string()), [("n", Value::from(10i64))]);
    let request = Request::read(br#"{"query":"SELECT VALUE c.bad FROM c"}"#).unwrap();
    let program = Program::compile(&request, &computed).unwrap();
    assert!(page(&program, &documents(&json!([item])), 9, None).is_err());
}

proptest! {
    /// A computed property is its expression, wherever it stands.
    #[test]
    fn a_property_is_its_expression(
        items in prop::collection::vec((0..4i64, "[aB ]{0,3}"), 0..6),
        wanted in 0..4i64,
    ) {
        let stored: Vec<Json> =
            items.iter().map(|(n, name)| json!({"n": n, "name": name})).collect();
        let stored = documents(&json!(stored));
        for (by_name, written) in [
            (format!("SELECT VALUE c.low FROM c WHERE c.n >= {wanted}0"),
             format!("SELECT VALUE LOWER(c.name) FROM c WHERE c.n * 10 >= {wanted}0")),
            ("SELECT c.low, COUNT(1) AS k FROM c GROUP BY c.low".to_owned(),
             "SELECT LOWER(c.name) AS low, COUNT(1) AS k FROM c GROUP BY LOWER(c.name)".to_owned()),
        ] {
            let named = page(&compiled(&by_name).unwrap(), &stored, 100, None).unwrap();
            let spelled = page(&program(&written, json!([])).unwrap(), &stored, 100, None).unwrap();
            prop_assert_eq!(named.0, spelled.0);
        }
    }
}
