//! All values in one order, as bytes: what compares less has lesser bytes.
//!
//! ```text
//! undefined < null < false < true < number < string < array < object
//!
//! 01                            undefined
//! 02                            null
//! 03                            false
//! 04                            true
//! 05 <double:8> <rest:2>        a number: the nearest double, and what an integer
//!                               of 64 bits is more or less than that
//! 06 <text> 00 00               a string; a zero in it is 00 FF
//! 07 <value>* 00                an array
//! 08 (<name> <value>)* 00       an object, by name; names are written as strings
//! ```
//!
//! Bytes of one value are never the beginning of another's, so values can stand
//! one after another. Equal bytes are equal values: `1` and `1.0` have the same,
//! and so do objects with the same properties.

use super::{Number, Type, Value};

const UNDEFINED: u8 = 0x01;
const NULL: u8 = 0x02;
const FALSE: u8 = 0x03;
const TRUE: u8 = 0x04;
const NUMBER: u8 = 0x05;
const STRING: u8 = 0x06;
const ARRAY: u8 = 0x07;
const OBJECT: u8 = 0x08;
const END: u8 = 0x00;
/// The first byte past all values.
pub const PAST: u8 = 0x09;

/// How many bytes a number has.
pub const NUMBER_BYTES: usize = 11;
/// How many of them all integers have in common with their nearest double.
pub const DOUBLE_BYTES: usize = 9;

/// The first bytes of all values of a type: the least, and the first that is
/// past them.
pub fn bounds(kind: Type) -> (u8, u8) {
    match kind {
        Type::Undefined => (UNDEFINED, NULL),
        Type::Null => (NULL, FALSE),
        Type::Bool => (FALSE, NUMBER),
        Type::Number => (NUMBER, STRING),
        Type::String => (STRING, ARRAY),
        Type::Array => (ARRAY, OBJECT),
        Type::Object => (OBJECT, PAST),
    }
}

/// The bytes of a value.
pub fn key(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, &mut out);
    out
}

/// Appends the bytes of a value.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Undefined => out.push(UNDEFINED),
        Value::Null => out.push(NULL),
        Value::Bool(false) => out.push(FALSE),
        Value::Bool(true) => out.push(TRUE),
        Value::Number(number) => write_number(*number, out),
        Value::String(text) => write_text(text, out),
        Value::Array(values) => {
            out.push(ARRAY);
            for value in values {
                write(value, out);
            }
            out.push(END);
        }
        Value::Object(members) => {
            out.push(OBJECT);
            let mut sorted: Vec<&(String, Value)> = members.iter().collect();
            sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
            for (name, value) in sorted {
                write_text(name, out);
                write(value, out);
            }
            out.push(END);
        }
    }
}

/// Appends the bytes of a string.
pub fn write_text(text: &str, out: &mut Vec<u8>) {
    write_text_start(text, out);
    out.extend([END, END]);
}

/// Appends the bytes with which all strings begin that begin with `text`.
pub fn write_text_start(text: &str, out: &mut Vec<u8>) {
    out.push(STRING);
    for part in text.as_bytes().split_inclusive(|byte| *byte == 0) {
        out.extend_from_slice(part);
        if part.last() == Some(&0) {
            out.push(0xFF);
        }
    }
}

fn write_number(number: Number, out: &mut Vec<u8>) {
    let double = number.double();
    let rest = match number {
        Number::Integer(value) => {
            #[expect(clippy::cast_possible_truncation, reason = "a double made from an integer")]
            let difference = i128::from(value) - double as i128;
            i16::try_from(difference).unwrap_or_default()
        }
        Number::Double(_) => 0,
    };
    out.push(NUMBER);
    out.extend(ordered_bits(double).to_be_bytes());
    out.extend((rest.cast_unsigned() ^ 0x8000).to_be_bytes());
}

/// Bits that are in the order of the numbers. What is not a number comes
/// first.
fn ordered_bits(double: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    if double.is_nan() {
        return 0;
    }
    // Adding zero makes a positive zero of a negative one.
    let bits = (double + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The scalar that has exactly these bytes.
pub fn read_scalar(bytes: &[u8]) -> Option<Value> {
    let value = match bytes.split_first()? {
        (&NULL, _) => Value::Null,
        (&FALSE, _) => Value::Bool(false),
        (&TRUE, _) => Value::Bool(true),
        (&NUMBER, rest) => Value::Number(read_number(rest)?),
        (&STRING, rest) => Value::String(unescaped(rest.strip_suffix(&[END, END])?)?),
        _ => return None,
    };
    // Other bytes may look like a value's without being those of any.
    (key(&value) == bytes).then_some(value)
}

/// The text with which all strings begin that begin with these bytes.
pub fn read_text_start(bytes: &[u8]) -> Option<String> {
    let text = unescaped(bytes.strip_prefix(&[STRING])?)?;
    let mut written = Vec::new();
    write_text_start(&text, &mut written);
    (written == bytes).then_some(text)
}

fn unescaped(bytes: &[u8]) -> Option<String> {
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        text.push(*byte);
        if *byte == 0 {
            rest.next();
        }
    }
    String::from_utf8(text).ok()
}

fn read_number(bytes: &[u8]) -> Option<Number> {
    const SIGN: u64 = 1 << 63;
    let (bits, rest) = bytes.split_first_chunk()?;
    let bits = u64::from_be_bytes(*bits);
    let double = f64::from_bits(if bits & SIGN == 0 { !bits } else { bits & !SIGN });
    let rest = (u16::from_be_bytes(rest.try_into().ok()?) ^ 0x8000).cast_signed();
    #[expect(clippy::cast_possible_truncation, reason = "what does not fit is no integer")]
    let integer = i64::try_from(double as i128 + i128::from(rest));
    Some(match integer {
        Ok(integer) if double.fract() == 0.0 => Number::Integer(integer),
        _ => Number::Double(double),
    })
}
