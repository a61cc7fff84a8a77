//! The queries that find their items by the index, in containers of three numbers.
//!
//! In a round each asks for the same number of items on all sides, and for the
//! same ones again and again: so all sides have them in their caches, and what
//! is left of the difference is that of the containers. How it is when they are
//! not in the cache is measured beside that, with values from all over a
//! container.

use super::data::{Data, FEW, MANY};
use super::side::{Side, body, query, read};
use super::words;
use crate::Result;
use crate::bench::median;
use crate::bench::report::{Bar, Report};
use crate::random::Random;

const ROUNDS: u64 = 5;

/// How many values of `x` are asked for in turns: all that the smallest has.
const VALUES: u64 = 10;

const HITS: &str = "SELECT * FROM c WHERE c.x = @v";

/// At most this much of as many point reads.
const READS_BAR: f64 = 3.0;
/// At most this much of the same in a container with a tenth of the items.
const TENTH_BAR: f64 = 1.5;
/// And in one with a thousandth.
const THOUSANDTH_BAR: f64 = 3.0;

/// A query, and what it has to answer.
struct Shape {
    name: &'static str,
    text: &'static str,
    /// How many items it needs.
    items: u64,
    /// The parameter goes from 0 to before this.
    values: Option<u64>,
    rows: usize,
    /// What stands in the answer.
    shows: fn(&Data) -> String,
}

const SHAPES: [Shape; 7] = [
    Shape {
        name: "TOP 10, ORDER BY",
        text: "SELECT TOP 10 * FROM c ORDER BY c.rank",
        items: 10,
        values: None,
        rows: 10,
        shows: |_| "\"rank\":9,".to_owned(),
    },
    Shape {
        name: "TOP 10, ORDER BY, descending",
        text: "SELECT TOP 10 * FROM c ORDER BY c.rank DESC",
        items: 10,
        values: None,
        rows: 10,
        shows: |data| format!("\"rank\":{},", data.count - 10),
    },
    Shape {
        name: "the newest 10, by _ts",
        text: "SELECT TOP 10 * FROM c ORDER BY c._ts DESC",
        items: 10,
        values: None,
        rows: 10,
        shows: |data| format!("\"n\":{},", data.count - 10),
    },
    Shape {
        name: "COUNT of 100 hits",
        text: "SELECT VALUE COUNT(1) FROM c WHERE c.x = @v",
        items: FEW,
        values: Some(VALUES),
        rows: 1,
        shows: |_| format!("[{FEW}]"),
    },
    Shape {
        name: "COUNT of 10 thousand hits",
        text: "SELECT VALUE COUNT(1) FROM c WHERE c.y = @v",
        items: MANY,
        values: Some(1),
        rows: 1,
        shows: |_| format!("[{MANY}]"),
    },
    Shape {
        name: "MIN",
        text: "SELECT VALUE MIN(c.rank) FROM c",
        items: 1,
        values: None,
        rows: 1,
        shows: |_| "[0]".to_owned(),
    },
    Shape {
        name: "MAX",
        text: "SELECT VALUE MAX(c.rank) FROM c",
        items: 1,
        values: None,
        rows: 1,
        shows: |data| format!("[{}]", data.count - 1),
    },
];

impl Shape {
    fn body(&self, times: u64) -> String {
        body(self.text, self.values.map(|values| times % values))
    }

    /// Whether a container has what it needs.
    fn fits(&self, side: &Side) -> bool {
        self.items <= side.data.count
    }

    /// Sees that the answer is right, which also fills the caches.
    fn check(&self, side: &Side) -> Result<()> {
        for times in 0..self.values.unwrap_or(1) {
            let answered = side.ask_all(&self.body(times))?;
            let (told, shown) = (String::from_utf8_lossy(&answered.body), (self.shows)(&side.data));
            if answered.rows != self.rows || !told.contains(&shown) {
                let told: String = told.chars().take(300).collect();
                return Err(format!("{}: {shown} is not in {told}", self.text));
            }
        }
        Ok(())
    }
}

