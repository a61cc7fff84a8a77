//! What became of the units of an offer, in each second of the last hour.
//!
//! The current second stands by itself, and a second of before is held if it is not what is
//! believed of one that is not: that nothing was used, and all that was provisioned was left
//! over, as in the second before it. So who only looks at an offer adds nothing to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dayfly_model::meter::{Rate, Units};
use dayfly_storage::Second;

/// How many seconds are told of.
pub const HOUR: u64 = 3600;

/// How many are told of where all ledgers together hold too many.
const SHORT: u64 = 60;

/// How many seconds all ledgers hold before they are made short: some 30 MB.
const HELD_MAX: usize = 500_000;

/// What became of the units of one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LedgerSecond {
    /// The most that users could have, in request units.
    pub(crate) provisioned: u32,
    /// How many requests were refused, or would have been.
    pub(crate) throttled: u32,
    /// What users were charged.
    pub(crate) used: Units,
    /// What they left over.
    pub(crate) overflow: Units,
    /// What the background spent of that.
    pub(crate) background: Units,
}

impl LedgerSecond {
    /// One in which nobody came.
    fn unused(provisioned: u32) -> LedgerSecond {
        let overflow = Rate::of(provisioned, 1).cap();
        LedgerSecond { provisioned, overflow, ..LedgerSecond::default() }
    }

    fn is_used(&self) -> bool {
        self.throttled > 0 || self.used != Units::ZERO || self.background != Units::ZERO
    }
}

/// The seconds of one offer.
pub(crate) struct Ledger {
    /// Those before the current one.
    seconds: BTreeMap<Second, LedgerSecond>,
    /// The last one in which time passed or something happened.
    current: Second,
    now: LedgerSecond,
    /// What all ranges were given last.
    whole: Rate,
    /// The last one in which something happened.
    used: Option<Second>,
    /// How many seconds all ledgers hold.
    held: Arc<AtomicUsize>,
}

impl Ledger {
    /// An empty one, which begins in this second.
    pub(crate) fn new(current: Second, held: Arc<AtomicUsize>) -> Ledger {
        let (seconds, now) = (BTreeMap::new(), LedgerSecond::default());
        Ledger { seconds, current, now, whole: Rate::default(), used: None, held }
    }

    /// A second in which a user or the background does something.
    pub(crate) fn at(&mut self, second: Second, provisioned: u32) -> &mut LedgerSecond {
        self.used = self.used.max(Some(second));
        if second < self.current {
            return self.before(second, provisioned);
        }
        self.go_to(second, provisioned);
        &mut self.now
    }

    /// One that was over when somebody was answered who had been admitted in it.
    fn before(&mut self, second: Second, provisioned: u32) -> &mut LedgerSecond {
        self.seconds.entry(second).or_insert_with(|| {
            self.held.fetch_add(1, Ordering::Relaxed);
            LedgerSecond::unused(provisioned)
        })
    }

    /// Another second is the current one.
    fn go_to(&mut self, second: Second, provisioned: u32) {
        if second > self.current {
            self.put(self.current, self.now);
            (self.current, self.now) = (second, LedgerSecond::default());
        }
        if self.now.provisioned == 0 {
            self.now.provisioned = provisioned;
        }
    }

