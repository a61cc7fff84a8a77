//! Operators over values. One that cannot make anything of its operands gives
//! undefined.

use std::cmp::Ordering;

use dayfly_model::value::Value;

use crate::tree::{Operator, Sign};

/// AND of truths that may be undefined.
pub(super) fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// An operator before its operand.
pub(super) fn unary(sign: Sign, operand: &Value) -> Value {
    match (sign, operand) {
        (Sign::Not, Value::Bool(truth)) => Value::Bool(!truth),
        (Sign::Minus, Value::Number(number)) => Value::Number(number.negated()),
        (Sign::Plus, Value::Number(number)) => Value::Number(*number),
        (Sign::BitNot, Value::Number(number)) => Value::from(i64::from(!bits(number.double()))),
        _ => Value::Undefined,
    }
}

/// An operator between its operands.
pub(super) fn binary(operator: Operator, left: &Value, right: &Value) -> Value {
    use Operator as Op;
    match operator {
        Op::Equal | Op::NotEqual => {
            let defined = left.is_defined() && right.is_defined();
            Value::from(defined.then(|| (left == right) == (operator == Op::Equal)))
        }
        Op::Less => compared(left, right, Ordering::is_lt).into(),
        Op::LessOrEqual => compared(left, right, Ordering::is_le).into(),
        Op::Greater => compared(left, right, Ordering::is_gt).into(),
        Op::GreaterOrEqual => compared(left, right, Ordering::is_ge).into(),
        Op::Concat => match (left, right) {
            (Value::String(left), Value::String(right)) => Value::String([&**left, right].concat()),
            _ => Value::Undefined,
        },
        Op::And => and_or(left, right, false),
        Op::Or => and_or(left, right, true),
        Op::Coalesce => if left.is_defined() { left } else { right }.clone(),
        _ => match (left.as_double(), right.as_double()) {
            (Some(left), Some(right)) => arithmetic(operator, left, right),
            _ => Value::Undefined,
        },
    }
}

fn and_or(left: &Value, right: &Value, decisive: bool) -> Value {
    match (left, right) {
        (Value::Bool(truth), _) | (_, Value::Bool(truth)) if *truth == decisive => {
            Value::Bool(decisive)
        }
        (Value::Bool(_), Value::Bool(truth)) => Value::Bool(*truth),
        _ => Value::Undefined,
    }
}

/// How two values compare, if they do.
pub(super) fn compared(left: &Value, right: &Value, fits: fn(Ordering) -> bool) -> Option<bool> {
    if left.kind() == right.kind() && left.as_double().is_some() {
        // What is not a number is neither less nor greater.
        return Some(left.compare(right).is_some_and(fits));
    }
    left.compare(right).map(fits)
}

fn arithmetic(operator: Operator, left: f64, right: f64) -> Value {
    match operator {
        Operator::Add => Value::from(left + right),
        Operator::Subtract => Value::from(left - right),
        Operator::Multiply => Value::from(left * right),
        Operator::Divide => Value::from(left / right),
        Operator::Modulo => Value::from(left % right),
        _ => bitwise(operator, bits(left), bits(right)),
    }
}

fn bitwise(operator: Operator, left: i32, right: i32) -> Value {
    let shift = right.cast_unsigned() & 31;
    Value::from(match operator {
        Operator::BitAnd => i64::from(left & right),
        Operator::BitOr => i64::from(left | right),
        Operator::BitXor => i64::from(left ^ right),
        Operator::ShiftLeft => i64::from(left.wrapping_shl(shift)),
        Operator::ShiftRight => i64::from(left.wrapping_shr(shift)),
        Operator::ShiftRightZero => i64::from(left.cast_unsigned().wrapping_shr(shift)),
        _ => return Value::Undefined,
    })
}

/// The 32 bits of a number, as JavaScript takes them.
fn bits(number: f64) -> i32 {
    if !number.is_finite() {
        return 0;
    }
    let wrapped = number.trunc().rem_euclid(4_294_967_296.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "wrapped above")]
    let bits = wrapped as u32;
    bits.cast_signed()
}
