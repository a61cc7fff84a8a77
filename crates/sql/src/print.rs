//! A tree as text, in the form in which the service writes queries: keywords in
//! upper case, every operator in brackets, strings in double quotes, `AS` always
//! there. There are two styles:
//!
//! | style   | clauses   | direction of a sort | doubles                     |
//! |---------|-----------|---------------------|-----------------------------|
//! | `Line`  | one line  | always there        | as few digits as tell them  |
//! | `Lines` | a line each, subqueries indented | as it was given | 15 digits, else 17 |
//!
//! The second is the style of rewritten queries in plans.

mod digits;

use std::fmt::{self, Display, Formatter, Write};

use self::digits::digits;
use crate::tree::{
    Access, Amount, Binding, Call, Collection, Count, Direction, Expr, ExprKind, Literal, Number,
    Operator, OrderBy, Projection, Query, SelectItem, Sign, SortKey, Source, SourceStep,
};

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer { out: f, style: Layout::Line, depth: 0 }.query(self)
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer { out: f, style: Layout::Line, depth: 0 }.expr(self)
    }
}

/// A query as plans have it.
pub(crate) fn query_in_lines(query: &Query) -> String {
    in_lines(|printer| printer.query(query))
}

/// An expression as plans have it.
pub(crate) fn expr_in_lines(expr: &Expr) -> String {
    in_lines(|printer| printer.expr(expr))
}

fn in_lines(print: impl FnOnce(&mut Printer<'_>) -> fmt::Result) -> String {
    let mut text = String::new();
    // Writing to memory does not fail.
    let _ = print(&mut Printer { out: &mut text, style: Layout::Lines, depth: 0 });
    text
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Line,
    Lines,
}

struct Printer<'w> {
    out: &'w mut dyn Write,
    style: Layout,
    /// How many subqueries there are around.
    depth: usize,
}

