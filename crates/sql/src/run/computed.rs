//! Properties that are computed from the others of an item.
//!
//! A container defines them, each by a query `SELECT VALUE <expression> FROM c`.
//! In a query of its items `c.name` then stands for the expression. The expression
//! itself sees what is stored and nothing else: no other computed property, and
//! under its own name the stored one that it hides. Its value is one that could be
//! stored: a number that is not finite is undefined.
//!
//! It must say the same whenever it is asked about the same item, so that an index
//! can hold what it says: no clause but those two, no subqueries, no aggregates, no
//! clock, no chance, nobody else's code.

use dayfly_model::container::invalid_computed;
use dayfly_model::{Error, ErrorKind, Result};

use super::values::Values;
use crate::error::SyntaxError;
use crate::functions::signature::{Sort, signature};
use crate::names::{check, name_of};
use crate::parse::parse;
use crate::tree::{Binding, Call, Collection, Expr, ExprKind, Projection, Query};
use crate::walk;

/// The computed properties of a container.
#[derive(Clone, Debug, Default)]
pub struct Computed {
    properties: Vec<Property>,
}

/// A computed property.
#[derive(Clone, Debug)]
pub(crate) struct Property {
    pub(crate) name: String,
    /// What the expression calls the item.
    pub(crate) alias: String,
    pub(crate) expr: Expr,
    /// Whether it depends on what the server adds to an item.
    reads_system: bool,
}

impl Computed {
    /// None.
    pub const NONE: &'static Computed = &Computed { properties: Vec::new() };

    /// Reads definitions, each a name and a query, and checks that the queries
    /// may define a property.
    pub fn read<'d>(definitions: impl IntoIterator<Item = (&'d str, &'d str)>) -> Result<Computed> {
        let mut computed = Computed::default();
        for (number, (name, text)) in definitions.into_iter().enumerate() {
            let defined = Defined { number, name, text };
            let malformed = |error: SyntaxError| defined.malformed(&error.body());
            let query = parse(text).map_err(malformed)?;
            check(&query, text).map_err(malformed)?;
            let (alias, expr) = defined.by(query)?;
            let property = Property { name: name.to_owned(), alias, expr, reads_system: false };
            computed.properties.push(property);
            let values = Values::new(&computed, &[name]);
            // A function that is not there yet is told as such.
            let values = values.map_err(|error| match error.kind {
                ErrorKind::BadRequest => {
                    let details = error.message.strip_prefix("Message: ");
                    defined.malformed(details.unwrap_or(&error.message))
                }
                _ => error,
            })?;
            if let Some(property) = computed.properties.last_mut() {
                property.reads_system = values.reads_system();
            }
        }
        Ok(computed)
    }

    /// Whether a property depends on what the server adds to an item, such as
    /// `_ts`, and not only on what the user wrote.
    pub fn reads_system(&self, name: &str) -> bool {
        self.find(name).is_some_and(|property| property.reads_system)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }
}

/// A definition, as a container has it.
struct Defined<'d> {
    number: usize,
    name: &'d str,
    text: &'d str,
}

impl Defined<'_> {
    /// The name of the item, and the expression over it, of the definition's query, if
    /// it may define a property.
    fn by(&self, query: Query) -> Result<(String, Expr)> {
        let clauses = [
            ("DISTINCT", query.distinct),
            ("TOP", query.top.is_some()),
            ("JOIN", query.sources.len() > 1),
            ("WHERE", query.filter.is_some()),
            ("GROUP BY", !query.group_by.is_empty()),
            ("ORDER BY", query.order_by.is_some()),
            ("OFFSET LIMIT", query.page.is_some()),
        ];
        if let Some((clause, _)) = clauses.into_iter().find(|(_, is_there)| *is_there) {
            return Err(self.invalid(&format!("its query cannot have {clause}.")));
        }
        let source = query.sources.first();
        let is_item = source.is_some_and(|source| {
            matches!(&source.collection, Collection::Path { steps, .. } if steps.is_empty())
                && !matches!(source.binding, Binding::Each(_))
        });
        let alias = source.filter(|_| is_item).and_then(name_of).map(ToOwned::to_owned);
        let alias =
            alias.ok_or_else(|| self.invalid("its query must read the item, as in 'FROM c'."))?;
        let Projection::Value(item) = query.projection else { return Err(self.without_value()) };
        match fault(&item.expr) {
            Some(what) => Err(self.invalid(&format!("its query cannot have {what}."))),
            None => Ok((alias, item.expr)),
        }
    }

    fn invalid(&self, reason: &str) -> Error {
        invalid_computed(self.name, reason)
    }

    fn without_value(&self) -> Error {
        Error::in_its_words(format!(
            "Required VALUE expression missing from computed property query '{}' at index ({}).",
            self.text, self.number
        ))
    }

    fn malformed(&self, details: &str) -> Error {
        Error::in_its_words(format!(
            "Computed property at index ({}) has a malformed query: '{}' Error details: \
             '{details}'",
            self.number, self.text
        ))
    }
}

/// The first thing in an expression that no computed property can have.
fn fault(expr: &Expr) -> Option<String> {
    let here = match &expr.kind {
        ExprKind::Subquery(..) => Some("a subquery".to_owned()),
        ExprKind::Parameter(_) => Some("a parameter".to_owned()),
        ExprKind::Call(call) => called(call),
        _ => None,
    };
    let mut found = here;
    walk::parts(expr, &mut |part| {
        if found.is_none() {
            found = fault(part);
        }
    });
    found
}

fn called(call: &Call) -> Option<String> {
    if call.udf {
        return Some("a user-defined function".to_owned());
    }
    let known = signature(&call.name)?;
    let changes =
        ["RAND", "NOW", "AGO"].contains(&known.name) || known.name.starts_with("GETCURRENT");
    let what = match known.sort {
        Sort::Aggregate => "an aggregate",
        Sort::Ranking | Sort::FullText => "a full-text function",
        Sort::Vector => "a vector function",
        Sort::Scalar | Sort::Lazy if known.name.starts_with("ST_") => "a spatial function",
        Sort::Scalar | Sort::Lazy if changes => "a function that changes by itself",
        Sort::Scalar | Sort::Lazy => return None,
    };
    Some(format!("{what}, {}", known.name))
}
