//! The query language.
//!
//! For now it understands the two shapes of query without which SDKs cannot
//! list items and look up offers:
//!
//! ```text
//! SELECT * FROM <name> [<alias>]
//! SELECT * FROM <name> [<alias>] WHERE <alias>.<property> = <value>
//! ```
//!
//! where the value is a string in single or double quotes, or a parameter.

use dayfly_model::{Error, Result};
use serde_json::Value;

/// A query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Everything there is.
    All,
    /// What has a property with this value.
    Lookup {
        /// The property.
        property: String,
        /// What it must be equal to.
        value: String,
    },
}

impl Query {
    /// Reads the body of a query request: the text, and its parameters.
    pub fn parse(body: &[u8]) -> Result<Query> {
        let body: Value = serde_json::from_slice(body)
            .map_err(|why| Error::bad_request(format!("The query is not valid JSON: {why}.")))?;
        let text = body
            .get("query")
            .and_then(Value::as_str)
            .ok_or_else(|| Error::bad_request("The request has no query text."))?;
        match shape(text) {
            Some(Shape::All) => Ok(Query::All),
            Some(Shape::Lookup(property, operand)) => {
                let value = value_of(&operand, body.get("parameters"))?;
                Ok(Query::Lookup { property, value })
            }
            None => Err(Error::not_yet("A query other than SELECT * with at most one equality")),
        }
    }
}

enum Shape {
    All,
    /// A property and an operand.
    Lookup(String, String),
}

/// The shape of a query, if it is one that we know.
fn shape(text: &str) -> Option<Shape> {
    let tokens = tokens(text)?;
    let words: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let [select, "*", from, name, rest @ ..] = words.as_slice() else { return None };
    if !is(select, "SELECT") || !is(from, "FROM") || !is_name(name) {
        return None;
    }
    let (alias, rest) = match rest {
        [alias, rest @ ..] if is_name(alias) && !is(alias, "WHERE") => (alias, rest),
        rest => (name, rest),
    };
    match rest {
        [] => Some(Shape::All),
        [filter, owner, ".", property, "=", operand] if is(filter, "WHERE") && owner == alias => {
            Some(Shape::Lookup((*property).to_owned(), (*operand).to_owned()))
        }
        _ => None,
    }
}

/// A name that is no keyword of the language.
fn is_name(word: &str) -> bool {
    let keyword = ["JOIN", "IN", "ORDER", "GROUP", "OFFSET", "LIMIT", "AS", "SELECT", "FROM"];
    word.chars().all(is_word)
        && !word.starts_with(|c: char| c.is_ascii_digit() || c == '@')
        && !keyword.iter().any(|keyword| is(word, keyword))
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

    fn parse(query: &str) -> Result<Query> {
        let body = serde_json::json!({
            "query": query,
            "parameters": [{"name": "@link", "value": "dbs/x/"}],
        });
        Query::parse(body.to_string().as_bytes())
    }

    #[test]
    fn the_look_ups_that_sdks_send() {
        let found = |property: &str, value: &str| {
            Ok(Query::Lookup { property: property.to_owned(), value: value.to_owned() })
        };

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
    fn everything() {
        for query in ["SELECT * from c", "select * FROM root r", " SELECT  *  FROM  c "] {
            assert_eq!(parse(query), Ok(Query::All), "{query}");
        }
    }

    #[test]
    fn any_other_query_is_refused() {
        for query in [
            "SELECT c.id FROM c WHERE c.id = 'a'",
            "SELECT * FROM c ORDER BY c.a",
            "SELECT * FROM c JOIN d IN c.d",
            "SELECT * FROM c OFFSET 1 LIMIT 2",
            "SELECT * FROM d IN c.d",
            "SELECT * FROM c.d",
            "SELECT TOP 1 * FROM c",
            "SELECT * FROM (SELECT * FROM c)",
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
