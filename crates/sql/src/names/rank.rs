//! ORDER BY RANK: one scoring function, or RRF over several.
//!
//! ```text
//! ORDER BY RANK FullTextScore(c.text, "swim")
//! ORDER BY RANK RRF(FullTextScore(c.text, "swim"), VectorDistance(c.v, [1, 2]), [2, 1])
//! ```

use super::Names;
use super::groups::has_aggregate;
use crate::functions::signature::signature;
use crate::tree::{Call, Expr, ExprKind, Literal, Number, OrderBy, Query};
use crate::walk;

/// So many scores are fused at most: a plan has all of them for each of them.
const SCORES_MAX: usize = 16;
/// One score alone needs no RRF.
const SCORES_MIN: usize = 2;

/// What a query is ranked by.
pub(crate) struct Ranking<'q> {
    /// The scoring functions.
    pub(crate) scores: Vec<&'q Call>,
    /// One for each of them, or none at all.
    pub(crate) weights: Vec<Number>,
}

/// Reads what a query is ranked by; `None`: it is not well formed.
pub(crate) fn ranking(order_by: &OrderBy) -> Option<Ranking<'_>> {
    let [key] = order_by.keys.as_slice() else { return None };
    let call = call_of(&key.expr)?;
    if !is_fusion(call) {
        return Some(Ranking { scores: vec![score_of(&key.expr)?], weights: Vec::new() });
    }
    let (scores, weights) = components(call);
    let scores: Option<Vec<&Call>> = scores.iter().map(score_of).collect();
    let weights = weights.map_or(Some(Vec::new()), numbers)?;
    Some(Ranking { scores: scores?, weights })
}

impl<'q> Names<'q> {
    /// What does not go together with the clause.
    pub(super) fn ranked_clauses(&mut self, query: &Query, order_by: &OrderBy) {
        let aggregates = walk::selected(&query.projection).any(has_aggregate);
        if query.distinct || !query.group_by.is_empty() || aggregates {
            let message = "DISTINCT, GROUP BY and aggregate functions are not allowed with the \
                           ORDER BY RANK clause.";
            self.findings.add_without_code(message, order_by.span);
        }
    }

    pub(super) fn rank(&mut self, order_by: &'q OrderBy) {
        let direction = order_by.keys.iter().any(|key| key.direction.is_some());
        if order_by.keys.len() > 1 || direction {
            let message = "The ORDER BY RANK clause takes one function call, without ASC or DESC. \
                           Use RRF to rank by several.";
            return self.findings.add_without_code(message, order_by.span);
        }
        for key in &order_by.keys {
            match call_of(&key.expr) {
                Some(call) if is_fusion(call) => self.fusion(call, order_by),
                _ => self.score(&key.expr, order_by),
            }
        }
    }

    fn fusion(&mut self, call: &'q Call, order_by: &OrderBy) {
        let (scores, weights) = components(call);
        if scores.len() > SCORES_MAX {
            let message = format!("The RRF function takes at most {SCORES_MAX} scores.");
            return self.findings.add_without_code(message, call.name_span);
        }
        if scores.len() < SCORES_MIN || scores.iter().any(|score| score_of(score).is_none()) {
            return self.no_score(order_by);
        }
        for score in scores {
            self.score(score, order_by);
        }
        let Some(weights) = weights else { return };
        if numbers(weights).is_none_or(|numbers| numbers.len() != scores.len()) {
            let message = "The last parameter of the RRF function is an optional array of weights. \
                           When present, it must be a literal array of numbers, one for each of \
                           the component scores used for the RRF function. The length of this \
                           array must be the same as the number of the component scores.";
            self.findings.add("SC2229", message, order_by.span);
        }
    }

    fn score(&mut self, score: &'q Expr, order_by: &OrderBy) {
        let Some(call) = score_of(score) else { return self.no_score(order_by) };
        call.arguments.iter().for_each(|argument| self.expr(argument));
        self.signature(call);
    }

    fn no_score(&mut self, order_by: &OrderBy) {
        let message = "The ORDER BY RANK clause must be followed by a VectorDistance and/or a \
                       FullTextScore function call.";
        self.findings.add("SC2221", message, order_by.span);
    }
}

fn call_of(expr: &Expr) -> Option<&Call> {
    match &expr.kind {
        ExprKind::Call(call) => Some(call),
        _ => None,
    }
}

fn is_fusion(call: &Call) -> bool {
    !call.udf && call.name.eq_ignore_ascii_case("RRF")
}

/// The call of a scoring function.
fn score_of(expr: &Expr) -> Option<&Call> {
    let call = call_of(expr)?;
    let name = signature(&call.name)?.name;
    (!call.udf && ["FULLTEXTSCORE", "VECTORDISTANCE"].contains(&name)).then_some(call)
}

/// The arguments of RRF: the scores, and the weights if there are any.
fn components(call: &Call) -> (&[Expr], Option<&Expr>) {
    match call.arguments.split_last() {
        Some((last, scores)) if matches!(last.kind, ExprKind::Array(_)) => (scores, Some(last)),
        _ => (&call.arguments, None),
    }
}

fn numbers(weights: &Expr) -> Option<Vec<Number>> {
    let ExprKind::Array(values) = &weights.kind else { return None };
    let number = |value: &Expr| match value.kind {
        ExprKind::Literal(Literal::Number(number)) => Some(number),
        _ => None,
    };
    values.iter().map(number).collect()
}
