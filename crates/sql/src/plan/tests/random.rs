//! Random filters never miss an item; random queries are rewritten to queries.

use dayfly_model::epk;
use dayfly_model::partition_key::{Component, PartitionKey};
use proptest::prelude::*;

use super::{features, filled, key, parameters, planned};
use crate::plan::{Info, plan, routing};
use crate::tests::random::{expr, query_of};
use crate::{check, parse};

/// The values that keys have here, as text and as components.
fn value() -> impl Strategy<Value = (&'static str, Component)> {
    prop::sample::select(vec![
        ("1", Component::Number(1.0)),
        ("-1", Component::Number(-1.0)),
        ("\"a\"", Component::String("a".to_owned())),
        ("null", Component::Null),
        ("true", Component::Bool(true)),
        ("false", Component::Bool(false)),
    ])
}

/// A filter as text, and what it says of an item with two keys: true, false, or
/// neither.
#[derive(Clone, Debug)]
enum Filter {
    Equal(usize, (&'static str, Component)),
    In(usize, Vec<(&'static str, Component)>),
    Bare(usize),
    NotBare(usize),
    IsBool(usize),
    IsNull(usize),
    /// Every number here is 1 or -1.
    Abs(usize),
    /// Says nothing of keys: the value is that of the item's other property.
    Other,
    Constant(bool),
    And(Vec<Filter>),
    Or(Vec<Filter>),
    Not(Box<Filter>),
}

const PATHS: [&str; 2] = ["c.a", "c.b"];

impl Filter {
    fn text(&self) -> String {
        let path = |number: &usize| PATHS[*number];
        let all = |filters: &[Filter], word: &str| {
            let texts: Vec<String> = filters.iter().map(Filter::text).collect();
            format!("({})", texts.join(word))
        };
        match self {
            Filter::Equal(of, (text, _)) => format!("({} = {text})", path(of)),
            Filter::In(of, values) => {
                let values: Vec<&str> = values.iter().map(|(text, _)| *text).collect();
                format!("({} IN ({}))", path(of), values.join(", "))
            }
            Filter::Bare(of) => path(of).to_owned(),
            Filter::NotBare(of) => format!("(NOT {})", path(of)),
            Filter::IsBool(of) => format!("IS_BOOL({})", path(of)),
            Filter::IsNull(of) => format!("IS_NULL({})", path(of)),
            Filter::Abs(of) => format!("(ABS({}) = 1)", path(of)),
            Filter::Other => "c.other".to_owned(),
            Filter::Constant(truth) => truth.to_string(),
            Filter::And(filters) => all(filters, " AND "),
            Filter::Or(filters) => all(filters, " OR "),
            Filter::Not(filter) => format!("(NOT {})", filter.text()),
        }
    }

    fn holds(&self, keys: &[Component; 2], other: bool) -> Option<bool> {
        let truth = |value: &Component| match value {
            Component::Bool(truth) => Some(*truth),
            _ => None,
        };
        match self {
            Filter::Equal(of, (_, value)) => Some(keys[*of] == *value),
            Filter::In(of, values) => Some(values.iter().any(|(_, value)| keys[*of] == *value)),
            Filter::Bare(of) => truth(&keys[*of]),
            Filter::NotBare(of) => truth(&keys[*of]).map(|truth| !truth),
            Filter::IsBool(of) => Some(matches!(keys[*of], Component::Bool(_))),
            Filter::IsNull(of) => Some(keys[*of] == Component::Null),
            Filter::Abs(of) => match keys[*of] {
                Component::Number(_) => Some(true),
                _ => None,
            },
            Filter::Other => Some(other),
            Filter::Constant(truth) => Some(*truth),
            Filter::And(filters) => {
                let all: Vec<_> = filters.iter().map(|filter| filter.holds(keys, other)).collect();
                if all.contains(&Some(false)) {
                    Some(false)
                } else {
                    (!all.contains(&None)).then_some(true)
                }
            }
            Filter::Or(filters) => {
                let all: Vec<_> = filters.iter().map(|filter| filter.holds(keys, other)).collect();
                if all.contains(&Some(true)) {
                    Some(true)
                } else {
                    (!all.contains(&None)).then_some(false)
                }
            }
            Filter::Not(filter) => filter.holds(keys, other).map(|truth| !truth),
        }
    }
}

fn filter() -> impl Strategy<Value = Filter> {
    let leaf = prop_oneof![
        (0..2_usize, value()).prop_map(|(of, value)| Filter::Equal(of, value)),
        (0..2_usize, prop::collection::vec(value(), 1..4))
            .prop_map(|(of, list)| Filter::In(of, list)),
        (0..2_usize).prop_map(Filter::Bare),
        (0..2_usize).prop_map(Filter::NotBare),
        (0..2_usize).prop_map(Filter::IsBool),
        (0..2_usize).prop_map(Filter::IsNull),
        (0..2_usize).prop_map(Filter::Abs),
        Just(Filter::Other),
        any::<bool>().prop_map(Filter::Constant),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Filter::And),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Filter::Or),
            inner.prop_map(|filter| Filter::Not(Box::new(filter))),
        ]
    })
}

