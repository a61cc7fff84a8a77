use dayfly_model::value::Value;
use dayfly_model::{Error, Timestamp};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::{Computed, Request};

mod computed;
mod hostile;
mod leash;
mod paging;
mod sieve;

struct Document {
    text: String,
    number: u64,
}

impl Item for Document {
    fn text(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn system(&self, name: &str) -> Value {
        match name {
            "_ts" => Value::from(1000i64),
            "_rid" => Value::from(format!("rid{}", self.number)),
            _ => Value::Undefined,
        }
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn render(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text.as_bytes());
    }
}

fn documents(list: &Json) -> Vec<Document> {
    let list = list.as_array().unwrap();
    (0..).zip(list).map(|(number, json)| Document { text: json.to_string(), number }).collect()
}

fn program(query: &str, parameters: Json) -> Result<Program, Error> {
    let body = json!({ "query": query, "parameters": parameters });
    Program::compile(&Request::read(body.to_string().as_bytes())?, Computed::NONE)
}

/// The document with which a page starts, and how.
type Start = (usize, Resume);

/// One page over `documents` from where the last one ended: its rows, and where
/// it ended.
fn page(
    program: &Program,
    documents: &[Document],
    rows: usize,
    start: Option<Start>,
) -> Result<(Vec<Json>, Option<Start>), Error> {
    page_of(program, documents, rows, start, false)
}

/// The same; `ordered`: the documents come in the order of the query.
fn page_of(
    program: &Program,
    documents: &[Document],
    rows: usize,
    start: Option<Start>,
    ordered: bool,
) -> Result<(Vec<Json>, Option<Start>), Error> {
    let limits = Limits { rows, bytes: 4 << 20 };
    let (from, resume) = start.map_or((0, None), |(from, resume)| (from, Some(resume)));
    let steps = Steps::new(&Free);
    let mut page = QueryPage::new(program, Timestamp(1000), false, limits, resume, ordered, &steps);
    let mut stopped = 0;
    if program.reads_items() {
        for (place, document) in documents.iter().enumerate().skip(from) {
            stopped = place;
            if page.is_done() || page.add(document, (0, document.number))? != Added::More {
                break;
            }
        }
    } else {
        page.add_nothing()?;
    }
    let finished = page.finish()?;
    let text = [b"[", &*finished.rows, b"]"].concat();
    let rows: Vec<Json> = serde_json::from_slice(&text).unwrap();
    assert_eq!(rows.len(), finished.count);
    let streams = program.style() == Style::Stream;
    let next = finished.resume.map(|resume| (if streams { stopped } else { 0 }, resume));
    Ok((rows, next))
}

fn all(query: &str, list: &Json) -> Result<Json, Error> {
    let program = program(query, json!([]))?;
    let (rows, next) = page(&program, &documents(list), 10_000, None)?;
    assert_eq!(next, None, "{query}");
    Ok(Json::Array(rows))
}

/// Each query over the same documents, and its rows.
fn check(list: &Json, cases: &[(&str, Json)]) {
    for (query, expected) in cases {
        assert_eq!(all(query, list).unwrap(), *expected, "{query}");
    }
}

#[test]
fn operators() {
    let none = json!([]);
    check(
        &none,
        &[
            ("SELECT VALUE 1 + 2 * 3 - 4 / 2", json!([5])),
            ("SELECT VALUE 7 % 4", json!([3])),
            ("SELECT VALUE -7 % 4", json!([-3])),
            ("SELECT VALUE 'a' || 'b' || 'c'", json!(["abc"])),
            ("SELECT VALUE 'a' || 1", none.clone()),
            ("SELECT VALUE 1 + 'a'", none.clone()),
            ("SELECT VALUE -'a'", none.clone()),
            ("SELECT VALUE 5 & 3", json!([1])),
            ("SELECT VALUE 5 | 3", json!([7])),
            ("SELECT VALUE 5 ^ 3", json!([6])),
            ("SELECT VALUE ~5", json!([-6])),
            ("SELECT VALUE 1 << 33", json!([2])),
            ("SELECT VALUE -8 >> 1", json!([-4])),
            ("SELECT VALUE -8 >>> 28", json!([15])),
            ("SELECT VALUE 4294967297 & 1", json!([1])),
            ("SELECT VALUE 1 = 1.0", json!([true])),
            ("SELECT VALUE 1 = '1'", json!([false])),
            ("SELECT VALUE 1 != '1'", json!([true])),
            ("SELECT VALUE [1, {'a': 2}] = [1, {'a': 2}]", json!([true])),
            ("SELECT VALUE {'a': 1, 'b': 2} = {'b': 2, 'a': 1}", json!([true])),
            ("SELECT VALUE undefined = 1", none.clone()),
            ("SELECT VALUE null = null", json!([true])),
            ("SELECT VALUE 1 < 'a'", none.clone()),
            ("SELECT VALUE 'a' < 'b'", json!([true])),
            ("SELECT VALUE false < true", json!([true])),
            ("SELECT VALUE null <= null", json!([true])),
            ("SELECT VALUE [1] < [2]", none.clone()),
            ("SELECT VALUE 5 BETWEEN 1 AND 5", json!([true])),
            ("SELECT VALUE 5 NOT BETWEEN 1 AND 5", json!([false])),
            ("SELECT VALUE 5 BETWEEN 'a' AND 9", none.clone()),
            ("SELECT VALUE 2 IN (1, 2.0)", json!([true])),
            ("SELECT VALUE 2 NOT IN (1, 2.0)", json!([false])),
            ("SELECT VALUE undefined IN (1, undefined)", none.clone()),
            ("SELECT VALUE [1] IN ([1])", json!([true])),
            ("SELECT VALUE 'abc' LIKE 'a%'", json!([true])),
            ("SELECT VALUE 'abc' NOT LIKE 'a%'", json!([false])),
            ("SELECT VALUE 'a%c' LIKE 'a!%c' ESCAPE '!'", json!([true])),
            ("SELECT VALUE true AND undefined", none.clone()),
            ("SELECT VALUE false AND undefined", json!([false])),
            ("SELECT VALUE undefined OR true", json!([true])),
            ("SELECT VALUE 1 OR true", json!([true])),
            ("SELECT VALUE NOT 1", none.clone()),
            ("SELECT VALUE NOT (1 = 2)", json!([true])),
            ("SELECT VALUE undefined ?? null ?? 1", json!([null])),
            ("SELECT VALUE 1 = 1 ? 'y' : 'n'", json!(["y"])),
            ("SELECT VALUE 1 ? 'y' : 'n'", json!(["n"])),
            ("SELECT VALUE undefined ? 'y' : 'n'", json!(["n"])),
            ("SELECT VALUE [1, undefined, 2]", json!([[1, 2]])),
            ("SELECT VALUE {a: undefined, b: 1}", json!([{"b": 1}])),
            ("SELECT VALUE [1, 2][1]", json!([2])),
            ("SELECT VALUE [1, 2][-1]", none.clone()),
            ("SELECT VALUE {'a': {'b': 3}}.a['b']", json!([3])),
            ("SELECT VALUE 9223372036854775807", json!([9_223_372_036_854_775_807_i64])),
            ("SELECT VALUE -9223372036854775808", json!([i64::MIN])),
        ],
    );
}

#[test]
fn what_is_selected_and_how_it_is_called() {
    let list = json!([{"id": "1", "a": {"b": 1, "c d": 2}, "e": [3]}]);
    check(
        &list,
        &[
            ("SELECT * FROM c", list.clone()),
            ("SELECT * FROM c WHERE c._ts = 1000 AND c._rid = 'rid0'", list.clone()),
            ("SELECT c FROM c", json!([{"c": list[0]}])),
            ("SELECT VALUE c FROM c", list.clone()),
            (
                "SELECT c.a.b, c.a['c d'], c.e[0], c.id AS x FROM c",
                json!([{"b": 1, "c d": 2, "$1": 3, "x": "1"}]),
            ),
            ("SELECT 1, c.id, 2 FROM c", json!([{"$1": 1, "id": "1", "$2": 2}])),
            ("SELECT c.nothing FROM c", json!([{}])),
            ("SELECT VALUE c.nothing FROM c", json!([])),
            ("SELECT 1", json!([{"$1": 1}])),
            ("SELECT VALUE {x: c.a.b, y: [c.id]} FROM c", json!([{"x": 1, "y": ["1"]}])),
            ("SELECT VALUE root.id FROM root", json!(["1"])),
            ("SELECT VALUE r.id FROM anything r", json!(["1"])),
            ("SELECT VALUE c[true ? 'id' : 'e'] FROM c", json!(["1"])),
            ("SELECT c._ts, c._rid FROM c", json!([{"_ts": 1000, "_rid": "rid0"}])),
            ("SELECT VALUE DOCUMENTID(c) FROM c", json!([0])),
        ],
    );
}

#[test]
fn sources() {
    let list = json!([
        {"id": "1", "t": [{"n": "a", "s": [1, 2]}, {"n": "b", "s": []}], "o": {"x": 1}},
        {"id": "2", "t": [], "o": null},
        {"id": "3", "t": "no array"},
    ]);
    check(
        &list,
        &[
            ("SELECT VALUE t.n FROM t IN c.t", json!(["a", "b"])),
            ("SELECT VALUE t.n FROM c JOIN t IN c.t", json!(["a", "b"])),
            (
                "SELECT c.id, s FROM c JOIN t IN c.t JOIN s IN t.s",
                json!([{"id": "1", "s": 1}, {"id": "1", "s": 2}]),
            ),
            ("SELECT VALUE o FROM c.o", json!([{"x": 1}, null])),
            ("SELECT VALUE x FROM c.o.x", json!([1])),
            ("SELECT VALUE n FROM c.t[0].n", json!(["a"])),
            ("SELECT VALUE p FROM p IN p.t WHERE p.n = 'b'", json!([{"n": "b", "s": []}])),
            ("SELECT VALUE x FROM c JOIN x IN (SELECT VALUE t.n FROM t IN c.t)", json!([])),
            ("SELECT VALUE x FROM c JOIN (SELECT VALUE t.n FROM t IN c.t) x", json!(["a", "b"])),
            (
                "SELECT VALUE x FROM c JOIN x IN (SELECT VALUE [1, 2]) WHERE c.id = '1'",
                json!([1, 2]),
            ),
            ("SELECT VALUE x.n FROM c JOIN (SELECT t.n FROM t IN c.t) x", json!(["a", "b"])),
            (
                "SELECT c.id AS i, x FROM c JOIN x IN c.t[0].s",
                json!([{"i": "1", "x": 1}, {"i": "1", "x": 2}]),
            ),
        ],
    );
}

#[test]
fn subqueries() {
    let list = json!([{"id": "1", "t": [3, 1, 2], "n": 2}, {"id": "2", "t": [], "n": 5}]);
    check(
        &list,
        &[
            (
                "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.t WHERE t > c.n)",
                json!(["1"]),
            ),
            (
                "SELECT VALUE ARRAY(SELECT VALUE t * 10 FROM t IN c.t WHERE t < 3) FROM c",
                json!([[10, 20], []]),
            ),
            ("SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.t) FROM c", json!([3, 0])),
            ("SELECT VALUE (SELECT VALUE MAX(t) FROM t IN c.t) FROM c", json!([3])),
            (
                "SELECT c.id, (SELECT VALUE t FROM t IN c.t WHERE t = 1) AS one FROM c",
                json!([{"id": "1", "one": 1}, {"id": "2"}]),
            ),
            ("SELECT VALUE s.a FROM (SELECT c.n AS a FROM c) s", json!([2, 5])),
            ("SELECT VALUE EXISTS(SELECT VALUE undefined)", json!([false])),
            (
                "SELECT VALUE ALL(SELECT VALUE t FROM t IN c.t WHERE t > 0) FROM c",
                json!([true, true]),
            ),
            ("SELECT VALUE FIRST(SELECT VALUE t FROM t IN c.t) FROM c", json!([3])),
            ("SELECT VALUE LAST(SELECT VALUE t FROM t IN c.t) FROM c", json!([2])),
            (
                "SELECT VALUE ARRAY(SELECT DISTINCT VALUE t % 2 FROM t IN c.t) FROM c",
                json!([[1, 0], []]),
            ),
            (
                "SELECT VALUE ARRAY(SELECT t % 2 AS k, COUNT(1) AS n FROM t IN c.t GROUP BY t % 2) FROM c",
                json!([[{"k": 1, "n": 2}, {"k": 0, "n": 1}], []]),
            ),
        ],
    );
    let error = all("SELECT VALUE (SELECT VALUE t FROM t IN c.t) FROM c", &list).unwrap_err();
    assert!(error.message.contains("cardinality of a scalar subquery"), "{error}");
}

#[test]
fn groups_and_aggregates() {
    let list = json!([
        {"k": "a", "v": 1}, {"k": "b", "v": 2}, {"k": "a", "v": 3}, {"v": 4}, {"k": null},
    ]);
    check(
        &list,
        &[
            ("SELECT VALUE COUNT(1) FROM c", json!([5])),
            ("SELECT VALUE COUNT(c.v) FROM c", json!([4])),
            ("SELECT VALUE COUNT(1) FROM c WHERE false", json!([0])),
            ("SELECT VALUE SUM(c.v) FROM c", json!([10])),
            ("SELECT VALUE AVG(c.v) FROM c", json!([2.5])),
            ("SELECT VALUE MIN(c.v) FROM c", json!([1])),
            ("SELECT VALUE MAX(c.k) FROM c", json!(["b"])),
            ("SELECT VALUE MIN(c.k) FROM c", json!([null])),
            ("SELECT VALUE SUM(c.k) FROM c", json!([])),
            ("SELECT AVG(c.nothing) AS a, SUM(c.nothing) AS s FROM c", json!([{"s": 0}])),
            ("SELECT VALUE COUNTIF(c.v > 1) FROM c", json!([3])),
            ("SELECT VALUE MAKELIST(c.v) FROM c", json!([[1, 2, 3, 4]])),
            ("SELECT VALUE MAKESET(c.k) FROM c", json!([["a", "b", null]])),
            ("SELECT VALUE {n: COUNT(1), s: SUM(c.v) / 2} FROM c", json!([{"n": 5, "s": 5}])),
            (
                "SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k",
                json!([{"k": "a", "n": 2}, {"k": "b", "n": 1}, {"n": 1}, {"k": null, "n": 1}]),
            ),
            (
                "SELECT UPPER(c.k) AS u, MAX(c.v) FROM c GROUP BY c.k",
                json!([{"u": "A", "$1": 3}, {"u": "B", "$1": 2}, {"$1": 4}, {}]),
            ),
            (
                "SELECT c['k'], COUNT(1) AS n FROM c GROUP BY c.k OFFSET 1 LIMIT 1",
                json!([{"k": "b", "n": 1}]),
            ),
            ("SELECT VALUE c.k FROM c GROUP BY c.k", json!(["a", "b", null])),
            (
                "SELECT c.v > 2 AS big, COUNT(1) AS n FROM c GROUP BY c.v > 2",
                json!([{"big": false, "n": 2}, {"big": true, "n": 2}, {"n": 1}]),
            ),
            (
                "SELECT COUNT(1) AS n FROM c GROUP BY c.nothing, c.v > 10",
                json!([{"n": 4}, {"n": 1}]),
            ),
        ],
    );
}

#[test]
fn subqueries_of_all_items() {
    let list = json!([
        {"k": "a", "v": 1}, {"k": "b", "v": 2}, {"k": "a", "v": 3}, {"v": 4}, {"k": null},
    ]);
    check(
        &list,
        &[
            ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.k FROM c) s", json!([3])),
            ("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.k FROM c)", json!([4])),
            ("SELECT VALUE s.n FROM (SELECT COUNT(1) AS n FROM c) s", json!([5])),
            ("SELECT VALUE s.n FROM (SELECT COUNT(1) AS n FROM c WHERE c.v > 9) s", json!([0])),
            (
                "SELECT * FROM (SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k) s WHERE s.n > 1",
                json!([{"k": "a", "n": 2}]),
            ),
            (
                "SELECT s.k, x FROM (SELECT c.k, MAKELIST(c.v) AS l FROM c GROUP BY c.k) s \
                 JOIN x IN s.l WHERE s.k = 'a'",
                json!([{"k": "a", "x": 1}, {"k": "a", "x": 3}]),
            ),
            (
                "SELECT VALUE t.most FROM (SELECT MAX(s.n) AS most FROM \
                 (SELECT COUNT(1) AS n FROM c GROUP BY c.k) s) t",
                json!([2]),
            ),
            (
                "SELECT VALUE t FROM (SELECT VALUE s || '!' FROM \
                 (SELECT DISTINCT VALUE c.k FROM c) s) t",
                json!(["a!", "b!"]),
            ),
            ("SELECT VALUE x FROM x IN (SELECT VALUE MAKELIST(c.v) FROM c)", json!([1, 2, 3, 4])),
            (
                "SELECT DISTINCT VALUE s % 2 FROM (SELECT DISTINCT VALUE c.v FROM c) s",
                json!([1, 0]),
            ),
            ("SELECT TOP 1 VALUE s FROM (SELECT DISTINCT VALUE c.k FROM c) s", json!(["a"])),
            (
                "SELECT VALUE s FROM (SELECT DISTINCT VALUE c.v FROM c) s OFFSET 1 LIMIT 2",
                json!([2, 3]),
            ),
            ("SELECT VALUE COUNT(1) FROM (SELECT VALUE c.v FROM c) s", json!([4])),
            // After JOIN it speaks of one item.
            ("SELECT VALUE s.n FROM c JOIN (SELECT COUNT(c.v) AS n) s", json!([1, 1, 1, 1, 0])),
            ("SELECT VALUE x FROM x IN (SELECT VALUE [1, 2])", json!([1, 2])),
            ("SELECT TOP 0 VALUE 1", json!([])),
        ],
    );
}

