//! What ought to be: items with a mark "dead", which is set the second an item
//! expires under the default of that second, and is never taken away.
//!
//! It knows no watermarks, no stamps and no queues, and goes through time
//! second by second.

use std::collections::BTreeMap;

use bytes::Bytes;
use dayfly_model::ErrorKind;
use dayfly_model::rid::ItemRid;

use super::steps::{Act, Batch, Default, Place, Ttl, TtlPatch, Write};
use crate::operation::BatchMode;

/// An item that is stored, dead or alive.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) ts: u64,
    pub(super) ttl: Ttl,
    email: u64,
    /// What a read returns.
    pub(super) shown: Bytes,
    pub(super) slice: usize,
    pub(super) dead: bool,
}

impl Item {
    /// When it expires, if the default stays.
    pub(super) fn expires(&self, default: Default) -> Option<u64> {
        let lives = match (default?, self.ttl) {
            (_, Ttl::Never) => return None,
            (_, Ttl::After(seconds)) => seconds,
            (-1, Ttl::Absent | Ttl::Odd) => return None,
            (seconds, Ttl::Absent | Ttl::Odd) => seconds.unsigned_abs(),
        };
        Some(self.ts + lives)
    }
}

/// The default of one bucket, and one that is to come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policy {
    pub(super) default: Default,
    pub(super) pending: Option<(Default, u64)>,
}

/// What the container's definition says, and until when the one before counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Definition {
    default: Default,
    delayed: Option<(Default, u64)>,
}

impl Definition {
    pub(super) fn in_force(self, now: u64) -> Default {
        match self.delayed {
            Some((before, until)) if now < until => before,
            _ => self.default,
        }
    }

    /// The definition after a change that is asked for at `now`.
    pub(super) fn changed(self, default: Default, now: u64, delay: u64) -> Definition {
        let in_force = self.in_force(now);
        let waits = self.delayed.is_some_and(|(_, until)| now < until);
        if waits && default == self.default {
            return self;
        }
        let delayed = (delay > 0 && default != in_force).then_some((in_force, now + delay));
        Definition { default, delayed }
    }
}

/// A change of a bucket's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) from: Default,
    pub(super) to: Default,
    pub(super) condemned: usize,
}

#[derive(Clone)]
pub(super) struct Oracle {
    pub(super) items: BTreeMap<Place, Item>,
    /// One for each bucket.
    pub(super) policies: Vec<Policy>,
    /// The last second that anybody saw.
    pub(super) now: u64,
    /// The changes of each bucket's default, with how many items each expired.
    pub(super) changes: Vec<Vec<Changed>>,
    /// Anything is not as it was when somebody last looked.
    pub(super) changed: bool,
    /// Which bucket a partition key belongs to.
    slices: BTreeMap<&'static str, usize>,
}

impl Oracle {
    pub(super) fn new(slices: usize, slice_of: impl Fn(&str) -> usize, now: u64) -> Oracle {
        Oracle {
            items: BTreeMap::new(),
            policies: vec![Policy::default(); slices],
            now,
            changes: vec![Vec::new(); slices],
            changed: true,
            slices: Place::all().map(|place| (place.key, slice_of(place.key))).collect(),
        }
    }

    /// Lets time pass, second by second.
    pub(super) fn pass(&mut self, now: u64) {
        for second in self.now + 1..=now {
            self.now = second;
            self.changed = true;
            self.bury_expired();
            for policy in &mut self.policies {
                if let Some((default, at)) = policy.pending
                    && at == second
                {
                    *policy = Policy { default, pending: None };
                }
            }
            self.bury_expired();
        }
    }

    /// What has expired in this second is dead for ever.
    fn bury_expired(&mut self) {
        for item in self.items.values_mut() {
            let expires = item.expires(self.policies[item.slice].default);
            item.dead |= expires.is_some_and(|at| at <= self.now);
        }
    }

    /// A definition reaches a bucket now.
    pub(super) fn install(&mut self, slice: usize, definition: Definition) {
        self.changed = true;
        let policy = &mut self.policies[slice];
        match definition.delayed {
            Some((_, until)) if self.now < until => {
                let differs = definition.default != policy.default;
                policy.pending = differs.then_some((definition.default, until));
            }
            _ => {
                let (from, to) = (policy.default, definition.default);
                *policy = Policy { default: to, pending: None };
                let alive = self.all_alive().count();
                self.bury_expired();
                if from != to {
                    let condemned = alive - self.all_alive().count();
                    self.changes[slice].push(Changed { from, to, condemned });
                }
            }
        }
    }

    pub(super) fn alive(&self, place: Place) -> Option<&Item> {
        self.items.get(&place).filter(|item| !item.dead)
    }

    pub(super) fn all_alive(&self) -> impl Iterator<Item = &Item> {
        self.items.values().filter(|item| !item.dead)
    }

    /// What is alive, range by range, in the order in which it was made.
    pub(super) fn list(&self, range_of: impl Fn(&str) -> usize) -> Vec<String> {
        let alive = self.items.iter().filter(|(_, item)| !item.dead);
        let mut alive: Vec<_> =
            alive.map(|(place, item)| (range_of(place.key), made(item))).collect();
        alive.sort();
        alive.into_iter().map(|(_, (_, text))| text).collect()
    }

