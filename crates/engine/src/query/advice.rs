//! Which indexes a query uses, and which would help it.
//!
//! | the query has                            | advice                            |
//! |------------------------------------------|-----------------------------------|
//! | a filter or an order over a path, or a   | the path: used if it is indexed,  |
//! | function or aggregate of it in SELECT    | else missing                      |
//! | an order over several paths              | their composite index             |
//! | a partition key beside it, in the request| its paths: used                   |
//! | values and a range, joined by AND        | the values and one range: missing |
//! | values of all that it groups by          | these together: missing           |
//! | filters by value, and an order           | both together: missing            |
//!
//! Paths come in the order of the text, `/id` last. One that is filtered and sorted by
//! is not told beside others, unless a composite index with it would help.
//!
//! It is told from the query and the policy. A container with few items is read
//! without any index, and the advice is what counts when it has more.

use dayfly_model::Result;
use dayfly_model::indexing::{CompositePath, Order, Step, path_text};
use dayfly_sql::run::{IndexStep, OrderKey, Sieve, ValueSpan};

use super::access::Within;
use super::choose::{Chooser, member_text};
use super::needs::is_system;
use super::said::Said;
use crate::index::Index;
use crate::operation::Part;
use crate::reply::{IndexAdvice, Indexes, SingleIndex};
use crate::scope::Opened;

/// How many indexes of one kind are told.
const TOLD_MAX: usize = 16;

/// How many paths a composite index has at most.
const MEMBERS_MAX: usize = dayfly_model::indexing::COMPOSITE_PATHS_MAX;

/// A member of a composite index.
type Member = (Vec<String>, Order);

/// Which indexes a query uses, and which would help it.
pub(super) fn advise(
    Within { opened, program, steps, .. }: Within<'_>,
    index: &Index,
    part: &Part,
) -> Result<IndexAdvice> {
    let chooser = Chooser { opened, index, said: Said::nothing(), steps };
    let sieve = program.sieve();
    let mut advice = IndexAdvice::default();
    add_key(&mut advice, opened, part);
    let mut spans = Vec::new();
    gather(&sieve, &mut spans);
    for span in &spans {
        add_single(&mut advice, &chooser, &span.path, !span.is_whole())?;
    }
    for path in program.uses() {
        add_single(&mut advice, &chooser, &path, false)?;
    }
    let keys = program.order();
    let order = members_of(keys);
    if keys.len() > 1 {
        match chooser.by_composite(keys)? {
            Some(route) => advice.used.composite.push(specs_of(&composite_of(route.composite))),
            None => advice.missing.composite.extend(order.as_deref().map(specs_of)),
        }
    }
    let policy = &opened.container.definition().indexing;
    let suggestions = match order.filter(|order| is_an_order(&sieve, order)) {
        Some(order) => with_order(&sieve, order).into_iter().collect(),
        None => with_range(&sieve, &program.groups()),
    };
    if let [OrderKey { path: Some(path), .. }] = keys {
        let steps: Vec<IndexStep> = path.iter().cloned().map(IndexStep::Name).collect();
        let is_filtered = spans.iter().any(|span| span.path == steps);
        let has_others = spans.iter().any(|span| span.path != steps);
        let helps = suggestions.iter().flatten().any(|(member, _)| member == path);
        if is_filtered && has_others && !helps {
            let text = scalar(&steps.iter().map(IndexStep::as_step).collect::<Vec<_>>());
            advice.used.single.retain(|known| known.path != text);
        } else {
            add_single(&mut advice, &chooser, &steps, true)?;
        }
    }
    let missing = suggestions
        .iter()
        .filter(|suggestion| !policy.composites.iter().any(|known| is_served(suggestion, known)));
    advice.missing.composite.extend(missing.map(|members| specs_of(members)));
    for indexes in [&mut advice.used, &mut advice.missing] {
        indexes.single.sort_by_key(|index| index.path == "/id/?");
        indexes.single.truncate(TOLD_MAX);
        indexes.composite.truncate(TOLD_MAX);
    }
    Ok(advice)
}

/// The items of a partition are found by its key, whatever the policy says.
fn add_key(advice: &mut IndexAdvice, opened: &Opened, part: &Part) {
    let given = part.partition_key.as_ref().map_or(0, |key| key.0.len());
    for path in opened.container.definition().partition_key.paths.iter().take(given) {
        let steps: Vec<_> = path.segments().iter().map(|name| Step::Name(name)).collect();
        advice.used.single.push(SingleIndex { path: scalar(&steps), is_selective: true });
    }
}

/// A path as a policy names the scalars at it.
fn scalar(steps: &[Step<'_>]) -> String {
    format!("{}/?", path_text(steps))
}

fn gather<'s>(sieve: &'s Sieve, spans: &mut Vec<&'s ValueSpan>) {
    match sieve {
        Sieve::All | Sieve::Nothing => {}
        Sieve::Span(span) => spans.push(span),
        Sieve::And(members) | Sieve::Or(members) => {
            for member in members {
                gather(member, spans);
            }
        }
    }
}

