//! In which direction vectors are sorted: the most alike come first. Of cosine and
//! dot product the greatest are most alike, of the euclidean distance the least.

use dayfly_model::container::Embedding;
use dayfly_model::value::Value;

use super::constant::Constants;
use crate::functions::signature::{Sort, signature};
use crate::names::name_of;
use crate::tree::{Access, Call, Direction, Expr, ExprKind, Literal, Query};

/// What decides how far two vectors are apart.
pub(super) struct Vectors<'a> {
    pub(super) query: &'a Query,
    pub(super) constants: Constants<'a>,
    pub(super) embeddings: &'a [Embedding],
}

impl Vectors<'_> {
    /// The direction of a sort by distance; `None`: it is no such sort.
    pub(super) fn direction(&self, key: &Expr) -> Option<Direction> {
        match &key.kind {
            ExprKind::Call(call) if is_distance(call) => Some(self.direction_of(call)),
            _ => None,
        }
    }

    /// The direction by the call's options, else by the container's policy.
    pub(super) fn direction_of(&self, call: &Call) -> Direction {
        let options = call.arguments.get(3).and_then(|options| self.constants.value(options));
        let chosen = options.as_deref().and_then(distance_function);
        let policy = || call.arguments.iter().take(2).find_map(|vector| self.policy(vector));
        let euclidean = chosen.or_else(policy);
        if euclidean.is_some_and(|name| name.eq_ignore_ascii_case("euclidean")) {
            Direction::Ascending
        } else {
            Direction::Descending
        }
    }

    fn policy(&self, vector: &Expr) -> Option<&str> {
        let ExprKind::Path(of, steps) = &vector.kind else { return None };
        let ExprKind::Identifier(root) = &of.kind else { return None };
        if self.query.sources.first().and_then(name_of) != Some(root) {
            return None;
        }
        let names: Option<Vec<&str>> = steps.iter().map(step_name).collect();
        let names = names?;
        let known = self.embeddings.iter().find(|known| known.path.segments() == names)?;
        Some(&known.distance_function)
    }
}

fn is_distance(call: &Call) -> bool {
    !call.udf && signature(&call.name).is_some_and(|known| known.sort == Sort::Vector)
}

fn distance_function(options: &Value) -> Option<&str> {
    options.property("distanceFunction").as_str()
}

fn step_name(step: &Access) -> Option<&str> {
    match step {
        Access::Member(name)
        | Access::Index(Expr { kind: ExprKind::Literal(Literal::String(name)), .. }) => Some(name),
        Access::Index(_) => None,
    }
}
