//! The text that is sent to each range, and what is done with its rows.
//!
//! | query          | sent                                                           |
//! |----------------|----------------------------------------------------------------|
//! | `ORDER BY k`   | `SELECT c._rid, [{"item": k}] AS orderByItems, .. AS payload`  |
//! | an aggregate   | `SELECT VALUE [{"item": ..}]`, `SELECT {..} AS payload`        |
//! | `GROUP BY g`   | `SELECT [{"item": g}] AS groupByItems, .. AS payload`          |
//! | both of them   | that of `ORDER BY`, with that of `GROUP BY` as its payload     |
//! | a count of     | the `DISTINCT` query itself                                    |
//! | a `DISTINCT`   |                                                                |
//! | `OFFSET LIMIT` | `OFFSET 0 LIMIT` of both together                              |
//!
//! What must not happen in a range by itself is left out of the text, and done by
//! the client: cutting before groups are whole or equal rows are removed.

use super::build::{self, FILTER_PLACEHOLDER, and, array, item, object};
use super::vector::Vectors;
use super::{Aggregate, Counts, Distinct, QueryInfo};
use crate::error::SyntaxError;
use crate::functions::signature::signature;
use crate::names::{self, has_aggregate, is_aggregate, item_names, meant, name_of, normal};
use crate::print::{expr_in_lines, query_in_lines};
use crate::tree::{
    Binding, Call, Collection, Direction, Expr, ExprKind, Literal, OffsetLimit, OrderBy,
    Projection, Query, SelectItem, SortKey, Span,
};
use crate::walk;

/// What is sent and how it is merged. `one_partition`: the filter names one.
pub(super) fn query_info(
    query: &Query,
    counts: &Counts,
    vectors: &Vectors<'_>,
    one_partition: bool,
) -> Result<QueryInfo, SyntaxError> {
    let mut info = QueryInfo {
        distinct: if query.distinct { Distinct::Unordered } else { Distinct::None },
        top: counts.top,
        offset: counts.page.map(|(offset, _)| offset),
        limit: counts.page.map(|(_, limit)| limit),
        select_value: matches!(query.projection, Projection::Value(_)),
        ..QueryInfo::default()
    };
    let aggregates = walk::selected(&query.projection).any(has_aggregate);
    let mut sent = query.clone();
    let merged = aggregates || query.distinct || !query.group_by.is_empty();
    cut(&mut sent, counts, &mut info, merged, one_partition);
    if let Some((alias, distinct)) = distinct_count(query) {
        info.distinct = Distinct::Unordered;
        info.d_count_alias = Some(alias);
        info.rewritten = query_in_lines(distinct);
        return Ok(info);
    }
    if aggregates || !query.group_by.is_empty() {
        group(&mut sent, query, &mut info)?;
        order_groups(&mut sent, query, &mut info)?;
    } else if let Some(order_by) = &query.order_by {
        order(&mut sent, query, order_by, vectors, &mut info)?;
    }
    if sent != *query {
        info.rewritten = query_in_lines(&sent);
    }
    // Which is also said where it changes nothing.
    if info.limit.is_some() && info.rewritten.is_empty() {
        info.rewritten = query_in_lines(&sent);
    }
    Ok(info)
}

/// Who skips and cuts: the range where it has all rows, else the client.
fn cut(sent: &mut Query, counts: &Counts, info: &mut QueryInfo, merged: bool, one: bool) {
    if merged {
        sent.top = None;
        sent.page = None;
    } else if one {
        info.offset = None;
        info.limit = None;
    } else if let Some((offset, limit)) = counts.page {
        let all = offset.saturating_add(limit);
        sent.page = Some(OffsetLimit {
            offset: build::count(0),
            limit: build::count(all),
            span: Span::default(),
        });
    }
}

/// A count of the rows of a DISTINCT query: its name, and that query.
fn distinct_count(query: &Query) -> Option<(String, &Query)> {
    let ([source], None, None) = (query.sources.as_slice(), &query.filter, &query.order_by) else {
        return None;
    };
    let Collection::Subquery(inner) = &source.collection else { return None };
    let plain = inner.group_by.is_empty() && !walk::selected(&inner.projection).any(has_aggregate);
    if query.distinct || !query.group_by.is_empty() || !inner.distinct || !plain {
        return None;
    }
    let (expr, alias) = match &query.projection {
        Projection::Value(item) => (&item.expr, String::new()),
        Projection::Items(items) => match items.as_slice() {
            [item] => (&item.expr, item_names(items).concat()),
            _ => return None,
        },
        Projection::All(_) => return None,
    };
    let ExprKind::Call(call) = &expr.kind else { return None };
    let [counted] = call.arguments.as_slice() else { return None };
    let defined = match &counted.kind {
        ExprKind::Literal(literal) => *literal != Literal::Undefined,
        ExprKind::Identifier(name) => name_of(source) == Some(name),
        _ => false,
    };
    let counts = aggregate_of(call) == Some(Aggregate::Count) && defined;
    counts.then_some((alias, inner.as_ref()))
}

