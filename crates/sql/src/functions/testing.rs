//! Calls functions by name, for their tests.

use std::borrow::Cow;

use dayfly_model::Timestamp;
use dayfly_model::value::{Value, read};

use super::{Family, Setting};

/// The setting of tests: 2023-11-14T22:13:20Z, on the earth.
pub(super) const SETTING: Setting = Setting { now: Timestamp(1_700_000_000), plane: false };

/// What a function makes of arguments, given as text: `"a", 1`. An argument
/// `undefined` is undefined.
pub(super) fn call(setting: Setting, family: &Family, name: &str, arguments: &str) -> Value {
    let marked = arguments.replace("undefined", "\"<undefined>\"");
    let Value::Array(values) = read(&format!("[{marked}]")).expect(arguments) else {
        panic!("{arguments}");
    };
    let unmarked = |value: Value| match value.as_str() {
        Some("<undefined>") => Value::Undefined,
        _ => value,
    };
    let values: Vec<Value> = values.into_iter().map(unmarked).collect();
    call_with(setting, family, name, &values)
}

/// The same with values.
pub(super) fn call_with(setting: Setting, family: &Family, name: &str, values: &[Value]) -> Value {
    let arguments: Vec<Cow<'_, Value>> = values.iter().map(Cow::Borrowed).collect();
    let (_, body) = family.iter().find(|(known, _)| *known == name).expect(name);
    body.call(&setting, &arguments).unwrap_or_else(|sentence| panic!("{name}: {sentence}"))
}

/// The text of a value; `undefined` for undefined.
pub(super) fn text(value: &Value) -> String {
    let mut out = Vec::new();
    value.write(&mut out).expect("a number that JSON can say");
    if out.is_empty() { "undefined".to_owned() } else { String::from_utf8(out).unwrap() }
}
