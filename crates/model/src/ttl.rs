//! When does an item expire, and what happens when the rules change?
//!
//! Two settings decide, one on the container and one on the item:
//!
//! | container \ item | no `ttl`      | `ttl: -1` | `ttl: n`      |
//! |------------------|---------------|-----------|---------------|
//! | no default       | never         | never     | never         |
//! | default -1       | never         | never     | `_ts + n`     |
//! | default d        | `_ts + d`     | never     | `_ts + n`     |
//!
//! An item is gone at second `_ts + ttl` itself.
//!
//! **Life stamp.** Every version of an item carries a [`Life`]: which of the
//! three columns it is in, and the second that decides. The stamp is written
//! always, also while the container has no default, so that turning time to
//! live on needs no pass over the items.
//!
//! **Two cuts.** With the container's [`Policy`] and the time, liveness is one
//! comparison: an item is dead when its stamp is at or before the cut of its
//! class. The cuts are computed once per request.
//!
//! ```text
//! inherit cut  = max(Wi, now - d)   d the default, if there is one
//! explicit cut = max(We, now)       if a default is present, -1 included
//! ```
//!
//! **Never back.** When the default changes at second T, the watermarks Wi and
//! We become the old policy's cuts at T. So cuts never fall, whatever follows:
//! what was dead stays dead, and a change costs the same for one item and for
//! a hundred million.
//!
//! **Counted from a property.** A container may name a property that lives are counted
//! from, instead of `_ts` (`ttlPropertyPath`). Then commit order is not the order of ends,
//! and one cut for all who inherit would be wrong: a base that is older than Wi may belong
//! to an item that is younger than the change. So the end of such an item is fixed when it
//! is written, [`ItemTtl::Until`], and it is one with a `ttl` of its own to everybody else.
//! That is exact as long as the default does not change under it: whoever changes
//! containers sees to that.
//!
//! **Delayed.** A change may be [`Pending`]: it takes place at a second that is
//! known, so nothing has to happen then. [`Policy::at`] says which policy is
//! in force.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::time::Timestamp;

/// The last second of the year 9999.
const SECOND_LAST: i64 = 253_402_300_799;

/// The largest time to live, in seconds.
pub const TTL_MAX: u32 = 2_147_483_647;

/// The container's `defaultTtl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerTtl {
    /// Absent: nothing in this container expires.
    #[default]
    Off,
    /// -1: only items with a `ttl` of their own expire.
    NoDefault,
    /// n: items expire n seconds after their last write.
    Default(u32),
}

/// The item's `ttl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemTtl {
    /// Absent: the container's default applies.
    Inherit,
    /// -1: this item never expires.
    Never,
    /// n: this item expires n seconds after its last write.
    After(u32),
    /// Something else, written while the container had no default. It counts
    /// as absent.
    Opaque,
    /// Gone at this second, whenever it is written.
    Until(Timestamp),
}

/// The life stamp of one version of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// No `ttl`: lives by the container's default from this `_ts` on.
    Inherit(Timestamp),
    /// A `ttl` of its own: gone at this second.
    Explicit(Timestamp),
    /// `ttl: -1`.
    Never,
    /// A `ttl` that cannot be read; as [`Life::Inherit`].
    Opaque(Timestamp),
}

/// What a container says about the life of its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The default.
    pub default: ContainerTtl,
    /// Wi: items that inherit, with a `_ts` up to this, died under an earlier
    /// default.
    pub inherit_watermark: Timestamp,
    /// We: items with a `ttl` that ended up to this second died while time to
    /// live was on.
    pub explicit_watermark: Timestamp,
    /// When Wi was last raised.
    pub raised_at: Timestamp,
    /// Since when this default counts; 0: since the container was made.
    pub changed_at: Timestamp,
    /// A change that is still to come.
    pub pending: Option<Pending>,
}

/// A change of the default that takes place later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The default from then on.
    pub default: ContainerTtl,
    /// The first second it counts.
    pub at: Timestamp,
}

