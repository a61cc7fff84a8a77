//! `HybridRow`: the binary rows in which .NET sends batches, and reads what they answer.
//!
//! ```text
//! body      segment, then a record and its row for each row
//! segment   81 schema:4 mask:1 length:4 ...   as long as it says; there may be more of them
//! record    81 schema:4 length:4 crc32:4      of the row that follows
//! row       81 schema:4 mask:1 fixed variable sparse
//! ```
//!
//! Numbers are little-endian. A varuint has seven bits in a byte, the low ones first; the
//! top bit says that more follow. Fields are counted from 1 in the order of the layout:
//!
//! | storage  | which           | written as                                             |
//! |----------|-----------------|--------------------------------------------------------|
//! | fixed    | int32           | 4 bytes, also where it is absent; a bit of the mask    |
//! | variable | text and bytes  | a varuint of the length, the bytes; a bit of the mask  |
//! | sparse   | any type        | code of the type, varuint of the field, value; in any  |
//! |          |                 | order, to the end of the row; the last of a field counts |
//!
//! A sparse field that the layout does not have is written with its name: the varuint is
//! then the number of fields, and one, and the length of the name. It is read past. So is
//! 0, which is the empty name.
//!
//! | code    | type                   | bytes  | code    | type               | bytes       |
//! |---------|------------------------|--------|---------|--------------------|-------------|
//! | 1, 2, 3 | null, false, true      | none   | 16      | float64            | 8           |
//! | 5, 9    | integers of a byte     | 1      | 17, 22  | decimal, float128  | 16          |
//! | 6, 10   | of two                 | 2      | 18, 23  | times              | 8           |
//! | 7, 11   | int32, uint32          | 4      | 19      | GUID               | 16          |
//! | 8, 12   | integers of eight      | 8      | 20, 21  | text, bytes        | length, all |
//! | 13, 14  | varint, varuint        | varies | 24      | object id          | 12          |
//! | 15      | float32                | 4      |         |                    |             |
//!
//! The rest are scopes, which nest. Batches have none.
//!
//! It is open to tests, which speak as .NET does.

mod cursor;

use dayfly_model::{Error, Result};

use self::cursor::{RowCursor, crc32};

/// How a row begins, and with it a body.
pub const VERSION: u8 = 0x81;

const SEGMENT: u32 = 2_147_473_648;
const RECORD: u32 = 2_147_473_649;

/// The bytes of the segment that .NET writes, and of any one up to its length.
const SEGMENT_BYTES: i32 = 10;

/// The fields of a schema: first the fixed ones, then the variable ones, then the sparse
/// ones. The mask has room for eight of the first two.
#[derive(Debug)]
pub struct RowLayout {
    schema: u32,
    columns: &'static [(&'static str, Storage)],
}

/// How a field is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    Fixed,
    Text,
    Binary,
    Sparse(Code),
}

/// The types of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Bool,
    Int,
    Uint,
    Float,
    Text,
    Binary,
}

/// An operation of a batch.
pub static OPERATION: RowLayout = RowLayout {
    schema: 2_145_473_648,
    columns: &[
        ("operationType", Storage::Fixed),
        ("resourceType", Storage::Fixed),
        ("partitionKey", Storage::Text),
        ("effectivePartitionKey", Storage::Binary),
        ("id", Storage::Text),
        ("binaryId", Storage::Binary),
        ("resourceBody", Storage::Binary),
        ("indexingDirective", Storage::Sparse(Code::Text)),
        ("ifMatch", Storage::Sparse(Code::Text)),
        ("ifNoneMatch", Storage::Sparse(Code::Text)),
        ("timeToLiveInSeconds", Storage::Sparse(Code::Int)),
        ("minimalReturnPreference", Storage::Sparse(Code::Bool)),
    ],
};

