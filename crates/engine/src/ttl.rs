//! The operator's view of time to live: how it stands, what will expire when,
//! what another default would do, and why an item lives or not.
//!
//! All figures are sums over the life histogram, so they are
//! exact at the request's second and cost the same for any number of items.

use dayfly_model::partition_key::PartitionKey;
use dayfly_model::ttl::{ContainerTtl, Cuts, Life, Policy, TTL_MAX};
use dayfly_model::{Error, ErrorKind, Result, Timestamp};
use dayfly_storage::tally::Count;
use dayfly_storage::{Bucket, Snapshot};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::catalog::{Container, ContainerRecord};
use crate::head::State;
use crate::items::{Seen, Spot, look};
use crate::keys;
use crate::lives::{Class, Lives, Standing};
use crate::purge::PurgeStatus;
use crate::record::Record;
use crate::reply::{Reply, Success, storage_failed};
use crate::scope::Opened;

/// How many buckets a forecast has at most.
pub const FORECAST_BUCKETS_MAX: u32 = 1000;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// A change of the default, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changed {
    /// The second from which it counts.
    pub(crate) at: u64,
    pub(crate) by: String,
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    /// How many items it expired; of a change that is to come, how many it
    /// would if nothing were written until then.
    pub(crate) condemned_items: u64,
}

/// How many changes are kept.
const CHANGES_MAX: usize = 32;

/// The changes of a bucket, newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History(Vec<Changed>);

