//! A query, ready to run: names are places, parameters are values, functions are
//! functions.

use std::collections::HashSet;

use dayfly_model::value::Value;

use super::aggregate::AggregateKind;
use super::extract::Fields;
use super::sieve::IndexStep;
use super::stage::Stage;
use crate::functions::{Body, Like};
use crate::tree::{Direction, Operator, Sign, Use};

/// A query that can be run.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Program {
    /// What its rows are made from, if not from items; the innermost first.
    pub(super) stages: Vec<Stage>,
    pub(super) select: Select,
    /// The paths of items that it reads.
    pub(super) fields: Fields,
    pub(super) distinct: bool,
    pub(super) order: Vec<OrderKey>,
    /// Whether equal rows have equal sort values, since these are selected.
    pub(super) order_is_selected: bool,
    /// By what groups are sorted.
    pub(super) group_order: Vec<OrderKey>,
    /// How many rows are left out before the first.
    pub(super) skip: u64,
    /// How many rows there are at most.
    pub(super) take: Option<u64>,
    /// Whether it reads the container at all.
    pub(super) reads_items: bool,
    /// Whether it calls a function that may ask for the time.
    pub(super) may_know_time: bool,
}

/// A member of ORDER BY.
pub struct OrderKey {
    pub(super) code: Code,
    pub(super) direction: Direction,
    /// The names to go through in an item, if it is that simple.
    pub path: Option<Vec<String>>,
    /// The way in an item as an index has it: through names and elements of arrays.
    pub steps: Option<Vec<IndexStep>>,
}

impl OrderKey {
    /// Whether the greatest comes first.
    pub fn descends(&self) -> bool {
        self.direction == Direction::Descending
    }
}

/// How the rows of a query come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Each item has its rows, in the order in which items are brought.
    Stream,
    /// The same, but in an order of its own.
    Sort,
    /// Only when all items were seen: groups, aggregates, DISTINCT.
    Whole,
}

impl Program {
    /// How its rows come about.
    pub fn style(&self) -> Style {
        if self.stages.is_empty() { self.outermost_style() } else { Style::Whole }
    }

    /// How its rows come about from what is brought to its outermost select.
    pub(super) fn outermost_style(&self) -> Style {
        if self.select.is_grouped() || self.distinct {
            Style::Whole
        } else if self.order.is_empty() {
            Style::Stream
        } else {
            Style::Sort
        }
    }

    /// Whether what a row is tells its place in the answer.
    pub(super) fn is_place_told(&self) -> bool {
        self.order_is_selected && !self.order.is_empty()
    }

    /// Whether it reads the container at all; `SELECT 1` does not.
    pub fn reads_items(&self) -> bool {
        self.reads_items
    }

    /// Whether it may say something else of the same item at another time. One of which this
    /// is not true says the same as long as the item is the same, but for `RAND`.
    pub fn may_know_time(&self) -> bool {
        self.may_know_time
    }

    /// Whether a subquery after FROM needs all items before its first row.
    pub fn has_stages(&self) -> bool {
        !self.stages.is_empty()
    }

    /// Whether it asks anything of the items' values.
    pub fn asks_of_values(&self) -> bool {
        self.select.filter.as_ref().is_some_and(|filter| filter.as_constant().is_none())
    }

    /// Whether its one row is the value of an aggregate: `SELECT VALUE MAX(..)`.
    pub fn is_one_aggregate(&self) -> bool {
        let is_alone = self.select.group_by.is_empty() && self.select.aggregates.len() == 1;
        let is_shown = self.skip == 0 && self.take != Some(0);
        is_alone && is_shown && matches!(self.select.projection, Code::Aggregate(_))
    }

    /// What it sorts by.
    pub fn order(&self) -> &[OrderKey] {
        &self.order
    }
}

/// A `SELECT`, the query itself or one inside it.
pub(super) struct Select {
    pub(super) sources: Vec<RowSource>,
    pub(super) filter: Option<Code>,
    /// Rows are those for which the filter is exactly false: `ALL`.
    pub(super) negated: bool,
    pub(super) group_by: Vec<Code>,
    pub(super) aggregates: Vec<(AggregateKind, Code)>,
    pub(super) distinct: bool,
    pub(super) projection: Code,
}

impl Select {
    pub(super) fn is_grouped(&self) -> bool {
        !self.group_by.is_empty() || !self.aggregates.is_empty()
    }
}

/// A member of FROM that makes rows.
pub(super) enum RowSource {
    /// The value itself, if it is defined.
    Value(Code),
    /// Each element of an array.
    Elements(Code),
    /// Each row of a query.
    Rows(Box<Select>),
    /// Each element of the arrays that are the rows of a query.
    RowElements(Box<Select>),
}

/// An expression.
pub(super) enum Code {
    Constant(Value),
    /// What stands at one of the paths of the program, in the item.
    Field(usize),
    /// The item.
    Whole,
    /// The number of the item.
    ItemNumber,
    /// What a source is bound to, so many bindings outwards.
    Variable(usize),
    /// A member of GROUP BY.
    Key(usize),
    Aggregate(usize),
    Property(Box<Code>, String),
    Element(Box<Code>, usize),
    /// `x[y]`
    Index(Box<Code>, Box<Code>),
    Array(Vec<Code>),
    Object(Vec<(String, Code)>),
    Unary(Sign, Box<Code>),
    Or(Vec<Code>),
    And(Vec<Code>),
    Coalesce(Vec<Code>),
    Chain(Box<Code>, Vec<(Operator, Code)>),
    /// `a ? b : c`
    Conditional(Box<[Code; 3]>),
    /// `CHOOSE(n, a, b)`
    Choose(Box<Code>, Vec<Code>),
    Between {
        not: bool,
        operands: Box<[Code; 3]>,
    },
    In {
        not: bool,
        value: Box<Code>,
        list: Vec<Code>,
    },
    /// `IN` a list of constants, by their bytes.
    InSet {
        not: bool,
        value: Box<Code>,
        set: HashSet<Vec<u8>>,
    },
    /// With a pattern that is a constant.
    LikeConstant {
        not: bool,
        value: Box<Code>,
        pattern: Box<Like>,
    },
    Like {
        not: bool,
        operands: Box<[Code; 2]>,
        escape: Option<char>,
    },
    Call(&'static str, Body, Vec<Code>),
    Random,
    Subquery(Use, Box<Select>),
}
