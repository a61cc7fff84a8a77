//! The way to a property: `/a/b`, or `/"a b"/c` with quotes.

use std::fmt;

use crate::error::{Error, Result};

/// The names of the properties to go through, from the top.
///
/// A name stands as it is, or in quotes, double or single, when it has a slash or
/// a quote in it; inside quotes, `\"` is a quote and `\\` a backslash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path(Vec<String>);

impl Path {
    /// Reads `/a/b`.
    pub fn parse(text: &str) -> Result<Path> {
        let mut segments = Vec::new();
        let mut rest = text;
        while let Some(segment) = rest.strip_prefix('/') {
            let quote = segment.chars().next().filter(|first| matches!(first, '"' | '\''));
            let (name, after) = match quote {
                Some(quote) => read_until(segment.get(1..).unwrap_or_default(), quote)
                    .ok_or_else(|| invalid(text, "a quoted name has no closing quote"))?,
                None => read_plain(segment),
            };
            if name.is_empty() {
                return Err(invalid(text, "a name is empty"));
            }
            if quote.is_none() {
                check_plain(text, &name)?;
            }
            segments.push(name);
            rest = after;
        }
        if !rest.is_empty() || segments.is_empty() {
            return Err(invalid(text, "every name starts with a slash"));
        }
        Ok(Path(segments))
    }

    /// The names, from the top; at least one.
    pub fn segments(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Path {
    /// As it is read; with quotes only where they are needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in &self.0 {
            let plain = !name.contains(['/', '"'])
                && !name.starts_with('\'')
                && !matches!(name.as_str(), "*" | "?" | "[]");
            if plain {
                write!(f, "/{name}")?;
            } else {
                write!(f, "/\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))?;
            }
        }
        Ok(())
    }
}

/// The name up to the next slash, and the rest.
fn read_plain(segment: &str) -> (String, &str) {
    let (name, after) = segment.split_at(segment.find('/').unwrap_or(segment.len()));
    (name.to_owned(), after)
}

/// The name up to the closing double quote, and the rest.
pub(crate) fn read_quoted(quoted: &str) -> Option<(String, &str)> {
    read_until(quoted, '"')
}

fn read_until(quoted: &str, quote: char) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = quoted.chars();
    loop {
        match chars.next()? {
            end if end == quote => return Some((name, chars.as_str())),
            '\\' => match chars.next()? {
                escaped if escaped == quote || escaped == '\\' => name.push(escaped),
                other => name.extend(['\\', other]),
            },
            other => name.push(other),
        }
    }
}

fn check_plain(text: &str, name: &str) -> Result<()> {
    if name.contains('"') {
        return Err(invalid(text, "a quote stands inside a name"));
    }
    if matches!(name, "*" | "?" | "[]") {
        return Err(invalid(text, "wildcards are not allowed here"));
    }
    Ok(())
}

fn invalid(text: &str, reason: &str) -> Error {
    Error::bad_request(format!("The path '{text}' is invalid: {reason}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_read() {
        let cases: &[(&str, &[&str])] = &[
            ("/a", &["a"]),
            ("/a/b", &["a", "b"]),
            ("/a b/ü", &["a b", "ü"]),
            ("/\"a b\"/c", &["a b", "c"]),
            ("/\"a/b\"", &["a/b"]),
            (r#"/"a\"b"/"c\\d""#, &["a\"b", "c\\d"]),
            ("/\"*\"", &["*"]),
            ("/'a b'/c", &["a b", "c"]),
            (r#"/'level" 1*()'/'le/vel2'"#, &["level\" 1*()", "le/vel2"]),
            (r"/'a\'b'", &["a'b"]),
            (r#"/"'a'""#, &["'a'"]),
            ("/it's", &["it's"]),
            ("/a-b", &["a-b"]),
        ];
        for (text, expected) in cases {
            let path = Path::parse(text).unwrap();
            assert_eq!(path.segments(), *expected, "{text}");
            assert_eq!(Path::parse(&path.to_string()).unwrap(), path, "{text}");
        }
    }

    #[test]
    fn paths_that_are_refused() {
        for (text, reason) in [
            ("", "every name starts with a slash"),
            ("a", "every name starts with a slash"),
            ("/", "a name is empty"),
            ("/a/", "a name is empty"),
            ("//a", "a name is empty"),
            ("/\"\"", "a name is empty"),
            ("/'a", "a quoted name has no closing quote"),
            ("/''", "a name is empty"),
            ("/\"a", "a quoted name has no closing quote"),
            ("/\"a\"b", "every name starts with a slash"),
            ("/a\"b", "a quote stands inside a name"),
            ("/*", "wildcards are not allowed here"),
            ("/a/?", "wildcards are not allowed here"),
            ("/a/[]/b", "wildcards are not allowed here"),
        ] {
            let error = Path::parse(text).unwrap_err();
            assert_eq!(error.message, format!("The path '{text}' is invalid: {reason}."));
        }
    }
}
