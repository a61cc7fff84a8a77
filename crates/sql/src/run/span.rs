//! A span of values, for people: `/a = 1`, `/b > 2 AND /b <= 5`, `/c is a string`.
//!
//! A span is bytes in the order of all values. What they stand for is read back
//! from them, so that the text is always that of the range that is walked.

use std::fmt;

use dayfly_model::indexing;
use dayfly_model::value::{Type, Value, order};

use super::sieve::{IndexStep, ValueSpan, past};

/// How many characters of a value are shown.
const SHOWN_MAX: usize = 100;

impl IndexStep {
    /// As the model has it.
    pub fn as_step(&self) -> indexing::Step<'_> {
        match self {
            IndexStep::Name(name) => indexing::Step::Name(name),
            IndexStep::Items => indexing::Step::Item,
        }
    }
}

impl ValueSpan {
    /// Its path, as a policy has it, without an end.
    pub fn path_text(&self) -> String {
        indexing::path_text(&self.path.iter().map(IndexStep::as_step).collect::<Vec<_>>())
    }

    /// Whether it has all values of a type, or all there are.
    pub fn is_whole(&self) -> bool {
        self.kind().is_some_and(|kind| kind != "null")
    }

    /// What all its values are.
    fn kind(&self) -> Option<&'static str> {
        let [low] = *self.low.as_slice() else { return None };
        let [high] = *self.high.as_slice() else { return None };
        let kinds = [
            (Type::Null, "null"),
            (Type::Bool, "a boolean"),
            (Type::Number, "a number"),
            (Type::String, "a string"),
            (Type::Array, "an array"),
            (Type::Object, "an object"),
        ];
        let known = kinds.into_iter().find(|(kind, _)| order::bounds(*kind) == (low, high));
        let defined = (order::bounds(Type::Null).0, order::PAST) == (low, high);
        known.map(|(_, name)| name).or(defined.then_some("defined"))
    }
}

impl fmt::Display for ValueSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path_text();
        let is_one = past(self.low.clone()) == self.high;
        if let Some(value) = order::read_scalar(&self.low).filter(|_| is_one) {
            return write!(f, "{path} = {}", shown(&value));
        }
        if let Some(kind) = self.kind() {
            return write!(f, "{path} is {kind}");
        }
        if let Some(start) = order::read_text_start(&self.low).filter(|_| is_one) {
            return write!(f, "{path} starts with {}", shown(&Value::from(start)));
        }
        let bounds = [bound(&self.low, ">=", ">"), bound(&self.high, "<", "<=")];
        let bounds = bounds.into_iter().flatten();
        let bounds: Vec<String> = bounds.map(|bound| format!("{path} {bound}")).collect();
        f.write_str(&bounds.join(" AND "))
    }
}

/// A bound, by what it is called when a value starts there and when one ends there;
/// none where a type begins or ends.
fn bound(bytes: &[u8], starts: &str, ends: &str) -> Option<String> {
    if bytes.len() == 1 {
        return None;
    }
    if let Some(value) = at_or_start(bytes) {
        return Some(format!("{starts} {}", shown(&value)));
    }
    before(bytes).map(|value| format!("{ends} {}", shown(&value)))
}

/// The value with these bytes, or the first one that begins with them.
fn at_or_start(bytes: &[u8]) -> Option<Value> {
    order::read_scalar(bytes).or_else(|| order::read_text_start(bytes).map(Value::from))
}

/// The last value before these bytes, which are the first past it.
fn before(bytes: &[u8]) -> Option<Value> {
    let mut bytes = bytes.to_vec();
    let last = bytes.last_mut()?;
    *last = last.checked_sub(1)?;
    if bytes.first() == Some(&order::bounds(Type::Number).0) {
        bytes.resize(order::NUMBER_BYTES.max(bytes.len()), 0xFF);
    }
    at_or_start(&bytes)
}

/// A value as JSON, not too long.
fn shown(value: &Value) -> String {
    let mut json = Vec::new();
    if value.write(&mut json).is_err() {
        return "a number that JSON cannot say".to_owned();
    }
    let json = String::from_utf8_lossy(&json);
    match json.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", json.get(..end).unwrap_or_default()),
        None => json.into_owned(),
    }
}
