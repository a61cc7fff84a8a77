//! The admin API, `/_admin/v1/…`: what dayfly offers beyond the service.

use std::borrow::Cow;

use dayfly_engine::operation::{ClockStep as Step, Operation};
use dayfly_model::{Error, Result};
use serde_json::Value;

use crate::operation::{Request, wrong_verb};
use crate::route;

/// What a call asks for.
pub(crate) fn read(request: &Request<'_>, call: &[Cow<'_, str>]) -> Result<Operation> {
    let call: Vec<&str> = call.iter().map(AsRef::as_ref).collect();
    match (call.as_slice(), request.method) {
        (["clock"], "GET" | "HEAD") => Ok(Operation::ReadClock),
        (["clock"], "POST") => Ok(Operation::MoveClock { step: step(request.body)? }),
        (["clock"], method) => Err(wrong_verb(method)),
        _ => Err(route::unknown()),
    }
}

fn step(body: &[u8]) -> Result<Step> {
    let refused = || {
        Error::bad_request(
            "The body must be one of {\"now\":n}, {\"advanceSeconds\":n}, {\"frozen\":true}, \
             {\"frozen\":false} and {\"accept\":true}.",
        )
    };
    let body: Value = serde_json::from_slice(body).map_err(|_| refused())?;
    let body = body.as_object().ok_or_else(refused)?;
    let mut members = body.iter();
    let (Some((name, value)), None) = (members.next(), members.next()) else {
        return Err(refused());
    };
    match (name.as_str(), value.as_u64(), value.as_bool()) {
        ("now", Some(second), _) => Ok(Step::To(second)),
        ("advanceSeconds", Some(seconds), _) => Ok(Step::Advance(seconds)),
        ("frozen", _, Some(true)) => Ok(Step::Freeze),
        ("frozen", _, Some(false)) => Ok(Step::Run),
        ("accept", _, Some(true)) => Ok(Step::Accept),
        _ => Err(refused()),
    }
}