/// What an operation answers.
pub static RESULT: RowLayout = RowLayout {
    schema: 2_145_473_649,
    columns: &[
        ("statusCode", Storage::Fixed),
        ("subStatusCode", Storage::Fixed),
        ("eTag", Storage::Text),
        ("resourceBody", Storage::Binary),
        ("retryAfterMilliseconds", Storage::Sparse(Code::Uint)),
        ("requestCharge", Storage::Sparse(Code::Float)),
    ],
};

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowValue<'a> {
    /// As good as no value.
    Null,
    /// True or false.
    Bool(bool),
    /// 32 bits, with a sign.
    Int(i32),
    /// 32 bits, without.
    Uint(u32),
    /// A double.
    Float(f64),
    /// UTF-8.
    Text(&'a str),
    /// Bytes.
    Binary(&'a [u8]),
}

/// A row: what each field of its layout is, if it is there.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    layout: &'static RowLayout,
    values: Vec<Option<RowValue<'a>>>,
}

/// The rows of a body, each in its bytes.
pub fn records(body: &[u8]) -> Result<Vec<&[u8]>> {
    let mut cursor = RowCursor { left: body };
    let mut rows: Option<Vec<&[u8]>> = None;
    while !cursor.is_at_end() {
        match (cursor.schema()?, &mut rows) {
            (SEGMENT, _) => {
                cursor.skip_segment()?;
                rows.get_or_insert_default();
            }
            (RECORD, Some(rows)) => rows.push(cursor.record()?),
            (RECORD, None) => return Err(damaged("it does not begin with a segment")),
            _ => return Err(damaged("there is something else than a segment or a record")),
        }
    }
    rows.ok_or_else(|| damaged("there is nothing in it"))
}

/// A body with these rows.
pub fn body<'a>(rows: impl IntoIterator<Item = Row<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    begin(&mut out, SEGMENT);
    out.push(1);
    out.extend(SEGMENT_BYTES.to_le_bytes());
    let mut bytes = Vec::new();
    for row in rows {
        bytes.clear();
        row.write(&mut bytes);
        begin(&mut out, RECORD);
        // An answer has a limit that is far below this one.
        out.extend(i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_le_bytes());
        out.extend(crc32(&bytes).to_le_bytes());
        out.extend_from_slice(&bytes);
    }
    out
}

fn begin(out: &mut Vec<u8>, schema: u32) {
    out.push(VERSION);
    out.extend(schema.to_le_bytes());
}

fn damaged(why: &str) -> Error {
    Error::bad_request(format!("The binary rows (HybridRow) of the batch cannot be read: {why}."))
}

impl RowLayout {
    /// The names of its fields.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|(name, _)| *name)
    }

    /// Which column a name is.
    fn named(&self, name: &str) -> Option<usize> {
        self.names().position(|known| known == name)
    }
}

impl<'a> Row<'a> {
    /// A row without fields.
    pub fn new(layout: &'static RowLayout) -> Row<'a> {
        Row { layout, values: vec![None; layout.columns.len()] }
    }

    /// The same with this field, if there is a value.
    pub fn with(mut self, name: &str, value: Option<RowValue<'a>>) -> Row<'a> {
        let place = self.layout.named(name);
        if let Some(slot) = place.and_then(|place| self.values.get_mut(place)) {
            *slot = value;
        }
        self
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<RowValue<'a>> {
        *self.values.get(self.layout.named(name)?)?
    }

    /// The value of a field of numbers.
    pub fn int(&self, name: &str) -> Option<i32> {
        if let Some(RowValue::Int(number)) = self.get(name) { Some(number) } else { None }
    }

    /// The value of a field of texts.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        if let Some(RowValue::Text(text)) = self.get(name) { Some(text) } else { None }
    }

    /// The value of a field of bytes.
    pub fn binary(&self, name: &str) -> Option<&'a [u8]> {
        if let Some(RowValue::Binary(bytes)) = self.get(name) { Some(bytes) } else { None }
    }

    /// The value of a field that is true or false.
    pub fn flag(&self, name: &str) -> Option<bool> {
        if let Some(RowValue::Bool(flag)) = self.get(name) { Some(flag) } else { None }
    }

