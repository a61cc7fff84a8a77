//! Which ids can be given.
//!
//! |                      | length            | not in it       | at the end |
//! |----------------------|-------------------|-----------------|------------|
//! | database, container  | 1 to 255 chars    | `/` `\` `?` `#` | no space   |
//! | item                 | 1 to 1023 bytes   |                 | anything   |
//!
//! Ids of items may hold `/`, `\`, `?`, `#`, `%`, spaces and control characters: the
//! service takes them, and clients escape them in the path.

use crate::error::{Error, Result};

/// How many characters the id of a database or a container may have.
pub const RESOURCE_ID_MAX: usize = 255;

/// How many bytes the id of an item may have.
pub const ITEM_ID_MAX: usize = 1023;

/// Checks the id of a database or a container.
pub fn check_resource_id(id: &str) -> Result<()> {
    if id.is_empty() {
        return Err(invalid(id, "an id has at least one character"));
    }
    if id.chars().count() > RESOURCE_ID_MAX {
        return Err(too_long(id, RESOURCE_ID_MAX));
    }
    if id.contains(['/', '\\', '?', '#']) {
        return Err(invalid(id, "the characters '/', '\\', '?' and '#' are not allowed"));
    }
    if id.ends_with(' ') {
        return Err(invalid(id, "an id does not end with a space"));
    }
    Ok(())
}

/// Checks the id of an item.
pub fn check_item_id(id: &str) -> Result<()> {
    if id.is_empty() {
        return Err(invalid(id, "an id has at least one character"));
    }
    if id.len() > ITEM_ID_MAX {
        return Err(too_long(id, ITEM_ID_MAX + 1));
    }
    Ok(())
}

/// As the service says it, which counts characters and bytes alike.
fn too_long(id: &str, limit: usize) -> Error {
    let shown: String = id.chars().take(RESOURCE_ID_MAX).collect();
    Error::bad_request(format!(
        "The input name '{shown}...' is invalid. Ensure to provide a unique non-empty string less \
         than '{limit}' characters."
    ))
}

fn invalid(id: &str, reason: &str) -> Error {
    // A long id is not repeated whole.
    let shown: String = id.chars().take(RESOURCE_ID_MAX).collect();
    let more = if shown.len() < id.len() { "..." } else { "" };
    Error::bad_request(format!("The id '{shown}{more}' is invalid: {reason}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_databases_and_containers() {
        for good in ["a", " a", "a b", "ü%20,=.:~+-@()^${}[]!_", "AAAAAA==", &"ü".repeat(255)] {
            assert_eq!(check_resource_id(good), Ok(()), "{good}");
        }
        for bad in ["", "a ", " ", "a/b", "a\\b", "a?b", "a#b", &"a".repeat(256)] {
            assert!(check_resource_id(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_of_items() {
        for good in
            ["a", " a ", "a?b", "a#b", "a%2Fb", "a\tb\r\n", "a/b", "a\\b", "鱀", &"a".repeat(1023)]
        {
            assert_eq!(check_item_id(good), Ok(()), "{good}");
        }
        for bad in ["", &"a".repeat(1024), &"ü".repeat(512)] {
            assert!(check_item_id(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_message_names_the_id() {
        assert_eq!(
            check_resource_id("a ").unwrap_err().message,
            "The id 'a ' is invalid: an id does not end with a space."
        );
        let long = check_item_id(&"a".repeat(5000)).unwrap_err().message;
        let shown = "a".repeat(255);
        let limit = "Ensure to provide a unique non-empty string less than '1024' characters.";
        assert_eq!(long, format!("The input name '{shown}...' is invalid. {limit}"));
    }
}
