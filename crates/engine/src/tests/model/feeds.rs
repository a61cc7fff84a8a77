//! Readers of the change feed, who go on from places that they were told long ago: each is
//! told every change once, in order, and of nobody who is dead.
//!
//! A reader of the latest versions has seen all that is alive when nothing is new, and no
//! version twice. One of all versions keeps what it was told: a chain of versions for each
//! item, with an end that is an expiry if its time was up, and a delete if somebody deleted
//! it first.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::oracle::Oracle;
use crate::operation::{ChangesFrom, FeedMode, Operation, Part, ReadChanges};
use crate::tests::seeds::Outcome;
use crate::tests::server::at;
use crate::version;

/// How many places are kept to go on from.
const KEPT_MAX: usize = 6;

/// All who read.
#[derive(Default)]
pub(super) struct Readers {
    kept: Vec<Reader>,
    /// The RIDs of items that somebody deleted while they lived.
    pub(super) deleted: BTreeSet<String>,
}

/// Somebody who has read a feed up to some place.
#[derive(Clone)]
struct Reader {
    mode: FeedMode,
    place: Option<String>,
    /// The last commit that was told, in each slice.
    last: BTreeMap<u8, u64>,
    /// The versions that were told.
    told: BTreeSet<String>,
    /// What is there by what was told, by its RID: the commit that wrote it, and the item.
    items: BTreeMap<String, (u64, Value)>,
}

impl Reader {
    fn new(mode: FeedMode, place: Option<String>) -> Reader {
        let (last, told, items) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Reader { mode, place, last, told, items }
    }

    /// A page, and whether there was anything on it.
    fn page(
        &mut self,
        limit: usize,
        oracle: &Oracle,
        deleted: &BTreeSet<String>,
        ask: &mut impl FnMut(Operation) -> Outcome<(u16, Value, String)>,
    ) -> Outcome<bool> {
        let from = self.place.clone().map_or(ChangesFrom::Beginning, ChangesFrom::After);
        let (status, body, place) = ask(read(self.mode, from, limit))?;
        self.place = Some(place);
        for change in body["Documents"].as_array().into_iter().flatten() {
            let wrong = |why: String| format!("the feed tells {change}: {why}");
            self.take(change, oracle, deleted).map_err(wrong)?;
        }
        Ok(status == 200)
    }

    fn take(&mut self, change: &Value, oracle: &Oracle, deleted: &BTreeSet<String>) -> Outcome {
        let (metadata, mut item) = (&change["metadata"], change["current"].clone());
        let lsn = metadata["lsn"].as_u64().ok_or("it has no commit")?;
        let previous = metadata["previousImageLSN"].as_u64();
        if metadata["operationType"] == "delete" {
            return self.end(metadata, previous, deleted);
        }
        let members = item.as_object_mut().ok_or("there is no item")?;
        if members.remove("_lsn") != Some(lsn.into()) {
            return Err("its commit is another one".to_owned());
        }
        let rid = text(&item["_rid"]);
        let docno = dayfly_model::rid::ItemRid::parse(&rid).ok_or("it has no RID")?.docno;
        let last = self.last.entry(version::slice_of(docno)).or_default();
        if lsn < *last {
            return Err(format!("it comes after commit {last}"));
        }
        *last = lsn;
        if !self.told.insert(version_of(&item)) {
            return Err("it was told before".to_owned());
        }
        if self.mode == FeedMode::Latest {
            let is_alive = |alive: &Value| *alive == item;
            let alive: Vec<Value> = oracle.all_alive().map(|item| shown(&item.shown)).collect();
            return if alive.iter().any(is_alive) { Ok(()) } else { Err("a ghost".to_owned()) };
        }
        let before = self.items.insert(rid, (lsn, item)).map(|(lsn, _)| lsn);
        let is_new = metadata["operationType"] == "create";
        if is_new == before.is_some() || before != previous {
            return Err(format!("the version before was that of {before:?}"));
        }
        Ok(())
    }