    /// Reads a row that must have this layout.
    pub fn read(layout: &'static RowLayout, bytes: &'a [u8]) -> Result<Row<'a>> {
        let mut cursor = RowCursor { left: bytes };
        if cursor.schema()? != layout.schema {
            return Err(damaged("a row has a schema that is not known"));
        }
        let mut row = Row::new(layout);
        let mut mask = cursor.byte()?;
        for ((_, storage), value) in layout.columns.iter().zip(&mut row.values) {
            let is_there = mask & 1 == 1;
            mask >>= 1;
            *value = match storage {
                // Where it is absent, its room is there.
                Storage::Fixed => {
                    let number = cursor.int()?;
                    is_there.then_some(RowValue::Int(number))
                }
                Storage::Text if is_there => Some(RowValue::Text(cursor.text()?)),
                Storage::Binary if is_there => Some(RowValue::Binary(cursor.counted()?)),
                _ => None,
            };
        }
        while !cursor.is_at_end() {
            row.read_sparse(&mut cursor)?;
        }
        Ok(row)
    }

    fn read_sparse(&mut self, cursor: &mut RowCursor<'a>) -> Result<()> {
        let code = cursor.byte()?;
        let place = cursor.path(self.layout)?;
        let value = cursor.value(code)?;
        let Some(place) = place else { return Ok(()) };
        let (Some((name, storage)), Some(slot)) =
            (self.layout.columns.get(place), self.values.get_mut(place))
        else {
            return Ok(());
        };
        *slot = match (storage, value) {
            (Storage::Sparse(_), Some(RowValue::Null)) => None,
            (Storage::Sparse(code), Some(value)) if value.code() == Some(*code) => Some(value),
            _ => return Err(damaged(&format!("the field '{name}' has another type"))),
        };
        Ok(())
    }

    /// Writes the row.
    pub fn write(&self, out: &mut Vec<u8>) {
        begin(out, self.layout.schema);
        let columns = || self.layout.columns.iter().zip(&self.values);
        let in_mask = columns().filter(|((_, storage), _)| !matches!(storage, Storage::Sparse(_)));
        out.push(in_mask.rev().fold(0, |mask, (_, value)| mask << 1 | u8::from(value.is_some())));
        for (token, ((_, storage), value)) in (1..).zip(columns()) {
            match (storage, value) {
                (Storage::Fixed, Some(value)) => value.write(out),
                (Storage::Fixed, None) => RowValue::Int(0).write(out),
                (Storage::Text | Storage::Binary, Some(value)) => value.write(out),
                (Storage::Sparse(_), Some(value)) => {
                    out.push(value.byte());
                    write_varuint(out, token);
                    value.write(out);
                }
                (_, None) => {}
            }
        }
    }
}

impl RowValue<'_> {
    /// Its type; null is of all of them.
    fn code(self) -> Option<Code> {
        match self {
            RowValue::Null => None,
            RowValue::Bool(_) => Some(Code::Bool),
            RowValue::Int(_) => Some(Code::Int),
            RowValue::Uint(_) => Some(Code::Uint),
            RowValue::Float(_) => Some(Code::Float),
            RowValue::Text(_) => Some(Code::Text),
            RowValue::Binary(_) => Some(Code::Binary),
        }
    }

    /// The code that stands before it in a sparse field.
    fn byte(self) -> u8 {
        match self {
            RowValue::Null => 1,
            RowValue::Bool(false) => 2,
            RowValue::Bool(true) => 3,
            RowValue::Int(_) => 7,
            RowValue::Uint(_) => 11,
            RowValue::Float(_) => 16,
            RowValue::Text(_) => 20,
            RowValue::Binary(_) => 21,
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            RowValue::Null | RowValue::Bool(_) => {}
            RowValue::Int(number) => out.extend(number.to_le_bytes()),
            RowValue::Uint(number) => out.extend(number.to_le_bytes()),
            RowValue::Float(number) => out.extend(number.to_le_bytes()),
            RowValue::Text(text) => write_counted(out, text.as_bytes()),
            RowValue::Binary(bytes) => write_counted(out, bytes),
        }
    }
}

fn write_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    write_varuint(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn write_varuint(out: &mut Vec<u8>, mut number: usize) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests;
