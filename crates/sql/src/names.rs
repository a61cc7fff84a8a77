//! What the names in a query mean, and which of them mean nothing.
//!
//! A source of the FROM clause has a name: the one that is given, or the last of
//! its path. Each source sees the names of those before it; all other clauses see
//! all of them, and a subquery sees what its place in the outer query sees:
//!
//! ```text
//! SELECT t FROM c JOIN t IN (SELECT VALUE x FROM x IN c.tags) WHERE c.a
//!               ^ the container          ^ a name of the outer query
//! ```
//!
//! The first identifier of the first source names the container, whatever it is;
//! so does that of a subquery which is the first source. Nothing else can: there
//! is no join with other items.
//!
//! One walk finds all that is wrong: `clauses.rs` for clauses that cannot stand there,
//! `calls.rs` for functions, `groups.rs` for aggregates and GROUP BY, `order.rs` and
//! `rank.rs` for ORDER BY.

mod calls;
mod clauses;
mod groups;
mod normal;
mod order;
mod rank;

pub(crate) use self::groups::{has_aggregate, is_aggregate, meant};
pub(crate) use self::normal::normal;
pub(crate) use self::rank::ranking;

use self::clauses::ClauseCounts;
use self::order::Stands;
use crate::error::{SyntaxError, quoted};
use crate::findings::Findings;
use crate::functions::signature::{Sort, signature};
use crate::lex::{self, Lexer};
use crate::tree::{
    Access, Binding, Collection, Expr, ExprKind, Literal, Projection, Query, SelectItem, Source,
    SourceStep, Span,
};
use crate::walk;

/// So many sort keys are followed to what they stand for: no composite index has more.
const SORT_KEYS_MAX: usize = 16;

/// Checks the tree of a query that was read from `text`.
pub fn check(query: &Query, text: &str) -> Result<(), SyntaxError> {
    let findings = Findings::new(text);
    let mut names = Names { scope: Vec::new(), findings, counts: ClauseCounts::default() };
    names.outermost(query);
    names.limits();
    names.order(query);
    names.findings.outcome()
}

struct Names<'q> {
    /// The names that can be seen, the outer ones first.
    scope: Vec<&'q str>,
    findings: Findings<'q>,
    counts: ClauseCounts,
}

impl<'q> Names<'q> {
    fn outermost(&mut self, query: &'q Query) {
        let order_by = query.order_by.as_ref();
        let ranked = order_by.filter(|order_by| order_by.rank);
        if let Some(order_by) = ranked {
            self.ranked_clauses(query, order_by);
        }
        self.body(query, true, ranked.is_some());
        match ranked {
            Some(order_by) => self.rank(order_by),
            None => walk::sort_keys(query).for_each(|key| self.expr(groups::meant(query, key))),
        }
        self.scope.clear();
    }

    /// `container`: whether its first source can be the container.
    fn subquery(&mut self, query: &'q Query, container: bool) {
        let outer = self.scope.len();
        self.body(query, container, false);
        self.scope.truncate(outer);
        self.inner_clauses(query);
    }

    /// What all queries have. The names of its sources can be seen afterwards.
    fn body(&mut self, query: &'q Query, container: bool, ranked: bool) {
        self.counts.joins += query.sources.len().saturating_sub(1);
        if ranked {
            self.ranked_sources(query);
        }
        let outer = self.scope.len();
        for (number, source) in query.sources.iter().enumerate() {
            if ranked {
                self.ranked_source(source);
            }
            self.source(source, container && number == 0, outer);
        }
        self.all(query);
        walk::selected(&query.projection).for_each(|expr| self.expr(expr));
        query.filter.iter().chain(&query.group_by).for_each(|expr| self.expr(expr));
        groups::check(query, container, &mut self.findings);
    }

    fn source(&mut self, source: &'q Source, container: bool, outer: usize) {
        match &source.collection {
            Collection::Path { root, .. } if !container => {
                self.resolve(root, |text| root_span(source, text));
            }
            Collection::Path { .. } => {}
            Collection::Subquery(query) => self.subquery(query, container),
            Collection::Call(call) => self.call(call),
        }
        let Some(name) = name_of(source) else { return };
        if self.scope.iter().skip(outer).any(|known| *known == name) {
            let name = quoted(name);
            let message =
                format!("The input alias '{name}' is specified more than once in the FROM clause.");
            self.findings.add_without_code(message, source.span);
        }
        self.scope.push(name);
    }

    fn resolve(&mut self, name: &str, span: impl FnOnce(&str) -> Span) {
        if !self.scope.contains(&name) {
            let span = span(self.findings.text);
            let message = format!("Identifier '{}' could not be resolved.", quoted(name));
            self.findings.add("SC2001", message, span);
        }
    }

    /// `*` stands for the one source there is, and all rows of it.
    fn all(&mut self, query: &Query) {
        let Projection::All(span) = query.projection else { return };
        if !query.group_by.is_empty() {
            self.findings.add("SC2041", "'SELECT *' is not allowed with GROUP BY.", span);
        }
        match query.sources.len() {
            0 => {
                let message = "'SELECT *' is not valid if FROM clause is omitted.";
                self.findings.add_without_code(message, span);
            }
            1 => {}
            _ => {
                let message = "'SELECT *' is only valid with a single input set.";
                self.findings.add_without_code(message, span);
            }
        }
    }

    fn expr(&mut self, expr: &'q Expr) {
        match &expr.kind {
            ExprKind::Identifier(name) => self.resolve(name, |_| expr.span),
            ExprKind::Subquery(_, query) => self.subquery(query, false),
            ExprKind::Call(call) => return self.call(call),
            _ => {}
        }
        walk::parts(expr, &mut |part| self.expr(part));
        if let ExprKind::Path(_, steps) = &expr.kind {
            self.indexers(steps, expr.span);
        }
    }

