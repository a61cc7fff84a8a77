//! What lists and queries cost: pages from all over a container, hits that lie
//! scattered over it, an answer that is read to its end, and a partition.

use std::rc::Rc;
use std::time::Duration;

use super::side::{Pair, Side};
use super::{in_turns, tell};
use crate::Result;
use crate::bench::item::{CONTAINER, DATABASE, partition_key};
use crate::bench::query::data::FEW;
use crate::bench::query::side::body;
use crate::bench::query::words;
use crate::bench::read::{Requests, ask};
use crate::bench::report::{Bar, Report};
use crate::random::Random;
use crate::wire::{Client, Signer, partition};

const ROUNDS: u64 = 5;
/// Where a few hundredths count.
const HITS_ROUNDS: u64 = 11;
const WHOLE_ROUNDS: u64 = 3;
const ROUND: Duration = Duration::from_secs(1);
const CONNECTIONS: usize = 4;

/// How many different requests there are, where each may be another.
const REQUESTS: u64 = 1000;

/// The sizes of pages.
const SMALL: u64 = 100;
const LARGE: u64 = 1000;

/// At most this much of what it was before.
const PAGE_BAR: f64 = 1.5;
const EQUALITY_BAR: f64 = 1.05;
const RANGE_BAR: f64 = 1.3;
const WHOLE_BAR: f64 = 3.0;
/// At most this much of the same in the smaller container.
const FLAT_BAR: f64 = 1.5;

const EVERYTHING: &str = "SELECT * FROM c";

/// A list, or a query, that comes in pages.
#[derive(Clone, Default)]
struct Asked {
    /// The body of a query; a list has none.
    query: Option<String>,
    /// The one partition that is asked, if not all.
    partition: Option<String>,
    limit: u64,
}

/// A page that came.
struct Page {
    count: u64,
    /// Where the next one starts.
    next: Option<String>,
}

impl Asked {
    fn list(limit: u64) -> Asked {
        Asked { limit, ..Asked::default() }
    }

    fn query(text: &str, value: Option<u64>, limit: u64) -> Asked {
        Asked { query: Some(body(text, value)), limit, ..Asked::default() }
    }

    fn of(self, partition: String) -> Asked {
        Asked { partition: Some(partition), ..self }
    }

    fn method(&self) -> &'static str {
        if self.query.is_some() { "POST" } else { "GET" }
    }

    fn headers(&self, place: Option<&str>) -> Vec<(&'static str, String)> {
        let mut headers = vec![("x-ms-max-item-count", self.limit.to_string())];
        if self.query.is_some() {
            headers.push(("content-type", "application/query+json".to_owned()));
        }
        match &self.partition {
            Some(key) => headers.push(partition(key)),
            None => headers.push(("x-ms-documentdb-query-enablecrosspartition", "True".to_owned())),
        }
        headers.extend(place.map(|token| ("x-ms-continuation", token.to_owned())));
        headers
    }

    fn body(&self) -> &str {
        self.query.as_deref().unwrap_or_default()
    }

    /// The whole request for a page.
    fn request(&self, signer: &Signer, place: Option<&str>) -> Vec<u8> {
        let mut request = signer.head(self.method(), &docs());
        for (name, value) in self.headers(place) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let body = self.body();
        request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        request.into_bytes()
    }

    /// Asks for a page.
    fn page(&self, client: &mut Client, place: Option<&str>) -> Result<Page> {
        let answer = client.must(self.method(), &docs(), &self.headers(place), self.body())?;
        let count = answer.header("x-ms-item-count").and_then(|count| count.parse().ok());
        let next = answer.header("x-ms-continuation").map(str::to_owned);
        Ok(Page { count: count.ok_or("an answer without a count")?, next })
    }

    /// Asks for all pages. Returns how many rows there were, and where a full page
    /// starts.
    fn to_the_end(&self, client: &mut Client) -> Result<(u64, Vec<Option<String>>)> {
        let (mut rows, mut places, mut place) = (0, Vec::new(), None);
        loop {
            let page = self.page(client, place.as_deref())?;
            rows += page.count;
            let here = std::mem::replace(&mut place, page.next);
            if page.count == self.limit {
                places.push(here);
            }
            if place.is_none() {
                return Ok((rows, places));
            }
        }
    }
}

