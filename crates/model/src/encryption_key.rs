//! What a client encryption key is: a key that encrypts items, wrapped by another key that
//! the server never sees. It is kept as it was given.
//!
//! | member                     | if it is there    |
//! |----------------------------|-------------------|
//! | `id`                       | needed            |
//! | `encryptionAlgorithm`      | a text            |
//! | `wrappedDataEncryptionKey` | a text, in base64 |
//! | `keyWrapMetadata`          | an object         |

use serde_json::{Map, Value};

use crate::container::{POLICY_DEPTH_MAX, depth};
use crate::error::{Error, ErrorKind, Result};
use crate::{database, json};

/// What the server adds to a key.
const SYSTEM_PROPERTIES: &[&str] = &["_rid", "_self", "_etag", "_ts"];

/// How many bytes of JSON a key may have. A wrapped key has some hundred.
pub const KEY_BYTES_MAX: usize = 64 * 1024;

/// Reads the body that makes or replaces a key: its id, and all of it.
pub fn parse(body: &[u8]) -> Result<(String, Map<String, Value>)> {
    let object = json::parse(body, SYSTEM_PROPERTIES)?;
    let id = database::read_id(&object)?;
    if object.bytes() > KEY_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("A client encryption key can have at most {KEY_BYTES_MAX} bytes."),
        ));
    }
    let invalid = |what: &str| {
        Error::bad_request(format!("The client encryption key '{id}' is invalid: {what}."))
    };
    let key: Map<String, Value> =
        serde_json::from_str(object.as_str()).map_err(|why| invalid(&why.to_string()))?;
    let given = |name: &str| key.get(name).filter(|value| !value.is_null());
    for name in ["encryptionAlgorithm", "wrappedDataEncryptionKey"] {
        if given(name).is_some_and(|value| !value.is_string()) {
            return Err(invalid(&format!("'{name}' must be a string")));
        }
    }
    if given("keyWrapMetadata").is_some_and(|value| !value.is_object()) {
        return Err(invalid("'keyWrapMetadata' must be an object"));
    }
    if key.values().any(|value| depth(value) > POLICY_DEPTH_MAX) {
        return Err(invalid(&format!("it has more than {POLICY_DEPTH_MAX} levels")));
    }
    Ok((id, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_key_is_kept_but_what_the_server_adds() {
        let body = r#"{"_rid":"x","id":"k","keyWrapMetadata":{"name":"m"},"more":[1],"_ts":1}"#;
        let (id, key) = parse(body.as_bytes()).unwrap();
        assert_eq!(id, "k");
        let kept = r#"{"id":"k","keyWrapMetadata":{"name":"m"},"more":[1]}"#;
        assert_eq!(Value::Object(key).to_string(), kept);
    }

    #[test]
    fn keys_that_are_refused() {
        let deep = format!(r#"{{"id":"k","a":{}1{}}}"#, "[".repeat(33), "]".repeat(33));
        for body in [
            "[]",
            "{}",
            r#"{"id":"a/b"}"#,
            r#"{"id":"k","encryptionAlgorithm":1}"#,
            r#"{"id":"k","wrappedDataEncryptionKey":{}}"#,
            r#"{"id":"k","keyWrapMetadata":"m"}"#,
            &deep,
        ] {
            assert_eq!(parse(body.as_bytes()).unwrap_err().kind, ErrorKind::BadRequest, "{body}");
        }
        let long = format!(r#"{{"id":"k","a":"{}"}}"#, "x".repeat(KEY_BYTES_MAX));
        assert_eq!(parse(long.as_bytes()).unwrap_err().kind, ErrorKind::TooLarge);
    }
}
