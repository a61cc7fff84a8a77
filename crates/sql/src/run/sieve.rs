//! What an index can say of the items that a query wants.
//!
//! A sieve is made from the filter: spans of values at paths, which an item must
//! have for the filter to be true of one of its rows. It lets through more than
//! the filter, never less; what comes through is judged by the filter itself.
//!
//! ```text
//! c.a = 1 AND c.b > 2             /a in {1}, and /b above 2
//! c.a IN (1, 2) OR c.b = 3        /a in {1}, or /a in {2}, or /b in {3}
//! ARRAY_CONTAINS(c.tags, "x")     /tags/[] in {"x"}
//! JOIN t IN c.tags .. t.n = 1     /tags/[]/n in {1}
//! UPPER(c.a) = "X"                all items
//! ```

use dayfly_model::value::{Type, Value, order};

use super::aggregate::AggregateKind;
use super::extract::FieldStep;
use super::program::{Code, Program, RowSource, Select};
use crate::tree::{Operator, Sign, Use};

/// How many alternatives are told apart; with more, all items are looked at.
const ALTERNATIVES_MAX: usize = 1_000;

/// What an item must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sieve {
    /// Nothing is known.
    All,
    /// No item can have it.
    Nothing,
    /// A value at a path.
    Span(ValueSpan),
    /// All of them.
    And(Vec<Sieve>),
    /// At least one.
    Or(Vec<Sieve>),
}

/// Values at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSpan {
    /// The path.
    pub path: Vec<IndexStep>,
    /// The bytes of the first value, in the order of all values.
    pub low: Vec<u8>,
    /// The first bytes past the last value.
    pub high: Vec<u8>,
    /// Whether there is one value only.
    pub is_point: bool,
    /// Whether the filter is true of exactly these values.
    pub exact: bool,
}

/// One step to an indexed value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IndexStep {
    /// Into a property.
    Name(String),
    /// Into each element of an array.
    Items,
}

/// What an aggregate asks of an index that can answer it alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// How many items there are, or how many have something at a path.
    Count(Option<Vec<IndexStep>>),
    /// The least value at a path.
    Minimum(Vec<IndexStep>),
    /// The greatest value at a path.
    Maximum(Vec<IndexStep>),
}

impl Program {
    /// What an item must have to be of any use.
    pub fn sieve(&self) -> Sieve {
        SieveReader { program: self, places: Vec::new() }.select(self.innermost())
    }

    /// Whether it has a filter.
    pub fn is_filtered(&self) -> bool {
        self.select.filter.is_some()
    }

    /// Whether items are asked anything before they make rows.
    pub fn filters_items(&self) -> bool {
        self.innermost().filter.is_some()
    }

    /// What its aggregates ask, if they are about whole items and nothing else is
    /// selected.
    pub fn facts(&self) -> Option<Vec<Fact>> {
        let select = &self.select;
        let of_items = self.stages.is_empty() && select.sources.is_empty();
        if !of_items || !select.group_by.is_empty() || self.distinct {
            return None;
        }
        let reader = SieveReader { program: self, places: Vec::new() };
        let single =
            |code: &Code| reader.place(code).filter(|path| !path.contains(&IndexStep::Items));
        let fact = |(kind, code): &(AggregateKind, Code)| match kind {
            AggregateKind::Count if code.as_constant().is_some_and(Value::is_defined) => {
                Some(Fact::Count(None))
            }
            AggregateKind::Count if matches!(code, Code::Whole) => Some(Fact::Count(None)),
            AggregateKind::Count => single(code).map(|path| Fact::Count(Some(path))),
            AggregateKind::Minimum => single(code).map(Fact::Minimum),
            AggregateKind::Maximum => single(code).map(Fact::Maximum),
            _ => None,
        };
        let facts: Option<Vec<Fact>> = select.aggregates.iter().map(fact).collect();
        facts.filter(|facts| !facts.is_empty())
    }
}

impl ValueSpan {
    fn new(path: &[IndexStep], low: Vec<u8>, high: Vec<u8>) -> ValueSpan {
        // An item has several values in an array, and a filter may mean one
        // place of it.
        let exact = !path.contains(&IndexStep::Items);
        ValueSpan { path: path.to_vec(), low, high, is_point: false, exact }
    }

    fn point(path: &[IndexStep], value: &Value) -> ValueSpan {
        let low = order::key(value);
        let high = past(low.clone());
        ValueSpan { is_point: true, ..ValueSpan::new(path, low, high) }
    }

