//! Binary JSON from values: as the Rust SDK writes it, and in any form that is
//! allowed.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::Value;

use super::super::strings::SYSTEM_STRINGS;

/// The body that the Rust SDK sends.
pub(super) fn as_the_rust_sdk(value: &Value) -> Vec<u8> {
    [vec![0x80], sdk_value(value)].concat()
}

/// A body in some of the forms that are allowed; `choices` says which.
pub(super) fn in_any_form(value: &Value, choices: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder { bytes: vec![0x80], choices, chosen: 0, seen: HashMap::new() };
    encoder.value(value);
    encoder.bytes
}

fn sdk_value(value: &Value) -> Vec<u8> {
    match value {
        Value::Null => vec![0xD0],
        Value::Bool(truth) => vec![0xD1 + u8::from(*truth)],
        Value::Number(_) => match (value.as_i64(), value.as_u64()) {
            (Some(small @ 0..32), _) => vec![u8::try_from(small).unwrap()],
            (Some(_), _) => [vec![0xCB], bare(0xCB, value).unwrap()].concat(),
            (_, Some(_)) => [vec![0xC7], bare(0xC7, value).unwrap()].concat(),
            _ => [vec![0xCC], bare(0xCC, value).unwrap()].concat(),
        },
        Value::String(string) => plain_strings(string).swap_remove(0),
        Value::Array(items) => {
            sdk_container(0xE5, items.len(), items.iter().flat_map(sdk_value).collect())
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                [plain_strings(name).swap_remove(0), sdk_value(value)].concat()
            };
            sdk_container(0xED, members.len(), members.iter().flat_map(member).collect())
        }
    }
}

fn sdk_container(marker: u8, count: usize, members: Vec<u8>) -> Vec<u8> {
    let (step, width) = match members.len().max(count) {
        0..0x100 => (0, 1),
        0x100..0x1_0000 => (1, 2),
        _ => (2, 4),
    };
    [vec![marker + step], le(members.len(), width), le(count, width), members].concat()
}

struct Encoder<'c> {
    bytes: Vec<u8>,
    choices: &'c [u8],
    chosen: usize,
    /// Where each string begins.
    seen: HashMap<String, usize>,
}

impl Encoder<'_> {
    fn choose<T>(&mut self, mut forms: Vec<T>) -> T {
        self.chosen += 1;
        let choice = self.choices[self.chosen % self.choices.len()];
        forms.swap_remove(usize::from(choice) % forms.len())
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.bytes.push(0xD0),
            Value::Bool(truth) => self.bytes.push(0xD1 + u8::from(*truth)),
            Value::Number(_) => {
                let form = self.choose(numbers(value));
                self.bytes.extend(form);
            }
            Value::String(string) => self.string(string),
            Value::Array(items) => {
                let uniform = uniform(items);
                if !uniform.is_empty() && self.choose(vec![true, false]) {
                    let form = self.choose(uniform);
                    self.bytes.extend(form);
                    return;
                }
                self.container(0xE0, items.len(), |encoder| {
                    for item in items {
                        encoder.value(item);
                    }
                });
            }
            Value::Object(members) => self.container(0xE8, members.len(), |encoder| {
                for (name, value) in members {
                    encoder.string(name);
                    encoder.value(value);
                }
            }),
        }
    }

    fn string(&mut self, string: &str) {
        if let Some(&at) = self.seen.get(string)
            && self.choose(vec![true, false])
        {
            let widths = (1..=4).filter(|width| at < 1 << (8 * width)).collect();
            let width = self.choose(widths);
            self.bytes.push(0xC2 + u8::try_from(width).unwrap());
            self.bytes.extend(le(at, width));
            return;
        }
        self.seen.insert(string.to_owned(), self.bytes.len());
        let form = self.choose([plain_strings(string), packed_strings(string)].concat());
        self.bytes.extend(form);
    }

    fn container(&mut self, marker: u8, count: usize, members: impl Fn(&mut Self)) {
        if count < 2 && self.choose(vec![true, false]) {
            self.bytes.push(marker + u8::try_from(count).unwrap());
            return members(self);
        }
        let counted = self.choose(vec![0, 3]);
        let start = self.bytes.len();
        for (step, width) in self.choose(vec![vec![(2, 1), (3, 2), (4, 4)], vec![(4, 4)]]) {
            let seen = self.seen.clone();
            self.bytes.push(marker + step + counted);
            let head = if counted > 0 { 2 * width } else { width };
            self.bytes.extend(vec![0; head]);
            let inner = self.bytes.len();
            members(self);
            let length = self.bytes.len() - inner;
            if width == 4 || length < 1 << (8 * width) {
                let lengths = [le(length, width), le(count, width)].concat();
                self.bytes[start + 1..inner].copy_from_slice(&lengths[..head]);
                return;
            }
            self.bytes.truncate(start);
            self.seen = seen;
        }
    }
}

