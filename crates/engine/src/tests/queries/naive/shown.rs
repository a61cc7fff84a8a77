//! Items with the properties that are computed.

use dayfly_model::value::Value;
use dayfly_sql::Request;

use super::{Document, answer, object};

/// An item as it is shown with these computed properties, each with its query.
pub(in super::super) fn shown<'d>(
    item: &Value,
    defined: impl Iterator<Item = (&'d str, &'d Request)>,
) -> Value {
    let Value::Object(mut members) = item.clone() else { panic!("an item is an object") };
    for (name, request) in defined {
        let document = Document { value: item.clone(), shown: item.clone(), tie: (0, 0) };
        let value = answer(request, &[document]).rows.pop().map(storable).unwrap_or_default();
        members.retain(|(known, _)| known != name);
        if value.is_defined() {
            members.push((name.to_owned(), value));
        }
    }
    Value::Object(members)
}

/// What could be stored: no number that is not finite.
fn storable(value: Value) -> Value {
    match value {
        Value::Array(values) => {
            Value::Array(values.into_iter().map(storable).filter(Value::is_defined).collect())
        }
        Value::Object(members) => {
            object(members.into_iter().map(|(name, value)| (name, storable(value))))
        }
        value if value.as_double().is_some_and(|number| !number.is_finite()) => Value::Undefined,
        value => value,
    }
}
