//! Clauses that cannot stand where they stand, and how many of something a query
//! may have.

use super::Names;
use crate::tree::{Binding, Collection, Query, Source, Span};

/// How many JOINs a query may have with its subqueries.
const JOINS_MAX: usize = 10;
/// How many calls of user-defined functions.
const UDFS_MAX: usize = 10;

/// What is counted in a query with its subqueries.
#[derive(Default)]
pub(super) struct ClauseCounts {
    pub(super) joins: usize,
    pub(super) udfs: usize,
}

impl Names<'_> {
    /// What a subquery may not have. These clauses are told as a whole: what is in
    /// them does not matter.
    pub(super) fn inner_clauses(&mut self, query: &Query) {
        match &query.order_by {
            Some(order_by) if order_by.rank => {
                let message = "The ORDER BY RANK clause is not supported in subqueries.";
                self.findings.add("SC2228", message, order_by.span);
            }
            Some(order_by) => {
                let message = "'ORDER BY' is not supported in subqueries.";
                self.findings.add("SC2202", message, order_by.span);
            }
            None => {}
        }
        if let Some(top) = &query.top {
            self.findings.add("SC2203", "'TOP' is not supported in subqueries.", top.span);
        }
        if let Some(page) = &query.page {
            let message = "'OFFSET LIMIT' clause is not supported in subqueries.";
            self.findings.add("SC2204", message, page.span);
        }
    }

    /// A FROM clause that is ranked has one source.
    pub(super) fn ranked_sources(&mut self, query: &Query) {
        if let [first, .., last] = query.sources.as_slice() {
            let span = Span { start: first.span.start, end: last.span.end };
            let message = "The JOIN operator is not allowed with the ORDER BY RANK clause.";
            self.findings.add("SC2224", message, span);
        }
    }

    /// A source that is ranked is the container, or a path in it.
    pub(super) fn ranked_source(&mut self, source: &Source) {
        if let Binding::Each(_) = source.binding {
            let message = "The FROM clause with the IN operator is not allowed with the ORDER BY \
                           RANK clause.";
            self.findings.add("SC2223", message, source.span);
        }
        if let Collection::Subquery(query) = &source.collection {
            let message =
                "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.";
            self.findings.add("SC2225", message, query.span);
        }
    }

    /// There are not too many of anything. It is told of a query that is otherwise well.
    pub(super) fn limits(&mut self) {
        if !self.findings.compiles() {
            return;
        }
        let limits = [
            ("SC3002", "joins", self.counts.joins, JOINS_MAX),
            ("SC3005", "user-defined function calls", self.counts.udfs, UDFS_MAX),
        ];
        for (code, what, count, max) in limits {
            if count > max {
                let message = format!(
                    "The SQL query exceeded the maximum number of {what}. The allowed limit is \
                     {max}."
                );
                let all = Span { start: 0, end: self.findings.text.len() };
                self.findings.add(code, message, all);
            }
        }
    }
}
