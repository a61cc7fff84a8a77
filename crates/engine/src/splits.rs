//! Ranges that are divided: by a throughput that asks for more of them, or by an operator.
//!
//! ```text
//! before   | 0                                   |
//! after    | 1                | 2                |   both came from 0
//! then     | 1                | 3      | 4       |   both came from 0, then from 2
//! ```
//!
//! **Nothing moves.** The two halves of a range lie in its bucket, as it did: they count its
//! commits, are in its feed, and wait for its purge. So a division is a few words in the
//! container's record, by one commit, with the offer that asked for it. What a client has
//! from before is true of both halves: a session token, a place in the feed. A page that
//! ended in the range goes on in its order ([`Container::ranges_before`]), and who names it
//! is told that it is gone.
//!
//! Numbers of ranges are given out once, and halves are never put together again.
//!
//! [`Container::ranges_before`]: crate::catalog::Container::ranges_before

use dayfly_model::epk::{self, Epk};
use dayfly_model::rid::ContainerRid;
use dayfly_model::throughput::Throughput;
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::{Batch, Draft, Snapshot, Stamp, View};
use serde_json::{Value, json};

use crate::catalog::{self, CatalogView, ContainerRecord, RangeRecord, not_found};
use crate::clerk::{CatalogPlan, Clerk};
use crate::head::State;
use crate::install::Install;
use crate::keys;
use crate::operation::{ContainerScope, Division};
use crate::reply::{Reply, Success, storage_failed};

/// How many ranges a container has at most by being divided: more than any throughput asks
/// for.
const RANGES_MAX: usize = 1_000;

/// The most that a container can have that is not divided by a partition key.
const UNDIVIDED_MAX: u32 = 10_000;

/// A range that is wider than another by less than this part of its width is as wide: where
/// the space of keys was cut into equal parts, the last one has what was left over.
const ALIKE: u128 = 1_000;

/// Divides a container, and shows the ranges that it has then.
pub(crate) fn split(clerk: &Clerk<'_>, at: &ContainerScope, division: &Division) -> Reply {
    clerk.answer(|snapshot| {
        let owner = catalog::open_database(snapshot, &at.database)?;
        let mut record = catalog::find_container_record(snapshot, &owner, &at.container)?
            .ok_or_else(|| not_found(ErrorKind::NotFound))?;
        record.divide(division)?;
        let rid = record.rid();
        Ok(around(clerk, &rid, || {
            clerk.commit(CatalogPlan::grows(move |_: &View<'_>| {
                let record = record.clone();
                Ok(Draft::new(move |stamp: Stamp, batch: &mut Batch| {
                    record.put(batch);
                    let body = json!({ "ranges": shown(&record) }).to_string();
                    Reply::ok(Success::new(200, body), Timestamp(stamp.ts), 0.0)
                }))
            }))
        }))
    })
}

/// Commits a change that may divide the container with this RID, and then tells its heads
/// that it is another one: what is known of it in memory is right as long as they say so.
pub(crate) fn around(clerk: &Clerk<'_>, rid: &str, commit: impl FnOnce() -> Reply) -> Reply {
    clerk.begin();
    let reply = commit();
    clerk.offers_changed();
    let told = match &reply.outcome {
        Ok(_) => clerk.look(|snapshot| tell_heads(clerk, snapshot, rid)),
        Err(_) => Ok(()),
    };
    // What was refused has changed nothing; of what failed nobody knows.
    let is_refused = |error: &Error| error.kind.wire().status < 500;
    clerk.end(told.is_ok() && reply.outcome.as_ref().err().is_none_or(is_refused));
    told.err().unwrap_or(reply)
}

fn tell_heads(clerk: &Clerk<'_>, snapshot: &dyn Snapshot, rid: &str) -> Result<()> {
    let Some(record) = container(snapshot, rid)? else { return Ok(()) };
    let is_behind = |bucket: &_| State::of(&snapshot.head(*bucket)).epoch < record.epoch;
    clerk.install(record.buckets().filter(is_behind), &Install::of(&record))
}

/// The container with this RID, with as many ranges as its throughput needs after it was
/// changed; `None`: it has them, or it is a database, whose throughput divides nothing.
pub(crate) fn for_throughput<V: CatalogView + ?Sized>(
    view: &V,
    rid: &str,
    throughput: Throughput,
) -> Result<Option<ContainerRecord>> {
    let Some(mut record) = container(view, rid)? else { return Ok(None) };
    if record.definition.partition_key.system_key {
        check_undivided(throughput)?;
        return Ok(None);
    }
    let wanted = throughput.raised_ranges().min(RANGES_MAX);
    if wanted <= record.ranges.len() {
        return Ok(None);
    }
    record.divide(&Division::Ranges(wanted))?;
    Ok(Some(record))
}

/// A container without a partition key gets no more than one range can give.
pub(crate) fn check_undivided(throughput: Throughput) -> Result<()> {
    let max = throughput.max();
    if max <= UNDIVIDED_MAX {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "A container without a partition key can have at most {UNDIVIDED_MAX} RU/s, not {max}. \
         Give it a partition key, or less."
    )))
}

fn container<V: CatalogView + ?Sized>(view: &V, rid: &str) -> Result<Option<ContainerRecord>> {
    let Some(rid) = ContainerRid::parse(rid) else { return Ok(None) };
    let name = view.get(&keys::container_name(rid.database, rid.container));
    let Some(name) = name.map_err(storage_failed)? else { return Ok(None) };
    catalog::read(view, &keys::container(rid.database, &String::from_utf8_lossy(&name)))
}

