//! What a key of ORDER BY stands for: a path of the item, through the names of
//! sources and what subqueries after FROM select.
//!
//! ```text
//! FROM c JOIN t IN c.tags                       ORDER BY t.n     /tags/[]/n, joined
//! FROM (SELECT VALUE {"x": c.a.b} FROM c) r     ORDER BY r.x     /a/b
//! FROM c JOIN (SELECT VALUE MAX(c.a)) m         ORDER BY m       no path
//! ```

use super::{item_names, name_of};
use crate::tree::{
    Access, Binding, Collection, Expr, ExprKind, Literal, Projection, Query, Source, SourceStep,
};

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// Each item has one.
    Once,
    /// Each row that is joined has its own.
    Joined,
}

/// The names that a place of a query sees.
#[derive(Clone, Copy)]
struct VisibleNames<'s, 'q> {
    query: &'q Query,
    /// Of so many of its sources.
    seen: usize,
    /// And those that a query around it sees.
    outer: Option<&'s VisibleNames<'s, 'q>>,
}

/// A step of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To<'q> {
    Property(&'q str),
    /// One of an array.
    Element,
}

type NamePath<'q> = Vec<To<'q>>;

/// What a key of a query stands for; `None`: no path.
pub(super) fn stands_for(query: &Query, key: &Expr) -> Option<Stands> {
    let scope = VisibleNames { query, seen: query.sources.len(), outer: None };
    scope.expr(key, Vec::new())
}

impl<'q> VisibleNames<'_, 'q> {
    /// What is at `steps` in the value of an expression.
    fn expr(&self, expr: &'q Expr, steps: NamePath<'q>) -> Option<Stands> {
        match &expr.kind {
            ExprKind::Identifier(name) => self.name(name, steps),
            ExprKind::Path(of, own) => {
                let own: Option<NamePath<'q>> = own.iter().map(access).collect();
                self.expr(of, [own?, steps].concat())
            }
            ExprKind::Object(members) => {
                let (first, rest) = steps.split_first()?;
                let member = members.iter().rev().find(|(name, _)| *first == To::Property(name));
                self.expr(&member?.1, rest.to_vec())
            }
            _ => None,
        }
    }

    fn name(&self, name: &str, steps: NamePath<'q>) -> Option<Stands> {
        let mut sources = self.query.sources.iter().enumerate().take(self.seen);
        let named = sources.rfind(|(_, source)| name_of(source) == Some(name));
        match (named, self.outer) {
            (Some((number, source)), _) => self.source(number, source, steps),
            (None, Some(outer)) => outer.name(name, steps),
            // What nobody has named is the container.
            (None, None) => Some(Stands::Once),
        }
    }

    fn source(&self, number: usize, source: &'q Source, steps: NamePath<'q>) -> Option<Stands> {
        let each = matches!(source.binding, Binding::Each(_));
        let element: NamePath<'q> = if each { vec![To::Element] } else { Vec::new() };
        let before = VisibleNames { seen: number, ..*self };
        let found = match &source.collection {
            Collection::Path { root, steps: own } => {
                let own: NamePath<'q> = own.iter().map(step).collect();
                before.name(root, [own, element, steps].concat())
            }
            Collection::Subquery(query) => {
                let inner = VisibleNames { query, seen: query.sources.len(), outer: Some(&before) };
                inner.selected([element, steps].concat())
            }
            Collection::Call(_) => None,
        };
        if each || number > 0 { found.and(Some(Stands::Joined)) } else { found }
    }

    /// What is at `steps` in a row.
    fn selected(&self, steps: NamePath<'q>) -> Option<Stands> {
        match &self.query.projection {
            Projection::All(_) => self.source(0, self.query.sources.first()?, steps),
            Projection::Value(item) => self.expr(&item.expr, steps),
            Projection::Items(items) => {
                let (first, rest) = steps.split_first()?;
                let names = item_names(items);
                let at = names.iter().rposition(|name| *first == To::Property(name))?;
                self.expr(&items.get(at)?.expr, rest.to_vec())
            }
        }
    }
}

/// A step that is the same for all items.
fn access(access: &Access) -> Option<To<'_>> {
    match access {
        Access::Member(name) => Some(To::Property(name)),
        Access::Index(index) => match &index.kind {
            ExprKind::Literal(Literal::String(name)) => Some(To::Property(name)),
            ExprKind::Literal(_) | ExprKind::Parameter(_) => Some(To::Element),
            _ => None,
        },
    }
}

fn step(step: &SourceStep) -> To<'_> {
    match step {
        SourceStep::Member(name) | SourceStep::Property(name) => To::Property(name),
        SourceStep::Index(_) => To::Element,
    }
}