fn docs() -> String {
    format!("/dbs/{DATABASE}/colls/{CONTAINER}/docs")
}

pub(super) fn run(few: &Pair, many: &Pair, report: &mut Report) -> Result<()> {
    for limit in [SMALL, LARGE] {
        let name = format!("a list page of {}", words(limit));
        from_all_over(few, many, &name, &Asked::list(limit), report)?;
        let name = format!("{EVERYTHING}, a page of {}", words(limit));
        from_all_over(few, many, &name, &Asked::query(EVERYTHING, None, limit), report)?;
    }
    hits(many, report)?;
    whole(many, report)?;
    of_a_partition(many, report)
}

/// Pages at random places, in both containers: four servers take turns.
fn from_all_over(
    few: &Pair,
    many: &Pair,
    name: &str,
    asked: &Asked,
    report: &mut Report,
) -> Result<()> {
    let ready = |pair: &Pair, side| requests_all_over(side, asked, pair.data.count);
    let ([few_before, few_now], [many_before, many_now]) =
        (few.sides.each_ref(), many.sides.each_ref());
    let sides = [
        (few_before, ready(few, few_before)?),
        (few_now, ready(few, few_now)?),
        (many_before, ready(many, many_before)?),
        (many_now, ready(many, many_now)?),
    ];
    let [few, many] = [few, many].map(|pair| words(pair.data.count));
    let [few_before, few_now, many_before, many_now] =
        costs(&format!("{name}, {few} and {many} items"), ROUNDS, &sides)?;
    for (items, both) in [(&few, [few_before, few_now]), (&many, [many_before, many_now])] {
        let what = format!("{name}, {items} items");
        tell(report, &what, both, "us", Some(Bar::AtMost(PAGE_BAR)));
    }
    let what = format!("{name}, now: from {few} to {many}");
    report.judge(what, many_now / few_now, "", Bar::AtMost(FLAT_BAR));
    Ok(())
}

/// The requests for pages whose places are where large pages start.
fn requests_all_over(side: &Side, asked: &Asked, count: u64) -> Result<Requests> {
    let mut client = side.server.connect()?;
    let large = Asked { limit: LARGE, ..asked.clone() };
    let (rows, places) = large.to_the_end(&mut client)?;
    if rows != count || places.len() as u64 != count / LARGE {
        return Err(format!("{rows} rows of {count}, with {} full pages", places.len()));
    }
    for place in [places.first(), places.last()].into_iter().flatten() {
        expect(&mut client, asked, place.as_deref(), asked.limit)?;
    }
    let signer = Signer::new()?;
    let requests = places.iter().map(|place| asked.request(&signer, place.as_deref()));
    Ok(Rc::new(requests.collect()))
}

/// Sees that a page has so many rows.
fn expect(client: &mut Client, asked: &Asked, place: Option<&str>, rows: u64) -> Result<()> {
    let count = asked.page(client, place)?.count;
    let what = asked.query.as_deref().unwrap_or("a list");
    if count == rows { Ok(()) } else { Err(format!("{what}: {count} rows and not {rows}")) }
}

/// The CPU of a request on both sides, in microseconds. `make` makes those of a side.
fn cost(
    pair: &Pair,
    what: &str,
    rounds: u64,
    mut make: impl FnMut(&Side) -> Result<Requests>,
) -> Result<[f64; 2]> {
    let [before, now] = &pair.sides;
    costs(what, rounds, &[(before, make(before)?), (now, make(now)?)])
}

/// The same on any sides, each with its requests.
fn costs<const N: usize>(
    what: &str,
    rounds: u64,
    sides: &[(&Side, Requests); N],
) -> Result<[f64; N]> {
    in_turns(what, rounds, sides, |(side, requests), round| {
        ask(&side.server, CONNECTIONS, requests, ROUND, round).map(|(cpu, _)| cpu)
    })
}

