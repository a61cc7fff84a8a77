//! The bytes behind an effective partition key.

use crate::partition_key::{Component, positive_zero};

const UNDEFINED: u8 = 0x00;
const NULL: u8 = 0x01;
const FALSE: u8 = 0x02;
const TRUE: u8 = 0x03;
const NUMBER: u8 = 0x05;
const STRING: u8 = 0x08;

/// How many UTF-16 units of a string version 1 looks at.
const V1_UNITS: usize = 100;
/// How many bytes of a string stand in an EPK of version 1, if it has more
/// than one more.
const V1_BYTES: usize = 100;

/// 128 bits, the two highest 0.
pub(super) fn v2(components: &[Component]) -> [u8; 16] {
    let mut bytes = Vec::new();
    for component in components {
        write_to_hash(component, 0xFF, &mut bytes);
    }
    let hash = murmur3::murmur3_x64_128(&mut bytes.as_slice(), 0).unwrap_or_default();
    (hash & (u128::MAX >> 2)).to_be_bytes()
}

/// A hash of 32 bits, then the components themselves.
pub(super) fn v1(components: &[Component]) -> Vec<u8> {
    let cut: Vec<Component> = components.iter().map(cut).collect();
    let mut bytes = Vec::new();
    for component in &cut {
        write_to_hash(component, 0x00, &mut bytes);
    }
    let hash = murmur3::murmur3_32(&mut bytes.as_slice(), 0).unwrap_or_default();
    let mut out = number(f64::from(hash));
    for component in &cut {
        write_ordered(component, &mut out);
    }
    out
}

/// A number as version 1 writes it.
pub(super) fn number(number: f64) -> Vec<u8> {
    let mut out = Vec::new();
    write_number(number, &mut out);
    out
}

fn write_to_hash(component: &Component, end_of_string: u8, out: &mut Vec<u8>) {
    match component {
        Component::Undefined => out.push(UNDEFINED),
        Component::Null => out.push(NULL),
        Component::Bool(false) => out.push(FALSE),
        Component::Bool(true) => out.push(TRUE),
        Component::Number(number) => {
            out.push(NUMBER);
            out.extend(positive_zero(*number).to_le_bytes());
        }
        Component::String(string) => {
            out.push(STRING);
            out.extend(string.as_bytes());
            out.push(end_of_string);
        }
    }
}

fn write_ordered(component: &Component, out: &mut Vec<u8>) {
    match component {
        Component::Undefined => out.push(UNDEFINED),
        Component::Null => out.push(NULL),
        Component::Bool(false) => out.push(FALSE),
        Component::Bool(true) => out.push(TRUE),
        Component::Number(number) => write_number(positive_zero(*number), out),
        Component::String(string) => {
            out.push(STRING);
            let short = string.len() <= V1_BYTES;
            // UTF-8 has no byte FF, so adding 1 leaves room for the end mark.
            out.extend(string.bytes().take(V1_BYTES + 1).map(|byte| byte.wrapping_add(1)));
            if short {
                out.push(0x00);
            }
        }
    }
}

/// The bits in an order that follows the number's: eight, then groups of seven
/// with a 1 behind them, the last with a 0, up to the last bit that is set.
fn write_number(number: f64, out: &mut Vec<u8>) {
    const SIGN: u64 = 1 << 63;
    let bits = number.to_bits();
    let ordered = if bits & SIGN == 0 { bits ^ SIGN } else { (!bits).wrapping_add(1) };
    let [first, ..] = ordered.to_be_bytes();
    out.extend([NUMBER, first]);
    let mut rest = ordered << 8;
    let mut group = 0;
    while rest != 0 {
        if group != 0 {
            out.push(group);
        }
        let [byte, ..] = rest.to_be_bytes();
        group = byte | 1;
        rest <<= 7;
    }
    out.push(group & 0xFE);
}

/// A string cut to its first 100 UTF-16 units; half a pair at the cut becomes
/// the replacement character.
fn cut(component: &Component) -> Component {
    match component {
        Component::String(string) if string.len() > V1_UNITS => {
            let units: Vec<u16> = string.encode_utf16().take(V1_UNITS).collect();
            Component::String(String::from_utf16_lossy(&units))
        }
        other => other.clone(),
    }
}
