//! A plan as clients read it. Every list and every boolean is always there: some
//! clients ask a list for its length without asking whether it is there.

use dayfly_model::epk::Epk;
use serde_json::{Value, json};

use super::{Aggregate, Distinct, EpkRange, HybridInfo, Info, Plan, QueryInfo};
use crate::tree::Direction;

impl Plan {
    /// As the service sends it.
    pub fn to_json(&self) -> Value {
        let (name, info) = match &self.info {
            Info::Query(info) => ("queryInfo", info.to_json()),
            Info::Hybrid(info) => ("hybridSearchQueryInfo", info.to_json()),
        };
        // Somebody must be asked, also for what no item is needed for.
        let nobody = EpkRange { min: Epk::min(), max: Epk::min(), max_inclusive: true };
        let ranges = if self.ranges.is_empty() { &[nobody] } else { self.ranges.as_slice() };
        let ranges: Value = ranges.iter().map(EpkRange::to_json).collect();
        json!({
            "partitionedQueryExecutionInfoVersion": 2,
            name: info,
            "queryRanges": ranges,
        })
    }
}

impl EpkRange {
    fn to_json(&self) -> Value {
        json!({
            "min": self.min.to_hex(),
            "max": self.max.to_hex(),
            "isMinInclusive": true,
            "isMaxInclusive": self.max_inclusive,
        })
    }
}

impl QueryInfo {
    fn to_json(&self) -> Value {
        let directions = self.order_by.iter().map(|(direction, _)| direction_name(*direction));
        let keys = self.order_by.iter().map(|(_, key)| key.as_str());
        let aliases = self.group_by_aliases.iter().map(|(name, _)| name.as_str());
        let types = self.group_by_aliases.iter().map(|(name, aggregate)| {
            (name.clone(), aggregate.map_or(Value::Null, |aggregate| aggregate.name().into()))
        });
        json!({
            "distinctType": self.distinct.name(),
            "top": self.top,
            "offset": self.offset,
            "limit": self.limit,
            "orderBy": directions.collect::<Value>(),
            "orderByExpressions": keys.collect::<Value>(),
            "groupByExpressions": self.group_by_expressions,
            "groupByAliases": aliases.collect::<Value>(),
            "aggregates": self.aggregates.iter().map(|known| known.name()).collect::<Value>(),
            "groupByAliasToAggregateType": Value::Object(types.collect()),
            "rewrittenQuery": self.rewritten,
            "hasSelectValue": self.select_value,
            "dCountInfo": self.d_count_alias.as_ref().map(|name| json!({"dCountAlias": name})),
            "hasNonStreamingOrderBy": self.non_streaming,
        })
    }
}

impl HybridInfo {
    fn to_json(&self) -> Value {
        json!({
            "globalStatisticsQuery": self.global_statistics,
            "componentQueryInfos": self.components.iter().map(QueryInfo::to_json).collect::<Value>(),
            "componentWithoutPayloadQueryInfos": [],
            "projectionQueryInfo": null,
            "componentWeights": self.component_weights,
            "skip": self.skip,
            "take": self.take,
            "requiresGlobalStatistics": self.requires_global_statistics,
        })
    }
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "Ascending",
        Direction::Descending => "Descending",
    }
}

impl Distinct {
    fn name(self) -> &'static str {
        match self {
            Distinct::None => "None",
            Distinct::Ordered => "Ordered",
            Distinct::Unordered => "Unordered",
        }
    }
}

impl Aggregate {
    fn name(self) -> &'static str {
        match self {
            Aggregate::Average => "Average",
            Aggregate::Count => "Count",
            Aggregate::CountIf => "CountIf",
            Aggregate::MakeList => "MakeList",
            Aggregate::MakeSet => "MakeSet",
            Aggregate::Max => "Max",
            Aggregate::Min => "Min",
            Aggregate::Sum => "Sum",
        }
    }
}
