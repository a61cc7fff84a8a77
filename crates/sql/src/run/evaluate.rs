//! Expressions over the values of a row.
//!
//! Undefined is a value: an operator that cannot make anything of its operands
//! gives undefined, and a filter keeps a row only for exactly `true`.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;

use dayfly_model::value::{Value, order, read};
use dayfly_model::{Error, Result};

use super::Item;
use super::aggregate::GroupValues;
use super::extract::{Computed, Fields, damaged};
use super::program::Code;
use crate::functions::{Body, Like, Setting, size};
use crate::tree::{Operator, Sign};

/// How much work one item may make: rows of a cross product, elements that are
/// compared.
const WORK_PER_ITEM: u64 = 20_000_000;

/// How many bytes of values may be put together for one item: strings that are
/// joined, arrays and objects that are built.
const MADE_PER_ITEM: usize = 256 * 1024 * 1024;

/// The longest row, in bytes of JSON.
const ROW_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How much a query may keep in memory, in bytes.
const KEPT_MAX: usize = 64 * 1024 * 1024;

/// What holds for a whole run.
pub(super) struct Run {
    pub(super) setting: Setting,
    /// Work that is left for this item.
    work: Cell<u64>,
    /// Work that was done before this item.
    done: Cell<u64>,
    /// Bytes that were put together for this item.
    made: Cell<usize>,
    kept: Cell<usize>,
    random: Cell<u64>,
}

impl Run {
    pub(super) fn new(setting: Setting, seed: u64) -> Run {
        Run {
            setting,
            work: Cell::new(WORK_PER_ITEM),
            done: Cell::new(0),
            made: Cell::new(0),
            kept: Cell::new(0),
            random: Cell::new(seed | 1),
        }
    }

    /// The next item starts.
    pub(super) fn next_item(&self) {
        self.done.set(self.work_done());
        self.work.set(WORK_PER_ITEM);
        self.made.set(0);
    }

    /// How much was done so far.
    pub(super) fn work_done(&self) -> u64 {
        self.done.get() + (WORK_PER_ITEM - self.work.get())
    }

    /// Accounts for some work.
    pub(super) fn work(&self, amount: usize) -> Result<()> {
        match self.work.get().checked_sub(amount as u64) {
            Some(left) => {
                self.work.set(left);
                Ok(())
            }
            None => Err(refused(
                "The query makes too many combinations of one item. Filter before you join, or \
                 join fewer arrays.",
            )),
        }
    }

    /// Accounts for bytes that are put together.
    pub(super) fn make(&self, bytes: usize) -> Result<()> {
        let made = self.made.get().saturating_add(bytes);
        self.made.set(made);
        if made <= MADE_PER_ITEM { Ok(()) } else { Err(too_large()) }
    }

    /// Accounts for bytes that are kept until the end.
    pub(super) fn keep(&self, bytes: usize) -> Result<()> {
        let kept = self.kept.get() + bytes;
        self.kept.set(kept);
        if kept <= KEPT_MAX {
            return Ok(());
        }
        Err(refused(
            "The query needs too much memory for its groups, distinct values or sorted rows. \
             Narrow its filter, or let an index give the order.",
        ))
    }

    /// How many bytes are kept.
    pub(super) fn kept(&self) -> usize {
        self.kept.get()
    }

    /// What is kept no longer.
    pub(super) fn drop_kept(&self, bytes: usize) {
        self.kept.set(self.kept.get().saturating_sub(bytes));
    }

    /// A number from 0 up to 1.
    fn random(&self) -> f64 {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        #[expect(clippy::cast_precision_loss, reason = "53 bits are a double's")]
        let fraction = (state >> 11) as f64 / (1u64 << 53) as f64;
        fraction
    }
}

/// How a query is refused that the service's compiler would take.
pub(super) fn refused(sentence: &str) -> Error {
    let body = serde_json::json!({ "Errors": [sentence] });
    Error::bad_request(format!("Message: {body}"))
}

