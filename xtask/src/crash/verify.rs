//! Reading everything back after a crash.
//!
//! What is there must be what was acknowledged, or what the request in flight
//! makes of it; from then on it is certain, and must stay so.

use serde_json::Value;

use super::batch;
use super::book::{Book, Change, DATABASE, Default, Doubt, Draft, Life, SLOTS};
use super::ways::Ways;
use super::writer::stamps;
use crate::wire::{Answer, partition};
use crate::{Result, failed};

const PLACES: [usize; 2] = [0, 1];

/// Reads every container, every id and every group of this writer.
pub(crate) fn everything(book: &mut Book, ways: &mut Ways) -> Result<()> {
    for place in PLACES {
        container(book, ways, place)?;
        if !book.container(place).exists {
            continue;
        }
        for slot in 0..SLOTS {
            item(book, ways, place, slot)?;
        }
    }
    batch::verify(book, ways)?;
    book.doubt = None;
    Ok(())
}

/// What a container looks like: its default, if it is there.
type Shape = Option<Default>;

fn container(book: &mut Book, ways: &mut Ways, place: usize) -> Result<()> {
    let known = book.container(place);
    let path = format!("/dbs/{DATABASE}/colls/{}", known.name);
    let acknowledged: Shape = known.exists.then_some(known.default);
    let own = known.own;
    let in_flight: Option<Shape> = match &book.doubt {
        Some(Doubt::Create { default } | Doubt::Change { default }) if own => Some(Some(*default)),
        Some(Doubt::Delete) if own => Some(None),
        _ => None,
    };
    let answer = ways.ask("GET", &path, &[], "").map_err(failed("reading a container"))?;
    book.at(answer.now())?;
    let found: Shape = match answer.status {
        200 => Some(answer.json().get("defaultTtl").and_then(Value::as_i64)),
        404 => None,
        _ => return Err(format!("reading {path} answered {}", answer.told())),
    };
    if found != acknowledged && Some(found) != in_flight {
        return Err(format!(
            "LOST: the container {path} was {acknowledged:?} (in flight {in_flight:?}), and is \
             {found:?}"
        ));
    }
    settle(book, place, acknowledged, found);
    Ok(())
}

/// Makes what was found what is known.
fn settle(book: &mut Book, place: usize, acknowledged: Shape, found: Shape) {
    let before = book.asked_at;
    let known = book.container(place);
    match (acknowledged, found) {
        (Some(old), Some(new)) if old != new => {
            known.bury(before);
            known.change_default(new);
        }
        (None, Some(default)) => {
            known.exists = true;
            known.default = default;
        }
        (_, None) => {
            known.exists = false;
            known.items.clear();
        }
        (Some(_), Some(_)) => {}
    }
}

fn item(book: &mut Book, ways: &mut Ways, place: usize, slot: u64) -> Result<()> {
    let path = format!("/dbs/{DATABASE}/colls/{}/docs/i{slot}", book.container(place).name);
    let headers = [partition(&book.partition())];
    let answer = ways.ask("GET", &path, &headers, "").map_err(failed("reading an item"))?;
    let now = book.at(answer.now())?;
    let in_flight = InFlight::of(book, place, slot);
    let outcome = match answer.status {
        200 => found(book, place, slot, in_flight, &answer, now),
        404 => missing(book, place, slot, in_flight, now),
        _ => Err("neither 200 nor 404".to_owned()),
    };
    outcome.map_err(|violation| {
        let known = book.container(place).items.get(&slot);
        format!("{violation}: {path} was {known:?}, and reading it answered {}", answer.told())
    })?;
    // The same in a frame, unless it died meanwhile.
    let framed = ways.ask_framed("GET", &path, &headers, "").map_err(failed("reading an item"))?;
    let later = book.at(framed.now())?;
    let is_same =
        framed.status == answer.status && (framed.status == 404 || framed.body == answer.body);
    let has_died = framed.status == 404 && book.container(place).life(slot, later) != Life::Alive;
    if is_same || has_died {
        return Ok(());
    }
    Err(format!(
        "OTHER: reading {path} answered {}, and in a frame {}",
        answer.told(),
        framed.told()
    ))
}

/// What the request without an answer does to an item.
enum InFlight {
    Nothing,
    Removes,
    Writes(Draft),
}

impl InFlight {
    fn of(book: &Book, place: usize, slot: u64) -> InFlight {
        match &book.doubt {
            Some(Doubt::Item { place: at, slot: id, after }) if (*at, *id) == (place, slot) => {
                after.clone().map_or(InFlight::Removes, InFlight::Writes)
            }
            _ => InFlight::Nothing,
        }
    }
}

