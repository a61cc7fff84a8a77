//! What is wrong in a query, and where, as the service tells it.

use dayfly_model::Error;
use serde_json::{Value, json};

use crate::tree::Span;

/// A token is quoted in a message up to this many characters.
const QUOTED_MAX: usize = 256;

/// What is wrong in the text of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The service's code. `None`: a limit for which it has none that we know.
    pub code: Option<&'static str>,
    /// What is wrong, in a sentence.
    pub message: String,
    /// Where it starts, in UTF-16 units of the text.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What else is wrong, with codes of its own.
    pub more: Vec<SyntaxError>,
}

impl SyntaxError {
    /// An error with one of the service's codes at a place of the text.
    pub(crate) fn new(
        code: &'static str,
        message: impl Into<String>,
        text: &str,
        span: Span,
    ) -> Self {
        SyntaxError {
            code: Some(code),
            message: message.into(),
            start: units_before(text, span.start),
            end: units_before(text, span.end),
            more: Vec::new(),
        }
    }

    /// An error of the whole text.
    pub(crate) fn of_all(code: &'static str, message: impl Into<String>, text: &str) -> Self {
        SyntaxError::new(code, message, text, Span { start: 0, end: text.len() })
    }

    /// An error that has no code in the service.
    pub(crate) fn without_code(message: impl Into<String>, text: &str, span: Span) -> Self {
        SyntaxError { code: None, ..SyntaxError::new("", message, text, span) }
    }

    /// An error of a query as a whole, that has no code in the service.
    pub(crate) fn sentence(message: impl Into<String>) -> Self {
        SyntaxError::without_code(message, "", Span::default())
    }

    /// The body that the service sends for it: what its compiler found has a
    /// code and a place, everything else is a sentence.
    pub fn body(&self) -> String {
        let body = match self.code {
            Some(_) => {
                let all = std::iter::once(self).chain(&self.more);
                json!({ "errors": all.map(SyntaxError::to_json).collect::<Value>() })
            }
            None => json!({ "Errors": [self.message] }),
        };
        body.to_string()
    }

    fn to_json(&self) -> Value {
        let code = self.code.unwrap_or_default();
        // A code without letters is a number, and is about the query as a whole.
        if let Ok(number) = code.parse::<u32>() {
            return json!({ "severity": "Error", "code": number, "message": self.message });
        }
        json!({
            "severity": "Error",
            "location": { "start": self.start, "end": self.end },
            "code": code,
            "message": self.message,
        })
    }

    /// The failure of the request that has this query.
    pub fn into_error(self) -> Error {
        Error::bad_request(format!("Message: {}", self.body()))
    }
}

/// The beginning of a token, for a message.
pub(crate) fn quoted(token: &str) -> String {
    token.chars().take(QUOTED_MAX).collect()
}

/// How many UTF-16 units come before a byte of the text.
fn units_before(text: &str, byte: usize) -> usize {
    text.get(..byte).unwrap_or(text).encode_utf16().count()
}
