//! FROM, JOIN and WHERE: the rows of an item, and the rows of a subquery.

use std::borrow::Cow;
use std::collections::HashSet;

use dayfly_model::Result;
use dayfly_model::value::{Value, order};

use super::aggregate::{AggregateKind, Groups, kept};
use super::budget::refused;
use super::evaluate::{Bound, Scope};
use super::program::{RowSource, Select};
use crate::functions::size;
use crate::tree::Use;

/// Whether more rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    More,
    Enough,
}

/// Who takes rows.
type Taker<'t> = &'t mut dyn FnMut(&Scope<'_>) -> Result<Flow>;

impl Select {
    /// Hands each row of the sources that passes the filter to `take`.
    pub(super) fn each(&self, scope: &Scope<'_>, take: Taker<'_>) -> Result<Flow> {
        self.join(&self.sources, scope, take)
    }

    fn join(&self, sources: &[RowSource], scope: &Scope<'_>, take: Taker<'_>) -> Result<Flow> {
        let Some((source, rest)) = sources.split_first() else {
            scope.run.step()?;
            return if self.passes(scope)? { take(scope) } else { Ok(Flow::More) };
        };
        let mut bind = |value: &Value| {
            scope.run.work(1)?;
            let bound = Bound { value, outer: scope.bound };
            self.join(rest, &Scope { bound: Some(&bound), ..*scope }, take)
        };
        match source {
            RowSource::Value(code) => {
                let value = code.eval(scope)?;
                if value.is_defined() { bind(&value) } else { Ok(Flow::More) }
            }
            RowSource::Elements(code) => elements(&*code.eval(scope)?, &mut bind),
            RowSource::Rows(select) => select.values(scope, &mut |value| bind(&value)),
            RowSource::RowElements(select) => {
                select.values(scope, &mut |value| elements(&value, &mut bind))
            }
        }
    }

    fn passes(&self, scope: &Scope<'_>) -> Result<bool> {
        let Some(filter) = &self.filter else { return Ok(!self.negated) };
        let truth = filter.eval(scope)?;
        Ok(matches!(&*truth, Value::Bool(truth) if *truth != self.negated))
    }

    /// The defined values of its rows, as a subquery.
    fn values<'a>(
        &self,
        scope: &Scope<'a>,
        take: &mut dyn FnMut(Cow<'_, Value>) -> Result<Flow>,
    ) -> Result<Flow> {
        let mut seen = HashSet::new();
        let mut take_new = |value: Cow<'_, Value>| {
            if !value.is_defined() {
                return Ok(Flow::More);
            }
            if self.distinct {
                let key = order::key(&value);
                scope.run.pass(key.len())?;
                scope.run.keep(kept(&key))?;
                if !seen.insert(key) {
                    return Ok(Flow::More);
                }
            }
            take(value)
        };
        if !self.is_grouped() {
            return self.each(scope, &mut |row| take_new(self.projection.eval(row)?));
        }
        let mut groups = self.groups();
        self.each(scope, &mut |row| self.add_to_group(row, &mut groups).map(|()| Flow::More))?;
        for group in groups.into_values() {
            scope.run.step()?;
            let scope = Scope { group: Some(&group), ..*scope };
            if take_new(self.projection.eval(&scope)?)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::More)
    }

    /// No groups yet; without GROUP BY there is always one.
    pub(super) fn groups(&self) -> Groups {
        let mut groups = Groups::default();
        if self.group_by.is_empty() {
            groups.start(&self.kinds());
        }
        groups
    }

    fn kinds(&self) -> Vec<AggregateKind> {
        self.aggregates.iter().map(|(kind, _)| *kind).collect()
    }

    /// Counts a row in its group.
    pub(super) fn add_to_group(&self, row: &Scope<'_>, groups: &mut Groups) -> Result<()> {
        let mut keys = Vec::with_capacity(self.group_by.len());
        for key in &self.group_by {
            keys.push(key.eval(row)?.into_owned());
        }
        let (group, bytes) = groups.find(keys, &self.kinds(), row.run)?;
        row.run.keep(bytes)?;
        let Some(group) = group else { return Ok(()) };
        for ((_, code), tally) in self.aggregates.iter().zip(&mut group.tallies) {
            row.run.keep(tally.add(&*code.eval(row)?))?;
        }
        Ok(())
    }

    /// What a subquery is worth in an expression.
    pub(super) fn value<'a>(&self, how: Use, scope: &Scope<'a>) -> Result<Cow<'a, Value>> {
        let mut rows: Vec<Value> = Vec::new();
        let outcome = match how {
            Use::Exists | Use::All => {
                let mut found = false;
                self.values(scope, &mut |_| {
                    found = true;
                    Ok(Flow::Enough)
                })?;
                Value::Bool(found == (how == Use::Exists))
            }
            Use::First => {
                self.values(scope, &mut |value| {
                    rows.push(value.into_owned());
                    Ok(Flow::Enough)
                })?;
                rows.pop().unwrap_or_default()
            }
            Use::Last => {
                let mut last = Value::Undefined;
                self.values(scope, &mut |value| {
                    last = value.into_owned();
                    Ok(Flow::More)
                })?;
                last
            }
            Use::Array => {
                self.values(scope, &mut |value| {
                    scope.run.work(1)?;
                    scope.run.make(size(&value))?;
                    rows.push(value.into_owned());
                    Ok(Flow::More)
                })?;
                Value::Array(rows)
            }
            Use::Scalar => {
                self.values(scope, &mut |value| {
                    rows.push(value.into_owned());
                    Ok(if rows.len() > 1 { Flow::Enough } else { Flow::More })
                })?;
                if rows.len() > 1 {
                    return Err(refused(
                        "The cardinality of a scalar subquery result set cannot be greater than \
                         one.",
                    ));
                }
                rows.pop().unwrap_or_default()
            }
        };
        Ok(Cow::Owned(outcome))
    }
}

fn elements(value: &Value, bind: &mut dyn FnMut(&Value) -> Result<Flow>) -> Result<Flow> {
    let Value::Array(values) = value else { return Ok(Flow::More) };
    for value in values {
        if bind(value)? == Flow::Enough {
            return Ok(Flow::Enough);
        }
    }
    Ok(Flow::More)
}
