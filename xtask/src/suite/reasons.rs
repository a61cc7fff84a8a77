//! Why a test fails, in a few words, as far as its error or its name tells.
//!
//! An answer of ours names the missing feature itself. For the rest there is a
//! table; the first rule that fits counts. What no rule knows is `unread`.

/// What our 501 answers say after the feature.
const NOT_YET: &str = " is not supported by dayfly yet";
const WAITS: &str = "501: ";
const UNREAD: &str = "unread: ";
const LONGEST_UNREAD: usize = 100;

/// Where a rule looks.
enum In {
    Test(&'static str),
    Error(&'static str),
}
use In::{Error, Test};

const RULES: [(In, &str); 13] = [
    (Test("_aad"), "out of scope: Entra ID"),
    (Test("semantic_reranker"), "out of scope: a service in the internet"),
    (Error("BaselineTest.PathParser.json"), "out of scope: the package lacks a file of the test"),
    (Test("delete_all_items_by_p"), "501: Deleting all items of a partition key"),
    (Test("change_feed"), "501: The change feed"),
    (Test("vector"), "501: Vector search"),
    (Test("hybrid_search"), "501: Hybrid search"),
    (Test("full_text"), "501: Full text search"),
    (Test("sproc"), "501: A stored procedure"),
    (Test("trigger"), "501: A trigger"),
    (Test("conflict"), "501: The conflict feed"),
    (Test("replace_throughput"), "501: Changing the throughput of an offer"),
    (Test("cosmos_batch"), "501: A batch"),
];

/// The reason of a test that failed with `error`.
pub(crate) fn reason(test: &str, error: &str) -> String {
    if let Some(feature) = feature(error) {
        return format!("{WAITS}{feature}");
    }
    let rule = RULES.iter().find(|(place, _)| match place {
        Test(part) => test.contains(part),
        Error(part) => error.contains(part),
    });
    rule.map_or_else(|| unread(error), |(_, reason)| (*reason).to_owned())
}

/// Whether `reason` gave this one, so that it may be renewed.
pub(crate) fn is_automatic(reason: &str) -> bool {
    reason.starts_with(WAITS)
        || reason.starts_with(UNREAD)
        || RULES.iter().any(|(_, known)| *known == reason)
}

/// The feature that one of our answers misses: the sentence up to its verb.
fn feature(error: &str) -> Option<&str> {
    let (before, _) = error.split_once(NOT_YET)?;
    let starts =
        ["\"message\":\"", "\"message\": \"", "(NotImplemented) ", "Message: ", "Details: ", "\n"];
    let start = starts.iter().filter_map(|sign| Some(before.rfind(sign)? + sign.len())).max();
    before.get(start.unwrap_or(0)..).map(str::trim)
}

/// The beginning of an error, without what changes from run to run.
fn unread(error: &str) -> String {
    let line = error.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
    let steady = line.split(" object at 0x").next().unwrap_or(line);
    let words = steady.chars().take(LONGEST_UNREAD).collect::<String>().replace('|', "/");
    format!("{UNREAD}{}", words.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_comes_from_the_error_or_the_name() {
        for (test, error, expected) in [
            (
                "a",
                "call: E: (NotImplemented) A batch is not supported by dayfly yet.",
                "501: A batch",
            ),
            (
                "a",
                "Error: 501: Unknown. Details: Patch is not supported by dayfly yet.",
                "501: Patch",
            ),
            ("a", r#"{"message":"A user is not supported by dayfly yet."}"#, "501: A user"),
            ("a", "{\n\"message\": \"A batch is not supported by dayfly yet.\"}", "501: A batch"),
            ("test_aad.py::a", "what", "out of scope: Entra ID"),
            ("a", "assert <X object at 0x7f> is None", "unread: assert <X"),
            ("a", "", "unread: no message"),
        ] {
            let found = reason(test, error);
            assert_eq!(found, expected, "{test} {error}");
            assert!(is_automatic(&found));
        }
        assert!(!is_automatic("waits for somebody to think"));
    }
}
