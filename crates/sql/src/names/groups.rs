//! Aggregates and GROUP BY.
//!
//! A query with an aggregate in its SELECT, or with GROUP BY, gives one row for
//! many. What it selects outside of aggregates must then be the same for all of
//! them: the groups' expressions, what is made of these, constants, and names of
//! an outer query.

use std::collections::{BTreeSet, HashSet};

use super::{Findings, name_of};
use crate::error::{SyntaxError, quoted};
use crate::functions::signature::{Sort, signature};
use crate::tree::{Access, Call, Collection, Expr, ExprKind, Literal, Query, Source, Span, Step};
use crate::walk;

/// Checks the aggregates and groups of a query and of its subqueries.
pub(super) fn check(query: &Query, text: &str) -> Result<(), SyntaxError> {
    let mut findings = Findings::new(text);
    of_query(query, &mut findings);
    findings.outcome()
}

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

fn of_query(query: &Query, findings: &mut Findings<'_>) {
    let arguments = walk::source_calls(query).flat_map(|call| &call.arguments);
    let keys = walk::sort_keys(query);
    for expr in arguments.chain(&query.filter).chain(&query.group_by).chain(keys) {
        if has_aggregate(expr) {
            let message = "An aggregate function can only be used in the SELECT clause.";
            findings.add_without_code(message, expr.span);
        }
        subqueries(expr, findings);
    }
    for source in &query.sources {
        if let Collection::Subquery(query) = &source.collection {
            of_query(query, findings);
        }
    }
    if let Some(order_by) = query.order_by.as_ref().filter(|_| !query.group_by.is_empty()) {
        let message = "The ORDER BY clause is not supported with the GROUP BY clause.";
        findings.add_without_code(message, order_by.span);
    }
    let grouped =
        !query.group_by.is_empty() || walk::selected(&query.projection).any(has_aggregate);
    let mut groups = Groups::of(query);
    for expr in walk::selected(&query.projection) {
        aggregates(expr, findings);
        subqueries(expr, findings);
        if grouped {
            groups.references(expr, findings);
        }
    }
}

/// Checks every subquery in an expression.
fn subqueries(expr: &Expr, findings: &mut Findings<'_>) {
    if let ExprKind::Subquery(_, query) = &expr.kind {
        of_query(query, findings);
    }
    walk::parts(expr, &mut |part| subqueries(part, findings));
}

/// An aggregate is of plain values.
fn aggregates(expr: &Expr, findings: &mut Findings<'_>) {
    match &expr.kind {
        ExprKind::Call(call) if is_aggregate(call) => {
            if call.arguments.iter().any(|value| has_aggregate(value) || has_subquery(value)) {
                let message = "Cannot perform an aggregate function on an expression containing an \
                               aggregate or a subquery.";
                findings.add("SC2101", message, expr.span);
            }
        }
        _ => walk::parts(expr, &mut |part| aggregates(part, findings)),
    }
}

fn has_subquery(expr: &Expr) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Subquery(..));
    walk::parts(expr, &mut |part| found = found || has_subquery(part));
    found
}

/// What is the same for all rows of a group.
struct Groups<'q> {
    /// The names of which each row has a value of its own.
    own: Vec<&'q str>,
    /// The groups' expressions, as text that is the same for the same meaning.
    keys: HashSet<String>,
    /// How many steps those have that are paths.
    lengths: BTreeSet<usize>,
}

impl<'q> Groups<'q> {
    fn of(query: &'q Query) -> Self {
        let keys: Vec<Expr> = query.group_by.iter().cloned().map(normal).collect();
        Groups {
            own: query.sources.iter().filter_map(name_of).collect(),
            lengths: keys.iter().map(steps_of).collect(),
            keys: keys.iter().map(ToString::to_string).collect(),
        }
    }

    /// Tells of the references in an expression that differ within a group.
    fn references(&mut self, expr: &'q Expr, findings: &mut Findings<'_>) {
        if !self.keys.is_empty() && self.keys.contains(&normal(expr.clone()).to_string()) {
            return;
        }
        match &expr.kind {
            ExprKind::Call(call) if is_aggregate(call) => {}
            ExprKind::Identifier(name) => self.reference(name, &[], expr, findings),
            ExprKind::Path(of, steps) => {
                match &of.kind {
                    ExprKind::Identifier(name) => self.reference(name, steps, expr, findings),
                    _ => self.references(of, findings),
                }
                for step in steps {
                    if let Access::Index(index) = step {
                        self.references(index, findings);
                    }
                }
            }
            ExprKind::Subquery(_, query) => self.inside(query, findings),
            _ => walk::parts(expr, &mut |part| self.references(part, findings)),
        }
    }

