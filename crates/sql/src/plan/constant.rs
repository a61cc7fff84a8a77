//! The value of an expression that has the same one for all items, as far as it
//! takes no functions to tell it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use dayfly_model::value::Value;

use crate::request::{Parameters, value_of};
use crate::tree::{Expr, ExprKind, Literal, Operator, Sign};

/// What is the same for all items: literals, and these parameters.
pub(crate) struct Constants<'p> {
    parameters: HashMap<&'p str, Value>,
}

impl<'p> Constants<'p> {
    pub(crate) fn new(parameters: &'p Parameters) -> Self {
        let given = parameters.keys().map(|name| (name.as_str(), value_of(parameters, name)));
        Constants { parameters: given.collect() }
    }

    /// The value of an expression; `None`: it depends on the item, or on functions.
    pub(crate) fn value(&self, expr: &Expr) -> Option<Cow<'_, Value>> {
        let value = match &expr.kind {
            ExprKind::Literal(literal) => of_literal(literal)?,
            // A parameter that is not given is undefined.
            ExprKind::Parameter(name) => {
                let given = self.parameters.get(name.as_str());
                return Some(given.map_or(Cow::Owned(Value::Undefined), Cow::Borrowed));
            }
            ExprKind::Array(values) => {
                let values: Option<Vec<Value>> =
                    values.iter().map(|value| self.owned(value)).collect();
                Value::Array(values?.into_iter().filter(Value::is_defined).collect())
            }
            ExprKind::Object(members) => {
                let member =
                    |(name, value): &(String, Expr)| Some((name.clone(), self.owned(value)?));
                let members: Option<Vec<(String, Value)>> = members.iter().map(member).collect();
                Value::Object(
                    members?.into_iter().filter(|(_, value)| value.is_defined()).collect(),
                )
            }
            ExprKind::Unary(Sign::Minus, operand) => match *self.value(operand)? {
                Value::Number(number) => Value::Number(number.negated()),
                _ => Value::Undefined,
            },
            ExprKind::Unary(Sign::Not, operand) => match *self.value(operand)? {
                Value::Bool(truth) => Value::Bool(!truth),
                _ => Value::Undefined,
            },
            ExprKind::Chain(first, rest) => match rest.as_slice() {
                [(operator, right)] => {
                    compared(*operator, &*self.value(first)?, &*self.value(right)?)?
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(Cow::Owned(value))
    }

    fn owned(&self, expr: &Expr) -> Option<Value> {
        self.value(expr).map(Cow::into_owned)
    }
}

/// What a comparison of two values gives; `None`: the operator is no comparison.
fn compared(operator: Operator, left: &Value, right: &Value) -> Option<Value> {
    let order: fn(Ordering) -> bool = match operator {
        Operator::Equal | Operator::NotEqual => {
            let defined = left.is_defined() && right.is_defined();
            let holds = (left == right) == (operator == Operator::Equal);
            return Some(defined.then_some(holds).into());
        }
        Operator::Less => Ordering::is_lt,
        Operator::LessOrEqual => Ordering::is_le,
        Operator::Greater => Ordering::is_gt,
        Operator::GreaterOrEqual => Ordering::is_ge,
        _ => return None,
    };
    Some(left.compare(right).map(order).into())
}

fn of_literal(literal: &Literal) -> Option<Value> {
    match literal {
        Literal::Undefined => Some(Value::Undefined),
        Literal::Null => Some(Value::Null),
        Literal::Boolean(truth) => Some(Value::Bool(*truth)),
        Literal::Number(number) => Some(Value::Number(*number)),
        Literal::String(text) => Some(Value::String(text.clone())),
        Literal::NotANumber | Literal::Infinity => None,
    }
}
