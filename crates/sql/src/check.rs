//! What is wrong in a query, as far as its text shows it.
//!
//! First what a tree itself shows, before anybody knows what its names mean:
//! clauses that do not go together, and counts over the service's limits. A query
//! is judged before its subqueries, and the first finding is told. Then what the
//! names mean, see [`names`].

use crate::error::SyntaxError;
use crate::tree::{Binding, Collection, Expr, ExprKind, Projection, Query, Span};
use crate::{names, walk};

/// How many JOINs a query may have with its subqueries.
const JOINS_MAX: usize = 10;
/// How many calls of user-defined functions.
const UDFS_MAX: usize = 10;

/// Checks the tree of a query that was read from `text`.
pub fn check(query: &Query, text: &str) -> Result<(), SyntaxError> {
    check_tree(query, text)?;
    names::check(query, text)
}

fn check_tree(query: &Query, text: &str) -> Result<(), SyntaxError> {
    let mut checker = Checker { text, joins: 0, udfs: 0, finding: None };
    checker.query(query, false);
    let limits = [
        ("SC3002", "joins", checker.joins, JOINS_MAX),
        ("SC3005", "user-defined function calls", checker.udfs, UDFS_MAX),
    ];
    let over = limits.into_iter().find(|(_, _, count, max)| count > max);
    match (checker.finding, over) {
        (Some(finding), _) => Err(finding),
        (None, Some((code, what, _, max))) => {
            let message = format!(
                "The SQL query exceeded the maximum number of {what}. The allowed limit is {max}."
            );
            Err(SyntaxError::of_all(code, message, text))
        }
        (None, None) => Ok(()),
    }
}

struct Checker<'a> {
    text: &'a str,
    joins: usize,
    udfs: usize,
    finding: Option<SyntaxError>,
}

impl Checker<'_> {
    fn found(&mut self, code: &'static str, message: &str, span: Span) {
        if self.finding.is_none() {
            self.finding = Some(SyntaxError::new(code, message, self.text, span));
        }
    }

    fn query(&mut self, query: &Query, inner: bool) {
        self.joins += query.sources.len().saturating_sub(1);
        if inner {
            self.subquery(query);
        }
        self.clauses(query);
        self.below(query);
    }

    /// What a subquery may not have.
    fn subquery(&mut self, query: &Query) {
        if let Some(order_by) = &query.order_by {
            if order_by.rank {
                let message = "The ORDER BY RANK clause is not supported in subqueries.";
                self.found("SC2228", message, order_by.span);
            }
            self.found("SC2202", "'ORDER BY' is not supported in subqueries.", order_by.span);
        }
        if let Some(top) = &query.top {
            self.found("SC2203", "'TOP' is not supported in subqueries.", top.span);
        }
        if let Some(page) = &query.page {
            let message = "'OFFSET LIMIT' clause is not supported in subqueries.";
            self.found("SC2204", message, page.span);
        }
    }

    /// Clauses that do not go together.
    fn clauses(&mut self, query: &Query) {
        if let Projection::All(span) = query.projection
            && !query.group_by.is_empty()
        {
            self.found("SC2041", "'SELECT *' is not allowed with GROUP BY.", span);
        }
        if !query.order_by.as_ref().is_some_and(|order_by| order_by.rank) {
            return;
        }
        for (number, source) in query.sources.iter().enumerate() {
            let finding = match (&source.binding, &source.collection) {
                _ if number > 0 => {
                    ("SC2224", "The JOIN operator is not allowed with the ORDER BY RANK clause.")
                }
                (Binding::Each(_), _) => (
                    "SC2223",
                    "The FROM clause with the IN operator is not allowed with the ORDER BY RANK \
                     clause.",
                ),
                (_, Collection::Subquery(_)) => (
                    "SC2225",
                    "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.",
                ),
                _ => continue,
            };
            self.found(finding.0, finding.1, source.span);
        }
    }

    /// Goes on to everything inside.
    fn below(&mut self, query: &Query) {
        walk::selected(&query.projection).for_each(|expr| self.expr(expr));
        for source in &query.sources {
            match &source.collection {
                Collection::Path { .. } => {}
                Collection::Subquery(query) => self.query(query, true),
                Collection::Call(call) => call.arguments.iter().for_each(|expr| self.expr(expr)),
            }
        }
        query.filter.iter().chain(&query.group_by).for_each(|expr| self.expr(expr));
        walk::sort_keys(query).for_each(|expr| self.expr(expr));
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Subquery(_, query) => self.query(query, true),
            ExprKind::Call(call) if call.udf => self.udfs += 1,
            _ => {}
        }
        walk::parts(expr, &mut |part| self.expr(part));
    }
}
