//! What a query needs an index for: the service refuses it without one, and so
//! do we.

use dayfly_model::container::ContainerDefinition;
use dayfly_model::indexing::rules::{Computed, Rules};
use dayfly_model::indexing::{CompositePath, IndexingMode, IndexingPolicy, Order};
use dayfly_model::json::Path;
use dayfly_model::system::SYSTEM_PROPERTIES;
use dayfly_model::{Error, Result};
use dayfly_sql::run::{IndexStep, OrderKey, Program, Style};
use dayfly_storage::Direction;

const UNFILTERED: &str = "An invalid query has been specified with filters against path(s) \
                          excluded from indexing. Consider adding allow scan header in the request.";
const EXCLUDED: &str = "The index path corresponding to the specified order-by item is excluded.";
const NO_COMPOSITE: &str = "The order by query does not have a corresponding composite index that \
                            it can be served from.";
const UNMAPPED: &str = "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped \
                        to a document path.";

/// Refuses a filter in a container without an index, unless the request lets all
/// items be read.
pub(super) fn check_filter(policy: &IndexingPolicy, program: &Program, scan: bool) -> Result<()> {
    let refuses = policy.mode == IndexingMode::None && program.asks_of_values() && !scan;
    if refuses { Err(refused(UNFILTERED)) } else { Ok(()) }
}

/// Refuses an order for which the container has no index.
pub(super) fn check_order(definition: &ContainerDefinition, program: &Program) -> Result<()> {
    let policy = &definition.indexing;
    let keys = program.order();
    if keys.is_empty() || program.style() == Style::Whole && keys.len() > 1 {
        return Ok(());
    }
    let computed = definition.computed.iter();
    let computed = computed.map(|property| Computed { name: &property.name, has_entries: true });
    let rules = Rules::with_computed(policy, &computed.collect::<Vec<_>>());
    let mut paths = Vec::new();
    for key in keys {
        match &key.steps {
            Some(steps) => paths.push(steps.iter().map(IndexStep::as_step).collect::<Vec<_>>()),
            None => return Err(refused(UNMAPPED)),
        }
    }
    // The index has no order for one element of each array: those are sorted, where
    // it would have their values.
    if let ([steps], [key]) = (paths.as_slice(), keys) {
        let known = rules.is_indexed(steps) || key.path.as_deref().is_some_and(is_system);
        return if known { Ok(()) } else { Err(refused(EXCLUDED)) };
    }
    let members = |paths: &Vec<CompositePath>| -> Vec<(Path, Order)> {
        paths.iter().map(|member| (member.path.clone(), member.order)).collect()
    };
    // Those over system properties have no entries; what they order is sorted.
    let known = rules.is_on()
        && policy.composites.iter().any(|paths| fits(&members(paths), keys).is_some());
    if known { Ok(()) } else { Err(refused(NO_COMPOSITE)) }
}

/// Which way a composite index must be walked to give an order.
pub(super) fn fits(members: &[(Path, Order)], keys: &[OrderKey]) -> Option<Direction> {
    let same_paths = members.len() == keys.len()
        && members
            .iter()
            .zip(keys)
            .all(|((path, _), key)| key.path.as_deref() == Some(path.segments()));
    if !same_paths {
        return None;
    }
    let mut agree = members
        .iter()
        .zip(keys)
        .map(|((_, order), key)| (*order == Order::Descending) == key.descends());
    let first = agree.next()?;
    agree.all(|agrees| agrees == first).then_some(if first {
        Direction::Forward
    } else {
        Direction::Backward
    })
}

/// What the server adds to an item can be sorted by without an index.
pub(super) fn is_system(path: &[String]) -> bool {
    matches!(path, [name] if SYSTEM_PROPERTIES.contains(&name.as_str()))
}

fn refused(sentence: &str) -> Error {
    let body = serde_json::json!({ "Errors": [sentence] });
    Error::bad_request(format!("Message: {body}"))
}
