//! Which partitions a query can find anything in.
//!
//! The filter is read as a set of partial keys: a list of patterns, each with a
//! value or a blank for every path of the partition key.
//!
//! ```text
//! c.a = 1                        [1, _]
//! c.a = 1 AND c.b IN (2, 3)      [1, 2] [1, 3]
//! c.a = 1 OR c.a = 2             [1, _] [2, _]
//! c.a > 1                        [_, _]
//! c.a = 1 AND c.a = 2            nothing
//! ```
//!
//! AND meets every pattern of the one side with every pattern of the other, OR
//! takes both. What is not understood is all blanks. So the set never has less
//! than the filter lets through, and whoever asks it in the end asks the items.

use std::borrow::Cow;
use std::collections::HashSet;

use dayfly_model::epk::{self, Epk};
use dayfly_model::partition_key::{Component, Kind, PartitionKey, PartitionKeyDefinition};
use dayfly_model::value::Value;

use super::constant::Constants;
use crate::request::Parameters;
use crate::tree::{
    Access, Binding, Call, Collection, Expr, ExprKind, Operator, Query, Sign, Source, SourceStep,
};

/// A filter that names more keys than this is not routed by.
pub const KEYS_MAX: usize = 4096;

/// Where a query can find anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routing {
    /// Nowhere: it reads no items, or its filter lets none through.
    Nothing,
    /// In these partitions; a key of a hierarchy may be the begin of one.
    Keys(Vec<PartitionKey>),
    /// Everywhere.
    Everything,
}

/// A part of the hash space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpkRange {
    /// Its first point.
    pub min: Epk,
    /// Its last point, or the point after it.
    pub max: Epk,
    /// Whether `max` belongs to it.
    pub max_inclusive: bool,
}

/// Where the query can find anything, in a container with this partition key.
pub fn routing(
    query: &Query,
    parameters: &Parameters,
    definition: &PartitionKeyDefinition,
) -> Routing {
    let Some(source) = query.sources.first() else { return Routing::Nothing };
    let reader = RouteReader {
        alias: crate::names::name_of(source),
        base: base_of(source),
        constants: Constants::new(parameters),
        definition,
    };
    let set =
        query.filter.as_ref().map_or_else(|| reader.everything(), |filter| reader.set(filter));
    Routing::of(set, definition)
}

impl Routing {
    fn of(set: Set, definition: &PartitionKeyDefinition) -> Routing {
        if set.is_empty() {
            return Routing::Nothing;
        }
        // Only the levels of a hierarchy have places of their own.
        let least = if definition.kind == Kind::MultiHash { 1 } else { definition.paths.len() };
        let known = |pattern: Pattern| -> Vec<Component> {
            pattern.into_iter().map_while(|component| component).collect()
        };
        let keys: HashSet<PartitionKey> =
            set.into_iter().map(|pattern| PartitionKey(known(pattern))).collect();
        if keys.iter().any(|key| key.0.len() < least) {
            return Routing::Everything;
        }
        // What begins like another key is in its range.
        let covered = |key: &PartitionKey| {
            let begins = (1..key.0.len()).filter_map(|length| key.0.get(..length));
            begins.into_iter().any(|begin| keys.contains(&PartitionKey(begin.to_vec())))
        };
        let mut list: Vec<PartitionKey> =
            keys.iter().filter(|key| !covered(key)).cloned().collect();
        list.sort_by_cached_key(PartitionKey::canonical);
        Routing::Keys(list)
    }

    /// The key, if it is one logical partition.
    pub fn one_partition(&self, definition: &PartitionKeyDefinition) -> Option<&PartitionKey> {
        match self {
            Routing::Keys(keys) => match keys.as_slice() {
                [key] if key.0.len() == definition.paths.len() => Some(key),
                _ => None,
            },
            Routing::Nothing | Routing::Everything => None,
        }
    }

    /// The same as parts of the hash space, in order and apart from each other.
    pub fn ranges(&self, definition: &PartitionKeyDefinition) -> Vec<EpkRange> {
        match self {
            Routing::Nothing => Vec::new(),
            Routing::Everything => {
                vec![EpkRange { min: Epk::min(), max: Epk::max(), max_inclusive: false }]
            }
            Routing::Keys(keys) => {
                let mut ranges: Vec<EpkRange> =
                    keys.iter().map(|key| EpkRange::of(key, definition)).collect();
                ranges.sort();
                ranges.dedup();
                ranges
            }
        }
    }
}

