//! A query, answered the simple way: every item, every row, straight from the
//! tree. It knows nothing of indexes, pages or speed.

pub(super) mod functions;
mod shown;

use std::cmp::Ordering;

use dayfly_model::value::{Value, order};
use dayfly_sql::Request;
use dayfly_sql::tree::{
    Access, Amount, Binding, Collection, Count, Direction, Expr, ExprKind, Literal, Operator,
    Projection, Query, SelectItem, Sign, Source, SourceStep, Use,
};

pub(super) use self::shown::shown;

/// An item, and where it stands among items that are sorted alike.
pub(super) struct Document {
    pub(super) value: Value,
    /// The same with the properties that are computed, for whoever names one.
    pub(super) shown: Value,
    pub(super) tie: (usize, u64),
}

/// What a query should answer.
#[derive(Clone)]
pub(super) struct Answer {
    /// All its rows in their order, before OFFSET, LIMIT and TOP.
    pub(super) rows: Vec<Value>,
    /// By which bytes each is sorted, what falls turned around.
    pub(super) keys: Vec<Vec<Vec<u8>>>,
    pub(super) skip: usize,
    pub(super) take: Option<usize>,
}

impl Answer {
    /// The rows that are given.
    pub(super) fn expected(&self) -> impl Iterator<Item = &Value> + Clone {
        self.rows.iter().skip(self.skip).take(self.take.unwrap_or(usize::MAX))
    }

    /// The rows from some sort values on, or only those behind them.
    pub(super) fn from(&self, start: &Vec<Vec<u8>>, exclude: bool) -> Answer {
        let rows = self.keys.iter().cloned().zip(self.rows.iter().cloned());
        let wanted = |(keys, _): &(Vec<Vec<u8>>, Value)| keys > start || !exclude && keys == start;
        let (keys, rows) = rows.filter(wanted).unzip();
        Answer { rows, keys, ..self.clone() }
    }
}

/// Names and what they are bound to.
type Names = Vec<Named>;

#[derive(Clone)]
struct Named {
    name: String,
    value: Value,
    /// What its properties are, if some of them are computed.
    shown: Option<Value>,
}

/// What an expression sees: the names of a row; of a group its rows, too.
#[derive(Clone, Copy)]
struct View<'a> {
    names: &'a Names,
    group: Option<&'a [Names]>,
}

/// A row: where it is sorted, and what it is.
struct Row {
    keys: Vec<Vec<u8>>,
    tie: (usize, u64, usize),
    value: Value,
}

/// Answers a query over all items there are, in the order in which they come.
pub(super) fn answer(request: &Request, documents: &[Document]) -> Answer {
    let naive = Naive { request };
    let query = &request.query;
    let mut rows = naive.rows(query, documents);
    let directions: Vec<_> =
        query.order_by.iter().flat_map(|order| &order.keys).map(|key| key.direction).collect();
    for row in &mut rows {
        row.turn(&directions);
    }
    if query.order_by.is_some() {
        rows.sort_by(|left, right| compare(&directions, left, right));
    }
    if query.distinct {
        let mut seen = std::collections::HashSet::new();
        rows.retain(|row| seen.insert(order::key(&row.value)));
    }
    let (keys, values) = rows.into_iter().map(|row| (row.keys, row.value)).unzip();
    let page = query.page.as_ref();
    let take = page.map(|page| naive.count(&page.limit));
    Answer {
        rows: values,
        keys,
        skip: page.map_or(0, |page| naive.count(&page.offset)),
        take: take.into_iter().chain(query.top.as_ref().map(|top| naive.count(top))).min(),
    }
}

impl Row {
    /// Turns the keys around that fall.
    fn turn(&mut self, directions: &[Option<Direction>]) {
        for (key, direction) in self.keys.iter_mut().zip(directions) {
            if *direction == Some(Direction::Descending) {
                *key = key.iter().map(|byte| !byte).collect();
            }
        }
    }
}

/// By the keys; among equals by the item, backwards if the first key is; then by
/// the row of the item.
fn compare(directions: &[Option<Direction>], left: &Row, right: &Row) -> Ordering {
    let by_item = left.tie.1.cmp(&right.tie.1);
    let by_item = match directions.first() {
        Some(Some(Direction::Descending)) => by_item.reverse(),
        _ => by_item,
    };
    let by_slice = left.tie.0.cmp(&right.tie.0);
    left.keys.cmp(&right.keys).then(by_slice).then(by_item).then(left.tie.2.cmp(&right.tie.2))
}

