//! A subquery over all items that other rows are made from:
//!
//! ```text
//! SELECT COUNT(1) FROM (SELECT DISTINCT c.kind FROM c) s
//!                       ^ a stage: all items are seen before the first of its rows
//! ```
//!
//! A subquery that sees one item at a time is a source like any other, in
//! `rows.rs`. One with groups, aggregates or DISTINCT speaks of all items if it is
//! the first source. Its rows are gathered here, and then brought to the query
//! around it, as items are brought to others.

use std::borrow::Cow;
use std::collections::HashSet;

use dayfly_model::Result;
use dayfly_model::value::{Value, order};

use super::aggregate::{Groups, kept};
use super::budget::Run;
use super::evaluate::Scope;
use super::program::{RowSource, Select};
use super::rows::Flow;
use crate::names::items_of;
use crate::tree::{Collection, Query};

/// A subquery whose rows come from all items.
pub(super) struct Stage {
    pub(super) select: Select,
    /// What counts are the elements of its rows: `x IN (SELECT ..)`.
    each: bool,
}

/// Takes the stages out of a select that was made from `query`, the innermost
/// first.
pub(super) fn take(select: &mut Select, query: &Query) -> Vec<Stage> {
    if !first_sees_all_items(select, query) {
        return Vec::new();
    }
    let (mut inner, each) = match select.sources.remove(0) {
        RowSource::Rows(inner) => (*inner, false),
        RowSource::RowElements(inner) => (*inner, true),
        // Not reached: the source was looked at above.
        RowSource::Value(_) | RowSource::Elements(_) => return Vec::new(),
    };
    let mut stages = first_query(query).map_or_else(Vec::new, |query| take(&mut inner, query));
    stages.push(Stage { select: inner, each });
    stages
}

/// Whether the first source is a subquery that needs all items.
fn first_sees_all_items(select: &Select, query: &Query) -> bool {
    match (select.sources.first(), first_query(query)) {
        (Some(RowSource::Rows(inner) | RowSource::RowElements(inner)), Some(query)) => {
            inner.is_grouped() || inner.distinct || first_sees_all_items(inner, query)
        }
        _ => false,
    }
}

/// The first source, if it is a subquery. The container makes no source of a
/// select, and neither does what gives its items, so the tree has to be asked.
fn first_query(query: &Query) -> Option<&Query> {
    let source = query.sources.first()?;
    match &source.collection {
        Collection::Subquery(query) if items_of(source).is_none() => Some(query),
        _ => None,
    }
}

/// The rows of a stage on their way.
pub(super) struct Gathering<'p> {
    stage: &'p Stage,
    groups: Groups,
    seen: HashSet<Vec<u8>>,
    values: Vec<Value>,
}

impl<'p> Gathering<'p> {
    pub(super) fn new(stage: &'p Stage) -> Self {
        let groups = stage.select.groups();
        Gathering { stage, groups, seen: HashSet::new(), values: Vec::new() }
    }

    /// Adds the rows of an item, or of a row of the stage before. Whether there were any.
    pub(super) fn add(&mut self, scope: &Scope<'_>) -> Result<bool> {
        let select = &self.stage.select;
        let mut is_any = false;
        select.each(scope, &mut |row| {
            is_any = true;
            if select.is_grouped() {
                select.add_to_group(row, &mut self.groups)?;
            } else {
                let value = select.projection.eval(row)?;
                keep(value, select.distinct, &mut self.seen, &mut self.values, row.run)?;
            }
            Ok(Flow::More)
        })?;
        Ok(is_any)
    }

    /// Its rows.
    pub(super) fn finish(mut self, run: &Run<'_>) -> Result<Vec<Value>> {
        let select = &self.stage.select;
        if select.is_grouped() {
            for group in std::mem::take(&mut self.groups).into_values() {
                run.step()?;
                let scope = Scope { run, item: None, bound: None, group: Some(&group) };
                let value = select.projection.eval(&scope)?;
                keep(value, select.distinct, &mut self.seen, &mut self.values, run)?;
            }
        }
        if !self.stage.each {
            return Ok(self.values);
        }
        let elements = self.values.into_iter().flat_map(|value| match value {
            Value::Array(elements) => elements,
            _ => Vec::new(),
        });
        Ok(elements.collect())
    }
}

/// Keeps a value that is defined and, of distinct ones, new.
fn keep(
    value: Cow<'_, Value>,
    distinct: bool,
    seen: &mut HashSet<Vec<u8>>,
    values: &mut Vec<Value>,
    run: &Run<'_>,
) -> Result<()> {
    if !value.is_defined() {
        return Ok(());
    }
    let key = order::key(&value);
    run.pass(key.len())?;
    run.keep(kept(&key))?;
    if distinct {
        run.keep(kept(&key))?;
        if !seen.insert(key) {
            return Ok(());
        }
    }
    values.push(value.into_owned());
    Ok(())
}
