//! Transactional batches: after a crash they are there whole or not at all.
//!
//! A writer has groups of two to five ids, in a partition that is for batches
//! only. A batch writes the same new mark into every id of a group, or deletes
//! them all. So the ids of a group never differ, whatever moment the server is
//! killed at, and one that is behind the others is a batch that was cut in two.

use serde_json::{Value, json};

use super::book::{Book, Change, DATABASE, Doubt, ItemKey, SHARED};
use super::ways::Ways;
use super::writer::{FRAME_ONCE_IN, expect, filler};
use crate::wire::{Answer, partition};
use crate::{Result, failed};

/// A group is named by how many ids it has.
const SMALLEST: u64 = 2;
const LARGEST: u64 = 5;

/// What all items of a group have; none where there are no items.
pub(crate) type Mark = Option<u64>;

/// A batch, which makes this of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    group: u64,
    after: Mark,
}

impl Batch {
    /// Mostly one that writes; what was deleted is created again.
    pub(crate) fn choose(book: &mut Book) -> Batch {
        let group = SMALLEST + book.random.below(LARGEST - SMALLEST + 1);
        let delete = known(book, group).is_some() && book.random.once_in(4);
        let after = if delete { None } else { Some(book.next_number()) };
        Batch { group, after }
    }

    pub(crate) fn send(self, book: &mut Book, ways: &mut Ways) -> std::io::Result<Answer> {
        let path = format!("/dbs/{DATABASE}/colls/{SHARED}/docs");
        let headers = [
            partition(&book.batch_partition()),
            ("x-ms-cosmos-is-batch-request", "true".to_owned()),
            ("x-ms-cosmos-batch-atomic", "true".to_owned()),
        ];
        let steps: Vec<Value> = (0..self.group).map(|step| self.step(book, step)).collect();
        let framed = book.random.once_in(FRAME_ONCE_IN);
        ways.ask_by(framed, "POST", &path, &headers, &Value::Array(steps).to_string())
    }

    fn step(self, book: &mut Book, step: u64) -> Value {
        let id = id(self.group, step);
        let Some(mark) = self.after else {
            return json!({ "operationType": "Delete", "id": id });
        };
        // A create is right only where there is nothing, an upsert always.
        let create = known(book, self.group).is_none() && book.random.once_in(2);
        json!({
            "operationType": if create { "Create" } else { "Upsert" },
            "resourceBody": {
                "id": id,
                "pk": book.batch_partition(),
                "n": mark,
                // The container's unique key, which nobody else has.
                "u": id,
                "filler": filler(book),
            },
        })
    }

    /// Checks the answer and notes what it means.
    pub(crate) fn note(self, book: &mut Book, answer: &Answer) -> Result<()> {
        expect(answer, &[200])?;
        let status = match (known(book, self.group), self.after) {
            (_, None) => 204,
            (None, Some(_)) => 201,
            (Some(_), Some(_)) => 200,
        };
        let steps = answer.json();
        let steps = steps.as_array().ok_or("the answer to a batch is no list")?;
        let as_expected = |step: &Value| step.get("statusCode") == Some(&Value::from(status));
        let complete = u64::try_from(steps.len()) == Ok(self.group);
        if !complete || !steps.iter().all(as_expected) {
            return Err(format!("expected {} times {status} in it", self.group));
        }
        book.told.note(true, answer.framed);
        keep(book, self.group, self.after);
        Ok(())
    }
}

/// The items of all groups that are there, and their marks.
pub(crate) fn alive(book: &Book) -> Vec<(ItemKey, u64)> {
    let marks = book
        .groups
        .iter()
        .flat_map(|(&group, &mark)| (0..group).map(move |step| (group, step, mark)));
    marks.map(|(group, step, mark)| (key(book, group, step), mark)).collect()
}

/// Reads every group of this writer back.
pub(crate) fn verify(book: &mut Book, ways: &mut Ways) -> Result<()> {
    for group in SMALLEST..=LARGEST {
        let marks: Result<Vec<Mark>> =
            (0..group).map(|step| read(book, ways, &id(group, step))).collect();
        settle(book, group, &marks?)?;
    }
    Ok(())
}

