//! What a client says it can do with a plan.

use super::{Aggregate, Distinct, Info, Plan, QueryInfo};
use crate::error::SyntaxError;

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $name:ident;)+) => {
        /// Something that a client must do itself when it carries out a plan.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Feature {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Feature {
            /// All of them.
            pub const ALL: &'static [Feature] = &[$(Feature::$name,)+];

            /// As clients write it.
            pub fn name(self) -> &'static str {
                match self { $(Feature::$name => stringify!($name),)+ }
            }
        }
    };
}

features! {
    /// Merges the aggregate of a `SELECT VALUE`.
    Aggregate;
    /// Merges averages.
    CompositeAggregate;
    /// Removes what is there twice.
    Distinct;
    /// Merges groups.
    GroupBy;
    /// Merges several aggregates.
    MultipleAggregates;
    /// Merges by several keys.
    MultipleOrderBy;
    /// Skips and cuts.
    OffsetAndLimit;
    /// Merges by a key.
    OrderBy;
    /// Cuts.
    Top;
    /// Merges aggregates with names.
    NonValueAggregate;
    /// Counts what is left of a `DISTINCT`.
    DCount;
    /// Sorts what comes unsorted.
    NonStreamingOrderBy;
    /// Merges counts of what is true.
    CountIf;
    /// Fuses several rankings.
    HybridSearch;
    /// Fuses them by weights.
    WeightedRankFusion;
    /// Sorts the parts of a hybrid search by their scores.
    HybridSearchSkipOrderByRewrite;
}

impl Feature {
    /// Reads a list with commas. Features that are not known are left out.
    pub fn read_list(text: &str) -> Vec<Feature> {
        let known = |name: &str| Feature::ALL.iter().find(|known| known.name() == name).copied();
        text.split(',').filter_map(|name| known(name.trim())).collect()
    }
}

/// Refuses a plan that needs what the client cannot do.
pub(super) fn check(plan: &Plan, features: &[Feature]) -> Result<(), SyntaxError> {
    let needed = match &plan.info {
        Info::Query(info) => needed(info),
        Info::Hybrid(info) if info.component_weights.is_empty() => vec![Feature::HybridSearch],
        Info::Hybrid(_) => vec![Feature::HybridSearch, Feature::WeightedRankFusion],
    };
    let missing: Vec<String> = needed
        .into_iter()
        .filter(|feature| !features.contains(feature))
        .map(|feature| {
            format!(
                "Query contained {}, which the calling client does not support.",
                feature.name()
            )
        })
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(SyntaxError::sentence(format!(
        "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does \
         support the requested features:\r\n{}",
        missing.join("\r\n")
    )))
}

fn needed(info: &QueryInfo) -> Vec<Feature> {
    let grouped = !info.group_by_expressions.is_empty();
    let named: Vec<Aggregate> =
        info.group_by_aliases.iter().filter_map(|(_, aggregate)| *aggregate).collect();
    let all: Vec<Aggregate> = info.aggregates.iter().chain(&named).copied().collect();
    let needs = [
        (Feature::GroupBy, grouped),
        (Feature::Aggregate, !grouped && !info.aggregates.is_empty()),
        (Feature::NonValueAggregate, !grouped && !named.is_empty()),
        (Feature::MultipleAggregates, all.len() > 1),
        // Lists and sets are merged by clients that never say so.
        (Feature::CountIf, all.contains(&Aggregate::CountIf)),
        (Feature::Distinct, info.distinct != Distinct::None && info.d_count_alias.is_none()),
        (Feature::DCount, info.d_count_alias.is_some()),
        (Feature::OrderBy, info.order_by.len() == 1 && !info.non_streaming),
        (Feature::MultipleOrderBy, info.order_by.len() > 1),
        (Feature::NonStreamingOrderBy, info.non_streaming),
        (Feature::Top, info.top.is_some()),
        (Feature::OffsetAndLimit, info.offset.is_some() || info.limit.is_some()),
    ];
    needs.into_iter().filter(|(_, needed)| *needed).map(|(feature, _)| feature).collect()
}