fn add_single(
    advice: &mut IndexAdvice,
    chooser: &Chooser<'_>,
    path: &[IndexStep],
    is_selective: bool,
) -> Result<()> {
    // What the server adds to an item is not up to a policy.
    if plain(path).is_some_and(|path| is_system(&path)) {
        return Ok(());
    }
    let steps: Vec<_> = path.iter().map(IndexStep::as_step).collect();
    let text = scalar(&steps);
    let is_used = advice.used.single.iter().any(|known| known.path == text);
    let Indexes { single, .. } =
        if is_used || chooser.is_indexed(path)? { &mut advice.used } else { &mut advice.missing };
    match single.iter_mut().find(|known| known.path == text) {
        Some(known) => known.is_selective |= is_selective,
        None => single.push(SingleIndex { path: text, is_selective }),
    }
    Ok(())
}

/// A path of names alone.
fn plain(path: &[IndexStep]) -> Option<Vec<String>> {
    path.iter()
        .map(|step| match step {
            IndexStep::Name(name) => Some(name.clone()),
            IndexStep::Items => None,
        })
        .collect()
}

fn members_of(keys: &[OrderKey]) -> Option<Vec<Member>> {
    let order = |key: &OrderKey| {
        if key.descends() { Order::Descending } else { Order::Ascending }
    };
    keys.iter().map(|key| Some((key.path.clone()?, order(key)))).collect()
}

fn composite_of(composite: Option<dayfly_model::indexing::rules::Composite>) -> Vec<Member> {
    let members = composite.map(|composite| composite.members).unwrap_or_default();
    members.into_iter().map(|(path, order)| (path.segments().to_vec(), order)).collect()
}

fn specs_of(members: &[Member]) -> Vec<String> {
    members.iter().map(|(path, order)| member_text(path, *order)).collect()
}

/// The paths that all rows have one value at, and those with a range.
fn filters(sieve: &Sieve) -> (Vec<Member>, Vec<Member>) {
    let members = match sieve {
        Sieve::And(members) => members.as_slice(),
        sieve => std::slice::from_ref(sieve),
    };
    let (mut points, mut ranges) = (Vec::new(), Vec::new());
    for member in members {
        let Sieve::Span(span) = member else { continue };
        let Some(path) = plain(&span.path).filter(|path| !is_system(path)) else { continue };
        if span.is_point {
            points.push((path, Order::Ascending));
        } else if !span.is_whole() {
            ranges.push((path, Order::Ascending));
        }
    }
    (points, ranges)
}

/// Whether rows are put in order: not by what has one value.
fn is_an_order(sieve: &Sieve, order: &[Member]) -> bool {
    let (points, _) = filters(sieve);
    !order.iter().all(|(path, _)| points.iter().any(|(point, _)| point == path))
}

/// For each range: the values, and then the range. Without one: the values, if they
/// are all that the query groups by.
fn with_range(sieve: &Sieve, groups: &[Option<Vec<IndexStep>>]) -> Vec<Vec<Member>> {
    let (points, ranges) = filters(sieve);
    if ranges.is_empty() || points.is_empty() {
        return with_groups(&points, groups).into_iter().collect();
    }
    let with = |range: Member| [points.as_slice(), &[range]].concat();
    ranges.into_iter().map(with).filter(|members| is_possible(members)).collect()
}

/// The groups, if a value is given for each.
fn with_groups(points: &[Member], groups: &[Option<Vec<IndexStep>>]) -> Option<Vec<Member>> {
    let member = |group: &Option<Vec<IndexStep>>| {
        let path = plain(group.as_ref()?)?;
        points.iter().find(|(point, _)| *point == path).cloned()
    };
    let members: Option<Vec<Member>> = groups.iter().map(member).collect();
    members.filter(|members| is_possible(members))
}

/// The values, and then the order.
fn with_order(sieve: &Sieve, order: Vec<Member>) -> Option<Vec<Member>> {
    let (mut points, _) = filters(sieve);
    points.retain(|(path, _)| order.iter().all(|(ordered, _)| ordered != path));
    if points.is_empty() || order.iter().any(|(path, _)| is_system(path)) {
        return None;
    }
    Some([points, order].concat()).filter(|members| is_possible(members))
}

fn is_possible(members: &[Member]) -> bool {
    (2..=MEMBERS_MAX).contains(&members.len())
}

/// Whether a composite index has these paths, the last one last, whatever their
/// directions.
fn is_served(wanted: &[Member], known: &[CompositePath]) -> bool {
    let has = |path: &Vec<String>| known.iter().any(|member| member.path.segments() == path);
    let last = |path: &[String]| known.last().is_some_and(|last| last.path.segments() == path);
    known.len() == wanted.len()
        && wanted.iter().all(|(path, _)| has(path))
        && wanted.last().is_some_and(|(path, _)| last(path))
}