    fn of_type(path: &[IndexStep], kind: Type) -> ValueSpan {
        let (low, high) = order::bounds(kind);
        ValueSpan::new(path, vec![low], vec![high])
    }

    /// The same, when the filter is true of some of the values only.
    fn inexact(self) -> ValueSpan {
        ValueSpan { exact: false, ..self }
    }

    /// Whether each item has at most one value there.
    fn is_single(&self) -> bool {
        !self.path.contains(&IndexStep::Items)
    }
}

/// The first bytes that do not start with these.
pub(super) fn past(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.pop_if(|byte| *byte == 0xFF).is_some() {}
    if let Some(last) = bytes.last_mut() {
        *last += 1;
    }
    bytes
}

/// Where a variable comes from, if an index can know it.
pub(super) type VariablePath = Option<Vec<IndexStep>>;

pub(super) struct SieveReader<'p> {
    program: &'p Program,
    /// Of the variables that are bound, the innermost last.
    places: Vec<VariablePath>,
}

impl<'p> SieveReader<'p> {
    /// One that knows the sources of a select.
    pub(super) fn over(program: &'p Program, select: &Select) -> Self {
        let mut reader = SieveReader { program, places: Vec::new() };
        reader.bind(select);
        reader
    }

    fn bind(&mut self, select: &Select) {
        for source in &select.sources {
            let place = match source {
                RowSource::Value(code) => self.place(code),
                RowSource::Elements(code) => self.place(code).map(|mut path| {
                    path.push(IndexStep::Items);
                    path
                }),
                RowSource::Rows(_) | RowSource::RowElements(_) => None,
            };
            self.places.push(place);
        }
    }

    /// What an item must have for a select to have a row.
    fn select(&mut self, select: &Select) -> Sieve {
        let before = self.places.len();
        self.bind(select);
        let sieve = match &select.filter {
            Some(filter) if !select.negated => self.truth(filter, true),
            _ => Sieve::All,
        };
        self.places.truncate(before);
        sieve
    }

    /// The path of what an expression stands for.
    pub(super) fn place(&self, code: &Code) -> VariablePath {
        match code {
            Code::Field(field) => Some(self.program.fields.path(*field).iter().map(step).collect()),
            Code::Variable(outwards) => {
                let at = self.places.len().checked_sub(outwards + 1)?;
                self.places.get(at)?.clone()
            }
            Code::Property(of, name) => {
                let mut path = self.place(of)?;
                path.push(IndexStep::Name(name.clone()));
                Some(path)
            }
            Code::Element(of, _) => {
                let mut path = self.place(of)?;
                path.push(IndexStep::Items);
                Some(path)
            }
            _ => None,
        }
    }

    /// What an item must have for an expression to be exactly `truth`.
    fn truth(&mut self, code: &Code, truth: bool) -> Sieve {
        match code {
            Code::Constant(value) => match value {
                Value::Bool(constant) if *constant == truth => Sieve::All,
                _ => Sieve::Nothing,
            },
            Code::And(operands) if truth => all_of(self.truths(operands, truth)),
            Code::And(operands) => one_of(self.truths(operands, truth)),
            Code::Or(operands) if truth => one_of(self.truths(operands, truth)),
            Code::Or(operands) => all_of(self.truths(operands, truth)),
            Code::Unary(Sign::Not, operand) => self.truth(operand, !truth),
            Code::Chain(left, rest) => match rest.as_slice() {
                [(operator, right)] => self.compared(left, *operator, right, truth),
                _ => Sieve::All,
            },
            Code::Between { not, operands } if *not != truth => {
                let [value, low, high] = operands.as_ref();
                all_of(vec![
                    self.compared(value, Operator::GreaterOrEqual, low, true),
                    self.compared(value, Operator::LessOrEqual, high, true),
                ])
            }
            Code::InSet { not, value, set } if *not != truth => {
                let Some(path) = self.place(value) else { return Sieve::All };
                one_of(set.iter().map(|key| point_of(&path, key)).collect())
            }
            Code::LikeConstant { not, value, pattern } if *not != truth => {
                let Some(path) = self.place(value) else { return Sieve::All };
                match pattern.literal() {
                    Some(text) => Sieve::Span(ValueSpan::point(&path, &Value::from(text))),
                    None => Sieve::Span(starting_with(&path, &pattern.prefix()).inexact()),
                }
            }
            Code::Call(name, _, arguments) if truth => self.called(name, arguments),
            Code::Subquery(Use::Exists, select) if truth && !select.is_grouped() => {
                self.select(select)
            }
            Code::Field(_) | Code::Variable(_) | Code::Property(..) | Code::Element(..) => {
                let point =
                    |path: Vec<_>| Sieve::Span(ValueSpan::point(&path, &Value::Bool(truth)));
                self.place(code).map_or(Sieve::All, point)
            }
            _ => Sieve::All,
        }
    }