fn too_large() -> Error {
    refused(
        "The query makes too large a value of one item. Join fewer strings, or put less into its \
         arrays and objects.",
    )
}

/// An item whose fields were read.
pub(super) struct Loaded<'a> {
    pub(super) fields: Vec<Value>,
    pub(super) item: &'a dyn Item,
    whole: OnceCell<Value>,
}

impl<'a> Loaded<'a> {
    /// An item with all fields of a program.
    pub(super) fn read(fields: &Fields, item: &'a dyn Item, run: &Run) -> Result<Self> {
        let mut loaded = Loaded::stored(fields, item)?;
        fields.computed().iter().try_for_each(|computed| loaded.compute(computed, run))?;
        Ok(loaded)
    }

    /// The same without those that are computed.
    pub(super) fn stored(fields: &Fields, item: &'a dyn Item) -> Result<Self> {
        Ok(Loaded { fields: fields.read(item)?, item, whole: OnceCell::new() })
    }

    /// Adds the fields of a computed property.
    pub(super) fn compute(&mut self, computed: &Computed, run: &Run) -> Result<()> {
        let scope = Scope { run, item: Some(self), bound: None, group: None };
        let value = computed.code.eval(&scope)?.into_owned();
        computed.take(&storable(value), &mut self.fields);
        Ok(())
    }

