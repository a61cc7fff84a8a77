//! Expressions over the values of a row.
//!
//! Undefined is a value: an operator that cannot make anything of its operands
//! gives undefined, and a filter keeps a row only for exactly `true`.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;
use std::collections::HashSet;

use dayfly_model::Result;
use dayfly_model::value::{Value, order, read};

use super::Item;
use super::aggregate::GroupValues;
use super::budget::{Run, refused, too_large};
use super::extract::{ComputedField, Fields, check, damaged, utf8};
use super::operators::{and, binary, compared, unary};
use super::program::Code;
use crate::functions::{Body, Like, size};
use crate::tree::Operator;

/// The longest row, in bytes of JSON.
const ROW_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An item whose fields were read.
pub(super) struct Loaded<'a> {
    pub(super) fields: Vec<Value>,
    pub(super) item: &'a dyn Item,
    whole: OnceCell<Value>,
    /// Whether a part of its text was read, and what is behind that was not.
    is_partly_read: Cell<bool>,
}

impl<'a> Loaded<'a> {
    /// An item with all fields of a program.
    pub(super) fn read(fields: &Fields, item: &'a dyn Item, run: &Run<'_>) -> Result<Self> {
        let mut loaded = Loaded::stored(fields, item)?;
        fields.computed().iter().try_for_each(|computed| loaded.compute(computed, run))?;
        Ok(loaded)
    }

    /// The same without those that are computed.
    pub(super) fn stored(fields: &Fields, item: &'a dyn Item) -> Result<Self> {
        let is_partly_read = Cell::new(fields.reads_text());
        Ok(Loaded { fields: fields.read(item)?, item, whole: OnceCell::new(), is_partly_read })
    }

    /// Adds the fields of a computed property.
    pub(super) fn compute(&mut self, computed: &ComputedField, run: &Run<'_>) -> Result<()> {
        let scope = Scope { run, item: Some(self), bound: None, group: None };
        let value = computed.code.eval(&scope)?.into_owned();
        computed.take(&storable(value), &mut self.fields);
        Ok(())
    }

    fn number(&self) -> i64 {
        i64::try_from(self.item.number()).unwrap_or(i64::MAX)
    }

    /// Writes it as it is. Only here, since most items are read for a filter that refuses
    /// them, the rest of its text is read.
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        if self.is_partly_read.take() {
            check(self.item.text())?;
        } else {
            utf8(self.item.text())?;
        }
        self.item.render(out);
        Ok(())
    }

    fn whole(&self) -> Result<&Value> {
        if let Some(known) = self.whole.get() {
            return Ok(known);
        }
        let mut text = Vec::new();
        self.item.render(&mut text);
        let value = read(utf8(&text)?).map_err(|_| damaged())?;
        Ok(self.whole.get_or_init(|| value))
    }
}

/// What could also be stored of a value: a number that is not finite could not.
fn storable(value: Value) -> Value {
    match value {
        Value::Number(number) if !number.is_finite() => Value::Undefined,
        Value::Array(values) => {
            let values = values.into_iter().map(storable);
            Value::Array(values.filter(Value::is_defined).collect())
        }
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name, storable(value)));
            Value::Object(members.filter(|(_, value)| value.is_defined()).collect())
        }
        other => other,
    }
}

/// What a source is bound to, and what those before it are.
pub(super) struct Bound<'a> {
    pub(super) value: &'a Value,
    pub(super) outer: Option<&'a Bound<'a>>,
}

/// A row: the item, what its sources are bound to, and its group.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) item: Option<&'a Loaded<'a>>,
    pub(super) bound: Option<&'a Bound<'a>>,
    pub(super) group: Option<&'a GroupValues>,
}

type Evaluated<'a> = Result<Cow<'a, Value>>;

const UNDEFINED: &Value = &Value::Undefined;

#[expect(clippy::unnecessary_wraps, reason = "what an expression evaluates to")]
fn own<'a>(value: impl Into<Value>) -> Evaluated<'a> {
    Ok(Cow::Owned(value.into()))
}

#[expect(clippy::unnecessary_wraps, reason = "what an expression evaluates to")]
fn lend(value: Option<&Value>) -> Evaluated<'_> {
    Ok(Cow::Borrowed(value.unwrap_or(UNDEFINED)))
}

