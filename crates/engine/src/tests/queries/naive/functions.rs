//! The operators and functions that random queries use, one line each where it
//! can be.

use std::cmp::Ordering;
use std::collections::HashSet;

use dayfly_model::value::{Type, Value, order};
use dayfly_sql::tree::Operator;

pub(super) fn binary(operator: Operator, left: &Value, right: &Value) -> Value {
    use Operator as Op;
    let defined = left.is_defined() && right.is_defined();
    let truths = (truth(left), truth(right));
    let compared = |fits: fn(Ordering) -> bool| -> Value {
        let numbers = left.kind() == Type::Number && right.kind() == Type::Number;
        match left.compare(right) {
            Some(order) => fits(order).into(),
            // One of them is not a number, although its type is.
            None if numbers => false.into(),
            None => Value::Undefined,
        }
    };
    match operator {
        Op::Equal => defined.then_some(left == right).into(),
        Op::NotEqual => defined.then_some(left != right).into(),
        Op::Less => compared(Ordering::is_lt),
        Op::LessOrEqual => compared(Ordering::is_le),
        Op::Greater => compared(Ordering::is_gt),
        Op::GreaterOrEqual => compared(Ordering::is_ge),
        Op::And => match truths {
            (Some(false), _) | (_, Some(false)) => false.into(),
            (Some(true), Some(true)) => true.into(),
            _ => Value::Undefined,
        },
        Op::Or => match truths {
            (Some(true), _) | (_, Some(true)) => true.into(),
            (Some(false), Some(false)) => false.into(),
            _ => Value::Undefined,
        },
        Op::Coalesce => if left.is_defined() { left } else { right }.clone(),
        Op::Concat => {
            let texts = left.as_str().zip(right.as_str());
            texts.map(|(left, right)| format!("{left}{right}")).into()
        }
        _ => {
            let numbers = left.as_double().zip(right.as_double());
            numbers.map(|(left, right)| arithmetic(operator, left, right)).into()
        }
    }
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        _ => None,
    }
}

fn arithmetic(operator: Operator, left: f64, right: f64) -> f64 {
    match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Modulo => left % right,
        other => panic!("no such operator is made: {other:?}"),
    }
}

/// The whole text against `%`, `_` and everything else.
pub(super) fn like(text: &str, pattern: &str, escape: Option<char>) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut parts = Vec::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        parts.push(match character {
            character if Some(character) == escape => (false, characters.next().unwrap()),
            '%' | '_' => (true, character),
            character => (false, character),
        });
    }
    matches(&text, &parts)
}

fn matches(text: &[char], parts: &[(bool, char)]) -> bool {
    match (parts.split_first(), text.split_first()) {
        (None, _) => text.is_empty(),
        (Some(((true, '%'), rest)), None) => matches(text, rest),
        (Some(((true, '%'), rest)), Some((_, later))) => {
            matches(text, rest) || matches(later, parts)
        }
        (Some(((true, _), rest)), Some((_, later))) => matches(later, rest),
        (Some(((false, wanted), rest)), Some((character, later))) => {
            wanted == character && matches(later, rest)
        }
        (Some(_), None) => false,
    }
}

pub(super) fn call(name: &str, arguments: &[Value]) -> Value {
    let first = &arguments[0];
    let is = |kind: Type| Value::from(first.kind() == kind);
    match name {
        "IS_DEFINED" => first.is_defined().into(),
        "IS_NULL" => is(Type::Null),
        "IS_BOOL" => is(Type::Bool),
        "IS_NUMBER" => is(Type::Number),
        "IS_STRING" => is(Type::String),
        "IS_ARRAY" => is(Type::Array),
        "IS_OBJECT" => is(Type::Object),
        "IS_PRIMITIVE" => {
            (!matches!(first.kind(), Type::Undefined | Type::Array | Type::Object)).into()
        }
        "UPPER" => first.as_str().map(str::to_uppercase).into(),
        "LOWER" => first.as_str().map(str::to_lowercase).into(),
        "ARRAY_LENGTH" => match first {
            Value::Array(values) => values.len().into(),
            _ => Value::Undefined,
        },
        "ARRAY_CONTAINS" => contains(arguments).into(),
        "CONTAINS" => texts(arguments, |text, part| text.contains(part)),
        "STARTSWITH" => texts(arguments, |text, part| text.starts_with(part)),
        "ENDSWITH" => texts(arguments, |text, part| text.ends_with(part)),
        "STRINGEQUALS" => texts(arguments, |text, part| text == part),
        "IIF" if first.is_true() => arguments[1].clone(),
        "IIF" => arguments[2].clone(),
        other => panic!("no such function is called: {other}"),
    }
}

fn texts(arguments: &[Value], test: fn(&str, &str) -> bool) -> Value {
    let pair = arguments[0].as_str().zip(arguments[1].as_str());
    let ignore_case = arguments.get(2).is_some_and(Value::is_true);
    let test = |(text, part): (&str, &str)| {
        if ignore_case {
            test(&text.to_lowercase(), &part.to_lowercase())
        } else {
            test(text, part)
        }
    };
    pair.map(test).into()
}

fn contains(arguments: &[Value]) -> Option<bool> {
    let (Value::Array(values), sought) = (&arguments[0], &arguments[1]) else { return None };
    let in_part = arguments.get(2).is_some_and(Value::is_true);
    let has_all = |value: &Value| match sought {
        Value::Object(members) => members.iter().all(|(name, part)| value.property(name) == part),
        _ => false,
    };
    let found = |value: &Value| value == sought || in_part && has_all(value);
    sought.is_defined().then(|| values.iter().any(found))
}

pub(super) fn is_aggregate(name: &str) -> bool {
    ["COUNT", "SUM", "MIN", "MAX", "AVG", "MAKELIST", "MAKESET"].contains(&name)
}

pub(in super::super) fn aggregate(name: &str, values: Vec<Value>) -> Value {
    let values: Vec<Value> = values.into_iter().filter(Value::is_defined).collect();
    let numbers: Option<Vec<f64>> = values.iter().map(Value::as_double).collect();
    let scalar = |value: &Value| !matches!(value.kind(), Type::Array | Type::Object);
    let greatest = |left: &Value, right: &Value| {
        let by_value = || left.compare(right).unwrap();
        left.kind().cmp(&right.kind()).then_with(by_value)
    };
    match name {
        "COUNT" => values.len().into(),
        "SUM" => numbers.map(|numbers| numbers.iter().sum::<f64>()).into(),
        "AVG" => {
            let numbers = numbers.filter(|numbers| !numbers.is_empty());
            numbers.map(|all| all.iter().sum::<f64>() / all.iter().map(|_| 1.0).sum::<f64>()).into()
        }
        "MAKELIST" => Value::Array(values),
        "MAKESET" => {
            let mut seen = HashSet::new();
            let is_new = |value: &Value| seen.insert(order::key(value));
            Value::Array(values.into_iter().filter(is_new).collect())
        }
        _ if !values.iter().all(scalar) => Value::Undefined,
        "MIN" => values.into_iter().min_by(greatest).unwrap_or_default(),
        _ => values.into_iter().max_by(greatest).unwrap_or_default(),
    }
}
