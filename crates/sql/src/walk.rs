//! What stands directly inside an expression or a query.

use crate::tree::{Access, Call, Collection, Expr, ExprKind, Projection, Query};

/// Visits the expressions directly inside `expr`; not those of a subquery.
pub(crate) fn parts<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    match &expr.kind {
        ExprKind::Literal(_)
        | ExprKind::Identifier(_)
        | ExprKind::Parameter(_)
        | ExprKind::Subquery(..) => {}
        ExprKind::Array(values) => values.iter().for_each(visit),
        ExprKind::Object(members) => members.iter().for_each(|(_, value)| visit(value)),
        ExprKind::Unary(_, operand) => visit(operand),
        ExprKind::Chain(first, rest) => {
            visit(first);
            for (_, operand) in rest {
                visit(operand);
            }
        }
        ExprKind::Conditional(operands) | ExprKind::Between { operands, .. } => {
            operands.iter().for_each(visit);
        }
        ExprKind::In { value, list, .. } => {
            visit(value);
            list.iter().for_each(visit);
        }
        ExprKind::Like { operands, .. } => operands.iter().for_each(visit),
        ExprKind::Path(of, steps) => {
            visit(of);
            for step in steps {
                if let Access::Index(index) = step {
                    visit(index);
                }
            }
        }
        ExprKind::Call(call) => call.arguments.iter().for_each(visit),
    }
}

/// What is selected; nothing for `*`.
pub(crate) fn selected(projection: &Projection) -> impl Iterator<Item = &Expr> {
    let items = match projection {
        Projection::All(_) => &[],
        Projection::Value(item) => std::slice::from_ref(item),
        Projection::Items(items) => items.as_slice(),
    };
    items.iter().map(|item| &item.expr)
}

/// What is sorted by.
pub(crate) fn sort_keys(query: &Query) -> impl Iterator<Item = &Expr> {
    query.order_by.iter().flat_map(|order_by| &order_by.keys).map(|key| &key.expr)
}

/// The calls whose results are read as sources.
pub(crate) fn source_calls(query: &Query) -> impl Iterator<Item = &Call> {
    query.sources.iter().filter_map(|source| match &source.collection {
        Collection::Call(call) => Some(call),
        Collection::Path { .. } | Collection::Subquery(_) => None,
    })
}
