//! Bytes of rows, read from the front.

use std::sync::LazyLock;

use dayfly_model::Result;

use super::{RowLayout, RowValue, SEGMENT_BYTES, VERSION, damaged};

/// What is left of a body or a row.
pub(super) struct RowCursor<'a> {
    pub(super) left: &'a [u8],
}

impl<'a> RowCursor<'a> {
    pub(super) fn is_at_end(&self) -> bool {
        self.left.is_empty()
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, left) =
            self.left.split_at_checked(count).ok_or_else(|| damaged("it is cut off"))?;
        self.left = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, left) =
            self.left.split_first_chunk().ok_or_else(|| damaged("it is cut off"))?;
        self.left = left;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn int(&mut self) -> Result<i32> {
        self.array().map(i32::from_le_bytes)
    }

    /// A number of bytes, which may have been negative.
    fn length(&mut self) -> Result<usize> {
        usize::try_from(self.int()?).map_err(|_| damaged("a length is negative"))
    }

    fn varuint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damaged("a number has more than 64 bits"))
    }

    /// Bytes after their number.
    pub(super) fn counted(&mut self) -> Result<&'a [u8]> {
        let count = self.varuint()?;
        self.take(usize::try_from(count).unwrap_or(usize::MAX))
    }

    pub(super) fn text(&mut self) -> Result<&'a str> {
        str::from_utf8(self.counted()?).map_err(|_| damaged("a text is not UTF-8"))
    }

    /// The beginning of whatever comes: the number of its schema.
    pub(super) fn schema(&mut self) -> Result<u32> {
        if self.byte()? != VERSION {
            return Err(damaged("a row does not begin with 0x81"));
        }
        self.array().map(u32::from_le_bytes)
    }

    /// Passes a segment whose beginning was read.
    pub(super) fn skip_segment(&mut self) -> Result<()> {
        if self.byte()? & 1 == 0 {
            return Err(damaged("a segment does not tell its length"));
        }
        let rest = self.length()?.checked_sub(SEGMENT_BYTES.unsigned_abs() as usize);
        self.take(rest.ok_or_else(|| damaged("a segment is shorter than itself"))?).map(drop)
    }

    /// The row of a record whose beginning was read.
    pub(super) fn record(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        let sum = self.array().map(u32::from_le_bytes)?;
        let row = self.take(length)?;
        if crc32(row) == sum { Ok(row) } else { Err(damaged("a row has another CRC")) }
    }

    /// Which column a sparse field is; none if the layout does not have it.
    pub(super) fn path(&mut self, layout: &RowLayout) -> Result<Option<usize>> {
        let token = usize::try_from(self.varuint()?).unwrap_or(usize::MAX);
        let Some(place) = token.checked_sub(1) else { return Ok(None) };
        match place.checked_sub(layout.columns.len()) {
            None => Ok(Some(place)),
            Some(length) => {
                let name = self.take(length)?;
                let name = str::from_utf8(name).map_err(|_| damaged("a name is not UTF-8"))?;
                Ok(layout.named(name))
            }
        }
    }

    /// The value of a sparse field; none if no field of ours has its type.
    pub(super) fn value(&mut self, code: u8) -> Result<Option<RowValue<'a>>> {
        let others = match code {
            1 => return Ok(Some(RowValue::Null)),
            2 | 3 => return Ok(Some(RowValue::Bool(code == 3))),
            7 => return self.int().map(RowValue::Int).map(Some),
            11 => return Ok(Some(RowValue::Uint(u32::from_le_bytes(self.array()?)))),
            16 => return Ok(Some(RowValue::Float(f64::from_le_bytes(self.array()?)))),
            20 => return self.text().map(RowValue::Text).map(Some),
            21 => return self.counted().map(RowValue::Binary).map(Some),
            13 | 14 => return self.varuint().map(|_| None),
            5 | 9 => 1,
            6 | 10 => 2,
            15 => 4,
            8 | 12 | 18 | 23 => 8,
            24 => 12,
            17 | 19 | 22 => 16,
            _ => return Err(damaged("a field is nested, or of a type that is not known")),
        };
        self.take(others).map(|_| None)
    }
}

/// The CRC of ISO 3309, as zlib has it.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    static TABLE: LazyLock<[u32; 256]> = LazyLock::new(|| {
        let mut table = [0; 256];
        for (byte, entry) in (0..).zip(&mut table) {
            let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            *entry = (0..8).fold(byte, step);
        }
        table
    });
    let table = &*TABLE;
    !bytes.iter().fold(!0, |crc: u32, byte| {
        let [low, ..] = crc.to_le_bytes();
        crc >> 8 ^ table.get(usize::from(low ^ byte)).copied().unwrap_or_default()
    })
}
