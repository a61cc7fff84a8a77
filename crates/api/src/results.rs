//! What the operations of a batch answer, in the form of the request: an array of JSON, or
//! binary rows.
//!
//! A charge has two decimals, as clients show it. In a row, the reason of a failure stands
//! where the item would: .NET shows it to the user. An operation that failed because
//! another did has none.

use bytes::Bytes;
use dayfly_engine::reply::{Pieces, Reply, Success};
use dayfly_model::{Error, ErrorKind};

use crate::hybrid_row::{self, RESULT, Row, RowValue};

/// The results as an array of JSON.
pub(crate) fn text(results: &[Reply]) -> Pieces {
    let mut body = Vec::new();
    for result in results {
        body.push(if body.is_empty() { b'[' } else { b',' });
        write(&mut body, result);
    }
    body.push(b']');
    body.into()
}

fn write(body: &mut Vec<u8>, result: &Reply) {
    match &result.outcome {
        Ok(done) => {
            body.extend(format!("{{\"statusCode\":{}", done.status).bytes());
            if let Some(etag) = &done.etag {
                body.extend(format!(",\"eTag\":{}", serde_json::json!(etag)).bytes());
            }
            if !done.body.is_empty() {
                body.extend(b",\"resourceBody\":");
                body.extend_from_slice(&done.body.first);
                body.extend_from_slice(&done.body.second);
            }
        }
        Err(error) => {
            let wire = error.kind.wire();
            body.extend(format!("{{\"statusCode\":{}", wire.status).bytes());
            if wire.substatus != 0 {
                body.extend(format!(",\"subStatusCode\":{}", wire.substatus).bytes());
            }
            body.extend(format!(",\"message\":{}", serde_json::json!(error.message)).bytes());
        }
    }
    body.extend(format!(",\"requestCharge\":{}}}", charge(result)).bytes());
}

/// The results as binary rows.
pub(crate) fn rows(results: &[Reply]) -> Pieces {
    let bodies: Vec<Bytes> = results.iter().map(row_body).collect();
    let rows = results.iter().zip(&bodies).map(|(result, body)| {
        let (status, substatus, etag) = match &result.outcome {
            Ok(Success { status, etag, .. }) => (i32::from(*status), 0, etag.as_deref()),
            Err(Error { kind, .. }) => {
                (i32::from(kind.wire().status), kind.wire().substatus.cast_signed(), None)
            }
        };
        Row::new(&RESULT)
            .with("statusCode", Some(RowValue::Int(status)))
            .with("subStatusCode", Some(RowValue::Int(substatus)))
            .with("eTag", etag.map(RowValue::Text))
            .with("resourceBody", Some(RowValue::Binary(body)).filter(|_| !body.is_empty()))
            .with("requestCharge", Some(RowValue::Float(charge(result))))
    });
    hybrid_row::body(rows).into()
}

/// The item, or why there is none.
fn row_body(result: &Reply) -> Bytes {
    match &result.outcome {
        Ok(done) if done.body.second.is_empty() => done.body.first.clone(),
        Ok(done) => done.body.to_vec().into(),
        Err(error) if error.kind == ErrorKind::FailedDependency => Bytes::new(),
        Err(error) => {
            let body = serde_json::json!({
                "code": error.kind.wire().code,
                "message": error.message,
            });
            body.to_string().into()
        }
    }
}

fn charge(result: &Reply) -> f64 {
    result.charge.ru()
}