fn distinct(values: Vec<Value>) -> Vec<Value> {
    let mut seen = std::collections::HashSet::new();
    values.into_iter().filter(|value| seen.insert(order::key(value))).collect()
}

struct Naive<'q> {
    request: &'q Request,
}

impl Naive<'_> {
    fn count(&self, count: &Count) -> usize {
        match &count.amount {
            Amount::Number(number) => *number as usize,
            Amount::Parameter(name) => {
                usize::try_from(self.parameter(name).as_integer().unwrap()).unwrap()
            }
        }
    }

    fn parameter(&self, name: &str) -> Value {
        let given = self.request.parameters.get(name).and_then(Option::as_ref);
        given.map_or(Value::Undefined, |json| serde_json::from_value(json.clone()).unwrap())
    }

    fn rows(&self, query: &Query, documents: &[Document]) -> Vec<Row> {
        if query.sources.is_empty() {
            let names = Names::new();
            let value = self.project(query, View { names: &names, group: None });
            return vec![Row { keys: Vec::new(), tie: (0, 0, 0), value }];
        }
        let mut bound = Vec::new();
        for document in documents {
            let rows = self.bind(query, &Names::new(), Some(document));
            let (slice, number) = document.tie;
            bound.extend((0..).zip(rows).map(|(place, names)| ((slice, number, place), names)));
        }
        let rows: Vec<Row> = if is_grouped(query) {
            let names = bound.into_iter().map(|(_, names)| names).collect();
            let row = |(keys, value)| Row { keys, tie: (0, 0, 0), value };
            self.groups(query, names).into_iter().map(row).collect()
        } else {
            let keys = query.order_by.iter().flat_map(|order| &order.keys);
            let keys: Vec<&Expr> = keys.map(|key| &key.expr).collect();
            let row = |(tie, names): ((usize, u64, usize), Names)| {
                let view = View { names: &names, group: None };
                let keys = keys.iter().map(|key| order::key(&self.eval(key, view))).collect();
                Row { keys, tie, value: self.project(query, view) }
            };
            bound.into_iter().map(row).collect()
        };
        rows.into_iter().filter(|row| row.value.is_defined()).collect()
    }

    /// The rows of a subquery.
    fn values(&self, query: &Query, outside: &Names, item: Option<&Document>) -> Vec<Value> {
        let bound = self.bind(query, outside, item);
        let values: Vec<Value> = if is_grouped(query) {
            self.groups(query, bound).into_iter().map(|(_, value)| value).collect()
        } else {
            let value = |names: &Names| self.project(query, View { names, group: None });
            bound.iter().map(value).collect()
        };
        let values = values.into_iter().filter(Value::is_defined).collect();
        if query.distinct { distinct(values) } else { values }
    }

    /// FROM, JOIN and WHERE.
    fn bind(&self, query: &Query, outside: &Names, item: Option<&Document>) -> Vec<Names> {
        let mut rows = vec![outside.clone()];
        for source in &query.sources {
            let name = name_of(source);
            let mut longer = Vec::new();
            for row in rows {
                for (value, shown) in self.source(source, &row, item) {
                    let named = Named { name: name.clone(), value, shown };
                    longer.push([row.clone(), vec![named]].concat());
                }
            }
            rows = longer;
        }
        rows.retain(|names| {
            let view = View { names, group: None };
            query.filter.as_ref().is_none_or(|filter| self.eval(filter, view).is_true())
        });
        rows
    }

    /// The values of a source, and what their properties are if some are computed.
    fn source(
        &self,
        source: &Source,
        names: &Names,
        item: Option<&Document>,
    ) -> Vec<(Value, Option<Value>)> {
        let values = match &source.collection {
            Collection::Path { root, steps } => {
                let bound = names.iter().rev().find(|bound| bound.name == *root);
                let (whole, shown) = match (bound, item) {
                    (Some(bound), _) => (&bound.value, bound.shown.as_ref()),
                    (None, item) => item.map(|item| (&item.value, Some(&item.shown))).unwrap(),
                };
                if steps.is_empty() && !matches!(source.binding, Binding::Each(_)) {
                    return vec![(whole.clone(), shown.cloned())];
                }
                vec![steps.iter().fold(shown.unwrap_or(whole).clone(), |value, step| match step {
                    SourceStep::Member(name) | SourceStep::Property(name) => {
                        value.property(name).clone()
                    }
                    SourceStep::Index(place) => {
                        value.element(usize::try_from(*place).unwrap()).clone()
                    }
                })]
            }
            Collection::Subquery(query) => self.values(query, names, item),
            Collection::Call(call) => panic!("no such source is made: {call:?}"),
        };
        let each = matches!(source.binding, Binding::Each(_));
        let values = values.into_iter().flat_map(|value| match value {
            Value::Array(elements) if each => elements,
            _ if each => Vec::new(),
            value => vec![value],
        });
        values.filter(Value::is_defined).map(|value| (value, None)).collect()
    }

    /// The rows of groups, and by which bytes each is sorted.
    fn groups(&self, query: &Query, rows: Vec<Names>) -> Vec<(Vec<Vec<u8>>, Value)> {
        let mut groups: Vec<(Vec<Vec<u8>>, Vec<Names>)> = Vec::new();
        if query.group_by.is_empty() {
            groups.push((Vec::new(), Vec::new()));
        }
        for names in rows {
            let view = View { names: &names, group: None };
            let key = |expr| order::key(&self.eval(expr, view));
            let keys: Vec<_> = query.group_by.iter().map(key).collect();
            match groups.iter_mut().find(|(known, _)| *known == keys) {
                Some((_, members)) => members.push(names),
                None => groups.push((keys, vec![names])),
            }
        }
        let project = |(_, rows): (_, Vec<Names>)| {
            let none = Names::new();
            let names = rows.first().unwrap_or(&none);
            let view = View { names, group: Some(&rows) };
            let sorted = query.order_by.iter().flat_map(|order| &order.keys);
            let key = |expr: &Expr| order::key(&self.eval(called(query, expr), view));
            (sorted.map(|key_of| key(&key_of.expr)).collect(), self.project(query, view))
        };
        groups.into_iter().map(project).collect()
    }

    fn project(&self, query: &Query, view: View<'_>) -> Value {
        match &query.projection {
            Projection::All(_) => find(view.names, &name_of(&query.sources[0])).unwrap(),
            Projection::Value(item) => self.eval(&item.expr, view),
            Projection::Items(items) => {
                let member = |item: &SelectItem| {
                    (item.alias.clone().expect("all have names"), self.eval(&item.expr, view))
                };
                object(items.iter().map(member))
            }
        }
    }

    fn eval(&self, expr: &Expr, view: View<'_>) -> Value {
        let eval = |expr: &Expr| self.eval(expr, view);
        let of_path = |of: &Expr| match &of.kind {
            ExprKind::Identifier(name) => {
                let named = view.names.iter().rev().find(|named| named.name == *name).unwrap();
                named.shown.as_ref().unwrap_or(&named.value).clone()
            }
            _ => eval(of),
        };
        match &expr.kind {
            ExprKind::Literal(literal) => constant(literal),
            ExprKind::Identifier(name) => find(view.names, name).unwrap(),
            ExprKind::Parameter(name) => self.parameter(name),
            ExprKind::Array(values) => {
                Value::Array(values.iter().map(eval).filter(Value::is_defined).collect())
            }
            ExprKind::Object(members) => {
                object(members.iter().map(|(name, value)| (name.clone(), eval(value))))
            }
            ExprKind::Unary(sign, operand) => unary(*sign, &eval(operand)),
            ExprKind::Chain(first, rest) => rest.iter().fold(eval(first), |left, right| {
                functions::binary(right.0, &left, &eval(&right.1))
            }),
            ExprKind::Conditional(operands) => {
                let [condition, yes, no] = operands.as_ref();
                if eval(condition).is_true() { eval(yes) } else { eval(no) }
            }
            ExprKind::Between { not, operands } => {
                let [value, low, high] = operands.as_ref().each_ref().map(eval);
                let above = functions::binary(Operator::GreaterOrEqual, &value, &low);
                let below = functions::binary(Operator::LessOrEqual, &value, &high);
                negated(functions::binary(Operator::And, &above, &below), *not)
            }
            ExprKind::In { not, value, list } => {
                let value = eval(value);
                let found = list.iter().any(|candidate| eval(candidate) == value);
                let found = value.is_defined().then_some(found);
                negated(found.into(), *not)
            }
            ExprKind::Like { not, operands, escape } => {
                let [value, pattern] = operands.as_ref().each_ref().map(eval);
                let texts = value.as_str().zip(pattern.as_str());
                let escape = escape.as_ref().and_then(|escape| escape.chars().next());
                let like = |(text, pattern)| functions::like(text, pattern, escape);
                negated(texts.map(like).into(), *not)
            }
            ExprKind::Path(of, steps) => steps.iter().fold(of_path(of), |value, step| match step {
                Access::Member(name) => value.property(name).clone(),
                Access::Index(index) => match eval(index) {
                    Value::String(name) => value.property(&name).clone(),
                    index => {
                        let place = index.as_integer().and_then(|n| usize::try_from(n).ok());
                        place.map_or(Value::Undefined, |place| value.element(place).clone())
                    }
                },
            }),
            ExprKind::Call(call) => {
                let name = call.name.to_ascii_uppercase();
                match view.group {
                    Some(rows) if functions::is_aggregate(&name) => {
                        let value =
                            |names| self.eval(&call.arguments[0], View { names, group: None });
                        functions::aggregate(&name, rows.iter().map(value).collect())
                    }
                    _ => {
                        let arguments: Vec<Value> = call.arguments.iter().map(eval).collect();
                        functions::call(&name, &arguments)
                    }
                }
            }
            ExprKind::Subquery(how, query) => {
                let mut rows = self.values(query, view.names, None);
                match how {
                    Use::Exists => (!rows.is_empty()).into(),
                    Use::Array => Value::Array(rows),
                    Use::Scalar => rows.pop().unwrap_or_default(),
                    other => panic!("no such subquery is made: {other:?}"),
                }
            }
        }
    }
}

