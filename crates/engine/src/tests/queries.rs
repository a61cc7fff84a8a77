//! Random queries, answered three times: with an index, without one, and by an
//! evaluator that is too simple to be wrong in the same way.
//!
//! A world has two containers with the same items of all kinds, some of them
//! expired, some purged, while the policy of the first one changes now and then.
//! Some properties are computed, and not always in the same way. The containers of some
//! worlds have hierarchical partition keys: then requests name keys or the begin of one,
//! and filters any of their parts.
//! Queries are asked in one page and in many; rows must be the same, and in the
//! same order where there is one. In some worlds a page ends after nearly no work.
//! Some are asked of each part of a container by
//! itself, and what a client makes of the parts must be the whole. Some are asked
//! while items are written between their pages: then what nobody touched must come
//! exactly once.
//!
//! A failure prints its seed. `cargo xtask queries --count N --seed S` asks as
//! many as you like, from any seed on.

mod defined;
mod division;
mod documents;
mod forged;
mod merge;
mod naive;
mod named;
mod partition;
mod parts;
mod stayed;
mod texts;
mod times;
mod ways;
mod world;

use dayfly_model::value::{Value, order};
use dayfly_sql::Request;
use serde_json::Value as Json;
use std::collections::BTreeMap;

use self::merge::{Merge, Sorted};
use self::naive::{Answer, Document};
use self::parts::Piece;
use self::stayed::Stayed;
use self::world::{SIDES, World};
use super::random::Random;
use super::seeds::{Outcome, Seeds};

/// How many queries a world is asked.
const QUERIES: u64 = 25;

/// How many of these are asked while items are written between their pages.
const MOVING: u64 = 5;

/// How many of them are asked of parts.
const PARTED: u64 = 5;

/// A page that gives all there is.
const WHOLE: usize = 1000;

/// About how many pages a query is asked in, at most.
const PAGES: usize = 12;

/// After so many pages nothing is written between them any more: in the order of `_ts`
/// each write is ahead, and a query need not come to its end while there are some.
const MOVED_PAGES: usize = 100;

/// How many queries are told of in one line of progress.
const PROGRESS: u64 = 10_000;

#[test]
fn an_index_changes_no_answer() {
    let seeds = Seeds {
        count: "DAYFLY_QUERIES",
        usual: 300,
        first: "DAYFLY_QUERIES_SEED",
        each: QUERIES,
        what: "queries",
        progress: PROGRESS,
    };
    if let Some((seed, why)) = seeds.play(play) {
        panic!("{why}\nThe world: cargo xtask queries --count 1 --seed {seed}");
    }
}

fn play(seed: u64) -> Outcome {
    let mut random = Random(seed);
    let mut world = World::new(&mut random);
    for _ in 0..random.pick(&[10, 40, 80, 120]) {
        world.write(&mut random);
    }
    for number in 0..QUERIES {
        for _ in 0..random.below(8) {
            world.step(&mut random);
        }
        if random.chance(10) {
            world.redefine(&mut random);
        }
        if number < QUERIES - MOVING - PARTED {
            ask(&world, &mut random)?;
            list(&world, &mut random)?;
        } else if number < QUERIES - MOVING {
            ask_parts(&world, &mut random)?;
        } else {
            ask_while_moving(&mut world, &mut random)?;
            list_while_moving(&mut world, &mut random)?;
        }
    }
    ask_distinct_while_moving(&mut world, &mut random)?;
    world.check();
    Ok(())
}

/// Asks a query of both containers, in one page and in many.
fn ask(world: &World, random: &mut Random) -> Outcome {
    let query = texts::query(random, world);
    let piece = random.piece(&world.layout);
    let size = 1 + usize::try_from(random.below(20)).unwrap();
    for (side, name) in SIDES.into_iter().enumerate() {
        let failed = |what: &str, why: String| {
            format!("{name}, {what}: {why}\n{query}\n{piece:?}\n{}", told(world))
        };
        let request = Request::read(query.to_string().as_bytes())
            .map_err(|error| failed("refused", error.to_string()))?;
        let answer = naive::answer(&request, &world.documents(side, &piece));
        let size = size.max(answer.rows.len() / PAGES);
        for (what, size) in [("one page", WHOLE), ("pages", size)] {
            let rows = all_pages(world, side, &query, &piece, size);
            let is_sorted = request.query.order_by.is_some();
            let outcome = rows.and_then(|rows| match size {
                WHOLE => compare(&answer, &rows),
                _ if request.query.distinct && is_sorted => compare_distinct(&answer, &rows),
                _ => compare(&answer, &rows),
            });
            outcome.map_err(|why| failed(&format!("{what} of {size}"), why))?;
        }
    }
    Ok(())
}