impl EpkRange {
    fn of(key: &PartitionKey, definition: &PartitionKeyDefinition) -> EpkRange {
        if key.0.len() < definition.paths.len() {
            let (min, max) = epk::prefix_range(definition, key);
            return EpkRange { min, max, max_inclusive: false };
        }
        let point = epk::of(definition, key);
        EpkRange { min: point.clone(), max: point, max_inclusive: true }
    }
}

/// The way from an item to what the source gives; `None`: it is not one value.
fn base_of(source: &Source) -> Option<Vec<&str>> {
    let Collection::Path { steps, .. } = &source.collection else { return None };
    if matches!(source.binding, Binding::Each(_)) {
        return None;
    }
    let names = steps.iter().map(|step| match step {
        SourceStep::Member(name) | SourceStep::Property(name) => Some(name.as_str()),
        SourceStep::Index(_) => None,
    });
    names.collect()
}

/// A value or a blank for each path.
type Pattern = Vec<Option<Component>>;
/// Any of these.
type Set = Vec<Pattern>;

struct RouteReader<'a> {
    alias: Option<&'a str>,
    base: Option<Vec<&'a str>>,
    constants: Constants<'a>,
    definition: &'a PartitionKeyDefinition,
}

impl RouteReader<'_> {
    fn everything(&self) -> Set {
        vec![vec![None; self.definition.paths.len()]]
    }

    /// The keys of the items for which `filter` may be true.
    fn set(&self, filter: &Expr) -> Set {
        if let Some(value) = self.constants.value(filter) {
            return if value.is_true() { self.everything() } else { Vec::new() };
        }
        match &filter.kind {
            ExprKind::Chain(first, rest) => self.chain(first, rest),
            ExprKind::Path(..) | ExprKind::Identifier(_) => self.equal(filter, &Value::Bool(true)),
            ExprKind::Unary(Sign::Not, operand) => self.equal(operand, &Value::Bool(false)),
            ExprKind::In { not: false, value, list } => self.any(value, list),
            ExprKind::Like { not: false, operands, escape } => {
                let [value, pattern] = operands.as_ref();
                self.like(value, pattern, escape.as_deref())
            }
            ExprKind::Call(call) if !call.udf => self.call(call),
            _ => self.everything(),
        }
    }

    fn chain(&self, first: &Expr, rest: &[(Operator, Expr)]) -> Set {
        match rest {
            [(Operator::And, _), ..] => {
                rest.iter().fold(self.set(first), |set, (_, next)| both(set, self.set(next)))
            }
            [(Operator::Or, _), ..] => {
                let mut all = self.set(first);
                for (_, next) in rest {
                    all.extend(self.set(next));
                    if all.len() > KEYS_MAX {
                        return self.everything();
                    }
                }
                all
            }
            [(Operator::Equal, right)] => self.equality(first, right),
            _ => self.everything(),
        }
    }

    fn equality(&self, left: &Expr, right: &Expr) -> Set {
        let sides = [(left, right), (right, left)];
        let constants = sides
            .into_iter()
            .find_map(|(side, other)| self.constants.value(other).map(|value| (side, value)));
        match constants {
            Some((side, value)) => self.equal(side, &value),
            None => self.everything(),
        }
    }

    /// `side = value`
    fn equal(&self, side: &Expr, value: &Value) -> Set {
        if let Some(path) = self.key_path(side) {
            return component(value)
                .map(|component| self.only(path, component))
                .into_iter()
                .collect();
        }
        match (&side.kind, value) {
            (ExprKind::Call(call), Value::Number(number)) if is(call, "ABS") => {
                let [argument] = call.arguments.as_slice() else { return self.everything() };
                let Some(path) = self.key_path(argument) else { return self.everything() };
                let number = number.double();
                let both = if number > 0.0 { vec![number, -number] } else { vec![number] };
                let values = both.into_iter().filter(|_| number >= 0.0);
                values.map(|number| self.only(path, Component::Number(number))).collect()
            }
            _ => self.everything(),
        }
    }

    fn any(&self, value: &Expr, list: &[Expr]) -> Set {
        let values = list.iter().map(|member| self.constants.value(member).map(Cow::into_owned));
        let values: Option<Vec<Value>> = values.collect();
        values.map_or_else(|| self.everything(), |values| self.one_of(value, &values))
    }

    fn one_of(&self, value: &Expr, values: &[Value]) -> Set {
        match self.key_path(value) {
            Some(path) if values.len() <= KEYS_MAX => {
                let components = values.iter().filter_map(component);
                components.map(|component| self.only(path, component)).collect()
            }
            _ => self.everything(),
        }
    }

    /// A pattern without wildcards is a text.
    fn like(&self, value: &Expr, pattern: &Expr, escape: Option<&str>) -> Set {
        let pattern = self.constants.value(pattern);
        let text = pattern.as_deref().and_then(Value::as_str);
        match text.and_then(|text| plain_text(text, escape)) {
            Some(text) => self.equal(value, &Value::String(text)),
            None => self.everything(),
        }
    }

    fn call(&self, call: &Call) -> Set {
        match call.arguments.as_slice() {
            [value] if is(call, "IS_NULL") => self.one_of(value, &[Value::Null]),
            [value] if is(call, "IS_BOOL") || is(call, "IS_BOOLEAN") => {
                self.one_of(value, &[Value::Bool(false), Value::Bool(true)])
            }
            [list, value] if is(call, "ARRAY_CONTAINS") || is(call, "_TRY_ARRAY_CONTAINS") => {
                match self.constants.value(list).as_deref() {
                    Some(Value::Array(values)) => self.one_of(value, values),
                    _ => self.everything(),
                }
            }
            _ => self.everything(),
        }
    }

    /// Which path of the partition key an expression is.
    fn key_path(&self, expr: &Expr) -> Option<usize> {
        let base = self.base.as_ref()?;
        let (root, steps) = match &expr.kind {
            ExprKind::Path(of, steps) => (of.as_ref(), steps.as_slice()),
            ExprKind::Identifier(_) => (expr, [].as_slice()),
            _ => return None,
        };
        let ExprKind::Identifier(name) = &root.kind else { return None };
        if self.alias != Some(name.as_str()) {
            return None;
        }
        let mut way: Vec<String> = base.iter().map(|name| (*name).to_owned()).collect();
        for step in steps {
            way.push(match step {
                Access::Member(name) => name.clone(),
                Access::Index(index) => self.constants.value(index)?.as_str()?.to_owned(),
            });
        }
        self.definition.paths.iter().position(|path| path.segments() == way)
    }

    /// The keys with this component at that path.
    fn only(&self, path: usize, component: Component) -> Pattern {
        let paths = 0..self.definition.paths.len();
        paths.map(|number| (number == path).then(|| component.clone())).collect()
    }
}