/// What is selected by a name, if a sort key is one.
fn called<'q>(query: &'q Query, key: &'q Expr) -> &'q Expr {
    let ExprKind::Identifier(name) = &key.kind else { return key };
    let Projection::Items(items) = &query.projection else { return key };
    let found = items.iter().find(|item| item.alias.as_ref() == Some(name));
    found.map_or(key, |item| &item.expr)
}

fn is_grouped(query: &Query) -> bool {
    let items = match &query.projection {
        Projection::All(_) => &[],
        Projection::Value(item) => std::slice::from_ref(item),
        Projection::Items(items) => items.as_slice(),
    };
    !query.group_by.is_empty() || items.iter().any(|item| has_aggregate(&item.expr))
}

fn has_aggregate(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call(call) => {
            functions::is_aggregate(&call.name.to_ascii_uppercase())
                || call.arguments.iter().any(has_aggregate)
        }
        ExprKind::Chain(first, rest) => {
            has_aggregate(first) || rest.iter().any(|(_, operand)| has_aggregate(operand))
        }
        ExprKind::Array(values) => values.iter().any(has_aggregate),
        ExprKind::Object(members) => members.iter().any(|(_, value)| has_aggregate(value)),
        _ => false,
    }
}

fn name_of(source: &Source) -> String {
    match (&source.binding, &source.collection) {
        (Binding::Alias(name) | Binding::Each(name), _) => name.clone(),
        (Binding::Inferred, Collection::Path { root, steps }) if steps.is_empty() => root.clone(),
        _ => panic!("all sources have names: {source:?}"),
    }
}

fn find(names: &Names, name: &str) -> Option<Value> {
    names.iter().rev().find(|named| named.name == name).map(|named| named.value.clone())
}

fn object(members: impl Iterator<Item = (String, Value)>) -> Value {
    Value::Object(members.filter(|(_, value)| value.is_defined()).collect())
}

fn constant(literal: &Literal) -> Value {
    match literal {
        Literal::Undefined => Value::Undefined,
        Literal::Null => Value::Null,
        Literal::Boolean(truth) => (*truth).into(),
        Literal::Number(number) => Value::Number(*number),
        Literal::NotANumber => f64::NAN.into(),
        Literal::Infinity => f64::INFINITY.into(),
        Literal::String(text) => text.as_str().into(),
    }
}

fn unary(sign: Sign, operand: &Value) -> Value {
    match (sign, operand) {
        (Sign::Not, Value::Bool(truth)) => (!truth).into(),
        (Sign::Minus, Value::Number(number)) => Value::Number(number.negated()),
        (Sign::Plus, Value::Number(_)) => operand.clone(),
        _ => Value::Undefined,
    }
}

fn negated(truth: Value, not: bool) -> Value {
    if not { unary(Sign::Not, &truth) } else { truth }
}