/// The last stamps that are dead, one for each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuts {
    /// For items that inherit: the last dead `_ts`.
    pub inherit: Timestamp,
    /// For items with a `ttl`: the last dead expiry.
    pub explicit: Timestamp,
}

impl ContainerTtl {
    /// Reads `defaultTtl`. JSON null means absent, unless `strict`.
    pub fn parse(value: Option<&RawValue>, strict: bool) -> Result<ContainerTtl> {
        match value.map(RawValue::get) {
            None => Ok(ContainerTtl::Off),
            Some("null") if !strict => Ok(ContainerTtl::Off),
            Some(token) => match seconds(token) {
                Some(Seconds::Never) => Ok(ContainerTtl::NoDefault),
                Some(Seconds::After(n)) => Ok(ContainerTtl::Default(n)),
                None => Err(invalid("defaultTtl", token)),
            },
        }
    }

    /// As `defaultTtl` is written; absent when off.
    pub fn to_json(self) -> Option<i64> {
        match self {
            ContainerTtl::Off => None,
            ContainerTtl::NoDefault => Some(-1),
            ContainerTtl::Default(n) => Some(i64::from(n)),
        }
    }

    /// Whether a `ttl` on an item counts.
    pub fn is_on(self) -> bool {
        self != ContainerTtl::Off
    }
}

impl ItemTtl {
    /// Reads the item's `ttl`. A number must be one that can be; anything else is taken
    /// while the container has no default, since then it is not interpreted.
    pub fn parse(value: Option<&RawValue>, container: ContainerTtl) -> Result<ItemTtl> {
        let Some(token) = value.map(RawValue::get) else { return Ok(ItemTtl::Inherit) };
        match seconds(token) {
            Some(Seconds::Never) => Ok(ItemTtl::Never),
            Some(Seconds::After(n)) => Ok(ItemTtl::After(n)),
            None if container.is_on() || is_number(token) => Err(invalid("ttl", token)),
            None => Ok(ItemTtl::Opaque),
        }
    }

    /// The life stamp of a version written at `written_at`.
    pub fn life(self, written_at: Timestamp) -> Life {
        match self {
            ItemTtl::Inherit => Life::Inherit(written_at),
            ItemTtl::Never => Life::Never,
            ItemTtl::After(n) => Life::Explicit(written_at.plus(n)),
            ItemTtl::Opaque => Life::Opaque(written_at),
            ItemTtl::Until(end) => Life::Explicit(end),
        }
    }

    /// The same, counted from the second `base` instead of from the write.
    pub fn counted_from(self, base: i64, default: ContainerTtl) -> ItemTtl {
        let seconds = match (self, default) {
            (ItemTtl::After(n), _) => n,
            (ItemTtl::Inherit | ItemTtl::Opaque, ContainerTtl::Default(n)) => n,
            _ => return self,
        };
        let end = base.saturating_add(i64::from(seconds));
        ItemTtl::Until(Timestamp(u64::try_from(end).unwrap_or_default()))
    }
}

/// The second that a property names, if it is a number. Those of the year 10000 and later
/// are all alike: no clock comes there.
pub fn base(value: Option<&RawValue>) -> Option<i64> {
    let token = value?.get();
    let number: f64 = if is_number(token) { token.parse().ok()? } else { return None };
    #[expect(clippy::cast_possible_truncation, reason = "what is too large is cut off")]
    let second = number.floor() as i64;
    Some(second.clamp(0, SECOND_LAST))
}