    /// A path is fine if it, or where it starts, is what is grouped by.
    fn reference(&self, name: &str, steps: &[Access], expr: &Expr, findings: &mut Findings<'_>) {
        let is_key = |length: &usize| {
            let prefix = steps.get(..*length).map(|steps| path(name, steps.to_vec()));
            prefix.is_some_and(|prefix| self.keys.contains(&normal(prefix).to_string()))
        };
        if !self.own.contains(&name) || self.lengths.iter().any(is_key) {
            return;
        }
        let reference = quoted(&expr.to_string());
        let message = format!(
            "Property reference '{reference}' is invalid in the select list because it is not \
             contained in either an aggregate function or the GROUP BY clause."
        );
        findings.add("SC2102", message, expr.span);
    }

    /// A subquery may use the same names for sources of its own.
    fn inside(&mut self, query: &'q Query, findings: &mut Findings<'_>) {
        let outer = self.own.clone();
        for source in &query.sources {
            self.source(source, findings);
            self.own.retain(|own| Some(*own) != name_of(source));
        }
        let keys = walk::sort_keys(query);
        let clauses = query.filter.iter().chain(&query.group_by).chain(keys);
        let exprs = walk::selected(&query.projection).chain(clauses);
        exprs.for_each(|expr| self.references(expr, findings));
        self.own = outer;
    }

    fn source(&mut self, source: &'q Source, findings: &mut Findings<'_>) {
        match &source.collection {
            Collection::Path { root, steps } => {
                let steps: Vec<Access> = steps.iter().map(access).collect();
                let read = Expr { span: source.span, ..path(root, steps.clone()) };
                self.reference(root, &steps, &read, findings);
            }
            Collection::Subquery(query) => self.inside(query, findings),
            Collection::Call(call) => {
                call.arguments.iter().for_each(|argument| self.references(argument, findings));
            }
        }
    }
}

fn path(name: &str, steps: Vec<Access>) -> Expr {
    let root = Expr::new(ExprKind::Identifier(name.to_owned()), Span::default());
    if steps.is_empty() {
        return root;
    }
    Expr::new(ExprKind::Path(Box::new(root), steps), Span::default())
}

fn access(step: &Step) -> Access {
    let literal = match step {
        Step::Member(name) => return Access::Member(name.clone()),
        Step::Property(name) => Literal::String(name.clone()),
        Step::Index(index) => Literal::Number(i64::try_from(*index).unwrap_or(i64::MAX).into()),
    };
    Access::Index(Expr::new(ExprKind::Literal(literal), Span::default()))
}

fn steps_of(expr: &Expr) -> usize {
    match &expr.kind {
        ExprKind::Path(_, steps) => steps.len(),
        _ => 0,
    }
}

/// The same expression in the one form that all spellings of it have: `c["a"]` is
/// `c.a`, and `abs(1)` is `ABS(1)`.
pub(crate) fn normal(mut expr: Expr) -> Expr {
    normalize(&mut expr);
    expr
}

fn normalize(expr: &mut Expr) {
    match &mut expr.kind {
        ExprKind::Path(of, steps) => {
            normalize(of);
            steps.iter_mut().for_each(normalize_step);
        }
        ExprKind::Call(call) => {
            if !call.udf {
                call.name.make_ascii_uppercase();
            }
            call.arguments.iter_mut().for_each(normalize);
        }
        ExprKind::Array(values) => values.iter_mut().for_each(normalize),
        ExprKind::Object(members) => members.iter_mut().for_each(|(_, value)| normalize(value)),
        ExprKind::Unary(_, operand) => normalize(operand),
        ExprKind::Chain(first, rest) => {
            normalize(first);
            for (_, operand) in rest {
                normalize(operand);
            }
        }
        ExprKind::Conditional(operands) | ExprKind::Between { operands, .. } => {
            operands.iter_mut().for_each(normalize);
        }
        ExprKind::In { value, list, .. } => {
            normalize(value);
            list.iter_mut().for_each(normalize);
        }
        ExprKind::Like { operands, .. } => operands.iter_mut().for_each(normalize),
        ExprKind::Literal(_)
        | ExprKind::Identifier(_)
        | ExprKind::Parameter(_)
        | ExprKind::Subquery(..) => {}
    }
}

fn normalize_step(step: &mut Access) {
    match step {
        Access::Index(Expr { kind: ExprKind::Literal(Literal::String(name)), .. }) => {
            *step = Access::Member(std::mem::take(name));
        }
        Access::Index(index) => normalize(index),
        Access::Member(_) => {}
    }
}
