//! Arithmetic on integers of 64 bits: `INTADD` and the like.
//!
//! What does not fit wraps around. A number that is not an integer of 64 bits
//! makes the result undefined, and so does a division by zero. A shift counts
//! modulo 64 and not below zero.

use super::arguments::integer;
use super::{Arguments, Body, Family};

pub(super) const FUNCTIONS: &Family = &[
    ("INTADD", Body::Strict(|a| two(a, |x, y| Some(x.wrapping_add(y))).into())),
    ("INTBITAND", Body::Strict(|a| two(a, |x, y| Some(x & y)).into())),
    ("INTBITLEFTSHIFT", Body::Strict(|a| two(a, |x, y| Some(x.wrapping_shl(bits(y)?))).into())),
    ("INTBITNOT", Body::Strict(|a| integer(a, 0).map(|x| !x).into())),
    ("INTBITOR", Body::Strict(|a| two(a, |x, y| Some(x | y)).into())),
    ("INTBITRIGHTSHIFT", Body::Strict(|a| two(a, |x, y| Some(x.wrapping_shr(bits(y)?))).into())),
    ("INTBITXOR", Body::Strict(|a| two(a, |x, y| Some(x ^ y)).into())),
    ("INTDIV", Body::Strict(|a| two(a, |x, y| (y != 0).then(|| x.wrapping_div(y))).into())),
    ("INTMOD", Body::Strict(|a| two(a, |x, y| (y != 0).then(|| x.wrapping_rem(y))).into())),
    ("INTMUL", Body::Strict(|a| two(a, |x, y| Some(x.wrapping_mul(y))).into())),
    ("INTSUB", Body::Strict(|a| two(a, |x, y| Some(x.wrapping_sub(y))).into())),
];

fn two(arguments: &Arguments<'_>, compute: fn(i64, i64) -> Option<i64>) -> Option<i64> {
    compute(integer(arguments, 0)?, integer(arguments, 1)?)
}

/// By how many bits a shift goes.
fn bits(count: i64) -> Option<u32> {
    let count = u64::try_from(count).ok()?;
    u32::try_from(count % 64).ok()
}

#[cfg(test)]
mod tests;
