//! ORDER BY RANK: a query for each score. The client asks them all, ranks the rows
//! by each score, and fuses the ranks.
//!
//! The score of a text depends on all items: how many there are, how many words
//! they have, in how many a word stands. A first query asks each range for that,
//! and the client puts the sums into the others, in place of `{documentdb-..}`.

use super::build::{self, FILTER_PLACEHOLDER, and, array, item, object};
use super::rewrite::{and_defined, items_of, payload, rid};
use super::vector::Vectors;
use super::{Counts, HybridInfo, QueryInfo};
use crate::error::SyntaxError;
use crate::names::ranking;
use crate::print::{expr_in_lines, query_in_lines};
use crate::tree::{
    Call, Direction, Expr, ExprKind, Number, OffsetLimit, Operator, OrderBy, Projection, Query,
    SortKey, Span,
};

/// Fewer rows than this of each ranking are not worth fusing.
const LEAST_ROWS: u64 = 120;
/// The score of what has none, which comes last.
const NO_TEXT: i64 = 1;
const NO_VECTOR: f64 = 1.797_69e308;

/// The queries of a hybrid search. `skip_rewrite`: the client sorts by the scores
/// itself, and needs no sort keys.
pub(super) fn hybrid_info(
    query: &Query,
    counts: &Counts,
    vectors: &Vectors<'_>,
    skip_rewrite: bool,
) -> Result<HybridInfo, SyntaxError> {
    let ranking = query.order_by.as_ref().and_then(ranking).ok_or_else(|| {
        SyntaxError::sentence("The ORDER BY RANK clause has no function to rank by.")
    })?;
    let mut texts = 0;
    let mut scores = Vec::with_capacity(ranking.scores.len());
    for (number, call) in ranking.scores.iter().enumerate() {
        let weight = ranking.weights.get(number);
        let flipped = weight.is_some_and(|weight| weight.is_negative());
        scores.push(Score::of(call, flipped, &mut texts, vectors));
    }
    let (skip, take) = match (counts.page, counts.top) {
        (Some((offset, limit)), _) => (Some(offset), Some(limit)),
        (None, top) => (None, top),
    };
    let parts = Parts { query, paged: skip.is_some(), rows: take.map(|take| rows(skip, take)) };
    // With one score there is nothing to fuse.
    let components = if skip_rewrite && scores.len() > 1 {
        scores.iter().map(|score| parts.scored(score, &scores)).collect::<Result<_, _>>()
    } else {
        let shown = if skip_rewrite { &[] } else { scores.as_slice() };
        scores.iter().map(|score| parts.ordered(score, shown)).collect::<Result<_, _>>()
    };
    Ok(HybridInfo {
        global_statistics: statistics(query, &scores),
        components: components?,
        component_weights: ranking.weights.iter().map(|weight| weight.double().abs()).collect(),
        skip,
        take,
        requires_global_statistics: texts > 0,
    })
}

/// How many rows of each ranking are fused. As in the service no more than 32 bits
/// of it count; clients refuse numbers for which that matters.
fn rows(skip: Option<u32>, take: u32) -> u32 {
    let rows = 2 * (u64::from(skip.unwrap_or(0)) + u64::from(take));
    let kept = rows.max(LEAST_ROWS) & u64::from(u32::MAX);
    u32::try_from(kept).unwrap_or(u32::MAX)
}

/// One score of an item.
struct Score {
    /// What is evaluated.
    expr: Expr,
    /// Which come first.
    direction: Direction,
    /// The direction that is written, where it is not the function's own.
    written: Option<Direction>,
    /// The score of an item that has none.
    missing: Expr,
    /// What is counted for it: the total of words, and items with each word.
    statistics: Option<Expr>,
}

impl Score {
    fn of(call: &Call, flipped: bool, texts: &mut usize, vectors: &Vectors<'_>) -> Score {
        if call.name.eq_ignore_ascii_case("FULLTEXTSCORE") {
            *texts += 1;
            return Score::of_text(call, flipped, *texts - 1);
        }
        let direction = turned(vectors.direction_of(call), flipped);
        Score {
            expr: build::call("_VectorScore", call.arguments.clone()),
            direction,
            written: flipped.then_some(direction),
            missing: build::number(last(direction, Number::Double(NO_VECTOR))),
            statistics: None,
        }
    }

    fn of_text(call: &Call, flipped: bool, number: usize) -> Score {
        let direction = turned(Direction::Descending, flipped);
        let (text, terms) = match call.arguments.split_first() {
            Some((text, terms)) => (vec![text.clone()], terms_of(terms)),
            None => (Vec::new(), Vec::new()),
        };
        let placeholder = |what: String| {
            build::name(&format!("{{documentdb-formattablehybridsearchquery-{what}}}"))
        };
        let mut arguments = text.clone();
        arguments.extend([
            array(terms.clone()),
            placeholder("totaldocumentcount".to_owned()),
            placeholder(format!("totalwordcount-{number}")),
            placeholder(format!("hitcountsarray-{number}")),
        ]);
        let hits = terms.into_iter().map(|term| {
            let arguments = text.iter().cloned().chain([term]).collect();
            build::call("COUNTIF", vec![build::call("FullTextContains", arguments)])
        });
        let hits = array(hits.collect());
        let words = build::call("SUM", vec![build::call("_FullTextWordCount", text)]);
        Score {
            expr: build::call("_FullTextScore", arguments),
            direction,
            written: Some(direction),
            missing: build::number(last(direction, Number::Integer(NO_TEXT))),
            statistics: Some(object(vec![("totalWordCount", words), ("hitCounts", hits)])),
        }
    }

