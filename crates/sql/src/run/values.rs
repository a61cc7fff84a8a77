//! The values of computed properties, for an index.
//!
//! They are made from the text of an item alone. A property that the expression
//! fails on, because it is beyond a limit, has no value: neither the write of an
//! item nor its end can depend on that. A query that meets it tells the failure.

use std::fmt;

use dayfly_model::value::Value;
use dayfly_model::{Result, Timestamp};

use super::Item;
use super::budget::{Free, Run, Steps};
use super::compile::Compiler;
use super::computed::Computed;
use super::evaluate::Loaded;
use super::extract::Fields;
use crate::functions::Setting;

/// Some computed properties, ready to be computed.
pub struct Values {
    fields: Fields,
    /// Their names, and the fields that they are.
    names: Vec<(String, usize)>,
}

impl Values {
    /// The computed properties of these names.
    pub fn new(computed: &Computed, names: &[&str]) -> Result<Values> {
        let (fields, numbers) = Compiler::properties(computed, names)?;
        let names = names.iter().map(|name| (*name).to_owned()).zip(numbers).collect();
        Ok(Values { fields, names })
    }

    /// Whether they depend on what the server adds to an item.
    pub(crate) fn reads_system(&self) -> bool {
        self.fields.reads_system()
    }

    /// What they are for the item with this text, those that are defined.
    pub fn of(&self, text: &str) -> Vec<(&str, Value)> {
        if self.names.is_empty() {
            return Vec::new();
        }
        let text = Text(text);
        let steps = Steps::new(&Free);
        let run = Run::new(Setting { now: Timestamp(0), plane: false }, 0, &steps);
        // Whoever derives the other terms of a text tells that it is damaged.
        let Ok(mut loaded) = Loaded::stored(&self.fields, &text) else { return Vec::new() };
        for computed in self.fields.computed() {
            run.next_item();
            // What fails has no value.
            let _ = loaded.compute(computed, &run);
        }
        let mut fields = loaded.fields;
        let mut taken = |field: usize| fields.get_mut(field).map(std::mem::take);
        let values = self.names.iter().map(|(name, field)| (&**name, taken(*field)));
        values.filter_map(|(name, value)| Some((name, value.filter(Value::is_defined)?))).collect()
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names.iter().map(|(name, _)| name)).finish()
    }
}

/// An item of which only the text is known.
struct Text<'t>(&'t str);

impl Item for Text<'_> {
    fn text(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn system(&self, _: &str) -> Value {
        Value::Undefined
    }

    fn number(&self) -> u64 {
        0
    }

    fn render(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }
}
