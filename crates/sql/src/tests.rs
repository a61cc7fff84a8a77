//! The language, construct by construct: a query and the text of its tree, or
//! the code, the message and the place of what is wrong in it.

mod names;
pub(crate) mod random;

use crate::{DEPTH_MAX, Request, SyntaxError, TEXT_MAX, check, parse};

/// Reads each query and compares its tree, written as text.
fn reads(cases: &[(&str, &str)]) {
    for (query, expected) in cases {
        let tree = parse(query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        assert_eq!(tree.to_string(), *expected, "{query}");
    }
}

/// The same for an expression alone.
fn reads_as(cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        let query = format!("SELECT VALUE {expression}");
        reads(&[(&query, &format!("SELECT VALUE {expected}"))]);
    }
}

fn error_of(query: &str) -> SyntaxError {
    let read = parse(query).and_then(|tree| check(&tree, query).map(|()| tree.to_string()));
    read.expect_err(query)
}

/// Each query is refused with this code near the text of this token.
fn refused(cases: &[(&str, &str, &str)]) {
    for (query, code, near) in cases {
        let error = error_of(query);
        assert_eq!(error.code, Some(*code), "{query}: {error:?}");
        let units: Vec<u16> = query.encode_utf16().collect();
        let text = String::from_utf16(&units[error.start..error.end]).unwrap();
        assert_eq!(text, *near, "{query}: {error:?}");
    }
}

#[test]
fn the_clauses() {
    reads(&[
        ("select * from c", "SELECT * FROM c"),
        ("SELECT DISTINCT TOP 5 c.a, c.b x FROM c", "SELECT DISTINCT TOP 5 c.a, c.b AS x FROM c"),
        ("SELECT TOP @n VALUE c FROM c", "SELECT TOP @n VALUE c FROM c"),
        ("SELECT VALUE c.a b", "SELECT VALUE c.a AS b"),
        (
            "SELECT * FROM root r JOIN t IN r.tags JOIN s in r['a b'][0].x",
            "SELECT * FROM root AS r JOIN t IN r.tags JOIN s IN r[\"a b\"][0].x",
        ),
        (
            "SELECT * FROM (SELECT VALUE 1) AS x JOIN kv IN OBJECTTOARRAY(c.x)",
            "SELECT * FROM (SELECT VALUE 1) AS x JOIN kv IN OBJECTTOARRAY(c.x)",
        ),
        (
            "SELECT COUNT(1) FROM c WHERE c.a GROUP BY c.b, LOWER(c.d)",
            "SELECT COUNT(1) FROM c WHERE c.a GROUP BY c.b, LOWER(c.d)",
        ),
        (
            "SELECT * FROM c ORDER BY c.a, c.b desc, c.d ASC OFFSET @o LIMIT 10",
            "SELECT * FROM c ORDER BY c.a ASC, c.b DESC, c.d ASC OFFSET @o LIMIT 10",
        ),
        ("SELECT * FROM c ORDER BY rank F(1)", "SELECT * FROM c ORDER BY RANK F(1) ASC"),
        ("SELECT * FROM c ORDER BY rank DESC", "SELECT * FROM c ORDER BY rank DESC"),
    ]);
}

#[test]
fn blanks_and_comments() {
    reads(&[
        ("\t SELECT\r\n* -- FROM d\nFROM c--", "SELECT * FROM c"),
        ("SELECT 1--2\r, 3", "SELECT 1, 3"),
        ("SELECT VALUE 1 - -2", "SELECT VALUE (1 - -2)"),
    ]);
    refused(&[("SELECT /* a */ * FROM c", "SC1001", "/")]);
}

