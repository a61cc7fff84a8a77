//! Queries of the catalog: databases, containers and offers.
//!
//! There are few of them, so all are read and the query is put to each as JSON.

use dayfly_model::Result;
use dayfly_sql::{Request, Shape};
use dayfly_storage::{KeyRange, Snapshot};
use serde_json::Value;

use crate::catalog::CatalogView;
use crate::reply::storage_failed;

/// How many rows a query goes through.
const LOOKUP_MAX: usize = 100_000;

/// The rows in `range` that the query in `body` asks for, as `to_json` shows them.
pub(crate) fn find(
    snapshot: &dyn Snapshot,
    range: &KeyRange,
    body: &[u8],
    to_json: impl Fn(&[u8]) -> Result<Value>,
) -> Result<Vec<Value>> {
    let shape = Shape::of(&Request::read(body)?)?;
    let rows = CatalogView::scan(snapshot, range, LOOKUP_MAX).map_err(storage_failed)?;
    let mut found = rows.iter().map(|(_, row)| to_json(row)).collect::<Result<Vec<_>>>()?;
    if let Shape::Lookup { property, value } = shape {
        found.retain(|resource| resource.get(&property).is_some_and(|known| *known == value));
    }
    Ok(found)
}
