//! From a tree to a program: what each name means, and where it is found.
//!
//! The container's items are not bound like other sources: what a query reads of
//! them are fields, which are all taken out of the text at once. Everything else
//! that FROM and JOIN bind is a variable, counted from the inside out.
//!
//! A computed property is a field, too: its expression is compiled once, apart from
//! the query, and what the query reads of it is taken out of its value.

use std::collections::HashSet;

use dayfly_model::value::{Value, order};
use dayfly_model::{Error, Result, Timestamp};

use super::aggregate::AggregateKind;
use super::budget::{Free, Run, Steps, refused};
use super::computed::{Computed, Property};
use super::evaluate::Scope;
use super::extract::{FieldStep, Fields};
use super::program::{Code, OrderKey, Program, RowSource, Select};
use super::sieve::IndexStep;
use super::stage;
use crate::functions::signature::signature;
use crate::functions::{self, Body, Like, Setting};
use crate::names::{has_aggregate, item_names, items_of, meant, name_of, normal};
use crate::request::{self, Parameters, Request};
use crate::tree::{
    self, Access, Amount, Binding, Call, Collection, Count, Direction, Expr, ExprKind, Literal,
    Operator, Projection, Query, Use,
};
use crate::walk;

impl Program {
    /// The program of a query over items with these computed properties.
    pub fn compile(request: &Request, computed: &Computed) -> Result<Program> {
        let query = &request.query;
        let mut compiler = Compiler::new(&request.parameters, computed);
        let (mut select, mut order) = compiler.select(query)?;
        let of_groups = if select.is_grouped() { std::mem::take(&mut order) } else { Vec::new() };
        let stages = stage::take(&mut select, query);
        let amount = |count: &Count, clause| amount(count, &request.parameters, clause);
        let top = query.top.as_ref().map(|count| amount(count, "TOP")).transpose()?;
        let page = query.page.as_ref();
        let skip = page.map(|page| amount(&page.offset, "OFFSET")).transpose()?.unwrap_or(0);
        let limit = page.map(|page| amount(&page.limit, "LIMIT")).transpose()?;
        Ok(Program {
            stages,
            distinct: query.distinct,
            order,
            order_is_selected: order_is_selected(query),
            group_order: of_groups,
            fields: compiler.fields,
            skip,
            take: limit.into_iter().chain(top).min(),
            reads_items: reads_items(query),
            may_know_time: compiler.may_know_time,
            select,
        })
    }
}

/// Whether a query has the container at its bottom. Only its first source can.
fn reads_items(query: &Query) -> bool {
    match query.sources.first().map(|source| &source.collection) {
        Some(Collection::Subquery(inner)) => reads_items(inner),
        Some(_) => true,
        None => false,
    }
}

/// Whether all that is sorted by is part of what is selected.
fn order_is_selected(query: &Query) -> bool {
    let selected: Vec<Expr> = walk::selected(&query.projection).cloned().map(normal).collect();
    matches!(query.projection, Projection::All(_))
        || walk::sort_keys(query).all(|key| selected.contains(&normal(key.clone())))
}

fn amount(count: &Count, parameters: &Parameters, clause: &str) -> Result<u64> {
    match &count.amount {
        Amount::Number(number) => Ok(u64::from(*number)),
        Amount::Parameter(name) => {
            let given = parameters.get(name).and_then(Option::as_ref);
            given.and_then(serde_json::Value::as_u64).ok_or_else(|| {
                refused(&format!(
                    "The count value provided for a {clause} clause must be an integer."
                ))
            })
        }
    }
}

/// What is selected, the keys of groups, their aggregates, and what is sorted by.
struct Selected {
    projection: Code,
    group_by: Vec<Code>,
    aggregates: Vec<(AggregateKind, Code)>,
    order: Vec<OrderKey>,
}

/// What a name stands for.
#[derive(Clone)]
enum Meaning {
    /// The item, as it is seen.
    Item(Seen),
    /// The variable that was bound when there were so many.
    Variable(usize),
}

/// How an item is seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// With its computed properties, by the name of the container.
    Whole,
    /// As it is stored, by the name of what selects it.
    Stored,
}