    fn truths(&mut self, operands: &[Code], truth: bool) -> Vec<Sieve> {
        operands.iter().map(|operand| self.truth(operand, truth)).collect()
    }

    fn compared(&mut self, left: &Code, operator: Operator, right: &Code, truth: bool) -> Sieve {
        let (code, operator, constant) = match (left.as_constant(), right.as_constant()) {
            (None, Some(constant)) => (left, operator, constant),
            (Some(constant), None) => (right, mirrored(operator), constant),
            _ => return Sieve::All,
        };
        let Some(path) = self.place(code) else { return Sieve::All };
        let is_order = !matches!(operator, Operator::Equal | Operator::NotEqual);
        if is_order && constant.as_double().is_some_and(f64::is_nan) {
            // It is neither less nor greater than any number.
            let numbers = Sieve::Span(ValueSpan::of_type(&path, Type::Number));
            return if truth { Sieve::Nothing } else { numbers };
        }
        let operator = match (truth, operator) {
            (true, operator) => operator,
            (false, Operator::Equal) => Operator::NotEqual,
            (false, Operator::NotEqual) => Operator::Equal,
            (false, Operator::Less) => Operator::GreaterOrEqual,
            (false, Operator::LessOrEqual) => Operator::Greater,
            (false, Operator::Greater) => Operator::LessOrEqual,
            (false, Operator::GreaterOrEqual) => Operator::Less,
            _ => return Sieve::All,
        };
        span(&path, operator, constant)
    }

    pub(super) fn called(&mut self, name: &str, arguments: &[Code]) -> Sieve {
        let Some((first, rest)) = arguments.split_first() else { return Sieve::All };
        let constants: Option<Vec<&Value>> = rest.iter().map(Code::as_constant).collect();
        if let ("ARRAY_CONTAINS" | "_TRY_ARRAY_CONTAINS", Some(Value::Array(values)), [needle]) =
            (name, first.as_constant(), rest)
        {
            let Some(path) = self.place(needle) else { return Sieve::All };
            let points = values.iter().map(|value| span(&path, Operator::Equal, value));
            return one_of(points.collect());
        }
        let (Some(mut path), Some(constants)) = (self.place(first), constants) else {
            return Sieve::All;
        };
        match (name, constants.as_slice()) {
            ("STARTSWITH", [Value::String(start)] | [Value::String(start), Value::Bool(false)]) => {
                Sieve::Span(starting_with(&path, start))
            }
            (
                "STRINGEQUALS",
                [text @ Value::String(_)] | [text @ Value::String(_), Value::Bool(false)],
            ) => Sieve::Span(ValueSpan::point(&path, text)),
            ("ARRAY_CONTAINS" | "_TRY_ARRAY_CONTAINS", [value] | [value, Value::Bool(false)]) => {
                path.push(IndexStep::Items);
                span(&path, Operator::Equal, value)
            }
            ("CONTAINS" | "ENDSWITH" | "REGEXMATCH" | "STARTSWITH" | "STRINGEQUALS", _) => {
                Sieve::Span(ValueSpan::of_type(&path, Type::String).inexact())
            }
            ("IS_DEFINED", []) => Sieve::Span(defined(&path)),
            ("IS_NULL", []) => Sieve::Span(ValueSpan::of_type(&path, Type::Null)),
            ("IS_BOOL" | "IS_BOOLEAN", []) => Sieve::Span(ValueSpan::of_type(&path, Type::Bool)),
            ("IS_NUMBER", []) => Sieve::Span(ValueSpan::of_type(&path, Type::Number)),
            ("IS_STRING", []) => Sieve::Span(ValueSpan::of_type(&path, Type::String)),
            ("IS_ARRAY", []) => Sieve::Span(ValueSpan::of_type(&path, Type::Array)),
            ("IS_OBJECT", []) => Sieve::Span(ValueSpan::of_type(&path, Type::Object)),
            _ => Sieve::All,
        }
    }
}

fn step(step: &FieldStep) -> IndexStep {
    match step {
        FieldStep::Name(name) => IndexStep::Name(name.clone()),
        FieldStep::Place(_) => IndexStep::Items,
    }
}

