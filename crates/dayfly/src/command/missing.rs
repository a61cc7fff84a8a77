//! What is there, when the container that was asked for is not.

use serde_json::Value;

use super::client::{Client, Failure};
use super::{Container, plain};

/// How many names a sentence has.
const NAMES_MAX: usize = 20;

/// Why a question about a container has no answer. If the container is not there,
/// or its database, this says what is.
pub(super) fn told(client: &Client, at: &Container, failure: Failure) -> String {
    let there = match failure.status {
        Some(404) => instead(client, at),
        _ => None,
    };
    there.unwrap_or(failure.sentence)
}

/// What there is instead; nothing, if the container is there or nobody knows.
fn instead(client: &Client, Container(database, container): &Container) -> Option<String> {
    let databases = client.databases().ok()?;
    if let Some(sentence) = self::database(&databases, database) {
        return Some(sentence);
    }
    let containers = client.containers(database).ok()?;
    if has(&containers, container) {
        return None;
    }
    let there = names("It", &containers);
    Some(plain(&format!("There is no container '{container}' in '{database}'. {there}")))
}

/// Which databases there are, if this one is not among them.
pub(super) fn database(databases: &[Value], wanted: &str) -> Option<String> {
    if has(databases, wanted) {
        return None;
    }
    let there = names("The server", databases);
    Some(plain(&format!("There is no database '{wanted}'. {there}")))
}

/// Resources are named by name or by RID.
fn has(listed: &[Value], wanted: &str) -> bool {
    listed.iter().any(|one| one["id"] == wanted || one["_rid"] == wanted)
}

fn names(who: &str, listed: &[Value]) -> String {
    let shown: Vec<&str> =
        listed.iter().filter_map(|one| one["id"].as_str()).take(NAMES_MAX).collect();
    let more = match listed.len() - shown.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    if shown.is_empty() {
        format!("{who} has none.")
    } else {
        format!("{who} has: {}{more}.", shown.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_told_and_not_too_many() {
        let of = |count: usize| (0..count).map(|n| json!({"id": format!("c{n}")})).collect();
        let told = |count: usize| names("It", &Vec::<Value>::from_iter::<Vec<Value>>(of(count)));
        assert_eq!(told(0), "It has none.");
        assert_eq!(told(2), "It has: c0, c1.");
        assert!(told(NAMES_MAX + 3).ends_with("c19, and 3 more."));
    }
}
