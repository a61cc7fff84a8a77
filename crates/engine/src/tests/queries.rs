//! Random queries, answered three times: with an index, without one, and by an
//! evaluator that is too simple to be wrong in the same way.
//!
//! A world has two containers with the same items of all kinds, some of them
//! expired, some purged, while the policy of the first one changes now and then.
//! Queries are asked in one page and in many; rows must be the same, and in the
//! same order where there is one. Some are asked while items are written between
//! their pages: then what nobody touched must come exactly once.
//!
//! A failure prints its seed. `cargo xtask queries --count N --seed S` asks as
//! many as you like, from any seed on.

mod documents;
mod naive;
mod named;
mod partition;
mod texts;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use dayfly_model::value::{Value, order};
use dayfly_sql::Request;
use serde_json::Value as Json;

use self::naive::Answer;
use self::world::{Piece, SIDES, World};
use super::random::Random;

/// How many queries a world is asked.
const QUERIES: u64 = 25;

/// How many of these are asked while items are written between their pages.
const MOVING: u64 = 5;

/// A page that gives all there is.
const WHOLE: usize = 1000;

/// About how many pages a query is asked in, at most.
const PAGES: usize = 12;

/// How many queries are told of in one line of progress.
const PROGRESS: u64 = 10_000;

/// What failed, in words.
type Outcome = Result<(), String>;

#[test]
fn an_index_changes_no_answer() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let asked = number("DAYFLY_QUERIES");
    let first = number("DAYFLY_QUERIES_SEED").unwrap_or(1);
    let end = first + asked.unwrap_or(300).div_ceil(QUERIES);
    let next = AtomicU64::new(first);
    let failure = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || failure.lock().unwrap().is_some() {
                        break;
                    }
                    if let Err(why) = attempt(seed) {
                        *failure.lock().unwrap() = Some((seed, why));
                    }
                    let done = (seed + 1 - first) * QUERIES;
                    if asked.is_some() && done.is_multiple_of(PROGRESS) {
                        println!("{done} queries");
                    }
                }
            });
        }
    });
    if let Some((seed, why)) = failure.into_inner().unwrap() {
        panic!("{why}\nThe world: cargo xtask queries --count 1 --seed {seed}");
    }
}

/// Asks the queries of a world; a panic is a failure like any other.
fn attempt(seed: u64) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| play(seed))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("without a word")))
    })
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
        if number < QUERIES - MOVING {
            ask(&world, &mut random)?;
        } else {
            ask_while_moving(&mut world, &mut random)?;
        }
    }
    world.check();
    Ok(())
}

/// Asks a query of both containers, in one page and in many.
fn ask(world: &World, random: &mut Random) -> Outcome {
    let query = texts::query(random);
    let piece = random.piece();
    let size = 1 + usize::try_from(random.below(20)).unwrap();
    for (side, name) in SIDES.into_iter().enumerate() {
        let failed = |what: &str, why: String| {
            format!("{name}, {what}: {why}\n{query}\n{piece:?}\npolicy {}", world.policy)
        };
        let request = Request::read(query.to_string().as_bytes())
            .map_err(|error| failed("refused", error.to_string()))?;
        let answer = naive::answer(&request, &world.documents(side, &piece));
        let size = size.max(answer.rows.len() / PAGES);
        for (what, size) in [("one page", WHOLE), ("pages", size)] {
            let rows = all_pages(world, side, &query, &piece, size);
            let outcome = rows.and_then(|rows| compare(&answer, &rows));
            outcome.map_err(|why| failed(&format!("{what} of {size}"), why))?;
        }
    }
    Ok(())
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

fn compare(answer: &Answer, rows: &[Value]) -> Outcome {
    let expected = answer.rows.iter().skip(answer.skip).take(answer.take.unwrap_or(usize::MAX));
    let count = expected.clone().count();
    if answer.ordered {
        let differs = expected.clone().zip(rows).position(|(left, right)| left != right);
        if let Some(place) = differs {
            let wanted = expected.clone().nth(place);
            return Err(format!("row {place} is {}, not {}", shown(&rows[place]), text(wanted)));
        }
    } else {
        let mut left = counted(answer.rows.iter());
        for row in rows {
            match left.get_mut(&order::key(row)) {
                Some(count) if *count > 0 => *count -= 1,
                _ => return Err(format!("{} of {} is too much", shown(row), rows.len())),
            }
        }
        if count == answer.rows.len() {
            let missing = answer.rows.iter().find(|row| left[&order::key(row)] > 0);
            if missing.is_some() {
                return Err(format!("{} of {count} is missing", text(missing)));
            }
        }
    }
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
    let (query, sorted) = texts::places(random);
    let (piece, side) = (random.piece(), usize::from(random.chance(30)));
    let policy = world.policy.clone();
    let failed = |why: String| {
        let name = SIDES[side];
        format!("{name}, while items are written: {why}\n{query}\n{piece:?}\npolicy {policy}")
    };
    let request =
        Request::read(query.to_string().as_bytes()).map_err(|error| failed(error.to_string()))?;
    let place = |value: &Value| shown(value);
    let numbers = |world: &World| -> BTreeMap<String, u64> {
        let alive = world.alive(side, &piece).into_iter();
        let place = |value: &Value| {
            let (pk, id) = (value.property("pk").clone(), value.property("id").clone());
            shown(&Value::Array(vec![pk, id]))
        };
        alive.map(|(_, written)| (place(&written.value), written.number)).collect()
    };
    let before = numbers(world);
    let mut moved = false;
    let expected = naive::answer(&request, &world.documents(side, &piece)).rows;
    let expected = counted(expected.iter());
    let limit = 1 + usize::try_from(random.below(15)).unwrap().max(expected.len() / PAGES);
    let mut rows = Vec::new();
    let mut continuation = None;
    loop {
        let (page, next) = match world.page(side, &query, &piece, limit, continuation) {
            // The index that it went by is gone, or names too many items now.
            Err(why) if why.contains("Start it again") && moved => return Ok(()),
            page => page.map_err(&failed)?,
        };
        rows.extend(page);
        continuation = next;
        if continuation.is_none() {
            break;
        }
        for _ in 0..random.below(6) {
            world.step(random);
            moved = true;
        }
    }
    let after = numbers(world);
    let found = counted(rows.iter());
    for (at, number) in before {
        if after.get(&at) != Some(&number) {
            continue;
        }
        let row: Value = serde_json::from_str(&at).unwrap();
        let key = order::key(&row);
        let (found, expected) = (found.get(&key).unwrap_or(&0), expected.get(&key).unwrap_or(&0));
        if found != expected {
            let sorted = if sorted { "sorted" } else { "not sorted" };
            return Err(failed(format!("{} came {found} times, {sorted}", place(&row))));
        }
    }
    Ok(())
}

impl Random {
    /// Mostly all partitions, sometimes one.
    fn piece(&mut self) -> Piece {
        let key = self.pick(&documents::KEYS);
        Piece { key: self.chance(20).then_some(key) }
    }
}
