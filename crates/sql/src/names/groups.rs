//! Aggregates and GROUP BY.
//!
//! A query with an aggregate in its SELECT, or with GROUP BY, gives one row for
//! many. What it selects outside of aggregates must then be the same for all of
//! them: the groups' expressions, what is made of these, constants, and names of
//! an outer query.

use std::collections::{BTreeSet, HashSet};

use super::normal::normal;
use super::{Findings, name_of};
use crate::error::quoted;
use crate::functions::signature::{Sort, signature};
use crate::tree::{
    Access, Call, Collection, Expr, ExprKind, Literal, Projection, Query, Source, SourceStep, Span,
};
use crate::walk;

/// Whether a call makes one value of many rows.
pub(crate) fn is_aggregate(call: &Call) -> bool {
    !call.udf && signature(&call.name).is_some_and(|known| known.sort == Sort::Aggregate)
}

/// Whether an aggregate stands in an expression; one of a subquery is its own.
pub(crate) fn has_aggregate(expr: &Expr) -> bool {
    if matches!(&expr.kind, ExprKind::Call(call) if is_aggregate(call)) {
        return true;
    }
    let mut found = false;
    walk::parts(expr, &mut |part| found = found || has_aggregate(part));
    found
}

/// Whether a query makes one row of all its items.
pub(crate) fn makes_one_row(query: &Query) -> bool {
    query.group_by.is_empty() && walk::selected(&query.projection).any(has_aggregate)
}

/// What a sort key stands for: groups may be sorted by the name that is given to one
/// of their keys.
pub(crate) fn meant<'q>(query: &'q Query, key: &'q Expr) -> &'q Expr {
    let ExprKind::Identifier(name) = &key.kind else { return key };
    let is_source = query.sources.iter().any(|source| name_of(source) == Some(name));
    let (Projection::Items(items), false) = (&query.projection, is_source) else { return key };
    if query.group_by.is_empty() {
        return key;
    }
    let named = items.iter().find(|item| item.alias.as_ref() == Some(name));
    named.map_or(key, |item| &item.expr)
}

/// Checks the aggregates and groups of a query; those of its subqueries are theirs.
/// `over_items`: its rows come from many items, not from what one has.
pub(super) fn check(query: &Query, over_items: bool, findings: &mut Findings<'_>) {
    let arguments = walk::source_calls(query).flat_map(|call| &call.arguments);
    let keys = walk::sort_keys(query);
    for expr in arguments.chain(&query.filter).chain(&query.group_by).chain(keys) {
        if has_aggregate(expr) {
            let message = "An aggregate function can only be used in the SELECT clause.";
            findings.add_without_code(message, expr.span);
        }
    }
    let grouped =
        !query.group_by.is_empty() || walk::selected(&query.projection).any(has_aggregate);
    let mut groups = SameInGroup::of(query);
    if let Some(order_by) = query.order_by.as_ref().filter(|_| !query.group_by.is_empty())
        && !walk::sort_keys(query).all(|key| groups.is_key(meant(query, key).clone()))
    {
        let message = "The ORDER BY clause is not supported with the GROUP BY clause.";
        findings.add_without_code(message, order_by.span);
    }
    for expr in walk::selected(&query.projection) {
        aggregates(expr, over_items, findings);
        if grouped {
            groups.references(expr, findings);
        }
    }
}

/// An aggregate over items is of plain values. One of what an item has may be of
/// the aggregates of what is in that, each in a subquery of its own.
fn aggregates(expr: &Expr, over_items: bool, findings: &mut Findings<'_>) {
    match &expr.kind {
        ExprKind::Call(call) if is_aggregate(call) => {
            let nests = |value: &Expr| has_aggregate(value) || over_items && has_subquery(value);
            if call.arguments.iter().any(nests) {
                let message = "Cannot perform an aggregate function on an expression containing an \
                               aggregate or a subquery.";
                findings.add("SC2101", message, expr.span);
            }
        }
        _ => walk::parts(expr, &mut |part| aggregates(part, over_items, findings)),
    }
}

fn has_subquery(expr: &Expr) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Subquery(..));
    walk::parts(expr, &mut |part| found = found || has_subquery(part));
    found
}

/// What is the same for all rows of a group.
struct SameInGroup<'q> {
    /// The names of which each row has a value of its own.
    own: Vec<&'q str>,
    /// The groups' expressions, as text that is the same for the same meaning.
    keys: HashSet<String>,
    /// How many steps or operators those have.
    lengths: BTreeSet<usize>,
    /// Whether a subquery is looked at, whose aggregates are of its own rows.
    inside: bool,
}

impl<'q> SameInGroup<'q> {
    fn of(query: &'q Query) -> Self {
        let keys: Vec<Expr> = query.group_by.iter().cloned().map(normal).collect();
        SameInGroup {
            own: query.sources.iter().filter_map(name_of).collect(),
            lengths: keys.iter().map(length_of).collect(),
            keys: keys.iter().map(ToString::to_string).collect(),
            inside: false,
        }
    }