pub(super) struct Compiler<'q> {
    parameters: &'q Parameters,
    computed: &'q Computed,
    fields: Fields,
    /// The names that can be seen, the innermost last.
    names: Vec<(String, Meaning)>,
    /// How many variables are bound.
    depth: usize,
    /// Inside what is selected of groups.
    grouping: Option<Grouping>,
    /// Whether a function was met that depends on the setting, which has the time. Nothing
    /// else can know it: computed properties call no such function.
    may_know_time: bool,
}

/// What is selected of groups is made from their keys and aggregates; only the
/// arguments of aggregates see rows.
struct Grouping {
    keys: Vec<Expr>,
    codes: Vec<Code>,
    aggregates: Vec<(AggregateKind, Code)>,
    /// The names that rows see, and how many variables they have.
    names: Vec<(String, Meaning)>,
    depth: usize,
}

static NO_PARAMETERS: Parameters = Parameters::new();

impl<'q> Compiler<'q> {
    fn new(parameters: &'q Parameters, computed: &'q Computed) -> Self {
        Compiler {
            parameters,
            computed,
            fields: Fields::default(),
            names: Vec::new(),
            depth: 0,
            grouping: None,
            may_know_time: false,
        }
    }

    /// The fields that some computed properties need, and which of them they are.
    pub(super) fn properties(
        computed: &'q Computed,
        names: &[&str],
    ) -> Result<(Fields, Vec<usize>)> {
        let mut compiler = Compiler::new(&NO_PARAMETERS, computed);
        let mut fields = Vec::with_capacity(names.len());
        for name in names {
            match compiler.field(Seen::Whole, vec![FieldStep::Name((*name).to_owned())])? {
                Code::Field(field) => fields.push(field),
                _ => return Err(lost()),
            }
        }
        Ok((compiler.fields, fields))
    }

    fn select(&mut self, query: &'q Query) -> Result<(Select, Vec<OrderKey>)> {
        let (names_outside, depth_outside) = (self.names.len(), self.depth);
        let grouping_outside = self.grouping.take();
        let mut sources = Vec::new();
        let mut filters = Vec::new();
        for source in &query.sources {
            match items_of(source).filter(|_| self.names.is_empty()) {
                Some(inner) => self.items_source(source, inner, &mut filters)?,
                None => sources.extend(self.source(source)?),
            }
        }
        if let Some(filter) = &query.filter {
            filters.push(self.expr(filter)?);
        }
        let grouped =
            !query.group_by.is_empty() || walk::selected(&query.projection).any(has_aggregate);
        let Selected { projection, group_by, aggregates, order } = if grouped {
            self.grouped(query, names_outside, depth_outside)?
        } else {
            let order = self.order(query)?;
            let projection = self.projection(query)?;
            Selected { projection, group_by: Vec::new(), aggregates: Vec::new(), order }
        };
        self.names.truncate(names_outside);
        self.depth = depth_outside;
        self.grouping = grouping_outside;
        let distinct = query.distinct;
        let filter = all_of(filters);
        let select =
            Select { sources, filter, negated: false, group_by, aggregates, distinct, projection };
        Ok((select, order))
    }

    /// What is selected of groups, their keys and their aggregates.
    fn grouped(
        &mut self,
        query: &'q Query,
        names_outside: usize,
        depth_outside: usize,
    ) -> Result<Selected> {
        let mut codes = Vec::new();
        for key in &query.group_by {
            codes.push(self.expr(key)?);
        }
        let outside = self.names.get(..names_outside).unwrap_or_default().to_vec();
        let names = std::mem::replace(&mut self.names, outside);
        let depth = std::mem::replace(&mut self.depth, depth_outside);
        let keys = query.group_by.iter().cloned().map(normal).collect();
        self.grouping = Some(Grouping { keys, codes, aggregates: Vec::new(), names, depth });
        let projection = self.projection(query)?;
        // One row has any order.
        let order = if query.group_by.is_empty() { Vec::new() } else { self.order(query)? };
        let Some(Grouping { codes: group_by, aggregates, .. }) = self.grouping.take() else {
            return Err(lost());
        };
        Ok(Selected { projection, group_by, aggregates, order })
    }