impl ContainerRecord {
    fn divide(&mut self, division: &Division) -> Result<()> {
        if self.definition.partition_key.system_key {
            return Err(Error::bad_request(
                "A container without a partition key has one range, which cannot be divided.",
            ));
        }
        match division {
            Division::Widest => self.halve(self.widest())?,
            Division::Range(id) => {
                let place = self.ranges.iter().position(|range| range.id.to_string() == *id);
                self.halve(place.ok_or_else(|| {
                    Error::bad_request(format!("The container has no partition key range '{id}'."))
                })?)?;
            }
            Division::Ranges(count) => {
                if *count > RANGES_MAX {
                    return Err(too_many());
                }
                if *count <= self.ranges.len() {
                    return Err(Error::bad_request(format!(
                        "The container has {} ranges already, and they are never put together.",
                        self.ranges.len()
                    )));
                }
                while self.ranges.len() < *count {
                    self.halve(self.widest())?;
                }
            }
        }
        self.ranges_version += 1;
        self.epoch += 1;
        Ok(())
    }

    /// The place of the first of the widest ranges.
    fn widest(&self) -> usize {
        let key = &self.definition.partition_key;
        let widths: Vec<u128> = self
            .ranges
            .iter()
            .map(|range| epk::width(key, &range.min, range.max.as_ref()))
            .collect();
        let most = widths.iter().max().copied().unwrap_or_default();
        widths.iter().position(|width| *width >= most - most / ALIKE).unwrap_or_default()
    }

    fn halve(&mut self, place: usize) -> Result<()> {
        if self.ranges.len() >= RANGES_MAX {
            return Err(too_many());
        }
        let last = self.ranges.iter().map(|range| range.id).max().unwrap_or_default();
        let missing = || Error::new(ErrorKind::Internal, "The container has no ranges.");
        let range = self.ranges.get(place).ok_or_else(missing)?.clone();
        let key = &self.definition.partition_key;
        let middle = epk::middle(key, &range.min, range.max.as_ref()).ok_or_else(|| {
            Error::bad_request(format!("The range '{}' is too narrow to be divided.", range.id))
        })?;
        let parents: Vec<u32> = range.parents.iter().copied().chain([range.id]).collect();
        let half = |id, min, max| RangeRecord { id, min, max, parents: parents.clone() };
        let left = half(last + 1, range.min.clone(), Some(middle.clone()));
        let right = half(last + 2, middle, range.max.clone());
        self.ranges.splice(place..=place, [left, right]);
        Ok(())
    }
}

fn too_many() -> Error {
    Error::bad_request(format!("A container has at most {RANGES_MAX} partition key ranges."))
}

/// The ranges, as an operator sees them.
fn shown(record: &ContainerRecord) -> Vec<Value> {
    let shown = |range: &RangeRecord| {
        json!({
            "id": range.id.to_string(),
            "minInclusive": range.min.to_hex(),
            "maxExclusive": range.max.as_ref().map_or_else(|| "FF".to_owned(), Epk::to_hex),
            "parents": range.parents.iter().map(u32::to_string).collect::<Vec<_>>(),
        })
    };
    record.ranges.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::container_record;

    fn record(ranges: usize) -> ContainerRecord {
        let mut record = container_record();
        record.ranges = catalog::equal_ranges(&record.definition, ranges);
        record
    }

    fn ids(record: &ContainerRecord) -> Vec<(u32, Vec<u32>)> {
        record.ranges.iter().map(|range| (range.id, range.parents.clone())).collect()
    }

    #[test]
    fn the_first_of_the_widest_is_halved() {
        let mut one = record(1);
        one.divide(&Division::Widest).unwrap();
        assert_eq!(ids(&one), [(1, vec![0]), (2, vec![0])]);
        one.divide(&Division::Widest).unwrap();
        assert_eq!(ids(&one), [(3, vec![0, 1]), (4, vec![0, 1]), (2, vec![0])]);
        one.divide(&Division::Range("4".to_owned())).unwrap();
        one.divide(&Division::Widest).unwrap();
        let last: Vec<u32> = one.ranges.iter().map(|range| range.id).collect();
        assert_eq!(last, [3, 5, 6, 7, 8], "2 was the widest");
        assert_eq!(one.ranges_version, container_record().ranges_version + 4);

        let mut two = record(2);
        two.divide(&Division::Ranges(3)).unwrap();
        assert_eq!(ids(&two), [(2, vec![0]), (3, vec![0]), (1, vec![])]);
    }

    #[test]
    fn the_halves_are_the_range() {
        let mut divided = record(5);
        divided.divide(&Division::Ranges(40)).unwrap();
        assert!(divided.ranges[0].min.0.is_empty() && divided.ranges[39].max.is_none());
        for pair in divided.ranges.windows(2) {
            assert_eq!(pair[0].max.as_ref(), Some(&pair[1].min));
        }
        let ids: std::collections::HashSet<u32> = divided
            .ranges
            .iter()
            .flat_map(|range| range.parents.iter().chain([&range.id]))
            .copied()
            .collect();
        assert_eq!(ids.len(), 5 + 2 * 35, "each number was given once");
    }

    #[test]
    fn what_cannot_be_divided_stays_as_it_is() {
        let mut one = record(1);
        for (division, told) in [
            (Division::Range("1".to_owned()), "has no partition key range '1'"),
            (Division::Ranges(1), "has 1 ranges already"),
            (Division::Ranges(1_001), "at most 1000"),
        ] {
            let message = one.divide(&division).unwrap_err().message;
            assert!(message.contains(told), "{message}");
            assert_eq!(ids(&one), ids(&record(1)));
        }
        one.definition.partition_key.system_key = true;
        assert!(one.divide(&Division::Widest).unwrap_err().message.contains("without a partition"));
    }
}
