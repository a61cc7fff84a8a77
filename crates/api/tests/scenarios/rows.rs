//! Batches in the binary rows of .NET, and their answers, as JSON.
//!
//! Bytes are a text, or a value of JSON, or `{"hex": "..."}` where they are neither.

use dayfly_api::hybrid_row::{self, Row, RowLayout, RowValue};
use serde_json::{Map, Value, json};

/// The body with these rows.
pub(crate) fn write(layout: &'static RowLayout, rows: &Value) -> Result<Vec<u8>, String> {
    let rows = rows.as_array().ok_or("there is no array of rows")?;
    let fields = |row: &Value| -> Vec<(String, Value, Vec<u8>)> {
        let members = row.as_object().into_iter().flatten();
        members.map(|(name, value)| (name.clone(), value.clone(), bytes(value))).collect()
    };
    let rows: Vec<_> = rows.iter().map(fields).collect();
    let rows = rows.iter().map(|fields| {
        fields.iter().try_fold(Row::new(layout), |row, (name, value, bytes)| {
            if !layout.names().any(|known| known == name) {
                return Err(format!("there is no field {name}"));
            }
            Ok(row.with(name, Some(typed(name, value, bytes)?)))
        })
    });
    Ok(hybrid_row::body(rows.collect::<Result<Vec<_>, String>>()?))
}

/// The rows of a body.
pub(crate) fn read(layout: &'static RowLayout, body: &[u8]) -> Result<Vec<Value>, String> {
    let shown = |bytes: &[u8]| {
        let row = Row::read(layout, bytes)?;
        let field = |name: &'static str| Some((name.to_owned(), shown(row.get(name)?)));
        Ok(Value::Object(layout.names().filter_map(field).collect::<Map<_, _>>()))
    };
    let rows = hybrid_row::records(body).and_then(|rows| rows.into_iter().map(shown).collect());
    rows.map_err(|error: dayfly_model::Error| error.message)
}

fn typed<'a>(name: &str, value: &'a Value, bytes: &'a [u8]) -> Result<RowValue<'a>, String> {
    let number = || value.as_i64();
    Ok(match (name, value) {
        ("resourceBody" | "binaryId" | "effectivePartitionKey", _) => RowValue::Binary(bytes),
        ("requestCharge", _) => RowValue::Float(value.as_f64().unwrap_or_default()),
        ("retryAfterMilliseconds", _) => {
            RowValue::Uint(number().and_then(|n| n.try_into().ok()).unwrap_or_default())
        }
        (_, Value::Bool(flag)) => RowValue::Bool(*flag),
        (_, Value::String(text)) => RowValue::Text(text),
        _ => match number().and_then(|number| number.try_into().ok()) {
            Some(number) => RowValue::Int(number),
            None => return Err(format!("{value} is no value of {name}")),
        },
    })
}

fn shown(value: RowValue<'_>) -> Value {
    match value {
        RowValue::Null => Value::Null,
        RowValue::Bool(flag) => flag.into(),
        RowValue::Int(number) => number.into(),
        RowValue::Uint(number) => number.into(),
        RowValue::Float(number) => number.into(),
        RowValue::Text(text) => text.into(),
        RowValue::Binary(bytes) => match str::from_utf8(bytes) {
            Ok(text) if !text.contains(char::is_control) => text.into(),
            _ => {
                let digits =
                    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
                json!({ "hex": digits })
            }
        },
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    match (value, value.get("hex")) {
        (Value::String(text), _) => text.clone().into_bytes(),
        (_, Some(Value::String(digits))) => from_hex(digits).unwrap_or_default(),
        (value, _) => value.to_string().into_bytes(),
    }
}

/// Bytes that are written as hexadecimal digits.
pub(crate) fn from_hex(digits: &str) -> Result<Vec<u8>, String> {
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16))
        .collect::<Result<_, _>>()
        .map_err(|_| format!("'{digits}' are not bytes"))
}