/// In whichever order the items are brought.
#[test]
fn a_distinct_row_stands_where_the_first_of_its_equals_does() {
    let mut list = documents(&json!([
        {"a": 1, "b": 3}, {"a": 2, "b": 2}, {"a": 1, "b": 1}, {"a": 3, "b": 1},
    ]));
    for _ in 0..2 {
        for (query, expected) in [
            ("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.b", json!([1, 3, 2])),
            ("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.b DESC", json!([1, 2, 3])),
            ("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.b OFFSET 1 LIMIT 1", json!([3])),
        ] {
            let program = program(query, json!([])).unwrap();
            assert_eq!(json!(page(&program, &list, 100, None).unwrap().0), expected, "{query}");
        }
        list.reverse();
    }
    let program = program("SELECT DISTINCT TOP 2 VALUE c.a FROM c", json!([])).unwrap();
    assert_eq!(json!(page(&program, &list, 100, None).unwrap().0), json!([1, 2]));
}

/// The rows of a subquery of all items come in one page, whatever its length.
#[test]
fn subqueries_of_all_items_come_in_one_page() {
    let list = json!([{"v": 1}, {"v": 2}, {"v": 3}]);
    let program =
        program("SELECT VALUE s FROM (SELECT DISTINCT VALUE c.v FROM c) s", json!([])).unwrap();
    let (rows, next) = page(&program, &documents(&list), 1, None).unwrap();
    assert_eq!((rows, next), (vec![json!(1), json!(2), json!(3)], None));
}

