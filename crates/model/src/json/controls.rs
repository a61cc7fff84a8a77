//! Control characters that stand in strings as they are.
//!
//! JSON wants them escaped, but the service takes a tab or a line break that a
//! client did not escape, and shows it escaped. Text that no reader takes is looked
//! at once more here; whether it is then JSON is not judged.

use std::io::Write as _;

/// `text` with the control characters in its strings escaped; `None` when there
/// are none.
pub(super) fn escaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    // Up to where the text is in `out`.
    let mut copied = 0;
    let (mut in_string, mut after_backslash) = (false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if after_backslash => after_backslash = false,
            b'"' => in_string = !in_string,
            b'\\' => after_backslash = in_string,
            0..0x20 if in_string => {
                out.extend_from_slice(text.get(copied..at)?);
                // The reader that comes next chooses the short forms.
                write!(out, "\\u{byte:04x}").ok()?;
                copied = at + 1;
            }
            _ => {}
        }
    }
    if out.is_empty() {
        return None;
    }
    out.extend_from_slice(text.get(copied..)?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_in_strings_is_escaped() {
        for (text, expected) in [
            ("{\"a\":\"x\ty\"}", Some(r#"{"a":"x\u0009y"}"#)),
            ("{\n\"a\r\":\t\"\u{1}\"\n}", Some("{\n\"a\\u000d\":\t\"\\u0001\"\n}")),
            ("{\"a\":\"\\\"\u{1f}\"}", Some(r#"{"a":"\"\u001f"}"#)),
            ("{\n\t\"a\": 1\r\n}", None),
            (r#"{"a":"\t"}"#, None),
            // A backslash before it makes it no escape that there is.
            ("{\"a\":\"\\\t\"}", None),
            ("{\"a\":\"\u{7f}\"}", None),
            ("", None),
        ] {
            let found = escaped(text.as_bytes()).map(|text| String::from_utf8(text).unwrap());
            assert_eq!(found.as_deref(), expected, "{text:?}");
        }
    }
}
