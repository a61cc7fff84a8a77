//! The meters of one offer, and what the background may spend of what they leave over.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use dayfly_model::meter::{BUCKETS, Meter, Rate, Service, Tariff, Throttled, Units};

use super::{Ledger, Offered};
use crate::settings::ThroughputMode;

/// The background may save up what is left over in so many seconds.
const ALLOWANCE_SECONDS: u32 = 2;

/// What a large backlog gets in any case, in percent of the rate.
const FORCED_PERCENT: u8 = 5;

/// For so long it does, from when somebody saw it last.
const FORCED_MS: u64 = 5_000;

/// What deletes of whole partitions get at most, in percent of the rate.
const SWEEP_PERCENT: u8 = 10;

/// Whoever waits for a turn and does not ask for so long has given it up.
const PATIENCE_MS: u64 = 5_000;

/// What the background does with what is left over. Each has one unit of its work in turn, so
/// that none of them takes all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    /// To remove what has expired, and what was deleted with its partition.
    Purge,
    /// To rebuild an index.
    Rebuild,
    /// To clear what deleted containers left.
    Clear,
}

/// Sums since a purse was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// What users were charged.
    pub(crate) used: Units,
    /// What they left over.
    pub(crate) overflow: Units,
    /// What the background spent of that.
    pub(crate) background: Units,
    /// How many requests were refused, or would have been.
    pub(crate) throttled: u64,
}

/// What is known of an offer that is in use. A value: it changes by what happens, and when.
pub(crate) struct Purse {
    /// Up to when all of it is, in milliseconds.
    at_ms: u64,
    offered: Arc<Offered>,
    tariff: Tariff,
    /// What an operator said; nothing is the mode of the server.
    mode: Option<ThroughputMode>,
    /// One for each range.
    meters: Vec<Meter>,
    /// What the background may spend; below 0 it has spent some in advance.
    allowance: Units,
    /// What deletes of whole partitions have spent of their part.
    swept: Units,
    /// Who wants to spend some, in the order of their turns, and when they said so last.
    line: VecDeque<(Chore, u64)>,
    /// Until when the background gets a little whatever users leave over, in milliseconds.
    forced_until_ms: u64,
    spent: Spent,
    ledger: Ledger,
}

impl Purse {
    /// The purse of an offer that nobody used from the first of these times to the second.
    pub(crate) fn new(
        offered: &Arc<Offered>,
        burst: bool,
        ledger: Ledger,
        (since_ms, now_ms): (u64, u64),
    ) -> Purse {
        let tariff = Tariff { rate: rate(offered), burst, shares: [None; BUCKETS] };
        let rested = Meter::rested(&tariff, now_ms.saturating_sub(since_ms));
        let mut purse = Purse {
            at_ms: now_ms,
            meters: vec![rested; offered.ranges.len()],
            offered: Arc::clone(offered),
            tariff,
            mode: None,
            allowance: Units::ZERO,
            swept: Units::ZERO,
            line: VecDeque::new(),
            forced_until_ms: 0,
            spent: Spent::default(),
            ledger,
        };
        purse.credit(purse.whole().over(now_ms.saturating_sub(since_ms)));
        purse
    }

    pub(crate) fn offered(&self) -> &Offered {
        &self.offered
    }

