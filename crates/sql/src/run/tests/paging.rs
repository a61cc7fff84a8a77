//! However long its pages are, a query has the same rows.

use super::*;

const QUERIES: &[&str] = &[
    "SELECT * FROM c",
    "SELECT VALUE c.a FROM c",
    "SELECT VALUE t FROM c JOIN t IN c.t",
    "SELECT c.a, t FROM c JOIN t IN c.t JOIN u IN c.t WHERE t != u",
    "SELECT TOP 3 * FROM c",
    "SELECT * FROM c OFFSET 2 LIMIT 4",
    "SELECT VALUE t FROM c JOIN t IN c.t OFFSET 1 LIMIT 3",
    "SELECT * FROM c ORDER BY c.a",
    "SELECT VALUE c.b FROM c ORDER BY c.a DESC, c.b",
    "SELECT TOP 3 * FROM c ORDER BY c.b DESC",
    "SELECT * FROM c ORDER BY c.long OFFSET 1 LIMIT 5",
    "SELECT * FROM c ORDER BY c.long DESC",
    "SELECT VALUE t FROM c JOIN t IN c.t ORDER BY c.a",
    "SELECT * FROM c ORDER BY c.t[0]",
    "SELECT VALUE c.b FROM c ORDER BY c.t[1] DESC OFFSET 1 LIMIT 4",
    "SELECT VALUE s.b FROM (SELECT * FROM c WHERE c.b != 1) s ORDER BY s.a DESC",
    "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a",
    "SELECT DISTINCT c.b, c.a FROM c ORDER BY c.a DESC, c.b",
    "SELECT DISTINCT VALUE c.long FROM c ORDER BY c.long OFFSET 1 LIMIT 2",
];

/// Those of which the rows have no order when they do not fit in one page.
const UNORDERED: &[&str] = &[
    "SELECT DISTINCT VALUE c.a FROM c",
    "SELECT DISTINCT c.a, c.b FROM c",
    "SELECT DISTINCT VALUE t FROM c JOIN t IN c.t",
    "SELECT DISTINCT VALUE c.long FROM c",
    "SELECT DISTINCT VALUE c.b FROM c ORDER BY c.a",
    "SELECT DISTINCT VALUE c.b FROM c ORDER BY c.t[0] DESC",
    "SELECT DISTINCT * FROM c",
];

fn scalars() -> impl Strategy<Value = Json> {
    prop_oneof![
        (0..4i32).prop_map(|n| json!(n)),
        Just(json!(null)),
        Just(json!(true)),
        "[ab]{0,2}".prop_map(|text| json!(text)),
        Just(json!([1])),
    ]
}

fn items() -> impl Strategy<Value = Json> {
    let lists = prop::collection::vec(0..5i32, 0..4);
    let long = (0..3usize).prop_map(|n| format!("{}{n}", "l".repeat(600)));
    (prop::option::of(scalars()), scalars(), lists, long).prop_map(|(a, b, t, long)| {
        let mut item = json!({ "b": b, "t": t, "long": long });
        if let Some(a) = a {
            item["a"] = a;
        }
        item
    })
}

proptest! {
    #[test]
    fn pages_make_the_whole(list in prop::collection::vec(items(), 0..9), rows in 1..5usize) {
        let list = documents(&Json::Array(list));
        for query in QUERIES {
            let program = program(query, json!([])).unwrap();
            let whole = page(&program, &list, 10_000, None).unwrap().0;
            let (mut pages, mut next) = page(&program, &list, rows, None).unwrap();
            prop_assert!(pages.len() <= rows);
            while next.is_some() {
                let (more, after) = page(&program, &list, rows, next).unwrap();
                prop_assert!(more.len() <= rows);
                pages.extend(more);
                next = after;
            }
            prop_assert_eq!(&pages, &whole, "{}", query);
        }
    }

    /// Distinct rows keep to the page size, each is there once, and all but the last
    /// page are full; so it is whatever is skipped and taken.
    #[test]
    fn distinct_pages_make_the_whole(
        list in prop::collection::vec(items(), 0..12),
        rows in 1..5usize,
        skip in 0..3usize,
        limit in 0..6usize,
    ) {
        let list = documents(&Json::Array(list));
        for query in UNORDERED {
            let all = program(query, json!([])).unwrap();
            let mut whole = page(&all, &list, 10_000, None).unwrap().0;
            whole.sort_by_key(Json::to_string);
            let part = format!("{query} OFFSET {skip} LIMIT {limit}");
            let some = whole.len().saturating_sub(skip).min(limit);
            for (query, count) in [((*query).to_owned(), whole.len()), (part, some)] {
                let program = program(&query, json!([])).unwrap();
                let (mut pages, mut next) = page(&program, &list, rows, None).unwrap();
                prop_assert!(pages.len() <= rows);
                while next.is_some() {
                    prop_assert_eq!(pages.len() % rows, 0);
                    let (more, after) = page(&program, &list, rows, next).unwrap();
                    prop_assert!(more.len() <= rows);
                    pages.extend(more);
                    next = after;
                }
                pages.sort_by_key(Json::to_string);
                prop_assert_eq!(pages.len(), count, "{}", query);
                prop_assert!(pages.iter().all(|row| whole.contains(row)), "{}", query);
                pages.dedup();
                prop_assert_eq!(pages.len(), count, "{}", query);
            }
        }
    }
}

