//! A writer: asks for one thing after another until the server is gone, and
//! notes each answer in its book.
//!
//! It knows its own ids, so it knows every answer in advance, but for moments
//! that only the server knows; another answer is a violation.

use serde_json::{Value, json};

use super::batch::Batch;
use super::book::{Book, Change, DATABASE, Default, Doubt, Draft, Life, SLOTS};
use super::ways::Ways;
use crate::Result;
use crate::wire::{Answer, partition};

/// The longest filler of most items, and of a few that make the engine flush
/// and compact while we look for the moment to kill it.
const FILLER_BYTES_MAX: u64 = 1500;
const LARGE_FILLER_BYTES_MAX: u64 = 200_000;

/// So often is a write of items a frame of direct mode.
pub(crate) const FRAME_ONCE_IN: u64 = 3;

/// "Send it again": nothing was done.
const RETRY_WITH: u16 = 449;

/// What a container is made of.
pub(crate) fn definition(name: &str, default: Default, unique: bool) -> String {
    let mut definition = json!({
        "id": name,
        "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 },
    });
    if let Some(object) = definition.as_object_mut() {
        if let Some(default) = default {
            object.insert("defaultTtl".to_owned(), default.into());
        }
        if unique {
            let keys = json!({ "uniqueKeys": [{ "paths": ["/u"] }] });
            object.insert("uniqueKeyPolicy".to_owned(), keys);
        }
    }
    definition.to_string()
}

/// Writes until the server is killed.
pub(crate) fn write(book: &mut Book, ways: &mut Ways) -> Result<()> {
    // What a frame is answered lies after this.
    let Ok(answer) = ways.ask("GET", "/", &[], "") else { return Ok(()) };
    book.at(answer.now())?;
    loop {
        let request = choose(book);
        book.doubt = Some(request.doubt());
        book.asked_at = book.now;
        let Ok(answer) = request.send(book, ways) else { return Ok(()) };
        request
            .note(book, &answer)
            .map_err(|violation| format!("{violation}; the answer was {}", answer.told()))?;
        book.doubt = None;
    }
}

/// Something to ask for.
#[derive(Clone, Debug)]
enum Request {
    Item { place: usize, slot: u64, act: Act },
    CreateContainer(Default),
    DeleteContainer,
    ChangeDefault(Default),
    Batch(Batch),
}

#[derive(Clone, Debug)]
enum Act {
    Create(Draft),
    Upsert(Draft),
    /// With the etag to match, if any.
    Replace(Draft, Option<String>),
    Delete,
}

const OWN: usize = 1;

fn choose(book: &mut Book) -> Request {
    if book.random.once_in(5) {
        return Request::Batch(Batch::choose(book));
    }
    let place = if book.random.once_in(3) { OWN } else { 0 };
    let default = match book.random.below(4) {
        0 => None,
        1 => Some(-1),
        seconds => i64::try_from(seconds).ok(),
    };
    if place == OWN && !book.container(OWN).exists {
        return Request::CreateContainer(default);
    }
    if place == OWN && book.random.once_in(12) {
        let delete = book.random.once_in(3);
        return if delete { Request::DeleteContainer } else { Request::ChangeDefault(default) };
    }
    let slot = book.random.below(SLOTS);
    let draft = book.draft();
    let act = match book.random.below(10) {
        0..3 => Act::Create(draft),
        3..6 => Act::Upsert(draft),
        6..8 => Act::Replace(draft, etag_to_match(book, place, slot)),
        _ => Act::Delete,
    };
    Request::Item { place, slot, act }
}

/// Mostly the right one, at times a wrong one, at times none.
fn etag_to_match(book: &mut Book, place: usize, slot: u64) -> Option<String> {
    let dice = book.random.below(8);
    let known = book.container(place).items.get(&slot).map(|version| version.etag.clone());
    match dice {
        0 => None,
        1 => Some("\"00000000-0000-0000-0000-000000000000\"".to_owned()),
        _ => known,
    }
}