/// Measures queries by value, against point reads of the same items.
pub(super) fn hits(sides: &[Side; 3], report: &mut Report) -> Result<()> {
    let mut reads: [Vec<f64>; 3] = Default::default();
    let mut queries: [Vec<f64>; 3] = Default::default();
    for side in sides {
        check_hits(side)?;
    }
    for round in 1..=ROUNDS {
        for ((side, reads), queries) in sides.iter().zip(&mut reads).zip(&mut queries) {
            let read = side.cost(|times| side.data.hits(times % VALUES).map(read).collect())?;
            let asked = side.cost(|times| vec![query(&body(HITS, Some(times % VALUES)), None)])?;
            println!(
                "query, round {round}, {} items: 100 reads {read:.0} us, 100 hits {asked:.0} us",
                words(side.data.count)
            );
            reads.push(read);
            queries.push(asked);
        }
    }
    let (reads, queries) = (reads.map(median), queries.map(median));
    for ((side, read), asked) in sides.iter().zip(reads).zip(queries) {
        let many = words(side.data.count);
        report.note(format!("100 point reads, {many} items"), format!("{read:.0} us"));
        report.note(format!("{HITS}, 100 hits, {many} items"), format!("{asked:.0} us"));
        let what = format!("100 hits: in 100 point reads, {many} items");
        report.judge(what, asked / read, "", Bar::AtMost(READS_BAR));
    }
    let [_, tenth, whole] = queries;
    let what = format!("100 hits: {}", from_to(sides.iter().skip(1)));
    report.judge(what, whole / tenth, "", Bar::AtMost(TENTH_BAR));
    Ok(())
}

/// The same with values from all over the container, each of which is asked for
/// once: most items are in no cache of ours.
pub(super) fn cold_hits(side: &Side, report: &mut Report) -> Result<()> {
    let (mut reads, mut queries) = (Vec::new(), Vec::new());
    let mut random = Random::new(5);
    for round in 1..=ROUNDS {
        let mut any = || random.below(side.data.values());
        let read = side.cost(|_| side.data.hits(any()).map(read).collect())?;
        let asked = side.cost(|_| vec![query(&body(HITS, Some(any())), None)])?;
        println!("query, round {round}, from all over: reads {read:.0} us, hits {asked:.0} us");
        reads.push(read);
        queries.push(asked);
    }
    let (read, asked, many) = (median(reads), median(queries), words(side.data.count));
    report.note(format!("100 point reads, from all over {many} items"), format!("{read:.0} us"));
    report.note(format!("100 hits, from all over {many} items"), format!("{asked:.0} us"));
    let what = "100 hits from all over: in 100 point reads";
    report.judge(what, asked / read, "", Bar::AtMost(READS_BAR));
    Ok(())
}

fn check_hits(side: &Side) -> Result<()> {
    for value in 0..VALUES {
        for operation in side.data.hits(value).map(read) {
            side.ask(operation)?;
        }
        let rows = side.ask_all(&body(HITS, Some(value)))?.rows;
        if rows as u64 != FEW {
            return Err(format!("{HITS} answered {rows} rows and not {FEW}"));
        }
    }
    Ok(())
}

/// Measures what should cost the same in every container.
pub(super) fn flat(sides: &[Side; 3], report: &mut Report) -> Result<()> {
    for shape in &SHAPES {
        for side in sides.iter().filter(|side| shape.fits(side)) {
            shape.check(side)?;
        }
        let mut costs: [Vec<f64>; 3] = Default::default();
        for round in 1..=ROUNDS {
            for (side, costs) in sides.iter().zip(&mut costs).filter(|(side, _)| shape.fits(side)) {
                let cost = side.cost(|times| vec![query(&shape.body(times), None)])?;
                let (name, many) = (shape.name, words(side.data.count));
                println!("query, round {round}, {many} items: {name} {cost:.0} us");
                costs.push(cost);
            }
        }
        tell(shape, sides, costs.map(median), report);
    }
    Ok(())
}

fn tell(shape: &Shape, sides: &[Side; 3], costs: [f64; 3], report: &mut Report) {
    let name = shape.name;
    for (side, cost) in sides.iter().zip(costs).filter(|(side, _)| shape.fits(side)) {
        let many = words(side.data.count);
        report.note(format!("{name}, {many} items"), format!("{cost:.0} us"));
    }
    let [thousandth, tenth, whole] = costs;
    if !thousandth.is_nan() {
        let what = format!("{name}: {}", from_to(sides.iter().step_by(2)));
        report.judge(what, whole / thousandth, "", Bar::AtMost(THOUSANDTH_BAR));
    }
    let what = format!("{name}: {}", from_to(sides.iter().skip(1)));
    report.judge(what, whole / tenth, "", Bar::AtMost(TENTH_BAR));
}

fn from_to<'s>(sides: impl Iterator<Item = &'s Side>) -> String {
    let numbers: Vec<String> = sides.map(|side| words(side.data.count)).collect();
    format!("from {}", numbers.join(" to "))
}