fn read(book: &mut Book, ways: &mut Ways, id: &str) -> Result<Mark> {
    let path = format!("/dbs/{DATABASE}/colls/{SHARED}/docs/{id}");
    let headers = [partition(&book.batch_partition())];
    let answer = ways.ask("GET", &path, &headers, "").map_err(failed("reading an item"))?;
    book.at(answer.now())?;
    match answer.status {
        200 => {
            let mark = answer.json().get("n").and_then(Value::as_u64);
            mark.map(Some).ok_or_else(|| format!("{path} has no mark: {}", answer.told()))
        }
        404 => Ok(None),
        _ => Err(format!("reading {path} answered {}", answer.told())),
    }
}

/// The group must be of one mark, which is the acknowledged one or the one in
/// flight; from then on it is certain.
fn settle(book: &mut Book, group: u64, marks: &[Mark]) -> Result<()> {
    let acknowledged = known(book, group);
    let in_flight = match book.doubt {
        Some(Doubt::Batch(batch)) if batch.group == group => Some(batch.after),
        _ => None,
    };
    let told = || {
        format!("group {group} was {acknowledged:?} (in flight {in_flight:?}), and is {marks:?}")
    };
    let Some((&found, others)) = marks.split_first() else { return Ok(()) };
    if others.iter().any(|other| *other != found) {
        return Err(format!("HALF: a batch is there in part: {}", told()));
    }
    if found != acknowledged && Some(found) != in_flight {
        return Err(format!("LOST: a batch is not there: {}", told()));
    }
    if found != acknowledged {
        keep(book, group, found);
    }
    Ok(())
}

fn key(book: &Book, group: u64, step: u64) -> ItemKey {
    (book.batch_partition(), id(group, step))
}

fn id(group: u64, step: u64) -> String {
    format!("g{group}-{step}")
}

fn known(book: &Book, group: u64) -> Mark {
    book.groups.get(&group).copied()
}

/// Notes what became of a group.
fn keep(book: &mut Book, group: u64, mark: Mark) {
    for step in 0..group {
        let change = Change { number: mark, is_certain: true };
        book.changes.entry(key(book, group, step)).or_default().push(change);
    }
    match mark {
        Some(mark) => book.groups.insert(group, mark),
        None => book.groups.remove(&group),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A book in which group 3 was acknowledged with mark 7, and is perhaps
    /// something else since.
    fn book(in_flight: Option<Mark>) -> Book {
        let mut book = Book::new(0, 0);
        keep(&mut book, 3, Some(7));
        book.doubt = in_flight.map(|after| Doubt::Batch(Batch { group: 3, after }));
        book
    }

    fn see(in_flight: Option<Mark>, marks: [Mark; 3]) -> Result<()> {
        settle(&mut book(in_flight), 3, &marks)
    }

    #[test]
    fn half_a_batch_is_seen() {
        for after in [Some(8), None] {
            for marks in [[after, Some(7), Some(7)], [after, after, Some(7)]] {
                assert!(see(Some(after), marks).unwrap_err().starts_with("HALF"));
            }
        }
    }

    #[test]
    fn a_lost_batch_is_seen() {
        for mark in [Some(6), None] {
            assert!(see(None, [mark; 3]).unwrap_err().starts_with("LOST"));
            assert!(see(Some(Some(8)), [mark; 3]).unwrap_err().starts_with("LOST"));
        }
    }

    #[test]
    fn the_batch_in_flight_may_have_been_done_or_not_and_then_stays_so() {
        for after in [Some(8), None] {
            assert_eq!(see(Some(after), [Some(7); 3]), Ok(()));
            let mut book = book(Some(after));
            assert_eq!(settle(&mut book, 3, &[after; 3]), Ok(()));
            book.doubt = None;
            assert!(settle(&mut book, 3, &[Some(7); 3]).is_err());
        }
    }

    #[test]
    fn a_batch_in_flight_is_no_excuse_for_another_group() {
        let mut book = book(Some(Some(8)));
        keep(&mut book, 2, Some(5));
        assert!(settle(&mut book, 2, &[Some(8); 2]).is_err());
        assert_eq!(settle(&mut book, 2, &[Some(5); 2]), Ok(()));
    }
}
