//! From tokens to the clauses of a query. Expressions have a file of their own.
//!
//! The parser looks at one token, and where that is not enough at the two that
//! follow. What it did not expect is told with the token's text and place.

use crate::error::{SyntaxError, quoted};
use crate::lex::{self, Lexer, Token, TokenKind};
use crate::tree::{
    Amount, Binding, Collection, Count, Direction, Expr, ExprKind, OffsetLimit, OrderBy,
    Projection, Query, SelectItem, SortKey, Source, SourceStep, Span,
};

/// The longest text of a query, in characters.
pub const TEXT_MAX: usize = 524_288;
/// How deep a query may be nested: brackets, calls, subqueries, and operators
/// inside others.
pub const DEPTH_MAX: usize = 128;

pub(crate) type Parsed<T> = Result<T, SyntaxError>;

/// Reads a query.
pub fn parse(text: &str) -> Result<Query, SyntaxError> {
    if text.encode_utf16().count() > TEXT_MAX {
        let message =
            format!("The SQL query text exceeded the maximum limit of {TEXT_MAX} characters.");
        return Err(SyntaxError::of_all("SC3020", message, text));
    }
    let mut parser = Parser::new(text);
    let query = parser.query()?;
    match parser.token.kind {
        TokenKind::End => Ok(query),
        _ => Err(parser.unexpected()),
    }
}