fn one<const N: usize>(list: [&'static str; N]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(list.to_vec())
}

/// Queries that are well formed, put together from parts.
fn query() -> impl Strategy<Value = String> {
    let heads = ["", "DISTINCT ", "TOP 5 ", "DISTINCT TOP @one "];
    let selected = [
        "*",
        "c.a, 1, c.b AS x",
        "VALUE c.a",
        "VALUE {y: c.a}",
        "VALUE COUNT(1)",
        "AVG(c.a), MIN(c.b) AS m",
        "c.a",
        "VALUE ARRAY(SELECT VALUE t FROM t IN c.t)",
    ];
    let filters = ["", " WHERE c.key = 'a'", " WHERE c.a > 0.1 OR c['b'] LIKE 'x%'"];
    let groups = ["", " GROUP BY c.a"];
    let orders = [
        "",
        " ORDER BY c.a",
        " ORDER BY c.a DESC, c.b",
        " ORDER BY VectorDistance(c.v, [0.1, 2])",
        " ORDER BY RANK RRF(FullTextScore(c.t, 'x'), VectorDistance(c.v, [1]))",
    ];
    let pages = ["", " OFFSET 1 LIMIT @two"];
    (one(heads), one(selected), one(filters), one(groups), one(orders), one(pages)).prop_map(
        |(head, selected, filter, group, order, page)| {
            format!("SELECT {head}{selected} FROM c{filter}{group}{order}{page}")
        },
    )
}

fn sent(info: &Info) -> Vec<&str> {
    match info {
        Info::Query(info) => vec![&info.rewritten],
        Info::Hybrid(info) => {
            let components = info.components.iter().map(|info| info.rewritten.as_str());
            components.chain([info.global_statistics.as_str()]).collect()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_item_that_passes_is_where_the_filter_leads(
        filter in filter(), a in value(), b in value(), other in any::<bool>()
    ) {
        let keys = [a.1, b.1];
        if filter.holds(&keys, other) == Some(true) {
            for definition in [key(&["/a", "/b"]), key(&["/a"]), key(&["/b"])] {
                let text = format!("SELECT * FROM c WHERE {}", filter.text());
                let ranges = routing(&parse(&text).unwrap(), &parameters(&[]), &definition).ranges(&definition);
                let components = definition.texts.iter().map(|path| keys[usize::from(path == "/b")].clone());
                let place = epk::of(&definition, &PartitionKey(components.collect()));
                let found = ranges.iter().any(|range| {
                    range.min <= place && (place < range.max || (range.max_inclusive && place == range.max))
                });
                prop_assert!(found, "{} {:?}", text, ranges);
            }
        }
    }

    #[test]
    fn what_is_sent_is_a_query_that_is_taken(text in query()) {
        let Ok(plan) = planned(&text) else { return Ok(()) };
        for sent in sent(&plan.info).into_iter().filter(|sent| !sent.is_empty()) {
            let sent = filled(sent);
            let tree = parse(&sent).map_err(|error| TestCaseError::fail(format!("{text} -> {sent}: {error:?}")))?;
            check(&tree, &sent).map_err(|error| TestCaseError::fail(format!("{text} -> {sent}: {error:?}")))?;
        }
    }

    #[test]
    fn any_tree_is_planned_or_refused(tree in query_of(expr())) {
        let parameters = parameters(&[]);
        if let Ok(plan) = plan(&tree, &parameters, &key(&["/key"]), &[], &features()) {
            for sent in sent(&plan.info).into_iter().filter(|sent| !sent.is_empty()) {
                let sent = filled(sent);
                prop_assert!(parse(&sent).is_ok(), "{}", sent);
            }
            prop_assert!(plan.to_json().is_object());
        }
    }
}

/// Most of the queries that are put together are planned.
#[test]
fn the_queries_of_these_tests_are_planned() {
    for query in [
        "SELECT DISTINCT TOP @one c.a FROM c WHERE c.key = 'a' ORDER BY c.a OFFSET 1 LIMIT @two",
        "SELECT AVG(c.a), MIN(c.b) AS m FROM c GROUP BY c.a OFFSET 1 LIMIT @two",
        "SELECT TOP 5 VALUE {y: c.a} FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'x'), VectorDistance(c.v, [1]))",
    ] {
        assert!(planned(query).is_ok(), "{query}");
    }
}
