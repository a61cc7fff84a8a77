//! A tree as text, in the form in which the service writes queries: keywords in
//! upper case, every operator in brackets, strings in double quotes, `AS` and
//! the direction of a sort always there.

use std::fmt::{self, Display, Formatter, Write};

use crate::tree::{
    Access, Amount, Binding, Call, Collection, Count, Direction, Expr, ExprKind, Item, Literal,
    Number, Operator, OrderBy, Projection, Query, Sign, SortKey, Source, Step,
};

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SELECT ")?;
        if self.distinct {
            f.write_str("DISTINCT ")?;
        }
        if let Some(top) = &self.top {
            write!(f, "TOP {top} ")?;
        }
        write!(f, "{}", self.projection)?;
        for (number, source) in self.sources.iter().enumerate() {
            f.write_str(if number == 0 { " FROM " } else { " JOIN " })?;
            write!(f, "{source}")?;
        }
        if let Some(filter) = &self.filter {
            write!(f, " WHERE {filter}")?;
        }
        if !self.group_by.is_empty() {
            f.write_str(" GROUP BY ")?;
            list(f, &self.group_by)?;
        }
        if let Some(order_by) = &self.order_by {
            write!(f, " {order_by}")?;
        }
        match &self.page {
            Some(page) => write!(f, " OFFSET {} LIMIT {}", page.offset, page.limit),
            None => Ok(()),
        }
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.amount {
            Amount::Number(number) => write!(f, "{number}"),
            Amount::Parameter(name) => f.write_str(name),
        }
    }
}

impl Display for Projection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Projection::All(_) => f.write_str("*"),
            Projection::Value(item) => write!(f, "VALUE {item}"),
            Projection::Items(items) => list(f, items),
        }
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expr)?;
        self.alias.as_ref().map_or(Ok(()), |alias| write!(f, " AS {alias}"))
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.binding {
            Binding::Inferred => write!(f, "{}", self.collection),
            Binding::Alias(name) => write!(f, "{} AS {name}", self.collection),
            Binding::Each(name) => write!(f, "{name} IN {}", self.collection),
        }
    }
}

impl Display for Collection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Collection::Subquery(query) => write!(f, "({query})"),
            Collection::Call(call) => write!(f, "{call}"),
            Collection::Path { root, steps } => {
                f.write_str(root)?;
                steps.iter().try_for_each(|step| match step {
                    Step::Member(name) => write!(f, ".{name}"),
                    Step::Property(name) => {
                        f.write_str("[")?;
                        string(f, name)?;
                        f.write_str("]")
                    }
                    Step::Index(index) => write!(f, "[{index}]"),
                })
            }
        }
    }
}

impl Display for OrderBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.rank { "ORDER BY RANK " } else { "ORDER BY " })?;
        list(f, &self.keys)
    }
}

impl Display for SortKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Some(Direction::Descending) => "DESC",
            Some(Direction::Ascending) | None => "ASC",
        };
        write!(f, "{} {direction}", self.expr)
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Literal(literal) => write!(f, "{literal}"),
            ExprKind::Identifier(name) | ExprKind::Parameter(name) => f.write_str(name),
            ExprKind::Array(values) => {
                f.write_str("[")?;
                list(f, values)?;
                f.write_str("]")
            }
            ExprKind::Object(members) => object(f, members),
            ExprKind::Unary(sign, operand) => {
                let sign = match sign {
                    Sign::Minus => "-",
                    Sign::Plus => "+",
                    Sign::BitNot => "~",
                    Sign::Not => "NOT",
                };
                write!(f, "({sign} {operand})")
            }
            ExprKind::Chain(first, rest) => chain(f, first, rest),
            ExprKind::Conditional(parts) => {
                let [test, yes, no] = parts.as_ref();
                write!(f, "({test} ? {yes} : {no})")
            }
            ExprKind::Between { not, operands } => {
                let [value, low, high] = operands.as_ref();
                write!(f, "({value} {}BETWEEN {low} AND {high})", word_not(*not))
            }
            ExprKind::In { not, value, list: values } => {
                write!(f, "({value} {}IN (", word_not(*not))?;
                list(f, values)?;
                f.write_str("))")
            }
            ExprKind::Like { not, operands, escape } => {
                let [value, pattern] = operands.as_ref();
                write!(f, "({value} {}LIKE {pattern}", word_not(*not))?;
                if let Some(escape) = escape {
                    f.write_str(" ESCAPE ")?;
                    string(f, escape)?;
                }
                f.write_str(")")
            }
            ExprKind::Path(of, steps) => path(f, of, steps),
            ExprKind::Call(call) => write!(f, "{call}"),
            ExprKind::Subquery(how, query) => write!(f, "{}({query})", how.word()),
        }
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Undefined => f.write_str("undefined"),
            Literal::Null => f.write_str("null"),
            Literal::Boolean(value) => write!(f, "{value}"),
            Literal::Number(Number::Integer(value)) => write!(f, "{value}"),
            Literal::Number(Number::Double(value)) => write!(f, "{value:?}"),
            Literal::NotANumber => f.write_str("NaN"),
            Literal::Infinity => f.write_str("Infinity"),
            Literal::String(text) => string(f, text),
        }
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}(", if self.udf { "udf." } else { "" }, self.name)?;
        list(f, &self.arguments)?;
        f.write_str(")")
    }
}

fn word_not(not: bool) -> &'static str {
    if not { "NOT " } else { "" }
}

fn list(f: &mut Formatter<'_>, values: &[impl Display]) -> fmt::Result {
    for (number, value) in values.iter().enumerate() {
        if number > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{value}")?;
    }
    Ok(())
}

fn object(f: &mut Formatter<'_>, members: &[(String, Expr)]) -> fmt::Result {
    f.write_str("{")?;
    for (number, (key, value)) in members.iter().enumerate() {
        if number > 0 {
            f.write_str(", ")?;
        }
        string(f, key)?;
        write!(f, ": {value}")?;
    }
    f.write_str("}")
}

/// `((a + b) - c)`: a bracket for each operator.
fn chain(f: &mut Formatter<'_>, first: &Expr, rest: &[(Operator, Expr)]) -> fmt::Result {
    for _ in rest {
        f.write_str("(")?;
    }
    write!(f, "{first}")?;
    rest.iter().try_for_each(|(operator, right)| write!(f, " {} {right})", operator.text()))
}

/// A number needs brackets, or a point would be taken for its own.
fn path(f: &mut Formatter<'_>, of: &Expr, steps: &[Access]) -> fmt::Result {
    match &of.kind {
        ExprKind::Literal(Literal::Number(_)) => write!(f, "({of})")?,
        _ => write!(f, "{of}")?,
    }
    steps.iter().try_for_each(|step| match step {
        Access::Member(name) => write!(f, ".{name}"),
        Access::Index(index) => write!(f, "[{index}]"),
    })
}

fn string(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\u{8}' => f.write_str("\\b")?,
            '\u{c}' => f.write_str("\\f")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_str("\"")
}
