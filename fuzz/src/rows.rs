//! Binary rows: what is read is written so that it is read again.

use dayfly_api::hybrid_row::{self, OPERATION, RESULT, Row, RowLayout};

use crate::{hex, is_told};

pub(crate) fn run(bytes: &[u8]) {
    body(bytes);
    // A row by itself, behind a CRC that is right: what is inside is looked at.
    body(&alone(bytes));
}

fn body(bytes: &[u8]) {
    let rows = match hybrid_row::records(bytes) {
        Ok(rows) => rows,
        Err(error) => return is_told(&error),
    };
    assert!(rows.iter().map(|row| row.len()).sum::<usize>() <= bytes.len());
    for layout in [&OPERATION, &RESULT] {
        same_again(layout, &rows);
    }
}

fn same_again(layout: &'static RowLayout, rows: &[&[u8]]) {
    let read = rows.iter().map(|row| Row::read(layout, row));
    let read: Vec<Row<'_>> = match read.collect::<Result<_, _>>() {
        Ok(read) => read,
        Err(error) => return is_told(&error),
    };
    let written = hybrid_row::body(read.clone());
    let again = hybrid_row::records(&written).expect("what was written");
    assert_eq!(again.len(), read.len());
    for (row, bytes) in read.iter().zip(again) {
        let again = Row::read(layout, bytes).expect("what was written");
        for name in layout.names() {
            // As text: what is not a number is not like itself.
            assert_eq!(format!("{:?}", again.get(name)), format!("{:?}", row.get(name)), "{name}");
        }
    }
}

/// A body with one row.
pub(crate) fn alone(row: &[u8]) -> Vec<u8> {
    let mut body = hex("81 F0D8FF7F 01 0A000000 81 F1D8FF7F");
    body.extend(u32::try_from(row.len()).unwrap_or(u32::MAX).to_le_bytes());
    body.extend(crc32(row).to_le_bytes());
    body.extend(row);
    body
}

/// That of ISO 3309, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 }
        })
    })
}

/// A create, a read, a replace with options, and rows with fields that nobody knows.
pub(crate) const ROWS: [&str; 5] = [
    "817054E17F430000000002000000137B226964223A2231222C22706B223A2261227D",
    "817054E17F1302000000020000000131",
    "817054E17F570500000002000000055B2261225D01311B7B226964223A2231222C22706B22\
     3A2261222C2274746C223A357D140903226522030C",
    "817054E17F1302000000020000000131 030C 140A016E 14090161 14090162 0110616263 05106162637F \
     0E10616263FFFFFFFFFFFFFFFFFF01 1510616263020102 1810616263000102030405060708090A0B",
    "817154E17F0FC900000000000000032265220A7B226964223A2231227D1006295C8FC2F5281940",
];

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let rows: Vec<Vec<u8>> = ROWS.iter().map(|digits| hex(digits)).collect();
    let with_comment = hex("81F0D8FF7F010F0000001402026869");
    let segment = hex("81F0D8FF7F010A000000");
    let mut both = alone(&rows[0]);
    both.extend(&alone(&rows[1])[segment.len()..]);
    let of_comment = [with_comment, alone(&rows[2])].concat();
    let bodies: Vec<Vec<u8>> = rows.iter().map(|row| alone(row)).collect();
    [rows, bodies, vec![segment, both, of_comment]].concat()
}
