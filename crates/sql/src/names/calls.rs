//! Calls: whether there is such a function, how many arguments it takes, and
//! whether it may stand there.

use super::Names;
use crate::error::quoted;
use crate::functions::signature::{Sort, signature};
use crate::tree::{Call, Expr, ExprKind, Literal, Number};

/// What `searchListSizeMultiplier` may be.
const MULTIPLIERS: std::ops::RangeInclusive<f64> = 1.0..=100.0;

impl<'q> Names<'q> {
    /// A call that stands anywhere but in ORDER BY RANK. What is wrong in its
    /// arguments comes first.
    pub(super) fn call(&mut self, call: &'q Call) {
        self.counts.udfs += usize::from(call.udf);
        call.arguments.iter().for_each(|argument| self.expr(argument));
        let known = signature(&call.name).filter(|_| !call.udf);
        match known.filter(|known| known.sort == Sort::Ranking) {
            Some(known) if known.name == "FULLTEXTSCORE" => {
                let message =
                    "The FullTextScore function is only allowed in the ORDER BY RANK clause.";
                self.findings.add("SC2240", message, call.span);
            }
            // RRF is part of the clause, and nowhere else a function.
            Some(_) => self.unknown(call),
            None => self.signature(call),
        }
    }

    /// The function is known and takes so many arguments.
    pub(super) fn signature(&mut self, call: &Call) {
        if call.udf {
            return;
        }
        let Some(known) = signature(&call.name) else { return self.unknown(call) };
        if !known.takes(call.arguments.len()) {
            let message =
                format!("The {} function requires {} argument(s).", known.name, known.arity());
            self.findings.add("SC2050", message, call.span);
        }
        if known.sort == Sort::Vector
            && let Some(options) = call.arguments.get(3)
        {
            self.vector_options(options);
        }
    }

    fn unknown(&mut self, call: &Call) {
        let name = quoted(&call.name);
        let message = format!("'{name}' is not a recognized built-in function name.");
        self.findings.add("SC2005", message, call.name_span);
    }

    fn vector_options(&mut self, options: &Expr) {
        let ExprKind::Object(members) = &options.kind else { return };
        for (name, value) in members {
            if let ExprKind::Literal(Literal::Number(number)) = &value.kind
                && name == "searchListSizeMultiplier"
                && !is_multiplier(*number)
            {
                let message = format!(
                    "The 'searchListSizeMultiplier' value {number} specified in the VectorDistance \
                     function is outside the supported range. The value must be between 1 and 100."
                );
                self.findings.add("SC2213", message, options.span);
            }
        }
    }
}

fn is_multiplier(number: Number) -> bool {
    MULTIPLIERS.contains(&number.double())
}
