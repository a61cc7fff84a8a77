//! The part of a container in which a query can find anything: what the request
//! names, and of that the partitions that the filter names.

use dayfly_model::Result;
use dayfly_model::partition_key::PartitionKey;
use dayfly_sql::Request;
use dayfly_sql::plan::{Routing, routing};
use dayfly_storage::KeyRange;

use super::access::{Scope, Segments};
use crate::operation::Part;
use crate::parts::{Touched, segments};
use crate::scope::Opened;

/// A filter that names more partitions than this names all.
const PARTITIONS_MAX: usize = 256;

/// What a query can find anything in.
pub(super) struct Reach {
    /// The partition key ranges.
    pub(super) touched: Vec<Touched>,
    /// The ranges of keys.
    pub(super) segments: Segments,
    /// How many partitions that is, if they are named.
    pub(super) partitions: Option<usize>,
    /// The key of the partition, if it is one.
    pub(super) key: Option<PartitionKey>,
}

/// The ranges of keys to look at, and the partition key ranges they are in.
pub(super) fn reach(opened: &Opened, request: &Request, part: &Part) -> Result<Reach> {
    let ranges = segments(&opened.container, part)?;
    let mut touched = opened.touched(part)?;
    let definition = &opened.container.definition().partition_key;
    if part.partition_key.is_some() || definition.system_key || request.query.sources.is_empty() {
        let partitions = part.partition_key.is_some().then_some(1);
        let key = part.partition_key.clone();
        return Ok(Reach { touched, segments: grouped(ranges), partitions, key });
    }
    let keys = match routing(&request.query, &request.parameters, definition) {
        Routing::Nothing => Vec::new(),
        Routing::Keys(keys) if keys.len() <= PARTITIONS_MAX => keys,
        Routing::Keys(_) | Routing::Everything => {
            return Ok(Reach { touched, segments: grouped(ranges), partitions: None, key: None });
        }
    };
    let partitions = Some(keys.len());
    let key = keys.first().filter(|_| keys.len() == 1).cloned();
    let mut named = Vec::new();
    let mut known = Vec::new();
    for key in keys {
        let part = Part { partition_key: Some(key), ..part.clone() };
        named.extend(segments(&opened.container, &part)?);
        known.extend(opened.touched(&part)?.into_iter().map(|touched| touched.range));
    }
    if !known.is_empty() {
        touched.retain(|touched| known.contains(&touched.range));
    }
    named.sort_by(|left, right| (left.0, &left.1.start).cmp(&(right.0, &right.1.start)));
    named.dedup();
    Ok(Reach { touched, segments: grouped(named), partitions, key })
}

/// Ranges in their order, bucket by bucket.
fn grouped(ranges: Vec<(dayfly_storage::Bucket, KeyRange)>) -> Segments {
    let mut segments = Segments::new();
    for (bucket, range) in ranges {
        match segments.last_mut() {
            Some((last, scope)) if *last == bucket => scope.0.push(range),
            _ => segments.push((bucket, Scope(vec![range]))),
        }
    }
    segments
}