    fn order(&mut self, query: &'q Query) -> Result<Vec<OrderKey>> {
        let Some(order) = &query.order_by else { return Ok(Vec::new()) };
        if order.rank {
            return Err(Error::not_yet("ORDER BY RANK"));
        }
        let mut keys = Vec::new();
        for key in &order.keys {
            let expr = meant(query, &key.expr);
            let steps = self.item_path(expr);
            keys.push(OrderKey {
                code: self.expr(expr)?,
                direction: key.direction.unwrap_or(Direction::Ascending),
                path: steps.as_deref().and_then(names_of),
                steps: steps.map(|steps| steps.iter().map(index_step).collect()),
            });
        }
        Ok(keys)
    }

    /// Compiles a member of FROM. The container itself makes no rows.
    fn source(&mut self, source: &'q tree::Source) -> Result<Option<RowSource>> {
        let each = matches!(source.binding, Binding::Each(_));
        let name = name_of(source).map(ToOwned::to_owned);
        let (bound, meaning) = match &source.collection {
            Collection::Path { root, steps } => {
                // A name that nothing has stands for the container.
                let root = self.meaning(root).cloned().unwrap_or(Meaning::Item(Seen::Whole));
                let path: Vec<FieldStep> = steps.iter().map(step).collect();
                match root {
                    Meaning::Item(seen) => self.item_source(seen, path, each)?,
                    Meaning::Variable(level) => {
                        let code = through(self.variable(level), path);
                        (Some(bind(code, each)), Meaning::Variable(self.depth))
                    }
                }
            }
            Collection::Subquery(query) => {
                let (select, _) = self.select(query)?;
                let select = Box::new(select);
                let rows =
                    if each { RowSource::RowElements(select) } else { RowSource::Rows(select) };
                (Some(rows), Meaning::Variable(self.depth))
            }
            Collection::Call(call) => {
                let code = self.call(call)?;
                (Some(bind(code, each)), Meaning::Variable(self.depth))
            }
        };
        if matches!(meaning, Meaning::Variable(_)) {
            self.depth += 1;
        }
        if let Some(name) = name {
            self.names.push((name, meaning));
        }
        Ok(bound)
    }

    /// Compiles a subquery that gives the items themselves: its name stands for the
    /// item, as that of the container does, and its filter is one of the query.
    fn items_source(
        &mut self,
        source: &'q tree::Source,
        query: &'q Query,
        filters: &mut Vec<Code>,
    ) -> Result<()> {
        for source in &query.sources {
            match items_of(source) {
                Some(inner) => self.items_source(source, inner, filters)?,
                None => {
                    self.source(source)?;
                }
            }
        }
        if let Some(filter) = &query.filter {
            filters.push(self.expr(filter)?);
        }
        self.names.clear();
        if let Some(name) = name_of(source) {
            self.names.push((name.to_owned(), Meaning::Item(Seen::Stored)));
        }
        Ok(())
    }

    /// The container, or a path of its items.
    fn item_source(
        &mut self,
        seen: Seen,
        path: Vec<FieldStep>,
        each: bool,
    ) -> Result<(Option<RowSource>, Meaning)> {
        if path.is_empty() && !each {
            return Ok((None, Meaning::Item(seen)));
        }
        let code = self.field(seen, path)?;
        Ok((Some(bind(code, each)), Meaning::Variable(self.depth)))
    }

