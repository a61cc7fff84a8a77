//! Rows as .NET writes and reads them, byte for byte; and rows that are damaged.
//!
//! `PROPTEST_CASES=100000 cargo test --release -p dayfly-api hybrid_row` tries more of these.

use proptest::prelude::*;

use super::*;

const SEGMENT_ROW: &str = "81F0D8FF7F010A000000";

/// `{"id":"1","pk":"a"}` is created.
const CREATE: &str = "817054E17F430000000002000000137B226964223A2231222C22706B223A2261227D";
/// The item `1` is read.
const READ: &str = "817054E17F1302000000020000000131";
/// It is replaced under `["a"]`, if its etag is `"e"`; the answer leaves it out.
const REPLACE: &str = "817054E17F570500000002000000055B2261225D01311B7B226964223A2231222C22706B22\
                       3A2261222C2274746C223A357D140903226522030C";

fn hex(digits: &str) -> Vec<u8> {
    let digit = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.as_bytes().chunks(2).map(digit).collect()
}

fn row(layout: &'static RowLayout, digits: &str) -> Vec<(&'static str, String)> {
    let bytes = hex(digits);
    let row = Row::read(layout, &bytes).unwrap();
    let shown = |(name, _): &(&'static str, Storage)| {
        let value = match row.get(name)? {
            RowValue::Binary(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            value => format!("{value:?}"),
        };
        Some((*name, value))
    };
    layout.columns.iter().filter_map(shown).collect()
}

fn refusal(bytes: &[u8]) -> String {
    let rows = records(bytes).and_then(|rows| {
        rows.into_iter().map(|row| Row::read(&OPERATION, row)).collect::<Result<Vec<_>>>()
    });
    rows.unwrap_err().message
}

/// One row in a body of its own.
fn alone(row: &[u8]) -> Vec<u8> {
    let mut body = hex(SEGMENT_ROW);
    begin(&mut body, RECORD);
    body.extend(u32::try_from(row.len()).unwrap().to_le_bytes());
    body.extend(crc32(row).to_le_bytes());
    body.extend(row);
    body
}

#[test]
fn the_crc_is_that_of_iso_3309() {
    assert_eq!(crc32(b""), 0);
    assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    assert_eq!(crc32(b"The quick brown fox jumps over the lazy dog"), 0x414F_A339);
}

#[test]
fn the_mask_has_room_for_what_is_not_sparse() {
    for layout in [&OPERATION, &RESULT] {
        let is_sparse = |storage: &Storage| matches!(storage, Storage::Sparse(_));
        let masked = layout.columns.iter().filter(|(_, storage)| !is_sparse(storage)).count();
        assert!(masked <= 8);
        assert!(layout.columns[masked..].iter().all(|(_, storage)| is_sparse(storage)));
    }
}

#[test]
fn operations_are_read_as_net_writes_them() {
    let int = |number: i32| format!("Int({number})");
    assert_eq!(
        row(&OPERATION, CREATE),
        [
            ("operationType", int(0)),
            ("resourceType", int(2)),
            ("resourceBody", r#"{"id":"1","pk":"a"}"#.to_owned()),
        ]
    );
    assert_eq!(
        row(&OPERATION, READ),
        [("operationType", int(2)), ("resourceType", int(2)), ("id", r#"Text("1")"#.to_owned()),]
    );
    assert_eq!(
        row(&OPERATION, REPLACE),
        [
            ("operationType", int(5)),
            ("resourceType", int(2)),
            ("partitionKey", r#"Text("[\"a\"]")"#.to_owned()),
            ("id", r#"Text("1")"#.to_owned()),
            ("resourceBody", r#"{"id":"1","pk":"a","ttl":5}"#.to_owned()),
            ("ifMatch", r#"Text("\"e\"")"#.to_owned()),
            ("minimalReturnPreference", "Bool(true)".to_owned()),
        ]
    );
}

#[test]
fn a_body_has_a_record_for_each_row() {
    let rows = [("2200000050EF47AA", CREATE), ("10000000D473E835", READ)];
    let rows = [rows[0], rows[1], ("3A000000415CC2A9", REPLACE)];
    let records_of = rows.map(|(record, row)| format!("81F1D8FF7F{record}{row}")).concat();
    let bytes = hex(&format!("{SEGMENT_ROW}{records_of}"));
    let read = records(&bytes).unwrap();
    assert_eq!(read, rows.map(|(_, row)| hex(row)));
    let again = read.iter().map(|row| Row::read(&OPERATION, row).unwrap());
    assert_eq!(body(again), bytes);
    assert_eq!(records(&hex(SEGMENT_ROW)).unwrap(), Vec::<&[u8]>::new());
}

/// Longer than it must be, and again before the second row.
#[test]
fn segments_are_as_long_as_they_say() {
    let with_comment = "81F0D8FF7F010F0000001402026869";
    let read = format!("81F1D8FF7F10000000D473E835{READ}");
    let bytes = hex(&format!("{with_comment}{read}{with_comment}{with_comment}{read}"));
    assert_eq!(records(&bytes).unwrap(), [hex(READ), hex(READ)]);
}

#[test]
fn results_are_written_as_net_reads_them() {
    let status = |status, substatus| {
        Row::new(&RESULT)
            .with("statusCode", Some(RowValue::Int(status)))
            .with("subStatusCode", Some(RowValue::Int(substatus)))
    };
    let written = body([
        status(201, 0)
            .with("eTag", Some(RowValue::Text("\"e\"")))
            .with("resourceBody", Some(RowValue::Binary(br#"{"id":"1"}"#)))
            .with("requestCharge", Some(RowValue::Float(6.29))),
        status(424, 0).with("requestCharge", Some(RowValue::Float(0.0))),
        status(429, 3200)
            .with("retryAfterMilliseconds", Some(RowValue::Uint(5)))
            .with("requestCharge", Some(RowValue::Float(0.38))),
    ]);
    let expected = [
        SEGMENT_ROW,
        "81F1D8FF7F27000000FCBF0C27817154E17F0FC900000000000000032265220A7B226964223A2231227D\
         1006295C8FC2F5281940",
        "81F1D8FF7F18000000E3C14E24817154E17F03A80100000000000010060000000000000000",
        "81F1D8FF7F1E00000051C3A178817154E17F03AD010000800C00000B0505000000100652B81E85EB51D83F",
    ];
    assert_eq!(written, hex(&expected.concat()));
    // The smallest that .NET takes.
    let least = body([Row::new(&RESULT).with("statusCode", Some(RowValue::Int(201)))]);
    let expected = format!("{SEGMENT_ROW}81F1D8FF7F0E0000000C59B304817154E17F01C900000000000000");
    assert_eq!(least, hex(&expected));
}

/// In another order, twice, with names that nobody knows and of every type.
#[test]
fn sparse_fields_come_as_they_like() {
    let plain = "817054E17F1302000000020000000131";
    let others = [
        "0110616263", // null, of the name `abc`
        "0210616263",
        "05106162637F",
        "0610616263FFFF",
        "0710616263FFFFFFFF",
        "08106162630102030405060708",
        "0D10616263FF01",
        "0E10616263FFFFFFFFFFFFFFFFFF01",
        "0F1061626300000000",
        "1110616263000102030405060708090A0B0C0D0E0F",
        "12106162630001020304050607",
        "1310616263000102030405060708090A0B0C0D0E0F",
        "1510616263020102",
        "1610616263000102030405060708090A0B0C0D0E0F",
        "17106162630001020304050607",
        "1810616263000102030405060708090A0B",
        "1400016B", // the empty name
    ];
    // A flag, one etag, another that comes three times, by its name in the end; then a flag
    // once more, and nothing for the one etag.
    let before = "030C140A016E1409016114090162";
    let after = "141469664D617463680163020C010A";
    let sparse = format!("{before}{}{after}", others.concat());
    let read = row(&OPERATION, &format!("{plain}{sparse}"));
    assert_eq!(
        read[3..],
        [
            ("ifMatch", r#"Text("c")"#.to_owned()),
            ("minimalReturnPreference", "Bool(false)".to_owned())
        ]
    );
}

#[test]
fn what_is_damaged_is_refused() {
    let fine = alone(&hex(READ));
    let mut other_crc = fine.clone();
    *other_crc.last_mut().unwrap() ^= 1;
    for end in 1..fine.len() {
        if end != 10 {
            let why = refusal(&fine[..end]);
            assert!(why.ends_with("cannot be read: it is cut off."), "{end}: {why}");
        }
    }
    let in_row = |digits: &str| alone(&hex(digits));
    let after_read = |digits: &str| in_row(&format!("{READ}{digits}"));
    for (bytes, why) in [
        (hex(""), "there is nothing in it"),
        (other_crc, "a row has another CRC"),
        (hex("80F0D8FF7F010A000000"), "a row does not begin with 0x81"),
        (hex("81F0D8FF7F000A000000"), "a segment does not tell its length"),
        (hex("81F0D8FF7F0109000000"), "a segment is shorter than itself"),
        (hex("81F0D8FF7F01FFFFFFFF"), "a length is negative"),
        (hex("81F0D8FF7F01FFFFFF7F"), "it is cut off"),
        (fine[10..].to_vec(), "it does not begin with a segment"),
        (hex(READ), "there is something else than a segment or a record"),
        (
            hex(&format!("{SEGMENT_ROW}{READ}")),
            "there is something else than a segment or a record",
        ),
        (hex(&format!("{SEGMENT_ROW}81F1D8FF7FFFFFFFFF00000000")), "a length is negative"),
        (hex(&format!("{SEGMENT_ROW}81F1D8FF7FFFFFFF7F00000000")), "it is cut off"),
        (in_row("817154E17F13020000000200000001"), "a row has a schema that is not known"),
        (in_row("817054E17F1302000000020000000531"), "it is cut off"),
        (in_row("817054E17F13020000000200000001FF"), "a text is not UTF-8"),
        (
            in_row("817054E17F130200000002000000FFFFFFFFFFFFFFFFFFFF01"),
            "a number has more than 64 bits",
        ),
        (
            in_row("817054E17F130200000002000000FFFFFFFFFFFFFFFFFF7F"),
            "a number has more than 64 bits",
        ),
        (in_row("817054E17F130200000002000000FFFFFFFFFFFFFFFFFF01"), "it is cut off"),
        (after_read("1409"), "it is cut off"),
        (after_read("0709"), "it is cut off"),
        (after_read("070901000000"), "the field 'ifMatch' has another type"),
        (after_read("080B0100000000000000"), "the field 'timeToLiveInSeconds' has another type"),
        (after_read("14050132"), "the field 'id' has another type"),
        (after_read("01106162"), "it is cut off"),
        (after_read("010EFF"), "a name is not UTF-8"),
        (after_read("1E0961"), "a field is nested, or of a type that is not known"),
        (after_read("0009"), "a field is nested, or of a type that is not known"),
    ] {
        assert_eq!(
            refusal(&bytes),
            format!("The binary rows (HybridRow) of the batch cannot be read: {why}."),
        );
    }
}

/// What a row is, for comparison; not a number is like itself.
fn values(row: &Row<'_>) -> Vec<String> {
    row.values.iter().map(|value| format!("{value:?}")).collect()
}

/// What is read is written so that it is read again.
fn same_again(layout: &'static RowLayout, bytes: &[u8]) -> Result<()> {
    let rows = records(bytes)?;
    let rows = rows.into_iter().map(|row| Row::read(layout, row)).collect::<Result<Vec<_>>>()?;
    let written = body(rows.clone());
    let again = records(&written).unwrap();
    assert_eq!(again.len(), rows.len());
    for (row, bytes) in rows.iter().zip(again) {
        assert_eq!(values(row), values(&Row::read(layout, bytes).unwrap()));
    }
    Ok(())
}

/// What a field is made of, whatever its type; or that it is absent.
type Stuff = Option<(u64, String, Vec<u8>)>;

/// What makes a row of this layout.
fn any_row(layout: &'static RowLayout) -> impl Strategy<Value = (Vec<Stuff>, &'static RowLayout)> {
    let bytes = prop::collection::vec(any::<u8>(), 0..200);
    let field = prop::option::of((any::<u64>(), ".{0,40}", bytes));
    (prop::collection::vec(field, layout.columns.len()), Just(layout))
}

fn filled<'a>(fields: &'a [Stuff], layout: &'static RowLayout) -> Row<'a> {
    let mut row = Row::new(layout);
    for ((name, storage), field) in layout.columns.iter().zip(fields) {
        let value = field.as_ref().map(|(number, text, bytes)| {
            let low = u32::try_from(*number & u64::from(u32::MAX)).unwrap();
            match storage {
                Storage::Fixed | Storage::Sparse(Code::Int) => RowValue::Int(low.cast_signed()),
                Storage::Text | Storage::Sparse(Code::Text) => RowValue::Text(text),
                Storage::Binary | Storage::Sparse(Code::Binary) => RowValue::Binary(bytes),
                Storage::Sparse(Code::Bool) => RowValue::Bool(number & 1 == 1),
                Storage::Sparse(Code::Uint) => RowValue::Uint(low),
                Storage::Sparse(Code::Float) => RowValue::Float(f64::from_bits(*number)),
            }
        });
        row = row.with(name, value);
    }
    row
}

/// How bytes are bent: cut out, doubled, changed, put in.
fn bend(bytes: &mut Vec<u8>, changes: Vec<(u8, prop::sample::Index, u8)>) {
    for (how, at, byte) in changes {
        if bytes.is_empty() {
            return;
        }
        let at = at.index(bytes.len());
        match how {
            0 => drop(bytes.remove(at)),
            1 => bytes.truncate(at),
            2 => bytes[at] = byte,
            3 => bytes[at] ^= 1 << (byte & 7),
            4 => bytes.extend_from_within(at..),
            _ => bytes.insert(at, byte),
        }
    }
}

fn changes() -> impl Strategy<Value = Vec<(u8, prop::sample::Index, u8)>> {
    prop::collection::vec((0..6u8, any::<prop::sample::Index>(), any::<u8>()), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_are_read_as_they_were_written(
        operations in prop::collection::vec(any_row(&OPERATION), 0..4),
        results in prop::collection::vec(any_row(&RESULT), 0..4),
    ) {
        for rows in [operations, results] {
            let rows: Vec<_> = rows.iter().map(|(fields, layout)| filled(fields, layout)).collect();
            let written = body(rows.clone());
            let read = records(&written).unwrap();
            prop_assert_eq!(read.len(), rows.len());
            for (row, bytes) in rows.iter().zip(read) {
                let read = Row::read(row.layout, bytes).unwrap();
                prop_assert_eq!(values(row), values(&read));
            }
        }
    }

    #[test]
    fn bent_bodies_are_refused_or_read(
        rows in prop::collection::vec(any_row(&OPERATION), 1..4),
        changes in changes(),
    ) {
        let mut bytes = body(rows.iter().map(|(fields, layout)| filled(fields, layout)));
        bend(&mut bytes, changes);
        let _ = same_again(&OPERATION, &bytes);
    }

    /// The CRC is right, so that what is inside is looked at.
    #[test]
    fn bent_rows_are_refused_or_read(row in any_row(&OPERATION), changes in changes()) {
        let mut bytes = Vec::new();
        filled(&row.0, row.1).write(&mut bytes);
        bend(&mut bytes, changes);
        let _ = same_again(&OPERATION, &alone(&bytes));
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = records(&bytes);
        let mut sparse = hex(READ);
        sparse.extend(bytes);
        let _ = same_again(&OPERATION, &alone(&sparse));
    }
}