    /// What a write answers now.
    pub(super) fn judge(&self, write: &Write) -> Result<u16, ErrorKind> {
        let alive = self.alive(write.place).is_some();
        let status = match (write.act, alive) {
            (Act::Clear, _) => return Ok(200),
            (Act::Create, true) => return Err(ErrorKind::Conflict),
            (Act::Replace | Act::Rename(_) | Act::Patch(_) | Act::Delete, false) => {
                return Err(ErrorKind::NotFound);
            }
            (Act::Delete, true) => return Ok(204),
            (Act::Create | Act::Upsert, false) => 201,
            (Act::Upsert | Act::Replace | Act::Rename(_) | Act::Patch(_), true) => 200,
        };
        let target = write.target();
        if target.id != write.place.id && self.alive(target).is_some() {
            return Err(ErrorKind::Conflict);
        }
        let slice = self.slices[write.place.key];
        let Some(ttl) = self.ttl_after(write) else { return Err(ErrorKind::BadRequest) };
        if ttl == Ttl::Odd && self.policies[slice].default.is_some() {
            return Err(ErrorKind::BadRequest);
        }
        if self.rivals(write).any(|(_, item)| !item.dead) {
            return Err(ErrorKind::Conflict);
        }
        Ok(status)
    }

    /// What each write of a batch answers now. One that fails takes the others with it, or
    /// those behind it, or none.
    pub(super) fn judge_batch(&self, batch: &Batch) -> Vec<Result<u16, ErrorKind>> {
        let dependent = Err(ErrorKind::FailedDependency);
        let mut after = self.clone();
        let mut judged = Vec::new();
        for write in &batch.writes {
            let has_failed = judged.iter().any(Result::is_err);
            let goes_on = batch.mode == BatchMode::GoesOn || !has_failed;
            let answer = if goes_on { after.judge(write) } else { dependent };
            match answer {
                Ok(_) => after.apply(write, Bytes::new()),
                Err(_) if batch.mode == BatchMode::Atomic => {
                    for before in judged.iter_mut().filter(|before| before.is_ok()) {
                        *before = dependent;
                    }
                }
                Err(_) => {}
            }
            judged.push(answer);
        }
        judged
    }

    /// The `ttl` of the item after the write; `None` if it is to be removed and is not there.
    fn ttl_after(&self, write: &Write) -> Option<Ttl> {
        let before = self.alive(write.place).map(|item| item.ttl);
        match write.act {
            Act::Patch(TtlPatch::Set) if write.ttl == Ttl::Absent => before,
            Act::Patch(TtlPatch::Keep) => before,
            Act::Patch(TtlPatch::Remove) => {
                before.filter(|ttl| *ttl != Ttl::Absent).map(|_| Ttl::Absent)
            }
            _ => Some(write.ttl),
        }
    }

    /// Others in the same logical partition that have the unique key.
    fn rivals(&self, write: &Write) -> impl Iterator<Item = (&Place, &Item)> {
        let (place, target, email) = (write.place, write.target(), write.email);
        self.items.iter().filter(move |(other, item)| {
            let is_same = other.id == place.id || other.id == target.id;
            other.key == place.key && !is_same && item.email == email
        })
    }

    /// Who ends by a write that was judged good.
    pub(super) fn deleted_by(&self, write: &Write) -> impl Iterator<Item = &Item> {
        let ends = move |place: &Place| match write.act {
            Act::Delete => *place == write.place,
            Act::Clear => place.key == write.place.key,
            _ => false,
        };
        let gone = self.items.iter().filter(move |(place, item)| ends(place) && !item.dead);
        gone.map(|(_, item)| item)
    }

    /// Does a write that was judged good. A dead item in its way goes.
    pub(super) fn apply(&mut self, write: &Write, shown: Bytes) {
        self.changed = true;
        match write.act {
            Act::Delete => return drop(self.items.remove(&write.place)),
            Act::Clear => return self.items.retain(|place, _| place.key != write.place.key),
            _ => {}
        }
        let ttl = self.ttl_after(write).expect("it was judged good");
        let rivals: Vec<Place> = self.rivals(write).map(|(place, _)| *place).collect();
        for rival in rivals {
            self.items.remove(&rival);
        }
        let (ts, slice) = (self.now, self.slices[write.place.key]);
        let Write { email, place, .. } = *write;
        self.items.remove(&place);
        self.items.insert(write.target(), Item { ts, ttl, email, shown, slice, dead: false });
    }

    /// Who is dead.
    pub(super) fn dead(&self) -> Vec<(Place, Bytes)> {
        let dead = self.items.iter().filter(|(_, item)| item.dead);
        dead.map(|(place, item)| (*place, item.shown.clone())).collect()
    }

    /// Those who were dead leave no trace.
    pub(super) fn purge(&mut self, dead: &[(Place, Bytes)]) {
        self.changed = true;
        for (place, shown) in dead {
            if self.items.get(place).is_some_and(|item| item.shown == *shown) {
                self.items.remove(place);
            }
        }
    }
}

/// The number of an item, and its text.
fn made(item: &Item) -> (u64, String) {
    let shown: serde_json::Value = serde_json::from_slice(&item.shown).unwrap();
    let rid = ItemRid::parse(shown["_rid"].as_str().unwrap()).unwrap();
    (rid.docno, shown.to_string())
}
