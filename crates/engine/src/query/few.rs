//! Whether a query is about few items: then they are read one by one, or sorted
//! in memory, whatever the index could do.
//!
//! What is alive decides, so that a query takes the same way before the purge and
//! after it, and costs the same. Only where more of the dead wait than it is worth
//! to read past, the index is asked all the same: its entries of the dead cost
//! nearly nothing.

use dayfly_model::{Result, Timestamp};
use dayfly_sql::run::{Sieve, ValueSpan};
use dayfly_storage::{Bucket, Direction};

use super::choose::{Chooser, entry_range};
use super::numbers::Set;
use crate::head::State;
use crate::index::walk::EntryRange;
use crate::lives::Lives;
use crate::parts::{Scope, Segment};
use crate::reply::storage_failed;
use crate::settings::QueryLimits;
use crate::standing;

/// How many times as many entries are looked at as are asked for, if some are dead.
const LOOKED_FACTOR: usize = 8;

/// How many entries are read at once.
const PAGE: usize = 256;

/// Of how many conditions that all must hold it is asked how few items have it.
const CONDITIONS_MAX: usize = 4;

/// How many items were met.
#[derive(Clone, Copy, Debug, Default)]
struct MetCount {
    alive: u64,
    dead: u64,
}

impl MetCount {
    fn is_few(self, limits: &QueryLimits) -> bool {
        self.alive <= limits.few_items && self.dead <= limits.few_dead
    }
}

impl Chooser<'_> {
    /// Whether there are few items to look at.
    pub(super) fn is_small(&self, segments: &[Segment]) -> Result<bool> {
        let mut met = MetCount::default();
        for Segment { bucket, scope, .. } in segments {
            let is_known = standing::knows_alone(&*self.opened.snapshot, *bucket);
            if *scope == Scope::Whole && is_known {
                self.meet_all(*bucket, &mut met)?;
            } else {
                self.meet_some(*bucket, scope, &mut met)?;
            }
            if !met.is_few(&self.opened.limits) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// All items of a bucket, from its life histogram. When there are many, they
    /// count as alive, dead or not: either is too many.
    fn meet_all(&self, bucket: Bucket, met: &mut MetCount) -> Result<()> {
        let snapshot = &*self.opened.snapshot;
        let get_many = |keys: &[&[u8]]| snapshot.get_many(bucket, keys);
        let lives = Lives::new(&get_many);
        let limits = &self.opened.limits;
        let few = limits.few_items + limits.few_dead;
        let items = lives.items(few).map_err(storage_failed)?;
        if items > few {
            met.alive += items;
            return Ok(());
        }
        if items == 0 {
            return Ok(());
        }
        let policy = State::policy(&snapshot.head(bucket)).map_err(storage_failed)?;
        let now = Timestamp(snapshot.now());
        let dead = lives.dead_at(policy, now).map_err(storage_failed)?.items;
        met.alive += items.saturating_sub(dead);
        met.dead += dead;
        Ok(())
    }

    /// The items of some partitions, until they are not few.
    fn meet_some(&self, bucket: Bucket, scope: &Scope, met: &mut MetCount) -> Result<()> {
        // One more than are few.
        let chunk = usize::try_from(self.opened.limits.few_items + 1).unwrap_or(usize::MAX);
        for range in scope.ranges() {
            let range = EntryRange::of_partitions(range);
            let mut entries = self.opened.entries(bucket, &range, Direction::Forward)?;
            let mut dead = 0;
            while let Some(page) = entries.page(chunk).map_err(storage_failed)? {
                self.steps.make(1 + page.len() as u64)?;
                met.alive += page.len() as u64;
                met.dead += entries.looked.dead - dead;
                dead = entries.looked.dead;
                if !met.is_few(&self.opened.limits) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether a filter leaves so few items that they are best sorted in memory.
    /// The partition may have few, whatever else is sought in it.
    pub(super) fn is_selective(&self, sieve: &Sieve, segments: &[Segment]) -> Result<bool> {
        match self.set(&self.said.with(sieve), false)? {
            Some(set) => Ok(self.count(&set, segments, self.opened.limits.sorted_items)?.is_some()),
            None => Ok(false),
        }
    }

    /// How many items a set names at most; `None`: not less than `limit`, or there
    /// are ranges in it.
    fn count(&self, set: &Set, segments: &[Segment], limit: usize) -> Result<Option<usize>> {
        match set {
            Set::Point(span) => self.count_of(span, segments, limit),
            Set::Range(_) => Ok(None),
            // One of them is enough to know a limit.
            Set::All(sets) => {
                for set in sets.iter().take(CONDITIONS_MAX) {
                    if let Some(count) = self.count(set, segments, limit)? {
                        return Ok(Some(count));
                    }
                }
                Ok(None)
            }
            Set::Any(sets) => {
                let mut sum = 0;
                for set in sets {
                    match self.count(set, segments, limit - sum)? {
                        Some(count) => sum += count,
                        None => return Ok(None),
                    }
                }
                Ok(Some(sum))
            }
        }
    }

    /// How many entries of items that are alive a span has; `None`: not less than
    /// `limit`, or among too many of the dead.
    fn count_of(
        &self,
        span: &ValueSpan,
        segments: &[Segment],
        limit: usize,
    ) -> Result<Option<usize>> {
        let entry_range = entry_range(span);
        let looked_max = (limit * LOOKED_FACTOR) as u64;
        let mut count = 0;
        for Segment { bucket, .. } in segments {
            let mut entries = self.opened.entries(*bucket, &entry_range, Direction::Forward)?;
            while let Some(page) = entries.page(limit.min(PAGE)).map_err(storage_failed)? {
                self.steps.make(1 + page.len() as u64)?;
                count += page.len();
                if count >= limit || entries.looked.keys > looked_max {
                    return Ok(None);
                }
            }
        }
        Ok(Some(count))
    }
}
