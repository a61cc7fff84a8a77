//! A query as a tree.
//!
//! Operators of the same strength stand side by side in one [`ExprKind::Chain`],
//! read from the left, and so do the steps of a path. A filter of a thousand
//! `OR`s is then one node with a thousand members, and a tree is never deeper
//! than the text is nested.

pub use dayfly_model::value::Number;

/// A piece of the text, in bytes. All spans are equal: where something stands
/// is no part of what it means.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

/// `SELECT ...`
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// `DISTINCT`
    pub distinct: bool,
    /// `TOP n`
    pub top: Option<Count>,
    /// What is selected.
    pub projection: Projection,
    /// `FROM a JOIN b JOIN c`; may be empty.
    pub sources: Vec<Source>,
    /// `WHERE`
    pub filter: Option<Expr>,
    /// `GROUP BY`; empty without it.
    pub group_by: Vec<Expr>,
    /// `ORDER BY`
    pub order_by: Option<OrderBy>,
    /// `OFFSET n LIMIT m`
    pub page: Option<OffsetLimit>,
    /// Where it stands; a subquery with its brackets.
    pub span: Span,
}

/// The count of a `TOP`, `OFFSET` or `LIMIT`.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// How many.
    pub amount: Amount,
    /// Where it stands; that of a `TOP` with the word.
    pub span: Span,
}

/// A number, or a parameter that is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Written in the query.
    Number(u32),
    /// The name of a parameter, with its `@`.
    Parameter(String),
}

/// What is selected.
#[derive(Clone, Debug, PartialEq)]
pub enum Projection {
    /// `*`
    All(Span),
    /// `VALUE x`
    Value(SelectItem),
    /// `x, y AS z`
    Items(Vec<SelectItem>),
}

/// An expression that is selected, and its name.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    /// What is selected.
    pub expr: Expr,
    /// `AS name`
    pub alias: Option<String>,
}

/// A member of the `FROM` clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// What is read.
    pub collection: Collection,
    /// The name by which it is known.
    pub binding: Binding,
    /// Where it stands.
    pub span: Span,
}

/// The name of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// None is given; the last name of the path is taken.
    Inferred,
    /// `collection AS name`
    Alias(String),
    /// `name IN collection`: each element of it.
    Each(String),
}

/// What a source reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Collection {
    /// A name, and steps into what it stands for.
    Path {
        /// The container, or the name of an earlier source.
        root: String,
        /// The way from there.
        steps: Vec<SourceStep>,
    },
    /// `(SELECT ...)`
    Subquery(Box<Query>),
    /// `OBJECTTOARRAY(c.x)`
    Call(Call),
}

/// A step of the path of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceStep {
    /// `.name`
    Member(String),
    /// `["name"]`
    Property(String),
    /// `[5]`
    Index(u64),
}

/// `ORDER BY`
#[derive(Clone, Debug, PartialEq)]
pub struct OrderBy {
    /// `ORDER BY RANK`: the keys are calls of scoring functions.
    pub rank: bool,
    /// At least one.
    pub keys: Vec<SortKey>,
    /// Where it stands.
    pub span: Span,
}

/// `x DESC`
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// What is sorted by.
    pub expr: Expr,
    /// The direction, if it is written.
    pub direction: Option<Direction>,
}

/// The direction of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `ASC`
    Ascending,
    /// `DESC`
    Descending,
}

/// `OFFSET n LIMIT m`
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetLimit {
    /// How many are left out.
    pub offset: Count,
    /// How many follow.
    pub limit: Count,
    /// Where it stands.
    pub span: Span,
}

/// An expression, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `undefined`, `1`, `"a"`
    Literal(Literal),
    /// `c`
    Identifier(String),
    /// `@p`, with its `@`
    Parameter(String),
    /// `[1, 2]`
    Array(Vec<Expr>),
    /// `{"a": 1}`
    Object(Vec<(String, Expr)>),
    /// `-x`
    Unary(Sign, Box<Expr>),
    /// `a + b - c`: operators of the same strength, read from the left. Its
    /// first operand is never a chain of that strength.
    Chain(Box<Expr>, Vec<(Operator, Expr)>),
    /// `a ? b : c`
    Conditional(Box<[Expr; 3]>),
    /// `x BETWEEN low AND high`
    Between {
        /// `NOT BETWEEN`
        not: bool,
        /// `x`, the low and the high bound.
        operands: Box<[Expr; 3]>,
    },
    /// `x IN (1, 2)`
    In {
        /// `NOT IN`
        not: bool,
        /// What is looked for.
        value: Box<Expr>,
        /// At least one.
        list: Vec<Expr>,
    },
    /// `x LIKE "a%" ESCAPE "!"`
    Like {
        /// `NOT LIKE`
        not: bool,
        /// `x` and the pattern.
        operands: Box<[Expr; 2]>,
        /// `ESCAPE`
        escape: Option<String>,
    },
    /// `x.a[0].b`. `x` is never such a path itself.
    Path(Box<Expr>, Vec<Access>),
    /// `ABS(x)`, `udf.f(x)`
    Call(Box<Call>),
    /// `(SELECT ...)`, `EXISTS(SELECT ...)`
    Subquery(Use, Box<Query>),
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `undefined`
    Undefined,
    /// `null`
    Null,
    /// `true`, `false`
    Boolean(bool),
    /// `1`, `1.5`, `0x1F`
    Number(Number),
    /// `NaN`
    NotANumber,
    /// `Infinity`
    Infinity,
    /// `"a"`, `'a'`
    String(String),
}