    pub(crate) fn spent(&self) -> Spent {
        self.spent
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What a throughput bucket may take of the rate, for each of them.
    pub(crate) fn shares(&self) -> [Option<u8>; BUCKETS] {
        self.tariff.shares
    }

    /// Whether requests are refused, given what holds where nothing was said.
    pub(crate) fn mode(&self, usual: ThroughputMode) -> ThroughputMode {
        self.mode.unwrap_or(usual)
    }

    /// What all ranges have together.
    fn whole(&self) -> Rate {
        self.tariff.rate.times(self.meters.len())
    }

    /// The offer was changed, or the ranges were, perhaps.
    pub(crate) fn adapt(&mut self, offered: &Arc<Offered>, now_ms: u64) {
        // Whoever asks may have an older snapshot.
        if Arc::ptr_eq(&self.offered, offered) || offered.lsn < self.offered.lsn {
            return;
        }
        if self.offered.says_the_same(offered) {
            self.offered = Arc::clone(offered);
            return;
        }
        self.pass(now_ms);
        let (old, tariff) = (self.tariff, Tariff { rate: rate(offered), ..self.tariff });
        let ranges = std::mem::take(&mut self.meters).into_iter();
        let mut known: Vec<_> = self.offered.ranges.iter().copied().zip(ranges).collect();
        for (_, meter) in &mut known {
            meter.change(&old, &tariff);
        }
        // A range that is new has not been used.
        let mut meter_of = |range: &u32| {
            let place = known.iter().position(|(known, _)| known == range);
            place.map(|place| known.swap_remove(place).1).unwrap_or_default()
        };
        self.meters = offered.ranges.iter().map(&mut meter_of).collect();
        (self.tariff, self.offered) = (tariff, Arc::clone(offered));
    }

    /// An operator says whether requests are refused; `None` is what holds for the server.
    /// The meters begin anew: full, and with nothing left over.
    pub(crate) fn set_mode(&mut self, mode: Option<ThroughputMode>, now_ms: u64) {
        self.pass(now_ms);
        self.mode = mode;
        self.meters.fill(Meter::default());
        (self.allowance, self.swept) = (Units::ZERO, Units::ZERO);
    }

    /// An operator says what throughput buckets may take.
    pub(crate) fn set_shares(&mut self, shares: [Option<u8>; BUCKETS], now_ms: u64) {
        self.pass(now_ms);
        self.tariff.shares = shares;
    }

    /// Time passes.
    pub(crate) fn pass(&mut self, now_ms: u64) {
        let Some(passed) = now_ms.checked_sub(self.at_ms).filter(|passed| *passed > 0) else {
            return;
        };
        let tariff = &self.tariff;
        let overflow: Units = self.meters.iter_mut().map(|meter| meter.pass(tariff, passed)).sum();
        let forced_ms = self.forced_until_ms.min(now_ms).saturating_sub(self.at_ms);
        let forced = self.whole().percent(FORCED_PERCENT).over(forced_ms);
        self.credit(overflow.max(forced));
        let sweep = self.whole().percent(SWEEP_PERCENT);
        self.swept = (self.swept - sweep.over(passed)).or_none();
        self.spent.overflow += overflow;
        let (whole, max) = (self.whole(), self.offered.max);
        self.ledger.overflowed((self.at_ms, now_ms), overflow, whole, max);
        self.at_ms = now_ms;
    }

    fn credit(&mut self, overflow: Units) {
        let most = self.whole().cap().times(ALLOWANCE_SECONDS);
        self.allowance = (self.allowance + overflow).min(most);
    }

    /// Whether a request that touches these ranges is carried out, and if so, whether it is
    /// one that would be, if the offer were enforced.
    pub(crate) fn admit(
        &mut self,
        now_ms: u64,
        usual: ThroughputMode,
        places: &Range<usize>,
        service: Service,
    ) -> Result<bool, Throttled> {
        self.pass(now_ms);
        let touched = self.meters.get(places.clone()).unwrap_or_default();
        let refused = touched.iter().filter_map(|meter| meter.admit(&self.tariff, service).err());
        let Some(throttled) = refused.max_by_key(|throttled| throttled.wait_ms) else {
            return Ok(true);
        };
        self.spent.throttled += 1;
        let second = self.ledger.at(now_ms / 1000, self.offered.max);
        second.throttled = second.throttled.saturating_add(1);
        match self.mode(usual) {
            ThroughputMode::Enforced => Err(throttled),
            ThroughputMode::Measured => Ok(false),
        }
    }

    /// A request was answered. What was touched by it pays in equal parts, if it pays at all.
    pub(crate) fn take(
        &mut self,
        now_ms: u64,
        places: &Range<usize>,
        service: Service,
        (charge, counts): (Units, bool),
    ) {
        self.pass(now_ms);
        self.spent.used += charge;
        self.ledger.at(now_ms / 1000, self.offered.max).used += charge;
        if !counts {
            return;
        }
        let touched = self.meters.get_mut(places.clone()).unwrap_or_default();
        let parts = touched.len();
        for (place, meter) in touched.iter_mut().enumerate() {
            meter.take(&self.tariff, service, charge.part(place, parts));
        }
    }

    /// What the background may spend now.
    pub(crate) fn left_over(&mut self, now_ms: u64) -> Units {
        self.pass(now_ms);
        self.allowance
    }

    /// What a chore may spend now: nothing, while it is the turn of another one. It stands in
    /// line from now on, until it has spent some or leaves.
    pub(crate) fn ask(&mut self, now_ms: u64, chore: Chore) -> Units {
        self.line.retain(|(_, asked_ms)| now_ms < asked_ms.saturating_add(PATIENCE_MS));
        match self.line.iter_mut().find(|(known, _)| *known == chore) {
            Some((_, asked_ms)) => *asked_ms = now_ms,
            None => self.line.push_back((chore, now_ms)),
        }
        let is_first = self.line.front().is_some_and(|(first, _)| *first == chore);
        if is_first { self.left_over(now_ms) } else { Units::ZERO }
    }

    /// A chore has had its turn, or has nothing to do.
    pub(crate) fn leave(&mut self, chore: Chore) {
        self.line.retain(|(known, _)| *known != chore);
    }

    /// How much of it deletes of whole partitions may spend.
    pub(crate) fn for_sweeps(&self, left_over: Units) -> Units {
        let part = self.whole().percent(SWEEP_PERCENT).cap() - self.swept;
        left_over.min(part)
    }

    /// The background has done what would cost so much; `is_limited` says that it lives on
    /// what is left over.
    pub(crate) fn spend(&mut self, now_ms: u64, charge: Units, is_limited: bool, sweeps: bool) {
        self.pass(now_ms);
        self.spent.background += charge;
        self.ledger.at(now_ms / 1000, self.offered.max).background += charge;
        if is_limited {
            self.allowance -= charge;
        }
        if is_limited && sweeps {
            self.swept += charge;
        }
    }

    /// Much waits for the background somewhere, so it gets a little for a while, whatever users
    /// leave over. Whoever shares the offer and has less to do takes nothing of that back.
    pub(crate) fn force(&mut self, now_ms: u64) {
        self.pass(now_ms);
        self.forced_until_ms = now_ms.saturating_add(FORCED_MS);
    }

    pub(crate) fn is_forced(&self, now_ms: u64) -> bool {
        now_ms < self.forced_until_ms
    }

    /// What is left of each range, and its rate.
    pub(crate) fn levels(&self) -> (Rate, Vec<Units>) {
        let levels = self.meters.iter().map(|meter| meter.level(&self.tariff));
        (self.tariff.rate, levels.collect())
    }

    /// Whether one that is made anew would be the same, and has the same to tell.
    pub(crate) fn is_idle(&self, now_ms: u64) -> bool {
        let is_set = self.mode.is_some() || self.tariff.shares.iter().any(Option::is_some);
        if is_set || self.is_forced(now_ms) || self.ledger.is_used_since(now_ms) {
            return false;
        }
        let passed = now_ms.saturating_sub(self.at_ms);
        let is_full = |meter: &Meter| {
            let mut later = meter.clone();
            later.pass(&self.tariff, passed);
            later.is_full(&self.tariff)
        };
        self.meters.iter().all(is_full)
    }
}

/// What each range is given.
fn rate(offered: &Offered) -> Rate {
    Rate::of(offered.max, offered.ranges.len())
}
