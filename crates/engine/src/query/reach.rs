//! The part of a container in which a query can find anything: what the request
//! names, and of that the partitions that the filter names.

use std::borrow::Cow;

use dayfly_model::Result;
use dayfly_model::partition_key::PartitionKey;
use dayfly_sql::Request;
use dayfly_sql::plan::{Routing, routing};

use crate::operation::Part;
use crate::parts::{Scope, Segment, Touched, part_before, segments_before};
use crate::scope::Opened;

/// A filter that names more partitions than this names all.
const PARTITIONS_MAX: usize = 256;

/// What a query can find anything in.
pub(super) struct Reach {
    /// The partition key ranges.
    pub(super) touched: Vec<Touched>,
    /// Where in each of them.
    pub(super) segments: Vec<Segment>,
    /// How many partitions that is, if they are named.
    pub(super) partitions: Option<usize>,
    /// The key of the partition, if it is one.
    pub(super) key: Option<PartitionKey>,
}

/// The partition key ranges to look at, and what of them: in their order when so many of them
/// had been numbered.
pub(super) fn reach(
    opened: &Opened,
    request: &Request,
    part: &Part,
    numbered: u32,
) -> Result<Reach> {
    let all = segments_before(&opened.container, part, numbered)?;
    let mut touched = opened.touched(part)?;
    let definition = &opened.container.definition().partition_key;
    if part.partition_key.is_some() || definition.system_key || request.query.sources.is_empty() {
        let partitions = part.partition_key.is_some().then_some(1);
        let key = part.partition_key.clone();
        return Ok(Reach { touched, segments: all, partitions, key });
    }
    let keys = match routing(&request.query, &request.parameters, definition) {
        Routing::Nothing => Vec::new(),
        Routing::Keys(keys) if keys.len() <= PARTITIONS_MAX => keys,
        Routing::Keys(_) | Routing::Everything => {
            return Ok(Reach { touched, segments: all, partitions: None, key: None });
        }
    };
    let partitions = Some(keys.len());
    let key = keys.first().filter(|_| keys.len() == 1).cloned();
    let asked = part_before(&opened.container, part, numbered)?;
    let (mut named, mut meant) = (Vec::new(), Vec::new());
    let mut known = Vec::new();
    for key in keys {
        if let Cow::Owned(asked) = &asked {
            let part = Part { partition_key: Some(key.clone()), ..asked.clone() };
            meant.extend(segments_before(&opened.container, &part, numbered)?);
        }
        let part = Part { partition_key: Some(key), ..part.clone() };
        named.extend(segments_before(&opened.container, &part, numbered)?);
        known.extend(opened.touched(&part)?.into_iter().map(|touched| touched.range));
    }
    if !known.is_empty() {
        touched.retain(|touched| known.contains(&touched.range));
    }
    let meant = if matches!(asked, Cow::Owned(_)) { &meant } else { &named };
    Ok(Reach { touched, segments: joined(all, &named, meant), partitions, key })
}

/// The segments of single keys, as one for each range, in the order of all. A key may be
/// the first part of a hierarchical one, and then means many partitions. A range has one if
/// it has some of what is meant: a page may have ended in it, and the half of it have none.
fn joined(all: Vec<Segment>, named: &[Segment], meant: &[Segment]) -> Vec<Segment> {
    let mut joined = Vec::new();
    for segment in all {
        let (scopes, meant) = (scopes_in(&segment, named), scopes_in(&segment, meant));
        if !meant.is_empty() {
            joined.push(segment.only(&scopes, &meant));
        }
    }
    joined
}

fn scopes_in<'s>(segment: &Segment, segments: &'s [Segment]) -> Vec<&'s Scope> {
    let here = segments.iter().filter(|other| other.range == segment.range);
    here.map(|other| &other.scope).collect()
}