impl Request {
    /// What is not known until the answer comes.
    fn doubt(&self) -> Doubt {
        match self {
            Request::Item { place, slot, act } => {
                Doubt::Item { place: *place, slot: *slot, after: act.draft().cloned() }
            }
            Request::CreateContainer(default) => Doubt::Create { default: *default },
            Request::DeleteContainer => Doubt::Delete,
            Request::ChangeDefault(default) => Doubt::Change { default: *default },
            Request::Batch(batch) => Doubt::Batch(*batch),
        }
    }

    fn send(&self, book: &mut Book, ways: &mut Ways) -> std::io::Result<Answer> {
        let own = book.container(OWN).name.clone();
        let containers = format!("/dbs/{DATABASE}/colls");
        let container = format!("{containers}/{own}");
        match self {
            Request::Item { place, slot, act } => act.send(book, ways, *place, *slot),
            Request::Batch(batch) => batch.send(book, ways),
            Request::CreateContainer(default) => {
                ways.ask("POST", &containers, &[], &definition(&own, *default, false))
            }
            Request::DeleteContainer => ways.ask("DELETE", &container, &[], ""),
            Request::ChangeDefault(default) => {
                ways.ask("PUT", &container, &[], &definition(&own, *default, false))
            }
        }
    }

    /// Checks the answer and notes what it means.
    fn note(&self, book: &mut Book, answer: &Answer) -> Result<()> {
        let now = book.at(answer.now())?;
        if answer.status == RETRY_WITH {
            return Ok(());
        }
        let expected = match self {
            Request::Item { place, slot, act } => return act.note(book, *place, *slot, answer),
            Request::Batch(batch) => return batch.note(book, answer),
            Request::CreateContainer(_) => 201,
            Request::DeleteContainer => 204,
            Request::ChangeDefault(_) => 200,
        };
        expect(answer, &[expected])?;
        book.told.note(false, answer.framed);
        let before = book.asked_at;
        let own = book.container(OWN);
        match self {
            Request::CreateContainer(default) => {
                own.exists = true;
                own.default = *default;
            }
            Request::DeleteContainer => {
                own.exists = false;
                own.items.clear();
            }
            Request::ChangeDefault(default) => {
                own.bury(before);
                own.change_default(*default);
                own.bury(now);
            }
            Request::Item { .. } | Request::Batch(_) => {}
        }
        Ok(())
    }
}

impl Act {
    fn draft(&self) -> Option<&Draft> {
        match self {
            Act::Create(draft) | Act::Upsert(draft) | Act::Replace(draft, _) => Some(draft),
            Act::Delete => None,
        }
    }

    fn send(
        &self,
        book: &mut Book,
        ways: &mut Ways,
        place: usize,
        slot: u64,
    ) -> std::io::Result<Answer> {
        let mut headers = vec![partition(&book.partition())];
        let items = format!("/dbs/{DATABASE}/colls/{}/docs", book.container(place).name);
        let item = format!("{items}/i{slot}");
        let body = self.draft().map(|draft| body(book, slot, draft)).unwrap_or_default();
        let framed = book.random.once_in(FRAME_ONCE_IN);
        match self {
            Act::Create(_) => ways.ask_by(framed, "POST", &items, &headers, &body),
            Act::Upsert(_) => {
                headers.push(("x-ms-documentdb-is-upsert", "True".to_owned()));
                ways.ask_by(framed, "POST", &items, &headers, &body)
            }
            Act::Replace(_, etag) => {
                headers.extend(etag.clone().map(|etag| ("if-match", etag)));
                ways.ask_by(framed, "PUT", &item, &headers, &body)
            }
            Act::Delete => ways.ask_by(framed, "DELETE", &item, &headers, ""),
        }
    }

