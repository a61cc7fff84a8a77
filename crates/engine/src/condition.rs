//! What a request makes its wish depend on: the version that it means, and that a name
//! is free.

use dayfly_model::{Error, ErrorKind, Result};

use crate::operation::Condition;

const NOT_MET: &str = "One of the specified pre-condition is not met";

/// Whether a condition's etag means this one. Some clients leave the quotes
/// out.
pub(crate) fn names(wanted: &str, etag: &str) -> bool {
    let bare = |text: &str| text.trim().trim_matches('"').to_owned();
    wanted.trim() == "*" || bare(wanted) == bare(etag)
}

/// `If-Match` on something that is there.
pub(crate) fn check_match(condition: &Condition, etag: &str) -> Result<()> {
    match &condition.if_match {
        Some(wanted) if !names(wanted, etag) => Err(precondition_failed()),
        _ => Ok(()),
    }
}

/// The same, and `If-None-Match`.
pub(crate) fn check(condition: &Condition, etag: &str) -> Result<()> {
    check_match(condition, etag)?;
    match &condition.if_none_match {
        Some(unwanted) if names(unwanted, etag) => Err(precondition_failed()),
        _ => Ok(()),
    }
}

/// The error for a version that is not the one that was meant.
fn precondition_failed() -> Error {
    Error::new(ErrorKind::PreconditionFailed, NOT_MET)
}

/// The error for an item that is not as the condition of a patch wants it.
pub(crate) fn patch_condition_not_met() -> Error {
    Error::new(ErrorKind::PatchConditionNotMet, NOT_MET)
}

/// The error for an id that another one has.
pub(crate) fn taken() -> Error {
    Error::new(ErrorKind::Conflict, "Entity with the specified id already exists in the system.")
}
