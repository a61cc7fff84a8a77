//! The strings of binary JSON.
//!
//! | marker     | string                                                      |
//! |------------|-------------------------------------------------------------|
//! | `20`..`3F` | one of [`SYSTEM_STRINGS`]                                   |
//! | `40`..`67` | one of a dictionary that is agreed elsewhere: refused       |
//! | `71` `72`  | base64; how many fours of characters, in 1, 2 bytes; a byte |
//! |            | for the `=` at its end; what the base64 says                |
//! | `73` `74`  | the same, with `-` and `_`                                  |
//! | `75`..`77` | a GUID in small letters, in capitals, in small and quoted   |
//! | `78` `79`  | hexadecimal digits, small, capital: their number, in a      |
//! |            | byte; half a byte each                                      |
//! | `7A`       | the same, with the characters of a date                     |
//! | `7B`..`7D` | characters of 4, 5, 6 bits: their number, in a byte; what   |
//! |            | to add to each; the bits                                    |
//! | `7E` `7F`  | ASCII, 7 bits each: their number, in 1, 2 bytes; the bits   |
//! | `80`..`BF` | UTF-8 of 0 to 63 bytes                                      |
//! | `C0`..`C2` | UTF-8; the number of bytes, in 1, 2, 4 bytes                |
//! | `C3`..`C6` | the string that begins at a byte of the body, which is      |
//! |            | counted from its first byte, in 1, 2, 3, 4 bytes            |
//!
//! Of two halves in a byte the low one comes first. A reference leads to an
//! earlier string that is none itself, so there are no chains and no circles.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::cursor::Cursor;
use crate::error::Result;

/// The strings that every client and server knows, in the order of their
/// markers.
pub(super) const SYSTEM_STRINGS: [&str; 32] = [
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
];

const SMALL_HEX: &[u8; 16] = b"0123456789abcdef";
const CAPITAL_HEX: &[u8; 16] = b"0123456789ABCDEF";
const DATE: &[u8; 16] = b" 0123456789:-.TZ";

/// The string that begins with `marker`; the cursor is behind the marker.
pub(super) fn read<'a>(input: &mut Cursor<'a>, marker: u8) -> Result<Cow<'a, str>> {
    Ok(match marker {
        0x20..=0x3F => system(input, marker)?.into(),
        0x40..=0x67 => {
            return Err(input.fault("a string is named by its place in a dictionary of the client"));
        }
        0x71 => base64(input, 1, false)?.into(),
        0x72 => base64(input, 2, false)?.into(),
        0x73 => base64(input, 1, true)?.into(),
        0x74 => base64(input, 2, true)?.into(),
        0x75 => guid(input.array()?, SMALL_HEX).into(),
        0x76 => guid(input.array()?, CAPITAL_HEX).into(),
        0x77 => format!("\"{}\"", guid(input.array()?, SMALL_HEX)).into(),
        0x78 => halves(input, SMALL_HEX)?.into(),
        0x79 => halves(input, CAPITAL_HEX)?.into(),
        0x7A => halves(input, DATE)?.into(),
        0x7B => offset(input, 4)?.into(),
        0x7C => offset(input, 5)?.into(),
        0x7D => offset(input, 6)?.into(),
        0x7E => ascii(input, 1)?.into(),
        0x7F => ascii(input, 2)?.into(),
        0x80..=0xBF => utf8(input, usize::from(marker - 0x80))?.into(),
        0xC0 => long_utf8(input, 1)?.into(),
        0xC1 => long_utf8(input, 2)?.into(),
        0xC2 => long_utf8(input, 4)?.into(),
        0xC3 => reference(input, 1)?,
        0xC4 => reference(input, 2)?,
        0xC5 => reference(input, 3)?,
        0xC6 => reference(input, 4)?,
        _ => return Err(input.unknown(marker)),
    })
}

/// The text of a GUID that is a value of its own: three numbers, which have
/// their low byte first, then eight bytes.
pub(super) fn guid_value(mut bytes: [u8; 16]) -> String {
    for number in [0..4, 4..6, 6..8] {
        bytes.get_mut(number).unwrap_or_default().reverse();
    }
    guid(bytes.map(|byte| byte.rotate_left(4)), SMALL_HEX)
}