    fn note(&self, book: &mut Book, place: usize, slot: u64, answer: &Answer) -> Result<()> {
        // When a frame was answered is not known to the second.
        let first = if answer.framed { book.asked_at } else { book.now };
        let moments = first..=book.now;
        let mut allowed = Vec::new();
        for now in moments.clone() {
            allowed.extend(self.allowed(book, place, slot, now));
        }
        expect(answer, &allowed)?;
        if answer.status >= 400 {
            return Ok(());
        }
        book.told.note(false, answer.framed);
        let number = self.draft().map(|draft| draft.number);
        book.changed(place, slot, Change { number, is_certain: true });
        let Some(draft) = self.draft() else {
            book.container(place).items.remove(&slot);
            return Ok(());
        };
        let (ts, etag) = stamps(&answer.json())?;
        if !moments.contains(&ts) {
            return Err(format!("_ts {ts} is not the time of the answer, {moments:?}"));
        }
        book.new_etag(&etag)?;
        book.container(place).keep(slot, draft.clone(), ts, etag);
        Ok(())
    }

    /// Which answers can be right at this moment.
    fn allowed(&self, book: &mut Book, place: usize, slot: u64, now: u64) -> Vec<u16> {
        let container = book.container(place);
        let life = container.life(slot, now);
        let known = container.items.get(&slot).map(|version| version.etag.clone());
        let rival = self.draft().map(|draft| container.rival(slot, &draft.unique, now));
        let mut allowed = Vec::new();
        if life != Life::Dead {
            match self {
                Act::Create(_) => allowed.push(409),
                Act::Upsert(_) => allowed.extend(unless(rival, 200)),
                Act::Replace(_, Some(etag)) if Some(etag) != known.as_ref() => allowed.push(412),
                Act::Replace(..) => allowed.extend(unless(rival, 200)),
                Act::Delete => allowed.push(204),
            }
        }
        if life != Life::Alive {
            match self {
                Act::Create(_) | Act::Upsert(_) => allowed.extend(unless(rival, 201)),
                Act::Replace(..) | Act::Delete => allowed.push(404),
            }
        }
        allowed
    }
}

/// `status`, unless another item has the unique key.
fn unless(rival: Option<Life>, status: u16) -> Vec<u16> {
    match rival {
        Some(Life::Alive) => vec![409],
        Some(Life::Either) => vec![409, status],
        Some(Life::Dead) | None => vec![status],
    }
}

fn body(book: &mut Book, slot: u64, draft: &Draft) -> String {
    let mut body = json!({
        "id": format!("i{slot}"),
        "pk": book.partition(),
        "n": draft.number,
        "u": draft.unique,
        "filler": filler(book),
    });
    if let (Some(object), Some(ttl)) = (body.as_object_mut(), draft.ttl) {
        object.insert("ttl".to_owned(), ttl.into());
    }
    body.to_string()
}

/// What gives an item its size.
pub(crate) fn filler(book: &mut Book) -> String {
    let large = book.random.once_in(50);
    let max = if large { LARGE_FILLER_BYTES_MAX } else { FILLER_BYTES_MAX };
    "x".repeat(usize::try_from(book.random.below(max)).unwrap_or(0))
}

/// `_ts` and `_etag` of an item.
pub(crate) fn stamps(item: &Value) -> Result<(u64, String)> {
    let ts = item.get("_ts").and_then(Value::as_u64).ok_or("an item has no _ts")?;
    let etag = item.get("_etag").and_then(Value::as_str).ok_or("an item has no _etag")?;
    Ok((ts, etag.to_owned()))
}

pub(crate) fn expect(answer: &Answer, allowed: &[u16]) -> Result<()> {
    if allowed.contains(&answer.status) {
        return Ok(());
    }
    Err(format!("expected one of {allowed:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_a_frame_was_answered_is_not_known_to_the_second() {
        let delete = |status, framed| {
            let mut book = Book::new(0, 0);
            let draft = Draft { number: 1, ttl: Some(2), unique: String::new() };
            book.container(0).keep(3, draft, 100, "e1".to_owned());
            (book.asked_at, book.now) = (101, 102);
            let answer = Answer { status, head: String::new(), body: Vec::new(), framed };
            Act::Delete.note(&mut book, 0, 3, &answer)
        };
        assert_eq!(delete(204, true), Ok(()));
        assert_eq!(delete(404, true), Ok(()));
        assert_eq!(delete(404, false), Ok(()));
        assert!(delete(204, false).is_err());
        assert!(delete(409, true).is_err());
    }
}