    fn meaning(&self, name: &str) -> Option<&Meaning> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, meaning)| meaning)
    }

    fn field(&mut self, seen: Seen, path: Vec<FieldStep>) -> Result<Code> {
        if path.is_empty() || self.is_hidden(seen, &path) {
            self.fields.whole = true;
            return Ok(through(Code::Whole, path));
        }
        Ok(Code::Field(match self.computed_at(&path) {
            Some(property) => {
                let property = self.property(property)?;
                self.fields.add_computed(property, path)
            }
            None => self.fields.add(path),
        }))
    }

    /// The computed property that a path leads to.
    fn computed_at(&self, path: &[FieldStep]) -> Option<&'q Property> {
        match path.first()? {
            FieldStep::Name(name) => self.computed.find(name),
            FieldStep::Place(_) => None,
        }
    }

    /// Whether a path leads to what is stored under the name of a computed property:
    /// no field has that.
    fn is_hidden(&self, seen: Seen, path: &[FieldStep]) -> bool {
        seen == Seen::Stored && self.computed_at(path).is_some()
    }

    /// The number of a computed property. Its expression sees the item alone.
    fn property(&mut self, property: &'q Property) -> Result<usize> {
        if let Some(known) = self.fields.property(&property.name) {
            return Ok(known);
        }
        let mut apart = Compiler::new(&NO_PARAMETERS, Computed::NONE);
        apart.fields = std::mem::take(&mut self.fields);
        apart.names.push((property.alias.clone(), Meaning::Item(Seen::Whole)));
        let code = apart.expr(&property.expr);
        self.fields = apart.fields;
        Ok(self.fields.add_property(&property.name, code?))
    }

    fn variable(&self, level: usize) -> Code {
        Code::Variable(self.depth.saturating_sub(level + 1))
    }

    fn projection(&mut self, query: &'q Query) -> Result<Code> {
        match &query.projection {
            Projection::All(_) => {
                let name = query.sources.first().and_then(name_of);
                self.named(name.unwrap_or_default())
            }
            Projection::Value(item) => self.expr(&item.expr),
            Projection::Items(items) => {
                let mut members: Vec<(String, Code)> = Vec::new();
                for (name, item) in item_names(items).into_iter().zip(items) {
                    let code = self.expr(&item.expr)?;
                    members.retain(|(known, _)| *known != name);
                    members.push((name, code));
                }
                Ok(Code::Object(members))
            }
        }
    }

    fn named(&mut self, name: &str) -> Result<Code> {
        match self.meaning(name).cloned() {
            Some(Meaning::Item(seen)) => self.field(seen, Vec::new()),
            Some(Meaning::Variable(level)) => Ok(self.variable(level)),
            None => Err(refused(&format!("Identifier '{name}' could not be resolved."))),
        }
    }

    fn exprs(&mut self, exprs: &'q [Expr]) -> Result<Vec<Code>> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn boxed(&mut self, expr: &'q Expr) -> Result<Box<Code>> {
        self.expr(expr).map(Box::new)
    }

    fn expr(&mut self, expr: &'q Expr) -> Result<Code> {
        if self.grouping.is_some()
            && let Some(code) = self.of_group(expr)?
        {
            return Ok(code);
        }
        let code = self.plain(expr)?;
        Ok(folded(code))
    }

    fn plain(&mut self, expr: &'q Expr) -> Result<Code> {
        Ok(match &expr.kind {
            ExprKind::Literal(literal) => Code::Constant(constant(literal)),
            ExprKind::Identifier(name) => self.named(name)?,
            ExprKind::Parameter(name) => Code::Constant(self.parameter(name)),
            ExprKind::Array(values) => Code::Array(self.exprs(values)?),
            ExprKind::Object(members) => {
                let mut codes: Vec<(String, Code)> = Vec::with_capacity(members.len());
                for (name, value) in members {
                    let code = self.expr(value)?;
                    codes.retain(|(known, _)| known != name);
                    codes.push((name.clone(), code));
                }
                Code::Object(codes)
            }
            ExprKind::Unary(sign, operand) => Code::Unary(*sign, self.boxed(operand)?),
            ExprKind::Chain(first, rest) => self.chain(first, rest)?,
            ExprKind::Conditional(operands) => Code::Conditional(self.three(operands)?),
            ExprKind::Between { not, operands } => {
                Code::Between { not: *not, operands: self.three(operands)? }
            }
            ExprKind::In { not, value, list } => self.is_in(*not, value, list)?,
            ExprKind::Like { not, operands, escape } => {
                self.like(*not, operands, escape.as_deref())?
            }
            ExprKind::Path(of, steps) => self.path(of, steps)?,
            ExprKind::Call(call) => self.call(call)?,
            ExprKind::Subquery(how, query) => {
                let (mut select, _) = self.select(query)?;
                select.negated = *how == Use::All;
                Code::Subquery(*how, Box::new(select))
            }
        })
    }

    fn three(&mut self, operands: &'q [Expr; 3]) -> Result<Box<[Code; 3]>> {
        let [first, second, third] = operands;
        Ok(Box::new([self.expr(first)?, self.expr(second)?, self.expr(third)?]))
    }

    fn parameter(&self, name: &str) -> Value {
        request::value_of(self.parameters, name)
    }

    fn chain(&mut self, first: &'q Expr, rest: &'q [(Operator, Expr)]) -> Result<Code> {
        let same = |wanted: Operator| rest.iter().all(|(operator, _)| *operator == wanted);
        for (operator, make) in [
            (Operator::And, Code::And as fn(Vec<Code>) -> Code),
            (Operator::Or, Code::Or),
            (Operator::Coalesce, Code::Coalesce),
        ] {
            if same(operator) {
                let mut operands = vec![self.expr(first)?];
                for (_, operand) in rest {
                    operands.push(self.expr(operand)?);
                }
                return Ok(make(operands));
            }
        }
        let first = self.boxed(first)?;
        let rest = rest.iter().map(|(operator, operand)| Ok((*operator, self.expr(operand)?)));
        Ok(Code::Chain(first, rest.collect::<Result<_>>()?))
    }

    fn is_in(&mut self, not: bool, value: &'q Expr, list: &'q [Expr]) -> Result<Code> {
        let (value, list) = (self.boxed(value)?, self.exprs(list)?);
        let constants: Option<Vec<&Value>> = list.iter().map(Code::as_constant).collect();
        Ok(match constants {
            Some(constants) => {
                let defined = constants.into_iter().filter(|constant| constant.is_defined());
                let set: HashSet<Vec<u8>> = defined.map(order::key).collect();
                Code::InSet { not, value, set }
            }
            None => Code::In { not, value, list },
        })
    }

    fn like(&mut self, not: bool, operands: &'q [Expr; 2], escape: Option<&str>) -> Result<Code> {
        let escape = match escape.map(|escape| (escape.chars().next(), escape.chars().count())) {
            None => None,
            Some((Some(escape), 1)) => Some(escape),
            Some(_) => return Err(refused("The ESCAPE of a LIKE must be one character.")),
        };
        let [value, pattern] = operands;
        let (value, pattern) = (self.expr(value)?, self.expr(pattern)?);
        let constant = pattern.as_constant().and_then(Value::as_str);
        Ok(match constant.map(|constant| Like::new(constant, escape)) {
            Some(Some(pattern)) => {
                Code::LikeConstant { not, value: Box::new(value), pattern: Box::new(pattern) }
            }
            Some(None) => Code::Constant(Value::Undefined),
            None => Code::Like { not, operands: Box::new([value, pattern]), escape },
        })
    }

    fn path(&mut self, of: &'q Expr, steps: &'q [Access]) -> Result<Code> {
        let mut taken = 0;
        let mut code = match self.item_name(of) {
            Some(seen) => {
                let mut path = Vec::new();
                for access in steps {
                    let Some(step) = self.fixed(access) else { break };
                    path.push(step);
                    taken += 1;
                }
                self.field(seen, path)?
            }
            None => self.expr(of)?,
        };
        for access in steps.iter().skip(taken) {
            code = match (self.fixed(access), access) {
                (Some(step), _) => through(code, vec![step]),
                (None, Access::Index(index)) => Code::Index(Box::new(code), self.boxed(index)?),
                (None, Access::Member(name)) => Code::Property(Box::new(code), name.clone()),
            };
        }
        Ok(code)
    }

    /// How the item is seen, if a name stands for it.
    fn item_name(&self, expr: &Expr) -> Option<Seen> {
        let ExprKind::Identifier(name) = &expr.kind else { return None };
        match self.meaning(name)? {
            Meaning::Item(seen) => Some(*seen),
            Meaning::Variable(_) => None,
        }
    }

    /// The path in an item that an expression stands for.
    fn item_path(&self, expr: &Expr) -> Option<Vec<FieldStep>> {
        let (of, steps) = match &expr.kind {
            ExprKind::Path(of, steps) => (of.as_ref(), steps.as_slice()),
            _ => (expr, [].as_slice()),
        };
        let seen = self.item_name(of)?;
        let path: Option<Vec<FieldStep>> = steps.iter().map(|access| self.fixed(access)).collect();
        path.filter(|path| !self.is_hidden(seen, path))
    }

    /// A step that is the same for all items.
    fn fixed(&self, access: &Access) -> Option<FieldStep> {
        let index = match access {
            Access::Member(name) => return Some(FieldStep::Name(name.clone())),
            Access::Index(index) => index,
        };
        let value = match &index.kind {
            ExprKind::Literal(literal) => constant(literal),
            ExprKind::Parameter(name) => self.parameter(name),
            _ => return None,
        };
        match value {
            Value::String(name) => Some(FieldStep::Name(name)),
            value => value.as_integer().and_then(|n| usize::try_from(n).ok()).map(FieldStep::Place),
        }
    }

    fn call(&mut self, call: &'q Call) -> Result<Code> {
        if call.udf {
            return Err(Error::not_yet("A user-defined function"));
        }
        let name = call.name.to_ascii_uppercase();
        let mut codes = self.exprs(&call.arguments)?;
        match (name.as_str(), codes.len()) {
            ("IIF", 3) => {
                let operands: Result<Box<[Code; 3]>, _> = Box::<[Code]>::from(codes).try_into();
                return operands.map(Code::Conditional).map_err(|_| lost());
            }
            ("CHOOSE", 2..) => {
                let index = codes.remove(0);
                return Ok(Code::Choose(Box::new(index), codes));
            }
            ("RAND", 0) => return Ok(Code::Random),
            ("DOCUMENTID", 1) => {
                return Ok(match codes.pop() {
                    Some(Code::Whole) => Code::ItemNumber,
                    _ => Code::Constant(Value::Undefined),
                });
            }
            _ => {}
        }
        match functions::find(&name) {
            Some((name, body)) => {
                self.may_know_time |= matches!(body, Body::Set(_));
                Ok(Code::Call(name, body, codes))
            }
            None if signature(&name).is_some() => {
                Err(Error::not_yet(&format!("The function {name}")))
            }
            None => {
                let name = &call.name;
                Err(refused(&format!("'{name}' is not a recognized built-in function name.")))
            }
        }
    }

    /// What stands for an expression among what is selected of groups: a key or
    /// an aggregate. `None`: it is made of others.
    fn of_group(&mut self, expr: &'q Expr) -> Result<Option<Code>> {
        let Some(grouping) = &self.grouping else { return Ok(None) };
        let form = normal(expr.clone());
        if let Some(key) = grouping.keys.iter().position(|key| *key == form) {
            return Ok(Some(Code::Key(key)));
        }
        match &expr.kind {
            ExprKind::Call(call) if !call.udf => match AggregateKind::of(&call.name) {
                Some(kind) => self.aggregate(kind, &call.arguments).map(Some),
                None => Ok(None),
            },
            ExprKind::Path(..) | ExprKind::Identifier(_) => {
                let code = self.in_rows(|rows| rows.plain(expr))?;
                let codes = self.grouping.as_ref().map(|grouping| grouping.codes.as_slice());
                let mut keys = codes.unwrap_or_default().iter().enumerate();
                Ok(keys.find_map(|(place, key)| self.within(place, key, &code)))
            }
            _ => Ok(None),
        }
    }

    /// What `code` is, if it is a key of groups or something in one.
    fn within(&self, place: usize, key: &Code, code: &Code) -> Option<Code> {
        if key.is_same(code) {
            return Some(Code::Key(place));
        }
        match (key, code) {
            (Code::Field(key), Code::Field(field)) => {
                let rest = self.fields.path(*field).strip_prefix(self.fields.path(*key))?;
                Some(through(Code::Key(place), rest.to_vec()))
            }
            (_, Code::Property(of, name)) => {
                let of = self.within(place, key, of)?;
                Some(Code::Property(Box::new(of), name.clone()))
            }
            (_, Code::Element(of, element)) => {
                Some(Code::Element(Box::new(self.within(place, key, of)?), *element))
            }
            _ => None,
        }
    }

    fn aggregate(&mut self, kind: AggregateKind, arguments: &'q [Expr]) -> Result<Code> {
        let [argument] = arguments else {
            return Err(refused("An aggregate function requires 1 argument(s)."));
        };
        let code = self.in_rows(|rows| rows.expr(argument))?;
        let Some(grouping) = &mut self.grouping else { return Err(lost()) };
        grouping.aggregates.push((kind, code));
        Ok(Code::Aggregate(grouping.aggregates.len() - 1))
    }

    /// Compiles something as the rows of the groups see it.
    fn in_rows<T>(&mut self, compile: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let Some(mut grouping) = self.grouping.take() else { return compile(self) };
        let swap = |compiler: &mut Self, grouping: &mut Grouping| {
            std::mem::swap(&mut compiler.names, &mut grouping.names);
            std::mem::swap(&mut compiler.depth, &mut grouping.depth);
        };
        swap(self, &mut grouping);
        let compiled = compile(self);
        swap(self, &mut grouping);
        self.grouping = Some(grouping);
        compiled
    }
}

