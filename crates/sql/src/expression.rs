//! From tokens to expressions, by the strength of operators.
//!
//! [`Parser::operand`] reads what stands between operators. [`Parser::stronger`]
//! puts operands together: it takes every operator that binds at least as
//! tightly as asked, and reads what is on its right with the strength above its
//! own, so that equals group from the left.

use crate::lex::{self, TokenKind};
use crate::parse::{Parsed, Parser, starts_call};
use crate::tree::{Access, Call, Expr, ExprKind, Literal, Operator, Sign, Strength, Use};

/// What may follow an operand.
#[derive(Clone, Copy)]
enum Infix {
    Operator(Operator),
    Question,
    Between,
    In,
    Like,
}

impl Infix {
    fn strength(self) -> Strength {
        match self {
            Infix::Operator(operator) => operator.strength(),
            Infix::Question => Strength::Conditional,
            Infix::Between | Infix::In | Infix::Like => Strength::Predicate,
        }
    }
}

impl Parser<'_> {
    /// Reads an expression.
    pub(crate) fn expression(&mut self) -> Parsed<Expr> {
        self.stronger(Strength::Conditional)
    }

    /// Reads operands and the operators between them, as long as these bind at
    /// least as tightly as `least`.
    fn stronger(&mut self, least: Strength) -> Parsed<Expr> {
        self.nested(|parser| {
            let mut left = parser.operand()?;
            // What has no order with itself, like IN, ends what may follow it.
            let mut most = Strength::Product;
            while let Some((infix, not)) = parser.infix() {
                let strength = infix.strength();
                if strength < least || strength > most {
                    break;
                }
                if not {
                    parser.advance();
                }
                parser.advance();
                left = parser.right_of(left, infix, not)?;
                most = if strength == Strength::Predicate { Strength::And } else { strength };
            }
            Ok(left)
        })
    }

    /// The operator that stands here, and whether NOT stands before it.
    fn infix(&self) -> Option<(Infix, bool)> {
        let not = self.token.is("NOT");
        let token = if not { self.second() } else { self.token };
        let predicates = [("BETWEEN", Infix::Between), ("IN", Infix::In), ("LIKE", Infix::Like)];
        if let Some((_, infix)) = predicates.iter().find(|(word, _)| token.is(word)) {
            return Some((*infix, not));
        }
        if not {
            return None;
        }
        let infix = match token.kind {
            TokenKind::Word if token.is("AND") => Infix::Operator(Operator::And),
            TokenKind::Word if token.is("OR") => Infix::Operator(Operator::Or),
            TokenKind::Sign if token.text == "?" => Infix::Question,
            TokenKind::Sign if token.text == "<>" => Infix::Operator(Operator::NotEqual),
            TokenKind::Sign => {
                let operator = Operator::ALL.iter().find(|known| known.text() == token.text);
                Infix::Operator(*operator?)
            }
            _ => return None,
        };
        Some((infix, false))
    }

    /// Reads what belongs to an operator on its right, and joins it with what
    /// stands on its left. One function for each, since what is nested in another
    /// goes through here and the stack is not endless.
    fn right_of(&mut self, left: Expr, infix: Infix, not: bool) -> Parsed<Expr> {
        let start = left.span.start;
        let kind = match infix {
            Infix::Operator(operator) => return self.operator(left, operator),
            Infix::Question => self.conditional(left),
            Infix::Between => self.between(left, not),
            Infix::In => self.inside(left, not),
            Infix::Like => self.like(left, not),
        }?;
        Ok(Expr::new(kind, self.span_from(start)))
    }

    fn operator(&mut self, left: Expr, operator: Operator) -> Parsed<Expr> {
        let right = self.stronger(operator.strength().above())?;
        Ok(left.then(operator, right))
    }

    fn conditional(&mut self, test: Expr) -> Parsed<ExprKind> {
        let yes = self.expression()?;
        self.expect_sign(":")?;
        let no = self.expression()?;
        Ok(ExprKind::Conditional(Box::new([test, yes, no])))
    }

    fn between(&mut self, value: Expr, not: bool) -> Parsed<ExprKind> {
        let low = self.stronger(Strength::Concat)?;
        if !self.take("AND") {
            return Err(self.unexpected());
        }
        let high = self.stronger(Strength::Concat)?;
        Ok(ExprKind::Between { not, operands: Box::new([value, low, high]) })
    }

    fn inside(&mut self, value: Expr, not: bool) -> Parsed<ExprKind> {
        self.expect_sign("(")?;
        let list = self.list(Self::expression)?;
        self.expect_sign(")")?;
        Ok(ExprKind::In { not, value: Box::new(value), list })
    }

    fn like(&mut self, value: Expr, not: bool) -> Parsed<ExprKind> {
        let pattern = self.stronger(Strength::Concat)?;
        let escape = if self.take("ESCAPE") { Some(self.string()?) } else { None };
        Ok(ExprKind::Like { not, operands: Box::new([value, pattern]), escape })
    }

    /// Reads an operand with the signs before it and the path after it.
    fn operand(&mut self) -> Parsed<Expr> {
        match self.sign() {
            Some(sign) => self.signed(sign),
            None => self.path(),
        }
    }

    fn signed(&mut self, sign: Sign) -> Parsed<Expr> {
        let start = self.advance().start;
        let operand = self.nested(Self::operand)?;
        let kind = match (sign, operand.kind) {
            (Sign::Minus, ExprKind::Literal(Literal::Number(number))) if !number.is_negative() => {
                ExprKind::Literal(Literal::Number(number.negated()))
            }
            (sign, kind) => ExprKind::Unary(sign, Box::new(Expr::new(kind, operand.span))),
        };
        Ok(Expr::new(kind, self.span_from(start)))
    }

    fn sign(&self) -> Option<Sign> {
        let signs = [("-", Sign::Minus), ("+", Sign::Plus), ("~", Sign::BitNot)];
        let found = signs.iter().find(|(text, _)| self.token.is_sign(text));
        found.map(|(_, sign)| *sign).or_else(|| self.token.is("NOT").then_some(Sign::Not))
    }

    /// Reads a value and the steps into it.
    fn path(&mut self) -> Parsed<Expr> {
        let mut value = self.value()?;
        loop {
            let access = if self.take_sign(".") {
                Access::Member(self.name()?)
            } else if self.take_sign("[") {
                let index = self.expression()?;
                self.expect_sign("]")?;
                Access::Index(index)
            } else {
                return Ok(value);
            };
            value = value.step(access, self.end);
        }
    }

    fn value(&mut self) -> Parsed<Expr> {
        let start = self.token.start;
        let kind = match self.token.kind {
            TokenKind::Number => self.number(),
            TokenKind::Text => self.string().map(|text| ExprKind::Literal(Literal::String(text))),
            TokenKind::Parameter => Ok(ExprKind::Parameter(self.advance().text.to_owned())),
            TokenKind::Word => self.word(),
            TokenKind::Sign if self.token.text == "[" => self.array(),
            TokenKind::Sign if self.token.text == "{" => self.object(),
            TokenKind::Sign if self.token.text == "(" => self.bracket(),
            _ => Err(self.unexpected()),
        }?;
        Ok(Expr::new(kind, self.span_from(start)))
    }

    fn number(&mut self) -> Parsed<ExprKind> {
        let number = lex::number_of(self.token.text).ok_or_else(|| self.unexpected())?;
        self.advance();
        Ok(ExprKind::Literal(Literal::Number(number)))
    }

    fn bracket(&mut self) -> Parsed<ExprKind> {
        if self.second().is("SELECT") {
            return Ok(ExprKind::Subquery(Use::Scalar, self.subquery()?));
        }
        self.advance();
        let inner = self.expression()?;
        self.expect_sign(")")?;
        Ok(inner.kind)
    }

    /// Reads a value that starts with a word.
    fn word(&mut self) -> Parsed<ExprKind> {
        if let Some(literal) = literal_of(self.token.text) {
            self.advance();
            return Ok(ExprKind::Literal(literal));
        }
        if let Some(how) = self.subquery_use() {
            self.advance();
            return Ok(ExprKind::Subquery(how, self.subquery()?));
        }
        let udf = self.token.text == "udf";
        if udf {
            self.advance();
            self.expect_sign(".")?;
        }
        if udf || (starts_call(&self.token) && self.second().is_sign("(")) {
            return self.call(udf).map(|call| ExprKind::Call(Box::new(call)));
        }
        self.name().map(ExprKind::Identifier)
    }

    /// EXISTS and ARRAY always have a subquery; ALL, FIRST and LAST may be
    /// names too.
    fn subquery_use(&self) -> Option<Use> {
        let always = [Use::Exists, Use::Array].into_iter().find(|how| self.token.is(how.word()));
        always.or_else(|| {
            let mut names = [Use::All, Use::First, Use::Last].into_iter();
            let how = names.find(|how| self.token.is(how.word()))?;
            (self.second().is_sign("(") && self.third().is("SELECT")).then_some(how)
        })
    }

    /// Reads a call whose name stands here.
    pub(crate) fn call(&mut self, udf: bool) -> Parsed<Call> {
        if !starts_call(&self.token) {
            return Err(self.unexpected());
        }
        let name = self.advance();
        self.expect_sign("(")?;
        let arguments = self.list_until(")", Self::expression)?;
        let (name_span, span) = (name.span(), self.span_from(name.start));
        Ok(Call { udf, name: name.text.to_owned(), arguments, name_span, span })
    }

    fn array(&mut self) -> Parsed<ExprKind> {
        self.advance();
        self.list_until("]", Self::expression).map(ExprKind::Array)
    }

    fn object(&mut self) -> Parsed<ExprKind> {
        self.advance();
        self.list_until("}", Self::member).map(ExprKind::Object)
    }

    fn member(&mut self) -> Parsed<(String, Expr)> {
        let key = match self.token.kind {
            TokenKind::Word => self.name()?,
            _ => self.string()?,
        };
        self.expect_sign(":")?;
        Ok((key, self.expression()?))
    }

    /// Reads a list that may be empty, and the sign that closes it.
    fn list_until<T>(
        &mut self,
        close: &str,
        read: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        if self.take_sign(close) {
            return Ok(Vec::new());
        }
        let list = self.list(read)?;
        self.expect_sign(close)?;
        Ok(list)
    }
}

fn literal_of(word: &str) -> Option<Literal> {
    match word {
        "undefined" => Some(Literal::Undefined),
        "null" => Some(Literal::Null),
        "true" => Some(Literal::Boolean(true)),
        "false" => Some(Literal::Boolean(false)),
        "NaN" => Some(Literal::NotANumber),
        "Infinity" => Some(Literal::Infinity),
        _ => None,
    }
}
