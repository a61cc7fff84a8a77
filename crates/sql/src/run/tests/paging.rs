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
}