/// Lists a piece of a container, in pages.
fn list(world: &World, random: &mut Random) -> Outcome {
    let piece = random.piece(&world.layout);
    let limit = 1 + usize::try_from(random.below(20)).unwrap();
    let expected: Vec<Value> =
        world.documents(0, &piece).into_iter().map(|document| document.value).collect();
    let (mut listed, mut continuation) = (Vec::new(), None);
    for _ in 0..10_000 {
        let (page, next) = world.list(0, &piece, limit, continuation)?;
        listed.extend(page);
        continuation = next;
        if continuation.is_none() {
            let is_same = listed == expected;
            let why = || format!("a list of {piece:?} in pages of {limit}: {listed:?}");
            return if is_same { Ok(()) } else { Err(why()) };
        }
    }
    Err(format!("a list of {piece:?} does not end"))
}

/// The definition of the first side, for a person.
fn told(world: &World) -> String {
    let paths = world.layout.division.paths;
    format!("key {paths:?}\npolicy {}\ncomputed {:?}", world.policy, world.defined)
}

/// Asks a query of each part of both containers, as a plan says.
fn ask_parts(world: &World, random: &mut Random) -> Outcome {
    let query = texts::query(random, world);
    let mut parts = random.parts(&world.layout);
    // What parts that are no ranges make a list of stands in another order.
    if query["query"].as_str().unwrap().contains("MAKE") {
        parts = world.layout.as_parts();
    }
    let narrows = world.layout.division.is_deep() && random.chance(60);
    let size = 1 + usize::try_from(random.below(40)).unwrap();
    for (side, name) in SIDES.into_iter().enumerate() {
        let failed =
            |why: String| format!("{name}, in parts: {why}\n{query}\n{parts:?}\n{}", told(world));
        let request = Request::read(query.to_string().as_bytes())
            .map_err(|error| failed(error.to_string()))?;
        let answer = naive::answer(&request, &world.documents(side, &Piece::default()));
        let plan = world.plan(side, &query).map_err(failed)?;
        let parts = if narrows { world.layout.led(&parts, &plan) } else { parts.clone() };
        let merge = Merge::new(&plan);
        let sent = merge.sent(&query);
        let of_parts = |sent: &Json| -> Result<Vec<Vec<Value>>, String> {
            parts.iter().map(|part| all_pages(world, side, sent, part, size)).collect()
        };
        let told = |why: String, sent: &Json| failed(format!("{why}\nsent {sent}"));
        let rows = of_parts(&sent).map_err(|why| told(why, &sent))?;
        // A client that goes on has the sort values of the last row it saw.
        let last = random.any(&rows.iter().flatten().collect::<Vec<_>>()).cloned();
        let are_ranges = parts.iter().all(|part| part.range.is_some());
        let outcome = merge.rows(rows).and_then(|rows| {
            if are_ranges && !merge.is_sorted() {
                return compare(&answer, &rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>());
            }
            compare_merged(&answer, rows, &merge)
        });
        outcome.map_err(|why| told(why, &sent))?;
        let exclude = random.chance(50);
        let Some(last) = last.filter(|_| merge.can_go_on()) else { continue };
        let Some(sent) = merge.sent_from(&query, &last, exclude) else { continue };
        let answer = answer.from(&merge.keys(&last), exclude);
        let rows = of_parts(&sent).and_then(|parts| merge.rows(parts));
        let outcome = rows.and_then(|rows| compare_merged(&answer, rows, &merge));
        outcome.map_err(|why| told(why, &sent))?;
    }
    Ok(())
}

