//! The operator's view of time to live: how it stands, what will expire when,
//! what another default would do, and why an item lives or not.
//!
//! All figures are sums over the life histogram, so they are
//! exact at the request's second and cost the same for any number of items.

use dayfly_model::partition_key::PartitionKey;
use dayfly_model::ttl::{ContainerTtl, Cuts, Life, Policy, TTL_MAX};
use dayfly_model::{Error, Result, Timestamp};
use dayfly_storage::tally::Count;
use serde_json::{Value, json};

use crate::catalog::Container;
use crate::head::State;
use crate::history::History;
use crate::items::Spot;
use crate::keys;
use crate::liveness::Liveness;
use crate::lives::{Class, Lives, Standing};
use crate::purge::PurgeStatus;
use crate::record::{Record, Seen, look};
use crate::reply::{Reply, Success, storage_failed};
use crate::scope::Opened;
use crate::standing::{each_bucket, figures, immortal};

/// How many buckets a forecast has at most.
pub const FORECAST_BUCKETS_MAX: u32 = 1000;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// The histograms of all buckets of a container, with their policies.
struct TtlFigures<'a> {
    opened: &'a Opened,
}

impl TtlFigures<'_> {
    /// Adds up what `sum` finds in each bucket.
    fn each(
        &self,
        mut sum: impl FnMut(&Lives<'_>, Policy) -> dayfly_storage::Result<()>,
    ) -> Result<()> {
        each_bucket(&*self.opened.snapshot, self.opened.container.buckets(), &mut sum)
            .map_err(storage_failed)
    }
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
        "history": history,
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
    TtlFigures { opened }.each(|lives, policy| {
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

/// What would be, if the default were `default` from now on. What expires within
/// a day, what later and what never are together all that is alive.
pub(crate) fn what_if(opened: &Opened, default: ContainerTtl) -> Result<Reply> {
    let now = opened.now();
    let spans = [0, HOUR, DAY];
    let mut expired = [Count::default(); 3];
    let mut ends: Option<(Timestamp, Timestamp)> = None;
    let (mut live, mut never, mut opaque) = (Count::default(), Count::default(), 0);
    TtlFigures { opened }.each(|lives, policy| {
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
    let liveness = Liveness::of(&*opened.snapshot, spot.bucket).map_err(storage_failed)?;
    let seen = look(get, &spot.key, &spot.partition_key, &liveness).map_err(storage_failed)?;
    let body = match seen {
        Seen::Absent => json!({
            "state": "absent",
            "defaultTtl": policy.at(now).default.to_json(),
            "reason": "There is no item with this id and partition key.",
        }),
        Seen::Dead(record) if liveness.is_deleted(&record) => json!({
            "state": "absent",
            "defaultTtl": policy.at(now).default.to_json(),
            "reason": "It was deleted with all other items of its partition key.",
        }),
        Seen::Alive(record) => told(container, &record, policy, now, "live"),
        Seen::Dead(record) => told(container, &record, policy, now, "expired"),
    };
    Ok(ok(opened, body))
}

/// The second that the life of an item is counted from, if that is not its write.
fn base_of(container: &Container, record: &Record) -> Option<i64> {
    let definition = container.definition();
    definition.ttl_path.as_ref()?;
    definition.ttl_base(str::from_utf8(record.text()).unwrap_or_default())
}

/// The `ttl` of its own that an item has, counted from `base`.
fn own_ttl(record: &Record, base: Option<i64>) -> Option<i64> {
    match record.life {
        Life::Explicit(at) => {
            let start = base.unwrap_or(record.ts.0.cast_signed());
            Some(at.0.cast_signed().saturating_sub(start).max(0))
        }
        Life::Never => Some(-1),
        Life::Inherit(_) | Life::Opaque(_) => None,
    }
}

/// By what an item lives, in a word.
fn class_of(life: Life) -> &'static str {
    match life {
        Life::Inherit(_) => "inherit",
        Life::Explicit(_) => "explicit",
        Life::Never => "never",
        Life::Opaque(_) => "uninterpretable",
    }
}

/// How long an item lives that is alive, and why.
pub(crate) struct Span {
    pub(crate) class: &'static str,
    /// The `ttl` of its own.
    pub(crate) ttl: Option<i64>,
    pub(crate) expires: Option<Timestamp>,
    /// Whether it has a `ttl` that counts for nothing.
    pub(crate) is_ignored: bool,
}

impl Span {
    pub(crate) fn of(
        container: &Container,
        record: &Record,
        policy: Policy,
        now: Timestamp,
    ) -> Span {
        let is_on = policy.at(now).default.is_on();
        Span {
            class: class_of(record.life),
            ttl: own_ttl(record, base_of(container, record)),
            expires: policy.dies_at(record.life, now),
            is_ignored: match record.life {
                Life::Inherit(_) => false,
                Life::Explicit(_) | Life::Never => !is_on,
                Life::Opaque(_) => true,
            },
        }
    }
}

fn told(
    container: &Container,
    record: &Record,
    policy: Policy,
    now: Timestamp,
    state: &str,
) -> Value {
    let default = policy.at(now).default;
    let base = base_of(container, record);
    let own = own_ttl(record, base);
    let expires = match state {
        "expired" => policy.died_at(record.life, now),
        _ => policy.dies_at(record.life, now),
    };
    let mut reason = match (base, own) {
        (Some(base), Some(own)) if record.life != Life::Never => format!(
            "Its life of {own} seconds is counted from {base}, by the container's \
             ttlPropertyPath, and not from when it was written."
        ),
        _ => reason(record, policy, now),
    };
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
    let (class, ttl) = (class_of(record.life), own);
    let effective = match (default, record.life) {
        (ContainerTtl::Off, _) => None,
        (_, Life::Never | Life::Explicit(_)) => own,
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
    let dead = Liveness::by(in_force, now).has_expired(record);
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