impl Code {
    pub(super) fn eval<'a>(&'a self, scope: &Scope<'a>) -> Evaluated<'a> {
        match self {
            // What the row has.
            Code::Constant(value) => lend(Some(value)),
            Code::Field(field) => lend(scope.item.and_then(|item| item.fields.get(*field))),
            Code::Whole => lend(scope.item.map(Loaded::whole).transpose()?),
            Code::ItemNumber => own(scope.item.map(Loaded::number)),
            Code::Variable(outwards) => lend(variable(scope.bound, *outwards)),
            Code::Key(key) => lend(scope.group.and_then(|group| group.keys.get(*key))),
            Code::Aggregate(place) => {
                lend(scope.group.and_then(|group| group.aggregates.get(*place)))
            }
            // Parts of values, and values of parts.
            Code::Property(of, name) => part(of.eval(scope)?, |of| of.property(name)),
            Code::Element(of, place) => part(of.eval(scope)?, |of| of.element(*place)),
            Code::Index(of, index) => {
                let (of, index) = (of.eval(scope)?, index.eval(scope)?);
                own(indexed(&of, &index).clone())
            }
            Code::Array(values) => array(values, scope),
            Code::Object(members) => object(members, scope),
            // Operators.
            Code::Unary(sign, operand) => own(unary(*sign, &*operand.eval(scope)?)),
            Code::Or(operands) => logical(operands, true, scope),
            Code::And(operands) => logical(operands, false, scope),
            Code::Coalesce(operands) => first_defined(operands, scope),
            Code::Chain(first, rest) => chain(first, rest, scope),
            Code::Conditional(operands) => conditional(operands, scope),
            Code::Choose(index, choices) => choose(index, choices, scope),
            // Tests, and the same with NOT.
            Code::Between { not, operands } => is(is_between(operands, scope)?, *not),
            Code::In { not, value, list } => is(is_in(value, list, scope)?, *not),
            Code::InSet { not, value, set } => {
                let value = value.eval(scope)?;
                scope.run.steps.make(weight(&value) as u64)?;
                is(is_in_set(&value, set), *not)
            }
            Code::LikeConstant { not, value, pattern } => {
                let value = value.eval(scope)?;
                let matched = value.as_str().map(|text| matches(pattern, text, scope));
                is(matched.transpose()?, *not)
            }
            Code::Like { not, operands, escape } => is(is_like(operands, *escape, scope)?, *not),
            // Functions and queries.
            Code::Call(_, body, arguments) => call(*body, arguments, scope),
            Code::Random => own(scope.run.random()),
            Code::Subquery(how, select) => select.value(*how, scope),
        }
    }

    /// Writes its value as JSON. `false`: it is undefined, and nothing was
    /// written.
    pub(super) fn write(&self, scope: &Scope<'_>, out: &mut Vec<u8>) -> Result<bool> {
        match (self, scope.item) {
            (Code::Whole, Some(loaded)) => loaded.write(out)?,
            (Code::Object(members), _) => write_members(members, scope, out)?,
            _ => {
                let value = self.eval(scope)?;
                if !value.is_defined() {
                    return Ok(false);
                }
                value.write(out).map_err(|_| {
                    refused(
                        "A number in the result is not finite, and JSON has no such number. Test \
                         it with IS_FINITE_NUMBER.",
                    )
                })?;
            }
        }
        Ok(true)
    }
}

fn write_members(members: &[(String, Code)], scope: &Scope<'_>, out: &mut Vec<u8>) -> Result<()> {
    let begin = out.len();
    out.push(b'{');
    let mut first = true;
    for (name, code) in members {
        scope.run.step()?;
        let start = out.len();
        if !first {
            out.push(b',');
        }
        dayfly_model::value::write_string(name, out);
        out.push(b':');
        if code.write(scope, out)? {
            first = false;
        } else {
            out.truncate(start);
        }
        if out.len() - begin > ROW_BYTES_MAX {
            return Err(too_large());
        }
    }
    out.push(b'}');
    Ok(())
}

fn variable<'a>(mut bound: Option<&'a Bound<'a>>, outwards: usize) -> Option<&'a Value> {
    for _ in 0..outwards {
        bound = bound.and_then(|bound| bound.outer);
    }
    bound.map(|bound| bound.value)
}

/// A part of a value: of one that is lent it is lent, too.
#[expect(clippy::unnecessary_wraps, reason = "what an expression evaluates to")]
fn part(of: Cow<'_, Value>, part: impl Fn(&Value) -> &Value) -> Evaluated<'_> {
    Ok(match of {
        Cow::Borrowed(value) => Cow::Borrowed(part(value)),
        Cow::Owned(value) => Cow::Owned(part(&value).clone()),
    })
}

fn indexed<'a>(of: &'a Value, index: &Value) -> &'a Value {
    match index {
        Value::String(name) => of.property(name),
        Value::Number(_) => {
            let place = index.as_integer().and_then(|place| usize::try_from(place).ok());
            place.map_or(UNDEFINED, |place| of.element(place))
        }
        _ => UNDEFINED,
    }
}

fn array<'a>(values: &'a [Code], scope: &Scope<'a>) -> Evaluated<'a> {
    let mut array = Vec::with_capacity(values.len());
    for value in values {
        scope.run.step()?;
        let value = value.eval(scope)?;
        if value.is_defined() {
            scope.run.make(size(&value))?;
            array.push(value.into_owned());
        }
    }
    Ok(Cow::Owned(Value::Array(array)))
}

