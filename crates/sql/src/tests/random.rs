//! Random trees survive being written and read; random texts never panic.

use proptest::prelude::*;

use crate::tree::{
    Access, Amount, Binding, Call, Collection, Count, Direction, Expr, ExprKind, Literal, Number,
    OffsetLimit, Operator, OrderBy, Projection, Query, SelectItem, Sign, SortKey, Source,
    SourceStep, Span, Use,
};
use crate::{check, parse};

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "c", "root", "_x1", "größe", "all", "first", "Rank", "escape", "TRUE",
    ])
    .prop_map(ToOwned::to_owned)
}

fn function() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["ABS", "left", "RIGHT", "StringEquals", "last"])
        .prop_map(ToOwned::to_owned)
}

fn parameter() -> impl Strategy<Value = String> {
    name().prop_map(|name| format!("@{name}"))
}

fn number() -> impl Strategy<Value = Number> {
    let double = any::<f64>().prop_filter("finite", |value| value.is_finite());
    // The least integer is written as a double and told by its minus.
    let double = double.prop_map(|value| Number::Double(value).negated().negated());
    prop_oneof![any::<i64>().prop_map(Number::Integer), double]
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        Just(Literal::Undefined),
        Just(Literal::Null),
        any::<bool>().prop_map(Literal::Boolean),
        number().prop_map(Literal::Number),
        Just(Literal::NotANumber),
        Just(Literal::Infinity),
        any::<String>().prop_map(Literal::String),
    ]
}

fn at(kind: ExprKind) -> Expr {
    Expr::new(kind, Span::default())
}

fn call(expr: impl Strategy<Value = Expr>) -> impl Strategy<Value = Call> {
    (any::<bool>(), function(), prop::collection::vec(expr, 0..3)).prop_map(
        |(udf, name, arguments)| Call {
            udf,
            name,
            arguments,
            name_span: Span::default(),
            span: Span::default(),
        },
    )
}

fn signed(sign: Sign, operand: Expr) -> Expr {
    let is_sum = match &operand.kind {
        ExprKind::Literal(Literal::Number(number)) => sign == Sign::Minus && !number.is_negative(),
        _ => false,
    };
    // A minus before a number is the number's own.
    if is_sum { operand } else { at(ExprKind::Unary(sign, Box::new(operand))) }
}

pub(crate) fn expr() -> BoxedStrategy<Expr> {
    let leaf = prop_oneof![
        literal().prop_map(|literal| at(ExprKind::Literal(literal))),
        name().prop_map(|name| at(ExprKind::Identifier(name))),
        parameter().prop_map(|name| at(ExprKind::Parameter(name))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = |least| prop::collection::vec(inner.clone(), least..4);
        let pair = (any::<bool>(), inner.clone(), inner.clone());
        let three = (any::<bool>(), inner.clone(), inner.clone(), inner.clone());
        let sign = prop::sample::select(vec![Sign::Minus, Sign::Plus, Sign::BitNot, Sign::Not]);
        let operator = prop::sample::select(Operator::ALL);
        let step =
            prop_oneof![name().prop_map(Access::Member), inner.clone().prop_map(Access::Index)];
        let how = vec![Use::Scalar, Use::Exists, Use::Array, Use::All, Use::First, Use::Last];
        prop_oneof![
            list(0).prop_map(|values| at(ExprKind::Array(values))),
            prop::collection::vec((any::<String>(), inner.clone()), 0..3)
                .prop_map(|members| at(ExprKind::Object(members))),
            (sign, inner.clone()).prop_map(|(sign, operand)| signed(sign, operand)),
            (inner.clone(), operator, inner.clone())
                .prop_map(|(left, operator, right)| left.then(operator, right)),
            three.clone().prop_map(|(_, a, b, c)| at(ExprKind::Conditional(Box::new([a, b, c])))),
            three.prop_map(|(not, a, b, c)| {
                at(ExprKind::Between { not, operands: Box::new([a, b, c]) })
            }),
            (any::<bool>(), inner.clone(), list(1)).prop_map(|(not, value, list)| at(
                ExprKind::In { not, value: Box::new(value), list }
            )),
            (pair, prop::option::of(any::<String>())).prop_map(|((not, a, b), escape)| {
                at(ExprKind::Like { not, operands: Box::new([a, b]), escape })
            }),
            (inner.clone(), step).prop_map(|(of, step)| of.step(step, 0)),
            call(inner.clone()).prop_map(|call| at(ExprKind::Call(Box::new(call)))),
            (prop::sample::select(how), query_of(inner.clone().boxed()))
                .prop_map(|(how, query)| at(ExprKind::Subquery(how, Box::new(query)))),
        ]
    })
    .boxed()
}

fn count() -> impl Strategy<Value = Count> {
    let amount =
        prop_oneof![any::<u32>().prop_map(Amount::Number), parameter().prop_map(Amount::Parameter)];
    amount.prop_map(|amount| Count { amount, span: Span::default() })
}