    /// Tells of the references in an expression that differ within a group.
    fn references(&mut self, expr: &'q Expr, findings: &mut Findings<'_>) {
        if self.is_key(expr.clone()) {
            return;
        }
        match &expr.kind {
            ExprKind::Call(call) if is_aggregate(call) && !self.inside => {}
            ExprKind::Identifier(name) if self.own.contains(&name.as_str()) => {
                differs(expr, findings);
            }
            ExprKind::Path(of, steps) => self.path(expr, of, steps, findings),
            ExprKind::Chain(first, rest) => {
                let begin = |length: usize| {
                    Some(ExprKind::Chain(first.clone(), rest.get(..length)?.to_vec()))
                };
                let known = self.known(begin);
                if known.is_none() {
                    self.references(first, findings);
                }
                for (_, operand) in rest.iter().skip(known.unwrap_or(0)) {
                    self.references(operand, findings);
                }
            }
            ExprKind::Subquery(_, query) => self.subquery(query, findings),
            _ => walk::parts(expr, &mut |part| self.references(part, findings)),
        }
    }

    /// A path is fine if it, or where it starts, is what is grouped by.
    fn path(
        &mut self,
        expr: &Expr,
        of: &'q Expr,
        steps: &'q [Access],
        findings: &mut Findings<'_>,
    ) {
        let known = self.known_path(of, steps);
        match &of.kind {
            _ if known.is_some() => {}
            ExprKind::Identifier(name) if self.own.contains(&name.as_str()) => {
                differs(expr, findings);
            }
            _ => self.references(of, findings),
        }
        for step in steps.iter().skip(known.unwrap_or(0)) {
            if let Access::Index(index) = step {
                self.references(index, findings);
            }
        }
    }

    fn known_path(&self, of: &Expr, steps: &[Access]) -> Option<usize> {
        self.known(|length| match length {
            0 => Some(of.kind.clone()),
            length => Some(ExprKind::Path(Box::new(of.clone()), steps.get(..length)?.to_vec())),
        })
    }

    /// How much of an expression is what is grouped by.
    fn known(&self, begin: impl Fn(usize) -> Option<ExprKind>) -> Option<usize> {
        let known = |length: &&usize| {
            let begin = begin(**length).map(|kind| Expr::new(kind, Span::default()));
            begin.is_some_and(|begin| self.is_key(begin))
        };
        self.lengths.iter().rev().find(known).copied()
    }

    fn is_key(&self, expr: Expr) -> bool {
        !self.keys.is_empty() && self.keys.contains(&normal(expr).to_string())
    }

    /// A subquery may use the same names for sources of its own.
    fn subquery(&mut self, query: &'q Query, findings: &mut Findings<'_>) {
        let outer = (self.own.clone(), self.inside);
        self.inside = true;
        for source in &query.sources {
            self.source(source, findings);
            self.own.retain(|own| Some(*own) != name_of(source));
        }
        let keys = walk::sort_keys(query);
        let clauses = query.filter.iter().chain(&query.group_by).chain(keys);
        let exprs = walk::selected(&query.projection).chain(clauses);
        exprs.for_each(|expr| self.references(expr, findings));
        (self.own, self.inside) = outer;
    }

    fn source(&mut self, source: &'q Source, findings: &mut Findings<'_>) {
        match &source.collection {
            Collection::Path { root, steps } => {
                let of = Expr::new(ExprKind::Identifier(root.clone()), source.span);
                let steps: Vec<Access> = steps.iter().map(access).collect();
                if self.own.contains(&root.as_str()) && self.known_path(&of, &steps).is_none() {
                    let kind = if steps.is_empty() {
                        of.kind
                    } else {
                        ExprKind::Path(Box::new(of), steps)
                    };
                    differs(&Expr::new(kind, source.span), findings);
                }
            }
            Collection::Subquery(query) => self.subquery(query, findings),
            Collection::Call(call) => {
                call.arguments.iter().for_each(|argument| self.references(argument, findings));
            }
        }
    }
}

/// Tells of a reference that differs within a group.
fn differs(expr: &Expr, findings: &mut Findings<'_>) {
    let reference = quoted(&expr.to_string());
    let message = format!(
        "Property reference '{reference}' is invalid in the select list because it is not \
         contained in either an aggregate function or the GROUP BY clause."
    );
    findings.add("SC2102", message, expr.span);
}

fn access(step: &SourceStep) -> Access {
    let literal = match step {
        SourceStep::Member(name) => return Access::Member(name.clone()),
        SourceStep::Property(name) => Literal::String(name.clone()),
        SourceStep::Index(index) => {
            Literal::Number(i64::try_from(*index).unwrap_or(i64::MAX).into())
        }
    };
    Access::Index(Expr::new(ExprKind::Literal(literal), Span::default()))
}

fn length_of(expr: &Expr) -> usize {
    match &expr.kind {
        ExprKind::Path(_, steps) => steps.len(),
        ExprKind::Chain(_, rest) => rest.len(),
        _ => 0,
    }
}