    /// A second is over. It is held if nobody would believe it otherwise.
    fn put(&mut self, second: Second, of: LedgerSecond) {
        self.drop_before(second);
        let is_usual = match self.seconds.last_key_value() {
            Some((_, before)) => {
                of.provisioned == before.provisioned && of.overflow == self.whole.cap()
            }
            None => true,
        };
        if (of.is_used() || !is_usual) && self.seconds.insert(second, of).is_none() {
            self.held.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Drops what is not told of any more in this second.
    fn drop_before(&mut self, second: Second) {
        let is_much = self.held.load(Ordering::Relaxed) >= HELD_MAX;
        let first = first_of(second, is_much);
        while let Some(oldest) = self.seconds.first_entry().filter(|oldest| *oldest.key() < first) {
            oldest.remove();
            self.held.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// From one millisecond to another so much was left over. It came last: a meter that is
    /// not full takes all that the rate gives.
    pub(crate) fn overflowed(
        &mut self,
        (from_ms, to_ms): (u64, u64),
        overflow: Units,
        whole: Rate,
        provisioned: u32,
    ) {
        self.whole = whole;
        let mut taken = whole.over(to_ms - from_ms) - overflow;
        let mut left_over = |from_ms: u64, to_ms: u64| {
            let given = whole.over(to_ms - from_ms);
            let here = taken.min(given);
            taken -= here;
            given - here
        };
        let last = to_ms / 1000;
        let end_of = |second: Second| ((second + 1) * 1000).min(to_ms);
        self.go_to(from_ms / 1000, provisioned);
        self.now.overflow += left_over(from_ms, end_of(self.current));
        if self.current == last {
            return;
        }
        // Of what was longer ago nothing is told.
        let first = (self.current + 1).max(first_of(last, false));
        left_over(end_of(self.current), (first * 1000).min(to_ms));
        for second in first..last {
            self.go_to(second, provisioned);
            let overflow = left_over(second * 1000, end_of(second));
            self.now.overflow = overflow;
            if overflow == whole.cap() {
                // So it is until the last one.
                break;
            }
        }
        self.go_to(last, provisioned);
        self.now.overflow = left_over(last * 1000, to_ms);
    }

    /// Whether something happened in the hour before this millisecond.
    pub(crate) fn is_used_since(&self, now_ms: u64) -> bool {
        self.used.is_some_and(|used| used >= first_of(now_ms / 1000, false))
    }

    /// The seconds up to the current one, as many as are asked for and known, in their order.
    pub(crate) fn last(&self, count: u64) -> Vec<(Second, LedgerSecond)> {
        let now = self.current;
        let asked = (now + 1).saturating_sub(count).max(first_of(now, false));
        let mut told: Vec<_> = Vec::new();
        let known = self.seconds.range(first_of(now, false)..).next();
        let mut before = self.seconds.range(..asked).next_back().map(|(_, at)| *at);
        if let Some((known, _)) = known {
            for second in asked.max(*known)..now {
                let unheld = || before.map(|before| LedgerSecond::unused(before.provisioned));
                let held = self.seconds.get(&second).copied();
                told.extend(held.or_else(unheld).map(|of| (second, of)));
                before = held.or(before);
            }
        }
        if known.is_some() || self.now.is_used() {
            told.extend((count > 0).then_some((now, self.now)));
        }
        told
    }

    /// The most that was used in one second of the last hour.
    pub(crate) fn highest(&self) -> Units {
        let told = self.seconds.range(first_of(self.current, false)..);
        let told = told.map(|(_, second)| second.used);
        told.max().unwrap_or_default().max(self.now.used)
    }
}

/// The first second that is told of.
fn first_of(last: Second, is_short: bool) -> Second {
    (last + 1).saturating_sub(if is_short { SHORT } else { HOUR })
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.held.fetch_sub(self.seconds.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        Ledger::new(0, Arc::default())
    }

    fn overflows(ledger: &Ledger, count: u64) -> Vec<f64> {
        ledger.last(count).into_iter().map(|(_, second)| second.overflow.ru()).collect()
    }

    #[test]
    fn what_is_left_over_comes_last() {
        let (rate, mut ledger) = (Rate::of(400, 1), ledger());
        ledger.at(10, 400).used += Units::of(700.0);
        // Spent 700 at 10.5: full again at 11.25 when 300 were in debt.
        ledger.overflowed((10_500, 14_200), Units::of(1180.0), rate, 400);
        assert_eq!(overflows(&ledger, 5), [0.0, 300.0, 400.0, 400.0, 80.0]);
        ledger.overflowed((14_200, 14_900), Units::of(280.0), rate, 400);
        assert_eq!(overflows(&ledger, 1), [360.0]);
        // 10 and 11 are not what they would be if nobody had come.
        assert_eq!(ledger.held.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn no_more_than_an_hour_is_held() {
        let mut ledger = ledger();
        for second in 0..10_000 {
            ledger.at(second, 400).used += Units::ONE;
        }
        assert_eq!(ledger.held.load(Ordering::Relaxed), 3600);
        assert_eq!(ledger.last(HOUR).len(), 3600);
        assert!(ledger.is_used_since(13_598_000) && !ledger.is_used_since(13_599_000));
        let held = Arc::clone(&ledger.held);
        drop(ledger);
        assert_eq!(held.load(Ordering::Relaxed), 0);
    }

    /// Whoever looks at it each second lets time pass, and nothing happens in that.
    #[test]
    fn a_second_in_which_nothing_happened_is_not_held() {
        let (rate, mut ledger) = (Rate::of(400, 1), ledger());
        ledger.overflowed((0, 9_999), rate.over(9_999), rate, 400);
        assert!(ledger.last(HOUR).is_empty());
        ledger.at(10, 400).used += Units::of(100.0);
        ledger.overflowed((10_000, 10_999), rate.over(999) - Units::of(100.0), rate, 400);
        for passed in 0..5_000 {
            let from_ms = 10_999 + passed * 700;
            ledger.overflowed((from_ms, from_ms + 700), rate.over(700), rate, 400);
        }
        assert_eq!(ledger.held.load(Ordering::Relaxed), 1);
        assert_eq!(overflows(&ledger, 3), [400.0, 400.0, 399.6]);
        assert!(ledger.is_used_since(3_609_000) && !ledger.is_used_since(3_610_000));
        // A change of the offer is told, too.
        let rate = Rate::of(800, 1);
        ledger.overflowed((3_510_999, 3_515_000), rate.over(4_001), rate, 800);
        assert_eq!(overflows(&ledger, 4), [800.0, 800.0, 800.0, 0.0]);
        assert_eq!(ledger.last(2)[0].1.provisioned, 800);
    }

    /// What was admitted in a second and answered after it is told of in that second.
    #[test]
    fn a_charge_may_come_late() {
        let (rate, mut ledger) = (Rate::of(400, 1), ledger());
        ledger.at(1, 400).used += Units::ONE;
        ledger.overflowed((1_000, 5_500), rate.over(4_499), rate, 400);
        ledger.at(3, 400).used += Units::ONE;
        let told = ledger.last(4).into_iter();
        let told: Vec<_> = told.map(|(at, of)| (at, of.used.ru(), of.overflow.ru())).collect();
        assert_eq!(told, [(2, 0.0, 400.0), (3, 1.0, 400.0), (4, 0.0, 400.0), (5, 0.0, 200.0)]);
    }
}