/// An item is there: it must be one of the two, and alive.
fn found(
    book: &mut Book,
    place: usize,
    slot: u64,
    in_flight: InFlight,
    answer: &Answer,
    now: u64,
) -> Result<()> {
    let item = answer.json();
    let number = item.get("n").and_then(Value::as_u64).ok_or("an item has no number")?;
    let (ts, etag) = stamps(&item)?;
    let container = book.container(place);
    if let Some(version) = container.items.get(&slot)
        && version.draft.number == number
    {
        return match version {
            version if (version.ts, &version.etag) != (ts, &etag) => {
                Err("CHANGED: the same version has another _ts or _etag".to_owned())
            }
            version if version.life(now) == Life::Dead => {
                Err("BACK: an expired item is there".to_owned())
            }
            _ => Ok(()),
        };
    }
    let after = match in_flight {
        InFlight::Writes(draft) if draft.number == number => draft,
        _ => return Err("LOST: the item is there in a version that cannot be".to_owned()),
    };
    if after.is_expired(container.default, ts, now) {
        return Err("LATE: an expired item is there".to_owned());
    }
    container.keep(slot, after, ts, etag.clone());
    book.changed(place, slot, Change { number: Some(number), is_certain: true });
    book.new_etag(&etag)
}

/// No item is there: there was none, or it expired, or the request in flight
/// removed it or made one that expired.
fn missing(book: &mut Book, place: usize, slot: u64, in_flight: InFlight, now: u64) -> Result<()> {
    let asked_at = book.asked_at;
    let container = book.container(place);
    let life = container.life(slot, now);
    let may_be_gone = match &in_flight {
        InFlight::Nothing => false,
        InFlight::Removes => true,
        InFlight::Writes(after) => after.is_expired(container.default, asked_at, now),
    };
    if life == Life::Alive && !may_be_gone {
        return Err("LOST: the item is not there".to_owned());
    }
    container.items.remove(&slot);
    // What would be there without it was taken away by nothing else.
    let is_certain = life == Life::Alive;
    match in_flight {
        InFlight::Nothing => {}
        InFlight::Removes => book.changed(place, slot, Change { number: None, is_certain }),
        InFlight::Writes(after) => {
            let number = Some(after.number);
            book.changed(place, slot, Change { number, is_certain });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A book in which item 3 of the shared container was written at 100 as
    /// version 1, and is to live for `ttl` seconds.
    fn book(ttl: Option<i64>) -> Book {
        let mut book = Book::new(0, 0);
        let draft = Draft { number: 1, ttl, unique: String::new() };
        book.container(0).keep(3, draft, 100, "e1".to_owned());
        book
    }

    fn see(book: &mut Book, number: u64, etag: &str, now: u64) -> Result<()> {
        let body = format!("{{\"n\":{number},\"_ts\":100,\"_etag\":\"{etag}\"}}").into_bytes();
        let answer = Answer { status: 200, head: String::new(), body, framed: false };
        let in_flight = InFlight::of(book, 0, 3);
        found(book, 0, 3, in_flight, &answer, now)
    }

    fn miss(book: &mut Book, now: u64) -> Result<()> {
        let in_flight = InFlight::of(book, 0, 3);
        missing(book, 0, 3, in_flight, now)
    }

    #[test]
    fn a_lost_write_is_seen() {
        assert!(miss(&mut book(None), 101).is_err());
        assert!(see(&mut book(None), 0, "e0", 101).is_err());
        assert!(see(&mut book(None), 1, "e0", 101).is_err());
        assert_eq!(see(&mut book(None), 1, "e1", 101), Ok(()));
    }

    #[test]
    fn an_expired_item_must_be_gone_and_stay_so() {
        let mut book = book(Some(2));
        assert!(see(&mut book, 1, "e1", 102).is_err());
        assert_eq!(miss(&mut book, 102), Ok(()));
        assert!(see(&mut book, 1, "e1", 101).is_err());
    }

    #[test]
    fn the_request_in_flight_may_have_been_done_or_not() {
        let doubt = |number| Doubt::Item {
            place: 0,
            slot: 3,
            after: Some(Draft { number, ttl: None, unique: String::new() }),
        };
        for number in [1, 2] {
            let mut book = book(None);
            book.doubt = Some(doubt(2));
            let etag = format!("e{number}");
            assert_eq!(see(&mut book, number, &etag, 101), Ok(()));
            assert!(see(&mut book, 3 - number, "e9", 101).is_err() || number == 1);
        }
        let mut deleted = book(None);
        deleted.doubt = Some(Doubt::Item { place: 0, slot: 3, after: None });
        assert_eq!(miss(&mut deleted, 101), Ok(()));
    }
}
