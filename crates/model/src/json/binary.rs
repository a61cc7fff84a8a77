//! Binary JSON, the form in which some SDKs send a body, as JSON text.
//!
//! A body that begins with the byte 0x80 is binary; no text begins so. Each
//! value begins with a marker, and the marker says what follows it. Numbers
//! are little-endian.
//!
//! | marker     | value                                                       |
//! |------------|-------------------------------------------------------------|
//! | `00`..`1F` | the integer that the marker is                              |
//! | `20`..`C6` | a string, see `strings.rs`                                  |
//! | `C7`       | unsigned integer of 8 bytes                                 |
//! | `C8`       | unsigned integer of 1 byte                                  |
//! | `C9`..`CB` | integers of 2, 4, 8 bytes                                   |
//! | `CC`       | double                                                      |
//! | `CD` `CE`  | floating point of 4, 8 bytes                                |
//! | `D0`..`D2` | null, false, true                                           |
//! | `D3`       | a GUID                                                      |
//! | `D7`       | unsigned integer of 1 byte                                  |
//! | `D8`..`DB` | integers of 1, 2, 4, 8 bytes                                |
//! | `DC`       | unsigned integer of 4 bytes                                 |
//! | `DD`..`DF` | bytes: JSON has no such value, refused                      |
//! | `E0` `E1`  | array of nothing, of the one value that follows             |
//! | `E2`..`E4` | array; its length in bytes, in 1, 2, 4 bytes; the values    |
//! | `E5`..`E7` | the same, with the number of values after the length        |
//! | `E8`..`EF` | object, as the arrays; a string before each value           |
//! | `F0` `F1`  | array of numbers: their marker, their number in 1, 2 bytes, |
//! |            | the numbers without markers                                 |
//! | `F2` `F3`  | array of arrays of numbers: marker `F0`, `F1`, marker of    |
//! |            | the numbers, how many in each array, how many arrays        |
//!
//! The rest is refused. The text goes on to the reading of text, so an item is
//! the same item in both forms.

mod cursor;
mod strings;

use std::io;

use serde::Serialize;

use self::cursor::Cursor;
use super::{DEPTH_MAX, whole};
use crate::error::{Error, ErrorKind, Result};

/// The text of a body may have so many bytes. A few bytes can stand for many,
/// because a string can refer to an earlier one.
const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The first byte of a binary body.
const FIRST_BYTE: u8 = 0x80;

/// Whether a body is binary.
pub fn is_binary(body: &[u8]) -> bool {
    body.first() == Some(&FIRST_BYTE)
}

/// The JSON text that a binary body stands for.
pub fn to_text(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut decoder = Decoder { input: Cursor::new(bytes), out: Text(Vec::new()) };
    if decoder.input.byte()? != FIRST_BYTE {
        return Err(decoder.input.fault("the first byte is not 0x80"));
    }
    decoder.value(0)?;
    if !decoder.input.is_at_end() {
        return Err(decoder.input.fault("there are bytes after the value"));
    }
    Ok(decoder.out.0)
}

/// Writes values as text while it reads them.
struct Decoder<'a> {
    input: Cursor<'a>,
    out: Text,
}

