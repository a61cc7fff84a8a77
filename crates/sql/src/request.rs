//! The body of a query request: the text, and the values of its parameters.

use std::collections::BTreeMap;

use dayfly_model::{Error, Result, value};
use serde_json::Value;

use crate::error::SyntaxError;
use crate::lex;
use crate::names::check;
use crate::parse::parse;
use crate::tree::Query;

/// The values of parameters, by name with its `@`. `None`: it has a name only,
/// as JavaScript sends it for an undefined value.
pub type Parameters = BTreeMap<String, Option<Value>>;

/// A query that was read and is well formed, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The query.
    pub query: Query,
    /// Its parameters.
    pub parameters: Parameters,
    /// From where on rows are wanted, if the query is sorted.
    pub boundary: Option<Boundary>,
}

/// Sort values from which on rows are wanted: a client that asks ranges by itself
/// goes on so in those it has no token for.
#[derive(Clone, Debug, PartialEq)]
pub struct Boundary {
    /// One for each sort key.
    pub values: Vec<value::Value>,
    /// Rows with exactly these values are not wanted.
    pub exclude: bool,
}

/// Reads `{"value": [..], "rid": "..", "exclude": true}`. Rows of the same values
/// are put in order by their RIDs, and the client leaves out those it has: so the
/// RID is not needed.
fn boundary(given: Option<&Value>) -> Result<Option<Boundary>> {
    let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(None) };
    let invalid = || Error::bad_request("The query's resumeFilter must have a list of values.");
    let values = given.get("value").and_then(Value::as_array).ok_or_else(invalid)?;
    let values = values.iter().map(|value| match value {
        // Undefined is written as an empty list.
        Value::Array(list) if list.is_empty() => Ok(value::Value::Undefined),
        Value::Array(_) | Value::Object(_) => {
            Err(Error::not_yet("A resumeFilter with an array or an object"))
        }
        scalar => serde_json::from_value(scalar.clone()).map_err(|_| invalid()),
    });
    let exclude = given.get("exclude").and_then(Value::as_bool).unwrap_or(false);
    Ok(Some(Boundary { values: values.collect::<Result<_>>()?, exclude }))
}

impl Request {
    /// Reads the body of a query request.
    pub fn read(body: &[u8]) -> Result<Request> {
        let body: Value = serde_json::from_slice(body)
            .map_err(|why| Error::bad_request(format!("The query is not valid JSON: {why}.")))?;
        let text = body
            .get("query")
            .and_then(Value::as_str)
            .ok_or_else(|| Error::bad_request("The request has no query text."))?;
        let query = parse(text).map_err(SyntaxError::into_error)?;
        check(&query, text).map_err(SyntaxError::into_error)?;
        let parameters = parameters(body.get("parameters"))?;
        Ok(Request { query, parameters, boundary: boundary(body.get("resumeFilter"))? })
    }
}

/// The value of a parameter; undefined if it is not given, or has none.
pub(crate) fn value_of(parameters: &Parameters, name: &str) -> value::Value {
    let given = parameters.get(name).and_then(Option::as_ref);
    // Every JSON value is one of ours.
    given.and_then(|given| serde_json::from_value(given.clone()).ok()).unwrap_or_default()
}

fn parameters(given: Option<&Value>) -> Result<Parameters> {
    let list = match given {
        None | Some(Value::Null) => return Ok(Parameters::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(Error::bad_request("The query's parameters must be an array.")),
    };
    let mut parameters = Parameters::new();
    for parameter in list {
        let (name, value) = name_and_value(parameter)?;
        if parameters.insert(name.to_owned(), value).is_some() {
            let message = format!("The query's parameter '{name}' is given more than once.");
            return Err(Error::bad_request(message));
        }
    }
    Ok(parameters)
}

fn name_and_value(parameter: &Value) -> Result<(&str, Option<Value>)> {
    let name = parameter.get("name").and_then(Value::as_str).ok_or_else(|| {
        Error::bad_request("A parameter of the query has no name; each is {\"name\", \"value\"}.")
    })?;
    if !name.strip_prefix('@').is_some_and(lex::is_word) {
        let message = format!(
            "The query's parameter '{name}' must be named by '@' and letters, digits or '_'."
        );
        return Err(Error::bad_request(message));
    }
    Ok((name, parameter.get("value").cloned()))
}