/// Rows that are sorted by what they are come once if they are there all the time, whatever
/// is written between two pages.
#[test]
fn distinct_rows_survive_writes_between_pages() {
    let list = |values: &[&str]| {
        let long = |value: &&str| json!({ "v": format!("{value}{}", value.repeat(900)) });
        documents(&values.iter().map(long).collect())
    };
    let short = |rows: Vec<Json>| -> Vec<String> {
        rows.iter().map(|row| row.as_str().unwrap()[..1].to_owned()).collect()
    };
    let program = program("SELECT DISTINCT VALUE c.v FROM c ORDER BY c.v", json!([])).unwrap();
    let (rows, next) = page(&program, &list(&["d", "b", "a", "c", "b"]), 2, None).unwrap();
    assert_eq!(short(rows), ["a", "b"]);
    // The first b is gone, and d has moved before everything.
    let (rows, next) = page(&program, &list(&["d", "a", "c", "b"]), 2, next).unwrap();
    assert_eq!((short(rows), next), (vec!["c".to_owned(), "d".to_owned()], None));
}

/// Without an order they come where they stand first, and a page looks no further than it
/// needs to.
#[test]
fn distinct_rows_come_where_they_stand_first() {
    let values = ["d", "b", "d", "a", "b", "c", "a"];
    let list = documents(&values.iter().map(|value| json!({ "v": value })).collect());
    for (query, expected) in [
        ("SELECT DISTINCT VALUE c.v FROM c", vec!["d", "b", "a", "c"]),
        ("SELECT DISTINCT VALUE c.v FROM c OFFSET 1 LIMIT 2", vec!["b", "a"]),
    ] {
        let program = program(query, json!([])).unwrap();
        for rows in 1..5 {
            let (mut found, mut next) = page(&program, &list, rows, None).unwrap();
            while next.is_some() {
                let (more, after) = page(&program, &list, rows, next).unwrap();
                found.extend(more);
                next = after;
            }
            assert_eq!(json!(found), json!(expected), "{query} in pages of {rows}");
        }
    }
}

/// Bytes end a page of distinct rows as rows do; one that is longer stands alone.
#[test]
fn distinct_rows_that_are_long_end_a_page() {
    let row = |n: usize| json!({ "v": format!("{n}{}", "x".repeat(1 << 20)) });
    let list = documents(&(0..9).rev().map(row).collect());
    let program = program("SELECT DISTINCT VALUE c.v FROM c", json!([])).unwrap();
    let mut counts = Vec::new();
    let mut next = None;
    loop {
        let (rows, after) = page(&program, &list, 100, next).unwrap();
        counts.push(rows.len());
        next = after;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(counts, [3, 3, 3]);
}

/// Documents whose sort values are long and start alike, without those of which
/// the number is in `gone`.
fn alike(gone: std::ops::Range<u64>) -> Vec<Document> {
    let text = |n: u64| json!({ "n": n, "s": format!("{}{n:02}", "x".repeat(800)) }).to_string();
    let all = (0..20).map(|number| Document { text: text(number), number });
    all.filter(|document| !gone.contains(&document.number)).collect()
}

#[test]
fn long_values_that_start_alike_are_gone_on_with() {
    let program = program("SELECT VALUE c.n FROM c ORDER BY c.s", json!([])).unwrap();
    for ordered in [false, true] {
        let page = |gone, rows, start| page_of(&program, &alike(gone), rows, start, ordered);
        let (rows, next) = page(0..0, 3, None).unwrap();
        assert_eq!(json!(rows), json!([0, 1, 2]));
        for gone in [0..0, 0..1, 0..2, 1..3] {
            let (rows, _) = page(gone.clone(), 3, next.clone()).unwrap();
            assert_eq!(json!(rows), json!([3, 4, 5]), "{gone:?} {ordered}");
        }
        let (rows, _) = page(1..5, 3, next.clone()).unwrap();
        assert_eq!(json!(rows), json!([5, 6, 7]));
        // Nobody can tell any more which of the others were on the page.
        let error = page(0..3, 3, next.clone()).unwrap_err();
        assert!(error.message.contains("from its start"), "{error}");
        assert_eq!(page(0..20, 3, next).unwrap().0.len(), 0);
        // Of a long page the last rows are enough.
        let (_, next) = page(0..0, 12, None).unwrap();
        let (rows, _) = page(0..11, 3, next).unwrap();
        assert_eq!(json!(rows), json!([12, 13, 14]));
    }
}

/// Only sorted rows have places that values can tell.
#[test]
fn which_queries_start_at_a_boundary() {
    for (query, values, taken) in [
        ("SELECT * FROM c ORDER BY c.a", json!([1]), true),
        ("SELECT * FROM c ORDER BY c.a", json!([[]]), true),
        ("SELECT * FROM c ORDER BY c.a", json!([]), false),
        ("SELECT * FROM c ORDER BY c.a", json!([1, 2]), false),
        ("SELECT * FROM c", json!([]), false),
        ("SELECT * FROM c", json!([1]), false),
        ("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a", json!([1]), false),
        ("SELECT COUNT(1) FROM c", json!([]), false),
        ("SELECT c.a FROM c GROUP BY c.a", json!([]), false),
    ] {
        let body = json!({"query": query, "resumeFilter": {"value": values}});
        let request = Request::read(body.to_string().as_bytes()).unwrap();
        let program = Program::compile(&request, Computed::NONE).unwrap();
        let start = program.start_at(&request.boundary.unwrap());
        assert_eq!(start.is_ok(), taken, "{body}");
    }
}