impl Printer<'_> {
    fn text(&mut self, text: &str) -> fmt::Result {
        self.out.write_str(text)
    }

    /// What stands between two clauses.
    fn next_clause(&mut self) -> fmt::Result {
        match self.style {
            Layout::Line => self.text(" "),
            Layout::Lines => write!(self.out, "\n{:1$}", "", self.depth * 4),
        }
    }

    fn query(&mut self, query: &Query) -> fmt::Result {
        self.text("SELECT ")?;
        if query.distinct {
            self.text("DISTINCT ")?;
        }
        if let Some(top) = &query.top {
            write!(self.out, "TOP {} ", count(top))?;
        }
        self.projection(&query.projection)?;
        for (number, source) in query.sources.iter().enumerate() {
            self.next_clause()?;
            self.text(if number == 0 { "FROM " } else { "JOIN " })?;
            self.source(source)?;
        }
        if let Some(filter) = &query.filter {
            self.next_clause()?;
            self.text("WHERE ")?;
            self.expr(filter)?;
        }
        if !query.group_by.is_empty() {
            self.next_clause()?;
            self.text("GROUP BY ")?;
            self.list(&query.group_by, Self::expr)?;
        }
        if let Some(order_by) = &query.order_by {
            self.next_clause()?;
            self.order_by(order_by)?;
        }
        if let Some(page) = &query.page {
            self.next_clause()?;
            write!(self.out, "OFFSET {} LIMIT {}", count(&page.offset), count(&page.limit))?;
        }
        Ok(())
    }

    fn subquery(&mut self, query: &Query) -> fmt::Result {
        if self.style == Layout::Line {
            self.text("(")?;
            self.query(query)?;
            return self.text(")");
        }
        self.text("(")?;
        self.depth += 1;
        self.next_clause()?;
        self.query(query)?;
        self.depth -= 1;
        self.next_clause()?;
        self.text(")")
    }

    fn projection(&mut self, projection: &Projection) -> fmt::Result {
        match projection {
            Projection::All(_) => self.text("*"),
            Projection::Value(item) => {
                self.text("VALUE ")?;
                self.item(item)
            }
            Projection::Items(items) => self.list(items, Self::item),
        }
    }

    fn item(&mut self, item: &SelectItem) -> fmt::Result {
        self.expr(&item.expr)?;
        item.alias.as_ref().map_or(Ok(()), |alias| write!(self.out, " AS {alias}"))
    }

    fn source(&mut self, source: &Source) -> fmt::Result {
        if let Binding::Each(name) = &source.binding {
            write!(self.out, "{name} IN ")?;
        }
        self.collection(&source.collection)?;
        match &source.binding {
            Binding::Alias(name) => write!(self.out, " AS {name}"),
            Binding::Inferred | Binding::Each(_) => Ok(()),
        }
    }

    fn collection(&mut self, collection: &Collection) -> fmt::Result {
        match collection {
            Collection::Subquery(query) => self.subquery(query),
            Collection::Call(call) => self.call(call),
            Collection::Path { root, steps } => {
                self.text(root)?;
                steps.iter().try_for_each(|step| match step {
                    SourceStep::Member(name) => write!(self.out, ".{name}"),
                    SourceStep::Property(name) => {
                        self.text("[")?;
                        self.string(name)?;
                        self.text("]")
                    }
                    SourceStep::Index(index) => write!(self.out, "[{index}]"),
                })
            }
        }
    }

    fn order_by(&mut self, order_by: &OrderBy) -> fmt::Result {
        self.text(if order_by.rank { "ORDER BY RANK " } else { "ORDER BY " })?;
        self.list(&order_by.keys, Self::sort_key)
    }

    fn sort_key(&mut self, key: &SortKey) -> fmt::Result {
        self.expr(&key.expr)?;
        match (key.direction, self.style) {
            (Some(Direction::Descending), _) => self.text(" DESC"),
            (Some(Direction::Ascending), _) | (None, Layout::Line) => self.text(" ASC"),
            (None, Layout::Lines) => Ok(()),
        }
    }

    fn expr(&mut self, expr: &Expr) -> fmt::Result {
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(literal),
            ExprKind::Identifier(name) | ExprKind::Parameter(name) => self.text(name),
            ExprKind::Array(values) => {
                self.text("[")?;
                self.list(values, Self::expr)?;
                self.text("]")
            }
            ExprKind::Object(members) => {
                self.text("{")?;
                self.list(members, Self::member)?;
                self.text("}")
            }
            ExprKind::Unary(sign, operand) => {
                let sign = match sign {
                    Sign::Minus => "-",
                    Sign::Plus => "+",
                    Sign::BitNot => "~",
                    Sign::Not => "NOT",
                };
                write!(self.out, "({sign} ")?;
                self.expr(operand)?;
                self.text(")")
            }
            ExprKind::Chain(first, rest) => self.chain(first, rest),
            ExprKind::Conditional(parts) => {
                let [test, yes, no] = parts.as_ref();
                self.all(&["(", " ? ", " : "], [test, yes, no])
            }
            ExprKind::Between { not, operands } => {
                let [value, low, high] = operands.as_ref();
                let between = if *not { " NOT BETWEEN " } else { " BETWEEN " };
                self.all(&["(", between, " AND "], [value, low, high])
            }
            ExprKind::In { not, value, list } => {
                self.text("(")?;
                self.expr(value)?;
                self.text(if *not { " NOT IN (" } else { " IN (" })?;
                self.list(list, Self::expr)?;
                self.text("))")
            }
            ExprKind::Like { not, operands, escape } => {
                self.like(*not, operands, escape.as_deref())
            }
            ExprKind::Path(of, steps) => self.path(of, steps),
            ExprKind::Call(call) => self.call(call),
            ExprKind::Subquery(how, query) => {
                self.text(how.word())?;
                self.subquery(query)
            }
        }
    }

    /// Each operand after the text that stands before it, then the bracket.
    fn all(&mut self, before: &[&str], operands: [&Expr; 3]) -> fmt::Result {
        for (text, operand) in before.iter().zip(operands) {
            self.text(text)?;
            self.expr(operand)?;
        }
        self.text(")")
    }

    fn like(&mut self, not: bool, operands: &[Expr; 2], escape: Option<&str>) -> fmt::Result {
        let [value, pattern] = operands;
        self.text("(")?;
        self.expr(value)?;
        self.text(if not { " NOT LIKE " } else { " LIKE " })?;
        self.expr(pattern)?;
        if let Some(escape) = escape {
            self.text(" ESCAPE ")?;
            self.string(escape)?;
        }
        self.text(")")
    }

    fn literal(&mut self, literal: &Literal) -> fmt::Result {
        match literal {
            Literal::Undefined => self.text("undefined"),
            Literal::Null => self.text("null"),
            Literal::Boolean(value) => write!(self.out, "{value}"),
            Literal::Number(Number::Integer(value)) => write!(self.out, "{value}"),
            Literal::Number(Number::Double(value)) => match self.style {
                Layout::Line => write!(self.out, "{value:?}"),
                Layout::Lines => self.text(&digits(*value)),
            },
            Literal::NotANumber => self.text("NaN"),
            Literal::Infinity => self.text("Infinity"),
            Literal::String(text) => self.string(text),
        }
    }

    fn call(&mut self, call: &Call) -> fmt::Result {
        write!(self.out, "{}{}(", if call.udf { "udf." } else { "" }, call.name)?;
        self.list(&call.arguments, Self::expr)?;
        self.text(")")
    }

    fn member(&mut self, (key, value): &(String, Expr)) -> fmt::Result {
        self.string(key)?;
        self.text(": ")?;
        self.expr(value)
    }

    fn list<T>(
        &mut self,
        values: &[T],
        mut print: impl FnMut(&mut Self, &T) -> fmt::Result,
    ) -> fmt::Result {
        for (number, value) in values.iter().enumerate() {
            if number > 0 {
                self.text(", ")?;
            }
            print(self, value)?;
        }
        Ok(())
    }

    /// `((a + b) - c)`: a bracket for each operator.
    fn chain(&mut self, first: &Expr, rest: &[(Operator, Expr)]) -> fmt::Result {
        for _ in rest {
            self.text("(")?;
        }
        self.expr(first)?;
        for (operator, right) in rest {
            write!(self.out, " {} ", operator.text())?;
            self.expr(right)?;
            self.text(")")?;
        }
        Ok(())
    }

    /// A number needs brackets, or a point would be taken for its own.
    fn path(&mut self, of: &Expr, steps: &[Access]) -> fmt::Result {
        if matches!(of.kind, ExprKind::Literal(Literal::Number(_))) {
            self.text("(")?;
            self.expr(of)?;
            self.text(")")?;
        } else {
            self.expr(of)?;
        }
        for step in steps {
            match step {
                Access::Member(name) => write!(self.out, ".{name}")?,
                Access::Index(index) => {
                    self.text("[")?;
                    self.expr(index)?;
                    self.text("]")?;
                }
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &str) -> fmt::Result {
        self.text("\"")?;
        for c in text.chars() {
            match c {
                '"' => self.text("\\\"")?,
                '\\' => self.text("\\\\")?,
                '\u{8}' => self.text("\\b")?,
                '\u{c}' => self.text("\\f")?,
                '\n' => self.text("\\n")?,
                '\r' => self.text("\\r")?,
                '\t' => self.text("\\t")?,
                c if c.is_control() => write!(self.out, "\\u{:04x}", u32::from(c))?,
                c => self.out.write_char(c)?,
            }
        }
        self.text("\"")
    }
}

fn count(count: &Count) -> &dyn Display {
    match &count.amount {
        Amount::Number(number) => number,
        Amount::Parameter(name) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn queries_in_plans() {
        let query = "select value r.a from (select value s from s in c.t where s in (1, 2)) r \
                     join x in r.b where exists(select 1) order by r.a, r.b desc offset 1 limit @l";
        let text = "SELECT VALUE r.a\nFROM (\n    SELECT VALUE s\n    FROM s IN c.t\n    \
                    WHERE (s IN (1, 2))\n) AS r\nJOIN x IN r.b\nWHERE EXISTS(\n    SELECT 1\n)\n\
                    ORDER BY r.a, r.b DESC\nOFFSET 1 LIMIT @l";
        assert_eq!(query_in_lines(&parse(query).unwrap()), text);
    }
}