#[test]
fn numbers() {
    reads_as(&[
        ("12", "12"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("1.", "1.0"),
        ("1e3", "1000.0"),
        ("1.5E-7", "1.5e-7"),
        ("0x1F", "31"),
        ("0XFFFFFFFFFFFFFFFF", "1.8446744073709552e19"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("18446744073709551615", "1.8446744073709552e19"),
        ("-0", "0"),
        ("-0.0", "0.0"),
        ("- 2", "-2"),
        ("-(-2)", "(- -2)"),
        ("-c.a", "(- c.a)"),
        ("NaN", "NaN"),
        ("-Infinity", "(- Infinity)"),
        // What follows a number is a name for it.
        ("1e", "1 AS e"),
    ]);
    refused(&[("SELECT 1e400", "SC1001", "1e400"), ("SELECT c.2", "SC1001", ".2")]);
}

#[test]
fn strings() {
    reads_as(&[
        (r#"'a"b'"#, r#""a\"b""#),
        (r#""a'b""#, r#""a'b""#),
        (r#"'\'\"\\\/\b\f\n\r\t'"#, r#""'\"\\/\b\f\n\r\t""#),
        (r"'\u0041\u00e9\uD83D\uDE00'", "\"A\u{e9}\u{1F600}\""),
        ("'two\nlines'", r#""two\nlines""#),
        (r"'\u0001'", r#""\u0001""#),
    ]);
    refused(&[
        ("SELECT 'open", "SC1012", "'open"),
        (r"SELECT 'open\'", "SC1012", r"'open\'"),
        (r"SELECT '\q'", "SC1012", r"'\q'"),
        (r"SELECT '\u12'", "SC1012", r"'\u12'"),
        (r"SELECT '\u+123'", "SC1012", r"'\u+123'"),
        (r"SELECT '\uD800'", "SC1012", r"'\uD800'"),
        (r"SELECT c['\x']", "SC1012", r"'\x'"),
    ]);
}

#[test]
fn names_and_reserved_words() {
    reads_as(&[
        ("_a1", "_a1"),
        ("größe", "größe"),
        ("c.rank.escape.all.first.last", "c.rank.escape.all.first.last"),
        ("c['Group']", "c[\"Group\"]"),
        ("LEFT(c.a, 1)", "LEFT(c.a, 1)"),
        ("TRUE", "TRUE"),
        ("true", "true"),
        ("[undefined, null, false]", "[undefined, null, false]"),
    ]);
    refused(&[
        ("SELECT * FROM c WHERE c.Group = 1", "SC1001", "Group"),
        ("SELECT c.left FROM c", "SC1001", "left"),
        ("SELECT c.null FROM c", "SC1001", "null"),
        ("SELECT * FROM order", "SC1001", "order"),
        ("SELECT 1 AS value", "SC1001", "value"),
        ("SELECT {value: 1}", "SC1001", "value"),
        ("SELECT $42", "SC1001", "$"),
        ("SELECT @ FROM c", "SC1001", "@"),
        ("SELECT @1 FROM c", "SC1001", "@"),
    ]);
}

/// From loose to tight: each operator takes the next one into its operands.
#[test]
fn operators_bind_in_their_order() {
    reads_as(&[
        ("a ? b : c ?? d", "(a ? b : (c ?? d))"),
        ("a ?? b ? c : d", "((a ?? b) ? c : d)"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("a ?? b OR c", "(a ?? (b OR c))"),
        ("a OR b AND c", "(a OR (b AND c))"),
        ("a AND b BETWEEN c AND d", "(a AND (b BETWEEN c AND d))"),
        ("a BETWEEN b AND c AND d", "((a BETWEEN b AND c) AND d)"),
        ("a IN (1) OR b LIKE c", "((a IN (1)) OR (b LIKE c))"),
        ("a LIKE b || c", "(a LIKE (b || c))"),
        ("a || b | c", "(a || (b | c))"),
        ("a | b ^ c", "(a | (b ^ c))"),
        ("a ^ b & c", "(a ^ (b & c))"),
        ("a & b = c", "(a & (b = c))"),
        ("a = b < c", "(a = (b < c))"),
        ("a < b << c", "(a < (b << c))"),
        ("a >> b + c", "(a >> (b + c))"),
        ("a + b * c", "(a + (b * c))"),
        ("a * -b", "(a * (- b))"),
        ("NOT a = b", "((NOT a) = b)"),
        ("NOT a AND b", "((NOT a) AND b)"),
        ("-a.b[0]", "(- a.b[0])"),
    ]);
}

#[test]
fn equals_group_from_the_left() {
    reads_as(&[
        ("1 / 2 * 3 % 4", "(((1 / 2) * 3) % 4)"),
        ("1 - 2 + 3", "((1 - 2) + 3)"),
        ("(1 - 2) + 3", "((1 - 2) + 3)"),
        ("1 - (2 + 3)", "(1 - (2 + 3))"),
        ("a <> b != c = d", "(((a != b) != c) = d)"),
        ("a < b <= c > d >= e", "((((a < b) <= c) > d) >= e)"),
        ("a << b >> c >>> d", "(((a << b) >> c) >>> d)"),
        ("a ?? b ?? c", "((a ?? b) ?? c)"),
    ]);
}

#[test]
fn predicates() {
    reads_as(&[
        ("a NOT BETWEEN 1 AND 2", "(a NOT BETWEEN 1 AND 2)"),
        ("a not in (1, 'b', c)", "(a NOT IN (1, \"b\", c))"),
        ("a NOT LIKE 'x!%' ESCAPE '!'", "(a NOT LIKE \"x!%\" ESCAPE \"!\")"),
        ("(a IN (1)) IN (true)", "((a IN (1)) IN (true))"),
    ]);
    refused(&[
        ("SELECT a BETWEEN 1 AND 2 BETWEEN 3 AND 4", "SC1001", "BETWEEN"),
        ("SELECT a LIKE b LIKE c", "SC1001", "LIKE"),
        ("SELECT a IN (1) NOT IN (2)", "SC1001", "NOT"),
        ("SELECT a IN ()", "SC1001", ")"),
        ("SELECT a BETWEEN 1 ?? 2 AND 3", "SC1001", "??"),
        ("SELECT a LIKE 'x' ESCAPE @e", "SC1001", "@e"),
    ]);
}

#[test]
fn values_with_parts() {
    reads_as(&[
        ("[]", "[]"),
        ("[1, [2]]", "[1, [2]]"),
        ("{}", "{}"),
        ("{a: 1, 'b c': {\"d\": @p}}", "{\"a\": 1, \"b c\": {\"d\": @p}}"),
        ("{\"x\": 2}.x", "{\"x\": 2}.x"),
        ("(c.a).b", "c.a.b"),
        ("c[@p][d + 1]", "c[@p][(d + 1)]"),
        ("abs(-1)", "abs(-1)"),
        ("GetCurrentTicks()", "GetCurrentTicks()"),
        ("udf.Left(1, udf.all())", "udf.Left(1, udf.all())"),
        ("(SELECT VALUE 1)", "(SELECT VALUE 1)"),
        ("exists(SELECT 1)", "EXISTS(SELECT 1)"),
        ("ARRAY(SELECT 1)", "ARRAY(SELECT 1)"),
        (
            "[all(SELECT 1), first(SELECT 1), Last(SELECT 1)]",
            "[ALL(SELECT 1), FIRST(SELECT 1), LAST(SELECT 1)]",
        ),
        ("all(1)", "all(1)"),
    ]);
    refused(&[
        ("SELECT [1,]", "SC1001", "]"),
        ("SELECT {a: 1,}", "SC1001", "}"),
        ("SELECT {1: 1}", "SC1001", "1"),
        ("SELECT c.f(1)", "SC1001", "("),
        ("SELECT EXISTS(1)", "SC1001", "1"),
        ("SELECT udf(1)", "SC1001", "("),
        ("SELECT udf.f", "SC1002", ""),
    ]);
}

#[test]
fn what_is_no_query() {
    refused(&[
        ("", "SC1002", ""),
        ("  ", "SC1002", ""),
        ("selectttt * FROM c", "SC1001", "selectttt"),
        ("SELECT FROM c", "SC1001", "FROM"),
        ("SELECT a, FROM c", "SC1001", "FROM"),
        ("SELECT *, a FROM c", "SC1001", ","),
        ("SELECT VALUE * FROM c", "SC1001", "*"),
        ("SELECT * FROM", "SC1002", ""),
        ("SELECT * FROM c;", "SC1001", ";"),
        ("SELECT * FROM c WHERE", "SC1002", ""),
        ("SELECT * FROM c WHERE true, false", "SC1001", ","),
        ("SELECT * FROM c GROUP c.a", "SC1001", "c"),
        ("SELECT * FROM c GROUP BY c.a HAVING 1", "SC1001", "HAVING"),
        ("SELECT * FROM c[1.5]", "SC1001", "1.5"),
        ("SELECT * FROM c LIMIT 1", "SC1001", "LIMIT"),
        ("SELECT * FROM c OFFSET 1", "SC1002", ""),
        ("SELECT * FROM c ORDER BY RANK 1", "SC1001", "1"),
        ("SELECT * FROM c ORDER BY RANK c.a", "SC1001", "."),
        ("SELECT * FROM c ORDER BY RANK F(1) + 1", "SC1001", "+"),
        ("SELECT * FROM c ORDER BY RANK F(1), 2", "SC1001", "2"),
        ("SELECT * FROM c WHERE (c.a", "SC1002", ""),
        ("SELECT * FROM c WHERE c.a)", "SC1001", ")"),
    ]);
}

#[test]
fn counts() {
    reads(&[(
        "SELECT TOP 4294967295 * FROM c OFFSET 0 LIMIT 4294967295",
        "SELECT TOP 4294967295 * FROM c OFFSET 0 LIMIT 4294967295",
    )]);
    refused(&[
        ("SELECT TOP -1 * FROM c", "SC1001", "-"),
        ("SELECT TOP 'a' * FROM c", "SC1001", "'a'"),
        ("SELECT TOP 1.5 * FROM c", "SC2060", "1.5"),
        ("SELECT TOP 4294967296 * FROM c", "SC2060", "4294967296"),
        ("SELECT * FROM c OFFSET 4294967296 LIMIT 1", "SC2062", "4294967296"),
        ("SELECT * FROM c OFFSET 1 LIMIT 4294967296", "SC2061", "4294967296"),
        ("SELECT * FROM c OFFSET 1 LIMIT 1.5", "SC1001", "1.5"),
    ]);
}

#[test]
fn clauses_that_do_not_go_together() {
    refused(&[
        ("SELECT * FROM c GROUP BY c.a", "SC2041", "*"),
        ("SELECT * FROM (SELECT TOP 1 * FROM c) d", "SC2203", "TOP 1"),
        ("SELECT * FROM (SELECT TOP 1 * FROM c ORDER BY c.a) d", "SC2202", "ORDER BY c.a"),
        ("SELECT ARRAY(SELECT 1 OFFSET 1 LIMIT 2)", "SC2204", "OFFSET 1 LIMIT 2"),
        ("SELECT -[{a: ABS(1 + (SELECT TOP 2 3))}][0]", "SC2203", "TOP 2"),
        ("SELECT 1 FROM c WHERE EXISTS(SELECT 1 ORDER BY RANK F())", "SC2228", "ORDER BY RANK F()"),
        ("SELECT 1 FROM a IN c.b ORDER BY RANK F()", "SC2223", "a IN c.b"),
        ("SELECT 1 FROM c JOIN a IN c.b ORDER BY RANK F()", "SC2224", "c JOIN a IN c.b"),
        ("SELECT 1 FROM (SELECT TOP 1 2) d ORDER BY RANK F()", "SC2225", "(SELECT TOP 1 2)"),
    ]);
}

#[test]
fn limits_of_the_service() {
    let joins = |count| {
        let joins: Vec<String> = (0..count).map(|n| format!(" JOIN t{n} IN c.t")).collect();
        format!("SELECT 1 FROM c{}", joins.concat())
    };
    assert!(check(&parse(&joins(10)).unwrap(), &joins(10)).is_ok());
    let inner = format!("SELECT 1 FROM ({}) d JOIN e IN d.e", joins(10));
    assert_eq!(error_of(&inner).code, Some("SC3002"));
    let error = error_of(&joins(11));
    assert_eq!(
        error.message,
        "The SQL query exceeded the maximum number of joins. The allowed limit is 10."
    );
    assert_eq!((error.code, error.start, error.end), (Some("SC3002"), 0, joins(11).len()));

    let udfs = |count| format!("SELECT 1{}", ", udf.f()".repeat(count));
    assert!(check(&parse(&udfs(10)).unwrap(), &udfs(10)).is_ok());
    assert_eq!(error_of(&udfs(11)).code, Some("SC3005"));

    let long = |length: usize| format!("SELECT '{}'", "é".repeat(length - 9));
    assert!(parse(&long(TEXT_MAX)).is_ok());
    let error = error_of(&long(TEXT_MAX + 1));
    assert_eq!((error.code, error.start, error.end), (Some("SC3020"), 0, TEXT_MAX + 1));
    assert_eq!(
        error.message,
        "The SQL query text exceeded the maximum limit of 524288 characters."
    );
}

/// Nothing that a text can hold goes deeper than the limit.
#[test]
fn deep_nesting_is_an_error() {
    let nests: [(&str, &str, &str); 12] = [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{a:", "1", "}"),
        ("- ", "a", ""),
        ("NOT ", "a", ""),
        ("f(", "1", ")"),
        ("a[", "1", "]"),
        ("1 ? ", "1", " : 1"),
        ("1 ? 1 : ", "1", ""),
        ("1 IN (", "1", ")"),
        ("(SELECT ", "1", ")"),
        ("a OR b AND c LIKE d || e | f ^ g & h = i < j << k + l * (", "1", ")"),
    ];
    for (open, inner, close) in nests {
        for depth in [DEPTH_MAX + 1, 8_000] {
            let query = format!("SELECT {}{inner}{}", open.repeat(depth), close.repeat(depth));
            let error = error_of(&query);
            assert_eq!(error.code, None, "{open}");
            assert!(error.message.contains("nested"), "{error:?}");
        }
    }
    let brackets = DEPTH_MAX - 1;
    let query = format!("SELECT {}1{}", "(".repeat(brackets), ")".repeat(brackets));
    assert!(parse(&query).is_ok());
}

/// What is long is not deep.
#[test]
fn long_chains_are_read() {
    let chains =
        [("c.a = 1", " OR c.a = 1"), ("1", " + 1"), ("1", " ?? 1"), ("c", ".a"), ("c", "[0]")];
    for (first, next) in chains {
        let query = format!("SELECT VALUE {first}{} FROM c", next.repeat(40_000));
        let tree = parse(&query).unwrap_or_else(|error| panic!("{next}: {error:?}"));
        assert!(check(&tree, &query).is_ok());
        assert!(tree.to_string().len() > query.len() / 2);
    }
    let brackets = 100;
    let nested = format!("SELECT {}a{}", "(".repeat(brackets), " AND b)".repeat(brackets));
    assert!(parse(&nested).is_ok());
}

#[test]
fn places_are_counted_in_utf16() {
    let error = error_of("SELECT '\u{1F600}é', §");
    assert_eq!((error.start, error.end), (14, 15));
}

#[test]
fn errors_as_the_service_writes_them() {
    assert_eq!(
        error_of("SELECT TOP -1 c.name FROM c").body(),
        r#"{"errors":[{"severity":"Error","location":{"start":11,"end":12},"code":"SC1001","message":"Syntax error, incorrect syntax near '-'."}]}"#,
    );
    let deep = format!("SELECT {}", "(".repeat(1_000));
    assert_eq!(
        error_of(&deep).body(),
        r#"{"Errors":["The query is nested more than 128 levels deep. Use fewer brackets."]}"#,
    );
    let long = format!("SELECT '{}", "a".repeat(10_000));
    assert!(error_of(&long).message.len() < 400);
}

#[test]
fn parameters_are_checked() {
    let read = |parameters: &str| {
        let body = format!(r#"{{"query":"SELECT * FROM c","parameters":{parameters}}}"#);
        Request::read(body.as_bytes()).map(|request| request.parameters.len())
    };
    let good = [
        ("null", 0),
        ("[]", 0),
        (r#"[{"name":"@a","value":1},{"name":"@A","value":[null]}]"#, 2),
        (r#"[{"name":"@_1"}]"#, 1),
    ];
    for (parameters, count) in good {
        assert_eq!(read(parameters), Ok(count), "{parameters}");
    }
    let bad = [
        ("{}", "The query's parameters must be an array."),
        ("[1]", "A parameter of the query has no name; each is {\"name\", \"value\"}."),
        (
            r#"[{"name":"a","value":1}]"#,
            "The query's parameter 'a' must be named by '@' and letters, digits or '_'.",
        ),
        (
            r#"[{"name":"@a b","value":1}]"#,
            "The query's parameter '@a b' must be named by '@' and letters, digits or '_'.",
        ),
        (
            r#"[{"name":"@a","value":1},{"name":"@a","value":2}]"#,
            "The query's parameter '@a' is given more than once.",
        ),
    ];
    for (parameters, message) in bad {
        assert_eq!(read(parameters).unwrap_err().message, message);
    }
}