/// Aggregates and groups.
fn group(sent: &mut Query, query: &Query, info: &mut QueryInfo) -> Result<(), SyntaxError> {
    sent.distinct = false;
    let payload = match &query.projection {
        Projection::All(_) => return Err(SyntaxError::sentence("'SELECT *' has no aggregates.")),
        Projection::Value(item) => match merged(&item.expr)? {
            Some((aggregate, partial)) => {
                info.aggregates.push(aggregate);
                array(vec![partial])
            }
            None => item.expr.clone(),
        },
        Projection::Items(items) => named(items, info)?,
    };
    info.group_by_expressions = query.group_by.iter().map(expr_in_lines).collect();
    sent.projection = match &query.projection {
        Projection::Value(_) if query.group_by.is_empty() => {
            Projection::Value(SelectItem { expr: payload, alias: None })
        }
        _ if query.group_by.is_empty() => Projection::Items(vec![item(payload, "payload")]),
        _ => Projection::Items(vec![
            item(items_of(&query.group_by), "groupByItems"),
            item(payload, "payload"),
        ]),
    };
    Ok(())
}

/// The properties of a row, each as it can be merged.
fn named(items: &[SelectItem], info: &mut QueryInfo) -> Result<Expr, SyntaxError> {
    let mut members = Vec::with_capacity(items.len());
    let names = item_names(items);
    if let Some(again) = repeated(&names) {
        return Err(SyntaxError::sentence(format!(
            "The name '{again}' is selected more than once. Give each item a name of its own \
             with AS."
        )));
    }
    for (item, name) in items.iter().zip(names) {
        let merged = merged(&item.expr)?;
        info.group_by_aliases.push((name.clone(), merged.as_ref().map(|(known, _)| *known)));
        members.push((name, merged.map_or_else(|| item.expr.clone(), |(_, partial)| partial)));
    }
    Ok(build::at(ExprKind::Object(members)))
}

fn repeated(names: &[String]) -> Option<&str> {
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let pairs = sorted.iter().zip(sorted.iter().skip(1));
    pairs.into_iter().find(|(one, next)| one == next).map(|(one, _)| *one)
}

/// An aggregate in a form that can be merged; `None`: there is none.
fn merged(expr: &Expr) -> Result<Option<(Aggregate, Expr)>, SyntaxError> {
    if !has_aggregate(expr) {
        return Ok(None);
    }
    let aggregate = match &expr.kind {
        ExprKind::Call(call) if is_aggregate(call) => {
            aggregate_of(call).map(|aggregate| (aggregate, partial(aggregate, call, expr)))
        }
        _ => None,
    };
    let message = "Compositions of aggregates and other expressions are not allowed.";
    aggregate.map(Some).ok_or_else(|| SyntaxError::sentence(message))
}

fn aggregate_of(call: &Call) -> Option<Aggregate> {
    let aggregate = match signature(&call.name)?.name {
        "AVG" => Aggregate::Average,
        "COUNT" => Aggregate::Count,
        "COUNTIF" => Aggregate::CountIf,
        "MAKELIST" => Aggregate::MakeList,
        "MAKESET" => Aggregate::MakeSet,
        "MAX" => Aggregate::Max,
        "MIN" => Aggregate::Min,
        "SUM" => Aggregate::Sum,
        _ => return None,
    };
    (!call.udf).then_some(aggregate)
}

/// What a range tells of an aggregate.
fn partial(aggregate: Aggregate, call: &Call, expr: &Expr) -> Expr {
    let of = |name: &str| build::call(name, call.arguments.clone());
    let least_or_greatest = |name: &str| {
        let counted = object(vec![(name, expr.clone()), ("count", of("COUNT"))]);
        object(vec![("item", expr.clone()), ("item2", counted)])
    };
    match aggregate {
        Aggregate::Average => {
            object(vec![("item", object(vec![("sum", of("SUM")), ("count", of("COUNT"))]))])
        }
        Aggregate::Min => least_or_greatest("min"),
        Aggregate::Max => least_or_greatest("max"),
        _ => object(vec![("item", expr.clone())]),
    }
}

