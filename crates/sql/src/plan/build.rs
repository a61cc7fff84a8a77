//! Small trees, for rewritten queries.

use crate::tree::{
    Access, Amount, Call, Count, Expr, ExprKind, Literal, Number, Operator, SelectItem, Span,
};

/// Stands for the filter with which a client goes on after what it has. In
/// brackets, since what is put there is not.
pub(super) const FILTER_PLACEHOLDER: &str = "({documentdb-formattableorderbyquery-filter})";

pub(super) fn at(kind: ExprKind) -> Expr {
    Expr::new(kind, Span::default())
}

pub(super) fn name(name: &str) -> Expr {
    at(ExprKind::Identifier(name.to_owned()))
}

pub(super) fn member(of: Expr, name: &str) -> Expr {
    of.step(Access::Member(name.to_owned()), 0)
}

pub(super) fn array(values: Vec<Expr>) -> Expr {
    at(ExprKind::Array(values))
}

pub(super) fn object(members: Vec<(&str, Expr)>) -> Expr {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
    at(ExprKind::Object(members.collect()))
}

pub(super) fn number(number: impl Into<Number>) -> Expr {
    at(ExprKind::Literal(Literal::Number(number.into())))
}

pub(super) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let name = name.to_owned();
    let (name_span, span) = (Span::default(), Span::default());
    at(ExprKind::Call(Box::new(Call { udf: false, name, arguments, name_span, span })))
}

pub(super) fn item(expr: Expr, alias: &str) -> SelectItem {
    SelectItem { expr, alias: Some(alias.to_owned()) }
}

/// `left AND right`, if there is a left.
pub(super) fn and(left: Option<Expr>, right: Expr) -> Expr {
    match left {
        Some(left) => left.then(Operator::And, right),
        None => right,
    }
}

pub(super) fn count(amount: u32) -> Count {
    Count { amount: Amount::Number(amount), span: Span::default() }
}
