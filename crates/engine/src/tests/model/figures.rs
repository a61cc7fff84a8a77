//! The figures that the oracle expects: plain sums over its items.

use serde_json::{Value, json};

use super::oracle::{Item, Oracle, Policy};
use super::steps::{Default, Ttl};

/// How many stretches of time a forecast has here, and how long they are.
pub(super) const STRETCHES: u32 = 4;
pub(super) const STRETCH_SECONDS: u32 = 2;

fn count<'a>(items: impl Iterator<Item = &'a Item>) -> Value {
    let (mut number, mut bytes) = (0, 0);
    for item in items {
        number += 1;
        bytes += item.shown.len();
    }
    json!({"items": number, "bytes": bytes})
}

/// Whether an item that is alive now is dead at `at`, if nobody does anything.
/// In the second of a change the default before it still counts.
fn dead_at(item: &Item, policy: Policy, at: u64) -> bool {
    let by = |default: Default, second: u64| item.expires(default).is_some_and(|end| end <= second);
    match policy.pending {
        Some((default, from)) if from <= at => by(policy.default, from) || by(default, at),
        _ => by(policy.default, at),
    }
}

/// The first second at which it is dead, if nobody does anything.
fn end(item: &Item, policy: Policy) -> Option<u64> {
    let later = policy.pending.map(|(default, from)| [Some(from), item.expires(default)]);
    let seconds = later.into_iter().flatten().chain([item.expires(policy.default)]).flatten();
    seconds.filter(|second| dead_at(item, policy, *second)).min()
}

impl Oracle {
    /// All that is alive, with its end: the first one first, and last what has none.
    pub(super) fn deaths(&self) -> Vec<(u64, String)> {
        let told = |item: &Item| {
            let text = String::from_utf8(item.shown.to_vec()).unwrap();
            (end(item, self.policies[item.slice]).unwrap_or(u64::MAX), text)
        };
        let mut deaths: Vec<(u64, String)> = self.all_alive().map(told).collect();
        deaths.sort();
        deaths
    }

    fn live_count(&self, which: impl Fn(&Item) -> bool) -> Value {
        count(self.all_alive().filter(|item| which(item)))
    }

    fn uninterpretable(&self) -> usize {
        self.all_alive().filter(|item| item.ttl == Ttl::Odd).count()
    }

    /// What never expires, if nobody does anything.
    fn never(&self) -> Value {
        self.live_count(|item| !dead_at(item, self.policies[item.slice], u64::MAX))
    }

    /// As `ReadTtl` shows it.
    pub(super) fn status(&self) -> Value {
        let backlog = count(self.items.values().filter(|item| item.dead));
        json!({
            "now": self.now,
            "live": self.live_count(|_| true),
            "never": self.never(),
            "uninterpretable": self.uninterpretable(),
            "backlog": backlog,
        })
    }

    /// The changes of the default, as `ReadTtl` shows them, but for their times.
    /// All buckets have the same ones, once none is on its way.
    pub(super) fn history(&self) -> Vec<Value> {
        let first = self.changes.first().into_iter().flatten().enumerate();
        first
            .map(|(place, change)| {
                let condemned: usize =
                    self.changes.iter().map(|changes| changes[place].condemned).sum();
                json!({"from": change.from, "to": change.to, "condemnedItems": condemned})
            })
            .collect()
    }

    /// As `ForecastTtl` shows it.
    pub(super) fn forecast(&self) -> Value {
        let dead = |item: &Item, at| dead_at(item, self.policies[item.slice], at);
        let edge = |stretch: u32| self.now + u64::from(stretch * STRETCH_SECONDS);
        let buckets: Vec<Value> = (0..STRETCHES)
            .map(|stretch| {
                let (from, to) = (edge(stretch), edge(stretch + 1));
                let ends = |item: &Item| dead(item, to) && !dead(item, from);
                let explicit =
                    self.all_alive().filter(|item| ends(item) && matches!(item.ttl, Ttl::After(_)));
                let mut row = self.live_count(ends);
                row["from"] = from.into();
                row["to"] = to.into();
                row["explicitItems"] = explicit.count().into();
                row
            })
            .collect();
        let end = edge(STRETCHES);
        json!({
            "now": self.now,
            "buckets": buckets,
            "later": self.live_count(|item| dead(item, u64::MAX) && !dead(item, end)),
            "never": self.never(),
        })
    }

    /// As `WhatIfTtl` shows it.
    pub(super) fn what_if(&self, default: Default) -> Value {
        let expired = |seconds: u64| {
            self.live_count(|item| {
                item.expires(default).is_some_and(|end| end <= self.now + seconds)
            })
        };
        let by_default = || {
            let waits = |item: &&Item| matches!(item.ttl, Ttl::Absent | Ttl::Odd);
            self.all_alive().filter(waits).map(|item| item.ts)
        };
        json!({
            "now": self.now,
            "expired": expired(0),
            "expiredInHour": expired(3600),
            "expiredInDay": expired(24 * 3600),
            "oldestTs": by_default().min(),
            "newestTs": by_default().max(),
            "later": self.live_count(|item| {
                item.expires(default).is_some_and(|end| end > self.now + 24 * 3600)
            }),
            "never": self.live_count(|item| item.expires(default).is_none()),
            "live": self.live_count(|_| true),
            "uninterpretable": self.uninterpretable(),
        })
    }
}
