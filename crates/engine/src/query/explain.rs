//! What a page of a query did, and why: for a person who wonders what a query
//! costs.
//!
//! The query is carried out, so that all figures are those of the page itself.

use dayfly_model::charge::Charge;
use dayfly_sql::run::{Held, Holds, Steps, ValueSpan};
use dayfly_storage::{Direction, Figures};
use serde_json::{Value, json};

use super::choose::{Way, Why};
use super::numbers::Set;
use super::{Ran, Taken, run};
use crate::operation::QueryItems;
use crate::reply::{Reply, Success};
use crate::scope::Opened;
use crate::shared::Shared;

/// How many indexes are listed.
const INDEXES_MAX: usize = 100;

/// How many characters of a condition are shown.
const CONDITION_MAX: usize = 1_000;

/// Carries out the first page of a query, and says how.
pub(crate) fn explain(
    shared: &Shared,
    opened: &Opened,
    asked: &QueryItems,
    steps: &Steps<'_>,
) -> Reply {
    match run(shared, opened, asked, steps) {
        Ok(ran) => {
            let body = told(&ran, opened, &shared.store.figures()).to_string();
            Reply::ok(Success::new(200, body), opened.now(), ran.charge)
        }
        Err(error) => opened.failed(error),
    }
    .at(opened.place(&asked.part))
}

fn told(ran: &Ran, opened: &Opened, store: &Figures) -> Value {
    let figures = &ran.figures;
    json!({
        "now": opened.now().0,
        "access": access(ran),
        "read": {
            "entries": figures.entries,
            "dead": figures.dead,
            "items": figures.items,
            "bytes": figures.item_bytes,
        },
        "memory": memory(ran.finished.held),
        "answer": {
            "rows": figures.rows,
            "bytes": figures.row_bytes,
            "more": ran.continuation.is_some(),
        },
        "storage": { "rows": store.rows, "deletedRows": store.deleted_rows },
        "charge": ran.charge.ru(),
        "chargeParts": parts(&ran.charge),
    })
}

fn parts(charge: &Charge) -> Value {
    let number = |text: String| text.parse::<f64>().map_or(Value::Null, Value::from);
    let whole = |text: String| text.parse::<u64>().map_or_else(|_| number(text), Value::from);
    charge.parts().into_iter().map(|(name, value)| (name.to_owned(), whole(value))).collect()
}

fn memory(held: Held) -> Value {
    let what = match held.what {
        Holds::Nothing => "nothing",
        Holds::SortedRows => "sorted rows",
        Holds::Groups => "groups",
        Holds::DistinctRows => "distinct rows",
    };
    json!({ "holds": what, "count": held.count, "bytes": held.bytes })
}

/// The way to the items, in the words of the answer.
struct Told {
    way: &'static str,
    reason: &'static str,
    indexes: Vec<(String, Option<String>)>,
    condition: Option<String>,
    direction: Option<&'static str>,
}

fn access(ran: &Ran) -> Value {
    let told = match &ran.taken {
        Taken::NoItems => Told::new("noItems", "The query reads no items."),
        Taken::Known => {
            let reason = "The index, or the count of the living, knows the aggregates.";
            Told::new("known", reason)
        }
        Taken::Way(Way::Numbers(_), true) => {
            let reason = "The filter names too many items to put them in order, so all are read.";
            Told::new("scan", reason)
        }
        Taken::Way(way, _) => Told::of(way),
    };
    let Told { way, reason, indexes, condition, direction } = told;
    let left_out = indexes.len().saturating_sub(INDEXES_MAX);
    let index = |(index, range)| json!({ "index": index, "range": range });
    json!({
        "way": way,
        "reason": reason,
        "partitions": ran.partitions,
        "indexes": indexes.into_iter().take(INDEXES_MAX).map(index).collect::<Vec<_>>(),
        "indexesLeftOut": left_out,
        "condition": condition.map(cut),
        "direction": direction,
    })
}

impl Told {
    fn new(way: &'static str, reason: &'static str) -> Told {
        Told { way, reason, indexes: Vec::new(), condition: None, direction: None }
    }

    fn of(way: &Way) -> Told {
        match way {
            Way::Nothing => Told::new("nothing", "The filter is true of no item."),
            Way::Scan(why) => Told::new("scan", reason(*why)),
            Way::Numbers(Set::Range(span)) => Told {
                indexes: vec![index(span)],
                condition: Some(span.to_string()),
                ..Told::new("range", "The entries of this range lead to the items.")
            },
            Way::Numbers(set) => {
                let mut indexes = Vec::new();
                gather(set, &mut indexes);
                Told {
                    indexes,
                    condition: Some(condition(set)),
                    ..Told::new("values", "The entries of these values lead to the items.")
                }
            }
            Way::Ordered(route) => Told {
                indexes: vec![(route.path.clone(), route.span.as_ref().map(ValueSpan::to_string))],
                condition: route.span.as_ref().map(ValueSpan::to_string),
                direction: Some(match route.direction {
                    Direction::Forward => "ascending",
                    Direction::Backward => "descending",
                }),
                ..Told::new("order", "The entries have the order that is asked for.")
            },
        }
    }
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::Few => "There are so few items that all are read.",
        Why::NothingToSeek => "The filter has nothing that an index could look up.",
        Why::Partition => "All items of the partition are wanted, for all that an index knows.",
        Why::NotIndexed => "What the filter asks for is in no index that can be used now.",
    }
}

fn index(span: &ValueSpan) -> (String, Option<String>) {
    (span.path_text(), Some(span.to_string()))
}

fn gather(set: &Set, indexes: &mut Vec<(String, Option<String>)>) {
    match set {
        Set::Point(span) | Set::Range(span) => indexes.push(index(span)),
        Set::All(sets) | Set::Any(sets) => sets.iter().for_each(|set| gather(set, indexes)),
    }
}

fn condition(set: &Set) -> String {
    let joined = |sets: &[Set], word: &str| {
        let members: Vec<String> = sets.iter().map(condition).collect();
        format!("({})", members.join(word))
    };
    match set {
        Set::Point(span) | Set::Range(span) => span.to_string(),
        Set::All(sets) => joined(sets, " AND "),
        Set::Any(sets) => joined(sets, " OR "),
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(CONDITION_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