fn is_number(token: &str) -> bool {
    token.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

impl Life {
    /// The stamp as 8 bytes: two bits of class, then the second.
    pub fn to_bits(self) -> u64 {
        match self {
            Life::Inherit(ts) => clamped(ts),
            Life::Explicit(at) => (1 << 62) | clamped(at),
            Life::Never => 2 << 62,
            Life::Opaque(ts) => (3 << 62) | clamped(ts),
        }
    }

    /// Reads what [`Life::to_bits`] wrote.
    pub fn from_bits(bits: u64) -> Life {
        let second = Timestamp(bits & SECOND_BITS);
        match bits >> 62 {
            0 => Life::Inherit(second),
            1 => Life::Explicit(second),
            2 => Life::Never,
            _ => Life::Opaque(second),
        }
    }

    /// Whether an item with this stamp is dead, given the cuts.
    pub fn is_dead(self, cuts: Cuts) -> bool {
        match self {
            Life::Inherit(ts) | Life::Opaque(ts) => ts <= cuts.inherit,
            Life::Explicit(at) => at <= cuts.explicit,
            Life::Never => false,
        }
    }

    /// The second from which an item with this stamp is dead, if the policy
    /// stays as it is and the item is alive now.
    pub fn expires_at(self, default: ContainerTtl) -> Option<Timestamp> {
        match (default, self) {
            (ContainerTtl::Off, _) => None,
            (_, Life::Never) => None,
            (_, Life::Explicit(at)) => Some(at),
            (ContainerTtl::NoDefault, Life::Inherit(_) | Life::Opaque(_)) => None,
            (ContainerTtl::Default(d), Life::Inherit(ts) | Life::Opaque(ts)) => Some(ts.plus(d)),
        }
    }
}

impl Policy {
    /// The policy in force at `now`.
    pub fn at(self, now: Timestamp) -> Policy {
        match self.pending {
            Some(pending) if pending.at <= now => {
                Policy { pending: None, ..self }.changed(pending.default, pending.at)
            }
            _ => self,
        }
    }

    /// The cuts at `now`.
    ///
    /// A watermark of 0 means none: no item is written in second 0.
    pub fn cuts(self, now: Timestamp) -> Cuts {
        let policy = self.at(now);
        let by_default = match policy.default {
            ContainerTtl::Default(d) => now.minus(d),
            ContainerTtl::Off | ContainerTtl::NoDefault => Timestamp(0),
        };
        let by_ttl = if policy.default.is_on() { now } else { Timestamp(0) };
        Cuts {
            inherit: policy.inherit_watermark.max(by_default),
            explicit: policy.explicit_watermark.max(by_ttl),
        }
    }

    /// The policy after the default changed to `default` at second `at`. What
    /// was still to come is forgotten.
    pub fn changed(self, default: ContainerTtl, at: Timestamp) -> Policy {
        let cuts = self.cuts(at);
        let before = self.at(at);
        let raised = cuts.inherit > before.inherit_watermark;
        let next = Policy {
            default,
            inherit_watermark: cuts.inherit,
            explicit_watermark: cuts.explicit,
            raised_at: if raised { at } else { before.raised_at },
            changed_at: at,
            pending: None,
        };
        let after = next.cuts(at);
        debug_assert!(after.inherit >= cuts.inherit && after.explicit >= cuts.explicit);
        next
    }

    /// The policy at `now`, with a change to `default` at second `at`. A change
    /// to what it is already takes back the one that was to come.
    pub fn delayed(self, default: ContainerTtl, now: Timestamp, at: Timestamp) -> Policy {
        let policy = self.at(now);
        let pending = (default != policy.default).then_some(Pending { default, at });
        Policy { pending, ..policy }
    }

    /// The second from which an item that is alive at `now` is dead, if nothing
    /// is written and no more is changed than what is to come.
    pub fn dies_at(self, life: Life, now: Timestamp) -> Option<Timestamp> {
        let policy = self.at(now);
        let in_force = life.expires_at(policy.default);
        match policy.pending {
            Some(pending) if in_force.is_none_or(|at| at > pending.at) => {
                life.expires_at(pending.default).map(|at| at.max(pending.at))
            }
            _ => in_force,
        }
    }

    /// The second at which an item that is dead at `now` died, as far as it is
    /// known: under a default that is long gone it may have been earlier.
    pub fn died_at(self, life: Life, now: Timestamp) -> Option<Timestamp> {
        let policy = self.at(now);
        if !life.is_dead(policy.cuts(now)) {
            return None;
        }
        // Whoever lived through the last change died by this default, or at once.
        let by_default = || Some(life.expires_at(policy.default)?.max(policy.changed_at));
        match life {
            Life::Never => None,
            Life::Explicit(at) if at <= policy.explicit_watermark => Some(at),
            Life::Inherit(ts) | Life::Opaque(ts) if ts <= policy.inherit_watermark => {
                let lead = policy.raised_at.0.saturating_sub(policy.inherit_watermark.0);
                Some(Timestamp(ts.0.saturating_add(lead)))
            }
            Life::Explicit(_) | Life::Inherit(_) | Life::Opaque(_) => by_default(),
        }
    }
}

const SECOND_BITS: u64 = (1 << 62) - 1;

fn clamped(second: Timestamp) -> u64 {
    second.0.min(SECOND_BITS)
}

enum Seconds {
    Never,
    After(u32),
}

/// -1, or a whole number from 1 to the largest; 10.0 and 1e3 are whole too.
fn seconds(token: &str) -> Option<Seconds> {
    if !token.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return None;
    }
    let number: f64 = token.parse().ok()?;
    #[expect(clippy::float_cmp, reason = "-1 is exact")]
    if number == -1.0 {
        return Some(Seconds::Never);
    }
    let whole = number.fract() == 0.0 && number >= 1.0 && number <= f64::from(TTL_MAX);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just checked")]
    whole.then_some(Seconds::After(number as u32))
}

