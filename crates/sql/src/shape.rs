//! The two shapes of query that are carried out for now, without which SDKs
//! cannot list items and look up offers:
//!
//! ```text
//! SELECT * FROM c
//! SELECT * FROM c WHERE c.property = "value"
//! ```

use dayfly_model::{Error, Result};
use serde_json::Value;

use crate::request::{Parameters, Request};
use crate::tree::{
    Access, Binding, Collection, Expr, ExprKind, Literal, Operator, Projection, Query,
};

/// What a query asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
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

impl Shape {
    /// The shape of a query, if it is one that is carried out.
    pub fn of(request: &Request) -> Result<Shape> {
        let other = || Error::not_yet("A query other than SELECT * with at most one equality");
        let alias = plain_alias(&request.query).ok_or_else(other)?;
        let Some(filter) = &request.query.filter else { return Ok(Shape::All) };
        let (property, operand) = equality(filter, alias).ok_or_else(other)?;
        let value = match &operand.kind {
            ExprKind::Literal(Literal::String(text)) => text.clone(),
            ExprKind::Parameter(name) => text_of(name, &request.parameters)?,
            _ => return Err(other()),
        };
        Ok(Shape::Lookup { property: property.to_owned(), value })
    }
}

/// The name of the one source of a query that has nothing but a filter.
fn plain_alias(query: &Query) -> Option<&str> {
    let Query { distinct: false, top: None, order_by: None, page: None, .. } = query else {
        return None;
    };
    let (Projection::All(_), [source], []) =
        (&query.projection, query.sources.as_slice(), query.group_by.as_slice())
    else {
        return None;
    };
    let Collection::Path { root, steps } = &source.collection else { return None };
    match &source.binding {
        _ if !steps.is_empty() => None,
        Binding::Inferred => Some(root),
        Binding::Alias(name) => Some(name),
        Binding::Each(_) => None,
    }
}

/// `alias.property = operand`
fn equality<'a>(filter: &'a Expr, alias: &str) -> Option<(&'a str, &'a Expr)> {
    let ExprKind::Chain(left, right) = &filter.kind else { return None };
    let [(Operator::Equal, operand)] = right.as_slice() else { return None };
    let ExprKind::Path(of, steps) = &left.kind else { return None };
    let [Access::Member(property)] = steps.as_slice() else { return None };
    match &of.kind {
        ExprKind::Identifier(name) if name == alias => Some((property, operand)),
        _ => None,
    }
}

fn text_of(name: &str, parameters: &Parameters) -> Result<String> {
    let value = parameters.get(name).and_then(Option::as_ref);
    value.and_then(Value::as_str).map(ToOwned::to_owned).ok_or_else(|| {
        Error::bad_request(format!("The query's parameter '{name}' has no text value."))
    })
}