fn object<'a>(members: &'a [(String, Code)], scope: &Scope<'a>) -> Evaluated<'a> {
    let mut object = Vec::with_capacity(members.len());
    for (name, value) in members {
        scope.run.step()?;
        let value = value.eval(scope)?;
        if value.is_defined() {
            scope.run.make(name.len() + size(&value))?;
            object.push((name.clone(), value.into_owned()));
        }
    }
    Ok(Cow::Owned(Value::Object(object)))
}

/// `a ?? b`
fn first_defined<'a>(operands: &'a [Code], scope: &Scope<'a>) -> Evaluated<'a> {
    for operand in operands {
        scope.run.step()?;
        let value = operand.eval(scope)?;
        if value.is_defined() {
            return Ok(value);
        }
    }
    lend(None)
}

/// Operators of one strength, from left to right.
fn chain<'a>(first: &'a Code, rest: &'a [(Operator, Code)], scope: &Scope<'a>) -> Evaluated<'a> {
    let mut value = first.eval(scope)?;
    for (operator, operand) in rest {
        let operand = operand.eval(scope)?;
        scope.run.steps.make(1 + weight(&value).min(weight(&operand)) as u64)?;
        value = Cow::Owned(binary(*operator, &value, &operand));
        scope.run.make(value.as_str().map_or(0, str::len))?;
    }
    Ok(value)
}

/// `a ? b : c`
fn conditional<'a>(operands: &'a [Code; 3], scope: &Scope<'a>) -> Evaluated<'a> {
    let [condition, yes, no] = operands;
    if condition.eval(scope)?.is_true() { yes.eval(scope) } else { no.eval(scope) }
}

/// `CHOOSE(1, a, b)` is `a`.
fn choose<'a>(index: &Code, choices: &'a [Code], scope: &Scope<'a>) -> Evaluated<'a> {
    let place = index.eval(scope)?.as_integer().and_then(|number| number.checked_sub(1));
    let place = place.and_then(|place| usize::try_from(place).ok());
    match place.and_then(|place| choices.get(place)) {
        Some(choice) => choice.eval(scope),
        None => lend(None),
    }
}

/// The outcome of a test, or with NOT the other one.
fn is<'a>(truth: Option<bool>, not: bool) -> Evaluated<'a> {
    own(truth.map(|truth| truth != not))
}

fn is_between(operands: &[Code; 3], scope: &Scope<'_>) -> Result<Option<bool>> {
    let [value, low, high] = operands;
    let (value, low, high) = (value.eval(scope)?, low.eval(scope)?, high.eval(scope)?);
    Ok(and(compared(&value, &low, Ordering::is_ge), compared(&value, &high, Ordering::is_le)))
}

fn is_in(value: &Code, list: &[Code], scope: &Scope<'_>) -> Result<Option<bool>> {
    let value = value.eval(scope)?;
    if !value.is_defined() {
        return Ok(None);
    }
    scope.run.work(list.len())?;
    let weight_of = |candidate: &Value| weight(&value).min(weight(candidate)) as u64;
    for candidate in list {
        let candidate = candidate.eval(scope)?;
        scope.run.steps.make(weight_of(&candidate))?;
        if *candidate == *value {
            return Ok(Some(true));
        }
    }
    Ok(Some(false))
}

fn is_in_set(value: &Value, set: &HashSet<Vec<u8>>) -> Option<bool> {
    value.is_defined().then(|| set.contains(&order::key(value)))
}

fn is_like(operands: &[Code; 2], escape: Option<char>, scope: &Scope<'_>) -> Result<Option<bool>> {
    let [value, pattern] = operands;
    let (value, pattern) = (value.eval(scope)?, pattern.eval(scope)?);
    scope.run.steps.make(weight(&pattern) as u64)?;
    let like = pattern.as_str().and_then(|pattern| Like::new(pattern, escape));
    value.as_str().zip(like).map(|(text, like)| matches(&like, text, scope)).transpose()
}

fn matches(like: &Like, text: &str, scope: &Scope<'_>) -> Result<bool> {
    scope.run.steps.make(like.effort(text))?;
    Ok(like.matches(text))
}

fn call<'a>(body: Body, arguments: &'a [Code], scope: &Scope<'a>) -> Evaluated<'a> {
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        values.push(argument.eval(scope)?);
    }
    let cost = values.iter().map(|value| weight(value)).sum::<usize>();
    scope.run.work(1 + cost)?;
    scope.run.steps.make(body.effort(&values))?;
    body.call(&scope.run.setting, &values).map(Cow::Owned).map_err(|sentence| refused(&sentence))
}

/// About how much work a function has with a value.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() / 64,
        Value::Array(values) => values.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    }
}

/// AND and OR: the first operand that is `decisive` decides; one that is not a
/// boolean makes the rest undefined.
fn logical<'a>(operands: &'a [Code], decisive: bool, scope: &Scope<'a>) -> Evaluated<'a> {
    let mut known = true;
    for operand in operands {
        scope.run.step()?;
        match &*operand.eval(scope)? {
            Value::Bool(truth) if *truth == decisive => return own(decisive),
            Value::Bool(_) => {}
            _ => known = false,
        }
    }
    own(known.then_some(!decisive))
}