/// The operator that says the same with its sides exchanged.
fn mirrored(operator: Operator) -> Operator {
    match operator {
        Operator::Less => Operator::Greater,
        Operator::LessOrEqual => Operator::GreaterOrEqual,
        Operator::Greater => Operator::Less,
        Operator::GreaterOrEqual => Operator::LessOrEqual,
        other => other,
    }
}

fn defined(path: &[IndexStep]) -> ValueSpan {
    ValueSpan::new(path, vec![order::bounds(Type::Null).0], vec![order::PAST])
}

fn starting_with(path: &[IndexStep], start: &str) -> ValueSpan {
    let mut low = Vec::new();
    order::write_text_start(start, &mut low);
    let high = past(low.clone());
    ValueSpan::new(path, low, high)
}

/// The point of a value of which the bytes are known.
fn point_of(path: &[IndexStep], key: &[u8]) -> Sieve {
    let compound = key.first().is_some_and(|kind| *kind >= order::bounds(Type::Array).0);
    if compound {
        let kind = if key.first() == Some(&order::bounds(Type::Array).0) {
            Type::Array
        } else {
            Type::Object
        };
        return Sieve::Span(ValueSpan::of_type(path, kind).inexact());
    }
    let high = past(key.to_vec());
    Sieve::Span(ValueSpan { is_point: true, ..ValueSpan::new(path, key.to_vec(), high) })
}

/// The values that compare so with a constant.
fn span(path: &[IndexStep], operator: Operator, constant: &Value) -> Sieve {
    let kind = constant.kind();
    let scalar = !matches!(kind, Type::Undefined | Type::Array | Type::Object);
    let (first, last) = order::bounds(kind);
    let key = order::key(constant);
    let whole = |low, high| Sieve::Span(ValueSpan::new(path, low, high));
    match operator {
        Operator::Equal | Operator::NotEqual if kind == Type::Undefined => Sieve::Nothing,
        Operator::Equal => point_of(path, &key),
        Operator::NotEqual => Sieve::Span(defined(path).inexact()),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual
            if !scalar =>
        {
            Sieve::Nothing
        }
        Operator::Less => whole(vec![first], key),
        Operator::LessOrEqual => whole(vec![first], past(key)),
        Operator::Greater => whole(past(key), vec![last]),
        Operator::GreaterOrEqual => whole(key, vec![last]),
        _ => Sieve::All,
    }
}

/// An item must have all of them. Spans of one value are one span.
fn all_of(sieves: Vec<Sieve>) -> Sieve {
    // What an index does not know makes all of it a guess.
    let guess = sieves.contains(&Sieve::All);
    let mut all: Vec<Sieve> = Vec::new();
    for sieve in sieves {
        match sieve {
            Sieve::Nothing => return Sieve::Nothing,
            Sieve::All => {}
            Sieve::Span(span) if guess => all.push(Sieve::Span(span.inexact())),
            Sieve::And(members) => all.extend(members),
            other => all.push(other),
        }
    }
    let mut joined: Vec<Sieve> = Vec::new();
    for sieve in all {
        let Sieve::Span(span) = &sieve else {
            joined.push(sieve);
            continue;
        };
        let same = joined.iter_mut().find_map(|known| match known {
            Sieve::Span(known) if known.path == span.path && span.is_single() => Some(known),
            _ => None,
        });
        match same {
            Some(known) => narrow(known, span),
            None => joined.push(sieve),
        }
    }
    if joined.iter().any(is_empty) {
        return Sieve::Nothing;
    }
    match joined.len() {
        0 => Sieve::All,
        1 => joined.remove(0),
        _ => Sieve::And(joined),
    }
}

fn narrow(known: &mut ValueSpan, other: &ValueSpan) {
    if other.low > known.low {
        known.low.clone_from(&other.low);
    }
    if other.high < known.high {
        known.high.clone_from(&other.high);
    }
    known.is_point |= other.is_point;
    known.exact &= other.exact;
}

fn is_empty(sieve: &Sieve) -> bool {
    matches!(sieve, Sieve::Span(span) if span.low >= span.high)
}

/// An item must have one of them.
fn one_of(sieves: Vec<Sieve>) -> Sieve {
    let mut alternatives: Vec<Sieve> = Vec::new();
    for sieve in sieves {
        match sieve {
            Sieve::All => return Sieve::All,
            Sieve::Nothing => {}
            Sieve::Or(members) => alternatives.extend(members),
            other => alternatives.push(other),
        }
    }
    match alternatives.len() {
        0 => Sieve::Nothing,
        1 => alternatives.remove(0),
        2..=ALTERNATIVES_MAX => Sieve::Or(alternatives),
        _ => Sieve::All,
    }
}
