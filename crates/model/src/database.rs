//! What a database is: an id.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::{id, json};

/// Reads the body that creates a database, and gives the id.
pub fn parse(body: &[u8]) -> Result<String> {
    let object = json::parse(body, &[])?;
    read_id(&object)
}

/// The `id` of a database or container.
pub(crate) fn read_id(object: &json::ObjectText) -> Result<String> {
    let value = object.get("id").map(|raw| serde_json::from_str(raw.get()));
    match value {
        None => Err(Error::bad_request(
            "The input content is invalid because the required properties - 'id; ' - are missing",
        )),
        Some(Ok(Value::String(id))) => {
            id::check_resource_id(&id)?;
            Ok(id)
        }
        Some(_) => {
            Err(Error::bad_request("The input content is invalid because 'id' is not a string."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_with_an_id() {
        assert_eq!(parse(br#"{"id":"a"}"#).unwrap(), "a");
        assert_eq!(parse(br#"{"_rid":"x","id":"a b","more":{}}"#).unwrap(), "a b");
    }

    #[test]
    fn bodies_that_are_refused() {
        for body in [
            "",
            "[]",
            "{}",
            "{\"id\"",
            r#"{"id":1}"#,
            r#"{"id":null}"#,
            r#"{"id":""}"#,
            r#"{"id":"a/b"}"#,
        ] {
            assert!(parse(body.as_bytes()).is_err(), "{body}");
        }
        let missing = parse(b"{}").unwrap_err().message;
        assert_eq!(
            missing,
            "The input content is invalid because the required properties - 'id; ' - are missing"
        );
    }
}