fn lost() -> Error {
    Error::new(dayfly_model::ErrorKind::Internal, "A query lost its way in the compiler.")
}

fn bind(code: Code, each: bool) -> RowSource {
    if each { RowSource::Elements(code) } else { RowSource::Value(code) }
}

fn step(step: &tree::SourceStep) -> FieldStep {
    match step {
        tree::SourceStep::Member(name) | tree::SourceStep::Property(name) => {
            FieldStep::Name(name.clone())
        }
        tree::SourceStep::Index(place) => {
            FieldStep::Place(usize::try_from(*place).unwrap_or(usize::MAX))
        }
    }
}

/// All filters together.
fn all_of(mut filters: Vec<Code>) -> Option<Code> {
    if filters.len() < 2 {
        return filters.pop();
    }
    let members = filters.into_iter().flat_map(|filter| match filter {
        Code::And(members) => members,
        filter => vec![filter],
    });
    Some(Code::And(members.collect()))
}

/// A step as an index has it: all elements of an array are one there.
fn index_step(step: &FieldStep) -> IndexStep {
    match step {
        FieldStep::Name(name) => IndexStep::Name(name.clone()),
        FieldStep::Place(_) => IndexStep::Items,
    }
}

/// A way that goes through properties only.
fn names_of(steps: &[FieldStep]) -> Option<Vec<String>> {
    let name = |step: &FieldStep| match step {
        FieldStep::Name(name) => Some(name.clone()),
        FieldStep::Place(_) => None,
    };
    steps.iter().map(name).collect()
}

