//! What one writer knows: what it was told, and the one request that had no
//! answer.
//!
//! A writer has ids of its own, in a partition of its own, so nobody else
//! changes them. Whether an item is alive is judged by the time the server
//! gives with each answer; nothing here looks at a clock.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use super::batch::Batch;
use crate::Result;
use crate::random::Random;

/// The database of all writers.
pub(crate) const DATABASE: &str = "crash";

/// The container that all writers share.
pub(crate) const SHARED: &str = "shared";

/// How many ids a writer has in each container.
pub(crate) const SLOTS: u64 = 16;

/// The partition and the id of an item.
pub(crate) type ItemKey = (String, String);

/// The `defaultTtl` of a container; none when time to live is off.
pub(crate) type Default = Option<i64>;

/// What a writer knows.
pub(crate) struct Book {
    writer: u64,
    pub(crate) random: Random,
    /// The number of the last version it wrote.
    last_number: u64,
    /// The last time the server gave.
    pub(crate) now: u64,
    etags: HashSet<String>,
    /// The shared container, and the writer's own.
    pub(crate) containers: [Container; 2],
    /// What the groups that batches write have as their mark, if they are there.
    pub(crate) groups: BTreeMap<u64, u64>,
    /// What was done to each item of the shared container, in this order.
    pub(crate) changes: BTreeMap<ItemKey, Vec<Change>>,
    /// The request that has no answer yet, and the last time before it.
    pub(crate) doubt: Option<Doubt>,
    pub(crate) asked_at: u64,
    pub(crate) told: Told,
}

/// How many writes were acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) writes: u64,
    /// So many of them were batches.
    pub(crate) batches: u64,
    /// So many were frames of direct mode.
    pub(crate) framed: u64,
}

impl Told {
    pub(crate) const NOTHING: Told = Told { writes: 0, batches: 0, framed: 0 };

    /// One more.
    pub(crate) fn note(&mut self, is_batch: bool, is_framed: bool) {
        self.writes += 1;
        self.batches += u64::from(is_batch);
        self.framed += u64::from(is_framed);
    }

    /// With those of another.
    pub(crate) fn and(self, other: Told) -> Told {
        Told {
            writes: self.writes + other.writes,
            batches: self.batches + other.batches,
            framed: self.framed + other.framed,
        }
    }
}

/// A container, as far as this writer uses it.
pub(crate) struct Container {
    pub(crate) name: String,
    /// Whether no other writer uses it.
    pub(crate) own: bool,
    pub(crate) exists: bool,
    pub(crate) default: Default,
    /// Acknowledged versions, by id. Some may have expired.
    pub(crate) items: BTreeMap<u64, Version>,
}

/// What a write wants to be there.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// No two versions have the same.
    pub(crate) number: u64,
    pub(crate) ttl: Option<i64>,
    /// The value of the unique key.
    pub(crate) unique: String,
}

/// A version that was acknowledged, or seen after a crash.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) draft: Draft,
    pub(crate) ts: u64,
    pub(crate) etag: String,
    /// The container's defaults since it was written, the latest last.
    defaults: Vec<Default>,
    /// Whether it was dead at any time: then it is dead for ever.
    gone: bool,
}

/// A version of an item, or its end by a request.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) number: Option<u64>,
    /// Whether it was acknowledged, or seen after a crash. The other ones may have been done,
    /// and what they made be gone since.
    pub(crate) is_certain: bool,
}

/// A request without an answer, and what it makes if it was done.
#[derive(Clone, Debug)]
pub(crate) enum Doubt {
    /// A version of an item, or no item.
    Item { place: usize, slot: u64, after: Option<Draft> },
    /// A container with this default.
    Create { default: Default },
    /// No container.
    Delete,
    /// This default.
    Change { default: Default },
    /// A group of items, all of them or none.
    Batch(Batch),
}

/// Whether an item is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    Dead,
    /// It depends on the exact moment of a change that we do not know.
    Either,
}

impl Book {
    pub(crate) fn new(writer: u64, seed: u64) -> Book {
        let container = |name: String, own: bool| Container {
            name,
            own,
            exists: !own,
            default: if own { None } else { Some(-1) },
            items: BTreeMap::new(),
        };
        Book {
            writer,
            random: Random::new(seed),
            last_number: 0,
            now: 0,
            etags: HashSet::new(),
            containers: [
                container(SHARED.to_owned(), false),
                container(format!("own-{writer}"), true),
            ],
            groups: BTreeMap::new(),
            changes: BTreeMap::new(),
            doubt: None,
            asked_at: 0,
            told: Told::NOTHING,
        }
    }

    /// The partition of this writer.
    pub(crate) fn partition(&self) -> String {
        format!("w{}", self.writer)
    }

    /// The partition in which this writer has its batches.
    pub(crate) fn batch_partition(&self) -> String {
        format!("b{}", self.writer)
    }

    /// The container at `place`; there are two.
    pub(crate) fn container(&mut self, place: usize) -> &mut Container {
        let [shared, own] = &mut self.containers;
        if place == 0 { shared } else { own }
    }

    /// Notes what was done to the item `slot`, where somebody reads the feeds.
    pub(crate) fn changed(&mut self, place: usize, slot: u64, change: Change) {
        if !self.container(place).own {
            let key = self.item_key(slot);
            self.changes.entry(key).or_default().push(change);
        }
    }