impl History {
    pub(crate) fn decode(row: Option<&[u8]>) -> dayfly_storage::Result<History> {
        let Some(row) = row else { return Ok(History::default()) };
        serde_json::from_slice(row).map_err(|why| {
            dayfly_storage::Error::Corrupt(format!("the changes of a default: {why}"))
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        crate::catalog::encode(self)
    }

    /// Notes a change made at `now`. One that was still to come never was.
    pub(crate) fn push(&mut self, now: Timestamp, changed: Option<Changed>) {
        self.0.retain(|earlier| earlier.at <= now.0);
        self.0.extend(changed);
        let surplus = self.0.len().saturating_sub(CHANGES_MAX);
        self.0.drain(..surplus);
    }

    /// Adds what the same changes did in another bucket.
    fn merge(&mut self, other: History) {
        if self.0.is_empty() {
            *self = other;
            return;
        }
        for (mine, theirs) in self.0.iter_mut().rev().zip(other.0.into_iter().rev()) {
            mine.condemned_items += theirs.condemned_items;
        }
    }
}

/// The histograms of all buckets of a container, with their policies.
struct Figures<'a> {
    opened: &'a Opened,
}

impl Figures<'_> {
    /// Adds up what `sum` finds in each bucket.
    fn each(
        &self,
        mut sum: impl FnMut(&Lives<'_>, Policy) -> dayfly_storage::Result<()>,
    ) -> Result<()> {
        each_bucket(&*self.opened.snapshot, self.opened.container.buckets(), &mut sum)
            .map_err(storage_failed)
    }
}

fn each_bucket(
    snapshot: &dyn Snapshot,
    buckets: impl Iterator<Item = Bucket>,
    sum: &mut dyn FnMut(&Lives<'_>, Policy) -> dayfly_storage::Result<()>,
) -> dayfly_storage::Result<()> {
    for bucket in buckets {
        let get = |key: &[u8]| snapshot.get(bucket, key);
        sum(&Lives::new(&get), State::of(&snapshot.head(bucket)).policy)?;
    }
    Ok(())
}

/// What is alive in a container, and what is dead and still there.
pub(crate) fn standing(snapshot: &dyn Snapshot, container: &Container) -> Result<Standing> {
    let now = Timestamp(snapshot.now());
    let mut standing = Standing::default();
    each_bucket(snapshot, container.buckets(), &mut |lives, policy| {
        let more = lives.standing(policy, now)?;
        standing.live = standing.live.plus(more.live);
        standing.dead = standing.dead.plus(more.dead);
        Ok(())
    })
    .map_err(storage_failed)?;
    Ok(standing)
}

/// What the histogram of a container tells about now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Now {
    pub(crate) live: Count,
    /// Dead and still there.
    pub(crate) dead: Count,
    /// When the oldest of it died.
    pub(crate) oldest_dead: Option<Timestamp>,
    /// Alive, and for ever if the policy stays.
    pub(crate) never: Count,
    /// Live items whose `ttl` cannot be read.
    pub(crate) uninterpretable: u64,
}

/// How a container stands now.
pub(crate) fn figures(snapshot: &dyn Snapshot, container: &ContainerRecord) -> Result<Now> {
    let now = Timestamp(snapshot.now());
    let mut figures = Now::default();
    each_bucket(snapshot, container.buckets(), &mut |lives, policy| {
        let standing = lives.standing(policy, now)?;
        figures.live = figures.live.plus(standing.live);
        figures.dead = figures.dead.plus(standing.dead);
        figures.never = figures.never.plus(immortal(lives, policy, now)?);
        figures.uninterpretable += lives.alive(Class::Opaque, policy.cuts(now))?.items;
        if standing.dead.items > 0 {
            let oldest = oldest_dead(lives, policy, now)?;
            figures.oldest_dead = figures.oldest_dead.into_iter().chain(oldest).min();
        }
        Ok(())
    })
    .map_err(storage_failed)?;
    Ok(figures)
}

/// When the oldest item died that is dead and still there.
fn oldest_dead(
    lives: &Lives<'_>,
    policy: Policy,
    now: Timestamp,
) -> dayfly_storage::Result<Option<Timestamp>> {
    let mut oldest: Option<Timestamp> = None;
    for class in [Class::Inherit, Class::Explicit, Class::Opaque] {
        let Some(second) = lives.oldest(class)? else { continue };
        let life = match class {
            Class::Explicit => Life::Explicit(second),
            _ => Life::Inherit(second),
        };
        oldest = oldest.into_iter().chain(policy.died_at(life, now)).min();
    }
    Ok(oldest)
}

/// How many items would be dead at `at` under `default`, counted from a change
/// at `now`, that are alive at `now`; and how many are alive.
pub(crate) fn would_expire(
    snapshot: &dyn Snapshot,
    container: &Container,
    default: ContainerTtl,
) -> Result<(Count, Count)> {
    let now = Timestamp(snapshot.now());
    let (mut expired, mut live) = (Count::default(), Count::default());
    each_bucket(snapshot, container.buckets(), &mut |lives, policy| {
        let standing = lives.standing(policy, now)?;
        let dead = lives.dead_at(policy.changed(default, now), now)?;
        expired = expired.plus(dead.minus(standing.dead));
        live = live.plus(standing.live);
        Ok(())
    })
    .map_err(storage_failed)?;
    Ok((expired, live))
}

fn count_json(count: Count) -> Value {
    json!({"items": count.items, "bytes": count.bytes})
}

fn ok(opened: &Opened, body: Value) -> Reply {
    Reply::ok(Success::new(200, body.to_string()), opened.now(), 0.0)
}

/// How time to live stands in a container.
pub(crate) fn status(opened: &Opened, purge: &PurgeStatus) -> Result<Reply> {
    let (snapshot, container) = (&*opened.snapshot, &*opened.container);
    let now = opened.now();
    let figures = figures(snapshot, &container.record)?;
    let mut history = History::default();
    for bucket in container.buckets() {
        let row = snapshot.get(bucket, &keys::policy_history()).map_err(storage_failed)?;
        history.merge(History::decode(row.as_deref()).map_err(storage_failed)?);
    }
    let body = json!({
        "now": now.0,
        "defaultTtl": container.record.ttl_at(now).to_json(),
        "pending": container.record.pending_json(now),
        "live": count_json(figures.live),
        "never": count_json(figures.never),
        "uninterpretable": figures.uninterpretable,
        "backlog": {
            "items": figures.dead.items,
            "bytes": figures.dead.bytes,
            "oldestExpiredAt": figures.oldest_dead.map(|at| at.0),
        },
        "purge": {
            "state": purge.state.name(),
            "reason": purge.reason,
            "itemsPerSecond": purge.items_per_second,
            "purgedItems": purge.purged_items,
        },
        "history": history.0,
    });
    Ok(ok(opened, body))
}

/// What expires when, if nothing is written and the default stays: a bucket has
/// what is alive at its start and dead at its end.
pub(crate) fn forecast(opened: &Opened, buckets: u32, seconds: u32) -> Result<Reply> {
    if buckets == 0 || buckets > FORECAST_BUCKETS_MAX {
        return Err(Error::bad_request(format!(
            "'buckets' must be a number from 1 to {FORECAST_BUCKETS_MAX}."
        )));
    }
    if seconds == 0 || u64::from(buckets) * u64::from(seconds) > u64::from(TTL_MAX) {
        return Err(Error::bad_request(format!(
            "'bucketSeconds' must be a number from 1 on, and 'buckets' times 'bucketSeconds' at \
             most {TTL_MAX}, the longest time to live."
        )));
    }
    let now = opened.now();
    let edges: Vec<Timestamp> = (0..=u64::from(buckets))
        .map(|bucket| Timestamp(now.0 + bucket * u64::from(seconds)))
        .collect();
    let mut dead = vec![(Count::default(), 0u64); edges.len()];
    let (mut live, mut never) = (Count::default(), Count::default());
    Figures { opened }.each(|lives, policy| {
        let cuts: Vec<Cuts> = edges.iter().map(|edge| policy.cuts(*edge)).collect();
        for class in Class::MORTAL {
            if lives.all(class)?.is_empty() {
                continue;
            }
            for (cuts, (all, explicit)) in cuts.iter().zip(&mut dead) {
                let died = lives.dead(class, *cuts)?;
                *all = all.plus(died);
                if class == Class::Explicit {
                    *explicit += died.items;
                }
            }
        }
        live = live.plus(lives.standing(policy, now)?.live);
        never = never.plus(immortal(lives, policy, now)?);
        Ok(())
    })?;

    let mut rows = Vec::with_capacity(edges.len());
    let mut told = Count::default();
    for (ends, pair) in edges.windows(2).zip(dead.windows(2)) {
        let ([from, to], [before, after]) = (ends, pair) else { continue };
        let expires = after.0.minus(before.0);
        told = told.plus(expires);
        rows.push(json!({
            "from": from.0,
            "to": to.0,
            "items": expires.items,
            "bytes": expires.bytes,
            "explicitItems": after.1 - before.1,
        }));
    }
    let later = live.minus(told).minus(never);
    let (later, never) = (count_json(later), count_json(never));
    Ok(ok(opened, json!({"now": now.0, "buckets": rows, "later": later, "never": never})))
}

/// The items that are alive and will be for ever, if the policy stays.
fn immortal(lives: &Lives<'_>, policy: Policy, now: Timestamp) -> dayfly_storage::Result<Count> {
    let cuts = policy.cuts(now);
    let last = policy.pending.map_or(now, |pending| pending.at.max(now));
    let (default, at_last) = (policy.at(last).default, policy.cuts(last));
    let mut never = lives.all(Class::Never)?;
    let stays = |class: Class| -> dayfly_storage::Result<Count> {
        // A change that is to come may expire some before it lets others live.
        Ok(lives
            .alive(class, cuts)?
            .minus(lives.dead(class, at_last)?.minus(lives.dead(class, cuts)?)))
    };
    if !matches!(default, ContainerTtl::Default(_)) {
        for class in Class::BY_DEFAULT {
            never = never.plus(stays(class)?);
        }
    }
    if !default.is_on() {
        never = never.plus(stays(Class::Explicit)?);
    }
    Ok(never)
}

/// What would be, if the default were `default` from now on. What expires within
/// a day, what later and what never are together all that is alive.
pub(crate) fn what_if(opened: &Opened, default: ContainerTtl) -> Result<Reply> {
    let now = opened.now();
    let spans = [0, HOUR, DAY];
    let mut expired = [Count::default(); 3];
    let mut ends: Option<(Timestamp, Timestamp)> = None;
    let (mut live, mut never, mut opaque) = (Count::default(), Count::default(), 0);
    Figures { opened }.each(|lives, policy| {
        let changed = policy.changed(default, now);
        let Standing { live: alive, dead: before } = lives.standing(policy, now)?;
        live = live.plus(alive);
        for (span, count) in spans.iter().zip(&mut expired) {
            let dead = lives.dead_at(changed, Timestamp(now.0 + span))?;
            *count = count.plus(dead.minus(before));
        }
        let cuts = policy.cuts(now);
        for class in Class::BY_DEFAULT {
            ends = match (ends, lives.ends(class, cuts)?) {
                (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
                (known, found) => known.or(found),
            };
        }
        never = never.plus(immortal(lives, changed, now)?);
        opaque += lives.alive(Class::Opaque, cuts)?.items;
        Ok(())
    })?;
    let [at_once, hour, day] = expired;
    let later = live.minus(day).minus(never);
    let [at_once, hour, day, later] = [at_once, hour, day, later].map(count_json);
    Ok(ok(
        opened,
        json!({
            "now": now.0,
            "expired": at_once,
            "expiredInHour": hour,
            "expiredInDay": day,
            "oldestTs": ends.map(|(oldest, _)| oldest.0),
            "newestTs": ends.map(|(_, newest)| newest.0),
            "later": later,
            "never": count_json(never),
            "live": count_json(live),
            "uninterpretable": opaque,
        }),
    ))
}

/// Why an item lives, until when, or why not.
pub(crate) fn explain(opened: &Opened, id: &str, key: PartitionKey) -> Result<Reply> {
    let container = &opened.container;
    let key = key.fitted(&container.definition().partition_key)?;
    let spot = Spot::new(container, &key, id.as_bytes().to_vec());
    let policy = State::policy(&opened.snapshot.head(spot.bucket)).map_err(storage_failed)?;
    let get = |key: &[u8]| opened.snapshot.get(spot.bucket, key);
    let now = opened.now();
    let seen =
        look(get, &spot.key, &spot.partition_key, policy.cuts(now)).map_err(storage_failed)?;
    let body = match seen {
        Seen::Absent => json!({
            "state": "absent",
            "defaultTtl": policy.at(now).default.to_json(),
            "reason": "There is no item with this id and partition key.",
        }),
        Seen::Alive(record) => told(&record, policy, now, "live"),
        Seen::Dead(record) => told(&record, policy, now, "expired"),
    };
    Ok(ok(opened, body))
}

fn told(record: &Record, policy: Policy, now: Timestamp, state: &str) -> Value {
    let default = policy.at(now).default;
    let own = match record.life {
        Life::Explicit(at) => Some(at.0.saturating_sub(record.ts.0).cast_signed()),
        _ => None,
    };
    let expires = match state {
        "expired" => policy.died_at(record.life, now),
        _ => policy.dies_at(record.life, now),
    };
    let mut reason = reason(record, policy, now);
    // A change that is to come may move the end.
    if let ("live", Some(pending)) = (state, policy.at(now).pending)
        && expires != record.life.expires_at(default)
    {
        let to = pending.default.to_json().map_or("off".to_owned(), |ttl| ttl.to_string());
        reason.push_str(&format!(
            " A change of the default to {to} counts from {} on.",
            pending.at.0
        ));
    }
    let (class, ttl) = match record.life {
        Life::Inherit(_) => ("inherit", None),
        Life::Explicit(_) => ("explicit", own),
        Life::Never => ("never", Some(-1)),
        Life::Opaque(_) => ("uninterpretable", None),
    };
    let effective = match (default, record.life) {
        (ContainerTtl::Off, _) => None,
        (_, Life::Never) => Some(-1),
        (_, Life::Explicit(_)) => own,
        (_, Life::Inherit(_) | Life::Opaque(_)) => default.to_json(),
    };
    json!({
        "state": state,
        "class": class,
        "ts": record.ts.0,
        "ttl": ttl,
        "defaultTtl": default.to_json(),
        "effectiveTtl": effective,
        "expiresAt": expires.map(|at| at.0),
        "reason": reason,
    })
}

/// One sentence for a person.
fn reason(record: &Record, policy: Policy, now: Timestamp) -> String {
    let in_force = policy.at(now);
    let default = in_force.default;
    let dead = record.life.is_dead(in_force.cuts(now));
    let due = record.life.expires_at(default).is_some_and(|at| at <= now);
    if dead && !due {
        return "It expired under an earlier default; no later one brings it back.".to_owned();
    }
    let default = match default {
        ContainerTtl::Off => {
            return "The container has no default, so nothing in it expires.".to_owned();
        }
        ContainerTtl::NoDefault => "-1".to_owned(),
        ContainerTtl::Default(seconds) => seconds.to_string(),
    };
    match record.life {
        Life::Never => "The item's ttl of -1 means that it never expires.".to_owned(),
        Life::Explicit(at) => format!(
            "The item's ttl of {} overrides the container's default of {default}.",
            at.0.saturating_sub(record.ts.0)
        ),
        Life::Inherit(_) if default == "-1" => {
            "The item has no ttl, and the container's default of -1 expires nothing.".to_owned()
        }
        Life::Inherit(_) => {
            format!("The item has no ttl, so the container's default of {default} applies.")
        }
        Life::Opaque(_) => format!(
            "The item's ttl is no number of seconds, so the container's default of {default} \
             applies."
        ),
    }
}

/// How many items the last change of the default expired, or would.
pub(crate) fn last_condemned(snapshot: &dyn Snapshot, container: &Container) -> Result<u64> {
    let mut items = 0;
    for bucket in container.buckets() {
        let row = snapshot.get(bucket, &keys::policy_history()).map_err(storage_failed)?;
        let history = History::decode(row.as_deref()).map_err(storage_failed)?;
        items += history.0.last().map_or(0, |changed| changed.condemned_items);
    }
    Ok(items)
}

/// The refusal of a change that would expire more than the guard lets pass.
pub(crate) fn guarded(expired: Count, live: Count, percent: f64) -> Error {
    Error::new(
        ErrorKind::PreconditionFailed,
        format!(
            "This defaultTtl would expire {} of {} items ({} of {} bytes) at once, which is more \
             than the {percent} % that the server lets pass. To expire them, send the header \
             x-dayfly-confirm-expiry: true.",
            expired.items, live.items, expired.bytes, live.bytes
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_history_is_told_and_not_shown_as_none() {
        assert_eq!(History::decode(None), Ok(History::default()));
        assert!(matches!(History::decode(Some(b"?")), Err(dayfly_storage::Error::Corrupt(_))));
    }
}
