//! Plans: how a client that asks each range of a container by itself puts the
//! answers together.
//!
//! A plan says which ranges to ask, what text to send them, and what is to be
//! done with what comes back: merge by sort keys, fold aggregates, remove what is
//! there twice, skip and cut.
//!
//! ```text
//! routing.rs    the filter -> the ranges
//! rewrite.rs    the query  -> the text for each range, and what is to be merged
//! hybrid.rs     the same for ORDER BY RANK: one text for each score
//! vector.rs     in which direction vectors are sorted
//! feature.rs    what of this the client says it can do
//! json.rs       the plan as clients read it
//! ```

mod build;
mod constant;
mod feature;
mod hybrid;
mod json;
mod rewrite;
mod routing;
mod vector;

#[cfg(test)]
mod tests;

use dayfly_model::container::Embedding;
use dayfly_model::partition_key::PartitionKeyDefinition;

use self::constant::Constants;
pub use self::feature::Feature;
pub use self::routing::{EpkRange, KEYS_MAX, Routing, routing};
use self::vector::Vectors;
use crate::error::SyntaxError;
use crate::request::Parameters;
use crate::tree::{Amount, Count, Direction, Query};

/// How a client carries out a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What to send and how to merge.
    pub info: Info,
    /// Whom to ask; nobody, if the query reads no items.
    pub ranges: Vec<EpkRange>,
}

/// The two kinds of plans.
#[derive(Clone, Debug, PartialEq)]
pub enum Info {
    /// One query for all ranges.
    Query(QueryInfo),
    /// Several that are fused, for `ORDER BY RANK`.
    Hybrid(HybridInfo),
}

/// A query for all ranges, and what is done with its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryInfo {
    /// Whether rows that are there twice are removed.
    pub distinct: Distinct,
    /// How many rows are given out.
    pub top: Option<u32>,
    /// How many rows are left out first.
    pub offset: Option<u32>,
    /// How many rows follow.
    pub limit: Option<u32>,
    /// By what rows are merged, and in which direction.
    pub order_by: Vec<(Direction, String)>,
    /// What rows are grouped by.
    pub group_by_expressions: Vec<String>,
    /// The properties of a row that is made of many, and how.
    pub group_by_aliases: Vec<(String, Option<Aggregate>)>,
    /// The aggregate of a `SELECT VALUE`.
    pub aggregates: Vec<Aggregate>,
    /// What is sent; empty: the query itself.
    pub rewritten: String,
    /// Whether a row is a value without a name.
    pub select_value: bool,
    /// Rows are only counted: the name of the count, or empty.
    pub d_count_alias: Option<String>,
    /// Whether the rows of a range come unsorted.
    pub non_streaming: bool,
}

/// Whether equal rows are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distinct {
    /// No.
    #[default]
    None,
    /// Yes; equal rows follow each other.
    Ordered,
    /// Yes.
    Unordered,
}

/// How values of several ranges become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// From a sum and a count.
    Average,
    /// By adding.
    Count,
    /// By adding.
    CountIf,
    /// By joining.
    MakeList,
    /// By joining, each value once.
    MakeSet,
    /// By taking the greatest.
    Max,
    /// By taking the least.
    Min,
    /// By adding.
    Sum,
}

/// The queries of a hybrid search, and how their rankings become one.
#[derive(Clone, Debug, PartialEq)]
pub struct HybridInfo {
    /// Counts words and items, for scores that depend on all of them.
    pub global_statistics: String,
    /// One for each score.
    pub components: Vec<QueryInfo>,
    /// How much each counts; empty: all the same.
    pub component_weights: Vec<f64>,
    /// How many rows are left out first.
    pub skip: Option<u32>,
    /// How many rows follow.
    pub take: Option<u32>,
    /// Whether a score depends on the statistics.
    pub requires_global_statistics: bool,
}

/// Plans a query that was checked, for a client that can do `features`, over a
/// container with this partition key and these vectors.
pub fn plan(
    query: &Query,
    parameters: &Parameters,
    partition_key: &PartitionKeyDefinition,
    embeddings: &[Embedding],
    features: &[Feature],
) -> Result<Plan, SyntaxError> {
    let routing = routing(query, parameters, partition_key);
    let counts = Counts::read(query, parameters)?;
    let vectors = Vectors { query, constants: Constants::new(parameters), embeddings };
    let info = if query.order_by.as_ref().is_some_and(|order_by| order_by.rank) {
        let skip_rewrite = features.contains(&Feature::HybridSearchSkipOrderByRewrite);
        Info::Hybrid(hybrid::hybrid_info(query, &counts, &vectors, skip_rewrite)?)
    } else {
        let one_partition = routing.one_partition(partition_key).is_some();
        Info::Query(rewrite::query_info(query, &counts, &vectors, one_partition)?)
    };
    let plan = Plan { info, ranges: routing.ranges(partition_key) };
    feature::check(&plan, features)?;
    Ok(plan)
}

/// The numbers of TOP, OFFSET and LIMIT.
struct Counts {
    top: Option<u32>,
    /// Offset and limit.
    page: Option<(u32, u32)>,
}

impl Counts {
    fn read(query: &Query, parameters: &Parameters) -> Result<Counts, SyntaxError> {
        let number = |clause: &str, count: &Count| {
            amount(count, parameters).ok_or_else(|| {
                SyntaxError::sentence(format!(
                    "The count value provided for a {clause} clause must be an integer from 0 to \
                     {}.",
                    u32::MAX
                ))
            })
        };
        let top = query.top.as_ref().map(|count| number("TOP", count)).transpose()?;
        let page = match &query.page {
            Some(page) => Some((number("OFFSET", &page.offset)?, number("LIMIT", &page.limit)?)),
            None => None,
        };
        Ok(Counts { top, page })
    }
}

/// The number of a count; `None`: its parameter is none.
fn amount(count: &Count, parameters: &Parameters) -> Option<u32> {
    match &count.amount {
        Amount::Number(number) => Some(*number),
        Amount::Parameter(name) => {
            let value = parameters.get(name)?.as_ref()?;
            value.as_u64().and_then(|number| number.try_into().ok())
        }
    }
}
