//! What the names in a query mean: queries that are taken, and those that are
//! refused with a code, or with a sentence.

use super::{error_of, refused};
use crate::names::item_names;
use crate::tree::Projection;
use crate::{check, parse};

fn taken(queries: &[&str]) {
    for query in queries {
        let tree = parse(query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        check(&tree, query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    }
}

/// Each query is refused with this sentence, without a code.
fn refused_with(cases: &[(&str, &str)]) {
    for (query, sentence) in cases {
        let error = error_of(query);
        assert_eq!((error.code, error.message.as_str()), (None, *sentence), "{query}");
    }
}

#[test]
fn sources_have_names() {
    taken(&[
        "SELECT c.a FROM c",
        "SELECT r.a FROM products r",
        "SELECT r.a FROM products AS r",
        "SELECT a.b FROM c.a",
        "SELECT b.d FROM c.a['b']",
        "SELECT x FROM x IN c",
        "SELECT p.s FROM p IN p.sizes",
        "SELECT 1 FROM c[0]",
        "SELECT * FROM (SELECT VALUE 1)",
        "SELECT t, s FROM c JOIN t IN c.tags JOIN s IN t.sub",
        "SELECT kv FROM c JOIN kv IN OBJECTTOARRAY(c.x)",
        "SELECT 1",
        "SELECT @p, udf.anything(1)",
    ]);
    refused(&[
        ("SELECT c.a", "SC2001", "c"),
        ("SELECT d.a FROM c", "SC2001", "d"),
        ("SELECT products.a FROM products p", "SC2001", "products"),
        ("SELECT C.a FROM c", "SC2001", "C"),
        ("SELECT a FROM c.a[0]", "SC2001", "a"),
        ("SELECT a FROM c['a b']", "SC2001", "a"),
        ("SELECT c.a FROM x IN c.a", "SC2001", "c"),
        ("SELECT 1 FROM c WHERE d", "SC2001", "d"),
        ("SELECT 1 FROM c GROUP BY d.x", "SC2001", "d"),
        ("SELECT 1 FROM c ORDER BY d.x", "SC2001", "d"),
        ("SELECT 1 FROM c ORDER BY RANK FullTextScore(d.x, 'a')", "SC2001", "d"),
        ("SELECT [1, {a: -ABS(d.x)}] FROM c", "SC2001", "d"),
        ("SELECT c[d] FROM c", "SC2001", "d"),
        ("SELECT 1 FROM c JOIN t IN d.tags", "SC2001", "d"),
        ("SELECT 1 FROM c JOIN t  IN -- x\n d.tags", "SC2001", "d"),
        ("SELECT 1 FROM c JOIN d.tags t", "SC2001", "d"),
        ("SELECT 1 FROM c JOIN t IN s.x JOIN s IN c.s", "SC2001", "s"),
        ("SELECT 1 FROM x IN OBJECTTOARRAY(c.x)", "SC2001", "c"),
    ]);
}

#[test]
fn subqueries_see_what_their_place_sees() {
    taken(&[
        "SELECT (SELECT VALUE c.a) FROM c",
        "SELECT 1 FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = c.a)",
        "SELECT r FROM (SELECT VALUE x FROM x) r",
        "SELECT r FROM (SELECT VALUE s FROM (SELECT VALUE x FROM x) s) r",
        "SELECT s FROM c JOIN (SELECT VALUE s FROM s IN c.scores) s",
        "SELECT c FROM c JOIN (SELECT VALUE c FROM c IN c.scores) s",
        "SELECT VALUE (SELECT VALUE COUNT(1) FROM x IN (SELECT VALUE [1, 2]))",
    ]);
    refused(&[
        ("SELECT x FROM (SELECT VALUE x FROM x) r", "SC2001", "x"),
        ("SELECT s FROM c JOIN (SELECT VALUE d FROM d) s", "SC2001", "d"),
        ("SELECT s FROM c JOIN (SELECT VALUE d FROM d) s", "SC2001", "d"),
        ("SELECT (SELECT VALUE 1 FROM c)", "SC2001", "c"),
        ("SELECT 1 FROM c WHERE EXISTS(SELECT 1 FROM x IN d.x)", "SC2001", "d"),
        ("SELECT t FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.t)", "SC2001", "t"),
        ("SELECT 1 FROM (SELECT VALUE t FROM c) r JOIN t IN r.t", "SC2001", "t"),
    ]);
    let again = "is specified more than once in the FROM clause.";
    refused_with(&[
        ("SELECT 1 FROM c JOIN c IN c.x", &format!("The input alias 'c' {again}")),
        ("SELECT 1 FROM c JOIN t IN c.x JOIN c.t", &format!("The input alias 't' {again}")),
    ]);
}

#[test]
fn a_star_is_one_source() {
    taken(&["SELECT * FROM x IN c.y", "SELECT VALUE ARRAY(SELECT * FROM c) FROM c"]);
    refused_with(&[
        ("SELECT *", "'SELECT *' is not valid if FROM clause is omitted."),
        ("SELECT * FROM c JOIN t IN c.t", "'SELECT *' is only valid with a single input set."),
    ]);
}

#[test]
fn functions_are_known_and_get_their_arguments() {
    taken(&["SELECT abs(1), Concat('a', 'b', 'c'), left('a', 1), PI()"]);
    refused(&[
        ("SELECT BADFUNC(1)", "SC2005", "BADFUNC"),
        ("SELECT 1 FROM c JOIN t IN BADFUNC(c)", "SC2005", "BADFUNC"),
        ("SELECT ABS()", "SC2050", "ABS()"),
        ("SELECT (ARRAY_CONTAINS([]))", "SC2050", "ARRAY_CONTAINS([])"),
        ("SELECT concat('a')", "SC2050", "concat('a')"),
        ("SELECT COUNT()", "SC2050", "COUNT()"),
    ]);
    let messages = [
        ("SELECT BADFUNC(1)", "'BADFUNC' is not a recognized built-in function name."),
        ("SELECT abs(1, 2)", "The ABS function requires 1 argument(s)."),
        ("SELECT ARRAY_CONTAINS(1)", "The ARRAY_CONTAINS function requires 2 to 3 argument(s)."),
        ("SELECT CONCAT(1)", "The CONCAT function requires at least 2 argument(s)."),
    ];
    for (query, message) in messages {
        assert_eq!(error_of(query).message, message);
    }
}

#[test]
fn indexes_are_constants() {
    taken(&[
        "SELECT [1, 2][0], {a: 1}['a'], [1][@i], c.x[@i].y, c.x[1 + @i], @list[-1] FROM c",
        "SELECT 1 FROM c.x[0].y",
    ]);
    refused(&[
        ("SELECT c.x[c.y] FROM c", "SC2990", "c.x[c.y]"),
        ("SELECT 1 FROM c WHERE c.x[(c.y - 1)].z = 2", "SC2990", "c.x[(c.y - 1)].z"),
        ("SELECT VALUE @list[c.y] FROM c", "SC2990", "@list[c.y]"),
        ("SELECT 1 FROM c JOIN t IN c.t WHERE t.a[0][t.b] > 1", "SC2990", "t.a[0][t.b]"),
        ("SELECT c.x[ABS(1)] FROM c", "SC2990", "c.x[ABS(1)]"),
        (
            "SELECT (SELECT VALUE 1)[(SELECT VALUE 0)]",
            "SC2990",
            "(SELECT VALUE 1)[(SELECT VALUE 0)]",
        ),
        ("SELECT [1, 2][c.x] FROM c", "SC2990", "[1, 2][c.x]"),
        ("SELECT {a: 1}[c.x] FROM c", "SC2990", "{a: 1}[c.x]"),
    ]);
}

#[test]
fn options_of_vector_distance() {
    let query = |multiplier: &str| {
        format!("SELECT VectorDistance([1], [1], true, {{searchListSizeMultiplier: {multiplier}}})")
    };
    taken(&[&query("1"), &query("100"), &query("@p")]);
    for multiplier in ["0", "101", "0.5", "-7"] {
        let error = error_of(&query(multiplier));
        assert_eq!(error.code, Some("SC2213"));
        let options = query(multiplier).find('{').unwrap();
        assert_eq!((error.start, error.end), (options, query(multiplier).len() - 1));
        let message = format!(
            "The 'searchListSizeMultiplier' value {multiplier} specified in the VectorDistance \
             function is outside the supported range. The value must be between 1 and 100."
        );
        assert_eq!(error.message, message);
    }
}

#[test]
fn aggregates_are_of_plain_values() {
    taken(&["SELECT VALUE {a: COUNT(1), b: 2 + SUM(c.x)} FROM c", "SELECT COUNT(1), AVG(2)"]);
    refused(&[
        ("SELECT 1, COUNT(1 + SUM(c.x)) FROM c", "SC2101", "COUNT(1 + SUM(c.x))"),
        ("SELECT SUM((SELECT VALUE 1)) FROM c", "SC2101", "SUM((SELECT VALUE 1))"),
        ("SELECT (SELECT VALUE MAX(MIN(c.x))) FROM c", "SC2101", "MAX(MIN(c.x))"),
        (
            "SELECT s FROM (SELECT MAX((SELECT VALUE 1)) FROM c) s",
            "SC2101",
            "MAX((SELECT VALUE 1))",
        ),
    ]);
    // What one item has.
    let longest = "SELECT VALUE MAX(line.length) FROM line IN verse.lines";
    taken(&[
        &format!("SELECT (SELECT VALUE AVG(({longest})) FROM verse IN c.verses) FROM c"),
        &format!("SELECT 1 FROM c WHERE (SELECT VALUE SUM(({longest}) * 2) FROM verse IN c.v) > 1"),
        &format!("SELECT s FROM c JOIN (SELECT VALUE MIN(({longest})) FROM verse IN c.v) s"),
    ]);
    let only = "An aggregate function can only be used in the SELECT clause.";
    refused_with(&[
        ("SELECT 1 FROM c WHERE COUNT(1) > 1", only),
        ("SELECT 1 FROM c GROUP BY COUNT(1)", only),
        ("SELECT 1 FROM c ORDER BY COUNT(1)", only),
        ("SELECT 1 FROM c JOIN t IN OBJECTTOARRAY(MAX(c.x))", only),
        ("SELECT 1 FROM c WHERE (SELECT VALUE 1 FROM c WHERE -SUM(c.x))", only),
    ]);
}

#[test]
fn groups_have_one_value_for_all_their_rows() {
    taken(&[
        "SELECT c.a, COUNT(1) FROM c GROUP BY c.a",
        "SELECT c['a'] FROM c GROUP BY c.a",
        "SELECT c.a FROM c GROUP BY c['a']",
        "SELECT c.a.b FROM c GROUP BY c.a",
        "SELECT c FROM c GROUP BY c",
        "SELECT c.a FROM c GROUP BY c",
        "SELECT 'x', @p FROM c GROUP BY c.a",
        "SELECT Lower(c.a) FROM c GROUP BY LOWER(c.a)",
        "SELECT VALUE {x: c.a} FROM c GROUP BY {x: c.a}",
        "SELECT {x: c.a, y: c.b}['x'] FROM c GROUP BY c.a, c.b",
        "SELECT ARRAY(SELECT VALUE t FROM t IN c.tags) FROM c GROUP BY c.tags",
        "SELECT ARRAY(SELECT VALUE c FROM c IN c.tags) FROM c GROUP BY c.tags",
        "SELECT (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c GROUP BY c.tags",
        "SELECT c.a + 1 + 2 FROM c GROUP BY c.a + 1",
        "SELECT (c.a OR c.b) AND true FROM c GROUP BY c.a OR c.b",
        "SELECT c[@i].x FROM c GROUP BY c[@i]",
        "SELECT LOWER(c.a)[0][1] FROM c GROUP BY LOWER(c.a)[0]",
        "SELECT c.a, n FROM c JOIN (SELECT COUNT(1) AS n, c.b FROM t IN c.tags) n",
    ]);
    refused(&[
        ("SELECT c.a, COUNT(1) FROM c", "SC2102", "c.a"),
        ("SELECT c.b FROM c GROUP BY c.a", "SC2102", "c.b"),
        ("SELECT c FROM c GROUP BY c.a", "SC2102", "c"),
        ("SELECT c.a FROM c GROUP BY c.a.b", "SC2102", "c.a"),
        ("SELECT LOWER(c.a) FROM c GROUP BY UPPER(c.a)", "SC2102", "c.a"),
        ("SELECT [1, c.a + SUM(c.b)] FROM c", "SC2102", "c.a"),
        ("SELECT @p[c.a] FROM c GROUP BY c.b", "SC2990", "@p[c.a]"),
        ("SELECT c[@i].x FROM c GROUP BY c[@j]", "SC2102", "c[@i].x"),
        ("SELECT c.a + 1 + c.b FROM c GROUP BY c.a + 1", "SC2102", "c.b"),
        ("SELECT 1 + c.a FROM c GROUP BY c.a + 1", "SC2102", "c.a"),
        ("SELECT (SELECT VALUE SUM(c.b) FROM t IN c.t) FROM c GROUP BY c.t", "SC2102", "c.b"),
        ("SELECT (SELECT VALUE c.b) FROM c GROUP BY c.a", "SC2102", "c.b"),
        ("SELECT ARRAY(SELECT 1 FROM t IN c.b) FROM c GROUP BY c.a", "SC2102", "t IN c.b"),
        ("SELECT t.a FROM c JOIN t IN c.t GROUP BY c.t", "SC2102", "t.a"),
    ]);
    let error = error_of("SELECT c.a, 1, c.b FROM c GROUP BY c.d");
    assert_eq!((error.start, error.end, error.more.len()), (7, 10, 1));
    assert_eq!(
        error.body(),
        r#"{"errors":[{"severity":"Error","location":{"start":7,"end":10},"code":"SC2102","message":"Property reference 'c.a' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause."},{"severity":"Error","location":{"start":15,"end":18},"code":"SC2102","message":"Property reference 'c.b' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause."}]}"#
    );
}

#[test]
fn groups_are_sorted_by_what_they_are_grouped_by() {
    taken(&[
        "SELECT c.a FROM c GROUP BY c.a ORDER BY c.a",
        "SELECT COUNT(1) FROM c GROUP BY c.a, c['b'] ORDER BY c.b DESC, c['a']",
        "SELECT c.a AS x, LOWER(c.b) AS y FROM c GROUP BY c.a, lower(c.b) ORDER BY y, x",
        "SELECT t FROM c JOIN t IN c.t GROUP BY t ORDER BY t",
    ]);
    let message = "The ORDER BY clause is not supported with the GROUP BY clause.";
    refused_with(&[
        ("SELECT c.a FROM c GROUP BY c.a ORDER BY c.b", message),
        ("SELECT c.a FROM c GROUP BY c.a ORDER BY c.a, c.b", message),
        ("SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a ORDER BY n", message),
        ("SELECT c.a FROM c GROUP BY c.a ORDER BY 1", message),
    ]);
    refused(&[
        ("SELECT c.a AS x FROM c GROUP BY c.a ORDER BY y", "SC2001", "y"),
        ("SELECT c.a AS x FROM c ORDER BY x", "SC2001", "x"),
        ("SELECT c.a FROM c GROUP BY c.a ORDER BY a", "SC2001", "a"),
    ]);
}

#[test]
fn what_is_joined_is_not_sorted_by() {
    taken(&[
        "SELECT t FROM c JOIN t IN c.t ORDER BY c.a",
        "SELECT r FROM (SELECT VALUE x FROM x) r ORDER BY r.a",
        "SELECT r FROM (SELECT VALUE {a: x.b} FROM x) r ORDER BY r.a",
        "SELECT r FROM (SELECT * FROM (SELECT x.a FROM x) y) r ORDER BY r.a.b",
        "SELECT a FROM c.a ORDER BY a.b",
        "SELECT 1 FROM c ORDER BY c.a[0]['b'][@p], c",
        "SELECT 1 FROM c ORDER BY VectorDistance(c.a, [1])",
        "SELECT 1 FROM c ORDER BY _VectorScore(c.a, [1]) ASC",
        "SELECT VALUE COUNT(1) FROM c JOIN t IN c.t ORDER BY t.a",
    ]);
    refused(&[
        ("SELECT 1 FROM c ORDER BY c.a + 1", "2206", ""),
        ("SELECT 1 FROM c ORDER BY c.a, LOWER(c.b)", "2206", ""),
        ("SELECT 1 FROM c ORDER BY c[c.a]", "SC2990", "c[c.a]"),
        ("SELECT 1 FROM c ORDER BY @p", "2206", ""),
        ("SELECT 1 FROM c ORDER BY FullTextContains(c.a, 'x')", "2206", ""),
        ("SELECT 1 FROM c JOIN (SELECT VALUE MAX(c.a)) m ORDER BY m", "2206", ""),
        ("SELECT 1 FROM c JOIN (SELECT VALUE c.a + 1) m ORDER BY c.b, m", "2206", ""),
        ("SELECT 1 FROM c JOIN (SELECT c.a, 1 AS b) m ORDER BY m.b", "2206", ""),
        ("SELECT 1 FROM c JOIN (SELECT c.a, 1 AS b) m ORDER BY m", "2206", ""),
        ("SELECT 1 FROM c JOIN (SELECT VALUE [c.a]) m ORDER BY m[0]", "2206", ""),
        ("SELECT 1 FROM c JOIN t IN c.t ORDER BY t.a, ABS(t.b)", "2206", ""),
        ("SELECT 1 FROM c JOIN (SELECT VALUE 1) a JOIN (SELECT VALUE a) b ORDER BY b", "2206", ""),
        ("SELECT 1 FROM c JOIN kv IN OBJECTTOARRAY(c.x) ORDER BY kv.k", "2206", ""),
        ("SELECT 1 FROM (SELECT VALUE {a: c.a, n: 2} FROM c) r ORDER BY r.n", "2206", ""),
    ]);
    assert_eq!(
        error_of("SELECT 1 FROM c ORDER BY 1").body(),
        r#"{"errors":[{"severity":"Error","code":2206,"message":"Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path."}]}"#
    );
    let message = "Order-by over correlated collections is not supported.";
    refused_with(&[
        ("SELECT t FROM c JOIN t IN c.t ORDER BY t", message),
        ("SELECT t FROM c JOIN t IN c.t ORDER BY c.a, t.b", message),
        ("SELECT t FROM t IN c.t ORDER BY t.a", message),
        ("SELECT t FROM c JOIN (SELECT DISTINCT VALUE x.y FROM x IN c.t) t ORDER BY t.a", message),
        ("SELECT t FROM c JOIN (SELECT VALUE {x: [1], y: c.t}) t ORDER BY t.y.z", message),
        ("SELECT t FROM c JOIN (SELECT c.a, c.b AS x FROM c) t ORDER BY t.x", message),
        ("SELECT t FROM c JOIN (SELECT * FROM x IN c.t) t ORDER BY t.x", message),
        ("SELECT r FROM (SELECT VALUE t FROM c JOIN t IN c.t) r ORDER BY r.a", message),
    ]);
}

#[test]
fn ranks() {
    let text = "FullTextScore(c.t, 'a')";
    let vector = "VectorDistance(c.v, [1])";
    let rank = |call: &str| format!("SELECT c FROM c ORDER BY RANK {call}");
    taken(&[
        &rank(text),
        &rank(vector),
        &rank(&format!("RRF({text}, {vector})")),
        &rank(&format!("rrf({text}, {vector}, [1, -0.5])")),
    ]);
    let weights = "SC2229";
    refused(&[
        (&rank("FullTextScore(c.t)"), "SC2050", "FullTextScore(c.t)"),
        (&format!("SELECT {text} FROM c"), "SC2240", text),
        (&format!("SELECT 1 FROM c WHERE {text} > 1"), "SC2240", text),
        (&format!("SELECT 1 FROM c ORDER BY {text}"), "SC2240", text),
        (&format!("SELECT RRF({vector}, {vector}) FROM c"), "SC2005", "RRF"),
    ]);
    // What the clause has instead of scores and weights is told of the whole clause.
    for (call, code) in [
        ("ABS(1)".to_owned(), "SC2221"),
        (format!("RRF({text}, ABS(1))"), "SC2221"),
        (format!("RRF({text}, c.a)"), "SC2221"),
        (format!("RRF({text})"), "SC2221"),
        (format!("RRF({text}, [1])"), "SC2221"),
        ("RRF()".to_owned(), "SC2221"),
        (format!("RRF({text}, {vector}, [1])"), weights),
        (format!("RRF({text}, {vector}, [1, 'a'])"), weights),
        (format!("RRF({text}, {vector}, [1, @w])"), weights),
    ] {
        let clause = format!("ORDER BY RANK {call}");
        refused(&[(&rank(&call), code, &clause)]);
        assert!(error_of(&rank(&call)).more.is_empty(), "{call}");
    }
    let fused = |count: usize| rank(&format!("RRF({})", vec![text; count].join(", ")));
    taken(&[&fused(16)]);
    refused_with(&[(&fused(17), "The RRF function takes at most 16 scores.")]);
    let one = "The ORDER BY RANK clause takes one function call, without ASC or DESC. Use RRF to \
               rank by several.";
    let clauses = "DISTINCT, GROUP BY and aggregate functions are not allowed with the ORDER BY \
                   RANK clause.";
    refused_with(&[
        (&rank(&format!("{text}, {vector}")), one),
        (&rank(&format!("{text} DESC")), one),
        (&format!("SELECT DISTINCT c FROM c ORDER BY RANK {text}"), clauses),
        (&format!("SELECT c.a FROM c GROUP BY c.a ORDER BY RANK {text}"), clauses),
        (&format!("SELECT COUNT(1) FROM c ORDER BY RANK {text}"), clauses),
    ]);
    refused(&[
        (&format!("SELECT RRF({vector}, {vector}) FROM c"), "SC2005", "RRF"),
        (&format!("SELECT 1 FROM c WHERE Rrf({vector}) > 1"), "SC2005", "Rrf"),
        (&format!("SELECT 1 FROM c ORDER BY RRF({vector}, {vector})"), "SC2005", "RRF"),
    ]);
}

#[test]
fn what_is_selected_has_names() {
    let cases = [
        ("c, c.a, c.a.b, c['d e']", vec!["c", "a", "b", "d e"]),
        ("1, c.a, 'x', c[0], @p", vec!["$1", "a", "$2", "$3", "$4"]),
        ("COUNT(1), 5 AS five, -c.a", vec!["$1", "five", "$2"]),
        ("{a: 1}.a, (SELECT 1)", vec!["a", "$1"]),
    ];
    for (list, names) in cases {
        let Projection::Items(items) = parse(&format!("SELECT {list}")).unwrap().projection else {
            panic!("{list}");
        };
        assert_eq!(item_names(&items), names, "{list}");
    }
}

/// Everything that is wrong in a query: codes, and where in the text.
fn all_of(query: &str) -> Vec<(&'static str, &str)> {
    let first = error_of(query);
    let more = first.more.clone();
    let told = std::iter::once(first).chain(more);
    told.map(|error| (error.code.unwrap_or("none"), &query[error.start..error.end])).collect()
}

#[test]
fn all_that_is_wrong_is_told_from_the_inside_out() {
    let (order, top, page) = ("SC2202", "SC2203", "SC2204");
    for (query, expected) in [
        // Of one subquery first ORDER BY, then TOP, then OFFSET.
        (
            "SELECT 1 FROM (SELECT TOP 2 VALUE c FROM c ORDER BY c.a, 1 OFFSET 3 LIMIT 4) d",
            vec![(order, "ORDER BY c.a, 1"), (top, "TOP 2"), (page, "OFFSET 3 LIMIT 4")],
        ),
        // What is inside comes first, then what is beside it, then what is around it.
        (
            "SELECT 1 FROM (SELECT TOP 1 * FROM (SELECT TOP 2 * FROM c) a) b \
             JOIN (SELECT TOP 3 VALUE 1) e WHERE EXISTS(SELECT TOP 4 1)",
            vec![(top, "TOP 2"), (top, "TOP 1"), (top, "TOP 3"), (top, "TOP 4")],
        ),
        // With names, functions and groups.
        (
            "SELECT x, ABS(LOG()), c.b FROM (SELECT TOP 1 F(y) FROM c) r JOIN c IN r.s GROUP BY c.a",
            vec![
                ("SC2001", "y"),
                ("SC2005", "F"),
                (top, "TOP 1"),
                ("SC2001", "x"),
                ("SC2050", "LOG()"),
                ("SC2102", "c.b"),
            ],
        ),
        ("SELECT VALUE F(FullTextScore(c.a, 'x'), RRF(1)) FROM c", {
            vec![("SC2240", "FullTextScore(c.a, 'x')"), ("SC2005", "RRF"), ("SC2005", "F")]
        }),
        // A ranked FROM clause is looked at from the outside in.
        (
            "SELECT 1 FROM (SELECT TOP 1 * FROM c) d JOIN t IN d.t \
             ORDER BY RANK FullTextScore(t)",
            vec![
                ("SC2224", "(SELECT TOP 1 * FROM c) d JOIN t IN d.t"),
                ("SC2225", "(SELECT TOP 1 * FROM c)"),
                (top, "TOP 1"),
                ("SC2223", "t IN d.t"),
                ("SC2050", "FullTextScore(t)"),
            ],
        ),
        (
            "SELECT 1 FROM c WHERE EXISTS(SELECT TOP 1 1 FROM t IN c.t ORDER BY RANK F(x))",
            vec![("SC2228", "ORDER BY RANK F(x)"), (top, "TOP 1")],
        ),
        ("SELECT *, 1 FROM c WHERE F(1)", vec![("SC1001", ",")]),
        ("SELECT * FROM c JOIN d IN c.d GROUP BY e", vec![("SC2041", "*"), ("SC2001", "e")]),
    ] {
        assert_eq!(all_of(query), expected, "{query}");
    }
    // Sort keys, limits and what has no code are told of a query that is otherwise well.
    let joins = " JOIN t IN c.t".repeat(11);
    assert_eq!(all_of(&format!("SELECT F() FROM c{joins} ORDER BY 1")), [("SC2005", "F")]);
    let error = error_of(&format!("SELECT 1 FROM c{joins} ORDER BY 1, 2"));
    assert_eq!((error.code, error.more), (Some("SC3002"), vec![]));
    let error = error_of("SELECT * FROM c JOIN t IN c.t JOIN c IN t.c ORDER BY 1, 2");
    assert_eq!((error.code, error.more), (Some("2206"), vec![]));
}

#[test]
fn at_most_so_many_findings_are_told() {
    let query = format!("SELECT {}1 FROM c GROUP BY c.a", "c.b, ".repeat(5_000));
    assert_eq!(error_of(&query).more.len(), 15);
}
