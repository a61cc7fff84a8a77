//! Mathematics: rounding, powers, angles.
//!
//! Numbers are doubles here, except where the answer for an integer is an
//! integer: `FLOOR` of one is itself, to the last digit. A function that has no
//! answer, like the root of -1, gives a number that is none; it may be part of an
//! expression and cannot be part of a result.

use dayfly_model::value::{Number, Value};

use super::arguments::{double, number, optional};
use super::{Arguments, Body, Family};

pub(super) const FUNCTIONS: &Family = &[
    ("ABS", Body::Strict(|a| number(a, 0).map(magnitude).into())),
    ("ACOS", Body::Strict(|a| one(a, f64::acos))),
    ("ASIN", Body::Strict(|a| one(a, f64::asin))),
    ("ATAN", Body::Strict(|a| one(a, f64::atan))),
    ("ATN2", Body::Strict(|a| two(a, f64::atan2))),
    ("CEILING", Body::Strict(|a| rounded(a, f64::ceil))),
    ("COS", Body::Strict(|a| one(a, f64::cos))),
    ("COT", Body::Strict(|a| one(a, |x| 1.0 / x.tan()))),
    ("DEGREES", Body::Strict(|a| one(a, f64::to_degrees))),
    ("EXP", Body::Strict(|a| one(a, f64::exp))),
    ("FLOOR", Body::Strict(|a| rounded(a, f64::floor))),
    ("LOG", Body::Strict(|a| logarithm(a).into())),
    ("LOG10", Body::Strict(|a| one(a, f64::log10))),
    ("NUMBERBIN", Body::Strict(|a| bin(a).into())),
    ("PI", Body::Strict(|_| std::f64::consts::PI.into())),
    ("POWER", Body::Strict(|a| two(a, f64::powf))),
    ("RADIANS", Body::Strict(|a| one(a, |x| std::f64::consts::PI * x / 180.0))),
    ("ROUND", Body::Strict(|a| rounded(a, f64::round))),
    ("SIGN", Body::Strict(|a| sign(a).into())),
    ("SIN", Body::Strict(|a| one(a, f64::sin))),
    ("SQRT", Body::Strict(|a| one(a, f64::sqrt))),
    ("SQUARE", Body::Strict(|a| one(a, |x| x * x))),
    ("TAN", Body::Strict(|a| one(a, f64::tan))),
    ("TRUNC", Body::Strict(|a| rounded(a, f64::trunc))),
];

fn one(arguments: &Arguments<'_>, compute: fn(f64) -> f64) -> Value {
    double(arguments, 0).map(compute).into()
}

fn two(arguments: &Arguments<'_>, compute: fn(f64, f64) -> f64) -> Value {
    let both = double(arguments, 0).zip(double(arguments, 1));
    both.map(|(left, right)| compute(left, right)).into()
}

/// A number made whole; an integer is.
fn rounded(arguments: &Arguments<'_>, round: fn(f64) -> f64) -> Value {
    let whole = number(arguments, 0).map(|number| match number {
        Number::Integer(_) => number,
        Number::Double(value) => Number::Double(round(value)),
    });
    whole.map(Value::Number).into()
}

fn magnitude(number: Number) -> Value {
    Value::Number(match number {
        Number::Integer(value) if value < 0 => number.negated(),
        Number::Integer(_) => number,
        Number::Double(value) => Number::Double(value.abs()),
    })
}

fn sign(arguments: &Arguments<'_>) -> Option<Value> {
    Some(match number(arguments, 0)? {
        Number::Integer(value) => value.signum().into(),
        Number::Double(0.0) => 0_i64.into(),
        Number::Double(value) => value.signum().into(),
    })
}

/// The logarithm to a base, or the natural one.
fn logarithm(arguments: &Arguments<'_>) -> Option<f64> {
    let value = double(arguments, 0)?;
    let base = optional(arguments, 1, std::f64::consts::E, Value::as_double)?;
    // A quotient of two logarithms is off by the last digit for the usual bases.
    Some(match base {
        std::f64::consts::E => value.ln(),
        10.0 => value.log10(),
        2.0 => value.log2(),
        base => value.ln() / base.ln(),
    })
}

/// The greatest multiple of a size that is not above a number.
fn bin(arguments: &Arguments<'_>) -> Option<Value> {
    let value = number(arguments, 0)?;
    let size = optional(arguments, 1, Number::Integer(1), |size| match size {
        Value::Number(size) => Some(*size),
        _ => None,
    })?;
    let exact = match (value, size) {
        (Number::Integer(value), Number::Integer(size)) => exact_bin(value, size),
        _ => None,
    };
    exact.map(Value::from).or_else(|| double_bin(value.double(), size.double()))
}

fn exact_bin(value: i64, size: i64) -> Option<i64> {
    let rest = value.checked_rem(size)?;
    let other_side = rest != 0 && (rest < 0) != (size < 0);
    let rest = if other_side { rest.checked_add(size)? } else { rest };
    value.checked_sub(rest)
}

fn double_bin(value: f64, size: f64) -> Option<Value> {
    let usable = size != 0.0 && size.is_finite();
    usable.then(|| ((value / size).floor() * size).into())
}

#[cfg(test)]
mod tests;