fn through(code: Code, path: Vec<FieldStep>) -> Code {
    path.into_iter().fold(code, |code, step| match step {
        FieldStep::Name(name) => Code::Property(Box::new(code), name),
        FieldStep::Place(place) => Code::Element(Box::new(code), place),
    })
}

fn constant(literal: &Literal) -> Value {
    match literal {
        Literal::Undefined => Value::Undefined,
        Literal::Null => Value::Null,
        Literal::Boolean(truth) => Value::Bool(*truth),
        Literal::Number(number) => Value::Number(*number),
        Literal::NotANumber => Value::from(f64::NAN),
        Literal::Infinity => Value::from(f64::INFINITY),
        Literal::String(text) => Value::from(text.as_str()),
    }
}

impl Code {
    pub(super) fn as_constant(&self) -> Option<&Value> {
        match self {
            Code::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Whether both are the same way into the same thing.
    fn is_same(&self, other: &Code) -> bool {
        match (self, other) {
            (Code::Whole, Code::Whole) => true,
            (Code::Field(left), Code::Field(right)) => left == right,
            (Code::Variable(left), Code::Variable(right)) => left == right,
            (Code::Property(left, name), Code::Property(right, other)) => {
                name == other && left.is_same(right)
            }
            (Code::Element(left, place), Code::Element(right, other)) => {
                place == other && left.is_same(right)
            }
            _ => false,
        }
    }
}

/// An operation on constants is done at once.
fn folded(code: Code) -> Code {
    let constant = |code: &Code| code.as_constant().is_some();
    let all = |codes: &[Code]| codes.iter().all(constant);
    let known = match &code {
        Code::Unary(_, operand) => constant(operand),
        Code::Chain(first, rest) => {
            constant(first) && rest.iter().all(|(_, operand)| constant(operand))
        }
        Code::Array(values) => all(values),
        Code::Object(members) => members.iter().all(|(_, value)| constant(value)),
        Code::Call(_, Body::Strict(_) | Body::Seeing(_), arguments) => all(arguments),
        _ => false,
    };
    if !known {
        return code;
    }
    // The setting is not asked for by any of these.
    let steps = Steps::new(&Free);
    let run = Run::new(Setting { now: Timestamp(0), plane: false }, 0, &steps);
    let scope = Scope { run: &run, item: None, bound: None, group: None };
    let value = code.eval(&scope).map(std::borrow::Cow::into_owned);
    value.map_or(code, Code::Constant)
}
