//! The query language.
//!
//! For now it understands one shape of query, the one with which SDKs look up
//! offers:
//!
//! ```text
//! SELECT * FROM <name> [<alias>] WHERE <alias>.<property> = <value>
//! ```
//!
//! where the value is a string in single or double quotes, or a parameter.

use dayfly_model::{Error, Result};
use serde_json::Value;

/// A look-up by one property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The property.
    pub property: String,
    /// What it must be equal to.
    pub value: String,
}

impl Lookup {
    /// Reads the body of a query request: the text, and its parameters.
    pub fn parse(body: &[u8]) -> Result<Lookup> {
        let body: Value = serde_json::from_slice(body)
            .map_err(|why| Error::bad_request(format!("The query is not valid JSON: {why}.")))?;
        let text = body
            .get("query")
            .and_then(Value::as_str)
            .ok_or_else(|| Error::bad_request("The request has no query text."))?;
        let (property, operand) = shape(text)
            .ok_or_else(|| Error::not_yet("A query other than a look-up by one property"))?;
        Ok(Lookup { property, value: value_of(&operand, body.get("parameters"))? })
    }
}

/// The property and the operand, if the query has the one shape we know.
fn shape(text: &str) -> Option<(String, String)> {
    let tokens = tokens(text)?;
    let words: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let (alias, condition) = match words.as_slice() {
        [select, "*", from, name, where_, condition @ ..]
            if is(select, "SELECT") && is(from, "FROM") && is(where_, "WHERE") =>
        {
            (*name, condition)
        }
        [select, "*", from, _, alias, where_, condition @ ..]
            if is(select, "SELECT") && is(from, "FROM") && is(where_, "WHERE") =>
        {
            (*alias, condition)
        }
        _ => return None,
    };
    match condition {
        [owner, ".", property, "=", operand] if *owner == alias => {
            Some(((*property).to_owned(), (*operand).to_owned()))
        }
        _ => None,
    }
}

fn is(word: &str, keyword: &str) -> bool {
    word.eq_ignore_ascii_case(keyword)
}

fn value_of(operand: &str, parameters: Option<&Value>) -> Result<String> {
    if let Some(quoted) = operand.strip_prefix(['\'', '"']) {
        return Ok(quoted.trim_end_matches(['\'', '"']).to_owned());
    }
    let given = parameters.and_then(Value::as_array).into_iter().flatten();
    given
        .filter(|parameter| parameter.get("name").and_then(Value::as_str) == Some(operand))
        .find_map(|parameter| parameter.get("value")?.as_str())
        .map(ToOwned::to_owned)
        .ok_or_else(|| {
            Error::bad_request(format!("The query's parameter '{operand}' has no text value."))
        })
}

/// Words, quoted strings and single signs. `None`: a string does not end.
fn tokens(text: &str) -> Option<Vec<String>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' => rest.get(1..)?.find(first)? + 2,
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at_checked(length)?;
        tokens.push(token.to_owned());
        rest = after.trim_start();
    }
    Some(tokens)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '@' | '$')
}

#[cfg(test)]
mod tests {
    use dayfly_model::ErrorKind;

    use super::*;

    fn parse(query: &str) -> Result<(String, String)> {
        let body = serde_json::json!({
            "query": query,
            "parameters": [{"name": "@link", "value": "dbs/x/"}],
        });
        Lookup::parse(body.to_string().as_bytes()).map(|found| (found.property, found.value))
    }

    #[test]
    fn the_look_ups_that_sdks_send() {
        let found = |property: &str, value: &str| Ok((property.to_owned(), value.to_owned()));

        assert_eq!(
            parse("SELECT * FROM root r WHERE r.resource=@link"),
            found("resource", "dbs/x/")
        );
        assert_eq!(
            parse("SELECT * from root where root.resource = \"dbs/y/\""),
            found("resource", "dbs/y/")
        );
        assert_eq!(
            parse("SELECT * FROM c WHERE c.offerResourceId = 'AAAA='"),
            found("offerResourceId", "AAAA=")
        );
    }

    #[test]
    fn any_other_query_is_refused() {
        for query in [
            "SELECT c.id FROM c WHERE c.id = 'a'",
            "SELECT * FROM c",
            "SELECT * FROM c WHERE c.a = 'b' AND c.d = 'e'",
            "SELECT * FROM c WHERE d.a = 'b'",
            "SELECT * FROM c WHERE c.a > 'b'",
            "SELECT * FROM c WHERE c.a = 'b",
            "",
        ] {
            assert_eq!(parse(query).unwrap_err().kind, ErrorKind::NotImplemented, "{query}");
        }
        assert_eq!(
            parse("SELECT * FROM c WHERE c.a = @other").unwrap_err().kind,
            ErrorKind::BadRequest
        );
    }
}
