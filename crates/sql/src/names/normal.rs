//! The one form that all spellings of an expression have: `c["a"]` is `c.a`, and
//! `abs(1)` is `ABS(1)`. Two expressions whose forms are the same mean the same.

use crate::tree::{Access, Expr, ExprKind, Literal};

/// The same expression in its one form.
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