    /// The items of the shared container that are there at `now`, and their versions.
    pub(crate) fn alive(&self, now: u64) -> Vec<(ItemKey, u64)> {
        let shared = self.containers.iter().filter(|container| !container.own);
        let items = shared.flat_map(|container| &container.items);
        let alive = items.filter(|(_, version)| version.life(now) == Life::Alive);
        alive.map(|(slot, version)| (self.item_key(*slot), version.draft.number)).collect()
    }

    fn item_key(&self, slot: u64) -> ItemKey {
        (self.partition(), format!("i{slot}"))
    }

    /// A number that no version had.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Something new to write.
    pub(crate) fn draft(&mut self) -> Draft {
        let number = self.next_number();
        let ttl = match self.random.below(10) {
            0..3 => Some(1 + i64::try_from(self.random.below(3)).unwrap_or(0)),
            3 => Some(-1),
            _ => None,
        };
        let unique = match self.random.below(3) {
            0 => format!("u{}", self.random.below(SLOTS)),
            _ => format!("n{number}"),
        };
        Draft { number, ttl, unique }
    }

    /// Notes the time of an answer, which must not be before the last one.
    pub(crate) fn at(&mut self, now: Option<u64>) -> Result<u64> {
        let now = now.ok_or("an answer has no date")?;
        if now < self.now {
            return Err(format!("time went back from {} to {now}", self.now));
        }
        self.now = now;
        Ok(now)
    }

    /// Notes the etag of a new version, which no version may have had before.
    pub(crate) fn new_etag(&mut self, etag: &str) -> Result<()> {
        if self.etags.insert(etag.to_owned()) {
            Ok(())
        } else {
            Err(format!("the etag {etag} was given out twice"))
        }
    }
}

impl fmt::Display for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "writer {}, in flight {:?}", self.writer, self.doubt)
    }
}

impl Container {
    /// Whether the item `slot` is there at `now`.
    pub(crate) fn life(&self, slot: u64, now: u64) -> Life {
        self.items.get(&slot).map_or(Life::Dead, |version| version.life(now))
    }

    /// Whether another item than `slot` has this unique key at `now`.
    pub(crate) fn rival(&self, slot: u64, unique: &str, now: u64) -> Life {
        if self.own {
            return Life::Dead;
        }
        let rivals = self
            .items
            .iter()
            .filter(|(other, version)| **other != slot && version.draft.unique == unique);
        let lives: Vec<Life> = rivals.map(|(_, version)| version.life(now)).collect();
        match lives {
            lives if lives.contains(&Life::Alive) => Life::Alive,
            lives if lives.contains(&Life::Either) => Life::Either,
            _ => Life::Dead,
        }
    }

    /// Keeps a version that is there now.
    pub(crate) fn keep(&mut self, slot: u64, draft: Draft, ts: u64, etag: String) {
        let defaults = vec![self.default];
        self.items.insert(slot, Version { draft, ts, etag, defaults, gone: false });
    }

    /// What was dead at `now`, under the default as it is, is dead for ever.
    pub(crate) fn bury(&mut self, now: u64) {
        for version in self.items.values_mut() {
            version.gone |= version.life(now) == Life::Dead;
        }
    }

    /// The default is another one now.
    pub(crate) fn change_default(&mut self, default: Default) {
        self.default = default;
        for version in self.items.values_mut() {
            version.defaults.push(default);
        }
    }
}

impl Draft {
    /// Whether it is dead at `now` if it was written at `ts`.
    pub(crate) fn is_expired(&self, default: Default, ts: u64, now: u64) -> bool {
        let seconds = default.map(|default| self.ttl.unwrap_or(default));
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        seconds.is_some_and(|seconds| now >= ts + seconds)
    }
}

impl Version {
    pub(crate) fn life(&self, now: u64) -> Life {
        let expired = |default: &Default| self.draft.is_expired(*default, self.ts, now);
        match self.defaults.split_last() {
            _ if self.gone => Life::Dead,
            Some((latest, _)) if expired(latest) => Life::Dead,
            Some((_, before)) if before.iter().any(expired) => Life::Either,
            _ => Life::Alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(default: Default, ttl: Option<i64>) -> Container {
        let mut own = Book::new(0, 0).containers.into_iter().nth(1).unwrap();
        own.default = default;
        own.keep(1, Draft { number: 1, ttl, unique: String::new() }, 100, String::new());
        own
    }

    #[test]
    fn an_item_is_dead_from_its_second_on() {
        let own = container(Some(-1), Some(2));
        assert_eq!(own.life(1, 101), Life::Alive);
        assert_eq!(own.life(1, 102), Life::Dead);
        assert_eq!(container(None, Some(2)).life(1, 102), Life::Alive);
        assert_eq!(container(Some(3), None).life(1, 103), Life::Dead);
        assert_eq!(container(Some(3), Some(-1)).life(1, 103), Life::Alive);
    }

    #[test]
    fn what_was_dead_before_a_change_stays_dead_and_what_died_meanwhile_may() {
        let mut own = container(Some(-1), Some(2));
        own.bury(102);
        own.change_default(None);
        assert_eq!(own.life(1, 102), Life::Dead);

        let mut own = container(Some(-1), Some(2));
        own.bury(101);
        own.change_default(None);
        assert_eq!(own.life(1, 101), Life::Alive);
        assert_eq!(own.life(1, 102), Life::Either);
    }
}