/// Sort keys, and the row behind them.
fn order(
    sent: &mut Query,
    query: &Query,
    order_by: &OrderBy,
    vectors: &Vectors<'_>,
    info: &mut QueryInfo,
) -> Result<(), SyntaxError> {
    let keys: Vec<Expr> = order_by.keys.iter().map(|key| key.expr.clone()).collect();
    for key in &order_by.keys {
        let vector = vectors.direction(&key.expr);
        info.non_streaming |= vector.is_some();
        let direction = key.direction.or(vector).unwrap_or(Direction::Ascending);
        info.order_by.push((direction, expr_in_lines(&key.expr)));
    }
    if query.distinct && selects(query, &keys) {
        info.distinct = Distinct::Ordered;
    }
    sent.distinct = false;
    sent.projection = Projection::Items(vec![
        rid(query)?,
        item(items_of(&keys), "orderByItems"),
        item(payload(query)?, "payload"),
    ]);
    let filter = and(sent.filter.take(), build::name(FILTER_PLACEHOLDER));
    sent.filter = Some(and_defined(filter, query));
    Ok(())
}

/// Groups in an order: clients sort first, and then put groups together in the order
/// in which they come.
fn order_groups(sent: &mut Query, query: &Query, info: &mut QueryInfo) -> Result<(), SyntaxError> {
    let Some(order_by) = query.order_by.as_ref().filter(|_| !query.group_by.is_empty()) else {
        return Ok(());
    };
    let mut keys = Vec::with_capacity(order_by.keys.len());
    for key in &order_by.keys {
        let direction = key.direction.unwrap_or(Direction::Ascending);
        let expr = meant(query, &key.expr);
        info.order_by.push((direction, expr_in_lines(expr)));
        keys.push(SortKey { expr: expr.clone(), ..key.clone() });
    }
    let exprs: Vec<Expr> = keys.iter().map(|key| key.expr.clone()).collect();
    let groups = std::mem::replace(&mut sent.projection, Projection::Items(Vec::new()));
    let Projection::Items(groups) = groups else { return Ok(()) };
    let groups = item_names(&groups).into_iter().zip(groups);
    let groups = groups.map(|(name, item)| (name, item.expr)).collect();
    sent.projection = Projection::Items(vec![
        item(rid_of_group(query)?, "_rid"),
        item(items_of(&exprs), "orderByItems"),
        item(build::at(ExprKind::Object(groups)), "payload"),
    ]);
    sent.filter = Some(and(sent.filter.take(), build::name(FILTER_PLACEHOLDER)));
    sent.order_by = Some(OrderBy { keys, ..order_by.clone() });
    Ok(())
}

/// Whether exactly the sort keys are selected, so that equal rows follow each other.
fn selects(query: &Query, keys: &[Expr]) -> bool {
    let texts = |exprs: Vec<&Expr>| {
        let texts = exprs.into_iter().map(|expr| normal(expr.clone()).to_string());
        texts.collect::<std::collections::BTreeSet<String>>()
    };
    let selected: Vec<&Expr> = walk::selected(&query.projection).collect();
    !selected.is_empty() && texts(selected) == texts(keys.iter().collect())
}

/// `c._rid`, which decides between rows with equal keys.
pub(super) fn rid(query: &Query) -> Result<SelectItem, SyntaxError> {
    Ok(SelectItem { expr: build::member(first_source(query)?, "_rid"), alias: None })
}

/// What stands for the `_rid` of a group, which clients want to be a text: the first of
/// its items', or none where rows are no items.
fn rid_of_group(query: &Query) -> Result<Expr, SyntaxError> {
    let is_item = query.sources.first().is_some_and(|source| {
        let is_container = matches!(&source.collection, Collection::Path { steps, .. }
            if steps.is_empty() && !matches!(source.binding, Binding::Each(_)));
        is_container || names::items_of(source).is_some()
    });
    if is_item {
        return Ok(build::call("MIN", vec![rid(query)?.expr]));
    }
    Ok(build::at(ExprKind::Literal(Literal::String(String::new()))))
}

/// The row itself, as one value.
pub(super) fn payload(query: &Query) -> Result<Expr, SyntaxError> {
    match &query.projection {
        Projection::All(_) => first_source(query),
        Projection::Value(item) => Ok(item.expr.clone()),
        Projection::Items(items) => {
            let members = item_names(items).into_iter().zip(items);
            let members = members.map(|(name, item)| (name, item.expr.clone())).collect();
            Ok(build::at(ExprKind::Object(members)))
        }
    }
}

/// A value that is undefined is no row, also when it is part of one.
pub(super) fn and_defined(filter: Expr, query: &Query) -> Expr {
    match &query.projection {
        Projection::Value(item) => {
            and(Some(filter), build::call("IS_DEFINED", vec![item.expr.clone()]))
        }
        Projection::All(_) | Projection::Items(_) => filter,
    }
}

fn first_source(query: &Query) -> Result<Expr, SyntaxError> {
    let name = query.sources.first().and_then(name_of).map(build::name);
    name.ok_or_else(|| {
        SyntaxError::sentence("A query with ORDER BY needs a name for its first source.")
    })
}

/// `[{"item": a}, {"item": b}]`
pub(super) fn items_of(exprs: &[Expr]) -> Expr {
    array(exprs.iter().map(|expr| object(vec![("item", expr.clone())])).collect())
}