/// Rows of several parts with equal sort values may change places, and so may all if
/// parts are no ranges.
fn compare_merged(answer: &Answer, rows: Vec<Sorted>, merge: &Merge<'_>) -> Outcome {
    let (keys, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    if merge.is_sorted() {
        let expected = answer.keys.iter().skip(answer.skip);
        if let Some(place) = expected.zip(&keys).position(|(left, right)| left != right) {
            return Err(format!("row {place}, {}, is out of order", shown(&rows[place])));
        }
    }
    compare_sets(answer, &rows)
}

/// Distinct rows of several pages that are sorted alike may stand in any order.
fn compare_distinct(answer: &Answer, rows: &[Value]) -> Outcome {
    let places: BTreeMap<_, _> = answer.rows.iter().map(order::key).zip(&answer.keys).collect();
    let found = rows.iter().map(|row| places.get(&order::key(row)).copied());
    let expected = answer.keys.iter().skip(answer.skip).map(Some);
    if let Some(place) = expected.zip(found).position(|(left, right)| left != right) {
        return Err(format!("row {place}, {}, is out of order", shown(&rows[place])));
    }
    compare_sets(answer, rows)
}

fn all_pages(
    world: &World,
    side: usize,
    query: &Json,
    piece: &Piece,
    limit: usize,
) -> Result<Vec<Value>, String> {
    let mut rows = Vec::new();
    let mut continuation = None;
    for _ in 0..10_000 {
        let (page, next) = world.page(side, query, piece, limit, continuation)?;
        if next.is_some() && page.len() > limit {
            return Err(format!("a page of {} rows", page.len()));
        }
        rows.extend(page);
        continuation = next;
        if continuation.is_none() {
            return Ok(rows);
        }
    }
    Err("it does not end".to_owned())
}

/// The rows are those of the answer, in its order.
fn compare(answer: &Answer, rows: &[Value]) -> Outcome {
    let expected = answer.expected();
    let differs = expected.clone().zip(rows).position(|(left, right)| left != right);
    if let Some(place) = differs {
        let wanted = expected.clone().nth(place);
        return Err(format!("row {place} is {}, not {}", shown(&rows[place]), text(wanted)));
    }
    compare_counts(answer, rows)
}

/// The rows are those of the answer, in any order.
fn compare_sets(answer: &Answer, rows: &[Value]) -> Outcome {
    let mut left = counted(answer.rows.iter());
    for row in rows {
        match left.get_mut(&order::key(row)) {
            Some(count) if *count > 0 => *count -= 1,
            _ => return Err(format!("{} of {} is too much", shown(row), rows.len())),
        }
    }
    let count = answer.expected().count();
    if count == answer.rows.len() {
        let missing = answer.rows.iter().find(|row| left[&order::key(row)] > 0);
        if missing.is_some() {
            return Err(format!("{} of {count} is missing", text(missing)));
        }
    }
    compare_counts(answer, rows)
}

fn compare_counts(answer: &Answer, rows: &[Value]) -> Outcome {
    let count = answer.expected().count();
    if rows.len() == count { Ok(()) } else { Err(format!("{} rows, not {count}", rows.len())) }
}

fn counted<'v>(rows: impl Iterator<Item = &'v Value>) -> BTreeMap<Vec<u8>, usize> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(order::key(row)).or_default() += 1;
    }
    counts
}

fn text(row: Option<&Value>) -> String {
    row.map_or("nothing".to_owned(), shown)
}