    fn end(
        &mut self,
        metadata: &Value,
        previous: Option<u64>,
        deleted: &BTreeSet<String>,
    ) -> Outcome {
        let is_it = |(lsn, item): &(u64, Value)| {
            Some(*lsn) == previous
                && item["id"] == metadata["id"]
                && item["pk"] == metadata["partitionKey"]["pk"]
        };
        let rid = self.items.iter().find(|(_, known)| is_it(known)).map(|(rid, _)| rid.clone());
        let rid = rid.ok_or("it ends what is not there")?;
        self.items.remove(&rid);
        let has_expired = metadata["timeToLiveExpired"] == true;
        if has_expired == deleted.contains(&rid) {
            return Err(format!("whether somebody deleted it: {}", !has_expired));
        }
        Ok(())
    }

    /// Nothing is new: all that is there was told.
    fn has_all(&self, oracle: &Oracle) -> Outcome {
        for alive in oracle.all_alive().map(|item| shown(&item.shown)) {
            if self.mode == FeedMode::AllVersions {
                let known = self.items.get(&text(&alive["_rid"])).map(|(_, item)| item);
                if known != Some(&alive) {
                    return Err(format!("the log does not tell {alive}, but {known:?}"));
                }
            } else if !self.told.contains(&version_of(&alive)) {
                return Err(format!("the feed does not tell {alive}"));
            }
        }
        Ok(())
    }

    /// Nothing is dead and not told.
    fn has_no_more(&self, oracle: &Oracle) -> Outcome {
        let alive = oracle.all_alive().count();
        if self.mode == FeedMode::AllVersions && self.items.len() != alive {
            return Err(format!("{} items have no end, {alive} are alive", self.items.len()));
        }
        Ok(())
    }
}

impl Readers {
    /// Begins to read, before there is anything.
    pub(super) fn begin(
        mut ask: impl FnMut(Operation) -> Outcome<(u16, Value, String)>,
        has_log: bool,
    ) -> Outcome<Readers> {
        let mut readers = Readers::default();
        readers.kept.push(Reader::new(FeedMode::Latest, None));
        if has_log {
            let (_, _, place) = ask(read(FeedMode::AllVersions, ChangesFrom::Now, 1))?;
            readers.kept.push(Reader::new(FeedMode::AllVersions, Some(place)));
        }
        Ok(readers)
    }

    /// One of them goes on to the end. Now and then it is forgotten how far it came.
    pub(super) fn read(
        &mut self,
        number: usize,
        oracle: &Oracle,
        mut ask: impl FnMut(Operation) -> Outcome<(u16, Value, String)>,
    ) -> Outcome {
        let place = number % self.kept.len();
        let mut reader = self.kept[place].clone();
        while reader.page(1 + number % 4, oracle, &self.deleted, &mut ask)? {}
        reader.has_all(oracle)?;
        match number % 3 {
            0 => self.kept[place] = reader,
            1 if self.kept.len() < KEPT_MAX => self.kept.push(reader),
            _ => {}
        }
        Ok(())
    }

    /// All of them go on to the end, when nothing waits for its burial.
    pub(super) fn read_all(
        &mut self,
        oracle: &Oracle,
        mut ask: impl FnMut(Operation) -> Outcome<(u16, Value, String)>,
    ) -> Outcome {
        for reader in &mut self.kept {
            while reader.page(2, oracle, &self.deleted, &mut ask)? {}
            reader.has_all(oracle)?;
            reader.has_no_more(oracle)?;
        }
        Ok(())
    }
}

fn read(mode: FeedMode, from: ChangesFrom, limit: usize) -> Operation {
    Operation::ReadChanges(ReadChanges {
        at: at(),
        part: Part::default(),
        mode,
        from,
        since: None,
        limit: Some(limit),
        envelope: true,
    })
}

/// Names a version: items of different slices may have one etag.
fn version_of(item: &Value) -> String {
    format!("{} {}", item["_rid"], item["_etag"])
}

fn shown(item: &[u8]) -> Value {
    serde_json::from_slice(item).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