#[test]
fn distinct_order_and_counts() {
    let list = json!([
        {"id": "1", "v": 2, "w": {"a": 1, "b": 2}}, {"id": "2", "v": "x"}, {"id": "3"},
        {"id": "4", "v": 2.0, "w": {"b": 2, "a": 1}}, {"id": "5", "v": null}, {"id": "6", "v": [1]},
        {"id": "7", "v": true}, {"id": "8", "v": {"z": 1}},
    ]);
    check(
        &list,
        &[
            ("SELECT DISTINCT VALUE c.v FROM c", json!([2, "x", null, [1], true, {"z": 1}])),
            ("SELECT DISTINCT c.w FROM c", json!([{"w": {"a": 1, "b": 2}}, {}])),
            (
                "SELECT VALUE c.id FROM c ORDER BY c.v",
                json!(["3", "5", "7", "1", "4", "2", "6", "8"]),
            ),
            (
                "SELECT VALUE c.id FROM c ORDER BY c.v DESC",
                json!(["8", "6", "2", "4", "1", "7", "5", "3"]),
            ),
            (
                "SELECT VALUE c.id FROM c ORDER BY c.v ASC, c.id DESC",
                json!(["3", "5", "7", "4", "1", "2", "6", "8"]),
            ),
            ("SELECT TOP 2 VALUE c.id FROM c", json!(["1", "2"])),
            ("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.id DESC", json!(["8", "7"])),
            ("SELECT VALUE c.id FROM c OFFSET 2 LIMIT 2", json!(["3", "4"])),
            ("SELECT VALUE c.id FROM c ORDER BY c.id DESC OFFSET 6 LIMIT 5", json!(["2", "1"])),
            ("SELECT TOP 0 * FROM c", json!([])),
            ("SELECT VALUE c.v FROM c ORDER BY c.id OFFSET 2 LIMIT 1", json!([2])),
            (
                "SELECT DISTINCT VALUE c.v FROM c ORDER BY c.v DESC",
                json!([{"z": 1}, [1], "x", 2, true, null]),
            ),
            ("SELECT DISTINCT TOP 2 VALUE c.v FROM c", json!([2, "x"])),
        ],
    );
}

