//! What each partition key range of a container holds, for clients that ask.
//!
//! A range with a bucket of its own is counted by the life histogram. Ranges that
//! share a bucket are counted item by item while the container has few; of more,
//! each is given its share of the bucket, since hashes spread evenly. The sum is
//! exact in any case, and what is dead counts nowhere.

use dayfly_model::Result;
use dayfly_storage::{Bucket, Direction, Snapshot};
use serde_json::{Value, json};

use crate::catalog::{Container, Range};
use crate::index::walk::{Entries, EntryRange};
use crate::keys;
use crate::record;
use crate::reply::{Count, storage_failed};
use crate::settings::QueryLimits;
use crate::standing;

/// How many are read at once.
const CHUNK: usize = 64;

/// The `statistics` of a container: the ranges in their order.
pub(crate) fn of_ranges(
    snapshot: &dyn Snapshot,
    container: &Container,
    limits: &QueryLimits,
) -> Result<Value> {
    let mut counted_max = limits.counted_items;
    let mut told = Vec::with_capacity(container.ranges.len());
    for bucket in container.buckets() {
        let is_inside = |range: &&Range| container.bucket(&range.min) == bucket;
        let ranges: Vec<_> = container.ranges.iter().filter(is_inside).collect();
        let counts =
            counts(snapshot, bucket, &ranges, &mut counted_max, limits).map_err(storage_failed)?;
        told.extend(ranges.into_iter().zip(counts).map(|(range, count)| tell(range, count)));
    }
    Ok(Value::Array(told))
}

fn tell(range: &Range, count: Count) -> Value {
    json!({
        "id": &*range.id,
        "sizeInKB": count.bytes.div_ceil(1024),
        "documentCount": count.items,
        "partitionKeys": [],
    })
}

/// What is alive in each range of a bucket.
fn counts(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    ranges: &[&Range],
    budget: &mut u64,
    limits: &QueryLimits,
) -> dayfly_storage::Result<Vec<Count>> {
    let standing = standing::of_bucket(snapshot, bucket)?;
    if ranges.len() == 1 {
        return Ok(vec![standing.live]);
    }
    let there = standing.live.plus(standing.dead).items;
    let Some(left) = budget.checked_sub(there) else {
        return Ok(shares(standing.live, ranges.len() as u64));
    };
    *budget = left;
    ranges.iter().map(|range| count(snapshot, bucket, range, limits)).collect()
}

/// Equal shares, as far as there are: the first ones have one more.
fn shares(whole: Count, parts: u64) -> Vec<Count> {
    let share = |of: u64, part: u64| of / parts + u64::from(part < of % parts);
    let of = |part| Count { items: share(whole.items, part), bytes: share(whole.bytes, part) };
    (0..parts).map(of).collect()
}

/// What is alive in a range, by the order of its partitions.
fn count(
    snapshot: &dyn Snapshot,
    bucket: Bucket,
    range: &Range,
    limits: &QueryLimits,
) -> dayfly_storage::Result<Count> {
    let partitions = keys::partitions_between(&range.min, range.max.as_ref());
    let entry_range = EntryRange::of_partitions(partitions);
    let mut entries = Entries::new(snapshot, bucket, &entry_range, Direction::Forward, limits)?;
    let mut alive = Count::default();
    while let Some(page) = entries.page(CHUNK)? {
        let numbers: Vec<u64> = page.iter().map(|entry| entry.docno).collect();
        for record in record::named(snapshot, bucket, &numbers)? {
            alive = alive.plus(Count { items: 1, bytes: record.bytes() });
        }
    }
    Ok(alive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (items, parts, expected) in [
            (7, 3, vec![3, 2, 2]),
            (0, 2, vec![0, 0]),
            (1, 4, vec![1, 0, 0, 0]),
            (8, 2, vec![4, 4]),
        ] {
            let shares = shares(Count { items, bytes: items * 10 }, parts);
            let told: Vec<_> = shares.iter().map(|share| share.items).collect();
            assert_eq!(told, expected);
            assert_eq!(shares.iter().map(|share| share.bytes).sum::<u64>(), items * 10);
        }
    }
}