fn invalid(property: &str, token: &str) -> Error {
    Error::bad_request(format!(
        "The input {property} '{token}' is invalid. Ensure to provide a nonzero positive integer \
         less than or equal to '{TTL_MAX}', or '-1' which means never expire."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    /// The whole table of the module comment, one line a cell.
    #[test]
    fn every_cell_of_the_ttl_table() {
        use ContainerTtl::{Default, NoDefault, Off};
        use ItemTtl::{After, Inherit, Never};

        let written_at = Timestamp(1000);
        let expiry = |container, item: ItemTtl| {
            item.life(written_at).expires_at(container).map(|moment| moment.0)
        };

        assert_eq!(expiry(Off, Inherit), None);
        assert_eq!(expiry(Off, Never), None);
        assert_eq!(expiry(Off, After(20)), None);

        assert_eq!(expiry(NoDefault, Inherit), None);
        assert_eq!(expiry(NoDefault, Never), None);
        assert_eq!(expiry(NoDefault, After(20)), Some(1020));

        assert_eq!(expiry(Default(10), Inherit), Some(1010));
        assert_eq!(expiry(Default(10), Never), None);
        assert_eq!(expiry(Default(10), After(20)), Some(1020));
    }

    #[test]
    fn lives_that_are_counted_from_a_property() {
        use ContainerTtl::{Default, NoDefault};
        let ends = |item: ItemTtl, base, default| item.counted_from(base, default);
        assert_eq!(ends(ItemTtl::Inherit, 900, Default(10)), ItemTtl::Until(Timestamp(910)));
        assert_eq!(ends(ItemTtl::After(20), 900, Default(10)), ItemTtl::Until(Timestamp(920)));
        assert_eq!(ends(ItemTtl::After(20), 900, NoDefault), ItemTtl::Until(Timestamp(920)));
        assert_eq!(ends(ItemTtl::Inherit, 900, NoDefault), ItemTtl::Inherit);
        assert_eq!(ends(ItemTtl::Never, 900, Default(10)), ItemTtl::Never);
        let until = ItemTtl::Until(Timestamp(910));
        assert_eq!(until.life(Timestamp(1)), Life::Explicit(Timestamp(910)));

        for (text, expected) in [
            ("900", Some(900)),
            ("900.9", Some(900)),
            ("9e2", Some(900)),
            ("-5", Some(0)),
            ("1e300", Some(SECOND_LAST)),
            ("\"900\"", None),
            ("null", None),
            ("true", None),
        ] {
            assert_eq!(base(Some(&raw(text))), expected, "{text}");
        }
        assert_eq!(base(None), None);
    }

    #[test]
    fn the_cuts_say_dead_from_the_expiry_second_on() {
        let items = [ItemTtl::Inherit, ItemTtl::Never, ItemTtl::After(20), ItemTtl::Opaque];
        let defaults = [ContainerTtl::Off, ContainerTtl::NoDefault, ContainerTtl::Default(10)];
        for default in defaults {
            let policy = Policy { default, ..Policy::default() };
            for item in items {
                let life = item.life(Timestamp(1000));
                for now in 1000..1030 {
                    let dead = life.is_dead(policy.cuts(Timestamp(now)));
                    let expected = life.expires_at(default).is_some_and(|at| at.0 <= now);
                    assert_eq!(dead, expected, "{default:?} {item:?} at {now}");
                }
            }
        }
    }

    #[test]
    fn what_died_under_an_old_default_stays_dead() {
        let short = Policy { default: ContainerTtl::Default(10), ..Policy::default() };
        let inherit = Life::Inherit(Timestamp(1000));
        let explicit = Life::Explicit(Timestamp(1005));
        for default in [ContainerTtl::Off, ContainerTtl::NoDefault, ContainerTtl::Default(1000)] {
            let later = short.changed(default, Timestamp(1010));
            for now in [1010, 1011, 5000] {
                assert!(inherit.is_dead(later.cuts(Timestamp(now))));
                assert!(explicit.is_dead(later.cuts(Timestamp(now))));
            }
            let young = Life::Inherit(Timestamp(1001));
            assert!(!young.is_dead(later.cuts(Timestamp(1010))));
        }
    }

    #[test]
    fn a_change_that_is_to_come_counts_from_its_second_on() {
        let old = Policy { default: ContainerTtl::Default(100), ..Policy::default() };
        let policy = old.delayed(ContainerTtl::Default(10), Timestamp(1000), Timestamp(1060));
        let life = Life::Inherit(Timestamp(1000));
        for now in [1000, 1059] {
            assert_eq!(policy.at(Timestamp(now)).default, ContainerTtl::Default(100));
            assert!(!life.is_dead(policy.cuts(Timestamp(now))));
        }
        assert_eq!(policy.at(Timestamp(1060)).default, ContainerTtl::Default(10));
        assert!(life.is_dead(policy.cuts(Timestamp(1060))));
        // It is as if it had been changed by hand in that second.
        assert_eq!(
            policy.at(Timestamp(2000)),
            old.changed(ContainerTtl::Default(10), Timestamp(1060))
        );

        // The same again takes nothing back, another one takes its place.
        let longer = policy.delayed(ContainerTtl::Default(5000), Timestamp(1030), Timestamp(1090));
        assert!(!life.is_dead(longer.cuts(Timestamp(1095))));
        let taken_back =
            policy.delayed(ContainerTtl::Default(100), Timestamp(1030), Timestamp(1090));
        assert_eq!(taken_back, old);
    }

    #[test]
    fn the_end_of_a_life_is_the_first_second_it_is_dead() {
        use ContainerTtl::{Default, NoDefault, Off};
        let defaults = [Off, NoDefault, Default(10), Default(30), Default(70)];
        let items = [ItemTtl::Inherit, ItemTtl::Never, ItemTtl::After(40), ItemTtl::Opaque];
        for (before, after) in defaults.iter().flat_map(|a| defaults.map(|b| (*a, b))) {
            let policy = Policy { default: before, ..Policy::default() };
            let policy = policy.delayed(after, Timestamp(1000), Timestamp(1040));
            for life in items.map(|item| item.life(Timestamp(1000))) {
                let is_dead = |second: &u64| life.is_dead(policy.cuts(Timestamp(*second)));
                let first = (1001..1200).find(is_dead);
                for now in 1000..first.unwrap_or(1200) {
                    let told = policy.dies_at(life, Timestamp(now)).map(|at| at.0);
                    assert_eq!(told, first, "{before:?} {after:?} {life:?} at {now}");
                }
            }
        }
    }

    #[test]
    fn when_an_item_died() {
        let on = Policy { default: ContainerTtl::Default(10), ..Policy::default() };
        let died = |policy: Policy, life, now| policy.died_at(life, Timestamp(now)).map(|at| at.0);
        let inherit = Life::Inherit(Timestamp(1000));
        assert_eq!(died(on, inherit, 1009), None);
        assert_eq!(died(on, inherit, 1500), Some(1010));
        assert_eq!(died(on, Life::Explicit(Timestamp(1005)), 1500), Some(1005));
        assert_eq!(died(on, Life::Never, 1500), None);
        for later in [ContainerTtl::Off, ContainerTtl::Default(300)] {
            let changed = on.changed(later, Timestamp(1020));
            assert_eq!(died(changed, inherit, 1500), Some(1010));
        }
        let longer = Policy { default: ContainerTtl::Default(200), ..Policy::default() };
        let shorter = longer.changed(ContainerTtl::Default(10), Timestamp(1100));
        assert_eq!(died(shorter, inherit, 1500), Some(1100), "the change expired it");
        let late = longer.changed(ContainerTtl::Default(10), Timestamp(1300));
        assert_eq!(died(late, inherit, 1500), Some(1200), "it had expired before");
        let on_again = Policy::default().changed(ContainerTtl::NoDefault, Timestamp(1100));
        assert_eq!(died(on_again, Life::Explicit(Timestamp(1005)), 1500), Some(1100));
    }

    #[test]
    fn stamps_are_read_back() {
        for life in [
            Life::Inherit(Timestamp(0)),
            Life::Inherit(Timestamp(1_700_000_000)),
            Life::Explicit(Timestamp(4_294_967_296)),
            Life::Never,
            Life::Opaque(Timestamp(7)),
        ] {
            assert_eq!(Life::from_bits(life.to_bits()), life);
        }
    }

    #[test]
    fn values_that_are_and_are_not_a_ttl() {
        let on = ContainerTtl::Default(5);
        let read = |text: &str| ItemTtl::parse(Some(&raw(text)), on);

        assert_eq!(read("-1"), Ok(ItemTtl::Never));
        assert_eq!(read("1"), Ok(ItemTtl::After(1)));
        assert_eq!(read("10.0"), Ok(ItemTtl::After(10)));
        assert_eq!(read("1e3"), Ok(ItemTtl::After(1000)));
        assert_eq!(read("2147483647"), Ok(ItemTtl::After(TTL_MAX)));
        for bad in
            ["0", "-0", "-10", "-2", "1.5", "2147483648", "null", "true", "\"10\"", "{}", "[]"]
        {
            let error = read(bad).unwrap_err();
            assert_eq!(
                error.message,
                format!(
                    "The input ttl '{bad}' is invalid. Ensure to provide a nonzero positive \
                     integer less than or equal to '2147483647', or '-1' which means never expire."
                )
            );
            let without_default = ItemTtl::parse(Some(&raw(bad)), ContainerTtl::Off);
            let is_number = bad.parse::<f64>().is_ok();
            assert_eq!(without_default, if is_number { Err(error) } else { Ok(ItemTtl::Opaque) });
        }
        assert_eq!(ItemTtl::parse(None, on), Ok(ItemTtl::Inherit));
    }

    #[test]
    fn a_null_default_is_absent_unless_strict() {
        let null = raw("null");
        assert_eq!(ContainerTtl::parse(Some(&null), false), Ok(ContainerTtl::Off));
        assert!(ContainerTtl::parse(Some(&null), true).is_err());
        assert_eq!(ContainerTtl::parse(None, true), Ok(ContainerTtl::Off));
    }
}