    fn whole(&self) -> Result<&Value> {
        if let Some(known) = self.whole.get() {
            return Ok(known);
        }
        let mut text = Vec::new();
        self.item.render(&mut text);
        let text = str::from_utf8(&text).map_err(|_| damaged())?;
        let value = read(text).map_err(|_| damaged())?;
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
    pub(super) run: &'a Run,
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

impl Code {
    pub(super) fn eval<'a>(&'a self, scope: &Scope<'a>) -> Evaluated<'a> {
        match self {
            Code::Constant(value) => Ok(Cow::Borrowed(value)),
            Code::Field(field) => Ok(Cow::Borrowed(
                scope.item.and_then(|item| item.fields.get(*field)).unwrap_or(UNDEFINED),
            )),
            Code::Whole => Ok(Cow::Borrowed(scope.item.map_or(Ok(UNDEFINED), Loaded::whole)?)),
            Code::ItemNumber => {
                own(scope.item.map(|item| i64::try_from(item.item.number()).unwrap_or(i64::MAX)))
            }
            Code::Variable(outwards) => Ok(Cow::Borrowed(variable(scope.bound, *outwards))),
            Code::Key(key) => Ok(Cow::Borrowed(
                scope.group.and_then(|group| group.keys.get(*key)).unwrap_or(UNDEFINED),
            )),
            Code::Aggregate(place) => Ok(Cow::Borrowed(
                scope.group.and_then(|group| group.aggregates.get(*place)).unwrap_or(UNDEFINED),
            )),
            Code::Property(of, name) => Ok(match of.eval(scope)? {
                Cow::Borrowed(value) => Cow::Borrowed(value.property(name)),
                Cow::Owned(value) => Cow::Owned(value.property(name).clone()),
            }),
            Code::Element(of, place) => Ok(match of.eval(scope)? {
                Cow::Borrowed(value) => Cow::Borrowed(value.element(*place)),
                Cow::Owned(value) => Cow::Owned(value.element(*place).clone()),
            }),
            Code::Index(of, index) => {
                let (of, index) = (of.eval(scope)?, index.eval(scope)?);
                own(indexed(&of, &index).clone())
            }
            Code::Array(values) => {
                let mut array = Vec::with_capacity(values.len());
                for value in values {
                    let value = value.eval(scope)?;
                    if value.is_defined() {
                        scope.run.make(size(&value))?;
                        array.push(value.into_owned());
                    }
                }
                Ok(Cow::Owned(Value::Array(array)))
            }
            Code::Object(members) => {
                let mut object = Vec::with_capacity(members.len());
                for (name, value) in members {
                    let value = value.eval(scope)?;
                    if value.is_defined() {
                        scope.run.make(name.len() + size(&value))?;
                        object.push((name.clone(), value.into_owned()));
                    }
                }
                Ok(Cow::Owned(Value::Object(object)))
            }
            Code::Unary(sign, operand) => own(unary(*sign, &*operand.eval(scope)?)),
            Code::Or(operands) => logical(operands, true, scope),
            Code::And(operands) => logical(operands, false, scope),
            Code::Coalesce(operands) => {
                for operand in operands {
                    let value = operand.eval(scope)?;
                    if value.is_defined() {
                        return Ok(value);
                    }
                }
                Ok(Cow::Borrowed(UNDEFINED))
            }
            Code::Chain(first, rest) => {
                let mut value = first.eval(scope)?;
                for (operator, operand) in rest {
                    value = Cow::Owned(binary(*operator, &value, &*operand.eval(scope)?));
                    scope.run.make(value.as_str().map_or(0, str::len))?;
                }
                Ok(value)
            }
            Code::Conditional(operands) => {
                let [condition, yes, no] = operands.as_ref();
                if condition.eval(scope)?.is_true() { yes.eval(scope) } else { no.eval(scope) }
            }
            Code::Choose(index, choices) => {
                let place = index.eval(scope)?.as_integer().and_then(|n| n.checked_sub(1));
                let chosen = place.and_then(|n| usize::try_from(n).ok());
                match chosen.and_then(|place| choices.get(place)) {
                    Some(choice) => choice.eval(scope),
                    None => Ok(Cow::Borrowed(UNDEFINED)),
                }
            }
            Code::Between { not, operands } => {
                let [value, low, high] = operands.as_ref();
                let (value, low, high) = (value.eval(scope)?, low.eval(scope)?, high.eval(scope)?);
                let inside = and(
                    compared(&value, &low, Ordering::is_ge),
                    compared(&value, &high, Ordering::is_le),
                );
                own(inside.map(|inside| inside != *not))
            }
            Code::In { not, value, list } => {
                let value = value.eval(scope)?;
                if !value.is_defined() {
                    return Ok(Cow::Borrowed(UNDEFINED));
                }
                scope.run.work(list.len())?;
                for candidate in list {
                    if *candidate.eval(scope)? == *value {
                        return own(!not);
                    }
                }
                own(*not)
            }
            Code::InSet { not, value, set } => {
                let value = value.eval(scope)?;
                let is_in = value.is_defined().then(|| set.contains(&order::key(&value)));
                own(is_in.map(|is_in| is_in != *not))
            }
            Code::LikeConstant { not, value, pattern } => {
                let value = value.eval(scope)?;
                own(value.as_str().map(|text| pattern.matches(text) != *not))
            }
            Code::Like { not, operands, escape } => {
                let [value, pattern] = operands.as_ref();
                let (value, pattern) = (value.eval(scope)?, pattern.eval(scope)?);
                let like = pattern.as_str().and_then(|pattern| Like::new(pattern, *escape));
                let matches = value.as_str().zip(like).map(|(text, like)| like.matches(text));
                own(matches.map(|matches| matches != *not))
            }
            Code::Call(_, body, arguments) => call(*body, arguments, scope),
            Code::Random => own(scope.run.random()),
            Code::Subquery(how, select) => select.value(*how, scope),
        }
    }

    /// Writes its value as JSON. `false`: it is undefined, and nothing was
    /// written.
    pub(super) fn write(&self, scope: &Scope<'_>, out: &mut Vec<u8>) -> Result<bool> {
        match (self, scope.item) {
            (Code::Whole, Some(loaded)) => loaded.item.render(out),
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

fn variable<'a>(mut bound: Option<&'a Bound<'a>>, outwards: usize) -> &'a Value {
    for _ in 0..outwards {
        bound = bound.and_then(|bound| bound.outer);
    }
    bound.map_or(UNDEFINED, |bound| bound.value)
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

fn call<'a>(body: Body, arguments: &'a [Code], scope: &Scope<'a>) -> Evaluated<'a> {
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        values.push(argument.eval(scope)?);
    }
    let cost = values.iter().map(|value| weight(value)).sum::<usize>();
    scope.run.work(1 + cost)?;
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
        match &*operand.eval(scope)? {
            Value::Bool(truth) if *truth == decisive => return own(decisive),
            Value::Bool(_) => {}
            _ => known = false,
        }
    }
    own(known.then_some(!decisive))
}

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn unary(sign: Sign, operand: &Value) -> Value {
    match (sign, operand) {
        (Sign::Not, Value::Bool(truth)) => Value::Bool(!truth),
        (Sign::Minus, Value::Number(number)) => Value::Number(number.negated()),
        (Sign::Plus, Value::Number(number)) => Value::Number(*number),
        (Sign::BitNot, Value::Number(number)) => Value::from(i64::from(!bits(number.double()))),
        _ => Value::Undefined,
    }
}

pub(super) fn binary(operator: Operator, left: &Value, right: &Value) -> Value {
    use Operator as Op;
    match operator {
        Op::Equal | Op::NotEqual => {
            let defined = left.is_defined() && right.is_defined();
            Value::from(defined.then(|| (left == right) == (operator == Op::Equal)))
        }
        Op::Less => compared(left, right, Ordering::is_lt).into(),
        Op::LessOrEqual => compared(left, right, Ordering::is_le).into(),
        Op::Greater => compared(left, right, Ordering::is_gt).into(),
        Op::GreaterOrEqual => compared(left, right, Ordering::is_ge).into(),
        Op::Concat => match (left, right) {
            (Value::String(left), Value::String(right)) => Value::String([&**left, right].concat()),
            _ => Value::Undefined,
        },
        Op::And => and_or(left, right, false),
        Op::Or => and_or(left, right, true),
        Op::Coalesce => if left.is_defined() { left } else { right }.clone(),
        _ => match (left.as_double(), right.as_double()) {
            (Some(left), Some(right)) => arithmetic(operator, left, right),
            _ => Value::Undefined,
        },
    }
}

fn and_or(left: &Value, right: &Value, decisive: bool) -> Value {
    match (left, right) {
        (Value::Bool(truth), _) | (_, Value::Bool(truth)) if *truth == decisive => {
            Value::Bool(decisive)
        }
        (Value::Bool(_), Value::Bool(truth)) => Value::Bool(*truth),
        _ => Value::Undefined,
    }
}

fn compared(left: &Value, right: &Value, fits: fn(Ordering) -> bool) -> Option<bool> {
    if left.kind() == right.kind() && left.as_double().is_some() {
        // What is not a number is neither less nor greater.
        return Some(left.compare(right).is_some_and(fits));
    }
    left.compare(right).map(fits)
}

fn arithmetic(operator: Operator, left: f64, right: f64) -> Value {
    match operator {
        Operator::Add => Value::from(left + right),
        Operator::Subtract => Value::from(left - right),
        Operator::Multiply => Value::from(left * right),
        Operator::Divide => Value::from(left / right),
        Operator::Modulo => Value::from(left % right),
        _ => bitwise(operator, bits(left), bits(right)),
    }
}

fn bitwise(operator: Operator, left: i32, right: i32) -> Value {
    let shift = right.cast_unsigned() & 31;
    Value::from(match operator {
        Operator::BitAnd => i64::from(left & right),
        Operator::BitOr => i64::from(left | right),
        Operator::BitXor => i64::from(left ^ right),
        Operator::ShiftLeft => i64::from(left.wrapping_shl(shift)),
        Operator::ShiftRight => i64::from(left.wrapping_shr(shift)),
        Operator::ShiftRightZero => i64::from(left.cast_unsigned().wrapping_shr(shift)),
        _ => return Value::Undefined,
    })
}

/// The 32 bits of a number, as JavaScript takes them.
fn bits(number: f64) -> i32 {
    if !number.is_finite() {
        return 0;
    }
    let wrapped = number.trunc().rem_euclid(4_294_967_296.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "wrapped above")]
    let bits = wrapped as u32;
    bits.cast_signed()
}
