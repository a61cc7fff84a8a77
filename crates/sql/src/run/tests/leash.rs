//! A query ends where its leash does, whatever it is at.

use std::cell::Cell;

use dayfly_model::ErrorKind;

use super::*;

/// A leash that ends after so many steps, and remembers how often it was looked at.
struct Short {
    steps: u64,
    looks: Cell<u64>,
}

impl Leash for Short {
    fn go_on(&self, steps: u64) -> dayfly_model::Result<()> {
        self.looks.set(self.looks.get() + 1);
        if steps <= self.steps {
            return Ok(());
        }
        Err(Error::new(ErrorKind::RequestTimeout, "enough"))
    }
}

/// How a query over one document ends, how many steps it made, and how many looks.
fn run_on(leash: &Short, query: &str, document: &Json) -> (Result<usize, Error>, u64) {
    let program = program(query, json!([])).unwrap();
    let steps = Steps::new(leash);
    let limits = Limits { rows: 1000, bytes: 4 << 20 };
    let mut page = QueryPage::new(&program, Timestamp(1000), false, limits, None, false, &steps);
    let document = Document { text: document.to_string(), number: 0 };
    let outcome = page.add(&document, (0, 0)).and_then(|_| page.finish());
    (outcome.map(|finished| finished.count), steps.made())
}

/// Arrays so long that each of these queries would make millions of steps.
fn long() -> Json {
    let list: Vec<u32> = (0..300).collect();
    let names: Vec<String> =
        list.iter().map(|number| format!("{number}{}", "x".repeat(50))).collect();
    let text = "x".repeat(100_000);
    let (other, shorter) = (format!("{text}y"), "x".repeat(16_000));
    json!({"id": "1", "a": list, "s": names, "t": text, "u": other, "h": shorter, "p": "x%xxxy"})
}

/// How far a query may go on after the end of its leash: to the next look, and by
/// what one value weighs.
const BEYOND: u64 = LOOK_EVERY + 2_000;

#[test]
fn a_query_ends_where_its_leash_does_wherever_it_is() {
    let queries = [
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a",
        "SELECT VALUE 1 FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a WHERE x + y + z < 0",
        "SELECT x, COUNT(1) FROM c JOIN x IN c.s JOIN y IN c.s JOIN z IN c.a GROUP BY x, y",
        "SELECT DISTINCT VALUE x || y FROM c JOIN x IN c.s JOIN y IN c.s JOIN z IN c.a",
        "SELECT VALUE x FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a ORDER BY c.id",
        "SELECT VALUE ARRAY(SELECT VALUE x FROM x IN c.a JOIN y IN c.a JOIN z IN c.a) FROM c",
        "SELECT * FROM c WHERE EXISTS(SELECT 1 FROM x IN c.a JOIN y IN c.a JOIN z IN c.a WHERE x < 0)",
        "SELECT VALUE m FROM c JOIN (SELECT VALUE MAX(x + y) FROM x IN c.a JOIN y IN c.a JOIN z IN c.a) m",
        "SELECT COUNT(1) FROM (SELECT DISTINCT VALUE x + y * 300 FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a) s",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a WHERE REGEXMATCH(c.t, 'y')",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a WHERE CONTAINS(c.t, 'y')",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a WHERE ARRAY_CONTAINS(c.a, -1)",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a WHERE x IN (y + 1, y + 2, y + 3, y + 4, y + 5)",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a WHERE c.t IN (c.u, c.u) AND x < 0",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a WHERE c.h LIKE '%y' AND x < 0",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a WHERE c.h NOT LIKE c.p AND x < 0",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a WHERE c.a = c.s OR c.s = c.a",
    ];
    for query in queries {
        let leash = Short { steps: 50_000, looks: Cell::new(0) };
        let (outcome, made) = run_on(&leash, query, &long());
        assert_eq!(outcome.map_err(|error| error.kind), Err(ErrorKind::RequestTimeout), "{query}");
        assert!((50_000..50_000 + BEYOND).contains(&made), "{query}: {made}");
        assert!((20..=50).contains(&leash.looks.get()), "{query}: {}", leash.looks.get());
    }
}

/// Shapes are compared edge by edge, which is told before it is done.
#[test]
fn shapes_with_many_edges_are_many_steps() {
    let ring: Vec<[f64; 2]> = (0..=400)
        .map(|place| (f64::from(place % 400) / 400.0 * std::f64::consts::TAU).sin_cos())
        .map(|(x, y)| [x, y])
        .collect();
    let document = json!({"id": "1", "p": {"type": "Polygon", "coordinates": [ring]}});
    let leash = Short { steps: u64::MAX, looks: Cell::new(0) };
    let (outcome, made) = run_on(&leash, "SELECT VALUE ST_INTERSECTS(c.p, c.p) FROM c", &document);
    assert_eq!(outcome.unwrap(), 1);
    assert!(made > 100_000, "{made}");
}

/// A small query does not come to its first look.
#[test]
fn a_small_query_is_quick() {
    let leash = Short { steps: 0, looks: Cell::new(0) };
    let document = json!({"id": "1", "a": [1, 2, 3], "b": {"d": "x"}});
    let query =
        "SELECT c.id, ARRAY_LENGTH(c.a) AS n FROM c JOIN x IN c.a WHERE c.b.d = 'x' AND x > 1";
    let (outcome, made) = run_on(&leash, query, &document);
    assert_eq!((outcome.unwrap(), leash.looks.get()), (2, 0));
    assert!(made < 50, "{made}");
}