pub(crate) struct Parser<'a> {
    text: &'a str,
    /// What comes after `token`.
    lexer: Lexer<'a>,
    /// The token to be read next.
    pub(crate) token: Token<'a>,
    /// Where the last token that was read ends.
    pub(crate) end: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        let mut lexer = Lexer::new(text);
        let token = lexer.next_token();
        Parser { text, lexer, token, end: 0, depth: 0 }
    }

    /// Reads the token.
    pub(crate) fn advance(&mut self) -> Token<'a> {
        let token = self.token;
        self.end = token.end();
        self.token = self.lexer.next_token();
        token
    }

    /// The token after the next.
    pub(crate) fn second(&self) -> Token<'a> {
        let mut lexer = self.lexer;
        lexer.next_token()
    }

    /// The token after that.
    pub(crate) fn third(&self) -> Token<'a> {
        let mut lexer = self.lexer;
        lexer.next_token();
        lexer.next_token()
    }

    /// Reads a keyword if it stands here.
    pub(crate) fn take(&mut self, keyword: &str) -> bool {
        let here = self.token.is(keyword);
        if here {
            self.advance();
        }
        here
    }

    /// Reads a sign if it stands here.
    pub(crate) fn take_sign(&mut self, sign: &str) -> bool {
        let here = self.token.is_sign(sign);
        if here {
            self.advance();
        }
        here
    }

    fn expect(&mut self, keyword: &str) -> Parsed<()> {
        if self.take(keyword) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(crate) fn expect_sign(&mut self, sign: &str) -> Parsed<()> {
        if self.take_sign(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Reads a name.
    pub(crate) fn name(&mut self) -> Parsed<String> {
        if self.token.is_name() {
            Ok(self.advance().text.to_owned())
        } else {
            Err(self.unexpected())
        }
    }

    /// Reads the string that stands here.
    pub(crate) fn string(&mut self) -> Parsed<String> {
        let text = match self.token.kind {
            TokenKind::Text => lex::text_of(self.token.text).ok_or_else(|| self.bad_string()),
            _ => Err(self.unexpected()),
        }?;
        self.advance();
        Ok(text)
    }

    pub(crate) fn span_from(&self, start: usize) -> Span {
        Span { start, end: self.end }
    }

    /// The token is not what can stand here.
    pub(crate) fn unexpected(&self) -> SyntaxError {
        let span = self.token.span();
        match self.token.kind {
            TokenKind::OpenText => self.bad_string(),
            TokenKind::End => {
                SyntaxError::new("SC1002", "Syntax error, unexpected end-of-file.", self.text, span)
            }
            _ => {
                let near = quoted(self.token.text);
                let message = format!("Syntax error, incorrect syntax near '{near}'.");
                SyntaxError::new("SC1001", message, self.text, span)
            }
        }
    }

    fn bad_string(&self) -> SyntaxError {
        let token = quoted(self.token.text);
        let message = format!("Syntax error, invalid string literal token '{token}'.");
        SyntaxError::new("SC1012", message, self.text, self.token.span())
    }

    /// Reads something that is one level deeper.
    pub(crate) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            let message = format!(
                "The query is nested more than {DEPTH_MAX} levels deep. Use fewer brackets."
            );
            return Err(SyntaxError::without_code(message, self.text, self.token.span()));
        }
        self.depth += 1;
        let outcome = read(self);
        self.depth -= 1;
        outcome
    }

    /// Reads one or more, with commas between them.
    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut list = vec![read(self)?];
        while self.take_sign(",") {
            list.push(read(self)?);
        }
        Ok(list)
    }

    /// Reads a query in brackets that opens here.
    pub(crate) fn subquery(&mut self) -> Parsed<Box<Query>> {
        let start = self.token.start;
        self.expect_sign("(")?;
        let query = self.nested(Self::query)?;
        self.expect_sign(")")?;
        Ok(Box::new(Query { span: self.span_from(start), ..query }))
    }

    fn query(&mut self) -> Parsed<Query> {
        let start = self.token.start;
        self.expect("SELECT")?;
        let distinct = self.take("DISTINCT");
        let top = self.top()?;
        let projection = self.projection()?;
        let sources = if self.take("FROM") { self.sources()? } else { Vec::new() };
        let filter = if self.take("WHERE") { Some(self.expression()?) } else { None };
        let group_by = self.group_by()?;
        let order_by = self.order_by()?;
        let page = self.page()?;
        let span = self.span_from(start);
        Ok(Query { distinct, top, projection, sources, filter, group_by, order_by, page, span })
    }

    fn top(&mut self) -> Parsed<Option<Count>> {
        let start = self.token.start;
        if !self.take("TOP") {
            return Ok(None);
        }
        let count = self.count("TOP")?;
        Ok(Some(Count { span: self.span_from(start), ..count }))
    }

    fn projection(&mut self) -> Parsed<Projection> {
        if self.token.is_sign("*") {
            return Ok(Projection::All(self.advance().span()));
        }
        if self.take("VALUE") {
            return Ok(Projection::Value(self.item()?));
        }
        Ok(Projection::Items(self.list(Self::item)?))
    }

    fn item(&mut self) -> Parsed<SelectItem> {
        Ok(SelectItem { expr: self.expression()?, alias: self.alias()? })
    }

    /// `AS name`, or the name alone.
    fn alias(&mut self) -> Parsed<Option<String>> {
        if self.take("AS") || self.token.is_name() { self.name().map(Some) } else { Ok(None) }
    }

    fn sources(&mut self) -> Parsed<Vec<Source>> {
        let mut sources = vec![self.source()?];
        while self.take("JOIN") {
            sources.push(self.source()?);
        }
        Ok(sources)
    }

    fn source(&mut self) -> Parsed<Source> {
        let start = self.token.start;
        let (collection, binding) = if self.token.is_name() && self.second().is("IN") {
            let name = self.name()?;
            self.advance();
            (self.collection()?, Binding::Each(name))
        } else {
            let collection = self.collection()?;
            (collection, self.alias()?.map_or(Binding::Inferred, Binding::Alias))
        };
        Ok(Source { collection, binding, span: self.span_from(start) })
    }

    fn collection(&mut self) -> Parsed<Collection> {
        if self.token.is_sign("(") {
            return Ok(Collection::Subquery(self.subquery()?));
        }
        if self.token.is_name() && self.second().is_sign("(") {
            return Ok(Collection::Call(self.call(false)?));
        }
        let root = self.name()?;
        let mut steps = Vec::new();
        while let Some(step) = self.step()? {
            steps.push(step);
        }
        Ok(Collection::Path { root, steps })
    }

    fn step(&mut self) -> Parsed<Option<SourceStep>> {
        if self.take_sign(".") {
            return Ok(Some(SourceStep::Member(self.name()?)));
        }
        if !self.take_sign("[") {
            return Ok(None);
        }
        let step = match self.token.kind {
            TokenKind::Number => {
                SourceStep::Index(self.token.text.parse().map_err(|_| self.unexpected())?)
            }
            _ => SourceStep::Property(self.string()?),
        };
        if matches!(step, SourceStep::Index(_)) {
            self.advance();
        }
        self.expect_sign("]")?;
        Ok(Some(step))
    }

    fn group_by(&mut self) -> Parsed<Vec<Expr>> {
        if !self.take("GROUP") {
            return Ok(Vec::new());
        }
        self.expect("BY")?;
        self.list(Self::expression)
    }

    fn order_by(&mut self) -> Parsed<Option<OrderBy>> {
        let start = self.token.start;
        if !self.take("ORDER") {
            return Ok(None);
        }
        self.expect("BY")?;
        // RANK may also be a name; before a name it is the keyword.
        let rank = self.token.is("RANK") && starts_call(&self.second());
        if rank {
            self.advance();
        }
        let keys = self.list(|parser| parser.sort_key(rank))?;
        Ok(Some(OrderBy { rank, keys, span: self.span_from(start) }))
    }

    fn sort_key(&mut self, rank: bool) -> Parsed<SortKey> {
        let expr = if rank { self.rank_call()? } else { self.expression()? };
        let direction = if self.take("ASC") {
            Some(Direction::Ascending)
        } else if self.take("DESC") {
            Some(Direction::Descending)
        } else {
            None
        };
        Ok(SortKey { expr, direction })
    }

    fn rank_call(&mut self) -> Parsed<Expr> {
        let start = self.token.start;
        let call = self.call(false)?;
        Ok(Expr::new(ExprKind::Call(Box::new(call)), self.span_from(start)))
    }

    fn page(&mut self) -> Parsed<Option<OffsetLimit>> {
        let start = self.token.start;
        if !self.take("OFFSET") {
            return Ok(None);
        }
        let offset = self.count("OFFSET")?;
        self.expect("LIMIT")?;
        let limit = self.count("LIMIT")?;
        Ok(Some(OffsetLimit { offset, limit, span: self.span_from(start) }))
    }

    /// The count after `clause`.
    fn count(&mut self, clause: &str) -> Parsed<Count> {
        let Token { kind, text, .. } = self.token;
        let span = self.token.span();
        let amount = match kind {
            TokenKind::Parameter => Amount::Parameter(text.to_owned()),
            TokenKind::Number => match text.parse() {
                Ok(number) => Amount::Number(number),
                Err(_) => return Err(self.bad_count(clause)),
            },
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(Count { amount, span })
    }

    /// A count that no 32 bits hold, or that is no integer.
    fn bad_count(&self, clause: &str) -> SyntaxError {
        let is_integer = self.token.text.chars().all(|c| c.is_ascii_digit());
        let (code, message) = match clause {
            "TOP" => ("SC2060", "The count value provided for a TOP clause must be an integer."),
            _ if !is_integer => return self.unexpected(),
            "LIMIT" => ("SC2061", "The LIMIT count value exceeds the maximum allowed value."),
            _ => ("SC2062", "The OFFSET count value exceeds the maximum allowed value."),
        };
        SyntaxError::new(code, message, self.text, self.token.span())
    }
}

/// Whether the name of a function stands here.
pub(crate) fn starts_call(token: &Token<'_>) -> bool {
    token.is_name() || token.is("LEFT") || token.is("RIGHT")
}
