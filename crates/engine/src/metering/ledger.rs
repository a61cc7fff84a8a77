//! What became of the units of an offer, in each second of the last hour.
//!
//! Only seconds in which something happened are held. In any other one, from the first that
//! is known to the last, nothing was used, and all that was provisioned was left over.

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

/// The seconds of one offer.
pub(crate) struct Ledger {
    seconds: BTreeMap<Second, LedgerSecond>,
    /// How many seconds all ledgers hold.
    held: Arc<AtomicUsize>,
}

impl Ledger {
    /// An empty one.
    pub(crate) fn new(held: Arc<AtomicUsize>) -> Ledger {
        Ledger { seconds: BTreeMap::new(), held }
    }

    /// A second that something happens in.
    pub(crate) fn at(&mut self, second: Second, provisioned: u32) -> &mut LedgerSecond {
        if !self.seconds.contains_key(&second) {
            self.drop_before(second);
            self.held.fetch_add(1, Ordering::Relaxed);
        }
        let new = LedgerSecond { provisioned, ..LedgerSecond::default() };
        self.seconds.entry(second).or_insert(new)
    }

    /// Drops what is not told of any more in this second.
    fn drop_before(&mut self, second: Second) {
        let is_much = self.held.load(Ordering::Relaxed) >= HELD_MAX;
        let kept = self.seconds.split_off(&first_of(second, is_much));
        let dropped = std::mem::replace(&mut self.seconds, kept);
        self.held.fetch_sub(dropped.len(), Ordering::Relaxed);
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
        let (first, last) = (from_ms / 1000, to_ms / 1000);
        if first == last || self.seconds.is_empty() {
            if let Some(known) = self.seconds.get_mut(&last) {
                known.overflow += overflow;
            } else if overflow < whole.over(to_ms % 1000) {
                self.at(last, provisioned).overflow += overflow;
            }
            return;
        }
        let mut rest = overflow;
        let mut second = last;
        let mut passed_ms = to_ms % 1000;
        while second >= first && second >= first_of(last, false) {
            let most = whole.over(passed_ms);
            let here = rest.min(most);
            rest -= here;
            // A second that is not held says that all of it was left over.
            if here < most || second == first || second == last {
                self.at(second, provisioned).overflow += here;
            }
            if second == 0 {
                break;
            }
            second -= 1;
            passed_ms = if second == first { 1000 - from_ms % 1000 } else { 1000 };
        }
    }

    /// Whether something happened in the hour before this millisecond.
    pub(crate) fn is_told_since(&self, now_ms: u64) -> bool {
        let last = self.seconds.last_key_value();
        last.is_some_and(|(last, _)| *last >= first_of(now_ms / 1000, false))
    }

    /// The seconds up to `now`, as many as are asked for and known, in their order.
    pub(crate) fn last(&self, now: Second, count: u64) -> Vec<(Second, LedgerSecond)> {
        let asked = (now + 1).saturating_sub(count);
        let Some((known, _)) = self.seconds.range(first_of(now, false)..).next() else {
            return Vec::new();
        };
        let mut before = self.seconds.range(..asked.max(*known)).next_back().map(|(_, at)| *at);
        (asked.max(*known)..=now)
            .map(|second| {
                if let Some(known) = self.seconds.get(&second) {
                    before = Some(*known);
                    return (second, *known);
                }
                let provisioned = before.map_or(0, |before| before.provisioned);
                let overflow = Rate::of(provisioned, 1).cap();
                (second, LedgerSecond { provisioned, overflow, ..LedgerSecond::default() })
            })
            .collect()
    }

    /// The most that was used in one second of the last hour.
    pub(crate) fn highest(&self, now: Second) -> Units {
        let told = self.seconds.range(first_of(now, false)..);
        told.map(|(_, second)| second.used).max().unwrap_or_default()
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
        Ledger::new(Arc::default())
    }

    fn overflows(ledger: &Ledger, now: Second, count: u64) -> Vec<f64> {
        ledger.last(now, count).into_iter().map(|(_, second)| second.overflow.ru()).collect()
    }

    #[test]
    fn what_is_left_over_comes_last() {
        let (rate, mut ledger) = (Rate::of(400, 1), ledger());
        ledger.at(10, 400).used += Units::of(700.0);
        // Spent 700 at 10.5: full again at 11.25 when 300 were in debt.
        ledger.overflowed((10_500, 14_200), Units::of(1180.0), rate, 400);
        assert_eq!(overflows(&ledger, 14, 5), [0.0, 300.0, 400.0, 400.0, 80.0]);
        ledger.overflowed((14_200, 14_900), Units::of(280.0), rate, 400);
        assert_eq!(overflows(&ledger, 14, 1), [360.0]);
    }

    #[test]
    fn no_more_than_an_hour_is_held() {
        let mut ledger = ledger();
        for second in 0..10_000 {
            ledger.at(second, 400).used += Units::ONE;
        }
        assert_eq!(ledger.held.load(Ordering::Relaxed), 3600);
        assert_eq!(ledger.last(9_999, HOUR).len(), 3600);
        assert!(ledger.is_told_since(13_598_000) && !ledger.is_told_since(13_599_000));
        let held = Arc::clone(&ledger.held);
        drop(ledger);
        assert_eq!(held.load(Ordering::Relaxed), 0);
    }
}