#[test]
fn elements_of_arrays_are_sorted_by() {
    check(
        &json!([
            {"id": "1", "kids": [{"grade": 5}, {"grade": 1}]}, {"id": "2", "kids": []},
            {"id": "3", "kids": [{"grade": 2}]}, {"id": "4", "kids": [{"grade": "b"}, 7]},
            {"id": "5"},
        ]),
        &[
            ("SELECT VALUE c.id FROM c ORDER BY c.kids[0].grade", json!(["2", "5", "3", "1", "4"])),
            (
                "SELECT VALUE c.id FROM c ORDER BY c['kids'][1] DESC",
                json!(["1", "4", "5", "3", "2"]),
            ),
        ],
    );
}

#[test]
fn groups_are_sorted_by_their_keys() {
    check(
        &json!([
            {"k": "b", "v": 1, "w": 1}, {"k": "a", "v": 2, "w": 1}, {"v": 3, "w": 2},
            {"k": "b", "v": 4, "w": 2}, {"k": 1, "v": 5, "w": 1},
        ]),
        &[
            (
                "SELECT c.k, SUM(c.v) AS s FROM c GROUP BY c.k ORDER BY c.k",
                json!([{"s": 3}, {"k": 1, "s": 5}, {"k": "a", "s": 2}, {"k": "b", "s": 5}]),
            ),
            ("SELECT VALUE SUM(c.v) FROM c GROUP BY c.k ORDER BY c['k'] DESC", json!([5, 2, 5, 3])),
            (
                "SELECT TOP 2 c.k AS name FROM c GROUP BY c.k ORDER BY name DESC",
                json!([{"name": "b"}, {"name": "a"}]),
            ),
            (
                "SELECT c.w, c.k FROM c WHERE IS_STRING(c.k) GROUP BY c.k, c.w \
                 ORDER BY c.w DESC, c.k OFFSET 1 LIMIT 2",
                json!([{"w": 1, "k": "a"}, {"w": 1, "k": "b"}]),
            ),
            (
                "SELECT UPPER(c.k) AS up, COUNT(1) AS n FROM c GROUP BY UPPER(c.k) ORDER BY up DESC",
                json!([{"up": "B", "n": 2}, {"up": "A", "n": 1}, {"n": 2}]),
            ),
            // One row has any order, also that of what is joined.
            (
                "SELECT VALUE COUNT(1) FROM c JOIN x IN (SELECT VALUE [1, 2]) ORDER BY x",
                json!([10]),
            ),
        ],
    );
}

