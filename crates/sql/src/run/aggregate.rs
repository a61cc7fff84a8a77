//! COUNT, SUM and their like, and the groups they are made for.
//!
//! | over            | nothing defined | numbers | other scalars | arrays, objects |
//! |-----------------|-----------------|---------|---------------|-----------------|
//! | COUNT           | 0               | how many values are defined ||            |
//! | SUM             | 0               | sum     | undefined     | undefined       |
//! | AVG             | undefined       | mean    | undefined     | undefined       |
//! | MIN, MAX        | undefined       | by type, then by value | | undefined      |

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use dayfly_model::Result;
use dayfly_model::value::{Type, Value, order};

use super::budget::Run;

/// What is made of the values of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AggregateKind {
    Average,
    Count,
    CountIf,
    MakeList,
    MakeSet,
    Maximum,
    Minimum,
    Sum,
}

impl AggregateKind {
    /// The aggregate of this name, in any case.
    pub(crate) fn of(name: &str) -> Option<AggregateKind> {
        Some(match name.to_ascii_uppercase().as_str() {
            "AVG" => AggregateKind::Average,
            "COUNT" => AggregateKind::Count,
            "COUNTIF" => AggregateKind::CountIf,
            "MAKELIST" => AggregateKind::MakeList,
            "MAKESET" => AggregateKind::MakeSet,
            "MAX" => AggregateKind::Maximum,
            "MIN" => AggregateKind::Minimum,
            "SUM" => AggregateKind::Sum,
            _ => return None,
        })
    }
}

/// An aggregate on its way.
#[derive(Debug)]
pub(super) enum Tally {
    Count(u64),
    CountIf(u64),
    /// The sum and how many there are; `None` once there was another type.
    Sum(Option<f64>),
    Average(Option<(f64, u64)>),
    /// Which side is wanted, and the value so far; `None` once there was an array
    /// or an object.
    Extreme(Ordering, Option<Value>),
    List(Vec<Value>),
    Set(Vec<Value>, HashSet<Vec<u8>>),
}

impl Tally {
    pub(super) fn new(kind: AggregateKind) -> Tally {
        match kind {
            AggregateKind::Average => Tally::Average(Some((0.0, 0))),
            AggregateKind::Count => Tally::Count(0),
            AggregateKind::CountIf => Tally::CountIf(0),
            AggregateKind::MakeList => Tally::List(Vec::new()),
            AggregateKind::MakeSet => Tally::Set(Vec::new(), HashSet::new()),
            AggregateKind::Maximum => Tally::Extreme(Ordering::Greater, Some(Value::Undefined)),
            AggregateKind::Minimum => Tally::Extreme(Ordering::Less, Some(Value::Undefined)),
            AggregateKind::Sum => Tally::Sum(Some(0.0)),
        }
    }

    /// Adds a value. Returns how many bytes are kept for it, about.
    pub(super) fn add(&mut self, value: &Value) -> usize {
        if !value.is_defined() {
            return 0;
        }
        match self {
            Tally::Count(count) => *count += 1,
            Tally::CountIf(count) => *count += u64::from(value.is_true()),
            Tally::Sum(sum) => {
                *sum = sum.zip(value.as_double()).map(|(sum, number)| sum + number);
            }
            Tally::Average(state) => {
                *state = state
                    .zip(value.as_double())
                    .map(|((sum, count), number)| (sum + number, count + 1));
            }
            Tally::Extreme(wanted, state) => add_extreme(*wanted, state, value),
            Tally::List(list) => {
                list.push(value.clone());
                return kept(&order::key(value));
            }
            Tally::Set(list, seen) => {
                let key = order::key(value);
                let bytes = kept(&key);
                if seen.insert(key) {
                    list.push(value.clone());
                    return 2 * bytes;
                }
            }
        }
        0
    }

    pub(super) fn result(&self) -> Value {
        #[expect(clippy::cast_precision_loss, reason = "a mean is a double")]
        match self {
            Tally::Count(count) | Tally::CountIf(count) => {
                Value::from(i64::try_from(*count).unwrap_or(i64::MAX))
            }
            Tally::Sum(sum) => Value::from(*sum),
            Tally::Average(Some((sum, count))) if *count > 0 => Value::from(sum / *count as f64),
            Tally::Average(_) => Value::Undefined,
            Tally::Extreme(_, state) => state.clone().unwrap_or_default(),
            Tally::List(list) | Tally::Set(list, _) => Value::Array(list.clone()),
        }
    }
}

fn add_extreme(wanted: Ordering, state: &mut Option<Value>, value: &Value) {
    if matches!(value.kind(), Type::Array | Type::Object) {
        *state = None;
        return;
    }
    let Some(best) = state else { return };
    let order = value.kind().cmp(&best.kind());
    let order = order.then(value.compare(best).unwrap_or(Ordering::Equal));
    if !best.is_defined() || order == wanted {
        *best = value.clone();
    }
}

/// What a value costs to keep, about, given its bytes.
pub(super) fn kept(key: &[u8]) -> usize {
    key.len() + 64
}

/// A group: what its rows have in common, and its aggregates.
pub(super) struct Group {
    pub(super) keys: Vec<Value>,
    pub(super) tallies: Vec<Tally>,
}

/// What a row of a group is made from.
pub(super) struct GroupValues {
    pub(super) keys: Vec<Value>,
    pub(super) aggregates: Vec<Value>,
}

/// Groups, in the order in which they were met.
#[derive(Default)]
pub(super) struct Groups {
    known: HashMap<Vec<u8>, usize>,
    groups: Vec<Group>,
}

impl Groups {
    /// The group with these keys, and how many bytes it costs if it is new.
    pub(super) fn find(
        &mut self,
        keys: Vec<Value>,
        kinds: &[AggregateKind],
        run: &Run<'_>,
    ) -> Result<(Option<&mut Group>, usize)> {
        let mut key = Vec::new();
        for value in &keys {
            order::write(value, &mut key);
        }
        run.pass(key.len())?;
        if let Some(at) = self.known.get(&key) {
            return Ok((self.groups.get_mut(*at), 0));
        }
        let bytes = 2 * kept(&key) + 64 * kinds.len();
        self.add(key, keys, kinds);
        Ok((self.groups.last_mut(), bytes))
    }

    /// The one group of a query that has no keys.
    pub(super) fn start(&mut self, kinds: &[AggregateKind]) {
        self.add(Vec::new(), Vec::new(), kinds);
    }

    fn add(&mut self, key: Vec<u8>, keys: Vec<Value>, kinds: &[AggregateKind]) {
        self.known.insert(key, self.groups.len());
        let tallies = kinds.iter().map(|kind| Tally::new(*kind)).collect();
        self.groups.push(Group { keys, tallies });
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = GroupValues> {
        self.groups.into_iter().map(|group| GroupValues {
            aggregates: group.tallies.iter().map(Tally::result).collect(),
            keys: group.keys,
        })
    }
}
