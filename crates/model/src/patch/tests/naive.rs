//! A patch of values: the table of the module, read aloud.

use serde_json::{Number, Value};

/// The item after all operations; `None` if one of them is refused.
pub(super) fn patched(mut item: Value, operations: &[Value]) -> Option<Value> {
    for operation in operations {
        let text = |name: &str| operation[name].as_str().map(names);
        let (path, value) = (text("path")?, &operation["value"]);
        if operation["op"] == "incr" && !value.is_number() {
            return None;
        }
        match operation["op"].as_str()? {
            "move" => {
                let from = text("from")?;
                if path.starts_with(&from) {
                    return None;
                }
                let moved = remove(&mut item, &from)?;
                put(&mut item, &path, "add", &moved)?;
            }
            "remove" => drop(remove(&mut item, &path)?),
            op => put(&mut item, &path, op, value)?,
        }
    }
    Some(item)
}

fn names(path: &str) -> Vec<String> {
    path.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect()
}

fn index(name: &str) -> Option<usize> {
    let index: usize = name.parse().ok()?;
    (index.to_string() == name).then_some(index)
}

fn parent<'v>(item: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    path[..path.len() - 1].iter().try_fold(item, |value, name| match value {
        Value::Object(members) => members.get_mut(name),
        Value::Array(elements) => elements.get_mut(index(name)?),
        _ => None,
    })
}

fn remove(item: &mut Value, path: &[String]) -> Option<Value> {
    let last = path.last()?;
    match parent(item, path)? {
        Value::Object(members) => members.shift_remove(last),
        Value::Array(elements) => {
            let index = index(last)?;
            (index < elements.len()).then(|| elements.remove(index))
        }
        _ => None,
    }
}

fn put(item: &mut Value, path: &[String], op: &str, value: &Value) -> Option<()> {
    let last = path.last()?;
    match parent(item, path)? {
        Value::Object(members) => {
            let new = match (op, members.get(last)) {
                ("replace", None) => return None,
                ("incr", Some(old)) => sum(old, value)?,
                _ => value.clone(),
            };
            members.insert(last.clone(), new);
        }
        Value::Array(elements) => match (op, last == "-") {
            ("add" | "set", true) => elements.push(value.clone()),
            (_, true) => return None,
            ("add", false) if index(last)? <= elements.len() => {
                elements.insert(index(last)?, value.clone());
            }
            ("incr", false) => {
                let old = elements.get_mut(index(last)?)?;
                *old = sum(old, value)?;
            }
            (_, false) => *elements.get_mut(index(last)?)? = value.clone(),
        },
        _ => return None,
    }
    Some(())
}

fn sum(old: &Value, by: &Value) -> Option<Value> {
    if let (Some(old), Some(by)) = (old.as_i64(), by.as_i64())
        && let Some(sum) = old.checked_add(by)
    {
        return Some(sum.into());
    }
    // Whole numbers of 64 bits without a sign are rare enough to be read as text.
    let both = |first: &Value, second: &Value| {
        Some(first.as_number()?.as_i128()? + second.as_number()?.as_i128()?)
    };
    match both(old, by) {
        Some(sum) if u64::try_from(sum).is_ok() => Some(Value::from(u64::try_from(sum).ok()?)),
        _ => {
            let sum = old.as_f64()? + by.as_f64()?;
            let whole = serde_json::from_str(&crate::json::number_text(sum)).ok();
            whole.or_else(|| Number::from_f64(sum).map(Value::Number))
        }
    }
}