fn system(input: &Cursor<'_>, marker: u8) -> Result<&'static str> {
    let index = usize::from(marker).checked_sub(0x20);
    let string = index.and_then(|index| SYSTEM_STRINGS.get(index));
    string.copied().ok_or_else(|| input.unknown(marker))
}

/// The byte for the `=` is their number, or the complement of the number that
/// was left out.
fn base64(input: &mut Cursor<'_>, width: usize, url: bool) -> Result<String> {
    let fours = input.unsigned(width)?;
    let (padding, written) = match input.byte()? {
        padding @ 0..=2 => (padding, true),
        complement @ 0xFD.. => (!complement, false),
        _ => return Err(input.fault("base64 ends with more than two '='")),
    };
    let Some(count) = (3 * fours).checked_sub(usize::from(padding)) else {
        return Err(input.fault("base64 ends before it begins"));
    };
    let engine = match (url, written) {
        (false, true) => STANDARD,
        (false, false) => STANDARD_NO_PAD,
        (true, true) => URL_SAFE,
        (true, false) => URL_SAFE_NO_PAD,
    };
    input.take(count).map(|bytes| engine.encode(bytes))
}

fn guid(bytes: [u8; 16], digits: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, digit) in spell(&bytes, 32, digits).enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    text
}

fn halves(input: &mut Cursor<'_>, characters: &[u8; 16]) -> Result<String> {
    let count = input.unsigned(1)?;
    let bytes = input.take(count.div_ceil(2))?;
    if count % 2 == 1 && bytes.last().is_some_and(|&byte| byte > 0x0F) {
        return Err(input.fault("a string of half bytes has half a byte too many"));
    }
    Ok(spell(bytes, count, characters).collect())
}

fn offset(input: &mut Cursor<'_>, bits: usize) -> Result<String> {
    let count = input.unsigned(1)?;
    let base = input.byte()?;
    packed(input, bits, count, base)
}

fn ascii(input: &mut Cursor<'_>, width: usize) -> Result<String> {
    let count = input.unsigned(width)?;
    packed(input, 7, count, 0)
}

/// Bits that are left over at the end may be anything: clients leave there
/// what subtracting the base from nothing has given.
fn packed(input: &mut Cursor<'_>, bits: usize, count: usize, base: u8) -> Result<String> {
    let bytes = input.take((count * bits).div_ceil(8))?;
    unpack(bytes, bits, count)
        .map(|number| base.checked_add(number).filter(u8::is_ascii).map(char::from))
        .collect::<Option<String>>()
        .ok_or_else(|| input.fault("a packed string has a character that is not ASCII"))
}

fn utf8<'a>(input: &mut Cursor<'a>, length: usize) -> Result<&'a str> {
    let bytes = input.take(length)?;
    std::str::from_utf8(bytes).map_err(|_| input.fault("a string is not UTF-8"))
}

fn long_utf8<'a>(input: &mut Cursor<'a>, width: usize) -> Result<&'a str> {
    let length = input.unsigned(width)?;
    utf8(input, length)
}

fn reference<'a>(input: &mut Cursor<'a>, width: usize) -> Result<Cow<'a, str>> {
    let target = input.unsigned(width)?;
    let mut earlier = input.back_at(target);
    match earlier.byte() {
        Ok(marker @ 0x20..=0xC2) if target > 0 => read(&mut earlier, marker),
        _ => Err(input.fault("a reference does not lead to an earlier string")),
    }
}

/// The characters that the first `count` halves of bytes stand for.
fn spell(bytes: &[u8], count: usize, characters: &[u8; 16]) -> impl Iterator<Item = char> {
    let character = |half| characters.get(usize::from(half)).copied().map(char::from);
    unpack(bytes, 4, count).filter_map(character)
}

/// The first `count` numbers of `bits` bits, the lowest bits first.
fn unpack(bytes: &[u8], bits: usize, count: usize) -> impl Iterator<Item = u8> {
    let byte = |index: usize| bytes.get(index).copied().unwrap_or(0);
    (0..count).map(move |index| {
        let (at, shift) = (index * bits / 8, index * bits % 8);
        let two = u16::from_le_bytes([byte(at), byte(at + 1)]);
        let [low, _] = (two >> shift).to_le_bytes();
        low & ((1 << bits) - 1)
    })
}