    /// An element must be named by a constant, whatever it is an element of.
    fn indexers(&mut self, steps: &[Access], span: Span) {
        let varies = |step: &Access| matches!(step, Access::Index(index) if !is_constant(index));
        if steps.iter().any(varies) {
            let message = "The specified query includes 'member indexer' which is currently not \
                           supported.";
            self.findings.add("SC2990", message, span);
        }
    }

    /// Sort keys of a query that compiles; the first that is no path is told.
    fn order(&mut self, query: &Query) {
        if query.order_by.as_ref().is_some_and(|order_by| order_by.rank) {
            return;
        }
        for key in walk::sort_keys(query).take(SORT_KEYS_MAX) {
            if self.findings.compiles() {
                self.sort_key(query, key);
            }
        }
    }

    /// Items are sorted by what they have themselves, not by what is joined or
    /// computed; scores are the exception.
    fn sort_key(&mut self, query: &Query, key: &Expr) {
        // What groups are sorted by is for those who know them.
        let of_groups = !query.group_by.is_empty();
        // One row has any order.
        let is_path = matches!(key.kind, ExprKind::Identifier(_) | ExprKind::Path(..));
        let of_one_row = is_path && groups::makes_one_row(query);
        if is_score(key) || groups::has_aggregate(key) || of_groups || of_one_row {
            return;
        }
        match order::stands_for(query, key) {
            Some(Stands::Once) => {}
            Some(Stands::Joined) => {
                let message = "Order-by over correlated collections is not supported.";
                self.findings.add_without_code(message, key.span);
            }
            None => {
                let message = "Unsupported ORDER BY clause. ORDER BY item expression could not be \
                               mapped to a document path.";
                self.findings.add("2206", message, Span::default());
            }
        }
    }
}

/// Whether an expression is made of constants and parameters alone.
fn is_constant(expr: &Expr) -> bool {
    let varies =
        matches!(expr.kind, ExprKind::Identifier(_) | ExprKind::Call(_) | ExprKind::Subquery(..));
    let mut constant = !varies;
    walk::parts(expr, &mut |part| constant = constant && is_constant(part));
    constant
}

/// A call that gives a score, or the distance of vectors.
fn is_score(expr: &Expr) -> bool {
    let ExprKind::Call(call) = &expr.kind else { return false };
    let known = signature(&call.name).filter(|_| !call.udf);
    known.is_some_and(|known| known.sort == Sort::Vector || known.name == "_FULLTEXTSCORE")
}

/// The name of a source: the one that is given, or the last of its path.
pub(crate) fn name_of(source: &Source) -> Option<&str> {
    match (&source.binding, &source.collection) {
        (Binding::Alias(name) | Binding::Each(name), _) => Some(name),
        (Binding::Inferred, Collection::Path { root, steps }) => match steps.last() {
            None => Some(root),
            Some(SourceStep::Member(name) | SourceStep::Property(name)) => {
                Some(name.as_str()).filter(|name| lex::is_name(name))
            }
            Some(SourceStep::Index(_)) => None,
        },
        (Binding::Inferred, Collection::Subquery(_) | Collection::Call(_)) => None,
    }
}

/// The subquery of a source that gives the container's items themselves, each once:
/// `(SELECT * FROM c WHERE ..) s`, `(SELECT VALUE c FROM c) s`.
pub(crate) fn items_of(source: &Source) -> Option<&Query> {
    let (Collection::Subquery(query), Binding::Alias(_)) = (&source.collection, &source.binding)
    else {
        return None;
    };
    let [inner] = query.sources.as_slice() else { return None };
    let is_item = match &query.projection {
        Projection::All(_) => true,
        Projection::Value(item) => {
            matches!(&item.expr.kind, ExprKind::Identifier(name) if name_of(inner) == Some(name))
        }
        Projection::Items(_) => false,
    };
    let of_items = match (&inner.collection, &inner.binding) {
        (_, Binding::Each(_)) => false,
        (Collection::Path { steps, .. }, _) => steps.is_empty(),
        (Collection::Subquery(_), _) => items_of(inner).is_some(),
        (Collection::Call(_), _) => false,
    };
    let plain = !query.distinct && query.group_by.is_empty();
    (is_item && of_items && plain).then_some(query)
}

/// The names of what is selected: the one that is given, or the last of a path,
/// or `$1`, `$2` and so on for the others.
pub(crate) fn item_names(items: &[SelectItem]) -> Vec<String> {
    let mut unnamed = 0;
    let name = |item: &SelectItem| {
        item.alias.clone().or_else(|| last_name(&item.expr).map(ToOwned::to_owned)).unwrap_or_else(
            || {
                unnamed += 1;
                format!("${unnamed}")
            },
        )
    };
    items.iter().map(name).collect()
}

fn last_name(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Identifier(name) => Some(name),
        ExprKind::Path(_, steps) => match steps.last()? {
            Access::Member(name) => Some(name),
            Access::Index(Expr { kind: ExprKind::Literal(Literal::String(name)), .. }) => {
                Some(name)
            }
            Access::Index(_) => None,
        },
        _ => None,
    }
}

/// Where the first identifier of a source's path stands.
fn root_span(source: &Source, text: &str) -> Span {
    let start = source.span.start;
    let mut lexer = Lexer::new(text.get(start..).unwrap_or(""));
    let mut token = lexer.next_token();
    if matches!(source.binding, Binding::Each(_)) {
        lexer.next_token();
        token = lexer.next_token();
    }
    Span { start: start + token.start, end: start + token.end() }
}