/// A sign or word before an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `~`
    BitNot,
    /// `NOT`
    Not,
}

macro_rules! operators {
    ($($(#[doc = $doc:literal])+ $name:ident $text:literal $strength:ident;)+) => {
        /// An operator between two operands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Operator {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Operator {
            /// All of them.
            pub const ALL: &'static [Operator] = &[$(Operator::$name,)+];

            /// As it is written.
            pub fn text(self) -> &'static str {
                match self { $(Operator::$name => $text,)+ }
            }

            /// How tightly it binds.
            pub fn strength(self) -> Strength {
                match self { $(Operator::$name => Strength::$strength,)+ }
            }
        }
    };
}

operators! {
    /// The first that is defined.
    Coalesce "??" Coalesce;
    /// Logical or.
    Or "OR" Or;
    /// Logical and.
    And "AND" And;
    /// Joins strings.
    Concat "||" Concat;
    /// Bitwise or.
    BitOr "|" BitOr;
    /// Bitwise exclusive or.
    BitXor "^" BitXor;
    /// Bitwise and.
    BitAnd "&" BitAnd;
    /// Equal.
    Equal "=" Equality;
    /// Not equal, also written `<>`.
    NotEqual "!=" Equality;
    /// Less.
    Less "<" Comparison;
    /// Less or equal.
    LessOrEqual "<=" Comparison;
    /// Greater.
    Greater ">" Comparison;
    /// Greater or equal.
    GreaterOrEqual ">=" Comparison;
    /// Shift to the left.
    ShiftLeft "<<" Shift;
    /// Shift to the right that keeps the sign.
    ShiftRight ">>" Shift;
    /// Shift to the right that fills up with zeros.
    ShiftRightZero ">>>" Shift;
    /// Plus.
    Add "+" Sum;
    /// Minus.
    Subtract "-" Sum;
    /// Times.
    Multiply "*" Product;
    /// Divided by.
    Divide "/" Product;
    /// The remainder.
    Modulo "%" Product;
}

/// How tightly operators bind, from loose to tight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// `? :`
    Conditional,
    /// `??`
    Coalesce,
    /// `OR`
    Or,
    /// `AND`
    And,
    /// `BETWEEN`, `IN`, `LIKE`; they do not follow each other.
    Predicate,
    /// `||`
    Concat,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `&`
    BitAnd,
    /// `=` and `!=`
    Equality,
    /// `<` and its like
    Comparison,
    /// `<<` and its like
    Shift,
    /// `+` and `-`
    Sum,
    /// `*`, `/` and `%`
    Product,
    /// An operand by itself.
    Operand,
}

impl Strength {
    /// The next tighter one.
    pub(crate) fn above(self) -> Strength {
        let all = Operator::ALL.iter().map(|operator| operator.strength());
        let tighter = all.chain([Strength::Predicate]).filter(|other| *other > self);
        tighter.min().unwrap_or(Strength::Operand)
    }
}

/// A step into a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// `.name`
    Member(String),
    /// `[expr]`
    Index(Expr),
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Whether it is a user's own: `udf.name`.
    pub udf: bool,
    /// As it is written; the case of the server's own counts for nothing.
    pub name: String,
    /// The arguments.
    pub arguments: Vec<Expr>,
    /// Where the name stands.
    pub name_span: Span,
    /// Where all of it stands.
    pub span: Span,
}

/// What is made of the rows of a subquery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The one value.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// All of them.
    Array,
    /// Whether all rows fulfil the filter.
    All,
    /// The first row.
    First,
    /// The last row.
    Last,
}

impl Use {
    /// The word before the bracket.
    pub fn word(self) -> &'static str {
        match self {
            Use::Scalar => "",
            Use::Exists => "EXISTS",
            Use::Array => "ARRAY",
            Use::All => "ALL",
            Use::First => "FIRST",
            Use::Last => "LAST",
        }
    }
}

impl Expr {
    /// An expression that stands at `span`.
    pub fn new(kind: ExprKind, span: Span) -> Self {
        Expr { kind, span }
    }

    /// `self operator right`. A chain of the same strength gets longer.
    pub fn then(self, operator: Operator, right: Expr) -> Expr {
        let span = Span { start: self.span.start, end: right.span.end };
        let kind = match self.kind {
            ExprKind::Chain(first, mut rest) if strength_of(&rest) == Some(operator.strength()) => {
                rest.push((operator, right));
                ExprKind::Chain(first, rest)
            }
            kind => {
                let first = Expr { kind, span: self.span };
                ExprKind::Chain(Box::new(first), vec![(operator, right)])
            }
        };
        Expr { kind, span }
    }

    /// `self.name` or `self[index]`. A path gets longer.
    pub fn step(self, access: Access, end: usize) -> Expr {
        let span = Span { start: self.span.start, end };
        let kind = match self.kind {
            ExprKind::Path(of, mut steps) => {
                steps.push(access);
                ExprKind::Path(of, steps)
            }
            kind => {
                let of = Expr { kind, span: self.span };
                ExprKind::Path(Box::new(of), vec![access])
            }
        };
        Expr { kind, span }
    }
}

fn strength_of(rest: &[(Operator, Expr)]) -> Option<Strength> {
    rest.first().map(|(operator, _)| operator.strength())
}
