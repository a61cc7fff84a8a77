//! What people type: spans of time, defaults, and partition keys.

use serde_json::{Value, json};

/// How many seconds a span of time has: a number of seconds, or of the unit that
/// is written behind it.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let refused =
        || "it must be a number of seconds, or a span such as 45s, 30m, 12h, 90d or 2w".to_owned();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text.get(digits.len()..) {
        Some("" | "s") => 1,
        Some("m") => 60,
        Some("h") => 60 * 60,
        Some("d") => 24 * 60 * 60,
        Some("w") => 7 * 24 * 60 * 60,
        _ => return Err(refused()),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused());
    }
    let number: u64 = digits.parse().map_err(|_| refused())?;
    number.checked_mul(unit).ok_or_else(|| "so long a time cannot be counted".to_owned())
}

/// A `defaultTtl`, as the admin API takes it.
pub(super) fn default_ttl(text: &str) -> Result<String, String> {
    match text {
        "off" | "-1" => Ok(text.to_owned()),
        _ => seconds(text)
            .map(|seconds| seconds.to_string())
            .map_err(|why| format!("{why}; or -1, or off")),
    }
}

/// A partition key, as the admin API takes it: a JSON array is the key, other
/// JSON its only value, and what is no JSON a string. What starts like an array and
/// is none is left to the server, which refuses it.
pub(super) fn partition_key(text: &str) -> String {
    match serde_json::from_str(text) {
        Ok(Value::Array(_)) => text.to_owned(),
        // As it was typed: a number may have more digits than one that was read.
        Ok(_) => format!("[{text}]"),
        Err(_) if text.starts_with('[') => text.to_owned(),
        Err(_) => json!([text]).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units() {
        for (text, expected) in [
            ("0", 0),
            ("90", 90),
            ("45s", 45),
            ("30m", 1800),
            ("12h", 43_200),
            ("90d", 7_776_000),
            ("2w", 1_209_600),
        ] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for wrong in
            ["", "d", "-1", "+1", "1.5h", "1 h", "1y", "1hh", "h1", "1é", "99999999999999999d"]
        {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_default_is_a_span_or_a_word() {
        for (text, expected) in [("off", "off"), ("-1", "-1"), ("10m", "600"), ("0", "0")] {
            assert_eq!(default_ttl(text).as_deref(), Ok(expected));
        }
        assert!(default_ttl("-2").unwrap_err().ends_with("90d or 2w; or -1, or off"));
    }

    #[test]
    fn a_word_is_a_partition_key() {
        for (text, expected) in [
            (r#"["x",1]"#, r#"["x",1]"#),
            ("customer-1", r#"["customer-1"]"#),
            ("a \"b\"", r#"["a \"b\""]"#),
            (r#""5""#, r#"["5"]"#),
            ("5", "[5]"),
            ("null", "[null]"),
            ("", r#"[""]"#),
            ("[x", "[x"),
        ] {
            assert_eq!(partition_key(text), expected);
        }
    }
}