/// Its name stands for the item, and its filter is one of the query.
#[test]
fn a_subquery_that_gives_the_items_is_the_container() {
    let list = json!([
        {"id": "1", "a": 3, "t": [1, 2]}, {"id": "2", "a": 1, "t": []}, {"id": "3", "a": 2, "t": [3]},
    ]);
    check(
        &list,
        &[
            (
                "SELECT VALUE s.id FROM (SELECT * FROM root c WHERE c.a > 1) AS s ORDER BY s.a",
                json!(["3", "1"]),
            ),
            (
                "SELECT VALUE s.id FROM (SELECT VALUE c FROM c WHERE c.a > 1) s WHERE s.a < 3 \
                 ORDER BY s.a",
                json!(["3"]),
            ),
            (
                "SELECT VALUE u.id FROM (SELECT * FROM (SELECT VALUE x FROM x WHERE x.a < 3) s \
                 WHERE s.id != '9') u ORDER BY u.a DESC",
                json!(["3", "2"]),
            ),
            (
                "SELECT s, t FROM (SELECT * FROM c WHERE c.a = 2) s JOIN t IN s.t",
                json!([{"s": {"id": "3", "a": 2, "t": [3]}, "t": 3}]),
            ),
            (
                "SELECT VALUE d FROM (SELECT * FROM c) s JOIN (SELECT DISTINCT VALUE 1 + t * 0 \
                 FROM t IN s.t) d",
                json!([1, 1]),
            ),
            ("SELECT VALUE COUNT(1) FROM (SELECT * FROM c WHERE c.a > 1) s", json!([2])),
            (
                "SELECT VALUE x.n FROM (SELECT COUNT(1) AS n FROM (SELECT * FROM c WHERE c.a > 1) s) x",
                json!([2]),
            ),
        ],
    );
    let path = |query: &str| program(query, json!([])).unwrap().order()[0].path.clone();
    for (query, found) in [
        ("SELECT * FROM (SELECT * FROM c) s ORDER BY s.a.b", true),
        ("SELECT * FROM (SELECT VALUE c FROM c) s ORDER BY s.a.b", true),
        ("SELECT * FROM (SELECT VALUE c.x FROM c) s ORDER BY s.a.b", false),
        ("SELECT * FROM (SELECT c.a FROM c) s ORDER BY s.a.b", false),
        ("SELECT * FROM (SELECT DISTINCT * FROM c) s ORDER BY s.a.b", false),
        ("SELECT VALUE s FROM (SELECT VALUE c FROM c JOIN t IN c.t) s ORDER BY s.a.b", false),
    ] {
        let expected = found.then(|| vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(path(query), expected, "{query}");
    }
}

#[test]
fn aggregates_of_what_one_item_has_may_nest() {
    check(
        &json!([
            {"id": "1", "verses": [{"lines": [4, 9]}, {"lines": [2]}, {"lines": []}]},
            {"id": "2", "verses": [{"lines": [1]}]}, {"id": "3"},
        ]),
        &[
            (
                "SELECT VALUE (SELECT VALUE SUM((SELECT VALUE MAX(l) FROM l IN v.lines)) \
                 FROM v IN c.verses) FROM c",
                json!([11, 1, 0]),
            ),
            (
                "SELECT VALUE c.id FROM c WHERE (SELECT VALUE MAX((SELECT VALUE COUNT(1) \
                 FROM l IN v.lines)) FROM v IN c.verses) > 1",
                json!(["1"]),
            ),
        ],
    );
}

#[test]
fn parameters_stand_for_values() {
    let list = documents(&json!([{"id": "1", "a": [1, 2]}, {"id": "2", "a": [3]}, {"id": "3"}]));
    let given = json!([
        {"name": "@n", "value": 1}, {"name": "@a", "value": [3]}, {"name": "@name", "value": "a"},
        {"name": "@ids", "value": ["1", "3"]}, {"name": "@none"},
    ]);
    for (query, expected) in [
        ("SELECT VALUE c.id FROM c WHERE c.a = @a", json!(["2"])),
        ("SELECT VALUE c[@name][0] FROM c", json!([1, 3])),
        ("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(@ids, c.id)", json!(["1", "3"])),
        ("SELECT TOP @n VALUE c.id FROM c", json!(["1"])),
        ("SELECT VALUE c.id FROM c OFFSET @n LIMIT @n", json!(["2"])),
        ("SELECT VALUE @none", json!([])),
        ("SELECT VALUE @n + 1", json!([2])),
    ] {
        let program = program(query, given.clone()).unwrap();
        assert_eq!(json!(page(&program, &list, 100, None).unwrap().0), expected, "{query}");
    }
    let error = program("SELECT TOP @name * FROM c", given).err().unwrap();
    assert!(error.message.contains("must be an integer"), "{error}");
}

#[test]
fn numbers_that_json_cannot_say() {
    let none = json!([]);
    check(
        &none,
        &[
            ("SELECT VALUE IS_FINITE_NUMBER(1 / 0)", json!([false])),
            ("SELECT VALUE 1 / 0 > 5", json!([true])),
            ("SELECT VALUE NaN = NaN", json!([false])),
        ],
    );
    for query in ["SELECT VALUE 1 / 0", "SELECT VALUE [NaN]", "SELECT -Infinity"] {
        let error = all(query, &none).unwrap_err();
        assert!(error.message.contains("not finite"), "{error}");
    }
}

#[test]
fn too_much_is_refused() {
    let long: Vec<usize> = (0..1000).collect();
    let list = json!([{ "a": long }]);
    let error =
        all("SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a", &list)
            .unwrap_err();
    assert!(error.message.contains("too many combinations"), "{error}");
    let text = "x".repeat(10_000);
    let many: Vec<Json> = (0..1000).map(|n| json!({ "t": format!("{text}{n}") })).collect();
    let error = all("SELECT c.t FROM c GROUP BY c.t", &json!(many)).unwrap_err();
    assert!(error.message.contains("too large for one answer"), "{error}");
    let error = all(
        "SELECT VALUE MAKELIST(c) FROM c JOIN x IN (SELECT VALUE [1,2,3,4,5,6,7])",
        &json!(many),
    )
    .unwrap_err();
    assert!(error.message.contains("too much memory"), "{error}");
}

/// What is given as it is, is read as a whole; of all else only what is wanted.
#[test]
fn an_item_is_read_as_far_as_it_is_wanted() {
    const TEXT: &str = r#"{"id":"1","a":{"b":1,"c":[2,3]},"d":4,"e":5}"#;
    let whole = documents(&json!([serde_json::from_str::<Json>(TEXT).unwrap()]));
    let after = |end: &str| TEXT.find(end).unwrap() + end.len();
    for (query, end) in [
        ("SELECT VALUE c.id FROM c", r#""1""#),
        ("SELECT VALUE c.a.b FROM c", "3]}"),
        ("SELECT VALUE c.a.c[0] FROM c", "3]}"),
        ("SELECT VALUE c.a FROM c WHERE c.a.b = 1", "3]}"),
        ("SELECT c.d, c.id FROM c", r#""d":4"#),
        ("SELECT VALUE c.id FROM c WHERE c.e = 5", r#""e":5"#),
        ("SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.f)", "5}"),
        ("SELECT VALUE c[0] ?? 7 FROM c", "{"),
        ("SELECT * FROM c WHERE c.id = '1'", "5}"),
        ("SELECT VALUE c FROM c JOIN x IN c.a.c WHERE x = 3", "5}"),
        ("SELECT c, c.id FROM c", "5}"),
    ] {
        let program = program(query, json!([])).unwrap();
        let read = |text: &str| {
            let document = Document { text: text.to_owned(), number: 0 };
            page(&program, &[document], 10, None).map(|(rows, _)| rows)
        };
        let expected = page(&program, &whole, 10, None).unwrap().0;
        assert_eq!(expected.len(), 1, "{query}");
        let end = after(end);
        assert_eq!(read(TEXT).unwrap(), expected, "{query}");
        assert_eq!(read(&TEXT[..end]).unwrap(), expected, "{query}");
        assert!(read(&TEXT[..end - 1]).is_err(), "{query}");
    }
}

#[test]
fn an_item_that_is_refused_is_not_read_to_its_end() {
    let program = program("SELECT * FROM c WHERE c.id = '2'", json!([])).unwrap();
    let text = r#"{"id":"1","a":"#.to_owned();
    assert!(page(&program, &[Document { text, number: 0 }], 10, None).unwrap().0.is_empty());
}