fn source(expr: BoxedStrategy<Expr>) -> impl Strategy<Value = Source> {
    let step = prop_oneof![
        name().prop_map(SourceStep::Member),
        any::<String>().prop_map(SourceStep::Property),
        any::<u64>().prop_map(SourceStep::Index),
    ];
    let path = (name(), prop::collection::vec(step, 0..3))
        .prop_map(|(root, steps)| Collection::Path { root, steps });
    let function = call(expr)
        .prop_map(|call| Collection::Call(Call { udf: false, name: "F".to_owned(), ..call }));
    let simple =
        Query { projection: Projection::All(Span::default()), ..parse("SELECT 1").unwrap() };
    let subquery = Just(Collection::Subquery(Box::new(simple)));
    let binding = prop_oneof![
        Just(Binding::Inferred),
        name().prop_map(Binding::Alias),
        name().prop_map(Binding::Each),
    ];
    (prop_oneof![path, function, subquery], binding).prop_map(|(collection, binding)| Source {
        collection,
        binding,
        span: Span::default(),
    })
}

fn order_by(expr: BoxedStrategy<Expr>) -> impl Strategy<Value = OrderBy> {
    let direction = prop::sample::select(vec![Direction::Ascending, Direction::Descending]);
    let calls = call(expr.clone())
        .prop_map(|call| at(ExprKind::Call(Box::new(Call { udf: false, ..call }))));
    let keys = |expr: BoxedStrategy<Expr>| {
        let key = (expr, direction.clone())
            .prop_map(|(expr, direction)| SortKey { expr, direction: Some(direction) });
        prop::collection::vec(key, 1..3)
    };
    let rank = keys(calls.boxed()).prop_map(|keys| (true, keys));
    let plain = keys(expr).prop_map(|keys| (false, keys));
    prop_oneof![rank, plain].prop_map(|(rank, keys)| OrderBy { rank, keys, span: Span::default() })
}

pub(crate) fn query_of(expr: BoxedStrategy<Expr>) -> BoxedStrategy<Query> {
    let item = (expr.clone(), prop::option::of(name()))
        .prop_map(|(expr, alias)| SelectItem { expr, alias })
        .boxed();
    let projection = prop_oneof![
        Just(Projection::All(Span::default())),
        item.clone().prop_map(Projection::Value),
        prop::collection::vec(item, 1..3).prop_map(Projection::Items),
    ];
    let page = (count(), count()).prop_map(|(offset, limit)| OffsetLimit {
        offset,
        limit,
        span: Span::default(),
    });
    let head = (any::<bool>(), prop::option::of(count()), projection);
    let middle = (
        prop::collection::vec(source(expr.clone()), 0..3),
        prop::option::of(expr.clone()),
        prop::collection::vec(expr.clone(), 0..2),
    );
    let tail = (prop::option::of(order_by(expr)), prop::option::of(page));
    (head, middle, tail)
        .prop_map(|((distinct, top, projection), (sources, filter, group_by), (order_by, page))| {
            let span = Span::default();
            Query { distinct, top, projection, sources, filter, group_by, order_by, page, span }
        })
        .boxed()
}

/// Pieces of which queries are made, and some of which they are not.
fn soup() -> impl Strategy<Value = String> {
    let words = "SELECT VALUE DISTINCT TOP * FROM c JOIN IN WHERE GROUP BY ORDER RANK ASC DESC \
                 OFFSET LIMIT AND OR NOT BETWEEN LIKE ESCAPE EXISTS ARRAY ALL udf true null \
                 undefined NaN . , : ? ?? ( ) [ ] { } + - ~ = != <> < >= >>> || | & ^ % / ; $ @p @ \
                 1 .5 0x 0xF 1e9 1e999 'a' \"b\" ' \" '\\u12' '\\ud800' -- \u{e9} \u{1F600}";
    let piece = prop::sample::select(words.split(' ').collect::<Vec<_>>());
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.join(" "))
}

fn survives(text: &str) {
    match parse(text) {
        Ok(tree) => {
            let again =
                parse(&tree.to_string()).unwrap_or_else(|error| panic!("{tree}: {error:?}"));
            assert_eq!(again, tree, "{tree}");
            let _ = check(&tree, text);
        }
        Err(error) => {
            let length = text.encode_utf16().count();
            assert!(error.start <= error.end && error.end <= length, "{error:?}");
        }
    }
}

/// A direction that is not written is written as ASC.
fn with_directions(mut query: Query) -> Query {
    for key in query.order_by.iter_mut().flat_map(|order_by| &mut order_by.keys) {
        key.direction = key.direction.or(Some(Direction::Ascending));
    }
    query
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_that_is_written_is_read_again(tree in query_of(expr())) {
        let text = tree.to_string();
        let read = parse(&text).map_err(|error| TestCaseError::fail(format!("{text}: {error:?}")))?;
        prop_assert_eq!(with_directions(read), tree, "{}", text);
    }

    #[test]
    fn a_soup_of_tokens_does_not_panic(text in soup()) {
        survives(&text);
        survives(&format!("SELECT {text}"));
        survives(&format!("SELECT * FROM c WHERE {text}"));
    }

    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&String::from_utf8_lossy(&bytes));
        survives(&format!("SELECT {}", String::from_utf8_lossy(&bytes)));
        let _ = crate::Request::read(&bytes);
    }

    #[test]
    fn random_text_does_not_panic(text in any::<String>()) {
        survives(&text);
        survives(&format!("SELECT '{text}'"));
    }
}