const NUMBERS: [u8; 14] =
    [0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xCC, 0xCD, 0xCE, 0xD7, 0xD8, 0xD9, 0xDA, 0xDB, 0xDC];

fn numbers(value: &Value) -> Vec<Vec<u8>> {
    let literal = value.as_u64().and_then(|n| u8::try_from(n).ok()).filter(|n| *n < 32);
    let marked =
        NUMBERS.iter().filter_map(|&marker| Some([vec![marker], bare(marker, value)?].concat()));
    literal.map(|literal| vec![literal]).into_iter().chain(marked).collect()
}

/// A number behind its marker, if the marker can have it.
fn bare(marker: u8, value: &Value) -> Option<Vec<u8>> {
    Some(match marker {
        0xC7 => value.as_u64()?.to_le_bytes().to_vec(),
        0xC8 | 0xD7 => vec![u8::try_from(value.as_i64()?).ok()?],
        0xD8 => i8::try_from(value.as_i64()?).ok()?.to_le_bytes().to_vec(),
        0xC9 | 0xD9 => i16::try_from(value.as_i64()?).ok()?.to_le_bytes().to_vec(),
        0xCA | 0xDA => i32::try_from(value.as_i64()?).ok()?.to_le_bytes().to_vec(),
        0xDC => u32::try_from(value.as_i64()?).ok()?.to_le_bytes().to_vec(),
        0xCB | 0xDB => value.as_i64()?.to_le_bytes().to_vec(),
        0xCC | 0xCE => double(value)?.to_le_bytes().to_vec(),
        _ => {
            let double = double(value)?;
            #[expect(clippy::cast_possible_truncation, reason = "looked at afterwards")]
            let float = double as f32;
            (f64::from(float).to_bits() == double.to_bits())
                .then(|| float.to_le_bytes().to_vec())?
        }
    })
}

fn double(value: &Value) -> Option<f64> {
    match value.as_i64() {
        Some(integer) => i32::try_from(integer).ok().map(f64::from),
        None => value.as_f64().filter(|_| value.is_f64()),
    }
}

/// The forms of an array of numbers, or of such arrays.
fn uniform(items: &[Value]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for marker in [0xCD, 0xCE, 0xD7, 0xD8, 0xD9, 0xDA, 0xDB, 0xDC] {
        let bare_items = |items: &[Value]| {
            items.iter().map(|item| bare(marker, item)).collect::<Option<Vec<_>>>()
        };
        for (step, width) in [(0, 1), (1, 2)] {
            if let Some(numbers) = bare_items(items) {
                let head = [vec![0xF0 + step, marker], le(items.len(), width)];
                forms.push([head.concat(), numbers.concat()].concat());
            }
            let Some(arrays) = items.iter().map(Value::as_array).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let count = arrays.first().map_or(0, |array| array.len());
            let numbers = arrays.iter().map(|array| bare_items(array)).collect::<Option<Vec<_>>>();
            if let Some(numbers) = numbers
                && arrays.iter().all(|array| array.len() == count)
            {
                let head = [vec![0xF2 + step, 0xF0 + step, marker], le(count, width)];
                let body = numbers.concat().concat();
                forms.push([head.concat(), le(items.len(), width), body].concat());
            }
        }
    }
    forms
}