/// The requests for things that `make` chooses at random, each with so many rows.
fn random_requests(
    side: &Side,
    rows: u64,
    make: impl Fn(&mut Random) -> Asked,
) -> Result<Requests> {
    let (mut client, signer) = (side.server.connect()?, Signer::new()?);
    let mut random = Random::new(9);
    let mut requests = Vec::new();
    for _ in 0..REQUESTS {
        let asked = make(&mut random);
        if requests.is_empty() {
            expect(&mut client, &asked, None, rows)?;
        }
        requests.push(asked.request(&signer, None));
    }
    Ok(Rc::new(requests))
}

/// A hundred hits of an equality and of a range.
fn hits(pair: &Pair, report: &mut Report) -> Result<()> {
    let (data, many) = (&pair.data, words(pair.data.count));
    let equal = |random: &mut Random| {
        let value = random.below(data.values());
        Asked::query("SELECT * FROM c WHERE c.x = @v", Some(value), LARGE)
    };
    let what = format!("an equality with {FEW} hits, {many} items");
    let costs = cost(pair, &what, HITS_ROUNDS, |side| random_requests(side, FEW, equal))?;
    tell(report, &what, costs, "us", Some(Bar::AtMost(EQUALITY_BAR)));
    let between = |random: &mut Random| {
        let start = random.below(data.count - FEW);
        let end = start + FEW;
        let text = format!("SELECT * FROM c WHERE c.rank >= {start} AND c.rank < {end}");
        Asked::query(&text, None, LARGE)
    };
    let what = format!("a range with {FEW} hits, {many} items");
    let costs = cost(pair, &what, HITS_ROUNDS, |side| random_requests(side, FEW, between))?;
    tell(report, &what, costs, "us", Some(Bar::AtMost(RANGE_BAR)));
    Ok(())
}

/// A tenth of all items by a range, in small pages to the end.
fn whole(pair: &Pair, report: &mut Report) -> Result<()> {
    let tenth = pair.data.count / 10;
    let asked = Asked::query(&format!("SELECT * FROM c WHERE c.rank < {tenth}"), None, SMALL);
    let (hits, many) = (words(tenth), words(pair.data.count));
    let what = format!("a range with {hits} hits of {many}, all pages of {SMALL}");
    let costs = in_turns(&what, WHOLE_ROUNDS, &pair.sides, |side, _| {
        let mut client = side.server.connect()?;
        let before = side.server.cpu()?;
        let (rows, _) = asked.to_the_end(&mut client)?;
        let used = side.server.cpu_since(before)?;
        if rows == tenth { Ok(used.as_secs_f64() * 1e3) } else { Err(format!("{rows} rows")) }
    })?;
    tell(report, &what, costs, "ms", Some(Bar::AtMost(WHOLE_BAR)));
    Ok(())
}

/// All items of a partition, and how many they are.
fn of_a_partition(pair: &Pair, report: &mut Report) -> Result<()> {
    let rows =
        (0..pair.data.count).filter(|n| partition_key(*n) == partition_key(0)).count() as u64;
    let any = |random: &mut Random| partition_key(random.below(pair.data.count));
    let name = format!("a partition of {}, {} items", words(rows), words(pair.data.count));
    let what = format!("a list of {name}");
    let list = |random: &mut Random| Asked::list(LARGE).of(any(random));
    let costs = cost(pair, &what, ROUNDS, |side| random_requests(side, rows, list))?;
    tell(report, &what, costs, "us", None);
    let what = format!("COUNT in {name}");
    let text = "SELECT VALUE COUNT(1) FROM c";
    let count = |random: &mut Random| Asked::query(text, None, LARGE).of(any(random));
    let costs = cost(pair, &what, ROUNDS, |side| random_requests(side, 1, count))?;
    tell(report, &what, costs, "us", None);
    Ok(())
}