/// What is in one set and in the other; if that is too much, the smaller one.
fn both(left: Set, right: Set) -> Set {
    if left.len().saturating_mul(right.len()) > KEYS_MAX {
        return if left.len() <= right.len() { left } else { right };
    }
    let pairs = left.iter().flat_map(|left| right.iter().map(move |right| (left, right)));
    let met: HashSet<Pattern> = pairs.filter_map(|(left, right)| meet(left, right)).collect();
    met.into_iter().collect()
}

/// What fits both patterns.
fn meet(left: &Pattern, right: &Pattern) -> Option<Pattern> {
    let met = left.iter().zip(right).map(|pair| match pair {
        (Some(left), Some(right)) if left != right => None,
        (Some(known), _) | (None, Some(known)) => Some(Some(known.clone())),
        (None, None) => Some(None),
    });
    met.collect()
}

/// The component of items with this value; `None`: nothing is equal to it. Lists
/// and objects are no keys; they count as undefined, as in the service.
fn component(value: &Value) -> Option<Component> {
    match value {
        Value::Undefined => None,
        Value::Null => Some(Component::Null),
        Value::Bool(truth) => Some(Component::Bool(*truth)),
        Value::Number(number) => Some(Component::Number(number.double())),
        Value::String(text) => Some(Component::String(text.clone())),
        Value::Array(_) | Value::Object(_) => Some(Component::Undefined),
    }
}

fn is(call: &Call, name: &str) -> bool {
    !call.udf && call.name.eq_ignore_ascii_case(name)
}

/// The text that a LIKE pattern stands for, if it has no wildcards.
fn plain_text(pattern: &str, escape: Option<&str>) -> Option<String> {
    let mut text = String::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        let escaped = escape.is_some_and(|escape| escape.chars().eq([c]));
        match c {
            _ if escaped => text.push(rest.next()?),
            '%' | '_' | '[' => return None,
            c => text.push(c),
        }
    }
    Some(text)
}