/// The forms that have the bytes of the string, the shortest first.
fn plain_strings(string: &str) -> Vec<Vec<u8>> {
    let bytes = string.as_bytes();
    let short = (bytes.len() < 64).then(|| vec![0x80 + u8::try_from(bytes.len()).unwrap()]);
    let long = [(0xC0, 1), (0xC1, 2), (0xC2, 4)].into_iter().filter_map(|(marker, width)| {
        let fits = width == 4 || bytes.len() < 1 << (8 * width);
        fits.then(|| [vec![marker], le(bytes.len(), width)].concat())
    });
    short.into_iter().chain(long).map(|head| [&head, bytes].concat()).collect()
}

/// The forms that know something about the string.
fn packed_strings(string: &str) -> Vec<Vec<u8>> {
    let bytes = string.as_bytes();
    let mut forms = Vec::new();
    if let Some(index) = SYSTEM_STRINGS.iter().position(|system| *system == string) {
        forms.push(vec![0x20 + u8::try_from(index).unwrap()]);
    }
    if !string.is_ascii() || bytes.len() > 0xFFFF {
        return forms;
    }
    for (marker, padded, engine) in [
        (0x71, true, STANDARD),
        (0x71, false, STANDARD_NO_PAD),
        (0x73, true, URL_SAFE),
        (0x73, false, URL_SAFE_NO_PAD),
    ] {
        let Ok(raw) = engine.decode(bytes) else { continue };
        let padding = u8::try_from(raw.len().next_multiple_of(3) - raw.len()).unwrap();
        let padding = if padded { padding } else { !padding };
        let fours = raw.len().div_ceil(3);
        if fours < 256 {
            forms.push([vec![marker], le(fours, 1), vec![padding], raw.clone()].concat());
        }
        forms.push([vec![marker + 1], le(fours, 2), vec![padding], raw].concat());
    }
    for (marker, digits) in [(0x75, SMALL), (0x76, CAPITAL), (0x77, SMALL)] {
        let inner = if marker == 0x77 {
            string.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))
        } else {
            Some(string)
        };
        let Some(inner) = inner else { continue };
        let dashes: Vec<usize> = inner.match_indices('-').map(|(at, _)| at).collect();
        if inner.len() == 36 && dashes == [8, 13, 18, 23] {
            forms.extend(
                halves(&inner.replace('-', ""), digits).map(|bits| [vec![marker], bits].concat()),
            );
        }
    }
    if bytes.len() < 256 {
        let count = le(bytes.len(), 1);
        for (marker, characters) in [(0x78, SMALL), (0x79, CAPITAL), (0x7A, " 0123456789:-.TZ")] {
            let bits = halves(string, characters);
            forms.extend(bits.map(|bits| [vec![marker], count.clone(), bits].concat()));
        }
        let base = bytes.iter().min().copied().unwrap_or(b'a');
        let range = bytes.iter().max().copied().unwrap_or(b'a') - base;
        for (marker, bits) in [(0x7B, 4), (0x7C, 5), (0x7D, 6)] {
            if range < 1 << bits {
                forms.push(
                    [vec![marker], count.clone(), vec![base], pack(bytes, base, bits)].concat(),
                );
            }
        }
        forms.push([vec![0x7E], count, pack(bytes, 0, 7)].concat());
    }
    forms.push([vec![0x7F], le(bytes.len(), 2), pack(bytes, 0, 7)].concat());
    forms
}

const SMALL: &str = "0123456789abcdef";
const CAPITAL: &str = "0123456789ABCDEF";

fn halves(string: &str, characters: &str) -> Option<Vec<u8>> {
    let half = |character| characters.find(character).and_then(|half| u8::try_from(half).ok());
    string.chars().map(half).collect::<Option<Vec<u8>>>().map(|halves| pack(&halves, 0, 4))
}

fn pack(bytes: &[u8], base: u8, bits: usize) -> Vec<u8> {
    let mut packed = vec![0; (bytes.len() * bits).div_ceil(8)];
    for (index, byte) in bytes.iter().enumerate() {
        for bit in (0..bits).filter(|bit| (byte - base) >> bit & 1 == 1) {
            let at = index * bits + bit;
            packed[at / 8] |= 1 << (at % 8);
        }
    }
    packed
}

fn le(number: usize, width: usize) -> Vec<u8> {
    number.to_le_bytes()[..width].to_vec()
}
