//! How a container stands: what lives in it, what is dead and still there.
//!
//! All of it is sums over the life histograms of its buckets, so it is exact at the
//! second of the snapshot and costs the same for any number of items. Whoever wants
//! such a figure asks here. A histogram knows of time alone: as long as items wait for the
//! purge whose partition was deleted, they are counted and left out, one by one.

use std::sync::Arc;

use dayfly_model::ttl::{ContainerTtl, Life, Policy};
use dayfly_model::{Result, Timestamp};
use dayfly_storage::tally::Count;
use dayfly_storage::{Bucket, Direction, Snapshot, View};

use crate::catalog::{Container, ContainerRecord};
use crate::deleted::{self, DeletedPartition};
use crate::head::State;
use crate::lives::{Class, Lives, Standing, Tallied};
use crate::reply::storage_failed;

/// Adds up what `sum` finds in the histogram of each bucket, with its policy.
pub(crate) fn each_bucket(
    snapshot: &dyn Snapshot,
    buckets: impl Iterator<Item = Bucket>,
    sum: &mut dyn FnMut(&Lives<'_>, Policy) -> dayfly_storage::Result<()>,
) -> dayfly_storage::Result<()> {
    for bucket in buckets {
        let get_many = |keys: &[&[u8]]| snapshot.get_many(bucket, keys);
        let lives = Lives::new(&get_many).without(hidden_in(snapshot, bucket)?);
        sum(&lives, State::of(&snapshot.head(bucket)).policy)?;
    }
    Ok(())
}

/// Whether the histogram of a bucket knows by itself what is alive.
pub(crate) fn knows_alone(snapshot: &dyn Snapshot, bucket: Bucket) -> bool {
    State::of(&snapshot.head(bucket)).partitions.pending == 0
}

fn hidden_in(snapshot: &dyn Snapshot, bucket: Bucket) -> dayfly_storage::Result<Tallied> {
    count_hidden(snapshot, bucket, &deleted::all(snapshot, bucket, &snapshot.head(bucket))?)
}

/// What waits for the purge with these partitions, which may be much.
pub(crate) fn count_hidden(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    deleted: &[DeletedPartition],
) -> dayfly_storage::Result<Tallied> {
    Tallied::of_deleted(deleted, &|range, limit| {
        snapshot.scan(bucket, range, Direction::Forward, limit)
    })
}

/// What is alive in a bucket, and what is dead and still there.
pub(crate) fn of_bucket(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
) -> dayfly_storage::Result<Standing> {
    let policy = State::policy(&snapshot.head(bucket))?;
    let get_many = |keys: &[&[u8]]| snapshot.get_many(bucket, keys);
    let lives = Lives::new(&get_many).without(hidden_in(snapshot, bucket)?);
    lives.standing(policy, Timestamp(snapshot.now()))
}

/// What is alive in a bucket, as a draft sees it that knows what is hidden there; of what is
/// left out of that, it is taken for alive. The draft rests on the histogram, and that
/// changes with whatever comes or goes; a policy that is another one later shows no more.
pub(crate) fn in_view(
    view: &View<'_>,
    bucket: Bucket,
    hidden: Arc<Tallied>,
) -> dayfly_storage::Result<Count> {
    let get_many = |keys: &[&[u8]]| view.get_many_in(bucket, keys);
    let lives = Lives::new(&get_many).without(hidden);
    let policy = State::of(&view.snapshot().head(bucket)).policy;
    Ok(lives.standing(policy, Timestamp(view.now()))?.live)
}

/// What is alive in a container, and what is dead and still there.
pub(crate) fn of(snapshot: &dyn Snapshot, container: &Container) -> Result<Standing> {
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

/// The items that are alive and will be for ever, if the policy stays.
pub(crate) fn immortal(
    lives: &Lives<'_>,
    policy: Policy,
    now: Timestamp,
) -> dayfly_storage::Result<Count> {
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