fn shown(row: &Value) -> String {
    let mut text = Vec::new();
    row.write(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Asks a query page by page, and lets things happen between the pages.
fn ask_while_moving(world: &mut World, random: &mut Random) -> Outcome {
    let query = texts::places(random, world);
    let (mut piece, side) = (random.piece(&world.layout), usize::from(random.chance(30)));
    let by_points = world.layout.without_range(&piece);
    let definition = told(world);
    let failed = |why: String| {
        let name = SIDES[side];
        format!("{name}, while items are written: {why}\n{query}\n{by_points:?}\n{definition}")
    };
    let request =
        Request::read(query.to_string().as_bytes()).map_err(|error| failed(error.to_string()))?;
    let mut stayed = Stayed::new(world, side, &by_points, Some(&request));
    let expected = naive::answer(&request, &world.documents(side, &piece)).rows;
    let limit = 1 + usize::try_from(random.below(15)).unwrap().max(expected.len() / PAGES);
    let mut moved = false;
    let mut rows = Vec::new();
    let mut continuation = None;
    for number in 0.. {
        let limit = limit + usize::try_from(random.below(8)).unwrap();
        let (page, next) = match world.page(side, &query, &piece, limit, continuation) {
            Err(why) if moved && must_start_again(&why) => return Ok(()),
            page => page.map_err(&failed)?,
        };
        rows.extend(page);
        continuation = next;
        if continuation.is_none() {
            break;
        }
        if number >= MOVED_PAGES {
            continue;
        }
        for _ in 0..random.below(6) {
            world.step(random);
            stayed.look(world);
            moved = true;
        }
        if !world.layout.has_range(&piece) {
            piece = by_points.clone();
        }
        // The page may have ended within the item of its last row.
        if random.chance(30)
            && let Some(row) = rows.last()
        {
            let [key, id] = [0, 1].map(|place| row.element(place).as_str().unwrap());
            world.disturb(key, id, random);
            stayed.look(world);
            moved = true;
        }
    }
    compare_stayed(&expected, &rows, |row| stayed.has(row.element(0), row.element(1)))
        .map_err(failed)
}

/// Lists a piece of a container page by page, and lets things happen between the pages.
fn list_while_moving(world: &mut World, random: &mut Random) -> Outcome {
    let mut piece = random.piece(&world.layout);
    let by_points = world.layout.without_range(&piece);
    let mut stayed = Stayed::new(world, 0, &by_points, None);
    let documents = world.documents(0, &piece).into_iter();
    let expected: Vec<Value> = documents.map(|document| document.value).collect();
    let limit = 1 + expected.len() / PAGES;
    let (mut listed, mut continuation) = (Vec::new(), None);
    for number in 0.. {
        let (page, next) = world.list(0, &piece, limit, continuation)?;
        listed.extend(page);
        continuation = next;
        if continuation.is_none() {
            break;
        }
        for _ in 0..if number < MOVED_PAGES { random.below(6) } else { 0 } {
            world.step(random);
            stayed.look(world);
        }
        if !world.layout.has_range(&piece) {
            piece = by_points.clone();
        }
        // A page may begin behind an item that is gone, or written again.
        if random.chance(30)
            && let Some(item) = listed.last()
        {
            let [key, id] = [division::AT, "id"].map(|name| item.property(name).as_str().unwrap());
            world.disturb(key, id, random);
            stayed.look(world);
        }
    }
    let failed = |why| format!("a list while items are written: {why}\n{by_points:?}");
    let place = |item: &Value| [division::AT, "id"].map(|name| item.property(name).clone());
    let untouched = |item: &Value| {
        let [key, id] = place(item);
        stayed.is_untouched(&key, &id)
    };
    compare_stayed(&expected, &listed, untouched).map_err(failed)?;
    // Of one that was written again, some version came in its place.
    let places = |items: &[Value]| -> Vec<Value> {
        items.iter().map(|item| Value::Array(place(item).into())).collect()
    };
    let has_stayed = |place: &Value| stayed.has(place.element(0), place.element(1));
    compare_stayed(&places(&expected), &places(&listed), has_stayed).map_err(failed)
}

/// What stayed came exactly once, in its order.
fn compare_stayed(expected: &[Value], rows: &[Value], stayed: impl Fn(&Value) -> bool) -> Outcome {
    let answer = Answer {
        rows: expected.iter().filter(|row| stayed(row)).cloned().collect(),
        keys: Vec::new(),
        skip: 0,
        take: None,
    };
    let rows: Vec<Value> = rows.iter().filter(|row| stayed(row)).cloned().collect();
    compare(&answer, &rows).map_err(|why| format!("of what stayed, {why}"))
}

/// Asks for distinct rows page by page, and lets things happen between the pages. One
/// whose item is changed or goes may come again, but none may be lost whose item stays.
fn ask_distinct_while_moving(world: &mut World, random: &mut Random) -> Outcome {
    let query = texts::distinct(random, world);
    let (mut piece, side) = (random.piece(&world.layout), usize::from(random.chance(30)));
    let by_points = world.layout.without_range(&piece);
    let request = Request::read(query.to_string().as_bytes()).map_err(|why| why.to_string())?;
    let alive = |world: &World| -> Vec<_> {
        let alive = world.alive(side, &by_points).into_iter();
        alive.map(|(place, written)| (place.clone(), written.number)).collect()
    };
    let before = alive(world);
    let documents = world.documents(side, &piece);
    let limit = 1 + documents.len() / PAGES + usize::try_from(random.below(4)).unwrap();
    let (mut rows, mut continuation) = (Vec::new(), None);
    for number in 0.. {
        let (page, next) = world.page(side, &query, &piece, limit, continuation)?;
        rows.extend(page);
        continuation = next;
        if continuation.is_none() {
            break;
        }
        for _ in 0..if number < MOVED_PAGES { random.below(6) } else { 0 } {
            world.step(random);
        }
        if !world.layout.has_range(&piece) {
            piece = by_points.clone();
        }
    }
    let after = alive(world);
    let stayed = before.iter().zip(documents).filter(|(place, _)| after.contains(place));
    let stayed: Vec<Document> = stayed.map(|(_, document)| document).collect();
    let given = counted(rows.iter());
    let lost = naive::answer(&request, &stayed).rows;
    match lost.iter().find(|row| !given.contains_key(&order::key(row))) {
        Some(row) => Err(format!("{} is lost\n{query}\n{piece:?}\n{}", shown(row), told(world))),
        None => Ok(()),
    }
}

/// Whether a query says that it cannot go on: nobody can tell long values from those on
/// the last page.
fn must_start_again(why: &str) -> bool {
    why.contains("Run the query again from its start")
}