impl Decoder<'_> {
    /// Writes the next value, which is inside `depth` arrays and objects.
    fn value(&mut self, depth: usize) -> Result<()> {
        match self.input.byte()? {
            integer @ 0x00..=0x1F => self.out.json(integer),
            marker @ 0x20..=0xC6 => self.string(marker),
            0xD0 => self.out.raw("null"),
            0xD1 => self.out.raw("false"),
            0xD2 => self.out.raw("true"),
            0xD3 => self.guid(),
            marker @ (0xC7..=0xCE | 0xD7..=0xDC) => self.number(marker),
            0xDD..=0xDF => Err(self.input.fault("JSON has no value that is raw bytes")),
            marker @ 0xE0..=0xE7 => self.array(marker, depth),
            marker @ 0xE8..=0xEF => self.object(marker, depth),
            0xF0 => self.numbers(1, depth),
            0xF1 => self.numbers(2, depth),
            0xF2 => self.arrays_of_numbers(1, depth),
            0xF3 => self.arrays_of_numbers(2, depth),
            marker => Err(self.input.unknown(marker)),
        }
    }

    fn string(&mut self, marker: u8) -> Result<()> {
        let string = strings::read(&mut self.input, marker)?;
        self.out.json(&*string)
    }

    fn guid(&mut self) -> Result<()> {
        let guid = strings::guid_value(self.input.array()?);
        self.out.json(guid)
    }

    fn number(&mut self, marker: u8) -> Result<()> {
        match marker {
            0xC7 => self.out.json(u64::from_le_bytes(self.input.array()?)),
            0xC8 | 0xD7 => self.out.json(self.input.byte()?),
            0xC9 | 0xD9 => self.out.json(i16::from_le_bytes(self.input.array()?)),
            0xCA | 0xDA => self.out.json(i32::from_le_bytes(self.input.array()?)),
            0xCB | 0xDB => self.out.json(i64::from_le_bytes(self.input.array()?)),
            0xCC | 0xCE => {
                let number = f64::from_le_bytes(self.input.array()?);
                self.double(number)
            }
            0xCD => {
                let number = f32::from_le_bytes(self.input.array()?);
                self.double(f64::from(number))
            }
            0xD8 => self.out.json(i8::from_le_bytes(self.input.array()?)),
            0xDC => self.out.json(u32::from_le_bytes(self.input.array()?)),
            _ => Err(self.input.unknown(marker)),
        }
    }

    fn double(&mut self, number: f64) -> Result<()> {
        if !number.is_finite() {
            return Err(self.input.fault("JSON has no number that is infinite or not a number"));
        }
        match whole(number) {
            Some(integer) => self.out.json(integer),
            None => self.out.json(number),
        }
    }

    fn array(&mut self, marker: u8, depth: usize) -> Result<()> {
        let depth = self.descend(depth)?;
        self.out.raw("[")?;
        self.members(marker, |decoder| decoder.value(depth))?;
        self.out.raw("]")
    }

    fn object(&mut self, marker: u8, depth: usize) -> Result<()> {
        let depth = self.descend(depth)?;
        self.out.raw("{")?;
        self.members(marker, |decoder| {
            decoder.name()?;
            decoder.out.raw(":")?;
            decoder.value(depth)
        })?;
        self.out.raw("}")
    }

    fn name(&mut self) -> Result<()> {
        match self.input.byte()? {
            marker @ 0x20..=0xC6 => self.string(marker),
            _ => Err(self.input.fault("the name of a property is not a string")),
        }
    }

    /// Writes the members of an array or object, each by `member`. The low bits
    /// of the marker say how many there are; arrays and objects say it alike.
    fn members(&mut self, marker: u8, member: impl Fn(&mut Self) -> Result<()>) -> Result<()> {
        match marker & 0x07 {
            0 => Ok(()),
            1 => member(self),
            2 => self.members_within(1, false, member),
            3 => self.members_within(2, false, member),
            4 => self.members_within(4, false, member),
            5 => self.members_within(1, true, member),
            6 => self.members_within(2, true, member),
            _ => self.members_within(4, true, member),
        }
    }

    fn members_within(
        &mut self,
        width: usize,
        counted: bool,
        member: impl Fn(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let length = self.input.unsigned(width)?;
        let count = if counted { Some(self.input.unsigned(width)?) } else { None };
        let outer_end = self.input.end_after(length)?;
        let mut found = 0;
        while !self.input.is_at_end() {
            if found > 0 {
                self.out.raw(",")?;
            }
            member(self)?;
            found += 1;
        }
        self.input.set_end(outer_end);
        match count {
            Some(count) if count != found => {
                Err(self.input.fault(&format!("{found} members were found instead of {count}")))
            }
            _ => Ok(()),
        }
    }

    fn numbers(&mut self, width: usize, depth: usize) -> Result<()> {
        self.descend(depth)?;
        let marker = self.item_marker()?;
        let count = self.input.unsigned(width)?;
        self.bare_numbers(marker, count)
    }

    fn arrays_of_numbers(&mut self, width: usize, depth: usize) -> Result<()> {
        let depth = self.descend(depth)?;
        self.descend(depth)?;
        let inner = self.input.byte()?;
        if !matches!((inner, width), (0xF0, 1) | (0xF1, 2)) {
            return Err(self.input.unknown(inner));
        }
        let marker = self.item_marker()?;
        let count = self.input.unsigned(width)?;
        let arrays = self.input.unsigned(width)?;
        self.list(arrays, |decoder| decoder.bare_numbers(marker, count))
    }

    fn item_marker(&mut self) -> Result<u8> {
        match self.input.byte()? {
            marker @ (0xCD | 0xCE | 0xD7..=0xDC) => Ok(marker),
            marker => Err(self.input.unknown(marker)),
        }
    }

    fn bare_numbers(&mut self, marker: u8, count: usize) -> Result<()> {
        self.list(count, |decoder| decoder.number(marker))
    }

    fn list(&mut self, count: usize, item: impl Fn(&mut Self) -> Result<()>) -> Result<()> {
        self.out.raw("[")?;
        for index in 0..count {
            if index > 0 {
                self.out.raw(",")?;
            }
            item(self)?;
        }
        self.out.raw("]")
    }

    /// One level down.
    fn descend(&self, depth: usize) -> Result<usize> {
        if depth >= DEPTH_MAX {
            return Err(self.input.fault(&format!("nested deeper than {DEPTH_MAX} levels")));
        }
        Ok(depth + 1)
    }
}

/// JSON text that does not grow past its limit.
struct Text(Vec<u8>);

impl Text {
    fn raw(&mut self, text: &str) -> Result<()> {
        io::Write::write_all(self, text.as_bytes()).map_err(|_| too_large())
    }

    /// Strings and finite numbers can always be written, if there is room.
    fn json(&mut self, value: impl Serialize) -> Result<()> {
        serde_json::to_writer(self, &value).map_err(|_| too_large())
    }
}

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > TEXT_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn too_large() -> Error {
    Error::new(
        ErrorKind::TooLarge,
        format!(
            "Request size is too large: its binary JSON stands for more than {TEXT_BYTES_MAX} \
             bytes of text."
        ),
    )
}

#[cfg(test)]
mod tests;
