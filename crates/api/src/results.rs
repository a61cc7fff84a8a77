//! What the operations of a batch answer, in the form of the request: an array of JSON, or
//! binary rows.
//!
//! A charge has two decimals, as clients show it. In a row, the reason of a failure stands
//! where the item would: .NET shows it to the user. An operation that failed because
//! another did has none.

use std::io::Write as _;

use bytes::Bytes;
use dayfly_engine::reply::{Pieces, Reply, Success};
use dayfly_model::{Error, ErrorKind};

use crate::hybrid_row::{self, RESULT, Row, RowValue};

/// What a result has around its item, roughly.
const RESULT_BYTES: usize = 128;

/// The results as an array of JSON.
pub(crate) fn text(results: &[Reply]) -> Pieces {
    let items = results.iter().flat_map(|result| &result.outcome).map(|done| done.body.len());
    let mut body = Vec::with_capacity(items.sum::<usize>() + results.len() * RESULT_BYTES);
    for result in results {
        body.push(if body.is_empty() { b'[' } else { b',' });
        write(&mut body, result);
    }
    body.push(b']');
    body.into()
}

fn write(body: &mut Vec<u8>, result: &Reply) {
    let mut put = |part: std::fmt::Arguments<'_>| {
        // Memory takes whatever is written.
        let _ = body.write_fmt(part);
    };
    match &result.outcome {
        Ok(done) => {
            put(format_args!("{{\"statusCode\":{}", done.status));
            if let Some(etag) = &done.etag {
                put(format_args!(",\"eTag\":{}", serde_json::json!(etag)));
            }
            if !done.body.is_empty() {
                body.extend_from_slice(b",\"resourceBody\":");
                body.extend_from_slice(&done.body.first);
                body.extend_from_slice(&done.body.second);
            }
        }
        Err(error) => {
            let wire = error.kind.wire();
            put(format_args!("{{\"statusCode\":{}", wire.status));
            if wire.substatus != 0 {
                put(format_args!(",\"subStatusCode\":{}", wire.substatus));
            }
            put(format_args!(",\"message\":{}", serde_json::json!(error.message)));
            if let Some(milliseconds) = error.retry_after_ms {
                put(format_args!(",\"retryAfterMilliseconds\":{milliseconds}"));
            }
        }
    }
    // Memory takes whatever is written.
    let _ = write!(body, ",\"requestCharge\":{}}}", charge(result));
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
        let retry_after_ms = result.outcome.as_ref().err().and_then(|error| error.retry_after_ms);
        let retry_after_ms = retry_after_ms.map(|wait| u32::try_from(wait).unwrap_or(u32::MAX));
        Row::new(&RESULT)
            .with("statusCode", Some(RowValue::Int(status)))
            .with("subStatusCode", Some(RowValue::Int(substatus)))
            .with("eTag", etag.map(RowValue::Text))
            .with("resourceBody", Some(RowValue::Binary(body)).filter(|_| !body.is_empty()))
            .with("retryAfterMilliseconds", retry_after_ms.map(RowValue::Uint))
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