    /// `(score ?? -1)`
    fn value(&self) -> Expr {
        self.expr.clone().then(Operator::Coalesce, self.missing.clone())
    }

    /// The same, so that the greatest comes first.
    fn descending(&self) -> Expr {
        match self.direction {
            Direction::Descending => self.value(),
            Direction::Ascending => {
                build::number(Number::Integer(-1)).then(Operator::Multiply, self.value())
            }
        }
    }

    fn order_by(&self) -> OrderBy {
        let key = SortKey { expr: self.expr.clone(), direction: self.written };
        OrderBy { rank: false, keys: vec![key], span: Span::default() }
    }
}

fn turned(direction: Direction, flipped: bool) -> Direction {
    match (direction, flipped) {
        (direction, false) => direction,
        (Direction::Ascending, true) => Direction::Descending,
        (Direction::Descending, true) => Direction::Ascending,
    }
}

/// What comes last in this direction.
fn last(direction: Direction, great: Number) -> Number {
    match direction {
        Direction::Ascending => great,
        Direction::Descending => great.negated(),
    }
}

/// The terms may also be given as one list.
fn terms_of(terms: &[Expr]) -> Vec<Expr> {
    match terms {
        [Expr { kind: ExprKind::Array(terms), .. }] => terms.clone(),
        terms => terms.to_vec(),
    }
}

/// `SELECT COUNT(1) AS documentCount, [..] AS fullTextStatistics FROM c`
fn statistics(query: &Query, scores: &[Score]) -> String {
    let texts = scores.iter().filter_map(|score| score.statistics.clone()).collect();
    let count = build::call("COUNT", vec![build::number(Number::Integer(1))]);
    query_in_lines(&Query {
        projection: Projection::Items(vec![
            item(count, "documentCount"),
            item(array(texts), "fullTextStatistics"),
        ]),
        sources: query.sources.clone(),
        filter: None,
        distinct: false,
        top: None,
        group_by: Vec::new(),
        order_by: None,
        page: None,
        span: query.span,
    })
}

/// What the queries of all scores have in common.
struct Parts<'q> {
    query: &'q Query,
    /// Whether rows are cut by OFFSET and LIMIT, not by TOP.
    paged: bool,
    rows: Option<u32>,
}

impl Parts<'_> {
    fn cut(&self) -> Query {
        let top = self.rows.filter(|_| !self.paged).map(build::count);
        let page = self.rows.filter(|_| self.paged).map(|rows| OffsetLimit {
            offset: build::count(0),
            limit: build::count(rows),
            span: Span::default(),
        });
        Query { top, page, ..self.query.clone() }
    }

    /// Sort keys, and behind them the row with all its scores.
    fn ordered(&self, score: &Score, shown: &[Score]) -> Result<QueryInfo, SyntaxError> {
        let query = self.query;
        let scores = array(shown.iter().map(Score::value).collect());
        let row = object(vec![("payload", payload(query)?), ("componentScores", scores)]);
        let key = std::slice::from_ref(&score.expr);
        let projection = Projection::Items(vec![
            rid(query)?,
            item(items_of(key), "orderByItems"),
            item(row, "payload"),
        ]);
        let filter = and(query.filter.clone(), build::name(FILTER_PLACEHOLDER));
        let filter = Some(and_defined(filter, query));
        let order_by = Some(score.order_by());
        let sent = Query { projection, filter, order_by, ..self.cut() };
        Ok(QueryInfo {
            top: self.rows.filter(|_| !self.paged),
            offset: self.rows.filter(|_| self.paged).map(|_| 0),
            limit: self.rows.filter(|_| self.paged),
            order_by: vec![(score.direction, expr_in_lines(&score.expr))],
            rewritten: query_in_lines(&sent),
            non_streaming: true,
            ..QueryInfo::default()
        })
    }

    /// The row, and all its scores.
    fn scored(&self, score: &Score, scores: &[Score]) -> Result<QueryInfo, SyntaxError> {
        let query = self.query;
        let shown = array(scores.iter().map(Score::descending).collect());
        let projection = Projection::Items(vec![
            rid(query)?,
            item(payload(query)?, "payload"),
            item(shown, "componentScores"),
        ]);
        let filter = match &query.projection {
            Projection::Value(item) => {
                let defined = build::call("IS_DEFINED", vec![item.expr.clone()]);
                Some(and(query.filter.clone(), defined))
            }
            Projection::All(_) | Projection::Items(_) => query.filter.clone(),
        };
        let order_by = Some(score.order_by());
        let sent = Query { projection, filter, order_by, ..self.cut() };
        Ok(QueryInfo { rewritten: query_in_lines(&sent), ..QueryInfo::default() })
    }
}
